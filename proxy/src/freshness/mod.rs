//! [`Freshness`]: the mirror at the moment that a reader may be given, or the reason why it must go upstream.
//!
//! Exact mode waits for a [`barrier`]; session mode reads what the last one [`exposure`]d unless a newer one is due ([`marks`]). The
//! barrier carries the catalog [`fingerprint`], so that nothing is answered by a catalog that is not in force. Beside
//! it: [`privileges`] as PostgreSQL checks them, and moments that sessions keep ([`pins`]). The mirror itself is
//! [`crate::replication`]'s.
//!
//! The stream has a thread of its own, which sessions must not delay; the barrier runs beside sessions. So the stream may end, or
//! apply more, between "it still lives" and the snapshot that is cut on that ground. That does no harm: a snapshot is cut only where
//! what it requires has been applied, a table of a later life refuses moments that do not see all of its copy, and what is exposed
//! says of which life it is ([`exposure::Exposed::epoch`]).

pub mod barrier;
pub mod exposure;
pub mod fingerprint;
mod marks;
pub mod neighbours;
pub mod orders;
mod patience;
pub mod pins;
pub mod privileges;
pub mod seats;
pub mod zones;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use freshet_config::FreshnessMode;
use freshet_engine::STACK_BYTES;
use freshet_engine::catalog::{Catalog, RelationId};
use freshet_engine::change_log::RowChanges;
use freshet_engine::mirror::TrackedBecause;
use freshet_engine::planted::{Bug, is_planted};
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::Keys;
use freshet_engine::snapshot::{Snapshot, Unions};
use freshet_engine::table::Generation;
use freshet_engine::types::Lsn;
use futures_util::FutureExt;
use prometheus_client::metrics::histogram::Histogram;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::freshness::barrier::{BarrierCounters, Reader};
use crate::freshness::exposure::{BarrierNumber, Exposure, Shown};
use crate::freshness::neighbours::Neighbours;
use crate::freshness::orders::TextOrders;
use crate::freshness::patience::within;
use crate::freshness::pins::{PinOptions, Pins};
use crate::freshness::privileges::Privileges;
use crate::freshness::seats::Seats;
use crate::freshness::zones::ZoneData;
use crate::replication::status::{ColumnReport, StreamReport, TableReport};
use crate::replication::supervise::{MirrorOptions, Replication};
use crate::replication::written::WrittenTable;
use crate::statistics::ShapeStatistics;
use crate::upstream::UpstreamError;

/// What of the settings concerns freshness.
#[derive(Clone, Debug)]
pub struct FreshnessOptions {
    /// How long a reader waits before it is relayed.
    pub wait_budget: Duration,
    /// How old a moment session mode may read.
    pub lag_max: Duration,
    pub pins: PinOptions,
}

impl Default for FreshnessOptions {
    fn default() -> Self {
        Self { wait_budget: Duration::from_millis(20), lag_max: Duration::from_secs(1), pins: PinOptions::default() }
    }
}

/// A moment, for one statement.
#[derive(Clone, Debug)]
pub struct Served {
    /// The tables asked for (maybe more), and the catalog that was in force. A plan made with another catalog
    /// (`Catalog::version`) must not be run on it.
    pub snapshot: Arc<Snapshot>,
    /// Upstream's `statement_timestamp()` at the barrier, microseconds since 2000 UTC. None: no barrier was needed;
    /// a statement that uses the time asks in exact mode.
    pub statement_time: Option<i64>,
    pub wait_us: u64,
    /// What a session that has seen this must require from then on, or it may see an older state next.
    pub barrier: BarrierNumber,
}

/// A moment that was to be had without waiting.
#[derive(Clone, Debug)]
pub struct AtOnce {
    pub served: Served,
    /// Only for readers of the keys asked for: other rows of the tables may have been written since.
    pub is_confined: bool,
}

/// For the admin endpoint and `freshet.status`.
#[derive(Clone, Debug)]
pub struct FreshnessReport {
    pub stream: StreamReport,
    /// The barrier connection stands, too: readers can be served.
    pub is_ready: bool,
    /// How far the mirror is behind the last barrier's end of the log.
    pub lag_bytes: u64,
    /// Age of what session mode reads; None: nothing can be read.
    pub lag_ms: Option<u64>,
}

/// How far past the budget a reader waits for being told so.
const OVERDUE: Duration = Duration::from_millis(2);

/// Runs a task to its end; begins it anew should it panic, so that a mistake costs speed but not the mirror.
async fn contain<F: Future<Output = ()>>(what: &str, begin: impl Fn() -> F) {
    while AssertUnwindSafe(begin()).catch_unwind().await.is_err() {
        tracing::error!("{what} panicked; it begins anew");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Keeps pinned snapshots within their limits.
async fn watch_pins(shared: Arc<barrier::Shared>, pins: Arc<Pins>, shutdown: CancellationToken) {
    while timeout(pins::LOOK_EVERY, shutdown.cancelled()).await.is_err() {
        let epoch = shared.replication.running().ok().map(|running| running.epoch);
        let (shared, pins) = (Arc::clone(&shared), Arc::clone(&pins));
        // Counting and freeing rows takes time that sessions need not wait for.
        let look = move || {
            let newest = shared.exposure.newest();
            pins.enforce(&shared.options.pins, epoch, newest.as_ref().map(|newest| &*newest.snapshot));
        };
        let _ = tokio::task::spawn_blocking(look).await;
    }
}

/// The door to the mirror. Cheap to clone.
#[derive(Clone)]
pub struct Freshness {
    shared: Arc<barrier::Shared>,
    readers: mpsc::UnboundedSender<Reader>,
    privileges: Arc<Privileges>,
    zones: Arc<ZoneData>,
    orders: Arc<TextOrders>,
    pins: Arc<Pins>,
    seats: Arc<Seats>,
    stopped: watch::Receiver<bool>,
}

impl Freshness {
    /// Starts mirroring in the background. Called within the runtime that serves sessions; first copies run there, too.
    /// Until the mirror stands, every reader is relayed.
    ///
    /// The stream has a thread of its own. The barrier runs on `beside_sessions`, the event loop of one of the threads that
    /// serve sessions: a reader's wait is then one round trip without a change of threads. `waits` takes the seconds that
    /// readers waited.
    pub fn start(
        mirror: MirrorOptions,
        options: FreshnessOptions,
        waits: Histogram,
        beside_sessions: &Handle,
        shutdown: CancellationToken,
    ) -> Result<Self, UpstreamError> {
        let replication = Replication::new(mirror)?;
        let privileges = Arc::new(Privileges::new(replication.clone()));
        let zones = Arc::new(ZoneData::new(replication.pool().clone()));
        let orders = Arc::new(TextOrders::new(replication.pool().clone()));
        let shared = Arc::new(barrier::Shared {
            replication: replication.clone(),
            options,
            exposure: Exposure::default(),
            unions: Unions::default(),
            counters: BarrierCounters::new(waits),
            is_up: AtomicBool::new(false),
            behind_us: AtomicU64::new(0),
            heeded: AtomicU64::new(0),
        });
        let (readers, questions) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let runtime =
            tokio::runtime::Builder::new_current_thread().thread_stack_size(STACK_BYTES).enable_all().build()?;
        let questions = Arc::new(tokio::sync::Mutex::new(questions));
        let pins = Arc::new(Pins::default());
        beside_sessions.spawn(contain("the look at pinned snapshots", {
            let (shared, pins, until) = (Arc::clone(&shared), Arc::clone(&pins), shutdown.clone());
            move || watch_pins(Arc::clone(&shared), Arc::clone(&pins), until.clone())
        }));
        let background = Arc::clone(&shared);
        let until = shutdown.clone();
        let barrier = beside_sessions.spawn(contain("the barrier", move || {
            background.stop_serving();
            barrier::run(Arc::clone(&background), Arc::clone(&questions), until.clone())
        }));
        std::thread::Builder::new().name("freshet-mirror".into()).stack_size(STACK_BYTES).spawn(move || {
            let stream = contain("the mirror", || {
                replication.stop_serving("starting");
                replication.run(shutdown.clone())
            });
            let _ = runtime.block_on(async { tokio::join!(barrier, stream) });
            stop.send_replace(true);
        })?;
        let seats = Seats::new(beside_sessions.clone());
        Ok(Self { shared, readers, privileges, zones, orders, pins, seats, stopped })
    }

    /// Returns when everything has been given back to upstream after the shutdown.
    pub async fn stopped(&self) {
        let mut stopped = self.stopped.clone();
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Asks about the other databases of this upstream.
    pub fn neighbours(&self) -> Neighbours {
        Neighbours::new(self.shared.replication.pool().clone())
    }

    pub fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// The stream has not run yet, and has not failed to.
    pub fn is_beginning(&self) -> bool {
        self.shared.replication.is_beginning()
    }

    /// The stream runs and the barrier connection stands: readers can be served.
    pub fn is_ready(&self) -> bool {
        self.shared.replication.running().is_ok() && self.shared.is_up.load(Ordering::SeqCst)
    }

    /// The tables `relations`, tracked ones without their rows, at a moment that satisfies `mode`. In session mode no older than
    /// barrier `session_requires`.
    pub async fn acquire(
        &self,
        mode: FreshnessMode,
        relations: &[RelationId],
        session_requires: BarrierNumber,
    ) -> Result<Served, UpstreamReason> {
        self.acquire_for(None, mode, relations, session_requires).await
    }

    /// Likewise, for a statement of this shape: where a barrier has to be waited for, no longer than that is worth.
    pub async fn acquire_for(
        &self,
        shape: Option<&ShapeStatistics>,
        mode: FreshnessMode,
        relations: &[RelationId],
        session_requires: BarrierNumber,
    ) -> Result<Served, UpstreamReason> {
        let Some((catalog, expanded)) = self.expand(relations) else {
            return self.acquire_tables(shape, mode, relations, session_requires).await;
        };
        let served = self.acquire_tables(shape, mode, &expanded, session_requires).await?;
        self.complete(served, relations, &catalog)
    }

    /// How long it is worth waiting for a moment: twice as long as upstream takes for the statement, within the budget, and an eighth of
    /// that at least.
    fn patience(&self, shape: Option<&ShapeStatistics>) -> Duration {
        let budget = self.shared.options.wait_budget;
        let takes = shape.and_then(ShapeStatistics::upstream_takes);
        takes.map_or(budget, |takes| (2 * takes).clamp(budget / 8, budget))
    }

    /// What the relations depend on, where some are made of others; from here on barriers watch those.
    fn expand(&self, relations: &[RelationId]) -> Option<(Arc<Catalog>, Vec<RelationId>)> {
        let replication = &self.shared.replication;
        if !replication.has_derived(relations) {
            return None;
        }
        let catalog = self.catalog();
        let expanded = catalog.expand(relations);
        if replication.watch(&expanded) {
            // The barriers so far have not looked at it.
            self.shared.exposure.note_catalog_changed();
        }
        Some((catalog, expanded))
    }

    fn complete(&self, served: Served, relations: &[RelationId], catalog: &Catalog) -> Result<Served, UpstreamReason> {
        if served.snapshot.catalog.version != catalog.version {
            return Err(UpstreamReason::CatalogChanged);
        }
        let snapshot = self.shared.unions.complete(served.snapshot, relations)?;
        Ok(Served { snapshot, ..served })
    }

    async fn acquire_tables(
        &self,
        shape: Option<&ShapeStatistics>,
        mode: FreshnessMode,
        relations: &[RelationId],
        session_requires: BarrierNumber,
    ) -> Result<Served, UpstreamReason> {
        let mode_of_look = if is_planted(Bug::SkipBarrier) { FreshnessMode::Session } else { mode };
        if let Some(found) = self.look(mode_of_look, relations, &Keys::default(), session_requires) {
            return Ok(found.served);
        }
        self.shared.replication.running()?;
        if !self.shared.is_up.load(Ordering::SeqCst) {
            return Err(UpstreamReason::MirrorBehind("the barrier connection is not open".into()));
        }
        // What no barrier can change is told at once: a table that is not mirrored may be all that an application reads.
        if self.shared.replication.membership_digest(relations).is_none() {
            let why = self.shared.replication.not_mirrored_because(relations);
            return Err(UpstreamReason::TableNotMirrored(why.into()));
        }
        let patience = self.patience(shape);
        if patience <= self.shared.behind() {
            self.shared.counters.over_budget.fetch_add(1, Ordering::Relaxed);
            return Err(UpstreamReason::WaitBudget);
        }
        let (reply, answer) = oneshot::channel();
        let reader = Reader {
            mode,
            relations: relations.to_vec(),
            arrived: Instant::now(),
            patience,
            is_second_try: false,
            reply,
        };
        let gone = |_| UpstreamReason::MirrorBehind("the barrier is gone".into());
        self.readers.send(reader).map_err(|_| gone(()))?;
        // The barrier keeps to the budget itself, but its thread may be busy with a large transaction.
        match within(patience + OVERDUE, answer).await {
            Some(answer) => answer.map_err(|_| gone(()))?,
            None => Err(UpstreamReason::WaitBudget),
        }
    }

    /// Without waiting, for who reads of some tables only `keys`: None if a newer barrier is due (or nothing can be read), see
    /// [`exposure`]; in exact mode one always is.
    pub fn try_acquire(
        &self,
        mode: FreshnessMode,
        relations: &[RelationId],
        keys: &Keys,
        session_requires: BarrierNumber,
    ) -> Option<AtOnce> {
        let found = self.try_acquire_generations(mode, relations, keys, session_requires)?;
        let snapshot = self.shared.unions.complete(found.served.snapshot, relations).ok()?;
        Some(AtOnce { served: Served { snapshot, ..found.served }, ..found })
    }

    /// Likewise for who only compares generations: partitioned tables are not put together.
    pub fn try_acquire_generations(
        &self,
        mode: FreshnessMode,
        relations: &[RelationId],
        keys: &Keys,
        session_requires: BarrierNumber,
    ) -> Option<AtOnce> {
        if mode == FreshnessMode::Exact {
            return None;
        }
        let Some((catalog, expanded)) = self.expand(relations) else {
            return self.look(mode, relations, keys, session_requires);
        };
        let found = self.look(mode, &expanded, keys, session_requires)?;
        (found.served.snapshot.catalog.version == catalog.version).then_some(found)
    }

    /// Whether a moment that was found for other keys of the same tables is new enough for these.
    pub fn covers(&self, served: &Served, relations: &[RelationId], keys: &Keys) -> bool {
        match self.expand(relations) {
            None => self.shared.exposure.covers(served.barrier, relations, keys),
            Some((_, expanded)) => self.shared.exposure.covers(served.barrier, &expanded, keys),
        }
    }

    fn look(
        &self,
        mode: FreshnessMode,
        relations: &[RelationId],
        keys: &Keys,
        session_requires: BarrierNumber,
    ) -> Option<AtOnce> {
        let shared = &self.shared;
        let announced = shared.replication.announcements();
        if announced > shared.heeded.load(Ordering::SeqCst) {
            // First the mark: nobody may find it heeded before.
            shared.exposure.note_catalog_changed();
            shared.heeded.fetch_max(announced, Ordering::SeqCst);
        }
        let lag_max = shared.options.lag_max;
        let shown = match mode {
            FreshnessMode::Exact => return None,
            FreshnessMode::Session => {
                let running = shared.replication.running().ok()?;
                shared.exposure.look(running.epoch, relations, keys, session_requires, lag_max)?
            }
            FreshnessMode::Standby => {
                // A REFRESH sends nothing that a standby would receive: only a barrier tells of it.
                let catalog = &shared.replication.loaded().catalog;
                if relations.iter().any(|relation| catalog.materialized.contains_key(relation)) {
                    return None;
                }
                let lag_max = if is_planted(Bug::KeepBelieving) { Duration::MAX } else { lag_max };
                let since = shared.replication.standby()?.synchronous_since(lag_max)?;
                let running = shared.replication.running().ok()?;
                let shown = shared.exposure.look_synchronous(running.epoch, relations, since, lag_max)?;
                // Whatever was acknowledged before this read began has been received by now. What is received and not
                // shown may be visible or not: only a barrier tells.
                if !shared.replication.is_newest(&shown.snapshot, relations) {
                    return None;
                }
                shown
            }
        };
        let Shown { number: barrier, snapshot, is_confined } = shown;
        Some(AtOnce { served: Served { snapshot, statement_time: None, wait_us: 0, barrier }, is_confined })
    }

    /// A session of this freshet got an acknowledgement for something that may have changed anything: rows, tables,
    /// names, privileges.
    pub fn note_write_acknowledged(&self) {
        self.shared.exposure.note_catalog_changed();
    }

    /// Likewise, for what can only have changed rows (INSERT, UPDATE, DELETE, MERGE, COPY FROM, and the COMMIT of such,
    /// where no function with side effects on the catalog can have been called).
    pub fn note_rows_written(&self) {
        self.shared.exposure.note_rows_written();
    }

    /// Likewise, for what can only have changed rows of these tables, as statements named them: only readers of those (where
    /// the statement says which keys, of those) wait, if each is a mirrored table whose writes reach no other. False: it is not known
    /// what was written, and everything is noted as written.
    pub fn note_tables_written(&self, written: &[WrittenTable]) -> bool {
        let exposure = &self.shared.exposure;
        // Until the last change of the catalog is known here, a trigger may be that is not.
        let touched = if exposure.wants_verification() { None } else { self.shared.replication.written(written) };
        match &touched {
            Some(touched) => exposure.note_tables_written(touched),
            None => exposure.note_rows_written(),
        }
        touched.is_some()
    }

    /// A session of this freshet is about to get an acknowledgement that may not have waited for freshet as a synchronous standby.
    pub fn note_not_awaited(&self) {
        self.shared.exposure.note_not_awaited();
    }

    /// The changes of a table after one generation, up to another; None if they are not all known.
    pub fn changes_between(
        &self,
        table: RelationId,
        after: Generation,
        through: Generation,
    ) -> Option<Vec<Arc<RowChanges>>> {
        self.shared.replication.changes_between(table, after, through)
    }

    /// A barrier sent from now on: what a session requires after a reply was relayed to it.
    pub fn required_now(&self) -> BarrierNumber {
        self.shared.exposure.required_now()
    }

    /// The catalog to bind with. Whether it is in force, the snapshot's says that comes with a moment.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.shared.replication.loaded().catalog)
    }

    /// Of [`Self::catalog`].
    pub fn catalog_version(&self) -> u64 {
        self.shared.replication.catalog_version()
    }

    /// A statement would have been answered here if this table were mirrored.
    pub fn want_table(&self, relation: RelationId) {
        self.shared.replication.want_table(relation);
    }

    /// Why these relations are in no snapshot with their rows although their tables are followed.
    pub fn tracked_because(&self, relations: &[RelationId]) -> Option<TrackedBecause> {
        self.shared.replication.tracked_because(relations)
    }

    /// A statement named a table that the catalog in use does not have, or was refused for what that says of it; if it is another
    /// now, the catalog is read again.
    pub fn look_for_table(&self, name: &str) {
        self.shared.replication.look_for_table(name);
    }

    /// A copy of this table is to come or runs.
    pub fn awaits_copy(&self, relation: RelationId) -> bool {
        self.shared.replication.awaits_copy(relation)
    }

    /// How often upstream's configuration was seen to change; sessions' defaults may have changed with it.
    pub fn configuration_changes(&self) -> u64 {
        self.shared.counters.configurations.load(Ordering::Relaxed)
    }

    /// Whose time zone data agree.
    pub fn zones(&self) -> &ZoneData {
        self.zones.of_start(self.catalog().orders.upstream_started_at())
    }

    /// Asks for the order of texts.
    pub fn orders(&self) -> &Arc<TextOrders> {
        &self.orders
    }

    /// Where waits for a barrier cost no change of threads.
    pub fn seats(&self) -> &Arc<Seats> {
        &self.seats
    }

    /// Who may read what.
    pub fn privileges(&self) -> &Privileges {
        &self.privileges
    }

    /// Every table that was wanted, and what became of it.
    pub fn statuses(&self) -> Vec<TableReport> {
        self.shared.replication.tables()
    }

    /// Every column of the tables in memory.
    pub fn columns(&self) -> Vec<ColumnReport> {
        self.shared.replication.columns()
    }

    pub fn report(&self) -> FreshnessReport {
        let shared = &self.shared;
        let stream = shared.replication.report();
        let Lsn(applied) = stream.applied;
        FreshnessReport {
            is_ready: self.is_ready(),
            lag_bytes: shared.counters.insert_lsn.load(Ordering::Relaxed).saturating_sub(applied),
            lag_ms: shared.exposure.lag().map(|lag| lag.as_millis() as u64),
            stream,
        }
    }

    /// In mode `standby`: whether commits wait for freshet.
    pub fn standby(&self) -> Option<String> {
        self.shared.replication.standby().map(|standby| standby.report(self.shared.options.lag_max))
    }

    /// Whether writes in mode session make only readers of their keys wait; else why not, for people.
    pub fn writes_told_by_keys(&self) -> String {
        let why_not = self.shared.replication.loaded().keys_are_not_told_because();
        why_not.map_or_else(|| "yes".to_owned(), |why| format!("no: {why}"))
    }

    pub fn counters(&self) -> &BarrierCounters {
        &self.shared.counters
    }

    pub fn replication(&self) -> &Replication {
        &self.shared.replication
    }
}
