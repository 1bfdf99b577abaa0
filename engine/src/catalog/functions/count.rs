//! Numbers of rows, as LIMIT and OFFSET take them, where they become conditions on a row's number.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use super::vector::{Numbers, operand};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::Int8;

/// More than there are rows, and a sum of two of them is no overflow.
const ALL: i64 = i64::MAX / 4;

fn counted(operands: &[Operand], rows: usize, of_null: i64, negative: &str) -> Result<ArrayRef, EvalError> {
    let count = |value: i64| if value < 0 { Err(EvalError::Raises(negative.to_owned())) } else { Ok(value.min(ALL)) };
    let values = match Numbers::<i64>::new(operand(operands, 0)?)? {
        Numbers::Null => Int64Array::from_value(of_null, rows),
        Numbers::Scalar(value) => Int64Array::from_value(count(value)?, rows),
        Numbers::Column(values, nulls) => {
            let is_null = |row: usize| nulls.is_some_and(|nulls| nulls.is_null(row));
            let value = |row: usize| if is_null(row) { Ok(of_null) } else { count(values[row]) };
            Int64Array::from((0..rows).map(value).collect::<Result<Vec<_>, _>>()?)
        }
    };
    Ok(Arc::new(values))
}

fn limit(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    counted(operands, rows, ALL, "LIMIT must not be negative")
}

fn offset(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    counted(operands, rows, 0, "OFFSET must not be negative")
}

/// What LIMIT is given → how many rows that are at most; NULL is no limit.
pub static LIMIT: Function = Function {
    is_strict: false,
    ..Function::immutable("row_limit", &[Int8], Int8, limit, "nodeLimit.c recompute_limits")
};

/// What OFFSET is given → how many rows are left out; NULL is none.
pub static OFFSET: Function = Function {
    is_strict: false,
    ..Function::immutable("row_offset", &[Int8], Int8, offset, "nodeLimit.c recompute_limits")
};
