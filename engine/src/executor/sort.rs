//! ORDER BY, ORDER BY with LIMIT (only the rows that can still be among the first are kept), and LIMIT without order.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{BooleanArray, UInt32Array};
use arrow::buffer::BooleanBuffer;

use super::arrays::concatenate;
use super::batch::Batch;
use super::bound::Bound;
use super::order::{Codes, Direction, absolute, codes, directed, sorted_rows};
use super::{Batching, Flow, Run, Sink};
use crate::binder::{BoundExpr, SortKey};
use crate::catalog::functions::EvalError;
use crate::planner::expression::type_of;
use crate::planner::node::PlanNode;
use crate::types::Value;
use crate::types::access::empty_array;

/// Which rows of an ordered whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    offset: usize,
    /// None: to the end.
    limit: Option<usize>,
    /// With all that are equal to the last.
    pub(super) with_ties: bool,
    /// From the first row of the order on, wherever they begin.
    is_from_first: bool,
    /// The statement's own: its last row's first key is wanted.
    pub(super) tells_last: bool,
}

impl Bounds {
    pub(super) fn all_with_ties(self) -> Self {
        Self { with_ties: true, is_from_first: true, ..self }
    }

    /// How many rows from the start matter.
    fn end(&self) -> Option<usize> {
        self.limit.map(|limit| self.offset.saturating_add(limit))
    }
}

/// Up to so many rows a selection of the first ones is kept while reading; beyond, everything is sorted.
const TOP_ROWS_MAX: usize = 65_536;
/// Candidates are thinned out when there are twice as many as wanted, or so many, and then as were left the last time.
const THIN_MIN: usize = 128;
/// So many rows at a time are compared with the last one.
const TIES_STEP: usize = 1_024;

impl Run<'_> {
    pub(super) fn bounds(&self, limit: Option<&BoundExpr>, offset: Option<&BoundExpr>) -> Result<Bounds, EvalError> {
        let limit = self.row_count(limit, "LIMIT must not be negative")?;
        let offset = self.row_count(offset, "OFFSET must not be negative")?.unwrap_or(0);
        Ok(Bounds { offset, limit, with_ties: false, is_from_first: false, tells_last: false })
    }

    /// None: absent or NULL.
    fn row_count(&self, expr: Option<&BoundExpr>, negative: &str) -> Result<Option<usize>, EvalError> {
        let Some(expr) = expr else { return Ok(None) };
        let count = match super::eval::constant(expr, self.environment.parameters, self.environment.context)? {
            Value::Null => return Ok(None),
            Value::Int2(count) => i64::from(count),
            Value::Int4(count) => i64::from(count),
            Value::Int8(count) => count,
            _ => return Err(EvalError::Beyond("a limit of another type than bigint".to_owned())),
        };
        usize::try_from(count).map(Some).map_err(|_| EvalError::Raises(negative.to_owned()))
    }

    pub(super) fn limit(&self, input: &PlanNode, bounds: &Bounds, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let mut skip = bounds.offset;
        let mut left = bounds.limit.unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(Flow::Continue(()));
        }
        let mut outer = Flow::Continue(());
        let _ = self.run(input, Batching::Small, &mut |batch| {
            let skipped = skip.min(batch.rows);
            skip -= skipped;
            let taken = left.min(batch.rows - skipped);
            if taken > 0 {
                left -= taken;
                outer = sink(batch.slice(skipped, taken))?;
            }
            Ok(if left == 0 { Flow::Break(()) } else { outer })
        })?;
        Ok(outer)
    }

    pub(super) fn sort(
        &self,
        input: &PlanNode,
        keys: &[SortKey],
        bounds: &Bounds,
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        if bounds.limit == Some(0) {
            return Ok(Flow::Continue(()));
        }
        let batches = match (bounds.end(), keys.first()) {
            (Some(wanted), Some(first)) if wanted <= TOP_ROWS_MAX => self.candidates(input, first, wanted)?,
            _ => self.collect(input)?,
        };
        let Some(all) = self.concatenate(input, batches)? else { return Ok(Flow::Continue(())) };
        let order = self.order(&all, keys)?;
        let (mut start, mut end) =
            (bounds.offset.min(order.len()), bounds.end().unwrap_or(order.len()).min(order.len()));
        if bounds.tells_last && bounds.end() == Some(end) {
            self.tell_last(&all, keys, order[end - 1])?;
        }
        if bounds.with_ties {
            end = self.end_of_ties(&all, keys, &order, end)?;
        }
        if bounds.is_from_first {
            start = 0;
        }
        if start == end {
            return Ok(Flow::Continue(()));
        }
        let is_in_order = order[start..end].iter().zip(start as u32..).all(|(row, at)| *row == at);
        if is_in_order {
            return sink(all.slice(start, end - start));
        }
        let rows = UInt32Array::from(order).slice(start, end - start);
        sink(all.select(&Arc::new(rows))?)
    }

    /// Of as many rows as are wanted: none of whatever comes behind this one by the first key is needed.
    fn tell_last(&self, batch: &Batch, keys: &[SortKey], row: u32) -> Result<(), EvalError> {
        let (Some(last), Some(first)) = (self.last, keys.first()) else { return Ok(()) };
        let batch = batch.select(&Arc::new(UInt32Array::from(vec![row])))?;
        let values = self.environment.evaluate_column(&first.expr, &batch)?;
        if let Some(codes) = absolute(&values, type_of(&first.expr))? {
            let direction = Direction { descending: first.descending, nulls_first: first.nulls_first };
            last.store(directed(codes, values.as_ref(), direction)[0], Ordering::Relaxed);
        }
        Ok(())
    }

    /// Behind the last of the rows, in that order, that are equal by the keys to the one before `end` (nodeLimit.c, ExecLimit: by
    /// the equality that belongs to the order, under which NULLs are equal).
    fn end_of_ties(&self, batch: &Batch, keys: &[SortKey], order: &[u32], end: usize) -> Result<usize, EvalError> {
        let Some(last) = end.checked_sub(1) else { return Ok(end) };
        let mut at = end;
        while at < order.len() {
            self.check_cancelled()?;
            let next = &order[at..order.len().min(at + TIES_STEP)];
            let rows = UInt32Array::from_iter_values([order[last]].into_iter().chain(next.iter().copied()));
            let codes = self.key_codes(&batch.select(&Arc::new(rows))?, keys)?;
            let differs = |row: &usize| codes.iter().any(|key| !key.are_equal(0, *row));
            if let Some(row) = (1..=next.len()).find(differs) {
                return Ok(at + row - 1);
            }
            at += next.len();
        }
        Ok(at)
    }

    /// Row numbers of the batch in the order of the keys.
    fn order(&self, batch: &Batch, keys: &[SortKey]) -> Result<Vec<u32>, EvalError> {
        self.check_cancelled()?;
        self.charge(batch.rows * 16)?;
        Ok(sorted_rows(self.key_codes(batch, keys)?, batch.rows))
    }

    fn key_codes(&self, batch: &Batch, keys: &[SortKey]) -> Result<Vec<Codes>, EvalError> {
        let mut key_codes: Vec<Codes> = Vec::with_capacity(keys.len());
        for key in keys {
            let values = self.environment.evaluate_column(&key.expr, batch)?;
            let direction = Direction { descending: key.descending, nulls_first: key.nulls_first };
            key_codes.push(codes(&values, type_of(&key.expr), direction)?);
        }
        Ok(key_codes)
    }

    pub(super) fn collect(&self, input: &PlanNode) -> Result<Vec<Batch>, EvalError> {
        let mut batches = Vec::new();
        let _ = self.run(input, Batching::Whole, &mut |batch| {
            self.check_cancelled()?;
            self.charge(batch.held_bytes())?;
            batches.push(batch);
            Ok(Flow::Continue(()))
        })?;
        Ok(batches)
    }

    /// All rows as one batch.
    pub(super) fn read(&self, node: &PlanNode) -> Result<Batch, EvalError> {
        if let Some(batch) = self.concatenate(node, self.collect(node)?)? {
            return Ok(batch);
        }
        let types = self.output_types(node)?;
        Ok(Batch::new(types.into_iter().map(empty_array).collect(), 0))
    }

    /// One batch of all rows; None if there are none.
    pub(super) fn concatenate(&self, node: &PlanNode, mut batches: Vec<Batch>) -> Result<Option<Batch>, EvalError> {
        if batches.len() <= 1 {
            return Ok(batches.pop());
        }
        let rows = batches.iter().map(|batch| batch.rows).sum();
        if u32::try_from(rows).is_err() {
            return Err(EvalError::OverBudget("rows of one sort or join side"));
        }
        let types = self.output_types(node)?;
        let mut columns = Vec::with_capacity(types.len());
        for (index, pg_type) in types.iter().enumerate() {
            let pieces = batches.iter().map(|batch| batch.column(index)).collect::<Result<Vec<_>, _>>()?;
            let whole = concatenate(*pg_type, &pieces)?;
            self.charge(whole.get_array_memory_size())?;
            columns.push(whole);
        }
        Ok(Some(Batch::new(columns, rows)))
    }

    /// The input's rows without most of those that cannot be among the first `wanted` in order of the first key.
    fn candidates(&self, input: &PlanNode, first: &SortKey, wanted: usize) -> Result<Vec<Batch>, EvalError> {
        let bound = self.bound(input, first);
        if let Some((scan, bound)) = &bound {
            self.state.bounds.borrow_mut().insert(*scan, Rc::clone(bound));
        }
        let told = bound.as_ref().map(|(_, bound)| Rc::clone(bound));
        let top = self.top(input, first, wanted, told);
        if let Some((scan, _)) = bound {
            self.state.bounds.borrow_mut().remove(&scan);
        }
        Ok(top?.candidates.into_iter().map(|(batch, _)| batch).collect())
    }

    fn top(
        &self,
        input: &PlanNode,
        first: &SortKey,
        wanted: usize,
        bound: Option<Rc<Bound>>,
    ) -> Result<Top, EvalError> {
        let mut top = Top::new(wanted, bound);
        let direction = Direction { descending: first.descending, nulls_first: first.nulls_first };
        let pg_type = type_of(&first.expr);
        // The code of a type is absolute in every batch, except for numerics, whose scale may change.
        let mut scale = None;
        let mut charged = 0;
        let _ = self.run(input, Batching::Small, &mut |batch| {
            self.check_cancelled()?;
            let values = self.environment.evaluate_column(&first.expr, &batch)?;
            let form = values.data_type().clone();
            let is_comparable = scale.get_or_insert_with(|| form.clone()) == &form;
            match absolute(&values, pg_type)? {
                Some(codes) if is_comparable => top.add(batch, directed(codes, values.as_ref(), direction))?,
                _ => top.add_all(batch),
            }
            self.charge_growth(&mut charged, top.bytes)?;
            Ok(Flow::Continue(()))
        })?;
        Ok(top)
    }
}

/// Rows that may be among the `wanted` first ones.
struct Top {
    wanted: usize,
    /// No row with a larger code is among them.
    threshold: u64,
    /// Batches and the codes of their rows; empty codes: nothing is known of the rows.
    candidates: Vec<(Batch, Vec<u64>)>,
    rows: usize,
    /// That the candidates take.
    bytes: usize,
    /// With so many rows there are, those beyond the threshold are dropped: twice as many as were left the last time.
    thin_at: usize,
    /// Who is told the threshold.
    bound: Option<Rc<Bound>>,
}

impl Top {
    fn new(wanted: usize, bound: Option<Rc<Bound>>) -> Self {
        let thin_at = THIN_MIN.max(wanted * 2);
        Self { wanted, threshold: u64::MAX, candidates: Vec::new(), rows: 0, bytes: 0, thin_at, bound }
    }

    fn add(&mut self, batch: Batch, codes: Vec<u64>) -> Result<(), EvalError> {
        let (batch, codes) = if self.threshold == u64::MAX { (batch, codes) } else { self.below(batch, codes)? };
        if batch.rows == 0 {
            return Ok(());
        }
        self.keep(batch, codes);
        if self.rows > self.thin_at {
            self.thin_out()?;
            self.thin_at = self.thin_at.max(self.rows * 2);
        }
        Ok(())
    }

    fn add_all(&mut self, batch: Batch) {
        self.bytes += batch.held_bytes();
        self.candidates.push((batch, Vec::new()));
    }

    fn keep(&mut self, batch: Batch, codes: Vec<u64>) {
        self.rows += batch.rows;
        self.bytes += batch.held_bytes() + size_of_val(codes.as_slice());
        self.candidates.push((batch, codes));
    }

    fn thin_out(&mut self) -> Result<(), EvalError> {
        let mut all: Vec<u64> = self.candidates.iter().flat_map(|(_, codes)| codes).copied().collect();
        if all.len() <= self.wanted || self.wanted == 0 {
            return Ok(());
        }
        let (_, last, _) = all.select_nth_unstable(self.wanted - 1);
        if *last == self.threshold {
            return Ok(());
        }
        self.threshold = *last;
        self.bound.iter().for_each(|bound| bound.threshold.set(*last));
        (self.rows, self.bytes) = (0, 0);
        for (batch, codes) in std::mem::take(&mut self.candidates) {
            if codes.is_empty() {
                self.add_all(batch);
                continue;
            }
            let (batch, codes) = self.below(batch, codes)?;
            if batch.rows > 0 {
                self.keep(batch, codes);
            }
        }
        Ok(())
    }

    /// The rows that the threshold leaves.
    fn below(&self, batch: Batch, codes: Vec<u64>) -> Result<(Batch, Vec<u64>), EvalError> {
        let threshold = self.threshold;
        let bits = BooleanBuffer::collect_bool(codes.len(), |row| codes[row] <= threshold);
        let left = bits.count_set_bits();
        if left == codes.len() {
            return Ok((batch, codes));
        }
        let kept = bits.set_indices().map(|row| codes[row]).collect();
        Ok((batch.filter(&BooleanArray::new(bits, None))?, kept))
    }
}
