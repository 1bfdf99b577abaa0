//! Runs a plan on a snapshot: vectorised over arrow arrays, one operator per file.

use arrow::array::ArrayRef;

/// Some rows of a result or between two operators; every column has `rows` entries.
#[derive(Clone, Debug)]
pub struct RowBatch {
    pub columns: Vec<ArrayRef>,
    pub rows: usize,
}
