//! [`Batch`]: rows on their way between two operators, with columns gathered only when somebody reads them.
//!
//! A column is an array and, optionally, which of its rows are meant. Filters and joins replace the row numbers, never
//! the arrays; columns that came from one side share one list of row numbers.

use std::cell::OnceCell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::compute::take;

use super::arrays::{bytes_of, variable_bytes};
use super::{RowBatch, arrays};
use crate::catalog::functions::{EvalError, at_once};

#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub(super) rows: usize,
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    /// None: a column of a join input that is not attached yet.
    array: Option<ArrayRef>,
    /// None: all rows of the array in order. NULL: a row of NULLs (the padded side of an outer join).
    rows: Option<Arc<UInt32Array>>,
    gathered: OnceCell<ArrayRef>,
    /// Nobody else has the array: it lives as long as the batch.
    is_own: bool,
}

impl Column {
    fn absent() -> Self {
        Self { array: None, rows: None, gathered: OnceCell::new(), is_own: false }
    }

    fn own(array: ArrayRef) -> Self {
        Self { is_own: true, ..Self::shared(array) }
    }

    fn shared(array: ArrayRef) -> Self {
        Self { array: Some(array), ..Self::absent() }
    }

    fn rows_of(array: ArrayRef, rows: Arc<UInt32Array>) -> Self {
        Self { rows: Some(rows), ..Self::shared(array) }
    }

    /// What it takes while its batch waits, besides what others have: about what gathering it allocates, or its own array.
    fn held_bytes(&self, rows: usize) -> usize {
        match (&self.array, &self.rows) {
            (Some(array), Some(_)) if self.gathered.get().is_none() => gathered_bytes(array, rows),
            (Some(_), Some(_)) => self.gathered.get().map_or(0, bytes_of),
            (Some(array), None) if self.is_own => bytes_of(array),
            _ => 0,
        }
    }
}

/// About what `rows` rows of the array take; text is mostly a dictionary's code, else it is as long as the others are.
pub(super) fn gathered_bytes(array: &ArrayRef, rows: usize) -> usize {
    let text = variable_bytes(array) / array.len().max(1);
    rows.saturating_mul(8 + text)
}

impl Batch {
    /// Of columns that were made for it.
    pub(super) fn new(columns: Vec<ArrayRef>, rows: usize) -> Self {
        debug_assert!(columns.iter().all(|column| column.len() == rows), "columns of one length");
        Self { rows, columns: columns.into_iter().map(Column::own).collect() }
    }

    /// Of columns that live on without it: those of a table, of a build side, of rows that are accounted for.
    pub(super) fn of_shared(columns: Vec<ArrayRef>, rows: usize) -> Self {
        debug_assert!(columns.iter().all(|column| column.len() == rows), "columns of one length");
        Self { rows, columns: columns.into_iter().map(Column::shared).collect() }
    }

    /// The batch as the columns from `base` on of an output of `width` columns; the others are absent.
    pub(super) fn placed(mut self, base: usize, width: usize) -> Self {
        let own = self.columns.len();
        self.columns.splice(0..0, std::iter::repeat_n(Column::absent(), base));
        self.columns.extend(std::iter::repeat_n(Column::absent(), width - base - own));
        self
    }

    /// Fills absent columns from `base` on with rows of `arrays`; None: all of them in order.
    pub(super) fn attach(&mut self, base: usize, arrays: &[ArrayRef], rows: Option<Arc<UInt32Array>>) {
        for (column, array) in self.columns[base..].iter_mut().zip(arrays) {
            debug_assert!(column.array.is_none(), "attached twice");
            *column = Column { rows: rows.clone(), ..Column::shared(array.clone()) };
        }
    }

    /// The rows of one column.
    pub(super) fn column(&self, index: usize) -> Result<ArrayRef, EvalError> {
        let column = &self.columns[index];
        let array = column.array.as_ref().expect("plans read columns of attached inputs only");
        let Some(rows) = &column.rows else { return Ok(array.clone()) };
        if let Some(gathered) = column.gathered.get() {
            return Ok(gathered.clone());
        }
        let gathered = gather(array, rows)?;
        Ok(column.gathered.get_or_init(|| gathered).clone())
    }

    /// A column as it is here, to be put into another batch of the same rows.
    pub(super) fn push_column_of(&mut self, other: &Self, index: usize) {
        self.columns.push(other.columns[index].clone());
    }

    pub(super) fn push_array(&mut self, array: ArrayRef) {
        self.columns.push(Column::own(array));
    }

    /// Drops the columns from `width` on.
    pub(super) fn truncate(&mut self, width: usize) {
        self.columns.truncate(width);
    }

    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Rows `indices`, in that order; NULL stands for a row of NULLs.
    pub(super) fn select(&self, indices: &Arc<UInt32Array>) -> Result<Self, EvalError> {
        // Columns that share row numbers share the new ones.
        let mut composed: Vec<(*const UInt32Array, Arc<UInt32Array>)> = Vec::new();
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let Some(array) = &column.array else {
                columns.push(Column::absent());
                continue;
            };
            let (array, rows) = match (&column.rows, column.gathered.get()) {
                (None, _) => (array.clone(), indices.clone()),
                (Some(_), Some(gathered)) => (gathered.clone(), indices.clone()),
                (Some(rows), None) => {
                    let known = composed.iter().find(|(of, _)| std::ptr::eq(*of, Arc::as_ptr(rows)));
                    let rows = match known {
                        Some((_, known)) => known.clone(),
                        None => {
                            let new = Arc::new(compose(rows, indices));
                            composed.push((Arc::as_ptr(rows), new.clone()));
                            new
                        }
                    };
                    (array.clone(), rows)
                }
            };
            columns.push(Column::rows_of(array, rows));
        }
        Ok(Self { rows: indices.len(), columns })
    }

    /// `length` rows from `offset` on, without copying.
    pub(super) fn slice(&self, offset: usize, length: usize) -> Self {
        if offset == 0 && length == self.rows {
            return self.clone();
        }
        let mut sliced: Vec<(*const UInt32Array, Arc<UInt32Array>)> = Vec::new();
        let mut slice_rows = |rows: &Arc<UInt32Array>| {
            if let Some((_, known)) = sliced.iter().find(|(of, _)| std::ptr::eq(*of, Arc::as_ptr(rows))) {
                return known.clone();
            }
            let new = Arc::new(rows.slice(offset, length));
            sliced.push((Arc::as_ptr(rows), new.clone()));
            new
        };
        let columns = self.columns.iter().map(|column| match (&column.array, &column.rows) {
            (None, _) => Column::absent(),
            (Some(array), None) => Column { is_own: column.is_own, ..Column::shared(array.slice(offset, length)) },
            (Some(array), Some(rows)) => match column.gathered.get() {
                Some(gathered) => Column::own(gathered.slice(offset, length)),
                None => Column::rows_of(array.clone(), slice_rows(rows)),
            },
        });
        Self { rows: length, columns: columns.collect() }
    }

    /// What it takes while it waits, columns gathered, besides what others have.
    pub(super) fn held_bytes(&self) -> usize {
        self.columns.iter().map(|column| column.held_bytes(self.rows)).sum()
    }

    /// The rows for which `keep` is true (not NULL).
    pub(super) fn filter(&self, keep: &BooleanArray) -> Result<Self, EvalError> {
        if self.columns.is_empty() {
            return Ok(Self::new(Vec::new(), keep.true_count()));
        }
        match kept_rows(keep) {
            Kept::Run { start, length } => Ok(self.slice(start, length)),
            Kept::Rows(rows) => self.select(&Arc::new(UInt32Array::from(rows))),
        }
    }

    /// All columns gathered.
    pub(super) fn into_row_batch(self) -> Result<RowBatch, EvalError> {
        let columns = (0..self.columns.len()).map(|index| self.column(index)).collect::<Result<_, _>>()?;
        Ok(RowBatch { columns, rows: self.rows })
    }
}

fn compose(rows: &UInt32Array, indices: &UInt32Array) -> UInt32Array {
    if rows.null_count() == 0 && indices.null_count() == 0 {
        let values = rows.values();
        return indices.values().iter().map(|index| values[*index as usize]).collect::<Vec<u32>>().into();
    }
    indices
        .iter()
        .map(|index| {
            index.map(|index| index as usize).filter(|index| rows.is_valid(*index)).map(|index| rows.value(index))
        })
        .collect()
}

fn gather(array: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef, EvalError> {
    if array.is_empty() && rows.null_count() == rows.len() {
        return arrays::nulls_like(array, rows.len());
    }
    take_rows(array, rows)
}

/// Copies rows of an array, if that is not too much at once.
pub(super) fn take_rows(array: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef, EvalError> {
    at_once::check(gathered_bytes(array, rows.len()))?;
    take(array.as_ref(), rows, None).map_err(arrays::internal)
}

/// Which rows a predicate keeps.
pub(super) enum Kept {
    /// Neighbours: a slice, nothing is copied.
    Run {
        start: usize,
        length: usize,
    },
    Rows(Vec<u32>),
}

pub(super) fn kept_rows(keep: &BooleanArray) -> Kept {
    let bits = match keep.nulls() {
        Some(nulls) if nulls.null_count() > 0 => keep.values() & nulls.inner(),
        _ => keep.values().clone(),
    };
    let count = bits.count_set_bits();
    if count == 0 {
        return Kept::Run { start: 0, length: 0 };
    }
    if count == bits.len() {
        return Kept::Run { start: 0, length: count };
    }
    let mut rows = Vec::with_capacity(count);
    rows.extend(bits.set_indices_u32());
    let (first, last) = (rows[0] as usize, rows[count - 1] as usize);
    if last - first + 1 == count { Kept::Run { start: first, length: count } } else { Kept::Rows(rows) }
}
