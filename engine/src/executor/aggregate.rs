//! GROUP BY, aggregates without groups, and DISTINCT (groups without aggregates): keys become group ids
//! ([`KeyTable`]), ids and argument columns go into the calls' states ([`super::accumulate`]).

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, UInt32Array};
use arrow::compute::take;

use super::accumulate::{Accumulator, Groups, accumulator};
use super::arrays::{concatenate, internal, own_bytes};
use super::batch::{Batch, Kept, kept_rows, take_rows};
use super::eval::is_bool;
use super::key_table::{KeyTable, Purpose, first_rows};
use super::order::{Direction, codes, sorted_rows};
use super::{Batching, Flow, Run, Sink};
use crate::catalog::functions::AggregateFunction;
use crate::catalog::functions::EvalError;
use crate::planner::deciding;
use crate::planner::expression::{is_row_independent, type_of};
use crate::planner::node::{Aggregate, Call};
use crate::types::{PgType, Value};

/// What it is given up for above `State::groups_max`.
pub(super) const TOO_MANY_GROUPS: &str = "groups";

impl Run<'_> {
    pub(super) fn aggregate(&self, aggregate: &Aggregate, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        if let Some((address, given)) = &self.state.given
            && *address == std::ptr::from_ref(aggregate).addr()
        {
            let batch = Batch::of_shared(given.columns.clone(), given.rows);
            return if batch.rows == 0 { Ok(Flow::Continue(())) } else { sink(batch) };
        }
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
    /// By key column, whether groups are told apart by it; the others have one value in each group.
    deciding: Vec<bool>,
    /// None: no GROUP BY, all rows are one group.
    table: Option<KeyTable>,
    /// Per key column, the values of the groups in order of their ids.
    keys: Vec<Vec<ArrayRef>>,
    states: Vec<CallState>,
    charged_bytes: usize,
    key_bytes: usize,
}

/// Rows that have waited for their order, so many between two looks at what they take.
const SETTLED_AT_ONCE: usize = 1 << 16;

/// Rows that are taken in at the end, batch by batch.
#[derive(Default)]
struct Waiting {
    ids: Vec<u32>,
    /// For each batch its sort keys, and its arguments.
    keys: Vec<ArrayRef>,
    values: Vec<ArrayRef>,
    batches: usize,
}

struct CallState {
    accumulator: Box<dyn Accumulator>,
    /// For calls that take rows in in an order of their own.
    waiting: Option<Waiting>,
    /// For DISTINCT: which (group, value) have been taken in.
    taken: Option<KeyTable>,
}

impl<'a> Grouping<'a> {
    fn new(run: &'a Run<'a>, aggregate: &'a Aggregate) -> Result<Self, EvalError> {
        let key_types: Vec<PgType> = aggregate.groups.iter().map(type_of).collect();
        let deciding = deciding(aggregate, &|scan| Some(scan.table) != run.changed);
        let rows = run.estimate(&aggregate.input);
        let table = match aggregate.groups.is_empty() {
            true => None,
            false => Some(KeyTable::new(&of_deciding(&key_types, &deciding), Purpose::Groups, rows)?),
        };
        let states =
            aggregate.calls.iter().map(|call| CallState::new(run, aggregate, call, rows)).collect::<Result<_, _>>()?;
        let keys = vec![Vec::new(); key_types.len()];
        Ok(Self { run, aggregate, key_types, deciding, table, keys, states, charged_bytes: 0, key_bytes: 0 })
    }

    fn add(&mut self, batch: &Batch) -> Result<(), EvalError> {
        let before = self.table.as_ref().map_or(1, KeyTable::len);
        let ids = self.number(batch, before)?;
        let count = self.table.as_ref().map_or(1, KeyTable::len);
        if count > self.run.state.groups_max {
            return Err(EvalError::OverBudget(TOO_MANY_GROUPS));
        }
        // Computed for the first call that asks; calls with a filter compute theirs on fewer rows.
        let mut arguments: Vec<Option<ArrayRef>> = vec![None; self.aggregate.arguments.len()];
        for (call, state) in self.aggregate.calls.iter().zip(&mut self.states) {
            let whole = Groups { ids: ids.as_deref(), rows: batch.rows, count, before, is_complete: true };
            let expressions = call.argument.iter().chain(&call.extra).copied();
            if let Some(filter) = &call.filter {
                let keep = self.run.environment.evaluate_booleans(filter, batch)?;
                let keep = BooleanArray::new(is_bool(&keep, Some(true)), None);
                let part = batch.filter(&keep)?;
                let part_ids = ids.as_deref().map(|ids| kept_ids(ids, &keep));
                let groups = Groups { ids: part_ids.as_deref(), rows: part.rows, is_complete: false, ..whole };
                let values = expressions
                    .map(|argument| self.run.environment.evaluate_column(&self.aggregate.arguments[argument], &part))
                    .collect::<Result<Vec<_>, _>>()?;
                state.take_in(self.run, call, &groups, values, &part)?;
                continue;
            }
            let mut values = Vec::with_capacity(1 + call.extra.len());
            for argument in expressions {
                if arguments[argument].is_none() {
                    let expr = &self.aggregate.arguments[argument];
                    arguments[argument] = Some(self.run.environment.evaluate_column(expr, batch)?);
                }
                values.extend(arguments[argument].clone());
            }
            state.take_in(self.run, call, &whole, values, batch)?;
        }
        let bytes = self.bytes();
        self.run.charge_growth(&mut self.charged_bytes, bytes)
    }

    /// The group of each row; None without GROUP BY.
    fn number(&mut self, batch: &Batch, before: usize) -> Result<Option<Vec<u32>>, EvalError> {
        let Some(table) = &mut self.table else { return Ok(None) };
        let environment = &self.run.environment;
        let groups = &self.aggregate.groups;
        let told_apart_by = of_deciding(&groups.iter().collect::<Vec<_>>(), &self.deciding);
        let keys = told_apart_by.into_iter().map(|expr| environment.evaluate_column(expr, batch));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let ids = table.assign(&keys, batch.rows)?;
        let count = table.len();
        if count > before {
            let rows = Arc::new(UInt32Array::from(first_rows(&ids, before, count)));
            let is_all = rows.len() == batch.rows;
            // What hangs on a key is only wanted of the rows that a group begins with.
            let firsts = if is_all { None } else { Some(batch.select(&rows)?) };
            let mut keys = keys.into_iter();
            for ((pieces, expr), decides) in self.keys.iter_mut().zip(groups).zip(&self.deciding) {
                let key = if *decides { keys.next() } else { None };
                let piece = match key {
                    Some(key) if is_all => key,
                    Some(key) => take(&key, &*rows, None).map_err(internal)?,
                    None => environment.evaluate_column(expr, firsts.as_ref().unwrap_or(batch))?,
                };
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
        for (mut state, call) in self.states.into_iter().zip(&self.aggregate.calls) {
            state.settle(self.run, self.aggregate, call, groups)?;
            columns.push(state.accumulator.finish(groups)?);
        }
        Ok(Batch::new(columns, groups))
    }
}

/// Those whose key column tells groups apart.
fn of_deciding<T: Copy>(of_keys: &[T], deciding: &[bool]) -> Vec<T> {
    of_keys.iter().zip(deciding).filter(|(_, decides)| **decides).map(|(of_key, _)| *of_key).collect()
}

fn kept_ids(ids: &[u32], keep: &BooleanArray) -> Vec<u32> {
    match kept_rows(keep) {
        Kept::Run { start, length } => ids[start..start + length].to_vec(),
        Kept::Rows(rows) => rows.iter().map(|row| ids[*row as usize]).collect(),
    }
}

impl CallState {
    fn new(run: &Run<'_>, aggregate: &Aggregate, call: &Call, rows: usize) -> Result<Self, EvalError> {
        let argument = call.argument.map(|argument| type_of(&aggregate.arguments[argument]));
        let extra = call.extra.iter().map(|extra| match &aggregate.arguments[*extra] {
            row_independent if is_row_independent(row_independent) => run.constant(row_independent),
            _ => Ok(Value::Null),
        });
        let extra = extra.collect::<Result<Vec<_>, _>>()?;
        let accumulator = accumulator(call.function, argument, &extra, call.result)?;
        let waiting = (!call.order.is_empty()).then(Waiting::default);
        let is_distinct = call.is_distinct && depends_on_repetition(call.function);
        let taken = match argument.filter(|_| is_distinct) {
            None => None,
            Some(pg_type) => Some(distinct_table(call.function, pg_type, !aggregate.groups.is_empty(), rows)?),
        };
        Ok(Self { accumulator, waiting, taken })
    }

    /// Rows of a batch: now, or at the end in their order.
    fn take_in(
        &mut self,
        run: &Run<'_>,
        call: &Call,
        groups: &Groups<'_>,
        values: Vec<ArrayRef>,
        batch: &Batch,
    ) -> Result<(), EvalError> {
        let Some(waiting) = &mut self.waiting else { return self.update(groups, &values) };
        let ids = groups.ids.map_or_else(|| vec![0; groups.rows], <[u32]>::to_vec);
        waiting.ids.extend(ids);
        let known = waiting.keys.len();
        for key in &call.order {
            waiting.keys.push(run.environment.evaluate_column(&key.expr, batch)?);
        }
        let made = values.iter().chain(&waiting.keys[known..]).map(own_bytes);
        run.charge(groups.rows * 4 + made.sum::<usize>())?;
        waiting.values.extend(values);
        waiting.batches += 1;
        Ok(())
    }

    /// Takes in what waits, group by group in the order asked for.
    fn settle(&mut self, run: &Run<'_>, aggregate: &Aggregate, call: &Call, groups: usize) -> Result<(), EvalError> {
        let Some(waiting) = self.waiting.take().filter(|waiting| !waiting.ids.is_empty()) else { return Ok(()) };
        run.check_cancelled()?;
        let rows = waiting.ids.len();
        if u32::try_from(rows).is_err() {
            return Err(EvalError::OverBudget("rows of one ordered aggregate"));
        }
        let column = |pieces: &[ArrayRef], count: usize, at: usize, pg_type: PgType| {
            let own: Vec<ArrayRef> = (0..waiting.batches).map(|batch| pieces[batch * count + at].clone()).collect();
            concatenate(pg_type, &own)
        };
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(waiting.ids.iter().map(|id| i64::from(*id))));
        let mut keys = vec![codes(&ids, PgType::Int8, Direction { descending: false, nulls_first: false })?];
        for (at, key) in call.order.iter().enumerate() {
            let pg_type = type_of(&key.expr);
            let values = column(&waiting.keys, call.order.len(), at, pg_type)?;
            run.charge(own_bytes(&values))?;
            let direction = Direction { descending: key.descending, nulls_first: key.nulls_first };
            keys.push(codes(&values, pg_type, direction)?);
        }
        let order = UInt32Array::from(sorted_rows(keys, rows));
        let arguments: Vec<usize> = call.argument.iter().chain(&call.extra).copied().collect();
        let mut values = Vec::with_capacity(arguments.len());
        for (at, argument) in arguments.iter().enumerate() {
            let whole = column(&waiting.values, arguments.len(), at, type_of(&aggregate.arguments[*argument]))?;
            let in_order = take_rows(&whole, &order)?;
            run.charge(own_bytes(&whole) + own_bytes(&in_order))?;
            values.push(in_order);
        }
        let ids: Vec<u32> = order.values().iter().map(|row| waiting.ids[*row as usize]).collect();
        // In steps: what they become may be larger than they are.
        let mut charged_bytes = 0;
        let step = if takes_all_at_once(call.function) { rows } else { SETTLED_AT_ONCE };
        for start in (0..rows).step_by(step) {
            run.check_cancelled()?;
            let length = step.min(rows - start);
            let some: Vec<ArrayRef> = values.iter().map(|values| values.slice(start, length)).collect();
            let own = Groups {
                ids: (!aggregate.groups.is_empty()).then(|| &ids[start..start + length]),
                rows: length,
                count: groups,
                before: groups,
                is_complete: false,
            };
            self.update(&own, &some)?;
            run.charge_growth(&mut charged_bytes, self.accumulator.bytes())?;
        }
        Ok(())
    }

    fn update(&mut self, groups: &Groups<'_>, arguments: &[ArrayRef]) -> Result<(), EvalError> {
        let (Some(taken), Some(values)) = (&mut self.taken, arguments.first()) else {
            return self.accumulator.update_all(groups, arguments);
        };
        let known = taken.len();
        let pairs = match groups.ids {
            None => taken.assign(std::slice::from_ref(values), groups.rows)?,
            Some(ids) => {
                let ids: Int64Array = ids.iter().map(|id| i64::from(*id)).collect::<Vec<_>>().into();
                let columns = [values.clone(), Arc::new(ids) as ArrayRef];
                taken.assign(&columns, groups.rows)?
            }
        };
        let rows = first_rows(&pairs, known, taken.len());
        let ids = groups.ids.map(|ids| rows.iter().map(|row| ids[*row as usize]).collect::<Vec<u32>>());
        let rows = UInt32Array::from(rows);
        let values = arguments.iter().map(|values| take(values, &rows, None).map_err(internal));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let new = Groups { ids: ids.as_deref(), rows: rows.len(), is_complete: false, ..*groups };
        self.accumulator.update_all(&new, &values)
    }
}

/// Which chooses among all the values of a group.
fn takes_all_at_once(function: AggregateFunction) -> bool {
    matches!(function, AggregateFunction::PercentileCont | AggregateFunction::PercentileDisc | AggregateFunction::Mode)
}

fn depends_on_repetition(function: AggregateFunction) -> bool {
    match function {
        AggregateFunction::CountStar
        | AggregateFunction::Count
        | AggregateFunction::Sum
        | AggregateFunction::Avg
        | AggregateFunction::Spread(_)
        | AggregateFunction::StringAgg
        | AggregateFunction::ArrayAgg
        | AggregateFunction::PercentileCont
        | AggregateFunction::PercentileDisc
        | AggregateFunction::Mode
        | AggregateFunction::BitXor
        | AggregateFunction::RegrCount
        | AggregateFunction::Regression(_) => true,
        AggregateFunction::Min
        | AggregateFunction::Max
        | AggregateFunction::BoolAnd
        | AggregateFunction::BoolOr
        | AggregateFunction::BitAnd
        | AggregateFunction::BitOr => false,
    }
}

fn distinct_table(
    function: AggregateFunction,
    pg_type: PgType,
    has_groups: bool,
    rows: usize,
) -> Result<KeyTable, EvalError> {
    let purpose = match function {
        AggregateFunction::Count => Purpose::Matches,
        AggregateFunction::ArrayAgg => Purpose::Groups,
        // Which of 1.0 and 1.00 is taken decides a sum's scale; a count is the same either way.
        _ => Purpose::Arguments,
    };
    let with_group = [pg_type, PgType::Int8];
    KeyTable::new(if has_groups { &with_group } else { &with_group[..1] }, purpose, rows)
}
