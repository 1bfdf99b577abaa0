//! JSON made of values and of rows (json.c, jsonb.c). The functions take arguments of any type: what they make of each is known
//! by its type, and put together here. jsonb is json in its canonical form.

use std::sync::Arc;

use crate::binder::aggregate::{Parts, is_untyped_constant};
use crate::binder::dependent::tells_apart;
use crate::binder::expression::{Level, unknown_function};
use crate::binder::output_name::output_name;
use crate::binder::scope::{Scope, ScopeColumn, Whole};
use crate::binder::typed::{CollationStrength, Typed};
use crate::binder::{AggregateCall, Binder, Bound, BoundExpr, ExprType, SortKey, unsupported};
use crate::catalog::Collation;
use crate::catalog::functions::{self, AggregateFunction, CastContext, Function};
use crate::statement::ast::{Call, Expr, Query, Select, TableRef, Target};
use crate::statement::dependencies::SYSTEM;
use crate::types::{PgType, Value, json};

const AGGREGATES: [&str; 4] = ["json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"];

/// json's or jsonb's.
pub(super) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

/// An argument of any type.
enum Item {
    Value(Typed),
    Row(Row),
}

/// A row as a value.
struct Row {
    /// By the names of its columns.
    columns: Vec<(Arc<str>, Typed)>,
    /// It is NULL where this is.
    mark: Option<BoundExpr>,
}

const JSON: ExprType = ExprType { pg_type: PgType::Json, typmod: -1, collation: Collation::None };
const TEXT: ExprType = ExprType { pg_type: PgType::Text, typmod: -1, collation: Collation::C };

fn text(value: &str) -> BoundExpr {
    BoundExpr::Literal { value: Value::Text(value.into()), expr_type: TEXT }
}

fn made(function: &'static Function, arguments: Vec<BoundExpr>) -> Typed {
    let expr_type = ExprType { pg_type: function.result, typmod: -1, collation: Collation::None };
    Typed::plain(BoundExpr::Call { function, arguments, expr_type }, function.result)
}

fn quoted(key: &str) -> BoundExpr {
    let mut written = String::new();
    json::escape(key, &mut written);
    text(&written)
}

/// json as jsonb, where that is asked for.
fn as_wanted(json: Typed, is_binary: bool) -> Typed {
    if is_binary { made(&functions::JSONB_OF, vec![json.expr]) } else { json }
}

/// Comes before every element but the first (json_agg_transfn): a line break before arrays and rows.
fn comma(item: &Item, is_binary: bool) -> BoundExpr {
    match item {
        Item::Row(Row { mark: None, .. }) if !is_binary => text(", \n "),
        Item::Row(Row { mark: Some(mark), .. }) if !is_binary => unless_null(mark, text(", "), text(", \n "), TEXT),
        Item::Value(value) if !is_binary && matches!(value.pg_type(), PgType::Array(_)) => {
            unless_null(&value.expr, text(", "), text(", \n "), TEXT)
        }
        _ => text(", "),
    }
}

/// The argument of a DISTINCT, where other values are other JSON.
fn told_apart(item: &Item) -> Bound<Typed> {
    match item {
        Item::Value(value) if tells_apart(value.expr_type) => Ok(value.clone()),
        Item::Value(_) | Item::Row(_) => Err(unsupported("DISTINCT of such JSON")),
    }
}

fn unless_null(tested: &BoundExpr, if_null: BoundExpr, otherwise: BoundExpr, expr_type: ExprType) -> BoundExpr {
    let is_null = BoundExpr::IsNull { operand: Box::new(tested.clone()), negated: false };
    BoundExpr::Case { branches: vec![(is_null, if_null)], otherwise: Box::new(otherwise), expr_type }
}

impl Binder<'_> {
    /// A call of one of these functions; None: it is another one.
    pub(super) fn json_call(&mut self, level: &mut Level, call: &Call) -> Bound<Option<Typed>> {
        let is_binary = call.name.starts_with("jsonb_") || call.name == "to_jsonb";
        let is_known = match call.name.as_str() {
            "to_json" | "to_jsonb" | "row_to_json" | "array_to_json" => call.arguments.len() == 1,
            "json_build_object" | "jsonb_build_object" => call.arguments.len().is_multiple_of(2),
            "json_build_array" | "jsonb_build_array" => true,
            "json_agg" | "jsonb_agg" => call.arguments.len() == 1,
            "json_object_agg" | "jsonb_object_agg" => call.arguments.len() == 2,
            _ => return Ok(None),
        };
        let refused = || unknown_function(call, &[]);
        let may_be_distinct = is_aggregate(&call.name) && call.arguments.len() == 1;
        if !is_known
            || call.is_star
            || call.is_distinct && !may_be_distinct
            || !call.within_group.is_empty()
            || self.is_contested(call)
        {
            return Err(refused());
        }
        if is_aggregate(&call.name) {
            return self.json_aggregate(level, call, is_binary).map(Some);
        }
        if call.filter.is_some() || !call.order_by.is_empty() {
            return Err(refused());
        }
        let items = call.arguments.iter().map(|argument| self.json_item(level, argument)).collect::<Bound<Vec<_>>>()?;
        let fits = |item: &Item| match call.name.as_str() {
            "row_to_json" => matches!(item, Item::Row(_)),
            "array_to_json" => matches!(item, Item::Value(value) if matches!(value.pg_type(), PgType::Array(_))),
            _ => true,
        };
        if !items.iter().all(fits) {
            return Err(refused());
        }
        let json = self.json_made(call, items)?;
        Ok(Some(as_wanted(json, is_binary)))
    }

    /// A text that is another for every other row (rowtypes.c, record_eq: NULLs equal each other), of columns whose equal values
    /// are the same, and so written alike.
    pub(super) fn row_as_key(&mut self, level: &mut Level, items: &[Expr]) -> Bound<Typed> {
        let values = self.expressions(level, items)?;
        if !values.iter().all(|value| tells_apart(value.expr_type)) {
            return Err(unsupported("row value"));
        }
        let parts = values.into_iter().map(|value| Ok(self.json_of(Item::Value(value))?.expr)).collect::<Bound<_>>()?;
        Ok(made(&functions::JSON_ARRAY, parts).relabelled(TEXT))
    }

    fn json_made(&mut self, call: &Call, items: Vec<Item>) -> Bound<Typed> {
        let is_object = call.name.ends_with("_build_object");
        if !is_object && !call.name.ends_with("_build_array") {
            let item = items.into_iter().next().ok_or_else(|| unknown_function(call, &[]))?;
            // to_json is polymorphic: it takes nothing untyped.
            return match &item {
                Item::Value(value) if value.is_unknown() => Err(unknown_function(call, &[])),
                _ => self.json_of(item),
            };
        }
        let mut parts = Vec::with_capacity(items.len());
        for (number, item) in items.into_iter().enumerate() {
            let is_key = is_object && number % 2 == 0;
            parts.push(if is_key { self.json_key(item)? } else { self.json_of(item)?.expr });
        }
        Ok(made(if is_object { &functions::JSON_OBJECT } else { &functions::JSON_ARRAY }, parts))
    }

    /// string_agg of JSON.
    fn json_aggregate(&mut self, level: &mut Level, call: &Call, is_binary: bool) -> Bound<Typed> {
        if !level.clause.allows_aggregates() {
            return Err(unsupported("aggregate in this place"));
        }
        let mut delimiter = text(", ");
        let mut is_canonical = false;
        let is_object = call.arguments.len() == 2;
        let mut distinct = None;
        // anyelement is of no type then (enforce_generic_type_consistency).
        if !is_object && call.arguments.iter().any(is_untyped_constant) {
            return Err(unsupported("aggregate of a constant of unknown type"));
        }
        let Parts { arguments, filter, order } = self.aggregate_parts(level, call, |binder, level| {
            let mut items =
                call.arguments.iter().map(|argument| binder.json_item(level, argument)).collect::<Bound<Vec<_>>>()?;
            let last = items.pop().ok_or_else(|| unknown_function(call, &[]))?;
            let Some(key) = items.pop() else {
                delimiter = comma(&last, is_binary);
                is_canonical = matches!(&last, Item::Value(value) if value.pg_type() == PgType::Jsonb);
                if call.is_distinct {
                    distinct = Some(told_apart(&last)?);
                }
                return Ok(vec![binder.json_of(last)?]);
            };
            let (key, value) = (binder.json_key(key)?, binder.json_of(last)?);
            Ok(vec![made(&functions::JSON_MEMBER, vec![key, value.expr])])
        })?;
        let json = arguments.into_iter().next().ok_or_else(|| unknown_function(call, &[]))?;
        let element = match is_object {
            true => json.expr,
            false => BoundExpr::Coalesce {
                arguments: vec![json.relabelled(TEXT).expr, text("null")],
                call: 0,
                expr_type: TEXT,
            },
        };
        let mut order: Vec<SortKey> = order.into_iter().map(|(_, key)| key).collect();
        if let Some(argument) = distinct {
            self.order_distinct(&argument, &[], &mut order)?;
        }
        let aggregate = AggregateCall {
            function: AggregateFunction::StringAgg,
            argument: Some(element),
            extra: vec![delimiter],
            is_distinct: call.is_distinct,
            order,
            filter,
            expr_type: TEXT,
        };
        let joined = level.aggregated(aggregate, CollationStrength::None).expr;
        let whole = if is_object { &functions::JSON_OBJECT_OF } else { &functions::JSON_LIST };
        let json = made(whole, vec![joined]);
        if is_binary && is_canonical {
            // A list of canonical values is one.
            return Ok(json.relabelled(ExprType { pg_type: PgType::Jsonb, ..JSON }));
        }
        Ok(as_wanted(json, is_binary))
    }

    /// An argument. A name that is no column's is a row.
    fn json_item(&mut self, level: &mut Level, expr: &Expr) -> Bound<Item> {
        match expr {
            Expr::Row { items, .. } => {
                let values = self.expressions(level, items)?;
                let name = |number: usize| Arc::<str>::from(format!("f{}", number + 1));
                let columns = values.into_iter().enumerate().map(|(at, value)| (name(at), value)).collect();
                return Ok(Item::Row(Row { columns, mark: None }));
            }
            Expr::Column(names) => {
                if let Some(row) = self.whole_row(&level.scope, names)? {
                    level.has_row_value |= !level.inside_aggregate;
                    return Ok(Item::Row(row));
                }
            }
            Expr::WholeRow(name) => {
                let row = self.row_of_item(&level.scope, name)?;
                level.has_row_value |= !level.inside_aggregate;
                return Ok(Item::Row(row.ok_or_else(|| unsupported(format!("the row of {name} as a value")))?));
            }
            Expr::Subquery(query) => {
                if let Some((name, select)) = row_of(query)
                    && !self.is_column(&level.scope, name)?
                {
                    level.has_row_value |= !level.inside_aggregate;
                    let columns = self.listed_row(level, select)?;
                    return Ok(Item::Row(Row { columns, mark: None }));
                }
            }
            _ => {}
        }
        self.expression(level, expr).map(Item::Value)
    }

    /// Whether the one argument is a FROM item's row, which then counts as read; and the value that it is NULL with.
    pub(super) fn counted_row(&mut self, level: &Level, arguments: &[Expr]) -> Bound<Option<Option<BoundExpr>>> {
        let row = match arguments {
            [Expr::Column(names)] => self.whole_row(&level.scope, names)?,
            [Expr::WholeRow(name)] => self.row_of_item(&level.scope, name)?,
            _ => None,
        };
        Ok(row.map(|row| row.mark))
    }

    /// Whether a name may be a column's, at this level or further out: then it is no row's (transformColumnRef).
    fn is_column(&self, scope: &Scope, name: &str) -> Bound<bool> {
        for level in std::iter::once(scope).chain(&self.outer) {
            if level.unqualified(name)?.is_some() {
                return Ok(true);
            }
        }
        // Of any table.
        if SYSTEM.contains(&name) { Err(unsupported(format!("a row that is named {name}"))) } else { Ok(false) }
    }

    /// `t` for all columns of the FROM item t.
    fn whole_row(&mut self, scope: &Scope, names: &[String]) -> Bound<Option<Row>> {
        let [name] = names else { return Ok(None) };
        if !scope.items.iter().any(|item| item.name.as_ref() == Some(name)) || self.is_column(scope, name)? {
            return Ok(None);
        }
        self.row_of_item(scope, name)
    }

    /// `t.*` as a value, which is no column's (transformColumnRef).
    fn row_of_item(&mut self, scope: &Scope, name: &str) -> Bound<Option<Row>> {
        let Some(item) = scope.items.iter().find(|item| item.name.as_deref() == Some(name)) else { return Ok(None) };
        let mark = match item.whole {
            Whole::Value => return Ok(None),
            Whole::Record => None,
            Whole::Padded if item.mark.is_some() => item.mark.clone(),
            Whole::Padded | Whole::Unknown => {
                self.wants_marks |= item.whole == Whole::Padded && !self.marks_rows;
                return Err(unsupported(format!("the row of {name} as a value")));
            }
        };
        let columns = item.columns.clone();
        let mut column = |column: &ScopeColumn| Ok((Arc::clone(&column.name), self.column_reference(column)?));
        let columns = columns.iter().map(&mut column).collect::<Bound<Vec<_>>>()?;
        let mark = mark.map(|mark| self.column_reference(&mark)).transpose()?.map(|mark| mark.expr);
        Ok(Some(Row { columns, mark }))
    }

    /// `(SELECT r FROM (SELECT a, b AS c) r)`: a row of what stands in the level itself.
    fn listed_row(&mut self, level: &mut Level, select: &Select) -> Bound<Vec<(Arc<str>, Typed)>> {
        let before = (level.aggregates.len(), level.windows.len());
        let mut row = Vec::with_capacity(select.targets.len());
        for target in &select.targets {
            let Target::Expr { expr, label } = target else { return Err(unsupported("* without FROM")) };
            let value = self.expression(level, expr)?;
            row.push((label.as_deref().unwrap_or_else(|| output_name(expr)).into(), value));
        }
        // They would be the subquery's own.
        if (level.aggregates.len(), level.windows.len()) != before {
            return Err(unsupported("aggregate without FROM"));
        }
        Ok(row)
    }

    /// datum_to_json of an argument.
    fn json_of(&mut self, item: Item) -> Bound<Typed> {
        match item {
            Item::Value(value) => self.json_value(value),
            Item::Row(row) => {
                let mut parts = Vec::with_capacity(2 * row.columns.len());
                for (name, value) in row.columns {
                    parts.extend([quoted(&name), self.json_value(value)?.expr]);
                }
                let record = made(&functions::JSON_RECORD, parts);
                let Some(mark) = row.mark else { return Ok(record) };
                let null = BoundExpr::Literal { value: Value::Null, expr_type: JSON };
                Ok(Typed::plain(unless_null(&mark, null, record.expr, JSON), PgType::Json))
            }
        }
    }

    fn json_value(&mut self, value: Typed) -> Bound<Typed> {
        let value = match value.pg_type() {
            // extract_variadic_args: a literal is text, of a parameter nobody knows what it is.
            PgType::Unknown if matches!(value.expr, BoundExpr::Literal { .. }) => {
                self.coerce(value, PgType::Text, CastContext::Implicit)?
            }
            PgType::Unknown => return Err(unsupported("JSON of a value of no type")),
            // A label is written as a text is.
            PgType::Enum(_) => value.relabelled(TEXT),
            _ => value,
        };
        // It is JSON already.
        if matches!(value.pg_type(), PgType::Json | PgType::Jsonb) {
            return Ok(Typed { origin: None, ..value.relabelled(JSON) });
        }
        let oid = value.pg_type().oid();
        Ok(made(&functions::JSON_VALUE, vec![value.expr, BoundExpr::collation(oid)]))
    }

    /// As a key: a string.
    fn json_key(&mut self, item: Item) -> Bound<BoundExpr> {
        let Item::Value(key) = item else { return Err(unsupported("a row as a key of JSON")) };
        match (&key.expr, key.pg_type()) {
            (BoundExpr::Literal { value: Value::Text(text), .. }, PgType::Unknown | PgType::Text) => Ok(quoted(text)),
            (_, PgType::Array(_) | PgType::Json | PgType::Jsonb) => Err(unsupported("such a key of JSON")),
            _ => Ok(self.json_value(key)?.expr),
        }
    }
}

/// The name and the inner SELECT of `SELECT r FROM (SELECT ...) r`, neither of which has anything else.
fn row_of(query: &Query) -> Option<(&str, &Select)> {
    let outer = query.bare()?;
    let [TableRef::Subquery { query: inner, alias: Some(alias), .. }] = outer.from.as_slice() else { return None };
    let [Target::Expr { expr: Expr::Column(names), .. }] = outer.targets.as_slice() else { return None };
    let inner = inner.bare()?;
    let is_column = |target: &Target| match target {
        Target::Expr { expr, label } => label.as_deref().unwrap_or_else(|| output_name(expr)) == alias.name,
        Target::Star(_) => true,
    };
    let is_its_row = *names == [alias.name.clone()] && !inner.targets.iter().any(is_column);
    (is_its_row && alias.columns.is_empty() && inner.from.is_empty()).then_some((&alias.name, inner))
}
