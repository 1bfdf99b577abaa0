//! What session mode reads without asking upstream: the mirror as the last barrier showed it.
//!
//! A barrier has a number; reading at barrier `n` means to see everything that was visible when it was sent. Two rules
//! make a newer one due: an acknowledged write of any session, and a reply relayed to the session itself. Until a
//! barrier *sent after that* has arrived, readers wait for one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use freshet_engine::catalog::RelationId;
use freshet_engine::planted::{Bug, is_planted};
use freshet_engine::result_cache::Keys;
use freshet_engine::snapshot::Snapshot;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::freshness::marks::Marks;
use crate::replication::uptime::Uptime;
use crate::replication::written::Touched;

/// Counts the barriers sent. 0: none is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BarrierNumber(pub u64);

/// The mirror at a barrier.
#[derive(Debug)]
pub struct Exposed {
    pub number: BarrierNumber,
    pub sent_at: Uptime,
    /// The life of the stream it belongs to.
    pub epoch: u64,
    /// Every mirrored table whose state at that moment is known.
    pub snapshot: Arc<Snapshot>,
}

/// Which writes wake the barrier task. Each of many would do so from another thread, mostly for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heed {
    /// None: it looks by itself when its statement is answered, or its pause ends.
    No,
    /// If somebody has read whom it has not seen: nobody else would need what it sends.
    IfRead,
    Each,
}

/// Shared by all sessions and the barrier task.
#[derive(Debug, Default)]
pub struct Exposure {
    exposed: ArcSwapOption<Exposed>,
    /// The number of the last barrier sent.
    sent: AtomicU64,
    /// The numbers that readers need since acknowledged writes.
    marks: Marks,
    /// The relations that acknowledged writes have named, with those numbers, until they were found to be called so still.
    named: Mutex<HashMap<RelationId, u64>>,
    /// Likewise of the last write that named none.
    unnamed: AtomicU64,
    /// Likewise since the last statement that may have changed the catalog; only full barriers count.
    catalog_mark: AtomicU64,
    /// Likewise since the last write through this freshet that may not have waited for it as a synchronous standby.
    not_awaited: AtomicU64,
    /// The number of the last barrier that found the catalog unchanged for all mirrored tables.
    verified: AtomicU64,
    /// Session-mode readers, counted; the barrier task looks whether there are new ones.
    readers: AtomicU64,
    /// How many of them it has seen when it last looked.
    readers_seen: AtomicU64,
    /// A [`Heed`].
    heed: AtomicU8,
    /// Wakes the barrier task.
    pub due: Notify,
}

/// What can be read at once.
#[derive(Clone, Debug)]
pub struct Shown {
    pub number: BarrierNumber,
    pub snapshot: Arc<Snapshot>,
    /// Only for readers of those keys: other rows of the tables may have been written since.
    pub is_confined: bool,
}

impl Exposure {
    /// A write of these tables' rows, and no others, was acknowledged to a client of this freshet. Where it is confined to keys
    /// few will wait for it: the barrier that follows the transaction's arrival is soon enough.
    pub fn note_tables_written(&self, touched: &[Touched]) {
        let mut named = self.named.lock();
        // Under the lock: a number never replaces a later one.
        let number = self.required_now().0;
        named.extend(touched.iter().map(|touched| (touched.relation, number)));
        drop(named);
        touched.iter().for_each(|touched| self.marks.note_table(touched, number));
        if touched.iter().any(|touched| !touched.is_confined()) {
            self.wake_barrier();
        }
    }

    /// A write of rows was acknowledged, to relations that are not known.
    pub fn note_rows_written(&self) {
        self.unnamed.fetch_max(self.required_now().0, Ordering::SeqCst);
        self.marks.note_rows(self.required_now().0);
        self.wake_barrier();
    }

    /// Behind a mark.
    fn wake_barrier(&self) {
        let heed = self.heed.load(Ordering::SeqCst);
        if heed == Heed::Each as u8 || (heed == Heed::IfRead as u8 && self.has_new_readers()) {
            self.due.notify_one();
        }
    }

    /// For the barrier task: [`Heed::Each`] before it looks at the marks, so that each later one wakes it; then what is needed.
    pub fn heed(&self, heed: Heed) {
        self.heed.store(heed as u8, Ordering::SeqCst);
    }

    /// What writes have named that need no later barrier than this one, if that is not known to be called so still; and whether there
    /// was one that named nothing.
    pub fn named(&self, number: BarrierNumber) -> (Vec<RelationId>, bool) {
        let named = self.named.lock();
        let named = named.iter().filter(|(_, needed)| **needed <= number.0).map(|(relation, _)| *relation).collect();
        (named, (1..=number.0).contains(&self.unnamed.load(Ordering::SeqCst)))
    }

    /// That barrier has found these relations to be called as before.
    pub fn note_names_checked(&self, number: BarrierNumber, is_checked: impl Fn(RelationId) -> bool, are_all: bool) {
        self.named.lock().retain(|relation, needed| *needed > number.0 || !(are_all || is_checked(*relation)));
        if are_all {
            let is_covered = |unnamed: u64| (unnamed <= number.0).then_some(0);
            let _ = self.unnamed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_covered);
        }
    }

    /// Anything that may have changed tables, names or privileges was acknowledged.
    pub fn note_catalog_changed(&self) {
        self.catalog_mark.fetch_max(self.required_now().0, Ordering::SeqCst);
        self.note_rows_written();
    }

    /// What is acknowledged next may not have waited for freshet: that it is not received yet does not mean that nobody knows of it.
    pub fn note_not_awaited(&self) {
        self.not_awaited.fetch_max(self.required_now().0, Ordering::SeqCst);
    }

    /// The number of a barrier that is not sent yet.
    pub fn required_now(&self) -> BarrierNumber {
        let is_early = is_planted(Bug::MarkEarly);
        BarrierNumber(self.sent.load(Ordering::SeqCst) + u64::from(!is_early))
    }

    /// Takes the number of the barrier that is about to be written to the socket.
    pub fn send(&self) -> BarrierNumber {
        BarrierNumber(self.sent.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// What can be read at once, if it is new enough for who reads these relations, of some only `keys`. `relations` are
    /// [expanded](freshet_engine::catalog::Catalog::expand).
    pub fn look(
        &self,
        epoch: u64,
        relations: &[RelationId],
        keys: &Keys,
        required: BarrierNumber,
        lag_max: Duration,
    ) -> Option<Shown> {
        self.readers.fetch_add(1, Ordering::Relaxed);
        let exposed = self.exposed.load();
        let exposed = exposed.as_ref()?;
        let (marked, is_confined) = self.marks.required(relations, keys, exposed.number.0);
        let is_new_enough = exposed.number.0 >= required.0.max(marked)
            && self.verified.load(Ordering::SeqCst) >= self.catalog_mark.load(Ordering::SeqCst)
            && exposed.epoch == epoch
            && exposed.sent_at.elapsed() <= lag_max;
        let snapshot = &exposed.snapshot;
        (is_new_enough && has_all(snapshot, relations)).then(|| Shown {
            number: exposed.number,
            snapshot: Arc::clone(&exposed.snapshot),
            is_confined,
        })
    }

    /// Whether what barrier `number` showed is still new enough for who reads these keys.
    pub fn covers(&self, number: BarrierNumber, relations: &[RelationId], keys: &Keys) -> bool {
        self.marks.required(relations, keys, number.0).0 <= number.0
    }

    /// Likewise where commits wait for freshet, but for those that are known not to have: what was shown since `since`; the caller
    /// knows what was received after it.
    /// `lag_max` bounds how long a change of the catalog goes unnoticed.
    pub fn look_synchronous(
        &self,
        epoch: u64,
        relations: &[RelationId],
        since: Uptime,
        lag_max: Duration,
    ) -> Option<Shown> {
        self.readers.fetch_add(1, Ordering::Relaxed);
        let exposed = self.exposed.load();
        let exposed = exposed.as_ref()?;
        let snapshot = &exposed.snapshot;
        let is_usable = self.verified.load(Ordering::SeqCst) >= self.catalog_mark.load(Ordering::SeqCst)
            && exposed.number.0 >= self.not_awaited.load(Ordering::SeqCst)
            && exposed.epoch == epoch
            && exposed.sent_at > since
            && exposed.sent_at.elapsed() <= lag_max;
        let shown = || Shown { number: exposed.number, snapshot: Arc::clone(snapshot), is_confined: false };
        (is_usable && has_all(snapshot, relations)).then(shown)
    }

    /// Puts a newer moment in place.
    pub fn expose(&self, exposed: Exposed) {
        debug_assert!(self.exposed.load().as_ref().is_none_or(|before| before.number < exposed.number));
        self.exposed.store(Some(Arc::new(exposed)));
    }

    /// What was exposed last; for those who look, not for readers.
    pub fn newest(&self) -> Option<Arc<Exposed>> {
        self.exposed.load_full()
    }

    /// Nothing may be read any more: the stream or the catalog is in doubt.
    pub fn clear(&self) {
        self.exposed.store(None);
    }

    pub fn note_verified(&self, number: BarrierNumber) {
        self.verified.fetch_max(number.0, Ordering::SeqCst);
    }

    /// Whether a full barrier over all mirrored tables is due before session mode goes on.
    pub fn wants_verification(&self) -> bool {
        self.catalog_mark.load(Ordering::SeqCst) > self.verified.load(Ordering::SeqCst)
    }

    /// Whether an acknowledged write is not covered by any barrier sent so far.
    pub fn wants_barrier(&self) -> bool {
        self.marks.newest() > self.sent.load(Ordering::SeqCst)
    }

    fn has_new_readers(&self) -> bool {
        self.readers.load(Ordering::Relaxed) != self.readers_seen.load(Ordering::Relaxed)
    }

    /// For the barrier task: whether somebody has read since it was asked last.
    pub fn see_readers(&self) -> bool {
        let readers = self.readers.load(Ordering::Relaxed);
        self.readers_seen.swap(readers, Ordering::Relaxed) != readers
    }

    /// Age of what is exposed.
    pub fn lag(&self) -> Option<Duration> {
        self.exposed.load().as_ref().map(|exposed| exposed.sent_at.elapsed())
    }
}

/// Whether the moment is known of all of them.
fn has_all(snapshot: &Snapshot, relations: &[RelationId]) -> bool {
    relations.iter().all(|relation| snapshot.knows(*relation) || snapshot.catalog.is_derived(*relation))
}

#[cfg(test)]
mod tests {
    use freshet_engine::catalog::{ReplicaIdentity, TableSchema};
    use freshet_engine::table::{Generation, TableVersion};
    use futures_util::FutureExt;

    use super::*;

    const LAG: Duration = Duration::from_secs(10);

    fn expose(exposure: &Exposure, number: BarrierNumber) {
        let snapshot = Arc::new(Snapshot::default());
        exposure.expose(Exposed { number, sent_at: Uptime::now(), epoch: 1, snapshot });
    }

    fn empty(id: RelationId) -> TableVersion {
        let (schema, name): (Arc<str>, Arc<str>) = ("public".into(), "t".into());
        let identity = ReplicaIdentity::Full;
        let schema = TableSchema { id, schema, name, columns: Vec::new(), primary_key: Vec::new(), identity };
        TableVersion::empty(Arc::new(schema), Generation::default())
    }

    #[test]
    fn an_acknowledged_write_is_covered_only_by_a_barrier_sent_after_it() {
        let exposure = Exposure::default();
        let before = exposure.send();
        exposure.note_rows_written();
        expose(&exposure, before);
        assert!(exposure.look(1, &[], &Keys::default(), BarrierNumber(0), LAG).is_none(), "sent before the write");
        assert!(exposure.wants_barrier());
        let after = exposure.send();
        expose(&exposure, after);
        assert!(exposure.look(1, &[], &Keys::default(), BarrierNumber(0), LAG).is_some());
        assert!(!exposure.wants_barrier());
    }

    #[test]
    fn a_commit_that_did_not_wait_is_covered_only_by_a_barrier_sent_after_it() {
        let exposure = Exposure::default();
        let since = Uptime::now();
        std::thread::sleep(Duration::from_millis(1));
        let before = exposure.send();
        exposure.note_not_awaited();
        expose(&exposure, before);
        assert!(exposure.look_synchronous(1, &[], since, LAG).is_none(), "sent before it");
        let after = exposure.send();
        expose(&exposure, after);
        assert!(exposure.look_synchronous(1, &[], since, LAG).is_some());
    }

    #[test]
    fn a_write_to_one_table_makes_its_readers_wait_and_no_others() {
        let exposure = Exposure::default();
        let (written, other) = (RelationId(20_000), RelationId(20_001));
        let number = exposure.send();
        let tables = [written, other].map(|id| (id, Arc::new(empty(id)))).into();
        let snapshot = Arc::new(Snapshot { tables, ..Snapshot::default() });
        exposure.expose(Exposed { number, sent_at: Uptime::now(), epoch: 1, snapshot });
        exposure.note_tables_written(&[Touched::whole(written)]);
        assert!(exposure.wants_barrier());
        assert!(exposure.look(1, &[other], &Keys::default(), BarrierNumber(0), LAG).is_some());
        assert!(exposure.look(1, &[other, written], &Keys::default(), BarrierNumber(0), LAG).is_none());
        exposure.note_rows_written();
        assert!(exposure.look(1, &[other], &Keys::default(), BarrierNumber(0), LAG).is_none());
    }

    #[test]
    fn a_write_wakes_the_barrier_where_it_would_send_one_or_has_not_seen_a_reader() {
        let exposure = Exposure::default();
        let is_woken = |write: &dyn Fn()| {
            write();
            exposure.due.notified().now_or_never().is_some()
        };
        let table = || exposure.note_tables_written(&[Touched::whole(RelationId(20_000))]);
        let rows = || exposure.note_rows_written();
        exposure.heed(Heed::IfRead);
        assert!(!is_woken(&table) && !is_woken(&rows), "nobody reads");
        exposure.look(1, &[], &Keys::default(), BarrierNumber(0), LAG);
        assert!(is_woken(&table) && is_woken(&rows), "somebody does");
        assert!(exposure.see_readers() && !exposure.see_readers());
        assert!(!is_woken(&table) && !is_woken(&rows), "and it is known");
        exposure.heed(Heed::Each);
        assert!(is_woken(&table) && is_woken(&rows));
        exposure.heed(Heed::No);
        exposure.look(1, &[], &Keys::default(), BarrierNumber(0), LAG);
        assert!(!is_woken(&table) && !is_woken(&rows));
        assert!(exposure.wants_barrier(), "what it looks at, woken or not");
    }

    #[test]
    fn what_a_write_named_is_looked_at_by_a_barrier_sent_after_it() {
        let exposure = Exposure::default();
        let table = RelationId(20_000);
        let before = exposure.send();
        exposure.note_tables_written(&[Touched::whole(table)]);
        assert_eq!(exposure.named(before), (vec![], false));
        exposure.note_names_checked(before, |_| true, true);
        let after = exposure.send();
        assert_eq!(exposure.named(after), (vec![table], false));
        exposure.note_names_checked(after, |relation| relation != table, false);
        assert_eq!(exposure.named(after), (vec![table], false), "it has looked at others");
        exposure.note_names_checked(after, |relation| relation == table, false);
        assert_eq!(exposure.named(after), (vec![], false));
        exposure.note_rows_written();
        let last = exposure.send();
        assert_eq!((exposure.named(after), exposure.named(last)), ((vec![], false), (vec![], true)));
        exposure.note_names_checked(last, |_| true, false);
        assert_eq!(exposure.named(last), (vec![], true));
        exposure.note_names_checked(last, |_| true, true);
        assert_eq!(exposure.named(last), (vec![], false));
    }

    #[test]
    fn a_session_that_saw_a_relayed_reply_does_not_go_back() {
        let exposure = Exposure::default();
        let first = exposure.send();
        expose(&exposure, first);
        let required = exposure.required_now();
        assert!(exposure.look(1, &[], &Keys::default(), required, LAG).is_none());
        assert!(exposure.look(1, &[], &Keys::default(), BarrierNumber(0), LAG).is_some(), "another session may");
        let second = exposure.send();
        expose(&exposure, second);
        assert!(exposure.look(1, &[], &Keys::default(), required, LAG).is_some());
    }

    #[test]
    fn after_a_catalog_change_only_a_verified_barrier_will_do() {
        let exposure = Exposure::default();
        exposure.note_catalog_changed();
        let number = exposure.send();
        expose(&exposure, number);
        assert!(exposure.look(1, &[], &Keys::default(), BarrierNumber(0), LAG).is_none());
        exposure.note_verified(number);
        assert!(exposure.look(1, &[], &Keys::default(), BarrierNumber(0), LAG).is_some());
    }

    #[test]
    fn another_life_of_the_stream_an_old_moment_or_a_missing_table_are_not_served() {
        let exposure = Exposure::default();
        let number = exposure.send();
        expose(&exposure, number);
        assert!(exposure.look(2, &[], &Keys::default(), BarrierNumber(0), LAG).is_none());
        assert!(exposure.look(1, &[RelationId(5)], &Keys::default(), BarrierNumber(0), LAG).is_none());
        std::thread::sleep(Duration::from_millis(2));
        assert!(exposure.look(1, &[], &Keys::default(), BarrierNumber(0), Duration::from_millis(1)).is_none());
        exposure.clear();
        assert!(exposure.look(1, &[], &Keys::default(), BarrierNumber(0), LAG).is_none());
    }
}
