//! Arithmetic and rounding on float4 and float8. Only what is exact by IEEE 754 is here: exp, ln and the like may differ in the
//! last bit between C libraries, so they go upstream, as do powers unless the result is exact.

use arrow::array::ArrayRef;

use super::vector::{checked_binary, checked_unary};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Float4, Float8};

/// Out of range, by float.c's texts; division by zero is told apart by the caller.
fn out_of_range(result_is_infinite: bool) -> EvalError {
    let kind = if result_is_infinite { "overflow" } else { "underflow" };
    EvalError::Raises(format!("value out of range: {kind}"))
}

/// Operators where both operands are first brought to `$wide`, as float48pl and its kin do (utils/float.h:
/// float8_pl, float8_mul, float8_div).
macro_rules! float_operators {
    ($module:ident, $left:ty, $right:ty, $wide:ty) => {
        mod $module {
            use super::*;

            pub(super) fn add(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                sum(o, rows, |a, b| a + b)
            }
            pub(super) fn subtract(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                sum(o, rows, |a, b| a - b)
            }

            fn sum(o: &[Operand], rows: usize, f: impl Fn($wide, $wide) -> $wide) -> Result<ArrayRef, EvalError> {
                let f = |a: $left, b: $right| {
                    let (a, b) = (<$wide>::from(a), <$wide>::from(b));
                    let result = f(a, b);
                    (result, result.is_infinite() & !a.is_infinite() & !b.is_infinite())
                };
                checked_binary(o, rows, f, |_, _| out_of_range(true))
            }

            pub(super) fn multiply(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                let f = |a: $left, b: $right| {
                    let (a, b) = (<$wide>::from(a), <$wide>::from(b));
                    let result = a * b;
                    let overflow = result.is_infinite() & !a.is_infinite() & !b.is_infinite();
                    (result, overflow | ((result == 0.0) & (a != 0.0) & (b != 0.0)))
                };
                checked_binary(o, rows, f, |a: $left, b: $right| {
                    out_of_range((<$wide>::from(a) * <$wide>::from(b)).is_infinite())
                })
            }

            pub(super) fn divide(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                let f = |a: $left, b: $right| {
                    let (a, b) = (<$wide>::from(a), <$wide>::from(b));
                    let result = a / b;
                    let overflow = result.is_infinite() & !a.is_infinite();
                    let underflow = (result == 0.0) & (a != 0.0) & !b.is_infinite();
                    (result, overflow | underflow | ((b == 0.0) & !a.is_nan()))
                };
                checked_binary(o, rows, f, |a: $left, b: $right| {
                    if b == 0.0 {
                        return EvalError::Raises("division by zero".to_owned());
                    }
                    out_of_range((<$wide>::from(a) / <$wide>::from(b)).is_infinite())
                })
            }
        }
    };
}

float_operators!(float4, f32, f32, f32);
float_operators!(float48, f32, f64, f64);
float_operators!(float84, f64, f32, f64);
float_operators!(float8, f64, f64, f64);

macro_rules! unary {
    ($name:ident, $native:ty, |$value:ident| $result:expr) => {
        fn $name(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
            checked_unary(o, rows, |$value: $native| -> ($native, bool) { ($result, false) }, |_| out_of_range(true))
        }
    };
}

unary!(negate4, f32, |value| -value);
unary!(negate8, f64, |value| -value);
unary!(identity4, f32, |value| value);
unary!(identity8, f64, |value| value);
unary!(absolute4, f32, |value| value.abs());
unary!(absolute8, f64, |value| value.abs());
// rint() in the default rounding mode.
unary!(round, f64, |value| value.round_ties_even());
unary!(ceiling, f64, |value| value.ceil());
unary!(floor, f64, |value| value.floor());
unary!(truncate, f64, |value| value.trunc());
// dsign: NaN is neither above nor below zero.
unary!(sign, f64, |value| f64::from(i8::from(value > 0.0) - i8::from(value < 0.0)));

/// RADIANS_PER_DEGREE.
const RADIANS: f64 = 0.017_453_292_519_943_295;

/// As float8_mul and float8_div have it: neither an infinity nor a zero that the value was not.
fn turned(o: &[Operand], rows: usize, turn: fn(f64) -> f64) -> Result<ArrayRef, EvalError> {
    let changed = move |value: f64| {
        let result = turn(value);
        (result, (result.is_infinite() && !value.is_infinite()) || (result == 0.0 && value != 0.0))
    };
    checked_unary(o, rows, changed, |value| out_of_range(value * RADIANS != 0.0))
}

fn degrees(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    turned(o, rows, |value| value / RADIANS)
}

fn radians(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    turned(o, rows, |value| value * RADIANS)
}

fn square_root(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    checked_unary(
        o,
        rows,
        |value: f64| (value.sqrt(), value < 0.0),
        |_| EvalError::Raises("cannot take square root of a negative number".to_owned()),
    )
}

/// dpow, where every C library agrees: the power is a float itself.
fn power(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let f = |base: f64, exponent: f64| exact_power(base, exponent).map_or((0.0, true), |power| (power, false));
    checked_binary(o, rows, f, |_, _| EvalError::Beyond("power of double precision that is rounded".to_owned()))
}

fn exact_power(base: f64, exponent: f64) -> Option<f64> {
    if exponent == 0.0 || base == 1.0 {
        return Some(1.0);
    }
    let times = if exponent.fract() == 0.0 && exponent.abs() <= 1074.0 { exponent as i32 } else { return None };
    if base == 0.0 && base.is_sign_positive() && times > 0 {
        return Some(0.0);
    }
    if !base.is_normal() {
        return None;
    }
    // The base is an odd number times a power of two.
    const FRACTION_BITS: i32 = 52;
    let fraction = (base.to_bits() & ((1 << FRACTION_BITS) - 1)) | (1 << FRACTION_BITS);
    let shift = fraction.trailing_zeros() as i32;
    let scale = ((base.to_bits() >> FRACTION_BITS) & 0x7ff) as i32 - 1023 - FRACTION_BITS + shift;
    let odd = fraction >> shift;
    let magnitude = match (odd, times) {
        (1, _) => 1,
        (_, 1..) => odd.checked_pow(times.unsigned_abs()).filter(|power| *power < 1 << (FRACTION_BITS + 1))?,
        _ => return None,
    };
    let scale = scale.checked_mul(times).filter(|scale| (-1000..=900).contains(scale))?;
    let power = magnitude as f64 * 2f64.powi(scale);
    Some(if base < 0.0 && times % 2 != 0 { -power } else { power })
}

macro_rules! float_entries {
    ($($module:ident $left:ident $right:ident $result:ident $source:literal),+ $(,)?) => {
        &[$(
            Function::immutable("+", &[$left, $right], $result, $module::add, concat!($source, "pl")),
            Function::immutable("-", &[$left, $right], $result, $module::subtract, concat!($source, "mi")),
            Function::immutable("*", &[$left, $right], $result, $module::multiply, concat!($source, "mul")),
            Function::immutable("/", &[$left, $right], $result, $module::divide, concat!($source, "div")),
        )+]
    };
}

pub(super) static OPERATORS: &[Function] = float_entries! {
    float4 Float4 Float4 Float4 "float.c float4",
    float48 Float4 Float8 Float8 "float.c float48",
    float84 Float8 Float4 Float8 "float.c float84",
    float8 Float8 Float8 Float8 "float.c float8",
};

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("-", &[Float4], Float4, negate4, "float.c float4um"),
    Function::immutable("-", &[Float8], Float8, negate8, "float.c float8um"),
    Function::immutable("+", &[Float4], Float4, identity4, "float.c float4up"),
    Function::immutable("+", &[Float8], Float8, identity8, "float.c float8up"),
    Function::immutable("@", &[Float4], Float4, absolute4, "float.c float4abs"),
    Function::immutable("@", &[Float8], Float8, absolute8, "float.c float8abs"),
    Function::immutable("abs", &[Float4], Float4, absolute4, "float.c float4abs"),
    Function::immutable("abs", &[Float8], Float8, absolute8, "float.c float8abs"),
    Function::immutable("round", &[Float8], Float8, round, "float.c dround"),
    Function::immutable("ceil", &[Float8], Float8, ceiling, "float.c dceil"),
    Function::immutable("ceiling", &[Float8], Float8, ceiling, "float.c dceil"),
    Function::immutable("floor", &[Float8], Float8, floor, "float.c dfloor"),
    Function::immutable("trunc", &[Float8], Float8, truncate, "float.c dtrunc"),
    Function::immutable("sign", &[Float8], Float8, sign, "float.c dsign"),
    Function::immutable("degrees", &[Float8], Float8, degrees, "float.c degrees"),
    Function::immutable("radians", &[Float8], Float8, radians, "float.c radians"),
    Function::immutable("sqrt", &[Float8], Float8, square_root, "float.c dsqrt"),
    Function::immutable("power", &[Float8, Float8], Float8, power, "float.c dpow"),
    Function::immutable("pow", &[Float8, Float8], Float8, power, "float.c dpow"),
    Function::immutable("^", &[Float8, Float8], Float8, power, "float.c dpow"),
    Function::immutable("|/", &[Float8], Float8, square_root, "float.c dsqrt"),
];
