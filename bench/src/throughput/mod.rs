//! The throughput suite: eight threads with persistent connections, systems interleaved round by round, ratios in one
//! run, and the processor time that each process took beside the rates, since all share the machine.

mod systems;
mod workloads;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::console::say;
use crate::load::{self, Allowed, Connection, Load, Measured};
use crate::process::{between, processor_time, processor_time_of_family};
use crate::results::{Better, Results};
use crate::rows::sorted_by;
use crate::series::Series;
use crate::servers::{Server, last_route};
use crate::spread::median;
use crate::throughput::systems::{
    BARRIER, CANNED, CHEAPEST, DATABASE, EXACT, Extent, Messages, PGPOOL, Protocol, SESSION, STANDBY, Systems, Target,
    UPSTREAM, messages,
};
use crate::throughput::workloads::{Kind, Workload};
use crate::turns::turns;
use crate::wire::{Answer, Client, column_names, query_message};
use crate::{parts, poolers};

pub(crate) struct Options {
    pub(crate) threads: usize,
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) only: Option<String>,
    /// Those of [`QUICK`] alone.
    pub(crate) is_quick: bool,
    pub(crate) results: Option<PathBuf>,
}

pub(crate) use crate::throughput::systems::Protocol as WireProtocol;

/// A reply of one row, of few rows, of thousands; writes; reads among writes.
const QUICK: [&str; 5] = ["point_read", "aggregate", "full_scan", "insert", "mixed_rw"];

/// Runs the suite and prints its tables; an error if any reply was wrong.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    parts::check(options.only.as_deref(), workloads::all().iter().map(|workload| workload.name))?;
    say("starting PostgreSQLs and loading the tables");
    let systems = Systems::start(if options.is_quick { Extent::Quick } else { Extent::Full })?;
    let mut versions = vec![("freshet", env!("CARGO_PKG_VERSION").to_owned()), ("PostgreSQL", systems.version())];
    versions.extend(poolers::versions());
    let settings = [
        ("threads", options.threads.to_string()),
        ("seconds", options.seconds.to_string()),
        ("rounds", options.rounds.to_string()),
        systems.configuration(),
    ];
    let mut results = Results::open(options.results.as_deref(), "throughput", &versions, &settings)?;
    for (system, reason) in &systems.missing {
        results.skip(system, reason)?;
    }
    let mut inserted = 0;
    for workload in workloads::all() {
        let is_wanted = match &options.only {
            Some(only) => only == workload.name,
            None => !options.is_quick || QUICK.contains(&workload.name),
        };
        if !is_wanted {
            continue;
        }
        for protocol in &options.protocols {
            let case = format!("{} {}", workload.name, protocol.name());
            if results.is_done(&case) {
                continue;
            }
            let measured = one_workload(options, &workload, *protocol, &systems, &mut inserted)
                .map_err(|error| io::Error::other(format!("{case}: {error}")))?;
            for (system, reason) in unasked(workload.kind, *protocol) {
                results.skip(&format!("{case}, {system}"), reason)?;
            }
            report(&case, measured, &mut results)?;
        }
    }
    systems.check_receiver()?;
    let rows = systems.count("bench_ins")?;
    if rows != inserted {
        return Err(io::Error::other(format!("{inserted} INSERTs were acknowledged, {rows} rows are there")));
    }
    Ok(())
}

fn one_workload(
    options: &Options,
    workload: &Workload,
    protocol: Protocol,
    systems: &Systems,
    inserted: &mut u64,
) -> io::Result<Vec<Measurement>> {
    say(&format!("{} {}: learning the answers", workload.name, protocol.name()));
    let messages = messages(workload, protocol);
    let (allowed, replies) = learn(systems, &messages, workload, inserted)?;
    let load = Load { units: &messages.units, allowed: &allowed, depth: 1 };
    let mut targets = systems.targets(protocol)?;
    let file = systems.folder.path().join("replies.json");
    std::fs::write(&file, serde_json::to_vec(&replies)?)?;
    let ceilings = ceilings(systems, &file, workload.kind)?;
    for (system, server) in &ceilings {
        let (address, process) = (server.address, Some(server.process.id));
        targets.push(Target { system, address, process, postmaster: targets[0].postmaster, receiver: None });
    }
    let mut routes = HashMap::new();
    for target in targets.iter().filter(|target| [EXACT, SESSION, STANDBY].contains(&target.system)) {
        routes.insert(target.system, settle(target, &messages, &load, workload.kind, inserted)?);
    }
    let mut connections = Vec::new();
    for target in &targets {
        let named = |error: io::Error| io::Error::other(format!("{}: {error}", target.system));
        connections.push(open(target, &messages, &load, workload.kind, options.threads, inserted).map_err(named)?);
    }
    // By now every write has been made in every PostgreSQL: what was there before would be stale.
    let allowed: Vec<Allowed> = allowed.into_iter().map(|mut answers| answers.split_off(answers.len() - 1)).collect();
    let load = Load { units: &messages.units, allowed: &allowed, depth: 1 };
    systems.check_receiver()?;
    let measurement = |target: &Target| {
        let mut series = Series::new(target.system);
        series.note = routes.get(target.system).cloned().unwrap_or_default();
        Measurement { series, receiver_us: Vec::new() }
    };
    let mut all: Vec<Measurement> = targets.iter().map(measurement).collect();
    for round in 0..options.rounds {
        say(&format!("{} {}: round {} of {}", workload.name, protocol.name(), round + 1, options.rounds));
        for at in turns(round, targets.len()) {
            let named = |error: io::Error| io::Error::other(format!("{}: {error}", targets[at].system));
            let measured =
                one_round(&targets[at], &mut connections[at], &load, options.seconds, &mut all[at]).map_err(named)?;
            if workload.kind == Kind::Inserts && ![CANNED, BARRIER].contains(&targets[at].system) {
                *inserted += measured.queries;
            }
        }
    }
    Ok(all)
}

/// One system on one case.
struct Measurement {
    series: Series,
    /// Microseconds per query, a value per round, of what follows the PostgreSQL behind the relays; nothing elsewhere.
    receiver_us: Vec<f64>,
}

/// Who has no part in a case, and why.
fn unasked(kind: Kind, protocol: Protocol) -> Vec<(&'static str, &'static str)> {
    let mut unasked = Vec::new();
    if protocol == Protocol::Prepared {
        unasked.push((PGPOOL, "rows of prepared INSERTs that it acknowledges are missing afterwards (4.3)"));
    }
    if kind != Kind::Reads {
        unasked.extend([CANNED, BARRIER].map(|system| (system, "a canned reply to a write would be a lie")));
    }
    unasked
}

fn one_round(
    target: &Target,
    connections: &mut [Connection],
    load: &Load<'_>,
    seconds: f64,
    measurement: &mut Measurement,
) -> io::Result<Measured> {
    let now = || {
        let server = target.process.map(processor_time_of_family).unwrap_or_default();
        let receiver = target.receiver.map(processor_time).unwrap_or_default();
        [server, processor_time_of_family(target.postmaster), receiver]
    };
    let before = now();
    let measured = load::run(connections, load, seconds)?;
    let [server, upstream, receiver] = between(before, now());
    measurement.series.add(&measured, [server, upstream], 1)?;
    if target.receiver.is_some() {
        measurement.receiver_us.push(receiver.as_secs_f64() * 1e6 / measured.queries as f64);
    }
    Ok(measured)
}

fn inserts(kind: Kind) -> bool {
    kind == Kind::Inserts
}

/// Each unit's rows by PostgreSQL, and replies for the ceilings as pairs of bytes.
type Learnt = (Vec<Allowed>, Vec<(Vec<u8>, Vec<u8>)>);

fn learn(systems: &Systems, messages: &Messages, workload: &Workload, inserted: &mut u64) -> io::Result<Learnt> {
    let kind = workload.kind;
    let mut client = Client::connect(systems.upstream(), "postgres", DATABASE)?;
    let mut replies = Vec::new();
    for message in &messages.first {
        replies.push((message.clone(), client.query(message)?.to_vec()));
    }
    // A reply to a prepared statement does not name its columns.
    let mut orders = Vec::new();
    for statement in &workload.statements {
        let text = statement.text();
        let is_sorted = text.contains("ORDER BY");
        let names = if is_sorted { column_names(client.query(&query_message(&text))?) } else { Vec::new() };
        orders.push(sorted_by(&text, &names));
    }
    let mut allowed: Vec<Allowed> = vec![Vec::new(); messages.units.len()];
    // Where some units write, reads before and after them differ.
    let passes = if kind == Kind::Mixed { 2 } else { 1 };
    for pass in 1..=passes {
        for ((unit, allowed), order) in messages.units.iter().zip(&mut allowed).zip(&orders) {
            let reply = client.query(unit)?;
            allowed.push(Answer::of(reply, order));
            if pass == passes {
                replies.push((unit.clone(), reply.to_vec()));
            }
        }
    }
    if inserts(kind) {
        *inserted += messages.units.len() as u64;
    }
    Ok((allowed, replies))
}

/// Only what reads has a ceiling: a canned reply to a write would be a lie.
fn ceilings(systems: &Systems, replies: &std::path::Path, kind: Kind) -> io::Result<Vec<(&'static str, Server)>> {
    if kind != Kind::Reads {
        return Ok(Vec::new());
    }
    let (path, log) = (replies.display().to_string(), systems.folder.path().join("servers.log"));
    Ok(vec![
        (CANNED, Server::start(&["serve-canned", &path], &log)?),
        (BARRIER, Server::start(&["serve-canned", &path, &systems.upstream_url()], &log)?),
    ])
}

/// Mode `standby` is the whole server's.
fn settings_of(system: &str) -> &'static [&'static str] {
    match system {
        EXACT => &["SET freshet.freshness = 'exact'"],
        SESSION => &["SET freshet.freshness = 'session'"],
        _ => &[],
    }
}

fn open(
    target: &Target,
    messages: &Messages,
    load: &Load<'_>,
    kind: Kind,
    threads: usize,
    inserted: &mut u64,
) -> io::Result<Vec<Connection>> {
    let mut connections = Vec::new();
    for _ in 0..threads {
        let mut connection = Connection::open(target.address, DATABASE, settings_of(target.system), &messages.first)?;
        connection.warm_up(load)?;
        if inserts(kind) {
            *inserted += load.units.len() as u64;
        }
        connections.push(connection);
    }
    // Where some units write, the first of these connections saw the rows before.
    if kind == Kind::Mixed {
        connections.iter_mut().try_for_each(|connection| connection.warm_up(load))?;
    }
    Ok(connections)
}

/// Repeats every unit that reads until it is answered by a kept reply; how the last one was answered. Where nobody writes, a
/// unit that never is one is an error: it would be timed under a wrong name.
fn settle(target: &Target, messages: &Messages, load: &Load<'_>, kind: Kind, inserted: &mut u64) -> io::Result<String> {
    let mut connection = Connection::open(target.address, DATABASE, settings_of(target.system), &messages.first)?;
    let limit = Instant::now() + Duration::from_secs(20);
    let mut seen = (String::new(), String::new());
    for unit in load.units {
        loop {
            connection.client.query(unit)?;
            *inserted += u64::from(inserts(kind));
            seen = last_route(&mut connection.client)?;
            if seen.0 == "hit" || inserts(kind) {
                break;
            }
            if Instant::now() > limit {
                if kind == Kind::Mixed {
                    break;
                }
                let (route, reason) = &seen;
                let problem = format!("{}: answered by {route} ({reason}), not by a hit", target.system);
                return Err(io::Error::other(problem));
            }
            // A write is never answered here.
            if seen.0 == "relay" && seen.1.contains("not_a_query") {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let (route, reason) = seen;
    Ok(if reason.is_empty() { route } else { format!("{route} ({reason})") })
}

fn report(case: &str, measured: Vec<Measurement>, results: &mut Results) -> io::Result<()> {
    let (all, receivers): (Vec<Series>, Vec<Vec<f64>>) =
        measured.into_iter().map(|one| (one.series, one.receiver_us)).unzip();
    let mut text = format!(
        "\n{case}\n{:25} {:>9} {:>17} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7} {:>20} {:>18} {:>18} {:>18}\n",
        "server",
        "queries/s",
        "min..max",
        "p50 us",
        "p99 us",
        "cpu us",
        "PG us",
        "rec. us",
        "cl. us",
        "x upstream",
        "x cheapest",
        "x canned",
        "x barrier"
    );
    for (series, receiver_us) in all.iter().zip(&receivers) {
        let (rate, [server, upstream, client]) = (series.rate(), series.processor());
        let _ = writeln!(
            text,
            "{:25} {:>9.0} {:>17} {:>9.1} {:>9.1} {:>7.1} {:>7.1} {:>7} {:>7.1} {:>20} {:>18} {:>18} {:>18}  {}",
            series.system,
            rate.median,
            format!("{:.0}..{:.0}", rate.min, rate.max),
            series.us(0.5),
            series.us(0.99),
            server,
            upstream,
            if receiver_us.is_empty() { "-".into() } else { format!("{:.1}", median(receiver_us.iter().copied())) },
            client,
            series.beside(&all, UPSTREAM),
            series.beside(&all, CHEAPEST),
            series.beside(&all, CANNED),
            series.beside(&all, BARRIER),
            series.note
        );
        series.write(results, case, "query", None)?;
        if !receiver_us.is_empty() {
            let metric = ("processor time of the receiver", "us/query", Better::Neither);
            results.figure(
                case,
                series.system,
                metric,
                receiver_us,
                "pg_recvlogical, which follows this PostgreSQL",
            )?;
        }
    }
    let _ = writeln!(io::stdout(), "{}", text.trim_end_matches('\n'));
    results.end(case)
}
