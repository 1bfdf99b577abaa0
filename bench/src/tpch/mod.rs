//! The tpch suite: the 22 queries against upstream, freshet in mode `session` and DuckDB in process, rows compared.
//!
//! `freshet` runs its engine: each text has another number in a LIMIT that changes nothing. `freshet, again` may use the
//! reply it has kept.

mod queries;
mod tables;

use std::io::{self};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use freshet_bench_duckdb::{Database, DuckDb};
use freshet_tests::cluster::Cluster;

use crate::console::{print, say};
use crate::parts;
use crate::process::{between, postmaster, used};
use crate::reference;
use crate::results::{Better, Results};
use crate::rows::{Same, compare, sorted_by};
use crate::servers::{Server, configuration, last_route, settle, sizes, wait_until_mirrored};
use crate::spread::{geometric_mean, paired, spread};
use crate::turns::turns;
use crate::wire::{Client, column_names, query_message, rows};

pub(crate) struct Options {
    pub(crate) scale: f64,
    pub(crate) rounds: usize,
    /// A query as `q1`.
    pub(crate) only: Option<String>,
    pub(crate) results: Option<PathBuf>,
}

const DATABASE: &str = "tpch";
const UPSTREAM: &str = "upstream";
const FRESHET: &str = "freshet";
const AGAIN: &str = "freshet, again";
const DUCKDB: &str = "DuckDB in process";

/// Runs the suite and prints its table; an error if a row differs.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    parts::check(options.only.as_deref(), (1..=queries::ALL.len()).map(|number| format!("q{number}")))?;
    let (duckdb, missing) = reference::load();
    let cluster = Cluster::start(&["shared_buffers=1GB", "max_wal_size=8GB", "work_mem=64MB"]);
    let version = cluster.psql("postgres", "SHOW server_version");
    let of_duckdb = reference::version(duckdb.as_ref());
    let versions = [("freshet", env!("CARGO_PKG_VERSION").to_owned()), ("PostgreSQL", version), ("DuckDB", of_duckdb)];
    let settings =
        [("scale", options.scale.to_string()), ("rounds", options.rounds.to_string()), configuration(&cluster)];
    let mut results = Results::open(options.results.as_deref(), "tpch", &versions, &settings)?;
    if let Some(reason) = missing {
        results.skip("DuckDB", &reason)?;
    }
    let stand = Stand::start(options, cluster, duckdb.as_ref())?;
    print(&format!(
        "\n{:5} {:>12} {:>12} {:>15} {:>18} {:>20} {:>20}  answered by",
        "ms", UPSTREAM, FRESHET, AGAIN, DUCKDB, "x upstream", "x DuckDB"
    ));
    compare_sizes(&stand, &mut results)?;
    let mut ratios = [Vec::new(), Vec::new()];
    for (number, sql) in (1..).zip(queries::ALL) {
        let name = format!("q{number}");
        if options.only.as_ref().is_some_and(|only| *only != name) || results.is_done(&name) {
            continue;
        }
        say(&name);
        let measured = one_query(options, &stand, sql).map_err(|error| io::Error::other(format!("{name}: {error}")))?;
        report(&name, &measured, &mut ratios, &mut results)?;
    }
    let [of_upstream, of_duckdb] = ratios.map(|ratios| geometric_mean(&ratios));
    print(&format!("geometric means: {of_upstream:.2} x upstream, {of_duckdb:.2} x DuckDB"));
    Ok(())
}

fn compare_sizes(stand: &Stand, results: &mut Results) -> io::Result<()> {
    if results.is_done("tables in memory") {
        return Ok(());
    }
    let mut direct = Client::connect(address(&stand.cluster), "postgres", DATABASE)?;
    let mut through = Client::connect(stand.freshet.address, "postgres", DATABASE)?;
    let [mirrored, heap] = sizes(&mut through, &mut direct, &tables::ALL.each_ref().map(|table| table.name))?;
    print(&format!("tables: {:.0} MB in memory, {:.0} MB upstream without indexes", mirrored / 1e6, heap / 1e6));
    for (system, bytes) in [(FRESHET, mirrored), (UPSTREAM, heap)] {
        results.figure("tables in memory", system, ("size", "MB", Better::Less), &[bytes / 1e6], "without indexes")?;
    }
    results.end("tables in memory")
}

/// The same tables everywhere.
struct Stand {
    cluster: Cluster,
    postmaster: u32,
    freshet: Server,
    duckdb: Option<Database>,
}

impl Stand {
    fn start(options: &Options, cluster: Cluster, duckdb: Option<&DuckDb>) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
        cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let duckdb = duckdb.map(|duckdb| duckdb.open(cores)).transpose().map_err(io::Error::other)?;
        let mut client = Client::connect(address(&cluster), "postgres", DATABASE)?;
        for table in &tables::ALL {
            table.load(options.scale, &mut client, duckdb.as_ref(), folder.path())?;
        }
        say("waiting until the tables are mirrored");
        let names = tables::ALL.each_ref().map(|table| format!("public.{}", table.name)).join(",");
        let log = folder.path().join("servers.log");
        let freshet = Server::start(&["serve-freshet", &cluster.url(DATABASE), &names], &log)?;
        wait_until_mirrored(freshet.address, DATABASE, tables::ALL.len())?;
        Ok(Self { postmaster: postmaster(&cluster)?, cluster, freshet, duckdb })
    }

    /// See [`used`]. DuckDB is in this process.
    fn used(&self, system: &str) -> [Duration; 3] {
        match system {
            DUCKDB => used(None, None),
            UPSTREAM => used(None, Some(self.postmaster)),
            _ => used(Some(self.freshet.process.id), Some(self.postmaster)),
        }
    }
}

/// Milliseconds, one value per round, and how freshet answered at last.
struct Measured {
    all: Vec<Series>,
    route: String,
}

struct Series {
    system: &'static str,
    times: Vec<f64>,
    /// Of the processors: freshet, PostgreSQL, the client.
    processor: [Vec<f64>; 3],
}

impl Series {
    fn new(system: &'static str) -> Self {
        Self { system, times: Vec::new(), processor: Default::default() }
    }
}

fn one_query(options: &Options, stand: &Stand, sql: &str) -> io::Result<Measured> {
    let mut direct = Client::connect(address(&stand.cluster), "postgres", DATABASE)?;
    let mut through = Client::connect(stand.freshet.address, "postgres", DATABASE)?;
    through.query(&query_message("SET freshet.freshness = 'session'"))?;
    let mut number = 1_000_000_u64;
    let mut next = || {
        number += 1;
        format!("SELECT * FROM ({sql}) AS answer LIMIT {number}")
    };
    let reply = direct.query(&query_message(sql))?;
    let (expected, order) = (rows(reply), sorted_by(sql, &column_names(reply)));
    settle(&mut through, &mut next, &["local"], Duration::from_secs(10))?;
    settle(&mut through, || sql.to_owned(), &["hit"], Duration::from_secs(10))?;
    let differ = |system: &str, difference| io::Error::other(format!("{system}: {difference}"));
    let check = |system: &str, reply: &[u8]| {
        compare(&expected, &rows(reply), Same::All, &order).map_err(|difference| differ(system, difference))
    };
    for text in [next(), sql.to_owned()] {
        check(FRESHET, through.query(&query_message(&text))?)?;
    }
    let mut all: Vec<Series> = [UPSTREAM, FRESHET, AGAIN].map(Series::new).into();
    if let Some(duckdb) = &stand.duckdb {
        let found = duckdb.rows(sql).map_err(io::Error::other)?;
        compare(&expected, &found, Same::All, &order).map_err(|difference| differ(DUCKDB, difference))?;
        all.push(Series::new(DUCKDB));
    }
    let mut route = (String::new(), String::new());
    for round in 0..options.rounds {
        for at in turns(round, all.len()) {
            let series = &mut all[at];
            let text = if series.system == AGAIN { sql.to_owned() } else { next() };
            let (before, began) = (stand.used(series.system), Instant::now());
            let reply = match (series.system, &stand.duckdb) {
                (DUCKDB, Some(duckdb)) => duckdb.query(&text).map(|_| None).map_err(io::Error::other)?,
                (UPSTREAM, _) => Some(direct.query(&query_message(&text))?),
                _ => Some(through.query(&query_message(&text))?),
            };
            series.times.push(began.elapsed().as_secs_f64() * 1e3);
            let used = between(before, stand.used(series.system));
            for (values, used) in series.processor.iter_mut().zip(used) {
                values.push(used.as_secs_f64() * 1e3);
            }
            if let Some(reply) = reply {
                check(series.system, reply)?;
            }
            if series.system == FRESHET {
                route = last_route(&mut through)?;
            }
        }
    }
    let (route, reason) = route;
    Ok(Measured { all, route: if reason.is_empty() { route } else { format!("{route} ({reason})") } })
}

fn report(name: &str, measured: &Measured, ratios: &mut [Vec<f64>; 2], results: &mut Results) -> io::Result<()> {
    let of = |system: &str| measured.all.iter().find(|one| one.system == system).map(|one| &*one.times);
    let freshet = of(FRESHET).unwrap_or_default();
    let shown = |system: &str| {
        of(system).map_or_else(String::new, |times| format!("{:.2}", spread(times.iter().copied()).median))
    };
    let mut to = |system: &str, at: usize| {
        of(system).map_or_else(String::new, |times| {
            let ratio = paired(times, freshet);
            ratios[at].push(ratio.median);
            format!("{:.2} ({:.2}..{:.2})", ratio.median, ratio.min, ratio.max)
        })
    };
    let (x_upstream, x_duckdb) = (to(UPSTREAM, 0), to(DUCKDB, 1));
    print(&format!(
        "{name:5} {:>12} {:>12} {:>15} {:>18} {x_upstream:>20} {x_duckdb:>20}  {}",
        shown(UPSTREAM),
        shown(FRESHET),
        shown(AGAIN),
        shown(DUCKDB),
        measured.route
    ));
    for Series { system, times, processor } in &measured.all {
        let note = if *system == FRESHET { &*measured.route } else { "" };
        results.figure(name, system, ("time", "ms", Better::Less), times, note)?;
        let note = if *system == DUCKDB { "in the client's process" } else { "" };
        results.processor(name, system, "ms", processor, note)?;
    }
    results.end(name)
}

fn address(cluster: &Cluster) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], cluster.port()))
}
