//! Intervals from text (datetime.c: DecodeInterval, DecodeISO8601Interval) and their type modifier.
//!
//! Accepted: "1 year 2 mons -3 days 04:05:06.7", units in full or as PostgreSQL prints them, "@ ... ago", "1-2 3 4:05:06",
//! a number alone (seconds, or the unit of `INTERVAL '1' HOUR`) and ISO 8601 with designators. The rest is beyond.

use crate::types::datetime::calendar::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE, MICROSECONDS_PER_SECOND,
};
use crate::types::datetime::{DateTimeError, ParseError};
use crate::types::value::Interval;
use crate::types::{FormatSettings, IntervalStyle};

/// interval_in. `typmod` carries the range and precision of `INTERVAL ... YEAR TO MONTH` and the like; -1 is none.
pub fn parse(text: &str, typmod: i32, settings: &FormatSettings) -> Result<Interval, ParseError> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let interval = if let Some(designated) = trimmed.strip_prefix('P') {
        parse_iso_8601(designated)?
    } else {
        let is_sql_standard = settings.interval_style == IntervalStyle::SqlStandard;
        if is_sql_standard && trimmed.contains('-') {
            // One leading sign may stand for all fields then (DecodeInterval, force_negative).
            return Err(beyond());
        }
        parse_fields(trimmed, Range::of(typmod))?
    };
    // PostgreSQL 14 has no more hours, and from 17 on the last of all intervals is infinity.
    if i32::try_from(interval.microseconds / MICROSECONDS_PER_HOUR).is_err() {
        return Err(beyond());
    }
    Ok(apply_typmod(&interval, typmod)?)
}

/// AdjustIntervalForTypmod: fields below the declared range are dropped, seconds rounded to the precision.
pub fn apply_typmod(interval: &Interval, typmod: i32) -> Result<Interval, DateTimeError> {
    if typmod < 0 {
        return Ok(*interval);
    }
    let Interval { mut months, mut days, mut microseconds } = *interval;
    match Range::of(typmod).least_unit() {
        Some(Unit::Year) => (months, days, microseconds) = (months / 12 * 12, 0, 0),
        Some(Unit::Month) => (days, microseconds) = (0, 0),
        Some(Unit::Day) => microseconds = 0,
        Some(Unit::Hour) => microseconds -= microseconds % MICROSECONDS_PER_HOUR,
        Some(Unit::Minute) => microseconds -= microseconds % MICROSECONDS_PER_MINUTE,
        _ => {}
    }
    let precision = typmod & 0xffff;
    if let Some(unit) = crate::types::datetime::input::rounding_unit(precision) {
        let half = if microseconds < 0 { -unit / 2 } else { unit / 2 };
        let rounded = microseconds.checked_add(half).ok_or(DateTimeError::INTERVAL_RANGE)?;
        microseconds = rounded / unit * unit;
    }
    Ok(Interval { months, days, microseconds })
}

/// interval_scale: likewise by a modifier of any value, some of which raise an error.
pub fn adjust(interval: &Interval, typmod: i32) -> Result<Interval, DateTimeError> {
    let precision = typmod & 0xffff;
    let is_known = typmod < 0 || Range::of(typmod).is_known() && (precision <= 6 || precision == 0xffff);
    if is_known { apply_typmod(interval, typmod) } else { Err(DateTimeError::INTERVAL_RANGE) }
}

/// The range half of an interval's typmod: bits numbered as in utils/datetime.h, DTK_M.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Range(i32);

impl Range {
    const FULL: Self = Self(0x7fff);
    const MONTH: i32 = 1 << 1;
    const YEAR: i32 = 1 << 2;
    const DAY: i32 = 1 << 3;
    const HOUR: i32 = 1 << 10;
    const MINUTE: i32 = 1 << 11;
    const SECOND: i32 = 1 << 12;

    fn of(typmod: i32) -> Self {
        if typmod < 0 { Self::FULL } else { Self(typmod >> 16 & 0x7fff) }
    }

    /// One of those that can be written (AdjustIntervalForTypmod).
    fn is_known(self) -> bool {
        const CLOCK: i32 = Range::HOUR | Range::MINUTE | Range::SECOND;
        const KNOWN: [i32; 14] = [
            Range::FULL.0,
            Range::YEAR,
            Range::MONTH,
            Range::DAY,
            Range::HOUR,
            Range::MINUTE,
            Range::SECOND,
            Range::YEAR | Range::MONTH,
            Range::DAY | Range::HOUR,
            Range::DAY | Range::HOUR | Range::MINUTE,
            Range::DAY | CLOCK,
            Range::HOUR | Range::MINUTE,
            CLOCK,
            Range::MINUTE | Range::SECOND,
        ];
        KNOWN.contains(&self.0)
    }

    fn least_unit(self) -> Option<Unit> {
        let has = |bit| self.0 & bit != 0;
        if self == Self::FULL {
            return None;
        }
        let order = [
            (Self::SECOND, Unit::Second),
            (Self::MINUTE, Unit::Minute),
            (Self::HOUR, Unit::Hour),
            (Self::DAY, Unit::Day),
            (Self::MONTH, Unit::Month),
            (Self::YEAR, Unit::Year),
        ];
        order.into_iter().find(|(bit, _)| has(*bit)).map(|(_, unit)| unit)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

impl Unit {
    /// The words of datetime.c's deltatktbl, as far as they are written out in full or commonly shortened.
    fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" => Self::Microsecond,
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Self::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::Hour,
            "d" | "day" | "days" => Self::Day,
            "w" | "week" | "weeks" => Self::Week,
            "mon" | "mons" | "month" | "months" => Self::Month,
            "y" | "yr" | "yrs" | "year" | "years" => Self::Year,
            "dec" | "decs" | "decade" | "decades" => Self::Decade,
            "c" | "cent" | "century" | "centuries" => Self::Century,
            "mil" | "mils" | "millennium" | "millennia" => Self::Millennium,
            _ => return None,
        })
    }
}

fn beyond() -> ParseError {
    ParseError::beyond("an interval of that form")
}

/// Sums the fields as PostgreSQL's Adjust* functions do.
#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    microseconds: i64,
    /// One bit for each unit met; a second mention is a syntax error in PostgreSQL.
    met: u32,
}

impl Sum {
    fn meet(&mut self, unit: Unit) -> bool {
        let bit = 1 << unit as u32;
        let is_new = self.met & bit == 0;
        self.met |= bit;
        is_new
    }

    /// `whole` and `fraction` have the same sign.
    fn add(&mut self, unit: Unit, whole: i64, fraction: f64) -> Option<()> {
        match unit {
            Unit::Microsecond => self.add_microseconds(whole, fraction, 1),
            Unit::Millisecond => self.add_microseconds(whole, fraction, 1_000),
            Unit::Second => self.add_microseconds(whole, fraction, MICROSECONDS_PER_SECOND),
            Unit::Minute => self.add_microseconds(whole, fraction, MICROSECONDS_PER_MINUTE),
            Unit::Hour => self.add_microseconds(whole, fraction, MICROSECONDS_PER_HOUR),
            Unit::Day => {
                self.days = self.days.checked_add(whole)?;
                self.add_microseconds(0, fraction, MICROSECONDS_PER_DAY)
            }
            Unit::Week => {
                self.days = self.days.checked_add(whole.checked_mul(7)?)?;
                self.add_fraction_of_days(fraction, 7.0)
            }
            Unit::Month => {
                self.months = self.months.checked_add(whole)?;
                self.add_fraction_of_days(fraction, 30.0)
            }
            Unit::Year => self.add_years(whole, fraction, 1),
            Unit::Decade => self.add_years(whole, fraction, 10),
            Unit::Century => self.add_years(whole, fraction, 100),
            Unit::Millennium => self.add_years(whole, fraction, 1_000),
        }
    }

    fn add_microseconds(&mut self, whole: i64, fraction: f64, scale: i64) -> Option<()> {
        let exact = fraction * scale as f64;
        let mut extra = exact as i64;
        let rest = exact - extra as f64;
        // Releases before 15 round halves to even, later ones down.
        if rest.abs() == 0.5 {
            return None;
        } else if rest > 0.5 {
            extra += 1;
        } else if rest < -0.5 {
            extra -= 1;
        }
        self.microseconds = self.microseconds.checked_add(whole.checked_mul(scale)?)?.checked_add(extra)?;
        Some(())
    }

    fn add_fraction_of_days(&mut self, fraction: f64, scale: f64) -> Option<()> {
        let days = fraction * scale;
        self.days = self.days.checked_add(days as i64)?;
        self.add_microseconds(0, days - days.trunc(), MICROSECONDS_PER_DAY)
    }

    fn add_years(&mut self, whole: i64, fraction: f64, years: i64) -> Option<()> {
        let months = fraction * (years * 12) as f64;
        // Releases before 15 cut what is no whole month, later ones round.
        if months != months.trunc() {
            return None;
        }
        self.months = self.months.checked_add(whole.checked_mul(years * 12)?)?.checked_add(months as i64)?;
        Some(())
    }

    fn interval(&self, is_ago: bool) -> Option<Interval> {
        // Each field has to fit before it is turned round (datetime.c, DecodeInterval).
        let sign = if is_ago { -1 } else { 1 };
        Some(Interval {
            months: i32::try_from(self.months).ok()?.checked_mul(sign)?,
            days: i32::try_from(self.days).ok()?.checked_mul(sign)?,
            microseconds: self.microseconds.checked_mul(i64::from(sign))?,
        })
    }
}

enum Token {
    /// With its sign applied to both parts.
    Number {
        whole: i64,
        fraction: f64,
    },
    /// hh:mm[:ss[.f]], signed.
    Clock {
        microseconds: i64,
        has_seconds: bool,
    },
    /// "1-2", in months, signed.
    YearsMonths(i64),
    Unit(Unit),
    Ago,
}

fn parse_fields(trimmed: &str, range: Range) -> Result<Interval, ParseError> {
    let refuse = beyond;
    let tokens = tokenize(trimmed).ok_or_else(refuse)?;
    let (tokens, is_ago) = match tokens.split_last() {
        Some((Token::Ago, rest)) => (rest, true),
        _ => (tokens.as_slice(), false),
    };
    if tokens.is_empty() {
        return Err(refuse());
    }
    let mut sum = Sum::default();
    let mut rest = tokens;
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        match *token {
            Token::Number { whole, fraction } => {
                let unit = match after.first() {
                    Some(Token::Unit(unit)) => {
                        rest = &after[1..];
                        *unit
                    }
                    Some(Token::Clock { .. }) => Unit::Day,
                    // "5 ago": the word is taken for its unit, and is none.
                    None if is_ago => return Err(refuse()),
                    None => range.least_unit().unwrap_or(Unit::Second),
                    Some(_) => return Err(refuse()),
                };
                let is_new = sum.meet(unit);
                let has_subseconds = unit != Unit::Second
                    || fraction == 0.0
                    || (sum.meet(Unit::Millisecond) && sum.meet(Unit::Microsecond));
                if !is_new || !has_subseconds {
                    return Err(refuse());
                }
                sum.add(unit, whole, fraction).ok_or_else(refuse)?;
            }
            Token::Clock { microseconds, has_seconds } => {
                // "1:2" means minutes and seconds for MINUTE TO SECOND.
                let is_ambiguous = !has_seconds && range == Range(Range::MINUTE | Range::SECOND);
                let time = [Unit::Hour, Unit::Minute, Unit::Second, Unit::Millisecond, Unit::Microsecond];
                let is_new = time.into_iter().all(|unit| sum.meet(unit));
                if is_ambiguous || !is_new {
                    return Err(refuse());
                }
                sum.microseconds = sum.microseconds.checked_add(microseconds).ok_or_else(refuse)?;
            }
            Token::YearsMonths(months) => {
                if !sum.meet(Unit::Month) {
                    return Err(refuse());
                }
                sum.months = sum.months.checked_add(months).ok_or_else(refuse)?;
            }
            Token::Unit(_) | Token::Ago => return Err(refuse()),
        }
    }
    sum.interval(is_ago).ok_or_else(refuse)
}

fn tokenize(trimmed: &str) -> Option<Vec<Token>> {
    let mut scanner = Scanner { bytes: trimmed.strip_prefix('@').unwrap_or(trimmed), at: 0 };
    let mut tokens = Vec::new();
    while let Some(byte) = scanner.peek() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => scanner.at += 1,
            b'0'..=b'9' | b'+' | b'-' => tokens.push(scanner.quantity()?),
            b'a'..=b'z' | b'A'..=b'Z' => {
                let word = scanner.word().to_ascii_lowercase();
                // What goes on behind a word makes one field of both ("1min30sec", "1 day-2:00"), which is a date; a number that follows
                // does not where the word is one of dates, too (ParseDateTime, datetktbl).
                let is_alone = match scanner.peek() {
                    None | Some(b' ' | b'\t' | b'\n' | b'\r') => true,
                    Some(b'0'..=b'9') => matches!(&*word, "d" | "h" | "m" | "s" | "y" | "mon"),
                    Some(_) => false,
                };
                if !is_alone {
                    return None;
                }
                tokens.push(if word == "ago" { Token::Ago } else { Token::Unit(Unit::of_word(&word)?) });
            }
            _ => return None,
        }
    }
    Some(tokens)
}

struct Scanner<'t> {
    bytes: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    fn peek(&self) -> Option<u8> {
        self.bytes.as_bytes().get(self.at).copied()
    }

    fn take_while(&mut self, holds: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        while self.peek().is_some_and(&holds) {
            self.at += 1;
        }
        self.bytes.get(start..self.at).unwrap_or("")
    }

    fn word(&mut self) -> &'t str {
        self.take_while(|byte| byte.is_ascii_alphabetic())
    }

    fn digits(&mut self) -> &'t str {
        self.take_while(|byte| byte.is_ascii_digit())
    }

    /// The sign of a quantity: 1 or -1.
    fn sign(&mut self) -> i64 {
        match self.peek() {
            Some(b'-') => {
                self.at += 1;
                -1
            }
            Some(b'+') => {
                self.at += 1;
                1
            }
            _ => 1,
        }
    }

    /// ".ddd" as strtod reads it; 0 without a point. None for a point alone.
    fn fraction(&mut self) -> Option<f64> {
        if self.peek() != Some(b'.') {
            return Some(0.0);
        }
        self.at += 1;
        let digits = self.digits();
        if digits.is_empty() || digits.len() > 32 {
            return None;
        }
        format!("0.{digits}").parse().ok()
    }

    fn quantity(&mut self) -> Option<Token> {
        let start = self.at;
        let sign = self.sign();
        if self.at > start {
            // '1 month - 1 day' (ParseDateTime: leading white space of a signed number is soaked up).
            self.take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'));
        }
        let whole: i64 = self.digits().parse().ok()?;
        match self.peek() {
            Some(b':') => self.clock(sign, whole),
            Some(b'-') => {
                self.at += 1;
                let months: i64 = self.digits().parse().ok()?;
                let is_delimited = matches!(self.peek(), None | Some(b' '));
                if months >= 12 || !is_delimited {
                    return None;
                }
                Some(Token::YearsMonths(sign * (whole.checked_mul(12)?.checked_add(months)?)))
            }
            _ => {
                let fraction = self.fraction()? * sign as f64;
                // "1.5.2", "1/2" and the like.
                let is_delimited = matches!(self.peek(), None | Some(b' ' | b'\t' | b'a'..=b'z' | b'A'..=b'Z'));
                is_delimited.then_some(Token::Number { whole: sign * whole, fraction })
            }
        }
    }

    fn clock(&mut self, sign: i64, hour: i64) -> Option<Token> {
        self.at += 1;
        let minute: i64 = self.digits().parse().ok()?;
        let has_seconds = self.peek() == Some(b':');
        let (mut second, mut fraction) = (0_i64, 0.0);
        if has_seconds {
            self.at += 1;
            second = self.digits().parse().ok()?;
            fraction = self.fraction()?;
        }
        if minute > 59 || second > 60 || !matches!(self.peek(), None | Some(b' ')) {
            return None;
        }
        let microseconds = hour
            .checked_mul(MICROSECONDS_PER_HOUR)?
            .checked_add(minute * MICROSECONDS_PER_MINUTE + second * MICROSECONDS_PER_SECOND)?
            .checked_add((fraction * 1e6_f64).round_ties_even() as i64)?;
        Some(Token::Clock { microseconds: sign * microseconds, has_seconds })
    }
}

/// The format with designators, after its 'P'.
fn parse_iso_8601(designated: &str) -> Result<Interval, ParseError> {
    let read = || {
        let mut scanner = Scanner { bytes: designated, at: 0 };
        let mut sum = Sum::default();
        let mut is_time = false;
        // Designators descend; PostgreSQL is laxer.
        let mut last = Unit::Millennium;
        while let Some(byte) = scanner.peek() {
            if byte == b'T' && !is_time {
                is_time = true;
                scanner.at += 1;
                continue;
            }
            let start = scanner.at;
            // ParseISO8601Number.
            if byte == b'+' {
                return None;
            }
            let sign = scanner.sign();
            let whole: i64 = scanner.digits().parse().ok()?;
            let fraction = if scanner.fraction()? == 0.0 {
                0.0
            } else {
                // ParseISO8601Number takes the fraction off the whole number.
                let value: f64 = designated.get(start..scanner.at)?.parse().ok()?;
                value - value.trunc()
            };
            let unit = match (scanner.peek()?, is_time) {
                (b'Y', false) => Unit::Year,
                (b'M', false) => Unit::Month,
                (b'W', false) => Unit::Week,
                (b'D', false) => Unit::Day,
                (b'H', true) => Unit::Hour,
                (b'M', true) => Unit::Minute,
                (b'S', true) => Unit::Second,
                _ => return None,
            };
            scanner.at += 1;
            if unit as u32 >= last as u32 {
                return None;
            }
            last = unit;
            sum.add(unit, sign * whole, fraction)?;
        }
        let ended_in_unit = designated.ends_with(|end: char| end.is_ascii_alphabetic() && end != 'T');
        if ended_in_unit { sum.interval(false) } else { None }
    };
    read().ok_or_else(beyond)
}
