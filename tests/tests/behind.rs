//! What the client sends behind statements that are not answered yet, and what upstream gets behind statements that were answered here: how
//! a transaction goes on, and ends, is upstream's affair from the first message on that upstream has.

use freshet_tests::client::{Message, bind, close, describe, execute, flush, parse, query, sync, tags};
use freshet_tests::scripted::{Pair, assert_same, burst, play, play_unit};

const READ: &str = "SELECT v FROM t WHERE id = 1";

/// The block begins while the reply to what came before it is outstanding: its end is upstream's, which may fail.
#[test]
fn a_block_that_was_sent_behind_something_else_ends_upstream() {
    let mut pair = Pair::start();
    pair.upstream.query("CREATE TABLE once (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    let leading = [query("SELECT count(*) FROM pg_class"), query(READ), query(""), sync()];
    let failing = "DECLARE c CURSOR WITH HOLD FOR SELECT 1 / (g - 3) FROM generate_series(1, 5) g";
    let blocks = [
        (vec![query("BEGIN"), query(failing)], "COMMIT"),
        (vec![query(&format!("BEGIN; {failing}"))], "COMMIT"),
        (vec![parse("", "BEGIN"), bind("", "", &[], 0), execute("", 0), sync(), query(failing)], "END"),
        (vec![query("BEGIN"), query("SET timezone = 'Asia/Tokyo'")], "ROLLBACK"),
    ];
    for first in &leading {
        for (block, end) in &blocks {
            let sent: Vec<u8> = [vec![first.clone()], block.clone()].concat().concat();
            // A unit for each Query, and for each Sync.
            let units = 1 + block.iter().filter(|message| matches!(message[0], b'Q' | b'S')).count();
            let mut both = Vec::new();
            for client in [&mut pair.upstream, &mut pair.freshet] {
                client.send(&sent);
                let mut replies: Vec<Message> = (0..units).flat_map(|_| client.read_until('Z')).collect();
                replies.retain(|message| message.tag != 'D');
                client.send(&query(end));
                replies.extend(client.read_until('Z'));
                both.push(replies);
            }
            assert_same(&both[1], &both[0]);
            assert_eq!(both[1].iter().any(|message| message.tag == 'E'), *end != "ROLLBACK", "{}", tags(&both[1]));
        }
    }
}

/// One group, in parts: what was answered here is the beginning of the transaction that upstream then goes on with.
#[test]
fn what_follows_what_was_run_here_is_not_the_first_of_its_transaction() {
    let mut pair = Pair::start();
    pair.upstream.query("CREATE TABLE vac (id int)");
    let run = |sql: &str| [parse("", sql), bind("", "", &[], 0), describe('P', ""), execute("", 0)].concat();
    let follows = [
        "VACUUM vac",
        "LOCK TABLE vac",
        "SET LOCAL work_mem = '5MB'",
        "SET CONSTRAINTS ALL DEFERRED",
        "SET LOCAL ROLE postgres",
        "DECLARE c CURSOR FOR SELECT 1",
        "SET TRANSACTION READ ONLY",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SAVEPOINT s",
    ];
    for (first, replies) in [("SHOW timezone", 5), (READ, 5)] {
        pair.agree(first, &[burst(replies + 1, &[run(first), flush(), sync()])]);
        for then in follows {
            let sent = [run(first), flush(), run(then), sync()].concat();
            let expected = play_unit(&mut pair.upstream, &sent);
            let got = play_unit(&mut pair.freshet, &sent);
            assert_eq!(tags(&got), tags(&expected), "{first}, {then}");
            assert_same(&got, &expected);
            for client in [&mut pair.upstream, &mut pair.freshet] {
                client.query("ROLLBACK; RESET ROLE");
            }
        }
    }
}

/// What was only read or bound here has run nothing: what PostgreSQL allows as the first of its transaction alone is still that.
#[test]
fn what_follows_what_was_only_prepared_here_is_the_first_of_its_transaction() {
    let mut pair = Pair::start();
    pair.upstream.query("CREATE TABLE vac (id int)");
    // With how many messages come back: of a description there are two.
    let prepares = [
        ([parse("made", READ), describe('S', "made")].concat(), 3),
        ([parse("made", READ), bind("portal", "made", &[], 0)].concat(), 2),
    ];
    let whole = [parse("", READ), bind("", "", &[], 0), describe('P', ""), execute("", 0), sync()];
    pair.agree("the text", &[burst(6, &whole)]);
    for (prepare, replies) in &prepares {
        let alone = [burst(*replies, &[prepare.clone(), flush()]), burst(1, &[sync()])];
        for (route, is_relayed) in [("auto", false), ("relay", true)] {
            pair.freshet.query(&format!("SET freshet.route = {route}"));
            let before = pair.relayed();
            play(&mut pair.freshet, &alone);
            assert_eq!(pair.relayed() != before, is_relayed, "{route}");
            pair.freshet.query("DEALLOCATE made");
        }
        pair.freshet.query("RESET freshet.route");
    }
    let run = |sql: &str| [parse("", sql), bind("", "", &[], 0), execute("", 0), sync()].concat();
    let follows = [
        query("VACUUM vac"),
        run("VACUUM vac"),
        query("DISCARD ALL"),
        run("LOCK TABLE vac"),
        run("SET LOCAL work_mem = '5MB'"),
    ];
    for (prepare, count) in &prepares {
        for then in &follows {
            let mut both = Vec::new();
            for client in [&mut pair.upstream, &mut pair.freshet] {
                client.send(&[prepare.clone(), flush()].concat());
                let mut replies: Vec<Message> = (0..*count).filter_map(|_| client.read_message()).collect();
                replies.extend(play_unit(client, then));
                client.query("ROLLBACK; RESET ALL; DEALLOCATE ALL");
                both.push(replies);
            }
            assert_eq!(tags(&both[1]), tags(&both[0]));
            assert_same(&both[1], &both[0]);
        }
    }
}

/// Nor is anything the first of a transaction that has ended within the group.
#[test]
fn what_follows_the_end_of_a_block_within_a_group_is_of_another_transaction() {
    let mut pair = Pair::start();
    pair.upstream.query("CREATE TABLE vac (id int)");
    let run = |sql: &str| [parse("", sql), bind("", "", &[], 0), execute("", 0)].concat();
    for end in ["COMMIT", "ROLLBACK"] {
        let alone = [burst(2, &[query("BEGIN")]), burst(4, &[run(end), flush(), sync()])];
        let expected = play(&mut pair.upstream, &alone);
        // By then the session's settings are known.
        assert_eq!(play(&mut pair.freshet, &alone), expected);
        let before = pair.relayed();
        assert_eq!(play(&mut pair.freshet, &alone), expected);
        assert_eq!(pair.relayed(), before, "{end}");
        for then in ["VACUUM vac", "LOCK TABLE vac", "ROLLBACK", "SET TRANSACTION READ ONLY"] {
            let mut both = Vec::new();
            for client in [&mut pair.upstream, &mut pair.freshet] {
                client.query("BEGIN");
                client.send(&[run(end), flush()].concat());
                let mut replies: Vec<Message> = (0..3).filter_map(|_| client.read_message()).collect();
                replies.extend(play_unit(client, &[run(then), sync()].concat()));
                both.push(replies);
            }
            assert_eq!(tags(&both[1]), tags(&both[0]), "{end}, {then}");
            assert_same(&both[1], &both[0]);
        }
    }
}

/// A name may mean two statements within one group: what the client was told of the first is not held against the second.
#[test]
fn a_name_that_is_given_twice_in_a_group_is_the_second_statements() {
    let mut pair = Pair::start();
    let (first, second) = ("SELECT id FROM t WHERE id = 1", "SELECT id, v FROM t WHERE id = 1");
    let group = [
        parse("s", first),
        bind("", "s", &[], 0),
        describe('P', ""),
        execute("", 0),
        close('S', "s"),
        parse("s", second),
        sync(),
    ];
    for sql in [first, second] {
        let unit = [parse("", sql), bind("", "", &[], 0), describe('P', ""), execute("", 0), sync()];
        pair.agree(sql, &[burst(6, &unit)]);
    }
    let again = [bind("", "s", &[], 0), execute("", 0), sync()].concat();
    let mut both = Vec::new();
    for client in [&mut pair.upstream, &mut pair.freshet] {
        let mut replies = play_unit(client, &group.concat());
        if !both.is_empty() {
            let last = client.query("SHOW freshet.last");
            assert!(
                last.iter().any(|message| message.body.windows(3).any(|of| of == b"hit" || of == b"loc")),
                "{last:?}"
            );
        }
        client.query("BEGIN");
        client.query("UPDATE t SET v = v WHERE id = 2");
        replies.extend(play_unit(client, &again));
        client.query("ROLLBACK");
        both.push(replies);
    }
    assert_same(&both[1], &both[0]);
}
