//! Sums and differences of dates, times and timestamps, conversions between them (timestamp.c, date.c).
//!
//! Infinite operands are handled here: every function takes any value of its type.

use super::DateTimeError;
use super::calendar::{
    Civil, MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, TIMESTAMP_END, TIMESTAMP_MIN, UNIX_EPOCH_DAYS, check_date,
    check_timestamp, civil_from_days, days_from_civil, days_in_month, is_finite, is_finite_date, join, split,
};
use super::zone::OffsetCursor;
use crate::planted::{Bug, is_planted};
use crate::types::value::Interval;

/// date2timestamp.
#[inline]
pub fn date_to_timestamp(days: i32) -> Result<i64, DateTimeError> {
    match days {
        i32::MAX => Ok(i64::MAX),
        i32::MIN => Ok(i64::MIN),
        _ => join(i64::from(days), 0),
    }
}

/// date2timestamptz: midnight in the cursor's zone.
#[inline]
pub fn date_to_timestamptz(days: i32, cursor: &mut OffsetCursor) -> Result<i64, DateTimeError> {
    let local = date_to_timestamp(days)?;
    timestamp_to_timestamptz(local, cursor)
}

/// timestamp_date.
#[inline]
pub fn timestamp_to_date(timestamp: i64) -> i32 {
    match timestamp {
        i64::MAX => i32::MAX,
        i64::MIN => i32::MIN,
        _ => split(timestamp).0,
    }
}

/// timestamptz_timestamp: the local time in the cursor's zone.
#[inline]
pub fn timestamptz_to_timestamp(timestamp: i64, cursor: &mut OffsetCursor) -> Result<i64, DateTimeError> {
    if !is_finite(timestamp) {
        return Ok(timestamp);
    }
    check_timestamp(cursor.to_local(timestamp))
}

/// timestamp_timestamptz: the moment of a local time.
#[inline]
pub fn timestamp_to_timestamptz(local: i64, cursor: &mut OffsetCursor) -> Result<i64, DateTimeError> {
    if !is_finite(local) {
        return Ok(local);
    }
    check_timestamp(cursor.from_local(local))
}

/// date_pli, date_mii.
#[inline]
pub fn add_days(days: i32, count: i64) -> Result<i32, DateTimeError> {
    if !is_finite_date(days) {
        return Ok(days);
    }
    check_date(i64::from(days) + count)
}

/// timestamp_mi: days and a rest, never months.
pub fn subtract_timestamps(a: i64, b: i64) -> Result<Interval, DateTimeError> {
    // Infinite intervals come with PostgreSQL 17.
    if !is_finite(a) || !is_finite(b) {
        return Err(DateTimeError::Beyond("difference of infinite timestamps"));
    }
    let difference = a.checked_sub(b).ok_or(DateTimeError::INTERVAL_RANGE)?;
    let days = (difference / MICROSECONDS_PER_DAY) as i32;
    // Of one sign already: interval_justify_hours has nothing to mend.
    Ok(Interval { months: 0, days, microseconds: difference % MICROSECONDS_PER_DAY })
}

/// timestamp_pl_interval.
pub fn add_to_timestamp(timestamp: i64, span: &Interval) -> Result<i64, DateTimeError> {
    if !is_finite(timestamp) {
        return Ok(timestamp);
    }
    let mut result = timestamp;
    if span.months != 0 || span.days != 0 {
        let (days, microseconds) = split(result);
        let moved = add_months(days, span.months)?;
        // Between the two steps PostgreSQL has a timestamp, which must be in range.
        join(moved, microseconds)?;
        result = join(moved + i64::from(span.days), microseconds)?;
    }
    check_timestamp(result.checked_add(span.microseconds).ok_or(DateTimeError::TIMESTAMP_RANGE)?)
}

/// timestamptz_pl_interval: months and days by the local clock of the cursor's zone, the rest as elapsed time.
pub fn add_to_timestamptz(timestamp: i64, span: &Interval, cursor: &mut OffsetCursor) -> Result<i64, DateTimeError> {
    if !is_finite(timestamp) {
        return Ok(timestamp);
    }
    let mut result = timestamp;
    if span.months != 0 {
        let (days, microseconds) = split(cursor.to_local(result));
        result = check_timestamp(cursor.from_local(join(add_months(days, span.months)?, microseconds)?))?;
    }
    if span.days != 0 && is_planted(Bug::DstHour) {
        result = check_timestamp(result + i64::from(span.days) * MICROSECONDS_PER_DAY)?;
    } else if span.days != 0 {
        // The detour by the moment matters: it may have left a gap in local time.
        let (days, microseconds) = split(cursor.to_local(result));
        let moved = i64::from(days) + i64::from(span.days);
        result = check_timestamp(cursor.from_local(join(moved, microseconds)?))?;
    }
    check_timestamp(result.checked_add(span.microseconds).ok_or(DateTimeError::TIMESTAMP_RANGE)?)
}

/// The day number `months` later; a day that the month lacks becomes its last.
fn add_months(days: i32, months: i32) -> Result<i64, DateTimeError> {
    if months == 0 {
        return Ok(i64::from(days));
    }
    let Civil { year, month, day } = civil_from_days(days);
    let total = i64::from(year) * 12 + i64::from(month - 1) + i64::from(months);
    let year = i32::try_from(total.div_euclid(12)).map_err(|_| DateTimeError::TIMESTAMP_RANGE)?;
    if !(-4_713..=5_874_897).contains(&year) {
        return Err(DateTimeError::TIMESTAMP_RANGE);
    }
    let month = total.rem_euclid(12) as u32 + 1;
    let last = if is_planted(Bug::EndOfMonth) { 31 } else { days_in_month(year, month) };
    Ok(days_from_civil(year, month, i64::from(day.min(last))))
}

/// time_pl_interval: around the clock.
#[inline]
pub fn time_of_day(microseconds: i64) -> i64 {
    microseconds.rem_euclid(MICROSECONDS_PER_DAY)
}

/// timestamp_age: whole years, months and days between two local times, and the rest.
pub fn age(a: i64, b: i64) -> Result<Interval, DateTimeError> {
    if !is_finite(a) || !is_finite(b) {
        return Err(DateTimeError::Beyond("age of infinite timestamps"));
    }
    let is_negative = a < b;
    let (later, earlier) = if is_negative { (b, a) } else { (a, b) };
    let ((later_days, later_time), (earlier_days, earlier_time)) = (split(later), split(earlier));
    let (later, earlier) = (civil_from_days(later_days), civil_from_days(earlier_days));
    let mut microseconds = later_time - earlier_time;
    let mut days = later.day as i32 - earlier.day as i32;
    let mut months = 12 * (later.year - earlier.year) + later.month as i32 - earlier.month as i32;
    if microseconds < 0 {
        microseconds += MICROSECONDS_PER_DAY;
        days -= 1;
    }
    // A borrowed month is as long as the earlier date's.
    while days < 0 {
        days += days_in_month(earlier.year, earlier.month) as i32;
        months -= 1;
    }
    let age = Interval { months, days, microseconds };
    if is_negative { crate::types::interval::negate(&age) } else { Ok(age) }
}

/// timestamp_bin, timestamptz_bin.
pub fn bin(stride: &Interval, timestamp: i64, origin: i64) -> Result<i64, DateTimeError> {
    if !is_finite(timestamp) {
        return Ok(timestamp);
    }
    if !is_finite(origin) || stride.months != 0 {
        return Err(DateTimeError::Raises("origin out of range, or stride with months"));
    }
    let stride = i64::from(stride.days)
        .checked_mul(MICROSECONDS_PER_DAY)
        .and_then(|days| days.checked_add(stride.microseconds))
        .filter(|&stride| stride > 0)
        .ok_or(DateTimeError::Raises("stride must be greater than zero"))?;
    let difference = timestamp.checked_sub(origin).ok_or(DateTimeError::INTERVAL_RANGE)?;
    if difference < 0 && difference % stride == 0 {
        // Minor releases differ: the older ones step back a whole stride.
        return Err(DateTimeError::Beyond("date_bin on a boundary before its origin"));
    }
    let start = origin.checked_add(difference - difference.rem_euclid(stride));
    check_timestamp(start.ok_or(DateTimeError::TIMESTAMP_RANGE)?)
}

/// make_date; years before Christ are negative.
pub fn make_date(year: i32, month: i32, day: i32) -> Result<i32, DateTimeError> {
    let invalid = DateTimeError::Raises("date field value out of range");
    if year == 0 || year == i32::MIN {
        return Err(invalid);
    }
    let year = if year < 0 { year + 1 } else { year };
    let (Ok(month @ 1..=12), Ok(day)) = (u32::try_from(month), u32::try_from(day)) else { return Err(invalid) };
    if !(-4_713..=5_874_897).contains(&year) || !(1..=days_in_month(year, month)).contains(&day) {
        return Err(invalid);
    }
    check_date(days_from_civil(year, month, i64::from(day)))
}

/// make_time: seconds are rounded to microseconds.
pub fn make_time(hour: i32, minute: i32, second: f64) -> Result<i64, DateTimeError> {
    let invalid = DateTimeError::Raises("time field value out of range");
    // float_time_overflows
    if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || second.is_nan() {
        return Err(invalid);
    }
    let microseconds = (second * 1e6).round_ties_even();
    if !(0.0..=60e6).contains(&microseconds) {
        return Err(invalid);
    }
    let time = (i64::from(hour) * 60 + i64::from(minute)) * 60 * MICROSECONDS_PER_SECOND + microseconds as i64;
    if time > MICROSECONDS_PER_DAY { Err(invalid) } else { Ok(time) }
}

/// float8_timestamptz: seconds since 1970.
pub fn from_epoch(seconds: f64) -> Result<i64, DateTimeError> {
    if seconds.is_nan() {
        return Err(DateTimeError::Raises("timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 { i64::MAX } else { i64::MIN });
    }
    let seconds = seconds - f64::from(UNIX_EPOCH_DAYS) * 86_400.0;
    let microseconds = (seconds * 1e6).round_ties_even();
    if !(TIMESTAMP_MIN as f64..TIMESTAMP_END as f64).contains(&microseconds) {
        return Err(DateTimeError::TIMESTAMP_RANGE);
    }
    check_timestamp(microseconds as i64)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::types::datetime::input::{parse_timestamp, parse_timestamptz};
    use crate::types::datetime::output::{write_timestamp, write_timestamptz};
    use crate::types::{FormatSettings, interval};

    fn span(text: &str) -> Interval {
        interval::parse(text, -1, &FormatSettings::default()).expect(text)
    }

    fn local(text: &str) -> i64 {
        parse_timestamp(text, -1, &FormatSettings::default()).expect(text)
    }

    fn shown(timestamp: Result<i64, DateTimeError>) -> String {
        let mut out = Vec::new();
        write_timestamp(timestamp.expect("a timestamp"), &FormatSettings::default(), &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    fn shown_span(interval: Result<Interval, DateTimeError>) -> String {
        let mut out = Vec::new();
        interval::write(&interval.expect("an interval"), &FormatSettings::default(), &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    /// Answers of PostgreSQL 15, as are those of the other tests here.
    #[test]
    fn months_end_where_the_shorter_month_ends() {
        let cases = [
            ("2024-01-31", "1 month", "2024-02-29 00:00:00"),
            ("2024-03-31", "-1 month", "2024-02-29 00:00:00"),
            ("2024-02-29", "1 year", "2025-02-28 00:00:00"),
            ("2000-01-01", "-2000 years -1 months", "0002-12-01 00:00:00 BC"),
            ("infinity", "1 day", "infinity"),
        ];
        for (timestamp, added, expected) in cases {
            assert_eq!(shown(add_to_timestamp(local(timestamp), &span(added))), expected, "{timestamp} + {added}");
        }
        assert!(add_to_timestamp(local("294276-12-31"), &span("1 day")).is_err());
    }

    #[test]
    fn days_follow_the_local_clock_and_hours_elapse() {
        let time_zone = TimeZone::get("America/New_York").expect("bundled zone");
        let settings = FormatSettings { time_zone, ..FormatSettings::default() };
        let cases = [
            ("2024-03-09 02:30", "1 day", "2024-03-10 03:30:00-04"),
            ("2024-03-09 02:30", "24 hours", "2024-03-10 03:30:00-04"),
            ("2024-02-10 02:30", "1 month", "2024-03-10 03:30:00-04"),
            ("2024-11-02 01:30", "1 day 1 hour", "2024-11-03 02:30:00-05"),
            ("2024-03-10 03:30", "-1 day", "2024-03-09 03:30:00-05"),
        ];
        for (moment, added, expected) in cases {
            let cursor = &mut OffsetCursor::new(&settings.time_zone);
            let moment = parse_timestamptz(moment, -1, &settings).expect("a moment");
            let mut out = Vec::new();
            let sum = add_to_timestamptz(moment, &span(added), cursor).expect("in range");
            write_timestamptz(sum, &settings, &mut out);
            assert_eq!(String::from_utf8(out).expect("ASCII"), expected);
        }
    }

    #[test]
    fn differences_and_ages() {
        let difference = |a, b| shown_span(subtract_timestamps(local(a), local(b)));
        assert_eq!(difference("2024-01-01 12:00", "2023-12-25 13:00"), "6 days 23:00:00");
        assert_eq!(difference("2023-12-25 13:00", "2024-01-01 12:00"), "-6 days -23:00:00");
        let age_of = |a, b| shown_span(age(local(a), local(b)));
        assert_eq!(age_of("2024-03-01", "2023-01-31 12:00"), "1 year 1 mon 12:00:00");
        assert_eq!(age_of("2023-01-31 12:00", "2024-03-01"), "-1 years -1 mons -12:00:00");
        assert_eq!(age_of("2024-02-29", "2023-02-28"), "1 year 1 day");
        assert_eq!(age_of("2001-04-10", "1957-06-13"), "43 years 9 mons 27 days");
        assert!(subtract_timestamps(i64::MAX, 0).is_err());
    }

    #[test]
    fn bins_start_at_or_before() {
        let binned = |stride, at, origin| bin(&span(stride), local(at), local(origin));
        assert_eq!(shown(binned("15 min", "2024-01-01 10:20", "2001-01-01")), "2024-01-01 10:15:00");
        assert_eq!(shown(binned("15 min", "2024-01-01 10:20", "2030-01-01 00:05:01")), "2024-01-01 10:05:01");
        assert_eq!(
            binned("15 min", "2024-01-01 10:15", "2030-01-01"),
            Err(DateTimeError::Beyond("date_bin on a boundary before its origin"))
        );
        assert!(binned("1 month", "2024-01-01", "2024-01-01").is_err());
        assert!(binned("0", "2024-01-01", "2024-01-01").is_err());
    }

    #[test]
    fn times_go_around_the_clock() {
        let hour = 3_600_000_000;
        assert_eq!(time_of_day(48 * hour + hour / 2), hour / 2);
        assert_eq!(time_of_day(-hour), 23 * hour);
        assert_eq!(time_of_day(24 * hour), 0);
    }

    #[test]
    fn constructors_refuse_what_is_no_date() {
        assert_eq!(make_date(2000, 1, 1), Ok(0));
        assert_eq!(shown(date_to_timestamp(make_date(-44, 3, 15).expect("a date"))), "0044-03-15 00:00:00 BC");
        for (year, month, day) in
            [(0, 1, 1), (2023, 2, 29), (2024, 13, 1), (2024, 1, 0), (i32::MIN, 1, 1), (i32::MAX, 1, 1)]
        {
            assert!(make_date(year, month, day).is_err(), "{year}-{month}-{day}");
        }
        assert_eq!(make_time(24, 0, 0.0), Ok(MICROSECONDS_PER_DAY));
        assert!(make_time(24, 0, 0.1).is_err() && make_time(0, 60, 0.0).is_err() && make_time(0, 0, f64::NAN).is_err());
        assert_eq!(shown(from_epoch(1_711_841_400.25)), "2024-03-30 23:30:00.25");
        assert_eq!(from_epoch(f64::NEG_INFINITY), Ok(i64::MIN));
        assert!(from_epoch(f64::NAN).is_err() && from_epoch(1e13).is_err());
    }
}
