//! Joins that keep the rows of one side: outer joins, and the questions that subqueries ask (IN, EXISTS, a value).
//!
//! The right side is built, batches of the left go through it. Which pairs match is decided by keys and filters as in an
//! inner join; what a match means, by the kind.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};

use super::arrays::null_bits;
use super::batch::{Batch, Kept, kept_rows};
use super::eval::is_bool;
use super::join::{BuildSide, PAIRS_MAX, Pairs, pairs_of, rows_of};
use super::key_table::{KeyTable, Purpose};
use super::ranged::{Range, Ranged, Within};
use super::{Batching, Flow, Run, Sink};
use crate::binder::{BoundExpr, cannot_raise};
use crate::catalog::functions::EvalError;
use crate::planner::node::{Equality, Key, SideJoin, SideKind};
use crate::planted::{Bug, is_planted};
use crate::types::access::null_array;

impl Run<'_> {
    pub(super) fn side_join(&self, join: &SideJoin, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        if join.kind == SideKind::Mark && join.test.is_some() {
            return self.mark_by_test(join, sink);
        }
        let left_width = join.left.width();
        let width = left_width + join.right.width();
        let keys: Vec<Key<'_>> = join.equalities.iter().map(|equality| equality.key(1)).collect();
        let left = self.left_first(join)?;
        let side = self.build_side(&join.right, &keys, left_width, width)?;
        let left = left.map(|left| left.batches);
        let _wanted = if left.is_none() { self.left_by_keys(join, &side)? } else { None };
        let probe_keys: Vec<&BoundExpr> = join.equalities.iter().map(|equality| &equality.left).collect();
        let ranged = Ranged::new(Range::of(&join.filters, left_width, width));
        // Rows of the right side that have matched, for a full join.
        let met = RefCell::new(if join.kind == SideKind::Full { vec![false; side.rows] } else { Vec::new() });
        let mut meet = |batch: Batch| {
            let placed = batch.clone().placed(0, width);
            let ids = self.find_keys(&placed, &probe_keys, &side)?;
            let within = ranged.within(self, &placed, &side)?;
            let keys = Keyed { ids: &ids, within: within.as_ref() };
            match join.kind {
                SideKind::Left | SideKind::Full | SideKind::Single => {
                    self.pad(join, &side, placed, &keys, &mut met.borrow_mut(), sink)
                }
                SideKind::Semi | SideKind::Anti | SideKind::Mark => {
                    let matched = self.matched(join, &side, &placed, &keys)?;
                    let kept = match join.kind {
                        SideKind::Mark => {
                            let mut marked = batch;
                            marked.push_array(Arc::new(BooleanArray::new(matched, None)));
                            marked
                        }
                        SideKind::Semi => batch.filter(&BooleanArray::new(matched, None))?,
                        _ => batch.filter(&BooleanArray::new(!&matched, None))?,
                    };
                    if kept.rows == 0 { Ok(Flow::Continue(())) } else { sink(kept) }
                }
            }
        };
        let flow = match left {
            Some(batches) => {
                let mut batches = batches.into_iter();
                batches
                    .try_fold(Flow::Continue(()), |flow, batch| if flow.is_break() { Ok(flow) } else { meet(batch) })?
            }
            None => self.run(&join.left, Batching::Small, &mut meet)?,
        };
        if join.kind != SideKind::Full || flow.is_break() {
            return Ok(flow);
        }
        self.unmet(join, &side, &met.into_inner(), sink)
    }

    /// Left's rows beside what they match, or NULLs.
    fn pad(
        &self,
        join: &SideJoin,
        side: &BuildSide,
        batch: Batch,
        keys: &Keyed<'_>,
        met: &mut [bool],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, EvalError> {
        let mut start = 0;
        while start < keys.ids.len() {
            self.check_cancelled()?;
            let first = start;
            let mut pairs = keys.pairs(side, &mut start);
            self.count_join_rows(pairs.build.len())?;
            if !join.filters.is_empty() && !pairs.build.is_empty() {
                self.keep_matches(&batch, &mut pairs, join, side)?;
            }
            if join.kind == SideKind::Single && pairs.has_repetition() {
                return Err(EvalError::Raises(
                    "more than one row returned by a subquery used as an expression".to_owned(),
                ));
            }
            if join.kind == SideKind::Full {
                pairs.build.iter().for_each(|row| met[*row as usize] = true);
            }
            let (probe, build) = padded(pairs, first as u32..start as u32);
            let mut joined = batch.select(&Arc::new(UInt32Array::from(probe)))?;
            joined.attach(join.left.width(), &side.columns, Some(Arc::new(build)));
            if sink(joined)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }

    /// The rows of the right side that matched none, beside NULLs.
    fn unmet(&self, join: &SideJoin, side: &BuildSide, met: &[bool], sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let rows: Vec<u32> = (0..met.len() as u32).filter(|row| !met[*row as usize]).collect();
        let rows = if is_planted(Bug::LoseRow) { rows[1.min(rows.len())..].to_vec() } else { rows };
        if rows.is_empty() {
            return Ok(Flow::Continue(()));
        }
        let count = rows.len();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(join.left.width() + side.columns.len());
        for pg_type in self.output_types(&join.left)? {
            columns.push(null_array(pg_type, count));
        }
        let mut batch = Batch::new(columns, count).placed(0, join.left.width() + side.columns.len());
        batch.attach(join.left.width(), &side.columns, Some(Arc::new(UInt32Array::from(rows))));
        sink(batch)
    }

    /// The pairs of the rows from `start` on, None if there are none; `start` moves behind them.
    fn next_pairs(&self, side: &BuildSide, keys: &Keyed<'_>, start: &mut usize) -> Result<Option<Pairs>, EvalError> {
        self.check_cancelled()?;
        let pairs = keys.pairs(side, start);
        self.count_join_rows(pairs.build.len())?;
        Ok(Some(pairs).filter(|pairs| !pairs.build.is_empty()))
    }

    /// Set bit: the row has a match.
    fn matched(
        &self,
        join: &SideJoin,
        side: &BuildSide,
        batch: &Batch,
        keys: &Keyed<'_>,
    ) -> Result<BooleanBuffer, EvalError> {
        let ids = keys.ids;
        if join.filters.is_empty() {
            let is_any = side.rows > 0;
            return Ok(BooleanBuffer::collect_bool(ids.len(), |row| is_any && ids[row] != KeyTable::NONE));
        }
        if let Some(by_key) = side.rows_by_key()
            && join.filters.iter().all(cannot_raise)
        {
            let meets = ids.iter().enumerate().map(|(row, id)| match keys.within {
                Some(within) => within.rows(row, *id),
                None => rows_of(by_key, *id),
            });
            return self.matched_at_first(join, side, batch, &meets.collect::<Vec<_>>());
        }
        let mut matched = vec![false; ids.len()];
        let mut start = 0;
        while start < ids.len() {
            let Some(mut pairs) = self.next_pairs(side, keys, &mut start)? else { continue };
            self.keep_matches(batch, &mut pairs, join, side)?;
            pairs.probe_rows().iter().for_each(|row| matched[*row as usize] = true);
        }
        Ok(BooleanBuffer::from(matched))
    }

    /// As [`Self::matched`], of the rows that each may meet: a few of each at first, more only of those that none has matched, as no
    /// condition raises an error for what is left out.
    fn matched_at_first(
        &self,
        join: &SideJoin,
        side: &BuildSide,
        batch: &Batch,
        meets: &[&[u32]],
    ) -> Result<BooleanBuffer, EvalError> {
        let mut matched = vec![false; meets.len()];
        let mut open: Vec<u32> = (0..meets.len() as u32).filter(|row| !meets[*row as usize].is_empty()).collect();
        let (mut from, mut count) = (0, 1);
        while !open.is_empty() {
            let mut rest = &open[..];
            while !rest.is_empty() {
                self.check_cancelled()?;
                let (now, later) = rest.split_at(rest.len().min((PAIRS_MAX / count).max(1)));
                rest = later;
                let (mut probe, mut build) = (Vec::new(), Vec::new());
                for row in now {
                    let some = meets[*row as usize][from..].iter().take(count);
                    build.extend(some);
                    probe.resize(build.len(), *row);
                }
                self.count_join_rows(build.len())?;
                let mut pairs = Pairs { probe: Some(probe), build };
                self.keep_matches(batch, &mut pairs, join, side)?;
                pairs.probe_rows().iter().for_each(|row| matched[*row as usize] = true);
            }
            from += count;
            count *= 8;
            open.retain(|row| !matched[*row as usize] && meets[*row as usize].len() > from);
        }
        Ok(BooleanBuffer::from(matched))
    }

    /// Drops the pairs on which the rest of the join condition is not true.
    fn keep_matches(
        &self,
        batch: &Batch,
        pairs: &mut Pairs,
        join: &SideJoin,
        side: &BuildSide,
    ) -> Result<(), EvalError> {
        let probe = pairs.probe_rows();
        let mut joined = batch.select(&Arc::new(UInt32Array::from(probe.clone())))?;
        joined.attach(join.left.width(), &side.columns, Some(Arc::new(UInt32Array::from(pairs.build.clone()))));
        let mut kept: Vec<u32> = (0..pairs.build.len() as u32).collect();
        for filter in &join.filters {
            let keep = self.environment.evaluate_booleans(filter, &joined)?;
            let keep = BooleanArray::new(is_bool(&keep, Some(true)), None);
            kept = match kept_rows(&keep) {
                Kept::Run { start, length } => kept[start..start + length].to_vec(),
                Kept::Rows(rows) => rows.iter().map(|row| kept[*row as usize]).collect(),
            };
            joined = joined.filter(&keep)?;
        }
        pairs.probe = Some(kept.iter().map(|at| probe[*at as usize]).collect());
        pairs.build = kept.iter().map(|at| pairs.build[*at as usize]).collect();
        Ok(())
    }

    /// IN: true where a comparison is true, else unknown where one is unknown, else false.
    fn mark_by_test(&self, join: &SideJoin, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let left_width = join.left.width();
        let width = left_width + join.right.width();
        let keys: Vec<Key<'_>> = join.equalities.iter().map(|equality| equality.key(1)).collect();
        let side = self.build_side(&join.right, &keys, left_width, width)?;
        let probe_keys: Vec<&BoundExpr> = join.equalities.iter().map(|equality| &equality.left).collect();
        let hashed = match (&join.test_key, join.filters.is_empty()) {
            (Some(key), true) => Some((key, self.tested(join, &side, &keys, key)?)),
            _ => None,
        };
        let ranged = Ranged::new(Range::of(&join.filters, left_width, width));
        self.run(&join.left, Batching::Small, &mut |batch| {
            let placed = batch.clone().placed(0, width);
            let ids = self.find_keys(&placed, &probe_keys, &side)?;
            let answer = match &hashed {
                Some((key, tested)) => self.answer_by_key(join, &side, &placed, &ids, key, tested)?,
                None => {
                    let within = ranged.within(self, &placed, &side)?;
                    self.answer_by_pairs(join, &side, &placed, &Keyed { ids: &ids, within: within.as_ref() })?
                }
            };
            let mut marked = batch;
            marked.push_array(Arc::new(answer));
            sink(marked)
        })
    }

    /// The values that are compared with, together with the join keys; and which keys go with a NULL.
    fn tested(&self, join: &SideJoin, side: &BuildSide, keys: &[Key<'_>], key: &Equality) -> Result<Tested, EvalError> {
        let left_width = join.left.width();
        let rows = side.rows;
        let placed = Batch::of_shared(side.columns.clone(), rows).placed(left_width, left_width + side.columns.len());
        let own: Vec<ArrayRef> =
            keys.iter().map(|key| self.environment.evaluate_column(key.expr, &placed)).collect::<Result<_, _>>()?;
        let value = self.environment.evaluate_column(&key.right, &placed)?;
        let mut has_null = vec![false; side.key_count()];
        let nulls = null_bits(&value);
        if nulls.count_set_bits() > 0 {
            let ids = side.find(&own, rows)?;
            for row in nulls.set_indices() {
                if ids[row] != KeyTable::NONE {
                    has_null[ids[row] as usize] = true;
                }
            }
        }
        let types = keys.iter().map(|key| key.pg_type).chain([key.types[1]]).collect::<Vec<_>>();
        let purposes: Vec<Purpose> = keys
            .iter()
            .map(|key| if key.is_null_safe { Purpose::Same } else { Purpose::Matches })
            .chain([Purpose::Matches])
            .collect();
        let mut table = KeyTable::with_purposes(&types, purposes, rows)?;
        let all: Vec<ArrayRef> = own.into_iter().chain([value]).collect();
        table.assign(&all, rows)?;
        table.settle();
        self.charge(table.bytes())?;
        Ok(Tested { table, has_null })
    }

    fn answer_by_key(
        &self,
        join: &SideJoin,
        side: &BuildSide,
        batch: &Batch,
        ids: &[u32],
        key: &Equality,
        tested: &Tested,
    ) -> Result<BooleanArray, EvalError> {
        let mut keys: Vec<ArrayRef> = Vec::with_capacity(join.equalities.len() + 1);
        for equality in &join.equalities {
            keys.push(self.environment.evaluate_column(&equality.left, batch)?);
        }
        let value = self.environment.evaluate_column(&key.left, batch)?;
        let is_null = null_bits(&value);
        keys.push(value);
        let found = tested.table.find(&keys, batch.rows)?;
        let is_true = BooleanBuffer::collect_bool(ids.len(), |row| found[row] != KeyTable::NONE);
        let is_known = BooleanBuffer::collect_bool(ids.len(), |row| {
            let meets_none = side.rows == 0 || ids[row] == KeyTable::NONE;
            is_true.value(row)
                || meets_none
                || !(is_null.value(row) || tested.has_null.get(ids[row] as usize).copied().unwrap_or(false))
        });
        Ok(BooleanArray::new(is_true, Some(NullBuffer::new(is_known))))
    }

    fn answer_by_pairs(
        &self,
        join: &SideJoin,
        side: &BuildSide,
        batch: &Batch,
        keys: &Keyed<'_>,
    ) -> Result<BooleanArray, EvalError> {
        let test = join.test.as_ref().ok_or_else(|| EvalError::Beyond("no comparison".to_owned()))?;
        let ids = keys.ids;
        let (mut is_true, mut is_unknown) = (vec![false; ids.len()], vec![false; ids.len()]);
        let mut start = 0;
        while start < ids.len() {
            let Some(mut pairs) = self.next_pairs(side, keys, &mut start)? else { continue };
            if !join.filters.is_empty() {
                self.keep_matches(batch, &mut pairs, join, side)?;
            }
            let probe = pairs.probe_rows();
            let mut joined = batch.select(&Arc::new(UInt32Array::from(probe.clone())))?;
            joined.attach(join.left.width(), &side.columns, Some(Arc::new(UInt32Array::from(pairs.build))));
            let answers = self.environment.evaluate_booleans(test, &joined)?;
            for (at, row) in probe.iter().enumerate() {
                match answers.is_valid(at) {
                    true => is_true[*row as usize] |= answers.value(at),
                    false => is_unknown[*row as usize] = true,
                }
            }
        }
        let known = BooleanBuffer::collect_bool(ids.len(), |row| is_true[row] || !is_unknown[row]);
        Ok(BooleanArray::new(BooleanBuffer::from(is_true), Some(NullBuffer::new(known))))
    }
}

/// What is known of the rows that a batch's rows match, before any condition is computed.
struct Keyed<'k> {
    ids: &'k [u32],
    within: Option<&'k Within<'k>>,
}

impl Keyed<'_> {
    fn pairs(&self, side: &BuildSide, start: &mut usize) -> Pairs {
        pairs_of(side, self.within, self.ids, start)
    }
}

/// What IN compares with.
struct Tested {
    /// Join keys and value.
    table: KeyTable,
    /// By the build side's key.
    has_null: Vec<bool>,
}

/// The pairs, with every row of the range that is in none added beside a row of NULLs, in order of the batch.
fn padded(pairs: Pairs, range: std::ops::Range<u32>) -> (Vec<u32>, UInt32Array) {
    let Some(matched) = pairs.probe else {
        return (range.collect(), UInt32Array::from(pairs.build));
    };
    let mut probe = Vec::with_capacity(matched.len() + range.len());
    let mut build = Vec::with_capacity(probe.capacity());
    let mut valid = Vec::with_capacity(probe.capacity());
    let mut next = 0;
    for row in range {
        let first = next;
        while next < matched.len() && matched[next] == row {
            probe.push(row);
            build.push(pairs.build[next]);
            valid.push(true);
            next += 1;
        }
        if next == first {
            probe.push(row);
            build.push(0);
            valid.push(false);
        }
    }
    (probe, UInt32Array::new(ScalarBuffer::from(build), Some(NullBuffer::from(valid))))
}
