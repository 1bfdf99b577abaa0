//! Operands as slices of numbers or intervals, and the loops over them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, IntervalMonthDayNanoArray, PrimitiveArray, new_null_array};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, IntervalMonthDayNano};

use super::super::vector::{Native, Numbers, bool_column, nulls, operand, wrong_operand};
use super::super::{EvalError, Operand};
use crate::types::Value;
use crate::types::datetime::DateTimeError;
use crate::types::numeric::array::{fixed64_array, fixed128_array};
use crate::types::value::Interval;

/// One operand that is not a NULL scalar: a slice or one value for all rows.
#[derive(Clone, Copy)]
pub(super) enum Source<'a, T> {
    Column(&'a [T], Option<&'a NullBuffer>),
    Scalar(T),
}

impl<'a, T: Copy> Source<'a, T> {
    #[inline]
    pub(super) fn get(&self, row: usize) -> T {
        match self {
            Self::Column(values, _) => values[row],
            Self::Scalar(value) => *value,
        }
    }

    #[inline]
    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.nulls().is_none_or(|nulls| nulls.is_valid(row))
    }

    fn nulls(&self) -> Option<&'a NullBuffer> {
        match self {
            Self::Column(_, nulls) => *nulls,
            Self::Scalar(_) => None,
        }
    }

    fn is_scalar(&self) -> bool {
        matches!(self, Self::Scalar(_))
    }
}

/// A numeric operand; None is NULL for all rows.
pub(super) fn numbers<T: Native>(operands: &[Operand], index: usize) -> Result<Option<Source<'_, T>>, EvalError> {
    Ok(match Numbers::<T>::new(operand(operands, index)?)? {
        Numbers::Null => None,
        Numbers::Scalar(value) => Some(Source::Scalar(value)),
        Numbers::Column(values, nulls) => Some(Source::Column(values, nulls)),
    })
}

/// An interval operand; None is NULL for all rows.
pub(super) fn spans(operands: &[Operand], index: usize) -> Result<Option<Source<'_, IntervalMonthDayNano>>, EvalError> {
    Ok(match operand(operands, index)? {
        Operand::Scalar(Value::Null) => None,
        Operand::Scalar(Value::Interval(value)) => Some(Source::Scalar(packed(value))),
        Operand::Scalar(_) => return Err(wrong_operand()),
        Operand::Column(array) => {
            let array = array.as_any().downcast_ref::<IntervalMonthDayNanoArray>().ok_or_else(wrong_operand)?;
            Some(Source::Column(array.values(), array.nulls()))
        }
    })
}

/// The array form of an interval: the third field holds microseconds.
#[inline]
pub(super) fn packed(value: &Interval) -> IntervalMonthDayNano {
    IntervalMonthDayNano::new(value.months, value.days, value.microseconds)
}

#[inline]
pub(super) fn unpacked(value: IntervalMonthDayNano) -> Interval {
    Interval { months: value.months, days: value.days, microseconds: value.nanoseconds }
}

/// Results for all rows, or None: all NULL.
type Results<R> = Option<(Vec<R>, Option<NullBuffer>)>;

/// `f` on each row whose operand is not NULL.
#[inline]
pub(super) fn each<A: Copy, R: Copy + Default>(
    a: Option<Source<'_, A>>,
    rows: usize,
    mut f: impl FnMut(A) -> Result<R, DateTimeError>,
) -> Result<Results<R>, EvalError> {
    let Some(a) = a else { return Ok(None) };
    let mut results = vec![R::default(); rows];
    match a {
        Source::Scalar(value) => {
            if rows > 0 {
                results.fill(f(value)?);
            }
        }
        Source::Column(values, None) => {
            for (result, &value) in results.iter_mut().zip(values) {
                *result = f(value)?;
            }
        }
        Source::Column(values, Some(nulls)) => {
            for row in nulls.valid_indices() {
                results[row] = f(values[row])?;
            }
        }
    }
    Ok(Some((results, a.nulls().cloned())))
}

/// `f` on each row without NULLs.
#[inline]
pub(super) fn each_pair<A: Copy, B: Copy, R: Copy + Default>(
    a: Option<Source<'_, A>>,
    b: Option<Source<'_, B>>,
    rows: usize,
    mut f: impl FnMut(A, B) -> Result<R, DateTimeError>,
) -> Result<Results<R>, EvalError> {
    let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
    if a.is_scalar() && b.is_scalar() {
        return each(Some(a), rows, |value| f(value, b.get(0)));
    }
    let nulls = NullBuffer::union(a.nulls(), b.nulls());
    let mut results = vec![R::default(); rows];
    // One loop for each shape, so that none of them asks by row which it is.
    match (&nulls, a, b) {
        (Some(nulls), _, _) => {
            for row in nulls.valid_indices() {
                results[row] = f(a.get(row), b.get(row))?;
            }
        }
        (None, Source::Column(a, _), Source::Scalar(b)) => {
            for (result, &a) in results.iter_mut().zip(a) {
                *result = f(a, b)?;
            }
        }
        (None, Source::Scalar(a), Source::Column(b, _)) => {
            for (result, &b) in results.iter_mut().zip(b) {
                *result = f(a, b)?;
            }
        }
        (None, _, _) => {
            for (row, result) in results.iter_mut().enumerate() {
                *result = f(a.get(row), b.get(row))?;
            }
        }
    }
    Ok(Some((results, nulls)))
}

pub(super) fn number_column<R: Native>(results: Results<R>, rows: usize) -> ArrayRef {
    match results {
        None => nulls::<R>(rows),
        Some((values, nulls)) => Arc::new(PrimitiveArray::<R::Array>::new(ScalarBuffer::from(values), nulls)),
    }
}

pub(super) fn span_column(results: Results<IntervalMonthDayNano>, rows: usize) -> ArrayRef {
    match results {
        None => Arc::new(IntervalMonthDayNanoArray::new_null(rows)),
        Some((values, nulls)) => Arc::new(IntervalMonthDayNanoArray::new(ScalarBuffer::from(values), nulls)),
    }
}

/// A predicate on each pair. It may see what NULL rows hold.
#[inline]
pub(super) fn compare_each<A: Copy, B: Copy>(
    a: Option<Source<'_, A>>,
    b: Option<Source<'_, B>>,
    rows: usize,
    mut holds: impl FnMut(A, B) -> bool,
) -> ArrayRef {
    let (Some(a), Some(b)) = (a, b) else { return new_null_array(&DataType::Boolean, rows) };
    let values = match (a, b) {
        (Source::Column(a, _), Source::Scalar(b)) => BooleanBuffer::collect_bool(rows, |row| holds(a[row], b)),
        (Source::Scalar(a), Source::Column(b, _)) => BooleanBuffer::collect_bool(rows, |row| holds(a, b[row])),
        (Source::Column(a, _), Source::Column(b, _)) => BooleanBuffer::collect_bool(rows, |row| holds(a[row], b[row])),
        (Source::Scalar(a), Source::Scalar(b)) => {
            if holds(a, b) {
                BooleanBuffer::new_set(rows)
            } else {
                BooleanBuffer::new_unset(rows)
            }
        }
    };
    bool_column(values, NullBuffer::union(a.nulls(), b.nulls()))
}

/// Numbers of one scale. Over 18 digits the wider form is needed.
pub(super) fn decimal_column(results: Results<i64>, scale: u8, rows: usize) -> ArrayRef {
    const LIMIT: u64 = 1_000_000_000_000_000_000;
    let (values, nulls) = results.unwrap_or_else(|| (vec![0; rows], Some(NullBuffer::new_null(rows))));
    let is_wide = values.iter().any(|value| value.unsigned_abs() >= LIMIT);
    if is_wide {
        return fixed128_array(values.into_iter().map(i128::from).collect(), nulls, u16::from(scale));
    }
    fixed64_array(values, nulls, u16::from(scale))
}
