//! Functions in SQL are answered by what they compute, as PostgreSQL does where it puts their body in place of the call, and
//! every change of them counts at once.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::world::until;

const SCHEMA: &str = "
    CREATE ROLE joe LOGIN; CREATE SCHEMA tools; GRANT USAGE ON SCHEMA tools TO PUBLIC; CREATE SCHEMA own; GRANT USAGE ON SCHEMA own TO joe;
    CREATE TABLE items (id int PRIMARY KEY, name text, kind varchar(20), price numeric(10, 2), sold timestamptz, stock int);
    INSERT INTO items SELECT n, 'item ' || n, CASE WHEN n % 5 > 0 THEN 'kind ' || n % 4 END, n * 1.25, '2020-01-01 00:00+00'::timestamptz + n * interval '31 hours',
      nullif(n % 6, 0) FROM generate_series(1, 120) n;
    CREATE TABLE kinds (kind varchar(20) PRIMARY KEY, label text, rate numeric(4, 2));
    INSERT INTO kinds SELECT 'kind ' || n, 'Kind ' || n, n * 0.5 FROM generate_series(0, 3) n;
    CREATE FUNCTION gross(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 1.19';
    CREATE FUNCTION discount(price numeric, share int DEFAULT 10) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT price - price * share / 100';
    CREATE FUNCTION shown(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT '<' || coalesce(upper(t), 'none') || '>' $$;
    CREATE FUNCTION strictly(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT coalesce(a, 0) + b';
    CREATE FUNCTION either(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN a > b THEN a ELSE b END';
    CREATE FUNCTION among(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 IN (1, 2.5, $2)';
    CREATE FUNCTION since(timestamptz) RETURNS bool LANGUAGE sql STABLE RETURN $1 > '2020-02-01 12:00';
    CREATE FUNCTION tools.twice(x numeric) RETURNS numeric LANGUAGE sql IMMUTABLE RETURN x * 2;
    CREATE FUNCTION tools.atomic(x int) RETURNS text LANGUAGE sql STABLE BEGIN ATOMIC SELECT 'x' || (x + 1)::text; END;
    CREATE FUNCTION tools.nested(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT public.gross(tools.twice($1))';
    CREATE FUNCTION rate_of(k text) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT rate FROM kinds WHERE kinds.kind = k';
    CREATE FUNCTION label_of(varchar) RETURNS text LANGUAGE sql STABLE BEGIN ATOMIC SELECT label FROM kinds WHERE kind = $1; END;
    CREATE FUNCTION dearest() RETURNS numeric LANGUAGE sql STABLE AS 'SELECT max(price) FROM items';
    CREATE FUNCTION now_or(timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT coalesce($1, now())';
    CREATE FUNCTION public.round(double precision, int) RETURNS double precision LANGUAGE sql IMMUTABLE AS
        'SELECT round($1::numeric, $2)::double precision';
    CREATE FUNCTION tools.round(double precision, int) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'hidden' $$;
    CREATE FUNCTION own.hidden(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
    CREATE VIEW priced AS SELECT id, gross(price) AS gross, tools.atomic(id) AS atom, shown(kind) AS kind, since(sold) AS late FROM items;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO joe; REVOKE SELECT ON kinds FROM joe;";

/// PostgreSQL puts the body in place of the call, or nobody can tell.
const QUERIES: &[&str] = &[
    "SELECT id, gross(price) FROM items ORDER BY id LIMIT 20",
    "SELECT gross(price)::numeric(10, 2) AS g, count(*) FROM items GROUP BY gross(price) ORDER BY g LIMIT 9",
    "SELECT sum(gross(price)), max(shown(kind)) FROM items WHERE gross(price) > 50",
    "SELECT discount(price, 20), public.discount(price, stock) FROM items ORDER BY id",
    "SELECT DISTINCT shown(kind) FROM items ORDER BY 1",
    "SELECT shown('x'), shown(NULL), gross(2), strictly(1, 2), strictly(NULL, 1), either(3, 4)",
    "SELECT id, strictly(stock, id) FROM items WHERE strictly(stock, 2) IS NULL OR id < 9 ORDER BY id",
    "SELECT either(stock, id) AS e, count(*) FROM items GROUP BY e ORDER BY e",
    "SELECT count(*) FROM items WHERE among(stock, id)",
    "SELECT count(*) FROM items WHERE since(sold)",
    "SELECT tools.twice(price), tools.atomic(id), tools.nested(price) FROM items ORDER BY id LIMIT 9",
    "SELECT * FROM priced WHERE gross > 30 ORDER BY id",
    "SELECT id, rate_of(kind) FROM items ORDER BY id",
    "SELECT id FROM items WHERE price > rate_of(kind) * 60 ORDER BY id",
    "SELECT rate_of('kind 3'), label_of('kind 1'), dearest()",
    "SELECT i.id, label_of(i.kind) FROM items i WHERE i.price = dearest()",
    "SELECT name FROM items WHERE id = strictly(3, 4)",
    // Beside PostgreSQL's own of the name.
    "SELECT id, round(price::float8 / 3, 1), round(price / 3, 1), round(price), round(id::float8) FROM items ORDER BY id",
    "SELECT kind, round(avg(price)::float8, 2), round(sum(price::float8), stock % 2) FROM items GROUP BY kind, stock ORDER BY 1, 2, 3",
];

/// Each statement is compared at once, and what it names after `|` is upstream's from then on, until the next.
const CHANGES: &[(&str, &str)] = &[
    ("CREATE OR REPLACE FUNCTION gross(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 1.07'", ""),
    (
        "CREATE OR REPLACE FUNCTION rate_of(k text) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT rate + 1 FROM kinds WHERE kinds.kind = k'",
        "",
    ),
    ("UPDATE kinds SET rate = rate * 2, label = label || '!' WHERE kind <> 'kind 1'", ""),
    ("CREATE OR REPLACE FUNCTION tools.twice(x numeric) RETURNS numeric LANGUAGE sql IMMUTABLE RETURN x * 3", ""),
    ("ALTER TABLE kinds RENAME COLUMN label TO caption", ""),
    ("ALTER TABLE kinds RENAME TO sorts", "rate_of"),
    ("ALTER TABLE sorts RENAME TO kinds", ""),
    ("ALTER FUNCTION either(int, int) STRICT", ""),
    ("ALTER FUNCTION shown(text) VOLATILE", "shown|priced"),
    ("ALTER FUNCTION shown(text) STABLE", ""),
    ("ALTER FUNCTION gross(numeric) SECURITY DEFINER", "gross|priced|nested"),
    ("ALTER FUNCTION gross(numeric) SECURITY INVOKER", ""),
    ("ALTER FUNCTION since(timestamptz) SET TimeZone = 'Asia/Tokyo'", "since|priced"),
    ("ALTER FUNCTION since(timestamptz) RESET TimeZone", ""),
    ("REVOKE EXECUTE ON FUNCTION strictly(int, int) FROM PUBLIC", "strictly"),
    ("GRANT EXECUTE ON FUNCTION strictly(int, int) TO PUBLIC", ""),
    // Exactly what is given wins, whoever comes first.
    ("CREATE FUNCTION gross(int) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 100.0'", ""),
    ("CREATE FUNCTION gross(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END'", ""),
    ("DROP FUNCTION gross(int), gross(text)", ""),
    ("CREATE TABLE shown (x int)", "shown(kind)|priced|shown('x')"),
    ("DROP TABLE shown", ""),
    (
        "CREATE OR REPLACE FUNCTION among(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 IN (SELECT 1)'",
        "among",
    ),
    ("CREATE OR REPLACE FUNCTION among(int, int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT $1 = $2'", ""),
    (
        "BEGIN; DROP FUNCTION dearest(); CREATE FUNCTION dearest() RETURNS numeric LANGUAGE sql STABLE AS 'SELECT min(price) FROM items'; COMMIT",
        "",
    ),
    ("DROP FUNCTION dearest()", "dearest"),
];

fn follow(mode: FreshnessMode) {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.freshness.mode = mode;
    });
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    let mut joe = Both::open(&freshet, &cluster, "joe", &database, QUERIES);
    // In session mode changes past freshet take a moment; through it they count at once.
    let mut writer = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    both.settle("the start", |_| false);
    both.assert_computed(|_| false);
    for (change, upstreams) in CHANGES {
        let reply =
            if mode == FreshnessMode::Exact { writer.direct.simple(change) } else { writer.through.simple(change) };
        assert_eq!(reply.expect("answers").error(), None, "{change}");
        both.compare_all(change);
        joe.compare_all(change);
        both.settle(change, |sql| !upstreams.is_empty() && upstreams.split('|').any(|name| sql.contains(name)));
    }
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

#[test]
fn every_change_of_a_function_counts_at_once() {
    follow(FreshnessMode::Exact);
}

#[test]
fn in_session_mode_changes_through_freshet_count_at_once() {
    follow(FreshnessMode::Session);
}

#[test]
fn what_postgresql_would_show_otherwise_is_relayed() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    cluster.psql(
        &database,
        "CREATE FUNCTION first_of(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
         CREATE FUNCTION both_of(a int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN a > 5 THEN 1 ELSE a END';
         CREATE FUNCTION mutable() RETURNS timestamptz LANGUAGE sql IMMUTABLE AS 'SELECT now()';
         CREATE FUNCTION loud(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT $1 + 1';
         CREATE FUNCTION many() RETURNS SETOF int LANGUAGE sql STABLE AS 'SELECT id FROM items';
         CREATE FUNCTION two(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1; SELECT $1';
         CREATE FUNCTION again(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT CASE WHEN $1 > 0 THEN again($1 - 1) ELSE 0 END';
         CREATE FUNCTION counted() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT count(*) FROM items';
         CREATE FUNCTION spoken(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
         CREATE FUNCTION any_of(anyelement) RETURNS anyelement LANGUAGE sql IMMUTABLE AS 'SELECT $1';
         CREATE FUNCTION one_gross(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 1.19';
         CREATE FUNCTION since_text(timestamptz) RETURNS bool LANGUAGE sql STABLE AS $$ SELECT $1 > '2020-02-01 12:00' $$;
         CREATE FUNCTION md5(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1 || '!' $$;
         CREATE FUNCTION over(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
         CREATE FUNCTION over(bigint) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2'",
    );
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    both.settle("the start", |_| false);
    for sql in [
        // An argument that fails where the body does not use it, or may use it twice.
        "SELECT count(first_of(id, 1 / (id - 7))) FROM items",
        "SELECT count(both_of(1 / (id - 7))) FROM items",
        "SELECT strictly(NULL, 1 / (id - 7)), strictly(1 / (id - 7), 2 / (id - 9)) FROM items",
        "SELECT first_of(id, stock) FROM items ORDER BY id",
        "SELECT mutable() > '2020-01-01'",
        "SELECT loud(id) FROM items ORDER BY id",
        "SELECT count(many())",
        "SELECT two(3)",
        "SELECT again(3)",
        "SELECT counted()",
        "SELECT spoken(id) FROM items ORDER BY id",
        "SELECT any_of(id) FROM items ORDER BY id",
        "SELECT over(stock::smallint) FROM items ORDER BY id",
        "SELECT own.hidden(3)",
        "SELECT discount(price) FROM items ORDER BY id",
        "SELECT nowhere.gross(1)",
        // What is grouped by is the call, not its body.
        "SELECT stock + 0, count(*) FROM items GROUP BY first_of(stock + 0, 1)",
        "SELECT price * 1.19 FROM items GROUP BY gross(price)",
        "SELECT coalesce(price * 1.19) FROM items GROUP BY gross(price)",
        "SELECT one_gross(price) FROM items GROUP BY gross(price)",
        "SELECT first_of(stock, 1) FROM items GROUP BY first_of(stock, 2)",
        "SELECT DISTINCT one_gross(price) FROM items ORDER BY gross(price)",
        // With a statement that was prepared, the text is read when that is planned.
        "SELECT count(*) FROM items WHERE since_text(sold)",
    ] {
        for _ in 0..3 {
            assert!(both.compare("the start", sql).is_some(), "{sql}");
        }
    }
    // A function of the same types that is found before the built-in one.
    both.set("SET search_path = public, pg_catalog");
    for _ in 0..3 {
        let sql = "SELECT md5(name) FROM items WHERE id = 1";
        both.compare("the start", sql);
        assert_eq!(both.direct.simple(sql).expect("answers").rows()[0][0].as_deref(), Some(&b"item 1!"[..]));
    }
    both.set("RESET search_path");
    // The time is one moment's: only that it is answered at all is looked at.
    let is_set = "SELECT count(*) FROM items WHERE now_or(sold) IS NULL";
    let limit = Instant::now() + Duration::from_secs(10);
    while both.compare("the start", is_set).is_some() && Instant::now() < limit {}
    assert_eq!(both.compare("the start", is_set), None);
}

/// Where the body was stored as text, its names and literals are read as the session would.
#[test]
fn a_body_means_what_the_session_s_settings_make_of_it() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    cluster.psql(
        &database,
        "CREATE SCHEMA mine; GRANT USAGE ON SCHEMA mine TO PUBLIC;
         CREATE TABLE mine.kinds (kind varchar(20) PRIMARY KEY, label text, rate numeric(4, 2)); INSERT INTO mine.kinds VALUES ('kind 1', 'Mine', 9);
         CREATE FUNCTION mine.gross(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1000'",
    );
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    both.settle("the start", |_| false);
    for settings in [
        "SET search_path = mine, public",
        "SET search_path = public, mine",
        "SET TimeZone = 'Asia/Tokyo'",
        "SET DateStyle = 'German'",
        "SET TimeZone = 'America/New_York'; SET search_path = mine, public",
    ] {
        both.set(settings);
        both.settle(settings, |sql| sql.contains("gross") && settings.contains("public, mine"));
    }
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

/// EXECUTE on PostgreSQL's own functions, those behind operators, and aggregates: noticed half a second later at most.
#[test]
fn built_in_functions_that_not_everybody_may_execute_are_upstreams() {
    const BUILT_IN: &[&str] = &[
        "SELECT md5(name) FROM items ORDER BY id",
        "SELECT count(*) FROM items WHERE name LIKE 'item 1%'",
        "SELECT max(price) FROM items",
    ];
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut joe = Both::open(&freshet, &cluster, "joe", &database, BUILT_IN);
    joe.settle("the start", |_| false);
    for (function, sql) in ["md5(text)", "textlike(text, text)", "max(numeric)"].iter().zip(BUILT_IN) {
        cluster.psql(&database, &format!("REVOKE EXECUTE ON FUNCTION pg_catalog.{function} FROM PUBLIC"));
        until(function, || joe.through.simple(sql).expect("answers").error().is_some());
        joe.compare_all(function);
        cluster.psql(&database, &format!("GRANT EXECUTE ON FUNCTION pg_catalog.{function} TO PUBLIC"));
        joe.settle(function, |_| false);
    }
    joe.assert_computed(|_| false);
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}
