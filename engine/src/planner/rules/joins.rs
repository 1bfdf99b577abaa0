//! Finds the equalities of a join condition that can be hashed; the rest stays a filter.

use crate::binder::BoundExpr;
use crate::catalog::functions::Function;
use crate::planner::expression::{columns_of, is_same};
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
            join.implied = implied(&join.equalities);
        }
        PlanNode::SideJoin(join) => {
            let left_width = join.left.width();
            let bases = [0, left_width, left_width + join.right.width()];
            split(&mut join.filters, &mut join.equalities, &bases);
            join.test_key =
                join.test.as_ref().and_then(|test| as_equality(test, &bases)).filter(|key| !key.is_null_safe);
            for equality in join.equalities.iter_mut().chain(&mut join.test_key) {
                if equality.left_input != 0 {
                    *equality = equality.clone().turned();
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

/// The equalities between members of one class that are not written (PostgreSQL: equivclass.c).
fn implied(written: &[Equality]) -> Vec<Equality> {
    let mut classes: Vec<Vec<Side<'_>>> = Vec::new();
    for equality in written.iter().filter(|equality| !equality.is_null_safe) {
        let [left, right] = sides(equality);
        let class_of = |side| classes.iter().position(|class| class.iter().any(|member| is_member(*member, side)));
        match (class_of(left), class_of(right)) {
            (Some(first), Some(second)) if first == second => {}
            (Some(first), Some(second)) => {
                let other = classes.remove(second.max(first));
                classes[second.min(first)].extend(other);
            }
            (Some(class), None) => classes[class].push(right),
            (None, Some(class)) => classes[class].push(left),
            (None, None) => classes.push(vec![left, right]),
        }
    }
    let is_written = |a: Side<'_>, b: Side<'_>| {
        written.iter().any(|equality| {
            let sides = sides(equality);
            (is_member(sides[0], a) && is_member(sides[1], b)) || (is_member(sides[0], b) && is_member(sides[1], a))
        })
    };
    let mut implied = Vec::new();
    for class in &classes {
        for (at, left) in class.iter().enumerate() {
            for right in &class[at + 1..] {
                if left.0 != right.0 && is_comparable(left.2, right.2) && !is_written(*left, *right) {
                    let (left_input, right_input, types) = (left.0, right.0, [left.2, right.2]);
                    let (left, right) = (left.1.clone(), right.1.clone());
                    implied.push(Equality { left_input, left, right_input, right, types, is_null_safe: false });
                }
            }
        }
    }
    implied
}

/// An input, an expression over its columns, and what that is compared as.
type Side<'e> = (usize, &'e BoundExpr, PgType);

fn sides(equality: &Equality) -> [Side<'_>; 2] {
    let [left, right] = equality.ends();
    [(left.0, left.1, equality.types[0]), (right.0, right.1, equality.types[1])]
}

fn is_member(member: Side<'_>, side: Side<'_>) -> bool {
    member.0 == side.0 && is_same(member.1, side.1) && member.2 == side.2
}

/// Whether the two have keys of one kind (see [`is_hashable`]).
fn is_comparable(left: PgType, right: PgType) -> bool {
    left == right || (left.is_integer() && right.is_integer())
}

fn as_equality(filter: &BoundExpr, bases: &[usize]) -> Option<Equality> {
    let (function, left, right, is_null_safe) = match filter {
        BoundExpr::Call { function, arguments, .. } => {
            let [left, right] = &arguments[..] else { return None };
            (*function, left, right, false)
        }
        BoundExpr::IsDistinct { equal, left, right, negated: true } => (*equal, &**left, &**right, true),
        BoundExpr::Or(parts) => {
            let (function, left, right) = equal_or_both_null(parts)?;
            (function, left, right, true)
        }
        _ => return None,
    };
    if !is_hashable(function) || columns_of(left).is_empty() || columns_of(right).is_empty() {
        return None;
    }
    let (left_input, right_input) = (only_input(left, bases)?, only_input(right, bases)?);
    let types = [function.arguments[0], function.arguments[1]];
    let (left, right) = (left.clone(), right.clone());
    let equality = Equality { left_input, left, right_input, right, types, is_null_safe };
    (left_input != right_input).then_some(equality)
}

/// `a = b OR a IS NULL AND b IS NULL`, as some layers spell IS NOT DISTINCT FROM.
fn equal_or_both_null(parts: &[BoundExpr]) -> Option<(&'static Function, &BoundExpr, &BoundExpr)> {
    let ([equal @ BoundExpr::Call { .. }, BoundExpr::And(nulls)]
    | [BoundExpr::And(nulls), equal @ BoundExpr::Call { .. }]) = parts
    else {
        return None;
    };
    let BoundExpr::Call { function, arguments, .. } = equal else { return None };
    let ([left, right], [first, second]) = (&arguments[..], &nulls[..]) else { return None };
    let is_null_of = |test: &BoundExpr, side: &BoundExpr| matches!(test, BoundExpr::IsNull { operand, negated: false } if is_same(operand, side));
    let fits = (is_null_of(first, left) && is_null_of(second, right))
        || (is_null_of(first, right) && is_null_of(second, left));
    fits.then_some((*function, left, right))
}

/// Whether equal values have equal keys (see [`crate::executor::key_table`]): one type on both sides, or one family whose members
/// compare by value.
fn is_hashable(function: &Function) -> bool {
    let is_float = |t: PgType| matches!(t, PgType::Float4 | PgType::Float8);
    let [left, right] = function.arguments else { return false };
    function.name == "="
        && !matches!(left, PgType::Json | PgType::Jsonb | PgType::Array(_) | PgType::Unknown)
        && (left == right || (left.is_integer() && right.is_integer()) || (is_float(*left) && is_float(*right)))
}
