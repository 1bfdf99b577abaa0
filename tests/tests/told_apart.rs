//! Groups of messages that are answered here in part and upstream in part: what upstream refuses behind a query it refuses, and what
//! it says of one statement is not taken for another's.

use freshet_tests::client::{bind, close, describe, execute, flush, parse, query, sync};
use freshet_tests::scripted::{Pair, assert_same, burst, play, play_unit};

const ORDERED: &str = "SELECT id, v FROM t ORDER BY id";

/// VACUUM was carried out, and the isolation level set.
#[test]
fn what_must_not_follow_a_query_finds_one_that_was_answered_here() {
    let mut pair = Pair::start();
    let unit = |sql: &str, end: Vec<u8>| [parse("", sql), bind("", "", &[], 0), execute("", 0), end];
    let read = "SELECT count(*) FROM t";
    pair.agree("a read", &[burst(5, &unit(read, sync()))]);
    pair.agree("a read in parts", &[burst(4, &unit(read, flush())), burst(1, &[sync()])]);
    for sql in ["VACUUM t", "DISCARD ALL", "BEGIN ISOLATION LEVEL SERIALIZABLE", "REINDEX TABLE CONCURRENTLY t"] {
        let first = [burst(4, &unit(read, flush()))];
        assert_same(&play(&mut pair.freshet, &first), &play(&mut pair.upstream, &first));
        let rest = [burst(4, &unit(sql, sync())), burst(5, &unit(read, sync()))];
        let expected = play(&mut pair.upstream, &rest);
        assert_same(&play(&mut pair.freshet, &rest), &expected);
        assert_eq!(expected[2].tag, 'E', "{sql}");
        // A string by itself ends the group.
        let begun = [burst(4, &unit(read, flush()))];
        assert_same(&play(&mut pair.freshet, &begun), &play(&mut pair.upstream, &begun));
        let expected = play_unit(&mut pair.upstream, &query(sql));
        assert_same(&play_unit(&mut pair.freshet, &query(sql)), &expected);
        assert_same(
            &play_unit(&mut pair.freshet, &query("ROLLBACK")),
            &play_unit(&mut pair.upstream, &query("ROLLBACK")),
        );
    }
}

/// A question for the settings took a snapshot; a query that was rolled back to a savepoint was forgotten.
#[test]
fn the_modes_of_a_block_can_be_set_just_as_long_as_upstream_takes_them() {
    let mut pair = Pair::start();
    let read = "SELECT count(*) FROM t";
    pair.agree("a read", &[burst(4, &[query(read)])]);
    for (number, script) in [
        vec!["BEGIN READ ONLY", "SET LOCAL search_path TO tenant_", "SET TRANSACTION READ WRITE", "COMMIT"],
        vec![
            "BEGIN",
            "SET LOCAL search_path TO tenant_",
            "SHOW transaction_isolation",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "COMMIT",
        ],
        vec![
            "BEGIN",
            "SET LOCAL search_path TO public, tenant_",
            read,
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "COMMIT",
        ],
        vec![
            "BEGIN",
            read,
            "SAVEPOINT a",
            "ROLLBACK TO a",
            "RELEASE a",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "COMMIT",
        ],
        vec![
            "BEGIN",
            "SAVEPOINT a",
            "ROLLBACK TO a",
            "RELEASE a",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "COMMIT",
        ],
    ]
    .into_iter()
    .enumerate()
    {
        for text in script {
            // Paths that nobody has asked about yet.
            let unit = query(&text.replace("tenant_", &format!("tenant_{number}")));
            let expected = play_unit(&mut pair.upstream, &unit);
            assert_same(&play_unit(&mut pair.freshet, &unit), &expected);
        }
    }
}

/// It was closed here only.
#[test]
fn a_cursor_of_upstreams_is_closed_there() {
    let mut pair = Pair::start();
    let read = [parse("", "SELECT count(*) FROM t"), bind("", "", &[], 0), describe('P', ""), execute("", 0)].concat();
    pair.agree("a read", &[burst(6, &[read.clone(), sync()])]);
    for (declare, end) in [
        ("BEGIN; DECLARE cur CURSOR FOR SELECT id FROM t", "COMMIT"),
        ("DECLARE cur CURSOR WITH HOLD FOR SELECT id FROM t", "CLOSE ALL"),
    ] {
        for unit in [
            query(declare),
            [read.clone(), close('P', "cur"), sync()].concat(),
            query("FETCH FROM cur"),
            query("ROLLBACK"),
            query(end),
        ] {
            let expected = play_unit(&mut pair.upstream, &unit);
            assert_same(&play_unit(&mut pair.freshet, &unit), &expected);
        }
    }
}

/// The option's name was not read.
#[test]
fn what_explain_carries_out_is_a_write_however_its_option_is_written() {
    let mut pair = Pair::start();
    let read = query("SELECT count(*) FROM t");
    pair.agree("a read", &[burst(4, std::slice::from_ref(&read))]);
    for (number, option) in ["\"analyze\"", "costs off, U&\"\\0061nalyze\"", "ANALYZE"].into_iter().enumerate() {
        for (side, client) in [&mut pair.upstream, &mut pair.freshet].into_iter().enumerate() {
            // Neither waits for the other's key.
            let id = 1_000 + 10 * number + side;
            play_unit(client, &query("BEGIN"));
            play_unit(client, &query(&format!("EXPLAIN ({option}) INSERT INTO t VALUES ({id}, 'x')")));
        }
        let expected = play_unit(&mut pair.upstream, &read);
        assert_same(&play_unit(&mut pair.freshet, &read), &expected);
        for client in [&mut pair.upstream, &mut pair.freshet] {
            play_unit(client, &query("ROLLBACK"));
        }
    }
}

/// What upstream said of one statement was taken for another one's.
#[test]
fn a_statement_is_not_judged_by_what_is_said_of_another() {
    let mut pair = Pair::start();
    // Or nothing is looked for in what upstream says.
    pair.agree(
        "the table is here",
        &[burst(5, &[parse("", "SELECT max(v) FROM t"), bind("", "", &[], 0), execute("", 0), sync()])],
    );
    // A reply of upstream's that is kept would do as well.
    pair.freshet.query("SET freshet.route = 'local'");
    let other = [parse("other", ORDERED), sync()];
    let script = [burst(2, &other)];
    assert_same(&play(&mut pair.freshet, &script), &play(&mut pair.upstream, &script));
    let of_other = [bind("", "other", &[], 0), describe('P', ""), execute("", 0)].concat();
    let texts =
        ["SELECT v FROM t WHERE id = $1", "SELECT v || v FROM t WHERE id = $1", "SELECT id + 1 FROM t WHERE id = $1"];
    let whole = |sql: &str, rest: &[u8]| [parse("mine", sql), rest.to_vec(), sync()];
    for (sql, rest) in texts.into_iter().zip([
        of_other.clone(),
        [describe('S', "other"), of_other.clone()].concat(),
        // Both are bound before either is run.
        [bind("p", "mine", &[Some("1")], 0), bind("q", "other", &[], 0), execute("q", 0), execute("p", 0)].concat(),
    ]) {
        for client in [&mut pair.freshet, &mut pair.upstream] {
            client.send(&whole(sql, &rest).concat());
            client.read_until('Z');
        }
        let close = [close('S', "mine"), sync()];
        let script = [burst(2, &close)];
        assert_same(&play(&mut pair.freshet, &script), &play(&mut pair.upstream, &script));
        pair.agree(sql, &[burst(5, &[parse("", sql), bind("", "", &[Some("1")], 0), execute("", 0), sync()])]);
    }
}

/// DISCARD ALL commits by itself, and so may a DO block: what fails behind them in one pipeline does not bring the settings back.
#[test]
fn what_has_committed_within_a_pipeline_stays() {
    let mut pair = Pair::start();
    pair.upstream.query("CREATE SCHEMA other");
    pair.upstream.query("CREATE TABLE other.t (id int PRIMARY KEY, v text)");
    let one = |sql: &str| [parse("", sql), bind("", "", &[], 0), execute("", 0)].concat();
    let failing = |sql: &str| [one(sql), parse("", "SELECT nosuch FROM t"), sync()].concat();
    let read = "SELECT count(*) FROM t";
    // Either table could be read here: what is relayed is never wrong.
    for path in ["other", "public"] {
        let set = query(&format!("SET search_path = {path}"));
        assert_same(&play_unit(&mut pair.freshet, &set), &play_unit(&mut pair.upstream, &set));
        pair.agree(path, &[burst(5, &[one(read), sync()])]);
        pair.agree(path, &[burst(4, &[query(read)])]);
    }
    for (before, within) in [
        ("SET search_path = other", "DISCARD ALL"),
        ("RESET search_path", "DO $$BEGIN PERFORM set_config('search_path', 'other', false); COMMIT; END$$"),
        ("RESET search_path", "UPDATE pg_settings SET setting = 'other' WHERE name = 'search_path'"),
    ] {
        let script =
            [query(before), query(read), failing(within), query(read), query(read), query("RESET search_path")];
        let alone = [query(within), query(read), query(read), query("RESET search_path"), query(read)];
        for unit in script.iter().chain(&alone) {
            let expected = play_unit(&mut pair.upstream, unit);
            assert_same(&play_unit(&mut pair.freshet, unit), &expected);
        }
    }
}
