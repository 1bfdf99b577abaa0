//! Rewrites of a plan, one per file; each keeps the rows and the output columns.

pub(super) mod bounds;
pub(super) mod collate;
pub(super) mod constants;
pub(super) mod disjunctions;
pub(super) mod fold;
mod hanging;
pub(super) mod joins;
pub(super) mod merge;
pub(super) mod order;
mod padded;
pub(super) mod prune;
pub(super) mod pushdown;
pub(super) mod scans;
pub(super) mod unique;

use crate::binder::{BoundExpr, cannot_raise};
use crate::planner::expression::bytes_of;
use crate::planner::node::PlanNode;

/// Calls `visit` on each input of the node.
pub(super) fn for_each_input_mut(
    node: &mut PlanNode,
    visit: &mut dyn FnMut(&mut PlanNode) -> Result<(), crate::reason::UpstreamReason>,
) -> Result<(), crate::reason::UpstreamReason> {
    match node {
        PlanNode::OneRow
        | PlanNode::Scan(_)
        | PlanNode::Values { .. }
        | PlanNode::Common { .. }
        | PlanNode::Series { .. }
        | PlanNode::Working { .. } => Ok(()),
        PlanNode::Expand(expand) => visit(&mut expand.input),
        PlanNode::Recursive(recursive) => {
            visit(&mut recursive.base)?;
            visit(&mut recursive.step)
        }
        PlanNode::Filter { input, .. }
        | PlanNode::DistinctOn { input, .. }
        | PlanNode::Window { input, .. }
        | PlanNode::Project { input, .. }
        | PlanNode::Sort { input, .. }
        | PlanNode::Limit { input, .. } => visit(input),
        PlanNode::Aggregate(aggregate) => visit(&mut aggregate.input),
        PlanNode::Join(join) => join.inputs.iter_mut().try_for_each(visit),
        PlanNode::Append { inputs, .. } => inputs.iter_mut().try_for_each(visit),
        PlanNode::SideJoin(join) => {
            visit(&mut join.left)?;
            visit(&mut join.right)
        }
        PlanNode::SetOperation { left, right, .. } => {
            visit(left)?;
            visit(right)
        }
    }
}

/// See [`crate::planner::Plan::bytes`].
pub(super) fn bytes_of_node(node: &mut PlanNode) -> usize {
    // Its own lists of columns and calls.
    let mut bytes = size_of::<PlanNode>() + node.width() * size_of::<usize>();
    if let PlanNode::Scan(scan) = &*node {
        bytes += size_of::<crate::planner::node::Scan>() + scan.columns.len() * size_of::<usize>();
    }
    // Neither visit has an error.
    let _ = for_each_expression_mut(node, &mut |expr| {
        bytes += bytes_of(expr);
        Ok(())
    });
    let _ = for_each_input_mut(node, &mut |input| {
        bytes += bytes_of_node(input);
        Ok(())
    });
    bytes
}

/// Whether computing the node's rows may raise an error. `is_plain`: of nodes of a kind that it is not known of here, whether only their
/// expressions and inputs may.
pub(super) fn raises(node: &mut PlanNode, is_plain: fn(&PlanNode) -> bool) -> bool {
    let is_known = matches!(
        node,
        PlanNode::OneRow
            | PlanNode::Scan(_)
            | PlanNode::Filter { .. }
            | PlanNode::Project { .. }
            | PlanNode::Join(_)
            | PlanNode::Append { .. }
            | PlanNode::SetOperation { .. }
            | PlanNode::Values { .. }
    );
    let mut found = !is_known && !is_plain(node);
    let _ = for_each_expression_mut(node, &mut |expr| {
        found |= !cannot_raise(expr);
        Ok(())
    });
    let _ = for_each_input_mut(node, &mut |input| {
        found |= raises(input, is_plain);
        Ok(())
    });
    found
}

/// Calls `visit` on each expression of the node itself.
pub(super) fn for_each_expression_mut(
    node: &mut PlanNode,
    visit: &mut dyn FnMut(&mut BoundExpr) -> Result<(), crate::reason::UpstreamReason>,
) -> Result<(), crate::reason::UpstreamReason> {
    match node {
        PlanNode::OneRow
        | PlanNode::Append { .. }
        | PlanNode::SetOperation { .. }
        | PlanNode::Common { .. }
        | PlanNode::Recursive(_)
        | PlanNode::Working { .. } => Ok(()),
        PlanNode::Expand(expand) => {
            expand.functions.iter_mut().flat_map(|call| &mut call.arguments).try_for_each(visit)
        }
        PlanNode::DistinctOn { keys, .. } => keys.iter_mut().try_for_each(visit),
        PlanNode::Values { rows, .. } => rows.iter_mut().flatten().try_for_each(visit),
        PlanNode::Window { calls, .. } => {
            calls.iter_mut().flat_map(crate::binder::WindowCall::expressions_mut).try_for_each(visit)
        }
        PlanNode::Series { bounds, .. } => bounds.iter_mut().try_for_each(visit),
        PlanNode::Scan(scan) => scan.filters.iter_mut().try_for_each(visit),
        PlanNode::Filter { predicates, .. } => predicates.iter_mut().try_for_each(visit),
        PlanNode::Project { expressions, .. } => expressions.iter_mut().try_for_each(visit),
        PlanNode::Join(join) => {
            for equality in join.equalities.iter_mut().chain(&mut join.implied) {
                visit(&mut equality.left)?;
                visit(&mut equality.right)?;
            }
            join.filters.iter_mut().try_for_each(visit)
        }
        PlanNode::SideJoin(join) => {
            for equality in join.equalities.iter_mut().chain(&mut join.test_key) {
                visit(&mut equality.left)?;
                visit(&mut equality.right)?;
            }
            join.filters.iter_mut().chain(&mut join.test).try_for_each(visit)
        }
        PlanNode::Aggregate(aggregate) => {
            aggregate.groups.iter_mut().try_for_each(&mut *visit)?;
            aggregate.arguments.iter_mut().try_for_each(&mut *visit)?;
            for call in &mut aggregate.calls {
                call.filter.iter_mut().try_for_each(&mut *visit)?;
                call.order.iter_mut().try_for_each(|key| visit(&mut key.expr))?;
            }
            Ok(())
        }
        PlanNode::Sort { keys, limit, offset, .. } => {
            keys.iter_mut().try_for_each(|key| visit(&mut key.expr))?;
            limit.iter_mut().chain(offset).try_for_each(visit)
        }
        PlanNode::Limit { limit, offset, .. } => limit.iter_mut().chain(offset).try_for_each(visit),
    }
}
