//! Messages where PostgreSQL does not want them, after local answers: what it says to them, and that it says it.

use freshet_config::FreshnessMode;
use freshet_tests::client::{RawClient, bind, describe, execute, flush, parse, query, rows, sync, tags, terminate};
use freshet_tests::world::{World, settle, until};

const SETUP: &str =
    "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT n, n FROM generate_series(1, 12) n;
    CREATE TABLE u (id int PRIMARY KEY, s text); INSERT INTO u SELECT n, 's' || n FROM generate_series(1, 12) n;
    CREATE TABLE into_here (id int);
    CREATE FUNCTION raises() RETURNS int LANGUAGE plpgsql AS 'DECLARE x int; BEGIN EXECUTE ''SELEC 1'' INTO x; RETURN x; END'";
const READ: &str = "SELECT id, v FROM t ORDER BY id";
const OF_U: &str = "SELECT id, s FROM u ORDER BY id";

/// Messages that are sent once a message with that tag has come, in turn.
type Script = Vec<(Vec<u8>, char)>;

/// What comes, with the last step up to the end of the connection.
fn play(port: u16, database: &str, script: &Script) -> String {
    let mut client = RawClient::log_in(port, database);
    let mut all = String::new();
    for (messages, tag) in script {
        client.send(messages);
        let got = client.read_until(*tag);
        all.push_str(&format!(
            "{}: {}\n",
            tags(&got),
            got.iter().map(|m| String::from_utf8_lossy(&m.body)).collect::<String>()
        ));
    }
    let _ = client.try_send(&terminate());
    all.push_str(&String::from_utf8_lossy(&client.read_to_end()));
    // Where in PostgreSQL an error is raised freshet does not say of its own.
    let says_where = |field: &&str| ["F", "L", "R"].iter().any(|code| field.starts_with(code));
    all.split('\0').filter(|field| !says_where(field)).collect::<Vec<_>>().join(" ")
}

fn unnamed(sql: &str) -> Vec<u8> {
    [parse("", sql), bind("", "", &[], 0), execute("", 0)].concat()
}

fn portal(name: &str, sql: &str, limit: i32) -> Vec<u8> {
    [parse("", sql), bind(name, "", &[], 0), execute(name, limit)].concat()
}

/// Those of the scripts that execute something which freshet answers; the others have a Parse answered, or nothing.
const ANSWERED_HERE: [usize; 14] = [0, 1, 2, 7, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];

fn scripts() -> Vec<Script> {
    let copy = [parse("cp", "COPY into_here FROM STDIN"), bind("", "cp", &[], 0), execute("", 0), flush()].concat();
    let begun = |script: Script| [vec![(query("BEGIN"), 'Z')], script].concat();
    vec![
        // In the middle of a COPY; upstream closes the connection.
        begun(vec![([portal("q", READ, 2), sync()].concat(), 'Z'), (copy.clone(), 'G'), (execute("q", 2), 'E')]),
        vec![(query(READ), 'Z'), (copy.clone(), 'G'), (query(READ), 'E')],
        vec![(query(READ), 'Z'), (copy.clone(), 'G'), (parse("", READ), 'E')],
        vec![(query("COPY into_here FROM STDIN"), 'G'), (query("SELECT 1"), 'E')],
        vec![(query("COPY into_here FROM STDIN"), 'G'), (query("SHOW freshet.last"), 'E')],
        // A Parse is a query of its block.
        begun(vec![
            ([parse("", READ), sync()].concat(), 'Z'),
            ([unnamed("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"), sync()].concat(), 'Z'),
        ]),
        begun(vec![
            ([parse("", READ), describe('S', ""), sync()].concat(), 'Z'),
            ([unnamed("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"), sync()].concat(), 'Z'),
        ]),
        // That of SHOW is not.
        begun(vec![
            ([unnamed("SHOW search_path"), sync()].concat(), 'Z'),
            ([unnamed("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"), sync()].concat(), 'Z'),
        ]),
        // What a failed block refuses leaves the unnamed portal.
        vec![
            ([unnamed("BEGIN"), flush()].concat(), 'C'),
            ([bind("p", "nosuch", &[], 0), sync()].concat(), 'Z'),
            (query(READ), 'Z'),
            ([execute("", 0), sync()].concat(), 'Z'),
            (query("ROLLBACK"), 'Z'),
        ],
        // Likewise of the transaction that a BEGIN behind it begins.
        vec![
            ([parse("", READ), flush()].concat(), '1'),
            (query("BEGIN ISOLATION LEVEL REPEATABLE READ"), 'Z'),
            (query("ROLLBACK"), 'Z'),
        ],
        // With a body they are none.
        vec![([parse("", READ), b"S\0\0\0\x05x".to_vec()].concat(), 'Z'), (query(READ), 'Z')],
        vec![([parse("", READ), b"H\0\0\0\x05x".to_vec(), sync()].concat(), 'Z'), (query(READ), 'Z')],
        vec![([parse("", READ), flush()].concat(), '1'), (b"S\0\0\0\x05x".to_vec(), 'Z'), (query(READ), 'Z')],
        // A portal has the table open.
        begun(vec![([portal("q", OF_U, 2), sync()].concat(), 'Z'), (query("CLUSTER u USING u_pkey"), 'Z')]),
        begun(vec![([portal("q", OF_U, 2), sync()].concat(), 'Z'), (query("REINDEX TABLE u"), 'Z')]),
        // What leaves the unnamed portal, and what takes its place though it fails.
        fails_behind(query("SELEC")),
        fails_behind(query("SELECT nope FROM t")),
        fails_behind(query("SELECT 1; VALUES (1), (2, 3)")),
        fails_behind(query("SELECT raises()")),
        fails_behind([parse("", "SELECT $1::int"), bind("", "", &[Some("x")], 0), sync()].concat()),
    ]
}

/// Behind a portal of which rows are left, and a savepoint that leaves it alone; after it, back to that, and more rows.
fn fails_behind(failing: Vec<u8>) -> Script {
    let own = |name: &str, sql: &str| [parse(name, sql), bind(name, name, &[], 0), execute(name, 0), sync()].concat();
    vec![
        (query("BEGIN"), 'Z'),
        ([portal("", READ, 2), sync()].concat(), 'Z'),
        (own("before", "SAVEPOINT before"), 'Z'),
        (failing, 'Z'),
        (own("back", "ROLLBACK TO before"), 'Z'),
        ([execute("", 2), sync()].concat(), 'Z'),
        (query("ROLLBACK"), 'Z'),
    ]
}

#[test]
fn what_upstream_refuses_it_refuses_at_once_and_by_its_words() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut client = world.client();
    settle(&mut client, READ);
    settle(&mut client, OF_U);
    let answered = || -> u64 {
        let count = |route| world.freshet.status(&world.database, &format!("statements_{route}"));
        ["local", "hit"].into_iter().map(|route| count(route).parse::<u64>().expect("a count")).sum()
    };
    for (number, script) in scripts().into_iter().enumerate() {
        let direct = play(world.cluster.port(), &world.database, &script);
        let before = answered();
        let through = play(world.freshet.port(), &world.database, &script);
        assert_eq!(direct, through, "script {number}");
        assert_eq!(answered() - before, u64::from(ANSWERED_HERE.contains(&number)), "script {number}");
    }
}

/// SQL has prepared statements whose names freshet does not read; its own statements are answered all the same.
#[test]
fn freshets_own_statements_have_names_beside_sqls() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    settle(&mut world.client(), READ);
    let mut client = RawClient::log_in(world.freshet.port(), &world.database);
    client.query("PREPARE q AS SELECT 1");
    client.query("DO 'BEGIN EXECUTE ''PREPARE r AS SELECT 2''; END'");
    for (name, sql) in [
        ("a", "SHOW freshet.freshness"),
        ("b", "SELECT count(*) FROM freshet.tables"),
        ("c", "SET freshet.route = 'relay'"),
    ] {
        client.send(&[parse(name, sql), bind("", name, &[], 0), execute("", 0), sync()].concat());
        let got = client.read_until('Z');
        assert!(!tags(&got).contains('E'), "{sql}: {got:?}");
    }
    assert_eq!(rows(&client.query("SHOW freshet.route")), vec![vec![Some("relay".to_string())]]);
}

#[test]
fn a_function_that_some_may_not_execute_is_not_answered() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    world.past("CREATE ROLE outsider LOGIN");
    settle(&mut world.client(), READ);
    let connect = || {
        freshet_tests::raw::RawClient::connect(world.freshet.address(), "outsider", &world.database).expect("connects")
    };
    let mut before = connect();
    assert_eq!(before.simple("SELECT current_schema()").expect("answers").text(), "public");
    world.past("REVOKE EXECUTE ON FUNCTION pg_catalog.current_schema() FROM PUBLIC");
    until("refused", || connect().simple("SELECT pg_catalog.current_schema()").expect("answers").error().is_some());
    for _ in 0..5 {
        let error = connect().simple("SELECT pg_catalog.current_schema()").expect("answers").error();
        assert!(error.is_some_and(|error| error.contains("42501")));
    }
    assert_eq!(connect().simple("SELECT current_schema").expect("answers").text(), "public");
}
