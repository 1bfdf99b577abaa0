//! Rows for the wire: each column of a row batch gets a [`ColumnEncoder`], which makes the cells of its rows as DataRow
//! carries them.
//!
//! What can be decided once per column is decided in [`ColumnEncoder::new`]. A block of rows is first taken column by column: short
//! cells are made as [`Word`]s, longer ones of bounded size are put into [`Slot`]s, of texts it is noted where they lie, the others are written end to end. Then the cells
//! are copied row by row, short ones with a constant size, which compiles to a few moves instead of a call. Nothing is allocated per
//! cell.

mod slot;
mod word;

use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, FixedSizeBinaryArray, IntervalMonthDayNanoArray, PrimitiveArray, StringArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal64Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType,
};

use self::slot::{Iso, LENGTH_BYTES, SLOT_BYTES, Slot, store};
use self::word::{DECIMAL_LIMIT, SCALE_MAX, WORD_BYTES, Word};
use super::access::{TextColumn, interval_of};
use super::binary::{JSONB_VERSION, encode_network, interval_bytes};
use super::datetime::calendar::is_finite;
use super::datetime::output::write_timestamptz_at;
use super::datetime::zone::OffsetCursor;
use super::numeric::array::NumericColumn;
use super::text::{uuid_text, write_bytea, write_network};
use super::{DateStyle, Element, FormatSettings, PgType, array, bits, datetime, float, interval};

/// A result format code (PostgreSQL: Message Flow, Formats and Format Codes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Text,
    Binary,
}

/// Rows that are taken column by column before they are put together: what lies between stays in the processor's nearest cache.
const BLOCK_ROWS: usize = 128;

/// Makes the cells of one column in one format.
#[derive(Debug)]
pub struct ColumnEncoder<'s> {
    nulls: Option<NullBuffer>,
    cells: Cells<'s>,
    staged: Staged,
}

/// The column in the shape that its cells are made from fastest.
#[derive(Debug)]
enum Cells<'s> {
    Short(Short),
    Bounded(Bounded<'s>),
    Texts(Texts),
    Others(Others<'s>),
}

/// Cells that fit into a [`Word`].
#[derive(Debug)]
enum Short {
    /// The type of a NullArray: no row is read, every cell is NULL.
    Nothing,
    BoolText(BooleanBuffer),
    BoolBinary(BooleanBuffer),
    Int2Text(ScalarBuffer<i16>),
    Int4Text(ScalarBuffer<i32>),
    /// Binary of two, four and eight bytes: integers, dates, times.
    Fixed2(ScalarBuffer<i16>),
    Fixed4(ScalarBuffer<i32>),
    Fixed8(ScalarBuffer<i64>),
    Float4Binary(ScalarBuffer<f32>),
    Float8Binary(ScalarBuffer<f64>),
}

/// Cells that fit into a [`Slot`].
#[derive(Debug)]
enum Bounded<'s> {
    Int8Text(ScalarBuffer<i64>),
    Float4Text(ScalarBuffer<f32>, i32),
    Float8Text(ScalarBuffer<f64>, i32),
    DecimalText(ScalarBuffer<i64>, u16),
    DecimalBinary(ScalarBuffer<i64>, u16),
    IntervalBinary(IntervalMonthDayNanoArray),
    UuidText(FixedSizeBinaryArray),
    UuidBinary(FixedSizeBinaryArray),
    TimeText(ScalarBuffer<i64>),
    /// In ISO style.
    DateText(ScalarBuffer<i32>, &'s FormatSettings, Iso),
    TimestampText(ScalarBuffer<i64>, &'s FormatSettings, Iso),
    TimestamptzText(ScalarBuffer<i64>, &'s FormatSettings, OffsetCursor, Iso),
}

/// Cells that are, in either format, bytes that lie in an array already.
#[derive(Debug)]
enum Texts {
    Plain(StringArray),
    /// By dictionary key.
    Dictionary(ScalarBuffer<i32>, StringArray),
}

/// All other cells.
#[derive(Debug)]
enum Others<'s> {
    /// In styles other than ISO.
    DateText(ScalarBuffer<i32>, &'s FormatSettings),
    TimestampText(ScalarBuffer<i64>, &'s FormatSettings),
    TimestamptzText(ScalarBuffer<i64>, &'s FormatSettings, OffsetCursor),
    NumericText(ArrayRef),
    NumericBinary(ArrayRef),
    JsonbBinary(ArrayRef),
    IntervalText(IntervalMonthDayNanoArray, &'s FormatSettings),
    BitsBinary(ArrayRef),
    ByteaText(BinaryArray, &'s FormatSettings),
    Bytes(BinaryArray),
    NetworkText(BinaryArray, PgType),
    NetworkBinary(BinaryArray, PgType),
    ArrayText(BinaryArray, Element, &'s FormatSettings),
}

/// The cells of one block of a column.
#[derive(Debug, Default)]
struct Staged {
    /// If all of them are short.
    words: Vec<Word>,
    /// Of each word's cell, its length included, where all have the same.
    width: Option<usize>,
    /// Else.
    slots: Vec<Slot>,
    /// Where each text lies in its array; [`NULL`].
    places: Vec<(u32, u32)>,
    /// Cells end to end, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Reused.
    scratch: Vec<u8>,
}

/// The length of a text that is none.
const NULL: u32 = u32::MAX;

impl<'s> ColumnEncoder<'s> {
    /// Panics if the column's array form is not one of the type's.
    pub fn new(column: &ArrayRef, pg_type: PgType, format: Format, settings: &'s FormatSettings) -> Self {
        let nulls = column.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        Self { nulls, cells: Cells::new(column, pg_type, format, settings), staged: Staged::default() }
    }

    /// Appends the cell of `row`: its length as int32 and its bytes, or -1 for NULL.
    pub fn write(&mut self, row: usize, out: &mut Vec<u8>) {
        let at = out.len();
        let room = self.stage(row..row + 1);
        out.resize(at + room + SLOT_BYTES, 0);
        let end = self.copy(0, out, at);
        out.truncate(end);
    }

    /// What all cells of a column take at most, lengths included. None: not known before they are made. Panics as [`Self::new`].
    pub fn bytes_max(
        column: &ArrayRef,
        pg_type: PgType,
        format: Format,
        settings: &'s FormatSettings,
    ) -> Option<usize> {
        let rows = column.len();
        match Cells::new(column, pg_type, format, settings) {
            Cells::Short(_) => Some(rows * WORD_BYTES),
            Cells::Bounded(_) => Some(rows * SLOT_BYTES),
            Cells::Texts(texts) => Some(texts.bytes_max(rows)),
            Cells::Others(_) => None,
        }
    }

    /// Makes the cells of these rows; how many bytes they take at most.
    fn stage(&mut self, rows: Range<usize>) -> usize {
        let Self { nulls, cells, staged } = self;
        let nulls = nulls.as_ref();
        match cells {
            Cells::Short(short) => {
                staged.width = if nulls.is_none() { short.width() } else { None };
                short.stage(nulls, rows, &mut staged.words)
            }
            Cells::Bounded(bounded) => bounded.stage(nulls, rows, staged),
            Cells::Texts(texts) => texts.stage(nulls, rows, staged),
            Cells::Others(others) => others.stage(nulls, rows, staged),
        }
    }

    /// Copies a staged cell to where it belongs; where it ends. Behind it is room for a slot.
    #[inline(always)]
    fn copy(&self, index: usize, out: &mut [u8], at: usize) -> usize {
        if let Some(width) = self.staged.width {
            // Where the next cell belongs does not wait for this one's length to be loaded.
            store(out, at, self.staged.words[index].bytes());
            return at + width;
        }
        match &self.cells {
            Cells::Short(_) | Cells::Bounded(_) => match self.staged.words.get(index) {
                Some(word) => {
                    store(out, at, word.bytes());
                    at + word.length()
                }
                None => {
                    let slot = &self.staged.slots[index];
                    store(out, at, *slot.bytes());
                    at + slot.length()
                }
            },
            Cells::Texts(texts) => {
                let (start, length) = self.staged.places[index];
                copy_text(texts.bytes(), start as usize, length, out, at)
            }
            Cells::Others(_) => {
                let start = index.checked_sub(1).map_or(0, |before| self.staged.ends[before] as usize);
                let cell = &self.staged.bytes[start..self.staged.ends[index] as usize];
                out[at..at + cell.len()].copy_from_slice(cell);
                at + cell.len()
            }
        }
    }
}

/// Appends DataRow messages of these rows, a cell of every column in each.
pub fn write_rows(encoders: &mut [ColumnEncoder<'_>], rows: Range<usize>, out: &mut Vec<u8>) {
    let columns = u16::try_from(encoders.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut at = out.len();
    for first in rows.clone().step_by(BLOCK_ROWS) {
        let block = first..rows.end.min(first + BLOCK_ROWS);
        let room: usize = encoders.iter_mut().map(|encoder| encoder.stage(block.clone())).sum();
        let end = at + block.len() * ROW_HEADER_BYTES + room + SLOT_BYTES;
        if out.len() < end {
            out.resize(end, 0);
        }
        for index in 0..block.len() {
            let start = at;
            at += ROW_HEADER_BYTES;
            for encoder in &*encoders {
                at = encoder.copy(index, out, at);
            }
            let [a, b, c, d] = u32::try_from(at - start - 1).unwrap_or(u32::MAX).to_be_bytes();
            store(out, start, [b'D', a, b, c, d, columns[0], columns[1]]);
        }
    }
    out.truncate(at);
}

/// Bytes that [`write_rows`] may want beyond those it writes: cells are put where any of their column would have room, texts aside.
pub fn room_beyond(rows: usize, columns: usize) -> usize {
    rows.min(BLOCK_ROWS) * (ROW_HEADER_BYTES + columns * SLOT_BYTES) + SLOT_BYTES
}

/// Of a DataRow: type, length and number of columns.
pub const ROW_HEADER_BYTES: usize = 7;

#[inline]
fn copy_text(bytes: &[u8], start: usize, length: u32, out: &mut [u8], at: usize) -> usize {
    /// Copied with a constant size.
    const SHORT: usize = 32;
    store(out, at, length.to_be_bytes());
    let at = at + LENGTH_BYTES;
    if length == NULL {
        return at;
    }
    let length = length as usize;
    match bytes.get(start..).and_then(|rest| rest.first_chunk::<SHORT>()) {
        Some(short) if length <= SHORT => store(out, at, *short),
        _ => out[at..at + length].copy_from_slice(&bytes[start..start + length]),
    }
    at + length
}

impl<'s> Cells<'s> {
    fn new(column: &ArrayRef, pg_type: PgType, format: Format, settings: &'s FormatSettings) -> Self {
        if *column.data_type() == DataType::Null {
            return Self::Short(Short::Nothing);
        }
        match format {
            Format::Text => Self::text(column, pg_type, settings),
            Format::Binary => Self::binary(column, pg_type),
        }
    }

    fn text(column: &ArrayRef, pg_type: PgType, settings: &'s FormatSettings) -> Self {
        let is_iso = settings.date_style == DateStyle::Iso;
        let digits = settings.extra_float_digits;
        Self::Bounded(match pg_type {
            PgType::Bool => return Self::Short(Short::BoolText(column.as_boolean().values().clone())),
            PgType::Int2 => return Self::Short(Short::Int2Text(values::<Int16Type>(column))),
            PgType::Int4 => return Self::Short(Short::Int4Text(values::<Int32Type>(column))),
            PgType::Int8 => Bounded::Int8Text(values::<Int64Type>(column)),
            PgType::Float4 => Bounded::Float4Text(values::<Float32Type>(column), digits),
            PgType::Float8 => Bounded::Float8Text(values::<Float64Type>(column), digits),
            PgType::Numeric => match decimals(column) {
                Some((mantissas, scale)) => Bounded::DecimalText(mantissas, scale),
                None => return Self::Others(Others::NumericText(column.clone())),
            },
            PgType::Time => Bounded::TimeText(values::<Int64Type>(column)),
            PgType::Date if is_iso => Bounded::DateText(values::<Int32Type>(column), settings, Iso::new()),
            PgType::Timestamp if is_iso => Bounded::TimestampText(values::<Int64Type>(column), settings, Iso::new()),
            PgType::Timestamptz if is_iso => {
                let cursor = OffsetCursor::new(&settings.time_zone);
                Bounded::TimestamptzText(values::<Int64Type>(column), settings, cursor, Iso::new())
            }
            PgType::Uuid => Bounded::UuidText(column.as_fixed_size_binary().clone()),
            _ => return Self::long_text(column, pg_type, settings),
        })
    }

    /// Of types whose cells may have any length.
    fn long_text(column: &ArrayRef, pg_type: PgType, settings: &'s FormatSettings) -> Self {
        Self::Others(match pg_type {
            PgType::Date => Others::DateText(values::<Int32Type>(column), settings),
            PgType::Timestamp => Others::TimestampText(values::<Int64Type>(column), settings),
            PgType::Timestamptz => {
                let cursor = OffsetCursor::new(&settings.time_zone);
                Others::TimestamptzText(values::<Int64Type>(column), settings, cursor)
            }
            PgType::Interval => {
                Others::IntervalText(column.as_primitive::<IntervalMonthDayNanoType>().clone(), settings)
            }
            PgType::Bytea => Others::ByteaText(column.as_binary().clone(), settings),
            PgType::Inet | PgType::Cidr => Others::NetworkText(column.as_binary().clone(), pg_type),
            PgType::Array(element) => Others::ArrayText(column.as_binary().clone(), element, settings),
            _ => return Self::Texts(Texts::of(column)),
        })
    }

    fn binary(column: &ArrayRef, pg_type: PgType) -> Self {
        Self::Short(match pg_type {
            PgType::Bool => Short::BoolBinary(column.as_boolean().values().clone()),
            PgType::Int2 => Short::Fixed2(values::<Int16Type>(column)),
            PgType::Int4 | PgType::Date => Short::Fixed4(values::<Int32Type>(column)),
            PgType::Int8 | PgType::Time | PgType::Timestamp | PgType::Timestamptz => {
                Short::Fixed8(values::<Int64Type>(column))
            }
            PgType::Float4 => Short::Float4Binary(values::<Float32Type>(column)),
            PgType::Float8 => Short::Float8Binary(values::<Float64Type>(column)),
            PgType::Numeric => match decimals(column) {
                Some((mantissas, scale)) => return Self::Bounded(Bounded::DecimalBinary(mantissas, scale)),
                None => return Self::Others(Others::NumericBinary(column.clone())),
            },
            PgType::Interval => {
                return Self::Bounded(Bounded::IntervalBinary(
                    column.as_primitive::<IntervalMonthDayNanoType>().clone(),
                ));
            }
            PgType::Uuid => return Self::Bounded(Bounded::UuidBinary(column.as_fixed_size_binary().clone())),
            PgType::Bytea | PgType::Array(_) => return Self::Others(Others::Bytes(column.as_binary().clone())),
            PgType::Inet | PgType::Cidr => {
                return Self::Others(Others::NetworkBinary(column.as_binary().clone(), pg_type));
            }
            PgType::Bit | PgType::Varbit => return Self::Others(Others::BitsBinary(column.clone())),
            PgType::Jsonb => return Self::Others(Others::JsonbBinary(column.clone())),
            PgType::Text
            | PgType::Varchar
            | PgType::Bpchar
            | PgType::Name
            | PgType::Json
            | PgType::Enum(_)
            | PgType::Unknown => {
                return Self::Texts(Texts::of(column));
            }
        })
    }
}

impl Bounded<'_> {
    fn stage(&mut self, nulls: Option<&NullBuffer>, rows: Range<usize>, staged: &mut Staged) -> usize {
        let count = rows.len();
        if self.stage_words(nulls, rows.clone(), &mut staged.words) {
            return count * WORD_BYTES;
        }
        staged.words.clear();
        let Staged { slots, scratch, .. } = staged;
        slots.resize(count, Slot::EMPTY);
        let cells = Fill { nulls, rows, slots };
        match self {
            Self::Int8Text(values) => cells.of(values, |value, slot| slot.put_decimal(value, 0)),
            Self::Float4Text(values, digits) => {
                cells.of(values, |value, slot| match float::short_float4(value, *digits) {
                    Some((mantissa, scale)) => slot.put_decimal(mantissa, scale),
                    None => written(slot, scratch, |out| float::write_float4(value, *digits, out)),
                })
            }
            Self::Float8Text(values, digits) => {
                cells.of(values, |value, slot| match float::short_float8(value, *digits) {
                    Some((mantissa, scale)) => slot.put_decimal(mantissa, scale),
                    None => written(slot, scratch, |out| float::write_float8(value, *digits, out)),
                })
            }
            Self::DecimalText(values, scale) => cells.of(values, |value, slot| slot.put_decimal(value, *scale)),
            Self::DecimalBinary(values, scale) => {
                cells.of(values, |value, slot| slot.put_decimal_binary(value, *scale))
            }
            Self::IntervalBinary(values) => {
                cells.of(values.values(), |value, slot| slot.put(&interval_bytes(interval_of(value))));
            }
            Self::UuidText(values) => cells.each(|row, slot| slot.put(&uuid_text(&uuid_at(values, row)))),
            Self::UuidBinary(values) => cells.each(|row, slot| slot.put(&uuid_at(values, row))),
            Self::TimeText(values) => cells.of(values, |value, slot| {
                written(slot, scratch, |out| datetime::write_time(value, out));
            }),
            Self::DateText(values, settings, iso) => cells.of(values, |value, slot| {
                if !iso.put_date(value, slot) {
                    written(slot, scratch, |out| datetime::write_date(value, settings, out));
                }
            }),
            Self::TimestampText(values, settings, iso) => cells.of(values, |value, slot| {
                if !iso.put_timestamp(value, None, slot) {
                    written(slot, scratch, |out| datetime::write_timestamp(value, settings, out));
                }
            }),
            Self::TimestamptzText(values, settings, cursor, iso) => cells.of(values, |value, slot| {
                let offset = is_finite(value).then(|| cursor.offset_at(value));
                if !offset.is_some_and(|offset| iso.put_timestamp(value + offset, Some(offset), slot)) {
                    written(slot, scratch, |out| write_timestamptz_at(value, settings, cursor, out));
                }
            }),
        }
        count * SLOT_BYTES
    }

    /// Numbers that are all short. False: there are none, or some may be longer than a word.
    fn stage_words(&self, nulls: Option<&NullBuffer>, rows: Range<usize>, words: &mut Vec<Word>) -> bool {
        let (values, scale) = match self {
            Self::Int8Text(values) => (values, 0),
            Self::DecimalText(values, scale) if *scale <= SCALE_MAX => (values, *scale),
            _ => return false,
        };
        let is_short = values[rows.clone()].iter().all(|value| value.unsigned_abs() < DECIMAL_LIMIT);
        if is_short {
            Words { nulls, rows, words }.of(values, |value| Word::decimal(value, scale));
        }
        is_short
    }
}

impl Short {
    /// Of every cell that is not NULL, its length included, where all have the same.
    fn width(&self) -> Option<usize> {
        let bytes = match self {
            Self::Nothing | Self::Int2Text(_) | Self::Int4Text(_) => return None,
            Self::BoolText(_) | Self::BoolBinary(_) => 1,
            Self::Fixed2(_) => 2,
            Self::Fixed4(_) | Self::Float4Binary(_) => 4,
            Self::Fixed8(_) | Self::Float8Binary(_) => 8,
        };
        Some(LENGTH_BYTES + bytes)
    }

    fn stage(&self, nulls: Option<&NullBuffer>, rows: Range<usize>, words: &mut Vec<Word>) -> usize {
        let count = rows.len();
        let cells = Words { nulls, rows, words };
        match self {
            Self::Nothing => cells.each(|_| Word::NULL),
            Self::BoolText(values) => cells.each(|row| Word::of([if values.value(row) { b't' } else { b'f' }])),
            Self::BoolBinary(values) => cells.each(|row| Word::of([u8::from(values.value(row))])),
            Self::Int2Text(values) => cells.of(values, |value| Word::decimal(i64::from(value), 0)),
            Self::Int4Text(values) => cells.of(values, |value| Word::decimal(i64::from(value), 0)),
            Self::Fixed2(values) => cells.of(values, |value| Word::of(value.to_be_bytes())),
            Self::Fixed4(values) => cells.of(values, |value| Word::of(value.to_be_bytes())),
            Self::Fixed8(values) => cells.of(values, |value| Word::of(value.to_be_bytes())),
            Self::Float4Binary(values) => cells.of(values, |value| Word::of(value.to_be_bytes())),
            Self::Float8Binary(values) => cells.of(values, |value| Word::of(value.to_be_bytes())),
        }
        count * WORD_BYTES
    }
}

/// The words of some rows, to be made in place of those before.
struct Words<'a> {
    nulls: Option<&'a NullBuffer>,
    rows: Range<usize>,
    words: &'a mut Vec<Word>,
}

impl Words<'_> {
    /// What is under a NULL is not looked at.
    #[inline]
    fn each(self, make: impl Fn(usize) -> Word) {
        self.words.clear();
        match self.nulls {
            None => self.words.extend(self.rows.map(make)),
            Some(nulls) => {
                self.words.extend(self.rows.map(|row| if nulls.is_null(row) { Word::NULL } else { make(row) }));
            }
        }
    }

    #[inline]
    fn of<T: Copy>(self, values: &[T], make: impl Fn(T) -> Word) {
        match self.nulls {
            None => {
                self.words.clear();
                self.words.extend(values[self.rows].iter().map(|value| make(*value)));
            }
            Some(_) => self.each(|row| make(values[row])),
        }
    }
}

/// The slots of some rows.
struct Fill<'a> {
    nulls: Option<&'a NullBuffer>,
    rows: Range<usize>,
    slots: &'a mut [Slot],
}

impl Fill<'_> {
    /// What is under a NULL is not looked at.
    #[inline]
    fn each(self, mut put: impl FnMut(usize, &mut Slot)) {
        let places = self.rows.zip(self.slots);
        match self.nulls {
            None => places.for_each(|(row, slot)| put(row, slot)),
            Some(nulls) => places.for_each(|(row, slot)| match nulls.is_null(row) {
                true => slot.put_null(),
                false => put(row, slot),
            }),
        }
    }

    #[inline]
    fn of<T: Copy>(self, values: &[T], mut put: impl FnMut(T, &mut Slot)) {
        let values = &values[self.rows.clone()];
        match self.nulls {
            None => values.iter().zip(self.slots).for_each(|(value, slot)| put(*value, slot)),
            Some(_) => {
                let first = self.rows.start;
                self.each(|row, slot| put(values[row - first], slot));
            }
        }
    }
}

/// A cell that is written by way of a buffer.
#[inline]
fn written(slot: &mut Slot, scratch: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    scratch.clear();
    write(scratch);
    assert!(slot.put_slice(scratch), "a cell of bounded size fits into a slot");
}

impl Texts {
    fn of(column: &ArrayRef) -> Self {
        match TextColumn::of(column) {
            TextColumn::Plain(values) => Self::Plain(values.clone()),
            TextColumn::Dictionary { values, .. } => {
                Self::Dictionary(column.as_dictionary::<Int32Type>().keys().values().clone(), values.clone())
            }
        }
    }

    /// See [`ColumnEncoder::bytes_max`].
    fn bytes_max(&self, rows: usize) -> usize {
        let bytes = match self {
            Self::Plain(values) => (values.value_offsets()[rows] - values.value_offsets()[0]) as usize,
            Self::Dictionary(_, values) => {
                let lengths = values.value_offsets().windows(2).map(|ends| (ends[1] - ends[0]) as usize);
                rows * lengths.max().unwrap_or(0)
            }
        };
        bytes + rows * LENGTH_BYTES
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(values) | Self::Dictionary(_, values) => values.value_data(),
        }
    }

    fn stage(&self, nulls: Option<&NullBuffer>, rows: Range<usize>, staged: &mut Staged) -> usize {
        let count = rows.len();
        let is_null = |row| nulls.is_some_and(|nulls| nulls.is_null(row));
        let place = |values: &StringArray, at: usize| {
            let offsets = values.value_offsets();
            (offsets[at] as u32, (offsets[at + 1] - offsets[at]) as u32)
        };
        staged.places.clear();
        staged.places.extend(rows.map(|row| match self {
            _ if is_null(row) => (0, NULL),
            Self::Plain(values) => place(values, row),
            Self::Dictionary(keys, values) => place(values, keys[row] as usize),
        }));
        let lengths = staged.places.iter().map(|(_, length)| if *length == NULL { 0 } else { *length as usize });
        lengths.sum::<usize>() + count * LENGTH_BYTES
    }
}

impl Others<'_> {
    fn stage(&mut self, nulls: Option<&NullBuffer>, rows: Range<usize>, staged: &mut Staged) -> usize {
        let Staged { bytes, ends, .. } = staged;
        bytes.clear();
        ends.clear();
        for row in rows {
            let start = bytes.len();
            bytes.extend_from_slice(&(-1i32).to_be_bytes());
            if !nulls.is_some_and(|nulls| nulls.is_null(row)) {
                self.write(row, bytes);
                let length = (bytes.len() - start - LENGTH_BYTES) as u32;
                store(bytes, start, length.to_be_bytes());
            }
            ends.push(bytes.len() as u32);
        }
        bytes.len()
    }

    fn write(&mut self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::DateText(values, settings) => datetime::write_date(values[row], settings, out),
            Self::TimestampText(values, settings) => datetime::write_timestamp(values[row], settings, out),
            Self::TimestamptzText(values, settings, cursor) => {
                write_timestamptz_at(values[row], settings, cursor, out);
            }
            Self::NumericText(column) => NumericColumn::of(column).get(row).write_text(out),
            Self::NumericBinary(column) => NumericColumn::of(column).get(row).encode_binary(out),
            Self::JsonbBinary(column) => {
                out.push(JSONB_VERSION);
                out.extend_from_slice(TextColumn::of(column).get(row).as_bytes());
            }
            Self::IntervalText(values, settings) => interval::write(&interval_of(values.value(row)), settings, out),
            Self::BitsBinary(column) => bits::encode(TextColumn::of(column.as_ref()).get(row), out),
            Self::ByteaText(values, settings) => write_bytea(values.value(row), settings.bytea_output, out),
            Self::NetworkText(values, pg_type) => write_network(values.value(row), *pg_type, out),
            Self::NetworkBinary(values, pg_type) => encode_network(values.value(row), *pg_type, out),
            Self::Bytes(values) => out.extend_from_slice(values.value(row)),
            Self::ArrayText(values, element, settings) => array::write_text(values.value(row), *element, settings, out),
        }
    }
}

fn values<T: ArrowPrimitiveType>(column: &ArrayRef) -> ScalarBuffer<T::Native> {
    let column: &PrimitiveArray<T> = column.as_primitive();
    column.values().clone()
}

/// Mantissas of one scale, where the column has them.
fn decimals(column: &ArrayRef) -> Option<(ScalarBuffer<i64>, u16)> {
    match NumericColumn::of(column) {
        NumericColumn::Fixed64 { scale, .. } => Some((values::<Decimal64Type>(column), scale)),
        NumericColumn::Fixed128 { .. } | NumericColumn::PerValue { .. } | NumericColumn::Wide { .. } => None,
    }
}

fn uuid_at(values: &FixedSizeBinaryArray, row: usize) -> [u8; 16] {
    values.value(row).try_into().expect("a uuid column is 16 bytes wide")
}

#[cfg(test)]
mod tests;
