//! What goes through freshet is what PostgreSQL would have said: raw scripts, byte for byte, direct and through freshet.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

use freshet_tests::client::{
    RawClient, bind, close, describe, execute, flush, message, parse, query, rows, sync, tags, terminate,
};
use freshet_tests::cluster::{Cluster, LOGIN_CLEARTEXT, LOGIN_MD5, LOGIN_SCRAM};
use freshet_tests::fake::{Script, fake, fakes, welcome};
use freshet_tests::freshet::Freshet;
use freshet_tests::operator::Operator;
use freshet_tests::tls;
use freshet_tests::world::until;

/// Sends the pieces one after the other, with a pause where a piece is empty, and ends politely; all that came back.
fn converse(port: u16, database: &str, pieces: &[Vec<u8>]) -> Vec<u8> {
    let mut client = RawClient::log_in(port, database);
    let mut writer = client.writer();
    let pieces = pieces.to_vec();
    let sender = std::thread::spawn(move || {
        for piece in pieces {
            if piece.is_empty() {
                std::thread::sleep(std::time::Duration::from_millis(30));
            } else if writer.write_all(&piece).is_err() {
                return;
            }
        }
        let _ = writer.write_all(&terminate());
    });
    let all = client.read_to_end();
    sender.join().expect("no panic");
    all
}

/// The same script directly and through a plain relay and through a freshet that looks at every unit, in databases of
/// their own; the bytes are equal.
fn compare(setup: &str, script: impl Fn() -> Vec<Vec<u8>>) {
    let cluster = Cluster::shared();
    let run = |port: u16, database: &str| converse(port, database, &script());
    let database = |name: &str| {
        // Object identifiers are part of RowDescription: each run works in a copy of one template.
        cluster.psql("postgres", &format!("CREATE DATABASE {name}_copy TEMPLATE {name}"));
        format!("{name}_copy")
    };
    let template = cluster.database();
    if !setup.is_empty() {
        cluster.psql(&template, setup);
    }
    let direct_database = database(&template);
    let direct = run(cluster.port(), &direct_database);
    let modes: [fn(&str) -> Freshet; 2] = [Freshet::relay, |url| Freshet::start(url, |_| {})];
    for start in modes {
        cluster.psql("postgres", &format!("DROP DATABASE {direct_database} WITH (FORCE)"));
        database(&template);
        let freshet = start(&cluster.url(&direct_database));
        let relayed = run(freshet.port(), &direct_database);
        assert!(direct == relayed, "direct:\n{}\nthrough freshet:\n{}", shown(&direct), shown(&relayed));
    }
    assert!(!direct.is_empty());
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().take(4000).flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect()
}

#[test]
fn simple_queries() {
    compare("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)", || {
        let texts = [
            "SELECT * FROM t ORDER BY a",
            "",
            ";;",
            "SELECT 1; SELECT 2; SELECT 'three'",
            "SELECT 1/0",
            "SELECT 1; SELECT nosuch; SELECT 2",
            "BEGIN; INSERT INTO t VALUES (3, 'y')",
            "SELECT count(*) FROM t",
            "SELECT nosuch",
            "SELECT 1",
            "ROLLBACK",
            "SELECT count(*) FROM t",
            "SET DateStyle = 'SQL, DMY'",
            "SELECT date '2024-02-01'",
            "DO $$ BEGIN RAISE NOTICE 'hello %', 1; END $$",
            "SHOW search_path",
            "CREATE TABLE u (a int); DROP TABLE u",
        ];
        texts.iter().map(|text| query(text)).collect()
    });
}

#[test]
fn extended_queries_in_any_grouping() {
    compare(
        "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 100) i",
        || {
            let select = "SELECT a, b FROM t WHERE a < $1 ORDER BY a";
            vec![
                [parse("", select), bind("", "", &[Some("4")], 0), describe('P', ""), execute("", 0), sync()].concat(),
                [parse("s1", select), describe('S', "s1"), sync()].concat(),
                [bind("", "s1", &[Some("3")], 1), execute("", 0), sync()].concat(),
                [bind("c", "s1", &[Some("90")], 0), describe('P', "c"), execute("c", 10), sync()].concat(),
                // The portal went with its transaction.
                [execute("c", 10), sync()].concat(),
                [parse("", "BEGIN"), bind("", "", &[], 0), execute("", 0), sync()].concat(),
                [bind("c", "s1", &[Some("90")], 0), execute("c", 10), sync()].concat(),
                [execute("c", 10), flush()].concat(),
                [execute("c", 0), close('P', "c"), sync()].concat(),
                query("COMMIT"),
                [parse("s1", "SELECT 1"), sync()].concat(),
                [close('S', "s1"), close('S', "never"), parse("s1", "SELECT 'again'"), flush()].concat(),
                [bind("", "s1", &[], 0), execute("", 0), sync()].concat(),
                [parse("", "INSERT INTO t VALUES (1000, 'w')"), describe('S', ""), bind("", "", &[], 0)].concat(),
                [describe('P', ""), execute("", 0), sync()].concat(),
                // The unnamed statement outlives the unit, and a simple query ends it.
                [parse("", "SELECT 42"), sync()].concat(),
                [bind("", "", &[], 0), execute("", 0), sync()].concat(),
                query("SELECT 43"),
                [bind("", "", &[], 0), execute("", 0), sync()].concat(),
                [parse("", ""), bind("", "", &[], 0), describe('P', ""), execute("", 0), sync()].concat(),
            ]
        },
    );
}

#[test]
fn errors_skip_to_the_sync() {
    compare("", || {
        vec![
            [parse("", "SELECT nosuch"), bind("", "", &[], 0), execute("", 0), query("SELECT 1"), sync()].concat(),
            [parse("a", "SELECT 1/0"), bind("", "a", &[], 0), execute("", 0), parse("b", "SELECT 1"), sync()].concat(),
            [bind("", "b", &[], 0), execute("", 0), sync()].concat(),
            [bind("", "a", &[], 0), execute("", 0), flush()].concat(),
            vec![],
            [query("SELECT 1"), bind("", "a", &[], 0)].concat(),
            vec![],
            sync(),
            [parse("", "SELECT $1::int"), bind("", "", &[Some("x")], 0), execute("", 0), sync()].concat(),
            [execute("nowhere", 0), sync(), describe('S', "nowhere"), sync(), sync(), flush(), sync()].concat(),
        ]
    });
}

#[test]
fn pipelines_of_many_units() {
    compare("CREATE TABLE t (a int)", || {
        let one = |value: i32| {
            let text = value.to_string();
            [bind("", "ins", &[Some(&text)], 0), execute("", 0)].concat()
        };
        let mut all = [parse("ins", "INSERT INTO t VALUES ($1)"), sync()].concat();
        for value in 0..2000 {
            all.extend(one(value));
            if value % 7 == 0 {
                all.extend(sync());
            }
            if value % 100 == 0 {
                all.extend(sync());
                all.extend(query("SELECT count(*) FROM t"));
            }
        }
        all.extend(sync());
        all.extend(query("SELECT sum(a) FROM t"));
        // In odd portions: message boundaries and packets have nothing to do with each other.
        all.chunks(1013).map(<[u8]>::to_vec).collect()
    });
}

#[test]
fn copy_in_and_out() {
    compare("CREATE TABLE t (a int, b text)", || {
        let data = |text: &str| message(b'd', text.as_bytes());
        vec![
            query("COPY t FROM STDIN"),
            data("1\tone\n"),
            [data("2\t"), data("two\n"), message(b'c', b"")].concat(),
            query("COPY t TO STDOUT; SELECT 1"),
            [query("COPY t FROM STDIN"), data("x\ty\n"), message(b'c', b"")].concat(),
            query("SELECT count(*) FROM t"),
            [query("COPY t FROM STDIN"), data("3\tz\n"), message(b'f', b"changed my mind\0")].concat(),
            [parse("", "COPY t FROM STDIN (FORMAT csv)"), bind("", "", &[], 0), execute("", 0), sync()].concat(),
            vec![],
            [data("5,five\n"), flush(), data("6,six\n"), message(b'c', b""), sync()].concat(),
            [parse("", "COPY t TO STDOUT (FORMAT binary)"), bind("", "", &[], 0), execute("", 0), sync()].concat(),
            [query("COPY nosuch FROM STDIN"), data("1\n"), message(b'c', b"")].concat(),
            query("SELECT * FROM t ORDER BY a"),
        ]
    });
}

#[test]
fn function_calls_and_bytes_that_are_no_text() {
    compare("", || {
        let function_call = |oid: u32, argument: &str| {
            let mut body = oid.to_be_bytes().to_vec();
            body.extend([0, 0, 0, 1]);
            body.extend((argument.len() as i32).to_be_bytes());
            body.extend(argument.as_bytes());
            body.extend([0, 0]);
            message(b'F', &body)
        };
        let mut latin = b"SELECT 'caf\xe9'\0".to_vec();
        let invalid = message(b'Q', &latin);
        latin.clear();
        vec![
            // int4abs, and a function that does not exist.
            function_call(1397, "-7"),
            function_call(1, "-7"),
            invalid,
            query("SET client_encoding = 'LATIN1'"),
            message(b'Q', b"SELECT 'caf\xe9' AS \"\xe4\"\0"),
        ]
    });
}

#[test]
fn large_rows_and_statements() {
    compare("CREATE TABLE t (a text)", || {
        let large = "x".repeat(20_000_000);
        vec![
            query("SELECT repeat('y', 20000000), repeat('z', 17000000)"),
            query(&format!("INSERT INTO t VALUES ('{large}')")),
            [parse("", "INSERT INTO t VALUES ($1)"), bind("", "", &[Some(&large)], 0), execute("", 0), sync()].concat(),
            query("SELECT count(*), sum(length(a)) FROM t"),
        ]
    });
}

#[test]
fn malformed_messages_end_the_session_as_they_do_upstream() {
    for broken in [
        vec![b'Q', 0, 0, 0, 1],
        vec![b'Q', 0xff, 0xff, 0xff, 0xff, 1, 2, 3],
        vec![b'P', 0, 0, 0, 5, b'x'],
        message(b'?', b"what"),
        message(b'B', b"\0\0\0\x01"),
    ] {
        compare("", || vec![query("SELECT 1"), vec![], [broken.clone(), sync()].concat(), vec![]]);
    }
    // And only that one.
    let cluster = Cluster::shared();
    let database = cluster.database();
    let freshet = Freshet::relay(&cluster.url(&database));
    let mut other = RawClient::log_in(freshet.port(), &database);
    let mut broken = RawClient::log_in(freshet.port(), &database);
    broken.send(&[b'Q', 0, 0, 0, 0]);
    broken.read_to_end();
    assert_eq!(rows(&other.query("SELECT 1")), [[Some("1".to_string())]]);
}

#[test]
fn start_up_packets_beyond_measure_are_refused_as_upstream_does() {
    let cluster = Cluster::shared();
    let freshet = Freshet::relay(&cluster.url("postgres"));
    for packet in
        [vec![0, 0, 0x27, 0x15, 0, 3, 0, 0], vec![0, 0, 0, 7, 0, 3, 0], vec![0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0]]
    {
        let answers = [cluster.port(), freshet.port()].map(|port| {
            let mut client = RawClient::connect(port);
            client.send(&packet);
            client.read_to_end()
        });
        assert_eq!(answers[0], answers[1], "{packet:?}");
    }
    // Versions and parameters that only upstream can judge.
    for parameters in [
        &[("user", "nobody")][..],
        &[("user", "postgres"), ("database", "nosuch")],
        &[("user", "postgres"), ("nosuch", "1")],
    ] {
        let answers = [cluster.port(), freshet.port()].map(|port| {
            let mut client = RawClient::connect(port);
            client.start_up(parameters);
            client.read_to_end()
        });
        assert_eq!(answers[0], answers[1], "{parameters:?}");
    }
}

#[test]
fn encryption_is_declined_in_either_order() {
    let cluster = Cluster::shared();
    let freshet = Freshet::relay(&cluster.url("postgres"));
    let ssl = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];
    let gss = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x30];
    for requests in [[ssl, gss], [gss, ssl]] {
        let mut client = RawClient::connect(freshet.port());
        for request in requests {
            client.send(&request);
            assert_eq!(client.read_byte(), b'N');
        }
        client.start_up(&[("user", "postgres"), ("database", "postgres")]);
        assert_eq!(client.read_until('Z').last().map(|m| m.tag), Some('Z'));
    }
}

#[test]
fn notifications_reach_an_idle_session() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut listener = RawClient::log_in(freshet.port(), &database);
    listener.query("LISTEN news");
    cluster.psql(&database, "NOTIFY news, 'extra'");
    let message = listener.read_message().expect("a notification");
    assert_eq!((message.tag, &message.body[4..]), ('A', &b"news\0extra\0"[..]));
    assert_eq!(tags(&listener.query("SELECT 1")), "TDCZ");
}

#[test]
fn a_cancel_request_reaches_the_right_backend() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut sleeper = RawClient::log_in(freshet.port(), &database);
    let mut other = RawClient::log_in(freshet.port(), &database);
    sleeper.send(&query("SELECT pg_sleep(30)"));
    other.send(&query("SELECT pg_sleep(0.5)"));
    while cluster.psql(
        &database,
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(30)%' AND state = 'active'",
    ) != "1"
    {}
    let mut packet = vec![0, 0, 0, 16, 4, 0xd2, 0x16, 0x2e];
    packet.extend(&sleeper.key);
    let mut canceller = RawClient::connect(freshet.port());
    canceller.send(&packet);
    assert_eq!(canceller.read_to_end(), b"");
    let messages = sleeper.read_until('Z');
    assert_eq!(tags(&messages), "TEZ");
    assert!(String::from_utf8_lossy(&messages[1].body).contains("57014"), "{messages:?}");
    assert_eq!(tags(&other.read_until('Z')), "TDCZ");
}

#[test]
fn both_sides_may_write_at_once() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut client = RawClient::log_in(freshet.port(), &database);
    let mut writer = client.writer();
    let statement = query(&format!("SELECT repeat('a', 100000) || '{}'", "b".repeat(50_000)));
    // Nothing is read until everything is written: some 300 MB of replies must not be needed in between.
    let count = 200;
    let sender = std::thread::spawn(move || {
        for _ in 0..count {
            writer.write_all(&statement).expect("freshet goes on reading");
        }
    });
    let mut seen = 0;
    while seen < count {
        seen += usize::from(client.read_message().expect("all replies").tag == 'Z');
    }
    sender.join().expect("no panic");
}

#[test]
fn passwords_are_asked_and_checked_by_upstream() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for login in [LOGIN_CLEARTEXT, LOGIN_MD5, LOGIN_SCRAM, "postgres"] {
        let connect = |password: &str| {
            let url = format!("postgres://{login}:{password}@127.0.0.1:{}/{database}", freshet.port());
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
                let task = tokio::spawn(connection);
                let name: String = client.query_one("SELECT current_user::text", &[]).await?.get(0);
                drop(client);
                let _ = task.await;
                Ok::<String, tokio_postgres::Error>(name)
            })
        };
        assert_eq!(connect(login).expect("the right password"), login);
        if login != "postgres" {
            let error = connect("wrong").expect_err("the wrong password");
            assert_eq!(error.code().map(|code| code.code()), Some("28P01"), "{error}");
        }
    }
}

#[test]
fn upstream_down_and_up_again() {
    let cluster = Cluster::start(&[]);
    let freshet = Freshet::relay(&cluster.url("postgres"));
    let mut client = RawClient::log_in(freshet.port(), "postgres");
    cluster.stop();
    let messages = client.read_until('E');
    assert!(String::from_utf8_lossy(&messages[0].body).contains("57P01"), "{messages:?}");
    assert!(client.read_message().is_none(), "closed behind it");
    let mut refused = RawClient::connect(freshet.port());
    refused.start_up(&[("user", "postgres")]);
    let answer = refused.read_to_end();
    assert!(String::from_utf8_lossy(&answer).contains("08001"), "{}", shown(&answer));
    cluster.restart();
    let mut again = RawClient::log_in(freshet.port(), "postgres");
    assert_eq!(tags(&again.query("SELECT 1")), "TDCZ");
    cluster.kill();
    again.read_to_end();
}

/// PostgreSQL goes with data unread: what it said last is there all the same.
#[test]
fn an_ended_copy_is_told_why_it_was_ended() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int)");
    let freshet = Freshet::relay(&cluster.url(&database));
    let data = message(b'd', "7\n".repeat(30_000).as_bytes());
    for port in [cluster.port(), freshet.port()] {
        for _ in 0..10 {
            let mut client = RawClient::log_in(port, &database);
            client.send(&query("COPY t FROM STDIN"));
            assert_eq!(tags(&client.read_until('G')), "G");
            let (mut writer, data) = (client.writer(), data.clone());
            let sending = std::thread::spawn(move || while writer.write_all(&data).is_ok() {});
            let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                        WHERE datname = current_database() AND query LIKE 'COPY t%'";
            assert_eq!(cluster.psql(&database, end), "1");
            let last = client.read_to_end();
            assert!(String::from_utf8_lossy(&last).contains("57P01"), "{}", shown(&last));
            sending.join().expect("no panic");
        }
    }
}

/// PostgreSQL gives up on whoever sends a request within a COPY (copyfromparse.c, CopyGetData; pqcomm.c, pq_startmsgread).
#[test]
fn a_request_within_a_copy_ends_the_session() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY)");
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let row = message(b'd', b"1\n");
    for within in [query("SELECT 1"), parse("s", "SELECT 1"), [row, query("SELECT 1"), query("SELECT 2")].concat()] {
        let [expected, got] = [cluster.port(), freshet.port()].map(|port| {
            let mut client = RawClient::log_in(port, &database);
            client.send(&query("COPY t FROM STDIN"));
            client.read_until('G');
            client.send(&within);
            client.read_to_end()
        });
        assert_eq!(shown(&got), shown(&expected));
        assert!(shown(&got).contains("08P01"), "{}", shown(&got));
    }
    assert_eq!(cluster.psql(&database, "SELECT count(*) FROM t"), "0");
}

#[test]
fn a_drain_lets_statements_end_and_says_good_bye() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut idle = RawClient::log_in(freshet.port(), &database);
    let mut busy = RawClient::log_in(freshet.port(), &database);
    busy.send(&query("SELECT pg_sleep(0.3)"));
    std::thread::sleep(std::time::Duration::from_millis(100));
    freshet.drain();
    let good_bye = idle.read_until('E');
    assert!(String::from_utf8_lossy(&good_bye[0].body).contains("57P01"), "{good_bye:?}");
    assert_eq!(tags(&busy.read_until('E')), "TDCZE");
}

/// What is told to have been ended is not carried out after all.
#[test]
fn when_the_drain_time_is_over_statements_are_ended_upstream_too() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)");
    let freshet = Freshet::start(&cluster.url(&database), |settings| settings.listen.drain_timeout_ms = 200);
    let update = |id| query(&format!("UPDATE t SET v = 1 FROM pg_sleep(6) WHERE id = {id}"));
    let mut plain = RawClient::log_in(freshet.port(), &database);
    plain.send(&update(1));
    let mut block = RawClient::log_in(freshet.port(), &database);
    block.send(&[query("BEGIN"), query("UPDATE t SET v = 1 WHERE id = 2"), update(3)].concat());
    let sleeping =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while cluster.psql(&database, sleeping) != "2" {
        assert!(std::time::Instant::now() < limit, "the statements do not begin");
    }
    freshet.drain();
    for client in [&mut plain, &mut block] {
        let ended = String::from_utf8_lossy(&client.read_to_end()).into_owned();
        assert!(ended.contains("57014") && ended.contains("57P01"), "{ended:?}");
        assert_eq!(cluster.psql(&database, sleeping), "0");
    }
    assert_eq!(cluster.psql(&database, "SELECT sum(v) FROM t"), "0");
}

#[test]
fn a_half_closed_client_still_gets_its_replies() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let answers = [cluster.port(), freshet.port()].map(|port| {
        let mut client = RawClient::log_in(port, &database);
        client.send(&query("SELECT 1 FROM pg_sleep(0.1)"));
        client.close_write();
        client.read_to_end()
    });
    assert_eq!(answers[0], answers[1]);
    assert!(!answers[0].is_empty());
}

#[test]
fn what_is_addressed_to_freshet_is_answered_by_it() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let modes: [fn(&str) -> Freshet; 2] = [Freshet::relay, |url| Freshet::start(url, |_| {})];
    for start in modes {
        let freshet = start(&cluster.url(&database));
        let mut client = RawClient::log_in(freshet.port(), &database);
        client.query("SELECT 1");
        let last = client.query("SHOW freshet.last");
        assert_eq!(tags(&last), "TDCZ");
        assert_eq!(rows(&last)[0][0].as_deref(), Some("relay"));
        assert_eq!(tags(&client.query("SET freshet.freshness = 'session'")), "CZ");
        assert_eq!(rows(&client.query("SHOW freshet.freshness"))[0][0].as_deref(), Some("session"));
        let refused = client.query("SET freshet.freshness = 'soon'");
        assert_eq!(tags(&refused), "EZ");
        assert!(String::from_utf8_lossy(&refused[0].body).contains("22023"));
        // By name, described, pipelined behind something that upstream answers.
        let pipeline =
            [query("SELECT 2"), parse("f", "SHOW freshet.route"), describe('S', "f"), sync(), query("SELECT 3")];
        client.send(&pipeline.concat());
        let all: Vec<_> = (0..3).flat_map(|_| client.read_until('Z')).collect();
        assert_eq!(tags(&all), "TDCZ1tTZTDCZ");
        client.send(&[bind("", "f", &[], 1), describe('P', ""), execute("", 0), sync()].concat());
        let shown = client.read_until('Z');
        assert_eq!(tags(&shown), "2TDCZ");
        assert_eq!(rows(&shown)[0][0].as_deref(), Some("auto"));
        assert_eq!(tags(&client.query("SELECT * FROM freshet.nosuch")), "EZ");
    }
}

#[test]
fn replication_sessions_pass_unread() {
    let cluster = Cluster::shared();
    let freshet = Freshet::start(&cluster.url("postgres"), |_| {});
    let mut client = RawClient::connect(freshet.port());
    client.start_up(&[("user", "postgres"), ("database", "postgres"), ("replication", "database")]);
    assert_eq!(client.read_until('Z').last().map(|m| m.tag), Some('Z'));
    assert_eq!(tags(&client.query("IDENTIFY_SYSTEM")), "TDCZ");
}

/// What an upstream of our own answers any query.
fn answer() -> [Vec<u8>; 4] {
    // A column `a` of type int4.
    let columns = message(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
    [columns, message(b'D', b"\0\x01\0\0\0\x017"), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")]
}

/// What another server that speaks the protocol may say, or a later PostgreSQL.
#[test]
fn messages_that_nobody_knows_are_passed_on() {
    let operator = Operator::new();
    let (unknown, large) = (message(b'y', b"any \0 \xff bytes"), message(b'y', &[b'y'; 300_000]));
    let [columns, row, tag, ready] = answer();
    let replies = [
        [columns, unknown.clone(), row, message(b'~', b""), tag, ready].concat(),
        [unknown.clone(), answer().concat()].concat(),
        [large, answer().concat()].concat(),
        answer().concat(),
    ];
    let expected = replies.clone();
    let server = fake(move |stream| {
        stream.write_all(&welcome()).expect("written");
        for reply in &replies {
            tls::read_until(stream, 'Q');
            stream.write_all(reply).expect("written");
        }
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        rest
    });
    let freshet = server.relay_with(|settings| settings.admin.address = operator.address());
    let mut client = RawClient::connect(freshet.port());
    client.start_up(&[("user", "u")]);
    assert_eq!(tags(&client.read_until('Z')), "RZ");
    for reply in &expected {
        client.send(&query("SELECT 7"));
        let received = client.read_until('Z');
        let bytes: Vec<u8> = received.iter().flat_map(|one| message(one.tag as u8, &one.body)).collect();
        assert!(bytes == *reply, "{}", shown(&bytes));
    }
    client.send(&unknown);
    drop(client);
    // The operator sees that the session was not followed to its end.
    let counted = "freshet_opaque_sessions_total{cause=\"reply out of turn\"} 1\n";
    until("the session is counted", || operator.get("/metrics").contains(counted));
    assert_eq!(server.ended()[0].1, unknown, "in the other direction, too");
}

fn process_id(client: &RawClient) -> u32 {
    u32::from_be_bytes(client.key[..4].try_into().expect("a process ID"))
}

/// A plain relay and a freshet that answers, each in front of a database with a table `t` of one row.
fn with_a_row() -> [(String, Freshet); 2] {
    [false, true].map(|is_mirrored| {
        let cluster = Cluster::shared();
        let database = cluster.database();
        cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)");
        let url = cluster.url(&database);
        let freshet = if is_mirrored { Freshet::start(&url, |_| {}) } else { Freshet::relay(&url) };
        if is_mirrored {
            freshet.read_until_mirrored(&database, &["t".to_string()]);
        }
        (database, freshet)
    })
}

#[test]
fn a_reset_by_a_client_ends_its_session_upstream_and_no_other() {
    let cluster = Cluster::shared();
    for (database, freshet) in with_a_row() {
        let mut other = RawClient::log_in(freshet.port(), &database);
        for last in ["SELECT 1", "SELECT count(*) FROM t", "BEGIN; UPDATE t SET v = 100"] {
            let mut client = RawClient::log_in(freshet.port(), &database);
            let alive = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {}", process_id(&client));
            client.send(&query(last));
            // What it leaves unread makes its end a reset.
            client.writer().peek(&mut [0]).expect("an answer");
            assert_eq!(cluster.psql(&database, &alive), "1");
            drop(client);
            until(last, || cluster.psql(&database, &alive) == "0");
            assert_eq!(tags(&other.query("UPDATE t SET v = v + 1")), "CZ", "{last}");
        }
        assert_eq!(rows(&other.query("SELECT v FROM t")), [[Some("3".to_string())]]);
    }
}

#[test]
fn a_reset_by_upstream_ends_its_client_and_no_other() {
    let (tell, told) = mpsc::channel();
    let healthy = |stream: &mut TcpStream| -> Vec<u8> {
        stream.write_all(&welcome()).expect("written");
        for _ in 0..3 {
            tls::read_until(stream, 'Q');
            stream.write_all(&answer().concat()).expect("written");
        }
        Vec::new()
    };
    // What these leave unread makes their ends resets: of a session that is idle, and of one that waits.
    let idle = move |stream: &mut TcpStream| -> Vec<u8> {
        stream.write_all(&welcome()).expect("written");
        stream.peek(&mut [0]).expect("a query");
        stream.write_all(&answer().concat()).expect("written");
        told.recv().expect("the client has its answer");
        Vec::new()
    };
    let busy = |stream: &mut TcpStream| -> Vec<u8> {
        stream.write_all(&welcome()).expect("written");
        stream.peek(&mut [0]).expect("a query");
        Vec::new()
    };
    let scripts: Vec<Script> = vec![Box::new(healthy), Box::new(idle), Box::new(busy)];
    let server = fakes(scripts);
    let freshet = server.relay();
    let log_in = || {
        let mut client = RawClient::connect(freshet.port());
        client.start_up(&[("user", "u")]);
        assert_eq!(tags(&client.read_until('Z')), "RZ");
        client
    };
    let mut other = log_in();
    assert_eq!(tags(&other.query("SELECT 7")), "TDCZ");
    let mut client = log_in();
    assert_eq!(tags(&client.query("SELECT 7")), "TDCZ");
    tell.send(()).expect("it waits");
    assert_eq!(client.read_to_end(), b"");
    assert_eq!(tags(&other.query("SELECT 7")), "TDCZ");
    let mut client = log_in();
    client.send(&query("SELECT 7"));
    assert_eq!(client.read_to_end(), b"");
    assert_eq!(tags(&other.query("SELECT 7")), "TDCZ");
    server.ended();
}

#[test]
fn an_idle_session_that_is_terminated_is_told_so_and_no_other_ends() {
    let cluster = Cluster::shared();
    for (database, freshet) in with_a_row() {
        let mut other = RawClient::log_in(freshet.port(), &database);
        for last in ["SELECT count(*) FROM t", "BEGIN", "SELECT 1/0"] {
            let [expected, got] = [cluster.port(), freshet.port()].map(|port| {
                let mut client = RawClient::log_in(port, &database);
                client.query(last);
                let terminate = format!("SELECT pg_terminate_backend({})", process_id(&client));
                assert_eq!(cluster.psql(&database, &terminate), "t");
                client.read_to_end()
            });
            assert_eq!(shown(&got), shown(&expected), "{last}");
            assert!(shown(&got).contains("57P01"), "{last}: {}", shown(&got));
            assert_eq!(rows(&other.query("SELECT count(*) FROM t")), [[Some("1".to_string())]]);
        }
    }
}
