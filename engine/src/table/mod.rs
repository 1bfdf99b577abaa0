//! Mirrored rows: an immutable [`TableVersion`] is a list of chunks with deletion bitmaps, copy-on-write.
//!
//! A change makes a new version that shares every untouched chunk. A chunk's columns never change; what is
//! deleted from it is a bitmap beside it. Look-ups by key go through an index per chunk, made on first use.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;

use crate::catalog::TableSchema;
use crate::types::Lsn;

/// Rows per full chunk. Large enough that per-chunk costs vanish, small enough that a copy-on-write bitmap (8 KiB) is cheap.
pub const CHUNK_ROWS: usize = 65_536;

/// The commit LSN of the last transaction that changed a table; means the same in every freshet on the same upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Generation(pub Lsn);

/// Immutable columns of up to [`CHUNK_ROWS`] rows, one array per [`TableSchema::columns`] entry
/// (an all-NULL `NullArray` where the column is not mirrored).
#[derive(Debug)]
pub struct Chunk {
    pub columns: Vec<ArrayRef>,
    pub rows: usize,
}

/// A chunk and which of its rows still exist in this version.
#[derive(Clone, Debug)]
pub struct ChunkVersion {
    pub chunk: Arc<Chunk>,
    /// Set bit: the row is alive. None: all are.
    pub alive: Option<Arc<BooleanBuffer>>,
    pub alive_rows: usize,
}

/// One table at one point of the stream. Chunks are in heap order of the first copy, then in commit order.
#[derive(Clone, Debug)]
pub struct TableVersion {
    pub schema: Arc<TableSchema>,
    pub chunks: Arc<[ChunkVersion]>,
    pub generation: Generation,
    pub rows: usize,
}
