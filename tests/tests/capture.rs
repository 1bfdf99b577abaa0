//! Statements that the engine does not run: upstream's reply is kept, and valid exactly while nothing that it reads changes.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::raw::{RawClient, RawReply, frame};
use freshet_tests::world::World;

const WAIT: Duration = Duration::from_secs(30);

/// A world, and a session through its freshet.
struct Stand {
    world: World,
    client: RawClient,
}

impl Stand {
    fn start(mode: FreshnessMode, setup: &str) -> Self {
        // On a machine under load upstream may take its time.
        let world = World::start_with(mode, setup, |settings| settings.cache.shared_wait_ms = 60_000);
        let client = world.client();
        Self { world, client }
    }

    fn ask(&mut self, sql: &str) -> RawReply {
        self.client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The first column of all rows, and the route.
    fn routed(&mut self, sql: &str) -> (String, String) {
        let reply = self.ask(sql);
        assert_eq!(reply.error(), None, "{sql}");
        (first_column(&reply), self.client.last().expect("answers").0)
    }

    /// Repeats until the route is this; the routes before it.
    fn until(&mut self, sql: &str, route: &str) -> Vec<String> {
        let limit = Instant::now() + WAIT;
        let mut routes = Vec::new();
        loop {
            let (answer, by) = self.routed(sql);
            assert_eq!(answer, self.upstream(sql), "{sql}");
            if by == route {
                return routes;
            }
            routes.push(by);
            assert!(Instant::now() < limit, "{sql}: {:?}", self.client.last());
            // Longer than what lies between two captures of one statement.
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    /// Likewise, with parameters.
    fn executed(&mut self, sql: &str, values: &[Option<&str>]) -> (String, String) {
        let reply = self.client.extended(sql, values, 0).expect("answers");
        assert_eq!(reply.error(), None, "{sql}");
        (first_column(&reply), self.client.last().expect("answers").0)
    }

    /// Repeats until it is a hit; what it says then.
    fn until_executed_hit(&mut self, sql: &str, values: &[Option<&str>]) -> String {
        let limit = Instant::now() + WAIT;
        loop {
            let (answer, by) = self.executed(sql, values);
            if by == "hit" {
                return answer;
            }
            assert!(Instant::now() < limit, "{sql}: {:?}", self.client.last());
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    fn upstream(&self, sql: &str) -> String {
        self.world.past(sql)
    }

    /// Changed past freshet.
    fn past(&self, sql: &str) {
        self.world.past(sql);
    }
}

fn first_column(reply: &RawReply) -> String {
    let cells = reply.rows().into_iter().map(|row| row[0].clone().map(String::from_utf8));
    cells.map(|cell| cell.map_or(String::new(), |cell| cell.expect("text"))).collect::<Vec<_>>().join("\n")
}

const SETUP: &str = "CREATE TABLE t (id int PRIMARY KEY, name text, ring circle, at timestamptz DEFAULT '2024-01-01');
    INSERT INTO t VALUES (1, 'one', '<(0,0),1>'), (2, 'two', '<(0,0),2>');
    CREATE TABLE u (id int PRIMARY KEY, t_id int); INSERT INTO u VALUES (1, 1);
    CREATE TABLE bystander (id int PRIMARY KEY); INSERT INTO bystander VALUES (1);
    CREATE FUNCTION own(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1'";

/// None of these is computed here: a type that is not mirrored.
const RINGS: &str = "SELECT radius(ring) FROM t ORDER BY id";
const JOINED: &str = "SELECT diameter(t.ring) FROM t JOIN u ON u.t_id = t.id ORDER BY t.id";

#[test]
fn a_reply_of_upstreams_is_kept_while_its_tables_do_not_change() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let mut stand = Stand::start(mode, SETUP);
        for sql in [RINGS, JOINED] {
            let before = stand.until(sql, "hit");
            assert!(before.iter().any(|route| route == "capture"), "{sql}: {before:?}");
            for _ in 0..3 {
                assert_eq!(stand.routed(sql).1, "hit", "{sql}");
            }
        }
        if mode == FreshnessMode::Exact {
            stand.past("INSERT INTO bystander VALUES (2)");
            assert_eq!(stand.routed(RINGS).1, "hit", "a write to another table");
            stand.past("UPDATE t SET ring = '<(0,0),7>' WHERE id = 2");
        } else {
            assert_eq!(stand.ask("UPDATE t SET ring = '<(0,0),7>' WHERE id = 2").error(), None);
        }
        let (answer, route) = stand.routed(RINGS);
        assert_eq!(answer, "1\n7", "{mode:?}: by {route}");
        assert_ne!(route, "hit");
        stand.until(RINGS, "hit");
        let statistics = stand.ask("SELECT statement, hits, captures FROM freshet.statements");
        let row = statistics
            .rows()
            .into_iter()
            .find(|row| row[0].as_deref().is_some_and(|text| String::from_utf8_lossy(text).contains("radius (")));
        let numbers: Vec<u64> = row.expect("the shape is listed")[1..]
            .iter()
            .map(|cell| String::from_utf8_lossy(cell.as_deref().expect("a number")).parse().expect("a number"))
            .collect();
        assert!(numbers[0] >= 4 && numbers[1] >= 2, "{numbers:?}");
        assert!(
            stand.world.freshet.status(&stand.world.database, "statements_capture").parse::<u64>().expect("a number")
                >= 3
        );
    }
}

#[test]
fn captured_replies_of_prepared_statements_and_parameters_are_told_apart() {
    let mut stand = Stand::start(FreshnessMode::Session, SETUP);
    let sql = "SELECT $1 || radius(ring) FROM t WHERE id = $2";
    assert_eq!(stand.until_executed_hit(sql, &[Some("+"), Some("1")]), "+1");
    let mut ask = |separator: &str, id: &str| stand.executed(sql, &[Some(separator), Some(id)]);
    assert_eq!(ask("-", "1").0, "-1");
    assert_eq!(ask("+", "2").0, "+2");
    assert_eq!(ask("+", "1").1, "hit");
}

/// PostgreSQL reads a literal when it parses the statement; a SET behind that changes nothing about it.
#[test]
fn what_was_parsed_under_other_settings_is_not_kept_for_others() {
    let mut stand = Stand::start(FreshnessMode::Exact, SETUP);
    stand.until(RINGS, "hit");
    stand.ask("CREATE TABLE w (id int PRIMARY KEY, ring circle, seen timestamptz)");
    stand.ask("INSERT INTO w VALUES (1, '<(0,0),1>', '2024-01-01 00:00+00')");
    // Midnight is earlier in Tokyo.
    let sql = "SELECT count(radius(ring)) FROM w WHERE seen > '2024-01-01 00:00'";
    let converse = |stand: &mut Stand, messages: &[Vec<u8>]| {
        stand.client.send(&messages.concat()).expect("sent");
        let reply = stand.client.read_reply().expect("answers");
        assert_eq!(reply.error(), None);
        first_column(&reply)
    };
    let parse = |name: &str| frame(b'P', format!("{name}\0{sql}\0\0\0").as_bytes());
    let bind = |name: &str| frame(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes());
    let run = [frame(b'D', b"P\0"), frame(b'E', b"\0\0\0\0\0"), frame(b'S', b"")].concat();
    stand.until(sql, "hit");
    stand.ask("SET TimeZone = 'UTC'");
    converse(&mut stand, &[parse("s"), frame(b'S', b"")]);
    stand.ask("SET TimeZone = 'Asia/Tokyo'");
    let by_name = |stand: &mut Stand| {
        assert_eq!(converse(stand, &[bind("s"), run.clone()]), "0");
        assert_eq!(stand.client.last().expect("answers").0, "relay", "of no use to itself either");
    };
    for _ in 0..6 {
        by_name(&mut stand);
        // Longer than what lies between two captures of one statement.
        std::thread::sleep(Duration::from_millis(25));
    }
    // What others parse under these settings is kept.
    let limit = Instant::now() + WAIT;
    loop {
        let anew = converse(&mut stand, &[parse(""), bind(""), run.clone()]);
        let (route, reason) = stand.client.last().expect("answers");
        assert_eq!(anew, "1", "{route} {reason}");
        if route == "hit" {
            break;
        }
        assert!(Instant::now() < limit, "never kept: {route} {reason}");
        std::thread::sleep(Duration::from_millis(25));
    }
    by_name(&mut stand);
}

#[test]
fn what_depends_on_more_than_tables_is_never_kept() {
    let mut stand = Stand::start(FreshnessMode::Session, SETUP);
    stand.until(RINGS, "hit");
    let role = "guest";
    stand.past(&format!("GRANT SELECT ON t TO {role}"));
    for sql in [
        "SELECT random() < 2 AND diameter(ring) > 0 FROM t",
        "SELECT clock_timestamp() > at AND diameter(ring) > 0 FROM t",
        "SELECT radius(ring) + (SELECT count(*) FROM pg_class WHERE relname = 'zzz') FROM t",
        "SELECT own(id) + diameter(ring) FROM t",
        "SELECT xmin::text <> '' FROM t",
        "SELECT pg_backend_pid() > 0 AND diameter(ring) > 0 FROM t",
        "SELECT current_user || radius(ring) FROM t",
        "SELECT at > 'yesterday' AND diameter(ring) > 0 FROM t",
        "SELECT radius(ring) FROM t TABLESAMPLE SYSTEM (100)",
        "SELECT radius(ring), nextval('s') > 0 FROM t",
    ] {
        stand.past("CREATE SEQUENCE IF NOT EXISTS s");
        for _ in 0..5 {
            let _ = stand.ask(sql);
            let route = stand.client.last().expect("answers").0;
            assert!(route == "relay" || route == "local", "{sql}: {route}");
            std::thread::sleep(Duration::from_millis(25));
        }
    }
    // With an error.
    for _ in 0..4 {
        let error = stand.ask("SELECT radius(ring), 1 / (id - id) FROM t").error().expect("an error");
        assert!(error.contains("22012"), "{error}");
        std::thread::sleep(Duration::from_millis(25));
    }
}

/// What frameworks read they read in blocks. A reply in one that has not written is as good as any other; what shows its own writes, or
/// an older snapshot, is nobody else's.
#[test]
fn replies_in_a_block_are_kept_until_it_writes() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let mut stand = Stand::start(mode, SETUP);
        let sql = "SELECT radius(ring) + 0 FROM t ORDER BY id";
        stand.until(RINGS, "hit");
        for begin in ["BEGIN", "BEGIN READ ONLY", "BEGIN ISOLATION LEVEL READ COMMITTED"] {
            assert_eq!(stand.ask("UPDATE t SET name = name || 'x'").error(), None);
            stand.ask(begin);
            let before = stand.until(sql, "hit");
            assert!(before.iter().any(|route| route == "capture"), "{begin}: {before:?}");
            stand.ask("COMMIT");
            assert_eq!(stand.routed(sql).1, "hit");
        }
        let mut other = stand.world.client();
        for (round, block) in [
            ["BEGIN", "UPDATE t SET ring = '<(0,0),50>' WHERE id = 1"],
            ["BEGIN; SAVEPOINT a", "UPDATE t SET ring = '<(0,0),60>' WHERE id = 1"],
            ["BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1"],
            ["BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT 1"],
        ]
        .into_iter()
        .enumerate()
        {
            block.iter().for_each(|sql| assert_eq!(stand.ask(sql).error(), None, "{sql}"));
            let sql = format!("SELECT radius(ring) + {round} - {round} FROM t ORDER BY id");
            stand.past("UPDATE t SET ring = '<(0,0),2>' WHERE id = 2");
            for _ in 0..5 {
                let _ = stand.ask(&sql);
                let (route, reason) = stand.client.last().expect("answers");
                assert_eq!(route, "relay", "{block:?}: {reason}");
                assert_eq!(first_column(&other.simple(&sql).expect("answers")), "1\n2", "{block:?}");
                std::thread::sleep(Duration::from_millis(25));
            }
            stand.ask("ROLLBACK");
        }
    }
}

/// A time that is not read here as PostgreSQL reads it.
#[test]
fn what_a_literal_says_upstream_alone_is_kept() {
    let mut stand = Stand::start(FreshnessMode::Exact, SETUP);
    let sql = "SELECT name FROM t WHERE at < 'Fri Jan 05 2024 10:00:00 GMT+0000' ORDER BY id";
    stand.until(sql, "hit");
    stand.past("UPDATE t SET at = '2024-01-06' WHERE id = 1");
    assert_eq!(stand.routed(sql).0, "two");
    let sql = "SELECT name FROM t WHERE at < $1 ORDER BY id";
    assert_eq!(stand.until_executed_hit(sql, &[Some("Fri Jan 05 2024 10:00:00 GMT+0000")]), "two");
    let mut ask = |value: &str| stand.executed(sql, &[Some(value)]);
    assert_eq!(ask("Fri Jan 12 2024 10:00:00 GMT+0000").0, "one\ntwo");
    for _ in 0..5 {
        assert_ne!(ask("tomorrow 10:00 GMT+0000").1, "hit");
        std::thread::sleep(Duration::from_millis(25));
    }
}

/// LIKE is ~~, and IN is =, wherever in the path these are: one of users' may be volatile, or read other tables.
#[test]
fn what_words_of_the_grammar_mean_is_never_kept_if_it_may_be_a_users_operator() {
    let mut stand = Stand::start(FreshnessMode::Exact, SETUP);
    let texts = [
        "SELECT radius(ring) FROM t WHERE name LIKE 'o%' ORDER BY id",
        "SELECT radius(ring) FROM t WHERE name IN ('one', 'three') ORDER BY id",
    ];
    for sql in texts {
        stand.until(sql, "hit");
    }
    stand.past(
        "CREATE TABLE alike (a text, b text); INSERT INTO alike VALUES ('two', 'o%'), ('two', 'one');
         CREATE FUNCTION alike(text, text) RETURNS bool LANGUAGE sql AS
             'SELECT EXISTS (SELECT FROM public.alike WHERE a OPERATOR(pg_catalog.=) $1 AND b OPERATOR(pg_catalog.=) $2)';
         CREATE OPERATOR public.~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = alike);
         CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = alike)",
    );
    assert_eq!(stand.ask("SET search_path = public, pg_catalog").error(), None);
    for expected in ["2", ""] {
        for sql in texts {
            for _ in 0..4 {
                let (answer, route) = stand.routed(sql);
                assert_eq!((answer.as_str(), route.as_str()), (expected, "relay"), "{sql}");
                std::thread::sleep(Duration::from_millis(25));
            }
        }
        stand.past("TRUNCATE alike");
    }
}

#[test]
fn a_captured_reply_belongs_to_its_role_and_dies_with_the_catalog() {
    let mut stand = Stand::start(FreshnessMode::Exact, SETUP);
    let role = "guest";
    stand.past(&format!("GRANT SELECT ON t TO {role}"));
    stand.until(RINGS, "hit");
    assert_eq!(stand.ask(&format!("SET ROLE {role}")).error(), None);
    stand.until(RINGS, "hit");
    stand.past(&format!("REVOKE SELECT ON t FROM {role}"));
    let error = stand.ask(RINGS).error().expect("an error");
    assert!(error.contains("42501"), "{error}");
    assert_eq!(stand.ask("RESET ROLE").error(), None);
    stand.until(RINGS, "hit");
    stand.past("ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t FORCE ROW LEVEL SECURITY");
    for _ in 0..4 {
        let (_, route) = stand.routed(RINGS);
        assert_eq!(route, "relay", "row security");
        std::thread::sleep(Duration::from_millis(25));
    }
    stand.past("ALTER TABLE t DISABLE ROW LEVEL SECURITY; ALTER TABLE t NO FORCE ROW LEVEL SECURITY");
    stand.until(RINGS, "hit");
    // Another table by that name comes first in the search path.
    stand.past("CREATE SCHEMA postgres; CREATE TABLE postgres.t (id int PRIMARY KEY, ring circle); INSERT INTO postgres.t VALUES (1, '<(0,0),9>')");
    assert_eq!(stand.routed(RINGS).0, "9");
    stand.past("DROP SCHEMA postgres CASCADE");
}

/// While another writes as fast as it can, every reply shows what was acknowledged before it was asked for.
#[test]
fn a_reply_filled_after_the_write_that_should_have_killed_it_is_not_served() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let mut stand = Stand::start(mode, SETUP);
        stand.until(RINGS, "hit");
        let mut writer =
            RawClient::connect(stand.world.freshet.address(), "postgres", &stand.world.database).expect("connects");
        let acknowledged = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let (noted, stop) = (acknowledged.clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
        let stopped = stop.clone();
        let writing = std::thread::spawn(move || {
            let mut n = 0;
            while !stopped.load(std::sync::atomic::Ordering::SeqCst) {
                n += 1;
                let reply = writer
                    .simple(&format!("UPDATE t SET ring = circle(point(0, 0), {n}) WHERE id = 1"))
                    .expect("answers");
                assert_eq!(reply.error(), None);
                noted.store(n, std::sync::atomic::Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(n * 7 % 40));
            }
        });
        let until = Instant::now() + Duration::from_secs(4);
        let (mut captured, mut hits, mut seen) = (0, 0, 0);
        let sql = "SELECT radius(ring) FROM t WHERE id = 1";
        while Instant::now() < until {
            let floor = acknowledged.load(std::sync::atomic::Ordering::SeqCst);
            let reply = stand.ask(sql);
            let value = first_column(&reply).parse::<u64>().unwrap_or(0);
            assert!(value >= floor.max(seen), "{mode:?}: {value} after {floor} was acknowledged and {seen} seen");
            seen = value;
            match stand.client.last().expect("answers").0.as_str() {
                "capture" => captured += 1,
                "hit" => hits += 1,
                _ => {}
            }
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        writing.join().expect("no panic");
        println!("{mode:?}: {captured} captured, {hits} hits");
        assert!(captured > 5 && hits > 5, "{mode:?}: {captured} captured, {hits} hits: nothing was tested");
    }
}

#[test]
fn through_views_the_tables_beneath_them_count() {
    let mut stand = Stand::start(FreshnessMode::Exact, SETUP);
    stand.past(
        "CREATE VIEW rings AS SELECT t.id, t.ring FROM t JOIN u ON u.t_id = t.id;
         CREATE VIEW seen AS SELECT id, radius(ring) AS radius FROM rings WHERE id > 0",
    );
    let sql = "SELECT radius FROM seen ORDER BY id";
    stand.until(sql, "hit");
    stand.past("UPDATE t SET ring = '<(0,0),11>' WHERE id = 1");
    assert_eq!(stand.routed(sql).0, "11");
    stand.until(sql, "hit");
    stand.past("INSERT INTO u VALUES (2, 2)");
    assert_eq!(stand.routed(sql).0, "11\n2");
    stand.until(sql, "hit");
    stand.past("CREATE OR REPLACE VIEW seen AS SELECT id, radius(ring) + 100 AS radius FROM rings WHERE id > 0");
    assert_eq!(stand.routed(sql).0, "111\n102");
    stand.until(sql, "hit");
    stand.past("CREATE OR REPLACE VIEW rings AS SELECT t.id, t.ring FROM t");
    stand.past("DELETE FROM u");
    assert_eq!(stand.routed(sql).0, "111\n102");
}

#[test]
fn upstream_is_asked_once_by_many_who_ask_the_same() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let mut stand = Stand::start(mode, SETUP);
        // pg_sleep would not be kept; this takes upstream its time.
        let sql = "SELECT count(DISTINCT radius(ring) + n) FROM t, generate_series(1, 300000) n WHERE t.id = 1";
        stand.until(sql, "hit");
        let mut clients: Vec<RawClient> = (0..6)
            .map(|_| {
                RawClient::connect(stand.world.freshet.address(), "postgres", &stand.world.database).expect("connects")
            })
            .collect();
        for client in &mut clients {
            assert_eq!(client.simple(sql).expect("answers").error(), None);
            let (route, reason) = client.last().expect("answers");
            assert_eq!(route, "hit", "{mode:?}: {reason}");
        }
        assert_eq!(stand.ask("UPDATE t SET ring = '<(0,0),7>' WHERE id = 1").error(), None);
        let asked: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                std::thread::spawn(move || {
                    let reply = client.simple(sql).expect("answers");
                    (first_column(&reply), client.last().expect("answers").0)
                })
            })
            .collect();
        let answers: Vec<(String, String)> = asked.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        assert!(answers.iter().all(|(answer, _)| answer == "300000"), "{answers:?}");
        let of = |route: &str| answers.iter().filter(|(_, by)| by == route).count();
        assert_eq!((of("capture"), of("hit")), (1, 5), "{mode:?}: {answers:?}");
    }
}

#[test]
fn replies_over_enums_are_kept_until_rows_or_labels_change() {
    let mut stand = Stand::start(
        FreshnessMode::Exact,
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TYPE size AS ENUM ('s', 'l');
         CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE DOMAIN spot AS point;
         CREATE TABLE people (id int PRIMARY KEY, m mood, many mood[], n int);
         INSERT INTO people SELECT n, (ARRAY['sad', 'ok', 'happy'])[n % 3 + 1]::mood, '{ok,sad}', n FROM generate_series(1, 20) n;
         CREATE TABLE things (id int PRIMARY KEY, s size); INSERT INTO things VALUES (1, 's');
         CREATE TABLE parts (id int PRIMARY KEY, s size, p spot); INSERT INTO parts VALUES (1, 's', point(1, 1));
         CREATE TABLE held (id int PRIMARY KEY, p positive, at point); INSERT INTO held VALUES (1, 1, point(1, 1))",
    );
    let grouped = "SELECT m || ' ' || count(*) FROM people GROUP BY m ORDER BY m";
    let chosen = "SELECT count(*) FROM people WHERE m >= 'ok' AND many[1] = 'ok'";
    for text in [grouped, chosen] {
        stand.until(text, "hit");
    }
    for change in [
        "ALTER TYPE mood RENAME VALUE 'sad' TO 'gloomy'",
        "INSERT INTO people VALUES (30, 'happy', '{}', 1)",
        "ALTER TYPE mood ADD VALUE 'awful' BEFORE 'gloomy'",
        "UPDATE people SET m = 'awful' WHERE id < 5",
        "ALTER TYPE mood RENAME VALUE 'gloomy' TO 'sad'",
    ] {
        stand.past(change);
        for text in [grouped, chosen] {
            // Each ask compares with upstream.
            let (answer, route) = stand.routed(text);
            assert_eq!(answer, stand.upstream(text), "{change}: {text}");
            assert_ne!(route, "hit", "{change}: {text}");
        }
        stand.until(grouped, "hit");
        stand.until(chosen, "hit");
    }
    stand.until("SELECT concat(p, at) FROM held", "hit");
    // What is below a domain is looked for where it is held; an enum with a cast of its own is what a function makes of it.
    for _ in 0..5 {
        assert_eq!(stand.routed("SELECT s::text FROM parts").1, "relay");
    }
    let cast = "SELECT s::text FROM things";
    stand.until(cast, "hit");
    stand.past(
        "CREATE FUNCTION letter(size) RETURNS text LANGUAGE sql AS $$ SELECT 'letter' $$;
         CREATE CAST (size AS text) WITH FUNCTION letter(size)",
    );
    for _ in 0..5 {
        assert_eq!(stand.routed(cast), ("letter".to_owned(), "relay".to_owned()));
    }
}

/// Parameters whose text are names of the catalog's, and casts of rows by users' functions, hang on more than the tables' rows.
#[test]
fn what_a_type_in_the_statement_reads_elsewhere_is_never_kept() {
    const INT4: u32 = 23;
    const REGCLASS: u32 = 2205;
    let mut stand = Stand::start(FreshnessMode::Exact, SETUP);
    stand.past("CREATE TABLE other (id int); CREATE INDEX first_name ON other (id)");
    let oid = stand.upstream("SELECT 'first_name'::regclass::oid");
    let told = |stand: &mut Stand, declared: u32| {
        // Longer than what lies between two captures of one statement.
        std::thread::sleep(Duration::from_millis(25));
        let sql = "SELECT $1, radius(ring) FROM t ORDER BY id LIMIT 1";
        let reply = stand.client.extended_of(sql, &[(declared, Some(&oid))], 0).expect("answers");
        assert_eq!(reply.error(), None);
        (first_column(&reply), stand.client.last().expect("answers").0)
    };
    let limit = Instant::now() + WAIT;
    while told(&mut stand, INT4) != (oid.clone(), "hit".to_owned()) {
        assert!(Instant::now() < limit, "an integer's reply is kept");
    }
    for name in ["first_name", "second_name"] {
        if name == "second_name" {
            stand.past("ALTER INDEX first_name RENAME TO second_name");
        }
        for _ in 0..5 {
            assert_eq!(told(&mut stand, REGCLASS), (name.to_owned(), "relay".to_owned()));
        }
    }
    let cast = "SELECT t::text FROM t ORDER BY id";
    stand.until(cast, "hit");
    stand.past(
        "CREATE TABLE rate (r int PRIMARY KEY); INSERT INTO rate VALUES (1);
         CREATE FUNCTION told(t) RETURNS text STABLE LANGUAGE sql AS 'SELECT $1.id || '' '' || r FROM rate';
         CREATE CAST (t AS text) WITH FUNCTION told(t)",
    );
    for rate in 2..4 {
        stand.past(&format!("UPDATE rate SET r = {rate}"));
        for _ in 0..4 {
            assert_eq!(stand.routed(cast), (format!("1 {rate}\n2 {rate}"), "relay".to_owned()));
            std::thread::sleep(Duration::from_millis(25));
        }
    }
}
