//! `SET freshet.snapshot`: sessions that read one moment, whatever is written meanwhile, until they are released.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;
use freshet_tests::world::until;

const SCHEMA: &str = "
    CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
    INSERT INTO accounts SELECT n, 100 FROM generate_series(1, 500) n;
    CREATE TABLE log (id int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
    INSERT INTO log SELECT n FROM generate_series(1, 50) n;
    CREATE TABLE parts (id int, n int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
    CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (100);
    CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (100) TO (200);
    INSERT INTO parts SELECT n, n FROM generate_series(0, 199) n;
    CREATE VIEW rich AS SELECT id, balance FROM accounts WHERE balance >= 100;";
const TOTAL: &str = "SELECT sum(balance), count(*), min(balance) FROM accounts";
const OF_PARTS: &str = "SELECT count(*), sum(n) FROM parts";
const OF_VIEW: &str = "SELECT count(*) FROM rich";
const RECENT: &str = "SELECT count(*), now() FROM log WHERE at > now() - interval '1 hour'";
const OF_LOG: &str = "SELECT count(*) FROM log";
const READS: [&str; 5] = [TOTAL, OF_PARTS, OF_VIEW, RECENT, OF_LOG];

struct World {
    cluster: &'static Cluster,
    database: String,
    freshet: Freshet,
}

impl World {
    fn start(change: impl FnOnce(&mut freshet_config::Settings)) -> Self {
        let cluster = Cluster::shared();
        let database = cluster.database();
        cluster.psql(&database, SCHEMA);
        let freshet = Freshet::start(&cluster.url(&database), |settings| {
            settings.audit.sample_one_in = 2;
            change(settings);
        });
        let world = Self { cluster, database, freshet };
        let mut client = world.connect("postgres");
        let limit = Instant::now() + Duration::from_secs(60);
        for sql in READS {
            while client.simple(sql).map(|_| client.last().expect("answers").0).expect("answers") == "relay" {
                assert!(Instant::now() < limit, "{sql} is not answered here: {:?}", client.last());
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        world
    }

    fn connect(&self, user: &str) -> RawClient {
        RawClient::connect(self.freshet.address(), user, &self.database).expect("connects")
    }

    fn write(&self, sql: &str) {
        self.cluster.psql(&self.database, sql);
    }
}

/// The rows as text; panics on an error.
fn rows(client: &mut RawClient, sql: &str) -> String {
    let reply = client.simple(sql).expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
    let text = |cell: &Option<Vec<u8>>| String::from_utf8_lossy(cell.as_deref().unwrap_or(b"NULL")).into_owned();
    let row = |row: &Vec<Option<Vec<u8>>>| row.iter().map(text).collect::<Vec<_>>().join("|");
    reply.rows().iter().map(row).collect::<Vec<_>>().join("\n")
}

fn error(client: &mut RawClient, sql: &str) -> String {
    client.simple(sql).expect("answers").error().unwrap_or_else(|| panic!("{sql}: no error"))
}

/// Route, reason and freshness of the previous statement.
fn last(client: &mut RawClient) -> (String, String, String) {
    let row = rows(client, "SHOW freshet.last");
    let cells: Vec<&str> = row.split('|').collect();
    (cells[0].into(), cells[1].into(), cells[2].into())
}

/// Answered from the snapshot.
fn pinned(client: &mut RawClient, sql: &str) -> String {
    let found = rows(client, sql);
    let (route, reason, freshness) = last(client);
    assert!(route == "local" || route == "hit", "{sql}: {route} {reason}");
    assert_eq!(freshness, "snapshot", "{sql}");
    found
}

#[test]
fn sessions_that_share_a_token_see_one_moment_while_others_write() {
    let world = World::start(|_| {});
    let (stop, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        // Each transaction changes every table.
        scope.spawn(|| {
            for n in 0.. {
                if stop.load(SeqCst) {
                    break;
                }
                let id = n % 500 + 1;
                world.write(&format!(
                    "BEGIN; UPDATE accounts SET balance = balance + 1 WHERE id = {id};
                     INSERT INTO parts VALUES ({}, 1) ON CONFLICT (id) DO UPDATE SET n = parts.n + 1;
                     DELETE FROM accounts WHERE id = {}; INSERT INTO log VALUES ({}); COMMIT",
                    n % 200,
                    500 - n % 100,
                    1_000 + n,
                ));
                written.fetch_add(1, SeqCst);
            }
        });
        for freshness in ["exact", "session"] {
            for _ in 0..5 {
                let mut first = world.connect("postgres");
                rows(&mut first, &format!("SET freshet.freshness = '{freshness}'"));
                rows(&mut first, "SET freshet.snapshot = 'latest'");
                let token = rows(&mut first, "SHOW freshet.snapshot");
                assert_eq!(token.len(), 32, "{token}");
                let seen = READS.map(|sql| pinned(&mut first, sql));
                let before = written.load(SeqCst);
                assert_eq!(seen[3].split('|').next(), Some(seen[4].as_str()));
                let mut second = world.connect("postgres");
                rows(&mut second, &format!("SELECT set_config('freshet.snapshot', '{token}', false)"));
                let limit = Instant::now() + Duration::from_millis(300);
                while Instant::now() < limit {
                    for (sql, expected) in READS.iter().zip(&seen) {
                        assert_eq!(pinned(&mut first, sql), *expected, "{sql}");
                        assert_eq!(pinned(&mut second, sql), *expected, "{sql}");
                    }
                }
                // In a block of its own, too, where now() would be another moment's.
                rows(&mut second, "BEGIN");
                assert_eq!(pinned(&mut second, RECENT), seen[3]);
                rows(&mut second, "COMMIT");
                rows(&mut second, "SET freshet.snapshot = off");
                // The second one from here has begun since.
                until("it is written", || written.load(SeqCst) > before + 1);
                assert_ne!(rows(&mut second, TOTAL), seen[0], "released");
                assert_eq!(pinned(&mut first, TOTAL), seen[0], "still pinned");
            }
        }
        stop.store(true, SeqCst);
    });
}

#[test]
fn a_session_s_own_writes_wait_for_its_release_and_the_setting_is_undone_with_its_transaction() {
    let world = World::start(|_| {});
    let mut client = world.connect("postgres");
    rows(&mut client, "SET freshet.snapshot = 'latest'");
    let before = pinned(&mut client, TOTAL);
    rows(&mut client, "UPDATE accounts SET balance = 0 WHERE id = 1");
    assert_eq!(pinned(&mut client, TOTAL), before);
    rows(&mut client, "BEGIN; UPDATE accounts SET balance = 0 WHERE id = 2");
    let inside = rows(&mut client, TOTAL);
    assert_eq!(last(&mut client), ("relay".into(), "transaction_wrote".into(), "own moment".into()));
    assert_ne!(inside, before);
    rows(&mut client, "COMMIT");
    assert_eq!(pinned(&mut client, TOTAL), before);
    rows(&mut client, "RESET freshet.snapshot");
    assert_eq!(rows(&mut client, "SHOW freshet.snapshot"), "off");
    assert_eq!(rows(&mut client, TOTAL), world.cluster.psql(&world.database, TOTAL));

    rows(&mut client, "BEGIN");
    rows(&mut client, "SET LOCAL freshet.snapshot = 'latest'");
    assert_eq!(rows(&mut client, "SHOW freshet.snapshot").len(), 32);
    rows(&mut client, "COMMIT");
    assert_eq!(rows(&mut client, "SHOW freshet.snapshot"), "off");
    rows(&mut client, "BEGIN");
    rows(&mut client, "SET freshet.snapshot = 'latest'");
    rows(&mut client, "ROLLBACK");
    assert_eq!(rows(&mut client, "SHOW freshet.snapshot"), "off");
    // In a string with others upstream takes the setting first; the snapshot is taken by the first read.
    rows(&mut client, "SELECT 2; SET freshet.snapshot = 'latest'");
    let seen = pinned(&mut client, TOTAL);
    world.write("UPDATE accounts SET balance = 7 WHERE id = 3");
    assert_eq!(pinned(&mut client, TOTAL), seen);
    rows(&mut client, "DISCARD ALL");
    assert_eq!(rows(&mut client, "SHOW freshet.snapshot"), "off");
}

#[test]
fn what_the_snapshot_lacks_is_relayed_or_refused() {
    let world = World::start(|_| {});
    let mut client = world.connect("postgres");
    rows(&mut client, "SET freshet.snapshot = 'latest'");
    let total = pinned(&mut client, TOTAL);
    world.write("CREATE TABLE later (id int PRIMARY KEY); INSERT INTO later VALUES (1)");
    world.write("ALTER TABLE log ADD COLUMN note text");
    world.write("CREATE OR REPLACE VIEW rich AS SELECT id, balance FROM accounts WHERE balance >= 1000");
    // A view is what it is now, a table what it was: as in a transaction of REPEATABLE READ.
    let limit = Instant::now() + Duration::from_secs(30);
    while rows(&mut client, OF_VIEW) != "0" || last(&mut client).2 != "snapshot" {
        assert!(Instant::now() < limit, "{:?}", last(&mut client));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(pinned(&mut client, TOTAL), total);
    rows(&mut client, "SELECT count(*) FROM log");
    let (route, _, freshness) = last(&mut client);
    assert_eq!((route.as_str(), freshness.as_str()), ("relay", "own moment"));
    rows(&mut client, "SELECT count(*) FROM later");
    assert_eq!(last(&mut client).2, "own moment");

    rows(&mut client, "SET freshet.snapshot_strict = on");
    assert_eq!(rows(&mut client, "SHOW freshet.snapshot_strict"), "on");
    for sql in ["SELECT count(*) FROM log", "SELECT count(*) FROM later", "SELECT random()", "COPY log TO STDOUT"] {
        let error = error(&mut client, sql);
        assert!(error.contains("C0A000") && error.contains("pinned snapshot"), "{sql}: {error}");
    }
    for sql in ["SHOW server_version", "SHOW application_name", ""] {
        assert_eq!(client.simple(sql).expect("answers").error(), None, "{sql}");
    }
    let refused = client.extended("SELECT count(*) FROM later", &[], 0).expect("answers").error();
    assert!(refused.is_some_and(|error| error.contains("C0A000")));
    // In pieces, behind something that upstream is still busy with.
    let unit = [query("SELECT pg_sleep(0.2) IS NULL"), query("SELECT count(*) FROM later")].concat();
    rows(&mut client, "SET freshet.snapshot_strict = off");
    client
        .send(&[query("SELECT pg_sleep(0.2) IS NULL"), query("SET freshet.snapshot_strict = on"), unit].concat())
        .expect("sent");
    let outcomes = [(); 4].map(|()| client.read_reply().expect("answers").error().is_some());
    assert_eq!(outcomes, [false, false, true, true]);
    assert_eq!(pinned(&mut client, TOTAL), total);
    // Writes and the like are not the snapshot's affair; a failed block is one for upstream, too.
    rows(&mut client, "INSERT INTO later VALUES (2)");
    rows(&mut client, "BEGIN");
    assert!(error(&mut client, "SELECT count(*) FROM later").contains("C0A000"));
    assert!(error(&mut client, "INSERT INTO later VALUES (3)").contains("C25P02"));
    rows(&mut client, "ROLLBACK");
    assert_eq!(world.cluster.psql(&world.database, "SELECT count(*) FROM later"), "2");
    rows(&mut client, "SET freshet.snapshot = off");
    assert_eq!(rows(&mut client, "SELECT count(*) FROM later"), "2");
}

fn query(sql: &str) -> Vec<u8> {
    freshet_tests::raw::frame(b'Q', &[sql.as_bytes(), b"\0"].concat())
}

#[test]
fn tokens_are_of_a_role_and_privileges_are_those_of_now() {
    let world = World::start(|_| {});
    world.write("GRANT SELECT ON accounts, parts TO guest, other_guest");
    let mut reader = world.connect("guest");
    rows(&mut reader, "SET freshet.snapshot = 'latest'");
    let token = rows(&mut reader, "SHOW freshet.snapshot");
    let limit = Instant::now() + Duration::from_secs(30);
    while rows(&mut reader, TOTAL).is_empty() || last(&mut reader).2 != "snapshot" {
        assert!(Instant::now() < limit, "{:?}", last(&mut reader));
    }
    let mut other = world.connect("other_guest");
    for wrong in [token.as_str(), "nonsense", "00000000000000000000000000000000"] {
        let error = error(&mut other, &format!("SET freshet.snapshot = '{wrong}'"));
        assert!(error.contains("C22023"), "{error}");
    }
    // A role taken on later is not the snapshot's.
    let mut admin = world.connect("postgres");
    rows(&mut admin, "SET freshet.snapshot = 'latest'");
    pinned(&mut admin, TOTAL);
    rows(&mut admin, "SET ROLE guest");
    rows(&mut admin, TOTAL);
    let (route, reason, _) = last(&mut admin);
    assert_eq!((route.as_str(), reason.contains("another role")), ("relay", true), "{reason}");

    for freshness in ["exact", "session"] {
        rows(&mut reader, &format!("SET freshet.freshness = '{freshness}'"));
        rows(&mut reader, TOTAL);
        world.write("REVOKE SELECT ON accounts FROM guest");
        if freshness == "session" {
            std::thread::sleep(Duration::from_secs(1));
        }
        assert!(error(&mut reader, TOTAL).contains("C42501"), "{freshness}");
        world.write("GRANT SELECT ON accounts TO guest");
    }
}

#[test]
fn snapshots_are_bounded_in_number_memory_and_time() {
    let world = World::start(|settings| {
        settings.freshness.snapshots_max = 2;
        settings.freshness.snapshot_bytes_max = 1_000_000;
    });
    let mut held: Vec<RawClient> = (0..2).map(|_| world.connect("postgres")).collect();
    for client in &mut held {
        rows(client, "SET freshet.snapshot = 'latest'");
    }
    let mut third = world.connect("postgres");
    assert!(error(&mut third, "SET freshet.snapshot = 'latest'").contains("C53400"));
    rows(&mut held[0], "SET freshet.snapshot = off");
    rows(&mut third, "SET freshet.snapshot = 'latest'");
    assert_eq!(world.freshet.status(&world.database, "snapshots_pinned"), "2");

    // 200,000 rows that only the snapshot holds are more than it may.
    let mut client = held.remove(0);
    drop((held, third));
    world.write("INSERT INTO accounts SELECT n, 1 FROM generate_series(1001, 201000) n");
    // Until the mirror has them, too.
    rows(&mut client, "SET freshet.snapshot = off");
    let limit = Instant::now() + Duration::from_secs(60);
    while rows(&mut client, TOTAL).is_empty() || last(&mut client).0 == "relay" {
        assert!(Instant::now() < limit, "{:?}", last(&mut client));
        std::thread::sleep(Duration::from_millis(50));
    }
    rows(&mut client, "SET freshet.snapshot = 'latest'");
    let total = pinned(&mut client, TOTAL);
    world.write("UPDATE accounts SET balance = balance + 1; UPDATE accounts SET balance = balance + 1");
    let limit = Instant::now() + Duration::from_secs(60);
    while rows(&mut client, "SHOW freshet.snapshot") != "expired" {
        assert!(Instant::now() < limit, "still pinned: {}", world.freshet.status(&world.database, "snapshot_bytes"));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_ne!(rows(&mut client, TOTAL), total);
    let (route, reason, freshness) = last(&mut client);
    assert_eq!((route.as_str(), freshness.as_str()), ("relay", "own moment"), "{reason}");
    assert_eq!(world.freshet.status(&world.database, "snapshots_pinned"), "0");
}

#[test]
fn a_snapshot_ends_with_its_time() {
    let world = World::start(|settings| settings.freshness.snapshot_age_max_ms = 1_500);
    let mut client = world.connect("postgres");
    rows(&mut client, "SET freshet.snapshot = 'latest'");
    let total = pinned(&mut client, TOTAL);
    world.write("UPDATE accounts SET balance = 1 WHERE id = 1");
    assert_eq!(rows(&mut client, TOTAL), total);
    std::thread::sleep(Duration::from_millis(2_000));
    assert_ne!(rows(&mut client, TOTAL), total);
    assert!(last(&mut client).1.contains("expired"), "{:?}", last(&mut client));
    rows(&mut client, "SET freshet.snapshot_strict = on");
    assert!(error(&mut client, TOTAL).contains("expired"));
    rows(&mut client, "SET freshet.snapshot = 'latest'");
    pinned(&mut client, TOTAL);
}
