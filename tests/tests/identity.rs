//! Tables whose rows are known by an index that is no primary key (REPLICA IDENTITY USING INDEX): whatever is done to them, past freshet
//! or through it, the next read has all rows as they are, and they are here.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, until};

/// Without a primary key, and with one that is not the identity.
const TABLES: [(&str, &str); 2] = [("keyless", "NOT NULL UNIQUE"), ("keyed", "PRIMARY KEY")];

/// `@` is the table. The notes are stored apart: the stream has none that an UPDATE has not changed.
const SETUP: &str = "
    CREATE TABLE @ (a int NOT NULL, b text NOT NULL, c int OTHER, v int, note text);
    ALTER TABLE @ ALTER note SET STORAGE EXTERNAL;
    CREATE UNIQUE INDEX @_identity ON @ (b, a); ALTER TABLE @ REPLICA IDENTITY USING INDEX @_identity;
    INSERT INTO @ SELECT n, 'b' || n % 5, 1000 + n, n, repeat(n::text, 3000) FROM generate_series(1, 40) n";

const CHANGES: &[&str] = &[
    "INSERT INTO @ VALUES (50, 'new', 2000, 50, NULL), (51, 'new', 2001, NULL, repeat('y', 4000))",
    "UPDATE @ SET v = v + 1 WHERE a % 3 = 0",
    "UPDATE @ SET note = NULL WHERE a % 7 = 0",
    "UPDATE @ SET note = repeat('z', 5000) WHERE a = 11",
    "UPDATE @ SET c = -c WHERE a < 10",
    // The columns of the identity: the one, the other, both and others.
    "UPDATE @ SET a = a + 100 WHERE a BETWEEN 12 AND 20",
    "UPDATE @ SET b = b || '!' WHERE a % 4 = 1",
    "UPDATE @ SET a = -a, b = upper(b), v = 0 WHERE c > 1030",
    // Two rows change places.
    "UPDATE @ SET a = c, b = 'twin' WHERE c IN (1021, 1022)",
    "BEGIN; UPDATE @ SET a = 0 WHERE a = 1021 AND b = 'twin'; UPDATE @ SET a = 1021 WHERE a = 1022 AND b = 'twin';
     UPDATE @ SET a = 1022 WHERE a = 0 AND b = 'twin'; COMMIT",
    "BEGIN; DELETE FROM @ WHERE a = 23; INSERT INTO @ VALUES (23, 'b3', 1023, 7, 'again'); COMMIT",
    "INSERT INTO @ VALUES (23, 'b3', 3000, 8, ' and more')
         ON CONFLICT (b, a) DO UPDATE SET v = excluded.v, note = @.note || excluded.note",
    "BEGIN; UPDATE @ SET v = 1; SAVEPOINT s; UPDATE @ SET b = 'gone'; ROLLBACK TO s; DELETE FROM @ WHERE a = 24; COMMIT",
    "DELETE FROM @ WHERE b LIKE 'B%' OR a > 1000",
    "TRUNCATE @",
    "INSERT INTO @ SELECT n, 'b', n, n, repeat('n', 3000) FROM generate_series(1, 30) n",
    // Another identity, while the rows are followed; then the old one again, and one of the other column.
    "ALTER TABLE @ REPLICA IDENTITY FULL",
    "UPDATE @ SET b = 'c', v = v * 2 WHERE a > 20",
    "ALTER TABLE @ REPLICA IDENTITY USING INDEX @_identity",
    "UPDATE @ SET a = a + 1000, b = 'd' WHERE a < 10",
    "CREATE UNIQUE INDEX @_other ON @ (c); ALTER TABLE @ REPLICA IDENTITY USING INDEX @_other",
    "UPDATE @ SET c = c + 1000, a = -a WHERE a % 2 = 0",
    "DELETE FROM @ WHERE a > 1000 OR b = 'c'",
];

/// The first read after a change has all rows as upstream has them, and it is not long until they are read here.
fn agree(both: &mut Both, after: &str) {
    for (table, _) in TABLES {
        let sql = format!("SELECT a, b, c, v, note FROM {table} ORDER BY a, b");
        until(&format!("{table} is read here after {after}"), || both.routed(after, &sql).0 == "local");
    }
}

fn follow(by: impl Fn(&World) -> RawClient) {
    let setup = TABLES.map(|(table, other)| SETUP.replace('@', table).replace("OTHER", other)).join(";");
    let world = World::start(FreshnessMode::Exact, &setup);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    let mut writer = by(&world);
    // Computed each time.
    both.set("SET freshet.route = 'local'");
    agree(&mut both, "the start");
    for change in CHANGES {
        for (table, _) in TABLES {
            let change = change.replace('@', table);
            assert_eq!(writer.simple(&change).expect("answers").error(), None, "{change}");
        }
        agree(&mut both, change);
    }
    let states = both.through.simple("SELECT state FROM freshet.tables").expect("answers").text();
    assert_eq!(states, "mirrored\nmirrored");
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}

#[test]
fn what_is_written_past_freshet_is_followed_by_the_index() {
    follow(World::direct);
}

#[test]
fn what_is_written_through_freshet_is_followed_by_the_index() {
    follow(World::client);
}
