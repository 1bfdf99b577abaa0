//! Questions about and rewrites of bound expressions, as the rules and the executor need them. Pure.

use std::collections::BTreeSet;

use crate::binder::{BoundExpr, ExprType};
use crate::catalog::Collation;
use crate::types::PgType;

/// Calls `visit` on each direct operand.
pub fn for_each_operand<'e>(expr: &'e BoundExpr, visit: &mut dyn FnMut(&'e BoundExpr)) {
    match expr {
        BoundExpr::Column { .. } | BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => {}
        BoundExpr::Call { arguments, .. }
        | BoundExpr::And(arguments)
        | BoundExpr::Or(arguments)
        | BoundExpr::Coalesce { arguments, .. }
        | BoundExpr::Extreme { arguments, .. } => arguments.iter().for_each(visit),
        BoundExpr::Not(operand) | BoundExpr::IsNull { operand, .. } | BoundExpr::IsBool { operand, .. } => {
            visit(operand);
        }
        BoundExpr::IsDistinct { left, right, .. } => {
            visit(left);
            visit(right);
        }
        BoundExpr::Case { branches, otherwise, .. } => {
            for (condition, result) in branches {
                visit(condition);
                visit(result);
            }
            visit(otherwise);
        }
        BoundExpr::InList { operand, list, .. } => {
            visit(operand);
            list.iter().for_each(visit);
        }
    }
}

/// Calls `rewrite` on each direct operand.
pub fn for_each_operand_mut(expr: &mut BoundExpr, rewrite: &mut dyn FnMut(&mut BoundExpr)) {
    match expr {
        BoundExpr::Column { .. } | BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => {}
        BoundExpr::Call { arguments, .. }
        | BoundExpr::And(arguments)
        | BoundExpr::Or(arguments)
        | BoundExpr::Coalesce { arguments, .. }
        | BoundExpr::Extreme { arguments, .. } => arguments.iter_mut().for_each(rewrite),
        BoundExpr::Not(operand) | BoundExpr::IsNull { operand, .. } | BoundExpr::IsBool { operand, .. } => {
            rewrite(operand);
        }
        BoundExpr::IsDistinct { left, right, .. } => {
            rewrite(left);
            rewrite(right);
        }
        BoundExpr::Case { branches, otherwise, .. } => {
            for (condition, result) in branches {
                rewrite(condition);
                rewrite(result);
            }
            rewrite(otherwise);
        }
        BoundExpr::InList { operand, list, .. } => {
            rewrite(operand);
            list.iter_mut().for_each(rewrite);
        }
    }
}

/// The type of the expression's value.
pub fn type_of(expr: &BoundExpr) -> PgType {
    expr_type_of(expr).pg_type
}

/// The declared type of the expression's value.
pub fn expr_type_of(expr: &BoundExpr) -> ExprType {
    match expr {
        BoundExpr::Column { expr_type, .. }
        | BoundExpr::Literal { expr_type, .. }
        | BoundExpr::Parameter { expr_type, .. }
        | BoundExpr::Call { expr_type, .. }
        | BoundExpr::Case { expr_type, .. }
        | BoundExpr::Coalesce { expr_type, .. }
        | BoundExpr::Extreme { expr_type, .. } => *expr_type,
        BoundExpr::And(_)
        | BoundExpr::Or(_)
        | BoundExpr::Not(_)
        | BoundExpr::IsNull { .. }
        | BoundExpr::IsBool { .. }
        | BoundExpr::IsDistinct { .. }
        | BoundExpr::InList { .. } => ExprType { pg_type: PgType::Bool, typmod: -1, collation: Collation::None },
    }
}

/// Adds the input columns that the expression reads.
pub fn collect_columns(expr: &BoundExpr, columns: &mut BTreeSet<usize>) {
    if let BoundExpr::Column { index, .. } = expr {
        columns.insert(*index);
    }
    for_each_operand(expr, &mut |operand| collect_columns(operand, columns));
}

/// The input columns that the expression reads.
pub fn columns_of(expr: &BoundExpr) -> BTreeSet<usize> {
    let mut columns = BTreeSet::new();
    collect_columns(expr, &mut columns);
    columns
}

/// Renumbers the input columns.
pub fn renumber(expr: &mut BoundExpr, position: &dyn Fn(usize) -> usize) {
    if let BoundExpr::Column { index, .. } = expr {
        *index = position(*index);
    }
    for_each_operand_mut(expr, &mut |operand| renumber(operand, position));
}

/// Replaces each input column by the expression that computes it, which takes the type that the reference was bound with (a
/// relabelled column: varchar read as text, or compared as char(n)). A placeholder has none to give.
pub fn substitute(expr: &mut BoundExpr, definitions: &[BoundExpr]) {
    if let BoundExpr::Column { index, expr_type } = expr {
        match &definitions[*index] {
            BoundExpr::Column { index: defined, .. } => *index = *defined,
            definition => *expr = definition.clone().labelled_as(*expr_type),
        }
        return;
    }
    for_each_operand_mut(expr, &mut |operand| substitute(operand, definitions));
}

/// Calls `visit` on each operand, up to the first error.
pub fn try_for_each_operand<'e, E>(
    expr: &'e BoundExpr,
    visit: &mut dyn FnMut(&'e BoundExpr) -> Result<(), E>,
) -> Result<(), E> {
    let mut outcome = Ok(());
    for_each_operand(expr, &mut |operand| {
        if outcome.is_ok() {
            outcome = visit(operand);
        }
    });
    outcome
}

/// Likewise, to change it.
pub fn try_for_each_operand_mut<E>(
    expr: &mut BoundExpr,
    rewrite: &mut dyn FnMut(&mut BoundExpr) -> Result<(), E>,
) -> Result<(), E> {
    let mut outcome = Ok(());
    for_each_operand_mut(expr, &mut |operand| {
        if outcome.is_ok() {
            outcome = rewrite(operand);
        }
    });
    outcome
}

/// Splits a predicate at its ANDs.
pub fn conjuncts(predicate: BoundExpr, into: &mut Vec<BoundExpr>) {
    match predicate {
        BoundExpr::And(operands) => operands.into_iter().for_each(|operand| conjuncts(operand, into)),
        other => into.push(other),
    }
}

/// Whether any part of the expression satisfies `test`.
pub fn any(expr: &BoundExpr, test: &dyn Fn(&BoundExpr) -> bool) -> bool {
    let mut found = test(expr);
    for_each_operand(expr, &mut |operand| found = found || any(operand, test));
    found
}

/// Whether the value depends on nothing but literals.
pub fn is_immutable_constant(expr: &BoundExpr) -> bool {
    !any(expr, &|part| match part {
        BoundExpr::Column { .. } | BoundExpr::Parameter { .. } => true,
        BoundExpr::Call { function, .. } => !function.is_fixed(),
        _ => false,
    })
}

/// Whether the value is the same for all rows of one execution.
pub fn is_row_independent(expr: &BoundExpr) -> bool {
    !any(expr, &|part| matches!(part, BoundExpr::Column { .. }))
}

/// Whether a value of the second type equals one of the first's exactly if it is the same, so that an index finds it. Integers compare
/// by value whatever their width.
pub fn is_indexable(column: PgType, value: PgType) -> bool {
    (column.is_plainly_equal() && column == value) || (column.is_integer() && value.is_integer())
}

/// Of `column = value`, of which the value is the same for all rows and an index finds it: both.
pub fn column_equals(predicate: &BoundExpr) -> Option<(&BoundExpr, &BoundExpr)> {
    let BoundExpr::Call { function, arguments, .. } = predicate else { return None };
    let (column, value) = match &arguments[..] {
        [column @ BoundExpr::Column { .. }, value] if is_row_independent(value) => (column, value),
        [value, column @ BoundExpr::Column { .. }] if is_row_independent(value) => (column, value),
        _ => return None,
    };
    (function.name == "=" && is_indexable(type_of(column), type_of(value))).then_some((column, value))
}

/// Whether the value depends on the table's rows and the parameters only, not on settings or time.
pub fn is_immutable(expr: &BoundExpr) -> bool {
    !any(expr, &|part| matches!(part, BoundExpr::Call { function, .. } if !function.is_fixed()))
}

/// The comparison with its sides exchanged.
pub fn mirrored(order: &'static str) -> &'static str {
    match order {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        other => other,
    }
}

/// The relations, as `relation_of` a column tells them, on whose rows of NULLs the predicate is not true, so that it removes the rows
/// that an outer join has padded with them (PostgreSQL: clauses.c find_nonnullable_rels, of which this is the plain part).
pub fn nonnullable<R: Ord + Copy>(predicate: &BoundExpr, relation_of: &dyn Fn(usize) -> R) -> BTreeSet<R> {
    match predicate {
        BoundExpr::And(operands) => operands.iter().flat_map(|operand| nonnullable(operand, relation_of)).collect(),
        BoundExpr::Or(operands) => of_all(operands, &|operand| nonnullable(operand, relation_of)),
        BoundExpr::IsNull { operand, negated: true }
        | BoundExpr::IsBool { operand, expected: Some(_), negated: false }
        | BoundExpr::IsBool { operand, expected: None, negated: true } => nulling(operand, relation_of),
        other => nulling(other, relation_of),
    }
}

/// The relations on whose rows of NULLs the value is NULL.
fn nulling<R: Ord + Copy>(expr: &BoundExpr, relation_of: &dyn Fn(usize) -> R) -> BTreeSet<R> {
    match expr {
        BoundExpr::And(operands) | BoundExpr::Or(operands) => {
            of_all(operands, &|operand| nulling(operand, relation_of))
        }
        BoundExpr::Not(operand) => nulling(operand, relation_of),
        other => {
            let named: BTreeSet<R> = columns_of(other).into_iter().map(relation_of).collect();
            named.into_iter().filter(|of| is_null_on(other, &|column| relation_of(column) == *of)).collect()
        }
    }
}

fn of_all<R: Ord + Copy>(operands: &[BoundExpr], of: &dyn Fn(&BoundExpr) -> BTreeSet<R>) -> BTreeSet<R> {
    let all = operands.iter().map(of).reduce(|known, next| &known & &next);
    all.unwrap_or_default()
}

/// Whether the value is NULL on a row where all of `columns` are NULL.
fn is_null_on(expr: &BoundExpr, columns: &dyn Fn(usize) -> bool) -> bool {
    match expr {
        BoundExpr::Column { index, .. } => columns(*index),
        BoundExpr::Call { function, arguments, .. } => {
            function.is_strict && arguments.iter().any(|argument| is_null_on(argument, columns))
        }
        BoundExpr::Not(operand) => is_null_on(operand, columns),
        BoundExpr::InList { operand, .. } => is_null_on(operand, columns),
        _ => false,
    }
}

/// Likewise, and nothing in it raises an error there: it is made of calls that are NULL, too.
pub fn is_plainly_null_on(expr: &BoundExpr, columns: &dyn Fn(usize) -> bool) -> bool {
    let is_other = |part: &BoundExpr| match part {
        BoundExpr::Column { .. } | BoundExpr::Call { .. } => !is_null_on(part, columns),
        BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => false,
        _ => true,
    };
    is_null_on(expr, columns) && !any(expr, &is_other)
}

/// Whether two expressions compute the same by construction.
pub fn is_same(left: &BoundExpr, right: &BoundExpr) -> bool {
    use BoundExpr as E;
    let all_same = |a: &[BoundExpr], b: &[BoundExpr]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b));
    match (left, right) {
        (E::Column { index: a, .. }, E::Column { index: b, .. }) => a == b,
        (E::Parameter { index: a, expr_type: at }, E::Parameter { index: b, expr_type: bt }) => a == b && at == bt,
        (E::Literal { value: a, expr_type: at }, E::Literal { value: b, expr_type: bt }) => {
            // By representation: 0.0 = -0.0 are two literals, and so are NaN and NaN to `==`.
            at == bt && format!("{a:?}") == format!("{b:?}")
        }
        (
            E::Call { function: f, arguments: a, expr_type: at },
            E::Call { function: g, arguments: b, expr_type: bt },
        ) => std::ptr::eq(*f, *g) && at == bt && all_same(a, b),
        (E::And(a), E::And(b)) | (E::Or(a), E::Or(b)) => all_same(a, b),
        (E::Not(a), E::Not(b)) => is_same(a, b),
        (E::IsNull { operand: a, negated: n }, E::IsNull { operand: b, negated: m }) => n == m && is_same(a, b),
        (E::IsBool { operand: a, expected: e, negated: n }, E::IsBool { operand: b, expected: f, negated: m }) => {
            e == f && n == m && is_same(a, b)
        }
        (
            E::Case { branches: a, otherwise: ae, expr_type: at },
            E::Case { branches: b, otherwise: be, expr_type: bt },
        ) => {
            at == bt
                && a.len() == b.len()
                && a.iter().zip(b).all(|((ac, ar), (bc, br))| is_same(ac, bc) && is_same(ar, br))
                && is_same(ae, be)
        }
        (
            E::Coalesce { arguments: a, call: ac, expr_type: at },
            E::Coalesce { arguments: b, call: bc, expr_type: bt },
        ) => ac == bc && at == bt && all_same(a, b),
        (
            E::InList { equal: f, operand: a, list: al, negated: n },
            E::InList { equal: g, operand: b, list: bl, negated: m },
        ) => std::ptr::eq(*f, *g) && n == m && is_same(a, b) && all_same(al, bl),
        (
            E::Extreme { less: f, greatest: a, arguments: al, expr_type: at },
            E::Extreme { less: g, greatest: b, arguments: bl, expr_type: bt },
        ) => std::ptr::eq(*f, *g) && a == b && at == bt && all_same(al, bl),
        (
            E::IsDistinct { equal: f, left: al, right: ar, negated: n },
            E::IsDistinct { equal: g, left: bl, right: br, negated: m },
        ) => std::ptr::eq(*f, *g) && n == m && is_same(al, bl) && is_same(ar, br),
        _ => false,
    }
}

/// What an expression takes, about.
pub fn bytes_of(expr: &BoundExpr) -> usize {
    let mut bytes = size_of::<BoundExpr>();
    if let BoundExpr::Literal { value, .. } = expr {
        bytes += value.bytes();
    }
    for_each_operand(expr, &mut |operand| bytes += bytes_of(operand));
    bytes
}
