//! What an OR says beyond itself: conditions that all its branches share are conditions of their own (PostgreSQL:
//! prepqual.c find_duplicate_ors), and branches that each restrict one input of a join restrict that input together
//! (orclauses.c extract_restriction_or_clause). The second kind is implied, so it is tested beside the OR that says it.

use crate::binder::BoundExpr;
use crate::planner::expression::{columns_of, conjuncts, is_same, renumber};
use crate::planner::node::{Join, PlanNode, SideJoin, SideKind};
use crate::planner::rules::for_each_input_mut;
use crate::planner::rules::pushdown::{is_grouped, only_input, push};
use crate::reason::UpstreamReason;
use crate::types::Value;

/// A longer OR says little of one input, and costs as much as the whole again.
const BRANCHES_MAX: usize = 32;

/// Splits the predicates at their ANDs, and takes out of each OR what all its branches ask for.
pub(in crate::planner) fn split(predicates: impl IntoIterator<Item = BoundExpr>) -> Vec<BoundExpr> {
    let mut parts = Vec::new();
    predicates.into_iter().for_each(|predicate| conjuncts(predicate, &mut parts));
    if !parts.iter().any(|part| matches!(part, BoundExpr::Or(_))) {
        return parts;
    }
    let mut factored = Vec::with_capacity(parts.len());
    parts.into_iter().for_each(|part| factor(part, &mut factored));
    factored
}

/// `(a AND b) OR (a AND c)` is `a AND (b OR c)`, in three-valued logic too; a branch of nothing but `a` leaves `a`.
fn factor(predicate: BoundExpr, into: &mut Vec<BoundExpr>) {
    let BoundExpr::Or(operands) = predicate else {
        into.push(predicate);
        return;
    };
    let mut branches = Vec::new();
    operands.into_iter().for_each(|operand| disjuncts(operand, &mut branches));
    let mut branches: Vec<Vec<BoundExpr>> = branches.into_iter().map(|branch| split([branch])).collect();
    let has = |branch: &[BoundExpr], condition: &BoundExpr| branch.iter().any(|part| is_same(part, condition));
    let common: Vec<BoundExpr> = match branches.split_first() {
        Some((first, rest)) => {
            first.iter().filter(|part| rest.iter().all(|branch| has(branch, part))).cloned().collect()
        }
        None => Vec::new(),
    };
    branches.iter_mut().for_each(|branch| branch.retain(|part| !has(&common, part)));
    into.extend(common);
    if branches.iter().all(|branch| !branch.is_empty()) {
        into.push(BoundExpr::Or(branches.into_iter().map(all_of).collect()));
    }
}

fn disjuncts(predicate: BoundExpr, into: &mut Vec<BoundExpr>) {
    match predicate {
        BoundExpr::Or(operands) => operands.into_iter().for_each(|operand| disjuncts(operand, into)),
        other => into.push(other),
    }
}

fn all_of(mut conditions: Vec<BoundExpr>) -> BoundExpr {
    if conditions.len() == 1 { conditions.remove(0) } else { BoundExpr::And(conditions) }
}

/// What conditions say with their negations at the leaves and without branches that are never true, split again: only then does PostgreSQL
/// choose the order in which it computes them (clauses.c negate_clause; prepqual.c find_duplicate_ors).
pub(in crate::planner) fn canonicalize(node: &mut PlanNode) -> Result<(), UpstreamReason> {
    let predicates = match node {
        PlanNode::Filter { predicates, .. } => Some(predicates),
        PlanNode::Join(join) => Some(&mut join.filters),
        PlanNode::SideJoin(join) => Some(&mut join.filters),
        _ => None,
    };
    if let Some(predicates) = predicates
        && predicates.iter().any(|predicate| matches!(predicate, BoundExpr::Or(_) | BoundExpr::Not(_)))
    {
        *predicates = split(
            std::mem::take(predicates).into_iter().map(|predicate| possible(negated_at_leaves(predicate, false))),
        );
    }
    for_each_input_mut(node, &mut canonicalize)
}

/// `is_negated`: of its negation.
fn negated_at_leaves(expr: BoundExpr, is_negated: bool) -> BoundExpr {
    let all =
        |operands: Vec<BoundExpr>| operands.into_iter().map(|operand| negated_at_leaves(operand, is_negated)).collect();
    match (expr, is_negated) {
        (BoundExpr::Not(operand), _) => negated_at_leaves(*operand, !is_negated),
        (BoundExpr::And(operands), false) | (BoundExpr::Or(operands), true) => BoundExpr::And(all(operands)),
        (BoundExpr::Or(operands), false) | (BoundExpr::And(operands), true) => BoundExpr::Or(all(operands)),
        (leaf, true) => BoundExpr::Not(Box::new(leaf)),
        (leaf, false) => leaf,
    }
}

/// As a condition, which NULL does not meet.
fn possible(expr: BoundExpr) -> BoundExpr {
    let BoundExpr::Or(branches) = expr else { return expr };
    let mut branches: Vec<BoundExpr> = branches.into_iter().map(possible).collect();
    if branches.iter().all(is_never) {
        branches.truncate(1);
    } else {
        branches.retain(|branch| !is_never(branch));
    }
    if branches.len() == 1 { branches.remove(0) } else { BoundExpr::Or(branches) }
}

fn is_never(expr: &BoundExpr) -> bool {
    match expr {
        BoundExpr::Literal { value: Value::Bool(false) | Value::Null, .. } => true,
        BoundExpr::And(operands) => operands.iter().any(is_never),
        BoundExpr::Or(operands) => operands.iter().all(is_never),
        BoundExpr::Call { function, arguments, .. } if function.is_strict => {
            arguments.iter().any(|argument| matches!(argument, BoundExpr::Literal { value: Value::Null, .. }))
        }
        _ => false,
    }
}

/// Restricts the inputs of joins by what the ORs of their conditions say of each. To be called once.
pub(in crate::planner) fn restrict_inputs(node: &mut PlanNode) -> Result<(), UpstreamReason> {
    match node {
        PlanNode::Join(join) => restrict_join(join),
        PlanNode::SideJoin(join) => restrict_side_join(join),
        _ => {}
    }
    for_each_input_mut(node, &mut restrict_inputs)
}

fn restrict_join(join: &mut Join) {
    let bases = join.bases();
    for (input, node) in join.inputs.iter_mut().enumerate() {
        restrict(node, &join.filters, &bases, input);
    }
}

/// Rows of a side that is padded or kept as it is stay, whatever the condition says.
fn restrict_side_join(join: &mut SideJoin) {
    let left_width = join.left.width();
    let bases = [0, left_width, left_width + join.right.width()];
    if join.kind == SideKind::Semi && !is_grouped(&join.left) {
        restrict(&mut join.left, &join.filters, &bases, 0);
    }
    if join.kind != SideKind::Full {
        restrict(&mut join.right, &join.filters, &bases, 1);
    }
}

fn restrict(node: &mut PlanNode, conditions: &[BoundExpr], bases: &[usize], input: usize) {
    let mut implied: Vec<BoundExpr> =
        conditions.iter().filter_map(|condition| implied_for(condition, bases, input)).collect();
    if implied.is_empty() {
        return;
    }
    implied.iter_mut().for_each(|predicate| renumber(predicate, &|column| column - bases[input]));
    let own = std::mem::replace(node, PlanNode::OneRow);
    *node = push(own, implied);
}

/// What an OR over several inputs says of this one, if each of its branches says something.
fn implied_for(condition: &BoundExpr, bases: &[usize], input: usize) -> Option<BoundExpr> {
    let BoundExpr::Or(branches) = condition else { return None };
    if branches.len() > BRANCHES_MAX {
        return None;
    }
    let is_of_input = |part: &BoundExpr| !columns_of(part).is_empty() && only_input(part, bases) == Some(input);
    let of_input = |branch: &BoundExpr| {
        let mut parts = Vec::new();
        conjuncts(branch.clone(), &mut parts);
        let own = parts
            .into_iter()
            .filter_map(|part| implied_for(&part, bases, input).or_else(|| is_of_input(&part).then_some(part)));
        Some(own.collect::<Vec<_>>()).filter(|parts| !parts.is_empty()).map(all_of)
    };
    Some(BoundExpr::Or(branches.iter().map(of_input).collect::<Option<Vec<_>>>()?))
}
