//! What PostgreSQL takes quals to cost, by which it orders those of a node: whether one that raises an error is computed for a row hangs on
//! what came before it.

use crate::binder::{BoundExpr, cannot_raise};
use crate::catalog::functions::{self, Function};
use crate::planner::expression::{any, for_each_operand, is_immutable, is_row_independent};
use crate::types::array::ArrayView;
use crate::types::{PgType, Value};

/// The cheap ones first, written order among equals (PostgreSQL: createplan.c order_qual_clauses). One that may raise an error is not
/// left to others of which it is not known that they come first, unless these may raise one, too: an error too many only sends the
/// statement upstream.
///
/// `own`: so many parameters are the statement's; those behind are its subqueries' values, which no planner knows.
pub(super) fn in_evaluation_order(predicates: &mut [BoundExpr], own: usize) {
    let costs = Costs { own };
    predicates.sort_by(|a, b| costs.of(a).total_cmp(&costs.of(b)));
    for at in 1..predicates.len() {
        if cannot_raise(&predicates[at]) {
            continue;
        }
        let is_told = costs.are_known(&predicates[at]);
        let comes_first = |other: &BoundExpr| is_told && costs.are_known(other) || !cannot_raise(other);
        let last = predicates[..at].iter().rposition(comes_first).map_or(0, |last| last + 1);
        predicates[last..=at].rotate_right(1);
    }
}

/// What quals cost, in calls.
struct Costs {
    own: usize,
}

impl Costs {
    /// What PostgreSQL takes the evaluation of a qual to cost, in calls; quals of one node run in this order, the
    /// written one among equals (PostgreSQL: createplan.c order_qual_clauses, costsize.c cost_qual_eval_walker;
    /// practically every built-in has procost 1).
    fn of(&self, expr: &BoundExpr) -> f64 {
        match expr {
            BoundExpr::Call { .. } | BoundExpr::Case { .. } | BoundExpr::Coalesce { .. } if self.folds(expr) => 0.0,
            BoundExpr::InList { operand, list, .. } => self.of_list(operand, list),
            BoundExpr::Call { function, arguments, .. } => match (function.name, &arguments[..]) {
                // clauses.c, simplify_boolean_equality.
                ("=" | "<>", [tested, BoundExpr::Literal { value: Value::Bool(_), .. }])
                | ("=" | "<>", [BoundExpr::Literal { value: Value::Bool(_), .. }, tested]) => self.of(tested),
                (_, [operand, array]) if std::ptr::eq(*function, &functions::EQUALS_ANY) => {
                    self.of(operand) + self.of(array) + array_cost(array)
                }
                // Here alone.
                (name, [value]) if is_among(name, OWN) => self.of(value),
                // By the output function of one type and the input function of the other.
                _ if function.is_via_text() => 2.0 + self.of_operands(expr),
                _ => 1.0 + self.of_operands(expr),
            },
            BoundExpr::IsDistinct { .. } | BoundExpr::Extreme { .. } => 1.0 + self.of_operands(expr),
            _ => self.of_operands(expr),
        }
    }

    fn of_operands(&self, expr: &BoundExpr) -> f64 {
        let mut cost = 0.0;
        for_each_operand(expr, &mut |operand| cost += self.of(operand));
        cost
    }

    /// Constants stand in an array, a single one and whatever else there is are compared by themselves (parse_expr.c, transformAExprIn).
    fn of_list(&self, operand: &BoundExpr, list: &[BoundExpr]) -> f64 {
        let is_alone = list.iter().filter(|item| is_row_independent(item)).count() == 1;
        let is_in_array = |item: &&BoundExpr| !is_alone && is_row_independent(item);
        let (in_array, by_themselves): (Vec<_>, Vec<_>) = list.iter().partition(is_in_array);
        let of_items = list.iter().map(|item| self.of(item)).sum::<f64>();
        let of_array = match in_array.len() {
            0 => 0.0,
            count => self.of(operand) + comparisons_cost(count),
        };
        of_items + of_array + by_themselves.len() as f64 * (1.0 + self.of(operand))
    }

    /// Whether it is a constant before it is costed: literals stand in a plan as parameters, and a plan for a client's parameters has their values.
    fn folds(&self, expr: &BoundExpr) -> bool {
        let is_known = |part: &BoundExpr| match part {
            BoundExpr::Parameter { index, .. } => *index < self.own,
            BoundExpr::Column { .. } => false,
            _ => true,
        };
        is_immutable(expr) && !any(expr, &|part| !is_known(part))
    }

    /// Whether [`Self::of`] is certainly what PostgreSQL comes to.
    fn are_known(&self, expr: &BoundExpr) -> bool {
        let is_constant_bool =
            |part: &BoundExpr| matches!(part, BoundExpr::Literal { value: Value::Bool(_) | Value::Null, .. });
        if matches!(expr, BoundExpr::Call { .. } | BoundExpr::Case { .. } | BoundExpr::Coalesce { .. })
            && self.folds(expr)
        {
            return true;
        }
        let mut operands_are = true;
        for_each_operand(expr, &mut |operand| operands_are = operands_are && self.are_known(operand));
        operands_are
            && match expr {
                BoundExpr::Column { .. } | BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => true,
                // Folded, too, as far as that goes.
                _ if is_row_independent(expr) && !matches!(expr, BoundExpr::Call { .. }) => false,
                // Here alone.
                BoundExpr::Call { function, .. } if is_among(function.name, OWN) => true,
                BoundExpr::Call { function, arguments, .. } if std::ptr::eq(*function, &functions::EQUALS_ANY) => {
                    let of = arguments[0].expr_type().pg_type;
                    matches!(arguments[1], BoundExpr::Literal { .. }) && (is_plain_type(of) || is_equated_type(of))
                }
                BoundExpr::Call { function, arguments, .. } => is_one_call(function, arguments),
                BoundExpr::And(parts) | BoundExpr::Or(parts) => !parts.iter().any(is_constant_bool),
                BoundExpr::InList { operand, list, .. } => {
                    let of = operand.expr_type().pg_type;
                    (is_plain_type(of) || is_equated_type(of))
                        && list.iter().all(|item| match item {
                            BoundExpr::Literal { value, .. } => !value.is_null(),
                            BoundExpr::Parameter { index, .. } => *index < self.own,
                            _ => false,
                        })
                }
                BoundExpr::Extreme { arguments, .. } => {
                    let is_number = |of: &BoundExpr| of.expr_type().pg_type.is_integer();
                    arguments.iter().all(is_number)
                }
                BoundExpr::IsDistinct { left, .. } => is_plain_type(left.expr_type().pg_type),
                BoundExpr::Not(_)
                | BoundExpr::IsNull { .. }
                | BoundExpr::IsBool { .. }
                | BoundExpr::Case { .. }
                | BoundExpr::Coalesce { .. } => true,
            }
    }
}

/// From so many constants on a list is hashed (clauses.c, MIN_ARRAY_SIZE_FOR_HASHED_SAOP): a call of the hash function and one of equality.
const HASHED_MIN: usize = 9;

/// Half of so many comparisons, as the right one is among them anywhere; or those by a hash table.
fn comparisons_cost(count: usize) -> f64 {
    if count >= HASHED_MIN { 2.0 } else { count as f64 * 0.5 }
}

fn array_cost(array: &BoundExpr) -> f64 {
    /// Elements that PostgreSQL takes an array to have which it does not know (selfuncs.c, estimate_array_length; since 17 it asks
    /// its statistics).
    const UNKNOWN: usize = 10;
    match array {
        BoundExpr::Literal { value: Value::Array(bytes), .. } => comparisons_cost(ArrayView::of(bytes).len()),
        _ => UNKNOWN as f64 * 0.5,
    }
}

/// Whether a qual of a scan is computed behind others of the same cost: an equality goes into an equivalence class, and comes out of it when
/// all others are in their places (equivclass.c, generate_base_implied_equalities).
pub(super) fn is_equivalence(expr: &BoundExpr) -> bool {
    let is_bool = |part: &BoundExpr| matches!(part, BoundExpr::Literal { value: Value::Bool(_), .. });
    match expr {
        BoundExpr::Call { function, arguments, .. } => {
            function.name == "=" && arguments.len() == 2 && !arguments.iter().any(is_bool)
        }
        BoundExpr::InList { list, negated: false, .. } => list.len() == 1,
        _ => false,
    }
}

/// Functions and operators that are one call in PostgreSQL, and here: not what is put together here of several.
const ONE_CALL: &str = "= <> < <= > >= + - * / % ^ ~~ !~~ ~ !~ || -> ->> ? @ |/ # & | << >> \
    lower upper initcap length char_length character_length octet_length substr substring left right btrim ltrim rtrim \
    replace strpos position starts_with abs ceil ceiling floor round trunc sign mod sqrt power ln log date_trunc date_part \
    extract to_char to_date to_timestamp now split_part md5";

/// What stands here alone, around what PostgreSQL compares as it is.
const OWN: &str = "comparable_moment comparable_time date_not_above date_not_below";

/// Names of types: casts.
const CASTS: &str = "int2 int4 int8 float4 float8 numeric text varchar bool date time timestamp timestamptz interval";

fn is_among(name: &str, words: &str) -> bool {
    words.split_ascii_whitespace().any(|word| word == name)
}

fn is_plain_type(of: PgType) -> bool {
    use PgType as T;
    matches!(
        of,
        T::Bool
            | T::Int2
            | T::Int4
            | T::Int8
            | T::Float4
            | T::Float8
            | T::Numeric
            | T::Text
            | T::Varchar
            | T::Date
            | T::Time
            | T::Timestamp
            | T::Timestamptz
            | T::Interval
            | T::Uuid
            | T::Jsonb
    )
}

fn is_one_call(function: &Function, arguments: &[BoundExpr]) -> bool {
    let is_cast = arguments.len() == 1 && (function.name.is_empty() || is_among(function.name, CASTS));
    // A date's is a function in SQL, which is inlined.
    let is_inlined = function.name == "date_part" && function.arguments.get(1) == Some(&PgType::Date);
    let is_equality = matches!(function.name, "=" | "<>");
    let is_told = |of: PgType| is_plain_type(of) || is_equality && is_equated_type(of);
    (is_cast || is_among(function.name, ONE_CALL) && !is_inlined)
        && is_plain_type(function.result)
        && function.arguments.iter().all(|of| is_told(*of))
        && arguments.iter().all(|argument| is_told(argument.expr_type().pg_type))
}

/// Of which equality is one call; what they are ordered by is put together here.
fn is_equated_type(of: PgType) -> bool {
    matches!(of, PgType::Bpchar | PgType::Enum(_))
}
