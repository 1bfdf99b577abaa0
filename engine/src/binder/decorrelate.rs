//! Subqueries that depend on the rows around them, made joins.
//!
//! Conditions that mention the outer row move up, out of the subquery, until they are conditions of a join with these rows;
//! what lies between (grouping, DISTINCT, LIMIT) is then done for each value of the inner side at once. Only equalities
//! can pass such a place. A subquery that resists is made one in a more general way ([`super::dependent`]).

mod pull;

use crate::binder::dependent::Independent;
use crate::binder::harmless::are_sure;
use crate::binder::query::RowLimits;
use crate::binder::relation::{AGGREGATE_BASE, RIGHT_BASE, SCALAR_BASE, any_column, as_outer, map_columns};
use crate::binder::subquery::{Asked, Subquery, all_of, conjuncts, placed};
use crate::binder::typed::children_mut;
use crate::binder::{
    AggregateCall, Binder, Bound, BoundExpr, BoundRelation, ExprType, FrameBound, JoinKind, MatchKind, SortKey,
    WindowCall, WindowFrame, WindowKind, unsupported,
};
use crate::catalog::Collation;
use crate::catalog::functions::{self, AggregateFunction, Function, LIMIT, OFFSET, WindowFunction};
use crate::reason::UpstreamReason;
use crate::statement::ast::{Exclusion, FrameUnit};
use crate::types::{PgType, Value};

/// What is left of a subquery, whose first columns are its own, and the conditions that it is to be joined by: over its
/// columns and those of outer levels.
struct Pulled {
    relation: BoundRelation,
    conditions: Vec<BoundExpr>,
}

impl Pulled {
    fn untouched(relation: BoundRelation) -> Self {
        Self { relation, conditions: Vec::new() }
    }
}
pub(super) const INT8: ExprType = ExprType { pg_type: PgType::Int8, typmod: -1, collation: Collation::None };

impl Binder<'_> {
    /// The rows of `left` that a Semi or Anti keeps.
    pub(super) fn matched(&mut self, left: BoundRelation, subquery: Subquery, kind: MatchKind) -> Bound<BoundRelation> {
        let (asked, conditions, test) = self.asked_beside(left, subquery)?;
        let condition = all_of(conditions.into_iter().chain(test).collect());
        let (left, right) = asked;
        Ok(BoundRelation::Match { kind, left, right, condition, test: None })
    }

    /// What IN or EXISTS asks beside the rows it is asked for, the conditions between both, and the comparison of IN.
    #[expect(clippy::type_complexity, reason = "taken apart where it is called")]
    fn asked_beside(
        &mut self,
        left: BoundRelation,
        subquery: Subquery,
    ) -> Bound<((Box<BoundRelation>, Box<BoundRelation>), Vec<BoundExpr>, Option<BoundExpr>)> {
        let (left_width, level) = (left.width(), subquery.level);
        match self.questioned(subquery.clone()) {
            Ok((pulled, test)) => {
                let conditions = pulled.conditions.into_iter().map(|part| placed(part, level, left_width)).collect();
                let test = test.map(|test| placed_test(test, level, left_width));
                Ok(((Box::new(left), Box::new(pulled.relation)), conditions, test))
            }
            Err(UpstreamReason::Unsupported(_)) => {
                let Independent { left, right, ties } = self.independent(left, subquery.relation, level)?;
                let test = match subquery.kind {
                    Asked::In(test) => Some(placed_test(test, level, left.width())),
                    Asked::Exists | Asked::Value => None,
                };
                Ok(((Box::new(left), Box::new(right)), ties, test))
            }
            Err(reason) => Err(reason),
        }
    }

    /// The left side with what the subquery says to each of its rows, and that.
    pub(super) fn answered(&mut self, left: BoundRelation, subquery: Subquery) -> Bound<(BoundRelation, BoundExpr)> {
        if matches!(subquery.kind, Asked::Value) {
            return match self.value(left.clone(), subquery.clone()) {
                Err(UpstreamReason::Unsupported(_)) => self.value_for_each(left, subquery),
                outcome => outcome,
            };
        }
        let ((left, right), conditions, test) = self.asked_beside(left, subquery)?;
        let (left_width, condition) = (left.width(), all_of(conditions));
        let relation = BoundRelation::Match { kind: MatchKind::Mark, left, right, condition, test };
        Ok((relation, BoundExpr::Column { index: left_width, expr_type: ExprType::BOOL }))
    }

    /// What IN or EXISTS asks: the rows, and the comparison of IN.
    fn questioned(&mut self, subquery: Subquery) -> Bound<(Pulled, Option<BoundExpr>)> {
        let Subquery { relation, kind, level } = subquery;
        let (relation, test) = match kind {
            Asked::In(test) => {
                let mut relation = unordered(relation);
                let mut test = test;
                if let BoundRelation::Project { expressions, .. } = &relation
                    && expressions.iter().any(|expr| mentions(expr, level))
                {
                    put_columns(&mut test, &|index| {
                        index.checked_sub(RIGHT_BASE).filter(|_| index < AGGREGATE_END).map(|column| {
                            let mut definition = expressions[column].clone();
                            map_columns(&mut definition, &|index| shifted(index));
                            definition
                        })
                    });
                    let BoundRelation::Project { input, .. } = relation else { unreachable!("looked at above") };
                    relation = *input;
                }
                (relation, Some(test))
            }
            Asked::Exists | Asked::Value => (existence(relation)?, None),
        };
        Ok((self.pull(relation, level)?, test))
    }

    /// A subquery as a value, in the general way.
    fn value_for_each(&mut self, left: BoundRelation, subquery: Subquery) -> Bound<(BoundRelation, BoundExpr)> {
        let first_type = first_column_type(&subquery.relation);
        let expr_type = first_type.ok_or_else(|| unsupported("subquery of unknown type"))?;
        let Independent { left, right, ties } = self.independent(left, subquery.relation, subquery.level)?;
        let left_width = left.width();
        let (left, right) = (Box::new(left), Box::new(right));
        let kind = MatchKind::Single;
        let relation = BoundRelation::Match { kind, left, right, condition: all_of(ties), test: None };
        Ok((relation, BoundExpr::Column { index: left_width, expr_type }))
    }

    /// A subquery as a value: NULL where it has no row.
    fn value(&mut self, left: BoundRelation, subquery: Subquery) -> Bound<(BoundRelation, BoundExpr)> {
        let (left_width, level) = (left.width(), subquery.level);
        let mut wrappers = Vec::new();
        let inner = match one_row_aggregate(unwrapped(subquery.relation, &mut wrappers)) {
            Ok((input, aggregates)) => {
                let (relation, columns) = self.grouped_by_outer(left, input, aggregates, level, JoinKind::PerRow)?;
                let (columns, guards) = rewrapped(columns, wrappers, level);
                check_computed(&columns, left_width)?;
                let value = columns.into_iter().next().ok_or_else(|| unsupported("subquery without columns"))?;
                let expr_type = value.expr_type();
                let null = BoundExpr::Literal { value: Value::Null, expr_type };
                let value = match all_of(guards) {
                    None => value,
                    Some(guard) => {
                        BoundExpr::Case { branches: vec![(guard, value)], otherwise: Box::new(null), expr_type }
                    }
                };
                return Ok((relation, value));
            }
            Err(other) => *other,
        };
        let mut relation = restored(inner, wrappers);
        // What is computed from the outer row too is computed beside it.
        let mut computed = None;
        if let BoundRelation::Project { input, expressions } = relation {
            if expressions.iter().any(|expr| mentions(expr, level)) {
                let width = input.width();
                let mut kept: Vec<BoundExpr> = (0..width).map(placeholder).collect();
                kept.push(BoundExpr::Literal { value: Value::Bool(true), expr_type: ExprType::BOOL });
                computed = Some((expressions, width));
                relation = BoundRelation::Project { input, expressions: kept };
            } else {
                relation = BoundRelation::Project { input, expressions };
            }
        }
        let first_type = first_column_type(&relation);
        let pulled = self.pull(relation, level)?;
        let condition = all_of(pulled.conditions.into_iter().map(|part| placed(part, level, left_width)).collect());
        let right = Box::new(pulled.relation);
        let relation =
            BoundRelation::Match { kind: MatchKind::Single, left: Box::new(left), right, condition, test: None };
        let value = match computed {
            None => {
                let expr_type = first_type.ok_or_else(|| unsupported("subquery of unknown type"))?;
                BoundExpr::Column { index: left_width, expr_type }
            }
            Some((expressions, width)) => {
                let value = expressions.into_iter().next().ok_or_else(|| unsupported("subquery without columns"))?;
                let expr_type = value.expr_type();
                let is_there = BoundExpr::Column { index: left_width + width, expr_type: ExprType::BOOL };
                let null = BoundExpr::Literal { value: Value::Null, expr_type };
                let value = placed(value, level, left_width);
                BoundExpr::Case { branches: vec![(is_there, value)], otherwise: Box::new(null), expr_type }
            }
        };
        Ok((relation, value))
    }

    /// An aggregate over rows that depend on the outer row: grouped by what ties them to it and joined. Then the columns of
    /// the aggregate; where there is no row, as an aggregate has them over no rows.
    fn grouped_by_outer(
        &mut self,
        left: BoundRelation,
        input: BoundRelation,
        aggregates: Vec<AggregateCall>,
        level: usize,
        per_row: JoinKind,
    ) -> Bound<(BoundRelation, Vec<BoundExpr>)> {
        let left_width = left.width();
        let column = |(index, call): (usize, &AggregateCall)| {
            let column = BoundExpr::Column { index: left_width + index, expr_type: call.expr_type };
            if !counts(call.function) {
                return column;
            }
            let zero = BoundExpr::Literal { value: Value::Int8(0), expr_type: INT8 };
            BoundExpr::Coalesce { arguments: vec![column, zero], call: 0, expr_type: call.expr_type }
        };
        let columns = aggregates.iter().enumerate().map(column).collect();
        let pulled = self.pull_groups(input, Vec::new(), aggregates, level)?;
        let condition = all_of(pulled.conditions.into_iter().map(|part| placed(part, level, left_width)).collect());
        let kind = if condition.is_some() { per_row } else { JoinKind::Cross };
        let (left, right) = (Box::new(left), Box::new(pulled.relation));
        Ok((BoundRelation::Join { kind, left, right, condition }, columns))
    }

    /// JOIN LATERAL: `right` may depend on the rows of `left`. Output: left's columns, right's, and maybe more.
    pub(super) fn lateral(
        &mut self,
        left: BoundRelation,
        right: BoundRelation,
        level: usize,
        kind: JoinKind,
        condition: Option<BoundExpr>,
    ) -> Bound<BoundRelation> {
        match self.lateral_by_ties(left.clone(), right.clone(), level, kind, condition.clone()) {
            Err(UpstreamReason::Unsupported(_)) => {
                let kind = if kind == JoinKind::Cross { JoinKind::Inner } else { kind };
                let (left, right) = (Box::new(left), Box::new(right));
                Ok(BoundRelation::Dependent { kind, left, right, level, condition })
            }
            outcome => outcome,
        }
    }

    fn lateral_by_ties(
        &mut self,
        left: BoundRelation,
        right: BoundRelation,
        level: usize,
        kind: JoinKind,
        condition: Option<BoundExpr>,
    ) -> Bound<BoundRelation> {
        let (left_width, right_width) = (left.width(), right.width());
        let mut wrappers = Vec::new();
        let inner = match one_row_aggregate(unwrapped(right, &mut wrappers)) {
            Ok((input, aggregates)) => {
                let (relation, columns) = self.grouped_by_outer(left, input, aggregates, level, JoinKind::Lateral)?;
                let (columns, guards) = rewrapped(columns, wrappers, level);
                check_computed(&columns, left_width)?;
                if kind == JoinKind::Left && (!guards.is_empty() || condition.is_some()) {
                    return Err(unsupported("LEFT JOIN LATERAL with a condition"));
                }
                let expressions = (0..left_width).map(placeholder).chain(columns).collect();
                let relation = match all_of(guards) {
                    Some(predicate) => BoundRelation::Filter { input: Box::new(relation), predicate },
                    None => relation,
                };
                let relation = BoundRelation::Project { input: Box::new(relation), expressions };
                return Ok(match condition {
                    Some(predicate) => BoundRelation::Filter { input: Box::new(relation), predicate },
                    None => relation,
                });
            }
            Err(other) => *other,
        };
        let mut right = restored(inner, wrappers);
        let mut computed = None;
        if let BoundRelation::Project { input, expressions } = right {
            if expressions.iter().any(|expr| mentions(expr, level)) {
                if kind == JoinKind::Left || condition.is_some() {
                    return Err(unsupported("LATERAL columns computed from outer ones"));
                }
                computed = Some(expressions);
                right = *input;
            } else {
                right = BoundRelation::Project { input, expressions };
            }
        }
        let per_row = if is_pulled_up(&right) { JoinKind::Left } else { JoinKind::Lateral };
        let pulled = self.pull(right, level)?;
        let own = pulled.conditions.into_iter().map(|part| placed(part, level, left_width));
        let condition = all_of(own.chain(condition.into_iter().flat_map(conjuncts)).collect());
        let kind = match (kind, &condition) {
            (JoinKind::Cross, Some(_)) => JoinKind::Inner,
            (JoinKind::Left, None) => return Err(unsupported("LEFT JOIN LATERAL without a condition")),
            (JoinKind::Left, Some(_)) => per_row,
            (kind, _) => kind,
        };
        let (left, right) = (Box::new(left), Box::new(pulled.relation));
        let joined = BoundRelation::Join { kind, left, right, condition };
        Ok(match computed {
            None => joined,
            Some(expressions) => {
                let columns = expressions.into_iter().map(|expr| placed(expr, level, left_width));
                let expressions: Vec<BoundExpr> = (0..left_width).map(placeholder).chain(columns).collect();
                debug_assert_eq!(expressions.len(), left_width + right_width, "left's columns and right's");
                BoundRelation::Project { input: Box::new(joined), expressions }
            }
        })
    }
}

/// Refuses columns of a group for each row of the left that are made of that row alone: what is said of them would be said of the left's
/// rows, before PostgreSQL would, which computes the subquery first.
fn check_computed(columns: &[BoundExpr], left_width: usize) -> Bound<()> {
    let is_of_left = |column: &BoundExpr| {
        any_column(column, &|index| index < left_width) && !any_column(column, &|index| index >= left_width)
    };
    if columns.iter().any(is_of_left) { Err(unsupported("outer columns beside groups of a subquery")) } else { Ok(()) }
}

/// Whether PostgreSQL makes the subquery a part of the query around it (prepjointree.c, is_simple_subquery), so that it may compute all of
/// its rows.
fn is_pulled_up(relation: &BoundRelation) -> bool {
    match relation {
        BoundRelation::Project { input, .. } | BoundRelation::Filter { input, .. } => is_pulled_up(input),
        BoundRelation::Scan { .. } | BoundRelation::Join { .. } => true,
        _ => false,
    }
}

const TIED: &str = "correlated subquery: tied to the outer row by more than equalities";
const AGGREGATE_END: usize = RIGHT_BASE << 1;

/// Whether an expression mentions a column of that level.
pub(super) fn mentions(expr: &BoundExpr, level: usize) -> bool {
    any_column(expr, &|index| as_outer(index).is_some_and(|(of, _)| of == level))
}

/// The inner and the outer side of an equality between them whose equal values are interchangeable as keys.
fn tie(condition: &BoundExpr, level: usize) -> Option<(&BoundExpr, &BoundExpr)> {
    let BoundExpr::Call { function, arguments, .. } = condition else { return None };
    let [left, right] = arguments.as_slice() else { return None };
    let [a, b] = function.arguments else { return None };
    if function.name != "=" || !(a == b || (a.is_integer() && b.is_integer())) {
        return None;
    }
    let is_inner = |expr: &BoundExpr| !any_column(expr, &|index| as_outer(index).is_some());
    let is_outer = |expr: &BoundExpr| {
        mentions(expr, level) && !any_column(expr, &|index| as_outer(index).is_none_or(|(of, _)| of != level))
    };
    if is_inner(left) && is_outer(right) {
        Some((left, right))
    } else if is_inner(right) && is_outer(left) {
        Some((right, left))
    } else {
        None
    }
}

/// The equality with another inner side.
fn retied(condition: BoundExpr, level: usize, inner: BoundExpr) -> BoundExpr {
    let BoundExpr::Call { function, arguments, expr_type } = condition else { return condition };
    let arguments = arguments.into_iter().map(|side| if mentions(&side, level) { side } else { inner.clone() });
    BoundExpr::Call { function, arguments: arguments.collect(), expr_type }
}

pub(super) fn counts(function: AggregateFunction) -> bool {
    matches!(function, AggregateFunction::CountStar | AggregateFunction::Count | AggregateFunction::RegrCount)
}

/// Makes the condition, over the input of a projection, one over its output: columns that it needs are kept.
fn keep_columns(condition: &mut BoundExpr, expressions: &mut Vec<BoundExpr>) {
    if let BoundExpr::Column { index, .. } = condition {
        if *index >= AGGREGATE_BASE {
            return;
        }
        let known =
            expressions.iter().position(|expr| matches!(expr, BoundExpr::Column { index: of, .. } if of == index));
        let position = known.unwrap_or_else(|| {
            expressions.push(condition.clone());
            expressions.len() - 1
        });
        if let BoundExpr::Column { index, .. } = condition {
            *index = position;
        }
        return;
    }
    children_mut(condition).into_iter().for_each(|child| keep_columns(child, expressions));
}

/// A column whose type nobody asks for: projections of plain columns pass arrays on.
pub(super) fn placeholder(index: usize) -> BoundExpr {
    BoundExpr::Column {
        index,
        expr_type: ExprType { pg_type: PgType::Unknown, typmod: -1, collation: Collation::None },
    }
}

pub(super) fn reordered(relation: BoundRelation, order: &[usize]) -> BoundRelation {
    if order.iter().enumerate().all(|(new, old)| new == *old) {
        return relation;
    }
    let expressions = order.iter().map(|index| placeholder(*index)).collect();
    BoundRelation::Project { input: Box::new(relation), expressions }
}

/// The relation where only a row's being there, or being equal to something, counts. What a sort is by has its errors, though.
fn unordered(relation: BoundRelation) -> BoundRelation {
    match relation {
        BoundRelation::Sort { input, keys } if are_sure(&input, &keys) => unordered(*input),
        BoundRelation::Distinct { input, .. } => unordered(*input),
        BoundRelation::Project { input, expressions } => {
            let is_ordered = matches!(*input, BoundRelation::Sort { .. });
            let input = if is_ordered { unordered(*input) } else { *input };
            BoundRelation::Project { input: Box::new(input), expressions }
        }
        other => other,
    }
}

/// The relation where only its having a row counts.
fn existence(relation: BoundRelation) -> Bound<BoundRelation> {
    Ok(match relation {
        BoundRelation::Project { input, .. }
        | BoundRelation::Sort { input, .. }
        | BoundRelation::Distinct { input, .. }
        | BoundRelation::DistinctOn { input, .. } => existence(*input)?,
        BoundRelation::Limit {
            input,
            limit: Some(BoundExpr::Literal { value: Value::Int8(1..), .. }),
            offset: None,
            ..
        } => existence(*input)?,
        BoundRelation::Aggregate { groups, .. } if groups.is_empty() => {
            return Err(unsupported("EXISTS of an aggregate"));
        }
        BoundRelation::Aggregate { input, .. } => existence(*input)?,
        other => other,
    })
}

/// What is done to the one row of an aggregate without groups.
enum Wrapper {
    Project(Vec<BoundExpr>),
    Filter(BoundExpr),
}

/// The relation without the projections and filters on top, if an aggregate without groups is below them; outermost first.
fn unwrapped(relation: BoundRelation, wrappers: &mut Vec<Wrapper>) -> BoundRelation {
    if !is_aggregate(&relation) {
        return relation;
    }
    match relation {
        BoundRelation::Project { input, expressions } => {
            wrappers.push(Wrapper::Project(expressions));
            unwrapped(*input, wrappers)
        }
        BoundRelation::Filter { input, predicate } => {
            wrappers.push(Wrapper::Filter(predicate));
            unwrapped(*input, wrappers)
        }
        BoundRelation::Sort { input, .. } | BoundRelation::Limit { input, .. } => unwrapped(*input, wrappers),
        other => other,
    }
}

/// The input and the calls of an aggregate without groups, or the relation back.
fn one_row_aggregate(relation: BoundRelation) -> Result<(BoundRelation, Vec<AggregateCall>), Box<BoundRelation>> {
    match relation {
        BoundRelation::Aggregate { input, groups, aggregates } if groups.is_empty() => Ok((*input, aggregates)),
        other => Err(Box::new(other)),
    }
}

fn is_aggregate(relation: &BoundRelation) -> bool {
    match relation {
        BoundRelation::Project { input, .. } | BoundRelation::Filter { input, .. } => is_aggregate(input),
        BoundRelation::Sort { input, keys } => are_sure(input, keys) && is_aggregate(input),
        BoundRelation::Limit {
            input,
            limit: Some(BoundExpr::Literal { value: Value::Int8(1..), .. }),
            offset: None,
            ..
        } => is_aggregate(input),
        BoundRelation::Aggregate { groups, .. } => groups.is_empty(),
        _ => false,
    }
}

/// Whether an aggregate without groups gives the rows, whatever becomes of them.
fn has_one_row(relation: &BoundRelation) -> bool {
    match relation {
        BoundRelation::Project { input, .. }
        | BoundRelation::Filter { input, .. }
        | BoundRelation::Sort { input, .. }
        | BoundRelation::Limit { input, .. }
        | BoundRelation::Distinct { input, .. } => has_one_row(input),
        BoundRelation::Aggregate { groups, .. } => groups.is_empty(),
        _ => false,
    }
}

/// Whether LIMIT or OFFSET is given a number that is known when the statement begins.
pub(super) fn is_count(expr: &BoundExpr) -> bool {
    match expr {
        BoundExpr::Literal { value, .. } => matches!(value, Value::Null | Value::Int8(0..)),
        BoundExpr::Parameter { index, .. } => *index < SCALAR_BASE,
        BoundExpr::Call { arguments, .. } => {
            arguments.iter().all(|argument| matches!(argument, BoundExpr::Literal { .. }) || is_count(argument))
        }
        _ => false,
    }
}

/// A literal is one; what it is made of is computed before any row is, with its errors.
fn counted(expr: BoundExpr, by: &'static Function) -> BoundExpr {
    match expr {
        BoundExpr::Literal { .. } => expr,
        _ => BoundExpr::Call { function: by, arguments: vec![expr], expr_type: INT8 },
    }
}

fn restored(relation: BoundRelation, wrappers: Vec<Wrapper>) -> BoundRelation {
    wrappers.into_iter().rev().fold(relation, |input, wrapper| match wrapper {
        Wrapper::Project(expressions) => BoundRelation::Project { input: Box::new(input), expressions },
        Wrapper::Filter(predicate) => BoundRelation::Filter { input: Box::new(input), predicate },
    })
}

/// What the wrappers make of the columns, and the conditions under which there is a row.
fn rewrapped(mut columns: Vec<BoundExpr>, wrappers: Vec<Wrapper>, level: usize) -> (Vec<BoundExpr>, Vec<BoundExpr>) {
    let mut guards = Vec::new();
    let computed = |mut expr: BoundExpr, columns: &[BoundExpr]| {
        put_columns(&mut expr, &|index| match as_outer(index) {
            Some((of, column)) if of == level => Some(placeholder(column)),
            Some(_) => None,
            None => columns.get(index).cloned(),
        });
        expr
    };
    for wrapper in wrappers.into_iter().rev() {
        match wrapper {
            Wrapper::Filter(predicate) => guards.push(computed(predicate, &columns)),
            Wrapper::Project(expressions) => {
                columns = expressions.into_iter().map(|expr| computed(expr, &columns)).collect();
            }
        }
    }
    (columns, guards)
}

/// Replaces columns; what takes a reference's place has the type that it was bound with.
fn put_columns(expr: &mut BoundExpr, definition: &dyn Fn(usize) -> Option<BoundExpr>) {
    if let BoundExpr::Column { index, expr_type } = expr {
        match definition(*index) {
            Some(BoundExpr::Column { index: new, .. }) => *index = new,
            Some(other) => *expr = other.labelled_as(*expr_type),
            None => {}
        }
        return;
    }
    children_mut(expr).into_iter().for_each(|child| put_columns(child, definition));
}

/// A column of the subquery in the comparison of IN.
fn shifted(index: usize) -> usize {
    if index < AGGREGATE_BASE { index + RIGHT_BASE } else { index }
}

/// The comparison of IN: columns of the level stay, the subquery's follow them. There may be none of the latter, where the
/// subquery's value is an outer column.
fn placed_test(mut part: BoundExpr, level: usize, left_width: usize) -> BoundExpr {
    map_columns(&mut part, &|index| match as_outer(index) {
        Some((of, column)) if of == level => column,
        Some(_) => index,
        None if index >= RIGHT_BASE => index - RIGHT_BASE + left_width,
        None => index,
    });
    part
}

fn first_column_type(relation: &BoundRelation) -> Option<ExprType> {
    match relation {
        BoundRelation::Project { expressions, .. } => expressions.first().map(BoundExpr::expr_type),
        BoundRelation::Distinct { columns, .. }
        | BoundRelation::Append { columns, .. }
        | BoundRelation::SetOperation { columns, .. }
        | BoundRelation::Values { columns, .. } => columns.first().copied(),
        BoundRelation::Sort { input, .. }
        | BoundRelation::Limit { input, .. }
        | BoundRelation::DistinctOn { input, .. }
        | BoundRelation::Filter { input, .. } => first_column_type(input),
        _ => None,
    }
}

/// row_number() by itself.
pub(super) fn row_number(partition: Vec<BoundExpr>, order: Vec<SortKey>) -> WindowCall {
    numbering(WindowFunction::RowNumber, partition, order)
}

fn numbering(function: WindowFunction, partition: Vec<BoundExpr>, order: Vec<SortKey>) -> WindowCall {
    let frame = WindowFrame {
        unit: FrameUnit::Rows,
        start: FrameBound::UnboundedPreceding,
        end: FrameBound::CurrentRow,
        exclusion: Exclusion::Nothing,
    };
    WindowCall {
        function: WindowKind::Function(function),
        arguments: Vec::new(),
        filter: None,
        partition,
        order,
        frame,
        expr_type: INT8,
    }
}

/// LIMIT and OFFSET for each value of `partition`. WITH TIES, a row's number is that of the first one that is equal by the order.
pub(super) fn first_of_each(
    input: BoundRelation,
    partition: Vec<BoundExpr>,
    order: Vec<SortKey>,
    limits: RowLimits,
) -> Bound<BoundRelation> {
    let RowLimits { limit, offset, with_ties } = limits;
    if with_ties && (offset.is_some() || order.is_empty()) {
        return Err(unsupported("FETCH FIRST WITH TIES and OFFSET in a correlated subquery"));
    }
    let width = input.width();
    let (limit, offset) = (limit.map(|limit| counted(limit, &LIMIT)), offset.map(|offset| counted(offset, &OFFSET)));
    let function = if with_ties { WindowFunction::Rank } else { WindowFunction::RowNumber };
    let number = numbering(function, partition, order);
    let numbered = BoundRelation::Window { input: Box::new(input), calls: vec![number] };
    let column = || BoundExpr::Column { index: width, expr_type: INT8 };
    let call = |function: &'static Function, arguments, expr_type| BoundExpr::Call { function, arguments, expr_type };
    let compare = |symbol, bound| Ok(call(int8_operator(symbol)?, vec![column(), bound], ExprType::BOOL));
    let mut parts = Vec::new();
    if let Some(limit) = limit {
        let last = match &offset {
            None => limit,
            Some(offset) => call(int8_operator("+")?, vec![limit, offset.clone()], INT8),
        };
        parts.push(compare("<=", last)?);
    }
    if let Some(offset) = offset {
        parts.push(compare(">", offset)?);
    }
    Ok(match all_of(parts) {
        Some(predicate) => BoundRelation::Filter { input: Box::new(numbered), predicate },
        None => numbered,
    })
}

fn int8_operator(symbol: &str) -> Bound<&'static Function> {
    let known = functions::operators(symbol).iter().find(|function| function.arguments == [PgType::Int8; 2]);
    known.copied().ok_or_else(|| unsupported("arithmetic of bigint"))
}
