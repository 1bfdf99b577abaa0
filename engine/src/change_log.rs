//! Recent old and new row images per table: what a cached reply is tested against before it is thrown away.
//!
//! A [`ChangeLog`] is a ring bounded by rows and bytes. It is *complete* after its floor: every change of a later
//! generation is in it. Truncations, first copies and transactions too large to keep raise the floor instead.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::table::{Chunk, Generation};

/// What one transaction changed in one table. An updated row is in both lists, in no particular order.
#[derive(Clone, Debug)]
pub struct RowChanges {
    /// The generation that the change made.
    pub generation: Generation,
    pub old: Vec<Arc<Chunk>>,
    pub new: Vec<Arc<Chunk>>,
}

impl RowChanges {
    pub fn rows(&self) -> usize {
        self.old.iter().chain(&self.new).map(|chunk| chunk.rows).sum()
    }

    fn bytes(&self) -> usize {
        self.old.iter().chain(&self.new).map(|chunk| chunk.bytes()).sum::<usize>() + size_of::<Self>()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeLogLimits {
    pub rows_max: usize,
    pub bytes_max: usize,
}

impl Default for ChangeLogLimits {
    /// Enough to outlive a burst of small transactions; testing a reply against more rows costs more than recomputing it.
    fn default() -> Self {
        Self { rows_max: 10_000, bytes_max: 4 << 20 }
    }
}

/// One table's log.
#[derive(Debug)]
pub struct ChangeLog {
    limits: ChangeLogLimits,
    /// Changes up to here may be missing.
    floor: Generation,
    /// Ascending by generation; beside each, the bytes it was counted with (a chunk grows when it is indexed).
    entries: VecDeque<(Arc<RowChanges>, usize)>,
    rows: usize,
    bytes: usize,
}

impl ChangeLog {
    /// A log of a table that is at generation `floor`.
    pub fn new(limits: ChangeLogLimits, floor: Generation) -> Self {
        Self { limits, floor, entries: VecDeque::new(), rows: 0, bytes: 0 }
    }

    pub fn push(&mut self, changes: RowChanges) {
        let bytes = changes.bytes();
        self.rows += changes.rows();
        self.bytes += bytes;
        self.entries.push_back((Arc::new(changes), bytes));
        while self.rows > self.limits.rows_max || self.bytes > self.limits.bytes_max {
            let Some((oldest, bytes)) = self.entries.pop_front() else { return };
            self.rows -= oldest.rows();
            self.bytes -= bytes;
            self.floor = oldest.generation;
        }
    }

    /// Something changed in a way that is not told row by row.
    pub fn skip_to(&mut self, generation: Generation) {
        *self = Self::new(self.limits, generation);
    }

    /// All changes after `generation`, oldest first; None if the log is no longer complete from there.
    pub fn since(&self, generation: Generation) -> Option<impl Iterator<Item = &Arc<RowChanges>>> {
        let start = self.entries.partition_point(|(changes, _)| changes.generation <= generation);
        (generation >= self.floor).then(|| self.entries.range(start..).map(|(changes, _)| changes))
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
