//! Conditions that mention an outer level, moved up through one relation after another.

use super::{
    Pulled, TIED, first_of_each, has_one_row, is_count, keep_columns, mentions, placeholder, reordered, retied, tie,
};
use crate::binder::choice::takes_order;
use crate::binder::coerce::check_groupable;
use crate::binder::harmless::are_sure;
use crate::binder::query::RowLimits;
use crate::binder::relation::{AGGREGATE_BASE, map_columns};
use crate::binder::subquery::{all_of, conjuncts};
use crate::binder::{
    AggregateCall, Binder, Bound, BoundExpr, BoundRelation, ExprType, JoinKind, WindowCall, unsupported,
};

fn refused<T>(what: &str) -> Bound<T> {
    Err(unsupported(format!("correlated subquery: {what}")))
}

impl Binder<'_> {
    /// Moves the conditions that mention `level` out of the relation.
    pub(super) fn pull(&mut self, mut relation: BoundRelation, level: usize) -> Bound<Pulled> {
        if !relation.any_expression(&|expr| mentions(expr, level)) {
            return Ok(Pulled::untouched(relation));
        }
        match relation {
            BoundRelation::Filter { input, predicate } => {
                let mut pulled = self.pull(*input, level)?;
                let (outer, own): (Vec<_>, Vec<_>) =
                    conjuncts(predicate).into_iter().partition(|part| mentions(part, level));
                pulled.conditions.extend(outer);
                if let Some(predicate) = all_of(own) {
                    pulled.relation = BoundRelation::Filter { input: Box::new(pulled.relation), predicate };
                }
                Ok(pulled)
            }
            BoundRelation::Project { input, mut expressions } => {
                if expressions.iter().any(|expr| mentions(expr, level)) {
                    return refused("column computed from outer ones");
                }
                let mut pulled = self.pull(*input, level)?;
                for condition in &mut pulled.conditions {
                    keep_columns(condition, &mut expressions);
                }
                pulled.relation = BoundRelation::Project { input: Box::new(pulled.relation), expressions };
                Ok(pulled)
            }
            BoundRelation::Join { kind, left, right, condition } => {
                self.pull_join(kind, *left, *right, condition, level)
            }
            BoundRelation::Match { .. } => self.pull_match(relation, level),
            BoundRelation::Aggregate { input, groups, aggregates } => {
                self.pull_aggregate(*input, groups, aggregates, level)
            }
            BoundRelation::Distinct { input, columns } => self.pull_distinct(*input, columns, level),
            BoundRelation::Window { input, mut calls } => {
                if calls.iter_mut().flat_map(WindowCall::expressions_mut).any(|expr| mentions(expr, level)) {
                    return refused("window computed from outer columns");
                }
                self.pull_window(*input, calls, level)
            }
            BoundRelation::Sort { input, keys } => {
                if keys.iter().any(|key| mentions(&key.expr, level)) {
                    return refused("order by outer columns");
                }
                let mut pulled = self.pull(*input, level)?;
                // Else nobody sees it, but its errors.
                if self.order_shows || !are_sure(&pulled.relation, &keys) {
                    pulled.relation = BoundRelation::Sort { input: Box::new(pulled.relation), keys };
                }
                Ok(pulled)
            }
            BoundRelation::Limit { input, limit, offset, with_ties } => {
                // Its one row is there also where nothing is tied to the outer row; and a number that is not known yet may raise.
                if has_one_row(&input) || ![&limit, &offset].into_iter().flatten().all(is_count) {
                    return Err(unsupported("LIMIT in a correlated subquery"));
                }
                let (input, keys) = match *input {
                    BoundRelation::Sort { input, keys } => (*input, keys),
                    other => (other, Vec::new()),
                };
                if keys.iter().any(|key| mentions(&key.expr, level)) {
                    return refused("order by outer columns");
                }
                let mut pulled = self.pull(input, level)?;
                let mut partition = Vec::new();
                for condition in &pulled.conditions {
                    partition.push(tie(condition, level).ok_or_else(|| unsupported(TIED))?.0.clone());
                }
                let order = keys.clone();
                pulled.relation =
                    first_of_each(pulled.relation, partition, keys, RowLimits { limit, offset, with_ties })?;
                if self.order_shows && !order.is_empty() {
                    pulled.relation = BoundRelation::Sort { input: Box::new(pulled.relation), keys: order };
                }
                Ok(pulled)
            }
            BoundRelation::DistinctOn { keys, .. } if keys.iter().any(|key| mentions(key, level)) => {
                refused("DISTINCT ON outer columns")
            }
            BoundRelation::DistinctOn { input, keys } => self.pull_distinct_on(*input, keys, level),
            BoundRelation::OneRow
            | BoundRelation::Scan { .. }
            | BoundRelation::Dependent { .. }
            | BoundRelation::Append { .. }
            | BoundRelation::SetOperation { .. }
            | BoundRelation::Values { .. }
            | BoundRelation::Common { .. }
            | BoundRelation::Series { .. }
            | BoundRelation::Expand { .. }
            | BoundRelation::Recursive { .. }
            | BoundRelation::Working { .. } => refused("set operation, VALUES, recursion or function"),
        }
    }

    /// A subquery's subquery, which must not depend on the level itself.
    fn pull_match(&mut self, relation: BoundRelation, level: usize) -> Bound<Pulled> {
        let BoundRelation::Match { kind, left, right, condition, test } = relation else {
            return Ok(Pulled::untouched(relation));
        };
        let mut others = vec![*right];
        let parts = condition.iter().chain(&test);
        if others[0].any_expression(&|expr| mentions(expr, level))
            || parts.into_iter().any(|part| mentions(part, level))
        {
            return refused("a subquery in it depends on a level further out");
        }
        let width = left.width();
        let pulled = self.pull(*left, level)?;
        if pulled.relation.width() != width {
            return refused("a subquery beside joined rows");
        }
        let right = Box::new(others.remove(0));
        let left = Box::new(pulled.relation);
        let relation = BoundRelation::Match { kind, left, right, condition, test };
        Ok(Pulled { relation, conditions: pulled.conditions })
    }

    fn pull_distinct(&mut self, input: BoundRelation, mut columns: Vec<ExprType>, level: usize) -> Bound<Pulled> {
        let pulled = self.pull(input, level)?;
        let known = columns.len();
        // What an equality compares tells rows apart for the outer rows; what that is computed from would, for one of them.
        let mut expressions: Vec<BoundExpr> = (0..known).map(placeholder).collect();
        let mut conditions = Vec::with_capacity(pulled.conditions.len());
        for condition in pulled.conditions {
            let inner = tie(&condition, level).ok_or_else(|| unsupported(TIED))?.0.clone();
            let expr_type = inner.expr_type();
            check_groupable(expr_type, "correlated DISTINCT")?;
            let column = BoundExpr::Column { index: expressions.len(), expr_type };
            conditions.push(retied(condition, level, column));
            expressions.push(inner);
            columns.push(expr_type);
        }
        let input = Box::new(BoundRelation::Project { input: Box::new(pulled.relation), expressions });
        Ok(Pulled { relation: BoundRelation::Distinct { input, columns }, conditions })
    }

    fn pull_window(&mut self, input: BoundRelation, mut calls: Vec<WindowCall>, level: usize) -> Bound<Pulled> {
        let width = input.width();
        let mut pulled = self.pull(input, level)?;
        let extra = pulled.relation.width() - width;
        for condition in &pulled.conditions {
            let (inner, _) = tie(condition, level).ok_or_else(|| unsupported(TIED))?;
            calls.iter_mut().for_each(|call| call.partition.push(inner.clone()));
        }
        let calls_count = calls.len();
        let relation = BoundRelation::Window { input: Box::new(pulled.relation), calls };
        // Behind the input's own columns come the calls', then what was added.
        let order: Vec<usize> =
            (0..width).chain(width + extra..width + extra + calls_count).chain(width..width + extra).collect();
        pulled.relation = reordered(relation, &order);
        for condition in &mut pulled.conditions {
            map_columns(condition, &|index| {
                if (width..width + extra).contains(&index) { index + calls_count } else { index }
            });
        }
        Ok(pulled)
    }

    fn pull_distinct_on(&mut self, input: BoundRelation, mut keys: Vec<BoundExpr>, level: usize) -> Bound<Pulled> {
        let (input, order) = match input {
            BoundRelation::Sort { input, keys } => (*input, Some(keys)),
            other => (other, None),
        };
        let mut pulled = self.pull(input, level)?;
        for condition in &pulled.conditions {
            keys.push(tie(condition, level).ok_or_else(|| unsupported(TIED))?.0.clone());
        }
        if let Some(order) = order {
            pulled.relation = BoundRelation::Sort { input: Box::new(pulled.relation), keys: order };
        }
        pulled.relation = BoundRelation::DistinctOn { input: Box::new(pulled.relation), keys };
        Ok(pulled)
    }

    fn pull_join(
        &mut self,
        kind: JoinKind,
        left: BoundRelation,
        mut right: BoundRelation,
        condition: Option<BoundExpr>,
        level: usize,
    ) -> Bound<Pulled> {
        let (left_width, right_width) = (left.width(), right.width());
        let is_inner = matches!(kind, JoinKind::Inner | JoinKind::Cross);
        let (outer, own): (Vec<_>, Vec<_>) =
            condition.into_iter().flat_map(conjuncts).partition(|part| mentions(part, level));
        let is_right_tied = right.any_expression(&|expr| mentions(expr, level));
        if !is_inner && (kind == JoinKind::Full || is_right_tied || !outer.is_empty()) {
            return Err(unsupported("correlated subquery: outer join"));
        }
        let left = self.pull(left, level)?;
        let right = self.pull(right, level)?;
        let (new_left, new_right) = (left.relation.width(), right.relation.width());
        let shift = |index: usize| {
            if index >= left_width && index < AGGREGATE_BASE { index - left_width + new_left } else { index }
        };
        let mut own = own;
        own.iter_mut().for_each(|part| map_columns(part, &shift));
        let kind = if is_inner && !own.is_empty() { JoinKind::Inner } else { kind };
        let kind = if is_inner && own.is_empty() { JoinKind::Cross } else { kind };
        let joined = BoundRelation::Join {
            kind,
            left: Box::new(left.relation),
            right: Box::new(right.relation),
            condition: all_of(own),
        };
        // The original columns first.
        let order: Vec<usize> = (0..left_width)
            .chain(new_left..new_left + right_width)
            .chain(left_width..new_left)
            .chain(new_left + right_width..new_left + new_right)
            .collect();
        let place = |at: usize| order.iter().position(|old| *old == at).unwrap_or(at);
        let mut conditions = outer;
        for mut part in left.conditions {
            map_columns(&mut part, &|index| if index < AGGREGATE_BASE { place(index) } else { index });
            conditions.push(part);
        }
        for mut part in right.conditions {
            map_columns(&mut part, &|index| if index < AGGREGATE_BASE { place(index + new_left) } else { index });
            conditions.push(part);
        }
        Ok(Pulled { relation: reordered(joined, &order), conditions })
    }

    fn pull_aggregate(
        &mut self,
        input: BoundRelation,
        groups: Vec<BoundExpr>,
        aggregates: Vec<AggregateCall>,
        level: usize,
    ) -> Bound<Pulled> {
        let is_one_row = groups.is_empty();
        let pulled = self.pull_groups(input, groups, aggregates, level)?;
        if is_one_row && !pulled.conditions.is_empty() {
            return Err(unsupported("correlated aggregate without GROUP BY, other than as a value"));
        }
        Ok(pulled)
    }

    /// Without GROUP BY there is a row also where nothing ties, which groups by what ties do not give: the caller makes it.
    pub(super) fn pull_groups(
        &mut self,
        input: BoundRelation,
        mut groups: Vec<BoundExpr>,
        aggregates: Vec<AggregateCall>,
        level: usize,
    ) -> Bound<Pulled> {
        let is_computed = groups.iter().chain(aggregates.iter().flat_map(AggregateCall::expressions));
        if is_computed.into_iter().any(|expr| mentions(expr, level)) {
            return refused("aggregate of outer columns");
        }
        let order_shows = aggregates.iter().any(|call| takes_order(call.function) && call.order.is_empty());
        let outer = std::mem::replace(&mut self.order_shows, order_shows);
        let pulled = self.pull(input, level);
        self.order_shows = outer;
        let pulled = pulled?;
        let (known, calls) = (groups.len(), aggregates.len());
        let mut conditions = Vec::new();
        for condition in pulled.conditions {
            let (inner, _) = tie(&condition, level).ok_or_else(|| unsupported(TIED))?;
            check_groupable(inner.expr_type(), "correlated aggregate")?;
            let expr_type = inner.expr_type();
            groups.push(inner.clone());
            // Behind the groups and the calls.
            let column = BoundExpr::Column { index: known + calls + conditions.len(), expr_type };
            conditions.push(retied(condition, level, column));
        }
        let added = groups.len() - known;
        let relation = BoundRelation::Aggregate { input: Box::new(pulled.relation), groups, aggregates };
        let order: Vec<usize> =
            (0..known).chain(known + added..known + added + calls).chain(known..known + added).collect();
        Ok(Pulled { relation: reordered(relation, &order), conditions })
    }
}
