//! What the rows decide: answers that the audit of a shape's first execution cannot speak for, compared again once the rows are others.

use std::time::{Duration, Instant};

use freshet_tests::both::Both;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;

const WAIT: Duration = Duration::from_secs(30);

/// By whom it is answered as long as it raises no error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Here,
    /// What it hangs on is refused.
    Upstream,
}
use By::{Here, Upstream};

/// Statements, and what is done to the tables between two executions of each.
const CASES: &[(By, &str, &[&str])] = &[
    (
        Here,
        "WITH c AS (SELECT id, a, 100 / b AS r FROM t) SELECT (SELECT count(*) FROM c WHERE a > 1), (SELECT max(a) FROM c)",
        &["INSERT INTO t VALUES (3, 3, 0)", "DELETE FROM t WHERE id = 3"],
    ),
    (
        Here,
        "WITH c AS MATERIALIZED (SELECT a, sum(b) * 2000000000 AS s FROM t GROUP BY a) SELECT count(*) FROM c",
        &["UPDATE t SET b = 2000000000 WHERE id = 1", "UPDATE t SET b = 1 WHERE id = 1"],
    ),
    (
        Here,
        "SELECT a FROM t WHERE a > 1 EXCEPT SELECT 10 / b FROM t WHERE id = 1",
        &["UPDATE t SET b = 0 WHERE id = 1", "UPDATE t SET a = 0", "UPDATE t SET b = 1 WHERE id = 1"],
    ),
    (
        Upstream,
        "SELECT regr_count(DISTINCT y, x) FROM p",
        &["INSERT INTO p VALUES (3, 1, 5)", "DELETE FROM p WHERE id = 3"],
    ),
    (
        Here,
        "SELECT age(a, b) FROM d",
        &["UPDATE d SET a = '2024-11-03 05:30Z', b = '2024-11-03 06:10Z'", "UPDATE d SET a = '2024-11-03 05:50Z'"],
    ),
    (
        Here,
        "SELECT s, id, j ->> 'a' FROM j ORDER BY s, id LIMIT 1",
        &[r#"INSERT INTO j VALUES (9, '{"a":"\u0000"}', '{}', 'z', 1)"#, "DELETE FROM j WHERE id = 9"],
    ),
    (
        Here,
        "SELECT s, id, j #> '{b}' FROM j ORDER BY s, id LIMIT 1",
        &[r#"INSERT INTO j VALUES (9, '{"a":"\ud800"}', '{}', 'z', 1)"#, "DELETE FROM j WHERE id = 9"],
    ),
    (
        Here,
        "SELECT s, id, lpad(s, n) FROM j ORDER BY s, id LIMIT 1",
        &["INSERT INTO j VALUES (9, '1', '1', 'z', 2000000000)", "DELETE FROM j WHERE id = 9"],
    ),
    (
        Here,
        "SELECT id FROM j WHERE b ->> 'a' = 'x' AND rpad(s, n, 'ab') <> 'q' ORDER BY id",
        &["INSERT INTO j VALUES (9, '1', '{\"a\": \"x\"}', 'z', 1000000000)", "DELETE FROM j WHERE id = 9"],
    ),
    (Here, "SELECT iv, -iv, extract(day FROM iv) FROM s", &["UPDATE s SET iv = '-2 mons 3 days'"]),
    (
        Here,
        "SELECT g, count(*), max(v), min(v) FROM m GROUP BY g ORDER BY g",
        &[
            "UPDATE m SET v = v + 1 WHERE id = 8",
            "UPDATE m SET note = 'x' WHERE id = 4000",
            "DELETE FROM m WHERE id = 4000",
            "UPDATE m SET note = 'x' WHERE id = 3999; UPDATE m SET v = 0 WHERE id = 3999",
        ],
    ),
    (Here, "SELECT max(x * '1'::float8), max(x * '2'::float8) FROM f", &["UPDATE f SET x = 3"]),
    (Here, "SELECT max(x * '0'::float8), max(x * '-0'::float8) FROM f", &["UPDATE f SET x = 4"]),
    (Upstream, "SELECT CASE WHEN cur = 'USD' THEN price ELSE 0 END FROM v", &[]),
    (Upstream, "SELECT CASE WHEN cur = 'EUR' THEN price ELSE 0 END FROM v", &[]),
    (Upstream, "SELECT pick(price, 2) FROM money_of", &[]),
    (Upstream, "SELECT pick(price, 1) FROM money_of", &[]),
];

const SCHEMA: &str = r#"
    CREATE TABLE t (id int PRIMARY KEY, a int, b int); INSERT INTO t VALUES (1, 1, 1), (2, 2, 5);
    CREATE TABLE p (id int PRIMARY KEY, y float8, x float8); INSERT INTO p VALUES (1, 1, 1), (2, 2, 2);
    CREATE TABLE d (id int PRIMARY KEY, a timestamptz, b timestamptz); INSERT INTO d VALUES (1, '2024-03-01 00:00Z', '2024-02-01 00:00Z');
    CREATE TABLE s (id int PRIMARY KEY, iv interval); INSERT INTO s VALUES (1, '1 day');
    CREATE TABLE m (id int PRIMARY KEY, g int NOT NULL, v int NOT NULL, note text);
    INSERT INTO m SELECT i, i % 4, i, 'n' FROM generate_series(1, 4000) i;
    CREATE TABLE j (id int PRIMARY KEY, j json, b jsonb, s text, n int);
    INSERT INTO j VALUES (1, '{"a": "x"}', '{"a": "x"}', 's', 3), (2, '{"a": "y"}', '{"a": "y"}', 't', 4);
    CREATE TABLE f (id int PRIMARY KEY, x float8); INSERT INTO f VALUES (1, 1);
    CREATE TABLE money_of (id int PRIMARY KEY, price numeric(10, 2)); INSERT INTO money_of VALUES (1, 5);
    CREATE VIEW v AS SELECT 'EUR'::text AS cur, price FROM money_of;
    CREATE FUNCTION pick(numeric, int) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN $2 = 1 THEN $1 ELSE 0 END'"#;

#[test]
fn answers_are_upstreams_whatever_the_rows_have_become() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut both = Both::open(&freshet, cluster, "postgres", &database, &[]);
    both.set("SET TimeZone = 'America/New_York'");
    let limit = Instant::now() + WAIT;
    // All tables are there once each is answered here, or is known to be none of freshet's.
    for table in ["t", "p", "d", "s", "m", "j", "f", "money_of"] {
        let sql = format!("SELECT count(*) FROM {table}");
        while both.compare("the copy", &sql).is_some() {
            assert!(Instant::now() < limit, "{table} is not mirrored");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    for (by, sql, changes) in CASES {
        // Audited, it is computed here; what is refused may be kept from upstream.
        let mut routes: Vec<(String, String)> = Vec::new();
        let is_here = |routes: &[(String, String)]| routes.iter().any(|(route, _)| route == "local");
        // The verdict comes from another thread, on a busy machine late.
        while routes.len() < 4 || *by == Here && !is_here(&routes) && Instant::now() < limit {
            routes.push(both.routed("nothing", sql));
        }
        assert_eq!(is_here(&routes), *by == Here, "{sql}: {routes:?}");
        for change in *changes {
            cluster.psql(&database, change);
            (0..3).for_each(|_| drop(both.compare(change, sql)));
        }
    }
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

/// Of users' functions nothing is known but their names, which may be those of PostgreSQL's own.
#[test]
fn what_users_functions_write_is_seen_by_the_next_read() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE log (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text);
         CREATE FUNCTION bump() RETURNS int LANGUAGE sql AS 'INSERT INTO log (what) VALUES (''bump'') RETURNING id';
         CREATE FUNCTION sign(int) RETURNS int LANGUAGE sql AS 'INSERT INTO log (what) VALUES (''sign'') RETURNING id';
         CREATE FUNCTION key(int) RETURNS int LANGUAGE sql AS 'INSERT INTO log (what) VALUES (''key'') RETURNING id'",
    );
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut both = Both::open(&freshet, cluster, "postgres", &database, &[]);
    let count = "SELECT count(*) FROM log";
    let limit = Instant::now() + WAIT;
    while both.compare("the copy", count).is_some() {
        assert!(Instant::now() < limit, "not mirrored");
        std::thread::sleep(Duration::from_millis(5));
    }
    for call in ["SELECT DISTINCT ON (1) bump()", "SELECT bump()", "SELECT sign(7)", "SELECT key(7)"] {
        for end in ["ROLLBACK", "COMMIT"] {
            let mut seen = Vec::new();
            for sql in ["BEGIN", call, count, end, count] {
                seen.push(both.through.simple(sql).expect("answers").rows());
            }
            // Each by itself, since each writes.
            let number = |at: usize| {
                let rows: &Vec<Vec<Option<Vec<u8>>>> = &seen[at];
                let text = String::from_utf8_lossy(rows[0][0].as_deref().expect("a count")).into_owned();
                text.parse::<i64>().expect("a number")
            };
            let (within, after) = (number(2), number(4));
            let direct = both.direct.simple(count).expect("answers").rows();
            assert_eq!(seen[4], direct, "{call}, {end}");
            assert_eq!(within - after, i64::from(end == "ROLLBACK"), "{call}, {end}: its own row is seen in the block");
        }
    }
    // Nor is a reply kept that hangs on more than its tables.
    for sql in [
        "SELECT DISTINCT ON (id) current_setting('app.tenant') AS tenant, id FROM log ORDER BY id LIMIT 1",
        "SELECT DISTINCT ON (what) set_config('app.other', 'x', false) AS x FROM log ORDER BY what LIMIT 1",
    ] {
        for tenant in ["a", "b", "a"] {
            both.set(&format!("SET app.tenant = '{tenant}'"));
            (0..3).for_each(|_| drop(both.compare(tenant, sql)));
        }
    }
}
