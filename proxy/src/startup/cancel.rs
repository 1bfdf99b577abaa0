//! [`CancelRegistry`]: which session a CancelRequest means, for work that upstream does not know of.
//!
//! Keys are upstream's own (BackendKeyData as it came, any length). A request ends one statement: what is done here for the
//! session, or else what upstream is doing, never both; one that reached both might end the client's next statement with the
//! one it meant. Nor may it end a BEGIN that the client has been answered and upstream is yet to carry out: a request waits
//! for those, and while it is on its way upstream no more of them are made. A session that upstream gave no key cannot be
//! cancelled, as without freshet.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::wire::startup::CANCEL_REQUEST;

/// How long a session may take to act on a request. Longer, and it is waiting for upstream itself.
const ACTS_WITHIN: Duration = Duration::from_millis(200);

/// Nothing is done here for the session: what there is to cancel is upstream's.
const IDLE: u8 = 0;
/// A statement of the client's is dealt with here.
const WORKING: u8 = 1;
/// And is to be ended.
const RAISED: u8 = 2;

/// The sessions that can be cancelled, by process ID and secret key as one run of bytes.
#[derive(Clone, Debug, Default)]
pub struct CancelRegistry {
    signals: Arc<Mutex<HashMap<Box<[u8]>, Arc<Signal>>>>,
}

#[derive(Debug, Default)]
struct Signal {
    state: AtomicU8,
    /// Where the statement that was last to be ended has gone instead: upstream.
    is_relayed: AtomicBool,
    /// Upstream is carrying out what the client has been answered.
    is_held: AtomicBool,
    /// Requests that are on their way upstream.
    passing: AtomicUsize,
    raised: Notify,
    /// `state` or `is_held` has changed for the better.
    changed: Notify,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum Cancelled {
    /// The session has acted on it.
    Here,
    /// Upstream is to be asked; done when this is dropped.
    Upstream(Passing),
}

/// A request on its way upstream; None for a session that is not known here.
#[derive(Debug)]
pub struct Passing(Option<Arc<Signal>>);

impl Drop for Passing {
    fn drop(&mut self) {
        if let Some(signal) = &self.0 {
            signal.passing.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl CancelRegistry {
    /// `key` is the body of BackendKeyData. The session is known until the guard is dropped.
    pub fn register(&self, key: &[u8]) -> CancelGuard {
        let signal = Arc::new(Signal::default());
        // A key that is there already is of a session whose backend has ended: upstream gives a key once at a time.
        self.signals.lock().insert(key.into(), Arc::clone(&signal));
        CancelGuard { key: key.into(), signal, signals: Arc::clone(&self.signals) }
    }

    /// Ends what is done here for the session with this key, and waits until it has ended. Where there is nothing, or it has
    /// become upstream's, or does not end in time, upstream is to be asked.
    pub async fn cancel(&self, key: &[u8]) -> Cancelled {
        let Some(signal) = self.signals.lock().get(key).cloned() else { return Cancelled::Upstream(Passing(None)) };
        signal.passing.fetch_add(1, Ordering::SeqCst);
        let passing = Passing(Some(Arc::clone(&signal)));
        match tokio::time::timeout(ACTS_WITHIN, signal.has_acted()).await {
            Ok(true) => Cancelled::Here,
            Ok(false) | Err(_) => Cancelled::Upstream(passing),
        }
    }

    /// The packets that ask upstream to end whatever it does for the sessions there are.
    pub fn packets(&self) -> Vec<Vec<u8>> {
        let packet = |key: &[u8]| {
            let length = u32::try_from(key.len() + 8).unwrap_or(u32::MAX);
            [&length.to_be_bytes(), &CANCEL_REQUEST.to_be_bytes()[..], key].concat()
        };
        self.signals.lock().keys().map(|key| packet(key)).collect()
    }
}

impl Signal {
    /// Whether the session has acted on a request.
    async fn has_acted(&self) -> bool {
        loop {
            // Made before the look, so that a change in between is not missed.
            let changed = self.changed.notified();
            let raised = self.state.compare_exchange(WORKING, RAISED, Ordering::SeqCst, Ordering::SeqCst);
            if raised != Err(IDLE) {
                break;
            }
            if !self.is_held.load(Ordering::SeqCst) {
                return false;
            }
            changed.await;
        }
        self.raised.notify_one();
        loop {
            let changed = self.changed.notified();
            if self.state.load(Ordering::SeqCst) != RAISED {
                return !self.is_relayed.load(Ordering::SeqCst);
            }
            changed.await;
        }
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
    /// A statement is dealt with here from now on; requests before it have no effect on it (PostgreSQL: ProcessInterrupts,
    /// QueryCancelPending outside of a statement).
    pub fn begin(&self) {
        let _ = self.signal.state.compare_exchange(IDLE, WORKING, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// It is over: a request that comes now comes too late.
    pub fn end(&self) {
        self.leave(false);
    }

    /// It is upstream's from now on, and so is a request that was not acted on.
    pub fn hand_over(&self) {
        self.leave(true);
    }

    fn leave(&self, is_relayed: bool) {
        if self.is_cancelled() {
            self.signal.is_relayed.store(is_relayed, Ordering::SeqCst);
        }
        if self.signal.state.swap(IDLE, Ordering::SeqCst) == RAISED {
            self.signal.changed.notify_waiters();
        }
    }

    /// Upstream is about to be sent what the client is answered beforehand: requests wait.
    pub fn hold(&self) {
        self.signal.is_held.store(true, Ordering::SeqCst);
    }

    /// A request is on its way upstream, or waits for what is done here. Asked after [`CancelGuard::hold`], so that one of
    /// the two sees the other.
    pub fn is_passing(&self) -> bool {
        self.signal.passing.load(Ordering::SeqCst) > 0
    }

    /// Upstream has carried it out.
    pub fn release(&self) {
        self.signal.is_held.store(false, Ordering::SeqCst);
        self.signal.changed.notify_waiters();
    }

    pub fn is_cancelled(&self) -> bool {
        self.signal.state.load(Ordering::SeqCst) == RAISED
    }

    /// Returns when a request has come since [`CancelGuard::begin`], at once if it has already. Cancel safe.
    pub async fn cancelled(&self) {
        while !self.is_cancelled() {
            self.signal.raised.notified().await;
        }
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.end();
        self.release();
        let mut signals = self.signals.lock();
        if signals.get(&self.key).is_some_and(|found| Arc::ptr_eq(found, &self.signal)) {
            signals.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl CancelRegistry {
        async fn ends_here(&self, key: &[u8]) -> bool {
            matches!(self.cancel(key).await, Cancelled::Here)
        }
    }

    async fn acts(guard: &CancelGuard) {
        guard.cancelled().await;
        guard.end();
    }

    #[tokio::test]
    async fn a_request_reaches_the_session_with_its_key_and_no_other() {
        let registry = CancelRegistry::default();
        let (short, long) = (registry.register(&[0, 0, 0, 9, 1, 2, 3, 4]), registry.register(&[7; 260]));
        short.begin();
        long.begin();
        assert!(tokio::join!(registry.ends_here(&[7; 260]), acts(&long)).0);
        assert!(!registry.ends_here(&[7; 259]).await);
        assert!(!registry.ends_here(&[]).await);
        assert!(!short.is_cancelled());
        drop(short);
        assert!(!registry.ends_here(&[0, 0, 0, 9, 1, 2, 3, 4]).await);
    }

    #[tokio::test]
    async fn a_request_outside_of_a_statement_is_upstreams() {
        let registry = CancelRegistry::default();
        let guard = registry.register(b"12345678");
        assert!(!registry.ends_here(b"12345678").await);
        guard.begin();
        assert!(!guard.is_cancelled());
        guard.end();
        assert!(!registry.ends_here(b"12345678").await);
        guard.begin();
        let relays = async {
            guard.cancelled().await;
            guard.hand_over();
        };
        assert!(!tokio::join!(registry.ends_here(b"12345678"), relays).0);
    }

    #[tokio::test]
    async fn a_request_that_the_session_does_not_act_on_is_upstreams() {
        let registry = CancelRegistry::default();
        let guard = registry.register(b"12345678");
        guard.begin();
        assert!(!registry.ends_here(b"12345678").await);
        assert!(guard.is_cancelled(), "it is acted on yet, if there is time");
    }

    #[tokio::test]
    async fn requests_and_what_was_answered_beforehand_keep_out_of_each_others_way() {
        let registry = CancelRegistry::default();
        let guard = registry.register(b"key");
        guard.hold();
        assert!(!guard.is_passing());
        let is_released = AtomicBool::new(false);
        let request = async {
            let passing = registry.cancel(b"key").await;
            assert!(is_released.load(Ordering::SeqCst), "not before upstream has carried it out");
            passing
        };
        let release = async {
            tokio::task::yield_now().await;
            assert!(guard.is_passing(), "a request waits");
            is_released.store(true, Ordering::SeqCst);
            guard.release();
        };
        let (passing, ()) = tokio::join!(request, release);
        assert!(matches!(passing, Cancelled::Upstream(_)));
        assert!(guard.is_passing(), "it is on its way");
        drop(passing);
        assert!(!guard.is_passing());
    }

    #[tokio::test]
    async fn a_key_given_again_belongs_to_the_newer_session() {
        let registry = CancelRegistry::default();
        let old = registry.register(b"key");
        let new = registry.register(b"key");
        old.begin();
        drop(old);
        new.begin();
        assert!(tokio::join!(registry.ends_here(b"key"), acts(&new)).0);
    }
}
