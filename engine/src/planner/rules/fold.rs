//! Computes expressions of literals once, with the kernels that would compute them per row.
//!
//! An error while folding refuses the plan: PostgreSQL folds too and would raise it even where no row gets there
//! (PostgreSQL: clauses.c eval_const_expressions).

use crate::binder::BoundExpr;
use crate::catalog::functions::EvalContext;
use crate::planner::Abilities;
use crate::planner::expression::{any, expr_type_of, is_immutable_constant, try_for_each_operand_mut, type_of};
use crate::planner::node::PlanNode;
use crate::planner::rules::{for_each_expression_mut, for_each_input_mut};
use crate::reason::UpstreamReason;
use crate::types::{FormatSettings, Value};

pub(in crate::planner) fn fold(node: &mut PlanNode, abilities: &Abilities) -> Result<(), UpstreamReason> {
    for_each_input_mut(node, &mut |input| fold(input, abilities))?;
    for_each_expression_mut(node, &mut |expr| fold_expression(expr, abilities))?;
    if let PlanNode::Filter { predicates, .. } = node {
        predicates.retain(|predicate| !is_true(predicate));
    }
    Ok(())
}

fn is_true(predicate: &BoundExpr) -> bool {
    matches!(predicate, BoundExpr::Literal { value: Value::Bool(true), .. })
}

fn fold_expression(expr: &mut BoundExpr, abilities: &Abilities) -> Result<(), UpstreamReason> {
    while let BoundExpr::Coalesce { arguments, call: 1.., .. } = expr
        && let Some(only) = arguments.pop()
    {
        *expr = only;
    }
    if !any(expr, &|part| matches!(part, BoundExpr::Call { .. } | BoundExpr::Case { .. } | BoundExpr::Coalesce { .. }))
    {
        return Ok(());
    }
    let is_computed = matches!(expr, BoundExpr::Call { .. } | BoundExpr::Case { .. } | BoundExpr::Coalesce { .. });
    // Of AND, IN, GREATEST and the like only the operands can raise an error. PostgreSQL stops at what decides an AND or OR, and raises fewer.
    if !is_computed || !is_immutable_constant(expr) {
        return try_for_each_operand_mut(expr, &mut |operand| fold_expression(operand, abilities));
    }
    let value = value_of(expr, abilities)?;
    debug_assert!(value.fits(type_of(expr)), "a kernel returned another type than it declares");
    *expr = BoundExpr::Literal { value, expr_type: expr_type_of(expr) };
    Ok(())
}

pub(super) fn value_of(expr: &BoundExpr, abilities: &Abilities) -> Result<Value, UpstreamReason> {
    let settings = FormatSettings::default();
    let context = EvalContext { settings: &settings, transaction_time: None, orders: None };
    (abilities.constant)(expr, &[], &context).map_err(|error| UpstreamReason::LocalError(error.to_string().into()))
}
