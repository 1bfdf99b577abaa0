//! Mirrored rows: an immutable [`TableVersion`] is a list of chunks with deletion bitmaps, copy-on-write.
//!
//! A change makes a new version that shares every untouched chunk. A chunk's columns never change; what is
//! deleted from it is a bitmap beside it. What is derived from a chunk (value ranges, sketches of distinct values, key indexes) is made on first
//! use and shared by all versions that hold the chunk.

pub mod build;
pub mod delta;
mod gather;
mod index;
mod key;
pub mod key_changes;
mod ordered;
pub mod sketch;
#[cfg(test)]
mod tests;
pub mod zone;

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, BooleanBufferBuilder};
use arrow::buffer::BooleanBuffer;

pub use build::TableBuilder;
pub use delta::{RowAt, TableDelta};
use index::{Match, Probe};
use key_changes::KeyChanges;
use sketch::Sketch;
pub use zone::Zone;

use crate::catalog::TableSchema;
use crate::types::{Lsn, PgType, Value};

/// Rows per full chunk. Large enough that per-chunk costs vanish, small enough that a copy-on-write bitmap (8 KiB) is cheap.
pub const CHUNK_ROWS: usize = 65_536;

/// The commit LSN of the last transaction that changed a table; means the same in every freshet on the same upstream.
/// Strictly increasing per table: where a first copy and the transactions applied on top of it are not in LSN order,
/// the later one counts one up instead (see `mirror::publish`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Generation(pub Lsn);

/// Immutable columns of up to [`CHUNK_ROWS`] rows, one array per [`TableSchema::columns`] entry
/// (an all-NULL `NullArray` where the column is not mirrored).
#[derive(Debug)]
pub struct Chunk {
    pub columns: Vec<ArrayRef>,
    pub rows: usize,
    types: Box<[Option<PgType>]>,
    /// Of each column, from the first question on: of most chunks of a row or two nobody ever asks.
    facts: OnceLock<Box<[Facts]>>,
    indexes: index::KeyIndexes,
    computed: index::ComputedIndexes,
    ordered: ordered::OrderedRows,
    bytes: usize,
}

/// What is found out about a column of a chunk when it is first asked for.
#[derive(Debug, Default)]
struct Facts {
    zone: OnceLock<Option<Zone>>,
    /// And what it tells.
    sketch: OnceLock<Option<(Sketch, f64)>>,
    /// It ascends through the chunk.
    ascends: OnceLock<bool>,
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
    pub lineage: Lineage,
    /// When keys have last changed, where whoever makes the versions enters that ([`crate::mirror`]).
    pub key_changes: Option<Arc<KeyChanges>>,
}

/// Versions that came out of each other by rows added at the end share one: the rows of the smaller are the first of the larger, in
/// the same order, wherever their chunks put them.
#[derive(Clone, Debug, Default)]
pub struct Lineage(Arc<()>);

impl Lineage {
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Some version has it that is not `holders` alone.
    pub fn is_in_use(&self, holders: usize) -> bool {
        Arc::strong_count(&self.0) > holders
    }
}

impl Chunk {
    /// `columns` has one array of `rows` values per column of `schema`.
    pub fn new(schema: &TableSchema, columns: Vec<ArrayRef>, rows: usize) -> Self {
        assert_eq!(columns.len(), schema.columns.len(), "one array per column");
        assert!(columns.iter().all(|column| column.len() == rows), "arrays of equal length");
        assert!(rows <= CHUNK_ROWS, "at most CHUNK_ROWS rows");
        let types = schema.columns.iter().map(|column| column.pg_type).collect();
        let bytes = columns.iter().map(|column| column.get_array_memory_size()).sum();
        Self {
            columns,
            rows,
            types,
            facts: OnceLock::new(),
            indexes: index::KeyIndexes::default(),
            computed: index::ComputedIndexes::default(),
            ordered: ordered::OrderedRows::default(),
            bytes,
        }
    }

    /// The type of a column, None where it is not mirrored.
    pub fn pg_type(&self, column: usize) -> Option<PgType> {
        self.types[column]
    }

    fn facts(&self, column: usize) -> &Facts {
        &self.facts.get_or_init(|| self.columns.iter().map(|_| Facts::default()).collect())[column]
    }

    /// Range and NULLs of a column over all rows of the chunk, dead ones included. None where values of the type
    /// are not ordered here.
    pub fn zone(&self, column: usize) -> Option<&Zone> {
        self.facts(column).zone.get_or_init(|| Zone::of(self.columns[column].as_ref(), self.types[column]?)).as_ref()
    }

    /// Resident estimate: the arrays and the indexes made so far.
    pub fn bytes(&self) -> usize {
        self.bytes + self.indexes.bytes() + self.computed.bytes() + self.ordered.bytes() + self.sketch_bytes()
    }
}

impl ChunkVersion {
    /// All rows alive.
    pub fn new(chunk: Arc<Chunk>) -> Self {
        let alive_rows = chunk.rows;
        Self { chunk, alive: None, alive_rows }
    }

    /// Without the first `rows` of those that are alive.
    fn behind(&self, rows: usize) -> Self {
        if rows == 0 {
            return self.clone();
        }
        let last = (0..self.chunk.rows).filter(|row| self.is_alive(*row)).nth(rows - 1).unwrap_or(self.chunk.rows);
        let alive = BooleanBuffer::collect_bool(self.chunk.rows, |row| row > last && self.is_alive(row));
        Self {
            chunk: Arc::clone(&self.chunk),
            alive: Some(Arc::new(alive)),
            alive_rows: self.alive_rows.saturating_sub(rows),
        }
    }

    /// Without these rows.
    pub(crate) fn without(&self, rows: &[u16]) -> Self {
        let mut alive = BooleanBufferBuilder::new(self.chunk.rows);
        match &self.alive {
            Some(bits) => alive.append_buffer(bits),
            None => alive.append_n(self.chunk.rows, true),
        }
        rows.iter().for_each(|row| alive.set_bit(usize::from(*row), false));
        let alive = alive.finish();
        Self { chunk: Arc::clone(&self.chunk), alive_rows: alive.count_set_bits(), alive: Some(Arc::new(alive)) }
    }

    pub fn is_alive(&self, row: usize) -> bool {
        self.alive.as_ref().is_none_or(|alive| alive.value(row))
    }
}

impl TableVersion {
    /// An empty table.
    pub fn empty(schema: Arc<TableSchema>, generation: Generation) -> Self {
        Self { schema, chunks: Arc::from([]), generation, rows: 0, lineage: Lineage::default(), key_changes: None }
    }

    /// A table of these chunks, all rows alive, in this order.
    pub fn from_chunks(
        schema: Arc<TableSchema>,
        chunks: impl IntoIterator<Item = Arc<Chunk>>,
        generation: Generation,
    ) -> Self {
        let chunks: Arc<[_]> = chunks.into_iter().map(ChunkVersion::new).collect();
        Self::of_chunks(schema, chunks, generation)
    }

    /// These chunks as they are.
    pub(crate) fn of_chunks(schema: Arc<TableSchema>, chunks: Arc<[ChunkVersion]>, generation: Generation) -> Self {
        let rows = chunks.iter().map(|chunk| chunk.alive_rows).sum();
        Self { schema, chunks, generation, rows, lineage: Lineage::default(), key_changes: None }
    }

    /// The rows of all `parts` in their order, each with its columns for those of `schema`. Its generation is another
    /// after every change of a part: theirs only grow.
    pub fn union<'p>(schema: Arc<TableSchema>, parts: impl IntoIterator<Item = (&'p Self, &'p [usize])>) -> Self {
        let mut chunks = Vec::new();
        let mut generation = 0_u64;
        for (part, columns) in parts {
            generation = generation.wrapping_add(part.generation.0.0);
            let is_alike = columns.iter().enumerate().all(|(at, column)| at == *column)
                && part.schema.columns.len() == columns.len()
                && part.schema.columns.iter().zip(&schema.columns).all(|(of, to)| of.pg_type == to.pg_type);
            if is_alike {
                chunks.extend_from_slice(&part.chunks);
                continue;
            }
            chunks.extend(part.chunks.iter().map(|version| {
                let arrays = columns.iter().map(|column| Arc::clone(&version.chunk.columns[*column])).collect();
                ChunkVersion { chunk: Arc::new(Chunk::new(&schema, arrays, version.chunk.rows)), ..version.clone() }
            }));
        }
        Self::of_chunks(schema, chunks.into(), Generation(Lsn(generation)))
    }

    /// The table without its first `rows` rows.
    pub fn behind(&self, rows: usize) -> Self {
        let mut before = 0;
        let chunks = self.chunks.iter().filter_map(|version| {
            let skipped = rows.saturating_sub(before).min(version.alive_rows);
            before += version.alive_rows;
            (skipped < version.alive_rows).then(|| version.behind(skipped))
        });
        Self::of_chunks(Arc::clone(&self.schema), chunks.collect(), self.generation)
    }

    /// The alive rows whose `columns` equal `key` by PostgreSQL's `=` of the column's type (text and jsonb: by bytes).
    /// Every key value must fit its column's type; a NULL equals nothing. Makes the chunks' indexes on `columns` on
    /// first use: ask only for columns that are looked up often.
    pub fn find(&self, columns: &[usize], key: &[Value]) -> Vec<RowAt> {
        let mut found = Vec::new();
        let Some(probe) = self.probe(columns, key) else { return found };
        for (number, version) in self.chunks.iter().enumerate() {
            let alive = |row| version.is_alive(row);
            probe.find_in(&version.chunk, alive, |row| {
                found.push(RowAt { chunk: number as u32, row: row as u32 });
                ControlFlow::Continue(())
            });
        }
        found
    }

    /// What [`Self::find`] gives for each of these values, in the column beside it, chunk by chunk: a chunk's index stays in the
    /// processor's caches for all of them. `goes_on` is asked after each value in each chunk, with how many rows have been found so far;
    /// None: it said no. Fails where it does.
    pub fn find_each<'k, E>(
        &self,
        keys: &'k [(usize, &'k Value)],
        mut goes_on: impl FnMut(usize) -> Result<bool, E>,
    ) -> Result<Option<Vec<RowAt>>, E> {
        let probe = |(column, value): &'k (usize, &'k Value)| {
            self.probe(std::slice::from_ref(column), std::slice::from_ref(*value))
        };
        let mut probes: Vec<Probe<'k>> = keys.iter().filter_map(probe).collect();
        // A list may name a value many times.
        probes.sort_by_key(Probe::hash);
        probes.dedup_by(|a, b| a.is_of_same(b));
        let mut found = Vec::new();
        for (number, version) in self.chunks.iter().enumerate() {
            let alive = |row| version.is_alive(row);
            for probe in &probes {
                probe.find_in(&version.chunk, alive, |row| {
                    found.push(RowAt { chunk: number as u32, row: row as u32 });
                    ControlFlow::Continue(())
                });
                if !goes_on(found.len())? {
                    return Ok(None);
                }
            }
        }
        Ok(Some(found))
    }

    /// None: no row has the key.
    fn probe<'k>(&self, columns: &'k [usize], key: &'k [Value]) -> Option<Probe<'k>> {
        let is_held = |column: &usize| self.schema.columns[*column].pg_type.is_some();
        let may_be = columns.iter().all(is_held) && !key.iter().any(Value::is_null);
        may_be.then(|| Probe::new(&self.schema, columns, key, Match::Equal))
    }

    /// What [`Self::find`] gives where that is one row at most. None: it is not, or an index would have to be made first.
    pub fn find_one_by_index(&self, columns: &[usize], key: &[Value]) -> Option<Option<RowAt>> {
        let Some(probe) = self.probe(columns, key) else { return Some(None) };
        let (mut only, mut has_more) = (None, false);
        for (number, version) in self.chunks.iter().enumerate() {
            if probe.needs_index(&version.chunk) {
                return None;
            }
            let alive = |row| version.is_alive(row);
            probe.find_in(&version.chunk, alive, |row| {
                has_more |= only.replace(RowAt { chunk: number as u32, row: row as u32 }).is_some();
                ControlFlow::Continue(())
            });
        }
        (!has_more).then_some(only)
    }

    /// Whether every chunk has an index on the column, or room for one more.
    pub fn may_index(&self, column: usize) -> bool {
        self.schema.columns[column].pg_type.is_some()
            && self.chunks.iter().all(|version| version.chunk.may_index(&[column]))
    }

    /// Rows that [`Self::find`] would make indexes of for this key.
    pub fn rows_to_index(&self, columns: &[usize], key: &[Value]) -> usize {
        let probe = Probe::new(&self.schema, columns, key, Match::Equal);
        let to_make = self.chunks.iter().filter(|version| probe.needs_index(&version.chunk));
        to_make.map(|version| version.chunk.rows).sum()
    }

    /// Resident estimate of each column's values, dead rows' included, without what is derived from them. None: it is not held.
    pub fn column_bytes(&self) -> Vec<Option<usize>> {
        let bytes = |column: usize| {
            let arrays = self.chunks.iter().map(|version| version.chunk.columns[column].get_array_memory_size());
            self.schema.columns[column].pg_type.map(|_| arrays.sum())
        };
        (0..self.schema.columns.len()).map(bytes).collect()
    }

    /// Resident estimate of everything this version holds.
    pub fn bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(|version| {
            let bitmap = version.alive.as_ref().map_or(0, |alive| alive.len() / 8);
            version.chunk.bytes() + bitmap + size_of::<ChunkVersion>()
        });
        chunks.sum::<usize>() + self.key_changes.as_ref().map_or(0, |changes| changes.bytes())
    }
}

/// Indexes of the columns whose values are mirrored, in schema order: what a first copy selects.
pub fn mirrored_columns(schema: &TableSchema) -> Vec<usize> {
    (0..schema.columns.len()).filter(|column| schema.columns[*column].pg_type.is_some()).collect()
}
