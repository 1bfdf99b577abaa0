//! Drives one server with one workload: T threads, each with a connection, each checking every reply.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::wire::{Client, query_message, sorted_rows};

/// What one run yielded.
pub(crate) struct Measured {
    pub(crate) queries: u64,
    pub(crate) elapsed: Duration,
    /// Nanoseconds.
    pub(crate) latency: Histogram<u64>,
}

impl Measured {
    pub(crate) fn queries_per_second(&self) -> f64 {
        self.queries as f64 / self.elapsed.as_secs_f64()
    }
}

/// A server under test: where, and what each connection sets first.
pub(crate) struct Target<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) database: &'a str,
    pub(crate) session: &'a [&'a str],
}

/// The rows that PostgreSQL gives for each text, sorted.
pub(crate) type Expected = HashMap<String, Vec<Vec<u8>>>;

pub(crate) fn connect(target: &Target<'_>) -> io::Result<Client> {
    let mut client = Client::connect(target.address, "postgres", target.database)?;
    for sql in target.session {
        client.query(&query_message(sql))?;
    }
    Ok(client)
}

/// Asks each text once and compares with `expected`; the replies, byte for byte.
fn warm_up(client: &mut Client, texts: &[String], expected: &Expected) -> io::Result<Vec<Vec<u8>>> {
    let mut replies = Vec::with_capacity(texts.len());
    for text in texts {
        let reply = client.query(&query_message(text))?.to_vec();
        if expected.get(text).is_some_and(|rows| *rows != sorted_rows(&reply)) {
            return Err(io::Error::other(format!("rows differ from PostgreSQL's: {text}")));
        }
        replies.push(reply);
    }
    Ok(replies)
}

/// Runs for `seconds`. Every reply is checked: byte for byte against this server's own reply, which was compared with
/// PostgreSQL's rows; a reply of other bytes must still have the same rows.
pub(crate) fn run(
    target: &Target<'_>,
    texts: &[String],
    expected: &Expected,
    threads: usize,
    seconds: f64,
) -> io::Result<Measured> {
    let start = Barrier::new(threads);
    let results: Vec<io::Result<(u64, Duration, Histogram<u64>)>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let start = &start;
                scope.spawn(move || one_thread(target, texts, expected, thread, seconds, start))
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
            .collect()
    });
    let mut total = Measured { queries: 0, elapsed: Duration::ZERO, latency: histogram() };
    for result in results {
        let (queries, elapsed, latency) = result?;
        total.queries += queries;
        total.elapsed = total.elapsed.max(elapsed);
        total.latency.add(&latency).map_err(io::Error::other)?;
    }
    Ok(total)
}

fn one_thread(
    target: &Target<'_>,
    texts: &[String],
    expected: &Expected,
    thread: usize,
    seconds: f64,
    start: &Barrier,
) -> io::Result<(u64, Duration, Histogram<u64>)> {
    let prepared = connect(target).and_then(|mut client| {
        let replies = warm_up(&mut client, texts, expected)?;
        Ok((client, replies))
    });
    start.wait();
    let (mut client, replies) = prepared?;
    let messages: Vec<Vec<u8>> = texts.iter().map(|text| query_message(text)).collect();
    let limit = Duration::from_secs_f64(seconds);
    let (mut queries, mut latency, mut at) = (0, histogram(), thread % texts.len());
    let began = Instant::now();
    let mut now = began;
    while now - began < limit {
        let reply = client.query(&messages[at])?;
        let done = Instant::now();
        latency.saturating_record(u64::try_from((done - now).as_nanos()).unwrap_or(u64::MAX));
        now = done;
        if reply != replies[at].as_slice() && sorted_rows(reply) != sorted_rows(&replies[at]) {
            return Err(io::Error::other(format!("a reply has other rows: {}", texts[at])));
        }
        queries += 1;
        at = (at + 1) % texts.len();
    }
    Ok((queries, now - began, latency))
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, 60_000_000_000, 3).expect("constant bounds are valid")
}
