//! How fast a bulk load is applied: row changes per second of freshet's processor time, which is one core's since one thread applies, and
//! how long after their commit they are seen.
//!
//! One transaction at a time, directly upstream: all rows inserted, all updated by their key, all deleted. A reader asks
//! for the last row until freshet itself answers as upstream would; the sums of both sides are compared each time.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use freshet_tests::cluster::Cluster;

use crate::console::print;
use crate::freshness::{DATABASE, Options, start_cluster};
use crate::process::processor_time;
use crate::results::{Better, Results};
use crate::servers::{Server, address, settle, wait_until_mirrored};
use crate::spread::median;
use crate::wire::{Client, first_row, query_message};

pub(super) const APPLY: &str = "apply";
const TABLE: &str = "public.loaded";
const SCHEMA: &str = "CREATE TABLE loaded (id int PRIMARY KEY, shop int NOT NULL, amount numeric(10, 2) NOT NULL, at timestamptz NOT NULL, note text)";
const SUMS: &str = "SELECT count(*), sum(id), sum(shop), sum(amount), max(at), max(note) FROM loaded";
/// Longer than any load takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is done to all rows, in this order.
const LOADS: [&str; 3] = ["insert", "update", "delete"];

fn statement(load: &str, rows: u64) -> String {
    match load {
        "insert" => format!(
            "INSERT INTO loaded SELECT n, n % 1000, n % 9973 / 100.0, '2024-01-01'::timestamptz + n * interval '1 second', 'note ' || n % 500
               FROM generate_series(1, {rows}) n"
        ),
        "update" => "UPDATE loaded SET amount = amount + 1, shop = shop + 1".to_owned(),
        _ => "DELETE FROM loaded".to_owned(),
    }
}

/// Of the rounds of one load.
#[derive(Default)]
struct Applied {
    /// Row changes per second of processor time.
    rates: Vec<f64>,
    /// Milliseconds from the commit's acknowledgement.
    seen: Vec<f64>,
}

pub(super) fn run(options: &Options, log: &Path, results: &mut Results) -> io::Result<()> {
    if results.is_done(APPLY) {
        return Ok(());
    }
    let cluster = start_cluster("wal_level=logical");
    cluster.psql(DATABASE, SCHEMA);
    let freshet = Server::start(&["serve-freshet", &cluster.url(DATABASE), TABLE], log)?;
    wait_until_mirrored(freshet.address, DATABASE, 1)?;
    let mut applied = LOADS.map(|_| Applied::default());
    for _ in 0..options.rounds {
        for (load, applied) in LOADS.iter().zip(&mut applied) {
            one_load(load, options.rows, &cluster, &freshet, applied)?;
        }
        cluster.psql(DATABASE, "VACUUM loaded");
    }
    for (load, applied) in LOADS.iter().zip(&applied) {
        let (rate, seen) = (median(applied.rates.iter().copied()), median(applied.seen.iter().copied()));
        print(&format!(
            "bulk {load} of {} rows: {rate:.0} rows per second of a core, seen {seen:.1} ms after the commit",
            options.rows
        ));
        let (rate, seen) = (format!("rows applied, {load}"), format!("bulk {load}, commit to seen"));
        results.figure(APPLY, "freshet", (&rate, "rows/s of a core", Better::More), &applied.rates, "")?;
        results.figure(APPLY, "freshet", (&seen, "ms", Better::Less), &applied.seen, "")?;
    }
    results.end(APPLY)
}

fn one_load(load: &str, count: u64, cluster: &Cluster, freshet: &Server, applied: &mut Applied) -> io::Result<()> {
    let mut upstream = Client::connect(address(cluster), "postgres", DATABASE)?;
    let mut reader = Client::connect(freshet.address, "postgres", DATABASE)?;
    let last = format!("SELECT shop FROM loaded WHERE id = {count}");
    let before = processor_time(freshet.process.id);
    upstream.query(&query_message(&statement(load, count)))?;
    let committed = Instant::now();
    // Exact mode: what is relayed is right, and says nothing.
    let (route, reason) = settle(&mut reader, || last.clone(), &["local", "hit"], PATIENCE)?;
    if route != "local" && route != "hit" {
        return Err(io::Error::other(format!("{load} of {count} rows is not answered here: {route} {reason}")));
    }
    applied.seen.push(committed.elapsed().as_secs_f64() * 1e3);
    let used = processor_time(freshet.process.id).saturating_sub(before).as_secs_f64();
    // The kernel counts it in hundredths of a second.
    applied.rates.push(count as f64 / used.max(0.01));
    let sums = query_message(SUMS);
    let (here, there) = (first_row(reader.query(&sums)?), first_row(upstream.query(&sums)?));
    if here == there { Ok(()) } else { Err(io::Error::other(format!("after {load}: {here:?}, not {there:?}"))) }
}
