//! width_bucket: which of so many equal parts of a range a value is in.
//!
//! Where PostgreSQL's versions round differently near the end of a part, the kernel refuses.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array};

use super::vector::{operand, wrong_operand};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{self, Float8, Int4, Numeric as NumericType};
use crate::types::access::value_at;
use crate::types::{Numeric, Value};

fn raise<T>(message: &str) -> Result<T, EvalError> {
    Err(EvalError::Raises(message.to_owned()))
}

fn rounding<T>() -> Result<T, EvalError> {
    Err(EvalError::Beyond("width_bucket near the end of a bucket".to_owned()))
}

fn value(operands: &[Operand], index: usize, pg_type: PgType, row: usize) -> Result<Value, EvalError> {
    Ok(match operand(operands, index)? {
        Operand::Scalar(value) => value.clone(),
        Operand::Column(array) => value_at(array.as_ref(), pg_type, row),
    })
}

/// One result per row; NULL where any operand is.
fn buckets(
    operands: &[Operand],
    rows: usize,
    pg_type: PgType,
    bucket: impl Fn([Value; 3], i32) -> Result<i32, EvalError>,
) -> Result<ArrayRef, EvalError> {
    let of_row = |row| {
        let of = |index| value(operands, index, pg_type, row);
        let (values, count) = ([of(0)?, of(1)?, of(2)?], value(operands, 3, Int4, row)?);
        if values.iter().any(Value::is_null) || count.is_null() {
            return Ok(None);
        }
        match count {
            Value::Int4(count @ 1..) => bucket(values, count).map(Some),
            Value::Int4(_) => raise("count must be greater than zero"),
            _ => Err(wrong_operand()),
        }
    };
    Ok(Arc::new((0..rows).map(of_row).collect::<Result<Int32Array, EvalError>>()?))
}

/// Below the range, above it, or None: within. The range may run downwards.
fn outside(to_first: Ordering, to_last: Ordering, range: Ordering, count: i32) -> Result<Option<i32>, EvalError> {
    let (before, is_behind) = match range {
        Ordering::Equal => return raise("lower bound cannot equal upper bound"),
        Ordering::Less => (to_first.is_lt(), to_last.is_ge()),
        Ordering::Greater => (to_first.is_gt(), to_last.is_le()),
    };
    if before {
        return Ok(Some(0));
    }
    match count.checked_add(1) {
        _ if !is_behind => Ok(None),
        Some(last) => Ok(Some(last)),
        None => raise("integer out of range"),
    }
}

fn of_floats([value, first, last]: [Value; 3], count: i32) -> Result<i32, EvalError> {
    let (Value::Float8(value), Value::Float8(first), Value::Float8(last)) = (value, first, last) else {
        return Err(wrong_operand());
    };
    if value.is_nan() || !first.is_finite() || !last.is_finite() {
        return raise("operand, lower bound, and upper bound cannot be NaN, bounds must be finite");
    }
    let order = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    if let Some(known) = outside(order(value, first), order(value, last), order(first, last), count)? {
        return Ok(known);
    }
    let (part, whole) = ((value - first).abs(), (last - first).abs());
    if !whole.is_finite() {
        return rounding();
    }
    // Before and since the rounding was mended.
    let (old, new) = (f64::from(count) * part / whole, f64::from(count) * (part / whole));
    if old.floor() != new.floor() || new >= f64::from(count) {
        return rounding();
    }
    Ok(new as i32 + 1)
}

fn of_numerics(values: [Value; 3], count: i32) -> Result<i32, EvalError> {
    let too_long = || EvalError::Beyond("width_bucket of long numbers".to_owned());
    let finite = |value: &Value| match value {
        Value::Numeric(Numeric::Finite { mantissa, scale }) => Ok((*mantissa, *scale)),
        _ => Err(EvalError::Beyond("width_bucket of NaN or infinity".to_owned())),
    };
    let numbers = [finite(&values[0])?, finite(&values[1])?, finite(&values[2])?];
    let scale = numbers.iter().map(|(_, scale)| *scale).max().unwrap_or(0);
    let at_scale = |(mantissa, own): (i128, u16)| {
        10i128.checked_pow(u32::from(scale - own)).and_then(|factor| mantissa.checked_mul(factor)).ok_or_else(too_long)
    };
    let (value, first, last) = (at_scale(numbers[0])?, at_scale(numbers[1])?, at_scale(numbers[2])?);
    if let Some(known) = outside(value.cmp(&first), value.cmp(&last), first.cmp(&last), count)? {
        return Ok(known);
    }
    let distance = |from: i128, to: i128| to.checked_sub(from).and_then(i128::checked_abs).ok_or_else(too_long);
    let (part, whole) = (distance(first, value)?, distance(first, last)?);
    let part = part.checked_mul(count.into()).ok_or_else(too_long)?;
    // A quotient just below a whole number may be rounded up to it (numeric.c, select_div_scale).
    let missing = whole - part % whole;
    if part % whole != 0 && missing.checked_mul(1_000_000_000_000_000).is_some_and(|missing| missing < whole) {
        return rounding();
    }
    i32::try_from(part / whole + 1).map_err(|_| too_long())
}

fn floats(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    buckets(o, rows, Float8, of_floats)
}

fn numerics(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    buckets(o, rows, NumericType, of_numerics)
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("width_bucket", &[Float8, Float8, Float8, Int4], Int4, floats, "float.c width_bucket_float8"),
    Function::immutable(
        "width_bucket",
        &[NumericType, NumericType, NumericType, Int4],
        Int4,
        numerics,
        "numeric.c width_bucket_numeric",
    ),
];
