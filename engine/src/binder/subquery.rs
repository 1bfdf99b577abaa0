//! Subqueries in expressions (transformSubLink): bound within the levels around them, then put beside the rows that they
//! are asked for. What depends on no row is a value computed once.

use crate::binder::array::array_value;
use crate::binder::dependent::{filtered_early, has_dependent, is_plain};
use crate::binder::expression::Level;
use crate::binder::folded::check_closed;
use crate::binder::function::has_stand_in;
use crate::binder::harmless::hides_errors;
use crate::binder::part::may_raise_of_part;
use crate::binder::relation::{
    AGGREGATE_BASE, GROUPING_BASE, RIGHT_BASE, SCALAR_BASE, SUBQUERY_BASE, any_column, as_outer, has_outer,
    is_own_column, map_columns,
};
use crate::binder::select::Selected;
use crate::binder::typed::{CollationStrength, Typed, children_mut};
use crate::binder::{
    AggregateCall, Binder, Bound, BoundExpr, BoundRelation, ExprType, MatchKind, ScalarKind, ScalarQuery, cannot_raise,
    unsupported,
};
use crate::catalog::Collation;
use crate::catalog::functions::AggregateFunction;
use crate::reason::UpstreamReason;
use crate::statement::ast::{Expr, Query};
use crate::types::Element;

/// One that waits for the rows that it is asked for.
#[derive(Clone)]
pub(super) struct Subquery {
    pub(super) relation: BoundRelation,
    pub(super) kind: Asked,
    /// The number that its expressions know this level by.
    pub(super) level: usize,
}

#[derive(Clone)]
pub(super) enum Asked {
    Value,
    Exists,
    /// The comparison over the level's columns and, from `RIGHT_BASE` on, the subquery's.
    In(BoundExpr),
}

impl Binder<'_> {
    fn inner(&mut self, level: &Level, query: &Query) -> Bound<Selected> {
        self.outer.push(level.scope.clone());
        let selected = self.source(query)?;
        self.outer.pop();
        Ok(selected)
    }

    pub(super) fn scalar_subquery(&mut self, level: &mut Level, query: &Query) -> Bound<Typed> {
        let selected = self.inner(level, query)?.held()?;
        let [column] = selected.columns.as_slice() else {
            return Err(UpstreamReason::UnknownColumn("subquery must return only one column".into()));
        };
        check_closed(column.is_open)?;
        let expr_type = column.expr_type;
        let strength =
            if expr_type.collation == Collation::None { CollationStrength::None } else { CollationStrength::Implicit };
        let expr = self.value_of(level, selected.relation, expr_type);
        Ok(Typed { expr, expr_type, strength, origin: None })
    }

    /// ARRAY_SUBLINK: array_agg of the rows in their order, and an empty array of none.
    pub(super) fn array_of_rows(&mut self, level: &mut Level, query: &Query) -> Bound<Typed> {
        let selected = self.inner(level, query)?.held()?;
        let [column] = selected.columns.as_slice() else {
            return Err(UpstreamReason::UnknownColumn("subquery must return only one column".into()));
        };
        check_closed(column.is_open)?;
        let item = column.expr_type;
        self.kept_domains.push(item.pg_type);
        let no_array = || unsupported(format!("array of {}", item.pg_type.name()));
        let element = Element::of(item.pg_type).ok_or_else(no_array)?;
        self.check_element_collation(item.collation)?;
        let expr_type = ExprType { typmod: item.typmod, ..self.array_type(element)? };
        let collected = AggregateCall {
            function: AggregateFunction::ArrayAgg,
            argument: Some(BoundExpr::Column { index: 0, expr_type: item }),
            extra: Vec::new(),
            is_distinct: false,
            order: Vec::new(),
            filter: None,
            expr_type,
        };
        let input = Box::new(selected.relation);
        let relation = BoundRelation::Aggregate { input, groups: Vec::new(), aggregates: vec![collected] };
        let empty = BoundExpr::Literal { value: array_value(element, &[]), expr_type };
        let arguments = vec![BoundExpr::Column { index: 0, expr_type }, empty];
        let expressions = vec![BoundExpr::Coalesce { arguments, call: 0, expr_type }];
        let relation = BoundRelation::Project { input: Box::new(relation), expressions };
        let expr = self.value_of(level, relation, expr_type);
        Ok(Typed { expr, expr_type, strength: CollationStrength::Implicit, origin: None })
    }

    pub(super) fn exists(&mut self, level: &mut Level, query: &Query) -> Bound<Typed> {
        let mut selected = self.inner(level, query)?;
        let expr = match selected.relation.is_correlated() {
            false => self.scalar(selected.relation, ScalarKind::Exists, ExprType::BOOL),
            true if hides_errors(&selected.relation) => {
                return Err(unsupported("EXISTS of what is computed, with errors, but not asked for"));
            }
            true => self.pending(level, selected.relation, Asked::Exists, ExprType::BOOL),
        };
        Ok(Typed::bool(expr))
    }

    pub(super) fn in_subquery(
        &mut self,
        level: &mut Level,
        operand: &Expr,
        symbol: &str,
        query: &Query,
        negated: bool,
    ) -> Bound<Typed> {
        let operands = match operand {
            Expr::Row { items, .. } => self.expressions(level, items)?,
            single => vec![self.expression(level, single)?],
        };
        let selected = self.inner(level, query)?.held()?;
        if selected.columns.len() != operands.len() {
            return Err(UpstreamReason::UnknownColumn("subquery has another number of columns".into()));
        }
        let is_row = operands.len() > 1;
        if is_row && symbol != "=" {
            return Err(unsupported("order of rows in ANY or ALL"));
        }
        let mut tests = Vec::new();
        for (index, (operand, column)) in operands.into_iter().zip(&selected.columns).enumerate() {
            let expr_type = column.expr_type;
            let value = BoundExpr::Column { index: RIGHT_BASE + index, expr_type };
            let strength = if expr_type.collation == Collation::None {
                CollationStrength::None
            } else {
                CollationStrength::Implicit
            };
            let value = Typed { expr: value, expr_type, strength, origin: None };
            tests.push(self.operator(symbol, Some(operand), value)?.expr);
        }
        let test = if is_row { BoundExpr::And(tests) } else { tests.remove(0) };
        let answer = self.pending(level, selected.relation, Asked::In(test), ExprType::BOOL);
        Ok(Typed::bool(if negated { BoundExpr::Not(Box::new(answer)) } else { answer }))
    }

    /// The value of a subquery's one column: computed once, or for each row that it depends on.
    pub(super) fn value_of(
        &mut self,
        level: &mut Level,
        mut relation: BoundRelation,
        expr_type: ExprType,
    ) -> BoundExpr {
        match relation.is_correlated() {
            false => self.scalar(relation, ScalarKind::Value, expr_type),
            true => self.pending(level, relation, Asked::Value, expr_type),
        }
    }

    fn scalar(&mut self, relation: BoundRelation, kind: ScalarKind, expr_type: ExprType) -> BoundExpr {
        self.scalars.push(ScalarQuery { relation, kind, pg_type: expr_type.pg_type });
        BoundExpr::Parameter { index: SCALAR_BASE + self.scalars.len() - 1, expr_type }
    }

    pub(super) fn pending(
        &mut self,
        level: &mut Level,
        relation: BoundRelation,
        kind: Asked,
        expr_type: ExprType,
    ) -> BoundExpr {
        level.subqueries.push(Subquery { relation, kind, level: self.outer.len() });
        BoundExpr::Column { index: SUBQUERY_BASE + level.subqueries.len() - 1, expr_type }
    }

    /// Filters by a condition, whose conjuncts that are IN or EXISTS decide by themselves which rows stay.
    pub(super) fn filtered(
        &mut self,
        mut relation: BoundRelation,
        level: &Level,
        condition: BoundExpr,
    ) -> Bound<BoundRelation> {
        let (mut plain, mut matches) = (Vec::new(), Vec::new());
        let parts = conjuncts(condition);
        let is_apart = !level.subqueries.is_empty() || has_dependent(&relation);
        for part in parts {
            match decides(&part, &level.subqueries) {
                Some(decided) => matches.push(decided),
                // Fewer rows are asked for.
                None if is_apart && is_plain(&part) => relation = filtered_early(relation, part),
                None => plain.push(part),
            }
        }
        relation = self.settled(relation)?;
        if !plain.is_empty() {
            let is_loud = |part: &BoundExpr| may_raise_of_part(&relation, part, &level.subqueries);
            let (is_loud, before) = (plain.iter().any(is_loud), self.independents);
            let mut predicate = if plain.len() == 1 { plain.remove(0) } else { BoundExpr::And(plain) };
            relation = self.attached(relation, level, vec![&mut predicate])?;
            if is_loud && self.independents > before {
                return Err(unsupported(
                    "a condition on a part of what is joined, by a subquery that may raise an error",
                ));
            }
            relation = BoundRelation::Filter { input: Box::new(relation), predicate };
        }
        for (number, kind) in matches {
            let mut subquery = level.subqueries[number].clone();
            if let Asked::In(test) = &mut subquery.kind {
                relation = self.attached(relation, level, vec![test])?;
            }
            relation = self.matched(relation, subquery, kind)?;
        }
        Ok(relation)
    }

    /// The relation with the answers of all subqueries that the expressions ask as further columns.
    pub(super) fn attached(
        &mut self,
        mut relation: BoundRelation,
        level: &Level,
        mut expressions: Vec<&mut BoundExpr>,
    ) -> Bound<BoundRelation> {
        // In order: the operand of an IN may ask one that was bound before.
        let mut answers: Vec<(usize, BoundExpr)> = Vec::new();
        for number in asked(expressions.iter().map(|expr| &**expr), &level.subqueries) {
            let mut subquery = level.subqueries[number].clone();
            if let Asked::In(test) = &mut subquery.kind {
                put(test, &answers);
            }
            let (with_answer, answer) = self.answered(relation, subquery)?;
            relation = with_answer;
            answers.push((number, answer));
        }
        expressions.iter_mut().for_each(|expr| put(expr, &answers));
        Ok(relation)
    }
}

/// The subquery that a conjunct consists of, and what it does to the rows.
fn decides(part: &BoundExpr, subqueries: &[Subquery]) -> Option<(usize, MatchKind)> {
    let (asked, negated) = match part {
        BoundExpr::Not(operand) => (&**operand, true),
        other => (other, false),
    };
    let BoundExpr::Column { index, .. } = asked else { return None };
    let number = asked_number(*index)?;
    match (&subqueries.get(number)?.kind, negated) {
        (Asked::Exists, true) => Some((number, MatchKind::Anti)),
        (Asked::Exists | Asked::In(_), false) => Some((number, MatchKind::Semi)),
        // NOT IN is true only where no comparison is unknown.
        (Asked::In(_), true) | (Asked::Value, _) => None,
    }
}

/// The numbers of the subqueries that the expressions ask, ascending.
pub(super) fn asked<'e>(expressions: impl Iterator<Item = &'e BoundExpr>, subqueries: &[Subquery]) -> Vec<usize> {
    let mut numbers = Vec::new();
    expressions.for_each(|expr| collect_asked(expr, subqueries, &mut numbers));
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn asked_number(index: usize) -> Option<usize> {
    index.checked_sub(SUBQUERY_BASE).filter(|_| index < GROUPING_BASE)
}

fn collect_asked(expr: &BoundExpr, subqueries: &[Subquery], asked: &mut Vec<usize>) {
    if let BoundExpr::Column { index, .. } = expr
        && let Some(number) = asked_number(*index)
    {
        asked.push(number);
        if let Some(Asked::In(test)) = subqueries.get(number).map(|subquery| &subquery.kind) {
            collect_asked(test, subqueries, asked);
        }
    }
    super::typed::children(expr).into_iter().for_each(|child| collect_asked(child, subqueries, asked));
}

/// Puts the answers in place of the questions.
fn put(expr: &mut BoundExpr, answers: &[(usize, BoundExpr)]) {
    if let BoundExpr::Column { index, expr_type } = expr
        && let Some(number) = asked_number(*index)
    {
        if let Some((_, answer)) = answers.iter().find(|(known, _)| *known == number) {
            *expr = answer.clone().labelled_as(*expr_type);
        }
        return;
    }
    children_mut(expr).into_iter().for_each(|child| put(child, answers));
}

/// Refuses a part of WHERE or ON that has columns of outer queries alone and may raise an error: PostgreSQL asks it before it looks for
/// rows (createplan.c, get_gating_quals), while here it is asked of those that are found.
pub(super) fn check_gates(condition: &BoundExpr) -> Bound<()> {
    match condition {
        BoundExpr::And(parts) => parts.iter().try_for_each(check_gates),
        part if has_outer(part) && !any_column(part, &is_own_column) && !cannot_raise(part) => {
            Err(unsupported("a condition on an outer query's columns alone that may raise an error"))
        }
        _ => Ok(()),
    }
}

pub(super) fn conjuncts(condition: BoundExpr) -> Vec<BoundExpr> {
    match condition {
        BoundExpr::And(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

pub(super) fn all_of(mut parts: Vec<BoundExpr>) -> Option<BoundExpr> {
    if parts.len() > 1 { Some(BoundExpr::And(parts)) } else { parts.pop() }
}

/// Numbers the values of subqueries behind the parameters; refuses what still points to another level.
pub(super) fn settle(relation: &mut BoundRelation, parameters: usize) -> Bound<()> {
    let is_open =
        |expr: &BoundExpr| any_column(expr, &|index| index >= AGGREGATE_BASE) || has_outer(expr) || has_stand_in(expr);
    if relation.any_expression(&is_open) {
        return Err(unsupported("reference to an outer query here"));
    }
    relation.for_each_expression(&mut |expr| number_scalars(expr, parameters));
    Ok(())
}

fn number_scalars(expr: &mut BoundExpr, parameters: usize) {
    if let BoundExpr::Parameter { index, .. } = expr
        && *index >= SCALAR_BASE
    {
        *index = *index - SCALAR_BASE + parameters;
    }
    children_mut(expr).into_iter().for_each(|child| number_scalars(child, parameters));
}

/// Columns of the level become those of the left side, the subquery's those of the right, `left_width` further on.
pub(super) fn placed(mut expr: BoundExpr, level: usize, left_width: usize) -> BoundExpr {
    map_columns(&mut expr, &|index| match as_outer(index) {
        Some((of, column)) if of == level => column,
        Some(_) => index,
        None if index >= AGGREGATE_BASE => index,
        None => index + left_width,
    });
    expr
}
