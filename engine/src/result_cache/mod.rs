//! Replies kept for exact repeats: a [`ResultKey`] leads to a [`CachedReply`], valid for the generations it was made from.
//!
//! In front of classification: a hit parses no SQL. Keys are compared in full, never by hash alone. An entry says
//! which relations it read and at which generation; the caller holds the snapshot that the reader must see and
//! asks [`CachedReply::is_valid_at`]. Nothing expires by time.

mod entry;
mod key;

pub use entry::CachedReply;
pub use key::{KeyParts, ResultKey};

use std::sync::Arc;

/// Reply bytes by key, bounded in bytes (keys and bookkeeping included).
pub struct ResultCache {
    replies: moka::sync::Cache<Box<[u8]>, Arc<CachedReply>, ahash::RandomState>,
    reply_bytes_max: usize,
}

/// The cache hands its own key type to the weigher.
#[allow(clippy::borrowed_box)]
fn weigh(key: &Box<[u8]>, reply: &Arc<CachedReply>) -> u32 {
    u32::try_from(key.len() + reply.resident_bytes() + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
}

/// What an entry costs besides its key and its reply: the cache's node, two `Arc`s, the entry itself.
const ENTRY_OVERHEAD_BYTES: usize = 512;

impl ResultCache {
    /// `capacity_bytes` 0 keeps nothing. One reply takes at most `reply_bytes_max` and at most an eighth of the capacity,
    /// so that a huge one cannot evict everything else.
    pub fn new(capacity_bytes: u64, reply_bytes_max: usize) -> Self {
        let replies = moka::sync::Cache::builder()
            .max_capacity(capacity_bytes)
            .weigher(weigh)
            .build_with_hasher(ahash::RandomState::new());
        let reply_bytes_max = reply_bytes_max.min(usize::try_from(capacity_bytes / 8).unwrap_or(usize::MAX));
        Self { replies, reply_bytes_max }
    }

    /// The reply kept under `key`, whether or not it is still valid.
    pub fn get(&self, key: &ResultKey) -> Option<Arc<CachedReply>> {
        self.replies.get(key.as_bytes())
    }

    /// Keeps `reply` under `key`, replacing what was there; false if it is too large to be kept.
    pub fn insert(&self, key: &ResultKey, reply: Arc<CachedReply>) -> bool {
        if reply.resident_bytes() + key.as_bytes().len() > self.reply_bytes_max {
            return false;
        }
        self.replies.insert(key.as_bytes().into(), reply);
        true
    }

    pub fn remove(&self, key: &ResultKey) {
        self.replies.invalidate(key.as_bytes());
    }

    pub fn clear(&self) {
        self.replies.invalidate_all();
    }

    /// Entries and weighed bytes; both lag a little behind the last insertions.
    pub fn size(&self) -> (u64, u64) {
        (self.replies.entry_count(), self.replies.weighted_size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::RelationId;
    use crate::snapshot::Snapshot;
    use crate::table::{Generation, TableVersion};
    use crate::types::Lsn;

    fn key(sql: &str, settings_id: u64) -> ResultKey {
        let mut key = ResultKey::default();
        key.set(&KeyParts { settings_id, sql: sql.as_bytes(), ..KeyParts::default() });
        key
    }

    fn reply(bytes: usize, dependencies: &[(u32, u64)]) -> Arc<CachedReply> {
        Arc::new(CachedReply {
            row_description: bytes::Bytes::from_static(b"T"),
            rows: vec![b'D'; bytes].into(),
            row_count: 1,
            relations: dependencies.iter().map(|(id, _)| RelationId(*id)).collect(),
            generations: dependencies.iter().map(|(_, lsn)| Generation(Lsn(*lsn))).collect(),
            catalog_version: 1,
            folds_settings: false,
            elapsed_us: 10,
            attachment: Arc::new(()),
        })
    }

    fn snapshot(catalog_version: u64, tables: &[(u32, u64)]) -> Snapshot {
        let catalog = Arc::new(crate::catalog::Catalog { version: catalog_version, ..Default::default() });
        let mut snapshot = Snapshot { catalog, ..Snapshot::default() };
        for (id, lsn) in tables {
            let schema = crate::catalog::TableSchema {
                id: RelationId(*id),
                schema: "public".into(),
                name: "t".into(),
                columns: vec![],
                primary_key: vec![],
                identity: crate::catalog::ReplicaIdentity::Full,
            };
            let version = TableVersion {
                schema: Arc::new(schema),
                chunks: Arc::new([]),
                generation: Generation(Lsn(*lsn)),
                rows: 0,
            };
            snapshot.tables.insert(RelationId(*id), Arc::new(version));
        }
        snapshot
    }

    #[test]
    fn a_key_differs_when_any_part_of_it_does() {
        let cache = ResultCache::new(1 << 20, usize::MAX);
        assert!(cache.insert(&key("SELECT 1", 7), reply(10, &[])));
        assert!(cache.get(&key("SELECT 1", 7)).is_some());
        assert!(cache.get(&key("SELECT 1", 8)).is_none(), "another role or setting");
        assert!(cache.get(&key("SELECT 2", 7)).is_none());
        let mut with_parameter = ResultKey::default();
        let parts = KeyParts { settings_id: 7, sql: b"SELECT 1", parameters: b"\0\0", ..KeyParts::default() };
        with_parameter.set(&parts);
        assert!(cache.get(&with_parameter).is_none());
    }

    #[test]
    fn parts_cannot_run_into_each_other() {
        let mut left = ResultKey::default();
        left.set(&KeyParts { settings_id: 1, sql: b"ab", parameter_types: b"c", ..KeyParts::default() });
        let mut right = ResultKey::default();
        right.set(&KeyParts { settings_id: 1, sql: b"a", parameter_types: b"bc", ..KeyParts::default() });
        assert_ne!(left.as_bytes(), right.as_bytes());
    }

    #[test]
    fn a_reply_is_valid_only_for_the_generations_it_read() {
        let reply = reply(10, &[(1, 100), (2, 200)]);
        assert!(reply.is_valid_at(&snapshot(1, &[(1, 100), (2, 200), (3, 900)])));
        assert!(!reply.is_valid_at(&snapshot(1, &[(1, 101), (2, 200)])), "a later change");
        assert!(!reply.is_valid_at(&snapshot(1, &[(1, 99), (2, 200)])), "an earlier state");
        assert!(!reply.is_valid_at(&snapshot(1, &[(1, 100)])), "a table that is no longer mirrored");
        assert!(!reply.is_valid_at(&snapshot(2, &[(1, 100), (2, 200)])), "another catalog");
    }

    #[test]
    fn one_huge_reply_is_refused() {
        let cache = ResultCache::new(80_000, usize::MAX);
        assert!(!cache.insert(&key("SELECT 1", 7), reply(20_000, &[])));
        assert!(cache.insert(&key("SELECT 1", 7), reply(2_000, &[])));
    }
}
