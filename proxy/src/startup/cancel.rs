//! [`CancelRegistry`]: which session a CancelRequest means, for work that upstream does not know of.
//!
//! Keys are upstream's own (BackendKeyData as it came, any length), so a request is always relayed as well; what is
//! registered here only learns of it. A session that upstream gave no key cannot be cancelled, as without freshet.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The sessions that can be cancelled, by process ID and secret key as one run of bytes.
#[derive(Clone, Debug, Default)]
pub struct CancelRegistry {
    signals: Arc<Mutex<HashMap<Box<[u8]>, Arc<Signal>>>>,
}

#[derive(Debug, Default)]
struct Signal {
    is_raised: Arc<AtomicBool>,
    raised: Notify,
}

impl CancelRegistry {
    /// `key` is the body of BackendKeyData. The session is known until the guard is dropped.
    pub fn register(&self, key: &[u8]) -> CancelGuard {
        let signal = Arc::new(Signal::default());
        // A key that is there already is of a session whose backend has ended: upstream gives a key once at a time.
        self.signals.lock().insert(key.into(), Arc::clone(&signal));
        CancelGuard { key: key.into(), signal, signals: Arc::clone(&self.signals) }
    }

    /// Tells the session with this key; false if there is none.
    pub fn cancel(&self, key: &[u8]) -> bool {
        let Some(signal) = self.signals.lock().get(key).cloned() else { return false };
        signal.is_raised.store(true, Ordering::Release);
        signal.raised.notify_one();
        true
    }
}

/// The key that a CancelRequest packet names: all of it behind length and request code.
pub fn key_of(packet: &[u8]) -> &[u8] {
    packet.get(8..).unwrap_or_default()
}

/// One session's place in the registry.
#[derive(Debug)]
pub struct CancelGuard {
    key: Box<[u8]>,
    signal: Arc<Signal>,
    signals: Arc<Mutex<HashMap<Box<[u8]>, Arc<Signal>>>>,
}

impl CancelGuard {
    /// Raised by a request, for code that looks now and then. It stays raised until [`CancelGuard::lower`].
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.signal.is_raised)
    }

    /// To be called when a statement begins: a request that finds nothing to cancel has no effect (PostgreSQL:
    /// ProcessInterrupts, QueryCancelPending outside of a statement).
    pub fn lower(&self) {
        self.signal.is_raised.store(false, Ordering::Release);
    }

    /// Returns when a request has come since the last [`CancelGuard::lower`], at once if it has already. Cancel safe.
    pub async fn cancelled(&self) {
        while !self.signal.is_raised.load(Ordering::Acquire) {
            self.signal.raised.notified().await;
        }
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let mut signals = self.signals.lock();
        if signals.get(&self.key).is_some_and(|found| Arc::ptr_eq(found, &self.signal)) {
            signals.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_reaches_the_session_with_its_key_and_no_other() {
        let registry = CancelRegistry::default();
        let (short, long) = (registry.register(&[0, 0, 0, 9, 1, 2, 3, 4]), registry.register(&[7; 260]));
        assert!(registry.cancel(&[7; 260]));
        assert!(!registry.cancel(&[7; 259]));
        assert!(!registry.cancel(&[]));
        long.cancelled().await;
        assert!(long.flag().load(Ordering::Acquire));
        assert!(!short.flag().load(Ordering::Acquire));
        drop(short);
        assert!(!registry.cancel(&[0, 0, 0, 9, 1, 2, 3, 4]));
    }

    #[tokio::test]
    async fn a_request_before_the_statement_has_no_effect_on_it() {
        let registry = CancelRegistry::default();
        let guard = registry.register(b"12345678");
        registry.cancel(b"12345678");
        guard.lower();
        let waits = tokio::time::timeout(std::time::Duration::from_millis(10), guard.cancelled()).await;
        assert!(waits.is_err());
        registry.cancel(b"12345678");
        guard.cancelled().await;
    }

    #[test]
    fn a_key_given_again_belongs_to_the_newer_session() {
        let registry = CancelRegistry::default();
        let old = registry.register(b"key");
        let new = registry.register(b"key");
        drop(old);
        assert!(registry.cancel(b"key"));
        assert!(new.flag().load(Ordering::Acquire));
    }
}
