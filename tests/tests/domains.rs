//! Tables with columns of domains: their rows and what changes them.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::world::{World, settle, will_pass};

const SETUP: &str = "
    CREATE DOMAIN year AS int CHECK (VALUE > 1900);
    CREATE DOMAIN email AS varchar(40) CHECK (VALUE LIKE '%@%');
    CREATE DOMAIN amount AS numeric(8, 2);
    CREATE TABLE people (e email PRIMARY KEY, y year, a amount, note text);
    INSERT INTO people SELECT 'p' || n || '@x', 1950 + n % 30, n / 7.0, 'n' || n FROM generate_series(1, 500) n;
    CREATE TABLE log (y year, a amount);
    ALTER TABLE log REPLICA IDENTITY FULL;
    INSERT INTO log SELECT 1960 + n % 5, n FROM generate_series(1, 20) n";

const STATEMENTS: &[&str] = &[
    "SELECT e, y, a, note FROM people ORDER BY e",
    "SELECT y, count(*), sum(a) FROM people GROUP BY y ORDER BY y",
    "SELECT note FROM people WHERE e = 'p7@x'",
    "SELECT p.e, l.a FROM people p JOIN log l ON l.y = p.y ORDER BY p.e, l.a",
    "SELECT y, sum(a), max(y) FROM log GROUP BY y ORDER BY y",
];

/// What is done past freshet; each is in force for the next read.
const CHANGES: &[&str] = &[
    "UPDATE people SET a = a + 1 WHERE y = 1960",
    "UPDATE people SET e = 'q' || e WHERE e LIKE 'p1%'",
    "DELETE FROM people WHERE y = 1970",
    "INSERT INTO people VALUES ('new@x', 2001, 1.005, NULL), ('none@x', NULL, NULL, '')",
    "DELETE FROM log WHERE a < 6",
    "UPDATE log SET y = 1999 WHERE a = 10",
    "ALTER DOMAIN year ADD CONSTRAINT recent CHECK (VALUE < 2100)",
    "ALTER DOMAIN year DROP CONSTRAINT recent; INSERT INTO people VALUES ('far@x', 2500, 0, 'far')",
    "ALTER DOMAIN email RENAME TO address",
    "TRUNCATE log; INSERT INTO log VALUES (1951, 5), (NULL, NULL)",
    "ALTER TABLE people ALTER COLUMN y TYPE int",
    "UPDATE people SET y = y + 1 WHERE y < 1960",
    "ALTER TABLE people ALTER COLUMN a TYPE numeric(9, 3)",
    "CREATE DOMAIN small AS amount CHECK (VALUE < 1e5); ALTER TABLE log ALTER COLUMN a TYPE small; INSERT INTO log VALUES (1952, 7.125)",
];

fn check(mode: FreshnessMode) {
    let world = World::start(mode, SETUP);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, STATEMENTS);
    settle(&mut both.through, "SELECT count(*) FROM people, log");
    let is_at_once = mode == FreshnessMode::Exact;
    for change in std::iter::once(&"SELECT 1").chain(CHANGES) {
        if is_at_once {
            world.past(change);
        } else {
            let reply = both.through.simple(change).expect("answers");
            assert_eq!(reply.error(), None, "{change}");
        }
        for sql in STATEMENTS {
            loop {
                // Each asks both and compares.
                let (route, reason) = both.routed(change, sql);
                if route == "hit" || route == "local" {
                    break;
                }
                assert!(will_pass(&reason), "{change}: {sql}: {route} {reason}");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
    if !is_at_once {
        return;
    }
    // An operator on the domain itself is a better match than the one below it.
    let own = "SELECT count(*) FROM log WHERE y = y";
    assert!(matches!(settle(&mut both.through, own).route.as_str(), "hit" | "local"));
    world.past(
        "CREATE FUNCTION never(year, year) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
         CREATE OPERATOR = (LEFTARG = year, RIGHTARG = year, FUNCTION = never)",
    );
    for _ in 0..5 {
        assert_eq!(both.routed("an operator", own).0, "relay");
    }
    own_overloads(&world, &mut both);
}

/// Functions, aggregates and operators that are declared with a domain, or one below it, are better matches than those of the type.
fn own_overloads(world: &World, both: &mut Both) {
    world.past(
        "CREATE DOMAIN number AS int; CREATE DOMAIN digit AS number; CREATE DOMAIN name_of AS text;
         CREATE TABLE e (id int PRIMARY KEY, y number, z digit, l name_of, plain int);
         INSERT INTO e SELECT g, g % 5 + 1, g % 4, 'L' || g % 4, g FROM generate_series(1, 20) g",
    );
    let statements = [
        "SELECT id, upper(l) FROM e ORDER BY id",
        "SELECT id, abs(y), abs(z) FROM e ORDER BY id",
        "SELECT sum(y), max(z) FROM e",
        "SELECT id FROM e WHERE y = 2 ORDER BY id",
        "SELECT id FROM e WHERE y IN (1, 2) ORDER BY id",
        "SELECT id, y IS DISTINCT FROM 2 FROM e ORDER BY id",
        "SELECT a.id FROM e a JOIN e b USING (y) ORDER BY a.id, b.id",
    ];
    let mut compare = |change: &str| {
        for sql in statements {
            (0..6).for_each(|_| drop(both.routed(change, sql)));
        }
    };
    compare("the table");
    for change in [
        "CREATE FUNCTION upper(name_of) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'U!' $$",
        "CREATE FUNCTION abs(number) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT -7 $$",
        "CREATE FUNCTION ysum(int, number) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT 42 $$;
         CREATE AGGREGATE sum(number) (sfunc = ysum, stype = int, initcond = '0')",
        "CREATE FUNCTION eqy(number, int) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT true $$;
         CREATE OPERATOR = (leftarg = number, rightarg = int, function = eqy)",
        "CREATE FUNCTION eqyy(number, number) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT false $$;
         CREATE OPERATOR = (leftarg = number, rightarg = number, function = eqyy)",
    ] {
        world.past(change);
        compare(change);
    }
}

#[test]
fn changes_of_rows_and_of_domains_count_at_once() {
    check(FreshnessMode::Exact);
}

#[test]
fn in_session_mode_changes_through_freshet_count_at_once() {
    check(FreshnessMode::Session);
}

/// Without audits, which would keep what is described otherwise away.
#[test]
fn what_is_made_of_a_domain_is_described_as_upstream_does() {
    freshet::session::local::patient::want();
    let world = World::start(FreshnessMode::Session, SETUP);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    settle(&mut both.through, "SELECT count(*) FROM people, log");
    let of_amount = [
        "lag(a) OVER (ORDER BY e)",
        "lead(a, 1, a) OVER (ORDER BY e)",
        "first_value(a) OVER (ORDER BY e)",
        "nth_value(e, 2) OVER (ORDER BY e)",
        "nullif(a, 1)",
        "nullif(1.5, a)",
        "nullif(e, 'x')",
        "coalesce(a, 0)",
        "coalesce(a, a)",
        "coalesce(a, 1::numeric(8, 2))",
        "coalesce(NULL, a)",
        "coalesce(e, 'none')",
        "coalesce(e, 'none'::varchar(40))",
        "greatest(a, 1::numeric(8, 2))",
        "CASE WHEN y > 1960 THEN a ELSE 1::numeric(8, 2) END",
        "CASE WHEN y > 1960 THEN e END",
    ];
    let mut statements: Vec<String> =
        of_amount.iter().map(|made| format!("SELECT {made} AS made FROM people ORDER BY e")).collect();
    statements.extend(
        [
            "SELECT mode() WITHIN GROUP (ORDER BY a) FROM people",
            "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY e) FROM people",
            "SELECT percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY a) FROM people",
            "SELECT a FROM people UNION ALL SELECT a FROM log ORDER BY 1",
            "SELECT a FROM people UNION SELECT 1::numeric(8, 2) ORDER BY 1",
            "SELECT max(a), min(e) FROM people",
            "SELECT made FROM (SELECT coalesce(a, 1::numeric(8, 2)) AS made FROM people) q ORDER BY 1",
            "SELECT q.a FROM (VALUES (1::numeric(8, 2))) v (a) JOIN log q USING (a) ORDER BY 1",
        ]
        .map(str::to_owned),
    );
    for sql in &statements {
        // Compared with its description.
        both.routed("nothing", sql);
    }
    // A domain without a modifier has none to lose.
    for made in [
        "lag(y) OVER (ORDER BY e)",
        "nullif(y, 1960)",
        "coalesce(y, 0)",
        "CASE WHEN a > 5 THEN y END",
        "coalesce(note, 'x')",
    ] {
        let sql = format!("SELECT {made} AS made, a FROM people ORDER BY e");
        let (route, reason) = both.routed("nothing", &sql);
        assert!(route == "local" || route == "hit", "{sql}: {route} {reason}");
    }
}
