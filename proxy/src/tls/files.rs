//! Reads certificates and keys from PEM files; what is wrong is said as the rest of a sentence that begins with the
//! file's name. Contents of keys never get into a text.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;
use super::provider;

/// The certificates of a file, in its order; at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let found = found.map_err(|error| format!("{} is no PEM file: {error}", path.display()))?;
    if found.is_empty() {
        return Err(format!("{} holds no certificate in PEM form", path.display()));
    }
    match found.iter().all(|der| Certificate::parse(der).is_some()) {
        true => Ok(found),
        false => Err(format!("{} holds a certificate that cannot be read", path.display())),
    }
}

/// The first private key of a file.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let bytes = read(path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        match bytes.windows(b"ENCRYPTED".len()).any(|window| window == b"ENCRYPTED") {
            true => format!("{} is encrypted: there is nobody to ask for its passphrase", path.display()),
            false => format!("{} holds no private key in PEM form", path.display()),
        }
    })
}

/// A certificate with its chain, and the key that belongs to it.
pub fn certified_key(chain: Vec<CertificateDer<'static>>, key: &Path) -> Result<CertifiedKey, String> {
    let loaded = provider().key_provider.load_private_key(private_key(key)?);
    let loaded = loaded.map_err(|_| format!("{} holds a key of a kind that is not known here", key.display()))?;
    let of_certificate = chain.first().and_then(|der| Certificate::parse(der)).map(|found| found.key_and_algorithm);
    let of_key = loaded.public_key();
    match of_key.is_none_or(|of_key| of_certificate == Some(&*of_key)) {
        true => Ok(CertifiedKey::new(chain, loaded)),
        false => Err(format!("{} is not the key of the certificate", key.display())),
    }
}

/// The certificates of a file as trust anchors.
pub fn roots(certificates: &[CertificateDer<'static>], path: &Path) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        let added = store.add(certificate.clone());
        added.map_err(|_| format!("{} holds a certificate that cannot be trusted", path.display()))?;
    }
    Ok(store)
}

/// Said of a file with a private key that others may read or change; PostgreSQL would not start with it. A key of root's may be
/// readable for a group (be-secure-common.c, check_ssl_key_file_permissions).
pub fn exposure(key: &Path) -> Option<String> {
    let file = std::fs::metadata(key).ok()?;
    let forbidden = if file.uid() == 0 { 0o037 } else { 0o077 };
    let mode = file.mode() & 0o777;
    let is_exposed = mode & forbidden != 0;
    is_exposed.then(|| format!("{} holds a private key that others can get at (mode {mode:04o})", key.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_that_others_can_read_is_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let told = |mode: u32| {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            exposure(file.path())
        };
        assert_eq!(told(0o600), None);
        assert!(told(0o644).is_some_and(|told| told.contains("mode 0644")));
        let is_of_root = file.path().metadata().unwrap().uid() == 0;
        assert_eq!(told(0o640).is_none(), is_of_root);
        assert_eq!(exposure(Path::new("/nowhere/key")), None);
    }
}
