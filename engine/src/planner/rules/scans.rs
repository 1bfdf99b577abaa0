//! Prepares scans: evaluation order of the filters, ways into an index, and the name of the result for the join cache.

use std::collections::BTreeSet;

use crate::binder::BoundExpr;
use crate::planner::cost::{in_evaluation_order, is_equivalence};
use crate::planner::expression::{column_equals, for_each_operand, is_immutable};
use crate::planner::node::{LookUp, PlanNode, Scan};
use crate::planner::rules::for_each_input_mut;
use crate::reason::UpstreamReason;

/// `own`: see [`in_evaluation_order`].
pub(in crate::planner) fn prepare(node: &mut PlanNode, own: usize) -> Result<(), UpstreamReason> {
    for_each_input_mut(node, &mut |input| prepare(input, own))?;
    match node {
        PlanNode::Scan(scan) => prepare_scan(scan, own),
        PlanNode::Filter { predicates, .. } => in_evaluation_order(predicates, own),
        PlanNode::Join(join) => in_evaluation_order(&mut join.filters, own),
        PlanNode::SideJoin(join) => in_evaluation_order(&mut join.filters, own),
        _ => {}
    }
    Ok(())
}

fn prepare_scan(scan: &mut Scan, own: usize) {
    scan.filters.sort_by_key(is_equivalence);
    in_evaluation_order(&mut scan.filters, own);
    scan.find_reached();
    scan.look_ups = (0..scan.filters.len()).filter_map(|filter| as_look_up(scan, filter)).collect();
    if scan.filters.iter().all(is_immutable) {
        let mut parameters = BTreeSet::new();
        scan.filters.iter().for_each(|filter| collect_parameters(filter, &mut parameters));
        scan.fingerprint = Some(format!("{}|{:?}", scan.outputs, scan.filters));
        scan.fingerprint_parameters = parameters.into_iter().collect();
    }
}

fn collect_parameters(expr: &BoundExpr, parameters: &mut BTreeSet<usize>) {
    if let BoundExpr::Parameter { index, .. } = expr {
        parameters.insert(*index);
    }
    for_each_operand(expr, &mut |operand| collect_parameters(operand, parameters));
}

fn as_look_up(scan: &Scan, filter: usize) -> Option<LookUp> {
    let (BoundExpr::Column { index, expr_type }, value) = column_equals(&scan.filters[filter])? else { return None };
    Some(LookUp { filter, column: scan.columns[*index], column_type: expr_type.pg_type, value: value.clone() })
}
