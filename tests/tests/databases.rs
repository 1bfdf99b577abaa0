//! Several databases of one cluster: each with a mirror of its own, from when it is first read until nobody reads it.

use std::time::{Duration, Instant};

use freshet_config::{DatabaseChoice, FreshnessMode, Settings};
use freshet_tests::client::{query, rows};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::operator::Operator;
use freshet_tests::raw::{RawClient, frame};

const WAIT: Duration = Duration::from_secs(60);
const SQL: &str = "SELECT count(*), sum(id) FROM t";

struct World {
    cluster: Cluster,
    /// That of the URL, and two others.
    names: [String; 3],
    freshet: Freshet,
}

impl World {
    /// Of one table each, by the same OIDs, as copies of one template have them.
    fn start(change: impl FnOnce(&mut Settings, &[String; 3])) -> Self {
        let cluster = Cluster::start(&[]);
        let template = cluster.database();
        cluster.psql(&template, "CREATE TABLE t (id int PRIMARY KEY)");
        let names = [1, 2, 3].map(|at| format!("{template}_{at}"));
        for (at, name) in names.iter().enumerate() {
            cluster.psql("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
            cluster.psql(name, &format!("INSERT INTO t SELECT generate_series(1, {})", 10 * (at + 1)));
        }
        Self::before(cluster, names, change)
    }

    fn before(cluster: Cluster, names: [String; 3], change: impl FnOnce(&mut Settings, &[String; 3])) -> Self {
        let freshet = Freshet::start(&cluster.url(&names[0]), |settings| {
            settings.mirror.databases = DatabaseChoice::Auto;
            change(settings, &names);
        });
        Self { cluster, names, freshet }
    }

    fn client(&self, at: usize) -> RawClient {
        RawClient::connect(self.freshet.address(), "postgres", &self.names[at]).expect("connects")
    }

    /// The answer, which must be upstream's; and how it was given.
    fn ask(&self, client: &mut RawClient, at: usize) -> (String, String) {
        let reply = client.simple(SQL).expect("answers");
        assert_eq!(reply.error(), None);
        let rows = reply.rows();
        let cells = rows[0].iter().map(|cell| String::from_utf8(cell.clone().expect("a value")).expect("text"));
        assert_eq!(cells.collect::<Vec<_>>().join("|"), self.cluster.psql(&self.names[at], SQL));
        client.last().expect("answers")
    }

    fn until_answered(&self, client: &mut RawClient, at: usize) {
        let limit = Instant::now() + WAIT;
        loop {
            let (route, reason) = self.ask(client, at);
            if route == "local" || route == "hit" {
                return;
            }
            assert!(Instant::now() < limit, "{at}: {reason}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The databases that have slots.
    fn slots(&self) -> Vec<String> {
        let sql = "SELECT database FROM pg_replication_slots ORDER BY 1";
        self.cluster.psql("postgres", sql).lines().map(str::to_string).collect()
    }

    fn until_slots(&self, expected: &[usize]) {
        let mut expected: Vec<String> = expected.iter().map(|at| self.names[*at].clone()).collect();
        expected.sort();
        let limit = Instant::now() + WAIT;
        while self.slots() != expected {
            assert!(Instant::now() < limit, "{:?} instead of {expected:?}", self.slots());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Past freshet.
    fn direct(&self) -> RawClient {
        let address = self.cluster.address();
        RawClient::connect(address, "postgres", "postgres").expect("connects")
    }

    fn publications(&self, at: usize) -> String {
        self.cluster.psql(&self.names[at], "SELECT count(*) FROM pg_publication")
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The first column's values, with commas between.
fn texts(client: &mut RawClient, sql: &str) -> String {
    let rows = client.simple(sql).expect("answers").rows();
    let text = |row: &Vec<Option<Vec<u8>>>| String::from_utf8(row[0].clone().expect("a value")).expect("text");
    rows.iter().map(text).collect::<Vec<_>>().join(",")
}

#[test]
fn each_database_is_answered_from_its_own_mirror_once_it_is_read() {
    let world = World::start(|_, _| {});
    let (mut first, mut second) = (world.client(0), world.client(1));
    world.until_answered(&mut first, 0);
    // Logged in to is not read.
    for sql in ["SET application_name = 'x'", "SELECT 1"] {
        assert_eq!(second.simple(sql).expect("answers").error(), None);
    }
    let mut template = RawClient::connect(world.freshet.address(), "postgres", "template1").expect("connects");
    assert_eq!(template.simple("SELECT count(*) FROM generate_series(1, 2)").expect("answers").error(), None);
    assert_eq!(second.simple("SELECT count(*) FROM pg_class").expect("answers").error(), None);
    std::thread::sleep(Duration::from_millis(500));
    drop(template);
    world.until_slots(&[0]);
    assert_eq!(world.ask(&mut second, 1).0, "relay");
    world.until_answered(&mut second, 1);
    world.until_slots(&[0, 1]);
    for round in 0..20 {
        for (at, client) in [(0, &mut first), (1, &mut second)] {
            world.cluster.psql(&world.names[at], &format!("INSERT INTO t VALUES ({})", 1000 + round));
            assert_ne!(world.ask(client, at).0, "relay");
        }
    }
    // A session that comes later has it at once.
    let mut later = world.client(1);
    let (route, reason) = world.ask(&mut later, 1);
    assert_ne!(route, "relay", "{reason}");
    // Each session is shown what is in its own, and which there are.
    world.cluster.psql(&world.names[1], "CREATE TABLE of_second (id int PRIMARY KEY)");
    let limit = Instant::now() + WAIT;
    while second.simple("SELECT count(*) FROM of_second").expect("answers").error().is_some()
        || second.last().expect("answers").0 == "relay"
    {
        assert!(Instant::now() < limit, "{:?}", second.last());
    }
    let mut third = world.client(2);
    for (client, tables) in [(&mut first, "t"), (&mut second, "of_second,public.t"), (&mut third, "")] {
        let shown = texts(client, "SELECT name FROM freshet.tables ORDER BY name");
        assert_eq!(shown.replacen("public.", "", 1), tables);
        let shown = texts(client, "SELECT statement FROM freshet.statements");
        assert_eq!(shown.contains("of_second"), tables.starts_with("of_second"), "{shown}");
        assert_eq!(texts(client, "SELECT name FROM freshet.databases"), world.names[..2].join(","));
    }
    for (at, name) in world.names[..2].iter().enumerate() {
        assert_eq!(world.freshet.status(name, "database"), *name);
        assert_eq!(world.freshet.status(name, "databases"), world.names[..2].join(", "));
        assert_eq!(world.freshet.status(name, "wrong_answers"), "0", "{at}");
    }
    let World { cluster, names, freshet } = world;
    drop((first, second, third, later, freshet));
    assert_eq!(cluster.psql("postgres", "SELECT count(*) FROM pg_replication_slots"), "0");
    for name in &names {
        assert_eq!(cluster.psql(name, "SELECT count(*) FROM pg_publication"), "0", "{name}");
    }
}

#[test]
fn what_may_be_mirrored_is_the_operators_to_say_and_bounded() {
    let relays_for = |world: &World, at: usize| {
        let mut client = world.client(at);
        for _ in 0..20 {
            assert_eq!(world.ask(&mut client, at).0, "relay");
            std::thread::sleep(Duration::from_millis(25));
        }
    };
    let one = World::start(|settings, _| settings.mirror.databases = DatabaseChoice::One);
    relays_for(&one, 1);
    one.until_slots(&[0]);
    let listed = World::start(|settings, names| {
        settings.mirror.databases = DatabaseChoice::List(vec![names[2].clone()]);
    });
    listed.until_answered(&mut listed.client(2), 2);
    relays_for(&listed, 1);
    listed.until_slots(&[0, 2]);
    let two = World::start(|settings, _| settings.mirror.databases_max = 2);
    two.until_answered(&mut two.client(1), 1);
    relays_for(&two, 2);
    two.until_slots(&[0, 1]);
}

#[test]
fn an_idle_database_is_given_back_and_comes_again_when_it_is_read() {
    let world = World::start(|settings, _| settings.mirror.database_idle_ms = 1_000);
    let mut client = world.client(1);
    for round in 0..2 {
        world.until_answered(&mut client, 1);
        // As long as it is read, it stays.
        for _ in 0..30 {
            assert_ne!(world.ask(&mut client, 1).0, "relay");
            std::thread::sleep(Duration::from_millis(50));
        }
        // A pool's signs of life are not.
        let limit = Instant::now() + WAIT;
        while world.slots().len() > 1 {
            for sql in ["SELECT 1 AS one", "SELECT extract(epoch FROM now())", "SELECT oid FROM \"pg_catalog\".pg_type"]
            {
                assert_eq!(client.simple(sql).expect("answers").error(), None);
            }
            assert!(Instant::now() < limit, "it is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
        let limit = Instant::now() + WAIT;
        while world.publications(1) != "0" {
            assert!(Instant::now() < limit, "its publication is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
        world.cluster.psql(&world.names[1], &format!("INSERT INTO t VALUES ({})", 500 + round));
    }
    world.until_answered(&mut world.client(0), 0);
}

#[test]
fn a_mirrored_database_can_be_dropped_renamed_and_copied_through_freshet() {
    let world = World::start(|_, _| {});
    let mut first = world.client(0);
    let copy = format!("{}_copy", world.names[1]);
    for sql in [
        format!("CREATE DATABASE {copy} TEMPLATE {}", world.names[1]),
        format!("ALTER DATABASE {} RENAME TO renamed", world.names[1]),
        "ALTER DATABASE renamed RENAME TO again".to_string(),
        format!("DROP DATABASE {}", world.names[2]),
    ] {
        let at = if sql.starts_with("DROP") { 2 } else { 1 };
        if !sql.contains("again") {
            let mut client = world.client(at);
            // The last statement has held it.
            let limit = Instant::now() + WAIT;
            while world.ask(&mut client, at).0 == "relay" {
                assert!(Instant::now() < limit);
                std::thread::sleep(Duration::from_millis(50));
            }
            drop(client);
            // Past freshet it is in the way.
            if at == 2 {
                let error = world.direct().simple(&sql).expect("answers").error().expect("an error");
                assert!(error.contains("active logical replication slot"), "{error}");
            }
        }
        // However it is said.
        let reply = match at {
            1 if sql.contains("renamed") => first.extended(&sql, &[], 0),
            1 => first.simple(&sql),
            _ => {
                first.simple("SET freshet.route = relay").expect("answers");
                first.simple(&sql)
            }
        };
        assert_eq!(reply.expect("answers").error(), None, "{sql}");
    }
    // One of the same name is another.
    world.cluster.psql("postgres", &format!("CREATE DATABASE {}", world.names[2]));
    world.cluster.psql(&world.names[2], "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (7)");
    let mut client = world.client(2);
    for _ in 0..10 {
        world.ask(&mut client, 2);
    }
}

#[test]
fn nobody_ends_a_mirror_by_a_statement_that_upstream_refuses() {
    let world = World::start(|_, _| {});
    let mut client = world.client(1);
    world.until_answered(&mut client, 1);
    let mut guest = RawClient::connect(world.freshet.address(), "guest", &world.names[0]).expect("connects");
    for sql in ["DROP DATABASE %", "ALTER DATABASE % RENAME TO mine", "CREATE DATABASE mine TEMPLATE %"] {
        let error = guest.simple(&sql.replace('%', &world.names[1])).expect("answers").error().expect("refused");
        assert!(error.contains("42501"), "{error}");
        let (route, reason) = world.ask(&mut client, 1);
        assert_ne!(route, "relay", "{reason}");
    }
    // Nor who may, by what upstream refuses wherever it is said.
    let (mut first, name) = (world.client(0), &world.names[1]);
    let refused = |client: &mut RawClient, sql: &str, sqlstate: &str| {
        let error = client.simple(&sql.replace('%', name)).expect("answers").error().expect("refused");
        assert!(error.contains(sqlstate), "{error}");
        let mut reader = world.client(1);
        let (route, reason) = world.ask(&mut reader, 1);
        assert_ne!(route, "relay", "{sql}: {reason}");
    };
    refused(&mut client, "DROP DATABASE %", "55006");
    refused(&mut client, "ALTER DATABASE % RENAME TO mine", "0A000");
    refused(&mut first, "SELECT 1; DROP DATABASE %", "25001");
    first.simple("BEGIN").expect("answers");
    refused(&mut first, "DROP DATABASE %", "25001");
    drop(first);
    // Its owner may, also by a role that it is a member of.
    world.cluster.psql(
        "postgres",
        &format!("ALTER DATABASE {} OWNER TO other_guest; GRANT other_guest TO guest", world.names[1]),
    );
    drop(client);
    assert_eq!(guest.simple(&format!("DROP DATABASE {}", world.names[1])).expect("answers").error(), None);
}

#[test]
fn a_statement_that_waits_for_a_database_to_be_given_back_can_be_cancelled() {
    let world = World::start(|_, _| {});
    let mut reader = world.client(1);
    world.until_answered(&mut reader, 1);
    let mut client = freshet_tests::client::RawClient::log_in(world.freshet.port(), &world.names[0]);
    let mut direct = world.direct();
    // Nobody can be told whose a database is.
    for sql in ["BEGIN", "LOCK pg_database IN ACCESS EXCLUSIVE MODE"] {
        assert_eq!(direct.simple(sql).expect("answers").error(), None);
    }
    client.send(&query(&format!("DROP DATABASE {}", world.names[1])));
    let packet =
        [&(8 + client.key.len() as u32).to_be_bytes()[..], &80_877_102_u32.to_be_bytes(), &client.key].concat();
    // One that comes before the statement has no effect.
    for _ in 0..20 {
        let mut stream = std::net::TcpStream::connect(world.freshet.address()).expect("the port is open");
        std::io::Write::write_all(&mut stream, &packet).expect("sent");
        let _ = std::io::Read::read(&mut stream, &mut [0]);
        std::thread::sleep(Duration::from_millis(50));
    }
    let reply = client.read_until('Z');
    direct.simple("ROLLBACK").expect("answers");
    let error = reply.iter().find(|message| message.tag == 'E').expect("an error");
    assert!(String::from_utf8_lossy(&error.body).contains("C57014"), "{error:?}");
    // Upstream has not seen it, and the session goes on.
    assert_eq!(rows(&client.query("SHOW freshet.last"))[0][0].as_deref(), Some("local"));
    assert_ne!(world.ask(&mut reader, 1).0, "relay");
    drop(reader);
    client.send(&query(&format!("DROP DATABASE {}", world.names[1])));
    assert!(client.read_until('Z').iter().all(|message| message.tag != 'E'));
}

#[test]
fn a_mirror_that_waits_to_begin_keeps_its_place() {
    let world = World::start(|settings, _| settings.mirror.databases_max = 2);
    world.until_answered(&mut world.client(0), 0);
    let mut direct = world.direct();
    // Its slot waits for that.
    for sql in ["BEGIN", "SELECT txid_current()"] {
        assert_eq!(direct.simple(sql).expect("answers").error(), None);
    }
    let (mut own, mut second, mut third) = (world.client(0), world.client(1), world.client(2));
    let until = Instant::now() + Duration::from_secs(8);
    while Instant::now() < until {
        assert_eq!(world.ask(&mut second, 1).0, "relay");
        assert_eq!(world.ask(&mut third, 2).0, "relay");
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(texts(&mut own, "SELECT name FROM freshet.databases"), world.names[..2].join(","));
    }
    // It is said whose transaction that is.
    let process = texts(&mut direct, "SELECT pg_backend_pid()");
    let states = texts(&mut own, "SELECT mirror FROM freshet.databases");
    let waits = format!("waits for open transactions: process {process} of postgres in ");
    assert!(states.contains(&waits) && states.contains("idle in transaction"), "{states}");
    direct.simple("COMMIT").expect("answers");
    world.until_answered(&mut second, 1);
}

#[test]
fn roles_and_rows_of_databases_that_are_copies_of_one_are_not_mixed_up() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Standby, FreshnessMode::Session] {
        let world = World::start(|settings, _| settings.freshness.mode = mode);
        world.cluster.psql(&world.names[0], "GRANT SELECT ON t TO guest");
        let oid = |at: usize| world.cluster.psql(&world.names[at], "SELECT 't'::regclass::oid");
        assert_eq!(oid(0), oid(1));
        let (mut first, mut second) = (world.client(0), world.client(1));
        world.until_answered(&mut first, 0);
        world.until_answered(&mut second, 1);
        let guest =
            |at: usize| RawClient::connect(world.freshet.address(), "guest", &world.names[at]).expect("connects");
        let (mut granted, mut refused) = (guest(0), guest(1));
        world.until_answered(&mut granted, 0);
        for round in 0..12 {
            world.cluster.psql(&world.names[round % 2], &format!("INSERT INTO t VALUES ({})", 1000 + round));
            if mode == FreshnessMode::Session {
                // Past freshet: it may take a moment, but never comes from the other.
                std::thread::sleep(Duration::from_millis(1_100));
                if round == 6 {
                    break;
                }
            }
            for _ in 0..2 {
                world.ask(&mut first, 0);
                world.ask(&mut second, 1);
                world.ask(&mut granted, 0);
                let error = refused.simple(SQL).expect("answers").error().expect("not granted here");
                assert!(error.contains("42501"), "{error}");
            }
        }
        // A snapshot's token is of its database.
        assert_eq!(first.simple("SET freshet.snapshot = 'latest'").expect("answers").error(), None);
        let token = texts(&mut first, "SHOW freshet.snapshot");
        let mut other = world.client(0);
        assert_eq!(other.simple(&format!("SET freshet.snapshot = '{token}'")).expect("answers").error(), None);
        let error = second.simple(&format!("SET freshet.snapshot = '{token}'")).expect("answers").error();
        assert!(error.expect("another database's").contains("22023"));
        assert_eq!(world.freshet.status(&world.names[1], "wrong_answers"), "0");
    }
}

#[test]
fn what_a_session_knew_by_an_earlier_mirror_of_its_database_is_of_no_use_for_a_later_one() {
    let world = World::start(|settings, _| {
        settings.freshness.mode = FreshnessMode::Session;
        settings.mirror.database_idle_ms = 1_500;
        // Replies that were just repeated are known by thread.
        settings.limits.worker_threads = 1;
    });
    let prepare = |client: &mut RawClient, sql: &str| {
        client.send(&[frame(b'P', format!("s\0{sql}\0\0\0").as_bytes()), frame(b'S', b"")].concat()).expect("sent");
        assert_eq!(client.read_reply().expect("answers").error(), None);
    };
    let execute = |client: &mut RawClient| {
        let unit = [frame(b'B', b"\0s\0\0\0\0\0\0\0"), frame(b'E', b"\0\0\0\0\0"), frame(b'S', b"")];
        client.send(&unit.concat()).expect("sent");
        let rows = client.read_reply().expect("answers").rows();
        String::from_utf8(rows[0][0].clone().expect("a value")).expect("text")
    };
    let until_hit = |client: &mut RawClient, value: &str| {
        let limit = Instant::now() + WAIT;
        let mut hits = 0;
        while hits < 20 {
            assert_eq!(execute(client), value);
            hits += usize::from(client.last().expect("answers").0 == "hit");
            assert!(Instant::now() < limit);
        }
    };
    let (mut early, mut pinned, mut silent) = (world.client(1), world.client(1), world.client(1));
    world.until_answered(&mut early, 1);
    // It holds on to what is there now, and says no more.
    world.ask(&mut silent, 1);
    prepare(&mut early, "SELECT count(*) FROM t");
    until_hit(&mut early, "20");
    assert_eq!(pinned.simple("SET freshet.snapshot = 'latest'").expect("answers").error(), None);
    world.ask(&mut pinned, 1);
    assert_eq!(pinned.last().expect("answers").1, "");
    world.until_slots(&[0]);
    // Others come, who ask the same database something else by the same name.
    let mut late = world.client(1);
    world.until_answered(&mut late, 1);
    prepare(&mut late, "SELECT sum(id) FROM t");
    until_hit(&mut late, "210");
    until_hit(&mut early, "20");
    // The earlier mirror's moments have ended with it.
    late.simple("INSERT INTO t VALUES (1000)").expect("answers");
    world.ask(&mut pinned, 1);
    assert_eq!(texts(&mut pinned, "SHOW freshet.snapshot"), "expired");
}

#[test]
fn a_database_that_cannot_be_mirrored_takes_no_place_from_others() {
    let cluster = Cluster::start(&[]);
    cluster.psql("postgres", "CREATE ROLE keeper LOGIN REPLICATION");
    let names = [cluster.database(), cluster.database(), cluster.database()];
    let odd = [names[0].clone(), "My \"odd\" Shop".to_string(), names[2].clone()];
    cluster.psql("postgres", &format!("ALTER DATABASE {} RENAME TO \"My \"\"odd\"\" Shop\"", names[1]));
    for name in &odd {
        cluster
            .psql(name, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1); ALTER TABLE t OWNER TO keeper");
    }
    cluster.psql("postgres", &format!("REVOKE CONNECT ON DATABASE {} FROM PUBLIC", odd[2]));
    cluster.psql("postgres", &format!("GRANT CREATE ON DATABASE {} TO keeper", odd[0]));
    let world = World::before(cluster, odd, |settings, _| {
        settings.mirror.databases_max = 2;
        settings.upstream.url = settings.upstream.url.replace("postgres@", "keeper@");
    });
    world.until_answered(&mut world.client(0), 0);
    let relays = |at: usize| {
        let mut client = world.client(at);
        for _ in 0..20 {
            assert_eq!(world.ask(&mut client, at).0, "relay");
            std::thread::sleep(Duration::from_millis(25));
        }
    };
    // freshet's role may not connect; or may, and that is all.
    relays(2);
    assert_eq!(texts(&mut world.client(0), "SELECT name FROM freshet.databases"), world.names[0]);
    relays(1);
    let shown = texts(&mut world.client(0), "SELECT mirror FROM freshet.databases LIMIT 1");
    assert_eq!(shown, "running");
    let mut settings = Settings::default();
    settings.upstream.url = world.cluster.url(&world.names[0]).replace("postgres@", "keeper@");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for (choice, is_fine) in [(DatabaseChoice::Auto, true), (DatabaseChoice::List(world.names[1..].to_vec()), false)] {
        settings.mirror.databases = choice;
        let report = runtime.block_on(freshet::check::check(&settings)).expect("upstream answers");
        let why = format!("{}: relayed\n           why:  role keeper may not connect to it", world.names[2]);
        assert!(report.text.contains(&why), "{}", report.text);
        assert!(report.text.contains("MISSING    role keeper may not create a publication"), "{}", report.text);
        assert_eq!(report.is_fine, is_fine, "{}", report.text);
    }
    // What admits nobody was never mirrored, and is in nobody's way; unless it is named.
    world.cluster.psql("postgres", &format!("ALTER DATABASE {} CONNECTION LIMIT 0", quoted(&world.names[1])));
    let lists =
        [DatabaseChoice::List(vec![world.names[1].clone()]), DatabaseChoice::List(vec![world.names[2].clone()])];
    let choices = [DatabaseChoice::One, DatabaseChoice::Auto].into_iter().chain(lists);
    for (choice, is_fine) in choices.zip([true, true, false, true]) {
        settings.mirror.databases = choice;
        let report = runtime.block_on(freshet::check::uninstall(&settings)).expect("upstream answers");
        assert!(report.text.contains(&format!("database {} cannot be looked at", world.names[1])), "{}", report.text);
        let is_of_running =
            |line: &str| line.ends_with("a freshet that runs uses it") || line.contains("cannot be looked at");
        assert!(report.text.lines().all(is_of_running), "{}", report.text);
        assert_eq!(report.is_fine, is_fine, "{}", report.text);
    }
    world.cluster.psql("postgres", &format!("ALTER DATABASE {} CONNECTION LIMIT -1", quoted(&world.names[1])));
    // The place of what is wished and does not run is another's.
    world.cluster.psql("postgres", &format!("GRANT CONNECT, CREATE ON DATABASE {} TO keeper", world.names[2]));
    let mut third = world.client(2);
    world.until_answered(&mut third, 2);
    assert_eq!(
        texts(&mut third, "SELECT name FROM freshet.databases"),
        format!("{},{}", world.names[0], world.names[2])
    );
    drop(third);
    // Mended, and given room, it is mirrored: whatever its name is.
    let oddly = format!("GRANT CREATE ON DATABASE {} TO keeper", quoted(&world.names[1]));
    world.cluster.psql("postgres", &oddly);
    assert!(world.direct().simple(&format!("DROP DATABASE {}", world.names[2])).expect("answers").error().is_some());
    let mut own = world.client(0);
    assert_eq!(own.simple(&format!("DROP DATABASE {}", world.names[2])).expect("answers").error(), None);
    world.until_answered(&mut world.client(1), 1);
}

#[test]
fn the_operator_sees_each_database_as_long_as_it_is_mirrored() {
    let operator = Operator::new();
    let world = World::start(|settings, _| {
        settings.mirror.database_idle_ms = 1_000;
        settings.admin.address = operator.address();
    });
    let get = |path: &str| operator.get(path);
    let audits = |metrics: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix("freshet_audits_total "));
        line.and_then(|count| count.parse::<u64>().ok()).expect("counted")
    };
    world.until_answered(&mut world.client(0), 0);
    world.until_answered(&mut world.client(1), 1);
    let metrics = get("/metrics");
    for name in &world.names[..2] {
        assert!(metrics.contains(&format!("freshet_database_ready{{database=\"{name}\"}} 1")), "{metrics}");
        assert!(metrics.contains(&format!("freshet_database_lag_seconds{{database=\"{name}\"}}")), "{metrics}");
    }
    assert!(metrics.contains("freshet_mirrored_databases 2"), "{metrics}");
    let status = get("/status.json");
    assert!(status.contains(&format!("{{\"database\":\"{}\",\"name\":\"public.t\"", world.names[1])), "{status}");
    assert!(status.contains(&format!("{{\"database\":\"{}\",\"statement\":", world.names[1])), "{status}");
    let counted = audits(&metrics);
    assert!(counted >= 2, "{metrics}");
    world.until_slots(&[0]);
    let limit = Instant::now() + WAIT;
    let metrics = loop {
        let metrics = get("/metrics");
        if !metrics.contains(&world.names[1]) {
            break metrics;
        }
        assert!(Instant::now() < limit, "{metrics}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(metrics.contains("freshet_mirrored_databases 1"), "{metrics}");
    // What was counted stays counted.
    assert!(audits(&metrics) >= counted, "{metrics}");
}

#[test]
fn what_a_killed_freshet_left_behind_goes_without_anybody_reading_there() {
    let cluster = Cluster::start(&[]);
    let names = [cluster.database(), cluster.database(), cluster.database()];
    for name in &names {
        cluster.psql(name, "CREATE TABLE t (id int PRIMARY KEY); CREATE PUBLICATION freshet_0123456789ab FOR TABLE t");
    }
    let world = World::before(cluster, names, |_, _| {});
    for at in [1, 2] {
        let limit = Instant::now() + WAIT;
        while world.publications(at) != "0" {
            assert!(Instant::now() < limit, "its publication is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    world.until_slots(&[0]);
}

#[test]
fn what_is_of_the_whole_cluster_counts_in_every_database_at_once() {
    let world = World::start(|settings, _| settings.freshness.mode = FreshnessMode::Session);
    world.cluster.psql("postgres", "CREATE ROLE readers; CREATE ROLE joe LOGIN; GRANT readers TO joe");
    world.cluster.psql(&world.names[1], "GRANT SELECT ON t TO readers");
    let mut joe = RawClient::connect(world.freshet.address(), "joe", &world.names[1]).expect("connects");
    world.until_answered(&mut joe, 1);
    let mut first = world.client(0);
    for _ in 0..3 {
        assert_eq!(first.simple("REVOKE readers FROM joe").expect("answers").error(), None);
        let error = joe.simple(SQL).expect("answers").error().expect("an error");
        assert!(error.contains("42501"), "{error}");
        assert_eq!(first.simple("GRANT readers TO joe").expect("answers").error(), None);
        world.until_answered(&mut joe, 1);
    }
}

#[test]
fn check_and_uninstall_look_at_all_of_them() {
    let world = World::start(|_, _| {});
    world.until_answered(&mut world.client(1), 1);
    // A freshet that begins would have removed it itself.
    world.cluster.psql(
        &world.names[1],
        "CREATE TABLE keyless (id int); CREATE SCHEMA freshet; CREATE PUBLICATION freshet_0123456789ab",
    );
    let mut settings = Settings::default();
    settings.upstream.url = world.cluster.url(&world.names[0]);
    settings.mirror.databases = DatabaseChoice::Auto;
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let report = runtime.block_on(freshet::check::check(&settings)).expect("upstream answers").text;
    let of_second = report.split_once(&format!("database   {}\n", world.names[1])).expect("it is told").1;
    assert!(of_second.contains("table      public.keyless: relayed"), "{report}");
    assert!(of_second.contains("note       schema freshet: upstream has one of this name"), "{report}");
    assert_eq!(report.matches("schema freshet: upstream").count(), 1, "{report}");
    let report = runtime.block_on(freshet::check::uninstall(&settings)).expect("upstream answers");
    let expected = format!("dropped publication freshet_0123456789ab of database {}\n", world.names[1]);
    assert!(report.is_fine && report.text.contains(&expected), "{}", report.text);
    assert_eq!(report.text.matches("dropped").count(), 1, "{}", report.text);
    // That of the running freshet is not.
    assert_eq!(world.publications(1), "1");
}
