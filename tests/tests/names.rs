//! Names with all their parts, and what has none.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::world::{World, settle, until};

const SETUP: &str = r#"
    CREATE TABLE orders (id int PRIMARY KEY, client int, total numeric(8, 2));
    INSERT INTO orders SELECT n, n % 3, n / 4.0 FROM generate_series(1, 20) n;
    CREATE SCHEMA sales; CREATE TABLE sales.clients (id int PRIMARY KEY, name text);
    INSERT INTO sales.clients VALUES (0, 'a'), (1, 'b'), (2, 'c');
    CREATE TABLE rings (id int PRIMARY KEY, ring circle); INSERT INTO rings VALUES (1, '<(0,0),2>')"#;

/// `%`: the database's name. dbt and its kin write every table so.
const QUALIFIED: &[&str] = &[
    r#"SELECT * FROM "%"."public"."orders" ORDER BY id"#,
    r#"SELECT orders.id, "%".public.orders.total FROM "%"."public"."orders" WHERE "%".public.orders.client = 1 ORDER BY 1"#,
    r#"SELECT "%".sales.clients.* FROM "%".sales.clients ORDER BY id"#,
    r#"SELECT c.name, sum(o.total) FROM "%"."public"."orders" o JOIN "%"."sales"."clients" AS c ON c.id = o.client GROUP BY 1 ORDER BY 1"#,
    r#"WITH o AS (SELECT * FROM "%"."public"."orders") SELECT count(*) FROM o WHERE EXISTS (SELECT 1 FROM "%".sales.clients WHERE "%".sales.clients.id = o.client)"#,
];

#[test]
fn tables_are_named_with_their_database() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    let named = |sql: &str| sql.replace('%', &world.database);
    for sql in QUALIFIED {
        assert_eq!(settle(&mut both.through, &named(sql)).route, "local", "{sql}");
        both.set("SET freshet.route = 'local'");
        assert_eq!(both.routed("", &named(sql)).0, "local", "{sql}");
        both.set("RESET freshet.route");
    }
    // What upstream computes is kept by what it reads.
    let kept = named(r#"SELECT radius(ring) FROM "%".public.rings"#);
    until("kept", || both.routed("", &kept).0 == "hit");
    world.past("UPDATE rings SET ring = '<(0,0),3>'");
    both.routed("an UPDATE", &kept);
    // Another database's, a schema of the database's name, and names that are too long.
    let quoted = [
        r#"SELECT count(*) FROM "postgres"."public"."orders""#,
        r#"SELECT "postgres".public.orders.id FROM public.orders"#,
        r#"SELECT "postgres".public.orders.* FROM public.orders"#,
        r#"SELECT count(*) FROM "%"."%"."public"."orders""#,
        r#"SELECT "%"."%".public.orders.id FROM public.orders"#,
        r#"SELECT "%".orders.id FROM public.orders"#,
    ];
    for sql in quoted {
        for _ in 0..3 {
            assert_eq!(both.routed("", &named(sql)).0, "relay", "{sql}");
        }
    }
    let database = &world.database;
    world.past(&format!(r#"CREATE SCHEMA "{database}"; CREATE TABLE "{database}".orders (id int PRIMARY KEY)"#));
    for sql in [r#"SELECT count(*) FROM "%".orders"#, r#"SELECT "%".orders.id FROM "%".orders"#, QUALIFIED[1]] {
        settle(&mut both.through, &named(sql));
        both.routed("a schema of the database's name", &named(sql));
    }
    assert_eq!(world.freshet.status(database, "wrong_answers"), "0");
}

/// PostgreSQL asks for the name of a subquery in FROM up to version 15.
#[test]
fn subqueries_without_a_name() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    settle(&mut both.through, "SELECT count(*) FROM orders, sales.clients");
    let version = world.cluster.psql(&world.database, "SHOW server_version_num");
    let is_known = version.parse::<u32>().expect("a number") >= 160_000;
    for sql in [
        "SELECT count(*) FROM (SELECT client FROM orders GROUP BY client)",
        "SELECT client, n FROM (SELECT client, count(*) AS n FROM orders GROUP BY client) ORDER BY client",
        "SELECT * FROM (SELECT id FROM orders WHERE id < 4), (VALUES (1), (2)) ORDER BY 1, 2",
        "SELECT name, n FROM sales.clients c JOIN (SELECT client, count(*) AS n FROM orders GROUP BY client) ON client = c.id ORDER BY 1",
        "SELECT c.id, n FROM sales.clients c, LATERAL (SELECT count(*) AS n FROM orders WHERE client = c.id) ORDER BY 1",
    ] {
        if is_known {
            assert_eq!(settle(&mut both.through, sql).route, "local", "{sql}");
            both.set("SET freshet.route = 'local'");
            assert_eq!(both.routed("", sql).0, "local", "{sql}");
            both.set("RESET freshet.route");
        } else {
            assert_eq!(both.routed("", sql).0, "relay", "{sql}");
        }
    }
    // By no name is it found, nor by PostgreSQL's for it.
    for sql in [
        "SELECT unnamed_subquery.id FROM (SELECT id FROM orders)",
        "SELECT unnamed_subquery.* FROM (SELECT id FROM orders)",
        "SELECT \"\".id FROM (SELECT id FROM orders)",
        "SELECT id FROM (SELECT id FROM orders), (SELECT id FROM sales.clients)",
    ] {
        assert_eq!(both.routed("", sql).0, "relay", "{sql}");
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}
