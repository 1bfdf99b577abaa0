//! The batch suite: statements one after the other on one connection, by upstream, by freshet in mode `session` and by
//! DuckDB in process.
//!
//! A workload that reads has three variants: the same text (`hit`s are allowed), `_nc` with another comment each time,
//! and `_nl` with another literal each time, for which no kept reply fits, so that the engine really runs. Rows are
//! compared before anything is timed, and every reply over the wire again while it is, but for the lookups', whose texts
//! all differ.

mod analytics;
mod reads;
mod series;
mod workloads;

use std::cell::LazyCell;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use freshet_bench_duckdb::{Database, DuckDb};
use freshet_tests::cluster::Cluster;
use hdrhistogram::Histogram;

use crate::batch::series::{Series, each, repeat, report, timed};
use crate::batch::workloads::{Asks, Group, Workload};
use crate::console::{print, say};
use crate::data::Table;
use crate::parts;
use crate::process::{postmaster, used};
use crate::reference;
use crate::results::Results;
use crate::rows::{Row, Same, compare, sorted_by};
use crate::servers::{Server, configuration, last_route, settle, wait_for, wait_until_mirrored};
use crate::turns::turns;
use crate::wire::{Answer, Client, column_names, query_message, rows, sorted_rows};

pub(crate) struct Options {
    pub(crate) rounds: usize,
    /// Least duration of one round of a workload that reads.
    pub(crate) round_ms: u64,
    /// None: one for each processor.
    pub(crate) duckdb_threads: Option<usize>,
    pub(crate) quick: bool,
    /// A workload without its variant, or a group.
    pub(crate) only: Option<String>,
    pub(crate) results: Option<PathBuf>,
}

const UPSTREAM: &str = "upstream";
const CHEAPEST: &str = "cheapest relay";
const FRESHET: &str = "freshet";
const DUCKDB: &str = "DuckDB in process";
/// What the published suite has beside these.
const NOT_HERE: [(&str, &str); 2] = [
    ("vector", "freshet's engine has no vector type, and pgvector is not part of PostgreSQL"),
    ("parquet", "freshet mirrors PostgreSQL's tables; it reads no files"),
];

/// Runs the suite and prints its table; an error if a row differs.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    let groups = workloads::all();
    let named = groups.iter().flat_map(|group| group.workloads.iter().map(|one| one.name).chain([group.name]));
    parts::check(options.only.as_deref(), named.chain(NOT_HERE.map(|(name, _)| name)))?;
    let (duckdb, missing) = reference::load();
    let clusters = Clusters::start();
    let cluster = &clusters.followed;
    let version = cluster.psql("postgres", "SHOW server_version");
    let of_duckdb = reference::version(duckdb.as_ref());
    let versions = [("freshet", env!("CARGO_PKG_VERSION").to_owned()), ("PostgreSQL", version), ("DuckDB", of_duckdb)];
    let settings = [
        ("rounds", options.rounds.to_string()),
        ("round", format!("at least {} ms", options.round_ms)),
        ("freshness", "session".into()),
        ("DuckDB's threads", options.duckdb_threads.map_or("processors".into(), |threads| threads.to_string())),
        configuration(cluster),
    ];
    let mut results = Results::open(options.results.as_deref(), "batch", &versions, &settings)?;
    if let Some(reason) = missing {
        results.skip("DuckDB", &reason)?;
    }
    for (name, reason) in NOT_HERE.iter().filter(|(name, _)| options.only.as_ref().is_none_or(|only| only == name)) {
        if !results.is_done(name) {
            results.skip(name, reason)?;
        }
    }
    print(&format!(
        "\n{:28} {:>12} {:>12} {:>12} {:>22} {:>22}  answered by\n",
        "ms per iteration", UPSTREAM, FRESHET, DUCKDB, "x upstream", "x DuckDB"
    ));
    for group in groups {
        if options.quick && group.is_large {
            results.skip(group.name, "too large for a quick run")?;
            continue;
        }
        one_group(options, &group, &clusters, duckdb.as_ref(), &mut results)?;
    }
    Ok(())
}

/// Writes are as durable as they are by default.
struct Clusters {
    /// Behind freshet.
    followed: Cluster,
    /// Nobody follows its changes: what writes cost without freshet. Started for the first group that writes.
    alone: LazyCell<Cluster>,
}

const SETTINGS: [&str; 3] = ["shared_buffers=512MB", "max_wal_size=4GB", "fsync=on"];

impl Clusters {
    fn start() -> Self {
        let alone = || Cluster::start(&[SETTINGS.as_slice(), &["wal_level=replica"]].concat());
        Self { followed: Cluster::start(&SETTINGS), alone: LazyCell::new(alone) }
    }
}

fn one_group(
    options: &Options,
    group: &Group,
    clusters: &Clusters,
    duckdb: Option<&DuckDb>,
    results: &mut Results,
) -> io::Result<()> {
    let is_wanted = |workload: &&Workload| {
        let is_named = options.only.as_ref().is_none_or(|only| *only == workload.name || *only == group.name);
        is_named && !results.is_done(workload.name)
    };
    let wanted: Vec<&Workload> = group.workloads.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let systems = Systems::start(group, clusters, duckdb, options.duckdb_threads)?;
    for workload in wanted {
        let named = |error: io::Error| io::Error::other(format!("{}: {error}", workload.name));
        say(workload.name);
        one_workload(options, workload, &systems, results).map_err(named)?;
        results.end(workload.name)?;
    }
    let database = systems.database.clone();
    drop(systems);
    // A slot goes with its walsender, which notices a moment later that freshet has gone.
    let slots = format!("SELECT count(*) FROM pg_replication_slots WHERE database = '{database}'");
    wait_for(|| clusters.followed.psql("postgres", &slots) == "0", "the end of freshet's slot")?;
    let end = format!("DROP DATABASE {database} WITH (FORCE)");
    clusters.followed.psql("postgres", &end);
    if group.writes() {
        clusters.alone.psql("postgres", &end);
    }
    Ok(())
}

/// Everything that answers the statements of one group: a database of PostgreSQL with freshet before it, one of a PostgreSQL that
/// nobody follows where the group writes, and one of DuckDB.
struct Systems {
    /// For reads the PostgreSQL behind freshet, which has nothing to follow meanwhile.
    upstream: SocketAddr,
    cheapest: Server,
    freshet: Server,
    duckdb: Option<Database>,
    database: String,
    /// Of upstream, and of what is behind freshet.
    postmasters: [u32; 2],
}

impl Systems {
    /// `duckdb_threads`: see [`Options::duckdb_threads`].
    fn start(
        group: &Group,
        clusters: &Clusters,
        duckdb: Option<&DuckDb>,
        duckdb_threads: Option<usize>,
    ) -> io::Result<Self> {
        // Some names are words of SQL.
        let database = format!("bench_{}", group.name);
        let tables = (group.tables)();
        let cluster = &clusters.followed;
        load(cluster, &database, &tables)?;
        let upstream = if group.writes() { &*clusters.alone } else { cluster };
        if group.writes() {
            load(upstream, &database, &tables)?;
        }
        let threads = duckdb_threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let duckdb = duckdb.map(|duckdb| duckdb.open(threads)).transpose().map_err(io::Error::other)?;
        if let Some(duckdb) = &duckdb {
            tables.iter().try_for_each(|table| table.load_duckdb(duckdb))?;
        }
        let log = std::env::temp_dir().join(format!("freshet-bench-{}.log", std::process::id()));
        let names: Vec<String> = tables.iter().map(|table| format!("public.{}", table.name)).collect();
        let names = if names.is_empty() { "auto".to_owned() } else { names.join(",") };
        let freshet = Server::start(&["serve-freshet", &cluster.url(&database), &names], &log)?;
        wait_until_mirrored(freshet.address, &database, tables.len())?;
        let cheapest = Server::start(&["serve-cheapest", &cluster.address().to_string()], &log)?;
        let _ = std::fs::remove_file(log);
        let postmasters = [postmaster(upstream)?, postmaster(cluster)?];
        Ok(Self { upstream: upstream.address(), cheapest, freshet, duckdb, database, postmasters })
    }

    /// See [`used`]. DuckDB is in this process.
    fn used(&self, system: &str) -> [Duration; 3] {
        let [alone, followed] = self.postmasters.map(Some);
        match system {
            FRESHET => used(Some(self.freshet.process.id), followed),
            CHEAPEST => used(Some(self.cheapest.process.id), followed),
            UPSTREAM => used(None, alone),
            _ => used(None, None),
        }
    }

    fn connect(&self, system: &str) -> io::Result<Client> {
        let address = match system {
            FRESHET => self.freshet.address,
            CHEAPEST => self.cheapest.address,
            _ => self.upstream,
        };
        let mut client = Client::connect(address, "postgres", &self.database)?;
        if system == FRESHET {
            client.query(&query_message("SET freshet.freshness = 'session'"))?;
        }
        Ok(client)
    }
}

fn load(cluster: &Cluster, database: &str, tables: &[Table]) -> io::Result<()> {
    cluster.psql("postgres", &format!("CREATE DATABASE {database}"));
    let mut client = Client::connect(cluster.address(), "postgres", database)?;
    tables.iter().try_for_each(|table| table.load_upstream(&mut client))?;
    cluster.psql(database, "VACUUM");
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Same,
    OtherComment,
    OtherLiteral,
}

impl Variant {
    fn suffix(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::OtherComment => "_nc",
            Self::OtherLiteral => "_nl",
        }
    }
}

fn one_workload(options: &Options, workload: &Workload, systems: &Systems, results: &mut Results) -> io::Result<()> {
    match workload.asks {
        Asks::Same { sql, varied, same } => {
            let expected = compare_rows(systems, sql, same)?;
            for variant in [Variant::Same, Variant::OtherComment, Variant::OtherLiteral] {
                let name = format!("{}{}", workload.name, variant.suffix());
                let text = move |n: u64| match variant {
                    Variant::Same => sql.to_owned(),
                    Variant::OtherComment => format!("{sql} /* nc{n} */"),
                    Variant::OtherLiteral => varied.replace('@', &n.to_string()),
                };
                compare_rows(systems, &text(1), same)?;
                let wanted = if variant == Variant::Same { &["hit"][..] } else { &["local", "hit"] };
                reads(options, &name, systems, &text, wanted, Some(&expected), results)?;
            }
            Ok(())
        }
        Asks::Different { sql, varied } => {
            for n in 0..100 {
                compare_rows(systems, &sql(n), Same::All)?;
            }
            for n in 0..20 {
                compare_rows(systems, &varied(n), Same::All)?;
            }
            reads(options, workload.name, systems, &sql, &["local", "hit"], None, results)?;
            let name = format!("{}{}", workload.name, Variant::OtherLiteral.suffix());
            reads(options, &name, systems, &varied, &["local", "hit"], None, results)
        }
        Asks::Writes { reset, sql, iterations, check } => {
            let iterations = if options.quick { iterations.div_ceil(20) } else { iterations };
            if options.quick && sql(0).len() > 1_000 {
                return results.skip(workload.name, "too long for a quick run: every statement is a commit");
            }
            writes(options, workload.name, systems, reset, &|n| sql(n), iterations, check, results)
        }
    }
}

/// Upstream's rows, which of them are fixed, and the columns that they are sorted by.
struct Expected {
    rows: Vec<Row>,
    same: Same,
    order: Vec<usize>,
}

impl Expected {
    fn check(&self, found: &[Row]) -> Result<(), String> {
        compare(&self.rows, found, self.same, &self.order)
    }
}

/// Asks every system once; upstream's rows.
fn compare_rows(systems: &Systems, sql: &str, same: Same) -> io::Result<Expected> {
    let ask = |system: &str| Ok::<_, io::Error>(systems.connect(system)?.query(&query_message(sql))?.to_vec());
    let reply = ask(UPSTREAM)?;
    let expected = Expected { rows: rows(&reply), same, order: sorted_by(sql, &column_names(&reply)) };
    let differ = |system: &str, difference| io::Error::other(format!("{system}: {difference}: {sql}"));
    // The first answer is upstream's, relayed; later ones are freshet's own.
    for _ in 0..3 {
        expected.check(&rows(&ask(FRESHET)?)).map_err(|difference| differ(FRESHET, difference))?;
    }
    if let Some(duckdb) = &systems.duckdb {
        let found = duckdb.rows(sql).map_err(io::Error::other)?;
        expected.check(&found).map_err(|difference| differ(DUCKDB, difference))?;
    }
    Ok(expected)
}

fn reads(
    options: &Options,
    name: &str,
    systems: &Systems,
    text: &dyn Fn(u64) -> String,
    wanted: &[&str],
    expected: Option<&Expected>,
    results: &mut Results,
) -> io::Result<()> {
    let mut direct = systems.connect(UPSTREAM)?;
    let mut through = systems.connect(FRESHET)?;
    // Each text of the series is asked once by each system: no round finds an answer of an earlier one.
    let mut next = [1_000_u64; 3];
    let warm_up = || {
        next[1] += 1;
        text(next[1])
    };
    let patience = Duration::from_secs(if options.quick { 2 } else { 10 });
    settle(&mut through, warm_up, wanted, patience)?;
    let least = Duration::from_millis(options.round_ms);
    let mut all = Series::of(systems, &[UPSTREAM, FRESHET]);
    for round in 0..options.rounds {
        for at in turns(round, all.len()) {
            let (before, began) = (systems.used(all[at].system), Instant::now());
            let next = &mut next[at];
            let mut in_turn = || {
                *next += 1;
                text(*next)
            };
            let latency = &mut all[at].latency;
            let time = match &systems.duckdb {
                Some(duckdb) if at == 2 => repeat(least, latency, || {
                    let text = in_turn();
                    timed(|| duckdb.query(&text).map_err(io::Error::other)).map(|(_, time)| time)
                })?,
                _ => {
                    let client = if at == 0 { &mut direct } else { &mut through };
                    wire(client, least, latency, &mut in_turn, expected)?
                }
            };
            all[at].add(systems, before, began, time);
        }
    }
    let (route, reason) = last_route_of(&mut through, text(next[1] + 1))?;
    let note = if reason.is_empty() { route } else { format!("{route} ({reason})") };
    report(name, &all, &note, results)
}

fn last_route_of(client: &mut Client, text: String) -> io::Result<(String, String)> {
    client.query(&query_message(&text))?;
    last_route(client)
}

/// Replies that are not byte for byte the first one must have its rows; the first must have the expected ones. Neither making
/// a text nor comparing its reply is in the time.
fn wire(
    client: &mut Client,
    least: Duration,
    latency: &mut Histogram<u64>,
    next: &mut dyn FnMut() -> String,
    expected: Option<&Expected>,
) -> io::Result<f64> {
    let first = client.query(&query_message(&next()))?.to_vec();
    let known = expected.map(|expected| (expected, Answer::of(&first, &expected.order)));
    if let Some((expected, _)) = &known {
        expected.check(&rows(&first)).map_err(io::Error::other)?;
    }
    repeat(least, latency, || {
        let message = query_message(&next());
        let (reply, time) = timed(|| client.query(&message))?;
        match &known {
            Some((expected, answer)) if reply != first.as_slice() && !answer.is_of(reply) => {
                expected.check(&rows(reply)).map_err(io::Error::other)?;
            }
            _ => {}
        }
        Ok(time)
    })
}

fn writes(
    options: &Options,
    name: &str,
    systems: &Systems,
    reset: &str,
    sql: &dyn Fn(u64) -> Vec<String>,
    iterations: u64,
    check: &str,
    results: &mut Results,
) -> io::Result<()> {
    let mut all = Series::of(systems, &[UPSTREAM, FRESHET, CHEAPEST]);
    let mut clients = [systems.connect(UPSTREAM)?, systems.connect(FRESHET)?, systems.connect(CHEAPEST)?];
    let statements: Vec<String> = (0..iterations).flat_map(sql).collect();
    let messages: Vec<Vec<u8>> = statements.iter().map(|sql| query_message(sql)).collect();
    for round in 0..options.rounds {
        for at in turns(round, all.len()) {
            let (before, began_all) = (systems.used(all[at].system), Instant::now());
            let elapsed = match (clients.get_mut(at), &systems.duckdb) {
                (Some(client), _) => {
                    client.query(&query_message(reset))?;
                    each(&messages, &mut all[at].latency, |message| client.query(message).map(|_| ()))?
                }
                (None, Some(duckdb)) => {
                    duckdb.query(reset).map_err(io::Error::other)?;
                    let latency = &mut all[at].latency;
                    each(&statements, latency, |sql| duckdb.query(sql).map(|_| ()).map_err(io::Error::other))?
                }
                (None, None) => continue,
            };
            all[at].add(systems, before, began_all, elapsed.as_secs_f64() * 1e3 / iterations as f64);
            if matches!(all[at].system, FRESHET | CHEAPEST) {
                // Whoever wrote: the next read through freshet has it.
                let [_, through, relay] = &mut clients;
                compare_written(through, relay, check)?;
            }
        }
    }
    let written = sorted_rows(clients[2].query(&query_message(check))?);
    if sorted_rows(clients[0].query(&query_message(check))?) != written {
        return Err(io::Error::other(format!("the two PostgreSQL have different rows after the writes: {check}")));
    }
    if let Some(duckdb) = &systems.duckdb {
        let expected = rows(clients[0].query(&query_message(check))?);
        compare(&expected, &duckdb.rows(check).map_err(io::Error::other)?, Same::All, &[]).map_err(io::Error::other)?;
    }
    report(name, &all, "durable upstream; DuckDB in memory, not durable", results)
}

/// Through freshet, and through a relay to the same PostgreSQL.
fn compare_written(through: &mut Client, relay: &mut Client, check: &str) -> io::Result<()> {
    let message = query_message(check);
    let expected = sorted_rows(relay.query(&message)?);
    // Changes past freshet arrive with the replication's lag in mode session; exact mode waits for them.
    through.query(&query_message("SET freshet.freshness = 'exact'"))?;
    let found = sorted_rows(through.query(&message)?);
    through.query(&query_message("SET freshet.freshness = 'session'"))?;
    if found == expected {
        Ok(())
    } else {
        Err(io::Error::other(format!("freshet has other rows after the writes: {check}")))
    }
}
