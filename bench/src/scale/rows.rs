//! By rows of one table: first copy, memory, reads of one row, of what belongs to a few and of all, a kept reply, and what follows
//! a commit.

use std::io;
use std::time::{Duration, Instant};

use crate::data::{Table, int, table, text};
use crate::process::{memory_kb, used, used_since};
use crate::scale::costs::{Costs, Timed};
use crate::scale::{EXACT, FRESHET, SESSION, Stand, UPSTREAM, WITH_COMMIT, connect, settle, timed};
use crate::servers::{Server, last_route, sizes};
use crate::wire::{Client, query_message, rows};

/// Rows that have one row as their parent.
const CHILDREN: i64 = 20;

fn grown(size: u64) -> Table {
    let name = text("name", |n| format!("row_{n}"));
    let parents = (size as i64 / CHILDREN).max(1);
    let parent = int("parent", move |n| n * 7_919 % parents);
    let columns = vec![int("id", |n| n), int("grp", |n| n % 100), int("val", |n| 31 * n % 10_000), name, parent];
    table("grown", size as i64, columns)
}

pub(super) fn measure(stand: &Stand, size: u64, costs: &mut Costs) -> io::Result<()> {
    let database = stand.database("rows", size);
    let mut upstream = connect(stand.address(), &database, None)?;
    grown(size).load_upstream(&mut upstream)?;
    let key = "ALTER TABLE grown ADD PRIMARY KEY (id), REPLICA IDENTITY DEFAULT";
    upstream.query(&query_message(key))?;
    upstream.query(&query_message("CREATE INDEX ON grown (parent)"))?;
    upstream.query(&query_message("VACUUM (ANALYZE) grown"))?;
    let server = first_copies(stand, &database, &mut upstream, size, costs)?;
    costs.add(size, ("resident memory", "MB"), FRESHET, vec![memory_kb(server.process.id, "VmRSS") as f64 / 1e3], "");

    let mut session = connect(server.address, &database, Some("session"))?;
    let [mirrored, heap] = sizes(&mut session, &mut upstream, &["grown"])?;
    costs.add(size, ("the table itself", "MB"), FRESHET, vec![mirrored / 1e6], "");
    costs.add(size, ("the table itself", "MB"), UPSTREAM, vec![heap / 1e6], "without its index");
    // Whatever is kept: the engine runs.
    session.query(&query_message("SET freshet.route = 'local'"))?;
    let point = |n: u64| format!("SELECT id, val, name FROM grown WHERE id = {}", n.wrapping_mul(7_368_787) % size);
    let scan = |n: u64| format!("SELECT grp, count(*), sum(val) FROM grown WHERE id > -{n} GROUP BY grp");
    let parent = |n: u64| n.wrapping_mul(7_368_787) % (size / CHILDREN as u64).max(1);
    let children = |n: u64| {
        let parent = parent(n);
        format!("SELECT p.name, c.id, c.val FROM grown p JOIN grown c ON c.parent = p.id WHERE p.id = {parent}")
    };
    let counts = |n: u64| {
        let first = parent(n);
        format!(
            "SELECT p.id, (SELECT count(*) FROM grown c WHERE c.parent = p.id) FROM grown p WHERE p.id >= {first} ORDER BY p.id LIMIT 10"
        )
    };
    let texts: [(&'static str, &dyn Fn(u64) -> String); 4] = [
        ("one row by key", &point),
        ("a row and its children", &children),
        ("ten rows, their children counted", &counts),
        ("all rows grouped", &scan),
    ];
    for (name, text) in texts {
        let note = settle(&mut session, &mut upstream, text)?;
        let [own, upstreams] = stand.times_of([
            (Some(&server), &mut |n| timed(&mut session, &text(n))),
            (None, &mut |n| timed(&mut upstream, &text(n))),
        ])?;
        costs.add_timed(size, (name, "us"), SESSION, own, &note);
        costs.add_timed(size, (name, "us"), UPSTREAM, upstreams, "");
    }
    session.query(&query_message("SET freshet.route = 'auto'"))?;
    let kept = scan(1);
    session.query(&query_message(&kept))?;
    let times = stand.times(&server, |_| timed(&mut session, &kept))?;
    costs.add_timed(size, ("a kept reply", "us"), SESSION, times, "");
    let (route, reason) = last_route(&mut session)?;
    if route != "hit" {
        return Err(io::Error::other(format!("no kept reply: {route} {reason}")));
    }

    let mut exact = connect(server.address, &database, Some("exact"))?;
    let mut seen = stand.times(&server, |n| read_after_commit(&mut exact, &mut upstream, size, n))?;
    seen.beside = WITH_COMMIT;
    costs.add_timed(size, ("one row just after another's commit", "us"), EXACT, seen, "");
    drop((session, exact, upstream));
    stand.end(&database, server);
    Ok(())
}

/// By turns with a COPY of the same rows that goes nowhere, of which freshet's copying is a part; the last freshet stays.
fn first_copies(
    stand: &Stand,
    database: &str,
    upstream: &mut Client,
    size: u64,
    costs: &mut Costs,
) -> io::Result<Server> {
    const ENOUGH: usize = 3;
    // Three rounds in it: five would take two minutes.
    const LONG: Duration = Duration::from_secs(72);
    let tables = ["public.grown".to_owned()];
    let (mut mirrored, mut copied) = (Timed::default(), Timed::default());
    let mut one_round = || {
        let (before, began) = (used(None, Some(stand.postmaster)), Instant::now());
        upstream.query(&query_message("COPY grown TO '/dev/null' (FORMAT binary)"))?;
        let elapsed = began.elapsed();
        copied.add(elapsed.as_secs_f64() * 1e3, used_since(before, None, Some(stand.postmaster)), 1e3);
        stand.freshet(database, &tables, &mut mirrored)
    };
    let began = Instant::now();
    let mut server = one_round()?;
    for round in 1..stand.rounds {
        if round >= ENOUGH && began.elapsed() > LONG {
            break;
        }
        stand.stop(database, server)?;
        server = one_round()?;
    }
    let copy = ("start and first copy", "ms");
    costs.add_timed(size, copy, FRESHET, mirrored, "");
    costs.add_timed_reference(size, copy, "COPY to /dev/null", copied);
    Ok(server)
}

/// The commit is not in the time; the read has to see it.
fn read_after_commit(exact: &mut Client, upstream: &mut Client, size: u64, n: u64) -> io::Result<Duration> {
    let id = n * 7_919 % size;
    let updated = i64::try_from(n).unwrap_or(0) - 1_000_000_000;
    upstream.query(&query_message(&format!("UPDATE grown SET val = {updated} WHERE id = {id}")))?;
    let message = query_message(&format!("SELECT val FROM grown WHERE id = {id}"));
    let began = Instant::now();
    let reply = exact.query(&message)?;
    let elapsed = began.elapsed();
    let found = rows(reply);
    if found != [[Some(updated.to_string())]] {
        return Err(io::Error::other(format!("row {id}: {found:?}, committed before: {updated}")));
    }
    Ok(elapsed)
}
