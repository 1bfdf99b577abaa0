//! One SELECT: targets, WHERE, grouping, ORDER BY, DISTINCT, LIMIT (transformSelectStmt, findTargetlistEntry).

use std::cell::Cell;
use std::sync::Arc;

use crate::binder::coerce::{Needs, check_comparable, check_groupable};
use crate::binder::expression::{Clause, Level};
use crate::binder::from::WithScope;
use crate::binder::grouping::{Grouping, has_aggregate};
use crate::binder::output_name::output_name;
use crate::binder::scope::Scope;
use crate::binder::typed::{Origin, Typed, is_same};
use crate::binder::{Binder, Bound, BoundExpr, BoundRelation, ExprType, OutputColumn, SortKey, unsupported};
use crate::catalog::functions::CastContext;
use crate::reason::UpstreamReason;
use crate::statement::ast::{CommonTable, Expr, OrderItem, Quantifier, Query, Target};
use crate::types::{PgType, Value};

/// WITH queries in one list: bounds the recursion that puts them in sight.
const WITH_QUERIES_MAX: usize = 64;

/// A bound query: its relation puts out exactly `columns`.
pub(super) struct Selected {
    pub(super) relation: BoundRelation,
    pub(super) columns: Vec<SelectedColumn>,
}

pub(super) struct SelectedColumn {
    pub(super) name: Arc<str>,
    pub(super) expr_type: ExprType,
    pub(super) origin: Option<Origin>,
}

impl SelectedColumn {
    pub(super) fn into_output(self) -> OutputColumn {
        let (table_oid, attnum) = self.origin.map_or((0, 0), |origin| (origin.table.0, origin.attnum));
        OutputColumn { name: self.name, table_oid, attnum, expr_type: self.expr_type }
    }
}

/// A target list entry; junk ones serve ORDER BY or GROUP BY only.
struct Entry {
    typed: Typed,
    name: Arc<str>,
    is_junk: bool,
}

/// An ORDER BY item, by target.
struct Order {
    target: usize,
    descending: bool,
    nulls_first: bool,
}

impl Binder<'_> {
    pub(super) fn query(&mut self, query: &Query, with: Option<&WithScope<'_>>) -> Bound<Selected> {
        self.spend(1)?;
        if query.with.len() > WITH_QUERIES_MAX {
            return Err(unsupported("too many WITH queries"));
        }
        for (position, table) in query.with.iter().enumerate() {
            if query.with[..position].iter().any(|earlier| earlier.name == table.name) {
                return Err(UpstreamReason::UnknownRelation("WITH query name specified more than once".into()));
            }
        }
        self.with_tables(&query.with, query, with)
    }

    /// Puts the WITH queries in sight, one by one: each sees those before it.
    fn with_tables(&mut self, pending: &[CommonTable], query: &Query, with: Option<&WithScope<'_>>) -> Bound<Selected> {
        let Some((table, rest)) = pending.split_first() else { return self.select(query, with) };
        let scope = WithScope { table, references: Cell::new(0), outer: with };
        let selected = self.with_tables(rest, query, Some(&scope))?;
        // PostgreSQL analyses it all the same, and may find an error.
        if scope.references.get() == 0 { Err(unsupported("WITH query that is not used")) } else { Ok(selected) }
    }

    fn select(&mut self, query: &Query, with: Option<&WithScope<'_>>) -> Bound<Selected> {
        let from = self.bind_from(&query.from, with)?;
        let mut level = Level::new(from.scope, Clause::Target);
        // The order is transformSelectStmt's: the first context decides a parameter's type.
        let mut targets = self.targets(&mut level, &query.targets)?;
        level.clause = Clause::Where;
        let filter = query.filter.as_ref().map(|filter| self.condition(&mut level, filter)).transpose()?;
        level.clause = Clause::Having;
        let having = query.having.as_ref().map(|having| self.condition(&mut level, having)).transpose()?;
        let order = self.order_by(&mut level, &mut targets, &query.order_by)?;
        let groups = self.group_by(&mut level, &mut targets, &query.group_by)?;
        let offset = self.count(query.offset.as_ref())?;
        let limit = self.count(query.limit.as_ref())?;
        for target in &mut targets {
            self.resolve_unknown(&mut target.typed)?;
        }
        let mut relation = filtered(from.relation, filter);
        if !groups.is_empty() || !level.aggregates.is_empty() || having.is_some() {
            relation = self.grouped(relation, level, groups, having, &mut targets)?;
        }
        let relation = finished(relation, query.quantifier, &targets, order, limit, offset)?;
        let columns = targets.into_iter().filter(|target| !target.is_junk).map(|target| SelectedColumn {
            name: target.name,
            expr_type: target.typed.expr_type,
            origin: target.typed.origin,
        });
        Ok(Selected { relation, columns: columns.collect() })
    }

    /// transformTargetList.
    fn targets(&mut self, level: &mut Level, list: &[Target]) -> Bound<Vec<Entry>> {
        let mut targets = Vec::new();
        for target in list {
            match target {
                Target::Expr { expr, label } => {
                    let typed = self.expression(level, expr)?;
                    let name = label.as_deref().unwrap_or_else(|| output_name(expr)).into();
                    targets.push(Entry { typed, name, is_junk: false });
                }
                Target::Star(qualifier) => self.star(&level.scope, qualifier, &mut targets)?,
            }
        }
        Ok(targets)
    }

    fn star(&mut self, scope: &Scope, qualifier: &[String], targets: &mut Vec<Entry>) -> Bound<()> {
        let columns: Vec<_> = if qualifier.is_empty() {
            scope.visible_columns().cloned().collect()
        } else {
            scope.item(qualifier)?.columns.clone()
        };
        if columns.is_empty() {
            return Err(unsupported("* without columns"));
        }
        for column in columns {
            let typed = self.column_reference(&column)?;
            targets.push(Entry { typed, name: column.name, is_junk: false });
        }
        Ok(())
    }

    /// A column of unknown type becomes text (resolveTargetListUnknowns, addTargetToSortList).
    fn resolve_unknown(&mut self, typed: &mut Typed) -> Bound<()> {
        if typed.is_unknown() {
            *typed = self.coerce(typed.clone(), PgType::Text, CastContext::Implicit)?;
        }
        Ok(())
    }

    fn order_by(&mut self, level: &mut Level, targets: &mut Vec<Entry>, items: &[OrderItem]) -> Bound<Vec<Order>> {
        level.clause = Clause::OrderBy;
        let mut order: Vec<Order> = Vec::new();
        for item in items {
            let target = self.target_of(level, targets, &item.expr)?;
            self.resolve_unknown(&mut targets[target].typed)?;
            check_comparable(targets[target].typed.expr_type, Needs::Order, "ORDER BY")?;
            // A repeated key decides nothing (addTargetToSortList drops it).
            if !order.iter().any(|earlier| earlier.target == target) {
                let nulls_first = item.nulls_first.unwrap_or(item.descending);
                order.push(Order { target, descending: item.descending, nulls_first });
            }
        }
        Ok(order)
    }

    fn group_by(&mut self, level: &mut Level, targets: &mut Vec<Entry>, items: &[Expr]) -> Bound<Vec<BoundExpr>> {
        level.clause = Clause::GroupBy;
        let mut groups: Vec<BoundExpr> = Vec::new();
        for item in items {
            let target = self.target_of(level, targets, item)?;
            self.resolve_unknown(&mut targets[target].typed)?;
            let typed = &targets[target].typed;
            if has_aggregate(&typed.expr) {
                return Err(unsupported("aggregate in GROUP BY"));
            }
            check_groupable(typed.expr_type, "GROUP BY")?;
            if !groups.iter().any(|earlier| is_same(earlier, &typed.expr)) {
                groups.push(typed.expr.clone());
            }
        }
        Ok(groups)
    }

    /// findTargetlistEntrySQL92, then ...SQL99: an output name, a position, or an expression, which may be added.
    fn target_of(&mut self, level: &mut Level, targets: &mut Vec<Entry>, expr: &Expr) -> Bound<usize> {
        match expr {
            Expr::Column(names) if names.len() == 1 => {
                let name = &names[0];
                // GROUP BY prefers a column of FROM, ORDER BY an output name.
                let prefers_column = level.clause == Clause::GroupBy && level.scope.unqualified(name)?.is_some();
                if !prefers_column && let Some(found) = target_named(targets, name)? {
                    return Ok(found);
                }
            }
            Expr::Number(digits) => return position_of(targets, digits),
            Expr::String(_) | Expr::Null => return Err(unsupported("constant in ORDER BY or GROUP BY")),
            _ => {}
        }
        let typed = self.expression(level, expr)?;
        if let Some(found) = targets.iter().position(|target| is_same(&target.typed.expr, &typed.expr)) {
            return Ok(found);
        }
        targets.push(Entry { typed, name: "".into(), is_junk: true });
        Ok(targets.len() - 1)
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

    fn grouped(
        &mut self,
        relation: BoundRelation,
        level: Level,
        groups: Vec<BoundExpr>,
        mut having: Option<BoundExpr>,
        targets: &mut [Entry],
    ) -> Bound<BoundRelation> {
        let mut grouping = Grouping::new(groups, &level.scope);
        for expr in targets.iter().map(|target| &target.typed.expr).chain(&having) {
            grouping.add_dependent_columns(self, expr)?;
        }
        for expr in targets.iter_mut().map(|target| &mut target.typed.expr).chain(&mut having) {
            grouping.rewrite(expr)?;
        }
        Ok(filtered(grouping.relation(relation, level.aggregates), having))
    }
}

/// The output column of that name; two different ones are ambiguous.
fn target_named(targets: &[Entry], name: &str) -> Bound<Option<usize>> {
    let named = |target: &Entry| !target.is_junk && &*target.name == name;
    let Some(first) = targets.iter().position(named) else { return Ok(None) };
    let is_ambiguous = targets[first + 1..]
        .iter()
        .any(|target| named(target) && !is_same(&target.typed.expr, &targets[first].typed.expr));
    if is_ambiguous {
        return Err(UpstreamReason::UnknownColumn(format!("{name} is ambiguous").into()));
    }
    Ok(Some(first))
}

/// An integer constant counts the output columns from 1; another constant is an error.
fn position_of(targets: &[Entry], digits: &str) -> Bound<usize> {
    let outputs = targets.iter().filter(|target| !target.is_junk).count();
    match digits.parse::<usize>() {
        Ok(position) if (1..=outputs).contains(&position) => Ok(position - 1),
        _ => Err(UpstreamReason::UnknownColumn(format!("position {digits} is not in select list").into())),
    }
}

fn filtered(input: BoundRelation, predicate: Option<BoundExpr>) -> BoundRelation {
    match predicate {
        Some(predicate) => BoundRelation::Filter { input: Box::new(input), predicate },
        None => input,
    }
}

/// Projection, DISTINCT, ORDER BY and LIMIT over the rows that the targets are computed from. All targets are
/// computed before sorting, as PostgreSQL does, so that an error in any row is met.
fn finished(
    input: BoundRelation,
    quantifier: Quantifier,
    targets: &[Entry],
    order: Vec<Order>,
    limit: Option<BoundExpr>,
    offset: Option<BoundExpr>,
) -> Bound<BoundRelation> {
    // Junk that ORDER BY does not use served GROUP BY.
    let mut kept: Vec<usize> = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        if !target.is_junk || order.iter().any(|key| key.target == index) {
            kept.push(index);
        }
    }
    let expressions = kept.iter().map(|index| targets[*index].typed.expr.clone()).collect();
    let mut relation = BoundRelation::Project { input: Box::new(input), expressions };
    let outputs = targets.iter().filter(|target| !target.is_junk).count();
    if quantifier == Quantifier::Distinct {
        if kept.len() > outputs {
            return Err(UpstreamReason::UnknownColumn("ORDER BY of SELECT DISTINCT must be in the select list".into()));
        }
        for target in targets.iter().filter(|target| !target.is_junk) {
            check_groupable(target.typed.expr_type, "DISTINCT")?;
        }
        relation = BoundRelation::Distinct { input: Box::new(relation) };
    }
    let column = |index: usize, target: usize| BoundExpr::Column { index, expr_type: targets[target].typed.expr_type };
    if !order.is_empty() {
        let mut keys = Vec::with_capacity(order.len());
        for key in &order {
            let index = kept.iter().position(|index| *index == key.target).ok_or_else(|| unsupported("ORDER BY"))?;
            keys.push(SortKey {
                expr: column(index, key.target),
                descending: key.descending,
                nulls_first: key.nulls_first,
            });
        }
        relation = BoundRelation::Sort { input: Box::new(relation), keys };
    }
    if limit.is_some() || offset.is_some() {
        relation = BoundRelation::Limit { input: Box::new(relation), limit, offset };
    }
    if kept.len() > outputs {
        let expressions = kept[..outputs].iter().enumerate().map(|(index, target)| column(index, *target)).collect();
        relation = BoundRelation::Project { input: Box::new(relation), expressions };
    }
    Ok(relation)
}
