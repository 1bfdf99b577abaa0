//! One value: what literals, parameters, table keys and single rows are made of.

use std::sync::Arc;

use arrow::datatypes::i256;

use super::PgType;

/// A PostgreSQL numeric: `mantissa` × 10^-`scale`, printed with exactly `scale` digits after the point
/// (PostgreSQL's dscale), or one of the special values. Beyond 76 digits the engine refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numeric {
    Finite {
        mantissa: i128,
        scale: u16,
    },
    /// A finite value of 39 to 76 digits.
    Wide {
        mantissa: i256,
        scale: u16,
    },
    NaN,
    PositiveInfinity,
    NegativeInfinity,
}

/// A PostgreSQL interval; the three fields are independent, as in PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    pub months: i32,
    pub days: i32,
    pub microseconds: i64,
}

/// One value, or NULL. Time types as in the table at the head of [`super`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float4(f32),
    Float8(f64),
    Numeric(Numeric),
    /// text, varchar, bpchar (padded), name, enum (as labels), bits (as digits), json, jsonb (both as upstream prints them), unknown.
    Text(Arc<str>),
    Date(i32),
    Time(i64),
    Timestamp(i64),
    Timestamptz(i64),
    Interval(Interval),
    Uuid([u8; 16]),
    Bytea(Arc<[u8]>),
    /// inet or cidr, as [`network`](super::network) holds it.
    Network(Arc<[u8]>),
    /// As array_send writes it.
    Array(Arc<[u8]>),
}

impl Value {
    /// What it takes beside itself, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len() + 16,
            Self::Bytea(bytes) | Self::Network(bytes) | Self::Array(bytes) => bytes.len() + 16,
            _ => 0,
        }
    }

    /// Its place in the order of its type, for types of which [`PgType::is_ordinal`](super::PgType::is_ordinal).
    pub fn ordinal(&self) -> Option<i64> {
        match self {
            Self::Int2(v) => Some(i64::from(*v)),
            Self::Int4(v) | Self::Date(v) => Some(i64::from(*v)),
            Self::Int8(v) | Self::Time(v) | Self::Timestamp(v) | Self::Timestamptz(v) => Some(*v),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The same value to every function: `==` takes 0 for -0, and no NaN for itself.
    pub fn is_identical(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float4(a), Self::Float4(b)) => a.to_bits() == b.to_bits(),
            (Self::Float8(a), Self::Float8(b)) => a.to_bits() == b.to_bits(),
            _ => self == other,
        }
    }

    /// Whether the value may stand in a column of `pg_type` (NULL may in any).
    pub fn fits(&self, pg_type: PgType) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(_) => pg_type == PgType::Bool,
            Self::Int2(_) => pg_type == PgType::Int2,
            Self::Int4(_) => pg_type == PgType::Int4,
            Self::Int8(_) => pg_type == PgType::Int8,
            Self::Float4(_) => pg_type == PgType::Float4,
            Self::Float8(_) => pg_type == PgType::Float8,
            Self::Numeric(_) => pg_type == PgType::Numeric,
            Self::Text(_) => pg_type.is_text_like(),
            Self::Date(_) => pg_type == PgType::Date,
            Self::Time(_) => pg_type == PgType::Time,
            Self::Timestamp(_) => pg_type == PgType::Timestamp,
            Self::Timestamptz(_) => pg_type == PgType::Timestamptz,
            Self::Interval(_) => pg_type == PgType::Interval,
            Self::Uuid(_) => pg_type == PgType::Uuid,
            Self::Bytea(_) => pg_type == PgType::Bytea,
            Self::Network(_) => matches!(pg_type, PgType::Inet | PgType::Cidr),
            Self::Array(_) => matches!(pg_type, PgType::Array(_)),
        }
    }
}
