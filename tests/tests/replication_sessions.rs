//! Replication through freshet: PostgreSQL's own programs and a real subscriber, over plain lines and over TLS.

use std::path::Path;
use std::time::{Duration, Instant};

use freshet_config::TableChoice;
use freshet_tests::certificates::Certificates;
use freshet_tests::client::{RawClient, query, tags};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::programs::{outcome, program};

/// The cluster of this file; every test has a database of its own in it.
fn cluster() -> &'static Cluster {
    static SHARED: std::sync::OnceLock<Cluster> = std::sync::OnceLock::new();
    SHARED.get_or_init(|| {
        let cluster = Cluster::start(&["wal_keep_size=1GB"]);
        Certificates::shared().use_in(&cluster, "server", "");
        cluster
    })
}

/// A freshet that mirrors, and one whose legs are both TLS; with what a connection string needs for each.
fn freshets(database: &str) -> [(Freshet, &'static str); 2] {
    let url = cluster().url(database);
    let plain = Freshet::start(&url, |_| {});
    let tls = Freshet::start(&format!("{url}?sslmode=require"), |settings| {
        settings.mirror.tables = TableChoice::None;
        settings.listen.tls_certificate = Some(Certificates::shared().certificate("server"));
        settings.listen.tls_key = Some(Certificates::shared().key("server"));
    });
    [(plain, "disable"), (tls, "require")]
}

fn connection(freshet: &Freshet, database: &str, mode: &str) -> String {
    format!("host=127.0.0.1 port={} user=postgres dbname={database} sslmode={mode}", freshet.port())
}

/// Runs it to its end; panics with its complaint.
fn run(name: &str, arguments: &[&str]) -> String {
    let output = program(name).args(arguments).output().expect("it runs");
    outcome(&output).unwrap_or_else(|error| panic!("{name} {arguments:?}: {error}"))
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn pg_basebackup_with_its_stream_of_log() {
    let database = cluster().database();
    cluster().psql(&database, "CREATE TABLE t AS SELECT i, repeat('x', 100) FROM generate_series(1, 50000) i");
    for (freshet, mode) in &freshets(&database) {
        let folder = tempfile::tempdir().expect("a folder");
        let backup = folder.path().join("backup");
        let connection = connection(freshet, &database, mode);
        run("pg_basebackup", &["-d", &connection, "-D", path(&backup), "-X", "stream", "-c", "fast"]);
        // Every file against its checksum, and the log that is needed to use it.
        let verified = run("pg_verifybackup", &[path(&backup)]);
        assert!(verified.contains("backup successfully verified"), "{verified}");
        // The tar format, compressed by the server, in one stream.
        let tar = folder.path().join("tar");
        run("pg_basebackup", &["-d", &connection, "-D", path(&tar), "-Ft", "-X", "fetch", "-z", "-c", "fast"]);
        assert!(std::fs::metadata(tar.join("base.tar.gz")).expect("written").len() > 1_000_000);
    }
}

#[test]
fn pg_receivewal_gets_the_log_byte_for_byte() {
    let database = cluster().database();
    for (freshet, mode) in &freshets(&database) {
        let folder = tempfile::tempdir().expect("a folder");
        let connection = connection(freshet, &database, mode);
        let slot = format!("receivewal_{mode}");
        run("pg_receivewal", &["-d", &connection, "--create-slot", "--slot", &slot]);
        run("pg_receivewal", &["-d", &connection, "--drop-slot", "--slot", &slot]);
        // One that keeps the log from now on; the program's own does so only once it is used.
        cluster().psql(&database, &format!("SELECT pg_create_physical_replication_slot('{slot}', true)"));
        cluster().psql(&database, &format!("SELECT pg_create_restore_point('{slot}')"));
        let first = cluster().psql(&database, "SELECT pg_walfile_name(pg_current_wal_lsn())");
        cluster().psql(
            &database,
            &format!("CREATE TABLE {slot} AS SELECT i, md5(i::text) FROM generate_series(1, 20000) i"),
        );
        cluster().psql(&database, "SELECT pg_switch_wal()");
        let end = cluster().psql(&database, "CHECKPOINT; SELECT pg_current_wal_flush_lsn()");
        run(
            "pg_receivewal",
            &["-d", &connection, "-D", path(folder.path()), "--slot", &slot, "--endpos", &end, "--no-loop", "-s", "1"],
        );
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|e| e.file_name()).collect();
        let received = std::fs::read(folder.path().join(&first));
        let received = received.unwrap_or_else(|error| panic!("{first} up to {end}: {error}; there are {names:?}"));
        let written = std::fs::read(cluster().directory().join("data/pg_wal").join(&first)).expect("kept");
        assert!(received == written, "{first}");
        run("pg_receivewal", &["-d", &connection, "--drop-slot", "--slot", &slot]);
    }
}

#[test]
fn pg_recvlogical_gets_every_change() {
    let database = cluster().database();
    cluster().psql(&database, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    for (number, (freshet, mode)) in freshets(&database).iter().enumerate() {
        let connection = connection(freshet, &database, mode);
        let slot = format!("recvlogical_{mode}");
        run("pg_recvlogical", &["-d", &connection, "--create-slot", "--slot", &slot, "-P", "test_decoding"]);
        let at = number * 10_000;
        cluster().psql(
            &database,
            &format!("INSERT INTO t SELECT i + {at}, 'v' || i FROM generate_series(1, 5000) i; DELETE FROM t WHERE a = {at} + 7"),
        );
        let end = cluster().psql(&database, "SELECT pg_current_wal_insert_lsn()");
        let changes = run(
            "pg_recvlogical",
            &["-d", &connection, "--start", "--slot", &slot, "--endpos", &end, "--no-loop", "-s", "1", "-f", "-"],
        );
        assert_eq!(changes.matches("table public.t: INSERT").count(), 5000);
        assert_eq!(changes.matches("table public.t: DELETE").count(), 1);
        run("pg_recvlogical", &["-d", &connection, "--drop-slot", "--slot", &slot]);
    }
}

#[test]
fn a_subscriber_follows_through_freshet() {
    let database = cluster().database();
    cluster().psql(
        &database,
        "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT i, 'v' FROM generate_series(1, 3000) i;
         CREATE PUBLICATION news FOR TABLE t",
    );
    let subscriber = Cluster::start(&[]);
    for (freshet, mode) in &freshets(&database) {
        let theirs = subscriber.database();
        let wait_for = |sql: &str, expected: &str| {
            let limit = Instant::now() + Duration::from_secs(60);
            loop {
                let seen = subscriber.psql(&theirs, sql);
                if seen == expected {
                    return;
                }
                assert!(Instant::now() < limit, "{sql}: {seen}, not {expected}");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        subscriber.psql(&theirs, "CREATE TABLE t (a int PRIMARY KEY, b text)");
        let connection = connection(freshet, &database, mode);
        let slot = format!("subscription_{mode}");
        subscriber.psql(&theirs, &format!("CREATE SUBSCRIPTION {slot} CONNECTION '{connection}' PUBLICATION news"));
        // The first copy and what follows it are two kinds of session.
        let sums = "SELECT count(*), sum(a), min(b) FROM t";
        wait_for(sums, &cluster().psql(&database, sums));
        cluster()
            .psql(&database, "UPDATE t SET b = 'w'; DELETE FROM t WHERE a % 7 = 0; INSERT INTO t VALUES (-1, 'x')");
        wait_for(sums, &cluster().psql(&database, sums));
        cluster().psql(&database, "DELETE FROM t; INSERT INTO t SELECT i, 'v' FROM generate_series(1, 3000) i");
        wait_for(sums, &cluster().psql(&database, sums));
        subscriber.psql(&theirs, &format!("DROP SUBSCRIPTION {slot}"));
        let left = format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{slot}'");
        assert_eq!(cluster().psql(&database, &left), "0", "dropped over the same line");
    }
}

#[test]
fn every_word_for_replication_is_understood() {
    let database = cluster().database();
    let [(freshet, _), _] = freshets(&database);
    for word in ["database", "true", "on", "1", "yes", "TRUE", "t"] {
        let seen = [cluster().port(), freshet.port()].map(|port| {
            let mut client = RawClient::connect(port);
            client.start_up(&[("user", "postgres"), ("database", &database), ("replication", word)]);
            assert_eq!(client.read_until('Z').last().map(|m| m.tag), Some('Z'), "{word}");
            let system = tags(&client.query("IDENTIFY_SYSTEM"));
            // In a plain relay of replication nothing is addressed to freshet.
            let own = tags(&client.query("SHOW freshet.last"));
            (system, own)
        });
        assert_eq!(seen[0], seen[1], "{word}");
        assert_eq!(seen[1].0, "TDCZ");
    }
    for word in ["false", "off", "0", "no", "f"] {
        let mut client = RawClient::connect(freshet.port());
        client.start_up(&[("user", "postgres"), ("database", &database), ("replication", word)]);
        assert_eq!(client.read_until('Z').last().map(|m| m.tag), Some('Z'), "{word}");
        client.send(&query("SHOW freshet.last"));
        assert_eq!(tags(&client.read_until('Z')), "TDCZ", "{word}: an ordinary session");
    }
}
