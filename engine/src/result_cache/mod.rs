//! Replies kept for exact repeats: a [`ResultKey`] leads to a [`CachedReply`], valid for the generations it was made from.
//!
//! In front of classification: a hit parses no SQL. Keys are compared in full, never by hash alone. An entry says
//! which relations it read and at which generation; the caller holds the snapshot that the reader must see and
//! asks [`CachedReply::is_valid_at`], and where a table has moved on, [`CachedReply::outlives`]. Nothing expires by time.

mod admission;
mod entry;
mod key;
mod keys;
mod pieces;
mod reads;
mod revalidate;
#[cfg(test)]
mod tests;
mod upkeep;

pub use entry::{Basis, CachedReply, Found, Repeated, Share, Withdrawn};
pub use key::{KeyParts, ResultKey};
pub use keys::{Keys, KeysOf};
pub use pieces::Pieces;
pub use reads::Reads;
pub use revalidate::{ChangesBetween, Outdated};
pub use upkeep::{Course, Done, HeldPlan, Keep, Upkept};

use std::sync::Arc;

use self::admission::Admission;

/// Reply bytes by key, bounded in bytes (keys and bookkeeping included).
pub struct ResultCache {
    replies: moka::sync::Cache<Box<[u8]>, Arc<CachedReply>, ahash::RandomState>,
    reply_bytes_max: usize,
    admission: Admission,
}

/// The cache hands its own key type to the weigher.
#[allow(clippy::borrowed_box)]
fn weigh(key: &Box<[u8]>, reply: &Arc<CachedReply>) -> u32 {
    u32::try_from(key.len() + reply.resident_bytes() + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
}

/// What an entry costs besides its key and its reply: the cache's nodes and lists, two `Arc`s, the entry itself. Measured, and
/// rounded up (tests/tests/storm.rs: 1,060 to 1,470 bytes with the system's allocator, from run to run).
const ENTRY_OVERHEAD_BYTES: usize = 1_408;

impl ResultCache {
    /// `capacity_bytes` 0 keeps nothing. One reply takes at most `reply_bytes_max` and at most an eighth of the capacity,
    /// so that a huge one cannot evict everything else.
    pub fn new(capacity_bytes: u64, reply_bytes_max: usize) -> Self {
        let replies = moka::sync::Cache::builder()
            .max_capacity(capacity_bytes)
            .weigher(weigh)
            .build_with_hasher(ahash::RandomState::new());
        let reply_bytes_max = reply_bytes_max.min(usize::try_from(capacity_bytes / 8).unwrap_or(usize::MAX));
        Self { replies, reply_bytes_max, admission: Admission::new() }
    }

    /// The reply kept under `key`, whether or not it is still valid.
    pub fn get(&self, key: &ResultKey) -> Option<Arc<CachedReply>> {
        let reply = self.replies.get(key.as_bytes())?;
        self.admission.note_found(&reply);
        Some(reply)
    }

    /// Likewise for who does not ask for it: it does not count as found.
    pub fn peek(&self, key: &ResultKey) -> Option<Arc<CachedReply>> {
        self.replies.get(key.as_bytes())
    }

    /// Whether the reply is small enough to be kept.
    pub fn fits(&self, key: &ResultKey, reply: &CachedReply) -> bool {
        reply.resident_bytes() + key.as_bytes().len() <= self.reply_bytes_max
    }

    /// Keeps `reply` under `key`, replacing what was there; false if it is too large to be kept, or not worth it.
    pub fn insert(&self, key: &ResultKey, reply: Arc<CachedReply>) -> bool {
        self.fits(key, &reply) && self.admission.admits(key.as_bytes(), &reply) && self.insert_admitted(key, reply)
    }

    /// Whether a reply that took next to no time is worth keeping under `key`. Asked once for each that could be, before it is made
    /// ready for that.
    pub fn admits_quick(&self, key: &ResultKey) -> bool {
        self.admission.admits_quick(key.as_bytes())
    }

    /// Keeps what was admitted before; false if it is too large. What took long to compute counts as asked for more often, so that many
    /// that are quickly made again do not drive it out.
    pub fn insert_admitted(&self, key: &ResultKey, reply: Arc<CachedReply>) -> bool {
        let fits = self.fits(key, &reply);
        if fits {
            // Which of two goes is decided by how often they were asked for (moka: TinyLFU).
            for _ in 0..admission::credit(&reply) {
                let _ = self.replies.get(key.as_bytes());
            }
            self.replies.insert(key.as_bytes().into(), reply);
        }
        fits
    }

    pub fn remove(&self, key: &ResultKey) {
        self.replies.invalidate(key.as_bytes());
    }

    pub fn clear(&self) {
        self.replies.invalidate_all();
        // It frees what is invalid when it is next used, or told to, so much at a time.
        for _ in 0..crate::CLEAR_ROUNDS_MAX {
            self.replies.run_pending_tasks();
            if self.replies.entry_count() == 0 {
                break;
            }
        }
    }

    /// Entries and weighed bytes; both lag a little behind the last insertions.
    pub fn size(&self) -> (u64, u64) {
        (self.replies.entry_count(), self.replies.weighted_size())
    }
}
