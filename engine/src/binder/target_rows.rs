//! A function that returns rows in the select list: as if it stood at the end of FROM, LATERAL, and its value where it is written
//! (nodeProjectSet.c gives a row for each of its values, after WHERE and before ORDER BY, DISTINCT and LIMIT; before GROUP BY where it is
//! grouped by, and elsewhere a value from FROM would stand ungrouped, which is refused). One function, once; beside windows, which
//! PostgreSQL computes before, it is upstream's.

use crate::binder::decorrelate::placeholder;
use crate::binder::folded::is_of_constants;
use crate::binder::json;
use crate::binder::output_name::output_name;
use crate::binder::relation::{WINDOW_BASE, any_column, map_columns};
use crate::binder::scope::Scope;
use crate::binder::typed::children;
use crate::binder::{Bound, BoundExpr, BoundRelation, cannot_raise, unsupported};
use crate::catalog::functions;
use crate::statement::ast::{
    Alias, Body, Call, CallSchema, Expr, GroupItem, Quantifier, Query, Select, TableRef, Target,
};
use crate::types::Value;

/// Those of one column.
const FUNCTIONS: [&str; 9] = [
    "unnest",
    "generate_series",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "json_array_elements",
    "json_array_elements_text",
    "json_object_keys",
    "jsonb_object_keys",
    "string_to_table",
];
/// Of its column, which `*` leaves out. No text of a client's has it.
pub(super) const NAME: &str = "\0rows";

/// The query with the function in FROM. None: there is none, or not one that can be moved.
pub(super) fn moved(query: &Query, select: &Select) -> Option<Query> {
    let mut calls = Vec::new();
    for target in &select.targets {
        match target {
            Target::Expr { expr, .. } => find(expr, &mut calls),
            Target::Star(_) => {}
        }
    }
    let [call] = calls[..] else { return None };
    if matches!(select.quantifier, Quantifier::DistinctOn(_)) {
        return None;
    }
    let call = call.clone();
    let mut select = select.clone();
    for target in &mut select.targets {
        if let Target::Expr { expr, label } = target {
            let name = output_name(expr).to_owned();
            if replace(expr, &call) {
                label.get_or_insert(name);
            }
        }
    }
    for item in &mut select.group_by {
        if let GroupItem::Expr(expr) = item {
            replace(expr, &call);
        }
    }
    let mut order_by = query.order_by.clone();
    order_by.iter_mut().for_each(|item| _ = replace(&mut item.expr, &call));
    let alias = Some(Alias { name: NAME.to_owned(), columns: vec![NAME.to_owned()] });
    select.from.push(TableRef::Function { call, is_numbered: false, alias, is_lateral: true });
    Some(Query {
        with: query.with.clone(),
        is_recursive: query.is_recursive,
        body: Body::Select(Box::new(select)),
        order_by,
        limit: query.limit.clone(),
        offset: query.offset.clone(),
        with_ties: query.with_ties,
    })
}

/// What must not be NULL: a strict call with a constant NULL beside the function's value is NULL for the planner, and the function, with
/// its rows, is gone (clauses.c, simplify_function). Of a statement with parameters PostgreSQL may make a plan that does not
/// know them; then it is not, and which plan it makes is not known here.
pub(super) fn add_required(expr: &BoundExpr, scope: &Scope, required: &mut Vec<BoundExpr>) -> Bound<()> {
    let Some(rows) = scope.columns().find(|column| &*column.name == NAME).map(|column| column.index) else {
        return Ok(());
    };
    let has_rows = |expr: &BoundExpr| any_column(expr, &|index| index == rows);
    if !has_rows(expr) {
        return Ok(());
    }
    if let BoundExpr::Call { function, arguments, .. } = expr
        && function.is_strict
    {
        for argument in arguments.iter().filter(|argument| !has_rows(argument)) {
            match argument {
                BoundExpr::Literal { value: Value::Null, .. } => return Err(unsupported(BESIDE_NULL)),
                BoundExpr::Literal { .. } => {}
                argument if any_column(argument, &|_| true) => {
                    if is_of_constants(argument, scope) {
                        return Err(unsupported(BESIDE_NULL));
                    }
                }
                argument => required.push(argument.clone()),
            }
        }
    }
    children(expr).into_iter().try_for_each(|part| add_required(part, scope, required))
}

/// What stands beside the function and may raise an error is computed for rows for which it gives none, too (nodeProjectSet.c,
/// ExecProjectSRF): below it, where `targets` have its columns then. `is_plain`: there are no subqueries, which hang on numbers of columns.
pub(super) fn computed_below(
    relation: BoundRelation,
    targets: Vec<&mut BoundExpr>,
    scope: &Scope,
    is_plain: bool,
) -> Bound<BoundRelation> {
    let Some(rows) = scope.columns().find(|column| &*column.name == NAME).map(|column| column.index) else {
        return Ok(relation);
    };
    let is_beside = |expr: &BoundExpr| !cannot_raise(expr) && !any_column(expr, &|index| index == rows);
    let beside: Vec<BoundExpr> =
        targets.iter().filter(|target| is_beside(target)).map(|target| (**target).clone()).collect();
    if beside.is_empty() {
        return Ok(relation);
    }
    let Some(width) = width_below(&relation).filter(|width| is_plain && *width == rows) else {
        return Err(unsupported(BESIDE_ERROR));
    };
    let count = beside.len();
    let place = |index: usize| if (width..WINDOW_BASE).contains(&index) { index + count } else { index };
    let mut next = width;
    for target in targets {
        if is_beside(target) {
            *target = BoundExpr::Column { index: next, expr_type: target.expr_type() };
            next += 1;
        } else {
            map_columns(target, &place);
        }
    }
    Ok(with_below(relation, beside, &place))
}

/// How many columns there are below the function, if there is nothing but conditions above it.
fn width_below(relation: &BoundRelation) -> Option<usize> {
    match relation {
        BoundRelation::Filter { input, .. } => width_below(input),
        BoundRelation::Expand { input, .. } => Some(input.width()),
        _ => None,
    }
}

fn with_below(relation: BoundRelation, beside: Vec<BoundExpr>, place: &dyn Fn(usize) -> usize) -> BoundRelation {
    match relation {
        BoundRelation::Filter { input, mut predicate } => {
            map_columns(&mut predicate, place);
            BoundRelation::Filter { input: Box::new(with_below(*input, beside, place)), predicate }
        }
        BoundRelation::Expand { input, functions, is_numbered, keeps_empty } => {
            let expressions = (0..input.width()).map(placeholder).chain(beside).collect();
            let input = Box::new(BoundRelation::Project { input, expressions });
            BoundRelation::Expand { input, functions, is_numbered, keeps_empty }
        }
        other => other,
    }
}

const BESIDE_ERROR: &str = "a function that returns rows beside what may raise an error";

/// Said also where it is found when the statement is run.
pub(crate) const BESIDE_NULL: &str = "a function that returns rows beside NULL";

fn is_plain(call: &Call) -> bool {
    !(call.is_star || call.is_distinct)
        && call.order_by.is_empty()
        && call.within_group.is_empty()
        && call.filter.is_none()
        && call.over.is_none()
}

fn returns_rows(call: &Call) -> bool {
    let is_one = call.name != "unnest" || call.arguments.len() == 1;
    is_plain(call) && is_one && FUNCTIONS.contains(&call.name.as_str()) && !matches!(call.schema, CallSchema::Named(_))
}

fn is_aggregate(name: &str) -> bool {
    !functions::aggregates(name).is_empty() || json::is_aggregate(name)
}

/// The parts of an expression in which such a function may stand; the others are upstream's, most of them errors.
fn parts(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::Cast { operand, .. } => vec![operand],
        Expr::Operator { left, right, .. } => left.iter_mut().map(|left| &mut **left).chain([&mut **right]).collect(),
        Expr::Call(call) if is_plain(call) && !is_aggregate(&call.name) => call.arguments.iter_mut().collect(),
        _ => Vec::new(),
    }
}

fn find<'e>(expr: &'e Expr, found: &mut Vec<&'e Call>) {
    match expr {
        Expr::Call(call) if returns_rows(call) => found.push(call),
        Expr::Cast { operand, .. } => find(operand, found),
        Expr::Operator { left, right, .. } => {
            left.iter().for_each(|left| find(left, found));
            find(right, found);
        }
        Expr::Call(call) if is_plain(call) && !is_aggregate(&call.name) => {
            call.arguments.iter().for_each(|argument| find(argument, found));
        }
        _ => {}
    }
}

/// Puts the function's value in its place. Whether it was there.
fn replace(expr: &mut Expr, call: &Call) -> bool {
    if matches!(expr, Expr::Call(other) if **other == *call) {
        *expr = Expr::Column(vec![NAME.to_owned(), NAME.to_owned()]);
        return true;
    }
    let mut is_found = false;
    for part in parts(expr) {
        is_found |= replace(part, call);
    }
    is_found
}
