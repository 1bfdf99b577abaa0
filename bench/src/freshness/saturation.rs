//! What following costs those who write as fast as they can: commits per second of a PostgreSQL that freshet follows, beside one that a
//! bare receiver follows, which decodes the same publication and throws it away.
//!
//! Writers are direct in both. One reader polls at a dashboard's pace, through freshet in a mode, or, beside the receiver, direct: at its
//! own pace it would take from the writers what it can.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use freshet_tests::client::{bind, execute, parse, sync};
use freshet_tests::cluster::Cluster;
use hdrhistogram::Histogram;

use crate::console::print;
use crate::freshness::measure::{joined, number};
use crate::freshness::{DATABASE, Options, make_table, start_cluster};
use crate::load::{histogram, record};
use crate::process::{Process, postmaster, used, used_since};
use crate::results::{Better, Results};
use crate::servers::{Server, address, settle, start_receiver, wait_until_mirrored};
use crate::spread::{median, paired};
use crate::wire::{Client, query_message};

pub(super) const SATURATION: &str = "saturation";
const TABLE: &str = "public.pressed";
const WRITERS: usize = 8;
const READS_PER_SECOND: u32 = 100;
const MODES: [&str; 2] = ["exact", "session"];
const RECEIVER: &str = "receiver";
/// Until every row's reply is kept.
const PATIENCE: Duration = Duration::from_secs(20);

/// A PostgreSQL, and who follows it.
struct Followed<'a> {
    cluster: &'a Cluster,
    follower: &'a Process,
    /// Where the reader asks.
    asked: SocketAddr,
    mode: Option<&'static str>,
}

struct Turn {
    commits: Histogram<u64>,
    seconds: f64,
    reads: u64,
    /// Of the follower, of PostgreSQL and of the client.
    processor: [Duration; 3],
}

pub(super) fn run(options: &Options, log: &Path, results: &mut Results) -> io::Result<()> {
    let case = |mode: &str| format!("{SATURATION}, {mode}");
    if MODES.iter().all(|mode| results.is_done(&case(mode))) {
        return Ok(());
    }
    let [received, mirrored] = [(); 2].map(|()| start_pressed());
    let receiver = start_receiver(&received, DATABASE, log)?;
    let freshet = Server::start(&["serve-freshet", &mirrored.url(DATABASE), TABLE], log)?;
    wait_until_mirrored(freshet.address, DATABASE, 1)?;
    let beside = Followed { cluster: &received, follower: &receiver, asked: address(&received), mode: None };
    for mode in MODES {
        let case = case(mode);
        if results.is_done(&case) {
            continue;
        }
        let through =
            Followed { cluster: &mirrored, follower: &freshet.process, asked: freshet.address, mode: Some(mode) };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            for turn in 0..2 {
                let seconds = options.seconds / options.rounds as f64;
                if (round + turn) % 2 == 0 {
                    ours.push(one_turn(&through, seconds)?);
                } else {
                    theirs.push(one_turn(&beside, seconds)?);
                }
            }
        }
        write(&case, &format!("freshet {mode}"), &ours, &theirs, results)?;
        results.end(&case)?;
    }
    Ok(())
}

fn start_pressed() -> Cluster {
    let cluster = start_cluster("wal_level=logical");
    make_table(&cluster, "pressed", WRITERS);
    cluster
}

fn question(row: usize) -> String {
    format!("SELECT commit FROM pressed WHERE id = {row}")
}

fn one_turn(followed: &Followed<'_>, seconds: f64) -> io::Result<Turn> {
    let upstream = address(followed.cluster);
    let mut direct = Client::connect(upstream, "postgres", DATABASE)?;
    let mut rows = Vec::new();
    for row in 0..WRITERS {
        rows.push(AtomicU64::new(number(direct.query(&query_message(&question(row)))?)?));
    }
    let mut reader = connect_reader(followed)?;
    let (postmaster, stop) = (postmaster(followed.cluster)?, AtomicBool::new(false));
    let before = used(Some(followed.follower.id), Some(postmaster));
    let began = Instant::now();
    let (commits, reads) = std::thread::scope(|scope| {
        let stop = &stop;
        let writer = |(row, last)| scope.spawn(move || press(upstream, row, last, stop));
        let writers: Vec<_> = rows.iter().enumerate().map(writer).collect();
        let reads = poll(&mut reader, followed, &rows, began + Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
        Ok::<_, io::Error>((joined(writers)?, reads?))
    })?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(Turn { commits, seconds, reads, processor: used_since(before, Some(followed.follower.id), Some(postmaster)) })
}

fn connect_reader(followed: &Followed<'_>) -> io::Result<Client> {
    let mut reader = Client::connect(followed.asked, "postgres", DATABASE)?;
    let Some(mode) = followed.mode else { return Ok(reader) };
    reader.query(&query_message(&format!("SET freshet.freshness = '{mode}'")))?;
    for row in 0..WRITERS {
        let (route, reason) = settle(&mut reader, || question(row), &["hit"], PATIENCE)?;
        if route != "hit" {
            return Err(io::Error::other(format!("answered by {route} ({reason}), not by a hit")));
        }
    }
    Ok(reader)
}

/// One commit after the other, each with the next number; how long each took.
fn press(upstream: SocketAddr, row: usize, last: &AtomicU64, stop: &AtomicBool) -> io::Result<Histogram<u64>> {
    let mut latency = histogram();
    let mut client = Client::connect(upstream, "postgres", DATABASE)?;
    client.query(&[parse("w", "UPDATE pressed SET commit = $1 WHERE id = $2"), sync()].concat())?;
    let name = row.to_string();
    while !stop.load(Ordering::Relaxed) {
        let next = last.load(Ordering::Relaxed) + 1;
        let message = [bind("", "w", &[Some(&next.to_string()), Some(&name)], 0), execute("", 0), sync()].concat();
        let started = Instant::now();
        client.query(&message)?;
        record(&mut latency, started.elapsed());
        last.store(next, Ordering::Release);
    }
    Ok(latency)
}

/// Row after row at the reader's pace; how many. Nobody may see a row go back, nor, but in session mode, one that is stale: the writers
/// pass freshet.
fn poll(client: &mut Client, followed: &Followed<'_>, rows: &[AtomicU64], until: Instant) -> io::Result<u64> {
    let (mut count, mut seen) = (0, vec![0; rows.len()]);
    let mut due = Instant::now();
    while due < until {
        let row = count as usize % rows.len();
        let known = rows[row].load(Ordering::Acquire);
        let found = number(client.query(&query_message(&question(row)))?)?;
        let is_stale = followed.mode != Some("session") && found < known;
        if is_stale || found < seen[row] {
            return Err(io::Error::other(format!("row {row}: {found}, after {} and behind {known}", seen[row])));
        }
        seen[row] = found;
        count += 1;
        due += Duration::from_secs(1) / READS_PER_SECOND;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(count)
}

fn write(case: &str, system: &str, ours: &[Turn], theirs: &[Turn], results: &mut Results) -> io::Result<()> {
    let rates =
        |turns: &[Turn]| -> Vec<f64> { turns.iter().map(|turn| turn.commits.len() as f64 / turn.seconds).collect() };
    let beside = paired(&rates(ours), &rates(theirs));
    for (system, turns) in [(system, ours), (RECEIVER, theirs)] {
        let of = |value: &dyn Fn(&Turn) -> f64| -> Vec<f64> { turns.iter().map(value).collect() };
        let late = |turn: &Turn, quantile| turn.commits.value_at_quantile(quantile) as f64 / 1e3;
        let each = |turn: &Turn, who: usize| turn.processor[who].as_secs_f64() * 1e6 / turn.commits.len().max(1) as f64;
        let reads: u64 = turns.iter().map(|turn| turn.reads).sum();
        let figures = [
            ("commits", "commits/s", Better::More, rates(turns)),
            ("commit, p50", "us", Better::Less, of(&|turn| late(turn, 0.5))),
            ("commit, p99", "us", Better::Less, of(&|turn| late(turn, 0.99))),
            ("follower's processor time", "us/commit", Better::Less, of(&|turn| each(turn, 0))),
            ("PostgreSQL's processor time", "us/commit", Better::Less, of(&|turn| each(turn, 1))),
        ];
        let shown: Vec<String> = figures
            .iter()
            .map(|(metric, unit, _, rounds)| format!("{metric} {:.0} {unit}", median(rounds.iter().copied())))
            .collect();
        print(&format!("{case}: {system}: {}, {reads} reads compared", shown.join(", ")));
        for (metric, unit, better, rounds) in figures {
            results.figure(case, system, (metric, unit, better), &rounds, &format!("{reads} reads, each compared"))?;
        }
    }
    print(&format!("{case}: {:.2} of the receiver's ({:.2}..{:.2})", beside.median, beside.min, beside.max));
    Ok(())
}
