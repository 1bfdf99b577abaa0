//! Joins by ranges: where a condition compares a column of the build side with what the probing row knows (`at >= day`,
//! `valid_from <= at`), the rows of each key are kept in the order of that column, and a row meets those between its bounds only. All conditions are asked of these pairs as ever, so that the bounds may be too wide, never too narrow.

use std::cell::OnceCell;

use arrow::array::{Array, ArrayRef};

use super::Run;
use super::accumulate::integers;
use super::batch::Batch;
use super::eval::Environment;
use super::join::{BuildSide, PAIRS_MAX, Pairs};
use super::key_table::KeyTable;
use crate::binder::BoundExpr;
use crate::catalog::functions::EvalError;
use crate::planner::expression::columns_of;
use crate::types::PgType;

/// Rows that each key of a build side must have on average.
const ROWS_OF_KEY_MIN: usize = if cfg!(debug_assertions) { 1 } else { 8 };

/// Which conditions bound a column of the build side.
#[derive(Debug)]
pub(super) struct Range<'n> {
    /// Of the build side's own.
    column: usize,
    bounds: Vec<Bound<'n>>,
}

#[derive(Debug)]
struct Bound<'n> {
    /// Over the columns of the probing rows.
    expr: &'n BoundExpr,
    is_lower: bool,
    is_inclusive: bool,
}

impl<'n> Range<'n> {
    /// Of the conditions, with the build side's columns from `base` to `end`, the column that is bounded best: on both sides rather
    /// than on one.
    pub(super) fn of(filters: impl IntoIterator<Item = &'n BoundExpr>, base: usize, end: usize) -> Option<Self> {
        let mut ranges: Vec<Self> = Vec::new();
        for filter in filters {
            let Some((column, bound)) = bound(filter, base, end) else { continue };
            match ranges.iter_mut().find(|range| range.column == column) {
                Some(range) => range.bounds.push(bound),
                None => ranges.push(Self { column, bounds: vec![bound] }),
            }
        }
        let both = ranges.iter().position(Self::is_closed);
        (!ranges.is_empty()).then(|| ranges.swap_remove(both.unwrap_or(0)))
    }

    /// Whether it has a lower and an upper bound.
    pub(super) fn is_closed(&self) -> bool {
        [true, false].iter().all(|is_lower| self.bounds.iter().any(|bound| bound.is_lower == *is_lower))
    }

    /// By row of the batch: between which values, both included, what it meets is; nothing if the first is the greater. None: an
    /// expression has an error, which whoever computes the condition is to meet.
    fn limits(&self, environment: &Environment<'_>, batch: &Batch) -> Option<Vec<(i64, i64)>> {
        let mut limits = vec![(i64::MIN, i64::MAX); batch.rows];
        for bound in &self.bounds {
            let values = environment.evaluate_column(bound.expr, batch).ok()?;
            let (value, nulls) = (integers(&values), values.logical_nulls());
            for (row, limit) in limits.iter_mut().enumerate() {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    *limit = NOTHING;
                    continue;
                }
                let value = value(row);
                match (bound.is_lower, bound.is_inclusive) {
                    (true, true) => limit.0 = limit.0.max(value),
                    (false, true) => limit.1 = limit.1.min(value),
                    (true, false) => match value.checked_add(1) {
                        Some(next) => limit.0 = limit.0.max(next),
                        None => *limit = NOTHING,
                    },
                    (false, false) => match value.checked_sub(1) {
                        Some(before) => limit.1 = limit.1.min(before),
                        None => *limit = NOTHING,
                    },
                }
            }
        }
        Some(limits)
    }
}

/// No value is between these, and no other bound makes it so.
const NOTHING: (i64, i64) = (i64::MAX, i64::MIN);

/// A comparison of a column of the build side, by itself, with what the probing row has.
fn bound(filter: &BoundExpr, base: usize, end: usize) -> Option<(usize, Bound<'_>)> {
    let BoundExpr::Call { function, arguments, .. } = filter else { return None };
    let [left, right] = arguments.as_slice() else { return None };
    let is_ordered = matches!(
        function.arguments,
        [PgType::Int2, PgType::Int2]
            | [PgType::Int4, PgType::Int4]
            | [PgType::Int8, PgType::Int8]
            | [PgType::Date, PgType::Date]
            | [PgType::Timestamp, PgType::Timestamp]
            | [PgType::Timestamptz, PgType::Timestamptz]
    );
    let (is_less, is_inclusive) = match function.name {
        "<" => (true, false),
        "<=" => (true, true),
        ">" => (false, false),
        ">=" => (false, true),
        _ => return None,
    };
    let own = |expr: &BoundExpr| match expr {
        BoundExpr::Column { index, .. } if (base..end).contains(index) => Some(*index - base),
        _ => None,
    };
    let is_others = |expr: &BoundExpr| {
        let columns = columns_of(expr);
        !columns.is_empty() && !columns.iter().any(|column| (base..end).contains(column))
    };
    if !is_ordered {
        return None;
    }
    match (own(left), own(right)) {
        (Some(column), None) if is_others(right) => {
            Some((column, Bound { expr: right, is_lower: !is_less, is_inclusive }))
        }
        (None, Some(column)) if is_others(left) => {
            Some((column, Bound { expr: left, is_lower: is_less, is_inclusive }))
        }
        _ => None,
    }
}

/// A build side in the order of a range's column, made when a batch is worth it.
#[derive(Debug, Default)]
pub(super) struct Ranged<'n> {
    range: Option<Range<'n>>,
    ordered: OnceCell<Ordered>,
}

/// The rows of each key whose value is not NULL, by value.
#[derive(Debug)]
struct Ordered {
    starts: Vec<u32>,
    values: Vec<i64>,
    rows: Vec<u32>,
}

impl<'n> Ranged<'n> {
    pub(super) fn new(range: Option<Range<'n>>) -> Self {
        Self { range, ordered: OnceCell::new() }
    }

    /// For a batch: what its rows' bounds leave. None: as many pairs as the keys give, or not enough of them to be looked at.
    pub(super) fn within(
        &self,
        run: &Run<'_>,
        batch: &Batch,
        side: &BuildSide,
    ) -> Result<Option<Within<'_>>, EvalError> {
        let Some(range) = &self.range else { return Ok(None) };
        let rows_of_key = side.rows / side.key_count();
        let pairs = batch.rows.saturating_mul(rows_of_key);
        // Putting a row into its place costs about as much as looking at a few pairs.
        let worth = if cfg!(debug_assertions) { pairs.saturating_mul(16) } else { pairs / 4 };
        if rows_of_key < ROWS_OF_KEY_MIN || (self.ordered.get().is_none() && worth < side.rows) {
            return Ok(None);
        }
        let Some(limits) = range.limits(&run.environment, batch) else { return Ok(None) };
        let ordered = match self.ordered.get() {
            Some(ordered) => ordered,
            None => {
                let Some((starts, rows)) = side.rows_by_key() else { return Ok(None) };
                run.charge(Ordered::bytes(starts.len(), rows.len()))?;
                self.ordered.get_or_init(|| Ordered::new(starts, rows, &side.columns[range.column]))
            }
        };
        Ok(Some(Within { ordered, limits }))
    }
}

impl Ordered {
    fn bytes(keys: usize, rows: usize) -> usize {
        keys * size_of::<u32>() + rows * (size_of::<i64>() + size_of::<u32>())
    }

    fn new(starts: &[u32], rows: &[u32], column: &ArrayRef) -> Self {
        let (value, nulls) = (integers(column), column.logical_nulls());
        let mut ordered =
            Self { starts: vec![0], values: Vec::with_capacity(rows.len()), rows: Vec::with_capacity(rows.len()) };
        let mut of_key: Vec<(i64, u32)> = Vec::new();
        for ends in starts.windows(2) {
            let known = rows[ends[0] as usize..ends[1] as usize].iter().copied();
            let known = known.filter(|row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row as usize)));
            of_key.clear();
            of_key.extend(known.map(|row| (value(row as usize), row)));
            of_key.sort_unstable();
            ordered.values.extend(of_key.iter().map(|(value, _)| *value));
            ordered.rows.extend(of_key.iter().map(|(_, row)| *row));
            ordered.starts.push(ordered.rows.len() as u32);
        }
        ordered
    }
}

/// What the rows of a batch may meet.
pub(super) struct Within<'r> {
    ordered: &'r Ordered,
    limits: Vec<(i64, i64)>,
}

impl Within<'_> {
    /// As [`BuildSide::pairs`].
    pub(super) fn pairs(&self, ids: &[u32], start: &mut usize) -> Pairs {
        let (mut probe, mut build) = (Vec::new(), Vec::new());
        while *start < ids.len() && build.len() < PAIRS_MAX {
            let rows = self.rows(*start, ids[*start]);
            let known = build.len();
            build.extend_from_slice(rows);
            // In the order of the build side, as without bounds.
            build[known..].sort_unstable();
            probe.extend(std::iter::repeat_n(*start as u32, rows.len()));
            *start += 1;
        }
        Pairs { probe: Some(probe), build }
    }

    /// What row `row` of the batch, whose key is `id`, may meet, in the order of the range's column.
    pub(super) fn rows(&self, row: usize, id: u32) -> &[u32] {
        let Ordered { starts, values, rows } = self.ordered;
        let (key, (low, high)) = (id as usize, self.limits[row]);
        if id == KeyTable::NONE || key + 1 >= starts.len() || low > high {
            return &[];
        }
        let first = starts[key] as usize;
        let of_key = &values[first..starts[key + 1] as usize];
        let from = of_key.partition_point(|value| *value < low);
        let count = of_key[from..].partition_point(|value| *value <= high);
        &rows[first + from..first + from + count]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use super::*;

    #[test]
    fn rows_between_bounds_are_met() {
        let column: ArrayRef =
            Arc::new(Int64Array::from(vec![Some(5), None, Some(1), Some(5), Some(9), Some(i64::MAX)]));
        // Two keys: rows 0 to 3, and the others.
        let ordered = Ordered::new(&[0, 4, 6], &[0, 1, 2, 3, 4, 5], &column);
        assert_eq!((ordered.starts.as_slice(), ordered.rows.as_slice()), (&[0, 3, 5][..], &[2, 0, 3, 4, 5][..]));
        let limits = vec![(2, 5), (i64::MIN, i64::MAX), NOTHING, (1, 1), (10, i64::MAX), (6, 8)];
        let within = Within { ordered: &ordered, limits };
        let mut start = 0;
        let pairs = within.pairs(&[0, 0, 0, 0, 1, 1], &mut start);
        assert_eq!(pairs.probe, Some(vec![0, 0, 1, 1, 1, 3, 4]));
        assert_eq!((pairs.build, start), (vec![0, 3, 0, 2, 3, 2, 5], 6));
        let pairs = within.pairs(&[KeyTable::NONE, 7], &mut 0);
        assert_eq!(pairs.build, Vec::<u32>::new());
    }
}
