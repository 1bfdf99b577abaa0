//! Units beyond one plain statement: the same messages to PostgreSQL and to freshet, the same frames back, and answered
//! here, not relayed. Portals with names and row limits, Flush, several statements, transaction control.

use std::time::Instant;

use freshet_tests::client::{
    Message, RawClient, bind, close, describe, execute, flush, message, parse, query, rows, sync, tags,
};
use freshet_tests::scripted::{Burst, Pair, WAIT, assert_same, burst, play};

const ORDERED: &str = "SELECT id, v FROM t ORDER BY id";

#[test]
fn portals_are_fetched_in_portions() {
    let mut pair = Pair::start();
    let whole = [parse("", ORDERED), bind("", "", &[], 0), describe('P', ""), execute("", 0), sync()];
    pair.agree("a plain unit", &[burst(15, &whole)]);
    // pgjdbc with a fetch size: a named portal in a block, portion by portion, closed with the next unit.
    let script = [
        burst(2, &[query("BEGIN")]),
        burst(8, &[parse("", ORDERED), bind("C_1", "", &[], 0), describe('P', "C_1"), execute("C_1", 3), sync()]),
        burst(5, &[execute("C_1", 3), sync()]),
        burst(5, &[execute("C_1", 3), sync()]),
        burst(3, &[execute("C_1", 3), sync()]),
        burst(2, &[execute("C_1", 3), sync()]),
        burst(2, &[describe('P', "C_1"), sync()]),
        burst(2, &[close('P', "C_1"), sync()]),
        burst(2, &[query("COMMIT")]),
    ];
    pair.agree("a fetch size", &script);
    // node's pg-cursor: Flush after each step, Sync at the end.
    let script = [
        burst(3, &[parse("", ORDERED), bind("p", "", &[], 1), describe('P', "p"), flush()]),
        burst(5, &[execute("p", 4), flush()]),
        burst(5, &[execute("p", 4), flush()]),
        burst(3, &[execute("p", 4), flush()]),
        burst(2, &[close('P', "p"), sync()]),
    ];
    pair.agree("a cursor with Flush", &script);
    // A limit that is met exactly, on the unnamed portal.
    let script = [burst(14, &[parse("", ORDERED), bind("", "", &[], 0), execute("", 10), sync()])];
    pair.agree("a limit met exactly", &script);
    // Within one group: suspended, then the rest.
    let script = [burst(15, &[parse("", ORDERED), bind("", "", &[], 0), execute("", 7), execute("", 0), sync()])];
    pair.agree("two executions of one portal", &script);
}

/// Held until the last has come, they would be answered later than without freshet, and take memory.
#[test]
fn thousands_of_executions_are_held_only_where_they_are_answered_here() {
    const EXECUTIONS: usize = 2_000;
    let mut pair = Pair::start();
    // The catalog in use does not have what is made now.
    pair.agree("the catalog is known", &[burst(13, &[query(ORDERED)])]);
    pair.upstream.query("CREATE UNLOGGED TABLE u (id int); INSERT INTO u SELECT generate_series(1, 3)");
    let prepared = [burst(3, &[parse("u", "SELECT id FROM u"), parse("t", "SELECT v FROM t WHERE id < 4"), sync()])];
    assert_eq!(play(&mut pair.freshet, &prepared), play(&mut pair.upstream, &prepared));
    let execution = |name| [bind("", name, &[], 0), execute("", 0)].concat();
    let replies = EXECUTIONS * "2DDDC".len();
    pair.agree("of what is mirrored", &[burst(replies + 1, &[execution("t").repeat(EXECUTIONS), sync()])]);
    let (one, many) =
        ([burst(6, &[execution("u"), sync()])], [burst(replies / 2, &[execution("u").repeat(EXECUTIONS)])]);
    let rest = [burst(replies / 2 + 1, &[sync()])];
    let mut expected = play(&mut pair.upstream, &many);
    expected.extend(play(&mut pair.upstream, &rest));
    let limit = Instant::now() + WAIT;
    loop {
        // Why it is refused is kept in mind for a second.
        play(&mut pair.freshet, &one);
        let refused = pair.last();
        // Half of the replies come without a Sync.
        let mut got = play(&mut pair.freshet, &many);
        got.extend(play(&mut pair.freshet, &rest));
        assert_eq!(tags(&got), tags(&expected));
        assert_eq!(got, expected);
        // Let go because they took too long to come, they would be accounted for as out of turn.
        let last = pair.last();
        if last == refused && last.1.contains("unlogged") {
            break;
        }
        assert!(Instant::now() < limit, "{last:?} behind {refused:?}");
    }
}

#[test]
fn a_portal_ends_with_its_transaction() {
    let mut pair = Pair::start();
    let open = [parse("", ORDERED), bind("c", "", &[], 0), describe('P', "c"), execute("c", 2), sync()];
    pair.agree("a portal", &[burst(7, &open)]);
    let gone = [burst(7, &open), burst(2, &[execute("c", 2), sync()])];
    let expected = play(&mut pair.upstream, &gone);
    assert_eq!(tags(&expected), "12TDDsZEZ");
    assert_eq!(play(&mut pair.freshet, &gone), expected);
    let rolled_back = [
        burst(2, &[query("BEGIN")]),
        burst(7, &open),
        burst(2, &[query("ROLLBACK")]),
        burst(2, &[execute("c", 2), sync()]),
    ];
    assert_eq!(play(&mut pair.freshet, &rolled_back), play(&mut pair.upstream, &rolled_back));
}

#[test]
fn a_portal_is_fetched_between_statements_that_are_relayed() {
    let mut pair = Pair::start();
    let open = [parse("", ORDERED), bind("c", "", &[], 0), describe('P', "c"), execute("c", 2), sync()];
    pair.agree("a portal", &[burst(7, &open)]);
    let script = [
        burst(2, &[query("BEGIN")]),
        burst(7, &open),
        burst(2, &[query("CREATE TABLE other (a int)")]),
        burst(4, &[execute("c", 2), sync()]),
        // In the middle of a group that goes upstream.
        burst(
            11,
            &[
                parse("", "INSERT INTO other VALUES (1)"),
                bind("", "", &[], 0),
                execute("", 0),
                execute("c", 3),
                describe('P', "c"),
                describe('S', ""),
                sync(),
            ],
        ),
        burst(2, &[query("SELEC")]),
        burst(2, &[execute("c", 1), sync()]),
        burst(2, &[query("ROLLBACK")]),
    ];
    let (expected, got) = (play(&mut pair.upstream, &script), play(&mut pair.freshet, &script));
    assert_eq!(tags(&got), tags(&expected));
    let without_place = |message: &Message| message.tag != 'E';
    assert!(got.iter().filter(|m| without_place(m)).eq(expected.iter().filter(|m| without_place(m))));
}

#[test]
fn statements_name_portals_and_notifications_come_before_the_end_of_a_unit() {
    let mut pair = Pair::start();
    let open = [parse("", ORDERED), bind("kept", "", &[], 0), describe('P', "kept"), execute("kept", 2), sync()];
    pair.agree("a portal", &[burst(7, &open)]);
    // Upstream gets the portal where it stands when a statement may name it.
    let script = [
        burst(2, &[query("BEGIN")]),
        burst(7, &open),
        burst(4, &[query("FETCH 1 FROM kept")]),
        burst(2, &[query("MOVE 2 IN kept")]),
        burst(4, &[execute("kept", 2), sync()]),
        burst(2, &[query("CLOSE kept")]),
        burst(2, &[query("COMMIT")]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_same(&play(&mut pair.freshet, &script), &expected);
    // Who listens gets what was notified before the end of the transaction that it waited for.
    pair.freshet.query("LISTEN here");
    for _ in 0..5 {
        pair.freshet.query("BEGIN");
        assert_eq!(tags(&pair.freshet.query("SELECT count(*) FROM t")), "TDCZ");
        pair.upstream.query("NOTIFY here");
        assert_eq!(tags(&pair.freshet.query("COMMIT")), "CAZ");
    }
    pair.freshet.query("UNLISTEN *");
    pair.agree("no longer listening", &[burst(4, &[query("SELECT count(*) FROM t")])]);
}

/// A loop as pgjdbc's with a fetch size, that writes what it has read: any text that was not known made upstream run the query again,
/// over what was written, and skip as many rows as had been fetched.
#[test]
fn a_fetch_loop_that_writes_sees_what_was_there_at_bind() {
    let mut pair = Pair::start();
    let open = [parse("", ORDERED), bind("C_1", "", &[], 0), describe('P', "C_1"), execute("C_1", 2), sync()];
    pair.agree("a portal", &[burst(7, &open)]);
    // The portal lives here, not upstream.
    let before = pair.relayed();
    play(&mut pair.freshet, &[burst(2, &[query("BEGIN")]), burst(7, &open)]);
    assert_eq!(pair.relayed(), before, "a portal of this side");
    pair.freshet.query("ROLLBACK");
    let script = [
        burst(2, &[query("BEGIN")]),
        burst(7, &open),
        burst(2, &[query("DELETE FROM t WHERE id <= 2")]),
        burst(2, &[query("DO $$ BEGIN END $$")]),
        burst(4, &[execute("C_1", 2), sync()]),
        burst(2, &[query("DELETE FROM t WHERE id <= 4")]),
        burst(2, &[query("CREATE TABLE other (a int)")]),
        burst(4, &[execute("C_1", 2), sync()]),
        // Refused while a portal reads it.
        burst(2, &[query("ALTER TABLE t ADD COLUMN w int")]),
        burst(2, &[execute("C_1", 2), sync()]),
        burst(2, &[query("ROLLBACK")]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_same(&play(&mut pair.freshet, &script), &expected);
    // psqlODBC: the next cursor does not move the one before.
    let declare = |name: &str| format!("declare \"{name}\" cursor for {ORDERED};fetch 2 in \"{name}\"");
    pair.agree(
        "a cursor",
        &[burst(7, &[query(&format!("BEGIN;{}", declare("SQL_CUR1")))]), burst(2, &[query("ROLLBACK")])],
    );
    let script = [
        burst(7, &[query(&format!("BEGIN;{}", declare("SQL_CUR1")))]),
        burst(2, &[query("DELETE FROM t WHERE id <= 2")]),
        burst(6, &[query(&declare("SQL_CUR2"))]),
        burst(5, &[query("fetch 2 in \"SQL_CUR1\"")]),
        burst(5, &[query("fetch 2 in \"SQL_CUR2\"")]),
        burst(2, &[query("ROLLBACK")]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_same(&play(&mut pair.freshet, &script), &expected);
}

/// PostgreSQL prints values as it sends them; rows that waited here kept the form of their Bind or DECLARE. Upstream, which got them
/// instead, may have them in another order, so that some were repeated and others missed.
#[test]
fn rows_are_printed_by_the_settings_of_their_fetch_or_refused() {
    const TEXT: &str = "SELECT d FROM u ORDER BY id";
    const SET: &str = "SET LOCAL DateStyle = 'German'";
    let mut pair = Pair::start();
    pair.upstream.query("CREATE TABLE u (id int PRIMARY KEY, d date)");
    pair.upstream.query("INSERT INTO u VALUES (1, '2024-01-02'), (2, '2024-01-03'), (3, '2024-01-04')");
    let begin = burst(2, &[query("BEGIN")]);
    let bound = burst(4, &[parse("", TEXT), bind("p", "", &[], 0), describe('P', "p"), sync()]);
    let next = burst(3, &[execute("p", 1), sync()]);
    let opened = [begin.clone(), bound.clone(), next.clone()];
    pair.agree("a portal", &[&opened[..], &[burst(2, &[query("COMMIT")])]].concat());
    // With what is reported of the setting.
    let by_query = burst(3, &[query(SET)]);
    let by_messages = burst(5, &[parse("", SET), bind("", "", &[], 0), execute("", 0), sync()]);
    let mut agree = |script: &[Burst], dates: &[&str]| {
        let expected = play(&mut pair.upstream, script);
        let printed: Vec<String> = rows(&expected).into_iter().flatten().flatten().collect();
        assert_eq!(printed, dates);
        assert_same(&play(&mut pair.freshet, script), &expected);
    };
    for set in [by_query.clone(), by_messages] {
        let rollback = burst(3, &[query("ROLLBACK")]);
        agree(&[begin.clone(), bound.clone(), set, next.clone(), rollback], &["02.01.2024"]);
    }
    let savepoint = [burst(2, &[query("SAVEPOINT a")]), by_query.clone(), burst(3, &[query("ROLLBACK TO a")])];
    let rest = [next, burst(2, &[query("ROLLBACK")])];
    agree(&[&opened[..], &savepoint, &rest].concat(), &["2024-01-02", "2024-01-03"]);
    let declare = format!("BEGIN;declare \"SQL_CUR1\" cursor for {TEXT}");
    let script = [
        burst(3, &[query(&declare)]),
        by_query,
        burst(4, &[query("fetch 1 in \"SQL_CUR1\"")]),
        burst(3, &[query("ROLLBACK")]),
    ];
    agree(&script, &["02.01.2024"]);
    // Where rows are handed out.
    let refused = |client: &mut RawClient, messages: &[Vec<u8>]| {
        client.query(SET);
        client.send(&messages.concat());
        let got = client.read_until('Z');
        let error = got.iter().find(|message| message.tag == 'E').expect("an error");
        assert_eq!(freshet::wire::error::field(&error.body, b'C'), Some(&b"0A000"[..]));
        assert!(!got.iter().any(|message| message.tag == 'D'));
        assert_eq!(got.last().map(|message| message.body.clone()), Some(b"E".to_vec()));
        client.query("ROLLBACK");
    };
    pair.agree("a portal", &[&opened[..], &[burst(2, &[query("COMMIT")])]].concat());
    play(&mut pair.freshet, &opened);
    refused(&mut pair.freshet, &[execute("p", 1), sync()]);
    let declare = format!("{declare};fetch 1 in \"SQL_CUR1\"");
    pair.agree("a cursor", &[burst(6, &[query(&declare)]), burst(2, &[query("ROLLBACK")])]);
    play(&mut pair.freshet, &[burst(6, &[query(&declare)])]);
    refused(&mut pair.freshet, &[query("fetch 1 in \"SQL_CUR1\"")]);
}

#[test]
fn portals_follow_savepoints_and_failed_blocks() {
    let mut pair = Pair::start();
    let open = |name: &str| {
        burst(7, &[parse("", ORDERED), bind(name, "", &[], 0), describe('P', name), execute(name, 2), sync()])
    };
    pair.agree("a portal", &[open("c")]);
    let script = [
        burst(2, &[query("BEGIN")]),
        open("c"),
        burst(2, &[query("SAVEPOINT s")]),
        burst(2, &[query("SELECT 1/0")]),
        // In the failed block, by itself and with what follows up to the Sync.
        burst(2, &[execute("c", 1), parse("", "SELECT 1"), sync()]),
        burst(2, &[describe('P', "c"), sync()]),
        burst(2, &[query("ROLLBACK TO s")]),
        burst(4, &[execute("c", 2), sync()]),
        burst(2, &[query("SAVEPOINT deeper")]),
        open("d"),
        burst(2, &[query("ROLLBACK TO deeper")]),
        burst(4, &[execute("c", 2), sync()]),
        burst(2, &[query("RELEASE deeper")]),
        burst(2, &[query("SAVEPOINT kept")]),
        open("e"),
        burst(2, &[query("RELEASE kept")]),
        burst(2, &[query("ROLLBACK TO s")]),
        burst(4, &[execute("c", 2), sync()]),
        burst(2, &[execute("e", 1), sync()]),
        burst(2, &[query("ROLLBACK")]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_same(&play(&mut pair.freshet, &script), &expected);
    // A portal that went with its savepoint, and a savepoint that does not exist.
    let script = [
        burst(2, &[query("BEGIN")]),
        burst(2, &[query("SAVEPOINT s")]),
        open("d"),
        burst(2, &[query("ROLLBACK TO s")]),
        burst(2, &[execute("d", 1), sync()]),
        burst(2, &[query("ROLLBACK")]),
        burst(2, &[query("SAVEPOINT s")]),
        burst(2, &[query("BEGIN")]),
        burst(2, &[query("RELEASE unknown")]),
        burst(2, &[query("END")]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_same(&play(&mut pair.freshet, &script), &expected);
    // Upstream is given a portal behind a savepoint that is older, and loses it alone.
    for gives in ["ALTER TABLE t ADD COLUMN w int", "SELECT 1 / 0 FROM pg_cursors"] {
        let script = [
            burst(2, &[query("BEGIN")]),
            open("c"),
            burst(2, &[query("SAVEPOINT s")]),
            burst(2, &[query(gives)]),
            burst(2, &[query("ROLLBACK TO s")]),
            burst(4, &[execute("c", 2), sync()]),
            burst(2, &[query("ROLLBACK TO s")]),
            burst(4, &[execute("c", 2), sync()]),
            burst(2, &[query("ROLLBACK")]),
        ];
        let expected = play(&mut pair.upstream, &script);
        assert_same(&play(&mut pair.freshet, &script), &expected);
    }
    let shown = burst(4, &[query("SELECT name FROM pg_cursors WHERE name = 'c'")]);
    let script = [
        burst(3, &[query("BEGIN; SAVEPOINT s")]),
        open("c"),
        burst(2, &[query("SAVEPOINT deeper")]),
        shown.clone(),
        burst(2, &[query("RELEASE deeper")]),
        burst(4, &[execute("c", 2), sync()]),
        shown,
        burst(2, &[query("ROLLBACK TO s")]),
        burst(2, &[execute("c", 2), sync()]),
        burst(2, &[query("ROLLBACK")]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_same(&play(&mut pair.freshet, &script), &expected);
    // A statement that was parsed before there was the portal that it names.
    let fetch = [bind("", "next", &[], 0), describe('P', ""), execute("", 0), sync()];
    let script = [
        burst(2, &[parse("next", "FETCH 1 FROM c"), sync()]),
        burst(2, &[query("BEGIN")]),
        open("c"),
        burst(5, &fetch),
        burst(4, &[execute("c", 2), sync()]),
        burst(2, &[query("ROLLBACK")]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_same(&play(&mut pair.freshet, &script), &expected);
    // More savepoints than are remembered: what was bound before the oldest of those stays.
    let many = |count: usize| burst(count + 1, &[query(&"SAVEPOINT s;".repeat(count))]);
    let script = [
        burst(2, &[query("BEGIN")]),
        many(300),
        open("c"),
        many(9_800),
        burst(2, &[query("ROLLBACK TO s")]),
        burst(4, &[execute("c", 2), sync()]),
        burst(2, &[query("ROLLBACK")]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_same(&play(&mut pair.freshet, &script), &expected);
    // As pgjdbc's autosave does it: all of it is answered here.
    let script = [
        burst(2, &[query("BEGIN")]),
        burst(2, &[query("SAVEPOINT PGJDBC_AUTOSAVE")]),
        burst(4, &[query("SELECT count(*) FROM t")]),
        burst(2, &[query("RELEASE SAVEPOINT PGJDBC_AUTOSAVE")]),
        burst(2, &[query("COMMIT")]),
    ];
    pair.agree("savepoints around reads", &script);
}

/// Until its Sync it is one transaction, in parts though it comes.
#[test]
fn a_group_in_parts_is_one_transaction() {
    let mut pair = Pair::start();
    let first = |sql: &str| burst(4, &[parse("", sql), bind("", "", &[], 0), execute("", 0), flush()]);
    let next = burst(4, &[bind("", "", &[], 0), execute("", 0), sync()]);
    let clock = "SELECT now(), count(*) FROM t";
    pair.agree(
        "what is computed here",
        &[burst(5, &[parse("", "SELECT count(*) FROM t"), bind("", "", &[], 0), execute("", 0), sync()])],
    );
    for _ in 0..3 {
        let one = rows(&play(&mut pair.freshet, &[first(clock)]));
        assert_eq!(rows(&play(&mut pair.freshet, std::slice::from_ref(&next))), one);
    }
    let strict = [burst(2, &[query("SET default_transaction_isolation = 'repeatable read'")])];
    play(&mut pair.freshet, &strict);
    for _ in 0..3 {
        let one = rows(&play(&mut pair.freshet, &[first("SELECT count(*) FROM t")]));
        pair.upstream.query("INSERT INTO t SELECT max(id) + 1, 'new' FROM t");
        assert_eq!(rows(&play(&mut pair.freshet, std::slice::from_ref(&next))), one);
        assert_ne!(rows(&pair.freshet.query("SELECT count(*) FROM t")), one);
    }
}

/// pg8000 makes, describes and runs a statement in units of their own, with a Flush behind each message: it stayed at its first run.
#[test]
fn a_statement_in_parts_is_verified_and_answered() {
    let mut pair = Pair::start();
    let of = |sql: &str| {
        let make = |more: &[Vec<u8>]| burst(1 + more.len(), &[&[parse("", sql)][..], more].concat());
        let described = burst(3, &[describe('S', ""), sync()]);
        (make(&[]), make(&[sync()]), described)
    };
    let bound =
        [burst(1, &[bind("", "", &[], 0), flush()]), burst(11, &[execute("", 0), flush()]), burst(1, &[sync()])];
    let run = burst(13, &[bind("", "", &[], 0), flush(), execute("", 0), flush(), sync()]);
    // Whether statement and execution come in pieces, or each together.
    let (_, made, described) = of("SELECT id, v FROM t ORDER BY id, 1");
    pair.agree("PS, DS, BHEHS", &[made, described, run.clone()]);
    let (_, _, described) = of("SELECT id, v FROM t ORDER BY id, 2");
    let made = burst(2, &[parse("", "SELECT id, v FROM t ORDER BY id, 2"), flush(), sync()]);
    pair.agree("PHS, DS, BHEHS", &[made, described, run]);
    let sql = "SELECT id, v FROM t ORDER BY id, 1, 2";
    let script = [
        burst(1, &[parse("", sql), flush()]),
        burst(2, &[describe('S', ""), flush()]),
        bound[0].clone(),
        bound[1].clone(),
        bound[2].clone(),
    ];
    pair.agree("P, D, B and E, each with a Flush", &script);
    let sql = "SELECT id, v FROM t ORDER BY id, 2, 1";
    let messages =
        [parse("", sql), flush(), describe('S', ""), flush(), bind("", "", &[], 0), flush(), execute("", 0), flush()];
    pair.agree("the same at once", &[burst(16, &[&messages[..], &[sync()]].concat())]);
    let script = [
        burst(2, &[parse("s", "SELECT v, id FROM t ORDER BY id"), flush(), sync()]),
        burst(3, &[describe('S', "s"), sync()]),
        burst(13, &[bind("", "s", &[], 1), flush(), execute("", 0), flush(), sync()]),
    ];
    pair.agree_in_block("with a name, in a block", &script);
}

/// asyncpg binds a cursor's portal in a unit of its own, and fetches from it in the next ones; it stayed at its first run.
#[test]
fn a_portal_that_is_fetched_from_in_part_verifies_its_statement() {
    let mut pair = Pair::start();
    let script = [
        burst(4, &[parse("s", ORDERED), describe('S', "s"), sync()]),
        burst(2, &[bind("p", "s", &[], 1), sync()]),
        burst(5, &[execute("p", 3), sync()]),
        burst(5, &[execute("p", 3), sync()]),
        burst(2, &[close('P', "p"), sync()]),
    ];
    pair.agree_in_block("a cursor of asyncpg's", &script);
    let sql = "SELECT v, id FROM t ORDER BY id";
    let script = [
        burst(8, &[parse("", sql), bind("p", "", &[], 0), describe('P', "p"), execute("p", 3), sync()]),
        burst(2, &[close('P', "p"), sync()]),
    ];
    pair.agree_in_block("the first rows of a portal", &script);
    // What runs between Bind and Execute is another's reply.
    let sql = "SELECT id FROM t ORDER BY id";
    let script = [
        burst(2, &[query("BEGIN")]),
        burst(3, &[parse("", sql), bind("p", "", &[], 0), sync()]),
        burst(4, &[query("SHOW server_version")]),
        burst(5, &[execute("p", 3), sync()]),
        burst(2, &[query("COMMIT")]),
    ];
    for _ in 0..3 {
        assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script));
    }
    let wrong = pair.freshet.query("SELECT value FROM freshet.status WHERE name = 'wrong_answers'");
    assert_eq!(rows(&wrong), [[Some("0".to_owned())]]);
}

/// PostgreSQL compares 63 bytes of a name: who has one may have it by a longer one.
#[test]
fn names_that_are_cut_off_are_upstreams_affair() {
    let mut pair = Pair::start();
    let (name, longer) = ("n".repeat(63), "n".repeat(64));
    let made = |name: &str| burst(2, &[parse(name, "SELECT count(*) FROM t"), sync()]);
    let run = |name: &str, replies| burst(replies, &[bind("", name, &[], 0), execute("", 0), sync()]);
    let closed = |name: &str| burst(2, &[close('S', name), sync()]);
    let script = [made(&longer), made(&name), run(&name, 4), run(&longer, 4), closed(&longer)];
    let again = [run(&name, 2), made(&name), run(&longer, 4), closed(&longer), run(&name, 2)];
    for _ in 0..3 {
        assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script));
        assert_eq!(play(&mut pair.freshet, &again), play(&mut pair.upstream, &again));
    }
}

/// Some drivers send a whole batch of executions with one Sync.
#[test]
fn a_group_longer_than_a_statement_may_be_is_answered() {
    const EXECUTIONS: usize = 3_000;
    let mut pair = Pair::start();
    let name = "n".repeat(60);
    let prepare = [parse(&name, "SELECT id, v FROM t WHERE id = $1"), sync()].concat();
    for client in [&mut pair.upstream, &mut pair.freshet] {
        client.send(&prepare);
        assert_eq!(tags(&client.read_until('Z')), "1Z");
    }
    let execution = |at: usize| [bind("", &name, &[Some(&(at % 12).to_string())], 0), execute("", 0)].concat();
    let messages: Vec<_> = (0..EXECUTIONS).map(execution).chain([sync()]).collect();
    let rows = (0..EXECUTIONS).filter(|at| (1..=10).contains(&(at % 12))).count();
    let whole = burst(2 * EXECUTIONS + rows + 1, &messages);
    assert!(whole.bytes.len() > 256 * 1024, "{}", whole.bytes.len());
    pair.agree("a long group", &[whole]);
}

#[test]
fn the_end_of_a_copy_that_never_began_is_in_nobodys_way() {
    let mut pair = Pair::start();
    let stray = [
        burst(2, &[query("COPY nosuch FROM STDIN"), message(b'd', b"1\n"), message(b'c', b"")]),
        burst(4, &[query("SELECT 1"), message(b'c', b"")]),
    ];
    assert_eq!(play(&mut pair.freshet, &stray), play(&mut pair.upstream, &stray));
    assert_eq!(tags(&pair.freshet.query("SHOW freshet.route")), "TDCZ");
    pair.agree("and what comes then is answered here", &[burst(4, &[query("SELECT count(*) FROM t")])]);
}

#[test]
fn several_statements_in_one_query() {
    let mut pair = Pair::start();
    pair.agree("two", &[burst(7, &[query("SELECT count(*) FROM t; SELECT max(id) FROM t;")])]);
    pair.agree("a block", &[burst(6, &[query("BEGIN; SELECT count(*) FROM t; COMMIT")])]);
    pair.agree(
        "begun in one, ended in another",
        &[burst(5, &[query("BEGIN;SELECT count(*) FROM t")]), burst(5, &[query("SELECT count(*) FROM t; ROLLBACK")])],
    );
    // One that fails ends the string, wherever it stands.
    let script = [burst(5, &[query("SELECT count(*) FROM t; SELECT 1/0; SELECT 1")])];
    assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script));
}

#[test]
fn blocks_of_reads() {
    let mut pair = Pair::start();
    let read = || burst(4, &[query("SELECT count(*) FROM t")]);
    for (begin, end) in [("BEGIN", "COMMIT"), ("START TRANSACTION READ ONLY", "ROLLBACK"), ("begin work;", "end")] {
        pair.agree(begin, &[burst(2, &[query(begin)]), read(), read(), burst(2, &[query(end)])]);
    }
    // pgjdbc: BEGIN in front of the first statement's messages, in one go.
    let script = [
        burst(
            9,
            &[
                parse("", "BEGIN"),
                bind("", "", &[], 0),
                execute("", 0),
                parse("", "SELECT count(*) FROM t"),
                bind("", "", &[], 0),
                describe('P', ""),
                execute("", 0),
                sync(),
            ],
        ),
        burst(4, &[parse("", "COMMIT"), bind("", "", &[], 0), execute("", 0), sync()]),
    ];
    pair.agree("by the extended protocol", &script);
    // What upstream has under the empty name stays, though the block's control goes there behind the answers.
    let script = [
        burst(3, &[parse("b", "BEGIN"), parse("c", "COMMIT"), sync()]),
        burst(2, &[parse("", "SELECT count(*) FROM pg_class WHERE relname = 't'"), sync()]),
        burst(3, &[bind("", "b", &[], 0), execute("", 0), sync()]),
        burst(3, &[bind("", "c", &[], 0), execute("", 0), sync()]),
        burst(4, &[bind("", "", &[], 0), execute("", 0), sync()]),
        burst(3, &[close('S', "b"), close('S', "c"), sync()]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_eq!(play(&mut pair.freshet, &script), expected);
    // The clock is the block's, and its end is told by upstream when upstream had something to do in it.
    let script = [
        burst(2, &[query("BEGIN")]),
        burst(4, &[query("SELECT now() = statement_timestamp()")]),
        read(),
        burst(4, &[query("SELECT now() = transaction_timestamp()")]),
        burst(2, &[query("SELECT 1/0")]),
        burst(2, &[query("COMMIT")]),
        burst(3, &[query("COMMIT")]),
    ];
    let (expected, got) = (play(&mut pair.upstream, &script), play(&mut pair.freshet, &script));
    assert_eq!(tags(&expected), tags(&got));
    // A block under another default isolation level.
    for client in [&mut pair.upstream, &mut pair.freshet] {
        client.query("SET default_transaction_isolation = 'repeatable read'");
    }
    let script =
        [burst(2, &[query("BEGIN")]), burst(4, &[query("SHOW transaction_isolation")]), burst(2, &[query("END")])];
    assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script));
}

/// A read that upstream knows nothing of is the block's first query all the same.
#[test]
fn the_modes_of_a_block_are_set_before_its_first_query() {
    let mut pair = Pair::start();
    let read = || burst(4, &[query("SELECT count(*) FROM t")]);
    pair.agree("a read", &[read()]);
    let by_statement = |text| [parse("", text), bind("", "", &[], 0), execute("", 0), sync()].concat();
    const LEVEL: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    let refused = [
        ("BEGIN", query(LEVEL)),
        ("BEGIN", by_statement(LEVEL)),
        ("BEGIN", query("/* a comment */ set local transaction_isolation = 'serializable'")),
        ("BEGIN", query("BEGIN ISOLATION LEVEL SERIALIZABLE")),
        ("BEGIN", [parse("s1", LEVEL), bind("", "s1", &[], 0), execute("", 0), close('S', "s1"), sync()].concat()),
        ("BEGIN", [parse("", "SHOW work_mem"), bind("", "", &[], 0), execute("", 0), by_statement(LEVEL)].concat()),
        ("BEGIN", query("SHOW transaction_isolation; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")),
        ("BEGIN READ ONLY", query("SET TRANSACTION READ WRITE")),
    ];
    for (begin, set) in &refused {
        let mut replies = Vec::new();
        for client in [&mut pair.upstream, &mut pair.freshet] {
            client.query(begin);
            play(client, &[read()]);
            client.send(set);
            replies.push(client.read_until('Z'));
            client.query("ROLLBACK");
        }
        let what = String::from_utf8_lossy(set);
        assert_eq!(replies[1], replies[0], "{what}");
        assert_eq!(tags(&replies[0]).chars().rev().nth(1), Some('E'), "{what}");
    }
    // What was read before the block began in the same string, or up to one Sync; and where a question may be cut off.
    let part = |text| [parse("", text), bind("", "", &[], 0), execute("", 0)].concat();
    let begun = [
        vec![query("SELECT count(*) FROM t; BEGIN")],
        vec![[part("SELECT count(*) FROM t"), part("BEGIN"), sync()].concat()],
        vec![query("SET statement_timeout = 400"), query("BEGIN"), query("SELECT count(*) FROM t")],
    ];
    for begin in &begun {
        let refused = [&mut pair.upstream, &mut pair.freshet].map(|client| {
            for message in begin {
                client.send(message);
                client.read_until('Z');
            }
            let refused = client.query(LEVEL);
            client.query("ROLLBACK; RESET statement_timeout");
            refused
        });
        assert_eq!(refused[1], refused[0]);
        assert_eq!(tags(&refused[0]), "EZ");
    }
    // Neither a name with the word in it, nor what takes no snapshot.
    let accepted = [
        vec![query("BEGIN"), query("SHOW transaction_isolation"), query(LEVEL)],
        vec![query("SELECT count(*) FROM t"), query("BEGIN; SET LOCAL work_mem = '4MB'"), query(LEVEL)],
        vec![query("SELECT count(*) FROM t"), query("BEGIN; LOCK TABLE t IN ACCESS SHARE MODE"), query(LEVEL)],
        vec![
            query("BEGIN"),
            query("SELECT count(*) FROM t"),
            query("COMMIT; BEGIN; SET LOCAL work_mem = '4MB'"),
            query(LEVEL),
        ],
        vec![query("BEGIN"), query("SELECT count(*) FROM t"), query("COMMIT AND CHAIN"), query(LEVEL)],
        vec![query("BEGIN"), query("SELECT count(*) FROM t"), query("COMMIT; BEGIN"), query(LEVEL)],
        vec![query("BEGIN"), query("SELECT count(*) AS transactions FROM t"), query("SET work_mem = '4MB'")],
    ];
    for script in &accepted {
        let mut replies = [Vec::new(), Vec::new()];
        for (client, replies) in [&mut pair.upstream, &mut pair.freshet].into_iter().zip(&mut replies) {
            for message in script {
                client.send(message);
                replies.extend(client.read_until('Z'));
            }
            client.query("ROLLBACK");
        }
        assert_eq!(replies[1], replies[0]);
        assert!(!tags(&replies[0]).contains('E'), "{}", tags(&replies[0]));
    }
    // The reads of those blocks were answered here.
    let before = pair.relayed();
    play(&mut pair.freshet, &[burst(2, &[query("BEGIN")]), read()]);
    assert_eq!(pair.relayed(), before);
    assert_eq!(tags(&play(&mut pair.freshet, &[burst(2, &[query(LEVEL)])])), "EZ");
    play(&mut pair.freshet, &[burst(2, &[query("ROLLBACK")])]);
}

/// ReadyForQuery does not tell of the end of a block that the next one begins with; and one may have ended here before another failed.
#[test]
fn a_cursor_of_psqlodbc_lives_as_long_as_its_block() {
    let mut pair = Pair::start();
    let fetch = "fetch 4 in \"SQL_CUR0x5\"";
    let declare = format!("declare \"SQL_CUR0x5\" cursor with hold for {ORDERED}");
    let opened = || burst(9, &[query(&format!("BEGIN;{declare};{fetch}"))]);
    pair.agree("a cursor", &[opened(), burst(3, &[query("close \"SQL_CUR0x5\";commit")])]);
    pair.agree("a read", &[burst(4, &[query("SELECT count(*) FROM t")])]);
    let script = [
        opened(),
        burst(2, &[query("commit and chain")]),
        burst(2, &[query("rollback")]),
        burst(7, &[query(fetch)]),
        burst(2, &[query("close \"SQL_CUR0x5\"")]),
        opened(),
        burst(2, &[query("rollback and chain")]),
        burst(2, &[query("commit")]),
        burst(2, &[query(fetch)]),
        burst(2, &[query("BEGIN")]),
        burst(4, &[query("SELECT count(*) FROM t")]),
        burst(2, &[query("COMMIT")]),
        opened(),
        burst(2, &[query("CREATE TABLE other (a int)")]),
        burst(2, &[query("rollback")]),
        burst(2, &[query(fetch)]),
    ];
    let (expected, got) = (play(&mut pair.upstream, &script), play(&mut pair.freshet, &script));
    assert_eq!(got, expected);
}

#[test]
fn the_cursors_of_psqlodbc() {
    let mut pair = Pair::start();
    let declare = |hold: &str| format!("declare \"SQL_CUR0x5\" cursor {hold} for {ORDERED}");
    let fetch = "fetch 4 in \"SQL_CUR0x5\"";
    // Autocommit: the driver opens the block itself and ends it with the cursor.
    let script = [
        burst(9, &[query(&format!("BEGIN;{};{fetch}", declare("with hold")))]),
        burst(7, &[query(fetch)]),
        burst(5, &[query(fetch)]),
        burst(3, &[query(fetch)]),
        burst(3, &[query("close \"SQL_CUR0x5\";commit")]),
    ];
    pair.agree("autocommit", &script);
    // A block of the user's: one cursor after the other; the last outlives the block.
    let script = [
        burst(9, &[query(&format!("BEGIN;{};{fetch}", declare("with hold")))]),
        burst(2, &[query("close \"SQL_CUR0x5\"")]),
        burst(8, &[query(&format!("{};{fetch}", declare("with hold")))]),
        burst(2, &[query("COMMIT")]),
        burst(7, &[query(fetch)]),
        burst(2, &[query("close \"SQL_CUR0x5\"")]),
        burst(4, &[query("SELECT count(*) FROM t")]),
    ];
    pair.agree("with hold", &script);
    // What only upstream can do with a cursor, it does: from where the cursor stands.
    let script = [
        burst(9, &[query(&format!("BEGIN;{};{fetch}", declare("")))]),
        burst(2, &[query("CREATE TABLE other (a int)")]),
        burst(2, &[query("move 1 in \"SQL_CUR0x5\"")]),
        burst(7, &[query(fetch)]),
        burst(3, &[query("close \"SQL_CUR0x5\";rollback")]),
        burst(2, &[query(fetch)]),
    ];
    let (expected, got) = (play(&mut pair.upstream, &script), play(&mut pair.freshet, &script));
    assert_eq!(got, expected);
    // Likewise by the extended protocol, prepared before the cursor was, in the middle of a group, and outside of a block.
    let extended = |sql: &str| [parse("", sql), bind("", "", &[], 0), execute("", 0)].concat();
    let opened = || burst(9, &[query(&format!("BEGIN;{};{fetch}", declare("with hold")))]);
    let script = [
        burst(2, &[parse("next", "fetch 1 in \"SQL_CUR0x5\""), sync()]),
        opened(),
        burst(4, &[bind("", "next", &[], 0), execute("", 0), sync()]),
        burst(4, &[extended("move 1 in \"SQL_CUR0x5\""), sync()]),
        burst(2, &[query("commit")]),
        burst(8, &[extended(fetch), sync()]),
        burst(2, &[query("close \"SQL_CUR0x5\"")]),
        opened(),
        burst(12, &[extended("SELECT count(*) FROM pg_class WHERE relname = 't'"), extended(fetch), sync()]),
        burst(2, &[query("commit")]),
        burst(4, &[extended("close all"), sync()]),
        burst(2, &[query(fetch)]),
        opened(),
        burst(2, &[query("commit")]),
        burst(4, &[extended("move 1 in \"SQL_CUR0x5\""), sync()]),
        burst(7, &[query(fetch)]),
        burst(4, &[extended("close all"), sync()]),
        opened(),
        burst(2, &[query("commit")]),
        burst(4, &[extended("close all"), sync()]),
        burst(2, &[query(fetch)]),
        opened(),
        burst(2, &[query("commit")]),
        burst(4, &[extended("discard all"), sync()]),
        burst(2, &[query(fetch)]),
    ];
    let (expected, got) = (play(&mut pair.upstream, &script), play(&mut pair.freshet, &script));
    assert_eq!(got, expected);
    // A group that fails before it comes to the cursor leaves it where it was.
    let script = [
        opened(),
        burst(2, &[query("commit")]),
        burst(3, &[extended("SELECT 1/0"), extended("fetch 1 in \"SQL_CUR0x5\""), sync()]),
        burst(7, &[query(fetch)]),
        burst(2, &[query("close \"SQL_CUR0x5\"")]),
    ];
    let (expected, got) = (play(&mut pair.upstream, &script), play(&mut pair.freshet, &script));
    assert_same(&got, &expected);
    // Between the two, a statement that goes upstream.
    let script = [
        burst(9, &[query(&format!("BEGIN;{};{fetch}", declare("with hold")))]),
        burst(4, &[query("SELECT count(*) FROM pg_class WHERE relname = 't'")]),
        burst(7, &[query(fetch)]),
        burst(3, &[query("close \"SQL_CUR0x5\";commit")]),
    ];
    let (expected, got) = (play(&mut pair.upstream, &script), play(&mut pair.freshet, &script));
    assert_eq!(got, expected);
    // With the driver's savepoints.
    let script = [
        burst(9, &[query(&format!("BEGIN;{};{fetch}", declare("with hold")))]),
        burst(8, &[query(&format!("SAVEPOINT _EXEC_SVP_0x1;{fetch}"))]),
        burst(2, &[query("SELECT 1/0")]),
        burst(2, &[query("ROLLBACK TO _EXEC_SVP_0x1")]),
        burst(5, &[query(fetch)]),
        burst(4, &[query("RELEASE _EXEC_SVP_0x1;SAVEPOINT _EXEC_SVP_0x1;close \"SQL_CUR0x5\"")]),
        burst(2, &[query("COMMIT")]),
    ];
    let expected = play(&mut pair.upstream, &script);
    assert_same(&play(&mut pair.freshet, &script), &expected);
    // Gone with its block.
    let script = [
        burst(9, &[query(&format!("BEGIN;{};{fetch}", declare("with hold")))]),
        burst(2, &[query("ROLLBACK")]),
        burst(2, &[query(fetch)]),
    ];
    let (expected, got) = (play(&mut pair.upstream, &script), play(&mut pair.freshet, &script));
    assert_eq!(got, expected);
}

#[test]
fn settings_are_shown() {
    let mut pair = Pair::start();
    for name in ["transaction isolation level", "standard_conforming_strings", "TIME ZONE", "datestyle", "search_path"]
    {
        let sql = format!("SHOW {name};");
        pair.agree(&sql, &[burst(4, &[query(&sql)])]);
        let unit = [parse("", &sql), bind("", "", &[], 1), describe('P', ""), execute("", 0), sync()];
        pair.agree(&sql, &[burst(6, &unit)]);
        pair.agree(&sql, &[burst(4, &[parse("", &sql), describe('S', ""), sync()]), burst(4, &[query(&sql)])]);
    }
    // In groups and by named portals, too, each with its own tag.
    let show = |name: &str| [parse("", &format!("SHOW {name}")), bind("", "", &[], 0), execute("", 0)].concat();
    pair.agree("two at once", &[burst(9, &[show("TimeZone"), show("DateStyle"), sync()])]);
    let unit = [parse("", "SHOW TimeZone"), bind("p", "", &[], 0), execute("p", 1), execute("p", 1), sync()];
    pair.agree("by a portal with a limit", &[burst(6, &unit)]);
    // A type that was declared wants a value.
    for sql in ["SHOW TimeZone", "SELECT version()", "SELECT current_schema()"] {
        let declared = message(b'P', format!("\0{sql}\0\0\x01\0\0\0\x17").as_bytes());
        let unit = [burst(3, &[declared, bind("", "", &[], 0), execute("", 0), sync()])];
        assert_eq!(play(&mut pair.freshet, &unit), play(&mut pair.upstream, &unit), "{sql}");
    }
    // SQLAlchemy, and with it Superset, asks on each new connection.
    pair.agree("version", &[burst(4, &[query("select pg_catalog.version()")])]);
    let unit = [parse("", "SELECT version()"), describe('S', ""), bind("", "", &[], 0), execute("", 0), sync()];
    pair.agree("version, extended", &[burst(7, &unit)]);
    for client in [&mut pair.upstream, &mut pair.freshet] {
        client.query("SET search_path = pg_catalog, \"$user\"; SET TIME ZONE 'europe/berlin'");
    }
    pair.agree("changed", &[burst(4, &[query("SHOW search_path")]), burst(4, &[query("SHOW timezone")])]);
    let script = [
        burst(2, &[query("BEGIN ISOLATION LEVEL SERIALIZABLE")]),
        burst(4, &[query("SHOW transaction_isolation")]),
        burst(2, &[query("COMMIT")]),
    ];
    assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script));
}

#[test]
fn the_current_schema_is_the_one_of_the_next_read() {
    let mut pair = Pair::start();
    let sql = "select current_schema()";
    let extended = [parse("", sql), bind("", "", &[], 1), describe('P', ""), execute("", 0), sync()];
    for _ in 0..2 {
        pair.agree("simple", &[burst(4, &[query(sql)])]);
        pair.agree("without parentheses", &[burst(4, &[query("SELECT pg_catalog.current_schema();")])]);
        pair.agree("extended", &[burst(6, &extended)]);
        // It is the user's name, and comes first in the path as soon as it exists.
        pair.upstream.query("CREATE SCHEMA postgres");
        assert_eq!(rows(&pair.freshet.query(sql))[0][0].as_deref(), Some("postgres"), "made past freshet");
        pair.agree("of the user's name", &[burst(4, &[query(sql)])]);
        pair.upstream.query("DROP SCHEMA postgres");
        assert_eq!(rows(&pair.freshet.query(sql))[0][0].as_deref(), Some("public"), "dropped past freshet");
    }
    // What is not certain is upstream's.
    for path in ["pg_catalog", "pg_catalog, public", "nowhere", ""] {
        let set = format!("SET search_path = {}", if path.is_empty() { "''" } else { path });
        for client in [&mut pair.upstream, &mut pair.freshet] {
            client.query(&set);
        }
        assert_eq!(pair.freshet.query(sql), pair.upstream.query(sql), "{path}");
    }
}

/// Each is judged by the savepoints that there are when it is run.
#[test]
fn a_savepoint_is_released_once() {
    let mut pair = Pair::start();
    for unit in ["RELEASE a; RELEASE a", "SAVEPOINT b; RELEASE a; RELEASE b", "COMMIT; BEGIN; RELEASE a"] {
        let mut told = Vec::new();
        for client in [&mut pair.upstream, &mut pair.freshet] {
            client.query("BEGIN");
            client.query("SAVEPOINT a");
            told.push(tags(&client.query(unit)));
            client.query("ROLLBACK");
        }
        assert_eq!(told[1], told[0], "{unit}");
    }
}

#[test]
fn freshets_own_statements_in_groups() {
    let mut pair = Pair::start();
    pair.freshet.query("SELECT count(*) FROM t");
    let script = [
        burst(3, &[parse("own", "SHOW freshet.route"), describe('S', "own"), flush()]),
        burst(4, &[bind("", "own", &[], 0), execute("", 0), sync()]),
    ];
    let got = play(&mut pair.freshet, &script);
    assert_eq!(tags(&got), "1tT2DCZ");
    assert_eq!(got[5].body, b"SHOW\0");
    let script = [burst(3, &[parse("", "SET freshet.route = 'relay'"), describe('S', ""), flush()])];
    assert_eq!(tags(&play(&mut pair.freshet, &script)), "1tn");
    let script = [burst(3, &[bind("own", "", &[], 0), execute("own", 0), sync()])];
    let got = play(&mut pair.freshet, &script);
    assert_eq!(tags(&got), "2CZ");
    assert_eq!(got[1].body, b"SET\0");
    assert_eq!(rows(&pair.freshet.query("SHOW freshet.route")), [[Some("relay".to_string())]]);
    // A named one that sets something is upstream's, too: among others it is run there.
    let route = |pair: &mut Pair| rows(&pair.freshet.query("SHOW freshet.route"))[0][0].clone().expect("a route");
    let set = |name: &str, value: &str| burst(2, &[parse(name, &format!("SET freshet.route = '{value}'")), sync()]);
    let among = |name: &str| {
        let others = [parse("", "SELECT 1"), bind("", "", &[], 0), execute("", 0)].concat();
        burst(7, &[bind("", name, &[], 0), execute("", 0), others, sync()])
    };
    let alone = |name: &str| burst(3, &[bind("", name, &[], 0), execute("", 0), sync()]);
    assert_eq!(tags(&play(&mut pair.freshet, &[set("local", "local"), set("auto", "auto")])), "1Z1Z");
    assert_eq!(tags(&play(&mut pair.freshet, &[among("local")])), "2C12DCZ");
    assert_eq!(route(&mut pair), "local");
    assert_eq!(tags(&play(&mut pair.freshet, &[alone("auto")])), "2CZ");
    assert_eq!(route(&mut pair), "auto");
    assert_eq!(tags(&play(&mut pair.freshet, &[burst(2, &[query("DEALLOCATE local")])])), "CZ");
    let gone = burst(2, &[bind("", "local", &[], 0), execute("", 0), sync()]);
    assert_eq!(tags(&play(&mut pair.freshet, &[gone])), "EZ");
    // Another statement may have its name once all are gone.
    let again = [
        burst(2, &[query("DEALLOCATE ALL")]),
        burst(2, &[parse("auto", "SELECT 7"), sync()]),
        burst(4, &[bind("", "auto", &[], 0), execute("", 0), sync()]),
    ];
    assert_eq!(tags(&play(&mut pair.freshet, &again)), "CZ1Z2DCZ");
}

/// Such a statement was answered, and its portal was not there for who named it afterwards.
#[test]
fn a_portal_with_a_name_stays_when_it_has_controlled_the_block() {
    let mut pair = Pair::start();
    pair.agree("the catalog is known", &[burst(13, &[query(ORDERED)])]);
    let starts = [
        (2, "BEGIN", "SAVEPOINT b"),
        (3, "BEGIN; SAVEPOINT a", "RELEASE a"),
        (3, "PREPARE gone AS SELECT 1; BEGIN", "DEALLOCATE gone"),
    ];
    let ends = [
        burst(2, &[execute("pb", 0), sync()]),
        burst(4, &[query("SELECT name FROM pg_cursors")]),
        burst(2, &[query("CLOSE pb")]),
        burst(2, &[query("FETCH 1 FROM pb")]),
    ];
    for (count, start, control) in starts {
        for end in &ends {
            let run = [parse("", control), bind("pb", "", &[], 0), execute("pb", 0), sync()];
            let script = [burst(count, &[query(start)]), burst(4, &run), end.clone()];
            assert_eq!(play(&mut pair.freshet, &script), play(&mut pair.upstream, &script), "{control}");
            assert_same(&pair.freshet.query("ROLLBACK"), &pair.upstream.query("ROLLBACK"));
        }
        for side in [&mut pair.freshet, &mut pair.upstream] {
            side.query("DEALLOCATE ALL");
        }
    }
}
