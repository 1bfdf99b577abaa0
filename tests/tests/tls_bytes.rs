//! TLS byte for byte: direct TLS, requests in any order, what somebody slips in, cancel, limits.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use freshet_tests::certificates::{Certificates, ssl_answer};
use freshet_tests::client::{RawClient, message, query, rows, tags};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::programs::psql;
use freshet_tests::tls::{cluster, connection, dial, over_tls, read_until, relay, show, start_up};

/// The certificate that freshet shows at this moment.
fn shown_by(port: u16) -> Vec<u8> {
    let mut direct = over_tls(dial(port), &[b"postgresql"]);
    direct.write_all(&start_up()).expect("written");
    read_until(&mut direct, 'Z');
    direct.conn.peer_certificates().expect("one at least")[0].to_vec()
}

#[test]
fn direct_tls_needs_the_application_protocol() {
    let freshet = relay("sslmode=disable", |settings| show(settings, "server"));
    let mut direct = over_tls(dial(freshet.port()), &[b"postgresql"]);
    direct.write_all(&start_up()).expect("written");
    assert_eq!(read_until(&mut direct, 'Z').first().map(|message| message.tag), Some('R'));
    assert_eq!(direct.conn.alpn_protocol(), Some(&b"postgresql"[..]));
    direct.write_all(&query("SELECT 1")).expect("written");
    assert_eq!(tags(&read_until(&mut direct, 'Z')), "TDCZ");
    for alpn in [&[][..], &[&b"http/1.1"[..]]] {
        let mut refused = over_tls(dial(freshet.port()), alpn);
        let mut answer = Vec::new();
        let _ = refused.write_all(&start_up()).and_then(|()| refused.read_to_end(&mut answer).map(drop));
        assert_eq!(answer, b"", "no session without ALPN");
    }
    // Without a certificate a TLS hello is no packet of the protocol: closed without a word.
    let plain = relay("sslmode=disable", |_| {});
    let mut stream = dial(plain.port());
    stream.write_all(&[0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]).expect("written");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer, b"");
}

#[test]
fn encryption_is_asked_for_in_either_order_and_once() {
    let ssl_request = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];
    let gssenc_request = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x30];
    let with = relay("sslmode=disable", |settings| show(settings, "server"));
    let without = relay("sslmode=disable", |_| {});
    assert_eq!((ssl_answer(with.port()), ssl_answer(without.port())), (b'S', b'N'));
    for order in [[ssl_request, gssenc_request], [gssenc_request, ssl_request]] {
        let mut client = RawClient::connect(without.port());
        for request in order {
            client.send(&request);
            assert_eq!(client.read_byte(), b'N');
        }
        client.send(&start_up());
        assert_eq!(client.read_until('Z').last().map(|message| message.tag), Some('Z'));
    }
    for request in [ssl_request, gssenc_request] {
        let mut client = RawClient::connect(without.port());
        client.send(&request);
        assert_eq!(client.read_byte(), b'N');
        client.send(&request);
        assert!(String::from_utf8_lossy(&client.read_to_end()).contains("unsupported frontend protocol"));
    }
    // GSSENC, then TLS; inside it nothing more can be asked for.
    let mut stream = dial(with.port());
    let mut answer = [0];
    for (request, expected) in [(gssenc_request, b'N'), (ssl_request, b'S')] {
        stream.write_all(&request).expect("written");
        stream.read_exact(&mut answer).expect("a byte");
        assert_eq!(answer[0], expected);
    }
    let mut inside = over_tls(stream, &[b"postgresql"]);
    inside.write_all(&ssl_request).expect("written");
    let refused = read_until(&mut inside, 'E');
    assert!(String::from_utf8_lossy(&refused[0].body).contains("1234.5679"), "{refused:?}");
}

#[test]
fn bytes_slipped_in_behind_a_request_end_the_connection() {
    let ssl_request = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];
    let slipped = [&ssl_request[..], &start_up(), &query("SELECT 1")].concat();
    let with = relay("sslmode=disable", |settings| show(settings, "server"));
    let mut client = RawClient::connect(with.port());
    client.send(&slipped);
    let answer = client.read_to_end();
    assert!(!answer.starts_with(b"S") && !answer.contains(&b'Z'), "{answer:?}");
    assert!(String::from_utf8_lossy(&answer).contains("received unencrypted data after SSL request"));
    // Without TLS as PostgreSQL without TLS: the fields that people see are the same.
    let plain = Cluster::shared();
    let without = Freshet::relay(&plain.url("postgres"));
    let [direct, relayed] = [plain.port(), without.port()].map(|port| {
        let mut client = RawClient::connect(port);
        client.send(&slipped);
        assert_eq!(client.read_byte(), b'N');
        let error = client.read_until('E').pop().expect("an error");
        ['S', 'C', 'M', 'D'].map(|code| freshet::wire::error::field(&error.body, code as u8).map(<[u8]>::to_vec))
    });
    assert_eq!(direct, relayed);
}

#[test]
fn bytes_slipped_in_behind_upstreams_answer_end_the_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let server = std::thread::spawn(move || {
        let mut seen = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut request = [0; 8];
            // freshet's own connections may end before they say anything; eight zeros end the test.
            if stream.read_exact(&mut request).is_err() {
                continue;
            }
            if request == [0; 8] {
                break;
            }
            let mut answer = vec![b'S'];
            answer.extend(message(b'R', &[0, 0, 0, 0]));
            answer.extend(message(b'Z', b"I"));
            stream.write_all(&answer).expect("written");
            let _ = stream.read_to_end(&mut seen);
        }
        seen
    });
    let url = format!("postgres://u@127.0.0.1:{port}/d?sslmode=require");
    let freshet = Freshet::relay(&url);
    let mut client = RawClient::connect(freshet.port());
    client.start_up(&[("user", "somebody_else")]);
    let answer = client.read_until('E');
    assert_eq!(tags(&answer), "E", "{answer:?}");
    assert!(String::from_utf8_lossy(&answer[0].body).contains("08001"));
    drop(freshet);
    // Whichever of the two connections carried the session: its start-up packet never left.
    let mut end = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    end.write_all(&[0; 8]).expect("written");
    let seen = server.join().expect("no panic");
    assert!(!String::from_utf8_lossy(&seen).contains("somebody_else"));
}

#[test]
fn a_cancel_request_comes_over_tls() {
    let freshet = relay("sslmode=require", |settings| show(settings, "server"));
    for is_direct in [false, true] {
        let mut sleeper = RawClient::log_in(freshet.port(), "postgres");
        sleeper.send(&query("SELECT pg_sleep(30)"));
        while cluster().psql(
            "postgres",
            "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(30)' AND state = 'active'",
        ) != "1"
        {}
        let mut stream = dial(freshet.port());
        if !is_direct {
            stream.write_all(&[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f]).expect("written");
            let mut answer = [0];
            stream.read_exact(&mut answer).expect("a byte");
            assert_eq!(answer, [b'S']);
        }
        let mut canceller = over_tls(stream, &[b"postgresql"]);
        let mut packet = vec![0, 0, 0, 16, 4, 0xd2, 0x16, 0x2e];
        packet.extend(&sleeper.key);
        canceller.write_all(&packet).expect("written");
        let mut rest = Vec::new();
        canceller.read_to_end(&mut rest).expect("closed as TLS closes");
        assert_eq!(rest, b"");
        let messages = sleeper.read_until('Z');
        assert_eq!(tags(&messages), "TEZ");
        assert!(String::from_utf8_lossy(&messages[1].body).contains("57014"));
    }
}

#[test]
fn a_pipelining_client_over_tls_does_not_block() {
    let freshet = relay("sslmode=require", |settings| show(settings, "server"));
    let mut direct = over_tls(dial(freshet.port()), &[b"postgresql"]);
    direct.write_all(&start_up()).expect("written");
    read_until(&mut direct, 'Z');
    // More than all buffers between hold: the replies wait in TLS and must come without another question.
    let statement = query("SELECT repeat('x', 300000)");
    for _ in 0..20 {
        direct.write_all(&statement).expect("freshet goes on reading");
    }
    for _ in 0..20 {
        let messages = read_until(&mut direct, 'Z');
        assert_eq!(rows(&messages)[0][0].as_ref().map(String::len), Some(300_000));
    }
}

#[test]
fn a_renewed_certificate_is_taken_on_sighup() {
    let certificates = Certificates::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str| {
        std::fs::copy(certificates.certificate(name), folder.path().join("crt")).expect("copied");
        std::fs::copy(certificates.key(name), folder.path().join("key")).expect("copied");
    };
    put("server");
    let freshet = relay("sslmode=disable", |settings| {
        settings.listen.tls_certificate = Some(folder.path().join("crt"));
        settings.listen.tls_key = Some(folder.path().join("key"));
    });
    assert_eq!(shown_by(freshet.port()), certificates.der("server"));
    // The handler is this process's; without it the signal would end the tests.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _own = runtime.block_on(async { tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) });
    let hang_up = || {
        let sent = std::process::Command::new("kill").args(["-HUP", &std::process::id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    };
    // What cannot be used changes nothing.
    std::fs::write(folder.path().join("crt"), "no certificate").expect("written");
    hang_up();
    put("renewed");
    let limit = Instant::now() + Duration::from_secs(20);
    while shown_by(freshet.port()) != certificates.der("renewed") {
        assert!(Instant::now() < limit, "the certificate stays the same");
        hang_up();
    }
}

#[test]
fn what_the_url_names_is_read_again_on_hangup() {
    // Without TLS for clients: the signal must not end freshet there.
    let certificates = Certificates::shared();
    let folder = tempfile::tempdir().expect("a folder");
    let (crt, key) = (folder.path().join("crt"), folder.path().join("key"));
    let put = |name: &str| {
        std::fs::copy(certificates.certificate(name), &crt).expect("copied");
        std::fs::copy(certificates.key(name), &key).expect("copied");
    };
    put("alone");
    let query = format!("sslmode=require&sslcert={}&sslkey={}", crt.display(), key.display());
    let freshet = relay(&query, |settings| settings.listen.allow_passwordless_upstream = true);
    let local = connection(freshet.port(), "login_cert", "");
    assert!(psql(&local, "SELECT 1").is_err(), "a certificate of nobody's");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _own = runtime.block_on(async { tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) });
    put("client");
    let limit = Instant::now() + Duration::from_secs(20);
    while psql(&local, "SELECT 1").is_err() {
        assert!(Instant::now() < limit, "the certificate stays the same");
        let sent = std::process::Command::new("kill").args(["-HUP", &std::process::id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }
}

#[test]
fn logging_in_takes_no_longer_than_the_limit_also_inside_tls() {
    let freshet = relay("sslmode=disable", |settings| {
        show(settings, "server");
        settings.listen.login_timeout_ms = 300;
    });
    let started = Instant::now();
    // Silent at once, silent after the answer, silent inside TLS.
    let silent = dial(freshet.port());
    let mut asked = dial(freshet.port());
    asked.write_all(&[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f]).expect("written");
    let mut inside = over_tls(dial(freshet.port()), &[b"postgresql"]);
    inside.flush().expect("the hello is sent");
    for mut stream in [silent, asked, inside.sock] {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert!(started.elapsed() >= Duration::from_millis(250) && started.elapsed() < Duration::from_secs(10));
}
