//! Limit over Sort becomes a sort that keeps only those rows, before what is then computed for each of them; sorts that nobody
//! sees go.

use crate::binder::BoundExpr;
use crate::planner::expression::{cannot_raise, columns_of, substitute};
use crate::planner::node::{Aggregate, PlanNode, SideJoin, SideKind};
use crate::planner::rules::for_each_input_mut;
use crate::reason::UpstreamReason;

pub(in crate::planner) fn order(node: &mut PlanNode) -> Result<(), UpstreamReason> {
    for_each_input_mut(node, &mut order)?;
    if let PlanNode::Limit { input, limit, offset } = node {
        sort_only(input, limit, offset);
        if limit.is_none() && offset.is_none() {
            *node = std::mem::replace(&mut **input, PlanNode::OneRow);
        }
    }
    sort_first(node);
    Ok(())
}

/// A sort that keeps some rows only, over subqueries that PostgreSQL computes for each row: it computes them for those that are left
/// (planner.c, make_sort_input_target), which is less here, too. The join keeps order and number of its left side's rows.
fn sort_first(node: &mut PlanNode) {
    match node {
        PlanNode::Project { input, .. } => return sort_first(input),
        PlanNode::Sort { limit: Some(_), .. } => {}
        _ => return,
    }
    let PlanNode::Sort { input, keys, limit, offset } = std::mem::replace(node, PlanNode::OneRow) else { return };
    let (mut below, expressions) = match *input {
        PlanNode::Project { input, expressions } => (*input, Some(expressions)),
        other => (other, None),
    };
    let mut own_keys = keys.clone();
    own_keys.iter_mut().for_each(|key| expressions.iter().for_each(|known| substitute(&mut key.expr, known)));
    let moves = match &below {
        PlanNode::SideJoin(join) if gives_each_once(join) => {
            let is_left = |column: &usize| *column < join.left.width();
            // What has no subquery in it PostgreSQL computes before it sorts.
            let is_sure = |expr: &BoundExpr| cannot_raise(expr) || !columns_of(expr).iter().all(is_left);
            own_keys.iter().all(|key| columns_of(&key.expr).iter().all(is_left))
                && expressions.iter().flatten().all(is_sure)
        }
        _ => false,
    };
    let projected = |below: PlanNode| match expressions {
        Some(expressions) => PlanNode::Project { input: Box::new(below), expressions },
        None => below,
    };
    match &mut below {
        PlanNode::SideJoin(join) if moves => {
            let input = std::mem::replace(&mut join.left, Box::new(PlanNode::OneRow));
            let mut sort = PlanNode::Sort { input, keys: own_keys, limit, offset };
            sort_first(&mut sort);
            *join.left = sort;
            *node = projected(below);
        }
        _ => *node = PlanNode::Sort { input: Box::new(projected(below)), keys, limit, offset },
    }
}

/// Whether each row of the left is given once.
fn gives_each_once(join: &SideJoin) -> bool {
    match join.kind {
        SideKind::Single | SideKind::Mark => true,
        SideKind::Left if join.is_per_row => is_keyed(&join.right, &|column| {
            let is_it = |key: &BoundExpr| matches!(key, BoundExpr::Column { index, .. } if *index == join.left.width() + column);
            join.equalities.iter().any(|equality| is_it(&equality.right))
        }),
        SideKind::Left | SideKind::Full | SideKind::Semi | SideKind::Anti => false,
    }
}

/// Whether no two rows of the node have the same values in the columns that are a key's.
fn is_keyed(node: &PlanNode, is_key: &dyn Fn(usize) -> bool) -> bool {
    match node {
        PlanNode::Aggregate(Aggregate { groups, .. }) => !groups.is_empty() && (0..groups.len()).all(is_key),
        PlanNode::Project { input, expressions } => is_keyed(input, &|column| {
            let is_it = |expr: &BoundExpr| matches!(expr, BoundExpr::Column { index, .. } if *index == column);
            (0..expressions.len()).any(|at| is_it(&expressions[at]) && is_key(at))
        }),
        PlanNode::Filter { input, .. } => is_keyed(input, is_key),
        _ => false,
    }
}

/// Moves the limit into the sort below, through projections (which keep order and number of rows).
fn sort_only(node: &mut PlanNode, limit: &mut Option<BoundExpr>, offset: &mut Option<BoundExpr>) {
    match node {
        PlanNode::Project { input, .. } => sort_only(input, limit, offset),
        PlanNode::Sort { limit: own_limit @ None, offset: own_offset @ None, .. } => {
            *own_limit = limit.take();
            *own_offset = offset.take();
        }
        _ => {}
    }
}
