//! Settings of an application's own (`app.tenant`) in statements that are answered here: `current_setting` says what it says upstream,
//! whatever has set it, and upstream is asked only after something that may have.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::client::{bind, execute, parse, sync};
use freshet_tests::operator::Operator;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, until, will_pass};

const SETUP: &str = "
    CREATE TABLE films (id int PRIMARY KEY, title text, tenant text, year int);
    INSERT INTO films SELECT n, 'title ' || n, chr(97 + n % 3), 1950 + n % 70 FROM generate_series(1, 300) n;
    CREATE TABLE log (id serial PRIMARY KEY, what text);
    CREATE VIEW mine AS SELECT id, title FROM films WHERE tenant = current_setting('app.tenant', true);
    CREATE FUNCTION set_tenant(value text, is_local bool) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN PERFORM set_config('app.tenant', value, is_local); END $$;
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM set_config('app.tenant', NEW.what, false); RETURN NEW; END $$;
    CREATE TRIGGER note BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION note();
    ANALYZE";

const READS: &[&str] = &[
    "SELECT id, title, current_setting('app.tenant', true) FROM films WHERE tenant = current_setting('App.Tenant', true) ORDER BY id LIMIT 3",
    "SELECT count(*), min(id) FROM mine",
    "SELECT nullif(current_setting('app.tenant', true), '') AS tenant, current_setting('app.other', true) IS NULL AS has_none, count(*) FROM films",
];

struct Script {
    both: Both,
    _world: World,
}

impl Script {
    fn start(mode: FreshnessMode) -> Self {
        Self::of(World::start(mode, SETUP))
    }

    fn of(world: World) -> Self {
        let both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
        Self { both, _world: world }
    }

    /// The same on both sides; whether it is no error.
    fn run(&mut self, sql: &str) -> bool {
        let ask = |client: &mut RawClient| client.simple(sql).expect("answers");
        let (found, expected) = (ask(&mut self.both.through), ask(&mut self.both.direct));
        assert_eq!(found.text(), expected.text(), "{sql}");
        assert_eq!(found.error(), expected.error(), "{sql}");
        expected.error().is_none()
    }

    /// All are upstream's, and come to be answered here at once, or within the block not at all.
    fn read(&mut self, after: &str) {
        for sql in READS {
            until(&format!("{after}: {sql}"), || {
                let (route, reason) = self.both.routed(after, sql);
                // While the first catalog comes, one statement asks no more than a few questions.
                let is_start = after == "nothing" && reason.starts_with("custom_settings");
                let is_passing =
                    is_start || will_pass(&reason) || reason.starts_with("opaque_session: settings are not known");
                assert!(route != "relay" || is_passing, "{after}: {sql}: {route} {reason}");
                route != "relay"
            });
        }
    }
}

#[test]
fn whatever_sets_it_is_followed() {
    let mut script = Script::start(FreshnessMode::Exact);
    script.read("nothing");
    for steps in [
        "SET app.tenant = 'b'",
        "BEGIN; |SET LOCAL app.tenant = 'a'|COMMIT",
        "SELECT set_config('app.tenant', 'c', false)",
        "BEGIN|SELECT set_config('app.tenant', 'a', true)|SAVEPOINT s|SET LOCAL app.tenant = 'b'|ROLLBACK TO s|RELEASE s|ROLLBACK",
        "BEGIN|SAVEPOINT s|SET app.tenant = 'b'|ROLLBACK TO s|SET app.tenant TO 'c'|COMMIT",
        "BEGIN|SAVEPOINT s|SET app.tenant = 'b'|RELEASE s|COMMIT AND CHAIN|SET app.tenant = 'c'|ROLLBACK",
        "SELECT set_tenant('a', false)",
        "SELECT set_tenant('c', true)",
        "BEGIN; SELECT set_tenant('c', true)|COMMIT",
        "BEGIN|SELECT set_tenant('c', false), count(*) FROM films|ROLLBACK",
        "INSERT INTO films SELECT 1000, 't', 'b', set_tenant('b', false)::text::int",
        "DO $$ BEGIN PERFORM set_config('app.tenant', 'c', false); END $$",
        "SET app.tenant = 'a'; SELECT 1",
        "RESET app.tenant",
        "SET app.tenant = 'b'",
        "BEGIN|RESET ALL|ROLLBACK",
        "BEGIN|SELECT 1 / 0|ROLLBACK",
        "SET app.tenant TO DEFAULT",
        "SELECT set_config('app.tenant', 'x', false)",
        "SELECT set_config('app.tenant', NULL, false)",
        "SELECT set_config('app.tenant', 'c', false), set_config('app.tenant', 'a', true)",
        "SET app.tenant = 'z'|SELECT set_tenant('a', true); BEGIN|COMMIT",
        "SET app.tenant = 'y'; SELECT set_tenant('c', true); BEGIN; SELECT 1|SELECT 2|ROLLBACK",
        "DISCARD ALL",
        "SET app.tenant = ''",
        "SET app.Tenant = 'C'; SET APP.tenant = 'c'",
        "PREPARE p AS SELECT set_tenant('b', false)|EXECUTE p",
        "BEGIN|DECLARE d CURSOR FOR SELECT set_tenant('a', false) FROM films|FETCH 1 FROM d|COMMIT",
        "INSERT INTO log (what) VALUES ('a')",
        "RESET ALL",
    ] {
        for step in steps.split('|') {
            if script.run(step) {
                script.read(&format!("{steps} at {step}"));
            }
        }
    }
}

/// Where it must be there, upstream says that it is not.
#[test]
fn one_that_is_missing_is_upstreams_error() {
    let mut script = Script::start(FreshnessMode::Session);
    script.read("nothing");
    let sql = "SELECT current_setting('app.tenant'), id FROM films WHERE id = 3";
    let refused = "SELECT current_setting('app.nothing', false), id FROM films WHERE id < 0";
    assert!(script.both.compare("nothing", sql).is_some() && script.both.compare("nothing", refused).is_some());
    script.run("SET app.tenant = 'ä'");
    until(sql, || script.both.routed("nothing", sql).0 == "local");
    until(refused, || script.both.routed("nothing", refused).0 == "local");
    for other in [
        "SELECT current_setting('TimeZone'), id FROM films WHERE id = 3",
        "SELECT current_setting(title, true), id FROM films WHERE id = 3",
        "SELECT current_setting('app.' || 'tenant', true), id FROM films WHERE id = 3",
        "SELECT current_setting('freshet.route', true), id FROM films WHERE id = 3",
        "SELECT current_setting(NULL, true), id FROM films WHERE id = 3",
        "SELECT current_setting('app.tenant', NULL), id FROM films WHERE id = 3",
    ] {
        (0..5).for_each(|_| drop(script.both.compare("nothing", other)));
    }
}

/// As PostgREST asks: what it sets for each request are other settings than those that it reads.
#[test]
fn what_is_set_for_each_request_costs_no_question() {
    let operator = Operator::new();
    let world =
        World::start_with(FreshnessMode::Session, SETUP, |settings| settings.admin.address = operator.address());
    let mut script = Script::of(world);
    let probes = || operator.metric("freshet_probes_total");
    let request = |script: &mut Script, year: i32| {
        script.run("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY");
        script.run("SELECT set_config('search_path', '\"public\"', true), set_config('request.jwt.claims', '{\"role\":\"x\"}', true), set_config('request.method', 'GET', true)");
        let sql = format!(
            "WITH source AS (SELECT films.* FROM films WHERE films.year = {year} LIMIT 1000 OFFSET 0) \
             SELECT null::bigint AS total_result_set, pg_catalog.count(_t) AS page_total, coalesce(json_agg(_t ORDER BY _t.id), '[]') AS body, \
             nullif(current_setting('response.headers', true), '') AS response_headers, \
             nullif(current_setting('response.status', true), '') AS response_status FROM (SELECT * FROM source) _t"
        );
        let (route, reason) = script.both.routed("a request", &sql);
        script.run("COMMIT");
        (route, reason)
    };
    until("a request that is answered here", || request(&mut script, 1960).0 != "relay");
    let before = probes();
    for year in 1961..1980 {
        let (route, reason) = request(&mut script, year);
        assert!(route != "relay", "{year}: {route} {reason}");
    }
    assert_eq!(probes(), before);
}

/// A portal, and a cursor, is computed when it is run.
#[test]
fn what_is_run_later_has_the_value_of_then() {
    let mut script = Script::start(FreshnessMode::Session);
    script.read("nothing");
    let sql = "SELECT id, current_setting('app.tenant', true) FROM films ORDER BY id";
    until(sql, || script.both.routed("nothing", sql).0 != "relay");
    for setter in [
        "SET LOCAL app.tenant = 'new'",
        "SELECT set_tenant('other', true)",
        "SELECT set_config('app.tenant', 'x', true)",
    ] {
        for _ in 0..3 {
            script.run("BEGIN");
            for client in [&mut script.both.through, &mut script.both.direct] {
                let bound = [parse("", sql), bind("p", "", &[], 0), execute("p", 2), sync()].concat();
                client.send(&bound).expect("is sent");
                client.read_reply().expect("answers");
            }
            script.run(&format!("DECLARE \"SQL_CUR1\" CURSOR FOR {sql}"));
            script.run(setter);
            let run = |client: &mut RawClient| {
                client.send(&[execute("p", 2), sync()].concat()).expect("is sent");
                client.read_reply().expect("answers").frames
            };
            assert_eq!(run(&mut script.both.through), run(&mut script.both.direct), "{setter}");
            script.run("FETCH 3 IN \"SQL_CUR1\"");
            script.run("ROLLBACK");
        }
    }
}

/// What is computed of times hangs on the zone, whatever its type: rows that nobody has fetched yet are computed upstream after a SET.
#[test]
fn what_is_run_later_has_the_zone_of_then() {
    let mut script = Script::start(FreshnessMode::Session);
    script.read("nothing");
    for column in [
        "to_char(timestamptz '2024-01-01 00:00+00' + id * interval '1 hour', 'HH24')",
        "extract(hour FROM timestamptz '2024-01-01 00:00+00' + id * interval '1 hour')::int",
    ] {
        let sql = format!("SELECT id, {column} FROM films ORDER BY id");
        until(&sql, || script.both.routed("nothing", &sql).0 != "relay");
        for setter in ["SET LOCAL TimeZone = 'Asia/Tokyo'", "SELECT set_config('TimeZone', 'America/New_York', true)"] {
            script.run("BEGIN");
            for client in [&mut script.both.through, &mut script.both.direct] {
                client.send(&[parse("", &sql), bind("p", "", &[], 0), sync()].concat()).expect("is sent");
                client.read_reply().expect("answers");
            }
            script.run(setter);
            let run = |client: &mut RawClient| {
                client.send(&[execute("p", 2), sync()].concat()).expect("is sent");
                client.read_reply().expect("answers").frames
            };
            assert_eq!(run(&mut script.both.through), run(&mut script.both.direct), "{setter}");
            script.run("ROLLBACK");
        }
    }
}
