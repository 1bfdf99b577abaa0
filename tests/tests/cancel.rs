//! A CancelRequest ends what freshet itself is doing for a session, with PostgreSQL's error and in PostgreSQL's state.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use freshet_tests::client::{Message, RawClient, bind, describe, execute, flush, parse, query, rows, sync, tags};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::marks::StoppedBarriers;
use freshet_tests::raw;
use freshet_tests::world::until;

/// A join that is quick over the first ten rows and takes long over the rest.
const LONG: &str = "SELECT count(*) FROM c a JOIN c b ON a.k = b.k WHERE a.id + b.id < 0";

struct Setting {
    port: u16,
    database: String,
    client: RawClient,
    _server: Freshet,
}

fn start() -> Setting {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE c (id int PRIMARY KEY, k int NOT NULL); INSERT INTO c SELECT i, 1 FROM generate_series(1, 10) i",
    );
    // Who waits for another's computation does so for as long as that takes.
    let server = Freshet::start(&cluster.url(&database), |settings| settings.cache.shared_wait_ms = 60_000);
    let mut watcher = raw::RawClient::connect(server.address(), "postgres", &database).expect("connects");
    let limit = Instant::now() + Duration::from_secs(30);
    let mut answers_here = |sql: &str| loop {
        watcher.simple(sql).expect("answers");
        let last = watcher.last().expect("answers");
        if last.0 == "local" || last.0 == "hit" {
            break;
        }
        assert!(Instant::now() < limit, "{sql}: {last:?}");
        std::thread::sleep(Duration::from_millis(5));
    };
    answers_here(LONG);
    answers_here("SELECT count(*) FROM c");
    cluster.psql(&database, "INSERT INTO c SELECT i, 1 FROM generate_series(11, 60000) i");
    let client = RawClient::log_in(server.port(), &database);
    Setting { port: server.port(), database, client, _server: server }
}

/// A CancelRequest; returns when it is dealt with.
fn cancel(port: u16, key: &[u8]) {
    let packet = [&(8 + key.len() as u32).to_be_bytes()[..], &80_877_102_u32.to_be_bytes(), key].concat();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    stream.write_all(&packet).expect("written");
    let _ = stream.read(&mut [0]);
}

/// Sends the messages, and cancel requests until the given message comes.
fn cancelled(setting: &mut Setting, messages: &[Vec<u8>], until: char) -> Vec<Message> {
    setting.client.send(&messages.concat());
    ended(&mut setting.client, setting.port, until)
}

/// Sends cancel requests for what the client has asked until the given message comes.
fn ended(client: &mut RawClient, port: u16, until: char) -> Vec<Message> {
    let is_over = Arc::new(AtomicBool::new(false));
    let (key, over) = (client.key.clone(), Arc::clone(&is_over));
    let canceller = std::thread::spawn(move || {
        // One that comes before the statement has begun has no effect, so more follow.
        while !over.load(Ordering::Relaxed) {
            cancel(port, &key);
        }
    });
    let started = Instant::now();
    let got = client.read_until(until);
    let elapsed = started.elapsed();
    is_over.store(true, Ordering::Relaxed);
    canceller.join().expect("no panic");
    assert!(elapsed < Duration::from_secs(5), "ended by itself, after {elapsed:?}");
    got
}

fn assert_cancelled(messages: &[Message]) {
    let error = messages.iter().find(|message| message.tag == 'E').expect("an error");
    let text = String::from_utf8_lossy(&error.body);
    assert!(text.contains("C57014\0Mcanceling statement due to user request"), "{text}");
}

fn status(messages: &[Message]) -> u8 {
    messages.last().filter(|message| message.tag == 'Z').expect("ReadyForQuery").body[0]
}

/// What `SHOW freshet.last` calls the route of the last statement.
fn route(client: &mut RawClient) -> Option<String> {
    rows(&client.query("SHOW freshet.last")).remove(0).remove(0)
}

/// Sends the messages and cancels them until it was a local computation that was cancelled: a machine under load may have
/// missed a barrier, and then it was upstream's.
fn cancelled_here(setting: &mut Setting, messages: &[Vec<u8>], until: char, after: &[Vec<u8>]) -> Vec<Message> {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        assert_answers_here(&mut setting.client);
        let got = cancelled(setting, messages, until);
        assert_cancelled(&got);
        if !after.is_empty() {
            setting.client.send(&after.concat());
            assert_eq!(tags(&setting.client.read_until('Z')), "Z");
        }
        if route(&mut setting.client).as_deref() == Some("local") {
            return got;
        }
        assert!(Instant::now() < limit, "upstream's each time");
    }
}

/// Waits until a statement is answered from here again.
fn assert_answers_here(client: &mut RawClient) {
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        assert_eq!(rows(&client.query("SELECT count(*) FROM c")), [[Some("60000".to_string())]]);
        let route = route(client);
        if matches!(route.as_deref(), Some("local" | "hit")) {
            return;
        }
        assert!(Instant::now() < limit, "{:?}", rows(&client.query("SHOW freshet.last")));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns when freshet has dealt with much that was asked after what it is to begin: by then it has begun.
fn let_begin(port: u16, database: &str) {
    let mut other = RawClient::log_in(port, database);
    for _ in 0..50 {
        other.query("SHOW freshet.route");
    }
}

#[test]
fn a_local_computation_ends_with_57014() {
    let mut setting = start();
    let got = cancelled_here(&mut setting, &[query(LONG)], 'Z', &[]);
    assert_eq!((&*tags(&got), status(&got)), ("EZ", b'I'));
    assert_eq!(rows(&setting.client.query("SELECT count(*) FROM c")), [[Some("60000".to_string())]]);
    let unit = [parse("", LONG), bind("", "", &[], 0), describe('P', ""), execute("", 0), sync()];
    let got = cancelled_here(&mut setting, &unit, 'Z', &[]);
    assert_eq!(tags(&got), "12EZ");
}

#[test]
fn a_read_that_waits_for_a_barrier_ends_with_57014() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE c (id int PRIMARY KEY); INSERT INTO c SELECT generate_series(1, 60000)");
    let server = Freshet::start(&cluster.url(&database), |settings| settings.freshness.wait_budget_ms = 60_000);
    let (port, client) = (server.port(), RawClient::log_in(server.port(), &database));
    let mut setting = Setting { port, database, client, _server: server };
    // What is computed each time, what is kept, and what is kept, in a block.
    for before in ["SET freshet.route = 'local'", "SET freshet.route = 'auto'", "BEGIN"] {
        setting.client.query(before);
        assert_answers_here(&mut setting.client);
        let stopped = StoppedBarriers::new(&cluster);
        setting.client.send(&query("SELECT count(*) FROM c"));
        let_begin(port, &setting.database);
        let got = ended(&mut setting.client, port, 'Z');
        drop(stopped);
        assert_cancelled(&got);
        let is_block = before == "BEGIN";
        assert_eq!((&*tags(&got), status(&got)), ("EZ", if is_block { b'E' } else { b'I' }), "{before}");
        if is_block {
            let refused = setting.client.query("SELECT count(*) FROM c");
            assert!(String::from_utf8_lossy(&refused[0].body).contains("25P02"), "{refused:?}");
            assert_eq!(tags(&setting.client.query("ROLLBACK")), "CZ");
        } else {
            assert_eq!(route(&mut setting.client).as_deref(), Some("local"), "it was cancelled here: {before}");
        }
        assert_answers_here(&mut setting.client);
    }
}

#[test]
fn a_read_that_waits_for_anothers_computation_ends_with_57014() {
    let mut setting = start();
    let port = setting.port;
    let mut other = RawClient::log_in(port, &setting.database);
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        assert_answers_here(&mut setting.client);
        other.send(&query(LONG));
        let_begin(port, &setting.database);
        setting.client.send(&query(LONG));
        let_begin(port, &setting.database);
        let got = ended(&mut setting.client, port, 'Z');
        assert_cancelled(&got);
        assert_eq!((&*tags(&got), status(&got)), ("EZ", b'I'));
        let waited = route(&mut setting.client);
        assert_answers_here(&mut setting.client);
        // The one that computes goes on until it is cancelled itself.
        assert_cancelled(&ended(&mut other, port, 'Z'));
        // A machine under load may have missed a barrier, and then it was upstream's.
        if [waited, route(&mut other)].iter().all(|route| route.as_deref() == Some("local")) {
            return;
        }
        assert!(Instant::now() < limit, "upstream's each time");
    }
}

#[test]
fn a_read_that_waits_for_anothers_captured_reply_ends_with_57014() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE r (id int PRIMARY KEY, ring circle); INSERT INTO r VALUES (1, '<(0,0),1>');
         CREATE TABLE c (id int PRIMARY KEY); INSERT INTO c SELECT generate_series(1, 60000)",
    );
    let server = Freshet::start(&cluster.url(&database), |settings| {
        settings.cache.shared_wait_ms = 60_000;
        settings.freshness.wait_budget_ms = 10_000;
    });
    let (port, client) = (server.port(), RawClient::log_in(server.port(), &database));
    let mut other = RawClient::log_in(port, &database);
    let mut setting = Setting { port, database: database.clone(), client, _server: server };
    assert_answers_here(&mut setting.client);
    // Not computed here: a type that is not mirrored. Upstream's reply is kept.
    let rings = "SELECT radius(ring) FROM r";
    until("upstream's reply is kept", || {
        other.query(rings);
        route(&mut other).as_deref() == Some("hit")
    });
    let mut writer = RawClient::log_in(cluster.port(), &database);
    writer.query("UPDATE r SET ring = '<(0,0),2>'");
    writer.query("BEGIN; LOCK TABLE r IN ACCESS EXCLUSIVE MODE");
    let waiting = "SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%radius%'";
    other.send(&query(rings));
    until("upstream has one of them", || cluster.psql(&database, waiting) == "1");
    setting.client.send(&query(rings));
    let_begin(port, &database);
    assert_eq!(cluster.psql(&database, waiting), "1", "the second waits here");
    let got = ended(&mut setting.client, port, 'Z');
    assert_cancelled(&got);
    assert_eq!((&*tags(&got), status(&got)), ("EZ", b'I'));
    assert_eq!(route(&mut setting.client).as_deref(), Some("local"), "it was cancelled here");
    assert_eq!(cluster.psql(&database, waiting), "1", "the first waits on");
    writer.query("ROLLBACK");
    assert_eq!(rows(&other.read_until('Z')), [[Some("2".to_string())]]);
    assert_answers_here(&mut setting.client);
    assert_eq!(rows(&setting.client.query(rings)), [[Some("2".to_string())]]);
}

#[test]
fn a_cancelled_block_has_failed_upstream_too() {
    let mut setting = start();
    setting.client.query("BEGIN");
    let got = cancelled(&mut setting, &[query(LONG)], 'Z');
    assert_cancelled(&got);
    assert_eq!(status(&got), b'E');
    let refused = setting.client.query("SELECT count(*) FROM c");
    assert!(String::from_utf8_lossy(&refused[0].body).contains("25P02"), "{refused:?}");
    let ended = setting.client.query("COMMIT");
    assert_eq!((tags(&ended).as_str(), &ended[0].body[..]), ("CZ", &b"ROLLBACK\0"[..]));
    // Nothing that freshet has said for it is in the way of what it says next.
    let unit = |sql| [parse("", sql), bind("", "", &[], 0), execute("", 0), sync()].concat();
    for sql in ["BEGIN", "SELECT name FROM pg_prepared_statements", "COMMIT"] {
        setting.client.send(&unit(sql));
        assert_eq!(tags(&setting.client.read_until('Z')), "12CZ", "{sql}");
    }
    assert_eq!(rows(&setting.client.query("SELECT count(*) FROM c")), [[Some("60000".to_string())]]);
}

#[test]
fn what_follows_in_a_cancelled_group_is_ignored_up_to_its_sync() {
    let mut setting = start();
    let group = [parse("", LONG), bind("", "", &[], 0), execute("", 0), flush()];
    let ignored = [execute("", 0), query("SELECT 1"), parse("", "SELEC"), sync()];
    let got = cancelled_here(&mut setting, &group, 'E', &ignored);
    assert_eq!(tags(&got), "12E");
    assert_eq!(rows(&setting.client.query("SELECT count(*) FROM c")), [[Some("60000".to_string())]]);
}

/// Freshet asks upstream for the session's settings, without the client's knowing. A cancel request once hit that question:
/// the session was relayed from then on, for ever.
#[test]
fn a_cancelled_probe_ends_the_statement_that_waits_for_it() {
    let mut setting = start();
    let cluster = Cluster::shared();
    let mut other = RawClient::log_in(cluster.port(), &setting.database);
    let pid = u32::from_be_bytes(setting.client.key[..4].try_into().expect("a process ID"));
    for (is_block, by_function) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_answers_here(&mut setting.client);
        // Now it is not known which schemas of the path exist, or nothing is.
        let schema = format!("none_{is_block}_{by_function}");
        let set = format!("SET LOCAL search_path = {schema}, public");
        let before = if is_block { ["BEGIN", &set] } else { ["DO $$ BEGIN END $$"; 2] };
        before.iter().for_each(|sql| drop(setting.client.query(sql)));
        // The probe reads pg_class.
        other.query("BEGIN; LOCK TABLE pg_class IN ACCESS EXCLUSIVE MODE");
        setting.client.send(&query("SELECT count(*) FROM c"));
        let limit = Instant::now() + Duration::from_secs(30);
        let waits = format!(
            "SELECT pg_stat_clear_snapshot(); SELECT count(*) FROM pg_stat_activity \
             WHERE pid = {pid} AND wait_event_type = 'Lock' AND query LIKE '%json_build_array%'"
        );
        while rows(&other.query(&waits))[1] != [Some("1".to_string())] {
            assert!(Instant::now() < limit, "no probe");
        }
        if by_function {
            other.query(&format!("SELECT pg_cancel_backend({pid})"));
        } else {
            cancel(setting.port, &setting.client.key);
        }
        let got = setting.client.read_until('Z');
        other.query("ROLLBACK");
        assert_cancelled(&got);
        // PostgreSQL 18 reports what search_path is.
        assert_eq!((&*tags(&got).replace('S', ""), status(&got)), ("EZ", if is_block { b'E' } else { b'I' }));
        if is_block {
            let refused = setting.client.query("SELECT count(*) FROM c");
            assert!(String::from_utf8_lossy(&refused[0].body).contains("25P02"), "{refused:?}");
            setting.client.query("ROLLBACK");
        }
    }
    assert_answers_here(&mut setting.client);
}

#[test]
fn a_session_outlives_requests_that_hit_anything() {
    let setting = start();
    let statements = [
        "SELECT count(*) FROM c",
        "BEGIN",
        "SAVEPOINT a",
        "SELECT max(id) FROM c",
        "RELEASE a",
        "COMMIT",
        "DO '; BEGIN END'",
    ];
    for round in 0..20 {
        let mut client = RawClient::log_in(setting.port, &setting.database);
        let is_over = Arc::new(AtomicBool::new(false));
        let (port, key, over) = (setting.port, client.key.clone(), Arc::clone(&is_over));
        let canceller = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                cancel(port, &key);
            }
        });
        for sql in statements.iter().cycle().take(round * 5) {
            let got = client.query(sql);
            let error = got.iter().find(|message| message.tag == 'E').map(|message| &message.body);
            let text = error.map_or_else(String::new, |body| String::from_utf8_lossy(body).into_owned());
            // Of a cancelled block the rest is refused, or outside of one; `DO '; ...` is an error by itself.
            let known = ["C57014\0", "C25P02\0", "C25P01\0", "C42601\0", "C3B001\0"];
            assert!(text.is_empty() || known.iter().any(|code| text.contains(code)), "{sql}: {text}");
        }
        is_over.store(true, Ordering::Relaxed);
        canceller.join().expect("no panic");
        client.query("ROLLBACK");
        assert_answers_here(&mut client);
    }
}
