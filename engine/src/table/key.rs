//! Hashing and comparing key values: one definition of equality for values and for array cells.
//!
//! Two equalities are needed. *Equal* is PostgreSQL's `=` of the type (1.0 = 1.00, -0 = 0, NaN = NaN); look-ups by key
//! use it. *Identical* is the stored value bit for bit; REPLICA IDENTITY FULL identifies rows so. Identical values are
//! always equal, so one hash serves both. Text, json and jsonb are equal by bytes here.

use std::cmp::Ordering;
use std::hash::Hash;
use std::sync::LazyLock;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type,
};

use crate::types::access::value_at;
use crate::types::{Interval, Numeric, PgType, Value};

/// Seeded per process: keys come from clients, who must not be able to choose colliding ones.
static SEED: LazyLock<ahash::RandomState> = LazyLock::new(ahash::RandomState::new);

const NULL_HASH: u64 = 0x9e37_79b9_7f4a_7c15;

/// Starts the hash of a key of one or more values.
pub(super) fn start() -> u64 {
    0
}

/// Adds one value of a column of `pg_type` to a key's hash.
pub(super) fn add(hash: u64, value: &Value, pg_type: PgType) -> u64 {
    mix(hash, hash_value(value, pg_type))
}

/// The key hashes of all rows of `columns`.
pub(super) fn hash_rows(columns: &[(&ArrayRef, PgType)], rows: usize) -> Vec<u64> {
    let mut hashes = vec![start(); rows];
    for (array, pg_type) in columns {
        add_column(&mut hashes, array.as_ref(), *pg_type);
    }
    hashes
}

fn add_column(hashes: &mut [u64], array: &dyn Array, pg_type: PgType) {
    match array.data_type() {
        DataType::Int16 => add_primitive::<Int16Type>(hashes, array, |v| hash_integer(i64::from(v))),
        DataType::Int32 => add_primitive::<Int32Type>(hashes, array, |v| hash_integer(i64::from(v))),
        DataType::Int64 => add_primitive::<Int64Type>(hashes, array, hash_integer),
        DataType::Float32 => add_primitive::<Float32Type>(hashes, array, |v| hash_float(f64::from(v))),
        DataType::Float64 => add_primitive::<Float64Type>(hashes, array, hash_float),
        DataType::Decimal64(_, scale) => {
            let scale = i32::from(*scale);
            add_primitive::<Decimal64Type>(hashes, array, |v| hash_decimal(i128::from(v), scale));
        }
        DataType::Decimal128(_, scale) => {
            let scale = i32::from(*scale);
            add_primitive::<Decimal128Type>(hashes, array, |v| hash_decimal(v, scale));
        }
        DataType::Utf8 => {
            let strings = array.as_string::<i32>();
            for (row, hash) in hashes.iter_mut().enumerate() {
                let part = if strings.is_null(row) { NULL_HASH } else { hash_text(strings.value(row), pg_type) };
                *hash = mix(*hash, part);
            }
        }
        DataType::Dictionary(_, values) if **values == DataType::Utf8 => {
            let dictionary = array.as_dictionary::<Int32Type>();
            let entries: Vec<u64> = (dictionary.values().as_string::<i32>().iter())
                .map(|entry| entry.map_or(NULL_HASH, |text| hash_text(text, pg_type)))
                .collect();
            for (row, hash) in hashes.iter_mut().enumerate() {
                *hash = mix(*hash, dictionary.key(row).map_or(NULL_HASH, |entry| entries[entry]));
            }
        }
        _ => {
            for (row, hash) in hashes.iter_mut().enumerate() {
                *hash = add(*hash, &value_at(array, pg_type, row), pg_type);
            }
        }
    }
}

fn add_primitive<T: ArrowPrimitiveType>(hashes: &mut [u64], array: &dyn Array, part: impl Fn(T::Native) -> u64) {
    let array = array.as_primitive::<T>();
    if array.null_count() == 0 {
        for (hash, value) in hashes.iter_mut().zip(array.values()) {
            *hash = mix(*hash, part(*value));
        }
    } else {
        for (hash, value) in hashes.iter_mut().zip(array.iter()) {
            *hash = mix(*hash, value.map_or(NULL_HASH, &part));
        }
    }
}

fn hash_value(value: &Value, pg_type: PgType) -> u64 {
    match value {
        Value::Null => NULL_HASH,
        Value::Bool(v) => hash_integer(i64::from(*v)),
        Value::Int2(v) => hash_integer(i64::from(*v)),
        Value::Int4(v) | Value::Date(v) => hash_integer(i64::from(*v)),
        Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => hash_integer(*v),
        Value::Float4(v) => hash_float(f64::from(*v)),
        Value::Float8(v) => hash_float(*v),
        Value::Numeric(Numeric::Finite { mantissa, scale }) => hash_decimal(*mantissa, i32::from(*scale)),
        Value::Numeric(value @ Numeric::Wide { .. }) => hash_any(value.normalized().parts()),
        Value::Numeric(Numeric::NaN) => hash_integer(i64::MIN),
        Value::Numeric(Numeric::PositiveInfinity) => hash_integer(i64::MIN + 1),
        Value::Numeric(Numeric::NegativeInfinity) => hash_integer(i64::MIN + 2),
        Value::Text(text) => hash_text(text, pg_type),
        Value::Interval(interval) => hash_any(interval_span(interval)),
        Value::Uuid(bytes) => hash_any(bytes),
        Value::Bytea(bytes) | Value::Network(bytes) | Value::Array(bytes) => hash_any(&bytes[..]),
    }
}

fn hash_integer(value: i64) -> u64 {
    value.cast_unsigned()
}

fn hash_float(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else if value == 0.0 {
        0
    } else {
        value.to_bits()
    }
}

/// Equal numerics differ at most in trailing zeros of the mantissa.
fn hash_decimal(mut mantissa: i128, mut scale: i32) -> u64 {
    if mantissa == 0 {
        return 0;
    }
    if let Ok(mut small) = i64::try_from(mantissa) {
        while small % 10 == 0 {
            small /= 10;
            scale -= 1;
        }
        mantissa = i128::from(small);
    } else {
        while mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
    }
    mix(mix(mantissa.cast_unsigned() as u64, (mantissa >> 64) as u64), i64::from(scale).cast_unsigned())
}

fn hash_text(text: &str, pg_type: PgType) -> u64 {
    hash_any(significant(text, pg_type).as_bytes())
}

/// bpchar compares without its trailing blanks (PostgreSQL: Character Types).
fn significant(text: &str, pg_type: PgType) -> &str {
    if pg_type == PgType::Bpchar { text.trim_end_matches(' ') } else { text }
}

fn hash_any(value: impl Hash) -> u64 {
    SEED.hash_one(value)
}

/// One round of a multiply-and-fold hash.
fn mix(hash: u64, part: u64) -> u64 {
    let product = u128::from(hash.rotate_left(23) ^ part ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15;
    (product as u64) ^ (product >> 64) as u64
}

/// Whether a cell equals `value` by PostgreSQL's `=` of the type; NULL equals nothing.
pub(super) fn cell_equals(array: &dyn Array, pg_type: PgType, row: usize, value: &Value) -> bool {
    if array.is_null(row) || value.is_null() {
        return false;
    }
    match (array.data_type(), value) {
        (DataType::Int32, Value::Int4(v)) => array.as_primitive::<Int32Type>().value(row) == *v,
        (DataType::Int64, Value::Int8(v)) => array.as_primitive::<Int64Type>().value(row) == *v,
        (DataType::Utf8, Value::Text(text)) => {
            significant(array.as_string::<i32>().value(row), pg_type) == significant(text, pg_type)
        }
        _ => equal(&value_at(array, pg_type, row), value, pg_type),
    }
}

/// Whether a cell holds exactly `value` (both NULL included).
pub(super) fn cell_is_identical(array: &dyn Array, pg_type: PgType, row: usize, value: &Value) -> bool {
    if array.is_null(row) || value.is_null() {
        return array.is_null(row) == value.is_null();
    }
    match (array.data_type(), value) {
        (DataType::Int32, Value::Int4(v) | Value::Date(v)) => array.as_primitive::<Int32Type>().value(row) == *v,
        (DataType::Int64, Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v)) => {
            array.as_primitive::<Int64Type>().value(row) == *v
        }
        (DataType::Utf8, Value::Text(text)) => array.as_string::<i32>().value(row) == &**text,
        _ => identical(&value_at(array, pg_type, row), value),
    }
}

/// PostgreSQL's `=` on two values of one type, neither NULL.
fn equal(a: &Value, b: &Value, pg_type: PgType) -> bool {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => significant(a, pg_type) == significant(b, pg_type),
        (Value::Interval(a), Value::Interval(b)) => interval_span(a) == interval_span(b),
        // An old key comes as the row has it.
        (Value::Array(a), Value::Array(b)) => a == b,
        _ => compare(a, b) == Some(Ordering::Equal),
    }
}

fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float4(a), Value::Float4(b)) => a.to_bits() == b.to_bits(),
        (Value::Float8(a), Value::Float8(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// Order of two values of one type (integers of any width), None where it is not known here: NULLs, other types.
/// Text by bytes.
pub(super) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        return Some(a.cmp(&b));
    }
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Float4(_) | Value::Float8(_), Value::Float4(_) | Value::Float8(_)) => {
            Some(compare_floats(float(a)?, float(b)?))
        }
        (Value::Numeric(a), Value::Numeric(b)) => Some(Numeric::cmp(*a, *b)),
        (Value::Text(a), Value::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b))
        | (Value::Timestamp(a), Value::Timestamp(b))
        | (Value::Timestamptz(a), Value::Timestamptz(b)) => Some(a.cmp(b)),
        (Value::Uuid(a), Value::Uuid(b)) => Some(a.cmp(b)),
        (Value::Bytea(a), Value::Bytea(b)) | (Value::Network(a), Value::Network(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// The number that an integer or time column's array holds for the value.
pub(super) fn integer_form(value: &Value) -> Option<i64> {
    match value {
        Value::Date(v) => Some(i64::from(*v)),
        Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => Some(*v),
        _ => integer(value),
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int2(v) => Some(i64::from(*v)),
        Value::Int4(v) => Some(i64::from(*v)),
        Value::Int8(v) => Some(*v),
        _ => None,
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float4(v) => Some(f64::from(*v)),
        Value::Float8(v) => Some(*v),
        _ => None,
    }
}

/// NaN equals NaN and is greater than all others; -0 equals 0 (PostgreSQL: utils/float.h, float8_cmp_internal).
pub(super) fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Months of 30 days, days of 24 hours (PostgreSQL: utils/adt/timestamp.c, interval_cmp_value).
fn interval_span(interval: &Interval) -> i128 {
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * 86_400_000_000 + i128::from(interval.microseconds)
}
