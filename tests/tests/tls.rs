//! TLS on both legs as people set it up: every sslmode, certificates, channel binding, the rules of pg_hba.conf.

use std::path::Path;

use freshet_config::{Settings, Sources, TableChoice};
use freshet_tests::certificates::Certificates;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::programs::{outcome, program, psql};
use freshet_tests::tls::{RULES, UPSTREAM_LEG, cluster, connection, relay, root, show};
use freshet_tests::world::until;

#[test]
fn psql_connects_in_every_sslmode_on_both_legs() {
    let ca = root("ca");
    for (of_upstream, upstream_has_tls) in [
        ("sslmode=disable".to_string(), "f"),
        ("sslmode=allow".to_string(), "f"),
        ("sslmode=prefer".to_string(), "t"),
        ("sslmode=require".to_string(), "t"),
        (format!("sslmode=verify-ca&{ca}"), "t"),
        (format!("sslmode=verify-full&{ca}"), "t"),
    ] {
        let freshet = relay(&of_upstream, |settings| show(settings, "server"));
        for (of_client, client_has_tls) in [
            ("sslmode=disable".to_string(), false),
            ("sslmode=allow".to_string(), false),
            ("sslmode=prefer".to_string(), true),
            ("sslmode=require".to_string(), true),
            (format!("sslmode=verify-ca {ca}"), true),
            (format!("sslmode=verify-full {ca}"), true),
        ] {
            let connection = connection(freshet.port(), "login_scram", &of_client);
            let seen = psql(&connection, UPSTREAM_LEG);
            assert_eq!(seen.as_deref(), Ok(upstream_has_tls), "{of_client}, upstream {of_upstream}");
            let told = psql(&connection, "\\conninfo").expect("connects");
            assert_eq!(told.contains("SSL connection"), client_has_tls, "{of_client}: {told}");
        }
    }
}

#[test]
fn every_method_of_authentication_works_over_tls() {
    let freshet = relay("sslmode=require", |settings| show(settings, "server"));
    for role in ["login_scram", "login_md5", "login_cleartext", "login_ssl", "postgres"] {
        for mode in ["require", "disable"] {
            let connection = connection(freshet.port(), role, &format!("sslmode={mode}"));
            assert_eq!(psql(&connection, "SELECT current_user").as_deref(), Ok(role));
            let wrong = connection.replace(&format!("password={role}"), "password=wrong");
            if role != "postgres" {
                let error = psql(&wrong, "SELECT 1").expect_err("the wrong password");
                assert!(error.contains("password authentication failed"), "{error}");
            }
        }
    }
}

#[test]
fn the_same_certificate_on_both_legs_binds_the_channel() {
    let freshet = relay("sslmode=require", |settings| show(settings, "server"));
    let bound = connection(freshet.port(), "login_scram", "sslmode=require channel_binding=require");
    assert_eq!(psql(&bound, "SELECT 1").as_deref(), Ok("1"));
    // Freshet's own log-in is bound as well where it must be.
    let url = format!("postgres://login_scram:login_scram@127.0.0.1:{}/postgres", cluster().port());
    let bound = format!("{url}?sslmode=require&channel_binding=require");
    assert!(own_log_in(&bound).is_ok());
    for (query, word) in [
        ("sslmode=disable&channel_binding=require", "needs TLS"),
        ("sslmode=require&channel_binding=require&user=login_md5", "channel_binding=require"),
    ] {
        let url = match query.contains("login_md5") {
            true => url.replace("login_scram", "login_md5"),
            false => url.clone(),
        };
        let error = own_log_in(&format!("{url}?{}", query.replace("&user=login_md5", ""))).expect_err("not bound");
        assert!(error.contains(word), "{query}: {error}");
    }
}

/// Freshet's own two ways to log in: its own connection, and the pool's.
fn own_log_in(url: &str) -> Result<(), String> {
    use freshet::upstream::{address::UpstreamAddress, connection::Connection, service::ServicePool};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let address = UpstreamAddress::parse(url).map_err(|error| error.to_string())?;
        let pooled = ServicePool::new(&address, 1).map_err(|error| error.to_string())?;
        let pooled = pooled.connection().await.map(drop).map_err(|error| error.to_string());
        let own = Connection::open(&address, &[]).await.map(drop).map_err(|error| error.to_string());
        assert_eq!(own.is_ok(), pooled.is_ok(), "{own:?} {pooled:?}");
        own
    })
}

#[test]
fn what_upstream_says_of_a_refused_log_in_is_told() {
    let rules = "host all login_md5 127.0.0.1/32 reject\nhostssl all login_scram 127.0.0.1/32 scram-sha-256\n";
    let closed = format!("{rules}host all guest 127.0.0.1/32 reject\nhost all nobody 127.0.0.1/32 trust\n");
    let clear = Cluster::start(&[]);
    let file = clear.directory().join("data/pg_hba.conf");
    let others = std::fs::read_to_string(&file).expect("readable");
    std::fs::write(&file, format!("{}{others}", closed.replace("hostssl", "host"))).expect("writable");
    clear.reload();
    let both = Cluster::start(&[]);
    Certificates::shared().use_in(&both, "server", &closed);
    for (cluster, role, words) in [
        (&clear, "guest", &["pg_hba.conf rejects connection", "no encryption"][..]),
        (&clear, "nobody", &["role \"nobody\" does not exist"]),
        (&both, "guest", &["pg_hba.conf rejects connection", "SSL encryption", "no encryption"]),
        (&both, "nobody", &["role \"nobody\" does not exist"]),
        (&both, "login_scram", &["password authentication failed", "no encryption"]),
    ] {
        for mode in ["", "?sslmode=allow", "?sslmode=prefer"] {
            // Where TLS is tried first and the password is wrong, there is no second attempt.
            let words = if mode.ends_with("prefer") && role == "login_scram" { &words[..1] } else { words };
            let url = format!("postgres://{role}:wrong@127.0.0.1:{}/postgres{mode}", cluster.port());
            until("the rules are in use", || own_log_in(&url).is_err());
            let error = own_log_in(&url).expect_err("refused");
            assert!(words.iter().all(|word| error.contains(word)), "{role} {mode}: {error}");
            assert!(!error.contains("does not offer TLS"), "{role} {mode}: {error}");
            if std::ptr::eq(cluster, &raw const clear) {
                let fatal = |port: u16| {
                    let told = psql(&connection(port, role, "sslmode=disable"), "SELECT 1").expect_err("refused");
                    told.split_once("FATAL: ").map(|(_, told)| told.trim().to_string())
                };
                assert_eq!(fatal(Freshet::relay(&url).port()), fatal(cluster.port()), "{role} {mode}");
            }
        }
    }
}

#[test]
fn other_rows_of_the_scram_matrix() {
    // Another certificate on each leg: what must fail, and what helps.
    let freshet = relay("sslmode=require", |settings| show(settings, "alone"));
    let at = |more: &str| psql(&connection(freshet.port(), "login_scram", more), "SELECT 1");
    let error = at("sslmode=require").expect_err("the certificates differ");
    assert!(error.contains("SCRAM channel binding check failed"), "{error}");
    assert_eq!(at("sslmode=require channel_binding=disable").as_deref(), Ok("1"));
    assert_eq!(at("sslmode=disable").as_deref(), Ok("1"));
    // Upstream's leg in the clear.
    let freshet = relay("sslmode=disable", |settings| show(settings, "alone"));
    let at = |more: &str| psql(&connection(freshet.port(), "login_scram", more), "SELECT 1");
    assert_eq!(at("sslmode=require").as_deref(), Ok("1"));
    let error = at("sslmode=require channel_binding=require").expect_err("there is nothing to bind to");
    assert!(error.contains("channel binding"), "{error}");
    // No certificate: PLUS is not offered to clients in the clear.
    let freshet = relay("sslmode=require", |_| {});
    let at = |more: &str| psql(&connection(freshet.port(), "login_scram", more), "SELECT 1");
    assert_eq!(at("sslmode=prefer").as_deref(), Ok("1"));
    let error = at("sslmode=require").expect_err("no certificate, no TLS");
    assert!(error.contains("server does not support SSL"), "{error}");
}

#[test]
fn check_tells_the_row_of_the_matrix() {
    let told = |query: &str, certificate: Option<&str>, required: bool| {
        let mut settings = Settings::default();
        settings.upstream.url = format!("{}?{query}", cluster().url("postgres"));
        settings.listen.tls_required = required;
        if let Some(name) = certificate {
            show(&mut settings, name);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let report = runtime.block_on(freshet::check::check(&settings)).expect("upstream answers");
        let lines =
            report.text.lines().filter(|line| line.contains("SCRAM") || line.contains("channel_binding=disable"));
        (lines.map(str::to_string).collect::<Vec<_>>().join("\n"), report.is_fine)
    };
    let (text, is_fine) = told("sslmode=disable", None, false);
    assert!(is_fine && text.contains("clients in the clear, upstream in the clear") && text.lines().count() == 1);
    let (text, is_fine) = told("sslmode=require", Some("server"), false);
    assert!(is_fine && text.contains("PLUS is not offered") && text.contains("the same certificate"), "{text}");
    // Nobody asks for TLS but the rule of this role.
    let (text, is_fine) = told("user=mirror_owner&password=mirror_owner", None, false);
    assert!(is_fine && text.contains("clients in the clear, upstream over TLS"), "{text}");
    let (text, is_fine) = told("sslmode=require", Some("alone"), true);
    assert!(!is_fine && text.contains("another certificate") && text.contains("mend: set listen.tls_certificate"));
}

#[test]
fn check_tells_of_keys_that_others_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    std::fs::copy(Certificates::shared().key("server"), &key).expect("copied");
    let mut settings = Settings::default();
    settings.upstream.url = cluster().url("postgres");
    show(&mut settings, "server");
    settings.listen.tls_key = Some(key.clone());
    let told = |mode: u32| {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("our file");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(freshet::check::check(&settings)).expect("upstream answers").text
    };
    assert!(!told(0o600).contains("private key"));
    let text = told(0o644);
    assert!(text.contains("private key that others can get at (mode 0644)") && text.contains("chmod 600"), "{text}");
}

#[test]
fn upstreams_certificate_is_judged_as_libpq_judges_it() {
    // Each cluster shows one certificate; direct psql is the reference.
    for (name, cases) in [
        ("server", [("ca", "verify-full", true), ("stranger", "verify-ca", false), ("stranger", "require", false)]),
        ("elsewhere", [("ca", "verify-ca", true), ("ca", "verify-full", false), ("stranger", "require", false)]),
        ("alone", [("alone", "verify-full", true), ("alone", "verify-ca", true), ("ca", "verify-ca", false)]),
        ("version1", [("ca", "verify-full", true), ("ca", "verify-ca", true), ("stranger", "verify-ca", false)]),
    ] {
        let cluster = Cluster::start(&[]);
        Certificates::shared().use_in(&cluster, name, RULES);
        for (trusted, mode, works) in cases {
            let root = root(trusted);
            let direct = format!("host=localhost port={} user=postgres sslmode={mode} {root}", cluster.port());
            let direct = psql(&direct, UPSTREAM_LEG);
            assert_eq!(direct.is_ok(), works, "libpq: {name} {trusted} {mode} {direct:?}");
            let url = format!("postgres://postgres@localhost:{}/postgres?sslmode={mode}&{root}", cluster.port());
            let freshet = Freshet::relay(&url);
            let relayed = psql(&connection(freshet.port(), "postgres", ""), UPSTREAM_LEG);
            assert_eq!(relayed.is_ok(), works, "{name} {trusted} {mode}: {relayed:?}");
            assert_eq!(relayed.as_deref().unwrap_or("t"), "t");
            assert_eq!(own_log_in(&url).is_ok(), works, "{name} {trusted} {mode}");
        }
        if name == "elsewhere" {
            // The name is judged, whatever address it was reached at.
            let query = format!("hostaddr=127.0.0.1&sslmode=verify-full&{}", root("ca"));
            let url = format!("postgres://postgres@elsewhere.example:{}/postgres?{query}", cluster.port());
            assert!(own_log_in(&url).is_ok());
        }
    }
}

#[test]
fn the_version_of_tls_can_be_bounded_on_both_legs() {
    let version = "SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    // A certificate of version 1 takes its own way through the handshake, in each version of TLS.
    for name in ["server", "version1"] {
        let cluster = Cluster::start(&[]);
        Certificates::shared().use_in(&cluster, name, RULES);
        for (bound, expected) in
            [("ssl_max_protocol_version=TLSv1.2", "TLSv1.2"), ("ssl_min_protocol_version=TLSv1.3", "TLSv1.3")]
        {
            let url = format!("postgres://postgres@localhost:{}/postgres", cluster.port());
            let url = format!("{url}?sslmode=verify-full&{}&{bound}", root("ca"));
            let freshet = Freshet::start(&url, |settings| {
                settings.mirror.tables = TableChoice::None;
                show(settings, name);
            });
            let client = connection(freshet.port(), "login_scram", "sslmode=require channel_binding=require");
            assert_eq!(psql(&format!("{client} {bound}"), version).as_deref(), Ok(expected), "{name}");
            let told = psql(&format!("{client} {bound}"), "\\conninfo").expect("connects");
            assert!(told.contains(expected), "{told}");
            assert!(own_log_in(&url).is_ok());
        }
    }
}

#[test]
fn the_rules_of_pg_hba_choose_the_line() {
    // By default, on this machine: in the clear first, TLS where the rules ask for it.
    for (query, role, leg) in [
        ("", "login_scram", Ok("f")),
        ("", "login_ssl", Ok("t")),
        ("sslmode=prefer", "login_nossl", Ok("f")),
        ("sslmode=prefer", "login_ssl", Ok("t")),
        ("sslmode=disable", "login_ssl", Err("no encryption")),
        ("sslmode=require", "login_nossl", Err("SSL encryption")),
    ] {
        let freshet = relay(query, |_| {});
        let seen = psql(&connection(freshet.port(), role, ""), UPSTREAM_LEG);
        match (leg, seen) {
            (Ok(leg), seen) => assert_eq!(seen.as_deref(), Ok(leg), "{query} {role}"),
            (Err(word), Err(error)) => {
                assert!(error.contains("no pg_hba.conf entry") && error.contains(word), "{error}")
            }
            (Err(_), Ok(seen)) => panic!("{query} {role}: {seen}"),
        }
    }
    // The same for freshet's own log-ins.
    let url =
        |role: &str, query: &str| format!("postgres://{role}:{role}@127.0.0.1:{}/postgres{query}", cluster().port());
    assert!(own_log_in(&url("login_ssl", "")).is_ok());
    assert!(own_log_in(&url("login_nossl", "?sslmode=prefer")).is_ok());
    assert!(own_log_in(&url("login_ssl", "?sslmode=disable")).is_err());
    assert!(own_log_in(&url("login_nossl", "?sslmode=require")).is_err());
    let wrong = url("login_ssl", "").replace(":login_ssl@", ":wrong@");
    assert!(own_log_in(&wrong).expect_err("the wrong password").contains("28P01"));
}

#[test]
fn upstream_can_ask_for_a_certificate() {
    let certificates = Certificates::shared();
    let (cert, key) = (certificates.certificate("client"), certificates.key("client"));
    let query = format!("sslmode=require&sslcert={}&sslkey={}", cert.display(), key.display());
    let freshet = relay(&query, |_| {});
    let named = "SELECT client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let local = connection(freshet.port(), "login_cert", "");
    assert_eq!(psql(&local, named).as_deref(), Ok("/CN=login_cert"));
    let freshet = relay("sslmode=require", |_| {});
    let error = psql(&connection(freshet.port(), "login_cert", ""), named).expect_err("no certificate");
    assert!(error.contains("certificate"), "{error}");
}

#[test]
fn mirroring_uses_tls_on_all_of_its_connections() {
    let database = cluster().database();
    cluster().psql(
        &database,
        "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT i, 'v' FROM generate_series(1, 1000) i",
    );
    let url = format!(
        "postgres://mirror_owner:mirror_owner@localhost:{}/{database}?sslmode=verify-full&{}&channel_binding=require",
        cluster().port(),
        root("ca")
    );
    let freshet = Freshet::start(&url, |settings| {
        settings.mirror.tables = TableChoice::List(vec!["public.t".to_string()]);
        show(settings, "server");
    });
    freshet.wait_until_mirrored(&database, &["public.t"]);
    let lines = "SELECT bool_and(s.ssl), count(*) > 1 FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
                 WHERE a.usename = 'mirror_owner'";
    assert_eq!(cluster().psql(&database, lines), "t|t");
    let client = connection(freshet.port(), "login_scram", "sslmode=require channel_binding=require")
        .replace("dbname=postgres", &format!("dbname={database}"));
    let mut command = program("psql");
    command.args(["-X", "-A", "-t", "-d", &client, "-c", "SELECT count(*) FROM t", "-c", "SHOW freshet.last"]);
    until("it is answered here", || {
        let told = outcome(&command.output().expect("psql runs")).expect("answers");
        assert!(told.starts_with("1000\n"), "{told}");
        told.contains("hit") || told.contains("local")
    });
}

#[test]
fn freshet_speaks_direct_tls_to_upstream() {
    // PostgreSQL cannot before 17: another freshet is the upstream.
    let inner = relay("sslmode=require", |settings| show(settings, "server"));
    let url = |query: &str| format!("postgres://postgres@localhost:{}/postgres?{query}", inner.port());
    let query = format!("sslnegotiation=direct&sslmode=verify-full&{}", root("ca"));
    let outer = Freshet::start(&url(&query), |settings| {
        settings.mirror.tables = TableChoice::None;
        show(settings, "server");
    });
    let bound = connection(outer.port(), "login_scram", "sslmode=require channel_binding=require");
    assert_eq!(psql(&bound, UPSTREAM_LEG).as_deref(), Ok("t"));
    assert!(own_log_in(&url(&query)).is_ok());
    // A server that does TLS but no ALPN is not taken for PostgreSQL's: before 17 it expects SSLRequest.
    let direct = format!("{}?sslmode=require&sslnegotiation=direct", cluster().url("postgres"));
    assert_eq!(own_log_in(&direct).is_ok(), cluster().major() >= 17);
}

/// A server that says `S` and something else with it in the same packet.
#[test]
fn clients_can_be_made_to_use_tls_and_to_show_a_certificate() {
    let required = relay("sslmode=disable", |settings| {
        show(settings, "server");
        settings.listen.tls_required = true;
    });
    let at = |freshet: &Freshet, more: &str| psql(&connection(freshet.port(), "login_scram", more), "SELECT 1");
    assert_eq!(at(&required, "sslmode=prefer").as_deref(), Ok("1"));
    let error = at(&required, "sslmode=disable").expect_err("in the clear");
    assert!(error.contains("admits clients with TLS only"), "{error}");

    let certificates = Certificates::shared();
    let known = relay("sslmode=disable", |settings| {
        show(settings, "server");
        settings.listen.tls_client_ca = Some(certificates.certificate("ca"));
    });
    let shown = |name: &str| {
        let (cert, key) = (certificates.certificate(name), certificates.key(name));
        at(&known, &format!("sslmode=require sslcert={} sslkey={}", cert.display(), key.display()))
    };
    assert_eq!(shown("client").as_deref(), Ok("1"));
    assert!(shown("alone").is_err());
    assert!(at(&known, "sslmode=require").is_err());
    let error = at(&known, "sslmode=disable").expect_err("no certificate can be shown in the clear");
    assert!(error.contains("admits clients with TLS only"), "{error}");
}

#[test]
fn nobody_elsewhere_gets_in_without_a_password() {
    // This machine by its other address is not local; without one there is nothing to see here.
    let own = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.99:9")?;
        socket.local_addr()
    });
    let Some(own) = own.ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified()) else {
        println!("skipped: this machine has no address but loopback");
        return;
    };
    for (query, allowed) in [("sslmode=disable", false), ("sslmode=require", false), ("sslmode=require", true)] {
        let freshet = relay(query, |settings| {
            show(settings, "server");
            settings.listen.addresses = vec![freshet_config::ListenAddress::Tcp("0.0.0.0:0".to_string())];
            settings.listen.allow_passwordless_upstream = allowed;
        });
        for mode in ["disable", "require"] {
            let from = |role: &str| {
                let local = connection(freshet.port(), role, &format!("sslmode={mode}"));
                psql(&local.replace("127.0.0.1", &own.to_string()), "SELECT 1")
            };
            assert_eq!(from("login_scram").as_deref(), Ok("1"), "with a password: {query} {mode}");
            match from("postgres") {
                Ok(_) => assert!(allowed, "{query} {mode}"),
                Err(error) => assert!(!allowed && error.contains("upstream asked for no password"), "{error}"),
            }
        }
    }
}

#[test]
fn large_replies_and_copies_pass_whole() {
    let freshet = relay("sslmode=require", |settings| show(settings, "server"));
    let database = cluster().database();
    cluster().psql(&database, "CREATE TABLE t (a int, b text)");
    let lines = (0..400_000).map(|i| format!("{i}\tline {i} of something that takes some room\n")).collect::<String>();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lines");
    std::fs::write(&file, &lines).expect("written");
    let client = connection(freshet.port(), "login_cleartext", "sslmode=require")
        .replace("dbname=postgres", &format!("dbname={database}"));
    psql(&client, &format!("\\copy t FROM '{}'", file.display())).expect("copied in");
    let out = folder.path().join("out");
    psql(&client, &format!("\\copy t TO '{}'", out.display())).expect("copied out");
    assert!(std::fs::read(&out).expect("written") == lines.as_bytes());
    let whole = psql(&client, "SELECT string_agg(b, ',' ORDER BY a) FROM t").expect("one large row");
    assert_eq!(whole.matches(',').count(), 399_999);
}

#[test]
fn both_legs_can_be_unix_sockets() {
    let folder = tempfile::tempdir().expect("a folder");
    open_to_all(folder.path());
    let upstream = folder.path().join("upstream");
    let own = folder.path().join("own");
    for path in [&upstream, &own] {
        std::fs::create_dir(path).expect("made");
        open_to_all(path);
    }
    let cluster = Cluster::start(&[&format!("unix_socket_directories={}", upstream.display())]);
    let query = format!("host={}&port={}", upstream.display(), cluster.port());
    // TLS is not spoken over Unix sockets, whatever is asked for, as in libpq.
    let freshet = Freshet::start(&format!("postgres://postgres@/postgres?{query}&sslmode=require"), |settings| {
        settings.mirror.tables = TableChoice::None;
        for path in [own.clone(), own.join(".s.PGSQL.7000")] {
            settings.listen.addresses.push(freshet_config::ListenAddress::Directory(path));
        }
        show(settings, "server");
        settings.listen.tls_required = true;
    });
    let line = "SELECT client_addr IS NULL FROM pg_stat_activity WHERE pid = pg_backend_pid()";
    let over_socket = format!("host={} port=5433 user=postgres dbname=postgres sslmode=prefer", own.display());
    assert_eq!(psql(&over_socket, line).as_deref(), Ok("t"));
    assert_eq!(psql(&over_socket.replace("5433", "7000"), line).as_deref(), Ok("t"));
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(own.join(".s.PGSQL.5433")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o777, "as PostgreSQL's own: any user of this machine may connect");
    assert_eq!(psql(&connection(freshet.port(), "postgres", "sslmode=require"), line).as_deref(), Ok("t"));
    drop(freshet);
    assert!(!own.join(".s.PGSQL.5433").exists());
}

fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("our folder");
}

#[test]
fn problems_of_the_files_are_told_with_their_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let certificates = Certificates::shared();
    let path = folder.path().join("freshet.toml");
    let problems = |listen: &str, url: &str| {
        std::fs::write(&path, format!("[upstream]\nurl = \"{url}\"\n[listen]\n{listen}\n")).expect("written");
        let sources = Sources { file: Some(&path), ..Sources::default() };
        let loaded = Settings::load_checked(&sources, freshet::server::check_settings);
        loaded.map(drop).map_err(|errors| errors.to_string())
    };
    let (cert, key) = (certificates.certificate("server"), certificates.key("server"));
    let good = format!("tls_certificate = \"{}\"\ntls_key = \"{}\"", cert.display(), key.display());
    assert_eq!(problems(&good, "postgres://u@h/d"), Ok(()));
    let missing =
        "tls_certificate = \"/nowhere/a.crt\"\ntls_key = \"/nowhere/a.key\"\ntls_client_ca = \"/nowhere/ca.crt\"";
    let told = problems(missing, "postgres://u:secret@h/d?sslmode=verify-full").expect_err("nothing is there");
    for expected in [
        "freshet.toml:4: listen.tls_certificate cannot be used: /nowhere/a.crt cannot be read",
        "freshet.toml:5: listen.tls_key cannot be used: /nowhere/a.key cannot be read",
        "freshet.toml:6: listen.tls_client_ca cannot be used: /nowhere/ca.crt cannot be read",
        "freshet.toml:2: upstream.url cannot be used",
        "sslrootcert=FILE",
    ] {
        assert!(told.contains(expected), "{expected:?} in\n{told}");
    }
    let other = good.replace("server.key", "alone.key");
    assert!(
        problems(&other, "postgres://u@h/d").expect_err("another key").contains("is not the key of the certificate")
    );
    let alone = format!("tls_certificate = \"{}\"", cert.display());
    assert!(problems(&alone, "postgres://u@h/d").expect_err("no key").contains("listen.tls_key is not set"));
    assert!(
        problems("tls_required = true", "postgres://u@h/d")
            .expect_err("no certificate")
            .contains("listen.tls_certificate")
    );
    // A URL of libpq's without a host before the path.
    assert_eq!(problems("sessions_max = 5", "postgres://u@/d?host=/run/postgresql&port=6000"), Ok(()));
    let told = problems("sessions_max = 5", "postgres://u:secret@h/d?sslmode=sometimes").expect_err("no such mode");
    assert!(told.contains("verify-full") && !told.contains("secret"), "{told}");
    // A URL that is wrong is not repeated: it may hold a password.
    let told = problems("sessions_max = 5", "mysql://u:secret@h/d").expect_err("no URL of PostgreSQL's");
    assert!(!told.contains("secret"), "{told}");
    let encrypted = folder.path().join("encrypted.key");
    let made = std::process::Command::new("openssl")
        .args(["ec", "-aes128", "-passout", "pass:abcd", "-in"])
        .arg(&key)
        .arg("-out")
        .arg(&encrypted)
        .output()
        .expect("openssl runs");
    assert!(made.status.success());
    let locked = good.replace(&key.display().to_string(), &encrypted.display().to_string());
    assert!(problems(&locked, "postgres://u@h/d").expect_err("encrypted").contains("is encrypted"));
}
