//! The text format of every type: PostgreSQL's input functions ([`parse`]) and output functions ([`write()`]).

use std::sync::Arc;

use super::{
    ByteaOutput, EnumType, FormatSettings, Numeric, PgType, Value, array, bits, datetime, float, interval, json,
    network::{Kind, Network},
};

/// Why a text or binary value is not one of the type, here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// PostgreSQL raises an error; the text is for the operator, upstream reports its own. It never quotes the value: whoever may
    /// see the statistics may see it.
    #[error("{0}")]
    Raises(String),
    /// 'now', 'today' and the like: correct, but not a constant.
    #[error("the value depends on the time")]
    DependsOnTime,
    /// PostgreSQL accepts it, or may; it is not understood here.
    #[error("not understood here: {0}")]
    Beyond(String),
}

impl ParseError {
    pub(super) fn beyond(what: &str) -> Self {
        Self::Beyond(what.to_owned())
    }

    pub fn syntax(type_name: &str) -> Self {
        Self::Raises(format!("invalid input syntax for type {type_name}"))
    }

    pub fn out_of_range(type_name: &str) -> Self {
        Self::Raises(format!("value is out of range for type {type_name}"))
    }
}

/// The offset of varchar's and bpchar's typmods.
const VARHDRSZ: i32 = 4;
/// NAMEDATALEN - 1.
const NAME_BYTES_MAX: usize = 63;

/// What the type's input function makes of `text` (typinput, with `typmod` as it passes it: -1 for none).
/// A string that is too long for varchar(n) raises, as on input; a cast truncates, see [`truncate_varchar`].
pub fn parse(pg_type: PgType, typmod: i32, text: &str, settings: &FormatSettings) -> Result<Value, ParseError> {
    let bytes = text.as_bytes();
    Ok(match pg_type {
        PgType::Bool => Value::Bool(parse_bool(bytes)?),
        PgType::Int2 => Value::Int2(parse_integer(bytes, "smallint")?),
        PgType::Int4 => Value::Int4(parse_integer(bytes, "integer")?),
        PgType::Int8 => Value::Int8(parse_integer(bytes, "bigint")?),
        PgType::Float4 => Value::Float4(float::parse_float4(bytes)?),
        PgType::Float8 => Value::Float8(float::parse_float8(bytes)?),
        PgType::Numeric => Value::Numeric(Numeric::parse(text)?.apply_typmod(typmod)?),
        PgType::Text | PgType::Unknown => Value::Text(text.into()),
        PgType::Name => Value::Text(truncate_name(text).into()),
        PgType::Varchar => Value::Text(limit_varchar(text, typmod)?.into()),
        PgType::Enum(labels) => Value::Text(parse_label(labels, text)?.into()),
        PgType::Bpchar => Value::Text(pad_bpchar(limit_bpchar(text, typmod)?, typmod)),
        PgType::Bit | PgType::Varbit => Value::Text(bits::parse(text)?.into()),
        PgType::Uuid => Value::Uuid(parse_uuid(bytes)?),
        PgType::Bytea => Value::Bytea(parse_bytea(bytes)?.into()),
        PgType::Inet => Value::Network(Network::parse(Kind::Inet, text)?.held().into()),
        PgType::Cidr => Value::Network(Network::parse(Kind::Cidr, text)?.held().into()),
        PgType::Array(element) => Value::Array(array::parse(element, text, settings)?.into()),
        PgType::Jsonb => Value::Text(json::parse(text)?.into()),
        // It is kept as it is written.
        PgType::Json => json::parse(text).map(|_| Value::Text(text.into()))?,
        PgType::Date => Value::Date(datetime::parse_date(text, settings)?),
        PgType::Time => Value::Time(datetime::parse_time(text, typmod, settings)?),
        PgType::Timestamp => Value::Timestamp(datetime::parse_timestamp(text, typmod, settings)?),
        PgType::Timestamptz => Value::Timestamptz(datetime::parse_timestamptz(text, typmod, settings)?),
        PgType::Interval => Value::Interval(interval::parse(text, typmod, settings)?),
    })
}

/// enum_in: one of the labels as it is.
pub(super) fn parse_label(labels: EnumType, text: &str) -> Result<&str, ParseError> {
    let raises = || ParseError::Raises(format!("invalid input value for enum {}", labels.name()));
    labels.place(text).map(|_| text).ok_or_else(raises)
}

/// The value of an upstream column from what its output function printed. It is stored as it is, so that nothing is
/// left to check: its typmod was applied there, and json and jsonb print what they hold.
pub fn parse_stored(pg_type: PgType, text: &str, settings: &FormatSettings) -> Result<Value, ParseError> {
    match pg_type {
        PgType::Json | PgType::Jsonb | PgType::Enum(_) => Ok(Value::Text(text.into())),
        PgType::Array(element) => Ok(Value::Array(array::parse_stored(element, text, settings)?.into())),
        _ => parse(pg_type, -1, text, settings),
    }
}

/// Appends what the type's output function prints of `value`. Appends nothing for NULL, which has no text.
pub fn write(value: &Value, pg_type: PgType, settings: &FormatSettings, out: &mut Vec<u8>) {
    debug_assert!(value.fits(pg_type), "{value:?} as {}", pg_type.name());
    match value {
        Value::Null => {}
        Value::Bool(value) => out.push(if *value { b't' } else { b'f' }),
        Value::Int2(value) => out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes()),
        Value::Int4(value) => out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes()),
        Value::Int8(value) => out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes()),
        Value::Float4(value) => float::write_float4(*value, settings.extra_float_digits, out),
        Value::Float8(value) => float::write_float8(*value, settings.extra_float_digits, out),
        Value::Numeric(value) => value.write_text(out),
        Value::Text(value) => out.extend_from_slice(value.as_bytes()),
        Value::Uuid(value) => write_uuid(value, out),
        Value::Bytea(value) => write_bytea(value, settings.bytea_output, out),
        Value::Network(value) => write_network(value, pg_type, out),
        Value::Array(value) => match pg_type {
            PgType::Array(element) => array::write_text(value, element, settings, out),
            _ => debug_assert!(false, "an array of another type"),
        },
        Value::Date(value) => datetime::write_date(*value, settings, out),
        Value::Time(value) => datetime::write_time(*value, out),
        Value::Timestamp(value) => datetime::write_timestamp(*value, settings, out),
        Value::Timestamptz(value) => datetime::write_timestamptz(*value, settings, out),
        Value::Interval(value) => interval::write(value, settings, out),
    }
}

/// Without leading and trailing white space as C's isspace has it.
pub fn trim_space(text: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !is_space(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// boolin: any prefix of true, false, yes, no; on, of, off; 1, 0 (bool.c, parse_bool_with_len).
pub fn parse_bool(text: &[u8]) -> Result<bool, ParseError> {
    let word = trim_space(text).to_ascii_lowercase();
    let is_prefix_of = |whole: &[u8]| !word.is_empty() && whole.starts_with(&word);
    match word.as_slice() {
        b"1" | b"on" => Ok(true),
        b"0" | b"of" | b"off" => Ok(false),
        _ if is_prefix_of(b"true") || is_prefix_of(b"yes") => Ok(true),
        _ if is_prefix_of(b"false") || is_prefix_of(b"no") => Ok(false),
        _ => Err(ParseError::syntax("boolean")),
    }
}

/// int2in, int4in, int8in: white space, sign, decimal digits (numutils.c; no other notation in PostgreSQL 15).
pub fn parse_integer<T: TryFrom<i64>>(text: &[u8], type_name: &str) -> Result<T, ParseError> {
    let (is_negative, digits) = match trim_space(text) {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ParseError::syntax(type_name));
    }
    let value = match digits.len() {
        // So few digits cannot overflow.
        ..=18 => {
            let magnitude = digits.iter().fold(0, |magnitude, digit| magnitude * 10 + i64::from(digit - b'0'));
            Some(if is_negative { -magnitude } else { magnitude })
        }
        // Towards the sign from the start: i64::MIN has no positive counterpart.
        _ => digits.iter().try_fold(0i64, |value, digit| {
            let (value, digit) = (value.checked_mul(10)?, i64::from(digit - b'0'));
            if is_negative { value.checked_sub(digit) } else { value.checked_add(digit) }
        }),
    };
    let value = value.and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| ParseError::out_of_range(type_name))
}

/// string_to_uuid: 32 hexadecimal digits, a hyphen allowed after every fourth, braces around all.
pub fn parse_uuid(text: &[u8]) -> Result<[u8; 16], ParseError> {
    let fail = || ParseError::syntax("uuid");
    let mut rest = match text {
        [b'{', inner @ .., b'}'] => inner,
        plain => plain,
    };
    let mut uuid = [0; 16];
    for (index, byte) in uuid.iter_mut().enumerate() {
        let [high, low, tail @ ..] = rest else { return Err(fail()) };
        *byte = hex_digit(*high).ok_or_else(fail)? << 4 | hex_digit(*low).ok_or_else(fail)?;
        rest = match tail {
            [b'-', after @ ..] if index % 2 == 1 && index < 15 => after,
            after => after,
        };
    }
    if rest.is_empty() { Ok(uuid) } else { Err(fail()) }
}

/// byteain: `\x` and hexadecimal digits, else the escape format.
pub fn parse_bytea(text: &[u8]) -> Result<Vec<u8>, ParseError> {
    match text {
        [b'\\', b'x', hex @ ..] => parse_bytea_hex(hex),
        escaped => parse_bytea_escaped(escaped),
    }
}

/// hex_decode: white space may stand between pairs of digits.
fn parse_bytea_hex(text: &[u8]) -> Result<Vec<u8>, ParseError> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Ok(bytes),
            [b' ' | b'\n' | b'\t' | b'\r', tail @ ..] => tail,
            [high, low, tail @ ..] => {
                let digit = |digit: u8| {
                    hex_digit(digit).ok_or_else(|| ParseError::Raises("invalid hexadecimal digit".to_owned()))
                };
                bytes.push(digit(*high)? << 4 | digit(*low)?);
                tail
            }
            [_] => return Err(ParseError::Raises("invalid hexadecimal data: odd number of digits".to_owned())),
        };
    }
}

fn parse_bytea_escaped(text: &[u8]) -> Result<Vec<u8>, ParseError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Ok(bytes),
            [b'\\', b'\\', tail @ ..] => {
                bytes.push(b'\\');
                tail
            }
            [b'\\', high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', tail @ ..] => {
                bytes.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
                tail
            }
            [b'\\', ..] => return Err(ParseError::syntax("bytea")),
            [plain, tail @ ..] => {
                bytes.push(*plain);
                tail
            }
        };
    }
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends what uuid_out prints.
pub fn write_uuid(uuid: &[u8; 16], out: &mut Vec<u8>) {
    out.extend_from_slice(&uuid_text(uuid));
}

pub(super) fn uuid_text(uuid: &[u8; 16]) -> [u8; 36] {
    let mut text = [b'-'; 36];
    let mut at = 0;
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            at += 1;
        }
        text[at] = HEX_DIGITS[usize::from(byte >> 4)];
        text[at + 1] = HEX_DIGITS[usize::from(byte & 15)];
        at += 2;
    }
    text
}

/// Appends what byteaout prints.
pub fn write_bytea(bytes: &[u8], form: ByteaOutput, out: &mut Vec<u8>) {
    match form {
        ByteaOutput::Hex => {
            out.reserve(2 + 2 * bytes.len());
            out.extend_from_slice(b"\\x");
            for byte in bytes {
                out.extend_from_slice(&[HEX_DIGITS[usize::from(byte >> 4)], HEX_DIGITS[usize::from(byte & 15)]]);
            }
        }
        ByteaOutput::Escape => {
            for &byte in bytes {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    0x20..=0x7e => out.push(byte),
                    _ => {
                        let octal = |shift: u8| b'0' + (byte >> shift & 7);
                        out.extend_from_slice(&[b'\\', octal(6), octal(3), octal(0)]);
                    }
                }
            }
        }
    }
}

/// Appends what inet_out or cidr_out prints.
pub(super) fn write_network(held: &[u8], pg_type: PgType, out: &mut Vec<u8>) {
    let Some(kind) = Kind::of(pg_type) else { return debug_assert!(false, "a network of another type") };
    let mut text = String::new();
    Network::of_held(held).write_text(kind, &mut text);
    out.extend_from_slice(text.as_bytes());
}

/// namein: at most 63 bytes, cut between characters.
pub fn truncate_name(text: &str) -> &str {
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The n of varchar(n) or bpchar(n); None: unlimited.
pub fn length_limit(typmod: i32) -> Option<usize> {
    if typmod < VARHDRSZ {
        return None;
    }
    usize::try_from(typmod - VARHDRSZ).ok()
}

/// Where `text` is cut to fit `typmod`; None: it fits.
fn cut_at(text: &str, typmod: i32) -> Option<usize> {
    let limit = length_limit(typmod)?;
    // A string of so few bytes cannot have more characters.
    if text.len() <= limit {
        return None;
    }
    text.char_indices().nth(limit).map(|(at, _)| at)
}

/// An explicit cast to varchar(n): cuts to n characters.
pub fn truncate_varchar(text: &str, typmod: i32) -> &str {
    cut_at(text, typmod).map_or(text, |end| &text[..end])
}

/// Input of, or assignment to, varchar(n): only spaces may be cut off.
pub fn limit_varchar(text: &str, typmod: i32) -> Result<&str, ParseError> {
    limit_characters(text, typmod, "character varying")
}

/// An explicit cast to bpchar(n): cuts or pads with spaces to n characters.
pub fn truncate_bpchar(text: &str, typmod: i32) -> Arc<str> {
    pad_bpchar(truncate_varchar(text, typmod), typmod)
}

/// Input of, or assignment to, bpchar(n), before padding: only spaces may be cut off.
pub fn limit_bpchar(text: &str, typmod: i32) -> Result<&str, ParseError> {
    limit_characters(text, typmod, "character")
}

/// Pads with spaces to the n characters of bpchar(n).
pub fn pad_bpchar(text: &str, typmod: i32) -> Arc<str> {
    let missing = length_limit(typmod).map_or(0, |limit| limit.saturating_sub(text.chars().count()));
    if missing == 0 {
        return text.into();
    }
    let mut padded = String::with_capacity(text.len() + missing);
    padded.push_str(text);
    padded.extend(std::iter::repeat_n(' ', missing));
    padded.into()
}

fn limit_characters<'a>(text: &'a str, typmod: i32, type_name: &str) -> Result<&'a str, ParseError> {
    let Some(end) = cut_at(text, typmod) else { return Ok(text) };
    if text[end..].bytes().all(|byte| byte == b' ') {
        return Ok(&text[..end]);
    }
    let limit = length_limit(typmod).unwrap_or_default();
    Err(ParseError::Raises(format!("value too long for type {type_name}({limit})")))
}

impl From<super::numeric::NumericError> for ParseError {
    fn from(error: super::numeric::NumericError) -> Self {
        use super::numeric::NumericError as E;
        match error {
            E::DivisionByZero | E::Raises(_) => Self::Raises(error.to_string()),
            E::Beyond | E::InDoubt => Self::Beyond(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
