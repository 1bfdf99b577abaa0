//! JSON made here of values and rows, byte for byte as upstream makes it.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::world::{World, settle, will_pass};

const SETUP: &str = r#"
    CREATE TYPE mood AS ENUM ('sad', 'o"k', 'très gai');
    CREATE TABLE all_types (
        id int PRIMARY KEY, b bool, i2 int2, i8 int8, f4 float4, f8 float8, n numeric, t text, v varchar(20), c char(6), nm name, u uuid,
        y bytea, d date, tm time, ts timestamp, tz timestamptz, iv interval, j json, jb jsonb, m mood, bt bit(3), vb varbit,
        ai int[], "a T" text[], an numeric[], az timestamptz[], ab bool[], ip inet, net cidr, ips inet[]);
    INSERT INTO all_types VALUES
        (1, true, 3, 4, 1.5, 1e20, 1.50, E'a "q" \\ / \b\f\n\r\t é \u0001 \x7f', 'v', 'c', 'n', '00000000-0000-0000-0000-000000000001', '\xdeadbeef',
         '2024-02-29', '12:34:56.7', '2024-02-29 12:34:56.789', '2024-07-01 00:00:00.5+00', '1 year 2 days 03:04:05.6', '{"a" :  [1,2.50], "a": 2}',
         '{"b": 1e2, "a": [1, {"x": null}]}', 'o"k', '101', '11', '{1,NULL,3}', ARRAY['x', NULL, 'q"', ''], '{1.50,NaN}', '{2024-01-01 00:00+00}', '{t,f,NULL}', '10.1.2.3/8', '10.0.0.0/8', '{::1,10.0.0.1}'),
        (2, false, -3, 9223372036854775807, 'NaN', '-Infinity', 'NaN', '', '', '', '', NULL, '', 'infinity', '24:00', '-infinity', 'infinity',
         '-1 day', 'null', 'null', 'sad', '000', '', '{}', '{}', '{}', '{}', '{}', '::ffff:1.2.3.4', '::/0', '{}'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (4, true, 0, 0, 1e-7, 123456789012345678, 1e20, 'plain', 'x', 'abc', 'pg', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'abc', '0044-03-15 BC', '00:00',
         '0044-03-15 01:02:03 BC', '0044-03-15 01:02:03+00 BC', '1 mon', '[]', '"s"', 'très gai', '111', '0', '[3:4]={7,8}', '{a}', '{0,-1}', '{-infinity,2024-07-01}', '{f}', '1.2.3.4', '1.2.3.4', '{1.2.3.4/16}'),
        (5, true, 0, 0, 0, 0, 0.000, 't', 't', 't', 't', NULL, NULL, '12024-01-01', '00:00:00.000001', '12024-01-01 00:00:00.000001', '1880-01-01 12:00+00', '0', '1', '1', 'sad', '001', '1', '{1}', '{b}', '{2}', NULL, '{t}', 'fe80::1/64', 'fe80::/64', NULL);
    CREATE TABLE users (id int PRIMARY KEY, name text, age int);
    INSERT INTO users SELECT n, 'u' || n, 20 + n % 9 FROM generate_series(1, 12) n;
    CREATE TABLE posts (id int PRIMARY KEY, author int, title text, score numeric(6, 2));
    INSERT INTO posts SELECT n, 1 + n % 10, 'p' || n, n / 4.0 FROM generate_series(1, 40) n;
    CREATE VIEW people AS SELECT id AS person, name FROM users;
    CREATE TABLE docs (id int PRIMARY KEY, doc jsonb, more jsonb);
    INSERT INTO docs SELECT n, CASE n % 6 WHEN 0 THEN NULL WHEN 1 THEN to_jsonb(n % 4) WHEN 2 THEN jsonb_build_array(n % 3, 'a', NULL, 'b"c')
        WHEN 3 THEN jsonb_build_object('k', n % 4, 'plan', 'p' || n % 3, 'é"', jsonb_build_array(n % 2)) WHEN 4 THEN to_jsonb('s' || n % 2)
        ELSE jsonb_build_object('k', n % 5 + 0.5, 't', true, 'n', NULL) END,
        (ARRAY['{}', '[]', '{"a": 1, "k": "x"}', '[1, "a", {"z": []}]', '7', 'null', '"a"', '{"é\"": {"b": {}}, "bb": [], "c": 1e3}'])[n % 8 + 1]::jsonb
        FROM generate_series(1, 60) n;
    CREATE TABLE spots (id int PRIMARY KEY, at point)"#;

const COLUMNS: &[&str] = &[
    "id", "b", "i2", "i8", "f4", "f8", "n", "t", "v", "c", "nm", "u", "y", "d", "tm", "ts", "tz", "iv", "j", "jb", "m",
    "bt", "vb", "ai", "\"a T\"", "an", "az", "ab", "ip", "net", "ips",
];

const LOCAL: &[&str] = &[
    "SELECT row_to_json(users) FROM users ORDER BY id",
    "SELECT to_json(u), to_jsonb(u) FROM users u ORDER BY id",
    "SELECT json_agg(u ORDER BY id) FROM users u",
    "SELECT json_agg(u.name ORDER BY u.id DESC), jsonb_agg(u.age ORDER BY u.id) FROM users u WHERE id < 5",
    "SELECT coalesce(json_agg(u ORDER BY id), '[]') FROM users u WHERE id > 100",
    "SELECT json_agg(name ORDER BY id) FILTER (WHERE age > 22) FROM users",
    "SELECT author, json_agg(json_build_object('id', id, 'title', title, 'score', score) ORDER BY id) FROM posts GROUP BY author ORDER BY author",
    "SELECT author, jsonb_object_agg(title, score) FROM posts WHERE id < 20 GROUP BY author ORDER BY author",
    "SELECT json_object_agg(title, score ORDER BY id) FROM posts WHERE id < 9",
    "SELECT json_object_agg(id, score ORDER BY id), jsonb_object_agg(id % 3, id ORDER BY id) FROM posts WHERE id < 9",
    "SELECT json_build_object(), jsonb_build_object(), json_build_array(), jsonb_build_array() FROM users WHERE id = 1",
    "SELECT json_build_object('a', 1, 'b', NULL, name, age, id, 'x'), jsonb_build_object('bb', 1, 'a', NULL, 'bb', 2.50, name, age) FROM users ORDER BY id",
    "SELECT json_build_array(1, 'a', NULL, true, name, 1.50, id), jsonb_build_array(1, 'a', NULL, true, name, 1.50, id) FROM users ORDER BY id",
    "SELECT json_build_object('u', u, 'posts', (SELECT coalesce(json_agg(p.title ORDER BY p.id), '[]') FROM posts p WHERE p.author = u.id)) FROM users u ORDER BY u.id",
    "SELECT row_to_json(q) FROM (SELECT id, name AS \"full Name\", age > 22 AS old FROM users) q ORDER BY q.id",
    "SELECT row_to_json(p) FROM people p ORDER BY person",
    "SELECT row_to_json(u.*), to_jsonb(u.*) FROM users u ORDER BY u.id",
    "SELECT json_agg(DISTINCT age), jsonb_agg(DISTINCT age ORDER BY age DESC), json_agg(DISTINCT name) FILTER (WHERE id < 9) FROM users",
    "SELECT author, jsonb_agg(DISTINCT CASE WHEN id % 3 > 0 THEN id % 3 END), json_agg(DISTINCT score) FROM posts GROUP BY author ORDER BY author",
    "SELECT json_agg(DISTINCT m), jsonb_agg(DISTINCT d), json_agg(DISTINCT t), json_agg(DISTINCT tz ORDER BY tz DESC NULLS LAST), json_agg(DISTINCT c), json_agg(DISTINCT b) FROM all_types",
    // Rows that an outer join does not find, and such as are all NULL.
    "SELECT u.id, row_to_json(p), to_jsonb(p.*), p.id FROM users u LEFT JOIN posts p ON p.author = u.id AND p.id < 15 ORDER BY u.id, p.id",
    "SELECT u.id, json_agg(p ORDER BY p.id), jsonb_agg(p ORDER BY p.id), count(p), count(p) FILTER (WHERE p.score > 2) FROM users u LEFT JOIN posts p ON p.author = u.id AND p.id < 15 GROUP BY u.id ORDER BY u.id",
    "SELECT u.id, coalesce(json_agg(p ORDER BY p.id) FILTER (WHERE p.id IS NOT NULL), '[]') FROM users u LEFT JOIN posts p ON p.author = u.id GROUP BY u.id ORDER BY u.id",
    "SELECT json_build_object('u', u, 'p', p), json_build_array(p, u) FROM posts p RIGHT JOIN users u ON p.author = u.id AND p.id < 5 ORDER BY u.id, p.id",
    "SELECT to_json(a), to_json(b), count(*) OVER () FROM (SELECT id, name FROM users WHERE id < 4) a FULL JOIN (SELECT id, title FROM posts WHERE id IN (3, 4)) b USING (id) ORDER BY id",
    "SELECT u.id, row_to_json(n) FROM users u LEFT JOIN (SELECT NULL::int AS x, author FROM posts WHERE id < 5) n ON n.author = u.id ORDER BY u.id",
    "SELECT u.id, row_to_json(n) FROM users u LEFT JOIN (SELECT NULL::int AS x, NULL::text AS y FROM posts WHERE id < 3) n ON u.id < 3 ORDER BY u.id",
    "SELECT u.id, row_to_json(pe) FROM users u LEFT JOIN people pe ON pe.person = u.id + 5 ORDER BY u.id",
    "SELECT u.id, row_to_json(p) FROM users u LEFT JOIN LATERAL (SELECT p.id, p.title FROM posts p WHERE p.author = u.id ORDER BY p.id DESC LIMIT 1) p ON true ORDER BY u.id",
    "SELECT u.id, to_json(p), to_json(p.*) FROM users u LEFT JOIN LATERAL (SELECT count(*) AS n, max(p.score) AS best FROM posts p WHERE p.author = u.id) p ON p.n > 3 ORDER BY u.id",
    "WITH few AS (SELECT id, author FROM posts WHERE id < 4) SELECT u.id, to_json(f) FROM users u LEFT JOIN few f ON f.author = u.id ORDER BY u.id",
    "SELECT count(pe), count(u), count(*) FROM users u LEFT JOIN people pe ON pe.person = u.id + 5",
    // As PostgREST embeds what belongs to a row.
    "SELECT coalesce(json_agg(_postgrest_t), '[]')::text FROM (SELECT posts.id, posts.title, row_to_json(posts_author_1.*) AS author FROM posts LEFT JOIN LATERAL (SELECT users_1.id, users_1.name FROM users AS users_1 WHERE users_1.id = posts.author) AS posts_author_1 ON TRUE ORDER BY posts.id LIMIT 50 OFFSET 0) _postgrest_t",
    "SELECT users.id, coalesce(users_posts_1.users_posts_1, '[]') AS posts FROM users LEFT JOIN LATERAL (SELECT json_agg(users_posts_1) AS users_posts_1 FROM (SELECT posts_1.id, posts_1.title FROM posts AS posts_1 WHERE posts_1.author = users.id ORDER BY posts_1.id) AS users_posts_1) AS users_posts_1 ON TRUE ORDER BY users.id",
    "SELECT json_agg(q.*) FROM (SELECT id, name FROM users ORDER BY id DESC) q",
    "SELECT json_agg(u.* ORDER BY u.id), count(u.*) FROM users u WHERE u.age > 22",
    "SELECT u.id, (SELECT json_agg(to_jsonb(p.*) ORDER BY p.id) FROM posts p WHERE p.author = u.id) FROM users u ORDER BY u.id",
    "SELECT coalesce(json_agg(q), '[]')::character varying FROM (SELECT id, name FROM users ORDER BY id DESC LIMIT 4) q",
    "SELECT row_to_json((SELECT d FROM (SELECT u.id, u.name AS n) d)) FROM users u ORDER BY u.id",
    "SELECT coalesce(json_agg(row_to_json((SELECT \"_e\" FROM (SELECT u.id AS id, u.name AS name) AS \"_e\")) ORDER BY u.id), '[]') AS root FROM users u",
    "SELECT row_to_json(ROW(id, name)), to_json(ROW(1, 'x', NULL::text)) FROM users ORDER BY id",
    "SELECT json_agg(ARRAY[id, age] ORDER BY id) FROM users",
    "SELECT json_agg(CASE WHEN id % 2 = 0 THEN ARRAY[id] END ORDER BY id) FROM users",
    "SELECT to_json(array_agg(name ORDER BY id)), array_to_json(array_agg(id ORDER BY id)) FROM users",
    "WITH u AS (SELECT id, name FROM users WHERE age > 22) SELECT json_agg(u ORDER BY id), max(id) FROM u",
    "SELECT age, count(*), json_agg(name ORDER BY name) FROM users GROUP BY age HAVING count(*) > 1 ORDER BY age",
    "SELECT json_build_object('n', count(*), 'max', max(age)) FROM users",
    "SELECT jsonb_build_object('id', id) -> 'id', jsonb_build_object('id', id) @> '{\"id\": 3}' FROM users ORDER BY id",
    "SELECT '[1, 2]'::json, '{\"b\" : 1,  \"a\":[] }'::json, '{\"b\" : 1,  \"a\":[] }'::jsonb FROM users WHERE id = 1",
    "SELECT ARRAY(SELECT id FROM users WHERE id > 9 ORDER BY id DESC), ARRAY(SELECT name FROM users WHERE id > 99), ARRAY(SELECT score FROM posts ORDER BY id LIMIT 3)",
    "SELECT u.id, ARRAY(SELECT p.title FROM posts p WHERE p.author = u.id AND p.id > 12 ORDER BY p.id DESC) FROM users u ORDER BY u.id",
    "SELECT count(*) FROM users WHERE id = ANY(ARRAY(SELECT author FROM posts WHERE id < 9))",
    "SELECT json_build_object('a', id)::jsonb, '{\"b\": 1, \"b\":2}'::json::jsonb, ('{\"x\":' || id || '}')::jsonb, ('[ ' || id || ']')::json FROM users ORDER BY id",
    "SELECT doc FROM (SELECT DISTINCT doc FROM docs) q ORDER BY doc::text",
    "SELECT doc, count(*), min(id) FROM docs GROUP BY doc ORDER BY 3",
    "SELECT count(DISTINCT doc), count(DISTINCT more) FROM docs",
    "SELECT DISTINCT u.*, d.doc FROM users u JOIN docs d ON d.id = u.id ORDER BY u.id",
    "SELECT id FROM docs WHERE doc = '{\"k\": 1, \"plan\": \"p0\", \"é\\\"\": [1.0]}' OR doc -> 'k' = '3' OR more <> '{}' ORDER BY id",
    "SELECT id, doc = more, doc IS NOT DISTINCT FROM more FROM docs ORDER BY id",
    "SELECT id FROM docs WHERE more IN ('{}', '[]', '7') ORDER BY id",
    "SELECT doc FROM (SELECT doc FROM docs UNION SELECT more FROM docs) q ORDER BY doc::text",
    "SELECT doc FROM (SELECT doc FROM docs EXCEPT SELECT more FROM docs) q ORDER BY doc::text",
    "SELECT a.id, b.id FROM docs a JOIN docs b ON a.doc = b.doc AND a.id < b.id ORDER BY 1, 2",
    "SELECT id, doc || more, more || doc, doc || '{\"k\": 9, \"a\": null}' FROM docs ORDER BY id",
    "SELECT id, doc ?| ARRAY['k', 'a'], doc ?& ARRAY['k', NULL, 'plan'], more ?| '{}', more ?& '{}' FROM docs ORDER BY id",
    "SELECT id, doc - 'k', doc - ARRAY['k', 'é\"', 'a'], doc - 'b\"c' FROM docs WHERE jsonb_typeof(doc) IN ('object', 'array') ORDER BY id",
    "SELECT id, doc - 1, doc - -1, doc - 9, doc - -9 FROM docs WHERE jsonb_typeof(doc) = 'array' ORDER BY id",
    "SELECT id, jsonb_pretty(doc), jsonb_pretty(more) FROM docs ORDER BY id",
    "SELECT id, (doc -> 'k')::int, (doc -> 'k')::numeric, (doc -> 'k')::float8, (doc -> 'k')::int8, (doc -> 'k')::int2, (doc -> 'k')::float4      FROM docs WHERE doc ? 'k' AND jsonb_typeof(doc -> 'k') = 'number' ORDER BY id",
    "SELECT sum((doc ->> 'k')::numeric), bool_or((doc -> 't')::bool) FROM docs WHERE doc ? 't'",
    "SELECT count(q) AS total, coalesce(json_agg(q), '[]') AS body FROM (SELECT id, NULLIF(name, 'u2') AS name FROM users ORDER BY id LIMIT 4) q",
    "SELECT author % 3, count(p) FROM posts p GROUP BY 1 ORDER BY 1",
    "SELECT string_agg(DISTINCT v, ',' ORDER BY v DESC), array_agg(DISTINCT v ORDER BY v) FROM all_types",
    "SELECT *, unnest(ARRAY[id, age]) AS n FROM users ORDER BY id, n",
    "SELECT u.*, jsonb_array_elements(doc)::text AS item FROM users u JOIN docs d USING (id) WHERE jsonb_typeof(doc) = 'array' ORDER BY u.id, item",
    // The order of a subquery's rows shows.
    "SELECT u.id, (SELECT json_agg(q.id) FROM (SELECT p.id FROM posts p WHERE p.author = u.id ORDER BY p.score DESC) q) FROM users u ORDER BY u.id",
    "SELECT u.id, (SELECT json_agg(q.id) FROM (SELECT p.id FROM posts p WHERE p.author = u.id ORDER BY p.id % 4, p.id DESC LIMIT 3) q) FROM users u ORDER BY u.id",
    "SELECT u.id, l.list FROM users u LEFT JOIN LATERAL (SELECT string_agg(q.title, ',') AS list FROM      (SELECT p.title FROM posts p WHERE p.author = u.id ORDER BY p.title DESC) q) l ON true ORDER BY u.id",
    "SELECT u.id, l.list FROM users u LEFT JOIN LATERAL (SELECT array_agg(q.id) AS list FROM      (SELECT DISTINCT ON (p.id % 3) p.id FROM posts p WHERE p.author = u.id ORDER BY p.id % 3 DESC, p.id DESC) q) l ON true ORDER BY u.id",
    "SELECT author, json_agg(q.id) FROM (SELECT id, author FROM posts ORDER BY score DESC) q GROUP BY author ORDER BY author",
    "SELECT id FROM users WHERE ROW(age, id) > ROW(22, 3) AND ROW(age, id) IN ((23, 4), ROW(24, 5)) ORDER BY id",
    // As an ORM joins: a list for each row.
    "SELECT u.id, l.data FROM users u LEFT JOIN LATERAL (SELECT coalesce(jsonb_agg(q.data), '[]') AS data FROM \
     (SELECT jsonb_build_object('id', p.id, 'title', p.title) AS data FROM posts p WHERE p.author = u.id ORDER BY p.id) q) l ON true ORDER BY u.id",
    "SELECT u.id, l.data FROM users u LEFT JOIN LATERAL (SELECT coalesce(json_agg(json_build_array(p.id, p.title) ORDER BY p.id), '[]'::json) AS data \
     FROM posts p WHERE p.author = u.id) l ON true ORDER BY u.id",
];

/// What is not known exactly here, or is an error.
const NOT_LOCAL: &[&str] = &[
    "SELECT row_to_json(u) FROM users u (a, b) ORDER BY a",
    "SELECT json_agg(DISTINCT n), jsonb_agg(DISTINCT f8) FROM all_types",
    "SELECT jsonb_agg(DISTINCT jb) FROM all_types",
    "SELECT json_agg(DISTINCT j) FROM all_types",
    "SELECT json_agg(DISTINCT u) FROM users u",
    "SELECT json_agg(DISTINCT name ORDER BY id) FROM users",
    "SELECT json_object_agg(DISTINCT id, name) FROM users",
    "SELECT json_build_object(NULL, 1) FROM users",
    "SELECT json_build_object(NULLIF(name, 'u3'), 1) FROM users",
    "SELECT json_object_agg(NULLIF(name, 'u3'), 1) FROM users",
    "SELECT json_build_object('a') FROM users",
    "SELECT json_build_object(ARRAY[1], 1) FROM users",
    "SELECT to_json('x') FROM users WHERE id = 1",
    "SELECT row_to_json(id) FROM users WHERE id = 1",
    "SELECT row_to_json(s) FROM spots s",
    "SELECT to_json(ARRAY[[1, 2], [3, 4]]) FROM users WHERE id = 1",
    "SELECT json_agg(name) OVER (ORDER BY id) FROM users ORDER BY id",
    "SELECT '{\"a\": }'::json FROM users",
    "SELECT (name || '{')::jsonb FROM users",
    "SELECT doc FROM docs ORDER BY doc",
    "SELECT doc < more FROM docs ORDER BY id",
    "SELECT doc - 'a' FROM docs ORDER BY id",
    "SELECT doc - 1 FROM docs ORDER BY id",
    "SELECT doc::int FROM docs ORDER BY id",
    "SELECT (doc -> 'n')::int FROM docs ORDER BY id",
    "SELECT count(DISTINCT n) FROM (SELECT jsonb_build_object('n', n) AS n FROM all_types) q",
    "SELECT ARRAY(SELECT id, name FROM users)",
    "SELECT ARRAY(SELECT ARRAY[id] FROM users ORDER BY id)",
    "SELECT row_to_json((SELECT d FROM (SELECT count(*)) d)) FROM users u WHERE id = 1",
    "SELECT json_build_object(VARIADIC ARRAY['a', name]) FROM users ORDER BY id",
    "SELECT count(*) FROM users GROUP BY ROW(id, name)",
    "SELECT count(*) FROM users GROUP BY (ROW(age, age))",
    "SELECT ROW(id, name) FROM users ORDER BY id",
    "SELECT row_to_json(users, true) FROM users ORDER BY id",
];

const SETTINGS: &[&str] = &[
    "SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Kathmandu'; SET IntervalStyle = 'iso_8601'; SET bytea_output = 'escape'; SET extra_float_digits = 0",
    "SET DateStyle = 'German'; SET TimeZone = 'America/New_York'; SET IntervalStyle = 'postgres_verbose'",
    "SET DateStyle = 'Postgres'; SET TimeZone = 'Europe/Berlin'; SET IntervalStyle = 'sql_standard'; SET extra_float_digits = -2",
];

/// Compares what is answered here; what is wrong.
fn compare_local(both: &mut Both, sql: &str) -> Option<String> {
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        let (route, reason) = both.routed("", sql);
        if route == "hit" || route == "local" {
            return None;
        }
        if !will_pass(&reason) || Instant::now() > limit {
            return Some(format!("{sql}\n  {route} {reason}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn json_is_made_here_as_upstream_makes_it() {
    let world = World::start(FreshnessMode::Exact, SETUP);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, LOCAL);
    settle(&mut both.through, "SELECT count(*) FROM users, posts, all_types, docs");
    let mut statements: Vec<String> = LOCAL.iter().map(|sql| (*sql).to_owned()).collect();
    for column in COLUMNS {
        statements.push(format!("SELECT to_json({column}), to_jsonb({column}) FROM all_types ORDER BY id"));
        statements
            .push(format!("SELECT json_agg({column} ORDER BY id), jsonb_agg({column} ORDER BY id) FROM all_types"));
        statements.push(format!(
            "SELECT json_build_object('k', {column}), jsonb_build_array({column}) FROM all_types ORDER BY id"
        ));
        let is_key = !matches!(*column, "j" | "jb" | "ips") && !column.contains('a');
        if is_key {
            statements.push(format!(
                "SELECT json_build_object({column}, 1), jsonb_build_object({column}, 1) FROM all_types WHERE {column} IS NOT NULL ORDER BY id"
            ));
            statements.push(format!(
                "SELECT json_object_agg({column}, id ORDER BY id) FROM all_types WHERE {column} IS NOT NULL"
            ));
        }
    }
    statements.push("SELECT row_to_json(a), to_jsonb(a) FROM all_types a ORDER BY id".to_owned());
    let mut problems: Vec<String> = statements.iter().filter_map(|sql| compare_local(&mut both, sql)).collect();
    for settings in SETTINGS {
        settings.split("; ").for_each(|setting| both.set(setting));
        problems.extend(statements.iter().filter_map(|sql| compare_local(&mut both, sql)));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    for sql in NOT_LOCAL {
        for _ in 0..3 {
            assert_ne!(both.routed("", sql).0, "local", "{sql}");
        }
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
    assert_eq!(world.freshet.status(&world.database, "shape_mismatches"), "0");
}

/// Statements that are answered here, and what then gives them another meaning, past freshet.
const CHANGES: &[(&[&str], &str)] = &[
    (
        &["SELECT json_agg(u ORDER BY id), count(u) FROM x3 u GROUP BY u.id, u.name ORDER BY id"],
        "INSERT INTO x3 VALUES (1, 'a', 2), (2, NULL, NULL)",
    ),
    (
        &["SELECT row_to_json((SELECT d FROM (SELECT f.id) d)) FROM x1 f", "SELECT to_json(e) FROM x1 e"],
        "ALTER TABLE x1 ADD COLUMN d text DEFAULT 'x', ADD COLUMN e int DEFAULT 7",
    ),
    (
        &["SELECT count(t) FROM x2 t", "SELECT count(id) FROM x2", "SELECT count(*), count(a) FROM x2"],
        "CREATE FUNCTION count(x2) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 42; END $$;
         CREATE FUNCTION count(int) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 43; END $$;
         CREATE FUNCTION count(text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 44; END $$",
    ),
    (
        &["SELECT array_agg(id ORDER BY id) FROM x2"],
        "CREATE FUNCTION array_agg(int) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 42; END $$",
    ),
];

/// Rows as values where they are not their columns.
const NO_ROWS: &[&str] = &[
    "SELECT to_json(u), count(*) FROM x3 u GROUP BY GROUPING SETS ((id, name, age), (id)) ORDER BY id, name, age",
    "SELECT id, to_json(u) FROM x3 u GROUP BY id, ROLLUP (name, age) ORDER BY id, name, age",
    "SELECT id, to_json((SELECT d FROM (SELECT upper(u.name) AS x) d)) FROM x3 u GROUP BY id, ROLLUP (upper(name)) ORDER BY id, upper(name)",
    "SELECT to_json(g) FROM x3 g GROUP BY g.id, g.name, g.age ORDER BY id",
    "SELECT to_json(tableoid)::text <> '' FROM x1 tableoid",
    "SELECT json_agg(cmax) FROM x1 cmax",
    "SELECT to_json((SELECT xmin FROM (SELECT f.id) xmin))::text ~ '^.?[0-9]+.?$' FROM x1 f",
    "SELECT xmax FROM x1, generate_series(1, 2) xmax",
];

/// Where the name of a subquery is a column of an outer query, which is nearer than a row.
const OUTER_COLUMNS: &[&str] = &[
    "SELECT to_json((SELECT name FROM (SELECT f.id AS a) name)) FROM x3 f",
    "SELECT (SELECT json_agg((SELECT name FROM (SELECT g.id) name)) FROM x1 g WHERE g.id = f.id) FROM x3 f",
    "SELECT (SELECT json_agg((SELECT name FROM (SELECT g.id) name) ORDER BY g.id) FROM x1 g WHERE g.id <= f.id) FROM x3 f",
];

#[test]
fn a_name_is_a_row_s_only_where_it_is_nothing_else_s() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE x1 (id int PRIMARY KEY); INSERT INTO x1 VALUES (1), (2);
         CREATE TABLE x2 (id int PRIMARY KEY, a text); INSERT INTO x2 VALUES (1, 'a'), (2, 'b');
         CREATE TABLE x3 (id int PRIMARY KEY, name text, age int)",
    );
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, LOCAL);
    settle(&mut both.through, "SELECT count(*) FROM x1, x2, x3");
    for (statements, change) in CHANGES {
        let problems: Vec<String> = statements.iter().filter_map(|sql| compare_local(&mut both, sql)).collect();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        world.past(change);
        for sql in *statements {
            (0..6).for_each(|_| drop(both.routed(change, sql)));
        }
    }
    let problems: Vec<String> = OUTER_COLUMNS.iter().filter_map(|sql| compare_local(&mut both, sql)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    for sql in NO_ROWS {
        for _ in 0..6 {
            assert_ne!(both.routed("", sql).0, "local", "{sql}");
        }
    }
    assert_eq!(world.freshet.status(&world.database, "wrong_answers"), "0");
}
