//! Drops columns, expressions and aggregates that nobody above reads (PostgreSQL: allpaths.c
//! remove_unused_subquery_outputs), so that scans touch only what the answer needs.

use std::collections::BTreeSet;

use crate::binder::BoundExpr;
use crate::planner::expression::{collect_columns, renumber};
use crate::planner::node::PlanNode;

/// Keeps every output column of the root.
pub(in crate::planner) fn prune(root: &mut PlanNode) {
    let all = (0..root.width()).collect();
    prune_node(root, &all);
}

/// Where each column of a node's old output is in its new one.
type Positions = Vec<Option<usize>>;

fn prune_node(node: &mut PlanNode, needed: &BTreeSet<usize>) -> Positions {
    match node {
        PlanNode::OneRow => Vec::new(),
        PlanNode::Scan(scan) => {
            let mut tested = BTreeSet::new();
            scan.filters.iter().for_each(|filter| collect_columns(filter, &mut tested));
            let outputs: Vec<usize> = needed.iter().copied().collect();
            let order: Vec<usize> = outputs.iter().chain(tested.difference(needed)).copied().collect();
            let mut positions = vec![None; scan.columns.len()];
            for (new, old) in order.iter().enumerate() {
                positions[*old] = Some(new);
            }
            move_columns(&mut scan.filters, &positions);
            scan.columns = order.iter().map(|old| scan.columns[*old]).collect();
            scan.outputs = outputs.len();
            positions.iter().map(|position| position.filter(|at| *at < scan.outputs)).collect()
        }
        PlanNode::Filter { input, predicates } => {
            let mut needed = needed.clone();
            predicates.iter().for_each(|predicate| collect_columns(predicate, &mut needed));
            let positions = prune_node(input, &needed);
            move_columns(predicates, &positions);
            positions
        }
        PlanNode::Project { input, expressions } => {
            let positions = keep(expressions, needed);
            let mut below = BTreeSet::new();
            expressions.iter().for_each(|expr| collect_columns(expr, &mut below));
            let moved = prune_node(input, &below);
            move_columns(expressions, &moved);
            positions
        }
        PlanNode::Join(join) => {
            let mut needed = needed.clone();
            join.filters.iter().for_each(|filter| collect_columns(filter, &mut needed));
            let positions = prune_inputs(join.inputs.iter_mut(), &needed);
            move_columns(&mut join.filters, &positions);
            positions
        }
        PlanNode::LeftJoin(join) => {
            let mut needed = needed.clone();
            join.filters.iter().for_each(|filter| collect_columns(filter, &mut needed));
            let positions = prune_inputs([&mut *join.left, &mut *join.right].into_iter(), &needed);
            move_columns(&mut join.filters, &positions);
            positions
        }
        PlanNode::Aggregate(aggregate) => {
            let groups = aggregate.groups.len();
            let calls = needed.iter().filter_map(|column| column.checked_sub(groups)).collect();
            let call_positions = keep(&mut aggregate.calls, &calls);
            let arguments = aggregate.calls.iter().filter_map(|call| call.argument).collect();
            let argument_positions = keep(&mut aggregate.arguments, &arguments);
            for call in &mut aggregate.calls {
                call.argument = call.argument.and_then(|argument| argument_positions[argument]);
            }
            let mut below = BTreeSet::new();
            let filters = aggregate.calls.iter().filter_map(|call| call.filter.as_ref());
            let own = aggregate.groups.iter().chain(&aggregate.arguments).chain(filters);
            own.for_each(|expr| collect_columns(expr, &mut below));
            let moved = prune_node(&mut aggregate.input, &below);
            move_columns(&mut aggregate.groups, &moved);
            move_columns(&mut aggregate.arguments, &moved);
            for filter in aggregate.calls.iter_mut().filter_map(|call| call.filter.as_mut()) {
                move_columns(std::slice::from_mut(filter), &moved);
            }
            let after_groups = call_positions.iter().map(|position| position.map(|at| at + groups));
            (0..groups).map(Some).chain(after_groups).collect()
        }
        PlanNode::Sort { input, keys, .. } => {
            let mut needed = needed.clone();
            keys.iter().for_each(|key| collect_columns(&key.expr, &mut needed));
            let positions = prune_node(input, &needed);
            for key in keys {
                move_columns(std::slice::from_mut(&mut key.expr), &positions);
            }
            positions
        }
        PlanNode::Limit { input, .. } => prune_node(input, needed),
    }
}

fn prune_inputs<'n>(inputs: impl Iterator<Item = &'n mut PlanNode>, needed: &BTreeSet<usize>) -> Positions {
    let mut positions = Positions::new();
    let mut new_base = 0;
    for input in inputs {
        let (old_base, width) = (positions.len(), input.width());
        let below = needed.range(old_base..old_base + width).map(|column| column - old_base).collect();
        let moved = prune_node(input, &below);
        positions.extend(moved.iter().map(|position| position.map(|at| at + new_base)));
        new_base += input.width();
    }
    positions
}

/// Retains the entries whose index is needed.
fn keep<T>(entries: &mut Vec<T>, needed: &BTreeSet<usize>) -> Positions {
    let mut positions = vec![None; entries.len()];
    for (new, old) in needed.iter().enumerate() {
        positions[*old] = Some(new);
    }
    let mut index = 0;
    entries.retain(|_| {
        index += 1;
        positions[index - 1].is_some()
    });
    positions
}

fn move_columns(expressions: &mut [BoundExpr], positions: &Positions) {
    for expr in expressions {
        renumber(expr, &|column| positions[column].expect("a column that an expression reads was kept"));
    }
}
