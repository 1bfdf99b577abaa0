//! Moves predicates towards the rows they test: through projections, sorts, groupings (on the grouped columns) and
//! joins, down into the scans. PostgreSQL does the same (initsplan.c distribute_qual_to_rels, allpaths.c
//! subquery_push_qual), so an expression that can raise sees about the rows that it would see there.

use crate::binder::{BoundExpr, WindowCall, cannot_raise, cannot_raise_but};
use crate::planner::expression::{columns_of, is_plainly_null_on, renumber, substitute, type_of};
use crate::planner::node::{Aggregate, Join, PlanNode, SideJoin, SideKind};
use crate::planner::rules::disjunctions::split;
use crate::planner::rules::hanging::{self, brought_down};
use crate::planner::rules::padded::{Side, reduce_full, removes_padded};
use crate::planner::rules::raises;
use crate::statement::ast::SetOperation;
use crate::types::PgType;

/// Puts `predicates`, over the node's output, as far down as they go.
pub(in crate::planner) fn push(node: PlanNode, mut predicates: Vec<BoundExpr>) -> PlanNode {
    match node {
        PlanNode::OneRow => node.filtered(predicates),
        PlanNode::Scan(mut scan) => {
            scan.filters.append(&mut predicates);
            PlanNode::Scan(scan)
        }
        PlanNode::Filter { input, predicates: own } => push(*input, split(own.into_iter().chain(predicates))),
        PlanNode::Project { input, expressions } => {
            predicates.iter_mut().for_each(|predicate| substitute(predicate, &expressions));
            PlanNode::Project { input: Box::new(push(*input, predicates)), expressions }
        }
        PlanNode::Sort { input, keys, limit: None, offset: None, with_ties } => {
            PlanNode::Sort { input: Box::new(push(*input, predicates)), keys, limit: None, offset: None, with_ties }
        }
        // Which rows come first would change.
        PlanNode::Sort { input, keys, limit, offset, with_ties } => {
            let input = Box::new(push(*input, Vec::new()));
            PlanNode::Sort { input, keys, limit, offset, with_ties }.filtered(predicates)
        }
        PlanNode::Limit { input, limit, offset } => {
            PlanNode::Limit { input: Box::new(push(*input, Vec::new())), limit, offset }.filtered(predicates)
        }
        PlanNode::Aggregate(aggregate) => push_into_groups(aggregate, predicates),
        PlanNode::Join(join) => push_into_join(join, predicates),
        PlanNode::SideJoin(join) => push_into_side_join(join, predicates),
        PlanNode::Append { mut inputs, types, is_converted } => {
            // Without an error nobody sees for which rows the sides are computed.
            let may_show = is_converted.contains(&true)
                && (inputs.iter_mut().any(|input| raises(input, |_| false)) || !predicates.iter().all(cannot_raise));
            let (above, below): (Vec<_>, Vec<_>) = predicates
                .into_iter()
                .partition(|predicate| may_show && columns_of(predicate).iter().any(|column| is_converted[*column]));
            let inputs = inputs.into_iter().map(|input| push(input, below.clone())).collect();
            PlanNode::Append { inputs, types, is_converted }.filtered(above)
        }
        PlanNode::Window { input, calls } => push_into_window(*input, calls, predicates),
        PlanNode::DistinctOn { input, keys } => {
            // Keeps or drops all rows of a key (allpaths.c, check_output_expressions).
            let is_key = |column: &usize| {
                keys.iter().any(|key| matches!(key, BoundExpr::Column { index, .. } if index == column))
            };
            let (below, above): (Vec<_>, Vec<_>) = predicates.into_iter().partition(|predicate| {
                let columns = columns_of(predicate);
                !columns.is_empty() && columns.iter().all(is_key)
            });
            PlanNode::DistinctOn { input: Box::new(push(*input, below)), keys }.filtered(above)
        }
        PlanNode::SetOperation { operation, is_all, left, right, types } => {
            // Into both sides of INTERSECT, into none of EXCEPT (allpaths.c, subquery_is_pushdown_safe).
            let sides = [*left, *right];
            let is_converted = converted(&sides, &types);
            let is_below = |predicate: &BoundExpr| {
                let columns = columns_of(predicate);
                operation == SetOperation::Intersect
                    && !columns.is_empty()
                    && !columns.iter().any(|column| is_converted[*column])
            };
            let (below, above): (Vec<_>, Vec<_>) = predicates.into_iter().partition(is_below);
            let [left, right] = sides.map(|side| Box::new(push(side, below.clone())));
            PlanNode::SetOperation { operation, is_all, left, right, types }.filtered(above)
        }
        PlanNode::Expand(mut expand) => {
            let width = expand.input.width();
            let (below, above): (Vec<_>, Vec<_>) = predicates.into_iter().partition(|predicate| {
                let columns = columns_of(predicate);
                !columns.is_empty() && columns.iter().all(|column| *column < width)
            });
            expand.input = Box::new(push(*expand.input, below));
            PlanNode::Expand(expand).filtered(above)
        }
        // A row that is not wanted leads to others that are.
        PlanNode::Recursive(mut recursive) => {
            recursive.base = Box::new(push(*recursive.base, Vec::new()));
            recursive.step = Box::new(push(*recursive.step, Vec::new()));
            PlanNode::Recursive(recursive).filtered(predicates)
        }
        PlanNode::Values { .. } | PlanNode::Common { .. } | PlanNode::Series { .. } | PlanNode::Working { .. } => {
            node.filtered(predicates)
        }
    }
}

/// Which columns of a set operation a side has in another type before it is brought to the common one of `types`: what
/// tests these stays above the sides (allpaths.c, compare_tlist_datatypes). For simplicity a domain is the type below it,
/// which PostgreSQL tells apart.
pub(in crate::planner) fn converted(sides: &[PlanNode], types: &[PgType]) -> Vec<bool> {
    let is_of_side = |side: &PlanNode, column: usize| {
        let PlanNode::Project { input, expressions } = side else { return false };
        match &expressions[column] {
            BoundExpr::Column { index, .. } => column_type(input, *index).is_some_and(|own| own != types[column]),
            // It had none of its own (analyze.c, transformSetOperationTree).
            BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => false,
            _ => true,
        }
    };
    (0..types.len()).map(|column| sides.iter().any(|side| is_of_side(side, column))).collect()
}

/// The type of a node's column, as far as expressions tell it.
fn column_type(node: &PlanNode, column: usize) -> Option<PgType> {
    match node {
        PlanNode::Project { input, expressions } => match expressions.get(column)? {
            // A column that is passed on as it is.
            BoundExpr::Column { index, expr_type } if expr_type.pg_type == PgType::Unknown => {
                column_type(input, *index)
            }
            expr => Some(type_of(expr)),
        },
        PlanNode::Filter { input, .. }
        | PlanNode::Sort { input, .. }
        | PlanNode::Limit { input, .. }
        | PlanNode::DistinctOn { input, .. } => column_type(input, column),
        PlanNode::Append { types, .. } | PlanNode::SetOperation { types, .. } | PlanNode::Values { types, .. } => {
            types.get(column).copied()
        }
        PlanNode::Aggregate(aggregate) => aggregate.groups.get(column).map(type_of),
        _ => None,
    }
}

fn push_into_groups(mut aggregate: Aggregate, predicates: Vec<BoundExpr>) -> PlanNode {
    let groups = aggregate.groups.len();
    // Of equal values that a set operation's sides write otherwise, the group has one (allpaths.c, compare_tlist_datatypes).
    let is_converted = |column: usize| match (&aggregate.groups[column], &*aggregate.input) {
        (BoundExpr::Column { index, .. }, PlanNode::Append { is_converted, .. }) => is_converted[*index],
        _ => false,
    };
    let (mut below, above): (Vec<_>, Vec<_>) = predicates.into_iter().partition(|predicate| {
        // A predicate without columns decides on a whole group, which exists even without rows if nothing is grouped by.
        let columns = columns_of(predicate);
        !columns.is_empty() && columns.iter().all(|column| *column < groups && !is_converted(*column))
    });
    below.iter_mut().for_each(|predicate| substitute(predicate, &aggregate.groups));
    aggregate.input = Box::new(push(*aggregate.input, below));
    PlanNode::Aggregate(aggregate).filtered(above)
}

fn push_into_join(mut join: Join, predicates: Vec<BoundExpr>) -> PlanNode {
    let bases = join.bases();
    let mut all = split(std::mem::take(&mut join.filters).into_iter().chain(predicates));
    add_implied_constants(&mut all);
    let mut below: Vec<Vec<BoundExpr>> = vec![Vec::new(); join.inputs.len()];
    for mut predicate in all {
        match only_input(&predicate, &bases) {
            Some(input) => {
                renumber(&mut predicate, &|column| column - bases[input]);
                below[input].push(predicate);
            }
            None => join.filters.push(predicate),
        }
    }
    join.inputs = join.inputs.into_iter().zip(below).map(|(input, predicates)| push(input, predicates)).collect();
    PlanNode::Join(join)
}

/// The one input whose columns the predicate reads; None if it reads none or several.
pub(super) fn only_input(predicate: &BoundExpr, bases: &[usize]) -> Option<usize> {
    let columns = columns_of(predicate);
    let input_of = |column: usize| bases.partition_point(|base| *base <= column) - 1;
    let first = input_of(*columns.first()?);
    (input_of(*columns.last()?) == first).then_some(first)
}

/// `a = b AND a = 5` also says `b = 5` (PostgreSQL: equivclass.c). Only where all three are one operator.
fn add_implied_constants(predicates: &mut Vec<BoundExpr>) {
    let mut next = 0;
    while next < predicates.len() {
        let mut implied = Vec::new();
        if let Some((operator, column, constant)) = column_equals_constant(&predicates[next]) {
            for other in predicates.iter() {
                let BoundExpr::Call { function, arguments, .. } = other else { continue };
                let [BoundExpr::Column { index: a, .. }, BoundExpr::Column { index: b, .. }] = &arguments[..] else {
                    continue;
                };
                if !std::ptr::eq(*function, operator) || function.arguments[0] != function.arguments[1] || a == b {
                    continue;
                }
                let other_side = match (*a == column, *b == column) {
                    (true, _) => &arguments[1],
                    (_, true) => &arguments[0],
                    (false, false) => continue,
                };
                let BoundExpr::Column { index: target, .. } = other_side else { continue };
                let known = |p: &BoundExpr| column_equals_constant(p).is_some_and(|(_, known, _)| known == *target);
                if predicates.iter().chain(&implied).any(known) {
                    continue;
                }
                let mut copy = predicates[next].clone();
                if let BoundExpr::Call { arguments, .. } = &mut copy {
                    *arguments = vec![other_side.clone(), constant.clone()];
                }
                implied.push(copy);
            }
        }
        predicates.append(&mut implied);
        next += 1;
    }
}

type Operator = &'static crate::catalog::functions::Function;

fn column_equals_constant(predicate: &BoundExpr) -> Option<(Operator, usize, &BoundExpr)> {
    let BoundExpr::Call { function, arguments, .. } = predicate else { return None };
    let is_constant = |e: &BoundExpr| matches!(e, BoundExpr::Literal { .. } | BoundExpr::Parameter { .. });
    match (&arguments[..], function.name) {
        ([BoundExpr::Column { index, .. }, constant], "=") | ([constant, BoundExpr::Column { index, .. }], "=")
            if is_constant(constant) =>
        {
            Some((function, *index, constant))
        }
        _ => None,
    }
}

/// A predicate that is the same for a whole partition of every call keeps or drops whole partitions.
fn push_into_window(input: PlanNode, calls: Vec<WindowCall>, predicates: Vec<BoundExpr>) -> PlanNode {
    let is_partitioned = |column: &usize| {
        calls.iter().all(|call| {
            call.partition.iter().any(|expr| matches!(expr, BoundExpr::Column { index, .. } if index == column))
        })
    };
    let (below, above): (Vec<_>, Vec<_>) = predicates.into_iter().partition(|predicate| {
        let columns = columns_of(predicate);
        !columns.is_empty() && columns.iter().all(is_partitioned)
    });
    PlanNode::Window { input: Box::new(push(input, below)), calls }.filtered(above)
}

/// Whether the rows are groups, of which HAVING asks a subquery: what that says of a group stays with it (planner.c, subquery_planner:
/// contain_subplans).
pub(super) fn is_grouped(node: &PlanNode) -> bool {
    match node {
        PlanNode::Aggregate(_) => true,
        PlanNode::Filter { input, .. } | PlanNode::Project { input, .. } => is_grouped(input),
        PlanNode::SideJoin(join) => is_grouped(&join.left),
        _ => false,
    }
}

fn push_into_side_join(mut join: SideJoin, predicates: Vec<BoundExpr>) -> PlanNode {
    let left_width = join.left.width();
    let is_right = |column: usize| column >= left_width;
    let keeps_right = reduce_full(&mut join, &predicates);
    // What is asked for each row is a part of the expression, of which PostgreSQL computes the others, too.
    let is_computed_beside = |predicate: &BoundExpr| {
        let is_sure = || cannot_raise_but(predicate, &|part| is_plainly_null_on(part, &is_right));
        join.is_per_row && columns_of(predicate).into_iter().any(is_right) && !is_sure()
    };
    let pads = join.kind == SideKind::Left
        && !predicates.iter().any(is_computed_beside)
        && !hanging::may_raise(&join, &predicates);
    if pads && removes_padded(&join, &predicates, Side::Right) {
        // The padded rows would not survive (PostgreSQL: prepjointree.c reduce_outer_joins).
        let inner = Join::new(vec![*join.left, *join.right], join.filters);
        return push_into_join(Join { per_row: vec![false, join.is_per_row], ..inner }, predicates);
    }
    // A full join makes rows of its own on both sides.
    let keeps_left = join.kind != SideKind::Full;
    let is_of_right =
        |predicate: &&BoundExpr| keeps_right && only_input(predicate, &[0, left_width]).is_some_and(|input| input == 1);
    let of_right: Vec<BoundExpr> = predicates.iter().filter(is_of_right).cloned().collect();
    let (mut left_only, above): (Vec<_>, Vec<_>) = predicates.into_iter().partition(|predicate| {
        let columns = columns_of(predicate);
        keeps_left && !columns.is_empty() && !columns.iter().any(|column| is_right(*column))
    });
    let mut conditions = split(std::mem::take(&mut join.filters));
    if join.kind == SideKind::Semi && !is_grouped(&join.left) {
        let (on_left, rest): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|condition| {
            let columns = columns_of(condition);
            !columns.is_empty() && !columns.iter().any(|column| is_right(*column))
        });
        left_only.extend(on_left);
        conditions = rest;
    }
    let (mut right_only, mut rest): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|condition| {
        let columns = columns_of(condition);
        keeps_left && !columns.is_empty() && columns.iter().all(|column| is_right(*column))
    });
    if join.kind == SideKind::Semi && !right_only.is_empty() && raises(&mut join.right, |_| false) {
        // Of an IN whose left side reads nothing PostgreSQL computes the whole subquery (convert_ANY_sublink_to_join pulls none up).
        rest.append(&mut right_only);
    }
    right_only.extend(of_right);
    right_only.iter_mut().for_each(|condition| renumber(condition, &|column| column - left_width));
    join.filters = rest;
    join.left = Box::new(push(*join.left, left_only));
    join.right = Box::new(push(*join.right, right_only));
    brought_down(join, above)
}
