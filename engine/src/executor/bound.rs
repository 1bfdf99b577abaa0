//! What a sort with a limit tells the scan below it: rows beyond the last one that it holds are of no use.
//!
//! The scan takes the chunks with the best values first and leaves out chunks, then rows, that the sort would drop. Only where
//! nothing in between can raise an error: PostgreSQL would raise it for a row that is left out here.

use std::cell::Cell;
use std::rc::Rc;

use arrow::array::{Array, AsArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Int16Type, Int32Type, Int64Type};

use super::Run;
use super::best::InOrder;
use super::order::{Direction, absolute, directed, signed};
use super::ranges::{Range, bounds_of};
use crate::binder::{BoundExpr, SortKey, cannot_raise};
use crate::catalog::functions::EvalError;
use crate::planner::expression::type_of;
use crate::planner::node::{Equality, PlanNode, Scan, SideKind};
use crate::planner::{Plan, may_raise};
use crate::table::{Chunk, ChunkVersion};
use crate::types::PgType;

/// The first key of an order, as a column of a scan, and how far the rows go that are wanted.
#[derive(Debug)]
pub(super) struct Bound {
    /// Index into the table's schema.
    column: usize,
    pg_type: PgType,
    direction: Direction,
    /// No row with a larger code is wanted.
    pub(super) threshold: Cell<u64>,
}

impl Run<'_> {
    /// The bound of a sort's input by its first key, and where the scan lies that may heed it.
    pub(super) fn bound(&self, input: &PlanNode, first: &SortKey) -> Option<(usize, Rc<Bound>)> {
        let BoundExpr::Column { index, .. } = &first.expr else { return None };
        let pg_type = type_of(&first.expr);
        let (scan, column) = if pg_type.is_ordinal() { scan_of(input, *index)? } else { return None };
        let direction = Direction { descending: first.descending, nulls_first: first.nulls_first };
        let bound = Bound { column, pg_type, direction, threshold: Cell::new(u64::MAX) };
        Some((std::ptr::from_ref(scan).addr(), Rc::new(bound)))
    }

    pub(super) fn bound_of(&self, scan: &Scan) -> Option<Rc<Bound>> {
        self.state.bounds.borrow().get(&std::ptr::from_ref(scan).addr()).cloned()
    }
}

impl Bound {
    /// The chunks in the order in which they may have what is wanted, each with a code that none of its rows is before.
    pub(super) fn ordered<'c>(&self, chunks: &'c [ChunkVersion]) -> Vec<(u64, &'c ChunkVersion)> {
        let mut chunks: Vec<_> = chunks.iter().map(|version| (self.first_code(&version.chunk), version)).collect();
        chunks.sort_by_key(|(code, _)| *code);
        chunks
    }

    /// Whether the order's column ascends through the chunk.
    pub(super) fn is_ordered_in(&self, chunk: &Chunk) -> bool {
        chunk.is_ascending(self.column)
    }

    pub(super) fn is_descending(&self) -> bool {
        self.direction.descending
    }

    /// Whether none of these rows is wanted, nor what comes behind them, in a chunk through which the column ascends.
    pub(super) fn is_past(&self, chunk: &Chunk, rows: &std::ops::Range<usize>) -> bool {
        self.is_behind(chunk, if self.direction.descending { rows.end - 1 } else { rows.start })
    }

    /// Whether this row, which has a value, is not wanted.
    pub(super) fn is_behind(&self, chunk: &Chunk, row: usize) -> bool {
        let code = chunk.ordinal_at(self.column, row).map(|value| match self.direction.descending {
            true => !signed(value),
            false => signed(value),
        });
        code.is_some_and(|code| code > self.threshold.get())
    }

    /// The chunk's rows in the column's order, as far as the ranges leave them; see [`Chunk::rows_in_order`]. None: they are not sorted, as
    /// where they lie in that order, or NULLs come before them.
    pub(super) fn rows_in_order<'c>(
        &self,
        chunk: &'c Chunk,
        ranges: &[Range],
        may_sort: &mut bool,
    ) -> Option<InOrder<'c>> {
        let is_confined = ranges.iter().any(|range| range.column == self.column);
        let has_null = !is_confined && chunk.columns[self.column].null_count() > 0;
        if self.is_ordered_in(chunk) || has_null && self.direction.nulls_first {
            return None;
        }
        let rows = chunk.rows_in_order(self.column, bounds_of(ranges, self.column), may_sort)?;
        Some(InOrder { column: self.column, is_descending: self.direction.descending, rows, has_null })
    }

    fn first_code(&self, chunk: &Chunk) -> u64 {
        let Some(zone) = chunk.zone(self.column) else { return 0 };
        if zone.nulls > 0 && self.direction.nulls_first {
            return 0;
        }
        let first = if self.direction.descending { &zone.max } else { &zone.min };
        match first.ordinal() {
            Some(first) if self.direction.descending => !signed(first),
            Some(first) => signed(first),
            // Only NULLs, which are last.
            None => u64::MAX,
        }
    }

    /// Set bit: the row of that part of the chunk may be wanted. None: all may.
    pub(super) fn wanted(&self, chunk: &Chunk, offset: usize, rows: usize) -> Result<Option<BooleanBuffer>, EvalError> {
        let threshold = self.threshold.get();
        if threshold == u64::MAX {
            return Ok(None);
        }
        let values = chunk.columns[self.column].slice(offset, rows);
        if values.null_count() == 0 {
            let code = if self.direction.descending { !threshold } else { threshold };
            let last = (code ^ (1 << 63)).cast_signed();
            return Ok(match values.data_type() {
                DataType::Int16 => Some(self.within(values.as_primitive::<Int16Type>().values(), last)),
                DataType::Int32 => Some(self.within(values.as_primitive::<Int32Type>().values(), last)),
                DataType::Int64 => Some(self.within(values.as_primitive::<Int64Type>().values(), last)),
                _ => None,
            });
        }
        let Some(codes) = absolute(&values, self.pg_type)? else { return Ok(None) };
        let codes = directed(codes, values.as_ref(), self.direction);
        Ok(Some(BooleanBuffer::collect_bool(rows, |row| codes[row] <= threshold)))
    }

    /// Set bit: the value does not come behind `last`.
    fn within<T: Copy + Into<i64>>(&self, values: &[T], last: i64) -> BooleanBuffer {
        if self.direction.descending {
            BooleanBuffer::collect_bool(values.len(), |row| values[row].into() >= last)
        } else {
            BooleanBuffer::collect_bool(values.len(), |row| values[row].into() <= last)
        }
    }
}

/// Of a plan that gives the first rows of an order: which of its scans has the first key, and in which column.
#[derive(Clone, Debug)]
pub struct Top {
    /// In the order of [`Plan::scans`].
    pub scan: usize,
    /// Index into the table's schema.
    column: usize,
    pg_type: PgType,
    direction: Direction,
}

impl Top {
    pub fn of(plan: &Plan) -> Option<Self> {
        let PlanNode::Sort { input, keys, .. } = plan.outermost_sort()? else { return None };
        let first = keys.first()?;
        let BoundExpr::Column { index, .. } = &first.expr else { return None };
        let pg_type = type_of(&first.expr);
        let (scan, column) = if pg_type.is_ordinal() { scan_of(input, *index)? } else { return None };
        let scan = plan.scans().into_iter().position(|of| std::ptr::eq(of, scan))?;
        // A row behind the last may raise one all the same, or meet one elsewhere that does (PostgreSQL sorts what it has computed).
        if may_raise(plan) {
            return None;
        }
        let direction = Direction { descending: first.descending, nulls_first: first.nulls_first };
        Some(Self { scan, column, pg_type, direction })
    }

    /// Set bit: the row does not come behind a last one whose key has this code. `of_chunk`: the chunk's column for the table's. None: it
    /// is not known.
    pub(super) fn wanted(
        &self,
        chunk: &Chunk,
        of_chunk: impl Fn(usize) -> usize,
        last: u64,
    ) -> Result<Option<BooleanBuffer>, EvalError> {
        let column = of_chunk(self.column);
        if chunk.pg_type(column) != Some(self.pg_type) {
            return Ok(None);
        }
        let values = &chunk.columns[column];
        let Some(codes) = absolute(values, self.pg_type)? else { return Ok(None) };
        let codes = directed(codes, values.as_ref(), self.direction);
        Ok(Some(BooleanBuffer::collect_bool(chunk.rows, |row| codes[row] <= last)))
    }
}

/// The scan whose rows each make rows of the node by themselves, without any error, and the column of its table that is the
/// node's column.
fn scan_of(node: &PlanNode, column: usize) -> Option<(&Scan, usize)> {
    let all = |exprs: &[BoundExpr]| exprs.iter().all(cannot_raise);
    let equal = |equalities: &[Equality]| {
        equalities.iter().all(|equality| cannot_raise(&equality.left) && cannot_raise(&equality.right))
    };
    match node {
        PlanNode::Scan(scan) => all(&scan.filters).then(|| (scan, scan.columns[column])),
        PlanNode::Filter { input, predicates } if all(predicates) => scan_of(input, column),
        PlanNode::Project { input, expressions } if all(expressions) => match &expressions[column] {
            BoundExpr::Column { index, .. } => scan_of(input, *index),
            _ => None,
        },
        PlanNode::SideJoin(join) if column < join.left.width() => {
            let is_plain = matches!(join.kind, SideKind::Left | SideKind::Semi | SideKind::Anti | SideKind::Mark)
                && equal(&join.equalities)
                && all(&join.filters)
                && join.test.iter().all(cannot_raise);
            if is_plain { scan_of(&join.left, column) } else { None }
        }
        PlanNode::Join(join) if equal(&join.equalities) && equal(&join.implied) && all(&join.filters) => {
            let (input, column) = join.input_at(column);
            scan_of(input, column)
        }
        _ => None,
    }
}
