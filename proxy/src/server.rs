//! The wiring, top to bottom: upstream's address, metrics, answerers, listeners, sessions, shutdown.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use freshet_config::{ConfigErrors, DatabaseChoice, FreshnessMode, ListenAddress, Problem, Settings, TableChoice};
use freshet_engine::executor::memory::MemoryPool;
use freshet_engine::{Engine, EngineOptions};
use futures_util::StreamExt;
use parking_lot::Mutex;
use prometheus_client::metrics::histogram::Histogram;
use socket2::TcpKeepalive;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::admin::observe::Observed;
use crate::admin::{self, observe};
use crate::audit::Audit;
use crate::error::Refusal;
use crate::freshness::pins::PinOptions;
use crate::freshness::{Freshness, FreshnessOptions};
use crate::listener::{Listener, Places, socket_file};
use crate::metrics::{CauseLabel, Metrics};
use crate::net::Line;
use crate::replication::supervise::{self, MirrorOptions};
use crate::room;
use crate::session::answer::{Answerers, RelayOnly};
use crate::session::local::Local;
use crate::session::local::ahead::{self, Ahead};
use crate::session::local::answerer::LocalAnswerers;
use crate::session::local::capture::Captures;
use crate::session::local::databases::{Begun, DatabaseOptions, Databases};
use crate::session::local::demand;
use crate::session::local::flight::Flights;
use crate::session::local::patient::Patience;
use crate::session::local::recent::Recents;
use crate::session::machine::MachineLimits;
use crate::session::registry::Sessions;
use crate::session::settings::Interner;
use crate::session::state::Login;
use crate::session::tracker::Own;
use crate::session::{self, SessionContext};
use crate::shutdown::{Phase, Shutdown, Trigger};
use crate::startup::authenticate::{Passwordless, authenticate};
use crate::startup::binding::{self, ClientLeg};
use crate::startup::cancel::{CancelRegistry, Cancelled, key_of};
use crate::startup::negotiate::{Negotiated, negotiate};
use crate::startup::own::own_settings;
use crate::startup::{StartupError, refuse};
use crate::statistics::Statistics;
use crate::tls::files;
use crate::tls::serve::ServerTls;
use crate::upstream::address::{Endpoint, UpstreamAddress};
use crate::upstream::service::ServicePool;
use crate::upstream::{UpstreamError, cancel, relay};
use crate::workers::Workers;

/// For the whole process, before it does much: the allocator asks for pages of 2 MB, and one byte in use then keeps all of such a page
/// resident. Some sessions' buffers so took three times what they needed; scans are as fast without.
pub fn use_small_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        debug!(%error, "huge pages stay in use");
    }
}

/// Why freshet did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("upstream.url: {0}")]
    Address(#[from] UpstreamError),
    #[error("{setting}: cannot listen on {address}: {error}")]
    Listen { setting: &'static str, address: String, error: io::Error },
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
    #[error(transparent)]
    Settings(#[from] ConfigErrors),
}

/// What is wrong with the files that the settings name, and with the URL of upstream.
pub fn check_settings(settings: &Settings) -> Vec<Problem> {
    let mut problems = ServerTls::load(settings).err().unwrap_or_default();
    if let Err(error) = UpstreamAddress::of(&settings.upstream)
        && !settings.upstream.url.is_empty()
    {
        problems.push(wrong_url(error));
    }
    problems
}

/// What keeps these settings from being served: each connection would make another.
pub fn check_way(settings: &Settings) -> Option<Problem> {
    let address = UpstreamAddress::of(&settings.upstream).ok()?;
    let endpoint = match (&address.endpoint, address.host_address) {
        (Endpoint::Tcp { port, .. }, Some(at)) => Endpoint::Tcp { host: at.to_string(), port: *port },
        (endpoint, _) => endpoint.clone(),
    };
    let own = settings.listen.addresses.iter().find(|own| leads_to(&endpoint, own))?;
    let what = format!("leads to freshet itself, which listens at {own}");
    Some(Problem::new("upstream.url", what, "give it PostgreSQL's host and port, or listen at another port"))
}

/// As far as that is told by the names alone.
fn leads_to(endpoint: &Endpoint, own: &ListenAddress) -> bool {
    match (endpoint, own) {
        (Endpoint::Tcp { host, port }, ListenAddress::Tcp(own)) => {
            let Some((own, own_port)) = own.rsplit_once(':') else { return false };
            let own = own.trim_matches(['[', ']']);
            let (at, own_at) = (host.parse::<IpAddr>().ok(), own.parse::<IpAddr>().ok());
            let is_here = |name: &str, at: Option<IpAddr>| name == "localhost" || at.is_some_and(|at| at.is_loopback());
            // localhost may be any of the loopback addresses, and one that is unspecified listens at all of them.
            let is_met = own == host
                || at.is_some() && at == own_at
                || is_here(host, at) && own_at.is_some_and(|own| own.is_unspecified())
                || is_here(host, at) && is_here(own, own_at) && (host == "localhost" || own == "localhost");
            own_port == port.to_string() && *port != 0 && is_met
        }
        (Endpoint::Unix(path), ListenAddress::Directory(own)) => *path == socket_file(own),
        (Endpoint::Tcp { .. } | Endpoint::Unix(_), _) => false,
    }
}

fn wrong_url(error: UpstreamError) -> Problem {
    let what = match error {
        UpstreamError::Address(what) => what,
        error => error.to_string(),
    };
    Problem::new("upstream.url", "cannot be used", what)
}

/// Binds every listen address of the settings.
pub async fn bind(settings: &Settings) -> Result<Vec<Listener>, ServerError> {
    let mut listeners = Vec::new();
    for address in &settings.listen.addresses {
        let bound = Listener::bind(address).await;
        let failed = |error| ServerError::Listen { setting: "listen.addresses", address: address.to_string(), error };
        listeners.push(bound.map_err(failed)?);
    }
    Ok(listeners)
}

/// Serves until the shutdown comes. `trigger` is what [`Shutdown`]s listen to: freshet moves it on to
/// [`Phase::Stopping`] itself when the drain time is over.
pub async fn run(settings: Settings, listeners: Vec<Listener>, trigger: Arc<Trigger>) -> Result<(), ServerError> {
    let admin = match settings.admin.address.as_str() {
        "" => None,
        address => Some(TcpListener::bind(address).await.map_err(|error| ServerError::Listen {
            setting: "admin.address",
            address: address.into(),
            error,
        })?),
    };
    run_on(settings, listeners, admin, trigger).await
}

/// [`run`] with an admin listener that is bound already.
pub async fn run_on(
    settings: Settings,
    listeners: Vec<Listener>,
    admin: Option<TcpListener>,
    trigger: Arc<Trigger>,
) -> Result<(), ServerError> {
    if settings.mirror.tables != TableChoice::None
        && let Some(shortage) = room::shortage(&settings)
    {
        warn!("{shortage}");
    }
    let metrics = Metrics::new();
    let address = UpstreamAddress::of(&settings.upstream)?;
    let workers = Arc::new(Workers::start(settings.limits.worker_threads).map_err(ServerError::Threads)?);
    let databases = match settings.mirror.tables {
        TableChoice::None => None,
        TableChoice::Auto | TableChoice::List(_) => {
            Some(begin_databases(&settings, address.clone(), &metrics, &workers)?)
        }
    };
    let observed = Arc::new(Observed::new(
        metrics.clone(),
        databases.clone(),
        address.to_string(),
        settings.freshness.mode.name(),
        trigger.listen(),
    ));
    let mut of_admin = trigger.listen();
    let token = Some(settings.admin.token.clone()).filter(|token| !token.is_empty());
    let admin = admin.map(|listener| {
        let stop = async move { of_admin.reached(Phase::Stopping).await };
        tokio::spawn(admin::serve(listener, observed, token, stop))
    });
    let stopping = Arc::clone(&trigger);
    let served = match databases {
        None => {
            let relay = RelayOnly { pool: ServicePool::new(&address, 1)? };
            serve(settings, address, listeners, trigger, relay, metrics, workers).await
        }
        Some(databases) => {
            let mirroring = CancellationToken::new();
            let until = mirroring.clone();
            let running = Arc::clone(&databases);
            let running = tokio::spawn(async move { running.run(until).await });
            if settings.mirror.databases != DatabaseChoice::One {
                tokio::spawn(tidy_up(Arc::clone(&databases), settings.clone(), mirroring.clone()));
            }
            let answerers = LocalAnswerers(databases);
            let served = serve(settings, address, listeners, trigger, answerers, metrics, Arc::clone(&workers)).await;
            mirroring.cancel();
            let _ = running.await;
            served
        }
    };
    stopping.advance(Phase::Stopping);
    if let Some(admin) = admin {
        // A client of the page that keeps its connection must not hold the shutdown up.
        let _ = tokio::time::timeout(Duration::from_secs(1), admin).await;
    }
    served
}

/// The database of the URL, and the way to others.
fn begin_databases(
    settings: &Settings,
    address: UpstreamAddress,
    metrics: &Metrics,
    workers: &Arc<Workers>,
) -> Result<Arc<Databases>, ServerError> {
    let waits = metrics.barrier_wait_seconds.clone();
    let pool = MemoryPool::new(usize::try_from(settings.limits.queries_memory_bytes_max).unwrap_or(usize::MAX));
    let first = begin_local(settings, address.clone(), &pool, waits.clone(), workers.first())?;
    let options = DatabaseOptions {
        choice: settings.mirror.databases.clone(),
        others_max: settings.mirror.databases_max - 1,
        idle_max: Some(settings.mirror.database_idle_ms).filter(|ms| *ms > 0).map(Duration::from_millis),
    };
    let (mut settings, workers) = (settings.clone(), Arc::downgrade(workers));
    if settings.freshness.mode == FreshnessMode::Standby {
        // Commits wait for one of them; what the others' readers need, a barrier tells.
        settings.freshness.mode = FreshnessMode::Exact;
    }
    let begin = move |name: &str| {
        let ended = || UpstreamError::Protocol("freshet ends");
        let workers = workers.upgrade().ok_or_else(ended)?;
        begin_local(&settings, address.with_database(name), &pool, waits.clone(), workers.next())
    };
    Ok(Databases::new(first, options, Box::new(begin), Box::new(observe::virtual_table)))
}

/// In databases that may not be read again for long, what freshets that ended by force left behind, which would be in the way of
/// who drops a table's key. A mirror that begins does so for its own database.
async fn tidy_up(databases: Arc<Databases>, settings: Settings, shutdown: CancellationToken) {
    let tidy = async {
        let Ok(address) = UpstreamAddress::of(&settings.upstream) else { return };
        let all = loop {
            match databases.first().freshness.neighbours().all().await {
                Ok(all) => break all,
                Err(_) => tokio::time::sleep(ASK_UPSTREAM_AGAIN).await,
            }
        };
        if let DatabaseChoice::List(names) = &settings.mirror.databases {
            let is_there = |name: &String| *name == address.database || all.iter().any(|other| other.name == *name);
            for name in names.iter().filter(|name| !is_there(name)) {
                warn!(name, "mirror.databases names what is no database");
            }
        }
        let may = |name: &String| match &settings.mirror.databases {
            DatabaseChoice::One => false,
            DatabaseChoice::Auto => true,
            DatabaseChoice::List(names) => names.contains(name),
        };
        for other in all.into_iter().filter(|other| other.obstacle.is_none() && may(&other.name)) {
            let address = address.with_database(&other.name);
            match supervise::uninstall(&address, &settings.mirror.publication).await {
                Ok(dropped) if dropped.is_empty() => {}
                Ok(dropped) => info!(database = other.name, ?dropped, "removed what an earlier freshet left behind"),
                Err(error) => {
                    debug!(database = other.name, %error, "not looked for what an earlier freshet left behind")
                }
            }
        }
    };
    let _ = shutdown.run_until_cancelled(tidy).await;
}

/// The engine and the mirror of a database, with its share of the memory. `pool`: what the statements of all databases use.
fn begin_local(
    settings: &Settings,
    address: UpstreamAddress,
    pool: &Arc<MemoryPool>,
    waits: Histogram,
    beside_sessions: &Handle,
) -> Result<Begun, UpstreamError> {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let database = address.database.clone();
    let shares = settings.mirror.shares();
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let share = |bytes: u64| size(bytes / shares);
    let cache = settings.cache.within_budget();
    let result_bytes_max = cache.result_bytes_max / shares;
    let mirror = MirrorOptions {
        tables: settings.mirror.tables.clone(),
        publication: settings.mirror.publication.clone(),
        set_replica_identity_full: settings.mirror.set_replica_identity_full,
        event_trigger: settings.mirror.event_trigger,
        copy_workers: settings.mirror.copy_workers,
        memory_bytes_max: share(settings.mirror.memory_bytes_max),
        wal_kept_bytes_max: settings.mirror.wal_kept_bytes_max,
        transaction_bytes_max: share(settings.mirror.transaction_bytes_max()),
        standby_believed: Duration::from_millis(settings.freshness.max_lag_ms),
        standby: (settings.freshness.mode == FreshnessMode::Standby).then(|| settings.freshness.standby_name.clone()),
        ..MirrorOptions::new(address)
    };
    let freshness = FreshnessOptions {
        wait_budget: Duration::from_millis(settings.freshness.wait_budget_ms),
        lag_max: Duration::from_millis(settings.freshness.max_lag_ms),
        pins: PinOptions {
            pins_max: (settings.freshness.snapshots_max / shares as usize).max(1),
            age_max: Duration::from_millis(settings.freshness.snapshot_age_max_ms),
            bytes_max: share(settings.freshness.snapshot_bytes_max),
        },
    };
    let engine = EngineOptions {
        result_bytes_max: result_bytes_max - Recents::share(result_bytes_max),
        reply_bytes_max: size(settings.cache.reply_bytes_max),
        join_bytes_max: share(cache.join_bytes_max),
        plan_bytes_max: cache.plan_bytes_max / shares,
        limits: freshet_engine::executor::Limits {
            memory_bytes_max: size(settings.limits.query_memory_bytes_max),
            rows_max: size(settings.limits.query_rows_max),
            join_rows_max: size(settings.limits.query_join_rows_max),
            threads_max: std::thread::available_parallelism().map_or(1, usize::from).min(QUERY_THREADS_MAX),
            pool: Arc::clone(pool),
        },
    };
    let mirroring = CancellationToken::new();
    let local = Local {
        engine: Engine::new(engine),
        freshness: Freshness::start(mirror, freshness, waits, beside_sessions, mirroring.clone())?,
        audit: Audit::new(settings.audit.sample_one_in, settings.audit.slower_times),
        statistics: Statistics::default(),
        captures: Captures::new(share(settings.cache.capture_bytes_max), size(settings.cache.reply_bytes_max)),
        recent: Recents::new(result_bytes_max),
        ahead: Ahead::new(settings.cache.refresh_ahead_percent, shares),
        flights: Flights::new(Duration::from_millis(settings.cache.shared_wait_ms)),
        database,
        // Not a setting: only the comparison with other projects' test suites wants it (tests/suites).
        patience: Patience::if_wanted(),
        number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        is_used: AtomicBool::new(true),
        is_retired: AtomicBool::new(false),
    };
    let local = Arc::new(local);
    beside_sessions.spawn(demand::watch(Arc::downgrade(&local)));
    if settings.cache.refresh_ahead_percent > 0 {
        beside_sessions.spawn(ahead::run(Arc::downgrade(&local)));
    }
    Ok(Begun { local, mirroring })
}

/// What every accepted connection needs.
struct Front<A> {
    settings: Settings,
    upstream: UpstreamAddress,
    tls: Option<ServerTls>,
    answerers: A,
    context: Arc<SessionContext>,
    places: Places,
    workers: Arc<Workers>,
    shutdown: Shutdown,
    /// Of both lines of a session.
    keepalive: TcpKeepalive,
    /// That upstream cannot be reached.
    told: Seldom,
}

/// What is told no more than once in [`TELL_AGAIN`].
#[derive(Default)]
struct Seldom {
    /// When it was told last, and how often it was not since.
    last: Mutex<(Option<std::time::Instant>, u64)>,
}

impl Seldom {
    /// How often it was left out, if it is time.
    fn turn(&self) -> Option<u64> {
        let mut last = self.last.lock();
        if last.0.is_some_and(|at| at.elapsed() <= TELL_AGAIN) {
            last.1 += 1;
            return None;
        }
        last.0 = Some(std::time::Instant::now());
        Some(std::mem::take(&mut last.1))
    }
}

/// The part of [`run`] that serves clients, with any answerers.
pub async fn serve<A: Answerers>(
    settings: Settings,
    address: UpstreamAddress,
    listeners: Vec<Listener>,
    trigger: Arc<Trigger>,
    answerers: A,
    metrics: Metrics,
    workers: Arc<Workers>,
) -> Result<(), ServerError> {
    let keepalive = TcpKeepalive::new().with_time(Duration::from_millis(settings.listen.keepalive_idle_ms));
    let tls = ServerTls::load(&settings).map_err(|problems| ConfigErrors { problems })?;
    for exposed in exposed_keys(&settings, &address) {
        warn!("{exposed}; {LET_NOBODY_ELSE}");
    }
    let front = Arc::new(Front {
        upstream: address.with_keepalive(keepalive.clone()),
        tls,
        keepalive,
        told: Seldom::default(),
        answerers,
        context: Arc::new(SessionContext {
            metrics,
            interner: Interner::default(),
            sessions: Sessions::default(),
            limits: MachineLimits {
                statement_bytes_max: settings.limits.statement_bytes_max,
                group_bytes_max: settings.limits.group_bytes_max,
                prepared_statements_max: settings.limits.prepared_statements_max,
                answers_locally: settings.mirror.tables != TableChoice::None,
                // Sessions that choose mode session by themselves wait for writes of the whole table.
                tells_keys: settings.freshness.mode == FreshnessMode::Session,
                // One per start of the server, for its whole life.
                schema: settings.admin.schema.clone().leak(),
            },
            session_buffer_bytes: settings.limits.session_buffer_bytes,
            freshness: settings.freshness.mode,
            cancels: CancelRegistry::default(),
        }),
        places: Places::new(settings.listen.sessions_max),
        workers,
        shutdown: trigger.listen(),
        settings,
    });
    let mut accepting = JoinSet::new();
    for listener in listeners {
        info!(address = %listener.address(), upstream = %front.upstream, "listening");
        accepting.spawn(accept(Arc::clone(&front), listener));
    }
    let mut beside = JoinSet::new();
    beside.spawn(tell_binding_at_start(Arc::clone(&front)));
    beside.spawn(reload_on_hangup(Arc::clone(&front)));
    let drain_limit = Duration::from_millis(front.settings.listen.drain_timeout_ms);
    let mut sessions: Vec<JoinSet<()>> = Vec::new();
    while let Some(finished) = accepting.join_next().await {
        sessions.extend(finished);
    }
    let open: usize = sessions.iter().map(JoinSet::len).sum();
    info!(sessions = open, "draining");
    let mut cut_short = trigger.listen();
    let is_drained = tokio::select! {
        drained = tokio::time::timeout(drain_limit, ended(&mut sessions)) => drained.is_ok(),
        () = cut_short.reached(Phase::Cancelling) => false,
    };
    if !is_drained {
        warn!("drain time is over: ending the remaining sessions");
        trigger.advance(Phase::Cancelling);
        // Their statements first: what the client is told has been ended must not be carried out after all.
        let _ = tokio::time::timeout(CANCELLED_WITHIN, cancel_all(&front)).await;
        let _ = tokio::time::timeout(CANCELLED_WITHIN, ended(&mut sessions)).await;
        trigger.advance(Phase::Stopping);
        // A session that cannot even take its last message is dropped.
        let _ = tokio::time::timeout(Duration::from_secs(1), ended(&mut sessions)).await;
    }
    info!("no session is left");
    Ok(())
}

async fn ended(sessions: &mut [JoinSet<()>]) {
    for set in sessions {
        while set.join_next().await.is_some() {}
    }
}

/// Asks upstream to end what it does for any session.
async fn cancel_all<A: Answerers>(front: &Front<A>) {
    let limit = front.upstream.connect_timeout;
    let packets = futures_util::stream::iter(front.context.cancels.packets());
    let send = async |packet: Vec<u8>| {
        if let Err(error) = cancel::send(&front.upstream, &packet, limit).await {
            debug!(%error, "a statement could not be cancelled");
        }
    };
    packets.for_each_concurrent(CANCELS_AT_ONCE, send).await;
}

/// Says whether SCRAM works between the two legs.
async fn tell_binding<A: Answerers>(front: &Front<A>) -> io::Result<()> {
    let clients = client_leg(front.tls.as_ref(), &front.settings);
    let limit = front.upstream.connect_timeout;
    for binding in binding::assess(&clients, &front.upstream, limit).await? {
        match binding.remedy() {
            None => info!("{}", binding.text()),
            Some(remedy) => warn!(remedy, "{}", binding.text()),
        }
    }
    Ok(())
}

/// Threads that one statement may use, of as many that help others at the same time.
const QUERY_THREADS_MAX: usize = 4;
/// For how long statements may take to end, and upstream to be asked to end them, once the drain time is over.
const CANCELLED_WITHIN: Duration = Duration::from_secs(1);
const CANCELS_AT_ONCE: usize = 16;
/// What goes wrong again and again is told again after this long.
const TELL_AGAIN: Duration = Duration::from_secs(1);
/// While upstream cannot be reached at start.
const ASK_UPSTREAM_AGAIN: Duration = Duration::from_secs(5);

/// The clients' leg by the settings.
pub fn client_leg(tls: Option<&ServerTls>, settings: &Settings) -> ClientLeg {
    ClientLeg { certificate: tls.map(ServerTls::certificate), is_required: settings.listen.requires_tls() }
}

/// What mends [`exposed_keys`].
pub const LET_NOBODY_ELSE: &str = "let nobody but freshet's user read it (chmod 600)";

/// Private keys of both legs that others can get at, in words.
pub fn exposed_keys(settings: &Settings, upstream: &UpstreamAddress) -> Vec<String> {
    let keys = [settings.listen.tls_key.as_deref(), upstream.security.key_file.as_deref()];
    keys.into_iter().flatten().filter_map(files::exposure).collect()
}

/// Says once upstream can be reached how the two legs fit.
async fn tell_binding_at_start<A: Answerers>(front: Arc<Front<A>>) {
    let mut is_told = false;
    while let Err(error) = tell_binding(&front).await {
        if !is_told {
            warn!(upstream = %front.upstream.endpoint, %error, "upstream cannot be reached");
        }
        is_told = true;
        tokio::time::sleep(ASK_UPSTREAM_AGAIN).await;
    }
}

/// Renewed certificates are taken into use without a restart. Where there are none the signal changes nothing; without a handler it
/// would end the program.
async fn reload_on_hangup<A: Answerers>(front: Arc<Front<A>>) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        let problems = reload(&front);
        for problem in &problems {
            error!("{problem}; what is in use stays");
        }
        if problems.is_empty() {
            info!("the files of the TLS settings, if there are any, are read again");
            if let Err(error) = tell_binding(&front).await {
                warn!(upstream = %front.upstream.endpoint, %error, "upstream cannot be reached");
            }
        }
    }
}

/// Reads the files of both legs again; each leg goes on with what it has where its own cannot be used.
fn reload<A>(front: &Front<A>) -> Vec<Problem> {
    let mut problems = front.tls.as_ref().and_then(|tls| tls.reload().err()).unwrap_or_default();
    if let Err(error) = front.upstream.reload(&front.settings.upstream.url) {
        problems.push(wrong_url(error));
    }
    problems
}

/// Accepts until the drain begins; the sessions it started.
async fn accept<A: Answerers>(front: Arc<Front<A>>, listener: Listener) -> JoinSet<()> {
    let connections_max = 2 * front.settings.listen.sessions_max + 16;
    let mut shutdown = front.shutdown.clone();
    let mut sessions = JoinSet::new();
    let told = Seldom::default();
    loop {
        tokio::select! {
            () = shutdown.reached(Phase::Draining) => return sessions,
            Some(_) = sessions.join_next() => {}
            accepted = listener.accept(&front.keepalive) => match accepted {
                // Those that have not said yet what they want are bounded, too (PostgreSQL: MaxLivePostmasterChildren).
                Ok(client) if sessions.len() >= connections_max => {
                    warn!(client = %client.peer(), connections_max, "too many connections that are not logged in");
                }
                Ok(client) => front.workers.spawn(&mut sessions, handle(Arc::clone(&front), client)),
                Err(error) => {
                    // Out of file descriptors, most likely: they come back when sessions end.
                    if let Some(left_out) = told.turn() {
                        warn!(%error, left_out, "connections cannot be accepted");
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
}

/// One connection from its first byte to its last.
async fn handle<A: Answerers>(front: Arc<Front<A>>, client: Line) {
    let peer = client.peer();
    let started = match client.adopt() {
        Ok(client) => start_up(&front, client, &peer).await,
        Err(error) => Err(error.into()),
    };
    match started {
        Ok(()) => {}
        Err(StartupError::Refused(refusal)) => {
            front.context.metrics.refused.get_or_create(&CauseLabel { cause: refusal.label() }).inc();
            match refusal {
                // Of upstream that is told.
                Refusal::UpstreamUnreachable => debug!(client = %peer, "{}", refusal.fields().message),
                _ => warn!(client = %peer, "{}", refusal.fields().message),
            }
        }
        Err(error) => debug!(client = %peer, %error, "start-up ended"),
    }
}

async fn start_up<A: Answerers>(front: &Front<A>, client: Line, peer: &str) -> Result<(), StartupError> {
    let deadline = tokio::time::Instant::now() + Duration::from_millis(front.settings.listen.login_timeout_ms);
    let connect_limit = front.upstream.connect_timeout;
    let mut shutdown = front.shutdown.clone();
    let tls = front.tls.as_ref().map(ServerTls::config);
    let (client, packet, rest) = match before_log_in(deadline, &mut shutdown, negotiate(client, tls)).await?? {
        Negotiated::Startup { client, packet, rest } => (client, packet, rest),
        Negotiated::Cancel { mut client, packet } => {
            front.context.metrics.cancel_requests.inc();
            let sent = match front.context.cancels.cancel(key_of(&packet)).await {
                Cancelled::Here => Ok(()),
                Cancelled::Upstream(_passing) => cancel::send(&front.upstream, &packet, connect_limit).await,
            };
            // The client takes the close for the end of the request.
            let _ = client.shutdown().await;
            return sent.map_err(StartupError::Io);
        }
    };
    if front.settings.listen.requires_tls() && !client.is_encrypted() && !client.is_unix() {
        return Err(refuse(client, Refusal::TlsRequired).await);
    }
    let Some(place) = front.places.take() else {
        return Err(refuse(client, Refusal::SessionsMax).await);
    };
    let opened = relay::open(&front.upstream, &packet, connect_limit);
    let upstream = match before_log_in(deadline, &mut shutdown, opened).await? {
        Ok(upstream) => upstream,
        Err(error) => {
            // Pools that come again tell it once a second, not each.
            if let Some(left_out) = front.told.turn() {
                warn!(upstream = %front.upstream.endpoint, %error, left_out, "upstream cannot be reached");
            }
            return Err(refuse(client, Refusal::UpstreamUnreachable).await);
        }
    };
    let passwordless = match front.settings.listen.allow_passwordless_upstream {
        true => Passwordless::Allowed,
        false => Passwordless::ForLocalClients,
    };
    let relayed = authenticate((client, rest), upstream, &packet, passwordless);
    let logged_in = before_log_in(deadline, &mut shutdown, relayed).await??;
    let own = own_settings(&packet, front.context.limits.schema);
    let (defaults, refused) = Own::of(&own);
    if let Some((name, value)) = refused {
        warn!(client = %peer, setting = ?name, ?value, "a setting of freshet's in a start-up packet that is none");
    }
    let login = Login {
        user: logged_in.user.clone(),
        database: logged_in.database.clone(),
        application_name: logged_in.application_name.clone(),
        process_id: logged_in.process_id,
        is_replication: logged_in.is_replication,
        client: peer.to_string(),
        defaults,
    };
    let answerer = front.answerers.open(&login);
    session::run(logged_in, login, answerer, Arc::clone(&front.context), front.shutdown.clone()).await;
    drop(place);
    Ok(())
}

/// A step of the start-up: there is a limit for all of it, and who is not logged in is not waited for at shutdown.
async fn before_log_in<T>(
    deadline: tokio::time::Instant,
    shutdown: &mut Shutdown,
    step: impl Future<Output = T>,
) -> Result<T, StartupError> {
    tokio::select! {
        done = tokio::time::timeout_at(deadline, step) => done.map_err(|_| StartupError::Timeout),
        () = shutdown.reached(Phase::Draining) => Err(StartupError::ShuttingDown),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use freshet_config::ListenAddress;

    use super::*;

    #[test]
    fn a_url_that_leads_to_freshet_itself_is_refused() {
        let mut settings = Settings::default();
        let mut is_told = |url: &str, listen: ListenAddress| {
            settings.upstream.url = url.into();
            settings.listen.addresses = vec![listen];
            check_way(&settings).is_some()
        };
        let at = |address: &str| ListenAddress::Tcp(address.into());
        assert!(is_told("postgres://me@localhost:5433/db", at("127.0.0.1:5433")));
        assert!(is_told("postgres://me@127.0.0.1:5433/db", at("0.0.0.0:5433")));
        assert!(is_told("postgres://me@[::1]:5433/db", at("[::]:5433")));
        assert!(is_told(
            "postgres:///db?host=/run/freshet&port=5433&user=me",
            ListenAddress::Directory("/run/freshet".into())
        ));
        assert!(!is_told("postgres://me@localhost:5432/db", at("127.0.0.1:5433")));
        assert!(!is_told("postgres://me@db.example:5433/db", at("127.0.0.1:5433")));
        assert!(!is_told("postgres://me@127.0.0.1:5433/db", at("127.0.0.2:5433")));
        assert!(!is_told("postgres://me@localhost:5433/db?hostaddr=192.0.2.7", at("127.0.0.1:5433")));
        assert!(!is_told(
            "postgres:///db?host=/run/postgresql&port=5433&user=me",
            ListenAddress::Directory("/run/freshet".into())
        ));
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_listened_on_is_told_with_its_setting() {
        let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = busy.local_addr().unwrap().to_string();
        let mut settings = Settings::default();
        let mut told = Vec::new();
        for address in [ListenAddress::Tcp(taken.clone()), ListenAddress::Directory(PathBuf::from("/nope/dir"))] {
            settings.listen.addresses = vec![address];
            told.push(bind(&settings).await.expect_err("not there").to_string());
        }
        settings.admin.address = taken.clone();
        let (trigger, _) = crate::shutdown::channel();
        told.push(run(settings, Vec::new(), Arc::new(trigger)).await.expect_err("taken").to_string());
        drop(busy);
        let starts = [
            format!("listen.addresses: cannot listen on {taken}: "),
            "listen.addresses: cannot listen on /nope/dir: ".into(),
            format!("admin.address: cannot listen on {taken}: "),
        ];
        for (told, start) in told.iter().zip(starts) {
            assert!(told.starts_with(&start), "{told}");
        }
    }
}
