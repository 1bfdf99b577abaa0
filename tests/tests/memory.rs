//! A side that does not read holds the other up; freshet's memory does not grow. A suite of its own, since the memory
//! of the whole process is looked at.

use std::io::Write;
use std::time::{Duration, Instant};

use freshet_tests::client::{RawClient, message, query, tags};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;

/// Far above what may wait within freshet, and within the sockets of the system.
const TRANSFER_BYTES: usize = 200_000_000;
/// Buffers of both directions, and what the test itself takes.
const GROWTH_KB_MAX: usize = 8 * 1024;

fn resident_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("known for a running process");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number of KB")
}

/// Upstream's backend waits for the same thing for half a second on end.
fn wait_until_stuck(cluster: &Cluster, database: &str, wait_event: &str) {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND query LIKE 'COPY%' AND wait_event = '{wait_event}'"
    );
    let limit = Instant::now() + Duration::from_secs(60);
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_millis(500) {
        if cluster.psql("postgres", &sql) == "0" {
            since = Instant::now();
        }
        assert!(Instant::now() < limit, "no backend waits for {wait_event}");
    }
}

#[test]
fn a_side_that_does_not_read_stops_the_other() {
    let cluster = Cluster::shared();
    let modes: [fn(&str) -> Freshet; 2] = [Freshet::relay, |url| Freshet::start(url, |_| {})];
    for start in modes {
        let database = cluster.database();
        let freshet = start(&cluster.url(&database));
        the_client_does_not_read(cluster, &freshet, &database);
        upstream_does_not_read(cluster, &freshet, &database);
    }
}

fn the_client_does_not_read(cluster: &Cluster, freshet: &Freshet, database: &str) {
    let mut client = RawClient::log_in(freshet.port(), database);
    let before = resident_kb();
    let rows = TRANSFER_BYTES / 1000;
    client.send(&query(&format!("COPY (SELECT repeat('x', 999) FROM generate_series(1, {rows})) TO STDOUT")));
    wait_until_stuck(cluster, database, "ClientWrite");
    let grown = resident_kb().saturating_sub(before);
    assert!(grown < GROWTH_KB_MAX, "{grown} KB more while the client does not read");
    let mut bytes = 0;
    loop {
        let message = client.read_message().expect("the whole result");
        match message.tag {
            'd' => bytes += message.body.len(),
            'Z' => break,
            _ => {}
        }
    }
    assert_eq!(bytes, rows * 1000);
}

fn upstream_does_not_read(cluster: &Cluster, freshet: &Freshet, database: &str) {
    cluster.psql(
        database,
        "CREATE TABLE taken (a text);
         CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END';
         CREATE TRIGGER wait BEFORE INSERT ON taken FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    let mut gate = RawClient::log_in(cluster.port(), database);
    gate.query("SELECT pg_advisory_lock(7)");
    let mut client = RawClient::log_in(freshet.port(), database);
    let before = resident_kb();
    client.send(&query("COPY taken FROM STDIN"));
    assert_eq!(tags(&client.read_until('G')), "G");
    let mut writer = client.writer();
    let piece = message(b'd', &[[b'x'; 999].as_slice(), b"\n"].concat().repeat(100));
    let pieces = TRANSFER_BYTES / 100_000;
    let sender = std::thread::spawn(move || {
        for _ in 0..pieces {
            writer.write_all(&piece).expect("freshet goes on reading in the end");
        }
        writer.write_all(&message(b'c', b"")).expect("likewise");
    });
    wait_until_stuck(cluster, database, "advisory");
    let grown = resident_kb().saturating_sub(before);
    assert!(grown < GROWTH_KB_MAX, "{grown} KB more while upstream does not read");
    assert!(!sender.is_finished(), "the client is held up");
    gate.query("SELECT pg_advisory_unlock(7)");
    assert_eq!(tags(&client.read_until('Z')), "CZ");
    sender.join().expect("no panic");
    assert_eq!(cluster.psql(database, "SELECT count(*) FROM taken"), (pieces * 100).to_string());
}
