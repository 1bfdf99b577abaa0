//! Modifiers that hang on what PostgreSQL's planner folds. It describes a result by the planned target list, in which an arm may
//! stand in the place of the whole CASE or COALESCE (clauses.c, eval_const_expressions_mutator), with a modifier of its own;
//! which one does may change from one value of a literal or a parameter to the next.

use crate::binder::relation::any_column;
use crate::binder::{Bound, BoundExpr, unsupported};
use crate::types::Value;

/// Refuses an output column whose modifier may be another once constants are folded. Not seen: a strict operator that a parameter
/// of NULL makes NULL.
pub(super) fn check_modifier(expr: &BoundExpr) -> Bound<()> {
    if is_open(expr) { Err(unsupported("a modifier that hangs on which arm is left")) } else { Ok(()) }
}

fn is_open(expr: &BoundExpr) -> bool {
    match expr {
        BoundExpr::Case { branches, otherwise, expr_type } => {
            let arms = || branches.iter().map(|(_, result)| result).chain([&**otherwise]);
            let may_fold = branches.iter().any(|(condition, _)| may_fold(condition));
            arms().any(is_open) || may_fold && arms().any(|arm| arm.expr_type().typmod != expr_type.typmod)
        }
        BoundExpr::Coalesce { arguments, expr_type, .. } if arguments.len() > 1 => {
            let (dropped, left): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| may_be_dropped(argument));
            let mut rest = if left.is_empty() { dropped.iter() } else { left.iter() }.map(|arm| arm.expr_type().typmod);
            let first = rest.next();
            let of_rest = first.filter(|first| rest.all(|typmod| typmod == *first)).unwrap_or(-1);
            arguments.iter().any(is_open) || !dropped.is_empty() && of_rest != expr_type.typmod
        }
        _ => false,
    }
}

/// A part of the condition is the same for all rows.
fn may_fold(condition: &BoundExpr) -> bool {
    match condition {
        BoundExpr::And(parts) | BoundExpr::Or(parts) => parts.iter().any(may_fold),
        BoundExpr::Not(part) => may_fold(part),
        _ => is_constant(condition),
    }
}

/// It may be a constant that is NULL; or, as a parameter, one that is not, behind which all is dropped.
fn may_be_dropped(argument: &BoundExpr) -> bool {
    is_constant(argument) && !is_value(argument)
}

/// A literal that is no NULL, as it is or cast.
fn is_value(expr: &BoundExpr) -> bool {
    match expr {
        BoundExpr::Literal { value, .. } => *value != Value::Null,
        BoundExpr::Call { arguments, .. } => arguments.iter().all(is_value),
        _ => false,
    }
}

fn is_constant(expr: &BoundExpr) -> bool {
    !any_column(expr, &|_| true)
}
