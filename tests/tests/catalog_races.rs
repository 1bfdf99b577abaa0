//! Changes of the catalog that come and go between two looks at it, and tables that come into use meanwhile. The checker found both.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, settle, until};

/// A superuser for a moment: what it may read then, nobody may who is none.
#[test]
fn rights_that_were_taken_back_before_anybody_looked_do_not_last() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2);
         CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1)",
    );
    let role = format!("joe_{}", world.database);
    world.past(&format!("CREATE ROLE {role} LOGIN"));
    settle(&mut world.client(), "SELECT count(*) FROM t");
    let mut postgres = world.client();
    let mut direct = RawClient::connect(world.cluster.address(), "postgres", &world.database).expect("connects");
    let mut joe = RawClient::connect(world.freshet.address(), &role, &world.database).expect("connects");
    let mut allowed = 0;
    for round in 0..40 {
        // What was refused is not asked about again soon.
        let sql = format!("SELECT count(*) AS n{round} FROM t");
        settle(&mut postgres, &sql);
        // Rights that were asked for are known until the catalog changes; they have to be asked for while joe is a superuser.
        world.past(&format!("GRANT SELECT ON u TO {role}; REVOKE SELECT ON u FROM {role}"));
        settle(&mut postgres, &sql);
        direct.simple(&format!("ALTER ROLE {role} SUPERUSER")).expect("answers");
        allowed += usize::from(joe.simple(&sql).expect("answers").error().is_none());
        direct.simple(&format!("ALTER ROLE {role} NOSUPERUSER")).expect("answers");
        for when in ["at once", "later"] {
            let error = joe.simple(&sql).expect("answers").error();
            assert!(error.is_some_and(|error| error.contains("42501")), "round {round}, {when}: {:?}", joe.last());
            settle(&mut postgres, &sql);
        }
    }
    assert!(allowed > 0);
    world.past(&format!("DROP ROLE {role}"));
}

/// Whoever owns the database is a member of pg_database_owner, and no row of pg_auth_members says so (acl.c, roles_is_member_of).
#[test]
fn another_owner_of_the_database_has_its_rights_at_once() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2); GRANT SELECT ON t TO pg_database_owner",
    );
    let database = &world.database;
    let [joe, bob] = ["joe", "bob"].map(|name| format!("{name}_{database}"));
    world.past(&format!("CREATE ROLE {joe} LOGIN; CREATE ROLE {bob} LOGIN; ALTER DATABASE {database} OWNER TO {joe}"));
    let connect = |role: &str| RawClient::connect(world.freshet.address(), role, database).expect("connects");
    let (mut of_joe, mut of_bob) = (connect(&joe), connect(&bob));
    for round in 0..5 {
        // What was refused is not asked about again soon.
        let sql = &format!("SELECT count(*) AS n{round} FROM t");
        let (may, may_not, next) =
            if round % 2 == 0 { (&mut of_joe, &mut of_bob, &bob) } else { (&mut of_bob, &mut of_joe, &joe) };
        let error = may_not.simple(sql).expect("answers").error();
        assert!(error.is_some_and(|error| error.contains("42501")), "round {round}: {:?}", may_not.last());
        settle(may, sql);
        world.past(&format!("ALTER DATABASE {database} OWNER TO {next}"));
        let error = may.simple(sql).expect("answers").error();
        assert!(error.is_some_and(|error| error.contains("42501")), "round {round}: {:?}", may.last());
    }
    world.past(&format!("ALTER DATABASE {database} OWNER TO postgres; DROP ROLE {joe}, {bob}"));
}

/// A table that is copied anew counts for nobody before a look at the catalog that covers it.
#[test]
fn a_table_that_was_just_copied_means_what_the_catalog_says_now() {
    let world = World::start(
        FreshnessMode::Session,
        "CREATE SCHEMA early; CREATE TABLE shifting (id int PRIMARY KEY, v int); INSERT INTO shifting SELECT n, n FROM generate_series(1, 100000) n;
         CREATE TABLE still (id int PRIMARY KEY); INSERT INTO still VALUES (1)",
    );
    let connect = || {
        let mut client = world.client();
        client.simple("SET search_path = early, public").expect("answers");
        client
    };
    let (mut writer, mut reader, mut other) = (connect(), connect(), connect());
    let count = |client: &mut RawClient| client.simple("SELECT count(*) FROM shifting").expect("answers").text();
    settle(&mut reader, "SELECT count(*) FROM shifting");
    settle(&mut other, "SELECT count(*) FROM still");
    for round in 0..12u64 {
        // Its rows are written anew, and so it is copied anew.
        let rewrite = format!("ALTER TABLE shifting ALTER v TYPE {}", if round % 2 == 0 { "bigint" } else { "int" });
        assert_eq!(writer.simple(&rewrite).expect("answers").error(), None);
        let pause = Instant::now() + Duration::from_millis(20 + round * 15);
        while Instant::now() < pause {
            count(&mut reader);
        }
        assert_eq!(writer.simple("CREATE TABLE early.shifting (id int PRIMARY KEY)").expect("answers").error(), None);
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            assert_eq!(count(&mut reader), "0", "round {round}: {:?}", reader.last());
            other.simple("SELECT count(*) FROM still").expect("answers");
        }
        assert_eq!(writer.simple("DROP TABLE early.shifting").expect("answers").error(), None);
        until("answered here again", || {
            assert_eq!(count(&mut reader), "100000");
            reader.last().expect("answers").0 != "relay"
        });
    }
}

/// No barrier compares what nobody has been answered from. A table that was dropped and made again before it was read was refused for
/// ever ("privilege: schema public"), for the OID that it no longer had; so was one whose reader got the right to read it later,
/// and, in a transaction block, one whose columns have become others.
#[test]
fn what_was_changed_before_anybody_read_it_is_read_here_soon() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE again (id int PRIMARY KEY, v int); CREATE TABLE swapped (id int PRIMARY KEY, v int);
         CREATE TABLE granted (id int PRIMARY KEY); CREATE TABLE widened (id int PRIMARY KEY);
         CREATE TABLE retyped (id int PRIMARY KEY, v tsvector); CREATE VIEW over AS SELECT id FROM again;
         CREATE TABLE held (id int PRIMARY KEY)",
    );
    let role = format!("ann_{}", world.database);
    world.past(&format!("CREATE ROLE {role} LOGIN"));
    let mut client = world.client();
    settle(&mut client, "SELECT count(*) FROM held");
    world.past(
        "DROP VIEW over; DROP TABLE again; CREATE TABLE again (id int PRIMARY KEY, v int); INSERT INTO again VALUES (1, 2);
         CREATE VIEW over AS SELECT * FROM again;
         CREATE TABLE next (id int PRIMARY KEY, v int); INSERT INTO next VALUES (1, 3);
         ALTER TABLE swapped RENAME TO swapped_before; ALTER TABLE next RENAME TO swapped; DROP TABLE swapped_before",
    );
    let is_here = |client: &mut RawClient, sql: &str| {
        client.simple(sql).expect("answers");
        client.last().expect("answers").0 != "relay"
    };
    for sql in ["SELECT v FROM again", "SELECT v FROM over", "SELECT v FROM swapped"] {
        until(sql, || is_here(&mut client, sql));
    }
    let mut ann = RawClient::connect(world.freshet.address(), &role, &world.database).expect("connects");
    // The catalog may have been read anew meanwhile.
    until("refused for the right that is missing", || {
        assert!(ann.simple("SELECT id FROM granted").expect("answers").error().is_some());
        ann.last().expect("answers").1 == "privilege: column granted.id"
    });
    world.past(&format!("GRANT SELECT ON granted TO {role}"));
    until("read with a right that is new", || is_here(&mut ann, "SELECT id FROM granted"));
    world.past("ALTER TABLE widened ADD z int; ALTER TABLE retyped ALTER v TYPE text");
    for sql in ["SELECT z FROM widened", "SELECT length(v) FROM retyped"] {
        until(sql, || {
            client.simple("BEGIN").expect("answers");
            let is_here = is_here(&mut client, sql);
            client.simple("COMMIT").expect("answers");
            is_here
        });
    }
    world.past(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

/// A change of values by DDL past freshet leaves no row in the log; the next row of the table was shown beside the old values.
#[test]
fn a_rewritten_table_is_not_shown_in_part() {
    let world = World::start(
        FreshnessMode::Session,
        "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2)",
    );
    let mut client = world.client();
    let mut direct = RawClient::connect(world.cluster.address(), "postgres", &world.database).expect("connects");
    const SUM: &str = "SELECT sum(v) FROM t";
    let sum = |client: &mut RawClient| client.simple(SUM).expect("answers").text().parse::<i64>().expect("a number");
    for round in 0..12 {
        settle(&mut client, SUM);
        // From here on the stream has described the table as it is.
        direct.simple(&format!("INSERT INTO t VALUES ({}, 1)", 100 + round)).expect("answers");
        let before = sum(&mut direct);
        until("what is there is shown", || sum(&mut client) == before);
        settle(&mut client, SUM);
        let insert = format!("INSERT INTO t VALUES ({}, 5)", round + 3);
        let change = match round % 4 {
            0 => "ALTER TABLE t ALTER v TYPE int USING v * 2".to_owned(),
            1 => "ALTER TABLE t RENAME v TO w; ALTER TABLE t ADD v int DEFAULT 7; ALTER TABLE t DROP w".to_owned(),
            // PostgreSQL describes the table again only before the next row.
            _ => format!("BEGIN; {insert}; ALTER TABLE t ALTER v TYPE int USING v * 2 + 1; COMMIT"),
        };
        direct.simple(&change).expect("answers");
        let between = sum(&mut direct);
        if round % 4 < 2 {
            direct.simple(&insert).expect("answers");
        }
        let after = sum(&mut direct);
        let limit = Instant::now() + Duration::from_secs(30);
        loop {
            let now = sum(&mut client);
            assert!(
                [before, between, after].contains(&now),
                "{now} of {before}, {between}, {after}: {:?}",
                client.last()
            );
            if now == after {
                break;
            }
            assert!(Instant::now() < limit, "{:?}", client.last());
        }
    }
}

/// The moment that a kept reply had waited for was taken for a statement that names something else by now: that this was as the catalog
/// has it, nobody had asked.
#[test]
fn a_view_that_was_dropped_is_not_read_at_the_moment_of_another_relation() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE SCHEMA early; CREATE TABLE a (id int PRIMARY KEY, v int); CREATE TABLE b (id int PRIMARY KEY, v int);
         INSERT INTO a SELECT n, n FROM generate_series(1, 20) n; INSERT INTO b SELECT n, n * 10 FROM generate_series(1, 20) n",
    );
    let database = world.database.clone();
    world.past(&format!("ALTER DATABASE {database} SET search_path = early, public"));
    let mut client = world.client();
    let compared = || world.freshet.status(&database, "audits");
    for round in 0..6 {
        let sql = format!("SELECT id, v, {round} AS round FROM a ORDER BY id");
        let limit = Instant::now() + Duration::from_secs(30);
        while {
            client.simple(&sql).expect("answers");
            client.last().expect("answers").0 != "hit"
        } {
            assert!(Instant::now() < limit, "{:?}", client.last());
        }
        // The kept reply is that of the table which is called b from here on.
        world.past(
            "BEGIN; ALTER TABLE a RENAME TO c; ALTER TABLE b RENAME TO a; ALTER TABLE c RENAME TO b;
             CREATE VIEW early.a AS SELECT 1 AS id, 1022 AS v; COMMIT",
        );
        let before = compared();
        while {
            client.simple(&sql).expect("answers");
            client.last().expect("answers").1 != "first_run"
        } {
            assert!(Instant::now() < limit, "{:?}", client.last());
        }
        until("the view's rows were compared", || compared() != before);
        world.past("DROP VIEW early.a");
        let expected = world.cluster.psql(&database, &format!("SET search_path = public; {sql}"));
        for _ in 0..3 {
            let reply = client.simple(&sql).expect("answers");
            let rows = reply.rows();
            let first = |row: &[Option<Vec<u8>>]| String::from_utf8(row[1].clone().expect("a number")).expect("text");
            assert_eq!(rows.len(), 20, "round {round}: {:?}", client.last());
            assert!(expected.contains(&format!("1|{}|{round}", first(&rows[0]))), "round {round}: {:?}", client.last());
        }
    }
}
