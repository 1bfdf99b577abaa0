//! Expressions over grouped rows: each part must be a group expression, an aggregate, or depend on a grouped primary key
//! (check_ungrouped_columns in parse_agg.c).

use std::collections::HashMap;

use crate::binder::relation::{
    AGGREGATE_BASE, GROUPING_BASE, RIGHT_BASE, WINDOW_BASE, as_outer, is_own_column, outer_index,
};
use crate::binder::scope::Scope;
use crate::binder::subquery::{Asked, Subquery};
use crate::binder::typed::{children, children_mut, is_same};
use crate::binder::{AggregateCall, Binder, Bound, BoundExpr, BoundRelation, ExprType};
use crate::catalog::Collation;
use crate::reason::UpstreamReason;
use crate::types::{PgType, Value};

/// The grouped level: which column of the aggregate's output each expression is.
pub(super) struct Grouping {
    groups: Vec<BoundExpr>,
    aggregates: usize,
    /// Of the FROM clause's output columns that are table columns: table use and index in the table.
    table_columns: HashMap<usize, (usize, usize)>,
    /// The types of its output columns, before anything is made of them.
    own_types: HashMap<usize, ExprType>,
}

impl Grouping {
    pub(super) fn new(groups: Vec<BoundExpr>, aggregates: usize, scope: &Scope) -> Self {
        // A merged column of USING stands for one of a side's and is named by both.
        let of_tables = scope.items.iter().filter(|item| item.is_table).flat_map(|item| &item.columns);
        let table_columns = of_tables.filter_map(|column| Some((column.index, *column.uses.first()?))).collect();
        let own = scope.columns().filter(|column| column.merged.is_none());
        let own_types = own.filter_map(|column| Some((column.index, column.expr_type?))).collect();
        Self { groups, aggregates, table_columns, own_types }
    }

    /// Adds the columns of `expr` that stand ungrouped but are determined by a grouped primary key: one value per group,
    /// so grouping by them too changes nothing.
    pub(super) fn add_dependent_columns(&mut self, binder: &Binder<'_>, expr: &BoundExpr) -> Bound<()> {
        if self.position(expr).is_some() {
            return Ok(());
        }
        if let BoundExpr::Column { index, expr_type } = expr
            && is_own_column(*index)
        {
            if !self.is_determined(binder, *index) {
                return Err(UpstreamReason::UnknownColumn("column must appear in GROUP BY".into()));
            }
            self.groups.push(BoundExpr::Column { index: *index, expr_type: *expr_type });
        }
        children(expr).into_iter().try_for_each(|child| self.add_dependent_columns(binder, child))
    }

    /// check_functional_grouping.
    fn is_determined(&self, binder: &Binder<'_>, index: usize) -> bool {
        let Some((table_use, _)) = self.table_columns.get(&index) else { return false };
        let table = binder.tables.get(*table_use).and_then(|used| binder.catalog.tables.get(&used.table));
        // A key of the table that is named says nothing of the rows that it has from others.
        let Some(table) = table.filter(|table| !binder.catalog.heirs.contains_key(&table.id)) else { return false };
        let is_grouped = |key: &usize| {
            self.groups.iter().any(|group| match group {
                // Seen as of another type it is no column (pg_constraint.c, check_functional_grouping).
                BoundExpr::Column { index, expr_type } => {
                    self.table_columns.get(index) == Some(&(*table_use, *key))
                        && self.own_types.get(index) == Some(expr_type)
                }
                _ => false,
            })
        };
        !table.primary_key.is_empty() && table.primary_key.iter().all(is_grouped)
    }

    pub(super) fn is_group(&self, expr: &BoundExpr) -> bool {
        self.position(expr).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// With what the first groups, whose subqueries have been answered below, are computed from.
    pub(super) fn with_definitions(mut self, expressions: Vec<BoundExpr>) -> Self {
        self.groups.splice(..expressions.len(), expressions);
        self
    }

    fn position(&self, expr: &BoundExpr) -> Option<usize> {
        self.groups.iter().position(|group| is_same(group, expr) || self.is_relabelled(group, expr))
    }

    /// Whether it is a column that is grouped by, seen as of another type or under another collation (a RelabelType or CollateExpr
    /// around the Var, which is what check_ungrouped_columns looks for).
    fn is_relabelled(&self, group: &BoundExpr, expr: &BoundExpr) -> bool {
        match (group, expr) {
            (BoundExpr::Column { index, expr_type }, BoundExpr::Column { index: other, .. }) => {
                index == other && self.own_types.get(index) == Some(expr_type)
            }
            _ => false,
        }
    }

    /// Makes `expr` one over the aggregate's output.
    pub(super) fn rewrite(&self, expr: &mut BoundExpr) -> Bound<()> {
        if let Some(position) = self.position(expr) {
            *expr = BoundExpr::Column { index: position, expr_type: expr.expr_type() };
            return Ok(());
        }
        if let BoundExpr::Column { index, expr_type } = expr {
            let expr_type: ExprType = *expr_type;
            if *index >= WINDOW_BASE && !(GROUPING_BASE..RIGHT_BASE).contains(index) {
                // Another level's, or what gets its place later.
                return Ok(());
            }
            if let Some(question) = index.checked_sub(GROUPING_BASE) {
                *index = self.groups.len() + self.aggregates + question;
                return Ok(());
            }
            let Some(aggregate) = index.checked_sub(AGGREGATE_BASE) else {
                return Err(UpstreamReason::UnknownColumn("column must appear in GROUP BY".into()));
            };
            *expr = BoundExpr::Column { index: self.groups.len() + aggregate, expr_type };
            return Ok(());
        }
        children_mut(expr).into_iter().try_for_each(|child| self.rewrite(child))
    }

    /// The columns of this level that a subquery refers to, like columns that stand ungrouped.
    pub(super) fn add_subquery(&mut self, binder: &Binder<'_>, subquery: &mut Subquery) -> Bound<()> {
        let mut columns = Vec::new();
        let level = subquery.level;
        subquery.relation.for_each_expression(&mut |expr| collect_outer(expr, level, &mut columns));
        if let Asked::In(test) = &subquery.kind {
            self.add_dependent_columns(binder, test)?;
        }
        columns.iter().try_for_each(|column| self.add_dependent_columns(binder, column))
    }

    /// Makes the subquery one over the grouped rows. Only plain columns can be meant there.
    pub(super) fn rewrite_subquery(&self, subquery: &mut Subquery) -> Bound<()> {
        if let Asked::In(test) = &mut subquery.kind {
            self.rewrite(test)?;
        }
        let level = subquery.level;
        let mut outcome = Ok(());
        subquery.relation.for_each_expression(&mut |expr| {
            if outcome.is_ok() {
                outcome = self.rewrite_outer(expr, level);
            }
        });
        outcome
    }

    fn rewrite_outer(&self, expr: &mut BoundExpr, level: usize) -> Bound<()> {
        if let BoundExpr::Column { index, expr_type } = expr
            && let Some((of, column)) = as_outer(*index)
            && of == level
        {
            let column = BoundExpr::Column { index: column, expr_type: *expr_type };
            let position = self.position(&column).ok_or_else(|| {
                UpstreamReason::UnknownColumn("subquery uses ungrouped column from outer query".into())
            })?;
            *index = outer_index(level, position);
            return Ok(());
        }
        children_mut(expr).into_iter().try_for_each(|child| self.rewrite_outer(child, level))
    }

    /// Without grouping sets.
    pub(super) fn relation(self, input: BoundRelation, aggregates: Vec<AggregateCall>) -> BoundRelation {
        BoundRelation::Aggregate { input: Box::new(input), groups: self.groups, aggregates }
    }

    /// One aggregation for each set of positions in the groups, each over the same rows. Output: all groups, NULL where a set
    /// has not got them, the aggregates, and the answers to GROUPING().
    pub(super) fn relation_of_sets(
        self,
        input: &BoundRelation,
        aggregates: &[AggregateCall],
        sets: &[Vec<usize>],
        questions: &[Vec<BoundExpr>],
    ) -> Bound<BoundRelation> {
        let int4 = ExprType { pg_type: PgType::Int4, typmod: -1, collation: Collation::None };
        let mut columns: Vec<ExprType> = self.groups.iter().map(BoundExpr::expr_type).collect();
        columns.extend(aggregates.iter().map(|call| call.expr_type));
        columns.extend(questions.iter().map(|_| int4));
        let mut inputs = Vec::with_capacity(sets.len());
        for set in sets {
            let groups: Vec<BoundExpr> = set.iter().map(|group| self.groups[*group].clone()).collect();
            let group_count = groups.len();
            let aggregate =
                BoundRelation::Aggregate { input: Box::new(input.clone()), groups, aggregates: aggregates.to_vec() };
            let mut expressions = Vec::with_capacity(columns.len());
            for (group, expr) in self.groups.iter().enumerate() {
                let expr_type = expr.expr_type();
                expressions.push(match set.iter().position(|of| *of == group) {
                    Some(index) => BoundExpr::Column { index, expr_type },
                    None => BoundExpr::Literal { value: Value::Null, expr_type },
                });
            }
            for (index, call) in aggregates.iter().enumerate() {
                expressions.push(BoundExpr::Column { index: group_count + index, expr_type: call.expr_type });
            }
            for question in questions {
                let mut bits = 0;
                for item in question {
                    let group = self.position(item).ok_or_else(|| {
                        UpstreamReason::UnknownColumn("arguments to GROUPING must be grouping expressions".into())
                    })?;
                    bits = bits << 1 | i32::from(!set.contains(&group));
                }
                expressions.push(BoundExpr::Literal { value: Value::Int4(bits), expr_type: int4 });
            }
            inputs.push(BoundRelation::Project { input: Box::new(aggregate), expressions });
        }
        Ok(BoundRelation::Append { inputs, columns })
    }
}

fn collect_outer(expr: &BoundExpr, level: usize, columns: &mut Vec<BoundExpr>) {
    if let BoundExpr::Column { index, expr_type } = expr
        && let Some((of, column)) = as_outer(*index)
        && of == level
    {
        columns.push(BoundExpr::Column { index: column, expr_type: *expr_type });
    }
    children(expr).into_iter().for_each(|child| collect_outer(child, level, columns));
}

/// Whether an aggregate's result is part of it.
pub(super) fn has_aggregate(expr: &BoundExpr) -> bool {
    matches!(expr, BoundExpr::Column { index, .. } if (AGGREGATE_BASE..WINDOW_BASE).contains(index))
        || children(expr).into_iter().any(has_aggregate)
}
