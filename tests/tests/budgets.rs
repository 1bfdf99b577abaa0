//! What one statement may use: the bounds hold, and what stays within them is answered here.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::operator::Operator;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{Settled, World, settle, until};

const WAIT: Duration = Duration::from_secs(30);

/// Many equal amounts.
const SETUP: &str = "CREATE TABLE sales (id int PRIMARY KEY, shop int, amount int);
    INSERT INTO sales SELECT i, i % 50, i % 100 FROM generate_series(1, 5000) i;
    CREATE TABLE shops (id int PRIMARY KEY, name text);
    INSERT INTO shops SELECT i, 'shop ' || i FROM generate_series(0, 49) i";

/// The last route and its reason once the statement is not relayed for its first run any more.
fn settled(client: &mut RawClient, sql: &str) -> (String, String) {
    let Settled { route, reason } = settle(client, sql);
    (route, reason)
}

#[test]
fn only_what_goes_beyond_a_bound_is_relayed() {
    let world = World::start_with(FreshnessMode::Exact, SETUP, |settings| {
        settings.limits.query_rows_max = 1_000;
        settings.limits.query_join_rows_max = 20_000;
    });
    let mut client = world.client();
    client.simple("SET freshet.route = 'local'").expect("answers");
    // More rows than a result may have lie below the limit, or come out of the join.
    for sql in [
        "SELECT id, amount FROM sales ORDER BY amount DESC LIMIT 30",
        "SELECT id, amount FROM sales ORDER BY amount LIMIT 30 OFFSET 70",
        "SELECT amount FROM sales WHERE shop < 40 ORDER BY amount DESC, id LIMIT 5",
        "SELECT id, shop, amount FROM sales LIMIT 20",
        "SELECT s.name, count(*), sum(x.amount) FROM sales x JOIN shops s ON s.id = x.shop GROUP BY s.name",
        "SELECT x.id, s.name FROM sales x JOIN shops s ON s.id = x.shop ORDER BY x.amount DESC, x.id LIMIT 10",
    ] {
        assert_eq!(settled(&mut client, sql), ("local".to_owned(), String::new()), "{sql}");
    }
    for (sql, budget) in [
        ("SELECT id FROM sales", "result rows"),
        ("SELECT count(*) FROM sales a JOIN sales b ON a.shop = b.shop", "joined rows"),
    ] {
        let (route, reason) = settled(&mut client, sql);
        assert!(route == "relay" && reason.contains(budget), "{sql}: {route} {reason}");
    }
}

#[test]
fn memory_is_bounded_for_one_statement_and_for_all_together() {
    let large = "SELECT a.id + b.id FROM sales a JOIN sales b ON a.shop = b.shop ORDER BY 1";
    for (one, all, reason) in [
        (1 << 20, 1 << 30, "over_budget: memory"),
        (1 << 30, 1 << 20, "over_budget: memory of all statements together"),
        (1 << 30, 1 << 30, ""),
    ] {
        let world = World::start_with(FreshnessMode::Exact, SETUP, |settings| {
            settings.limits.query_memory_bytes_max = one;
            settings.limits.queries_memory_bytes_max = all;
        });
        let mut client = world.client();
        client.simple("SET freshet.route = 'local'").expect("answers");
        let (route, said) = settled(&mut client, large);
        assert!(said == reason && (route == "local") == reason.is_empty(), "{one} {all}: {route} {said}");
    }
}

/// What one step makes of little: text that a dictionary holds once for many rows, and texts that wait for their order.
#[test]
fn what_becomes_large_in_one_step_is_bounded() {
    let setup = "CREATE TABLE docs (id int PRIMARY KEY, doc text);
        INSERT INTO docs SELECT n, repeat(chr(97 + n % 5), 40000) FROM generate_series(1, 90) n;
        CREATE TABLE m (id int PRIMARY KEY, s text, r text, a text[]);
        INSERT INTO m VALUES (1, 'xax', 'y', '{a,b}'), (2, repeat('x', 3000), repeat('y', 20000), array_fill('a'::text, ARRAY[3000]));
        CREATE TABLE big (id int PRIMARY KEY, g int, h text); INSERT INTO big SELECT n, n % 97, md5(n::text) FROM generate_series(1, 20000) n";
    let world = World::start_with(FreshnessMode::Exact, setup, |settings| {
        settings.limits.query_memory_bytes_max = 32 << 20;
    });
    let mut client = world.client();
    client.simple("SET freshet.route = 'local'").expect("answers");
    for (small, large) in [
        (
            "SELECT count(*) FROM big LEFT JOIN docs d ON d.id = big.g WHERE coalesce(d.doc, 'none for ' || big.id) <> 'zz' AND big.id < 90",
            "SELECT count(*) FROM big LEFT JOIN docs d ON d.id = big.g WHERE coalesce(d.doc, 'none for ' || big.id) <> 'zz' AND big.id < 9000",
        ),
        (
            "SELECT length(string_agg(repeat(h, 600), '' ORDER BY id)) FROM big WHERE id < 9",
            "SELECT length(string_agg(repeat(h, 600), '' ORDER BY id)) FROM big WHERE id < 19000",
        ),
        (
            "SELECT array_length(array_agg(repeat(h, 600) ORDER BY g), 1) FROM big WHERE id < 9",
            "SELECT array_length(array_agg(repeat(h, 600) ORDER BY g), 1) FROM big WHERE id < 19000",
        ),
        (
            "SELECT length(regexp_replace(s, 'x', r, 'g')) FROM m WHERE id = 1",
            "SELECT length(regexp_replace(s, 'x', r, 'g')) FROM m WHERE id = 2",
        ),
        (
            "SELECT length(array_to_string(a, r)) FROM m WHERE id = 1",
            "SELECT length(array_to_string(a, r)) FROM m WHERE id = 2",
        ),
        (
            "SELECT length(concat(repeat(r, 700), repeat(s, 5), repeat(r, 600), repeat(r, 500))) FROM m WHERE id = 1",
            "SELECT length(concat(repeat(r, 700), repeat(s, 5), repeat(r, 600), repeat(r, 500))) FROM m WHERE id = 2",
        ),
    ] {
        assert_eq!(settled(&mut client, small), ("local".to_owned(), String::new()), "{small}");
        let (route, reason) = settled(&mut client, large);
        assert!(route == "relay" && reason == "over_budget: memory", "{large}: {route} {reason}");
    }
}

/// More rows than an aggregate with an order of its own takes in at a time.
#[test]
fn what_chooses_among_all_rows_has_them_at_once() {
    let setup = "CREATE TABLE many (id int PRIMARY KEY, g int, v int);
        INSERT INTO many SELECT n, n % 2, n * 7919 % 10007 FROM generate_series(1, 150000) n";
    let world = World::start(FreshnessMode::Exact, setup);
    let mut client = world.client();
    for sql in [
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v), percentile_disc(0.9) WITHIN GROUP (ORDER BY v DESC) FROM many",
        "SELECT g, percentile_disc(0.25) WITHIN GROUP (ORDER BY v), mode() WITHIN GROUP (ORDER BY v) FROM many GROUP BY g ORDER BY g",
        "SELECT g, length(string_agg(v::text, ',' ORDER BY v, id)), (array_agg(id ORDER BY v DESC, id))[1:3] FROM many GROUP BY g ORDER BY g",
        "SELECT count(*), array_length(array_agg(DISTINCT v ORDER BY v), 1) FROM many",
    ] {
        assert_eq!(settled(&mut client, sql), ("local".to_owned(), String::new()), "{sql}");
    }
}

/// First runs that wait upstream take no room from those whose replies are there.
#[test]
fn who_waits_upstream_keeps_nobody_from_being_compared() {
    let setup = "CREATE TABLE big (id int PRIMARY KEY, s text); INSERT INTO big SELECT n, repeat('s', 200) FROM generate_series(1, 3000) n;
        CREATE TABLE held (id int PRIMARY KEY); INSERT INTO held VALUES (1)";
    let world = World::start(FreshnessMode::Exact, setup);
    let mut client = world.client();
    settled(&mut client, "SELECT id FROM held");
    settled(&mut client, "SELECT count(*) FROM big");
    let mut holder = world.direct();
    assert_eq!(holder.simple("BEGIN; LOCK TABLE held IN ACCESS EXCLUSIVE MODE").expect("answers").error(), None);
    let mut waiting: Vec<RawClient> = (0..6).map(|_| world.client()).collect();
    for (number, client) in waiting.iter_mut().enumerate() {
        let sql = format!("SELECT id{} FROM held", " + id".repeat(number + 1));
        client.send(&freshet_tests::client::query(&sql)).expect("sent");
    }
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT id + id%'";
    until("all of them wait", || world.past(waits) == "6");
    assert_eq!(settled(&mut client, "SELECT id, s FROM big ORDER BY id").0, "local");
    holder.simple("ROLLBACK").expect("answers");
    for client in &mut waiting {
        assert_eq!(client.read_reply().expect("answers").error(), None);
    }
}

#[test]
fn a_table_without_room_is_mirrored_once_there_is_some() {
    // Each some 7 MB of heap.
    let setup = "CREATE TABLE one (id int PRIMARY KEY, note text); CREATE TABLE two (id int PRIMARY KEY, note text);
        INSERT INTO one SELECT i, md5(i::text) FROM generate_series(1, 100000) i; INSERT INTO two SELECT * FROM one; ANALYZE";
    let world = World::start_with(FreshnessMode::Exact, setup, |settings| settings.mirror.memory_bytes_max = 6 << 20);
    let mut client = world.client();
    client.simple("SET freshet.route = 'local'").expect("answers");
    let mut until = |table: &str, wanted: &str, part: &str| {
        let limit = Instant::now() + 3 * WAIT;
        loop {
            let reply = client.simple(&format!("SELECT count(*) FROM {table} WHERE id < 51")).expect("answers");
            assert_eq!(reply.error(), None, "{table}");
            let (route, reason) = client.last().expect("answers");
            if route == wanted && reason.contains(part) {
                return;
            }
            assert!(Instant::now() < limit, "{table}: {route} {reason}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until("one", "local", "");
    until("two", "relay", "");
    let mut other = world.client();
    let limit = Instant::now() + WAIT;
    loop {
        let reason =
            other.simple("SELECT reason FROM freshet.tables WHERE name = 'public.two'").expect("answers").text();
        if reason.contains("memory_bytes_max") {
            break;
        }
        assert!(Instant::now() < limit, "{reason}");
        std::thread::sleep(Duration::from_millis(20));
    }
    world.past("DROP TABLE one");
    until("two", "local", "");
}

/// An attempt that came to nothing after a while costs upstream's time and its own: the next are upstream's at once, for a while.
#[test]
fn what_came_to_nothing_is_not_tried_again_at_once() {
    let world = World::start_with(FreshnessMode::Exact, SETUP, |settings| {
        settings.limits.query_join_rows_max = 15_000_000;
    });
    let mut client = world.client();
    client.simple("SET freshet.route = 'local'").expect("answers");
    // The shape is known by few rows.
    let sql = |last: u32| format!("SELECT count(*) FROM sales a JOIN sales b ON a.amount <> b.id WHERE a.id < {last}");
    assert_eq!(settled(&mut client, &sql(10)), ("local".to_owned(), String::new()));
    let mut ask = |last: u32| {
        let reply = client.simple(&sql(last)).expect("answers");
        assert_eq!(reply.text(), world.past(&sql(last)));
        client.last().expect("answers")
    };
    let too_many = ("relay".to_owned(), "over_budget: joined rows".to_owned());
    assert_eq!(ask(5_000), too_many);
    for last in 20..28 {
        assert_eq!(ask(last), too_many, "{last}");
    }
    assert_eq!(ask(30), ("local".to_owned(), String::new()));
}

/// Where PostgreSQL is much faster, freshet is not in its way.
#[test]
fn a_shape_that_is_much_slower_here_is_upstreams() {
    // Correlated twice: PostgreSQL has an index for each look, a build without optimisation takes far more than 50 ms.
    const SQL: &str =
        "SELECT count(*) FROM sales o WHERE o.id <= 1500 AND EXISTS (SELECT FROM shops c WHERE c.id = o.shop
        AND (SELECT count(*) FROM sales x WHERE x.shop = c.id AND x.id <= o.id) = 2)";
    let setup = format!("{SETUP}; CREATE INDEX ON sales (shop, id); ANALYZE");
    for (slower_times, route, reason) in [(0, "local", ""), (3, "relay", "over_budget: slower here than upstream")] {
        let world = World::start_with(FreshnessMode::Exact, &setup, |settings| {
            settings.audit.slower_times = slower_times;
        });
        let mut client = world.client();
        client.simple("SET freshet.route = 'local'").expect("answers");
        let settled = settle(&mut client, SQL);
        assert_eq!((&*settled.route, &*settled.reason), (route, reason));
    }
}

/// What agreed on no rows is compared again at once, and then at growing distances, until some agree.
#[test]
fn an_empty_answer_is_no_verdict_for_long() {
    let world = World::start_with(FreshnessMode::Exact, SETUP, |settings| settings.audit.sample_one_in = 1_000_000);
    let (mut client, mut other) = (world.client(), world.client());
    let mut compared = || {
        let sql = "SELECT value FROM freshet.status WHERE name = 'audits'";
        other.simple(sql).expect("answers").text().parse::<u64>().expect("a number")
    };
    let mut next = 100_000;
    let mut ask = |id: Option<u32>| {
        next += 1;
        let id = id.unwrap_or(next);
        let sql = format!("SELECT id, amount FROM sales WHERE id = {id}");
        assert_eq!(client.simple(&sql).expect("answers").rows().len(), usize::from(id < 5_000));
        client.last().expect("answers")
    };
    let sample = ("relay".to_owned(), "audit_sample".to_owned());
    let local = ("local".to_owned(), String::new());
    let limit = Instant::now() + WAIT;
    let mut answered = ask(None);
    while answered != sample && Instant::now() < limit {
        answered = ask(None);
    }
    let rest: Vec<_> = (2..=8).map(|_| ask(None)).collect();
    let expected = [&sample, &local, &sample, &local, &local, &local, &sample].map(Clone::clone);
    assert_eq!((answered, &rest[..]), (sample.clone(), &expected[..]));
    // The 9th to the 15th are answered here, the 16th has a row.
    assert!((9..16).all(|_| ask(None) == local));
    let before = compared();
    assert_eq!(ask(Some(7)), sample);
    until("it is compared", || compared() > before);
    assert!((17..40).all(|_| ask(None) == local), "it has been compared");
}

#[test]
fn the_operator_sees_what_each_table_and_column_takes() {
    const ROWS: u64 = 20_000;
    let operator = Operator::new();
    let setup = format!(
        "CREATE TABLE sized (id int PRIMARY KEY, note text, place point);
         INSERT INTO sized SELECT i, md5(i::text), point(i, i) FROM generate_series(1, {ROWS}) i"
    );
    let world = World::start_with(FreshnessMode::Exact, &setup, |settings| settings.admin.address = operator.address());
    let mut client = world.client();
    client.simple("SET freshet.route = 'local'").expect("answers");
    assert_eq!(settled(&mut client, "SELECT count(*) FROM sized WHERE id < 51").0, "local");
    let columns = "SELECT name, type, bytes FROM freshet.columns WHERE table_name = 'public.sized'";
    let rows = client.simple(columns).expect("answers").rows();
    let text = |cell: &Option<Vec<u8>>| cell.as_ref().map(|cell| String::from_utf8_lossy(cell).into_owned());
    let shown: Vec<Vec<Option<String>>> = rows.iter().map(|row| row.iter().map(text).collect()).collect();
    let named = |name: &str, held: Option<&str>| {
        let row = shown.iter().find(|row| row[0].as_deref() == Some(name)).expect(name);
        assert_eq!(row[1].as_deref(), held);
        row[2].as_ref().map(|bytes| bytes.parse::<u64>().expect("a number"))
    };
    let (id, note) = (named("id", Some("integer")).expect("held"), named("note", Some("text")).expect("held"));
    assert!((4 * ROWS..8 * ROWS).contains(&id) && note >= 32 * ROWS, "{shown:?}");
    assert_eq!(named("place", None), None);
    let series = format!("freshet_table_mirrored_bytes{{database=\"{}\",table=\"public.sized\"}}", world.database);
    assert!(operator.metric(&series) >= id + note);
    world.past("DROP TABLE sized");
    until("its line is gone", || !operator.get("/metrics").contains("public.sized"));
}
