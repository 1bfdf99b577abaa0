//! Definitions changed past freshet by statements that no other suite makes: in mode exact the very next read is upstream's, rows or error,
//! and later ones are answered here again.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;
use freshet_tests::world::World;

fn start(cluster: &Cluster, database: &str) -> Freshet {
    Freshet::start(&cluster.url(database), |settings| {
        settings.freshness.mode = FreshnessMode::Exact;
    })
}

/// Makes each change past freshet: the sessions compare their queries at once, and until all that upstream answers is answered here.
fn follow(writer: &mut RawClient, sessions: &mut [Both], changes: &[&str]) {
    for change in changes {
        let reply = writer.simple(change).expect("answers");
        assert_eq!(reply.error(), None, "{change}");
        for session in &mut *sessions {
            session.compare_all(change);
        }
        for session in &mut *sessions {
            session.settle(change, |_| false);
        }
    }
}

const OWNED: &str = "
    CREATE ROLE ann LOGIN; CREATE ROLE ben LOGIN; CREATE ROLE joe LOGIN; GRANT CREATE ON SCHEMA public TO ann, ben;
    SET ROLE ann;
    CREATE TABLE orders (id int PRIMARY KEY, amount int); INSERT INTO orders SELECT n, n * 3 FROM generate_series(1, 50) n;
    CREATE TABLE granted (id int PRIMARY KEY, v text); INSERT INTO granted VALUES (1, 'one'); GRANT SELECT ON granted TO joe;
    CREATE VIEW large AS SELECT id FROM orders WHERE amount > 60; GRANT SELECT ON large TO joe";

const READS_OF_OWNED: &[&str] = &[
    "SELECT count(*), sum(amount) FROM orders",
    "SELECT id, v FROM granted ORDER BY id",
    // By its owner's rights.
    "SELECT count(*), max(id) FROM large",
];

const OWNERS: &[&str] = &[
    "ALTER TABLE orders OWNER TO ben",
    "UPDATE orders SET amount = amount + 1 WHERE id < 30",
    "REASSIGN OWNED BY ann TO ben",
    "ALTER TABLE granted OWNER TO postgres",
    "REASSIGN OWNED BY ben TO ann",
    "ALTER TABLE orders OWNER TO postgres; GRANT SELECT ON orders TO ann",
    "REVOKE SELECT ON orders FROM ann",
    "ALTER TABLE orders OWNER TO ann",
    "INSERT INTO orders VALUES (100, 1000)",
    "REASSIGN OWNED BY ann TO postgres",
    "DROP OWNED BY joe",
];

#[test]
fn a_table_is_read_by_its_owners_rights_whoever_that_is() {
    // Of its own, as it makes roles.
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, OWNED);
    let freshet = start(&cluster, &database);
    let open = |user: &str| Both::open(&freshet, &cluster, user, &database, READS_OF_OWNED);
    let mut sessions = ["ann", "ben", "joe", "postgres"].map(open);
    for session in &mut sessions {
        session.settle("the start", |_| false);
    }
    let mut writer = RawClient::connect(cluster.address(), "postgres", &database).expect("connects");
    follow(&mut writer, &mut sessions, OWNERS);
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

const KEPT: &str = "
    CREATE TABLE kept (id int PRIMARY KEY, v int); INSERT INTO kept SELECT n, n FROM generate_series(1, 20) n;
    CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'public'); GRANT SELECT ON t TO guest";

const READS_OF_NEW: &[&str] =
    &["SELECT count(*), sum(v) FROM kept", "SELECT id, v FROM later ORDER BY id", "SELECT id, v FROM t ORDER BY id"];

/// What is granted by default counts for what is made afterwards.
const DEFAULT_PRIVILEGES: &[&str] = &[
    "CREATE TABLE later (id int PRIMARY KEY, v int); INSERT INTO later VALUES (1, 1)",
    "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO guest",
    "DROP TABLE later; CREATE TABLE later (id int PRIMARY KEY, v int); INSERT INTO later VALUES (1, 2), (2, 2)",
    "DROP TABLE kept; CREATE TABLE kept (id int PRIMARY KEY, v int); INSERT INTO kept VALUES (7, 7)",
    "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM guest",
    "DROP TABLE later; CREATE TABLE later (id int PRIMARY KEY, v int); INSERT INTO later VALUES (1, 3)",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO PUBLIC",
    "DROP TABLE later; CREATE TABLE later (id int PRIMARY KEY, v int); INSERT INTO later VALUES (1, 4)",
    // A schema that guest may not look into is none of its path.
    "CREATE SCHEMA early; CREATE TABLE early.t (id int PRIMARY KEY, v text); INSERT INTO early.t VALUES (2, 'early')",
    "DROP SCHEMA early CASCADE; ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO guest;
     ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO guest",
    "CREATE SCHEMA early; CREATE TABLE early.t (id int PRIMARY KEY, v text); INSERT INTO early.t VALUES (3, 'granted')",
    "DROP SCHEMA early CASCADE; ALTER DEFAULT PRIVILEGES REVOKE USAGE ON SCHEMAS FROM guest",
    "CREATE SCHEMA early; CREATE TABLE early.t (id int PRIMARY KEY, v text); INSERT INTO early.t VALUES (4, 'hidden')",
];

#[test]
fn a_table_is_read_by_the_default_privileges_of_when_it_was_made() {
    let world = World::start(FreshnessMode::Exact, KEPT);
    let open = |user: &str| Both::open(&world.freshet, world.cluster, user, &world.database, READS_OF_NEW);
    let mut sessions = ["guest", "postgres"].map(open);
    for session in &mut sessions {
        session.set("SET search_path = early, public");
        session.settle("the start", |_| false);
    }
    follow(&mut world.direct(), &mut sessions, DEFAULT_PRIVILEGES);
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}

const WORDS: &str = r#"
    CREATE SCHEMA early; CREATE COLLATION public.mine FROM "C"; CREATE TABLE words (id int PRIMARY KEY, v text);
    INSERT INTO words SELECT n, word
      FROM unnest(ARRAY['b', 'A', 'a', 'B', 'Z', 'z', 'ä', 'Ä', 'é', 'e', 'a-b', 'ab', '']) WITH ORDINALITY w (word, n)"#;

const ORDERED: &str = "SELECT id, v FROM words ORDER BY v COLLATE mine, id";
const EQUAL: &str = "SELECT id FROM words WHERE v = 'A' COLLATE mine ORDER BY id";
const READS_OF_WORDS: &[&str] = &[
    ORDERED,
    EQUAL,
    "SELECT count(*) FROM words WHERE v COLLATE mine < 'b'",
    "SELECT min(v COLLATE mine), max(v COLLATE mine) FROM words",
];
const SHADOWED: &[&str] = &[r#"SELECT id, v FROM words ORDER BY v COLLATE "en-US-x-icu", id"#];

/// What comes first in the search path has the name.
const FIRST: &str = "CREATE COLLATION early.mine (provider = icu, locale = 'en-US')";
const COLLATIONS: &[&str] = &[
    "INSERT INTO words VALUES (20, 'aB'), (21, 'Ö')",
    "ALTER COLLATION early.mine RENAME TO other",
    "ALTER COLLATION early.other RENAME TO mine",
    "DROP COLLATION public.mine",
    "ALTER COLLATION early.mine SET SCHEMA public",
    r#"CREATE COLLATION early.mine FROM "C""#,
    "ALTER COLLATION public.mine RENAME TO gone",
    "DROP COLLATION early.mine",
    "ALTER COLLATION public.gone RENAME TO mine",
    "DROP SCHEMA early",
    "CREATE SCHEMA early; CREATE COLLATION early.mine (provider = icu, locale = 'und-u-kf-upper')",
];
/// What differs in case only is equal, which only upstream can tell.
const WITHOUT_CASE: &str = "DROP COLLATION early.mine;
    CREATE COLLATION early.mine (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";

#[test]
fn a_collation_that_comes_first_in_the_search_path_has_the_name_at_once() {
    let world = World::start(FreshnessMode::Exact, WORDS);
    let open = |reads| Both::open(&world.freshet, world.cluster, "postgres", &world.database, reads);
    let mut writer = world.direct();
    let mut sessions = [open(READS_OF_WORDS)];
    for session in &mut sessions {
        session.set("SET search_path = early, public");
        session.settle("the start", |_| false);
    }
    let ordered = |sessions: &mut [Both; 1]| sessions[0].direct.simple(ORDERED).expect("answers").text();
    let bytewise = ordered(&mut sessions);
    follow(&mut writer, &mut sessions, &[FIRST]);
    assert_ne!(ordered(&mut sessions), bytewise, "it is another order");
    follow(&mut writer, &mut sessions, COLLATIONS);
    assert_eq!(writer.simple(WITHOUT_CASE).expect("answers").error(), None);
    let [session] = &mut sessions;
    (0..4).for_each(|_| session.compare_all(WITHOUT_CASE));
    assert_eq!(session.direct.simple(EQUAL).expect("answers").text(), "2\n3", "both cases");

    let mut shadowed = open(SHADOWED);
    shadowed.set("SET search_path = early, pg_catalog, public");
    for change in [r#"CREATE COLLATION early."en-US-x-icu" FROM "C""#, r#"DROP COLLATION early."en-US-x-icu""#] {
        // What is known or kept of it by now must not last.
        (0..4).for_each(|_| shadowed.compare_all("nothing"));
        assert_eq!(writer.simple(change).expect("answers").error(), None, "{change}");
        (0..4).for_each(|_| shadowed.compare_all(change));
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}

const VISITS: &str = "
    CREATE TABLE visits (id int PRIMARY KEY, day date, at timestamptz, local timestamp, span interval);
    INSERT INTO visits SELECT n, date '2024-01-01' + n, timestamptz '2024-01-01 03:00+00' + n * interval '7 hours',
                              timestamp '2024-01-01 00:00' + n * interval '5 hours', n * interval '1 day 01:02:03'
      FROM generate_series(1, 300) n;
    CREATE SCHEMA early; CREATE TABLE early.visits (LIKE visits INCLUDING ALL); INSERT INTO early.visits VALUES (1, '2024-03-04');
    GRANT USAGE ON SCHEMA early TO guest; GRANT SELECT ON visits, early.visits TO guest";

/// The first so many are answered here, whatever is set.
const OF_VISITS_HERE: usize = 3;
const READS_OF_VISITS: &[&str] = &[
    "SELECT id, day, at, local, span FROM visits ORDER BY id",
    "SELECT count(*) FROM visits WHERE at < '2024-03-10 02:30'",
    "SELECT date_trunc('day', at) AS begun, count(*) FROM visits GROUP BY 1 ORDER BY 1",
    // In March or in April.
    "SELECT id FROM visits WHERE day = '03/04/2024'",
    "SELECT id, at::text, day::text, at::date FROM visits ORDER BY id",
];

/// `@` is the database.
const SET_FOR_ALL: &[&str] = &[
    "ALTER ROLE guest SET DateStyle = 'SQL, DMY'",
    "ALTER DATABASE @ SET TimeZone = 'America/New_York'",
    "ALTER ROLE guest SET TimeZone = 'Asia/Kolkata'",
    "ALTER DATABASE @ SET DateStyle = 'German'",
    "ALTER ROLE guest IN DATABASE @ SET DateStyle = 'Postgres, MDY'",
    "ALTER ROLE ALL SET IntervalStyle = 'iso_8601'",
    "ALTER ROLE guest SET search_path = early, public",
    "ALTER ROLE guest IN DATABASE @ RESET ALL",
    "ALTER ROLE guest RESET ALL",
    "ALTER DATABASE @ RESET ALL",
    "ALTER ROLE ALL RESET ALL",
];

#[test]
fn new_sessions_have_what_is_set_for_their_role_and_database_and_old_ones_what_they_had() {
    // Of its own: what is set for a role or database is a new catalog for every database of the cluster.
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, VISITS);
    let freshet = start(&cluster, &database);
    let open = |user: &str| Both::open(&freshet, &cluster, user, &database, READS_OF_VISITS);
    let is_free = |sql: &str| !READS_OF_VISITS[..OF_VISITS_HERE].contains(&sql);
    let mut old = ["guest", "postgres"].map(open);
    for session in &mut old {
        session.settle("the start", is_free);
    }
    for change in SET_FOR_ALL {
        let change = &change.replace('@', &database);
        cluster.psql("postgres", change);
        for user in ["guest", "postgres"] {
            let mut new = open(user);
            new.compare_all(change);
            new.compare(change, "SHOW DateStyle");
            new.settle(change, is_free);
        }
        for session in &mut old {
            session.compare_all(change);
            session.set("SET TimeZone = 'Asia/Tokyo'");
            session.compare_all(change);
            // To what it had when the session began.
            session.set("RESET TimeZone");
            session.compare_all(change);
            session.compare(change, "SHOW TimeZone");
        }
    }
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}
