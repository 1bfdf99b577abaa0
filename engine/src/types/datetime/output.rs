//! Text of date/time values in every DateStyle (datetime.c: EncodeDateOnly, EncodeTimeOnly, EncodeDateTime).

use super::calendar::{Civil, MICROSECONDS_PER_SECOND, civil_from_days, day_of_week, is_finite, is_finite_date, split};
use super::zone::OffsetCursor;
use crate::types::{DateOrder, DateStyle, FormatSettings};

pub(crate) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

pub fn write_date(days: i32, settings: &FormatSettings, out: &mut Vec<u8>) {
    if !is_finite_date(days) {
        return write_infinity(days > 0, out);
    }
    let civil = civil_from_days(days);
    match settings.date_style {
        DateStyle::Postgres => {
            write_day_and_month(&civil, settings.date_order, b'-', out);
            out.push(b'-');
            write_year(civil.year, out);
        }
        DateStyle::Iso | DateStyle::Sql | DateStyle::German => write_numeric_date(&civil, settings, out),
    }
    write_era(civil.year, out);
}

/// 24:00:00 is a value of its own.
pub fn write_time(microseconds: i64, out: &mut Vec<u8>) {
    write_clock(microseconds, out);
}

pub fn write_timestamp(timestamp: i64, settings: &FormatSettings, out: &mut Vec<u8>) {
    if !is_finite(timestamp) {
        return write_infinity(timestamp > 0, out);
    }
    let year = write_date_and_time(timestamp, settings, out);
    write_era(year, out);
}

/// For one value; a column wants [`write_timestamptz_at`].
pub fn write_timestamptz(timestamp: i64, settings: &FormatSettings, out: &mut Vec<u8>) {
    write_timestamptz_at(timestamp, settings, &mut OffsetCursor::new(&settings.time_zone), out);
}

/// The same for many values: `cursor` is over the settings' zone.
pub fn write_timestamptz_at(timestamp: i64, settings: &FormatSettings, cursor: &mut OffsetCursor, out: &mut Vec<u8>) {
    if !is_finite(timestamp) {
        return write_infinity(timestamp > 0, out);
    }
    let offset = cursor.offset_at(timestamp);
    let year = write_date_and_time(timestamp + offset, settings, out);
    match settings.date_style {
        DateStyle::Iso => write_offset(offset, out),
        DateStyle::Sql | DateStyle::Postgres | DateStyle::German => {
            out.push(b' ');
            cursor.write_abbreviation(timestamp, out);
        }
    }
    write_era(year, out);
}

/// Returns the year, for the era that follows the zone.
#[inline]
fn write_date_and_time(local: i64, settings: &FormatSettings, out: &mut Vec<u8>) -> i32 {
    let (days, microseconds) = split(local);
    let civil = civil_from_days(days);
    if settings.date_style == DateStyle::Iso && (1..10_000).contains(&civil.year) {
        write_iso(&civil, microseconds, out);
        return civil.year;
    }
    match settings.date_style {
        DateStyle::Iso | DateStyle::Sql | DateStyle::German => {
            write_numeric_date(&civil, settings, out);
            out.push(b' ');
            write_clock(microseconds, out);
        }
        DateStyle::Postgres => {
            out.extend_from_slice(DAYS[day_of_week(days) as usize].as_bytes());
            out.push(b' ');
            let month = MONTHS[civil.month as usize - 1].as_bytes();
            if settings.date_order == DateOrder::Dmy {
                write_two(civil.day, out);
                out.push(b' ');
                out.extend_from_slice(month);
            } else {
                out.extend_from_slice(month);
                out.push(b' ');
                write_two(civil.day, out);
            }
            out.push(b' ');
            write_clock(microseconds, out);
            out.push(b' ');
            write_year(civil.year, out);
        }
    }
    civil.year
}

/// The usual case in one piece: a year of four digits, in ISO style.
#[inline]
fn write_iso(civil: &Civil, microseconds: i64, out: &mut Vec<u8>) {
    let mut text = *b"yyyy-mm-dd hh:mm:ss.ffffff";
    let mut put = |at: usize, value: u32| {
        text[at] = b'0' + (value / 10) as u8;
        text[at + 1] = b'0' + (value % 10) as u8;
    };
    let year = civil.year as u32;
    put(0, year / 100);
    put(2, year % 100);
    put(5, civil.month);
    put(8, civil.day);
    let seconds = (microseconds / MICROSECONDS_PER_SECOND) as u32;
    put(11, seconds / 3_600);
    put(14, seconds / 60 % 60);
    put(17, seconds % 60);
    let fraction = (microseconds % MICROSECONDS_PER_SECOND) as u32;
    if fraction == 0 {
        return out.extend_from_slice(&text[..19]);
    }
    put(20, fraction / 10_000);
    put(22, fraction / 100 % 100);
    put(24, fraction % 100);
    let zeros = text.iter().rev().take_while(|digit| **digit == b'0').count();
    out.extend_from_slice(&text[..text.len() - zeros]);
}

/// The date in the styles that need no names.
#[inline]
fn write_numeric_date(civil: &Civil, settings: &FormatSettings, out: &mut Vec<u8>) {
    match settings.date_style {
        DateStyle::Iso => {
            write_year(civil.year, out);
            out.push(b'-');
            write_two(civil.month, out);
            out.push(b'-');
            write_two(civil.day, out);
        }
        DateStyle::German => {
            write_two(civil.day, out);
            out.push(b'.');
            write_two(civil.month, out);
            out.push(b'.');
            write_year(civil.year, out);
        }
        DateStyle::Sql | DateStyle::Postgres => {
            write_day_and_month(civil, settings.date_order, b'/', out);
            out.push(b'/');
            write_year(civil.year, out);
        }
    }
}

fn write_day_and_month(civil: &Civil, order: DateOrder, separator: u8, out: &mut Vec<u8>) {
    let (first, second) = match order {
        DateOrder::Dmy => (civil.day, civil.month),
        DateOrder::Mdy | DateOrder::Ymd => (civil.month, civil.day),
    };
    write_two(first, out);
    out.push(separator);
    write_two(second, out);
}

fn write_infinity(is_positive: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if is_positive { b"infinity" } else { b"-infinity" });
}

#[inline]
fn write_era(year: i32, out: &mut Vec<u8>) {
    if year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

/// At least four digits; years before 1 AD are counted back from 1 BC.
#[inline]
fn write_year(year: i32, out: &mut Vec<u8>) {
    let year = if year > 0 { year } else { 1 - year } as u32;
    if year < 10_000 {
        write_two(year / 100, out);
        write_two(year % 100, out);
    } else {
        out.extend_from_slice(itoa::Buffer::new().format(year).as_bytes());
    }
}

/// hh:mm:ss and the fraction without its trailing zeros.
#[inline]
fn write_clock(microseconds: i64, out: &mut Vec<u8>) {
    let seconds = (microseconds / MICROSECONDS_PER_SECOND) as u32;
    write_two(seconds / 3_600, out);
    out.push(b':');
    write_two(seconds / 60 % 60, out);
    out.push(b':');
    write_two(seconds % 60, out);
    write_fraction((microseconds % MICROSECONDS_PER_SECOND) as u32, out);
}

/// "." and up to six digits; nothing for a whole second.
#[inline]
pub(crate) fn write_fraction(microseconds: u32, out: &mut Vec<u8>) {
    if microseconds == 0 {
        return;
    }
    out.push(b'.');
    write_two(microseconds / 10_000, out);
    write_two(microseconds / 100 % 100, out);
    write_two(microseconds % 100, out);
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// +hh, +hh:mm or +hh:mm:ss, as short as exact (EncodeTimezone).
pub(crate) fn write_offset(offset_microseconds: i64, out: &mut Vec<u8>) {
    let seconds = offset_microseconds / MICROSECONDS_PER_SECOND;
    out.push(if seconds < 0 { b'-' } else { b'+' });
    let seconds = seconds.unsigned_abs() as u32;
    write_two(seconds / 3_600, out);
    let (minute, second) = (seconds / 60 % 60, seconds % 60);
    if minute != 0 || second != 0 {
        out.push(b':');
        write_two(minute, out);
    }
    if second != 0 {
        out.push(b':');
        write_two(second, out);
    }
}

/// Two digits; `value` is under 100.
#[inline]
pub(crate) fn write_two(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (value / 10) as u8, b'0' + (value % 10) as u8]);
}
