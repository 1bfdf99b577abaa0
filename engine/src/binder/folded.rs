//! Modifiers that hang on what PostgreSQL's planner folds. It describes a result by the planned target list, in which an arm may
//! stand in the place of the whole CASE or COALESCE (clauses.c, eval_const_expressions_mutator), with a modifier of its own;
//! which one does may change from one value of a literal or a parameter to the next. Columns of a query that are constants have
//! been replaced by them before (prepjointree.c, pull_up_subqueries), and calls of functions in SQL by their bodies.
//!
//! A key of grouping sets that folds to a constant is one above them, too, in the sets that leave it out.

use crate::binder::relation::any_column;
use crate::binder::scope::Scope;
use crate::binder::typed::children;
use crate::binder::{Bound, BoundExpr, BoundRelation, unsupported};
use crate::catalog::functions::Function;
use crate::types::{PgType, Value};

/// Refuses an output column whose modifier may be another once constants are folded.
pub(super) fn check_modifier(expr: &BoundExpr, scope: &Scope) -> Bound<()> {
    let open = Open { scope };
    if open.is_open(expr) { Err(unsupported("a modifier that hangs on which arm is left")) } else { Ok(()) }
}

/// Refuses an output column of an open modifier.
pub(super) fn check_closed(is_open: bool) -> Bound<()> {
    if is_open { Err(unsupported("a modifier that hangs on which side is left")) } else { Ok(()) }
}

/// Whether PostgreSQL's planner may prove that there are no rows: a condition that is false or NULL once its constants are folded, or
/// that contradicts another, a constraint or the bounds of partitions (allpaths.c, set_append_rel_size; plancat.c,
/// relation_excluded_by_constraints). What reads nothing but columns of tables it cannot refute.
pub(super) fn may_be_proven_empty(relation: &BoundRelation) -> bool {
    let refutes = |condition: &BoundExpr| !reads_columns_alone(condition) || inputs_have_constants(relation);
    let any_refutes = |conditions: &[Option<&BoundExpr>]| conditions.iter().copied().flatten().any(refutes);
    match relation {
        // One row in any case.
        BoundRelation::Aggregate { groups, .. } if groups.is_empty() => false,
        BoundRelation::Filter { input, predicate } => refutes(predicate) || may_be_proven_empty(input),
        BoundRelation::Join { left, right, condition, .. }
        | BoundRelation::Dependent { left, right, condition, .. } => {
            any_refutes(&[condition.as_ref()]) || may_be_proven_empty(left) || may_be_proven_empty(right)
        }
        BoundRelation::Match { left, right, condition, test, .. } => {
            any_refutes(&[condition.as_ref(), test.as_ref()]) || may_be_proven_empty(left) || may_be_proven_empty(right)
        }
        // A partitioned table may have none.
        BoundRelation::Append { inputs, .. } => inputs.is_empty() || inputs.iter().any(may_be_proven_empty),
        // What it reads is not known here.
        BoundRelation::Common { .. } => true,
        _ => relation.inputs().into_iter().any(may_be_proven_empty),
    }
}

fn reads_columns_alone(condition: &BoundExpr) -> bool {
    match condition {
        BoundExpr::Column { .. } => true,
        BoundExpr::Not(operand) => reads_columns_alone(operand),
        BoundExpr::Call { arguments: parts, .. } | BoundExpr::And(parts) | BoundExpr::Or(parts) => {
            !parts.is_empty() && parts.iter().all(reads_columns_alone)
        }
        _ => false,
    }
}

/// Columns of them may be constants, which the planner puts in their place.
fn inputs_have_constants(relation: &BoundRelation) -> bool {
    relation.inputs().into_iter().any(|input| {
        let makes_them = match input {
            BoundRelation::OneRow | BoundRelation::Values { .. } | BoundRelation::Common { .. } => true,
            BoundRelation::Project { expressions, .. } => !expressions.iter().all(reads_columns_alone),
            _ => false,
        };
        makes_them || inputs_have_constants(input)
    })
}

/// It has no columns but such as are constants themselves.
pub(super) fn is_of_constants(expr: &BoundExpr, scope: &Scope) -> bool {
    let is_of_row = |index| !scope.columns().any(|column| column.index == index && column.is_constant);
    !any_column(expr, &is_of_row)
}

/// Whether folding may leave a constant in the place of an expression that has columns. Of literals as they are written, and of any
/// values of parameters: a plan made for values takes them for constants. What is strict is NULL where an argument is
/// (clauses.c, simplify_function).
pub(super) fn may_be_left_constant(expr: &BoundExpr) -> bool {
    let decides = |part: &BoundExpr| may_be_left_constant(part) && !is_value(part);
    match expr {
        BoundExpr::Column { .. } => false,
        BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => true,
        BoundExpr::And(parts) | BoundExpr::Or(parts) => parts.iter().any(may_be_left_constant),
        BoundExpr::Case { branches, .. } => branches.iter().any(|(condition, _)| may_be_left_constant(condition)),
        BoundExpr::Coalesce { arguments, .. } => arguments.first().is_none_or(may_be_left_constant),
        _ => {
            let parts = children(expr);
            parts.iter().any(|part| decides(part)) || parts.iter().all(|part| may_be_left_constant(part))
        }
    }
}

/// Whether what a function in SQL has been replaced by hangs on folding, where its arguments have modifiers. The body was bound
/// without them.
pub(super) fn may_choose(body: &BoundExpr, scope: &Scope) -> bool {
    let open = Open { scope };
    match body {
        BoundExpr::Case { branches, .. } => branches.iter().any(|(condition, _)| open.may_fold(condition)),
        BoundExpr::Coalesce { arguments, .. } if arguments.len() == 1 => may_choose(&arguments[0], scope),
        BoundExpr::Coalesce { arguments, .. } => {
            arguments.iter().any(|argument| open.may_become_constant(argument) || open.may_become_null(argument))
        }
        _ => false,
    }
}

struct Open<'a> {
    scope: &'a Scope,
}

impl Open<'_> {
    fn is_open(&self, expr: &BoundExpr) -> bool {
        match expr {
            BoundExpr::Column { index, .. } => {
                self.scope.columns().any(|column| column.index == *index && column.is_open)
            }
            BoundExpr::Case { branches, otherwise, expr_type } => {
                let arms = || branches.iter().map(|(_, result)| result).chain([&**otherwise]);
                let may_fold = branches.iter().any(|(condition, _)| self.may_fold(condition));
                // Without the arms whose condition may be NULL, for a strict operator in it.
                let stays = |(condition, result)| (!self.may_become_null(condition)).then_some(result);
                let left: Vec<&BoundExpr> =
                    branches.iter().map(|(c, r)| (c, r)).filter_map(stays).chain([&**otherwise]).collect();
                arms().any(|arm| self.is_open(arm))
                    || may_fold && arms().any(|arm| arm.expr_type().typmod != expr_type.typmod)
                    || left.len() <= branches.len() && common_modifier(left) != expr_type.typmod
            }
            BoundExpr::Coalesce { arguments, expr_type, .. } if arguments.len() > 1 => {
                arguments.iter().any(|arm| self.is_open(arm))
                    || self.modifiers_of_rest(arguments).iter().any(|typmod| *typmod != expr_type.typmod)
            }
            BoundExpr::Extreme { arguments, .. } => arguments.iter().any(|argument| self.is_open(argument)),
            BoundExpr::Call { arguments, expr_type, .. } if matches!(expr_type.pg_type, PgType::Array(_)) => {
                arguments.iter().any(|argument| self.is_open(argument))
            }
            _ => false,
        }
    }

    /// A part of the condition is the same for all rows.
    fn may_fold(&self, condition: &BoundExpr) -> bool {
        match condition {
            BoundExpr::And(parts) | BoundExpr::Or(parts) => parts.iter().any(|part| self.may_fold(part)),
            BoundExpr::Not(part)
            | BoundExpr::IsBool { operand: part, .. }
            | BoundExpr::IsNull { operand: part, .. } => self.may_fold(part),
            // Behind the first, a constant ends the list but does not make it one.
            BoundExpr::Coalesce { arguments, .. } => arguments.first().is_some_and(|first| self.may_fold(first)),
            BoundExpr::Case { branches, otherwise, .. } => {
                let arms = branches.iter().map(|(_, result)| result).chain([&**otherwise]);
                branches.iter().any(|(condition, _)| self.may_fold(condition))
                    && arms.into_iter().any(|arm| self.may_fold(arm))
            }
            _ => self.is_constant(condition),
        }
    }

    /// It is one, or an arm that is one may be all that is left of it.
    fn may_become_constant(&self, argument: &BoundExpr) -> bool {
        self.is_constant(argument)
            || match argument {
                BoundExpr::Case { branches, .. } => branches.iter().any(|(condition, _)| self.may_fold(condition)),
                BoundExpr::Coalesce { arguments, .. } => arguments.iter().any(|part| self.may_become_constant(part)),
                _ => false,
            }
    }

    /// It may be a constant that is NULL.
    fn may_be_dropped(&self, argument: &BoundExpr) -> bool {
        self.is_constant(argument) && !is_value(argument) || self.may_become_null(argument)
    }

    /// Of a COALESCE as it may be once its constants are folded: those that are NULL go; behind one that is not, all go. What a
    /// call of constants comes to is not known here, and it may stay a call.
    fn modifiers_of_rest(&self, arguments: &[BoundExpr]) -> Vec<i32> {
        let (mut ended, mut open) = (Vec::new(), vec![None]);
        for argument in arguments {
            let typmod = argument.expr_type().typmod;
            let common = |before: &Option<i32>| if before.is_none_or(|before| before == typmod) { typmod } else { -1 };
            let kept: Vec<i32> = open.iter().map(common).collect();
            if self.may_become_constant(argument) {
                ended.extend(kept.iter().copied());
            }
            if !self.may_be_dropped(argument) {
                open.clear();
            }
            if !matches!(argument, BoundExpr::Literal { value, .. } if *value != Value::Null) {
                open.extend(kept.into_iter().map(Some));
            }
            open.sort_unstable();
            open.dedup();
        }
        // Without any argument it is a NULL without modifier.
        ended.extend(open.into_iter().map(|typmod| typmod.unwrap_or(-1)));
        ended
    }

    /// A part of it may be a constant that is NULL, which makes what is strict NULL.
    fn may_become_null(&self, expr: &BoundExpr) -> bool {
        let is_null = match expr {
            BoundExpr::Literal { value, .. } => *value == Value::Null,
            BoundExpr::Parameter { .. } => true,
            BoundExpr::Column { .. } => self.is_constant(expr),
            _ => false,
        };
        is_null || children(expr).into_iter().any(|child| self.may_become_null(child))
    }

    fn is_constant(&self, expr: &BoundExpr) -> bool {
        is_of_constants(expr, self.scope)
    }
}

/// That of all of them; without one, none (nodeFuncs.c, exprTypmod).
fn common_modifier<'a>(arms: impl IntoIterator<Item = &'a BoundExpr>) -> i32 {
    let mut modifiers = arms.into_iter().map(|arm| arm.expr_type().typmod);
    let first = modifiers.next();
    first.filter(|first| modifiers.all(|typmod| typmod == *first)).unwrap_or(-1)
}

/// A literal that is no NULL, as it is or cast.
fn is_value(expr: &BoundExpr) -> bool {
    match expr {
        BoundExpr::Literal { value, .. } => *value != Value::Null,
        BoundExpr::Call { function, arguments, .. } => is_cast(function) && arguments.iter().all(is_value),
        _ => false,
    }
}

/// Casts have the name of the type that they make, length coercions too, or none. Of a value they make a value or an error; from
/// PostgreSQL 18 on a jsonb null is none.
fn is_cast(function: &Function) -> bool {
    if function.arguments.first() == Some(&PgType::Jsonb) {
        return false;
    }
    function.name.is_empty() || function.name == function.result.typname()
}
