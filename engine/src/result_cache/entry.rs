//! [`CachedReply`]: wire bytes without the transaction status, and what they depend on.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::keys::Keys;
use super::pieces::Pieces;
use super::reads::Reads;
use super::upkeep::Keep;
use crate::catalog::RelationId;
use crate::planted::{Bug, is_planted};
use crate::snapshot::Snapshot;
use crate::table::{Generation, TableVersion};
use crate::types::{Lsn, Value};

/// The frames of one statement's reply. Immutable, but for the generations that it is known to be valid for.
#[derive(Debug)]
pub struct CachedReply {
    /// The RowDescription frame, sent where the client asked for it. Empty: the reply has none.
    pub row_description: Bytes,
    /// All DataRow frames and CommandComplete.
    pub rows: Pieces,
    pub row_count: u64,
    /// The relations read: the tables, then the views.
    pub relations: Vec<RelationId>,
    pub basis: Basis,
    pub catalog_version: u64,
    /// A literal was read under TimeZone, DateStyle or IntervalStyle: not for statements parsed under others.
    pub folds_settings: bool,
    /// What it took to compute, in microseconds: what a hit saves.
    pub elapsed_us: u64,
    /// What of its tables it depends on; None: on everything in them.
    pub reads: Option<Arc<Reads>>,
    /// What of them counts as the reply's.
    pub share: Share,
    /// The code of the last row's first key, where those are as many rows as the statement wants of an order ([`Reads::top`]); else
    /// [`u64::MAX`].
    pub last: u64,
    /// The values that its predicates were computed with.
    pub parameters: Box<[Value]>,
    /// The keys that it depends on alone, of some of its tables.
    pub keys: Keys,
    /// Upstream's own reply, of a moment that is known only once a barrier of this number has shown the same generations; 0:
    /// computed here.
    pub barrier: u64,
    /// Of such a reply: how often upstream's configuration, which it was made under, had been seen to change.
    pub configuration: u64,
    /// Groups, to have the next reply from the changes since.
    pub keep: Keep,
    pub found: Found,
    /// A client has had it that did not compute it.
    pub repeated: Repeated,
    /// Of the shape that it was computed for.
    pub withdrawn: Withdrawn,
    /// What the maker keeps with the reply (its statistics); the cache does not look at it.
    pub attachment: Arc<dyn Any + Send + Sync>,
}

/// The tables that have the rows (of a partitioned one, its leaves) and the materialized views, each with the last generation
/// known to give the same rows.
///
/// They move on one by one: an answer is a function of what its scans let through, so that tables found unmoved at different
/// moments are the tables it was computed from.
#[derive(Debug, Default)]
pub struct Basis {
    tables: Box<[(RelationId, AtomicU64)]>,
}

impl Basis {
    /// Of a statement that reads `relations`, as they are in the snapshot: taken before the execution, or from what it ran on.
    pub fn of(relations: impl IntoIterator<Item = RelationId>, snapshot: &Snapshot) -> Self {
        let generation = |relation: &RelationId| snapshot.generation(*relation).map_or(0, |generation| generation.0.0);
        let mut tables = Vec::new();
        for relation in relations {
            match snapshot.catalog.partitioned.get(&relation) {
                Some(partitioned) => tables.extend(partitioned.leaves.iter().map(|leaf| leaf.table)),
                None => tables.push(relation),
            }
        }
        let tables = tables.into_iter().map(|table| (table, AtomicU64::new(generation(&table)))).collect();
        Self { tables }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (RelationId, Generation)> {
        self.tables.iter().map(|(relation, known)| (*relation, Generation(Lsn(known.load(Ordering::Relaxed)))))
    }

    /// The table gives the same rows at this generation, too.
    pub(super) fn advance(&self, at: usize, generation: Generation) {
        self.tables[at].1.fetch_max(generation.0.0, Ordering::Relaxed);
    }
}

const SHARES_MAX: usize = 32;

/// A reply's part of the bytes of what it has in common with others; it stays what it was when somebody asked first.
#[derive(Debug, Default)]
pub struct Share(OnceLock<usize>);

impl Share {
    /// Replies of one plan have one [`Reads`], and the plan, which has it too, may be forgotten long before them: the first counts all
    /// of it, the n-th an n-th, but not less than a [`SHARES_MAX`]th: those before it may go.
    fn of(&self, reads: &Arc<Reads>) -> usize {
        *self.0.get_or_init(|| reads.bytes / Arc::strong_count(reads).saturating_sub(1).clamp(1, SHARES_MAX))
    }
}

/// Whether a reply has been found since it was kept.
#[derive(Debug, Default)]
pub struct Found(AtomicBool);

impl Found {
    /// It is found now; whether that is the first time.
    pub(super) fn is_first(&self) -> bool {
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed)
    }
}

/// Whether a reply has been given to somebody since it was kept.
#[derive(Debug, Default)]
pub struct Repeated(AtomicBool);

impl Repeated {
    pub fn note(&self) {
        if !self.is_noted() {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    pub fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether the replies that were computed for a shape are to be given to nobody any more; shared by all of them, so that none
/// is missed that is kept only later.
#[derive(Clone, Debug, Default)]
pub struct Withdrawn(Arc<AtomicBool>);

impl Withdrawn {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl CachedReply {
    /// Whether a reader who must see `snapshot` may have this reply as it is: the same catalog, and no relation that was
    /// read has another generation.
    pub fn is_valid_at(&self, snapshot: &Snapshot) -> bool {
        snapshot.catalog.version == self.catalog_version
            && self.basis.iter().enumerate().all(|(at, (relation, generation))| {
                (at > 0 && is_planted(Bug::ForgetDependency)) || snapshot.generation(relation) == Some(generation)
            })
    }

    /// The generations that the reply's tables have in a snapshot of its catalog, for [`CachedReply::is_at`], in the place of what
    /// is in `generations`. They are none if there is no saying.
    pub fn generations_at(&self, snapshot: &Snapshot, generations: &mut Vec<(RelationId, Generation)>) {
        generations.clear();
        if snapshot.catalog.version != self.catalog_version {
            return;
        }
        for (relation, _) in self.basis.iter() {
            match snapshot.generation(relation) {
                Some(generation) => generations.push((relation, generation)),
                None => return generations.clear(),
            }
        }
    }

    /// Short for [`CachedReply::is_valid_at`] where the snapshot's generations are at hand, by another reply of
    /// `catalog_version` to the same tables. False: ask that.
    pub fn is_at(&self, generations: &[(RelationId, Generation)], catalog_version: u64) -> bool {
        !generations.is_empty()
            && catalog_version == self.catalog_version
            && self.basis.iter().eq(generations.iter().copied())
    }

    /// Whether the reply, which is not valid at `snapshot` as it is, is the answer there because no row with one of its keys has
    /// changed since; then it is valid there from now on. False: [`CachedReply::outlives`] may still say yes.
    pub fn is_untouched_at(&self, snapshot: &Snapshot) -> bool {
        !self.keys.is_empty()
            && snapshot.catalog.version == self.catalog_version
            && self.basis.iter().enumerate().all(|(at, (relation, known))| {
                let Some(version) = snapshot.tables.get(&relation) else { return false };
                let is_untouched = version.generation == known || self.is_untouched_in(relation, version, known);
                if is_untouched {
                    self.basis.advance(at, version.generation);
                }
                is_untouched
            })
    }

    /// Likewise of one of its tables, after generation `known`.
    pub(super) fn is_untouched_in(&self, table: RelationId, version: &TableVersion, known: Generation) -> bool {
        let Some(changes) = version.key_changes.as_ref().filter(|_| version.generation > known) else { return false };
        // One column is enough, of the primary key where there is one: a table follows few.
        self.keys.of_table(table).enumerate().any(|(at, of)| {
            let is_unchanged = changes.is_unchanged(of.column, &of.keys, known);
            if is_unchanged.is_none() && at == 0 {
                changes.follow(of.column, version.rows);
            }
            is_unchanged == Some(true)
        })
    }

    pub fn resident_bytes(&self) -> usize {
        let parameters = self.parameters.iter().map(|value| size_of::<Value>() + value.bytes()).sum::<usize>();
        let reads = self.reads.as_ref().map_or(0, |reads| self.share.of(reads));
        self.row_description.len()
            + self.rows.resident_bytes()
            + self.relations.len() * size_of::<RelationId>()
            + self.basis.tables.len() * size_of::<(RelationId, AtomicU64)>()
            + parameters
            + self.keys.bytes()
            + self.keep.upkept.as_ref().map_or(0, |upkept| upkept.bytes())
            + reads
    }
}
