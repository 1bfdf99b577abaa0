//! power of [`Numeric`], with the scale and the digits of numeric.c: whole exponents by multiplication, others as
//! e^(exponent × ln(base)). See `irrational` on when a result is refused.

use num_bigint::{BigInt, BigUint};

use super::arithmetic::{DECIMAL_DIGITS, DISPLAY_SCALE_MAX, SIGNIFICANT_DIGITS_MIN, leading_digit};
use super::irrational::{
    DECIMALS_PER_E, ERROR_MIN, EXP_PLACES, EXPONENT_LIMIT, ONE, OVERFLOW, as_double, check_scale, display_scale,
    exponential, logarithm_error, logarithm_weight, nearest, refuse_digits, round_at, to_double,
};
use super::{NumericError, real};
use crate::types::Numeric;

/// How many decimals a power with a whole exponent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PowerScale {
    /// Sixteen decimals or the base's: PostgreSQL 14 and 15.
    SixteenDecimals,
    /// As many as make sixteen digits, or an operand's: from PostgreSQL 16 on, as with other exponents.
    SixteenDigits,
}

const ZERO_TO_NEGATIVE: NumericError = NumericError::Raises("zero raised to a negative power is undefined");
const COMPLEX: NumericError =
    NumericError::Raises("a negative number raised to a non-integer power yields a complex result");

impl Numeric {
    /// `self` ^ `exponent`. Without `power_scale`, what depends on it is refused.
    pub fn power(self, exponent: Self, power_scale: Option<PowerScale>) -> Result<Self, NumericError> {
        self.refuse_wide().and(exponent.refuse_wide())?;
        let (Self::Finite { mantissa, scale }, Self::Finite { scale: exponent_scale, .. }) = (self, exponent) else {
            return power_of_special(self, exponent);
        };
        check_scale(scale)?;
        check_scale(exponent_scale)?;
        if mantissa == 0 && exponent.signum() < 0 {
            return Err(ZERO_TO_NEGATIVE);
        }
        let whole = whole_value(exponent);
        if let Some(whole) = whole.and_then(|whole| i32::try_from(whole).ok()) {
            return WholePower::new(mantissa, scale, whole).at(exponent_scale, power_scale);
        }
        if mantissa == 0 {
            return Self::new(0, SIGNIFICANT_DIGITS_MIN as u16);
        }
        if mantissa < 0 && whole.is_none() {
            return Err(COMPLEX);
        }
        let power = real_power(mantissa.abs(), scale, exponent)?;
        let is_negative = mantissa < 0 && whole.is_some_and(|whole| whole % 2 != 0);
        Ok(if is_negative { power.neg() } else { power })
    }
}

fn whole_value(value: Numeric) -> Option<i128> {
    match value.normalized() {
        Numeric::Finite { mantissa, scale: 0 } => Some(mantissa),
        Numeric::Finite { .. }
        | Numeric::Wide { .. }
        | Numeric::NaN
        | Numeric::PositiveInfinity
        | Numeric::NegativeInfinity => None,
    }
}

/// The rules of POSIX for pow, as numeric_power has them; one operand is not finite.
fn power_of_special(base: Numeric, exponent: Numeric) -> Result<Numeric, NumericError> {
    let is = |value: Numeric, mantissa: i128| value.cmp(Numeric::Finite { mantissa, scale: 0 }).is_eq();
    let is_exponent_infinite = !exponent.is_finite() && !exponent.is_nan();
    if base.is_nan() {
        return Ok(if is(exponent, 0) { ONE } else { Numeric::NaN });
    }
    if exponent.is_nan() {
        return Ok(if is(base, 1) { ONE } else { Numeric::NaN });
    }
    if is(base, 0) && exponent.signum() < 0 {
        return Err(ZERO_TO_NEGATIVE);
    }
    if base.signum() < 0 && !is_exponent_infinite && whole_value(exponent).is_none() {
        return Err(COMPLEX);
    }
    if is(base, 1) || is(exponent, 0) || (is(base, -1) && is_exponent_infinite) {
        return Ok(ONE);
    }
    if is(base, 0) {
        return Ok(Numeric::ZERO);
    }
    let is_growing = base.abs().cmp(ONE).is_gt() == (exponent.signum() > 0);
    if !is_growing {
        return Ok(Numeric::ZERO);
    }
    let is_odd = whole_value(exponent).is_some_and(|whole| whole % 2 != 0);
    Ok(if base == Numeric::NegativeInfinity && is_odd { base } else { Numeric::PositiveInfinity })
}

/// numeric.c, power_var for other than small whole exponents: scales are chosen by a first product of about eight digits.
fn real_power(mantissa: i128, scale: u16, exponent: Numeric) -> Result<Numeric, NumericError> {
    let Numeric::Finite { mantissa: factor, scale: factor_scale } = exponent else { return Err(NumericError::Beyond) };
    if (Numeric::Finite { mantissa, scale }).cmp(ONE).is_eq() {
        return ONE.round(i32::from(display_scale(SIGNIFICANT_DIGITS_MIN, &[scale, factor_scale])));
    }
    let places = real::PLACES_MAX;
    let weight = logarithm_weight(mantissa, scale);
    let logarithm = real::ln(mantissa.unsigned_abs(), scale, places);
    let first_scale = display_scale(8 - weight, &[]);
    let (value, value_error) = first_estimate(&logarithm, first_scale, factor, factor_scale);
    let decimals = value * DECIMALS_PER_E;
    if (decimals.abs() + value_error) as i64 != (decimals.abs() - value_error).max(0.0) as i64 {
        return Err(NumericError::Beyond);
    }
    if value.abs() > EXPONENT_LIMIT * 1.01 {
        return if value > 0.0 { Err(OVERFLOW) } else { Numeric::new(0, DISPLAY_SCALE_MAX as u16) };
    }
    let result_scale = display_scale(SIGNIFICANT_DIGITS_MIN - decimals as i32, &[scale, factor_scale]);
    if value.abs() >= EXPONENT_LIMIT - 1.0 {
        // On which side of the limit the product is does not matter for what is too small.
        return if value > 0.0 { Err(NumericError::Beyond) } else { Numeric::new(0, result_scale) };
    }
    let significant_digits = (i32::from(result_scale) + decimals as i32).max(0);
    // Logarithm and product are rounded to so many decimals.
    let local_scale = (significant_digits - weight + 8).max(0);
    let factor_size = to_double(&BigInt::from(factor), factor_scale).abs();
    let logarithm_error = 0.5 + logarithm_error(as_double(&logarithm, places));
    let argument_error = (factor_size * logarithm_error + 0.51) * 10f64.powi(-local_scale);
    let argument = logarithm * factor / BigInt::from(real::power_of_ten(u32::from(factor_scale)));
    exponential(&(argument >> (places - EXP_PLACES)), value, result_scale, argument_error)
}

/// The product of logarithm and exponent where both are rounded to `scale`, as a double, and how far it may be off in decimal
/// digits of the result: where a rounding is too close to a half to know its outcome.
fn first_estimate(logarithm: &BigInt, scale: u16, factor: i128, factor_scale: u16) -> (f64, f64) {
    const DOUBTFUL: f64 = 1e-3;
    let unit = 10f64.powi(-i32::from(scale));
    let places = real::PLACES_MAX.cast_signed();
    let rounded = round_big(logarithm, places, scale);
    let product = rounded.0 * factor;
    let divisor = real::power_of_ten(u32::from(factor_scale));
    let magnitude = product.magnitude();
    let (mut whole, rest) = (magnitude / &divisor, magnitude % &divisor);
    let doubled = &rest << 1u32;
    let tail = u64::try_from((rest << 64u32) / &divisor).unwrap_or(u64::MAX);
    let is_exact_half = doubled == divisor;
    let is_doubtful = !is_exact_half && is_near_half(tail, DOUBTFUL);
    if doubled >= divisor {
        whole += 1u32;
    }
    let value = to_double(&BigInt::from_biguint(product.sign(), whole), scale);
    let factor_size = to_double(&BigInt::from(factor), factor_scale).abs();
    let doubt = if is_near_half(rounded.1, DOUBTFUL) { (factor_size + 1.0) * unit } else { 0.0 };
    (value, doubt + if is_doubtful { unit } else { 0.0 })
}

fn is_near_half(tail: u64, distance: f64) -> bool {
    (tail.abs_diff(1 << 63) as f64) < distance * 2f64.powi(64)
}

/// `value` × 2^-`places` rounded to `scale`, and the digits behind as a fraction of 2^64.
fn round_big(value: &BigInt, places: i64, scale: u16) -> (BigInt, u64) {
    let product = value.magnitude() * real::power_of_ten(u32::from(scale));
    let tail = (&product >> (places - 64)).iter_u64_digits().next().unwrap_or(0);
    let whole = (product >> places) + (tail >> 63);
    (BigInt::from_biguint(value.sign(), whole), tail)
}

/// numeric.c, power_var_int.
struct WholePower {
    mantissa: i128,
    scale: u16,
    exponent: i32,
    /// About log10 of the result.
    decimals: f64,
}

impl WholePower {
    fn new(mantissa: i128, scale: u16, exponent: i32) -> Self {
        let decimals = if mantissa == 0 { 0.0 } else { f64::from(exponent) * decimal_logarithm(mantissa, scale) };
        Self { mantissa, scale, exponent, decimals }
    }

    fn at(&self, exponent_scale: u16, power_scale: Option<PowerScale>) -> Result<Numeric, NumericError> {
        let decimals = display_scale(SIGNIFICANT_DIGITS_MIN, &[self.scale]);
        let digits = || {
            // Which whole number is next to zero of this depends on the C library where it is very near to one.
            let is_doubtful = self.decimals != self.decimals.round()
                && (self.decimals - self.decimals.round()).abs() < 1e-9 * (1.0 + self.decimals.abs());
            if is_doubtful {
                return Err(NumericError::InDoubt);
            }
            Ok(display_scale(
                SIGNIFICANT_DIGITS_MIN.saturating_sub(self.decimals as i32),
                &[self.scale, exponent_scale],
            ))
        };
        let result_scale = match power_scale {
            Some(PowerScale::SixteenDecimals) => decimals,
            Some(PowerScale::SixteenDigits) => digits()?,
            None if digits()? == decimals => decimals,
            None => return Err(NumericError::Beyond),
        };
        self.at_scale(result_scale)
    }

    fn at_scale(&self, result_scale: u16) -> Result<Numeric, NumericError> {
        if self.exponent == 0 {
            return ONE.round(i32::from(result_scale));
        }
        let size = self.decimals + f64::from(result_scale);
        if self.mantissa == 0 || size < -2.0 {
            return Numeric::new(0, result_scale);
        }
        refuse_digits(size)?;
        let magnitude = self.magnitude(result_scale)?;
        let is_negative = self.mantissa < 0 && self.exponent % 2 != 0;
        Numeric::new(if is_negative { -magnitude } else { magnitude }, result_scale)
    }

    fn magnitude(&self, result_scale: u16) -> Result<i128, NumericError> {
        const EXACT_BITS_MAX: u64 = 4096;
        let (base, base_scale) = stripped(self.mantissa.unsigned_abs(), self.scale);
        let times = self.exponent.unsigned_abs();
        let size = self.decimals + f64::from(result_scale);
        // numeric.c carries so many digits through its multiplications, each of which may be wrong by half a unit.
        let carried = 9 + i32::from(result_scale) + self.decimals as i32 + f64::from(times).ln() as i32;
        let mut tolerance = ERROR_MIN + 1.5 * 10f64.powf(size) * (f64::from(times) + 32.0) * 10f64.powi(-carried);
        let base_bits = u64::from(u128::BITS - base.leading_zeros());
        if base > 1 && base_bits * u64::from(times) > EXACT_BITS_MAX {
            let logarithm = real::ln(self.mantissa.unsigned_abs(), self.scale, real::PLACES_MAX);
            let argument = (logarithm * self.exponent) >> (real::PLACES_MAX - EXP_PLACES);
            let (mantissa, exponent) = real::exp(&argument, EXP_PLACES);
            let places = EXP_PLACES.cast_signed() - exponent;
            let Numeric::Finite { mantissa, .. } = round_at(&BigInt::from(mantissa), places, result_scale, tolerance)?
            else {
                return Err(NumericError::Beyond);
            };
            return Ok(mantissa);
        }
        let power = BigUint::from(base).pow(times);
        let power_digits = (power.bits() as f64 * std::f64::consts::LOG10_2) as i32 + 1;
        let shift = i64::from(result_scale) - i64::from(base_scale) * i64::from(self.exponent);
        let shifted = real::power_of_ten(u32::try_from(shift.unsigned_abs()).map_err(|_| NumericError::Beyond)?);
        let is_exact = match self.exponent {
            -1 => true,
            2 => {
                tolerance = square_error(base_scale, base, result_scale);
                tolerance == 0.0
            }
            _ => self.exponent > 0 && power_digits <= carried + 1,
        };
        let (mut numerator, mut denominator) =
            if self.exponent > 0 { (power, BigUint::from(1u32)) } else { (BigUint::from(1u32), power) };
        if shift >= 0 {
            numerator *= shifted;
        } else {
            denominator *= shifted;
        }
        let (whole, rest) = (&numerator / &denominator, numerator % &denominator);
        let tail = u64::try_from((rest << 64u32) / denominator).map_err(|_| NumericError::Beyond)?;
        nearest(whole, tail, if is_exact { 0.0 } else { tolerance })
    }
}

/// By how many units of the last digit a square may be wrong: numeric.c's mul_var leaves out the columns of products of
/// base-10000 digits that lie more than two behind the last one that is kept.
fn square_error(base_scale: i32, base: u128, result_scale: u16) -> f64 {
    let digits_behind = 2 * ((base_scale.max(0) + DECIMAL_DIGITS - 1) / DECIMAL_DIGITS);
    let kept = (i32::from(result_scale) + DECIMAL_DIGITS - 1) / DECIMAL_DIGITS;
    if digits_behind <= kept + 2 {
        return 0.0;
    }
    let digits = f64::from(base.ilog10()) / f64::from(DECIMAL_DIGITS) + 2.0;
    ERROR_MIN + digits * 1.01e-4 * 10f64.powi(i32::from(result_scale) - kept * DECIMAL_DIGITS)
}

/// `magnitude` × 10^-`scale` without trailing zeros; the scale becomes negative where there are some before the point.
fn stripped(mut magnitude: u128, scale: u16) -> (u128, i32) {
    let mut scale = i32::from(scale);
    while magnitude > 0 && magnitude.is_multiple_of(10) {
        magnitude /= 10;
        scale -= 1;
    }
    (magnitude, scale)
}

/// log10 of the magnitude by its first sixteen digits or fewer, as numeric.c takes it.
fn decimal_logarithm(mantissa: i128, scale: u16) -> f64 {
    let (weight, _) = leading_digit(mantissa, scale);
    let (magnitude, scale) = stripped(mantissa.unsigned_abs(), scale);
    // Up to four base-10000 digits: the value in units of the last of them.
    let last = (weight - 3).max(-(scale.max(0) + DECIMAL_DIGITS - 1).div_euclid(DECIMAL_DIGITS));
    let last = if scale < 0 { last.max((-scale).div_euclid(DECIMAL_DIGITS)) } else { last };
    let shift = scale + last * DECIMAL_DIGITS;
    let power = 10u128.pow(shift.unsigned_abs());
    let digits = if shift >= 0 { magnitude / power } else { magnitude * power };
    (digits as f64).log10() + f64::from(last * DECIMAL_DIGITS)
}
