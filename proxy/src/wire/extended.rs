//! The extended query protocol: views of Parse, Bind, Describe, Execute, Close; writers of what answers them.

use super::frame::{Reader, write_c_string, write_frame};

/// `P`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parse<'a> {
    pub name: &'a [u8],
    pub sql: &'a [u8],
    /// The declared type OIDs, four bytes each, as they came; 0: upstream infers.
    pub parameter_types: &'a [u8],
}

impl<'a> Parse<'a> {
    pub fn view(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let name = reader.c_string()?;
        let sql = reader.c_string()?;
        let count = reader.count()?;
        let parameter_types = reader.bytes(count.checked_mul(4)?)?;
        reader.is_empty().then_some(Self { name, sql, parameter_types })
    }
}

/// Type OIDs as they stand in Parse and ParameterDescription.
pub fn oids(raw: &[u8]) -> impl Iterator<Item = u32> {
    raw.chunks_exact(4).filter_map(|chunk| chunk.first_chunk::<4>().map(|oid| u32::from_be_bytes(*oid)))
}

/// `B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind<'a> {
    pub portal: &'a [u8],
    pub statement: &'a [u8],
    /// Format codes, two bytes each: none (all text), one (for all), or one per parameter.
    pub parameter_formats: &'a [u8],
    pub parameter_count: usize,
    /// The values, each an int32 length (-1: NULL) and its bytes.
    pub parameters: &'a [u8],
    /// Like `parameter_formats`, for the result's columns.
    pub result_formats: &'a [u8],
}

impl<'a> Bind<'a> {
    pub fn view(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let portal = reader.c_string()?;
        let statement = reader.c_string()?;
        let parameter_formats = formats(&mut reader)?;
        let parameter_count = reader.count()?;
        let before = reader.rest();
        for _ in 0..parameter_count {
            reader.value()?;
        }
        let length = before.len().checked_sub(reader.rest().len())?;
        let parameters = before.get(..length)?;
        let result_formats = formats(&mut reader)?;
        let view = Self { portal, statement, parameter_formats, parameter_count, parameters, result_formats };
        reader.is_empty().then_some(view)
    }

    /// The values in order; None is NULL.
    pub fn values(&self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut reader = Reader::new(self.parameters);
        std::iter::from_fn(move || reader.value())
    }
}

fn formats<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let count = reader.count()?;
    reader.bytes(count.checked_mul(2)?)
}

/// The format code of item `index`: one code stands for all, none for text (PostgreSQL: Bind).
pub fn format_at(raw: &[u8], index: usize) -> i16 {
    let chunk = if raw.len() == 2 {
        raw.first_chunk::<2>()
    } else {
        raw.chunks_exact(2).nth(index).and_then(|c| c.first_chunk())
    };
    chunk.map_or(0, |code| i16::from_be_bytes(*code))
}

/// Whether the codes say, for so many items, what PostgreSQL has no error for: none, one, or one for each; text or binary.
pub fn are_formats(raw: &[u8], items: usize) -> bool {
    let codes = raw.len() / 2;
    (codes <= 1 || codes == items) && raw.chunks_exact(2).all(|code| matches!(code, [0, 0 | 1]))
}

/// What Describe and Close name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    Statement(&'a [u8]),
    Portal(&'a [u8]),
}

impl<'a> Target<'a> {
    pub fn name(&self) -> &'a [u8] {
        match self {
            Self::Statement(name) | Self::Portal(name) => name,
        }
    }

    /// The body of `D` or `C`.
    pub fn view(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let kind = reader.u8()?;
        let name = reader.c_string()?;
        match kind {
            _ if !reader.is_empty() => None,
            b'S' => Some(Self::Statement(name)),
            b'P' => Some(Self::Portal(name)),
            _ => None,
        }
    }
}

/// `E`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    pub portal: &'a [u8],
    /// 0 or negative: all.
    pub rows_max: i32,
}

impl<'a> Execute<'a> {
    pub fn view(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let view = Self { portal: reader.c_string()?, rows_max: reader.i32()? };
        reader.is_empty().then_some(view)
    }
}

pub const PARSE_COMPLETE: &[u8] = b"1\0\0\0\x04";
pub const BIND_COMPLETE: &[u8] = b"2\0\0\0\x04";
pub const CLOSE_COMPLETE: &[u8] = b"3\0\0\0\x04";
pub const NO_DATA: &[u8] = b"n\0\0\0\x04";
pub const SYNC: &[u8] = b"S\0\0\0\x04";
pub const FLUSH: &[u8] = b"H\0\0\0\x04";
pub const PORTAL_SUSPENDED: &[u8] = b"s\0\0\0\x04";

/// ParameterDescription.
pub fn write_parameter_description(out: &mut Vec<u8>, types: &[u32]) {
    write_frame(out, b't', |out| {
        out.extend_from_slice(&u16::try_from(types.len()).unwrap_or(u16::MAX).to_be_bytes());
        for oid in types {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// The OIDs of a ParameterDescription body.
pub fn parameter_description(body: &[u8]) -> Option<Vec<u32>> {
    let mut reader = Reader::new(body);
    // PostgreSQL writes the count as uint16: up to 65,535 parameters.
    let count = usize::from(reader.i16()?.cast_unsigned());
    let types: Vec<u32> = oids(reader.bytes(count.checked_mul(4)?)?).collect();
    reader.is_empty().then_some(types)
}

/// Parse without declared types.
pub fn write_parse(out: &mut Vec<u8>, name: &[u8], sql: &[u8]) {
    write_frame(out, b'P', |out| {
        write_c_string(out, name);
        write_c_string(out, sql);
        out.extend_from_slice(&[0, 0]);
    });
}

/// Bind without parameters, text results.
pub fn write_bind(out: &mut Vec<u8>, portal: &[u8], statement: &[u8]) {
    write_frame(out, b'B', |out| {
        write_c_string(out, portal);
        write_c_string(out, statement);
        out.extend_from_slice(&[0; 6]);
    });
}

/// Execute without a row limit.
pub fn write_execute(out: &mut Vec<u8>, portal: &[u8]) {
    write_frame(out, b'E', |out| {
        write_c_string(out, portal);
        out.extend_from_slice(&[0; 4]);
    });
}

/// Describe.
pub fn write_describe(out: &mut Vec<u8>, target: Target<'_>) {
    write_frame(out, b'D', |out| write_target(out, target));
}

/// Close.
pub fn write_close(out: &mut Vec<u8>, target: Target<'_>) {
    write_frame(out, b'C', |out| write_target(out, target));
}

fn write_target(out: &mut Vec<u8>, target: Target<'_>) {
    let (kind, name) = match target {
        Target::Statement(name) => (b'S', name),
        Target::Portal(name) => (b'P', name),
    };
    out.push(kind);
    write_c_string(out, name);
}
