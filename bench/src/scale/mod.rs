//! The scale suite: how costs grow with rows, tables, connections and statement shapes, as the power of the size that fits
//! them best.
//!
//! Each part starts freshet anew for each size, so that nothing is left over from a smaller one, and compares answers with
//! upstream's before it times them. [`mod@costs`]: what is printed and kept.

mod connections;
mod costs;
mod rows;
mod shapes;
mod tables;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use freshet_tests::cluster::Cluster;
use tempfile::TempDir;

use crate::console::say;
use crate::parts;
use crate::process::{postmaster, used, used_since};
use crate::relay::{can_hold, raise_file_limit};
use crate::results::Results;
use crate::rows::sorted_by;
use crate::scale::costs::{Costs, Timed};
use crate::servers::{Server, address, configuration, last_route, wait_for, wait_until_mirrored};
use crate::spread::median;
use crate::turns::turns;
use crate::wire::{Answer, Client, column_names, query_message};

pub(crate) struct Options {
    pub(crate) rounds: usize,
    /// Smaller sizes, short measurements.
    pub(crate) quick: bool,
    /// What grows: `rows`, `tables`, `connections` or `shapes`.
    pub(crate) only: Option<String>,
    pub(crate) results: Option<PathBuf>,
}

const UPSTREAM: &str = "upstream";
const SESSION: &str = "freshet session";
const EXACT: &str = "freshet exact";
/// Where a commit precedes what is timed.
const WITH_COMMIT: &str = "with the commit before it";
/// Of no mode.
const FRESHET: &str = "freshet";

/// What grows, by how much, and by how much in a quick run.
struct Part {
    name: &'static str,
    sizes: &'static [u64],
    quick: &'static [u64],
    measure: fn(&Stand, u64, &mut Costs) -> io::Result<()>,
}

const PARTS: [Part; 4] = [
    Part {
        name: "rows",
        sizes: &[10_000, 100_000, 1_000_000, 10_000_000],
        quick: &[1_000, 10_000, 100_000],
        measure: rows::measure,
    },
    Part { name: "tables", sizes: &[1, 10, 100, 500], quick: &[1, 10, 50], measure: tables::measure },
    Part {
        name: "connections",
        sizes: &[1, 10, 100, 1_000, 2_000],
        quick: &[1, 10, 100],
        measure: connections::measure,
    },
    Part {
        name: "shapes",
        sizes: &[1, 10, 100, 1_000, 10_000, 100_000],
        quick: &[1, 30, 1_000],
        measure: shapes::measure,
    },
];

/// Runs the suite and prints its tables.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    parts::check(options.only.as_deref(), PARTS.map(|part| part.name))?;
    raise_file_limit();
    let stand = Stand::start(options)?;
    let versions = [
        ("freshet", env!("CARGO_PKG_VERSION").to_owned()),
        ("PostgreSQL", stand.cluster.psql("postgres", "SHOW server_version")),
    ];
    let settings =
        [("rounds", options.rounds.to_string()), ("quick", options.quick.to_string()), configuration(&stand.cluster)];
    let mut results = Results::open(options.results.as_deref(), "scale", &versions, &settings)?;
    for part in &PARTS {
        if options.only.as_ref().is_some_and(|only| only != part.name) || results.is_done(part.name) {
            continue;
        }
        let mut costs = Costs::new(part.name);
        for size in if options.quick { part.quick } else { part.sizes } {
            say(&format!("{size} {}", part.name));
            if let Err(reason) = can_hold(if part.name == "connections" { *size as usize } else { 0 }) {
                results.skip(&format!("{size} {}", part.name), &reason)?;
                continue;
            }
            (part.measure)(&stand, *size, &mut costs)
                .map_err(|error| io::Error::other(format!("{size} {}: {error}", part.name)))?;
        }
        costs.report(&mut results)?;
        results.end(part.name)?;
    }
    Ok(())
}

/// One PostgreSQL for all parts, and how long to measure.
struct Stand {
    cluster: Cluster,
    postmaster: u32,
    folder: TempDir,
    rounds: usize,
    /// Of one round of one cost.
    seconds: f64,
}

impl Stand {
    fn start(options: &Options) -> io::Result<Self> {
        let most = PARTS[2].sizes.iter().max().copied().unwrap_or(0);
        let many = format!("max_connections={}", most + 60);
        let cluster = Cluster::start(&["shared_buffers=256MB", "max_wal_size=4GB", &many]);
        let folder = tempfile::Builder::new().prefix("freshet-bench-").tempdir()?;
        let seconds = if options.quick { 0.05 } else { 0.5 };
        let postmaster = postmaster(&cluster)?;
        Ok(Self { cluster, postmaster, folder, rounds: options.rounds, seconds })
    }

    fn address(&self) -> SocketAddr {
        address(&self.cluster)
    }

    /// A database of its own for a part and size.
    fn database(&self, part: &str, size: u64) -> String {
        let name = format!("{part}_{size}");
        self.cluster.psql("postgres", &format!("DROP DATABASE IF EXISTS {name}"));
        self.cluster.psql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// A freshet that mirrors these tables; `until_mirrored`: the milliseconds from its start until it did.
    fn freshet(&self, database: &str, tables: &[String], until_mirrored: &mut Timed) -> io::Result<Server> {
        let log = self.folder.path().join("servers.log");
        let (before, began) = (used(None, Some(self.postmaster)), Instant::now());
        let server = Server::start(&["serve-freshet", &self.cluster.url(database), &tables.join(",")], &log)?;
        wait_until_mirrored(server.address, database, tables.len())?;
        let elapsed = began.elapsed();
        let used = used_since(before, Some(server.process.id), Some(self.postmaster));
        until_mirrored.add(elapsed.as_secs_f64() * 1e3, used, 1e3);
        Ok(server)
    }

    /// Ends freshet, and waits until its slot has gone, which PostgreSQL notices a moment later.
    fn stop(&self, database: &str, server: Server) -> io::Result<()> {
        drop(server);
        let slots = format!("SELECT count(*) FROM pg_replication_slots WHERE database = '{database}'");
        wait_for(|| self.cluster.psql("postgres", &slots) == "0", "the end of freshet's slot")
    }

    /// Ends freshet, then drops the database: its slot has to be gone before.
    fn end(&self, database: &str, server: Server) {
        drop(server);
        self.cluster.psql("postgres", &format!("DROP DATABASE {database} WITH (FORCE)"));
    }

    /// By round, the median of microseconds that `once` takes with a new number each time, and what all of them used.
    fn times(&self, server: &Server, mut once: impl FnMut(u64) -> io::Result<Duration>) -> io::Result<Timed> {
        let [times] = self.times_of([(Some(server), &mut once)])?;
        Ok(times)
    }

    /// Likewise of several, which take turns in each round: what disturbs the machine disturbs all.
    /// The server is freshet's, where it is not upstream that is asked.
    fn times_of<const COUNT: usize>(
        &self,
        mut all: [(Option<&Server>, Once<'_>); COUNT],
    ) -> io::Result<[Timed; COUNT]> {
        let mut numbers = [0; COUNT];
        let mut timed = std::array::from_fn(|_| Timed::default());
        // Caches, of the processor too, are as they will be.
        for ((_, once), number) in all.iter_mut().zip(&mut numbers) {
            let limit = Instant::now() + Duration::from_secs_f64(self.seconds / 4.0);
            while *number < 20 && Instant::now() < limit {
                *number += 1;
                once(*number)?;
            }
        }
        for round in 0..self.rounds {
            for at in turns(round, COUNT) {
                let (server, once) = &mut all[at];
                let server = server.map(|server| server.process.id);
                let before = used(server, Some(self.postmaster));
                let limit = Instant::now() + Duration::from_secs_f64(self.seconds);
                let mut times = Vec::new();
                while times.is_empty() || Instant::now() < limit {
                    numbers[at] += 1;
                    times.push(once(numbers[at])?.as_secs_f64() * 1e6);
                }
                let (used, each) = (used_since(before, server, Some(self.postmaster)), 1e6 / times.len() as f64);
                timed[at].add(median(times), used, each);
            }
        }
        Ok(timed)
    }
}

/// Does what is timed, with a new number each time.
type Once<'a> = &'a mut dyn FnMut(u64) -> io::Result<Duration>;

fn connect(address: SocketAddr, database: &str, mode: Option<&str>) -> io::Result<Client> {
    let mut client = Client::connect_small(address, "postgres", database)?;
    if let Some(mode) = mode {
        client.query(&query_message(&format!("SET freshet.freshness = '{mode}'")))?;
    }
    Ok(client)
}

/// Upstream's rows, in the order that the statement asks for.
fn answer(upstream: &mut Client, sql: &str) -> io::Result<Answer> {
    let reply = upstream.query(&query_message(sql))?;
    Ok(Answer::of(reply, &sorted_by(sql, &column_names(reply))))
}

/// The time of one statement.
fn timed(client: &mut Client, sql: &str) -> io::Result<Duration> {
    let message = query_message(sql);
    let began = Instant::now();
    client.query(&message)?;
    Ok(began.elapsed())
}

/// Asks both until freshet answers itself, and compares what they answer; how it did.
fn settle(freshet: &mut Client, upstream: &mut Client, text: impl Fn(u64) -> String) -> io::Result<String> {
    // Long enough for several scans of millions of rows upstream.
    let limit = Instant::now() + Duration::from_secs(60);
    for number in 1_u64.. {
        // Not those that are timed afterwards: no reply to them is kept yet.
        let sql = text(1_000_000_000 + number);
        let message = query_message(&sql);
        if !answer(upstream, &sql)?.is_of(freshet.query(&message)?) {
            return Err(io::Error::other(format!("other rows than upstream's: {sql}")));
        }
        let (route, reason) = last_route(freshet)?;
        if route == "local" {
            return Ok(route);
        }
        if Instant::now() > limit {
            return Err(io::Error::other(format!("answered by {route} ({reason}), not by freshet itself: {sql}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    unreachable!("numbers do not end")
}
