//! By mirrored tables, of a hundred rows each: until all are mirrored, reads of one of them, what follows a commit to any,
//! and what freshet does when nobody asks.

use std::io;
use std::time::{Duration, Instant};

use crate::process::{memory_kb, used, used_since};
use crate::scale::costs::{Costs, Timed};
use crate::scale::{EXACT, FRESHET, SESSION, Stand, WITH_COMMIT, connect, settle, timed};
use crate::servers::last_route;
use crate::wire::{query_message, rows};

pub(super) fn measure(stand: &Stand, size: u64, costs: &mut Costs) -> io::Result<()> {
    let database = stand.database("tables", size);
    let one = |n: u64| {
        format!(
            "CREATE TABLE t{n} (id int PRIMARY KEY, val int NOT NULL);
             INSERT INTO t{n} SELECT g, 7 * g % 100 FROM generate_series(0, 99) g"
        )
    };
    stand.cluster.psql(&database, &(0..size).map(one).collect::<Vec<_>>().join(";"));
    stand.cluster.psql(&database, "VACUUM (ANALYZE)");
    let names: Vec<String> = (0..size).map(|n| format!("public.t{n}")).collect();
    let mut mirrored = Timed::default();
    let mut server = stand.freshet(&database, &names, &mut mirrored)?;
    for _ in 1..stand.rounds {
        stand.stop(&database, server)?;
        server = stand.freshet(&database, &names, &mut mirrored)?;
    }
    costs.add_timed(size, ("until all are mirrored", "ms"), FRESHET, mirrored, "");
    let megabytes = memory_kb(server.process.id, "VmRSS") as f64 / 1e3;
    costs.add(size, ("resident memory", "MB"), FRESHET, vec![megabytes], "");

    let mut upstream = connect(stand.address(), &database, None)?;
    let mut session = connect(server.address, &database, Some("session"))?;
    let mut exact = connect(server.address, &database, Some("exact"))?;
    let text = |n: u64| format!("SELECT id, val FROM t0 WHERE id = {} AND val < {n}", n % 100);
    let note = settle(&mut session, &mut upstream, text)?;
    let times = stand.times(&server, |n| timed(&mut session, &text(n)))?;
    costs.add_timed(size, ("one row", "us"), SESSION, times, &note);
    let times = stand.times(&server, |n| timed(&mut exact, &text(n)))?;
    let (route, reason) = last_route(&mut exact)?;
    costs.add_timed(size, ("one row", "us"), EXACT, times, format!("{route} {reason}").trim());

    let mut seen = stand.times(&server, |n| {
        // Each table in turn.
        let (table, val) = (n % size, i64::try_from(n).unwrap_or(0));
        upstream.query(&query_message(&format!("UPDATE t{table} SET val = -{val} WHERE id = 5")))?;
        let message = query_message(&format!("SELECT val FROM t{table} WHERE id = 5"));
        let began = Instant::now();
        let reply = exact.query(&message)?;
        let elapsed = began.elapsed();
        let found = rows(reply);
        if found == [[Some((-val).to_string())]] {
            return Ok(elapsed);
        }
        Err(io::Error::other(format!("t{table}: {found:?}, committed before: -{val}")))
    })?;
    seen.beside = WITH_COMMIT;
    costs.add_timed(size, ("one row just after another's commit", "us"), EXACT, seen, "");

    let (freshet, upstreams) = (Some(server.process.id), Some(stand.postmaster));
    let (mut at_rest, seconds) = (Timed::default(), 2.0 * stand.seconds);
    for _ in 0..stand.rounds {
        let before = used(freshet, upstreams);
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let used = used_since(before, freshet, upstreams);
        at_rest.add(used[0].as_secs_f64() * 1e3 / seconds, used, 1e3 / seconds);
    }
    costs.add_timed(size, ("processor time at rest", "ms/s"), FRESHET, at_rest, "");
    drop((session, exact, upstream));
    stand.end(&database, server);
    Ok(())
}
