//! [`Numeric`] from and to text, integers and floats, as numeric.c converts them.

use arrow::datatypes::i256;

use super::{NumericError, SCALE_MAX, power_of_ten, wide};
use crate::types::Numeric;
use crate::types::float::{short_float4, short_float8};
use crate::types::text::{ParseError, trim_space};

impl Numeric {
    /// numeric_in without a typmod. Surrounding white space is ignored; the scale is the number of decimals written,
    /// less the exponent.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::parse_bytes(text.as_bytes())
    }

    /// As [`Self::parse`], from the bytes of a text-format value.
    pub fn parse_bytes(text: &[u8]) -> Result<Self, ParseError> {
        let trimmed = trim_space(text);
        if let Some(special) = parse_special(trimmed) {
            return Ok(special);
        }
        parse_decimal(trimmed).map_err(|refusal| match refusal {
            Refusal::Syntax => ParseError::syntax("numeric"),
            Refusal::Beyond => NumericError::Beyond.into(),
        })
    }

    pub fn from_i64(value: i64) -> Self {
        Self::Finite { mantissa: i128::from(value), scale: 0 }
    }

    /// float8_numeric: 15 significant digits.
    pub fn from_f64(value: f64) -> Result<Self, NumericError> {
        // Of a decimal of so few digits they are these.
        if let Some((mantissa, scale)) = short_float8(value, 1) {
            return Ok(Self::Finite { mantissa: i128::from(mantissa), scale });
        }
        from_float_text(value, format_args!("{value:.14e}"))
    }

    /// float4_numeric: 6 significant digits.
    pub fn from_f32(value: f32) -> Result<Self, NumericError> {
        if let Some((mantissa, scale)) = short_float4(value, 1) {
            return Ok(Self::Finite { mantissa: i128::from(mantissa), scale });
        }
        from_float_text(f64::from(value), format_args!("{value:.5e}"))
    }

    /// numeric_float8: the nearest double of the decimal text.
    pub fn to_f64(self) -> Result<f64, NumericError> {
        match self {
            Self::Finite { mantissa, scale } => finite_to_f64(mantissa, scale),
            Self::Wide { mantissa, scale } => text_to_f64(&float_text(mantissa, scale)),
            Self::NaN => Ok(f64::NAN),
            Self::PositiveInfinity => Ok(f64::INFINITY),
            Self::NegativeInfinity => Ok(f64::NEG_INFINITY),
        }
    }

    /// numeric_float4: the nearest float of the decimal text (not of the double).
    pub fn to_f32(self) -> Result<f32, NumericError> {
        match self {
            Self::Finite { mantissa, scale } => text_to_f32(&float_text(mantissa, scale), mantissa == 0),
            Self::Wide { mantissa, scale } => text_to_f32(&float_text(mantissa, scale), false),
            Self::NaN => Ok(f32::NAN),
            Self::PositiveInfinity => Ok(f32::INFINITY),
            Self::NegativeInfinity => Ok(f32::NEG_INFINITY),
        }
    }

    pub fn to_i16(self) -> Result<i16, NumericError> {
        i16::try_from(self.to_whole()?).map_err(|_| NumericError::Raises("smallint out of range"))
    }

    pub fn to_i32(self) -> Result<i32, NumericError> {
        i32::try_from(self.to_whole()?).map_err(|_| NumericError::Raises("integer out of range"))
    }

    pub fn to_i64(self) -> Result<i64, NumericError> {
        i64::try_from(self.to_whole()?).map_err(|_| NumericError::Raises("bigint out of range"))
    }

    /// Rounded half away from zero (numericvar_to_int64).
    fn to_whole(self) -> Result<i128, NumericError> {
        match self.round(0)? {
            Self::Finite { mantissa, .. } => Ok(mantissa),
            // Out of the range of every integer.
            Self::Wide { .. } => Ok(i128::MAX),
            Self::NaN => Err(NumericError::Raises("cannot convert NaN to an integer")),
            Self::PositiveInfinity | Self::NegativeInfinity => {
                Err(NumericError::Raises("cannot convert infinity to an integer"))
            }
        }
    }
}

enum Refusal {
    Syntax,
    Beyond,
}

/// The spellings of numeric_in: NaN takes no sign, infinity does, in any case.
fn parse_special(text: &[u8]) -> Option<Numeric> {
    if text.eq_ignore_ascii_case(b"nan") {
        return Some(Numeric::NaN);
    }
    let (is_negative, name) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if !name.eq_ignore_ascii_case(b"infinity") && !name.eq_ignore_ascii_case(b"inf") {
        return None;
    }
    Some(if is_negative { Numeric::NegativeInfinity } else { Numeric::PositiveInfinity })
}

/// set_var_from_str: sign, digits with at most one point (a digit must follow a leading point), exponent.
fn parse_decimal(text: &[u8]) -> Result<Numeric, Refusal> {
    let (is_negative, mut rest) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let starts_with_digit = match rest {
        [b'.', digit, ..] | [digit, ..] => digit.is_ascii_digit(),
        [] => false,
    };
    if !starts_with_digit {
        return Err(Refusal::Syntax);
    }
    let mut mantissa = Some(0i128);
    // The same where 128 bits are not enough.
    let mut wide = i256::ZERO;
    let mut decimals: Option<i64> = None;
    while let [first, tail @ ..] = rest {
        match first {
            b'0'..=b'9' => {
                let digit = i128::from(first - b'0');
                let next = mantissa.and_then(|mantissa| mantissa.checked_mul(10)?.checked_add(digit));
                if next.is_none() {
                    let known = mantissa.map_or(wide, i256::from_i128);
                    let next = known.checked_mul(i256::from_i128(10)).and_then(|known| known.checked_add(digit.into()));
                    wide = next.ok_or(Refusal::Beyond)?;
                }
                mantissa = next;
                decimals = decimals.map(|count| count + 1);
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            b'e' | b'E' => break,
            _ => return Err(Refusal::Syntax),
        }
        rest = tail;
    }
    let exponent = match rest {
        [] => 0,
        [_, exponent @ ..] => parse_exponent(exponent)?,
    };
    let mantissa = mantissa.map_or(wide, i256::from_i128);
    let mantissa = if is_negative { mantissa.wrapping_neg() } else { mantissa };
    let scale = decimals.unwrap_or(0) - exponent;
    if scale >= 0 {
        let scale = u16::try_from(scale).map_err(|_| Refusal::Beyond)?;
        return Numeric::from_wide(mantissa, scale).map_err(|_| Refusal::Beyond);
    }
    let digits = u32::try_from(-scale).map_err(|_| Refusal::Beyond)?;
    if mantissa == i256::ZERO {
        return Ok(Numeric::ZERO);
    }
    let shifted = wide::power(digits).and_then(|power| mantissa.checked_mul(power)).ok_or(Refusal::Beyond)?;
    Numeric::from_wide(shifted, 0).map_err(|_| Refusal::Beyond)
}

fn parse_exponent(text: &[u8]) -> Result<i64, Refusal> {
    let (is_negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        // strtol skips white space here, so that PostgreSQL accepts `1e 5`.
        Some(b' ' | b'\t'..=b'\r') => return Err(Refusal::Beyond),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Refusal::Syntax);
    }
    let mut exponent = 0i64;
    for digit in digits {
        exponent = exponent * 10 + i64::from(digit - b'0');
        if exponent > 2 * i64::from(SCALE_MAX) {
            // Either an error or zero in PostgreSQL.
            return Err(Refusal::Beyond);
        }
    }
    Ok(if is_negative { -exponent } else { exponent })
}

/// From the `d.ddde±x` rendering of a float to what numeric_in makes of its `%g` rendering: the same digits
/// without trailing zeros.
fn from_float_text(value: f64, text: std::fmt::Arguments<'_>) -> Result<Numeric, NumericError> {
    if value.is_nan() {
        return Ok(Numeric::NaN);
    }
    if value.is_infinite() {
        return Ok(if value > 0.0 { Numeric::PositiveInfinity } else { Numeric::NegativeInfinity });
    }
    Numeric::parse(&without_trailing_zeros(&text.to_string())).map_err(|_| NumericError::Beyond)
}

fn without_trailing_zeros(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}e{exponent}")
}

fn finite_to_f64(mantissa: i128, scale: u16) -> Result<f64, NumericError> {
    // Both exact in a double, so that one correctly rounded division is the nearest double (Clinger).
    const EXACT_MANTISSA_MAX: u128 = 1 << 53;
    const EXACT_SCALE_MAX: u16 = 22;
    if mantissa.unsigned_abs() <= EXACT_MANTISSA_MAX
        && scale <= EXACT_SCALE_MAX
        && let Some(unit) = power_of_ten(u32::from(scale))
    {
        return Ok(mantissa as f64 / unit as f64);
    }
    if mantissa == 0 { Ok(0.0) } else { text_to_f64(&float_text(mantissa, scale)) }
}

/// Of what is not zero.
fn text_to_f64(text: &str) -> Result<f64, NumericError> {
    let value: f64 = text.parse().map_err(|_| NumericError::Beyond)?;
    // float8in raises on underflow to zero; overflow needs more digits than are held.
    if value == 0.0 { Err(NumericError::Raises("out of range for type double precision")) } else { Ok(value) }
}

fn text_to_f32(text: &str, is_zero: bool) -> Result<f32, NumericError> {
    let value: f32 = text.parse().map_err(|_| NumericError::Beyond)?;
    let is_lost = value.is_infinite() || (value == 0.0 && !is_zero);
    if is_lost { Err(NumericError::Raises("out of range for type real")) } else { Ok(value) }
}

fn float_text(mantissa: impl std::fmt::Display, scale: u16) -> String {
    format!("{mantissa}e-{scale}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn floats_of_few_digits_are_the_numerics_that_their_text_is(mantissa in any::<i64>(), cut in 0u32..19, scale in 0u32..7) {
            let mantissa = mantissa / 10i64.pow(cut);
            let value = mantissa as f64 / 10f64.powi(scale as i32);
            prop_assert_eq!(Numeric::from_f64(value), from_float_text(value, format_args!("{value:.14e}")));
            let value = mantissa as f32 / 10f32.powi(scale as i32);
            let text = from_float_text(f64::from(value), format_args!("{value:.5e}"));
            prop_assert_eq!(Numeric::from_f32(value), text);
        }
    }
}
