//! The first copy of one table: `COPY ... TO STDOUT (FORMAT binary)` by ranges of its heap, under one snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Buf;
use freshet_engine::catalog::TableSchema;
use freshet_engine::table::{TableBuilder, mirrored_columns};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::upstream::connection::Connection;
use crate::upstream::{ServerError, UpstreamError};

/// Why a copy was not finished.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// A value that cannot be held: the table cannot be mirrored.
    #[error("{0}")]
    NotHeld(String),
    #[error("the memory limit of the mirror is reached")]
    OverMemory,
}

/// Memory of all copies that are not in the mirror yet, against what the mirror may still take.
#[derive(Debug, Default)]
pub struct CopyBudget {
    used: AtomicUsize,
    bytes_max: AtomicUsize,
}

impl CopyBudget {
    pub fn set_bytes_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    fn hold(self: &Arc<Self>) -> Held {
        Held { budget: Arc::clone(self), bytes: 0 }
    }
}

/// One range's share of the budget; given back when dropped: once its rows count as the mirror's, or are gone.
#[derive(Debug)]
pub struct Held {
    budget: Arc<CopyBudget>,
    bytes: usize,
}

/// Copies that read their tables at the same time, and those that wait until their tables' writers have ended.
pub struct CopySlots {
    free: Arc<Semaphore>,
    count: usize,
    waiting: AtomicUsize,
}

/// Reads its table until this is dropped.
pub struct Slot {
    _permit: OwnedSemaphorePermit,
}

/// Waits for writers until this is dropped.
pub struct WaitingForWriters<'a>(&'a CopySlots);

impl CopySlots {
    pub fn new(count: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(count)), count, waiting: AtomicUsize::new(0) }
    }

    /// Waits for one.
    pub async fn take(&self) -> Result<Slot, UpstreamError> {
        let permit = Arc::clone(&self.free).acquire_owned().await;
        let permit = permit.map_err(|_| UpstreamError::Protocol("no copy is begun any more"))?;
        Ok(Slot { _permit: permit })
    }

    pub fn wait_for_writers(&self) -> WaitingForWriters<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingForWriters(self)
    }

    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How many of them read their tables.
    pub fn reading(&self) -> usize {
        self.count - self.free.available_permits()
    }
}

impl Drop for WaitingForWriters<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Held {
    fn resize(&mut self, bytes: usize) -> Result<(), CopyError> {
        let used = if bytes >= self.bytes {
            self.budget.used.fetch_add(bytes - self.bytes, Ordering::Relaxed) + (bytes - self.bytes)
        } else {
            self.budget.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed) - (self.bytes - bytes)
        };
        self.bytes = bytes;
        if used > self.budget.bytes_max.load(Ordering::Relaxed) { Err(CopyError::OverMemory) } else { Ok(()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Heap pages `from..to`; open-ended without `to`, because the heap may have grown since it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    pub from: u64,
    pub to: Option<u64>,
}

/// A range worth a connection of its own.
const RANGE_PAGES_MIN: u64 = 2048;

/// Cuts a heap into at most `ranges_max` ranges of about equal size, in order.
pub fn page_ranges(pages: u64, ranges_max: usize) -> Vec<PageRange> {
    let ranges = (pages / RANGE_PAGES_MIN).clamp(1, ranges_max.max(1) as u64);
    let bound = |range: u64| pages * range / ranges;
    (0..ranges)
        .map(|range| PageRange { from: bound(range), to: (range + 1 < ranges).then(|| bound(range + 1)) })
        .collect()
}

/// The statement that copies one range. `ONLY`: children are tables of their own.
pub fn copy_sql(schema: &TableSchema, range: PageRange) -> String {
    let columns: Vec<String> =
        mirrored_columns(schema).iter().map(|column| quote(&schema.columns[*column].name)).collect();
    let lower = if range.from == 0 { String::new() } else { format!("ctid >= '({},0)'::tid", range.from) };
    let upper = range.to.map(|to| format!("ctid < '({to},0)'::tid")).unwrap_or_default();
    let conditions: Vec<String> = [lower, upper].into_iter().filter(|condition| !condition.is_empty()).collect();
    let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    let name = qualified_name(schema);
    format!("COPY (SELECT {} FROM ONLY {name}{filter}) TO STDOUT (FORMAT binary)", columns.join(", "))
}

pub fn qualified_name(schema: &TableSchema) -> String {
    format!("{}.{}", quote(&schema.schema), quote(&schema.name))
}

fn quote(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// Runs the copy of one range on a connection that is already in the exported snapshot. Its rows, with their share of the budget.
pub async fn copy_range(
    connection: &mut Connection,
    schema: Arc<TableSchema>,
    range: PageRange,
    budget: &Arc<CopyBudget>,
    rows_copied: &AtomicU64,
) -> Result<(TableBuilder, Held), CopyError> {
    /// How often memory and progress are accounted for.
    const ROWS_PER_ACCOUNT: usize = 4096;
    let mut held = budget.hold();
    let mut rows = RowReader::default();
    let mut builder = TableBuilder::new(Arc::clone(&schema));
    let mut accounted = 0;
    postgres_protocol::message::frontend::query(&copy_sql(&schema, range), connection.outgoing())
        .map_err(UpstreamError::Io)?;
    connection.flush().await?;
    loop {
        let frame = connection.read_frame().await?;
        match frame.tag {
            b'd' => {
                rows.read(&frame.body, &mut builder)?;
                connection.drain_copy_data(|body| rows.read(body, &mut builder))?;
                if builder.rows() - accounted >= ROWS_PER_ACCOUNT {
                    rows_copied.fetch_add((builder.rows() - accounted) as u64, Ordering::Relaxed);
                    accounted = builder.rows();
                    held.resize(builder.bytes())?;
                }
            }
            b'Z' if rows.is_done => break,
            b'E' => return Err(UpstreamError::Server(ServerError::parse(&frame.body)).into()),
            b'H' | b'c' | b'C' | b'N' | b'S' => {}
            _ => return Err(UpstreamError::Protocol("unexpected message during COPY").into()),
        }
    }
    rows_copied.fetch_add((builder.rows() - accounted) as u64, Ordering::Relaxed);
    held.resize(builder.bytes())?;
    Ok((builder, held))
}

/// Cuts the binary format into rows (PostgreSQL: COPY, Binary Format). PostgreSQL sends a row per message but does not
/// promise to, so what is cut short waits for the next message.
#[derive(Default)]
struct RowReader {
    rest: Vec<u8>,
    has_header: bool,
    is_done: bool,
}

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
const TORN: UpstreamError = UpstreamError::Protocol("torn COPY data");

impl RowReader {
    fn read(&mut self, message: &[u8], builder: &mut TableBuilder) -> Result<(), CopyError> {
        if self.rest.is_empty() {
            let left = self.read_rows(message, builder)?;
            self.rest.extend_from_slice(left);
        } else {
            self.rest.extend_from_slice(message);
            let bytes = std::mem::take(&mut self.rest);
            let left = self.read_rows(&bytes, builder)?;
            self.rest.extend_from_slice(left);
        }
        Ok(())
    }

    /// What is left is the beginning of a row, or of the header.
    fn read_rows<'a>(&mut self, mut bytes: &'a [u8], builder: &mut TableBuilder) -> Result<&'a [u8], CopyError> {
        if !self.has_header {
            let Some(header) = header_bytes(bytes)? else { return Ok(bytes) };
            bytes = &bytes[header..];
            self.has_header = true;
        }
        while !bytes.is_empty() && !self.is_done {
            match split_row(bytes)? {
                SplitRow::Row(cells, after) => {
                    builder.append_copy_row(cells).map_err(|error| CopyError::NotHeld(error.to_string()))?;
                    bytes = after;
                }
                SplitRow::End => self.is_done = true,
                SplitRow::CutShort => return Ok(bytes),
            }
        }
        Ok(&[])
    }
}

/// Length of the file header; None: not all here yet.
fn header_bytes(bytes: &[u8]) -> Result<Option<usize>, UpstreamError> {
    let fixed = SIGNATURE.len() + 8;
    if bytes.len() < fixed {
        return Ok(None);
    }
    if !bytes.starts_with(SIGNATURE) {
        return Err(UpstreamError::Protocol("COPY data without its signature"));
    }
    let mut extension = &bytes[fixed - 4..fixed];
    let extension = usize::try_from(extension.get_i32()).map_err(|_| TORN)?;
    Ok((bytes.len() >= fixed + extension).then_some(fixed + extension))
}

enum SplitRow<'a> {
    /// And what follows it.
    Row(Cells<'a>, &'a [u8]),
    End,
    CutShort,
}

fn split_row(bytes: &[u8]) -> Result<SplitRow<'_>, UpstreamError> {
    let mut rest = bytes;
    let Ok(count) = rest.try_get_i16() else { return Ok(SplitRow::CutShort) };
    if count == -1 {
        return Ok(SplitRow::End);
    }
    let cells = Cells { rest, left: usize::try_from(count).map_err(|_| TORN)? };
    for _ in 0..count {
        let Ok(length) = rest.try_get_i32() else { return Ok(SplitRow::CutShort) };
        let Some(after) = rest.get(usize::try_from(length).unwrap_or(0)..) else { return Ok(SplitRow::CutShort) };
        rest = after;
    }
    Ok(SplitRow::Row(cells, rest))
}

/// The cells of a row that is all there; None is NULL.
#[derive(Clone)]
struct Cells<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Cells<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let length = self.rest.get_i32();
        Some(usize::try_from(length).ok().map(|length| {
            let (cell, after) = self.rest.split_at(length);
            self.rest = after;
            cell
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Cells<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_the_heap_once_and_the_last_is_open() {
        assert_eq!(page_ranges(10, 4), [PageRange { from: 0, to: None }]);
        let ranges = page_ranges(10_000, 3);
        assert_eq!(ranges.len(), 3);
        assert_eq!(ranges[0].from, 0);
        assert!(ranges.windows(2).all(|pair| pair[0].to == Some(pair[1].from)));
        assert_eq!(ranges[2].to, None);
    }

    #[test]
    fn rows_are_split_and_torn_ones_wait() {
        let row = b"\0\x02\0\0\0\x01a\xff\xff\xff\xff\xff\xff";
        let SplitRow::Row(cells, after) = split_row(row).unwrap() else { panic!("a row") };
        assert_eq!(cells.len(), 2);
        assert_eq!((cells.collect::<Vec<_>>(), after), (vec![Some(&b"a"[..]), None], &row[11..]));
        assert!(matches!(split_row(&row[11..]).unwrap(), SplitRow::End));
        for end in 0..11 {
            assert!(matches!(split_row(&row[..end]).unwrap(), SplitRow::CutShort), "cut at {end}");
        }
        assert!(split_row(b"\xff\xf0").is_err());
    }

    #[test]
    fn the_budget_is_shared_and_given_back() {
        let budget = Arc::new(CopyBudget::default());
        budget.set_bytes_max(100);
        let (mut one, mut two) = (budget.hold(), budget.hold());
        one.resize(60).unwrap();
        assert!(two.resize(60).is_err());
        drop(one);
        two.resize(90).unwrap();
        two.resize(10).unwrap();
        drop(two);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
