//! One transaction, or several, applied to one table: [`Tip`] → [`Outcome`].

use std::collections::HashMap;
use std::sync::Arc;

use super::waiting::Waited;
use super::{Handover, Stamp, Version, Writer};
use crate::catalog::{RelationId, TableSchema};
use crate::change_log::{ChangeLogLimits, RowChanges};
use crate::mirror::apply::{PoisonReason, delta_of};
use crate::mirror::assemble::{Binding, RelationLayout, TableChanges};
use crate::table::{Generation, TableDelta, TableVersion};

/// How the layouts of tables meet their schemas.
#[derive(Default)]
pub(super) struct Bindings(pub(super) HashMap<RelationId, KnownBinding>);

/// A layout already matched with a schema; both are compared by address.
pub(super) struct KnownBinding {
    layout: Arc<RelationLayout>,
    schema: Arc<TableSchema>,
    binding: Arc<Binding>,
}

/// Where a table stands: what the next transaction is applied to.
pub(super) struct Tip {
    pub(super) schema: Arc<TableSchema>,
    pub(super) generation: Generation,
    pub(super) handover: Option<Handover>,
    /// None: no versions (being copied, poisoned). Some(None): tracked.
    pub(super) rows: Option<Option<Arc<TableVersion>>>,
}

/// What a transaction makes of a table.
pub(super) enum Outcome {
    /// `settled`: so many transactions that waited are in it.
    Version {
        version: Version,
        logged: Option<RowChanges>,
        bytes: usize,
        settled: usize,
    },
    Waits(Waited),
    Poison(PoisonReason),
}

impl Writer {
    /// One transaction applied to one table; None if it does not concern it.
    pub(super) fn step(
        &mut self,
        tip: Tip,
        stamp: Stamp,
        changes: &TableChanges,
        limits: ChangeLogLimits,
    ) -> Option<Outcome> {
        let (relation, generation) = (tip.schema.id, tip.generation.next(stamp.commit_lsn));
        let outcome = step(&mut self.bindings, tip, stamp, changes, limits)?;
        self.generations.insert(relation, generation);
        Some(outcome)
    }
}

/// See [`Writer::step`].
pub(super) fn step(
    bindings: &mut Bindings,
    tip: Tip,
    stamp: Stamp,
    changes: &TableChanges,
    limits: ChangeLogLimits,
) -> Option<Outcome> {
    if tip.handover.as_ref().is_some_and(|handover| handover.contains(stamp)) {
        return None;
    }
    let generation = tip.generation.next(stamp.commit_lsn);
    let xids = vec![stamp.xid];
    Some(match tip.rows? {
        None => {
            let version = Version { xids, generation, rows: None };
            Outcome::Version { version, logged: None, bytes: 0, settled: 0 }
        }
        Some(head) => match bindings.delta(&tip.schema, &head, &[changes]) {
            Err(why) => Outcome::Poison(why),
            Ok(delta) if delta.is_empty() => return None,
            Ok(delta) => {
                let logged = logged(&delta, generation, limits);
                Outcome::of_rows(&head, delta, xids, generation, logged, 0)
            }
        },
    })
}

/// The row images of a change, unless it is too large to be of use.
pub(super) fn logged(delta: &TableDelta, generation: Generation, limits: ChangeLogLimits) -> Option<RowChanges> {
    let is_kept = delta.changed_rows() <= limits.rows_max && delta.changed_bytes() <= limits.bytes_max;
    (!delta.is_truncated() && is_kept).then(|| RowChanges {
        generation,
        old: delta.deleted_rows(),
        new: delta.inserted().to_vec(),
    })
}

impl Outcome {
    /// The version that `delta` makes of `head`.
    pub(super) fn of_rows(
        head: &TableVersion,
        delta: TableDelta,
        xids: Vec<u32>,
        generation: Generation,
        logged: Option<RowChanges>,
        settled: usize,
    ) -> Self {
        // Before anybody can read the version.
        let changed = logged.as_ref().map(|changes| [&changes.old[..], &changes.new[..]]);
        head.key_changes.iter().for_each(|changes| changes.enter(generation, changed));
        let rows = Arc::new(delta.apply(generation));
        let bytes = rows.bytes();
        Self::Version { version: Version { xids, generation, rows: Some(rows) }, logged, bytes, settled }
    }

    /// What comes to wait.
    pub(super) fn waiting_bytes(&self) -> Option<usize> {
        match self {
            Self::Waits(waited) => Some(waited.bytes()),
            Self::Version { .. } | Self::Poison(_) => None,
        }
    }
}

impl Bindings {
    /// A layout met before, with the same schema.
    pub(super) fn knows(&self, schema: &Arc<TableSchema>, layout: &Arc<RelationLayout>) -> bool {
        let known = self.0.get(&schema.id);
        known.is_some_and(|known| Arc::ptr_eq(&known.layout, layout) && Arc::ptr_eq(&known.schema, schema))
    }

    /// What these transactions, all of one layout, change in the rows of `head`.
    pub(super) fn delta(
        &mut self,
        schema: &Arc<TableSchema>,
        head: &Arc<TableVersion>,
        transactions: &[&TableChanges],
    ) -> Result<TableDelta, PoisonReason> {
        let Some(layout) = transactions.iter().find_map(|changes| changes.layout.as_ref()) else {
            // Only truncated: no tuple needs a layout.
            return delta_of(head, &Binding { columns: Vec::new(), key: Vec::new() }, transactions);
        };
        let binding = match self.0.get(&schema.id) {
            Some(known) if Arc::ptr_eq(&known.layout, layout) && Arc::ptr_eq(&known.schema, schema) => {
                Arc::clone(&known.binding)
            }
            _ => {
                let binding = Arc::new(layout.bind(schema)?);
                let known = KnownBinding {
                    layout: Arc::clone(layout),
                    schema: Arc::clone(schema),
                    binding: Arc::clone(&binding),
                };
                self.0.insert(schema.id, known);
                binding
            }
        };
        delta_of(head, &binding, transactions)
    }
}
