//! What caches before this one got wrong, each mistake by its name.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;

const WAIT: Duration = Duration::from_secs(30);

struct World {
    database: String,
    freshet: Freshet,
    client: RawClient,
}

impl World {
    fn start(mode: FreshnessMode, setup: &str) -> Self {
        let cluster = Cluster::shared();
        let database = cluster.database();
        cluster.psql(&database, setup);
        let freshet = Freshet::start(&cluster.url(&database), |settings| {
            settings.freshness.mode = mode;
            // What is relayed for another reason would be right whatever is kept.
            settings.freshness.wait_budget_ms = 5_000;
        });
        let client = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
        Self { database, freshet, client }
    }

    fn another(&self) -> RawClient {
        RawClient::connect(self.freshet.address(), "postgres", &self.database).expect("connects")
    }

    fn run(&mut self, sql: &str) {
        let reply = self.client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(reply.error(), None, "{sql}");
    }

    fn ask(&mut self, sql: &str) -> String {
        ask(&mut self.client, sql)
    }

    fn route(&mut self) -> String {
        self.client.last().expect("answers").0
    }

    /// The answer, which freshet has given.
    fn here(&mut self, sql: &str) -> String {
        here(&mut self.client, sql)
    }

    /// Repeats until the answer comes from the cache.
    fn hit(&mut self, sql: &str) -> String {
        let limit = Instant::now() + WAIT;
        loop {
            let answer = self.ask(sql);
            if self.route() == "hit" {
                return answer;
            }
            assert!(Instant::now() < limit, "{sql}: {:?}", self.client.last());
            std::thread::sleep(Duration::from_millis(25));
        }
    }
}

/// All cells of all rows.
fn ask(client: &mut RawClient, sql: &str) -> String {
    let reply = client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(reply.error(), None, "{sql}");
    let cell =
        |cell: &Option<Vec<u8>>| cell.as_ref().map_or("NULL".into(), |cell| String::from_utf8_lossy(cell).into_owned());
    let rows = reply.rows();
    rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(",")).collect::<Vec<_>>().join(";")
}

fn here(client: &mut RawClient, sql: &str) -> String {
    let answer = ask(client, sql);
    let last = client.last().expect("answers");
    assert_ne!(last.0, "relay", "{sql}: {last:?}");
    answer
}

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10), (2, 20);
    CREATE TABLE u (id int PRIMARY KEY, t_id int); INSERT INTO u VALUES (1, 1);
    CREATE SCHEMA other; CREATE TABLE other.t (id int PRIMARY KEY, v int); INSERT INTO other.t VALUES (1, -1);
    CREATE TABLE items (id int PRIMARY KEY, place int); INSERT INTO items VALUES (1, 1), (2, 2), (3, 1);
    CREATE TABLE places (id int PRIMARY KEY, name text, region text);
    INSERT INTO places VALUES (1, 'Rome', 'south'), (2, 'Oslo', 'north'); CREATE SEQUENCE s";

const MODES: [FreshnessMode; 2] = [FreshnessMode::Exact, FreshnessMode::Session];

#[test]
fn a_table_that_only_a_subquery_reads_counts() {
    for mode in MODES {
        let mut world = World::start(mode, SETUP);
        for (sql, before, after) in [
            ("SELECT count(*) FROM t WHERE id IN (SELECT t_id FROM u)", "1", "2"),
            ("SELECT (SELECT max(t_id) FROM u)", "1", "2"),
            ("SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.t_id = t.id)", "2", ""),
            ("WITH w AS (SELECT t_id FROM u) SELECT count(*) FROM w", "1", "2"),
        ] {
            assert_eq!(world.hit(sql), before, "{sql}");
            world.run("INSERT INTO u VALUES (2, 2)");
            assert_eq!(world.here(sql), after, "{mode:?}: {sql}");
            world.run("DELETE FROM u WHERE id = 2");
            assert_eq!(world.here(sql), before, "{mode:?}: {sql}");
        }
    }
}

#[test]
fn the_same_name_in_two_schemas_is_two_tables() {
    for mode in MODES {
        let mut world = World::start(mode, SETUP);
        assert_eq!(world.hit("SELECT v FROM t WHERE id = 1"), "10");
        assert_eq!(world.hit("SELECT v FROM other.t WHERE id = 1"), "-1");
        world.run("UPDATE other.t SET v = -2 WHERE id = 1");
        assert_eq!(world.here("SELECT v FROM other.t WHERE id = 1"), "-2");
        assert_eq!(world.ask("SELECT v FROM t WHERE id = 1"), "10");
        assert_eq!(world.route(), "hit", "{mode:?}: the other table was written");
        world.run("SET search_path = other");
        world.run("UPDATE t SET v = -3 WHERE id = 1");
        assert_eq!(world.ask("SELECT v FROM t WHERE id = 1"), "-3");
        world.run("RESET search_path");
        assert_eq!(world.ask("SELECT v FROM t WHERE id = 1"), "10");
    }
}

#[test]
fn merge_and_other_rare_ways_to_write_are_seen() {
    for mode in MODES {
        let mut world = World::start(mode, SETUP);
        let sql = "SELECT sum(v) FROM t";
        assert_eq!(world.hit(sql), "30");
        for (write, after) in [
            ("MERGE INTO t USING u ON t.id = u.t_id WHEN MATCHED THEN UPDATE SET v = 11", "31"),
            ("WITH w AS (UPDATE t SET v = 12 WHERE id = 1 RETURNING v) SELECT v FROM w", "32"),
            ("INSERT INTO t VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET v = 13", "33"),
            ("DO $$ BEGIN UPDATE t SET v = 14 WHERE id = 1; END $$", "34"),
            ("PREPARE p AS UPDATE t SET v = 15 WHERE id = 1", "34"),
            ("EXECUTE p", "35"),
            ("BEGIN; UPDATE t SET v = 16 WHERE id = 1; COMMIT", "36"),
        ] {
            world.run(write);
            assert_eq!(world.here(sql), after, "{mode:?}: {write}");
            assert_eq!(world.here(sql), after, "{mode:?}: {write}");
        }
        // It makes another file of the table, and so another catalog.
        world.run("TRUNCATE t");
        assert_eq!(world.ask(sql), "NULL", "{mode:?}");
        assert_eq!(world.hit(sql), "NULL", "{mode:?}");
    }
}

#[test]
fn what_is_rolled_back_is_seen_by_nobody_and_kept_for_nobody() {
    for mode in MODES {
        let mut world = World::start(mode, SETUP);
        let sql = "SELECT v FROM t WHERE id = 1";
        assert_eq!(world.hit(sql), "10");
        let mut other = world.another();
        world.run("BEGIN");
        world.run("UPDATE t SET v = 99 WHERE id = 1");
        // The reply of an open transaction is its own.
        assert_eq!(world.ask(sql), "99");
        assert_eq!(here(&mut other, sql), "10");
        world.run("SAVEPOINT a");
        world.run("UPDATE t SET v = 100 WHERE id = 1");
        assert_eq!(world.ask(sql), "100");
        world.run("ROLLBACK TO a");
        assert_eq!(world.ask(sql), "99", "{mode:?}");
        assert_eq!(here(&mut other, sql), "10");
        world.run("ROLLBACK");
        assert_eq!(world.here(sql), "10", "{mode:?}");
        assert_eq!(here(&mut other, sql), "10");
        world.run("BEGIN");
        world.run("UPDATE t SET v = 11 WHERE id = 1");
        world.run("SAVEPOINT a");
        world.run("UPDATE t SET v = 12 WHERE id = 2");
        world.run("ROLLBACK TO a");
        world.run("COMMIT");
        assert_eq!(ask(&mut other, "SELECT v FROM t ORDER BY id"), "11;20", "{mode:?}");
    }
}

#[test]
fn random_now_and_nextval_are_never_repeated() {
    let mut world = World::start(FreshnessMode::Session, SETUP);
    world.hit("SELECT v FROM t WHERE id = 1");
    for sql in [
        "SELECT random(), v FROM t WHERE id = 1",
        "SELECT nextval('s'), v FROM t WHERE id = 1",
        "SELECT clock_timestamp(), v FROM t WHERE id = 1",
        "SELECT now(), v FROM t WHERE id = 1",
        "SELECT gen_random_uuid(), v FROM t WHERE id = 1",
    ] {
        let mut answers = Vec::new();
        for _ in 0..6 {
            answers.push(world.ask(sql));
            assert_ne!(world.route(), "hit", "{sql}");
            std::thread::sleep(Duration::from_millis(22));
        }
        answers.dedup();
        assert_eq!(answers.len(), 6, "{sql}: {answers:?}");
    }
}

/// Texts that have one number of 32 bits by two usual ways to make one out of a text; who compares that alone gives one's reply to the
/// other.
#[test]
fn texts_with_one_hash_are_two_statements() {
    fn fnv(text: &str) -> u32 {
        text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
    fn crc(text: &str) -> u32 {
        let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        !text.bytes().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
    }
    let mut world = World::start(FreshnessMode::Session, SETUP);
    world.run("CREATE TABLE many AS SELECT i AS id, i * 3 AS v FROM generate_series(1, 400000) i; ALTER TABLE many ADD PRIMARY KEY (id)");
    let text = |id: u32| format!("SELECT v FROM many WHERE id = {id} AND v < {}", 4_321 * id);
    for hash in [fnv, crc] {
        let mut seen = std::collections::HashMap::new();
        let pairs = (1..400_000).filter_map(|id| Some((seen.insert(hash(&text(id)), id)?, id)));
        let pairs: Vec<(u32, u32)> = pairs.take(3).collect();
        assert_eq!(pairs.len(), 3, "some of so many share one");
        for (one, other) in pairs {
            assert_eq!(hash(&text(one)), hash(&text(other)));
            assert_eq!(world.hit(&text(one)), (3 * one).to_string());
            assert_eq!(world.here(&text(other)), (3 * other).to_string(), "not that of {one}");
            assert_eq!(world.hit(&text(other)), (3 * other).to_string());
            assert_eq!(world.hit(&text(one)), (3 * one).to_string());
        }
    }
}

#[test]
fn a_join_s_rows_are_not_those_of_another_projection() {
    let mut world = World::start(FreshnessMode::Session, SETUP);
    let by_region =
        "SELECT p.region, count(*) FROM items i JOIN places p ON p.id = i.place GROUP BY p.region ORDER BY 1";
    let by_name = "SELECT p.name, count(*) FROM items i JOIN places p ON p.id = i.place GROUP BY p.name ORDER BY 1";
    for _ in 0..2 {
        assert_eq!(world.hit(by_name), "Oslo,1;Rome,2");
        assert_eq!(world.hit(by_region), "north,1;south,2");
        // Computed again, from what the one before has left.
        world.run("SET freshet.route = 'local'");
        assert_eq!(world.here(by_region), "north,1;south,2");
        assert_eq!(world.here(by_name), "Oslo,1;Rome,2");
        assert_eq!(world.route(), "local");
        world.run("RESET freshet.route");
    }
}

#[test]
fn a_prepared_statement_is_not_answered_as_before_an_alter_table() {
    for mode in MODES {
        let mut world = World::start(mode, SETUP);
        world.hit("SELECT v FROM t WHERE id = 1");
        world.run("PREPARE star AS SELECT * FROM t WHERE id = 1");
        assert_eq!(world.ask("EXECUTE star"), "1,10");
        let mut extended = |sql: &str| {
            let reply = world.client.extended(sql, &[], 0).expect("answers");
            assert_eq!(reply.error(), None);
            reply.rows()[0].len()
        };
        (0..4).for_each(|_| assert_eq!(extended("SELECT * FROM t WHERE id = 1"), 2));
        world.run("ALTER TABLE t ADD COLUMN w int DEFAULT 5");
        let reply = world.client.simple("EXECUTE star").expect("answers");
        assert!(reply.error().is_some_and(|error| error.contains("0A000")), "{mode:?}: {:?}", reply.error());
        let reply = world.client.extended("SELECT * FROM t WHERE id = 1", &[], 0).expect("answers");
        assert_eq!(reply.rows()[0].len(), 3, "{mode:?}");
        assert_eq!(world.ask("SELECT * FROM t WHERE id = 1"), "1,10,5");
    }
}
