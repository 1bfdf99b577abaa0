//! Functions in FROM (transformRangeFunction, addRangeTableEntryForFunction): rows of their own, or rows for each row of
//! what stands to the left, which their arguments may name with or without LATERAL.

use crate::binder::expression::{Clause, Level};
use crate::binder::from::{FromItem, item};
use crate::binder::relation::{any_column, has_outer, is_own_column};
use crate::binder::scope::{Scope, Whole};
use crate::binder::select::SelectedColumn;
use crate::binder::target_rows;
use crate::binder::typed::Typed;
use crate::binder::{Binder, Bound, BoundExpr, BoundRelation, ExprType, RowsCall, unsupported};
use crate::catalog::Collation;
use crate::catalog::functions::{CastContext, ROWS_FUNCTIONS, RowsFunction, SERIES, UNNEST};
use crate::statement::ast::{Alias, Call, CallSchema, JoinCondition, JoinType};
use crate::types::PgType;

/// What a function in FROM is.
pub(super) enum FunctionRows {
    /// The same rows whatever stands beside it.
    Own(FromItem),
    /// To be called for each row on the left.
    PerRow(PerRow),
}

pub(super) struct PerRow {
    functions: Vec<RowsCall>,
    is_numbered: bool,
    columns: Vec<SelectedColumn>,
    alias: Alias,
}

impl Binder<'_> {
    /// `left`: the names of what its arguments may mention, if anything.
    pub(super) fn function_rows(
        &mut self,
        call: &Call,
        is_numbered: bool,
        alias: Option<&Alias>,
        left: Option<&Scope>,
    ) -> Bound<FunctionRows> {
        self.check_execute(call)?;
        let is_plain = !call.is_star && !call.is_distinct && call.order_by.is_empty() && call.filter.is_none();
        let is_named = matches!(call.schema, CallSchema::Named(_));
        if !is_plain || is_named || !call.within_group.is_empty() || call.over.is_some() || self.is_contested(call) {
            return Err(unsupported(format!("function {} in FROM", call.name)));
        }
        let mut level = Level::new(left.cloned().unwrap_or_default(), Clause::From);
        let arguments = self.expressions(&mut level, &call.arguments)?;
        if !level.subqueries.is_empty() {
            return Err(unsupported("correlated subquery in a function in FROM"));
        }
        let functions = match call.name.as_str() {
            "generate_series" => vec![self.series(arguments)?],
            "unnest" if !arguments.is_empty() => {
                arguments.into_iter().map(|array| self.unnest(array)).collect::<Bound<Vec<_>>>()?
            }
            name => vec![self.rows_call(name, arguments)?],
        };
        let mut all = functions.iter().flat_map(|call| &call.arguments);
        let is_tied = all.clone().any(has_outer);
        // Those of the select list follow each other row by row, which nothing promises, but everybody is used to.
        let is_of_targets = alias.is_some_and(|alias| alias.name == target_rows::NAME);
        let is_beside_rows = left.is_some_and(|left| !left.items.is_empty());
        let is_per_row = (is_of_targets && is_beside_rows) || all.any(|argument| any_column(argument, &is_own_column));
        // What stands in front of a JOIN is not to be seen from within it, but hides what is further out.
        if !self.in_front.items.is_empty() && (is_per_row || is_tied || self.function.is_some()) {
            return Err(unsupported(format!("function {} in a JOIN behind a comma", call.name)));
        }
        let columns = self.columns_of(call, &functions, is_numbered, alias)?;
        let alias = alias.cloned().unwrap_or_else(|| Alias { name: call.name.clone(), columns: Vec::new() });
        let rows = PerRow { functions, is_numbered, columns, alias };
        if is_per_row {
            return Ok(FunctionRows::PerRow(rows));
        }
        let PerRow { mut functions, columns, alias, .. } = rows;
        let whole = if is_one_value(&functions, is_numbered) { Whole::Value } else { Whole::Unknown };
        let relation = match &mut functions[..] {
            [RowsCall { function, arguments, columns }]
                if std::ptr::eq(*function, &raw const SERIES) && !is_numbered && !is_tied =>
            {
                BoundRelation::Series { bounds: std::mem::take(arguments), expr_type: columns[0] }
            }
            _ => {
                let input = Box::new(BoundRelation::OneRow);
                BoundRelation::Expand { input, functions, is_numbered, keeps_empty: false }
            }
        };
        let mut own = item(relation, columns, &alias)?;
        own.scope.items[0].whole = whole;
        Ok(FunctionRows::Own(own))
    }

    /// Rows of the left beside the function's.
    pub(super) fn per_row(
        &mut self,
        mut left: FromItem,
        rows: PerRow,
        kind: JoinType,
        condition: &JoinCondition,
    ) -> Bound<FromItem> {
        let PerRow { functions, is_numbered, columns, alias } = rows;
        let whole = if is_one_value(&functions, is_numbered) { Whole::Value } else { Whole::Unknown };
        let mut own = item(BoundRelation::OneRow, columns, &alias)?;
        own.scope.items[0].whole = whole;
        own.scope.shift(left.width);
        left.scope = left.scope.joined(own.scope)?;
        let condition = match condition {
            JoinCondition::None => None,
            JoinCondition::On(expr) => {
                let mut on = Level::new(left.scope.clone(), Clause::JoinOn);
                let condition = self.condition(&mut on, expr)?;
                if !on.subqueries.is_empty() {
                    return Err(unsupported("subquery in a condition of LATERAL"));
                }
                Some(condition).filter(|condition| !super::from::is_true(condition))
            }
            JoinCondition::Using(_) | JoinCondition::Natural => return Err(unsupported("USING with LATERAL")),
        };
        let keeps_empty = kind == JoinType::Left;
        if keeps_empty && condition.is_some() {
            return Err(unsupported("LEFT JOIN LATERAL of a function with a condition"));
        }
        let input = Box::new(left.relation);
        let mut relation = BoundRelation::Expand { input, functions, is_numbered, keeps_empty };
        let width = relation.width();
        if let Some(predicate) = condition {
            relation = BoundRelation::Filter { input: Box::new(relation), predicate };
        }
        Ok(FromItem { relation, width, scope: left.scope })
    }

    /// chooseScalarFunctionAlias: the result's own name, else that of the alias if there is one function, else its name.
    fn columns_of(
        &mut self,
        call: &Call,
        functions: &[RowsCall],
        is_numbered: bool,
        alias: Option<&Alias>,
    ) -> Bound<Vec<SelectedColumn>> {
        let mut columns = Vec::new();
        for own in functions {
            let single = alias.filter(|_| functions.len() == 1).map_or(&call.name, |alias| &alias.name);
            for ((name, _), expr_type) in own.function.columns.iter().zip(&own.columns) {
                columns.push(SelectedColumn::computed(name.unwrap_or(single).into(), *expr_type));
            }
        }
        if is_numbered {
            columns.push(SelectedColumn::computed("ordinality".into(), self.plain_type(PgType::Int8)?.0));
        }
        Ok(columns)
    }

    fn rows_call(&mut self, name: &str, arguments: Vec<Typed>) -> Bound<RowsCall> {
        let fits = |function: &&RowsFunction| {
            let most = function.arguments.len();
            function.name == name && (most - function.optional..=most).contains(&arguments.len())
        };
        let function = ROWS_FUNCTIONS.iter().find(fits);
        let function = function.ok_or_else(|| unsupported(format!("function {name} in FROM")))?;
        let mut coerced = Vec::with_capacity(arguments.len());
        for (argument, to) in arguments.into_iter().zip(function.arguments) {
            let argument = self.coerce(argument, *to, CastContext::Implicit)?;
            // The rows have the database's.
            self.check_element_collation(argument.expr_type.collation)?;
            coerced.push(argument.expr);
        }
        let mut columns = Vec::with_capacity(function.columns.len());
        for (_, pg_type) in function.columns {
            columns.push(self.plain_type(*pg_type)?.0);
        }
        Ok(RowsCall { function, arguments: coerced, columns })
    }

    fn unnest(&mut self, array: Typed) -> Bound<RowsCall> {
        let PgType::Array(element) = array.pg_type() else { return Err(unsupported("unnest of no array")) };
        self.check_element_collation(array.expr_type.collation)?;
        let columns = vec![self.plain_type(element.pg_type())?.0];
        let arguments = vec![array.expr, BoundExpr::collation(element.pg_type().oid())];
        Ok(RowsCall { function: &UNNEST, arguments, columns })
    }

    /// generate_series(start, stop [, step]): of the candidates (int4, int8, numeric, timestamp, timestamptz) the one that the
    /// typed bounds decide.
    fn series(&mut self, arguments: Vec<Typed>) -> Bound<RowsCall> {
        let known: Vec<PgType> = arguments.iter().map(Typed::pg_type).collect();
        let count = known.len();
        if !(2..=3).contains(&count) {
            return Err(unsupported("generate_series of so many arguments"));
        }
        let of = |at: usize| known.get(at).copied();
        let bounds = [of(0), of(1)];
        let is = |pg_type: PgType| bounds.contains(&Some(pg_type));
        let element = if known.iter().all(|pg_type| pg_type.is_integer()) {
            if !known.iter().any(|pg_type| matches!(pg_type, PgType::Int4 | PgType::Int8)) {
                // int4 and int8 are as good as each other.
                return Err(unsupported("generate_series of smallint"));
            }
            if known.contains(&PgType::Int8) { PgType::Int8 } else { PgType::Int4 }
        } else if count == 3 && is(PgType::Timestamp) && !is(PgType::Timestamptz) && !is(PgType::Date) {
            PgType::Timestamp
        } else if count == 3 && (is(PgType::Timestamptz) || is(PgType::Date)) && !is(PgType::Timestamp) {
            PgType::Timestamptz
        } else {
            return Err(unsupported("generate_series of these types"));
        };
        let is_time = matches!(element, PgType::Timestamp | PgType::Timestamptz);
        let mut coerced = Vec::with_capacity(count);
        for (position, argument) in arguments.into_iter().enumerate() {
            let to = if position == 2 && is_time { PgType::Interval } else { element };
            coerced.push(self.coerce(argument, to, CastContext::Implicit)?.expr);
        }
        let expr_type = ExprType { pg_type: element, typmod: -1, collation: Collation::None };
        Ok(RowsCall { function: &SERIES, arguments: coerced, columns: vec![expr_type] })
    }
}

/// Whether the item's name may stand for its value (makeWholeRowVar of a scalar function).
fn is_one_value(functions: &[RowsCall], is_numbered: bool) -> bool {
    matches!(functions, [only] if only.columns.len() == 1) && !is_numbered
}
