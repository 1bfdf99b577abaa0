//! [`CachedReply`]: wire bytes without the transaction status, and what they depend on.

use bytes::Bytes;

use crate::catalog::RelationId;
use crate::snapshot::Snapshot;
use crate::table::Generation;

/// The frames of one statement's reply. Immutable.
#[derive(Debug)]
pub struct CachedReply {
    /// The RowDescription frame, sent where the client asked for it.
    pub row_description: Bytes,
    /// All DataRow frames.
    pub rows: Bytes,
    pub row_count: u64,
    pub command_tag: String,
    /// The relations read, each with its generation in the snapshot that was read. Stamped from that snapshot,
    /// hence before execution.
    pub dependencies: Vec<(RelationId, Generation)>,
    pub catalog_version: u64,
    /// What it took to compute, in microseconds: what a hit saves.
    pub elapsed_us: u64,
}

impl CachedReply {
    /// Whether a reader who must see `snapshot` may have this reply: the same catalog, and no relation that was
    /// read has another generation.
    pub fn is_valid_at(&self, snapshot: &Snapshot) -> bool {
        snapshot.catalog.version == self.catalog_version
            && self.dependencies.iter().all(|(relation, generation)| {
                snapshot.tables.get(relation).is_some_and(|table| table.generation == *generation)
            })
    }

    pub fn resident_bytes(&self) -> usize {
        self.row_description.len()
            + self.rows.len()
            + self.command_tag.len()
            + self.dependencies.len() * size_of::<(RelationId, Generation)>()
    }
}
