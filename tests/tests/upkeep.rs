//! Panels over a large table that is written to all the time: the next reply comes from the changes since the last one, and is
//! PostgreSQL's.

#[cfg(not(feature = "planted-bugs"))]
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
#[cfg(not(feature = "planted-bugs"))]
use freshet_engine::statement::fingerprint;
use freshet_tests::raw::RawClient;
use freshet_tests::world::World;

const WAIT: Duration = Duration::from_secs(60);

const SETUP: &str = "CREATE TABLE shops (id int PRIMARY KEY, region text, opened date);
    INSERT INTO shops SELECT i, 'region ' || i % 4, DATE '2020-01-01' + i FROM generate_series(1, 40) i;
    CREATE TABLE sales (id int PRIMARY KEY, shop int, day date NOT NULL, amount numeric(12,2), units int NOT NULL, rate numeric, note text,
        at timestamptz NOT NULL);
    INSERT INTO sales SELECT i, NULLIF(i % 41, 0), DATE '2024-01-01' + i % 30, (i % 977) / 7.0, i % 13, i % 5 / 3.0, 'n' || i % 7,
        TIMESTAMPTZ '2024-01-01 00:00:00+00' + i * INTERVAL '1 minute' FROM generate_series(1, 120000) i;
    CREATE TABLE events (id int, kind text, n bigint, PRIMARY KEY (id)) PARTITION BY RANGE (id);
    CREATE TABLE events_low PARTITION OF events FOR VALUES FROM (0) TO (40000);
    CREATE TABLE events_high (n bigint, id int NOT NULL, kind text);
    ALTER TABLE events ATTACH PARTITION events_high FOR VALUES FROM (40000) TO (1000000);
    INSERT INTO events SELECT i, 'kind ' || i % 6, i * 1000000::bigint FROM generate_series(1, 80000) i;
    CREATE VIEW daily AS SELECT day, count(*) AS sold, sum(amount) AS turnover FROM sales GROUP BY day;";

/// Each with whether its groups can be kept up; ordered, so that answers can be compared as they come.
const PANELS: [(&str, bool); 16] = [
    (
        "SELECT day, count(*), sum(amount), avg(amount), sum(units), avg(units) FROM sales GROUP BY day ORDER BY day",
        true,
    ),
    ("SELECT count(*), sum(amount), max(at), min(day), count(shop) FROM sales", true),
    (
        "SELECT date_trunc('week', at), count(*), sum(amount * units) FROM sales WHERE units > 3 GROUP BY 1 ORDER BY 1",
        true,
    ),
    (
        "SELECT s.region, count(*), sum(x.amount) FROM sales x JOIN shops s ON s.id = x.shop GROUP BY s.region ORDER BY 1",
        true,
    ),
    (
        "SELECT s.region, x.day, count(*) FROM sales x LEFT JOIN shops s ON s.id = x.shop GROUP BY 1, 2 ORDER BY 1, 2",
        true,
    ),
    (
        "SELECT note, count(*) FILTER (WHERE units = 5), sum(units) FILTER (WHERE shop IS NULL) FROM sales GROUP BY note ORDER BY 1",
        true,
    ),
    ("SELECT note FROM sales GROUP BY note HAVING sum(units) > 103000 ORDER BY 1 DESC LIMIT 3", true),
    ("SELECT day, turnover FROM daily WHERE sold > 100 ORDER BY day", true),
    ("SELECT kind, count(*), sum(n), max(n) FROM events GROUP BY kind ORDER BY kind", true),
    (
        "SELECT sum(sold) FROM (SELECT shop, count(*) AS sold FROM sales WHERE shop > 20 GROUP BY shop HAVING count(*) > 10) a",
        true,
    ),
    // Region and date hang on the shop, note and day on the sale: until one of them is written.
    (
        "SELECT s.id, s.region, s.opened, count(*), sum(x.amount) FROM sales x JOIN shops s ON s.id = x.shop GROUP BY 1, 2, 3 ORDER BY 1, 2",
        true,
    ),
    (
        "SELECT id, note, shop, count(*), sum(units) FROM sales WHERE id < 1200 OR id > 200000 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        true,
    ),
    ("SELECT day, sum(rate) FROM sales GROUP BY day ORDER BY day", false),
    ("SELECT count(DISTINCT note) FROM sales", false),
    ("SELECT max(note) FROM sales", false),
    ("SELECT shop, sum(units::float8) FROM sales GROUP BY shop ORDER BY shop", false),
];

/// What no sum is kept of.
#[cfg(not(feature = "planted-bugs"))]
const NAN: [&str; 2] =
    ["UPDATE sales SET amount = 'NaN' WHERE id = 5000", "UPDATE sales SET amount = 1.5 WHERE amount = 'NaN'"];

/// Written past freshet, one after the other and over again.
const WRITES: [&str; 11] = [
    "INSERT INTO sales SELECT 200000 + $n, 1 + $n % 40, '2024-01-05', 9.99, 5, 0.5, 'n3', '2024-05-01'",
    "UPDATE sales SET amount = amount + 1, units = units + 1 WHERE id = 7 + $n",
    "DELETE FROM sales WHERE id = 100 + $n",
    "UPDATE sales SET shop = NULL, note = 'new ' || $n WHERE id IN (300 + $n, 400 + $n)",
    "INSERT INTO events SELECT 100000 + $n * 10 + i, 'kind ' || i, 5 FROM generate_series(1, 3) i",
    "UPDATE events SET n = -n, kind = 'moved' WHERE id IN (5 + $n, 70000 + $n)",
    "UPDATE events SET id = id + 200000 WHERE id = 1000 + $n",
    "BEGIN; DELETE FROM sales WHERE id = 900 + $n; INSERT INTO sales VALUES (900 + $n, 3, '2025-01-01', NULL, 0, NULL, NULL, '2025-01-01');
        UPDATE sales SET units = 99 WHERE id = 900 + $n; COMMIT",
    "BEGIN; UPDATE sales SET amount = 0 WHERE id < 5000; ROLLBACK",
    "DELETE FROM sales WHERE at = (SELECT max(at) FROM sales)",
    "UPDATE shops SET region = 'region ' || $n WHERE id = 5",
];

/// The rows as psql prints them.
fn ask(client: &mut RawClient, sql: &str) -> String {
    let reply = client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(reply.error(), None, "{sql}");
    reply.text()
}

/// Each panel's answer after the write, which is not upstream's.
fn write_and_compare(world: &World, client: &mut RawClient, write: &str, wrong: &mut Vec<String>) {
    world.past(write);
    for (sql, _) in PANELS {
        let ours = ask(client, sql);
        let (route, reason) = client.last().expect("answers");
        assert!(route == "local" || route == "hit", "{sql} after {write}: {route} {reason}");
        let theirs = world.past(sql);
        if ours != theirs {
            wrong.push(format!("{sql}\nafter {write}\nours:\n{ours}\nPostgreSQL's:\n{theirs}"));
        }
    }
}

fn until_hit(client: &mut RawClient, sql: &str) {
    let limit = Instant::now() + WAIT;
    loop {
        ask(client, sql);
        let (route, reason) = client.last().expect("answers");
        if route == "hit" {
            return;
        }
        assert!(Instant::now() < limit, "{sql}: {route} {reason}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A session whose panels are all kept.
fn settled(world: &World) -> RawClient {
    let mut client = world.client();
    PANELS.iter().for_each(|(sql, _)| until_hit(&mut client, sql));
    client
}

#[cfg(feature = "planted-bugs")]
#[test]
fn a_planted_mistake_is_found() {
    freshet_engine::planted::plant("keep-rows").expect("known");
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut client = settled(&world);
    let mut wrong = Vec::new();
    for (at, write) in WRITES.iter().enumerate() {
        write_and_compare(&world, &mut client, &write.replace("$n", &at.to_string()), &mut wrong);
    }
    assert!(!wrong.is_empty());
}

#[cfg(not(feature = "planted-bugs"))]
#[test]
fn panels_follow_writes_that_go_past_freshet() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut client = settled(&world);
    let mut wrong = Vec::new();
    for round in 0..4 {
        for (at, write) in WRITES.iter().enumerate() {
            let write = write.replace("$n", &(round * WRITES.len() + at).to_string());
            write_and_compare(&world, &mut client, &write, &mut wrong);
        }
        // A new definition, and the log's end: what was kept is of no use.
        world.past(["ALTER TABLE sales ADD extra int DEFAULT 5", "VACUUM FULL shops", "TRUNCATE events", ""][round]);
        for (sql, _) in PANELS {
            until_hit(&mut client, sql);
        }
    }
    for write in NAN {
        write_and_compare(&world, &mut client, write, &mut wrong);
    }
    assert!(wrong.is_empty(), "{} wrong answers, first:\n{}", wrong.len(), wrong[0]);
    let listed = ask(&mut client, "SELECT statement, updates FROM freshet.statements");
    let updates: BTreeMap<&str, u64> = listed
        .lines()
        .map(|line| {
            let (statement, updates) = line.rsplit_once('|').expect("two columns");
            (statement, updates.parse().expect("a number"))
        })
        .collect();
    for (sql, is_kept) in PANELS {
        let shape = fingerprint::shown(&fingerprint::shape(sql).text);
        let count =
            updates.get(shape.as_str()).copied().unwrap_or_else(|| panic!("{shape} is not listed: {updates:?}"));
        assert_eq!(count >= 3, is_kept, "{sql}: {count} replies came from changes");
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}
