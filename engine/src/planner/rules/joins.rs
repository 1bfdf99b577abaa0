//! Finds the equalities of a join condition that can be hashed; the rest stays a filter.

use crate::binder::BoundExpr;
use crate::catalog::functions::Function;
use crate::planner::expression::columns_of;
use crate::planner::node::{Equality, PlanNode};
use crate::planner::rules::for_each_input_mut;
use crate::planner::rules::pushdown::only_input;
use crate::reason::UpstreamReason;
use crate::types::PgType;

pub(in crate::planner) fn find_equalities(node: &mut PlanNode) -> Result<(), UpstreamReason> {
    for_each_input_mut(node, &mut find_equalities)?;
    match node {
        PlanNode::Join(join) => {
            let bases = join.bases();
            split(&mut join.filters, &mut join.equalities, &bases);
        }
        PlanNode::LeftJoin(join) => {
            let left_width = join.left.width();
            let bases = [0, left_width, left_width + join.right.width()];
            split(&mut join.filters, &mut join.equalities, &bases);
            for equality in &mut join.equalities {
                if equality.left_input != 0 {
                    std::mem::swap(&mut equality.left, &mut equality.right);
                    (equality.left_input, equality.right_input) = (0, 1);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn split(filters: &mut Vec<BoundExpr>, equalities: &mut Vec<Equality>, bases: &[usize]) {
    for filter in std::mem::take(filters) {
        match as_equality(&filter, bases) {
            Some(equality) => equalities.push(equality),
            None => filters.push(filter),
        }
    }
}

fn as_equality(filter: &BoundExpr, bases: &[usize]) -> Option<Equality> {
    let BoundExpr::Call { function, arguments, .. } = filter else { return None };
    let [left, right] = &arguments[..] else { return None };
    if !is_hashable(function) || columns_of(left).is_empty() || columns_of(right).is_empty() {
        return None;
    }
    let (left_input, right_input) = (only_input(left, bases)?, only_input(right, bases)?);
    let equality = Equality { left_input, left: left.clone(), right_input, right: right.clone() };
    (left_input != right_input).then_some(equality)
}

/// Whether equal values have equal keys (see [`crate::executor::key_table`]): one type on both sides, or one family whose members
/// compare by value.
fn is_hashable(function: &Function) -> bool {
    let is_integer = |t: PgType| matches!(t, PgType::Int2 | PgType::Int4 | PgType::Int8);
    let is_float = |t: PgType| matches!(t, PgType::Float4 | PgType::Float8);
    let [left, right] = function.arguments else { return false };
    function.name == "="
        && !matches!(left, PgType::Json | PgType::Jsonb | PgType::Unknown)
        && (left == right || (is_integer(*left) && is_integer(*right)) || (is_float(*left) && is_float(*right)))
}
