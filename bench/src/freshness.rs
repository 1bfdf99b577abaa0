//! The freshness suite: how old answers are, what waiting costs and what following costs, while others commit.
//!
//! Writers commit directly upstream, at a rate, past freshet. Each row holds the number of its last commit, and the moment
//! at which each commit was acknowledged is kept: an answer that lacks a commit acknowledged before the question is stale,
//! by the time since then. In modes `exact` and `standby` one stale answer fails the suite. In mode `standby` commits wait for
//! freshet: it has a PostgreSQL of its own, and what a commit takes there is what that waiting costs.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use freshet_tests::client::{bind, execute, parse, sync};
use freshet_tests::cluster::Cluster;
use hdrhistogram::Histogram;

use crate::console::print;
use crate::load::histogram;
use crate::process::{children, memory_kb, postmaster, processor_time};
use crate::results::{Better, Results};
use crate::servers::{Server, last_route, start_standby, wait_until_mirrored};
use crate::wire::{Client, first_row, query_message};

pub(crate) struct Options {
    /// Length of one measurement.
    pub(crate) seconds: f64,
    /// Commits per second, one measurement each.
    pub(crate) rates: Vec<u64>,
    /// A mode.
    pub(crate) only: Option<String>,
    pub(crate) results: Option<PathBuf>,
}

const DATABASE: &str = "bench";
const TABLE: &str = "public.followed";
const WRITERS: usize = 4;
const MODES: [&str; 3] = ["exact", "session", STANDBY];
const STANDBY: &str = "standby";

/// A PostgreSQL with the table that is followed.
fn start_cluster() -> Cluster {
    let cluster = Cluster::start(&["shared_buffers=256MB", "max_wal_size=4GB"]);
    cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    cluster.psql(
        DATABASE,
        &format!(
            "CREATE TABLE followed (id int PRIMARY KEY, commit bigint NOT NULL);
             INSERT INTO followed SELECT n, 0 FROM generate_series(0, {}) n",
            WRITERS - 1
        ),
    );
    cluster
}

/// Runs the suite and prints its table.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    let cluster = start_cluster();
    let versions = [
        ("freshet", env!("CARGO_PKG_VERSION").to_owned()),
        ("PostgreSQL", cluster.psql("postgres", "SHOW server_version")),
    ];
    let settings = [("seconds", options.seconds.to_string()), ("writers", WRITERS.to_string())];
    let mut results = Results::open(options.results.as_deref(), "freshness", &versions, &settings)?;
    // Before anybody follows: what commits cost by themselves.
    let alone: Vec<Histogram<u64>> = options
        .rates
        .iter()
        .map(|rate| Ok(measure(options, &cluster, None, *rate)?.commits))
        .collect::<io::Result<_>>()?;
    let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
    let log = folder.path().join("servers.log");
    head();
    let is_wanted = |mode: &str| options.only.as_ref().is_none_or(|only| only == mode);
    if MODES.iter().any(|mode| *mode != STANDBY && is_wanted(mode)) {
        let freshet = Server::start(&["serve-freshet", &cluster.url(DATABASE), TABLE], &log)?;
        wait_until_mirrored(freshet.address, DATABASE, 1)?;
        for mode in MODES.iter().filter(|mode| **mode != STANDBY && is_wanted(mode)) {
            one_mode(options, mode, &cluster, &freshet, &alone, &mut results)?;
        }
    }
    drop(cluster);
    if is_wanted(STANDBY) {
        let cluster = start_cluster();
        let freshet = start_standby(&cluster, DATABASE, &[TABLE.to_owned()], &log)?;
        one_mode(options, STANDBY, &cluster, &freshet, &alone, &mut results)?;
    }
    Ok(())
}

fn head() {
    print(&format!(
        "\n{:8} {:>9} {:>8} {:>19} {:>23} {:>23} {:>8} {:>9} {:>9} {:>8} {:>23}",
        "mode",
        "commits/s",
        "stale %",
        "stale by, p99 max",
        "commit to seen p50 p99",
        "read us, p50 p99",
        "reads/s",
        "freshet %",
        "walsend %",
        "RSS MB",
        "commit us, p50 (alone)"
    ));
}

fn one_mode(
    options: &Options,
    mode: &str,
    cluster: &Cluster,
    freshet: &Server,
    alone: &[Histogram<u64>],
    results: &mut Results,
) -> io::Result<()> {
    for (rate, alone) in options.rates.iter().zip(alone) {
        let case = format!("{mode}, {rate} commits/s");
        if results.is_done(&case) {
            continue;
        }
        let measured = measure(options, cluster, Some((mode, freshet)), *rate)?;
        if mode != "session" && measured.stale > 0 {
            return Err(io::Error::other(format!("{} stale answers in mode {mode}", measured.stale)));
        }
        report(&case, mode, *rate, &measured, alone, options.seconds, results)?;
    }
    Ok(())
}

/// Nanoseconds everywhere.
struct Measured {
    commits: Histogram<u64>,
    reads: Histogram<u64>,
    /// By how much stale answers were.
    staleness: Histogram<u64>,
    /// From a commit's acknowledgement to the end of the first read that has it.
    visible: Histogram<u64>,
    stale: u64,
    /// Processor time of freshet and of the process that sends it the log, and freshet's resident memory.
    freshet: Duration,
    walsender: Duration,
    memory_kb: u64,
}

/// When each commit of one row was acknowledged, in nanoseconds since the beginning; 0: not yet.
struct Acknowledged {
    moments: Vec<AtomicU64>,
    last: AtomicU64,
}

fn measure(options: &Options, cluster: &Cluster, through: Option<(&str, &Server)>, rate: u64) -> io::Result<Measured> {
    let upstream = SocketAddr::from(([127, 0, 0, 1], cluster.port()));
    let mut direct = Client::connect(upstream, "postgres", DATABASE)?;
    direct.query(&query_message("UPDATE followed SET commit = 0"))?;
    let most = (rate as f64 * options.seconds * 1.5) as usize / WRITERS + 100;
    let rows: Vec<Acknowledged> = (0..WRITERS)
        .map(|_| Acknowledged { moments: (0..most).map(|_| AtomicU64::new(0)).collect(), last: AtomicU64::new(0) })
        .collect();
    let mut reader = through.map(|(mode, freshet)| connect_reader(freshet, mode)).transpose()?;
    let walsender = walsender(postmaster(cluster)?);
    let times = || {
        let freshet = through.map(|(_, freshet)| processor_time(freshet.process.id)).unwrap_or_default();
        (freshet, walsender.map(processor_time).unwrap_or_default())
    };
    let before = times();
    let (began, stop) = (Instant::now(), AtomicBool::new(false));
    let limit = Duration::from_secs_f64(options.seconds);
    let (commits, read) = std::thread::scope(|scope| {
        let writers: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(row, acknowledged)| {
                let stop = &stop;
                scope.spawn(move || write(upstream, row, acknowledged, rate, began, stop))
            })
            .collect();
        let read = match &mut reader {
            Some(reader) => read(reader, &rows, began, limit),
            None => {
                std::thread::sleep(limit);
                Ok(Read::new())
            }
        };
        stop.store(true, Ordering::Relaxed);
        let mut commits = histogram();
        for writer in writers {
            let latencies = writer.join().map_err(|_| io::Error::other("a writer panicked"))??;
            commits.add(&latencies).map_err(io::Error::other)?;
        }
        Ok::<_, io::Error>((commits, read?))
    })?;
    let after = times();
    Ok(Measured {
        commits,
        reads: read.latency,
        staleness: read.staleness,
        visible: read.visible,
        stale: read.stale,
        freshet: after.0.saturating_sub(before.0),
        walsender: after.1.saturating_sub(before.1),
        memory_kb: through.map_or(0, |(_, freshet)| memory_kb(freshet.process.id, "VmRSS")),
    })
}

/// One of them, paced: its own row, a commit after the other.
fn write(
    upstream: SocketAddr,
    row: usize,
    acknowledged: &Acknowledged,
    rate: u64,
    began: Instant,
    stop: &AtomicBool,
) -> io::Result<Histogram<u64>> {
    let mut latency = histogram();
    let mut client = Client::connect(upstream, "postgres", DATABASE)?;
    client.query(&[parse("w", "UPDATE followed SET commit = $1 WHERE id = $2"), sync()].concat())?;
    if rate == 0 {
        return Ok(latency);
    }
    let pace = Duration::from_secs_f64(WRITERS as f64 / rate as f64);
    let row = row.to_string();
    for number in 1..acknowledged.moments.len() {
        // Behind schedule it does not catch up in a burst beyond its turn.
        let due = began + pace * u32::try_from(number).unwrap_or(u32::MAX);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let text = number.to_string();
        let started = Instant::now();
        client.query(&[bind("", "w", &[Some(&text), Some(&row)], 0), execute("", 0), sync()].concat())?;
        let done = Instant::now();
        latency.saturating_record(nanoseconds(done - started));
        acknowledged.moments[number].store(nanoseconds(done - began).max(1), Ordering::Release);
        acknowledged.last.store(number as u64, Ordering::Release);
    }
    Ok(latency)
}

struct Read {
    latency: Histogram<u64>,
    staleness: Histogram<u64>,
    visible: Histogram<u64>,
    stale: u64,
}

impl Read {
    fn new() -> Self {
        Self { latency: histogram(), staleness: histogram(), visible: histogram(), stale: 0 }
    }
}

/// One connection asks for one row after the other, as fast as it can.
fn read(client: &mut Client, rows: &[Acknowledged], began: Instant, limit: Duration) -> io::Result<Read> {
    let mut read = Read::new();
    let mut seen = vec![0_u64; rows.len()];
    let messages: Vec<Vec<u8>> = (0..rows.len()).map(message).collect();
    let mut turn = 0;
    while began.elapsed() < limit {
        let (row, acknowledged) = (turn % rows.len(), &rows[turn % rows.len()]);
        turn += 1;
        let known = acknowledged.last.load(Ordering::Acquire);
        let asked = nanoseconds(began.elapsed());
        let reply = client.query(&messages[row])?;
        let answered = nanoseconds(began.elapsed());
        read.latency.saturating_record(answered - asked);
        let found: u64 = first_row(reply)
            .pop()
            .flatten()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| io::Error::other("a reply without its row"))?;
        let moment =
            |number: u64| acknowledged.moments.get(number as usize).map_or(0, |moment| moment.load(Ordering::Acquire));
        if found < known {
            read.stale += 1;
            read.staleness.saturating_record(asked.saturating_sub(moment(found + 1)));
        } else {
            read.staleness.saturating_record(0);
        }
        if found < seen[row] {
            return Err(io::Error::other(format!("row {row} went back from commit {} to {found}", seen[row])));
        }
        // A commit that is seen before its writer has been told counts as seen at once.
        if found > seen[row] && moment(found) > 0 {
            read.visible.saturating_record(answered.saturating_sub(moment(found)));
        }
        seen[row] = found;
    }
    Ok(read)
}

fn message(row: usize) -> Vec<u8> {
    query_message(&format!("SELECT commit FROM followed WHERE id = {row}"))
}

/// With every shape verified, and past what the measurement before has left: in mode `session` it is seen for a moment.
fn connect_reader(freshet: &Server, mode: &str) -> io::Result<Client> {
    let mut client = Client::connect(freshet.address, "postgres", DATABASE)?;
    // The mode of the whole server, and its sessions' from the beginning.
    if mode != STANDBY {
        client.query(&query_message(&format!("SET freshet.freshness = '{mode}'")))?;
    }
    let limit = Instant::now() + Duration::from_secs(20);
    for row in 0..WRITERS {
        loop {
            let is_reset = first_row(client.query(&message(row))?) == [Some("0".to_owned())];
            let (route, reason) = last_route(&mut client)?;
            if route == "hit" && is_reset {
                break;
            }
            if Instant::now() > limit {
                return Err(io::Error::other(format!("answered by {route} ({reason}), not by a hit")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(client)
}

/// The process that sends freshet the log.
fn walsender(postmaster: u32) -> Option<u32> {
    let is_walsender = |id: &u32| {
        std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|title| title.starts_with(b"postgres: walsender"))
    };
    children(postmaster).into_iter().find(is_walsender)
}

fn report(
    case: &str,
    mode: &str,
    rate: u64,
    measured: &Measured,
    alone: &Histogram<u64>,
    seconds: f64,
    results: &mut Results,
) -> io::Result<()> {
    let us = |of: &Histogram<u64>, q: f64| of.value_at_quantile(q) as f64 / 1000.0;
    let reads = measured.reads.len() as f64;
    let share = 100.0 * measured.stale as f64 / reads;
    let of_core = |time: Duration| 100.0 * time.as_secs_f64() / seconds;
    let memory = measured.memory_kb as f64 / 1024.0;
    let mut text = String::new();
    let _ = write!(
        text,
        "{mode:8} {rate:>9} {share:>8.2} {:>19} {:>23} {:>23} {:>8.0} {:>9.1} {:>9.1} {memory:>8.1} {:>23}",
        format!("{:.0} {:.0} us", us(&measured.staleness, 0.99), us(&measured.staleness, 1.0)),
        format!("{:.0} {:.0} us", us(&measured.visible, 0.5), us(&measured.visible, 0.99)),
        format!("{:.0} {:.0}", us(&measured.reads, 0.5), us(&measured.reads, 0.99)),
        reads / seconds,
        of_core(measured.freshet),
        of_core(measured.walsender),
        format!("{:.0} ({:.0})", us(&measured.commits, 0.5), us(alone, 0.5)),
    );
    print(&text);
    let system = format!("freshet {mode}");
    let mut figure = |metric: &str, unit: &str, value: f64| {
        results.figure(case, &system, (metric, unit, Better::Less), &[value], "")
    };
    figure("stale answers", "%", share)?;
    figure("commit to seen, p50", "us", us(&measured.visible, 0.5))?;
    figure("commit to seen, p99", "us", us(&measured.visible, 0.99))?;
    figure("read, p50", "us", us(&measured.reads, 0.5))?;
    figure("read, p99", "us", us(&measured.reads, 0.99))?;
    figure("freshet's processor time", "% of a core", of_core(measured.freshet))?;
    figure("walsender's processor time", "% of a core", of_core(measured.walsender))?;
    figure("freshet's resident memory", "MB", memory)?;
    figure("commit, p50, followed", "us", us(&measured.commits, 0.5))?;
    figure("commit, p50, alone", "us", us(alone, 0.5))?;
    results.latency(case, "read", &measured.reads)?;
    results.latency(case, "commit to seen", &measured.visible)?;
    results.end(case)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
