//! The driver suite: what an application sees through an ordinary driver (tokio-postgres), direct, relayed and cached.
//!
//! Five statements by one connection at a time, by one connection with a hundred in flight, and by ten connections; and
//! a prepared statement 10,000 times with one Sync, on the bare protocol. Rows are compared before anything is timed.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use freshet_tests::client::{bind, execute, parse, sync};
use freshet_tests::cluster::Cluster;
use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use tokio_postgres::{Client, NoTls, Statement};

use crate::console::print;
use crate::data::{Table, int, table, text};
use crate::load::histogram;
use crate::results::{Better, Latency, Line, Results};
use crate::servers::{Server, last_route, wait_until_mirrored};
use crate::spread::{median, paired, spread};
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
const DIRECT: &str = "direct";
const RELAYED: &str = "freshet relayed";
const CACHED: &str = "freshet cached";
const SYSTEMS: [(&str, &str); 3] =
    [(DIRECT, ""), (RELAYED, "SET freshet.route = 'relay'"), (CACHED, "SET freshet.freshness = 'session'")];
/// Requests that one connection has in flight in mode `pipeline`.
const IN_FLIGHT: usize = 100;
const POOL: usize = 10;

struct Query {
    name: &'static str,
    sql: &'static str,
    parameters: fn(i32) -> Vec<i32>,
}

const QUERIES: [Query; 5] = [
    Query { name: "point", sql: "SELECT id, name FROM harbors WHERE id = $1", parameters: |n| vec![n * 97 % 10_000] },
    Query { name: "wide_rows", sql: "SELECT * FROM wide WHERE id < $1", parameters: |n| vec![50 + n % 10] },
    Query { name: "large_rows", sql: "SELECT id, body FROM large WHERE id < $1", parameters: |n| vec![5 + n % 5] },
    Query {
        name: "many_params",
        sql: "SELECT id, name FROM harbors WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        parameters: |n| (0..10).map(|at| (n * 31 + at * 997) % 10_000).collect(),
    },
    Query {
        name: "aggregate",
        sql: "SELECT country, count(*), sum(berths) FROM harbors WHERE berths > $1 GROUP BY country",
        parameters: |n| vec![n % 5],
    },
];
/// Different parameters that a statement is executed with.
const VARIETY: i32 = 50;

/// Runs the suite and prints its tables.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
    let cluster = Cluster::start(&["shared_buffers=256MB"]);
    cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    let tables = tables();
    let upstream = SocketAddr::from(([127, 0, 0, 1], cluster.port()));
    let mut client = wire::Client::connect(upstream, "postgres", DATABASE)?;
    for table in &tables {
        table.load_upstream(&mut client)?;
    }
    let names: Vec<String> = tables.iter().map(|table| format!("public.{}", table.name)).collect();
    let log = folder.path().join("servers.log");
    let freshet = Server::start(&["serve-freshet", &cluster.url(DATABASE), &names.join(",")], &log)?;
    wait_until_mirrored(freshet.address, DATABASE, tables.len())?;
    let versions = [
        ("freshet", env!("CARGO_PKG_VERSION").to_owned()),
        ("PostgreSQL", cluster.psql("postgres", "SHOW server_version")),
    ];
    let settings = [
        ("seconds", options.seconds.to_string()),
        ("rounds", options.rounds.to_string()),
        ("batch", options.batch.to_string()),
    ];
    let mut results = Results::open(options.results.as_deref(), "driver", &versions, &settings)?;
    let addresses = [upstream, freshet.address, freshet.address];
    results.skip("pgx", "the matrix by a Go program is not written yet; tests/clients checks pgx's answers")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let wants =
        |name: &str, results: &Results| options.only.as_ref().is_none_or(|only| only == name) && !results.is_done(name);
    for query in &QUERIES {
        if wants(query.name, &results) {
            compare(query, addresses).map_err(|error| io::Error::other(format!("{}: {error}", query.name)))?;
            runtime.block_on(matrix(options, query, addresses, &mut results))?;
        }
    }
    if wants("batch", &results) {
        batch(options, addresses, &mut results)?;
    }
    Ok(())
}

fn tables() -> Vec<Table> {
    let id = || int("id", |n| n);
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "o", "p", "q", "r", "s", "t"];
    let wide = names.iter().zip(1..).map(|(name, by)| int(name, move |n| by * n % 1_000));
    vec![
        table(
            "harbors",
            10_000,
            vec![
                id(),
                text("name", |n| format!("harbor_{n}")),
                text("country", |n| format!("country_{}", n % 40)),
                int("berths", |n| 13 * n % 60),
            ],
        )
        .with_index("id"),
        table("wide", 1_000, std::iter::once(id()).chain(wide).collect()).with_index("id"),
        table("large", 100, vec![id(), text("body", |n| format!("{n:06}").repeat(1_700))]).with_index("id"),
    ]
}

/// Every execution of the matrix once by each system; the cached one until it answers itself.
fn compare(query: &Query, addresses: [SocketAddr; 3]) -> io::Result<()> {
    let mut clients = Vec::new();
    for ((_, setting), address) in SYSTEMS.iter().zip(addresses) {
        let mut client = wire::Client::connect(address, "postgres", DATABASE)?;
        if !setting.is_empty() {
            client.query(&query_message(setting))?;
        }
        client.query(&[parse("q", query.sql), sync()].concat())?;
        clients.push(client);
    }
    for n in 0..VARIETY {
        let values: Vec<String> = (query.parameters)(n).iter().map(i32::to_string).collect();
        let values: Vec<Option<&str>> = values.iter().map(|value| Some(value.as_str())).collect();
        let unit = [bind("", "q", &values, 0), execute("", 0), sync()].concat();
        let expected = sorted_rows(clients[0].query(&unit)?);
        let limit = Instant::now() + Duration::from_secs(10);
        for at in [1, 2] {
            loop {
                if sorted_rows(clients[at].query(&unit)?) != expected {
                    return Err(io::Error::other(format!("{} has other rows", SYSTEMS[at].0)));
                }
                if at == 1 || last_route(&mut clients[at])?.0 == "hit" || Instant::now() > limit {
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
    Ok(())
}

/// Connections of the driver to one system, each with the statement prepared.
struct Driver {
    clients: Vec<(Client, Statement)>,
}

impl Driver {
    async fn connect(address: SocketAddr, setting: &str, sql: &str) -> io::Result<Self> {
        let url = format!("host={} port={} user=postgres dbname={DATABASE}", address.ip(), address.port());
        let mut clients = Vec::new();
        for _ in 0..POOL {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.map_err(io::Error::other)?;
            tokio::spawn(connection);
            client.batch_execute(setting).await.map_err(io::Error::other)?;
            let statement = client.prepare(sql).await.map_err(io::Error::other)?;
            clients.push((client, statement));
        }
        Ok(Self { clients })
    }

    async fn once(&self, connection: usize, query: &Query, n: i32) -> io::Result<usize> {
        let (client, statement) = &self.clients[connection];
        let values = (query.parameters)(n);
        let values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        Ok(client.query(statement, &values).await.map_err(io::Error::other)?.len())
    }
}

const MODES: [&str; 3] = ["single", "pipeline", "pool10"];

async fn matrix(options: &Options, query: &Query, addresses: [SocketAddr; 3], results: &mut Results) -> io::Result<()> {
    let mut drivers = Vec::new();
    for ((_, setting), address) in SYSTEMS.iter().zip(addresses) {
        drivers.push(Arc::new(Driver::connect(address, setting, query.sql).await?));
    }
    for mode in MODES {
        let mut rates: Vec<Vec<f64>> = vec![Vec::new(); SYSTEMS.len()];
        let mut latencies: Vec<Histogram<u64>> = SYSTEMS.iter().map(|_| histogram()).collect();
        for round in 0..options.rounds {
            for turn in 0..SYSTEMS.len() {
                let at = (turn + round) % SYSTEMS.len();
                let driver = &drivers[at];
                let (count, elapsed) = match mode {
                    "single" => single(options, driver, query, 0, &mut latencies[at]).await?,
                    "pipeline" => pipeline(options, driver, query).await?,
                    _ => pool(options, driver, query).await?,
                };
                rates[at].push(count as f64 / elapsed.as_secs_f64());
            }
        }
        report(query.name, mode, &rates, &latencies, results)?;
    }
    results.end(query.name)
}

async fn single(
    options: &Options,
    driver: &Driver,
    query: &Query,
    connection: usize,
    latency: &mut Histogram<u64>,
) -> io::Result<(usize, Duration)> {
    let limit = Duration::from_secs_f64(options.seconds);
    let (began, mut count, mut n) = (Instant::now(), 0, connection as i32);
    while began.elapsed() < limit {
        let started = Instant::now();
        std::hint::black_box(driver.once(connection, query, n % VARIETY).await?);
        latency.saturating_record(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
        count += 1;
        n += 1;
    }
    Ok((count, began.elapsed()))
}

async fn pipeline(options: &Options, driver: &Driver, query: &Query) -> io::Result<(usize, Duration)> {
    let limit = Duration::from_secs_f64(options.seconds);
    let (began, mut count) = (Instant::now(), 0);
    while began.elapsed() < limit {
        try_join_all((0..IN_FLIGHT as i32).map(|n| driver.once(0, query, n % VARIETY))).await?;
        count += IN_FLIGHT;
    }
    Ok((count, began.elapsed()))
}

async fn pool(options: &Options, driver: &Driver, query: &Query) -> io::Result<(usize, Duration)> {
    let began = Instant::now();
    let runs = (0..POOL).map(|connection| async move {
        let mut latency = histogram();
        single(options, driver, query, connection, &mut latency).await
    });
    let counts = try_join_all(runs).await?;
    Ok((counts.iter().map(|(count, _)| count).sum(), began.elapsed()))
}

fn report(
    name: &str,
    mode: &str,
    rates: &[Vec<f64>],
    latencies: &[Histogram<u64>],
    results: &mut Results,
) -> io::Result<()> {
    let case = format!("{name} {mode}");
    let mut text = String::new();
    for (((system, _), rates_of), latency) in SYSTEMS.iter().zip(rates).zip(latencies) {
        let rate = spread(rates_of.iter().copied());
        let ratio = paired(rates_of, &rates[0]);
        let us = |q: f64| latency.value_at_quantile(q) as f64 / 1000.0;
        let _ = write!(
            text,
            "{:22} {system:16} {:>10.0}/s {:>21} {:>22} x direct",
            if *system == DIRECT { &*case } else { "" },
            rate.median,
            format!("{:.0}..{:.0}", rate.min, rate.max),
            format!("{:.2} ({:.2}..{:.2})", ratio.median, ratio.min, ratio.max),
        );
        if !latency.is_empty() {
            let _ = write!(text, "   p50 {:.1} us, p99 {:.1} us", us(0.5), us(0.99));
            let quantiles = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999].map(|q| (q, us(q))).to_vec();
            let (suite, case, system) = ("driver".to_owned(), case.clone(), (*system).to_owned());
            results.write(&Line::Latency(Latency { suite, case, system, quantiles }))?;
        }
        text.push('\n');
        results.figure(&case, system, ("rate", "queries/s", Better::More), rates_of, "tokio-postgres")?;
    }
    print(&text);
    Ok(())
}

/// One connection sends a whole batch of prepared executions while it reads the replies.
fn batch(options: &Options, addresses: [SocketAddr; 3], results: &mut Results) -> io::Result<()> {
    let sql = "SELECT id, name FROM harbors LIMIT $1";
    let executions = (0..options.batch).map(|n| {
        let count = (1 + n % 10).to_string();
        [bind("", "q", &[Some(&count)], 0), execute("", 0)].concat()
    });
    let all = [executions.collect::<Vec<_>>().concat(), sync()].concat();
    let mut clients = Vec::new();
    for ((_, setting), address) in SYSTEMS.iter().zip(addresses) {
        let mut client = wire::Client::connect(address, "postgres", DATABASE)?;
        if !setting.is_empty() {
            client.query(&query_message(setting))?;
        }
        client.query(&[parse("q", sql), sync()].concat())?;
        clients.push(client);
    }
    // Which rows a LIMIT without ORDER BY returns is free: how many is not.
    let expected = sorted_rows(clients[0].exchange(&all)?).len();
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); SYSTEMS.len()];
    // The first rounds warm up.
    for round in 0..options.rounds + 3 {
        for turn in 0..SYSTEMS.len() {
            let at = (turn + round) % SYSTEMS.len();
            let began = Instant::now();
            let reply = clients[at].exchange(&all)?;
            let elapsed = began.elapsed();
            if sorted_rows(reply).len() != expected {
                return Err(io::Error::other(format!("{}: another number of rows", SYSTEMS[at].0)));
            }
            if round >= 3 {
                rates[at].push(options.batch as f64 / elapsed.as_secs_f64());
            }
        }
    }
    let (route, reason) = last_route(&mut clients[2])?;
    let case = format!("batch of {}", options.batch);
    for ((system, _), rates_of) in SYSTEMS.iter().zip(&rates) {
        let note = if *system == CACHED { format!("{route} {reason}") } else { String::new() };
        let ratio = paired(rates_of, &rates[0]);
        print(&format!(
            "{case}: {system:16} {:>10.0}/s, {:.2} ({:.2}..{:.2}) x direct  {note}",
            median(rates_of.iter().copied()),
            ratio.median,
            ratio.min,
            ratio.max
        ));
        results.figure(&case, system, ("rate", "executions/s", Better::More), rates_of, &note)?;
    }
    results.end("batch")
}
