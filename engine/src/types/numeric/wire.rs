//! The binary format of numeric (numeric_send, numeric_recv): a header of four 16-bit words, then base-10000 digits.
//!
//! | word | meaning |
//! |---|---|
//! | ndigits | number of digits that follow |
//! | weight | the first digit counts 10000^weight |
//! | sign | 0x0000, 0x4000 (negative), 0xC000 (NaN), 0xD000, 0xF000 (±infinity) |
//! | dscale | decimals that are displayed |

use arrow::datatypes::i256;

use super::{MANTISSA_LIMIT, NumericError, POWERS_OF_TEN, wide};
use crate::types::Numeric;
use crate::types::text::ParseError;

pub(crate) const SIGN_POSITIVE: u16 = 0x0000;
pub(crate) const SIGN_NEGATIVE: u16 = 0x4000;
const SIGN_NAN: u16 = 0xC000;
const SIGN_POSITIVE_INFINITY: u16 = 0xD000;
const SIGN_NEGATIVE_INFINITY: u16 = 0xF000;
/// NUMERIC_DSCALE_MASK.
const SCALE_MASK: u16 = 0x3FFF;
/// What numeric_send reports as the dscale of an infinity: bits of its header word that mean nothing there.
const INFINITY_SCALE: u16 = 0x20;
pub(crate) const BASE: u64 = 10_000;
pub(crate) const HEADER_BYTES: usize = 8;

impl Numeric {
    /// Decodes numeric_send's format without a typmod. Digits below the display scale are cut off, as numeric_recv does.
    pub fn decode_binary(bytes: &[u8]) -> Result<Self, ParseError> {
        let (header, digits) = bytes.split_at_checked(HEADER_BYTES).ok_or_else(malformed)?;
        let word = |index: usize| u16::from_be_bytes([header[index * 2], header[index * 2 + 1]]);
        let (count, weight, sign, scale) = (word(0), word(1).cast_signed(), word(2), word(3));
        if digits.len() != usize::from(count) * 2 {
            return Err(malformed());
        }
        match sign {
            SIGN_POSITIVE | SIGN_NEGATIVE => {}
            SIGN_NAN => return Ok(Self::NaN),
            SIGN_POSITIVE_INFINITY => return Ok(Self::PositiveInfinity),
            SIGN_NEGATIVE_INFINITY => return Ok(Self::NegativeInfinity),
            _ => return Err(ParseError::Raises("invalid sign in external \"numeric\" value".into())),
        }
        if scale & SCALE_MASK != scale {
            return Err(ParseError::Raises("invalid scale in external \"numeric\" value".into()));
        }
        let magnitude = match decode_magnitude(digits, weight, scale) {
            Err(ParseError::Beyond(_)) => return decode_wide(digits, weight, sign == SIGN_NEGATIVE, scale),
            magnitude => magnitude?,
        };
        let mantissa = if sign == SIGN_NEGATIVE { -magnitude } else { magnitude };
        Ok(Self::Finite { mantissa, scale })
    }

    /// Appends numeric_send's format.
    pub fn encode_binary(self, out: &mut Vec<u8>) {
        let special = |sign: u16, scale: u16, out: &mut Vec<u8>| {
            out.extend_from_slice(&header(0, 0, sign, scale));
        };
        match self {
            Self::Finite { mantissa, scale } => encode_decimal(mantissa, scale, out),
            Self::Wide { mantissa, scale } => encode_wide(mantissa, scale, out),
            Self::NaN => special(SIGN_NAN, 0, out),
            Self::PositiveInfinity => special(SIGN_POSITIVE_INFINITY, INFINITY_SCALE, out),
            Self::NegativeInfinity => special(SIGN_NEGATIVE_INFINITY, INFINITY_SCALE, out),
        }
    }
}

/// Appends `mantissa` × 10^-`scale` in the binary format.
pub fn encode_decimal(mantissa: i128, scale: u16, out: &mut Vec<u8>) {
    // 38 digits split at the point take at most 11 base-10000 digits; filled from the end.
    const DIGITS_MAX: usize = 12;
    let mut digits = [0u16; DIGITS_MAX];
    let mut first = DIGITS_MAX;
    let magnitude = mantissa.unsigned_abs();
    // The last digit is padded with zeros to a multiple of four decimals.
    let padding = (4 - scale % 4) % 4;
    let fraction_digits = i32::from(scale.div_ceil(4));
    let mut push = |digit: u16| {
        first -= 1;
        digits[first] = digit;
    };
    match u64::try_from(magnitude) {
        Ok(mut rest) => {
            if padding > 0 && rest > 0 {
                let (low, unit) = low_digit(padding);
                push((rest % low) as u16 * unit);
                rest /= low;
            }
            while rest > 0 {
                push((rest % BASE) as u16);
                rest /= BASE;
            }
        }
        Err(_) => {
            let mut rest = magnitude;
            if padding > 0 {
                let (low, unit) = low_digit(padding);
                push((rest % u128::from(low)) as u16 * unit);
                rest /= u128::from(low);
            }
            while rest > 0 {
                push((rest % u128::from(BASE)) as u16);
                rest /= u128::from(BASE);
            }
        }
    }
    let weight = (DIGITS_MAX - first) as i32 - fraction_digits - 1;
    // As stored: no zero digits at either end (make_result).
    let mut end = DIGITS_MAX;
    while end > first && digits[end - 1] == 0 {
        end -= 1;
    }
    let weight = if end == first { 0 } else { weight as i16 };
    let sign = if mantissa < 0 { SIGN_NEGATIVE } else { SIGN_POSITIVE };
    let mut bytes = [0u8; HEADER_BYTES + 2 * DIGITS_MAX];
    bytes[..HEADER_BYTES].copy_from_slice(&header((end - first) as u16, weight, sign, scale));
    let mut length = HEADER_BYTES;
    for digit in &digits[first..end] {
        bytes[length..length + 2].copy_from_slice(&digit.to_be_bytes());
        length += 2;
    }
    out.extend_from_slice(&bytes[..length]);
}

/// For a last base-10000 digit of which `padding` decimals are not in the mantissa: the divisor that cuts the
/// others off the mantissa, and the factor that shifts them into place.
pub(crate) fn low_digit(padding: u16) -> (u64, u16) {
    match padding {
        1 => (1000, 10),
        2 => (100, 100),
        _ => (10, 1000),
    }
}

pub(crate) fn header(count: u16, weight: i16, sign: u16, scale: u16) -> [u8; HEADER_BYTES] {
    let [c, w, s, d] = [count.to_be_bytes(), weight.to_be_bytes(), sign.to_be_bytes(), scale.to_be_bytes()];
    [c[0], c[1], w[0], w[1], s[0], s[1], d[0], d[1]]
}

fn decode_magnitude(digits: &[u8], weight: i16, scale: u16) -> Result<i128, ParseError> {
    let mut magnitude = 0i128;
    // Decimals that the digits read so far stand for: negative left of the point.
    let mut decimals = -4 * (i32::from(weight) + 1);
    for pair in digits.chunks_exact(2) {
        let digit = i128::from(u16::from_be_bytes([pair[0], pair[1]]));
        if digit >= i128::from(BASE) {
            return Err(ParseError::Raises("invalid digit in external \"numeric\" value".into()));
        }
        let room = i32::from(scale) - decimals;
        decimals += 4;
        let (factor, digit) = match room {
            4.. => (4, digit),
            1..=3 => (room, digit / POWERS_OF_TEN[(4 - room) as usize]),
            _ => (0, 0),
        };
        if factor > 0 {
            let shifted = magnitude.checked_mul(POWERS_OF_TEN[factor as usize]).ok_or(NumericError::Beyond)?;
            magnitude = shifted.checked_add(digit).ok_or(NumericError::Beyond)?;
        }
    }
    let missing = i32::from(scale) - decimals;
    if missing > 0 && magnitude != 0 {
        let unit = POWERS_OF_TEN.get(missing as usize).ok_or(NumericError::Beyond)?;
        magnitude = magnitude.checked_mul(*unit).ok_or(NumericError::Beyond)?;
    }
    if magnitude >= MANTISSA_LIMIT { Err(NumericError::Beyond.into()) } else { Ok(magnitude) }
}

/// As [`decode_magnitude`], in 256 bits; the digits are known to be some.
fn decode_wide(digits: &[u8], weight: i16, is_negative: bool, scale: u16) -> Result<Numeric, ParseError> {
    let mut text = String::with_capacity(digits.len() * 2 + 16);
    if is_negative {
        text.push('-');
    }
    for pair in digits.chunks_exact(2) {
        let digit = u16::from_be_bytes([pair[0], pair[1]]);
        if u64::from(digit) >= BASE {
            return Err(ParseError::Raises("invalid digit in external \"numeric\" value".into()));
        }
        text.push_str(&format!("{digit:04}"));
    }
    // More decimals than trunc() leaves.
    if scale > 1_000 {
        return Err(NumericError::Beyond.into());
    }
    // The last digit is padded with zeros.
    let written = text.trim_end_matches('0');
    let padding = (text.len() - written.len()) as i32;
    let exponent = 4 * (i32::from(weight) + 1) - 2 * digits.len() as i32 + padding;
    Ok(Numeric::parse(&format!("{written}e{exponent}"))?.trunc(i32::from(scale))?)
}

/// As [`encode_decimal`].
fn encode_wide(mantissa: i256, scale: u16, out: &mut Vec<u8>) {
    let digits = wide::base_digits(mantissa, u32::from((4 - scale % 4) % 4));
    let weight = digits.len() as i32 - i32::from(scale.div_ceil(4)) - 1;
    let kept = digits.iter().position(|digit| *digit != 0).map_or(&[][..], |first| &digits[first..]);
    let sign = if mantissa < i256::ZERO { SIGN_NEGATIVE } else { SIGN_POSITIVE };
    out.extend_from_slice(&header(kept.len() as u16, weight as i16, sign, scale));
    kept.iter().rev().for_each(|digit| out.extend_from_slice(&digit.to_be_bytes()));
}

fn malformed() -> ParseError {
    ParseError::Raises("invalid length in external \"numeric\" value".into())
}
