//! The FROM clause: tables, subqueries, WITH queries and joins (transformFromClauseItem in parse_clause.c).

use std::sync::Arc;

use crate::binder::coerce::common_type;
use crate::binder::decorrelate::placeholder;
use crate::binder::expression::{Clause, Level};
use crate::binder::relation::{as_outer, is_own_column, map_columns, outer_index};
use crate::binder::rows::FunctionRows;
use crate::binder::scope::{Scope, ScopeColumn, ScopeItem, Whole};
use crate::binder::select::SelectedColumn;
use crate::binder::subquery::{Asked, check_gates};
use crate::binder::typed::{Origin, Typed};
use crate::binder::{Binder, Bound, BoundExpr, BoundRelation, ExprType, JoinKind, TableUse, unsupported};
use crate::catalog::functions::CastContext;
use crate::catalog::{RelationEntry, TableSchema, with_article};
use crate::reason::UpstreamReason;
use crate::statement::ast::{Alias, JoinCondition, JoinType, Query, TableRef};
use crate::types::Value;

/// The version of PostgreSQL since which a subquery in FROM needs no name, as `server_version_num` has it.
const ALIAS_NOT_REQUIRED: u32 = 160_000;

/// A FROM item with the names it brings; `width` is the number of its output columns.
pub(super) struct FromItem {
    pub(super) relation: BoundRelation,
    pub(super) width: usize,
    pub(super) scope: Scope,
}

impl Binder<'_> {
    /// The FROM clause of a query, which is a level of its own.
    pub(super) fn bind_from(&mut self, list: &[TableRef]) -> Bound<FromItem> {
        let outer = std::mem::take(&mut self.in_front);
        let found = self.comma_list(list);
        self.in_front = outer;
        found
    }

    /// Cross joins, whose conditions stand in WHERE.
    fn comma_list(&mut self, list: &[TableRef]) -> Bound<FromItem> {
        let mut items = list.iter();
        let Some(first) = items.next() else {
            return Ok(FromItem { relation: BoundRelation::OneRow, width: 0, scope: Scope::default() });
        };
        let mut left = self.table_ref(first)?;
        for table in items {
            left = match table {
                _ if is_lateral(table) => self.lateral_join(left, table, JoinKind::Cross, &JoinCondition::None)?,
                TableRef::Function { call, alias, is_numbered, .. } => {
                    match self.function_rows(call, *is_numbered, alias.as_ref(), Some(&left.scope))? {
                        FunctionRows::Own(right) => cross(left, right)?,
                        FunctionRows::PerRow(rows) => {
                            self.per_row(left, rows, JoinType::Cross, &JoinCondition::None)?
                        }
                    }
                }
                _ => {
                    let right = self.right_item(&left.scope, table)?;
                    cross(left, right)?
                }
            };
        }
        Ok(left)
    }

    /// What stands to the right of `left`. LATERAL within a JOIN sees that as well (parse_clause.c, transformFromClauseItem).
    fn right_item(&mut self, left: &Scope, table: &TableRef) -> Bound<FromItem> {
        match table {
            TableRef::Join { .. } => self.behind(left, |binder| binder.table_ref(table)),
            _ => self.table_ref(table),
        }
    }

    /// Binds what has the items of `left` in front.
    fn behind<T>(&mut self, left: &Scope, bind: impl FnOnce(&mut Self) -> Bound<T>) -> Bound<T> {
        let in_front = self.in_front.clone().joined(left.out_of_reach())?;
        let outer = std::mem::replace(&mut self.in_front, in_front);
        let bound = bind(self);
        self.in_front = outer;
        bound
    }

    fn table_ref(&mut self, table: &TableRef) -> Bound<FromItem> {
        let found = self.one_item(table)?;
        let is_unmarked = |item: &ScopeItem| item.mark.is_none() && item.whole == Whole::Record;
        match found.scope.items.as_slice() {
            [item] if self.marks_rows && is_unmarked(item) => Ok(marked(found)),
            _ => Ok(found),
        }
    }

    fn one_item(&mut self, table: &TableRef) -> Bound<FromItem> {
        match table {
            TableRef::Table { name, is_only, alias } => self.named_table(name, *is_only, alias.as_ref()),
            TableRef::Subquery { query, alias: Some(alias), .. } => {
                let selected = self.source(query)?;
                item(selected.relation, selected.columns, alias)
            }
            TableRef::Subquery { query, alias: None, .. } => self.nameless(query),
            TableRef::Function { call, alias, is_numbered, .. } => {
                match self.function_rows(call, *is_numbered, alias.as_ref(), None)? {
                    FunctionRows::Own(item) => Ok(item),
                    FunctionRows::PerRow(_) => Err(unsupported(format!("function {} in FROM", call.name))),
                }
            }
            TableRef::Join { kind, left, right, condition } => self.join(*kind, left, right, condition),
        }
    }

    /// A subquery in FROM that has no name, by which nothing refers to it (parse_clause.c, transformRangeSubselect).
    fn nameless(&mut self, query: &Query) -> Bound<FromItem> {
        if self.catalog.server_version < ALIAS_NOT_REQUIRED {
            return Err(unsupported("subquery in FROM without alias"));
        }
        let selected = self.source(query)?;
        let none = Alias { name: String::new(), columns: Vec::new() };
        let mut found = item(selected.relation, selected.columns, &none)?;
        found.scope.items.iter_mut().for_each(|item| item.name = None);
        Ok(found)
    }

    /// A WITH query of that name hides tables (scanNameSpaceForCTE).
    fn named_table(&mut self, name: &[String], is_only: bool, alias: Option<&Alias>) -> Bound<FromItem> {
        if let [name] = name
            && let Some((relation, columns)) = self.common(name)?
        {
            if is_only {
                return Err(unsupported("ONLY of a WITH query"));
            }
            let own = Alias { name: name.clone(), columns: Vec::new() };
            return item(relation, columns, alias.unwrap_or(&own));
        }
        let (schema, table_name) = match name {
            [name] => (None, name),
            [schema, name] => (Some(schema.as_str()), name),
            [database, schema, name] if *database == self.catalog.database => (Some(schema.as_str()), name),
            _ => return Err(unsupported("table of another database")),
        };
        let entry = self.catalog.relation(schema, table_name, self.context.search_path);
        match entry {
            Some(RelationEntry::Table(table)) => {
                let table = Arc::clone(table);
                match self.catalog.heirs.get(&table.id) {
                    Some(Err(kind)) if !is_only => {
                        Err(UpstreamReason::UnknownRelation(format!("{table_name} is {}", with_article(kind)).into()))
                    }
                    Some(Ok(heirs)) if !is_only => self.with_heirs(&table, heirs, alias),
                    _ if is_only && self.catalog.partitioned.contains_key(&table.id) => {
                        Err(unsupported("ONLY of a partitioned table"))
                    }
                    _ => self.table(&table, alias),
                }
            }
            Some(RelationEntry::View(_)) if is_only => Err(unsupported("ONLY of a view")),
            Some(RelationEntry::View(view)) => {
                let view = Arc::clone(view);
                self.view(&view, alias)
            }
            Some(RelationEntry::Materialized(_)) => Err(unsupported(format!("materialized view {table_name}"))),
            Some(RelationEntry::Other { kind, .. }) => {
                Err(UpstreamReason::UnknownRelation(format!("{table_name} is {}", with_article(kind)).into()))
            }
            None => Err(UpstreamReason::UnknownRelation(table_name.clone().into())),
        }
    }

    fn table(&mut self, table: &TableSchema, alias: Option<&Alias>) -> Bound<FromItem> {
        let (columns, mut item) = self.table_columns(table, &|_| true, alias)?;
        // Not just any that is NOT NULL: from PostgreSQL 18 on rows may be older than that.
        let mut key = table.primary_key.iter().map(|column| &item.columns[*column]);
        item.mark = key.find(|column| column.expr_type.is_some()).map(|column| Box::new(column.clone()));
        let scan = BoundRelation::Scan { table: table.id, columns };
        let relation = self.with_computed(table, &mut item, scan)?;
        Ok(FromItem { width: relation.width(), relation, scope: Scope { items: vec![item] } })
    }

    /// The columns that the engine holds, of those that `is_held` elsewhere as well, and the item that names all; the planner
    /// drops those that nobody reads.
    pub(super) fn table_columns(
        &mut self,
        table: &TableSchema,
        is_held: &dyn Fn(usize) -> bool,
        alias: Option<&Alias>,
    ) -> Bound<(Vec<usize>, ScopeItem)> {
        let table_use = self.tables.len();
        self.tables.push(TableUse { table: table.id, reader: self.reader.clone(), columns: Vec::new() });
        let mut scanned = Vec::new();
        let mut columns = Vec::new();
        for (index, column) in table.columns.iter().enumerate() {
            let pg_type = column.pg_type.filter(|_| is_held(index));
            let expr_type =
                pg_type.map(|pg_type| ExprType { pg_type, typmod: column.typmod, collation: column.collation });
            columns.push(ScopeColumn {
                name: Arc::clone(&column.name),
                index: scanned.len(),
                merged: None,
                expr_type,
                origin: Some(Origin { table: table.id, attnum: column.attnum }),
                is_constant: false,
                is_open: false,
                uses: vec![(table_use, index)],
            });
            if expr_type.is_some() {
                scanned.push(index);
            }
        }
        let name = alias.map_or_else(|| table.name.to_string(), |alias| alias.name.clone());
        let schema = alias.is_none().then(|| Arc::clone(&table.schema));
        let renamed = alias.map_or(&[][..], |alias| &alias.columns);
        rename(&mut columns, renamed)?;
        // Its row type has the table's own names.
        let whole = if renamed.is_empty() { Whole::Record } else { Whole::Unknown };
        let (columns_visible, is_table, mark) = (true, true, None);
        Ok((scanned, ScopeItem { name: Some(name), schema, columns_visible, is_table, whole, columns, mark }))
    }

    /// `left [LEFT | CROSS | INNER] JOIN LATERAL (...)`.
    fn lateral_join(
        &mut self,
        mut left: FromItem,
        right: &TableRef,
        kind: JoinKind,
        condition: &JoinCondition,
    ) -> Bound<FromItem> {
        let level = self.outer.len();
        self.outer.push(left.scope.clone().joined(self.in_front.clone())?);
        let right = self.table_ref(right)?;
        self.outer.pop();
        let (relation, width) = (right.relation, left.width);
        let mut scope = right.scope;
        scope.shift(width);
        if kind == JoinKind::Left {
            scope.may_be_missing();
        }
        left.scope = left.scope.joined(scope)?;
        let condition = match condition {
            JoinCondition::None => None,
            JoinCondition::On(expr) => {
                let mut on = Level::new(left.scope.clone(), Clause::JoinOn);
                let condition = self.condition(&mut on, expr)?;
                check_gates(&condition)?;
                if !on.subqueries.is_empty() {
                    return Err(unsupported("subquery in a condition of LATERAL"));
                }
                Some(condition).filter(|condition| !is_true(condition))
            }
            JoinCondition::Using(_) | JoinCondition::Natural => return Err(unsupported("USING with LATERAL")),
        };
        let relation = self.lateral(left.relation, relation, level, kind, condition)?;
        Ok(FromItem { width: relation.width(), relation, scope: left.scope })
    }

    fn join(
        &mut self,
        kind: JoinType,
        left: &TableRef,
        right: &TableRef,
        condition: &JoinCondition,
    ) -> Bound<FromItem> {
        let mut left = self.table_ref(left)?;
        if is_lateral(right) {
            let kind = match kind {
                JoinType::Inner => JoinKind::Inner,
                JoinType::Cross => JoinKind::Cross,
                JoinType::Left => JoinKind::Left,
                JoinType::Right | JoinType::Full => return Err(unsupported("RIGHT or FULL JOIN LATERAL")),
            };
            return self.lateral_join(left, right, kind, condition);
        }
        let mut right = match right {
            TableRef::Function { call, alias, is_numbered, .. } => {
                let (is_numbered, alias) = (*is_numbered, alias.as_ref());
                let rows = match kind {
                    JoinType::Inner | JoinType::Cross | JoinType::Left => {
                        self.function_rows(call, is_numbered, alias, Some(&left.scope))?
                    }
                    // It may not name the left side, which hides what is further out all the same.
                    JoinType::Right | JoinType::Full => {
                        self.behind(&left.scope, |binder| binder.function_rows(call, is_numbered, alias, None))?
                    }
                };
                match rows {
                    FunctionRows::Own(item) => item,
                    FunctionRows::PerRow(rows) => return self.per_row(left, rows, kind, condition),
                }
            }
            other => self.right_item(&left.scope, other)?,
        };
        let (left_items, left_width) = (left.scope.items.len(), left.width);
        let right_width = right.width;
        if matches!(kind, JoinType::Right | JoinType::Full) {
            left.scope.may_be_missing();
        }
        if matches!(kind, JoinType::Left | JoinType::Full) {
            right.scope.may_be_missing();
        }
        let mut joined = cross(left, right)?;
        let condition = match condition {
            JoinCondition::None => None,
            JoinCondition::On(expr) => {
                let mut level = Level::new(joined.scope, Clause::JoinOn);
                let condition = self.condition(&mut level, expr)?;
                check_gates(&condition)?;
                if !level.subqueries.is_empty() {
                    return self.joined_by_subqueries(kind, joined.relation, level, condition);
                }
                joined.scope = level.scope;
                Some(condition)
            }
            JoinCondition::Using(names) => Some(self.using(&mut joined.scope, left_items, names, kind)?),
            JoinCondition::Natural => {
                let names = common_names(&joined.scope, left_items)?;
                match names.is_empty() {
                    true => None,
                    false => Some(self.using(&mut joined.scope, left_items, &names, kind)?),
                }
            }
        };
        let BoundRelation::Join { left, right, .. } = joined.relation else { return Err(unsupported("join")) };
        let always = || BoundExpr::Literal { value: Value::Bool(true), expr_type: ExprType::BOOL };
        joined.relation = match (kind, condition) {
            (JoinType::Cross, _) | (JoinType::Inner, None) => {
                BoundRelation::Join { kind: JoinKind::Cross, left, right, condition: None }
            }
            (JoinType::Inner, condition) => BoundRelation::Join { kind: JoinKind::Inner, left, right, condition },
            (JoinType::Left, condition) => {
                let condition = Some(condition.unwrap_or_else(always));
                BoundRelation::Join { kind: JoinKind::Left, left, right, condition }
            }
            (JoinType::Full, condition) => {
                let condition = Some(condition.unwrap_or_else(always));
                BoundRelation::Join { kind: JoinKind::Full, left, right, condition }
            }
            // A left join with its sides exchanged.
            (JoinType::Right, condition) => {
                let mut condition = condition.unwrap_or_else(always);
                let turned = |index: usize| match index {
                    _ if !is_own_column(index) => index,
                    _ if index < left_width => index + right_width,
                    _ => index - left_width,
                };
                map_columns(&mut condition, &turned);
                let (left, right) = (right, left);
                let condition = Some(condition);
                let joined = BoundRelation::Join { kind: JoinKind::Left, left, right, condition };
                let order = (right_width..right_width + left_width).chain(0..right_width);
                let expressions = order.map(placeholder).collect();
                BoundRelation::Project { input: Box::new(joined), expressions }
            }
        };
        Ok(joined)
    }

    /// An inner join is its condition's filter over all pairs. A left join is one to what is left of the right side by the
    /// condition, for each row of the left: JOIN LATERAL.
    fn joined_by_subqueries(
        &mut self,
        kind: JoinType,
        pairs: BoundRelation,
        level: Level,
        condition: BoundExpr,
    ) -> Bound<FromItem> {
        if kind == JoinType::Left {
            return self.left_joined_by_subqueries(pairs, level, condition);
        }
        if kind != JoinType::Inner {
            return Err(unsupported("subquery in the condition of a RIGHT or FULL JOIN"));
        }
        let relation = self.filtered(pairs, &level, condition)?;
        Ok(FromItem { width: relation.width(), relation, scope: level.scope })
    }

    fn left_joined_by_subqueries(
        &mut self,
        pairs: BoundRelation,
        mut level: Level,
        mut condition: BoundExpr,
    ) -> Bound<FromItem> {
        let BoundRelation::Join { left, right, .. } = pairs else { return Err(unsupported("join")) };
        let (number, left_width, right_width) = (self.outer.len(), left.width(), right.width());
        let width = left_width + right_width;
        // To the right side, the left one's columns are those of a level further out.
        let own = |index: usize| match index {
            _ if index < left_width => outer_index(number, index),
            _ if index < width => index - left_width,
            _ => index,
        };
        // To the subqueries, each side is a level.
        let further_in = |index: usize| match as_outer(index) {
            Some((of, column)) if of == number && column >= left_width => outer_index(number + 1, column - left_width),
            _ => index,
        };
        map_columns(&mut condition, &own);
        for subquery in &mut level.subqueries {
            subquery.relation.for_each_expression(&mut |expr| map_columns(expr, &further_in));
            subquery.level = number + 1;
            if let Asked::In(test) = &mut subquery.kind {
                map_columns(test, &own);
            }
        }
        let right = self.filtered(*right, &level, condition)?;
        let expressions = (0..right_width).map(placeholder).collect();
        let right = BoundRelation::Project { input: Box::new(right), expressions };
        let relation = self.lateral(*left, right, number, JoinKind::Left, None)?;
        Ok(FromItem { width: relation.width(), relation, scope: level.scope })
    }

    /// Merges the named columns of both sides (buildMergedJoinVar). Then come the left side's other columns, then the
    /// right's.
    fn using(&mut self, scope: &mut Scope, left_items: usize, names: &[String], kind: JoinType) -> Bound<BoundExpr> {
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
            let (left_var, right_var) = (self.column_reference(&left_column)?, self.column_reference(&right_column)?);
            conditions.push(self.operator("=", Some(left_var.clone()), right_var.clone())?.expr);
            merged.push(self.merged(kind, name, (left_column, left_var), (right_column, right_var))?);
        }
        let others = scope.visible_columns().chain(right.visible_columns());
        merged.extend(
            others.filter(|column| !names.iter().any(|name| **name == *column.name)).cloned().collect::<Vec<_>>(),
        );
        scope.items.extend(right.items);
        for item in &mut scope.items {
            item.columns_visible = false;
        }
        scope.items.push(ScopeItem {
            name: None,
            schema: None,
            columns_visible: true,
            is_table: false,
            whole: Whole::Record,
            columns: merged,
            mark: None,
        });
        Ok(match conditions.len() {
            1 => conditions.remove(0),
            _ => BoundExpr::And(conditions),
        })
    }

    /// One side's column where it has the common type and no NULLs of its own making, else both.
    fn merged(
        &mut self,
        kind: JoinType,
        name: &str,
        (left, left_var): (ScopeColumn, Typed),
        (right, right_var): (ScopeColumn, Typed),
    ) -> Bound<ScopeColumn> {
        let common = common_type(&[left_var.pg_type(), right_var.pg_type()])
            .ok_or_else(|| UpstreamReason::UnknownFunction("no common type of USING columns".into()))?;
        let (a, b) = (left_var.expr_type.typmod, right_var.expr_type.typmod);
        let typmod = if a == b && left_var.pg_type() == right_var.pg_type() { a } else { -1 };
        if matches!(kind, JoinType::Inner | JoinType::Cross) {
            // A domain's column beside one of its base type is the one of another type: the other side's value is taken.
            self.kept_domains.push(common);
        }
        let uses: Vec<(usize, usize)> = left.uses.iter().chain(&right.uses).copied().collect();
        let is_same = |var: &Typed| var.pg_type() == common && var.expr_type.typmod == typmod;
        let whole = |column: ScopeColumn| ScopeColumn { name: name.into(), uses: uses.clone(), ..column };
        let prefers_left = match kind {
            JoinType::Inner | JoinType::Cross => is_same(&left_var) || !is_same(&right_var),
            JoinType::Left => true,
            JoinType::Right => false,
            JoinType::Full => {
                let (left, right) = (
                    self.coerce(left_var, common, CastContext::Implicit)?,
                    self.coerce(right_var, common, CastContext::Implicit)?,
                );
                let (collation, _) = self.input_collation(&[&left, &right], common)?;
                let expr_type = ExprType { pg_type: common, typmod, collation };
                let both = BoundExpr::Coalesce { arguments: vec![left.expr, right.expr], call: 0, expr_type };
                return Ok(ScopeColumn {
                    name: name.into(),
                    index: 0,
                    merged: Some(both),
                    expr_type: Some(expr_type),
                    origin: None,
                    is_constant: false,
                    is_open: false,
                    uses: uses.clone(),
                });
            }
        };
        let (column, var) = if prefers_left { (left, left_var) } else { (right, right_var) };
        if is_same(&var) {
            return Ok(whole(column));
        }
        let coerced = self.coerce(var, common, CastContext::Implicit)?;
        let expr_type = ExprType { typmod, ..coerced.expr_type };
        let coerced = coerced.relabelled(expr_type);
        let column = ScopeColumn { merged: Some(coerced.expr), expr_type: Some(expr_type), origin: None, ..column };
        Ok(whole(column))
    }
}

fn is_lateral(table: &TableRef) -> bool {
    match table {
        TableRef::Subquery { is_lateral, .. } => *is_lateral,
        // Whose arguments see what stands to the left anyway.
        TableRef::Function { .. } | TableRef::Table { .. } | TableRef::Join { .. } => false,
    }
}

pub(super) fn is_true(condition: &BoundExpr) -> bool {
    matches!(condition, BoundExpr::Literal { value: Value::Bool(true), .. })
}

/// NATURAL: the names that both sides have, in the left's order.
fn common_names(scope: &Scope, left_items: usize) -> Bound<Vec<String>> {
    let columns = |items: &[ScopeItem]| {
        let visible = items.iter().filter(|item| item.columns_visible).flat_map(|item| &item.columns);
        visible.map(|column| column.name.to_string()).collect::<Vec<_>>()
    };
    let (left, right) = (columns(&scope.items[..left_items]), columns(&scope.items[left_items..]));
    Ok(left.into_iter().filter(|name| right.contains(name)).collect())
}

/// A query's rows as a FROM item.
pub(super) fn item(relation: BoundRelation, columns: Vec<SelectedColumn>, alias: &Alias) -> Bound<FromItem> {
    let column = |(index, column): (usize, SelectedColumn)| ScopeColumn {
        name: column.name,
        index,
        merged: None,
        expr_type: column.unheld.is_none().then_some(column.expr_type),
        origin: column.origin,
        is_constant: column.is_constant,
        is_open: column.is_open,
        uses: Vec::new(),
    };
    let mut columns: Vec<ScopeColumn> = columns.into_iter().enumerate().map(column).collect();
    rename(&mut columns, &alias.columns)?;
    let width = relation.width();
    let item = ScopeItem {
        name: Some(alias.name.clone()),
        schema: None,
        columns_visible: true,
        is_table: false,
        whole: Whole::Record,
        columns,
        mark: None,
    };
    Ok(FromItem { relation, width, scope: Scope { items: vec![item] } })
}

/// With one more column, which is true in every row of it.
fn marked(found: FromItem) -> FromItem {
    let FromItem { relation, width, mut scope } = found;
    let column = |column: &ScopeColumn| column.expr_type.map(|expr_type| (column.index, expr_type));
    let held = scope.items.iter().flat_map(|item| &item.columns).filter_map(column);
    let mut types = vec![ExprType::BOOL; width];
    held.for_each(|(index, expr_type)| types[index] = expr_type);
    let mut expressions: Vec<BoundExpr> =
        types.into_iter().enumerate().map(|(index, expr_type)| BoundExpr::Column { index, expr_type }).collect();
    expressions.push(BoundExpr::Literal { value: Value::Bool(true), expr_type: ExprType::BOOL });
    let mark = ScopeColumn {
        name: "".into(),
        index: width,
        merged: None,
        expr_type: Some(ExprType::BOOL),
        origin: None,
        is_constant: false,
        is_open: false,
        uses: Vec::new(),
    };
    scope.items.iter_mut().for_each(|item| item.mark = Some(Box::new(mark.clone())));
    FromItem { relation: BoundRelation::Project { input: Box::new(relation), expressions }, width: width + 1, scope }
}

/// Left's columns, then right's.
fn cross(left: FromItem, right: FromItem) -> Bound<FromItem> {
    let mut right_scope = right.scope;
    right_scope.shift(left.width);
    let relation = BoundRelation::Join {
        kind: JoinKind::Cross,
        left: Box::new(left.relation),
        right: Box::new(right.relation),
        condition: None,
    };
    Ok(FromItem { relation, width: left.width + right.width, scope: left.scope.joined(right_scope)? })
}

/// An alias list renames the first columns; a longer one is an error.
pub(super) fn rename(columns: &mut [ScopeColumn], names: &[String]) -> Bound<()> {
    if names.len() > columns.len() {
        return Err(UpstreamReason::UnknownColumn("more column aliases than columns".into()));
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name = name.as_str().into();
    }
    Ok(())
}
