//! Types of extensions bring operators and functions of well-known names: statements that cannot mean them are answered here still,
//! and those that can, as upstream does.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;

/// What such an extension brings, without one: a type of its own with operators, functions and an aggregate.
const SCHEMA: &str = "
    CREATE TABLE people (id int PRIMARY KEY, name varchar(20), code char(4), big bigint, tags text[], note text);
    INSERT INTO people SELECT n, 'n' || n, 'c' || n % 5, n * 3, ARRAY['a', 'b' || n % 3], 'note ' || n FROM generate_series(1, 60) n;
    CREATE TYPE tone AS (v int);
    CREATE FUNCTION like_tone(tone, tone) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
    CREATE FUNCTION tone_and(tone, tone) RETURNS tone LANGUAGE sql IMMUTABLE AS 'SELECT $1';
    CREATE OPERATOR = (LEFTARG = tone, RIGHTARG = tone, FUNCTION = like_tone);
    CREATE OPERATOR <> (LEFTARG = tone, RIGHTARG = tone, FUNCTION = like_tone);
    CREATE OPERATOR < (LEFTARG = tone, RIGHTARG = tone, FUNCTION = like_tone);
    CREATE OPERATOR >= (LEFTARG = tone, RIGHTARG = tone, FUNCTION = like_tone);
    CREATE OPERATOR @> (LEFTARG = tone, RIGHTARG = tone, FUNCTION = like_tone);
    CREATE OPERATOR ~~ (LEFTARG = tone, RIGHTARG = tone, FUNCTION = like_tone);
    CREATE OPERATOR || (LEFTARG = tone, RIGHTARG = tone, FUNCTION = tone_and);
    CREATE OPERATOR + (LEFTARG = tone, RIGHTARG = tone, FUNCTION = tone_and);
    CREATE FUNCTION minus(tone) RETURNS tone LANGUAGE sql IMMUTABLE AS 'SELECT $1';
    CREATE OPERATOR - (RIGHTARG = tone, FUNCTION = minus);
    CREATE FUNCTION lower(tone) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'low' $$;
    CREATE FUNCTION strpos(tone, tone) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -1';
    CREATE FUNCTION round(tone, int) RETURNS tone LANGUAGE sql IMMUTABLE AS 'SELECT $1';
    CREATE FUNCTION alike(text, text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
    CREATE SCHEMA apart; CREATE OPERATOR apart.% (LEFTARG = text, RIGHTARG = text, FUNCTION = alike);
    CREATE FUNCTION mod(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1';
    CREATE AGGREGATE max(tone) (SFUNC = tone_and, STYPE = tone)";

const QUERIES: &[&str] = &[
    "SELECT id FROM people WHERE name = 'n5'",
    "SELECT id FROM people WHERE name IN ('n1', 'n2', 'n77') ORDER BY id",
    "SELECT id FROM people WHERE name <> 'n5' AND id < 9 ORDER BY id",
    "SELECT count(*) FROM people WHERE code = 'c2' AND name >= 'n3'",
    "SELECT id FROM people WHERE big = 6.0",
    "SELECT id FROM people WHERE big + 1 < 9.5 ORDER BY id",
    "SELECT id FROM people WHERE tags @> ARRAY['b1'] ORDER BY id",
    "SELECT id FROM people WHERE tags = ARRAY['a', 'b2'] ORDER BY id",
    "SELECT name || '!', lower(name), strpos(name, '5'), -big FROM people ORDER BY id",
    "SELECT id FROM people WHERE big % 10 = 1 AND (big * 1.5) % 2 < 1.7 ORDER BY id",
    "SELECT mod(id, big), mod(big, 2.5) FROM people WHERE id < 5 ORDER BY id",
    "SELECT max(name), max(code), round(avg(big), 2) FROM people WHERE name LIKE 'n1%'",
];

fn start(more: &str) -> (&'static Cluster, String, Freshet) {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, &format!("{SCHEMA};{more}"));
    let freshet = Freshet::start(&cluster.url(&database), |settings| settings.freshness.mode = FreshnessMode::Exact);
    (cluster, database, freshet)
}

#[test]
fn what_takes_only_values_of_its_own_type_is_in_nobodys_way() {
    // The real ones, where they are installed.
    let extensions = "DO $$ DECLARE e text; BEGIN
        FOREACH e IN ARRAY ARRAY['citext', 'hstore', 'cube', 'pg_trgm', 'vector'] LOOP
            IF EXISTS (SELECT FROM pg_available_extensions WHERE name = e) THEN EXECUTE 'CREATE EXTENSION ' || e; END IF;
        END LOOP; END $$";
    let (cluster, database, freshet) = start(extensions);
    let mut both = Both::open(&freshet, cluster, "postgres", &database, QUERIES);
    both.settle("the first copy", |_| false);
    both.assert_computed(|_| false);
}

#[test]
fn what_may_be_meant_is_upstreams() {
    let (cluster, database, freshet) = start("");
    let mut both = Both::open(&freshet, cluster, "postgres", &database, QUERIES);
    both.settle("the first copy", |_| false);
    let changes = [
        // A better match than text = text.
        "CREATE FUNCTION never(varchar, text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
         CREATE OPERATOR = (LEFTARG = varchar, RIGHTARG = text, FUNCTION = never)",
        "DROP OPERATOR = (varchar, text)",
        "CREATE FUNCTION upper_max(varchar, varchar) RETURNS varchar LANGUAGE sql IMMUTABLE AS $$ SELECT 'most'::varchar $$;
         CREATE AGGREGATE max(varchar) (SFUNC = upper_max, STYPE = varchar)",
        "DROP AGGREGATE max(varchar)",
        // Everything that takes the type takes text from now on.
        "CREATE FUNCTION to_tone(varchar) RETURNS tone LANGUAGE sql IMMUTABLE AS 'SELECT ROW(1)::tone';
         CREATE CAST (varchar AS tone) WITH FUNCTION to_tone(varchar) AS IMPLICIT",
        "DROP CAST (varchar AS tone)",
    ];
    for change in changes {
        cluster.psql(&database, change);
        both.compare_all(change);
        both.compare_all(change);
        let reason = both.compare(change, QUERIES[0]);
        assert!(!change.contains("OPERATOR = (LEFT") || reason.is_some(), "after {change}");
    }
    both.settle("all is as it was", |_| false);
    both.assert_computed(|_| false);
}

/// `sign(id)` is then a cast to the domain, so id itself (parse_func.c, func_get_detail).
#[test]
fn a_type_of_a_functions_name_makes_a_cast_of_a_call() {
    const QUERIES: &[&str] = &[
        "SELECT sign(id), sign(big * 1.5), count(*) FROM people GROUP BY id ORDER BY id",
        "SELECT max(name), max(id) FROM people",
        "SELECT to_json(id), upper(name) FROM people ORDER BY id",
        "SELECT count(id) FROM people",
    ];
    let (cluster, database, freshet) = start("");
    let mut both = Both::open(&freshet, cluster, "postgres", &database, QUERIES);
    both.settle("the first copy", |_| false);
    for (name, base) in [("sign", "int"), ("max", "text"), ("to_json", "int"), ("count", "bigint")] {
        for change in [format!("CREATE DOMAIN {name} AS {base}"), format!("DROP DOMAIN {name}")] {
            cluster.psql(&database, &change);
            // Found by a look now and then, unless it has a name that barriers know.
            let named = QUERIES.iter().find(|sql| sql.contains(&format!("{name}("))).expect("it is asked for");
            let limit = Instant::now() + Duration::from_secs(30);
            let ask = |client: &mut RawClient| client.simple(named).expect("answers");
            while ask(&mut both.through) != ask(&mut both.direct) {
                assert!(Instant::now() < limit, "{change} was not noticed");
                std::thread::sleep(Duration::from_millis(10));
            }
            both.compare_all(&change);
            both.compare_all(&change);
            both.settle(&change, |sql| change.starts_with("CREATE") && sql.contains(&format!("{name}(")));
        }
    }
    both.assert_computed(|_| false);
}

/// TRIM is pg_catalog.btrim, of whoever's making (gram.y, SystemFuncName).
#[test]
fn what_is_put_into_pg_catalog_is_meant_by_sqls_own_forms() {
    const QUERIES: &[&str] = &[
        "SELECT trim(name), trim(note) FROM people ORDER BY id",
        "SELECT pg_catalog.btrim(name) FROM people ORDER BY id",
    ];
    let (cluster, database, freshet) = start("");
    let mut both = Both::open(&freshet, cluster, "postgres", &database, QUERIES);
    both.settle("the first copy", |_| false);
    let made =
        "CREATE FUNCTION pg_catalog.btrim(varchar) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'trimmed' $$";
    cluster.psql(&database, made);
    both.compare_all(made);
    both.settle(made, |_| true);
    for sql in QUERIES {
        let reason = both.compare(made, sql);
        assert!(reason.is_some(), "{sql}");
    }
    cluster.psql(&database, "DROP FUNCTION pg_catalog.btrim(varchar)");
    both.compare_all("DROP FUNCTION");
    both.settle("DROP FUNCTION", |_| false);
    both.assert_computed(|_| false);
}

/// Sessions whose path names pg_catalog behind schemas of users: what these have of the same signature comes first there, and what they have
/// not is pg_catalog's.
#[test]
fn pg_catalog_may_stand_behind_others() {
    const QUERIES: &[&str] = &[
        "SELECT id FROM people WHERE name = 'n5' AND big > 3 ORDER BY id",
        "SELECT upper(name), length(note), big::int + 1, '2024-01-01'::date FROM people WHERE id IN (1, 2) ORDER BY id",
        "SELECT sum(big), count(*), max(id) FROM people WHERE tags @> ARRAY['b1']",
        "SELECT id, CASE WHEN note LIKE 'note 1%' THEN round(big * 1.5, 1) END FROM people ORDER BY id LIMIT 12",
    ];
    let (cluster, database, freshet) = start("");
    let mut both = Both::open(&freshet, cluster, "postgres", &database, QUERIES);
    both.set("SET search_path = public, pg_catalog");
    both.settle("the first copy", |_| false);
    both.assert_computed(|_| false);
    for (make, drop, may_mean) in [
        (
            "CREATE FUNCTION public.upper(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'mine' $$",
            "DROP FUNCTION public.upper(text)",
            "upper(",
        ),
        (
            "CREATE FUNCTION more(int8, int4) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
             CREATE OPERATOR > (LEFTARG = int8, RIGHTARG = int4, FUNCTION = more)",
            "DROP FUNCTION more CASCADE",
            "big > 3",
        ),
        ("CREATE DOMAIN public.date AS text", "DROP DOMAIN public.date", "::date"),
        (
            "CREATE FUNCTION largest(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -1';
             CREATE AGGREGATE max(int) (SFUNC = largest, STYPE = int)",
            "DROP FUNCTION largest CASCADE",
            "max(",
        ),
    ] {
        cluster.psql(&database, make);
        both.compare_all(make);
        both.settle(make, |sql| sql.contains(may_mean));
        cluster.psql(&database, drop);
        both.compare_all(drop);
        both.settle(drop, |_| false);
    }
    both.assert_computed(|_| false);
}
