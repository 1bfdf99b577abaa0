//! Reads of one row by its primary key, which are answered on the session's own turn: keys of every kind, named and unnamed
//! statements, literals, both formats; and what they show while rows are written.

use freshet_config::FreshnessMode;
use freshet_tests::raw::{RawClient, RawReply, frame};
use freshet_tests::world::{World, until, will_pass};

/// More rows than are read through, and not in the order of their keys.
const SETUP: &str = "
    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
    CREATE TABLE small (k smallint PRIMARY KEY, v text);
    INSERT INTO small SELECT n, 'v' || n FROM generate_series(-60, 60) n ORDER BY md5(n::text);
    CREATE TABLE whole (k int PRIMARY KEY, t text, n numeric(12,3), d date, s timestamp, z timestamptz, f float8, b bool, u uuid,
        i interval, y bytea, j jsonb, a int[], m mood, c char(6), p inet);
    INSERT INTO whole SELECT n, CASE WHEN n % 7 > 0 THEN repeat('x', n % 50) END, n / 3.0, date '2020-01-01' + n,
        timestamp '2020-01-01' + n * interval '1 hour', timestamptz '2020-01-01+00' + n * interval '1 minute', n / 7.0::float8, n % 2 = 0,
        md5(n::text)::uuid, n * interval '1 day 2 hours', decode(md5(n::text), 'hex'), jsonb_build_object('n', n), ARRAY[n, NULL],
        CASE n % 3 WHEN 0 THEN 'sad' WHEN 1 THEN 'ok' END::mood, 'c' || n, '10.0.0.0'::inet + n
      FROM generate_series(1, 500) n ORDER BY md5(n::text);
    CREATE TABLE serial (k bigint PRIMARY KEY, v int); INSERT INTO serial SELECT n, n FROM generate_series(1, 400) n;
    CREATE TABLE texts (k text PRIMARY KEY, v int); INSERT INTO texts SELECT md5(n::text), n FROM generate_series(1, 300) n;
    INSERT INTO texts VALUES ('', -1), ('a/b', -2), ('Europe/Berlin', -3), ('ä', -4);
    CREATE TABLE padded (k char(8) PRIMARY KEY, v int); INSERT INTO padded SELECT 'k' || n, n FROM generate_series(1, 100) n;
    CREATE TABLE numbers (k numeric PRIMARY KEY, v int); INSERT INTO numbers SELECT n / 4.0, n FROM generate_series(1, 100) n ORDER BY md5(n::text);
    CREATE TABLE uuids (k uuid PRIMARY KEY, v int); INSERT INTO uuids SELECT md5(n::text)::uuid, n FROM generate_series(1, 100) n;
    CREATE TABLE days (k date PRIMARY KEY, v int); INSERT INTO days SELECT date '2024-01-01' + n, n FROM generate_series(1, 100) n ORDER BY md5(n::text);
    CREATE TABLE moments (k timestamptz PRIMARY KEY, v int);
    INSERT INTO moments SELECT timestamptz '2024-01-01+00' + n * interval '1 hour', n FROM generate_series(1, 100) n ORDER BY md5(n::text);
    CREATE TABLE moods (k mood PRIMARY KEY, v int); INSERT INTO moods VALUES ('happy', 1), ('sad', 2);
    CREATE TABLE pairs (v int, b text, a int, PRIMARY KEY (a, b)); INSERT INTO pairs SELECT n, 'b' || n % 10, n % 13 FROM generate_series(1, 100) n;
    CREATE TABLE parts (k int, v int, PRIMARY KEY (k)) PARTITION BY RANGE (k);
    CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (100); CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (100) TO (1000);
    INSERT INTO parts SELECT n, n * 2 FROM generate_series(1, 200) n ORDER BY md5(n::text);
    CREATE VIEW seen AS SELECT k AS id, t AS title FROM whole";

/// A statement with one parameter, and values for it.
const BY_KEY: &[(&str, &[Option<&str>])] = &[
    ("SELECT * FROM small WHERE k = $1", &[Some("-60"), Some("7"), Some("61"), Some("32767"), None]),
    ("SELECT * FROM small WHERE k = $1::int", &[Some("12"), Some("100000")]),
    ("SELECT * FROM small WHERE k = $1::bigint", &[Some("12"), Some("10000000000")]),
    ("SELECT * FROM whole WHERE k = $1", &[Some("1"), Some("7"), Some(" 499 "), Some("501"), Some("-1"), None]),
    ("SELECT t, k, t FROM whole WHERE $1 = k", &[Some("14"), Some("15")]),
    ("SELECT k, n FROM whole w WHERE w.k = $1 LIMIT 1", &[Some("14"), Some("0")]),
    ("SELECT k, n FROM whole WHERE k = $1 ORDER BY n DESC, k LIMIT 21", &[Some("14"), Some("0")]),
    ("SELECT k FROM whole WHERE k = 9 LIMIT $1", &[Some("0"), Some("1"), Some("5"), None]),
    ("SELECT v FROM serial WHERE k = $1", &[Some("1"), Some("400"), Some("401"), Some("9223372036854775807")]),
    (
        "SELECT v, k FROM texts WHERE k = $1",
        &[
            Some("c4ca4238a0b923820dcc509a6f75849b"),
            Some(""),
            Some("a/b"),
            Some("Europe/Berlin"),
            Some("ä"),
            Some("A/B"),
            None,
        ],
    ),
    ("SELECT * FROM padded WHERE k = $1", &[Some("k7"), Some("k7      "), Some("k7 "), Some("K7"), Some("k700000000")]),
    (
        "SELECT * FROM numbers WHERE k = $1",
        &[Some("2.5"), Some("2.50"), Some("1"), Some("1.000"), Some("NaN"), Some("1e-20")],
    ),
    (
        "SELECT * FROM uuids WHERE k = $1",
        &[Some("c4ca4238-a0b9-2382-0dcc-509a6f75849b"), Some("{C4CA4238A0B923820DCC509A6F75849B}")],
    ),
    ("SELECT * FROM days WHERE k = $1", &[Some("2024-02-03"), Some("20240203"), Some("infinity")]),
    (
        "SELECT * FROM moments WHERE k = $1",
        &[Some("2024-01-02 03:00+00"), Some("2024-01-02 05:00+02"), Some("-infinity")],
    ),
    ("SELECT * FROM moods WHERE k = $1", &[Some("sad"), Some("ok"), Some("happy")]),
    ("SELECT v FROM pairs WHERE a = 3 AND b = $1", &[Some("b3"), Some("b9"), Some("c"), None]),
    ("SELECT v FROM pairs WHERE b = 'b3' AND a = $1", &[Some("3"), Some("4")]),
    ("SELECT * FROM parts WHERE k = $1", &[Some("99"), Some("100"), Some("200"), Some("201"), Some("5000")]),
    ("SELECT title FROM seen WHERE id = $1", &[Some("14"), Some("15"), Some("9999")]),
];

/// Values that raise an error upstream.
const RAISING: &[(&str, &str)] = &[
    ("SELECT * FROM small WHERE k = $1", "40000"),
    ("SELECT * FROM whole WHERE k = $1", "x"),
    ("SELECT * FROM moods WHERE k = $1", "angry"),
    ("SELECT k FROM whole WHERE k = 9 LIMIT $1", "-1"),
    ("SELECT * FROM texts WHERE k = $1::text AND v = 1 / 0", "none"),
];

/// Bind and Execute of a statement of that name, with the values as text.
fn run(client: &mut RawClient, name: &str, value: Option<&str>, format: u8, describes: bool) -> RawReply {
    let mut bind = [b"\0", name.as_bytes(), b"\0\0\0\0\x01"].concat();
    match value {
        None => bind.extend((-1_i32).to_be_bytes()),
        Some(text) => {
            bind.extend(u32::try_from(text.len()).expect("short").to_be_bytes());
            bind.extend(text.as_bytes());
        }
    }
    bind.extend([0, 1, 0, format]);
    let describe = if describes { frame(b'D', b"P\0") } else { Vec::new() };
    client.send(&[frame(b'B', &bind), describe, frame(b'E', b"\0\0\0\0\0"), frame(b'S', b"")].concat()).expect("sent");
    client.read_reply().expect("answers")
}

fn prepare(client: &mut RawClient, name: &str, sql: &str) {
    let parse = [name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"].concat();
    let unit = [frame(b'P', &parse), frame(b'D', &[b"S", name.as_bytes(), b"\0"].concat()), frame(b'S', b"")];
    client.send(&unit.concat()).expect("sent");
    assert_eq!(client.read_reply().expect("answers").error(), None, "{sql}");
}

/// Asks both until freshet answers by itself; every answer is upstream's.
fn is_answered_here(
    here: &mut RawClient,
    there: &mut RawClient,
    what: &str,
    mut ask: impl FnMut(&mut RawClient) -> RawReply,
) -> String {
    let mut route = String::new();
    until(what, || {
        let (found, expected) = (ask(here), ask(there));
        assert_eq!(expected.error(), None, "{what}");
        let (how, reason) = here.last().expect("answers");
        assert_eq!(found.frames, expected.frames, "{what}: {how} {reason}");
        route = how;
        route == "local" || route == "hit"
    });
    route
}

#[test]
fn keys_of_every_kind_find_upstreams_row() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let (mut here, mut there) = (world.client(), world.direct());
    for (at, (sql, values)) in BY_KEY.iter().enumerate() {
        let name = format!("s{at}");
        prepare(&mut here, &name, sql);
        prepare(&mut there, &name, sql);
        for value in *values {
            for (format, describes) in [(0, true), (1, true), (0, false), (1, false)] {
                let what = format!("{sql} {value:?}, format {format}");
                is_answered_here(&mut here, &mut there, &what, |client| run(client, &name, *value, format, describes));
            }
            let what = format!("{sql} {value:?}, unnamed");
            is_answered_here(&mut here, &mut there, &what, |client| {
                client.extended(sql, &[*value], 0).expect("answers")
            });
            if let Some(value) = value {
                let literal = sql.replace("$1", &format!("'{value}'"));
                is_answered_here(&mut here, &mut there, &literal, |client| client.simple(&literal).expect("answers"));
            }
        }
    }
    for (sql, value) in RAISING {
        let ask = |client: &mut RawClient| client.extended(sql, &[Some(value)], 0).expect("answers");
        let (found, expected) = (ask(&mut here), ask(&mut there));
        assert_eq!(found.error(), expected.error(), "{sql} {value}");
    }
}

#[test]
fn settings_are_those_of_the_session() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let (mut here, mut there) = (world.client(), world.direct());
    let settings = [
        "SET DateStyle = 'German, DMY'",
        "SET TimeZone = 'America/New_York'",
        "SET IntervalStyle = 'iso_8601'",
        "SET bytea_output = 'escape'",
        "SET extra_float_digits = 0",
        "SET search_path = pg_catalog, public",
    ];
    let sql = "SELECT * FROM whole WHERE k = $1";
    for setting in settings {
        for client in [&mut here, &mut there] {
            assert_eq!(client.simple(setting).expect("answers").error(), None);
        }
        for value in ["3", "4", "5"] {
            let ask = |client: &mut RawClient| client.extended(sql, &[Some(value)], 0).expect("answers");
            is_answered_here(&mut here, &mut there, &format!("{setting}, {value}"), ask);
        }
    }
}

/// Keys that nobody has asked for before, each read once: no kept reply is in between, and each session sees its own writes.
#[test]
fn what_was_written_is_read() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let (mut here, mut there, mut other) = (world.client(), world.direct(), world.client());
    let sql = "SELECT v FROM serial WHERE k = $1";
    for client in [&mut here, &mut there] {
        prepare(client, "s", sql);
    }
    is_answered_here(&mut here, &mut there, sql, |client| run(client, "s", Some("1"), 0, true));
    let mut answered = 0;
    let mut check = |here: &mut RawClient, key: i32| {
        let key = key.to_string();
        let (found, expected) = (run(here, "s", Some(&key), 0, true), run(&mut there, "s", Some(&key), 0, true));
        let (route, reason) = here.last().expect("answers");
        assert_eq!(found.frames, expected.frames, "key {key}: {route} {reason}");
        assert!(route != "relay" || will_pass(&reason), "key {key}: {reason}");
        answered += usize::from(route == "local");
    };
    for key in 2..150 {
        let writer = if key % 2 == 0 { &mut here } else { &mut other };
        let write = match key % 5 {
            0 => format!("DELETE FROM serial WHERE k = {key}"),
            1 => format!("UPDATE serial SET k = {} WHERE k = {key}", key + 1_000),
            2 => format!("INSERT INTO serial VALUES ({}, {key})", key + 2_000),
            3 => format!(
                "BEGIN; UPDATE serial SET v = -v WHERE k = {key}; DELETE FROM serial WHERE k = {}; COMMIT",
                key + 200
            ),
            _ => format!("UPDATE serial SET v = v + 10 WHERE k = {key}"),
        };
        assert_eq!(writer.simple(&write).expect("answers").error(), None, "{write}");
        for read in [key, key + 200, key + 1_000, key + 2_000] {
            check(&mut here, read);
        }
    }
    assert!(answered > 300, "{answered} of 592 computed here");
    world.past("TRUNCATE serial");
    until("the truncation is seen", || run(&mut here, "s", Some("350"), 0, true).rows().is_empty());
}

/// In a block after its first write, under another isolation level, for who may not read the table, and after a change of the table's
/// definition it is upstream's statement.
#[test]
fn what_forbids_a_local_answer_forbids_this_one() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let (mut here, mut there) = (world.client(), world.direct());
    let sql = "SELECT v FROM serial WHERE k = $1";
    for client in [&mut here, &mut there] {
        prepare(client, "s", sql);
    }
    is_answered_here(&mut here, &mut there, sql, |client| run(client, "s", Some("1"), 0, true));
    let is_relayed = |here: &mut RawClient, before: &str, after: &str, key: &str| {
        assert_eq!(here.simple(before).expect("answers").error(), None, "{before}");
        let error = run(here, "s", Some(key), 0, true).error();
        let (route, _) = here.last().expect("answers");
        assert_eq!(route, "relay", "{before}");
        let _ = here.simple(after).expect("answers");
        error
    };
    let write = "BEGIN; UPDATE serial SET v = 0 WHERE k = 5";
    assert_eq!(is_relayed(&mut here, write, "ROLLBACK", "5"), None);
    assert_eq!(is_relayed(&mut here, "BEGIN ISOLATION LEVEL REPEATABLE READ", "ROLLBACK", "6"), None);
    world.past("CREATE ROLE nobody_point; GRANT USAGE ON SCHEMA public TO nobody_point");
    let denied = is_relayed(&mut here, "SET ROLE nobody_point", "RESET ROLE", "7").expect("an error");
    assert!(denied.contains("permission denied"), "{denied}");
    world.past("DROP OWNED BY nobody_point; DROP ROLE nobody_point");
    assert_eq!(here.simple("ALTER TABLE serial ALTER v TYPE bigint").expect("answers").error(), None);
    let changed = run(&mut here, "s", Some("8"), 0, true).error().expect("an error");
    assert!(changed.contains("cached plan must not change result type"), "{changed}");
}

/// One execution with these format codes.
fn with_formats(sql: &str, of_parameters: &[i16], of_results: &[i16]) -> Vec<u8> {
    let codes = |codes: &[i16]| -> Vec<u8> {
        let count = i16::try_from(codes.len()).expect("few");
        std::iter::once(count).chain(codes.iter().copied()).flat_map(i16::to_be_bytes).collect()
    };
    let bind = [&b"\0\0"[..], &codes(of_parameters), b"\0\x01\0\0\0\x017", &codes(of_results)].concat();
    let parse = [b"\0", sql.as_bytes(), b"\0\0\0"].concat();
    [frame(b'P', &parse), frame(b'B', &bind), frame(b'E', b"\0\0\0\0\0"), frame(b'S', b"")].concat()
}

#[test]
fn format_codes_that_postgresql_refuses_are_upstreams() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let (mut direct, mut client) = (world.direct(), world.client());
    let ask = |session: &mut RawClient, of_parameters: &[i16], of_results: &[i16]| {
        let unit = with_formats("SELECT v, k FROM small WHERE k = $1", of_parameters, of_results);
        session.send(&unit).expect("sent");
        session.read_reply().expect("answers")
    };
    until("it is answered here", || {
        ask(&mut client, &[], &[]);
        client.last().expect("answers").0 != "relay"
    });
    let refused: [(&[i16], &[i16]); 5] =
        [(&[], &[7]), (&[], &[0, 0, 0]), (&[0, 0], &[]), (&[0, 0], &[1]), (&[], &[-1, 0])];
    for (of_parameters, of_results) in refused {
        let theirs = ask(&mut direct, of_parameters, of_results).error();
        assert!(theirs.is_some(), "{of_parameters:?} {of_results:?}");
        assert_eq!(ask(&mut client, of_parameters, of_results).error(), theirs, "{of_parameters:?} {of_results:?}");
    }
    let taken: [(&[i16], &[i16]); 2] = [(&[0], &[1]), (&[], &[0, 1])];
    for (of_parameters, of_results) in taken {
        let theirs = ask(&mut direct, of_parameters, of_results);
        let ours = ask(&mut client, of_parameters, of_results);
        assert_eq!((ours.error(), ours.rows()), (None, theirs.rows()), "{of_parameters:?} {of_results:?}");
    }
}
