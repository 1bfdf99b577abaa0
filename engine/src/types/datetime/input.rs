//! Date/time values from text (datetime.c: ParseDateTime, DecodeDateTime, DecodeTimeOnly).
//!
//! Accepted: ISO 8601 dates and times in the spellings that drivers and tools generate, dates with slashes by
//! DateOrder, month names beside four-digit years, UTC offsets and IANA zone names, eras, infinities and 'epoch'.
//! PostgreSQL takes far more (two-digit years, abbreviations, days of the year...); that is [`ParseError::Beyond`].

use jiff::tz::TimeZone;

use super::ParseError;
use super::calendar::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE, MICROSECONDS_PER_SECOND, UNIX_EPOCH_DAYS,
    check_date, days_from_civil, days_in_month, join,
};
use super::output::MONTHS;
use super::zone::{OffsetCursor, named};
use crate::types::{DateOrder, FormatSettings};

/// date_in. A time and a zone are accepted and ignored, as PostgreSQL does.
pub fn parse_date(text: &str, settings: &FormatSettings) -> Result<i32, ParseError> {
    if text.len() == 10
        && let Some(days) = iso_date(text.as_bytes())
    {
        return Ok(days as i32);
    }
    match read(text, settings.date_order)? {
        Moment::Infinity => Ok(i32::MAX),
        Moment::NegativeInfinity => Ok(i32::MIN),
        Moment::Epoch => Ok(-UNIX_EPOCH_DAYS),
        Moment::Civil(civil) => Ok(check_date(civil.days.ok_or_else(beyond)?)?),
    }
}

/// time_in. A date and a zone are accepted and ignored, as PostgreSQL does.
pub fn parse_time(text: &str, typmod: i32, settings: &FormatSettings) -> Result<i64, ParseError> {
    match read(text, settings.date_order)? {
        Moment::Civil(Local { microseconds: Some(microseconds), days, zone }) => {
            // A zone's name needs a date in PostgreSQL; few write one.
            if matches!(zone, Some(Zone::Named(_))) && days.is_none() || microseconds > MICROSECONDS_PER_DAY {
                return Err(beyond());
            }
            if days.is_some() && !is_behind_plain_date(text) {
                return Err(beyond());
            }
            Ok(round_time(microseconds, typmod))
        }
        Moment::Civil(_) | Moment::Infinity | Moment::NegativeInfinity | Moment::Epoch => Err(beyond()),
    }
}

/// "2024-03-09 10:00:00.5+01": DecodeTimeOnly takes no date with an ISO T, nor most others that DecodeDateTime does.
fn is_behind_plain_date(text: &str) -> bool {
    let Some((date, time)) = text.split_once(' ') else { return false };
    date.len() == 10
        && iso_date(date.as_bytes()).is_some()
        && time.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'+' | b'-'))
}

/// timestamp_in. A zone is accepted and ignored, as PostgreSQL does.
pub fn parse_timestamp(text: &str, typmod: i32, settings: &FormatSettings) -> Result<i64, ParseError> {
    if let Some(Iso { local, offset: None }) = iso(text.as_bytes()) {
        return Ok(round_timestamp(local, typmod));
    }
    let civil = match read(text, settings.date_order)? {
        Moment::Infinity => return Ok(i64::MAX),
        Moment::NegativeInfinity => return Ok(i64::MIN),
        Moment::Epoch => return Ok(EPOCH),
        Moment::Civil(civil) => civil,
    };
    let timestamp = join(civil.days.ok_or_else(beyond)?, civil.microseconds.unwrap_or(0))?;
    Ok(round_timestamp(timestamp, typmod))
}

/// timestamptz_in. Without a zone the time is local to the session.
pub fn parse_timestamptz(text: &str, typmod: i32, settings: &FormatSettings) -> Result<i64, ParseError> {
    if let Some(Iso { local, offset: Some(offset) }) = iso(text.as_bytes()) {
        return Ok(round_timestamp(local - offset, typmod));
    }
    let civil = match read(text, settings.date_order)? {
        Moment::Infinity => return Ok(i64::MAX),
        Moment::NegativeInfinity => return Ok(i64::MIN),
        Moment::Epoch => return Ok(EPOCH),
        Moment::Civil(civil) => civil,
    };
    let days = civil.days.ok_or_else(beyond)?;
    let microseconds = civil.microseconds.unwrap_or(0);
    let timestamp = match civil.zone {
        Some(Zone::Offset(offset)) => join(days, microseconds - offset)?,
        Some(Zone::Named(zone)) => OffsetCursor::new(&zone).from_local(join(days, microseconds)?),
        None => OffsetCursor::new(&settings.time_zone).from_local(join(days, microseconds)?),
    };
    Ok(round_timestamp(super::calendar::check_timestamp(timestamp)?, typmod))
}

/// AdjustTimestampForTypmod: to `typmod` fractional digits, halves away from zero.
#[inline]
pub fn round_timestamp(timestamp: i64, typmod: i32) -> i64 {
    let Some(unit) = rounding_unit(typmod) else { return timestamp };
    if !super::calendar::is_finite(timestamp) {
        return timestamp;
    }
    if timestamp >= 0 { (timestamp + unit / 2) / unit * unit } else { -((-timestamp + unit / 2) / unit * unit) }
}

/// AdjustTimeForTypmod.
#[inline]
pub fn round_time(microseconds: i64, typmod: i32) -> i64 {
    round_timestamp(microseconds, typmod)
}

/// The microseconds that a value with `typmod` fractional digits is a multiple of; None: nothing to round.
pub(crate) fn rounding_unit(typmod: i32) -> Option<i64> {
    (0..6).contains(&typmod).then(|| 10_i64.pow(6 - typmod as u32))
}

const EPOCH: i64 = -(UNIX_EPOCH_DAYS as i64) * MICROSECONDS_PER_DAY;

/// The form that PostgreSQL itself writes: what tables are copied in, so that it has a short way.
struct Iso {
    local: i64,
    /// East of UTC, in microseconds; None: none is written.
    offset: Option<i64>,
}

/// `YYYY-MM-DD hh:mm:ss[.ffffff][±hh[:mm]]`. None: another form, or out of the ordinary.
fn iso(bytes: &[u8]) -> Option<Iso> {
    let (date, rest) = bytes.split_at_checked(10)?;
    let days = iso_date(date)?;
    let [b' ' | b'T', h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = rest else { return None };
    let (hour, minute, second) = (pair(*h1, *h2)?, pair(*m1, *m2)?, pair(*s1, *s2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut local = days * MICROSECONDS_PER_DAY + (hour * 3_600 + minute * 60 + second) * MICROSECONDS_PER_SECOND;
    let mut rest = rest;
    if let [b'.', digits @ ..] = rest {
        let length = digits.iter().take_while(|digit| digit.is_ascii_digit()).count();
        if !(1..=6).contains(&length) {
            return None;
        }
        let fraction = digits[..length].iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        local += fraction * 10_i64.pow(6 - length as u32);
        rest = &digits[length..];
    }
    let (sign, h1, h2, minute) = match *rest {
        [] => return Some(Iso { local, offset: None }),
        [sign @ (b'+' | b'-'), h1, h2] => (sign, h1, h2, 0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => (sign, h1, h2, pair(m1, m2)?),
        _ => return None,
    };
    let hour = pair(h1, h2)?;
    if hour > 15 || minute > 59 {
        return None;
    }
    let offset = (hour * 60 + minute) * MICROSECONDS_PER_MINUTE;
    Some(Iso { local, offset: Some(if sign == b'-' { -offset } else { offset }) })
}

/// The day number of `YYYY-MM-DD`.
fn iso_date(bytes: &[u8]) -> Option<i64> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *bytes else { return None };
    let (year, month, day) = (pair(y1, y2)? * 100 + pair(y3, y4)?, pair(m1, m2)? as u32, pair(d1, d2)?);
    let year = year as i32;
    if year == 0 || !(1..=12).contains(&month) || day < 1 || day > i64::from(days_in_month(year, month)) {
        return None;
    }
    Some(days_from_civil(year, month, day))
}

#[inline]
fn pair(tens: u8, ones: u8) -> Option<i64> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| i64::from(tens * 10 + ones))
}

enum Moment {
    Infinity,
    NegativeInfinity,
    Epoch,
    Civil(Local),
}

#[derive(Default)]
struct Local {
    days: Option<i64>,
    /// Since midnight; up to 24 hours and a leap second.
    microseconds: Option<i64>,
    zone: Option<Zone>,
}

enum Zone {
    /// East of UTC, in microseconds.
    Offset(i64),
    Named(TimeZone),
}

fn beyond() -> ParseError {
    ParseError::beyond("a date/time of that form")
}

fn out_of_range() -> ParseError {
    ParseError::Raises("date/time field value out of range".to_owned())
}

fn read(text: &str, order: DateOrder) -> Result<Moment, ParseError> {
    let mut scanner = Scanner { text, bytes: text.as_bytes(), at: 0 };
    scanner.skip_spaces();
    let local = match scanner.peek() {
        Some(b'0'..=b'9') => scanner.local(order)?,
        Some(_) => match scanner.word_moment()? {
            Moment::Civil(local) => local,
            special => return Ok(special),
        },
        None => return Err(beyond()),
    };
    Ok(Moment::Civil(local))
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
}

/// Digits in a row and their value.
struct Number {
    value: u32,
    digits: usize,
}

impl<'t> Scanner<'t> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)) {
            self.at += 1;
        }
    }

    /// One to nine digits.
    #[inline]
    fn number(&mut self) -> Result<Number, ParseError> {
        let start = self.at;
        let mut value = 0_u32;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            if self.at - start == 9 {
                return Err(beyond());
            }
            value = value * 10 + u32::from(digit - b'0');
            self.at += 1;
        }
        if self.at == start { Err(beyond()) } else { Ok(Number { value, digits: self.at - start }) }
    }

    fn word(&mut self) -> &'t str {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or("")
    }

    /// A text that begins with a word or a sign: a special value, or a month's name.
    fn word_moment(&mut self) -> Result<Moment, ParseError> {
        let trimmed = self.text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        let special = |word: &str| trimmed.eq_ignore_ascii_case(word);
        if special("infinity") {
            return Ok(Moment::Infinity);
        }
        if special("-infinity") {
            return Ok(Moment::NegativeInfinity);
        }
        if special("epoch") {
            return Ok(Moment::Epoch);
        }
        let first = self.word();
        const BY_CLOCK: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];
        if BY_CLOCK.iter().any(|word| first.eq_ignore_ascii_case(word)) || special("allballs") {
            return Err(ParseError::DependsOnTime);
        }
        // Month day, year
        let month = month_of_name(first).ok_or_else(beyond)?;
        if !self.skip_date_space() {
            return Err(beyond());
        }
        let day = self.number()?;
        self.take(b',');
        self.skip_spaces();
        let year = self.number()?;
        self.rest_after_name(year, month, day).map(Moment::Civil)
    }

    fn skip_date_space(&mut self) -> bool {
        let start = self.at;
        self.skip_spaces();
        self.at > start
    }

    /// Everything that begins with a digit: a date and what follows, or a time.
    fn local(&mut self, order: DateOrder) -> Result<Local, ParseError> {
        let first = self.number()?;
        match self.peek() {
            Some(b':') => {
                let mut local = Local { microseconds: Some(self.clock(&first)?), ..Local::default() };
                self.zone_and_end(&mut local, true)?;
                Ok(local)
            }
            Some(separator @ (b'-' | b'/')) => {
                self.at += 1;
                if self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
                    // 01-Jan-2024
                    let month = month_of_name(self.word()).ok_or_else(beyond)?;
                    let year = if self.take(separator) { self.number()? } else { return Err(beyond()) };
                    return self.rest_after_name(year, month, first);
                }
                let second = self.number()?;
                if !self.take(separator) {
                    return Err(beyond());
                }
                let third = self.number()?;
                let (year, month, day) = by_order(first, second, third, order).ok_or_else(beyond)?;
                self.rest_of_local(year, month.value, day, true)
            }
            // 20240131
            None | Some(b' ' | b'T' | b't') if first.digits == 8 => {
                let part = |value| Number { value, digits: 2 };
                let year = Number { value: first.value / 10_000, digits: 4 };
                self.rest_of_local(year, first.value / 100 % 100, part(first.value % 100), true)
            }
            // 31 January 2024
            Some(b' ') => {
                self.skip_spaces();
                let month = month_of_name(self.word()).ok_or_else(beyond)?;
                if !self.skip_date_space() {
                    return Err(beyond());
                }
                let year = self.number()?;
                self.rest_after_name(year, month, first)
            }
            _ => Err(beyond()),
        }
    }

    /// Beside a month's name, a longer year or a 'T' without a space mean something else.
    fn rest_after_name(&mut self, year: Number, month: u32, day: Number) -> Result<Local, ParseError> {
        if year.digits != 4 || !matches!(self.peek(), None | Some(b' ')) {
            return Err(beyond());
        }
        self.rest_of_local(year, month, day, false)
    }

    /// What follows a date: a time, a zone, an era. `is_of_numbers`: the zone needs no time before it, as JDBC writes dates
    /// ("2024-01-31 +01").
    fn rest_of_local(
        &mut self,
        year: Number,
        month: u32,
        day: Number,
        is_of_numbers: bool,
    ) -> Result<Local, ParseError> {
        // Years of fewer digits may be days or centuries to PostgreSQL.
        if year.digits < 4 || year.digits > 7 || day.digits > 2 {
            return Err(beyond());
        }
        let mut local = Local::default();
        let date_end = self.at;
        let is_separated = self.take(b'T') || self.take(b't') || {
            self.skip_date_space() && matches!(self.peek(), Some(b'0'..=b'9'))
        };
        if is_separated {
            let hour = self.number()?;
            local.microseconds = Some(self.clock(&hour)?);
        } else {
            self.at = date_end;
        }
        let takes_zone = local.microseconds.is_some() || is_of_numbers && self.is_before_zone();
        let is_before_christ = self.zone_and_end(&mut local, takes_zone)?;
        let year = self.year(year.value, is_before_christ)?;
        if !(1..=12).contains(&month) || day.value < 1 || day.value > days_in_month(year, month) {
            return Err(out_of_range());
        }
        local.days = Some(days_from_civil(year, month, i64::from(day.value)));
        Ok(local)
    }

    /// There is no year 0; 1 BC is 0 from here on.
    fn year(&self, year: u32, is_before_christ: bool) -> Result<i32, ParseError> {
        if year == 0 {
            return Err(out_of_range());
        }
        Ok(if is_before_christ { 1 - year as i32 } else { year as i32 })
    }

    /// The rest of hh:mm[:ss[.fraction]] [AM|PM], from the first colon.
    #[inline]
    fn clock(&mut self, hour: &Number) -> Result<i64, ParseError> {
        if hour.digits > 2 || !self.take(b':') {
            return Err(beyond());
        }
        let minute = self.number()?;
        let mut second = Number { value: 0, digits: 2 };
        let mut fraction = 0;
        if self.take(b':') {
            second = self.number()?;
            if self.take(b'.') {
                fraction = self.fraction()?;
            }
        }
        if minute.digits > 2 || second.digits > 2 || self.peek() == Some(b'.') {
            return Err(beyond());
        }
        let hour = self.meridian(hour.value)?;
        let total = i64::from(hour) * MICROSECONDS_PER_HOUR
            + i64::from(minute.value) * MICROSECONDS_PER_MINUTE
            + i64::from(second.value) * MICROSECONDS_PER_SECOND
            + fraction;
        // 24:00:00 and a 60th second are accepted (datetime.c: DecodeTime; float_time_overflows).
        if hour > 24 || minute.value > 59 || second.value > 60 || total > MICROSECONDS_PER_DAY {
            return Err(out_of_range());
        }
        Ok(total)
    }

    fn meridian(&mut self, hour: u32) -> Result<u32, ParseError> {
        let start = self.at;
        self.skip_spaces();
        let word = self.word();
        let is_afternoon = word.eq_ignore_ascii_case("pm");
        if !is_afternoon && !word.eq_ignore_ascii_case("am") {
            self.at = start;
            return Ok(hour);
        }
        // "PM-05" is one word to PostgreSQL's lexer, and no meridian.
        if !matches!(self.peek(), None | Some(b' ')) {
            return Err(beyond());
        }
        match hour {
            1..=11 => Ok(hour + if is_afternoon { 12 } else { 0 }),
            12 => Ok(if is_afternoon { 12 } else { 0 }),
            _ => Err(beyond()),
        }
    }

    /// The digits after the point, in microseconds.
    #[inline]
    fn fraction(&mut self) -> Result<i64, ParseError> {
        let start = self.at;
        let (mut value, mut unit) = (0_i64, 100_000_i64);
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            value += i64::from(digit - b'0') * unit;
            unit /= 10;
            self.at += 1;
        }
        match self.at - start {
            0 => Err(beyond()),
            1..=6 => Ok(value),
            // ParseFractionalSecond: strtod, then rint.
            7..=32 => {
                let digits = self.text.get(start..self.at).unwrap_or("");
                let fraction: f64 = format!("0.{digits}").parse().map_err(|_| beyond())?;
                Ok((fraction * 1e6).round_ties_even() as i64)
            }
            _ => Err(beyond()),
        }
    }

    /// Behind a date without a time: ParseDateTime takes a '-' there, and most letters, for a part of the date.
    fn is_before_zone(&self) -> bool {
        let [next, rest @ ..] = &self.bytes[self.at..] else { return false };
        next.is_ascii_whitespace() || *next == b'+' || matches!(next, b'Z' | b'z') && rest.is_empty()
    }

    /// An optional zone, if it is taken, and an optional era, then the end. Returns whether the era is BC.
    fn zone_and_end(&mut self, local: &mut Local, takes_zone: bool) -> Result<bool, ParseError> {
        let mut is_before_christ = None;
        loop {
            self.skip_spaces();
            match self.peek() {
                None => return Ok(is_before_christ.unwrap_or(false)),
                Some(b'+' | b'-') if takes_zone && local.zone.is_none() => {
                    local.zone = Some(Zone::Offset(self.offset()?));
                }
                Some(byte) if byte.is_ascii_alphabetic() => {
                    let start = self.at;
                    while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b"/_".contains(&b)) {
                        self.at += 1;
                    }
                    let word = self.text.get(start..self.at).unwrap_or("");
                    if is_before_christ.is_none()
                        && (word.eq_ignore_ascii_case("bc") || word.eq_ignore_ascii_case("ad"))
                    {
                        is_before_christ = Some(word.eq_ignore_ascii_case("bc"));
                    } else if takes_zone && local.zone.is_none() {
                        local.zone = Some(self.zone_of_word(word)?);
                    } else {
                        return Err(beyond());
                    }
                }
                Some(_) => return Err(beyond()),
            }
        }
    }

    /// A sign follows some names ("Etc/GMT+5"): those are left to PostgreSQL.
    fn zone_of_word(&self, word: &str) -> Result<Zone, ParseError> {
        if matches!(self.peek(), Some(b'+' | b'-')) {
            return Err(beyond());
        }
        if ["z", "zulu", "utc", "gmt"].iter().any(|utc| word.eq_ignore_ascii_case(utc)) {
            return Ok(Zone::Offset(0));
        }
        match named(word) {
            Some(zone) => Ok(Zone::Named(zone)),
            None => Err(beyond()),
        }
    }

    /// ±h, ±hh, ±hhmm, ±hh:mm, ±hh:mm:ss (DecodeTimezone).
    fn offset(&mut self) -> Result<i64, ParseError> {
        let is_west = self.peek() == Some(b'-');
        self.at += 1;
        let first = self.number()?;
        let (mut hour, mut minute, mut second) = (first.value, 0, 0);
        match (first.digits, self.peek()) {
            (1 | 2, Some(b':')) => {
                self.at += 1;
                minute = self.two_digits()?;
                if self.take(b':') {
                    second = self.two_digits()?;
                }
            }
            (1 | 2, _) => {}
            (4, next) if next != Some(b':') => (hour, minute) = (first.value / 100, first.value % 100),
            _ => return Err(beyond()),
        }
        // MAX_TZDISP_HOUR is 15.
        if hour > 15 || minute > 59 || second > 59 {
            return Err(beyond());
        }
        let offset = i64::from(hour * 3_600 + minute * 60 + second) * MICROSECONDS_PER_SECOND;
        Ok(if is_west { -offset } else { offset })
    }

    fn two_digits(&mut self) -> Result<u32, ParseError> {
        let number = self.number()?;
        if number.digits == 2 { Ok(number.value) } else { Err(beyond()) }
    }
}

/// Which of three numbers is what (DecodeNumber); None where PostgreSQL would have to guess a century.
fn by_order(first: Number, second: Number, third: Number, order: DateOrder) -> Option<(Number, Number, Number)> {
    if second.digits > 2 {
        return None;
    }
    match order {
        _ if first.digits >= 4 => Some((first, second, third)),
        _ if first.digits > 2 || third.digits < 4 => None,
        DateOrder::Mdy => Some((third, first, second)),
        DateOrder::Dmy => Some((third, second, first)),
        DateOrder::Ymd => None,
    }
}

/// The month of an English name, short or in full.
fn month_of_name(name: &str) -> Option<u32> {
    const FULL: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let index = (0..12).find(|&i| name.eq_ignore_ascii_case(MONTHS[i]) || name.eq_ignore_ascii_case(FULL[i]))?;
    Some(index as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::DateStyle;
    use crate::types::datetime::output::{write_date, write_time, write_timestamp, write_timestamptz};

    fn new_york() -> FormatSettings {
        let time_zone = TimeZone::get("America/New_York").expect("bundled zone");
        FormatSettings { time_zone, ..FormatSettings::default() }
    }

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    fn moment(input: &str, settings: &FormatSettings) -> String {
        let value = parse_timestamptz(input, -1, settings).unwrap_or_else(|error| panic!("{input}: {error}"));
        text(|out| write_timestamptz(value, settings, out))
    }

    /// Answers of PostgreSQL 15 with TimeZone America/New_York.
    #[test]
    fn moments_are_read_as_postgresql_reads_them() {
        let cases = [
            ("2024-03-10 02:30:00", "2024-03-10 03:30:00-04"),
            ("2024-11-03 01:30:00", "2024-11-03 01:30:00-05"),
            ("2024-11-03 01:30:00-04", "2024-11-03 01:30:00-04"),
            ("2024-01-01", "2024-01-01 00:00:00-05"),
            ("2024-01-01T00:00:00Z", "2023-12-31 19:00:00-05"),
            ("20240131T10:11:12", "2024-01-31 10:11:12-05"),
            ("2024-06-01 12:00:00.1234567 Europe/London", "2024-06-01 07:00:00.123457-04"),
            ("2024-01-01 24:00:00", "2024-01-02 00:00:00-05"),
            ("2016-12-31 23:59:60", "2017-01-01 00:00:00-05"),
            ("0044-03-15 12:00:00 BC", "0044-03-15 12:00:00-04:56:02 BC"),
            (" 1/2/2024  3:04 PM ", "2024-01-02 15:04:00-05"),
            ("infinity", "infinity"),
            ("epoch", "1969-12-31 19:00:00-05"),
            ("10000-07-01 00:00:00", "10000-07-01 00:00:00-04"),
            ("1883-11-18 12:03:57", "1883-11-18 12:03:57-05"),
            ("2024-01-01 00:00:00+05:45", "2023-12-31 13:15:00-05"),
            ("2024-01-01 00:00:00 -0330", "2023-12-31 22:30:00-05"),
            ("2024-01-06 +00", "2024-01-05 19:00:00-05"),
            ("2024-01-06+0530", "2024-01-05 13:30:00-05"),
            ("2024-01-06 -05", "2024-01-06 00:00:00-05"),
            ("2024-01-06Z", "2024-01-05 19:00:00-05"),
            ("20240106 +15", "2024-01-05 04:00:00-05"),
            ("01/06/2024 UTC", "2024-01-05 19:00:00-05"),
            ("2024-01-06 Europe/Berlin", "2024-01-05 18:00:00-05"),
            ("0044-03-15 +00 BC", "0044-03-14 19:03:58-04:56:02 BC"),
        ];
        let settings = new_york();
        for (input, expected) in cases {
            assert_eq!(moment(input, &settings), expected, "{input}");
        }
    }

    #[test]
    fn the_order_of_fields_follows_date_style() {
        let with = |date_order| FormatSettings { date_order, ..FormatSettings::default() };
        let date = |input: &str, order| {
            parse_date(input, &with(order)).map(|days| text(|out| write_date(days, &with(order), out)))
        };
        assert_eq!(date("01/02/2024", DateOrder::Mdy).as_deref(), Ok("2024-01-02"));
        assert_eq!(date("01/02/2024", DateOrder::Dmy).as_deref(), Ok("2024-02-01"));
        assert!(matches!(date("01/02/2024", DateOrder::Ymd), Err(ParseError::Beyond(_))));
        assert_eq!(date("2024/02/01", DateOrder::Dmy).as_deref(), Ok("2024-02-01"));
        assert_eq!(date("Feb 1, 2024", DateOrder::Dmy).as_deref(), Ok("2024-02-01"));
        assert_eq!(date("1-FEB-2024", DateOrder::Ymd).as_deref(), Ok("2024-02-01"));
    }

    #[test]
    fn what_depends_on_the_clock_is_no_constant() {
        for input in ["now", "Today", "tomorrow 12:00", "yesterday", "allballs"] {
            let parsed = parse_timestamp(input, -1, &FormatSettings::default());
            assert_eq!(parsed, Err(ParseError::DependsOnTime), "{input}");
        }
    }

    /// PostgreSQL makes something of most of these, or raises; never a guess here.
    #[test]
    fn unclear_spellings_are_refused() {
        let unclear = [
            "",
            "24-01-01",
            "2024-1",
            "2024.01.01",
            "2024-001",
            "99990-Jan-01",
            "2024-01-01 1",
            "2024-01-01 12:00 EST",
            "2024-01-01 12:00 PM-05",
            "2024-01-01 13:00 PM",
            "2024-01-01-05",
            "2024-01-01UTC",
            "2024-01-01 +05 +05",
            "2024-01-01 +16",
            "Jan 1, 2024 +05",
            "1-Jan-2024T12:00",
            "Jan 1, 12024",
            "2024-01-01 12:00:00 +16",
            "2024-01-01 12:00.5",
            "2024-01-01 BC AD",
            "J2451545",
            "2024-01-01 x",
        ];
        for input in unclear {
            let parsed = parse_timestamptz(input, -1, &FormatSettings::default());
            assert!(matches!(parsed, Err(ParseError::Beyond(_))), "{input}: {parsed:?}");
        }
        for raised in ["2024-02-30", "0000-01-01", "2024-13-01", "2024-01-01 24:00:01", "294277-01-01", "4714-01-01 BC"]
        {
            let parsed = parse_timestamp(raised, -1, &FormatSettings::default());
            assert!(matches!(parsed, Err(ParseError::Raises(_))), "{raised}: {parsed:?}");
        }
    }

    #[test]
    fn precision_rounds_halves_away_from_zero() {
        let rounded = |input, typmod| {
            let value = parse_timestamp(input, typmod, &FormatSettings::default()).expect(input);
            text(|out| write_timestamp(value, &FormatSettings::default(), out))
        };
        assert_eq!(rounded("2024-01-01 00:00:00.25", 1), "2024-01-01 00:00:00.3");
        assert_eq!(rounded("1999-12-31 23:59:59.75", 1), "1999-12-31 23:59:59.7");
        assert_eq!(rounded("2024-01-01 00:00:59.5", 0), "2024-01-01 00:01:00");
        let time = parse_time("23:59:59.9999996", -1, &FormatSettings::default()).expect("a time");
        assert_eq!(text(|out| write_time(time, out)), "24:00:00");
    }

    /// Answers of PostgreSQL 15 with TimeZone America/New_York.
    #[test]
    fn every_date_style_is_written() {
        let (local, moment, date, ancient) =
            ("2024-07-04 05:06:07.5", "2024-07-04 05:06:07.5", "2024-07-04", "0044-03-15 BC");
        let cases = [
            (DateStyle::Sql, DateOrder::Dmy, "04/07/2024 05:06:07.5", "EDT", "04/07/2024", "15/03/0044 BC"),
            (DateStyle::Sql, DateOrder::Mdy, "07/04/2024 05:06:07.5", "EDT", "07/04/2024", "03/15/0044 BC"),
            (DateStyle::Postgres, DateOrder::Mdy, "Thu Jul 04 05:06:07.5 2024", "EDT", "07-04-2024", "03-15-0044 BC"),
            (DateStyle::Postgres, DateOrder::Dmy, "Thu 04 Jul 05:06:07.5 2024", "EDT", "04-07-2024", "15-03-0044 BC"),
            (DateStyle::German, DateOrder::Mdy, "04.07.2024 05:06:07.5", "EDT", "04.07.2024", "15.03.0044 BC"),
        ];
        for (date_style, date_order, expected, zone, expected_date, expected_ancient) in cases {
            let settings = FormatSettings { date_style, date_order, ..new_york() };
            let value = parse_timestamp(local, -1, &settings).expect("a timestamp");
            assert_eq!(text(|out| write_timestamp(value, &settings, out)), expected);
            let value = parse_timestamptz(moment, -1, &settings).expect("a moment");
            assert_eq!(text(|out| write_timestamptz(value, &settings, out)), format!("{expected} {zone}"));
            for (input, expected) in [(date, expected_date), (ancient, expected_ancient)] {
                let days = parse_date(input, &settings).expect("a date");
                assert_eq!(text(|out| write_date(days, &settings, out)), expected);
            }
        }
    }
}
