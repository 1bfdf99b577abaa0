//! Enums are answered here: by labels, in the order of the labels, and with the type that upstream has given them; every change of a type
//! counts at once.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::world::{World, settle, until};

const SETUP: &str = "
    CREATE SCHEMA shop; GRANT USAGE ON SCHEMA shop TO PUBLIC; CREATE SCHEMA other; CREATE SCHEMA closed;
    CREATE TYPE status AS ENUM ('new', 'paid', 'Shipped', 'void', 'a b', 'größe');
    CREATE TYPE shop.size AS ENUM ('s', 'm', 'l'); CREATE TYPE \"Mixed Case\" AS ENUM ('x', 'y');
    CREATE TYPE other.twice AS ENUM ('p'); CREATE TYPE twice AS ENUM ('q', 'p'); CREATE TYPE closed.secret AS ENUM ('k');
    CREATE TYPE own_equality AS ENUM ('a', 'b'); CREATE TYPE with_cast AS ENUM ('a', 'b');
    CREATE FUNCTION as_number(with_cast) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
    CREATE CAST (with_cast AS int) WITH FUNCTION as_number(with_cast);
    CREATE FUNCTION unequal(own_equality, own_equality) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false';
    CREATE OPERATOR public.= (LEFTARG = own_equality, RIGHTARG = own_equality, FUNCTION = unequal);
    CREATE FUNCTION lower(own_equality) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'own' $$;
    CREATE TABLE orders (id int PRIMARY KEY, s status, z shop.size, m \"Mixed Case\", t twice, amount numeric(10, 2), at date);
    INSERT INTO orders SELECT n, (enum_range(NULL::status))[nullif(n % 7, 6) + 1], (enum_range(NULL::shop.size))[n % 3 + 1], 'x', 'p',
      n * 1.5, '2024-01-01'::date + n FROM generate_series(1, 200) n;
    CREATE TABLE states (s status PRIMARY KEY, title text NOT NULL);
    INSERT INTO states SELECT s, upper(s::text) FROM unnest(enum_range(NULL::status)) s WHERE s <> 'void';
    CREATE TABLE odd (id int PRIMARY KEY, o own_equality, c with_cast); INSERT INTO odd VALUES (1, 'a', 'a'), (2, 'b', 'b');
    CREATE VIEW open_orders AS SELECT id, s, amount FROM orders WHERE s IN ('new', 'paid') OR z = 'l';
    CREATE VIEW fresh_orders AS SELECT id FROM orders WHERE s = 'new';
    CREATE TABLE closed.t (id int PRIMARY KEY, k closed.secret); INSERT INTO closed.t VALUES (1, 'k')";

/// Answered here.
const LOCAL: &[&str] = &[
    "SELECT id, s, z, m FROM orders ORDER BY id",
    "SELECT s, count(*), sum(amount) FROM orders GROUP BY s ORDER BY s",
    "SELECT s, count(*) FROM orders GROUP BY s ORDER BY s DESC NULLS LAST LIMIT 3",
    "SELECT id FROM orders WHERE s = 'paid' ORDER BY id",
    "SELECT id FROM orders WHERE s <> 'paid' AND z = 'm' ORDER BY id",
    "SELECT count(*) FROM orders WHERE s IN ('new', 'Shipped', 'größe') AND s NOT IN ('a b')",
    "SELECT count(*) FROM orders WHERE s = ANY ('{new,\"a b\"}') OR s = ANY ('{void}'::status[])",
    "SELECT count(*) FROM orders WHERE s = ANY (ARRAY['new'::status, 'paid'])",
    "SELECT count(*) FROM orders WHERE s > 'paid' AND s <= 'a b'",
    "SELECT count(*) FROM orders WHERE s BETWEEN 'paid' AND 'void' AND s IS NOT NULL",
    "SELECT count(*) FROM orders WHERE s IS DISTINCT FROM 'void'",
    "SELECT min(s), max(s), count(DISTINCT s), min(z) FILTER (WHERE id > 4) FROM orders",
    "SELECT z, max(s), min(s) FROM orders GROUP BY z ORDER BY z DESC",
    "SELECT DISTINCT s FROM orders ORDER BY s",
    "SELECT DISTINCT ON (s) s, id FROM orders ORDER BY s, id DESC",
    "SELECT o.id, st.title FROM orders o JOIN states st ON st.s = o.s ORDER BY o.id",
    "SELECT st.s, count(o.id) FROM states st LEFT JOIN orders o USING (s) GROUP BY st.s ORDER BY st.s",
    "SELECT s, count(*) FROM orders JOIN states USING (s) GROUP BY s ORDER BY s",
    "SELECT title FROM states WHERE s = 'paid'",
    "SELECT count(*) FROM orders WHERE s IN (SELECT s FROM states)",
    "SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM states st WHERE st.s = o.s AND st.s > 'new')",
    "SELECT s::text, upper(s::text), length(s::varchar), s::varchar(3) FROM orders ORDER BY (s::text) COLLATE \"C\", id LIMIT 30",
    "SELECT s || '!', 'is ' || s, concat(s, '-', z), concat_ws('/', z, s) FROM orders WHERE id < 20 ORDER BY id",
    "SELECT string_agg(s::text, ',' ORDER BY s, id), string_agg(DISTINCT z::text, ',' ORDER BY z::text) FROM orders WHERE id < 20",
    "SELECT CASE WHEN id > 100 THEN s ELSE 'void' END AS c, count(*) FROM orders GROUP BY 1 ORDER BY 1",
    "SELECT CASE s WHEN 'new' THEN 1 WHEN 'paid' THEN 2 ELSE 0 END, count(*) FROM orders GROUP BY 1 ORDER BY 1",
    "SELECT coalesce(s, 'void'), nullif(s, 'new'), greatest(s, 'paid'), least(s, 'paid') FROM orders WHERE id < 30 ORDER BY id",
    "SELECT id, lag(s) OVER (ORDER BY id), first_value(s) OVER (PARTITION BY z ORDER BY id), rank() OVER (ORDER BY s) FROM orders ORDER BY id LIMIT 40",
    "SELECT id, max(s) OVER (PARTITION BY z ORDER BY id), count(*) OVER (PARTITION BY s) FROM orders ORDER BY id LIMIT 40",
    "SELECT s FROM orders WHERE id < 10 UNION SELECT s FROM states ORDER BY 1",
    "SELECT s FROM orders EXCEPT SELECT s FROM states ORDER BY s",
    "SELECT * FROM open_orders ORDER BY s, id LIMIT 20",
    "SELECT 'paid'::status, CAST('l' AS shop.size), status 'new', '\"'::text, NULL::status, 'x'::\"Mixed Case\"",
    "SELECT id FROM orders WHERE s = CAST('pa' || 'id' AS status) ORDER BY id LIMIT 3",
    "SELECT count(*) FROM orders WHERE s = 'paid'::public.status AND z = 'm'::\"shop\".\"size\" AND t = 'p'::public.twice",
    "SELECT s, z, count(*) FROM orders GROUP BY GROUPING SETS ((s), (z), ()) ORDER BY s, z, 3",
    "SELECT date_trunc('month', at), s, sum(amount) FROM orders WHERE s >= 'paid' GROUP BY 1, 2 ORDER BY 1, 2",
    "WITH x AS (SELECT s, max(id) AS top FROM orders GROUP BY s) SELECT s, top FROM x WHERE s < 'void' ORDER BY s",
    "SELECT (SELECT max(s) FROM orders), (SELECT s FROM orders WHERE id = 7)",
    "SELECT id FROM orders WHERE (s, z) = ('paid', 'm') OR (s, id) > ('größe', 190) ORDER BY id",
    "SELECT k FROM closed.t",
    "SELECT count(*) FROM fresh_orders",
    "SELECT count(*) FROM orders WHERE nullif('void', s) < 'Shipped'",
    "SELECT id FROM orders ORDER BY greatest(nullif('void', s), 'paid') DESC NULLS LAST, id LIMIT 9",
];

/// Upstream answers: errors, and what only upstream can tell.
const RELAYED: &[&str] = &[
    "SELECT count(*) FROM orders WHERE s = 'nothing'",
    "SELECT count(*) FROM orders WHERE s = 'paid '",
    "SELECT count(*) FROM orders WHERE s = 'paid'::text",
    "SELECT count(*) FROM orders WHERE s::text = z",
    "SELECT count(*) FROM orders WHERE s = z",
    "SELECT s + 1 FROM orders",
    "SELECT length(s) FROM orders",
    "SELECT coalesce(s, z) FROM orders",
    "SELECT CAST(title AS status) FROM states",
    "SELECT 'p'::twice, count(*) FROM orders",
    "SELECT nullif('z', s), count(*) FROM orders GROUP BY 1",
    "SELECT count(*) FROM odd WHERE o = 'a'",
    "SELECT count(*) FROM odd a JOIN odd b USING (o)",
    "SELECT lower(o) FROM odd",
    "SELECT c::int FROM odd",
    "SELECT s LIKE 'p%' FROM orders",
];

fn world(mode: FreshnessMode) -> World {
    World::start(mode, SETUP)
}

fn both(world: &World) -> Both {
    Both::open(&world.freshet, world.cluster, "postgres", &world.database, LOCAL)
}

#[test]
fn enums_are_answered_here_as_upstream_answers() {
    let world = world(FreshnessMode::Exact);
    let mut both = both(&world);
    for sql in LOCAL {
        settle(&mut both.through, sql);
        both.set("SET freshet.route = 'local'");
        assert_eq!(both.routed("", sql).0, "local", "{sql}");
        both.set("SET freshet.route = 'auto'");
    }
    for sql in RELAYED {
        for _ in 0..3 {
            let route = both.routed("", sql).0;
            assert!(route != "local", "{sql}");
        }
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
    assert_eq!(world.freshet.status(&world.database, "shape_mismatches"), "0");
}

#[test]
fn every_change_of_a_type_counts_for_the_next_statement() {
    let world = world(FreshnessMode::Exact);
    let mut both = both(&world);
    LOCAL.iter().for_each(|sql| drop(settle(&mut both.through, sql)));
    let new_label = "SELECT count(*) FROM orders WHERE s < 'late'";
    let shadowed = "SELECT count(*) FROM orders WHERE s = 'paid'::status";
    for change in [
        "ALTER TYPE status ADD VALUE 'late' BEFORE 'void'",
        "UPDATE orders SET s = 'late' WHERE id % 10 = 3",
        "ALTER TYPE status RENAME VALUE 'new' TO 'fresh'",
        "ALTER TYPE status RENAME VALUE 'fresh' TO 'new'",
        "BEGIN; ALTER TYPE status RENAME VALUE 'new' TO 'x'; ALTER TYPE status RENAME VALUE 'paid' TO 'new'; ALTER TYPE status RENAME VALUE 'x' TO 'paid'; COMMIT",
        "INSERT INTO orders VALUES (900, 'new', 's'), (901, 'paid', 'm')",
        "BEGIN; ALTER TYPE status RENAME VALUE 'new' TO 'x'; INSERT INTO orders VALUES (902, 'x', 's'); ALTER TYPE status RENAME VALUE 'x' TO 'new'; COMMIT",
        "ALTER TYPE status RENAME VALUE 'new' TO 'x'; INSERT INTO orders VALUES (903, 'x', 's'); ALTER TYPE status RENAME VALUE 'x' TO 'new'",
        "DELETE FROM states WHERE s = 'new'",
        "UPDATE states SET title = 'other' WHERE s = 'paid'",
        "ALTER TYPE shop.size RENAME TO extent; ALTER TYPE shop.extent RENAME TO size",
        "ALTER TABLE orders ALTER t TYPE text",
        "ALTER TABLE orders ALTER t TYPE twice USING t::twice",
        "SET search_path = other; CREATE TYPE other.status AS ENUM ('paid')",
        "DROP TYPE other.status",
        "DROP TYPE \"Mixed Case\" CASCADE",
    ] {
        world.past(change);
        both.compare_all(change);
        for sql in [new_label, shadowed] {
            both.compare(change, sql);
        }
        both.set("SET search_path = other, public");
        both.compare(change, shadowed);
        both.set("SET search_path = public");
        both.compare(change, shadowed);
    }
    // And it is answered here again.
    for sql in [LOCAL[1], LOCAL[3], LOCAL[8], new_label] {
        settle(&mut both.through, sql);
        both.compare("all of it", sql);
    }
}

#[test]
fn parameters_of_an_enum_come_as_text_and_in_binary() {
    let world = world(FreshnessMode::Exact);
    let (mut through, mut direct) = (world.client(), world.direct());
    settle(&mut through, LOCAL[0]);
    let of = world.past("SELECT 'status'::regtype::oid").parse::<u32>().expect("a number");
    let sql = "SELECT id, s FROM orders WHERE s = $1 AND s > $2 ORDER BY id LIMIT 3";
    let values: [&[Option<&str>]; 5] = [
        &[Some("paid"), Some("new")],
        &[Some("größe"), Some("paid")],
        &[Some("void"), None],
        &[Some("nothing"), Some("new")],
        &[Some("paid"), Some("paid")],
    ];
    for oids in [[0, 0], [of, of], [0, of]] {
        for values in values {
            for format in [0, 1] {
                let parameters: Vec<(u32, Option<&str>)> = oids.into_iter().zip(values.iter().copied()).collect();
                let mut ask = || {
                    let here = through.extended_of(sql, &parameters, format).expect("answers");
                    assert_eq!(here, direct.extended_of(sql, &parameters, format).expect("answers"), "{parameters:?}");
                    let (route, _) = through.last().expect("answers");
                    route == "hit" || route == "local"
                };
                if values[0] == Some("nothing") {
                    assert!(!(0..4).any(|_| ask()), "no label: answered here");
                } else {
                    until(&format!("{parameters:?} is answered here"), ask);
                }
            }
        }
    }
}

#[test]
fn a_table_by_an_enum_key_is_mirrored_and_followed_in_every_mode() {
    for mode in [FreshnessMode::Exact, FreshnessMode::Session] {
        let world = world(mode);
        let mut client = world.client();
        let by_key = "SELECT title FROM states WHERE s = 'paid'";
        settle(&mut client, by_key);
        for n in 0..30 {
            let title = format!("title {n}");
            assert_eq!(
                client
                    .simple(&format!("UPDATE states SET title = '{title}' WHERE s = 'paid'"))
                    .expect("answers")
                    .error(),
                None
            );
            let rows = client.simple(by_key).expect("answers").rows();
            assert_eq!(rows[0][0].as_deref(), Some(title.as_bytes()), "{mode:?}");
            client.simple("UPDATE states SET title = 'x' WHERE s = 'new'").expect("answers");
        }
        settle(&mut client, by_key);
        assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
    }
}
