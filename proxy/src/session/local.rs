//! The answerer ([`answerer`]) that has an engine: cached reply, else bind, audit, execute on a snapshot, keep the reply.
//!
//! Every step may say no with an `UpstreamReason`; then the session relays the unit unchanged.

pub mod ahead;
pub mod answerer;
pub mod capture;
pub mod counts;
pub mod databases;
pub mod demand;
mod execute;
pub mod flight;
mod kept;
mod known;
mod moment;
mod parameters;
pub mod patient;
mod point;
pub mod recent;
mod refusals;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_engine::catalog::RelationId;
use freshet_engine::catalog::functions::EvalError;
use freshet_engine::executor::memory::POOL_IS_EMPTY;
use freshet_engine::executor::point::PointRow;
use freshet_engine::executor::rows_looked_at;
use freshet_engine::planner::Plan;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::{CachedReply, Keys, ResultKey};
use freshet_engine::snapshot::Snapshot;
use freshet_engine::statement::hanging::meaning_hangs_on_settings;
use freshet_engine::statement::{fingerprint, lexer};
use freshet_engine::table::Generation;
use freshet_engine::types::encode::Format;
use freshet_engine::types::{FormatSettings, Value};
use freshet_engine::{Engine, PrepareContext, Prepared, Shared};

use crate::audit::{Audit, Decision, Encodings};
use crate::freshness::exposure::BarrierNumber;
use crate::freshness::pins::Choice;
use crate::freshness::zones::ZoneData;
use crate::freshness::{Freshness, Served};
use crate::session::answer::early::{Early, EarlyRows};
use crate::session::answer::{Answerer, Form, PreparedStatement, Relay, Reply, Unit};
use crate::session::local::ahead::{Ahead, Job};
use crate::session::local::capture::{Captures, Dependencies};
use crate::session::local::databases::Databases;
use crate::session::local::execute::Execution;
use crate::session::local::flight::{Boarding, Flights};
use crate::session::local::kept::reply;
use crate::session::local::moment::Moments;
use crate::session::local::parameters::parameters;
use crate::session::local::patient::Patience;
use crate::session::local::recent::Recents;
use crate::session::local::refusals::{DecidedBy, Refusals};
use crate::session::meant::Names;
use crate::session::oracle::{Oracle, StillDescribed};
use crate::session::preamble;
use crate::session::reply::{describe_statement, row_description};
use crate::session::settings::SessionSettings;
use crate::session::state::{RouteSetting, SessionState};
use crate::statistics::{Answered, ShapeStatistics, Statistics};
use crate::wire::extended::{format_at, oids};

/// What all sessions of a database share.
pub struct Local {
    pub engine: Engine,
    pub freshness: Freshness,
    pub audit: Audit,
    pub statistics: Statistics,
    pub flights: Flights,
    pub recent: Recents,
    pub captures: Captures,
    pub ahead: Ahead,
    /// The database that is mirrored.
    pub database: String,
    /// For tests: see [`patient`].
    pub patience: Option<Patience>,
    /// No other has the same.
    pub number: u64,
    /// A session has read it since this was last looked at.
    pub is_used: AtomicBool,
    /// Its mirror ends, and does not begin again.
    pub is_retired: AtomicBool,
}

impl Local {
    /// Kept replies and the bytes that they and the way to them take.
    pub fn result_size(&self) -> (u64, u64) {
        let (entries, bytes) = self.engine.results.size();
        (entries, bytes + self.recent.bytes() as u64)
    }

    /// Somebody reads these of it.
    fn note_read(&self, relations: &[RelationId]) {
        if !relations.is_empty() {
            self.note_used();
        }
    }

    /// Somebody reads it.
    fn note_used(&self) {
        if !self.is_used.load(Relaxed) {
            self.is_used.store(true, Relaxed);
        }
    }

    fn retire(&self) {
        self.is_retired.store(true, SeqCst);
    }

    /// Its mirror has ended: what it has kept is of no use to whoever still holds on to it. A computation that was under way keeps
    /// its reply after this.
    fn let_go(&self) {
        self.engine.clear();
        self.recent.clear();
        self.ahead.clear();
        self.statistics.clear();
        self.freshness.give_up_pins();
    }
}

/// Fewer rows are looked at by the session's own thread: handing over costs more. While it works, the session
/// hears nothing, so this is also how long a cancel request may have to wait.
const INLINE_ROWS_MAX: usize = 20_000;
/// Likewise of several tables together, whose join may be much larger than they are.
const INLINE_JOIN_ROWS_MAX: usize = 5_000;

/// How often one execution asks upstream for the order of texts: what it needs may show only when it knows the first.
const ORDER_QUESTIONS_MAX: usize = 3;
/// How long it waits for an answer. Few texts take some milliseconds.
const ORDER_WAIT_MAX: Duration = Duration::from_millis(100);

/// One session's answerer.
pub struct LocalAnswerer {
    databases: Arc<Databases>,
    /// The session's database, if it is not that of the URL.
    other: Option<Arc<str>>,
    /// Who logged in.
    user: Box<str>,
    /// How often `local` was replaced.
    moves: u64,
    /// [`Databases::changes`] when the session's database was last looked for there, and when it was last wished for.
    looked: Option<u64>,
    wished: Option<u64>,
    /// The session's database; the first one as long as that is not mirrored.
    local: Arc<Local>,
    is_mirrored_database: bool,
    /// The session has seen the state at this barrier, or upstream's of a moment when it was not yet sent.
    required: BarrierNumber,
    moments: Moments,
    /// Room for what a burst compares kept replies with.
    generations: Vec<(RelationId, Generation)>,
    /// Reused from look-up to look-up.
    key: ResultKey,
    /// Likewise, for the normal form of a text.
    text: Vec<u8>,
    refusals: Refusals,
    /// The statement that was computed last, and its counters.
    counted: Option<(Arc<Prepared>, Arc<ShapeStatistics>)>,
    /// What is known of the unit that could not be answered at once.
    at_hand: Option<AtHand>,
}

/// A unit that no reply is kept of, under the key that is at hand.
struct AtHand {
    /// Where in what the client has sent it ends: no other unit of the session ends there.
    end: u64,
    planned: Planned,
}

/// A moment that was waited for because of a kept reply, which is not the answer at it.
struct AtMoment {
    served: Served,
    kept: Arc<CachedReply>,
}

/// What a moment has to be good for.
struct Needed<'a> {
    prepared: &'a Prepared,
    mode: FreshnessMode,
    relations: &'a [RelationId],
    keys: &'a Keys,
    shape: &'a ShapeStatistics,
}

/// A plan, and the literals in place of its parameters where it is shared with texts that have others.
type Planned = (Arc<Prepared>, Option<Shared>);

/// What one answer is made from.
struct Request<'a> {
    unit: &'a Unit<'a>,
    settings: &'a Arc<SessionSettings>,
    format: &'a FormatSettings,
    sql: &'a str,
    mode: FreshnessMode,
    /// The snapshot that the session reads.
    choice: Option<&'a Choice>,
    route: RouteSetting,
    /// See [`SessionState::has_upstreams_clock`].
    has_upstreams_clock: bool,
    /// See [`SessionState::shares_transaction`].
    shares_transaction: bool,
    /// See [`SessionState::transaction_time`].
    transaction_time: Option<i64>,
    /// The catalog that the search path and the role's name are as of.
    catalog_version: u64,
    /// The state of upstream's configuration that the settings are as of.
    configuration: u64,
    early: Option<&'a Arc<EarlyRows>>,
}

/// Why a statement goes upstream that needs the now() of its block.
pub(super) const TRANSACTION_TIME: &str = "the time of a transaction that began upstream";

/// Whether that is the reason.
pub(super) fn lacks_time(reason: &UpstreamReason) -> bool {
    matches!(reason, UpstreamReason::Volatile(what) if what == TRANSACTION_TIME)
}

/// What `SHOW freshet.last` gives as the freshness of an answer from a pinned snapshot.
const PINNED: &str = "snapshot";

impl<'a> Request<'a> {
    fn of(
        unit: &'a Unit<'a>,
        state: &'a SessionState,
        settings: &'a Arc<SessionSettings>,
        format: &'a FormatSettings,
        sql: &'a str,
    ) -> Self {
        Self {
            unit,
            settings,
            format,
            sql,
            mode: state.freshness,
            choice: state.snapshot.as_deref(),
            route: state.route,
            has_upstreams_clock: state.has_upstreams_clock(),
            shares_transaction: state.shares_transaction,
            transaction_time: state.transaction_time(),
            catalog_version: state.catalog_version,
            configuration: state.configuration,
            early: None,
        }
    }

    fn ends_at(&self, end: u64) -> bool {
        !self.unit.bytes.is_empty() && self.unit.arrival.is_some_and(|arrival| arrival.end == end)
    }

    /// The moment must have a clock: that of the block, if there is one, is not known.
    fn needs_clock(&self, plan: &Plan) -> bool {
        plan.uses_time && (self.choice.is_some() || self.transaction_time.is_none())
    }

    fn has_begun(&self) -> bool {
        self.early.is_some_and(|early| early.has_begun())
    }

    fn freshness(&self) -> &'static str {
        self.choice.map_or(self.mode.name(), |_| PINNED)
    }
}

impl LocalAnswerer {
    async fn try_answer(
        &mut self,
        unit: &Unit<'_>,
        state: &SessionState,
        early: Option<&Arc<EarlyRows>>,
    ) -> Result<Reply, Relay> {
        if state.route == RouteSetting::Relay {
            return Err(Relay::because(UpstreamReason::RouteSetting));
        }
        if !self.is_mirrored_database {
            return Err(Relay::because(UpstreamReason::OtherDatabase));
        }
        let Some(settings) = state.settings.as_ref() else {
            return Err(Relay::because(UpstreamReason::OpaqueSession("not probed".into())));
        };
        let format = match &settings.format {
            Ok(format) => format,
            Err(which) => return Err(Relay::because(UpstreamReason::SessionSetting(which.clone().into()))),
        };
        let sql =
            std::str::from_utf8(unit.sql).map_err(|_| Relay::because(UpstreamReason::NotParsed("not UTF-8".into())))?;
        if self.local.freshness.catalog().version == 0 {
            let why = self.local.freshness.replication().running().err();
            let not_read = || UpstreamReason::MirrorBehind("upstream's catalog is not read yet".into());
            return Err(Relay::because(why.unwrap_or_else(not_read)));
        }
        let request = Request { early, ..Request::of(unit, state, settings, format, sql) };
        if !is_execution(unit) {
            return self.describe(&request).await;
        }
        if let Some(choice) = request.choice {
            let pinned = self.local.freshness.pinned(choice, settings.role(), self.required).await;
            pinned.map_err(|reason| self.refuse(&request, None, reason))?;
        }
        if preamble::asks_for_schema(unit.sql) {
            return self.answer_schema(&request).await.map_err(|reason| self.refuse(&request, None, reason));
        }
        let mut moment = None;
        if state.route != RouteSetting::Auto {
            // For the key of what is to be kept.
            let _ = self.find_kept(unit, settings, request.choice);
        } else {
            match self.try_kept(&request, &mut moment).await {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) | Err(UpstreamReason::TableNotMirrored(_)) => {}
                // What is not certain now would not be a second wait later: upstream answers.
                Err(reason) => return Err(self.refuse(&request, None, reason)),
            }
        }
        let answered = self.compute(&request, moment).await;
        if let Err(Relay { reason: reason @ UpstreamReason::TableNotMirrored(_), observer: None, shape: Some(shape) }) =
            &answered
            && self.local.patience.is_none()
        {
            // Whatever its parameters are: the statement names the table.
            self.remember_refusal(&request, reason, shape);
        }
        answered
    }

    /// The search path that the session's settings hold is right if the catalog that it was resolved by is in force.
    async fn answer_schema(&mut self, request: &Request<'_>) -> Result<Reply, UpstreamReason> {
        let served = self.acquire(request, None, request.mode, &[], request.unit.arrival).await?;
        if served.snapshot.catalog.version != request.catalog_version {
            return Err(UpstreamReason::CatalogChanged);
        }
        self.required = self.required.max(served.barrier);
        preamble::answer_schema(request.unit, request.settings, &served.snapshot.catalog)
            .ok_or_else(|| UpstreamReason::UnknownFunction("current_schema() of this search path".into()))
    }

    async fn compute(&mut self, request: &Request<'_>, moment: Option<AtMoment>) -> Result<Reply, Relay> {
        let at_hand = self.at_hand.take().filter(|known| request.ends_at(known.end));
        let (prepared, shared) = match at_hand.map_or_else(|| self.plan(request), |known| Ok(known.planned)) {
            Ok(plan) => plan,
            Err(reason) => return self.relay_unprepared(request, reason).await,
        };
        if prepared.catalog_version != request.catalog_version {
            return Err(self.refuse(request, None, UpstreamReason::CatalogChanged));
        }
        let statistics = self.counters(request, &prepared, shared.as_ref());
        self.check_state(request, &prepared, &statistics)?;
        let refuse = |reason| self.refuse_prepared(request, &prepared, &statistics, reason);
        let uses_time = prepared.plan.uses_time;
        // The clock is upstream's, and only a barrier that is sent after the statement arrived tells it, unless the block's
        // time is known. A pinned snapshot's clock stands still.
        let is_clocked = request.choice.is_none() && request.needs_clock(&prepared.plan);
        let mode = if is_clocked { FreshnessMode::Exact } else { request.mode };
        let parameters = parameters(&prepared.plan, shared.as_ref(), request).map(Arc::<[Value]>::from);
        let is_keepable = !uses_time || request.choice.is_some();
        let relations = prepared.plan.relations();
        // Also where the text names none of them but a function.
        self.local.note_read(&relations);
        statistics.set_relations(&relations);
        let tables: Vec<RelationId> = prepared.plan.tables.iter().map(|table| table.table).collect();
        let dependencies = Dependencies { relations: &relations, tables: &tables };
        let parameters = match parameters {
            Ok(parameters) => parameters,
            // A text that is not read here as PostgreSQL reads it.
            Err(reason) if is_keepable => {
                return self.relay_captured(request, &dependencies, &statistics, reason).await;
            }
            Err(reason) => return Err(refuse(reason)),
        };
        let wants_keys = is_keepable || mode == FreshnessMode::Session;
        let keys = if wants_keys { self.keys(&prepared, &parameters) } else { Keys::default() };
        let role = request.settings.role();
        self.check_privileges(role, &prepared).await.map_err(refuse)?;
        self.check_zones(request, &prepared.zone_names, &parameters).await.map_err(refuse)?;
        let formats = formats(request.unit, &prepared.plan);
        let heeded = self.heed_audit(request, &prepared, &parameters, &formats, &dependencies, &statistics).await?;
        if let Some(reply) = heeded {
            return Ok(reply);
        }
        let needed = Needed { prepared: &prepared, mode, relations: &relations, keys: &keys, shape: &statistics };
        let served = self.moment(request, &needed, moment).await;
        let served = served.map_err(|reason| self.refuse_prepared(request, &prepared, &statistics, reason))?;
        if let Some(reason) = self.tracked(&dependencies, &served) {
            return match is_keepable {
                true => self.relay_captured(request, &dependencies, &statistics, reason).await,
                false => Err(self.refuse_prepared(request, &prepared, &statistics, reason)),
            };
        }
        // The first rows of a long reply are seen before the last is made.
        self.required = self.required.max(served.barrier);
        let refuse = |reason| self.refuse_prepared(request, &prepared, &statistics, reason);
        let (mut flight, mut _pass) = (None, None);
        let point = PointRow::of(&prepared.plan, &served.snapshot, &parameters);
        let is_quick = point.is_some() || is_quick(&prepared.plan, &served.snapshot, &parameters);
        if is_keepable && request.route == RouteSetting::Auto && !is_quick {
            match self.local.flights.board(&self.key).await {
                Boarding::Lead(leading) => flight = Some(leading),
                Boarding::Landed => {
                    if let Some(reply) = self.reply_at(request, &served) {
                        return Ok(reply);
                    }
                    _pass = self.local.flights.go_on(&self.key).await;
                }
                Boarding::Alone(pass) => _pass = pass,
            }
        }
        let started = Instant::now();
        // What was kept for the same text and parameters may lead to the new reply.
        let earlier = (is_keepable && request.route == RouteSetting::Auto && !is_quick)
            .then(|| self.local.engine.results.get(&self.key))
            .flatten();
        let execution = Execution {
            settings: request.format,
            formats: &formats,
            prepared: &prepared,
            parameters: &parameters,
            served: &served,
            point,
            is_quick,
            early: request.early.filter(|_| !is_quick).map(|to| early(to, request.unit, &prepared.plan, &formats)),
        };
        let attempt =
            Attempt { local: &self.local, prepared: &prepared, started, began: Instant::now(), is_over: false };
        let executed = self.local.execute(&execution, earlier.as_deref(), &statistics).await;
        attempt.end(executed.as_ref().err());
        let kept = match executed {
            Ok(kept) => CachedReply { keys, ..kept },
            Err(reason @ (UpstreamReason::OverBudget(_) | UpstreamReason::LocalError(_)))
                if !uses_time && !request.has_begun() =>
            {
                drop(flight);
                return self.relay_captured(request, &dependencies, &statistics, reason).await;
            }
            Err(reason) => return Err(refuse(reason)),
        };
        statistics.count(Answered::Local, started.elapsed().as_micros() as u64);
        statistics.note_bytes(kept.rows.len());
        let freshness = request.choice.map_or(mode.name(), |_| PINNED);
        let mut reply = reply(&kept, &served, freshness, Answered::Local);
        if request.unit.describes_statement {
            (reply.parameters, reply.statement_columns) = describe_statement(&prepared.plan);
        }
        let is_polled =
            is_keepable && request.choice.is_none() && self.local.ahead.wants(&self.local, &self.key, &kept);
        let keys_polled = is_polled.then(|| kept.keys.clone());
        let has_place = is_keepable && self.local.keep(&self.key, kept);
        if let Some(keys) = keys_polled.filter(|_| has_place) {
            let settings = Arc::clone(request.settings);
            self.local.ahead.note(&self.key, Job { prepared, parameters, settings, formats, keys, statistics });
        }
        let outcome = if has_place { flight::Outcome::Kept } else { flight::Outcome::NotKept };
        flight.into_iter().for_each(|flight| flight.land(outcome));
        Ok(reply)
    }

    /// The moment that the plan is run at: the one at hand if it is good for it.
    async fn moment(
        &mut self,
        request: &Request<'_>,
        needed: &Needed<'_>,
        at_hand: Option<AtMoment>,
    ) -> Result<Served, UpstreamReason> {
        let Needed { prepared, mode, relations, keys, shape } = *needed;
        let needs_clock = request.needs_clock(&prepared.plan);
        // It may have been found for the keys of a kept reply, which by another catalog are others, and so may be what the text names: of
        // what is not among that reply's relations, nobody has asked whether it is as the catalog has it (a view without tables is in
        // no snapshot).
        let is_new_enough = |served: &Served| {
            mode != FreshnessMode::Session
                || request.choice.is_some()
                || self.local.freshness.covers(served, relations, keys)
        };
        let has_all = |AtMoment { served, kept }: &AtMoment| {
            let mut tables = prepared.plan.tables.iter();
            !needs_clock
                && relations.iter().all(|relation| kept.relations.contains(relation))
                && tables.all(|table| served.snapshot.tables.contains_key(&table.table))
                && is_new_enough(served)
        };
        let served = match at_hand.filter(has_all) {
            Some(AtMoment { served, .. }) => served,
            // The time of a statement is its own.
            None if needs_clock => self.acquire(request, Some(shape), mode, relations, None).await?,
            None => self.acquire_for_keys(request, Some(shape), mode, relations, keys).await?,
        };
        let is_of_plan = served.snapshot.catalog.version == prepared.catalog_version;
        if !is_of_plan {
            return Err(UpstreamReason::CatalogChanged);
        }
        Ok(match request.transaction_time.filter(|_| prepared.plan.uses_time && request.choice.is_none()) {
            Some(time) => Served { statement_time: Some(time), ..served },
            None => served,
        })
    }

    fn counters(
        &mut self,
        request: &Request<'_>,
        prepared: &Arc<Prepared>,
        shared: Option<&Shared>,
    ) -> Arc<ShapeStatistics> {
        let role = request.settings.role();
        if let Some(shared) = shared {
            return self.local.statistics.shape(&shared.shape, role);
        }
        match &self.counted {
            Some((known, counters)) if Arc::ptr_eq(known, prepared) => Arc::clone(counters),
            _ => {
                let counters = self.local.statistics.shape(&prepared.shape.text, role);
                self.counted = Some((Arc::clone(prepared), Arc::clone(&counters)));
                counters
            }
        }
    }

    /// Whether the session is in a state in which the plan's answer would be upstream's.
    fn check_state(
        &self,
        request: &Request<'_>,
        prepared: &Prepared,
        statistics: &Arc<ShapeStatistics>,
    ) -> Result<(), Relay> {
        let refuse = |reason| self.refuse_prepared(request, prepared, statistics, reason);
        if let Some(Relay { reason, observer, .. }) = outdated(&self.local, request, prepared) {
            return Err(Relay { observer, ..refuse(reason) });
        }
        if !is_parsed_under(request.unit, request.settings, prepared.plan.folds_settings) {
            return Err(refuse(UpstreamReason::SessionSetting("changed since the statement was prepared".into())));
        }
        let is_missing = |name: &&Arc<str>| !request.format.custom.contains_key(*name);
        let missing: Vec<&str> = prepared.plan.custom_settings.iter().filter(is_missing).map(|name| &**name).collect();
        if !missing.is_empty() {
            // The session asks for them, and then once more here.
            return Err(Relay::because(UpstreamReason::CustomSettings(missing.join(", ").into())));
        }
        let has_time = request.transaction_time.is_some() && !prepared.plan.uses_statement_time;
        if prepared.plan.uses_time && request.has_upstreams_clock && request.choice.is_none() && !has_time {
            if prepared.plan.uses_statement_time {
                return Err(refuse(UpstreamReason::Volatile("the time of a statement in a transaction".into())));
            }
            // The session asks for it, and then once more here.
            return Err(Relay::because(UpstreamReason::Volatile(TRANSACTION_TIME.into())));
        }
        Ok(())
    }

    /// What the audit wants instead of an answer computed here: a reply of upstream's that was kept, or a relay.
    async fn heed_audit(
        &mut self,
        request: &Request<'_>,
        prepared: &Arc<Prepared>,
        parameters: &[Value],
        formats: &[Format],
        dependencies: &Dependencies<'_>,
        statistics: &Arc<ShapeStatistics>,
    ) -> Result<Option<Reply>, Relay> {
        let needs_columns = request.unit.describes_portal || request.unit.describes_statement;
        let reason = match self.local.audit.decide(&prepared.identity, needs_columns, Encodings::of(formats)) {
            Decision::Serve => return Ok(None),
            Decision::Audit(_) | Decision::Await(_) if self.local.patience.is_some() => return Ok(None),
            // Upstream's reply would be of another moment.
            Decision::Audit(UpstreamReason::AuditSample) if request.choice.is_some() => return Ok(None),
            Decision::Await(reason) => return Err(self.refuse_prepared(request, prepared, statistics, reason)),
            Decision::Relay(reason) if prepared.plan.uses_time => {
                return Err(self.refuse_prepared(request, prepared, statistics, reason));
            }
            // Computed here it was not the same: what it reads is not for us to judge row by row.
            Decision::Relay(reason) => {
                return self.relay_captured(request, dependencies, statistics, reason).await.map(Some);
            }
            Decision::Audit(reason) => reason,
        };
        let refuse = |reason| self.refuse_prepared(request, prepared, statistics, reason);
        // The barrier before the execution; it also says whether the tables are mirrored at all.
        let before = self.local.freshness.acquire(FreshnessMode::Exact, dependencies.relations, self.required).await;
        let before = before.map_err(refuse)?;
        if self.configuration() != request.configuration || before.snapshot.catalog.version != prepared.catalog_version
        {
            return Err(refuse(UpstreamReason::CatalogChanged));
        }
        // Upstream computes with the block's time, which is not known here.
        if request.choice.is_some()
            && prepared.plan.uses_time
            && request.has_upstreams_clock
            && request.transaction_time.is_none()
        {
            return Err(refuse(reason));
        }
        if let Some(reason) = self.tracked(dependencies, &before) {
            return match prepared.plan.uses_time {
                true => Err(refuse(reason)),
                false => self.relay_captured(request, dependencies, statistics, reason).await.map(Some),
            };
        }
        let (parameters, formats, time) = (parameters.to_vec(), formats.to_vec(), request.transaction_time);
        let oracle = Oracle::new(&self.local, prepared, request.settings, parameters, formats, before, time);
        let mut relay = refuse(reason);
        relay.observer = Some(Box::new(oracle));
        Err(relay)
    }

    /// Why it cannot be computed on this snapshot, which is one of its tables: not all of them have their rows in it.
    fn tracked(&self, dependencies: &Dependencies<'_>, served: &Served) -> Option<UpstreamReason> {
        if dependencies.tables.iter().all(|table| served.snapshot.tables.contains_key(table)) {
            return None;
        }
        // They may have got them meanwhile.
        let why = self.local.freshness.tracked_because(dependencies.relations);
        let why = why.map_or("not mirrored (yet)".into(), |why| why.to_string().into());
        Some(UpstreamReason::TableTracked(why))
    }

    /// Which keys alone a statement reads; none are told if the catalog is another one meanwhile.
    fn keys(&self, prepared: &Prepared, parameters: &[Value]) -> Keys {
        let catalog = self.local.freshness.catalog();
        let is_bound_by = catalog.version == prepared.catalog_version;
        if is_bound_by { Keys::of(&prepared.reads.scans, parameters, &catalog) } else { Keys::default() }
    }

    /// A query string's plan is shared with those that differ in literals, where there is one.
    fn plan(&self, request: &Request<'_>) -> Result<Planned, UpstreamReason> {
        match self.shared_plan(request) {
            Some(planned) => Ok(planned),
            None => Ok((self.prepare(request)?, None)),
        }
    }

    fn shared_plan(&self, request: &Request<'_>) -> Option<Planned> {
        let share = |context: &PrepareContext<'_>| self.local.engine.prepare_shared(request.sql, context);
        let shared = (request.unit.form == Form::Simple).then(|| self.with_context(request, share)).flatten()?;
        Some((Arc::clone(&shared.prepared), Some(shared)))
    }

    fn prepare(&self, request: &Request<'_>) -> Result<Arc<Prepared>, UpstreamReason> {
        self.with_context(request, |context| self.local.engine.prepare(request.sql, context))
    }

    fn with_context<T>(&self, request: &Request<'_>, ask: impl FnOnce(&PrepareContext<'_>) -> T) -> T {
        let catalog = self.local.freshness.catalog();
        let parameter_types: Vec<u32> = oids(request.unit.parameter_types).collect();
        let context = PrepareContext {
            catalog: &catalog,
            settings_id: request.settings.plan.0,
            search_path: &request.settings.values.search_path,
            settings: request.format,
            parameter_types: &parameter_types,
        };
        ask(&context)
    }

    /// The session's zone, and every text of the statement, of the definitions that it names and of its parameters that is the
    /// name of one.
    async fn check_zones(
        &self,
        request: &Request<'_>,
        of_definitions: &[String],
        parameters: &[Value],
    ) -> Result<(), UpstreamReason> {
        let zones = self.local.freshness.zones();
        zones.check_session(request.settings.value("TimeZone").unwrap_or_default()).await?;
        for name in of_definitions {
            zones.check(name).await?;
        }
        if request.sql.contains('/') {
            let tokens =
                lexer::tokens(request.sql).map_err(|error| UpstreamReason::NotParsed(error.to_string().into()))?;
            for literal in tokens.iter().filter_map(|token| token.string_value()) {
                check_words(zones, &literal).await?;
            }
        }
        for parameter in parameters {
            if let Value::Text(text) = parameter {
                check_words(zones, text).await?;
            }
        }
        Ok(())
    }

    /// As of the catalog that the plan was made with; a change since then shows at the barrier.
    async fn check_privileges(&self, role: &str, prepared: &Prepared) -> Result<(), UpstreamReason> {
        let catalog = self.local.freshness.catalog();
        if catalog.version != prepared.catalog_version {
            return Err(UpstreamReason::CatalogChanged);
        }
        let uses = prepared.plan.tables.iter().chain(&prepared.plan.views);
        self.local.freshness.privileges().check(role, uses, &catalog).await
    }

    /// Parse without execution: its descriptions, once upstream has given the same.
    async fn describe(&self, request: &Request<'_>) -> Result<Reply, Relay> {
        let prepared = self.prepare(request).map_err(Relay::because)?;
        prepared.plan.tables.iter().for_each(|table| self.local.freshness.want_table(table.table));
        if !self.local.audit.is_described(&prepared.identity) {
            let mut relay = Relay::because(UpstreamReason::FirstRun);
            relay.observer = Some(Box::new(Oracle::of_description(&self.local, &prepared, request.settings)));
            return Err(relay);
        }
        if let Some(relay) = outdated(&self.local, request, &prepared) {
            return Err(relay);
        }
        self.check_privileges(request.settings.role(), &prepared).await.map_err(Relay::because)?;
        let relations = prepared.plan.relations();
        let served = self.local.freshness.acquire(request.mode, &relations, self.required).await;
        let served = served.map_err(Relay::because)?;
        if served.snapshot.catalog.version != prepared.catalog_version {
            return Err(Relay::because(UpstreamReason::CatalogChanged));
        }
        let (parameters, statement_columns) = describe_statement(&prepared.plan);
        Ok(Reply { parameters, statement_columns, ..Reply::default() })
    }

    /// Refused for what the statement's text alone decides, as the catalog is.
    fn refuse_text(&mut self, request: &Request<'_>, reason: UpstreamReason) -> Relay {
        let statistics = self.local.statistics.shape(&fingerprint::unbound(request.sql), request.settings.role());
        self.remember_refusal(request, &reason, &statistics);
        self.refuse(request, Some(&statistics), reason)
    }

    /// Refused for what the catalog says of the tables that the text names: no barrier has told whether that is still so.
    fn look_for_named(&self, sql: &str, reason: &UpstreamReason) {
        let is_of_tables = matches!(
            reason,
            UpstreamReason::UnknownColumn(_)
                | UpstreamReason::UnknownFunction(_)
                | UpstreamReason::UnsupportedType(_)
                | UpstreamReason::Collation(_)
        );
        let Some(tokens) = is_of_tables.then(|| lexer::tokens(sql).ok()).flatten() else { return };
        let catalog = self.local.freshness.catalog();
        let schemas = || catalog.schemas.iter().filter(|(schema, _)| ***schema != *"pg_catalog");
        let names = tokens.iter().filter_map(lexer::Token::name);
        let names = names.filter(|name| schemas().any(|(_, entries)| entries.contains_key(&**name)));
        names.for_each(|name| self.local.freshness.look_for_table(&name));
    }

    fn remember_refusal(&mut self, request: &Request<'_>, reason: &UpstreamReason, statistics: &Arc<ShapeStatistics>) {
        let by = DecidedBy { settings: request.settings.id, catalog_version: request.catalog_version };
        self.refusals.note(request.unit.sql, request.unit.parameter_types, by, reason, statistics);
    }

    /// A statement whose tables are known: they may be worth mirroring.
    fn refuse_prepared(
        &self,
        request: &Request<'_>,
        prepared: &Prepared,
        statistics: &Arc<ShapeStatistics>,
        reason: UpstreamReason,
    ) -> Relay {
        match &reason {
            UpstreamReason::TableNotMirrored(_) => {
                prepared.plan.tables.iter().for_each(|table| self.local.freshness.want_table(table.table));
            }
            // No barrier has told whether that is still so.
            UpstreamReason::Privilege(_) => {
                let catalog = self.local.freshness.catalog();
                let uses = prepared.plan.tables.iter().chain(&prepared.plan.views);
                let names = uses.filter_map(|table_use| catalog.described(table_use.table));
                names.for_each(|table| self.local.freshness.look_for_table(&table.name));
            }
            _ => {}
        }
        self.refuse(request, Some(statistics), reason)
    }

    fn refuse(
        &self,
        request: &Request<'_>,
        statistics: Option<&Arc<ShapeStatistics>>,
        reason: UpstreamReason,
    ) -> Relay {
        let statistics = match statistics {
            Some(known) => Arc::clone(known),
            None => self.local.statistics.shape(&fingerprint::unbound(request.sql), request.settings.role()),
        };
        statistics.set_reason(&reason);
        statistics.count(Answered::Relay, 0);
        if let UpstreamReason::UnknownRelation(name) = &reason {
            // "t is a table with row security": it may not be one any more.
            self.local.freshness.look_for_table(name.split(" is a ").next().unwrap_or(name));
        }
        Relay { shape: Some(statistics), ..Relay::because(reason) }
    }
}

/// A computation for a client. Given up after a long time (by the client, or its statement_timeout), it is as one that needed too much.
struct Attempt<'a> {
    local: &'a Local,
    prepared: &'a Prepared,
    /// Its client has waited since.
    started: Instant,
    began: Instant,
    is_over: bool,
}

/// What came to nothing sooner may be tried again each time.
const NOTABLE: Duration = Duration::from_millis(100);
/// Who gives up sooner (a client, its statement_timeout) says nothing of the statement.
const LONG: Duration = Duration::from_millis(250);

impl Attempt<'_> {
    fn end(mut self, error: Option<&UpstreamReason>) {
        self.is_over = true;
        if error.is_none() {
            self.local.audit.succeeded(&self.prepared.identity, self.began.elapsed());
        }
        // Where others had what it needed, it may have it the next time.
        if let Some(reason @ UpstreamReason::OverBudget(what)) = error
            && *what != POOL_IS_EMPTY
            && self.started.elapsed() >= NOTABLE
        {
            self.local.audit.failed(&self.prepared.identity, reason.clone());
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.started.elapsed() >= LONG {
            self.local.audit.failed(&self.prepared.identity, UpstreamReason::OverBudget("given up after a long time"));
        }
    }
}

/// The text as a zone's name, and each of its words: one may stand behind a time.
async fn check_words(zones: &ZoneData, text: &str) -> Result<(), UpstreamReason> {
    zones.check(text).await?;
    for word in text.split_ascii_whitespace().filter(|word| word.len() < text.len() && word.contains('/')) {
        zones.check(word).await?;
    }
    Ok(())
}

fn is_execution(unit: &Unit<'_>) -> bool {
    matches!(unit.form, Form::Simple | Form::Execute)
}

/// Whether the unit's statement was described under this version of the catalog and this search path, if it was prepared before.
fn is_described_by(unit: &Unit<'_>, catalog_version: u64, settings: &SessionSettings) -> bool {
    unit.prepared.is_none_or(|prepared| is_described(prepared, catalog_version, settings))
}

fn is_described(statement: &PreparedStatement, catalog_version: u64, settings: &SessionSettings) -> bool {
    statement.catalog.load(Relaxed) == catalog_version && statement.path.load(Relaxed) == settings.path
}

/// A statement that was prepared before is another one since: PostgreSQL says whether it still is what was described. One whose names
/// may mean something else there is relayed until it is prepared anew.
fn outdated(local: &Local, request: &Request<'_>, prepared: &Prepared) -> Option<Relay> {
    let statement = request.unit.prepared?;
    let (version, settings) = (prepared.catalog_version, request.settings);
    let keeps_types = keeps_types(statement, &prepared.plan);
    let is_described = keeps_types && is_described(statement, version, settings);
    if is_described && statement.meant.is_known() {
        return None;
    }
    let catalog = local.freshness.catalog();
    let names =
        (keeps_types && catalog.version == version).then(|| Names::of(&prepared.plan, &statement.sql, &catalog));
    if is_described {
        names.into_iter().for_each(|names| statement.meant.set(names));
        return None;
    }
    let mut relay = Relay::because(UpstreamReason::CatalogChanged);
    // Under another search path PostgreSQL analyses it anew.
    let before = statement.path.load(Relaxed);
    let has_moved = before != 0 && before != settings.path;
    let path = &settings.values.search_path;
    let is_same = |names: &Names| has_moved || statement.meant.is(names, path, &catalog);
    if let Some(names) = names.filter(is_same) {
        let seen = StillDescribed::new(statement, names, version, settings.path);
        relay.observer = Some(Box::new(seen));
    }
    Some(relay)
}

/// Whether the plan's parameters have the types that the statement's had first.
fn keeps_types(statement: &PreparedStatement, plan: &Plan) -> bool {
    let types = || plan.parameters.iter().map(|pg_type| pg_type.oid());
    statement.inferred.get_or_init(|| types().collect()).iter().copied().eq(types())
}

/// PostgreSQL folds literals when it parses: whether that happened under today's settings, as far as they matter. `folds_settings`: one
/// is of a type whose values are read by settings.
fn is_parsed_under(unit: &Unit<'_>, settings: &SessionSettings, folds_settings: bool) -> bool {
    unit.prepared.is_none_or(|prepared| is_read_by(prepared, settings, folds_settings))
}

fn is_read_by(statement: &PreparedStatement, settings: &SessionSettings, folds_settings: bool) -> bool {
    statement.settings.load(Relaxed) == settings.reading
        || !folds_settings && !*statement.hangs_on_settings.get_or_init(|| meaning_hangs_on_settings(&statement.sql))
}

pub(super) fn local_error(error: EvalError) -> UpstreamReason {
    match error {
        EvalError::Raises(what) | EvalError::Beyond(what) => UpstreamReason::LocalError(what.into()),
        EvalError::Unordered(_) => UpstreamReason::Collation("its order is not known".into()),
        EvalError::OverBudget(what) => UpstreamReason::OverBudget(what),
    }
}

/// What comes before the rows, and where they go.
fn early(to: &Arc<EarlyRows>, unit: &Unit<'_>, plan: &Plan, formats: &[Format]) -> Early {
    let mut head = Reply { columns: row_description(plan, formats), ..Reply::default() };
    if unit.describes_statement {
        (head.parameters, head.statement_columns) = describe_statement(plan);
    }
    Early { to: Arc::clone(to), head: Arc::new(head) }
}

/// The result format of each column.
fn formats(unit: &Unit<'_>, plan: &Plan) -> Vec<Format> {
    let asked = unit.bind.as_ref().map_or(&[][..], |bind| bind.result_formats);
    let format = |at| if format_at(asked, at) == 1 { Format::Binary } else { Format::Text };
    (0..plan.output.len()).map(format).collect()
}

/// Whether the session's own thread runs it.
fn is_quick(plan: &Plan, snapshot: &Snapshot, parameters: &[Value]) -> bool {
    rows_looked_at(plan, snapshot, parameters)
        <= if plan.tables.len() > 1 { INLINE_JOIN_ROWS_MAX } else { INLINE_ROWS_MAX }
}
