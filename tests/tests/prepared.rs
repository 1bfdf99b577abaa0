//! Prepared statements, by the same messages to PostgreSQL and to freshet: made, dropped, judged anew.

use std::time::Duration;

use freshet_tests::client::{Message, bind, close, describe, execute, flush, parse, query, rows, sync, tags};
use freshet_tests::scripted::{Pair, assert_same, burst, play, play_unit};

#[test]
fn statements_are_prepared_here() {
    let mut pair = Pair::start();
    let sql = "SELECT id, v FROM t WHERE id = $1";
    // asyncpg: described with Flush, executed with Sync.
    let script = [
        burst(3, &[parse("", sql), describe('S', ""), flush()]),
        burst(4, &[bind("", "", &[Some("3")], 1), execute("", 0), sync()]),
    ];
    pair.agree("unnamed, by Flush", &script);
    let script = [
        burst(3, &[parse("stmt_1", sql), describe('S', "stmt_1"), flush()]),
        burst(4, &[bind("", "stmt_1", &[Some("3")], 0), execute("", 0), sync()]),
        burst(2, &[close('S', "stmt_1"), sync()]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_eq!(play(&mut pair.freshet, &script), expected);
    // pgx, tokio-postgres: described with Sync; then executed many times.
    let prepare = [burst(4, &[parse("s", sql), describe('S', "s"), sync()])];
    let expected = play(&mut pair.upstream, &prepare);
    assert_eq!(play(&mut pair.freshet, &prepare), expected);
    pair.agree("by name", &[burst(4, &[bind("", "s", &[Some("4")], 1), execute("", 0), sync()])]);
    // It exists upstream, too: SQL can name it, and its name is taken.
    let script = [burst(4, &[query("EXECUTE s(5)")]), burst(2, &[parse("s", sql), sync()])];
    assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script));
    // Several in one unit.
    let many = [
        bind("", "s", &[Some("1")], 0),
        describe('P', ""),
        execute("", 0),
        bind("", "s", &[Some("2")], 0),
        describe('P', ""),
        execute("", 0),
        bind("", "s", &[Some("30")], 0),
        describe('P', ""),
        execute("", 0),
        sync(),
    ];
    pair.agree("a pipeline", &[burst(12, &many)]);
}

/// PDO drops each statement by SQL once it is done with it; psycopg and Rails do when they keep too many.
#[test]
fn statements_are_deallocated_here() {
    let mut pair = Pair::start();
    let sql = "SELECT id, v FROM t WHERE id = $1";
    let run = |name: &str| burst(5, &[bind("", name, &[Some("3")], 0), describe('P', ""), execute("", 0), sync()]);
    let made = |name: &str| burst(2, &[parse(name, sql), sync()]);
    let pdo = [made("pdo_stmt_00000001"), run("pdo_stmt_00000001"), burst(2, &[query("DEALLOCATE pdo_stmt_00000001")])];
    pair.agree("PDO", &pdo);
    let block = [
        burst(2, &[query("BEGIN")]),
        made("a"),
        run("a"),
        burst(2, &[query("deallocate prepare \"a\";")]),
        burst(2, &[query("COMMIT")]),
    ];
    // COMMIT is upstream's there, which has the statement.
    assert_eq!(play(&mut pair.freshet, &block), play(&mut pair.upstream, &block));
    let own = [made("a"), burst(4, &[parse("", "DEALLOCATE a"), bind("", "", &[], 0), execute("", 0), sync()])];
    let own = own.into_iter().chain([made("a"), run("a"), burst(2, &[query("DEALLOCATE a")])]).collect::<Vec<_>>();
    pair.agree("as an extended query", &own);
    // The others are there still, and so are names.
    let others =
        [made("a"), made("b"), burst(2, &[query("DEALLOCATE a")]), run("b"), burst(2, &[query("DEALLOCATE b")])];
    pair.agree("one of two", &others);
    let gone = burst(2, &[bind("", "a", &[Some("3")], 0), execute("", 0), sync()]);
    let script = [
        made("a"),
        burst(2, &[query("DEALLOCATE a")]),
        gone,
        burst(2, &[query("DEALLOCATE a")]),
        burst(2, &[query("DEALLOCATE A; ")]),
        // In a failed block it fails, and the statement stays.
        made("a"),
        burst(2, &[query("BEGIN")]),
        burst(2, &[query("SELECT 1/0")]),
        burst(2, &[query("DEALLOCATE a")]),
        burst(2, &[query("ROLLBACK")]),
        run("a"),
        burst(2, &[parse("a", sql), sync()]),
        // Behind one that drops it, in one group.
        burst(
            5,
            &[
                parse("", "DEALLOCATE a"),
                bind("", "", &[], 0),
                execute("", 0),
                bind("", "a", &[Some("3")], 0),
                execute("", 0),
                sync(),
            ],
        ),
    ];
    assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script));
    // Bound and not run it stays; closed before in the group it is gone.
    let script = [
        made("a"),
        burst(3, &[parse("", "DEALLOCATE a"), bind("", "", &[], 0), sync()]),
        burst(2, &[parse("a", "SELECT 1"), sync()]),
        run("a"),
        burst(5, &[parse("", "DEALLOCATE a"), close('S', "a"), bind("", "", &[], 0), execute("", 0), sync()]),
        burst(2, &[bind("", "a", &[Some("3")], 0), execute("", 0), sync()]),
    ];
    assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script));
    // Statements that SQL makes have names that are not known here; those that are known stay so.
    let script = [made("kept"), burst(2, &[query("PREPARE by_sql AS SELECT 1")])];
    assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script));
    pair.agree("beside one that SQL has made", &[run("kept")]);
    let script = [
        burst(2, &[parse("by_sql", sql), sync()]),
        burst(4, &[query("EXECUTE by_sql")]),
        burst(2, &[query("DEALLOCATE ALL")]),
        burst(2, &[bind("", "kept", &[Some("3")], 0), execute("", 0), sync()]),
    ];
    assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script));
    pair.agree("after all of them went", &pdo);
}

#[test]
fn a_changed_table_makes_upstream_judge_a_prepared_statement() {
    let mut pair = Pair::start();
    let prepare = [burst(4, &[parse("s", "SELECT * FROM t WHERE id = 1"), describe('S', "s"), sync()])];
    assert_eq!(play(&mut pair.freshet, &prepare), play(&mut pair.upstream, &prepare));
    let run = || vec![burst(4, &[bind("", "s", &[], 0), execute("", 0), sync()])];
    pair.agree("before", &run());
    pair.upstream.query("CREATE TABLE unrelated (a int)");
    pair.agree("another table", &run());
    pair.upstream.query("ALTER TABLE t ADD COLUMN w int");
    let failing = [burst(2, &[bind("", "s", &[], 0), execute("", 0), sync()])];
    for _ in 0..3 {
        let (expected, got) = (play(&mut pair.upstream, &failing), play(&mut pair.freshet, &failing));
        assert_eq!(tags(&expected), "EZ", "cached plan must not change result type");
        assert_eq!(got, expected);
    }
}

/// Made while a temporary table had the name, a statement was executed here, on the table behind it, once that one was gone.
#[test]
fn a_statement_of_a_temporary_table_stays_upstreams() {
    const TEXT: &str = "SELECT * FROM t WHERE id = $1";
    let mut pair = Pair::start();
    let plain = [parse("", TEXT), bind("", "", &[Some("1")], 0), describe('P', ""), execute("", 0), sync()];
    pair.agree("the table itself", &[burst(6, &plain)]);
    let script = [
        burst(2, &[query("CREATE TEMP TABLE t (id int, v text, extra int)")]),
        burst(4, &[parse("s", TEXT), describe('S', "s"), sync()]),
        burst(2, &[query("DROP TABLE pg_temp.t")]),
    ];
    // Each session has a table of its own, with a number of its own.
    let expected = tags(&play(&mut pair.upstream, &script));
    assert_eq!(tags(&play(&mut pair.freshet, &script)), expected);
    let run = [burst(2, &[bind("", "s", &[Some("1")], 0), execute("", 0), sync()])];
    for _ in 0..5 {
        let expected = play(&mut pair.upstream, &run);
        assert_eq!(tags(&expected), "EZ", "cached plan must not change result type");
        assert_same(&play(&mut pair.freshet, &run), &expected);
        pair.agree("the table itself", &[burst(6, &plain)]);
    }
}

/// PostgreSQL analyses a statement again when its table has changed, and reads its literals by the settings of then: here they
/// were taken to be read as at first.
#[test]
fn a_statement_is_read_by_the_settings_of_its_last_analysis() {
    const TEXT: &str = "SELECT count(*) FROM u WHERE d = '01/02/2024'";
    let mut pair = Pair::start();
    pair.upstream.query("CREATE TABLE u (id int PRIMARY KEY, d date)");
    pair.upstream.query("INSERT INTO u VALUES (1, '2024-01-02'), (2, '2024-02-01'), (3, '2024-02-01')");
    let set = |pair: &mut Pair, order: &str| {
        let text = format!("SET DateStyle = 'ISO, {order}'");
        assert_eq!(tags(&pair.freshet.query(&text)), tags(&pair.upstream.query(&text)));
    };
    let prepare = [burst(2, &[parse("s", TEXT), sync()])];
    let run = [burst(4, &[bind("", "s", &[], 0), execute("", 0), sync()])];
    let count = |messages: &[Message]| rows(messages)[0][0].clone();
    set(&mut pair, "MDY");
    pair.agree("the text", &[burst(4, &[query(TEXT)])]);
    assert_eq!(play(&mut pair.freshet, &prepare), play(&mut pair.upstream, &prepare));
    pair.agree("as it was parsed", &run);
    set(&mut pair, "DMY");
    pair.upstream.query("ALTER TABLE u ADD COLUMN x int");
    let expected = play(&mut pair.upstream, &run);
    assert_eq!(count(&expected).as_deref(), Some("2"), "the first of February");
    assert_eq!(play(&mut pair.freshet, &run), expected);
    set(&mut pair, "MDY");
    let expected = play(&mut pair.upstream, &run);
    assert_eq!(count(&expected).as_deref(), Some("2"), "still");
    for _ in 0..10 {
        assert_eq!(play(&mut pair.freshet, &run), expected);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// PostgreSQL analyses a statement again where the search path is another one, and keeps its parameters' types.
#[test]
fn another_search_path_makes_upstream_judge_a_prepared_statement() {
    let mut pair = Pair::start();
    pair.upstream.query(
        "CREATE SCHEMA a; CREATE TABLE a.o (id int PRIMARY KEY, v text); INSERT INTO a.o VALUES (1, 'of a');
         CREATE SCHEMA b; CREATE TABLE b.o (id int PRIMARY KEY, v int, w int); INSERT INTO b.o VALUES (1, 2, 3);
         CREATE TABLE a.p (id int PRIMARY KEY, v text); INSERT INTO a.p VALUES (1, 'of a');
         CREATE TABLE b.p (id int PRIMARY KEY, v text); INSERT INTO b.p VALUES (1, 'of b');
         CREATE TABLE a.q (id text PRIMARY KEY); INSERT INTO a.q VALUES ('1');
         CREATE TABLE b.q (id int PRIMARY KEY); INSERT INTO b.q VALUES (1)",
    );
    let path = |schema: &str| burst(2, &[query(&format!("SET search_path = {schema}"))]);
    let run = |name: &str, replies: usize, parameters: &[Option<&str>]| {
        burst(replies, &[bind("", name, parameters, 0), describe('P', ""), execute("", 0), sync()])
    };
    for schema in ["a", "b"] {
        assert_eq!(play(&mut pair.freshet, &[path(schema)]), play(&mut pair.upstream, &[path(schema)]));
        pair.agree("under its own path", &[burst(4, &[query("SELECT * FROM o WHERE id = 1")])]);
        pair.agree("under its own path", &[burst(4, &[query("SELECT * FROM p WHERE id = 1")])]);
    }
    let made = [
        path("a"),
        burst(2, &[parse("o", "SELECT * FROM o WHERE id = 1"), sync()]),
        burst(2, &[parse("p", "SELECT * FROM p WHERE id = 1"), sync()]),
        burst(2, &[parse("q", "SELECT count(*) FROM q WHERE id = $1"), sync()]),
    ];
    assert_eq!(play(&mut pair.freshet, &made), play(&mut pair.upstream, &made));
    pair.agree("under the path it was made under", &[run("o", 5, &[]), run("p", 5, &[])]);
    pair.agree("a text", &[run("q", 5, &[Some("1")])]);
    let other = [path("b"), run("o", 2, &[]), run("q", 2, &[Some("1")]), run("p", 5, &[])];
    for _ in 0..3 {
        assert_eq!(play(&mut pair.freshet, &other), play(&mut pair.upstream, &other));
    }
    pair.agree("with the same columns under another", &[run("p", 5, &[])]);
    assert_eq!(play(&mut pair.freshet, &[path("a")]), play(&mut pair.upstream, &[path("a")]));
    pair.agree("back again", &[run("o", 5, &[]), run("p", 5, &[])]);
}

/// PostgreSQL analyses a statement again when its own tables change: one that would be found before them now is none of them. Here
/// the statement was planned over that one, and upstream's rows were kept for those who mean it.
#[test]
fn a_table_that_would_be_found_first_does_not_disturb_a_prepared_statement() {
    const TEXT: &str = "SELECT v FROM o WHERE id = $1";
    let mut pair = Pair::start();
    pair.upstream.query(
        "CREATE SCHEMA a; CREATE SCHEMA b;
         CREATE TABLE b.o (id int PRIMARY KEY, v text); INSERT INTO b.o VALUES (1, 'of b')",
    );
    let made = [burst(2, &[query("SET search_path = a, b")]), burst(2, &[parse("s", TEXT), sync()])];
    assert_eq!(play(&mut pair.freshet, &made), play(&mut pair.upstream, &made));
    let old = [burst(4, &[bind("", "s", &[Some("1")], 0), execute("", 0), sync()])];
    let new = [burst(5, &[parse("", TEXT), bind("", "", &[Some("1")], 0), execute("", 0), sync()])];
    let first = |messages: &[Message]| rows(messages)[0][0].clone();
    pair.agree("before", &old);
    // That the table has come into the publication has made it be analysed again, when it is executed.
    let expected = play(&mut pair.upstream, &old);
    pair.freshet.query("SET freshet.route = 'relay'");
    assert_eq!(play(&mut pair.freshet, &old), expected);
    pair.freshet.query("SET freshet.route = 'auto'");
    pair.upstream.query("CREATE TABLE a.o (id int PRIMARY KEY, v text); INSERT INTO a.o VALUES (1, 'of a')");
    assert_eq!(first(&play(&mut pair.upstream, &old)).as_deref(), Some("of b"));
    for _ in 0..20 {
        assert_eq!(play(&mut pair.freshet, &old), expected);
        std::thread::sleep(Duration::from_millis(10));
    }
    pair.agree("a new statement", &new);
    assert_eq!(first(&play(&mut pair.freshet, &new)).as_deref(), Some("of a"));
    for _ in 0..20 {
        assert_eq!(play(&mut pair.freshet, &old), expected);
        assert_eq!(first(&play(&mut pair.freshet, &new)).as_deref(), Some("of a"));
    }
    // Its table changes, and another one has the name.
    pair.upstream.query("ALTER TABLE b.o RENAME TO former");
    assert_eq!(first(&play(&mut pair.upstream, &old)).as_deref(), Some("of a"));
    pair.agree("analysed again", &old);
}

/// PostgreSQL reads a label when it parses, and ALTER TYPE ... RENAME VALUE does not make it parse again: it was read anew here, and
/// no row found, or another.
#[test]
fn a_label_means_in_a_prepared_statement_what_it_was() {
    const TEXT: &str = "SELECT id, mood FROM m WHERE mood = 'ok'";
    let mut pair = Pair::start();
    pair.upstream.query(
        "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TABLE m (id int PRIMARY KEY, mood mood);
         INSERT INTO m VALUES (1, 'sad'), (2, 'ok'), (3, 'happy')",
    );
    let made = [
        burst(2, &[parse("s", TEXT), sync()]),
        burst(2, &[parse("all", "SELECT id, mood FROM m ORDER BY id"), sync()]),
    ];
    assert_eq!(play(&mut pair.freshet, &made), play(&mut pair.upstream, &made));
    let run = |name: &str, replies| [burst(replies, &[bind("", name, &[], 0), execute("", 0), sync()])];
    let old = run("s", 4);
    pair.agree("before", &old);
    pair.agree("without a constant", &run("all", 6));
    // That the table has come into the publication has made it be analysed again, when it is executed.
    pair.freshet.query("SET freshet.route = 'relay'");
    assert_eq!(play(&mut pair.freshet, &old), play(&mut pair.upstream, &old));
    pair.freshet.query("SET freshet.route = 'auto'");
    // One more is no other.
    pair.upstream.query("ALTER TYPE mood ADD VALUE 'bored' BEFORE 'ok'");
    pair.agree("one more label", &old);
    pair.upstream.query(
        "BEGIN; ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'; ALTER TYPE mood RENAME VALUE 'happy' TO 'ok'; COMMIT",
    );
    let expected = play(&mut pair.upstream, &old);
    assert_eq!(rows(&expected), [[Some("2".to_string()), Some("fine".to_string())]]);
    assert_eq!(play(&mut pair.freshet, &old), expected);
    let new = [burst(5, &[parse("", TEXT), bind("", "", &[], 0), execute("", 0), sync()])];
    pair.agree("a new statement", &new);
    for _ in 0..5 {
        assert_eq!(play(&mut pair.freshet, &old), expected);
        assert_eq!(rows(&play(&mut pair.freshet, &new)), [[Some("3".to_string()), Some("ok".to_string())]]);
    }
    pair.agree("without a constant, by the new names", &run("all", 6));
}

/// Which function a call means is decided when PostgreSQL analyses it; one that would be a better match since is none.
#[test]
fn a_function_that_would_match_better_does_not_disturb_a_prepared_statement() {
    const TEXT: &str = "SELECT id, more(id) FROM o WHERE id = 1";
    let mut pair = Pair::start();
    pair.upstream.query(
        "CREATE TABLE o (id int2 PRIMARY KEY); INSERT INTO o VALUES (1), (2);
         CREATE FUNCTION more(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1'",
    );
    let made = [burst(2, &[parse("s", TEXT), sync()])];
    assert_eq!(play(&mut pair.freshet, &made), play(&mut pair.upstream, &made));
    let old = [burst(4, &[bind("", "s", &[], 0), execute("", 0), sync()])];
    let new = [burst(5, &[parse("", TEXT), bind("", "", &[], 0), execute("", 0), sync()])];
    pair.agree("before", &old);
    // That the table has come into the publication has made it be analysed again, when it is executed.
    pair.freshet.query("SET freshet.route = 'relay'");
    assert_eq!(play(&mut pair.freshet, &old), play(&mut pair.upstream, &old));
    pair.freshet.query("SET freshet.route = 'auto'");
    // By its value in the row that is compared first it is the same.
    pair.upstream.query(
        "CREATE FUNCTION more(int2) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN $1 < 10 THEN $1 + 1 ELSE -1 END'",
    );
    let expected = play(&mut pair.upstream, &old);
    for _ in 0..20 {
        assert_eq!(play(&mut pair.freshet, &old), expected);
        std::thread::sleep(Duration::from_millis(10));
    }
    pair.upstream.query("CREATE OR REPLACE FUNCTION more(int2) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 - 2'");
    pair.agree("a new statement", &new);
    for _ in 0..20 {
        assert_eq!(play(&mut pair.freshet, &old), expected);
        assert_eq!(rows(&play(&mut pair.freshet, &new)), [[Some("1".to_string()), Some("-1".to_string())]]);
    }
}

/// It describes a result by what is left of it once a strict operator is NULL.
#[test]
fn a_null_parameter_leaves_an_arm_out_of_the_description() {
    let mut pair = Pair::start();
    pair.upstream.query(
        "CREATE TABLE n (id int PRIMARY KEY, t text, n numeric, n2 numeric(9, 2)); INSERT INTO n VALUES (1, 'a', 1.5, 1.5)",
    );
    pair.agree("the table is here", &[burst(4, &[query("SELECT count(*) FROM n")])]);
    pair.freshet.query("SET freshet.route = 'local'");
    for (name, text) in [
        ("a", "SELECT id, CASE WHEN t = $1 THEN n ELSE n2 END AS x FROM n"),
        ("b", "SELECT id, coalesce(CASE WHEN t LIKE $1 THEN n END, n2) AS x FROM n"),
        ("c", "SELECT id, least(coalesce(length($1)::numeric, n2), n2) AS x FROM n"),
        ("d", "SELECT id, greatest(CASE WHEN $1 = 'a' THEN n ELSE n2 END, n2) AS x FROM n"),
    ] {
        let made = [burst(2, &[parse(name, text), sync()])];
        assert_eq!(play(&mut pair.freshet, &made), play(&mut pair.upstream, &made));
        // From the sixth execution on PostgreSQL may have a plan for any parameter, and describes that.
        for value in [Some("a"), Some("a"), None, Some("b"), None] {
            let asked = [burst(5, &[bind("", name, &[value], 0), describe('P', ""), execute("", 0), sync()])];
            let expected = play(&mut pair.upstream, &asked);
            assert_same(&play(&mut pair.freshet, &asked), &expected);
        }
        // Not for its first runs alone.
        let refused = "unsupported: a modifier that hangs on which arm is left";
        assert_eq!(pair.last().1, refused, "{text}");
    }
}

/// PostgreSQL: pg_verify_mbstr. It was taken for a character.
#[test]
fn a_nul_in_a_parameter_is_an_error() {
    let mut pair = Pair::start();
    for (name, text) in [("s", "SELECT id FROM t WHERE v = $1"), ("c", "SELECT $1::text || v FROM t WHERE id = 1")] {
        let made = [burst(2, &[parse(name, text), sync()])];
        assert_eq!(play(&mut pair.freshet, &made), play(&mut pair.upstream, &made));
        pair.agree(text, &[burst(4, &[bind("", name, &[Some("v7")], 0), execute("", 0), sync()])]);
        for value in ["v7\0", "\0", "v\x007"] {
            let wrong = [burst(2, &[bind("", name, &[Some(value)], 0), execute("", 0), sync()])];
            let expected = play(&mut pair.upstream, &wrong);
            assert_eq!(tags(&expected), "EZ", "{text}");
            for _ in 0..3 {
                assert_same(&play(&mut pair.freshet, &wrong), &expected);
            }
        }
    }
}

/// A custom plan folds what is made of parameters before any row is read, also where a subquery has brought them, and stops at what
/// decides an OR, AND, CASE or COALESCE. The last value is none of the type.
#[test]
fn what_parameters_make_is_computed_without_a_row() {
    let mut pair = Pair::start();
    // Not from a reply of upstream's that was kept.
    pair.freshet.query("SET freshet.route = 'local'");
    pair.agree("the table is here", &[burst(4, &[query("SELECT count(*) FROM t")])]);
    for (sql, good, wrong) in [
        ("SELECT id, CAST(CASE WHEN id < 0 THEN '1' ELSE $1::text END AS real) FROM t WHERE id < 0", "1", None),
        ("SELECT CAST($1::text AS real) FROM t WHERE id < 0", "1", Some("x")),
        ("SELECT x.p::smallint FROM (SELECT $1::text AS p FROM t WHERE id < 0) x CROSS JOIN t y", "1", Some("0.5")),
        (
            "SELECT max(p::smallint) FROM (SELECT $1::text AS p FROM t WHERE id < 0) x JOIN t y ON true",
            "1",
            Some("0.5"),
        ),
        ("SELECT id FROM t WHERE id < 0 AND $1::text::date IS NULL", "2024-01-01", Some("x")),
        ("SELECT id FROM t WHERE id < 0 AND v < ($1::text::date)::text", "2024-01-01", Some("x")),
        ("SELECT id FROM t WHERE id < 0 AND ($1::text = '' OR id = $1::text::int) ORDER BY 1", "3", Some("x")),
        ("SELECT id FROM t WHERE $1::text = '' OR id = $1::text::int ORDER BY 1", "", Some("x")),
        ("SELECT id FROM t WHERE NOT ($1::text <> '' AND id <> $1::text::int) ORDER BY 1", "", Some("x")),
        ("SELECT CASE WHEN $1::text = '' THEN id ELSE id / $1::text::int END FROM t ORDER BY id", "", Some("0x")),
        (
            "SELECT coalesce(nullif($1::text, 'x'), 'a' || 1 / (length($1::text) - 1)) FROM t WHERE id < 0",
            "ab",
            Some("x"),
        ),
        (
            "SELECT id FROM t WHERE $1::text IS NULL OR v > ($1::text::timestamptz)::text ORDER BY 1",
            "2024-01-01",
            Some("x"),
        ),
    ] {
        let ask = |value| [parse("", sql), bind("", "", &[Some(value)], 0), execute("", 0), sync()];
        let replies = play_unit(&mut pair.upstream, &ask(good).concat()).len();
        pair.agree(sql, &[burst(replies, &ask(good))]);
        if let Some(wrong) = wrong {
            let expected = play_unit(&mut pair.upstream, &ask(wrong).concat());
            assert!(tags(&expected).contains('E'), "{sql}: {}", tags(&expected));
            assert_same(&play_unit(&mut pair.freshet, &ask(wrong).concat()), &expected);
            // What was wrong once is not held against the next value.
            pair.agree(sql, &[burst(replies, &ask(good))]);
        }
    }
}

/// With one parameter it is a LEFT JOIN to PostgreSQL's planner, with another a FULL JOIN that it has no plan for.
#[test]
fn a_full_join_without_an_equality_is_upstreams() {
    const TEXT: &str = "SELECT x.id, y.id FROM t x FULL JOIN t y ON x.v IS NOT DISTINCT FROM y.v
        WHERE $1::int IS NULL OR x.id = $1 ORDER BY 1, 2";
    let mut pair = Pair::start();
    let made = [burst(2, &[parse("s", TEXT), sync()])];
    assert_eq!(play(&mut pair.freshet, &made), play(&mut pair.upstream, &made));
    pair.agree("the table is here", &[burst(4, &[query("SELECT count(*) FROM t")])]);
    let run = |replies, value| [burst(replies, &[bind("", "s", &[value], 0), execute("", 0), sync()])];
    for _ in 0..5 {
        let expected = play(&mut pair.upstream, &run(4, Some("1")));
        assert_eq!(play(&mut pair.freshet, &run(4, Some("1"))), expected);
        let expected = play(&mut pair.upstream, &run(2, None));
        assert_eq!(tags(&expected), "EZ");
        assert_same(&play(&mut pair.freshet, &run(2, None)), &expected);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What PostgreSQL does when it parses a text it does not do again: the next settings are those of the next text.
#[test]
fn settings_of_the_parse_hold() {
    let mut pair = Pair::start();
    let set = |name: &str, value: &str| query(&format!("SET {name} = {value}"));
    let made = |name: &str, sql: &str| [parse(name, sql), sync()].concat();
    let run = |name: &str| [bind("", name, &[], 0), execute("", 0), sync()].concat();
    for (setting, at_parse, later, sql) in [
        ("transform_null_equals", "on", "off", "SELECT count(*) FROM t WHERE nullif(id, 3) = NULL"),
        ("array_nulls", "off", "on", "SELECT count(*), '{1,NULL}'::text[] FROM t"),
        ("standard_conforming_strings", "off", "on", r"SELECT count(*), length('a\\b') FROM t"),
        ("backslash_quote", "on", "off", r"SELECT count(*), E'a\'b' FROM t"),
    ] {
        let usual = made("usual", sql);
        assert_same(&play_unit(&mut pair.freshet, &usual), &play_unit(&mut pair.upstream, &usual));
        pair.agree(sql, &[burst(4, &[run("usual")])]);
        let script = [
            set(setting, at_parse),
            made("other", sql),
            made("plain", "SELECT count(*) FROM t WHERE v IS NOT NULL"),
            run("other"),
            set(setting, later),
            run("other"),
            run("usual"),
            run("other"),
            set(setting, "DEFAULT"),
            run("other"),
            [close('S', "usual"), close('S', "other"), sync()].concat(),
        ];
        for unit in script {
            let expected = play_unit(&mut pair.upstream, &unit);
            assert_same(&play_unit(&mut pair.freshet, &unit), &expected);
        }
        // What no setting decides is answered here whatever they were.
        pair.agree("plain", &[burst(4, &[run("plain")])]);
        let closed = [close('S', "plain"), sync()].concat();
        assert_same(&play_unit(&mut pair.freshet, &closed), &play_unit(&mut pair.upstream, &closed));
    }
}

/// A Parse that was answered here is upstream's to make behind the answer. What keeps it from that is what the block's next statement
/// is told, as PostgreSQL would have told the Parse; it was 25P02 without a word of why.
#[test]
fn a_block_that_fails_by_a_parse_says_why() {
    let mut pair = Pair::start();
    let sql = "SELECT id, v FROM t WHERE id = $1";
    let made = |name: &str| [parse(name, sql), bind("", name, &[Some("3")], 0), execute("", 0), sync()];
    pair.agree("the table is here", &[burst(5, &made("")[..])]);
    let uses = |name: &str| [bind("", name, &[Some("3")], 0), execute("", 0), sync()].concat();
    let nexts = [
        query("SELECT 1"),
        uses("s1"),
        [close('S', "none"), sync()].concat(),
        query("ROLLBACK"),
        [parse("", "ROLLBACK"), bind("", "", &[], 0), execute("", 0), sync()].concat(),
    ];
    for (limit, sqlstate) in [("lock_timeout", "55P03"), ("statement_timeout", "57014")] {
        pair.freshet.query(&format!("SET {limit} = '1s'"));
        for (at, next) in nexts.iter().enumerate() {
            pair.freshet.query("BEGIN");
            play_unit(&mut pair.freshet, &made("").concat());
            pair.upstream.query("BEGIN");
            pair.upstream.query("LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
            let reply = play_unit(&mut pair.freshet, &made(&format!("s{at}")).concat());
            assert_eq!(tags(&reply), "12DCZ", "{limit}, {at}: answered here");
            if at == 1 {
                pair.freshet.query("SET freshet.route = 'relay'");
            }
            let mut failed = play_unit(&mut pair.freshet, next);
            if at == 2 {
                // Nothing waits for it, and it succeeds in a failed block, too.
                failed = play_unit(&mut pair.freshet, &query("SELECT 1"));
            }
            pair.upstream.query("ROLLBACK");
            match at {
                3 | 4 => {
                    assert!(
                        tags(&failed).ends_with("CZ") && !tags(&failed).contains('E'),
                        "{limit}: {}",
                        tags(&failed)
                    );
                    assert_eq!(failed.last().map(|message| &*message.body), Some(&b"I"[..]), "{limit}");
                    continue;
                }
                _ => {}
            }
            let error = failed.iter().find(|message| message.tag == 'E').expect("an error");
            let error = String::from_utf8_lossy(&error.body);
            assert!(error.contains(sqlstate), "{limit}, {at}: {error}");
            assert_eq!(failed.last().map(|message| &*message.body), Some(&b"E"[..]));
            let later = pair.freshet.query("SELECT 1");
            assert_eq!(tags(&later), "EZ");
            assert!(String::from_utf8_lossy(&later[0].body).contains("25P02"), "{limit}, {at}");
            assert_eq!(tags(&pair.freshet.query("ROLLBACK")), "CZ");
        }
        pair.freshet.query(&format!("RESET {limit}"));
        // They are made by whatever uses them next.
        assert_eq!(tags(&play_unit(&mut pair.freshet, &uses("s1"))), "2DCZ");
        pair.freshet.query("DEALLOCATE ALL");
    }
}

/// Its Parse was answered here while a migration held the table, and carried out upstream when that had committed. PostgreSQL parses before
/// (and refuses each execution since) or behind it (and describes what is there then).
#[test]
fn a_statement_that_became_another_behind_its_answer_is_refused() {
    let mut pair = Pair::start();
    let sql = "SELECT * FROM t WHERE id = $1";
    let made = |name: &str| [parse(name, sql), describe('S', name), sync()].concat();
    let run = |name: &str| [bind("", name, &[Some("3")], 0), execute("", 0), sync()].concat();
    let first = |name: &str| {
        [parse(name, sql), bind("", name, &[Some("3")], 0), describe('P', ""), execute("", 0), sync()].concat()
    };
    pair.agree("the rows", &[burst(6, &[first("")])]);
    pair.agree("the description", &[burst(4, &[parse("", sql), describe('S', ""), sync()])]);
    pair.upstream.query("BEGIN");
    pair.upstream.query("ALTER TABLE t ADD COLUMN added text");
    assert_eq!(tags(&play_unit(&mut pair.freshet, &made("described"))), "1tTZ", "answered under the lock");
    assert_eq!(tags(&play_unit(&mut pair.freshet, &first("run"))), "12TDCZ", "likewise");
    pair.upstream.query("COMMIT");
    pair.freshet.query("SET freshet.route = 'relay'");
    for (name, uses) in
        [("described", run("described")), ("run", run("run")), ("run", [describe('S', "run"), sync()].concat())]
    {
        let refused = play_unit(&mut pair.freshet, &uses);
        let error =
            refused.iter().find(|message| message.tag == 'E').map(|message| String::from_utf8_lossy(&message.body));
        assert!(
            error.as_ref().is_some_and(|error| error.contains("C0A000\0Mcached plan must not change result type\0")),
            "{name}: {error:?}"
        );
        assert_eq!(tags(&refused), "EZ", "{name}");
    }
    pair.freshet.query("SET freshet.route = 'auto'");
    assert_eq!(tags(&play_unit(&mut pair.freshet, &run("run"))), "EZ", "nor is it answered here");
    // Drivers prepare it anew.
    for name in ["described", "run"] {
        play_unit(&mut pair.freshet, &[close('S', name), sync()].concat());
        let (unit, upstream) = (made(name), made(name));
        assert_same(&play_unit(&mut pair.freshet, &unit), &play_unit(&mut pair.upstream, &upstream));
        assert_same(&play_unit(&mut pair.freshet, &run(name)), &play_unit(&mut pair.upstream, &run(name)));
    }
}

/// Nobody is told of a COMMIT that rolled back, nor of a statement that does not exist, in place of what failed.
#[test]
fn what_follows_a_parse_that_fails_is_told_why() {
    let mut pair = Pair::start();
    let sql = "SELECT id, v FROM t WHERE id = $1";
    let made = |name: &str| [parse(name, sql), bind("", name, &[Some("3")], 0), execute("", 0), sync()].concat();
    pair.agree("the table is here", &[burst(5, &[made("")])]);
    pair.freshet.query("SET lock_timeout = '1s'");
    let error_of = |reply: &[Message]| {
        let error = reply.iter().find(|message| message.tag == 'E');
        let error = error.unwrap_or_else(|| panic!("no error among {reply:?}"));
        String::from_utf8_lossy(&error.body).into_owned()
    };
    // In a block of freshet's, in which the table is read here, upstream's table is locked: the statement's Parse fails behind its answer.
    let begin_and_lock = |pair: &mut Pair, name: &str| {
        pair.freshet.query("BEGIN");
        play_unit(&mut pair.freshet, &made(""));
        pair.upstream.query("BEGIN");
        pair.upstream.query("LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
        assert_eq!(tags(&play_unit(&mut pair.freshet, &made(name))), "12DCZ", "answered here");
    };
    begin_and_lock(&mut pair, "in_block");
    let ended = pair.freshet.query("COMMIT");
    assert!(error_of(&ended).contains("55P03"), "{}", error_of(&ended));
    pair.freshet.query("ROLLBACK");
    assert_eq!(tags(&play_unit(&mut pair.freshet, &made("alone"))), "12DCZ", "answered here");
    pair.freshet.query("SET freshet.route = 'relay'");
    let run = [bind("", "alone", &[Some("3")], 0), execute("", 0), sync()].concat();
    let failed = play_unit(&mut pair.freshet, &run);
    assert!(error_of(&failed).contains("55P03"), "{}", error_of(&failed));
    pair.upstream.query("ROLLBACK");
    assert_eq!(tags(&play_unit(&mut pair.freshet, &run)), "2DCZ", "it is made once it can be");
    pair.freshet.query("SET freshet.route = 'auto'");
    // A string that begins with ROLLBACK is carried out, as asyncpg resets its connections.
    begin_and_lock(&mut pair, "before_reset");
    let reset = pair.freshet.query("ROLLBACK;\nSELECT 1; RESET ALL");
    assert!(!tags(&reset).contains('E'), "{}", error_of(&reset));
    pair.upstream.query("ROLLBACK");
}
