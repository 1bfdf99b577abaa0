//! The binary format of every type: PostgreSQL's send functions ([`write()`]) and receive functions ([`decode`]).
//! No length prefix; NULL has no bytes.

use super::network::{Kind, Network};
use super::text::{ParseError, limit_bpchar, limit_varchar, pad_bpchar, parse_label, truncate_name};
use super::{Interval, Numeric, PgType, Value, array, bits, json};

/// The version that jsonb_send puts before the text.
pub const JSONB_VERSION: u8 = 1;
/// USECS_PER_DAY: 24:00:00 is a time.
const TIME_MAX: i64 = 86_400_000_000;
/// The ranges of IS_VALID_DATE and IS_VALID_TIMESTAMP (datatype/timestamp.h), end exclusive.
const DATE_RANGE: std::ops::Range<i32> = -2_451_545..2_145_031_949;
const TIMESTAMP_RANGE: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

/// What the type's receive function makes of `bytes` (typreceive, with `typmod` as it passes it: -1 for none). The
/// typmods of date and time types are not applied: stored values are rounded already, parameters carry none.
pub fn decode(pg_type: PgType, typmod: i32, bytes: &[u8]) -> Result<Value, ParseError> {
    Ok(match pg_type {
        PgType::Bool => Value::Bool(fixed::<1>(bytes)?[0] != 0),
        PgType::Int2 => Value::Int2(i16::from_be_bytes(fixed(bytes)?)),
        PgType::Int4 => Value::Int4(i32::from_be_bytes(fixed(bytes)?)),
        PgType::Int8 => Value::Int8(i64::from_be_bytes(fixed(bytes)?)),
        PgType::Float4 => Value::Float4(f32::from_be_bytes(fixed(bytes)?)),
        PgType::Float8 => Value::Float8(f64::from_be_bytes(fixed(bytes)?)),
        PgType::Numeric => Value::Numeric(Numeric::decode_binary(bytes)?.apply_typmod(typmod)?),
        PgType::Text | PgType::Unknown => Value::Text(decode_text(bytes)?.into()),
        PgType::Name => match decode_text(bytes)? {
            // namerecv raises where namein cuts.
            text if truncate_name(text).len() < text.len() => {
                return Err(ParseError::Raises("identifier too long".into()));
            }
            text => Value::Text(text.into()),
        },
        PgType::Varchar => Value::Text(limit_varchar(decode_text(bytes)?, typmod)?.into()),
        PgType::Enum(labels) => Value::Text(parse_label(labels, decode_text(bytes)?)?.into()),
        PgType::Bpchar => Value::Text(pad_bpchar(limit_bpchar(decode_text(bytes)?, typmod)?, typmod)),
        PgType::Date => Value::Date(decode_date(bytes)?),
        PgType::Time => Value::Time(decode_time(bytes)?),
        PgType::Timestamp => Value::Timestamp(decode_timestamp(bytes)?),
        PgType::Timestamptz => Value::Timestamptz(decode_timestamp(bytes)?),
        PgType::Interval => Value::Interval(decode_interval(bytes)?),
        PgType::Uuid => Value::Uuid(fixed(bytes)?),
        PgType::Bytea => Value::Bytea(bytes.into()),
        PgType::Bit | PgType::Varbit => Value::Text(bits::decode(bytes)?.into()),
        PgType::Inet => Value::Network(Network::decode(Kind::Inet, bytes)?.held().into()),
        PgType::Cidr => Value::Network(Network::decode(Kind::Cidr, bytes)?.held().into()),
        PgType::Array(element) => Value::Array(array::validated(element, bytes)?.into()),
        PgType::Jsonb => Value::Text(json::parse(decode_text(jsonb_text(bytes)?)?)?.into()),
        PgType::Json => {
            let text = decode_text(bytes)?;
            json::parse(text).map(|_| Value::Text(text.into()))?
        }
    })
}

/// The value of an upstream column from what its send function made; see [`super::text::parse_stored`].
pub fn decode_stored(pg_type: PgType, bytes: &[u8]) -> Result<Value, ParseError> {
    match pg_type {
        PgType::Json | PgType::Enum(_) => Ok(Value::Text(decode_text(bytes)?.into())),
        PgType::Jsonb => Ok(Value::Text(decode_text(jsonb_text(bytes)?)?.into())),
        PgType::Array(element) => Ok(Value::Array(array::stored(element, bytes)?.into())),
        _ => decode(pg_type, -1, bytes),
    }
}

/// jsonb_send's bytes without their version.
pub(super) fn jsonb_text(bytes: &[u8]) -> Result<&[u8], ParseError> {
    match bytes {
        [JSONB_VERSION, text @ ..] => Ok(text),
        _ => Err(ParseError::Raises("unsupported jsonb version number".into())),
    }
}

/// Appends what the type's send function makes of `value`. Appends nothing for NULL.
pub fn write(value: &Value, pg_type: PgType, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Bool(value) => out.push(u8::from(*value)),
        Value::Int2(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Int4(value) | Value::Date(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Int8(value) | Value::Time(value) | Value::Timestamp(value) | Value::Timestamptz(value) => {
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::Float4(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Float8(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Numeric(value) => value.encode_binary(out),
        Value::Text(value) if matches!(pg_type, PgType::Bit | PgType::Varbit) => bits::encode(value, out),
        Value::Text(value) => {
            if pg_type == PgType::Jsonb {
                out.push(JSONB_VERSION);
            }
            out.extend_from_slice(value.as_bytes());
        }
        Value::Interval(value) => out.extend_from_slice(&interval_bytes(*value)),
        Value::Uuid(value) => out.extend_from_slice(value),
        Value::Network(value) => encode_network(value, pg_type, out),
        Value::Bytea(value) | Value::Array(value) => out.extend_from_slice(value),
    }
}

/// Appends what inet_send or cidr_send makes.
pub(super) fn encode_network(held: &[u8], pg_type: PgType, out: &mut Vec<u8>) {
    let Some(kind) = Kind::of(pg_type) else { return debug_assert!(false, "a network of another type") };
    Network::of_held(held).encode(kind, out);
}

/// A value of fixed width; pq_getmsgend raises on more, pq_copymsgbytes on less.
pub(super) fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ParseError> {
    bytes.try_into().map_err(|_| ParseError::Raises("incorrect binary data format".into()))
}

/// pq_getmsgtext: valid in the server's encoding, which is UTF-8 wherever freshet answers, without zero bytes.
pub(super) fn decode_text(bytes: &[u8]) -> Result<&str, ParseError> {
    let raises = || ParseError::Raises("invalid byte sequence for encoding \"UTF8\"".into());
    if memchr::memchr(0, bytes).is_some() {
        return Err(raises());
    }
    std::str::from_utf8(bytes).map_err(|_| raises())
}

pub(super) fn decode_date(bytes: &[u8]) -> Result<i32, ParseError> {
    match i32::from_be_bytes(fixed(bytes)?) {
        date if DATE_RANGE.contains(&date) || matches!(date, i32::MIN | i32::MAX) => Ok(date),
        _ => Err(ParseError::Raises("date out of range".into())),
    }
}

pub(super) fn decode_time(bytes: &[u8]) -> Result<i64, ParseError> {
    match i64::from_be_bytes(fixed(bytes)?) {
        time @ 0..=TIME_MAX => Ok(time),
        _ => Err(ParseError::Raises("time out of range".into())),
    }
}

pub(super) fn decode_timestamp(bytes: &[u8]) -> Result<i64, ParseError> {
    match i64::from_be_bytes(fixed(bytes)?) {
        timestamp if TIMESTAMP_RANGE.contains(&timestamp) || matches!(timestamp, i64::MIN | i64::MAX) => Ok(timestamp),
        _ => Err(ParseError::Raises("timestamp out of range".into())),
    }
}

/// interval_recv: microseconds, days, months.
pub(super) fn decode_interval(bytes: &[u8]) -> Result<Interval, ParseError> {
    let bytes: [u8; 16] = fixed(bytes)?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, d0, d1, d2, d3, n0, n1, n2, n3] = bytes;
    let interval = Interval {
        microseconds: i64::from_be_bytes([m0, m1, m2, m3, m4, m5, m6, m7]),
        days: i32::from_be_bytes([d0, d1, d2, d3]),
        months: i32::from_be_bytes([n0, n1, n2, n3]),
    };
    // From version 17 on these are infinity and -infinity (timestamp.h, INTERVAL_IS_NOEND).
    let is_infinite = |most: i64, of_others: i32| {
        interval.microseconds == most && interval.days == of_others && interval.months == of_others
    };
    if is_infinite(i64::MAX, i32::MAX) || is_infinite(i64::MIN, i32::MIN) {
        return Err(ParseError::beyond("an infinite interval"));
    }
    Ok(interval)
}

pub(super) fn interval_bytes(interval: Interval) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&interval.microseconds.to_be_bytes());
    bytes[8..12].copy_from_slice(&interval.days.to_be_bytes());
    bytes[12..].copy_from_slice(&interval.months.to_be_bytes());
    bytes
}
