//! Materialized views: upstream answers once, its reply is kept, and every REFRESH, ALTER, DROP and GRANT counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, until};

const WAIT: Duration = Duration::from_secs(30);

const SETUP: &str = "
    CREATE TABLE sales (id int PRIMARY KEY, day int, amount numeric(10, 2), place circle);
    INSERT INTO sales SELECT n, n % 5, n * 1.5, circle(point(0, 0), n) FROM generate_series(1, 60) n;
    CREATE TABLE fixed (id int PRIMARY KEY, place circle); INSERT INTO fixed VALUES (3, '<(0,0),3>');
    CREATE MATERIALIZED VIEW daily AS SELECT day, count(*) AS sales, sum(amount) AS total FROM sales GROUP BY day;
    CREATE UNIQUE INDEX ON daily (day);
    CREATE MATERIALIZED VIEW best AS SELECT max(total) AS total FROM daily;
    CREATE VIEW seen AS SELECT d.day, s.id FROM daily d JOIN sales s ON s.day = d.day AND s.id < 9;
    CREATE SCHEMA other; GRANT USAGE, CREATE ON SCHEMA other TO guest; GRANT CREATE ON SCHEMA public TO guest;
    GRANT SELECT ON seen, daily TO guest; GRANT SELECT (total) ON best TO guest";

const QUERIES: &[&str] = &[
    "SELECT * FROM daily ORDER BY day",
    "SELECT count(*), sum(total) FROM public.daily WHERE day > 0",
    "SELECT total FROM best",
    "SELECT s.id, radius(s.place), d.total FROM sales s JOIN daily AS d USING (day) WHERE s.id < 4 ORDER BY 1",
    "SELECT day, id FROM seen ORDER BY day, id",
    "WITH x AS (SELECT day FROM daily) SELECT (SELECT total FROM best), array_agg(day ORDER BY day) FROM x",
    // Reads none.
    "SELECT count(*) FROM sales",
];

/// Each is compared at once, by the superuser and by guest.
const CHANGES: &[&str] = &[
    "INSERT INTO sales VALUES (100, 1, 7, '<(1,1),1>')",
    "REFRESH MATERIALIZED VIEW daily",
    "REFRESH MATERIALIZED VIEW best",
    "DELETE FROM sales WHERE day = 4; REFRESH MATERIALIZED VIEW CONCURRENTLY daily",
    // Changes nothing.
    "REFRESH MATERIALIZED VIEW CONCURRENTLY daily",
    "BEGIN; INSERT INTO sales VALUES (101, 3, 9); SAVEPOINT a; REFRESH MATERIALIZED VIEW daily; ROLLBACK TO a;
     UPDATE sales SET amount = 8 WHERE id = 101; COMMIT",
    "BEGIN; INSERT INTO sales VALUES (102, 3, 9); SAVEPOINT a; REFRESH MATERIALIZED VIEW daily; RELEASE a; COMMIT",
    "REFRESH MATERIALIZED VIEW daily WITH NO DATA",
    "REFRESH MATERIALIZED VIEW best WITH NO DATA",
    "REFRESH MATERIALIZED VIEW daily",
    "REFRESH MATERIALIZED VIEW best",
    "VACUUM FULL daily",
    "CREATE INDEX more ON daily (total)",
    "ALTER MATERIALIZED VIEW daily CLUSTER ON more; CLUSTER daily",
    "ALTER MATERIALIZED VIEW daily RENAME COLUMN sales TO number",
    "ALTER MATERIALIZED VIEW daily RENAME TO old_daily",
    "CREATE VIEW daily AS SELECT 1 AS day, 2 AS number, 3.5 AS total",
    "DROP VIEW daily; CREATE TABLE daily (day int PRIMARY KEY, number int, total numeric); INSERT INTO daily VALUES (1, 2, 3)",
    "DROP TABLE daily; ALTER MATERIALIZED VIEW old_daily RENAME TO daily",
    "BEGIN; CREATE MATERIALIZED VIEW next AS SELECT day, count(*) AS number, sum(amount) + 1 AS total FROM sales GROUP BY day;
     ALTER MATERIALIZED VIEW daily RENAME TO before; ALTER MATERIALIZED VIEW next RENAME TO daily; GRANT SELECT ON daily TO guest; COMMIT",
    "DROP MATERIALIZED VIEW before CASCADE",
    "CREATE MATERIALIZED VIEW best AS SELECT min(total) AS total FROM daily; CREATE VIEW seen AS SELECT day, 5 AS id FROM daily;
     GRANT SELECT ON best, seen TO guest",
    "REVOKE SELECT ON daily FROM guest",
    "GRANT SELECT (day, total) ON daily TO guest",
    "REVOKE SELECT (total) ON daily FROM guest",
    "GRANT SELECT ON daily TO PUBLIC",
    "REVOKE SELECT ON daily FROM PUBLIC",
    "ALTER MATERIALIZED VIEW daily OWNER TO guest",
    "ALTER MATERIALIZED VIEW daily OWNER TO postgres",
    "ALTER MATERIALIZED VIEW best SET SCHEMA other",
    "CREATE MATERIALIZED VIEW best AS SELECT 7 AS total",
    "DROP MATERIALIZED VIEW best; ALTER MATERIALIZED VIEW other.best SET SCHEMA public",
    "REVOKE USAGE ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO PUBLIC",
    "REFRESH MATERIALIZED VIEW daily",
];

/// A world, and a session on either side of freshet.
struct Stand {
    world: World,
    both: Both,
}

impl Stand {
    fn start(mode: FreshnessMode) -> Self {
        let world = World::start_with(mode, SETUP, |settings| {
            // On a machine under load upstream may take its time.
            settings.cache.shared_wait_ms = 60_000;
        });
        let both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, QUERIES);
        Self { world, both }
    }

    fn past(&self, sql: &str) {
        self.world.past(sql);
    }
}

/// Compares the frames; the route.
fn routed(both: &mut Both, after: &str, sql: &str) -> String {
    both.compare(after, sql);
    both.through.last().expect("answers").0
}

/// Repeats a statement until its reply is a kept one, or upstream's error; the routes before.
fn until_hit(both: &mut Both, after: &str, sql: &str) -> Vec<String> {
    let limit = Instant::now() + WAIT;
    let mut routes = Vec::new();
    loop {
        let route = routed(both, after, sql);
        if route == "hit" || both.direct.simple(sql).expect("answers").error().is_some() {
            return routes;
        }
        routes.push(route);
        assert!(Instant::now() < limit, "after {after}: {sql}: {:?} {routes:?}", both.through.last());
        // Longer than what lies between two captures of one statement.
        std::thread::sleep(Duration::from_millis(25));
    }
}

fn follow(mode: FreshnessMode) {
    let mut stand = Stand::start(mode);
    let mut guest = Both::open(&stand.world.freshet, stand.world.cluster, "guest", &stand.world.database, QUERIES);
    // In session mode changes past freshet take a moment; through it they count at once.
    let mut writer = Both::open(&stand.world.freshet, stand.world.cluster, "postgres", &stand.world.database, QUERIES);
    for sql in &QUERIES[..QUERIES.len() - 1] {
        let before = until_hit(&mut stand.both, "the start", sql);
        assert!(before.iter().any(|route| route == "capture"), "{sql}: {before:?}");
        assert_eq!(routed(&mut stand.both, "the start", sql), "hit", "{sql}");
    }
    for change in CHANGES {
        if mode == FreshnessMode::Exact {
            stand.past(change);
        } else {
            // VACUUM and the like must be alone in their query string.
            let parts = if change.contains("BEGIN") { vec![*change] } else { change.split(';').collect::<Vec<_>>() };
            for part in parts {
                assert_eq!(writer.through.simple(part).expect("answers").error(), None, "{part}");
            }
        }
        stand.both.compare_all(change);
        guest.compare_all(change);
        for sql in QUERIES {
            until_hit(&mut stand.both, change, sql);
            until_hit(&mut guest, change, sql);
        }
    }
    assert_eq!(stand.world.freshet.status(&stand.world.database, "wrong_answers"), "0");
}

#[test]
fn every_change_of_a_materialized_view_counts_at_once() {
    follow(FreshnessMode::Exact);
}

#[test]
fn in_session_mode_changes_through_freshet_count_at_once() {
    follow(FreshnessMode::Session);
}

#[test]
fn an_unpopulated_view_is_an_error_each_time_and_none_is_kept() {
    let mut stand = Stand::start(FreshnessMode::Exact);
    let sql = QUERIES[0];
    until_hit(&mut stand.both, "the start", sql);
    stand.past("REFRESH MATERIALIZED VIEW daily WITH NO DATA");
    for _ in 0..5 {
        assert_eq!(routed(&mut stand.both, "WITH NO DATA", sql), "relay");
        let error = stand.both.through.simple(sql).expect("answers").error().expect("an error");
        assert!(error.contains("55000"), "{error}");
        std::thread::sleep(Duration::from_millis(25));
    }
    stand.past("REFRESH MATERIALIZED VIEW daily");
    let before = until_hit(&mut stand.both, "REFRESH", sql);
    assert!(before.iter().any(|route| route == "capture"), "{before:?}");
}

/// What does not read the view keeps its replies, and what was compared once is not compared again.
#[test]
fn a_refresh_is_no_new_catalog() {
    let mut stand = Stand::start(FreshnessMode::Exact);
    let (of_view, of_another, of_table, computed) =
        (QUERIES[0], QUERIES[2], "SELECT radius(place) FROM fixed WHERE id = 3", QUERIES[QUERIES.len() - 1]);
    for sql in [of_view, of_another, of_table, computed] {
        until_hit(&mut stand.both, "the start", sql);
    }
    let version = stand.world.freshet.status(&stand.world.database, "catalog_version");
    for round in 0..5 {
        stand.past(&format!("INSERT INTO sales VALUES ({}, 2, 1)", 200 + round));
        let how = ["", "CONCURRENTLY"][round % 2];
        stand.past(&format!("REFRESH MATERIALIZED VIEW {how} daily"));
        let before = until_hit(&mut stand.both, "REFRESH", of_view);
        assert!(before.iter().any(|route| route == "capture"), "{before:?}");
        for sql in [of_another, of_table] {
            assert_eq!(routed(&mut stand.both, "REFRESH", sql), "hit", "{sql}");
        }
        let before = until_hit(&mut stand.both, "an INSERT", computed);
        assert!(before.iter().all(|route| route == "local"), "{before:?}");
    }
    assert_eq!(stand.world.freshet.status(&stand.world.database, "catalog_version"), version);
    stand.past("ALTER MATERIALIZED VIEW best RENAME TO top");
    let _ = routed(&mut stand.both, "a change of what it means", of_another);
    // It does not concern the table: its reply need not wait for the catalog to be read again.
    until_hit(&mut stand.both, "a change of what it means", of_table);
    until("a new version of the catalog", || {
        stand.world.freshet.status(&stand.world.database, "catalog_version") != version
    });
}

/// While another refreshes as fast as it can, every reply shows what was acknowledged before it was asked for.
#[test]
fn no_refresh_is_missed_under_load() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let mut stand = Stand::start(mode);
        stand.past(
            "CREATE MATERIALIZED VIEW newest AS SELECT max(id) AS id FROM sales; CREATE UNIQUE INDEX ON newest (id)",
        );
        let sql = "SELECT id FROM newest";
        until_hit(&mut stand.both, "the start", sql);
        let address = match mode {
            FreshnessMode::Exact => stand.world.cluster.address(),
            FreshnessMode::Session | FreshnessMode::Standby => stand.world.freshet.address(),
        };
        let mut writer = RawClient::connect(address, "postgres", &stand.world.database).expect("connects");
        let (acknowledged, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (noted, stopped) = (Arc::clone(&acknowledged), Arc::clone(&stop));
        let writing = std::thread::spawn(move || {
            let mut n = 1_000;
            while !stopped.load(SeqCst) {
                n += 1;
                let how = if n % 2 == 0 { "CONCURRENTLY" } else { "" };
                for part in
                    [format!("INSERT INTO sales VALUES ({n})"), format!("REFRESH MATERIALIZED VIEW {how} newest")]
                {
                    assert_eq!(writer.simple(&part).expect("answers").error(), None, "{part}");
                }
                noted.store(n, SeqCst);
                std::thread::sleep(Duration::from_millis(n * 37 % 230));
            }
        });
        let (started, limit) = (Instant::now(), Duration::from_secs(5));
        let (mut captured, mut hits, mut seen) = (0, 0, 0);
        // On a machine under load it takes longer until enough has been seen.
        while started.elapsed() < limit || captured.min(hits) <= 5 && started.elapsed() < WAIT {
            let floor = acknowledged.load(SeqCst);
            let reply = stand.both.through.simple(sql).expect("answers");
            let cell = reply.rows()[0][0].clone().expect("a number");
            let value = String::from_utf8(cell).expect("text").parse::<u64>().expect("a number");
            assert!(value >= floor.max(seen), "{mode:?}: {value} after {floor} was acknowledged and {seen} seen");
            seen = value;
            match stand.both.through.last().expect("answers").0.as_str() {
                "capture" => captured += 1,
                "hit" => hits += 1,
                _ => {}
            }
        }
        stop.store(true, SeqCst);
        writing.join().expect("no panic");
        println!("{mode:?}: {captured} captured, {hits} hits, {} refreshed", seen - 1_000);
        assert!(captured > 5 && hits > 5, "{mode:?}: {captured} captured, {hits} hits: nothing was tested");
    }
}

#[test]
fn in_session_mode_a_refresh_past_freshet_counts_within_a_second() {
    let mut stand = Stand::start(FreshnessMode::Session);
    let sql = QUERIES[1];
    until_hit(&mut stand.both, "the start", sql);
    for round in 0..4 {
        stand.past(&format!("INSERT INTO sales VALUES ({}, 3, 1000)", 300 + round));
        stand.past(&format!("REFRESH MATERIALIZED VIEW {} daily", ["", "CONCURRENTLY"][round % 2]));
        let expected = stand.both.direct.simple(sql).expect("answers");
        let since = Instant::now();
        while stand.both.through.simple(sql).expect("answers") != expected {
            assert!(since.elapsed() < Duration::from_secs(1), "{:?}", stand.both.through.last());
            std::thread::sleep(Duration::from_millis(2));
        }
        until_hit(&mut stand.both, "REFRESH", sql);
    }
}

#[test]
fn the_operator_is_told() {
    let mut stand = Stand::start(FreshnessMode::Exact);
    for sql in [QUERIES[0], QUERIES[4]] {
        until_hit(&mut stand.both, "the start", sql);
    }
    let rows = stand.both.through.simple("SELECT name, state FROM freshet.tables").expect("answers").rows();
    let is_told = |name: &[u8], state: &[u8]| {
        rows.iter().any(|row| row[0].as_deref() == Some(name) && row[1].as_deref() == Some(state))
    };
    assert!(is_told(b"public.daily", b"tracked") && is_told(b"public.sales", b"mirrored"), "{rows:?}");
    let mut settings = freshet_config::Settings::default();
    settings.upstream.url = stand.world.cluster.url(&stand.world.database);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for (sql, route) in [
        (QUERIES[0], "route: capture"),
        (QUERIES[4], "route: capture"),
        ("SELECT * FROM daily TABLESAMPLE system (10)", "route: relay"),
    ] {
        let report = runtime.block_on(freshet::check::explain(&settings, sql)).expect("upstream answers").text;
        assert!(report.starts_with(route), "{sql}: {report}");
    }
}
