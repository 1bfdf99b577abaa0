//! Day numbers and civil dates (proleptic Gregorian, as PostgreSQL's date2j and j2date), and the ranges of the types.

use super::DateTimeError;

pub const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
pub const MICROSECONDS_PER_MINUTE: i64 = 60 * MICROSECONDS_PER_SECOND;
pub const MICROSECONDS_PER_HOUR: i64 = 60 * MICROSECONDS_PER_MINUTE;
pub const MICROSECONDS_PER_DAY: i64 = 24 * MICROSECONDS_PER_HOUR;

/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's epoch.
pub const UNIX_EPOCH_DAYS: i32 = 10_957;
/// Julian day of 2000-01-01.
pub const JULIAN_OF_EPOCH: i32 = 2_451_545;

/// `timestamp '4714-11-24 BC'`: the least finite timestamp (datatype/timestamp.h, MIN_TIMESTAMP).
pub const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// One more than the greatest finite timestamp (END_TIMESTAMP).
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
pub const DATE_MIN: i32 = -JULIAN_OF_EPOCH;
/// One more than the greatest finite date (DATE_END_JULIAN - POSTGRES_EPOCH_JDATE).
pub const DATE_END: i32 = 2_147_483_494 - JULIAN_OF_EPOCH;

/// A civil date; `year` counts astronomically (0 is 1 BC), as tm_year does in PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    pub year: i32,
    pub month: u32,
    pub day: u32,
}

/// Whole 400-year cycles added so that every i32 day number is positive inside the conversion.
const ERAS: i64 = 16_000;
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01 to 2000-01-01.
const MARCH_ZERO_DAYS: i64 = 730_425;

/// The civil date of a day number. Years begin in March here, so that the leap day comes last; the divisions by
/// constants are those of Neri and Schneider, Euclidean affine functions and their application to calendar algorithms.
#[inline]
pub fn civil_from_days(days: i32) -> Civil {
    let n = (i64::from(days) + MARCH_ZERO_DAYS + ERAS * DAYS_PER_ERA) as u64;
    let n1 = 4 * n + 3;
    let century = n1 / 146_097;
    let n2 = (n1 % 146_097) | 3;
    let p2 = 2_939_745 * n2;
    let year_of_century = p2 >> 32;
    let day_of_year = ((p2 & 0xffff_ffff) as u32 / 2_939_745) / 4;
    let n3 = 2_141 * day_of_year + 197_913;
    let is_next_year = day_of_year >= 306;
    let month = (n3 >> 16) - if is_next_year { 12 } else { 0 };
    let year = (100 * century + year_of_century) as i64 - 400 * ERAS + i64::from(is_next_year);
    Civil { year: year as i32, month, day: (n3 & 0xffff) / 2_141 + 1 }
}

/// The day number of a civil date (date2j); the month is in 1..=12, the day may be out of the month.
#[inline]
pub fn days_from_civil(year: i32, month: u32, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month) } else { (year - 1, month + 12) };
    let year = i64::from(year) + 400 * ERAS;
    let century = year / 100;
    let day_of_year = i64::from((153 * (month - 3) + 2) / 5) + day - 1;
    365 * year + year / 4 - century + century / 4 + day_of_year - MARCH_ZERO_DAYS - ERAS * DAYS_PER_ERA
}

#[inline]
pub fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[inline]
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Splits a timestamp into its day number and the microseconds since that day's midnight.
#[inline]
pub fn split(timestamp: i64) -> (i32, i64) {
    (timestamp.div_euclid(MICROSECONDS_PER_DAY) as i32, timestamp.rem_euclid(MICROSECONDS_PER_DAY))
}

/// The timestamp at `microseconds` after the midnight of a day.
#[inline]
pub fn join(days: i64, microseconds: i64) -> Result<i64, DateTimeError> {
    let timestamp = days.checked_mul(MICROSECONDS_PER_DAY).and_then(|midnight| midnight.checked_add(microseconds));
    check_timestamp(timestamp.ok_or(DateTimeError::TIMESTAMP_RANGE)?)
}

#[inline]
pub fn check_timestamp(timestamp: i64) -> Result<i64, DateTimeError> {
    if (TIMESTAMP_MIN..TIMESTAMP_END).contains(&timestamp) {
        Ok(timestamp)
    } else {
        Err(DateTimeError::TIMESTAMP_RANGE)
    }
}

pub fn check_date(days: i64) -> Result<i32, DateTimeError> {
    match i32::try_from(days) {
        Ok(days) if (DATE_MIN..DATE_END).contains(&days) => Ok(days),
        _ => Err(DateTimeError::DATE_RANGE),
    }
}

#[inline]
pub fn is_finite(timestamp: i64) -> bool {
    timestamp != i64::MAX && timestamp != i64::MIN
}

#[inline]
pub fn is_finite_date(days: i32) -> bool {
    days != i32::MAX && days != i32::MIN
}

/// Day of the week, Sunday is 0. 2000-01-01 was a Saturday.
#[inline]
pub fn day_of_week(days: i32) -> u32 {
    (i64::from(days) + 6).rem_euclid(7) as u32
}

/// Monday of the ISO week that a day belongs to.
#[inline]
pub fn iso_monday(days: i32) -> i64 {
    i64::from(days) - (i64::from(days) + 5).rem_euclid(7)
}

/// ISO 8601 week-numbering year (astronomical) and week of a day.
pub fn iso_week(days: i32) -> (i32, i32) {
    let monday = iso_monday(days);
    // The week belongs to the year of its Thursday.
    let thursday = monday + 3;
    let year = civil_from_days(thursday as i32).year;
    let first_day = days_from_civil(year, 1, 1);
    (year, ((thursday - first_day) / 7 + 1) as i32)
}

/// Day of the year, 1 on the first of January.
#[inline]
pub fn day_of_year(days: i32) -> i32 {
    let civil = civil_from_days(days);
    (i64::from(days) - days_from_civil(civil.year, 1, 1)) as i32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PostgreSQL's date2j, minus the Julian day of its epoch.
    fn date2j(year: i32, month: u32, day: u32) -> i64 {
        let (mut y, mut m) = (i64::from(year), i64::from(month));
        if m > 2 {
            m += 1;
            y += 4800;
        } else {
            m += 13;
            y += 4799;
        }
        let century = y / 100;
        y * 365 - 32_167 + y / 4 - century + century / 4 + 7_834 * m / 256 + i64::from(day) - i64::from(JULIAN_OF_EPOCH)
    }

    #[test]
    fn civil_dates_and_day_numbers_agree_with_date2j() {
        let sample = (-2_451_545..400_000).step_by(7).chain((400_000..DATE_END - 4_001).step_by(4_001));
        for days in sample.chain([DATE_MIN, DATE_END - 1, -1, 0, 59, 60]) {
            let civil = civil_from_days(days);
            assert_eq!(date2j(civil.year, civil.month, civil.day), i64::from(days), "{civil:?}");
            assert_eq!(days_from_civil(civil.year, civil.month, i64::from(civil.day)), i64::from(days));
            assert!(civil.day <= days_in_month(civil.year, civil.month));
        }
        assert_eq!(civil_from_days(DATE_MIN), Civil { year: -4713, month: 11, day: 24 });
        assert_eq!(civil_from_days(DATE_END - 1), Civil { year: 5_874_897, month: 12, day: 31 });
    }

    #[test]
    fn weeks_follow_iso_8601() {
        let week = |year, month, day| iso_week(days_from_civil(year, month, day) as i32);
        assert_eq!(week(2021, 1, 3), (2020, 53));
        assert_eq!(week(2021, 1, 4), (2021, 1));
        assert_eq!(week(2018, 12, 31), (2019, 1));
        assert_eq!(week(2024, 12, 29), (2024, 52));
        assert_eq!(day_of_week(0), 6);
        assert_eq!(day_of_year(days_from_civil(2024, 12, 31) as i32), 366);
    }
}
