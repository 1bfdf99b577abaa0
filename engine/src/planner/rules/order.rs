//! Limit over Sort becomes a sort that keeps only those rows, before what is then computed for each of them; sorts that nobody
//! sees go.

use std::collections::BTreeSet;

use crate::binder::{BoundExpr, cannot_raise};
use crate::planner::expression::{columns_of, expr_type_of, for_each_operand_mut, renumber, substitute};
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
    if compute_later(node)
        && let PlanNode::Project { input, .. } = node
    {
        return sort_first(input);
    }
    let whole = std::mem::replace(node, PlanNode::OneRow);
    let PlanNode::Sort { input, keys, limit, offset, with_ties } = whole else { return };
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
            let mut sort = PlanNode::Sort { input, keys: own_keys, limit, offset, with_ties };
            sort_first(&mut sort);
            *join.left = sort;
            *node = projected(below);
        }
        _ => *node = PlanNode::Sort { input: Box::new(projected(below)), keys, limit, offset, with_ties },
    }
}

/// What the rows that a sort keeps are asked for, and no key is made of, is computed for those alone; PostgreSQL does so for what is
/// dear (planner.c, make_sort_input_target), and for all where an index gives the order. What may raise an error is left below.
/// False: there is nothing of the kind.
fn compute_later(node: &mut PlanNode) -> bool {
    let PlanNode::Sort { input, keys, .. } = node else { return false };
    let PlanNode::Project { expressions, .. } = &mut **input else { return false };
    let of_keys: BTreeSet<usize> = keys.iter().flat_map(|key| columns_of(&key.expr)).collect();
    let is_later = |(at, expr): (usize, &BoundExpr)| {
        let is_computed =
            !matches!(expr, BoundExpr::Column { .. } | BoundExpr::Literal { .. } | BoundExpr::Parameter { .. });
        is_computed && !of_keys.contains(&at) && !columns_of(expr).is_empty() && cannot_raise(expr)
    };
    let later: Vec<bool> = expressions.iter().enumerate().map(is_later).collect();
    if !later.contains(&true) {
        return false;
    }
    let all = std::mem::take(expressions);
    let mut places = vec![0; all.len()];
    for (at, expr) in all.iter().enumerate().filter(|(at, _)| !later[*at]) {
        places[at] = expressions.len();
        expressions.push(expr.clone());
    }
    let mut above = Vec::with_capacity(all.len());
    for (at, mut expr) in all.into_iter().enumerate() {
        match later[at] {
            true => read_from(&mut expr, expressions),
            false => expr = BoundExpr::Column { index: places[at], expr_type: expr_type_of(&expr) },
        }
        above.push(expr);
    }
    keys.iter_mut().for_each(|key| renumber(&mut key.expr, &|at| places[at]));
    let sort = std::mem::replace(node, PlanNode::OneRow);
    *node = PlanNode::Project { input: Box::new(sort), expressions: above };
    true
}

/// Has the expression read its columns from those of a projection, which gets what it lacks.
fn read_from(expr: &mut BoundExpr, below: &mut Vec<BoundExpr>) {
    if let BoundExpr::Column { index, .. } = expr {
        let known = below.iter().position(|own| matches!(own, BoundExpr::Column { index: of, .. } if of == index));
        let place = known.unwrap_or(below.len());
        if known.is_none() {
            below.push(expr.clone());
        }
        renumber(expr, &|_| place);
        return;
    }
    for_each_operand_mut(expr, &mut |operand| read_from(operand, below));
}

/// Whether each row of the left is given once.
fn gives_each_once(join: &SideJoin) -> bool {
    match join.kind {
        SideKind::Single | SideKind::Mark => true,
        SideKind::Left if join.is_per_row => meets_one(join),
        SideKind::Left | SideKind::Full | SideKind::Semi | SideKind::Anti => false,
    }
}

/// Whether each row of the left meets one row of the right at most: the keys have all that the right is grouped by.
pub(crate) fn meets_one(join: &SideJoin) -> bool {
    is_keyed(&join.right, &|column| {
        let is_it =
            |key: &BoundExpr| matches!(key, BoundExpr::Column { index, .. } if *index == join.left.width() + column);
        join.equalities.iter().any(|equality| is_it(&equality.right))
    })
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
