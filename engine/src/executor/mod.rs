//! Runs a plan on a snapshot: vectorised over arrow arrays, one operator per file.
//!
//! An operator pushes [`batch::Batch`]es into the one above it, which may answer that it has enough. Scans go chunk by
//! chunk; sorts, aggregates and the build sides of joins collect. What depends on the data is decided here, from the
//! snapshot: join order and build sides ([`join`]), index or scan ([`scan`]), how keys are numbered ([`key_table`]),
//! how rows are ordered ([`order`]). Single-threaded; every error means that upstream answers.

mod accumulate;
mod aggregate;
mod arrays;
mod batch;
pub(crate) mod eval;
mod filter;
mod join;
mod key_table;
mod order;
mod scan;
mod sort;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::ArrayRef;

use self::batch::Batch;
use self::eval::Environment;
use crate::binder::BoundQuery;
use crate::catalog::RelationId;
use crate::catalog::functions::{EvalContext, EvalError};
use crate::join_cache::JoinCache;
use crate::planner::expression::type_of;
use crate::planner::node::PlanNode;
use crate::planner::{self, Abilities, Plan};
use crate::reason::UpstreamReason;
use crate::snapshot::Snapshot;
use crate::table::TableVersion;
use crate::types::{PgType, Value};

/// Some rows of a result or between two operators; every column has `rows` entries.
#[derive(Clone, Debug)]
pub struct RowBatch {
    pub columns: Vec<ArrayRef>,
    pub rows: usize,
}

/// What one statement may use. Beyond: [`EvalError::OverBudget`], and upstream answers.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Sorts, groups, build sides and gathered results together.
    pub memory_bytes_max: usize,
    /// Rows of the result, and rows that all joins together produce.
    pub rows_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes_max: 256 << 20, rows_max: 50_000_000 }
    }
}

/// Everything that one execution depends on besides the plan.
#[derive(Debug)]
pub struct RunContext<'a> {
    pub snapshot: &'a Snapshot,
    /// One per `$n`, of the plan's parameter types.
    pub parameters: &'a [Value],
    pub eval: EvalContext<'a>,
    pub limits: &'a Limits,
    pub join_cache: &'a JoinCache,
    /// Set by another thread to stop; looked at between batches.
    pub cancelled: &'a AtomicBool,
}

const ABILITIES: Abilities = Abilities { constant: eval::constant, check };

/// The plan of a query that this executor can run.
pub fn plan(query: BoundQuery) -> Result<Plan, UpstreamReason> {
    planner::plan(query, &ABILITIES)
}

/// Whether the node's own aggregates, keys and orders are known here; asked once, when the statement is planned.
fn check(node: &PlanNode) -> Result<(), EvalError> {
    match node {
        PlanNode::Aggregate(aggregate) => {
            for group in &aggregate.groups {
                key_table::check(type_of(group))?;
            }
            for call in &aggregate.calls {
                let argument = call.argument.map(|argument| type_of(&aggregate.arguments[argument]));
                accumulate::accumulator(call.function, argument)?;
                if call.is_distinct
                    && let Some(pg_type) = argument
                {
                    key_table::check(pg_type)?;
                }
            }
            Ok(())
        }
        PlanNode::Sort { keys, .. } => keys.iter().try_for_each(|key| order::check(type_of(&key.expr))),
        PlanNode::OneRow
        | PlanNode::Scan(_)
        | PlanNode::Filter { .. }
        | PlanNode::Project { .. }
        | PlanNode::Join(_)
        | PlanNode::LeftJoin(_)
        | PlanNode::Limit { .. } => Ok(()),
    }
}

/// The rows of the answer, in order where the query asks for one.
pub fn execute(plan: &Plan, context: &RunContext<'_>) -> Result<Vec<RowBatch>, EvalError> {
    let run = Run {
        snapshot: context.snapshot,
        environment: Environment { parameters: context.parameters, context: &context.eval },
        limits: context.limits,
        join_cache: context.join_cache,
        cancelled: context.cancelled,
        memory_bytes: Cell::new(0),
        join_rows: Cell::new(0),
    };
    let mut batches = Vec::new();
    let mut rows = 0;
    // Nothing below computes on the result's columns batch by batch unless an operator asks for small batches.
    let _ = run.run(&plan.root, Batching::default(), &mut |batch: Batch| {
        rows += batch.rows;
        if rows > run.limits.rows_max {
            return Err(EvalError::OverBudget("result rows"));
        }
        if batch.rows > 0 {
            run.charge(batch.gather_bytes())?;
            batches.push(batch.into_row_batch()?);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(batches)
}

/// `Break`: the operator above needs no more rows.
type Flow = ControlFlow<()>;
type Sink<'s> = dyn FnMut(Batch) -> Result<Flow, EvalError> + 's;

/// How many rows scans put into a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Batching {
    /// What is computed on a batch stays in the processor's caches.
    #[default]
    Small,
    /// Chunks as they are: the operator above collects everything anyway.
    Whole,
}

impl Batching {
    fn rows(self) -> usize {
        match self {
            Self::Small => 8_192,
            Self::Whole => usize::MAX,
        }
    }
}

/// The state of one execution.
struct Run<'a> {
    snapshot: &'a Snapshot,
    environment: Environment<'a>,
    limits: &'a Limits,
    join_cache: &'a JoinCache,
    cancelled: &'a AtomicBool,
    memory_bytes: Cell<usize>,
    join_rows: Cell<usize>,
}

impl Run<'_> {
    /// Pushes the node's rows into `sink` until it breaks off. No batch is empty.
    fn run(&self, node: &PlanNode, batching: Batching, sink: &mut Sink<'_>) -> Result<Flow, EvalError> {
        match node {
            PlanNode::OneRow => sink(Batch::new(Vec::new(), 1)),
            PlanNode::Scan(scan) => self.scan(scan, batching, sink),
            PlanNode::Filter { input, predicates } => self.run(input, batching, &mut |batch| {
                let width = batch.width();
                let kept = self.filter(batch, predicates, None, width)?;
                if kept.rows == 0 { Ok(Flow::Continue(())) } else { sink(kept) }
            }),
            PlanNode::Project { input, expressions } => {
                let is_plain = expressions.iter().all(|expr| matches!(expr, crate::binder::BoundExpr::Column { .. }));
                let batching = if is_plain { batching } else { Batching::Small };
                self.run(input, batching, &mut |batch| sink(self.project(&batch, expressions)?))
            }
            PlanNode::Join(join) => self.join(join, sink),
            PlanNode::LeftJoin(join) => self.left_join(join, sink),
            PlanNode::Aggregate(aggregate) => self.aggregate(aggregate, sink),
            PlanNode::Sort { input, keys, limit, offset } => {
                let bounds = self.bounds(limit.as_ref(), offset.as_ref())?;
                self.sort(input, keys, &bounds, sink)
            }
            PlanNode::Limit { input, limit, offset } => {
                let bounds = self.bounds(limit.as_ref(), offset.as_ref())?;
                self.limit(input, &bounds, sink)
            }
        }
    }

    fn project(&self, batch: &Batch, expressions: &[crate::binder::BoundExpr]) -> Result<Batch, EvalError> {
        let mut projected = Batch::new(Vec::new(), batch.rows);
        for expr in expressions {
            match expr {
                // Stays ungathered until somebody reads it.
                crate::binder::BoundExpr::Column { index, .. } => projected.push_column_of(batch, *index),
                computed => projected.push_array(self.environment.evaluate_column(computed, batch)?),
            }
        }
        Ok(projected)
    }

    fn table(&self, id: RelationId) -> Result<&std::sync::Arc<TableVersion>, EvalError> {
        self.snapshot.tables.get(&id).ok_or_else(|| EvalError::Beyond(format!("table {} is not in the snapshot", id.0)))
    }

    fn check_cancelled(&self) -> Result<(), EvalError> {
        if self.cancelled.load(Ordering::Relaxed) { Err(EvalError::OverBudget("cancelled")) } else { Ok(()) }
    }

    /// Counts memory against the statement's budget. Nothing is given back before the statement ends.
    fn charge(&self, bytes: usize) -> Result<(), EvalError> {
        let total = self.memory_bytes.get().saturating_add(bytes);
        self.memory_bytes.set(total);
        if total > self.limits.memory_bytes_max { Err(EvalError::OverBudget("memory")) } else { Ok(()) }
    }

    /// Counts the part of `now` that was not counted `before`.
    fn charge_growth(&self, before: &mut usize, now: usize) -> Result<(), EvalError> {
        let growth = now.saturating_sub(*before);
        *before = now.max(*before);
        self.charge(growth)
    }

    fn count_join_rows(&self, rows: usize) -> Result<(), EvalError> {
        let total = self.join_rows.get().saturating_add(rows);
        self.join_rows.set(total);
        if total > self.limits.rows_max { Err(EvalError::OverBudget("joined rows")) } else { Ok(()) }
    }

    /// The types of the node's output columns.
    fn output_types(&self, node: &PlanNode) -> Result<Vec<PgType>, EvalError> {
        match node {
            PlanNode::OneRow => Ok(Vec::new()),
            PlanNode::Scan(scan) => {
                let schema = &self.table(scan.table)?.schema;
                let type_of_column = |column: &usize| {
                    schema.columns[*column]
                        .pg_type
                        .ok_or_else(|| EvalError::Beyond("a column that is not mirrored".to_owned()))
                };
                scan.columns[..scan.outputs].iter().map(type_of_column).collect()
            }
            PlanNode::Project { input, expressions } => {
                let below = self.output_types(input)?;
                let own = expressions.iter().map(|expr| match expr {
                    crate::binder::BoundExpr::Column { index, .. } => below[*index],
                    computed => type_of(computed),
                });
                Ok(own.collect())
            }
            PlanNode::Join(join) => {
                let mut types = Vec::new();
                for input in &join.inputs {
                    types.extend(self.output_types(input)?);
                }
                Ok(types)
            }
            PlanNode::LeftJoin(join) => {
                let mut types = self.output_types(&join.left)?;
                types.extend(self.output_types(&join.right)?);
                Ok(types)
            }
            PlanNode::Aggregate(aggregate) => {
                let calls = aggregate.calls.iter().map(|call| call.result);
                Ok(aggregate.groups.iter().map(type_of).chain(calls).collect())
            }
            PlanNode::Filter { input, .. } | PlanNode::Sort { input, .. } | PlanNode::Limit { input, .. } => {
                self.output_types(input)
            }
        }
    }

    /// A guess at the number of rows, from the tables' sizes.
    fn estimate(&self, node: &PlanNode) -> usize {
        // What one predicate is taken to keep: a third.
        const KEPT: usize = 3;
        let filtered = |rows: usize, predicates: usize| rows / KEPT.pow(predicates.min(4) as u32);
        match node {
            PlanNode::OneRow => 1,
            PlanNode::Scan(scan) => {
                let rows = self.snapshot.tables.get(&scan.table).map_or(0, |table| table.rows);
                // An equality keeps less than another comparison.
                filtered(rows, scan.filters.len() + scan.look_ups.len())
            }
            PlanNode::Filter { input, predicates } => filtered(self.estimate(input), predicates.len()),
            PlanNode::Project { input, .. } | PlanNode::Sort { input, .. } | PlanNode::Limit { input, .. } => {
                self.estimate(input)
            }
            PlanNode::Join(join) => join.inputs.iter().map(|input| self.estimate(input)).max().unwrap_or(0),
            PlanNode::LeftJoin(join) => self.estimate(&join.left).max(self.estimate(&join.right)),
            PlanNode::Aggregate(aggregate) if aggregate.groups.is_empty() => 1,
            PlanNode::Aggregate(aggregate) => self.estimate(&aggregate.input) / 8,
        }
    }
}
