//! Arithmetic on integers and floats: + - * / %, signs, bits.
//!
//! Integers raise on overflow and on division by zero (PostgreSQL: int.c, int8.c); floats raise where a finite
//! computation leaves the range (float.h, float4_pl and its kin). Mixed integer widths compute in the wider one.

use super::vector::{Checked, checked_binary};
use super::{EvalContext, EvalError, Function, Operand};

use crate::types::PgType::{Int2, Int4, Int8};

use arrow::array::ArrayRef;

/// Both operands in their common width.
macro_rules! integer_operators {
    ($module:ident, $left:ty, $right:ty, $wide:ty, $result:ident) => {
        mod $module {
            use super::*;

            const OUT_OF_RANGE: &str = concat!(stringify!($result), " out of range");

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
                    |_, b: $right| if b == 0 { division_by_zero() } else { raise(OUT_OF_RANGE) },
                )
            }

            fn overflowing(
                o: &[Operand],
                rows: usize,
                f: impl Fn($wide, $wide) -> Checked<$wide>,
            ) -> Result<ArrayRef, EvalError> {
                let f = |a: $left, b: $right| f(<$wide>::from(a), <$wide>::from(b));
                checked_binary(o, rows, f, |_, _| raise(OUT_OF_RANGE))
            }
        }
    };
}

integer_operators!(int2, i16, i16, i16, smallint);
integer_operators!(int24, i16, i32, i32, integer);
integer_operators!(int28, i16, i64, i64, bigint);
integer_operators!(int42, i32, i16, i32, integer);
integer_operators!(int4, i32, i32, i32, integer);
integer_operators!(int48, i32, i64, i64, bigint);
integer_operators!(int82, i64, i16, i64, bigint);
integer_operators!(int84, i64, i32, i64, bigint);
integer_operators!(int8, i64, i64, i64, bigint);

fn raise(message: &str) -> EvalError {
    EvalError::Raises(message.to_owned())
}

fn division_by_zero() -> EvalError {
    raise("division by zero")
}

macro_rules! integer_entries {
    ($($module:ident $left:ident $right:ident $result:ident $source:literal),+ $(,)?) => {
        &[$(
            Function::immutable("+", &[$left, $right], $result, $module::add, concat!($source, "pl")),
            Function::immutable("-", &[$left, $right], $result, $module::subtract, concat!($source, "mi")),
            Function::immutable("*", &[$left, $right], $result, $module::multiply, concat!($source, "mul")),
            Function::immutable("/", &[$left, $right], $result, $module::divide, concat!($source, "div")),
        )+]
    };
}

pub(super) static ENTRIES: &[Function] = integer_entries! {
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
