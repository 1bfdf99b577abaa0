//! By connections: opening one, memory, the kept reply of one among idle ones, and all of them busy at once.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::load::{self, Connection, Load};
use crate::process::{memory_kb, used, used_since};
use crate::scale::costs::{Costs, Timed};
use crate::scale::{SESSION, Stand, UPSTREAM, connect, timed};
use crate::wire::{Answer, query_message};

const SQL: &str = "SELECT id, val FROM few WHERE id = 7";

pub(super) fn measure(stand: &Stand, size: u64, costs: &mut Costs) -> io::Result<()> {
    let database = stand.database("connections", size);
    stand.cluster.psql(
        &database,
        "CREATE TABLE few (id int PRIMARY KEY, val int NOT NULL);
         INSERT INTO few SELECT g, 7 * g % 100 FROM generate_series(0, 99) g",
    );
    stand.cluster.psql(&database, "VACUUM (ANALYZE)");
    let server = stand.freshet(&database, &["public.few".to_owned()], &mut Timed::default())?;
    let message = query_message(SQL);
    let mut first = connect(stand.address(), &database, None)?;
    let allowed = [vec![Answer::of(first.query(&message)?, &[])]];
    drop(first);
    let load = Load { units: &[message], allowed: &allowed, depth: 1 };
    // Verified and kept before anything is timed.
    let mut settled = connect(server.address, &database, Some("session"))?;
    crate::servers::settle(&mut settled, || SQL.to_owned(), &["hit"], Duration::from_secs(10))?;
    drop(settled);
    let idle = backends(stand, &database);
    for (system, address) in [(SESSION, server.address), (UPSTREAM, stand.address())] {
        one_system(stand, system, address, &server, &database, size, &load, costs)?;
        // What ends is no load of the next one's.
        let limit = Instant::now() + Duration::from_secs(60);
        while backends(stand, &database) > idle {
            if Instant::now() > limit {
                return Err(io::Error::other(format!("{system}: its connections do not end")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    stand.end(&database, server);
    Ok(())
}

fn backends(stand: &Stand, database: &str) -> u64 {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    stand.cluster.psql(database, sql).trim().parse().unwrap_or(u64::MAX)
}

fn one_system(
    stand: &Stand,
    system: &'static str,
    address: SocketAddr,
    server: &crate::servers::Server,
    database: &str,
    size: u64,
    load: &Load<'_>,
    costs: &mut Costs,
) -> io::Result<()> {
    let (asked, upstreams) = ((system == SESSION).then_some(server), Some(stand.postmaster));
    let freshet = asked.map(|server| server.process.id);
    let settings: &[&str] = if system == SESSION { &["SET freshet.freshness = 'session'"] } else { &[] };
    let (mut open, mut opening) = (Vec::new(), Timed::default());
    // Each opens once: the values are those of parts of all connections, one after the other.
    let parts = size.min(stand.rounds as u64);
    for part in 0..parts {
        let count = size * (part + 1) / parts - size * part / parts;
        let (before, began) = (used(freshet, upstreams), Instant::now());
        for _ in 0..count {
            let mut connection = Connection::open_small(address, database, settings, &[])?;
            connection.warm_up(load)?;
            open.push(connection);
        }
        let elapsed = began.elapsed();
        let used = used_since(before, freshet, upstreams);
        opening.add(elapsed.as_secs_f64() * 1e3 / count as f64, used, 1e3 / count as f64);
    }
    costs.add_timed(size, ("opening one and its first statement", "ms"), system, opening, "");
    if system == SESSION {
        let megabytes = memory_kb(server.process.id, "VmRSS") as f64 / 1e3;
        costs.add(size, ("resident memory", "MB"), "freshet", vec![megabytes], "");
    }
    let [alone] = stand.times_of([(asked, &mut |_| timed(&mut open[0].client, SQL))])?;
    costs.add_timed(size, ("one busy, the others idle", "us"), system, alone, "");
    let (mut between, mut of_freshet, mut of_upstream) = (Timed::default(), Vec::new(), Vec::new());
    for _ in 0..stand.rounds {
        let before = used(freshet, upstreams);
        // Longer where many threads have to start first.
        let measured = load::run(&mut open, load, stand.seconds.max(size as f64 * 1e-3))?;
        let [freshet, upstream, _] = used_since(before, freshet, upstreams);
        let each = 1e6 / measured.queries as f64;
        of_freshet.push(freshet.as_secs_f64() * each);
        of_upstream.push(upstream.as_secs_f64() * each);
        // Of the client without what starting its threads takes.
        let used = [freshet, upstream, measured.client_time];
        between.add(1e6 / measured.queries_per_second(), used, each);
    }
    costs.add_timed(size, ("all busy, time between answers", "us"), system, between, "");
    let busy = ("all busy, processor time per answer", "us");
    if system == SESSION {
        costs.add(size, busy, system, of_freshet, "");
        costs.add_reference(
            size,
            busy,
            "PostgreSQL's beside it",
            of_upstream,
            "part of what an answer through freshet costs",
        );
    } else {
        costs.add(size, busy, system, of_upstream, "");
    }
    Ok(())
}
