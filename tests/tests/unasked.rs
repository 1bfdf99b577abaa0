//! What upstream says unasked (PostgreSQL: Asynchronous Operations) reaches clients that only read, and those that
//! are answered here.

use std::io::{Read, Write};
use std::sync::mpsc;

use freshet_config::FreshnessMode;
use freshet_tests::client::{RawClient as WireClient, message, rows, tags};
use freshet_tests::cluster::Cluster;
use freshet_tests::fake::{fake, welcome};
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::{RawClient, RawReply};
use freshet_tests::world::{World, settle, until};

#[test]
fn what_comes_unasked_reaches_a_client_that_only_reads() {
    let notice = message(b'N', b"SNOTICE\0VNOTICE\0C00000\0Mhello\0\0");
    let status = message(b'S', b"TimeZone\0Asia/Tokyo\0");
    let notification = message(b'A', b"\0\0\0\x07news\0extra\0");
    // Each comes with half of the next.
    let pieces =
        [[&notice[..], &status[..9]].concat(), [&status[9..], &notification[..9]].concat(), notification[9..].to_vec()];
    let (tell, told) = mpsc::channel();
    let server = fake(move |stream| {
        stream.write_all(&welcome()).expect("written");
        for piece in &pieces {
            told.recv().expect("the client reads");
            stream.write_all(piece).expect("written");
        }
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        rest
    });
    let freshet = server.relay();
    let mut client = WireClient::connect(freshet.port());
    client.start_up(&[("user", "u")]);
    assert_eq!(tags(&client.read_until('Z')), "RZ");
    for expected in [notice, status, notification] {
        tell.send(()).expect("upstream waits");
        let got = client.read_message().expect("a message");
        assert_eq!(message(got.tag as u8, &got.body), expected);
    }
    drop((client, freshet));
    assert_eq!(server.ended()[0].1, b"");
}

/// Whoever listens is answered by upstream.
#[test]
fn notifications_come_between_statements_while_a_session_listens() {
    let world = World::start(FreshnessMode::Exact, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let mut client = WireClient::log_in(world.freshet.port(), &world.database);
    // Nothing stands between the messages of an answer; the route.
    let read = |client: &mut WireClient| {
        assert_eq!(tags(&client.query("SELECT count(*) FROM t")), "TDCZ");
        rows(&client.query("SHOW freshet.last")).remove(0).remove(0).expect("a route")
    };
    until("it is answered here", || read(&mut client) != "relay");
    assert_eq!(tags(&client.query("LISTEN news")), "CZ");
    for payload in ["one", "two", "three"] {
        world.past(&format!("NOTIFY news, '{payload}'"));
        let told = client.read_message().expect("a notification");
        assert_eq!((told.tag, &told.body[4..]), ('A', format!("news\0{payload}\0").as_bytes()));
        assert_eq!(read(&mut client), "relay");
    }
    assert_eq!(tags(&client.query("UNLISTEN news")), "CZ");
    until("it is answered here again", || read(&mut client) != "relay");
    world.past("NOTIFY news, 'four'");
    read(&mut client);
}

/// A session of PostgreSQL's reads its configuration again when its next message comes. Here that is one of freshet's.
#[test]
fn a_setting_that_is_reloaded_is_told_to_a_session_that_is_answered_here() {
    // Its own: what is set is set for every database.
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    let setup = "CREATE TABLE t (id int PRIMARY KEY, at timestamptz); INSERT INTO t VALUES (1, '2024-07-01 12:00+00')";
    cluster.psql(&database, setup);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut client = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let sql = "SELECT at FROM t";
    for (zone, expected) in [("Asia/Tokyo", "2024-07-01 21:00:00+09"), ("America/New_York", "2024-07-01 08:00:00-04")] {
        settle(&mut client, sql);
        cluster.psql("postgres", &format!("ALTER SYSTEM SET TimeZone = '{zone}'"));
        cluster.reload();
        let status = format!("TimeZone\0{zone}\0").into_bytes();
        let is_status = |reply: &RawReply| reply.bodies(b'S').contains(&&status[..]);
        let mut is_told = false;
        until("it is told, and answers are by it", || {
            let reply = client.simple(sql).expect("answers");
            let is_by_it = reply.text() == expected;
            // It may come with either reply.
            is_told |= is_status(&reply);
            assert!(is_told || !is_by_it, "{zone}: the client does not know how to read this");
            let last = client.simple("SHOW freshet.last").expect("answers");
            is_told |= is_status(&last);
            is_told && is_by_it && last.rows()[0][0].as_deref() != Some(b"relay")
        });
        assert_eq!(client.simple("SHOW TimeZone").expect("answers").text(), zone);
    }
}
