//! sqrt, exp, ln and log of [`Numeric`], with the scale and the digits of numeric.c (PostgreSQL 15).
//!
//! sqrt is rounded exactly there and here. The others are computed there with about eight digits more than are kept, so
//! that the last digit is the nearest one unless the digits behind it are close to a half. Here they are known with many
//! more; where they are closer to a half than PostgreSQL's error may be, the result is refused. Each function says what
//! bounds that error, in units of the last digit.

use std::f64::consts::{LN_10, LOG10_2};

use num_bigint::{BigInt, BigUint};

use super::arithmetic::{DECIMAL_DIGITS, DISPLAY_SCALE_MAX, RESULT_SCALE_MAX, SIGNIFICANT_DIGITS_MIN, leading_digit};
use super::{DIGITS_MAX, NumericError, POWERS_OF_TEN, compare_finite, real};
use crate::types::Numeric;

/// log10(e), with the digits that numeric.c has.
#[expect(clippy::approx_constant, reason = "the nearest double may decide otherwise on a scale")]
pub(super) const DECIMALS_PER_E: f64 = 0.434294481903252;
/// exp() of as much overflows, or is zero.
pub(super) const EXPONENT_LIMIT: f64 = RESULT_SCALE_MAX as f64 * 3.0;

pub(super) const OVERFLOW: NumericError = NumericError::Raises("value overflows numeric format");
const LOGARITHM_OF_NEGATIVE: NumericError = NumericError::Raises("cannot take logarithm of a negative number");
const LOGARITHM_OF_ZERO: NumericError = NumericError::Raises("cannot take logarithm of zero");

impl Numeric {
    pub fn sqrt(self) -> Result<Self, NumericError> {
        const NEGATIVE: NumericError = NumericError::Raises("cannot take square root of a negative number");
        self.refuse_wide()?;
        let Self::Finite { mantissa, scale } = self else {
            return if self.signum() < 0 { Err(NEGATIVE) } else { Ok(self) };
        };
        check_scale(scale)?;
        if mantissa < 0 {
            return Err(NEGATIVE);
        }
        let (weight, _) = leading_digit(mantissa, scale);
        let result_weight = (weight + 1) * DECIMAL_DIGITS / 2 - 1;
        let result_scale = display_scale(SIGNIFICANT_DIGITS_MIN - result_weight, &[scale]);
        if mantissa == 0 {
            return Self::new(0, result_scale);
        }
        // Twice the root of m × 10^-s at scale r is the root of 4m × 10^(2r - s); r is not below s.
        let shift = 2 * u32::from(result_scale) - u32::from(scale);
        refuse_digits(f64::from(mantissa.ilog10() + shift) / 2.0)?;
        let magnitude = mantissa.unsigned_abs();
        let quadruple = super::power_of_ten(shift).and_then(|power| power.unsigned_abs().checked_mul(4));
        let doubled = match quadruple.and_then(|factor| magnitude.checked_mul(factor)) {
            Some(radicand) => radicand.isqrt(),
            None => u128::try_from((BigUint::from(magnitude) * 4u32 * real::power_of_ten(shift)).sqrt())
                .map_err(|_| NumericError::Beyond)?,
        };
        Self::new(doubled.div_ceil(2).cast_signed(), result_scale)
    }

    pub fn exp(self) -> Result<Self, NumericError> {
        self.refuse_wide()?;
        let Self::Finite { mantissa, scale } = self else {
            return Ok(if self == Self::NegativeInfinity { Self::ZERO } else { self });
        };
        check_scale(scale)?;
        let value = to_double(&BigInt::from(mantissa), scale);
        let decimals = (value * DECIMALS_PER_E).clamp(-f64::from(RESULT_SCALE_MAX), f64::from(RESULT_SCALE_MAX));
        let result_scale = display_scale(SIGNIFICANT_DIGITS_MIN - decimals as i32, &[scale]);
        if value.abs() >= EXPONENT_LIMIT {
            return if value > 0.0 { Err(OVERFLOW) } else { Self::new(0, result_scale) };
        }
        let argument = (BigInt::from(mantissa) << EXP_PLACES) / BigInt::from(real::power_of_ten(u32::from(scale)));
        exponential(&argument, value, result_scale, 0.0)
    }

    pub fn ln(self) -> Result<Self, NumericError> {
        self.refuse_wide()?;
        let Self::Finite { mantissa, scale } = self else {
            return if self.signum() < 0 { Err(LOGARITHM_OF_NEGATIVE) } else { Ok(self) };
        };
        check_scale(scale)?;
        let magnitude = logarithm_argument(mantissa)?;
        let weight = logarithm_weight(mantissa, scale);
        let result_scale = display_scale(SIGNIFICANT_DIGITS_MIN - weight, &[scale]);
        refuse_digits(f64::from(weight + i32::from(result_scale)))?;
        let places = if result_scale <= 40 { 192 } else { real::PLACES_MAX };
        let logarithm = real::ln(magnitude, scale, places);
        let tolerance = logarithm_error(as_double(&logarithm, places));
        round_at(&logarithm, places.cast_signed(), result_scale, tolerance)
    }

    /// log(`self`, `of`): the logarithm of `of` to base `self`.
    pub fn log(self, of: Self) -> Result<Self, NumericError> {
        self.refuse_wide().and(of.refuse_wide())?;
        let (Self::Finite { mantissa: base, scale: base_scale }, Self::Finite { mantissa, scale }) = (self, of) else {
            return logarithm_of_special(self, of);
        };
        check_scale(base_scale)?;
        check_scale(scale)?;
        let (base_weight, weight) = (logarithm_weight(base, base_scale), logarithm_weight(mantissa, scale));
        let result_weight = weight - base_weight;
        let result_scale = display_scale(SIGNIFICANT_DIGITS_MIN - result_weight, &[base_scale, scale]);
        let (base, magnitude) = (logarithm_argument(base)?, logarithm_argument(mantissa)?);
        if self.cmp(ONE).is_eq() {
            return Err(NumericError::DivisionByZero);
        }
        if of.cmp(ONE).is_eq() {
            return Self::new(0, result_scale);
        }
        refuse_digits(f64::from(result_weight + i32::from(result_scale)))?;
        let places = if base_weight > -10 && weight > -10 { 256 } else { real::PLACES_MAX };
        let divisor = real::ln(base, base_scale, places);
        let dividend = real::ln(magnitude, scale, places);
        let quotient = (&dividend << places) / &divisor;
        // PostgreSQL divides logarithms that are rounded to so many decimals.
        let relative_error = |logarithm: &BigInt, weight: i32| {
            let decimals = (i32::from(result_scale) + result_weight - weight + 8).max(0);
            let value = as_double(logarithm, places);
            (0.5 + logarithm_error(value)) * 10f64.powi(-decimals) / value.abs().max(f64::MIN_POSITIVE)
        };
        let units = as_double(&quotient, places).abs() * 10f64.powi(i32::from(result_scale));
        let errors = relative_error(&divisor, base_weight) + relative_error(&dividend, weight);
        round_at(&quotient, places.cast_signed(), result_scale, ERROR_MIN + 1.5 * units * errors)
    }
}

pub(super) const ONE: Numeric = Numeric::Finite { mantissa: 1, scale: 0 };

/// Binary places that the exponential function is computed with.
pub(super) const EXP_PLACES: u64 = 256;

/// Added to every bound: far above what is lost here.
pub(super) const ERROR_MIN: f64 = 1e-9;

/// Values of more decimals than PostgreSQL's results have by themselves are rare, and slow to compute with.
pub(super) fn check_scale(scale: u16) -> Result<(), NumericError> {
    if i32::from(scale) > DISPLAY_SCALE_MAX { Err(NumericError::Beyond) } else { Ok(()) }
}

/// Refuses results of many more digits than are held before they are computed; `digits` is an estimate.
pub(super) fn refuse_digits(digits: f64) -> Result<(), NumericError> {
    if digits > f64::from(DIGITS_MAX) + 3.0 { Err(NumericError::Beyond) } else { Ok(()) }
}

/// As numeric.c chooses scales: no fewer decimals than an operand has, within its limits.
pub(super) fn display_scale(wanted: i32, operands: &[u16]) -> u16 {
    let scale = operands.iter().fold(wanted.max(0), |scale, &operand| scale.max(i32::from(operand)));
    scale.min(DISPLAY_SCALE_MAX) as u16
}

/// The nearest double of the decimal text; infinite or zero where it is out of range.
pub(super) fn to_double(mantissa: &BigInt, scale: u16) -> f64 {
    format!("{mantissa}e-{scale}").parse().expect("digits and an exponent")
}

/// A rough value of a fixed-point number, for bounds.
pub(super) fn as_double(value: &BigInt, places: u64) -> f64 {
    let magnitude = value.magnitude();
    let dropped = magnitude.bits().saturating_sub(64);
    let top = u64::try_from(magnitude >> dropped).expect("64 bits");
    let double = top as f64 * 2f64.powi((dropped.cast_signed() - places.cast_signed()) as i32);
    if value.sign() == num_bigint::Sign::Minus { -double } else { double }
}

fn logarithm_argument(mantissa: i128) -> Result<u128, NumericError> {
    match mantissa {
        1.. => Ok(mantissa.unsigned_abs()),
        0 => Err(LOGARITHM_OF_ZERO),
        _ => Err(LOGARITHM_OF_NEGATIVE),
    }
}

/// numeric.c, numeric_log: NaN, then what raises, then the limits.
fn logarithm_of_special(base: Numeric, of: Numeric) -> Result<Numeric, NumericError> {
    if base.is_nan() || of.is_nan() {
        return Ok(Numeric::NaN);
    }
    match base.signum().min(of.signum()) {
        0 => Err(LOGARITHM_OF_ZERO),
        ..0 => Err(LOGARITHM_OF_NEGATIVE),
        _ if base.is_finite() => Ok(Numeric::PositiveInfinity),
        _ if of.is_finite() => Ok(Numeric::ZERO),
        _ => Ok(Numeric::NaN),
    }
}

/// numeric.c, estimate_ln_dweight: about log10(|ln|), cut to a whole number towards zero. It decides on scales, so it is
/// computed from the same digits.
pub(super) fn logarithm_weight(mantissa: i128, scale: u16) -> i32 {
    if mantissa <= 0 {
        return 0;
    }
    if compare_finite(mantissa, scale, 9, 1).is_ge() && compare_finite(mantissa, scale, 11, 1).is_le() {
        // ln(1 + x) is about x. As the value is not below 0.9, its mantissa has no fewer digits than its scale says.
        let (weight, first) = leading_digit(mantissa - POWERS_OF_TEN[usize::from(scale)], scale);
        return if first == 0 { 0 } else { weight * DECIMAL_DIGITS + first.ilog10() as i32 };
    }
    // The first two base-10000 digits, or the only one.
    let (weight, first) = leading_digit(mantissa, scale);
    let unit = i32::from(scale) + (weight - 1) * DECIMAL_DIGITS;
    let two = match usize::try_from(unit) {
        Ok(unit) => mantissa / POWERS_OF_TEN[unit],
        Err(_) => mantissa * POWERS_OF_TEN[unit.unsigned_abs() as usize],
    };
    let is_one_digit = two == first * 10_000
        && usize::try_from(unit).is_ok_and(|unit| mantissa % POWERS_OF_TEN[unit] == 0)
        || unit < 0 && two % 10_000 == 0;
    let (digits, weight) = if is_one_digit { (first, weight) } else { (two, weight - 1) };
    let logarithm = (digits as f64).ln() + f64::from(weight * DECIMAL_DIGITS) * LN_10;
    logarithm.abs().log10() as i32
}

/// By how many units of the last digit numeric.c's ln_var is wrong at most. It takes roots until the value is near 1, sums a
/// series and multiplies by a power of two, which is below 42 |ln|: the roots are rounded eight digits behind the last one,
/// the product is cut, by up to 10^-8 for each unit of the factor, and the terms of the series are rounded.
pub(super) fn logarithm_error(logarithm: f64) -> f64 {
    3e-6 + 1e-6 * logarithm.abs()
}

/// numeric.c, exp_var: e^`argument`, where `value` is what PostgreSQL has as the argument's double and `argument_error` by
/// how much its argument may differ. It sums a series near 1 and squares it, with eight digits more than the result has.
pub(super) fn exponential(
    argument: &BigInt,
    value: f64,
    result_scale: u16,
    argument_error: f64,
) -> Result<Numeric, NumericError> {
    let decimals = value * DECIMALS_PER_E;
    refuse_digits(decimals + f64::from(result_scale))?;
    if decimals + f64::from(result_scale) < -3.0 {
        return Numeric::new(0, result_scale);
    }
    let mut halvings = 0;
    while value.abs() / 2f64.powi(halvings) > 0.01 {
        halvings += 1;
    }
    let lost = (f64::from(halvings) * LOG10_2) as i32;
    let local_scale = (1 + decimals as i32 + i32::from(result_scale) + lost).max(0) + 7;
    let terms = f64::from(local_scale) / 2.0 + 2.0;
    let series_error = 0.6 * terms * 10f64.powi(-local_scale) * 2f64.powi(halvings);
    let units = 10f64.powf(decimals + f64::from(result_scale));
    let tolerance = ERROR_MIN + 1.5 * units * (series_error + argument_error);
    let (mantissa, exponent) = real::exp(argument, EXP_PLACES);
    round_at(&BigInt::from(mantissa), EXP_PLACES.cast_signed() - exponent, result_scale, tolerance)
}

/// `value` × 2^-`places` at `scale`.
pub(super) fn round_at(value: &BigInt, places: i64, scale: u16, tolerance: f64) -> Result<Numeric, NumericError> {
    // Fewer places than these are left only of values beyond 10^38.
    let places = u64::try_from(places).ok().filter(|&places| places >= 64).ok_or(NumericError::Beyond)?;
    let product = value.magnitude() * real::power_of_ten(u32::from(scale));
    let tail = (&product >> (places - 64)).iter_u64_digits().next().unwrap_or(0);
    let mantissa = nearest(product >> places, tail, tolerance)?;
    Numeric::new(if value.sign() == num_bigint::Sign::Minus { -mantissa } else { mantissa }, scale)
}

/// `whole` and `tail` × 2^-64, rounded; refused within `tolerance` of a half.
pub(super) fn nearest(whole: BigUint, tail: u64, tolerance: f64) -> Result<i128, NumericError> {
    const HALF: u64 = 1 << 63;
    if (tail.abs_diff(HALF) as f64) < tolerance * 2f64.powi(64) {
        return Err(NumericError::InDoubt);
    }
    let whole = u128::try_from(whole).map_err(|_| NumericError::Beyond)?;
    let rounded = whole.checked_add(u128::from(tail >= HALF)).ok_or(NumericError::Beyond)?;
    i128::try_from(rounded).map_err(|_| NumericError::Beyond)
}
