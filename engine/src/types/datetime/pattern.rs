//! Template patterns of to_char, to_timestamp and to_date (formatting.c: parse_format, DCH_to_char, DCH_from_char).
//!
//! Output knows the patterns that need no locale (TM is refused). Input is for text that a program wrote: each field in
//! full width, separators exactly as in the pattern; PostgreSQL's leniency with the rest is left to PostgreSQL.

use super::DateTimeError;
use super::calendar::{
    Civil, JULIAN_OF_EPOCH, MICROSECONDS_PER_HOUR, MICROSECONDS_PER_MINUTE, MICROSECONDS_PER_SECOND, civil_from_days,
    day_of_week, day_of_year, days_from_civil, days_in_month, iso_monday, iso_week, join, split,
};
use super::output::MONTHS;
use super::zone::OffsetCursor;
use crate::types::Interval;

/// A pattern, parsed once for a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    nodes: Vec<Node>,
    is_empty: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Literal(String),
    Field { field: Field, is_filled: bool, ordinal: Option<Case> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Upper,
    Title,
    Lower,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// AD or BC, with points between the letters or without.
    Era(Case, Points),
    Meridian(Case, Points),
    Century,
    DayName(Case),
    DayNameShort(Case),
    MonthName(Case),
    MonthNameShort(Case),
    RomanMonth(Case),
    DayOfYear,
    Day,
    DayOfWeek,
    IsoDayOfYear,
    IsoDayOfWeek,
    IsoWeek,
    WeekOfYear,
    WeekOfMonth,
    /// The last so many digits of the year, four for all.
    Year(u8),
    IsoYear(u8),
    YearWithComma,
    Julian,
    Quarter,
    Month,
    Hour24,
    Hour12,
    Minute,
    Second,
    SecondsOfDay,
    /// So many digits of the fraction, cut off.
    Fraction(u8),
    Zone(Case),
    ZoneHour,
    ZoneMinute,
    ZoneOffset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Points {
    With,
    Without,
}

/// formatting.c's DCH_keywords; of two with one beginning the longer stands first. None: known there, refused here.
const KEYWORDS: &[(&str, Option<Field>)] = {
    use Case::{Lower, Title, Upper};
    use Points::{With, Without};
    &[
        ("A.D.", Some(Field::Era(Upper, With))),
        ("A.M.", Some(Field::Meridian(Upper, With))),
        ("AD", Some(Field::Era(Upper, Without))),
        ("AM", Some(Field::Meridian(Upper, Without))),
        ("B.C.", Some(Field::Era(Upper, With))),
        ("BC", Some(Field::Era(Upper, Without))),
        ("CC", Some(Field::Century)),
        ("DAY", Some(Field::DayName(Upper))),
        ("DDD", Some(Field::DayOfYear)),
        ("DD", Some(Field::Day)),
        ("DY", Some(Field::DayNameShort(Upper))),
        ("Day", Some(Field::DayName(Title))),
        ("Dy", Some(Field::DayNameShort(Title))),
        ("D", Some(Field::DayOfWeek)),
        ("FF1", Some(Field::Fraction(1))),
        ("FF2", Some(Field::Fraction(2))),
        ("FF3", Some(Field::Fraction(3))),
        ("FF4", Some(Field::Fraction(4))),
        ("FF5", Some(Field::Fraction(5))),
        ("FF6", Some(Field::Fraction(6))),
        ("FX", None),
        ("HH24", Some(Field::Hour24)),
        ("HH12", Some(Field::Hour12)),
        ("HH", Some(Field::Hour12)),
        ("IDDD", Some(Field::IsoDayOfYear)),
        ("ID", Some(Field::IsoDayOfWeek)),
        ("IW", Some(Field::IsoWeek)),
        ("IYYY", Some(Field::IsoYear(4))),
        ("IYY", Some(Field::IsoYear(3))),
        ("IY", Some(Field::IsoYear(2))),
        ("I", Some(Field::IsoYear(1))),
        ("J", Some(Field::Julian)),
        ("MI", Some(Field::Minute)),
        ("MM", Some(Field::Month)),
        ("MONTH", Some(Field::MonthName(Upper))),
        ("MON", Some(Field::MonthNameShort(Upper))),
        ("MS", Some(Field::Fraction(3))),
        ("Month", Some(Field::MonthName(Title))),
        ("Mon", Some(Field::MonthNameShort(Title))),
        ("OF", Some(Field::ZoneOffset)),
        ("P.M.", Some(Field::Meridian(Upper, With))),
        ("PM", Some(Field::Meridian(Upper, Without))),
        ("Q", Some(Field::Quarter)),
        ("RM", Some(Field::RomanMonth(Upper))),
        ("SSSSS", Some(Field::SecondsOfDay)),
        ("SSSS", Some(Field::SecondsOfDay)),
        ("SS", Some(Field::Second)),
        ("TZH", Some(Field::ZoneHour)),
        ("TZM", Some(Field::ZoneMinute)),
        ("TZ", Some(Field::Zone(Upper))),
        ("US", Some(Field::Fraction(6))),
        ("WW", Some(Field::WeekOfYear)),
        ("W", Some(Field::WeekOfMonth)),
        ("Y,YYY", Some(Field::YearWithComma)),
        ("YYYY", Some(Field::Year(4))),
        ("YYY", Some(Field::Year(3))),
        ("YY", Some(Field::Year(2))),
        ("Y", Some(Field::Year(1))),
        ("a.d.", Some(Field::Era(Lower, With))),
        ("a.m.", Some(Field::Meridian(Lower, With))),
        ("ad", Some(Field::Era(Lower, Without))),
        ("am", Some(Field::Meridian(Lower, Without))),
        ("b.c.", Some(Field::Era(Lower, With))),
        ("bc", Some(Field::Era(Lower, Without))),
        ("cc", Some(Field::Century)),
        ("day", Some(Field::DayName(Lower))),
        ("ddd", Some(Field::DayOfYear)),
        ("dd", Some(Field::Day)),
        ("dy", Some(Field::DayNameShort(Lower))),
        ("d", Some(Field::DayOfWeek)),
        ("ff1", Some(Field::Fraction(1))),
        ("ff2", Some(Field::Fraction(2))),
        ("ff3", Some(Field::Fraction(3))),
        ("ff4", Some(Field::Fraction(4))),
        ("ff5", Some(Field::Fraction(5))),
        ("ff6", Some(Field::Fraction(6))),
        ("fx", None),
        ("hh24", Some(Field::Hour24)),
        ("hh12", Some(Field::Hour12)),
        ("hh", Some(Field::Hour12)),
        ("iddd", Some(Field::IsoDayOfYear)),
        ("id", Some(Field::IsoDayOfWeek)),
        ("iw", Some(Field::IsoWeek)),
        ("iyyy", Some(Field::IsoYear(4))),
        ("iyy", Some(Field::IsoYear(3))),
        ("iy", Some(Field::IsoYear(2))),
        ("i", Some(Field::IsoYear(1))),
        ("j", Some(Field::Julian)),
        ("mi", Some(Field::Minute)),
        ("mm", Some(Field::Month)),
        ("month", Some(Field::MonthName(Lower))),
        ("mon", Some(Field::MonthNameShort(Lower))),
        ("ms", Some(Field::Fraction(3))),
        // In lower case these came late.
        ("of", None),
        ("p.m.", Some(Field::Meridian(Lower, With))),
        ("pm", Some(Field::Meridian(Lower, Without))),
        ("q", Some(Field::Quarter)),
        ("rm", Some(Field::RomanMonth(Lower))),
        ("sssss", Some(Field::SecondsOfDay)),
        ("ssss", Some(Field::SecondsOfDay)),
        ("ss", Some(Field::Second)),
        ("tzh", None),
        ("tzm", None),
        ("tz", Some(Field::Zone(Lower))),
        ("us", Some(Field::Fraction(6))),
        ("ww", Some(Field::WeekOfYear)),
        ("w", Some(Field::WeekOfMonth)),
        ("y,yyy", Some(Field::YearWithComma)),
        ("yyyy", Some(Field::Year(4))),
        ("yyy", Some(Field::Year(3))),
        ("yy", Some(Field::Year(2))),
        ("y", Some(Field::Year(1))),
    ]
};

const REFUSED: DateTimeError = DateTimeError::Beyond("template pattern");

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, DateTimeError> {
        let mut nodes = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let mut is_filled = true;
            for prefix in ["FM", "fm"] {
                if is_filled && let Some(after) = rest.strip_prefix(prefix) {
                    (is_filled, rest) = (false, after);
                }
            }
            if is_filled && (rest.starts_with("TM") || rest.starts_with("tm")) {
                return Err(REFUSED);
            }
            if let Some((keyword, field)) = KEYWORDS.iter().find(|(keyword, _)| rest.starts_with(keyword)) {
                rest = &rest[keyword.len()..];
                let field = field.ok_or(REFUSED)?;
                let ordinal = if let Some(after) = rest.strip_prefix("TH") {
                    rest = after;
                    Some(Case::Upper)
                } else if let Some(after) = rest.strip_prefix("th") {
                    rest = after;
                    Some(Case::Lower)
                } else {
                    None
                };
                if rest.starts_with("SP") {
                    return Err(REFUSED);
                }
                if !literal.is_empty() {
                    nodes.push(Node::Literal(std::mem::take(&mut literal)));
                }
                nodes.push(Node::Field { field, is_filled, ordinal });
            } else if let Some(quoted) = rest.strip_prefix('"') {
                rest = take_quoted(quoted, &mut literal);
            } else {
                if rest.starts_with("\\\"") {
                    rest = &rest[1..];
                }
                let mut characters = rest.chars();
                literal.extend(characters.next());
                rest = characters.as_str();
            }
        }
        if !literal.is_empty() {
            nodes.push(Node::Literal(literal));
        }
        Ok(Self { nodes, is_empty: text.is_empty() })
    }

    /// Of no characters at all; one that writes nothing (`FM`, `""`) is another (formatting.c, timestamp_to_char).
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// to_char of a finite local time; its zone is written as nothing.
    pub fn write_local(&self, local: i64, out: &mut Vec<u8>) -> Result<(), DateTimeError> {
        self.write(local, 0, |_| {}, out)
    }

    /// to_char of an interval, with the fields that a span has without a calendar (formatting.c, interval_to_char).
    pub fn write_interval(&self, span: &Interval, out: &mut Vec<u8>) -> Result<(), DateTimeError> {
        if span.months == i32::MAX || span.months == i32::MIN {
            // May be an infinity.
            return Err(REFUSED);
        }
        for node in &self.nodes {
            match node {
                Node::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Node::Field { field, is_filled, ordinal: None } => write_of_span(span, *field, *is_filled, out)?,
                Node::Field { .. } => return Err(REFUSED),
            }
        }
        Ok(())
    }

    /// to_char of a finite moment in the cursor's zone.
    pub fn write_moment(&self, moment: i64, cursor: &mut OffsetCursor, out: &mut Vec<u8>) -> Result<(), DateTimeError> {
        let offset = cursor.offset_at(moment);
        self.write(moment + offset, offset, |out| cursor.write_abbreviation(moment, out), out)
    }

    fn write(
        &self,
        local: i64,
        offset: i64,
        write_zone: impl Fn(&mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> Result<(), DateTimeError> {
        let moment = Moment::new(local, offset);
        for node in &self.nodes {
            match node {
                Node::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Node::Field { field: Field::Zone(case), .. } => {
                    let start = out.len();
                    write_zone(out);
                    // As it is for TZ, which is not the same as in capitals: ChST (formatting.c DCH_TZ, DCH_tz).
                    if *case == Case::Lower {
                        out[start..].make_ascii_lowercase();
                    }
                }
                Node::Field { field, is_filled, ordinal } => {
                    let start = out.len();
                    moment.write(*field, *is_filled, out);
                    if let Some(case) = ordinal {
                        // Zones have no ordinals, but a digit at the end.
                        if matches!(field, Field::ZoneHour | Field::ZoneMinute | Field::ZoneOffset) {
                            return Err(REFUSED);
                        }
                        if !out.last().is_some_and(u8::is_ascii_digit) {
                            return Err(REFUSED);
                        }
                        let ending = ordinal_ending(&out[start..], *case);
                        out.extend_from_slice(ending.as_bytes());
                    }
                }
            }
        }
        Ok(())
    }

    /// to_timestamp's local time: every field of the pattern in full width, nothing else.
    pub fn read(&self, text: &str) -> Result<i64, DateTimeError> {
        let mut rest = text;
        let (mut year, mut month, mut day) = (None, None, None);
        let (mut hour, mut minute, mut second, mut fraction) = (None, None, None, None);
        for node in &self.nodes {
            let field = match node {
                Node::Literal(literal) => {
                    rest = rest.strip_prefix(literal.as_str()).ok_or(REFUSED)?;
                    continue;
                }
                Node::Field { field, is_filled: true, ordinal: None } => field,
                Node::Field { .. } => return Err(REFUSED),
            };
            let (slot, digits) = match field {
                Field::Year(4) => (&mut year, 4..=4),
                Field::Month => (&mut month, 2..=2),
                Field::Day => (&mut day, 2..=2),
                Field::Hour24 => (&mut hour, 2..=2),
                Field::Minute => (&mut minute, 2..=2),
                Field::Second => (&mut second, 2..=2),
                Field::Fraction(digits @ (3 | 6)) => (&mut fraction, 1..=usize::from(*digits)),
                _ => return Err(REFUSED),
            };
            let length = rest.bytes().take_while(u8::is_ascii_digit).take(*digits.end()).count();
            if slot.is_some() || !digits.contains(&length) {
                return Err(REFUSED);
            }
            let (number, after) = rest.split_at(length);
            let value: u32 = number.parse().map_err(|_| REFUSED)?;
            // A fraction counts from the point on.
            *slot =
                Some(if matches!(field, Field::Fraction(_)) { value * 10_u32.pow(6 - length as u32) } else { value });
            rest = after;
        }
        let (year, month, day) = (year.ok_or(REFUSED)? as i32, month.unwrap_or(1), day.unwrap_or(1));
        let (hour, minute, second) = (hour.unwrap_or(0), minute.unwrap_or(0), second.unwrap_or(0));
        let is_clock = hour < 24 && minute < 60 && second < 60;
        if !rest.is_empty() || year == 0 || !(1..=12).contains(&month) || day < 1 || !is_clock {
            return Err(REFUSED);
        }
        if day > days_in_month(year, month) {
            return Err(DateTimeError::Raises("date/time field value out of range"));
        }
        let seconds = i64::from(hour * 3_600 + minute * 60 + second);
        let microseconds = seconds * MICROSECONDS_PER_SECOND + i64::from(fraction.unwrap_or(0));
        join(days_from_civil(year, month, i64::from(day)), microseconds)
    }
}

/// Up to the closing quote, or the end.
fn take_quoted<'t>(quoted: &'t str, literal: &mut String) -> &'t str {
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => literal.push(characters.next().unwrap_or('\\')),
            other => literal.push(other),
        }
    }
    characters.as_str()
}

/// One local time, taken apart.
struct Moment {
    days: i32,
    civil: Civil,
    microseconds: i64,
    offset: i64,
}

impl Moment {
    fn new(local: i64, offset: i64) -> Self {
        let (days, microseconds) = split(local);
        Self { days, civil: civil_from_days(days), microseconds, offset }
    }

    fn write(&self, field: Field, is_filled: bool, out: &mut Vec<u8>) {
        let Civil { year, month, day } = self.civil;
        let weekday = day_of_week(self.days) as usize;
        let width = |digits| if is_filled { digits } else { 0 };
        let mut number = |value: i64, digits| write_number(value, width(digits), out);
        let hour = self.microseconds / MICROSECONDS_PER_HOUR;
        match field {
            Field::Era(case, points) => {
                write_name(if year <= 0 { ["BC", "B.C."] } else { ["AD", "A.D."] }[points as usize ^ 1], case, 0, out);
            }
            Field::Meridian(case, points) => {
                let name = if hour >= 12 { ["PM", "P.M."] } else { ["AM", "A.M."] }[points as usize ^ 1];
                write_name(name, case, 0, out);
            }
            Field::Century => {
                let century = if year > 0 { (year - 1) / 100 + 1 } else { year / 100 - 1 };
                number(i64::from(century), if century < 0 { 3 } else { 2 });
            }
            Field::DayName(case) => write_name(DAYS[weekday], case, width(9), out),
            Field::DayNameShort(case) => write_name(&DAYS[weekday][..3], case, 0, out),
            Field::MonthName(case) => write_name(MONTH_NAMES[month as usize - 1], case, width(9), out),
            Field::MonthNameShort(case) => write_name(MONTHS[month as usize - 1], case, 0, out),
            Field::RomanMonth(case) => write_name(ROMAN_MONTHS[month as usize - 1], case, width(4), out),
            Field::DayOfYear => number(i64::from(day_of_year(self.days)), 3),
            Field::Day => number(i64::from(day), 2),
            Field::DayOfWeek => number(weekday as i64 + 1, 0),
            Field::IsoDayOfYear => number(i64::from((iso_week(self.days).1 - 1) * 7) + self.iso_weekday(), 3),
            Field::IsoDayOfWeek => number(self.iso_weekday(), 0),
            Field::IsoWeek => number(i64::from(iso_week(self.days).1), 2),
            Field::WeekOfYear => number(i64::from((day_of_year(self.days) - 1) / 7 + 1), 2),
            Field::WeekOfMonth => number(i64::from((day - 1) / 7 + 1), 0),
            Field::Year(digits) => number(last_digits(year, digits), usize::from(digits)),
            Field::IsoYear(digits) => number(last_digits(iso_week(self.days).0, digits), usize::from(digits)),
            Field::YearWithComma => {
                let year = last_digits(year, 4);
                number(year / 1_000, 0);
                out.push(b',');
                write_number(year % 1_000, 3, out);
            }
            Field::Julian => number(i64::from(self.days) + i64::from(JULIAN_OF_EPOCH), 0),
            Field::Quarter => number(i64::from((month - 1) / 3 + 1), 0),
            Field::Month => number(i64::from(month), 2),
            Field::Hour24 => number(hour, 2),
            Field::Hour12 => number(if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
            Field::Minute => number(self.microseconds / MICROSECONDS_PER_MINUTE % 60, 2),
            Field::Second => number(self.microseconds / MICROSECONDS_PER_SECOND % 60, 2),
            Field::SecondsOfDay => number(self.microseconds / MICROSECONDS_PER_SECOND, 0),
            Field::Fraction(digits) => {
                let fraction = self.microseconds % MICROSECONDS_PER_SECOND / 10_i64.pow(6 - u32::from(digits));
                // FM does not shorten fractions.
                write_number(fraction, usize::from(digits), out);
            }
            Field::Zone(_) => {}
            Field::ZoneHour => self.write_zone_hour(2, out),
            Field::ZoneMinute => write_number(self.zone_minutes() % 60, 2, out),
            Field::ZoneOffset => {
                self.write_zone_hour(width(2), out);
                // Seconds count, though they are not shown (formatting.c DCH_OF).
                if self.offset.abs() % MICROSECONDS_PER_HOUR != 0 {
                    out.push(b':');
                    write_number(self.zone_minutes() % 60, 2, out);
                }
            }
        }
    }

    fn iso_weekday(&self) -> i64 {
        i64::from(self.days) - iso_monday(self.days) + 1
    }

    fn zone_minutes(&self) -> i64 {
        self.offset.abs() / MICROSECONDS_PER_MINUTE
    }

    fn write_zone_hour(&self, width: usize, out: &mut Vec<u8>) {
        out.push(if self.offset < 0 { b'-' } else { b'+' });
        write_number(self.zone_minutes() / 60, width, out);
    }
}

/// Every part has the sign of the one it was cut from; a negative one is written a digit wider.
fn write_of_span(span: &Interval, field: Field, is_filled: bool, out: &mut Vec<u8>) -> Result<(), DateTimeError> {
    let time = span.microseconds;
    let (hour, minute) = (time / MICROSECONDS_PER_HOUR, time / MICROSECONDS_PER_MINUTE % 60);
    let (second, fraction) = (time / MICROSECONDS_PER_SECOND % 60, time % MICROSECONDS_PER_SECOND);
    let (year, month, day) = (i64::from(span.months / 12), i64::from(span.months % 12), i64::from(span.days));
    let mut number = |value: i64, digits: usize, sign: i64| {
        write_number(value, if is_filled { digits + usize::from(sign < 0) } else { 0 }, out);
    };
    match field {
        Field::Hour24 => number(hour, 2, hour),
        Field::Hour12 => number(if hour % 12 == 0 { 12 } else { hour % 12 }, 2, hour),
        Field::Minute => number(minute, 2, minute),
        Field::Second => number(second, 2, second),
        Field::SecondsOfDay => number(time / MICROSECONDS_PER_SECOND, 0, 0),
        // FM does not shorten fractions.
        Field::Fraction(digits) => {
            write_number(fraction / 10_i64.pow(6 - u32::from(digits)), usize::from(digits), out);
        }
        Field::Day => number(day, 2, 0),
        // In an int, which wraps (formatting.c, DCH_DDD).
        Field::DayOfYear => {
            let months = (year as i32).wrapping_mul(12).wrapping_add(month as i32);
            number(i64::from(months.wrapping_mul(30).wrapping_add(day as i32)), 3, 0);
        }
        Field::Month => number(month, 2, month),
        Field::Year(4) => number(year, 4, year),
        Field::Meridian(case, points) => {
            let name = if hour % 24 >= 12 { ["PM", "P.M."] } else { ["AM", "A.M."] }[points as usize ^ 1];
            write_name(name, case, 0, out);
        }
        _ => return Err(REFUSED),
    }
    Ok(())
}

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const ROMAN_MONTHS: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// ADJUST_YEAR, cut to its last digits; four are all of them.
fn last_digits(year: i32, digits: u8) -> i64 {
    let year = i64::from(if year > 0 { year } else { 1 - year });
    if digits == 4 { year } else { year % 10_i64.pow(u32::from(digits)) }
}

/// printf's `%0*d`.
fn write_number(value: i64, width: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value.unsigned_abs());
    if value < 0 {
        out.push(b'-');
    }
    let sign = usize::from(value < 0);
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(digits.len() + sign)));
    out.extend_from_slice(digits.as_bytes());
}

/// The name in a case, blanks behind it up to `width`.
fn write_name(name: &str, case: Case, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(name.as_bytes());
    match case {
        Case::Upper => out[start..].make_ascii_uppercase(),
        Case::Title => {}
        Case::Lower => out[start..].make_ascii_lowercase(),
    }
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(name.len())));
}

/// get_th.
fn ordinal_ending(digits: &[u8], case: Case) -> &'static str {
    let (last, is_teen) = match digits {
        [.., before, last] => (*last, *before == b'1'),
        [last] => (*last, false),
        [] => (b'0', false),
    };
    let endings = match last {
        b'1' if !is_teen => ["ST", "st"],
        b'2' if !is_teen => ["ND", "nd"],
        b'3' if !is_teen => ["RD", "rd"],
        _ => ["TH", "th"],
    };
    match case {
        Case::Upper | Case::Title => endings[0],
        Case::Lower => endings[1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::FormatSettings;
    use crate::types::datetime::input::parse_timestamp;
    use crate::types::datetime::output::write_timestamp;

    fn shown(timestamp: &str, pattern: &str) -> String {
        let local = parse_timestamp(timestamp, -1, &FormatSettings::default()).expect(timestamp);
        let mut out = Vec::new();
        Pattern::parse(pattern).and_then(|parsed| parsed.write_local(local, &mut out)).expect(pattern);
        String::from_utf8(out).expect("UTF-8")
    }

    /// Answers of PostgreSQL 15.
    #[test]
    fn patterns_are_written_as_postgresql_writes_them() {
        let cases = [
            ("YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"", "2024-03-05T04:07:09.012Z"),
            ("Month|FMMonth|MON|day", "March    |March|MAR|tuesday  "),
            ("FMDay, FMDD Month", "Tuesday, 5 March    "),
            ("HH12:MI AM|HH:MI:SS a.m.", "04:07 AM|04:07:09 a.m."),
            ("IYYY-\"W\"IW-ID|IDDD", "2024-W10-2|065"),
            ("Q WW W D J CC", "1 10 1 3 2460375 21"),
            ("Y,YYY YYY YY Y", "2,024 024 24 4"),
            ("DDth FMDDth DDDTH", "05th 5th 065TH"),
            ("FMHH24:FMMI SSSS US FF1", "4:7 14829 012345 0"),
            ("Yyyy abc HH24hMI", "4024 aad 04h07"),
            ("rm FMRM|TZH:TZM OF", "iii  III|+00:00 +00"),
            ("YYYY年MM月 \\\"x\\\"", "2024年03月 \"x\""),
        ];
        for (pattern, expected) in cases {
            assert_eq!(shown("2024-03-05 04:07:09.012345", pattern), expected, "{pattern}");
        }
        assert_eq!(shown("0044-03-15 12:00:00 BC", "YYYY BC HH12 p.m."), "0044 BC 12 p.m.");
        for refused in ["TMMonth", "FXYYYY", "tzh"] {
            assert_eq!(Pattern::parse(refused), Err(REFUSED), "{refused}");
        }
    }

    #[test]
    fn only_text_of_full_width_is_read() {
        let read = |text, pattern| {
            Pattern::parse(pattern).and_then(|parsed| parsed.read(text)).map(|local| {
                let mut out = Vec::new();
                write_timestamp(local, &FormatSettings::default(), &mut out);
                String::from_utf8_lossy(&out).into_owned()
            })
        };
        let full = "YYYY-MM-DD HH24:MI:SS.US";
        assert_eq!(read("2004-02-29 12:34:56.000000", full).as_deref(), Ok("2004-02-29 12:34:56"));
        assert_eq!(read("2004-02-29 12:34:56.5", full).as_deref(), Ok("2004-02-29 12:34:56.5"));
        assert_eq!(read("20040229", "YYYYMMDD").as_deref(), Ok("2004-02-29 00:00:00"));
        assert_eq!(read("2004-05", "yyyy-mm").as_deref(), Ok("2004-05-01 00:00:00"));
        for lenient in ["2004-2-29", "2004/02/29", "2004-02-29 ", " 2004-02-29", "04-02-29", "2004-02", "0000-01-01"] {
            assert_eq!(read(lenient, "YYYY-MM-DD"), Err(REFUSED), "{lenient}");
        }
        assert!(matches!(read("2004-02-30", "YYYY-MM-DD"), Err(DateTimeError::Raises(_))));
        assert_eq!(read("Jan 2004", "Mon YYYY"), Err(REFUSED));
    }
}
