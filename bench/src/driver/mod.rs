//! The driver suite: what an application sees through ordinary drivers, direct, relayed and cached.
//!
//! Five statements by one connection at a time, by one connection with a hundred in flight, and by ten connections; and
//! a prepared statement 10,000 times with one Sync. By tokio-postgres ([`mod@rust`]; the batch on the bare protocol) and by
//! pgx ([`mod@pgx`]). Rows are compared before anything is timed; in the batches also while it is, by pgx then only their number.
//! What is to be cached is a hit before it is timed, and each figure of freshet names the route of its last statement.

mod batch;
mod pgx;
mod queries;
mod rust;

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use freshet_tests::client::{bind, execute, parse, sync};
use freshet_tests::cluster::Cluster;

use crate::console::{print, say};
use crate::driver::pgx::Pgx;
use crate::driver::queries::{QUERIES, Query, tables};
use crate::driver::rust::TokioPostgres;
use crate::load::Measured;
use crate::parts;
use crate::process::{between, postmaster, processor_time, processor_time_of_family};
use crate::results::Results;
use crate::series::Series;
use crate::servers::{Server, address, configuration, last_route, wait_until_mirrored};
use crate::spread::paired;
use crate::turns::turns;
use crate::wire::{self, query_message, sorted_rows};

pub(crate) struct Options {
    /// Length of one run.
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    /// Executions of the batch.
    pub(crate) batch: usize,
    /// A statement such as point, or batch.
    pub(crate) only: Option<String>,
    pub(crate) results: Option<PathBuf>,
}

const DATABASE: &str = "bench";
const CACHED: &str = "freshet cached";
/// Requests that one connection has in flight in mode `pipeline`, and connections: the Go program has the same.
const IN_FLIGHT: usize = 100;
const POOL: usize = 10;

/// A system as a client finds it.
struct Place {
    system: &'static str,
    address: SocketAddr,
    /// What a session says first.
    setting: &'static str,
    /// Freshet's process, where it takes part.
    process: Option<u32>,
}

impl Place {
    fn url(&self) -> String {
        format!("host={} port={} user=postgres dbname={DATABASE}", self.address.ip(), self.address.port())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Single,
    Pipeline,
    Pool10,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Single, Self::Pipeline, Self::Pool10];

    fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Pipeline => "pipeline",
            Self::Pool10 => "pool10",
        }
    }
}

trait Driver {
    fn name(&self) -> &'static str;

    /// Ten connections to each place, with the statement prepared; those of the statement before are closed.
    fn open(&mut self, places: &[Place], sql: &str, parameters: &[Vec<i32>]) -> io::Result<()>;

    fn run(&mut self, system: usize, mode: Mode, seconds: f64) -> io::Result<Measured>;

    /// How freshet says that it answered the last statement of the first connection, and why.
    fn last_route(&mut self, system: usize) -> io::Result<(String, String)>;
}

/// Upstream, and freshet before it.
struct Stand {
    cluster: Cluster,
    _freshet: Server,
    places: [Place; 3],
    /// The first process of PostgreSQL.
    postmaster: u32,
    folder: tempfile::TempDir,
}

impl Stand {
    fn start() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
        let cluster = Cluster::start(&["shared_buffers=256MB"]);
        cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
        let tables = tables();
        let upstream = address(&cluster);
        let mut client = wire::Client::connect(upstream, "postgres", DATABASE)?;
        for table in &tables {
            table.load_upstream(&mut client)?;
        }
        let names: Vec<String> = tables.iter().map(|table| format!("public.{}", table.name)).collect();
        let log = folder.path().join("servers.log");
        let freshet = Server::start(&["serve-freshet", &cluster.url(DATABASE), &names.join(",")], &log)?;
        wait_until_mirrored(freshet.address, DATABASE, tables.len())?;
        let process = Some(freshet.process.id);
        let (relayed, cached) = ("SET freshet.route = 'relay'", "SET freshet.freshness = 'session'");
        let places = [
            Place { system: "direct", address: upstream, setting: "", process: None },
            Place { system: "freshet relayed", address: freshet.address, setting: relayed, process },
            Place { system: CACHED, address: freshet.address, setting: cached, process },
        ];
        let postmaster = postmaster(&cluster)?;
        Ok(Self { cluster, _freshet: freshet, places, postmaster, folder })
    }

    /// Processor time so far of a place's freshet and of PostgreSQL.
    fn used(&self, place: usize) -> [Duration; 2] {
        let freshet = self.places[place].process.map(processor_time).unwrap_or_default();
        [freshet, processor_time_of_family(self.postmaster)]
    }

    /// A connection of the bare protocol to each place, with the statement prepared.
    fn clients(&self, sql: &str) -> io::Result<Vec<wire::Client>> {
        let mut clients = Vec::new();
        for place in &self.places {
            let mut client = wire::Client::connect(place.address, "postgres", DATABASE)?;
            if !place.setting.is_empty() {
                client.query(&query_message(place.setting))?;
            }
            client.query(&[parse("q", sql), sync()].concat())?;
            clients.push(client);
        }
        Ok(clients)
    }
}

/// Runs the suite and prints its tables.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    parts::check(options.only.as_deref(), QUERIES.iter().map(|query| query.name).chain(["batch"]))?;
    let stand = Stand::start()?;
    let mut versions = vec![
        ("freshet", env!("CARGO_PKG_VERSION").to_owned()),
        ("PostgreSQL", stand.cluster.psql("postgres", "SHOW server_version")),
    ];
    versions.extend(Pgx::go().map(|(_, version)| ("Go", version)));
    let settings = [
        ("seconds", options.seconds.to_string()),
        ("rounds", options.rounds.to_string()),
        ("batch", options.batch.to_string()),
        configuration(&stand.cluster),
    ];
    let mut results = Results::open(options.results.as_deref(), "driver", &versions, &settings)?;
    let mut pgx = match Pgx::start(stand.folder.path())? {
        Ok(pgx) => Some(pgx),
        Err(reason) => {
            results.skip("pgx", &reason)?;
            None
        }
    };
    let mut tokio = TokioPostgres::new()?;
    let wants =
        |name: &str, results: &Results| options.only.as_ref().is_none_or(|only| only == name) && !results.is_done(name);
    for query in &QUERIES {
        if !wants(query.name, &results) {
            continue;
        }
        say(query.name);
        let named = |error| io::Error::other(format!("{}: {error}", query.name));
        compare(query, &stand).map_err(named)?;
        tokio.open(&stand.places, query.sql, &query.parameters())?;
        tokio.compare().map_err(named)?;
        matrix(options, query, &stand, &mut tokio, &mut results).map_err(named)?;
        if let Some(pgx) = &mut pgx {
            pgx.open(&stand.places, query.sql, &query.parameters())?;
            pgx.compare().map_err(named)?;
            matrix(options, query, &stand, pgx, &mut results).map_err(named)?;
        }
        results.end(query.name)?;
    }
    if wants("batch", &results) {
        batch::bare(options, &stand, &mut results)?;
        if let Some(pgx) = &mut pgx {
            batch::by_pgx(options, &stand, pgx, &mut results)?;
        }
        results.end("batch")?;
    }
    Ok(())
}

/// Every execution of the matrix once by each system; the cached one until it answers itself.
fn compare(query: &Query, stand: &Stand) -> io::Result<()> {
    let mut clients = stand.clients(query.sql)?;
    for parameters in query.parameters() {
        let unit = [execution(&parameters), sync()].concat();
        let expected = sorted_rows(clients[0].query(&unit)?);
        let limit = Instant::now() + Duration::from_secs(10);
        for at in [1, 2] {
            loop {
                if sorted_rows(clients[at].query(&unit)?) != expected {
                    return Err(io::Error::other(format!("{} has other rows", stand.places[at].system)));
                }
                if at == 1 {
                    break;
                }
                let (route, reason) = last_route(&mut clients[at])?;
                if route == "hit" {
                    break;
                }
                if Instant::now() > limit {
                    let system = stand.places[at].system;
                    return Err(io::Error::other(format!("{system} answers by {route} {reason}, not by a hit")));
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
    Ok(())
}

fn execution(parameters: &[i32]) -> Vec<u8> {
    let values: Vec<String> = parameters.iter().map(i32::to_string).collect();
    let values: Vec<Option<&str>> = values.iter().map(|value| Some(value.as_str())).collect();
    [bind("", "q", &values, 0), execute("", 0)].concat()
}

fn matrix(
    options: &Options,
    query: &Query,
    stand: &Stand,
    driver: &mut dyn Driver,
    results: &mut Results,
) -> io::Result<()> {
    for mode in Mode::ALL {
        let mut all: Vec<Series> = stand.places.iter().map(|place| Series::new(place.system)).collect();
        for round in 0..options.rounds {
            for at in turns(round, stand.places.len()) {
                let before = stand.used(at);
                let cell = driver.run(at, mode, options.seconds)?;
                let after = stand.used(at);
                all[at].add(&cell, between(before, after), 1)?;
            }
        }
        for (at, place) in stand.places.iter().enumerate().filter(|(_, place)| place.process.is_some()) {
            let (route, reason) = driver.last_route(at)?;
            all[at].note = format!("the last one {route} {reason}").trim_end().to_owned();
            if place.system == CACHED && route != "hit" {
                return Err(io::Error::other(format!("{CACHED}: {}, not a hit", all[at].note)));
            }
        }
        report(query.name, mode, driver.name(), stand, &all, results)?;
    }
    Ok(())
}

fn report(
    name: &str,
    mode: Mode,
    driver: &str,
    stand: &Stand,
    all: &[Series],
    results: &mut Results,
) -> io::Result<()> {
    let case = format!("{name} {}, {driver}", mode.name());
    let mut text = String::new();
    for (place, series) in stand.places.iter().zip(all) {
        let system = place.system;
        let (rate, [server_us, upstream_us, client_us]) = (series.rate(), series.processor());
        let ratio = paired(&series.rates, &all[0].rates);
        let _ = write!(
            text,
            "{:36} {system:16} {:>9.0}/s {:>19} {:>20} x direct  cpu us {server_us:>6.1} PG {upstream_us:>6.1} cl. {client_us:>6.1}",
            if place.process.is_none() { &*case } else { "" },
            rate.median,
            format!("{:.0}..{:.0}", rate.min, rate.max),
            format!("{:.2} ({:.2}..{:.2})", ratio.median, ratio.min, ratio.max),
        );
        if !series.latency.is_empty() {
            let _ = write!(text, "  p50 {:.1} us, p99 {:.1} us", series.us(0.5), series.us(0.99));
        }
        if !series.note.is_empty() {
            let _ = write!(text, "  {}", series.note);
        }
        text.push('\n');
        series.write(results, &case, "query", None)?;
    }
    print(&text);
    Ok(())
}
