//! Loops over columns that the kernels share: operands seen as slices, null masks united, results built.
//!
//! A kernel is strict here: a NULL operand makes a NULL result, and what a NULL row holds is never an error.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use std::sync::Arc;

use super::{EvalError, Operand};
use crate::types::Value;

/// A Rust number that stands for values of one or more PostgreSQL types.
pub(super) trait Native: ArrowNativeType {
    type Array: ArrowPrimitiveType<Native = Self>;
    /// The number in a scalar operand, or None if it holds another type.
    fn of(value: &Value) -> Option<Self>;
}

macro_rules! native {
    ($native:ty, $array:ty, $($variant:ident)|+) => {
        impl Native for $native {
            type Array = $array;
            fn of(value: &Value) -> Option<Self> {
                match value {
                    $(Value::$variant(number) => Some(*number),)+
                    _ => None,
                }
            }
        }
    };
}

native!(i16, Int16Type, Int2);
native!(i32, Int32Type, Int4 | Date);
native!(i64, Int64Type, Int8 | Time | Timestamp | Timestamptz);
native!(f32, Float32Type, Float4);
native!(f64, Float64Type, Float8);

/// One operand, as numbers.
pub(super) enum Numbers<'a, T: Native> {
    Column(&'a [T], Option<&'a NullBuffer>),
    Scalar(T),
    Null,
}

impl<'a, T: Native> Numbers<'a, T> {
    pub(super) fn new(operand: &'a Operand) -> Result<Self, EvalError> {
        match operand {
            Operand::Scalar(Value::Null) => Ok(Self::Null),
            Operand::Scalar(value) => T::of(value).map(Self::Scalar).ok_or_else(wrong_operand),
            Operand::Column(array) => {
                let array = array.as_any().downcast_ref::<PrimitiveArray<T::Array>>().ok_or_else(wrong_operand)?;
                Ok(Self::Column(array.values(), array.nulls()))
            }
        }
    }
}

/// The operand's array is not of the form that the entry's argument type has. A mistake in this program; the
/// statement goes upstream.
pub(super) fn wrong_operand() -> EvalError {
    EvalError::Beyond("operand of another type than the function's argument".to_owned())
}

/// The operand at `index`, which the binder has made sure is there.
pub(super) fn operand(operands: &[Operand], index: usize) -> Result<&Operand, EvalError> {
    operands.get(index).ok_or_else(|| EvalError::Beyond("missing operand".to_owned()))
}

/// A column of NULLs.
pub(super) fn nulls<R: Native>(rows: usize) -> ArrayRef {
    Arc::new(PrimitiveArray::<R::Array>::new_null(rows))
}

pub(super) fn column<R: Native>(values: Vec<R>, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(PrimitiveArray::<R::Array>::new(ScalarBuffer::from(values), nulls))
}

/// A result and whether it is wrong (overflow, division by zero...). Checking after the loop keeps the loop free of
/// branches, so that it vectorises.
pub(super) type Checked<R> = (R, bool);

/// `f` on each row; an error of `raise` if a row that is not NULL went wrong.
pub(super) fn checked_unary<A: Native, R: Native>(
    operands: &[Operand],
    rows: usize,
    f: impl Fn(A) -> Checked<R>,
    raise: impl Fn(A) -> EvalError,
) -> Result<ArrayRef, EvalError> {
    match Numbers::<A>::new(operand(operands, 0)?)? {
        Numbers::Null => Ok(nulls::<R>(rows)),
        Numbers::Scalar(a) => {
            let (value, wrong) = f(a);
            if wrong && rows > 0 { Err(raise(a)) } else { Ok(column(vec![value; rows], None)) }
        }
        Numbers::Column(a, a_nulls) => {
            let (values, any_wrong) = collect_checked(a.iter().map(|&a| f(a)), a.len());
            if any_wrong {
                first_wrong(a.len(), a_nulls, |row| f(a[row]).1).map_or(Ok(()), |row| Err(raise(a[row])))?;
            }
            Ok(column::<R>(values, a_nulls.cloned()))
        }
    }
}

/// `f` on each pair; an error of `raise` if a row without NULL went wrong.
pub(super) fn checked_binary<A: Native, B: Native, R: Native>(
    operands: &[Operand],
    rows: usize,
    f: impl Fn(A, B) -> Checked<R>,
    raise: impl Fn(A, B) -> EvalError,
) -> Result<ArrayRef, EvalError> {
    let left = Numbers::<A>::new(operand(operands, 0)?)?;
    let right = Numbers::<B>::new(operand(operands, 1)?)?;
    match (left, right) {
        (Numbers::Null, _) | (_, Numbers::Null) => Ok(nulls::<R>(rows)),
        (Numbers::Scalar(a), Numbers::Scalar(b)) => {
            let (value, wrong) = f(a, b);
            if wrong && rows > 0 { Err(raise(a, b)) } else { Ok(column(vec![value; rows], None)) }
        }
        (Numbers::Column(a, nulls), Numbers::Scalar(b)) => {
            let (values, any_wrong) = collect_checked(a.iter().map(|&a| f(a, b)), a.len());
            if any_wrong {
                first_wrong(a.len(), nulls, |row| f(a[row], b).1).map_or(Ok(()), |row| Err(raise(a[row], b)))?;
            }
            Ok(column(values, nulls.cloned()))
        }
        (Numbers::Scalar(a), Numbers::Column(b, nulls)) => {
            let (values, any_wrong) = collect_checked(b.iter().map(|&b| f(a, b)), b.len());
            if any_wrong {
                first_wrong(b.len(), nulls, |row| f(a, b[row]).1).map_or(Ok(()), |row| Err(raise(a, b[row])))?;
            }
            Ok(column(values, nulls.cloned()))
        }
        (Numbers::Column(a, a_nulls), Numbers::Column(b, b_nulls)) => {
            let nulls = NullBuffer::union(a_nulls, b_nulls);
            let pairs = a.iter().zip(b).map(|(&a, &b)| f(a, b));
            let (values, any_wrong) = collect_checked(pairs, a.len().min(b.len()));
            if any_wrong {
                let wrong = first_wrong(a.len(), nulls.as_ref(), |row| f(a[row], b[row]).1);
                wrong.map_or(Ok(()), |row| Err(raise(a[row], b[row])))?;
            }
            Ok(column(values, nulls))
        }
    }
}

fn collect_checked<R: Native>(results: impl Iterator<Item = Checked<R>>, rows: usize) -> (Vec<R>, bool) {
    let mut values = vec![R::default(); rows];
    let mut any_wrong = false;
    for (slot, (value, wrong)) in values.iter_mut().zip(results) {
        *slot = value;
        any_wrong |= wrong;
    }
    (values, any_wrong)
}

pub(super) fn first_wrong(rows: usize, nulls: Option<&NullBuffer>, is_wrong: impl Fn(usize) -> bool) -> Option<usize> {
    (0..rows).find(|&row| nulls.is_none_or(|nulls| nulls.is_valid(row)) && is_wrong(row))
}

/// A predicate on each pair.
pub(super) fn compare<A: Native, B: Native>(
    operands: &[Operand],
    rows: usize,
    f: impl Fn(A, B) -> bool,
) -> Result<ArrayRef, EvalError> {
    let left = Numbers::<A>::new(operand(operands, 0)?)?;
    let right = Numbers::<B>::new(operand(operands, 1)?)?;
    Ok(match (left, right) {
        (Numbers::Null, _) | (_, Numbers::Null) => Arc::new(BooleanArray::new_null(rows)),
        (Numbers::Scalar(a), Numbers::Scalar(b)) => constant_bool(f(a, b), rows),
        (Numbers::Column(a, nulls), Numbers::Scalar(b)) => {
            bool_column(BooleanBuffer::collect_bool(a.len(), |row| f(a[row], b)), nulls.cloned())
        }
        (Numbers::Scalar(a), Numbers::Column(b, nulls)) => {
            bool_column(BooleanBuffer::collect_bool(b.len(), |row| f(a, b[row])), nulls.cloned())
        }
        (Numbers::Column(a, a_nulls), Numbers::Column(b, b_nulls)) => {
            let b = &b[..a.len()];
            bool_column(
                BooleanBuffer::collect_bool(a.len(), |row| f(a[row], b[row])),
                NullBuffer::union(a_nulls, b_nulls),
            )
        }
    })
}

pub(super) fn bool_column(values: BooleanBuffer, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(BooleanArray::new(values, nulls))
}

pub(super) fn constant_bool(value: bool, rows: usize) -> ArrayRef {
    let values = if value { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) };
    bool_column(values, None)
}
