//! date_trunc, extract, date_part, age, date_bin and the justifications.

use arrow::array::ArrayRef;
use arrow::buffer::{BooleanBuffer, NullBuffer};

use super::super::vector::Native;
use super::super::{EvalContext, EvalError, Function, Operand, Volatility};
use super::Evaluated;
use super::columns::{
    Source, compare_each, decimal_column, each, each_pair, number_column, numbers, packed, span_column, spans, unpacked,
};
use super::conversion::{scalar_text, zone_operand};
use crate::types::Numeric as Number;
use crate::types::PgType::{Bool, Date, Float8, Interval as IntervalType, Numeric, Text, Time, Timestamp, Timestamptz};
use crate::types::datetime::calendar::{MICROSECONDS_PER_DAY, is_finite, is_finite_date, split};
use crate::types::datetime::field::{self, Field};
use crate::types::datetime::zone::OffsetCursor;
use crate::types::datetime::{DateTimeError, arithmetic};
use crate::types::interval;
use crate::types::numeric::NumericBuilder;

/// Evaluates `$body` with `$name` bound to the field, a constant in the cases that dashboards ask for: each of those
/// gets a loop without the choice in it.
macro_rules! per_field {
    ($field:expr, |$name:ident| $body:expr) => {
        per_field!($field, [Hour, Day, Week, Month, Quarter, Year, DayOfWeek, Epoch], |$name| $body)
    };
    ($field:expr, [$($constant:ident),+], |$name:ident| $body:expr) => {
        match $field {
            $(Field::$constant => {
                let $name = Field::$constant;
                $body
            })+
            $name => $body,
        }
    };
}

/// The unit, the first operand. None: NULL.
fn unit(operands: &[Operand]) -> Result<Option<Field>, EvalError> {
    let Some(name) = scalar_text(operands, 0)? else { return Ok(None) };
    let field = Field::of_name(name).ok_or_else(|| EvalError::Beyond("a date/time unit".to_owned()))?;
    Ok(Some(field))
}

fn truncatable(operands: &[Operand]) -> Result<Option<Field>, EvalError> {
    match unit(operands)? {
        Some(field) if !field.is_truncatable() => Err(EvalError::Raises("unit not supported by date_trunc".to_owned())),
        field => Ok(field),
    }
}

fn truncate_local(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let Some(field) = truncatable(o)? else { return Ok(number_column::<i64>(None, rows)) };
    let source = numbers::<i64>(o, 1)?;
    let results = per_field!(field, |field| each(source, rows, |local| {
        if is_finite(local) { field::truncate_timestamp(field, local) } else { Ok(local) }
    }));
    Ok(number_column(results?, rows))
}

fn truncate_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    truncate_in_zone(o, rows, &mut OffsetCursor::new(&c.settings.time_zone))
}

fn truncate_in_named_zone(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let Some(zone) = zone_operand(o, 2)? else { return Ok(number_column::<i64>(None, rows)) };
    truncate_in_zone(o, rows, &mut OffsetCursor::new(&zone))
}

fn truncate_in_zone(o: &[Operand], rows: usize, cursor: &mut OffsetCursor) -> Evaluated {
    let Some(field) = truncatable(o)? else { return Ok(number_column::<i64>(None, rows)) };
    let source = numbers::<i64>(o, 1)?;
    let results = per_field!(field, |field| each(source, rows, |moment| {
        if is_finite(moment) { field::truncate_timestamptz(field, moment, cursor) } else { Ok(moment) }
    }));
    Ok(number_column(results?, rows))
}

fn truncate_span(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let Some(field) = truncatable(o)? else { return Ok(span_column(None, rows)) };
    let results = each(spans(o, 1)?, rows, |span| Ok(packed(&field::truncate_interval(field, &unpacked(span))?)));
    Ok(span_column(results?, rows))
}

/// Rows that are neither NULL nor infinite; None: all of them are finite.
fn mask_infinite<T: Copy>(
    source: Option<Source<'_, T>>,
    rows: usize,
    is_finite: impl Fn(T) -> bool,
) -> Option<NullBuffer> {
    let source = source?;
    let is_infinite = |row: usize| source.is_valid(row) && !is_finite(source.get(row));
    if !(0..rows).any(is_infinite) {
        return None;
    }
    Some(NullBuffer::new(BooleanBuffer::collect_bool(rows, |row| !is_infinite(row))))
}

fn masked<R>(
    results: Option<(Vec<R>, Option<NullBuffer>)>,
    mask: Option<NullBuffer>,
) -> Option<(Vec<R>, Option<NullBuffer>)> {
    results.map(|(values, nulls)| (values, NullBuffer::union(nulls.as_ref(), mask.as_ref())))
}

fn no_numbers(rows: usize) -> ArrayRef {
    decimal_column(None, 0, rows)
}

/// extract from a column of `T`; `scale` is that of every result of `f`. Infinities become NULL where the field comes
/// and goes, infinity where it grows (NonFiniteTimestampTzPart).
fn extract_numbers<T: Native>(
    o: &[Operand],
    rows: usize,
    scale: impl Fn(Field) -> u8,
    is_finite: impl Fn(T) -> bool,
    mut f: impl FnMut(Field, T) -> Result<i64, DateTimeError>,
) -> Evaluated {
    let Some(field) = unit(o)? else { return Ok(no_numbers(rows)) };
    let source = numbers::<T>(o, 1)?;
    let mask = mask_infinite(source, rows, &is_finite);
    if mask.is_some() {
        // A unit that the type does not have raises for infinity too.
        f(field, T::default())?;
    }
    if mask.is_some() && field.is_monotonic() {
        return extract_row_by_row(source, rows, |value| {
            let infinity = if value > T::default() { Number::PositiveInfinity } else { Number::NegativeInfinity };
            let finite = |mantissa| Number::Finite { mantissa: i128::from(mantissa), scale: u16::from(scale(field)) };
            Ok(if is_finite(value) { finite(f(field, value)?) } else { infinity })
        });
    }
    let results = per_field!(field, |field| {
        each(source, rows, |value| if is_finite(value) { f(field, value) } else { Ok(0) })
    })?;
    Ok(decimal_column(masked(results, mask), scale(field), rows))
}

/// For what does not have one scale in all rows.
fn extract_row_by_row<T: Native>(
    source: Option<Source<'_, T>>,
    rows: usize,
    mut f: impl FnMut(T) -> Result<Number, EvalError>,
) -> Evaluated {
    let mut builder = NumericBuilder::with_capacity(rows);
    for row in 0..rows {
        match source.filter(|source| source.is_valid(row)) {
            Some(source) => builder.append(f(source.get(row))?),
            None => builder.append_null(),
        }
    }
    Ok(builder.finish())
}

fn extract_from_date(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    // extract_date counts whole seconds even for epoch.
    extract_numbers::<i32>(o, rows, |_| 0, is_finite_date, field::extract_date)
}

fn extract_from_time(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    extract_numbers::<i64>(o, rows, field::extract_scale, |_| true, field::extract_time)
}

fn extract_from_local(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    if unit(o)? == Some(Field::Julian) {
        return extract_row_by_row(numbers::<i64>(o, 1)?, rows, julian);
    }
    extract_numbers::<i64>(o, rows, field::extract_scale, is_finite, field::extract_timestamp)
}

fn extract_from_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    if unit(o)? == Some(Field::Julian) {
        return extract_row_by_row(numbers::<i64>(o, 1)?, rows, |moment| {
            julian(if is_finite(moment) { cursor.to_local(moment) } else { moment })
        });
    }
    extract_numbers::<i64>(o, rows, field::extract_scale, is_finite, |field, moment| {
        field::extract_timestamptz(field, moment, cursor)
    })
}

/// The Julian day and its fraction, with the digits that numeric division gives it.
fn julian(local: i64) -> Result<Number, EvalError> {
    match local {
        i64::MAX => return Ok(Number::PositiveInfinity),
        i64::MIN => return Ok(Number::NegativeInfinity),
        _ => {}
    }
    let (days, microseconds) = split(local);
    let fraction = Number::from_i64(microseconds).div(Number::from_i64(MICROSECONDS_PER_DAY));
    let day = Number::from_i64(field::extract_date(Field::Julian, days)?);
    fraction
        .and_then(|fraction| day.add(fraction))
        .map_err(|_| EvalError::Beyond("Julian date of too many digits".to_owned()))
}

fn extract_from_span(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let Some(field) = unit(o)? else { return Ok(no_numbers(rows)) };
    let results = each(spans(o, 1)?, rows, |span| field::extract_interval(field, &unpacked(span)))?;
    Ok(decimal_column(results, field::extract_scale(field), rows))
}

/// date_part of infinity is infinite where extract's is.
fn parts<T: Native>(
    o: &[Operand],
    rows: usize,
    is_finite: impl Fn(T) -> bool,
    mut f: impl FnMut(Field, T) -> Result<f64, DateTimeError>,
) -> Evaluated {
    let Some(field) = unit(o)? else { return Ok(number_column::<f64>(None, rows)) };
    let source = numbers::<T>(o, 1)?;
    f(field, T::default())?;
    let infinity = |value: T| if value > T::default() { f64::INFINITY } else { f64::NEG_INFINITY };
    let results = per_field!(field, |field| {
        each(source, rows, |value| if is_finite(value) { f(field, value) } else { Ok(infinity(value)) })
    })?;
    let mask = if field.is_monotonic() { None } else { mask_infinite(source, rows, is_finite) };
    Ok(number_column(masked(results, mask), rows))
}

fn part_of_date(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    parts::<i32>(o, rows, is_finite_date, |field, days| {
        field::part_of_timestamp(field, arithmetic::date_to_timestamp(days)?)
    })
}

fn part_of_time(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    parts::<i64>(o, rows, |_| true, field::part_of_time)
}

fn part_of_local(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    parts::<i64>(o, rows, is_finite, field::part_of_timestamp)
}

fn part_of_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    parts::<i64>(o, rows, is_finite, |field, moment| field::part_of_timestamptz(field, moment, cursor))
}

fn part_of_span(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let Some(field) = unit(o)? else { return Ok(number_column::<f64>(None, rows)) };
    Ok(number_column(each(spans(o, 1)?, rows, |span| field::part_of_interval(field, &unpacked(span)))?, rows))
}

fn age_of_locals(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let results =
        each_pair(numbers::<i64>(o, 0)?, numbers::<i64>(o, 1)?, rows, |a, b| Ok(packed(&arithmetic::age(a, b)?)));
    Ok(span_column(results?, rows))
}

fn age_of_moments(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    let results = each_pair(numbers::<i64>(o, 0)?, numbers::<i64>(o, 1)?, rows, |a, b| {
        let local_a = arithmetic::timestamptz_to_timestamp(a, cursor)?;
        let local_b = arithmetic::timestamptz_to_timestamp(b, cursor)?;
        // The sign is that of the moments (timestamp.c, timestamptz_age), which in a repeated hour is another.
        if a.cmp(&b) != local_a.cmp(&local_b) {
            return Err(DateTimeError::Beyond("age within a repeated hour"));
        }
        Ok(packed(&arithmetic::age(local_a, local_b)?))
    });
    Ok(span_column(results?, rows))
}

/// The midnight that began the transaction's day in the session's zone, as local time.
fn today(c: &EvalContext<'_>) -> Result<i64, EvalError> {
    let now = super::conversion::transaction_time(c)?;
    let local = arithmetic::timestamptz_to_timestamp(now, &mut OffsetCursor::new(&c.settings.time_zone))?;
    Ok(field::truncate_timestamp(Field::Day, local)?)
}

fn age_of_local(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let today = today(c)?;
    Ok(span_column(each(numbers::<i64>(o, 0)?, rows, |b| Ok(packed(&arithmetic::age(today, b)?)))?, rows))
}

fn age_of_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    // Through the moment of that midnight: it may lie in a gap.
    let moment = arithmetic::timestamp_to_timestamptz(today(c)?, cursor)?;
    let today = arithmetic::timestamptz_to_timestamp(moment, cursor)?;
    let results = each(numbers::<i64>(o, 0)?, rows, |b| {
        Ok(packed(&arithmetic::age(today, arithmetic::timestamptz_to_timestamp(b, cursor)?)?))
    });
    Ok(span_column(results?, rows))
}

/// The same for local times and moments.
fn bin(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let Some(stride) = spans(o, 0)? else { return Ok(number_column::<i64>(None, rows)) };
    let Source::Scalar(stride) = stride else {
        return Err(EvalError::Beyond("date_bin with a stride that differs by row".to_owned()));
    };
    let stride = unpacked(stride);
    let results = each_pair(numbers::<i64>(o, 1)?, numbers::<i64>(o, 2)?, rows, |time, origin| {
        arithmetic::bin(&stride, time, origin)
    });
    Ok(number_column(results?, rows))
}

fn spans_alone(
    o: &[Operand],
    rows: usize,
    f: impl Fn(&crate::types::Interval) -> Result<crate::types::Interval, DateTimeError>,
) -> Evaluated {
    Ok(span_column(each(spans(o, 0)?, rows, |span| Ok(packed(&f(&unpacked(span))?)))?, rows))
}

fn are_finite<T: Native>(o: &[Operand], rows: usize, is_finite: impl Fn(T) -> bool) -> Evaluated {
    Ok(compare_each(numbers::<T>(o, 0)?, Some(Source::Scalar(())), rows, |value, ()| is_finite(value)))
}

const fn by_clock(
    name: &'static str,
    arguments: &'static [crate::types::PgType],
    result: crate::types::PgType,
    kernel: super::super::Kernel,
    source: &'static str,
) -> Function {
    Function { volatility: Volatility::Time, ..Function::immutable(name, arguments, result, kernel, source) }
}

pub(in super::super) static ENTRIES: &[Function] = &[
    Function::immutable("date_trunc", &[Text, Timestamp], Timestamp, truncate_local, "timestamp.c timestamp_trunc"),
    Function::stable("date_trunc", &[Text, Timestamptz], Timestamptz, truncate_moment, "timestamp.c timestamptz_trunc"),
    Function::stable(
        "date_trunc",
        &[Text, Timestamptz, Text],
        Timestamptz,
        truncate_in_named_zone,
        "timestamp.c timestamptz_trunc_zone",
    ),
    Function::immutable("date_trunc", &[Text, IntervalType], IntervalType, truncate_span, "timestamp.c interval_trunc"),
    Function::immutable("extract", &[Text, Date], Numeric, extract_from_date, "date.c extract_date"),
    Function::immutable("extract", &[Text, Time], Numeric, extract_from_time, "date.c extract_time"),
    Function::immutable("extract", &[Text, Timestamp], Numeric, extract_from_local, "timestamp.c extract_timestamp"),
    Function::stable("extract", &[Text, Timestamptz], Numeric, extract_from_moment, "timestamp.c extract_timestamptz"),
    Function::immutable("extract", &[Text, IntervalType], Numeric, extract_from_span, "timestamp.c extract_interval"),
    Function::immutable("date_part", &[Text, Date], Float8, part_of_date, "timestamp.c timestamp_part"),
    Function::immutable("date_part", &[Text, Time], Float8, part_of_time, "date.c time_part"),
    Function::immutable("date_part", &[Text, Timestamp], Float8, part_of_local, "timestamp.c timestamp_part"),
    Function::stable("date_part", &[Text, Timestamptz], Float8, part_of_moment, "timestamp.c timestamptz_part"),
    Function::immutable("date_part", &[Text, IntervalType], Float8, part_of_span, "timestamp.c interval_part"),
    Function::immutable("age", &[Timestamp, Timestamp], IntervalType, age_of_locals, "timestamp.c timestamp_age"),
    Function::immutable(
        "age",
        &[Timestamptz, Timestamptz],
        IntervalType,
        age_of_moments,
        "timestamp.c timestamptz_age",
    ),
    by_clock("age", &[Timestamp], IntervalType, age_of_local, "pg_proc.dat age"),
    by_clock("age", &[Timestamptz], IntervalType, age_of_moment, "pg_proc.dat age"),
    Function::immutable("date_bin", &[IntervalType, Timestamp, Timestamp], Timestamp, bin, "timestamp.c timestamp_bin"),
    Function::immutable(
        "date_bin",
        &[IntervalType, Timestamptz, Timestamptz],
        Timestamptz,
        bin,
        "timestamp.c timestamptz_bin",
    ),
    Function::immutable(
        "justify_hours",
        &[IntervalType],
        IntervalType,
        |o, n, _| spans_alone(o, n, interval::justify_hours),
        "timestamp.c interval_justify_hours",
    ),
    Function::immutable(
        "justify_days",
        &[IntervalType],
        IntervalType,
        |o, n, _| spans_alone(o, n, interval::justify_days),
        "timestamp.c interval_justify_days",
    ),
    Function::immutable(
        "justify_interval",
        &[IntervalType],
        IntervalType,
        |o, n, _| spans_alone(o, n, interval::justify_interval),
        "timestamp.c interval_justify_interval",
    ),
    Function::immutable("isfinite", &[Date], Bool, |o, n, _| are_finite(o, n, is_finite_date), "date.c date_finite"),
    Function::immutable(
        "isfinite",
        &[Timestamp],
        Bool,
        |o, n, _| are_finite(o, n, is_finite),
        "timestamp.c timestamp_finite",
    ),
    Function::immutable(
        "isfinite",
        &[Timestamptz],
        Bool,
        |o, n, _| are_finite(o, n, is_finite),
        "timestamp.c timestamp_finite",
    ),
];
