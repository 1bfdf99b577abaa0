//! A prepared statement 10,000 times with one Sync: rates, rows, and how freshet says that it answered.

use std::io;
use std::time::{Duration, Instant};

use freshet_tests::client::sync;

use crate::console::print;
use crate::driver::pgx::Pgx;
use crate::driver::queries::{BATCH, batch_parameters, batch_rows, is_harbor};
use crate::driver::{CACHED, DATABASE, Driver as _, Options, Stand, execution};
use crate::load::Measured;
use crate::process::{between, processor_time};
use crate::results::Results;
use crate::series::Series;
use crate::servers::last_route;
use crate::spread::paired;
use crate::turns::turns;
use crate::wire::{self, query_message, rows};

/// The first rounds of a batch warm up.
const WARM_UP: usize = 3;

/// One connection of the bare protocol sends a whole batch of prepared executions while it reads the replies.
pub(super) fn bare(options: &Options, stand: &Stand, results: &mut Results) -> io::Result<()> {
    let executions: Vec<Vec<u8>> = batch_parameters(options.batch).iter().map(|values| execution(values)).collect();
    let all = [executions.concat(), sync()].concat();
    let mut clients = stand.clients(BATCH)?;
    let mut firsts: Vec<Vec<u8>> = Vec::new();
    for client in &mut clients {
        let reply = client.exchange(&all)?;
        check_batch(&rows(reply), options.batch)?;
        firsts.push(reply.to_vec());
    }
    let own = || processor_time(std::process::id());
    let (all_series, mut answered) = batches(options, stand, |at| {
        let (before, began) = (own(), Instant::now());
        let reply = clients[at].exchange(&all)?;
        let (elapsed, client) = (began.elapsed(), own().saturating_sub(before));
        // Which rows a LIMIT returns is free and may change with who answers; that they are the table's is not.
        if reply != firsts[at] {
            check_batch(&rows(reply), options.batch)?;
        }
        Ok((elapsed, client))
    })?;
    let (route, reason) = last_route(&mut clients[2])?;
    answered.push_str(&format!("; the last one {route} {reason}"));
    report(options, stand, "bare protocol", all_series, answered.trim_end(), results)
}

/// As many rows as all the LIMITs together, each one that the table has.
fn check_batch(found: &[Vec<Option<String>>], executions: usize) -> io::Result<()> {
    let expected = batch_rows(executions);
    if found.len() != expected {
        return Err(io::Error::other(format!("batch: {} rows instead of {expected}", found.len())));
    }
    match found.iter().find(|row| !is_harbor(row)) {
        None => Ok(()),
        Some(row) => Err(io::Error::other(format!("batch: no row of the table: {row:?}"))),
    }
}

pub(super) fn by_pgx(options: &Options, stand: &Stand, pgx: &mut Pgx, results: &mut Results) -> io::Result<()> {
    pgx.open(&stand.places, BATCH, &batch_parameters(options.batch))?;
    for (at, place) in stand.places.iter().enumerate() {
        let named = |error| io::Error::other(format!("pgx: {}: {error}", place.system));
        check_batch(&pgx.batch_rows(at)?, options.batch).map_err(named)?;
    }
    let expected = batch_rows(options.batch);
    let (all, answered) = batches(options, stand, |at| match pgx.batch(at)? {
        (rows, elapsed, client) if rows == expected => Ok((elapsed, client)),
        (rows, ..) => Err(io::Error::other(format!("{rows} rows instead of {expected}"))),
    })?;
    report(options, stand, "pgx", all, &answered, results)
}

/// Executions per second by system and round, and how freshet says that it answered those that it was free to answer. `once`
/// tells how long a batch took, and how much of the processors the client used.
fn batches(
    options: &Options,
    stand: &Stand,
    mut once: impl FnMut(usize) -> io::Result<(Duration, Duration)>,
) -> io::Result<(Vec<Series>, String)> {
    let mut all: Vec<Series> = stand.places.iter().map(|place| Series::new(place.system)).collect();
    let mut counters = Counters::connect(stand)?;
    for round in 0..options.rounds + WARM_UP {
        for at in turns(round, stand.places.len()) {
            let system = stand.places[at].system;
            let is_counted = system == CACHED && round >= WARM_UP;
            if is_counted {
                counters.begin()?;
            }
            let before = stand.used(at);
            let (elapsed, client) = once(at).map_err(|error| io::Error::other(format!("batch: {system}: {error}")))?;
            let after = stand.used(at);
            if is_counted {
                counters.end()?;
            }
            if round >= WARM_UP {
                let used = between(before, after);
                all[at].add(&Measured::new(options.batch, elapsed, client, &[]), used, 1)?;
            }
        }
    }
    Ok((all, counters.text(options.batch * options.rounds)))
}

/// Freshet's own count of how it answered the batch's statement, added up over what was timed.
struct Counters {
    client: wire::Client,
    before: [u64; 4],
    sum: [u64; 4],
}

impl Counters {
    const NAMES: [&str; 4] = ["hits", "local", "captures", "relayed"];

    fn connect(stand: &Stand) -> io::Result<Self> {
        let client = wire::Client::connect(stand.places[2].address, "postgres", DATABASE)?;
        Ok(Self { client, before: [0; 4], sum: [0; 4] })
    }

    fn now(&mut self) -> io::Result<[u64; 4]> {
        let sql = format!("SELECT statement, {} FROM freshet.statements", Self::NAMES.join(", "));
        let mut sum = [0; 4];
        for row in rows(self.client.query(&query_message(&sql))?) {
            let statement = row.first().cloned().flatten().unwrap_or_default().to_lowercase();
            if statement.contains("from harbors limit") {
                for (sum, cell) in sum.iter_mut().zip(&row[1..]) {
                    *sum += cell.as_ref().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
                }
            }
        }
        Ok(sum)
    }

    fn begin(&mut self) -> io::Result<()> {
        self.before = self.now()?;
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let now = self.now()?;
        for (at, sum) in self.sum.iter_mut().enumerate() {
            *sum += now[at].saturating_sub(self.before[at]);
        }
        Ok(())
    }

    /// What is not counted one by one passed upstream behind others that were under way.
    fn text(&self, executions: usize) -> String {
        let rest = (executions as u64).saturating_sub(self.sum.iter().sum());
        let counted = Self::NAMES.iter().zip(self.sum).filter(|(_, count)| *count > 0);
        let mut parts: Vec<String> = counted.map(|(name, count)| format!("{name} {count}")).collect();
        if rest > 0 {
            parts.push(format!("passed on uncounted {rest}"));
        }
        format!("{} of {executions} executions", parts.join(", "))
    }
}

fn report(
    options: &Options,
    stand: &Stand,
    driver: &str,
    mut all: Vec<Series>,
    route: &str,
    results: &mut Results,
) -> io::Result<()> {
    let case = format!("batch of {}, {driver}", options.batch);
    for (place, series) in stand.places.iter().zip(&mut all) {
        if place.system == CACHED {
            route.clone_into(&mut series.note);
        }
    }
    for series in &all {
        let ratio = paired(&series.rates, &all[0].rates);
        let [server_us, upstream_us, client_us] = series.processor();
        print(&format!(
            "{case}: {:16} {:>10.0}/s, {:.2} ({:.2}..{:.2}) x direct  cpu us {server_us:.1} PG {upstream_us:.1} \
             cl. {client_us:.1}  {}",
            series.system,
            series.rate().median,
            ratio.median,
            ratio.min,
            ratio.max,
            series.note
        ));
        series.write(results, &case, "execution", None)?;
    }
    Ok(())
}
