//! Which columns tell the rows of a node apart: primary keys, groups, and joins that give each row once.

use std::collections::HashMap;

use crate::binder::{BoundExpr, WindowCall, WindowKind};
use crate::catalog::RelationId;
use crate::catalog::functions::WindowFunction;
use crate::planner::node::{Aggregate, Equality, Join, PlanNode, Scan, SideJoin};
use crate::planner::rules::for_each_input_mut;
use crate::reason::UpstreamReason;
use crate::types::PgType;

/// Tells the scans the keys of their tables, by indexes into the schema.
pub(in crate::planner) fn place_keys(
    node: &mut PlanNode,
    keys: &HashMap<RelationId, Vec<usize>>,
) -> Result<(), UpstreamReason> {
    if let PlanNode::Scan(scan) = node {
        scan.key = keys.get(&scan.table).cloned().unwrap_or_default();
    }
    for_each_input_mut(node, &mut |input| place_keys(input, keys))
}

/// Whether each row of the left meets one row of the right at most: the keys have all that tells the right's apart.
pub(crate) fn meets_one(join: &SideJoin) -> bool {
    let width = join.left.width();
    tells_apart(&join.right, &|column| join.equalities.iter().any(|equality| is_end(equality, 1, width + column)))
}

/// Whether no two rows of the node have the same values in the columns that are a key's.
pub(in crate::planner) fn tells_apart(node: &PlanNode, is_key: &dyn Fn(usize) -> bool) -> bool {
    match node {
        PlanNode::OneRow => true,
        PlanNode::Scan(scan) => has_key(scan, is_key),
        PlanNode::Aggregate(Aggregate { groups, .. }) => (0..groups.len()).all(is_key),
        PlanNode::Project { input, expressions } => tells_apart(input, &|column| {
            let is_it = |expr: &BoundExpr| matches!(expr, BoundExpr::Column { index, .. } if *index == column);
            (0..expressions.len()).any(|at| is_it(&expressions[at]) && is_key(at))
        }),
        PlanNode::DistinctOn { input, keys } => are_keys(keys, is_key) || tells_apart(input, is_key),
        PlanNode::Filter { input, predicates } => {
            tells_apart(input, is_key) || predicates.iter().any(|predicate| is_first_of_each(input, predicate, is_key))
        }
        PlanNode::Sort { input, .. } | PlanNode::Limit { input, .. } | PlanNode::Window { input, .. } => {
            tells_apart(input, is_key)
        }
        PlanNode::Join(join) => joins_once(join, is_key),
        _ => false,
    }
}

/// By group, whether it tells groups apart that the others do not: columns of a table whose primary key is grouped by, too, hang on that
/// (PostgreSQL does likewise: remove_useless_groupby_columns). `is_of_one_moment`: whether no key is twice among the rows of that scan.
pub(crate) fn deciding(aggregate: &Aggregate, is_of_one_moment: &dyn Fn(&Scan) -> bool) -> Vec<bool> {
    let source = |expr: &BoundExpr| match expr {
        // Text that is compared as char(n) is equal without its blanks, which tell a key's values apart.
        BoundExpr::Column { index, expr_type } if expr_type.pg_type != PgType::Bpchar => {
            source_of(&aggregate.input, *index)
        }
        _ => None,
    };
    let sources: Vec<Option<(&Scan, usize)>> = aggregate.groups.iter().map(source).collect();
    let is_grouped = |scan: &Scan, column: usize| {
        sources.iter().flatten().any(|(of, own)| std::ptr::eq(*of, scan) && *own == column)
    };
    let hangs_on_key = |(scan, column): &(&Scan, usize)| {
        let has_key = !scan.key.is_empty() && scan.key.iter().all(|key| is_grouped(scan, *key));
        has_key && !scan.key.contains(column) && is_of_one_moment(scan)
    };
    sources.iter().map(|source| !source.as_ref().is_some_and(hangs_on_key)).collect()
}

/// The scan that a node's column comes from as it is, and which of its table's columns it is.
pub(crate) fn source_of(node: &PlanNode, column: usize) -> Option<(&Scan, usize)> {
    match node {
        PlanNode::Scan(scan) if column < scan.outputs => Some((scan, scan.columns[column])),
        PlanNode::Filter { input, .. } | PlanNode::Sort { input, .. } | PlanNode::Limit { input, .. } => {
            source_of(input, column)
        }
        PlanNode::Project { input, expressions } => match expressions.get(column)? {
            BoundExpr::Column { index, .. } => source_of(input, *index),
            _ => None,
        },
        PlanNode::Join(join) => {
            let bases = join.bases();
            let at = bases.partition_point(|base| *base <= column).checked_sub(1)?;
            source_of(join.inputs.get(at)?, column - bases[at])
        }
        // Rows that a full join makes up have NULL in all columns of its left side.
        PlanNode::SideJoin(join) if column < join.left.width() => source_of(&join.left, column),
        _ => None,
    }
}

fn are_keys(expressions: &[BoundExpr], is_key: &dyn Fn(usize) -> bool) -> bool {
    expressions.iter().all(|expr| match expr {
        BoundExpr::Column { index, expr_type } => expr_type.pg_type != PgType::Bpchar && is_key(*index),
        _ => false,
    })
}

/// `row_number() OVER (PARTITION BY key) <= 1`, which LIMIT 1 in a correlated subquery is, too.
fn is_first_of_each(input: &PlanNode, predicate: &BoundExpr, is_key: &dyn Fn(usize) -> bool) -> bool {
    let PlanNode::Window { input, calls } = input else { return false };
    let BoundExpr::Call { function, arguments, .. } = predicate else { return false };
    let [BoundExpr::Column { index, .. }, BoundExpr::Literal { value, .. }] = &arguments[..] else { return false };
    let is_one = match function.name {
        "<=" | "=" => value.ordinal() == Some(1),
        "<" => value.ordinal() == Some(2),
        _ => false,
    };
    let call = index.checked_sub(input.width()).and_then(|call| calls.get(call));
    let is_number = |call: &WindowCall| matches!(call.function, WindowKind::Function(WindowFunction::RowNumber));
    is_one && call.is_some_and(|call| is_number(call) && are_keys(&call.partition, is_key))
}

fn has_key(scan: &Scan, is_key: &dyn Fn(usize) -> bool) -> bool {
    let is_given =
        |of: &usize| scan.columns[..scan.outputs].iter().enumerate().any(|(at, own)| own == of && is_key(at));
    !scan.key.is_empty() && scan.key.iter().all(is_given)
}

/// One input is told apart by the key, and leads to one row of each of the others.
fn joins_once(join: &Join, is_key: &dyn Fn(usize) -> bool) -> bool {
    let bases = join.bases();
    let mut known = vec![false; join.inputs.len()];
    loop {
        let found = (0..join.inputs.len()).find(|at| {
            let is_led = |column: usize| {
                is_key(bases[*at] + column)
                    || join.equalities.iter().chain(&join.implied).any(|equality| {
                        let leads = |end: usize| {
                            known[equality.ends()[1 - end].0] && is_end(equality, end, bases[*at] + column)
                        };
                        leads(0) || leads(1)
                    })
            };
            !known[*at] && tells_apart(&join.inputs[*at], &is_led)
        });
        match found {
            Some(at) => known[at] = true,
            None => return !known.contains(&false),
        }
    }
}

/// Whether the equality compares that column itself, as what tells no less apart than the column's own type does: text that is
/// compared as char(n) is equal without its blanks.
fn is_end(equality: &Equality, end: usize, column: usize) -> bool {
    let is_it = matches!(equality.ends()[end].1, BoundExpr::Column { index, .. } if *index == column);
    is_it && equality.types[end] != PgType::Bpchar
}
