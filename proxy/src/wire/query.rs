//! Query, and the messages that carry a result: RowDescription, DataRow, CommandComplete, ReadyForQuery.

use super::frame::{Reader, write_c_string, write_frame};

pub const EMPTY_QUERY_RESPONSE: &[u8] = b"I\0\0\0\x04";

/// The SQL of a `Q` body.
pub fn query(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(body);
    let sql = reader.c_string()?;
    reader.is_empty().then_some(sql)
}

/// `Q`.
pub fn write_query(out: &mut Vec<u8>, sql: &[u8]) {
    write_frame(out, b'Q', |out| write_c_string(out, sql));
}

/// Upstream's transaction status, as ReadyForQuery tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionStatus {
    Idle,
    InTransaction,
    Failed,
}

impl TransactionStatus {
    pub fn byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::InTransaction => b'T',
            Self::Failed => b'E',
        }
    }

    /// The body of a `Z`.
    pub fn view(body: &[u8]) -> Option<Self> {
        match body {
            b"I" => Some(Self::Idle),
            b"T" => Some(Self::InTransaction),
            b"E" => Some(Self::Failed),
            _ => None,
        }
    }
}

pub fn write_ready_for_query(out: &mut Vec<u8>, status: TransactionStatus) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status.byte()]);
}

/// One column of a RowDescription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    pub name: &'a [u8],
    pub table_oid: u32,
    pub attnum: i16,
    pub type_oid: u32,
    pub type_length: i16,
    pub typmod: i32,
    /// 0 text, 1 binary.
    pub format: i16,
}

/// RowDescription.
pub fn write_row_description<'a>(out: &mut Vec<u8>, fields: impl ExactSizeIterator<Item = Field<'a>>) {
    write_frame(out, b'T', |out| {
        out.extend_from_slice(&u16::try_from(fields.len()).unwrap_or(u16::MAX).to_be_bytes());
        for field in fields {
            write_c_string(out, field.name);
            out.extend_from_slice(&field.table_oid.to_be_bytes());
            out.extend_from_slice(&field.attnum.to_be_bytes());
            out.extend_from_slice(&field.type_oid.to_be_bytes());
            out.extend_from_slice(&field.type_length.to_be_bytes());
            out.extend_from_slice(&field.typmod.to_be_bytes());
            out.extend_from_slice(&field.format.to_be_bytes());
        }
    });
}

/// The columns of a RowDescription body.
pub fn row_description(body: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut reader = Reader::new(body);
    let count = reader.count()?;
    let mut fields = Vec::new();
    for _ in 0..count {
        fields.push(Field {
            name: reader.c_string()?,
            table_oid: reader.u32()?,
            attnum: reader.i16()?,
            type_oid: reader.u32()?,
            type_length: reader.i16()?,
            typmod: reader.i32()?,
            format: reader.i16()?,
        });
    }
    reader.is_empty().then_some(fields)
}

/// The values of a DataRow body; None is NULL. Ends early if the body is malformed.
pub fn data_row(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut reader = Reader::new(body);
    let count = reader.count().unwrap_or(0);
    std::iter::from_fn(move || reader.value()).take(count)
}

/// A DataRow of `columns` values; `write` appends each as int32 length (-1: NULL) and bytes.
pub fn write_data_row(out: &mut Vec<u8>, columns: usize, write: impl FnOnce(&mut Vec<u8>)) {
    write_frame(out, b'D', |out| {
        out.extend_from_slice(&u16::try_from(columns).unwrap_or(u16::MAX).to_be_bytes());
        write(out);
    });
}

/// One value inside a DataRow.
pub fn write_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.extend_from_slice(&(-1i32).to_be_bytes()),
        Some(bytes) => {
            out.extend_from_slice(&i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

/// CommandComplete.
pub fn write_command_complete(out: &mut Vec<u8>, tag: &str) {
    write_frame(out, b'C', |out| write_c_string(out, tag.as_bytes()));
}

/// The tag of a CommandComplete body.
pub fn command_tag(body: &[u8]) -> Option<&[u8]> {
    Reader::new(body).c_string()
}
