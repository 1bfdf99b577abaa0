//! Kept replies outlive the writes that cannot matter to them, and no others; equal statements that are written differently
//! share one.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::operator::Operator;
use freshet_tests::raw::{RawClient, RawReply};
use freshet_tests::world::{World, until};

const WAIT: Duration = Duration::from_secs(30);

fn ask(client: &mut RawClient, sql: &str) -> RawReply {
    client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn value(reply: &RawReply) -> String {
    let row = reply.rows().into_iter().next().unwrap_or_else(|| panic!("no row: {:?}", reply.error()));
    row[0].clone().map_or("NULL".to_string(), |cell| String::from_utf8(cell).expect("text"))
}

/// The answer, and by which route it came.
fn routed(client: &mut RawClient, sql: &str) -> (String, String) {
    let answer = value(&ask(client, sql));
    (answer, client.last().expect("answers").0)
}

/// Repeats until the statement is answered from the cache.
fn until_hit(client: &mut RawClient, sql: &str) -> String {
    let limit = Instant::now() + WAIT;
    loop {
        let (answer, route) = routed(client, sql);
        if route == "hit" {
            return answer;
        }
        assert!(Instant::now() < limit, "{sql}: answered by {:?}", client.last());
        std::thread::sleep(Duration::from_millis(5));
    }
}

const ORDERS: &str =
    "CREATE TABLE orders (id int PRIMARY KEY, tenant int NOT NULL, day date NOT NULL, amount int, note text);
    INSERT INTO orders SELECT i, i % 10, DATE '2024-01-01' + i % 100, i, 'n' FROM generate_series(1, 1000) i;
    CREATE TABLE tenants (id int PRIMARY KEY, name text);
    INSERT INTO tenants SELECT i, 'tenant ' || i FROM generate_series(0, 9) i";

#[test]
fn a_reply_outlives_exactly_the_writes_that_do_not_concern_it() {
    let world = World::start(FreshnessMode::Exact, ORDERS);
    let mut client = world.client();
    let of_tenant = "SELECT sum(amount) FROM orders WHERE tenant = 3";
    let of_row = "SELECT amount FROM orders WHERE id = 7";
    let of_days = "SELECT count(*) FROM orders WHERE day >= '2024-01-01' AND day < '2024-02-01'";
    let of_list = "SELECT sum(amount) FROM orders WHERE tenant IN (3, 4)";
    let joined = "SELECT sum(o.amount) FROM orders o JOIN tenants t ON t.id = o.tenant WHERE t.id = 3";
    let all = [of_tenant, of_row, of_days, of_list, joined];
    for sql in all {
        until_hit(&mut client, sql);
    }
    // (written past freshet, who must notice)
    let writes: [(&str, &[&str]); 8] = [
        ("UPDATE orders SET amount = amount + 1 WHERE id = 5", &[]),
        ("UPDATE orders SET note = 'other' WHERE tenant = 3 AND id < 200", &[]),
        ("INSERT INTO orders VALUES (2001, 8, '2025-01-01', 1, '')", &[]),
        ("UPDATE orders SET amount = amount + 1 WHERE id = 7", &[of_row]),
        ("UPDATE orders SET amount = amount + 1 WHERE id = 14", &[of_list]),
        ("UPDATE orders SET tenant = 3 WHERE id = 15", &[of_tenant, of_list, joined]),
        ("DELETE FROM orders WHERE id = 15", &[of_tenant, of_days, of_list, joined]),
        ("UPDATE tenants SET name = 'x' WHERE id = 3", &[]),
    ];
    for (write, concerned) in writes {
        world.past(write);
        for sql in all {
            let (answer, route) = routed(&mut client, sql);
            let expected = if concerned.contains(&sql) { "local" } else { "hit" };
            assert_eq!(route, expected, "{sql} after {write}");
            let upstream = world.cluster.psql(&world.database, sql);
            assert_eq!(answer, if upstream.is_empty() { "NULL".to_string() } else { upstream }, "{sql} after {write}");
        }
        for sql in all {
            assert_eq!(routed(&mut client, sql).1, "hit", "{sql}: kept again after {write}");
        }
    }
    world.past("TRUNCATE tenants");
    let (answer, route) = routed(&mut client, joined);
    assert_eq!(answer, "NULL", "not told row by row");
    assert_ne!(route, "hit");
}

/// What gives a table another file and changes nothing of what statements mean: everything else is kept.
#[test]
fn a_table_in_another_file_costs_others_nothing() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE facts (id int PRIMARY KEY, v int); INSERT INTO facts SELECT i, i FROM generate_series(1, 100) i;
         CREATE TABLE staged (id int PRIMARY KEY, v int); CREATE TABLE keyless (v int); CLUSTER staged USING staged_pkey",
    );
    let mut client = world.client();
    let (of_facts, of_staged) = ("SELECT sum(v) FROM facts", "SELECT sum(v) FROM staged");
    until_hit(&mut client, of_facts);
    until_hit(&mut client, of_staged);
    let version = || world.freshet.status(&world.database, "catalog_version");
    let at_first = version();
    for change in [
        "TRUNCATE staged; INSERT INTO staged SELECT i, i FROM generate_series(1, 10) i",
        "TRUNCATE keyless, staged; INSERT INTO staged VALUES (1, 7); INSERT INTO keyless VALUES (1)",
        "VACUUM FULL facts",
        "CLUSTER staged",
    ] {
        world.past(change);
        let expected = [of_facts, of_staged].map(|sql| world.cluster.psql(&world.database, sql));
        // Until the catalog has been read again, what reads the table goes upstream.
        let mut is_noticed = false;
        loop {
            let answered = [of_facts, of_staged].map(|sql| {
                let (answer, route) = routed(&mut client, sql);
                (answer, route, client.last().expect("answers").1)
            });
            assert_eq!(answered.each_ref().map(|(answer, ..)| answer.clone()), expected, "after {change}");
            is_noticed |= answered.iter().any(|(.., reason)| reason.starts_with("catalog_changed"));
            if answered.iter().all(|(_, route, _)| route != "relay") {
                break;
            }
        }
        assert!(is_noticed, "after {change}");
        assert_eq!(routed(&mut client, of_facts).1, "hit", "after {change}");
        assert_eq!(version(), at_first, "after {change}");
    }
    world.past("ALTER TABLE staged ADD COLUMN w int");
    routed(&mut client, of_staged);
    until("a new version of the catalog", || version() != at_first);
}

/// While the catalog is read again because of one table, the others are answered here.
#[test]
fn what_happens_to_one_table_sends_readers_of_no_other_upstream() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE facts (id int PRIMARY KEY, v int); INSERT INTO facts SELECT i, i FROM generate_series(1, 100) i;
         CREATE TABLE busy (id int PRIMARY KEY, v int); CREATE VIEW of_busy AS SELECT v FROM busy;
         CREATE ROLE reader_of_busy",
    );
    let mut client = world.client();
    let (of_facts, of_busy) = ("SELECT sum(v) FROM facts", "SELECT sum(v) FROM of_busy");
    until_hit(&mut client, of_facts);
    until_hit(&mut client, of_busy);
    let mut is_noticed = false;
    for round in 0..40 {
        let change = match round % 5 {
            0 => format!("TRUNCATE busy; INSERT INTO busy VALUES (1, {round})"),
            1 => format!("ALTER TABLE busy ADD COLUMN c{round} int; UPDATE busy SET v = {round}"),
            2 => format!("CREATE OR REPLACE VIEW of_busy AS SELECT v + {round} AS v FROM busy"),
            3 => format!(
                "BEGIN; ALTER TABLE busy RENAME v TO w; UPDATE busy SET w = {round}; ALTER TABLE busy RENAME w TO v; COMMIT"
            ),
            _ if round % 2 == 0 => "VACUUM FULL busy".to_string(),
            _ => "GRANT SELECT ON busy TO reader_of_busy; REVOKE SELECT ON busy FROM reader_of_busy".to_string(),
        };
        world.past(&change);
        let expected = world.cluster.psql(&world.database, of_busy);
        for _ in 0..10 {
            let (answer, route) = routed(&mut client, of_facts);
            assert!(answer == "5050" && route != "relay", "after {change}: {answer} {route} {:?}", client.last());
            assert_eq!(routed(&mut client, of_busy).0, expected, "after {change}");
            is_noticed |= client.last().expect("answers").1.starts_with("catalog_changed");
        }
    }
    assert!(is_noticed);
}

/// 1,000 tenants that poll, each write is one tenant's: the share of replies that live on.
#[test]
fn nearly_all_replies_of_a_thousand_tenants_survive_one_tenants_writes() {
    const TENANTS: usize = 1_000;
    let operator = Operator::new();
    let world = World::start_with(
        FreshnessMode::Session,
        "CREATE TABLE events (id int PRIMARY KEY, tenant int NOT NULL, amount int NOT NULL);
         INSERT INTO events SELECT i, i % 1000, i FROM generate_series(1, 5000) i",
        |settings| settings.admin.address = operator.address(),
    );
    settle(&world);
    let mut client = world.client();
    let mut writer = world.client();
    let sql = |tenant: usize| format!("SELECT count(*), sum(amount) FROM events WHERE tenant = {tenant}");
    until_hit(&mut client, &sql(0));
    for tenant in 1..TENANTS {
        ask(&mut client, &sql(tenant));
    }
    let mut sums: Vec<(i64, i64)> = (0..TENANTS)
        .map(|tenant| {
            let rows = ask(&mut client, &sql(tenant)).rows();
            let number = |at: usize| {
                let cell: &Option<Vec<u8>> = &rows[0][at];
                String::from_utf8_lossy(cell.as_deref().expect("no NULL")).parse::<i64>().expect("a number")
            };
            (number(0), number(1))
        })
        .collect();
    let (mut hits, mut polls, mut next) = (0, 0, 10_000_i64);
    for round in 0..40 {
        let writing = round * 17 % TENANTS;
        for _ in 0..3 {
            let written = ask(&mut writer, &format!("INSERT INTO events VALUES ({next}, {writing}, {next})"));
            assert_eq!(written.error(), None);
            sums[writing].0 += 1;
            sums[writing].1 += next;
            next += 1;
        }
        for step in 0..50 {
            let tenant = if step == 0 { writing } else { (round * 50 + step) % TENANTS };
            let rows = ask(&mut client, &sql(tenant)).rows();
            let cells: Vec<String> =
                rows[0].iter().flatten().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
            assert_eq!(cells, [sums[tenant].0.to_string(), sums[tenant].1.to_string()], "tenant {tenant}");
            polls += 1;
            hits += usize::from(client.last().expect("answers").0 == "hit");
        }
    }
    let report = ask(&mut client, "SELECT statement, survivals, invalidations, invalidated_by FROM freshet.statements");
    let of_shape = report.rows().into_iter().find(|row| {
        row[0].as_deref().is_some_and(|text| String::from_utf8_lossy(text).starts_with("select count ( * ) , sum"))
    });
    let of_shape: Vec<String> = of_shape
        .expect("the shape is listed")
        .into_iter()
        .flatten()
        .map(|cell| String::from_utf8_lossy(&cell).into_owned())
        .collect();
    let (survived, ended): (usize, usize) =
        (of_shape[1].parse().expect("a number"), of_shape[2].parse().expect("a number"));
    let share = 100.0 * survived as f64 / (survived + ended) as f64;
    println!(
        "{hits} of {polls} polls were hits; {survived} replies survived, {ended} did not ({}): {share:.1} %",
        of_shape[3]
    );
    assert!(share >= 95.0 && survived > 500, "{share:.1} % of {survived} + {ended}");
    let counted = |cause: &str| operator.metric(&format!("freshet_replies_outdated_total{{cause=\"{cause}\"}}"));
    let causes = ["catalog", "earlier", "rows", "log_ended", "many_changes", "tables"];
    assert_eq!(causes.into_iter().map(counted).sum::<u64>(), ended as u64);
    assert_eq!(operator.metric("freshet_replies_survived_total"), survived as u64);
    assert!(hits * 100 >= polls * 93, "{hits} of {polls}");
}

/// A panel of the ten largest, while others come that are not among them.
#[test]
fn the_first_of_an_order_stay_a_hit_while_others_come() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let world = World::start_with(mode, ORDERS, |settings| settings.freshness.wait_budget_ms = 5_000);
        let (mut client, mut writer, mut direct) = (world.client(), world.client(), world.direct());
        let sql = "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3";
        until_hit(&mut client, sql);
        let most = ask(&mut direct, "SELECT max(amount), max(id) FROM orders").rows();
        let number = |at: usize| String::from_utf8_lossy(most[0][at].as_deref().expect("no NULL")).parse::<i64>();
        let (most, id) = (number(0).expect("a number"), number(1).expect("a number"));
        for (step, amount) in [0, 1, most + 1, 0, most + 1, most + 2, 0].into_iter().enumerate() {
            let id = id + 1 + step as i64;
            let write = format!("INSERT INTO orders VALUES ({id}, 1, DATE '2026-01-01', {amount})");
            assert_eq!(ask(&mut writer, &write).error(), None);
            let rows = ask(&mut client, sql).rows();
            let route = client.last().expect("answers").0;
            assert_eq!(rows, ask(&mut direct, sql).rows(), "{mode:?}: {write}");
            assert_ne!(route, "relay", "{mode:?}: {write}");
            if amount <= 1 {
                assert_eq!(route, "hit", "{mode:?}: {write}");
            }
        }
        assert_eq!(ask(&mut writer, "DELETE FROM orders WHERE id IN (SELECT max(id) - 1 FROM orders)").error(), None);
        assert_eq!(ask(&mut client, sql).rows(), ask(&mut direct, sql).rows());
        assert_ne!(client.last().expect("answers").0, "relay");
    }
}

/// A side of a join is not a reply, and lives on longer.
#[test]
fn a_kept_side_of_a_join_grows_with_its_table() {
    let operator = Operator::new();
    let world = World::start_with(
        FreshnessMode::Exact,
        "CREATE TABLE products (id int PRIMARY KEY, kind text NOT NULL, made date);
         INSERT INTO products SELECT i, 'kind ' || i % 7, DATE '2026-01-01' + i % 300 FROM generate_series(1, 3000) i;
         CREATE TABLE sales (id int PRIMARY KEY, product int NOT NULL, amount numeric(10,2) NOT NULL);
         INSERT INTO sales SELECT i, i % 4000 + 1, i / 7.0 FROM generate_series(1, 20000) i",
        |settings| {
            settings.admin.address = operator.address();
            settings.freshness.wait_budget_ms = 5_000;
        },
    );
    let (mut client, mut direct) = (world.client(), world.direct());
    // No group of one table's changes can be kept up: the products change.
    let sql = "SELECT p.kind, count(*), sum(s.amount), count(p.made) FROM sales s JOIN products p ON p.id = s.product
               WHERE p.made > DATE '2026-02-01' GROUP BY p.kind ORDER BY p.kind";
    until_hit(&mut client, sql);
    let extended = || operator.metric("freshet_join_sides_extended_total");
    let before = extended();
    for number in 0..10 {
        let (id, kind) = (3_001 + number, number % 9);
        let write = format!("INSERT INTO products VALUES ({id}, 'kind {kind}', DATE '2026-03-01' + {number})");
        assert_eq!(ask(&mut direct, &write).error(), None);
        let rows = ask(&mut client, sql).rows();
        assert_ne!(client.last().expect("answers").0, "relay");
        assert_eq!(rows, ask(&mut direct, sql).rows(), "{write}");
    }
    assert!(extended() >= before + 5, "{} after {before}", extended());
    // What has gone is not in a side that has grown.
    for write in ["DELETE FROM products WHERE id = 3001", "UPDATE products SET kind = 'other' WHERE id = 70"] {
        assert_eq!(ask(&mut direct, write).error(), None);
        assert_eq!(ask(&mut client, sql).rows(), ask(&mut direct, sql).rows(), "{write}");
        assert_ne!(client.last().expect("answers").0, "relay", "{write}");
    }
}

/// Waits until all tables of the world are mirrored.
fn settle(world: &World) {
    let mut client = world.client();
    let limit = Instant::now() + WAIT;
    loop {
        ask(&mut client, "SELECT count(*) FROM events");
        let states = ask(&mut client, "SELECT state FROM freshet.tables").rows();
        if !states.is_empty() && states.iter().all(|row| row[0].as_deref() == Some(b"mirrored")) {
            return;
        }
        assert!(Instant::now() < limit, "not mirrored");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn comments_and_white_space_do_not_matter() {
    let world = World::start(FreshnessMode::Session, ORDERS);
    let mut client = world.client();
    let sql = "SELECT amount FROM orders WHERE id = 7";
    until_hit(&mut client, sql);
    for other in [
        "SELECT amount FROM orders WHERE id = 7 -- traceparent 00-1",
        "SELECT amount FROM orders WHERE id = 7 /* request 2 /* nested */ */",
        "/* app:web */ SELECT amount FROM orders WHERE id = 7",
        "SELECT amount\n  FROM orders\n WHERE id = 7\n",
        "SELECT\tamount  FROM /* x */ orders WHERE id = 7",
    ] {
        assert_eq!(routed(&mut client, other), ("7".to_string(), "hit".to_string()), "{other}");
    }
    let mut prepared = |sql: &str| {
        let reply = client.extended(sql, &[Some("7")], 0).expect("answers");
        (value(&reply), client.last().expect("answers").0)
    };
    let sql = "SELECT amount FROM orders WHERE id = $1";
    let limit = Instant::now() + WAIT;
    while prepared(sql).1 != "hit" {
        assert!(Instant::now() < limit, "no hit");
    }
    assert_eq!(prepared(&format!("{sql} -- 1")), ("7".to_string(), "hit".to_string()));
    assert_eq!(prepared(&format!(" {sql} /* 2 */")), ("7".to_string(), "hit".to_string()));
    // What stands in quotes is no white space, and a line break between two strings is not just any.
    until_hit(&mut client, "SELECT 'a  b' || note FROM orders WHERE id = 7");
    assert_eq!(routed(&mut client, "SELECT 'a b' || note FROM orders WHERE id = 7").0, "a bn");
    assert_eq!(routed(&mut client, "SELECT 'a'\n'b' || note FROM orders WHERE id = 7").0, "abn");
    let error = ask(&mut client, "SELECT 'a' 'b' || note FROM orders WHERE id = 7").error().expect("an error");
    assert!(error.contains("42601"), "{error}");
    until_hit(&mut client, "SELECT $$ -- x $$ || note FROM orders WHERE id = 7");
    assert_eq!(routed(&mut client, "SELECT $$ $$ || note FROM orders WHERE id = 7").0, " n");
}

/// A statement that takes its time, while nobody has its reply.
const SLOW: &str = "SELECT count(*) FROM slow a, slow b WHERE a.v + b.v > 100";

fn slow_world() -> World {
    let world = World::start_with(
        FreshnessMode::Session,
        "CREATE TABLE slow (v int PRIMARY KEY); INSERT INTO slow SELECT generate_series(1, 2600)",
        |settings| {
            settings.cache.shared_wait_ms = 60_000;
            // On a machine under load the mirror may be late.
            settings.freshness.max_lag_ms = 60_000;
        },
    );
    let mut client = world.client();
    until_hit(&mut client, SLOW);
    world
}

#[test]
fn equal_misses_are_computed_once() {
    let world = slow_world();
    let mut writer = world.client();
    let mut clients: Vec<RawClient> = (0..8).map(|_| world.client()).collect();
    for client in &mut clients {
        // Its settings are known, and nothing else is waited for.
        assert_eq!(routed(client, SLOW).1, "hit", "{:?}", client.last());
    }
    assert_eq!(ask(&mut writer, "INSERT INTO slow VALUES (2601)").error(), None);
    let upstream = world.cluster.psql(&world.database, SLOW);
    let ask_once = |mut client: RawClient| {
        let (answer, route) = routed(&mut client, SLOW);
        (answer, route, client.last().expect("answers").1)
    };
    let asked: Vec<_> = clients.into_iter().map(|client| std::thread::spawn(move || ask_once(client))).collect();
    let answers: Vec<_> = asked.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    assert!(answers.iter().all(|(answer, ..)| *answer == upstream), "{answers:?}, not {upstream}");
    let computed = answers.iter().filter(|(_, route, _)| route == "local").count();
    let shared = answers.iter().filter(|(_, route, _)| route == "hit").count();
    assert_eq!((computed, shared), (1, 7), "{answers:?}");
}

#[test]
fn whoever_waits_is_freed_when_the_one_who_computes_goes_away() {
    let world = slow_world();
    let mut leader = world.client();
    let mut waiters = [world.client(), world.client()];
    ask(&mut leader, SLOW);
    waiters.iter_mut().for_each(|waiter| drop(ask(waiter, SLOW)));
    world.past("INSERT INTO slow VALUES (2601)");
    ask(&mut leader, "INSERT INTO slow VALUES (2602)");
    let upstream = world.cluster.psql(&world.database, SLOW);
    let mut query = SLOW.as_bytes().to_vec();
    query.push(0);
    leader.send(&freshet_tests::raw::frame(b'Q', &query)).expect("sent");
    std::thread::sleep(Duration::from_millis(60));
    let [mut first, mut second] = waiters;
    let first = std::thread::spawn(move || routed(&mut first, SLOW));
    let second = std::thread::spawn(move || routed(&mut second, SLOW));
    std::thread::sleep(Duration::from_millis(60));
    drop(leader);
    let mut routes = Vec::new();
    for waiter in [first, second] {
        let (answer, route) = waiter.join().expect("no panic");
        assert_eq!(answer, upstream);
        routes.push(route);
    }
    routes.sort();
    assert!(routes == ["hit", "local"] || routes == ["hit", "hit"], "{routes:?}: the leader may have been quicker");
}
