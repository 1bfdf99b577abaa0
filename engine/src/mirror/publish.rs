//! [`Mirror`]: every mirrored table's recent versions, and the [`Snapshot`]s cut out of them.
//!
//! One writer (replication) applies transactions in commit order; many readers ask for the tables as one
//! `pg_current_snapshot()` sees them. Commit order is not visibility order, so each table keeps a history: its oldest
//! version that any later reader may need, then one version per applied transaction, or for several small ones that nobody has read
//! between (see [`waiting`]). A reader gets the version after
//! the leading transactions that it sees; if it also sees a later one, there is no such version and it is told so.
//!
//! First copy: changes are kept from [`Mirror::start_copy`] on; [`Mirror::finish_copy`] applies those that the copy's
//! snapshot did not see, which is exact where comparing LSNs is not (a commit may be visible before or after a later one).
//! See [`catch_up`] for how that keeps nobody waiting.
//!
//! Generations are commit LSNs, made strictly increasing per table: the copy counts as changed at the insert LSN taken
//! with its snapshot, and a transaction applied on top of it with a lower commit LSN gets the next number instead.
//!
//! Locks: `writer` serialises everything that makes versions; `published` is held for reading while a snapshot is cut
//! and for writing only while finished versions are put in place. `writer` is taken first. It may be held for as long as a large
//! transaction takes: who calls what takes it holds no lock that a session could wait for, and who cuts a snapshot waits for it a few
//! milliseconds at most. What the mirror lets go of is handed
//! out as [`Freed`], to be dropped without any lock.

mod catch_up;
mod status;
mod step;
mod waiting;

use std::collections::HashMap;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use super::apply::PoisonReason;
use super::assemble::{TableChanges, UpstreamTransaction};
use crate::catalog::{Catalog, RelationId, ReplicaIdentity, TableSchema};
use crate::change_log::{ChangeLog, ChangeLogLimits, RowChanges};
use crate::planted::{Bug, is_planted};
use crate::reason::UpstreamReason;
use crate::snapshot::{Snapshot, VisibilitySnapshot};
use crate::table::key_changes::KeyChanges;
use crate::table::{Generation, TableVersion};
use crate::types::Lsn;
use catch_up::CatchUp;
pub use status::TableStatus;
use step::{Bindings, Outcome, Tip};
use waiting::{UNCOUNTED_BYTES, Waited, Waiting};

/// What the mirror may use.
#[derive(Clone, Debug)]
pub struct MirrorLimits {
    /// Newest versions of all tables. Over it, the one with the fewest reads per byte becomes tracked.
    pub bytes_max: usize,
    /// Changes kept for one table while it is copied. Over it, or over the cap with all else, the copy is given up. (While they are
    /// applied to it at its end, as much again.)
    pub copy_buffer_bytes_max: usize,
    /// Versions kept per table while no reader has shown them to be visible; then older ones are put together.
    pub versions_max: usize,
    pub change_log: ChangeLogLimits,
}

impl Default for MirrorLimits {
    fn default() -> Self {
        Self {
            bytes_max: 4 << 30,
            copy_buffer_bytes_max: 256 << 20,
            versions_max: 1_024,
            change_log: ChangeLogLimits::default(),
        }
    }
}

/// Why a table has generations but no rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrackedBecause {
    /// It could be mirrored if there were more memory, or others were asked for less.
    LacksRoom,
    /// It has a value that cannot be held.
    Unfit(String),
}

impl fmt::Display for TrackedBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LacksRoom => f.write_str("no room for it within mirror.memory_bytes_max"),
            Self::Unfit(why) => f.write_str(why),
        }
    }
}

/// What the mirror has of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableState {
    /// The first copy runs; changes are kept.
    Copying,
    Mirrored,
    /// Generations but no rows.
    Tracked(TrackedBecause),
    /// Can no longer be followed; has to be copied again.
    Poisoned(PoisonReason),
}

/// One first copy of one table: a copy that was begun earlier cannot be finished in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopyId {
    relation: RelationId,
    number: u64,
}

/// All mirrored tables of one database.
pub struct Mirror {
    limits: MirrorLimits,
    writer: Mutex<Writer>,
    published: RwLock<Published>,
    /// What `writer.buffers` hold, readable without its lock.
    buffered_bytes: AtomicUsize,
}

/// What the mirror no longer holds. To free the rows of a table takes long: drop it where nobody waits for a lock.
#[derive(Default)]
#[must_use = "what is freed is to be dropped when no lock is held"]
pub struct Freed {
    tables: Vec<Table>,
    rows: Vec<Arc<TableVersion>>,
    kept: Vec<CopyBuffer>,
    waited: Vec<Arc<Waited>>,
}

#[derive(Default)]
struct Writer {
    /// Counts the copies begun.
    copies: u64,
    /// Changes to tables that are being copied.
    buffers: HashMap<RelationId, CopyBuffer>,
    bindings: Bindings,
    /// The last generation of every table ever mirrored: a new copy must not repeat one.
    generations: HashMap<RelationId, Generation>,
    /// What has come to wait since the memory cap was looked at.
    uncounted: usize,
}

struct CopyBuffer {
    id: CopyId,
    transactions: Vec<(Stamp, TableChanges)>,
    bytes: usize,
}

#[derive(Default)]
struct Published {
    applied: Lsn,
    tables: HashMap<RelationId, Table>,
    weights: HashMap<RelationId, f64>,
}

struct Table {
    /// By which it came.
    copy: CopyId,
    schema: Arc<TableSchema>,
    state: TableState,
    /// What every reader must see: the copy's snapshot, then the one of the last retirement.
    floor: Arc<VisibilitySnapshot>,
    /// Oldest first; the first one's transactions are all seen under `floor`. Empty unless mirrored or tracked.
    history: VecDeque<Version>,
    /// Behind the newest version.
    waiting: Waiting,
    handover: Option<Handover>,
    /// With what waits.
    generation: Generation,
    change_log: ChangeLog,
    /// Of the newest version, when it was made or last counted.
    bytes: usize,
    bytes_once: usize,
}

/// A table after some transactions that came after the version before it.
struct Version {
    xids: Vec<u32>,
    generation: Generation,
    /// None: tracked.
    rows: Option<Arc<TableVersion>>,
}

#[derive(Clone, Copy)]
struct Stamp {
    xid: u32,
    commit_lsn: Lsn,
}

/// Transactions that a first copy contains: those with a commit LSN below `insert_lsn` that `copied_at` sees.
/// (Later ones it cannot have seen, and a transaction id may come round again.)
#[derive(Clone)]
struct Handover {
    copied_at: Arc<VisibilitySnapshot>,
    insert_lsn: Lsn,
}

impl Mirror {
    pub fn new(limits: MirrorLimits) -> Self {
        Self { limits, writer: Mutex::default(), published: RwLock::default(), buffered_bytes: AtomicUsize::new(0) }
    }

    /// Begins to keep the changes of a table, before it is added to the publication. A table known already is
    /// forgotten first, a copy of it under way is void. An error says why it cannot be mirrored.
    pub fn start_copy(&self, schema: Arc<TableSchema>) -> Result<CopyId, UpstreamReason> {
        admit(&schema)?;
        let mut writer = self.writer.lock();
        writer.copies += 1;
        let id = CopyId { relation: schema.id, number: writer.copies };
        let buffer = CopyBuffer { id, transactions: Vec::new(), bytes: 0 };
        let void = writer.buffers.insert(schema.id, buffer);
        self.note_buffered(&writer);
        let before = writer.generations.get(&schema.id).copied().unwrap_or_default();
        let table = Table::new(id, schema, before, self.limits.change_log);
        let replaced = self.published.write().tables.insert(id.relation, table);
        drop(writer);
        drop((void, replaced));
        Ok(id)
    }

    /// Puts a finished copy in place: `version` holds the rows that `copied_at` sees, `insert_lsn` is
    /// `pg_current_wal_insert_lsn()` read in the same statement as the snapshot or after it. Transactions received since
    /// [`Self::start_copy`] are applied unless `copied_at` sees them. An error: the table was poisoned meanwhile, or
    /// another copy begun. Takes as long as these changes do, but holds no lock for long.
    pub fn finish_copy(
        &self,
        copy: CopyId,
        version: TableVersion,
        copied_at: VisibilitySnapshot,
        insert_lsn: Lsn,
    ) -> Result<(), UpstreamReason> {
        self.finish(copy, Ok(version), copied_at, insert_lsn)
    }

    /// Like [`Self::finish_copy`] without rows, for the reason given: the table becomes tracked from `since` on.
    pub fn finish_tracked(
        &self,
        copy: CopyId,
        why: TrackedBecause,
        since: VisibilitySnapshot,
        insert_lsn: Lsn,
    ) -> Result<(), UpstreamReason> {
        self.finish(copy, Err(why), since, insert_lsn)
    }

    fn finish(
        &self,
        copy: CopyId,
        copied: Result<TableVersion, TrackedBecause>,
        copied_at: VisibilitySnapshot,
        insert_lsn: Lsn,
    ) -> Result<(), UpstreamReason> {
        let mut catch_up = self.begin_catching_up(copy)?;
        catch_up.start(copied, copied_at, insert_lsn);
        // Each round takes what has come during the one before, which is less and less.
        for _ in 0..catch_up::ROUNDS_MAX {
            let Some(transactions) = self.next_round(copy, &catch_up)? else { break };
            catch_up.apply(transactions);
        }
        self.place(copy, catch_up)
    }

    fn begin_catching_up(&self, copy: CopyId) -> Result<CatchUp, UpstreamReason> {
        let writer = self.writer.lock();
        if !writer.is_begun(copy) {
            return Err(self.not_copied(copy.relation));
        }
        let Some((schema, before)) = self.published.read().identity_of(copy.relation) else {
            return Err(UpstreamReason::TableNotMirrored("forgotten".into()));
        };
        Ok(CatchUp::new(Table::new(copy, schema, before, self.limits.change_log), &self.limits))
    }

    /// What has been received so far. None: so little that it may be applied while the stream waits.
    fn next_round(
        &self,
        copy: CopyId,
        catch_up: &CatchUp,
    ) -> Result<Option<Vec<(Stamp, TableChanges)>>, UpstreamReason> {
        let mut writer = self.writer.lock();
        let buffer = writer.buffers.get_mut(&copy.relation).filter(|buffer| buffer.id == copy);
        let Some(buffer) = buffer else { return Err(self.not_copied(copy.relation)) };
        let transactions = catch_up.take(buffer);
        self.note_buffered(&writer);
        Ok(transactions)
    }

    /// The last round and the swap: with `writer` held nothing more is received, so that readers see the copy only with everything
    /// applied to it that [`Self::applied`] covers.
    fn place(&self, copy: CopyId, catch_up: CatchUp) -> Result<(), UpstreamReason> {
        let mut writer = self.writer.lock();
        if !writer.is_begun(copy) {
            return Err(self.not_copied(copy.relation));
        }
        let rest = writer.buffers.remove(&copy.relation).map(|buffer| buffer.transactions).unwrap_or_default();
        self.note_buffered(&writer);
        let table = catch_up.finish(rest);
        writer.generations.insert(copy.relation, table.generation);
        let outcome = if table.history.is_empty() { Err(table.reason()) } else { Ok(()) };
        let replaced = self.published.write().tables.insert(copy.relation, table);
        let demoted = self.demote_over_cap();
        drop(writer);
        drop((replaced, demoted));
        outcome
    }

    /// Applies a transaction, in the order of the stream. One received again after a reconnection is ignored.
    pub fn apply(&self, transaction: UpstreamTransaction) {
        let mut writer = self.writer.lock();
        if transaction.end_lsn <= self.applied() {
            return;
        }
        let stamp = Stamp { xid: transaction.xid, commit_lsn: transaction.commit_lsn };
        let (mut made, mut freed) = (Vec::new(), Freed::default());
        for changes in transaction.tables {
            made.extend(self.make(&mut writer, stamp, changes, &mut freed));
        }
        let waiting = made.iter().map(|(_, outcome)| outcome.waiting_bytes());
        // Of what comes to wait the cap need not be asked each time.
        let has_other = waiting.clone().any(|bytes| bytes.is_none());
        writer.uncounted += waiting.flatten().sum::<usize>();
        let is_due = has_other || writer.uncounted > UNCOUNTED_BYTES;
        freed.add(self.publish(made, Some(transaction.end_lsn)));
        if is_due {
            writer.uncounted = 0;
            freed.add(self.demote_over_cap());
        }
        drop(writer);
        drop(freed);
    }

    /// A keepalive: everything up to `lsn` has been received.
    pub fn advance(&self, lsn: Lsn) {
        let _writer = self.writer.lock();
        let mut published = self.published.write();
        published.applied = published.applied.max(lsn);
    }

    /// Everything up to here has been applied.
    pub fn applied(&self) -> Lsn {
        self.published.read().applied
    }

    /// The tables as `visible` sees them, tracked ones without their rows. `required`: what must have been applied, so that every
    /// transaction that `visible` sees has been received. A table whose schema in `catalog` is not the one it was copied by is refused
    /// (equal schemas are recognised fastest if a new catalog keeps the old one's `Arc`s).
    pub fn snapshot_at(
        &self,
        visible: &VisibilitySnapshot,
        required: Lsn,
        relations: &[RelationId],
        catalog: &Arc<Catalog>,
    ) -> Result<Snapshot, UpstreamReason> {
        if self.applied() < required {
            return Err(UpstreamReason::MirrorBehind("the stream has not arrived there".into()));
        }
        drop(self.settle_for(visible, relations));
        let published = self.published.read();
        let mut tables = HashMap::with_capacity(relations.len());
        let mut tracked = HashMap::new();
        for relation in relations {
            let table = published.with_versions(*relation)?;
            let version = table.version_at(visible)?;
            if !catalog
                .tables
                .get(relation)
                .is_some_and(|schema| Arc::ptr_eq(schema, &table.schema) || *schema == table.schema)
            {
                return Err(UpstreamReason::TableNotMirrored("its schema has changed".into()));
            }
            match &version.rows {
                Some(rows) => drop(tables.insert(*relation, Arc::clone(rows))),
                None => drop(tracked.insert(*relation, version.generation)),
            }
        }
        Ok(Snapshot { applied: published.applied, catalog: Arc::clone(catalog), tables, tracked })
    }

    /// Whether `snapshot` has the newest version of each of these tables that are no union of others.
    pub fn is_newest(&self, snapshot: &Snapshot, relations: &[RelationId]) -> bool {
        let published = self.published.read();
        let mut tables = relations.iter().filter(|relation| !snapshot.catalog.is_derived(**relation));
        tables.all(|relation| {
            let table = published.tables.get(relation).filter(|table| table.waiting.is_empty());
            let newest = table.and_then(|table| table.history.back());
            newest.is_some_and(|newest| match (&newest.rows, snapshot.tables.get(relation)) {
                (Some(newest), Some(shown)) => Arc::ptr_eq(newest, shown),
                (None, None) => snapshot.tracked.get(relation) == Some(&newest.generation),
                (Some(_), None) | (None, Some(_)) => false,
            })
        })
    }

    /// Why one of these tables is tracked; None if none is.
    pub fn tracked_because(&self, relations: &[RelationId]) -> Option<TrackedBecause> {
        let published = self.published.read();
        relations.iter().find_map(|relation| match &published.tables.get(relation)?.state {
            TableState::Tracked(why) => Some(why.clone()),
            TableState::Copying | TableState::Mirrored | TableState::Poisoned(_) => None,
        })
    }

    /// How much each table is asked for, by any measure; what is not named is not asked for. Divided by its bytes it tells which
    /// one goes first where there is not enough room.
    pub fn set_weights(&self, weights: HashMap<RelationId, f64>) {
        self.published.write().weights = weights;
    }

    /// Whether transactions have been applied that `visible` does not see.
    pub fn pending_after(&self, visible: &VisibilitySnapshot) -> bool {
        let published = self.published.read();
        let has_unseen = |table: &Table| {
            !table.waiting.is_all_seen_by(visible) || table.history.iter().any(|version| !version.is_seen_by(visible))
        };
        published.tables.values().any(has_unseen)
    }

    /// Forgets versions that no reader needs any more, once every later reader sees what `visible` sees. A reader with
    /// an older snapshot is refused from then on.
    pub fn retire(&self, visible: &VisibilitySnapshot) {
        let is_due = |table: &Table| table.history.get(1).is_some_and(|version| version.is_seen_by(visible));
        if !self.published.read().tables.values().any(is_due) {
            return;
        }
        let mut retired = Vec::new();
        let floor = Arc::new(visible.clone());
        let mut published = self.published.write();
        for table in published.tables.values_mut() {
            let seen = table.history.iter().take_while(|version| version.is_seen_by(visible)).count();
            if seen > 1 && visible.sees_all_of(&table.floor) {
                retired.extend(table.history.drain(..seen - 1));
                table.floor = Arc::clone(&floor);
                if let Some(base) = table.history.front_mut() {
                    base.xids = Vec::new();
                }
            }
        }
        // Freeing rows takes time that readers need not wait for.
        drop(published);
        drop(retired);
    }

    /// The changes of a table after one generation, up to another; None if they are not all known.
    pub fn changes_between(
        &self,
        relation: RelationId,
        after: Generation,
        through: Generation,
    ) -> Option<Vec<Arc<RowChanges>>> {
        let published = self.published.read();
        let changes = published.tables.get(&relation)?.change_log.since(after)?;
        Some(changes.take_while(|changes| changes.generation <= through).cloned().collect())
    }

    /// The table can no longer be followed.
    pub fn poison(&self, relation: RelationId, why: impl Into<PoisonReason>) -> Freed {
        let mut writer = self.writer.lock();
        let kept = writer.buffers.remove(&relation);
        self.note_buffered(&writer);
        let mut freed = self.publish([(relation, Outcome::Poison(why.into()))], None);
        freed.kept.extend(kept);
        freed
    }

    /// The tables are no longer wanted; their changes are ignored.
    pub fn forget(&self, relations: &[RelationId]) -> Freed {
        if relations.is_empty() {
            return Freed::default();
        }
        self.forget_if(relations, |_| true)
    }

    /// Likewise that of this copy, whatever has become of it, unless another has been begun.
    pub fn give_up(&self, copy: CopyId) -> Freed {
        self.forget_if(&[copy.relation], |current| current == copy)
    }

    fn forget_if(&self, relations: &[RelationId], is_meant: impl Fn(CopyId) -> bool) -> Freed {
        let mut freed = Freed::default();
        let mut writer = self.writer.lock();
        let mut published = self.published.write();
        for relation in relations {
            if published.tables.get(relation).is_none_or(|table| !is_meant(table.copy)) {
                continue;
            }
            freed.kept.extend(writer.buffers.remove(relation));
            freed.tables.extend(published.tables.remove(relation));
            writer.bindings.0.remove(relation);
        }
        self.note_buffered(&writer);
        freed
    }

    /// Why this copy can no longer be finished. None: it can, its changes are kept.
    pub fn given_up_because(&self, copy: CopyId) -> Option<UpstreamReason> {
        match self.published.read().tables.get(&copy.relation).filter(|table| table.copy == copy) {
            Some(table) if table.state == TableState::Copying => None,
            Some(table) => Some(table.reason()),
            None => Some(UpstreamReason::TableNotMirrored("forgotten".into())),
        }
    }

    /// The stream is lost, and with it everything built on it.
    pub fn clear(&self) -> Freed {
        let mut writer = self.writer.lock();
        let kept = writer.buffers.drain().map(|(_, buffer)| buffer).collect();
        self.note_buffered(&writer);
        writer.bindings = Bindings::default();
        let mut published = self.published.write();
        let weights = std::mem::take(&mut published.weights);
        let cleared = std::mem::replace(&mut *published, Published { weights, ..Published::default() });
        Freed { tables: cleared.tables.into_values().collect(), kept, ..Freed::default() }
    }

    /// Gives up the tables' rows, keeping their generations.
    pub fn demote(&self, relations: &[RelationId], why: &TrackedBecause) -> Freed {
        let mut freed = Freed::default();
        if relations.is_empty() {
            return freed;
        }
        let _writer = self.writer.lock();
        let mut published = self.published.write();
        for relation in relations {
            freed.rows.extend(
                published.tables.get_mut(relation).map(|table| table.demote(why.clone())).into_iter().flatten(),
            );
        }
        freed
    }

    /// Counts the tables' bytes anew, and keeps to the cap: what reads have made beside the rows (indexes, sketches) counts, too.
    pub fn recount(&self) -> Freed {
        let published = self.published.read();
        let heads =
            published.tables.iter().filter_map(|(relation, table)| Some((*relation, Arc::clone(table.head()?))));
        let heads: Vec<_> = heads.collect();
        drop(published);
        let bytes: Vec<usize> = heads.iter().map(|(_, head)| head.bytes()).collect();
        let mut published = self.published.write();
        for ((relation, head), bytes) in heads.iter().zip(bytes) {
            // A newer version was counted when it was made.
            let table = published.tables.get_mut(relation);
            if let Some(table) = table.filter(|table| table.head().is_some_and(|now| Arc::ptr_eq(now, head))) {
                table.bytes = bytes;
            }
        }
        let is_over = published.bytes() > self.limits.bytes_max;
        drop(published);
        let mut freed = Freed::default();
        if is_over {
            let writer = self.writer.lock();
            freed = self.demote_over_cap();
            drop(writer);
        }
        // They may have been let go of meanwhile.
        freed.rows.extend(heads.into_iter().map(|(_, head)| head).filter(|head| Arc::strong_count(head) == 1));
        freed
    }

    /// The state of one table; None if the mirror knows nothing of it.
    pub fn state(&self, relation: RelationId) -> Option<TableState> {
        Some(self.published.read().tables.get(&relation)?.state.clone())
    }

    /// Resident estimate of the newest versions of all tables and of what is kept for running copies.
    pub fn bytes(&self) -> usize {
        self.buffered_bytes.load(Ordering::Relaxed) + self.published.read().bytes()
    }

    /// What is left under the memory cap.
    pub fn room(&self) -> usize {
        self.limits.bytes_max.saturating_sub(self.bytes())
    }

    fn not_copied(&self, relation: RelationId) -> UpstreamReason {
        match self.published.read().with_versions(relation) {
            Err(reason) => reason,
            Ok(_) => UpstreamReason::TableNotMirrored("not being copied".into()),
        }
    }

    /// How much a copy that keeps `kept` bytes of changes may keep: its share, or what else is left under the cap. A little always, so
    /// that a table without rows here finds its place beside those that take all the room.
    fn room_to_keep(&self, kept: usize) -> usize {
        let left = self.room() + kept;
        left.max(self.limits.bytes_max / 64).min(self.limits.copy_buffer_bytes_max)
    }

    fn note_buffered(&self, writer: &Writer) {
        let bytes = writer.buffers.values().map(|buffer| buffer.bytes).sum();
        self.buffered_bytes.store(bytes, Ordering::Relaxed);
    }

    /// What one transaction makes of one table; None if the changes do not concern it (any more).
    fn make(
        &self,
        writer: &mut Writer,
        stamp: Stamp,
        changes: TableChanges,
        freed: &mut Freed,
    ) -> Option<(RelationId, Outcome)> {
        let relation = changes.relation;
        if let Some(buffer) = writer.buffers.get_mut(&relation) {
            let given_up = buffer.keep(stamp, changes, self.room_to_keep(buffer.bytes));
            if given_up.is_some() {
                writer.buffers.remove(&relation);
            }
            self.note_buffered(writer);
            return given_up.map(|why| (relation, Outcome::Poison(why)));
        }
        Some((relation, self.make_of_known(writer, stamp, changes, freed)?))
    }

    /// Puts what one transaction made in place, all at once.
    fn publish(&self, made: impl IntoIterator<Item = (RelationId, Outcome)>, applied: Option<Lsn>) -> Freed {
        let mut freed = Freed::default();
        let mut published = self.published.write();
        for (relation, outcome) in made {
            if let Some(table) = published.tables.get_mut(&relation) {
                let displaced = table.take(outcome, self.limits.versions_max);
                freed.rows.extend(displaced.into_iter().filter_map(|version| version.rows));
            }
        }
        if let Some(applied) = applied {
            published.applied = published.applied.max(applied);
        }
        freed
    }

    /// Makes tables tracked until the rest is under the cap, those with the fewest reads per byte first. `writer` is held.
    fn demote_over_cap(&self) -> Freed {
        let mut freed = Freed::default();
        if self.published.read().bytes() <= self.limits.bytes_max {
            return freed;
        }
        let mut published = self.published.write();
        while published.bytes() > self.limits.bytes_max {
            let Some(victim) = published.least_wanted() else { break };
            let demoted = published.tables.get_mut(&victim).map(|table| table.demote(TrackedBecause::LacksRoom));
            freed.rows.extend(demoted.into_iter().flatten());
        }
        freed
    }
}

impl Freed {
    pub fn add(&mut self, other: Self) {
        self.tables.extend(other.tables);
        self.rows.extend(other.rows);
        self.kept.extend(other.kept);
        self.waited.extend(other.waited);
    }

    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.rows.is_empty() && self.kept.is_empty() && self.waited.is_empty()
    }
}

/// By what tables are compared where not all have room. `weight`: see [`Mirror::set_weights`].
pub fn reads_per_byte(weight: f64, bytes: usize) -> f64 {
    weight / bytes.max(1) as f64
}

/// Whether a table can be mirrored at all.
fn admit(schema: &TableSchema) -> Result<(), UpstreamReason> {
    match &schema.identity {
        ReplicaIdentity::Nothing => Err(UpstreamReason::TableNotMirrored("no replica identity".into())),
        ReplicaIdentity::Full => Ok(()),
        ReplicaIdentity::Key(key) => match key.iter().find(|column| schema.columns[**column].pg_type.is_none()) {
            Some(column) => {
                let name = &schema.columns[*column].name;
                Err(UpstreamReason::TableNotMirrored(format!("identity column \"{name}\" is not mirrored").into()))
            }
            None => Ok(()),
        },
    }
}

impl Writer {
    /// The copy is the one whose changes are kept.
    fn is_begun(&self, copy: CopyId) -> bool {
        self.buffers.get(&copy.relation).is_some_and(|buffer| buffer.id == copy)
    }
}

impl Handover {
    fn contains(&self, stamp: Stamp) -> bool {
        stamp.commit_lsn < self.insert_lsn && self.copied_at.sees(self.copied_at.widen(stamp.xid))
    }
}

impl Generation {
    /// The generation that a transaction makes of a table at this one.
    fn next(self, commit_lsn: Lsn) -> Self {
        self.max(Self(Lsn(commit_lsn.0.saturating_sub(1)))).successor()
    }

    fn successor(self) -> Self {
        Self(Lsn(self.0.0 + 1))
    }
}

impl CopyBuffer {
    /// Returns why the copy must be given up, if it must.
    fn keep(&mut self, stamp: Stamp, changes: TableChanges, bytes_max: usize) -> Option<PoisonReason> {
        if let Some(why) = changes.lost {
            return Some(why.into());
        }
        self.bytes += changes.bytes();
        self.transactions.push((stamp, changes));
        (self.bytes > bytes_max).then(|| "too many changes while it was copied".into())
    }
}

impl Published {
    /// A table that has versions.
    fn with_versions(&self, relation: RelationId) -> Result<&Table, UpstreamReason> {
        match self.tables.get(&relation) {
            None => Err(UpstreamReason::TableNotMirrored("not mirrored".into())),
            Some(table) if table.history.is_empty() => Err(table.reason()),
            Some(table) => Ok(table),
        }
    }

    fn identity_of(&self, relation: RelationId) -> Option<(Arc<TableSchema>, Generation)> {
        let table = self.tables.get(&relation)?;
        Some((Arc::clone(&table.schema), table.generation))
    }

    fn bytes(&self) -> usize {
        self.tables.values().map(|table| table.bytes + table.waiting.bytes() + table.change_log.bytes()).sum()
    }

    /// The mirrored table with the fewest reads per byte; of equal ones the largest.
    fn least_wanted(&self) -> Option<RelationId> {
        let mirrored = self.tables.iter().filter(|(_, table)| table.state == TableState::Mirrored);
        let scored = mirrored.map(|(relation, table)| {
            let weight = self.weights.get(relation).copied().unwrap_or(0.0);
            (*relation, reads_per_byte(weight, table.bytes), table.bytes)
        });
        scored.min_by(|a, b| a.1.total_cmp(&b.1).then(b.2.cmp(&a.2))).map(|(relation, ..)| relation)
    }
}

impl Table {
    fn new(copy: CopyId, schema: Arc<TableSchema>, generation: Generation, change_log: ChangeLogLimits) -> Self {
        Self {
            copy,
            schema,
            state: TableState::Copying,
            floor: Arc::default(),
            history: VecDeque::new(),
            waiting: Waiting::default(),
            handover: None,
            generation,
            change_log: ChangeLog::new(change_log, generation),
            bytes: 0,
            bytes_once: 0,
        }
    }

    fn head(&self) -> Option<&Arc<TableVersion>> {
        self.history.back()?.rows.as_ref()
    }

    /// Why it cannot be read.
    fn reason(&self) -> UpstreamReason {
        UpstreamReason::TableNotMirrored(match &self.state {
            TableState::Copying => "being copied".into(),
            TableState::Mirrored => "no version".into(),
            TableState::Tracked(why) => format!("tracked only: {why}").into(),
            TableState::Poisoned(why) => why.clone(),
        })
    }

    /// The version after the leading transactions that `visible` sees, if it sees none after them.
    fn version_at(&self, visible: &VisibilitySnapshot) -> Result<&Version, UpstreamReason> {
        if is_planted(Bug::ServeHead) {
            return self.history.back().ok_or(UpstreamReason::NotAPrefix);
        }
        if !visible.sees_all_of(&self.floor) {
            return Err(UpstreamReason::NotAPrefix);
        }
        let seen = self.history.iter().skip(1).take_while(|version| version.is_seen_by(visible)).count();
        let mut later = self.history.iter().skip(1 + seen);
        if later.any(|version| version.is_touched_by(visible)) || self.waiting.is_touched_by(visible) {
            return Err(UpstreamReason::NotAPrefix);
        }
        self.history.get(seen).ok_or(UpstreamReason::NotAPrefix)
    }

    fn tip(&self) -> Tip {
        Tip {
            schema: Arc::clone(&self.schema),
            generation: self.generation,
            handover: self.handover.clone(),
            rows: self.history.back().map(|version| version.rows.clone()),
        }
    }

    /// Begins the history with a first copy, or with nothing but the generation.
    fn start(&mut self, copied: Result<TableVersion, TrackedBecause>, copied_at: VisibilitySnapshot, insert_lsn: Lsn) {
        let generation = self.generation.next(insert_lsn);
        let copied_at = Arc::new(copied_at);
        self.bytes = copied.as_ref().map_or(0, TableVersion::bytes);
        let schema = Arc::clone(&self.schema);
        let key_changes = Some(Arc::new(KeyChanges::new(generation)));
        let rows;
        (self.state, rows) = match copied {
            Ok(copied) => {
                (TableState::Mirrored, Some(Arc::new(TableVersion { schema, generation, key_changes, ..copied })))
            }
            Err(why) => (TableState::Tracked(why), None),
        };
        self.floor = Arc::clone(&copied_at);
        self.handover = Some(Handover { copied_at, insert_lsn });
        self.generation = generation;
        self.change_log.skip_to(generation);
        self.history = VecDeque::from([Version { xids: Vec::new(), generation, rows }]);
    }

    /// Returns the versions that are no longer needed.
    fn take(&mut self, outcome: Outcome, versions_max: usize) -> Vec<Version> {
        match outcome {
            Outcome::Poison(why) => self.poison(why),
            Outcome::Waits(waited) => {
                self.generation = waited.generation;
                self.waiting.push(waited);
                Vec::new()
            }
            Outcome::Version { version, logged, bytes, settled } => {
                self.bytes = bytes;
                self.waiting.drop_first(settled);
                self.push(version, logged, versions_max)
            }
        }
    }

    /// Appends a version; returns those that it displaces.
    fn push(&mut self, version: Version, logged: Option<RowChanges>, versions_max: usize) -> Vec<Version> {
        self.generation = self.generation.max(version.generation);
        match logged {
            Some(changes) => self.change_log.push(changes),
            None => self.change_log.skip_to(version.generation),
        }
        self.history.push_back(version);
        if self.history.len() > versions_max.max(4) { self.put_together() } else { Vec::new() }
    }

    /// Puts the older half of the transactions into one version: a reader that sees some of them but not all is refused.
    fn put_together(&mut self) -> Vec<Version> {
        let end = self.history.len() / 2;
        let mut displaced: Vec<Version> = self.history.drain(1..end).collect();
        if let Some(kept) = self.history.get_mut(1) {
            for version in &mut displaced {
                kept.xids.append(&mut version.xids);
            }
        }
        displaced
    }

    fn poison(&mut self, why: PoisonReason) -> Vec<Version> {
        self.state = TableState::Poisoned(why);
        self.bytes = 0;
        self.waiting.clear();
        self.change_log.skip_to(self.generation);
        self.history.drain(..).collect()
    }

    fn demote(&mut self, why: TrackedBecause) -> Vec<Arc<TableVersion>> {
        if self.state != TableState::Mirrored {
            return Vec::new();
        }
        self.state = TableState::Tracked(why);
        self.bytes_once = std::mem::take(&mut self.bytes);
        self.change_log.skip_to(self.generation);
        let rows = self.history.iter_mut().filter_map(|version| version.rows.take()).collect();
        self.history.extend(std::mem::take(&mut self.waiting).into_tracked());
        rows
    }
}

impl Version {
    /// All its transactions are visible.
    fn is_seen_by(&self, visible: &VisibilitySnapshot) -> bool {
        self.xids.iter().all(|xid| visible.sees(visible.widen(*xid)))
    }

    /// Some of its transactions are visible.
    fn is_touched_by(&self, visible: &VisibilitySnapshot) -> bool {
        self.xids.iter().any(|xid| visible.sees(visible.widen(*xid)))
    }
}
