//! Whether a kept reply outlives the changes of its tables: their row images are held against what it has read of them.
//!
//! Exact in one direction: a reply that outlives is the answer at the new generations too; one that does not may still have
//! been.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::entry::CachedReply;
use crate::catalog::RelationId;
use crate::catalog::functions::EvalContext;
use crate::change_log::RowChanges;
use crate::executor::bound::Top;
use crate::executor::changes::ScanTest;
use crate::planner::node::Scan;
use crate::snapshot::Snapshot;
use crate::table::Generation;
use crate::types::FormatSettings;

/// Why a kept reply is of no use (any more).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outdated {
    /// Another catalog, or a table that is not mirrored now.
    Catalog,
    /// The reader's moment is before the reply's.
    Earlier,
    /// Rows changed that it may have read.
    Rows,
    /// More changed than is remembered, or not row by row.
    LogEnded,
    /// So much changed that computing it anew is no more work than looking.
    TooManyChanges,
    /// It is not known what it has read of its tables.
    Unread,
}

impl Outdated {
    pub const ALL: [Self; 6] =
        [Self::Catalog, Self::Earlier, Self::Rows, Self::LogEnded, Self::TooManyChanges, Self::Unread];

    /// As metric labels and `freshet.statements` have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Earlier => "earlier",
            Self::Rows => "rows",
            Self::LogEnded => "log_ended",
            Self::TooManyChanges => "many_changes",
            Self::Unread => "tables",
        }
    }
}

/// The changes of a table after one generation, up to another; None: not known. As the mirror tells it.
pub type ChangesBetween<'c> = dyn Fn(RelationId, Generation, Generation) -> Option<Vec<Arc<RowChanges>>> + 'c;

/// Transactions held against a reply for nothing; beyond, as many as would take about as long as to compute it anew.
const CHANGES_FREE: u64 = 256;
const CHANGES_PER_MICROSECOND: u64 = 4;

impl CachedReply {
    /// Whether the reply, which is not valid at `snapshot` as it is, is the answer there nevertheless; then it is valid there
    /// from now on. `settings`: the reader's, which are the reply's.
    pub fn outlives(
        &self,
        snapshot: &Snapshot,
        changes_between: &ChangesBetween<'_>,
        settings: &FormatSettings,
    ) -> Result<(), Outdated> {
        // A slip that panics ends a kept reply, not a session: predicates are computed here.
        catch_unwind(AssertUnwindSafe(|| self.hold_against(snapshot, changes_between, settings)))
            .unwrap_or(Err(Outdated::Rows))
    }

    fn hold_against(
        &self,
        snapshot: &Snapshot,
        changes_between: &ChangesBetween<'_>,
        settings: &FormatSettings,
    ) -> Result<(), Outdated> {
        if snapshot.catalog.version != self.catalog_version {
            return Err(Outdated::Catalog);
        }
        let reads = self.reads.as_ref().ok_or(Outdated::Unread)?;
        let mut changes_max = CHANGES_FREE + CHANGES_PER_MICROSECOND * self.elapsed_us;
        for (at, (table, known)) in self.basis.iter().enumerate() {
            let now = snapshot.generation(table).ok_or(Outdated::Catalog)?;
            if now == known {
                continue;
            }
            if now < known {
                return Err(Outdated::Earlier);
            }
            let version = snapshot.tables.get(&table);
            if version.is_some_and(|version| self.is_untouched_in(table, version, known)) {
                self.basis.advance(at, now);
                continue;
            }
            let changes = changes_between(table, known, now).ok_or(Outdated::LogEnded)?;
            let changes: Vec<&RowChanges> = changes.iter().map(|changes| &**changes).collect();
            // Or the log is another's than the snapshot.
            if changes.last().is_none_or(|last| last.generation != now) {
                return Err(Outdated::LogEnded);
            }
            changes_max = changes_max.checked_sub(changes.len() as u64).ok_or(Outdated::TooManyChanges)?;
            for (number, scan) in reads.scans.iter().enumerate() {
                let top = reads.top.as_ref().filter(|top| top.scan == number);
                let is_unmoved = match columns_read(scan, table, snapshot) {
                    Some(columns) => self.is_unmoved(scan, top, &changes, columns, snapshot, settings),
                    None => true,
                };
                if !is_unmoved {
                    return Err(Outdated::Rows);
                }
            }
            self.basis.advance(at, now);
        }
        Ok(())
    }

    fn is_unmoved(
        &self,
        scan: &Scan,
        top: Option<&Top>,
        changes: &[&RowChanges],
        columns: Option<&[usize]>,
        snapshot: &Snapshot,
        settings: &FormatSettings,
    ) -> bool {
        let orders = snapshot.catalog.orders.view();
        let context = EvalContext { settings, transaction_time: None, orders: Some(&orders) };
        let test = ScanTest::new(scan, &self.parameters, &context);
        let test = test.map(|test| match top {
            Some(top) if self.last != u64::MAX => test.up_to(top, self.last),
            _ => test,
        });
        let is_unmoved = test.and_then(|test| test.is_unmoved(changes, columns)).unwrap_or(false);
        // Nobody knows the order of a text: it was computed with none.
        is_unmoved && orders.into_missing().is_none()
    }
}

/// Whether the scan reads `table`, itself or as a partition; then Some(its column for each of the scan's table, if those are
/// not the same).
fn columns_read<'s>(scan: &Scan, table: RelationId, snapshot: &'s Snapshot) -> Option<Option<&'s [usize]>> {
    if scan.table == table {
        return Some(None);
    }
    let leaves = &snapshot.catalog.partitioned.get(&scan.table)?.leaves;
    leaves.iter().find(|leaf| leaf.table == table).map(|leaf| Some(&leaf.columns[..]))
}
