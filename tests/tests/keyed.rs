//! Large tables read by keys that are known only when the statement runs: lists, and what a few rows of another table lead to. Every
//! answer is upstream's, also while rows are written.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, settle, until, will_pass};

/// Keys of several types and widths, some that many rows have, NULLs, keys that lead nowhere.
const SETUP: &str = "
    CREATE TABLE customers (id int PRIMARY KEY, name text, email text, region smallint, code uuid, big bigint);
    INSERT INTO customers SELECT n, 'name ' || n, 'u' || n || '@example.org', n % 7, md5(n::text)::uuid, n FROM generate_series(1, 2000) n;
    CREATE TABLE orders (id int PRIMARY KEY, customer_id int, customer_big bigint, code uuid, email text, total numeric(10,2), status text, placed timestamptz);
    INSERT INTO orders SELECT n, CASE WHEN n % 50 = 0 THEN NULL WHEN n % 9 = 0 THEN 7 ELSE (n * 7919::bigint % 2200)::int END, n % 2100, md5((n % 2050)::text)::uuid,
        'u' || n % 2100 || '@example.org', n % 10000 / 100.0, (ARRAY['new', 'paid', 'sent'])[n % 3 + 1], timestamptz '2024-01-01+00' + n * interval '1 minute'
      FROM generate_series(1, 40000) n;
    CREATE TABLE items (id int PRIMARY KEY, order_id int, sku text, quantity int);
    INSERT INTO items SELECT n, (n * 104729::bigint % 41000)::int, 'sku' || n % 300, n % 5 FROM generate_series(1, 60000) n;
    CREATE INDEX ON orders (customer_id); CREATE INDEX ON items (order_id);
    CREATE VIEW order_sums AS SELECT customer_id, count(*) AS n, max(total) AS largest FROM orders GROUP BY customer_id;
    ANALYZE";

/// `K` is a key.
const STATEMENTS: &[&str] = &[
    "SELECT c.*, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) FROM customers c WHERE c.id = K",
    "SELECT c.id, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) FROM customers c WHERE c.id > K ORDER BY c.id LIMIT 20",
    "SELECT c.id, (SELECT sum(total) FROM orders o WHERE o.customer_id = c.id), (SELECT max(placed) FROM orders o WHERE o.customer_id = c.id AND o.status = 'paid') FROM customers c WHERE c.id IN (K, K + 1, K + 2, 7) ORDER BY c.name DESC LIMIT 3 OFFSET 1",
    "SELECT c.id, l.list FROM customers c LEFT JOIN LATERAL (SELECT coalesce(json_agg(json_build_object('id', o.id, 'total', o.total) ORDER BY o.id), '[]') AS list FROM orders o WHERE o.customer_id = c.id) l ON true WHERE c.id = K",
    "SELECT c.id, l.id, l.total FROM customers c LEFT JOIN LATERAL (SELECT o.id, o.total FROM orders o WHERE o.customer_id = c.id ORDER BY o.total DESC, o.id LIMIT 3) l ON true WHERE c.id BETWEEN K AND K + 5 ORDER BY 1, 3 DESC, 2",
    "SELECT c.name, o.id, o.total FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.id = K ORDER BY o.id",
    "SELECT c.name, o.id, o.total FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.email = 'uK@example.org' ORDER BY o.id",
    "SELECT c.name, o.id, i.id, i.sku FROM customers c JOIN orders o ON o.customer_id = c.id JOIN items i ON i.order_id = o.id WHERE c.id = K ORDER BY o.id, i.id",
    "SELECT c.name, count(i.id), sum(i.quantity) FROM customers c JOIN orders o ON o.customer_id = c.id JOIN items i ON i.order_id = o.id AND i.quantity > 1 WHERE c.region = 3 AND c.id < K GROUP BY c.name ORDER BY c.name",
    "SELECT c.id FROM customers c WHERE c.id BETWEEN K AND K + 50 AND EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.status = 'paid') ORDER BY c.id",
    "SELECT c.id FROM customers c WHERE c.id BETWEEN K AND K + 50 AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_big = c.id AND o.total > 50) ORDER BY c.id",
    "SELECT c.id, EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.total > 99) FROM customers c WHERE c.id BETWEEN K AND K + 9 ORDER BY c.id",
    "SELECT o.id FROM orders o WHERE o.customer_id IN (SELECT id FROM customers WHERE email = 'uK@example.org') ORDER BY o.id",
    "SELECT * FROM items WHERE order_id IN (K, K + 7, K + 9, K + 100, NULL, K) ORDER BY id",
    "SELECT * FROM items WHERE order_id = ANY (ARRAY[K, K + 5, 40999]) AND quantity > 0 ORDER BY id",
    "SELECT * FROM items WHERE order_id = ANY ('{K,1,NULL,2}') ORDER BY id",
    "SELECT count(*) FROM items WHERE order_id IN (K, 100000000000, -1)",
    "SELECT id FROM items WHERE order_id = ANY (ARRAY[id, K, quantity]) OR id = K ORDER BY id",
    "SELECT id FROM items WHERE order_id = K OR order_id = id OR K = order_id ORDER BY id",
    "SELECT id FROM items WHERE order_id = ANY (ARRAY[id, K]) ORDER BY id",
    "SELECT id FROM items WHERE (K IS NULL OR order_id = K) AND ('' IS NULL OR quantity IN (1, 2)) ORDER BY id",
    "SELECT id FROM items WHERE (NULL OR order_id IN (K, 5)) AND (false OR id > 3 OR quantity = 1) ORDER BY id",
    "SELECT id FROM items WHERE order_id IN (id, K, quantity + 5) ORDER BY id",
    "SELECT c.id, c.name, count(o.id), max(o.placed) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id WHERE c.id BETWEEN K AND K + 20 GROUP BY c.id, c.name ORDER BY c.id",
    "SELECT c.id, o.id FROM customers c JOIN orders o ON o.customer_big = c.id WHERE c.id = K ORDER BY 2",
    "SELECT c.id, o.id FROM customers c JOIN orders o ON o.customer_id = c.big WHERE c.region = 2 AND c.id < 40 + K % 9 ORDER BY 1, 2",
    "SELECT c.id, o.id FROM customers c JOIN orders o ON o.code = c.code WHERE c.name = 'name K' ORDER BY 2",
    "SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON o.email = c.email AND o.status <> 'new' WHERE c.id BETWEEN K AND K + 3 ORDER BY 1, 2",
    "SELECT c.id, s.n, s.largest FROM customers c LEFT JOIN order_sums s ON s.customer_id = c.id WHERE c.id BETWEEN K AND K + 3 ORDER BY 1",
    "SELECT c.id, s.n FROM customers c JOIN (SELECT customer_id, count(*) AS n FROM orders WHERE status = 'sent' GROUP BY customer_id HAVING count(*) > 2) s ON s.customer_id = c.id WHERE c.region = 1 AND c.id < 60 + K % 50 ORDER BY 1",
    "SELECT o.id, (SELECT json_agg(i.sku ORDER BY i.id) FROM items i WHERE i.order_id = o.id) FROM orders o WHERE o.customer_id = K ORDER BY o.id",
    "WITH few AS (SELECT * FROM customers WHERE id IN (K, K + 3)) SELECT f.id, o.id, i.sku FROM few f JOIN orders o ON o.customer_id = f.id LEFT JOIN items i ON i.order_id = o.id ORDER BY 1, 2, i.id",
    "SELECT a.id, b.id FROM orders a JOIN orders b ON b.customer_id = a.customer_id AND b.id < a.id WHERE a.id = K ORDER BY 2",
    "SELECT (SELECT count(*) FROM orders o WHERE o.customer_id = c.id), c.region FROM customers c WHERE c.id < K ORDER BY c.region DESC, c.id DESC LIMIT 7",
    "SELECT id FROM customers WHERE lower(email) = 'uK@example.org'",
    "SELECT id, region FROM customers WHERE upper(email) = upper('uK@example.org') AND region < 5",
    "SELECT o.id FROM orders o WHERE o.email || '!' = 'uK@example.org!' ORDER BY o.id",
    "SELECT id FROM items WHERE (order_id, quantity) IN ((K, 1), (K + 1, 2), (7, 3)) ORDER BY id",
    "SELECT id FROM orders WHERE customer_id = K OR code = md5('K')::uuid ORDER BY id",
    "SELECT id FROM orders WHERE (customer_id = K AND total > 5) OR id IN (K, K + 1) OR customer_id IS NULL AND id = 50 ORDER BY id",
    "SELECT id FROM orders WHERE (placed, id) > (timestamptz '2024-01-01 00:00+00' + K * interval '1 minute', 5) ORDER BY placed, id LIMIT 7",
    "SELECT id FROM orders WHERE (placed, id) <= (timestamptz '2024-01-03 00:00+00' + K * interval '1 minute', K) ORDER BY placed DESC, id DESC LIMIT 7",
    "SELECT id FROM orders WHERE id BETWEEN K AND K + 40 AND placed < timestamptz '2024-01-20 00:00+00' ORDER BY id DESC LIMIT 5",
    "SELECT id FROM orders WHERE id < K * 9 AND status = 'paid' ORDER BY id DESC LIMIT 5",
    "SELECT c.id, c.name, count(o.id), sum(o.total) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id WHERE c.id > K GROUP BY c.id ORDER BY c.id LIMIT 7",
    "SELECT DISTINCT c.id, c.region FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.total > 50 WHERE c.id < K ORDER BY c.region, c.id DESC LIMIT 7 OFFSET 2",
    "SELECT o.id, c.name, count(i.id) FROM orders o LEFT JOIN customers c ON c.id = o.customer_id LEFT JOIN items i ON i.order_id = o.id WHERE o.id > K GROUP BY o.id, c.name ORDER BY o.placed, o.id LIMIT 6",
    "SELECT c.id, l.total FROM customers c LEFT JOIN LATERAL (SELECT o.total FROM orders o WHERE o.customer_id = c.id ORDER BY o.placed DESC LIMIT 1) l ON true WHERE c.id > K ORDER BY c.id LIMIT 6",
];

fn both(world: &World) -> Both {
    Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[])
}

#[test]
fn what_few_rows_lead_to_is_upstreams_answer() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let mut both = both(&world);
    for template in STATEMENTS {
        settle(&mut both.through, &template.replace('K', "3"));
        for key in ["1", "7", "12", "50", "1999", "2000", "2001", "2150", "40001"] {
            let sql = template.replace('K', key);
            until(&sql, || {
                let (route, reason) = both.routed("nothing", &sql);
                assert!(route == "local" || will_pass(&reason), "{sql}: {route} {reason}");
                route == "local"
            });
        }
    }
}

#[test]
fn an_array_of_keys_may_be_a_parameter() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let (mut here, mut there) = (world.client(), world.direct());
    let sql = "SELECT id, sku FROM items WHERE order_id = ANY ($1) ORDER BY id";
    for keys in ["{1,2,3}", "{}", "{NULL}", "{40999,NULL,7}", "{5}"] {
        for format in [0, 1] {
            until(&format!("{sql} {keys}"), || {
                let ask = |client: &mut RawClient| client.extended(sql, &[Some(keys)], format).expect("answers");
                let (found, expected) = (ask(&mut here), ask(&mut there));
                let (route, reason) = here.last().expect("answers");
                assert_eq!(found.frames, expected.frames, "{keys}: {route} {reason}");
                route == "local"
            });
        }
    }
}

/// A condition that counts only where it has a value, as reports are written.
#[test]
fn a_condition_may_be_left_open() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let (mut here, mut there) = (world.client(), world.direct());
    let sql = "SELECT id, sku FROM items WHERE ($1::int IS NULL OR order_id = $1::int) AND ($2::text IS NULL OR sku = $2::text) ORDER BY id";
    for values in [
        [Some("7"), None],
        [Some("7"), Some("sku3")],
        [None, Some("sku3")],
        [Some("40999"), Some("none")],
        [None, None],
    ] {
        until(&format!("{sql} {values:?}"), || {
            let ask = |client: &mut RawClient| client.extended(sql, &values, 0).expect("answers");
            let (found, expected) = (ask(&mut here), ask(&mut there));
            let (route, reason) = here.last().expect("answers");
            assert!(found.frames == expected.frames, "{values:?}: {route} {reason}");
            route == "local" || route == "hit"
        });
    }
}

/// As SQLAlchemy and psycopg2 write a batch of eager loading: 500 keys, each cast twice, were too long a chain.
#[test]
fn hundreds_of_keys_may_be_cast_twice() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let mut both = both(&world);
    let keys = world
        .past("SELECT string_agg('''' || md5(n::text)::uuid || '''::uuid::UUID', ', ') FROM generate_series(1, 500) n");
    let sql = format!("SELECT o.id, o.code FROM orders o WHERE o.code IN ({}) ORDER BY o.id", keys.trim());
    settle(&mut both.through, &sql);
    both.through.simple("SET freshet.route = 'local'").expect("answers");
    assert_eq!(both.compare("nothing", &sql), None);
}

/// What PostgreSQL computes before it sorts raises its error for rows behind the limit, too.
#[test]
fn an_error_behind_the_limit_is_raised() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let (mut here, mut there) = (world.client(), world.direct());
    let sql = |at: i32| {
        format!(
            "SELECT 100 / (c.id - {at}), (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) FROM customers c ORDER BY c.name LIMIT 2"
        )
    };
    settle(&mut here, &sql(5000));
    let ask = |client: &mut RawClient| client.simple(&sql(1500)).expect("answers").error();
    let (found, expected) = (ask(&mut here), ask(&mut there));
    assert!(expected.as_ref().is_some_and(|error| error.contains("division by zero")), "upstream raises it");
    assert_eq!(found, expected);
}

/// New rows of old keys, rows that are gone, keys that move: in chunks that have no index yet.
#[test]
fn what_is_written_is_led_to() {
    let world = World::start(FreshnessMode::Session, SETUP);
    let mut both = both(&world);
    for template in STATEMENTS {
        settle(&mut both.through, &template.replace('K', "3"));
    }
    let writes = [
        "INSERT INTO orders SELECT 50000 + n, 12, 12, md5('12')::uuid, 'u12@example.org', n, 'paid', now() FROM generate_series(1, 40) n",
        "DELETE FROM orders WHERE customer_id = 12 AND id % 2 = 0",
        "UPDATE orders SET customer_id = 50 WHERE customer_id = 12 AND id % 3 = 0",
        "UPDATE customers SET id = 5000 WHERE id = 12",
        "INSERT INTO items SELECT 70000 + n, 50003, 'new', n FROM generate_series(1, 30) n",
        "DELETE FROM customers WHERE id = 50",
    ];
    let mut computed = 0;
    for write in writes {
        assert_eq!(both.through.simple(write).expect("answers").error(), None, "{write}");
        for template in STATEMENTS {
            for key in ["12", "50"] {
                let sql = template.replace('K', key);
                let (route, reason) = both.routed(write, &sql);
                assert!(route == "local" || route == "hit" || will_pass(&reason), "{sql}: {route} {reason}");
                computed += usize::from(route == "local");
            }
        }
    }
    assert!(computed > 120, "{computed} of {} computed here", 2 * writes.len() * STATEMENTS.len());
}
