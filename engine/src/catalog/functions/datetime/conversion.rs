//! Casts, precision, zones, constructors and the transaction's time.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array};
use jiff::tz::TimeZone;

use super::super::vector::{operand, wrong_operand};
use super::super::{EvalContext, EvalError, Function, Operand, Volatility};
use super::Evaluated;
use super::columns::{Source, each, each_pair, number_column, numbers, packed, span_column, spans, unpacked};
use crate::types::PgType::{Date, Float8, Int4, Interval as IntervalType, Text, Time, Timestamp, Timestamptz};
use crate::types::datetime::arithmetic::time_of_day;
use crate::types::datetime::calendar::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE, check_timestamp, is_finite, split,
};
use crate::types::datetime::input::round_timestamp;
use crate::types::datetime::zone::{OffsetCursor, named};
use crate::types::datetime::{DateTimeError, arithmetic};
use crate::types::value::Interval;
use crate::types::{Value, interval};

/// A text operand that is one for all rows; None is NULL.
pub(super) fn scalar_text(operands: &[Operand], index: usize) -> Result<Option<&str>, EvalError> {
    match operand(operands, index)? {
        Operand::Scalar(Value::Null) => Ok(None),
        Operand::Scalar(Value::Text(text)) => Ok(Some(text)),
        Operand::Scalar(_) => Err(wrong_operand()),
        Operand::Column(_) => Err(EvalError::Beyond("a unit, zone or pattern that differs by row".to_owned())),
    }
}

/// The zone that an operand names; None is NULL.
pub(super) fn zone_operand(operands: &[Operand], index: usize) -> Result<Option<TimeZone>, EvalError> {
    let Some(name) = scalar_text(operands, index)? else { return Ok(None) };
    named(name).map(Some).ok_or_else(|| EvalError::Beyond("a time zone of that name".to_owned()))
}

pub(super) fn transaction_time(c: &EvalContext<'_>) -> Result<i64, EvalError> {
    c.transaction_time.ok_or_else(|| EvalError::Beyond("the transaction's time is not known".to_owned()))
}

fn now(_: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    Ok(number_column(Some((vec![transaction_time(c)?; rows], None)), rows))
}

fn map_times(o: &[Operand], rows: usize, f: impl FnMut(i64) -> Result<i64, DateTimeError>) -> Evaluated {
    Ok(number_column(each(numbers::<i64>(o, 0)?, rows, f)?, rows))
}

fn date_to_local(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    Ok(number_column(each(numbers::<i32>(o, 0)?, rows, arithmetic::date_to_timestamp)?, rows))
}

fn date_to_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    let results = each(numbers::<i32>(o, 0)?, rows, |days| arithmetic::date_to_timestamptz(days, cursor))?;
    Ok(number_column(results, rows))
}

fn local_to_date(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let results = each(numbers::<i64>(o, 0)?, rows, |local| Ok(arithmetic::timestamp_to_date(local)))?;
    Ok(number_column(results, rows))
}

fn moment_to_date(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    let results = each(numbers::<i64>(o, 0)?, rows, |moment| {
        let local = if is_finite(moment) { cursor.to_local(moment) } else { moment };
        Ok(arithmetic::timestamp_to_date(local))
    })?;
    Ok(number_column(results, rows))
}

fn local_to_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    map_times(o, rows, |local| arithmetic::timestamp_to_timestamptz(local, cursor))
}

fn moment_to_local(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    map_times(o, rows, |moment| arithmetic::timestamptz_to_timestamp(moment, cursor))
}

/// timestamp_time and its kin are NULL for infinity.
fn time_of(o: &[Operand], rows: usize, mut to_local: impl FnMut(i64) -> i64) -> Evaluated {
    let source = numbers::<i64>(o, 0)?;
    if let Some(source) = source
        && (0..rows).any(|row| source.is_valid(row) && !is_finite(source.get(row)))
    {
        return Err(EvalError::Beyond("time of infinity".to_owned()));
    }
    Ok(number_column(each(source, rows, |time| Ok(split(to_local(time)).1))?, rows))
}

fn local_to_time(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    time_of(o, rows, |local| local)
}

fn moment_to_time(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    time_of(o, rows, |moment| cursor.to_local(moment))
}

fn span_to_time(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let f = |span| {
        let microseconds = unpacked(span).microseconds;
        // PostgreSQL counts the days that are lacking, which wraps there (date.c, interval_time).
        match microseconds < i64::MIN + 2 * MICROSECONDS_PER_DAY {
            true => Err(DateTimeError::Beyond("times of intervals of minus 292 thousand years")),
            false => Ok(time_of_day(microseconds)),
        }
    };
    Ok(number_column(each(spans(o, 0)?, rows, f)?, rows))
}

fn time_to_span(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let f = |microseconds: i64| Ok(packed(&Interval { microseconds, ..Interval::default() }));
    Ok(span_column(each(numbers::<i64>(o, 0)?, rows, f)?, rows))
}

/// timestamp_scale, timestamptz_scale, time_scale.
fn round_times(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let results =
        each_pair(numbers::<i64>(o, 0)?, numbers::<i32>(o, 1)?, rows, |time, typmod| Ok(round_timestamp(time, typmod)));
    Ok(number_column(results?, rows))
}

fn adjust_spans(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let results = each_pair(spans(o, 0)?, numbers::<i32>(o, 1)?, rows, |span, typmod| {
        Ok(packed(&interval::adjust(&unpacked(span), typmod)?))
    });
    Ok(span_column(results?, rows))
}

fn local_in_zone(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let Some(zone) = zone_operand(o, 0)? else { return Ok(number_column::<i64>(None, rows)) };
    let cursor = &mut OffsetCursor::new(&zone);
    let results = each(numbers::<i64>(o, 1)?, rows, |local| arithmetic::timestamp_to_timestamptz(local, cursor))?;
    Ok(number_column(results, rows))
}

fn moment_in_zone(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let Some(zone) = zone_operand(o, 0)? else { return Ok(number_column::<i64>(None, rows)) };
    let cursor = &mut OffsetCursor::new(&zone);
    let results = each(numbers::<i64>(o, 1)?, rows, |moment| arithmetic::timestamptz_to_timestamp(moment, cursor))?;
    Ok(number_column(results, rows))
}

/// timestamp_izone and timestamptz_izone: the interval is the offset east of UTC, whole seconds of it. They hold it, west of UTC
/// where `sign` is 1, in an int, which 596,524 hours do not fit into: it keeps the lower 32 bits.
fn at_offset(o: &[Operand], rows: usize, sign: i64) -> Evaluated {
    let results = each_pair(spans(o, 0)?, numbers::<i64>(o, 1)?, rows, |span, time: i64| {
        let span = unpacked(span);
        if !is_finite(time) {
            return Ok(time);
        }
        if span.months != 0 || span.days != 0 {
            return Err(DateTimeError::Raises("interval time zone must not include months or days"));
        }
        let zone = (-sign * (span.microseconds / 1_000_000)) as i32;
        check_timestamp(time.checked_sub(i64::from(zone) * 1_000_000).ok_or(DateTimeError::TIMESTAMP_RANGE)?)
    });
    Ok(number_column(results?, rows))
}

fn date_and_time(o: &[Operand], rows: usize, mut f: impl FnMut(i64) -> Result<i64, DateTimeError>) -> Evaluated {
    let results = each_pair(numbers::<i32>(o, 0)?, numbers::<i64>(o, 1)?, rows, |days, time: i64| {
        let midnight = arithmetic::date_to_timestamp(days)?;
        if is_finite(midnight) { f(check_timestamp(midnight.wrapping_add(time))?) } else { Ok(midnight) }
    });
    Ok(number_column(results?, rows))
}

fn date_and_time_to_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    date_and_time(o, rows, |local| arithmetic::timestamp_to_timestamptz(local, cursor))
}

fn from_epoch(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    Ok(number_column(each(numbers::<f64>(o, 0)?, rows, arithmetic::from_epoch)?, rows))
}

/// Operands of a constructor, row by row; None in a row: NULL.
struct Row<'a> {
    integers: Vec<Option<Source<'a, i32>>>,
    seconds: Option<Option<Source<'a, f64>>>,
}

impl<'a> Row<'a> {
    /// `integers` int4 operands, then, if `has_seconds`, one float8.
    fn new(o: &'a [Operand], integers: usize, has_seconds: Seconds) -> Result<Self, EvalError> {
        let seconds = match has_seconds {
            Seconds::Last => Some(numbers::<f64>(o, integers)?),
            Seconds::Absent => None,
        };
        Ok(Self { integers: (0..integers).map(|index| numbers::<i32>(o, index)).collect::<Result<_, _>>()?, seconds })
    }

    fn read(&self, row: usize, integers: &mut [i32]) -> Option<f64> {
        for (slot, source) in integers.iter_mut().zip(&self.integers) {
            *slot = source.filter(|source| source.is_valid(row))?.get(row);
        }
        match &self.seconds {
            None => Some(0.0),
            Some(source) => Some(source.filter(|source| source.is_valid(row))?.get(row)),
        }
    }
}

enum Seconds {
    Last,
    Absent,
}

fn make_date(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let source = Row::new(o, 3, Seconds::Absent)?;
    let mut fields = [0; 3];
    let dates = (0..rows).map(|row| match source.read(row, &mut fields) {
        None => Ok(None),
        Some(_) => arithmetic::make_date(fields[0], fields[1], fields[2]).map(Some),
    });
    let dates: Result<Int32Array, DateTimeError> = dates.collect();
    Ok(Arc::new(dates?) as ArrayRef)
}

fn make_times(
    o: &[Operand],
    rows: usize,
    integers: usize,
    mut f: impl FnMut(&[i32], f64) -> Result<i64, DateTimeError>,
) -> Evaluated {
    let source = Row::new(o, integers, Seconds::Last)?;
    let mut fields = vec![0; integers];
    let times = (0..rows).map(|row| source.read(row, &mut fields).map(|seconds| f(&fields, seconds)).transpose());
    let times: Result<arrow::array::Int64Array, DateTimeError> = times.collect();
    Ok(Arc::new(times?) as ArrayRef)
}

fn make_time(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    make_times(o, rows, 2, |fields, seconds| arithmetic::make_time(fields[0], fields[1], seconds))
}

fn local_of(fields: &[i32], seconds: f64) -> Result<i64, DateTimeError> {
    let days = arithmetic::make_date(fields[0], fields[1], fields[2])?;
    let time = arithmetic::make_time(fields[3], fields[4], seconds)?;
    check_timestamp(arithmetic::date_to_timestamp(days)?.checked_add(time).ok_or(DateTimeError::TIMESTAMP_RANGE)?)
}

fn make_local(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    make_times(o, rows, 5, local_of)
}

fn make_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    make_times(o, rows, 5, |fields, seconds| arithmetic::timestamp_to_timestamptz(local_of(fields, seconds)?, cursor))
}

/// Years, months, weeks, days, hours, minutes and seconds; all given, the binder fills in the defaults.
fn make_interval(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let source = Row::new(o, 6, Seconds::Last)?;
    let mut fields = [0; 6];
    let mut span = |row| {
        let Some(seconds) = source.read(row, &mut fields) else { return Ok(None) };
        let [years, months, weeks, days, hours, minutes] = fields;
        let seconds = (seconds * 1e6).round_ties_even();
        let overflow = DateTimeError::INTERVAL_RANGE;
        if !seconds.is_finite() || seconds.abs() > 9e18 {
            return Err(overflow);
        }
        let microseconds = i64::from(hours) * MICROSECONDS_PER_HOUR + i64::from(minutes) * MICROSECONDS_PER_MINUTE;
        let interval = Interval {
            months: years.checked_mul(12).and_then(|years| years.checked_add(months)).ok_or(overflow)?,
            days: weeks.checked_mul(7).and_then(|weeks| weeks.checked_add(days)).ok_or(overflow)?,
            microseconds: microseconds.checked_add(seconds as i64).ok_or(overflow)?,
        };
        Ok(Some(packed(&interval)))
    };
    let spans: Result<arrow::array::IntervalMonthDayNanoArray, DateTimeError> = (0..rows).map(&mut span).collect();
    Ok(Arc::new(spans?) as ArrayRef)
}

const fn by_clock(name: &'static str, source: &'static str) -> Function {
    Function { volatility: Volatility::Time, ..Function::immutable(name, &[], Timestamptz, now, source) }
}

pub(in super::super) static ENTRIES: &[Function] = &[
    by_clock("now", "timestamp.c now"),
    by_clock("transaction_timestamp", "timestamp.c now"),
    by_clock("statement_timestamp", "timestamp.c statement_timestamp"),
    Function::immutable("timestamp", &[Date], Timestamp, date_to_local, "date.c date_timestamp"),
    Function::stable("timestamptz", &[Date], Timestamptz, date_to_moment, "date.c date_timestamptz"),
    Function::immutable("date", &[Timestamp], Date, local_to_date, "date.c timestamp_date"),
    Function::stable("date", &[Timestamptz], Date, moment_to_date, "date.c timestamptz_date"),
    Function::stable("timestamptz", &[Timestamp], Timestamptz, local_to_moment, "timestamp.c timestamp_timestamptz"),
    Function::stable("timestamp", &[Timestamptz], Timestamp, moment_to_local, "timestamp.c timestamptz_timestamp"),
    Function::immutable("time", &[Timestamp], Time, local_to_time, "date.c timestamp_time"),
    Function::stable("time", &[Timestamptz], Time, moment_to_time, "date.c timestamptz_time"),
    Function::immutable("time", &[IntervalType], Time, span_to_time, "date.c interval_time"),
    Function::immutable("interval", &[Time], IntervalType, time_to_span, "date.c time_interval"),
    Function::immutable("timestamp", &[Timestamp, Int4], Timestamp, round_times, "timestamp.c timestamp_scale"),
    Function::immutable("timestamptz", &[Timestamptz, Int4], Timestamptz, round_times, "timestamp.c timestamptz_scale"),
    Function::immutable("time", &[Time, Int4], Time, round_times, "date.c time_scale"),
    Function::immutable("interval", &[IntervalType, Int4], IntervalType, adjust_spans, "timestamp.c interval_scale"),
    Function::immutable(
        "timestamp",
        &[Date, Time],
        Timestamp,
        |o, n, _| date_and_time(o, n, Ok),
        "date.c datetime_timestamp",
    ),
    Function::stable("timestamptz", &[Date, Time], Timestamptz, date_and_time_to_moment, "pg_proc.dat timestamptz"),
    Function::immutable("timezone", &[Text, Timestamp], Timestamptz, local_in_zone, "timestamp.c timestamp_zone"),
    Function::immutable("timezone", &[Text, Timestamptz], Timestamp, moment_in_zone, "timestamp.c timestamptz_zone"),
    Function::immutable(
        "timezone",
        &[IntervalType, Timestamp],
        Timestamptz,
        |o, n, _| at_offset(o, n, -1),
        "timestamp.c timestamp_izone",
    ),
    Function::immutable(
        "timezone",
        &[IntervalType, Timestamptz],
        Timestamp,
        |o, n, _| at_offset(o, n, 1),
        "timestamp.c timestamptz_izone",
    ),
    Function::immutable("to_timestamp", &[Float8], Timestamptz, from_epoch, "timestamp.c float8_timestamptz"),
    Function::immutable("make_date", &[Int4, Int4, Int4], Date, make_date, "date.c make_date"),
    Function::immutable("make_time", &[Int4, Int4, Float8], Time, make_time, "date.c make_time"),
    Function::immutable(
        "make_timestamp",
        &[Int4, Int4, Int4, Int4, Int4, Float8],
        Timestamp,
        make_local,
        "timestamp.c make_timestamp",
    ),
    Function::stable(
        "make_timestamptz",
        &[Int4, Int4, Int4, Int4, Int4, Float8],
        Timestamptz,
        make_moment,
        "timestamp.c make_timestamptz",
    ),
    Function::immutable(
        "make_interval",
        &[Int4, Int4, Int4, Int4, Int4, Int4, Float8],
        IntervalType,
        make_interval,
        "timestamp.c make_interval",
    ),
];
