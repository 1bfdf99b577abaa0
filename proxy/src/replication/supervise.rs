//! [`Replication`]: runs the stream, the first copies and the catalog reloads; starts over when the stream is lost.
//!
//! Whatever is in the mirror belongs to one life of the stream. When it ends, by whatever cause, everything is discarded
//! and copied again: the slot is temporary, and a server that was replaced or restarted is not argued with.

mod admission;
mod copies;
mod mirrored;
mod newcomers;
mod report;
mod restricted;
mod retained;
mod withdrawn;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use freshet_config::TableChoice;
use freshet_engine::catalog::RelationId;
use freshet_engine::catalog::order::Orders;
use freshet_engine::mirror::{Freed, Mirror, MirrorLimits, UpstreamTransaction};
use freshet_engine::table::Generation;
use freshet_engine::types::Lsn;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::replication::applied::Applied;
use crate::replication::bootstrap::{self, Left, Publication, create_publication, drop_publication, fresh_name};
use crate::replication::catalog::{self, LoadedCatalog, Refusal, TableFacts};
use crate::replication::copy::{CopyBudget, CopySlots};
use crate::replication::preflight::{self, Needs, Severity};
use crate::replication::release::{Freeing, is_connected};
use crate::replication::standby::Standby;
use crate::replication::status::{Running, StreamCounters, StreamState};
use crate::replication::stream::{Sink, Walsender};
use crate::replication::trigger;
use crate::upstream::UpstreamError;
use crate::upstream::address::UpstreamAddress;
use crate::upstream::connection::Connection;
use crate::upstream::service::ServicePool;

/// Tables copied at a time.
const COPIES_MAX: usize = 2;
/// Those besides that wait until all who had written their tables have ended.
const WAITING_MAX: usize = 8;
/// A look at what the walsender does.
const LOOK_MAX: Duration = Duration::from_secs(3);
/// Pauses between lives of the stream, doubling.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(10);
/// A line that was lost, however often, is tried again at least this soon: what broke it may be over, and all is relayed meanwhile.
const LOST_MAX: Duration = Duration::from_secs(2);
/// A life of the stream this long was no failed attempt: the next one begins without a long pause.
const STEADY: Duration = Duration::from_secs(2);
/// A new slot waits for every transaction that writes; after this long it is tried anew.
const SLOT_WAIT_MAX: Duration = Duration::from_secs(600);
/// A start that takes longer says what it waits for, and looks again as often.
const HELD_UP_FOR: Duration = Duration::from_secs(1);
/// Between looks at tables that wait for a copy or were poisoned.
const TICK: Duration = Duration::from_millis(250);
/// A table that could not be taken out of the publication is tried again after this long.
const UNPUBLISH_AGAIN: Duration = Duration::from_secs(1);
/// At the end the trigger and the publication are dropped, if that takes no longer for each: who ends freshet does not wait for long either.
const FAREWELL_MAX: Duration = Duration::from_secs(2);
/// Between two lives of the stream the publication is dropped, if that takes no longer.
const DROP_MAX: Duration = Duration::from_secs(5);
/// Reloads of the catalog follow each other no faster.
const RELOAD_PAUSE: Duration = Duration::from_millis(20);

/// Texts of views and functions that could not be read are asked for again after this.
const TEXTS_AGAIN: Duration = Duration::from_secs(3);

/// Catalogs read: no two have the same number, of whichever database they are.
static CATALOGS: AtomicU64 = AtomicU64::new(0);
/// Lives of streams, likewise: what belongs to one is of no use in another, also where a database is mirrored anew.
static LIVES: AtomicU64 = AtomicU64::new(0);

/// What transactions may take while they are put together, of all mirrors.
pub const TRANSACTION_BYTES_MAX: usize = 1 << 30;

/// What of the settings concerns the mirror.
#[derive(Clone, Debug)]
pub struct MirrorOptions {
    pub address: UpstreamAddress,
    pub tables: TableChoice,
    /// First part of the publication's name.
    pub publication: String,
    pub set_replica_identity_full: bool,
    pub copy_workers: usize,
    pub memory_bytes_max: usize,
    /// What upstream may keep of its log for the slot; 0: as much as it likes. See [`retained`].
    pub wal_kept_bytes_max: u64,
    /// A transaction larger than this poisons the tables it changed.
    pub transaction_bytes_max: usize,
    /// See [`trigger`].
    pub event_trigger: bool,
    /// Mode `standby`: the name in upstream's `synchronous_standby_names`.
    pub standby: Option<String>,
    /// How long a freshet of that name that is cut off from upstream may believe that commits wait for it.
    pub standby_believed: Duration,
}

impl MirrorOptions {
    pub fn new(address: UpstreamAddress) -> Self {
        Self {
            address,
            tables: TableChoice::Auto,
            publication: "freshet".into(),
            set_replica_identity_full: false,
            copy_workers: 2,
            memory_bytes_max: 2 << 30,
            wal_kept_bytes_max: 0,
            transaction_bytes_max: TRANSACTION_BYTES_MAX,
            event_trigger: false,
            standby: None,
            standby_believed: Duration::from_secs(1),
        }
    }

    /// Whether the table stays refused: nothing that may be done about it here would change that.
    fn keeps_refused(&self, refusal: &Refusal) -> bool {
        refusal.stands(self.set_replica_identity_full)
    }
}

/// The mirror and everything that keeps it in step. Cheap to clone.
#[derive(Clone)]
pub struct Replication {
    shared: Arc<Shared>,
}

struct Shared {
    options: MirrorOptions,
    /// Publication, slot and application name of this process.
    name: String,
    /// The publication may be there: a life of the stream has begun to make it, and it has not been dropped since.
    is_published: AtomicBool,
    /// The stream has run since the last attempt that failed.
    has_run: AtomicBool,
    pool: ServicePool,
    /// For looks at single commits, which must not wait behind the catalog's loads.
    samples: ServicePool,
    mirror: Mirror,
    applied: Applied,
    stream: ArcSwap<StreamState>,
    loaded: ArcSwap<LoadedCatalog>,
    /// Tables that were ever wanted. Sessions ask for it, on the threads that serve them: what may wait for the stream or take long
    /// (all in the mirror that makes versions, and freeing rows) is done without it. An entry's state is changed first, so that
    /// nobody is served from what is about to be forgotten.
    tables: Mutex<HashMap<RelationId, Entry>>,
    /// Names of the setting that are of no table, and why, as the log has them.
    unknown: Mutex<Vec<(String, String)>>,
    /// Relations made of others that answers were asked from.
    watched: Mutex<BTreeSet<RelationId>>,
    /// Members of the publication that could not be taken out of it yet. One that is not there any more, or belongs there again, does no
    /// harm here.
    strays: Mutex<BTreeSet<RelationId>>,
    budget: Arc<CopyBudget>,
    slots: Arc<CopySlots>,
    counters: StreamCounters,
    ping: Notify,
    reload: Notify,
    wanted: Notify,
    /// Names that statements used and the catalog does not have, and that there are some.
    newcomers: Mutex<HashSet<String>>,
    /// What was found of stored columns when their tables were copied.
    stored: Mutex<HashMap<RelationId, Stored>>,
    named: Notify,
    restart: Notify,
    /// When the stream was last made to look where upstream's address leads.
    looked: Mutex<Option<Instant>>,
    /// Of the stream's server ([`stream::ServerIdentity::started_at`]), for who asks at every statement; 0: none runs.
    started_at: AtomicI64,
    /// A session is at another server than the stream.
    elsewhere: Notify,
    /// In mode `standby`.
    standby: Option<Standby>,
    /// Transactions that said by the event trigger that they change the catalog, until a barrier has shown them; and how many
    /// there were.
    announced: Mutex<Vec<u32>>,
    announcements: AtomicU64,
    /// Tables and the transactions in which they were described, until a barrier has shown those.
    described: Mutex<Vec<(u32, RelationId)>>,
    /// Whether the event trigger fires.
    trigger: ArcSwap<&'static str>,
    /// Where copies run: the runtime that serves sessions, not the thread of the stream.
    copiers: Handle,
}

impl Shared {
    fn close_pools(&self) {
        self.pool.close();
        self.samples.close();
    }
}

/// What became of a table that was wanted.
struct Entry {
    state: Wanted,
    /// Distinguishes this copy from earlier ones.
    attempt: u64,
    failures: u32,
    /// As the log has it: whether its rows are here.
    has_rows: bool,
    /// Its rows take more memory than this.
    outgrew: usize,
    /// It is tracked for a value that cannot be held.
    unfit: Option<Unfit>,
}

/// When a table that could not be held is tried again: some time after it has changed.
struct Unfit {
    since: Instant,
    generation: Generation,
    /// Doubles with each attempt.
    pause: Duration,
}

enum Wanted {
    Due(Instant, Cow<'static, str>),
    Copying {
        facts: TableFacts,
        rows: Arc<AtomicU64>,
    },
    Mirrored {
        facts: TableFacts,
        membership: i64,
    },
    /// By the catalog.
    Refused(Refusal),
    /// By what the copy met; to be tried again when the table's columns (`layout`) change.
    Unfit {
        layout: i64,
        why: String,
    },
}

impl Replication {
    pub fn new(options: MirrorOptions) -> Result<Self, UpstreamError> {
        let limits = MirrorLimits { bytes_max: options.memory_bytes_max, ..MirrorLimits::default() };
        let (pool, samples) = (ServicePool::new(&options.address, 4)?, ServicePool::new(&options.address, 1)?);
        let starting = StreamState::Down("starting".into());
        Ok(Self {
            shared: Arc::new(Shared {
                name: fresh_name(&options.publication),
                is_published: AtomicBool::new(false),
                has_run: AtomicBool::new(false),
                pool,
                samples,
                mirror: Mirror::new(limits),
                applied: Applied::new(),
                stream: ArcSwap::from_pointee(starting),
                loaded: ArcSwap::default(),
                tables: Mutex::default(),
                unknown: Mutex::default(),
                watched: Mutex::default(),
                strays: Mutex::default(),
                budget: Arc::default(),
                slots: Arc::new(CopySlots::new(COPIES_MAX)),
                counters: StreamCounters::default(),
                ping: Notify::new(),
                reload: Notify::new(),
                wanted: Notify::new(),
                newcomers: Mutex::default(),
                stored: Mutex::default(),
                named: Notify::new(),
                restart: Notify::new(),
                looked: Mutex::default(),
                started_at: AtomicI64::new(0),
                elsewhere: Notify::new(),
                copiers: Handle::current(),
                standby: options.standby.clone().map(Standby::new),
                announced: Mutex::default(),
                announcements: AtomicU64::new(0),
                described: Mutex::default(),
                trigger: ArcSwap::from_pointee(trigger::OFF),
                options,
            }),
        })
    }

    /// Mirrors until `shutdown`; leaves neither slot nor publication behind.
    pub async fn run(&self, shutdown: CancellationToken) {
        let shared = &self.shared;
        if shared.options.tables == TableChoice::None {
            shared.stream.store(Arc::new(StreamState::RelayOnly("mirroring is turned off".into())));
            shutdown.cancelled().await;
            return shared.close_pools();
        }
        let mut pause = RETRY_MIN;
        let mut told = String::new();
        let (mut freeing, mut is_first_life) = (None, true);
        while !shutdown.is_cancelled() {
            let lived = Instant::now();
            let ended = tokio::select! {
                ended = self.free_writers(&mut freeing, &mut is_first_life) => ended,
                () = shutdown.cancelled() => break,
            };
            let ended = match ended {
                Ok(()) => self.live(&mut freeing, &shutdown).await,
                Err(ended) => ended,
            };
            self.discard(&ended);
            if shutdown.is_cancelled() {
                break;
            }
            if !is_first_life {
                // While it pauses, too; a namesake would only be asked about again.
                let _ = self.free_writers(&mut freeing, &mut is_first_life).await;
            }
            if lived.elapsed() > STEADY {
                pause = RETRY_MIN;
            }
            if shared.has_run.swap(false, Ordering::Relaxed) {
                // The same once more is news then.
                told.clear();
            }
            if matches!(ended, Ended::KeptTooMuch(_)) {
                pause = retained::respite(lived.elapsed());
            }
            let (Ended::RelayOnly(why) | Ended::Lost(why) | Ended::KeptTooMuch(why)) = &ended;
            if *why != told {
                told = why.to_string();
                tracing::warn!(reason = %why, "no mirror at the moment: everything is relayed");
            }
            shared.counters.restarts.fetch_add(1, Ordering::Relaxed);
            let rest = if matches!(ended, Ended::Lost(_)) { pause.min(LOST_MAX) } else { pause };
            tokio::select! {
                _ = async { tokio::join!(sleep(rest), self.end_publication()) } => {}
                () = shutdown.cancelled() => {}
            }
            pause = (pause * 2).min(RETRY_MAX);
        }
        if let Some(standby) = &shared.standby {
            tracing::warn!(
                standby = %standby.name,
                "where synchronous_standby_names has it, commits wait until freshet is back or `freshet release` runs"
            );
        }
        if shared.options.event_trigger
            && let Ok(Err(error)) = timeout(FAREWELL_MAX, trigger::drop_trigger(&shared.pool, &shared.name)).await
        {
            tracing::warn!(%error, "the event trigger was not dropped");
        }
        if shared.is_published.load(Ordering::Relaxed)
            && let Ok(Err(error)) = timeout(FAREWELL_MAX, drop_publication(&shared.pool, &shared.name)).await
        {
            tracing::warn!(%error, publication = %shared.name, "the publication was not dropped");
        }
        shared.close_pools();
        // Sessions may hold on to the mirror for longer than it runs.
        shared.tables.lock().clear();
        shared.loaded.store(Arc::default());
    }

    /// After a life of the stream nobody watches any more whether the tables of its publication have an identity, without which UPDATE and
    /// DELETE of them fail.
    async fn end_publication(&self) {
        let shared = &self.shared;
        if !shared.is_published.load(Ordering::Relaxed) {
            return;
        }
        match timeout(DROP_MAX, drop_publication(&shared.pool, &shared.name)).await {
            Ok(Ok(is_gone)) => shared.is_published.store(!is_gone, Ordering::Relaxed),
            Ok(Err(error)) => {
                tracing::debug!(%error, publication = %shared.name, "the publication was not dropped (yet)");
            }
            // Upstream does not answer: after the next try.
            Err(_) => {}
        }
    }

    /// Everything is relayed from here on, and what was mirrored is forgotten.
    pub fn stop_serving(&self, why: &'static str) {
        self.discard(&Ended::Lost(why.into()));
    }

    /// In mode `standby` the walsender has the standby's name. By this one others see that the publication is in use, also
    /// before the stream runs.
    async fn hold_name(&self) -> Result<Option<Connection>, UpstreamError> {
        let shared = &self.shared;
        match &shared.standby {
            Some(_) => {
                let parameters = [("application_name", &*shared.name), ("options", "-c idle_session_timeout=0")];
                Connection::open(&shared.options.address, &parameters).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// One life of the stream; returns how it ended.
    async fn live(&self, freeing: &mut Option<Freeing>, shutdown: &CancellationToken) -> Ended {
        let shared = &self.shared;
        // That the life before this was to end, nobody wants any more.
        drop(timeout(Duration::ZERO, shared.restart.notified()).await);
        let prepare = async {
            let name = self.hold_name().await?;
            self.prepare(freeing).await.map(|walsender| (name, walsender))
        };
        let prepared = tokio::select! {
            prepared = prepare => prepared,
            () = shutdown.cancelled() => return Ended::Lost("shutting down".into()),
        };
        let (_name, mut walsender) = match prepared {
            Ok(prepared) => prepared,
            Err(ended) => return ended,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(self.clone().copy_tables());
        tasks.spawn(self.clone().reload_on_demand());
        tasks.spawn(self.clone().unpublish_strays());
        tasks.spawn(self.clone().look_on_demand());
        tasks.spawn(self.clone().look_at_built_ins());
        tasks.spawn(self.clone().look_where_the_address_leads());
        tasks.spawn(self.clone().watch_standby(walsender.process_id()));
        let process = walsender.process_id();
        let ended = tokio::select! {
            error = walsender.stream(self, &shared.ping, shared.options.transaction_bytes_max) => error.into(),
            () = shared.restart.notified() => Ended::Lost("started over on demand".into()),
            why = self.watch_kept_wal(process) => Ended::KeptTooMuch(why.into()),
            () = shutdown.cancelled() => Ended::Lost("shutting down".into()),
        };
        // No reader may be served from here on; only then let go of the slot.
        self.discard(&ended);
        tasks.shutdown().await;
        // They may be as silent as the stream was.
        shared.pool.renew();
        shared.samples.renew();
        walsender.close().await;
        ended
    }

    /// In mode `standby`: commits that wait for this freshet are acknowledged while nobody is served, or a slot could never be
    /// made and applications would wait for a mirror that does not come up. Not for another freshet of the same name, which is
    /// waited for, or has been until just now.
    async fn free_writers(&self, freeing: &mut Option<Freeing>, is_first_life: &mut bool) -> Result<(), Ended> {
        let shared = &self.shared;
        let Some(standby) = shared.standby.as_ref().filter(|_| freeing.is_none()) else { return Ok(()) };
        let address = &shared.options.address;
        if *is_first_life {
            if is_connected(address, &standby.name).await? {
                let why =
                    format!("another standby named {} is connected; give this freshet a name of its own", standby.name);
                return Err(Ended::RelayOnly(why.into()));
            }
            sleep(shared.options.standby_believed).await;
            *is_first_life = false;
        }
        *freeing = Some(Freeing::start(address, &standby.name));
        Ok(())
    }

    /// Everything up to the running stream.
    async fn prepare(&self, freeing: &mut Option<Freeing>) -> Result<Walsender, Ended> {
        let shared = &self.shared;
        let needs = Needs { standby: shared.standby.as_ref().map(|standby| &*standby.name), own: None };
        let facts = preflight::gather(&*shared.pool.connection().await?, needs).await?;
        let mut obstacles = Vec::new();
        for finding in preflight::assess(&facts, needs) {
            match finding.severity {
                Severity::Blocks => obstacles.push(finding.to_string()),
                Severity::Warns => tracing::warn!(%finding, "upstream is not as it should be"),
            }
        }
        if !obstacles.is_empty() {
            return Err(Ended::RelayOnly(obstacles.join("; and ").into()));
        }
        let name = shared.standby.as_ref().map_or(&shared.name, |standby| &standby.name);
        let mut walsender = Walsender::connect(&shared.options.address, name).await?;
        shared.is_published.store(true, Ordering::Relaxed);
        let publication = create_publication(&shared.pool, &shared.options.publication, &shared.name).await?;
        if shared.options.event_trigger
            && let Err(error) = trigger::create(&shared.pool, &publication.name).await
        {
            tracing::warn!(%error, "the event trigger could not be made");
        }
        let epoch = LIVES.fetch_add(1, Ordering::Relaxed) + 1;
        // A name of its own: an earlier life's walsender may not have noticed yet that it is alone.
        let slot = format!("{}_{epoch}", shared.name);
        self.create_slot(&mut walsender, &slot).await?;
        self.free(shared.mirror.clear());
        // An application may send itself large ones.
        walsender.start(&slot, &publication.name, shared.options.event_trigger).await?;
        self.load_catalog(Arc::new(Orders::new(walsender.identity.started_at))).await?;
        self.want_listed();
        let server = walsender.identity.clone();
        if let Some(freeing) = freeing.take() {
            freeing.end().await;
        }
        tracing::info!(database = %facts.database, publication = %publication.name, "the mirror's stream runs");
        shared.started_at.store(server.started_at, Ordering::Relaxed);
        shared.has_run.store(true, Ordering::Relaxed);
        shared.stream.store(Arc::new(StreamState::Running(Arc::new(Running { epoch, server, publication }))));
        Ok(walsender)
    }

    async fn create_slot(&self, walsender: &mut Walsender, slot: &str) -> Result<(), Ended> {
        let shared = &self.shared;
        let process = walsender.process_id();
        // Whoever drops this future leaves a process behind that waits for others' transactions: end it.
        let guard = TerminateOnDrop { pool: shared.pool.clone(), process, armed: true };
        let created = tokio::select! {
            created = timeout(SLOT_WAIT_MAX, walsender.create_slot(slot)) => created,
            () = self.tell_who_holds_up(process) => unreachable!("it has no end"),
            why = self.watch_kept_wal(process) => return Err(Ended::KeptTooMuch(why.into())),
        };
        let created = created.map_err(|_| UpstreamError::Timeout("slot creation waits for a long transaction"))?;
        guard.disarm();
        Ok(created?)
    }

    /// The slot's start waits for every transaction that has written anything, in whatever database (snapbuild.c); says whose.
    async fn tell_who_holds_up(&self, process: i32) {
        let mut told = String::new();
        loop {
            sleep(HELD_UP_FOR).await;
            let Ok(whom) = bootstrap::who_holds_up(&self.shared.pool, process).await else { continue };
            let Some(whom) = whom.filter(|whom| *whom != told) else { continue };
            tracing::warn!("the mirror's start waits for open transactions: {whom}");
            let why = format!("starting: it waits for open transactions: {whom}");
            self.shared.stream.store(Arc::new(StreamState::Down(why.into())));
            told = whom;
        }
    }

    /// The stream is over: nobody is served any more, and what was mirrored is forgotten.
    fn discard(&self, ended: &Ended) {
        let shared = &self.shared;
        if let Some(standby) = &shared.standby {
            standby.downgrade("the stream does not run".into());
        }
        shared.started_at.store(0, Ordering::Relaxed);
        shared.counters.wal_kept_bytes.store(0, Ordering::Relaxed);
        shared.stream.store(Arc::new(match ended {
            Ended::RelayOnly(why) => StreamState::RelayOnly(why.clone()),
            Ended::Lost(why) | Ended::KeptTooMuch(why) => StreamState::Down(why.clone()),
        }));
        let mut tables = shared.tables.lock();
        for entry in tables.values_mut() {
            entry.attempt += 1;
            if !matches!(entry.state, Wanted::Refused(_) | Wanted::Unfit { .. }) {
                entry.state = Wanted::Due(Instant::now(), "the mirror starts over".into());
            }
        }
        drop(tables);
        // Nobody finishes a copy after this that was begun before it.
        self.free(shared.mirror.clear());
        shared.announced.lock().clear();
        shared.described.lock().clear();
        shared.applied.reset();
    }

    /// Frees rows on a thread that nobody waits for.
    fn free(&self, freed: Freed) {
        if !freed.is_empty() {
            self.shared.copiers.spawn_blocking(move || drop(freed));
        }
    }

    /// Somebody may have dropped the event trigger, or disabled it: then changes count later, and a table that loses its identity
    /// refuses writes for a moment.
    async fn look_at_trigger(&self) -> Result<(), UpstreamError> {
        let shared = &self.shared;
        if !shared.options.event_trigger {
            return Ok(());
        }
        let state = trigger::state(&shared.pool, &shared.name).await?;
        if state != *shared.trigger.swap(Arc::new(state)) && state != trigger::ON {
            tracing::warn!(name = %shared.name, "the event trigger is {state}");
        }
        Ok(())
    }

    /// Reads the catalog, drops from the mirror what is no longer as it was copied, then puts the new catalog in force.
    async fn load_catalog(&self, orders: Arc<Orders>) -> Result<(), UpstreamError> {
        let shared = &self.shared;
        shared.counters.catalog_loads.fetch_add(1, Ordering::Relaxed);
        let version = CATALOGS.fetch_add(1, Ordering::Relaxed) + 1;
        let otherwise =
            shared.stored.lock().iter().filter(|(_, stored)| stored.is_otherwise).map(|(id, _)| *id).collect();
        let client = &mut *shared.pool.connection().await?;
        let loaded = catalog::load(client, version, orders, &self.loaded(), &otherwise).await?;
        self.adopt(loaded);
        self.look_at_trigger().await?;
        if let StreamState::Running(running) = &**shared.stream.load() {
            for table in self.check_membership(&running.publication).await? {
                // It has been picked since, or is tried again anyway.
                if self.is_watched(table) || shared.strays.lock().contains(&table) {
                    continue;
                }
                if let Err(error) = bootstrap::unpublish(&shared.pool, &running.publication.name, table).await {
                    self.note_still_published(table, &error).await;
                }
            }
        }
        Ok(())
    }

    /// A table could not be taken out of the publication: it is tried again. If its UPDATE and DELETE fail meanwhile, it cannot wait for
    /// whoever holds a lock, or took a privilege away: the stream starts over, and the publication, which is dropped without a lock on any table, goes with it.
    async fn note_still_published(&self, table: RelationId, error: &UpstreamError) {
        let shared = &self.shared;
        let is_new = shared.strays.lock().insert(table);
        if is_new {
            tracing::warn!(%error, table = table.0, "not taken out of the publication (yet)");
        }
        if matches!(bootstrap::is_harmed(&shared.pool, table).await, Ok(true)) {
            self.request_restart();
        }
    }

    /// Tries again what could not be taken out of the publication, without a load of the catalog: VACUUM may hold the lock for hours.
    async fn unpublish_strays(self) {
        let shared = &self.shared;
        loop {
            sleep(UNPUBLISH_AGAIN).await;
            let strays = shared.strays.lock().clone();
            for table in strays {
                let Ok(running) = self.running() else { break };
                if !self.is_stray(table) {
                    continue;
                }
                match bootstrap::unpublish(&shared.pool, &running.publication.name, table).await {
                    Ok(()) => {
                        shared.strays.lock().remove(&table);
                    }
                    Err(error) => self.note_still_published(table, &error).await,
                }
            }
        }
    }

    /// Whether the table is to be taken out of the publication; not if it has been picked since.
    fn is_stray(&self, table: RelationId) -> bool {
        // Held meanwhile: who puts the table back does so after it is no longer watched.
        let mut strays = self.shared.strays.lock();
        let is_watched = self.is_watched(table);
        if is_watched {
            strays.remove(&table);
        }
        !is_watched
    }

    /// Puts a catalog in force.
    fn adopt(&self, loaded: LoadedCatalog) {
        let shared = &self.shared;
        let mut tables = shared.tables.lock();
        let mut stored = shared.stored.lock();
        stored.retain(|relation, _| loaded.tables.contains_key(relation));
        let before = self.loaded();
        // Whether nobody has compared what this catalog has computed of the rows that are here, or being copied.
        let lacks_comparison = |relation: &RelationId, entry: &Entry| {
            let wanted = loaded.stored_columns.get(relation);
            match entry.state {
                Wanted::Copying { .. } => wanted != before.stored_columns.get(relation),
                Wanted::Mirrored { .. } if entry.has_rows => {
                    let compared = stored.get(relation).map(|stored| &stored.compared);
                    wanted.is_some() && wanted != compared
                }
                _ => false,
            }
        };
        let mut forgotten = Vec::new();
        tables.retain(|relation, entry| {
            let Some(now) = loaded.tables.get(relation) else {
                forgotten.push(*relation);
                return false;
            };
            let is_to_be_compared = lacks_comparison(relation, entry);
            match (&mut entry.state, &now.refusal) {
                // It has another file: what was known of its size says nothing any more.
                (Wanted::Mirrored { facts, .. }, None)
                    if facts.has_same_rows(now) && !entry.has_rows && facts.filenode != now.filenode =>
                {
                    forgotten.push(*relation);
                    entry.attempt += 1;
                    entry.outgrew = 0;
                    entry.state = Wanted::Due(Instant::now(), "its size may be another".into());
                }
                (Wanted::Copying { .. } | Wanted::Mirrored { .. }, None) if is_to_be_compared => {
                    forgotten.push(*relation);
                    entry.attempt += 1;
                    entry.state = Wanted::Due(Instant::now(), "its stored columns are to be compared".into());
                }
                (Wanted::Copying { facts, .. } | Wanted::Mirrored { facts, .. }, None) if facts.has_same_rows(now) => {
                    facts.take_layout(now);
                }
                (Wanted::Copying { .. } | Wanted::Mirrored { .. }, refusal) => {
                    forgotten.push(*relation);
                    entry.attempt += 1;
                    entry.state = match refusal {
                        Some(refusal) => Wanted::Refused(refusal.clone()),
                        None => Wanted::Due(Instant::now(), "its schema changed".into()),
                    };
                }
                (Wanted::Refused(was), refusal) if refusal.as_ref() != Some(was) => {
                    entry.state = Wanted::Due(Instant::now(), "to be judged again".into());
                }
                (Wanted::Unfit { layout, .. }, _) if *layout != now.layout => {
                    entry.state = Wanted::Due(Instant::now(), "to be judged again".into());
                }
                // As a member of the publication nobody would watch it any more; the same reload takes it out.
                (Wanted::Due(..), Some(refusal)) if shared.options.keeps_refused(refusal) => {
                    entry.state = Wanted::Refused(refusal.clone());
                }
                (Wanted::Refused(_) | Wanted::Unfit { .. } | Wanted::Due(..), _) => {}
            }
            true
        });
        drop(stored);
        drop(tables);
        // Before the new catalog is in force: no barrier may find it equal and the old rows still there.
        self.free(shared.mirror.forget(&forgotten));
        shared.loaded.store(Arc::new(loaded));
        shared.wanted.notify_one();
    }

    /// Tables that were taken out of the publication have lost changes; a publication that was altered, all of them. The members that
    /// are followed no more, or wait to be copied: nobody watches whether they have an identity, without which UPDATE and DELETE of a
    /// member fail.
    async fn check_membership(&self, publication: &Publication) -> Result<Vec<RelationId>, UpstreamError> {
        let shared = &self.shared;
        let (own, members) = bootstrap::membership(&shared.pool, publication.oid).await?;
        if own != Some(publication.digest) {
            tracing::warn!(publication = %publication.name, "the publication was altered");
            shared.restart.notify_one();
            return Ok(Vec::new());
        }
        let mut tables = shared.tables.lock();
        let mut forgotten = Vec::new();
        for (relation, entry) in tables.iter_mut() {
            if matches!(&entry.state, Wanted::Mirrored { membership, .. } if members.get(relation) != Some(membership))
            {
                forgotten.push(*relation);
                entry.attempt += 1;
                entry.state = Wanted::Due(Instant::now(), "it was taken out of the publication".into());
            }
        }
        let is_watched = |relation: &RelationId| tables.get(relation).is_some_and(Entry::is_watched);
        let strays = members.into_keys().filter(|relation| !is_watched(relation)).collect();
        drop(tables);
        self.free(shared.mirror.forget(&forgotten));
        shared.wanted.notify_one();
        Ok(strays)
    }

    fn is_watched(&self, relation: RelationId) -> bool {
        self.shared.tables.lock().get(&relation).is_some_and(Entry::is_watched)
    }

    async fn reload_on_demand(self) {
        let shared = &self.shared;
        loop {
            match self.loaded().lacks_texts {
                // Who held the table may have changed nothing, so that nothing else asks for it.
                true => drop(timeout(TEXTS_AGAIN, shared.reload.notified()).await),
                false => shared.reload.notified().await,
            }
            let mut is_told = false;
            while let Err(error) = self.load_catalog(Arc::clone(&self.loaded().catalog.orders)).await {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(%error, "the catalog could not be read; it is tried again until it can");
                }
                sleep(Duration::from_millis(500)).await;
            }
            self.want_listed();
            sleep(RELOAD_PAUSE).await;
        }
    }
}

impl Sink for Replication {
    fn apply(&self, transaction: UpstreamTransaction) {
        if transaction.messages.iter().any(|prefix| **prefix == *trigger::PREFIX) {
            self.shared.announced.lock().push(transaction.xid);
            self.shared.announcements.fetch_add(1, Ordering::SeqCst);
        }
        if !transaction.described.is_empty() {
            let described = transaction.described.iter().map(|relation| (transaction.xid, *relation));
            self.shared.described.lock().extend(described);
        }
        let has_rows = !transaction.tables.is_empty();
        if let (true, Some(standby)) = (has_rows, &self.shared.standby) {
            standby.note_transaction(transaction.xid);
        }
        self.shared.mirror.apply(transaction);
        // Not before: who counts it as exposed has looked at it.
        if has_rows {
            self.shared.counters.transactions.fetch_add(1, Ordering::Release);
        }
    }

    fn advance(&self, lsn: Lsn) {
        self.shared.mirror.advance(lsn);
    }

    fn applied(&self) -> Lsn {
        self.shared.mirror.applied()
    }

    async fn is_busy(&self, walsender: i32) -> bool {
        // What it waits in for the log, for its reader, or between the two (WalSenderMain, WalSenderWaitForWAL, WalSenderWriteData). One
        // that writes to a reader who hears nothing is not of use either.
        const LOOK: &str = "SELECT coalesce(wait_event, '') NOT LIKE 'WalSender%' FROM pg_stat_activity
                             WHERE pid = $1 AND backend_type = 'walsender'";
        let looked = timeout(LOOK_MAX, async {
            let row = self.shared.pool.connection().await?.query_opt(LOOK, &[&walsender]).await?;
            Ok::<_, UpstreamError>(row.is_some_and(|row| row.get(0)))
        });
        // Upstream does not answer at all: then it is not worth waiting for either.
        matches!(looked.await, Ok(Ok(true)))
    }

    async fn before_acknowledgement(&self) {
        if self.shared.standby.is_some() {
            self.look_for_escape().await;
        }
    }

    fn show(&self) {
        self.shared.applied.show(self.shared.mirror.applied());
    }

    async fn rest(&self) {
        // In mode `standby` commits wait.
        if self.shared.standby.is_none() {
            self.shared.applied.rest().await;
        }
    }
}

impl Entry {
    fn due(why: &'static str) -> Self {
        let state = Wanted::Due(Instant::now(), why.into());
        Self { state, attempt: 0, failures: 0, has_rows: false, outgrew: 0, unfit: None }
    }

    /// Somebody would notice that it loses its identity: the barrier's heartbeat, or its hand-over.
    fn is_watched(&self) -> bool {
        match self.state {
            Wanted::Copying { .. } | Wanted::Mirrored { .. } => true,
            Wanted::Due(..) | Wanted::Refused(_) | Wanted::Unfit { .. } => false,
        }
    }

    /// To be tried again, after a pause that doubles.
    fn fail(&mut self, why: String) {
        self.put_off(why, Duration::ZERO, RETRY_MAX);
    }

    /// Likewise, the pause being at least and at most this long.
    fn put_off(&mut self, why: String, pause_min: Duration, pause_max: Duration) {
        let pause = RETRY_MIN * (1 << self.failures.min(16));
        self.failures += 1;
        self.attempt += 1;
        self.state = Wanted::Due(Instant::now() + pause.min(pause_max).max(pause_min), why.into());
    }

    /// Not to be tried again until its columns change.
    fn refuse(&mut self, layout: i64, why: String) {
        self.attempt += 1;
        self.state = Wanted::Unfit { layout, why };
    }
}

/// How a table's stored columns compare with their expressions, all rows that were copied.
struct Stored {
    /// [`LoadedCatalog::stored_columns`] of it, as it was then.
    compared: String,
    is_otherwise: bool,
}

/// How a life of the stream ended.
enum Ended {
    RelayOnly(Cow<'static, str>),
    Lost(Cow<'static, str>),
    /// Upstream kept too much of its log for it.
    KeptTooMuch(Cow<'static, str>),
}

impl From<UpstreamError> for Ended {
    fn from(error: UpstreamError) -> Self {
        Self::Lost(error.to_string().into())
    }
}

/// Ends a server process that nobody waits for any more.
struct TerminateOnDrop {
    pool: ServicePool,
    process: i32,
    armed: bool,
}

impl TerminateOnDrop {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for TerminateOnDrop {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let (pool, process) = (self.pool.clone(), self.process);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                if let Ok(client) = pool.connection().await {
                    let _ = client.execute("SELECT pg_terminate_backend($1)", &[&process]).await;
                }
            });
        }
    }
}

/// Removes whatever freshets left behind on this upstream that no longer run; the names of the publications dropped.
pub async fn uninstall(address: &UpstreamAddress, prefix: &str) -> Result<Vec<String>, UpstreamError> {
    let pool = ServicePool::new(address, 1)?;
    let dropped = bootstrap::drop_abandoned(&pool, prefix).await;
    pool.close();
    dropped
}

/// What [`uninstall`] leaves.
pub async fn left_behind(address: &UpstreamAddress, prefix: &str) -> Result<Vec<Left>, UpstreamError> {
    let pool = ServicePool::new(address, 1)?;
    let left = bootstrap::left_behind(&pool, prefix).await;
    pool.close();
    left
}
