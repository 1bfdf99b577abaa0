//! Cached replies and local answers belong to a role, a search path and settings, and to an upstream that lives.

use std::time::{Duration, Instant};

use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::{RawClient, RawReply};

const WAIT: Duration = Duration::from_secs(20);

fn ask(client: &mut RawClient, sql: &str) -> RawReply {
    client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn value(reply: &RawReply) -> String {
    let row = reply.rows().into_iter().next().unwrap_or_else(|| panic!("no row: {:?}", reply.error()));
    String::from_utf8(row[0].clone().expect("no NULL")).expect("text")
}

/// Repeats until the statement is answered by `route`.
fn until(client: &mut RawClient, sql: &str, route: &str) -> RawReply {
    let limit = Instant::now() + WAIT;
    loop {
        let reply = ask(client, sql);
        let last = client.last().expect("answers");
        if last.0 == route {
            return reply;
        }
        assert!(Instant::now() < limit, "{sql}: answered by {last:?}, not {route}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn start(cluster: &Cluster, setup: &str) -> (String, Freshet, RawClient) {
    let database = cluster.database();
    cluster.psql(&database, setup);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let client = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    (database, freshet, client)
}

#[test]
fn a_cached_reply_is_not_served_to_a_role_that_may_not_read() {
    let cluster = Cluster::shared();
    let role = "guest";
    let (database, freshet, mut owner) =
        start(cluster, "CREATE TABLE secret (id int PRIMARY KEY, v text); INSERT INTO secret VALUES (1, 'hidden')");
    let sql = "SELECT v FROM secret WHERE id = 1";
    until(&mut owner, sql, "hit");
    let mut reader = RawClient::connect(freshet.address(), role, &database).expect("connects");
    let refused = |reader: &mut RawClient| {
        let error = ask(reader, sql).error().expect("an error");
        assert!(error.contains("42501"), "{error}");
    };
    refused(&mut reader);
    // Changed past freshet: in force for the very next read, both ways.
    cluster.psql(&database, &format!("GRANT SELECT ON secret TO {role}"));
    assert_eq!(value(&ask(&mut reader, sql)), "hidden");
    until(&mut reader, sql, "hit");
    cluster.psql(&database, &format!("REVOKE SELECT ON secret FROM {role}"));
    refused(&mut reader);
    assert_eq!(value(&until(&mut owner, sql, "hit")), "hidden");
    // The same session under another role.
    assert_eq!(ask(&mut owner, &format!("SET ROLE {role}")).error(), None);
    refused(&mut owner);
    ask(&mut owner, "RESET ROLE");
    assert_eq!(value(&until(&mut owner, sql, "hit")), "hidden");
}

#[test]
fn a_cached_reply_belongs_to_its_search_path() {
    let (_, _freshet, mut client) = start(
        Cluster::shared(),
        "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'public');
         CREATE SCHEMA other; CREATE TABLE other.t (id int PRIMARY KEY, v text); INSERT INTO other.t VALUES (1, 'other')",
    );
    let sql = "SELECT v FROM t";
    assert_eq!(value(&until(&mut client, sql, "hit")), "public");
    ask(&mut client, "SET search_path = other, public");
    assert_eq!(value(&ask(&mut client, sql)), "other");
    assert_eq!(value(&until(&mut client, sql, "hit")), "other");
    ask(&mut client, "BEGIN");
    ask(&mut client, "SET LOCAL search_path = public");
    assert_eq!(value(&ask(&mut client, sql)), "public");
    ask(&mut client, "ROLLBACK");
    assert_eq!(value(&ask(&mut client, sql)), "other");
}

#[test]
fn a_cached_reply_belongs_to_its_time_zone() {
    let (_, _freshet, mut client) = start(
        Cluster::shared(),
        "CREATE TABLE moments (id int PRIMARY KEY, at timestamptz); INSERT INTO moments VALUES (1, '2024-01-01 00:00+00')",
    );
    let sql = "SELECT at FROM moments WHERE id = 1";
    ask(&mut client, "SET TimeZone = 'UTC'");
    assert_eq!(value(&until(&mut client, sql, "hit")), "2024-01-01 00:00:00+00");
    ask(&mut client, "SET TimeZone = 'America/New_York'");
    assert_eq!(value(&ask(&mut client, sql)), "2023-12-31 19:00:00-05");
    assert_eq!(value(&until(&mut client, sql, "hit")), "2023-12-31 19:00:00-05");
}

#[test]
fn a_table_made_later_is_answered_from_once_it_is_read() {
    let cluster = Cluster::shared();
    let (database, _freshet, mut client) =
        start(cluster, "CREATE TABLE early (id int PRIMARY KEY); INSERT INTO early VALUES (1)");
    until(&mut client, "SELECT count(*) FROM early", "local");
    // Nothing else changes that would make freshet read the catalog again.
    cluster.psql(&database, "CREATE TABLE later (id int PRIMARY KEY); INSERT INTO later VALUES (1), (2)");
    assert_eq!(value(&until(&mut client, "SELECT count(*) FROM later", "local")), "2");
}

#[test]
fn a_session_sees_its_own_writes() {
    let (_, _freshet, mut client) =
        start(Cluster::shared(), "CREATE TABLE n (id int PRIMARY KEY, v int); INSERT INTO n VALUES (1, 0)");
    let sql = "SELECT v FROM n WHERE id = 1";
    for mode in ["exact", "session"] {
        ask(&mut client, &format!("SET freshet.freshness = '{mode}'"));
        until(&mut client, sql, "hit");
        for n in 1..50 {
            ask(&mut client, &format!("UPDATE n SET v = {n} WHERE id = 1"));
            assert_eq!(value(&ask(&mut client, sql)), n.to_string(), "{mode}");
        }
        ask(&mut client, "BEGIN");
        ask(&mut client, "UPDATE n SET v = -1 WHERE id = 1");
        assert_eq!(value(&ask(&mut client, sql)), "-1", "{mode}");
        let (route, reason) = client.last().expect("answers");
        assert_eq!((route.as_str(), reason.as_str()), ("relay", "transaction_wrote"));
        ask(&mut client, "ROLLBACK");
        assert_eq!(value(&ask(&mut client, sql)), "49", "{mode}");
    }
}

#[test]
fn after_upstream_was_killed_nothing_old_is_served() {
    let cluster = Cluster::start(&[]);
    let (database, freshet, mut client) =
        start(&cluster, "CREATE TABLE n (id int PRIMARY KEY, v int); INSERT INTO n VALUES (1, 1)");
    let sql = "SELECT v FROM n WHERE id = 1";
    until(&mut client, sql, "hit");
    cluster.kill();
    // The session is upstream's: it ends with an error or just ends, but nothing is answered from memory.
    if let Ok(reply) = client.simple(sql) {
        assert!(reply.error().is_some(), "answered without upstream: {reply:?}");
    }
    let refused = RawClient::connect(freshet.address(), "postgres", &database);
    assert!(refused.is_err(), "a log-in without upstream");
    cluster.restart();
    cluster.psql(&database, "UPDATE n SET v = 2 WHERE id = 1");
    let mut client = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    assert_eq!(value(&ask(&mut client, sql)), "2");
    assert_eq!(value(&until(&mut client, sql, "hit")), "2");
    drop(freshet);
    let left = "SELECT (SELECT count(*) FROM pg_replication_slots) + (SELECT count(*) FROM pg_publication)";
    assert_eq!(cluster.psql(&database, left), "0", "a slot or a publication was left behind");
}
