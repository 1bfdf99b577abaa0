//! Expressions over grouped rows: each part must be a group expression, an aggregate, or depend on a grouped primary key
//! (check_ungrouped_columns in parse_agg.c).

use std::collections::HashMap;

use crate::binder::expression::AGGREGATE_BASE;
use crate::binder::scope::Scope;
use crate::binder::typed::{children, children_mut, is_same};
use crate::binder::{AggregateCall, Binder, Bound, BoundExpr, BoundRelation, ExprType};
use crate::reason::UpstreamReason;

/// The grouped level: which column of the aggregate's output each expression is.
pub(super) struct Grouping {
    groups: Vec<BoundExpr>,
    /// Of the FROM clause's output columns that are table columns: table use and index in the table.
    table_columns: HashMap<usize, (usize, usize)>,
}

impl Grouping {
    pub(super) fn new(groups: Vec<BoundExpr>, scope: &Scope) -> Self {
        let table_columns = scope
            .items
            .iter()
            .flat_map(|item| &item.columns)
            .filter_map(|column| Some((column.index, *column.uses.first()?)))
            .collect();
        Self { groups, table_columns }
    }

    /// Adds the columns of `expr` that stand ungrouped but are determined by a grouped primary key: one value per group,
    /// so grouping by them too changes nothing.
    pub(super) fn add_dependent_columns(&mut self, binder: &Binder<'_>, expr: &BoundExpr) -> Bound<()> {
        if self.position(expr).is_some() {
            return Ok(());
        }
        if let BoundExpr::Column { index, expr_type } = expr
            && *index < AGGREGATE_BASE
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
        let Some(table) = table else { return false };
        let is_grouped = |key: &usize| {
            self.groups.iter().any(|group| match group {
                BoundExpr::Column { index, .. } => self.table_columns.get(index) == Some(&(*table_use, *key)),
                _ => false,
            })
        };
        !table.primary_key.is_empty() && table.primary_key.iter().all(is_grouped)
    }

    fn position(&self, expr: &BoundExpr) -> Option<usize> {
        self.groups.iter().position(|group| is_same(group, expr))
    }

    /// Makes `expr` one over the aggregate's output.
    pub(super) fn rewrite(&self, expr: &mut BoundExpr) -> Bound<()> {
        if let Some(position) = self.position(expr) {
            *expr = BoundExpr::Column { index: position, expr_type: expr.expr_type() };
            return Ok(());
        }
        if let BoundExpr::Column { index, expr_type } = expr {
            let expr_type: ExprType = *expr_type;
            let Some(aggregate) = index.checked_sub(AGGREGATE_BASE) else {
                return Err(UpstreamReason::UnknownColumn("column must appear in GROUP BY".into()));
            };
            *expr = BoundExpr::Column { index: self.groups.len() + aggregate, expr_type };
            return Ok(());
        }
        children_mut(expr).into_iter().try_for_each(|child| self.rewrite(child))
    }

    pub(super) fn relation(self, input: BoundRelation, aggregates: Vec<AggregateCall>) -> BoundRelation {
        BoundRelation::Aggregate { input: Box::new(input), groups: self.groups, aggregates }
    }
}

/// Whether an aggregate's result is part of it.
pub(super) fn has_aggregate(expr: &BoundExpr) -> bool {
    matches!(expr, BoundExpr::Column { index, .. } if *index >= AGGREGATE_BASE)
        || children(expr).into_iter().any(has_aggregate)
}
