//! to_char of numbers, and to_number. A pattern that differs by row is left to PostgreSQL.

use arrow::array::{Array, ArrayRef, StringArray, StringBuilder};
use std::sync::Arc;

use super::vector::{Native, Numbers, operand, wrong_operand};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Float4, Float8, Int4, Int8, Numeric as NumericType, Text};
use crate::types::access::TextColumn;
use crate::types::numeric::pattern::Pattern;
use crate::types::numeric::{NumericBuilder, NumericColumn, NumericError};
use crate::types::{Numeric, Value};

/// The pattern, the second operand; None if it is NULL.
fn pattern(operands: &[Operand]) -> Result<Option<Pattern>, EvalError> {
    match operand(operands, 1)? {
        Operand::Scalar(Value::Null) => Ok(None),
        Operand::Scalar(Value::Text(text)) => Pattern::parse(text).map(Some).map_err(unknown),
        Operand::Scalar(_) => Err(wrong_operand()),
        Operand::Column(_) => Err(EvalError::Beyond("a pattern that differs by row".to_owned())),
    }
}

fn unknown(error: NumericError) -> EvalError {
    match error {
        NumericError::Beyond | NumericError::InDoubt => {
            EvalError::Beyond("this pattern, or this number in it".to_owned())
        }
        other => other.into(),
    }
}

fn each<T>(
    operands: &[Operand],
    rows: usize,
    value: impl Fn(usize) -> Option<T>,
    write: impl Fn(&Pattern, T, &mut String) -> Result<(), NumericError>,
) -> Result<ArrayRef, EvalError> {
    let Some(pattern) = pattern(operands)? else { return Ok(Arc::new(StringArray::new_null(rows))) };
    let mut texts = StringBuilder::with_capacity(rows, rows * 10);
    let mut text = String::new();
    for row in 0..rows {
        match value(row) {
            None => texts.append_null(),
            Some(value) => {
                text.clear();
                if !pattern.is_empty() {
                    write(&pattern, value, &mut text).map_err(unknown)?;
                }
                texts.append_value(&text);
            }
        }
    }
    Ok(Arc::new(texts.finish()))
}

fn numbers<T: Native>(
    operands: &[Operand],
    rows: usize,
    write: impl Fn(&Pattern, T, &mut String) -> Result<(), NumericError>,
) -> Result<ArrayRef, EvalError> {
    let values = Numbers::<T>::new(operand(operands, 0)?)?;
    let value = |row: usize| match &values {
        Numbers::Null => None,
        Numbers::Scalar(value) => Some(*value),
        Numbers::Column(values, nulls) => nulls.is_none_or(|nulls| nulls.is_valid(row)).then(|| values[row]),
    };
    each(operands, rows, value, write)
}

fn of_int4(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    numbers::<i32>(o, rows, |pattern, value, out| pattern.write_integer(i64::from(value), out))
}

fn of_int8(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    numbers::<i64>(o, rows, |pattern, value, out| pattern.write_integer(value, out))
}

fn of_float4(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    numbers::<f32>(o, rows, |pattern, value, out| pattern.write_float(f64::from(value), f32::DIGITS as usize, out))
}

fn of_float8(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    numbers::<f64>(o, rows, |pattern, value, out| pattern.write_float(value, f64::DIGITS as usize, out))
}

fn of_numeric(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let write = |pattern: &Pattern, value: Numeric, out: &mut String| pattern.write_numeric(value, out);
    match operand(o, 0)? {
        Operand::Scalar(Value::Null) => each(o, rows, |_| None, write),
        Operand::Scalar(Value::Numeric(value)) => each(o, rows, |_| Some(*value), write),
        Operand::Scalar(_) => Err(wrong_operand()),
        Operand::Column(array) => {
            let values = NumericColumn::of(array);
            each(o, rows, |row| array.is_valid(row).then(|| values.get(row)), write)
        }
    }
}

/// The number that each text is; an empty pattern makes none (numeric_to_number).
fn to_number(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let is_empty = matches!(operand(o, 1)?, Operand::Scalar(Value::Text(text)) if text.is_empty());
    let pattern = pattern(o)?.filter(|_| !is_empty);
    let read = |text: &str| match &pattern {
        Some(pattern) => pattern.read(text).map(Some).map_err(unknown),
        None => Ok(None),
    };
    let mut numbers = NumericBuilder::with_capacity(rows);
    match operand(o, 0)? {
        Operand::Scalar(Value::Null) => (0..rows).for_each(|_| numbers.append_option(None)),
        Operand::Scalar(Value::Text(text)) => {
            let number = read(text)?;
            (0..rows).for_each(|_| numbers.append_option(number));
        }
        Operand::Scalar(_) => return Err(wrong_operand()),
        Operand::Column(array) => {
            let texts = TextColumn::of(array);
            for row in 0..rows {
                numbers.append_option(if array.is_valid(row) { read(texts.get(row))? } else { None });
            }
        }
    }
    Ok(numbers.finish())
}

pub(super) static ENTRIES: &[Function] = &[
    Function::stable("to_char", &[Int4, Text], Text, of_int4, "formatting.c int4_to_char"),
    Function::stable("to_char", &[Int8, Text], Text, of_int8, "formatting.c int8_to_char"),
    Function::stable("to_char", &[NumericType, Text], Text, of_numeric, "formatting.c numeric_to_char"),
    Function::stable("to_char", &[Float4, Text], Text, of_float4, "formatting.c float4_to_char"),
    Function::stable("to_char", &[Float8, Text], Text, of_float8, "formatting.c float8_to_char"),
    Function::stable("to_number", &[Text, Text], NumericType, to_number, "formatting.c numeric_to_number"),
];
