//! How many rows a node will give: a guess from the tables' sizes, or, where the order of joins hangs on it, one from
//! rows that are looked at.

use super::join_order::origin;
use super::ranges::ranges;
use super::scan::{chosen_look_ups, rows_per_value};
use super::{Batch, Run};
use crate::binder::BoundExpr;
use crate::catalog::functions::EvalError;
use crate::planner::meets_one;
use crate::planner::node::{Equality, PlanNode, Scan, SideJoin, SideKind};
use crate::table::sketch::Sketch;
use crate::table::{ChunkVersion, TableVersion};

/// Rows that filters are tried on, in so many slices of equal size.
const SAMPLE_ROWS: usize = 4_096;
const SAMPLE_SLICES: usize = 4;
/// Of a table with more partitions none is sampled.
const SAMPLED_INPUTS: usize = 8;

/// What a guess is made from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    AtSizes,
    AtRows,
}

impl Run<'_> {
    /// A guess at the number of rows, from the tables' sizes.
    pub(super) fn estimate(&self, node: &PlanNode) -> usize {
        self.guess(node, Look::AtSizes)
    }

    /// As [`Run::estimate`], but scans' filters are tried on some rows, and keys of joins are counted.
    pub(super) fn estimate_closely(&self, node: &PlanNode) -> usize {
        self.guess(node, Look::AtRows)
    }

    fn guess(&self, node: &PlanNode, look: Look) -> usize {
        let guess = |node: &PlanNode| self.guess(node, look);
        match node {
            PlanNode::OneRow => 1,
            PlanNode::Scan(scan) if look == Look::AtRows => {
                self.sampled_rows(scan).min(self.wanted_rows(scan).unwrap_or(usize::MAX))
            }
            PlanNode::Scan(scan) => {
                let rows = self.snapshot.tables.get(&scan.table).map_or(0, |table| table.rows);
                // An equality keeps less than another comparison.
                kept_by(rows, scan.filters.len() + scan.look_ups.len())
            }
            PlanNode::Filter { input, predicates } => kept_by(guess(input), predicates.len()),
            PlanNode::Project { input, .. } | PlanNode::DistinctOn { input, .. } | PlanNode::Window { input, .. } => {
                guess(input)
            }
            PlanNode::Sort { input, limit, .. } | PlanNode::Limit { input, limit, .. } => {
                guess(input).min(self.rows_limit(limit.as_ref()))
            }
            PlanNode::Append { inputs, .. } if inputs.len() <= SAMPLED_INPUTS => inputs.iter().map(guess).sum(),
            PlanNode::Append { inputs, .. } => inputs.iter().map(|input| self.estimate(input)).sum(),
            PlanNode::SetOperation { left, .. } => guess(left),
            PlanNode::Values { rows, .. } => rows.len(),
            PlanNode::Common { index, .. } => match self.state.commons[*index].get() {
                Some(known) => known.rows,
                // Not sampled: several may read it, and be read by several.
                None => self.estimate(&self.commons[*index]),
            },
            PlanNode::Series { .. } => 1_000,
            PlanNode::Expand(expand) => guess(&expand.input).saturating_mul(4),
            PlanNode::Recursive(recursive) => guess(&recursive.base).saturating_mul(10),
            PlanNode::Working { number, .. } => {
                self.state.rounds.borrow().get(number).map_or(1_000, |working| working.rows)
            }
            PlanNode::Join(join) => {
                let joined = if look == Look::AtRows { self.joined_rows(join).ok() } else { None };
                joined.unwrap_or_else(|| join.inputs.iter().map(guess).max().unwrap_or(0))
            }
            PlanNode::SideJoin(join) => match join.kind {
                SideKind::Left if look == Look::AtRows => self.left_joined_rows(join),
                SideKind::Left | SideKind::Full => guess(&join.left).max(guess(&join.right)),
                SideKind::Semi if look == Look::AtRows => self.semi_joined_rows(join),
                SideKind::Semi | SideKind::Anti => guess(&join.left) / 2,
                SideKind::Mark | SideKind::Single => guess(&join.left),
            },
            PlanNode::Aggregate(aggregate) if aggregate.groups.is_empty() => 1,
            PlanNode::Aggregate(aggregate) => guess(&aggregate.input) / 8,
        }
    }

    /// The left side's rows, each as often as the right side has a value of a key.
    fn left_joined_rows(&self, join: &SideJoin) -> usize {
        let left = self.estimate_closely(&join.left);
        if meets_one(join) {
            return left;
        }
        let rows_per_key = |equality: &Equality| {
            let (table, column) = origin(self, &join.right, &equality.right, join.left.width())?;
            Some(table.rows as f64 / self.distinct(table, column).ok()?.max(1.0))
        };
        match join.equalities.iter().filter_map(rows_per_key).reduce(f64::min) {
            Some(rows) => (left as f64 * rows.max(1.0)).ceil() as usize,
            None => left.max(self.estimate_closely(&join.right)),
        }
    }

    /// The left side's rows by how many of the values of a key the right side has at most.
    fn semi_joined_rows(&self, join: &SideJoin) -> usize {
        let [left, right] = [&join.left, &join.right].map(|side| self.estimate_closely(side) as f64);
        let share = |equality: &Equality| {
            let (table, column) = origin(self, &join.left, &equality.left, 0)?;
            Some(right / self.distinct(table, column).ok()?.max(1.0))
        };
        (left * join.equalities.iter().filter_map(share).fold(0.5, f64::min)).ceil() as usize
    }

    fn rows_limit(&self, limit: Option<&BoundExpr>) -> usize {
        match limit.map(|limit| self.constant(limit)) {
            Some(Ok(count)) => count.ordinal().and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX),
            Some(Err(_)) | None => usize::MAX,
        }
    }

    /// Rows of the scan, by the share of some rows that its filters keep.
    fn sampled_rows(&self, scan: &Scan) -> usize {
        let Some(table) = self.snapshot.tables.get(&scan.table) else { return 0 };
        if scan.filters.is_empty() || table.rows == 0 {
            return table.rows;
        }
        if let Some(look_ups) = chosen_look_ups(scan, table) {
            let columns: Vec<usize> = look_ups.iter().map(|look_up| look_up.column).collect();
            let is_key = columns == table.schema.primary_key;
            return if is_key { 1 } else { rows_per_value(table, columns[0]).max(1) };
        }
        // A plan is not changed while it runs: its nodes stay where they are.
        let place = std::ptr::from_ref(scan).addr();
        if let Some(known) = self.state.sampled.borrow().get(&place) {
            return *known;
        }
        // Where a filter raises an error, the scan will meet it.
        let sample = self.sample(scan, table);
        let rows = sample.unwrap_or_else(|_| kept_by(table.rows, scan.filters.len() + scan.look_ups.len()));
        self.state.sampled.borrow_mut().insert(place, rows);
        rows
    }

    fn sample(&self, scan: &Scan, table: &TableVersion) -> Result<usize, EvalError> {
        let ranges = ranges(scan, &self.environment);
        let is_read = |version: &&ChunkVersion| {
            version.alive_rows > 0 && !ranges.iter().any(|range| range.excludes(&version.chunk, range.column))
        };
        let chunks: Vec<&ChunkVersion> = table.chunks.iter().filter(is_read).collect();
        let candidates: usize = chunks.iter().map(|version| version.alive_rows).sum();
        let (mut looked_at, mut kept) = (0, 0);
        let mut look = |version: &ChunkVersion, offset: usize, rows: usize| {
            let chunk = &version.chunk;
            let columns = scan.columns.iter().map(|column| chunk.columns[*column].slice(offset, rows));
            let alive = version.alive.as_ref().map(|alive| alive.slice(offset, rows));
            looked_at += alive.as_ref().map_or(rows, |alive| alive.count_set_bits());
            kept += self.filter(Batch::of_shared(columns.collect(), rows), &scan.filters, alive, scan.outputs)?.rows;
            Ok::<(), EvalError>(())
        };
        if candidates <= SAMPLE_ROWS {
            chunks.iter().try_for_each(|version| look(version, 0, version.chunk.rows))?;
            return Ok(kept);
        }
        for slice in 0..SAMPLE_SLICES {
            // Spread over the rows that are read, so that small chunks behind large ones count for what they are.
            let mut target = candidates * (2 * slice + 1) / (2 * SAMPLE_SLICES);
            let version = chunks.iter().find(|version| {
                let is_here = target < version.alive_rows;
                target = target.saturating_sub(if is_here { 0 } else { version.alive_rows });
                is_here
            });
            let Some(version) = version else { continue };
            let rows = (SAMPLE_ROWS / SAMPLE_SLICES).min(version.chunk.rows);
            look(version, target.min(version.chunk.rows - rows), rows)?;
        }
        if looked_at == 0 {
            return Ok(candidates);
        }
        // None of the sample: fewer than one in its size.
        Ok((candidates as f64 * (kept as f64).max(0.5) / looked_at as f64).ceil() as usize)
    }

    /// About how many different values a column of a table has.
    pub(super) fn distinct(&self, table: &TableVersion, column: usize) -> Result<f64, EvalError> {
        if table.schema.primary_key == [column] {
            return Ok(table.rows as f64);
        }
        let place = (table.schema.id, column);
        if let Some(known) = self.state.distinct.borrow().get(&place) {
            return Ok(*known);
        }
        let mut sketch = Sketch::default();
        for version in table.chunks.iter() {
            self.check_cancelled()?;
            version.chunk.add_to(column, &mut sketch);
        }
        let distinct = sketch.distinct();
        self.state.distinct.borrow_mut().insert(place, distinct);
        Ok(distinct)
    }
}

/// What predicates are taken to keep: a third each.
fn kept_by(rows: usize, predicates: usize) -> usize {
    rows / 3_usize.pow(predicates.min(4) as u32)
}
