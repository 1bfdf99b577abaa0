//! Template patterns of numbers: to_char of integers, numerics and floats (PostgreSQL: formatting.c, NUMDesc_prepare,
//! NUM_processor, NUM_numpart_to_char); `input` has to_number.
//!
//! What depends on the locale (D, G, L, S), EEEE and the patterns that few know (B, C, SP) is left to PostgreSQL.

mod input;

use super::{Numeric, NumericError, POWERS_OF_TEN};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Nine,
    Zero,
    Point,
    Comma,
    Minus,
    Plus,
    Sign,
    /// th and TH.
    Ordinal {
        is_upper: bool,
    },
    Roman {
        is_upper: bool,
    },
    Literal(char),
}

/// A pattern, read once (NUMDesc).
#[derive(Clone, Debug, Default)]
pub struct Pattern {
    items: Vec<Item>,
    before: usize,
    after: usize,
    has_point: bool,
    /// FM.
    is_filled: bool,
    /// The first 0 before the point, counted from 1.
    zero_start: Option<usize>,
    zero_end: usize,
    has_plus: bool,
    has_minus: bool,
    /// PR.
    is_bracketed: bool,
    is_roman: bool,
    /// Digits after V; None without V.
    shift: Option<usize>,
}

/// Why a pattern is not applied here.
fn unknown<T>() -> Result<T, NumericError> {
    Err(NumericError::Beyond)
}

const WRONG: NumericError = NumericError::Raises("invalid number format pattern");

/// More digits than any number here has.
const DIGITS_MAX: usize = 100;

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, NumericError> {
        let mut pattern = Self::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            rest = match pattern.keyword(rest)? {
                0 if first == '"' => pattern.quoted(&rest[1..]),
                0 => {
                    let rest = if rest.starts_with("\\\"") { &rest[1..] } else { rest };
                    let literal = rest.chars().next().unwrap_or(first);
                    pattern.items.push(Item::Literal(literal));
                    &rest[literal.len_utf8()..]
                }
                length => &rest[length..],
            };
        }
        if pattern.before + pattern.after > DIGITS_MAX || pattern.shift.is_some_and(|shift| shift > 18) {
            return unknown();
        }
        if pattern.is_bracketed && pattern.has_point && pattern.before + pattern.after + pattern.shift.unwrap_or(0) == 0
        {
            // Without a digit PostgreSQL counts to the place before the first.
            return unknown();
        }
        let only_roman = |item: &Item| matches!(item, Item::Roman { .. } | Item::Literal(_));
        if pattern.is_roman && !pattern.items.iter().all(only_roman) {
            return unknown();
        }
        Ok(pattern)
    }

    /// Whether it is empty: to_char is the empty text then.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && !self.is_filled && !self.is_bracketed && self.shift.is_none()
    }

    /// Takes the keyword that `rest` begins with, and says how long it is; 0: none. Keywords are in one case.
    fn keyword(&mut self, rest: &str) -> Result<usize, NumericError> {
        let bytes = rest.as_bytes();
        let starts =
            |word: &str| bytes.starts_with(word.as_bytes()) || bytes.starts_with(word.to_ascii_lowercase().as_bytes());
        match bytes[0] {
            b'9' => self.digit(Item::Nine)?,
            b'0' => self.digit(Item::Zero)?,
            b',' => self.items.push(Item::Comma),
            b'.' => {
                if self.has_point || self.shift.is_some() {
                    return Err(WRONG);
                }
                self.has_point = true;
                self.items.push(Item::Point);
            }
            b'V' | b'v' => {
                if self.has_point {
                    return Err(WRONG);
                }
                self.shift.get_or_insert(0);
            }
            _ if starts("FM") => {
                self.is_filled = true;
                return Ok(2);
            }
            _ if starts("MI") => {
                self.has_minus = true;
                self.items.push(Item::Minus);
                return Ok(2);
            }
            _ if starts("PL") => {
                self.has_plus = true;
                self.items.push(Item::Plus);
                return Ok(2);
            }
            _ if starts("SG") => {
                (self.has_plus, self.has_minus) = (true, true);
                self.items.push(Item::Sign);
                return Ok(2);
            }
            _ if starts("PR") => {
                if self.has_plus || self.has_minus {
                    return Err(WRONG);
                }
                self.is_bracketed = true;
                return Ok(2);
            }
            _ if starts("TH") => {
                self.items.push(Item::Ordinal { is_upper: bytes[0] == b'T' });
                return Ok(2);
            }
            _ if starts("RN") => {
                self.is_roman = true;
                self.items.push(Item::Roman { is_upper: bytes[0] == b'R' });
                return Ok(2);
            }
            b'B' | b'C' | b'D' | b'G' | b'L' | b'S' | b'b' | b'c' | b'd' | b'g' | b'l' | b's' => return unknown(),
            _ if starts("EEEE") => return unknown(),
            _ => return Ok(0),
        }
        Ok(1)
    }

    fn digit(&mut self, item: Item) -> Result<(), NumericError> {
        if self.is_bracketed {
            return Err(WRONG);
        }
        self.items.push(item);
        if item == Item::Nine {
            if let Some(shift) = &mut self.shift {
                *shift += 1;
                return Ok(());
            }
        } else if self.zero_start.is_none() && !self.has_point {
            self.zero_start = Some(self.before + 1);
        }
        let side = if self.has_point { &mut self.after } else { &mut self.before };
        *side += 1;
        if item == Item::Zero {
            self.zero_end = self.before + self.after;
        }
        Ok(())
    }

    /// Behind an opening quote; what is behind the closing one.
    fn quoted<'t>(&mut self, text: &'t str) -> &'t str {
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => return &text[at + 1..],
                '\\' => {
                    let literal = characters.next().map_or('\\', |(_, next)| next);
                    self.items.push(Item::Literal(literal));
                }
                _ => self.items.push(Item::Literal(character)),
            }
        }
        ""
    }

    /// int4_to_char, int8_to_char.
    pub fn write_integer(&self, value: i64, out: &mut String) -> Result<(), NumericError> {
        if self.is_roman {
            // The function's argument is an integer.
            return i32::try_from(value).map_or_else(|_| unknown(), |value| self.write_roman(value.into(), out));
        }
        let factor = self.shift.map_or(1, |shift| POWERS_OF_TEN[shift]);
        let shifted = i128::from(value) * factor;
        let limit = if i32::try_from(value).is_ok() { i128::from(i32::MAX) } else { i128::from(i64::MAX) };
        // PostgreSQL's product may overflow.
        if shifted.abs() > limit && self.shift.is_some() {
            return unknown();
        }
        let mut digits = shifted.unsigned_abs().to_string();
        if self.after > 0 {
            digits.push('.');
            digits.extend(std::iter::repeat_n('0', self.after));
        }
        self.write(shifted < 0, digits, self.after, out)
    }

    /// numeric_to_char.
    pub fn write_numeric(&self, value: Numeric, out: &mut String) -> Result<(), NumericError> {
        if !value.is_finite() {
            return unknown();
        }
        if self.is_roman {
            return self.write_roman(i64::from(value.round(0)?.to_i32()?), out);
        }
        let value = match self.shift {
            None => value,
            Some(shift) => value.mul(Numeric::Finite { mantissa: POWERS_OF_TEN[shift], scale: 0 })?,
        };
        let text = value.round(self.after as i32)?.to_string();
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.as_str()),
        };
        self.write(is_negative, digits.to_owned(), self.after, out)
    }

    /// float8_to_char, and float4_to_char with its 6 digits.
    pub fn write_float(&self, value: f64, digits_max: usize, out: &mut String) -> Result<(), NumericError> {
        if !value.is_finite() || self.shift.is_some() {
            return unknown();
        }
        if self.is_roman {
            let rounded = value.round_ties_even();
            return if rounded.abs() < 1e9 { self.write_roman(rounded as i64, out) } else { unknown() };
        }
        let whole = format!("{:.0}", value.abs()).len();
        let after = if whole >= digits_max { 0 } else { self.after.min(digits_max - whole) };
        let text = format!("{value:.after$}");
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.as_str()),
        };
        self.write(is_negative, digits.to_owned(), after, out)
    }

    fn write_roman(&self, value: i64, out: &mut String) -> Result<(), NumericError> {
        let roman = roman(value);
        for item in &self.items {
            match item {
                Item::Roman { is_upper } => {
                    let text = if *is_upper { roman.clone() } else { roman.to_ascii_lowercase() };
                    let width = if self.is_filled { 0 } else { 15 };
                    out.push_str(&format!("{text:>width$}"));
                }
                Item::Literal(character) => out.push(*character),
                _ => return unknown(),
            }
        }
        Ok(())
    }

    /// NUM_processor, of the digits of a number's magnitude.
    fn write(&self, is_negative: bool, digits: String, after: usize, out: &mut String) -> Result<(), NumericError> {
        let before = self.before + self.shift.unwrap_or(0);
        let length = digits.find('.').unwrap_or(digits.len());
        let digits = if length > before {
            // More digits than the pattern has: all of them are written as #.
            let mut filled = "#".repeat(before + after + 1).into_bytes();
            filled[before] = b'.';
            filled
        } else {
            digits.into_bytes()
        };
        let mut writer = Writer::new(self, is_negative, digits, before.saturating_sub(length), before + after);
        for item in &self.items {
            writer.item(*item)?;
        }
        // What PostgreSQL writes is a C string.
        let written = writer.out;
        out.push_str(written.split('\0').next().unwrap_or_default());
        Ok(())
    }
}

/// NUMProc.
struct Writer<'p> {
    pattern: &'p Pattern,
    is_negative: bool,
    number: Vec<u8>,
    /// Of the next digit to be written.
    at: usize,
    /// The last digit that FM does not leave out.
    last_relevant: Option<usize>,
    spaces: usize,
    zero_start: Option<usize>,
    count: usize,
    current: usize,
    has_digits: bool,
    is_sign_written: bool,
    is_bracketed: bool,
    out: String,
}

impl<'p> Writer<'p> {
    fn new(pattern: &'p Pattern, is_negative: bool, number: Vec<u8>, spaces: usize, digits: usize) -> Self {
        let is_filled = pattern.is_filled;
        let mut is_bracketed = pattern.is_bracketed;
        let is_sign_written = if pattern.has_plus || pattern.has_minus {
            !pattern.has_plus || pattern.has_minus
        } else {
            is_bracketed &= is_negative || !is_filled;
            !is_negative && is_filled
        };
        let point = number.iter().position(|byte| *byte == b'.');
        let mut last_relevant = match point {
            Some(point) if is_filled && pattern.has_point => {
                let last = number[point + 1..].iter().rposition(|byte| *byte != b'0');
                Some(last.map_or(point, |last| point + 1 + last))
            }
            _ => None,
        };
        if let Some(last) = &mut last_relevant
            && pattern.zero_end > spaces
        {
            *last = (*last).max((number.len() - 1).min(pattern.zero_end - spaces));
        }
        // One less than there are digits; may be none.
        let count = digits.saturating_sub(1) + usize::from(!is_sign_written && spaces == 0);
        let zero_start = pattern.zero_start.map(|start| start - 1);
        let (current, at, out) = (0, 0, String::new());
        Self {
            pattern,
            is_negative,
            number,
            at,
            last_relevant,
            spaces,
            zero_start,
            count,
            current,
            has_digits: false,
            is_sign_written,
            is_bracketed,
            out,
        }
    }

    fn item(&mut self, item: Item) -> Result<(), NumericError> {
        let is_filled = self.pattern.is_filled;
        match item {
            Item::Nine | Item::Zero | Item::Point => self.digit(item),
            Item::Comma if self.has_digits => self.out.push(','),
            Item::Minus if self.is_negative => self.out.push('-'),
            Item::Plus if !self.is_negative => self.out.push('+'),
            Item::Comma | Item::Minus | Item::Plus if is_filled => {}
            Item::Comma | Item::Minus | Item::Plus => self.out.push(' '),
            Item::Sign => self.out.push(if self.is_negative { '-' } else { '+' }),
            Item::Ordinal { is_upper } => {
                if self.number.first() != Some(&b'#') && !self.is_negative && !self.pattern.has_point {
                    self.out.push_str(ordinal(&self.number, is_upper).ok_or(WRONG)?);
                }
            }
            Item::Literal(character) => self.out.push(character),
            Item::Roman { .. } => return unknown(),
        }
        Ok(())
    }

    /// Whether the 0 before the point is not written: 9.9 of 0.1.
    fn is_space_before_point(&self) -> bool {
        self.zero_start.is_none() && self.at == 0 && self.number.first() == Some(&b'0') && self.pattern.after > 0
    }

    /// NUM_numpart_to_char.
    fn digit(&mut self, item: Item) {
        self.has_digits = false;
        let is_filled = self.pattern.is_filled;
        let is_point_last = self.last_relevant.is_some_and(|last| self.number[last] == b'.');
        let reached = self.current >= self.spaces || self.zero_start == Some(self.current);
        if !self.is_sign_written && reached && (!self.is_space_before_point() || is_point_last) {
            match (self.is_bracketed, self.is_negative) {
                (true, is_negative) => self.out.push(if is_negative { '<' } else { ' ' }),
                (false, true) => self.out.push('-'),
                (false, false) if !is_filled => self.out.push(' '),
                (false, false) => {}
            }
            self.is_sign_written = true;
        }
        if self.current < self.spaces {
            if self.zero_start.is_some_and(|start| start <= self.current) {
                self.out.push('0');
                self.has_digits = true;
            } else if !is_filled {
                self.out.push(' ');
            }
        } else {
            self.number_digit(item, is_point_last);
        }
        let mut end = self.count + usize::from(self.spaces > 0) + usize::from(self.pattern.has_point);
        if self.last_relevant == Some(self.at) {
            end = self.current;
        }
        if self.current + 1 == end && self.is_sign_written && self.is_bracketed {
            self.out.push(if self.is_negative { '>' } else { ' ' });
        }
        self.current += 1;
    }

    fn number_digit(&mut self, item: Item, is_point_last: bool) {
        let next = self.number.get(self.at).copied().unwrap_or(0);
        if next == b'.' {
            if !is_point_last || self.pattern.is_filled {
                self.out.push('.');
            }
        } else if self.last_relevant.is_some_and(|last| self.at > last) && item != Item::Zero {
        } else if self.is_space_before_point() {
            if !self.pattern.is_filled {
                self.out.push(' ');
            } else if is_point_last {
                self.out.push('0');
            }
        } else {
            self.out.push(char::from(next));
            self.has_digits = true;
        }
        self.at += usize::from(next != 0);
    }
}

/// get_th. None: the number does not end with a digit.
fn ordinal(number: &[u8], is_upper: bool) -> Option<&'static str> {
    let (last, before) = number.split_last()?;
    if !last.is_ascii_digit() {
        return None;
    }
    let form = match last {
        _ if before.last() == Some(&b'1') => 0,
        b'1' => 1,
        b'2' => 2,
        b'3' => 3,
        _ => 0,
    };
    Some(if is_upper { ["TH", "ST", "ND", "RD"][form] } else { ["th", "st", "nd", "rd"][form] })
}

/// int_to_roman.
fn roman(value: i64) -> String {
    if !(1..=3999).contains(&value) {
        return "#".repeat(15);
    }
    const FORMS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let (mut rest, mut text) = (value, String::new());
    for (worth, form) in FORMS {
        while rest >= worth {
            text.push_str(form);
            rest -= worth;
        }
    }
    text
}
