//! Window functions: rows are sorted by partition and order once for all calls that share both, then each call goes over
//! the sorted rows (PostgreSQL: nodeWindowAgg.c, windowfuncs.c).
//!
//! Aggregates over a whole partition are groups; over frames that begin with the partition they run along with the rows;
//! over other frames every frame is added up by itself, within the budget of joined rows.

mod frame;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, Int64Array, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::take;
use arrow::datatypes::Int32Type;

use self::frame::Frames;
use super::accumulate::{Groups, Running, accumulator};
use super::arrays::{concatenate, internal};
use super::batch::{Batch, gathered_bytes, take_rows};
use super::eval::is_bool;
use super::key_table::{self, KeyTable, Purpose};
use super::order::{self, Direction, codes, sorted_rows};
use super::{Flow, Run, Sink};
use crate::binder::{BoundExpr, FrameBound, SortKey, WindowCall, WindowKind};
use crate::catalog::functions::{AggregateFunction, EvalError, WindowFunction};
use crate::planner::expression::{is_same, type_of};
use crate::planner::node::PlanNode;
use crate::statement::ast::{Exclusion, FrameUnit};
use crate::types::PgType;

/// Rows of frames that are added up at once.
const PAIRS: usize = 65_536;

/// Whether the call can be run; asked when the statement is planned.
pub(super) fn check(call: &WindowCall) -> Result<(), EvalError> {
    call.partition.iter().try_for_each(|expr| key_table::check(type_of(expr)))?;
    call.order.iter().try_for_each(|key| order::check(type_of(&key.expr)))?;
    if let WindowKind::Aggregate(function) = call.function {
        accumulator(function, call.arguments.first().map(type_of), &[], call.expr_type.pg_type)?;
    }
    Ok(())
}

impl Run<'_> {
    pub(super) fn window(
        &self,
        input: &PlanNode,
        calls: &[WindowCall],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        calls.iter().try_for_each(|call| frame::check_distances(call, self.environment))?;
        let Some(all) = self.concatenate(input, self.collect(input)?)? else { return Ok(Flow::Continue(())) };
        let mut results: Vec<Option<ArrayRef>> = vec![None; calls.len()];
        let mut emitted = None;
        for first in 0..calls.len() {
            if results[first].is_some() {
                continue;
            }
            let sorted = self.sorted(&all, &calls[first])?;
            for (call, result) in calls.iter().zip(&mut results).skip(first) {
                if result.is_none() && has_same_order(&calls[first], call) {
                    self.check_cancelled()?;
                    let in_order = self.call_over(&all, &sorted, call)?;
                    self.charge(in_order.get_array_memory_size())?;
                    *result = Some(self.taken(&in_order, &sorted.inverse())?);
                }
            }
            emitted = Some(sorted.order);
        }
        let mut output = all;
        for result in results {
            output.push_array(result.ok_or_else(|| EvalError::Beyond("a window call without an order".to_owned()))?);
        }
        let Some(order) = emitted else { return sink(output) };
        sink(output.select(&Arc::new(UInt32Array::from(order)))?)
    }

    /// Rows of an array, which wait for the others' results.
    fn taken(&self, array: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef, EvalError> {
        self.charge(gathered_bytes(array, rows.len()))?;
        take_rows(array, rows)
    }

    fn sorted(&self, batch: &Batch, call: &WindowCall) -> Result<Sorted, EvalError> {
        let rows = batch.rows;
        self.charge(rows * 32)?;
        let partition = self.numbered(batch, call.partition.iter())?;
        let peers = match call.order.is_empty() {
            true => None,
            false => self.numbered(batch, call.order.iter().map(|key| &key.expr))?,
        };
        let mut keys = Vec::with_capacity(call.order.len() + 1);
        if let Some(ids) = &partition {
            let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids.iter().map(|id| i64::from(*id))));
            keys.push(codes(&ids, PgType::Int8, Direction { descending: false, nulls_first: false })?);
        }
        for key in &call.order {
            let values = self.environment.evaluate_column(&key.expr, batch)?;
            let direction = Direction { descending: key.descending, nulls_first: key.nulls_first };
            keys.push(codes(&values, type_of(&key.expr), direction)?);
        }
        let order = sorted_rows(keys, rows);
        let differs = |ids: &Option<Vec<u32>>, at: usize| {
            ids.as_ref().is_some_and(|ids| ids[order[at] as usize] != ids[order[at - 1] as usize])
        };
        let (mut partitions, mut groups) = (Vec::new(), Vec::new());
        let (mut partition_of, mut group_of) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        for at in 0..rows {
            let is_first = at == 0 || differs(&partition, at);
            if is_first {
                partitions.push(at);
            }
            if is_first || differs(&peers, at) {
                groups.push(at);
            }
            partition_of.push(partitions.len() as u32 - 1);
            group_of.push(groups.len() as u32 - 1);
        }
        partitions.push(rows);
        groups.push(rows);
        Ok(Sorted { order, partitions, groups, partition_of, group_of })
    }

    /// A number for each row, equal for equal keys; None without keys.
    fn numbered<'e>(
        &self,
        batch: &Batch,
        keys: impl Iterator<Item = &'e BoundExpr> + Clone,
    ) -> Result<Option<Vec<u32>>, EvalError> {
        let types: Vec<PgType> = keys.clone().map(type_of).collect();
        if types.is_empty() {
            return Ok(None);
        }
        let mut table = KeyTable::new(&types, Purpose::Same, batch.rows)?;
        let arrays = keys.map(|key| self.environment.evaluate_column(key, batch));
        let ids = table.assign(&arrays.collect::<Result<Vec<_>, _>>()?, batch.rows)?;
        self.charge(table.bytes())?;
        Ok(Some(ids))
    }

    /// The call's results in sorted order.
    fn call_over(&self, batch: &Batch, sorted: &Sorted, call: &WindowCall) -> Result<ArrayRef, EvalError> {
        let order = UInt32Array::from(sorted.order.clone());
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            let values = self.environment.evaluate_column(argument, batch)?;
            arguments.push(self.taken(&values, &order)?);
        }
        match call.function {
            WindowKind::Function(function) => self.function_over(batch, sorted, call, function, &arguments),
            WindowKind::Aggregate(function) => {
                let kept = match &call.filter {
                    None => None,
                    Some(filter) => {
                        let keep = is_bool(&self.environment.evaluate_booleans(filter, batch)?, Some(true));
                        Some(BooleanBuffer::collect_bool(batch.rows, |at| keep.value(sorted.order[at] as usize)))
                    }
                };
                self.aggregate_over(batch, sorted, call, function, &arguments, kept.as_ref())
            }
        }
    }

    fn function_over(
        &self,
        batch: &Batch,
        sorted: &Sorted,
        call: &WindowCall,
        function: WindowFunction,
        arguments: &[ArrayRef],
    ) -> Result<ArrayRef, EvalError> {
        let rows = sorted.order.len();
        let start_of = |at: usize| sorted.partitions[sorted.partition_of[at] as usize];
        let end_of = |at: usize| sorted.partitions[sorted.partition_of[at] as usize + 1];
        let peers_start = |at: usize| sorted.groups[sorted.group_of[at] as usize];
        let peers_end = |at: usize| sorted.groups[sorted.group_of[at] as usize + 1];
        let integers = |value: &dyn Fn(usize) -> usize| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..rows).map(|at| value(at) as i64)))
        };
        let shares = |value: &dyn Fn(usize) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values((0..rows).map(value)))
        };
        use WindowFunction as F;
        if !matches!(function, F::FirstValue | F::LastValue | F::NthValue) && may_lead_beyond(call) {
            // PostgreSQL looks for the frame's ends whether or not the function does (nodeWindowAgg.c, ExecWindowAgg).
            self.frames(batch, sorted, call)?;
        }
        Ok(match function {
            F::RowNumber => integers(&|at| at - start_of(at) + 1),
            F::Rank => integers(&|at| peers_start(at) - start_of(at) + 1),
            F::DenseRank => integers(&|at| (sorted.group_of[at] - sorted.group_of[start_of(at)]) as usize + 1),
            F::PercentRank => shares(&|at| {
                let others = end_of(at) - start_of(at) - 1;
                if others == 0 { 0.0 } else { (peers_start(at) - start_of(at)) as f64 / others as f64 }
            }),
            F::CumeDist => shares(&|at| (peers_end(at) - start_of(at)) as f64 / (end_of(at) - start_of(at)) as f64),
            F::Ntile => ntile(sorted, &arguments[0])?,
            F::Lag | F::Lead => {
                let pg_type = type_of(&call.arguments[0]);
                shifted(sorted, arguments, function == F::Lag, pg_type)?
            }
            F::FirstValue | F::LastValue | F::NthValue => {
                let frames = self.frames(batch, sorted, call)?;
                let mut places = Vec::with_capacity(rows);
                for at in 0..rows {
                    let place = match function {
                        F::FirstValue => frames.nth_of_frame(at, 0),
                        F::LastValue => frames.last_of_frame(at),
                        _ => nth(&arguments[1], at)?.and_then(|n| frames.nth_of_frame(at, n)),
                    };
                    places.push(place.map(|place| place as u32));
                }
                self.taken(&arguments[0], &UInt32Array::from(places))?
            }
        })
    }

    fn aggregate_over(
        &self,
        batch: &Batch,
        sorted: &Sorted,
        call: &WindowCall,
        function: AggregateFunction,
        values: &[ArrayRef],
        kept: Option<&BooleanBuffer>,
    ) -> Result<ArrayRef, EvalError> {
        let rows = sorted.order.len();
        let make = || accumulator(function, call.arguments.first().map(type_of), &[], call.expr_type.pg_type);
        let takes_all = call.frame.exclusion == Exclusion::Nothing;
        let is_whole = takes_all
            && matches!(call.frame.start, FrameBound::UnboundedPreceding)
            && (matches!(call.frame.end, FrameBound::UnboundedFollowing)
                || (call.order.is_empty()
                    && call.frame.unit == FrameUnit::Range
                    && matches!(call.frame.end, FrameBound::CurrentRow)));
        if is_whole {
            let count = sorted.partitions.len() - 1;
            let mut states = make()?;
            let (ids, values) = thinned(&sorted.partition_of, values, kept)?;
            let groups = Groups { ids: Some(&ids), rows: ids.len(), count, before: 0, is_complete: kept.is_none() };
            states.update_all(&groups, &values)?;
            let results = states.finish(count)?;
            let places = UInt32Array::from(sorted.partition_of.clone());
            return self.taken(&results, &places);
        }
        let runs = takes_all
            && matches!(call.frame.start, FrameBound::UnboundedPreceding)
            && matches!(call.frame.end, FrameBound::CurrentRow);
        if runs {
            let by_row: Vec<u32>;
            let (groups, starts): (&[u32], Vec<bool>) = match call.frame.unit {
                FrameUnit::Rows => {
                    by_row = (0..rows as u32).collect();
                    let starts = (0..rows).map(|at| sorted.partitions[sorted.partition_of[at] as usize] == at);
                    (&by_row, starts.collect())
                }
                FrameUnit::Range | FrameUnit::Groups => {
                    let firsts = &sorted.groups[..sorted.groups.len() - 1];
                    let starts = firsts.iter().map(|at| sorted.partitions[sorted.partition_of[*at] as usize] == *at);
                    (&sorted.group_of, starts.collect())
                }
            };
            let mut states = make()?;
            if states.run(&Running { groups, starts: &starts, kept }, values.first())? {
                let results = states.finish(starts.len())?;
                return self.taken(&results, &UInt32Array::from(groups.to_vec()));
            }
        }
        let frames = self.frames(batch, sorted, call)?;
        let mut states = make()?;
        let (mut ids, mut places) = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS));
        let mut charged = 0;
        let mut add = |ids: &mut Vec<u32>, places: &mut Vec<u32>| {
            let members = UInt32Array::from(std::mem::take(places));
            let values = values.iter().map(|values| take_rows(values, &members));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            let own = std::mem::take(ids);
            let groups = Groups { ids: Some(&own), rows: own.len(), count: rows, before: rows, is_complete: false };
            states.update_all(&groups, &values)?;
            self.charge_growth(&mut charged, states.bytes())
        };
        // Those that a FILTER drops, too.
        let mut looked_at = 0;
        for at in 0..rows {
            for member in frames.members(at).into_iter().flatten() {
                looked_at += 1;
                if looked_at == PAIRS {
                    looked_at = 0;
                    self.check_cancelled()?;
                    self.count_join_rows(PAIRS)?;
                }
                if kept.is_none_or(|kept| kept.value(member)) {
                    ids.push(at as u32);
                    places.push(member as u32);
                }
                if ids.len() == PAIRS {
                    add(&mut ids, &mut places)?;
                }
            }
        }
        add(&mut ids, &mut places)?;
        states.finish(rows)
    }

    /// Which rows the call's frames take in.
    fn frames<'s>(&self, batch: &Batch, sorted: &'s Sorted, call: &WindowCall) -> Result<Frames<'s>, EvalError> {
        let key = match call.order.as_slice() {
            [key] if is_by_value(call) => {
                let values = self.environment.evaluate_column(&key.expr, batch)?;
                Some(take(&values, &UInt32Array::from(sorted.order.clone()), None).map_err(internal)?)
            }
            _ => None,
        };
        Frames::new(sorted, call, key.as_ref(), self.environment)
    }
}

/// Whether looking for the ends of its frames may raise an error: the distance is added to a value of a bounded type.
fn may_lead_beyond(call: &WindowCall) -> bool {
    let is_bounded = |key: &SortKey| {
        matches!(type_of(&key.expr), PgType::Date | PgType::Timestamp | PgType::Timestamptz | PgType::Interval)
    };
    is_by_value(call) && call.order.iter().any(is_bounded)
}

/// Whether its frames end at a distance from a row's value.
fn is_by_value(call: &WindowCall) -> bool {
    let has_distance = |bound: &FrameBound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
    call.frame.unit == FrameUnit::Range && (has_distance(&call.frame.start) || has_distance(&call.frame.end))
}

fn has_same_order(a: &WindowCall, b: &WindowCall) -> bool {
    let same_key = |(a, b): (&SortKey, &SortKey)| {
        a.descending == b.descending && a.nulls_first == b.nulls_first && is_same(&a.expr, &b.expr)
    };
    a.partition.len() == b.partition.len()
        && a.order.len() == b.order.len()
        && a.partition.iter().zip(&b.partition).all(|(a, b)| is_same(a, b))
        && a.order.iter().zip(&b.order).all(same_key)
}

/// Rows in order of partition and keys.
struct Sorted {
    order: Vec<u32>,
    /// Where each partition begins, and the end.
    partitions: Vec<usize>,
    /// Where each group of peers begins, and the end.
    groups: Vec<usize>,
    /// By place in the order.
    partition_of: Vec<u32>,
    group_of: Vec<u32>,
}

impl Sorted {
    /// The place of each row.
    fn inverse(&self) -> UInt32Array {
        let mut places = vec![0; self.order.len()];
        self.order.iter().enumerate().for_each(|(place, row)| places[*row as usize] = place as u32);
        UInt32Array::from(places)
    }
}

/// The groups and values of the rows that a FILTER lets through.
fn thinned(
    ids: &[u32],
    values: &[ArrayRef],
    kept: Option<&BooleanBuffer>,
) -> Result<(Vec<u32>, Vec<ArrayRef>), EvalError> {
    let Some(kept) = kept else { return Ok((ids.to_vec(), values.to_vec())) };
    let own = kept.set_indices().map(|at| ids[at]).collect();
    let keep = BooleanArray::new(kept.clone(), None);
    let values = values.iter().map(|values| arrow::compute::filter(values, &keep).map_err(internal));
    Ok((own, values.collect::<Result<_, _>>()?))
}

/// PostgreSQL: window_ntile. The number of buckets is that of the first row where it is not NULL; the rows before have none, and
/// counting begins there, in buckets of the whole partition's size.
fn ntile(sorted: &Sorted, buckets: &ArrayRef) -> Result<ArrayRef, EvalError> {
    let buckets = buckets.as_primitive::<Int32Type>();
    let mut results: Vec<Option<i32>> = Vec::with_capacity(sorted.order.len());
    for pair in sorted.partitions.windows(2) {
        let (start, end) = (pair[0], pair[1]);
        let Some(first) = (start..end).find(|at| buckets.is_valid(*at)) else {
            results.extend(std::iter::repeat_n(None, end - start));
            continue;
        };
        results.extend(std::iter::repeat_n(None, first - start));
        let count = usize::try_from(buckets.value(first)).ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| EvalError::Raises("argument of ntile must be greater than zero".to_owned()))?;
        let (size, larger) = ((end - start) / count, (end - start) % count);
        results.extend((0..end - first).map(|at| {
            let in_larger = larger * (size + 1);
            let bucket = if at < in_larger { at / (size + 1) } else { larger + (at - in_larger) / size.max(1) };
            Some(bucket as i32 + 1)
        }));
    }
    Ok(Arc::new(Int32Array::from(results)))
}

/// lag and lead (PostgreSQL: leadlag_common).
fn shifted(sorted: &Sorted, arguments: &[ArrayRef], is_back: bool, pg_type: PgType) -> Result<ArrayRef, EvalError> {
    let rows = sorted.order.len();
    let offsets = arguments.get(1).map(|offsets| offsets.as_primitive::<Int32Type>());
    let mut places: Vec<Option<u32>> = Vec::with_capacity(rows);
    for at in 0..rows {
        let offset = match offsets {
            None => 1,
            Some(offsets) if offsets.is_null(at) => {
                places.push(None);
                continue;
            }
            Some(offsets) => i64::from(offsets.value(at)),
        };
        let partition = sorted.partition_of[at] as usize;
        let range = sorted.partitions[partition] as i64..sorted.partitions[partition + 1] as i64;
        let place = if is_back { at as i64 - offset } else { at as i64 + offset };
        places.push(if range.contains(&place) {
            Some(place as u32)
        } else {
            // The default of this row, which stands behind all values.
            arguments.get(2).map(|_| (rows + at) as u32)
        });
    }
    let places = UInt32Array::from(places);
    match arguments.get(2) {
        None => take_rows(&arguments[0], &places),
        Some(defaults) => {
            let both = concatenate(pg_type, &[arguments[0].clone(), defaults.clone()])?;
            take_rows(&both, &places)
        }
    }
}

/// The distance from the frame's first row that nth_value asks for.
fn nth(numbers: &ArrayRef, at: usize) -> Result<Option<usize>, EvalError> {
    let numbers = numbers.as_primitive::<Int32Type>();
    if numbers.is_null(at) {
        return Ok(None);
    }
    match usize::try_from(numbers.value(at)) {
        Ok(number @ 1..) => Ok(Some(number - 1)),
        _ => Err(EvalError::Raises("argument of nth_value must be greater than zero".to_owned())),
    }
}
