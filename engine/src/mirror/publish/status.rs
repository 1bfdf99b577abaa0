//! What is told of the tables in memory.

use std::sync::Arc;

use super::{Mirror, Table, TableState};
use crate::catalog::TableSchema;
use crate::table::{Generation, TableVersion};

/// One table, for the operator.
#[derive(Clone, Debug)]
pub struct TableStatus {
    pub schema: Arc<TableSchema>,
    pub state: TableState,
    pub rows: usize,
    /// Resident estimate of the newest version.
    pub bytes: usize,
    /// What it took when it became tracked.
    pub bytes_once: usize,
    /// See [`Mirror::set_weights`].
    pub weight: f64,
    pub generation: Generation,
    /// Versions kept for readers.
    pub versions: usize,
}

impl Mirror {
    /// Every table that the mirror knows.
    pub fn statuses(&self) -> Vec<TableStatus> {
        let published = self.published.read();
        let status = |table: &Table| TableStatus {
            schema: Arc::clone(&table.schema),
            state: table.state.clone(),
            rows: table.head().map_or(0, |head| head.rows),
            bytes: table.bytes,
            bytes_once: table.bytes_once,
            weight: published.weights.get(&table.schema.id).copied().unwrap_or(0.0),
            generation: table.generation,
            versions: table.history.len(),
        };
        published.tables.values().map(status).collect()
    }

    /// What the columns of each mirrored table take, in the order of its schema; None: the column is not held.
    pub fn column_bytes(&self) -> Vec<(Arc<TableSchema>, Vec<Option<usize>>)> {
        let published = self.published.read();
        let heads: Vec<Arc<TableVersion>> =
            published.tables.values().filter_map(|table| table.head().cloned()).collect();
        // Adding up takes longer than the lock may be held.
        drop(published);
        heads.iter().map(|head| (Arc::clone(&head.schema), head.column_bytes())).collect()
    }
}
