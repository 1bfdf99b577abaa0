//! [`CachedReply`]: wire bytes without the transaction status, and what they depend on.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use crate::catalog::RelationId;
use crate::planted::{Bug, is_planted};
use crate::snapshot::Snapshot;
use crate::table::Generation;

/// The frames of one statement's reply. Immutable.
#[derive(Debug)]
pub struct CachedReply {
    /// The RowDescription frame, sent where the client asked for it.
    pub row_description: Bytes,
    /// All DataRow frames and CommandComplete.
    pub rows: Bytes,
    pub row_count: u64,
    /// The relations read: the tables, then the views.
    pub relations: Vec<RelationId>,
    /// Of each table, in the snapshot that was read. Stamped from that snapshot, hence before execution.
    pub generations: Vec<Generation>,
    pub catalog_version: u64,
    /// A literal was read under TimeZone, DateStyle or IntervalStyle: not for statements parsed under others.
    pub folds_settings: bool,
    /// What it took to compute, in microseconds: what a hit saves.
    pub elapsed_us: u64,
    /// What the maker keeps with the reply (its statistics); the cache does not look at it.
    pub attachment: Arc<dyn Any + Send + Sync>,
}

impl CachedReply {
    /// Whether a reader who must see `snapshot` may have this reply: the same catalog, and no relation that was
    /// read has another generation.
    pub fn is_valid_at(&self, snapshot: &Snapshot) -> bool {
        snapshot.catalog.version == self.catalog_version
            && self.relations.iter().zip(&self.generations).enumerate().all(|(at, (relation, generation))| {
                (at > 0 && is_planted(Bug::ForgetDependency))
                    || snapshot.tables.get(relation).is_some_and(|table| table.generation == *generation)
            })
    }

    pub fn resident_bytes(&self) -> usize {
        self.row_description.len() + self.rows.len() + self.relations.len() * size_of::<(RelationId, Generation)>()
    }
}
