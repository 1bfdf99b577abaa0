//! WITH RECURSIVE (PostgreSQL: nodeRecursiveunion.c): rows go up as they are found, round after round, so that who needs no
//! more of them ends a recursion that has no end.

use std::sync::Arc;

use arrow::array::{Array, UInt32Array};

use super::batch::Batch;
use super::key_table::{KeyTable, Purpose, first_rows};
use super::{Batching, Flow, Run, Sink};
use crate::catalog::functions::EvalError;
use crate::planner::node::{PlanNode, Recursive};

/// What a column of few rows costs beside them.
const COLUMN_BYTES: usize = 256;

/// What one recursion has found.
struct Found {
    /// All rows so far; None: equal rows are found again.
    seen: Option<KeyTable>,
    seen_bytes: usize,
    /// Those of this round.
    round: Vec<Batch>,
}

impl Run<'_> {
    pub(super) fn recursive(&self, recursive: &Recursive, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let seen = match recursive.is_all {
            true => None,
            false => Some(KeyTable::new(&recursive.types, Purpose::Groups, 0)?),
        };
        let mut found = Found { seen, seen_bytes: 0, round: Vec::new() };
        let mut flow = self.round(&recursive.base, recursive, &mut found, sink)?;
        while flow.is_continue() {
            self.check_cancelled()?;
            let Some(working) = self.concatenate(&recursive.base, std::mem::take(&mut found.round))? else { break };
            self.state.rounds.borrow_mut().insert(recursive.number, working);
            flow = self.round(&recursive.step, recursive, &mut found, sink)?;
        }
        self.state.rounds.borrow_mut().remove(&recursive.number);
        Ok(flow)
    }

    fn round(
        &self,
        node: &PlanNode,
        recursive: &Recursive,
        found: &mut Found,
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        self.run(node, Batching::Small, &mut |batch| {
            self.check_cancelled()?;
            let mut batch = batch;
            if let Some(seen) = &mut found.seen {
                let keys =
                    (0..recursive.types.len()).map(|column| batch.column(column)).collect::<Result<Vec<_>, _>>()?;
                let known = seen.len();
                let ids = seen.assign(&keys, batch.rows)?;
                self.charge_growth(&mut found.seen_bytes, seen.bytes())?;
                let rows = first_rows(&ids, known, seen.len());
                batch = batch.select(&Arc::new(UInt32Array::from(rows)))?;
            }
            if batch.rows == 0 {
                return Ok(Flow::Continue(()));
            }
            self.count_join_rows(batch.rows)?;
            // Gathered, or the rows of all rounds before would be kept for the sake of the last.
            let gathered = batch.into_row_batch()?;
            self.charge(gathered.columns.iter().map(|column| column.get_array_memory_size() + COLUMN_BYTES).sum())?;
            let batch = Batch::of_shared(gathered.columns, gathered.rows);
            found.round.push(batch.clone());
            sink(batch)
        })
    }

    /// The rows of the round before.
    pub(super) fn working(&self, number: usize, batching: Batching, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let working = self.state.rounds.borrow().get(&number).cloned();
        let Some(working) = working else {
            return Err(EvalError::Beyond("a recursion's rows outside of it".to_owned()));
        };
        let mut offset = 0;
        while offset < working.rows {
            let rows = batching.rows().min(working.rows - offset);
            if sink(working.slice(offset, rows))?.is_break() {
                return Ok(Flow::Break(()));
            }
            offset += rows;
        }
        Ok(Flow::Continue(()))
    }
}
