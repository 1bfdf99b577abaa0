//! Whether changes of a table can show in what a scan has read of it: row images are held against the scan's own predicates.
//!
//! A reply depends on a table by its scans alone, and on a scan by the bag of rows that it lets through, in the columns that it
//! hands on. So a change is without effect if the rows that pass before and after it are the same in those columns: rows of
//! other tenants or other days, and updates of columns that nobody reads. In doubt (an error in a predicate, many rows) it has
//! an effect.

use super::batch::Batch;
use super::bound::Top;
use super::eval::{Environment, constant};
use super::ranges::{Range, ranges};
use super::scan::as_column_type;
use crate::binder::BoundExpr;
use crate::catalog::functions::{EvalContext, EvalError};
use crate::change_log::RowChanges;
use crate::planner::expression::type_of;
use crate::planner::node::Scan;
use crate::planted::{Bug, is_planted};
use crate::table::Chunk;
use crate::types::Value;
use crate::types::access::value_at;

/// Rows that pass before, and after; more are taken for a difference rather than compared.
const ROWS_COMPARED_MAX: usize = 64;

/// One scan with the values of its parameters, ready to be held against changes.
pub struct ScanTest<'a> {
    scan: &'a Scan,
    environment: Environment<'a>,
    /// What excludes most chunks by the range of their values.
    ranges: Vec<Range>,
    /// Schema column, and the values that it must equal one of.
    values: Vec<(usize, Vec<Value>)>,
    /// Of a scan whose rows are the first of an order, where that ends.
    top: Option<(&'a Top, u64)>,
    /// No row can pass: a column must equal NULL, or what its type does not hold.
    is_empty: bool,
}

impl<'a> ScanTest<'a> {
    /// An error: a value cannot be had.
    pub fn new(scan: &'a Scan, parameters: &'a [Value], context: &'a EvalContext<'a>) -> Result<Self, EvalError> {
        let environment = Environment { parameters, context };
        // A filter is not reached on rows that one before it drops, but for a filter that is reached there may be an error.
        let reached = scan.reached;
        let ranges = ranges(scan, &environment);
        let mut test = Self { scan, environment, ranges, values: Vec::new(), top: None, is_empty: false };
        for look_up in scan.look_ups.iter().filter(|look_up| look_up.filter <= reached) {
            match as_column_type(constant(&look_up.value, parameters, context)?, look_up.column_type) {
                Some(value) => test.values.push((look_up.column, vec![value])),
                None => test.is_empty = true,
            }
        }
        test.values.extend(scan.filters.iter().take(reached).filter_map(|filter| listed(scan, filter)));
        Ok(test)
    }

    /// Only the first rows are wanted: those up to one whose first key has this code, of which there are enough.
    pub fn up_to(self, top: &'a Top, last: u64) -> Self {
        Self { top: Some((top, last)), ..self }
    }

    /// Whether the scan's rows are the same before and after all of `changes`. `columns`: where the changes are a partition's,
    /// its column for each of the scan's table.
    pub fn is_unmoved(&self, changes: &[&RowChanges], columns: Option<&[usize]>) -> Result<bool, EvalError> {
        if self.is_empty {
            return Ok(true);
        }
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for change in changes {
            for (chunks, rows) in [(&change.old, &mut old), (&change.new, &mut new)] {
                for chunk in chunks {
                    self.passing(chunk, columns, rows)?;
                    if rows.len() > ROWS_COMPARED_MAX {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(is_same_bag(&mut old, &new))
    }

    /// Adds the rows of the chunk that pass, as the scan hands them on.
    fn passing(&self, chunk: &Chunk, columns: Option<&[usize]>, rows: &mut Vec<Row>) -> Result<(), EvalError> {
        let of_chunk = |column: usize| columns.map_or(column, |columns| columns[column]);
        let is_excluded = self.ranges.iter().any(|range| range.excludes(chunk, of_chunk(range.column)))
            || self.values.iter().any(|(column, values)| {
                let zone = chunk.zone(of_chunk(*column));
                zone.is_some_and(|zone| !values.iter().any(|value| zone.may_contain(value)))
            });
        if is_excluded || chunk.rows == 0 {
            return Ok(());
        }
        let scan = self.scan;
        let arrays = scan.columns.iter().map(|column| chunk.columns[of_chunk(*column)].clone()).collect();
        let outputs = if is_planted(Bug::CountChanges) { 0 } else { scan.outputs };
        let wanted = self.top.map(|(top, last)| top.wanted(chunk, of_chunk, last)).transpose()?.flatten();
        let passed = self.environment.filter(Batch::of_shared(arrays, chunk.rows), &scan.filters, wanted, outputs)?;
        if passed.rows > ROWS_COMPARED_MAX {
            rows.resize_with(ROWS_COMPARED_MAX + 1, Row::default);
            return Ok(());
        }
        let mut values: Vec<Row> = (0..passed.rows).map(|_| Row::with_capacity(outputs)).collect();
        for (at, column) in scan.columns[..outputs].iter().enumerate() {
            let Some(pg_type) = chunk.pg_type(of_chunk(*column)) else {
                return Err(EvalError::Beyond("a column that is not mirrored".to_owned()));
            };
            let array = passed.column(at)?;
            values.iter_mut().enumerate().for_each(|(row, to)| to.push(value_at(array.as_ref(), pg_type, row)));
        }
        rows.append(&mut values);
        Ok(())
    }
}

type Row = Vec<Value>;

/// `column IN (literals)`, as a column and its values.
fn listed(scan: &Scan, filter: &BoundExpr) -> Option<(usize, Vec<Value>)> {
    let BoundExpr::InList { operand, list, negated: false, .. } = filter else { return None };
    let BoundExpr::Column { index, expr_type } = &**operand else { return None };
    if list.len() > 64 || !expr_type.pg_type.is_plainly_equal() {
        return None;
    }
    let literal = |item: &BoundExpr| match item {
        BoundExpr::Literal { value, .. } if type_of(item) == expr_type.pg_type => Some(value.clone()),
        _ => None,
    };
    let values: Vec<Value> = list.iter().map(literal).collect::<Option<_>>()?;
    Some((scan.columns[*index], values.into_iter().filter(|value| !value.is_null()).collect()))
}

/// Whether the two hold the same rows, whatever their order. Takes `old` apart.
fn is_same_bag(old: &mut Vec<Row>, new: &[Row]) -> bool {
    old.len() == new.len()
        && new.iter().all(|row| {
            let same = |other: &Row| other.iter().zip(row).all(|(a, b)| a.is_identical(b));
            old.iter().position(same).map(|at| old.swap_remove(at)).is_some()
        })
}
