//! Certificates as openssl makes them by PostgreSQL's manual, and any bytes.

use std::process::Command;

use proptest::prelude::*;

use super::*;

/// A self-signed certificate by `openssl req`, in DER.
fn made(key: &[&str], digest: &str, more: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new("openssl")
        .args(["req", "-x509", "-nodes", "-days", "30", "-outform", "DER", "-out", "cert.der", "-keyout", "key.pem"])
        .args(["-subj", "/O=freshet/CN=db.example", digest, "-newkey"])
        .args(key)
        .args(more)
        .current_dir(folder.path())
        .output()
        .expect("openssl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(folder.path().join("cert.der")).expect("written")
}

const EC: &[&str] = &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

#[test]
fn names_dates_and_version_are_read() {
    let names = "subjectAltName=DNS:db.example,DNS:*.db.example,IP:127.0.0.1,IP:::1";
    let der = made(EC, "-sha256", &["-addext", names]);
    let certificate = Certificate::parse(&der).expect("a certificate");
    assert_eq!(certificate.version, 3);
    assert_eq!(certificate.common_name(), Some(&b"db.example"[..]));
    assert_eq!(certificate.dns_names(), [&b"db.example"[..], b"*.db.example"]);
    assert_eq!(certificate.ip_addresses(), ["127.0.0.1".parse::<IpAddr>().unwrap(), "::1".parse().unwrap()]);
    assert_eq!(certificate.subject, certificate.issuer);
    assert_eq!(certificate.not_after - certificate.not_before, 30 * 86_400);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    assert!((now - certificate.not_before).abs() < 600);
    assert!(Certificate::parse(&made(EC, "-sha256", &[])).unwrap().dns_names().is_empty());
}

#[test]
fn the_digest_is_by_the_signatures_hash() {
    for (key, digest, length) in [
        (EC, "-sha1", 32),
        (EC, "-sha256", 32),
        (EC, "-sha384", 48),
        (EC, "-sha512", 64),
        (&["rsa:2048"], "-sha224", 28),
        (&["rsa:2048"], "-sha256", 32),
        (&["rsa:2048"], "-sha512", 64),
    ] {
        let der = made(key, digest, &[]);
        let found = Certificate::parse(&der).and_then(|certificate| certificate.end_point_digest());
        assert_eq!(found.map(|digest| digest.len()), Some(length), "{key:?} {digest}");
    }
    let der = made(EC, "-sha384", &[]);
    assert_eq!(Certificate::parse(&der).unwrap().end_point_digest().unwrap(), Sha384::digest(&der).to_vec());
    let der = made(&["ed25519"], "-sha256", &[]);
    assert_eq!(Certificate::parse(&der).unwrap().end_point_digest(), None);
}

#[test]
fn a_torn_certificate_is_none() {
    let der = made(EC, "-sha256", &["-addext", "subjectAltName=DNS:db.example"]);
    for end in 0..der.len() {
        assert!(Certificate::parse(&der[..end]).is_none(), "cut at {end}");
    }
    // Any one byte may be another: no panic, whatever comes out.
    for at in 0..der.len() {
        let mut changed = der.clone();
        changed[at] ^= 0xff;
        if let Some(certificate) = Certificate::parse(&changed) {
            let _ = (certificate.common_name(), certificate.dns_names(), certificate.ip_addresses());
            let _ = certificate.end_point_digest();
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Certificate::parse(&bytes);
    }
}
