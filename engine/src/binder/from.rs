//! The FROM clause: tables, subqueries, WITH queries and joins (transformFromClauseItem in parse_clause.c).

use std::cell::Cell;
use std::sync::Arc;

use crate::binder::expression::{Clause, Level};
use crate::binder::scope::{Scope, ScopeColumn, ScopeItem};
use crate::binder::typed::Origin;
use crate::binder::{Binder, Bound, BoundRelation, ExprType, JoinKind, TableUse, unsupported};
use crate::catalog::{RelationEntry, TableSchema};
use crate::reason::UpstreamReason;
use crate::statement::ast::{Alias, CommonTable, Expr, JoinCondition, JoinType, Query, TableRef};

/// How often WITH queries may be put in place of their names; each may name others.
const WITH_REFERENCES_MAX: usize = 64;

/// The WITH queries in sight, innermost last.
pub(super) struct WithScope<'q> {
    pub(super) table: &'q CommonTable,
    pub(super) references: Cell<usize>,
    /// Those that the query itself may name, and what is in sight outside.
    pub(super) outer: Option<&'q Self>,
}

impl<'q> WithScope<'q> {
    fn find(scope: Option<&'q Self>, name: &str) -> Option<&'q Self> {
        let mut next = scope;
        while let Some(scope) = next {
            if scope.table.name == name {
                return Some(scope);
            }
            next = scope.outer;
        }
        None
    }
}

/// A FROM item with the names it brings; `width` is the number of its output columns.
pub(super) struct FromItem {
    pub(super) relation: BoundRelation,
    pub(super) width: usize,
    pub(super) scope: Scope,
}

impl Binder<'_> {
    /// The comma list: cross joins, whose conditions stand in WHERE.
    pub(super) fn bind_from(&mut self, list: &[TableRef], with: Option<&WithScope<'_>>) -> Bound<FromItem> {
        let mut items = list.iter();
        let Some(first) = items.next() else {
            return Ok(FromItem { relation: BoundRelation::OneRow, width: 0, scope: Scope::default() });
        };
        let mut left = self.table_ref(first, with)?;
        for table in items {
            let right = self.table_ref(table, with)?;
            left = cross(left, right)?;
        }
        Ok(left)
    }

    fn table_ref(&mut self, table: &TableRef, with: Option<&WithScope<'_>>) -> Bound<FromItem> {
        match table {
            TableRef::Table { name, alias } => self.named_table(name, alias.as_ref(), with),
            TableRef::Subquery { query, alias } => self.subquery(query, alias, &[], with),
            TableRef::Join { kind, left, right, condition } => self.join(*kind, left, right, condition, with),
        }
    }

    /// A WITH query of that name hides tables (scanNameSpaceForCTE).
    fn named_table(&mut self, name: &[String], alias: Option<&Alias>, with: Option<&WithScope<'_>>) -> Bound<FromItem> {
        if let [name] = name
            && let Some(found) = WithScope::find(with, name)
        {
            let references = found.references.get() + 1;
            found.references.set(references);
            // Evaluated once in PostgreSQL: a LIMIT without a total order may choose rows only once.
            if references > 1 && chooses_rows(&found.table.query) {
                return Err(unsupported("WITH query with LIMIT used more than once"));
            }
            self.spend(super::NODES_MAX / WITH_REFERENCES_MAX)?;
            let own = Alias { name: name.clone(), columns: Vec::new() };
            return self.subquery(&found.table.query, alias.unwrap_or(&own), &found.table.columns, found.outer);
        }
        let (schema, table_name) = match name {
            [name] => (None, name),
            [schema, name] => (Some(schema.as_str()), name),
            _ => return Err(unsupported("database-qualified name")),
        };
        let entry = self.catalog.relation(schema, table_name, self.context.search_path);
        match entry {
            Some(RelationEntry::Table(table)) => {
                let table = Arc::clone(table);
                self.table(&table, alias)
            }
            Some(RelationEntry::Other { kind, .. }) => {
                Err(UpstreamReason::UnknownRelation(format!("{table_name} is a {kind}").into()))
            }
            None => Err(UpstreamReason::UnknownRelation(table_name.clone().into())),
        }
    }

    /// Scans the columns that the engine holds; the planner drops those that nobody reads.
    fn table(&mut self, table: &TableSchema, alias: Option<&Alias>) -> Bound<FromItem> {
        let table_use = self.tables.len();
        self.tables.push(TableUse { table: table.id, columns: Vec::new() });
        let mut scanned = Vec::new();
        let mut columns = Vec::new();
        for (index, column) in table.columns.iter().enumerate() {
            let expr_type =
                column.pg_type.map(|pg_type| ExprType { pg_type, typmod: column.typmod, collation: column.collation });
            columns.push(ScopeColumn {
                name: Arc::clone(&column.name),
                index: scanned.len(),
                expr_type,
                origin: Some(Origin { table: table.id, attnum: column.attnum }),
                uses: vec![(table_use, index)],
            });
            if expr_type.is_some() {
                scanned.push(index);
            }
        }
        let name = alias.map_or_else(|| table.name.to_string(), |alias| alias.name.clone());
        let schema = alias.is_none().then(|| Arc::clone(&table.schema));
        rename(&mut columns, alias.map_or(&[], |alias| &alias.columns))?;
        let width = scanned.len();
        let item = ScopeItem { name: Some(name), schema, columns_visible: true, columns };
        let relation = BoundRelation::Scan { table: table.id, columns: scanned };
        Ok(FromItem { relation, width, scope: Scope { items: vec![item] } })
    }

    /// `inner_names` are those that WITH gives; the alias may rename once more.
    fn subquery(
        &mut self,
        query: &Query,
        alias: &Alias,
        inner_names: &[String],
        with: Option<&WithScope<'_>>,
    ) -> Bound<FromItem> {
        let selected = self.query(query, with)?;
        let column = |(index, column): (usize, super::select::SelectedColumn)| ScopeColumn {
            name: column.name,
            index,
            expr_type: Some(column.expr_type),
            origin: column.origin,
            uses: Vec::new(),
        };
        let mut columns: Vec<ScopeColumn> = selected.columns.into_iter().enumerate().map(column).collect();
        rename(&mut columns, inner_names)?;
        rename(&mut columns, &alias.columns)?;
        let width = columns.len();
        let item = ScopeItem { name: Some(alias.name.clone()), schema: None, columns_visible: true, columns };
        Ok(FromItem { relation: selected.relation, width, scope: Scope { items: vec![item] } })
    }

    fn join(
        &mut self,
        kind: JoinType,
        left: &TableRef,
        right: &TableRef,
        condition: &JoinCondition,
        with: Option<&WithScope<'_>>,
    ) -> Bound<FromItem> {
        let left = self.table_ref(left, with)?;
        let left_items = left.scope.items.len();
        let right = self.table_ref(right, with)?;
        let mut joined = cross(left, right)?;
        let BoundRelation::Join { kind: joined_kind, condition: joined_condition, .. } = &mut joined.relation else {
            return Ok(joined);
        };
        *joined_kind = match kind {
            JoinType::Inner => JoinKind::Inner,
            JoinType::Left => JoinKind::Left,
            JoinType::Cross => JoinKind::Cross,
        };
        *joined_condition = match condition {
            JoinCondition::None => None,
            JoinCondition::On(expr) => {
                let mut level = Level::new(joined.scope, Clause::JoinOn);
                let condition = self.condition(&mut level, expr)?;
                joined.scope = level.scope;
                Some(condition)
            }
            JoinCondition::Using(names) => Some(self.using(&mut joined.scope, left_items, names)?),
        };
        Ok(joined)
    }

    /// Merges the named columns of both sides: the left one stands for both (buildMergedJoinVar; with equal types it is
    /// the merged column of an inner and of a left join). Then come the left side's other columns, then the right's.
    fn using(&mut self, scope: &mut Scope, left_items: usize, names: &[String]) -> Bound<super::BoundExpr> {
        let right = Scope { items: scope.items.split_off(left_items) };
        let mut conditions = Vec::new();
        let mut merged = Vec::new();
        for (position, name) in names.iter().enumerate() {
            let missing = || UpstreamReason::UnknownColumn(format!("{name} in USING").into());
            if names[..position].contains(name) {
                return Err(missing());
            }
            let left_column = scope.unqualified(name)?.ok_or_else(missing)?.clone();
            let right_column = right.unqualified(name)?.ok_or_else(missing)?.clone();
            if left_column.expr_type != right_column.expr_type {
                return Err(unsupported("USING columns of different types"));
            }
            let (left_var, right_var) = (self.column_reference(&left_column)?, self.column_reference(&right_column)?);
            conditions.push(self.operator("=", Some(left_var), right_var)?.expr);
            let mut column = left_column;
            column.uses.extend(right_column.uses);
            merged.push(column);
        }
        let others = scope.visible_columns().chain(right.visible_columns());
        merged.extend(
            others.filter(|column| !names.iter().any(|name| **name == *column.name)).cloned().collect::<Vec<_>>(),
        );
        scope.items.extend(right.items);
        for item in &mut scope.items {
            item.columns_visible = false;
        }
        scope.items.push(ScopeItem { name: None, schema: None, columns_visible: true, columns: merged });
        Ok(match conditions.len() {
            1 => conditions.remove(0),
            _ => super::BoundExpr::And(conditions),
        })
    }
}

/// Left's columns, then right's.
fn cross(left: FromItem, right: FromItem) -> Bound<FromItem> {
    let mut right_scope = right.scope;
    for column in right_scope.items.iter_mut().flat_map(|item| &mut item.columns) {
        column.index += left.width;
    }
    let relation = BoundRelation::Join {
        kind: JoinKind::Cross,
        left: Box::new(left.relation),
        right: Box::new(right.relation),
        condition: None,
    };
    Ok(FromItem { relation, width: left.width + right.width, scope: left.scope.joined(right_scope)? })
}

/// An alias list renames the first columns; a longer one is an error.
fn rename(columns: &mut [ScopeColumn], names: &[String]) -> Bound<()> {
    if names.len() > columns.len() {
        return Err(UpstreamReason::UnknownColumn("more column aliases than columns".into()));
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name = name.as_str().into();
    }
    Ok(())
}

/// Whether a LIMIT anywhere in it may leave PostgreSQL a choice of rows.
fn chooses_rows(query: &Query) -> bool {
    fn in_table(table: &TableRef) -> bool {
        match table {
            TableRef::Table { .. } => false,
            TableRef::Subquery { query, .. } => chooses_rows(query),
            TableRef::Join { left, right, .. } => in_table(left) || in_table(right),
        }
    }
    let is_limited = |count: &Option<Expr>| count.is_some();
    is_limited(&query.limit)
        || is_limited(&query.offset)
        || query.from.iter().any(in_table)
        || query.with.iter().any(|table| chooses_rows(&table.query))
}
