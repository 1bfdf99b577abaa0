//! [`JoinCache`]: build sides of hash joins, kept for the next statement that joins the same table version by the same
//! columns after the same filter. Shared by all sessions; bounded by bytes, least recently used goes first.
//!
//! What a build side is, is the executor's affair: entries are opaque here.

use std::any::Any;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::catalog::RelationId;
use crate::table::TableVersion;
use crate::types::Value;

/// What an entry was built from.
#[derive(Clone, Copy, Debug)]
pub struct JoinKey<'a> {
    pub table: RelationId,
    /// Compared by identity: another version of the same generation may hold its rows elsewhere.
    pub version: &'a Arc<TableVersion>,
    /// Indexes into the schema: what the build side and its filters read, and what it is keyed by (positions in `columns`).
    pub columns: &'a [usize],
    pub key_columns: &'a [usize],
    /// Names the filters, with the values of the parameters they read.
    pub filters: &'a str,
    pub parameters: &'a [Value],
}

#[derive(Debug)]
pub struct JoinCache {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Few: one per dimension table and way of joining it.
    entries: Vec<Entry>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    table: RelationId,
    /// Holds the address, so that no other version can be taken for this one, but not the rows.
    version: Weak<TableVersion>,
    columns: Vec<usize>,
    key_columns: Vec<usize>,
    filters: String,
    parameters: Vec<Value>,
    side: Arc<dyn Any + Send + Sync>,
    bytes: usize,
    used: u64,
}

/// Entries at most, whatever their size: they are searched one by one.
const ENTRIES_MAX: usize = 256;

impl JoinCache {
    /// Zero bytes: nothing is kept.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, state: Mutex::new(State::default()) }
    }

    pub fn find<S: Any + Send + Sync>(&self, key: &JoinKey<'_>) -> Option<Arc<S>> {
        let mut state = self.state.lock();
        state.clock += 1;
        let now = state.clock;
        let entry = state.entries.iter_mut().find(|entry| entry.is_for(key))?;
        entry.used = now;
        let side = entry.side.clone();
        drop(state);
        side.downcast().ok()
    }

    pub fn keep<S: Any + Send + Sync>(&self, key: &JoinKey<'_>, side: Arc<S>, bytes: usize) {
        if bytes > self.bytes_max {
            return;
        }
        let mut state = self.state.lock();
        state.clock += 1;
        let entry = Entry {
            table: key.table,
            version: Arc::downgrade(key.version),
            columns: key.columns.to_vec(),
            key_columns: key.key_columns.to_vec(),
            filters: key.filters.to_owned(),
            parameters: key.parameters.to_vec(),
            side,
            bytes,
            used: state.clock,
        };
        // Nobody can ask for a version that is gone.
        state.entries.retain(|entry| entry.version.strong_count() > 0 && !entry.is_for(key));
        state.entries.push(entry);
        state.bytes = state.entries.iter().map(|entry| entry.bytes).sum();
        while state.bytes > self.bytes_max || state.entries.len() > ENTRIES_MAX {
            let oldest = state.entries.iter().enumerate().min_by_key(|(_, entry)| entry.used).map(|(at, _)| at);
            let Some(oldest) = oldest else { break };
            let evicted = state.entries.swap_remove(oldest);
            state.bytes -= evicted.bytes;
        }
    }

    pub fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Drops everything.
    pub fn clear(&self) {
        *self.state.lock() = State::default();
    }
}

impl Entry {
    fn is_for(&self, key: &JoinKey<'_>) -> bool {
        self.table == key.table
            && std::ptr::eq(self.version.as_ptr(), Arc::as_ptr(key.version))
            && self.columns == key.columns
            && self.key_columns == key.key_columns
            && self.filters == key.filters
            && self.parameters.len() == key.parameters.len()
            && self.parameters.iter().zip(key.parameters).all(|(a, b)| a.is_identical(b))
    }
}
