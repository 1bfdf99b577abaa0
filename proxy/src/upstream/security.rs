//! How the line to upstream is protected: `sslmode` and its kin, out of the URL's query, with libpq's meaning
//! (PostgreSQL: libpq, SSL Support; fe-connect.c).
//!
//! Different from libpq: files in ~/.postgresql are not looked at, since a daemon's home is nobody's; and where the host is
//! this machine the default is `allow`, not `prefer`: there is nothing to hide there, and it costs.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};

use crate::tls::verify::{Roots, Trust, Verifier};
use crate::tls::{ALPN, files, provider};
use crate::upstream::UpstreamError;
use crate::upstream::address::Endpoint;

/// One way to open the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Plain,
    Tls,
    /// In the clear where upstream offers none, or where it fails.
    TlsIfOffered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Whether freshet's own log-ins bind SCRAM to upstream's certificate; clients decide for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelBinding {
    Disable,
    Prefer,
    Require,
}

/// What the URL asks for, with all its files read.
#[derive(Clone)]
pub struct Security {
    pub mode: SslMode,
    pub channel_binding: ChannelBinding,
    /// TLS from the first byte on, without SSLRequest.
    pub is_direct: bool,
    /// With the files as they were last read, for all clones alike.
    tls: Arc<ArcSwap<ClientConfig>>,
    pub server_name: ServerName<'static>,
    /// `sslkey`.
    pub key_file: Option<PathBuf>,
}

impl Security {
    pub fn tls(&self) -> Arc<ClientConfig> {
        self.tls.load_full()
    }

    /// Takes what another reading of the same URL has found in its files; lines that are open stay as they are.
    pub(super) fn renew(&self, read: &Self) {
        self.tls.store(read.tls());
    }

    /// The ways to try, in this order. A later one is for when upstream refuses the log-in (pg_hba.conf).
    pub fn attempts(&self, endpoint: &Endpoint) -> &'static [Attempt] {
        match (endpoint, self.mode) {
            // As libpq: no TLS over Unix sockets, whatever is asked for.
            (Endpoint::Unix(_), _) | (Endpoint::Tcp { .. }, SslMode::Disable) => &[Attempt::Plain],
            (Endpoint::Tcp { .. }, SslMode::Allow) => &[Attempt::Plain, Attempt::Tls],
            (Endpoint::Tcp { .. }, SslMode::Prefer) => &[Attempt::TlsIfOffered, Attempt::Plain],
            (Endpoint::Tcp { .. }, SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull) => &[Attempt::Tls],
        }
    }
}

/// The keys of the query that are read here and not by tokio-postgres.
pub(super) const KEYS: &[&str] = &[
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslsni",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "channel_binding",
    "gssencmode",
];

/// The URL without the keys of this module, and what they were set to.
pub(super) fn split(url: &str) -> (String, Vec<(&str, String)>) {
    let Some((base, query)) = split_query(url) else { return (url.to_string(), Vec::new()) };
    let mut rest = Vec::new();
    let mut found = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some((key, value)) if KEYS.contains(&key) => found.push((key, percent_decode(value))),
            _ => rest.push(pair),
        }
    }
    let url = if rest.is_empty() { base.to_string() } else { format!("{base}?{}", rest.join("&")) };
    (url, found)
}

/// At the first `?` behind the credentials, which may hold one and end with the first `@` (tokio-postgres, config.rs).
fn split_query(url: &str) -> Option<(&str, &str)> {
    let host = url.find('@').map_or(0, |at| at + 1);
    let query = host + url[host..].find('?')?;
    Some((&url[..query], &url[query + 1..]))
}

/// As libpq: `+` is a plus sign.
pub(super) fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the values that [`split`] found; reads their files.
pub(super) fn read(found: &[(&str, String)], endpoint: &Endpoint) -> Result<Security, UpstreamError> {
    let wrong = |what: String| UpstreamError::Address(what);
    // The last one counts; an empty value is none, as in libpq.
    let value = |key: &str| {
        found.iter().rev().find(|(known, _)| *known == key).map(|(_, value)| value.as_str()).filter(|v| !v.is_empty())
    };
    if value("gssencmode") == Some("require") {
        return Err(wrong("gssencmode=require: encryption by GSSAPI is not spoken here".into()));
    }
    let is_system = value("sslrootcert") == Some("system");
    let mode = match value("sslmode") {
        Some(text) => ssl_mode(text)?,
        None if is_system => SslMode::VerifyFull,
        None if is_this_machine(endpoint) => SslMode::Allow,
        None => SslMode::Prefer,
    };
    if is_system && mode != SslMode::VerifyFull {
        return Err(wrong("sslrootcert=system goes with sslmode=verify-full only".into()));
    }
    let is_direct = match value("sslnegotiation") {
        None | Some("postgres") => false,
        Some("direct") if mode >= SslMode::Require => true,
        Some("direct") => return Err(wrong("sslnegotiation=direct needs sslmode=require or stronger".into())),
        Some(_) => return Err(wrong("sslnegotiation is postgres or direct".into())),
    };
    let channel_binding = match value("channel_binding") {
        None | Some("prefer") => ChannelBinding::Prefer,
        Some("disable") => ChannelBinding::Disable,
        Some("require") => ChannelBinding::Require,
        Some(_) => return Err(wrong("channel_binding is disable, prefer or require".into())),
    };
    let is_plain = mode == SslMode::Disable || matches!(endpoint, Endpoint::Unix(_));
    if is_plain && channel_binding == ChannelBinding::Require {
        let what = "channel_binding=require needs TLS, which sslmode=disable and Unix sockets exclude: take \
                    sslmode=require, or channel_binding=prefer";
        return Err(wrong(what.into()));
    }
    let host = match endpoint {
        Endpoint::Tcp { host, .. } => host.as_str(),
        Endpoint::Unix(_) => "localhost",
    };
    let trust = trust(mode, value("sslrootcert"), host).map_err(wrong)?;
    let certificate = client_certificate(value("sslcert"), value("sslkey")).map_err(wrong)?;
    let versions = versions(value("ssl_min_protocol_version"), value("ssl_max_protocol_version"))?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions)
        .map_err(|error| UpstreamError::Address(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier::new(trust)));
    let mut tls = match certificate {
        Some(certificate) => builder.with_client_cert_resolver(certificate),
        None => builder.with_no_client_auth(),
    };
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.enable_sni = value("sslsni") != Some("0");
    tls.resumption = rustls::client::Resumption::disabled();
    // A name that is no name of DNS is not sent; whether the certificate is for it is judged by its text.
    let name = ServerName::try_from(host.to_string());
    let server_name = name.unwrap_or_else(|_| ServerName::from(IpAddr::from([0, 0, 0, 0])));
    let tls = Arc::new(ArcSwap::from_pointee(tls));
    let key_file = value("sslkey").map(PathBuf::from);
    Ok(Security { mode, channel_binding, is_direct, tls, server_name, key_file })
}

fn ssl_mode(text: &str) -> Result<SslMode, UpstreamError> {
    Ok(match text {
        "disable" => SslMode::Disable,
        "allow" => SslMode::Allow,
        "prefer" => SslMode::Prefer,
        "require" => SslMode::Require,
        "verify-ca" => SslMode::VerifyCa,
        "verify-full" => SslMode::VerifyFull,
        _ => {
            let known = "sslmode is disable, allow, prefer, require, verify-ca or verify-full";
            return Err(UpstreamError::Address(known.into()));
        }
    })
}

fn is_this_machine(endpoint: &Endpoint) -> bool {
    match endpoint {
        Endpoint::Tcp { host, .. } => host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        Endpoint::Unix(_) => true,
    }
}

/// Where roots are given the chain is checked in every mode, as libpq does it.
fn trust(mode: SslMode, sslrootcert: Option<&str>, host: &str) -> Result<Trust, String> {
    let roots = match sslrootcert {
        None if mode >= SslMode::VerifyCa => {
            return Err("sslmode=verify-ca and verify-full need sslrootcert=FILE or sslrootcert=system".into());
        }
        None => return Ok(Trust::Anybody),
        Some(_) if mode == SslMode::Disable => return Ok(Trust::Anybody),
        Some("system") => system_roots()?,
        Some(path) => {
            let path = Path::new(path);
            let certificates = files::certificates(path).map_err(|what| format!("sslrootcert: {what}"))?;
            let store = files::roots(&certificates, path).map_err(|what| format!("sslrootcert: {what}"))?;
            Roots::new(certificates, store)?
        }
    };
    Ok(match mode {
        SslMode::VerifyFull => Trust::IssuedTo(roots, host.to_string()),
        _ => Trust::Issued(roots),
    })
}

fn system_roots() -> Result<Roots, String> {
    let certificates: Vec<CertificateDer<'static>> = rustls_native_certs::load_native_certs().certs;
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates.iter().cloned());
    Roots::new(certificates, store).map_err(|_| "sslrootcert=system: this system has no certificates to trust".into())
}

fn client_certificate(
    certificate: Option<&str>,
    key: Option<&str>,
) -> Result<Option<Arc<dyn ResolvesClientCert>>, String> {
    let (certificate, key) = match (certificate, key) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (PathBuf::from(certificate), PathBuf::from(key)),
        (Some(_), None) | (None, Some(_)) => return Err("sslcert and sslkey go together".into()),
    };
    let chain = files::certificates(&certificate).map_err(|what| format!("sslcert: {what}"))?;
    let certified = files::certified_key(chain, &key).map_err(|what| format!("sslkey: {what}"))?;
    Ok(Some(Arc::new(SingleCertAndKey::from(certified))))
}

/// rustls knows TLS 1.2 and 1.3; the older ones are below its floor.
fn versions(min: Option<&str>, max: Option<&str>) -> Result<Vec<&'static SupportedProtocolVersion>, UpstreamError> {
    let rank = |text: &str| match text {
        "TLSv1" | "TLSv1.1" => Ok(1),
        "TLSv1.2" => Ok(2),
        "TLSv1.3" => Ok(3),
        _ => Err(UpstreamError::Address("a TLS version is TLSv1.2 or TLSv1.3".into())),
    };
    let (min, max) = (min.map_or(Ok(1), rank)?, max.map_or(Ok(3), rank)?);
    let known = [(2, &version::TLS12), (3, &version::TLS13)];
    let chosen: Vec<_> = known.into_iter().filter(|(rank, _)| (min..=max).contains(rank)).map(|(_, v)| v).collect();
    match chosen.is_empty() {
        true => Err(UpstreamError::Address("no version of TLS is left; TLSv1.2 and TLSv1.3 are spoken here".into())),
        false => Ok(chosen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_url(url: &str) -> Result<Security, String> {
        let (_, found) = split(url);
        let host = if url.contains("@far") { "far.example" } else { "localhost" };
        let endpoint = Endpoint::Tcp { host: host.into(), port: 5432 };
        read(&found, &endpoint).map_err(|error| error.to_string())
    }

    #[test]
    fn the_query_is_split_and_decoded() {
        let (rest, found) = split("postgres://u@h/d?sslmode=require&application_name=x&sslkey=/a%20b+c%2f%zz");
        assert_eq!(rest, "postgres://u@h/d?application_name=x");
        assert_eq!(found, [("sslmode", "require".to_string()), ("sslkey", "/a b+c/%zz".to_string())]);
        assert_eq!(split("postgres://u@h/d?sslmode=allow").0, "postgres://u@h/d");
        assert_eq!(split("postgres://u@h/d").0, "postgres://u@h/d");
        let (rest, found) = split("postgres://u:a?b@h/d?sslmode=require&user=x");
        assert_eq!((rest.as_str(), found.len()), ("postgres://u:a?b@h/d?user=x", 1));
        assert_eq!(split("postgres://u:a?sslmode=b@h/d").0, "postgres://u:a?sslmode=b@h/d");
    }

    #[test]
    fn modes_and_their_attempts_are_libpqs() {
        let tcp = Endpoint::Tcp { host: "h".into(), port: 1 };
        let attempts = |query: &str| read_url(query).map(|security| security.attempts(&tcp)).unwrap();
        assert_eq!(attempts("postgres://u@far/d"), [Attempt::TlsIfOffered, Attempt::Plain]);
        assert_eq!(attempts("postgres://u@near/d"), [Attempt::Plain, Attempt::Tls]);
        assert_eq!(attempts("postgres://u@far/d?sslmode=disable"), [Attempt::Plain]);
        assert_eq!(attempts("postgres://u@far/d?sslmode=require&sslnegotiation=direct"), [Attempt::Tls]);
        let unix = Endpoint::Unix("/tmp/.s.PGSQL.1".into());
        assert_eq!(read_url("postgres://u@near/d?sslmode=require").unwrap().attempts(&unix), [Attempt::Plain]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_reason() {
        for (query, word) in [
            ("sslmode=on", "verify-full"),
            ("sslmode=prefer&sslnegotiation=direct", "require"),
            ("sslmode=verify-ca", "sslrootcert"),
            ("sslmode=require&sslrootcert=system", "verify-full"),
            ("sslmode=require&sslrootcert=/nowhere/ca.pem", "/nowhere/ca.pem cannot be read"),
            ("sslmode=require&sslcert=/x", "go together"),
            ("channel_binding=yes", "channel_binding"),
            ("channel_binding=require&sslmode=disable", "channel_binding=require needs TLS"),
            ("gssencmode=require", "GSSAPI"),
            ("sslmode=require&ssl_max_protocol_version=TLSv1.1", "TLSv1.2"),
        ] {
            let Err(error) = read_url(&format!("postgres://u@far/d?{query}")) else { panic!("{query} is refused") };
            assert!(error.contains(word), "{query}: {error}");
        }
    }
}
