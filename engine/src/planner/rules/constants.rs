//! What of a plan raises an error before any row is read, or without one. PostgreSQL folds what is made of literals and, in a custom
//! plan, of parameters, with the constants of pulled-up subqueries in their places (clauses.c eval_const_expressions, prepjointree.c
//! pull_up_subqueries), computes conditions that are the same for all rows once (createplan.c create_gating_plan), and what columns
//! are compared with to estimate how many rows there are (clauses.c estimate_expression_value). Here all of it is computed first.
//! PostgreSQL computes a little less, where it leaves a subquery alone: an error more only sends the statement upstream.

use crate::binder::{BoundExpr, cannot_raise};
use crate::planner::Abilities;
use crate::planner::expression::{
    any, expr_type_of, for_each_operand, for_each_operand_mut, is_immutable, is_immutable_constant, is_row_independent,
    is_same,
};
use crate::planner::node::{PlanNode, SideKind};
use crate::planner::rules::fold::value_of;
use crate::planner::rules::{for_each_expression_mut, for_each_input_mut};
use crate::reason::UpstreamReason;
use crate::types::Value;

/// What is gathered of all the statement's trees.
pub(in crate::planner) struct Constants<'a> {
    /// So many parameters are the statement's own; those behind are its subqueries' values, which no planner knows.
    own: usize,
    abilities: &'a Abilities,
    /// The largest expressions over own parameters and literals that may raise an error.
    pub found: Vec<BoundExpr>,
    /// What conditions have that is the same for all rows but no constant, as it hangs on settings, the time or subqueries' values.
    pub gates: Vec<BoundExpr>,
}

/// Of one expression: where the walk is.
struct Walk<'c, 'a> {
    constants: &'c mut Constants<'a>,
    /// What is below is not computed where one of these is true.
    guards: Vec<BoundExpr>,
    is_condition: bool,
    /// It has constants in the places of columns, or a parameter.
    is_new: bool,
}

impl<'a> Constants<'a> {
    pub(in crate::planner) fn new(own: usize, abilities: &'a Abilities) -> Self {
        Self { own, abilities, found: Vec::new(), gates: Vec::new() }
    }

    /// Adds those of the node and what is below it. Returns what each output column is, if it is a constant.
    ///
    /// Fails if one of literals alone raises an error.
    pub(in crate::planner) fn gather(&mut self, node: &mut PlanNode) -> Result<Vec<Option<BoundExpr>>, UpstreamReason> {
        let mut below = Vec::new();
        for_each_input_mut(node, &mut |input| {
            below.push(self.gather(input)?);
            Ok(())
        })?;
        let is_of_several =
            matches!(node, PlanNode::Append { .. } | PlanNode::SetOperation { .. } | PlanNode::Recursive(_));
        let given = if is_of_several { Vec::new() } else { below.concat() };
        for_each_expression_mut(node, &mut |expr| self.walk(expr, &given, false))?;
        let conditions = match node {
            PlanNode::Filter { predicates, .. } => predicates.as_slice(),
            PlanNode::Scan(scan) => &scan.filters,
            PlanNode::Join(join) => &join.filters,
            PlanNode::SideJoin(join) => &join.filters,
            _ => &[],
        };
        conditions.iter().try_for_each(|condition| self.walk(condition, &given, true))?;
        Ok(self.output(node, given))
    }

    fn output(&self, node: &PlanNode, mut given: Vec<Option<BoundExpr>>) -> Vec<Option<BoundExpr>> {
        let known = |expr: &BoundExpr| Some(placed(expr, &given)).filter(|expr| self.is_constant(expr));
        match node {
            PlanNode::Project { expressions, .. } => expressions.iter().map(known).collect(),
            PlanNode::Aggregate(aggregate) => {
                let groups = aggregate.groups.iter().map(known);
                groups.chain(aggregate.calls.iter().map(|_| None)).collect()
            }
            PlanNode::Values { rows, .. } if rows.len() == 1 => rows[0].iter().map(known).collect(),
            _ => {
                // What may be NULL instead is computed row by row (PlaceHolderVar).
                if let PlanNode::SideJoin(join) = node {
                    let kept = if join.kind == SideKind::Full { 0 } else { join.left.width() };
                    given.truncate(kept);
                }
                given.resize(node.width(), None);
                given
            }
        }
    }

    fn walk(
        &mut self,
        expr: &BoundExpr,
        given: &[Option<BoundExpr>],
        is_condition: bool,
    ) -> Result<(), UpstreamReason> {
        if cannot_raise(expr) {
            return Ok(());
        }
        let is_new = any(expr, &|part| match part {
            BoundExpr::Column { index, .. } => given.get(*index).is_some_and(Option::is_some),
            BoundExpr::Parameter { .. } => true,
            _ => false,
        });
        if !is_new && !is_condition {
            return Ok(());
        }
        let placed = placed(expr, given);
        let whole = is_condition && is_row_independent(&placed) && !self.is_constant(&placed);
        if whole {
            add(&mut self.gates, placed);
            return Ok(());
        }
        Walk { constants: self, guards: Vec::new(), is_condition, is_new }.collect(&placed)
    }

    fn has_scalar(&self, expr: &BoundExpr) -> bool {
        any(expr, &|part| matches!(part, BoundExpr::Parameter { index, .. } if *index >= self.own))
    }

    fn is_constant(&self, expr: &BoundExpr) -> bool {
        is_row_independent(expr) && is_immutable(expr) && !self.has_scalar(expr)
    }
}

impl Walk<'_, '_> {
    fn collect(&mut self, expr: &BoundExpr) -> Result<(), UpstreamReason> {
        if cannot_raise(expr) {
            return Ok(());
        }
        if self.constants.is_constant(expr) {
            // Those of literals alone that are written so are folded where they stand.
            let is_folded = !self.is_new && is_immutable_constant(expr);
            return if is_folded { Ok(()) } else { self.add_constant(expr) };
        }
        if self.is_condition && is_row_independent(expr) && !self.constants.has_scalar(expr) {
            let guarded = self.guarded(expr);
            add(&mut self.constants.gates, guarded);
            return Ok(());
        }
        self.descend(expr)
    }

    fn add_constant(&mut self, expr: &BoundExpr) -> Result<(), UpstreamReason> {
        let guarded = self.guarded(expr);
        if is_immutable_constant(&guarded) {
            return value_of(&guarded, self.constants.abilities).map(drop);
        }
        add(&mut self.constants.found, guarded);
        Ok(())
    }

    /// What a constant decides, ends the folding of what stands behind it (clauses.c, simplify_or_arguments,
    /// simplify_and_arguments, and eval_const_expressions_mutator of CASE and COALESCE).
    fn descend(&mut self, expr: &BoundExpr) -> Result<(), UpstreamReason> {
        let outer = self.guards.len();
        let outcome = match expr {
            BoundExpr::Or(parts) => self.each(parts, Clone::clone),
            BoundExpr::And(parts) => self.each(parts, |part| BoundExpr::Not(Box::new(part.clone()))),
            BoundExpr::Coalesce { arguments, .. } => self
                .each(arguments, |argument| BoundExpr::IsNull { operand: Box::new(argument.clone()), negated: true }),
            BoundExpr::Case { branches, otherwise, .. } => {
                self.branches(branches).and_then(|()| self.collect(otherwise))
            }
            _ => {
                let mut outcome = Ok(());
                for_each_operand(expr, &mut |operand| {
                    if outcome.is_ok() {
                        outcome = self.collect(operand);
                    }
                });
                outcome
            }
        };
        self.guards.truncate(outer);
        outcome
    }

    fn each(&mut self, parts: &[BoundExpr], ends: fn(&BoundExpr) -> BoundExpr) -> Result<(), UpstreamReason> {
        for part in parts {
            self.collect(part)?;
            if self.constants.is_constant(part) {
                self.guards.push(ends(part));
            }
        }
        Ok(())
    }

    fn branches(&mut self, branches: &[(BoundExpr, BoundExpr)]) -> Result<(), UpstreamReason> {
        for (condition, result) in branches {
            self.collect(condition)?;
            let is_constant = self.constants.is_constant(condition);
            if is_constant {
                let operand = Box::new(condition.clone());
                self.guards.push(BoundExpr::IsBool { operand, expected: Some(true), negated: true });
            }
            self.collect(result)?;
            if is_constant {
                self.guards.pop();
                self.guards.push(condition.clone());
            }
        }
        Ok(())
    }

    fn guarded(&self, expr: &BoundExpr) -> BoundExpr {
        if self.guards.is_empty() {
            return expr.clone();
        }
        let expr_type = expr_type_of(expr);
        let nothing = || BoundExpr::Literal { value: Value::Null, expr_type };
        let branches = self.guards.iter().map(|guard| (guard.clone(), nothing())).collect();
        BoundExpr::Case { branches, otherwise: Box::new(expr.clone()), expr_type }
    }
}

fn add(known: &mut Vec<BoundExpr>, expr: BoundExpr) {
    if !known.iter().any(|known| is_same(known, &expr)) {
        known.push(expr);
    }
}

/// The expression with constants for columns that are ones.
fn placed(expr: &BoundExpr, given: &[Option<BoundExpr>]) -> BoundExpr {
    fn place(expr: &mut BoundExpr, given: &[Option<BoundExpr>]) {
        if let BoundExpr::Column { index, expr_type } = expr {
            if let Some(Some(constant)) = given.get(*index) {
                *expr = constant.clone().labelled_as(*expr_type);
            }
            return;
        }
        for_each_operand_mut(expr, &mut |operand| place(operand, given));
    }
    let mut placed = expr.clone();
    place(&mut placed, given);
    placed
}
