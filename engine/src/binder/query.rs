//! A query expression: WITH, then SELECT, VALUES or a set operation, each with its ORDER BY and LIMIT.

use std::sync::Arc;

use crate::binder::coerce::{Needs, check_comparable};
use crate::binder::expression::{Clause, Level};
use crate::binder::folded::is_of_constants;
use crate::binder::scope::Scope;
use crate::binder::select::{Selected, SelectedColumn, position_of};
use crate::binder::typed::Typed;
use crate::binder::{Binder, Bound, BoundExpr, BoundRelation, SortKey, unsupported};
use crate::catalog::functions::CastContext;
use crate::reason::UpstreamReason;
use crate::statement::ast::{Body, Expr, OrderItem, Query};
use crate::types::{PgType, Value};

/// What becomes of output columns that are untyped literals (resolve_unknowns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknowns {
    BecomeText,
    /// A side of a set operation: the other side may type them.
    Stay,
}

impl Binder<'_> {
    /// All columns are held.
    pub(super) fn query(&mut self, query: &Query, unknowns: Unknowns) -> Bound<Selected> {
        self.any_query(query, unknowns)?.held()
    }

    /// As FROM, WITH and EXISTS read it: not every column may be wanted, nor be held.
    pub(super) fn source(&mut self, query: &Query) -> Bound<Selected> {
        self.any_query(query, Unknowns::BecomeText)
    }

    fn any_query(&mut self, query: &Query, unknowns: Unknowns) -> Bound<Selected> {
        self.spend(1)?;
        let before = self.enter_with(query)?;
        let selected = match &query.body {
            Body::Select(select) => self.select(query, select, unknowns)?,
            Body::Values(rows) => {
                let values = self.values(rows)?;
                self.arranged(values, query)?
            }
            Body::Set { operation, is_all, left, right } => {
                let combined = self.set_operation(*operation, *is_all, left, right)?;
                self.arranged(combined, query)?
            }
        };
        self.with.truncate(before);
        Ok(selected)
    }

    /// transformValuesClause.
    fn values(&mut self, rows: &[Vec<Expr>]) -> Bound<Selected> {
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|row| row.len() != width) {
            return Err(unsupported("VALUES lists of different length"));
        }
        self.spend(rows.len() * width)?;
        let mut level = Level::new(Scope::default(), Clause::Values);
        let mut columns: Vec<Vec<Typed>> = vec![Vec::with_capacity(rows.len()); width];
        for row in rows {
            for (column, expr) in columns.iter_mut().zip(row) {
                column.push(self.expression(&mut level, expr)?);
            }
        }
        if !level.subqueries.is_empty() {
            return Err(unsupported("correlated subquery in VALUES"));
        }
        let mut cells: Vec<Vec<BoundExpr>> = vec![Vec::with_capacity(width); rows.len()];
        let mut described = Vec::with_capacity(width);
        for (position, column) in columns.into_iter().enumerate() {
            let (column, expr_type, _) = self.unify(column)?;
            let is_constant = column.iter().all(|cell| is_of_constants(&cell.expr, &level.scope)) && rows.len() == 1;
            for (cells, cell) in cells.iter_mut().zip(column) {
                cells.push(cell.expr);
            }
            let name: Arc<str> = format!("column{}", position + 1).into();
            described.push(SelectedColumn { is_constant, ..SelectedColumn::computed(name, expr_type) });
        }
        let columns = described.iter().map(|column| column.expr_type).collect();
        Ok(Selected { relation: BoundRelation::Values { rows: cells, columns }, columns: described })
    }

    /// ORDER BY, OFFSET and LIMIT over a set operation or VALUES: only output columns can be named.
    pub(super) fn arranged(&mut self, selected: Selected, query: &Query) -> Bound<Selected> {
        let Selected { mut relation, columns } = selected;
        let mut keys: Vec<SortKey> = Vec::new();
        for item in &query.order_by {
            let index = output_column(&columns, item)?;
            let expr_type = columns[index].expr_type;
            check_comparable(expr_type, Needs::Order, "ORDER BY")?;
            keys.push(SortKey {
                expr: BoundExpr::Column { index, expr_type },
                descending: item.descending,
                nulls_first: item.nulls_first.unwrap_or(item.descending),
            });
        }
        if !keys.is_empty() {
            relation = BoundRelation::Sort { input: Box::new(relation), keys };
        }
        Ok(Selected { relation: self.row_limits(query)?.put_over(relation), columns })
    }

    /// OFFSET and LIMIT of the query.
    pub(super) fn row_limits(&mut self, query: &Query) -> Bound<RowLimits> {
        let offset = self.count(query.offset.as_ref())?;
        let limit = self.count(query.limit.as_ref())?;
        // Without a last row nothing is tied to it (nodeLimit.c, noCount).
        let with_ties = query.with_ties && limit.is_some();
        // A subquery with any such clause is computed by itself (allpaths.c, subquery_is_pushdown_safe).
        let is_fence = limit.is_none() && offset.is_none() && (query.limit.is_some() || query.offset.is_some());
        let offset = if is_fence { Some(BoundExpr::NO_OFFSET) } else { offset };
        Ok(RowLimits { limit, offset, with_ties })
    }

    /// transformLimitClause. None: no limit.
    fn count(&mut self, expr: Option<&Expr>) -> Bound<Option<BoundExpr>> {
        let Some(expr) = expr else { return Ok(None) };
        let mut level = Level::new(Scope::default(), Clause::Limit);
        let typed = self.expression(&mut level, expr)?;
        // The usual constant is widened here, so that the planner sees the number.
        let count = match typed.expr {
            BoundExpr::Literal { value: Value::Int4(count), .. } => {
                let (expr_type, _) = self.plain_type(PgType::Int8)?;
                BoundExpr::Literal { value: Value::Int8(count.into()), expr_type }
            }
            _ => self.coerce(typed, PgType::Int8, CastContext::Assignment)?.expr,
        };
        match &count {
            BoundExpr::Literal { value: Value::Null, .. } => Ok(None),
            BoundExpr::Literal { value: Value::Int8(..0), .. } => {
                Err(UpstreamReason::LocalError("LIMIT or OFFSET must not be negative".into()))
            }
            _ => Ok(Some(count)),
        }
    }
}

/// Which rows of an order are wanted.
#[derive(Debug)]
pub(super) struct RowLimits {
    pub(super) limit: Option<BoundExpr>,
    pub(super) offset: Option<BoundExpr>,
    pub(super) with_ties: bool,
}

impl RowLimits {
    pub(super) fn put_over(self, relation: BoundRelation) -> BoundRelation {
        let Self { limit, offset, with_ties } = self;
        if limit.is_none() && offset.is_none() {
            return relation;
        }
        BoundRelation::Limit { input: Box::new(relation), limit, offset, with_ties }
    }
}

fn output_column(columns: &[SelectedColumn], item: &OrderItem) -> Bound<usize> {
    match &item.expr {
        Expr::Column(names) if names.len() == 1 => {
            let mut found = columns.iter().enumerate().filter(|(_, column)| *column.name == *names[0]);
            match (found.next(), found.next()) {
                (Some((index, _)), None) => Ok(index),
                _ => Err(UpstreamReason::UnknownColumn(names[0].clone().into())),
            }
        }
        Expr::Number(digits) => position_of(columns.len(), digits),
        _ => Err(unsupported("expression in ORDER BY of a set operation")),
    }
}
