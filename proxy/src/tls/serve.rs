//! TLS with clients: the certificate that freshet shows, read at start and again on SIGHUP.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use freshet_config::{Problem, Settings};
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;

use super::{ALPN, files, provider};

/// The clients' leg. What is read anew holds for connections from then on.
pub struct ServerTls {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    loaded: ArcSwap<Loaded>,
}

struct Loaded {
    config: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
}

impl ServerTls {
    /// None where the settings name no certificate. Every problem of the files, by key.
    pub fn load(settings: &Settings) -> Result<Option<Self>, Vec<Problem>> {
        let listen = &settings.listen;
        let (Some(certificate), Some(key)) = (&listen.tls_certificate, &listen.tls_key) else { return Ok(None) };
        let client_ca = listen.tls_client_ca.clone();
        let loaded = load(certificate, key, client_ca.as_deref())?;
        let (certificate, key) = (certificate.clone(), key.clone());
        Ok(Some(Self { certificate, key, client_ca, loaded: ArcSwap::from_pointee(loaded) }))
    }

    /// Reads the files again; after an error everything stays as it was.
    pub fn reload(&self) -> Result<(), Vec<Problem>> {
        self.loaded.store(Arc::new(load(&self.certificate, &self.key, self.client_ca.as_deref())?));
        Ok(())
    }

    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.loaded.load().config)
    }

    /// The one that clients see.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.loaded.load().certificate.clone()
    }
}

fn load(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Loaded, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut note = |key: &str, what: String| problems.push(Problem::new(key, format!("cannot be used: {what}"), ""));
    let chain = files::certificates(certificate).map_err(|what| note("listen.tls_certificate", what)).ok();
    let certified = match chain {
        Some(chain) => files::certified_key(chain, key).map_err(|what| note("listen.tls_key", what)).ok(),
        // The key's own faults are told as well.
        None => {
            let _ = files::private_key(key).map_err(|what| note("listen.tls_key", what));
            None
        }
    };
    let verifier = client_ca.map(|path| {
        let roots = files::certificates(path).and_then(|found| files::roots(&found, path))?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        verifier.map_err(|error| format!("{}: {error}", path.display()))
    });
    let verifier = verifier.transpose().map_err(|what| note("listen.tls_client_ca", what)).ok();
    let (Some(certified), Some(verifier)) = (certified, verifier) else { return Err(problems) };
    let shown = certified.cert.first().cloned();
    let Some(shown) = shown else { return Err(problems) };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for both versions");
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    // As PostgreSQL: sessions are not resumed, so that nothing of them need be kept (be-secure-openssl.c).
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Loaded { config: Arc::new(config), certificate: shown })
}
