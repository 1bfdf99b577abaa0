//! Key indexes of one chunk: which rows have given values in given columns.
//!
//! An index is made on the first look-up by its columns and lives as long as the chunk. A single integer column that
//! ascends through the chunk (a serial key in heap order) needs none: binary search finds its rows.

use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Int16Type, Int32Type, Int64Type};

use super::{Chunk, key};
use crate::catalog::TableSchema;
use crate::types::{PgType, Value};

/// Chunks of at most this many rows are read through instead.
const SCAN_ROWS: usize = 16;

/// Column sets indexed per chunk; look-ups by further ones read the chunk through. Bounds what statements that
/// look up by ever other columns can cost in memory.
const INDEXES_MAX: usize = 6;

/// Indexes by what they are of, a list that only grows; readers take no lock.
#[derive(Debug)]
struct Grown<K: ?Sized, I> {
    first: OnceLock<Box<Node<K, I>>>,
}

#[derive(Debug)]
struct Node<K: ?Sized, I> {
    index: I,
    next: OnceLock<Box<Self>>,
    key: Box<K>,
}

impl<K: ?Sized, I> Default for Grown<K, I> {
    fn default() -> Self {
        Self { first: OnceLock::new() }
    }
}

impl<K: ?Sized + PartialEq, I> Grown<K, I>
where
    for<'k> Box<K>: From<&'k K>,
{
    fn nodes(&self) -> impl Iterator<Item = &Node<K, I>> {
        std::iter::successors(self.first.get(), |node| node.next.get()).map(|node| &**node)
    }

    /// The index of that, if it has been made.
    fn made(&self, key: &K) -> Option<&I> {
        self.nodes().find(|node| *node.key == *key).map(|node| &node.index)
    }

    /// Makes it if it has not been, once, whoever else asks for it meanwhile. None: there are `most` already.
    fn of(&self, key: &K, most: usize, make: impl Fn() -> I) -> Option<&I> {
        let mut slot = &self.first;
        for _ in 0..most {
            let node = slot.get_or_init(|| Box::new(Node { index: make(), next: OnceLock::new(), key: key.into() }));
            if *node.key == *key {
                return Some(&node.index);
            }
            slot = &node.next;
        }
        None
    }
}

/// Indexes by column set.
#[derive(Debug, Default)]
pub(super) struct KeyIndexes(Grown<[usize], KeyIndex>);

/// How many expressions are indexed per chunk.
const COMPUTED_MAX: usize = 4;

/// Indexes by what expressions over the columns give, by the expressions' names.
#[derive(Debug, Default)]
pub(super) struct ComputedIndexes(Grown<str, HashIndex>);

impl ComputedIndexes {
    pub(super) fn bytes(&self) -> usize {
        self.0.nodes().map(|node| node.index.bytes() + node.key.len()).sum()
    }
}

#[derive(Debug)]
enum KeyIndex {
    /// The one integer column ascends: rows are found by binary search.
    Ascending,
    Hashed(HashIndex),
}

/// Rows grouped by hash bucket: about five bytes a row, and many equal keys cost no more than few.
#[derive(Debug)]
struct HashIndex {
    /// Where each bucket starts in `rows`; one more at the end.
    starts: Box<[u32]>,
    rows: Box<[u16]>,
    /// A part of the hash that the bucket does not tell, beside each of `rows`; then as many as are read at once.
    tags: Box<[u8]>,
}

/// Tags that are read at once.
const TAGS: usize = size_of::<u64>();

const _: () = assert!(super::CHUNK_ROWS <= 1 << 16);

impl KeyIndexes {
    fn of(&self, chunk: &Chunk, columns: &[usize]) -> Option<&KeyIndex> {
        self.0.of(columns, INDEXES_MAX, || KeyIndex::build(chunk, columns))
    }

    /// The index on these columns, if it has been made.
    fn made(&self, columns: &[usize]) -> Option<&KeyIndex> {
        self.0.made(columns)
    }

    fn count(&self) -> usize {
        self.0.nodes().count()
    }

    pub(super) fn bytes(&self) -> usize {
        let bytes = |node: &Node<[usize], KeyIndex>| match &node.index {
            KeyIndex::Hashed(index) => index.bytes(),
            KeyIndex::Ascending => 0,
        };
        self.0.nodes().map(bytes).sum()
    }
}

impl KeyIndex {
    fn build(chunk: &Chunk, columns: &[usize]) -> Self {
        if let [column] = columns
            && chunk.is_ascending(*column)
        {
            return Self::Ascending;
        }
        Self::Hashed(HashIndex::build(&chunk.key_hashes(columns)))
    }
}

impl HashIndex {
    /// A counting sort of the rows by bucket, two rows to a bucket.
    fn build(hashes: &[u64]) -> Self {
        let buckets = hashes.len() / 2 + 1;
        let mut starts = vec![0u32; buckets + 1];
        for hash in hashes {
            starts[bucket(*hash, buckets) + 1] += 1;
        }
        for number in 0..buckets {
            starts[number + 1] += starts[number];
        }
        let mut next = starts.clone();
        let mut rows = vec![0u16; hashes.len()];
        let mut tags = vec![0u8; hashes.len() + TAGS];
        for (row, hash) in hashes.iter().enumerate() {
            let place = &mut next[bucket(*hash, buckets)];
            rows[*place as usize] = row as u16;
            tags[*place as usize] = *hash as u8;
            *place += 1;
        }
        Self { starts: starts.into(), rows: rows.into(), tags: tags.into() }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.rows) + size_of_val(&*self.tags)
    }

    fn bucket_of(&self, hash: u64) -> Range<usize> {
        let bucket = bucket(hash, self.starts.len() - 1);
        self.starts[bucket] as usize..self.starts[bucket + 1] as usize
    }

    /// Whether a row of the hash's bucket has its tag. A key that is looked up in many chunks is in hardly any: without a loop there is
    /// nothing for the processor to guess, and it waits for the memory of several chunks at once.
    fn may_have(&self, hash: u64) -> bool {
        const EACH: u64 = u64::MAX / 0xff;
        let range = self.bucket_of(hash);
        let tags = self.tags[range.start..range.start + TAGS].try_into().map_or(0, u64::from_le_bytes);
        let others = u64::MAX.checked_shl(u8::BITS * range.len() as u32).unwrap_or(0);
        // A byte that is the tag becomes 0; what lies behind the bucket never is.
        let differing = (tags ^ (u64::from(hash as u8) * EACH)) | others;
        let has_zero = differing.wrapping_sub(EACH) & !differing & (EACH << 7) != 0;
        has_zero || range.len() > TAGS
    }

    /// Ascending, none before `from`.
    fn candidates(&self, hash: u64, from: usize) -> impl Iterator<Item = usize> {
        let mut range = self.bucket_of(hash);
        if from > 0 {
            range.start += self.rows[range.clone()].partition_point(|row| usize::from(*row) < from);
        }
        let tagged = self.rows[range.clone()].iter().zip(&self.tags[range]);
        tagged.filter(move |(_, tag)| **tag == hash as u8).map(|(row, _)| usize::from(*row))
    }
}

/// The upper half of the hash scaled to the number of buckets.
fn bucket(hash: u64, buckets: usize) -> usize {
    (((hash >> 32) * buckets as u64) >> 32) as usize
}

fn is_ascending(array: &dyn Array) -> bool {
    fn sorted<T: ArrowPrimitiveType>(array: &dyn Array) -> bool {
        array.as_primitive_opt::<T>().is_some_and(|array| array.values().is_sorted())
    }
    array.null_count() == 0
        && match array.data_type() {
            DataType::Int16 => sorted::<Int16Type>(array),
            DataType::Int32 => sorted::<Int32Type>(array),
            DataType::Int64 => sorted::<Int64Type>(array),
            _ => false,
        }
}

/// The run of rows with `value` in an ascending column.
fn equal_run(array: &dyn Array, value: i64) -> Range<usize> {
    fn run<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array, value: i64) -> Range<usize> {
        let values = array.as_primitive::<T>().values();
        let start = values.partition_point(|item| (*item).into() < value);
        let rest = &values[start..];
        let length = rest.iter().take_while(|item| (**item).into() == value).count();
        start..start + length
    }
    match array.data_type() {
        DataType::Int16 => run::<Int16Type>(array, value),
        DataType::Int32 => run::<Int32Type>(array, value),
        _ => run::<Int64Type>(array, value),
    }
}

impl Chunk {
    /// Whether the column's values, integers or times, ascend through the chunk and none is NULL. Looked at once.
    pub(crate) fn is_ascending(&self, column: usize) -> bool {
        let is_ordinal = self.types[column].is_some_and(PgType::is_ordinal);
        is_ordinal && *self.facts(column).ascends.get_or_init(|| is_ascending(self.columns[column].as_ref()))
    }

    /// How many rows, from the first, of a column that ascends are less than `bound`, or equal to it as well.
    pub(crate) fn rows_below(&self, column: usize, bound: i64, with_equal: bool) -> usize {
        fn below<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array, is_below: impl Fn(i64) -> bool) -> usize {
            array.as_primitive::<T>().values().partition_point(|value| is_below((*value).into()))
        }
        let is_below = |value: i64| value < bound || with_equal && value == bound;
        let array = self.columns[column].as_ref();
        match array.data_type() {
            DataType::Int16 => below::<Int16Type>(array, is_below),
            DataType::Int32 => below::<Int32Type>(array, is_below),
            _ => below::<Int64Type>(array, is_below),
        }
    }

    /// The value of a row in a column of integers or times, where it is not NULL.
    pub(crate) fn ordinal_at(&self, column: usize, row: usize) -> Option<i64> {
        let array = self.columns[column].as_ref();
        match array.data_type() {
            DataType::Int16 => array.as_primitive_opt::<Int16Type>().map(|array| array.value(row).into()),
            DataType::Int32 => array.as_primitive_opt::<Int32Type>().map(|array| array.value(row).into()),
            DataType::Int64 => array.as_primitive_opt::<Int64Type>().map(|array| array.value(row)),
            _ => None,
        }
    }

    /// Rows on which the expression of that name may have that value, and some others perhaps, ascending. `compute` gives its values, of
    /// `pg_type`, on all rows of the chunk, dead ones included, or None if they cannot be kept. None: so it is, or too many expressions have
    /// an index already.
    pub(crate) fn rows_by_computed<E>(
        &self,
        name: &str,
        (value, pg_type): (&Value, PgType),
        compute: impl FnOnce() -> Result<Option<ArrayRef>, E>,
    ) -> Result<Option<Vec<usize>>, E> {
        let made = &self.computed.0;
        let index = match made.made(name) {
            None if made.nodes().count() < COMPUTED_MAX => {
                let Some(values) = compute()? else { return Ok(None) };
                let hashes = key::hash_rows(&[(&values, pg_type)], self.rows);
                made.of(name, COMPUTED_MAX, || HashIndex::build(&hashes))
            }
            known => known,
        };
        Ok(index.map(|index| index.candidates(key::add(key::start(), value, pg_type), 0).collect()))
    }

    pub(super) fn may_index(&self, columns: &[usize]) -> bool {
        self.rows <= SCAN_ROWS || self.indexes.made(columns).is_some() || self.indexes.count() < INDEXES_MAX
    }

    fn key_hashes(&self, columns: &[usize]) -> Vec<u64> {
        let arrays: Vec<(&ArrayRef, PgType)> =
            columns.iter().filter_map(|column| Some((&self.columns[*column], self.types[*column]?))).collect();
        key::hash_rows(&arrays, self.rows)
    }

    /// Calls `candidate` with every row from `from` on whose key hash may be `hash`, and some others perhaps.
    fn candidates(
        &self,
        columns: &[usize],
        key: &[Value],
        hash: u64,
        from: usize,
        mut candidate: impl FnMut(usize) -> ControlFlow<()>,
    ) {
        let index = if self.rows <= SCAN_ROWS { None } else { self.indexes.of(self, columns) };
        let only = if let [value] = key { key::integer_form(value) } else { None };
        // Broken off or not, the caller has what it wants.
        let _ = match (index, only) {
            (Some(KeyIndex::Ascending), Some(value)) => {
                let run = equal_run(self.columns[columns[0]].as_ref(), value);
                (run.start.max(from)..run.end).try_for_each(candidate)
            }
            (Some(KeyIndex::Hashed(index)), _) => index.candidates(hash, from).try_for_each(candidate),
            (Some(KeyIndex::Ascending) | None, _) => (from..self.rows).try_for_each(&mut candidate),
        };
    }
}

/// How a key's values are compared with a row's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// PostgreSQL's `=`; NULL equals nothing.
    Equal,
    /// The same stored values, NULLs included.
    Identical,
}

/// One key to be looked up in many chunks.
pub(super) struct Probe<'a> {
    columns: &'a [usize],
    key: &'a [Value],
    hash: u64,
    by: Match,
}

impl<'a> Probe<'a> {
    /// All of `columns` are mirrored.
    pub(super) fn new(schema: &TableSchema, columns: &'a [usize], key: &'a [Value], by: Match) -> Self {
        let mut hash = key::start();
        for (column, value) in columns.iter().zip(key) {
            if let Some(pg_type) = schema.columns[*column].pg_type {
                hash = key::add(hash, value, pg_type);
            }
        }
        Self { columns, key, hash, by }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether the other one looks for the same in the same columns.
    pub(super) fn is_of_same(&self, other: &Self) -> bool {
        self.columns == other.columns && self.key.iter().zip(other.key).all(|(own, theirs)| own.is_identical(theirs))
    }

    /// Calls `found` with the rows of the chunk that are `wanted` and hold the key, until told to stop.
    pub(super) fn find_in(
        &self,
        chunk: &Chunk,
        wanted: impl Fn(usize) -> bool,
        found: impl FnMut(usize) -> ControlFlow<()>,
    ) {
        self.find_from(chunk, 0, wanted, found);
    }

    /// Likewise of the rows from `from` on, in their order.
    pub(super) fn find_from(
        &self,
        chunk: &Chunk,
        from: usize,
        wanted: impl Fn(usize) -> bool,
        mut found: impl FnMut(usize) -> ControlFlow<()>,
    ) {
        let may_be_in = match chunk.indexes.made(self.columns) {
            Some(KeyIndex::Hashed(index)) => index.may_have(self.hash),
            Some(KeyIndex::Ascending) | None => self.may_be_in(chunk),
        };
        if !may_be_in {
            return;
        }
        chunk.candidates(self.columns, self.key, self.hash, from, |row| {
            if wanted(row) && self.holds(chunk, row) { found(row) } else { ControlFlow::Continue(()) }
        });
    }

    /// Whether [`Self::find_in`] would have to make the chunk's index first.
    pub(super) fn needs_index(&self, chunk: &Chunk) -> bool {
        chunk.rows > SCAN_ROWS && chunk.indexes.made(self.columns).is_none() && self.may_be_in(chunk)
    }

    fn may_be_in(&self, chunk: &Chunk) -> bool {
        self.columns.iter().zip(self.key).all(|(column, value)| match chunk.zone(*column) {
            Some(zone) if value.is_null() => self.by == Match::Identical && zone.nulls > 0,
            Some(zone) => zone.may_contain(value),
            None => true,
        })
    }

    fn holds(&self, chunk: &Chunk, row: usize) -> bool {
        self.columns.iter().zip(self.key).all(|(column, value)| {
            let Some(pg_type) = chunk.types[*column] else { return false };
            let array = chunk.columns[*column].as_ref();
            match self.by {
                Match::Equal => key::cell_equals(array, pg_type, row, value),
                Match::Identical => key::cell_is_identical(array, pg_type, row, value),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buckets of any length, more than eight rows included.
    #[test]
    fn a_bucket_may_have_a_tag_exactly_if_a_row_of_it_has() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state
        };
        for rows in [1, 2, 17, 300, 5_000] {
            // Some of them in a few buckets, and with few tags.
            let hashes: Vec<u64> =
                (0..rows).map(|row| if row % 3 == 0 { next() & 0xffff_0000_0000_0003 } else { next() }).collect();
            let index = HashIndex::build(&hashes);
            assert!(hashes.iter().all(|hash| index.may_have(*hash)));
            for _ in 0..2_000 {
                let hash = next() & 0xffff_ffff_0000_001f;
                let has = index.candidates(hash, 0).next().is_some();
                let is_long = index.bucket_of(hash).len() > TAGS;
                assert!(index.may_have(hash) == has || (is_long && !has), "{rows} rows, {hash:x}");
            }
        }
    }
}
