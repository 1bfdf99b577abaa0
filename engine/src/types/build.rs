//! Columns out of upstream's values: COPY and replication in either format, or single values.
//!
//! Values of upstream's tables arrive as stored, so their typmod was applied there: text that is too long or a
//! timestamp of more decimals cannot occur and is not looked for. Nothing is allocated per value.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int16Builder,
    Int32Builder, Int64Builder, IntervalMonthDayNanoBuilder,
};

use super::access::interval_native;
use super::binary::{self, fixed};
use super::network::{Kind, Network};
use super::numeric::NumericBuilder;
use super::text::{self, ParseError};
use super::text_column::TextBuilder;
use super::{FormatSettings, Numeric, PgType, Value, array, bits, float};

const UUID_BYTES: i32 = 16;

/// One column in the making.
#[derive(Debug)]
pub struct ColumnBuilder {
    pg_type: PgType,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    /// Also date.
    Int4(Int32Builder),
    /// Also time and the timestamps.
    Int8(Int64Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Numeric(NumericBuilder),
    Text(TextBuilder),
    Interval(IntervalMonthDayNanoBuilder),
    Uuid(FixedSizeBinaryBuilder),
    Bytea(BinaryBuilder),
    Network(Kind, BinaryBuilder),
}

impl ColumnBuilder {
    pub fn new(pg_type: PgType, typmod: i32) -> Self {
        Self::with_capacity(pg_type, typmod, 0)
    }

    pub fn with_capacity(pg_type: PgType, typmod: i32, rows: usize) -> Self {
        let values = match pg_type {
            PgType::Bool => Values::Bool(BooleanBuilder::with_capacity(rows)),
            PgType::Int2 => Values::Int2(Int16Builder::with_capacity(rows)),
            PgType::Int4 | PgType::Date => Values::Int4(Int32Builder::with_capacity(rows)),
            PgType::Int8 | PgType::Time | PgType::Timestamp | PgType::Timestamptz => {
                Values::Int8(Int64Builder::with_capacity(rows))
            }
            PgType::Float4 => Values::Float4(Float32Builder::with_capacity(rows)),
            PgType::Float8 => Values::Float8(Float64Builder::with_capacity(rows)),
            PgType::Numeric => Values::Numeric(NumericBuilder::for_typmod(typmod, rows)),
            PgType::Interval => Values::Interval(IntervalMonthDayNanoBuilder::with_capacity(rows)),
            PgType::Uuid => Values::Uuid(FixedSizeBinaryBuilder::with_capacity(rows, UUID_BYTES)),
            PgType::Bytea | PgType::Array(_) => Values::Bytea(BinaryBuilder::with_capacity(rows, 0)),
            PgType::Inet => Values::Network(Kind::Inet, BinaryBuilder::with_capacity(rows, 0)),
            PgType::Cidr => Values::Network(Kind::Cidr, BinaryBuilder::with_capacity(rows, 0)),
            PgType::Text
            | PgType::Varchar
            | PgType::Bpchar
            | PgType::Name
            | PgType::Bit
            | PgType::Varbit
            | PgType::Json
            | PgType::Jsonb
            | PgType::Enum(_)
            | PgType::Unknown => Values::Text(TextBuilder::with_capacity(rows)),
        };
        Self { pg_type, values }
    }

    /// A builder for the rows that follow `previous`, a finished column of the same table column: text that was a
    /// dictionary there starts from the same dictionary, and shares it if no value is new.
    pub fn following(pg_type: PgType, typmod: i32, rows: usize, previous: &ArrayRef) -> Self {
        let mut builder = Self::with_capacity(pg_type, typmod, rows);
        if let Values::Text(text) = &mut builder.values {
            *text = TextBuilder::following(rows, previous);
        }
        builder
    }

    pub fn append_null(&mut self) {
        match &mut self.values {
            Values::Bool(values) => values.append_null(),
            Values::Int2(values) => values.append_null(),
            Values::Int4(values) => values.append_null(),
            Values::Int8(values) => values.append_null(),
            Values::Float4(values) => values.append_null(),
            Values::Float8(values) => values.append_null(),
            Values::Numeric(values) => values.append_null(),
            Values::Text(values) => values.append_null(),
            Values::Interval(values) => values.append_null(),
            Values::Uuid(values) => values.append_null(),
            Values::Bytea(values) | Values::Network(_, values) => values.append_null(),
        }
    }

    /// Appends what upstream's output function printed, under `settings`. On an error nothing is appended.
    pub fn append_text(&mut self, bytes: &[u8], settings: &FormatSettings) -> Result<(), ParseError> {
        match (self.pg_type, &mut self.values) {
            (_, Values::Bool(values)) => values.append_value(text::parse_bool(bytes)?),
            (_, Values::Int2(values)) => values.append_value(text::parse_integer(bytes, "smallint")?),
            (PgType::Int4, Values::Int4(values)) => values.append_value(text::parse_integer(bytes, "integer")?),
            (PgType::Int8, Values::Int8(values)) => values.append_value(text::parse_integer(bytes, "bigint")?),
            (_, Values::Float4(values)) => values.append_value(float::parse_float4(bytes)?),
            (_, Values::Float8(values)) => values.append_value(float::parse_float8(bytes)?),
            (_, Values::Numeric(values)) => values.append(Numeric::parse_bytes(bytes)?),
            (_, Values::Text(values)) => values.append(binary::decode_text(bytes)?),
            (_, Values::Uuid(values)) => append_uuid(values, &text::parse_uuid(bytes)?),
            (PgType::Array(element), Values::Bytea(values)) => {
                values.append_value(array::parse_stored(element, binary::decode_text(bytes)?, settings)?);
            }
            (_, Values::Bytea(values)) => values.append_value(text::parse_bytea(bytes)?),
            (_, Values::Network(kind, values)) => {
                values.append_value(Network::parse(*kind, binary::decode_text(bytes)?)?.held());
            }
            (pg_type, Values::Int4(_) | Values::Int8(_) | Values::Interval(_)) => {
                let value = text::parse(pg_type, -1, binary::decode_text(bytes)?, settings)?;
                self.append_value(&value);
            }
        }
        Ok(())
    }

    /// Appends what upstream's send function made. On an error nothing is appended.
    #[inline]
    pub fn append_binary(&mut self, bytes: &[u8]) -> Result<(), ParseError> {
        match &mut self.values {
            Values::Bool(values) => values.append_value(fixed::<1>(bytes)?[0] != 0),
            Values::Int2(values) => values.append_value(i16::from_be_bytes(fixed(bytes)?)),
            Values::Int4(values) => values.append_value(i32::from_be_bytes(fixed(bytes)?)),
            Values::Int8(values) => values.append_value(i64::from_be_bytes(fixed(bytes)?)),
            Values::Float4(values) => values.append_value(f32::from_be_bytes(fixed(bytes)?)),
            Values::Float8(values) => values.append_value(f64::from_be_bytes(fixed(bytes)?)),
            Values::Numeric(values) => values.append(Numeric::decode_binary(bytes)?),
            Values::Text(values) if self.pg_type == PgType::Jsonb => {
                values.append(binary::decode_text(binary::jsonb_text(bytes)?)?);
            }
            Values::Text(values) if matches!(self.pg_type, PgType::Bit | PgType::Varbit) => {
                values.append(&bits::decode(bytes)?);
            }
            Values::Text(values) => values.append(binary::decode_text(bytes)?),
            Values::Interval(values) => values.append_value(interval_native(binary::decode_interval(bytes)?)),
            Values::Uuid(values) => append_uuid(values, &fixed(bytes)?),
            Values::Network(kind, values) => values.append_value(Network::decode(*kind, bytes)?.held()),
            Values::Bytea(values) => match self.pg_type {
                PgType::Array(element) => values.append_value(array::stored(element, bytes)?),
                _ => values.append_value(bytes),
            },
        }
        Ok(())
    }

    /// Appends text to a column of a text-like type. Panics on another type.
    #[inline]
    pub fn append_str(&mut self, text: &str) {
        match &mut self.values {
            Values::Text(values) => values.append(text),
            _ => panic!("text in a column of type {}", self.pg_type.name()),
        }
    }

    /// Appends a value of the column's type, or NULL. Panics on a value of another type.
    pub fn append_value(&mut self, value: &Value) {
        match (value, &mut self.values) {
            (Value::Null, _) => self.append_null(),
            (Value::Bool(value), Values::Bool(values)) => values.append_value(*value),
            (Value::Int2(value), Values::Int2(values)) => values.append_value(*value),
            (Value::Int4(value) | Value::Date(value), Values::Int4(values)) => values.append_value(*value),
            (
                Value::Int8(value) | Value::Time(value) | Value::Timestamp(value) | Value::Timestamptz(value),
                Values::Int8(values),
            ) => values.append_value(*value),
            (Value::Float4(value), Values::Float4(values)) => values.append_value(*value),
            (Value::Float8(value), Values::Float8(values)) => values.append_value(*value),
            (Value::Numeric(value), Values::Numeric(values)) => values.append(*value),
            (Value::Text(value), Values::Text(values)) => values.append(value),
            (Value::Interval(value), Values::Interval(values)) => values.append_value(interval_native(*value)),
            (Value::Uuid(value), Values::Uuid(values)) => append_uuid(values, value),
            (Value::Bytea(value) | Value::Array(value), Values::Bytea(values))
            | (Value::Network(value), Values::Network(_, values)) => values.append_value(value),
            (value, _) => panic!("{value:?} in a column of type {}", self.pg_type.name()),
        }
    }

    pub fn len(&self) -> usize {
        use arrow::array::ArrayBuilder;
        match &self.values {
            Values::Bool(values) => values.len(),
            Values::Int2(values) => values.len(),
            Values::Int4(values) => values.len(),
            Values::Int8(values) => values.len(),
            Values::Float4(values) => values.len(),
            Values::Float8(values) => values.len(),
            Values::Numeric(values) => values.len(),
            Values::Text(values) => values.len(),
            Values::Interval(values) => values.len(),
            Values::Uuid(values) => values.len(),
            Values::Bytea(values) | Values::Network(_, values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn finish(self) -> ArrayRef {
        match self.values {
            Values::Bool(mut values) => Arc::new(values.finish()),
            Values::Int2(mut values) => Arc::new(values.finish()),
            Values::Int4(mut values) => Arc::new(values.finish()),
            Values::Int8(mut values) => Arc::new(values.finish()),
            Values::Float4(mut values) => Arc::new(values.finish()),
            Values::Float8(mut values) => Arc::new(values.finish()),
            Values::Numeric(values) => values.finish(),
            Values::Text(values) => values.finish(),
            Values::Interval(mut values) => Arc::new(values.finish()),
            Values::Uuid(mut values) => Arc::new(values.finish()),
            Values::Bytea(mut values) | Values::Network(_, mut values) => Arc::new(values.finish()),
        }
    }
}

fn append_uuid(values: &mut FixedSizeBinaryBuilder, uuid: &[u8; 16]) {
    values.append_value(uuid).expect("a uuid column is 16 bytes wide");
}

#[cfg(test)]
mod tests;
