//! Rows by what is computed from their columns: `payload ->> 'ref' = 'y'`, `first || last = 'xy'`. What the expression gives for the rows
//! of a chunk is indexed when it is first asked for, as PostgreSQL has it with an index on the expression. With lower and upper under a
//! collation whose letters upstream tells, it is indexed once all letters in the chunk have been told, for as long as upstream's process lives
//! (`catalog::order`).

use std::fmt::Write;

use arrow::array::ArrayRef;

use super::batch::Batch;
use super::scan::FOUND_PER_ROWS;
use super::{Flow, Run, Sink};
use crate::binder::BoundExpr;
use crate::catalog::functions::{EvalError, Function, LOWER, UPPER};
use crate::catalog::order::OrderView;
use crate::planner::expression::{any, columns_of, is_immutable, is_row_independent, renumber, type_of};
use crate::planner::node::Scan;
use crate::table::{Chunk, RowAt, TableVersion};
use crate::types::PgType;

impl Run<'_> {
    /// None: no filter is of that kind, or there are too many rows of the value.
    pub(super) fn scan_computed(
        &self,
        scan: &Scan,
        table: &TableVersion,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Flow>, EvalError> {
        for (at, filter) in scan.filters.iter().enumerate() {
            let Some((expr, value)) = computed_equals(filter) else { continue };
            // PostgreSQL, without such an index, computes all filters of the other rows.
            if !self.is_quiet_before(scan, at) || !self.is_quiet_in(scan, filter) {
                continue;
            }
            let Ok(value) = self.constant(value) else { continue };
            if value.is_null() {
                return Ok(Some(Flow::Continue(())));
            }
            let name = self.name_of(scan, expr);
            let (mut found, mut looked_at) = (Vec::new(), 0);
            for (number, version) in table.chunks.iter().enumerate() {
                self.check_cancelled()?;
                let chunk = &version.chunk;
                let compute = || self.compute_over(scan, chunk, expr);
                let Some(rows) = chunk.rows_by_computed(&name, (&value, type_of(expr)), compute)? else {
                    return Ok(None);
                };
                let alive = rows.into_iter().filter(|row| version.is_alive(*row));
                found.extend(alive.map(|row| RowAt { chunk: number as u32, row: row as u32 }));
                looked_at += chunk.rows;
                if found.len() * FOUND_PER_ROWS > looked_at {
                    return Ok(None);
                }
            }
            return self.scan_rows(scan, table, &found, &scan.filters, sink).map(Some);
        }
        Ok(None)
    }

    /// Of all rows of the chunk. None: not all letters of them are known, or a row, which may be dead, has what is not computed here.
    fn compute_over(&self, scan: &Scan, chunk: &Chunk, expr: &BoundExpr) -> Result<Option<ArrayRef>, EvalError> {
        let columns = scan.columns.iter().map(|column| chunk.columns[*column].clone()).collect();
        match self.environment.evaluate_column(expr, &Batch::of_shared(columns, chunk.rows)) {
            // Whichever are missing: noted once, one of them may be in this chunk too.
            Ok(values) => Ok(self.environment.context.orders.is_none_or(OrderView::has_all_letters).then_some(values)),
            Err(EvalError::Beyond(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Tells expressions over the table's columns apart, wherever a scan has these, and the processes that have told the letters.
    fn name_of(&self, scan: &Scan, expr: &BoundExpr) -> String {
        let mut of_table = expr.clone();
        renumber(&mut of_table, &|column| scan.columns[column]);
        let mut name = String::new();
        // Writing to a string does not fail.
        let _ = write!(name, "{of_table:?}");
        if let (false, Some(orders)) = (is_immutable(expr), self.environment.context.orders) {
            let _ = write!(name, " {}", orders.upstream_started_at());
        }
        name
    }
}

/// Of `expression = value`: an expression of columns alone that gives text, and what is the same for all rows.
fn computed_equals(filter: &BoundExpr) -> Option<(&BoundExpr, &BoundExpr)> {
    let BoundExpr::Call { function, arguments, .. } = filter else { return None };
    let (expr, value) = match &arguments[..] {
        [expr, value] if is_row_independent(value) => (expr, value),
        [value, expr] if is_row_independent(value) => (expr, value),
        _ => return None,
    };
    let is_text = |of: PgType| matches!(of, PgType::Text | PgType::Varchar);
    let is_alone = !any(expr, &|part| matches!(part, BoundExpr::Parameter { .. }));
    let is_computed = matches!(expr, BoundExpr::Call { .. }) && !columns_of(expr).is_empty();
    let is_plain = function.name == "=" && is_text(type_of(expr)) && is_text(type_of(value));
    (is_plain && is_computed && is_alone && is_lasting(expr)).then_some((expr, value))
}

/// Whether it gives the same for as long as upstream's process lives, if all letters are known.
fn is_lasting(expr: &BoundExpr) -> bool {
    let changes_case =
        |function: &'static Function| [&raw const LOWER, &raw const UPPER].contains(&&raw const *function);
    !any(
        expr,
        &|part| matches!(part, BoundExpr::Call { function, .. } if !function.is_fixed() && !changes_case(function)),
    )
}
