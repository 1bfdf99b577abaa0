//! Roots, logarithms, powers, divisors and scales of numeric, one value at a time.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array};

use super::numeric_arithmetic::{Numerics, Pair, null_column, unary};
use super::vector::{Numbers, operand};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::Numeric;
use crate::types::PgType::{Int4, Int8, Numeric as NumericType};
use crate::types::numeric::{NumericBuilder, NumericError};

const TEN: Numeric = Numeric::Finite { mantissa: 10, scale: 0 };

fn square_root(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    unary(o, rows, Numeric::sqrt)
}

fn exponential(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    unary(o, rows, Numeric::exp)
}

fn natural_logarithm(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    unary(o, rows, Numeric::ln)
}

fn decimal_logarithm(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    unary(o, rows, |value| TEN.log(value))
}

fn logarithm(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    pairs(o, rows, Numeric::log)
}

fn power(o: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    pairs(o, rows, |base, exponent| base.power(exponent, context.settings.power_scale))
}

fn greatest_common_divisor(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    pairs(o, rows, Numeric::gcd)
}

fn least_common_multiple(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    pairs(o, rows, Numeric::lcm)
}

fn pairs(
    operands: &[Operand],
    rows: usize,
    f: impl Fn(Numeric, Numeric) -> Result<Numeric, NumericError>,
) -> Result<ArrayRef, EvalError> {
    let Some(pair) = Pair::new(operands, rows)? else { return Ok(null_column(rows)) };
    pair.each(f)
}

/// numeric.c, numeric_fac.
fn factorial(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    let numbers = Numbers::<i64>::new(operand(o, 0)?)?;
    let mut builder = NumericBuilder::with_capacity(rows);
    for row in 0..rows {
        match numbers {
            Numbers::Scalar(number) => builder.append(Numeric::factorial(number)?),
            Numbers::Column(numbers, nulls) if nulls.is_none_or(|nulls| nulls.is_valid(row)) => {
                builder.append(Numeric::factorial(numbers[row])?);
            }
            Numbers::Column(..) | Numbers::Null => builder.append_null(),
        }
    }
    Ok(builder.finish())
}

/// numeric.c, numeric_scale: NULL for NaN and the infinities.
fn scale(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    decimals(o, rows, |value| value)
}

fn min_scale(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    decimals(o, rows, Numeric::normalized)
}

fn decimals(operands: &[Operand], rows: usize, form: impl Fn(Numeric) -> Numeric) -> Result<ArrayRef, EvalError> {
    let values = Numerics::new(operand(operands, 0)?)?;
    let nulls = values.nulls();
    // What stands for the NULL constant is NaN.
    let scale_of = |row: usize| {
        let is_valid = nulls.is_none_or(|nulls| nulls.is_valid(row));
        is_valid.then(|| form(values.get(row)).scale()).flatten().map(i32::from)
    };
    Ok(Arc::new(Int32Array::from_iter((0..rows).map(scale_of))))
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("sqrt", &[NumericType], NumericType, square_root, "numeric.c numeric_sqrt"),
    Function::immutable("exp", &[NumericType], NumericType, exponential, "numeric.c numeric_exp"),
    Function::immutable("ln", &[NumericType], NumericType, natural_logarithm, "numeric.c numeric_ln"),
    Function::immutable("log", &[NumericType], NumericType, decimal_logarithm, "system_functions.sql log(numeric)"),
    Function::immutable("log10", &[NumericType], NumericType, decimal_logarithm, "system_functions.sql log10(numeric)"),
    Function::immutable("log", &[NumericType, NumericType], NumericType, logarithm, "numeric.c numeric_log"),
    Function::immutable("^", &[NumericType, NumericType], NumericType, power, "numeric.c numeric_power"),
    Function::immutable("pow", &[NumericType, NumericType], NumericType, power, "numeric.c numeric_power"),
    Function::immutable("power", &[NumericType, NumericType], NumericType, power, "numeric.c numeric_power"),
    Function::immutable(
        "gcd",
        &[NumericType, NumericType],
        NumericType,
        greatest_common_divisor,
        "numeric.c numeric_gcd",
    ),
    Function::immutable(
        "lcm",
        &[NumericType, NumericType],
        NumericType,
        least_common_multiple,
        "numeric.c numeric_lcm",
    ),
    Function::immutable("factorial", &[Int8], NumericType, factorial, "numeric.c numeric_fac"),
    Function::immutable("scale", &[NumericType], Int4, scale, "numeric.c numeric_scale"),
    Function::immutable("min_scale", &[NumericType], Int4, min_scale, "numeric.c numeric_min_scale"),
];
