//! Parts of date/time values: date_trunc, extract and date_part.
//!
//! The unit is resolved once per column, the rest is integer arithmetic on local time (timestamp.c: timestamp_trunc,
//! timestamptz_trunc_internal, interval_trunc, timestamp_part_common and its kin; date.c: extract_date, time_part_common).
//! What is inlined always is called in loops where the field is a constant, and must shrink to that field's case.

use super::DateTimeError;
use super::calendar::{
    Civil, JULIAN_OF_EPOCH, MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE,
    MICROSECONDS_PER_SECOND, UNIX_EPOCH_DAYS, check_timestamp, civil_from_days, day_of_week, day_of_year,
    days_from_civil, iso_monday, iso_week, join, split,
};
use super::zone::OffsetCursor;
use crate::types::interval;
use crate::types::value::Interval;

/// What date_trunc cuts to and extract takes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    Epoch,
    Julian,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl Field {
    /// By the words of datetime.c's deltatktbl and datetktbl, in any case. None: left to PostgreSQL.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" => Self::Microseconds,
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Self::Milliseconds,
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::Hour,
            "d" | "day" | "days" => Self::Day,
            "w" | "week" | "weeks" => Self::Week,
            "mon" | "mons" | "month" | "months" => Self::Month,
            "qtr" | "quarter" => Self::Quarter,
            "y" | "yr" | "yrs" | "year" | "years" => Self::Year,
            "dec" | "decs" | "decade" | "decades" => Self::Decade,
            "c" | "cent" | "century" | "centuries" => Self::Century,
            "mil" | "mils" | "millennium" | "millennia" => Self::Millennium,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" => Self::DayOfYear,
            "isoyear" => Self::IsoYear,
            "epoch" => Self::Epoch,
            "julian" => Self::Julian,
            "timezone" => Self::Timezone,
            "timezone_hour" => Self::TimezoneHour,
            "timezone_minute" => Self::TimezoneMinute,
            _ => return None,
        })
    }

    /// Units under a day are cut from the local clock without looking at the calendar; None for the others.
    #[inline]
    fn clock_unit(self) -> Option<i64> {
        match self {
            Self::Microseconds => Some(1),
            Self::Milliseconds => Some(1_000),
            Self::Second => Some(MICROSECONDS_PER_SECOND),
            Self::Minute => Some(MICROSECONDS_PER_MINUTE),
            Self::Hour => Some(MICROSECONDS_PER_HOUR),
            _ => None,
        }
    }

    /// Whether date_trunc knows it.
    pub fn is_truncatable(self) -> bool {
        use Field::{
            Century, DayOfWeek, DayOfYear, Decade, Epoch, IsoDayOfWeek, IsoYear, Julian, Millennium, Timezone,
            TimezoneHour, TimezoneMinute,
        };
        match self {
            DayOfWeek | IsoDayOfWeek | DayOfYear | IsoYear | Epoch | Julian | Timezone | TimezoneHour
            | TimezoneMinute => false,
            Century | Decade | Millennium => true,
            Self::Microseconds | Self::Milliseconds | Self::Second | Self::Minute | Self::Hour | Self::Day => true,
            Self::Week | Self::Month | Self::Quarter | Self::Year => true,
        }
    }

    /// Whether values grow with time, so that extract of infinity is infinite and not NULL (NonFiniteTimestampTzPart).
    pub fn is_monotonic(self) -> bool {
        matches!(
            self,
            Self::Year | Self::Decade | Self::Century | Self::Millennium | Self::Julian | Self::IsoYear | Self::Epoch
        )
    }

    /// The first day of the period that `days` is in, for units of whole days.
    #[inline(always)]
    fn first_day(self, days: i32) -> i64 {
        let year_start = |year: i32| days_from_civil(year, 1, 1);
        match self {
            Self::Week => return iso_monday(days),
            Self::Day => return i64::from(days),
            _ => {}
        }
        let Civil { year, month, day } = civil_from_days(days);
        match self {
            Self::Month => i64::from(days) - i64::from(day) + 1,
            Self::Quarter => days_from_civil(year, 3 * ((month - 1) / 3) + 1, 1),
            Self::Year => year_start(year),
            Self::Decade if year > 0 => year_start(year / 10 * 10),
            Self::Decade => year_start(-((8 - (year - 1)) / 10) * 10),
            Self::Century if year > 0 => year_start((year + 99) / 100 * 100 - 99),
            Self::Century => year_start(-((99 - (year - 1)) / 100) * 100 + 1),
            Self::Millennium if year > 0 => year_start((year + 999) / 1_000 * 1_000 - 999),
            _ => year_start(-((999 - (year - 1)) / 1_000) * 1_000 + 1),
        }
    }
}

/// timestamp_trunc of a finite timestamp; `field` is truncatable.
#[inline(always)]
pub fn truncate_timestamp(field: Field, timestamp: i64) -> Result<i64, DateTimeError> {
    if let Some(unit) = field.clock_unit() {
        // Rounding to a type's precision may have left the range (AdjustTimestampForTypmod does not look).
        return check_timestamp(timestamp - timestamp.rem_euclid(unit));
    }
    join(field.first_day(split(timestamp).0), 0)
}

/// timestamptz_trunc of a finite timestamp in the cursor's zone; `field` is truncatable.
#[inline(always)]
pub fn truncate_timestamptz(field: Field, timestamp: i64, cursor: &mut OffsetCursor) -> Result<i64, DateTimeError> {
    let offset = cursor.offset_at(timestamp);
    let local = timestamp + offset;
    if let Some(unit) = field.clock_unit() {
        // Under a day the offset stays, even when a transition lies between (redotz in timestamp.c).
        return check_timestamp(local - local.rem_euclid(unit) - offset);
    }
    let midnight = field.first_day(split(local).0).checked_mul(MICROSECONDS_PER_DAY);
    check_timestamp(cursor.from_local(midnight.ok_or(DateTimeError::TIMESTAMP_RANGE)?))
}

/// interval_trunc.
pub fn truncate_interval(field: Field, value: &Interval) -> Result<Interval, DateTimeError> {
    let years = |count: i32| Interval { months: value.months / (12 * count) * (12 * count), days: 0, microseconds: 0 };
    if let Some(unit) = field.clock_unit() {
        return Ok(Interval { microseconds: value.microseconds - value.microseconds % unit, ..*value });
    }
    Ok(match field {
        Field::Day => Interval { microseconds: 0, ..*value },
        Field::Month => Interval { days: 0, microseconds: 0, ..*value },
        Field::Quarter => Interval { months: value.months / 3 * 3, days: 0, microseconds: 0 },
        Field::Year => years(1),
        Field::Decade => years(10),
        Field::Century => years(100),
        Field::Millennium => years(1_000),
        _ => return Err(DateTimeError::Raises("unit not supported for type interval")),
    })
}

/// The digits after the point that extract prints for a field of a timestamp or interval. They do not depend on the
/// value but for Julian.
pub fn extract_scale(field: Field) -> u8 {
    match field {
        Field::Second | Field::Epoch => 6,
        Field::Milliseconds => 3,
        _ => 0,
    }
}

const NOT_SUPPORTED: DateTimeError = DateTimeError::Raises("unit not supported");

/// Fields of a date, all of scale 0 (extract_date). The date is finite.
#[inline(always)]
pub fn extract_date(field: Field, days: i32) -> Result<i64, DateTimeError> {
    let civil = || civil_from_days(days);
    Ok(match field {
        Field::Day => i64::from(civil().day),
        Field::Month => i64::from(civil().month),
        Field::Quarter => i64::from((civil().month - 1) / 3 + 1),
        Field::Week => i64::from(iso_week(days).1),
        Field::Year => i64::from(without_zero(civil().year)),
        // There is no year 0 in any of these (timestamp_part_common).
        Field::Decade => match civil().year {
            year @ 0.. => i64::from(year / 10),
            year => i64::from(-((8 - (year - 1)) / 10)),
        },
        Field::Century => match civil().year {
            year @ 1.. => i64::from((year + 99) / 100),
            year => i64::from(-((99 - (year - 1)) / 100)),
        },
        Field::Millennium => match civil().year {
            year @ 1.. => i64::from((year + 999) / 1_000),
            year => i64::from(-((999 - (year - 1)) / 1_000)),
        },
        Field::IsoYear => i64::from(without_zero(iso_week(days).0)),
        Field::DayOfWeek => i64::from(day_of_week(days)),
        Field::IsoDayOfWeek => i64::from((day_of_week(days) + 6) % 7 + 1),
        Field::DayOfYear => i64::from(day_of_year(days)),
        Field::Julian => i64::from(days) + i64::from(JULIAN_OF_EPOCH),
        Field::Epoch => (i64::from(days) + i64::from(UNIX_EPOCH_DAYS)) * 86_400,
        Field::Hour | Field::Minute | Field::Second | Field::Milliseconds | Field::Microseconds => {
            return Err(NOT_SUPPORTED);
        }
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute => return Err(NOT_SUPPORTED),
    })
}

#[inline]
fn without_zero(year: i32) -> i32 {
    if year > 0 { year } else { year - 1 }
}

/// Fields of a time of day, at [`extract_scale`] (time_part_common).
#[inline]
pub fn extract_time(field: Field, microseconds: i64) -> Result<i64, DateTimeError> {
    Ok(match field {
        // One number at three scales.
        Field::Microseconds | Field::Milliseconds | Field::Second => microseconds % MICROSECONDS_PER_MINUTE,
        Field::Minute => microseconds / MICROSECONDS_PER_MINUTE % 60,
        Field::Hour => microseconds / MICROSECONDS_PER_HOUR,
        Field::Epoch => microseconds,
        _ => return Err(NOT_SUPPORTED),
    })
}

/// Fields of a finite timestamp, at [`extract_scale`]. Julian has digits by value: see `julian`.
#[inline(always)]
pub fn extract_timestamp(field: Field, timestamp: i64) -> Result<i64, DateTimeError> {
    let (days, microseconds) = split(timestamp);
    match field {
        Field::Microseconds | Field::Milliseconds | Field::Second | Field::Minute | Field::Hour => {
            extract_time(field, microseconds)
        }
        Field::Epoch => timestamp
            .checked_add(i64::from(UNIX_EPOCH_DAYS) * MICROSECONDS_PER_DAY)
            .ok_or(DateTimeError::Beyond("epoch of a timestamp this late")),
        Field::Julian => Err(DateTimeError::Beyond("Julian date with a fraction")),
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute => Err(NOT_SUPPORTED),
        _ => extract_date(field, days),
    }
}

/// Fields of a finite moment in the cursor's zone, at [`extract_scale`].
#[inline(always)]
pub fn extract_timestamptz(field: Field, timestamp: i64, cursor: &mut OffsetCursor) -> Result<i64, DateTimeError> {
    if field == Field::Epoch {
        return extract_timestamp(field, timestamp);
    }
    let offset = cursor.offset_at(timestamp);
    let offset_seconds = offset / MICROSECONDS_PER_SECOND;
    match field {
        Field::Timezone => Ok(offset_seconds),
        Field::TimezoneHour => Ok(offset_seconds / 3_600),
        Field::TimezoneMinute => Ok(offset_seconds / 60 % 60),
        _ => extract_timestamp(field, timestamp + offset),
    }
}

/// Fields of an interval, at [`extract_scale`] (interval_part_common).
pub fn extract_interval(field: Field, value: &Interval) -> Result<i64, DateTimeError> {
    let fields = interval::fields(value);
    Ok(match field {
        Field::Microseconds | Field::Milliseconds | Field::Second => value.microseconds % MICROSECONDS_PER_MINUTE,
        Field::Minute => fields.minute,
        Field::Hour => fields.hour,
        Field::Day => fields.day,
        Field::Month => fields.month,
        // Negative months count differently since PostgreSQL 18.
        Field::Quarter if value.months >= 0 => fields.month / 3 + 1,
        Field::Quarter => return Err(DateTimeError::Beyond("quarter of a negative interval")),
        Field::Year => fields.year,
        Field::Decade => fields.year / 10,
        Field::Century => fields.year / 100,
        Field::Millennium => fields.year / 1_000,
        Field::Epoch => {
            // A year has 365.25 days here, a month 30; in quarters of a day.
            let quarter_days = 1_461 * fields.year + 120 * fields.month + 4 * fields.day;
            let seconds = quarter_days * (86_400 / 4);
            seconds
                .checked_mul(MICROSECONDS_PER_SECOND)
                .and_then(|whole| whole.checked_add(value.microseconds))
                .ok_or(DateTimeError::Beyond("epoch of an interval this long"))?
        }
        Field::Week | Field::DayOfWeek | Field::IsoDayOfWeek | Field::DayOfYear | Field::IsoYear | Field::Julian => {
            return Err(DateTimeError::Beyond("unit not supported for type interval"));
        }
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute => return Err(NOT_SUPPORTED),
    })
}

/// date_part of a finite local timestamp, as float8.
#[inline]
pub fn part_of_timestamp(field: Field, local: i64) -> Result<f64, DateTimeError> {
    let (days, microseconds) = split(local);
    Ok(match field {
        Field::Second => seconds_as_float(microseconds),
        Field::Milliseconds => milliseconds_as_float(microseconds),
        Field::Julian => {
            let seconds = (microseconds / MICROSECONDS_PER_SECOND) as f64;
            let fraction = (microseconds % MICROSECONDS_PER_SECOND) as f64 / 1e6;
            f64::from(days + JULIAN_OF_EPOCH) + (seconds + fraction) / 86_400.0
        }
        Field::Epoch => extract_timestamp(field, local)? as f64 / 1e6,
        _ => extract_timestamp(field, local)? as f64,
    })
}

/// date_part of a finite moment in the cursor's zone.
#[inline]
pub fn part_of_timestamptz(field: Field, timestamp: i64, cursor: &mut OffsetCursor) -> Result<f64, DateTimeError> {
    match field {
        Field::Epoch => part_of_timestamp(field, timestamp),
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute => {
            Ok(extract_timestamptz(field, timestamp, cursor)? as f64)
        }
        _ => part_of_timestamp(field, cursor.to_local(timestamp)),
    }
}

/// date_part of a time of day.
pub fn part_of_time(field: Field, microseconds: i64) -> Result<f64, DateTimeError> {
    Ok(match field {
        Field::Second => seconds_as_float(microseconds),
        Field::Milliseconds => milliseconds_as_float(microseconds),
        Field::Epoch => microseconds as f64 / 1e6,
        _ => extract_time(field, microseconds)? as f64,
    })
}

/// date_part of an interval.
pub fn part_of_interval(field: Field, value: &Interval) -> Result<f64, DateTimeError> {
    Ok(match field {
        Field::Second => seconds_as_float(value.microseconds),
        Field::Milliseconds => milliseconds_as_float(value.microseconds),
        Field::Epoch => {
            let mut seconds = value.microseconds as f64 / 1e6;
            seconds += 365.25 * 86_400.0 * f64::from(value.months / 12);
            seconds += 30.0 * 86_400.0 * f64::from(value.months % 12);
            seconds + 86_400.0 * f64::from(value.days)
        }
        _ => extract_interval(field, value)? as f64,
    })
}

fn seconds_as_float(microseconds: i64) -> f64 {
    let within = microseconds % MICROSECONDS_PER_MINUTE;
    (within / MICROSECONDS_PER_SECOND) as f64 + (within % MICROSECONDS_PER_SECOND) as f64 / 1e6
}

fn milliseconds_as_float(microseconds: i64) -> f64 {
    let within = microseconds % MICROSECONDS_PER_MINUTE;
    (within / MICROSECONDS_PER_SECOND) as f64 * 1e3 + (within % MICROSECONDS_PER_SECOND) as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::types::FormatSettings;
    use crate::types::datetime::input::{parse_date, parse_timestamp, parse_timestamptz};
    use crate::types::datetime::output::{write_timestamp, write_timestamptz};

    fn field(name: &str) -> Field {
        Field::of_name(name).expect(name)
    }

    fn local(text: &str) -> i64 {
        parse_timestamp(text, -1, &FormatSettings::default()).expect(text)
    }

    /// Answers of PostgreSQL 15: of 2001-02-16 20:38:40.123456, of 0044-03-15 12:34:56 BC, and of
    /// 2024-11-03 01:30:00-05, the second of its kind, in New York.
    #[test]
    fn truncation_reaches_the_start_of_the_period() {
        let cases = [
            ("millisecond", "2001-02-16 20:38:40.123", "0044-03-15 12:34:56 BC", "2024-11-03 01:30:00-05"),
            ("SECOND", "2001-02-16 20:38:40", "0044-03-15 12:34:56 BC", "2024-11-03 01:30:00-05"),
            ("minute", "2001-02-16 20:38:00", "0044-03-15 12:34:00 BC", "2024-11-03 01:30:00-05"),
            ("hour", "2001-02-16 20:00:00", "0044-03-15 12:00:00 BC", "2024-11-03 01:00:00-05"),
            ("Day", "2001-02-16 00:00:00", "0044-03-15 00:00:00 BC", "2024-11-03 00:00:00-04"),
            ("week", "2001-02-12 00:00:00", "0044-03-11 00:00:00 BC", "2024-10-28 00:00:00-04"),
            ("month", "2001-02-01 00:00:00", "0044-03-01 00:00:00 BC", "2024-11-01 00:00:00-04"),
            ("quarter", "2001-01-01 00:00:00", "0044-01-01 00:00:00 BC", "2024-10-01 00:00:00-04"),
            ("year", "2001-01-01 00:00:00", "0044-01-01 00:00:00 BC", "2024-01-01 00:00:00-05"),
            ("decade", "2000-01-01 00:00:00", "0051-01-01 00:00:00 BC", "2020-01-01 00:00:00-05"),
            ("century", "2001-01-01 00:00:00", "0100-01-01 00:00:00 BC", "2001-01-01 00:00:00-05"),
            ("millennium", "2001-01-01 00:00:00", "1000-01-01 00:00:00 BC", "2001-01-01 00:00:00-05"),
        ];
        let time_zone = TimeZone::get("America/New_York").expect("bundled zone");
        let settings = FormatSettings { time_zone, ..FormatSettings::default() };
        let moment = parse_timestamptz("2024-11-03 01:30:00-05", -1, &settings).expect("a moment");
        for (unit, modern, ancient, zoned) in cases {
            for (start, expected) in [("2001-02-16 20:38:40.123456", modern), ("0044-03-15 12:34:56 BC", ancient)] {
                let mut out = Vec::new();
                let truncated = truncate_timestamp(field(unit), local(start)).expect(unit);
                write_timestamp(truncated, &settings, &mut out);
                assert_eq!(String::from_utf8_lossy(&out), expected, "{unit}");
            }
            let mut out = Vec::new();
            let cursor = &mut OffsetCursor::new(&settings.time_zone);
            write_timestamptz(truncate_timestamptz(field(unit), moment, cursor).expect(unit), &settings, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), zoned, "{unit}");
        }
        assert!(truncate_timestamp(Field::Week, local("4714-11-24 BC") + 1).is_ok(), "a Monday");
        assert!(truncate_timestamp(Field::Month, local("4714-11-24 BC")).is_err());
    }

    /// Answers of PostgreSQL 15, mantissas at the scale that it prints.
    #[test]
    fn fields_of_timestamps() {
        let cases = [
            ("microseconds", 40_123_456, 56_000_000),
            ("minute", 38, 34),
            ("hour", 20, 12),
            ("day", 16, 15),
            ("week", 7, 11),
            ("month", 2, 3),
            ("quarter", 1, 1),
            ("year", 2001, -44),
            ("decade", 200, -5),
            ("century", 21, -1),
            ("millennium", 3, -1),
            ("dow", 5, 5),
            ("isodow", 5, 5),
            ("doy", 47, 74),
            ("isoyear", 2001, -44),
            ("epoch", 982_355_920_123_456, -63_517_778_704_000_000),
        ];
        for (unit, modern, ancient) in cases {
            let extracted = |text| extract_timestamp(field(unit), local(text));
            assert_eq!(extracted("2001-02-16 20:38:40.123456"), Ok(modern), "{unit}");
            assert_eq!(extracted("0044-03-15 12:34:56 BC"), Ok(ancient), "{unit}");
        }
        assert_eq!((extract_scale(Field::Second), extract_scale(Field::Milliseconds)), (6, 3));
        assert!(extract_timestamp(Field::Timezone, 0).is_err());
        assert_eq!(part_of_timestamp(Field::Milliseconds, local("2001-02-16 20:38:40.123456")), Ok(40_123.456));
    }

    #[test]
    fn fields_of_dates() {
        let cases = [
            ("day", 30, 1),
            ("week", 1, 52),
            ("year", 2024, -1),
            ("decade", 202, 0),
            ("century", 21, -1),
            ("dow", 1, 6),
            ("isodow", 1, 6),
            ("doy", 365, 1),
            ("isoyear", 2025, -2),
            ("epoch", 1_735_516_800, -62_167_219_200),
            ("julian", 2_460_675, 1_721_060),
        ];
        for (unit, modern, ancient) in cases {
            for (date, expected) in [("2024-12-30", modern), ("0001-01-01 BC", ancient)] {
                let days = parse_date(date, &FormatSettings::default()).expect(date);
                assert_eq!(extract_date(field(unit), days), Ok(expected), "{unit} of {date}");
            }
        }
        assert!(extract_date(Field::Hour, 0).is_err());
    }

    #[test]
    fn fields_of_intervals() {
        let span = Interval { months: 1_234, days: -17, microseconds: 18_367_891_000 };
        let cases = [
            ("microseconds", 7_891_000),
            ("minute", 6),
            ("hour", 5),
            ("day", -17),
            ("month", 10),
            ("quarter", 4),
            ("year", 102),
            ("decade", 10),
            ("century", 1),
            ("millennium", 0),
            ("epoch", 3_243_344_767_891_000),
        ];
        for (unit, expected) in cases {
            assert_eq!(extract_interval(field(unit), &span), Ok(expected), "{unit}");
        }
        let cut = |unit| truncate_interval(field(unit), &span).expect(unit);
        assert_eq!(cut("quarter"), Interval { months: 1_233, days: 0, microseconds: 0 });
        assert_eq!(cut("hour"), Interval { months: 1_234, days: -17, microseconds: 18_000_000_000 });
        assert_eq!(cut("millennium"), Interval::default());
        assert!(truncate_interval(Field::Week, &span).is_err());
    }
}
