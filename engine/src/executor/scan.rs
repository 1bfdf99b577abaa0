//! Reads a table version: rows by key where the filters name one, else chunk by chunk, skipping chunks whose range of
//! values excludes a filter. Columns are slices of the chunk's arrays; rows that are deleted are left out.

use arrow::array::UInt32Array;
use std::sync::Arc;

use super::batch::Batch;
use super::best::Picked;
use super::bound::Bound;
use super::point::given;
use super::ranges::{Steps, few_rows, ranges, rows_within};
use super::{Batching, Flow, Run, Sink};
use crate::binder::BoundExpr;
use crate::catalog::functions::EvalError;
use crate::planner::Plan;
use crate::planner::node::{LookUp, PlanNode, Scan};
use crate::snapshot::Snapshot;
use crate::table::sketch::SKETCH_ROWS_MIN;
use crate::table::{Chunk, ChunkVersion, RowAt, TableVersion};
use crate::types::{PgType, Value};

/// Tables with fewer rows are read through rather than by keys of columns that are no primary key; where everything is compared with
/// PostgreSQL, as in the tests, next to none.
pub(super) const INDEX_ROWS_MIN: usize = if cfg!(debug_assertions) { 24 } else { 1_024 };
/// So many different values a column must have in each chunk of any size for that finding the rows of one is quicker than reading all:
/// of integers and times, of which many are compared at once, and of others.
const ORDINALS_MIN: f64 = 256.0;
const OTHERS_MIN: f64 = 16.0;
/// Where it turns out to be more than one row of so many, the table is read through after all.
pub(super) const FOUND_PER_ROWS: usize = if cfg!(debug_assertions) { 1 } else { 8 };

impl Run<'_> {
    pub(super) fn scan(&self, scan: &Scan, batching: Batching, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let table = self.table(scan.table)?;
        if let Some(look_ups) = chosen_look_ups(scan, table)
            && let Some(flow) = self.scan_by_key(scan, table, &look_ups, sink)?
        {
            return Ok(flow);
        }
        if let Some(flow) = self.scan_keyed(scan, table, sink)? {
            return Ok(flow);
        }
        let ranges = ranges(scan, &self.environment);
        let is_excluded = |version: &ChunkVersion| {
            version.alive_rows == 0 || ranges.iter().any(|range| range.excludes(&version.chunk, range.column))
        };
        // The best chunks first, to where no row is wanted any more.
        let bound = self.bound_of(scan);
        let chunks = match &bound {
            Some(bound) => bound.ordered(&table.chunks),
            None => table.chunks.iter().map(|version| (0, version)).collect(),
        };
        // Where rows that pass are rare, the best ones are not sought again.
        let (mut may_sort, mut are_rare) = (true, false);
        for (first, version) in chunks {
            if bound.as_ref().is_some_and(|bound| first > bound.threshold.get()) {
                break;
            }
            if is_excluded(version) {
                continue;
            }
            let within = rows_within(&version.chunk, &ranges);
            let mut left = None;
            if let Some(bound) = bound.as_deref().filter(|_| !are_rare && !version.chunk.is_few(within.len()))
                && let Some(best) = bound.rows_in_order(&version.chunk, &ranges, &mut may_sort)
            {
                match self.scan_best(scan, version, &best, bound, sink)? {
                    Picked::All => continue,
                    Picked::Stopped => return Ok(Flow::Break(())),
                    Picked::Left(rows) => (left, are_rare) = (Some(rows), true),
                }
            }
            let version = left.as_ref().unwrap_or(version);
            if let Some(rows) = few_rows(&version.chunk, &ranges, within.clone(), &mut may_sort) {
                if self.scan_few(scan, version, rows, sink)?.is_break() {
                    return Ok(Flow::Break(()));
                }
                continue;
            }
            if self.scan_chunk(scan, version, within, batching, bound.as_deref(), sink)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }

    /// Those of these rows of the chunk that are alive.
    pub(super) fn scan_few(
        &self,
        scan: &Scan,
        version: &ChunkVersion,
        mut rows: Vec<u32>,
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        self.check_cancelled()?;
        rows.retain(|row| version.is_alive(*row as usize));
        self.scan_selected(scan, &version.chunk, rows, &scan.filters, &mut |batch| {
            let batch = self.of_wanted(scan, batch)?;
            if batch.rows > 0 { sink(batch) } else { Ok(Flow::Continue(())) }
        })
    }

    /// The chunk's rows of those numbers, the best ones first where the bound's column ascends.
    fn scan_chunk(
        &self,
        scan: &Scan,
        version: &ChunkVersion,
        within: std::ops::Range<usize>,
        batching: Batching,
        bound: Option<&Bound>,
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        let chunk = &version.chunk;
        // Predicates may copy; in whole chunks that would leave the caches.
        let step = if scan.filters.is_empty() { batching.rows() } else { Batching::Small.rows() };
        let is_ordered = bound.is_some_and(|bound| bound.is_ordered_in(chunk));
        let steps = match bound.filter(|_| is_ordered) {
            Some(bound) => Steps::best_first(within, step, bound.is_descending()),
            None => Steps::even(within, step),
        };
        for rows in steps {
            self.check_cancelled()?;
            if is_ordered && bound.is_some_and(|bound| bound.is_past(chunk, &rows)) {
                break;
            }
            let (offset, rows) = (rows.start, rows.len());
            let is_whole = rows == chunk.rows;
            let columns = scan.columns.iter().map(|column| match is_whole {
                true => chunk.columns[*column].clone(),
                false => chunk.columns[*column].slice(offset, rows),
            });
            let mut alive = version.alive.as_ref().map(|alive| alive.slice(offset, rows));
            if let Some(wanted) = bound.map(|bound| bound.wanted(chunk, offset, rows)).transpose()?.flatten() {
                alive = match alive {
                    Some(alive) => Some(&alive & &wanted),
                    None => Some(wanted),
                };
            }
            let batch = self.filter(Batch::of_shared(columns.collect(), rows), &scan.filters, alive, scan.outputs)?;
            let batch = self.of_wanted(scan, batch)?;
            if batch.rows > 0 && sink(batch)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }

    /// None: the key has too many rows.
    fn scan_by_key(
        &self,
        scan: &Scan,
        table: &TableVersion,
        look_ups: &[&LookUp],
        sink: &mut Sink<'_>,
    ) -> Result<Option<Flow>, EvalError> {
        let mut key = Vec::with_capacity(look_ups.len());
        for look_up in look_ups {
            let value = super::eval::constant(&look_up.value, self.environment.parameters, self.environment.context)?;
            match as_column_type(value, look_up.column_type) {
                Some(value) => key.push(value),
                // NULL, or an integer that the column cannot hold.
                None => return Ok(Some(Flow::Continue(()))),
            }
        }
        let columns: Vec<usize> = look_ups.iter().map(|look_up| look_up.column).collect();
        let found = table.find(&columns, &key);
        if columns != table.schema.primary_key && found.len() > table.rows / FOUND_PER_ROWS {
            return Ok(None);
        }
        let is_done = |filter: usize| look_ups.iter().any(|look_up| look_up.filter == filter);
        let rest = scan.filters.iter().enumerate().filter(|(filter, _)| !is_done(*filter));
        let rest: Vec<BoundExpr> = rest.map(|(_, predicate)| predicate.clone()).collect();
        self.scan_rows(scan, table, &found, &rest, sink).map(Some)
    }

    /// These rows, chunk by chunk, those of a chunk together.
    pub(super) fn scan_rows(
        &self,
        scan: &Scan,
        table: &TableVersion,
        found: &[RowAt],
        filters: &[BoundExpr],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        for run in found.chunk_by(|a, b| a.chunk == b.chunk) {
            self.check_cancelled()?;
            let chunk = &table.chunks[run[0].chunk as usize].chunk;
            let rows = run.iter().map(|at| at.row).collect();
            if self.scan_selected(scan, chunk, rows, filters, sink)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }

    fn scan_selected(
        &self,
        scan: &Scan,
        chunk: &Chunk,
        rows: Vec<u32>,
        filters: &[BoundExpr],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        let columns = scan.columns.iter().map(|column| chunk.columns[*column].clone()).collect();
        let whole = Batch::of_shared(columns, chunk.rows);
        let batch = match rows[..] {
            [] => return Ok(Flow::Continue(())),
            [only] => whole.slice(only as usize, 1),
            _ => whole.select(&Arc::new(UInt32Array::from(rows)))?,
        };
        let batch = self.filter(batch, filters, None, scan.outputs)?;
        if batch.rows > 0 { sink(batch) } else { Ok(Flow::Continue(())) }
    }
}

/// The filters to find rows by: the whole primary key, by whose index PostgreSQL reads, too, or else one column of a large table, that with
/// the most values.
pub(super) fn chosen_look_ups<'s>(scan: &'s Scan, table: &TableVersion) -> Option<Vec<&'s LookUp>> {
    let by_column = |column: &usize| scan.look_ups.iter().find(|look_up| look_up.column == *column);
    let key = &table.schema.primary_key;
    if !key.is_empty()
        && let Some(look_ups) = key.iter().map(by_column).collect::<Option<Vec<_>>>()
    {
        return Some(look_ups);
    }
    if scan.look_ups.is_empty() || table.rows < INDEX_ROWS_MIN {
        return None;
    }
    let values_of = |look_up: &'s LookUp| Some((values_per_chunk(table, look_up.column)?, look_up));
    let reached = scan.look_ups.iter().filter(|look_up| look_up.filter <= scan.reached);
    let best = reached.filter_map(values_of).max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map(|(_, look_up)| vec![look_up])
}

/// Rows that the plan looks at, about. What is found by its primary key is one, and those of which an index has to be made first; of what
/// makes rows of its own, all that it may be.
pub fn rows_looked_at(plan: &Plan, snapshot: &Snapshot, parameters: &[Value]) -> usize {
    fn of_node(node: &PlanNode, of_scan: &dyn Fn(&Scan) -> usize) -> usize {
        let mut rows = match node {
            PlanNode::Scan(scan) => of_scan(scan),
            PlanNode::Series { bounds, .. } => series_rows(bounds),
            PlanNode::Expand(_) | PlanNode::Recursive(_) => usize::MAX,
            _ => 0,
        };
        node.for_each_input(&mut |input| rows = rows.saturating_add(of_node(input, of_scan)));
        rows
    }
    let of_scan = |scan: &Scan| {
        let Some(table) = snapshot.tables.get(&scan.table) else { return 0 };
        match key_of(scan, table, parameters) {
            Some(key) => 1 + table.rows_to_index(&table.schema.primary_key, &key),
            None => rows_found(scan, table, parameters).unwrap_or(table.rows),
        }
    };
    plan.trees().fold(0, |rows, tree| rows.saturating_add(of_node(tree, &of_scan)))
}

/// The primary key that the scan finds its row by, if it is told by the statement and its parameters alone.
fn key_of(scan: &Scan, table: &TableVersion, parameters: &[Value]) -> Option<Vec<Value>> {
    let value_of = |column: &usize| {
        let look_up = scan.look_ups.iter().find(|look_up| look_up.column == *column)?;
        let value = match &look_up.value {
            BoundExpr::Literal { value, .. } => value.clone(),
            // Behind the statement's own are those of subqueries.
            BoundExpr::Parameter { index, .. } => parameters.get(*index)?.clone(),
            _ => return None,
        };
        as_column_type(value, look_up.column_type)
    };
    let key = &table.schema.primary_key;
    if key.is_empty() { None } else { key.iter().map(value_of).collect() }
}

/// How many rows generate_series gives for literals.
fn series_rows(bounds: &[BoundExpr]) -> usize {
    let number = |bound: &BoundExpr| match bound {
        BoundExpr::Literal { value: Value::Int4(value), .. } => Some(i64::from(*value)),
        BoundExpr::Literal { value: Value::Int8(value), .. } => Some(*value),
        _ => None,
    };
    let rows = match bounds {
        [first, last] => number(first).zip(number(last)).and_then(|(first, last)| last.checked_sub(first)),
        _ => None,
    };
    rows.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(0))
}

/// How many different values the column has in that chunk of any size that has the fewest. None: too few to find rows by.
fn values_per_chunk(table: &TableVersion, column: usize) -> Option<f64> {
    let is_ordinal = table.schema.columns[column].pg_type?.is_ordinal();
    let least = if is_ordinal { ORDINALS_MIN } else { OTHERS_MIN };
    let distinct = |version: &ChunkVersion| version.chunk.distinct(column);
    let fewest = table.chunks.iter().filter_map(distinct).fold(f64::INFINITY, f64::min);
    (fewest >= least && table.may_index(column)).then_some(fewest)
}

/// Rows with one value of the column, about.
pub(super) fn rows_per_value(table: &TableVersion, column: usize) -> usize {
    let rows = |version: &ChunkVersion| version.chunk.rows as f64 / version.chunk.distinct(column).unwrap_or(f64::MAX);
    table.chunks.iter().map(rows).sum::<f64>().ceil() as usize
}

/// Rows that the scan finds by one column, about, where nothing has to be made ready for that.
fn rows_found(scan: &Scan, table: &TableVersion, parameters: &[Value]) -> Option<usize> {
    if scan.look_ups.is_empty() || table.rows < INDEX_ROWS_MIN {
        return None;
    }
    let of_look_up = |look_up: &LookUp| {
        let value = as_column_type(given(&look_up.value, parameters)?.clone(), look_up.column_type)?;
        let is_ready = table.rows_to_index(&[look_up.column], &[value]) == 0;
        let rows = |version: &ChunkVersion| match version.chunk.rows {
            rows @ ..SKETCH_ROWS_MIN => Some(rows as f64),
            rows => Some(rows as f64 / version.chunk.known_distinct(look_up.column)?.max(1.0)),
        };
        let found = table.chunks.iter().map(rows).sum::<Option<f64>>()?;
        is_ready.then_some(found as usize)
    };
    // Any of them may be chosen.
    scan.look_ups.iter().map(of_look_up).try_fold(0, |most, found| Some(usize::max(most, found?)))
}

/// The value as the column's type; None if no value of that type equals it.
pub(crate) fn as_column_type(value: Value, column: PgType) -> Option<Value> {
    if value.is_null() {
        return None;
    }
    if !column.is_integer() {
        return Some(value);
    }
    let number = value.ordinal()?;
    match column {
        PgType::Int2 => i16::try_from(number).ok().map(Value::Int2),
        PgType::Int4 => i32::try_from(number).ok().map(Value::Int4),
        _ => Some(Value::Int8(number)),
    }
}
