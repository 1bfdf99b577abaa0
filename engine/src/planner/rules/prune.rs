//! Drops columns, expressions and aggregates that nobody above reads (PostgreSQL: allpaths.c
//! remove_unused_subquery_outputs), so that scans touch only what the answer needs.

use std::collections::BTreeSet;

use crate::binder::{BoundExpr, WindowCall, cannot_raise};
use crate::planner::expression::{collect_columns, columns_of, renumber};
use crate::planner::node::{Aggregate, Expand, PlanNode, Scan, SideJoin, SideKind};
use crate::planner::rules::for_each_input_mut;
use crate::planner::rules::merge::placeholder;

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
        PlanNode::Scan(scan) => prune_scan(scan, needed),
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
        PlanNode::SideJoin(join) => prune_side_join(join, needed),
        PlanNode::Aggregate(aggregate) => prune_aggregate(aggregate, needed),
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
        PlanNode::DistinctOn { input, keys } => {
            let mut needed = needed.clone();
            keys.iter().for_each(|key| collect_columns(key, &mut needed));
            let positions = prune_node(input, &needed);
            move_columns(keys, &positions);
            positions
        }
        PlanNode::Append { inputs, types, is_converted } => {
            // PostgreSQL computes all columns of a set operation that it does not pull up (allpaths.c,
            // remove_unused_subquery_outputs), and raises their errors.
            let raising = (0..types.len()).filter(|column| inputs.iter().any(|input| may_raise(input, *column)));
            let needed: BTreeSet<usize> = needed.iter().copied().chain(raising).collect();
            inputs.iter_mut().for_each(|input| prune_exactly(input, &needed));
            keep(is_converted, &needed);
            keep(types, &needed)
        }
        PlanNode::SetOperation { left, right, types, .. } => {
            // Every column tells rows apart.
            let all = (0..types.len()).collect();
            prune_exactly(left, &all);
            prune_exactly(right, &all);
            (0..types.len()).map(Some).collect()
        }
        PlanNode::Values { rows, types } => {
            for row in rows {
                keep(row, needed);
            }
            keep(types, needed)
        }
        PlanNode::Window { input, calls } => prune_window(input, calls, needed),
        PlanNode::Common { columns, .. } => keep(columns, needed),
        PlanNode::Series { .. } => vec![Some(0)],
        PlanNode::Working { types, .. } => (0..types.len()).map(Some).collect(),
        // What a round reads, and what tells rows apart, is all of them.
        PlanNode::Recursive(recursive) => {
            let all: BTreeSet<usize> = (0..recursive.types.len()).collect();
            prune_exactly(&mut recursive.base, &all);
            prune_exactly(&mut recursive.step, &all);
            all.into_iter().map(Some).collect()
        }
        PlanNode::Expand(expand) => prune_expand(expand, needed),
    }
}

fn prune_scan(scan: &mut Scan, needed: &BTreeSet<usize>) -> Positions {
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

fn prune_side_join(join: &mut SideJoin, needed: &BTreeSet<usize>) -> Positions {
    let left_width = join.left.width();
    let gives_right = matches!(join.kind, SideKind::Left | SideKind::Full | SideKind::Single);
    let mut below: BTreeSet<usize> =
        needed.iter().copied().filter(|column| gives_right || *column < left_width).collect();
    join.filters.iter().chain(&join.test).for_each(|filter| collect_columns(filter, &mut below));
    let mut positions = prune_inputs([&mut *join.left, &mut *join.right].into_iter(), &below);
    move_columns(&mut join.filters, &positions);
    move_columns(join.test.as_mut_slice(), &positions);
    if !gives_right {
        positions.truncate(left_width);
        if join.kind == SideKind::Mark {
            positions.push(Some(join.left.width()));
        }
    }
    positions
}

fn prune_aggregate(aggregate: &mut Aggregate, needed: &BTreeSet<usize>) -> Positions {
    let groups = aggregate.groups.len();
    let calls = needed.iter().filter_map(|column| column.checked_sub(groups)).collect();
    let call_positions = keep(&mut aggregate.calls, &calls);
    let arguments = aggregate.calls.iter().flat_map(|call| call.argument.iter().chain(&call.extra)).copied();
    let arguments = arguments.collect();
    let argument_positions = keep(&mut aggregate.arguments, &arguments);
    for call in &mut aggregate.calls {
        call.argument = call.argument.and_then(|argument| argument_positions[argument]);
        let moved = |argument: &usize| argument_positions[*argument].expect("an argument in use was kept");
        call.extra = call.extra.iter().map(moved).collect();
    }
    let mut below = BTreeSet::new();
    let filters = aggregate.calls.iter().filter_map(|call| call.filter.as_ref());
    let order = aggregate.calls.iter().flat_map(|call| &call.order).map(|key| &key.expr);
    let own = aggregate.groups.iter().chain(&aggregate.arguments).chain(filters).chain(order);
    own.for_each(|expr| collect_columns(expr, &mut below));
    let moved = prune_node(&mut aggregate.input, &below);
    move_columns(&mut aggregate.groups, &moved);
    move_columns(&mut aggregate.arguments, &moved);
    for call in &mut aggregate.calls {
        move_columns(call.filter.as_mut_slice(), &moved);
        call.order.iter_mut().for_each(|key| move_columns(std::slice::from_mut(&mut key.expr), &moved));
    }
    let after_groups = call_positions.iter().map(|position| position.map(|at| at + groups));
    (0..groups).map(Some).chain(after_groups).collect()
}

/// Functions are called whoever reads their columns: they decide how many rows there are.
fn prune_expand(expand: &mut Expand, needed: &BTreeSet<usize>) -> Positions {
    let width = expand.input.width();
    let mut below: BTreeSet<usize> = needed.range(..width).copied().collect();
    let arguments = expand.functions.iter().flat_map(|call| &call.arguments);
    arguments.for_each(|expr| collect_columns(expr, &mut below));
    let mut positions = prune_node(&mut expand.input, &below);
    expand.functions.iter_mut().for_each(|call| move_columns(&mut call.arguments, &positions));
    let base = expand.input.width();
    positions.extend((base..base + expand.own_width()).map(Some));
    positions
}

fn prune_window(input: &mut PlanNode, calls: &mut Vec<WindowCall>, needed: &BTreeSet<usize>) -> Positions {
    let width = input.width();
    let mut wanted: BTreeSet<usize> = needed.iter().filter_map(|column| column.checked_sub(width)).collect();
    // PostgreSQL computes what the windows of a subquery are by, whoever reads their calls (subselects keep what is sorted by).
    let raises = |call: &WindowCall| {
        let keys = call.partition.iter().chain(call.order.iter().map(|key| &key.expr));
        keys.into_iter().any(|expr| may_raise_over(input, expr))
    };
    wanted.extend(calls.iter().enumerate().filter(|(_, call)| raises(call)).map(|(at, _)| at));
    let call_positions = keep(calls, &wanted);
    let mut below: BTreeSet<usize> = needed.range(..width).copied().collect();
    for expr in calls.iter_mut().flat_map(WindowCall::expressions_mut) {
        collect_columns(expr, &mut below);
    }
    let mut positions = prune_node(input, &below);
    for expr in calls.iter_mut().flat_map(WindowCall::expressions_mut) {
        move_columns(std::slice::from_mut(expr), &positions);
    }
    let base = input.width();
    positions.extend(call_positions.iter().map(|position| position.map(|at| at + base)));
    positions
}

/// Afterwards the node puts out the needed columns, in order, and nothing else.
fn prune_exactly(node: &mut PlanNode, needed: &BTreeSet<usize>) {
    let positions = prune_node(node, needed);
    let places: Vec<usize> =
        needed.iter().map(|column| positions[*column].expect("a needed column was kept")).collect();
    if places.len() == node.width() && places.iter().enumerate().all(|(at, place)| at == *place) {
        return;
    }
    let input = Box::new(std::mem::replace(node, PlanNode::OneRow));
    *node = PlanNode::Project { input, expressions: places.into_iter().map(placeholder).collect() };
}

/// Drops the columns of the common rows that none of its readers, pruned already, reads.
pub(in crate::planner) fn prune_common(index: usize, common: &mut PlanNode, readers: &mut [&mut PlanNode]) {
    let mut needed = BTreeSet::new();
    for reader in readers.iter_mut() {
        for_each_common(reader, index, &mut |columns| needed.extend(columns.iter().copied()));
    }
    // PostgreSQL computes all columns of what it materialises (subselect.c, SS_process_ctes), and raises their errors.
    needed.extend((0..common.width()).filter(|column| may_raise(common, *column)));
    prune_exactly(common, &needed);
    let place = |column: &usize| needed.range(..*column).count();
    for reader in readers.iter_mut() {
        for_each_common(reader, index, &mut |columns| columns.iter_mut().for_each(|column| *column = place(column)));
    }
}

/// Whether an error may be raised by computing the expression over the node's rows.
pub(in crate::planner) fn may_raise_over(node: &PlanNode, expr: &BoundExpr) -> bool {
    !cannot_raise(expr) || columns_of(expr).into_iter().any(|column| may_raise(node, column))
}

/// Likewise of an expression that numbers the node's columns from `base` on.
pub(crate) fn may_raise_at(node: &PlanNode, base: usize, expr: &BoundExpr) -> bool {
    let raises = |column: usize| column.checked_sub(base).is_none_or(|column| may_raise(node, column));
    !cannot_raise(expr) || columns_of(expr).into_iter().any(raises)
}

/// Whether an error may be raised by computing that column.
fn may_raise(node: &PlanNode, column: usize) -> bool {
    let of = may_raise_over;
    match node {
        PlanNode::Scan(_) | PlanNode::Common { .. } | PlanNode::OneRow => false,
        PlanNode::Values { rows, .. } => !rows.iter().filter_map(|row| row.get(column)).all(cannot_raise),
        PlanNode::Project { input, expressions } => expressions.get(column).is_some_and(|expr| of(input, expr)),
        PlanNode::Filter { input, .. }
        | PlanNode::Sort { input, .. }
        | PlanNode::Limit { input, .. }
        | PlanNode::DistinctOn { input, .. } => may_raise(input, column),
        PlanNode::Append { inputs, .. } => inputs.iter().any(|input| may_raise(input, column)),
        PlanNode::Aggregate(aggregate) if column < aggregate.groups.len() => {
            of(&aggregate.input, &aggregate.groups[column])
        }
        PlanNode::Window { input, .. } if column < input.width() => may_raise(input, column),
        PlanNode::Join(join) => {
            let (input, column) = join.input_at(column);
            may_raise(input, column)
        }
        PlanNode::SideJoin(join) if column < join.left.width() => may_raise(&join.left, column),
        PlanNode::SideJoin(join) if column < join.left.width() + join.right.width() => {
            may_raise(&join.right, column - join.left.width())
        }
        _ => true,
    }
}

fn for_each_common(node: &mut PlanNode, number: usize, visit: &mut dyn FnMut(&mut Vec<usize>)) {
    if let PlanNode::Common { index, columns } = node
        && *index == number
    {
        visit(columns);
    }
    let outcome = for_each_input_mut(node, &mut |input| {
        for_each_common(input, number, visit);
        Ok(())
    });
    debug_assert!(outcome.is_ok(), "the visit raises no error");
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
