//! [`Zone`]: smallest and largest value of a column in a chunk, for skipping chunks.

use std::cmp::Ordering;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type,
};

use super::key;
use crate::types::access::value_at;
use crate::types::{Numeric, PgType, Value};

/// What is known of a column's values in one chunk. Order is PostgreSQL's of the type (NaN greatest, -0 = 0);
/// text is ordered by bytes, which is PostgreSQL's order under C only, but serves equality under any
/// deterministic collation.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// NULL if all values are.
    pub min: Value,
    pub max: Value,
    pub nulls: usize,
}

impl Zone {
    pub(super) fn of(array: &dyn Array, pg_type: PgType) -> Option<Self> {
        let nulls = array.logical_null_count();
        if nulls == array.len() {
            return Some(Self { min: Value::Null, max: Value::Null, nulls });
        }
        let (min, max) = range(array, pg_type)?;
        Some(Self { min, max, nulls })
    }

    /// The range of these values, if they are all ordered.
    pub(crate) fn over<'a>(values: impl Iterator<Item = &'a Value>) -> Option<Self> {
        let (min, max) = range_of(values.cloned())?;
        Some(Self { min, max, nulls: 0 })
    }

    /// Whether `value` may occur in the chunk. True when in doubt.
    pub fn may_contain(&self, value: &Value) -> bool {
        if self.min.is_null() {
            return value.is_null();
        }
        let below = key::compare(value, &self.min) == Some(Ordering::Less);
        let above = key::compare(value, &self.max) == Some(Ordering::Greater);
        !below && !above
    }

    /// Whether some value may occur in both chunks. True when in doubt.
    pub(super) fn may_overlap(&self, other: &Self) -> bool {
        if self.min.is_null() || other.min.is_null() {
            return self.nulls > 0 && other.nulls > 0;
        }
        let before = key::compare(&self.max, &other.min) == Some(Ordering::Less);
        let after = key::compare(&self.min, &other.max) == Some(Ordering::Greater);
        !before && !after
    }
}

fn range(array: &dyn Array, pg_type: PgType) -> Option<(Value, Value)> {
    match pg_type {
        PgType::Int2 => primitive::<Int16Type>(array, i16::cmp, Value::Int2),
        PgType::Int4 => primitive::<Int32Type>(array, i32::cmp, Value::Int4),
        PgType::Int8 => primitive::<Int64Type>(array, i64::cmp, Value::Int8),
        PgType::Float4 => {
            primitive::<Float32Type>(array, |a, b| key::compare_floats(f64::from(*a), f64::from(*b)), Value::Float4)
        }
        PgType::Float8 => primitive::<Float64Type>(array, |a, b| key::compare_floats(*a, *b), Value::Float8),
        PgType::Date => primitive::<Int32Type>(array, i32::cmp, Value::Date),
        PgType::Time => primitive::<Int64Type>(array, i64::cmp, Value::Time),
        PgType::Timestamp => primitive::<Int64Type>(array, i64::cmp, Value::Timestamp),
        PgType::Timestamptz => primitive::<Int64Type>(array, i64::cmp, Value::Timestamptz),
        PgType::Numeric => match array.data_type() {
            DataType::Decimal64(_, scale) => {
                let scale = u16::try_from(*scale).ok()?;
                let value = |mantissa| Value::Numeric(Numeric::Finite { mantissa: i128::from(mantissa), scale });
                primitive::<Decimal64Type>(array, i64::cmp, value)
            }
            DataType::Decimal128(_, scale) => {
                let scale = u16::try_from(*scale).ok()?;
                let value = |mantissa| Value::Numeric(Numeric::Finite { mantissa, scale });
                primitive::<Decimal128Type>(array, i128::cmp, value)
            }
            _ => by_value(array, pg_type),
        },
        PgType::Text | PgType::Varchar | PgType::Name | PgType::Enum(_) => text(array),
        PgType::Bool | PgType::Uuid | PgType::Bytea | PgType::Inet | PgType::Cidr => by_value(array, pg_type),
        // Blanks at the end of a bpchar do not count, so the order of its bytes says nothing of equality.
        PgType::Bpchar | PgType::Interval | PgType::Json | PgType::Jsonb | PgType::Array(_) | PgType::Unknown => None,
        PgType::Bit | PgType::Varbit => None,
    }
}

fn primitive<T: ArrowPrimitiveType>(
    array: &dyn Array,
    compare: impl Fn(&T::Native, &T::Native) -> Ordering,
    value: impl Fn(T::Native) -> Value,
) -> Option<(Value, Value)> {
    let array = array.as_primitive_opt::<T>()?;
    let mut range: Option<(T::Native, T::Native)> = None;
    let mut widen = |item: T::Native| {
        let (min, max) = range.get_or_insert((item, item));
        if compare(&item, min).is_lt() {
            *min = item;
        }
        if compare(&item, max).is_gt() {
            *max = item;
        }
    };
    if array.null_count() == 0 {
        array.values().iter().for_each(|item| widen(*item));
    } else {
        array.iter().flatten().for_each(widen);
    }
    range.map(|(min, max)| (value(min), value(max)))
}

fn text(array: &dyn Array) -> Option<(Value, Value)> {
    // A dictionary may hold entries that no row uses; that only widens the range.
    let strings = match array.as_any_dictionary_opt() {
        Some(dictionary) => dictionary.values().as_string_opt::<i32>()?,
        None => array.as_string_opt::<i32>()?,
    };
    let min = strings.iter().flatten().min()?;
    let max = strings.iter().flatten().max()?;
    Some((Value::Text(min.into()), Value::Text(max.into())))
}

fn by_value(array: &dyn Array, pg_type: PgType) -> Option<(Value, Value)> {
    range_of((0..array.len()).map(|row| value_at(array, pg_type, row)).filter(|value| !value.is_null()))
}

fn range_of(values: impl Iterator<Item = Value>) -> Option<(Value, Value)> {
    let mut range: Option<(Value, Value)> = None;
    for value in values {
        let Some((min, max)) = &mut range else {
            range = Some((value.clone(), value));
            continue;
        };
        if key::compare(&value, min)?.is_lt() {
            *min = value;
        } else if key::compare(&value, max)?.is_gt() {
            *max = value;
        }
    }
    range
}
