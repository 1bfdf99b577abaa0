//! The barrier: one upstream statement, shared by all readers that wait at that moment, says which transactions are
//! visible and how far the log goes; when the mirror has applied that much, they read exactly what was visible.
//!
//! One statement is in flight, one group collects. A reader may only join a barrier that is not sent yet: its statement
//! then starts after the reader did. While the walsender has not delivered the end of the log (an asynchronous commit,
//! an open transaction), a nudge makes upstream flush it. Past its budget a reader is relayed, which is always exact.

mod connections;
mod doubt;
mod pace;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use freshet_config::FreshnessMode;
use freshet_engine::catalog::RelationId;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::snapshot::{Snapshot, Unions, VisibilitySnapshot};
use freshet_engine::types::Lsn;
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::{Mutex, Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::freshness::barrier::connections::{connect, run_nudges};
use crate::freshness::barrier::doubt::Doubt;
use crate::freshness::barrier::pace::BACKGROUND_PAUSE_MIN;
use crate::freshness::exposure::{BarrierNumber, Exposed, Exposure, Heed};
use crate::freshness::fingerprint::{Expected, Files, LogGeometry, Moment, Parameters};
use crate::freshness::patience::Alarm;
use crate::freshness::{FreshnessOptions, Served};
use crate::replication::applied::Attention;
use crate::replication::catalog::LoadedCatalog;
use crate::replication::status::Running;
use crate::replication::supervise::Replication;
use crate::replication::uptime::Uptime;
use crate::upstream::connection::{Connection, Frame, Row, parse_row};
use crate::upstream::{ServerError, UpstreamError};

/// A full barrier over all mirrored tables happens at least this often: it bounds how long session mode does not notice
/// a change of the catalog, and how long an application's writes can suffer from a table that lost its identity.
const HEARTBEAT: Duration = Duration::from_millis(400);
/// But it takes no more of an upstream processor than one part of so many, with thousands of tables.
const HEARTBEAT_SHARE: u32 = 8;
const HEARTBEAT_MAX: Duration = Duration::from_secs(5);
/// Session readers seen within this time let received transactions be exposed at once, not at the next heartbeat.
const READERS_RECENT: Duration = Duration::from_secs(1);
/// A statement that is not answered by then means that the connection is lost.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// A snapshot that was found another this much more often than not is not asked for.
const CHANGES_MAX: u32 = 2;
/// For so long after a change of a table the next one is expected.
const CHANGED_LATELY: Duration = Duration::from_secs(1);
/// Moments kept while their part of the log has not arrived.
const LANDED_MAX: usize = 64;

/// A session that waits for a moment.
pub(super) struct Reader {
    pub mode: FreshnessMode,
    pub relations: Vec<RelationId>,
    pub arrived: Instant,
    /// For so long it waits.
    pub patience: Duration,
    pub is_second_try: bool,
    pub reply: oneshot::Sender<Result<Served, UpstreamReason>>,
}

impl Reader {
    fn answer(self, answer: Result<Served, UpstreamReason>) {
        // A session that went away does not want it any more.
        let _ = self.reply.send(answer);
    }
}

/// Counters, for metrics.
#[derive(Debug)]
pub struct BarrierCounters {
    pub barriers: AtomicU64,
    /// Those that compared the catalog's digests.
    pub full_barriers: AtomicU64,
    pub nudges: AtomicU64,
    /// Readers relayed because the wait took too long.
    pub over_budget: AtomicU64,
    /// Readers relayed because what was visible was twice no prefix of what was applied.
    pub not_a_prefix: AtomicU64,
    /// Times the catalog in use was found not to be in force.
    pub catalog_changes: AtomicU64,
    /// How long readers waited.
    pub wait_seconds: Histogram,
    /// Round trip of the last statement.
    pub round_trip_us: AtomicU64,
    /// End of upstream's log at the last barrier.
    pub insert_lsn: AtomicU64,
    /// Changes of upstream's configuration seen.
    pub configurations: AtomicU64,
}

impl BarrierCounters {
    pub fn new(wait_seconds: Histogram) -> Self {
        Self {
            barriers: AtomicU64::default(),
            full_barriers: AtomicU64::default(),
            nudges: AtomicU64::default(),
            over_budget: AtomicU64::default(),
            not_a_prefix: AtomicU64::default(),
            catalog_changes: AtomicU64::default(),
            wait_seconds,
            round_trip_us: AtomicU64::default(),
            insert_lsn: AtomicU64::default(),
            configurations: AtomicU64::default(),
        }
    }
}

/// What sessions and the barrier task share.
pub(super) struct Shared {
    pub replication: Replication,
    pub options: FreshnessOptions,
    pub exposure: Exposure,
    pub unions: Unions,
    pub counters: BarrierCounters,
    /// The barrier connection stands.
    pub is_up: AtomicBool,
    /// How long a reader has waited in vain for what is still to come, in microseconds: who comes now and is not more patient would, too,
    /// and be relayed later than at once.
    pub behind_us: AtomicU64,
    /// Of [`Replication::announcements`], those that readers wait for a barrier for.
    pub heeded: AtomicU64,
}

impl Shared {
    /// See [`Self::behind_us`].
    pub(super) fn behind(&self) -> Duration {
        Duration::from_micros(self.behind_us.load(Ordering::Relaxed))
    }

    /// Without a barrier nobody is served, in no mode.
    pub(super) fn stop_serving(&self) {
        self.is_up.store(false, Ordering::SeqCst);
        self.behind_us.store(0, Ordering::Relaxed);
        self.exposure.clear();
        self.unions.clear();
    }
}

/// Runs until `shutdown`: connects whenever the stream runs, fails everyone who waits when either is lost.
pub(super) async fn run(
    shared: Arc<Shared>,
    readers: Arc<Mutex<mpsc::UnboundedReceiver<Reader>>>,
    shutdown: CancellationToken,
) {
    let mut readers = readers.lock().await;
    let mut told = String::new();
    while !shutdown.is_cancelled() {
        let ended = tokio::select! {
            ended = live(&shared, &mut readers, &mut told) => ended,
            () = shutdown.cancelled() => UpstreamReason::MirrorBehind("shutting down".into()),
        };
        shared.stop_serving();
        while let Ok(reader) = readers.try_recv() {
            reader.answer(Err(ended.clone()));
        }
        tracing::debug!(reason = %ended, "no barrier");
        tokio::select! {
            () = sleep(Duration::from_millis(50)) => {}
            () = shutdown.cancelled() => {}
        }
    }
}

/// One life of the barrier connection, within one life of the stream.
/// `told`: what the log has of connections that could not be opened since one could.
async fn live(
    shared: &Arc<Shared>,
    readers: &mut mpsc::UnboundedReceiver<Reader>,
    told: &mut String,
) -> UpstreamReason {
    let running = match shared.replication.running() {
        Ok(running) => running,
        Err(reason) => return reason,
    };
    let lost = |error: UpstreamError| UpstreamReason::MirrorBehind(format!("the barrier connection: {error}").into());
    let connected = timeout(shared.replication.address().connect_timeout + ANSWER_MAX, connect(shared, &running)).await;
    let connection = match connected.unwrap_or(Err(UpstreamError::Timeout("the barrier's connection"))) {
        Ok(connected) => connected,
        Err(error) => {
            let what = error.to_string();
            if what != *told {
                tracing::warn!(%error, "the barrier connection could not be opened");
                *told = what;
            }
            sleep(Duration::from_millis(500)).await;
            return lost(error);
        }
    };
    told.clear();
    let nudge = Arc::new(Notify::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(run_nudges(Arc::clone(shared), Arc::clone(&nudge)));
    let (connection, geometry) = connection;
    let mut barrier = Barrier {
        applied: shared.replication.applied(),
        shared: Arc::clone(shared),
        running,
        connection,
        geometry,
        nudge,
        collecting: Vec::new(),
        flight: None,
        landed: VecDeque::new(),
        heartbeat: Instant::now(),
        full_took: Duration::ZERO,
        least_took: Duration::MAX,
        last_sent: Instant::now(),
        session_read_at: None,
        exposed_transactions: 0,
        configured_at: None,
        not_before: Instant::now(),
        nudges_needed: 0,
        found: None,
        changes: 0,
        is_suspect: true,
        doubt: None,
        verified: Vec::new(),
        has_unverified: false,
        publication: None,
        changed: HashMap::new(),
        alarm: Alarm::new(),
    };
    shared.is_up.store(true, Ordering::SeqCst);
    let ended = barrier.serve(readers).await;
    shared.stop_serving();
    barrier.fail_all(&ended);
    ended
}

/// The state of one life.
struct Barrier {
    shared: Arc<Shared>,
    running: Arc<Running>,
    connection: Connection,
    geometry: LogGeometry,
    applied: watch::Receiver<Lsn>,
    nudge: Arc<Notify>,
    /// Readers of the next statement.
    collecting: Vec<Reader>,
    flight: Option<Flight>,
    /// Answered statements whose part of the log has not been applied yet, oldest first.
    landed: VecDeque<Landed>,
    /// When the next full barrier over everything is due.
    heartbeat: Instant,
    /// What the last one took.
    full_took: Duration,
    /// What any has taken at least.
    least_took: Duration,
    last_sent: Instant,
    session_read_at: Option<Instant>,
    /// The count of applied transactions at the last exposure.
    exposed_transactions: u64,
    /// When upstream's configuration was loaded that the last moment saw.
    configured_at: Option<i64>,
    /// No statement is sent before.
    not_before: Instant,
    /// Rises with each moment that needed a nudge, falls with each that did not.
    nudges_needed: u32,
    found: Option<Found>,
    /// Rises with each snapshot that is another than the last found, falls with each that is not.
    changes: u32,
    /// The catalog in use has not been found in force yet (again): only full barriers count.
    is_suspect: bool,
    /// What is known of why it is not, until it has been read again.
    doubt: Option<Doubt>,
    /// The relations that the last full barrier over everything has looked at, ascending, but for those that were described since. One
    /// that was copied since may mean something else by now: what was acknowledged meanwhile counts as verified without it.
    verified: Vec<RelationId>,
    /// There is one that would be exposed but for that.
    has_unverified: bool,
    /// [`Moment::publication`] when everything was found as expected last; None: it is another since.
    publication: Option<i64>,
    /// Tables that have changed of late, and when that was seen: whatever shows another change of them looks at their files.
    changed: HashMap<RelationId, Instant>,
    /// Wakes it when something is due.
    alarm: Alarm,
}

/// The last digests found, all as expected.
struct Found {
    known: Known,
    /// With the membership that each was expected to have.
    relations: BTreeMap<RelationId, i64>,
    catalog: Arc<LoadedCatalog>,
}

/// What was found at a moment holds at every other with the same snapshot.
#[derive(Clone)]
struct Known {
    visible: VisibilitySnapshot,
    /// [`Moment::publication`].
    publication: Option<i64>,
}

/// A statement that is not answered yet.
struct Flight {
    number: BarrierNumber,
    sent_at: Instant,
    /// Likewise, for how old the moment is.
    as_of: Uptime,
    readers: Vec<Reader>,
    catalog: Arc<LoadedCatalog>,
    /// What the digests must be. None: they are not wanted, or what is `known` says so.
    expected: Option<Expected>,
    /// The moment counts only if its snapshot is this one.
    known: Option<Known>,
    /// What a full barrier covers, ascending.
    relations: Vec<RelationId>,
    /// Tables that are as the catalog has them if the flight ends well. Not told of a complete one, which covers all.
    checked: BTreeSet<RelationId>,
    /// It looks at what every relation is called.
    checks_all: bool,
    /// It covers every mirrored table.
    is_complete: bool,
    /// It tells no moment, but which of `relations` are not as the catalog has them.
    asks_which: bool,
    /// When a reader of it had waited in vain last, and how long the most patient one.
    expired: Option<(Instant, Duration)>,
    row: Option<Row>,
    error: Option<ServerError>,
}

/// An answered statement.
struct Landed {
    flight: Flight,
    moment: Moment,
    /// What the mirror must have applied.
    target: Lsn,
    landed_at: Instant,
    was_nudged: bool,
}

impl Barrier {
    async fn serve(&mut self, readers: &mut mpsc::UnboundedReceiver<Reader>) -> UpstreamReason {
        loop {
            let stepped = self.step(readers).await;
            if let Err(reason) = stepped {
                return reason;
            }
        }
    }

    /// Delivers what is ready, sends what is due, waits for the next thing to happen.
    async fn step(&mut self, readers: &mut mpsc::UnboundedReceiver<Reader>) -> Result<(), UpstreamReason> {
        while let Ok(reader) = readers.try_recv() {
            self.collecting.push(reader);
        }
        self.check_stream()?;
        self.deliver()?;
        self.expire();
        self.tell_how_far_behind();
        if self.flight.as_ref().is_some_and(|flight| flight.sent_at.elapsed() > ANSWER_MAX) {
            return Err(lost(UpstreamError::Timeout("barrier")));
        }
        // Who marks a write from here on wakes this task.
        self.shared.exposure.heed(Heed::Each);
        if self.flight.is_none()
            && let Some(scope) = self.due()
        {
            self.send(scope).await.map_err(lost)?;
        }
        let now = Instant::now();
        let heeds_transactions = self.heeds_transactions(now);
        self.shared.exposure.heed(self.heed(now));
        let attention = self.attention(heeds_transactions);
        self.shared.replication.attend(attention);
        let wake_at = self.wake_at();
        tokio::select! {
            biased;
            frame = self.connection.read_frame() => {
                self.receive(frame.map_err(lost)?)?;
                // An answer is several messages, and they come together.
                while let Some(frame) = self.connection.buffered_frame().map_err(lost)? {
                    self.receive(frame)?;
                }
            }
            // Where nothing is attended to, it is the end of the stream.
            changed = self.applied.changed(), if heeds_transactions || attention == Attention::None => {
                changed.map_err(|_| UpstreamReason::MirrorBehind("the stream has ended".into()))?;
            }
            // Who comes while a statement is under way is collected when it is answered; until then there is nothing to do for
            // them, and their own patience ends by itself.
            reader = readers.recv(), if self.flight.is_none() => match reader {
                Some(reader) => self.collecting.push(reader),
                None => return Err(UpstreamReason::MirrorBehind("shutting down".into())),
            },
            () = self.shared.exposure.due.notified() => {}
            () = self.alarm.wait_until(wake_at) => {}
        }
        Ok(())
    }

    /// What the next statement must cover, if one is due.
    fn due(&mut self) -> Option<Scope> {
        let now = Instant::now();
        let exposure = &self.shared.exposure;
        if exposure.see_readers() {
            self.session_read_at = Some(now);
        }
        if now < self.not_before {
            return None;
        }
        if self.is_in_doubt() {
            return self.due_in_doubt(now);
        }
        if now >= self.heartbeat {
            return Some(Scope::Everything);
        }
        if !self.collecting.is_empty() {
            let must_verify =
                self.must_verify() || !self.collecting.iter().all(|reader| self.has_verified(&reader.relations));
            let exact = self.collecting.iter().any(|reader| reader.mode != FreshnessMode::Session);
            return Some(match (must_verify, exact) {
                (true, _) => Scope::Everything,
                (false, true) => Scope::Readers,
                (false, false) => Scope::Moment,
            });
        }
        let has_unexposed = self.shared.replication.transactions() != self.exposed_transactions
            || exposure.wants_barrier()
            || self.must_verify();
        let is_read = self.is_read(now);
        if !(has_unexposed && is_read && self.landed.is_empty() && now >= self.last_sent + self.background_pause()) {
            return None;
        }
        Some(if self.must_verify() { Scope::Everything } else { Scope::Moment })
    }

    /// Only a full barrier over everything will do.
    fn must_verify(&self) -> bool {
        self.is_suspect
            || self.has_unverified
            || self.publication.is_none()
            || self.shared.exposure.wants_verification()
    }

    fn has_verified(&self, relations: &[RelationId]) -> bool {
        relations.iter().all(|relation| self.verified.binary_search(relation).is_ok())
    }

    /// The snapshot under which these relations' digests were found to be what is expected now, too. None also while
    /// snapshots change all the time: asking for one in vain costs a round trip.
    fn known(&self, relations: &[RelationId], expected: &Expected) -> Option<Known> {
        let found = self.found.as_ref().filter(|_| self.changes < CHANGES_MAX)?;
        let is_as_found = |(relation, membership)| found.relations.get(relation) == Some(membership);
        let holds = Arc::ptr_eq(&found.catalog, &expected.catalog)
            && relations.iter().zip(&expected.memberships).all(is_as_found);
        holds.then(|| found.known.clone())
    }

    /// What was found together with what had been found before under the same snapshot: readers of other tables take turns.
    fn found_so_far(&mut self, mut now: Found) -> Found {
        let is_same =
            |before: &Found| Arc::ptr_eq(&before.catalog, &now.catalog) && before.known.visible == now.known.visible;
        if let Some(mut before) = self.found.take_if(|before| is_same(before)) {
            before.relations.append(&mut now.relations);
            now.relations = before.relations;
        }
        now
    }

    /// Whether the snapshot is the one that was last found.
    fn note_snapshot(&mut self, visible: &VisibilitySnapshot) {
        let is_same = self.found.as_ref().is_some_and(|found| found.known.visible == *visible);
        self.changes = if is_same { self.changes.saturating_sub(1) } else { (self.changes + 1).min(2 * CHANGES_MAX) };
    }

    async fn send(&mut self, scope: Scope) -> Result<(), UpstreamError> {
        let shared = Arc::clone(&self.shared);
        let replication = &shared.replication;
        let mut relations = Vec::new();
        if scope == Scope::Everything {
            relations = replication.followed();
            relations.extend(replication.watched());
        }
        // A table that was dropped or is copied again meanwhile has no digest to compare with.
        for reader in std::mem::take(&mut self.collecting) {
            if replication.membership_digest(&reader.relations).is_some() {
                relations.extend(&reader.relations);
                self.collecting.push(reader);
            } else {
                reader.answer(Err(UpstreamReason::TableNotMirrored("not mirrored (yet)".into())));
            }
        }
        if matches!(scope, Scope::Readers | Scope::Which) && self.collecting.is_empty() {
            return Ok(());
        }
        relations.sort_unstable();
        relations.dedup();
        if scope == Scope::Which {
            return self.ask_which(relations).await;
        }
        let expected = match scope {
            Scope::Moment | Scope::Which => None,
            Scope::Readers | Scope::Everything => match Expected::new(replication, &self.running, &relations) {
                Some(expected) => Some(expected),
                // Something changed between two looks; look again in a moment.
                None => {
                    self.not_before = Instant::now() + BACKGROUND_PAUSE_MIN;
                    return Ok(());
                }
            },
        };
        let is_complete = scope == Scope::Everything;
        let catalog = expected.as_ref().map_or_else(|| replication.loaded(), |expected| Arc::clone(&expected.catalog));
        let known = expected.as_ref().and_then(|expected| self.known(&relations, expected));
        let looks_at_files = !is_complete && known.is_none();
        let (files, checks_all) =
            if looks_at_files { self.files(&relations, &catalog) } else { (Files::new(), is_complete) };
        let mut checked = BTreeSet::new();
        if !is_complete {
            checked.extend(relations.iter().copied().chain(files.iter().map(|(relation, ..)| *relation)));
        }
        // Number and time are taken before the statement can start: whoever asks from now on needs the next one.
        let as_of = Uptime::now();
        let number = self.shared.exposure.send();
        if known.is_some() {
            self.connection.send_execute("moment", &[])?;
        } else if expected.is_some() {
            let parameters = Parameters::new(&relations, &files, &self.running);
            self.connection.send_execute("full", &parameters.of_full())?;
            self.shared.counters.full_barriers.fetch_add(1, Ordering::Relaxed);
        } else {
            let parameters = Parameters::new(&[], &files, &self.running);
            self.connection.send_execute("light", &parameters.of_light())?;
        }
        self.connection.flush().await?;
        self.shared.counters.barriers.fetch_add(1, Ordering::Relaxed);
        self.last_sent = Instant::now();
        if is_complete {
            self.heartbeat = self.last_sent + HEARTBEAT;
        }
        self.flight = Some(Flight {
            number,
            sent_at: self.last_sent,
            as_of,
            readers: std::mem::take(&mut self.collecting),
            catalog,
            expected: if known.is_some() { None } else { expected },
            known,
            relations,
            checked,
            checks_all,
            is_complete,
            asks_which: false,
            expired: None,
            row: None,
            error: None,
        });
        Ok(())
    }

    /// The relations whose files and names a barrier looks at that is none over everything: those of its readers, those that may be shown
    /// with other rows, and those that writes have named. Whether these are all that are followed.
    fn files(&mut self, relations: &[RelationId], catalog: &LoadedCatalog) -> (Files, bool) {
        self.changed.retain(|_, seen| seen.elapsed() < CHANGED_LATELY);
        let (named, is_any) = self.shared.exposure.named(self.shared.exposure.required_now());
        let mut tables: BTreeSet<RelationId> = relations.iter().chain(self.changed.keys()).copied().collect();
        tables.extend(named);
        if is_any {
            tables.extend(self.shared.replication.followed());
            tables.extend(self.shared.replication.watched());
        }
        let of = |relation: RelationId| {
            let schema = Arc::clone(catalog.catalog.described(relation)?);
            match catalog.tables.get(&relation) {
                Some(facts) => Some((relation, facts.filenode, schema)),
                // A REFRESH gives a materialized view another file; others that are no tables have none.
                None => {
                    let of = &catalog.catalog;
                    let is_without = of.partitioned.contains_key(&relation) || of.views.contains_key(&relation);
                    is_without.then_some((relation, 0, schema))
                }
            }
        };
        (tables.into_iter().filter_map(of).collect(), is_any)
    }

    /// Takes out of the snapshot what nobody has looked at although its rows have changed since they were last exposed (their
    /// transaction may have rewritten the table, too), or a write has named it that needs this barrier (it may be called otherwise by
    /// now). Whether there is any.
    fn leave_out_unchecked(
        &mut self,
        snapshot: &mut Snapshot,
        checked: &BTreeSet<RelationId>,
        number: BarrierNumber,
    ) -> bool {
        let before = self.shared.exposure.newest();
        let (named, mut is_any) = self.shared.exposure.named(number);
        // What is made of tables may be made of others by now.
        let catalog = &snapshot.catalog;
        is_any |= named.iter().any(|relation| !checked.contains(relation) && catalog.is_derived(*relation));
        let is_called_so = |relation: &RelationId| !(is_any || named.contains(relation));
        let before = before.as_ref().map(|before| &before.snapshot);
        let generation = |relation: &RelationId| Some(before?.tables.get(relation)?.generation);
        let tracked = |relation: &RelationId| before?.tracked.get(relation).copied();
        let now = Instant::now();
        let count = snapshot.tables.len() + snapshot.tracked.len();
        snapshot.tables.retain(|relation, version| {
            let is_as_it_was = generation(relation) == Some(version.generation);
            if !is_as_it_was {
                self.changed.insert(*relation, now);
            }
            is_as_it_was && is_called_so(relation) || checked.contains(relation)
        });
        // Of one without rows here replies are kept all the same.
        snapshot.tracked.retain(|relation, generation| {
            let is_as_it_was = tracked(relation) == Some(*generation);
            if !is_as_it_was {
                self.changed.insert(*relation, now);
            }
            is_as_it_was && is_called_so(relation) || checked.contains(relation)
        });
        snapshot.tables.len() + snapshot.tracked.len() < count
    }

    /// One message of the statement's answer.
    fn receive(&mut self, frame: Frame) -> Result<(), UpstreamReason> {
        match (frame.tag, &mut self.flight) {
            (b'D', Some(flight)) => {
                flight.row = Some(parse_row(frame.body).map_err(lost)?);
            }
            (b'E', Some(flight)) => flight.error = Some(ServerError::parse(&frame.body)),
            (b'E', None) => return Err(lost(UpstreamError::Server(ServerError::parse(&frame.body)))),
            (b'Z', Some(_)) => {
                if let Some(flight) = self.flight.take() {
                    self.land(flight)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The statement is answered: is it the same server, is the catalog in force, what must be applied?
    fn land(&mut self, mut flight: Flight) -> Result<(), UpstreamReason> {
        let counters = &self.shared.counters;
        let (row, error) = (flight.row.take(), flight.error.take());
        if flight.asks_which {
            return self.learn_which(&flight, row, error);
        }
        let moment = match (row, error) {
            (Some(row), None) => Moment::parse(&row),
            (_, Some(error)) => Err(UpstreamError::Server(error)),
            (None, None) => Err(UpstreamError::Protocol("a barrier without a row")),
        };
        let mut moment = match moment {
            Ok(moment) => moment,
            Err(error) => {
                // An error of the statement itself would come again: start over with a new connection.
                let reason = lost(error);
                flight.readers.drain(..).for_each(|reader| reader.answer(Err(reason.clone())));
                return Err(reason);
            }
        };
        let took = flight.sent_at.elapsed();
        counters.round_trip_us.store(took.as_micros() as u64, Ordering::Relaxed);
        self.least_took = self.least_took.min(took);
        if flight.is_complete && flight.expected.is_some() {
            // What was slow once was held up, and the way there and back costs upstream nothing.
            let cost = took.min(std::mem::replace(&mut self.full_took, took)).saturating_sub(self.least_took);
            self.heartbeat = flight.sent_at + (cost * HEARTBEAT_SHARE).clamp(HEARTBEAT, HEARTBEAT_MAX);
        }
        if moment.started_at != self.running.server.started_at {
            self.shared.replication.request_restart();
            let reason = UpstreamReason::MirrorBehind("upstream was restarted".into());
            flight.readers.drain(..).for_each(|reader| reader.answer(Err(reason.clone())));
            return Err(reason);
        }
        let target = self.geometry.record_end(moment.insert_lsn);
        counters.insert_lsn.store(target.0, Ordering::Relaxed);
        // Each backend tells when it has loaded the configuration itself; what was loaded while none stood is not known: the first
        // moment of a life counts.
        if self.configured_at.replace(moment.configured_at).is_none_or(|before| before != moment.configured_at) {
            counters.configurations.fetch_add(1, Ordering::Relaxed);
        }
        self.note_snapshot(&moment.visible);
        if let Some(known) = &flight.known {
            if known.visible != moment.visible {
                self.ask_again(flight);
                return Ok(());
            }
            moment.publication = known.publication;
        }
        let covered = if flight.is_complete { flight.relations.clone() } else { Vec::new() };
        if let (Some(expected), Some(found)) = (&flight.expected, &moment.digests) {
            if expected.digests != *found {
                let is_confined = expected.digests.differ_by_relations_alone(found);
                self.doubt(flight, is_confined);
                return Ok(());
            }
            let known = Known { visible: moment.visible.clone(), publication: moment.publication };
            let relations = std::mem::take(&mut flight.relations).into_iter();
            let relations = relations.zip(expected.memberships.iter().copied()).collect();
            let found = Found { known, relations, catalog: Arc::clone(&flight.catalog) };
            self.found = Some(self.found_so_far(found));
        }
        if flight.is_complete {
            (self.is_suspect, self.doubt) = (false, None);
            self.verified = covered;
            self.has_unverified = false;
            self.publication = moment.publication;
            self.shared.exposure.note_verified(flight.number);
            if self.shared.replication.is_announced_after(&moment.visible) {
                self.shared.exposure.note_catalog_changed();
            }
        } else if self.publication != moment.publication || moment.moved > 0 {
            // A first copy has begun, or somebody else has taken a table out; or a table is in another file than its rows here.
            self.publication = None;
            if flight.expected.is_none() && flight.known.is_none() {
                self.collecting.append(&mut flight.readers);
                return Ok(());
            }
        }
        if moment.moved == 0 {
            let is_checked = |relation: RelationId| flight.checked.contains(&relation);
            self.shared.exposure.note_names_checked(flight.number, is_checked, flight.checks_all);
        }
        self.landed.push_back(Landed { flight, moment, target, landed_at: Instant::now(), was_nudged: false });
        if self.landed.len() > LANDED_MAX {
            self.landed.pop_front().into_iter().for_each(|landed| landed.fail(&UpstreamReason::WaitBudget));
        }
        self.deliver()
    }

    /// A transaction has ended since the digests were found: it may have changed the catalog, and only they tell.
    fn ask_again(&mut self, mut flight: Flight) {
        self.found = None;
        self.collecting.append(&mut flight.readers);
        if flight.is_complete {
            self.heartbeat = Instant::now();
        }
    }

    /// Whether the life of the stream still lasts that this barrier belongs to.
    fn check_stream(&self) -> Result<(), UpstreamReason> {
        match self.shared.replication.running() {
            Ok(running) if running.epoch == self.running.epoch => Ok(()),
            Ok(_) => Err(UpstreamReason::MirrorBehind("the stream was lost".into())),
            Err(reason) => Err(reason),
        }
    }

    /// Serves the moments whose part of the log has been applied.
    fn deliver(&mut self) -> Result<(), UpstreamReason> {
        let applied = *self.applied.borrow_and_update();
        while self.landed.front().is_some_and(|landed| landed.target <= applied) {
            self.check_stream()?;
            let Some(landed) = self.landed.pop_front() else { break };
            self.nudges_needed =
                if landed.was_nudged { (self.nudges_needed + 1).min(8) } else { self.nudges_needed.saturating_sub(1) };
            self.serve_moment(landed);
        }
        Ok(())
    }

    fn serve_moment(&mut self, landed: Landed) {
        let Landed { flight, moment, target, .. } = landed;
        let shared = Arc::clone(&self.shared);
        let replication = &shared.replication;
        let catalog = &flight.catalog.catalog;
        let described = replication.take_described(&moment.visible);
        let mut is_announced = false;
        if !flight.is_complete {
            self.verified.retain(|relation| !described.contains(relation));
            // It shows a transaction that has said, by the event trigger, that it changes the catalog.
            is_announced = replication.is_announced_in(&moment.visible);
        }
        if is_announced {
            self.shared.exposure.note_catalog_changed();
        }
        // Counted before looking: what is applied after this is exposed by a later barrier.
        let mut transactions = replication.transactions();
        // A commit that came after the moment, or that was received before upstream shows it, is looked for again.
        if replication.pending_after(&moment.visible) {
            transactions = transactions.wrapping_sub(1);
        }
        // Before its readers are answered: what they ask next must not be answered from an older moment.
        let is_read = self.is_read(Instant::now());
        if !is_announced && (flight.is_complete || is_read) {
            let mut followed = replication.followed();
            let count = followed.len();
            followed.retain(|relation| self.verified.binary_search(relation).is_ok());
            self.has_unverified |= followed.len() < count;
            let mut snapshot = replication.snapshot_at(&moment.visible, target, &followed, catalog);
            if snapshot.is_err() {
                // Leave out the tables whose state at this moment is not known.
                let known = |relation: &RelationId| {
                    replication.snapshot_at(&moment.visible, target, std::slice::from_ref(relation), catalog).is_ok()
                };
                let known: Vec<RelationId> = followed.into_iter().filter(known).collect();
                snapshot = replication.snapshot_at(&moment.visible, target, &known, catalog);
            }
            if let (Ok(snapshot), false) = (&mut snapshot, flight.is_complete)
                && self.leave_out_unchecked(snapshot, &flight.checked, flight.number)
            {
                // Soon again, with a look at them.
                transactions = transactions.wrapping_sub(1);
            }
            // A catalog that was read since, or found not to be in force, counts for nobody who comes now.
            let is_in_use = Arc::ptr_eq(&flight.catalog, &replication.loaded());
            let is_sound = is_in_use && !self.is_suspect && self.publication == moment.publication;
            if let (Ok(snapshot), true) = (snapshot, is_sound) {
                self.exposed_transactions = transactions;
                self.shared.exposure.expose(Exposed {
                    number: flight.number,
                    sent_at: flight.as_of,
                    epoch: self.running.epoch,
                    snapshot: Arc::new(snapshot),
                });
            }
        }
        let is_verifying = flight.expected.is_some() || flight.known.is_some();
        for mut reader in flight.readers {
            // A table of its own was described meanwhile, or anything may have become another.
            if !is_verifying && (is_announced || !self.has_verified(&reader.relations)) {
                self.collecting.push(reader);
                continue;
            }
            match replication.snapshot_at(&moment.visible, target, &reader.relations, catalog) {
                Ok(snapshot) => {
                    let waited = reader.arrived.elapsed();
                    self.shared.counters.wait_seconds.observe(waited.as_secs_f64());
                    let statement_time = Some(moment.statement_time);
                    let snapshot = Arc::new(snapshot);
                    let wait_us = waited.as_micros() as u64;
                    reader.answer(Ok(Served { snapshot, statement_time, wait_us, barrier: flight.number }));
                }
                Err(UpstreamReason::NotAPrefix) if !reader.is_second_try => {
                    reader.is_second_try = true;
                    self.collecting.push(reader);
                }
                Err(reason) => {
                    if reason == UpstreamReason::NotAPrefix {
                        self.shared.counters.not_a_prefix.fetch_add(1, Ordering::Relaxed);
                    }
                    reader.answer(Err(reason));
                }
            }
        }
        replication.retire(&moment.visible);
        if flight.is_complete {
            self.shared.unions.sweep(&replication.loaded().catalog);
        }
    }

    fn fail_all(&mut self, reason: &UpstreamReason) {
        let flying = self.flight.take().map(|flight| flight.readers).unwrap_or_default();
        let landed = self.landed.drain(..).flat_map(|landed| landed.flight.readers);
        let waiting: Vec<Reader> = self.collecting.drain(..).chain(flying).chain(landed).collect();
        waiting.into_iter().for_each(|reader| reader.answer(Err(reason.clone())));
    }
}

impl Landed {
    fn fail(self, reason: &UpstreamReason) {
        self.flight.readers.into_iter().for_each(|reader| reader.answer(Err(reason.clone())));
    }
}

/// What a barrier compares beside telling the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Nothing.
    Moment,
    /// The catalog rows of its readers' tables.
    Readers,
    /// Those of every mirrored table.
    Everything,
    /// It tells no moment: which of its readers' relations are others by now.
    Which,
}

fn lost(error: UpstreamError) -> UpstreamReason {
    UpstreamReason::MirrorBehind(format!("the barrier connection: {error}").into())
}
