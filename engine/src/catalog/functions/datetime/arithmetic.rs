//! Sums, differences and multiples.

use super::super::{EvalContext, Function, Operand};
use super::Evaluated;
use super::columns::{each, each_pair, number_column, numbers, packed, span_column, spans, unpacked};
use crate::types::PgType::{Date, Float8, Int4, Interval as IntervalType, Time, Timestamp, Timestamptz};
use crate::types::datetime::calendar::{check_timestamp, is_finite, is_finite_date};
use crate::types::datetime::zone::OffsetCursor;
use crate::types::datetime::{DateTimeError, arithmetic};
use crate::types::interval;
use crate::types::value::Interval;

use arrow::datatypes::IntervalMonthDayNano;

/// A timestamp operand and an interval operand, whichever comes first.
fn shift_timestamp(
    o: &[Operand],
    rows: usize,
    order: [usize; 2],
    f: impl FnMut(i64, Interval) -> Result<i64, DateTimeError>,
) -> Evaluated {
    let mut f = f;
    let results =
        each_pair(numbers::<i64>(o, order[0])?, spans(o, order[1])?, rows, |time, span| f(time, unpacked(span)));
    Ok(number_column(results?, rows))
}

fn shift_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>, order: [usize; 2]) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    shift_timestamp(o, rows, order, |moment, span| arithmetic::add_to_timestamptz(moment, &span, cursor))
}

fn unshift_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    shift_timestamp(o, rows, [0, 1], |moment, span| {
        arithmetic::add_to_timestamptz(moment, &interval::negate(&span)?, cursor)
    })
}

fn shift_local(o: &[Operand], rows: usize, order: [usize; 2]) -> Evaluated {
    shift_timestamp(o, rows, order, |local, span| arithmetic::add_to_timestamp(local, &span))
}

fn unshift_local(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    shift_timestamp(o, rows, [0, 1], |local, span| arithmetic::add_to_timestamp(local, &interval::negate(&span)?))
}

fn shift_date(o: &[Operand], rows: usize, order: [usize; 2]) -> Evaluated {
    let results = each_pair(numbers::<i32>(o, order[0])?, spans(o, order[1])?, rows, |days, span| {
        arithmetic::add_to_timestamp(arithmetic::date_to_timestamp(days)?, &unpacked(span))
    });
    Ok(number_column(results?, rows))
}

fn unshift_date(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let results = each_pair(numbers::<i32>(o, 0)?, spans(o, 1)?, rows, |days, span| {
        arithmetic::add_to_timestamp(arithmetic::date_to_timestamp(days)?, &interval::negate(&unpacked(span))?)
    });
    Ok(number_column(results?, rows))
}

fn add_days(o: &[Operand], rows: usize, order: [usize; 2], sign: i64) -> Evaluated {
    let results = each_pair(numbers::<i32>(o, order[0])?, numbers::<i32>(o, order[1])?, rows, |days, count: i32| {
        arithmetic::add_days(days, sign * i64::from(count))
    });
    Ok(number_column(results?, rows))
}

fn subtract_dates(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let results = each_pair(numbers::<i32>(o, 0)?, numbers::<i32>(o, 1)?, rows, |a: i32, b: i32| {
        if !is_finite_date(a) || !is_finite_date(b) {
            return Err(DateTimeError::Raises("cannot subtract infinite dates"));
        }
        Ok(a.wrapping_sub(b))
    });
    Ok(number_column(results?, rows))
}

fn add_time_to_date(o: &[Operand], rows: usize, order: [usize; 2]) -> Evaluated {
    let results = each_pair(numbers::<i32>(o, order[0])?, numbers::<i64>(o, order[1])?, rows, |days, time: i64| {
        let midnight = arithmetic::date_to_timestamp(days)?;
        if is_finite(midnight) { check_timestamp(midnight.wrapping_add(time)) } else { Ok(midnight) }
    });
    Ok(number_column(results?, rows))
}

fn shift_time(o: &[Operand], rows: usize, order: [usize; 2], sign: i64) -> Evaluated {
    shift_timestamp(o, rows, order, |time, span| {
        // PostgreSQL's sum wraps there (date.c, time_pl_interval).
        let sum = span.microseconds.checked_mul(sign).and_then(|span| time.checked_add(span));
        sum.map(arithmetic::time_of_day)
            .ok_or(DateTimeError::Beyond("times of day and intervals of 292 thousand years"))
    })
}

fn subtract_timestamps(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let results = each_pair(numbers::<i64>(o, 0)?, numbers::<i64>(o, 1)?, rows, |a, b| {
        Ok(packed(&arithmetic::subtract_timestamps(a, b)?))
    });
    Ok(span_column(results?, rows))
}

fn subtract_times(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let results = each_pair(numbers::<i64>(o, 0)?, numbers::<i64>(o, 1)?, rows, |a: i64, b: i64| {
        Ok(IntervalMonthDayNano::new(0, 0, a.wrapping_sub(b)))
    });
    Ok(span_column(results?, rows))
}

fn combine_spans(
    o: &[Operand],
    rows: usize,
    f: impl Fn(&Interval, &Interval) -> Result<Interval, DateTimeError>,
) -> Evaluated {
    let results = each_pair(spans(o, 0)?, spans(o, 1)?, rows, |a, b| Ok(packed(&f(&unpacked(a), &unpacked(b))?)));
    Ok(span_column(results?, rows))
}

fn map_spans(o: &[Operand], rows: usize, f: impl Fn(&Interval) -> Result<Interval, DateTimeError>) -> Evaluated {
    Ok(span_column(each(spans(o, 0)?, rows, |span| Ok(packed(&f(&unpacked(span))?)))?, rows))
}

fn scale_spans(
    o: &[Operand],
    rows: usize,
    order: [usize; 2],
    f: impl Fn(&Interval, f64) -> Result<Interval, DateTimeError>,
) -> Evaluated {
    let results = each_pair(spans(o, order[0])?, numbers::<f64>(o, order[1])?, rows, |span, factor| {
        Ok(packed(&f(&unpacked(span), factor)?))
    });
    Ok(span_column(results?, rows))
}

pub(in super::super) static ENTRIES: &[Function] = &[
    Function::immutable("+", &[Date, Int4], Date, |o, n, _| add_days(o, n, [0, 1], 1), "date.c date_pli"),
    Function::immutable("+", &[Int4, Date], Date, |o, n, _| add_days(o, n, [1, 0], 1), "date.c date_pli"),
    Function::immutable("-", &[Date, Int4], Date, |o, n, _| add_days(o, n, [0, 1], -1), "date.c date_mii"),
    Function::immutable("-", &[Date, Date], Int4, subtract_dates, "date.c date_mi"),
    Function::immutable(
        "+",
        &[Date, Time],
        Timestamp,
        |o, n, _| add_time_to_date(o, n, [0, 1]),
        "date.c datetime_timestamp",
    ),
    Function::immutable(
        "+",
        &[Time, Date],
        Timestamp,
        |o, n, _| add_time_to_date(o, n, [1, 0]),
        "date.c datetime_timestamp",
    ),
    Function::immutable(
        "+",
        &[Date, IntervalType],
        Timestamp,
        |o, n, _| shift_date(o, n, [0, 1]),
        "date.c date_pl_interval",
    ),
    Function::immutable(
        "+",
        &[IntervalType, Date],
        Timestamp,
        |o, n, _| shift_date(o, n, [1, 0]),
        "date.c date_pl_interval",
    ),
    Function::immutable("-", &[Date, IntervalType], Timestamp, unshift_date, "date.c date_mi_interval"),
    Function::immutable(
        "+",
        &[Time, IntervalType],
        Time,
        |o, n, _| shift_time(o, n, [0, 1], 1),
        "date.c time_pl_interval",
    ),
    Function::immutable(
        "+",
        &[IntervalType, Time],
        Time,
        |o, n, _| shift_time(o, n, [1, 0], 1),
        "date.c time_pl_interval",
    ),
    Function::immutable(
        "-",
        &[Time, IntervalType],
        Time,
        |o, n, _| shift_time(o, n, [0, 1], -1),
        "date.c time_mi_interval",
    ),
    Function::immutable("-", &[Time, Time], IntervalType, subtract_times, "date.c time_mi_time"),
    Function::immutable(
        "+",
        &[Timestamp, IntervalType],
        Timestamp,
        |o, n, _| shift_local(o, n, [0, 1]),
        "timestamp.c timestamp_pl_interval",
    ),
    Function::immutable(
        "+",
        &[IntervalType, Timestamp],
        Timestamp,
        |o, n, _| shift_local(o, n, [1, 0]),
        "timestamp.c timestamp_pl_interval",
    ),
    Function::immutable("-", &[Timestamp, IntervalType], Timestamp, unshift_local, "timestamp.c timestamp_mi_interval"),
    Function::stable(
        "+",
        &[Timestamptz, IntervalType],
        Timestamptz,
        |o, n, c| shift_moment(o, n, c, [0, 1]),
        "timestamp.c timestamptz_pl_interval",
    ),
    Function::stable(
        "+",
        &[IntervalType, Timestamptz],
        Timestamptz,
        |o, n, c| shift_moment(o, n, c, [1, 0]),
        "timestamp.c timestamptz_pl_interval",
    ),
    Function::stable(
        "-",
        &[Timestamptz, IntervalType],
        Timestamptz,
        unshift_moment,
        "timestamp.c timestamptz_mi_interval",
    ),
    Function::immutable("-", &[Timestamp, Timestamp], IntervalType, subtract_timestamps, "timestamp.c timestamp_mi"),
    Function::immutable(
        "-",
        &[Timestamptz, Timestamptz],
        IntervalType,
        subtract_timestamps,
        "timestamp.c timestamp_mi",
    ),
    Function::immutable(
        "+",
        &[IntervalType, IntervalType],
        IntervalType,
        |o, n, _| combine_spans(o, n, interval::add),
        "timestamp.c interval_pl",
    ),
    Function::immutable(
        "-",
        &[IntervalType, IntervalType],
        IntervalType,
        |o, n, _| combine_spans(o, n, interval::subtract),
        "timestamp.c interval_mi",
    ),
    Function::immutable(
        "-",
        &[IntervalType],
        IntervalType,
        |o, n, _| map_spans(o, n, interval::negate),
        "timestamp.c interval_um",
    ),
    Function::immutable(
        "*",
        &[IntervalType, Float8],
        IntervalType,
        |o, n, _| scale_spans(o, n, [0, 1], interval::multiply),
        "timestamp.c interval_mul",
    ),
    Function::immutable(
        "*",
        &[Float8, IntervalType],
        IntervalType,
        |o, n, _| scale_spans(o, n, [1, 0], interval::multiply),
        "timestamp.c mul_d_interval",
    ),
    Function::immutable(
        "/",
        &[IntervalType, Float8],
        IntervalType,
        |o, n, _| scale_spans(o, n, [0, 1], interval::divide),
        "timestamp.c interval_div",
    ),
];
