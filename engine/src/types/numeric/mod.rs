//! PostgreSQL's numeric: exact decimal values with a display scale of their own, and columns of them.
//!
//! [`Numeric`] holds up to 38 digits in 128 bits, up to 76 in 256 (`wide`); whatever needs more ends in [`NumericError::Beyond`] and
//! goes upstream.
//! Display scale follows PostgreSQL's backend/utils/adt/numeric.c operation by operation, because it is visible in
//! the text. [`mod@array`] has the four array forms, [`arithmetic`] the operators, [`convert`] text, integers and
//! floats, [`pattern`] to_char, [`wire`] the binary format; `irrational` and `power` the roots, logarithms and powers.

pub mod arithmetic;
pub mod array;
pub mod convert;
mod irrational;
pub mod pattern;
mod power;
mod real;
pub mod wide;
pub mod wire;

use std::cmp::Ordering;
use std::fmt;

pub use array::{NumericBuilder, NumericColumn, fixed_scale, numeric_at};
pub use power::PowerScale;

use super::Numeric;

/// Digits that a mantissa of 128 bits may have.
pub const DIGITS_MAX: u32 = 38;

/// Every mantissa is smaller than this in magnitude.
pub const MANTISSA_LIMIT: i128 = POWERS_OF_TEN[DIGITS_MAX as usize];

/// NUMERIC_DSCALE_MAX of numeric.c.
pub const SCALE_MAX: u16 = 16_383;

/// 10^0 to 10^38.
pub const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1i128; 39];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Why a numeric operation has no result here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumericError {
    #[error("division by zero")]
    DivisionByZero,
    /// PostgreSQL raises an error, with this text.
    #[error("{0}")]
    Raises(&'static str),
    /// PostgreSQL has a result; it is not held, or not computed of so many digits.
    #[error("numeric of more digits than are held")]
    Beyond,
    /// Too near to the middle between two results to know which of them PostgreSQL's own rounding gives.
    #[error("numeric whose last digit is in doubt")]
    InDoubt,
}

impl Numeric {
    pub const ZERO: Self = Self::Finite { mantissa: 0, scale: 0 };

    /// `mantissa` × 10^-`scale`, if the engine holds such a value.
    pub fn new(mantissa: i128, scale: u16) -> Result<Self, NumericError> {
        if mantissa.unsigned_abs() >= MANTISSA_LIMIT.unsigned_abs() || scale > SCALE_MAX {
            return Err(NumericError::Beyond);
        }
        Ok(Self::Finite { mantissa, scale })
    }

    pub fn is_nan(self) -> bool {
        matches!(self, Self::NaN)
    }

    pub fn is_finite(self) -> bool {
        matches!(self, Self::Finite { .. } | Self::Wide { .. })
    }

    /// -1, 0 or 1. NaN has no sign and counts as positive, as it sorts after every other value.
    pub fn signum(self) -> i32 {
        match self {
            Self::Finite { mantissa, .. } => mantissa.signum() as i32,
            Self::Wide { mantissa, .. } => wide::sign(mantissa),
            Self::NaN | Self::PositiveInfinity => 1,
            Self::NegativeInfinity => -1,
        }
    }

    /// The scale that PostgreSQL's scale() reports; special values have none.
    pub fn scale(self) -> Option<u16> {
        match self {
            Self::Finite { scale, .. } | Self::Wide { scale, .. } => Some(scale),
            Self::NaN | Self::PositiveInfinity | Self::NegativeInfinity => None,
        }
    }

    /// The form in which values that compare equal are the same: no trailing zeros after the point.
    /// For hashing and grouping; not for output.
    pub fn normalized(self) -> Self {
        if let Self::Wide { mantissa, scale } = self {
            return wide::normalized(mantissa, scale);
        }
        let Self::Finite { mut mantissa, mut scale } = self else { return self };
        if mantissa == 0 {
            return Self::ZERO;
        }
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Self::Finite { mantissa, scale }
    }

    /// PostgreSQL's order: -infinity, finite values, infinity, NaN; NaN equals NaN (numeric.c, cmp_numerics).
    #[expect(clippy::should_implement_trait, reason = "Ord would disagree with the derived, representational Eq")]
    pub fn cmp(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Finite { mantissa: a, scale: x }, Self::Finite { mantissa: b, scale: y }) => {
                compare_finite(a, x, b, y)
            }
            _ => match (self.parts(), other.parts()) {
                (Some(a), Some(b)) => wide::compare(a, b),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }

    fn rank(self) -> u8 {
        match self {
            Self::NegativeInfinity => 0,
            Self::Finite { .. } | Self::Wide { .. } => 1,
            Self::PositiveInfinity => 2,
            Self::NaN => 3,
        }
    }

    /// Appends what numeric_out prints.
    pub fn write_text(self, out: &mut Vec<u8>) {
        match self {
            Self::Finite { mantissa, scale } => write_decimal(mantissa, scale, out),
            Self::Wide { mantissa, scale } => {
                let digits = mantissa.to_string();
                let digits = match digits.strip_prefix('-') {
                    Some(digits) => {
                        out.push(b'-');
                        digits
                    }
                    None => &digits,
                };
                write_digits(digits.as_bytes(), scale, out);
            }
            Self::NaN => out.extend_from_slice(b"NaN"),
            Self::PositiveInfinity => out.extend_from_slice(b"Infinity"),
            Self::NegativeInfinity => out.extend_from_slice(b"-Infinity"),
        }
    }
}

/// 10^`exponent`, if it fits.
pub fn power_of_ten(exponent: u32) -> Option<i128> {
    POWERS_OF_TEN.get(exponent as usize).copied()
}

/// `mantissa` × 10^`digits`, if it fits.
pub(crate) fn shift_left(mantissa: i128, digits: u32) -> Option<i128> {
    if mantissa == 0 {
        return Some(0);
    }
    mantissa.checked_mul(power_of_ten(digits)?)
}

pub(crate) fn compare_finite(a: i128, a_scale: u16, b: i128, b_scale: u16) -> Ordering {
    // A mantissa that overflows while it is brought to the other's scale is the larger of the two in magnitude.
    match a_scale.cmp(&b_scale) {
        Ordering::Equal => a.cmp(&b),
        Ordering::Less => match shift_left(a, u32::from(b_scale - a_scale)) {
            Some(a) => a.cmp(&b),
            None => a.cmp(&0),
        },
        Ordering::Greater => match shift_left(b, u32::from(a_scale - b_scale)) {
            Some(b) => a.cmp(&b),
            None => 0.cmp(&b),
        },
    }
}

/// Appends `mantissa` × 10^-`scale` with exactly `scale` digits after the point.
pub fn write_decimal(mantissa: i128, scale: u16, out: &mut Vec<u8>) {
    if mantissa < 0 {
        out.push(b'-');
    }
    let mut digits = itoa::Buffer::new();
    // Almost every mantissa fits 64 bits, which itoa prints several times faster.
    let magnitude = mantissa.unsigned_abs();
    let digits = match u64::try_from(magnitude) {
        Ok(magnitude) => digits.format(magnitude),
        Err(_) => digits.format(magnitude),
    }
    .as_bytes();
    write_digits(digits, scale, out);
}

fn write_digits(digits: &[u8], scale: u16, out: &mut Vec<u8>) {
    let scale = usize::from(scale);
    if scale == 0 {
        out.extend_from_slice(digits);
    } else if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - digits.len(), b'0');
        out.extend_from_slice(digits);
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(48);
        self.write_text(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

#[cfg(test)]
mod tests;
