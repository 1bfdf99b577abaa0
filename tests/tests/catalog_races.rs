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
