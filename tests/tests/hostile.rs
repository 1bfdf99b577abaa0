//! What legitimate applications do that freshet has to bear: statements that take much more than their tables let suppose, keys
//! that come late, portals that are bound in one unit and executed in the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::client::{self, bind, execute, parse, query, rows, sync, tags};
use freshet_tests::raw::RawClient;
use freshet_tests::world::{Settled, World, settle};

const WAIT: Duration = Duration::from_secs(30);

fn settled(client: &mut RawClient, sql: &str) -> (String, String) {
    let Settled { route, reason, .. } = settle(client, sql);
    (route, reason)
}

#[test]
fn what_takes_much_more_than_its_tables_suggest_is_in_nobodys_way() {
    let setup = "CREATE TABLE k (id int PRIMARY KEY, t text); INSERT INTO k SELECT i, 'text ' || i FROM generate_series(1, 1000) i";
    let world = World::start_with(FreshnessMode::Session, setup, |settings| settings.limits.worker_threads = 1);
    let long = |n: u32| {
        format!("SELECT count(*) FROM k a, k b, k c WHERE a.id < {n} AND a.t || b.t || c.t LIKE '%zz%yy%' -- {n}")
    };
    let mut watcher = world.client();
    watcher.simple("SET freshet.route = 'local'").expect("answers");
    assert_eq!(settled(&mut watcher, &long(1)).0, "local");
    assert_eq!(settled(&mut watcher, "SELECT t FROM k WHERE id = 7").0, "local");
    let (port, database) = (world.freshet.port(), world.database.clone());
    let text = long(500);
    let running = std::thread::spawn(move || {
        let mut client = client::RawClient::log_in(port, &database);
        client.query("SET freshet.route = 'local'");
        client.query("SET statement_timeout = '2s'");
        let started = Instant::now();
        client.send(&query(&text));
        let got = client.read_until('Z');
        (tags(&got), started.elapsed())
    });
    let mut slowest = Duration::ZERO;
    let mut reads = 0;
    while !running.is_finished() {
        let started = Instant::now();
        assert_eq!(watcher.simple("SELECT t FROM k WHERE id = 7").expect("answers").text(), "text 7");
        slowest = slowest.max(started.elapsed());
        reads += 1;
    }
    let (got, elapsed) = running.join().expect("no panic");
    // Given up here, then upstream by its own clock.
    assert!(got.ends_with("EZ") && elapsed < Duration::from_secs(20), "{got} after {elapsed:?}");
    assert!(reads > 20 && slowest < Duration::from_secs(1), "{reads} reads, the slowest took {slowest:?}");
}

#[test]
fn long_texts_count_as_what_they_are() {
    let setup = "CREATE TABLE k (id int PRIMARY KEY, t text); INSERT INTO k SELECT i, repeat('text', 500) FROM generate_series(1, 1000) i";
    let world = World::start_with(FreshnessMode::Session, setup, |settings| {
        settings.limits.query_memory_bytes_max = 16 << 20;
    });
    let mut client = world.client();
    client.simple("SET freshet.route = 'local'").expect("answers");
    for (sql, few, many) in [
        ("SELECT (SELECT repeat('x', {})) AS x, id FROM k", 10, 40_000),
        ("SELECT a.t FROM k a, k b WHERE b.id <= {}", 1, 15),
        (
            "SELECT max(length(l)) FROM (SELECT string_agg(t, ',') OVER (ORDER BY id) AS l FROM k WHERE id < {}) x",
            10,
            300,
        ),
        (
            "SELECT max(l) FROM (SELECT array_length(array_agg(t) OVER (ORDER BY id), 1) AS l FROM k WHERE id < {}) x",
            10,
            300,
        ),
        (
            "SELECT count(*) FROM (SELECT rpad(id::text, {}) AS r FROM k WHERE id < 50) a, k b WHERE a.r <> b.t",
            10,
            25_000,
        ),
    ] {
        let (few, many) = (sql.replace("{}", &few.to_string()), sql.replace("{}", &many.to_string()));
        let (route, reason) = settled(&mut client, &few);
        assert_eq!((&*route, &*reason), ("local", ""), "{few}");
        let (route, reason) = settled(&mut client, &many);
        assert_eq!((&*route, &*reason), ("relay", "over_budget: memory"), "{many}");
    }
}

#[test]
fn replies_up_to_one_sync_do_not_pile_up() {
    let setup = "CREATE TABLE k (id int PRIMARY KEY); INSERT INTO k SELECT generate_series(1, 1000)";
    let world = World::start(FreshnessMode::Session, setup);
    let mut watcher = world.client();
    // Of another length each time, so that none is kept for the next.
    let sql = "SELECT id, repeat('x', 1000 + $1::int) FROM k";
    let limit = Instant::now() + WAIT;
    loop {
        watcher.extended(sql, &[Some("1")], 0).expect("answers");
        if watcher.last().expect("answers").0 != "relay" {
            break;
        }
        assert!(Instant::now() < limit, "{:?}", watcher.last());
    }
    for (executions, route) in [(4, "local"), (60, "relay")] {
        let mut client = client::RawClient::log_in(world.freshet.port(), &world.database);
        client.query("SHOW freshet.last");
        let numbers: Vec<String> = (0..executions).map(|number| (executions * 100 + number).to_string()).collect();
        let one = |number: &String| [bind("", "s", &[Some(number)], 0), execute("", 0)].concat();
        let group: Vec<u8> = numbers.iter().flat_map(one).collect();
        client.send(&[parse("s", sql), group, sync()].concat());
        let got = client.read_until('Z');
        assert_eq!(rows(&got).len(), 1000 * executions);
        let last = rows(&client.query("SHOW freshet.last"));
        assert_eq!(last[0][0].as_deref(), Some(route), "{last:?}");
    }
}

#[test]
fn a_key_that_is_added_later_is_noticed() {
    for add in ["ADD PRIMARY KEY (id)", "ADD CONSTRAINT k PRIMARY KEY USING INDEX i"] {
        let setup =
            "CREATE TABLE t (id int NOT NULL, v int); INSERT INTO t VALUES (1, 1); CREATE UNIQUE INDEX i ON t (id)";
        let world = World::start(FreshnessMode::Session, setup);
        let mut client = world.client();
        let sql = "SELECT count(*) FROM t";
        let limit = Instant::now() + WAIT;
        let mut tables = String::new();
        while !tables.contains("replica identity") {
            assert!(Instant::now() < limit, "{tables}");
            client.simple(sql).expect("answers");
            tables = client.simple("SELECT reason FROM freshet.tables").expect("answers").text();
        }
        world.past(&format!("ALTER TABLE t {add}"));
        assert_ne!(settled(&mut client, sql).0, "relay");
    }
}

#[test]
fn what_is_written_all_the_time_is_answered_here_soon() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT i, 0 FROM generate_series(1, 200) i;
        CREATE TABLE beside (id int PRIMARY KEY, t text); INSERT INTO beside SELECT i, 'text' FROM generate_series(1, 400) i";
    let world = World::start(FreshnessMode::Exact, setup);
    let mut client = world.client();
    assert_ne!(settled(&mut client, "SELECT count(*) FROM t, beside").0, "relay");
    let is_over = Arc::new(AtomicBool::new(false));
    let (over, port, database) = (Arc::clone(&is_over), world.cluster.port(), world.database.clone());
    let writer = std::thread::spawn(move || {
        let mut past = client::RawClient::log_in(port, &database);
        let mut writes = 0;
        while !over.load(Ordering::Relaxed) {
            past.query(&format!("UPDATE t SET v = v + 1 WHERE id = {}", 1 + writes % 200));
            writes += 1;
            std::thread::sleep(Duration::from_millis(8));
        }
        writes
    });
    // Takes upstream some tenths of a second, during which t changes many times.
    let sql = "SELECT sum(t.v), count(*) FROM t, beside a, beside b WHERE a.t || b.t <> t.v::text AND a.id < 6";
    let started = Instant::now();
    let mut relays = 0;
    loop {
        let reply = client.simple(sql).expect("answers");
        assert_eq!(reply.error(), None);
        let (route, reason) = client.last().expect("answers");
        if route != "relay" {
            break;
        }
        relays += 1;
        assert!(started.elapsed() < WAIT, "{relays} relays: {reason}");
    }
    is_over.store(true, Ordering::Relaxed);
    let writes = writer.join().expect("no panic");
    assert!(writes > 3 && relays < 30, "{relays} relays, {writes} writes");
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}

#[test]
fn a_portal_that_is_bound_in_one_unit_and_executed_in_the_next_is_no_wrong_answer() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 100)";
    let world = World::start(FreshnessMode::Exact, setup);
    assert_ne!(settled(&mut world.client(), "SELECT count(*) FROM t").0, "relay");
    let mut client = client::RawClient::log_in(world.freshet.port(), &world.database);
    let mut ask = |messages: &[Vec<u8>]| {
        client.send(&messages.concat());
        client.read_until('Z')
    };
    // As asyncpg does with a cursor over a statement that it has prepared before.
    ask(&[parse("s", "SELECT id FROM t ORDER BY id"), sync()]);
    for _ in 0..5 {
        ask(&[query("BEGIN")]);
        assert_eq!(tags(&ask(&[bind("p", "s", &[], 0), sync()])), "2Z");
        let got = ask(&[execute("p", 7), sync()]);
        assert_eq!(rows(&got).len(), 7);
        ask(&[query("COMMIT")]);
    }
    let mut watcher = world.client();
    // Nothing that was under way is left: its audits have been judged.
    assert_ne!(settled(&mut watcher, "SELECT id FROM t ORDER BY id").0, "relay");
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}

/// Statements whose plans are deep: answered as upstream does, wherever, and nobody's session ends.
#[test]
fn statements_of_many_parts_end_no_session() {
    let world = World::start(
        FreshnessMode::Session,
        "CREATE TABLE p (id int PRIMARY KEY, k int, x int, y int); INSERT INTO p SELECT g, g % 3, g % 5, g % 4 FROM generate_series(1, 12) g;
         CREATE TABLE q (id int PRIMARY KEY, k int, x int, y int); INSERT INTO q SELECT g, g % 4, g % 3, g % 5 FROM generate_series(1, 12) g;
         CREATE TABLE r (id int PRIMARY KEY, k int, x int, y int); INSERT INTO r SELECT g, g % 5, g % 4, g % 3 FROM generate_series(1, 12) g;
         -- Else it takes them for large, and compiles for seconds.
         ANALYZE",
    );
    let mut other = world.client();
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    settle(&mut both.through, "SELECT count(*) FROM p, q, r");
    let repeated =
        |count: usize, with: &str, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<Vec<_>>().join(with);
    let branch = |n: usize| format!("SELECT id FROM p WHERE k = {n}");
    let counted = |n: usize| format!("(SELECT count(*) FROM r s WHERE s.k = o.k AND s.x > {n})");
    let joined = |n: usize| format!("LEFT JOIN r r{n} ON r{n}.id = o.id");
    let lateral =
        |n: usize| format!("LEFT JOIN LATERAL (SELECT id FROM r s WHERE s.k <= o.k ORDER BY id LIMIT 1) l{n} ON true");
    let chosen = |n: usize| format!("(o.x = {n} OR NOT EXISTS (SELECT 1 FROM r s WHERE s.k = o.k AND s.y = {n}))");
    let chained = |n: usize| {
        let from = if n == 0 { "p".to_owned() } else { format!("w{}", n - 1) };
        format!("w{n} AS (SELECT id, k FROM {from} o WHERE EXISTS (SELECT 1 FROM r WHERE r.k >= o.k - {n}))")
    };
    let nested = |levels: usize| {
        let mut inner = "SELECT max(z.x) FROM r z WHERE z.x = t0.k".to_owned();
        for level in (0..levels).rev() {
            inner = format!(
                "SELECT min(a{level}.x) FROM r a{level} WHERE a{level}.x < t0.k AND a{level}.id <> ALL (SELECT count(*) FROM q c WHERE a{level}.y IS NULL
                 UNION ALL SELECT e.x FROM p e WHERE t0.id <= 3) AND a{level}.y > ({inner})"
            );
        }
        format!("SELECT t0.id FROM q t0 WHERE t0.k < ({inner}) ORDER BY 1")
    };
    for count in [30, 130, 190, 3_000] {
        let mut statements = vec![
            format!("SELECT * FROM ({}) x ORDER BY 1", repeated(count, " UNION ALL ", &branch)),
            format!("SELECT * FROM ({}) x ORDER BY 1", repeated(count, " EXCEPT ", &branch)),
        ];
        if count <= 190 {
            statements.push(format!("SELECT o.id, {} FROM p o ORDER BY 1", repeated(count, ", ", &counted)));
            statements.push(format!("SELECT o.id FROM p o WHERE {} ORDER BY 1", repeated(count, " AND ", &chosen)));
        }
        if count <= 30 {
            statements.push(format!("SELECT o.id FROM p o {} ORDER BY 1", repeated(count, " ", &joined)));
            statements.push(format!("SELECT o.id FROM p o {} ORDER BY 1", repeated(count, " ", &lateral)));
            statements.push(format!(
                "WITH {} SELECT * FROM w{} ORDER BY 1",
                repeated(count, ", ", &chained),
                count - 1
            ));
            statements.extend([2, 3].map(&nested));
            statements.push(format!(
                "{}SELECT id, k FROM p{} ORDER BY 1",
                "SELECT id, k + 1 AS k FROM (".repeat(count),
                ") x".repeat(count)
            ));
        }
        // Upstream has its own limits (of columns, of its stack), which are errors here, too.
        for sql in statements {
            (0..if count > 190 { 1 } else { 3 }).for_each(|_| drop(both.routed("", &sql)));
        }
        assert_eq!(other.simple("SELECT 1").expect("answers").rows().len(), 1);
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}
