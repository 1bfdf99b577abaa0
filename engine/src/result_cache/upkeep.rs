//! [`Upkept`]: groups kept beside a reply, so that the next one can be had from the changes since; whether that is possible and worth it.

use std::any::Any;
use std::sync::{Arc, Weak};

use super::entry::CachedReply;
use super::revalidate::ChangesBetween;
use crate::catalog::RelationId;
use crate::executor::upkeep::{KeptGroups, TableChanges};
use crate::planner::Plan;
use crate::planner::node::Scan;
use crate::planner::upkeep::Upkeep;
use crate::snapshot::Snapshot;
use crate::table::Generation;

/// What takes less to compute, in microseconds, is computed.
const ELAPSED_US_MIN: u64 = 500;
/// What groups may take beside one reply.
const BYTES_MAX: usize = 1 << 20;
/// Of a table's rows, so many may have changed: one in this many.
const ROWS_PER_CHANGE: usize = 8;
/// Computed from all rows and compared, once in so many updates.
const UPDATES_PER_CHECK: u32 = 64;
/// After so many updates that did not pay, so many replies are computed without keeping groups.
const SLOW_MAX: u8 = 3;
const REST: u32 = 64;

/// A plan, the version of the catalog that it was made with, and what holds it.
pub struct HeldPlan<'p> {
    pub plan: &'p Plan,
    pub catalog_version: u64,
    /// As long as this is there, no other plan has its address.
    pub holder: Weak<dyn Any + Send + Sync>,
}

/// The groups of a reply, and how their upkeep has gone.
#[derive(Debug)]
pub struct Upkept {
    /// Of the plan whose aggregate has these groups.
    holder: Weak<dyn Any + Send + Sync>,
    table: RelationId,
    groups: KeptGroups,
    /// What it took to compute them from all rows, in microseconds.
    anew_us: u64,
    updates: u32,
    /// Updates in a row that took more than half of that.
    slow: u8,
}

/// How the reply after an outdated one is to be computed.
#[derive(Debug)]
pub enum Course {
    Anew,
    /// From all rows, keeping the groups.
    Keeping(Box<Upkeep>),
    Updating {
        upkeep: Box<Upkeep>,
        kept: Arc<Upkept>,
        changes: Vec<TableChanges>,
    },
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Anew,
    /// The groups could not be kept or brought up to date.
    Unable,
    Kept,
    Updated,
    /// Computed both ways, to the same groups.
    Checked,
    /// Computed both ways, and they differ: the answer is the one from all rows.
    Wrong,
}

/// What to keep beside the next reply.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    pub upkept: Option<Arc<Upkept>>,
    /// So many replies are to be computed without keeping groups.
    pub rest: u32,
}

impl Upkept {
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.groups.bytes()
    }

    pub fn groups(&self) -> &KeptGroups {
        &self.groups
    }

    /// Whether this update is to be held against all rows.
    pub fn is_to_be_checked(&self) -> bool {
        self.updates % UPDATES_PER_CHECK == UPDATES_PER_CHECK - 1
    }
}

impl Keep {
    /// After a reply of that course; `elapsed_us`: what it took to compute.
    pub fn after(
        course: &Course,
        done: Done,
        groups: Option<KeptGroups>,
        held: &HeldPlan<'_>,
        elapsed_us: u64,
        rest: u32,
    ) -> Self {
        let (table, before) = match course {
            Course::Anew => return Self { upkept: None, rest: rest.saturating_sub(1) },
            Course::Keeping(upkeep) => (upkeep.table, None),
            Course::Updating { upkeep, kept, .. } => (upkeep.table, Some(kept)),
        };
        let Some(groups) = groups.filter(|groups| groups.bytes() <= BYTES_MAX) else {
            return Self { upkept: None, rest: REST };
        };
        let (anew_us, updates, slow) = match (done, before) {
            (Done::Wrong, _) => return Self { upkept: None, rest: u32::MAX },
            (Done::Updated, Some(before)) => {
                let slow = if elapsed_us * 2 > before.anew_us { before.slow + 1 } else { 0 };
                (before.anew_us, before.updates + 1, slow)
            }
            (Done::Checked, Some(before)) => (before.anew_us, before.updates + 1, before.slow),
            (Done::Unable, Some(before)) => (elapsed_us, before.updates, before.slow + 1),
            (_, before) => (elapsed_us, before.map_or(0, |before| before.updates), 0),
        };
        if slow >= SLOW_MAX {
            return Self { upkept: None, rest: REST };
        }
        let upkept = Upkept { holder: Weak::clone(&held.holder), table, groups, anew_us, updates, slow };
        Self { upkept: Some(Arc::new(upkept)), rest: 0 }
    }
}

impl CachedReply {
    /// How the reply that takes this one's place is to be computed at `snapshot`.
    pub fn course(&self, held: &HeldPlan<'_>, snapshot: &Snapshot, changes_between: &ChangesBetween<'_>) -> Course {
        let is_of_catalog =
            self.catalog_version == held.catalog_version && self.catalog_version == snapshot.catalog.version;
        let is_worth_it = self.elapsed_us >= ELAPSED_US_MIN || self.keep.upkept.is_some();
        if !is_of_catalog || !is_worth_it || held.plan.uses_time || self.barrier != 0 || self.keep.rest > 0 {
            return Course::Anew;
        }
        let mut moved: Vec<Moved> = Vec::new();
        for (table, known) in self.basis.iter() {
            match snapshot.generation(table) {
                Some(now) if now == known => {}
                Some(now) if now > known => moved.push((table, known, now)),
                _ => return Course::Anew,
            }
        }
        if let Some(kept) = self.keep.upkept.as_ref().filter(|kept| kept.holder.ptr_eq(&held.holder))
            && let Some(upkeep) = upkeep(held.plan, kept.table, snapshot)
            && let Some(changes) = changes_of(&upkeep, &moved, snapshot, changes_between)
        {
            return Course::Updating { upkeep: Box::new(upkeep), kept: Arc::clone(kept), changes };
        }
        let tables = moved.iter().map(|(table, ..)| *table).collect::<Vec<_>>();
        keeping(held.plan, &tables, snapshot).map_or(Course::Anew, |upkeep| Course::Keeping(Box::new(upkeep)))
    }
}

/// A table, its generation when the reply was valid, and now.
type Moved = (RelationId, Generation, Generation);

/// The changes of the table that is kept up with, all of them. None: they are not known or not few, or another table below the aggregate
/// has changed, too.
fn changes_of(
    upkeep: &Upkeep,
    moved: &[Moved],
    snapshot: &Snapshot,
    changes_between: &ChangesBetween<'_>,
) -> Option<Vec<TableChanges>> {
    let mut all = Vec::new();
    for (table, known, now) in moved {
        if reads(upkeep.table, *table, snapshot) {
            let changes = changes_between(*table, *known, *now)?;
            // Or the log is another's than the snapshot.
            if changes.last().is_none_or(|last| last.generation != *now) {
                return None;
            }
            all.push((*table, changes));
        } else if upkeep.tables.iter().any(|of| reads(*of, *table, snapshot)) {
            return None;
        }
    }
    are_few(&all, upkeep.table, snapshot).then_some(all)
}

/// The changed table with the most rows, if an aggregate can be kept up with it.
fn keeping(plan: &Plan, changed: &[RelationId], snapshot: &Snapshot) -> Option<Upkeep> {
    let rows = |table: &RelationId| snapshot.tables.get(table).map_or(0, |version| version.rows);
    let scans = plan.scans();
    let is_changed = |table: &RelationId| changed.iter().any(|changed| reads(*table, *changed, snapshot));
    let table = scans.iter().map(|scan| scan.table).filter(is_changed).max_by_key(rows)?;
    let upkeep = upkeep(plan, table, snapshot)?;
    // Changes are joined with what is built of the other tables: of a small one, that would be more than all its rows.
    let others: usize = upkeep.tables.iter().filter(|other| **other != table).map(rows).sum();
    (others <= rows(&table)).then_some(upkeep)
}

fn upkeep(plan: &Plan, table: RelationId, snapshot: &Snapshot) -> Option<Upkeep> {
    let is_changed = |scan: &Scan| leaves(table, snapshot).iter().any(|leaf| reads(scan.table, *leaf, snapshot));
    Upkeep::of(plan, &is_changed).filter(|upkeep| upkeep.table == table)
}

/// Whether a scan of `of` reads the rows of `table`: it is that, or a partition of it.
fn reads(of: RelationId, table: RelationId, snapshot: &Snapshot) -> bool {
    leaves(of, snapshot).contains(&table)
}

fn leaves(table: RelationId, snapshot: &Snapshot) -> Vec<RelationId> {
    match snapshot.catalog.partitioned.get(&table) {
        Some(partitioned) => partitioned.leaves.iter().map(|leaf| leaf.table).collect(),
        None => vec![table],
    }
}

fn are_few(changes: &[TableChanges], table: RelationId, snapshot: &Snapshot) -> bool {
    let rows: usize = changes.iter().flat_map(|(_, changes)| changes).map(|changes| changes.rows()).sum();
    let all = snapshot.tables.get(&table).map_or(0, |version| version.rows);
    rows <= all / ROWS_PER_CHANGE
}
