//! [`JoinCache`]: build sides of hash joins, kept for the next statement that joins the same table version by the same
//! columns after the same filter, or one that has grown out of it by appended rows. Shared by all sessions; bounded by bytes, least
//! recently used goes first.
//!
//! What a build side is, is the executor's affair: entries are opaque here.

use std::any::Any;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::catalog::RelationId;
use crate::table::{Lineage, TableVersion};
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
    extended: u64,
}

#[derive(Debug)]
struct Entry {
    table: RelationId,
    /// Holds the address, so that no other version can be taken for this one, but not the rows.
    version: Weak<TableVersion>,
    lineage: Lineage,
    table_rows: usize,
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

    /// What was built from a version whose rows are the first of this one's, and how many they are. It is the caller's from now on, to
    /// be extended by the others: few begin with an older version then, and they build their own.
    pub fn take_shorter<S: Any + Send + Sync>(&self, key: &JoinKey<'_>) -> Option<(Arc<S>, usize)> {
        let mut state = self.state.lock();
        let candidates = state.entries.iter().enumerate().filter(|(_, entry)| entry.is_shorter(key));
        let (at, _) = candidates.max_by_key(|(_, entry)| entry.table_rows)?;
        let entry = state.entries.swap_remove(at);
        state.bytes -= entry.bytes;
        drop(state);
        Some((entry.side.downcast().ok()?, entry.table_rows))
    }

    /// What was taken has been brought up to date.
    pub fn note_extended(&self) {
        self.state.lock().extended += 1;
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
            lineage: key.version.lineage.clone(),
            table_rows: key.version.rows,
            columns: key.columns.to_vec(),
            key_columns: key.key_columns.to_vec(),
            filters: key.filters.to_owned(),
            parameters: key.parameters.to_vec(),
            side,
            bytes,
            used: state.clock,
        };
        // Nobody can ask for a version that is gone, unless another one has grown out of it.
        let holders = |of: &Entry| state.entries.iter().filter(|entry| entry.lineage.is(&of.lineage)).count();
        let is_in_use = |entry: &Entry| entry.version.strong_count() > 0 || entry.lineage.is_in_use(holders(entry));
        let kept: Vec<bool> = state.entries.iter().map(|entry| is_in_use(entry) && !entry.is_for(key)).collect();
        let mut kept = kept.into_iter();
        state.entries.retain(|_| kept.next().unwrap_or(false));
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

    /// How often a build side was brought up to date instead of being built again.
    pub fn extended(&self) -> u64 {
        self.state.lock().extended
    }

    /// Drops everything.
    pub fn clear(&self) {
        let mut state = self.state.lock();
        *state = State { extended: state.extended, ..State::default() };
    }
}

impl Entry {
    fn is_for(&self, key: &JoinKey<'_>) -> bool {
        std::ptr::eq(self.version.as_ptr(), Arc::as_ptr(key.version)) && self.is_of(key)
    }

    fn is_shorter(&self, key: &JoinKey<'_>) -> bool {
        self.lineage.is(&key.version.lineage) && self.table_rows <= key.version.rows && self.is_of(key)
    }

    /// Of the same table, in the same way.
    fn is_of(&self, key: &JoinKey<'_>) -> bool {
        self.table == key.table
            && self.columns == key.columns
            && self.key_columns == key.key_columns
            && self.filters == key.filters
            && self.parameters.len() == key.parameters.len()
            && self.parameters.iter().zip(key.parameters).all(|(a, b)| a.is_identical(b))
    }
}
