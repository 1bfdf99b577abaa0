//! Rewrites of a plan, one per file; each keeps the rows and the output columns.

pub(super) mod fold;
pub(super) mod joins;
pub(super) mod merge;
pub(super) mod order;
pub(super) mod prune;
pub(super) mod pushdown;
pub(super) mod scans;

use crate::binder::BoundExpr;
use crate::planner::node::PlanNode;

/// Calls `visit` on each input of the node.
pub(super) fn for_each_input_mut(
    node: &mut PlanNode,
    visit: &mut dyn FnMut(&mut PlanNode) -> Result<(), crate::reason::UpstreamReason>,
) -> Result<(), crate::reason::UpstreamReason> {
    match node {
        PlanNode::OneRow | PlanNode::Scan(_) => Ok(()),
        PlanNode::Filter { input, .. }
        | PlanNode::Project { input, .. }
        | PlanNode::Sort { input, .. }
        | PlanNode::Limit { input, .. } => visit(input),
        PlanNode::Aggregate(aggregate) => visit(&mut aggregate.input),
        PlanNode::Join(join) => join.inputs.iter_mut().try_for_each(visit),
        PlanNode::LeftJoin(join) => {
            visit(&mut join.left)?;
            visit(&mut join.right)
        }
    }
}

/// Calls `visit` on each expression of the node itself.
pub(super) fn for_each_expression_mut(
    node: &mut PlanNode,
    visit: &mut dyn FnMut(&mut BoundExpr) -> Result<(), crate::reason::UpstreamReason>,
) -> Result<(), crate::reason::UpstreamReason> {
    match node {
        PlanNode::OneRow => Ok(()),
        PlanNode::Scan(scan) => scan.filters.iter_mut().try_for_each(visit),
        PlanNode::Filter { predicates, .. } => predicates.iter_mut().try_for_each(visit),
        PlanNode::Project { expressions, .. } => expressions.iter_mut().try_for_each(visit),
        PlanNode::Join(join) => {
            for equality in &mut join.equalities {
                visit(&mut equality.left)?;
                visit(&mut equality.right)?;
            }
            join.filters.iter_mut().try_for_each(visit)
        }
        PlanNode::LeftJoin(join) => {
            for equality in &mut join.equalities {
                visit(&mut equality.left)?;
                visit(&mut equality.right)?;
            }
            join.filters.iter_mut().try_for_each(visit)
        }
        PlanNode::Aggregate(aggregate) => {
            aggregate.groups.iter_mut().try_for_each(&mut *visit)?;
            aggregate.arguments.iter_mut().try_for_each(&mut *visit)?;
            aggregate.calls.iter_mut().filter_map(|call| call.filter.as_mut()).try_for_each(visit)
        }
        PlanNode::Sort { keys, limit, offset, .. } => {
            keys.iter_mut().try_for_each(|key| visit(&mut key.expr))?;
            limit.iter_mut().chain(offset).try_for_each(visit)
        }
        PlanNode::Limit { limit, offset, .. } => limit.iter_mut().chain(offset).try_for_each(visit),
    }
}
