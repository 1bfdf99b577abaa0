//! One turn: writers at a rate, a reader as fast as it can, and what the processes use meanwhile.
//!
//! Each row holds the number of its last commit, and the moment at which each commit was acknowledged is kept: an answer that
//! lacks a commit acknowledged before the question is stale, by the time since then.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use freshet_tests::client::{bind, execute, parse, sync};
use freshet_tests::cluster::Cluster;
use hdrhistogram::Histogram;

use crate::freshness::{DATABASE, STANDBY, WRITERS};
use crate::load::histogram;
use crate::process::{between, children, memory_kb, postmaster, processor_time, used};
use crate::servers::{Server, address, last_route};
use crate::wire::{Client, first_row, query_message};

/// A mode, and who follows which PostgreSQL in it.
pub(super) struct Through<'a> {
    pub(super) mode: &'static str,
    pub(super) freshet: &'a Server,
    pub(super) cluster: &'a Cluster,
}

/// Nanoseconds everywhere.
pub(super) struct Measured {
    pub(super) seconds: f64,
    pub(super) commits: Histogram<u64>,
    pub(super) reads: Histogram<u64>,
    /// By how much stale answers were stale; nothing of the others.
    pub(super) staleness: Histogram<u64>,
    /// From a commit's acknowledgement to the end of the first read that has it.
    pub(super) visible: Histogram<u64>,
    pub(super) stale: u64,
    /// Processor time of freshet, of the process that sends it the log, of the rest of that PostgreSQL and of the client, which
    /// is writers and reader.
    pub(super) processor: [Duration; 4],
    /// Resident memory of the first two.
    pub(super) memory_kb: [u64; 2],
}

/// When each commit of one row was acknowledged, in nanoseconds since the beginning; 0: not yet.
struct Acknowledged {
    moments: Vec<AtomicU64>,
    last: AtomicU64,
}

/// Without `through` the reader asks PostgreSQL itself.
pub(super) fn measure(
    cluster: &Cluster,
    through: Option<&Through<'_>>,
    rate: u64,
    seconds: f64,
) -> io::Result<Measured> {
    let upstream = address(cluster);
    let mut direct = Client::connect(upstream, "postgres", DATABASE)?;
    direct.query(&query_message("UPDATE followed SET commit = 0"))?;
    let most = (rate as f64 * seconds * 1.5) as usize / WRITERS + 100;
    let rows: Vec<Acknowledged> = (0..WRITERS)
        .map(|_| Acknowledged { moments: (0..most).map(|_| AtomicU64::new(0)).collect(), last: AtomicU64::new(0) })
        .collect();
    let mut reader = match through {
        Some(through) => connect_reader(through)?,
        None => Client::connect(upstream, "postgres", DATABASE)?,
    };
    let followers = through.map(|through| Ok::<_, io::Error>((through.freshet.process.id, walsender(cluster)?)));
    let followers = followers.transpose()?;
    let postmaster = postmaster(cluster)?;
    let used = || {
        let walsender = followers.map(|(_, walsender)| processor_time(walsender)).unwrap_or_default();
        let [freshet, upstream, client] = used(followers.map(|(freshet, _)| freshet), Some(postmaster));
        [freshet, walsender, upstream.saturating_sub(walsender), client]
    };
    let before = used();
    let (began, stop) = (Instant::now(), AtomicBool::new(false));
    let (commits, read) = std::thread::scope(|scope| {
        let (rows, stop) = (&rows, &stop);
        let writer = |row: usize| scope.spawn(move || write(upstream, row, &rows[row], rate, began, stop));
        let writers: Vec<_> = (0..WRITERS).map(writer).collect();
        let read = read(&mut reader, rows, began, Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
        Ok::<_, io::Error>((joined(writers)?, read?))
    })?;
    let after = used();
    let memory_kb = followers.map(|(freshet, walsender)| [freshet, walsender].map(|id| memory_kb(id, "VmRSS")));
    Ok(Measured {
        seconds,
        commits,
        reads: read.latency,
        staleness: read.staleness,
        visible: read.visible,
        stale: read.stale,
        processor: between(before, after),
        memory_kb: memory_kb.unwrap_or_default(),
    })
}

/// The latencies of all writers, once they have ended.
pub(super) fn joined(writers: Vec<ScopedJoinHandle<'_, io::Result<Histogram<u64>>>>) -> io::Result<Histogram<u64>> {
    let mut all = histogram();
    for writer in writers {
        let latencies = writer.join().map_err(|_| io::Error::other("a writer panicked"))??;
        all.add(&latencies).map_err(io::Error::other)?;
    }
    Ok(all)
}

/// The number of the last commit in a reply that is one row's.
pub(super) fn number(reply: &[u8]) -> io::Result<u64> {
    let text = first_row(reply).pop().flatten();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| io::Error::other("a reply without its row"))
}

/// When a writer's commit is due: writers take turns, so that they do not commit in bursts.
fn due(row: usize, number: usize, rate: u64) -> Duration {
    let each = Duration::from_secs(1) / u32::try_from(rate).unwrap_or(u32::MAX);
    each * u32::try_from(number * WRITERS + row).unwrap_or(u32::MAX)
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
    let name = row.to_string();
    for number in 1..acknowledged.moments.len() {
        // Behind schedule it goes on at once: what it achieves is shown.
        let due = began + due(row, number, rate);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let text = number.to_string();
        let started = Instant::now();
        client.query(&[bind("", "w", &[Some(&text), Some(&name)], 0), execute("", 0), sync()].concat())?;
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

/// One connection asks for one row after the other, as fast as it can.
fn read(client: &mut Client, rows: &[Acknowledged], began: Instant, limit: Duration) -> io::Result<Read> {
    let mut read = Read { latency: histogram(), staleness: histogram(), visible: histogram(), stale: 0 };
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
        let found = number(reply)?;
        if found < known {
            read.stale += 1;
            read.staleness.saturating_record(asked.saturating_sub(acknowledged.moment(found + 1).unwrap_or(asked)));
        }
        if found < seen[row] {
            return Err(io::Error::other(format!("row {row} went back from commit {} to {found}", seen[row])));
        }
        // A commit that is seen before its writer has been told was seen at once.
        for number in seen[row] + 1..=found {
            let moment = acknowledged.moment(number).unwrap_or(answered);
            read.visible.saturating_record(answered.saturating_sub(moment));
        }
        seen[row] = found;
    }
    Ok(read)
}

impl Acknowledged {
    fn moment(&self, number: u64) -> Option<u64> {
        let moment = self.moments.get(number as usize)?.load(Ordering::Acquire);
        (moment > 0).then_some(moment)
    }
}

fn message(row: usize) -> Vec<u8> {
    query_message(&format!("SELECT commit FROM followed WHERE id = {row}"))
}

/// With every shape verified, and past what the measurement before has left: in mode `session` it is seen for a moment.
fn connect_reader(through: &Through<'_>) -> io::Result<Client> {
    let mut client = Client::connect(through.freshet.address, "postgres", DATABASE)?;
    // The mode of the whole server, and its sessions' from the beginning.
    if through.mode != STANDBY {
        client.query(&query_message(&format!("SET freshet.freshness = '{}'", through.mode)))?;
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
fn walsender(cluster: &Cluster) -> io::Result<u32> {
    let is_walsender = |id: &u32| {
        std::fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|title| title.starts_with(b"postgres: walsender"))
    };
    let found = children(postmaster(cluster)?).into_iter().find(is_walsender);
    found.ok_or_else(|| io::Error::other("nobody follows PostgreSQL"))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_take_turns_at_an_even_pace() {
        let mut all: Vec<Duration> =
            (1..=3).flat_map(|number| (0..WRITERS).map(move |row| due(row, number, 500))).collect();
        all.sort();
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] == Duration::from_millis(2)), "{all:?}");
    }
}
