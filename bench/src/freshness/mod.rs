//! The freshness suite: how old answers are, what waiting costs and what following costs, while others commit.
//!
//! Writers commit directly upstream, durably, at a rate, past freshet; one connection reads. In modes `exact` and `standby` one
//! stale answer fails the suite. Each mode takes turns with `alone`: the same writers and the same reader at a PostgreSQL that
//! nobody follows. In mode `standby` commits wait for freshet: it has a PostgreSQL of its own, and what a commit takes there is
//! what that waiting costs. [`mod@measure`]: one turn; [`mod@report`]: what is shown and kept of it; [`mod@saturation`]: writers that
//! commit as fast as they can; [`mod@apply`]: bulk loads.

mod apply;
mod measure;
mod report;
mod saturation;

use std::io;
use std::path::PathBuf;

use freshet_tests::cluster::Cluster;

use crate::freshness::apply::APPLY;
use crate::freshness::measure::{Measured, Through, measure};
use crate::freshness::saturation::SATURATION;
use crate::parts;
use crate::results::Results;
use crate::servers::{Server, configuration, start_standby, wait_until_mirrored};

pub(crate) struct Options {
    /// Length of one measurement, all its rounds together.
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    /// Commits per second, one measurement each.
    pub(crate) rates: Vec<u64>,
    /// Of a bulk load.
    pub(crate) rows: u64,
    /// A mode, writers at saturation, or bulk loads.
    pub(crate) only: Option<String>,
    pub(crate) results: Option<PathBuf>,
}

const DATABASE: &str = "bench";
const TABLE: &str = "public.followed";
const WRITERS: usize = 4;
const MODES: [&str; 3] = ["exact", "session", STANDBY];
const STANDBY: &str = "standby";
const ALONE: &str = "alone";

/// A PostgreSQL with the table that is followed, or, at the default `wal_level`, not.
fn start_cluster(wal_level: &str) -> Cluster {
    // Writes are as durable as they are by default: what following adds is compared with a commit's whole cost.
    let cluster = Cluster::start(&["shared_buffers=256MB", "max_wal_size=4GB", "fsync=on", wal_level]);
    cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    make_table(&cluster, "followed", WRITERS);
    cluster
}

/// Rows that writers number their commits in, one each.
fn make_table(cluster: &Cluster, name: &str, rows: usize) {
    cluster.psql(
        DATABASE,
        &format!(
            "CREATE TABLE {name} (id int PRIMARY KEY, commit bigint NOT NULL);
             INSERT INTO {name} SELECT n, 0 FROM generate_series(0, {}) n",
            rows - 1
        ),
    );
}

/// Runs the suite and prints its table.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    parts::check(options.only.as_deref(), MODES.into_iter().chain([SATURATION, APPLY]))?;
    let plain = start_cluster("wal_level=replica");
    let versions = [
        ("freshet", env!("CARGO_PKG_VERSION").to_owned()),
        ("PostgreSQL", plain.psql("postgres", "SHOW server_version")),
    ];
    let settings = [
        ("seconds", options.seconds.to_string()),
        ("rounds", options.rounds.to_string()),
        ("writers", WRITERS.to_string()),
        configuration(&plain),
    ];
    let mut results = Results::open(options.results.as_deref(), "freshness", &versions, &settings)?;
    let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
    let log = folder.path().join("servers.log");
    report::head();
    let is_wanted = |mode: &str| options.only.as_ref().is_none_or(|only| only == mode);
    if MODES.iter().any(|mode| *mode != STANDBY && is_wanted(mode)) {
        let cluster = start_cluster("wal_level=logical");
        let freshet = Server::start(&["serve-freshet", &cluster.url(DATABASE), TABLE], &log)?;
        wait_until_mirrored(freshet.address, DATABASE, 1)?;
        for mode in MODES.iter().filter(|mode| **mode != STANDBY && is_wanted(mode)) {
            one_mode(options, &Through { mode, freshet: &freshet, cluster: &cluster }, &plain, &mut results)?;
        }
    }
    if is_wanted(STANDBY) {
        let cluster = start_cluster("wal_level=logical");
        let freshet = start_standby(&cluster, DATABASE, &[TABLE.to_owned()], &log)?;
        one_mode(options, &Through { mode: STANDBY, freshet: &freshet, cluster: &cluster }, &plain, &mut results)?;
    }
    if is_wanted(SATURATION) {
        saturation::run(options, &log, &mut results)?;
    }
    if is_wanted(APPLY) {
        apply::run(options, &log, &mut results)?;
    }
    Ok(())
}

fn one_mode(options: &Options, through: &Through<'_>, plain: &Cluster, results: &mut Results) -> io::Result<()> {
    let seconds = options.seconds / options.rounds as f64;
    for rate in &options.rates {
        let case = format!("{}, {rate} commits/s", through.mode);
        if results.is_done(&case) {
            continue;
        }
        let (mut followed, mut alone) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            for turn in 0..2 {
                if (round + turn) % 2 == 0 {
                    followed.push(measure(through.cluster, Some(through), *rate, seconds)?);
                } else if *rate > 0 {
                    alone.push(measure(plain, None, *rate, seconds)?);
                }
            }
        }
        let stale: u64 = followed.iter().map(|round: &Measured| round.stale).sum();
        if through.mode != "session" && stale > 0 {
            return Err(io::Error::other(format!("{stale} stale answers in mode {}", through.mode)));
        }
        report::write(&case, &format!("freshet {}", through.mode), *rate, &followed, results)?;
        if !alone.is_empty() {
            report::write(&case, ALONE, *rate, &alone, results)?;
        }
        results.end(&case)?;
    }
    Ok(())
}
