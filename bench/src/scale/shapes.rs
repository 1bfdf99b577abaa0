//! By statement shapes, each verified upstream once and planned once: their first time, later times with other literals, the
//! same text again, and memory.

use std::io;
use std::time::Instant;

use crate::process::{memory_kb, used, used_since};
use crate::scale::costs::{Costs, Timed};
use crate::scale::{FRESHET, SESSION, Stand, UPSTREAM, answer, connect, settle, timed};
use crate::servers::last_route;
use crate::wire::{Client, query_message};

/// The shape is in the name of the column; other numbers are other literals.
fn text(shape: u64, n: u64) -> String {
    format!("SELECT id AS c{shape}, val FROM shaped WHERE id = {} AND val > -{n}", n % 1_000)
}

pub(super) fn measure(stand: &Stand, size: u64, costs: &mut Costs) -> io::Result<()> {
    let database = stand.database("shapes", size);
    stand.cluster.psql(
        &database,
        "CREATE TABLE shaped (id int PRIMARY KEY, val int NOT NULL);
         INSERT INTO shaped SELECT g, 7 * g % 100 FROM generate_series(0, 999) g",
    );
    stand.cluster.psql(&database, "VACUUM (ANALYZE)");
    let server = stand.freshet(&database, &["public.shaped".to_owned()], &mut Timed::default())?;
    let mut upstream = connect(stand.address(), &database, None)?;
    let mut session = connect(server.address, &database, Some("session"))?;
    // What all shapes share is there before.
    settle(&mut session, &mut upstream, |n| text(u64::MAX, n))?;
    for (system, client) in [(SESSION, &mut session), (UPSTREAM, &mut upstream)] {
        let asked = (system == SESSION).then_some(server.process.id);
        let mut times = Timed::default();
        // A shape has one first time: the values are those of parts of all shapes, one after the other.
        let parts = size.min(stand.rounds as u64);
        for part in 0..parts {
            let shapes = size * part / parts..size * (part + 1) / parts;
            let count = (shapes.end - shapes.start) as f64;
            let (before, began) = (used(asked, Some(stand.postmaster)), Instant::now());
            for shape in shapes {
                client.query(&query_message(&text(shape, 1)))?;
            }
            let elapsed = began.elapsed();
            let used = used_since(before, asked, Some(stand.postmaster));
            times.add(elapsed.as_secs_f64() * 1e6 / count, used, 1e6 / count);
        }
        costs.add_timed(size, ("its first time", "us"), system, times, "");
    }
    let megabytes = memory_kb(server.process.id, "VmRSS") as f64 / 1e3;
    costs.add(size, ("resident memory", "MB"), FRESHET, vec![megabytes], "");
    // Some shapes may have to be verified again: their first time was among the changes of others.
    let sample = |n: u64| n.wrapping_mul(7_368_787) % size;
    for n in 0..size.min(300) {
        compare(&mut session, &mut upstream, &text(sample(n), 2))?;
    }
    let other = |n: u64| text(sample(n), 2 + n);
    let [own, upstreams] = stand.times_of([
        (Some(&server), &mut |n| timed(&mut session, &other(n))),
        (None, &mut |n| timed(&mut upstream, &other(n))),
    ])?;
    costs.add_timed(size, ("with other literals", "us"), SESSION, own, &last_route(&mut session)?.0);
    costs.add_timed(size, ("with other literals", "us"), UPSTREAM, upstreams, "");
    // The last hundred that were asked for: a reply is kept for each.
    let again = |n: u64| text(sample(n % 100), 2 + n % 100);
    for n in 0..100 {
        session.query(&query_message(&again(n)))?;
    }
    let times = stand.times(&server, |n| timed(&mut session, &again(n)))?;
    let note = last_route(&mut session)?.0;
    costs.add_timed(size, ("the same text again", "us"), SESSION, times, &note);
    drop((session, upstream));
    stand.end(&database, server);
    Ok(())
}

fn compare(session: &mut Client, upstream: &mut Client, sql: &str) -> io::Result<()> {
    let message = query_message(sql);
    if answer(upstream, sql)?.is_of(session.query(&message)?) {
        return Ok(());
    }
    Err(io::Error::other(format!("other rows than upstream's: {sql}")))
}
