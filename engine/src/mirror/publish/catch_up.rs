//! [`CatchUp`]: a first copy on its way into the mirror while the stream goes on.
//!
//! Every change received since the copy was begun is in exactly one of three places, which follow each other in the order of the
//! stream: applied here, in the round under way, in the copy's buffer. The table here is nobody else's yet, so that a round needs no
//! lock. Only the last round, which finds next to nothing, runs while the stream waits; under the same lock the table is then put in
//! place, so that it has everything that the mirror says it has applied. Whoever forgets, poisons or clears the table, or begins
//! another copy of it, takes the buffer away, which the next round notices: a table that misses a change is never put in place.
//!
//! What the rounds apply becomes one version above the copy's own: one version for each transaction costs more than the stream
//! brings meanwhile. Who sees some of these transactions but not all is refused, as where versions were put together. That
//! passes at once: nobody asks for the table before it is in place, and a barrier sent after that sees every transaction
//! acknowledged by then.

use std::sync::Arc;

use super::step::{Bindings, step};
use super::{CopyBuffer, MirrorLimits, Stamp, Table, TrackedBecause, Version};
use crate::change_log::ChangeLogLimits;
use crate::mirror::assemble::TableChanges;
use crate::snapshot::VisibilitySnapshot;
use crate::table::TableVersion;
use crate::types::Lsn;

/// Rounds before the rest is applied while the stream waits, however much that is.
pub(super) const ROUNDS_MAX: usize = 16;
/// What may be left for the last round.
const LAST_TRANSACTIONS: usize = 64;
const LAST_BYTES: usize = 64 * 1024;
/// Changes applied at a time: what is known of rows that are not in a chunk yet takes memory.
const TOGETHER_ROWS: usize = 65_536;

pub(super) struct CatchUp {
    table: Table,
    bindings: Bindings,
    change_log: ChangeLogLimits,
    versions_max: usize,
}

impl CatchUp {
    pub(super) fn new(table: Table, limits: &MirrorLimits) -> Self {
        let (change_log, versions_max) = (limits.change_log, limits.versions_max);
        Self { table, bindings: Bindings::default(), change_log, versions_max }
    }

    pub(super) fn start(
        &mut self,
        copied: Result<TableVersion, TrackedBecause>,
        copied_at: VisibilitySnapshot,
        insert_lsn: Lsn,
    ) {
        if copied.as_ref().is_ok_and(|copied| copied.schema != self.table.schema) {
            self.table.poison("altered while it was copied".into());
        } else {
            self.table.start(copied, copied_at, insert_lsn);
        }
    }

    /// Empties the buffer, unless it may wait for the last round.
    pub(super) fn take(&self, buffer: &mut CopyBuffer) -> Option<Vec<(Stamp, TableChanges)>> {
        if self.table.history.is_empty() || is_short(&buffer.transactions) {
            return None;
        }
        buffer.bytes = 0;
        Some(std::mem::take(&mut buffer.transactions))
    }

    /// Takes the transactions that the copy does not have, in as few steps as may be.
    pub(super) fn apply(&mut self, transactions: Vec<(Stamp, TableChanges)>) {
        let handover = self.table.handover.clone();
        let is_new = |(stamp, _): &&(Stamp, TableChanges)| !handover.as_ref().is_some_and(|copy| copy.contains(*stamp));
        let (mut together, mut rows, mut layout) = (Vec::new(), 0, None);
        for (stamp, changes) in transactions.iter().filter(is_new) {
            // A transaction that only truncates has none.
            let is_other = |layout: &Arc<_>| changes.layout.as_ref().is_some_and(|now| !Arc::ptr_eq(now, layout));
            if rows > TOGETHER_ROWS || layout.is_some_and(is_other) {
                self.step(&together);
                together.clear();
                (rows, layout) = (0, None);
            }
            rows += changes.changes.len();
            layout = layout.or(changes.layout.as_ref());
            together.push((*stamp, changes));
        }
        self.step(&together);
    }

    /// All of these transactions at once, into the version above the copy's own.
    fn step(&mut self, together: &[(Stamp, &TableChanges)]) {
        let table = &mut self.table;
        let Some(head) = table.history.back() else { return };
        if together.is_empty() {
            return;
        }
        let generation = together.iter().fold(table.generation, |last, (stamp, _)| last.next(stamp.commit_lsn));
        let rows = match &head.rows {
            None => None,
            Some(head) => {
                let changes: Vec<&TableChanges> = together.iter().map(|(_, changes)| *changes).collect();
                match self.bindings.delta(&table.schema, head, &changes) {
                    Ok(delta) => {
                        head.key_changes.iter().for_each(|changes| changes.enter(generation, None));
                        Some(Arc::new(delta.apply(generation)))
                    }
                    Err(why) => return drop(table.poison(why)),
                }
            }
        };
        // Also where nothing has changed in the end: who sees some of them only may see something else.
        let mut xids: Vec<u32> = together.iter().map(|(stamp, _)| stamp.xid).collect();
        if table.history.len() > 1
            && let Some(caught_up) = table.history.pop_back()
        {
            xids = [caught_up.xids, xids].concat();
        }
        table.history.push_back(Version { xids, generation, rows });
        table.generation = generation;
        table.change_log.skip_to(generation);
    }

    /// The table with what came last.
    pub(super) fn finish(mut self, last: Vec<(Stamp, TableChanges)>) -> Table {
        if is_short(&last) {
            for (stamp, changes) in last {
                let tip = self.table.tip();
                if let Some(outcome) = step(&mut self.bindings, tip, stamp, &changes, self.change_log) {
                    self.table.take(outcome, self.versions_max);
                }
            }
        } else {
            self.apply(last);
        }
        self.table.bytes = self.table.head().map_or(0, |head| head.bytes());
        self.table
    }
}

fn is_short(transactions: &[(Stamp, TableChanges)]) -> bool {
    let bytes = || transactions.iter().map(|(_, changes)| changes.bytes()).sum::<usize>();
    transactions.len() <= LAST_TRANSACTIONS && bytes() <= LAST_BYTES
}
