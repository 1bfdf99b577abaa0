//! Small steps between arrow arrays and the operators.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, new_null_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use crate::catalog::functions::{EvalError, Operand, at_once};
use crate::types::access::{TextColumn, array_of, concat};
use crate::types::{PgType, Value};

/// An arrow kernel failed: nothing the client did, so upstream answers.
pub(super) fn internal(error: ArrowError) -> EvalError {
    EvalError::Beyond(error.to_string())
}

pub(super) fn nulls_like(array: &ArrayRef, rows: usize) -> Result<ArrayRef, EvalError> {
    Ok(new_null_array(array.data_type(), rows))
}

/// The operand as a column.
pub(super) fn to_array(operand: Operand, pg_type: PgType, rows: usize) -> ArrayRef {
    match operand {
        Operand::Column(array) => array,
        Operand::Scalar(value) => array_of(&value, pg_type, rows),
    }
}

/// The arrays one after the other, whatever their forms; if that is not too much at once.
pub(super) fn concatenate(pg_type: PgType, arrays: &[ArrayRef]) -> Result<ArrayRef, EvalError> {
    if arrays.len() > 1 {
        let bytes = concatenated_bytes(arrays);
        at_once::check(bytes)?;
        // What arrow's offsets reach: past it, it panics.
        if i32::try_from(bytes).is_err() && is_variable(arrays) {
            return Err(EvalError::OverBudget("bytes of one column"));
        }
    }
    concat(pg_type, arrays).map_err(internal)
}

/// What they take as one. Text that comes in both of its forms gets the longer one: a dictionary's, which costs a code a row, is
/// written out.
fn concatenated_bytes(arrays: &[ArrayRef]) -> usize {
    let is_mixed = arrays.windows(2).any(|pair| pair[0].data_type() != pair[1].data_type());
    let each = arrays.iter().map(|array| match array.data_type() {
        DataType::Dictionary(..) if is_mixed => {
            let text = TextColumn::of(array);
            (0..array.len()).filter(|row| array.is_valid(*row)).map(|row| text.get(row).len() + 4).sum()
        }
        _ => own_bytes(array),
    });
    each.sum()
}

/// What a column takes by itself: of a dictionary its codes, the texts are shared.
pub(super) fn own_bytes(array: &ArrayRef) -> usize {
    match array.data_type() {
        DataType::Dictionary(..) => array.len() * 4,
        _ => bytes_of(array),
    }
}

fn is_variable(arrays: &[ArrayRef]) -> bool {
    arrays.iter().any(|array| matches!(array.data_type(), DataType::Utf8 | DataType::Binary))
}

/// The texts, or bytes, of a column that is no dictionary.
pub(super) fn variable_bytes(array: &ArrayRef) -> usize {
    let of = |offsets: &[i32]| offsets.last().zip(offsets.first()).map_or(0, |(end, start)| (end - start) as usize);
    match array.data_type() {
        DataType::Utf8 => of(array.as_string::<i32>().value_offsets()),
        DataType::Binary => of(array.as_binary::<i32>().value_offsets()),
        _ => 0,
    }
}

/// Of a slice, its part.
pub(super) fn bytes_of(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

/// The operand as a column of booleans.
pub(super) fn to_booleans(operand: Operand, rows: usize) -> Result<BooleanArray, EvalError> {
    match operand {
        Operand::Column(array) => array
            .as_any()
            .downcast_ref::<BooleanArray>()
            .cloned()
            .ok_or_else(|| EvalError::Beyond("a predicate of another type than boolean".to_owned())),
        Operand::Scalar(Value::Bool(value)) => Ok(constant_booleans(Some(value), rows)),
        Operand::Scalar(Value::Null) => Ok(constant_booleans(None, rows)),
        Operand::Scalar(_) => Err(EvalError::Beyond("a predicate of another type than boolean".to_owned())),
    }
}

pub(super) fn constant_booleans(value: Option<bool>, rows: usize) -> BooleanArray {
    match value {
        Some(true) => BooleanArray::new(BooleanBuffer::new_set(rows), None),
        Some(false) => BooleanArray::new(BooleanBuffer::new_unset(rows), None),
        None => BooleanArray::new(BooleanBuffer::new_unset(rows), Some(NullBuffer::new_null(rows))),
    }
}

/// Set bit: the row is NULL.
pub(super) fn null_bits(array: &ArrayRef) -> BooleanBuffer {
    match array.logical_nulls() {
        Some(nulls) => !nulls.inner(),
        None => BooleanBuffer::new_unset(array.len()),
    }
}

/// A column of the type with two forms brought to one, so that rows of both can be mixed.
pub(super) fn unify(pg_type: PgType, arrays: Vec<ArrayRef>) -> Result<Vec<ArrayRef>, EvalError> {
    if arrays.windows(2).all(|pair| pair[0].data_type() == pair[1].data_type()) {
        return Ok(arrays);
    }
    let lengths: Vec<usize> = arrays.iter().map(|array| array.len()).collect();
    let whole = concatenate(pg_type, &arrays)?;
    let mut offset = 0;
    Ok(lengths
        .into_iter()
        .map(|length| {
            offset += length;
            whole.slice(offset - length, length)
        })
        .collect())
}

/// One array out of pieces: `pieces[i]` holds the rows `positions[i]` of the result, which together are all of them.
pub(super) fn assemble(pg_type: PgType, pieces: &[(Vec<u32>, ArrayRef)], rows: usize) -> Result<ArrayRef, EvalError> {
    let arrays: Vec<ArrayRef> = pieces.iter().map(|(_, array)| Arc::clone(array)).collect();
    let whole = concatenate(pg_type, &arrays)?;
    let mut source = vec![0u32; rows];
    let places = pieces.iter().flat_map(|(positions, _)| positions);
    for (at, position) in places.enumerate() {
        source[*position as usize] = at as u32;
    }
    arrow::compute::take(whole.as_ref(), &arrow::array::UInt32Array::from(source), None).map_err(internal)
}
