//! The key-value suite: single keys are created, read and deleted over a store that holds a million of them, as Skytable's
//! benchmark does it, at several numbers of connections.
//!
//! [`mod@stores`]: who takes part, and the check of every answer before anything is timed. [`mod@drive`]: the load, the same
//! for all; [`mod@exchange`]: its requests and replies; [`mod@ceiling`]: what it reaches at most. [`mod@resp`]: the protocol
//! of Redis. Each turn of reads has keys of its own, that nobody has asked for; writes have others. What is deleted in a round
//! is created again in it: all rounds find the same keys. At last every key is deleted, created and read once.

pub(crate) mod ceiling;
mod drive;
mod exchange;
mod resp;
mod stores;

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::console::{print, say};
use crate::kv::drive::{Line, Stretch, Until};
use crate::kv::exchange::{Key, Keys};
use crate::kv::stores::{CEILING, DATABASE, Durability, EXACT, Operation, Stand, Store, UPSTREAM};
use crate::parts;
use crate::process::{between, processor_time, processor_time_of_family};
use crate::results::Results;
use crate::series::Series;
use crate::servers::{last_route, wait_for};
use crate::turns::turns;
use crate::wire::{Client, query_message};

/// Of reads whose replies are kept.
const KEPT_KEYS: u64 = 1_000;
/// For one store and all keys: the slowest needs a minute for a million.
const ALL_KEYS_LIMIT: Duration = Duration::from_secs(180);

pub(crate) struct Options {
    pub(crate) keys: u64,
    /// One part each.
    pub(crate) connections: Vec<usize>,
    /// Of one phase at most; it ends earlier when all keys have had their turn.
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    /// `create`, `read` or `delete`.
    pub(crate) only: Option<String>,
    pub(crate) results: Option<PathBuf>,
}

impl Options {
    fn wants(&self, operation: Operation, case: &str, results: &Results) -> bool {
        self.only.as_ref().is_none_or(|only| only == operation.name()) && !results.is_done(case)
    }

    /// Of one phase.
    fn limit(&self) -> (Until, Duration) {
        (Until::OneIsThrough, Duration::from_secs_f64(self.seconds))
    }
}

/// Runs the suite and prints its tables; an error if any reply was wrong.
pub(crate) fn run(options: &Options) -> io::Result<()> {
    parts::check(options.only.as_deref(), Operation::ALL.map(Operation::name))?;
    let keys = Keys { count: options.keys };
    if !(1_000..=9_000_000).contains(&keys.count) {
        return Err(io::Error::other("from 1,000 to 9,000,000 keys have seven digits and are worth while"));
    }
    let most = options.connections.iter().copied().max().unwrap_or(1);
    say(&format!("loading {} keys", keys.count));
    let stand = Stand::start(keys, most)?;
    let settings = [
        ("keys", options.keys.to_string()),
        ("seconds", options.seconds.to_string()),
        ("rounds", options.rounds.to_string()),
        stand.configuration(),
    ];
    let mut results = Results::open(options.results.as_deref(), "kv", &stand.versions, &settings)?;
    if let Some(reason) = &stand.missing {
        results.skip("Redis", reason)?;
    }
    for connections in &options.connections {
        one_part(options, keys, &stand, *connections, &mut results)?;
    }
    all_keys(options, keys, &stand, most, &mut results)?;
    stand.stores.iter().try_for_each(|store| store.verify(keys))
}

fn one_part(options: &Options, keys: Keys, stand: &Stand, connections: usize, results: &mut Results) -> io::Result<()> {
    let case = |operation: Operation, rest: &str| format!("{connections} connections/{}{rest}", operation.name());
    let reads = case(Operation::Read, "");
    if options.wants(Operation::Read, &reads, results) {
        say(&format!("{connections} connections: read"));
        let contest = Contest::open(stand, Operation::Read, connections, Durability::Durable)?;
        let all = read(options, keys, connections, contest)?;
        report(&reads, connections, &all, results)?;
        results.end(&reads)?;
    }
    let again = case(Operation::Read, " again");
    if options.wants(Operation::Read, &again, results) {
        say(&format!("{connections} connections: read again"));
        let contest = Contest::open(stand, Operation::Read, connections, Durability::Durable)?;
        let all = read_again(options, keys, contest)?;
        report(&again, connections, &all, results)?;
        results.end(&again)?;
    }
    for durability in [Durability::Durable, Durability::Lazy] {
        let rest = format!(", {}", durability.name());
        let cases = [Operation::Delete, Operation::Create].map(|operation| (operation, case(operation, &rest)));
        if !cases.iter().any(|(operation, case)| options.wants(*operation, case, results)) {
            continue;
        }
        say(&format!("{connections} connections: delete and create, {}", durability.name()));
        let contest = Contest::open(stand, Operation::Create, connections, durability)?;
        let (deletes, creates) = write(options, keys, contest)?;
        for ((operation, case), all) in cases.iter().zip([deletes, creates]) {
            if options.wants(*operation, case, results) {
                report(case, connections, &all, results)?;
                results.end(case)?;
            }
        }
    }
    Ok(())
}

/// One pass of each kind over every key, by the stores that are compared with each other. Reads come last: of what was written
/// before no reply is kept.
fn all_keys(options: &Options, keys: Keys, stand: &Stand, connections: usize, results: &mut Results) -> io::Result<()> {
    let stores: Vec<&Store> = stand.stores.iter().filter(|store| ![EXACT, CEILING].contains(&store.name)).collect();
    let case = |operation: Operation, rest: &str| format!("{connections} connections/{} all{rest}", operation.name());
    let limit = (Until::AllAreThrough, ALL_KEYS_LIMIT);
    let cases = [Operation::Delete, Operation::Create].map(|operation| (operation, case(operation, ", not durable")));
    if cases.iter().any(|(operation, case)| options.wants(*operation, case, results)) {
        say(&format!("{connections} connections: delete and create all keys, not durable"));
        let mut contest = Contest::of(&stores, connections, Durability::Lazy)?;
        let (mut deletes, mut creates) = (contest.series(), contest.series());
        let stretches = contest.stretches(|_, _, line| 0..line.share(keys));
        let deleted = contest.round(limit, keys, Operation::Delete, 0, &mut deletes, &stretches)?;
        let stretches = contest.stretches(|store, at, _| 0..deleted[store][at]);
        let created = contest.round(limit, keys, Operation::Create, 0, &mut creates, &stretches)?;
        let rest = contest.stretches(|store, at, _| created[store][at]..deleted[store][at]);
        contest.create(keys, &rest)?;
        for ((operation, case), mut all, counts) in [(&cases[0], deletes, deleted), (&cases[1], creates, created)] {
            if options.wants(*operation, case, results) {
                note_keys(&mut all, &counts);
                report(case, connections, &all, results)?;
                results.end(case)?;
            }
        }
    }
    let reads = case(Operation::Read, "");
    if !options.wants(Operation::Read, &reads, results) {
        return Ok(());
    }
    say(&format!("{connections} connections: read all keys"));
    // In mode session others' commits are seen a moment later.
    for store in &stores {
        wait_for(|| store.verify(keys).is_ok(), &format!("{}: all keys", store.name))?;
    }
    let mut contest = Contest::of(&stores, connections, Durability::Durable)?;
    let mut all = contest.series();
    for (series, store) in all.iter_mut().zip(&stores) {
        series.note = settled_route(store, keys)?;
    }
    let stretches = contest.stretches(|_, _, line| 0..line.share(keys));
    let counts = contest.round(limit, keys, Operation::Read, 0, &mut all, &stretches)?;
    note_keys(&mut all, &counts);
    report(&reads, connections, &all, results)?;
    results.end(&reads)
}

/// All of them, unless the time was up.
fn note_keys(all: &mut [Series], counts: &[Vec<u64>]) {
    for (series, counts) in all.iter_mut().zip(counts) {
        let keys = format!("{} keys", counts.iter().sum::<u64>());
        series.note = if series.note.is_empty() { keys } else { format!("{}, {keys}", series.note) };
    }
}

/// The first keys of each connection are read, the others written.
fn of_reads(share: u64) -> u64 {
    share * 4 / 5
}

/// The keys of one turn of reads, no other's, without the last, which is kept for asking how such a key is answered.
fn read_stretch(share: u64, turn: u64, turns: u64) -> Stretch {
    let border = |turn: u64| of_reads(share) * turn / turns;
    border(turn)..(border(turn + 1).saturating_sub(1)).max(border(turn))
}

fn read(options: &Options, keys: Keys, connections: usize, mut contest: Contest<'_>) -> io::Result<Vec<Series>> {
    let mut all = contest.series();
    let part = options.connections.iter().position(|other| *other == connections).unwrap_or(0);
    let exact = contest.entries.iter().position(|entry| entry.store.name == EXACT);
    let turns = 2 * options.connections.len() * options.rounds;
    let stretch = |store: usize, line: &Line, round: usize| {
        // The second of the two that share a freshet has turns of its own: what the one has read is kept for the other.
        let turn = 2 * (part * options.rounds + round) + usize::from(Some(store) == exact);
        read_stretch(line.share(keys), turn as u64, turns as u64)
    };
    for round in 0..options.rounds {
        let stretches = contest.stretches(|store, _, line| stretch(store, line, round));
        contest.round(options.limit(), keys, Operation::Read, round, &mut all, &stretches)?;
    }
    for (at, (series, entry)) in all.iter_mut().zip(&contest.entries).enumerate() {
        let line = &entry.lines[0];
        let fresh = stretch(at, line, options.rounds.saturating_sub(1)).end;
        series.note = route(entry.store, &keys.at(line.position(fresh, keys)))?;
    }
    Ok(all)
}

/// The same few keys by turns, whose replies freshet keeps.
fn read_again(options: &Options, keys: Keys, mut contest: Contest<'_>) -> io::Result<Vec<Series>> {
    let few = Keys { count: KEPT_KEYS.min(keys.count) };
    let once = contest.stretches(|_, _, line| 0..line.share(few));
    for (entry, stretches) in contest.entries.iter_mut().zip(&once) {
        entry.keep(few, stretches)?;
    }
    let mut all = contest.series();
    let endless = contest.stretches(|_, _, _| 0..u64::MAX);
    for round in 0..options.rounds {
        contest.round(options.limit(), few, Operation::Read, round, &mut all, &endless)?;
    }
    for (series, entry) in all.iter_mut().zip(&contest.entries) {
        series.note = route(entry.store, &few.at(0))?;
    }
    Ok(all)
}

/// The figures of DELETE and of CREATE, over keys that no read has asked for.
fn write(options: &Options, keys: Keys, mut contest: Contest<'_>) -> io::Result<(Vec<Series>, Vec<Series>)> {
    let (mut deletes, mut creates) = (contest.series(), contest.series());
    let first = |line: &Line| of_reads(line.share(keys));
    for round in 0..options.rounds {
        let stretches = contest.stretches(|_, _, line| first(line)..line.share(keys));
        let deleted = contest.round(options.limit(), keys, Operation::Delete, round, &mut deletes, &stretches)?;
        let stretches = contest.stretches(|store, at, line| first(line)..first(line) + deleted[store][at]);
        let created = contest.round(options.limit(), keys, Operation::Create, round, &mut creates, &stretches)?;
        // Those that there was no time for.
        let rest =
            contest.stretches(|store, at, line| first(line) + created[store][at]..first(line) + deleted[store][at]);
        contest.create(keys, &rest)?;
    }
    Ok((deletes, creates))
}

/// How freshet answers a key; nothing for the others.
fn route(store: &Store, key: &Key) -> io::Result<String> {
    let mode = match store.name {
        stores::SESSION => "session",
        EXACT => "exact",
        _ => return Ok(String::new()),
    };
    let mut client = Client::connect(store.address, "postgres", DATABASE)?;
    client.query(&query_message(&format!("SET freshet.freshness = '{mode}'")))?;
    let parse = freshet_tests::client::parse(Operation::Read.name(), Operation::Read.sql());
    client.query(&[parse, freshet_tests::client::sync()].concat())?;
    client.query(&Operation::Read.unit(key))?;
    let (route, reason) = last_route(&mut client)?;
    Ok(if reason.is_empty() { route } else { format!("{route} ({reason})") })
}

/// How freshet answers keys that nobody has asked for, once it has followed the writes before; nothing for the others.
fn settled_route(store: &Store, keys: Keys) -> io::Result<String> {
    let limit = Instant::now() + Duration::from_secs(20);
    let mut position = 0;
    loop {
        let route = route(store, &keys.at(position))?;
        if route.is_empty() || route == "local" || Instant::now() > limit {
            return Ok(route);
        }
        position += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Entry<'_> {
    /// Asks for each key until freshet has kept the replies.
    fn keep(&mut self, keys: Keys, stretches: &[Stretch]) -> io::Result<()> {
        const TRIES: usize = 50;
        let exchange = self.store.exchange(Operation::Read);
        for _ in 0..TRIES {
            drive::run(&mut self.lines, exchange, keys, stretches, (Until::AllAreThrough, Duration::MAX))?;
            let last = stretches[0].end - 1;
            let route = route(self.store, &keys.at(self.lines[0].position(last, keys)))?;
            if route.is_empty() || route == "hit" {
                return Ok(());
            }
        }
        Err(io::Error::other(format!("{}: what is asked again and again is no hit", self.store.name)))
    }
}

/// The stores that take part in an operation, with their connections.
struct Contest<'a> {
    entries: Vec<Entry<'a>>,
}

struct Entry<'a> {
    store: &'a Store,
    lines: Vec<Line>,
}

impl<'a> Contest<'a> {
    fn open(stand: &'a Stand, operation: Operation, connections: usize, durability: Durability) -> io::Result<Self> {
        let takes_part: Vec<&Store> = stand.stores.iter().filter(|store| store.takes(operation)).collect();
        Self::of(&takes_part, connections, durability)
    }

    fn of(stores: &[&'a Store], connections: usize, durability: Durability) -> io::Result<Self> {
        let connect = |store: &&'a Store| Ok(Entry { store, lines: store.connect(connections, durability)? });
        let entries = stores.iter().map(connect);
        Ok(Self { entries: entries.collect::<io::Result<_>>()? })
    }

    fn series(&self) -> Vec<Series> {
        self.entries.iter().map(|entry| Series::new(entry.store.name)).collect()
    }

    /// By store (its place and the connection's) and connection.
    fn stretches(&self, of: impl Fn(usize, usize, &Line) -> Stretch) -> Vec<Vec<Stretch>> {
        let of_store = |(store, entry): (usize, &Entry<'_>)| {
            entry.lines.iter().enumerate().map(|(at, line)| of(store, at, line)).collect()
        };
        self.entries.iter().enumerate().map(of_store).collect()
    }

    /// Without measuring: those that there was no time for.
    fn create(&mut self, keys: Keys, stretches: &[Vec<Stretch>]) -> io::Result<()> {
        for (Entry { store, lines }, stretches) in self.entries.iter_mut().zip(stretches) {
            let all = (Until::AllAreThrough, Duration::MAX);
            drive::run(lines, store.exchange(Operation::Create), keys, stretches, all)?;
        }
        Ok(())
    }

    /// Every store once, another one first each time; how far each connection came.
    fn round(
        &mut self,
        limit: (Until, Duration),
        keys: Keys,
        operation: Operation,
        round: usize,
        all: &mut [Series],
        stretches: &[Vec<Stretch>],
    ) -> io::Result<Vec<Vec<u64>>> {
        let mut counts = vec![Vec::new(); self.entries.len()];
        for at in turns(round, self.entries.len()) {
            let Entry { store, lines } = &mut self.entries[at];
            let now = || {
                let server = store.process.map(processor_time).unwrap_or_default();
                [server, store.postmaster.map(processor_time_of_family).unwrap_or_default()]
            };
            let before = now();
            let (measured, of_store) = drive::run(lines, store.exchange(operation), keys, &stretches[at], limit)
                .map_err(|error| io::Error::other(format!("{}: {}: {error}", operation.name(), store.name)))?;
            let after = now();
            all[at].add(&measured, between(before, after), 1)?;
            counts[at] = of_store;
        }
        Ok(counts)
    }
}

fn report(case: &str, connections: usize, all: &[Series], results: &mut Results) -> io::Result<()> {
    let redis = all.iter().map(|series| series.system).find(|name| ["Redis", "Valkey"].contains(name));
    let mut text = format!(
        "\n{case}\n{:16} {:>10} {:>19} {:>9} {:>9} {:>7} {:>7} {:>7} {:>20} {:>20} {:>20}\n",
        "store",
        "queries/s",
        "min..max",
        "p50 us",
        "p99 us",
        "cpu us",
        "PG us",
        "cl. us",
        "x upstream",
        format!("x {}", redis.unwrap_or("Redis")),
        "x ceiling"
    );
    for series in all {
        let (rate, [server, upstream, client]) = (series.rate(), series.processor());
        let _ = writeln!(
            text,
            "{:16} {:>10.0} {:>19} {:>9.1} {:>9.1} {:>7.1} {:>7.1} {:>7.1} {:>20} {:>20} {:>20}  {}",
            series.system,
            rate.median,
            format!("{:.0}..{:.0}", rate.min, rate.max),
            series.us(0.5),
            series.us(0.99),
            server,
            upstream,
            client,
            series.beside(all, UPSTREAM),
            redis.map_or(String::new(), |redis| series.beside(all, redis)),
            series.beside(all, CEILING),
            series.note,
        );
        series.write(results, case, "query", Some(("connections", connections as f64)))?;
    }
    print(&text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_turns_read_the_same_key_and_none_reads_what_is_written() {
        let (share, turns) = (15_625, 18);
        let mut end = 0;
        for turn in 0..turns {
            let stretch = read_stretch(share, turn, turns);
            assert!(stretch.start >= end && stretch.end > stretch.start, "turn {turn}: {stretch:?}");
            end = stretch.end + 1;
        }
        assert!(end <= of_reads(share));
    }
}
