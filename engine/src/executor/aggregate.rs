//! GROUP BY, aggregates without groups, and DISTINCT (groups without aggregates): keys become group ids
//! ([`KeyTable`]), ids and argument columns go into the calls' states ([`super::accumulate`]).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::compute::take;

use super::accumulate::{Accumulator, Groups, accumulator};
use super::arrays::{concatenate, internal};
use super::batch::{Batch, Kept, kept_rows};
use super::eval::is_bool;
use super::key_table::{KeyTable, Purpose, first_rows};
use super::{Batching, Flow, Run, Sink};
use crate::catalog::functions::AggregateFunction;
use crate::catalog::functions::EvalError;
use crate::planner::expression::type_of;
use crate::planner::node::{Aggregate, Call};
use crate::types::PgType;

impl Run<'_> {
    pub(super) fn aggregate(&self, aggregate: &Aggregate, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let mut grouping = Grouping::new(self, aggregate)?;
        let _ = self.run(&aggregate.input, Batching::Small, &mut |batch| {
            grouping.add(&batch)?;
            Ok(Flow::Continue(()))
        })?;
        let batch = grouping.finish()?;
        if batch.rows == 0 { Ok(Flow::Continue(())) } else { sink(batch) }
    }
}

/// The groups of one execution.
struct Grouping<'a> {
    run: &'a Run<'a>,
    aggregate: &'a Aggregate,
    key_types: Vec<PgType>,
    /// None: no GROUP BY, all rows are one group.
    table: Option<KeyTable>,
    /// Per key column, the values of the groups in order of their ids.
    keys: Vec<Vec<ArrayRef>>,
    states: Vec<CallState>,
    charged_bytes: usize,
    key_bytes: usize,
}

struct CallState {
    accumulator: Box<dyn Accumulator>,
    /// For DISTINCT: which (group, value) have been taken in.
    taken: Option<KeyTable>,
}

impl<'a> Grouping<'a> {
    fn new(run: &'a Run<'a>, aggregate: &'a Aggregate) -> Result<Self, EvalError> {
        let key_types: Vec<PgType> = aggregate.groups.iter().map(type_of).collect();
        let rows = run.estimate(&aggregate.input);
        let table = match aggregate.groups.is_empty() {
            true => None,
            false => Some(KeyTable::new(&key_types, Purpose::Groups, rows)?),
        };
        let states =
            aggregate.calls.iter().map(|call| CallState::new(aggregate, call, rows)).collect::<Result<_, _>>()?;
        let keys = vec![Vec::new(); key_types.len()];
        Ok(Self { run, aggregate, key_types, table, keys, states, charged_bytes: 0, key_bytes: 0 })
    }

    fn add(&mut self, batch: &Batch) -> Result<(), EvalError> {
        let before = self.table.as_ref().map_or(1, KeyTable::len);
        let ids = self.number(batch, before)?;
        let count = self.table.as_ref().map_or(1, KeyTable::len);
        // Computed for the first call that asks; calls with a filter compute theirs on fewer rows.
        let mut arguments: Vec<Option<ArrayRef>> = vec![None; self.aggregate.arguments.len()];
        for (call, state) in self.aggregate.calls.iter().zip(&mut self.states) {
            let whole = Groups { ids: ids.as_deref(), rows: batch.rows, count, before, is_complete: true };
            if let Some(filter) = &call.filter {
                let keep = self.run.environment.evaluate_booleans(filter, batch)?;
                let keep = BooleanArray::new(is_bool(&keep, Some(true)), None);
                let part = batch.filter(&keep)?;
                let part_ids = ids.as_deref().map(|ids| kept_ids(ids, &keep));
                let groups = Groups { ids: part_ids.as_deref(), rows: part.rows, is_complete: false, ..whole };
                let argument = call.argument.map(|argument| &self.aggregate.arguments[argument]);
                let values = argument.map(|expr| self.run.environment.evaluate_column(expr, &part)).transpose()?;
                state.update(&groups, values.as_ref())?;
                continue;
            }
            let values = match call.argument {
                None => None,
                Some(argument) => {
                    if arguments[argument].is_none() {
                        let expr = &self.aggregate.arguments[argument];
                        arguments[argument] = Some(self.run.environment.evaluate_column(expr, batch)?);
                    }
                    arguments[argument].as_ref()
                }
            };
            state.update(&whole, values)?;
        }
        let bytes = self.bytes();
        self.run.charge_growth(&mut self.charged_bytes, bytes)
    }

    /// The group of each row; None without GROUP BY.
    fn number(&mut self, batch: &Batch, before: usize) -> Result<Option<Vec<u32>>, EvalError> {
        let Some(table) = &mut self.table else { return Ok(None) };
        let environment = &self.run.environment;
        let keys = self.aggregate.groups.iter().map(|expr| environment.evaluate_column(expr, batch));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let ids = table.assign(&keys, batch.rows)?;
        let count = table.len();
        if count > before {
            let rows = UInt32Array::from(first_rows(&ids, before, count));
            for (pieces, key) in self.keys.iter_mut().zip(&keys) {
                let piece =
                    if rows.len() == batch.rows { key.clone() } else { take(key, &rows, None).map_err(internal)? };
                self.key_bytes += rows.len() * 16;
                pieces.push(piece);
            }
        }
        Ok(Some(ids))
    }

    fn bytes(&self) -> usize {
        let states =
            self.states.iter().map(|state| state.accumulator.bytes() + state.taken.as_ref().map_or(0, KeyTable::bytes));
        self.key_bytes + self.table.as_ref().map_or(0, KeyTable::bytes) + states.sum::<usize>()
    }

    /// One row per group; without GROUP BY one row, even if there were none.
    fn finish(self) -> Result<Batch, EvalError> {
        let groups = self.table.as_ref().map_or(1, KeyTable::len);
        let mut columns = Vec::with_capacity(self.keys.len() + self.states.len());
        for (pg_type, pieces) in self.key_types.iter().zip(&self.keys) {
            columns.push(concatenate(*pg_type, pieces)?);
        }
        for state in self.states {
            columns.push(state.accumulator.finish(groups)?);
        }
        Ok(Batch::new(columns, groups))
    }
}

fn kept_ids(ids: &[u32], keep: &BooleanArray) -> Vec<u32> {
    match kept_rows(keep) {
        Kept::Run { start, length } => ids[start..start + length].to_vec(),
        Kept::Rows(rows) => rows.iter().map(|row| ids[*row as usize]).collect(),
    }
}

impl CallState {
    fn new(aggregate: &Aggregate, call: &Call, rows: usize) -> Result<Self, EvalError> {
        let argument = call.argument.map(|argument| type_of(&aggregate.arguments[argument]));
        let accumulator = accumulator(call.function, argument)?;
        let is_distinct = call.is_distinct && depends_on_repetition(call.function);
        let taken = match argument.filter(|_| is_distinct) {
            None => None,
            Some(pg_type) => Some(distinct_table(call.function, pg_type, !aggregate.groups.is_empty(), rows)?),
        };
        Ok(Self { accumulator, taken })
    }

    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let (Some(taken), Some(values)) = (&mut self.taken, values) else {
            return self.accumulator.update(groups, values);
        };
        let known = taken.len();
        let pairs = match groups.ids {
            None => taken.assign(std::slice::from_ref(values), groups.rows)?,
            Some(ids) => {
                let ids: arrow::array::Int64Array = ids.iter().map(|id| i64::from(*id)).collect::<Vec<_>>().into();
                let columns = [values.clone(), Arc::new(ids) as ArrayRef];
                taken.assign(&columns, groups.rows)?
            }
        };
        let rows = first_rows(&pairs, known, taken.len());
        let ids = groups.ids.map(|ids| rows.iter().map(|row| ids[*row as usize]).collect::<Vec<u32>>());
        let values = take(values, &UInt32Array::from(rows), None).map_err(internal)?;
        let new = Groups { ids: ids.as_deref(), rows: values.len(), is_complete: false, ..*groups };
        self.accumulator.update(&new, Some(&values))
    }
}

fn depends_on_repetition(function: AggregateFunction) -> bool {
    match function {
        AggregateFunction::CountStar | AggregateFunction::Count | AggregateFunction::Sum | AggregateFunction::Avg => {
            true
        }
        AggregateFunction::Min | AggregateFunction::Max | AggregateFunction::BoolAnd | AggregateFunction::BoolOr => {
            false
        }
    }
}

fn distinct_table(
    function: AggregateFunction,
    pg_type: PgType,
    has_groups: bool,
    rows: usize,
) -> Result<KeyTable, EvalError> {
    let is_sum = matches!(function, AggregateFunction::Sum | AggregateFunction::Avg);
    if is_sum && matches!(pg_type, PgType::Float4 | PgType::Float8) {
        // PostgreSQL adds the distinct values in sorted order.
        return Err(EvalError::Beyond("sum of distinct floats".to_owned()));
    }
    // Which of 1.0 and 1.00 is taken decides a sum's scale; a count is the same either way.
    let purpose = if is_sum { Purpose::Arguments } else { Purpose::Matches };
    let with_group = [pg_type, PgType::Int8];
    KeyTable::new(if has_groups { &with_group } else { &with_group[..1] }, purpose, rows)
}
