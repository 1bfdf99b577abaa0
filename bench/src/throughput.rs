//! The throughput suite: threads with persistent connections, servers interleaved round by round, ratios in one run.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use freshet_tests::cluster::Cluster;
use serde::Serialize;

use crate::load::{self, Expected, Measured, Target};
use crate::wire::{Client, first_row, query_message, sorted_rows};
use crate::workloads::{self, Workload};

pub(crate) struct Options {
    pub(crate) threads: usize,
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) only: Option<String>,
    /// Also writes the figures as JSON here.
    pub(crate) json: Option<std::path::PathBuf>,
}

/// One server's figures on one workload: medians over the rounds.
#[derive(Serialize)]
struct Figures {
    workload: &'static str,
    server: &'static str,
    queries_per_second: f64,
    queries_per_second_min: f64,
    queries_per_second_max: f64,
    p50_us: f64,
    p99_us: f64,
    to_upstream: f64,
    to_ceiling: f64,
    to_barrier_ceiling: f64,
    route: String,
}

const UPSTREAM: &str = "upstream";
const EXACT: &str = "freshet exact";
const SESSION: &str = "freshet session";
const CANNED: &str = "canned reply";
const BARRIER: &str = "group barrier";
const DATABASE: &str = "bench";

/// Runs the suite and prints its table; an error if any reply was wrong.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    say("starting PostgreSQL and loading the tables");
    let cluster = Cluster::start(&["shared_buffers=512MB", "max_connections=100"]);
    cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    cluster.psql(DATABASE, workloads::SETUP);
    cluster.psql(DATABASE, "VACUUM (ANALYZE)");
    let upstream: SocketAddr = SocketAddr::from(([127, 0, 0, 1], cluster.port()));
    let url = cluster.url(DATABASE);
    let tables = workloads::TABLES.map(|table| format!("public.{table}")).join(",");
    let freshet = Server::start(&["serve-freshet", &url, &tables])?;
    wait_until_mirrored(freshet.address)?;

    let mut all = Vec::new();
    for workload in workloads::all() {
        if options.only.as_ref().is_some_and(|only| only != workload.name) {
            continue;
        }
        let figures = one_workload(options, &workload, upstream, freshet.address, &url)?;
        print_table(&workload, &figures);
        all.extend(figures);
    }
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_vec_pretty(&all)?)?;
    }
    say(&conditions(options, &cluster));
    Ok(())
}

fn one_workload(
    options: &Options,
    workload: &Workload,
    upstream: SocketAddr,
    freshet: SocketAddr,
    url: &str,
) -> io::Result<Vec<Figures>> {
    say(&format!("{}: learning the answers", workload.name));
    let direct = Target { address: upstream, database: DATABASE, session: &[] };
    let (expected, replies) = learn(&direct, &workload.texts)?;
    let file = tempfile::NamedTempFile::new()?;
    serde_json::to_writer(&file, &replies)?;
    let path = file.path().display().to_string();
    let canned = Server::start(&["serve-canned", &path])?;
    let barrier = Server::start(&["serve-canned", &path, url])?;
    let targets = [
        (UPSTREAM, direct),
        (EXACT, Target { address: freshet, database: DATABASE, session: &["SET freshet.freshness = 'exact'"] }),
        (SESSION, Target { address: freshet, database: DATABASE, session: &["SET freshet.freshness = 'session'"] }),
        (CANNED, Target { address: canned.address, database: DATABASE, session: &[] }),
        (BARRIER, Target { address: barrier.address, database: DATABASE, session: &[] }),
    ];
    let mut routes = HashMap::new();
    for (name, target) in &targets[1..3] {
        routes.insert(*name, settle(target, &workload.texts)?);
    }
    let mut rounds: Vec<Vec<Measured>> = targets.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for (at, (name, target)) in targets.iter().enumerate() {
            say(&format!("{}: round {} of {}, {name}", workload.name, round + 1, options.rounds));
            let measured = load::run(target, &workload.texts, &expected, options.threads, options.seconds)?;
            rounds[at].push(measured);
        }
    }
    Ok(summarise(workload, &targets.map(|(name, _)| name), &rounds, &routes))
}

/// Each text's rows by PostgreSQL, and its reply's bytes for the canned servers (as pairs, since JSON keys are text).
fn learn(direct: &Target<'_>, texts: &[String]) -> io::Result<(Expected, Vec<(String, Vec<u8>)>)> {
    let mut client = load::connect(direct)?;
    let (mut expected, mut replies) = (Expected::new(), Vec::new());
    for text in texts {
        let reply = client.query(&query_message(text))?;
        expected.insert(text.clone(), sorted_rows(reply));
        replies.push((text.clone(), reply.to_vec()));
    }
    Ok((expected, replies))
}

/// Repeats every text until its shape is verified and its reply comes from the cache; the route reached.
fn settle(target: &Target<'_>, texts: &[String]) -> io::Result<String> {
    let mut client = load::connect(target)?;
    let limit = Instant::now() + Duration::from_secs(60);
    for text in texts {
        loop {
            client.query(&query_message(text))?;
            let last = first_row(client.query(&query_message("SHOW freshet.last"))?);
            let route = last.first().cloned().flatten().unwrap_or_default();
            if route == "hit" {
                break;
            }
            if Instant::now() > limit {
                let reason = last.get(1).cloned().flatten().unwrap_or_default();
                return Err(io::Error::other(format!("answered by {route} ({reason}), not by a hit: {text}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok("hit".into())
}

fn wait_until_mirrored(address: SocketAddr) -> io::Result<()> {
    say("waiting until the tables are mirrored");
    let limit = Instant::now() + Duration::from_secs(120);
    let mut client = Client::connect(address, "postgres", DATABASE)?;
    let sql = "SELECT name, state, reason FROM freshet.tables";
    loop {
        let rows = sorted_rows(client.query(&query_message(sql))?);
        let mirrored = rows.iter().filter(|row| row.windows(8).any(|part| part == b"mirrored")).count();
        if mirrored >= workloads::TABLES.len() {
            return Ok(());
        }
        if Instant::now() > limit {
            let shown: Vec<_> = rows.iter().map(|row| String::from_utf8_lossy(row).into_owned()).collect();
            return Err(io::Error::other(format!("not mirrored within 120 s: {shown:?}")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn summarise(
    workload: &Workload,
    names: &[&'static str],
    rounds: &[Vec<Measured>],
    routes: &HashMap<&str, String>,
) -> Vec<Figures> {
    let median = |server: &str| {
        let at = names.iter().position(|name| *name == server).unwrap_or(0);
        middle(rounds[at].iter().map(Measured::queries_per_second).collect())
    };
    let (upstream, ceiling, barrier) = (median(UPSTREAM), median(CANNED), median(BARRIER));
    let mut figures = Vec::new();
    for (at, server) in names.iter().enumerate() {
        let rates: Vec<f64> = rounds[at].iter().map(Measured::queries_per_second).collect();
        let quantile =
            |q: f64| middle(rounds[at].iter().map(|r| r.latency.value_at_quantile(q) as f64 / 1000.0).collect());
        let rate = middle(rates.clone());
        figures.push(Figures {
            workload: workload.name,
            server,
            queries_per_second: rate,
            queries_per_second_min: rates.iter().copied().fold(f64::INFINITY, f64::min),
            queries_per_second_max: rates.iter().copied().fold(0.0, f64::max),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            to_upstream: rate / upstream,
            to_ceiling: rate / ceiling,
            to_barrier_ceiling: rate / barrier,
            route: routes.get(server).cloned().unwrap_or_default(),
        });
    }
    figures
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn print_table(workload: &Workload, figures: &[Figures]) {
    let mut text = format!(
        "\n{} ({})\n{:16} {:>10} {:>21} {:>10} {:>10} {:>11} {:>10} {:>14}  {}\n",
        workload.name,
        workload.label,
        "server",
        "QPS",
        "min..max",
        "p50 us",
        "p99 us",
        "x upstream",
        "x ceiling",
        "x grp barrier",
        "route"
    );
    for f in figures {
        let _ = writeln!(
            text,
            "{:16} {:>10.0} {:>21} {:>10.1} {:>10.1} {:>11.2} {:>10.3} {:>14.3}  {}",
            f.server,
            f.queries_per_second,
            format!("{:.0}..{:.0}", f.queries_per_second_min, f.queries_per_second_max),
            f.p50_us,
            f.p99_us,
            f.to_upstream,
            f.to_ceiling,
            f.to_barrier_ceiling,
            f.route
        );
    }
    let _ = writeln!(io::stdout(), "{text}");
}

fn conditions(options: &Options, cluster: &Cluster) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{} threads, {} s a run, {} rounds interleaved, medians; {cores} cores shared by clients and servers; {}; freshet {}",
        options.threads,
        options.seconds,
        options.rounds,
        cluster.psql("postgres", "SELECT split_part(version(), ' on ', 1)"),
        env!("CARGO_PKG_VERSION"),
    )
}

/// A process of this program that serves on a free port until dropped.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(arguments: &[&str]) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?).args(arguments).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        match line.trim().parse() {
            Ok(address) => Ok(Self { child, address }),
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(io::Error::other(format!("{} did not start: {line}", arguments[0])))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
