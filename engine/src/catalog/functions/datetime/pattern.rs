//! to_char, to_timestamp and to_date with a template pattern.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Int32Type};

use super::super::vector::{operand, wrong_operand};
use super::super::{EvalContext, EvalError, Function, Operand};
use super::Evaluated;
use super::columns::{Source, numbers, spans, unpacked};
use super::conversion::scalar_text;
use crate::types::PgType::{Date, Interval, Text, Timestamp, Timestamptz};
use crate::types::Value;
use crate::types::datetime::calendar::is_finite;
use crate::types::datetime::pattern::Pattern;
use crate::types::datetime::zone::OffsetCursor;
use crate::types::datetime::{DateTimeError, arithmetic};

/// The pattern, the second operand; None if it is NULL.
fn pattern(operands: &[Operand]) -> Result<Option<Pattern>, EvalError> {
    let Some(text) = scalar_text(operands, 1)? else { return Ok(None) };
    Ok(Some(Pattern::parse(text)?))
}

/// to_char is NULL for what has no form (an infinity) and for an empty pattern.
fn write_each<T: Copy + PartialEq>(
    o: &[Operand],
    rows: usize,
    values: Option<Source<'_, T>>,
    has_form: fn(T) -> bool,
    mut write: impl FnMut(&Pattern, T, &mut Vec<u8>) -> Result<(), DateTimeError>,
) -> Evaluated {
    let (Some(pattern), Some(values)) = (pattern(o)?, values) else {
        return Ok(Arc::new(StringArray::new_null(rows)));
    };
    let is_written = |row| !pattern.is_empty() && values.is_valid(row) && has_form(values.get(row));
    let mut texts = StringBuilder::with_capacity(rows, rows * 10);
    let mut buffer = Vec::new();
    let mut last = None;
    for row in 0..rows {
        if !is_written(row) {
            texts.append_null();
            continue;
        }
        let value = values.get(row);
        if last != Some(value) {
            buffer.clear();
            write(&pattern, value, &mut buffer)?;
            last = Some(value);
        }
        texts.append_value(std::str::from_utf8(&buffer).map_err(|_| wrong_operand())?);
    }
    Ok(Arc::new(texts.finish()))
}

fn write_locals(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    write_each(o, rows, numbers(o, 0)?, is_finite, |pattern, local, out| pattern.write_local(local, out))
}

fn write_moments(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    write_each(o, rows, numbers(o, 0)?, is_finite, |pattern, moment, out| pattern.write_moment(moment, cursor, out))
}

fn write_intervals(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    write_each(o, rows, spans(o, 0)?, |_| true, |pattern, span, out| pattern.write_interval(&unpacked(span), out))
}

/// `f` on the local time that each text stands for.
fn read_each<R>(
    o: &[Operand],
    rows: usize,
    mut f: impl FnMut(i64) -> Result<R, DateTimeError>,
) -> Result<Vec<Option<R>>, EvalError>
where
    R: Copy,
{
    let Some(pattern) = pattern(o)? else { return Ok(vec![None; rows]) };
    match operand(o, 0)? {
        Operand::Scalar(Value::Null) => Ok(vec![None; rows]),
        Operand::Scalar(Value::Text(text)) => Ok(vec![Some(f(pattern.read(text)?)?); rows]),
        Operand::Scalar(_) => Err(wrong_operand()),
        Operand::Column(texts) => {
            let texts = plain_text(texts)?;
            let texts = texts.as_string_opt::<i32>().ok_or_else(wrong_operand)?;
            texts.iter().map(|text| Ok(text.map(|text| f(pattern.read(text)?)).transpose()?)).collect()
        }
    }
}

/// A text column without its dictionary.
fn plain_text(texts: &ArrayRef) -> Result<ArrayRef, EvalError> {
    if texts.data_type() == &DataType::Utf8 {
        return Ok(Arc::clone(texts));
    }
    let dictionary = texts.as_dictionary_opt::<Int32Type>().ok_or_else(wrong_operand)?;
    let words = dictionary.downcast_dict::<StringArray>().ok_or_else(wrong_operand)?;
    Ok(Arc::new(words.into_iter().collect::<StringArray>()))
}

fn read_moments(o: &[Operand], rows: usize, c: &EvalContext<'_>) -> Evaluated {
    let cursor = &mut OffsetCursor::new(&c.settings.time_zone);
    let moments = read_each(o, rows, |local| arithmetic::timestamp_to_timestamptz(local, cursor))?;
    Ok(Arc::new(moments.into_iter().collect::<arrow::array::Int64Array>()))
}

fn read_dates(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Evaluated {
    let dates = read_each(o, rows, |local| Ok(arithmetic::timestamp_to_date(local)))?;
    Ok(Arc::new(dates.into_iter().collect::<arrow::array::Int32Array>()))
}

pub(in super::super) static ENTRIES: &[Function] = &[
    Function::stable("to_char", &[Timestamp, Text], Text, write_locals, "formatting.c timestamp_to_char"),
    Function::stable("to_char", &[Timestamptz, Text], Text, write_moments, "formatting.c timestamptz_to_char"),
    Function::stable("to_char", &[Interval, Text], Text, write_intervals, "formatting.c interval_to_char"),
    Function::stable("to_timestamp", &[Text, Text], Timestamptz, read_moments, "formatting.c to_timestamp"),
    Function::stable("to_date", &[Text, Text], Date, read_dates, "formatting.c to_date"),
];
