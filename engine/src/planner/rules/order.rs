//! Limit over Sort becomes a sort that keeps only those rows; sorts that nobody sees go.

use crate::planner::node::PlanNode;
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
    Ok(())
}

/// Moves the limit into the sort below, through projections (which keep order and number of rows).
fn sort_only(
    node: &mut PlanNode,
    limit: &mut Option<crate::binder::BoundExpr>,
    offset: &mut Option<crate::binder::BoundExpr>,
) {
    match node {
        PlanNode::Project { input, .. } => sort_only(input, limit, offset),
        PlanNode::Sort { limit: own_limit @ None, offset: own_offset @ None, .. } => {
            *own_limit = limit.take();
            *own_offset = offset.take();
        }
        _ => {}
    }
}
