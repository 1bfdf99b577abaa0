//! The relay suite: what freshet costs where it only passes on, against PostgreSQL itself, the cheapest relay that can be
//! built, and PgBouncer.
//!
//! [`mod@servers`] starts them, [`mod@units`] are the workloads, [`mod@rates`], [`mod@copy`], [`mod@idle`] and [`mod@syscalls`] measure,
//! [`report`] shows ratios and targets. An error reply, another reply than PostgreSQL's or a lost row fails the suite; a
//! missed target does not: it is printed.

mod copy;
mod idle;
mod rates;
mod report;
mod servers;
mod syscalls;
mod units;

use std::io::{self};
use std::path::{Path, PathBuf};

use crate::console::say;
pub(crate) use crate::relay::idle::{can_hold, raise_file_limit};
use crate::relay::rates::Load;
use crate::relay::report::Report;
use crate::relay::servers::{DATABASE, Leg, Line, Servers, Upstream};
use crate::relay::units::{Protocol, Statement};
use crate::results::Results;
use crate::servers::configuration;
use crate::wire::Client;
use crate::{parts, poolers};

pub(crate) struct Options {
    /// Length of one run.
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) quick: bool,
    pub(crate) only: Option<String>,
    /// The program under test; by default beside this one.
    pub(crate) freshet: Option<PathBuf>,
    pub(crate) results: Option<PathBuf>,
}

/// The parts that `--only` may name, beside `NAME-PROTOCOL` as in `select-simple`.
const PARTS: [&str; 5] = ["latency", "batch", "copy", "idle", "syscalls"];
const CONNECTIONS: usize = 8;

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == name)
    }
}

/// When the program was built, which need not be from the commit that the bench is of.
fn built(program: &Path) -> io::Result<String> {
    let changed = jiff::Timestamp::try_from(std::fs::metadata(program)?.modified()?).map_err(io::Error::other)?;
    Ok(changed.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Runs the suite and prints its tables.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    check_name(options)?;
    let freshet = program(options)?;
    raise_file_limit();
    // Writes are as durable as they are by default.
    let upstream = Upstream::start(&["shared_buffers=256MB", "max_wal_size=8GB", "fsync=on"])?;
    let version = upstream.cluster.psql("postgres", "SHOW server_version");
    let mut versions = vec![
        ("freshet", env!("CARGO_PKG_VERSION").to_owned()),
        ("PostgreSQL", version),
        ("freshet of", built(&freshet)?),
    ];
    versions.extend(poolers::versions().into_iter().filter(|(name, _)| *name == "PgBouncer"));
    let settings = [
        ("seconds", options.seconds.to_string()),
        ("rounds", options.rounds.to_string()),
        ("quick", options.quick.to_string()),
        configuration(&upstream.cluster),
    ];
    let mut report = Report::new(Results::open(options.results.as_deref(), "relay", &versions, &settings)?);
    units::points().load_alone(&mut Client::connect(upstream.address(), "postgres", DATABASE)?)?;
    upstream.cluster.psql(DATABASE, units::SETUP);
    upstream.cluster.psql(DATABASE, "VACUUM (ANALYZE)");
    let mut inserted = 0;
    for leg in Leg::ALL {
        say(&format!("starting servers, upstream by {}", leg.name()));
        let servers = Servers::start(&upstream, leg, &freshet)?;
        if let Some(reason) = &servers.missing {
            report.skip("PgBouncer", reason)?;
        }
        rates(options, &servers, &mut report, &mut inserted)?;
        latency(options, &servers, &mut report, &mut inserted)?;
        batch(options, &servers, &mut report)?;
        copy(options, &servers, &mut report)?;
        syscalls(options, &servers, &mut report, &mut inserted)?;
    }
    let rows = upstream.cluster.psql(DATABASE, "SELECT count(*) FROM events");
    if rows != inserted.to_string() {
        return Err(io::Error::other(format!("{inserted} INSERTs were acknowledged, {rows} rows are there")));
    }
    drop(upstream);
    if options.wants("idle") && !report.is_done("idle") {
        let sessions = if options.quick { 200 } else { 2000 };
        say(&format!("idle: {sessions} sessions"));
        report.idle(&idle::measure(&freshet, sessions)?)?;
        report.end("idle")?;
    }
    report.summary();
    Ok(())
}

fn rates(options: &Options, servers: &Servers, report: &mut Report, inserted: &mut u64) -> io::Result<()> {
    let load = Load { connections: CONNECTIONS, seconds: options.seconds, rounds: options.rounds };
    for statement in Statement::ALL {
        for protocol in Protocol::ALL {
            let name = format!("{}-{}", statement.name(), protocol.name());
            let title = format!("{name}, {}", servers.leg.name());
            if !options.wants(&name) || report.is_done(&title) {
                continue;
            }
            say(&name);
            let units = learn(servers, statement, protocol, inserted)?;
            // Only what reads has a ceiling: a canned reply to a write would be a lie.
            let canned = if statement == Statement::Select { Some(servers.start_canned(&units)?) } else { None };
            let lines: Vec<Line> = servers.lines.iter().chain(canned.iter().map(|(line, _)| line)).cloned().collect();
            let series = rates::measure(&lines, &units, &load, inserted)?;
            report.rates(&title, &series, "units/s", 1.0)?;
            report.aim_at_relays(&title, &series, true);
            report.end(&title)?;
        }
    }
    Ok(())
}

fn latency(options: &Options, servers: &Servers, report: &mut Report, inserted: &mut u64) -> io::Result<()> {
    if !options.wants("latency") {
        return Ok(());
    }
    let load = Load { connections: 1, seconds: options.seconds, rounds: options.rounds };
    for protocol in Protocol::ALL {
        let title = format!("latency of select-{}, {}", protocol.name(), servers.leg.name());
        if report.is_done(&title) {
            continue;
        }
        say(&format!("latency, {}", protocol.name()));
        let units = learn(servers, Statement::Select, protocol, inserted)?;
        let series = rates::measure(&servers.lines, &units, &load, inserted)?;
        report.rates(&title, &series, "units/s", 1.0)?;
        report.aim_at_latency(&title, &series);
        report.end(&title)?;
    }
    Ok(())
}

fn batch(options: &Options, servers: &Servers, report: &mut Report) -> io::Result<()> {
    let title = format!("batch of 10,000, {}", servers.leg.name());
    if !options.wants("batch") || report.is_done(&title) {
        return Ok(());
    }
    say("batch");
    let rounds = if options.quick { 3 } else { 4 * options.rounds };
    let series = rates::measure_batch(&servers.lines, 10_000, rounds)?;
    report.rates(&title, &series, "units/s", 1.0)?;
    report.aim_at_relays(&title, &series, false);
    report.end(&title)
}

fn copy(options: &Options, servers: &Servers, report: &mut Report) -> io::Result<()> {
    let title = format!("copy, {}", servers.leg.name());
    if !options.wants("copy") || report.is_done(&title) {
        return Ok(());
    }
    let (bytes, rounds) = if options.quick { (32_000_000, 1) } else { (1_000_000_000, options.rounds) };
    say(&format!("copy, {} MB", bytes / 1_000_000));
    report.copies(servers.leg.name(), &copy::measure(&servers.lines, bytes, rounds)?, bytes)?;
    report.end(&title)
}

fn syscalls(options: &Options, servers: &Servers, report: &mut Report, inserted: &mut u64) -> io::Result<()> {
    let title = format!("syscalls, {}", servers.leg.name());
    if !options.wants("syscalls") || report.is_done(&title) {
        return Ok(());
    }
    say("syscalls");
    let mut calls = Vec::new();
    for protocol in Protocol::ALL {
        let units = learn(servers, Statement::Select, protocol, inserted)?;
        match syscalls::measure(&servers.lines, &units)? {
            Ok(some) => calls.extend(some),
            Err(reason) => return report.skip(&title, &reason),
        }
    }
    report.calls(servers.leg.name(), &calls)?;
    report.end(&title)
}

fn learn(servers: &Servers, statement: Statement, protocol: Protocol, inserted: &mut u64) -> io::Result<units::Units> {
    let units = units::learn(&mut servers.lines[0].connect()?, statement, protocol)?;
    if statement == Statement::Insert {
        *inserted += units.messages.len() as u64;
    }
    Ok(units)
}

fn check_name(options: &Options) -> io::Result<()> {
    let workloads = Statement::ALL.iter().flat_map(|statement| {
        Protocol::ALL.iter().map(move |protocol| format!("{}-{}", statement.name(), protocol.name()))
    });
    parts::check(options.only.as_deref(), workloads.chain(PARTS.map(String::from)))
}

fn program(options: &Options) -> io::Result<PathBuf> {
    let program = match &options.freshet {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("freshet"),
    };
    if program.is_file() {
        return Ok(program);
    }
    let advice = "cargo build --release -p freshet --bin freshet, or --freshet PATH";
    Err(io::Error::other(format!("{} is not there: {advice}", program.display())))
}
