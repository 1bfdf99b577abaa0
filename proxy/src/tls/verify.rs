//! Judges upstream's certificate as libpq does (PostgreSQL: SSL Support, Client Verification of Server Certificates).
//!
//! Chains are rustls-webpki's. Three forms that OpenSSL accepts and PostgreSQL's manual produces are accepted beside it: a
//! certificate that is itself in the file of roots, one of version 1 signed by a root, and a host name that stands in
//! the common name only. The handshake's signature is always checked: channel binding proves nothing without it.

use std::net::IpAddr;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::certificate::Certificate;
use super::provider;

/// How much of a certificate must be right.
#[derive(Debug)]
pub enum Trust {
    /// Any certificate: the line is encrypted, but to whom is not known.
    Anybody,
    /// It must come from one of these.
    Issued(Roots),
    /// And be for this host.
    IssuedTo(Roots, String),
}

/// Trust anchors, for webpki and for the forms it does not know.
#[derive(Debug)]
pub struct Roots {
    certificates: Vec<CertificateDer<'static>>,
    store: RootCertStore,
}

impl Roots {
    pub fn new(certificates: Vec<CertificateDer<'static>>, store: RootCertStore) -> Result<Self, String> {
        match store.is_empty() {
            true => Err("there is no certificate to trust".to_string()),
            false => Ok(Self { certificates, store }),
        }
    }
}

/// See the module's head.
#[derive(Debug)]
pub struct Verifier {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub fn new(trust: Trust) -> Self {
        Self { trust, algorithms: provider().signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = Certificate::parse(end_entity).ok_or(CertificateError::BadEncoding)?;
        let (roots, host) = match &self.trust {
            Trust::Anybody => return Ok(ServerCertVerified::assertion()),
            Trust::Issued(roots) => (roots, None),
            Trust::IssuedTo(roots, host) => (roots, Some(host)),
        };
        if roots.certificates.iter().any(|root| root.as_ref() == end_entity.as_ref()) {
            check_dates(&certificate, now)?;
        } else if certificate.subject == certificate.issuer {
            // webpki would complain of its being an authority's.
            return Err(CertificateError::UnknownIssuer.into());
        } else if certificate.version == 1 {
            check_version_1(&certificate, roots, now, self.algorithms.all)?;
        } else {
            let parsed = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, &roots.store, intermediates, now, algorithms)?;
        }
        match host.is_none_or(|host| is_for(&certificate, host)) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::NotValidForName.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match version_1(cert) {
            Some(certificate) => self.check_handshake(message, &certificate, dss, usize::MAX),
            None => verify_tls12_signature(message, cert, dss, &self.algorithms),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match version_1(cert) {
            // In TLS 1.3 a scheme names its curve: the first algorithm is the only one.
            Some(certificate) => self.check_handshake(message, &certificate, dss, 1),
            None => verify_tls13_signature(message, cert, dss, &self.algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl Verifier {
    fn check_handshake(
        &self,
        message: &[u8],
        certificate: &Certificate<'_>,
        dss: &DigitallySignedStruct,
        algorithms_max: usize,
    ) -> Result<HandshakeSignatureValid, Error> {
        let found = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == dss.scheme);
        let algorithms = found.map(|(_, algorithms)| *algorithms).unwrap_or_default().iter().take(algorithms_max);
        match algorithms.copied().any(|algorithm| has_signed(certificate, algorithm, message, dss.signature())) {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(CertificateError::BadSignature.into()),
        }
    }
}

fn version_1<'a>(cert: &'a CertificateDer<'_>) -> Option<Certificate<'a>> {
    Certificate::parse(cert).filter(|certificate| certificate.version == 1)
}

/// Whether the owner of `signer`'s key signed `message`.
fn has_signed(
    signer: &Certificate<'_>,
    algorithm: &dyn SignatureVerificationAlgorithm,
    message: &[u8],
    signature: &[u8],
) -> bool {
    algorithm.public_key_alg_id().as_ref() == signer.key_algorithm
        && algorithm.verify_signature(signer.key, message, signature).is_ok()
}

fn check_dates(certificate: &Certificate<'_>, now: UnixTime) -> Result<(), CertificateError> {
    match i64::try_from(now.as_secs()).unwrap_or(i64::MAX) {
        now if now < certificate.not_before => Err(CertificateError::NotValidYet),
        now if now > certificate.not_after => Err(CertificateError::Expired),
        _ => Ok(()),
    }
}

/// Version 1 knows no extensions, so nothing but a root may stand above it: no intermediate could be told from an
/// ordinary certificate.
fn check_version_1(
    certificate: &Certificate<'_>,
    roots: &Roots,
    now: UnixTime,
    algorithms: &[&dyn SignatureVerificationAlgorithm],
) -> Result<(), CertificateError> {
    let named = roots.certificates.iter().filter_map(|der| Certificate::parse(der));
    let mut issuers = named.filter(|root| root.subject == certificate.issuer).peekable();
    if issuers.peek().is_none() {
        return Err(CertificateError::UnknownIssuer);
    }
    let is_issued = issuers.any(|issuer| {
        let fitting = algorithms.iter().filter(|a| a.signature_alg_id().as_ref() == certificate.signature_algorithm);
        check_dates(&issuer, now).is_ok()
            && fitting.copied().any(|a| has_signed(&issuer, a, certificate.signed, certificate.signature))
    });
    match is_issued {
        true => check_dates(certificate, now),
        false => Err(CertificateError::BadSignature),
    }
}

/// libpq's rule (fe-secure-common.c): alternative names of the host's kind, or else the common name.
fn is_for(certificate: &Certificate<'_>, host: &str) -> bool {
    let names = certificate.dns_names();
    let addresses = certificate.ip_addresses();
    let address: Option<IpAddr> = host.parse().ok();
    let has_its_kind = match address {
        Some(_) => !addresses.is_empty(),
        None => !names.is_empty(),
    };
    address.is_some_and(|address| addresses.contains(&address))
        || names.iter().any(|name| name_matches(name, host))
        || !has_its_kind && certificate.common_name().is_some_and(|name| name_matches(name, host))
}

/// Case does not count, and `*.` stands for one label in front (wildcard_certificate_match).
fn name_matches(pattern: &[u8], host: &str) -> bool {
    // A NUL inside is an attempt to deceive readers of C strings.
    if pattern.contains(&0) {
        return false;
    }
    let host = host.as_bytes();
    if pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    let Some(behind) = pattern.strip_prefix(b"*").filter(|behind| behind.len() > 1 && behind[0] == b'.') else {
        return false;
    };
    let Some(at) = host.iter().position(|byte| *byte == b'.').filter(|at| *at > 0) else { return false };
    host[at..].eq_ignore_ascii_case(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_libpq_matches_them() {
        assert!(name_matches(b"db.Example.org", "DB.example.org"));
        assert!(name_matches(b"*.example.org", "db.example.org"));
        assert!(!name_matches(b"*.example.org", "a.db.example.org"));
        assert!(!name_matches(b"*.example.org", "example.org"));
        assert!(!name_matches(b"*.example.org", ".example.org"));
        assert!(!name_matches(b"*", "localhost"));
        assert!(!name_matches(b"*.", "localhost."));
        assert!(!name_matches(b"db\0.evil.org", "db"));
    }
}
