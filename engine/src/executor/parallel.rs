//! Aggregates over a large table by several threads: each takes a share of the chunks, and their groups are put together.
//!
//! What is true of changes of a table ([`super::upkeep`]) is true of shares of it: each of its rows makes rows of the aggregate's
//! input by itself, and counts, sums and extremes of groups can be put together exactly.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::scan::chosen_look_ups;
use super::upkeep::{GROUPS_MAX, KeptGroups};
use super::{Builds, Limits, RowBatch, Run, RunContext, State};
use crate::STACK_BYTES;
use crate::catalog::functions::{EvalContext, EvalError};
use crate::planner::Plan;
use crate::planner::node::Scan;
use crate::planner::upkeep::Upkeep;
use crate::snapshot::Snapshot;
use crate::table::{ChunkVersion, TableVersion};

/// Smaller tables are done before a thread has begun.
const ROWS_MIN: usize = if cfg!(test) { 100 } else { 262_144 };
/// Threads that help others at the moment, in the whole process.
static HELPERS: AtomicUsize = AtomicUsize::new(0);

/// Helpers that were free, until dropped.
#[derive(Debug)]
pub struct Helpers(usize);

impl Helpers {
    /// Up to `wanted`, of `all` that there may be in the process.
    pub fn take(wanted: usize, all: usize) -> Self {
        let mut taken = 0;
        let _ = HELPERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |busy| {
            taken = wanted.min(all.saturating_sub(busy));
            Some(busy + taken)
        });
        Self(taken)
    }

    pub fn count(&self) -> usize {
        self.0
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        HELPERS.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// The rows of the answer. None: the plan is not run by several threads now.
pub(crate) fn execute(plan: &Plan, context: &RunContext<'_>) -> Result<Option<Vec<RowBatch>>, EvalError> {
    if context.limits.threads_max < 2 {
        return Ok(None);
    }
    let rows = |scan: &Scan| context.snapshot.tables.get(&scan.table).map_or(0, |table| table.rows);
    let Some(scan) = plan.scans().into_iter().max_by_key(|scan| rows(scan)) else { return Ok(None) };
    if rows(scan) < ROWS_MIN {
        return Ok(None);
    }
    let Some(upkeep) = Upkeep::of(plan, &|other| std::ptr::eq(other, scan)) else { return Ok(None) };
    match groups(plan, &upkeep, context)? {
        Some(groups) => groups.finish(plan, &upkeep, context).map(Some),
        None => Ok(None),
    }
}

/// The groups of an aggregate. None: they are not computed by several threads now, or cannot be kept.
pub(super) fn groups(plan: &Plan, upkeep: &Upkeep, context: &RunContext<'_>) -> Result<Option<KeptGroups>, EvalError> {
    let Some(table) = worth_sharing(plan, upkeep, context) else { return Ok(None) };
    let helpers =
        Helpers::take((context.limits.threads_max - 1).min(table.chunks.len() - 1), context.limits.threads_max - 1);
    let shares: Vec<TableVersion> = shares(table, helpers.0 + 1).filter(|share| share.rows > 0).collect();
    if shares.len() < 2 {
        return Ok(None);
    }
    let memory_bytes_max = context.limits.memory_bytes_max / shares.len();
    let limits = Limits { memory_bytes_max, ..context.limits.clone() };
    let snapshots: Vec<Snapshot> = shares
        .into_iter()
        .map(|share| {
            let mut tables = context.snapshot.tables.clone();
            tables.insert(upkeep.table, Arc::new(share));
            context.snapshot.with_tables(tables)
        })
        .collect();
    let settings = context.eval.settings;
    let (parameters, transaction_time) = (context.parameters, context.eval.transaction_time);
    let (join_cache, cancelled) = (context.join_cache, context.cancelled);
    let builds = Builds::default();
    let compute = |snapshot: &Snapshot| {
        // Nothing below the aggregate asks for a learnt order.
        let eval = EvalContext { settings, transaction_time, orders: None };
        let (changed, builds) = (Some(upkeep.table), Some(&builds));
        let context = RunContext {
            snapshot,
            parameters,
            eval,
            limits: &limits,
            join_cache,
            cancelled,
            changed,
            builds,
            last: None,
        };
        KeptGroups::compute(plan, upkeep, &context, GROUPS_MAX)
    };
    let parts = thread::scope(|scope| {
        let start = |snapshot| {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            let compute = &compute;
            thread.spawn_scoped(scope, move || compute(snapshot)).map_err(|error| EvalError::Beyond(error.to_string()))
        };
        let helping: Vec<_> = snapshots[1..].iter().map(start).collect();
        let own = compute(&snapshots[0]);
        let panicked = |_| Err(EvalError::Beyond("a share panicked".to_owned()));
        let theirs = helping.into_iter().map(|helper| helper?.join().unwrap_or_else(panicked));
        std::iter::once(own).chain(theirs).collect::<Vec<_>>()
    });
    drop(helpers);
    // What goes wrong in a share (its part of the memory was too small) is for one thread to find.
    match parts.into_iter().collect::<Result<Option<Vec<KeptGroups>>, _>>() {
        Ok(Some(parts)) => KeptGroups::together(parts, upkeep),
        Ok(None) | Err(_) => Ok(None),
    }
}

/// The table whose chunks are shared, if that is worth it: its rows are read through, and by one thread they would be, too.
fn worth_sharing<'c>(plan: &Plan, upkeep: &Upkeep, context: &RunContext<'c>) -> Option<&'c TableVersion> {
    if context.limits.threads_max < 2 || context.changed.is_some() {
        return None;
    }
    let table = context.snapshot.tables.get(&upkeep.table)?;
    let scan = upkeep.scan()?;
    let is_alone = upkeep.tables.iter().filter(|other| **other == upkeep.table).count() == 1;
    let is_large = table.rows >= ROWS_MIN && table.chunks.len() > 1 && chosen_look_ups(scan, table).is_none();
    if !is_large || !is_alone {
        return None;
    }
    let state = State::new(plan, context);
    let run = Run::new(plan, context, context.parameters, &state);
    let mut of_table = plan.scans().into_iter().filter(|own| own.table == upkeep.table);
    if of_table.any(|own| run.reads_by_keys(plan, own)) {
        return None;
    }
    run.is_probe(&upkeep.base.input, scan).ok().filter(|is_probe| *is_probe).map(|_| &**table)
}

/// The table's chunks in so many parts of about as many rows.
fn shares(table: &TableVersion, count: usize) -> impl Iterator<Item = TableVersion> {
    let mut rest = table.chunks.to_vec();
    let each = table.rows.div_ceil(count);
    (0..count).map(move |share| {
        let mut rows = 0;
        let end = rest.iter().position(|version| {
            rows += version.alive_rows;
            rows >= each
        });
        let end = if share + 1 == count { rest.len() } else { end.map_or(rest.len(), |end| end + 1) };
        let chunks: Vec<ChunkVersion> = rest.drain(..end).collect();
        TableVersion::of_chunks(Arc::clone(&table.schema), chunks.into(), table.generation)
    })
}
