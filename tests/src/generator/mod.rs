//! The differential tester: random tables, rows and queries, and mutations of the shapes that tools send, asked of PostgreSQL and
//! through freshet. A failure is shrunk to a script and kept as a regression.
//!
//! Worlds (tables and rows in a database of their own, with a freshet) follow one another, each by a seed made of the run's
//! and its number: two runs of one seed ask the same statements, as far as each gets.

pub mod aggregate;
pub mod check;
pub mod dice;
pub mod expression;
pub mod grammar;
pub mod mutate;
pub mod schema;
pub mod script;
pub mod sentence;
mod shrink;
mod values;
mod world;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::cluster::Cluster;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub seed: u64,
    pub duration: Duration,
    /// Worlds at a time.
    pub threads: u64,
    /// Statements of one world.
    pub statements: usize,
    /// After so many failures the run ends.
    pub failures_max: usize,
}

impl Options {
    /// From `FRESHET_TEST_GENERATOR_SEED` and `FRESHET_TEST_GENERATOR_SECONDS`.
    pub fn of_environment(seed: u64, seconds: u64) -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        Self {
            seed: number("FRESHET_TEST_GENERATOR_SEED").unwrap_or(seed),
            duration: Duration::from_secs(number("FRESHET_TEST_GENERATOR_SECONDS").unwrap_or(seconds)),
            threads: 2,
            statements: 300,
            failures_max: 5,
        }
    }
}

/// The figures of one kind of statements.
#[derive(Clone, Debug, Default)]
pub struct Share {
    pub asked: usize,
    /// PostgreSQL's errors.
    pub refused: usize,
    pub local: usize,
    /// Upstream took too long.
    pub skipped: usize,
    /// PostgreSQL itself answers in two ways, one of them freshet's.
    pub free: usize,
}

impl Share {
    /// Of what upstream answers, how much was answered here, in percent.
    pub fn percent(&self) -> usize {
        let answered = self.asked - self.refused - self.skipped;
        (self.local * 100).checked_div(answered).unwrap_or(100)
    }
}

#[derive(Debug, Default)]
pub struct Report {
    pub shares: BTreeMap<&'static str, Share>,
    /// Why upstream answered, how often, and the first such statement.
    pub reasons: BTreeMap<String, (usize, String)>,
    /// What PostgreSQL answers in two ways.
    pub free: Vec<String>,
    pub failures: Vec<(PathBuf, String)>,
    pub worlds: u64,
}

/// Runs worlds until the time is over.
pub fn run(cluster: &Cluster, options: &Options) -> Report {
    let report = Mutex::new(Report::default());
    let (next, started) = (AtomicU64::new(0), Instant::now());
    let is_over = || {
        let failures = report.lock().expect("no thread panicked").failures.len();
        started.elapsed() >= options.duration || failures >= options.failures_max
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                while !is_over() {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    world::run(cluster, options, number, &report, &is_over);
                }
            });
        }
    });
    report.into_inner().expect("no thread panicked")
}
