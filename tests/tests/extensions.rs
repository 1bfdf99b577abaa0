//! Extensions that add functions of known names do not end the capture of statements that mean the known ones; one that is dropped takes
//! with it, at once, what was kept of it.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::raw::RawClient;
use freshet_tests::world::World;

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name varchar(20), at timestamptz); INSERT INTO t VALUES (1, 'one', '2024-01-01'), (2, 'two', NULL)";
const EXTEND: &str = "CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION pg_trgm;
    CREATE TABLE c (id int PRIMARY KEY, k citext, h hstore, ks citext[]); INSERT INTO c VALUES (1, 'A', 'a=>1', '{A,b}'), (2, 'a', '', NULL);
    CREATE TYPE pair AS (a int, b int); CREATE TABLE p (id int PRIMARY KEY, k pair); INSERT INTO p VALUES (1, ROW(1, 2));
    CREATE FUNCTION bit_xor(int, int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT current_setting(''application_name'')'";

const PARTED: &str =
    "SELECT bit_or(x.n::bit(8)) FROM (SELECT length(replace(max(name), 'o', '00')) AS n FROM t GROUP BY name) x";

/// Whether this PostgreSQL comes with the extensions.
fn has_extensions(world: &World) -> bool {
    let available = "SELECT count(*) FROM pg_available_extensions WHERE name IN ('citext', 'hstore', 'pg_trgm')";
    world.past(available) == "3"
}

fn route(client: &mut RawClient, sql: &str) -> String {
    let reply = client.simple(sql).expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
    client.last().expect("answers").0
}

#[test]
fn functions_of_known_extensions_are_no_reason_not_to_keep_a_reply() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    if !has_extensions(&world) {
        eprintln!("skipped: this PostgreSQL comes without them");
        return;
    }
    world.past(EXTEND);
    let mut client = world.client();
    for kept in [
        PARTED,
        "SELECT bit_and(id::bit(8)), min(at)::date, length(min(name)) FROM t",
        "SELECT bit_or(id::bit(8)), split_part(max(name), 'w', 2) FROM t",
        "SELECT * FROM c WHERE k = 'a' ORDER BY id",
        "SELECT json_agg(k ORDER BY id) FROM c",
    ] {
        let limit = Instant::now() + Duration::from_secs(30);
        let mut was_captured = false;
        loop {
            let route = route(&mut client, kept);
            was_captured |= route == "capture";
            if route == "hit" {
                break;
            }
            assert!(Instant::now() < limit, "{kept}: {:?}", client.last());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(was_captured, "{kept}: answered here otherwise");
    }
    world.past("UPDATE t SET name = 'three' WHERE id = 2");
    let rows = client.simple(PARTED).expect("answers").rows();
    assert_eq!(String::from_utf8_lossy(rows[0][0].as_deref().unwrap_or_default()), world.past(PARTED));
    for (change, sql) in [
        ("UPDATE c SET k = 'B', h = 'b=>2' WHERE id = 1", "SELECT string_agg(c::text, ' ' ORDER BY id) FROM c"),
        ("INSERT INTO c VALUES (3, 'b')", "SELECT string_agg(k, ' ' ORDER BY id) FROM c"),
        (
            "CREATE FUNCTION as_json(citext) RETURNS json LANGUAGE sql IMMUTABLE AS $$ SELECT '7'::json $$;
             CREATE CAST (citext AS json) WITH FUNCTION as_json(citext)",
            "SELECT json_agg(k ORDER BY id) FROM c",
        ),
    ] {
        world.past(change);
        let rows = client.simple(sql).expect("answers").rows();
        assert_eq!(String::from_utf8_lossy(rows[0][0].as_deref().unwrap_or_default()), world.past(sql), "{change}");
    }
    for relayed in [
        // A function of the users' own by that name, a type that is nobody's here.
        "SELECT bit_and(id), bit_xor(id, id) FROM t GROUP BY id",
        "SELECT * FROM p",
        // JSON of it goes by a cast since.
        "SELECT json_agg(k ORDER BY id) FROM c",
    ] {
        for _ in 0..5 {
            let route = route(&mut client, relayed);
            assert!(route == "relay", "{relayed}: {route}");
        }
    }
}

const INSTALLED: &str = "CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION pg_trgm;
    CREATE TABLE c (id int PRIMARY KEY, k citext, h hstore); INSERT INTO c VALUES (1, 'A', 'a=>1'), (2, 'a', '')";

/// The first so many are answered here as long as upstream answers them.
const ANSWERED_HERE: usize = 3;
const READS: &[&str] = &[
    "SELECT id, name FROM t ORDER BY id",
    "SELECT count(*), max(length(name)) FROM t WHERE id < 9",
    "SELECT * FROM c WHERE k = 'a' ORDER BY id",
    "SELECT * FROM c ORDER BY id",
    "SELECT id FROM c WHERE h -> 'a' = '1' ORDER BY id",
    "SELECT replace(name, 'O', '0') FROM t ORDER BY id",
    "SELECT id, similarity(name, 'one') FROM t ORDER BY id",
    "SELECT id FROM t WHERE name % 'one' ORDER BY id",
    "SELECT count(*) FROM t WHERE name::citext = 'ONE'",
];

/// CASCADE takes columns away.
const DROPPED: &[&str] = &[
    "DROP EXTENSION pg_trgm",
    "CREATE EXTENSION pg_trgm",
    "CREATE SCHEMA hidden; ALTER EXTENSION pg_trgm SET SCHEMA hidden",
    "DROP EXTENSION pg_trgm; CREATE FUNCTION similarity(text, text) RETURNS real LANGUAGE sql IMMUTABLE AS 'SELECT 0.5::real'",
    "DROP FUNCTION similarity(text, text)",
    "DROP EXTENSION hstore CASCADE",
    "INSERT INTO c VALUES (3, 'a')",
    "DROP EXTENSION citext CASCADE",
    "CREATE EXTENSION citext; ALTER TABLE c ADD k citext; UPDATE c SET k = 'A' WHERE id < 3",
    "CREATE EXTENSION hstore; ALTER TABLE c ADD h hstore DEFAULT 'a=>1'",
    "DROP EXTENSION citext CASCADE; DROP EXTENSION hstore CASCADE",
];

#[test]
fn what_a_dropped_extension_had_is_gone_at_once() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    if !has_extensions(&world) {
        eprintln!("skipped: this PostgreSQL comes without them");
        return;
    }
    world.past(INSTALLED);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, READS);
    let is_free = |sql: &str| !READS[..ANSWERED_HERE].contains(&sql);
    both.settle("the start", is_free);
    for change in DROPPED {
        // So that replies are kept that the change must end.
        (0..3).for_each(|_| both.compare_all("nothing"));
        world.past(change);
        both.compare_all(change);
        both.settle(change, is_free);
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}
