//! What filters say of a column's values as [`Range`]s: which chunks, and which rows of a chunk whose column ascends, none of them can be in.

use jiff::tz::TimeZone;

use super::eval::{Environment, constant};
use crate::binder::{BoundExpr, cannot_raise_but};
use crate::planner::expression::{is_row_independent, mirrored};
use crate::planner::node::Scan;
use crate::table::Chunk;
use crate::types::PgType;

/// `column order bound`.
#[derive(Clone, Debug)]
pub(super) struct Range {
    /// Index into the table's schema.
    pub(super) column: usize,
    order: &'static str,
    bound: i64,
}

/// The filters that compare a column with one value, of those that PostgreSQL computes before one that may raise an error.
pub(super) fn ranges(scan: &Scan, environment: &Environment<'_>) -> Vec<Range> {
    let mut ranges = Vec::new();
    for filter in &scan.filters {
        ranges.extend(range_of(scan, filter, environment));
        if !is_quiet(filter, environment) {
            break;
        }
    }
    ranges
}

/// Whether the filter raises no error on any row; what is the same for all rows has a value or not.
fn is_quiet(filter: &BoundExpr, environment: &Environment<'_>) -> bool {
    let has_value = |part: &BoundExpr| constant(part, environment.parameters, environment.context).is_ok();
    cannot_raise_but(filter, &|part| is_row_independent(part) && has_value(part))
}

/// What the filter says of a column; of an OR, what all its branches say of one: `(a, b) < (x, y)` is `a < x OR (a = x AND b < y)`.
fn range_of(scan: &Scan, filter: &BoundExpr, environment: &Environment<'_>) -> Option<Range> {
    match filter {
        BoundExpr::Call { .. } => compared(scan, filter, environment),
        // PostgreSQL computes what stands before it in its branch, too.
        BoundExpr::Or(branches) if is_quiet(filter, environment) => {
            let mut branches = branches.iter().map(|branch| match branch {
                BoundExpr::And(parts) => parts.iter().filter_map(|part| compared(scan, part, environment)).collect(),
                _ => Vec::from_iter(compared(scan, branch, environment)),
            });
            let first: Vec<Range> = branches.next()?;
            let branches: Vec<Vec<Range>> = branches.collect();
            first.into_iter().flat_map(Range::sides).find_map(|side| {
                branches.iter().try_fold(side, |wide, branch| {
                    branch.iter().cloned().flat_map(Range::sides).find_map(|other| wide.or(&other))
                })
            })
        }
        _ => None,
    }
}

fn compared(scan: &Scan, filter: &BoundExpr, environment: &Environment<'_>) -> Option<Range> {
    let BoundExpr::Call { function, arguments, .. } = filter else { return None };
    let (index, value, order) = match &arguments[..] {
        [BoundExpr::Column { index, .. }, value] if is_row_independent(value) => (*index, value, function.name),
        [value, BoundExpr::Column { index, .. }] if is_row_independent(value) => {
            (*index, value, mirrored(function.name))
        }
        _ => return None,
    };
    let is_same_order = match function.arguments {
        [left, right] => {
            // Where local times are those of UTC they are the same number.
            let mut are_times =
                [*left, *right].into_iter().map(|of| matches!(of, PgType::Timestamp | PgType::Timestamptz));
            let is_utc = || environment.context.settings.time_zone == TimeZone::UTC;
            left == right || (left.is_integer() && right.is_integer()) || (are_times.all(|is_time| is_time) && is_utc())
        }
        _ => false,
    };
    if !is_same_order || !is_comparison(order) {
        return None;
    }
    // An error is met where rows are tested, if there are any.
    let value = constant(value, environment.parameters, environment.context).ok()?;
    Some(Range { column: scan.columns[index], order, bound: value.ordinal()? })
}

impl Range {
    /// Whether no row of the chunk passes; `column`: which of its columns it is about.
    pub(super) fn excludes(&self, chunk: &Chunk, column: usize) -> bool {
        let Some(zone) = chunk.zone(column) else { return false };
        if zone.min.is_null() {
            // Only NULLs: no comparison is true.
            return zone.nulls == chunk.rows;
        }
        let (Some(min), Some(max)) = (zone.min.ordinal(), zone.max.ordinal()) else { return false };
        match self.order {
            "=" => self.bound < min || self.bound > max,
            "<" => min >= self.bound,
            "<=" => min > self.bound,
            ">" => max <= self.bound,
            ">=" => max < self.bound,
            _ => false,
        }
    }

    /// What it says of each end; an equality says something of both.
    fn sides(self) -> Vec<Self> {
        match self.order {
            "=" => vec![Self { order: "<=", ..self.clone() }, Self { order: ">=", ..self }],
            _ => vec![self],
        }
    }

    /// What holds where one of the two does, if they are of the same end of one column.
    fn or(&self, other: &Self) -> Option<Self> {
        let is_below = |order: &str| order.starts_with('<');
        if self.column != other.column || is_below(self.order) != is_below(other.order) {
            return None;
        }
        let (order, bound) = match is_below(self.order) {
            true => ("<=", self.bound.max(other.bound)),
            false => (">=", self.bound.min(other.bound)),
        };
        Some(Self { column: self.column, order, bound })
    }
}

/// The rows of the chunk that none of the ranges excludes by columns that ascend through it.
pub(super) fn rows_within(chunk: &Chunk, ranges: &[Range]) -> std::ops::Range<usize> {
    let mut within = 0..chunk.rows;
    for range in ranges.iter().filter(|range| chunk.is_ascending(range.column)) {
        let before = || chunk.rows_below(range.column, range.bound, false);
        let through = || chunk.rows_below(range.column, range.bound, true);
        match range.order {
            "<" => within.end = within.end.min(before()),
            "<=" => within.end = within.end.min(through()),
            ">" => within.start = within.start.max(through()),
            ">=" => within.start = within.start.max(before()),
            _ => {
                within.start = within.start.max(before());
                within.end = within.end.min(through());
            }
        }
    }
    within.start.min(within.end)..within.end
}

/// Those of the rows `within`, ascending, that a narrow range of a column's values leaves, which does not ascend through the chunk.
/// `may_sort`: see [`Chunk::rows_between`]. None: all are to be read.
pub(super) fn few_rows(
    chunk: &Chunk,
    ranges: &[Range],
    within: std::ops::Range<usize>,
    may_sort: &mut bool,
) -> Option<Vec<u32>> {
    // Few enough already.
    if chunk.is_few(within.len()) {
        return None;
    }
    let is_first = |at: usize| ranges[..at].iter().all(|before| before.column != ranges[at].column);
    let columns = (0..ranges.len()).filter(|at| is_first(*at)).map(|at| ranges[at].column);
    let found = columns.filter(|column| !chunk.is_ascending(*column)).filter_map(|column| {
        let bounds = bounds_of(ranges, column);
        // Where one value is wanted, an index of keys would be worth more, if anything is.
        if bounds.0 == bounds.1 { None } else { chunk.rows_between(column, bounds, may_sort) }
    });
    let found = found.min_by_key(|rows| rows.len())?.iter().filter(|row| within.contains(&usize::from(**row)));
    let mut rows: Vec<u32> = found.map(|row| u32::from(*row)).collect();
    rows.sort_unstable();
    Some(rows)
}

/// The least and the greatest value that all ranges of the column allow: none, if the first is greater.
pub(super) fn bounds_of(ranges: &[Range], column: usize) -> (i64, i64) {
    const NOTHING: (i64, i64) = (i64::MAX, i64::MIN);
    let mut bounds = (i64::MIN, i64::MAX);
    for range in ranges.iter().filter(|range| range.column == column) {
        let (low, high) = match range.order {
            "<" => range.bound.checked_sub(1).map_or(NOTHING, |high| (i64::MIN, high)),
            "<=" => (i64::MIN, range.bound),
            ">" => range.bound.checked_add(1).map_or(NOTHING, |low| (low, i64::MAX)),
            ">=" => (range.bound, i64::MAX),
            _ => (range.bound, range.bound),
        };
        bounds = (bounds.0.max(low), bounds.1.min(high));
    }
    bounds
}

/// The parts in which rows are read.
pub(super) struct Steps {
    left: std::ops::Range<usize>,
    next: usize,
    most: usize,
    is_backward: bool,
}

/// The first rows of an order are mostly found in so many.
const FIRST_STEP: usize = 256;

impl Steps {
    pub(super) fn even(rows: std::ops::Range<usize>, step: usize) -> Self {
        Self { left: rows, next: step, most: step, is_backward: false }
    }

    /// From that end, few rows first.
    pub(super) fn best_first(rows: std::ops::Range<usize>, most: usize, is_backward: bool) -> Self {
        Self { left: rows, next: FIRST_STEP.min(most), most, is_backward }
    }
}

impl Iterator for Steps {
    type Item = std::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let rows = self.next.min(self.left.len());
        self.next = self.next.saturating_mul(2).min(self.most);
        let (start, end) = (self.left.start, self.left.end);
        Some(if self.is_backward {
            self.left.end -= rows;
            self.left.end..end
        } else {
            self.left.start += rows;
            start..self.left.start
        })
    }
}

fn is_comparison(order: &str) -> bool {
    matches!(order, "=" | "<" | "<=" | ">" | ">=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_cover_all_rows_once_from_either_end() {
        for (rows, most) in [(0..0, 10), (5..6, 10), (3..5_000, 1_000), (0..256, 256), (7..1_031, 2_048)] {
            for steps in [
                Steps::even(rows.clone(), most),
                Steps::best_first(rows.clone(), most, false),
                Steps::best_first(rows.clone(), most, true),
            ] {
                let is_backward = steps.is_backward;
                let mut parts: Vec<_> = steps.collect();
                if is_backward {
                    parts.reverse();
                }
                assert!(parts.iter().all(|part| part.len() <= most && !part.is_empty()));
                assert_eq!(parts.into_iter().flatten().collect::<Vec<_>>(), rows.clone().collect::<Vec<_>>());
            }
        }
    }
}
