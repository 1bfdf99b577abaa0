//! Units that come together: answered from kept replies in one go, in exact mode after one barrier that they share; and
//! never by an older state than each of them may see.

use std::time::{Duration, Instant};

use freshet_tests::client::{Message, RawClient, bind, close, describe, execute, parse, query, rows, sync, tags};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;

const WAIT: Duration = Duration::from_secs(30);
const ROWS: usize = 20;

struct Stand {
    cluster: &'static Cluster,
    database: String,
    freshet: Freshet,
}

impl Stand {
    fn start() -> Self {
        let cluster = Cluster::shared();
        let database = cluster.database();
        for table in ["t", "u"] {
            cluster.psql(
                &database,
                &format!(
                    "CREATE TABLE {table} (id int PRIMARY KEY, n int);
                     INSERT INTO {table} SELECT i, 0 FROM generate_series(1, {ROWS}) i"
                ),
            );
        }
        let freshet = Freshet::start(&cluster.url(&database), |_| {});
        Self { cluster, database, freshet }
    }

    fn connect(&self, mode: &str) -> RawClient {
        let mut client = RawClient::log_in(self.freshet.port(), &self.database);
        client.query(&format!("SET freshet.freshness = '{mode}'"));
        for table in ["t", "u"] {
            client.send(&[parse(table, &read(table)), sync()].concat());
            client.read_until('Z');
        }
        client
    }

    /// Statements on a route so far, in all sessions.
    fn count(&self, route: &str) -> u64 {
        self.freshet.status(&self.database, &format!("statements_{route}")).parse().expect("a number")
    }
}

fn read(table: &str) -> String {
    format!("SELECT id, n FROM {table} WHERE id = $1")
}

fn prepared(table: &str, id: usize) -> Vec<u8> {
    [bind("", table, &[Some(&id.to_string())], 0), execute("", 0), sync()].concat()
}

fn simple(table: &str, id: usize) -> Vec<u8> {
    query(&read(table).replace("$1", &id.to_string()))
}

fn extended(table: &str, id: usize) -> Vec<u8> {
    let id = id.to_string();
    [parse("", &read(table)), bind("", "", &[Some(&id)], 0), describe('P', ""), execute("", 0), sync()].concat()
}

const FORMS: [fn(&str, usize) -> Vec<u8>; 3] = [prepared, simple, extended];

/// Sends the units in one go; the replies one by one.
fn play(client: &mut RawClient, units: &[Vec<u8>]) -> Vec<Vec<Message>> {
    client.send(&units.concat());
    units.iter().map(|_| client.read_until('Z')).collect()
}

/// Column `n` of each reply.
fn values(replies: &[Vec<Message>]) -> Vec<String> {
    let value = |reply: &Vec<Message>| match rows(reply).first() {
        Some(row) => row[1].clone().expect("no NULL"),
        None => panic!("no row: {}", tags(reply)),
    };
    replies.iter().map(value).collect()
}

/// Until every unit of the burst is a hit.
fn settle(stand: &Stand, client: &mut RawClient, units: &[Vec<u8>]) {
    let limit = Instant::now() + WAIT;
    loop {
        let before = stand.count("hit");
        play(client, units);
        if stand.count("hit") - before >= units.len() as u64 {
            return;
        }
        assert!(Instant::now() < limit, "the units do not become hits");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ids() -> impl Iterator<Item = usize> {
    (0..3 * ROWS).map(|at| 1 + at % ROWS)
}

#[test]
fn a_burst_of_hits_is_answered_like_its_units_one_by_one() {
    let stand = Stand::start();
    for mode in ["session", "exact"] {
        let mut client = stand.connect(mode);
        for form in FORMS {
            let units: Vec<Vec<u8>> = ids().map(|id| form(if id % 3 == 0 { "u" } else { "t" }, id)).collect();
            settle(&stand, &mut client, &units);
            let single: Vec<Vec<Message>> =
                units.iter().map(|unit| play(&mut client, std::slice::from_ref(unit)).remove(0)).collect();
            let (before, relayed) = (stand.count("hit"), stand.count("relay"));
            let together = play(&mut client, &units);
            assert_eq!(together, single, "{mode}");
            assert_eq!(stand.count("hit") - before, units.len() as u64, "{mode}");
            assert_eq!(stand.count("relay"), relayed, "{mode}");
            assert_eq!(rows(&client.query("SHOW freshet.last"))[0][0].as_deref(), Some("hit"));
        }
    }
}

#[test]
fn in_exact_mode_a_burst_waits_once() {
    let stand = Stand::start();
    let mut client = stand.connect("exact");
    let units: Vec<Vec<u8>> = (0..2_000).map(|at| prepared(["t", "u"][at % 2], 1 + at % ROWS)).collect();
    settle(&stand, &mut client, &units);
    let barriers =
        |stand: &Stand| -> u64 { stand.freshet.status(&stand.database, "barriers").parse().expect("a number") };
    let least = (0..5).map(|_| {
        let before = barriers(&stand);
        play(&mut client, &units);
        barriers(&stand) - before
    });
    // With those that the mirror and the connections that ask need.
    let least = least.min().expect("five times");
    assert!((1..50).contains(&least), "{least} barriers for {} units", units.len());
}

#[test]
fn a_write_within_a_burst_is_seen_by_what_follows() {
    let stand = Stand::start();
    for mode in ["session", "exact"] {
        let mut client = stand.connect(mode);
        for form in FORMS {
            let reads: Vec<Vec<u8>> = (1..=5).map(|id| form("t", id)).collect();
            settle(&stand, &mut client, &reads);
            for round in 1..40 {
                let write = format!("UPDATE t SET n = {round} WHERE id <= 5");
                let write = if round % 2 == 0 {
                    query(&write)
                } else {
                    [parse("", &write), bind("", "", &[], 0), execute("", 0), sync()].concat()
                };
                let burst = [&reads[..], &[write], &reads[..]].concat();
                let replies = play(&mut client, &burst);
                let (before, after) = (values(&replies[..5]), values(&replies[6..]));
                assert!(before.windows(2).all(|pair| pair[0] == pair[1]), "{mode}: {before:?}");
                assert_eq!(after, vec![round.to_string(); 5], "{mode}");
            }
            // In a block: nobody else sees it, and it is undone.
            let block = [
                &[query("BEGIN")],
                &reads[..],
                &[query("UPDATE t SET n = -1 WHERE id <= 5")],
                &reads[..],
                &[query("ROLLBACK")],
                &reads[..],
            ]
            .concat();
            let replies = play(&mut client, &block);
            assert_eq!(values(&replies[1..6]), vec!["39"; 5], "{mode}");
            assert_eq!(values(&replies[7..12]), vec!["-1"; 5], "{mode}");
            assert_eq!(values(&replies[13..]), vec!["39"; 5], "{mode}");
            client.query("UPDATE t SET n = 0");
        }
    }
}

#[test]
fn a_burst_sees_what_was_committed_past_freshet_before_it() {
    let stand = Stand::start();
    let mut client = stand.connect("exact");
    let mut writer = RawClient::log_in(stand.cluster.port(), &stand.database);
    let units: Vec<Vec<u8>> = ids().enumerate().map(|(at, id)| FORMS[at % 3](["t", "u"][id % 2], id)).collect();
    settle(&stand, &mut client, &units);
    let mut seen_late = 0;
    for round in 1..80 {
        for table in ["t", "u"] {
            writer.query(&format!("UPDATE {table} SET n = {round}"));
        }
        // The second half comes while the first waits for its barrier, and after another commit.
        let (first, second) = units.split_at(units.len() / 2);
        client.send(&first.concat());
        if round % 2 == 0 {
            writer.query(&format!("UPDATE t SET n = {round} + 1000; UPDATE u SET n = {round} + 1000"));
        }
        client.send(&second.concat());
        let replies: Vec<Vec<Message>> = units.iter().map(|_| client.read_until('Z')).collect();
        let seen: Vec<i32> = values(&replies).iter().map(|n| n.parse().expect("a number")).collect();
        let (first, second) = seen.split_at(first.len());
        assert!(first.iter().all(|n| *n == round || *n == round + 1000), "{round}: {first:?}");
        let newest = if round % 2 == 0 { round + 1000 } else { round };
        assert!(second.iter().all(|n| *n == newest), "{round}: {second:?}");
        seen_late += first.iter().filter(|n| **n == round).count();
        // Time does not run backwards within the session.
        assert!(seen.windows(2).all(|pair| pair[0] <= pair[1]), "{seen:?}");
    }
    assert!(seen_late > 0);
}

#[test]
fn a_burst_that_changes_to_exact_mode_is_exact_from_there_on() {
    let stand = Stand::start();
    let mut client = stand.connect("session");
    let mut writer = RawClient::log_in(stand.cluster.port(), &stand.database);
    let reads: Vec<Vec<u8>> = (1..=5).map(|id| prepared("t", id)).collect();
    settle(&stand, &mut client, &reads);
    // Not kept yet, so that the first read of the burst asks for a moment, in session mode.
    let fresh = |round: usize| query(&format!("SELECT n + {round} FROM t WHERE id = 1"));
    for round in 1..60 {
        writer.query(&format!("UPDATE t SET n = {round}"));
        let burst = [
            &[fresh(round), query("SET freshet.freshness = 'exact'")],
            &reads[..],
            &[query("SET freshet.freshness = 'session'")],
        ]
        .concat();
        let replies = play(&mut client, &burst);
        assert_eq!(values(&replies[2..7]), vec![round.to_string(); 5]);
    }
}

/// While the first unit of a burst is computed, a commit is acknowledged and a further unit comes: that one must see it.
#[test]
fn what_comes_while_a_burst_is_answered_has_a_moment_of_its_own() {
    let stand = Stand::start();
    stand.cluster.psql(
        &stand.database,
        "CREATE TABLE large (id int PRIMARY KEY, n int); INSERT INTO large SELECT i, 0 FROM generate_series(1, 30000) i",
    );
    for mode in ["exact", "session"] {
        let mut client = stand.connect(mode);
        client.send(&[parse("large", &read("large")), sync()].concat());
        client.read_until('Z');
        let mut writer = match mode {
            "exact" => RawClient::log_in(stand.cluster.port(), &stand.database),
            _ => RawClient::log_in(stand.freshet.port(), &stand.database),
        };
        let unit = prepared("large", 1);
        let slow = |round: usize| {
            let sql = "SELECT 0, count(DISTINCT (a.id * 31 + b.g) % 1009) FROM large a, generate_series(1, 8) b(g)";
            query(&format!("{sql} WHERE a.id > -{round}"))
        };
        settle(&stand, &mut client, &[unit.clone(), unit.clone(), unit.clone()]);
        let limit = Instant::now() + WAIT;
        let (mut round, mut computed) = (0, 0);
        while computed < 8 {
            assert!(Instant::now() < limit, "{mode}: {computed} of {round} computed here");
            round += 1;
            let locals = stand.count("local");
            client.send(&[slow(round), unit.clone()].concat());
            writer.query(&format!("UPDATE large SET n = {mark} WHERE id = 1", mark = round));
            client.send(&unit);
            let replies: Vec<Vec<Message>> = (0..3).map(|_| client.read_until('Z')).collect();
            let (early, late) = (values(&replies[1..2]), values(&replies[2..]));
            assert!(early[0] == round.to_string() || early[0] == (round - 1).to_string(), "{mode}: {early:?}");
            assert_eq!(late, [round.to_string()], "{mode}, round {round}");
            computed += usize::from(stand.count("local") > locals);
            // Kept again, so that the next round begins with a hit.
            settle(&stand, &mut client, std::slice::from_ref(&unit));
        }
        writer.query("UPDATE large SET n = 0 WHERE id = 1");
    }
}

#[test]
fn what_a_burst_leaves_behind_is_what_its_units_leave() {
    let stand = Stand::start();
    let mut upstream = RawClient::log_in(stand.cluster.port(), &stand.database);
    let mut client = stand.connect("session");
    for table in ["t", "u"] {
        upstream.send(&[parse(table, &read(table)), sync()].concat());
        upstream.read_until('Z');
    }
    let again = |id: &str| [bind("", "", &[Some(id)], 0), execute("", 0), sync()].concat();
    let unnamed = |table: &str, id: &str| [parse("", &read(table)), again(id)].concat();
    let closed = [bind("", "t", &[Some("2")], 0), execute("", 0), close('P', ""), sync()].concat();
    let scripts: [(&str, Vec<Vec<u8>>, u64); 5] = [
        ("the last Parse counts", vec![unnamed("t", "1"), unnamed("u", "2"), prepared("t", 3), again("4")], 4),
        ("also between others", vec![unnamed("t", "1"), again("2"), unnamed("u", "3"), again("4"), simple("u", 5)], 5),
        // A Query drops the unnamed statement: upstream says so.
        ("a Query drops it", vec![unnamed("t", "1"), simple("t", 2), again("3"), prepared("t", 4)], 2),
        (
            "in a block",
            vec![query("BEGIN"), unnamed("t", "1"), prepared("u", 2), closed, again("3"), query("COMMIT"), again("4")],
            4,
        ),
        // The portal of the last unit is still there in a block, with all its rows fetched.
        (
            "the portal stays in a block",
            vec![
                query("BEGIN"),
                prepared("t", 1),
                prepared("t", 2),
                [describe('P', ""), execute("", 0), sync()].concat(),
                query("COMMIT"),
            ],
            2,
        ),
    ];
    for (what, units, hits) in scripts {
        let expected = play(&mut upstream, &units);
        let limit = Instant::now() + WAIT;
        let mut before = stand.count("hit") + stand.count("local");
        loop {
            let got = play(&mut client, &units);
            assert_eq!(got, expected, "{what}");
            let now = stand.count("hit") + stand.count("local");
            let last = std::mem::replace(&mut before, now);
            if now - last >= hits {
                break;
            }
            assert!(Instant::now() < limit, "{what}: {} of {hits} answered here", now - last);
            std::thread::sleep(Duration::from_millis(5));
        }
        for _ in 0..3 {
            assert_eq!(play(&mut client, &units), expected, "{what}, again");
        }
    }
}

#[test]
fn a_statement_by_another_text_of_the_same_name_is_another() {
    let stand = Stand::start();
    stand.cluster.psql(&stand.database, "UPDATE u SET n = 7");
    let mut client = stand.connect("session");
    let units: Vec<Vec<u8>> = (1..=5).map(|id| prepared("t", id)).collect();
    settle(&stand, &mut client, &units);
    assert_eq!(values(&play(&mut client, &units)), ["0"; 5]);
    // The same bytes from here on, in this session and in another.
    client.send(&[close('S', "t"), parse("t", &read("u")), sync()].concat());
    client.read_until('Z');
    settle(&stand, &mut client, &units);
    assert_eq!(values(&play(&mut client, &units)), ["7"; 5]);
    let mut other = stand.connect("session");
    assert_eq!(values(&play(&mut other, &units)), ["0"; 5]);
    assert_eq!(values(&play(&mut client, &units)), ["7"; 5]);
}
