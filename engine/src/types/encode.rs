//! Rows for the wire: each column of a row batch gets a [`ColumnEncoder`], which appends the cells of its rows as
//! DataRow carries them.
//!
//! What can be decided once per column is decided in [`ColumnEncoder::new`]. Short cells are put together in a
//! scratch array and copied with a constant size, which compiles to a few moves instead of a call; nothing is
//! allocated per cell.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, FixedSizeBinaryArray, IntervalMonthDayNanoArray, PrimitiveArray, StringArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
};

use super::access::{TextColumn, interval_of};
use super::binary::{JSONB_VERSION, interval_bytes};
use super::datetime::calendar::{civil_from_days, is_finite, split};
use super::datetime::output::write_timestamptz_at;
use super::datetime::zone::OffsetCursor;
use super::numeric::array::NumericColumn;
use super::numeric::wire::{BASE, HEADER_BYTES, SIGN_NEGATIVE, SIGN_POSITIVE, header, low_digit};
use super::text::{uuid_text, write_bytea};
use super::{DateStyle, Element, FormatSettings, PgType, array, bits, datetime, float, interval};

/// A result format code (PostgreSQL: Message Flow, Formats and Format Codes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Text,
    Binary,
}

/// Writes the cells of one column in one format.
#[derive(Debug)]
pub struct ColumnEncoder<'s> {
    nulls: Option<NullBuffer>,
    cells: Cells<'s>,
}

/// The column in the shape that its cells are written from fastest.
#[derive(Debug)]
enum Cells<'s> {
    /// The type of a NullArray: no row is read, every cell is NULL.
    Nothing,
    BoolText(BooleanBuffer),
    BoolBinary(BooleanBuffer),
    Int2Text(ScalarBuffer<i16>),
    Int4Text(ScalarBuffer<i32>),
    Int8Text(ScalarBuffer<i64>),
    /// Binary of two, four and eight bytes: integers, dates, times.
    Fixed2(ScalarBuffer<i16>),
    Fixed4(ScalarBuffer<i32>),
    Fixed8(ScalarBuffer<i64>),
    Float4Text(ScalarBuffer<f32>, i32),
    Float8Text(ScalarBuffer<f64>, i32),
    Float4Binary(ScalarBuffer<f32>),
    Float8Binary(ScalarBuffer<f64>),
    Decimal64Text(ScalarBuffer<i64>, u16),
    NumericText(ArrayRef),
    Decimal64Binary(ScalarBuffer<i64>, u16),
    NumericBinary(ArrayRef),
    /// Text in either format: the bytes themselves, after a prefix.
    Text(StringArray, &'static [u8]),
    /// Cells by dictionary key, rendered beforehand.
    Rendered(ScalarBuffer<i32>, Rendered),
    Dictionary(ScalarBuffer<i32>, StringArray, &'static [u8]),
    DateText(ScalarBuffer<i32>, &'s FormatSettings),
    TimeText(ScalarBuffer<i64>),
    TimestampText(ScalarBuffer<i64>, &'s FormatSettings, IsoTimestamp),
    TimestamptzText(ScalarBuffer<i64>, &'s FormatSettings, OffsetCursor, IsoTimestamp),
    IntervalText(IntervalMonthDayNanoArray, &'s FormatSettings),
    IntervalBinary(IntervalMonthDayNanoArray),
    UuidText(FixedSizeBinaryArray),
    UuidBinary(FixedSizeBinaryArray),
    BitsBinary(ArrayRef),
    ByteaText(BinaryArray, &'s FormatSettings),
    ByteaBinary(BinaryArray),
    ArrayText(BinaryArray, Element, &'s FormatSettings),
}

/// The int32 before each cell.
const LENGTH_BYTES: usize = 4;

impl<'s> ColumnEncoder<'s> {
    /// Panics if the column's array form is not one of the type's.
    pub fn new(column: &ArrayRef, pg_type: PgType, format: Format, settings: &'s FormatSettings) -> Self {
        Self { nulls: column.logical_nulls(), cells: Cells::new(column, pg_type, format, settings) }
    }

    /// Appends the cell of `row`: its length as int32 and its bytes, or -1 for NULL.
    #[inline]
    pub fn write(&mut self, row: usize, out: &mut Vec<u8>) {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return out.extend_from_slice(&(-1i32).to_be_bytes());
        }
        self.cells.write(row, out);
    }
}

/// Appends `rows` DataRow messages, a cell of every column in each.
pub fn write_rows(encoders: &mut [ColumnEncoder<'_>], rows: usize, out: &mut Vec<u8>) {
    let columns = u16::try_from(encoders.len()).unwrap_or(u16::MAX).to_be_bytes();
    for row in 0..rows {
        let start = out.len();
        out.extend_from_slice(&[b'D', 0, 0, 0, 0, columns[0], columns[1]]);
        for encoder in &mut *encoders {
            encoder.write(row, out);
        }
        let length = u32::try_from(out.len() - start - 1).unwrap_or(u32::MAX);
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }
}

impl<'s> Cells<'s> {
    fn new(column: &ArrayRef, pg_type: PgType, format: Format, settings: &'s FormatSettings) -> Self {
        if *column.data_type() == DataType::Null {
            return Self::Nothing;
        }
        let is_text = format == Format::Text;
        match pg_type {
            PgType::Bool if is_text => Self::BoolText(column.as_boolean().values().clone()),
            PgType::Bool => Self::BoolBinary(column.as_boolean().values().clone()),
            PgType::Int2 if is_text => Self::Int2Text(values::<Int16Type>(column)),
            PgType::Int2 => Self::Fixed2(values::<Int16Type>(column)),
            PgType::Int4 if is_text => Self::Int4Text(values::<Int32Type>(column)),
            PgType::Date if is_text => Self::DateText(values::<Int32Type>(column), settings),
            PgType::Int4 | PgType::Date => Self::Fixed4(values::<Int32Type>(column)),
            PgType::Int8 if is_text => Self::Int8Text(values::<Int64Type>(column)),
            PgType::Time if is_text => Self::TimeText(values::<Int64Type>(column)),
            PgType::Timestamp if is_text => {
                Self::TimestampText(values::<Int64Type>(column), settings, IsoTimestamp::new())
            }
            PgType::Timestamptz if is_text => Self::TimestamptzText(
                values::<Int64Type>(column),
                settings,
                OffsetCursor::new(&settings.time_zone),
                IsoTimestamp::new(),
            ),
            PgType::Int8 | PgType::Time | PgType::Timestamp | PgType::Timestamptz => {
                Self::Fixed8(values::<Int64Type>(column))
            }
            PgType::Float4 if is_text => Self::Float4Text(values::<Float32Type>(column), settings.extra_float_digits),
            PgType::Float4 => Self::Float4Binary(values::<Float32Type>(column)),
            PgType::Float8 if is_text => Self::Float8Text(values::<Float64Type>(column), settings.extra_float_digits),
            PgType::Float8 => Self::Float8Binary(values::<Float64Type>(column)),
            PgType::Numeric => Self::numeric(column, format),
            PgType::Interval if is_text => {
                Self::IntervalText(column.as_primitive::<IntervalMonthDayNanoType>().clone(), settings)
            }
            PgType::Interval => Self::IntervalBinary(column.as_primitive::<IntervalMonthDayNanoType>().clone()),
            PgType::Uuid if is_text => Self::UuidText(column.as_fixed_size_binary().clone()),
            PgType::Uuid => Self::UuidBinary(column.as_fixed_size_binary().clone()),
            PgType::Bytea if is_text => Self::ByteaText(column.as_binary().clone(), settings),
            PgType::Array(element) if is_text => Self::ArrayText(column.as_binary().clone(), element, settings),
            PgType::Bytea | PgType::Array(_) => Self::ByteaBinary(column.as_binary().clone()),
            PgType::Bit | PgType::Varbit if !is_text => Self::BitsBinary(column.clone()),
            PgType::Jsonb if !is_text => Self::text(column, &[JSONB_VERSION]),
            PgType::Text
            | PgType::Varchar
            | PgType::Bpchar
            | PgType::Name
            | PgType::Bit
            | PgType::Varbit
            | PgType::Json
            | PgType::Jsonb
            | PgType::Unknown => Self::text(column, b""),
        }
    }

    fn numeric(column: &ArrayRef, format: Format) -> Self {
        let decimal64 = |scale: u16| (values::<arrow::datatypes::Decimal64Type>(column), scale);
        match (NumericColumn::of(column), format) {
            (NumericColumn::Fixed64 { scale, .. }, Format::Text) => {
                let (values, scale) = decimal64(scale);
                Self::Decimal64Text(values, scale)
            }
            (NumericColumn::Fixed64 { scale, .. }, Format::Binary) => {
                let (values, scale) = decimal64(scale);
                Self::Decimal64Binary(values, scale)
            }
            (NumericColumn::Fixed128 { .. } | NumericColumn::PerValue { .. }, Format::Text) => {
                Self::NumericText(column.clone())
            }
            (NumericColumn::Fixed128 { .. } | NumericColumn::PerValue { .. }, Format::Binary) => {
                Self::NumericBinary(column.clone())
            }
        }
    }

    fn text(column: &ArrayRef, prefix: &'static [u8]) -> Self {
        match TextColumn::of(column) {
            TextColumn::Plain(values) => Self::Text(values.clone(), prefix),
            TextColumn::Dictionary { values, .. } => {
                let keys = column.as_dictionary::<Int32Type>().keys().values().clone();
                // Rendering more values than there are rows costs more than it saves.
                if values.len() <= column.len() {
                    Self::Rendered(keys, Rendered::new(values, prefix))
                } else {
                    Self::Dictionary(keys, values.clone(), prefix)
                }
            }
        }
    }

    #[inline]
    fn write(&mut self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => out.extend_from_slice(&(-1i32).to_be_bytes()),
            Self::BoolText(values) => out.extend_from_slice(&[0, 0, 0, 1, if values.value(row) { b't' } else { b'f' }]),
            Self::BoolBinary(values) => out.extend_from_slice(&[0, 0, 0, 1, u8::from(values.value(row))]),
            Self::Int2Text(values) => write_decimal64(i64::from(values[row]), 0, out),
            Self::Int4Text(values) => write_decimal64(i64::from(values[row]), 0, out),
            Self::Int8Text(values) => write_decimal64(values[row], 0, out),
            Self::Fixed2(values) => {
                let [a, b] = values[row].to_be_bytes();
                out.extend_from_slice(&[0, 0, 0, 2, a, b]);
            }
            Self::Fixed4(values) => out.extend_from_slice(&fixed4(values[row].to_be_bytes())),
            Self::Fixed8(values) => out.extend_from_slice(&fixed8(values[row].to_be_bytes())),
            Self::Float4Binary(values) => out.extend_from_slice(&fixed4(values[row].to_be_bytes())),
            Self::Float8Binary(values) => out.extend_from_slice(&fixed8(values[row].to_be_bytes())),
            Self::Float4Text(values, digits) => measured(out, |out| float::write_float4(values[row], *digits, out)),
            Self::Float8Text(values, digits) => measured(out, |out| float::write_float8(values[row], *digits, out)),
            Self::Decimal64Text(values, scale) => write_decimal64(values[row], *scale, out),
            Self::NumericText(column) => measured(out, |out| NumericColumn::of(column).get(row).write_text(out)),
            Self::Decimal64Binary(values, scale) => write_decimal64_binary(values[row], *scale, out),
            Self::NumericBinary(column) => measured(out, |out| NumericColumn::of(column).get(row).encode_binary(out)),
            Self::Text(values, prefix) => write_bytes(prefix, values.value(row).as_bytes(), out),
            Self::Rendered(keys, cells) => out.extend_from_slice(cells.get(keys[row] as usize)),
            Self::Dictionary(keys, values, prefix) => {
                write_bytes(prefix, values.value(keys[row] as usize).as_bytes(), out);
            }
            Self::DateText(values, settings) => measured(out, |out| datetime::write_date(values[row], settings, out)),
            Self::TimeText(values) => measured(out, |out| datetime::write_time(values[row], out)),
            Self::TimestampText(values, settings, iso) => {
                let timestamp = values[row];
                if settings.date_style != DateStyle::Iso || !iso.write(timestamp, None, out) {
                    measured(out, |out| datetime::write_timestamp(timestamp, settings, out));
                }
            }
            Self::TimestamptzText(values, settings, cursor, iso) => {
                write_timestamptz(values[row], settings, cursor, iso, out);
            }
            Self::IntervalText(values, settings) => {
                measured(out, |out| interval::write(&interval_of(values.value(row)), settings, out));
            }
            Self::IntervalBinary(values) => write_bytes(b"", &interval_bytes(interval_of(values.value(row))), out),
            Self::UuidText(values) => {
                let uuid = values.value(row).try_into().expect("a uuid column is 16 bytes wide");
                write_bytes(b"", &uuid_text(uuid), out);
            }
            Self::UuidBinary(values) => write_bytes(b"", values.value(row), out),
            Self::BitsBinary(column) => {
                measured(out, |out| bits::encode(TextColumn::of(column.as_ref()).get(row), out))
            }
            Self::ByteaText(values, settings) => {
                measured(out, |out| write_bytea(values.value(row), settings.bytea_output, out));
            }
            Self::ArrayText(values, element, settings) => {
                measured(out, |out| array::write_text(values.value(row), *element, settings, out));
            }
            Self::ByteaBinary(values) => write_bytes(b"", values.value(row), out),
        }
    }
}

fn values<T: ArrowPrimitiveType>(column: &ArrayRef) -> ScalarBuffer<T::Native> {
    let column: &PrimitiveArray<T> = column.as_primitive();
    column.values().clone()
}

#[inline]
fn fixed4([a, b, c, d]: [u8; 4]) -> [u8; 8] {
    [0, 0, 0, 4, a, b, c, d]
}

#[inline]
fn fixed8([a, b, c, d, e, f, g, h]: [u8; 8]) -> [u8; 12] {
    [0, 0, 0, 8, a, b, c, d, e, f, g, h]
}

/// A cell of which only its writer knows the length.
#[inline]
fn measured(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    write(out);
    let length = (out.len() - start - LENGTH_BYTES) as u32;
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

#[inline]
fn write_bytes(prefix: &[u8], bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(LENGTH_BYTES + prefix.len() + bytes.len());
    out.extend_from_slice(&((prefix.len() + bytes.len()) as u32).to_be_bytes());
    out.extend_from_slice(prefix);
    out.extend_from_slice(bytes);
}

/// "00" to "99".
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The cell of `mantissa` × 10^-`scale`, `scale` at most 18: written from its end, then copied at constant size.
#[inline]
fn write_decimal64(mantissa: i64, scale: u16, out: &mut Vec<u8>) {
    /// Length, sign, 19 digits and point take 25 bytes at most; they end here, and as many are copied from their start.
    const END: usize = 32;
    let mut scratch = [0u8; 2 * END];
    let mut at = END;
    let mut rest = mantissa.unsigned_abs();
    let mut decimals = scale;
    while decimals >= 2 {
        at -= 2;
        scratch[at..at + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
        decimals -= 2;
    }
    if decimals == 1 {
        at -= 1;
        scratch[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if scale > 0 {
        at -= 1;
        scratch[at] = b'.';
    }
    while rest >= 100 {
        at -= 2;
        scratch[at..at + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest >= 10 {
        at -= 2;
        scratch[at..at + 2].copy_from_slice(&PAIRS[rest as usize]);
    } else {
        at -= 1;
        scratch[at] = b'0' + rest as u8;
    }
    if mantissa < 0 {
        at -= 1;
        scratch[at] = b'-';
    }
    let length = END - at;
    at -= LENGTH_BYTES;
    scratch[at..at + LENGTH_BYTES].copy_from_slice(&(length as u32).to_be_bytes());
    let end = out.len() + LENGTH_BYTES + length;
    out.extend_from_slice(&scratch[at..at + END]);
    out.truncate(end);
}

/// As [`write_decimal64`], in the binary format: see [`super::numeric::wire`].
#[inline]
fn write_decimal64_binary(mantissa: i64, scale: u16, out: &mut Vec<u8>) {
    /// Length, header and at most six digits.
    const END: usize = 32;
    let mut scratch = [0u8; 2 * END];
    let mut at = END;
    let mut rest = mantissa.unsigned_abs();
    // The weight of the digit that is next; digits that are zero at the end are not sent.
    let mut weight = -i16::try_from(scale.div_ceil(4)).unwrap_or(0);
    let mut push = |digit: u64, weight: &mut i16| {
        if digit != 0 || at < END {
            at -= 2;
            scratch[at..at + 2].copy_from_slice(&(digit as u16).to_be_bytes());
        }
        *weight += 1;
    };
    if !scale.is_multiple_of(4) && rest > 0 {
        let (low, unit) = low_digit(4 - scale % 4);
        push(rest % low * u64::from(unit), &mut weight);
        rest /= low;
    }
    while rest > 0 {
        push(rest % BASE, &mut weight);
        rest /= BASE;
    }
    let count = (END - at) / 2;
    let weight = if count == 0 { 0 } else { weight - 1 };
    at -= HEADER_BYTES;
    let sign = if mantissa < 0 { SIGN_NEGATIVE } else { SIGN_POSITIVE };
    scratch[at..at + HEADER_BYTES].copy_from_slice(&header(count as u16, weight, sign, scale));
    let length = END - at;
    at -= LENGTH_BYTES;
    scratch[at..at + LENGTH_BYTES].copy_from_slice(&(length as u32).to_be_bytes());
    let end = out.len() + LENGTH_BYTES + length;
    out.extend_from_slice(&scratch[at..at + END]);
    out.truncate(end);
}

fn write_timestamptz(
    timestamp: i64,
    settings: &FormatSettings,
    cursor: &mut OffsetCursor,
    iso: &mut IsoTimestamp,
    out: &mut Vec<u8>,
) {
    if settings.date_style == DateStyle::Iso && is_finite(timestamp) {
        let offset = cursor.offset_at(timestamp);
        if iso.write(timestamp + offset, Some(offset), out) {
            return;
        }
    }
    measured(out, |out| write_timestamptz_at(timestamp, settings, cursor, out));
}

/// Cells of timestamps in ISO style: `yyyy-mm-dd hh:mm:ss`, fraction, zone. Neighbouring rows mostly share the day,
/// so that the date is only written anew when it changes.
#[derive(Debug)]
struct IsoTimestamp {
    cell: [u8; Self::COPIED],
    /// The day that `cell` shows.
    day: i32,
    /// The offset that `zone` shows, in microseconds.
    offset: i64,
    zone: Vec<u8>,
}

impl IsoTimestamp {
    const DATE: usize = LENGTH_BYTES;
    const CLOCK: usize = Self::DATE + 11;
    const FRACTION: usize = Self::CLOCK + 8;
    /// Room for a fraction of seven bytes and a zone of nine, rounded up.
    const COPIED: usize = 40;

    fn new() -> Self {
        let mut cell = [0; Self::COPIED];
        cell[..Self::FRACTION].copy_from_slice(b"\0\0\0\x130000-00-00 00:00:00");
        Self { cell, day: i32::MIN, offset: 0, zone: b"+00".to_vec() }
    }

    /// False if the year is not of four digits AD, or the timestamp infinite; nothing is appended then.
    #[inline]
    fn write(&mut self, local: i64, offset: Option<i64>, out: &mut Vec<u8>) -> bool {
        let (day, microseconds) = split(local);
        if day != self.day && !self.show_day(day) {
            return false;
        }
        let seconds = (microseconds / 1_000_000) as u32;
        let fraction = (microseconds % 1_000_000) as u32;
        self.show_pair(Self::CLOCK, seconds / 3600);
        self.show_pair(Self::CLOCK + 3, seconds / 60 % 60);
        self.show_pair(Self::CLOCK + 6, seconds % 60);
        let mut end = Self::FRACTION;
        if fraction != 0 {
            self.cell[end] = b'.';
            self.show_pair(end + 1, fraction / 10_000);
            self.show_pair(end + 3, fraction / 100 % 100);
            self.show_pair(end + 5, fraction % 100);
            end += 7;
            while self.cell[end - 1] == b'0' {
                end -= 1;
            }
        }
        if let Some(offset) = offset {
            if offset != self.offset {
                self.offset = offset;
                self.zone.clear();
                datetime::output::write_offset(offset, &mut self.zone);
            }
            self.cell[end..end + self.zone.len()].copy_from_slice(&self.zone);
            end += self.zone.len();
        }
        self.cell[LENGTH_BYTES - 1] = (end - LENGTH_BYTES) as u8;
        let total = out.len() + end;
        out.extend_from_slice(&self.cell);
        out.truncate(total);
        true
    }

    fn show_day(&mut self, day: i32) -> bool {
        let civil = civil_from_days(day);
        if !(1..=9999).contains(&civil.year) {
            return false;
        }
        let year = civil.year.unsigned_abs();
        self.show_pair(Self::DATE, year / 100);
        self.show_pair(Self::DATE + 2, year % 100);
        self.show_pair(Self::DATE + 5, civil.month);
        self.show_pair(Self::DATE + 8, civil.day);
        self.day = day;
        true
    }

    #[inline]
    fn show_pair(&mut self, at: usize, number: u32) {
        self.cell[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
    }
}

/// The cells of a dictionary's values, end to end.
#[derive(Debug)]
struct Rendered {
    cells: Vec<u8>,
    ends: Vec<usize>,
}

impl Rendered {
    fn new(values: &StringArray, prefix: &[u8]) -> Self {
        let mut rendered = Self { cells: Vec::new(), ends: Vec::with_capacity(values.len()) };
        for value in values {
            write_bytes(prefix, value.unwrap_or_default().as_bytes(), &mut rendered.cells);
            rendered.ends.push(rendered.cells.len());
        }
        rendered
    }

    #[inline]
    fn get(&self, key: usize) -> &[u8] {
        let start = key.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.cells[start..self.ends[key]]
    }
}

#[cfg(test)]
mod tests;
