//! Comparisons among dates, times, moments and intervals, the cross-type ones included.

use super::super::vector::compare;
use super::super::{EvalContext, Function, Operand};
use super::Evaluated;
use super::columns::{compare_each, numbers, spans, unpacked};
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
