//! What the tests of TLS share: a cluster whose rules tell lines apart, freshets before it, a raw client inside TLS.

use std::io::Read;
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use freshet_config::{Settings, TableChoice};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

use crate::certificates::Certificates;
use crate::client::Message;
use crate::cluster::Cluster;
use crate::freshet::Freshet;

/// Each role logs in by the method and on the line that it is named after; its password is its name.
pub const RULES: &str = "
hostssl all login_ssl 127.0.0.1/32 scram-sha-256
hostnossl all login_nossl 127.0.0.1/32 scram-sha-256
hostssl all login_cert 127.0.0.1/32 cert
host all login_scram 127.0.0.1/32 scram-sha-256
host all login_md5 127.0.0.1/32 md5
host all login_cleartext 127.0.0.1/32 password
hostssl all mirror_owner 127.0.0.1/32 scram-sha-256
hostssl replication mirror_owner 127.0.0.1/32 scram-sha-256
";

const ROLES: &str = "
CREATE ROLE login_ssl LOGIN PASSWORD 'login_ssl'; CREATE ROLE login_nossl LOGIN PASSWORD 'login_nossl';
CREATE ROLE login_cert LOGIN; CREATE ROLE mirror_owner LOGIN SUPERUSER REPLICATION PASSWORD 'mirror_owner';";

pub fn cluster() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| {
        let cluster = Cluster::start(&[]);
        cluster.psql("postgres", ROLES);
        Certificates::shared().use_in(&cluster, "server", RULES);
        cluster
    })
}

/// A plain relay before the shared cluster; `query` goes into the upstream URL.
pub fn relay(query: &str, change: impl FnOnce(&mut Settings)) -> Freshet {
    Freshet::start(&format!("{}?{query}", cluster().url("postgres")), |settings| {
        settings.mirror.tables = TableChoice::None;
        change(settings);
    })
}

pub fn show(settings: &mut Settings, name: &str) {
    let certificates = Certificates::shared();
    settings.listen.tls_certificate = Some(certificates.certificate(name));
    settings.listen.tls_key = Some(certificates.key(name));
}

pub fn connection(port: u16, role: &str, more: &str) -> String {
    format!("host=127.0.0.1 port={port} user={role} password={role} dbname=postgres connect_timeout=20 {more}")
}

pub fn root(name: &str) -> String {
    format!("sslrootcert={}", Certificates::shared().certificate(name).display())
}

/// Whether upstream's leg of this session is TLS.
pub const UPSTREAM_LEG: &str = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

/// Takes any certificate: what is tested here is the protocol.
#[derive(Debug)]
struct Anything;

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::RSA_PSS_SHA256]
    }
}

/// A line inside TLS, read and written as it comes.
pub type Tls = StreamOwned<ClientConnection, TcpStream>;

pub fn over_tls(stream: TcpStream, alpn: &[&[u8]]) -> Tls {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("both versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anything))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a configuration"), stream)
}

pub fn dial(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a TCP socket");
    stream
}

pub fn start_up() -> Vec<u8> {
    let mut packet = Vec::new();
    ::freshet::wire::startup::write_startup(&mut packet, &[("user", "postgres"), ("database", "postgres")]);
    packet
}

/// Messages up to the first with this tag.
pub fn read_until(stream: &mut impl Read, tag: char) -> Vec<Message> {
    let mut messages = Vec::new();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).expect("a message");
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("all of it");
        messages.push(Message { tag: char::from(head[0]), body });
        if char::from(head[0]) == tag {
            return messages;
        }
    }
}
