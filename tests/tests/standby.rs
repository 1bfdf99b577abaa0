//! Mode `standby`: commits wait for freshet, so reads need no round trip and are exact all the same; where that is not so, or
//! no longer, they are as in mode exact.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use freshet_config::{FreshnessMode, TableChoice};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;

const WAIT: Duration = Duration::from_secs(60);

struct World {
    cluster: Cluster,
    database: String,
}

impl World {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(settings: &[&str]) -> Self {
        let cluster = Cluster::start(settings);
        let database = cluster.database();
        let world = Self { cluster, database };
        world.write(
            "CREATE TABLE registers (id int PRIMARY KEY, value bigint NOT NULL);
             INSERT INTO registers SELECT n, 0 FROM generate_series(1, 8) n;
             CREATE TABLE quiet (id int PRIMARY KEY, n int); INSERT INTO quiet VALUES (1, 1)",
        );
        world
    }

    fn freshet(&self) -> Freshet {
        let freshet = Freshet::start(&self.cluster.url(&self.database), |settings| {
            settings.freshness.mode = FreshnessMode::Standby;
            settings.mirror.tables = TableChoice::List(vec!["registers".into(), "quiet".into()]);
        });
        freshet.wait_until_mirrored(&self.database, &["public.registers", "public.quiet"]);
        freshet
    }

    fn write(&self, sql: &str) {
        self.cluster.psql(&self.database, sql);
    }

    /// Acknowledged by freshet where it is named already.
    fn configure(&self, names: &str) {
        self.cluster.psql("postgres", &format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
        self.cluster.reload();
    }

    fn wait_for(&self, freshet: &Freshet, expected: &str) -> String {
        let limit = Instant::now() + WAIT;
        loop {
            let state = freshet.status(&self.database, "standby");
            if state.starts_with(expected) {
                return state;
            }
            assert!(Instant::now() < limit, "it is {state:?}, not {expected:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn direct(&self) -> RawClient {
        let address = self.cluster.address();
        RawClient::connect(address, "postgres", &self.database).expect("connects")
    }

    fn through(&self, freshet: &Freshet) -> RawClient {
        RawClient::connect(freshet.address(), "postgres", &self.database).expect("connects")
    }
}

fn number(client: &mut RawClient, sql: &str) -> i64 {
    let reply = client.simple(sql).expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
    let rows = reply.rows();
    String::from_utf8(rows[0][0].clone().expect("a value")).expect("text").parse().expect("a number")
}

/// Route and wait of the previous statement.
fn last(client: &mut RawClient) -> (String, i64) {
    let rows = client.simple("SHOW freshet.last").expect("answers").rows();
    let text = |at: usize| String::from_utf8_lossy(rows[0][at].as_deref().unwrap_or_default()).into_owned();
    (text(0), text(4).parse().expect("a number"))
}

/// Until it is answered here.
fn settle(client: &mut RawClient, sql: &str) {
    let limit = Instant::now() + WAIT;
    while number(client, sql) < 0 || last(client).0 == "relay" {
        assert!(Instant::now() < limit, "{sql}: {:?}", client.last());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn reads_are_exact_without_a_round_trip_while_commits_wait() {
    let world = World::start();
    let freshet = world.freshet();
    let state = world.wait_for(&freshet, "as exact: synchronous_standby_names has no");
    assert!(state.contains("FIRST 1 (freshet)"), "the remedy is told: {state}");
    world.configure("FIRST 1 (freshet)");
    world.wait_for(&freshet, "synchronous");
    let mut reader = world.through(&freshet);
    settle(&mut reader, "SELECT n FROM quiet");
    for id in 1..=4 {
        settle(&mut reader, &format!("SELECT value FROM registers WHERE id = {id}"));
    }
    let (stop, acknowledged) = (AtomicBool::new(false), [const { AtomicI64::new(0) }; 4]);
    let (reads, at_once, local) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        // Each register has one writer: two past freshet, two through it.
        for (at, acknowledged) in acknowledged.iter().enumerate() {
            let mut writer = if at % 2 == 0 { world.direct() } else { world.through(&freshet) };
            let stop = &stop;
            scope.spawn(move || {
                for value in 1.. {
                    if stop.load(SeqCst) {
                        break;
                    }
                    let sql = format!("UPDATE registers SET value = {value} WHERE id = {}", at + 1);
                    assert_eq!(writer.simple(&sql).expect("answers").error(), None);
                    acknowledged.store(value, SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
        }
        for reader in 0..2_usize {
            let (mut through, mut direct) = (world.through(&freshet), world.direct());
            let (stop, acknowledged, reads, at_once, local) = (&stop, &acknowledged, &reads, &at_once, &local);
            scope.spawn(move || {
                let mut n = reader;
                while !stop.load(SeqCst) {
                    n += 1;
                    let at = n % 4;
                    let sql = format!("SELECT value FROM registers WHERE id = {}", at + 1);
                    let before = acknowledged[at].load(SeqCst);
                    let value = number(&mut through, &sql);
                    let (route, wait) = last(&mut through);
                    assert!(value >= before, "stale by {route} after {wait} us: {value} < {before}");
                    // What was shown here is never newer than what upstream shows next.
                    let upstream = number(&mut direct, &sql);
                    assert!(upstream >= value, "shown too early by {route} after {wait} us: {upstream} < {value}");
                    number(&mut through, "SELECT n FROM quiet");
                    let (route_of_quiet, wait_of_quiet) = last(&mut through);
                    reads.fetch_add(2, SeqCst);
                    for (route, wait) in [(route, wait), (route_of_quiet, wait_of_quiet)] {
                        local.fetch_add(u64::from(route != "relay"), SeqCst);
                        at_once.fetch_add(u64::from(route != "relay" && wait == 0), SeqCst);
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_secs(5));
        stop.store(true, SeqCst);
    });
    let [reads, local, at_once] = [reads, local, at_once].map(|count| count.load(SeqCst));
    println!("{reads} reads, {local} answered here, {at_once} without a round trip");
    assert!(reads > 200 && local * 10 > reads * 9, "{local} of {reads} answered here");
    assert!(at_once * 2 > local, "{at_once} of {local} needed no round trip");
    world.configure("");
    world.wait_for(&freshet, "as exact");
    settle(&mut reader, "SELECT n FROM quiet");
    world.write("UPDATE quiet SET n = 2");
    assert_eq!(number(&mut reader, "SELECT n FROM quiet"), 2);
    assert!(last(&mut reader).1 > 0, "by a barrier again");
}

#[test]
fn a_commit_that_does_not_wait_ends_the_mode() {
    let world = World::start();
    let freshet = world.freshet();
    world.configure("FIRST 1 (freshet)");
    world.wait_for(&freshet, "synchronous");
    // By a default first, which upstream tells.
    world.write("ALTER ROLE login_md5 SET synchronous_commit = off");
    let state = world.wait_for(&freshet, "as exact: synchronous_commit");
    assert!(state.contains("role login_md5"), "{state}");
    world.write("ALTER ROLE login_md5 RESET ALL");
    world.wait_for(&freshet, "synchronous");
    // Then by a session's own setting, which shows in its commits only.
    let mut writer = world.direct();
    writer.simple("SET synchronous_commit = local").expect("answers");
    let limit = Instant::now() + WAIT;
    while freshet.status(&world.database, "standby") == "synchronous" {
        assert!(Instant::now() < limit, "not noticed");
        writer.simple("UPDATE registers SET value = value + 1 WHERE id = 1").expect("answers");
    }
    let state = world.wait_for(&freshet, "as exact: a commit did not wait");
    assert!(state.contains("local or off"), "{state}");
    // Exact as ever.
    let mut reader = world.through(&freshet);
    let sql = "SELECT value FROM registers WHERE id = 1";
    settle(&mut reader, sql);
    for _ in 0..100 {
        writer.simple("UPDATE registers SET value = value + 1 WHERE id = 1").expect("answers");
        assert_eq!(number(&mut reader, sql), number(&mut writer, sql));
    }
}

/// With the writer's session behind freshet nobody has to find out: it was shown the state before its own commit.
#[test]
fn a_session_whose_commits_do_not_wait_sees_them() {
    let world = World::start();
    let freshet = world.freshet();
    world.configure("FIRST 1 (freshet)");
    world.wait_for(&freshet, "synchronous");
    let (mut writer, mut reader) = (world.through(&freshet), world.through(&freshet));
    let sql = "SELECT n FROM quiet";
    settle(&mut writer, sql);
    settle(&mut reader, sql);
    // In the session, in one transaction, and where nobody knows.
    for (value, write) in [
        (2, "SET synchronous_commit = off; UPDATE quiet SET n = 2"),
        (3, "UPDATE quiet SET n = 3"),
        (4, "RESET synchronous_commit; BEGIN; SET LOCAL synchronous_commit = local; UPDATE quiet SET n = 4; COMMIT"),
        (5, "DO $$ BEGIN PERFORM set_config('synchronous_commit', 'off', true); UPDATE quiet SET n = 5; END $$"),
    ] {
        assert_eq!(writer.simple(write).expect("answers").error(), None, "{write}");
        assert_eq!(number(&mut writer, sql), value, "{write}");
        assert_eq!(number(&mut reader, sql), value, "{write}, read by another session");
    }
    world.configure("");
}

#[test]
fn a_commit_that_was_acknowledged_unseen_is_no_escape() {
    let world = World::start();
    world.write("CREATE TABLE unmirrored (id int)");
    let freshet = world.freshet();
    world.configure("FIRST 1 (freshet)");
    world.wait_for(&freshet, "synchronous");
    // The second comes too soon after the first to be looked at, and what follows is nothing that is mirrored.
    for _ in 0..2 {
        world.write("UPDATE quiet SET n = n + 1");
        std::thread::sleep(Duration::from_millis(100));
        world.write("UPDATE quiet SET n = n + 1");
        std::thread::sleep(Duration::from_millis(700));
        world.write("INSERT INTO unmirrored VALUES (1)");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(freshet.status(&world.database, "standby"), "synchronous");
    }
    world.configure("");
}

#[test]
fn writers_do_not_wait_for_a_freshet_that_cannot_mirror() {
    let world = World::start_with(&["max_replication_slots=1"]);
    world.write("SELECT pg_create_physical_replication_slot('taken')");
    world.configure("FIRST 1 (freshet)");
    let freshet = Freshet::start(&world.cluster.url(&world.database), |settings| {
        settings.freshness.mode = FreshnessMode::Standby;
    });
    let mut writer = world.through(&freshet);
    let begun = Instant::now();
    let reply = writer.simple("UPDATE registers SET value = 5 WHERE id = 1").expect("answers");
    assert_eq!(reply.error(), None);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(!freshet.status(&world.database, "mirror").starts_with("Running"), "it has no slot");
    world.write("UPDATE registers SET value = 6 WHERE id = 1");
    world.configure("");
}

#[test]
fn writers_that_wait_are_freed_by_release_and_by_freshet_s_return() {
    let world = World::start();
    let freshet = world.freshet();
    world.configure("FIRST 1 (freshet)");
    world.wait_for(&freshet, "synchronous");
    let release = |seconds: u64| {
        let mut settings = freshet_config::Settings::default();
        settings.upstream.url = world.cluster.url(&world.database);
        settings.freshness.max_lag_ms = 100;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let released = freshet::check::release(&settings);
            tokio::time::timeout(Duration::from_secs(seconds), released).await
        })
    };
    let report = release(20).expect("at once").expect("upstream answers");
    assert!(!report.is_fine && report.text.contains("is connected"), "{}", report.text);
    drop(freshet);
    let stuck = |value: i64| {
        let mut writer = world.direct();
        std::thread::spawn(move || {
            let sql = format!("UPDATE registers SET value = {value} WHERE id = 1");
            assert_eq!(writer.simple(&sql).expect("answers").error(), None);
        })
    };
    let writer = stuck(11);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!writer.is_finished(), "nobody acknowledges");
    assert!(release(3).is_err(), "goes on until it is ended");
    writer.join().expect("freed");

    let writer = stuck(12);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!writer.is_finished(), "nobody acknowledges");
    let freshet = world.freshet();
    writer.join().expect("freed");
    world.wait_for(&freshet, "synchronous");
    let mut reader = world.through(&freshet);
    settle(&mut reader, "SELECT value FROM registers WHERE id = 1");
    assert_eq!(number(&mut reader, "SELECT value FROM registers WHERE id = 1"), 12);
    world.configure("");
}

/// As of a freshet that was killed while its slot was made.
fn walsender_left_behind(world: &World) -> TcpStream {
    let mut startup = vec![0, 3, 0, 0];
    let parameters = [
        "user",
        "postgres",
        "database",
        &*world.database,
        "replication",
        "database",
        "application_name",
        "freshet",
        "",
    ];
    parameters.iter().for_each(|text| startup.extend_from_slice(&[text.as_bytes(), b"\0"].concat()));
    let length = (startup.len() as u32 + 4).to_be_bytes();
    let mut line = TcpStream::connect(("127.0.0.1", world.cluster.port())).expect("connects");
    line.write_all(&[&length[..], &startup].concat()).expect("sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"Z\0\0\0\x05I") {
        let mut bytes = [0; 1024];
        let read = line.read(&mut bytes).expect("answers");
        assert!(read > 0, "{answer:?}");
        answer.extend_from_slice(&bytes[..read]);
    }
    line
}

/// It sends nothing that a standby would have to receive.
#[test]
fn a_refresh_of_a_materialized_view_counts_at_once() {
    let world = World::start();
    world.write("CREATE MATERIALIZED VIEW sums AS SELECT sum(value) AS total FROM registers");
    world.configure("FIRST 1 (freshet)");
    let freshet = Freshet::start(&world.cluster.url(&world.database), |settings| {
        settings.freshness.mode = FreshnessMode::Standby;
    });
    world.wait_for(&freshet, "synchronous");
    let mut client = world.through(&freshet);
    let sql = "SELECT total FROM sums";
    for round in 1..=20 {
        world.write(&format!("UPDATE registers SET value = {round} WHERE id = 1; REFRESH MATERIALIZED VIEW sums"));
        // Whatever is kept by now is of the round before.
        assert_eq!(number(&mut client, sql), round);
        let limit = Instant::now() + WAIT;
        while client.last().expect("answers").0 != "hit" {
            assert_eq!(number(&mut client, sql), round);
            assert!(Instant::now() < limit, "{:?}", client.last());
        }
    }
    world.configure("");
}

#[test]
fn a_walsender_that_is_only_starting_is_no_other_standby() {
    let world = World::start();
    let _left = walsender_left_behind(&world);
    let names = "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'freshet' AND state = 'startup'";
    assert_eq!(world.cluster.psql(&world.database, names), "1");
    world.configure("FIRST 1 (freshet)");
    // Else it is not mirrored, and no commit ends.
    let freshet = world.freshet();
    world.write("UPDATE registers SET value = 7 WHERE id = 1");
    let mut client = RawClient::connect(freshet.address(), "postgres", &world.database).expect("connects");
    let reply = client.simple("SELECT value FROM registers WHERE id = 1").expect("answers");
    assert_eq!(reply.rows()[0][0].as_deref(), Some(&b"7"[..]));
    world.configure("");
}
