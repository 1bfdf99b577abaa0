//! freshet's engine: answers statements from mirrored tables exactly as PostgreSQL would, or refuses.
//!
//! Life of a statement: text → [`statement`] (parse, fingerprint, classify) → [`binder`] (names, types,
//! coercions by PostgreSQL's rules) → [`planner`] (pushdown, pruning, operators) → [`executor`]
//! (vectorised, over arrow arrays, on one immutable [`snapshot::Snapshot`]) → row batches.
//! Life of a change: replication bytes → [`mirror`] (decode, assemble, apply) → next table version → publish.
//!
//! The engine has no sockets, no async and no clock: time, limits and settings are passed in. Whatever it
//! does not know ends in an [`reason::UpstreamReason`], never in an error to a client.

pub mod binder;
pub mod catalog;
pub mod change_log;
pub mod executor;
pub mod join_cache;
pub mod mirror;
pub mod planner;
pub mod planted;
mod prepare;
pub mod reason;
pub mod result_cache;
pub mod snapshot;
pub mod statement;
pub mod table;
pub mod types;

/// The stack of every thread that binds, plans or executes: their walks over a statement are as deep as the binder lets it be
/// ([`binder`], `DEPTH_MAX`). Of what is not used there is no memory behind it.
pub const STACK_BYTES: usize = if cfg!(debug_assertions) { 256 << 20 } else { 64 << 20 };

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::catalog::functions::{EvalContext, EvalError};
use crate::executor::upkeep::{self, KeptGroups};
use crate::executor::{Limits, RowBatch, RunContext};
use crate::join_cache::JoinCache;
use crate::planner::Plan;
use crate::planner::upkeep::Upkeep;
use crate::reason::UpstreamReason;
use crate::result_cache::{Course, Done, ResultCache};
use crate::snapshot::Snapshot;
use crate::statement::dependencies::Dependencies;
use crate::statement::fingerprint::{self, Lifted};
use crate::types::{Oid, Value};

pub use crate::prepare::{Choice, PrepareContext, Prepared, prepare};

/// How often a cache that is cleared is told to free what it holds: some thousand entries each time.
const CLEAR_ROUNDS_MAX: usize = 1_000;

/// Bounds of an [`Engine`].
#[derive(Clone, Debug)]
pub struct EngineOptions {
    pub result_bytes_max: u64,
    /// One reply takes at most this much of the result cache.
    pub reply_bytes_max: usize,
    pub join_bytes_max: usize,
    /// Prepared statements, refused ones included.
    pub plan_bytes_max: u64,
    pub limits: Limits,
}

/// A plan for a text and all that differ from it in literals.
#[derive(Clone, Debug)]
pub struct Shared {
    pub prepared: Arc<Prepared>,
    /// Of the text as it was written.
    pub shape: String,
    /// By parameter of the plan: the text that its type's input function reads.
    pub literals: Vec<String>,
}

/// How much a statement may take to run before it is given up with [`EvalError::OverBudget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// So little that whoever waits behind it does not feel it.
    Quick,
    /// What [`EngineOptions::limits`] says.
    Full,
}

/// What an entry of a cache of statements costs besides: the cache's nodes and lists, the entry itself.
const ENTRY_BYTES: usize = 512;
/// For what the texts depend on that are not planned, of the bytes for plans: one in so many.
const DEPENDENCIES_ONE_IN: u64 = 8;

type ByText<V> = moka::sync::Cache<Box<[u8]>, V, ahash::RandomState>;

/// A cache of so many bytes, what `bytes_of` says of each value included.
fn by_text<V: Clone + Send + Sync + 'static>(
    bytes_max: u64,
    bytes_of: impl Fn(&V) -> usize + Send + Sync + 'static,
) -> ByText<V> {
    moka::sync::Cache::<Box<[u8]>, V>::builder()
        .max_capacity(bytes_max)
        .weigher(move |key, value| u32::try_from(ENTRY_BYTES + key.len() + bytes_of(value)).unwrap_or(u32::MAX))
        .build_with_hasher(ahash::RandomState::new())
}

/// Bounds of [`Pace::Quick`].
const QUICK_BYTES_MAX: usize = 4 << 20;
const QUICK_ROWS_MAX: usize = 50_000;

/// A plan, or why there is none.
type Planned = Result<Arc<Prepared>, UpstreamReason>;

/// The caches and the way from text to rows; the only door for sessions. Shared by all of them.
pub struct Engine {
    plans: ByText<Planned>,
    dependencies: ByText<Option<Arc<Dependencies>>>,
    pub results: ResultCache,
    joins: JoinCache,
    limits: Limits,
    quick_limits: Limits,
}

impl Engine {
    pub fn new(options: EngineOptions) -> Self {
        let dependency_bytes_max = options.plan_bytes_max / DEPENDENCIES_ONE_IN;
        let plans = by_text(options.plan_bytes_max - dependency_bytes_max, |prepared: &Planned| {
            prepared.as_ref().map_or(0, |prepared| prepared.bytes)
        });
        let dependencies = by_text(dependency_bytes_max, |found: &Option<Arc<Dependencies>>| {
            found.as_ref().map_or(0, |found| found.bytes())
        });
        Self {
            plans,
            dependencies,
            results: ResultCache::new(options.result_bytes_max, options.reply_bytes_max),
            joins: JoinCache::new(options.join_bytes_max),
            quick_limits: Limits {
                memory_bytes_max: options.limits.memory_bytes_max.min(QUICK_BYTES_MAX),
                rows_max: options.limits.rows_max.min(QUICK_ROWS_MAX),
                join_rows_max: options.limits.join_rows_max.min(QUICK_ROWS_MAX),
                threads_max: 1,
                pool: Arc::clone(&options.limits.pool),
            },
            limits: options.limits,
        }
    }

    /// The plan of a text, from the plan cache or made now. A refusal is remembered, too.
    pub fn prepare(&self, sql: &str, context: &PrepareContext<'_>) -> Result<Arc<Prepared>, UpstreamReason> {
        let key = context.key(sql);
        if let Some(known) = self.plans.get(key.as_slice()) {
            return known;
        }
        // A slip that panics is upstream's statement, not the end of a session.
        let prepared = catch_unwind(AssertUnwindSafe(|| prepare(sql, context).map(Arc::new)))
            .unwrap_or_else(|_| Err(UpstreamReason::LocalError("planning panicked".into())));
        self.plans.insert(key.into_boxed_slice(), prepared.clone());
        prepared
    }

    /// The plan of a text without parameters that it shares with all that differ in lifted literals only, and these
    /// literals as values of the plan's parameters. None: it needs a plan of its own.
    pub fn prepare_shared(&self, sql: &str, context: &PrepareContext<'_>) -> Option<Shared> {
        let Lifted { text, shape, literals } = fingerprint::lift(sql)?;
        let types: Vec<Oid> = literals.iter().map(|(oid, _)| *oid).collect();
        let prepared = self.prepare(&text, &PrepareContext { parameter_types: &types, ..*context }).ok()?;
        let literals: Vec<String> = literals.into_iter().map(|(_, value)| value).collect();
        (prepared.plan.parameters.len() == literals.len()).then_some(Shared { prepared, shape, literals })
    }

    /// The relations of a text that cannot be prepared, if its reply depends on nothing else; see
    /// [`statement::dependencies`]. Remembered either way.
    pub fn dependencies(&self, sql: &str, context: &PrepareContext<'_>) -> Option<Arc<Dependencies>> {
        let key = context.key(sql);
        if let Some(known) = self.dependencies.get(key.as_slice()) {
            return known;
        }
        let found = statement::dependencies::dependencies(sql, context.catalog, context.search_path);
        let found = found.ok().map(Arc::new);
        self.dependencies.insert(key.into_boxed_slice(), found.clone());
        found
    }

    /// Runs a plan on a snapshot of the catalog that it was made for. A plan that uses the time needs one in `eval`.
    pub fn run(
        &self,
        plan: &Plan,
        snapshot: &Snapshot,
        parameters: &[Value],
        eval: &EvalContext<'_>,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Vec<RowBatch>, EvalError> {
        let run = |context: &RunContext<'_>| executor::execute(plan, context);
        self.with_run(Pace::Full, snapshot, parameters, eval, cancelled, run).map(|(batches, _)| batches)
    }

    /// What statements of a pace may use.
    pub fn limits(&self, pace: Pace) -> &Limits {
        match pace {
            Pace::Quick => &self.quick_limits,
            Pace::Full => &self.limits,
        }
    }

    /// Likewise in place of an outdated reply, from what was kept of it where the course says so; beside it what
    /// [`CachedReply::last`](result_cache::CachedReply::last) is to be.
    #[expect(clippy::too_many_arguments, reason = "each is another thing that a run depends on")]
    pub fn run_course(
        &self,
        pace: Pace,
        course: &Course,
        plan: &Plan,
        snapshot: &Snapshot,
        parameters: &[Value],
        eval: &EvalContext<'_>,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<((Vec<RowBatch>, Option<KeptGroups>, Done), u64), EvalError> {
        let keep = |upkeep: &Upkeep, context: &RunContext<'_>| {
            // An attempt before it may have told where another answer ends.
            context.last.iter().for_each(|last| last.store(u64::MAX, Ordering::Relaxed));
            upkeep::execute_keeping(plan, upkeep, context)
        };
        self.with_run(pace, snapshot, parameters, eval, cancelled, |context| match course {
            Course::Anew => Ok((executor::execute(plan, context)?, None, Done::Anew)),
            Course::Keeping(upkeep) => keep(upkeep, context).map(|(batches, groups)| (batches, groups, Done::Kept)),
            Course::Updating { upkeep, kept, changes } => {
                // An error of a row that is gone is none.
                let updated = upkeep::execute_updated(plan, upkeep, kept.groups(), changes, context).ok().flatten();
                let Some((batches, groups)) = updated else {
                    return keep(upkeep, context).map(|(batches, groups)| (batches, groups, Done::Unable));
                };
                if !kept.is_to_be_checked() {
                    return Ok((batches, Some(groups), Done::Updated));
                }
                // More than the statement may use is no answer to compare with.
                let (anew_batches, anew) = match keep(upkeep, context) {
                    Err(EvalError::OverBudget(_)) => return Ok((batches, Some(groups), Done::Updated)),
                    other => other?,
                };
                let done = match &anew {
                    Some(anew) if groups.is_same(anew, upkeep)? => Done::Checked,
                    Some(_) => Done::Wrong,
                    None => Done::Unable,
                };
                Ok((anew_batches, anew, done))
            }
        })
    }

    /// Beside the result, where a plan for the first rows of an order ends ([`RunContext::last`]).
    fn with_run<T>(
        &self,
        pace: Pace,
        snapshot: &Snapshot,
        parameters: &[Value],
        eval: &EvalContext<'_>,
        cancelled: &Arc<AtomicBool>,
        run: impl FnOnce(&RunContext<'_>) -> Result<T, EvalError>,
    ) -> Result<(T, u64), EvalError> {
        let (orders, last) = (snapshot.catalog.orders.view(), AtomicU64::new(u64::MAX));
        let context = RunContext {
            snapshot,
            parameters,
            eval: EvalContext { orders: Some(&orders), ..eval.clone() },
            limits: self.limits(pace),
            join_cache: &self.joins,
            cancelled,
            changed: None,
            builds: None,
            last: Some(&last),
        };
        let result = run(&context);
        match orders.into_missing() {
            // Whatever came out: it was computed with places that are none.
            Some(missing) => Err(EvalError::Unordered(Arc::new(missing))),
            None => result.map(|result| (result, last.into_inner())),
        }
    }

    /// Drops everything that is kept.
    pub fn clear(&self) {
        self.plans.invalidate_all();
        self.dependencies.invalidate_all();
        self.joins.clear();
        self.results.clear();
        // The cache frees what is invalid when it is next used, or told to, so much at a time.
        for _ in 0..CLEAR_ROUNDS_MAX {
            self.plans.run_pending_tasks();
            self.dependencies.run_pending_tasks();
            if self.plans.entry_count() + self.dependencies.entry_count() == 0 {
                break;
            }
        }
    }

    /// Plans kept; what they take with what else is known of texts, in bytes; and the bytes of the join cache.
    pub fn sizes(&self) -> (u64, u64, usize) {
        let plan_bytes = self.plans.weighted_size() + self.dependencies.weighted_size();
        (self.plans.entry_count(), plan_bytes, self.joins.bytes())
    }

    /// How often a kept side of a join got appended rows instead of being built again.
    pub fn join_sides_extended(&self) -> u64 {
        self.joins.extended()
    }
}
