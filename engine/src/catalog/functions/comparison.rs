//! = <> < <= > >= over numbers, booleans, uuid, bytea and inet. Text is in `text_comparison`, dates in `datetime`.
//!
//! Floats order as in PostgreSQL: NaN equals itself and is greater than every other value, -0 equals 0
//! (utils/float.h, float8_cmp_internal's inline forms).

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};

use super::numeric_arithmetic::compare_numerics;
use super::vector::{Native, bool_column, compare, constant_bool, operand, wrong_operand};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Bool, Bytea, Float4, Float8, Inet, Int2, Int4, Int8, Numeric, Uuid};
use crate::types::Value;

/// One of the six comparisons.
pub(super) trait Relation {
    fn holds(ordering: Ordering) -> bool;
    /// For floats; written so that the loop has no branch.
    fn floats(a: f64, b: f64) -> bool;
}

macro_rules! relation {
    ($name:ident, $ordering:ident, |$a:ident, $b:ident| $floats:expr) => {
        pub(super) struct $name;
        impl Relation for $name {
            #[inline(always)]
            fn holds(ordering: Ordering) -> bool {
                ordering.$ordering()
            }
            #[inline(always)]
            fn floats($a: f64, $b: f64) -> bool {
                $floats
            }
        }
    };
}

relation!(Equal, is_eq, |a, b| (a == b) | (a.is_nan() & b.is_nan()));
relation!(NotEqual, is_ne, |a, b| (a != b) & !(a.is_nan() & b.is_nan()));
relation!(Less, is_lt, |a, b| !a.is_nan() & ((a < b) | b.is_nan()));
relation!(LessOrEqual, is_le, |a, b| b.is_nan() | (a <= b));
relation!(Greater, is_gt, |a, b| !b.is_nan() & ((a > b) | a.is_nan()));
relation!(GreaterOrEqual, is_ge, |a, b| a.is_nan() | (a >= b));

fn integers<A: Native, B: Native, W: Ord + From<A> + From<B>, R: Relation>(
    operands: &[Operand],
    rows: usize,
    _: &EvalContext<'_>,
) -> Result<ArrayRef, EvalError> {
    compare(operands, rows, |a: A, b: B| R::holds(W::from(a).cmp(&W::from(b))))
}

fn floats<A: Native + Into<f64>, B: Native + Into<f64>, R: Relation>(
    operands: &[Operand],
    rows: usize,
    _: &EvalContext<'_>,
) -> Result<ArrayRef, EvalError> {
    compare(operands, rows, |a: A, b: B| R::floats(a.into(), b.into()))
}

fn numerics<R: Relation>(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    compare_numerics(operands, rows, R::holds)
}

/// Rows of an operand as values that order by themselves.
enum Ordered<'a, T> {
    Column(Box<dyn Fn(usize) -> T + 'a>, Option<&'a NullBuffer>),
    Scalar(T),
    Null,
}

fn ordered<T: Ord + Copy, R: Relation>(left: &Ordered<'_, T>, right: &Ordered<'_, T>, rows: usize) -> ArrayRef {
    match (left, right) {
        (Ordered::Null, _) | (_, Ordered::Null) => Arc::new(BooleanArray::new_null(rows)),
        (Ordered::Scalar(a), Ordered::Scalar(b)) => constant_bool(R::holds(a.cmp(b)), rows),
        (Ordered::Column(a, nulls), Ordered::Scalar(b)) => {
            bool_column(BooleanBuffer::collect_bool(rows, |row| R::holds(a(row).cmp(b))), nulls.cloned())
        }
        (Ordered::Scalar(a), Ordered::Column(b, nulls)) => {
            bool_column(BooleanBuffer::collect_bool(rows, |row| R::holds(a.cmp(&b(row)))), nulls.cloned())
        }
        (Ordered::Column(a, a_nulls), Ordered::Column(b, b_nulls)) => bool_column(
            BooleanBuffer::collect_bool(rows, |row| R::holds(a(row).cmp(&b(row)))),
            NullBuffer::union(*a_nulls, *b_nulls),
        ),
    }
}

/// false < true (bool.c, boollt).
fn bools<R: Relation>(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    fn view(operand: &Operand) -> Result<Ordered<'_, bool>, EvalError> {
        match operand {
            Operand::Scalar(Value::Null) => Ok(Ordered::Null),
            Operand::Scalar(Value::Bool(value)) => Ok(Ordered::Scalar(*value)),
            Operand::Scalar(_) => Err(wrong_operand()),
            Operand::Column(array) => {
                let array = array.as_any().downcast_ref::<BooleanArray>().ok_or_else(wrong_operand)?;
                let values = array.values();
                Ok(Ordered::Column(Box::new(|row| values.value(row)), array.nulls()))
            }
        }
    }
    Ok(ordered::<_, R>(&view(operand(operands, 0)?)?, &view(operand(operands, 1)?)?, rows))
}

/// memcmp, and the shorter first (varlena.c byteacmp; uuid.c uuid_internal_cmp; what is held of an inet has the order of network.c
/// network_cmp_internal).
fn bytes<R: Relation>(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    fn view(operand: &Operand) -> Result<Ordered<'_, &[u8]>, EvalError> {
        match operand {
            Operand::Scalar(Value::Null) => Ok(Ordered::Null),
            Operand::Scalar(Value::Uuid(value)) => Ok(Ordered::Scalar(value)),
            Operand::Scalar(Value::Bytea(value) | Value::Network(value)) => Ok(Ordered::Scalar(value)),
            Operand::Scalar(_) => Err(wrong_operand()),
            Operand::Column(array) => {
                let any = array.as_any();
                if let Some(values) = any.downcast_ref::<FixedSizeBinaryArray>() {
                    return Ok(Ordered::Column(Box::new(|row| values.value(row)), array.nulls()));
                }
                let values = any.downcast_ref::<BinaryArray>().ok_or_else(wrong_operand)?;
                Ok(Ordered::Column(Box::new(|row| values.value(row)), array.nulls()))
            }
        }
    }
    Ok(ordered::<_, R>(&view(operand(operands, 0)?)?, &view(operand(operands, 1)?)?, rows))
}

/// Six entries that share a kernel, generic over the relation.
macro_rules! six {
    ($($left:ident $right:ident $source:literal $kernel:ident $(<$($parameter:ty),+>)?);+ $(;)?) => {
        &[$(
            Function::immutable("=", &[$left, $right], Bool, $kernel::<$($($parameter,)+)? Equal>, concat!($source, "eq")),
            Function::immutable("<>", &[$left, $right], Bool, $kernel::<$($($parameter,)+)? NotEqual>, concat!($source, "ne")),
            Function::immutable("<", &[$left, $right], Bool, $kernel::<$($($parameter,)+)? Less>, concat!($source, "lt")),
            Function::immutable("<=", &[$left, $right], Bool, $kernel::<$($($parameter,)+)? LessOrEqual>, concat!($source, "le")),
            Function::immutable(">", &[$left, $right], Bool, $kernel::<$($($parameter,)+)? Greater>, concat!($source, "gt")),
            Function::immutable(">=", &[$left, $right], Bool, $kernel::<$($($parameter,)+)? GreaterOrEqual>, concat!($source, "ge")),
        )+]
    };
}
pub(super) use six;

pub(super) static ENTRIES: &[Function] = six! {
    Bool Bool "bool.c bool" bools;
    Int2 Int2 "int.c int2" integers<i16, i16, i16>;
    Int2 Int4 "int.c int24" integers<i16, i32, i32>;
    Int2 Int8 "int8.c int28" integers<i16, i64, i64>;
    Int4 Int2 "int.c int42" integers<i32, i16, i32>;
    Int4 Int4 "int.c int4" integers<i32, i32, i32>;
    Int4 Int8 "int8.c int48" integers<i32, i64, i64>;
    Int8 Int2 "int8.c int82" integers<i64, i16, i64>;
    Int8 Int4 "int8.c int84" integers<i64, i32, i64>;
    Int8 Int8 "int8.c int8" integers<i64, i64, i64>;
    Float4 Float4 "float.c float4" floats<f32, f32>;
    Float4 Float8 "float.c float48" floats<f32, f64>;
    Float8 Float4 "float.c float84" floats<f64, f32>;
    Float8 Float8 "float.c float8" floats<f64, f64>;
    Numeric Numeric "numeric.c numeric_" numerics;
    Uuid Uuid "uuid.c uuid_" bytes;
    Bytea Bytea "varlena.c bytea" bytes;
    Inet Inet "network.c network_" bytes;
};
