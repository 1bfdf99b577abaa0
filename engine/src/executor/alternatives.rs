//! Rows by an OR whose branches name keys, of one column or of several: `a = 1 OR b = 2`, `(a, b) IN ((1, 2), (3, 4))`.

use super::keyed::{LIST_MAX, ROWS_PER_FOUND};
use super::{Flow, Run, Sink};
use crate::binder::BoundExpr;
use crate::catalog::functions::EvalError;
use crate::planner::node::Scan;
use crate::table::TableVersion;
use crate::types::Value;

impl Run<'_> {
    /// None: a branch names no keys, or they have too many rows.
    pub(super) fn scan_alternatives(
        &self,
        scan: &Scan,
        table: &TableVersion,
        filter: &BoundExpr,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Flow>, EvalError> {
        let BoundExpr::Or(branches) = filter else { return Ok(None) };
        // What stands before the key in a branch PostgreSQL computes of other rows, too.
        if branches.len() > LIST_MAX || !self.is_quiet_in(scan, filter) {
            return Ok(None);
        }
        let keys = branches.iter().map(|branch| self.keys_of_branch(scan, table, branch));
        let Some(keys) = keys.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let most: f64 = keys.iter().map(|(column, values)| self.rows_of(table, *column, values.len())).sum();
        if most * ROWS_PER_FOUND > table.rows as f64 {
            return Ok(None);
        }
        let values = keys.iter().flat_map(|(column, values)| values.iter().map(|value| (*column, value)));
        self.scan_by_values(scan, table, values, sink)
    }

    /// The column of a branch whose values have the fewest rows, and those.
    fn keys_of_branch(&self, scan: &Scan, table: &TableVersion, branch: &BoundExpr) -> Option<(usize, Vec<Value>)> {
        let parts = match branch {
            BoundExpr::And(parts) => &parts[..],
            _ => std::slice::from_ref(branch),
        };
        let listed = parts.iter().filter_map(|part| self.listed(scan, part));
        let keyed = listed.filter(|(column, values)| self.is_worth_finding(table, *column, values.len()));
        let rows = |(column, values): &(usize, Vec<Value>)| self.rows_of(table, *column, values.len());
        keyed.min_by(|a, b| rows(a).total_cmp(&rows(b)))
    }
}
