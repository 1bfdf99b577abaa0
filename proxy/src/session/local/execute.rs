//! Runs a plan on a snapshot and encodes its rows: anew, or from what was kept beside an outdated reply.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use freshet_engine::catalog::functions::{EvalContext, EvalError};
use freshet_engine::catalog::order::Missing;
use freshet_engine::executor::point::PointRow;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::{
    Basis, CachedReply, Course, Done, Found, Keep, Keys, Pieces, Repeated, ResultKey, Share,
};
use freshet_engine::snapshot::Snapshot;
use freshet_engine::statement::fingerprint;
use freshet_engine::types::encode::Format;
use freshet_engine::types::{FormatSettings, Value};
use freshet_engine::{Engine, Pace, Prepared};

use crate::audit::Audit;
use crate::freshness::Served;
use crate::session::answer::early::Early;
use crate::session::local::{Local, ORDER_QUESTIONS_MAX, ORDER_WAIT_MAX, local_error};
use crate::session::reply::{Rows, Run, row_description, rows_of_point, without_room};
use crate::statistics::ShapeStatistics;

/// What is run, for whom, and on what.
pub(super) struct Execution<'a> {
    pub(super) settings: &'a FormatSettings,
    pub(super) formats: &'a [Format],
    pub(super) prepared: &'a Arc<Prepared>,
    pub(super) parameters: &'a Arc<[Value]>,
    pub(super) served: &'a Served,
    /// The answer is this row.
    pub(super) point: Option<PointRow<'a>>,
    /// The session's own thread runs it.
    pub(super) is_quick: bool,
    /// Where the first rows of a long reply go.
    pub(super) early: Option<Early>,
}

impl Execution<'_> {
    /// The rows and what they depend on. What it took, and what is kept beside it, is for whoever knows to say.
    pub(super) fn reply(
        &self,
        frames: Pieces,
        row_count: u64,
        statistics: &Arc<ShapeStatistics>,
        audit: &Audit,
    ) -> CachedReply {
        let plan = &self.prepared.plan;
        CachedReply {
            row_description: row_description(plan, self.formats),
            rows: frames,
            row_count,
            relations: plan.relations(),
            basis: Basis::of(plan.tables.iter().map(|table| table.table), &self.served.snapshot),
            last: u64::MAX,
            // Another moment is another time.
            reads: (!plan.uses_time).then(|| Arc::clone(&self.prepared.reads)),
            parameters: self.parameters.iter().cloned().collect(),
            keys: Keys::default(),
            barrier: 0,
            configuration: 0,
            catalog_version: self.prepared.catalog_version,
            folds_settings: plan.folds_settings,
            elapsed_us: 0,
            keep: Keep::default(),
            share: Share::default(),
            found: Found::default(),
            repeated: Repeated::default(),
            withdrawn: audit.withdrawn(&self.prepared.identity),
            attachment: Arc::clone(statistics) as _,
        }
    }

    /// The answer where it is one row. None: it is not.
    pub(super) fn rows_of_point(&self, engine: &Engine) -> Option<Result<Rows, EvalError>> {
        let point = self.point.as_ref()?;
        let limits = engine.limits(Pace::Quick);
        let rows = || rows_of_point(&self.prepared.plan, point, self.formats, self.settings, limits);
        Some(catch_unwind(AssertUnwindSafe(rows)).unwrap_or_else(|_| Err(panicked())))
    }
}

impl Local {
    /// `earlier`: the reply that was kept for the same text, settings and parameters.
    pub(super) async fn execute(
        self: &Arc<Self>,
        execution: &Execution<'_>,
        earlier: Option<&CachedReply>,
        statistics: &Arc<ShapeStatistics>,
    ) -> Result<CachedReply, UpstreamReason> {
        let Execution { prepared, served, .. } = execution;
        let started = Instant::now();
        let course = Arc::new(self.course(execution, earlier));
        let mut asked = 0;
        let rows = loop {
            match self.rows(execution, &course).await {
                Err(EvalError::Unordered(missing)) if asked < ORDER_QUESTIONS_MAX => {
                    asked += 1;
                    self.ask_order(&served.snapshot, missing).await?;
                }
                done => break done.map_err(local_error)?,
            }
        };
        match rows.done {
            Done::Updated | Done::Checked => statistics.note_update(),
            Done::Wrong => {
                tracing::error!(
                    statement = %fingerprint::shown(&prepared.shape.text),
                    "groups kept up with changes differ from those computed from all rows: the statement goes upstream from now on"
                );
                self.audit.differed(&prepared.identity);
            }
            Done::Anew | Done::Unable | Done::Kept => {}
        }
        let rest = earlier.map_or(0, |earlier| earlier.keep.rest);
        let Rows { frames, count, groups, done, last, run_us } = rows;
        let keep = Keep::after(&course, done, groups, &prepared.held_plan(), run_us, rest);
        let elapsed_us = started.elapsed().as_micros() as u64;
        Ok(CachedReply { elapsed_us, keep, last, ..execution.reply(frames, count, statistics, &self.audit) })
    }

    /// Keeps the reply for the next one who asks; without its groups if they make it too large. Whether it has found a place.
    pub(super) fn keep(&self, key: &ResultKey, reply: CachedReply) -> bool {
        let results = &self.engine.results;
        let reply = CachedReply { rows: without_room(&reply.rows), ..reply };
        let reply = match results.fits(key, &reply) {
            true => reply,
            false => CachedReply { keep: Keep { upkept: None, ..reply.keep }, ..reply },
        };
        results.insert(key, Arc::new(reply))
    }

    fn course(&self, execution: &Execution<'_>, earlier: Option<&CachedReply>) -> Course {
        let snapshot = &execution.served.snapshot;
        let freshness = &self.freshness;
        let changes = |table, after, through| freshness.changes_between(table, after, through);
        match earlier {
            Some(earlier) => earlier.course(&execution.prepared.held_plan(), snapshot, &changes),
            None => Course::Anew,
        }
    }

    async fn rows(self: &Arc<Self>, execution: &Execution<'_>, course: &Arc<Course>) -> Result<Rows, EvalError> {
        if let Some(rows) = execution.rows_of_point(&self.engine) {
            return rows;
        }
        let Execution { settings, formats, prepared, parameters, served, is_quick, early, .. } = execution;
        let transaction_time = served.statement_time;
        if *is_quick {
            let eval = EvalContext { settings, transaction_time, orders: None };
            let plan = &prepared.plan;
            let run =
                Run { plan, snapshot: &served.snapshot, parameters, eval, formats, pace: Pace::Quick, early: None };
            // As on another thread: a slip that panics is upstream's statement, not the end of a session.
            let done =
                catch_unwind(AssertUnwindSafe(|| run.rows(&self.engine, course, &Arc::new(AtomicBool::new(false)))));
            match done.unwrap_or_else(|_| Err(panicked())) {
                // It takes longer than its tables let suppose.
                Err(EvalError::OverBudget(_)) => {}
                done => return done,
            }
        }
        let abandoned = Abandon::default();
        let flag = Arc::clone(&abandoned.0);
        let (local, prepared, parameters) = (Arc::clone(self), Arc::clone(prepared), Arc::clone(parameters));
        let (snapshot, settings, formats) = (Arc::clone(&served.snapshot), (*settings).clone(), formats.to_vec());
        let (course, early) = (Arc::clone(course), early.clone());
        let work = move || {
            let eval = EvalContext { settings: &settings, transaction_time, orders: None };
            let (plan, parameters, formats) = (&prepared.plan, &parameters[..], &formats[..]);
            let early = early.as_ref();
            let run = Run { plan, snapshot: &snapshot, parameters, eval, formats, pace: Pace::Full, early };
            run.rows(&local.engine, &course, &flag)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(panicked()))
    }

    /// Waits for a moment until upstream has told how these texts are ordered; it is asked to the end in any case.
    async fn ask_order(&self, snapshot: &Arc<Snapshot>, missing: Arc<Missing>) -> Result<(), UpstreamReason> {
        let orders = Arc::clone(&snapshot.catalog.orders);
        let asked = Arc::clone(self.freshness.orders());
        let answer = tokio::spawn(async move { asked.learn(&orders, &missing).await });
        match tokio::time::timeout(ORDER_WAIT_MAX, answer).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(error))) => {
                Err(UpstreamReason::Collation(format!("its order could not be asked: {error}").into()))
            }
            Ok(Err(_)) | Err(_) => Err(UpstreamReason::Collation("its order is being asked".into())),
        }
    }
}

fn panicked() -> EvalError {
    EvalError::Beyond("the execution panicked".into())
}

/// Raises its flag when it is dropped: a client that cancels or goes away ends the computation that nobody waits for.
#[derive(Default)]
struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
