//! How far the mirror has applied, shown to the barrier, and how much hurry that asks for.
//!
//! A walsender sends every message of a transaction by itself, so that each commit would wake the stream several times and the
//! barrier once more. While nobody waits for a position, the stream rests between looks and takes what has gathered in one go.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use freshet_engine::types::Lsn;
use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

/// How long the stream leaves messages unread that nobody waits for. A barrier that is sent meanwhile ends it, and takes longer
/// than what has gathered takes to apply.
const REST: Duration = Duration::from_millis(1);

/// What the barrier makes of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Nothing.
    None,
    /// Exposes it soon: sessions read without asking for a barrier of their own.
    Followed,
    /// A barrier is under way, or waits for its part of the log.
    Awaited,
}

/// A position that is shown.
pub(super) struct Applied {
    shown: watch::Sender<Lsn>,
    attention: AtomicU8,
    /// Held where a rest is begun and where one is ended, so that neither misses the other.
    resting: Mutex<()>,
    hurry: Condvar,
}

impl Applied {
    pub(super) fn new() -> Self {
        let attention = AtomicU8::new(Attention::Awaited as u8);
        Self { shown: watch::channel(Lsn::default()).0, attention, resting: Mutex::new(()), hurry: Condvar::new() }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Lsn> {
        self.shown.subscribe()
    }

    /// Wakes the subscriber if it pays attention. Without, the position is there to be read.
    pub(super) fn show(&self, applied: Lsn) {
        self.shown.send_if_modified(|shown| {
            // Under the lock that a reader of the position takes: who paid attention before it read is woken.
            std::mem::replace(shown, applied) != applied && self.attention() != Attention::None as u8
        });
    }

    /// Nothing is applied any more. Wakes the subscriber whatever it attends to.
    pub(super) fn reset(&self) {
        self.shown.send_replace(Lsn::default());
    }

    /// To be called before what has been shown is read.
    pub(super) fn attend(&self, attention: Attention) {
        let before = self.attention.swap(attention as u8, Ordering::SeqCst);
        if attention == Attention::Awaited && before != attention as u8 {
            // Whoever is about to rest has either seen the swap or is waiting by now.
            drop(self.resting.lock());
            self.hurry.notify_one();
        }
    }

    /// Returns as soon as somebody waits, else after a while. Then the thread's other tasks have their turn, also where there is more to
    /// read at once.
    pub(super) async fn rest(&self) {
        self.block(REST);
        tokio::task::yield_now().await;
    }

    /// False: nobody has come. An event loop that waits is woken by every message that arrives, read or not, so the whole thread is
    /// blocked, which is the stream's: tasks beside it are late by as much.
    fn block(&self, at_most: Duration) -> bool {
        let mut resting = self.resting.lock();
        self.attention() == Attention::Awaited as u8 || !self.hurry.wait_for(&mut resting, at_most).timed_out()
    }

    fn attention(&self) -> u8 {
        self.attention.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_attends_is_woken() {
        let applied = Applied::new();
        let shown = applied.subscribe();
        let is_woken = |lsn| {
            applied.show(Lsn(lsn));
            shown.clone().has_changed().expect("the sender lives")
        };
        applied.attend(Attention::None);
        assert!(!is_woken(7));
        assert_eq!(*shown.borrow(), Lsn(7), "read without being woken");
        applied.attend(Attention::Followed);
        assert!(!is_woken(7), "nothing new");
        assert!(is_woken(8));
    }

    #[test]
    fn a_rest_ends_when_somebody_waits() {
        let applied = Applied::new();
        let long = Duration::from_secs(60);
        assert!(applied.block(long), "somebody waits from the start");
        applied.attend(Attention::None);
        assert!(!applied.block(REST));
        std::thread::scope(|scope| {
            let resting = scope.spawn(|| applied.block(long));
            applied.attend(Attention::Awaited);
            assert!(resting.join().expect("it ends"), "not by itself");
        });
    }

    #[tokio::test]
    async fn other_tasks_have_their_turn_after_each_rest() {
        let applied = Applied::new();
        applied.attend(Attention::None);
        let other = tokio::spawn(async {});
        applied.rest().await;
        assert!(other.is_finished());
    }
}
