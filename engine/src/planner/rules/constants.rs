//! What of a plan raises an error before any row is read, or without one. PostgreSQL folds what is made of literals and, in a custom
//! plan, of parameters, with the constants of pulled-up subqueries in their places (clauses.c eval_const_expressions, prepjointree.c
//! pull_up_subqueries), computes conditions that are the same for all rows once (createplan.c create_gating_plan), and looks at what
//! columns are compared with, to estimate how many rows there are (clauses.c estimate_expression_value; like_support.c reads regular
//! expressions). All that is computed first here, and a little more, as where PostgreSQL leaves a subquery alone: an error too many
//! only sends the statement upstream.

use crate::binder::{BoundExpr, ExprType, cannot_raise};
use crate::catalog::Collation;
use crate::planner::Abilities;
use crate::planner::expression::{
    any, expr_type_of, for_each_operand, is_immutable, is_immutable_constant, is_row_independent, is_same,
    try_for_each_operand, try_for_each_operand_mut, type_of,
};
use crate::planner::node::{PlanNode, SideKind};
use crate::planner::rules::fold::value_of;
use crate::planner::rules::{for_each_expression_mut, for_each_input_mut};
use crate::reason::UpstreamReason;
use crate::types::Value;

/// Of all that is put in the places of columns: one subquery in another may double it each time.
const PLACED_MAX: usize = 100_000;

/// What an output column is, if it is the same for all rows.
type Known = Option<BoundExpr>;

/// What is gathered of all the statement's trees.
pub(in crate::planner) struct Constants<'a> {
    /// So many parameters are the statement's own; those behind are its subqueries' values, which no planner knows.
    own: usize,
    abilities: &'a Abilities,
    placed: usize,
    /// The largest expressions over own parameters and literals that may raise an error.
    pub found: Vec<BoundExpr>,
    /// What else is computed before any row is read, but may hang on settings, the time or subqueries' values.
    pub gates: Vec<BoundExpr>,
}

/// Of one expression, or of conditions that must all be true: where the walk is.
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
        Self { own, abilities, placed: 0, found: Vec::new(), gates: Vec::new() }
    }

    /// Adds those of the node and what is below it. Returns what each output column is.
    ///
    /// Fails if one of literals alone raises an error, or if there are too many.
    pub(in crate::planner) fn gather(&mut self, node: &mut PlanNode) -> Result<Vec<Known>, UpstreamReason> {
        let mut below = Vec::new();
        for_each_input_mut(node, &mut |input| {
            below.push(self.gather(input)?);
            Ok(())
        })?;
        let is_of_several =
            matches!(node, PlanNode::Append { .. } | PlanNode::SetOperation { .. } | PlanNode::Recursive(_));
        let given = if is_of_several { Vec::new() } else { below.concat() };
        match node {
            PlanNode::Filter { predicates, .. } => self.conditions(predicates, &given)?,
            PlanNode::Scan(scan) => self.conditions(&scan.filters, &given)?,
            PlanNode::Join(join) => self.conditions(&join.filters, &given)?,
            PlanNode::SideJoin(join) => {
                self.conditions(&join.filters, &given)?;
                join.test.iter().try_for_each(|test| self.walk(test, &given))?;
            }
            _ => for_each_expression_mut(node, &mut |expr| self.walk(expr, &given))?,
        }
        self.output(node, given)
    }

    /// Likewise below a UNION ALL alone: what is asked of all of it stands with each of its sides by now (allpaths.c,
    /// set_append_rel_size).
    pub(in crate::planner) fn gather_sides(&mut self, node: &mut PlanNode) -> Result<(), UpstreamReason> {
        match node {
            PlanNode::Append { .. } => self.gather(node).map(drop),
            _ => for_each_input_mut(node, &mut |input| self.gather_sides(input)),
        }
    }

    fn output(&mut self, node: &PlanNode, mut given: Vec<Known>) -> Result<Vec<Known>, UpstreamReason> {
        let mut known = |expr: &BoundExpr| Ok(Some(self.placed(expr, &given)?).filter(is_row_independent));
        match node {
            PlanNode::Project { expressions, .. } => expressions.iter().map(known).collect(),
            PlanNode::Aggregate(aggregate) => {
                let groups = aggregate.groups.iter().map(&mut known).collect::<Result<Vec<_>, _>>()?;
                Ok(groups.into_iter().chain(aggregate.calls.iter().map(|_| None)).collect())
            }
            PlanNode::Values { rows, .. } if rows.len() == 1 => rows[0].iter().map(known).collect(),
            _ => {
                // What may be NULL instead is computed row by row (PlaceHolderVar).
                if let PlanNode::SideJoin(join) = node {
                    let kept = if join.kind == SideKind::Full { 0 } else { join.left.width() };
                    given.truncate(kept);
                }
                given.resize(node.width(), None);
                Ok(given)
            }
        }
    }

    fn walk(&mut self, expr: &BoundExpr, given: &[Known]) -> Result<(), UpstreamReason> {
        let is_unfolded = |part: &BoundExpr| matches!(part, BoundExpr::Call { function, .. } if !function.is_fixed() && function.is_folded_upstream());
        let is_new = is_new(expr, given);
        if cannot_raise(expr) || !(is_new || any(expr, &is_unfolded)) {
            return Ok(());
        }
        let placed = self.placed(expr, given)?;
        Walk { constants: self, guards: Vec::new(), is_condition: false, is_new }.collect(&placed)
    }

    /// All of them have to be true, in this order.
    fn conditions(&mut self, conditions: &[BoundExpr], given: &[Known]) -> Result<(), UpstreamReason> {
        let mut guards = Vec::new();
        for condition in conditions {
            let placed = self.placed(condition, given)?;
            let is_new = is_new(condition, given);
            let mut walk = Walk { constants: self, guards, is_condition: true, is_new };
            walk.condition(&placed)?;
            guards = walk.guards;
        }
        Ok(())
    }

    fn has_scalar(&self, expr: &BoundExpr) -> bool {
        any(expr, &|part| matches!(part, BoundExpr::Parameter { index, .. } if *index >= self.own))
    }

    fn is_constant(&self, expr: &BoundExpr) -> bool {
        is_row_independent(expr) && is_immutable(expr) && !self.has_scalar(expr)
    }

    /// The expression with what columns are in their places.
    fn placed(&mut self, expr: &BoundExpr, given: &[Known]) -> Result<BoundExpr, UpstreamReason> {
        let mut placed = expr.clone();
        if given.iter().any(Option::is_some) {
            self.place(&mut placed, given)?;
        }
        Ok(placed)
    }

    fn place(&mut self, expr: &mut BoundExpr, given: &[Known]) -> Result<(), UpstreamReason> {
        if let BoundExpr::Column { index, expr_type } = expr {
            if let Some(Some(constant)) = given.get(*index) {
                self.placed += nodes(constant);
                if self.placed > PLACED_MAX {
                    return Err(UpstreamReason::Unsupported("statement too large".into()));
                }
                *expr = constant.clone().labelled_as(*expr_type);
            }
            return Ok(());
        }
        try_for_each_operand_mut(expr, &mut |operand| self.place(operand, given))
    }
}

impl Walk<'_, '_> {
    fn condition(&mut self, condition: &BoundExpr) -> Result<(), UpstreamReason> {
        let is_constant = self.constants.is_constant(condition);
        if is_row_independent(condition) && !is_constant {
            self.add_gate(condition);
        } else {
            self.collect(condition)?;
        }
        if is_constant {
            self.guards.push(BoundExpr::Not(Box::new(condition.clone())));
        }
        Ok(())
    }

    fn collect(&mut self, expr: &BoundExpr) -> Result<(), UpstreamReason> {
        if cannot_raise(expr) {
            return Ok(());
        }
        if self.constants.is_constant(expr) {
            // Those of literals alone that are written so are folded where they stand.
            let is_folded = !self.is_new && is_immutable_constant(expr);
            return if is_folded { Ok(()) } else { self.add_constant(expr) };
        }
        let is_open =
            |part: &BoundExpr| matches!(part, BoundExpr::Call { function, .. } if !function.is_folded_upstream());
        let is_early = self.is_condition || !any(expr, &is_open);
        if is_early && is_row_independent(expr) && !self.constants.has_scalar(expr) {
            self.add_gate(expr);
            return Ok(());
        }
        if let Some(reading) = regular_expression(expr).filter(|_| self.is_condition) {
            self.add_gate(&reading);
        }
        self.descend(expr)
    }

    fn add_gate(&mut self, expr: &BoundExpr) {
        if !cannot_raise(expr) {
            let guarded = self.guarded(expr);
            add(&mut self.constants.gates, guarded);
        }
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
            _ => try_for_each_operand(expr, &mut |operand| self.collect(operand)),
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

fn is_new(expr: &BoundExpr, given: &[Known]) -> bool {
    any(expr, &|part| match part {
        BoundExpr::Column { index, .. } => given.get(*index).is_some_and(Option::is_some),
        BoundExpr::Parameter { .. } => true,
        _ => false,
    })
}

fn nodes(expr: &BoundExpr) -> usize {
    let mut count = 1;
    for_each_operand(expr, &mut |operand| count += nodes(operand));
    count
}

/// Of a match with a pattern that is the same for all rows: the match of an empty text, which reads the pattern.
pub(crate) fn regular_expression(expr: &BoundExpr) -> Option<BoundExpr> {
    let BoundExpr::Call { function, arguments, expr_type } = expr else { return None };
    let [text, pattern] = &arguments[..] else { return None };
    if !matches!(function.name, "~" | "!~" | "~*" | "!~*") || !is_row_independent(pattern) {
        return None;
    }
    let empty = ExprType { pg_type: type_of(text), typmod: -1, collation: Collation::C };
    let empty = BoundExpr::Literal { value: Value::Text("".into()), expr_type: empty };
    Some(BoundExpr::Call { function, arguments: vec![empty, pattern.clone()], expr_type: *expr_type })
}
