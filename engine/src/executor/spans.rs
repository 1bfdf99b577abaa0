//! [`Span`]: the values that an expression may have, by the ranges of the tables' columns; and by that whether it raises an error on
//! any row at all. `a + 1` raises none in a table without a largest `a`: its other rows may be left out though PostgreSQL computes it
//! for them.

use super::Run;
use crate::binder::{BoundExpr, ExprType, cannot_raise_but, is_whole_pattern};
use crate::catalog::functions::{AggregateFunction, EQUALS_ANY, Function};
use crate::planner::expression::{is_row_independent, type_of};
use crate::planner::node::{Aggregate, PlanNode, Scan, SideKind};
use crate::planner::regular_expression;
use crate::table::Zone;
use crate::types::{Numeric, PgType, Value};

/// Days from 2000-01-01 within which dates and times are, a few hours and some arithmetic away from the ends of what the types hold:
/// 4713 BC, and 294276 (timestamp.h, MIN_TIMESTAMP and END_TIMESTAMP).
const DAYS: std::ops::RangeInclusive<i64> = -1_000_000..=3_000_000;
const DAY_US: i64 = 86_400_000_000;
/// So many of a call's arguments may vary: it is computed for each combination of their ends.
const VARYING_MAX: usize = 2;

/// NULL aside, which calls of interest answer with NULL.
#[derive(Clone, Debug)]
pub(super) enum Span {
    /// It has none but NULL.
    Nothing,
    /// From the smallest to the largest, of one type.
    Between(Value, Value),
    /// Nothing is known of them.
    Any,
}

/// Where columns have their values from.
pub(super) type Columns<'c> = dyn Fn(usize) -> Span + 'c;

impl Run<'_> {
    /// Whether the expression over the node's rows raises no error on any of those that are there.
    pub(super) fn is_quiet_over(&self, node: &PlanNode, expr: &BoundExpr) -> bool {
        self.is_quiet(expr, &|column| self.column_span(node, column))
    }

    /// Likewise of a scan's filter, whichever rows the filters before it leave.
    pub(super) fn is_quiet_in(&self, scan: &Scan, filter: &BoundExpr) -> bool {
        self.is_quiet(filter, &|column| self.scan_span(scan, column))
    }

    fn is_quiet(&self, expr: &BoundExpr, columns: &Columns<'_>) -> bool {
        cannot_raise_but(expr, &|part| self.is_known(part, columns))
    }

    /// What is the same for all rows and has a value; membership of an array; the match with a pattern that does not end within an
    /// escape (like_match.c), or with a regular expression that can be read; what has a value over its whole span.
    fn is_known(&self, part: &BoundExpr, columns: &Columns<'_>) -> bool {
        if is_row_independent(part) {
            return self.constant(part).is_ok();
        }
        let BoundExpr::Call { function, arguments, .. } = part else { return false };
        if std::ptr::eq(*function, &raw const EQUALS_ANY) {
            return arguments.iter().all(|argument| self.is_quiet(argument, columns));
        }
        if let Some(reading) = regular_expression(part) {
            return self.constant(&reading).is_ok() && self.is_quiet(&arguments[0], columns);
        }
        match &arguments[..] {
            [text, pattern] if matches!(function.name, "~~" | "!~~") && is_row_independent(pattern) => {
                matches!(self.constant(pattern), Ok(Value::Text(pattern)) if is_whole_pattern(&pattern))
                    && self.is_quiet(text, columns)
            }
            _ => self.span(part, columns).is_some(),
        }
    }

    /// None: it may raise an error, or is not looked into.
    fn span(&self, expr: &BoundExpr, columns: &Columns<'_>) -> Option<Span> {
        if is_row_independent(expr) {
            return self.constant(expr).ok().map(|value| Span::between([&value]));
        }
        match expr {
            BoundExpr::Column { index, .. } => Some(columns(*index)),
            BoundExpr::Coalesce { arguments, .. } => {
                let spans = arguments.iter().map(|argument| self.span(argument, columns));
                spans.reduce(|all, next| Some(all?.or(next?))).flatten()
            }
            BoundExpr::Call { function, arguments, expr_type } => {
                let order = order_of(function, arguments)?;
                let spans =
                    arguments.iter().map(|argument| self.span(argument, columns)).collect::<Option<Vec<_>>>()?;
                if matches!(function.name, "/" | "%") && !spans.last().is_some_and(Span::is_without_zero) {
                    return None;
                }
                let values = self.values_at_ends(function, arguments, expr_type, &spans)?;
                Some(if order == Order::None { Span::Any } else { Span::between(&values) })
            }
            _ => None,
        }
    }

    /// The call's values for each combination of its arguments' ends. None: it raises an error for one, or there are no such ends.
    fn values_at_ends(
        &self,
        function: &'static Function,
        arguments: &[BoundExpr],
        expr_type: &ExprType,
        spans: &[Span],
    ) -> Option<Vec<Value>> {
        let ends = spans.iter().map(Span::ends).collect::<Option<Vec<_>>>()?;
        if ends.iter().filter(|ends| ends.len() > 1).count() > VARYING_MAX {
            return None;
        }
        let choices: usize = ends.iter().map(Vec::len).product();
        let at = |mut choice: usize| {
            let literal = |(argument, ends): (&BoundExpr, &Vec<&Value>)| {
                let value = ends[choice % ends.len()].clone();
                choice /= ends.len();
                BoundExpr::Literal { value, expr_type: argument.expr_type() }
            };
            let arguments = arguments.iter().zip(&ends).map(literal).collect();
            self.constant(&BoundExpr::Call { function, arguments, expr_type: *expr_type }).ok()
        };
        (0..choices).map(at).collect()
    }

    fn column_span(&self, node: &PlanNode, column: usize) -> Span {
        match node {
            PlanNode::Scan(scan) => self.scan_span(scan, column),
            PlanNode::Filter { input, .. } | PlanNode::Sort { input, .. } | PlanNode::Limit { input, .. } => {
                self.column_span(input, column)
            }
            PlanNode::Project { input, expressions } => {
                let span = |expr| self.span(expr, &|column| self.column_span(input, column));
                expressions.get(column).and_then(span).unwrap_or(Span::Any)
            }
            PlanNode::Join(join) if column < node.width() => {
                let (input, column) = join.input_at(column);
                self.column_span(input, column)
            }
            // Also of what its filters are over. Rows that are made up have NULL.
            PlanNode::SideJoin(join) => match column.checked_sub(join.left.width()) {
                None => self.column_span(&join.left, column),
                Some(column) if column < join.right.width() => self.column_span(&join.right, column),
                Some(_) => Span::Any,
            },
            PlanNode::Aggregate(aggregate) => self.aggregate_span(aggregate, column).unwrap_or(Span::Any),
            _ => Span::Any,
        }
    }

    /// None: nothing is known of it.
    fn aggregate_span(&self, aggregate: &Aggregate, column: usize) -> Option<Span> {
        use AggregateFunction as F;
        let over_input = |expr| self.span(expr, &|column| self.column_span(&aggregate.input, column));
        let Some(call) = column.checked_sub(aggregate.groups.len()) else {
            return over_input(aggregate.groups.get(column)?);
        };
        let call = aggregate.calls.get(call)?;
        let rows = || self.rows_at_most(&aggregate.input);
        let of_argument = || over_input(aggregate.arguments.get(call.argument?)?);
        match call.function {
            F::CountStar | F::Count => Some(Span::Between(Value::Int8(0), Value::Int8(rows()?))),
            F::Min | F::Max => of_argument(),
            F::Avg => of_argument()?.times(1, call.result),
            F::Sum => {
                let (one, all) = (of_argument()?.times(1, call.result)?, of_argument()?.times(rows()?, call.result)?);
                Some(one.or(all))
            }
            _ => None,
        }
    }

    /// No more rows come out of the node.
    fn rows_at_most(&self, node: &PlanNode) -> Option<i64> {
        match node {
            PlanNode::OneRow => Some(1),
            PlanNode::Scan(scan) => i64::try_from(self.table(scan.table).ok()?.rows).ok(),
            PlanNode::Filter { input, .. }
            | PlanNode::Project { input, .. }
            | PlanNode::Sort { input, .. }
            | PlanNode::Limit { input, .. } => self.rows_at_most(input),
            PlanNode::Aggregate(aggregate) => Some(self.rows_at_most(&aggregate.input)?.max(1)),
            PlanNode::Join(join) => {
                join.inputs.iter().try_fold(1, |rows: i64, input| rows.checked_mul(self.rows_at_most(input)?))
            }
            PlanNode::SideJoin(join) => {
                let left = self.rows_at_most(&join.left)?;
                match join.kind {
                    SideKind::Left => left.checked_mul(self.rows_at_most(&join.right)?.max(1)),
                    SideKind::Full => left.checked_add(1)?.checked_mul(self.rows_at_most(&join.right)?.checked_add(1)?),
                    SideKind::Single | SideKind::Semi | SideKind::Anti | SideKind::Mark => Some(left),
                }
            }
            _ => None,
        }
    }

    /// Over all rows of the table.
    fn scan_span(&self, scan: &Scan, column: usize) -> Span {
        let (Some(column), Ok(table)) = (scan.columns.get(column), self.table(scan.table)) else { return Span::Any };
        let of_chunk = |zone: Option<&Zone>| match zone {
            Some(zone) => Span::between([&zone.min, &zone.max]),
            None => Span::Any,
        };
        let spans = table.chunks.iter().map(|version| of_chunk(version.chunk.zone(*column)));
        spans.fold(Span::Nothing, Span::or)
    }
}

impl Span {
    fn between<'v>(values: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut values = values.into_iter().filter(|value| !value.is_null()).peekable();
        if values.peek().is_none() {
            return Self::Nothing;
        }
        match Zone::over(values) {
            Some(zone) => Self::Between(zone.min, zone.max),
            None => Self::Any,
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, other) | (other, Self::Nothing) => other,
            (Self::Between(a, b), Self::Between(c, d)) => Self::between([&a, &b, &c, &d]),
            _ => Self::Any,
        }
    }

    /// Each end so many times, as a value of that type. None: neither an exact number nor of that type.
    fn times(self, times: i64, pg_type: PgType) -> Option<Self> {
        let many = |value: &Value| match (value, pg_type) {
            (Value::Numeric(Numeric::Finite { mantissa, scale }), PgType::Numeric) => {
                let mantissa = mantissa.checked_mul(i128::from(times))?;
                Some(Value::Numeric(Numeric::Finite { mantissa, scale: *scale }))
            }
            (Value::Int2(_) | Value::Int4(_) | Value::Int8(_), PgType::Numeric) => {
                let mantissa = i128::from(value.ordinal()?) * i128::from(times);
                Some(Value::Numeric(Numeric::Finite { mantissa, scale: 0 }))
            }
            (Value::Int2(_) | Value::Int4(_), PgType::Int8) => value.ordinal()?.checked_mul(times).map(Value::Int8),
            _ => None,
        };
        match &self {
            Self::Nothing => Some(self),
            Self::Between(min, max) => Some(Self::Between(many(min)?, many(max)?)),
            Self::Any => None,
        }
    }

    /// Its smallest and its largest value, once if they are the same; NULL of nothing. None: not known, or at the end of what its type has.
    fn ends(&self) -> Option<Vec<&Value>> {
        match self {
            Self::Nothing => Some(vec![&Value::Null]),
            Self::Between(min, max) if min.is_identical(max) && is_common(min) => Some(vec![min]),
            Self::Between(min, max) if is_common(min) && is_common(max) => Some(vec![min, max]),
            Self::Between(..) | Self::Any => None,
        }
    }

    fn is_without_zero(&self) -> bool {
        let is_beyond = |value: &Value, sign: i128| match value {
            Value::Numeric(Numeric::Finite { mantissa, .. }) => mantissa.signum() == sign,
            _ => value.ordinal().is_some_and(|value| i128::from(value).signum() == sign),
        };
        match self {
            Self::Nothing => true,
            Self::Between(min, max) => is_beyond(min, 1) || is_beyond(max, -1),
            Self::Any => false,
        }
    }
}

/// Whether the value is none of those for which functions have rules of their own.
fn is_common(value: &Value) -> bool {
    match value {
        Value::Date(days) => DAYS.contains(&i64::from(*days)),
        Value::Timestamp(us) | Value::Timestamptz(us) => DAYS.contains(&us.div_euclid(DAY_US)),
        Value::Float4(value) => value.is_finite(),
        Value::Float8(value) => value.is_finite(),
        Value::Numeric(value) => matches!(value, Numeric::Finite { .. }),
        _ => true,
    }
}

/// How the values of a call hang on its arguments. Where the ends of these have a value, whatever is between them has one; zero to divide by
/// aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// By each argument its values rise, or fall: they are between those at the ends.
    Kept,
    /// Its values may be anywhere.
    None,
}

/// None: it may have a value at the ends and raise an error in between. So do float products (float.h, float_underflow_error).
fn order_of(function: &Function, arguments: &[BoundExpr]) -> Option<Order> {
    use PgType::{Date, Float4, Float8, Int2, Int4, Int8, Interval, Numeric as Decimal, Text, Timestamp, Timestamptz};
    let varies = |argument: &BoundExpr| !is_row_independent(argument);
    let is_moment = |of: PgType| matches!(of, Date | Timestamp | Timestamptz);
    let is_exact = |of: PgType| matches!(of, Int2 | Int4 | Int8 | Decimal);
    let is_number = |of: PgType| is_exact(of) || matches!(of, Float4 | Float8);
    let types: Vec<PgType> = arguments.iter().map(type_of).collect();
    let is_first_alone = !arguments.iter().skip(1).any(varies);
    let is_last_alone = !arguments.iter().rev().skip(1).any(varies);
    match (function.name, &types[..]) {
        ("+" | "-", [left, right]) if is_number(*left) && is_number(*right) => Some(Order::Kept),
        ("+" | "-", [of]) if is_number(*of) => Some(Order::Kept),
        ("*", [left, right]) if is_exact(*left) && is_exact(*right) => Some(Order::Kept),
        ("/", [left, right]) if is_exact(*left) && is_exact(*right) => Some(Order::Kept),
        ("%", [left, right]) if is_exact(*left) && is_exact(*right) => Some(Order::None),
        ("+" | "-", [Date, Int4] | [Date, Date]) | ("+", [Int4, Date]) => Some(Order::Kept),
        ("+" | "-", [of, Interval]) if is_moment(*of) && is_first_alone => Some(Order::Kept),
        ("+", [Interval, of]) if is_moment(*of) && is_last_alone => Some(Order::Kept),
        ("-", [left, right]) if left == right && is_moment(*left) => Some(Order::None),
        ("floor" | "ceil" | "ceiling" | "round" | "trunc", [of, ..]) if is_number(*of) && is_first_alone => {
            Some(Order::Kept)
        }
        ("abs" | "sign", [of]) if is_number(*of) => Some(Order::None),
        ("int2" | "int4" | "int8" | "numeric", [of, ..]) if is_number(*of) && is_first_alone => Some(Order::Kept),
        ("date" | "timestamp" | "timestamptz", [of]) if is_moment(*of) => Some(Order::Kept),
        ("timezone", [Text | Interval, of]) if is_moment(*of) && is_last_alone => Some(Order::Kept),
        ("date_trunc", [Text, of, ..]) if is_moment(*of) && !varies(&arguments[0]) => {
            (!arguments.iter().skip(2).any(varies)).then_some(Order::Kept)
        }
        ("extract" | "date_part", [Text, of]) if is_moment(*of) && is_last_alone => Some(Order::None),
        _ => None,
    }
}
