//! Functions that no text of a client names: those of triggers, defaults, checks, rules and views. What they do to a session and to
//! rows is in force for the next read, and what they do not do costs nothing.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::operator::Operator;
use freshet_tests::raw::{RawClient, frame};

const SCHEMA: &str = "
    CREATE SCHEMA one; CREATE SCHEMA two;
    CREATE TABLE one.t (id int PRIMARY KEY, v int); INSERT INTO one.t VALUES (1, 10);
    CREATE TABLE two.t (id int PRIMARY KEY, v int); INSERT INTO two.t VALUES (1, 20);
    CREATE TABLE public.counter (id int PRIMARY KEY, v int); INSERT INTO counter VALUES (1, 0);
    CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM set_config(''search_path'', ''two, public'', false); RETURN NEW; END';
    CREATE FUNCTION turn() RETURNS int LANGUAGE plpgsql AS
        'BEGIN PERFORM set_config(''search_path'', ''two, public'', false); RETURN 1; END';
    CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN CREATE TEMP TABLE t AS SELECT 1 AS id, 99 AS v; RETURN NEW; END';
    CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.v = coalesce(NEW.v, 0) + 1; RETURN NEW; END';
    CREATE FUNCTION bump() RETURNS int LANGUAGE plpgsql AS
        'BEGIN UPDATE public.counter SET v = v + 1 WHERE id = 1; RETURN 1; END';
    CREATE FUNCTION bumped(counter) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN bump(); END';
    CREATE TABLE public.triggered (id serial PRIMARY KEY, v int);
    CREATE TRIGGER a AFTER INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION leave();
    CREATE TABLE public.hiding (id serial PRIMARY KEY, v int);
    CREATE TRIGGER a AFTER INSERT ON hiding FOR EACH ROW EXECUTE FUNCTION hide();
    CREATE TABLE public.defaulted (id serial PRIMARY KEY, v int DEFAULT turn());
    CREATE TABLE public.checked (id serial PRIMARY KEY, v int CHECK (turn() = 1));
    CREATE TABLE public.ruled (id serial PRIMARY KEY, v int);
    CREATE RULE r AS ON INSERT TO ruled DO ALSO SELECT turn();
    CREATE TABLE public.parent (id int PRIMARY KEY);
    CREATE TABLE public.child (id int PRIMARY KEY REFERENCES parent ON DELETE CASCADE);
    CREATE FUNCTION leave_too() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM turn(); RETURN OLD; END';
    CREATE TRIGGER a AFTER DELETE ON child FOR EACH ROW EXECUTE FUNCTION leave_too();
    CREATE FUNCTION reverse(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM turn(); RETURN 1; END';
    CREATE FUNCTION by_name() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM reverse(1); RETURN NEW; END';
    CREATE TABLE public.named (id serial PRIMARY KEY, v int);
    CREATE TRIGGER a AFTER INSERT ON named FOR EACH ROW EXECUTE FUNCTION by_name();
    CREATE TABLE public.guarded (id serial PRIMARY KEY, v int);
    CREATE TRIGGER a AFTER INSERT ON guarded FOR EACH ROW WHEN (turn() = 1) EXECUTE FUNCTION touch();
    INSERT INTO parent VALUES (1), (2); INSERT INTO child VALUES (1), (2);
    CREATE FUNCTION steady(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM turn(); RETURN $1; END';
    CREATE TABLE public.indexed (id serial PRIMARY KEY, v int); CREATE INDEX ON indexed ((v + steady(v)));
    CREATE TABLE public.partly (id serial PRIMARY KEY, v int); CREATE INDEX ON partly (v) WHERE steady(v) > 0;
    CREATE TABLE public.divided (id serial, v int) PARTITION BY LIST (steady(v));
    CREATE TABLE public.division PARTITION OF divided FOR VALUES IN (1) PARTITION BY RANGE (v);
    CREATE TABLE public.leaf PARTITION OF division DEFAULT;
    CREATE FUNCTION ordered(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
        'BEGIN PERFORM turn(); RETURN CASE WHEN $1 < $2 THEN -1 WHEN $1 > $2 THEN 1 ELSE 0 END; END';
    CREATE OPERATOR CLASS turning_ops FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=,
        OPERATOR 5 >, FUNCTION 1 ordered(int, int);
    CREATE TABLE public.classed (id serial PRIMARY KEY, v int); INSERT INTO classed (v) VALUES (1), (2);
    CREATE INDEX ON classed (v turning_ops);
    CREATE VIEW public.over_triggered AS SELECT id, v FROM triggered;
    CREATE VIEW public.turning AS SELECT turn() AS v;
    CREATE VIEW public.bumping AS SELECT bump() AS v;
    CREATE VIEW public.over_bumping AS SELECT v + 1 AS v FROM bumping;
    CREATE TABLE public.touched (id serial PRIMARY KEY, v int);
    CREATE TRIGGER a BEFORE INSERT ON touched FOR EACH ROW EXECUTE FUNCTION touch();
    CREATE FUNCTION public.round(float8, int) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT round($1::numeric, $2)::float8';
    CREATE FUNCTION public.grade(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
        'BEGIN IF $1 > 5 THEN RETURN ''high''; END IF; RETURN lower(''LOW''); END';
    CREATE FUNCTION public.mark(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
    CREATE FUNCTION two.counted() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM public.parent); END';
    CREATE FUNCTION public.abs(text) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN turn(); END';
    CREATE FUNCTION public.\"x.mark\"(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN turn(); END';
    CREATE FUNCTION public.set_config(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1';
    CREATE FUNCTION public.by_default(a int DEFAULT turn()) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN a; END';
    CREATE FUNCTION public.cover() RETURNS void LANGUAGE sql AS 'SELECT 1 AS id, 99 AS v INTO pg_temp.t';
    CREATE TABLE public.refreshing (id int PRIMARY KEY);
    CREATE MATERIALIZED VIEW public.amount AS SELECT count(*) AS n FROM refreshing;
    CREATE FUNCTION refresh() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN REFRESH MATERIALIZED VIEW public.amount; RETURN NULL; END';
    CREATE TRIGGER a AFTER INSERT ON refreshing FOR EACH STATEMENT EXECUTE FUNCTION refresh();
    CREATE FUNCTION public.counts(text) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN nextval($1::regclass); END';";

const READ: &str = "SELECT v FROM t WHERE id = 1";

fn ask(client: &mut RawClient, sql: &str) -> String {
    let reply = client.simple(sql).expect("answers");
    assert_eq!(reply.error(), None, "{sql}");
    reply.text()
}

fn until_here(client: &mut RawClient, sql: &str) {
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        ask(client, sql);
        let (route, reason) = client.last().expect("answers");
        if route != "relay" {
            return;
        }
        assert!(Instant::now() < limit, "{sql}: {reason}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn start(cluster: &Cluster, mode: FreshnessMode) -> (String, Freshet) {
    start_with(cluster, mode, "")
}

fn start_with(cluster: &Cluster, mode: FreshnessMode, more: &str) -> (String, Freshet) {
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    cluster.psql(&database, more);
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.freshness.mode = mode;
        settings.freshness.wait_budget_ms = 5_000;
    });
    (database, freshet)
}

#[test]
fn what_they_do_to_the_session_is_in_force() {
    let cluster = Cluster::shared();
    let (database, freshet) = start(cluster, FreshnessMode::Exact);
    for statement in [
        "INSERT INTO triggered (v) VALUES (1)",
        "INSERT INTO defaulted (id) VALUES (DEFAULT)",
        "INSERT INTO checked (v) VALUES (1)",
        "INSERT INTO ruled (v) VALUES (1)",
        "INSERT INTO over_triggered (v) VALUES (1)",
        "WITH w AS (INSERT INTO triggered (v) VALUES (1) RETURNING v) SELECT v FROM w",
        "DELETE FROM parent WHERE id = (SELECT min(id) FROM parent)",
        "SELECT v FROM turning",
        "COPY (SELECT v FROM turning) TO STDOUT",
        "BEGIN; INSERT INTO triggered (v) VALUES (2); COMMIT",
        "INSERT INTO named (v) VALUES (1)",
        "INSERT INTO guarded (v) VALUES (1)",
        "INSERT INTO hiding (v) VALUES (1)",
        "INSERT INTO indexed (v) VALUES (1)",
        "INSERT INTO partly (v) VALUES (1)",
        "INSERT INTO divided (v) VALUES (1)",
        "INSERT INTO leaf (v) VALUES (1)",
        "INSERT INTO classed (v) VALUES (3)",
        "SELECT set_config('search_path', 'two, public', false) FROM generate_series(1, 1)",
        "SELECT public.cover()",
        "SELECT public.by_default()",
        "SELECT by_default()",
        "SELECT abs('x')",
        "SELECT \"x.mark\"(1)",
        "SELECT public.\"x.mark\"(1)",
    ] {
        assert_in_force(cluster, &freshet, &database, "SET search_path = one, public", statement);
    }
}

/// In new sessions, of which `before` is asked first.
fn assert_in_force(cluster: &Cluster, freshet: &Freshet, database: &str, before: &str, statement: &str) {
    let connect = |address| RawClient::connect(address, "postgres", database).expect("connects");
    let (mut direct, mut through) = (connect(cluster.address()), connect(freshet.address()));
    for client in [&mut direct, &mut through] {
        ask(client, before);
    }
    until_here(&mut through, READ);
    for client in [&mut through, &mut direct] {
        let reply = client.simple(statement).expect("answers");
        assert_eq!(reply.error(), None, "{statement}");
    }
    for _ in 0..3 {
        let expected = ask(&mut direct, READ);
        assert_ne!(expected, "10", "{statement}");
        assert_eq!(ask(&mut through, READ), expected, "{statement}: {:?}", through.last());
    }
}

/// An event trigger fires for what is defined, also where the definition itself changes nothing that a session knows.
#[test]
fn what_an_event_trigger_does_is_in_force() {
    let cluster = Cluster::shared();
    let fires = "CREATE FUNCTION noted() RETURNS event_trigger LANGUAGE plpgsql AS
            'BEGIN IF current_setting(''application_name'') = ''fires'' THEN PERFORM turn(); END IF; END';
        CREATE MATERIALIZED VIEW kept AS SELECT 1 AS one;
        CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION noted()";
    let (database, freshet) = start_with(cluster, FreshnessMode::Exact, fires);
    for statement in [
        "COMMENT ON TABLE parent IS 'x'",
        "REFRESH MATERIALIZED VIEW kept",
        // From 17 on it fires.
        if cluster.major() < 17 { "COMMENT ON TABLE child IS 'y'" } else { "REINDEX TABLE parent" },
        "GRANT SELECT ON parent TO PUBLIC",
    ] {
        let before = "SET search_path = one, public; SET application_name = fires";
        assert_in_force(cluster, &freshet, &database, before, statement);
    }
}

#[test]
fn a_trigger_that_comes_later_counts_for_prepared_statements() {
    let cluster = Cluster::shared();
    let (database, freshet) = start(cluster, FreshnessMode::Exact);
    let mut through = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    ask(&mut through, "SET search_path = one, public");
    until_here(&mut through, READ);
    let named = [frame(b'P', b"w\0INSERT INTO touched (v) VALUES (1)\0\0\0"), frame(b'S', b"")].concat();
    through.send(&named).expect("sends");
    assert_eq!(through.read_reply().expect("answers").error(), None);
    cluster.psql(
        &database,
        "CREATE FUNCTION leave_later() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM set_config(''search_path'', ''two, public'', false); RETURN NEW; END';
         CREATE TRIGGER b AFTER INSERT ON touched FOR EACH ROW EXECUTE FUNCTION leave_later()",
    );
    // Until the catalog is known again.
    until_here(&mut through, READ);
    assert_eq!(ask(&mut through, READ), "10");
    let run = [frame(b'B', b"\0w\0\0\0\0\0\0\0"), frame(b'E', b"\0\0\0\0\0"), frame(b'S', b"")].concat();
    through.send(&run).expect("sends");
    assert_eq!(through.read_reply().expect("answers").error(), None);
    assert_eq!(ask(&mut through, READ), "20", "{:?}", through.last());
}

#[test]
fn what_a_read_of_a_view_writes_is_seen_by_other_sessions() {
    let cluster = Cluster::shared();
    let (database, freshet) = start(cluster, FreshnessMode::Session);
    let connect = || RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let (mut writer, mut reader) = (connect(), connect());
    let read = "SELECT v FROM counter WHERE id = 1";
    until_here(&mut reader, read);
    let mut expected = 0;
    for round in 0..20 {
        for statement in [
            "SELECT * FROM bumping",
            "SELECT v FROM public.over_bumping",
            "COPY (SELECT * FROM bumping) TO STDOUT",
            "BEGIN; SELECT * FROM bumping; COMMIT",
            // Behind a WITH, whose end may be any name.
            "COPY (WITH x AS (SELECT 1 AS n) UPDATE counter SET v = v + n FROM x WHERE id = n RETURNING v) TO STDOUT",
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SEARCH DEPTH FIRST BY n SET o
             UPDATE counter SET v = v + 1 WHERE id = 1",
            // Written as a column of the row that it takes.
            "SELECT c.bumped FROM counter c",
            "SELECT public.bumped(c) FROM counter c",
        ] {
            let reply = writer.simple(statement).expect("answers");
            assert_eq!(reply.error(), None, "{statement}");
            expected += 1;
            assert_eq!(ask(&mut reader, read), expected.to_string(), "{statement}, {round}: {:?}", reader.last());
        }
    }
}

/// Operators, casts and domains run functions that have no name in the statement.
#[test]
fn what_has_no_name_of_its_own_counts() {
    const UNNAMED: &str = "
        CREATE FUNCTION added(a int, b int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN bump() * 0 + a + b; END';
        CREATE OPERATOR #*# (LEFTARG = int, RIGHTARG = int, FUNCTION = added);
        CREATE OPERATOR #+# (LEFTARG = int, RIGHTARG = int, FUNCTION = int4pl);
        CREATE FUNCTION passes(a int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN bump() = 1; END';
        CREATE DOMAIN counted AS int CHECK (passes(VALUE));
        CREATE DOMAIN of_domain AS counted;
        CREATE DOMAIN harmless AS int CHECK (VALUE > 0);
        CREATE TYPE pair AS (a int, b of_domain);
        CREATE TYPE apple AS (a int);
        CREATE FUNCTION to_apple(a int) RETURNS apple LANGUAGE plpgsql AS 'BEGIN PERFORM bump(); RETURN ROW(a)::apple; END';
        CREATE CAST (int AS apple) WITH FUNCTION to_apple(int);
        CREATE VIEW with_domain AS SELECT 7::counted AS v;
        CREATE FUNCTION by_operator() RETURNS int LANGUAGE sql AS 'SELECT 1 #*# 2';
        CREATE FUNCTION by_variable() RETURNS int LANGUAGE plpgsql AS 'DECLARE x counted; BEGIN x := 5; RETURN x; END';
        CREATE FUNCTION by_result() RETURNS counted LANGUAGE plpgsql AS 'BEGIN RETURN 5; END'";
    let cluster = Cluster::shared();
    let (database, freshet) = start_with(cluster, FreshnessMode::Session, UNNAMED);
    let connect = || RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let (mut writer, mut reader) = (connect(), connect());
    let read = "SELECT v FROM counter WHERE id = 1";
    until_here(&mut reader, read);
    let value = |text: String| text.trim().parse::<i64>().expect("a number");
    let mut expected = value(cluster.psql(&database, read));
    for round in 0..4 {
        for statement in [
            "SELECT 1 #*# 2",
            "SELECT 1 OPERATOR(public.#*#) 2",
            "SELECT 5::counted",
            "SELECT CAST(5 AS of_domain)",
            "VALUES (counted '6')",
            "SELECT '(1,2)'::pair",
            "SELECT '{4}'::counted[]",
            "SELECT CAST(5 AS apple)",
            "SELECT * FROM with_domain",
            "SELECT by_operator()",
            "SELECT by_variable()",
            "SELECT by_result()",
            "SELECT (json_populate_record(NULL::pair, '{\"b\": 1}')).b",
        ] {
            let reply = writer.simple(statement).expect("answers");
            assert_eq!(reply.error(), None, "{statement}");
            let seen = ask(&mut reader, read);
            // A variable is checked when it is declared, too.
            let before = std::mem::replace(&mut expected, value(cluster.psql(&database, read)));
            assert!(expected > before, "{statement} writes");
            assert_eq!(value(seen), expected, "{statement}, {round}: {:?}", reader.last());
        }
    }
    // In a block the session's own write is seen, and what is harmless costs nothing.
    ask(&mut writer, "BEGIN");
    until_here(&mut writer, read);
    ask(&mut writer, "SELECT 1 #*# 2");
    assert_eq!(ask(&mut writer, read), (expected + 1).to_string());
    ask(&mut writer, "ROLLBACK");
    until_here(&mut writer, read);
    for statement in ["SELECT 1 #+# 2", "SELECT 5::harmless"] {
        ask(&mut writer, statement);
        ask(&mut writer, read);
        assert_ne!(writer.last().expect("answers").0, "relay", "{statement}");
    }
}

/// No row tells of it, but a definition.
#[test]
fn what_a_trigger_refreshes_is_seen_at_once() {
    let cluster = Cluster::shared();
    let (database, freshet) = start(cluster, FreshnessMode::Session);
    let mut through = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let read = "SELECT n FROM amount";
    for id in 1..=10 {
        until_here(&mut through, read);
        ask(&mut through, &format!("INSERT INTO refreshing VALUES ({id})"));
        assert_eq!(ask(&mut through, read), id.to_string(), "{:?}", through.last());
    }
}

/// What has come since the catalog was read, on a table that nobody reads.
#[test]
fn a_check_on_a_table_that_is_not_read_counts() {
    let cluster = Cluster::shared();
    let (database, freshet) = start(cluster, FreshnessMode::Exact);
    let connect = || RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let mut other = connect();
    ask(&mut other, "SET search_path = one, public");
    until_here(&mut other, READ);
    cluster.psql(&database, "ALTER TABLE touched ADD CHECK (turn() = 1)");
    until_here(&mut other, READ);
    let mut through = connect();
    ask(&mut through, "SET search_path = one, public");
    until_here(&mut through, READ);
    ask(&mut through, "INSERT INTO touched (v) VALUES (1)");
    assert_eq!(ask(&mut through, READ), "20", "{:?}", through.last());
}

/// A function that was known to compute only, changed past freshet and called at once.
#[test]
fn another_body_counts_at_once() {
    let cluster = Cluster::shared();
    let (database, freshet) = start(cluster, FreshnessMode::Exact);
    for (round, call) in
        ["SELECT grade(1)", "BEGIN; SELECT grade(1); COMMIT", "INSERT INTO touched (v) VALUES (grade(1)::int)"]
            .into_iter()
            .cycle()
            .take(9)
            .enumerate()
    {
        let mut through = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
        ask(&mut through, "SET search_path = one, public");
        cluster.psql(
            &database,
            "CREATE OR REPLACE FUNCTION public.grade(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 1; END'",
        );
        until_here(&mut through, READ);
        ask(&mut through, call);
        assert_eq!(ask(&mut through, READ), "10");
        cluster.psql(
            &database,
            "CREATE OR REPLACE FUNCTION public.grade(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
                 'BEGIN PERFORM set_config(''search_path'', ''two, public'', false); RETURN 1; END'",
        );
        ask(&mut through, call);
        assert_eq!(ask(&mut through, READ), "20", "{call}, {round}: {:?}", through.last());
    }
}

/// Most triggers and functions leave the session alone.
#[test]
fn what_is_harmless_costs_no_question() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let operator = Operator::new();
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.freshness.wait_budget_ms = 5_000;
        settings.admin.address = operator.address();
    });
    let probes = || operator.metric("freshet_probes_total");
    let mut through = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    ask(&mut through, "SET search_path = one, public");
    until_here(&mut through, READ);
    let before = probes();
    for _ in 0..5 {
        for harmless in [
            "INSERT INTO touched (v) VALUES (1)",
            "SELECT grade(v) FROM t",
            "SELECT two.counted() FROM t",
            "SELECT public.grade(v) FROM t",
            "SELECT round(v::float8, 0), random() FROM t",
            "BEGIN; SELECT grade(3); COMMIT",
            // A lock, or as good as one, and no setting.
            "SELECT nextval('touched_id_seq')",
        ] {
            ask(&mut through, harmless);
            assert_eq!(ask(&mut through, READ), "10", "{harmless}");
            assert_ne!(through.last().expect("answers").0, "relay", "{harmless}");
            assert_eq!(probes(), before, "{harmless}");
        }
    }
    ask(&mut through, "SELECT counts('touched_id_seq')");
    assert_eq!(ask(&mut through, READ), "10");
    assert_ne!(probes(), before, "it is not trusted");
    let before = probes();
    ask(&mut through, "INSERT INTO triggered (v) VALUES (1)");
    assert_eq!(ask(&mut through, READ), "20");
    assert_ne!(probes(), before);
}
