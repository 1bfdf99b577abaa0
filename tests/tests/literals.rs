//! Query strings that differ in literals share one plan, and still mean what PostgreSQL takes each of them for.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;

const SCHEMA: &str = "
    CREATE TABLE items (id int PRIMARY KEY, big bigint, small smallint, name text COLLATE \"C\", code varchar(8), padded char(6),
                        price numeric(10,2), share float8, day date, at timestamp, span interval, is_open bool);
    INSERT INTO items SELECT n, n * 3000000000, n, 'name_' || n, 'c' || n % 7, 'p' || n % 5, n / 8.0, n / 3.0,
                             date '2024-01-01' + n, timestamp '2024-01-01' + n * interval '5 hours', n * interval '90 minutes', n % 3 = 0
      FROM generate_series(1, 300) n;
    INSERT INTO items (id) VALUES (1000)";

/// Each two, of one shape or nearly so.
const PAIRS: &[[&str; 2]] = &[
    ["SELECT name FROM items WHERE id = 7", "SELECT name FROM items WHERE id = 8"],
    ["SELECT name FROM items WHERE id = 7", "SELECT name FROM items WHERE id = -7"],
    ["SELECT id FROM items WHERE id > -7 AND id < 9", "SELECT id FROM items WHERE id > - 9000 AND id < 12"],
    ["SELECT id FROM items WHERE small > -7 LIMIT 9", "SELECT id FROM items WHERE small > -70000 LIMIT 8"],
    [
        "SELECT id FROM items WHERE big BETWEEN -5 AND 5",
        "SELECT id FROM items WHERE big BETWEEN -3000000000 AND 3000000000",
    ],
    ["SELECT count(*) FROM items WHERE id IN (-1, 2, -3)", "SELECT count(*) FROM items WHERE id IN (-4, -5, 6)"],
    ["SELECT count(*) FROM items WHERE price > -1.50", "SELECT count(*) FROM items WHERE price > -2.125"],
    ["SELECT count(*) FROM items WHERE share > -7", "SELECT count(*) FROM items WHERE share > -2147483648"],
    ["SELECT id FROM items WHERE id > - -7", "SELECT id FROM items WHERE id > - - 290"],
    ["SELECT id FROM items WHERE id - 7 > -3 - id", "SELECT id FROM items WHERE id - 8 > -200 - id"],
    ["SELECT -7 > id, id = -8 FROM items", "SELECT -9 > id, id = -1 FROM items"],
    ["SELECT id FROM items WHERE big = 9000000000", "SELECT id FROM items WHERE big = 12000000000"],
    ["SELECT id FROM items WHERE big > 5", "SELECT id FROM items WHERE big > 800000000000"],
    ["SELECT id FROM items WHERE small < 5", "SELECT id FROM items WHERE small < 70000"],
    ["SELECT id FROM items WHERE name = 'name_5'", "SELECT id FROM items WHERE name='it''s'"],
    ["SELECT id FROM items WHERE name LIKE'name_1%'", "SELECT id FROM items WHERE name LIKE 'name\\_2%'"],
    ["SELECT id FROM items WHERE name NOT LIKE '%9' LIMIT 3", "SELECT id FROM items WHERE name NOT LIKE '%8' LIMIT 2"],
    ["SELECT id FROM items WHERE code IN ('c1', 'c2')", "SELECT id FROM items WHERE code IN ('c3', 'c4', 'c5 ')"],
    ["SELECT id FROM items WHERE padded = 'p1'", "SELECT id FROM items WHERE padded = 'p2  '"],
    [
        "SELECT id FROM items WHERE padded = 'p1' COLLATE \"C\"",
        "SELECT id FROM items WHERE padded = 'p2  ' COLLATE \"C\"",
    ],
    ["SELECT id FROM items WHERE id IN (1, 2)", "SELECT id FROM items WHERE id IN (3, 4, 5, 3000000000)"],
    ["SELECT id FROM items WHERE price = 1.5", "SELECT id FROM items WHERE price = 1.625"],
    ["SELECT price * 1.50, price / 3 FROM items", "SELECT price * 1.5, price / 7 FROM items"],
    ["SELECT share * 2, share > 1.5 FROM items", "SELECT share * 5, share > 2.25 FROM items"],
    ["SELECT id / 2, id % 3, id - 1, -id + 4 FROM items", "SELECT id / 5, id % 4, id - 2, -id + 9 FROM items"],
    ["SELECT 5, id FROM items", "SELECT 6, id FROM items"],
    ["SELECT id FROM items WHERE day > '2024-05-05'", "SELECT id FROM items WHERE day > '2024-06-01'"],
    ["SELECT id FROM items WHERE day = '2024-05-05'::date", "SELECT id FROM items WHERE day = '2024-06-01'::date"],
    ["SELECT id FROM items WHERE day = DATE '2024-05-05'", "SELECT id FROM items WHERE day = DATE '2024-06-01'"],
    [
        "SELECT id FROM items WHERE at BETWEEN '2024-01-03' AND '2024-01-09 12:00'",
        "SELECT id FROM items WHERE at BETWEEN '2024-02-03' AND '2024-02-09 12:00'",
    ],
    ["SELECT id FROM items WHERE day > '2024-05-05 +00'", "SELECT id FROM items WHERE day > '2024-06-01+05:30'"],
    ["SELECT id FROM items WHERE at > '2024-03-05 +02'", "SELECT id FROM items WHERE at > '2024-02-01Z'"],
    ["SELECT day + 1, day - 7 FROM items", "SELECT day + 2, day - 30 FROM items"],
    ["SELECT at + interval '1 day' FROM items", "SELECT at + interval '1 month' FROM items"],
    ["SELECT id FROM items WHERE span > '3 hours'", "SELECT id FROM items WHERE span > '1 day 02:00'"],
    ["SELECT '1 day'::interval * 2, id FROM items", "SELECT '1 month'::interval * 3, id FROM items"],
    ["SELECT '1.235'::numeric(5,2), id FROM items", "SELECT '7.785'::numeric(5,2), id FROM items"],
    ["SELECT count(*) FROM items WHERE is_open = 'true'", "SELECT count(*) FROM items WHERE is_open = 'f'"],
    ["SELECT round(price, 1), substr(name, 2, 3) FROM items", "SELECT round(price, 0), substr(name, 1, 6) FROM items"],
    ["SELECT date_trunc('month', at) FROM items", "SELECT date_trunc('week', at) FROM items"],
    [
        "SELECT CASE WHEN id > 5 THEN 'more' ELSE 'less' END FROM items",
        "SELECT CASE WHEN id > 9 THEN 'high' ELSE 'low' END FROM items",
    ],
    // Ordinals are none of it.
    ["SELECT id, code FROM items ORDER BY 1 LIMIT 5", "SELECT id, code FROM items ORDER BY 2, 1 LIMIT 5"],
    [
        "SELECT code, padded, count(*) FROM items GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT code, padded, count(*) FROM items GROUP BY 2, 1 ORDER BY 2, 1",
    ],
    [
        "SELECT DISTINCT ON (1) code, id FROM items ORDER BY 1, 2",
        "SELECT DISTINCT ON (2) id, code FROM items ORDER BY 2, 1",
    ],
    [
        "SELECT DISTINCT ON ((1)) code, id FROM items ORDER BY 1, 2",
        "SELECT DISTINCT ON (1, 2) code, id FROM items ORDER BY 1, 2",
    ],
    // The same expression twice.
    [
        "SELECT id % 4, count(*) FROM items GROUP BY id % 4 ORDER BY 2, 1",
        "SELECT id % 5, count(*) FROM items GROUP BY id % 5 ORDER BY 2, 1",
    ],
    ["SELECT DISTINCT id % 4 FROM items ORDER BY id % 4", "SELECT DISTINCT id % 5 FROM items ORDER BY id % 5"],
    ["SELECT id % 4 AS r FROM items GROUP BY r ORDER BY r", "SELECT id % 6 AS r FROM items GROUP BY r ORDER BY r"],
    [
        "SELECT sum(id) OVER (ORDER BY id ROWS 2 PRECEDING) FROM items",
        "SELECT sum(id) OVER (ORDER BY id ROWS 3 PRECEDING) FROM items",
    ],
    ["SELECT id FROM items ORDER BY id LIMIT 5 OFFSET 2", "SELECT id FROM items ORDER BY id LIMIT 3 OFFSET 290"],
    [
        "SELECT id FROM items ORDER BY id FETCH FIRST 2 ROWS ONLY",
        "SELECT id FROM items ORDER BY id FETCH FIRST 3 ROWS ONLY",
    ],
    ["SELECT 1 UNION SELECT id FROM items ORDER BY 1", "SELECT 2 UNION SELECT id FROM items ORDER BY 1"],
    [
        "SELECT 0 UNION ALL SELECT price FROM items ORDER BY 1",
        "SELECT 0.05 UNION ALL SELECT price FROM items ORDER BY 1",
    ],
    ["SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v (n, t)", "SELECT * FROM (VALUES (3, 'c'), (4, 'd')) v (n, t)"],
    ["SELECT n FROM generate_series(1, 5) n", "SELECT n FROM generate_series(2, 9, 3) n"],
    [
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY share) FROM items",
        "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY share) FROM items",
    ],
    [
        "SELECT ntile(4) OVER (ORDER BY id), lag(id, 2) OVER (ORDER BY id) FROM items",
        "SELECT ntile(7) OVER (ORDER BY id), lag(id, 3) OVER (ORDER BY id) FROM items",
    ],
    // What is constant is computed when PostgreSQL plans, and may raise an error although no row asks for it.
    ["SELECT 10 / 5 FROM items WHERE id = -1", "SELECT 10 / 0 FROM items WHERE id = -1"],
    [
        "SELECT CASE WHEN id > 0 THEN id ELSE 4 / 2 END FROM items",
        "SELECT CASE WHEN id > 0 THEN id ELSE 1 / 0 END FROM items",
    ],
    [
        "SELECT id FROM items WHERE id = -1 AND big > 5 + 1",
        "SELECT id FROM items WHERE id = -1 AND big > 2147483647 + 1",
    ],
    ["SELECT '9'::numeric(5,2) FROM items WHERE id = -1", "SELECT '99999'::numeric(5,2) FROM items WHERE id = -1"],
    ["SELECT id FROM items WHERE id = -1 AND share > 1e30", "SELECT id FROM items WHERE id = -1 AND share > 1e400"],
    [
        "SELECT id % 4, id, count(*) FROM items WHERE id < 0 GROUP BY ROLLUP (id % 4, id) ORDER BY 1, 2",
        "SELECT id % 5, id, count(*) FROM items WHERE id < 9 GROUP BY ROLLUP (id % 5, id) ORDER BY 1, 2",
    ],
    [
        "SELECT t.id, (SELECT count(*) FROM items u WHERE u.small = t.id LIMIT 1) FROM items t WHERE t.id = 7",
        "SELECT t.id, (SELECT count(*) FROM items u WHERE u.small = t.id LIMIT 1) FROM items t WHERE t.id = 1000",
    ],
    // Errors are upstream's.
    ["SELECT id FROM items WHERE day > '2024-05-05'", "SELECT id FROM items WHERE day > 'nonsense'"],
    ["SELECT 10 / id FROM items WHERE id = 1", "SELECT 10 / (id - 1) FROM items WHERE id = 1"],
    ["SELECT id + 1 FROM items WHERE id = 1", "SELECT id + 2147483647 FROM items WHERE id = 1"],
];

fn start() -> (&'static Cluster, String, Freshet) {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let freshet = Freshet::start(&cluster.url(&database), |settings| settings.freshness.mode = FreshnessMode::Session);
    (cluster, database, freshet)
}

#[test]
fn each_of_two_that_differ_in_literals_is_answered_as_upstream_does() {
    let (cluster, database, freshet) = start();
    let mut both = Both::open(&freshet, cluster, "postgres", &database, &["SELECT name FROM items WHERE id = 299"]);
    both.settle("the first copy", |_| false);
    for pair in PAIRS {
        // The first is compared with upstream's reply before it is answered here.
        for sql in [pair[0], pair[0], pair[1], pair[1], pair[0]] {
            both.compare("another literal", sql);
        }
        both.set("SET freshet.route = 'local'");
        for sql in pair {
            // An execution may be a sample that is compared once more, or come before the first could be judged.
            let limit = Instant::now() + Duration::from_secs(20);
            let is_error = both.direct.simple(sql).expect("answers").error().is_some();
            loop {
                // A kept reply of upstream's is no proof.
                let (route, reason) = both.routed("another literal", sql);
                if is_error || route == "local" {
                    break;
                }
                assert!(Instant::now() < limit, "not computed here: {sql}: {route} {reason}");
            }
        }
        both.set("SET freshet.route = 'auto'");
    }
}

#[test]
fn other_literals_take_no_other_plan() {
    let (cluster, database, freshet) = start();
    let mut both = Both::open(&freshet, cluster, "postgres", &database, &["SELECT name FROM items WHERE id = 299"]);
    both.settle("the first copy", |_| false);
    let plans = || -> u64 { freshet.status(&database, "plans").parse().expect("a number") };
    let before = plans();
    let mut relayed = 0;
    for id in 1..=200 {
        let sql = format!("SELECT name FROM items WHERE id = {id}");
        relayed += u32::from(both.compare("another literal", &sql).is_some());
    }
    // One in some is compared with upstream's reply.
    assert!(relayed <= 20, "{relayed} of 200 relayed");
    let after = plans();
    assert!(after <= before + 3, "{before} plans before, {after} after");
}

/// PostgreSQL describes what its planner leaves of a CASE or COALESCE: with the second of each two, a column with its modifier.
const FOLDED: &[[&str; 2]] = &[
    [
        "SELECT CASE WHEN 'a' = 'b' THEN price ELSE 0 END FROM items ORDER BY id",
        "SELECT CASE WHEN 'a' = 'a' THEN price ELSE 0 END FROM items ORDER BY id",
    ],
    [
        "SELECT CASE WHEN 1 = 2 OR id < 5 THEN price ELSE id END FROM items ORDER BY id",
        "SELECT CASE WHEN 1 = 1 OR id < 5 THEN price ELSE id END FROM items ORDER BY id",
    ],
    [
        "SELECT c FROM (SELECT id, CASE 1 WHEN 2 THEN code ELSE '-' END c FROM items) i ORDER BY id",
        "SELECT c FROM (SELECT id, CASE 1 WHEN 1 THEN code ELSE '-' END c FROM items) i ORDER BY id",
    ],
    [
        "SELECT CASE WHEN 2 IN (1, 3) THEN price END FROM items ORDER BY id",
        "SELECT CASE WHEN 2 IN (1, 2) THEN price END FROM items ORDER BY id",
    ],
    ["SELECT coalesce(1, price) FROM items ORDER BY id", "SELECT coalesce(NULL, price) FROM items ORDER BY id"],
];

#[test]
fn what_is_left_of_a_case_has_its_own_modifier() {
    let (cluster, database, freshet) = start();
    let mut both = Both::open(&freshet, cluster, "postgres", &database, &["SELECT name FROM items WHERE id = 299"]);
    both.settle("the first copy", |_| false);
    for [plain, folded] in FOLDED {
        (0..5).for_each(|_| _ = both.compare("nothing to fold", plain));
        (0..3).for_each(|_| _ = both.compare("one arm is left", folded));
    }
    // With a default that is no NULL, both are left.
    both.set("SET freshet.route = 'local'");
    let limit = Instant::now() + Duration::from_secs(20);
    let sql = "SELECT coalesce(price, 0), CASE WHEN id > 5 THEN price ELSE 0 END FROM items ORDER BY id";
    while both.routed("both arms", sql).0 != "local" {
        assert!(Instant::now() < limit, "not computed here: {sql}");
    }
}
