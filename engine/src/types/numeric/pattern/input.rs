//! to_number (formatting.c: NUM_processor where it reads, NUM_numpart_from_char, numeric_to_number).

use super::{Item, Pattern, unknown};
use crate::types::Numeric;
use crate::types::numeric::NumericError;

/// What is being read, and what has been.
struct Input<'t> {
    text: &'t [u8],
    at: usize,
    sign: Option<u8>,
    digits: String,
    before: usize,
    after: usize,
    has_point: bool,
}

impl Pattern {
    /// The number that `text` is by this pattern. Behind V and of Roman numerals, and of other than ASCII: PostgreSQL's.
    pub fn read(&self, text: &str) -> Result<Numeric, NumericError> {
        if self.is_roman || self.shift.is_some() || !text.is_ascii() {
            return unknown();
        }
        let mut input = Input {
            text: text.as_bytes(),
            at: 0,
            sign: None,
            digits: String::new(),
            before: 0,
            after: 0,
            has_point: false,
        };
        for item in &self.items {
            let Some(next) = input.next() else { break };
            // Whether the character that is looked at is done with.
            let is_taken = match item {
                Item::Nine | Item::Zero | Item::Point => {
                    self.read_digit(*item, &mut input);
                    true
                }
                Item::Comma => !self.is_filled && next == b',',
                // With a decimal point in the pattern, it is not looked for.
                Item::Ordinal { .. } => {
                    if !self.has_point {
                        input.skip_other(2);
                    }
                    false
                }
                Item::Minus | Item::Plus | Item::Sign => {
                    let is_sign = match item {
                        Item::Minus => next == b'-',
                        Item::Plus => next == b'+',
                        _ => matches!(next, b'-' | b'+'),
                    };
                    match is_sign {
                        true => input.sign = Some(next),
                        false => input.skip_other(1),
                    }
                    is_sign
                }
                Item::Literal(_) => true,
                Item::Roman { .. } => return unknown(),
            };
            input.at += usize::from(is_taken);
        }
        let digits = input.digits.strip_suffix('.').unwrap_or(&input.digits);
        let sign = if input.sign == Some(b'-') { "-" } else { "" };
        let precision = self.before + input.after;
        if precision == 0 {
            return unknown();
        }
        let typmod = ((precision << 16) | input.after) as i32 + 4;
        let number = Numeric::parse(&format!("{sign}{digits}")).map_err(|_| WRONG)?;
        number.apply_typmod(typmod).map_err(|_| WRONG)
    }

    /// NUM_numpart_from_char.
    fn read_digit(&self, item: Item, input: &mut Input<'_>) {
        if input.next() == Some(b' ') {
            input.at += 1;
        }
        let Some(next) = input.next() else { return };
        if input.sign.is_none() && item != Item::Point && input.before + input.after == 0 {
            let sign = match next {
                b'-' => Some(b'-'),
                b'<' if self.is_bracketed => Some(b'-'),
                b'+' => Some(b'+'),
                _ => None,
            };
            if sign.is_some() {
                input.sign = sign;
                input.at += 1;
            }
        }
        let Some(next) = input.next() else { return };
        let mut is_read = false;
        if next.is_ascii_digit() {
            if input.has_point && input.after == self.after {
                return;
            }
            input.digits.push(char::from(next));
            *(if input.has_point { &mut input.after } else { &mut input.before }) += 1;
            is_read = true;
        } else if self.has_point && !input.has_point && next == b'.' {
            input.digits.push('.');
            input.has_point = true;
            is_read = true;
        }
        // A sign behind the last digit, if the pattern has one somewhere.
        let is_behind = input.sign.is_none() && input.before + input.after > 0;
        if is_behind && !is_read && (self.has_plus || self.has_minus) && matches!(next, b'-' | b'+') {
            input.sign = Some(next);
        }
    }
}

const WRONG: NumericError = NumericError::Raises("invalid input for a number by this pattern");

impl Input<'_> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// NUM_eat_non_data_chars.
    fn skip_other(&mut self, count: usize) {
        for _ in 0..count {
            match self.next() {
                Some(next) if !b"0123456789.,+-".contains(&next) => self.at += 1,
                _ => return,
            }
        }
    }
}
