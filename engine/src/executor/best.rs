//! The first rows of an order out of a chunk that is kept in that order, though its rows do not lie in it.

use super::bound::Bound;
use super::{Batching, Run, Sink};
use crate::catalog::functions::EvalError;
use crate::planner::node::Scan;
use crate::table::{Chunk, ChunkVersion};

/// The first rows of an order are mostly found in so many.
const FIRST_STEP: usize = if cfg!(debug_assertions) { 3 } else { 256 };
/// Of more than one row of so many, a chunk is read through: picking them out one by one takes longer.
const ROWS_PER_PICKED: usize = if cfg!(debug_assertions) { 2 } else { 16 };

/// Rows of a chunk by the ascending values of a column, and by their places where they are equal.
#[derive(Debug)]
pub(super) struct InOrder<'c> {
    pub(super) column: usize,
    /// From which end they are wanted.
    pub(super) is_descending: bool,
    pub(super) rows: &'c [u16],
    /// There are others, with NULL, which come behind all of them.
    pub(super) has_null: bool,
}

/// How reading the best rows of a chunk has ended.
#[derive(Debug)]
pub(super) enum Picked {
    /// No other row of the chunk is wanted.
    All,
    /// Nothing more is wanted at all.
    Stopped,
    /// Of these, any may be.
    Left(ChunkVersion),
}

impl Run<'_> {
    /// Reads the chunk's rows from the best one on, as far as they may be wanted and are few.
    pub(super) fn scan_best(
        &self,
        scan: &Scan,
        version: &ChunkVersion,
        best: &InOrder<'_>,
        bound: &Bound,
        sink: &mut Sink<'_>,
    ) -> Result<Picked, EvalError> {
        let chunk = &version.chunk;
        let (mut left, mut step) = (best.rows, FIRST_STEP);
        while let Some(first) = best.first(left) {
            if bound.is_behind(chunk, usize::from(first)) {
                return Ok(Picked::All);
            }
            let (part, behind) = best.split(chunk, left, step);
            if (best.rows.len() - behind.len()) * ROWS_PER_PICKED > chunk.rows {
                return Ok(Picked::Left(version.without(best.before(left))));
            }
            // Among equals as they lie in the chunk.
            let mut rows: Vec<u32> = part.iter().map(|row| u32::from(*row)).collect();
            rows.sort_unstable();
            if self.scan_few(scan, version, rows, sink)?.is_break() {
                return Ok(Picked::Stopped);
            }
            left = behind;
            step = Batching::Small.rows().min(step * 2);
        }
        Ok(if best.has_null { Picked::Left(version.without(best.rows)) } else { Picked::All })
    }
}

impl<'c> InOrder<'c> {
    fn first(&self, left: &[u16]) -> Option<u16> {
        if self.is_descending { left.last() } else { left.first() }.copied()
    }

    /// The best `step` rows of those that are left, with all that equal the last of them, and the others.
    fn split(&self, chunk: &Chunk, left: &'c [u16], step: usize) -> (&'c [u16], &'c [u16]) {
        let last = match self.is_descending {
            true => left[left.len().saturating_sub(step)],
            false => left[step.min(left.len()) - 1],
        };
        let Some(value) = chunk.ordinal_at(self.column, usize::from(last)) else { return (left, &[]) };
        match self.is_descending {
            true => {
                let (behind, part) = left.split_at(chunk.rows_before(self.column, left, value, false));
                (part, behind)
            }
            false => left.split_at(chunk.rows_before(self.column, left, value, true)),
        }
    }

    /// Those that come before the ones that are left.
    fn before(&self, left: &[u16]) -> &'c [u16] {
        match self.is_descending {
            true => &self.rows[left.len()..],
            false => &self.rows[..self.rows.len() - left.len()],
        }
    }
}
