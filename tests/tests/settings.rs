//! Settings, savepoints and transactions: the same scripts through freshet and past it, with how each read was answered.

use std::time::{Duration, Instant};

use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::{RawClient, RawReply, frame};

const SCHEMA: &str = "
    CREATE SCHEMA one; CREATE SCHEMA two;
    CREATE TABLE one.t (id int PRIMARY KEY, v text); INSERT INTO one.t VALUES (1, 'one');
    CREATE TABLE two.t (id int PRIMARY KEY, v text); INSERT INTO two.t VALUES (1, 'two');
    CREATE TABLE public.t (id int PRIMARY KEY, v text); INSERT INTO public.t VALUES (1, 'public');
    CREATE TABLE public.n (id int PRIMARY KEY, f float8, b bytea, d date, at timestamptz, i interval);
    INSERT INTO public.n VALUES (1, 0.1::float4, '\\x00ff', '2024-02-03', '2024-07-01 12:00+00', '1 day 02:03:04');";

const READ_PATH: &str = "SELECT v FROM t WHERE id = 1";
const READ_FORMATS: &str = "SELECT f, b, d, at, i FROM public.n WHERE id = 1";

struct Pair {
    direct: RawClient,
    through: RawClient,
    freshet: Freshet,
    database: String,
}

impl Pair {
    /// The tables mirrored, the statements audited.
    fn start(cluster: &Cluster) -> Self {
        let database = cluster.database();
        cluster.psql(&database, SCHEMA);
        let freshet = Freshet::start(&cluster.url(&database), |settings| {
            // A busy machine is no reason to relay here.
            settings.freshness.wait_budget_ms = 5_000;
        });
        let connect = |address| RawClient::connect(address, "postgres", &database).expect("connects");
        let direct = connect(cluster.address());
        let mut warm = connect(freshet.address());
        for path in ["one", "two", "public"] {
            ask(&mut warm, &format!("SET search_path = {path}"));
            until_local(&mut warm, READ_PATH);
        }
        until_local(&mut warm, READ_FORMATS);
        let through = connect(freshet.address());
        Self { direct, through, freshet, database }
    }

    /// Runs a statement on both sides; the replies must be equal. How freshet answered.
    fn run(&mut self, sql: &str) -> String {
        let (direct, through) = (ask(&mut self.direct, sql), ask(&mut self.through, sql));
        assert_eq!(shown(&through), shown(&direct), "{sql}");
        // In a failed block freshet says no more than upstream.
        let (route, reason) = self.through.last().unwrap_or_default();
        format!("{route} {reason}").trim().to_string()
    }

    fn run_extended(&mut self, sql: &str, parameters: &[Option<&str>]) {
        let direct = self.direct.extended(sql, parameters, 0).expect("answers");
        let through = self.through.extended(sql, parameters, 0).expect("answers");
        assert_eq!(shown(&through), shown(&direct), "{sql}");
    }

    fn reads_path(&mut self, expected: &str) {
        let limit = Instant::now() + Duration::from_secs(20);
        let mut route = self.run(READ_PATH);
        while will_pass(&route) && Instant::now() < limit {
            route = self.run(READ_PATH);
        }
        assert_eq!(if route == "hit" { "local" } else { &route }, expected);
    }

    /// The table is another one on each side.
    fn reads_temporary(&mut self, expected: &str) {
        let (direct, through) = (ask(&mut self.direct, READ_PATH), ask(&mut self.through, READ_PATH));
        assert_eq!(through.rows(), direct.rows());
        assert_eq!(through.rows(), [[Some(b"temporary".to_vec())]]);
        let (route, reason) = self.through.last().expect("answers");
        assert_eq!(format!("{route} {reason}"), expected);
    }

    /// The catalog has changed: it takes a moment until it is read again.
    fn reads_soon(&mut self) {
        let limit = Instant::now() + Duration::from_secs(20);
        while [READ_PATH, READ_FORMATS].iter().any(|sql| self.run(sql).starts_with("relay")) {
            assert!(Instant::now() < limit, "{:?}", self.through.last());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn reads(&mut self, expected: &str) {
        for sql in [READ_PATH, READ_FORMATS] {
            let limit = Instant::now() + Duration::from_secs(20);
            let mut route = self.run(sql);
            // Another test has made a role, a new catalog for all databases; or nobody has compared this style of dates yet.
            while will_pass(&route) && Instant::now() < limit {
                route = self.run(sql);
            }
            let route = if route == "hit" { "local" } else { &route };
            assert_eq!(route, expected, "{sql}");
        }
    }
}

fn will_pass(route: &str) -> bool {
    matches!(route, "relay catalog_changed" | "relay first_run")
}

fn ask(client: &mut RawClient, sql: &str) -> RawReply {
    client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn until_local(client: &mut RawClient, sql: &str) {
    let limit = Instant::now() + Duration::from_secs(20);
    loop {
        ask(client, sql);
        let last = client.last().expect("answers");
        if matches!(last.0.as_str(), "hit" | "local") {
            return;
        }
        assert!(Instant::now() < limit, "{sql}: {last:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A reply but for what differs between two sessions: ParameterStatus comes where it comes, lines of errors differ.
fn shown(reply: &RawReply) -> Vec<(char, Vec<u8>)> {
    let frames = reply.envelope().into_iter().map(|frame| (char::from(frame.0), frame.1.clone()));
    let rows = reply.bodies(b'D').into_iter().map(|body| ('D', body.to_vec()));
    frames.chain(rows).collect()
}

#[test]
fn set_local_is_followed_within_its_transaction() {
    let mut pair = Pair::start(Cluster::shared());
    pair.reads("local");
    for (before, after) in [
        ("BEGIN; SET LOCAL search_path = two", "COMMIT"),
        ("BEGIN; SET LOCAL search_path TO 'one', public", "ROLLBACK"),
        ("BEGIN READ ONLY; SET LOCAL TimeZone = 'Asia/Tokyo'; SET LOCAL DateStyle = German", "END"),
        ("BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL IntervalStyle = iso_8601", "COMMIT"),
        ("BEGIN; SET LOCAL extra_float_digits = 0; SET LOCAL bytea_output = 'escape'", "ROLLBACK"),
        ("START TRANSACTION; SET search_path = two; SET LOCAL search_path = one", "COMMIT"),
        ("BEGIN; SET LOCAL search_path = one; SET search_path = two", "COMMIT"),
        ("BEGIN; SET TIME ZONE 'Europe/Berlin'; SET SCHEMA 'one'", "COMMIT"),
        (
            "BEGIN; SELECT set_config('search_path', 'two', true), set_config('request.jwt.claims', '{}', true)",
            "COMMIT",
        ),
    ] {
        pair.run(before);
        pair.reads("local");
        pair.run(after);
        pair.reads("local");
    }
    pair.run("BEGIN");
    pair.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    pair.reads("relay isolation_level");
    pair.run("COMMIT AND CHAIN");
    pair.reads("relay isolation_level");
    pair.run("ROLLBACK");
    pair.run("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY");
    pair.run("BEGIN");
    pair.reads("relay isolation_level");
    pair.run("COMMIT");
    pair.run("RESET default_transaction_isolation");
    pair.run("BEGIN");
    pair.reads("local");
    pair.run("COMMIT AND CHAIN");
    pair.reads("local");
    pair.run("COMMIT");
}

/// Superset and Metabase begin so. In PostgreSQL it is READ COMMITTED by another name, which is shown all the same.
#[test]
fn sessions_that_read_uncommitted_are_answered_in_and_out_of_blocks() {
    const CHOOSE: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED";
    let mut pair = Pair::start(Cluster::shared());
    let shows = |pair: &mut Pair, route: &str| {
        for sql in ["SHOW transaction_isolation", "SHOW TRANSACTION ISOLATION LEVEL"] {
            assert_eq!(pair.run(sql), route, "{sql}");
        }
        // Equal on both sides, as is all that the pair runs.
        ask(&mut pair.through, "SHOW transaction_isolation").text()
    };
    for by_statement in [false, true] {
        if by_statement {
            pair.run_extended(CHOOSE, &[])
        } else {
            drop(pair.run(CHOOSE))
        }
        pair.reads("local");
        assert_eq!(shows(&mut pair, "local"), "read uncommitted");
        for (begin, end) in
            [("BEGIN", "COMMIT"), ("START TRANSACTION READ ONLY", "ROLLBACK"), ("BEGIN", "COMMIT AND CHAIN")]
        {
            pair.run(begin);
            pair.reads("local");
            assert_eq!(shows(&mut pair, "local"), "read uncommitted", "{begin}");
            pair.run(end);
            pair.reads("local");
        }
        pair.run("ROLLBACK");
        // A block may have a level of its own.
        pair.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
        pair.reads("relay isolation_level");
        assert_eq!(shows(&mut pair, "relay isolation_level"), "repeatable read");
        pair.run("COMMIT");
        pair.reads("local");
        assert_eq!(shows(&mut pair, "local"), "read uncommitted");
        pair.run("DISCARD ALL");
        pair.reads("local");
        assert_eq!(shows(&mut pair, "local"), "read committed");
    }
    // In a block it is for the next one, unless it is taken back.
    for (end, level) in [("ROLLBACK", "read committed"), ("COMMIT", "read uncommitted")] {
        pair.run("BEGIN");
        pair.run(CHOOSE);
        pair.run(end);
        pair.reads("local");
        assert_eq!(shows(&mut pair, "local"), level, "{end}");
    }
}

#[test]
fn savepoints_take_settings_and_writes_back() {
    let mut pair = Pair::start(Cluster::shared());
    for script in [
        "BEGIN|SET search_path = one|SAVEPOINT a|SET LOCAL search_path = two|ROLLBACK TO a|?|COMMIT|?",
        "BEGIN|SAVEPOINT a|SET search_path = two|RELEASE a|?|ROLLBACK|?",
        "BEGIN|SET LOCAL extra_float_digits = 0|SAVEPOINT a|SET extra_float_digits = 3|RELEASE SAVEPOINT a|?|COMMIT|?",
        "BEGIN|SET extra_float_digits = 1|SAVEPOINT \"A\"|SET LOCAL extra_float_digits = 2|RELEASE \"A\"|?|COMMIT|?",
        "BEGIN|SAVEPOINT a|SET search_path = one|SAVEPOINT a|SET search_path = two|ROLLBACK TO a|?|RELEASE a|ROLLBACK TO a|?|END|?",
        "BEGIN|SET search_path = two|SAVEPOINT a|SELECT 1/0|ROLLBACK TO SAVEPOINT a|?|COMMIT|?",
        "BEGIN|SET search_path = one|SELECT 1/0|COMMIT|?",
        "SET search_path = public|BEGIN|SAVEPOINT a|UPDATE public.n SET f = 1 WHERE false|ROLLBACK TO a|?|ROLLBACK|?",
        "SET extra_float_digits = 0; SELECT 1/0|?",
        "SET extra_float_digits = 0; COMMIT; SELECT 1/0|?",
        "SET search_path = two; BEGIN; SET LOCAL TimeZone = 'UTC'|?|ROLLBACK|?",
        "SET LOCAL search_path = one; SELECT v FROM t|?",
        "SET LOCAL search_path = one|?|RESET search_path|?",
        // RESET ALL passes over what is the default at the moment.
        "SET search_path = one|SET LOCAL search_path = DEFAULT; BEGIN; RESET ALL|?|COMMIT|?",
        "SET search_path = one|BEGIN|SET LOCAL search_path = two|RESET ALL|?|COMMIT|?",
        "SET search_path = one|BEGIN|DO $$ BEGIN END $$|RESET ALL|COMMIT|?|RESET ALL|?",
    ] {
        for sql in script.split('|') {
            if sql == "?" { pair.reads("local") } else { drop(pair.run(sql)) }
        }
    }
}

/// Freshet's own settings follow the transaction, as any other does.
#[test]
fn own_settings_are_undone_with_their_transaction() {
    let pair = &mut Pair::start(Cluster::shared());
    let route = |pair: &mut Pair| {
        let shown = ask(&mut pair.through, "SHOW freshet.route").rows();
        assert_eq!(ask(&mut pair.through, "SELECT current_setting('freshet.route')").rows(), shown);
        String::from_utf8(shown[0][0].clone().expect("text")).expect("UTF-8")
    };
    let mut script = |steps: &str, expected: &str| {
        for sql in steps.split('|') {
            ask(&mut pair.through, sql);
        }
        assert_eq!(route(pair), expected, "{steps}");
    };
    script("SET freshet.route = 'relay'", "relay");
    script("RESET freshet.route", "auto");
    script("BEGIN|SET freshet.route = 'local'", "local");
    script("ROLLBACK", "auto");
    script("BEGIN|SET LOCAL freshet.route = 'relay'", "relay");
    script("COMMIT", "auto");
    script("BEGIN|SET freshet.route = 'local'|SAVEPOINT a|SET freshet.route = 'relay'|ROLLBACK TO a", "local");
    script("SELECT 1/0|COMMIT", "auto");
    script("BEGIN|SELECT set_config('freshet.route', 'relay', true)", "relay");
    script("COMMIT|SELECT set_config('freshet.route', 'local', false)", "local");
    script("RESET ALL", "auto");
    script("SET freshet.route = 'relay'|DISCARD ALL", "auto");
    // Among others: upstream has it too, and the transaction is upstream's.
    script("SET freshet.route = 'relay'; SELECT 1/0", "auto");
    script("SET freshet.route = 'relay'; SELECT 1", "relay");
    script("SELECT 1; RESET freshet.route; SELECT 1", "auto");
    script("SET freshet.route = 'local'; BEGIN", "local");
    script("ROLLBACK", "auto");
    script("BEGIN; SET freshet.route = 'local'; COMMIT", "local");
    script("SELECT set_config('freshet.route', 'relay', false), 1", "local");
    script("SELECT set_config('freshet.route', 'relay', false), set_config('a.b', '1', true)", "relay");
    pair.through.extended("SELECT set_config('freshet.route', $1, false)", &[Some("auto")], 0).expect("answers");
    assert_eq!(route(pair), "auto");
    // SET LOCAL where there is no block: PostgreSQL's warning, and no effect.
    let reply = ask(&mut pair.through, "SET LOCAL freshet.route = 'relay'");
    let expected = ask(&mut pair.through, "SET LOCAL work_mem = '1MB'");
    let fields = |reply: &RawReply| {
        let notice = reply.bodies(b'N')[0].split(|byte| *byte == 0).map(<[u8]>::to_vec);
        notice.filter(|field| b"SVCM".contains(field.first().unwrap_or(&b'-'))).collect::<Vec<_>>()
    };
    assert_eq!(fields(&reply), fields(&expected));
    assert_eq!(route(pair), "auto");
    for (sql, sqlstate) in [
        ("SET freshet.snapshot = '1'", "22023"),
        ("SET freshet.snapshot_strict = 'maybe'", "22023"),
        ("SELECT set_config('freshet.route', 'nowhere', false)", "22023"),
        ("SELECT current_setting('freshet.nothing')", "42704"),
    ] {
        let error = ask(&mut pair.through, sql).error().expect("an error");
        assert!(error.contains(sqlstate), "{sql}: {error}");
    }
}

/// An error in a block fails it, whoever says it.
#[test]
fn what_freshet_refuses_in_a_block_fails_the_block() {
    let mut pair = Pair::start(Cluster::shared());
    for refused in ["SET freshet.route = 'bad'", "SELECT current_setting('freshet.no')", "SELECT a FROM freshet.no"] {
        for first in ["UPDATE public.n SET f = 7 WHERE id = 1", READ_FORMATS] {
            for sql in ["BEGIN", first, "SET search_path = two"] {
                assert_eq!(ask(&mut pair.through, sql).error(), None, "{sql}");
            }
            let reply = ask(&mut pair.through, refused);
            assert!(reply.error().is_some(), "{refused}");
            assert_eq!(reply.bodies(b'Z'), [b"E"], "{refused}");
            let next = ask(&mut pair.through, "SELECT 1").error().expect("an error");
            assert!(next.contains("25P02"), "{next}");
            assert_eq!(ask(&mut pair.through, "COMMIT").bodies(b'C'), [b"ROLLBACK\0"], "{refused}");
            // Neither the row nor the setting stays.
            pair.reads("local");
        }
    }
    ask(&mut pair.through, "BEGIN");
    let reply = pair.through.extended("SET freshet.route = 'bad'", &[], 0).expect("answers");
    assert!(reply.error().is_some_and(|error| error.contains("22023")));
    assert_eq!(reply.bodies(b'Z'), [b"E"]);
    assert_eq!(ask(&mut pair.through, "COMMIT").bodies(b'C'), [b"ROLLBACK\0"]);
    pair.reads("local");
}

#[test]
fn parameters_of_set_config_are_read() {
    let mut pair = Pair::start(Cluster::shared());
    pair.run_extended("BEGIN", &[]);
    pair.run_extended(
        "SELECT set_config('search_path', $1, true), set_config('role', $2, true)",
        &[Some("two"), Some("postgres")],
    );
    pair.reads("local");
    pair.run("COMMIT");
    pair.reads("local");
    pair.run_extended("SELECT set_config($1, $2, $3)", &[Some("search_path"), Some("one"), Some("f")]);
    pair.run_extended("SELECT set_config('TimeZone', $1, false)", &[Some("america/new_york")]);
    pair.reads("local");
    pair.run_extended("SELECT set_config('search_path', $1, false)", &[None]);
    pair.reads("local");
}

/// What resets a pooled connection, by asyncpg, Npgsql and psycopg's pools.
#[test]
fn pooled_sessions_begin_anew() {
    let mut pair = Pair::start(Cluster::shared());
    for reset in [
        "SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;",
        "DISCARD ALL",
        "RESET ALL; SET SESSION AUTHORIZATION DEFAULT",
    ] {
        pair.run("SET search_path = two; SET TimeZone = 'Asia/Tokyo'; SET extra_float_digits = 0");
        pair.reads("local");
        pair.run(reset);
        pair.reads("local");
    }
    pair.run("CREATE TEMP TABLE t AS SELECT 1 AS id, 'temporary'::text AS v");
    pair.reads_temporary("relay opaque_session: temporary tables");
    pair.run("DISCARD TEMP");
    pair.reads("local");
    pair.run("CREATE TEMP TABLE t AS SELECT 1 AS id, 'temporary'::text AS v");
    pair.run("DROP TABLE pg_temp.t");
    pair.reads("local");
    pair.run("BEGIN");
    pair.run("CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1 AS id, 'temporary'::text AS v");
    pair.reads_temporary("relay opaque_session: temporary objects");
    pair.run("COMMIT");
    pair.reads("local");
    // What only a function knows.
    pair.run("DO $$ BEGIN PERFORM set_config('search_path', 'two', false); END $$");
    pair.reads("local");
    pair.run("SET zero_damaged_pages = off");
    pair.reads("relay session_setting: zero_damaged_pages was changed");
    pair.run("RESET zero_damaged_pages");
    pair.reads("local");
}

/// A role's and a database's settings, and a client's in PGOPTIONS, are in force without a SET.
#[test]
fn what_changes_answers_is_asked_for_wherever_it_was_set() {
    let cluster = Cluster::shared();
    let mut pair = Pair::start(cluster);
    let connect_anew = |pair: &mut Pair| {
        let connect = |address| RawClient::connect(address, "postgres", &pair.database).expect("connects");
        (pair.direct, pair.through) = (connect(cluster.address()), connect(pair.freshet.address()));
    };
    cluster.psql(&pair.database, &format!("ALTER DATABASE {} SET enable_indexscan = off", pair.database));
    pair.reads("local");
    connect_anew(&mut pair);
    // It has no part in what is computed here.
    pair.reads("local");
    pair.run("SET enable_indexscan = on");
    pair.reads("relay session_setting: enable_indexscan was changed");
    pair.run("RESET enable_indexscan");
    pair.reads("local");
    cluster.psql(&pair.database, &format!("ALTER DATABASE {} RESET enable_indexscan", pair.database));
    cluster.psql(&pair.database, &format!("ALTER DATABASE {} SET quote_all_identifiers = on", pair.database));
    connect_anew(&mut pair);
    for sql in ["SELECT 1", "SET quote_all_identifiers = off", "RESET quote_all_identifiers", "RESET ALL"] {
        pair.run(sql);
        pair.reads("relay session_setting: quote_all_identifiers was changed");
    }
    cluster.psql(&pair.database, &format!("ALTER DATABASE {} RESET quote_all_identifiers", pair.database));
    connect_anew(&mut pair);
    pair.reads("local");
    for (set, reset) in [
        ("SET hnsw.ef_search = 100", "RESET hnsw.ef_search"),
        ("BEGIN; SET LOCAL ivfflat.probes = 10", "COMMIT"),
        ("DO $$ BEGIN PERFORM set_config('quote_all_identifiers', 'on', false); END $$", "RESET ALL"),
        (
            "DO $$ BEGIN PERFORM set_config('gin_fuzzy_search_limit', '5', false); END $$",
            "RESET gin_fuzzy_search_limit",
        ),
    ] {
        pair.run(set);
        let name = ["hnsw.ef_search", "ivfflat.probes", "quote_all_identifiers", "gin_fuzzy_search_limit"];
        let name = name.into_iter().find(|name| set.contains(name)).expect("named");
        pair.reads(&format!("relay session_setting: {name} was changed"));
        pair.run(reset);
        pair.reads("local");
    }
}

#[test]
fn roles_are_followed_with_their_privileges() {
    let cluster = Cluster::shared();
    let mut pair = Pair::start(cluster);
    let grants = "GRANT USAGE ON SCHEMA one TO guest; GRANT SELECT ON one.t, public.n TO guest";
    cluster.psql(&pair.database, grants);
    pair.run("SET search_path = two, one, public");
    pair.run("BEGIN; SET LOCAL ROLE guest");
    // two is hidden from this role: the same name is another table. The grants make a new catalog.
    pair.reads_soon();
    pair.reads("local");
    pair.run("COMMIT");
    pair.reads("local");
    pair.run("SET ROLE other_guest");
    pair.run(READ_PATH);
    pair.run(READ_FORMATS);
    pair.run("SET ROLE NONE");
    pair.reads("local");
    pair.run("SET SESSION AUTHORIZATION guest");
    pair.reads("local");
    // Not the one of the log-in, who may read more.
    let secret = "SELECT v FROM secret";
    cluster.psql(
        &pair.database,
        "CREATE TABLE public.secret (v text PRIMARY KEY); INSERT INTO public.secret VALUES ('secret')",
    );
    pair.run("RESET SESSION AUTHORIZATION");
    pair.reads_soon();
    pair.reads("local");
    let limit = Instant::now() + Duration::from_secs(20);
    while !pair.run(secret).starts_with("hit") {
        assert!(Instant::now() < limit, "no hit");
    }
    for reset in ["RESET ROLE", "SET role TO DEFAULT", "SET ROLE NONE", "SELECT set_config('role', 'none', false)"] {
        pair.run("SET SESSION AUTHORIZATION guest");
        pair.run(reset);
        pair.run("SELECT current_user, session_user");
        pair.run(secret);
        pair.run(secret);
        pair.run("RESET SESSION AUTHORIZATION");
        pair.run(reset);
        pair.run(secret);
    }
    // A schema that comes to be, found first from the next read on.
    cluster.psql(&pair.database, "CREATE SCHEMA \"postgres\"; CREATE TABLE postgres.t (id int PRIMARY KEY, v text)");
    pair.run("RESET search_path");
    assert_eq!(pair.run("SELECT v FROM t"), pair.run("SELECT v FROM t"));
    cluster.psql(&pair.database, "DROP SCHEMA postgres CASCADE");
    pair.run(READ_PATH);
    pair.run(READ_PATH);
}

/// FunctionCall, the message: here of set_config(text, text, boolean).
#[test]
fn what_a_function_call_sets_is_followed() {
    let mut pair = Pair::start(Cluster::shared());
    let mut body = 2078_u32.to_be_bytes().to_vec();
    body.extend([0, 0, 0, 3]);
    for argument in ["search_path", "two", "f"] {
        body.extend((argument.len() as i32).to_be_bytes());
        body.extend(argument.as_bytes());
    }
    body.extend([0, 0]);
    let call = frame(b'F', &body);
    pair.run("SET search_path = one");
    pair.reads("local");
    for around in [["SELECT 1", "SELECT 1"], ["BEGIN", "COMMIT"], ["BEGIN", "ROLLBACK"]] {
        pair.run("SET search_path = one");
        pair.reads("local");
        pair.run(around[0]);
        for client in [&mut pair.direct, &mut pair.through] {
            client.send(&call).expect("sent");
            assert_eq!(client.read_reply().expect("answers").error(), None);
        }
        pair.run(READ_PATH);
        pair.run(around[1]);
        pair.reads("local");
    }
}

#[test]
fn a_schema_that_comes_to_be_counts_at_once() {
    let cluster = Cluster::shared();
    let mut pair = Pair::start(cluster);
    pair.run("SET search_path = later, one");
    pair.reads_path("local");
    cluster.psql(&pair.database, "CREATE SCHEMA later; CREATE TABLE later.t (id int PRIMARY KEY, v text)");
    pair.run(READ_PATH);
    cluster.psql(&pair.database, "INSERT INTO later.t VALUES (1, 'later')");
    pair.run(READ_PATH);
    cluster.psql(&pair.database, "DROP SCHEMA later CASCADE");
    pair.run(READ_PATH);
    // In a transaction that began before, and in one that has set its path again.
    for setting in ["SET LOCAL work_mem = '2MB'", "SET LOCAL search_path = later, two"] {
        pair.run("BEGIN");
        pair.run(setting);
        pair.run(READ_PATH);
        let made = "CREATE SCHEMA later; CREATE TABLE later.t (id int PRIMARY KEY, v text); INSERT INTO later.t VALUES (1, 'l')";
        cluster.psql(&pair.database, made);
        pair.run(READ_PATH);
        pair.run(READ_PATH);
        pair.run("COMMIT");
        pair.run(READ_PATH);
        cluster.psql(&pair.database, "DROP SCHEMA later CASCADE");
    }
    // Sessions that come later take nothing over from those before.
    let mut other = RawClient::connect(pair.freshet.address(), "postgres", &pair.database).expect("connects");
    ask(&mut other, "SET search_path = later, two");
    assert_eq!(ask(&mut other, READ_PATH).rows(), [[Some(b"two".to_vec())]]);
}

/// Up to PostgreSQL 16 a session goes on by the path that it has found when a membership shows it another schema; one that comes later
/// looks for itself.
#[test]
fn a_path_that_a_session_has_kept_is_not_that_of_others() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE ROLE joe LOGIN; CREATE ROLE readers; CREATE SCHEMA a; CREATE SCHEMA b;
         CREATE TABLE a.t (v text PRIMARY KEY); INSERT INTO a.t VALUES ('a');
         CREATE TABLE b.t (v text PRIMARY KEY); INSERT INTO b.t VALUES ('b');
         GRANT SELECT ON a.t, b.t TO joe; GRANT USAGE ON SCHEMA b TO joe; GRANT USAGE ON SCHEMA a TO readers",
    );
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let sql = "SELECT v FROM t";
    let connect = || {
        [freshet.address(), cluster.address()].map(|address| {
            let mut client = RawClient::connect(address, "joe", &database).expect("connects");
            ask(&mut client, "SET search_path = a, b");
            client
        })
    };
    let compare = |[through, direct]: &mut [RawClient; 2], expected: &str| {
        until_local(through, sql);
        let (here, upstream) = (ask(through, sql).text(), ask(direct, sql).text());
        assert_eq!((here.as_str(), upstream.as_str()), (expected, expected), "{:?}", through.last());
    };
    let mut early = connect();
    compare(&mut early, "b");
    cluster.psql(&database, "GRANT readers TO joe");
    compare(&mut early, if cluster.major() < 17 { "b" } else { "a" });
    let mut later = connect();
    assert_eq!(later.each_mut().map(|client| ask(client, sql).text()), ["a", "a"]);
    compare(&mut later, "a");
    // A session that sets its path looks again.
    for path in ["b", "a, b"] {
        for client in &mut early {
            ask(client, &format!("SET search_path = {path}"));
        }
        compare(&mut early, &path[..1]);
    }
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

#[test]
fn sessions_are_listed_with_what_became_of_their_statements() {
    let mut pair = Pair::start(Cluster::shared());
    let pid = String::from_utf8(ask(&mut pair.through, "SELECT pg_backend_pid()").rows()[0][0].clone().unwrap());
    let pid = pid.expect("digits");
    let mut other = RawClient::connect(pair.freshet.address(), "postgres", &pair.database).expect("connects");
    let mut row = || {
        let columns = "state, route, reason, opaque, database, hits, local, route_setting";
        let rows = ask(&mut other, &format!("SELECT {columns} FROM freshet.sessions WHERE pid = '{pid}'")).rows();
        let text = |cell: &Option<Vec<u8>>| String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned();
        rows[0].iter().map(text).collect::<Vec<_>>()
    };
    let before = row();
    assert_eq!(before[..2], ["idle", "relay"]);
    assert_eq!(before[4], pair.database);
    until_local(&mut pair.through, READ_FORMATS);
    let after = row();
    let answered = |row: &[String]| row[5].parse::<u64>().expect("a count") + row[6].parse::<u64>().expect("a count");
    assert!(answered(&after) > answered(&before), "{after:?}");
    ask(&mut pair.through, "SET freshet.route = 'local'");
    ask(&mut pair.through, "BEGIN");
    ask(&mut pair.through, "DO $$ BEGIN END $$");
    let row = row();
    assert_eq!([&row[0], &row[3], &row[7]], ["in transaction", "DO", "local"]);
}

/// A generator whose numbers are the same on every run (Steele and others, SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

fn random_statement(numbers: &mut Numbers) -> String {
    let setting = |numbers: &mut Numbers| {
        numbers.pick(&[
            "search_path = one",
            "search_path = two, public",
            "search_path TO nowhere",
            "search_path = user, \"TWO\", two",
            "default_transaction_isolation = 'repeatable read'",
            "default_transaction_isolation = DEFAULT",
            "search_path = DEFAULT",
            "extra_float_digits = 0",
            "extra_float_digits = 3",
            "extra_float_digits = 9",
            "bytea_output = 'escape'",
            "bytea_output TO hex",
            "TimeZone = 'Asia/Tokyo'",
            "TIME ZONE 'America/New_York'",
            "TIME ZONE DEFAULT",
            "DateStyle = 'SQL, DMY'",
            "DateStyle = ISO",
            "IntervalStyle = 'postgres_verbose'",
            "IntervalStyle TO sql_standard",
            "statement_timeout = '30s'",
            "row_security = yes",
            "work_mem = '2MB'",
        ])
    };
    match numbers.below(16) {
        0..=3 => format!("SET {}", setting(numbers)),
        4..=6 => format!("SET LOCAL {}", setting(numbers)),
        7 => format!(
            "SELECT set_config('{}', {}, {})",
            numbers.pick(&["search_path", "extra_float_digits"]),
            numbers.pick(&["'1'", "'2'", "'two'", "NULL"]),
            numbers.pick(&["true", "false"])
        ),
        8 => format!("RESET {}", numbers.pick(&["ALL", "search_path", "TIME ZONE", "DateStyle", "extra_float_digits"])),
        9 | 10 => numbers.pick(&["BEGIN", "BEGIN", "BEGIN READ ONLY", "START TRANSACTION"]).to_string(),
        11 => numbers.pick(&["COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN", "END"]).to_string(),
        12 => format!("SAVEPOINT {}", numbers.pick(&["a", "b"])),
        13 => format!("ROLLBACK TO {}", numbers.pick(&["a", "b"])),
        14 => format!("RELEASE {}", numbers.pick(&["a", "b"])),
        _ => numbers
            .pick(&[
                "SELECT 1/0",
                "DISCARD ALL",
                "UPDATE public.n SET f = f WHERE false",
                "SET ROLE guest",
                "RESET ROLE",
                "SET SESSION AUTHORIZATION guest",
                "SET LOCAL SESSION AUTHORIZATION guest",
                "RESET SESSION AUTHORIZATION",
                "DO $$ BEGIN PERFORM set_config('search_path', 'two', true); END $$",
                "DO $$ BEGIN PERFORM set_config('bytea_output', 'escape', false); END $$",
                "PREPARE TRANSACTION 'none'",
            ])
            .to_string(),
    }
}

#[test]
fn random_scripts_are_answered_as_upstream_does() {
    let cluster = Cluster::shared();
    let mut pair = Pair::start(cluster);
    cluster.psql(&pair.database, "GRANT USAGE ON SCHEMA two TO guest; GRANT SELECT ON two.t, public.n TO guest");
    let seed = std::env::var("FRESHET_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut numbers = Numbers(seed.unwrap_or(20_261_121));
    let (mut script, mut local, mut reads) = (Vec::new(), 0, 0);
    let mut has_failed = false;
    let mut reasons = std::collections::BTreeMap::new();
    for step in 0..1000 {
        // Some as strings of several statements, some by the extended protocol.
        let mut sql = random_statement(&mut numbers);
        if has_failed && numbers.below(4) > 0 {
            sql = numbers
                .pick(&["ROLLBACK", "COMMIT", "ROLLBACK TO a", "ROLLBACK TO b", "ROLLBACK AND CHAIN"])
                .to_string();
        }
        for _ in 0..numbers.below(4).saturating_sub(1) {
            sql = format!("{sql}; {}", random_statement(&mut numbers));
        }
        script.push(sql.clone());
        let context = |script: &[String]| script[script.len().saturating_sub(25)..].join("\n");
        let is_extended = !sql.contains(';') && numbers.below(3) == 0;
        let run = |client: &mut RawClient, sql: &str| {
            if is_extended { client.extended(sql, &[], 0).expect("answers") } else { ask(client, sql) }
        };
        let (direct, through) = (run(&mut pair.direct, &sql), run(&mut pair.through, &sql));
        assert_eq!(shown(&through), shown(&direct), "step {step}\n{}", context(&script));
        let shows =
            ["SHOW search_path", "SHOW DateStyle", "SHOW extra_float_digits", "SHOW TRANSACTION ISOLATION LEVEL"];
        let show = numbers.pick(&shows);
        for read in [READ_PATH, READ_FORMATS, show] {
            let (direct, through) = (run(&mut pair.direct, read), run(&mut pair.through, read));
            let route = pair.through.last().unwrap_or_default();
            assert_eq!(shown(&through), shown(&direct), "step {step}, {read}, {route:?}\n{}", context(&script));
            has_failed = through.bodies(b'Z').last() == Some(&b"E".as_slice());
            reads += 1;
            *reasons.entry(format!("{} {}", route.0, route.1)).or_insert(0) += 1;
            local += usize::from(matches!(route.0.as_str(), "hit" | "local"));
        }
    }
    println!("{local} of {reads} reads were answered locally: {reasons:?}");
    assert!(local * 4 > reads, "only {local} of {reads} reads were answered locally");
}

/// Several units sent without waiting: each Sync ends an implicit transaction.
#[test]
fn pipelines_keep_settings_apart() {
    let mut pair = Pair::start(Cluster::shared());
    let step = |sql: &str| {
        let mut out = frame(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"].concat());
        out.extend(frame(b'B', b"\0\0\0\0\0\0\0\0"));
        out.extend(frame(b'E', b"\0\0\0\0\0"));
        out
    };
    let sync = || frame(b'S', b"");
    for unit in [
        [step("SET search_path = two"), step("SELECT 1/0"), step("SET search_path = one"), sync()].concat(),
        [step("SET search_path = two"), step("SET LOCAL search_path = one"), sync()].concat(),
        [step("SET extra_float_digits = 0"), step("BEGIN"), step("SET LOCAL search_path = one"), sync()].concat(),
        [step("ROLLBACK"), sync()].concat(),
        [step("BEGIN"), step("SET search_path = one"), step("COMMIT"), step("SELECT 1/0"), sync()].concat(),
    ] {
        for client in [&mut pair.direct, &mut pair.through] {
            client.send(&unit).expect("sent");
        }
        let (direct, through) = (pair.direct.read_reply().expect("reads"), pair.through.read_reply().expect("reads"));
        assert_eq!(shown(&through), shown(&direct));
        pair.reads("local");
    }
}

/// Whoever listens is answered by upstream, which sends notifications with its answers (PostgreSQL: async.c).
#[test]
fn listening_begins_and_ends_with_its_transaction() {
    let mut pair = Pair::start(Cluster::shared());
    let listens = "relay opaque_session: it listens for notifications";
    for (statements, expected) in [
        (&["LISTEN a"][..], listens),
        (&["UNLISTEN b"], listens),
        (&["UNLISTEN a"], "local"),
        (&["BEGIN", "LISTEN a", "ROLLBACK"], "local"),
        (&["BEGIN", "SAVEPOINT s", "LISTEN a", "ROLLBACK TO s", "COMMIT"], "local"),
        (&["BEGIN", "LISTEN a", "COMMIT"], listens),
        (&["BEGIN", "UNLISTEN *", "ROLLBACK"], listens),
        (&["DISCARD ALL"], "local"),
        (&["DO $$ BEGIN LISTEN a; END $$"], listens),
        (&["LISTEN b", "UNLISTEN *"], "local"),
        (&["SELECT 'LISTEN a'", "/* LISTEN a */ SELECT 2"], "local"),
    ] {
        for sql in statements {
            pair.run(sql);
        }
        pair.run("SET search_path = public");
        pair.reads_path(expected);
    }
    // The string's implicit transaction has become the block.
    pair.run("LISTEN a; BEGIN; SET LOCAL search_path = public");
    pair.reads_path("local");
    pair.run("COMMIT");
    pair.reads_path(listens);
}
