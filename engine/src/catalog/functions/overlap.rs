//! OVERLAPS: whether two spans of time have a moment in common.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};

use super::vector::{Numbers, operand};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{self, Bool, Time, Timestamp, Timestamptz};

/// As overlaps_timestamp and its kin: the ends of a span in either order, one of them or both unknown.
fn overlap(one: (Option<i64>, Option<i64>), other: (Option<i64>, Option<i64>)) -> Option<bool> {
    let ordered = |span| match span {
        (None, None) => None,
        (None, Some(known)) | (Some(known), None) => Some((known, None)),
        (Some(start), Some(end)) => Some((i64::min(start, end), Some(i64::max(start, end)))),
    };
    let ((start, end), (other_start, other_end)) = (ordered(one)?, ordered(other)?);
    // Whether the later one begins before the earlier one ends.
    let later = |earlier_end: Option<i64>, start: i64, end: Option<i64>| match (start < earlier_end?, end) {
        (true, _) => Some(true),
        (false, None) => None,
        (false, Some(_)) => Some(false),
    };
    match start.cmp(&other_start) {
        Ordering::Greater => later(other_end, start, end),
        Ordering::Less => later(end, other_start, other_end),
        Ordering::Equal => end.and(other_end).map(|_| true),
    }
}

fn overlaps(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let ends =
        (0..4).map(|index| Numbers::<i64>::new(operand(operands, index)?)).collect::<Result<Vec<_>, EvalError>>()?;
    let at = |index: usize, row: usize| match &ends[index] {
        Numbers::Null => None,
        Numbers::Scalar(value) => Some(*value),
        Numbers::Column(values, nulls) => nulls.is_none_or(|nulls| nulls.is_valid(row)).then(|| values[row]),
    };
    let value = |row: usize| overlap((at(0, row), at(1, row)), (at(2, row), at(3, row)));
    Ok(Arc::new((0..rows).map(value).collect::<BooleanArray>()))
}

const fn entry(arguments: &'static [PgType], source: &'static str) -> Function {
    Function { is_strict: false, ..Function::immutable("overlaps", arguments, Bool, overlaps, source) }
}

pub(super) static ENTRIES: &[Function] = &[
    entry(&[Timestamp; 4], "timestamp.c overlaps_timestamp"),
    entry(&[Timestamptz; 4], "timestamp.c overlaps_timestamp (timestamptz)"),
    entry(&[Time; 4], "date.c overlaps_time"),
];
