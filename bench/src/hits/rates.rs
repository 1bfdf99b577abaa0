//! Hits against the ceilings.

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};

use freshet_tests::client::{bind, describe, execute, parse, sync};

use crate::console::{print, say};
use crate::hits::{DATABASE, Options, Stand, Standby};
use crate::load::{self, Allowed, Connection, Load};
use crate::process::{between, postmaster, processor_time, processor_time_of_family};
use crate::results::Results;
use crate::series::Series;
use crate::servers::{Server, last_route};
use crate::spread::paired;
use crate::turns::turns;
use crate::wire::{Answer, Client, query_message};

const SESSION: &str = "freshet session";
const EXACT: &str = "freshet exact";
const STANDBY: &str = "freshet standby";
const CANNED: &str = "canned reply";
const BARRIER: &str = "group barrier";
const POINT: &str = "SELECT id, val FROM points WHERE id = $1";

/// What each connection sends first, and its units in turn.
struct Messages {
    name: &'static str,
    first: Vec<Vec<u8>>,
    units: Vec<Vec<u8>>,
    /// The texts, for the shapes to be verified and the replies kept beforehand.
    texts: Vec<String>,
    /// How many are sent at once; then an entry of `units` is so many.
    depth: usize,
}

fn points(name: &'static str, first: Vec<Vec<u8>>, unit: impl Fn(&str) -> Vec<u8>) -> Messages {
    let arguments: Vec<String> = (0..100).map(|n| (n * 997).to_string()).collect();
    let texts = arguments.iter().map(|argument| POINT.replace("$1", argument)).collect();
    Messages { name, first, units: arguments.iter().map(|argument| unit(argument)).collect(), texts, depth: 1 }
}

fn simple() -> Messages {
    points("simple", Vec::new(), |argument| query_message(&POINT.replace("$1", argument)))
}

fn prepared() -> Messages {
    let first = vec![[parse("point", POINT), sync()].concat()];
    points("prepared", first, |argument| [bind("", "point", &[Some(argument)], 0), execute("", 0), sync()].concat())
}

fn all() -> Vec<Messages> {
    let extended = points("extended", Vec::new(), |argument| {
        [parse("", POINT), bind("", "", &[Some(argument)], 0), describe('P', ""), execute("", 0), sync()].concat()
    });
    // A hundred units in one write, each with other parameters.
    let one = prepared();
    let executions = |from: usize| {
        let units = (0..100).map(|at| one.units[(from + at) % 100].clone());
        units.collect::<Vec<_>>().concat()
    };
    let pipeline =
        Messages { name: "pipeline of 100", units: (0..10).map(executions).collect(), depth: 100, ..prepared() };
    let scan = "SELECT * FROM scanned";
    let scan = Messages {
        name: "5,000 rows",
        first: Vec::new(),
        units: vec![query_message(scan)],
        texts: vec![scan.to_owned()],
        depth: 1,
    };
    vec![simple(), extended, prepared(), pipeline, scan]
}

/// Freshet in its modes and the two ceilings, learnt and settled.
struct Contest {
    canned: Server,
    barrier: Server,
    allowed: Vec<Allowed>,
}

impl Contest {
    fn new(stand: &Stand, messages: &Messages) -> io::Result<Self> {
        let mut client = Client::connect(stand.upstream(), "postgres", DATABASE)?;
        let mut replies: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for message in &messages.first {
            replies.push((message.clone(), client.query(message)?.to_vec()));
        }
        let mut allowed = Vec::new();
        for unit in &messages.units {
            allowed.push(vec![Answer::of(client.pipeline(unit, messages.depth)?, &[])]);
        }
        // A ceiling knows the units one by one.
        let single = if messages.depth > 1 { prepared().units } else { messages.units.clone() };
        for unit in &single {
            replies.push((unit.clone(), client.query(unit)?.to_vec()));
        }
        let file = stand.folder.path().join("replies.json");
        std::fs::write(&file, serde_json::to_vec(&replies)?)?;
        let url = stand.cluster.url(DATABASE);
        let contest = Self { canned: stand.ceiling(&file, None)?, barrier: stand.ceiling(&file, Some(&url))?, allowed };
        contest.settle(stand, SESSION, messages)?;
        if stand.standby.is_some() {
            contest.settle(stand, STANDBY, messages)?;
        }
        Ok(contest)
    }

    /// Every unit until all of its executions are hits.
    fn settle(&self, stand: &Stand, system: &str, messages: &Messages) -> io::Result<()> {
        let mut connection = self.open(stand, system, messages)?;
        let limit = Instant::now() + Duration::from_secs(30);
        for unit in &messages.units {
            loop {
                connection.client.pipeline(unit, messages.depth)?;
                let (route, reason) = last_route(&mut connection.client)?;
                if route == "hit" {
                    break;
                }
                if Instant::now() > limit {
                    let text = messages.texts.first().map_or("", String::as_str);
                    let problem = format!("{system}: answered by {route} ({reason}), not by a hit: {text}");
                    return Err(io::Error::other(problem));
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(())
    }

    fn open(&self, stand: &Stand, system: &str, messages: &Messages) -> io::Result<Connection> {
        let (address, settings): (_, &[&str]) = match system {
            // The mode is the whole server's.
            STANDBY => (standby(stand)?.freshet.address, &[]),
            SESSION => (stand.freshet.address, &["SET freshet.freshness = 'session'"]),
            EXACT => (stand.freshet.address, &["SET freshet.freshness = 'exact'"]),
            CANNED => (self.canned.address, &[]),
            _ => (self.barrier.address, &[]),
        };
        Connection::open(address, DATABASE, settings, &messages.first)
    }

    /// Its process, and the first one of the PostgreSQL behind it.
    fn processes(&self, stand: &Stand, system: &str) -> io::Result<[u32; 2]> {
        let process = match system {
            STANDBY => {
                let standby = standby(stand)?;
                return Ok([standby.freshet.process.id, postmaster(&standby.cluster)?]);
            }
            SESSION | EXACT => stand.freshet.process.id,
            CANNED => self.canned.process.id,
            _ => self.barrier.process.id,
        };
        Ok([process, postmaster(&stand.cluster)?])
    }
}

fn standby(stand: &Stand) -> io::Result<&Standby> {
    stand.standby.as_ref().ok_or_else(|| io::Error::other(format!("{STANDBY} has not been started")))
}

fn measure(
    options: &Options,
    stand: &Stand,
    messages: &Messages,
    systems: &[&'static str],
    connections: usize,
) -> io::Result<Vec<Series>> {
    let contest = Contest::new(stand, messages)?;
    let load = Load { units: &messages.units, allowed: &contest.allowed, depth: messages.depth };
    let mut open: Vec<Vec<Connection>> = Vec::new();
    for system in systems {
        let mut of_system = Vec::new();
        for _ in 0..connections {
            let mut connection = contest.open(stand, system, messages)?;
            connection.warm_up(&load)?;
            of_system.push(connection);
        }
        open.push(of_system);
    }
    let mut all: Vec<Series> = systems.iter().map(|system| Series::new(system)).collect();
    for round in 0..options.rounds {
        for at in turns(round, systems.len()) {
            let [process, upstream] = contest.processes(stand, systems[at])?;
            let now = || [processor_time(process), processor_time_of_family(upstream)];
            let before = now();
            let measured = load::run(&mut open[at], &load, options.seconds)
                .map_err(|error| io::Error::other(format!("{}: {error}", systems[at])))?;
            let after = now();
            all[at].add(&measured, between(before, after), messages.depth)?;
        }
    }
    Ok(all)
}

/// Every protocol at eight connections.
pub(super) fn protocols(options: &Options, stand: &Stand, results: &mut Results) -> io::Result<()> {
    for messages in all() {
        say(&format!("hits, {}", messages.name));
        let all = measure(options, stand, &messages, &[SESSION, EXACT, STANDBY, CANNED, BARRIER], 8)?;
        report(&format!("{}, 8 connections", messages.name), &all, results)?;
        let wanted = if messages.name == "5,000 rows" { 0.95 } else { 0.90 };
        aim(&all, (SESSION, CANNED), wanted);
        aim(&all, (STANDBY, CANNED), wanted);
        aim(&all, (EXACT, BARRIER), 0.90);
    }
    results.end("rates")
}

/// Many connections at once, each with a thread of its own in the client.
pub(super) fn connections(options: &Options, stand: &Stand, results: &mut Results) -> io::Result<()> {
    crate::relay::raise_file_limit();
    say(&format!("hits over {} connections", options.connections));
    let messages = prepared();
    let few = measure(options, stand, &messages, &[SESSION, CANNED], 8)?;
    let many = measure(options, stand, &messages, &[SESSION, CANNED], options.connections)?;
    report(&format!("prepared, {} connections", options.connections), &many, results)?;
    for (few, many) in few.iter().zip(&many) {
        let kept = paired(&many.rates, &few.rates).median;
        print(&format!(
            "{}: {:.0} % of the rate at 8 connections (wanted: 85 % in freshet)",
            many.system,
            100.0 * kept
        ));
    }
    results.end("connections")
}

/// One connection: what freshet adds to the medians of the ceilings.
pub(super) fn latency(options: &Options, stand: &Stand, results: &mut Results) -> io::Result<()> {
    say("latency at one connection");
    let all = measure(options, stand, &prepared(), &[SESSION, EXACT, CANNED, BARRIER], 1)?;
    report("prepared, 1 connection", &all, results)?;
    let added = |one: usize, other: usize| all[one].us(0.5) - all[other].us(0.5);
    print(&format!(
        "added to the median: session {:.1} us over the canned reply, exact {:.1} us over the canned reply (wanted: 200) \
         and {:.1} us over the group barrier",
        added(0, 2),
        added(1, 2),
        added(1, 3)
    ));
    results.end("latency")
}

fn aim(all: &[Series], (system, reference): (&str, &str), wanted: f64) {
    let of = |name: &str| all.iter().find(|series| series.system == name);
    let (Some(one), Some(other)) = (of(system), of(reference)) else { return };
    let ratio = paired(&one.rates, &other.rates).median;
    let p99 = one.us(0.99) / other.us(0.99);
    let missed = |is_met: bool| if is_met { "" } else { " MISSED" };
    print(&format!(
        "{system}: {ratio:.3} of the {reference} (wanted {wanted}){}; its p99 {p99:.2} x (wanted 2){}",
        missed(ratio >= wanted),
        missed(p99 <= 2.0)
    ));
}

fn report(case: &str, all: &[Series], results: &mut Results) -> io::Result<()> {
    let mut text = format!(
        "\n{case}\n{:18} {:>12} {:>21} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        "server", "executions/s", "min..max", "p50 us", "p99 us", "cpu us", "PG us", "cl. us"
    );
    for series in all {
        let (rate, [server, upstream, client]) = (series.rate(), series.processor());
        let _ = writeln!(
            text,
            "{:18} {:>12.0} {:>21} {:>9.1} {:>9.1} {:>9.2} {:>9.2} {:>9.2}",
            series.system,
            rate.median,
            format!("{:.0}..{:.0}", rate.min, rate.max),
            series.us(0.5),
            series.us(0.99),
            server,
            upstream,
            client
        );
        series.write(results, case, "execution", None)?;
    }
    print(&text);
    Ok(())
}
