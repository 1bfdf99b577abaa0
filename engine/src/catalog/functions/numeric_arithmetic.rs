//! Operators and functions on numeric. Whole columns at a fixed scale are computed on their mantissas as 64-bit
//! integers where the results fit, as 128-bit ones else; one value at a time is the last resort.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};

use super::vector::{bool_column, constant_bool, first_wrong, operand, wrong_operand};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Int4, Numeric as NumericType};
use crate::types::numeric::array::{FIXED64_DIGITS, FIXED128_DIGITS, fixed64_array, fixed128_array};
use crate::types::numeric::{NumericBuilder, NumericColumn, NumericError, POWERS_OF_TEN, wide};
use crate::types::{Numeric, Value};

/// One operand, as numerics.
#[derive(Clone, Copy)]
pub(super) enum Numerics<'a> {
    Column(NumericColumn<'a>, Option<&'a NullBuffer>),
    Scalar(Numeric),
    Null,
}

impl<'a> Numerics<'a> {
    pub(super) fn new(operand: &'a Operand) -> Result<Self, EvalError> {
        match operand {
            Operand::Scalar(Value::Null) => Ok(Self::Null),
            Operand::Scalar(Value::Numeric(value)) => Ok(Self::Scalar(*value)),
            Operand::Scalar(_) => Err(wrong_operand()),
            Operand::Column(array) => Ok(Self::Column(NumericColumn::of(array), array.nulls())),
        }
    }

    pub(super) fn nulls(self) -> Option<&'a NullBuffer> {
        match self {
            Self::Column(_, nulls) => nulls,
            Self::Scalar(_) | Self::Null => None,
        }
    }

    #[inline]
    pub(super) fn get(self, row: usize) -> Numeric {
        match self {
            Self::Column(column, _) => column.get(row),
            Self::Scalar(value) => value,
            Self::Null => Numeric::NaN,
        }
    }

    /// The mantissas as 64-bit integers with their scale, if the form has them so.
    fn mantissas64(self) -> Option<(Mantissas<'a, i64>, u16)> {
        match self {
            Self::Column(NumericColumn::Fixed64 { mantissas, scale }, _) => Some((Mantissas::Column(mantissas), scale)),
            Self::Scalar(Numeric::Finite { mantissa, scale }) => {
                Some((Mantissas::Scalar(i64::try_from(mantissa).ok()?), scale))
            }
            Self::Column(..) | Self::Scalar(_) | Self::Null => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Mantissas<'a, T> {
    Column(&'a [T]),
    Scalar(T),
}

/// Mantissas of a fixed-scale result are below these.
const LIMIT64: i64 = 10i64.pow(FIXED64_DIGITS as u32);

/// Applies `f` to 64-bit mantissas; None if a row that is not NULL leaves the range.
fn mantissas_binary(
    left: Mantissas<'_, i64>,
    right: Mantissas<'_, i64>,
    nulls: Option<&NullBuffer>,
    f: impl Fn(i64, i64) -> (i64, bool),
) -> Option<Vec<i64>> {
    let checked = |a: i64, b: i64| {
        let (value, overflows) = f(a, b);
        (value, overflows | (value >= LIMIT64) | (value <= -LIMIT64))
    };
    let mut any_wrong = false;
    let mut note = |(value, wrong): (i64, bool)| {
        any_wrong |= wrong;
        value
    };
    let values: Vec<i64> = match (left, right) {
        (Mantissas::Column(a), Mantissas::Column(b)) => a.iter().zip(b).map(|(&a, &b)| note(checked(a, b))).collect(),
        (Mantissas::Column(a), Mantissas::Scalar(b)) => a.iter().map(|&a| note(checked(a, b))).collect(),
        (Mantissas::Scalar(a), Mantissas::Column(b)) => b.iter().map(|&b| note(checked(a, b))).collect(),
        (Mantissas::Scalar(_), Mantissas::Scalar(_)) => return None,
    };
    if any_wrong {
        let get = |m: Mantissas<'_, i64>, row: usize| match m {
            Mantissas::Column(values) => values[row],
            Mantissas::Scalar(value) => value,
        };
        if first_wrong(values.len(), nulls, |row| checked(get(left, row), get(right, row)).1).is_some() {
            return None;
        }
        // Only NULL rows left the range: their mantissas must not be seen as out of it later.
        return Some(values.into_iter().map(|value| value % LIMIT64).collect());
    }
    Some(values)
}

/// The two operands of a binary kernel and the union of their NULLs.
pub(super) struct Pair<'a> {
    left: Numerics<'a>,
    right: Numerics<'a>,
    nulls: Option<NullBuffer>,
    rows: usize,
}

impl<'a> Pair<'a> {
    /// None: an operand is the NULL constant.
    pub(super) fn new(operands: &'a [Operand], rows: usize) -> Result<Option<Self>, EvalError> {
        let left = Numerics::new(operand(operands, 0)?)?;
        let right = Numerics::new(operand(operands, 1)?)?;
        if matches!(left, Numerics::Null) || matches!(right, Numerics::Null) {
            return Ok(None);
        }
        let nulls = NullBuffer::union(left.nulls(), right.nulls());
        Ok(Some(Self { left, right, nulls, rows }))
    }

    /// `f` one row after the other.
    pub(super) fn each(
        &self,
        f: impl Fn(Numeric, Numeric) -> Result<Numeric, NumericError>,
    ) -> Result<ArrayRef, EvalError> {
        if let (Numerics::Scalar(a), Numerics::Scalar(b)) = (self.left, self.right) {
            return if self.rows == 0 { Ok(null_column(0)) } else { Ok(constant(f(a, b)?, self.rows)) };
        }
        let mut builder = NumericBuilder::with_capacity(self.rows);
        for row in 0..self.rows {
            if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                builder.append_null();
            } else {
                builder.append(f(self.left.get(row), self.right.get(row))?);
            }
        }
        Ok(builder.finish())
    }
}

pub(super) fn null_column(rows: usize) -> ArrayRef {
    crate::types::access::null_array(NumericType, rows)
}

fn constant(value: Numeric, rows: usize) -> ArrayRef {
    crate::types::access::array_of(&Value::Numeric(value), NumericType, rows)
}

/// 10^(wanted - scale), where the product of a 64-bit mantissa with it may still be one.
fn factor64(scale: u16, wanted: u16) -> Option<i64> {
    POWERS_OF_TEN.get(usize::from(wanted - scale)).and_then(|power| i64::try_from(*power).ok())
}

/// numeric.c, numeric_add and numeric_sub: the result's scale is the larger one.
fn add_or_subtract(
    operands: &[Operand],
    rows: usize,
    overflowing: impl Fn(i64, i64) -> (i64, bool),
    exact: impl Fn(Numeric, Numeric) -> Result<Numeric, NumericError>,
) -> Result<ArrayRef, EvalError> {
    let Some(pair) = Pair::new(operands, rows)? else { return Ok(null_column(rows)) };
    let fast = || {
        let ((a, x), (b, y)) = (pair.left.mantissas64()?, pair.right.mantissas64()?);
        let scale = x.max(y);
        if scale > u16::from(FIXED64_DIGITS) {
            return None;
        }
        let (p, q) = (factor64(x, scale)?, factor64(y, scale)?);
        let nulls = pair.nulls.as_ref();
        let values = match (p, q) {
            (1, 1) => mantissas_binary(a, b, nulls, overflowing)?,
            _ => mantissas_binary(a, b, nulls, |a, b| {
                let ((a, wrong_a), (b, wrong_b)) = (a.overflowing_mul(p), b.overflowing_mul(q));
                let (value, wrong) = overflowing(a, b);
                (value, wrong | wrong_a | wrong_b)
            })?,
        };
        Some(fixed64_array(values, pair.nulls.clone(), scale))
    };
    fast().map_or_else(|| pair.each(&exact), Ok)
}

fn add(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    add_or_subtract(o, rows, i64::overflowing_add, Numeric::add)
}

fn subtract(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    add_or_subtract(o, rows, i64::overflowing_sub, Numeric::sub)
}

/// numeric.c, numeric_mul: the scales add up.
fn multiply(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let Some(pair) = Pair::new(o, rows)? else { return Ok(null_column(rows)) };
    let fast = || {
        let ((a, x), (b, y)) = (pair.left.mantissas64()?, pair.right.mantissas64()?);
        let scale = x.checked_add(y)?;
        if scale <= u16::from(FIXED64_DIGITS) {
            let values = mantissas_binary(a, b, pair.nulls.as_ref(), i64::overflowing_mul);
            if let Some(values) = values {
                return Some(fixed64_array(values, pair.nulls.clone(), scale));
            }
        }
        // 18 + 18 digits always fit 38.
        let Mantissas::Column(a) = a else { return None };
        if scale > u16::from(FIXED128_DIGITS) {
            return None;
        }
        let product = |a: i64, b: i64| i128::from(a) * i128::from(b);
        let values = match b {
            Mantissas::Column(b) => a.iter().zip(b).map(|(&a, &b)| product(a, b)).collect(),
            Mantissas::Scalar(b) if b.unsigned_abs() < LIMIT64.unsigned_abs() => {
                a.iter().map(|&a| product(a, b)).collect()
            }
            Mantissas::Scalar(_) => return None,
        };
        Some(fixed128_array(values, pair.nulls.clone(), scale))
    };
    fast().map_or_else(|| pair.each(Numeric::mul), Ok)
}

fn divide(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let Some(pair) = Pair::new(o, rows)? else { return Ok(null_column(rows)) };
    pair.each(Numeric::div)
}

fn remainder(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let Some(pair) = Pair::new(o, rows)? else { return Ok(null_column(rows)) };
    pair.each(Numeric::rem)
}

/// numeric.c, div_trunc: the quotient's whole part.
fn divide_whole(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let Some(pair) = Pair::new(o, rows)? else { return Ok(null_column(rows)) };
    pair.each(|a, b| match (a, b) {
        (Numeric::Finite { mantissa: a, scale: x }, Numeric::Finite { mantissa: b, scale: y }) if b != 0 && x == y => {
            Numeric::new(a / b, 0)
        }
        _ => match (a.parts(), b.parts()) {
            (Some(a), Some(of)) if b.signum() != 0 => wide::divide_whole(a, of),
            _ => a.div(b),
        },
    })
}

/// Compares as numeric.c's cmp_numerics; `holds` says for which orderings the result is true.
pub(super) fn compare_numerics(
    operands: &[Operand],
    rows: usize,
    holds: impl Fn(Ordering) -> bool,
) -> Result<ArrayRef, EvalError> {
    let Some(pair) = Pair::new(operands, rows)? else { return Ok(Arc::new(BooleanArray::new_null(rows))) };
    let values = match (pair.left, pair.right) {
        (Numerics::Scalar(a), Numerics::Scalar(b)) => return Ok(constant_bool(holds(a.cmp(b)), rows)),
        (Numerics::Column(NumericColumn::Fixed64 { mantissas, scale }, _), Numerics::Scalar(b)) if !b.is_wide() => {
            with_constant(mantissas, scale, b, &holds)
        }
        (Numerics::Scalar(a), Numerics::Column(NumericColumn::Fixed64 { mantissas, scale }, _)) if !a.is_wide() => {
            with_constant(mantissas, scale, a, |ordering| holds(ordering.reverse()))
        }
        (
            Numerics::Column(NumericColumn::Fixed64 { mantissas: a, scale: x }, _),
            Numerics::Column(NumericColumn::Fixed64 { mantissas: b, scale: y }, _),
        ) => columns64(a, x, &b[..a.len()], y, &holds),
        (a, b) => {
            BooleanBuffer::collect_bool(rows, |row| {
                // What a NULL row holds compares without failing.
                holds(a.get(row).cmp(b.get(row)))
            })
        }
    };
    Ok(bool_column(values, pair.nulls))
}

fn columns64(a: &[i64], x: u16, b: &[i64], y: u16, holds: impl Fn(Ordering) -> bool) -> BooleanBuffer {
    if x == y {
        return BooleanBuffer::collect_bool(a.len(), |row| holds(a[row].cmp(&b[row])));
    }
    // Scales of this form are at most 18: the shifted mantissas are below 10^36.
    let p = POWERS_OF_TEN[usize::from(y.saturating_sub(x))];
    let q = POWERS_OF_TEN[usize::from(x.saturating_sub(y))];
    BooleanBuffer::collect_bool(a.len(), |row| holds((i128::from(a[row]) * p).cmp(&(i128::from(b[row]) * q))))
}

/// A column of mantissas at one scale against a constant: the constant is brought to the column's scale, once.
fn with_constant(mantissas: &[i64], scale: u16, constant: Numeric, holds: impl Fn(Ordering) -> bool) -> BooleanBuffer {
    let all = |ordering| {
        if holds(ordering) {
            BooleanBuffer::new_set(mantissas.len())
        } else {
            BooleanBuffer::new_unset(mantissas.len())
        }
    };
    let Numeric::Finite { mantissa, scale: constant_scale } = constant.normalized() else {
        return all(if constant == Numeric::NegativeInfinity { Ordering::Greater } else { Ordering::Less });
    };
    let beyond = || all(if mantissa > 0 { Ordering::Less } else { Ordering::Greater });
    if constant_scale <= scale {
        let shifted = POWERS_OF_TEN
            .get(usize::from(scale - constant_scale))
            .and_then(|power| mantissa.checked_mul(*power))
            .and_then(|shifted| i64::try_from(shifted).ok());
        let Some(shifted) = shifted else { return beyond() };
        return BooleanBuffer::collect_bool(mantissas.len(), |row| holds(mantissas[row].cmp(&shifted)));
    }
    // More decimals than the column has: equal to none of its values.
    let floor = match POWERS_OF_TEN.get(usize::from(constant_scale - scale)) {
        Some(power) => mantissa.div_euclid(*power),
        None => -i128::from(mantissa < 0),
    };
    let Ok(floor) = i64::try_from(floor) else { return beyond() };
    BooleanBuffer::collect_bool(mantissas.len(), |row| {
        holds(if mantissas[row] <= floor { Ordering::Less } else { Ordering::Greater })
    })
}

/// `f` on each value of the one operand.
pub(super) fn unary(
    operands: &[Operand],
    rows: usize,
    f: impl Fn(Numeric) -> Result<Numeric, NumericError>,
) -> Result<ArrayRef, EvalError> {
    match Numerics::new(operand(operands, 0)?)? {
        Numerics::Null => Ok(null_column(rows)),
        Numerics::Scalar(_) if rows == 0 => Ok(null_column(0)),
        Numerics::Scalar(value) => Ok(constant(f(value)?, rows)),
        Numerics::Column(column, nulls) => {
            let mut builder = NumericBuilder::with_capacity(rows);
            for row in 0..rows {
                if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                    builder.append_null();
                } else {
                    builder.append(f(column.get(row))?);
                }
            }
            Ok(builder.finish())
        }
    }
}

/// `f` on 64-bit mantissas whose scale and range stay; None if the column has another form.
fn same_scale(operands: &[Operand], f: impl Fn(i64) -> i64) -> Option<ArrayRef> {
    let Ok(Numerics::Column(NumericColumn::Fixed64 { mantissas, scale }, nulls)) = Numerics::new(operands.first()?)
    else {
        return None;
    };
    Some(fixed64_array(mantissas.iter().map(|&mantissa| f(mantissa)).collect(), nulls.cloned(), scale))
}

fn negate(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    same_scale(o, i64::wrapping_neg).map_or_else(|| unary(o, rows, |value| Ok(value.neg())), Ok)
}

fn identity(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    same_scale(o, |mantissa| mantissa).map_or_else(|| unary(o, rows, Ok), Ok)
}

fn absolute(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    same_scale(o, i64::wrapping_abs).map_or_else(|| unary(o, rows, |value| Ok(value.abs())), Ok)
}

fn ceiling(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    unary(o, rows, |value| Ok(value.ceil()))
}

fn floor(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    unary(o, rows, |value| Ok(value.floor()))
}

/// numeric.c, numeric_sign: NaN stays NaN.
fn sign(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    unary(o, rows, |value| if value.is_nan() { Ok(value) } else { Numeric::new(i128::from(value.signum()), 0) })
}

fn trim_scale(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    unary(o, rows, |value| Ok(value.normalized()))
}

fn round_whole(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    unary(o, rows, |value| value.round(0))
}

fn truncate_whole(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    unary(o, rows, |value| value.trunc(0))
}

/// round(numeric, int4) and its like: the integer is mostly a constant.
pub(super) fn with_integer(
    operands: &[Operand],
    rows: usize,
    _: &EvalContext<'_>,
    f: impl Fn(Numeric, i32) -> Result<Numeric, NumericError>,
) -> Result<ArrayRef, EvalError> {
    use super::vector::Numbers;
    match Numbers::<i32>::new(operand(operands, 1)?)? {
        Numbers::Null => Ok(null_column(rows)),
        Numbers::Scalar(integer) => unary(operands, rows, |value| f(value, integer)),
        Numbers::Column(integers, integer_nulls) => {
            let values = Numerics::new(operand(operands, 0)?)?;
            if matches!(values, Numerics::Null) {
                return Ok(null_column(rows));
            }
            let nulls = NullBuffer::union(values.nulls(), integer_nulls);
            let mut builder = NumericBuilder::with_capacity(rows);
            for row in 0..rows {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    builder.append_null();
                } else {
                    builder.append(f(values.get(row), integers[row])?);
                }
            }
            Ok(builder.finish())
        }
    }
}

/// Where PostgreSQL cuts off a number of decimals off the scale differs between its minor releases.
fn sensible(decimals: i32) -> Result<i32, NumericError> {
    if (-1000..=1000).contains(&decimals) { Ok(decimals) } else { Err(NumericError::Beyond) }
}

fn round(o: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    with_integer(o, rows, context, |value, decimals| value.round(sensible(decimals)?))
}

fn truncate(o: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    with_integer(o, rows, context, |value, decimals| value.trunc(sensible(decimals)?))
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("+", &[NumericType, NumericType], NumericType, add, "numeric.c numeric_add"),
    Function::immutable("-", &[NumericType, NumericType], NumericType, subtract, "numeric.c numeric_sub"),
    Function::immutable("*", &[NumericType, NumericType], NumericType, multiply, "numeric.c numeric_mul"),
    Function::immutable("/", &[NumericType, NumericType], NumericType, divide, "numeric.c numeric_div"),
    Function::immutable("%", &[NumericType, NumericType], NumericType, remainder, "numeric.c numeric_mod"),
    Function::immutable("mod", &[NumericType, NumericType], NumericType, remainder, "numeric.c numeric_mod"),
    Function::immutable("div", &[NumericType, NumericType], NumericType, divide_whole, "numeric.c numeric_div_trunc"),
    Function::immutable("-", &[NumericType], NumericType, negate, "numeric.c numeric_uminus"),
    Function::immutable("+", &[NumericType], NumericType, identity, "numeric.c numeric_uplus"),
    Function::immutable("@", &[NumericType], NumericType, absolute, "numeric.c numeric_abs"),
    Function::immutable("abs", &[NumericType], NumericType, absolute, "numeric.c numeric_abs"),
    Function::immutable("ceil", &[NumericType], NumericType, ceiling, "numeric.c numeric_ceil"),
    Function::immutable("ceiling", &[NumericType], NumericType, ceiling, "numeric.c numeric_ceil"),
    Function::immutable("floor", &[NumericType], NumericType, floor, "numeric.c numeric_floor"),
    Function::immutable("sign", &[NumericType], NumericType, sign, "numeric.c numeric_sign"),
    Function::immutable("trim_scale", &[NumericType], NumericType, trim_scale, "numeric.c numeric_trim_scale"),
    Function::immutable("round", &[NumericType], NumericType, round_whole, "system_functions.sql round(numeric)"),
    Function::immutable("trunc", &[NumericType], NumericType, truncate_whole, "system_functions.sql trunc(numeric)"),
    Function::immutable("round", &[NumericType, Int4], NumericType, round, "numeric.c numeric_round"),
    Function::immutable("trunc", &[NumericType, Int4], NumericType, truncate, "numeric.c numeric_trunc"),
];
