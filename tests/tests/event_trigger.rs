//! `mirror.event_trigger`: a table that loses its identity leaves the publication with the same statement, and in session mode
//! changes made past freshet count as soon as they have arrived.

use std::time::{Duration, Instant};

use freshet_config::{FreshnessMode, TableChoice};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;

const TABLES: usize = 6;
const TRIALS: usize = 11;
/// Without the trigger a change is noticed at the next look at the catalog, 200 ms later on average.
const MEDIAN_MAX: Duration = Duration::from_millis(100);

#[test]
fn ddl_past_freshet_counts_at_once_and_harms_no_write() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    let direct = |sql: &str| cluster.psql(&database, sql);
    direct(
        "CREATE ROLE joe LOGIN; CREATE TABLE seen (id int PRIMARY KEY, n int); INSERT INTO seen VALUES (1, 1); GRANT SELECT ON seen TO joe",
    );
    for table in 0..TABLES {
        direct(&format!(
            "CREATE TABLE t{table} (id int PRIMARY KEY, n int); INSERT INTO t{table} VALUES (1, 1), (2, 2)"
        ));
    }
    let names: Vec<String> =
        (0..TABLES).map(|table| format!("public.t{table}")).chain(["public.seen".into()]).collect();
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.freshness.mode = FreshnessMode::Session;
        settings.mirror.tables = TableChoice::List(names.clone());
        settings.mirror.event_trigger = true;
    });
    freshet.wait_until_mirrored(&database, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let publications = "SELECT count(*) FROM pg_publication_rel";
    assert_eq!(direct(publications), (TABLES + 1).to_string());

    // One statement after the other, in one session: nothing could come between.
    let mut writer = RawClient::connect(cluster.address(), "postgres", &database).expect("connects");
    let mut run = |sql: &str| {
        let reply = writer.simple(sql).expect("answers");
        assert_eq!(reply.error(), None, "{sql}");
    };
    for table in 0..TABLES {
        match table % 3 {
            0 => run(&format!("ALTER TABLE t{table} DROP CONSTRAINT t{table}_pkey")),
            1 => run(&format!("ALTER TABLE t{table} REPLICA IDENTITY NOTHING")),
            _ => run(&format!("ALTER TABLE t{table} DROP COLUMN id")),
        }
        run(&format!("UPDATE t{table} SET n = n + 1"));
        run(&format!("DELETE FROM t{table} WHERE n = 2"));
    }
    assert_eq!(direct(publications), "1");
    let mut through = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    for table in 0..TABLES {
        let rows = through.simple(&format!("SELECT sum(n) FROM t{table}")).expect("answers").rows();
        assert_eq!(rows[0][0].as_deref(), Some(b"3".as_slice()), "t{table}");
    }

    let mut joe = RawClient::connect(freshet.address(), "joe", &database).expect("connects");
    let mut waits = Vec::new();
    for _ in 0..TRIALS {
        let limit = Instant::now() + Duration::from_secs(30);
        while joe.simple("SELECT n FROM seen").expect("answers").error().is_some()
            || joe.last().expect("answers").0 == "relay"
        {
            assert!(Instant::now() < limit, "not answered here: {:?}", joe.last());
            std::thread::sleep(Duration::from_millis(5));
        }
        run("REVOKE SELECT ON seen FROM joe");
        let began = Instant::now();
        while joe.simple("SELECT n FROM seen").expect("answers").error().is_none() {
            assert!(began.elapsed() < Duration::from_secs(5), "still allowed");
        }
        waits.push(began.elapsed());
        run("GRANT SELECT ON seen TO joe");
    }
    waits.sort();
    println!("a revoked privilege was in force after {:?} (median), {:?} (most)", waits[TRIALS / 2], waits[TRIALS - 1]);
    assert!(waits[TRIALS / 2] < MEDIAN_MAX, "{waits:?}");
    assert_eq!(direct("SELECT count(*) FROM pg_event_trigger"), "1");
    let until = |expected: &str| {
        let limit = Instant::now() + Duration::from_secs(30);
        while freshet.status(&database, "event_trigger") != expected {
            assert!(Instant::now() < limit, "it is not {expected}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    until("on");
    let name = direct("SELECT evtname FROM pg_event_trigger");
    for (change, state) in [("DISABLE", "disabled"), ("ENABLE ALWAYS", "on")] {
        direct(&format!("ALTER EVENT TRIGGER {name} {change}"));
        until(state);
    }
    direct(&format!("DROP EVENT TRIGGER {name}"));
    until("missing");
    drop((through, joe));
    drop(freshet);
    let left = "SELECT (SELECT count(*) FROM pg_event_trigger) + (SELECT count(*) FROM pg_publication)
                     + (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'freshet%')";
    assert_eq!(direct(left), "0");
}

/// The trigger's own command is DDL, too: the table that it had taken out by then was none of the publication's any more, and the
/// statement failed.
#[test]
fn several_tables_lose_their_identity_with_one_statement() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    let direct = |sql: &str| cluster.psql(&database, sql);
    direct(
        "CREATE TABLE root (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF root FOR VALUES FROM (0) TO (10);
         CREATE TABLE high PARTITION OF root FOR VALUES FROM (10) TO (20);
         INSERT INTO root VALUES (1, 1), (11, 2)",
    );
    let names = ["public.low", "public.high"];
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.freshness.mode = FreshnessMode::Session;
        settings.mirror.tables = TableChoice::List(names.map(String::from).to_vec());
        settings.mirror.event_trigger = true;
    });
    freshet.wait_until_mirrored(&database, &names);
    assert_eq!(direct("SELECT count(*) FROM pg_publication_rel"), "2");
    let mut writer = RawClient::connect(cluster.address(), "postgres", &database).expect("connects");
    for sql in
        ["ALTER TABLE root DROP CONSTRAINT root_pkey", "UPDATE root SET n = n + 1", "DELETE FROM root WHERE id = 11"]
    {
        assert_eq!(writer.simple(sql).expect("answers").error(), None, "{sql}");
    }
    assert_eq!(direct("SELECT count(*) FROM pg_publication_rel"), "0");
}
