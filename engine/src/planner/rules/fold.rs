//! Computes expressions of literals once, with the kernels that would compute them per row, and finds those of parameters.
//!
//! An error while folding refuses the plan: PostgreSQL folds too and would raise it even where no row gets there
//! (PostgreSQL: clauses.c eval_const_expressions). A custom plan folds the parameters' values likewise, so that what is made of
//! them is computed before any row is.

use crate::binder::{BoundExpr, cannot_raise};
use crate::catalog::functions::EvalContext;
use crate::planner::Abilities;
use crate::planner::expression::{
    any, expr_type_of, for_each_operand, for_each_operand_mut, is_immutable, is_immutable_constant, is_row_independent,
    is_same, type_of,
};
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

/// Adds the largest expressions over the statement's own parameters, of which there are `own`, and literals that may raise an
/// error.
pub(in crate::planner) fn constants(
    node: &mut PlanNode,
    own: usize,
    found: &mut Vec<BoundExpr>,
) -> Result<(), UpstreamReason> {
    for_each_input_mut(node, &mut |input| constants(input, own, found))?;
    for_each_expression_mut(node, &mut |expr| {
        collect_constants(expr, own, found);
        Ok(())
    })
}

fn collect_constants(expr: &BoundExpr, own: usize, found: &mut Vec<BoundExpr>) {
    if cannot_raise(expr) || !any(expr, &|part| matches!(part, BoundExpr::Parameter { .. })) {
        return;
    }
    let is_scalar = |part: &BoundExpr| matches!(part, BoundExpr::Parameter { index, .. } if *index >= own);
    if is_row_independent(expr) && is_immutable(expr) && !any(expr, &is_scalar) {
        if !found.iter().any(|known| is_same(known, expr)) {
            found.push(expr.clone());
        }
        return;
    }
    for_each_operand(expr, &mut |operand| collect_constants(operand, own, found));
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
        let mut outcome = Ok(());
        for_each_operand_mut(expr, &mut |operand| {
            if outcome.is_ok() {
                outcome = fold_expression(operand, abilities);
            }
        });
        return outcome;
    }
    let expr_type = expr_type_of(expr);
    let settings = FormatSettings::default();
    let context = EvalContext { settings: &settings, transaction_time: None, orders: None };
    let value = (abilities.constant)(expr, &[], &context)
        .map_err(|error| UpstreamReason::LocalError(error.to_string().into()))?;
    debug_assert!(value.fits(type_of(expr)), "a kernel returned another type than it declares");
    *expr = BoundExpr::Literal { value, expr_type };
    Ok(())
}
