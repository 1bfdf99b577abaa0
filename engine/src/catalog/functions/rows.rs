//! Kernels that work one row at a time, on text above all: NULLs, constants and dictionaries are dealt with here, the
//! kernel sees plain values.
//!
//! Where the only column is a dictionary, the kernel runs once per distinct value instead of once per row, and a text
//! result is a dictionary again. A dictionary made here has no two equal values.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, DictionaryArray, Int32Array, NullBufferBuilder, StringArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int32Type};
use hashbrown::HashMap;

use super::vector::{Native, Numbers, nulls as null_numbers, operand, wrong_operand};
use super::{EvalError, Operand};
use crate::types::Value;
use crate::types::access::TextColumn;

/// A type of argument: how to see an operand, and one row of it.
pub(super) trait Argument {
    type Item<'a>: Copy;
    type View<'a>;
    fn view(operand: &Operand) -> Result<Option<Self::View<'_>>, EvalError>;
    fn nulls<'a>(view: &Self::View<'a>) -> Option<&'a NullBuffer>;
    fn at<'a>(view: &Self::View<'a>, row: usize) -> Self::Item<'a>;
}

pub(super) struct Text;

pub(super) enum Texts<'a> {
    Column(TextColumn<'a>, Option<&'a NullBuffer>),
    Scalar(&'a str),
}

impl Argument for Text {
    type Item<'a> = &'a str;
    type View<'a> = Texts<'a>;
    fn view(operand: &Operand) -> Result<Option<Texts<'_>>, EvalError> {
        match operand {
            Operand::Scalar(Value::Null) => Ok(None),
            Operand::Scalar(Value::Text(text)) => Ok(Some(Texts::Scalar(text))),
            Operand::Scalar(_) => Err(wrong_operand()),
            Operand::Column(array) => Ok(Some(Texts::Column(TextColumn::of(array), array.nulls()))),
        }
    }
    fn nulls<'a>(view: &Self::View<'a>) -> Option<&'a NullBuffer> {
        match view {
            Texts::Column(_, nulls) => *nulls,
            Texts::Scalar(_) => None,
        }
    }
    fn at<'a>(view: &Self::View<'a>, row: usize) -> &'a str {
        match view {
            Texts::Column(column, _) => column.get(row),
            Texts::Scalar(text) => text,
        }
    }
}

/// bool.
pub(super) struct Truth;

pub(super) enum Truths<'a> {
    Column(&'a BooleanArray),
    Scalar(bool),
}

impl Argument for Truth {
    type Item<'a> = bool;
    type View<'a> = Truths<'a>;
    fn view(operand: &Operand) -> Result<Option<Truths<'_>>, EvalError> {
        match operand {
            Operand::Scalar(Value::Null) => Ok(None),
            Operand::Scalar(Value::Bool(value)) => Ok(Some(Truths::Scalar(*value))),
            Operand::Scalar(_) => Err(wrong_operand()),
            Operand::Column(array) => {
                array.as_any().downcast_ref().map(|array| Some(Truths::Column(array))).ok_or_else(wrong_operand)
            }
        }
    }
    fn nulls<'a>(view: &Self::View<'a>) -> Option<&'a NullBuffer> {
        match view {
            Truths::Column(array) => (*array).nulls(),
            Truths::Scalar(_) => None,
        }
    }
    fn at<'a>(view: &Self::View<'a>, row: usize) -> Self::Item<'a> {
        match view {
            Truths::Column(array) => array.value(row),
            Truths::Scalar(value) => *value,
        }
    }
}

pub(super) struct Bytes;

pub(super) enum Binaries<'a> {
    Column(&'a BinaryArray),
    Scalar(&'a [u8]),
}

impl Argument for Bytes {
    type Item<'a> = &'a [u8];
    type View<'a> = Binaries<'a>;
    fn view(operand: &Operand) -> Result<Option<Binaries<'_>>, EvalError> {
        match operand {
            Operand::Scalar(Value::Null) => Ok(None),
            Operand::Scalar(Value::Bytea(bytes) | Value::Network(bytes) | Value::Array(bytes)) => {
                Ok(Some(Binaries::Scalar(bytes)))
            }
            Operand::Scalar(_) => Err(wrong_operand()),
            Operand::Column(array) => {
                array.as_any().downcast_ref().map(|array| Some(Binaries::Column(array))).ok_or_else(wrong_operand)
            }
        }
    }
    fn nulls<'a>(view: &Self::View<'a>) -> Option<&'a NullBuffer> {
        match view {
            Binaries::Column(array) => (*array).nulls(),
            Binaries::Scalar(_) => None,
        }
    }
    fn at<'a>(view: &Self::View<'a>, row: usize) -> &'a [u8] {
        match view {
            Binaries::Column(array) => array.value(row),
            Binaries::Scalar(bytes) => bytes,
        }
    }
}

impl<T: Native> Argument for T {
    type Item<'a> = T;
    type View<'a> = Numbers<'a, T>;
    fn view(operand: &Operand) -> Result<Option<Numbers<'_, T>>, EvalError> {
        let numbers = Numbers::new(operand)?;
        Ok(if matches!(numbers, Numbers::Null) { None } else { Some(numbers) })
    }
    fn nulls<'a>(view: &Self::View<'a>) -> Option<&'a NullBuffer> {
        match view {
            Numbers::Column(_, nulls) => *nulls,
            Numbers::Scalar(_) | Numbers::Null => None,
        }
    }
    fn at<'a>(view: &Self::View<'a>, row: usize) -> Self::Item<'a> {
        match view {
            Numbers::Column(values, _) => values[row],
            Numbers::Scalar(value) => *value,
            Numbers::Null => T::default(),
        }
    }
}

/// Several arguments: a tuple of their types.
pub(super) trait Arguments {
    type Items<'a>: Copy;
    type Views<'a>;
    /// None: an operand is the NULL constant.
    fn views(operands: &[Operand]) -> Result<Option<Self::Views<'_>>, EvalError>;
    fn all_nulls(views: &Self::Views<'_>) -> Option<NullBuffer>;
    fn items<'a>(views: &Self::Views<'a>, row: usize) -> Self::Items<'a>;
}

macro_rules! tuple_of_arguments {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Argument),+> Arguments for ($($name,)+) {
            type Items<'a> = ($($name::Item<'a>,)+);
            type Views<'a> = ($($name::View<'a>,)+);
            fn views(operands: &[Operand]) -> Result<Option<Self::Views<'_>>, EvalError> {
                Ok(Some(($(
                    match $name::view(operand(operands, $index)?)? {
                        Some(view) => view,
                        None => return Ok(None),
                    },
                )+)))
            }
            fn all_nulls(views: &Self::Views<'_>) -> Option<NullBuffer> {
                let mut all: Option<NullBuffer> = None;
                $(all = NullBuffer::union(all.as_ref(), $name::nulls(&views.$index));)+
                all
            }
            fn items<'a>(views: &Self::Views<'a>, row: usize) -> Self::Items<'a> {
                ($($name::at(&views.$index, row),)+)
            }
        }
    };
}

tuple_of_arguments!(A 0);
tuple_of_arguments!(A 0, B 1);
tuple_of_arguments!(A 0, B 1, C 2);
tuple_of_arguments!(A 0, B 1, C 2, D 3);

fn is_null(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_some_and(|nulls| nulls.is_null(row))
}

/// What the texts, or bytes, of one batch of rows may take: no operator has counted them yet.
const BATCH_BYTES_MAX: usize = 128 << 20;

/// Where a text ends among those of its batch, or has grown to so far: a row's may be made of many pieces.
pub(super) fn end_of(bytes: usize) -> Result<i32, EvalError> {
    super::at_once::check(bytes)?;
    if bytes > BATCH_BYTES_MAX { Err(EvalError::OverBudget("memory")) } else { Ok(bytes as i32) }
}

/// Before a row: whether the statement goes on, looked at now and then. Some rows take a tenth of a millisecond each.
pub(super) fn before_row(row: usize) -> Result<(), EvalError> {
    const LOOK_EVERY: usize = 128;
    if row.is_multiple_of(LOOK_EVERY) { super::at_once::go_on() } else { Ok(()) }
}

/// A text result: `f` appends each row's to the buffer.
pub(super) fn to_text<A: Arguments>(
    operands: &[Operand],
    rows: usize,
    f: impl for<'a> Fn(A::Items<'a>, &mut String) -> Result<(), EvalError>,
) -> Result<ArrayRef, EvalError> {
    to_text_or_null::<A>(operands, rows, |items, out| f(items, out).map(|()| true))
}

/// A text result that may be NULL of what is not: `f` tells whether what it appended is the result.
pub(super) fn to_text_or_null<A: Arguments>(
    operands: &[Operand],
    rows: usize,
    f: impl for<'a> Fn(A::Items<'a>, &mut String) -> Result<bool, EvalError>,
) -> Result<ArrayRef, EvalError> {
    per_distinct(operands, rows, &|operands, rows| {
        let Some(views) = A::views(operands)? else { return Ok(Arc::new(StringArray::new_null(rows))) };
        let nulls = A::all_nulls(&views);
        let mut texts = String::new();
        let mut ends = Vec::with_capacity(rows + 1);
        let mut known = NullBufferBuilder::new(rows);
        ends.push(0);
        for row in 0..rows {
            before_row(row)?;
            let before = texts.len();
            let is_known = !is_null(nulls.as_ref(), row) && f(A::items(&views, row), &mut texts)?;
            if !is_known {
                texts.truncate(before);
            }
            known.append(is_known);
            ends.push(end_of(texts.len())?);
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        Ok(Arc::new(StringArray::new(offsets, texts.into_bytes().into(), known.finish())))
    })
}

/// A result that is a number.
pub(super) fn to_number<A: Arguments, R: Native>(
    operands: &[Operand],
    rows: usize,
    f: impl for<'a> Fn(A::Items<'a>) -> Result<R, EvalError>,
) -> Result<ArrayRef, EvalError> {
    per_distinct(operands, rows, &|operands, rows| {
        let Some(views) = A::views(operands)? else { return Ok(null_numbers::<R>(rows)) };
        let nulls = A::all_nulls(&views);
        let value = |row| if is_null(nulls.as_ref(), row) { Ok(R::default()) } else { f(A::items(&views, row)) };
        let values = (0..rows).map(value).collect::<Result<Vec<R>, _>>()?;
        Ok(super::vector::column(values, nulls))
    })
}

/// A predicate.
pub(super) fn to_bool<A: Arguments>(
    operands: &[Operand],
    rows: usize,
    f: impl for<'a> Fn(A::Items<'a>) -> Result<bool, EvalError>,
) -> Result<ArrayRef, EvalError> {
    per_distinct(operands, rows, &|operands, rows| {
        let Some(views) = A::views(operands)? else { return Ok(Arc::new(BooleanArray::new_null(rows))) };
        let nulls = A::all_nulls(&views);
        let mut error = None;
        let values = BooleanBuffer::collect_bool(rows, |row| {
            if is_null(nulls.as_ref(), row) || error.is_some() {
                return false;
            }
            before_row(row).and_then(|()| f(A::items(&views, row))).unwrap_or_else(|raised| {
                error = Some(raised);
                false
            })
        });
        match error {
            Some(error) => Err(error),
            None => Ok(Arc::new(BooleanArray::new(values, nulls))),
        }
    })
}

/// A result of bytes: `f` appends each row's to the buffer.
pub(super) fn to_bytes<A: Arguments>(
    operands: &[Operand],
    rows: usize,
    f: impl for<'a> Fn(A::Items<'a>, &mut Vec<u8>) -> Result<(), EvalError>,
) -> Result<ArrayRef, EvalError> {
    per_distinct(operands, rows, &|operands, rows| {
        let Some(views) = A::views(operands)? else { return Ok(Arc::new(BinaryArray::new_null(rows))) };
        let nulls = A::all_nulls(&views);
        let mut bytes = Vec::new();
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        for row in 0..rows {
            if !is_null(nulls.as_ref(), row) {
                f(A::items(&views, row), &mut bytes)?;
            }
            ends.push(end_of(bytes.len())?);
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        Ok(Arc::new(BinaryArray::new(offsets, bytes.into(), nulls)))
    })
}

/// Runs a strict kernel once per distinct value where that is known to be less work: for constants, and for one
/// dictionary column among constants.
pub(super) fn per_distinct(
    operands: &[Operand],
    rows: usize,
    kernel: &dyn Fn(&[Operand], usize) -> Result<ArrayRef, EvalError>,
) -> Result<ArrayRef, EvalError> {
    let mut columns = operands.iter().enumerate().filter_map(|(index, operand)| match operand {
        Operand::Column(array) => Some((index, array)),
        Operand::Scalar(_) => None,
    });
    let (Some((index, array)), None) = (columns.next(), columns.next()) else {
        if rows > 1 && operands.iter().all(|operand| matches!(operand, Operand::Scalar(_))) {
            return repeat(&kernel(operands, 1)?, rows);
        }
        return kernel(operands, rows);
    };
    let dictionary = match array.data_type() {
        DataType::Dictionary(..) => array.as_dictionary::<Int32Type>(),
        _ => return kernel(operands, rows),
    };
    if dictionary.values().len() > rows {
        return kernel(operands, rows);
    }
    let over = |values: ArrayRef| {
        let mut operands = operands.to_vec();
        let rows = values.len();
        operands[index] = Operand::Column(values);
        kernel(&operands, rows)
    };
    let results = match over(dictionary.values().clone()) {
        Ok(results) => results,
        // The value that fails may be one that no row has.
        Err(EvalError::Raises(_) | EvalError::Beyond(_)) => over(Arc::new(used_values(dictionary)))?,
        Err(error) => return Err(error),
    };
    expand(dictionary.keys(), &results)
}

/// The dictionary's values, those that no row has made NULL.
fn used_values(dictionary: &DictionaryArray<Int32Type>) -> StringArray {
    let values = dictionary.values().as_string::<i32>();
    let mut used = vec![false; values.len()];
    for key in dictionary.keys().iter().flatten() {
        used[key as usize] = true;
    }
    let nulls = NullBuffer::union(values.nulls(), Some(&NullBuffer::from(used)));
    StringArray::new(values.offsets().clone(), values.values().clone(), nulls)
}

/// One result per dictionary value, spread over the rows.
fn expand(keys: &Int32Array, results: &ArrayRef) -> Result<ArrayRef, EvalError> {
    match results.data_type() {
        DataType::Utf8 => Ok(distinct_dictionary(keys, results.as_string())),
        DataType::Boolean if results.null_count() == 0 => {
            let results: Vec<bool> = results.as_boolean().values().iter().collect();
            let codes = keys.values();
            // A NULL's key is any number.
            let of = |row: usize| results.get(codes[row] as usize).copied().unwrap_or_default();
            let values = BooleanBuffer::collect_bool(keys.len(), of);
            Ok(Arc::new(BooleanArray::new(values, keys.nulls().cloned())))
        }
        _ => take(results, keys, None).map_err(|error| EvalError::Beyond(error.to_string())),
    }
}

fn repeat(one: &ArrayRef, rows: usize) -> Result<ArrayRef, EvalError> {
    let bytes = one.to_data().get_slice_memory_size().unwrap_or_else(|_| one.get_array_memory_size());
    end_of(bytes.saturating_mul(rows))?;
    take(one, &Int32Array::from(vec![0; rows]), None).map_err(|error| EvalError::Beyond(error.to_string()))
}

/// A dictionary over `keys` where equal values (lower() makes some) have one key.
fn distinct_dictionary(keys: &Int32Array, values: &StringArray) -> ArrayRef {
    let mut codes: HashMap<&str, i32> = HashMap::with_capacity(values.len());
    let mut distinct = Vec::with_capacity(values.len());
    let mut code = |value| {
        *codes.entry(value).or_insert_with(|| {
            distinct.push(value);
            distinct.len() as i32 - 1
        })
    };
    let renamed: Vec<Option<i32>> = values.iter().map(|value| value.map(&mut code)).collect();
    if distinct.len() == values.len() {
        return Arc::new(DictionaryArray::new(keys.clone(), Arc::new(values.clone())));
    }
    // A value that became NULL makes its rows NULL: those who read the array look at the keys for that.
    let keys: Int32Array = keys.iter().map(|key| renamed.get(key? as usize).copied().flatten()).collect();
    if distinct.is_empty() {
        // Every row is NULL, but a key has to point somewhere.
        distinct.push("");
    }
    Arc::new(DictionaryArray::new(keys, Arc::new(StringArray::from(distinct))))
}
