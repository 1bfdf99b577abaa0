//! [`TableDelta`]: what one transaction changes in a table, and the version it leads to.
//!
//! The cost follows the changed rows and the touched chunks, never the table: bitmaps of touched chunks are copied, new
//! rows become a chunk of their own. Small chunks at the end are merged when those behind them amount to half as many
//! rows, so that a row is copied at most once per doubling and their number stays logarithmic (a handful of rows waits for
//! some more chunks); a chunk is rewritten when more than half of its rows are dead, so that each rewrite is paid for by as
//! many deletes.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::MutableBuffer;

use super::build::CHUNK_BYTES_MAX;
use super::gather::{Rows, gather};
use super::index::{Match, Probe};
use super::{CHUNK_ROWS, Chunk, ChunkVersion, Generation, Lineage, TableVersion, Zone};
use crate::catalog::TableSchema;
use crate::types::Value;

/// A row of a version: number of its chunk, row in the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowAt {
    pub chunk: u32,
    pub row: u32,
}

/// Net changes on top of a base version.
pub struct TableDelta {
    base: Arc<TableVersion>,
    is_truncated: bool,
    /// By chunk of the base, what is deleted from it.
    deleted: BTreeMap<u32, Deleted>,
    inserted: Vec<Arc<Chunk>>,
    /// Where the last of several identical rows were found. In the base rows only die: there is none before.
    found: HashMap<u64, (Vec<Value>, RowAt), ahash::RandomState>,
}

/// Of so many kinds of rows it is remembered, and of none that are larger.
const FOUND_MAX: usize = 1_024;
const FOUND_BYTES_MAX: usize = 4_096;

struct Deleted {
    alive: BooleanBufferBuilder,
    rows: Vec<u32>,
}

impl TableDelta {
    pub fn new(base: Arc<TableVersion>) -> Self {
        Self { base, is_truncated: false, deleted: BTreeMap::new(), inserted: Vec::new(), found: HashMap::default() }
    }

    pub fn base(&self) -> &Arc<TableVersion> {
        &self.base
    }

    /// Forgets every row, those inserted so far too.
    pub fn truncate(&mut self) {
        self.is_truncated = true;
        self.deleted.clear();
        self.inserted.clear();
    }

    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Marks a row of the base, found by [`Self::find_one`], as deleted.
    pub fn delete(&mut self, at: RowAt) {
        let version = &self.base.chunks[at.chunk as usize];
        let deleted =
            self.deleted.entry(at.chunk).or_insert_with(|| Deleted { alive: bitmap_of(version), rows: Vec::new() });
        deleted.alive.set_bit(at.row as usize, false);
        deleted.rows.push(at.row);
    }

    /// Appends new rows.
    pub fn insert(&mut self, chunk: Arc<Chunk>) {
        if chunk.rows > 0 {
            self.inserted.push(chunk);
        }
    }

    /// A row of the base, still alive under the delta, whose `columns` equal `key` by PostgreSQL's `=`.
    pub fn find_one(&self, columns: &[usize], key: &[Value]) -> Option<RowAt> {
        self.probe(&Probe::new(&self.base.schema, columns, key, Match::Equal), RowAt { chunk: 0, row: 0 })
    }

    /// Likewise one that holds the identical values, NULLs included; of several the first. `columns` are the same each time: there
    /// may be as many such rows as the table has, each to be found and deleted.
    pub fn find_identical(&mut self, columns: &[usize], values: Vec<Value>) -> Option<RowAt> {
        let probe = Probe::new(&self.base.schema, columns, &values, Match::Identical);
        let hash = probe.hash();
        let is_same = |other: &[Value]| values.iter().zip(other).all(|(value, other)| value.is_identical(other));
        let known = self.found.get(&hash).filter(|(other, _)| is_same(other));
        let at = self.probe(&probe, known.map_or(RowAt { chunk: 0, row: 0 }, |(_, at)| *at))?;
        if self.found.len() == FOUND_MAX && !self.found.contains_key(&hash) {
            self.found.clear();
        }
        let bytes: usize = values.iter().map(Value::bytes).sum();
        if bytes <= FOUND_BYTES_MAX {
            self.found.insert(hash, (values, at));
        }
        Some(at)
    }

    /// The first from `from` on.
    fn probe(&self, probe: &Probe<'_>, from: RowAt) -> Option<RowAt> {
        if self.is_truncated {
            return None;
        }
        let mut found = None;
        for (number, version) in self.base.chunks.iter().enumerate().skip(from.chunk as usize) {
            let number = number as u32;
            let first = if number == from.chunk { from.row as usize } else { 0 };
            let deleted = self.deleted.get(&number);
            let alive = |row| deleted.map_or_else(|| version.is_alive(row), |deleted| deleted.alive.get_bit(row));
            probe.find_from(&version.chunk, first, alive, |row| {
                found = Some(RowAt { chunk: number, row: row as u32 });
                ControlFlow::Break(())
            });
            if found.is_some() {
                break;
            }
        }
        found
    }

    /// Whether any of the keys is that of an alive row of the base. Chunk by chunk, so that each index is used while
    /// it is in the processor's cache.
    pub fn has_any(&self, columns: &[usize], keys: &[Vec<Value>]) -> bool {
        if self.is_truncated || keys.is_empty() {
            return false;
        }
        let range = columns.first().and_then(|_| Zone::over(keys.iter().map(|key| &key[0])));
        let probes: Vec<_> = keys.iter().map(|key| Probe::new(&self.base.schema, columns, key, Match::Equal)).collect();
        self.base.chunks.iter().enumerate().any(|(number, version)| {
            // To look through a few rows costs less than to find out what range they are in.
            let has_few = version.chunk.rows <= TAIL_ROWS;
            let zone = columns.first().filter(|_| !has_few).and_then(|column| version.chunk.zone(*column));
            if let (Some(range), Some(zone)) = (&range, zone)
                && !zone.may_overlap(range)
            {
                return false;
            }
            let deleted = self.deleted.get(&(number as u32));
            let alive = |row| deleted.map_or_else(|| version.is_alive(row), |deleted| deleted.alive.get_bit(row));
            probes.iter().any(|probe| {
                let mut is_found = false;
                probe.find_in(&version.chunk, alive, |_| {
                    is_found = true;
                    ControlFlow::Break(())
                });
                is_found
            })
        })
    }

    pub fn is_empty(&self) -> bool {
        !self.is_truncated && self.deleted.is_empty() && self.inserted.is_empty()
    }

    /// Rows deleted and inserted (a truncation's are not counted).
    pub fn changed_rows(&self) -> usize {
        let deleted: usize = self.deleted.values().map(|deleted| deleted.rows.len()).sum();
        deleted + self.inserted.iter().map(|chunk| chunk.rows).sum::<usize>()
    }

    /// About what they take, by the size of the rows around those deleted.
    pub fn changed_bytes(&self) -> usize {
        let deleted = self.deleted.iter().map(|(number, deleted)| {
            let chunk = &self.base.chunks[*number as usize].chunk;
            chunk.bytes() / chunk.rows.max(1) * deleted.rows.len()
        });
        deleted.sum::<usize>() + self.inserted.iter().map(|chunk| chunk.bytes()).sum::<usize>()
    }

    pub fn inserted(&self) -> &[Arc<Chunk>] {
        &self.inserted
    }

    /// The rows deleted one by one, as chunks of their own.
    pub fn deleted_rows(&self) -> Vec<Arc<Chunk>> {
        let mut parts = Vec::new();
        for (number, deleted) in &self.deleted {
            let chunk = &self.base.chunks[*number as usize].chunk;
            parts.push((chunk.as_ref(), Rows::Picked(&deleted.rows), deleted.rows.len()));
        }
        merged_in_chunks(&self.base.schema, &parts)
    }

    /// The version with the changes made.
    pub fn apply(mut self, generation: Generation) -> TableVersion {
        let mut chunks = Vec::with_capacity(self.base.chunks.len() + self.inserted.len());
        let mut sparse = Vec::new();
        if !self.is_truncated {
            for (number, before) in self.base.chunks.iter().enumerate() {
                let after = match self.deleted.get_mut(&(number as u32)) {
                    None => before.clone(),
                    Some(deleted) => deleted.version_of(before),
                };
                if after.alive_rows == 0 {
                    continue;
                }
                if after.alive_rows < before.alive_rows && after.alive_rows * 2 < after.chunk.rows {
                    sparse.push(chunks.len());
                }
                chunks.push(after);
            }
        }
        // From the back, so that the numbers in front stay right.
        for number in sparse.into_iter().rev() {
            compact(&self.base, &mut chunks, number);
        }
        chunks.extend(self.inserted.into_iter().map(ChunkVersion::new));
        merge_tail(&self.base, &mut chunks);
        let rows = chunks.iter().map(|chunk| chunk.alive_rows).sum();
        let schema = Arc::clone(&self.base.schema);
        let key_changes = self.base.key_changes.clone();
        // Chunks are put together in their order.
        let is_appended = self.deleted.is_empty() && !self.is_truncated;
        let lineage = if is_appended { self.base.lineage.clone() } else { Lineage::default() };
        TableVersion { schema, chunks: chunks.into(), generation, rows, lineage, key_changes }
    }
}

/// A copy of the chunk's bitmap, to be changed.
fn bitmap_of(version: &ChunkVersion) -> BooleanBufferBuilder {
    let rows = version.chunk.rows;
    match &version.alive {
        // Bytes are copied faster than bits.
        Some(before) if before.offset() == 0 => {
            let mut bytes = MutableBuffer::with_capacity(rows.div_ceil(8));
            bytes.extend_from_slice(&before.values()[..rows.div_ceil(8)]);
            BooleanBufferBuilder::new_from_buffer(bytes, rows)
        }
        Some(before) => {
            let mut alive = BooleanBufferBuilder::new(rows);
            alive.append_buffer(before);
            alive
        }
        None => {
            let mut alive = BooleanBufferBuilder::new(rows);
            alive.append_n(rows, true);
            alive
        }
    }
}

impl Deleted {
    fn version_of(&mut self, before: &ChunkVersion) -> ChunkVersion {
        ChunkVersion {
            chunk: Arc::clone(&before.chunk),
            alive: Some(Arc::new(self.alive.finish())),
            alive_rows: before.alive_rows - self.rows.len(),
        }
    }
}

/// Rewrites a chunk that is mostly dead, together with neighbours that are not much larger than what is left of it.
fn compact(base: &TableVersion, chunks: &mut Vec<ChunkVersion>, number: usize) {
    let Some(alive_rows) = chunks.get(number).map(|chunk| chunk.alive_rows) else { return };
    if alive_rows * 2 >= chunks[number].chunk.rows {
        // Its neighbour has taken it along.
        return;
    }
    let joins = |neighbour: Option<&ChunkVersion>, (rows, bytes): (usize, usize)| {
        neighbour.is_some_and(|chunk| {
            chunk.alive_rows <= 2 * alive_rows
                && rows + chunk.alive_rows <= CHUNK_ROWS / 2
                && bytes + chunk.chunk.bytes() <= CHUNK_BYTES_MAX
        })
    };
    let mut range = number..number + 1;
    let mut taken = (alive_rows, chunks[number].chunk.bytes());
    if number > 0 && joins(chunks.get(number - 1), taken) {
        range.start = number - 1;
        taken = (taken.0 + chunks[number - 1].alive_rows, taken.1 + chunks[number - 1].chunk.bytes());
    }
    if joins(chunks.get(range.end), taken) {
        range.end += 1;
    }
    replace_by_merged(base, chunks, range);
}

/// Fewer rows at the end are put together once they are in more than [`TAIL_CHUNKS`] chunks: merging them costs no more than the
/// look-ups that more chunks would cost.
const TAIL_ROWS: usize = 64;
/// To merge at each transaction of one row would copy all those rows, column by column, for each.
const TAIL_CHUNKS: usize = 4;

fn merge_tail(base: &TableVersion, chunks: &mut Vec<ChunkVersion>) {
    let Some(last) = chunks.last() else { return };
    let mut rows = last.alive_rows;
    let mut bytes = last.chunk.bytes();
    let mut start = chunks.len() - 1;
    while start > 0 {
        let before = &chunks[start - 1];
        let is_small = before.alive_rows <= 2 * rows || before.alive_rows + rows <= TAIL_ROWS;
        let fits = before.alive_rows + rows <= CHUNK_ROWS && before.chunk.bytes() + bytes <= CHUNK_BYTES_MAX;
        if !is_small || !fits {
            break;
        }
        rows += before.alive_rows;
        bytes += before.chunk.bytes();
        start -= 1;
    }
    if rows <= TAIL_ROWS && chunks.len() - start <= TAIL_CHUNKS {
        return;
    }
    if start + 1 < chunks.len() {
        let end = chunks.len();
        replace_by_merged(base, chunks, start..end);
    }
}

fn replace_by_merged(base: &TableVersion, chunks: &mut Vec<ChunkVersion>, range: std::ops::Range<usize>) {
    let parts: Vec<_> = chunks[range.clone()]
        .iter()
        .map(|version| {
            let rows = version.alive.as_deref().map_or(Rows::All, Rows::Alive);
            (version.chunk.as_ref(), rows, version.alive_rows)
        })
        .collect();
    let chunk = merged(&base.schema, &parts);
    chunks.splice(range, [ChunkVersion::new(Arc::new(chunk))]);
}

impl TableVersion {
    /// A table of these rows alone.
    pub fn of_rows(schema: Arc<TableSchema>, parts: &[&Chunk], generation: Generation) -> Self {
        let parts: Vec<_> = parts.iter().map(|chunk| (*chunk, Rows::All, chunk.rows)).collect();
        let chunks = merged_in_chunks(&schema, &parts);
        Self::from_chunks(schema, chunks, generation)
    }
}

/// The chosen rows, part after part, in as few chunks as hold them. A part fits into one.
fn merged_in_chunks(schema: &TableSchema, parts: &[(&Chunk, Rows<'_>, usize)]) -> Vec<Arc<Chunk>> {
    let mut chunks = Vec::new();
    let mut rest = parts;
    while !rest.is_empty() {
        let mut rows = 0;
        let end = rest.iter().position(|part| {
            rows += part.2;
            rows > CHUNK_ROWS
        });
        let (now, later) = rest.split_at(end.unwrap_or(rest.len()).max(1));
        chunks.push(Arc::new(merged(schema, now)));
        rest = later;
    }
    chunks
}

/// One chunk of the chosen rows of several.
fn merged(schema: &TableSchema, parts: &[(&Chunk, Rows<'_>, usize)]) -> Chunk {
    let rows = parts.iter().map(|part| part.2).sum();
    let columns = schema.columns.iter().enumerate().map(|(number, column)| {
        let parts: Vec<_> = parts.iter().map(|(chunk, rows, _)| (&chunk.columns[number], *rows)).collect();
        gather(&parts, column)
    });
    Chunk::new(schema, columns.collect(), rows)
}
