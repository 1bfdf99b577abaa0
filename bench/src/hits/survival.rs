//! How many polls are hits while somebody writes what cannot matter to them.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::console::{print, say};
use crate::hits::{DATABASE, Options, Stand};
use crate::process::{postmaster, used, used_since};
use crate::results::{Better, Results};
use crate::servers::last_route;
use crate::spread::spread;
use crate::wire::{Client, query_message};

struct Scene {
    name: &'static str,
    /// The polls, by number.
    poll: fn(u64) -> String,
    polls: u64,
    /// The writes, by number.
    write: fn(u64) -> String,
}

const SCENES: [Scene; 2] = [
    Scene {
        name: "tenants",
        // Tenant 0 is the one that is written to.
        poll: |n| format!("SELECT count(*), sum(val), max(val) FROM rows WHERE tenant = {}", 1 + n % 999),
        polls: 999,
        write: |n| format!("UPDATE rows SET val = {} WHERE tenant = 0 AND id = {}", n % 1_000, 1_000 * (n % 50)),
    },
    Scene {
        name: "time ranges under inserts",
        poll: |n| {
            let from = n % 200 * 200;
            format!("SELECT count(*), avg(val) FROM series WHERE at >= {from} AND at < {}", from + 1_000)
        },
        polls: 200,
        write: |n| format!("INSERT INTO series VALUES ({}, {})", 100_000 + n, n % 1_000),
    },
];
const WRITES_PER_SECOND: u64 = 100;

pub(super) fn measure(options: &Options, stand: &Stand, results: &mut Results) -> io::Result<()> {
    for scene in &SCENES {
        say(&format!("survival, {}", scene.name));
        let (mut shares, mut processor) = (Vec::new(), [const { Vec::new() }; 3]);
        for _ in 0..options.rounds {
            let round = one_round(options, stand, scene)?;
            shares.push(100.0 * round.hits as f64 / round.polls as f64);
            for (values, time) in processor.iter_mut().zip(round.processor) {
                values.push(time.as_secs_f64() * 1e6 / round.polls as f64);
            }
        }
        let share = spread(shares.iter().copied());
        let metric = ("polls that are hits", "%", Better::More);
        let note = format!("{WRITES_PER_SECOND} writes/s that cannot matter");
        results.figure(scene.name, "freshet session", metric, &shares, &note)?;
        // What asks how a poll was answered, and the writes, are in it.
        let note = "of a poll, its SHOW freshet.last and its share of the writes";
        results.processor(scene.name, "freshet session", "us/poll", &processor, note)?;
        print(&format!(
            "{}: {:.1} % ({:.1}..{:.1}) of the polls are hits at {WRITES_PER_SECOND} writes/s (wanted 95){}",
            scene.name,
            share.median,
            share.min,
            share.max,
            if share.median >= 95.0 { "" } else { " MISSED" }
        ));
    }
    results.end("survival")
}

struct Round {
    polls: u64,
    hits: u64,
    /// Of freshet, PostgreSQL and the client.
    processor: [Duration; 3],
}

fn one_round(options: &Options, stand: &Stand, scene: &Scene) -> io::Result<Round> {
    let connect = || -> io::Result<Client> {
        let mut client = Client::connect(stand.freshet.address, "postgres", DATABASE)?;
        client.query(&query_message("SET freshet.freshness = 'session'"))?;
        Ok(client)
    };
    let mut poller = connect()?;
    // The shape is verified and every reply kept; a moment of patience for those that are checked again by chance.
    for n in 0..scene.polls {
        for _ in 0..20 {
            poller.query(&query_message(&(scene.poll)(n)))?;
            if last_route(&mut poller)?.0 == "hit" {
                break;
            }
        }
    }
    let (stop, mut writer) = (AtomicBool::new(false), connect()?);
    let (freshet, upstream) = (Some(stand.freshet.process.id), Some(postmaster(&stand.cluster)?));
    let before = used(freshet, upstream);
    let (hits, polls) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| -> io::Result<()> {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                writer.query(&query_message(&(scene.write)(n)))?;
                n += 1;
                std::thread::sleep(Duration::from_micros(1_000_000 / WRITES_PER_SECOND));
            }
            Ok(())
        });
        let polled = poll(options, &mut poller, scene);
        stop.store(true, Ordering::Relaxed);
        writing.join().map_err(|_| io::Error::other("the writer panicked"))??;
        polled
    })?;
    Ok(Round { polls, hits, processor: used_since(before, freshet, upstream) })
}

/// How many polls were hits, and how many there were.
fn poll(options: &Options, poller: &mut Client, scene: &Scene) -> io::Result<(u64, u64)> {
    let limit = Instant::now() + Duration::from_secs_f64(options.seconds.max(1.0));
    let (mut hits, mut polls) = (0_u64, 0_u64);
    while Instant::now() < limit {
        poller.query(&query_message(&(scene.poll)(polls)))?;
        hits += u64::from(last_route(poller)?.0 == "hit");
        polls += 1;
    }
    Ok((hits, polls))
}
