//! A long reply whose first rows are sent while the others are being made.
//!
//! The thread that makes the rows puts finished pieces into an [`EarlyRows`], the session takes them from there and queues them for
//! its client ([`Machine::begin_answer`](crate::session::machine::Machine::begin_answer)). The whole reply, these pieces among its
//! first, comes as any other does; of it the session queues what is left.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::session::answer::Reply;

/// The first rows of one session's reply, between the thread that makes them and the session. Whoever gives up an answer that
/// is being made gives up its `EarlyRows`, too: what still comes there belongs to nothing.
#[derive(Debug, Default)]
pub struct EarlyRows {
    pieces: Mutex<Vec<EarlyPiece>>,
    arrived: Notify,
    has_begun: AtomicBool,
}

/// Whole DataRow frames.
#[derive(Clone, Debug)]
pub struct EarlyPiece {
    /// The reply without rows: what is sent before the first.
    pub head: Arc<Reply>,
    pub rows: Bytes,
}

impl EarlyRows {
    pub fn put(&self, piece: EarlyPiece) {
        self.has_begun.store(true, SeqCst);
        self.pieces.lock().push(piece);
        self.arrived.notify_one();
    }

    /// Rows may be on their way to the client: no other reply can take this one's place.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(SeqCst)
    }

    /// Nothing has come, and nobody is left who could put something there.
    pub fn is_unused(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && !self.has_begun()
    }

    /// Those that have come since, at least one. Cancel safe.
    pub async fn take(&self) -> Vec<EarlyPiece> {
        loop {
            let pieces = std::mem::take(&mut *self.pieces.lock());
            if !pieces.is_empty() {
                return pieces;
            }
            self.arrived.notified().await;
        }
    }
}

/// Where a reply's first rows go, and what comes before them.
#[derive(Clone, Debug)]
pub struct Early {
    pub to: Arc<EarlyRows>,
    pub head: Arc<Reply>,
}

impl Early {
    pub fn put(&self, rows: Bytes) {
        self.to.put(EarlyPiece { head: Arc::clone(&self.head), rows });
    }
}
