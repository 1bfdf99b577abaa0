//! Memory, and hits, while every text of another client is a new one: the bound on kept replies has to hold, and what is repeated
//! has to stay.
//!
//! Two storms: of point reads, of which only those are kept that come again, and of statements that are worth keeping, several times
//! as many as there is room for.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::console::{print, say};
use crate::hits::{DATABASE, Options, RESULTS_MAX, Stand};
use crate::process::{between, memory_kb, postmaster, used};
use crate::results::{Better, Results};
use crate::servers::last_route;
use crate::wire::{Client, first_row, query_message};

struct Storm {
    name: &'static str,
    /// Distinct texts, by number; each finds one row that begins with [`Storm::first`].
    text: fn(u64) -> String,
    first: fn(u64) -> u64,
    /// One of so many of the texts that are asked for.
    one_in: u64,
}

const STORMS: [Storm; 2] = [
    Storm {
        name: "storm",
        // The largest is a row too: every text finds exactly one.
        text: |n| format!("SELECT id, val FROM points WHERE id = {}", n % 1_000_000),
        first: |n| n % 1_000_000,
        one_in: 1,
    },
    Storm {
        name: "storm of aggregates",
        text: |n| format!("SELECT count(*), sum(val), max(val) FROM rows WHERE id < {}", 50_000 + n),
        first: |_| 50_000,
        one_in: 4,
    },
];
/// Texts that are made at once.
const CHUNK: u64 = 1_000;
/// What somebody polls meanwhile.
const HOT: u64 = 50;

pub(super) fn measure(options: &Options, stand: &Stand, results: &mut Results) -> io::Result<()> {
    for storm in &STORMS {
        one_storm(options, stand, storm, results)?;
    }
    results.end("storm")
}

fn one_storm(options: &Options, stand: &Stand, storm: &Storm, results: &mut Results) -> io::Result<()> {
    let texts = options.keys / storm.one_in;
    say(&format!("{} of {texts} distinct texts", storm.name));
    let (mut client, mut poller) = (connect(stand)?, Poller::new(stand)?);
    let resident = || memory_kb(stand.freshet.process.id, "VmRSS") as f64 / 1024.0;
    // Shapes are verified and buffers have grown.
    ask(&mut client, &questions(storm, 0..1_000))?;
    // Beside a client that is as busy and asks for nothing new.
    let same = questions(storm, (0..CHUNK).map(|n| n % 100));
    let calm = beside(&mut poller, || (0..(texts / 10).div_ceil(CHUNK)).try_for_each(|_| ask(&mut client, &same)))?;
    let before = resident();
    let upstream = postmaster(&stand.cluster)?;
    let used = || used(Some(stand.freshet.process.id), Some(upstream));
    let (mut most, used_before, mut asked) = (before, used(), Duration::ZERO);
    let stormy = beside(&mut poller, || {
        (0..texts.div_ceil(CHUNK)).try_for_each(|chunk| {
            most = most.max(resident());
            // Made before they are timed.
            let new = questions(storm, chunk * CHUNK..((chunk + 1) * CHUNK).min(texts));
            let began = Instant::now();
            ask(&mut client, &new)?;
            asked += began.elapsed();
            Ok(())
        })
    })?;
    let (seconds, used) = (asked.as_secs_f64(), between(used_before, used()));
    let grown = most.max(resident()) - before;
    let cap = RESULTS_MAX as f64 / f64::from(1 << 20);
    let processor_us = used.map(|used| [used.as_secs_f64() * 1e6 / texts as f64]);
    let note = "per text, with the polls beside it";
    results.processor(storm.name, "freshet session", "us/query", &processor_us, note)?;
    let mut figure = |(what, unit, better), value: f64, note: &str| {
        results.figure(storm.name, "freshet session", (what, unit, better), &[value], note)
    };
    figure(("memory grown", "MB", Better::Less), grown, &format!("cap {cap} MB"))?;
    figure(("rate", "queries/s", Better::More), texts as f64 / seconds, "one connection")?;
    figure(("hits of what is polled", "%", Better::More), stormy.hits, "one connection, 50 texts in turn")?;
    for (polled, when) in [(&calm, "beside one that repeats"), (&stormy, "beside the storm")] {
        figure(("p50 of a poll", "us", Better::Less), polled.us(0.5), when)?;
        figure(("p99 of a poll", "us", Better::Less), polled.us(0.99), when)?;
    }
    print(&format!(
        "{}: {:.0} texts/s at one connection; resident memory grew by {grown:.1} MB (wanted at most {:.1}: the cap and 10 %){}; \
         of what is polled meanwhile {:.1} % are hits, p50 {:.1} us, p99 {:.1} us, and {:.1} us, {:.1} us beside a client that \
         repeats itself",
        storm.name,
        texts as f64 / seconds,
        1.1 * cap,
        if grown <= 1.1 * cap { "" } else { " MISSED" },
        stormy.hits,
        stormy.us(0.5),
        stormy.us(0.99),
        calm.us(0.5),
        calm.us(0.99),
    ));
    Ok(())
}

fn connect(stand: &Stand) -> io::Result<Client> {
    let mut client = Client::connect(stand.freshet.address, "postgres", DATABASE)?;
    client.query(&query_message("SET freshet.freshness = 'session'"))?;
    Ok(client)
}

/// A message, and what the row in its reply begins with.
type Question = (Vec<u8>, Option<String>);

fn questions(storm: &Storm, numbers: impl Iterator<Item = u64>) -> Vec<Question> {
    numbers.map(|n| (query_message(&(storm.text)(n)), Some((storm.first)(n).to_string()))).collect()
}

fn ask(client: &mut Client, questions: &[Question]) -> io::Result<()> {
    for (message, first) in questions {
        if first_row(client.query(message)?).first() != Some(first) {
            return Err(io::Error::other(format!("wrong reply: {}", String::from_utf8_lossy(message))));
        }
    }
    Ok(())
}

/// Somebody who asks for the same few texts in turn.
struct Poller {
    client: Client,
    units: Vec<Vec<u8>>,
}

/// What became of the polls.
struct Polled {
    /// Microseconds of each, ascending.
    times: Vec<f64>,
    /// Percent, of a sample.
    hits: f64,
}

impl Polled {
    fn us(&self, share: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        self.times.get((last as f64 * share) as usize).copied().unwrap_or(f64::NAN)
    }
}

impl Poller {
    fn new(stand: &Stand) -> io::Result<Self> {
        let text = |n| format!("SELECT count(*), sum(val), max(val) FROM rows WHERE tenant = {n}");
        let mut poller = Self { client: connect(stand)?, units: (0..HOT).map(|n| query_message(&text(n))).collect() };
        for unit in &poller.units {
            for _ in 0..100 {
                poller.client.query(unit)?;
                if last_route(&mut poller.client)?.0 == "hit" {
                    break;
                }
            }
        }
        Ok(poller)
    }

    fn poll(&mut self, until: &AtomicBool) -> io::Result<Polled> {
        let (mut times, mut hits, mut sampled) = (Vec::new(), 0_u64, 0_u64);
        let mut turn = 0;
        while !until.load(Ordering::Relaxed) {
            let began = Instant::now();
            self.client.query(&self.units[turn % self.units.len()])?;
            times.push(began.elapsed().as_secs_f64() * 1e6);
            turn += 1;
            if turn % 101 == 0 {
                hits += u64::from(last_route(&mut self.client)?.0 == "hit");
                sampled += 1;
            }
        }
        times.sort_unstable_by(f64::total_cmp);
        Ok(Polled { times, hits: 100.0 * hits as f64 / sampled.max(1) as f64 })
    }
}

/// The polls while `work` is done.
fn beside(poller: &mut Poller, mut work: impl FnMut() -> io::Result<()>) -> io::Result<Polled> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let polling = scope.spawn(|| poller.poll(&is_over));
        let worked = work();
        is_over.store(true, Ordering::Relaxed);
        let polled = polling.join().map_err(|_| io::Error::other("the poller panicked"))?;
        worked?;
        polled
    })
}
