//! Between arrays and values: one row out of a column ([`value_at`]), a column out of one value ([`array_of`]),
//! columns of nothing, columns joined end to end whatever their forms ([`concat()`]).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int32Array, StringArray, new_empty_array, new_null_array,
};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit,
};
use arrow::error::ArrowError;

use super::build::ColumnBuilder;
use super::numeric::array::{FIXED64_DIGITS, NumericBuilder, NumericColumn, per_value_types};
use super::{Interval, PgType, Value};

/// The value at `row` of a column of `pg_type`. Panics if the array's form is not one of the type's.
pub fn value_at(array: &dyn Array, pg_type: PgType, row: usize) -> Value {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Value::Null;
    }
    match pg_type {
        PgType::Bool => Value::Bool(array.as_boolean().value(row)),
        PgType::Int2 => Value::Int2(array.as_primitive::<Int16Type>().value(row)),
        PgType::Int4 => Value::Int4(array.as_primitive::<Int32Type>().value(row)),
        PgType::Int8 => Value::Int8(array.as_primitive::<Int64Type>().value(row)),
        PgType::Float4 => Value::Float4(array.as_primitive::<Float32Type>().value(row)),
        PgType::Float8 => Value::Float8(array.as_primitive::<Float64Type>().value(row)),
        PgType::Numeric => Value::Numeric(NumericColumn::of(array).get(row)),
        PgType::Date => Value::Date(array.as_primitive::<Int32Type>().value(row)),
        PgType::Time => Value::Time(array.as_primitive::<Int64Type>().value(row)),
        PgType::Timestamp => Value::Timestamp(array.as_primitive::<Int64Type>().value(row)),
        PgType::Timestamptz => Value::Timestamptz(array.as_primitive::<Int64Type>().value(row)),
        PgType::Interval => Value::Interval(interval_of(array.as_primitive::<IntervalMonthDayNanoType>().value(row))),
        PgType::Uuid => {
            Value::Uuid(array.as_fixed_size_binary().value(row).try_into().expect("a uuid column is 16 bytes wide"))
        }
        PgType::Bytea => Value::Bytea(array.as_binary::<i32>().value(row).into()),
        PgType::Inet | PgType::Cidr => Value::Network(array.as_binary::<i32>().value(row).into()),
        PgType::Array(_) => Value::Array(array.as_binary::<i32>().value(row).into()),
        PgType::Text
        | PgType::Varchar
        | PgType::Bpchar
        | PgType::Name
        | PgType::Bit
        | PgType::Varbit
        | PgType::Json
        | PgType::Jsonb
        | PgType::Enum(_)
        | PgType::Unknown => Value::Text(TextColumn::of(array).get(row).into()),
    }
}

/// A column that has `value` in each of `rows` rows. Panics if the value is not of the type.
pub fn array_of(value: &Value, pg_type: PgType, rows: usize) -> ArrayRef {
    match value {
        Value::Null => null_array(pg_type, rows),
        Value::Text(text) if pg_type.is_text_like() => {
            let values: ArrayRef = Arc::new(StringArray::from_iter_values([text]));
            Arc::new(DictionaryArray::new(Int32Array::from_value(0, rows), values))
        }
        _ => {
            let mut builder = ColumnBuilder::with_capacity(pg_type, -1, rows);
            for _ in 0..rows {
                builder.append_value(value);
            }
            builder.finish()
        }
    }
}

/// `rows` NULLs, in the first of the type's array forms.
pub fn null_array(pg_type: PgType, rows: usize) -> ArrayRef {
    new_null_array(&array_type(pg_type), rows)
}

pub fn empty_array(pg_type: PgType) -> ArrayRef {
    new_empty_array(&array_type(pg_type))
}

/// The first of the array forms of `pg_type`.
pub fn array_type(pg_type: PgType) -> DataType {
    match pg_type {
        PgType::Bool => DataType::Boolean,
        PgType::Int2 => DataType::Int16,
        PgType::Int4 | PgType::Date => DataType::Int32,
        PgType::Int8 | PgType::Time | PgType::Timestamp | PgType::Timestamptz => DataType::Int64,
        PgType::Float4 => DataType::Float32,
        PgType::Float8 => DataType::Float64,
        PgType::Numeric => DataType::Decimal64(FIXED64_DIGITS, 0),
        PgType::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        PgType::Uuid => DataType::FixedSizeBinary(16),
        PgType::Bytea | PgType::Inet | PgType::Cidr | PgType::Array(_) => DataType::Binary,
        PgType::Text
        | PgType::Varchar
        | PgType::Bpchar
        | PgType::Name
        | PgType::Bit
        | PgType::Varbit
        | PgType::Json
        | PgType::Jsonb
        | PgType::Enum(_)
        | PgType::Unknown => DataType::Utf8,
    }
}

/// Whether `data_type` is one of the array forms of `pg_type`.
pub fn is_form_of(data_type: &DataType, pg_type: PgType) -> bool {
    match pg_type {
        PgType::Numeric => {
            matches!(data_type, DataType::Decimal64(..) | DataType::Decimal128(..))
                || per_value_types().contains(data_type)
        }
        _ if pg_type.is_text_like() => *data_type == DataType::Utf8 || is_text_dictionary(data_type),
        _ => *data_type == array_type(pg_type),
    }
}

fn is_text_dictionary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(key, value) if **key == DataType::Int32 && **value == DataType::Utf8)
}

/// The columns one after another; numerics and text may come in different forms.
pub fn concat(pg_type: PgType, columns: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    let Some(first) = columns.first() else { return Ok(empty_array(pg_type)) };
    if columns.len() == 1 {
        return Ok(Arc::clone(first));
    }
    if columns.iter().any(|column| column.data_type() != first.data_type()) {
        let rows = columns.iter().map(|column| column.len()).sum();
        return Ok(match pg_type {
            PgType::Numeric => concat_numerics(columns, rows),
            _ => concat_text(columns, rows),
        });
    }
    let columns: Vec<&dyn Array> = columns.iter().map(|column| column.as_ref()).collect();
    arrow::compute::concat(&columns)
}

fn concat_numerics(columns: &[ArrayRef], rows: usize) -> ArrayRef {
    let mut builder = NumericBuilder::with_capacity(rows);
    for column in columns {
        let values = NumericColumn::of(column);
        for row in 0..column.len() {
            builder.append_option(column.is_valid(row).then(|| values.get(row)));
        }
    }
    builder.finish()
}

fn concat_text(columns: &[ArrayRef], rows: usize) -> ArrayRef {
    let mut builder = arrow::array::StringBuilder::with_capacity(rows, rows * 8);
    for column in columns {
        let values = TextColumn::of(column);
        for row in 0..column.len() {
            builder.append_option(column.is_valid(row).then(|| values.get(row)));
        }
    }
    Arc::new(builder.finish())
}

/// A text array in either of its forms; NULLs are in `Array::nulls` of the array itself.
#[derive(Clone, Copy, Debug)]
pub enum TextColumn<'a> {
    Plain(&'a StringArray),
    Dictionary { keys: &'a [i32], values: &'a StringArray },
}

impl<'a> TextColumn<'a> {
    /// Panics if `array` has neither form.
    pub fn of(array: &'a dyn Array) -> Self {
        match array.data_type() {
            DataType::Dictionary(..) => {
                let dictionary = array.as_dictionary::<Int32Type>();
                Self::Dictionary { keys: dictionary.keys().values(), values: dictionary.values().as_string() }
            }
            _ => Self::Plain(array.as_string()),
        }
    }

    /// The text at `row`, which must not be NULL.
    #[inline]
    pub fn get(self, row: usize) -> &'a str {
        match self {
            Self::Plain(values) => values.value(row),
            Self::Dictionary { keys, values } => values.value(keys[row] as usize),
        }
    }
}

/// The interval that arrow's value stands for: its third field holds microseconds here.
pub fn interval_of(value: arrow::datatypes::IntervalMonthDayNano) -> Interval {
    Interval { months: value.months, days: value.days, microseconds: value.nanoseconds }
}

/// The reverse of [`interval_of`].
pub fn interval_native(value: Interval) -> arrow::datatypes::IntervalMonthDayNano {
    arrow::datatypes::IntervalMonthDayNano::new(value.months, value.days, value.microseconds)
}
