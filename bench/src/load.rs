//! Drives one server with one workload: a thread per connection, each comparing every reply's bytes with what it was
//! answered before, and the rows where they differ.

use std::io;
use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::wire::{Answer, Client, query_message};

/// What one run yielded.
pub(crate) struct Measured {
    pub(crate) queries: u64,
    pub(crate) elapsed: Duration,
    /// Nanoseconds.
    pub(crate) latency: Histogram<u64>,
    /// Processor time of the threads that drove it.
    pub(crate) client_time: Duration,
}

impl Measured {
    /// With latencies of single queries, where they are known.
    pub(crate) fn new(queries: usize, elapsed: Duration, client_time: Duration, latencies_ns: &[u64]) -> Self {
        let mut latency = histogram();
        latencies_ns.iter().for_each(|ns| latency.saturating_record(*ns));
        Self { queries: queries as u64, elapsed, latency, client_time }
    }

    pub(crate) fn queries_per_second(&self) -> f64 {
        self.queries as f64 / self.elapsed.as_secs_f64()
    }
}

/// A unit's rows as PostgreSQL gives them: several where writes go on.
pub(crate) type Allowed = Vec<Answer>;

/// What is sent and what may come back.
pub(crate) struct Load<'a> {
    /// A unit of messages each: a Query, or messages up to Sync.
    pub(crate) units: &'a [Vec<u8>],
    pub(crate) allowed: &'a [Allowed],
    /// Units that are sent at once, for which `units` has one entry.
    pub(crate) depth: usize,
}

/// A connection that knows what this server answered to each unit, byte for byte: most replies are compared with that.
pub(crate) struct Connection {
    pub(crate) client: Client,
    replies: Vec<Vec<u8>>,
}

impl Connection {
    /// `first`: settings as texts, then messages, such as those that prepare.
    pub(crate) fn open(address: SocketAddr, database: &str, settings: &[&str], first: &[Vec<u8>]) -> io::Result<Self> {
        Self::begin(Client::connect(address, "postgres", database)?, settings, first)
    }

    /// With a small buffer to begin with: for connections in thousands.
    pub(crate) fn open_small(
        address: SocketAddr,
        database: &str,
        settings: &[&str],
        first: &[Vec<u8>],
    ) -> io::Result<Self> {
        Self::begin(Client::connect_small(address, "postgres", database)?, settings, first)
    }

    fn begin(mut client: Client, settings: &[&str], first: &[Vec<u8>]) -> io::Result<Self> {
        for sql in settings {
            client.query(&query_message(sql))?;
        }
        for message in first {
            client.query(message)?;
        }
        Ok(Self { client, replies: Vec::new() })
    }

    /// Sends each unit once and compares rows with PostgreSQL's.
    pub(crate) fn warm_up(&mut self, load: &Load<'_>) -> io::Result<()> {
        self.replies.clear();
        for (unit, allowed) in load.units.iter().zip(load.allowed) {
            let reply = self.client.pipeline(unit, load.depth)?.to_vec();
            check_rows(unit, &reply, allowed)?;
            self.replies.push(reply);
        }
        Ok(())
    }
}

/// A run of `seconds` over connections that stay open.
pub(crate) fn run(connections: &mut [Connection], load: &Load<'_>, seconds: f64) -> io::Result<Measured> {
    let start = Barrier::new(connections.len());
    let results: Vec<io::Result<(Measured, Instant)>> = std::thread::scope(|scope| {
        let threads = connections.iter_mut().enumerate().map(|(thread, connection)| {
            let start = &start;
            scope.spawn(move || one_thread(connection, load, thread, seconds, start))
        });
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|result| result.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))).collect()
    });
    let mut total = Measured { queries: 0, elapsed: Duration::ZERO, latency: histogram(), client_time: Duration::ZERO };
    let mut whole: Option<(Instant, Instant)> = None;
    for result in results {
        let (measured, began) = result?;
        total.queries += measured.queries;
        // Of many threads some begin when others have ended.
        let (first, last) = whole.unwrap_or((began, began));
        whole = Some((first.min(began), last.max(began + measured.elapsed)));
        total.latency.add(&measured.latency).map_err(io::Error::other)?;
        total.client_time += measured.client_time;
    }
    total.elapsed = whole.map_or(Duration::ZERO, |(first, last)| last - first);
    Ok(total)
}

fn one_thread(
    connection: &mut Connection,
    load: &Load<'_>,
    thread: usize,
    seconds: f64,
    start: &Barrier,
) -> io::Result<(Measured, Instant)> {
    let limit = Duration::from_secs_f64(seconds);
    let (mut queries, mut latency, mut at) = (0, histogram(), thread % load.units.len());
    start.wait();
    let before = thread_time();
    let began = Instant::now();
    let mut now = began;
    while now - began < limit {
        let reply = connection.client.pipeline(&load.units[at], load.depth)?;
        let done = Instant::now();
        record(&mut latency, done - now);
        now = done;
        if reply != connection.replies[at].as_slice() {
            check_rows(&load.units[at], reply, &load.allowed[at])?;
        }
        queries += 1;
        at = (at + 1) % load.units.len();
    }
    let client_time = thread_time().saturating_sub(before);
    Ok((Measured { queries, elapsed: now - began, latency, client_time }, began))
}

fn check_rows(unit: &[u8], reply: &[u8], allowed: &Allowed) -> io::Result<()> {
    if allowed.iter().any(|answer| answer.is_of(reply)) {
        return Ok(());
    }
    Err(io::Error::other(format!("rows differ from PostgreSQL's: {}", String::from_utf8_lossy(unit))))
}

/// Processor time that this thread has used.
pub(crate) fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0))
}

pub(crate) fn record(latency: &mut Histogram<u64>, time: Duration) {
    latency.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, 60_000_000_000, 3).expect("constant bounds are valid")
}
