//! Hash joins: every input but the first (see [`super::join_order`]) becomes a build side, and batches of the first go
//! through all of them.
//!
//! A build side is its rows, a [`KeyTable`] over the join keys and, per key, the rows that have it. Build sides over a
//! plain scan come from the join cache if the table version is the same. Joined columns stay row numbers until read.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use parking_lot::Mutex;

use super::arrays::concatenate;
use super::batch::Batch;
use super::key_table::{KeyTable, Purpose};
use super::ranged::{Range, Ranged, Within};
use super::{Batching, Flow, RowBatch, Run, Sink};
use crate::binder::BoundExpr;
use crate::catalog::functions::EvalError;
use crate::join_cache::JoinKey;
use crate::planner::expression::{columns_of, is_same};
use crate::planner::node::{Join, Key, PlanNode, Scan};
use crate::planted::{Bug, is_planted};
use crate::types::{PgType, Value};

/// Pairs that one batch of a join has at most, so that a cancelled statement stops soon.
pub(super) const PAIRS_MAX: usize = 65_536;

impl Run<'_> {
    pub(super) fn join(&self, join: &Join, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let bases = join.bases();
        let width = bases[join.inputs.len()];
        let mut known = self.read_first(join)?;
        known.resize(join.inputs.len(), None);
        self.read_whole(join, &mut known)?;
        if known.iter().flatten().any(|batch| batch.rows == 0) {
            return Ok(Flow::Continue(()));
        }
        let sizes: Vec<Option<usize>> = known.iter().map(|known| known.as_ref().map(|batch| batch.rows)).collect();
        let order = self.join_order(join, &sizes)?;
        let mut steps = Vec::with_capacity(order.len() - 1);
        let mut attached = vec![order[0]];
        let mut filters: Vec<Option<&BoundExpr>> = join.filters.iter().map(Some).collect();
        for input in &order[1..] {
            let mut probe_keys: Vec<&BoundExpr> = Vec::new();
            let mut build_keys: Vec<Key<'_>> = Vec::new();
            for (at, equality) in join.equalities.iter().chain(&join.implied).enumerate() {
                let Some(end) = equality.end_of(*input, &attached) else { continue };
                let own = equality.key(end);
                // What is implied says nothing new of a column that is a key already.
                if at < join.equalities.len() || !build_keys.iter().any(|key| is_same(key.expr, own.expr)) {
                    build_keys.push(own);
                    probe_keys.push(equality.ends()[1 - end].1);
                }
            }
            attached.push(*input);
            let has_column =
                |column: &usize| attached.iter().any(|input| (bases[*input]..bases[*input + 1]).contains(column));
            let is_due =
                |filter: &&mut Option<&BoundExpr>| filter.is_some_and(|f| columns_of(f).iter().all(has_column));
            let due: Vec<&BoundExpr> = filters.iter_mut().filter(is_due).filter_map(Option::take).collect();
            let range = Range::of(due.iter().copied(), bases[*input], bases[*input + 1]);
            let side = match known[*input].take() {
                Some(batch) => Arc::new(self.build_of(batch, &build_keys, bases[*input], width)?),
                None => self.build_side(&join.inputs[*input], &build_keys, bases[*input], width)?,
            };
            if side.rows == 0 {
                return Ok(Flow::Continue(()));
            }
            let filters = due.into_iter().cloned().collect();
            steps.push(Step { base: bases[*input], probe_keys, side, filters, ranged: Ranged::new(range) });
        }
        let probe = order[0];
        if let Some(batch) = known[probe].take() {
            return self.probe(batch.placed(bases[probe], width), &steps, sink);
        }
        self.run(&join.inputs[probe], Batching::Small, &mut |batch| {
            self.probe(batch.placed(bases[probe], width), &steps, sink)
        })
    }

    /// Takes a batch through the steps that are left.
    fn probe(&self, batch: Batch, steps: &[Step<'_>], sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        let Some((step, rest)) = steps.split_first() else { return sink(batch) };
        let ids = self.find_keys(&batch, &step.probe_keys, &step.side)?;
        let within = step.ranged.within(self, &batch, &step.side)?;
        let mut start = 0;
        while start < ids.len() {
            self.check_cancelled()?;
            let pairs = pairs_of(&step.side, within.as_ref(), &ids, &mut start);
            self.count_join_rows(pairs.build.len())?;
            if pairs.build.is_empty() {
                continue;
            }
            let width = batch.width();
            let mut joined = match pairs.probe {
                Some(rows) => batch.select(&Arc::new(UInt32Array::from(rows)))?,
                None => batch.clone(),
            };
            joined.attach(step.base, &step.side.columns, Some(Arc::new(UInt32Array::from(pairs.build))));
            let joined = self.filter(joined, &step.filters, None, width)?;
            if joined.rows > 0 && self.probe(joined, rest, sink)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }

    pub(super) fn find_keys(
        &self,
        batch: &Batch,
        keys: &[&BoundExpr],
        side: &BuildSide,
    ) -> Result<Vec<u32>, EvalError> {
        let keys = keys.iter().map(|key| self.environment.evaluate_column(key, batch));
        side.table.find(&keys.collect::<Result<Vec<_>, _>>()?, batch.rows)
    }

    /// `keys` are numbered as in the join's output, where the input's columns start at `base`.
    pub(super) fn build_side(
        &self,
        input: &PlanNode,
        keys: &[Key<'_>],
        base: usize,
        width: usize,
    ) -> Result<Arc<BuildSide>, EvalError> {
        let Some(builds) = self.builds else { return self.own_build_side(input, keys, base, width) };
        let place = builds.place(input, keys);
        let mut shared = place.lock();
        shared.get_or_insert_with(|| self.own_build_side(input, keys, base, width)).clone()
    }

    fn own_build_side(
        &self,
        input: &PlanNode,
        keys: &[Key<'_>],
        base: usize,
        width: usize,
    ) -> Result<Arc<BuildSide>, EvalError> {
        let Some(identity) = self.identity(input, keys, base) else {
            return Ok(Arc::new(self.build(input, keys, base, width)?));
        };
        let PlanNode::Scan(scan) = input else { unreachable!("only scans have an identity") };
        let key = JoinKey {
            table: scan.table,
            version: self.table(scan.table)?,
            // Those that only the filters read, too: the filters name them by position.
            columns: &scan.columns,
            key_columns: &identity.key_columns,
            filters: identity.filters,
            parameters: &identity.parameters,
        };
        if let Some(side) = self.join_cache.find::<BuildSide>(&key) {
            return Ok(side);
        }
        let side = match self.join_cache.take_shorter::<BuildSide>(&key) {
            // Its table of keys is made for about as many.
            Some((side, rows)) if side.rows > 0 && key.version.rows <= 2 * rows => {
                self.extended(side, rows, scan, keys, base, width)?
            }
            _ => self.build(input, keys, base, width)?,
        };
        let side = Arc::new(side);
        self.join_cache.keep(&key, side.clone(), side.bytes());
        Ok(side)
    }

    /// The build side of the table's first `rows` rows, with what comes of the others behind it.
    fn extended(
        &self,
        side: Arc<BuildSide>,
        rows: usize,
        scan: &Scan,
        keys: &[Key<'_>],
        base: usize,
        width: usize,
    ) -> Result<BuildSide, EvalError> {
        let table = self.table(scan.table)?;
        let mut tables = self.snapshot.tables.clone();
        tables.insert(scan.table, Arc::new(table.behind(rows)));
        let snapshot = self.snapshot.with_tables(tables);
        // Rows by key and the first in an order are not what is read here.
        let run = Run { snapshot: &snapshot, environment: self.environment, ..*self };
        let mut added = Vec::new();
        let _ = run.scan(scan, Batching::Whole, &mut |batch| {
            self.charge(batch.held_bytes())?;
            added.push(batch.into_row_batch()?);
            Ok(Flow::Continue(()))
        })?;
        let types = scan.columns[..scan.outputs].iter().map(|column| table.schema.columns[*column].pg_type);
        let types: Vec<PgType> = types.map(|pg_type| pg_type.unwrap_or(PgType::Unknown)).collect();
        let side = side.with(&added, &types, |columns, rows| {
            let placed = Batch::of_shared(columns.to_vec(), rows).placed(base, width);
            keys.iter().map(|key| self.environment.evaluate_column(key.expr, &placed)).collect()
        })?;
        self.join_cache.note_extended();
        self.charge(side.bytes())?;
        Ok(side)
    }

    /// What names the build side in the join cache; None if it depends on more than the table version.
    pub(super) fn identity<'n>(&self, input: &'n PlanNode, keys: &[Key<'_>], base: usize) -> Option<Identity<'n>> {
        let PlanNode::Scan(scan) = input else { return None };
        if self.wanted(scan).is_some() {
            return None;
        }
        let schema = &self.table(scan.table).ok()?.schema;
        // Text that is compared as char(n) is another key than the same column compared as text.
        let is_own = |index: usize, compared: PgType| {
            let own = scan.columns.get(index).and_then(|column| schema.columns.get(*column)?.pg_type);
            compared != PgType::Bpchar || own == Some(PgType::Bpchar)
        };
        let key_column = |key: &Key<'_>| match key.expr {
            BoundExpr::Column { index, .. } if !key.is_null_safe && is_own(index - base, key.pg_type) => {
                Some(index - base)
            }
            _ => None,
        };
        Some(Identity {
            key_columns: keys.iter().map(key_column).collect::<Option<Vec<_>>>()?,
            filters: scan.fingerprint.as_deref()?,
            parameters: scan
                .fingerprint_parameters
                .iter()
                .map(|index| self.environment.parameters.get(*index).cloned())
                .collect::<Option<Vec<_>>>()?,
        })
    }

    fn build(&self, input: &PlanNode, keys: &[Key<'_>], base: usize, width: usize) -> Result<BuildSide, EvalError> {
        self.build_of(self.read(input)?, keys, base, width)
    }

    fn build_of(&self, all: Batch, keys: &[Key<'_>], base: usize, width: usize) -> Result<BuildSide, EvalError> {
        let types: Vec<(PgType, bool)> = keys.iter().map(|key| (key.pg_type, key.is_null_safe)).collect();
        let gathered = all.into_row_batch()?;
        let rows = gathered.rows;
        if rows == 0 {
            return BuildSide::new(gathered.columns, 0, &types, &[]);
        }
        let placed = Batch::of_shared(gathered.columns.clone(), rows).placed(base, width);
        let keys = keys.iter().map(|key| self.environment.evaluate_column(key.expr, &placed));
        let side = BuildSide::new(gathered.columns, rows, &types, &keys.collect::<Result<Vec<_>, _>>()?)?;
        self.charge(side.index_bytes())?;
        Ok(side)
    }
}

/// Build sides that the threads of one statement share: who comes first builds one, and the others wait for it, or for why not.
///
/// None waits for another in a circle: what is built within a build lies below it in the plan, which is the same for all.
#[derive(Debug, Default)]
pub struct Builds(Mutex<HashMap<BuildPlace, SharedSide>>);

/// Where a plan has what is built and the keys it is built by; a plan's nodes stay where they are.
type BuildPlace = (usize, Vec<usize>);
type SharedSide = Arc<Mutex<Option<Result<Arc<BuildSide>, EvalError>>>>;

impl Builds {
    fn place(&self, input: &PlanNode, keys: &[Key<'_>]) -> SharedSide {
        let keys = keys.iter().map(|key| std::ptr::from_ref(key.expr).addr()).collect();
        Arc::clone(self.0.lock().entry((std::ptr::from_ref(input).addr(), keys)).or_default())
    }
}

pub(super) struct Identity<'n> {
    key_columns: Vec<usize>,
    filters: &'n str,
    parameters: Vec<Value>,
}

/// One build side on a batch's way.
struct Step<'n> {
    base: usize,
    probe_keys: Vec<&'n BoundExpr>,
    side: Arc<BuildSide>,
    /// Conditions whose last column this step brings.
    filters: Vec<BoundExpr>,
    ranged: Ranged<'n>,
}

/// The pairs that keys, and bounds if there are any, leave.
pub(super) fn pairs_of(side: &BuildSide, within: Option<&Within<'_>>, ids: &[u32], start: &mut usize) -> Pairs {
    match within {
        Some(within) => within.pairs(ids, start),
        None => side.pairs(ids, start),
    }
}

/// Rows to join with, by key.
#[derive(Clone, Debug)]
pub(super) struct BuildSide {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) rows: usize,
    table: KeyTable,
    matches: Matches,
}

/// Which rows have a key.
#[derive(Clone, Debug)]
enum Matches {
    /// Row `i` has key `i`.
    Same,
    /// One row per key.
    One(Vec<u32>),
    /// Rows `rows[starts[key]..starts[key + 1]]`.
    Many { starts: Vec<u32>, rows: Vec<u32> },
}

/// Which row of the batch meets which row of the build side.
pub(super) struct Pairs {
    /// Ascending. None: all rows of the batch, once each.
    pub(super) probe: Option<Vec<u32>>,
    pub(super) build: Vec<u32>,
}

impl Pairs {
    pub(super) fn probe_rows(&self) -> Vec<u32> {
        self.probe.clone().unwrap_or_else(|| (0..self.build.len() as u32).collect())
    }

    /// Whether a row of the batch meets several.
    pub(super) fn has_repetition(&self) -> bool {
        self.probe.as_ref().is_some_and(|rows| rows.windows(2).any(|pair| pair[0] == pair[1]))
    }
}

impl BuildSide {
    /// Without keys every row matches every other.
    fn new(
        columns: Vec<ArrayRef>,
        rows: usize,
        types: &[(PgType, bool)],
        keys: &[ArrayRef],
    ) -> Result<Self, EvalError> {
        let purpose = |is_null_safe: bool| if is_null_safe { Purpose::Same } else { Purpose::Matches };
        let purposes = types.iter().map(|(_, is_null_safe)| purpose(*is_null_safe)).collect();
        let types: Vec<PgType> = types.iter().map(|(pg_type, _)| *pg_type).collect();
        let mut table = KeyTable::with_purposes(&types, purposes, rows)?;
        let ids = table.assign(keys, rows)?;
        table.settle();
        let count = if types.is_empty() { rows.min(1) } else { table.len() };
        Ok(Self { columns, rows, matches: matches_of(&ids, count), table })
    }

    /// The same with more rows behind, whose columns are of these types; in place where nobody else has it.
    fn with(
        self: Arc<Self>,
        added: &[RowBatch],
        types: &[PgType],
        keys_of: impl Fn(&[ArrayRef], usize) -> Result<Vec<ArrayRef>, EvalError>,
    ) -> Result<Self, EvalError> {
        let added = if is_planted(Bug::DropAppended) { &[][..] } else { added };
        let mut ids = self.ids();
        let mut side = Arc::unwrap_or_clone(self);
        for batch in added {
            let keys = keys_of(&batch.columns, batch.rows)?;
            ids.extend(side.table.assign(&keys, batch.rows)?);
        }
        for (at, pg_type) in types.iter().enumerate() {
            let parts = std::iter::once(&side.columns[at]).chain(added.iter().map(|batch| &batch.columns[at]));
            side.columns[at] = concatenate(*pg_type, &parts.cloned().collect::<Vec<_>>())?;
        }
        side.table.settle();
        side.rows = ids.len();
        let count = if side.table.has_columns() { side.table.len() } else { side.rows.min(1) };
        side.matches = matches_of(&ids, count);
        Ok(side)
    }

    /// The key of each row.
    fn ids(&self) -> Vec<u32> {
        let mut ids = vec![KeyTable::NONE; self.rows];
        match &self.matches {
            Matches::Same => ids.iter_mut().enumerate().for_each(|(row, id)| *id = row as u32),
            Matches::One(rows) => rows.iter().enumerate().for_each(|(key, row)| ids[*row as usize] = key as u32),
            Matches::Many { starts, rows } => {
                for key in 0..starts.len() - 1 {
                    let of_key = &rows[starts[key] as usize..starts[key + 1] as usize];
                    of_key.iter().for_each(|row| ids[*row as usize] = key as u32);
                }
            }
        }
        ids
    }

    /// Rows `rows[starts[key]..starts[key + 1]]` have a key. None: none has several.
    pub(super) fn rows_by_key(&self) -> Option<(&[u32], &[u32])> {
        match &self.matches {
            Matches::Same | Matches::One(_) => None,
            Matches::Many { starts, rows } => Some((starts, rows)),
        }
    }

    /// Number of distinct keys; without keys there is one.
    pub(super) fn key_count(&self) -> usize {
        self.table.len().max(1)
    }

    pub(super) fn find(&self, keys: &[ArrayRef], rows: usize) -> Result<Vec<u32>, EvalError> {
        self.table.find(keys, rows)
    }

    fn index_bytes(&self) -> usize {
        self.table.bytes()
            + match &self.matches {
                Matches::Same => 0,
                Matches::One(rows) => rows.len() * 4,
                Matches::Many { starts, rows } => (starts.len() + rows.len()) * 4,
            }
    }

    fn bytes(&self) -> usize {
        self.index_bytes() + self.columns.iter().map(|column| column.get_array_memory_size()).sum::<usize>()
    }

    /// The pairs of the batch rows from `start` on, whose keys are `ids`; as many rows as give a batch of bounded size.
    /// `start` moves behind them.
    pub(super) fn pairs(&self, ids: &[u32], start: &mut usize) -> Pairs {
        match &self.matches {
            Matches::Same => self.single_pairs(ids, start, |id| id),
            Matches::One(rows) => self.single_pairs(ids, start, |id| rows[id as usize]),
            Matches::Many { starts, rows } => {
                let (mut probe, mut build) = (Vec::new(), Vec::new());
                while *start < ids.len() && build.len() < PAIRS_MAX {
                    build.extend_from_slice(rows_of((starts, rows), ids[*start]));
                    probe.resize(build.len(), *start as u32);
                    *start += 1;
                }
                Pairs { probe: Some(probe), build }
            }
        }
    }

    fn single_pairs(&self, ids: &[u32], start: &mut usize, row_of: impl Fn(u32) -> u32) -> Pairs {
        debug_assert_eq!(*start, 0, "one match per row: the batch is done at once");
        *start = ids.len();
        if self.rows > 0 && ids.iter().all(|id| *id != KeyTable::NONE) {
            return Pairs { probe: None, build: ids.iter().map(|id| row_of(*id)).collect() };
        }
        let (probe, ids) = if self.rows > 0 { matched(ids) } else { (Vec::new(), Vec::new()) };
        Pairs { probe: Some(probe), build: ids.into_iter().map(row_of).collect() }
    }
}

/// The rows that have an id, and their ids. Each is written where the next belongs, found or not: a branch per row would often be
/// guessed wrong.
fn matched(ids: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut rows, mut found) = (vec![0; ids.len()], vec![0; ids.len()]);
    let mut count = 0;
    for (row, id) in ids.iter().enumerate() {
        rows[count] = row as u32;
        found[count] = *id;
        count += usize::from(*id != KeyTable::NONE);
    }
    rows.truncate(count);
    found.truncate(count);
    (rows, found)
}

/// Those that have the key, of what [`BuildSide::rows_by_key`] gives.
pub(super) fn rows_of<'s>((starts, rows): (&'s [u32], &'s [u32]), key: u32) -> &'s [u32] {
    match starts.get(key as usize + 1) {
        Some(end) if key != KeyTable::NONE => &rows[starts[key as usize] as usize..*end as usize],
        _ => &[],
    }
}

/// Rows by key, of so many keys.
fn matches_of(ids: &[u32], count: usize) -> Matches {
    if count == ids.len() {
        return Matches::Same;
    }
    if ids.iter().filter(|id| **id != KeyTable::NONE).count() > count {
        return grouped(ids, count);
    }
    let mut row_of = vec![0; count];
    let valid = ids.iter().enumerate().filter(|(_, id)| **id != KeyTable::NONE);
    valid.for_each(|(row, id)| row_of[*id as usize] = row as u32);
    Matches::One(row_of)
}

/// A counting sort of the rows by key.
fn grouped(ids: &[u32], count: usize) -> Matches {
    let valid = || ids.iter().enumerate().filter(|(_, id)| **id != KeyTable::NONE);
    let mut starts = vec![0u32; count + 1];
    for (_, id) in valid() {
        starts[*id as usize + 1] += 1;
    }
    for key in 0..count {
        starts[key + 1] += starts[key];
    }
    let mut next = starts.clone();
    let mut rows = vec![0; starts[count] as usize];
    for (row, id) in valid() {
        let place = &mut next[*id as usize];
        rows[*place as usize] = row as u32;
        *place += 1;
    }
    Matches::Many { starts, rows }
}
