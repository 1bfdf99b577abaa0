//! Operators and rounding on [`Numeric`], with the display scale of each result as numeric.c has it.

use super::{NumericError, POWERS_OF_TEN, SCALE_MAX, power_of_ten, shift_left, wide};
use crate::planted::{Bug, is_planted};
use crate::types::Numeric;

/// NUMERIC_MIN_SIG_DIGITS: digits that a quotient has at least.
pub(super) const SIGNIFICANT_DIGITS_MIN: i32 = 16;
/// NUMERIC_MAX_DISPLAY_SCALE (= NUMERIC_MAX_PRECISION).
pub(super) const DISPLAY_SCALE_MAX: i32 = 1000;
/// NUMERIC_MAX_RESULT_SCALE: round() and trunc() clamp to it.
pub(super) const RESULT_SCALE_MAX: i32 = 2000;
/// DEC_DIGITS: decimal digits in one of PostgreSQL's base-10000 digits.
pub(super) const DECIMAL_DIGITS: i32 = 4;
/// The offset of typmods of varlena types.
const VARHDRSZ: i32 = 4;

/// How digits beyond the wanted scale are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    HalfAwayFromZero,
    TowardZero,
}

impl Numeric {
    #[expect(clippy::should_implement_trait, reason = "fallible")]
    pub fn add(self, other: Self) -> Result<Self, NumericError> {
        match (self, other) {
            (Self::Finite { mantissa: a, scale: x }, Self::Finite { mantissa: b, scale: y }) => {
                let sum = || {
                    let (a, b, scale) = align(a, x, b, y)?;
                    Self::new(a.checked_add(b).ok_or(NumericError::Beyond)?, scale)
                };
                sum().or_else(|_| wide::add((a.into(), x), (b.into(), y)))
            }
            (Self::NaN, _) | (_, Self::NaN) => Ok(Self::NaN),
            (Self::PositiveInfinity, Self::NegativeInfinity) | (Self::NegativeInfinity, Self::PositiveInfinity) => {
                Ok(Self::NaN)
            }
            (a, b) => match (a.parts(), b.parts()) {
                (Some(a), Some(b)) => wide::add(a, b),
                (Some(_), None) => Ok(b),
                (None, _) => Ok(a),
            },
        }
    }

    #[expect(clippy::should_implement_trait, reason = "fallible")]
    pub fn sub(self, other: Self) -> Result<Self, NumericError> {
        self.add(other.neg())
    }

    #[expect(clippy::should_implement_trait, reason = "fallible")]
    pub fn mul(self, other: Self) -> Result<Self, NumericError> {
        match (self, other) {
            (Self::Finite { mantissa: a, scale: x }, Self::Finite { mantissa: b, scale: y }) => {
                // numeric.c rounds a product of more than SCALE_MAX digits; `new` refuses it.
                let product = a.checked_mul(b).ok_or(NumericError::Beyond);
                let product = product.and_then(|product| Self::new(product, x.saturating_add(y)));
                product.or_else(|_| wide::multiply((a.into(), x), (b.into(), y)))
            }
            (Self::NaN, _) | (_, Self::NaN) => Ok(Self::NaN),
            (a, b) => match (a.parts(), b.parts()) {
                (Some(a), Some(b)) => wide::multiply(a, b),
                _ => Ok(infinity_of_sign(a.signum() * b.signum()).unwrap_or(Self::NaN)),
            },
        }
    }

    /// `/`: at least 16 significant digits, and no fewer decimals than either operand has.
    #[expect(clippy::should_implement_trait, reason = "fallible")]
    pub fn div(self, other: Self) -> Result<Self, NumericError> {
        match (self, other) {
            (_, Self::Finite { mantissa: 0, .. }) if !self.is_nan() => Err(NumericError::DivisionByZero),
            (Self::Finite { mantissa: a, scale: x }, Self::Finite { mantissa: b, scale: y }) => {
                divide_finite(a, x, b, y)
            }
            (Self::NaN, _) | (_, Self::NaN) => Ok(Self::NaN),
            (a, b) => match (a.parts(), b.parts()) {
                (Some(a), Some(b)) => wide::divide(a, b),
                (Some(_), None) => Ok(Self::ZERO),
                (None, Some(_)) => Ok(infinity_of_sign(a.signum() * b.signum()).unwrap_or(Self::NaN)),
                (None, None) => Ok(Self::NaN),
            },
        }
    }

    /// `%`: the sign is the dividend's.
    #[expect(clippy::should_implement_trait, reason = "fallible")]
    pub fn rem(self, other: Self) -> Result<Self, NumericError> {
        match (self, other) {
            (_, Self::Finite { mantissa: 0, .. }) if !self.is_nan() => Err(NumericError::DivisionByZero),
            (Self::Finite { mantissa: a, scale: x }, Self::Finite { mantissa: b, scale: y }) => {
                let rest = align(a, x, b, y).and_then(|(a, b, scale)| Self::new(a % b, scale));
                rest.or_else(|_| wide::remainder((a.into(), x), (b.into(), y)))
            }
            (Self::NaN, _) | (_, Self::NaN) => Ok(Self::NaN),
            (a, b) => match (a.parts(), b.parts()) {
                (Some(a), Some(b)) => wide::remainder(a, b),
                (Some(_), None) => Ok(self),
                (None, _) => Ok(Self::NaN),
            },
        }
    }

    /// The largest number that both are multiples of. NaN for special values.
    pub fn gcd(self, other: Self) -> Result<Self, NumericError> {
        self.refuse_wide().and(other.refuse_wide())?;
        let (Self::Finite { mantissa: a, scale: x }, Self::Finite { mantissa: b, scale: y }) = (self, other) else {
            return Ok(Self::NaN);
        };
        let (a, b, scale) = align(a, x, b, y)?;
        Self::new(common_divisor(a, b), scale)
    }

    /// The smallest number above zero that is a multiple of both; zero if one of them is.
    pub fn lcm(self, other: Self) -> Result<Self, NumericError> {
        self.refuse_wide().and(other.refuse_wide())?;
        let (Self::Finite { mantissa: a, scale: x }, Self::Finite { mantissa: b, scale: y }) = (self, other) else {
            return Ok(Self::NaN);
        };
        if a == 0 || b == 0 {
            return Self::new(0, x.max(y));
        }
        let (a, b, scale) = align(a, x, b, y)?;
        let multiple = (a / common_divisor(a, b)).checked_mul(b).ok_or(NumericError::Beyond)?;
        Self::new(multiple.checked_abs().ok_or(NumericError::Beyond)?, scale)
    }

    pub fn factorial(number: i64) -> Result<Self, NumericError> {
        if number < 0 {
            return Err(NumericError::Raises("factorial of a negative number is undefined"));
        }
        let mut product = 1i128;
        for factor in 2..=i128::from(number) {
            product = product.checked_mul(factor).ok_or(NumericError::Beyond)?;
        }
        Self::new(product, 0)
    }

    #[expect(clippy::should_implement_trait, reason = "beside its fallible siblings")]
    pub fn neg(self) -> Self {
        match self {
            Self::Finite { mantissa, scale } => Self::Finite { mantissa: -mantissa, scale },
            Self::Wide { mantissa, scale } => Self::Wide { mantissa: mantissa.wrapping_neg(), scale },
            Self::NaN => Self::NaN,
            Self::PositiveInfinity => Self::NegativeInfinity,
            Self::NegativeInfinity => Self::PositiveInfinity,
        }
    }

    pub fn abs(self) -> Self {
        if self.signum() < 0 { self.neg() } else { self }
    }

    /// round(numeric, int): half away from zero; a larger `scale` adds zeros, a negative one rounds to tens.
    pub fn round(self, scale: i32) -> Result<Self, NumericError> {
        let rounding = if is_planted(Bug::CutDigits) { Rounding::TowardZero } else { Rounding::HalfAwayFromZero };
        self.at_scale(scale.clamp(-RESULT_SCALE_MAX, RESULT_SCALE_MAX), rounding)
    }

    /// trunc(numeric, int).
    pub fn trunc(self, scale: i32) -> Result<Self, NumericError> {
        self.at_scale(scale.clamp(-RESULT_SCALE_MAX, RESULT_SCALE_MAX), Rounding::TowardZero)
    }

    pub fn ceil(self) -> Self {
        self.whole(|rest| i128::from(rest > 0))
    }

    pub fn floor(self) -> Self {
        self.whole(|rest| -i128::from(rest < 0))
    }

    /// The whole part, plus what `adjustment` makes of the rest.
    fn whole(self, adjustment: fn(i128) -> i128) -> Self {
        if let Self::Wide { mantissa, scale } = self {
            let (whole, sign) = wide::whole(mantissa, scale);
            let whole = whole.wrapping_add(adjustment(i128::from(sign)).into());
            // A digit less than before at least, where there was a rest.
            return Self::from_wide(whole, 0).unwrap_or(Self::Wide { mantissa: whole, scale: 0 });
        }
        let Self::Finite { mantissa, scale } = self else { return self };
        let (whole, rest) = match power_of_ten(u32::from(scale)) {
            Some(unit) => (mantissa / unit, mantissa % unit),
            None => (0, mantissa),
        };
        Self::Finite { mantissa: whole + adjustment(rest), scale: 0 }
    }

    /// What storing into numeric(p,s) does: rounds to the scale, then checks the precision (numeric.c, apply_typmod).
    pub fn apply_typmod(self, typmod: i32) -> Result<Self, NumericError> {
        let Some((precision, scale)) = precision_and_scale(typmod) else { return Ok(self) };
        let rounded = self.at_scale(scale, Rounding::HalfAwayFromZero)?;
        if let Self::Wide { mantissa, scale: kept } = rounded {
            let limit = u32::try_from(precision - scale + i32::from(kept)).ok().map(wide::power);
            let fits = limit.is_some_and(|limit| limit.is_none_or(|limit| mantissa.wrapping_abs() < limit));
            return if fits { Ok(rounded) } else { Err(NumericError::Raises("numeric field overflow")) };
        }
        let Self::Finite { mantissa, scale: kept } = rounded else {
            // Only NaN passes (apply_typmod_special).
            return if self.is_nan() { Ok(self) } else { Err(NumericError::Raises("numeric field overflow")) };
        };
        // |value| < 10^(precision - scale), that is |mantissa| < 10^(precision - scale + kept).
        let digits = precision - scale + i32::from(kept);
        let fits = match u32::try_from(digits) {
            Ok(digits) => power_of_ten(digits).is_none_or(|limit| mantissa.abs() < limit),
            Err(_) => mantissa == 0,
        };
        if fits { Ok(rounded) } else { Err(NumericError::Raises("numeric field overflow")) }
    }

    fn at_scale(self, scale: i32, rounding: Rounding) -> Result<Self, NumericError> {
        match self {
            Self::Finite { mantissa, scale: own } => {
                self.at_scale128(scale, rounding).or_else(|_| wide::at_scale((mantissa.into(), own), scale, rounding))
            }
            Self::Wide { mantissa, scale: own } => wide::at_scale((mantissa, own), scale, rounding),
            Self::NaN | Self::PositiveInfinity | Self::NegativeInfinity => Ok(self),
        }
    }

    /// In 128 bits, if that is enough.
    fn at_scale128(self, scale: i32, rounding: Rounding) -> Result<Self, NumericError> {
        let Self::Finite { mantissa, scale: current } = self else { return Ok(self) };
        let dropped = i32::from(current) - scale;
        let kept = u16::try_from(scale.max(0)).map_err(|_| NumericError::Beyond)?;
        if dropped <= 0 {
            let shifted = shift_left(mantissa, dropped.unsigned_abs()).ok_or(NumericError::Beyond)?;
            return Self::new(shifted, kept);
        }
        let rounded = drop_digits(mantissa, dropped.unsigned_abs(), rounding);
        if scale >= 0 {
            return Self::new(rounded, kept);
        }
        Self::new(shift_left(rounded, scale.unsigned_abs()).ok_or(NumericError::Beyond)?, 0)
    }
}

/// The precision and scale that a typmod of numeric carries; None: unconstrained. PostgreSQL 15 has negative
/// scales, and scales above the precision (numeric.c, make_numeric_typmod).
pub fn precision_and_scale(typmod: i32) -> Option<(i32, i32)> {
    if typmod < VARHDRSZ {
        return None;
    }
    let packed = typmod - VARHDRSZ;
    Some(((packed >> 16) & 0xffff, ((packed & 0x7ff) ^ 1024) - 1024))
}

/// Both mantissas at the larger scale.
fn align(a: i128, a_scale: u16, b: i128, b_scale: u16) -> Result<(i128, i128, u16), NumericError> {
    let scale = a_scale.max(b_scale);
    let a = shift_left(a, u32::from(scale - a_scale)).ok_or(NumericError::Beyond)?;
    let b = shift_left(b, u32::from(scale - b_scale)).ok_or(NumericError::Beyond)?;
    Ok((a, b, scale))
}

/// Euclid's algorithm on magnitudes, which are below 2^127.
fn common_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn infinity_of_sign(sign: i32) -> Option<Numeric> {
    match sign {
        0 => None,
        1.. => Some(Numeric::PositiveInfinity),
        _ => Some(Numeric::NegativeInfinity),
    }
}

fn drop_digits(mantissa: i128, digits: u32, rounding: Rounding) -> i128 {
    // More digits than a mantissa has: less than a tenth is left.
    let Some(unit) = power_of_ten(digits) else { return 0 };
    let whole = mantissa / unit;
    match rounding {
        Rounding::TowardZero => whole,
        Rounding::HalfAwayFromZero => {
            let rest = (mantissa % unit).unsigned_abs();
            if rest >= unit.unsigned_abs() - rest { whole + mantissa.signum() } else { whole }
        }
    }
}

fn divide_finite(a: i128, a_scale: u16, b: i128, b_scale: u16) -> Result<Numeric, NumericError> {
    let scale = quotient_scale(a, a_scale, b, b_scale);
    if a == 0 {
        return Numeric::new(0, scale);
    }
    let shift = quotient_shift(scale, a_scale, b_scale)?;
    let Some(dividend) = shift_left(a, shift) else { return wide::quotient(a.into(), shift, b.into(), scale) };
    // No quotient is above its dividend.
    let magnitude = divide_rounding(dividend.unsigned_abs(), b.unsigned_abs()) as i128;
    Ok(Numeric::of_i128(if (a < 0) != (b < 0) { -magnitude } else { magnitude }, scale))
}

/// `a / b` at `scale` is a × 10^shift / b in mantissas; negative only beyond [`DISPLAY_SCALE_MAX`].
pub(super) fn quotient_shift(scale: u16, a_scale: u16, b_scale: u16) -> Result<u32, NumericError> {
    (u32::from(scale) + u32::from(b_scale)).checked_sub(u32::from(a_scale)).ok_or(NumericError::Beyond)
}

/// Half away from zero; both below 2^127.
fn divide_rounding(dividend: u128, divisor: u128) -> u128 {
    // 64-bit division is an instruction, 128-bit division a loop.
    let (quotient, rest) = match (u64::try_from(dividend), u64::try_from(divisor)) {
        (Ok(dividend), Ok(divisor)) => (u128::from(dividend / divisor), u128::from(dividend % divisor)),
        _ => (dividend / divisor, dividend % divisor),
    };
    quotient + u128::from(rest >= divisor - rest)
}

/// numeric.c, select_div_scale: 16 significant digits by an estimate of the quotient's weight in base-10000
/// digits, but no fewer decimals than either operand displays. avg() divides its sum by its count the same way.
fn quotient_scale(a: i128, a_scale: u16, b: i128, b_scale: u16) -> u16 {
    quotient_scale_of(leading_digit(a, a_scale), a_scale, leading_digit(b, b_scale), b_scale)
}

/// By the weights and values of the operands' first digits.
pub(super) fn quotient_scale_of(
    (a_weight, a_first): (i32, i128),
    a_scale: u16,
    (b_weight, b_first): (i32, i128),
    b_scale: u16,
) -> u16 {
    let mut weight = a_weight - b_weight;
    if a_first <= b_first {
        weight -= 1;
    }
    let scale = (SIGNIFICANT_DIGITS_MIN - weight * DECIMAL_DIGITS)
        .max(i32::from(a_scale))
        .max(i32::from(b_scale))
        .clamp(0, DISPLAY_SCALE_MAX);
    u16::try_from(scale + i32::from(is_planted(Bug::WrongScale))).unwrap_or(SCALE_MAX)
}

/// Weight and value of the first non-zero base-10000 digit; (0, 0) for zero.
pub(super) fn leading_digit(mantissa: i128, scale: u16) -> (i32, i128) {
    if mantissa == 0 {
        return (0, 0);
    }
    let magnitude = mantissa.abs();
    let exponent = magnitude.ilog10() as i32 - i32::from(scale);
    let weight = exponent.div_euclid(DECIMAL_DIGITS);
    // The digit is magnitude × 10^-(scale + 4 weight), cut to a whole number; it has one to four places.
    let unit = i32::from(scale) + weight * DECIMAL_DIGITS;
    let first = match u32::try_from(unit) {
        Ok(unit) => magnitude / POWERS_OF_TEN[unit as usize],
        Err(_) => magnitude * POWERS_OF_TEN[unit.unsigned_abs() as usize],
    };
    (weight, first)
}
