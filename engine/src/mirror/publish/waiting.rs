//! [`Waiting`]: small transactions that a table has received and nobody has read yet.
//!
//! To apply a transaction of one row costs about as much as to apply a hundred of them together: a version, a chunk, an entry of the
//! change log. So they wait, in the order of the stream, behind the table's newest version, until a moment is asked for that shows some
//! of them; those become one version then. No reader can tell: who sees some of what was put together but not all has an older
//! moment than one that was asked for already, and such are refused anyway (see [`Mirror::retire`]). Without readers they are put
//! together once there are many, the older half, as versions are.
//!
//! A transaction that waits counts as applied: [`Mirror::applied`] is past it, the table has its generation, and a moment that does
//! not show it is not the newest. What it holds counts as the table's. That its rows do not fit the table's is found, and the table
//! poisoned, when it is put together with others, which is before anybody could have read it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::step::{Bindings, Outcome, Tip, logged};
use super::{Freed, Mirror, Published, Stamp, Table, Version, Writer};
use crate::catalog::RelationId;
use crate::change_log::ChangeLogLimits;
use crate::mirror::assemble::{RowChange, TableChanges};
use crate::planted::{Bug, is_planted};
use crate::snapshot::VisibilitySnapshot;
use crate::table::Generation;

/// A larger transaction is applied at once.
const SMALL_ROWS: usize = 64;
const SMALL_BYTES: usize = 16 * 1024;
/// What may wait for one table: no more than a reader has time for, with the moments that barriers under way will ask for in the
/// newer half.
const TRANSACTIONS_MAX: usize = 1_024;
const ROWS_MAX: usize = 1_024;
const BYTES_MAX: usize = 256 * 1024;
/// So many are not put together where others are for want of room.
const APART: usize = 16;
/// For whoever makes versions at the time.
const SETTLE_WAIT: Duration = Duration::from_millis(10);
/// So much may be received beyond the memory cap before it is looked at again.
pub(super) const UNCOUNTED_BYTES: usize = 64 * 1024;

/// Of one table, in the order of the stream.
#[derive(Default)]
pub(super) struct Waiting {
    transactions: VecDeque<Arc<Waited>>,
    rows: usize,
    bytes: usize,
}

pub(super) struct Waited {
    stamp: Stamp,
    /// The table's once it is applied.
    pub(super) generation: Generation,
    changes: TableChanges,
}

impl Waited {
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.changes.bytes()
    }

    fn is_seen_by(&self, visible: &VisibilitySnapshot) -> bool {
        visible.sees(visible.widen(self.stamp.xid))
    }
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.transactions.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.transactions.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn push(&mut self, waited: Waited) {
        self.rows += waited.changes.changes.len();
        self.bytes += waited.bytes();
        self.transactions.push_back(Arc::new(waited));
    }

    fn is_full(&self) -> bool {
        self.len() >= TRANSACTIONS_MAX || self.rows >= ROWS_MAX || self.bytes >= BYTES_MAX
    }

    /// How many of them, up to the first that it does not see, `visible` sees.
    fn seen_by(&self, visible: &VisibilitySnapshot) -> usize {
        self.transactions.iter().take_while(|waited| waited.is_seen_by(visible)).count()
    }

    pub(super) fn is_touched_by(&self, visible: &VisibilitySnapshot) -> bool {
        self.transactions.iter().any(|waited| waited.is_seen_by(visible))
    }

    pub(super) fn is_all_seen_by(&self, visible: &VisibilitySnapshot) -> bool {
        self.transactions.iter().all(|waited| waited.is_seen_by(visible))
    }

    pub(super) fn drop_first(&mut self, count: usize) {
        for waited in self.transactions.drain(..count.min(self.transactions.len())) {
            self.rows -= waited.changes.changes.len();
            self.bytes -= waited.bytes();
        }
    }

    /// As versions of a table whose rows are no longer wanted.
    pub(super) fn into_tracked(self) -> impl Iterator<Item = Version> {
        self.transactions.into_iter().map(|waited| Version {
            xids: vec![waited.stamp.xid],
            generation: waited.generation,
            rows: None,
        })
    }
}

impl Table {
    /// Whether the changes are so few, and of rows that are known to be like the table's, that they may wait.
    fn lets_wait(&self, bindings: &Bindings, changes: &TableChanges) -> bool {
        let is_small = changes.changes.len() <= SMALL_ROWS && changes.bytes() <= SMALL_BYTES;
        let is_truncation = |change: &RowChange| matches!(change, RowChange::Truncate);
        is_small
            && self.head().is_some()
            && changes.lost.is_none()
            && changes.layout.as_ref().is_some_and(|layout| bindings.knows(&self.schema, layout))
            && !changes.changes.iter().any(is_truncation)
    }

    /// None: the table's copy has them.
    fn wait(
        &self,
        generations: &mut HashMap<RelationId, Generation>,
        stamp: Stamp,
        changes: TableChanges,
    ) -> Option<Outcome> {
        if self.handover.as_ref().is_some_and(|handover| handover.contains(stamp)) {
            return None;
        }
        let generation = self.generation.next(stamp.commit_lsn);
        generations.insert(self.schema.id, generation);
        Some(Outcome::Waits(Waited { stamp, generation, changes }))
    }
}

impl Mirror {
    /// What a transaction makes of a table that is not being copied; None: nothing.
    pub(super) fn make_of_known(
        &self,
        writer: &mut Writer,
        stamp: Stamp,
        changes: TableChanges,
        freed: &mut Freed,
    ) -> Option<Outcome> {
        let relation = changes.relation;
        let published = self.published.read();
        let table = published.tables.get(&relation)?;
        let waits = table.lets_wait(&writer.bindings, &changes);
        let (is_full, waiting) = (table.waiting.is_full(), table.waiting.len());
        if waits && !is_full {
            return table.wait(&mut writer.generations, stamp, changes);
        }
        drop(published);
        if waits {
            freed.add(self.settle(writer, relation, waiting.div_ceil(2)));
        } else {
            // The newest each by itself: a barrier under way may ask for a moment between them.
            freed.add(self.settle(writer, relation, waiting.saturating_sub(APART)));
            (0..waiting.min(APART)).for_each(|_| freed.add(self.settle(writer, relation, 1)));
        }
        let published = self.published.read();
        let table = published.tables.get(&relation)?;
        if waits && table.head().is_some() {
            return table.wait(&mut writer.generations, stamp, changes);
        }
        let tip = table.tip();
        drop(published);
        writer.step(tip, stamp, &changes, self.limits.change_log)
    }

    /// Before a moment is cut: what it shows of these tables is applied, as one version each.
    pub(super) fn settle_for(&self, visible: &VisibilitySnapshot, relations: &[RelationId]) -> Freed {
        let mut freed = Freed::default();
        if self.published.read().due(visible, relations).next().is_none() {
            return freed;
        }
        // Who cuts moments serves sessions: rather than wait for a large transaction it is refused what it does not see whole.
        let Some(mut writer) = self.writer.try_lock_for(SETTLE_WAIT) else { return freed };
        let due: Vec<_> = self.published.read().due(visible, relations).collect();
        for (relation, count) in due {
            freed.add(self.settle(&mut writer, relation, count));
        }
        freed.add(self.demote_over_cap());
        drop(writer);
        freed
    }

    /// As a large transaction does.
    #[cfg(test)]
    pub(in crate::mirror) fn hold_writer(&self) -> impl Sized + '_ {
        self.writer.lock()
    }

    /// Applies the first `count` transactions that wait for the table, as one version. Until it is in place they are seen to wait.
    fn settle(&self, writer: &mut Writer, relation: RelationId, count: usize) -> Freed {
        let published = self.published.read();
        let Some(table) = published.tables.get(&relation).filter(|table| count > 0 && !table.waiting.is_empty()) else {
            return Freed::default();
        };
        let together: Vec<Arc<Waited>> = table.waiting.transactions.iter().take(count).cloned().collect();
        let tip = table.tip();
        drop(published);
        let outcome = writer.bindings.put_together(&tip, &together, self.limits.change_log);
        let mut freed = self.publish([(relation, outcome)], None);
        freed.rows.extend(tip.rows.flatten());
        freed.waited = together;
        freed
    }
}

impl Published {
    /// How many of those that wait for these tables have to be applied for `visible` to be cut.
    fn due(&self, visible: &VisibilitySnapshot, relations: &[RelationId]) -> impl Iterator<Item = (RelationId, usize)> {
        let count = |table: &Table| {
            if is_planted(Bug::ServeHead) {
                return table.waiting.len();
            }
            let count = table.waiting.seen_by(visible);
            // Behind a version that is not seen, none can be shown.
            let is_hidden = count > 0 && table.history.iter().any(|version| !version.is_seen_by(visible));
            if is_hidden { 0 } else { count }
        };
        let counts = relations.iter().filter_map(move |relation| Some((*relation, count(self.tables.get(relation)?))));
        counts.filter(|(_, count)| *count > 0)
    }
}

impl Bindings {
    /// Transactions of one layout as one version: also where nothing has changed in the end, for who sees a part of them would see
    /// something else.
    fn put_together(&mut self, tip: &Tip, together: &[Arc<Waited>], limits: ChangeLogLimits) -> Outcome {
        let changes: Vec<&TableChanges> = together.iter().map(|waited| &waited.changes).collect();
        let (Some(Some(head)), Some(last)) = (&tip.rows, together.last()) else {
            return Outcome::Poison("changes wait for no rows".into());
        };
        match self.delta(&tip.schema, head, &changes) {
            Err(why) => Outcome::Poison(why),
            Ok(delta) => {
                let logged = logged(&delta, last.generation, limits);
                let xids = together.iter().map(|waited| waited.stamp.xid).collect();
                Outcome::of_rows(head, delta, xids, last.generation, logged, together.len())
            }
        }
    }
}
