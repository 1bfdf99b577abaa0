//! A transaction that stays open upstream makes it keep its log for every slot: freshet's goes before the disk is full, everything is
//! relayed meanwhile, and when the transaction has ended all is as before. Where nothing happens in the mirrored database, nothing is kept.

use freshet_config::FreshnessMode;
use freshet_tests::cluster::Cluster;
use freshet_tests::forward::Forward;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, settle, until};

/// Three segments of 16 MB.
const KEPT_MAX: u64 = 48 << 20;
const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1); CREATE TABLE other (i int)";
const COUNT: &str = "SELECT count(*) FROM t";

fn cell(client: &mut RawClient, sql: &str) -> String {
    let reply = client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(reply.error(), None, "{sql}");
    String::from_utf8(reply.rows()[0][0].clone().expect("not null")).expect("text")
}

#[test]
fn the_slot_goes_before_upstream_keeps_too_much_of_its_log() {
    let bound = |settings: &mut freshet_config::Settings| settings.mirror.wal_kept_bytes_max = KEPT_MAX;
    let world = World::start_with(FreshnessMode::Exact, SETUP, bound);
    let (mut client, mut held) = (world.client(), world.direct());
    let status = |name: &str| world.freshet.status(&world.database, name);
    settle(&mut client, COUNT);
    until("what is kept is told", || status("wal_kept_bytes") != "0");

    held.simple("BEGIN; INSERT INTO other VALUES (1)").expect("a transaction with an id");
    for _ in 0..5 {
        world.past("INSERT INTO other VALUES (2)");
        world.past("SELECT pg_switch_wal()");
    }
    until("the slot is given up", || status("mirror").contains("mirror.wal_kept_bytes_max"));
    // Another that is being made keeps nothing from before it.
    let kept = format!(
        "SELECT count(*) FROM pg_replication_slots WHERE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > {KEPT_MAX}"
    );
    until("nothing is kept any more", || world.past(&kept) == "0");
    world.past("INSERT INTO t VALUES (2)");
    assert_eq!(cell(&mut client, COUNT), "2");
    let (route, reason) = client.last().expect("answers");
    assert_eq!(route, "relay", "{reason}");

    held.simple("COMMIT").expect("commits");
    let settled = settle(&mut client, COUNT);
    assert_ne!(settled.route, "relay", "{}", settled.reason);
    assert_eq!(cell(&mut client, COUNT), "2");
    assert_eq!(world.past("SELECT count(*) FROM pg_replication_slots"), "1");
}

/// The slot of a database that nobody writes gets nothing to send, and goes on all the same while others are written.
#[test]
fn an_idle_database_holds_no_log_back() {
    // Of its own: a transaction that another test keeps open holds every slot back.
    let cluster = Cluster::start(&[]);
    let (idle, busy) = (cluster.database(), cluster.database());
    cluster.psql(&idle, SETUP);
    cluster.psql(&busy, "CREATE TABLE other (i int)");
    let freshet = Freshet::start(&cluster.url(&idle), |_| {});
    freshet.read_until_mirrored(&idle, &["t".to_string()]);
    let write = || cluster.psql(&busy, "INSERT INTO other SELECT generate_series(1, 10000)");
    write();
    let written = cluster.psql(&busy, "SELECT pg_current_wal_insert_lsn()");
    let beyond = format!(
        "SELECT count(*) FROM pg_replication_slots
          WHERE database = '{idle}' AND confirmed_flush_lsn > '{written}' AND restart_lsn > '{written}'"
    );
    until("the slot goes beyond what others have written", || {
        write();
        // It tells in the log which transactions run, without which no slot lets go of anything.
        cluster.psql(&busy, "CHECKPOINT");
        cluster.psql(&busy, &beyond) == "1"
    });
    assert_eq!(freshet.status(&idle, "stream_restarts"), "0");
    freshet.read_until_mirrored(&idle, &["t".to_string()]);
}

/// The slot's start waits for every transaction that writes. Who is killed meanwhile leaves a process that keeps log until the last
/// of them ends; it looks whether freshet is still there.
#[test]
fn a_process_that_waits_for_its_slot_does_not_outlive_freshet() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SETUP);
    let mut held = RawClient::connect(cluster.address(), "postgres", &database).expect("connects");
    held.simple("BEGIN; INSERT INTO other VALUES (1)").expect("a transaction with an id");
    let way = Forward::to(cluster.address());
    let _freshet = Freshet::start(&format!("postgres://postgres@{}/{database}", way.address), |_| {});
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsender' AND wait_event_type = 'Lock'";
    until("the slot waits", || cluster.psql(&database, waiting) == "1");
    way.end();
    until("the process has gone", || cluster.psql(&database, waiting) == "0");
    assert_eq!(cluster.psql(&database, "SELECT count(*) FROM pg_replication_slots"), "0");
}
