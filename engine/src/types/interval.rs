//! Intervals: text in and out in every IntervalStyle, arithmetic, comparison (timestamp.c, datetime.c).
//!
//! Months, days and microseconds stay apart; only comparison and fractions equate a month to 30 days and a day to
//! 24 hours. Infinite intervals (PostgreSQL 17) are not held.

use super::datetime::DateTimeError;
use super::datetime::calendar::{MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_SECOND};
use super::datetime::output::{write_fraction, write_two};
use super::value::Interval;
use super::{FormatSettings, IntervalStyle};

mod input;

pub use input::{adjust, apply_typmod, parse};

/// interval_cmp_value: equal intervals have equal keys, though they may print differently.
#[inline]
pub fn comparison_key(interval: &Interval) -> i128 {
    let days = i64::from(interval.months) * 30 + i64::from(interval.days);
    i128::from(days) * i128::from(MICROSECONDS_PER_DAY) + i128::from(interval.microseconds)
}

pub fn add(a: &Interval, b: &Interval) -> Result<Interval, DateTimeError> {
    let sum = || {
        Some(Interval {
            months: a.months.checked_add(b.months)?,
            days: a.days.checked_add(b.days)?,
            microseconds: a.microseconds.checked_add(b.microseconds)?,
        })
    };
    sum().ok_or(DateTimeError::INTERVAL_RANGE)
}

pub fn subtract(a: &Interval, b: &Interval) -> Result<Interval, DateTimeError> {
    let difference = || {
        Some(Interval {
            months: a.months.checked_sub(b.months)?,
            days: a.days.checked_sub(b.days)?,
            microseconds: a.microseconds.checked_sub(b.microseconds)?,
        })
    };
    difference().ok_or(DateTimeError::INTERVAL_RANGE)
}

pub fn negate(a: &Interval) -> Result<Interval, DateTimeError> {
    subtract(&Interval::default(), a)
}

/// interval_mul.
pub fn multiply(interval: &Interval, factor: f64) -> Result<Interval, DateTimeError> {
    scale(interval, |part| part * factor)
}

/// interval_div.
pub fn divide(interval: &Interval, divisor: f64) -> Result<Interval, DateTimeError> {
    if divisor == 0.0 {
        return Err(DateTimeError::Raises("division by zero"));
    }
    scale(interval, |part| part / divisor)
}

/// Fractions cascade down: of months into days, of days into microseconds, each rounded as TSROUND does.
fn scale(interval: &Interval, by: impl Fn(f64) -> f64) -> Result<Interval, DateTimeError> {
    const SECONDS_PER_DAY: f64 = 86_400.0;
    let (months, days) = (by(f64::from(interval.months)), by(f64::from(interval.days)));
    let (whole_months, whole_days) = (to_i32(months)?, to_i32(days)?);
    let days_of_months = round_to_microseconds((months - f64::from(whole_months)) * 30.0);
    let mut seconds = round_to_microseconds(
        (days - f64::from(whole_days) + days_of_months - days_of_months.trunc()) * SECONDS_PER_DAY,
    );
    let mut day = whole_days;
    if seconds.abs() >= SECONDS_PER_DAY {
        let carried = (seconds / SECONDS_PER_DAY).trunc();
        day = day.checked_add(to_i32(carried)?).ok_or(DateTimeError::INTERVAL_RANGE)?;
        seconds -= carried * SECONDS_PER_DAY;
    }
    day = day.checked_add(to_i32(days_of_months)?).ok_or(DateTimeError::INTERVAL_RANGE)?;
    let microseconds = (by(interval.microseconds as f64) + seconds * 1e6).round_ties_even();
    // FLOAT8_FITS_IN_INT64
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&microseconds) {
        return Err(DateTimeError::INTERVAL_RANGE);
    }
    Ok(Interval { months: whole_months, days: day, microseconds: microseconds as i64 })
}

/// TSROUND.
fn round_to_microseconds(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

fn to_i32(value: f64) -> Result<i32, DateTimeError> {
    if value.is_nan() || value > f64::from(i32::MAX) || value < f64::from(i32::MIN) {
        return Err(DateTimeError::INTERVAL_RANGE);
    }
    Ok(value as i32)
}

/// justify_hours: whole days out of the microseconds, both of one sign.
pub fn justify_hours(interval: &Interval) -> Result<Interval, DateTimeError> {
    let whole = interval.microseconds / MICROSECONDS_PER_DAY;
    let mut microseconds = interval.microseconds % MICROSECONDS_PER_DAY;
    let overflow = DateTimeError::INTERVAL_RANGE;
    let mut days = interval.days.checked_add(whole as i32).ok_or(overflow)?;
    if days > 0 && microseconds < 0 {
        microseconds += MICROSECONDS_PER_DAY;
        days -= 1;
    } else if days < 0 && microseconds > 0 {
        microseconds -= MICROSECONDS_PER_DAY;
        days += 1;
    }
    Ok(Interval { months: interval.months, days, microseconds })
}

/// justify_days: whole months out of the days, both of one sign.
pub fn justify_days(interval: &Interval) -> Result<Interval, DateTimeError> {
    let mut days = interval.days % 30;
    let mut months = interval.months.checked_add(interval.days / 30).ok_or(DateTimeError::INTERVAL_RANGE)?;
    if months > 0 && days < 0 {
        days += 30;
        months -= 1;
    } else if months < 0 && days > 0 {
        days -= 30;
        months += 1;
    }
    Ok(Interval { months, days, microseconds: interval.microseconds })
}

/// justify_interval: both, and all fields of one sign.
pub fn justify_interval(interval: &Interval) -> Result<Interval, DateTimeError> {
    let overflow = DateTimeError::INTERVAL_RANGE;
    let mut days = interval.days.checked_add((interval.microseconds / MICROSECONDS_PER_DAY) as i32).ok_or(overflow)?;
    let mut microseconds = interval.microseconds % MICROSECONDS_PER_DAY;
    let mut months = interval.months.checked_add(days / 30).ok_or(overflow)?;
    days %= 30;
    if months > 0 && (days < 0 || (days == 0 && microseconds < 0)) {
        days += 30;
        months -= 1;
    } else if months < 0 && (days > 0 || (days == 0 && microseconds > 0)) {
        days -= 30;
        months += 1;
    }
    if days > 0 && microseconds < 0 {
        microseconds += MICROSECONDS_PER_DAY;
        days -= 1;
    } else if days < 0 && microseconds > 0 {
        microseconds -= MICROSECONDS_PER_DAY;
        days += 1;
    }
    Ok(Interval { months, days, microseconds })
}

/// The fields that are printed and extracted (interval2itm).
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub microsecond: i64,
}

pub fn fields(interval: &Interval) -> Fields {
    let time = interval.microseconds;
    Fields {
        year: i64::from(interval.months / 12),
        month: i64::from(interval.months % 12),
        day: i64::from(interval.days),
        hour: time / MICROSECONDS_PER_HOUR,
        minute: time / 60_000_000 % 60,
        second: time / MICROSECONDS_PER_SECOND % 60,
        microsecond: time % MICROSECONDS_PER_SECOND,
    }
}

/// interval_out.
pub fn write(interval: &Interval, settings: &FormatSettings, out: &mut Vec<u8>) {
    let fields = fields(interval);
    match settings.interval_style {
        IntervalStyle::Postgres => write_postgres(&fields, out),
        IntervalStyle::PostgresVerbose => write_verbose(&fields, out),
        IntervalStyle::SqlStandard => write_sql_standard(fields, out),
        IntervalStyle::Iso8601 => write_iso_8601(&fields, out),
    }
}

fn write_integer(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Hours may have more digits than two.
fn write_padded(value: u64, out: &mut Vec<u8>) {
    if value < 100 {
        write_two(value as u32, out);
    } else {
        out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }
}

fn write_padded_seconds(fields: &Fields, out: &mut Vec<u8>) {
    write_two(fields.second.unsigned_abs() as u32, out);
    write_fraction(fields.microsecond.unsigned_abs() as u32, out);
}

fn has_negative_time(fields: &Fields) -> bool {
    fields.hour < 0 || fields.minute < 0 || fields.second < 0 || fields.microsecond < 0
}

fn has_time(fields: &Fields) -> bool {
    fields.hour != 0 || fields.minute != 0 || fields.second != 0 || fields.microsecond != 0
}

/// "1 year 2 mons -3 days +04:05:06"
fn write_postgres(fields: &Fields, out: &mut Vec<u8>) {
    let (mut is_empty, mut was_negative) = (true, false);
    for (value, unit) in [(fields.year, " year"), (fields.month, " mon"), (fields.day, " day")] {
        if value == 0 {
            continue;
        }
        if !is_empty {
            out.push(b' ');
        }
        if was_negative && value > 0 {
            out.push(b'+');
        }
        write_integer(value, out);
        out.extend_from_slice(unit.as_bytes());
        if value != 1 {
            out.push(b's');
        }
        was_negative = value < 0;
        is_empty = false;
    }
    if is_empty || has_time(fields) {
        if !is_empty {
            out.push(b' ');
        }
        if has_negative_time(fields) {
            out.push(b'-');
        } else if was_negative {
            out.push(b'+');
        }
        write_clock(fields, out, write_padded);
    }
}

fn write_clock(fields: &Fields, out: &mut Vec<u8>, write_hour: fn(u64, &mut Vec<u8>)) {
    write_hour(fields.hour.unsigned_abs(), out);
    out.push(b':');
    write_two(fields.minute.unsigned_abs() as u32, out);
    out.push(b':');
    write_padded_seconds(fields, out);
}

/// "@ 1 year 2 mons -3 days 4 hours 5 mins 6 secs ago"
fn write_verbose(fields: &Fields, out: &mut Vec<u8>) {
    out.push(b'@');
    let (mut is_empty, mut is_ago) = (true, false);
    let parts = [
        (fields.year, " year"),
        (fields.month, " mon"),
        (fields.day, " day"),
        (fields.hour, " hour"),
        (fields.minute, " min"),
    ];
    for (value, unit) in parts {
        if value == 0 {
            continue;
        }
        if is_empty {
            is_ago = value < 0;
        }
        let value = if is_ago { -value } else { value };
        out.push(b' ');
        write_integer(value, out);
        out.extend_from_slice(unit.as_bytes());
        if value != 1 {
            out.push(b's');
        }
        is_empty = false;
    }
    if fields.second != 0 || fields.microsecond != 0 {
        out.push(b' ');
        let is_negative = fields.second < 0 || fields.microsecond < 0;
        if is_empty {
            is_ago = is_negative;
        } else if is_negative != is_ago {
            out.push(b'-');
        }
        write_integer(fields.second.abs(), out);
        write_fraction(fields.microsecond.unsigned_abs() as u32, out);
        let is_one = fields.second.abs() == 1 && fields.microsecond == 0;
        out.extend_from_slice(if is_one { b" sec" } else { b" secs" });
        is_empty = false;
    }
    if is_empty {
        out.extend_from_slice(b" 0");
    }
    if is_ago {
        out.extend_from_slice(b" ago");
    }
}

/// "1-2", "3 4:05:06", or "+1-2 -3 +4:05:06" where the standard has no form.
fn write_sql_standard(fields: Fields, out: &mut Vec<u8>) {
    let f = fields;
    let all = [f.year, f.month, f.day, f.hour, f.minute, f.second, f.microsecond];
    let has_negative = all.iter().any(|&value| value < 0);
    let has_positive = all.iter().any(|&value| value > 0);
    let has_months = f.year != 0 || f.month != 0;
    let has_days_or_time = f.day != 0 || has_time(&f);
    let is_standard = !(has_negative && has_positive || has_months && has_days_or_time);
    let sign = |is_negative: bool| if is_negative { b'-' } else { b'+' };
    let plain_hour = |value: u64, out: &mut Vec<u8>| write_integer(value as i64, out);
    if !has_negative && !has_positive {
        out.push(b'0');
    } else if !is_standard {
        out.push(sign(f.year < 0 || f.month < 0));
        write_integer(f.year.abs(), out);
        out.push(b'-');
        write_integer(f.month.abs(), out);
        out.extend_from_slice(&[b' ', sign(f.day < 0)]);
        write_integer(f.day.abs(), out);
        out.extend_from_slice(&[b' ', sign(has_negative_time(&f))]);
        write_clock(&f, out, plain_hour);
    } else {
        if has_negative {
            out.push(b'-');
        }
        if has_months {
            write_integer(f.year.abs(), out);
            out.push(b'-');
            write_integer(f.month.abs(), out);
        } else {
            if f.day != 0 {
                write_integer(f.day.abs(), out);
                out.push(b' ');
            }
            write_clock(&f, out, plain_hour);
        }
    }
}

/// "P1Y2M3DT4H5M6.7S"
fn write_iso_8601(fields: &Fields, out: &mut Vec<u8>) {
    if fields.year == 0 && fields.month == 0 && fields.day == 0 && !has_time(fields) {
        out.extend_from_slice(b"PT0S");
        return;
    }
    let part = |value: i64, unit: u8, out: &mut Vec<u8>| {
        if value != 0 {
            write_integer(value, out);
            out.push(unit);
        }
    };
    out.push(b'P');
    part(fields.year, b'Y', out);
    part(fields.month, b'M', out);
    part(fields.day, b'D', out);
    if has_time(fields) {
        out.push(b'T');
        part(fields.hour, b'H', out);
        part(fields.minute, b'M', out);
    }
    if fields.second != 0 || fields.microsecond != 0 {
        if fields.second < 0 || fields.microsecond < 0 {
            out.push(b'-');
        }
        write_integer(fields.second.abs(), out);
        write_fraction(fields.microsecond.unsigned_abs() as u32, out);
        out.push(b'S');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(interval_style: IntervalStyle) -> FormatSettings {
        FormatSettings { interval_style, ..FormatSettings::default() }
    }

    fn read(text: &str) -> Interval {
        parse(text, -1, &settings(IntervalStyle::Postgres)).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn written(interval: &Interval, style: IntervalStyle) -> String {
        let mut out = Vec::new();
        write(interval, &settings(style), &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    fn plain(interval: Result<Interval, DateTimeError>) -> String {
        written(&interval.expect("an interval"), IntervalStyle::Postgres)
    }

    /// Answers of PostgreSQL 15: input, then the styles postgres, postgres_verbose and iso_8601.
    #[test]
    fn intervals_are_read_and_written_as_postgresql_does() {
        let cases = [
            (
                "1 year 2 mons -3 days +04:05:06.7",
                "1 year 2 mons -3 days +04:05:06.7",
                "@ 1 year 2 mons -3 days 4 hours 5 mins 6.7 secs",
                "P1Y2M-3DT4H5M6.7S",
            ),
            ("-1 mons +1 day", "-1 mons +1 day", "@ 1 mon -1 days ago", "P-1M1D"),
            ("-1 day 02:03:04", "-1 days +02:03:04", "@ 1 day -2 hours -3 mins -4 secs ago", "P-1DT2H3M4S"),
            ("1.5 months", "1 mon 15 days", "@ 1 mon 15 days", "P1M15D"),
            ("0.1 day", "02:24:00", "@ 2 hours 24 mins", "PT2H24M"),
            ("-1.5 weeks", "-10 days -12:00:00", "@ 10 days 12 hours ago", "P-10DT-12H"),
            ("1.234567 mins", "00:01:14.07402", "@ 1 min 14.07402 secs", "PT1M14.07402S"),
            ("P-1.5DT-0.5H", "-1 days -12:30:00", "@ 1 day 12 hours 30 mins ago", "P-1DT-12H-30M"),
            (
                "1-2 3 4:05:06",
                "1 year 2 mons 3 days 04:05:06",
                "@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs",
                "P1Y2M3DT4H5M6S",
            ),
            ("15 MINUTES", "00:15:00", "@ 15 mins", "PT15M"),
            ("-30 day", "-30 days", "@ 30 days ago", "P-30D"),
            ("1 century 2 decades", "120 years", "@ 120 years", "P120Y"),
            ("@ 1 hour 2 secs ago", "-01:00:02", "@ 1 hour 2 secs ago", "PT-1H-2S"),
            ("100", "00:01:40", "@ 1 min 40 secs", "PT1M40S"),
            ("0", "00:00:00", "@ 0", "PT0S"),
            ("-0.5 sec", "-00:00:00.5", "@ 0.5 secs ago", "PT-0.5S"),
            ("3000:00:00", "3000:00:00", "@ 3000 hours", "PT3000H"),
            ("1 day -00:00:01", "1 day -00:00:01", "@ 1 day -1 sec", "P1DT-1S"),
        ];
        for (input, postgres, verbose, iso) in cases {
            let interval = read(input);
            assert_eq!(written(&interval, IntervalStyle::Postgres), postgres, "{input}");
            assert_eq!(written(&interval, IntervalStyle::PostgresVerbose), verbose, "{input}");
            assert_eq!(written(&interval, IntervalStyle::Iso8601), iso, "{input}");
            for style in [postgres, verbose, iso] {
                assert_eq!(read(style), interval, "{input} does not survive {style}");
            }
        }
    }

    #[test]
    fn the_sql_standard_has_a_form_for_one_sign_and_one_half() {
        let cases = [
            ("1 year 2 mons -3 days +04:05:06.7", "+1-2 -3 +4:05:06.7"),
            ("1-2", "1-2"),
            ("P-1Y", "-1-0"),
            ("3 04:05:06", "3 4:05:06"),
            ("0", "0"),
            ("PT-1.5S", "-0:00:01.5"),
        ];
        for (input, expected) in cases {
            assert_eq!(written(&read(input), IntervalStyle::SqlStandard), expected, "{input}");
        }
        let refused = parse("-1 day 2 hours", -1, &settings(IntervalStyle::SqlStandard));
        assert!(refused.is_err(), "one sign may stand for all fields there");
    }

    #[test]
    fn unclear_intervals_are_refused() {
        let unclear = [
            "",
            "day",
            "1 day 2 days",
            "1 2",
            "1 fortnight",
            "1.1 years",
            "1.5 us",
            "-0.0000025 seconds",
            "infinity",
            "1e3 days",
            "P",
            "PT",
            "P1",
            "P1D2Y",
            "1:60",
            "1-12",
            "1 day ago 2 hours",
            "1 quarter",
            "1:2.5",
            "99999999999999999999 s",
        ];
        for input in unclear {
            let parsed = parse(input, -1, &settings(IntervalStyle::Postgres));
            assert!(parsed.is_err(), "{input}: {parsed:?}");
        }
    }

    #[test]
    fn declared_fields_cut_and_round() {
        const MINUTE: i32 = 1 << 11;
        const HOUR: i32 = 1 << 10;
        const SECOND: i32 = 1 << 12;
        const YEAR: i32 = 1 << 2;
        let cases = [
            ("1 day 02:03:04.56789", (HOUR | MINUTE) << 16 | 0xffff, "1 day 02:03:00"),
            ("14 months 3 days", YEAR << 16 | 0xffff, "1 year"),
            ("1.23456 sec", SECOND << 16 | 2, "00:00:01.23"),
            ("-1.555 s", SECOND << 16 | 2, "-00:00:01.56"),
            ("15", MINUTE << 16 | 0xffff, "00:15:00"),
        ];
        for (input, typmod, expected) in cases {
            let interval = parse(input, typmod, &settings(IntervalStyle::Postgres)).expect(input);
            assert_eq!(written(&interval, IntervalStyle::Postgres), expected, "{input}");
        }
    }

    /// Answers of PostgreSQL 15.
    #[test]
    fn fractions_cascade_when_scaled() {
        let cases = [
            (multiply(&read("1 mon 1 day 01:00"), 0.5), "15 days 12:30:00"),
            (divide(&read("1 mon"), 7.0), "4 days 06:51:25.6896"),
            (multiply(&read("-1 mon 3 days"), 1.7), "-1 mons -16 days +02:24:00"),
            (multiply(&read("36:00"), 1.5), "54:00:00"),
            (multiply(&read("1 year 5 days 00:00:01"), -0.333), "-3 mons -31 days -13:04:48.333"),
            (divide(&read("1 day"), 3.0), "08:00:00"),
        ];
        for (result, expected) in cases {
            assert_eq!(plain(result), expected);
        }
        assert!(divide(&read("1 day"), 0.0).is_err());
        assert!(multiply(&read("1 mon"), f64::NAN).is_err());
        assert!(multiply(&read("1 mon"), 1e10).is_err());
    }

    #[test]
    fn comparison_takes_months_as_30_days() {
        let key = |text| comparison_key(&read(text));
        assert_eq!(key("1 mon"), key("30 days"));
        assert_eq!(key("1 day"), key("24:00:00"));
        assert!(key("1 day") > key("23:59:59.999999"));
        assert_eq!(plain(justify_hours(&read("1 day 27:00"))), "2 days 03:00:00");
        assert_eq!(plain(justify_days(&read("1 mon -35 days"))), "-5 days");
        assert_eq!(plain(justify_interval(&read("1 mon -1 hour"))), "29 days 23:00:00");
    }
}
