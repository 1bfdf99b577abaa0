//! How long a reader waits for a moment that does not come.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::marks::StoppedBarriers;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, until};

const BUDGET: Duration = Duration::from_secs(8);
/// Of what upstream answers in no time.
const LEAST: Duration = Duration::from_secs(1);

/// How long it took, and how it was answered.
fn timed(client: &mut RawClient, sql: &str) -> (Duration, String) {
    let began = Instant::now();
    assert_eq!(client.simple(sql).expect("answers").error(), None, "{sql}");
    let took = began.elapsed();
    let (route, reason) = client.last().expect("answers");
    (took, format!("{route} {reason}"))
}

/// One waits as long as its statement is worth; who comes behind it goes upstream at once, whichever connection and table it is, until
/// moments come again.
#[test]
fn one_waits_in_vain_for_all() {
    let world = World::start_with(
        FreshnessMode::Exact,
        "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT n, n FROM generate_series(1, 100) n;
         CREATE TABLE u (id int PRIMARY KEY, v int); INSERT INTO u SELECT n, n FROM generate_series(1, 100) n",
        |settings| settings.freshness.wait_budget_ms = BUDGET.as_millis() as u64,
    );
    let (of_t, of_u) = ("SELECT v FROM t WHERE id = 7", "SELECT count(*) FROM u WHERE v > 20");
    let mut clients = [world.client(), world.client()];
    for client in &mut clients {
        for sql in [of_t, of_u] {
            until("answered here", || !timed(client, sql).1.starts_with("relay"));
        }
    }
    let stopped = StoppedBarriers::new(world.cluster);
    let (took, how) = timed(&mut clients[0], of_t);
    assert_eq!(how, "relay wait_budget");
    assert!(took >= LEAST && took < BUDGET / 2, "{took:?}");
    for (client, sql) in [(1, of_t), (1, of_u), (0, of_u)] {
        let (took, how) = timed(&mut clients[client], sql);
        assert_eq!(how, "relay wait_budget");
        assert!(took < LEAST, "{sql}: {took:?}");
    }
    drop(stopped);
    for sql in [of_t, of_u] {
        until("answered here again", || !timed(&mut clients[0], sql).1.starts_with("relay"));
    }
}
