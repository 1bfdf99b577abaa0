//! Views are answered by their stored query, with their owner's rights, and every change of them counts at once.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::world::{World, settle, until};

const SCHEMA: &str = "
    CREATE ROLE joe LOGIN; CREATE ROLE ann LOGIN; CREATE SCHEMA hidden; GRANT CREATE ON SCHEMA public TO ann;
    CREATE TABLE orders (id int PRIMARY KEY, customer int, placed timestamptz, amount numeric(10, 2), note varchar(20));
    CREATE TABLE hidden.customers (id int PRIMARY KEY, name text, since date);
    INSERT INTO orders SELECT n, n % 7, '2013-01-01 00:00+00'::timestamptz + n * interval '7 hours', n * 1.5, 'note ' || n
      FROM generate_series(1, 200) n;
    INSERT INTO hidden.customers SELECT n, 'Customer ' || n, '2012-06-01'::date + n FROM generate_series(0, 6) n;
    CREATE VIEW large AS SELECT id, customer, amount FROM orders WHERE amount > 100;
    CREATE VIEW per_customer (who, orders, total) AS
      SELECT c.name, count(*), sum(o.amount) FROM orders o JOIN hidden.customers c ON c.id = o.customer
       WHERE o.placed >= '2013-01-05 12:00+02' AND c.since > DATE '2012-06-02' GROUP BY c.name;
    CREATE VIEW top AS SELECT who, total FROM per_customer ORDER BY total DESC, who LIMIT 3;
    CREATE VIEW typed AS SELECT id, note, lower(note) AS low, amount::int AS whole, CASE WHEN id > 5 THEN 'a' ELSE 'b' END AS kind,
      coalesce(customer, 0) + 1 AS next, placed AT TIME ZONE 'UTC' AS utc FROM orders;
    CREATE VIEW lots AS SELECT DISTINCT customer % 3 AS rest FROM large;
    CREATE VIEW invoking WITH (security_invoker = true) AS SELECT id, amount FROM orders;
    CREATE VIEW over_invoking AS SELECT id FROM invoking;
    CREATE VIEW guarded WITH (security_barrier) AS SELECT id, 100 / (id + 5) AS rest FROM orders WHERE id < 20;
    GRANT SELECT ON large, top, invoking, over_invoking TO joe; GRANT SELECT (who) ON per_customer TO joe;
    GRANT SELECT ON orders TO ann; SET ROLE ann; CREATE VIEW anns AS SELECT id, amount FROM orders; GRANT SELECT ON anns TO joe;";

const QUERIES: &[&str] = &[
    "SELECT * FROM large ORDER BY id",
    "SELECT l.amount, count(*) FROM large l GROUP BY l.amount ORDER BY 1 LIMIT 7",
    "SELECT * FROM per_customer ORDER BY who",
    "SELECT who FROM per_customer WHERE total > 500 ORDER BY 1",
    "SELECT * FROM top",
    "SELECT t.who, p.orders FROM top t JOIN per_customer AS p (who, orders) ON p.who = t.who ORDER BY 1",
    "SELECT * FROM typed WHERE id < 9 ORDER BY id",
    "SELECT rest FROM lots ORDER BY rest",
    "SELECT count(*) FROM public.invoking",
    "SELECT max(id) FROM over_invoking",
    "SELECT id, rest FROM guarded WHERE id % 2 = 0 ORDER BY id",
    "SELECT sum(amount) FROM anns",
];

/// Each statement is compared at once, by the superuser and by joe.
const CHANGES: &[&str] = &[
    "UPDATE orders SET amount = amount + 1 WHERE id % 3 = 0",
    "CREATE OR REPLACE VIEW large AS SELECT id, customer, amount FROM orders WHERE amount > 200",
    "CREATE OR REPLACE VIEW large AS SELECT id, customer, amount, note FROM orders WHERE amount > 100",
    "ALTER VIEW typed RENAME COLUMN low TO lower_note",
    "ALTER TABLE orders RENAME COLUMN amount TO price",
    "ALTER TABLE hidden.customers RENAME TO clients",
    "ALTER TABLE hidden.clients SET SCHEMA public",
    "ALTER VIEW top RENAME TO topmost",
    "CREATE VIEW top AS SELECT 'nobody'::text AS who, 1.5 AS total",
    "DROP VIEW top; ALTER VIEW topmost RENAME TO top",
    "REVOKE SELECT ON orders FROM ann",
    "GRANT SELECT (id) ON orders TO ann",
    "GRANT SELECT (price) ON orders TO ann",
    "GRANT SELECT ON orders TO joe",
    "REVOKE SELECT ON orders FROM joe",
    "ALTER VIEW invoking SET (security_invoker = false)",
    "ALTER VIEW invoking RESET (security_invoker)",
    "REVOKE SELECT ON large FROM joe",
    "ALTER VIEW anns OWNER TO postgres",
    "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE orders DISABLE ROW LEVEL SECURITY",
    "CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'x' $$",
    "DROP FUNCTION public.lower(varchar)",
    "DROP VIEW lots",
    "CREATE VIEW lots AS SELECT DISTINCT customer % 2 AS rest FROM large",
    "BEGIN; ALTER VIEW large RENAME TO l2; CREATE VIEW large AS SELECT 7 AS id; DROP VIEW large; ALTER VIEW l2 RENAME TO large; COMMIT",
];

/// Views with their reader's rights are new in PostgreSQL 15.
fn on(cluster: &Cluster, sql: &str) -> String {
    if cluster.major() >= 15 {
        return sql.to_string();
    }
    sql.replace(" WITH (security_invoker = true)", "").replace("(security_invoker", "(security_barrier")
}

fn follow(mode: FreshnessMode) {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, &on(&cluster, SCHEMA));
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.freshness.mode = mode;
    });
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    let mut joe = Both::open(&freshet, &cluster, "joe", &database, QUERIES);
    // In session mode changes past freshet take a moment; through it they count at once.
    let mut writer = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    both.settle("the start", |_| false);
    joe.settle("the start", |_| false);
    both.assert_computed(|_| false);
    for change in CHANGES {
        let change = &on(&cluster, change);
        let reply =
            if mode == FreshnessMode::Exact { writer.direct.simple(change) } else { writer.through.simple(change) };
        assert_eq!(reply.expect("answers").error(), None, "{change}");
        both.compare_all(change);
        joe.compare_all(change);
        // Two changes make some of them upstream's for a while.
        if !change.contains("ENABLE ROW") && !change.contains("CREATE FUNCTION") {
            both.settle(change, |_| false);
            joe.settle(change, |_| false);
        }
    }
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

#[test]
fn every_change_of_a_view_counts_at_once() {
    follow(FreshnessMode::Exact);
}

#[test]
fn in_session_mode_changes_through_freshet_count_at_once() {
    follow(FreshnessMode::Session);
}

#[test]
fn a_view_means_what_it_meant_when_it_was_made_whatever_the_session_sets() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, &on(&cluster, SCHEMA));
    cluster.psql(
        &database,
        "CREATE SCHEMA mine; CREATE TABLE mine.orders (id int PRIMARY KEY, customer int, placed timestamptz, amount numeric(10, 2));
         CREATE VIEW at_times AS SELECT id, placed FROM orders WHERE placed < '2013-01-03 00:00+05' AND placed > '2013-01-01'::timestamptz;
         CREATE VIEW long AS SELECT id FROM orders WHERE placed - interval '-1 day +2:03' > '2013-02-01'::timestamptz",
    );
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    let queries = [
        "SELECT * FROM public.large ORDER BY id LIMIT 3",
        "SELECT * FROM public.at_times ORDER BY id",
        "SELECT count(*) FROM public.long",
        "SELECT who, total FROM public.per_customer ORDER BY who",
        "SELECT id, utc FROM public.typed WHERE id < 4 ORDER BY id",
    ];
    let mut local = 0;
    for settings in [
        "SET search_path = mine, public",
        "SET search_path = mine",
        "SET TimeZone = 'America/New_York'",
        "SET DateStyle = 'SQL, DMY'",
        "SET IntervalStyle = sql_standard",
        "SET DateStyle = 'German'",
    ] {
        both.through.simple(settings).expect("answers");
        both.direct.simple(settings).expect("answers");
        for _ in 0..40 {
            local += queries.iter().filter(|sql| both.compare(settings, sql).is_none()).count();
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert!(local > 400, "{local} of 1200 answered here");
}

/// A view's OID and its rule's are neighbours, and CREATE OR REPLACE changes both rows in one transaction: in a digest that
/// mixed them with too little difference, every fourth view's changes cancelled each other out.
#[test]
fn of_views_made_in_a_row_each_change_counts() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, &on(&cluster, SCHEMA));
    let define = |number: u32, bound: u32| {
        format!("CREATE OR REPLACE VIEW v{number} AS SELECT count(*) FROM orders WHERE id > {bound}")
    };
    (0..16).for_each(|number| drop(cluster.psql(&database, &define(number, 10))));
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    let limit = Instant::now() + Duration::from_secs(30);
    while (0..16).filter(|number| both.compare("the start", &format!("SELECT * FROM v{number}")).is_some()).count() > 0
    {
        assert!(Instant::now() < limit, "not answered here");
    }
    for round in 1..4 {
        for number in 0..16 {
            let sql = define(number, 10 + 10 * round);
            cluster.psql(&database, &sql);
            for _ in 0..4 {
                both.compare(&sql, &format!("SELECT * FROM v{number}"));
            }
        }
    }
}

#[test]
fn the_operator_is_told_what_is_answered_and_why_not() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, &on(&cluster, SCHEMA));
    cluster.psql(
        &database,
        "CREATE VIEW sampled AS SELECT id FROM orders TABLESAMPLE bernoulli (50);
         CREATE MATERIALIZED VIEW kept AS SELECT 1 AS one; CREATE VIEW over_kept AS SELECT one + 1 AS two FROM kept;
         CREATE VIEW sampled_kept AS SELECT one FROM kept TABLESAMPLE system (50);
         CREATE TABLE parts (id int) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF parts FOR VALUES FROM (1) TO (9);
         CREATE TABLE odd (id int) PARTITION BY RANGE (id); CREATE UNLOGGED TABLE odd_part PARTITION OF odd DEFAULT;",
    );
    let mut settings = freshet_config::Settings::default();
    settings.upstream.url = cluster.url(&database);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let report = runtime.block_on(freshet::check::check(&settings)).expect("upstream answers").text;
    for line in [
        "view       public.large: can be answered",
        "view       public.sampled: relayed\n           why:  ",
        "view       public.kept: materialized, replies are kept until it is refreshed",
        "view       public.over_kept: replies are kept\n           why:  ",
        "view       public.sampled_kept: relayed\n           why:  ",
        "table      public.parts: made of 1 partitions",
        "relation   public.odd: relayed\n           why:  it is a partitioned table with a partition that is no ordinary table",
    ] {
        assert!(report.contains(line), "{line}: {report}");
    }
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    both.settle("the start", |_| false);
    let rows = both.through.simple("SELECT name, state FROM freshet.tables").expect("answers").rows();
    let is_told =
        |name: &[u8]| rows.iter().any(|row| row[0].as_deref() == Some(name) && row[1].as_deref() == Some(b"mirrored"));
    assert!(is_told(b"public.orders") && is_told(b"public.large"), "{rows:?}");
}

/// The text of a view is made under locks of all that it names. A migration that holds one of its tables, and then wants another, is
/// not in freshet's way for more than a moment, nor freshet in its; views of other tables are answered meanwhile.
#[test]
fn a_migration_is_not_in_the_way_and_has_nothing_in_its_way() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE held (id int PRIMARY KEY); CREATE TABLE wanted (id int PRIMARY KEY); INSERT INTO wanted VALUES (1);
         CREATE VIEW a1 AS SELECT id FROM wanted; CREATE VIEW a2 AS SELECT id FROM held; CREATE VIEW a3 AS SELECT w.id FROM wanted w, held h;
         CREATE VIEW a4 AS SELECT w.id FROM held h, wanted w; CREATE VIEW a5 AS SELECT count(*) FROM wanted;
         CREATE FUNCTION of_held() RETURNS bigint STABLE BEGIN ATOMIC SELECT count(*) FROM held; END;",
    );
    let mut client = world.client();
    settle(&mut client, "SELECT id FROM a1");
    settle(&mut client, "SELECT id FROM a2");
    let mut migration = world.direct();
    let mut migrate = |sql: &str| {
        let reply = migration.simple(sql).expect("answers");
        assert_eq!(reply.error(), None, "{sql}");
    };
    migrate("SET lock_timeout = '900ms'; BEGIN; LOCK TABLE held IN ACCESS EXCLUSIVE MODE");
    // What every view's text may hang on.
    world.past("CREATE SCHEMA changed");
    until("what the migration does not hold is answered from the new catalog", || {
        assert_eq!(client.simple("SELECT id FROM a1").expect("answers").text(), "1");
        client.last().expect("answers").0 != "relay"
    });
    migrate("ALTER TABLE wanted ADD COLUMN more int");
    migrate("ROLLBACK");
    until("the other view is answered again", || {
        assert_eq!(client.simple("SELECT id FROM a2").expect("answers").text(), "");
        client.last().expect("answers").0 != "relay"
    });
}
