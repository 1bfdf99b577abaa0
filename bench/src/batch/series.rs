//! One system on one workload: time per iteration, processor time beside it, and how the times of single statements are
//! distributed; and how they are taken.

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::batch::{CHEAPEST, DUCKDB, FRESHET, Systems, UPSTREAM};
use crate::console::print;
use crate::load::{histogram, record};
use crate::process::between;
use crate::results::{Better, Results};
use crate::spread::{paired, spread};

pub(super) struct Series {
    pub(super) system: &'static str,
    /// Milliseconds per iteration, one value per round.
    times: Vec<f64>,
    /// Milliseconds of the processors per iteration: what stands before PostgreSQL, PostgreSQL, the client.
    processor: [Vec<f64>; 3],
    /// Nanoseconds of one statement.
    pub(super) latency: Histogram<u64>,
}

impl Series {
    pub(super) fn of(systems: &Systems, wired: &[&'static str]) -> Vec<Self> {
        let in_process = systems.duckdb.is_some().then_some(DUCKDB);
        let new = |system| Self { system, times: Vec::new(), processor: Default::default(), latency: histogram() };
        wired.iter().copied().chain(in_process).map(new).collect()
    }

    /// A round that began when so much processor time had been used.
    pub(super) fn add(&mut self, systems: &Systems, before: [Duration; 3], began: Instant, each_ms: f64) {
        let (used, elapsed) = (between(before, systems.used(self.system)), began.elapsed().as_secs_f64());
        for (values, used) in self.processor.iter_mut().zip(used) {
            values.push(each_ms * used.as_secs_f64() / elapsed);
        }
        self.times.push(each_ms);
    }
}

pub(super) fn timed<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<(T, Duration)> {
    let began = Instant::now();
    let done = work()?;
    Ok((done, began.elapsed()))
}

/// Milliseconds of one execution on average: as often as fits into `least`, at least once. `once` tells how long it took.
pub(super) fn repeat(
    least: Duration,
    latency: &mut Histogram<u64>,
    mut once: impl FnMut() -> io::Result<Duration>,
) -> io::Result<f64> {
    let began = Instant::now();
    let (mut times, mut sum) = (0, Duration::ZERO);
    while times == 0 || began.elapsed() < least {
        let time = once()?;
        record(latency, time);
        sum += time;
        times += 1;
    }
    Ok(sum.as_secs_f64() * 1e3 / f64::from(times))
}

/// The time of all statements, one after the other.
pub(super) fn each<T>(
    statements: &[T],
    latency: &mut Histogram<u64>,
    mut ask: impl FnMut(&T) -> io::Result<()>,
) -> io::Result<Duration> {
    let began = Instant::now();
    let mut last = began;
    for statement in statements {
        ask(statement)?;
        let now = Instant::now();
        record(latency, now - last);
        last = now;
    }
    Ok(last - began)
}

pub(super) fn report(name: &str, all: &[Series], note: &str, results: &mut Results) -> io::Result<()> {
    let of = |system: &str| all.iter().find(|one| one.system == system).map(|one| one.times.as_slice());
    let freshet = of(FRESHET).unwrap_or_default();
    let shown = |system: &str| {
        of(system).map_or_else(String::new, |times| format!("{:.3}", spread(times.iter().copied()).median))
    };
    let ratio = |system: &str| {
        of(system).map_or_else(String::new, |times| {
            let ratio = paired(times, freshet);
            format!("{:.2} ({:.2}..{:.2})", ratio.median, ratio.min, ratio.max)
        })
    };
    let mut text = String::new();
    let _ = write!(
        text,
        "{name:28} {:>12} {:>12} {:>12} {:>22} {:>22}  {note}",
        shown(UPSTREAM),
        shown(FRESHET),
        shown(DUCKDB),
        ratio(UPSTREAM),
        ratio(DUCKDB)
    );
    if of(CHEAPEST).is_some() {
        let _ = write!(text, "; {} x the cheapest relay's {} ms", ratio(CHEAPEST), shown(CHEAPEST));
    }
    print(&text);
    for series in all {
        let note = if series.system == FRESHET || note.starts_with("durable") { note } else { "" };
        results.figure(name, series.system, ("time", "ms", Better::Less), &series.times, note)?;
        let note = if series.system == DUCKDB { "in the client's process" } else { "" };
        results.processor(name, series.system, "ms", &series.processor, note)?;
        results.latency(name, series.system, &series.latency)?;
    }
    Ok(())
}
