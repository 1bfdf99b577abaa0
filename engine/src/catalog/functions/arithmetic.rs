//! Arithmetic on integers: + - * / %, signs, bits.
//!
//! Overflow and division by zero raise (PostgreSQL: int.c, int8.c). Mixed widths compute in the wider one.

use arrow::array::ArrayRef;

use crate::planted::{Bug, is_planted};

use super::vector::{Checked, checked_binary, checked_unary};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Int2, Int4, Int8};

/// + - * / of two widths, both operands brought to their common one.
macro_rules! mixed_operators {
    ($module:ident, $left:ty, $right:ty, $wide:ty, $out_of_range:literal) => {
        mod $module {
            use super::*;

            pub(super) fn add(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                overflowing(o, rows, <$wide>::overflowing_add)
            }
            pub(super) fn subtract(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                overflowing(o, rows, <$wide>::overflowing_sub)
            }
            pub(super) fn multiply(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                overflowing(o, rows, <$wide>::overflowing_mul)
            }
            pub(super) fn divide(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                let divide = |a: $left, b: $right| {
                    let (a, b) = (<$wide>::from(a), <$wide>::from(b));
                    if b == 0 { (0, true) } else { a.overflowing_div(b) }
                };
                checked_binary(
                    o,
                    rows,
                    divide,
                    |_, b: $right| {
                        if b == 0 { division_by_zero() } else { raise($out_of_range) }
                    },
                )
            }

            fn overflowing(
                o: &[Operand],
                rows: usize,
                f: impl Fn($wide, $wide) -> Checked<$wide>,
            ) -> Result<ArrayRef, EvalError> {
                let f = |a: $left, b: $right| {
                    let (value, is_wrong) = f(<$wide>::from(a), <$wide>::from(b));
                    (value, is_wrong && !is_planted(Bug::WrapInteger))
                };
                checked_binary(o, rows, f, |_, _| raise($out_of_range))
            }
        }
    };
}

mixed_operators!(int2, i16, i16, i16, "smallint out of range");
mixed_operators!(int24, i16, i32, i32, "integer out of range");
mixed_operators!(int28, i16, i64, i64, "bigint out of range");
mixed_operators!(int42, i32, i16, i32, "integer out of range");
mixed_operators!(int4, i32, i32, i32, "integer out of range");
mixed_operators!(int48, i32, i64, i64, "bigint out of range");
mixed_operators!(int82, i64, i16, i64, "bigint out of range");
mixed_operators!(int84, i64, i32, i64, "bigint out of range");
mixed_operators!(int8, i64, i64, i64, "bigint out of range");

/// What exists for one width only.
macro_rules! single_operators {
    ($module:ident, $native:ty, $out_of_range:literal) => {
        mod $module {
            use super::*;

            pub(super) fn remainder(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                // The minimum modulo -1 is 0 (int4mod), not an overflow: as wrapping_rem has it.
                let remainder = |a: $native, b: $native| if b == 0 { (0, true) } else { (a.wrapping_rem(b), false) };
                checked_binary(o, rows, remainder, |_, _| division_by_zero())
            }
            pub(super) fn negate(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                checked_unary(o, rows, <$native>::overflowing_neg, |_| raise($out_of_range))
            }
            pub(super) fn absolute(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                checked_unary(o, rows, <$native>::overflowing_abs, |_| raise($out_of_range))
            }
            pub(super) fn identity(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                checked_unary(o, rows, |a: $native| (a, false), |_| raise($out_of_range))
            }
            pub(super) fn complement(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                checked_unary(o, rows, |a: $native| (!a, false), |_| raise($out_of_range))
            }
            /// A count that C does not define (and processors disagree about) is upstream's.
            pub(super) fn shift_left(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                shifted(o, rows, <$native>::wrapping_shl)
            }
            pub(super) fn shift_right(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                shifted(o, rows, <$native>::wrapping_shr)
            }

            fn shifted(o: &[Operand], rows: usize, f: impl Fn($native, u32) -> $native) -> Result<ArrayRef, EvalError> {
                let f = |a: $native, b: i32| (f(a, b as u32), !(0..<$native>::BITS as i32).contains(&b));
                checked_binary(o, rows, f, |_, _| EvalError::Beyond("a shift by this count".to_owned()))
            }

            pub(super) fn bit_and(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                bits(o, rows, |a, b| a & b)
            }
            pub(super) fn bit_or(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                bits(o, rows, |a, b| a | b)
            }
            pub(super) fn bit_xor(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                bits(o, rows, |a, b| a ^ b)
            }

            fn bits(
                o: &[Operand],
                rows: usize,
                f: impl Fn($native, $native) -> $native,
            ) -> Result<ArrayRef, EvalError> {
                checked_binary(o, rows, |a, b| (f(a, b), false), |_, _| raise($out_of_range))
            }
        }
    };
}

/// What exists for integer and bigint.
macro_rules! divisor_functions {
    ($module:ident, $native:ty, $unsigned:ty, $out_of_range:literal) => {
        mod $module {
            use super::*;

            /// None of it is negative; 0 of two zeros.
            fn divisor(a: $native, b: $native) -> $unsigned {
                let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
                while b != 0 {
                    (a, b) = (b, a % b);
                }
                a
            }

            pub(super) fn gcd(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                let gcd = |a: $native, b: $native| {
                    let divisor = <$native>::try_from(divisor(a, b));
                    (divisor.unwrap_or(0), divisor.is_err())
                };
                checked_binary(o, rows, gcd, |_, _| raise($out_of_range))
            }

            pub(super) fn lcm(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
                let lcm = |a: $native, b: $native| {
                    let multiple =
                        (a.unsigned_abs().checked_div(divisor(a, b)).unwrap_or(0)).checked_mul(b.unsigned_abs());
                    let multiple = multiple.and_then(|multiple| <$native>::try_from(multiple).ok());
                    (multiple.unwrap_or(0), multiple.is_none())
                };
                checked_binary(o, rows, lcm, |_, _| raise($out_of_range))
            }
        }
    };
}

divisor_functions!(divisors4, i32, u32, "integer out of range");
divisor_functions!(divisors8, i64, u64, "bigint out of range");

single_operators!(width2, i16, "smallint out of range");
single_operators!(width4, i32, "integer out of range");
single_operators!(width8, i64, "bigint out of range");

fn raise(message: &str) -> EvalError {
    EvalError::Raises(message.to_owned())
}

fn division_by_zero() -> EvalError {
    raise("division by zero")
}

macro_rules! mixed_entries {
    ($($module:ident $left:ident $right:ident $result:ident $source:literal),+ $(,)?) => {
        &[$(
            Function::immutable("+", &[$left, $right], $result, $module::add, concat!($source, "pl")),
            Function::immutable("-", &[$left, $right], $result, $module::subtract, concat!($source, "mi")),
            Function::immutable("*", &[$left, $right], $result, $module::multiply, concat!($source, "mul")),
            Function::immutable("/", &[$left, $right], $result, $module::divide, concat!($source, "div")),
        )+]
    };
}

pub(super) static MIXED: &[Function] = mixed_entries! {
    int2 Int2 Int2 Int2 "int.c int2",
    int24 Int2 Int4 Int4 "int.c int24",
    int28 Int2 Int8 Int8 "int8.c int28",
    int42 Int4 Int2 Int4 "int.c int42",
    int4 Int4 Int4 Int4 "int.c int4",
    int48 Int4 Int8 Int8 "int8.c int48",
    int82 Int8 Int2 Int8 "int8.c int82",
    int84 Int8 Int4 Int8 "int8.c int84",
    int8 Int8 Int8 Int8 "int8.c int8",
};

macro_rules! single_entries {
    ($($module:ident $native:ident $source:literal),+ $(,)?) => {
        &[$(
            Function::immutable("%", &[$native, $native], $native, $module::remainder, concat!($source, "mod")),
            Function::immutable("mod", &[$native, $native], $native, $module::remainder, concat!($source, "mod")),
            Function::immutable("-", &[$native], $native, $module::negate, concat!($source, "um")),
            Function::immutable("+", &[$native], $native, $module::identity, concat!($source, "up")),
            Function::immutable("@", &[$native], $native, $module::absolute, concat!($source, "abs")),
            Function::immutable("abs", &[$native], $native, $module::absolute, concat!($source, "abs")),
            Function::immutable("~", &[$native], $native, $module::complement, concat!($source, "not")),
            Function::immutable("&", &[$native, $native], $native, $module::bit_and, concat!($source, "and")),
            Function::immutable("|", &[$native, $native], $native, $module::bit_or, concat!($source, "or")),
            Function::immutable("#", &[$native, $native], $native, $module::bit_xor, concat!($source, "xor")),
            Function::immutable("<<", &[$native, Int4], $native, $module::shift_left, concat!($source, "shl")),
            Function::immutable(">>", &[$native, Int4], $native, $module::shift_right, concat!($source, "shr")),
        )+]
    };
}

pub(super) static ENTRIES: &[Function] = single_entries! {
    width2 Int2 "int.c int2",
    width4 Int4 "int.c int4",
    width8 Int8 "int8.c int8",
};

pub(super) static DIVISORS: &[Function] = &[
    Function::immutable("gcd", &[Int4, Int4], Int4, divisors4::gcd, "int.c int4gcd"),
    Function::immutable("gcd", &[Int8, Int8], Int8, divisors8::gcd, "int8.c int8gcd"),
    Function::immutable("lcm", &[Int4, Int4], Int4, divisors4::lcm, "int.c int4lcm"),
    Function::immutable("lcm", &[Int8, Int8], Int8, divisors8::lcm, "int8.c int8lcm"),
];
