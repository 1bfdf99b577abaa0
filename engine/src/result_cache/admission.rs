//! Whether the reply to a quick read is kept at once, or only when it is asked for again.
//!
//! Reading some rows by their key takes about as long as finding a kept reply, and keeping it takes longer than both. Where few
//! of such replies are ever asked for again (a client that goes through the keys), only those are kept whose key has been seen
//! a short while ago. Which it is, is told by what became of those that were kept last.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::entry::CachedReply;

/// A reply that took less to compute, in microseconds, is quick.
const QUICK_US: u64 = 50;
/// Of so many replies, the last ones, it is counted how many were found again.
const WINDOW: u32 = 4_096;
/// Fewer than one of so many: not worth it.
const FOUND_ONE_IN: u32 = 8;
/// Keys that are remembered; each new one takes the place of another.
const KEYS: usize = 1 << 16;

/// How many times more than it was a reply counts as asked for: about one for a millisecond, three for 16, six for four seconds.
/// The cache counts to 15.
pub(super) fn credit(reply: &CachedReply) -> u32 {
    (reply.elapsed_us / 500).checked_ilog2().map_or(0, |log| log.div_ceil(2)).min(7)
}

pub(super) struct Admission {
    /// Quick replies that were kept, and those of them that were found again; halved together.
    kept: AtomicU32,
    found: AtomicU32,
    /// A part of the hash of a key, by another part of it.
    keys: Box<[AtomicU32]>,
    hasher: ahash::RandomState,
}

impl Admission {
    pub(super) fn new() -> Self {
        Self {
            kept: AtomicU32::new(0),
            found: AtomicU32::new(0),
            keys: (0..KEYS).map(|_| AtomicU32::new(0)).collect(),
            hasher: ahash::RandomState::new(),
        }
    }

    /// Whether a reply is to be kept. Asked once for each that could be.
    pub(super) fn admits(&self, key: &[u8], reply: &CachedReply) -> bool {
        reply.elapsed_us >= QUICK_US || self.admits_quick(key)
    }

    /// The same of one that is quick.
    pub(super) fn admits_quick(&self, key: &[u8]) -> bool {
        let is_admitted = !self.is_selective() || self.is_seen(key);
        if is_admitted && self.kept.fetch_add(1, Relaxed) + 1 >= WINDOW {
            // Two who meet here halve twice: a rough count is enough.
            self.kept.store(WINDOW / 2, Relaxed);
            self.found.store(self.found.load(Relaxed) / 2, Relaxed);
        }
        is_admitted
    }

    /// Somebody has found the reply.
    pub(super) fn note_found(&self, reply: &CachedReply) {
        if reply.elapsed_us < QUICK_US && reply.found.is_first() {
            self.found.fetch_add(1, Relaxed);
        }
    }

    fn is_selective(&self) -> bool {
        let kept = self.kept.load(Relaxed);
        kept >= WINDOW / 4 && self.found.load(Relaxed) < kept / FOUND_ONE_IN
    }

    /// Whether the key was asked about a short while ago; it is from now on.
    fn is_seen(&self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key);
        let mark = (hash >> 32) as u32 | 1;
        self.keys[hash as usize % KEYS].swap(mark, Relaxed) == mark
    }
}
