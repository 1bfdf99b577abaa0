//! Casts among numbers and booleans: ranges checked, rounding as PostgreSQL's (half to even from floats, half away
//! from zero from numeric).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int32Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};

use super::numeric_arithmetic::Numerics;
use super::vector::{
    Native, Numbers, bool_column, checked_unary, column, constant_bool, nulls, operand, wrong_operand,
};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::{Bool, Float4, Float8, Int2, Int4, Int8, Numeric as NumericType};
use crate::types::access::{array_of, null_array};
use crate::types::numeric::arithmetic::precision_and_scale;
use crate::types::numeric::array::{FIXED64_DIGITS, fixed64_array};
use crate::types::numeric::{NumericBuilder, NumericColumn, NumericError, POWERS_OF_TEN};
use crate::types::{Numeric, Value};

fn out_of_range(type_name: &str) -> EvalError {
    EvalError::Raises(format!("{type_name} out of range"))
}

/// Kernels from one native type to another; `$f` gives the result and whether it is out of range.
macro_rules! native_casts {
    ($($name:ident: $from:ty => $to:ty, $type_name:literal, |$value:ident| $result:expr);+ $(;)?) => {
        $(fn $name(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
            checked_unary(o, rows, |$value: $from| -> ($to, bool) { $result }, |_| out_of_range($type_name))
        })+
    };
}

/// rint(), then the range check of ftoi4 and its kin: the bounds are exact as floats (c.h, FLOAT8_FITS_IN_INT32).
macro_rules! rounded {
    ($value:ident as $to:ty) => {{
        let rounded = $value.round_ties_even();
        let fits = (rounded >= <$to>::MIN as _) & (rounded < -(<$to>::MIN as f64) as _);
        (rounded as $to, !fits)
    }};
}

native_casts! {
    int2_int4: i16 => i32, "integer", |value| (value.into(), false);
    int2_int8: i16 => i64, "bigint", |value| (value.into(), false);
    int4_int8: i32 => i64, "bigint", |value| (value.into(), false);
    int4_int2: i32 => i16, "smallint", |value| (value as i16, i32::from(value as i16) != value);
    int8_int2: i64 => i16, "smallint", |value| (value as i16, i64::from(value as i16) != value);
    int8_int4: i64 => i32, "integer", |value| (value as i32, i64::from(value as i32) != value);
    int2_float4: i16 => f32, "real", |value| (value.into(), false);
    int4_float4: i32 => f32, "real", |value| (value as f32, false);
    int8_float4: i64 => f32, "real", |value| (value as f32, false);
    int2_float8: i16 => f64, "double precision", |value| (value.into(), false);
    int4_float8: i32 => f64, "double precision", |value| (value.into(), false);
    int8_float8: i64 => f64, "double precision", |value| (value as f64, false);
    float4_float8: f32 => f64, "double precision", |value| (value.into(), false);
    float8_float4: f64 => f32, "real", |value| {
        let narrow = value as f32;
        let overflows = narrow.is_infinite() & !value.is_infinite();
        (narrow, overflows | ((narrow == 0.0) & (value != 0.0)))
    };
    float4_int2: f32 => i16, "smallint", |value| rounded!(value as i16);
    float4_int4: f32 => i32, "integer", |value| rounded!(value as i32);
    float4_int8: f32 => i64, "bigint", |value| rounded!(value as i64);
    float8_int2: f64 => i16, "smallint", |value| rounded!(value as i16);
    float8_int4: f64 => i32, "integer", |value| rounded!(value as i32);
    float8_int8: f64 => i64, "bigint", |value| rounded!(value as i64);
}

/// An integer becomes a numeric of scale 0.
fn integer_to_numeric<T: Native + Into<i64>>(operands: &[Operand], rows: usize) -> Result<ArrayRef, EvalError> {
    match Numbers::<T>::new(operand(operands, 0)?)? {
        Numbers::Null => Ok(null_array(NumericType, rows)),
        Numbers::Scalar(value) => Ok(array_of(&Value::Numeric(Numeric::from_i64(value.into())), NumericType, rows)),
        Numbers::Column(values, nulls) => {
            let limit = POWERS_OF_TEN[usize::from(FIXED64_DIGITS)];
            let mantissas: Vec<i64> = values.iter().map(|&value| value.into()).collect();
            if mantissas.iter().all(|&mantissa| i128::from(mantissa).abs() < limit) {
                return Ok(fixed64_array(mantissas, nulls.cloned(), 0));
            }
            build_numeric(rows, nulls, |row| Ok(Numeric::from_i64(mantissas[row])))
        }
    }
}

fn build_numeric(
    rows: usize,
    nulls: Option<&NullBuffer>,
    value: impl Fn(usize) -> Result<Numeric, NumericError>,
) -> Result<ArrayRef, EvalError> {
    let mut builder = NumericBuilder::with_capacity(rows);
    for row in 0..rows {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            builder.append_null();
        } else {
            builder.append(value(row)?);
        }
    }
    Ok(builder.finish())
}

fn int2_numeric(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    integer_to_numeric::<i16>(o, rows)
}

fn int4_numeric(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    integer_to_numeric::<i32>(o, rows)
}

fn int8_numeric(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    integer_to_numeric::<i64>(o, rows)
}

fn float_to_numeric<T: Native>(
    operands: &[Operand],
    rows: usize,
    convert: impl Fn(T) -> Result<Numeric, NumericError>,
) -> Result<ArrayRef, EvalError> {
    match Numbers::<T>::new(operand(operands, 0)?)? {
        Numbers::Null => Ok(null_array(NumericType, rows)),
        Numbers::Scalar(_) if rows == 0 => Ok(null_array(NumericType, 0)),
        Numbers::Scalar(value) => Ok(array_of(&Value::Numeric(convert(value)?), NumericType, rows)),
        Numbers::Column(values, nulls) => build_numeric(rows, nulls, |row| convert(values[row])),
    }
}

fn float4_numeric(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    float_to_numeric(o, rows, Numeric::from_f32)
}

fn float8_numeric(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    float_to_numeric(o, rows, Numeric::from_f64)
}

fn numeric_to<R: Native>(
    operands: &[Operand],
    rows: usize,
    convert: impl Fn(Numeric) -> Result<R, NumericError>,
) -> Result<ArrayRef, EvalError> {
    match Numerics::new(operand(operands, 0)?)? {
        Numerics::Null => Ok(nulls::<R>(rows)),
        Numerics::Scalar(_) if rows == 0 => Ok(nulls::<R>(0)),
        Numerics::Scalar(value) => Ok(column(vec![convert(value)?; rows], None)),
        Numerics::Column(values, nulls) => {
            let value = |row| match nulls {
                Some(nulls) if nulls.is_null(row) => Ok(R::default()),
                _ => convert(values.get(row)),
            };
            Ok(column((0..rows).map(value).collect::<Result<Vec<R>, _>>()?, nulls.cloned()))
        }
    }
}

fn numeric_int2(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    numeric_to(o, rows, Numeric::to_i16)
}

fn numeric_int4(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    numeric_to(o, rows, Numeric::to_i32)
}

fn numeric_int8(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    numeric_to(o, rows, Numeric::to_i64)
}

fn numeric_float4(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    numeric_to(o, rows, Numeric::to_f32)
}

fn numeric_float8(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    numeric_to(o, rows, |value| match value {
        // Both are exact as floats, so their quotient is the nearest float to the decimal value.
        Numeric::Finite { mantissa, scale: scale @ 0..=22 } if mantissa.unsigned_abs() < 1 << 53 => {
            Ok(mantissa as f64 / POWERS_OF_TEN[usize::from(scale)] as f64)
        }
        _ => value.to_f64(),
    })
}

/// numeric(p,s): rounds, then checks the precision.
fn numeric_with_modifier(o: &[Operand], rows: usize, context: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    if let (Some(Operand::Column(array)), Some(Operand::Scalar(Value::Int4(typmod)))) = (o.first(), o.get(1))
        && already_fits(array, *typmod)
    {
        return Ok(array.clone());
    }
    super::numeric_arithmetic::with_integer(o, rows, context, Numeric::apply_typmod)
}

/// Whether every value has the modifier's scale and precision.
fn already_fits(array: &ArrayRef, typmod: i32) -> bool {
    let Some((precision, wanted)) = precision_and_scale(typmod) else { return true };
    let NumericColumn::Fixed64 { mantissas, scale } = NumericColumn::of(array) else { return false };
    let limit = usize::try_from(precision).ok().and_then(|digits| POWERS_OF_TEN.get(digits));
    let fits = |limit: i128| mantissas.iter().all(|&mantissa| i128::from(mantissa).abs() < limit);
    i32::from(scale) == wanted && limit.is_some_and(|limit| fits(*limit))
}

fn bool_int4(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    match operand(o, 0)? {
        Operand::Scalar(Value::Null) => Ok(nulls::<i32>(rows)),
        Operand::Scalar(Value::Bool(value)) => Ok(column(vec![i32::from(*value); rows], None)),
        Operand::Scalar(_) => Err(wrong_operand()),
        Operand::Column(array) => {
            let array = array.as_any().downcast_ref::<BooleanArray>().ok_or_else(wrong_operand)?;
            let values = array.values().iter().map(i32::from).collect::<Vec<_>>();
            Ok(Arc::new(Int32Array::new(values.into(), array.nulls().cloned())))
        }
    }
}

fn int4_bool(o: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    match Numbers::<i32>::new(operand(o, 0)?)? {
        Numbers::Null => Ok(Arc::new(BooleanArray::new_null(rows))),
        Numbers::Scalar(value) => Ok(constant_bool(value != 0, rows)),
        Numbers::Column(values, nulls) => {
            Ok(bool_column(BooleanBuffer::collect_bool(values.len(), |row| values[row] != 0), nulls.cloned()))
        }
    }
}

pub(super) static ENTRIES: &[Function] = &[
    Function::immutable("int4", &[Int2], Int4, int2_int4, "int.c i2toi4"),
    Function::immutable("int8", &[Int2], Int8, int2_int8, "int8.c int28"),
    Function::immutable("int8", &[Int4], Int8, int4_int8, "int8.c int48"),
    Function::immutable("int2", &[Int4], Int2, int4_int2, "int.c i4toi2"),
    Function::immutable("int2", &[Int8], Int2, int8_int2, "int8.c int82"),
    Function::immutable("int4", &[Int8], Int4, int8_int4, "int8.c int84"),
    Function::immutable("float4", &[Int2], Float4, int2_float4, "float.c i2tof"),
    Function::immutable("float4", &[Int4], Float4, int4_float4, "float.c i4tof"),
    Function::immutable("float4", &[Int8], Float4, int8_float4, "int8.c i8tof"),
    Function::immutable("float8", &[Int2], Float8, int2_float8, "float.c i2tod"),
    Function::immutable("float8", &[Int4], Float8, int4_float8, "float.c i4tod"),
    Function::immutable("float8", &[Int8], Float8, int8_float8, "int8.c i8tod"),
    Function::immutable("float8", &[Float4], Float8, float4_float8, "float.c ftod"),
    Function::immutable("float4", &[Float8], Float4, float8_float4, "float.c dtof"),
    Function::immutable("int2", &[Float4], Int2, float4_int2, "float.c ftoi2"),
    Function::immutable("int4", &[Float4], Int4, float4_int4, "float.c ftoi4"),
    Function::immutable("int8", &[Float4], Int8, float4_int8, "int8.c ftoi8"),
    Function::immutable("int2", &[Float8], Int2, float8_int2, "float.c dtoi2"),
    Function::immutable("int4", &[Float8], Int4, float8_int4, "float.c dtoi4"),
    Function::immutable("int8", &[Float8], Int8, float8_int8, "int8.c dtoi8"),
    Function::immutable("numeric", &[Int2], NumericType, int2_numeric, "numeric.c int2_numeric"),
    Function::immutable("numeric", &[Int4], NumericType, int4_numeric, "numeric.c int4_numeric"),
    Function::immutable("numeric", &[Int8], NumericType, int8_numeric, "numeric.c int8_numeric"),
    Function::immutable("numeric", &[Float4], NumericType, float4_numeric, "numeric.c float4_numeric"),
    Function::immutable("numeric", &[Float8], NumericType, float8_numeric, "numeric.c float8_numeric"),
    Function::immutable("int2", &[NumericType], Int2, numeric_int2, "numeric.c numeric_int2"),
    Function::immutable("int4", &[NumericType], Int4, numeric_int4, "numeric.c numeric_int4"),
    Function::immutable("int8", &[NumericType], Int8, numeric_int8, "numeric.c numeric_int8"),
    Function::immutable("float4", &[NumericType], Float4, numeric_float4, "numeric.c numeric_float4"),
    Function::immutable("float8", &[NumericType], Float8, numeric_float8, "numeric.c numeric_float8"),
    Function::immutable("numeric", &[NumericType, Int4], NumericType, numeric_with_modifier, "numeric.c numeric"),
    Function::immutable("int4", &[Bool], Int4, bool_int4, "int.c bool_int4"),
    Function::immutable("bool", &[Int4], Bool, int4_bool, "int.c int4_bool"),
];
