//! [`PointRow`]: the answer to a statement that reads one row by its primary key and gives some of its columns, which is what
//! applications ask most. No operator is run for it, and nothing is put together but the key.

use super::scan::as_column_type;
use crate::binder::BoundExpr;
use crate::planner::Plan;
use crate::planner::node::{PlanNode, Scan};
use crate::snapshot::Snapshot;
use crate::table::{Chunk, TableVersion};
use crate::types::Value;

/// At most one row of a table.
#[derive(Debug)]
pub struct PointRow<'s> {
    /// Where it is, if there is one.
    pub row: Option<(&'s Chunk, usize)>,
    /// Which of the table's columns are the output's.
    pub columns: Vec<usize>,
}

impl<'s> PointRow<'s> {
    /// None: the plan is another one, its values are of a kind that the executor has to judge (a negative LIMIT), or an index has to
    /// be made first.
    pub fn of(plan: &Plan, snapshot: &'s Snapshot, parameters: &[Value]) -> Option<Self> {
        let is_alone =
            plan.constants.is_empty() && plan.gates.is_empty() && plan.scalars.is_empty() && plan.commons.is_empty();
        if !is_alone || plan.with_ties {
            return None;
        }
        let mut is_wanted = true;
        let (scan, columns) = scan_below(&plan.root, parameters, &mut is_wanted)?;
        let table = snapshot.tables.get(&scan.table)?;
        let row = look_up(scan, table, parameters)?.filter(|_| is_wanted);
        Some(Self { row, columns })
    }
}

/// The reading of the table under projections, limits and sorts that change nothing of one row, and which of the table's columns
/// are left of it. `is_wanted`: they leave the row.
fn scan_below<'p>(node: &'p PlanNode, parameters: &[Value], is_wanted: &mut bool) -> Option<(&'p Scan, Vec<usize>)> {
    let (input, limit) = match node {
        PlanNode::Scan(scan) => return Some((scan, scan.columns[..scan.outputs].to_vec())),
        PlanNode::Project { input, expressions } => {
            let (scan, columns) = scan_below(input, parameters, is_wanted)?;
            let column_of = |expr: &BoundExpr| match expr {
                BoundExpr::Column { index, .. } => columns.get(*index).copied(),
                _ => None,
            };
            return Some((scan, expressions.iter().map(column_of).collect::<Option<_>>()?));
        }
        PlanNode::Limit { input, limit, offset: None } => (input, limit),
        PlanNode::Sort { input, keys, limit, offset: None, .. }
            if keys.iter().all(|key| matches!(key.expr, BoundExpr::Column { .. })) =>
        {
            (input, limit)
        }
        _ => return None,
    };
    if let Some(limit) = limit {
        // NULL is no limit; what is negative is an error.
        *is_wanted &= match given(limit, parameters)? {
            Value::Null => true,
            Value::Int8(count) if *count >= 0 => *count > 0,
            _ => return None,
        };
    }
    scan_below(input, parameters, is_wanted)
}

/// Nothing but the whole primary key may decide about the row.
fn look_up<'s>(scan: &Scan, table: &'s TableVersion, parameters: &[Value]) -> Option<Option<(&'s Chunk, usize)>> {
    let key = &table.schema.primary_key;
    if key.is_empty() || scan.filters.len() != key.len() {
        return None;
    }
    let mut values = Vec::with_capacity(key.len());
    for column in key {
        let look_up = scan.look_ups.iter().find(|look_up| look_up.column == *column)?;
        match as_column_type(given(&look_up.value, parameters)?.clone(), look_up.column_type) {
            Some(value) => values.push(value),
            // NULL, or an integer that the column cannot hold.
            None => return Some(None),
        }
    }
    let found = table.find_one_by_index(key, &values)?;
    Some(found.map(|at| (&*table.chunks[at.chunk as usize].chunk, at.row as usize)))
}

/// A value that needs no computing.
pub(super) fn given<'v>(expr: &'v BoundExpr, parameters: &'v [Value]) -> Option<&'v Value> {
    match expr {
        BoundExpr::Literal { value, .. } => Some(value),
        BoundExpr::Parameter { index, .. } => parameters.get(*index),
        _ => None,
    }
}
