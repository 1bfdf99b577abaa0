//! Sessions that are answered here are in use, to upstream's time-outs for those that are not.

use std::time::{Duration, Instant};

use freshet_tests::client::{RawClient, bind, execute, flush, parse, query, rows, sync, tags};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::scripted::{WAIT, burst, play, play_unit};

#[test]
fn a_session_that_is_answered_here_does_not_look_idle_upstream() {
    // Its own: what is set for a database is a new catalog for every database of the cluster.
    let cluster = &Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    cluster.psql("postgres", &format!("ALTER DATABASE {database} SET idle_session_timeout = '1500ms'"));
    let server = Freshet::start(&cluster.url(&database), |_| {});
    let mut client = RawClient::log_in(server.port(), &database);
    client.query("SET freshet.freshness = 'session'");
    let read = |client: &mut RawClient| assert_eq!(tags(&client.query("SELECT count(*) FROM t")), "TDCZ");
    // Why the last statement was not answered here, if it was not.
    let reason = |client: &mut RawClient| {
        let last = rows(&client.query("SHOW freshet.last")).remove(0);
        if matches!(last[0].as_deref(), Some("local" | "hit")) { None } else { Some(format!("{last:?}")) }
    };
    let limit = Instant::now() + WAIT;
    while let Some(reason) = reason(&mut client) {
        assert!(Instant::now() < limit, "{reason}");
        read(&mut client);
    }
    // Much longer than the time-out, with next to no statement that goes upstream; then the same in a block.
    let read_for_long = |client: &mut RawClient| {
        let (until, mut relayed) = (Instant::now() + Duration::from_secs(4), Vec::new());
        while Instant::now() < until {
            read(client);
            relayed.extend(reason(client));
            std::thread::sleep(Duration::from_millis(20));
        }
        // A machine under load may miss a barrier once; what is left is still longer than the time-out.
        assert!(relayed.len() <= 1, "{relayed:?}");
    };
    read_for_long(&mut client);
    client.query("SET idle_in_transaction_session_timeout = '1500ms'");
    client.query("BEGIN");
    read_for_long(&mut client);
    assert_eq!(tags(&client.query("SELECT 1/0")), "EZ", "the session and its block live");
    client.query("ROLLBACK");
    let limit = Instant::now() + WAIT;
    // Nor one that fetches what is left of a portal, nor one in the middle of a group.
    for ends in [sync(), flush()] {
        let sql = "SELECT n FROM t, generate_series(1, 20000) AS s (n)";
        let portal = |name, rows| {
            let unit = [parse("", sql), bind(name, "", &[], 0), execute(name, rows), sync()].concat();
            move |client: &mut RawClient| play_unit(client, &unit)
        };
        loop {
            client.query("BEGIN");
            portal("", 0)(&mut client);
            let Some(reason) = reason(&mut client) else { break };
            assert!(Instant::now() < limit, "{reason}");
            client.query("ROLLBACK");
        }
        assert_eq!(tags(&portal("rows", 1)(&mut client)), "12DsZ");
        assert_eq!(reason(&mut client), None);
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            assert_eq!(
                tags(&play(
                    &mut client,
                    &[burst(2 + usize::from(ends == sync()), &[execute("rows", 1), ends.clone()])]
                )),
                if ends == sync() { "DsZ" } else { "Ds" }
            );
            std::thread::sleep(Duration::from_millis(200));
        }
        if ends == flush() {
            // Much longer without a word, as who works on what it has fetched.
            std::thread::sleep(Duration::from_secs(3));
            assert_eq!(tags(&play_unit(&mut client, &sync())), "Z");
        }
        assert_eq!(tags(&client.query("COMMIT")), "CZ", "the session and its block live");
    }
    // Nor does one whose statement is computed here for long.
    client.query("SET idle_in_transaction_session_timeout = '600ms'");
    let long = "SELECT count(*) FROM generate_series(1, GENERATED) AS s (n), t WHERE n % 7 = id";
    let sized = |rows: u64| long.replace("GENERATED", &rows.to_string());
    let mut rows_of = 500_000;
    let limit = Instant::now() + WAIT;
    loop {
        client.query("BEGIN");
        let since = Instant::now();
        assert_eq!(tags(&client.query(&sized(rows_of))), "TDCZ");
        let took = since.elapsed();
        let last = rows(&client.query("SHOW freshet.last")).remove(0);
        assert_eq!(tags(&client.query("COMMIT")), "CZ", "the session lives");
        let is_local = last[0].as_deref() == Some("local");
        if is_local && took > Duration::from_millis(1_200) {
            break;
        }
        assert!(Instant::now() < limit, "{took:?}: {last:?}");
        rows_of = if is_local { rows_of * 2 } else { rows_of + 1 };
    }
    // Its clock begins with the last of several answers in a row, also where it is short.
    for (limit, pauses) in [(900, [150, 800]), (150, [30, 30])] {
        assert!((0..10).any(|_| outlives(server.port(), &database, limit, pauses)), "the machine is too busy");
    }
}

/// Whether a session was in use as told, at least once in `limit`, which it has outlived. A time is in milliseconds.
fn outlives(port: u16, database: &str, limit: u64, pauses: [u64; 2]) -> bool {
    let mut client = RawClient::log_in(port, database);
    client.query(&format!("SET freshet.freshness = 'session'; SET idle_in_transaction_session_timeout = {limit}"));
    client.query("BEGIN");
    let mut longest = Duration::ZERO;
    for round in 0..16 {
        let since = Instant::now();
        let _ = client.try_send(&query("SELECT count(*) FROM t"));
        let lives = tags(&client.read_until('Z')).ends_with('Z');
        std::thread::sleep(Duration::from_millis(pauses[round % 2]));
        if !lives {
            assert!(longest > Duration::from_millis(limit), "ended after {longest:?} at most, in round {round}");
            return false;
        }
        longest = longest.max(since.elapsed());
    }
    true
}
