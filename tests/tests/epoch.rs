//! Transaction ids have 32 bits in the stream and 64 in snapshots. A cluster passes 2^32 while its tables are read through freshet: no
//! read is stale, a transaction that was open meanwhile is not seen before its commit, and what is copied later is right.

use freshet_config::FreshnessMode;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;
use freshet_tests::world::settle;

/// So many ids are left when freshet starts; its own start, the copies and the barriers take none.
const LEFT: u32 = 300;
const SUM: &str = "SELECT sum(n) FROM t";

fn cell(client: &mut RawClient, sql: &str) -> String {
    let reply = client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(reply.error(), None, "{sql}");
    String::from_utf8(reply.rows()[0][0].clone().expect("not null")).expect("text")
}

/// 64 bits.
fn next_id(client: &mut RawClient) -> u64 {
    cell(client, "SELECT pg_snapshot_xmax(pg_current_snapshot())").parse().expect("a number")
}

fn read_across_the_epoch(mode: FreshnessMode) {
    let cluster = Cluster::start(&["autovacuum=off"]);
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL); INSERT INTO t VALUES (0, 0), (1, 0);
         CREATE TABLE later (id int PRIMARY KEY, n int NOT NULL); INSERT INTO later VALUES (1, 1)",
    );
    for frozen in ["postgres", "template1", &database] {
        cluster.psql(frozen, "VACUUM FREEZE");
    }
    cluster.stop();
    cluster.set_next_transaction(u32::MAX - LEFT);
    cluster.restart();
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.freshness.mode = mode;
    });
    let connect = |address| RawClient::connect(address, "postgres", &database).expect("connects");
    // In mode session what is written through freshet is seen.
    let writes_through = mode == FreshnessMode::Session;
    let mut writer = connect(if writes_through { freshet.address() } else { cluster.address() });
    let (mut client, mut open, mut other) =
        (connect(freshet.address()), connect(cluster.address()), connect(cluster.address()));
    settle(&mut client, SUM);
    assert!(next_id(&mut other) < 1 << 32);
    open.simple("BEGIN; INSERT INTO t VALUES (2, 1000000); SAVEPOINT s; INSERT INTO t VALUES (3, 0)").expect("writes");

    let mut answered_here = [0_u32; 2];
    for count in 1..=2 * LEFT {
        writer.simple("UPDATE t SET n = n + 1 WHERE id = 1").expect("writes");
        assert_eq!(cell(&mut client, SUM), count.to_string());
        let (route, _) = client.last().expect("answers");
        if route != "relay" {
            answered_here[usize::from(next_id(&mut other) >= 1 << 32)] += 1;
        }
    }
    assert!(next_id(&mut other) > 1 << 32);
    assert!(answered_here.iter().all(|count| *count > LEFT / 4), "{answered_here:?}");
    open.simple("COMMIT").expect("commits");
    let expected = (1_000_000 + 2 * LEFT).to_string();
    if mode == FreshnessMode::Exact {
        assert_eq!(cell(&mut client, SUM), expected);
    }
    // A table whose rows are of the epoch before.
    assert_eq!(settle(&mut client, "SELECT sum(n) FROM later").route, "local");
    writer.simple("UPDATE later SET n = 7; UPDATE t SET n = n - 1 WHERE id = 1").expect("writes");
    assert_eq!(cell(&mut client, "SELECT sum(n) FROM later"), "7");
    assert_eq!(cell(&mut client, SUM), (999_999 + 2 * LEFT).to_string());
}

#[test]
fn reads_are_exact_across_the_epoch() {
    read_across_the_epoch(FreshnessMode::Exact);
}

#[test]
fn sessions_see_what_is_written_across_the_epoch() {
    read_across_the_epoch(FreshnessMode::Session);
}
