//! Row batches → wire bytes: DataRow frames with CommandComplete, and the descriptions of a plan's result.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::Instant;

use arrow::array::{Array, ArrayRef};
use bytes::Bytes;
use freshet_engine::binder::OutputColumn;
use freshet_engine::catalog::functions::{EvalContext, EvalError};
use freshet_engine::executor::memory::{MemoryPool, POOL_IS_EMPTY, Share};
use freshet_engine::executor::parallel::Helpers;
use freshet_engine::executor::point::PointRow;
use freshet_engine::executor::upkeep::KeptGroups;
use freshet_engine::executor::{Limits, RowBatch};
use freshet_engine::planner::Plan;
use freshet_engine::result_cache::{Course, Done, Pieces};
use freshet_engine::snapshot::Snapshot;
use freshet_engine::types::encode::{ColumnEncoder, Format, ROW_HEADER_BYTES, room_beyond, write_rows};
use freshet_engine::types::{FormatSettings, Value};
use freshet_engine::{Engine, Pace};
use parking_lot::Mutex;

use crate::session::answer::early::Early;
use crate::wire::extended::write_parameter_description;
use crate::wire::query::{Field, write_command_complete, write_row_description};

/// The rows of an answer on the wire.
pub(super) struct Rows {
    /// DataRow frames and CommandComplete.
    pub(super) frames: Pieces,
    pub(super) count: u64,
    /// To be kept beside the reply, and how they came about.
    pub(super) groups: Option<KeptGroups>,
    pub(super) done: Done,
    /// See [`freshet_engine::result_cache::CachedReply::last`].
    pub(super) last: u64,
    /// What the engine took, in microseconds.
    pub(super) run_us: u64,
}

/// What is executed, and how its rows are sent.
pub(super) struct Run<'a> {
    pub(super) plan: &'a Plan,
    pub(super) snapshot: &'a Snapshot,
    pub(super) parameters: &'a [Value],
    pub(super) eval: EvalContext<'a>,
    pub(super) formats: &'a [Format],
    pub(super) pace: Pace,
    /// Where the first rows of a long reply go before all are encoded.
    pub(super) early: Option<&'a Early>,
}

/// Rows that are encoded before somebody looks whether the reply is still wanted, and not too long.
const ENCODED_ROWS: usize = 1_024;

impl Run<'_> {
    /// Executes and encodes. Ends soon once `is_abandoned`. What a statement may use is also what its reply may have.
    pub(super) fn rows(
        &self,
        engine: &Engine,
        course: &Course,
        is_abandoned: &Arc<AtomicBool>,
    ) -> Result<Rows, EvalError> {
        let Self { plan, snapshot, parameters, eval, pace, .. } = self;
        let started = Instant::now();
        let ((batches, groups, done), last) =
            engine.run_course(*pace, course, plan, snapshot, parameters, eval, is_abandoned)?;
        let run_us = started.elapsed().as_micros() as u64;
        let count: usize = batches.iter().map(|batch| batch.rows).sum();
        let limits = engine.limits(*pace);
        let encoding =
            Encoding { output: &plan.output, settings: eval.settings, formats: self.formats, limits, is_abandoned };
        let mut out = encoding.encode(&batches, count, self.early)?;
        drop(batches);
        write_command_complete(&mut out.bytes, &format!("SELECT {count}"));
        Ok(Rows { frames: out.finish()?, count: count as u64, groups, done, last, run_us })
    }
}

/// The same where the answer is known to be one row, or none.
pub(super) fn rows_of_point(
    plan: &Plan,
    point: &PointRow<'_>,
    formats: &[Format],
    settings: &FormatSettings,
    limits: &Limits,
) -> Result<Rows, EvalError> {
    let mut out = Reply::new(limits, 64 + 24 * plan.output.len(), Room::Counted { from: COUNTED_BYTES });
    if let Some((chunk, row)) = point.row {
        let described = point.columns.iter().zip(&plan.output).zip(formats);
        let encoder = |((column, output), format): ((&usize, &OutputColumn), &Format)| {
            ColumnEncoder::new(&chunk.columns[*column], output.expr_type.pg_type, *format, settings)
        };
        write_rows(&mut described.map(encoder).collect::<Vec<_>>(), row..row + 1, &mut out.bytes);
        out.check(limits)?;
    }
    let count = u64::from(point.row.is_some());
    write_command_complete(&mut out.bytes, if count == 1 { "SELECT 1" } else { "SELECT 0" });
    Ok(Rows { frames: out.finish()?, count, groups: None, done: Done::Anew, last: u64::MAX, run_us: 0 })
}

/// Fewer rows are encoded before a thread has begun.
const SHARED_ROWS_MIN: usize = 16_384;

/// How rows are encoded, and within which bounds.
#[derive(Clone, Copy)]
struct Encoding<'a> {
    output: &'a [OutputColumn],
    settings: &'a FormatSettings,
    formats: &'a [Format],
    limits: &'a Limits,
    is_abandoned: &'a AtomicBool,
}

/// Rows of a batch.
type Piece<'a> = (&'a RowBatch, Range<usize>);

impl Encoding<'_> {
    /// All rows, by several threads where there are many and threads are free.
    fn encode(&self, batches: &[RowBatch], count: usize, early: Option<&Early>) -> Result<Reply, EvalError> {
        let threads = self.limits.threads_max;
        let wanted = (count / SHARED_ROWS_MIN).min(threads.saturating_sub(1));
        let helpers = Helpers::take(wanted, threads.saturating_sub(1));
        if let Some(early) = early.filter(|_| count >= 2 * EARLY_ROWS)
            && let Some(room) = self.room(batches)
        {
            return self.encode_early(batches, count, helpers.count() + 1, room, early);
        }
        let shares = shares(batches, count, helpers.count() + 1);
        let room = Room::Counted { from: COUNTED_BYTES / shares.len() };
        let encode = |at: usize| self.encode_share(&shares[at], room.clone());
        let mut parts = by_threads(shares.len(), &encode)?.into_iter();
        drop(helpers);
        let mut out = parts.next().unwrap_or_else(|| Reply::new(self.limits, 0, room));
        for part in parts {
            out.append(part)?;
            out.check(self.limits)?;
        }
        Ok(out)
    }

    /// A few rows at a time, which are sent as soon as those before them are: so many threads take them in turn.
    fn encode_early(
        &self,
        batches: &[RowBatch],
        count: usize,
        threads: usize,
        room: Room,
        early: &Early,
    ) -> Result<Reply, EvalError> {
        let parts = shares(batches, count, count.div_ceil(EARLY_ROWS));
        let (next, sending) = (AtomicUsize::new(0), Mutex::new(Sending::new(parts.len(), early)));
        let encode = |_: usize| -> Result<(), EvalError> {
            let mut out = Reply::new(self.limits, PIECE_BYTES, room.clone());
            let mut current: Option<(&RowBatch, Vec<ColumnEncoder<'_>>)> = None;
            loop {
                let at = next.fetch_add(1, Relaxed);
                let Some(part) = parts.get(at) else { return Ok(()) };
                for (batch, rows) in part {
                    let (_, encoders) = match &mut current {
                        Some(made) if std::ptr::eq(made.0, *batch) => made,
                        other => other.insert((batch, self.encoders(batch))),
                    };
                    self.encode_rows(batch, rows.clone(), encoders, &mut out)?;
                }
                out.cut()?;
                sending.lock().put(at, std::mem::take(&mut out.pieces));
            }
        };
        by_threads(threads, &encode)?;
        let mut out = Reply::new(self.limits, 64, room);
        out.pieces = sending.into_inner().parts.into_iter().flatten().flatten().collect();
        out.length = out.pieces.iter().map(Bytes::len).sum();
        Ok(out)
    }

    /// For all rows, where it is known to suffice: nothing can fail then any more once they are encoded.
    fn room(&self, batches: &[RowBatch]) -> Option<Room> {
        let of_column = |((column, output), format): ((&ArrayRef, &OutputColumn), &Format)| {
            ColumnEncoder::bytes_max(column, output.expr_type.pg_type, *format, self.settings)
        };
        let of_batch = |batch: &RowBatch| {
            let described = batch.columns.iter().zip(self.output).zip(self.formats);
            Some(described.map(of_column).sum::<Option<usize>>()? + ROW_HEADER_BYTES * batch.rows)
        };
        let bytes = batches.iter().map(of_batch).sum::<Option<usize>>()?;
        let Limits { pool, memory_bytes_max, .. } = self.limits;
        if bytes > EARLY_BYTES_MAX.min(*memory_bytes_max).min(pool.bytes_max() / EARLY_SHARE) {
            return None;
        }
        let mut share = Share::of(pool);
        share.grow(bytes).then(|| Room::Taken(Arc::new(share)))
    }

    fn encode_share(&self, pieces: &[Piece<'_>], room: Room) -> Result<Reply, EvalError> {
        let expected: usize = pieces.iter().map(|(_, rows)| rows.len()).sum();
        let mut out = Reply::new(self.limits, 64 + expected * self.row_bytes(), room);
        for (batch, rows) in pieces {
            self.encode_rows(batch, rows.clone(), &mut self.encoders(batch), &mut out)?;
        }
        Ok(out)
    }

    /// Of one row in a message, as a guess.
    fn row_bytes(&self) -> usize {
        8 + 12 * self.output.len()
    }

    fn encoders(&self, batch: &RowBatch) -> Vec<ColumnEncoder<'_>> {
        let described = batch.columns.iter().zip(self.output).zip(self.formats);
        let encoder = |((column, output), format): ((&ArrayRef, &OutputColumn), &Format)| {
            ColumnEncoder::new(column, output.expr_type.pg_type, *format, self.settings)
        };
        described.map(encoder).collect()
    }

    fn encode_rows(
        &self,
        batch: &RowBatch,
        rows: Range<usize>,
        encoders: &mut [ColumnEncoder<'_>],
        out: &mut Reply,
    ) -> Result<(), EvalError> {
        // Fewer rows at a time the longer they are.
        let each = batch.columns.iter().map(bytes_of_row).sum::<usize>().max(1);
        let step = ENCODED_ROWS.min(ENCODED_BYTES / each).max(1);
        // Of a row, as those before were.
        let mut expected = self.row_bytes();
        for first in rows.clone().step_by(step) {
            if self.is_abandoned.load(Relaxed) {
                return Err(EvalError::OverBudget("cancelled"));
            }
            let rows = first..rows.end.min(first + step);
            let count = rows.len();
            out.make_room(count * (expected + expected / 8) + room_beyond(count, encoders.len()))?;
            let before = out.bytes.len();
            write_rows(encoders, rows, &mut out.bytes);
            expected = (out.bytes.len() - before).div_ceil(count);
            out.check(self.limits)?;
        }
        Ok(())
    }
}

/// `count` rows of all batches in so many shares of about the same size, in order; at least one.
fn shares(batches: &[RowBatch], count: usize, shares: usize) -> Vec<Vec<Piece<'_>>> {
    let each = count.div_ceil(shares).max(1);
    let mut made = vec![Vec::new()];
    let mut room = each;
    for batch in batches {
        let mut first = 0;
        while first < batch.rows {
            if room == 0 {
                made.push(Vec::new());
                room = each;
            }
            let end = batch.rows.min(first + room);
            made.last_mut().expect("there is one").push((batch, first..end));
            room -= end - first;
            first = end;
        }
    }
    made
}

/// Bytes that are encoded at a time, roughly.
const ENCODED_BYTES: usize = 1 << 20;

/// Of a column, what one row takes on the average.
fn bytes_of_row(column: &ArrayRef) -> usize {
    column.get_array_memory_size() / column.len().max(1)
}

/// Rows that are sent together where a reply is sent before all of it is made.
const EARLY_ROWS: usize = 4_096;
/// Longer replies are sent when they are complete: who cancels, or makes upstream's limits end a statement, waits no longer for it.
const EARLY_BYTES_MAX: usize = 16 << 20;
/// Of the memory of all statements, what is set aside for one such reply, as a divisor: its rows will mostly take less.
const EARLY_SHARE: usize = 8;

/// Whether what a reply takes is of what all statements together may use.
#[derive(Clone)]
enum Room {
    /// From so many bytes on, piece by piece.
    Counted { from: usize },
    /// It has been taken, for all pieces together.
    Taken(Arc<Share>),
}

/// Parts of a reply that are made in any order and sent in theirs.
struct Sending<'a> {
    parts: Vec<Option<Vec<Bytes>>>,
    sent: usize,
    early: &'a Early,
}

impl<'a> Sending<'a> {
    fn new(count: usize, early: &'a Early) -> Self {
        Self { parts: vec![None; count], sent: 0, early }
    }

    fn put(&mut self, at: usize, pieces: Vec<Bytes>) {
        self.parts[at] = Some(pieces);
        while let Some(Some(pieces)) = self.parts.get(self.sent) {
            pieces.iter().for_each(|piece| self.early.put(piece.clone()));
            self.sent += 1;
        }
    }
}

/// What so many threads make, this one the first; each is told its number.
fn by_threads<T: Send>(
    threads: usize,
    make: &(impl Fn(usize) -> Result<T, EvalError> + Sync),
) -> Result<Vec<T>, EvalError> {
    thread::scope(|scope| {
        let helping: Vec<_> = (1..threads).map(|number| scope.spawn(move || make(number))).collect();
        let own = make(0);
        let theirs = helping.into_iter().map(|helper| helper.join().unwrap_or_else(|_| Err(panicked())));
        std::iter::once(own).chain(theirs).collect()
    })
}

fn panicked() -> EvalError {
    EvalError::Beyond("the encoding of a share panicked".to_owned())
}

/// A reply that is being put together.
struct Reply {
    pieces: Vec<Bytes>,
    /// The piece that is being written.
    bytes: Vec<u8>,
    /// Of the pieces before.
    length: usize,
    room: Room,
    pool: Arc<MemoryPool>,
}

/// Shorter replies are not counted: they may be kept, within the bounds of what keeps them.
const COUNTED_BYTES: usize = 4 << 20;

/// Of a piece. The allocator has such blocks at hand, where it would ask the kernel for larger ones, which clears them each time.
const PIECE_BYTES: usize = 256 << 10;
/// A piece is cut to its length where it has much more room.
const CUT_FROM: usize = 4 << 10;

impl Reply {
    fn new(limits: &Limits, expected: usize, room: Room) -> Self {
        let bytes = Vec::with_capacity(expected.min(PIECE_BYTES));
        Self { pieces: Vec::new(), bytes, length: 0, room, pool: Arc::clone(&limits.pool) }
    }

    /// Whether it may be as long as it is.
    fn check(&self, limits: &Limits) -> Result<(), EvalError> {
        match self.length + self.bytes.len() > limits.memory_bytes_max {
            true => Err(EvalError::OverBudget("memory")),
            false => Ok(()),
        }
    }

    /// For so many bytes, in this piece or in the next.
    fn make_room(&mut self, bytes: usize) -> Result<(), EvalError> {
        if self.bytes.len() + bytes <= self.bytes.capacity().max(PIECE_BYTES) {
            self.bytes.reserve(bytes);
            return Ok(());
        }
        self.cut()?;
        self.bytes.reserve(bytes.max(PIECE_BYTES));
        Ok(())
    }

    /// Ends the piece. What is written into goes on being used: warm, and of one size, while each piece takes what it needs.
    fn cut(&mut self) -> Result<(), EvalError> {
        let piece = self.bytes.as_slice().to_vec();
        self.bytes.clear();
        self.add(piece)
    }

    fn append(&mut self, other: Self) -> Result<(), EvalError> {
        let piece = std::mem::replace(&mut self.bytes, other.bytes);
        self.add(piece)?;
        self.pieces.extend(other.pieces);
        self.length += other.length;
        Ok(())
    }

    /// Whoever holds a piece of a long reply, a client that does not read it above all, holds its share.
    fn add(&mut self, mut bytes: Vec<u8>) -> Result<(), EvalError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.capacity() > CUT_FROM && bytes.capacity() - bytes.len() > bytes.len() / 16 {
            bytes.shrink_to_fit();
        }
        self.length += bytes.len();
        let share = match &self.room {
            Room::Taken(share) => Arc::clone(share),
            Room::Counted { from } if self.length < *from => {
                self.pieces.push(bytes.into());
                return Ok(());
            }
            Room::Counted { .. } => {
                let mut share = Share::of(&self.pool);
                if !share.grow(bytes.capacity()) {
                    return Err(EvalError::OverBudget(POOL_IS_EMPTY));
                }
                Arc::new(share)
            }
        };
        self.pieces.push(Bytes::from_owner(Counted { bytes, _share: share }));
        Ok(())
    }

    fn finish(mut self) -> Result<Pieces, EvalError> {
        let last = std::mem::take(&mut self.bytes);
        self.add(last)?;
        if let Room::Taken(share) = &self.room {
            share.shrink(if self.length < COUNTED_BYTES { 0 } else { self.length });
        }
        Ok(self.pieces.into_iter().collect())
    }
}

/// The same bytes without the room that short pieces have beyond them: what is kept is weighed by its length.
pub(super) fn without_room(rows: &Pieces) -> Pieces {
    let cut = |piece: &Bytes| if piece.len() < CUT_FROM { Bytes::copy_from_slice(piece) } else { piece.clone() };
    rows.iter().map(cut).collect()
}

struct Counted {
    bytes: Vec<u8>,
    _share: Arc<Share>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A RowDescription frame with the given formats.
pub(super) fn row_description(plan: &Plan, formats: &[Format]) -> Bytes {
    let mut out = Vec::new();
    let fields: Vec<Field<'_>> = fields(plan, formats);
    write_row_description(&mut out, fields.into_iter());
    out.into()
}

/// The result's columns as RowDescription carries them.
pub(super) fn fields<'a>(plan: &'a Plan, formats: &[Format]) -> Vec<Field<'a>> {
    let columns = plan.output.iter().zip(formats);
    columns
        .map(|(column, format)| Field {
            name: column.name.as_bytes(),
            table_oid: column.table_oid,
            attnum: column.attnum,
            type_oid: column.expr_type.pg_type.oid(),
            type_length: column.expr_type.pg_type.type_length(),
            typmod: column.expr_type.typmod,
            format: i16::from(*format == Format::Binary),
        })
        .collect()
}

/// ParameterDescription and RowDescription frames, as Describe of a statement yields them (formats not known yet: 0).
pub(super) fn describe_statement(plan: &Plan) -> (Bytes, Bytes) {
    let mut parameters = Vec::new();
    let types: Vec<u32> = plan.parameters.iter().map(|pg_type| pg_type.oid()).collect();
    write_parameter_description(&mut parameters, &types);
    (parameters.into(), row_description(plan, &vec![Format::Text; plan.output.len()]))
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, Int32Array, StringArray};
    use freshet_engine::binder::ExprType;
    use freshet_engine::catalog::Collation;
    use freshet_engine::types::PgType;
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn shares_are_in_order_and_of_about_the_same_size() {
        let batch = |rows| RowBatch { rows, columns: Vec::new() };
        let batches = [batch(5), batch(0), batch(1), batch(7)];
        let cut = |into| {
            let made = shares(&batches, 13, into);
            let bounds = |share: &Vec<Piece<'_>>| share.iter().map(|(_, rows)| (rows.start, rows.end)).collect();
            made.iter().map(bounds).collect::<Vec<Vec<_>>>()
        };
        assert_eq!(cut(1), [vec![(0, 5), (0, 1), (0, 7)]]);
        assert_eq!(cut(2), [vec![(0, 5), (0, 1), (0, 1)], vec![(1, 7)]]);
        assert_eq!(cut(4), [vec![(0, 4)], vec![(4, 5), (0, 1), (0, 2)], vec![(2, 6)], vec![(6, 7)]]);
        let of_none = shares(&[], 0, 3);
        assert!(of_none.len() == 1 && of_none[0].is_empty());
    }

    #[test]
    fn what_is_kept_has_no_room_beyond_its_bytes() {
        let roomy = |bytes: &[u8]| {
            let mut made = Vec::with_capacity(CUT_FROM);
            made.extend_from_slice(bytes);
            Bytes::from(made)
        };
        let kept = without_room(&[roomy(b"ab"), roomy(b"c")].into_iter().collect());
        let pieces: Vec<Bytes> = kept.iter().cloned().collect();
        drop(kept);
        assert_eq!(pieces, [&b"ab"[..], b"c"]);
        let capacity = |piece: Bytes| piece.try_into_mut().expect("nobody else has it").capacity();
        assert_eq!(pieces.into_iter().map(capacity).collect::<Vec<_>>(), [2, 1]);
    }

    /// The rows of a column of numbers and one of texts, encoded; and what of them was put ahead.
    fn encoded(limits: &Limits, rows: i32, text_type: PgType) -> (Vec<u8>, Vec<u8>, usize) {
        let columns = |from: i32, to: i32| -> RowBatch {
            let numbers = Int32Array::from_iter_values(from..to);
            let texts: ArrayRef = match text_type {
                PgType::Bytea => {
                    Arc::new((from..to).map(|n| Some(n.to_string().into_bytes())).collect::<BinaryArray>())
                }
                _ => Arc::new((from..to).map(|n| (n % 7 > 0).then(|| n.to_string())).collect::<StringArray>()),
            };
            RowBatch { rows: numbers.len(), columns: vec![Arc::new(numbers), texts] }
        };
        let output = [PgType::Int4, text_type].map(|pg_type| OutputColumn {
            name: "c".into(),
            table_oid: 0,
            attnum: 0,
            expr_type: ExprType { pg_type, typmod: -1, collation: Collation::None },
        });
        let is_abandoned = AtomicBool::new(false);
        let settings = FormatSettings::default();
        let formats = [Format::Text; 2];
        let encoding =
            Encoding { output: &output, settings: &settings, formats: &formats, limits, is_abandoned: &is_abandoned };
        let batches = [columns(0, rows / 3), columns(rows / 3, rows)];
        let early = Early { to: Arc::default(), head: Arc::default() };
        let out = encoding.encode(&batches, rows as usize, Some(&early)).expect("within bounds");
        let put = match early.to.has_begun() {
            true => early.to.take().now_or_never().expect("some are there"),
            false => Vec::new(),
        };
        let ahead: Vec<u8> = put.iter().flat_map(|piece| piece.rows.to_vec()).collect();
        let whole: Vec<u8> = out.finish().expect("room").iter().flatten().copied().collect();
        (whole, ahead, put.len())
    }

    #[test]
    fn rows_of_a_known_length_go_ahead_and_are_the_same() {
        let shared = Limits { threads_max: 3, ..Limits::default() };
        let (whole, ahead, pieces) = encoded(&shared, 40_000, PgType::Text);
        assert!(whole == ahead && pieces >= 40_000 / EARLY_ROWS, "{} {} {pieces}", whole.len(), ahead.len());
        let (alone, ahead, _) = encoded(&Limits::default(), 40_000, PgType::Text);
        assert!(alone == whole && ahead == whole);
        // Of a length that is not known, of few rows, and beyond what may be set aside.
        let small = Limits { pool: MemoryPool::new(4 << 20), ..Limits::default() };
        for (limits, rows, text_type) in [
            (&shared, 40_000, PgType::Bytea),
            (&shared, 2 * EARLY_ROWS as i32 - 1, PgType::Text),
            (&small, 40_000, PgType::Text),
        ] {
            let (whole, ahead, _) = encoded(limits, rows, text_type);
            assert!(!whole.is_empty() && ahead.is_empty());
        }
        assert_eq!((shared.pool.used(), small.pool.used()), (0, 0));
    }
}
