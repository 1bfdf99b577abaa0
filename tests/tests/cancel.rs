//! A CancelRequest ends what freshet itself is doing for a session, with PostgreSQL's error and in PostgreSQL's state.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use freshet_tests::client::{Message, RawClient, bind, describe, execute, flush, parse, query, rows, sync, tags};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw;

/// A join that is quick over the first ten rows and takes long over the rest.
const LONG: &str = "SELECT count(*) FROM c a JOIN c b ON a.k = b.k WHERE a.id + b.id < 0";

struct Setting {
    port: u16,
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
    let server = Freshet::start(&cluster.url(&database), |settings| settings.audit.sample_one_in = 0);
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
    Setting { port: server.port(), client: RawClient::log_in(server.port(), &database), _server: server }
}

/// Sends the messages, and cancel requests until the given message comes.
fn cancelled(setting: &mut Setting, messages: &[Vec<u8>], until: char) -> Vec<Message> {
    setting.client.send(&messages.concat());
    let is_over = Arc::new(AtomicBool::new(false));
    let (port, key, over) = (setting.port, setting.client.key.clone(), Arc::clone(&is_over));
    let canceller = std::thread::spawn(move || {
        let packet = [&(8 + key.len() as u32).to_be_bytes()[..], &80_877_102_u32.to_be_bytes(), &key].concat();
        // One that comes before the statement has begun has no effect, so more follow.
        while !over.load(Ordering::Relaxed) {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
            stream.write_all(&packet).expect("written");
            let _ = stream.read(&mut [0]);
        }
    });
    let started = Instant::now();
    let got = setting.client.read_until(until);
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

#[test]
fn a_local_computation_ends_with_57014() {
    let mut setting = start();
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        let got = cancelled(&mut setting, &[query(LONG)], 'Z');
        assert_cancelled(&got);
        assert_eq!(status(&got), b'I');
        // A machine under load may have missed a barrier; then it was upstream that was cancelled.
        let last = rows(&setting.client.query("SHOW freshet.last")).remove(0);
        if last[0].as_deref() == Some("local") {
            break;
        }
        assert!(Instant::now() < limit, "{last:?}");
    }
    assert_eq!(rows(&setting.client.query("SELECT count(*) FROM c")), [[Some("60000".to_string())]]);
    let unit = [parse("", LONG), bind("", "", &[], 0), describe('P', ""), execute("", 0), sync()];
    let got = cancelled(&mut setting, &unit, 'Z');
    assert_cancelled(&got);
    // With T and without 1 or 2 where it was upstream that was cancelled, see above.
    assert!(["12EZ", "12TEZ", "1EZ", "EZ"].contains(&&*tags(&got)), "{}", tags(&got));
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
    assert_eq!(rows(&setting.client.query("SELECT count(*) FROM c")), [[Some("60000".to_string())]]);
}

#[test]
fn what_follows_in_a_cancelled_group_is_ignored_up_to_its_sync() {
    let mut setting = start();
    let group = [parse("", LONG), bind("", "", &[], 0), execute("", 0), flush()];
    let got = cancelled(&mut setting, &group, 'E');
    assert_cancelled(&got);
    assert!(["12E", "1E", "E"].contains(&&*tags(&got)), "{}", tags(&got));
    setting.client.send(&[execute("", 0), query("SELECT 1"), parse("", "SELEC"), sync()].concat());
    assert_eq!(tags(&setting.client.read_until('Z')), "Z");
    assert_eq!(rows(&setting.client.query("SELECT count(*) FROM c")), [[Some("60000".to_string())]]);
}
