//! Copies chosen rows of one column from several arrays into one new array.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, NullArray, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{concat, filter, take};

use crate::catalog::ColumnSchema;
use crate::types::access::{TextColumn, value_at};
use crate::types::build::ColumnBuilder;
use crate::types::{FormatSettings, PgType};

/// Which rows of an array.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rows<'a> {
    All,
    /// Those whose bit is set.
    Alive(&'a BooleanBuffer),
    /// These, in this order.
    Picked(&'a [u32]),
}

impl Rows<'_> {
    fn for_each(&self, length: usize, mut row: impl FnMut(usize)) {
        match self {
            Self::All => (0..length).for_each(row),
            Self::Alive(alive) => alive.set_indices().for_each(row),
            Self::Picked(rows) => rows.iter().for_each(|picked| row(*picked as usize)),
        }
    }

    fn count(&self, length: usize) -> usize {
        match self {
            Self::All => length,
            Self::Alive(alive) => alive.count_set_bits(),
            Self::Picked(rows) => rows.len(),
        }
    }
}

/// The chosen rows of all parts, part after part. Parts may differ in array form (a dictionary here, plain strings there).
pub(super) fn gather(parts: &[(&ArrayRef, Rows<'_>)], column: &ColumnSchema) -> ArrayRef {
    let count = parts.iter().map(|(array, rows)| rows.count(array.len())).sum();
    let Some(pg_type) = column.pg_type else { return Arc::new(NullArray::new(count)) };
    if pg_type.is_text_like() {
        return gather_text(parts, column, pg_type, count);
    }
    let form = parts.first().map(|(array, _)| array.data_type());
    if parts.iter().all(|(array, _)| Some(array.data_type()) == form)
        && let Some(array) = gather_alike(parts)
    {
        return array;
    }
    gather_by_value(parts, column, pg_type)
}

/// All parts of one arrow type. None where arrow's kernels cannot, which costs time only.
fn gather_alike(parts: &[(&ArrayRef, Rows<'_>)]) -> Option<ArrayRef> {
    let mut arrays = Vec::with_capacity(parts.len());
    for (array, rows) in parts {
        arrays.push(match rows {
            Rows::All => ArrayRef::clone(array),
            Rows::Alive(alive) => filter(array.as_ref(), &BooleanArray::from((*alive).clone())).ok()?,
            Rows::Picked(rows) => take(array.as_ref(), &UInt32Array::from(rows.to_vec()), None).ok()?,
        });
    }
    match arrays.as_slice() {
        [array] => Some(array.clone()),
        several => {
            let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
            concat(&several).ok()
        }
    }
}

fn gather_by_value(parts: &[(&ArrayRef, Rows<'_>)], column: &ColumnSchema, pg_type: PgType) -> ArrayRef {
    let mut builder = ColumnBuilder::new(pg_type, column.typmod);
    for (array, rows) in parts {
        rows.for_each(array.len(), |row| builder.append_value(&value_at(array.as_ref(), pg_type, row)));
    }
    builder.finish()
}

/// Fewer rows do not pay for taking over a dictionary.
const FOLLOWING_ROWS: usize = 1_024;

/// Goes on with the first part's dictionary, if it has one, so that neighbouring chunks share it.
fn gather_text(parts: &[(&ArrayRef, Rows<'_>)], column: &ColumnSchema, pg_type: PgType, count: usize) -> ArrayRef {
    let mut builder = match parts.first() {
        Some((first, _)) if count >= FOLLOWING_ROWS => ColumnBuilder::following(pg_type, column.typmod, count, first),
        _ => ColumnBuilder::with_capacity(pg_type, column.typmod, count),
    };
    let settings = FormatSettings::default();
    for (array, rows) in parts {
        let texts = TextColumn::of(array.as_ref());
        rows.for_each(array.len(), |row| {
            if array.is_null(row) {
                builder.append_null();
            } else {
                builder.append_text(texts.get(row).as_bytes(), &settings).expect("text that is held is valid text");
            }
        });
    }
    builder.finish()
}
