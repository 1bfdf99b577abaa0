//! Comparisons among dates, times, moments and intervals, the cross-type ones included.

use super::super::vector::compare;
use super::super::{EvalContext, Function, Operand};
use super::Evaluated;
use super::columns::{compare_each, each, number_column, numbers, spans, unpacked};
use crate::types::PgType;
use crate::types::PgType::{Bool, Date, Interval as IntervalType, Time, Timestamp, Timestamptz};
use crate::types::datetime::calendar::{MICROSECONDS_PER_DAY, TIMESTAMP_END};
use crate::types::datetime::zone::OffsetCursor;
use crate::types::interval;

fn timestamps(o: &[Operand], rows: usize, _: &EvalContext<'_>, holds: impl Fn(&i64, &i64) -> bool) -> Evaluated {
    compare::<i64, i64>(o, rows, |a, b| holds(&a, &b))
}

fn dates(o: &[Operand], rows: usize, _: &EvalContext<'_>, holds: impl Fn(&i64, &i64) -> bool) -> Evaluated {
    compare::<i32, i32>(o, rows, |a, b| holds(&i64::from(a), &i64::from(b)))
}

/// A date among timestamps (date2timestamp_opt_overflow): one that is later than all of them is still finite.
#[inline]
fn comparable(days: i32) -> i64 {
    match days {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        _ => {
            const FIRST_OUT: i64 = TIMESTAMP_END / MICROSECONDS_PER_DAY;
            let days = i64::from(days);
            if days < FIRST_OUT { days * MICROSECONDS_PER_DAY } else { i64::MAX - 1 }
        }
    }
}

/// The moment of a local time, for comparison: it may lie out of range.
#[inline]
fn comparable_moment(local: i64, cursor: &mut OffsetCursor) -> i64 {
    if local >= TIMESTAMP_END || local == i64::MIN { local } else { cursor.from_local(local) }
}

fn date_timestamp(o: &[Operand], rows: usize, _: &EvalContext<'_>, holds: impl Fn(&i64, &i64) -> bool) -> Evaluated {
    compare::<i32, i64>(o, rows, |a, b| holds(&comparable(a), &b))
}

fn timestamp_date(o: &[Operand], rows: usize, _: &EvalContext<'_>, holds: impl Fn(&i64, &i64) -> bool) -> Evaluated {
    compare::<i64, i32>(o, rows, |a, b| holds(&a, &comparable(b)))
}

fn date_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>, holds: impl Fn(&i64, &i64) -> bool) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    Ok(compare_each(numbers::<i32>(o, 0)?, numbers::<i64>(o, 1)?, rows, |a, b| {
        holds(&comparable_moment(comparable(a), cursor), &b)
    }))
}

fn moment_date(o: &[Operand], rows: usize, c: &EvalContext<'_>, holds: impl Fn(&i64, &i64) -> bool) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    Ok(compare_each(numbers::<i64>(o, 0)?, numbers::<i32>(o, 1)?, rows, |a, b| {
        holds(&a, &comparable_moment(comparable(b), cursor))
    }))
}

fn local_moment(o: &[Operand], rows: usize, c: &EvalContext<'_>, holds: impl Fn(&i64, &i64) -> bool) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    Ok(compare_each(numbers::<i64>(o, 0)?, numbers::<i64>(o, 1)?, rows, |a, b| {
        holds(&comparable_moment(a, cursor), &b)
    }))
}

fn moment_local(o: &[Operand], rows: usize, c: &EvalContext<'_>, holds: impl Fn(&i64, &i64) -> bool) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    Ok(compare_each(numbers::<i64>(o, 0)?, numbers::<i64>(o, 1)?, rows, |a, b| {
        holds(&a, &comparable_moment(b, cursor))
    }))
}

/// What a value of another type is to a column that it is compared with: `column operator value` is `column operator bound`.
pub struct Bounds {
    /// Of the column, and of the value.
    pub types: [PgType; 2],
    /// By the operator; None: there is none for it.
    pub bound: fn(&str) -> Option<&'static Function>,
}

/// For a column of dates: the last date that is not later than the value, or the first that is not earlier.
fn of_order(order: &str, floor: &'static Function, ceiling: &'static Function) -> Option<&'static Function> {
    match order {
        "<=" | ">" => Some(floor),
        "<" | ">=" => Some(ceiling),
        _ => None,
    }
}

pub static BOUNDS: [Bounds; 5] = [
    Bounds { types: [Timestamptz, Date], bound: |_| Some(&MOMENT_OF_DATE) },
    Bounds { types: [Timestamptz, Timestamp], bound: |_| Some(&MOMENT_OF_LOCAL) },
    Bounds { types: [Timestamp, Date], bound: |_| Some(&LOCAL_OF_DATE) },
    Bounds { types: [Date, Timestamp], bound: |order| of_order(order, &DATE_BELOW_LOCAL, &DATE_ABOVE_LOCAL) },
    Bounds { types: [Date, Timestamptz], bound: |order| of_order(order, &DATE_BELOW_MOMENT, &DATE_ABOVE_MOMENT) },
];

static MOMENT_OF_DATE: Function =
    Function::stable("comparable_moment", &[Date], Timestamptz, moment_of_date, "date.c date_cmp_timestamptz_internal");
static MOMENT_OF_LOCAL: Function = Function::stable(
    "comparable_moment",
    &[Timestamp],
    Timestamptz,
    moment_of_local,
    "timestamp.c timestamp_cmp_timestamptz_internal",
);
static LOCAL_OF_DATE: Function =
    Function::immutable("comparable_time", &[Date], Timestamp, local_of_date, "date.c date_cmp_timestamp_internal");
static DATE_BELOW_LOCAL: Function = Function::immutable(
    "date_not_above",
    &[Timestamp],
    Date,
    |o, n, _| days(o, n, below),
    "date.c date_cmp_timestamp_internal",
);
static DATE_ABOVE_LOCAL: Function = Function::immutable(
    "date_not_below",
    &[Timestamp],
    Date,
    |o, n, _| days(o, n, above),
    "date.c date_cmp_timestamp_internal",
);
static DATE_BELOW_MOMENT: Function = Function::stable(
    "date_not_above",
    &[Timestamptz],
    Date,
    |o, n, c| days_of_moments(o, n, c, true),
    "date.c date_cmp_timestamptz_internal",
);
static DATE_ABOVE_MOMENT: Function = Function::stable(
    "date_not_below",
    &[Timestamptz],
    Date,
    |o, n, c| days_of_moments(o, n, c, false),
    "date.c date_cmp_timestamptz_internal",
);

fn moment_of_date(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    let moments = each(numbers::<i32>(o, 0)?, rows, |days| Ok(comparable_moment(comparable(days), cursor)))?;
    Ok(number_column(moments, rows))
}

fn moment_of_local(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    let moments = each(numbers::<i64>(o, 0)?, rows, |local| Ok(comparable_moment(local, cursor)))?;
    Ok(number_column(moments, rows))
}

fn local_of_date(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    Ok(number_column(each(numbers::<i32>(o, 0)?, rows, |days| Ok(comparable(days)))?, rows))
}

fn days(o: &[Operand], rows: usize, of: fn(i64) -> i32) -> Evaluated {
    Ok(number_column(each(numbers::<i64>(o, 0)?, rows, |local| Ok(of(local)))?, rows))
}

/// The last date that [`comparable`] does not have above this time.
fn below(local: i64) -> i32 {
    match local {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        _ => local.div_euclid(MICROSECONDS_PER_DAY) as i32,
    }
}

/// The first that it does not have below.
fn above(local: i64) -> i32 {
    match local {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        _ => below(local) + i32::from(local.rem_euclid(MICROSECONDS_PER_DAY) != 0),
    }
}

/// Dates begin at moments that do not descend, whatever the zone does; where none begins on a date (a day that was left out), two begin
/// at one.
fn days_of_moments(o: &[Operand], rows: usize, c: &EvalContext<'_>, is_below: bool) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    let days = each(numbers::<i64>(o, 0)?, rows, |moment| {
        if moment == i64::MAX || moment == i64::MIN {
            return Ok(below(moment));
        }
        let mut begins = |day: i32| comparable_moment(comparable(day), cursor);
        // No zone is a day and a half away.
        let near = below(moment);
        Ok(match is_below {
            true => (near - 3..=near + 3).rev().find(|day| begins(*day) <= moment).unwrap_or(near - 3),
            false => (near - 3..=near + 3).find(|day| begins(*day) >= moment).unwrap_or(near + 3),
        })
    })?;
    Ok(number_column(days, rows))
}

fn intervals(o: &[Operand], rows: usize, _: &EvalContext<'_>, holds: impl Fn(&i128, &i128) -> bool) -> Evaluated {
    let key = |span| interval::comparison_key(&unpacked(span));
    Ok(compare_each(spans(o, 0)?, spans(o, 1)?, rows, |a, b| holds(&key(a), &key(b))))
}

macro_rules! comparisons {
    ($($kind:ident $left:ident $right:ident $keys:ident $source:literal;)+) => {
        &[$(
            Function::$kind("=", &[$left, $right], Bool, |o, n, c| $keys(o, n, c, PartialEq::eq), concat!($source, "_eq")),
            Function::$kind("<>", &[$left, $right], Bool, |o, n, c| $keys(o, n, c, PartialEq::ne), concat!($source, "_ne")),
            Function::$kind("<", &[$left, $right], Bool, |o, n, c| $keys(o, n, c, PartialOrd::lt), concat!($source, "_lt")),
            Function::$kind("<=", &[$left, $right], Bool, |o, n, c| $keys(o, n, c, PartialOrd::le), concat!($source, "_le")),
            Function::$kind(">", &[$left, $right], Bool, |o, n, c| $keys(o, n, c, PartialOrd::gt), concat!($source, "_gt")),
            Function::$kind(">=", &[$left, $right], Bool, |o, n, c| $keys(o, n, c, PartialOrd::ge), concat!($source, "_ge")),
        )+]
    };
}

pub(in super::super) static ENTRIES: &[Function] = comparisons! {
    immutable Date Date dates "date.c date";
    immutable Time Time timestamps "date.c time";
    immutable Timestamp Timestamp timestamps "timestamp.c timestamp";
    immutable Timestamptz Timestamptz timestamps "timestamp.c timestamp";
    immutable Date Timestamp date_timestamp "date.c date_cmp_timestamp";
    immutable Timestamp Date timestamp_date "date.c timestamp_cmp_date";
    stable Date Timestamptz date_moment "date.c date_cmp_timestamptz";
    stable Timestamptz Date moment_date "date.c timestamptz_cmp_date";
    stable Timestamp Timestamptz local_moment "timestamp.c timestamp_cmp_timestamptz";
    stable Timestamptz Timestamp moment_local "timestamp.c timestamptz_cmp_timestamp";
    immutable IntervalType IntervalType intervals "timestamp.c interval";
};
