//! Runs a plan on a snapshot: vectorised over arrow arrays, one operator per file.
//!
//! An operator pushes [`batch::Batch`]es into the one above it, which may answer that it has enough. Scans go chunk by
//! chunk; sorts, aggregates and the build sides of joins collect. What depends on the data is decided here, from the
//! snapshot: join order ([`join_order`]) and build sides ([`join`]), index or scan ([`scan`]), how keys are numbered ([`key_table`]),
//! how rows are ordered ([`order`]). Single-threaded; every error means that upstream answers.

mod accumulate;
mod aggregate;
mod alternatives;
mod arrays;
mod batch;
mod best;
pub mod bound;
pub mod changes;
mod computed;
mod estimate;
pub(crate) mod eval;
mod expand;
mod filter;
mod join;
mod join_order;
mod key_table;
mod keyed;
pub mod memory;
mod order;
pub mod parallel;
pub mod point;
mod ranged;
mod ranges;
mod recursive;
pub(crate) mod scan;
mod sets;
mod side;
mod sort;
mod spans;
#[cfg(test)]
mod tests;
pub mod upkeep;
mod window;

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow::array::ArrayRef;

pub use self::join::Builds;
pub use self::scan::rows_looked_at;

use self::batch::Batch;
use self::eval::Environment;
use self::memory::{MemoryPool, POOL_IS_EMPTY, Share};
use crate::binder::{BESIDE_NULL, BoundQuery, ScalarKind};
use crate::catalog::RelationId;
use crate::catalog::functions::at_once::AtOnce;
use crate::catalog::functions::{EvalContext, EvalError};
use crate::join_cache::JoinCache;
use crate::planner::expression::type_of;
use crate::planner::node::{PlanNode, SideKind};
use crate::planner::{self, Abilities, Plan, Scalar};
use crate::reason::UpstreamReason;
use crate::snapshot::Snapshot;
use crate::table::TableVersion;
use crate::types::access::value_at;
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
    /// Rows of the result.
    pub rows_max: usize,
    /// Rows that all joins, series and the like produce together.
    pub join_rows_max: usize,
    /// That one statement may use, of as many that help others at the same time.
    pub threads_max: usize,
    /// What all of them may use together.
    pub pool: Arc<MemoryPool>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes_max: 256 << 20,
            rows_max: 50_000_000,
            join_rows_max: 50_000_000,
            threads_max: 1,
            pool: MemoryPool::new(usize::MAX),
        }
    }
}

/// Everything that one execution depends on besides the plan.
#[derive(Clone, Debug)]
pub struct RunContext<'a> {
    pub snapshot: &'a Snapshot,
    /// One per `$n`, of the plan's parameter types.
    pub parameters: &'a [Value],
    pub eval: EvalContext<'a>,
    pub limits: &'a Limits,
    pub join_cache: &'a JoinCache,
    /// Set by another thread to stop; looked at between batches.
    pub cancelled: &'a Arc<AtomicBool>,
    /// A table that has the rows of some changes alone: what it is joined with is built, for the join cache.
    pub changed: Option<RelationId>,
    /// Build sides that the threads of one statement share.
    pub builds: Option<&'a Builds>,
    /// Is given the code of the last row's first key, where the plan ends with a sort that found as many rows as it wants.
    pub last: Option<&'a AtomicU64>,
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
                accumulate::accumulator(call.function, argument, &[], call.result)?;
                if call.is_distinct
                    && let Some(pg_type) = argument
                {
                    key_table::check(pg_type)?;
                }
            }
            Ok(())
        }
        PlanNode::Sort { keys, .. } => keys.iter().try_for_each(|key| order::check(type_of(&key.expr))),
        PlanNode::DistinctOn { keys, .. } => keys.iter().try_for_each(|key| key_table::check(type_of(key))),
        PlanNode::SetOperation { types, .. } => types.iter().try_for_each(|pg_type| key_table::check(*pg_type)),
        PlanNode::Window { calls, .. } => calls.iter().try_for_each(window::check),
        // PostgreSQL has no plan for it either; IS NOT DISTINCT FROM is no equality to it.
        PlanNode::SideJoin(join)
            if join.kind == SideKind::Full && join.equalities.iter().all(|equality| equality.is_null_safe) =>
        {
            Err(EvalError::Beyond("full join without an equality".to_owned()))
        }
        PlanNode::OneRow
        | PlanNode::Scan(_)
        | PlanNode::Filter { .. }
        | PlanNode::Project { .. }
        | PlanNode::Join(_)
        | PlanNode::SideJoin(_)
        | PlanNode::Append { .. }
        | PlanNode::Values { .. }
        | PlanNode::Common { .. }
        | PlanNode::Series { .. }
        | PlanNode::Expand(_)
        | PlanNode::Working { .. }
        | PlanNode::Limit { .. } => Ok(()),
        PlanNode::Recursive(recursive) if recursive.is_all => Ok(()),
        PlanNode::Recursive(recursive) => recursive.types.iter().try_for_each(|pg_type| key_table::check(*pg_type)),
    }
}

/// The rows of the answer, in order where the query asks for one.
pub fn execute(plan: &Plan, context: &RunContext<'_>) -> Result<Vec<RowBatch>, EvalError> {
    match parallel::execute(plan, context)? {
        Some(batches) => Ok(batches),
        None => execute_given(plan, context, None),
    }
}

/// Likewise, with the rows of the aggregate that lies at that address.
fn execute_given(
    plan: &Plan,
    context: &RunContext<'_>,
    given: Option<(usize, RowBatch)>,
) -> Result<Vec<RowBatch>, EvalError> {
    let ties = plan.outermost_sort().filter(|_| plan.with_ties).map(|sort| std::ptr::from_ref(sort).addr());
    let top = plan.outermost_sort().filter(|_| context.last.is_some()).map(|sort| std::ptr::from_ref(sort).addr());
    let state = State { given, ties, top, ..State::new(plan, context) };
    for expr in &plan.constants {
        eval::constant(expr, context.parameters, &context.eval)?;
    }
    for expr in &plan.required {
        if matches!(eval::constant(expr, context.parameters, &context.eval)?, Value::Null) {
            return Err(EvalError::Beyond(BESIDE_NULL.into()));
        }
    }
    let mut parameters = Cow::Borrowed(context.parameters);
    for scalar in &plan.scalars {
        let value = Run::new(plan, context, &parameters, &state).scalar(scalar)?;
        parameters.to_mut().push(value);
    }
    for gate in &plan.gates {
        eval::constant(gate, &parameters, &context.eval)?;
    }
    let run = Run::new(plan, context, &parameters, &state);
    let mut batches = Vec::new();
    let mut rows = 0;
    // Nothing below computes on the result's columns batch by batch unless an operator asks for small batches.
    let _ = run.run(&plan.root, Batching::default(), &mut |batch: Batch| {
        rows += batch.rows;
        if rows > run.limits.rows_max {
            return Err(EvalError::OverBudget("result rows"));
        }
        if batch.rows > 0 {
            run.charge(batch.held_bytes())?;
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

/// What one execution has used and computed so far.
struct State {
    memory_bytes: Cell<usize>,
    share: RefCell<Share>,
    _at_once: AtOnce,
    join_rows: Cell<usize>,
    commons: Vec<OnceCell<Batch>>,
    /// Rows that scans were estimated to give, by where the plan's node lies.
    sampled: RefCell<HashMap<usize, usize>>,
    /// How many values columns of tables have.
    distinct: RefCell<HashMap<(RelationId, usize), f64>>,
    /// By a recursion's number: the rows of the round before.
    rounds: RefCell<HashMap<usize, Batch>>,
    /// What sorts with a limit leave of scans, by where the scans lie.
    bounds: RefCell<HashMap<usize, Rc<bound::Bound>>>,
    /// By where scans lie, the keys of which alone they are read.
    wanted: RefCell<HashMap<usize, Rc<keyed::Wanted>>>,
    /// Rows of an aggregate that are known, by where the plan's node lies.
    given: Option<(usize, RowBatch)>,
    /// With more groups an aggregate is given up.
    groups_max: usize,
    /// Where the sort lies whose last row's equals are wanted, too.
    ties: Option<usize>,
    /// Where the sort lies whose last row is to be told.
    top: Option<usize>,
}

impl State {
    fn new(plan: &Plan, context: &RunContext<'_>) -> Self {
        let limits = context.limits;
        Self {
            memory_bytes: Cell::new(0),
            share: RefCell::new(Share::of(&limits.pool)),
            _at_once: AtOnce::bounded(limits.memory_bytes_max, Arc::clone(context.cancelled)),
            join_rows: Cell::new(0),
            commons: plan.commons.iter().map(|_| OnceCell::new()).collect(),
            sampled: RefCell::default(),
            distinct: RefCell::default(),
            rounds: RefCell::default(),
            bounds: RefCell::default(),
            wanted: RefCell::default(),
            given: None,
            groups_max: usize::MAX,
            ties: None,
            top: None,
        }
    }
}

/// One execution.
struct Run<'a> {
    snapshot: &'a Snapshot,
    environment: Environment<'a>,
    limits: &'a Limits,
    join_cache: &'a JoinCache,
    cancelled: &'a Arc<AtomicBool>,
    commons: &'a [PlanNode],
    state: &'a State,
    changed: Option<RelationId>,
    builds: Option<&'a Builds>,
    last: Option<&'a AtomicU64>,
}

impl<'a> Run<'a> {
    /// `parameters`: the statement's, then the values of the scalar subqueries that are known.
    fn new(plan: &'a Plan, context: &'a RunContext<'_>, parameters: &'a [Value], state: &'a State) -> Self {
        Self {
            snapshot: context.snapshot,
            environment: Environment { parameters, context: &context.eval },
            limits: context.limits,
            join_cache: context.join_cache,
            cancelled: context.cancelled,
            commons: &plan.commons,
            state,
            changed: context.changed,
            builds: context.builds,
            last: context.last,
        }
    }
}

impl Run<'_> {
    /// The value of a subquery that depends on nothing.
    fn scalar(&self, scalar: &Scalar) -> Result<Value, EvalError> {
        let mut rows = 0;
        let mut value = Value::Null;
        let _ = self.run(&scalar.node, Batching::Small, &mut |batch| {
            if rows == 0 && scalar.kind == ScalarKind::Value && batch.rows > 0 {
                value = value_at(batch.column(0)?.as_ref(), scalar.pg_type, 0);
            }
            rows += batch.rows;
            Ok(Flow::Continue(()))
        })?;
        match scalar.kind {
            ScalarKind::Exists => Ok(Value::Bool(rows > 0)),
            ScalarKind::Value if rows > 1 => {
                Err(EvalError::Raises("more than one row returned by a subquery used as an expression".to_owned()))
            }
            ScalarKind::Value => Ok(value),
        }
    }

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
            PlanNode::SideJoin(join) => self.side_join(join, sink),
            PlanNode::Aggregate(aggregate) => self.aggregate(aggregate, sink),
            PlanNode::DistinctOn { input, keys } => self.distinct_on(input, keys, sink),
            PlanNode::Append { inputs, .. } => self.append(inputs, batching, sink),
            PlanNode::SetOperation { operation, is_all, left, right, types } => {
                self.set_operation(*operation, *is_all, [left, right], types, sink)
            }
            PlanNode::Values { rows, types } => self.values(rows, types, sink),
            PlanNode::Window { input, calls } => self.window(input, calls, sink),
            PlanNode::Common { index, columns } => self.common(*index, columns, batching, sink),
            PlanNode::Series { bounds, pg_type } => self.series(bounds, *pg_type, sink),
            PlanNode::Expand(expand) => self.expand(expand, sink),
            PlanNode::Recursive(recursive) => self.recursive(recursive, sink),
            PlanNode::Working { number, .. } => self.working(*number, batching, sink),
            PlanNode::Sort { input, keys, limit, offset, with_ties } => {
                let mut bounds = self.bounds(limit.as_ref(), offset.as_ref())?;
                bounds.with_ties = *with_ties;
                if self.state.ties == Some(std::ptr::from_ref(node).addr()) {
                    bounds = bounds.all_with_ties();
                }
                bounds.tells_last = self.state.top == Some(std::ptr::from_ref(node).addr());
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

    fn table(&self, id: RelationId) -> Result<&Arc<TableVersion>, EvalError> {
        self.snapshot.tables.get(&id).ok_or_else(|| EvalError::Beyond(format!("table {} is not in the snapshot", id.0)))
    }

    fn check_cancelled(&self) -> Result<(), EvalError> {
        if self.cancelled.load(Ordering::Relaxed) { Err(EvalError::OverBudget("cancelled")) } else { Ok(()) }
    }

    /// Counts memory against the statement's budget. Nothing is given back before the statement ends.
    fn charge(&self, bytes: usize) -> Result<(), EvalError> {
        let total = self.state.memory_bytes.get().saturating_add(bytes);
        self.state.memory_bytes.set(total);
        if total > self.limits.memory_bytes_max {
            return Err(EvalError::OverBudget("memory"));
        }
        if !self.state.share.borrow_mut().grow(bytes) {
            return Err(EvalError::OverBudget(POOL_IS_EMPTY));
        }
        Ok(())
    }

    /// Counts the part of `now` that was not counted `before`.
    fn charge_growth(&self, before: &mut usize, now: usize) -> Result<(), EvalError> {
        let growth = now.saturating_sub(*before);
        *before = now.max(*before);
        self.charge(growth)
    }

    fn count_join_rows(&self, rows: usize) -> Result<(), EvalError> {
        let total = self.state.join_rows.get().saturating_add(rows);
        self.state.join_rows.set(total);
        if total > self.limits.join_rows_max { Err(EvalError::OverBudget("joined rows")) } else { Ok(()) }
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
            PlanNode::SideJoin(join) => {
                let mut types = self.output_types(&join.left)?;
                match join.kind {
                    SideKind::Left | SideKind::Full | SideKind::Single => {
                        types.extend(self.output_types(&join.right)?);
                    }
                    SideKind::Mark => types.push(PgType::Bool),
                    SideKind::Semi | SideKind::Anti => {}
                }
                Ok(types)
            }
            PlanNode::Append { types, .. }
            | PlanNode::SetOperation { types, .. }
            | PlanNode::Values { types, .. }
            | PlanNode::Working { types, .. } => Ok(types.clone()),
            PlanNode::Recursive(recursive) => Ok(recursive.types.clone()),
            PlanNode::Expand(expand) => {
                let mut types = self.output_types(&expand.input)?;
                let own = expand.functions.iter().flat_map(|call| &call.columns);
                types.extend(own.map(|column| column.pg_type));
                types.extend(expand.is_numbered.then_some(PgType::Int8));
                Ok(types)
            }
            PlanNode::Window { input, calls } => {
                let mut types = self.output_types(input)?;
                types.extend(calls.iter().map(|call| call.expr_type.pg_type));
                Ok(types)
            }
            PlanNode::Common { index, columns } => {
                let all = self.output_types(&self.commons[*index])?;
                Ok(columns.iter().map(|column| all[*column]).collect())
            }
            PlanNode::Series { pg_type, .. } => Ok(vec![*pg_type]),
            PlanNode::Aggregate(aggregate) => {
                let calls = aggregate.calls.iter().map(|call| call.result);
                Ok(aggregate.groups.iter().map(type_of).chain(calls).collect())
            }
            PlanNode::Filter { input, .. }
            | PlanNode::DistinctOn { input, .. }
            | PlanNode::Sort { input, .. }
            | PlanNode::Limit { input, .. } => self.output_types(input),
        }
    }
}
