//! Rates at several connections, latency at one, and a pipelined batch: every server in turn, round by round, over
//! connections that stay open; every reply is compared with PostgreSQL's, byte for byte.

use std::io;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::load::{histogram, record};
use crate::process::between;
use crate::relay::servers::Line;
use crate::relay::units::{self, Statement, Units};
use crate::turns::turns;
use crate::wire::Client;

/// What one server did in one round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    /// Units, or bytes, per second.
    pub(crate) rate: f64,
    /// Microseconds of the processors per unit: the server (nothing for PostgreSQL itself), PostgreSQL, the client.
    pub(crate) processor_us: [f64; 3],
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// A server's rounds on one workload.
#[derive(Clone)]
pub(crate) struct Series<'a> {
    pub(crate) line: &'a Line,
    pub(crate) rounds: Vec<Round>,
    /// Nanoseconds of single units, of all rounds; empty where several are under way.
    pub(crate) latency: Histogram<u64>,
}

impl<'a> Series<'a> {
    pub(crate) fn new(line: &'a Line) -> Self {
        Self { line, rounds: Vec::new(), latency: histogram() }
    }
}

/// What was used since `before` ([`Line::used`]), in microseconds, for each of `count`.
pub(crate) fn used_each(line: &Line, before: [Duration; 3], count: f64) -> [f64; 3] {
    between(before, line.used()).map(|used| used.as_secs_f64() * 1e6 / count)
}

pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
}

/// Units per second and latency of each line; `inserted` counts what must be in the table afterwards.
pub(crate) fn measure<'a>(
    lines: &'a [Line],
    units: &Units,
    load: &Load,
    inserted: &mut u64,
) -> io::Result<Vec<Series<'a>>> {
    let mut clients: Vec<Vec<Client>> = Vec::new();
    for line in lines {
        let mut of_line = Vec::new();
        for _ in 0..load.connections {
            let mut client = line.connect()?;
            // Warm caches upstream, verdicts in freshet.
            for _ in 0..2 {
                for at in 0..units.messages.len() {
                    check(client.query(&units.messages[at])?, &units.replies[at])?;
                }
                *inserted += inserts(units, units.messages.len() as u64);
            }
            of_line.push(client);
        }
        clients.push(of_line);
    }
    let mut series: Vec<Series<'_>> = lines.iter().map(Series::new).collect();
    for round in 0..load.rounds {
        for at in turns(round, lines.len()) {
            let (measured, count, latency) = one_round(&lines[at], &mut clients[at], units, load.seconds)
                .map_err(|error| io::Error::other(format!("{}: {error}", lines[at].name())))?;
            *inserted += inserts(units, count);
            series[at].rounds.push(measured);
            series[at].latency.add(&latency).map_err(io::Error::other)?;
        }
    }
    Ok(series)
}

fn inserts(units: &Units, count: u64) -> u64 {
    if units.statement == Statement::Insert { count } else { 0 }
}

/// The round, how many units there were, and nanoseconds of each.
fn one_round(
    line: &Line,
    clients: &mut [Client],
    units: &Units,
    seconds: f64,
) -> io::Result<(Round, u64, Histogram<u64>)> {
    let before = line.used();
    let start = Barrier::new(clients.len());
    let results: Vec<io::Result<(u64, Duration, Histogram<u64>)>> = std::thread::scope(|scope| {
        let start = &start;
        let threads: Vec<_> = clients
            .iter_mut()
            .enumerate()
            .map(|(thread, client)| scope.spawn(move || one_thread(client, units, thread, seconds, start)))
            .collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|result| result.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))).collect()
    });
    let (mut count, mut elapsed, mut latency) = (0, Duration::ZERO, histogram());
    for result in results {
        let (of_thread, duration, latencies) = result?;
        count += of_thread;
        elapsed = elapsed.max(duration);
        latency.add(&latencies).map_err(io::Error::other)?;
    }
    let round = Round {
        rate: count as f64 / elapsed.as_secs_f64(),
        processor_us: used_each(line, before, count as f64),
        p50_us: latency.value_at_quantile(0.5) as f64 / 1000.0,
        p99_us: latency.value_at_quantile(0.99) as f64 / 1000.0,
    };
    Ok((round, count, latency))
}

fn one_thread(
    client: &mut Client,
    units: &Units,
    thread: usize,
    seconds: f64,
    start: &Barrier,
) -> io::Result<(u64, Duration, Histogram<u64>)> {
    let (mut count, mut latency) = (0, histogram());
    let mut at = thread * 17 % units.messages.len();
    start.wait();
    let limit = Duration::from_secs_f64(seconds);
    let began = Instant::now();
    let mut now = began;
    while now - began < limit {
        let reply = client.query(&units.messages[at])?;
        let done = Instant::now();
        record(&mut latency, done - now);
        now = done;
        check(reply, &units.replies[at])?;
        count += 1;
        at = (at + 1) % units.messages.len();
    }
    Ok((count, now - began, latency))
}

fn check(reply: &[u8], expected: &[u8]) -> io::Result<()> {
    if reply == expected { Ok(()) } else { Err(io::Error::other("a reply differs from PostgreSQL's")) }
}

/// One connection sends a whole batch while it reads the replies.
pub(crate) fn measure_batch<'a>(lines: &'a [Line], executions: usize, rounds: usize) -> io::Result<Vec<Series<'a>>> {
    let batch = units::batch(executions);
    let mut direct = lines[0].connect()?;
    let expected = direct.exchange(&batch)?.to_vec();
    let mut clients = lines.iter().map(Line::connect).collect::<io::Result<Vec<_>>>()?;
    let mut series: Vec<Series<'_>> = lines.iter().map(Series::new).collect();
    for round in 0..=rounds {
        for at in turns(round, lines.len()) {
            let (before, began) = (lines[at].used(), Instant::now());
            let reply = clients[at].exchange(&batch);
            let elapsed = began.elapsed();
            let processor_us = used_each(&lines[at], before, executions as f64);
            let named = |error: io::Error| io::Error::other(format!("{}: {error}", lines[at].name()));
            check(reply.map_err(named)?, &expected).map_err(named)?;
            // The first round warms up.
            if round > 0 {
                series[at].rounds.push(Round {
                    rate: executions as f64 / elapsed.as_secs_f64(),
                    processor_us,
                    ..Round::default()
                });
            }
        }
    }
    Ok(series)
}
