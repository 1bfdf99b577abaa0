//! Changes of the catalog, one after the other on tables that only this worker touches; after each, what freshet answers
//! is compared with what PostgreSQL answers, errors and descriptions included.

use std::time::{Duration, Instant};

use crate::client::{Client, Form, Trouble};
use crate::random::Random;
use crate::world::{Kind, Mode, World, pause};

/// Within this a change made past freshet is in force in session mode, and changes of definitions in mode standby.
const FORCE_MAX: Duration = Duration::from_millis(1_000);
/// Likewise where the event trigger tells of it: no more than the way of a message through the log, on a machine under load.
const TOLD_MAX: Duration = Duration::from_millis(300);
/// How much later it may be where something is broken.
const SLACK: Duration = Duration::from_millis(2_000);

const RESET: &str = "
DROP SCHEMA IF EXISTS early, other CASCADE;
DROP TABLE IF EXISTS shifting, shifted, spare, parts, part_three CASCADE;
DROP FUNCTION IF EXISTS twice(int);
CREATE SCHEMA early; CREATE SCHEMA other;
GRANT USAGE ON SCHEMA public, early, other TO joe;
CREATE TABLE shifting (id int PRIMARY KEY, a int, b text, d int DEFAULT 4, e text DEFAULT 'Z');
INSERT INTO shifting (id, a, b) SELECT n, n * 2, 'Row ' || n FROM generate_series(1, 6) n;
CREATE TABLE spare (id int PRIMARY KEY, a int, b text, d int, e text);
INSERT INTO spare VALUES (1, 100, 'Spare');
CREATE VIEW seen AS SELECT id, b FROM shifting WHERE a > 2;
CREATE TABLE parts (id int, a int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE part_one PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE part_two PARTITION OF parts FOR VALUES FROM (10) TO (20);
CREATE TABLE part_three (id int PRIMARY KEY, a int);
INSERT INTO parts SELECT n, n FROM generate_series(0, 19, 3) n;
INSERT INTO part_three VALUES (21, 1), (22, 2);
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2';
ALTER ROLE joe NOSUPERUSER NOBYPASSRLS; REVOKE reader FROM joe; GRANT USAGE ON SCHEMA public TO PUBLIC;
GRANT SELECT ON shifting, parts TO reader;";

/// Each step is compared; the last one undoes the first.
const STEPS: &[&[&str]] = &[
    &["ALTER TABLE shifting ADD COLUMN c int DEFAULT 7", "ALTER TABLE shifting DROP COLUMN c"],
    &["ALTER TABLE shifting ALTER COLUMN d TYPE bigint", "ALTER TABLE shifting ALTER COLUMN d TYPE int"],
    &["ALTER TABLE shifting RENAME COLUMN b TO bb", "ALTER TABLE shifting RENAME COLUMN bb TO b"],
    &["ALTER TABLE shifting RENAME TO shifted", "ALTER TABLE shifted RENAME TO shifting"],
    &["ALTER TABLE shifting SET SCHEMA other", "ALTER TABLE other.shifting SET SCHEMA public"],
    &["ALTER TABLE shifting ADD CONSTRAINT one_more CHECK (id > -9)", "ALTER TABLE shifting DROP CONSTRAINT one_more"],
    &["CREATE INDEX one_more ON shifting (a)", "DROP INDEX one_more"],
    &[
        "ALTER TABLE shifting REPLICA IDENTITY FULL",
        "UPDATE shifting SET a = a + 1",
        "ALTER TABLE shifting REPLICA IDENTITY DEFAULT",
    ],
    &["ALTER TABLE shifting REPLICA IDENTITY NOTHING", "ALTER TABLE shifting REPLICA IDENTITY DEFAULT"],
    &["ALTER TABLE shifting DROP CONSTRAINT shifting_pkey", "ALTER TABLE shifting ADD PRIMARY KEY (id)"],
    &["GRANT SELECT ON shifting TO joe", "REVOKE SELECT ON shifting FROM joe"],
    &[
        "GRANT SELECT (id, a) ON shifting TO joe",
        "REVOKE SELECT (a) ON shifting FROM joe",
        "REVOKE SELECT (id) ON shifting FROM joe",
    ],
    &[
        "GRANT reader TO joe",
        "REVOKE SELECT ON shifting FROM reader",
        "GRANT SELECT ON shifting TO reader",
        "REVOKE reader FROM joe",
    ],
    &["GRANT SELECT ON seen TO joe", "REVOKE SELECT ON seen FROM joe"],
    &["ALTER ROLE joe SUPERUSER", "ALTER ROLE joe NOSUPERUSER"],
    &[
        "GRANT reader TO joe",
        "REVOKE USAGE ON SCHEMA public FROM PUBLIC, joe",
        "GRANT USAGE ON SCHEMA public TO PUBLIC, joe",
        "REVOKE reader FROM joe",
    ],
    &[
        "GRANT reader TO joe",
        "ALTER TABLE shifting ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY one_more ON shifting USING (id < 3)",
        "ALTER POLICY one_more ON shifting USING (id < 5)",
        "ALTER ROLE joe BYPASSRLS",
        "ALTER ROLE joe NOBYPASSRLS",
        "DROP POLICY one_more ON shifting",
        "ALTER TABLE shifting DISABLE ROW LEVEL SECURITY",
        "REVOKE reader FROM joe",
    ],
    &[
        "CREATE TABLE early.shifting (id int PRIMARY KEY, a int, b text, d int, e text)",
        "INSERT INTO early.shifting VALUES (1, 9, 'Early')",
        "DROP TABLE early.shifting",
    ],
    &[
        "CREATE FUNCTION early.twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 200'",
        "DROP FUNCTION early.twice(int)",
    ],
    &[
        "CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 3'",
        "CREATE OR REPLACE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2'",
    ],
    &[
        "CREATE FUNCTION early.length(varchar) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 5'",
        "DROP FUNCTION early.length(varchar)",
    ],
    &[
        "CREATE OR REPLACE VIEW seen AS SELECT id, b FROM shifting WHERE a > 6",
        "CREATE OR REPLACE VIEW seen AS SELECT id, b FROM shifting WHERE a > 2",
    ],
    &["TRUNCATE shifting", "INSERT INTO shifting (id, a, b) SELECT n, n * 2, 'Row ' || n FROM generate_series(1, 6) n"],
    &[
        "BEGIN; DROP TABLE shifting CASCADE; CREATE TABLE shifting (id int PRIMARY KEY, b text, a int, e text, d int); INSERT INTO shifting VALUES (1, 'New', 3); \
       CREATE VIEW seen AS SELECT id, b FROM shifting WHERE a > 2; GRANT SELECT ON shifting TO reader; COMMIT",
    ],
    &[
        "BEGIN; ALTER TABLE shifting RENAME TO swapped; ALTER TABLE spare RENAME TO shifting; ALTER TABLE swapped RENAME TO spare; COMMIT",
    ],
    &["VACUUM FULL shifting"],
    &["CLUSTER shifting USING shifting_pkey"],
    &["ANALYZE shifting"],
    &["REINDEX TABLE shifting"],
    &["COMMENT ON TABLE shifting IS 'x'"],
    &[
        "ALTER TABLE shifting ALTER COLUMN e TYPE text COLLATE \"POSIX\"",
        "ALTER TABLE shifting ALTER COLUMN e TYPE text COLLATE \"default\"",
    ],
    &["ALTER TABLE shifting ALTER COLUMN d TYPE numeric(8, 2)", "ALTER TABLE shifting ALTER COLUMN d TYPE int"],
    &["CREATE RULE one_more AS ON INSERT TO shifting DO ALSO NOTHING", "DROP RULE one_more ON shifting"],
    &["ALTER TABLE shifting DISABLE TRIGGER ALL", "ALTER TABLE shifting ENABLE TRIGGER ALL"],
    &[
        "CREATE TABLE child () INHERITS (shifting)",
        "INSERT INTO child (id, a, b) VALUES (50, 50, 'Child')",
        "UPDATE shifting SET a = a + 1 WHERE id = 50",
        "ALTER TABLE child NO INHERIT shifting",
        "DROP TABLE child",
    ],
    &[
        "ALTER TABLE parts ATTACH PARTITION part_three FOR VALUES FROM (20) TO (30)",
        "UPDATE parts SET a = a + 1 WHERE id = 21",
        "ALTER TABLE parts DETACH PARTITION part_three",
    ],
    &["TRUNCATE part_one", "INSERT INTO parts VALUES (1, 1), (2, 2)", "UPDATE parts SET id = 11 WHERE id = 1"],
    &[
        "CREATE TABLE part_four PARTITION OF parts FOR VALUES FROM (30) TO (40)",
        "INSERT INTO parts VALUES (31, 31)",
        "DROP TABLE part_four",
    ],
    &["TRUNCATE parts", "INSERT INTO parts SELECT n, n FROM generate_series(0, 19, 3) n"],
    &[
        "GRANT SELECT ON parts TO joe",
        "GRANT SELECT ON part_one TO joe",
        "REVOKE SELECT ON parts FROM joe",
        "REVOKE SELECT ON part_one FROM joe",
    ],
    &[
        "INSERT INTO shifting (id, a, b) VALUES (77, 7, 'Seven')",
        "UPDATE shifting SET b = 'Eight' WHERE id = 77",
        "DELETE FROM shifting WHERE id = 77",
    ],
];

const QUERIES: &[&str] = &[
    "SELECT id, a, b FROM shifting ORDER BY id",
    "SELECT * FROM shifting ORDER BY id",
    "SELECT count(*) FROM shifting",
    "SELECT id, d, e FROM shifting WHERE d > 2 ORDER BY e, id",
    "SELECT id, lower(b), length(b) FROM shifting WHERE a > 2 ORDER BY id",
    "SELECT id, twice(id) FROM shifting ORDER BY id",
    "SELECT * FROM seen ORDER BY id",
    "SELECT id, a FROM parts ORDER BY id",
    "SELECT count(*), sum(a) FROM parts WHERE id < 12",
    "SELECT s.id, p.a FROM shifting s JOIN parts p ON p.id = s.id * 3 ORDER BY s.id",
];

/// Changes the catalog until the end.
pub(crate) fn change(world: &World) {
    let path = "SET search_path = early, public";
    let mut changer = Changer {
        world,
        random: world.random(700),
        past: world.past(&["SET lock_timeout = '5s'", "SET client_min_messages = warning"]),
        writer: world.through(&["SET lock_timeout = '5s'", "SET client_min_messages = warning"]),
        pairs: vec![
            (world.through(&[path]), Client::new(world.direct, "postgres", &world.database, &[path])),
            (world.through_as("joe", &[path]), Client::new(world.direct, "joe", &world.database, &[path])),
        ],
    };
    let mut is_sound = false;
    while world.goes_on() {
        let outcome = if is_sound { changer.round() } else { changer.past.run(RESET).map(|_| ()) };
        is_sound = outcome.is_ok();
        if let Err(trouble) = outcome {
            if let Trouble::Refused { state, message } = trouble {
                world.note(&format!("catalog: {state} {message}"));
                world.count(&format!("catalog changes refused {state}"));
            }
            changer.hang_up();
        }
        pause(&mut changer.random, 60);
    }
}

struct Changer<'a> {
    world: &'a World,
    random: Random,
    past: Client,
    /// Changes through freshet.
    writer: Client,
    /// One user each: through freshet and past it.
    pairs: Vec<(Client, Client)>,
}

impl Changer<'_> {
    fn hang_up(&mut self) {
        self.past.hang_up();
        self.writer.hang_up();
        for (through, direct) in &mut self.pairs {
            through.hang_up();
            direct.hang_up();
        }
    }

    fn round(&mut self) -> Result<(), Trouble> {
        let steps = *self.random.pick(STEPS);
        for step in steps {
            if !self.world.goes_on() {
                return Ok(());
            }
            if !self.random.one_in(4) {
                self.arm()?;
            }
            let is_through = self.random.one_in(3);
            let gate = self.world.write_gate(is_through);
            let client = if is_through { &mut self.writer } else { &mut self.past };
            let changed = client.run(step);
            // Acknowledged: it may have waited for locks.
            let began = Instant::now();
            drop(gate);
            changed?;
            self.world.count(if is_through { "catalog changes through freshet" } else { "catalog changes past it" });
            self.compare(step, is_through, began)?;
        }
        Ok(())
    }

    /// Until the queries are answered here by what is in force now: what is wrong after the change shows only then.
    fn arm(&mut self) -> Result<(), Trouble> {
        let limit = Instant::now() + Duration::from_millis(800);
        while Instant::now() < limit && self.world.goes_on() {
            let mut local = 0;
            for query in QUERIES {
                local += u32::from(self.pairs[0].0.read(query, &Form::Simple)?.is_local());
                if !self.random.one_in(3) {
                    self.pairs[1].0.read(query, &Form::Simple)?;
                }
            }
            if local >= 3 {
                self.world.count("catalog changes while served here");
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn compare(&mut self, step: &str, is_through: bool, began: Instant) -> Result<(), Trouble> {
        let late_max = if is_through { Duration::ZERO } else { self.late_max(step) };
        let first = self.random.below(QUERIES.len() as u64) as usize;
        for number in 0..QUERIES.len() {
            let query = QUERIES[(first + number) % QUERIES.len()];
            for (through, direct) in &mut self.pairs {
                loop {
                    // How old the change was when it was asked for: what comes of a slow machine is not the read's.
                    let age = began.elapsed();
                    let read = through.read(query, &Form::Simple)?;
                    let upstream = direct.ask(query)?;
                    self.world.count("catalog reads");
                    if read.is_local() {
                        self.world.count("catalog reads local");
                    }
                    if read.reply.frames == upstream.frames {
                        break;
                    }
                    let is_excused = late_max > Duration::ZERO && self.world.was_disturbed_since(began);
                    if is_excused {
                        self.world.count("catalog changes late while something was broken");
                    }
                    if age < if is_excused { FORCE_MAX + SLACK } else { late_max } {
                        self.world.note_lateness(age);
                        std::thread::sleep(Duration::from_millis(5));
                        continue;
                    }
                    let texts = [&upstream, &read.reply].map(text);
                    let how = if is_through { "through freshet" } else { "past it" };
                    let text = format!(
                        "after {step} ({how}, {age:.3?} before): {query}: upstream {}, here {} ({:?}, {})",
                        texts[0], texts[1], read.route, read.reason
                    );
                    self.world.violated(Kind::Wrong, text);
                    break;
                }
            }
        }
        Ok(())
    }

    /// For how long a change past freshet may not be seen yet. That of rows, in session mode, is bounded as those of definitions are.
    fn late_max(&self, step: &str) -> Duration {
        match (self.world.mode, self.world.has_event_trigger && is_told(step)) {
            (Mode::Exact, _) => Duration::ZERO,
            // The message has been received before the change is acknowledged.
            (Mode::Standby, true) => Duration::ZERO,
            (Mode::Session, true) => TOLD_MAX,
            (Mode::Session | Mode::Standby, false) => FORCE_MAX,
        }
    }
}

/// Whether the event trigger fires for it: not for what is no database's own (roles and their membership), nor for what only moves rows,
/// which is as late as rows are.
fn is_told(step: &str) -> bool {
    let untold = [
        "ALTER ROLE",
        "GRANT reader",
        "REVOKE reader",
        "INSERT",
        "UPDATE",
        "DELETE",
        "TRUNCATE",
        "VACUUM",
        "CLUSTER",
        "ANALYZE",
    ];
    !untold.iter().any(|begin| step.starts_with(begin))
}

fn text(reply: &freshet_tests::raw::RawReply) -> String {
    let cell = |cell: Option<Vec<u8>>| cell.map_or("NULL".into(), |cell| String::from_utf8_lossy(&cell).into_owned());
    let rows = reply.rows().into_iter().map(|row| row.into_iter().map(cell).collect::<Vec<_>>());
    match reply.error() {
        Some(error) => error,
        None => format!("{:?} {:?}", reply.bodies(b'T').len(), rows.collect::<Vec<_>>()),
    }
}
