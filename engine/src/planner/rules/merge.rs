//! Removes projections between operators: nested ones become one, and pure renamings below a join move above it, so
//! that joins of joins become one join and derived tables are scans again.

use crate::binder::BoundExpr;
use crate::planner::expression::{any, renumber, substitute};
use crate::planner::node::{Join, PlanNode};

pub(in crate::planner) fn merge(node: PlanNode) -> PlanNode {
    match node {
        PlanNode::OneRow
        | PlanNode::Scan(_)
        | PlanNode::Values { .. }
        | PlanNode::Common { .. }
        | PlanNode::Series { .. }
        | PlanNode::Working { .. } => node,
        PlanNode::Expand(mut expand) => {
            expand.input = Box::new(merge(*expand.input));
            PlanNode::Expand(expand)
        }
        PlanNode::Recursive(mut recursive) => {
            recursive.base = Box::new(merge(*recursive.base));
            recursive.step = Box::new(merge(*recursive.step));
            PlanNode::Recursive(recursive)
        }
        PlanNode::DistinctOn { input, keys } => PlanNode::DistinctOn { input: Box::new(merge(*input)), keys },
        PlanNode::Window { input, calls } => PlanNode::Window { input: Box::new(merge(*input)), calls },
        PlanNode::Append { inputs, types, is_converted } => {
            PlanNode::Append { inputs: inputs.into_iter().map(merge).collect(), types, is_converted }
        }
        PlanNode::SetOperation { operation, is_all, left, right, types } => {
            let (left, right) = (Box::new(merge(*left)), Box::new(merge(*right)));
            PlanNode::SetOperation { operation, is_all, left, right, types }
        }
        PlanNode::Filter { input, predicates } => PlanNode::Filter { input: Box::new(merge(*input)), predicates },
        PlanNode::Project { input, expressions } => merge_project(merge(*input), expressions),
        PlanNode::Sort { input, keys, limit, offset, with_ties } => {
            PlanNode::Sort { input: Box::new(merge(*input)), keys, limit, offset, with_ties }
        }
        PlanNode::Limit { input, limit, offset } => PlanNode::Limit { input: Box::new(merge(*input)), limit, offset },
        PlanNode::Aggregate(mut aggregate) => {
            aggregate.input = Box::new(merge(*aggregate.input));
            if let PlanNode::Project { input, expressions } = *aggregate.input {
                if is_repeatable(&expressions) {
                    let own = aggregate.groups.iter_mut().chain(&mut aggregate.arguments);
                    own.for_each(|expr| substitute(expr, &expressions));
                    for call in &mut aggregate.calls {
                        let order = call.order.iter_mut().map(|key| &mut key.expr);
                        call.filter.iter_mut().chain(order).for_each(|expr| substitute(expr, &expressions));
                    }
                    aggregate.input = input;
                } else {
                    aggregate.input = Box::new(PlanNode::Project { input, expressions });
                }
            }
            PlanNode::Aggregate(aggregate)
        }
        PlanNode::SideJoin(mut join) => {
            join.left = Box::new(merge(*join.left));
            join.right = Box::new(merge(*join.right));
            PlanNode::SideJoin(join)
        }
        PlanNode::Join(join) => merge_join(join),
    }
}

fn merge_project(input: PlanNode, mut expressions: Vec<BoundExpr>) -> PlanNode {
    match input {
        PlanNode::Project { input, expressions: inner } if is_repeatable(&inner) => {
            expressions.iter_mut().for_each(|expr| substitute(expr, &inner));
            merge_project(*input, expressions)
        }
        other if is_identity(&expressions, other.width()) => other,
        other => PlanNode::Project { input: Box::new(other), expressions },
    }
}

/// Whether computing the expressions once per use costs no more than computing them once: nothing but columns and values.
fn is_repeatable(expressions: &[BoundExpr]) -> bool {
    expressions
        .iter()
        .all(|expr| matches!(expr, BoundExpr::Column { .. } | BoundExpr::Literal { .. } | BoundExpr::Parameter { .. }))
}

fn is_identity(expressions: &[BoundExpr], width: usize) -> bool {
    let in_place = |(at, expr): (usize, &BoundExpr)| matches!(expr, BoundExpr::Column { index, .. } if *index == at);
    expressions.len() == width && expressions.iter().enumerate().all(in_place)
}

fn merge_join(join: Join) -> PlanNode {
    let (mut inputs, mut per_row) = (Vec::new(), Vec::new());
    // The definition of each column of the old output over the new one.
    let mut definitions: Vec<BoundExpr> = Vec::new();
    let mut filters = Vec::new();
    let mut base = 0;
    let mut has_moved = false;
    for (input, is_per_row) in join.inputs.into_iter().zip(join.per_row) {
        let mut input = merge(input);
        let mut columns = None;
        if let PlanNode::Project { input: inner, expressions } = input {
            if expressions.iter().all(|expr| !any(expr, &|e| !matches!(e, BoundExpr::Column { .. }))) {
                columns = Some(expressions);
                input = *inner;
            } else {
                input = PlanNode::Project { input: inner, expressions };
            }
        }
        let width = input.width();
        let mut own = columns.unwrap_or_else(|| (0..width).map(placeholder).collect());
        has_moved = has_moved || !is_identity(&own, width);
        own.iter_mut().for_each(|expr| renumber(expr, &|column| column + base));
        definitions.append(&mut own);
        match input {
            PlanNode::Join(inner) => {
                for mut filter in inner.filters {
                    renumber(&mut filter, &|column| column + base);
                    filters.push(filter);
                }
                // For each row of its own left side, that is, of which there may be more than these others lead to.
                per_row.resize(per_row.len() + inner.inputs.len(), false);
                inputs.extend(inner.inputs);
            }
            other => {
                inputs.push(other);
                per_row.push(is_per_row);
            }
        }
        base += width;
    }
    for mut filter in join.filters {
        relocate(&mut filter, &definitions);
        filters.push(filter);
    }
    let merged = PlanNode::Join(Join { per_row, ..Join::new(inputs, filters) });
    if !has_moved {
        return merged;
    }
    PlanNode::Project { input: Box::new(merged), expressions: definitions }
}

/// Columns move; their types stay those of the reference, as a placeholder has none.
fn relocate(expr: &mut BoundExpr, definitions: &[BoundExpr]) {
    renumber(expr, &|column| match &definitions[column] {
        BoundExpr::Column { index, .. } => *index,
        _ => column,
    });
}

/// A column whose type nobody asks for: projections of plain columns pass arrays on.
pub(super) fn placeholder(index: usize) -> BoundExpr {
    use crate::binder::ExprType;
    use crate::catalog::Collation;
    use crate::types::PgType;
    BoundExpr::Column {
        index,
        expr_type: ExprType { pg_type: PgType::Unknown, typmod: -1, collation: Collation::None },
    }
}
