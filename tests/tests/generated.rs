//! Generated columns, which the stream does not carry: computed here of those that it does.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, settle, until, will_pass};

const SETUP: &str = "
    CREATE TABLE items (
        id int PRIMARY KEY, name text, email varchar(60), price numeric(10, 2), qty int, data jsonb, a float8, b int, tags text[],
        total numeric(12, 2) GENERATED ALWAYS AS (price * qty) STORED,
        low text GENERATED ALWAYS AS (lower(email)) STORED,
        kind text GENERATED ALWAYS AS (data ->> 'kind') STORED,
        size varchar(5) GENERATED ALWAYS AS (CASE WHEN qty > 5 THEN 'large' WHEN qty IS NULL THEN NULL ELSE 'small' END) STORED,
        is_cheap boolean GENERATED ALWAYS AS (price < 10) STORED,
        filled int NOT NULL GENERATED ALWAYS AS (COALESCE(b, -1)) STORED,
        ratio float8 GENERATED ALWAYS AS (a / (b + 1)) STORED,
        label char(8) GENERATED ALWAYS AS (name || '-' || id::text) STORED,
        tag_count int GENERATED ALWAYS AS (cardinality(tags)) STORED);
    INSERT INTO items (id, name, email, price, qty, data, a, b, tags)
    SELECT n, 'n' || n % 17, 'User' || n || '@Example.org', n / 7.0, nullif(n % 11, 3), jsonb_build_object('kind', 'k' || n % 4), n / 3.0,
           nullif(n % 13, 5), CASE WHEN n % 6 > 0 THEN ARRAY['x', 'y'] END
      FROM generate_series(1, 400) n;
    CREATE TABLE other (id int PRIMARY KEY, item int, n int, twice int GENERATED ALWAYS AS (n * 2) STORED);
    INSERT INTO other (id, item, n) SELECT n, n * 3, n FROM generate_series(1, 300) n;
    CREATE VIEW totals AS SELECT kind, sum(total) AS sum, max(low) AS last FROM items GROUP BY kind;
    CREATE VIEW plain AS SELECT id, name, total FROM items;
    CREATE TABLE parted (id int, n int, twice int GENERATED ALWAYS AS (n * 2) STORED, PRIMARY KEY (id)) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
    CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (1000);
    INSERT INTO parted (id, n) SELECT n, n % 9 FROM generate_series(1, 300) n;
    CREATE FUNCTION own(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
    CREATE TABLE strange (
        id int PRIMARY KEY, f float8, n int, raw bytea,
        f_text text GENERATED ALWAYS AS (f::text) STORED,
        raw_text text GENERATED ALWAYS AS (raw::text) STORED,
        of_own int GENERATED ALWAYS AS (own(n)) STORED,
        words tsvector GENERATED ALWAYS AS (to_tsvector('simple', 'a b')) STORED,
        good int GENERATED ALWAYS AS (n % 3) STORED);
    INSERT INTO strange (id, f, n, raw) SELECT n, n / 3.0, n, '\\x00ff' FROM generate_series(1, 50) n";

const STATEMENTS: &[&str] = &[
    "SELECT * FROM items ORDER BY id",
    "SELECT id, total, size, label FROM items WHERE id = 77",
    "SELECT * FROM items WHERE id IN (3, 4, 399) ORDER BY id",
    "SELECT kind, count(*), sum(total), min(low), max(ratio) FROM items GROUP BY kind ORDER BY kind",
    "SELECT size, label, length(label), is_cheap FROM items WHERE is_cheap AND total > 20 ORDER BY total DESC, id LIMIT 20",
    "SELECT id FROM items WHERE low = 'user7@example.org'",
    "SELECT id, filled FROM items WHERE filled < 0 ORDER BY id",
    "SELECT o.id, i.filled, i.total, i.size FROM other o LEFT JOIN items i ON i.id = o.item ORDER BY o.id",
    "SELECT i.id, o.twice FROM items i LEFT JOIN other o ON o.item = i.id ORDER BY i.id",
    "SELECT i.id FROM items i JOIN other o ON o.twice = i.tag_count ORDER BY i.id, o.id",
    "SELECT id, name FROM items WHERE id IN (SELECT twice FROM other WHERE n < 20) ORDER BY id",
    "SELECT id, (SELECT max(o.twice) FROM other o WHERE o.item = items.id) AS most FROM items ORDER BY id",
    "SELECT kind, size, sum(total) FROM items GROUP BY ROLLUP (kind, size) ORDER BY kind, size, grouping(kind, size)",
    "SELECT id, sum(total) OVER (PARTITION BY kind ORDER BY id) FROM items ORDER BY id",
    "SELECT DISTINCT size, is_cheap FROM items ORDER BY size, is_cheap",
    "SELECT twice FROM other WHERE n < 4 UNION SELECT tag_count FROM items ORDER BY 1",
    "WITH q AS (SELECT * FROM items WHERE qty > 3) SELECT kind, avg(total) FROM q GROUP BY kind ORDER BY kind",
    "SELECT i.* FROM (SELECT * FROM items) i WHERE i.total BETWEEN 30 AND 60 ORDER BY i.id",
    "SELECT q.x1, q.low FROM items AS q (x1, x2, x3) ORDER BY q.x1",
    "SELECT json_agg(to_jsonb(o) ORDER BY o.id) FROM other o WHERE o.id < 4",
    "SELECT * FROM totals ORDER BY kind",
    "SELECT id, total FROM plain WHERE total > 200 ORDER BY id",
    "SELECT * FROM parted ORDER BY id",
    "SELECT twice, count(*) FROM parted GROUP BY twice ORDER BY twice",
    "SELECT id, good FROM strange WHERE good = 1 ORDER BY id",
];

/// What is done past freshet; each is in force for the next read.
const CHANGES: &[&str] = &[
    "UPDATE items SET qty = qty + 1 WHERE id % 3 = 0",
    "UPDATE items SET email = upper(email), b = NULL WHERE id BETWEEN 70 AND 90",
    "INSERT INTO items (id, name, email, price, qty, data, a, b) VALUES (1000, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
         (1001, 'x', 'user7@example.org', 3, 3, '{}', 'NaN', 0), (1002, 'y', 'Ünï@X.org', 99999.99, 9, '{\"kind\": 5}', '-0', 1)",
    "DELETE FROM items WHERE id < 5; UPDATE other SET n = -n WHERE id % 7 = 0",
    "UPDATE parted SET n = n + 1 WHERE id > 90 AND id < 110; INSERT INTO parted (id, n) VALUES (999, 4)",
    "ALTER TABLE items RENAME COLUMN data TO facts",
    "UPDATE items SET facts = '{\"kind\": \"new\"}' WHERE id % 5 = 0",
    "ALTER TABLE items RENAME COLUMN facts TO data",
    "ALTER TABLE items ALTER COLUMN filled DROP EXPRESSION; INSERT INTO items (id, filled) VALUES (2000, -77)",
    "ALTER TABLE items ADD COLUMN price2 numeric GENERATED ALWAYS AS (price * 2) STORED",
    "ALTER TABLE other DROP COLUMN twice; ALTER TABLE other ADD COLUMN twice int GENERATED ALWAYS AS (n + n % 2 - 1) STORED",
    "BEGIN; UPDATE other SET n = n + 1; ALTER TABLE other RENAME n TO m; ALTER TABLE other ADD n int DEFAULT 5; COMMIT",
    "ALTER TABLE other RENAME n TO k; ALTER TABLE other RENAME m TO n",
    "TRUNCATE parted; INSERT INTO parted (id, n) VALUES (1, 1), (500, 2)",
];

/// Compared with upstream until it is computed here.
fn computed(both: &mut Both, after: &str, sql: &str) {
    loop {
        let (route, reason) = both.routed(after, sql);
        if route == "local" {
            return;
        }
        assert!(will_pass(&reason), "{after}: {sql}: {route} {reason}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn relayed(both: &mut Both, sql: &str, why: &str) {
    let (route, reason) = loop {
        let (route, reason) = both.routed("nothing", sql);
        if route != "relay" || !will_pass(&reason) {
            break (route, reason);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert!(route == "relay" && reason.contains(why), "{sql}: {route} {reason}");
}

fn open(world: &World) -> Both {
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, STATEMENTS);
    both.set("SET extra_float_digits = 1");
    // What is kept of upstream's replies would answer, too.
    assert_eq!(both.through.simple("SET freshet.route = local").expect("answers").error(), None);
    settle(
        &mut both.through,
        "SELECT count(*) FROM items, (SELECT max(id) FROM other) o, (SELECT max(id) FROM parted) p, (SELECT max(id) FROM strange) s",
    );
    both
}

fn check(mode: FreshnessMode) {
    let world = World::start(mode, SETUP);
    let mut both = open(&world);
    for change in std::iter::once(&"SELECT 1").chain(CHANGES) {
        if mode == FreshnessMode::Exact {
            world.past(change);
        } else {
            let reply = both.through.simple(change).expect("answers");
            assert_eq!(reply.error(), None, "{change}");
        }
        for sql in STATEMENTS {
            computed(&mut both, change, sql);
        }
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}

#[test]
fn rows_and_what_is_changed_of_their_columns_count_at_once() {
    check(FreshnessMode::Exact);
}

#[test]
fn in_session_mode_changes_through_freshet_count_at_once() {
    check(FreshnessMode::Session);
}

/// Without audits, which would keep what is described otherwise away.
#[test]
fn they_are_described_as_upstream_does() {
    freshet::session::local::patient::want();
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut both = open(&world);
    STATEMENTS.iter().for_each(|sql| computed(&mut both, "nothing", sql));
}

#[test]
fn what_cannot_be_computed_of_the_row_goes_upstream_and_says_why() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut both = open(&world);
    for column in ["f_text", "raw_text"] {
        let sql = format!("SELECT id, {column} FROM strange ORDER BY id");
        relayed(&mut both, &sql, "the settings of who wrote the row");
    }
    relayed(&mut both, "SELECT of_own FROM strange ORDER BY id", "column of_own");
    relayed(&mut both, "SELECT words FROM strange ORDER BY id", "column words");
    relayed(&mut both, "SELECT * FROM strange ORDER BY id", "column");
    relayed(&mut both, "SELECT id, xmin FROM strange ORDER BY id", "");
}

/// ALTER COLUMN ... TYPE converts what is stored; it is not computed anew. Nor need it have been when freshet saw the table first.
#[test]
fn what_is_stored_otherwise_is_not_computed() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE early (id int PRIMARY KEY, c numeric(8, 2), m numeric(6, 1) GENERATED ALWAYS AS (c * 2) STORED);
         INSERT INTO early (id, c) SELECT n, n * 1.37 FROM generate_series(1, 50) n;
         CREATE TABLE late (LIKE early INCLUDING ALL); INSERT INTO late (id, c) SELECT id, c FROM early;
         ALTER TABLE early ALTER COLUMN m TYPE numeric(10, 3);
         CREATE TABLE twice (LIKE late INCLUDING ALL); INSERT INTO twice (id, c) SELECT id, c FROM late",
    );
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    let read = |table: &str| format!("SELECT id, c, m FROM {table} ORDER BY id");
    assert_eq!(both.through.simple("SET freshet.route = local").expect("answers").error(), None);
    relayed(&mut both, &read("early"), "column m");
    computed(&mut both, "nothing", "SELECT id, c FROM early ORDER BY id");
    for table in ["late", "twice"] {
        computed(&mut both, "nothing", &read(table));
    }
    world.past("ALTER TABLE late ALTER COLUMN m TYPE numeric(10, 3)");
    world.past(
        "ALTER TABLE twice ALTER COLUMN m TYPE numeric(8, 0); ALTER TABLE twice ALTER COLUMN m TYPE numeric(6, 1)",
    );
    for table in ["late", "twice"] {
        relayed(&mut both, &read(table), "column m");
        computed(&mut both, "nothing", &format!("SELECT id, c FROM {table} ORDER BY id"));
    }
    let (route, reason) = both.routed("nothing", "SELECT count(*) FROM late WHERE m = 2.7");
    assert_eq!(route, "relay", "{reason}");
    // Computed anew, it is what it says.
    world.past("UPDATE late SET c = c + 1; TRUNCATE twice; INSERT INTO twice (id, c) SELECT id, c FROM late");
    world.past("ALTER TABLE late ADD COLUMN n int; ALTER TABLE twice ADD COLUMN n int");
    for table in ["late", "twice"] {
        // The catalog is read once more when the copy has told.
        until("computed again", || both.routed("an UPDATE of all", &read(table)).0 == "local");
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}

/// The privilege of a generated column is its own: who may read it need not be allowed to read what it is computed of.
#[test]
fn privileges_are_those_of_the_column_itself() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    world.past(
        "CREATE ROLE clerk LOGIN; GRANT SELECT (id, total, low) ON items TO clerk; GRANT SELECT (id, n) ON other TO clerk",
    );
    let (database, direct) = (&world.database, world.cluster.address());
    let mut through = RawClient::connect(world.freshet.address(), "clerk", database).expect("connects");
    let mut direct = RawClient::connect(direct, "clerk", database).expect("connects");
    assert_eq!(through.simple("SET freshet.route = local").expect("answers").error(), None);
    let allowed = "SELECT id, total, low FROM items ORDER BY id";
    until("answered here", || {
        assert_eq!(through.simple(allowed).expect("answers"), direct.simple(allowed).expect("answers"));
        through.last().expect("answers").0 == "local"
    });
    let allowed_of_other = "SELECT id, n FROM other ORDER BY id";
    until("answered here", || {
        assert_eq!(
            through.simple(allowed_of_other).expect("answers"),
            direct.simple(allowed_of_other).expect("answers")
        );
        through.last().expect("answers").0 == "local"
    });
    for refused in ["SELECT id, price FROM items", "SELECT id, kind FROM items", "SELECT id, twice FROM other"] {
        let here = through.simple(refused).expect("answers");
        assert_eq!(here, direct.simple(refused).expect("answers"), "{refused}");
        assert!(here.error().is_some(), "{refused}");
    }
    world.past("REVOKE SELECT (low) ON items FROM clerk");
    assert!(through.simple(allowed).expect("answers").error().is_some());
}

/// Partitions may compute it otherwise than the table above them.
#[test]
fn partitions_that_differ_are_upstream_s() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    if world.cluster.major() < 16 {
        return;
    }
    let mut both = open(&world);
    computed(&mut both, "nothing", "SELECT * FROM parted ORDER BY id");
    world.past(
        "CREATE TABLE parted_3 (id int NOT NULL, n int, twice int GENERATED ALWAYS AS (n * 3) STORED);
         ALTER TABLE parted ATTACH PARTITION parted_3 FOR VALUES FROM (1000) TO (2000);
         INSERT INTO parted (id, n) VALUES (1500, 7)",
    );
    relayed(&mut both, "SELECT * FROM parted ORDER BY id", "column twice");
    computed(&mut both, "a partition", "SELECT * FROM parted_3 ORDER BY id");
    computed(&mut both, "a partition", "SELECT id, n FROM parted ORDER BY id");
}

/// Since PostgreSQL 18.
#[test]
fn virtual_ones_are_computed_where_that_cannot_raise() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    if world.cluster.major() < 18 {
        return;
    }
    world.past(
        "CREATE TABLE virtual (id int PRIMARY KEY, n int, name varchar(20), low text GENERATED ALWAYS AS (lower(name)),
                               big boolean GENERATED ALWAYS AS (n > 10), half int GENERATED ALWAYS AS (100 / n),
                               s int GENERATED ALWAYS AS (COALESCE(n, 0)));
         INSERT INTO virtual SELECT n, nullif(n, 7), 'Name' || n FROM generate_series(1, 40) n",
    );
    let mut both = open(&world);
    settle(&mut both.through, "SELECT count(*) FROM virtual");
    for sql in [
        "SELECT id, low, big, s FROM virtual ORDER BY id",
        "SELECT v.id, w.s, w.low FROM virtual v LEFT JOIN virtual w ON w.id = v.id + 20 ORDER BY v.id",
        "SELECT big, count(*) FROM virtual GROUP BY big ORDER BY big",
        "SELECT id FROM virtual WHERE low = 'name9'",
    ] {
        computed(&mut both, "nothing", sql);
    }
    relayed(&mut both, "SELECT id, half FROM virtual ORDER BY id", "may raise");
    world.past("INSERT INTO virtual VALUES (100, 0, NULL)");
    computed(&mut both, "an insert", "SELECT id, low, big, s FROM virtual ORDER BY id");
    let failing = "SELECT id, half FROM virtual ORDER BY id";
    assert_eq!(both.through.simple(failing).expect("answers"), both.direct.simple(failing).expect("answers"));
}
