//! One client's session, after log-in: read a unit → look up → answer, or relay → write.
//!
//! [`run`] is the loop. [`machine`] is the protocol, without I/O; [`lines`] moves the bytes; [`answer`] is the boundary to
//! what may answer in upstream's stead; [`state`] and [`settings`] are what an answer may depend on; [`effect`] and
//! [`change`] judge what relayed statements do, [`tracker`] follows the session's settings ([`variables`]) and transaction
//! by it; [`intercept`] answers what is addressed to freshet itself.
//!
//! How a unit is decided (the API for answerers is [`answer::Answerer`]):
//!
//! 1. A *unit* is one Query, or extended messages up to Sync. It is held only while nothing is outstanding upstream; held
//!    messages go upstream after [`HOLD`] if the unit is not complete by then, or at once at a Flush.
//! 2. Outside a transaction block, or in a READ COMMITTED block that has neither written nor locked nor run anything
//!    unknown, and with certain settings (followed, or asked by a probe), the answerer is asked:
//!    [`Answerer::look_up`](answer::Answerer::look_up) without waiting, then [`Answerer::answer`](answer::Answerer::answer).
//! 3. `Outcome::Local(Reply)`: the session writes ParseComplete, BindComplete, the descriptions asked for, the rows and
//!    ReadyForQuery. After that nothing falls back.
//! 4. `Outcome::Relay(Relay)`: the unit's bytes go upstream unchanged; an observer, if given, gets the reply (as bytes,
//!    capped) before the client does.
//! 5. [`Answerer::write_acknowledged`](answer::Answerer::write_acknowledged) and
//!    [`Answerer::relayed`](answer::Answerer::relayed) are called before the client learns of the event.

pub mod answer;
pub mod buffer;
mod burst;
pub mod change;
pub mod control;
mod cursor;
pub mod effect;
mod events;
mod group;
pub mod intercept;
pub mod lines;
pub mod local;
pub mod machine;
pub mod meant;
mod oracle;
mod own;
mod preamble;
pub mod registry;
mod reply;
mod serving;
pub mod settings;
pub mod state;
pub mod tracker;
pub mod variables;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_engine::reason::UpstreamReason;
use prometheus_client::metrics::counter::Counter;
use tokio::task::JoinSet;
use tracing::debug;

use crate::error::Refusal;
use crate::freshness::seats::Seat;
use crate::metrics::{CauseLabel, DirectionLabel, Metrics, RouteLabel, RouteLabels};
use crate::session::answer::early::EarlyRows;
use crate::session::answer::{Account, Answerer, Form, Outcome, Relay, Reply, Unit, Unused};
use crate::session::effect::{Effect, worst};
use crate::session::lines::{Lines, Turn};
use crate::session::machine::group::is_several;
use crate::session::machine::local::view;
use crate::session::machine::{Machine, MachineLimits, Step};
use crate::session::registry::{Entry, Sessions};
use crate::session::serving::{Ended, Serving};
use crate::session::settings::{Interner, Question, TEMPORARY_TABLES};
use crate::session::state::{FirstQuery, Login, RouteSetting, SessionState};
use crate::shutdown::{Phase, Shutdown};
use crate::startup::authenticate::LoggedIn;
use crate::startup::cancel::{CancelGuard, CancelRegistry};
use crate::statistics::{Answered, ShapeStatistics};
use crate::wire::error::{ErrorFields, write_error};
use crate::wire::query::TransactionStatus;

/// Of a statement in a block that a question asked before it would have taken a snapshot for.
const NO_SNAPSHOT: UpstreamReason = UpstreamReason::NotAQuery("no query, while the session's settings are not known");

/// How long the beginning of a unit waits for its end. Drivers send a unit in one write; this bounds what a client that
/// does not must wait for an early error.
pub const HOLD: Duration = Duration::from_millis(5);

/// A session that is answered from here sends upstream a Sync as often as this: time-outs of idle sessions are longer.
const KEEP_ALIVE: Duration = Duration::from_millis(200);
/// How long a client that was sent away may take to notice before its line is cut.
const LEAVING: Duration = Duration::from_millis(200);
/// Probes for one unit: the catalog may change under the first.
const PROBES_MAX: u32 = 3;
/// So many more answers that waited for a moment than others, and a session moves to where moments come from.
const MOVES_AFTER: u32 = 256;
/// PostgreSQL's own limit for the statement has been reached here.
const OVER_TIME: UpstreamReason = UpstreamReason::OverBudget("statement_timeout");
/// A fault of freshet's after the first rows of a reply have been sent: they cannot be taken back.
const UNFINISHED: ErrorFields<'static> = ErrorFields::error("XX000", "freshet could not make the rest of this reply");
/// An error may pass, as one of memory does; not for ever.
const PROBE_FAILURES_MAX: u32 = 3;

/// What all sessions share.
pub struct SessionContext {
    pub metrics: Metrics,
    pub interner: Interner,
    pub sessions: Sessions,
    pub limits: MachineLimits,
    pub session_buffer_bytes: usize,
    pub freshness: FreshnessMode,
    /// Where a session registers the key that CancelRequests name it by ([`LoggedIn::backend_key`]).
    pub cancels: CancelRegistry,
}

/// Runs a session to its end.
pub async fn run<A: Answerer>(
    logged_in: LoggedIn,
    login: Login,
    answerer: A,
    context: Arc<SessionContext>,
    shutdown: Shutdown,
) {
    context.metrics.sessions.inc();
    context.metrics.sessions_total.inc();
    let opaque = login.is_replication.then_some("replication");
    let state = SessionState::new(login, context.freshness);
    let mut machine = Machine::new(state, context.limits, opaque);
    machine.receive_client(&logged_in.client_rest);
    let is_sound = machine.receive_upstream(&logged_in.upstream_rest);
    if opaque.is_none()
        && is_sound
        && context.limits.answers_locally
        && answerer.wants_settings()
        && machine.is_settled()
    {
        // Asked while the client makes up its first statement, so that this one need not wait for it.
        context.metrics.probes.inc();
        machine.state.catalog_version = answerer.catalog_version();
        machine.note_catalog(answerer.catalog());
        machine.probe();
    }
    let lines = Lines::new(logged_in.client, logged_in.upstream, context.session_buffer_bytes);
    let probed_version = machine.state.catalog_version;
    machine.state.configuration = answerer.configuration();
    let cancel = logged_in.backend_key.as_deref().map(|key| context.cancels.register(key));
    let mut session = Session {
        entry: context.sessions.enter(&machine.state),
        lines,
        machine,
        answerer,
        context,
        last: Last::default(),
        relaying: None,
        is_captured: false,
        upstream_used: Instant::now(),
        owes_use: false,
        cancel,
        relays: None,
        is_working: false,
        is_holding: false,
        failure: None,
        probe_failures: 0,
        may_ask_custom: true,
        probes: 0,
        probed_version,
        waits: 0,
        has_moved: false,
        early: None,
    };
    let ended = if is_sound { session.serve(shutdown.clone()).await } else { Ok(Departure::Over) };
    match ended {
        Ok(Departure::ToSeat(seat)) => session.go_on_at(seat, shutdown).await,
        ended => session.end(ended),
    }
}

/// Why a thread serves a session no longer.
enum Departure {
    Over,
    /// Another one is to.
    ToSeat(Seat),
}

/// A unit that upstream is answering.
struct Relaying {
    started: Instant,
    reason: UpstreamReason,
    shape: Option<Arc<ShapeStatistics>>,
}

/// What `SHOW freshet.last` tells.
#[derive(Clone, Debug, Default)]
pub struct Last {
    pub account: Account,
    pub reason: Option<UpstreamReason>,
    pub elapsed_us: u64,
}

struct Session<A> {
    /// In the list of sessions.
    entry: Entry,
    lines: Lines,
    machine: Machine,
    answerer: A,
    context: Arc<SessionContext>,
    last: Last,
    /// The unit that upstream is answering.
    relaying: Option<Relaying>,
    /// Its reply, as far as it has come, was kept.
    is_captured: bool,
    /// When upstream was last sent something, as far as local answers must know.
    upstream_used: Instant,
    /// The client has used the session since, and upstream is yet to hear of it.
    owes_use: bool,
    /// By which a CancelRequest finds the session; None where upstream gave no key.
    cancel: Option<CancelGuard>,
    /// The counter of relayed statements for the reason that was last seen.
    relays: Option<(&'static str, Counter)>,
    /// What the client waits for is done here: a CancelRequest is the session's.
    is_working: bool,
    /// Upstream carries out what the client has been answered: a CancelRequest waits.
    is_holding: bool,
    /// Upstream's error to something that freshet asked: the unit at hand fails with it, in a failed block the next one.
    failure: Option<Box<[u8]>>,
    /// Probes that upstream refused to answer, one after the other. At [`PROBE_FAILURES_MAX`] settings stay unknown until the
    /// session changes them.
    probe_failures: u32,
    /// Upstream has told each of an application's own settings that it was asked for.
    may_ask_custom: bool,
    /// Probes for the unit at hand.
    probes: u32,
    /// The catalog's version when the last probe was sent.
    probed_version: u64,
    /// Rises with each answer that waited for a moment, falls with each that upstream gave.
    waits: u32,
    /// It lives beside the barrier.
    has_moved: bool,
    /// For the first rows of the next reply; None: a new one.
    early: Option<Arc<EarlyRows>>,
}

impl<A: Answerer> Session<A> {
    async fn serve(&mut self, mut shutdown: Shutdown) -> io::Result<Departure> {
        let mut stopping = shutdown.clone();
        let mut drain = pin!(shutdown.reached(Phase::Draining));
        let mut stop = pin!(stopping.reached(Phase::Stopping));
        let mut is_draining = false;
        loop {
            self.note_events();
            let step = self.machine.advance();
            if is_draining && self.machine.is_between_statements() {
                self.say_good_bye().await;
                return Ok(Departure::Over);
            }
            if self.machine.take_use() {
                self.keep_alive(Instant::now());
            }
            if step == Step::Decide {
                if self.lines.is_full(&self.machine) {
                    // A burst of units whose client does not read the replies.
                    tokio::select! {
                        relieved = self.lines.relieve(&mut self.machine) => relieved?,
                        () = &mut stop => {
                            self.say_good_bye().await;
                            return Ok(Departure::Over);
                        }
                    }
                }
                self.decide().await?;
                self.note_work();
                continue;
            }
            if self.machine.state.status == TransactionStatus::Idle {
                // Nothing was waiting.
                self.failure = None;
            }
            self.note_work();
            if !is_draining && let Some(seat) = self.seat() {
                return Ok(Departure::ToSeat(seat));
            }
            self.entry.record.note_state(self.machine.state.status, self.relaying.is_some());
            self.answerer.end_burst();
            // A strict session's messages are decided upon as a whole.
            let may_release = step == Step::Held && !self.machine.state.is_strict();
            if may_release && self.release_long_group() {
                continue;
            }
            let pause = self.idle_pause();
            let turn = self.lines.turn(&mut self.machine);
            tokio::select! {
                biased;
                turn = turn => match turn? {
                    Turn::Received => {}
                    Turn::Over => {
                        self.note_end();
                        self.lines.finish(&mut self.machine).await;
                        return Ok(Departure::Over);
                    }
                    Turn::Broken => {
                        self.note_end();
                        self.machine.to_client.write(|out| write_error(out, &Refusal::UpstreamLost.fields()));
                        self.lines.finish(&mut self.machine).await;
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                },
                // Made only when it is polled: a timer for each turn would be felt.
                () = async { tokio::time::sleep(HOLD).await },
                    if may_release => self.machine.release(),
                () = async { tokio::time::sleep(pause.unwrap_or(KEEP_ALIVE)).await }, if pause.is_some() => {
                    self.keep_alive(Instant::now());
                }
                () = &mut drain, if !is_draining => is_draining = true,
                () = &mut stop, if is_draining => {
                    self.say_good_bye().await;
                    return Ok(Departure::Over);
                }
            }
        }
    }

    /// A place beside the barrier, once the session is found to wait for it all the time.
    fn seat(&mut self) -> Option<Seat> {
        if self.waits < MOVES_AFTER || self.has_moved || !self.lines.can_move() || !self.machine.is_settled() {
            return None;
        }
        self.waits = 0;
        let seat = self.answerer.seat()?;
        self.has_moved = true;
        Some(seat)
    }

    /// Goes on there; the task here lasts as long, for whoever waits for the session's end.
    async fn go_on_at(mut self, seat: Seat, shutdown: Shutdown) {
        let event_loop = seat.event_loop().clone();
        let mut rest = JoinSet::new();
        let served = async move {
            let _seat = seat;
            match self.lines.adopt() {
                Ok(lines) => {
                    self.lines = lines;
                    let ended = self.serve(shutdown).await;
                    self.end(ended);
                }
                Err(error) => {
                    debug!(%error, "a session could not be moved");
                    self.context.metrics.sessions.dec();
                }
            }
        };
        rest.spawn_on(served, &event_loop);
        rest.join_next().await;
    }

    /// The complete unit at hand: answered from here, or upstream.
    async fn decide(&mut self) -> io::Result<()> {
        let started = Instant::now();
        // ROLLBACK never fails.
        if let Some(error) = self.failure.take().filter(|_| !self.machine.rolls_back()) {
            self.machine.fail_unread(&error);
            return self.account_here(started);
        }
        if self.is_working && self.cancel.as_ref().is_some_and(CancelGuard::is_cancelled) {
            self.machine.cancel_unread();
            return self.account_here(started);
        }
        self.refresh_settings();
        if self.answer_known(started) {
            return Ok(());
        }
        if let Some(awaited) = self.awaited() {
            match self.meet(&awaited).await? {
                Ended::Done(Ok(())) => {
                    // The wait may have shown another configuration or catalog.
                    self.refresh_settings();
                    if self.answer_known(started) {
                        return Ok(());
                    }
                }
                Ended::Done(Err(relay)) => return self.relay(started, relay),
                Ended::OverTime => return self.relay(started, Relay::because(OVER_TIME)),
                Ended::Cancelled => return self.cancel(started),
            }
        }
        if self.must_show_query() {
            self.ask_upstream(Question::Time);
            return Ok(());
        }
        let Ok(unit) = self.machine.unit() else {
            if self.machine.answer_leading_closes() {
                return Ok(());
            }
            return self.decide_group(started).await;
        };
        // Several in one string are a group.
        if let Some(request) = intercept::read_if_addressed(unit.sql, self.context.limits.schema)
            && !(unit.form == Form::Simple && is_several(unit.sql))
        {
            return self.answer_for_freshet(request).await;
        }
        // Before the text is even looked at: sessions that only relay, and hits, since only harmless queries have a kept
        // reply.
        let state = &self.machine.state;
        // A cursor may live here since before the SET.
        if state.route == RouteSetting::Relay && !state.is_strict() && !cursor::is_mentioned(unit.sql) {
            let unused = self.answerer.in_the_way(unit.sql, state.is_in_transaction());
            if !self.make_way(unused).await? {
                return self.cancel(started);
            }
            return self.relay(started, Relay::because(UpstreamReason::RouteSetting));
        }
        // Nor what was just refused. A strict session's refusal also depends on the text.
        if !state.is_strict()
            && let Some(relay) = self.answerer.refusal(&unit, state, started)
        {
            return self.relay(started, relay);
        }
        if state.route == RouteSetting::Auto
            && self.may_answer()
            && !unit.is_plain_write()
            && let Some(reply) = self.answerer.look_up(&unit, state)
        {
            return self.reply(started, &reply);
        }
        let is_several = unit.form == Form::Simple && (is_several(unit.sql) || cursor::is_mentioned(unit.sql));
        if is_several || unit.form == Form::Prepare || control::read(unit.sql).is_some() {
            return self.decide_group(started).await;
        }
        let effect =
            unit.prepared.map_or_else(|| worst(&self.machine.judge(unit.sql).effects), |prepared| prepared.effect);
        match effect {
            Effect::Neutral => self.answerer.note_query(unit.sql),
            Effect::Opaque => {
                let state = &self.machine.state;
                if let Some(unused) = self.answerer.in_the_way(unit.sql, state.is_in_transaction()) {
                    let obstacle = self.obstacle(effect, unit.sql, state);
                    let reason = obstacle.unwrap_or(UpstreamReason::NotAQuery("a definition"));
                    if !self.must_refuse(effect, &reason) && !self.make_way(Some(unused)).await? {
                        return self.cancel(started);
                    }
                    return self.relay_unless_strict(started, effect, Relay::because(reason));
                }
            }
            _ => {}
        }
        if let Some(reason) = self.obstacle(effect, unit.sql, &self.machine.state) {
            return self.relay_unless_strict(started, effect, Relay::because(reason));
        }
        if preamble::asks_for_life(unit.sql) {
            return self.relay(started, Relay::because(UpstreamReason::NotAQuery("a sign of life")));
        }
        if self.machine.state.settings.is_none() {
            if self.machine.state.is_in_transaction() && !effect::takes_snapshot(unit.sql) {
                return self.relay_unless_strict(started, effect, Relay::because(NO_SNAPSHOT));
            }
            self.probe();
            return Ok(());
        }
        if let Some(reply) = preamble::answer(&unit, &self.machine.state) {
            return self.reply(started, &reply);
        }
        if let Some(relay) = self.answerer.refusal(&unit, &self.machine.state, started) {
            return self.relay_unless_strict(started, effect, relay);
        }
        self.answer_or_relay(started, effect).await
    }

    /// Decides about a statement that nothing keeps from being answered here.
    async fn answer_or_relay(&mut self, started: Instant, effect: Effect) -> io::Result<()> {
        match self.answer().await? {
            Some(Outcome::Local(reply)) => self.reply(started, &reply),
            Some(Outcome::Relay(_)) if self.machine.has_begun_answer() => {
                self.machine.fail_locally(&UNFINISHED);
                self.account_here(started)
            }
            Some(Outcome::Relay(relay)) => match self.worth_asking(&relay) {
                Some(question) => {
                    self.ask_upstream(question);
                    Ok(())
                }
                None => self.relay_unless_strict(started, effect, relay),
            },
            None => self.cancel(started),
        }
    }

    /// What upstream can be asked so that the statement may be answered here after all.
    fn worth_asking(&self, relay: &Relay) -> Option<Question> {
        let state = &self.machine.state;
        if !self.may_ask() || state.is_in_transaction() && !self.machine.may_probe_inside() {
            return None;
        }
        match &relay.reason {
            // For a catalog or a configuration that has been replaced meanwhile: with the new one it may be answered.
            UpstreamReason::CatalogChanged => {
                let is_outdated = self.answerer.catalog_version() != state.catalog_version
                    || self.answerer.configuration() != state.configuration;
                is_outdated.then_some(Question::Settings)
            }
            // Only the block's now() is missing: once for all of the block.
            reason if local::lacks_time(reason) => {
                let has_none = state.status == TransactionStatus::InTransaction && state.transaction.time.is_none();
                has_none.then_some(Question::Time)
            }
            UpstreamReason::CustomSettings(names) if self.may_ask_custom => {
                Some(Question::Custom(names.split(", ").map(Arc::from).collect()))
            }
            _ => None,
        }
    }

    /// Brings the settings up to date with what was followed, and with upstream's configuration and catalog.
    fn refresh_settings(&mut self) {
        self.answerer.refresh();
        let (configuration, version) = (self.answerer.configuration(), self.answerer.catalog_version());
        if version != self.machine.state.catalog_version {
            self.machine.note_catalog(self.answerer.catalog());
        }
        let Machine { state, tracker, .. } = &mut self.machine;
        if configuration != state.configuration {
            state.configuration = configuration;
            tracker.forget_defaults();
            state.settings = None;
        }
        if version != state.catalog_version {
            state.catalog_version = version;
            tracker.forget_roles();
            state.settings = None;
        }
        if state.settings.is_none() {
            state.settings = tracker.settings(&self.context.interner, version);
            state.listens = tracker.listens();
        }
    }

    /// The unit at hand may set the transaction's modes after a query that upstream knows nothing of, and must fail as it would
    /// after one. A short time limit may cut the question off: then it fails by that.
    fn must_show_query(&self) -> bool {
        let state = &self.machine.state;
        state.transaction.first_query == FirstQuery::Here
            && state.status == TransactionStatus::InTransaction
            && self.may_ask()
            && self.machine.unit_texts().into_iter().any(effect::sets_transaction)
    }

    /// A probe may tell settings that are not known.
    fn may_ask(&self) -> bool {
        self.probe_failures < PROBE_FAILURES_MAX && self.probes < PROBES_MAX
    }

    fn probe(&mut self) {
        self.ask_upstream(Question::Settings);
    }

    fn ask_upstream(&mut self, question: Question) {
        if question == Question::Settings {
            self.refresh_settings();
            self.probed_version = self.machine.state.catalog_version;
        }
        self.context.metrics.probes.inc();
        self.probes += 1;
        self.machine.ask(question);
    }

    /// Whether the session's state, as far as it is known, allows a local answer.
    fn may_answer(&self) -> bool {
        self.may_answer_in(&self.machine.state)
    }

    fn may_answer_in(&self, state: &SessionState) -> bool {
        self.machine.answers_locally()
            && !state.listens
            && state.settings.as_ref().is_some_and(|settings| settings.format.is_ok())
            && state.started_at.is_some_and(|started_at| self.answerer.is_at_server(started_at))
            && match state.status {
                TransactionStatus::Idle => true,
                TransactionStatus::InTransaction => state.transaction.allows_answers(),
                TransactionStatus::Failed => false,
            }
    }

    /// Why the unit cannot even be offered, if so. None with uncertain settings: a probe will tell.
    fn obstacle(&self, effect: Effect, sql: &[u8], state: &SessionState) -> Option<UpstreamReason> {
        if !self.machine.answers_locally() {
            return Some(UpstreamReason::RelayOnly("mirroring is off".into()));
        }
        if state.route == RouteSetting::Relay {
            return Some(UpstreamReason::RouteSetting);
        }
        if !self.answerer.wants_settings() {
            return Some(UpstreamReason::OtherDatabase);
        }
        if state.listens {
            return Some(UpstreamReason::OpaqueSession("it listens for notifications".into()));
        }
        let is_certain = state.settings.is_some() || state.is_in_transaction() || !self.may_ask();
        match effect {
            // The block that begins can be served only if its isolation level is known, and RESET is followed only if what
            // it goes back to is: better asked before.
            Effect::Begin(_) | Effect::Settings if !is_certain => return None,
            Effect::Begin(_) | Effect::SetIsolation(_) | Effect::End | Effect::Chain => {
                return Some(UpstreamReason::NotAQuery("transaction control"));
            }
            Effect::Write => return Some(UpstreamReason::NotAQuery("a write or a lock")),
            Effect::Settings => return Some(UpstreamReason::NotAQuery("SET")),
            Effect::Discard | Effect::Deallocate => return Some(UpstreamReason::NotAQuery("DISCARD or DEALLOCATE")),
            // Nothing to gain from a probe before something that makes the settings uncertain again, unless it is answered here, or only
            // the settings tell how it is read.
            Effect::Opaque
                if !is_certain
                    && !self.machine.tracker.may_come_to_trust(sql)
                    && !effect::called(sql).is_some_and(|name| self.answerer.knows(&name)) =>
            {
                return Some(UpstreamReason::OpaqueSession("settings are not known".into()));
            }
            Effect::Neutral | Effect::Opaque => {}
        }
        match state.status {
            TransactionStatus::Failed => return Some(UpstreamReason::FailedTransaction),
            TransactionStatus::InTransaction => {
                if state.transaction.is_tainted {
                    return Some(match self.machine.tracker.opaque() {
                        Some(why) if state.settings.is_none() => UpstreamReason::OpaqueSession(why.to_string().into()),
                        Some(_) | None => UpstreamReason::TransactionWrote,
                    });
                }
                if !state.transaction.isolation.is_some_and(|isolation| isolation.is_per_statement()) {
                    return Some(UpstreamReason::IsolationLevel);
                }
                if state.settings.is_none() && !self.machine.may_probe_inside() {
                    return Some(UpstreamReason::OpaqueSession("settings changed in this transaction".into()));
                }
            }
            TransactionStatus::Idle => {}
        }
        if state.started_at.is_some_and(|started_at| !self.answerer.is_at_server(started_at)) {
            return Some(UpstreamReason::OtherServer);
        }
        match &state.settings {
            Some(settings) => match &settings.format {
                Ok(_) => None,
                Err(setting) => Some(unreproduced(setting)),
            },
            None if !self.may_ask() => Some(UpstreamReason::OpaqueSession("upstream did not tell its settings".into())),
            None => None,
        }
    }

    /// Asks the answerer about the unit at hand. None: the client's cancel request came first.
    async fn answer(&mut self) -> io::Result<Option<Outcome>> {
        let bytes = self.machine.unit_bytes().to_vec();
        let prepared = self.machine.unit().ok().and_then(|unit| unit.prepared.cloned());
        let Ok(unit) = view(&bytes, |_| prepared.as_ref()) else {
            return Ok(Some(Outcome::Relay(Relay::because(UpstreamReason::UnitForm("unknown")))));
        };
        let unit = Unit { arrival: Some(self.machine.arrival()), ..unit };
        let state = self.machine.state.clone();
        let early = self.early.take().unwrap_or_default();
        let outcome = self.ask(&unit, &state, Some(&early)).await?;
        // Rows that were not taken yet, or come from a thread that nobody waits for any more, are not the next reply's.
        self.early = Some(early).filter(EarlyRows::is_unused);
        Ok(outcome)
    }

    /// Asks the answerer, while both lines are served. None: the client's cancel request came first.
    async fn ask(
        &mut self,
        unit: &Unit<'_>,
        state: &SessionState,
        early: Option<&Arc<EarlyRows>>,
    ) -> io::Result<Option<Outcome>> {
        self.begin_work();
        // Upstream would end the statement there with an error; it is given the chance.
        let limit = self.machine.tracker.statement_timeout();
        // Where it stays: it is large.
        let answer = pin!(self.answerer.answer(unit, state, early));
        let serving = Serving { lines: &mut self.lines, machine: &mut self.machine, cancel: self.cancel.as_ref() };
        match serving.during(answer, limit, early.map(|early| &**early)).await? {
            Ended::Done(outcome) => Ok(Some(outcome)),
            Ended::OverTime => Ok(Some(Outcome::Relay(Relay::because(OVER_TIME)))),
            Ended::Cancelled => Ok(None),
        }
    }

    /// Gives back to upstream what the statement at hand wants unused, while both lines are served. False: the client's cancel
    /// request came first.
    async fn make_way(&mut self, unused: Option<Unused>) -> io::Result<bool> {
        let Some(unused) = unused else { return Ok(true) };
        self.begin_work();
        let way = self.answerer.make_way(&unused);
        let serving = Serving { lines: &mut self.lines, machine: &mut self.machine, cancel: self.cancel.as_ref() };
        Ok(matches!(serving.during(way, None, None).await?, Ended::Done(())))
    }

    /// Upstream hears nothing of local answers; a session that its client uses must not look idle to it
    /// (PostgreSQL: idle_session_timeout, idle_in_transaction_session_timeout).
    fn keep_alive(&mut self, now: Instant) {
        self.owes_use = false;
        let Some(pause) = self.machine.tracker.idle_pause(KEEP_ALIVE) else { return };
        if now.duration_since(self.upstream_used) > pause {
            self.upstream_used = now;
            self.machine.keep_alive();
        } else {
            // Not for each of many answers, but some time: its clock has to start after the last one.
            self.owes_use = true;
        }
    }

    /// When upstream has to be shown, without anything else happening, that the session is no idle one. None: never.
    fn idle_pause(&self) -> Option<Duration> {
        let is_due = self.owes_use || self.machine.looks_idle_wrongly();
        if is_due { self.machine.tracker.idle_pause(KEEP_ALIVE) } else { None }
    }

    fn begin_work(&mut self) {
        if let Some(cancel) = &self.cancel {
            cancel.begin();
            self.is_working = true;
        }
    }

    /// A statement may be answered before upstream has seen it; not while a CancelRequest is on its way there.
    fn may_answer_beforehand(&mut self) -> bool {
        let Some(cancel) = &self.cancel else { return true };
        cancel.hold();
        self.is_holding = true;
        !cancel.is_passing()
    }

    /// Between two decisions a unit may be waiting for the probe; anything else is upstream's.
    fn note_work(&mut self) {
        if self.machine.is_probing() && self.machine.held_bytes() > 0 {
            self.begin_work();
        } else if std::mem::take(&mut self.is_working)
            && let Some(cancel) = &self.cancel
        {
            if self.machine.is_settled() { cancel.end() } else { cancel.hand_over() }
        }
        if self.is_holding != self.machine.has_quiet()
            && let Some(cancel) = &self.cancel
        {
            self.is_holding = self.machine.has_quiet();
            if self.is_holding { cancel.hold() } else { cancel.release() }
        }
    }

    /// The client asked for it, through a connection of its own.
    fn cancel(&mut self, started: Instant) -> io::Result<()> {
        self.machine.cancel_locally();
        self.account_here(started)
    }

    /// The unit ended here, without rows.
    fn account_here(&mut self, started: Instant) -> io::Result<()> {
        self.account(started, Account { route: Answered::Local, ..Account::default() }, None);
        Ok(())
    }

    fn reply(&mut self, started: Instant, reply: &Reply) -> io::Result<()> {
        self.machine.answer_locally(reply);
        self.keep_alive(started);
        self.account(started, reply.account.clone(), None);
        Ok(())
    }

    fn relay(&mut self, started: Instant, relay: Relay) -> io::Result<()> {
        self.relaying = Some(Relaying { started, reason: relay.reason, shape: relay.shape });
        self.is_captured = false;
        self.upstream_used = started;
        self.machine.relay_unit(relay.observer);
        Ok(())
    }

    /// Who pipelines thousands of executions of what is not answered here need not have them all held until the last has come.
    fn release_long_group(&mut self) -> bool {
        let state = &self.machine.state;
        let Some(unit) = self.machine.long_group() else { return false };
        let reason = match state.route {
            RouteSetting::Relay => Some(UpstreamReason::RouteSetting),
            _ => self.answerer.late_refusal(&unit, state),
        };
        let Some(reason) = reason.filter(|_| !self.machine.holds_own()) else { return false };
        let started = Instant::now();
        self.relaying = Some(Relaying { started, reason, shape: None });
        (self.is_captured, self.upstream_used) = (false, started);
        self.machine.release();
        true
    }

    fn account(&mut self, started: Instant, account: Account, reason: Option<UpstreamReason>) {
        self.probes = 0;
        self.note_wait(account.route);
        let elapsed = started.elapsed();
        let metrics = &self.context.metrics;
        match (account.route, &reason) {
            (Answered::Hit, _) => metrics.count_hit(elapsed),
            (Answered::Relay, Some(reason)) => {
                let label = reason.label();
                // Counters found by label are behind a lock and a hash; most statements of a session go one way.
                if self.relays.as_ref().is_none_or(|(known, _)| *known != label) {
                    let labels = RouteLabels { route: Answered::Relay.name(), reason: label };
                    self.relays = Some((label, metrics.statements.get_or_create_owned(&labels)));
                }
                if let Some((_, counter)) = &self.relays {
                    metrics.count_relay(counter, elapsed);
                }
            }
            (route, reason) => {
                let label = reason.as_ref().map_or("", UpstreamReason::label);
                metrics.statements.get_or_create(&RouteLabels { route: route.name(), reason: label }).inc();
                metrics.count_route(route);
                let labels = RouteLabel { route: route.name() };
                metrics.statement_seconds.get_or_create(&labels).observe(elapsed.as_secs_f64());
            }
        }
        self.entry.record.note_answer(account.route, reason.as_ref());
        let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        self.last = Last { account, reason, elapsed_us };
    }

    /// An answer that was made here in exact mode: one that waited for a moment, or the beginning or end of a block around such.
    fn note_wait(&mut self, route: Answered) {
        self.waits = match route {
            Answered::Hit | Answered::Local if self.machine.state.freshness == FreshnessMode::Exact => {
                self.waits.saturating_add(1)
            }
            Answered::Hit | Answered::Local | Answered::Capture | Answered::Relay => self.waits.saturating_sub(1),
        };
    }

    async fn say_good_bye(&mut self) {
        self.machine.to_client.write(|out| write_error(out, &Refusal::ShuttingDown.fields()));
        self.lines.finish(&mut self.machine).await;
        // With something of the client's unread, closing would take the error away from it.
        let _ = tokio::time::timeout(LEAVING, self.lines.ignore_client()).await;
    }

    fn end(mut self, ended: io::Result<Departure>) {
        self.note_end();
        if let Err(error) = ended {
            debug!(client = %self.machine.state.login.client, %error, "session ended");
        }
        self.close();
    }

    fn close(self) {
        let metrics = &self.context.metrics;
        metrics.sessions.dec();
        for (direction, bytes) in
            [("from_client", self.lines.bytes_from_client), ("from_upstream", self.lines.bytes_from_upstream)]
        {
            metrics.session_bytes.get_or_create(&DirectionLabel { direction }).inc_by(bytes);
        }
        if let Some(cause) = self.machine.lost() {
            metrics.lost_sessions.get_or_create(&CauseLabel { cause }).inc();
        }
    }
}

/// Why a session is relayed whose settings are known.
fn unreproduced(setting: &str) -> UpstreamReason {
    if setting == TEMPORARY_TABLES {
        return UpstreamReason::OpaqueSession(TEMPORARY_TABLES.into());
    }
    UpstreamReason::SessionSetting(setting.to_string().into())
}
