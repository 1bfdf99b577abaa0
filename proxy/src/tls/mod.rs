//! What both legs need of TLS: [`files`] reads certificates and keys, [`certificate`] looks into a certificate,
//! [`serve`] is the clients' leg, [`verify`] how upstream's certificate is judged. The bytes are rustls's affair.

pub mod certificate;
pub mod files;
pub mod serve;
pub mod verify;

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;

/// The application protocol that PostgreSQL 17 and its libpq ask for by ALPN; direct TLS requires it.
pub const ALPN: &[u8] = b"postgresql";

/// One set of algorithms for the whole program.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));
    Arc::clone(&PROVIDER)
}
