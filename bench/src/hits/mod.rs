//! The hits suite: what a kept reply costs beside the same bytes from a server that does no work, and what keeps replies
//! alive.
//!
//! [`mod@rates`]: rates and latencies against the ceilings, in every protocol, in pipelines, over many connections.
//! [`mod@survival`]: how many polls are still hits while others write. [`mod@storm`]: memory while every text is new.

mod rates;
mod storm;
mod survival;

use std::io::{self};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use freshet_tests::cluster::Cluster;
use tempfile::TempDir;

use crate::data::{Table, int, table, text};
use crate::parts;
use crate::results::Results;
use crate::servers::{Server, address, configuration, start_standby, wait_until_mirrored};
use crate::wire::Client;

pub(crate) struct Options {
    /// Length of one run.
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    /// Connections of the part that has many.
    pub(crate) connections: usize,
    /// Distinct texts of the storm.
    pub(crate) keys: u64,
    /// A part: rates, connections, latency, survival or storm.
    pub(crate) only: Option<String>,
    pub(crate) results: Option<PathBuf>,
}

const DATABASE: &str = "bench";
/// What kept replies may take, in bytes: small enough for the storm to reach it.
const RESULTS_MAX: u64 = 64 << 20;
const PARTS: [&str; 5] = ["rates", "connections", "latency", "survival", "storm"];

impl Options {
    fn wants(&self, part: &str, results: &Results) -> bool {
        self.only.as_ref().is_none_or(|only| only == part) && !results.is_done(part)
    }
}

/// Runs the suite and prints its tables.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    parts::check(options.only.as_deref(), PARTS)?;
    let setting = format!("max_connections={}", options.connections + 60);
    let mut stand = Stand::start(&setting)?;
    let versions = [
        ("freshet", env!("CARGO_PKG_VERSION").to_owned()),
        ("PostgreSQL", stand.cluster.psql("postgres", "SHOW server_version")),
    ];
    let settings = [
        ("seconds", options.seconds.to_string()),
        ("rounds", options.rounds.to_string()),
        ("connections", options.connections.to_string()),
        ("keys", options.keys.to_string()),
        configuration(&stand.cluster),
    ];
    let mut results = Results::open(options.results.as_deref(), "hits", &versions, &settings)?;
    if options.wants("rates", &results) {
        stand.standby = Some(Standby::start(&stand.folder.path().join("servers.log"))?);
        rates::protocols(options, &stand, &mut results)?;
        stand.standby = None;
    }
    if options.wants("connections", &results) {
        rates::connections(options, &stand, &mut results)?;
    }
    if options.wants("latency", &results) {
        rates::latency(options, &stand, &mut results)?;
    }
    if options.wants("survival", &results) {
        survival::measure(options, &stand, &mut results)?;
    }
    if options.wants("storm", &results) {
        storm::measure(options, &stand, &mut results)?;
    }
    Ok(())
}

/// PostgreSQL with the tables, and freshet before it.
struct Stand {
    cluster: Cluster,
    freshet: Server,
    /// While it is measured.
    standby: Option<Standby>,
    folder: TempDir,
}

/// A freshet that commits wait for, before a PostgreSQL of its own: those of the other parts must not wait.
struct Standby {
    freshet: Server,
    cluster: Cluster,
}

impl Standby {
    fn start(log: &Path) -> io::Result<Self> {
        let cluster = Cluster::start(&["shared_buffers=256MB"]);
        let names = load(&cluster)?;
        let freshet = start_standby(&cluster, DATABASE, &names, log)?;
        Ok(Self { freshet, cluster })
    }
}

impl Stand {
    fn start(setting: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
        let cluster = Cluster::start(&["shared_buffers=256MB", setting]);
        let names = load(&cluster)?;
        let cap = RESULTS_MAX.to_string();
        let arguments = ["serve-freshet", &cluster.url(DATABASE), &names.join(","), &cap];
        let freshet = Server::start(&arguments, &folder.path().join("servers.log"))?;
        wait_until_mirrored(freshet.address, DATABASE, names.len())?;
        Ok(Self { cluster, freshet, standby: None, folder })
    }

    fn upstream(&self) -> SocketAddr {
        address(&self.cluster)
    }

    /// A ceiling that knows these replies; with a shared upstream statement before each if `url` is one.
    fn ceiling(&self, replies: &Path, url: Option<&str>) -> io::Result<Server> {
        let replies = replies.display().to_string();
        let arguments: Vec<&str> = ["serve-canned", &replies].into_iter().chain(url).collect();
        Server::start(&arguments, &self.folder.path().join("servers.log"))
    }
}

/// The tables in a new database; their names with their schema.
fn load(cluster: &Cluster) -> io::Result<Vec<String>> {
    cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    let tables = tables();
    let mut client = Client::connect(address(cluster), "postgres", DATABASE)?;
    for table in &tables {
        table.load_upstream(&mut client)?;
    }
    Ok(tables.iter().map(|table| format!("public.{}", table.name)).collect())
}

/// Point reads, a scan of 5,000 rows, a thousand tenants of fifty rows each, and a series that grows at its end.
fn tables() -> Vec<Table> {
    let id = || int("id", |n| n);
    vec![
        table("points", 1_000_000, vec![id(), text("val", |n| format!("value_{n}"))]).with_index("id"),
        table("scanned", 5_000, vec![id(), text("name", |n| format!("row_{n}")), int("val", |n| 7 * n)]),
        table("rows", 50_000, vec![id(), int("tenant", |n| n % 1_000), int("val", |n| 13 * n % 1_000)])
            .with_index("tenant"),
        table("series", 50_000, vec![int("at", |n| n), int("val", |n| 17 * n % 1_000)]).with_index("at"),
    ]
}
