//! Columns of types that are not held here: a statement that only carries them along is answered here all the same.

use freshet_config::FreshnessMode;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, settle};

const SETUP: &str = "
    CREATE TABLE places (id int PRIMARY KEY, name text, at point, words tsvector, region int);
    INSERT INTO places SELECT n, 'p' || n, point(n, -n), to_tsvector('simple', 'p' || n), n % 5 FROM generate_series(1, 60) n;
    CREATE TABLE visits (id int PRIMARY KEY, place int, hits int);
    INSERT INTO visits SELECT n, 1 + n % 70, n % 11 FROM generate_series(1, 400) n;
    CREATE VIEW all_places AS SELECT * FROM places;
    CREATE VIEW seen AS SELECT v.hits, p.* FROM visits v JOIN places p ON p.id = v.place";

/// Only what is held is wanted.
const LOCAL: &[&str] = &[
    "SELECT count(*) FROM (SELECT * FROM places) q",
    "SELECT q.name, q.region FROM (SELECT * FROM places) q WHERE q.id < 9 ORDER BY q.id",
    "SELECT name FROM all_places WHERE region = 2 ORDER BY name",
    "SELECT region, sum(hits) FROM seen GROUP BY region ORDER BY region",
    "SELECT name, hits FROM seen WHERE id = 7 ORDER BY hits, name LIMIT 3",
    "WITH q AS (SELECT * FROM places), r AS (SELECT * FROM q WHERE id > 3) SELECT r.region, count(*) FROM r JOIN q USING (id) GROUP BY 1 ORDER BY 1",
    "WITH RECURSIVE q AS (SELECT * FROM places) SELECT max(id) FROM q",
    "SELECT id FROM visits v WHERE EXISTS (SELECT * FROM places p WHERE p.id = v.place AND p.region = 1) ORDER BY id",
    "SELECT id FROM visits WHERE EXISTS (SELECT at FROM places WHERE id = 4) ORDER BY id LIMIT 2",
    "SELECT name FROM (SELECT DISTINCT ON (region) * FROM places ORDER BY region, id DESC) q ORDER BY name",
    "SELECT id FROM (SELECT p.*, row_number() OVER (PARTITION BY region ORDER BY id DESC) AS rn FROM places p) q WHERE rn = 1 ORDER BY id",
    "SELECT q.spot FROM (SELECT at, id AS spot, words w FROM places LIMIT 60) q ORDER BY 1",
    "SELECT c FROM (SELECT * FROM places ORDER BY id LIMIT 5) q (a, b, x, y, c) ORDER BY c",
    "SELECT v.id, q.name FROM visits v LEFT JOIN (SELECT * FROM all_places) q ON q.id = v.place ORDER BY v.id",
    "SELECT v.id, q.name FROM visits v, LATERAL (SELECT * FROM places p WHERE p.id = v.place) q ORDER BY v.id",
    "SELECT count(id) FROM (SELECT q.* FROM (SELECT * FROM places) q ORDER BY NULL::text, id) r",
];

/// They are wanted, or decide which rows there are.
const NOT_LOCAL: &[&str] = &[
    "SELECT * FROM (SELECT * FROM places) q ORDER BY id",
    "SELECT q.at FROM (SELECT * FROM places) q ORDER BY id",
    "SELECT words FROM all_places ORDER BY id",
    "SELECT count(at) FROM (SELECT * FROM places) q",
    "SELECT count(*) FROM (SELECT DISTINCT id, words FROM places) q",
    "SELECT count(*) FROM (SELECT words FROM places UNION SELECT words FROM places) q",
    "SELECT count(*) FROM (SELECT id, words FROM places UNION ALL SELECT id, words FROM places) q",
    "SELECT count(*) FROM (SELECT id, words FROM places GROUP BY id) q",
    "SELECT count(*) FROM (SELECT region, words FROM places GROUP BY 1, 2) q",
    "SELECT count(*) FROM (SELECT id, words FROM places ORDER BY 2 LIMIT 9) q",
    "SELECT count(*) FROM (SELECT id, words w FROM places ORDER BY w LIMIT 9) q",
    "SELECT id FROM (SELECT * FROM places) q WHERE q.words @@ 'p7'",
    "SELECT (SELECT words FROM places WHERE id = 1)",
    "SELECT count(*) FROM visits WHERE 'p3'::tsvector IN (SELECT words FROM places)",
    "SELECT q FROM (SELECT * FROM places) q ORDER BY q.id LIMIT 1",
    "SELECT count(*) FROM (SELECT words FROM places) q JOIN (SELECT words FROM places) r USING (words)",
    "SELECT count(*) FROM (SELECT id, words FROM places) q NATURAL JOIN (SELECT id, words FROM places) r",
];

fn shown(client: &mut RawClient, sql: &str) -> Vec<Vec<Option<Vec<u8>>>> {
    let reply = client.simple(sql).expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
    reply.rows()
}

#[test]
fn what_is_only_carried_along_is_in_nobodys_way() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let world = World::start(mode, SETUP);
        let (mut through, mut direct) = (world.client(), world.direct());
        for sql in LOCAL {
            settle(&mut through, sql);
            through.simple("SET freshet.route = 'local'").expect("answers");
            assert_eq!(shown(&mut through, sql), shown(&mut direct, sql), "{sql}");
            assert_eq!(through.last().expect("answers").0, "local", "{sql}");
            through.simple("SET freshet.route = 'auto'").expect("answers");
        }
        for sql in NOT_LOCAL {
            for _ in 0..4 {
                assert_eq!(shown(&mut through, sql), shown(&mut direct, sql), "{sql}");
                let (route, _) = through.last().expect("answers");
                assert_ne!(route, "local", "{sql}");
            }
        }
        // A write to such a column alone, and one to what is read beside it.
        let read = LOCAL[1];
        settle(&mut through, read);
        through.simple("UPDATE places SET at = '(0, 0)', words = NULL").expect("answers");
        assert_eq!(shown(&mut through, read), shown(&mut direct, read));
        through.simple("UPDATE places SET name = 'new', words = 'new' WHERE id = 8").expect("answers");
        assert_eq!(shown(&mut through, read), shown(&mut direct, read));
        settle(&mut through, read);
        assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
        assert_eq!(world.freshet.status(&world.database, "shape_mismatches"), "0");
    }
}

#[test]
fn who_may_not_read_such_a_column_may_not_carry_it_along() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    world.past(
        "CREATE ROLE half LOGIN; GRANT SELECT (id, name, region) ON places TO half; GRANT SELECT ON visits TO half",
    );
    let mut owner = world.client();
    for sql in [LOCAL[0], LOCAL[7], LOCAL[11]] {
        settle(&mut owner, sql);
    }
    let connect = |address| RawClient::connect(address, "half", &world.database).expect("connects");
    let (mut through, mut direct) = (connect(world.freshet.address()), connect(world.cluster.address()));
    for sql in [LOCAL[0], LOCAL[7], LOCAL[11], "SELECT count(*) FROM (SELECT id, name FROM places) q"] {
        for _ in 0..4 {
            let (here, there) = (through.simple(sql).expect("answers"), direct.simple(sql).expect("answers"));
            assert_eq!((here.error(), here.rows()), (there.error(), there.rows()), "{sql}");
        }
    }
}
