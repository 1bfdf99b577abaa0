//! Which expressions raise no error, whatever the rows hold: what may be left out where nobody reads it.

use crate::binder::relation::{any_column, as_outer, is_own_column};
use crate::binder::typed::children;
use crate::binder::{AggregateCall, BoundExpr, BoundRelation, FrameBound, MatchKind, SortKey, WindowCall, WindowKind};
use crate::catalog::functions::{AggregateFunction, Function, WindowFunction};
use crate::types::{PgType, Value};

/// Whether the expression certainly raises no error, whatever its columns hold: reads, comparisons of one type with itself or of
/// integers, and [`is_harmless`] calls.
pub(crate) fn cannot_raise(expr: &BoundExpr) -> bool {
    cannot_raise_but(expr, &|_| false)
}

/// Likewise, the parts that are known not to raise any aside.
pub(crate) fn cannot_raise_but(expr: &BoundExpr, is_known: &dyn Fn(&BoundExpr) -> bool) -> bool {
    is_known(expr)
        || children(expr).into_iter().all(|part| cannot_raise_but(part, is_known))
            && match expr {
                BoundExpr::Call { function, arguments, .. } => {
                    let is_alike = match function.arguments {
                        [left, right] => {
                            let are = |known: fn(PgType) -> bool| known(*left) && known(*right);
                            left == right || are(PgType::is_integer) || are(is_day_or_time)
                        }
                        _ => false,
                    };
                    (is_alike && is_comparison(function.name)) || is_harmless(function, arguments)
                }
                _ => true,
            }
}

/// Of two of these, one that is beyond what the other holds is later or earlier than all (date.c, date_cmp_timestamptz_internal).
fn is_day_or_time(of: PgType) -> bool {
    matches!(of, PgType::Date | PgType::Timestamp | PgType::Timestamptz)
}

/// Padding so far is no error; much further it is one (54000).
const PADDED_MAX: i32 = 1 << 20;

/// Calls that PostgreSQL has no error for, but out of memory: they have a value for each value of their arguments' types.
fn is_harmless(function: &Function, arguments: &[BoundExpr]) -> bool {
    let is_text = |of: &PgType| matches!(of, PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name);
    let begins_with_text = function.arguments.first().is_some_and(is_text);
    match function.name {
        "||" | "md5" | "length" | "char_length" | "character_length" | "octet_length" | "lower" | "upper"
        | "initcap" | "reverse" | "strpos" | "position" | "starts_with" | "btrim" | "ltrim" | "rtrim" | "replace"
        | "translate" | "ascii" | "collation_lower" | "collation_upper" | "ascii_lower" | "ascii_upper" | "left"
        | "right" | "concat" | "concat_ws" => begins_with_text,
        "lpad" | "rpad" => {
            matches!(arguments.get(1), Some(BoundExpr::Literal { value: Value::Int4(..=PADDED_MAX), .. }))
        }
        // A json is read anew, and may have what no text can: \u0000, half a surrogate pair.
        "->" | "->>" | "#>" | "#>>" => function.arguments.first() == Some(&PgType::Jsonb),
        // What the output functions print (CoerceViaIO), and casts between strings.
        "" | "text" | "varchar" => function.arguments.len() == 1 && is_text(&function.result),
        // An integer has a value in every wider type.
        "int4" | "int8" | "float8" | "numeric" => widens(function),
        "to_char" => matches!(function.arguments.first(), Some(PgType::Timestamp | PgType::Timestamptz)),
        "to_json" | "json_build_array" | "row_to_json" => true,
        "comparable_moment" | "comparable_time" | "date_not_above" | "date_not_below" => true,
        "@>" | "<@" | "&&" | "?" | "?|" | "?&" => true,
        "~~" | "!~~" => match arguments.get(1) {
            Some(BoundExpr::Literal { value: Value::Text(pattern), .. }) => is_whole_pattern(pattern),
            Some(BoundExpr::Literal { value, .. }) => value.is_null(),
            _ => false,
        },
        // A key is given for each value, and may not be NULL nor have parts.
        "json_build_object" => arguments.iter().step_by(2).all(|key| {
            let has_parts = matches!(key.expr_type().pg_type, PgType::Json | PgType::Jsonb | PgType::Array(_));
            !has_parts && matches!(key, BoundExpr::Literal { value, .. } if !value.is_null())
        }),
        _ => false,
    }
}

/// Whether a pattern of LIKE does not end within an escape (like_match.c), which is an error for what matches so far.
pub(crate) fn is_whole_pattern(pattern: &str) -> bool {
    pattern.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0
}

fn widens(function: &Function) -> bool {
    match function.arguments {
        [PgType::Int2] => function.result != PgType::Int2,
        [PgType::Int4] => matches!(function.result, PgType::Int8 | PgType::Float8 | PgType::Numeric),
        [PgType::Int8] => matches!(function.result, PgType::Float8 | PgType::Numeric),
        _ => false,
    }
}

fn is_comparison(name: &str) -> bool {
    matches!(name, "=" | "<>" | "<" | "<=" | ">" | ">=")
}

/// Whether nothing that the keys are made of, as far down as it is computed for them alone, raises an error.
pub(super) fn are_sure(relation: &BoundRelation, keys: &[SortKey]) -> bool {
    keys.iter().all(|key| is_sure(relation, &key.expr))
}

/// Likewise, of an expression over the relation's rows.
fn is_sure(relation: &BoundRelation, expr: &BoundExpr) -> bool {
    match expr {
        BoundExpr::Column { index, .. } => {
            as_outer(*index).is_some() || (is_own_column(*index) && is_sure_column(relation, *index))
        }
        _ => cannot_raise(expr) && children(expr).into_iter().all(|child| is_sure(relation, child)),
    }
}

fn is_sure_column(relation: &BoundRelation, column: usize) -> bool {
    let of_pair = |left: &BoundRelation, right: &BoundRelation| match column.checked_sub(left.width()) {
        None => is_sure_column(left, column),
        Some(column) => column < right.width() && is_sure_column(right, column),
    };
    match relation {
        // Computed in any case, whoever reads it.
        BoundRelation::OneRow
        | BoundRelation::Scan { .. }
        | BoundRelation::Distinct { .. }
        | BoundRelation::SetOperation { .. }
        | BoundRelation::Common { .. }
        | BoundRelation::Series { .. }
        | BoundRelation::Recursive { .. }
        | BoundRelation::Working { .. } => true,
        BoundRelation::Values { rows, .. } => rows.iter().all(|row| row.get(column).is_some_and(cannot_raise)),
        BoundRelation::Project { input, expressions } => {
            expressions.get(column).is_some_and(|expr| is_sure(input, expr))
        }
        BoundRelation::Filter { input, .. }
        | BoundRelation::Sort { input, .. }
        | BoundRelation::Limit { input, .. }
        | BoundRelation::DistinctOn { input, .. } => is_sure_column(input, column),
        BoundRelation::Append { inputs, .. } => inputs.iter().all(|input| is_sure_column(input, column)),
        BoundRelation::Aggregate { input, groups, aggregates } => match column.checked_sub(groups.len()) {
            None => true,
            Some(call) => aggregates.get(call).is_some_and(|call| is_sure_call(input, call)),
        },
        BoundRelation::Window { input, calls } => match column.checked_sub(input.width()) {
            None => is_sure_column(input, column),
            Some(call) => calls.get(call).is_some_and(|call| is_sure_window(input, call)),
        },
        BoundRelation::Expand { input, .. } => column >= input.width() || is_sure_column(input, column),
        BoundRelation::Join { left, right, .. } | BoundRelation::Dependent { left, right, .. } => of_pair(left, right),
        BoundRelation::Match { kind, left, right, .. } => match kind {
            MatchKind::Single => of_pair(left, right),
            MatchKind::Semi | MatchKind::Anti | MatchKind::Mark => {
                column < left.width() && is_sure_column(left, column)
            }
        },
    }
}

fn is_sure_call(input: &BoundRelation, call: &AggregateCall) -> bool {
    is_harmless_call(call, &|expr| is_sure(input, expr))
}

/// Whether the aggregate has a value for any rows, and what it takes in does, too.
fn is_harmless_call(call: &AggregateCall, is_sure: &dyn Fn(&BoundExpr) -> bool) -> bool {
    let of_order = call.order.iter().map(|key| &key.expr);
    let mut expressions = call.argument.iter().chain(&call.extra).chain(&call.filter).chain(of_order);
    has_value(call.function, call.argument.as_ref()) && expressions.all(is_sure)
}

/// Whether computing all of it raises no error, as far as these kinds of relations tell.
pub(super) fn is_quiet_relation(relation: &BoundRelation) -> bool {
    let is_quiet = match relation {
        BoundRelation::OneRow | BoundRelation::Scan { .. } | BoundRelation::Distinct { .. } => true,
        BoundRelation::Filter { predicate, .. } => cannot_raise(predicate),
        BoundRelation::Project { expressions, .. } => expressions.iter().all(cannot_raise),
        BoundRelation::Join { condition, .. } => condition.iter().all(cannot_raise),
        BoundRelation::Sort { keys, .. } => keys.iter().all(|key| cannot_raise(&key.expr)),
        BoundRelation::Limit { limit, offset, .. } => {
            limit.iter().chain(offset).all(|count| matches!(count, BoundExpr::Literal { .. }))
        }
        BoundRelation::Aggregate { groups, aggregates, .. } => {
            groups.iter().all(cannot_raise) && aggregates.iter().all(|call| is_harmless_call(call, &cannot_raise))
        }
        _ => false,
    };
    is_quiet && relation.inputs().into_iter().all(is_quiet_relation)
}

fn is_sure_window(input: &BoundRelation, call: &WindowCall) -> bool {
    is_harmless_window(call, &|expr| is_sure(input, expr))
}

/// Whether a window function has a value for each row, if what it takes in has.
pub(crate) fn is_harmless_window(call: &WindowCall, is_sure: &dyn Fn(&BoundExpr) -> bool) -> bool {
    let is_sure_function = match call.function {
        WindowKind::Function(function) => !matches!(function, WindowFunction::Ntile | WindowFunction::NthValue),
        WindowKind::Aggregate(function) => has_value(function, call.arguments.first()),
    };
    let has_distance = |bound: &FrameBound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
    let of_order = call.order.iter().map(|key| &key.expr);
    let mut expressions = call.arguments.iter().chain(&call.filter).chain(&call.partition).chain(of_order);
    is_sure_function && !has_distance(&call.frame.start) && !has_distance(&call.frame.end) && expressions.all(is_sure)
}

/// Whether the aggregate has a value whatever it takes in.
pub(crate) fn has_value(function: AggregateFunction, argument: Option<&BoundExpr>) -> bool {
    function.cannot_raise(argument.map(|argument| argument.expr_type().pg_type))
}

/// Whether EXISTS, which asks for rows only, would leave out errors that PostgreSQL raises: it computes what is selected
/// where there are aggregates, windows, set operations or OFFSET (subselect.c, simplify_EXISTS_query).
pub(super) fn hides_errors(asked: &BoundRelation) -> bool {
    let mut found = Found { is_whole: false, is_sure: true };
    found.look_through(asked, false);
    found.is_whole && !found.is_sure
}

struct Found {
    is_whole: bool,
    is_sure: bool,
}

impl Found {
    /// `is_below`: what is selected has been met; another selection is a subselect in FROM, of which only what is read is computed.
    fn look_through(&mut self, relation: &BoundRelation, is_below: bool) {
        match relation {
            BoundRelation::Project { input, expressions } if !is_below => {
                self.is_sure &= expressions.iter().all(|expr| is_sure(input, expr));
                // Else it leaves out what the rows are in order of.
                let selects = !matches!(
                    **input,
                    BoundRelation::Sort { .. } | BoundRelation::Limit { .. } | BoundRelation::DistinctOn { .. }
                );
                self.look_through(input, selects);
            }
            BoundRelation::Sort { input, .. }
            | BoundRelation::Distinct { input, .. }
            | BoundRelation::DistinctOn { input, .. }
                if !is_below =>
            {
                self.look_through(input, false);
            }
            BoundRelation::Limit { input, limit, offset, .. } if !is_below => {
                let has_first = matches!(limit, Some(BoundExpr::Literal { value: Value::Int8(1..), .. }));
                self.is_whole |= offset.is_some() || !has_first;
                self.look_through(input, false);
            }
            BoundRelation::Append { inputs, .. } if !is_below => {
                self.is_whole = true;
                inputs.iter().for_each(|input| self.look_through(input, false));
            }
            // HAVING, which stays with what it reads.
            BoundRelation::Filter { input, predicate } => {
                let BoundRelation::Aggregate { input, groups, aggregates } = &**input else { return };
                self.is_whole = true;
                let is_read = |call: usize| any_column(predicate, &|column| column == groups.len() + call);
                let mut calls = aggregates.iter().enumerate();
                self.is_sure &= calls.all(|(at, call)| is_read(at) || is_sure_call(input, call));
            }
            BoundRelation::Aggregate { input, groups, aggregates } => {
                self.is_whole |= !aggregates.is_empty();
                self.is_sure &= groups.iter().all(|group| is_sure(input, group));
                self.is_sure &= aggregates.iter().all(|call| is_sure_call(input, call));
            }
            BoundRelation::Window { input, calls } => {
                self.is_whole = true;
                self.is_sure &= calls.iter().all(|call| is_sure_window(input, call));
                self.look_through(input, true);
            }
            _ => {}
        }
    }
}
