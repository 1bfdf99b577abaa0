//! The start-up phase, byte for byte: what upstream gets is what the client sent, and the other way round.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use freshet_config::TableChoice;
use freshet_tests::client::{RawClient, message, query, rows, tags};
use freshet_tests::cluster::{Cluster, LOGIN_MD5, LOGIN_SCRAM};
use freshet_tests::fake::{fake, welcome};
use freshet_tests::freshet::Freshet;

/// A start-up packet of any version, with any bytes behind it.
fn packet(version: u32, body: &[u8]) -> Vec<u8> {
    let mut packet = (8 + body.len() as u32).to_be_bytes().to_vec();
    packet.extend(version.to_be_bytes());
    packet.extend(body);
    packet
}

const V3_0: u32 = 3 << 16;
const V3_2: u32 = 3 << 16 | 2;
/// What libpq sends to keep servers used to numbers that they do not know.
const V3_9999: u32 = 3 << 16 | 9999;

/// Everything that comes back up to ReadyForQuery or the end, but for what differs between any two sessions: the key,
/// and the salt that is asked with.
fn answer(port: u16, packet: &[u8]) -> Vec<(char, Vec<u8>)> {
    let mut client = RawClient::connect(port);
    let _ = client.try_send(packet);
    let messages = client.read_until('Z');
    let shown = messages.into_iter().map(|message| match message.tag {
        'K' => ('K', vec![0; message.body.len()]),
        tag => (tag, message.body),
    });
    shown.collect()
}

#[test]
fn every_kind_of_packet_is_answered_as_upstream_answers_it() {
    let cluster = Cluster::shared();
    let modes: [fn(&str) -> Freshet; 2] = [Freshet::relay, |url| Freshet::start(url, |_| {})];
    let long = format!("user\0postgres\0application_name\0{}\0\0", "x".repeat(9_000));
    let packets: Vec<(&str, Vec<u8>)> = vec![
        ("3.0", packet(V3_0, b"user\0postgres\0database\0postgres\0\0")),
        ("3.2", packet(V3_2, b"user\0postgres\0database\0postgres\0\0")),
        ("3.9999", packet(V3_9999, b"user\0postgres\0database\0postgres\0\0")),
        (
            "3.9999 with an option that nobody knows",
            packet(V3_9999, b"user\0postgres\0_pq_.test_protocol_negotiation\0\0_pq_.other\0x\0\0"),
        ),
        ("an option of the protocol under 3.0", packet(V3_0, b"user\0postgres\0_pq_.report_parameters\0role\0\0")),
        ("no database", packet(V3_0, b"user\0postgres\0\0")),
        ("an empty database", packet(V3_0, b"user\0postgres\0database\0\0\0")),
        ("a database that is not there", packet(V3_0, b"user\0postgres\0database\0nowhere\0\0")),
        ("no user", packet(V3_0, b"database\0postgres\0\0")),
        ("nothing", packet(V3_0, b"\0")),
        ("a user that is not there", packet(V3_0, b"user\0nobody\0\0")),
        ("options", packet(V3_0, b"user\0postgres\0options\0-c geqo=off -c work_mem=1\\ MB\0\0")),
        ("options as settings", packet(V3_0, b"user\0postgres\0options\0--DateStyle=SQL\\,\\ DMY\0\0")),
        ("a setting", packet(V3_0, b"user\0postgres\0extra_float_digits\x000\0search_path\0a, b\0\0")),
        ("a setting that is not there", packet(V3_0, b"user\0postgres\0no_such_setting\x001\0\0")),
        ("a setting of an extension", packet(V3_0, b"user\0postgres\0my.own\x001\0\0")),
        ("twice", packet(V3_0, b"user\0nobody\0user\0postgres\0database\0postgres\0\0")),
        ("no UTF-8", packet(V3_0, b"user\0postgres\0application_name\0caf\xe9\0\0")),
        ("another encoding", packet(V3_0, b"user\0postgres\0client_encoding\0LATIN1\0\0")),
        ("long", packet(V3_0, long.as_bytes())),
        ("no end", packet(V3_0, b"user\0postgres\0database\0postgres")),
        ("rubbish behind the end", packet(V3_0, b"user\0postgres\0\0rubbish")),
        ("4.0", packet(4 << 16, b"user\0postgres\0\0")),
        ("not a boolean", packet(V3_0, b"user\0postgres\0replication\0perhaps\0\0")),
    ];
    for start in modes {
        let freshet = start(&cluster.url("postgres"));
        for (name, packet) in &packets {
            let (direct, relayed) = (answer(cluster.port(), packet), answer(freshet.port(), packet));
            assert_eq!(direct, relayed, "{name}");
            assert!(!direct.is_empty(), "{name}");
        }
    }
}

#[test]
fn packets_of_an_impossible_length_are_closed_without_a_word() {
    let cluster = Cluster::shared();
    let freshet = Freshet::relay(&cluster.url("postgres"));
    let with_length = |length: u32, bytes: usize| {
        let mut packet = length.to_be_bytes().to_vec();
        packet.extend(V3_0.to_be_bytes());
        packet.resize(bytes, 0);
        packet
    };
    for (length, bytes) in [(0, 8), (3, 8), (7, 8), (10_005, 10_005), (u32::MAX, 64), (0x8000_0000, 64)] {
        for port in [cluster.port(), freshet.port()] {
            let mut client = RawClient::connect(port);
            let _ = client.try_send(&with_length(length, bytes));
            assert_eq!(client.read_to_end(), b"", "{length}");
        }
    }
    // One byte less is PostgreSQL's own limit, and is passed on.
    let body = packet(V3_0, &[&b"user\0postgres\0application_name\0"[..], &[b'y'; 9_963], b"\0\0"].concat());
    assert_eq!(body.len(), 10_004);
    let tags = |answer: Vec<(char, Vec<u8>)>| answer.iter().map(|(tag, _)| *tag).collect::<String>();
    assert_eq!(tags(answer(freshet.port(), &body)), tags(answer(cluster.port(), &body)));
    assert!(tags(answer(freshet.port(), &body)).ends_with('Z'));
}

#[test]
fn an_answer_that_is_none_is_refused_by_upstream() {
    let cluster = Cluster::shared();
    let freshet = Freshet::relay(&cluster.url("postgres"));
    for role in [LOGIN_MD5, LOGIN_SCRAM] {
        for reply in
            [query("SELECT 1"), message(b'p', &[b'x'; 70_000]), b"p\0\0\0\0".to_vec(), message(b'p', b"wrong\0")]
        {
            let [direct, relayed] = [cluster.port(), freshet.port()].map(|port| {
                let mut client = RawClient::connect(port);
                client.start_up(&[("user", role), ("database", "postgres")]);
                assert_eq!(client.read_until('R').len(), 1);
                let started = Instant::now();
                let _ = client.try_send(&reply);
                let answer = client.read_to_end();
                assert!(started.elapsed() < Duration::from_secs(10), "refused at once");
                answer
            });
            assert_eq!(direct, relayed, "{role} {:?}", &reply[..5]);
        }
    }
}

#[test]
fn keys_of_every_length_are_passed_and_named_by_cancel_requests() {
    for length in [None, Some(4), Some(8), Some(32), Some(256)] {
        let key: Vec<u8> = (0..length.unwrap_or(0)).map(|i| i as u8).collect();
        let mut greeting = message(b'v', &[&V3_2.to_be_bytes()[..], &[0, 0, 0, 1], b"_pq_.x\0"].concat());
        greeting.extend(message(b'R', &[0; 4]));
        greeting.extend(message(b'S', b"server_version\x0019\0"));
        if length.is_some() {
            greeting.extend(message(b'K', &[&[0, 0, 0, 77], &key[..]].concat()));
        }
        greeting.extend(message(b'Z', b"I"));
        let expected = greeting.clone();
        let server = fake(move |stream| {
            stream.write_all(&greeting).expect("written");
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            rest
        });
        let freshet = server.relay();
        let sent = packet(V3_9999, b"user\0u\0_pq_.x\0\0\0");
        let mut client = RawClient::connect(freshet.port());
        client.send(&sent);
        let mut seen = Vec::new();
        for received in client.read_until('Z') {
            seen.extend(message(received.tag as u8, &received.body));
        }
        assert_eq!(seen, expected);
        drop(client);
        drop(freshet);
        assert_eq!(server.ended()[0].0, sent);
    }
    for length in [0, 4, 32, 256, 9_000] {
        let server = fake(|_| Vec::new());
        let freshet = server.relay();
        let request = [&80_877_102u32.to_be_bytes()[..], &[0, 0, 0, 77], &vec![7; length]].concat();
        let request = [&(request.len() as u32 + 4).to_be_bytes()[..], &request].concat();
        let mut canceller = RawClient::connect(freshet.port());
        canceller.send(&request);
        assert_eq!(canceller.read_to_end(), b"");
        // Upstream had closed by then, so it had the packet.
        assert_eq!(server.ended()[0].0, request);
    }
}

/// A postmaster that is out of processes does not speak protocol 3.
#[test]
fn what_upstream_says_before_it_has_a_process_is_passed_on() {
    const SAID: &[u8] = b"Ecould not fork new process for connection: Resource temporarily unavailable\n\0";
    let server = fake(|stream| {
        stream.write_all(SAID).expect("written");
        Vec::new()
    });
    let freshet = server.relay();
    let mut client = RawClient::connect(freshet.port());
    client.send(&packet(V3_0, b"user\0u\0\0"));
    assert_eq!(client.read_to_end(), SAID);
}

#[test]
fn the_end_of_a_cancel_request_waits_for_upstreams() {
    let server = fake(|stream| {
        std::thread::sleep(Duration::from_millis(300));
        let _ = stream.shutdown(std::net::Shutdown::Both);
        Vec::new()
    });
    let freshet = server.relay();
    let mut canceller = RawClient::connect(freshet.port());
    let started = Instant::now();
    canceller.send(&[0, 0, 0, 16, 4, 0xd2, 0x16, 0x2e, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!(canceller.read_to_end(), b"");
    assert!(started.elapsed() >= Duration::from_millis(250));
}

#[test]
fn tokens_of_gssapi_and_sspi_and_methods_that_nobody_knows_are_passed_on() {
    for method in [7u32, 9, 2, 99] {
        let challenge = message(b'R', &method.to_be_bytes());
        let further = message(b'R', &[&8u32.to_be_bytes()[..], b"server's token \0\xff"].concat());
        let (first, second, last) = (challenge.clone(), further.clone(), welcome());
        let token = message(b'p', b"client's token \0\xff");
        let expected = token.len();
        let server = fake(move |stream| {
            let mut tokens = vec![0; 2 * expected];
            stream.write_all(&first).expect("written");
            stream.read_exact(&mut tokens[..expected]).expect("a token");
            stream.write_all(&second).expect("written");
            stream.read_exact(&mut tokens[expected..]).expect("another");
            stream.write_all(&last).expect("written");
            let _ = stream.read_to_end(&mut Vec::new());
            tokens
        });
        let freshet = server.relay();
        let mut client = RawClient::connect(freshet.port());
        client.start_up(&[("user", "u")]);
        for asked in [&challenge, &further] {
            let received = client.read_message().expect("a challenge");
            assert_eq!(&message(received.tag as u8, &received.body), asked);
            client.send(&token);
        }
        assert_eq!(tags(&client.read_until('Z')), "RZ");
        drop((client, freshet));
        assert_eq!(server.ended()[0].1, [&token[..], &token].concat());
    }
}

/// As `printf ... | nc -N` does: all that it has to say, then its end.
#[test]
fn a_client_that_ends_its_side_before_it_is_logged_in_is_served_still() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE h (v int)");
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let said = |port| {
        let mut client = RawClient::connect(port);
        client.start_up(&[("user", "postgres"), ("database", &database)]);
        client.send(&[query("INSERT INTO h VALUES (1)"), query("SELECT count(*) > 0 FROM h")].concat());
        client.close_write();
        tags(&std::iter::from_fn(|| client.read_message()).collect::<Vec<_>>())
    };
    for port in [cluster.port(), freshet.port()] {
        assert!(said(port).ends_with("ZCZTDCZ"), "{}", said(port));
    }
    // One that is asked for its password has none to give, and one that has said nothing wants nothing.
    for (user, sent) in [(LOGIN_SCRAM, query("SELECT 1")), ("postgres", Vec::new())] {
        let mut ended = RawClient::connect(freshet.port());
        ended.start_up(&[("user", user), ("database", "postgres")]);
        ended.send(&sent);
        ended.close_write();
        let said = tags(&std::iter::from_fn(|| ended.read_message()).collect::<Vec<_>>());
        assert!(!said.contains('D'), "{said}");
    }
}

#[test]
fn a_client_that_says_nothing_is_closed_after_the_limit() {
    let cluster = Cluster::shared();
    let freshet = Freshet::start(&cluster.url("postgres"), |settings| settings.listen.login_timeout_ms = 300);
    let silent = RawClient::connect(freshet.port());
    let mut half = RawClient::connect(freshet.port());
    half.send(&[0, 0, 0, 50, 0, 3]);
    let mut asked = RawClient::connect(freshet.port());
    asked.start_up(&[("user", LOGIN_SCRAM), ("database", "postgres")]);
    asked.read_until('R');
    let mut logged_in = RawClient::log_in(freshet.port(), "postgres");
    for mut client in [silent, half, asked] {
        assert_eq!(client.read_to_end(), b"");
    }
    assert_eq!(tags(&logged_in.query("SELECT 1")), "TDCZ");
}

#[test]
fn connections_that_say_nothing_are_bounded() {
    let cluster = Cluster::shared();
    let freshet = Freshet::start(&cluster.url("postgres"), |settings| {
        settings.mirror.tables = TableChoice::None;
        settings.listen.sessions_max = 2;
    });
    let mut sessions: Vec<_> = (0..2).map(|_| RawClient::log_in(freshet.port(), "postgres")).collect();
    let mut third = RawClient::connect(freshet.port());
    third.start_up(&[("user", "postgres")]);
    assert!(String::from_utf8_lossy(&third.read_to_end()).contains("53300"));
    // Twice the sessions and sixteen more; the others are closed at once.
    let silent: Vec<_> = (0..18).map(|_| RawClient::connect(freshet.port())).collect();
    let mut refused = RawClient::connect(freshet.port());
    assert_eq!(refused.read_to_end(), b"");
    assert_eq!(tags(&sessions[0].query("SELECT 1")), "TDCZ");
    drop(silent);
    // A place that was given back is free.
    sessions.pop();
    let limit = Instant::now() + Duration::from_secs(20);
    loop {
        let mut again = RawClient::connect(freshet.port());
        again.start_up(&[("user", "postgres")]);
        if tags(&again.read_until('Z')).ends_with('Z') {
            break;
        }
        assert!(Instant::now() < limit, "no place is free again");
    }
}

#[test]
fn who_is_not_logged_in_is_not_waited_for_at_shutdown() {
    let cluster = Cluster::shared();
    let freshet = Freshet::start(&cluster.url("postgres"), |settings| settings.listen.drain_timeout_ms = 60_000);
    let mut silent = RawClient::connect(freshet.port());
    let mut asked = RawClient::connect(freshet.port());
    asked.start_up(&[("user", "login_scram"), ("database", "postgres")]);
    assert_eq!(asked.read_message().map(|message| message.tag), Some('R'));
    freshet.drain();
    // Reading has a limit of its own, which is shorter than the drain.
    assert!(silent.read_to_end().is_empty());
    assert!(asked.read_to_end().is_empty());
}

#[test]
fn a_password_is_in_no_text_that_leaves_freshet() {
    // A server that cannot be reached, one that refuses, and a wrong URL: what is told never has the password.
    use freshet::upstream::{address::UpstreamAddress, connection::Connection, service::ServicePool};
    let cluster = Cluster::shared();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for url in [
            "postgres://u:hunter2@127.0.0.1:1/d".to_string(),
            format!("postgres://login_scram:hunter2@127.0.0.1:{}/postgres", cluster.port()),
            format!("postgres://login_md5:hunter2@127.0.0.1:{}/postgres?sslmode=require", cluster.port()),
        ] {
            let address = UpstreamAddress::parse(&url).expect("an address");
            let mut told = vec![format!("{address} {address:?}")];
            told.push(Connection::open(&address, &[]).await.err().expect("refused").to_string());
            let pool = ServicePool::new(&address, 1).expect("a pool");
            told.push(pool.connection().await.expect_err("refused").to_string());
            assert!(!told.iter().any(|text| text.contains("hunter2")), "{told:?}");
        }
        for url in
            ["postgres://u:hunter2@h:port/d", "postgres://u:hunter2@h/d?nosuch=1", "postgres://u:hunter2@h/d?sslmode=x"]
        {
            let told = UpstreamAddress::parse(url).expect_err("wrong").to_string();
            assert!(!told.contains("hunter2"), "{told}");
        }
    });
}

/// A program that has a connection string and nothing else.
#[test]
fn freshets_own_settings_are_read_from_the_start_up_packet() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let open = |more: &[(&str, &str)]| {
        let mut client = RawClient::connect(freshet.port());
        client.start_up(&[&[("user", "postgres"), ("database", &*database)], more].concat());
        assert!(client.read_until('Z').iter().all(|message| message.tag != 'E'), "{more:?}");
        client
    };
    let shown = |client: &mut RawClient, name: &str| {
        let reply = client.query(&format!("SHOW freshet.{name}"));
        rows(&reply).into_iter().next().and_then(|row| row[0].clone()).expect("a value")
    };
    let mut client = open(&[("options", "-c freshet.freshness=session -c freshet.route=relay")]);
    assert_eq!((shown(&mut client, "freshness").as_str(), shown(&mut client, "route").as_str()), ("session", "relay"));
    // What RESET gives back, and DISCARD ALL.
    for reset in ["RESET freshet.route", "DISCARD ALL", "RESET ALL"] {
        client.query("SET freshet.route = local");
        assert_eq!(shown(&mut client, "route"), "local");
        client.query(reset);
        assert_eq!(shown(&mut client, "route"), "relay", "{reset}");
    }
    let mut client = open(&[("freshet.freshness", "session"), ("freshet.snapshot_strict", "on")]);
    assert_eq!(shown(&mut client, "freshness"), "session");
    assert_eq!(shown(&mut client, "snapshot_strict"), "on");
    // What is none counts for nothing, as upstream takes it for an extension's.
    let mut client = open(&[("freshet.freshness", "stale"), ("freshet.what", "1")]);
    assert_eq!(shown(&mut client, "freshness"), "exact");
}
