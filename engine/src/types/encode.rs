//! Rows for the wire: each column of a row batch gets a [`ColumnEncoder`], which appends a DataRow's cells.

use arrow::array::ArrayRef;

use super::{FormatSettings, PgType, access, binary, text};

/// A result format code (PostgreSQL: Message Flow, Formats and Format Codes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Text,
    Binary,
}

/// Writes the cells of one column in one format.
pub struct ColumnEncoder {
    column: ArrayRef,
    pg_type: PgType,
    format: Format,
    settings: FormatSettings,
}

impl ColumnEncoder {
    pub fn new(column: &ArrayRef, pg_type: PgType, format: Format, settings: &FormatSettings) -> Self {
        Self { column: column.clone(), pg_type, format, settings: settings.clone() }
    }

    /// Appends the cell of `row`: its length as int32 and its bytes, or -1 for NULL.
    pub fn write(&self, row: usize, out: &mut Vec<u8>) {
        let value = access::value_at(&self.column, self.pg_type, row);
        if value.is_null() {
            return out.extend_from_slice(&(-1i32).to_be_bytes());
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match self.format {
            Format::Text => text::write(&value, self.pg_type, &self.settings, out),
            Format::Binary => binary::write(&value, self.pg_type, out),
        }
        let length = (out.len() - start - 4) as i32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}
