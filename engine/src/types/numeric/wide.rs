//! Values of 39 to 76 digits: what 128 bits do not hold, as sums of keys spread over 128 bits are (semantic layers' symmetric
//! aggregates), and amounts in the smallest units. Everything here is the slow way, taken when the fast one has overflowed.

use std::cmp::Ordering;
use std::sync::LazyLock;

use arrow::datatypes::i256;

use super::arithmetic::{DECIMAL_DIGITS, Rounding, quotient_scale_of, quotient_shift};
use super::{MANTISSA_LIMIT, NumericError, SCALE_MAX};
use crate::types::Numeric;

/// Digits that a wide mantissa may have.
pub const WIDE_DIGITS_MAX: u32 = 76;

/// 10^0 to 10^76.
static POWERS: LazyLock<[i256; WIDE_DIGITS_MAX as usize + 1]> = LazyLock::new(|| {
    let mut powers = [i256::ONE; WIDE_DIGITS_MAX as usize + 1];
    for exponent in 1..powers.len() {
        powers[exponent] = powers[exponent - 1].wrapping_mul(i256::from_i128(10));
    }
    powers
});

impl Numeric {
    /// `mantissa` × 10^-`scale` in the form that holds it, if one does.
    pub fn from_wide(mantissa: i256, scale: u16) -> Result<Self, NumericError> {
        if scale > SCALE_MAX {
            return Err(NumericError::Beyond);
        }
        if let Some(mantissa) = mantissa.to_i128()
            && mantissa.unsigned_abs() < MANTISSA_LIMIT.unsigned_abs()
        {
            return Ok(Self::Finite { mantissa, scale });
        }
        if magnitude(mantissa) >= POWERS[WIDE_DIGITS_MAX as usize] {
            return Err(NumericError::Beyond);
        }
        Ok(Self::Wide { mantissa, scale })
    }

    /// `mantissa` × 10^-`scale`, for any mantissa.
    pub fn of_i128(mantissa: i128, scale: u16) -> Self {
        if mantissa.unsigned_abs() < MANTISSA_LIMIT.unsigned_abs() {
            return Self::Finite { mantissa, scale };
        }
        Self::Wide { mantissa: mantissa.into(), scale }
    }

    pub fn is_wide(self) -> bool {
        matches!(self, Self::Wide { .. })
    }

    /// Mantissa and scale of a finite value.
    pub fn parts(self) -> Option<(i256, u16)> {
        match self {
            Self::Finite { mantissa, scale } => Some((i256::from_i128(mantissa), scale)),
            Self::Wide { mantissa, scale } => Some((mantissa, scale)),
            Self::NaN | Self::PositiveInfinity | Self::NegativeInfinity => None,
        }
    }

    /// For what is computed of 38 digits only.
    pub(super) fn refuse_wide(self) -> Result<(), NumericError> {
        if self.is_wide() { Err(NumericError::Beyond) } else { Ok(()) }
    }
}

/// 10^`exponent`, if it fits.
pub fn power(exponent: u32) -> Option<i256> {
    POWERS.get(exponent as usize).copied()
}

/// Mantissas are above the smallest integer.
fn magnitude(mantissa: i256) -> i256 {
    mantissa.wrapping_abs()
}

fn shifted(mantissa: i256, digits: u32) -> Result<i256, NumericError> {
    if mantissa == i256::ZERO {
        return Ok(mantissa);
    }
    power(digits).and_then(|power| mantissa.checked_mul(power)).ok_or(NumericError::Beyond)
}

/// Both mantissas at the larger scale.
fn align((a, x): (i256, u16), (b, y): (i256, u16)) -> Result<(i256, i256, u16), NumericError> {
    let scale = x.max(y);
    Ok((shifted(a, u32::from(scale - x))?, shifted(b, u32::from(scale - y))?, scale))
}

pub(super) fn add(a: (i256, u16), b: (i256, u16)) -> Result<Numeric, NumericError> {
    let (a, b, scale) = align(a, b)?;
    Numeric::from_wide(a.checked_add(b).ok_or(NumericError::Beyond)?, scale)
}

pub(super) fn multiply((a, x): (i256, u16), (b, y): (i256, u16)) -> Result<Numeric, NumericError> {
    Numeric::from_wide(a.checked_mul(b).ok_or(NumericError::Beyond)?, x.saturating_add(y))
}

/// The divisor is not zero.
pub(super) fn remainder(a: (i256, u16), b: (i256, u16)) -> Result<Numeric, NumericError> {
    let (a, b, scale) = align(a, b)?;
    Numeric::from_wide(a.checked_rem(b).ok_or(NumericError::Beyond)?, scale)
}

/// The quotient's whole part; the divisor is not zero.
pub fn divide_whole(a: (i256, u16), b: (i256, u16)) -> Result<Numeric, NumericError> {
    let (a, b, _) = align(a, b)?;
    Numeric::from_wide(a.checked_div(b).ok_or(NumericError::Beyond)?, 0)
}

/// At the scale that [`quotient_scale_of`] gives, half away from zero; the divisor is not zero.
pub(super) fn divide(dividend: (i256, u16), divisor: (i256, u16)) -> Result<Numeric, NumericError> {
    let ((a, x), (b, y)) = (dividend, divisor);
    let scale = quotient_scale_of(leading_digit(a, x), x, leading_digit(b, y), y);
    quotient(a, quotient_shift(scale, x, y)?, b, scale)
}

/// `a` × 10^`shift` / `b`, half away from zero; the divisor is not zero.
pub(super) fn quotient(a: i256, shift: u32, b: i256, scale: u16) -> Result<Numeric, NumericError> {
    let (whole, rest) = shifted(a, shift)?.checked_div_rem(b).ok_or(NumericError::Beyond)?;
    let is_up = magnitude(rest) >= magnitude(b).wrapping_sub(magnitude(rest));
    let is_negative = (a < i256::ZERO) != (b < i256::ZERO);
    let step = if is_negative { i256::MINUS_ONE } else { i256::ONE };
    Numeric::from_wide(if is_up { whole.wrapping_add(step) } else { whole }, scale)
}

/// As [`arithmetic::leading_digit`](super::arithmetic::leading_digit).
fn leading_digit(mantissa: i256, scale: u16) -> (i32, i128) {
    let magnitude = magnitude(mantissa);
    if magnitude == i256::ZERO {
        return (0, 0);
    }
    let digits = POWERS.partition_point(|power| *power <= magnitude) as i32;
    let weight = (digits - 1 - i32::from(scale)).div_euclid(DECIMAL_DIGITS);
    let unit = i32::from(scale) + weight * DECIMAL_DIGITS;
    let first = match u32::try_from(unit).ok().and_then(power) {
        Some(power) => magnitude.wrapping_div(power),
        // At most three zeros are missing from a first digit.
        None => magnitude.wrapping_mul(POWERS[unit.unsigned_abs().min(3) as usize]),
    };
    (weight, first.to_i128().unwrap_or_default())
}

/// With `scale` decimals, or rounded to tens where it is negative.
pub(super) fn at_scale(
    (mantissa, current): (i256, u16),
    scale: i32,
    rounding: Rounding,
) -> Result<Numeric, NumericError> {
    let dropped = i32::from(current) - scale;
    let kept = u16::try_from(scale.max(0)).map_err(|_| NumericError::Beyond)?;
    if dropped <= 0 {
        return Numeric::from_wide(shifted(mantissa, dropped.unsigned_abs())?, kept);
    }
    let rounded = drop_digits(mantissa, dropped.unsigned_abs(), rounding);
    if scale >= 0 {
        return Numeric::from_wide(rounded, kept);
    }
    Numeric::from_wide(shifted(rounded, scale.unsigned_abs())?, 0)
}

fn drop_digits(mantissa: i256, digits: u32, rounding: Rounding) -> i256 {
    // More digits than a mantissa has: less than a tenth is left.
    let Some(unit) = power(digits) else { return i256::ZERO };
    let (whole, rest) = (mantissa.wrapping_div(unit), magnitude(mantissa.wrapping_rem(unit)));
    let is_up = rounding == Rounding::HalfAwayFromZero && rest >= unit.wrapping_sub(rest);
    match (is_up, mantissa < i256::ZERO) {
        (false, _) => whole,
        (true, false) => whole.wrapping_add(i256::ONE),
        (true, true) => whole.wrapping_sub(i256::ONE),
    }
}

/// The whole part, and the sign of the rest.
pub(super) fn whole(mantissa: i256, scale: u16) -> (i256, i32) {
    let (whole, rest) = match power(u32::from(scale)) {
        Some(unit) => (mantissa.wrapping_div(unit), mantissa.wrapping_rem(unit)),
        None => (i256::ZERO, mantissa),
    };
    (whole, sign(rest))
}

pub(super) fn sign(mantissa: i256) -> i32 {
    match mantissa.cmp(&i256::ZERO) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

pub(super) fn compare(a: (i256, u16), b: (i256, u16)) -> Ordering {
    match (shifted(a.0, u32::from(b.1.saturating_sub(a.1))), shifted(b.0, u32::from(a.1.saturating_sub(b.1)))) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        // What overflows while it is brought to the other's scale is the larger of the two in magnitude.
        (Err(_), _) => sign(a.0).cmp(&0),
        (_, Err(_)) => 0.cmp(&sign(b.0)),
    }
}

/// Without trailing zeros after the point.
pub(super) fn normalized(mut mantissa: i256, mut scale: u16) -> Numeric {
    let ten = i256::from_i128(10);
    while scale > 0 && mantissa.wrapping_rem(ten) == i256::ZERO {
        mantissa = mantissa.wrapping_div(ten);
        scale -= 1;
    }
    Numeric::from_wide(mantissa, scale).unwrap_or(Numeric::Wide { mantissa, scale })
}

/// Base-10000 digits of a magnitude, the last first, where that many decimals are missing from the last.
pub(super) fn base_digits(mantissa: i256, padding: u32) -> Vec<u16> {
    let base = i256::from_i128(10_000);
    let mut rest = magnitude(mantissa);
    let mut digits = Vec::with_capacity(24);
    if padding > 0 {
        let unit = POWERS[4 - padding as usize];
        let low = rest.wrapping_rem(unit).to_i128().unwrap_or_default();
        digits.push((low * 10i128.pow(padding)) as u16);
        rest = rest.wrapping_div(unit);
    }
    while rest > i256::ZERO {
        digits.push(rest.wrapping_rem(base).to_i128().unwrap_or_default() as u16);
        rest = rest.wrapping_div(base);
    }
    digits
}
