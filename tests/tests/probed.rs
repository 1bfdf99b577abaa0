//! What people found who tried to break it: sessions that end at awkward moments, tables that stop being fit, texts that mean the time,
//! settings that change by a reload.

use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_tests::client::{RawClient as WireClient, bind, describe, execute, parse, sync};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::{RawClient, frame};
use freshet_tests::world::{World, settle, until};

/// Rows as text, or the error.
fn shown(client: &mut RawClient, sql: &str) -> String {
    let reply = client.simple(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    if let Some(error) = reply.error() {
        return error;
    }
    let cell =
        |cell: &Option<Vec<u8>>| cell.as_ref().map_or("-".into(), |cell| String::from_utf8_lossy(cell).into_owned());
    let rows = reply.rows();
    rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("|")).collect::<Vec<_>>().join("\n")
}

/// Asks until it is a hit.
fn until_hit(client: &mut RawClient, sql: &str) {
    until(sql, || {
        shown(client, sql);
        client.last().expect("answers").0 == "hit"
    });
}

fn execution(sql: &str) -> Vec<u8> {
    [parse("", sql), bind("", "", &[], 0), describe('P', ""), execute("", 0)].concat()
}

#[test]
fn a_client_that_leaves_within_a_message_leaves_no_session_behind() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT n, n FROM generate_series(1, 100) n",
    );
    let mut reader = world.client();
    let read = "SELECT sum(v) FROM t";
    settle(&mut reader, read);
    let (write, half_sync, half_bind) =
        (execution("UPDATE t SET v = v WHERE id = 1"), &sync()[..3], &[b'B', 0, 0, 9][..]);
    let begun = [execution("BEGIN"), sync(), write.clone(), sync()].concat();
    let cut = [
        [&write[..], half_sync].concat(),
        [&write[..], half_bind].concat(),
        [&write[..], &execution(read), half_sync].concat(),
        [&begun[..], &parse("", read), half_bind].concat(),
        [&execution(read)[..], half_sync].concat(),
        [&execution(read)[..], half_bind].concat(),
        [&write[..], &execution(read)[..20]].concat(),
        write.clone(),
    ];
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
        AND query LIKE '%UPDATE t%' AND pid <> pg_backend_pid()";
    for (number, bytes) in cut.iter().enumerate() {
        for closes_at_all in [true, false] {
            let mut client = WireClient::log_in(world.freshet.port(), &world.database);
            client.send(bytes);
            // What the client has sent is there before its end is.
            std::thread::sleep(Duration::from_millis(50));
            let kept = if closes_at_all {
                drop(client);
                None
            } else {
                client.close_write();
                Some(client)
            };
            until(&format!("{number}, {closes_at_all}: the session upstream ends"), || world.past(sessions) == "0");
            drop(kept);
            world.past("SET lock_timeout = '5s'; UPDATE t SET v = v WHERE id = 1");
        }
    }
    until("freshet's list has only the readers", || shown(&mut reader, "SELECT count(*) FROM freshet.sessions") == "1");
}

#[test]
fn a_table_that_is_not_fit_any_more_leaves_the_publication() {
    for (change, key) in [
        ("ALTER TABLE t ENABLE ROW LEVEL SECURITY", "ALTER TABLE t DROP CONSTRAINT t_pkey"),
        ("CREATE RULE r AS ON INSERT TO t DO ALSO SELECT 1", "ALTER TABLE t REPLICA IDENTITY NOTHING"),
        (
            "ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t RENAME TO other; ALTER TABLE other RENAME TO t",
            "SELECT 1",
        ),
    ] {
        let world = World::start(
            FreshnessMode::Exact,
            "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1);
             CREATE TABLE bystander (id int PRIMARY KEY); INSERT INTO bystander VALUES (1)",
        );
        let mut client = world.client();
        settle(&mut client, "SELECT sum(v) FROM t");
        settle(&mut client, "SELECT sum(id) FROM bystander");
        let published = "SELECT string_agg(tablename, ',' ORDER BY tablename) FROM pg_publication_tables";
        assert_eq!(world.past(published), "bystander,t");
        world.past(change);
        until("it leaves", || world.past(published) == "bystander");
        world.past(key);
        world.past("UPDATE t SET v = v + 1");
        settle(&mut client, "SELECT sum(id) + 1 FROM bystander");
    }
}

#[test]
fn what_reads_a_text_as_a_time_is_never_kept() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE e (id int PRIMARY KEY, t timestamptz); CREATE TABLE c (k text PRIMARY KEY, v text);
         INSERT INTO c VALUES ('since', 'now'); INSERT INTO e VALUES (1, now() + interval '4 s')",
    );
    let mut client = world.client();
    settle(&mut client, "SELECT count(*) FROM e, c");
    let texts = [
        "SELECT count(*) FROM e WHERE t > (SELECT v::timestamptz FROM c WHERE k = 'since')",
        "SELECT count(*) FROM e JOIN c ON t > nullif(v, '')::timestamptz",
        "SELECT to_char(id, 'EEEE'), t > v::timestamptz FROM e, c",
    ];
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        for text in texts {
            shown(&mut client, text);
            let (route, reason) = client.last().expect("answers");
            assert_eq!(route, "relay", "{text}: {reason}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // But for that it would be.
    until_hit(&mut client, "SELECT to_char(id, 'EEEE'), t > '2024-01-01' FROM e, c");
    until("the time comes", || world.past(texts[0]) == "0");
    for text in texts {
        assert_eq!(shown(&mut client, text), world.past(text), "{text}");
    }
}

#[test]
fn null_is_not_distinct_from_null_in_numerics_of_any_form() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE t (id int PRIMARY KEY, n numeric(10, 2), m numeric(10, 4), x numeric);
         INSERT INTO t SELECT g, g * 1.25, g * 1.25, g FROM generate_series(1, 4) g;
         UPDATE t SET x = 'NaN' WHERE id = 3",
    );
    let mut client = world.client();
    let texts = [
        "SELECT a.id, b.id FROM t a JOIN t b ON a.n IS NOT DISTINCT FROM b.m ORDER BY 1, 2",
        "SELECT a.id, b.id FROM t a JOIN t b ON a.x IS NOT DISTINCT FROM b.x ORDER BY 1, 2",
        "SELECT a.id, b.id FROM t a JOIN t b ON a.n = b.m OR (a.n IS NULL AND b.m IS NULL) ORDER BY 1, 2",
        "SELECT a.k, a.c, b.s FROM (SELECT n / 3 k, count(*) c FROM t GROUP BY 1) a
           LEFT JOIN (SELECT n / 3 k, sum(id) s FROM t GROUP BY 1) b ON a.k IS NOT DISTINCT FROM b.k ORDER BY 1",
        "SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.m IS NOT DISTINCT FROM a.n AND b.id <> a.id) ORDER BY 1",
    ];
    texts.iter().for_each(|text| drop(settle(&mut client, text)));
    world.past("UPDATE t SET n = NULL, m = NULL, x = NULL WHERE id IN (2, 4)");
    for text in texts {
        assert_eq!(shown(&mut client, text).replace("-", ""), world.past(text), "{text}");
        assert_eq!(client.last().expect("answers").0, "local", "{text}");
    }
}

#[test]
fn settings_of_literals_are_heeded() {
    let world = World::start(FreshnessMode::Exact, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let mut direct = world.direct();
    for (setting, text) in [
        ("array_nulls", "SELECT id, '{1,NULL}'::text[] FROM t"),
        ("backslash_quote", r"SELECT id, E'a\'b' FROM t"),
        ("transform_null_equals", "SELECT count(*) FROM t WHERE id = NULL"),
    ] {
        let mut client = world.client();
        settle(&mut client, text);
        for value in ["off", "on", "default"] {
            for session in [&mut direct, &mut client] {
                shown(session, &format!("SET {setting} = {value}"));
            }
            for _ in 0..3 {
                assert_eq!(shown(&mut client, text), shown(&mut direct, text), "{setting} = {value}");
            }
        }
        settle(&mut client, text);
    }
    // Also where it is the database's.
    world.past(&format!("ALTER DATABASE {} SET backslash_quote = off", world.database));
    let mut later = world.client();
    for _ in 0..3 {
        assert!(shown(&mut later, r"SELECT id, E'a\'b' FROM t").contains("unsafe use"), "refused");
    }
}

#[test]
fn a_reloaded_configuration_counts_for_the_next_statement() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz); INSERT INTO t VALUES (1, '2024-03-10 06:30+00')",
    );
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let connect = |address| RawClient::connect(address, "postgres", &database).expect("connects");
    let mut direct = connect(cluster.address());
    let mut client = connect(freshet.address());
    let text = "SELECT extract(hour FROM at) FROM t WHERE id = 1";
    settle(&mut client, text);
    for zone in ["Asia/Tokyo", "UTC", "America/New_York", "Asia/Tokyo"] {
        settle(&mut client, text);
        cluster.psql("postgres", &format!("ALTER SYSTEM SET timezone = '{zone}'"));
        cluster.reload();
        // Upstream tells each session in its own time.
        until("upstream's own session has it", || shown(&mut direct, "SHOW timezone") == zone);
        let expected = shown(&mut direct, text);
        until("freshet's barrier has it", || {
            let other = shown(&mut connect(cluster.address()), "SHOW timezone");
            other == zone
        });
        // A kind of statement that has not been compared yet, in a session that has known the old zone.
        let new = format!("SELECT extract(hour FROM at), '{zone}' FROM t WHERE id = 1");
        shown(&mut client, &new);
        assert_eq!(shown(&mut client, text), expected, "{zone}");
        settle(&mut client, &new);
    }
    // One that was told all its settings by a probe, since it may have changed them.
    let bytes = "SELECT id::text::bytea FROM t WHERE id = 1";
    shown(&mut client, "DO $$ BEGIN END $$");
    settle(&mut client, bytes);
    for output in ["escape", "hex"] {
        cluster.psql("postgres", &format!("ALTER SYSTEM SET bytea_output = '{output}'"));
        cluster.reload();
        until("upstream's own session has it", || shown(&mut direct, "SHOW bytea_output") == output);
        until("other sessions have it", || shown(&mut connect(cluster.address()), "SHOW bytea_output") == output);
        assert_eq!(shown(&mut client, bytes), shown(&mut direct, bytes), "{output}");
        settle(&mut client, bytes);
    }
    assert_eq!(freshet.status(&database, "shape_mismatches"), "0");
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

/// The barrier's connection was lost and the configuration loaded before there was another: the new one took it for what it had been,
/// and sessions went on with the settings that they knew.
#[test]
fn a_configuration_that_is_reloaded_while_no_barrier_stands_counts_too() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, r"CREATE TABLE t (id int PRIMARY KEY, v bytea); INSERT INTO t VALUES (1, '\x01ff')");
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let connect = |address| RawClient::connect(address, "postgres", &database).expect("connects");
    let (mut direct, mut client) = (connect(cluster.address()), connect(freshet.address()));
    let text = "SELECT v FROM t WHERE id = 1";
    for output in ["escape", "hex"] {
        settle(&mut client, text);
        cluster.psql("postgres", &format!("ALTER SYSTEM SET bytea_output = '{output}'"));
        cluster.psql(
            "postgres",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'freshet%'
                AND query LIKE '%pg_current_snapshot%' AND backend_type = 'client backend' AND pid <> pg_backend_pid();
             SELECT pg_reload_conf()",
        );
        until("upstream's own session has it", || shown(&mut direct, "SHOW bytea_output") == output);
        let expected = shown(&mut direct, text);
        until("it is answered here again", || {
            assert_eq!(shown(&mut client, text), expected, "{output}");
            client.last().expect("answers").0 != "relay"
        });
    }
}

#[test]
fn a_session_that_is_in_use_is_not_idle() {
    let world = World::start(FreshnessMode::Session, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    let mut client = world.client();
    settle(&mut client, "SELECT * FROM t");
    shown(&mut client, "SET idle_session_timeout = 600; SET idle_in_transaction_session_timeout = 600");
    for in_block in [false, true] {
        if in_block {
            shown(&mut client, "BEGIN");
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            assert_eq!(shown(&mut client, "SELECT * FROM t"), "1");
            std::thread::sleep(Duration::from_millis(80));
        }
    }
}

#[test]
fn a_drain_ends_busy_sessions_at_their_next_statement() {
    let world =
        World::start(FreshnessMode::Exact, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)");
    let mut reader = world.client();
    settle(&mut reader, "SELECT v FROM t");
    // The error, or nothing if the line was cut without one.
    let busy = |sql: &'static str| {
        let mut client = world.client();
        std::thread::spawn(move || {
            let begun = Instant::now();
            loop {
                assert!(begun.elapsed() < Duration::from_secs(30), "it goes on and on");
                let _ = client.send(&frame(b'Q', format!("{sql}\0").as_bytes()));
                loop {
                    match client.read_frame() {
                        Ok((b'Z', _)) => break,
                        Ok((b'E', body)) => return (String::from_utf8_lossy(&body).into_owned(), begun.elapsed()),
                        Ok(_) => {}
                        Err(_) => return (String::new(), begun.elapsed()),
                    }
                }
            }
        })
    };
    let clients = [busy("UPDATE t SET v = v + 1"), busy("SELECT v FROM t"), busy("SELECT pg_sleep(0.01)")];
    std::thread::sleep(Duration::from_millis(300));
    world.freshet.drain();
    for client in clients {
        let (error, lasted) = client.join().expect("no panic");
        assert!(error.contains("57P01"), "told why: {error:?}");
        assert!(lasted < Duration::from_secs(5), "soon: {lasted:?}");
    }
}

#[test]
fn zones_print_as_upstream_prints_them() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE t (id int PRIMARY KEY, at timestamptz);
         INSERT INTO t VALUES (1, '2024-03-10 00:00Z'), (2, '1850-06-04 00:00Z'), (3, '1892-07-27 01:00Z')",
    );
    let mut direct = world.direct();
    let mut client = world.client();
    let text = "SELECT id, to_char(at, 'TZ'), to_char(at, 'tz'), to_char(at, 'OF TZH:TZM') FROM t ORDER BY id";
    settle(&mut client, text);
    let mut answered = 0;
    for zone in [
        "Pacific/Guam",
        "Europe/Stockholm",
        "Africa/Kigali",
        "America/Whitehorse",
        "Asia/Kathmandu",
        "UTC",
        "2",
        "-3.5",
        "0",
    ] {
        for session in [&mut direct, &mut client] {
            shown(session, &format!("SET timezone = '{zone}'"));
        }
        assert_eq!(shown(&mut client, text), shown(&mut direct, text), "{zone}");
        answered += usize::from(settles_unless(&mut client, text, "differs upstream"));
        assert_eq!(shown(&mut client, text), shown(&mut direct, text), "{zone}");
    }
    // A server with zone data of its own has what was before 1970 for more of them.
    assert!(answered >= 7, "{answered}");
}

/// As [`settle`]; false: it is relayed for that reason.
fn settles_unless(client: &mut RawClient, sql: &str, reason: &str) -> bool {
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        shown(client, sql);
        let (route, told) = client.last().expect("answers");
        match route.as_str() {
            "relay" if told.contains(reason) => return false,
            "relay" => assert!(Instant::now() < limit, "{sql}: {told}"),
            _ => return true,
        }
    }
}

/// Nothing promises it, but PostgreSQL's nodeProjectSet.c never did otherwise.
#[test]
fn rows_of_the_select_list_follow_each_other_row_by_row() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE few (id int PRIMARY KEY, tags text[]);
         INSERT INTO few VALUES (1, '{a,b}'), (2, '{}'), (3, '{c,d,e}')",
    );
    let (mut direct, mut client) = (world.direct(), world.client());
    for text in [
        "SELECT id, generate_series(1, 2) FROM few",
        "SELECT id, unnest(ARRAY[7, 8, 9]) FROM few",
        "SELECT id, unnest(tags) FROM few",
        "SELECT id, generate_series(1, 2) FROM few LIMIT 2 OFFSET 3",
        "SELECT id, string_to_table('x,y', ',') FROM few WHERE id > 1",
    ] {
        assert_eq!(settle(&mut client, text).route, "local", "{text}");
        assert_eq!(shown(&mut client, text), shown(&mut direct, text), "{text}");
    }
}

#[test]
fn an_aggregate_without_group_by_has_a_row_where_nothing_ties() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE ro (id int PRIMARY KEY, k int); CREATE TABLE ri (id int PRIMARY KEY, k int, v int);
         INSERT INTO ro VALUES (1, 1), (2, 2); INSERT INTO ri VALUES (1, 1, 7)",
    );
    let mut client = world.client();
    settle(&mut client, "SELECT count(*) FROM ro JOIN ri USING (k)");
    for text in [
        "SELECT 0 IN (SELECT count(*) FROM ri WHERE ri.k = ro.k) FROM ro WHERE id = $",
        "SELECT 5 NOT IN (SELECT max(v) FROM ri WHERE ri.k = ro.k) FROM ro WHERE id = $",
        "SELECT id FROM ro WHERE id = $ AND EXISTS (SELECT 1 FROM ri WHERE ri.k = ro.k HAVING count(*) = 0)",
        "SELECT id FROM ro WHERE id = $ AND NOT EXISTS (SELECT 1 FROM ri WHERE ri.k = ro.k HAVING count(*) < 9)",
        "SELECT (SELECT DISTINCT count(*) FROM ri WHERE ri.k = ro.k) FROM ro WHERE id = $",
        "SELECT (SELECT sum(count(*)) OVER () FROM ri WHERE ri.k = ro.k) FROM ro WHERE id = $",
        "SELECT (SELECT count(*) FROM (SELECT max(v) FROM ri WHERE ri.k = ro.k) q) FROM ro WHERE id = $",
        "SELECT (SELECT q.c FROM (SELECT count(*) c FROM ri WHERE ri.k = ro.k) q, (VALUES (1)) w) FROM ro WHERE id = $",
        "SELECT id, l.* FROM ro, LATERAL (SELECT DISTINCT count(*) FROM ri WHERE ri.k = ro.k) l WHERE id = $",
        "SELECT id FROM ro WHERE id = $ AND EXISTS (SELECT 1 FROM (SELECT count(*) c FROM ri WHERE ri.k = ro.k) q WHERE c < 100)",
        "SELECT (SELECT coalesce(max(c), -1) FROM (SELECT count(*) c FROM ri WHERE ri.k = ro.k) q) FROM ro WHERE id = $",
    ] {
        // Compared with upstream for the row that has a partner.
        for _ in 0..3 {
            shown(&mut client, &text.replace('$', "1"));
        }
        let other = text.replace('$', "2");
        for _ in 0..3 {
            assert_eq!(shown(&mut client, &other).replace('-', ""), world.past(&other).replace('-', ""), "{other}");
        }
    }
    // As a value it is answered here as ever.
    for text in [
        "SELECT (SELECT count(*) FROM ri WHERE ri.k = ro.k), (SELECT max(v) FROM ri WHERE ri.k = ro.k) FROM ro ORDER BY id",
        "SELECT id FROM ro WHERE k > (SELECT count(*) FROM ri WHERE ri.k = ro.k) ORDER BY id",
        "SELECT id FROM ro WHERE k IN (SELECT max(k) FROM ri WHERE ri.v > ro.k GROUP BY ri.k) ORDER BY id",
    ] {
        settle(&mut client, text);
        assert_eq!(shown(&mut client, text).replace('-', ""), world.past(text), "{text}");
    }
}

#[test]
fn what_depends_on_more_than_tables_is_never_kept() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE t (id int PRIMARY KEY, x text, d date); INSERT INTO t VALUES (1, 'abc', '2024-01-01'), (2, 'now', '2024-01-02');
         CREATE TEXT SEARCH DICTIONARY own (template = simple, accept = true)",
    );
    let mut client = world.client();
    settle(&mut client, "SELECT id, x, d FROM t");
    for text in [
        "SELECT quote_ident(x), unistr(x) FROM t",
        "SELECT (x).current_setting FROM t WHERE x = 'application_name'",
        "SELECT (x).timestamptz FROM t WHERE id = 2",
        "SELECT (ARRAY[x])[1].timestamptz FROM t WHERE id = 2",
        "SELECT (id).lo_creat > 0 FROM t WHERE id = 1",
        "SELECT ts_lexize('own', x) FROM t",
        "WITH max(d) AS (SELECT replace('n,ow', ',', '')) SELECT max.d::timestamptz, unistr(t.x) FROM max, t",
        "SELECT max(q.d::timestamptz) FROM (SELECT d::text FROM t UNION ALL SELECT x FROM t WHERE id = 2) q HAVING bit_and(1::bit(1)) = B'1'",
        "SELECT d::timestamptz FROM (SELECT x, unistr('a') FROM t WHERE id = 2) q, unnest(ARRAY[q.x]) d",
        "SELECT unistr(t.x), q.timestamptz FROM t, unnest(ARRAY[replace('n,ow', ',', '')]) q",
        "SELECT unistr(t.x), q.current_setting FROM t, unnest(ARRAY['application_name']) AS q",
        "SELECT q.timestamptz FROM t, replace('n,ow', ',', left(x, 0)) q",
        "SELECT row_to_json(q), q.timestamptz FROM t, replace('n,ow', ',', left(x, 0)) q",
        "SELECT q.d::timestamptz, unistr(t.x) FROM t, (VALUES (replace('n,ow', ',', ''))) AS sum(d), t AS q",
    ] {
        for _ in 0..6 {
            shown(&mut client, text);
            let (route, reason) = client.last().expect("answers");
            assert!(route != "hit" && route != "capture", "{text}: {route} {reason}");
        }
    }
    // But for that they would be.
    for text in [
        "SELECT unistr(x) FROM t",
        "SELECT unistr(t.x), q.q, e.key FROM t, unnest(ARRAY[replace('n,ow', ',', '')]) q, json_each('{\"a\": 1}') e",
        "SELECT row_to_json(t), t.count FROM t GROUP BY t.id",
        "SELECT bit_and(t.id::bit(8)), max(t.d::timestamp) FROM t, (SELECT 1) q WHERE x <> 'unknown'",
        "WITH w(k) AS (SELECT id FROM t) SELECT bit_and((k + g)::bit(8)) FROM w, generate_series(1, 2) AS e(g)",
        "SELECT coalesce(json_agg(row_to_json(q)), '[]') FROM (SELECT id, x FROM t) q",
        "WITH max(d) AS (SELECT replace('n,ow', ',', '')) SELECT max.d, unistr(t.x) FROM max, t",
    ] {
        until_hit(&mut client, text);
    }
}

#[test]
fn a_grouped_column_may_be_seen_as_text() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(20), b char(5), d date);
         INSERT INTO t SELECT n, 'v' || n % 5, 'b' || n % 3, '2024-01-01'::date + n % 4 FROM generate_series(1, 60) n",
    );
    let (mut client, mut direct) = (world.client(), world.direct());
    for text in [
        "SELECT upper(v), v || 'x', count(*) FROM t GROUP BY v ORDER BY v",
        "SELECT v, length(v), min(id) FROM t GROUP BY v HAVING v LIKE 'v%' AND lower(v) <> 'v3' ORDER BY lower(v)",
        "SELECT b || '-', count(*) FROM t GROUP BY b ORDER BY 1",
        "SELECT v COLLATE \"C\", count(*) FROM t GROUP BY v ORDER BY v COLLATE \"C\" DESC",
        "SELECT upper(v) u, b, count(*) FROM t GROUP BY GROUPING SETS ((v), (v, b)) ORDER BY 1, 2",
        "SELECT x.v || '!', max(y.id) FROM t x JOIN t y USING (v) GROUP BY x.v ORDER BY 1",
        "SELECT upper(v), row_number() OVER (ORDER BY lower(v)) FROM t GROUP BY v ORDER BY 2",
    ] {
        settle(&mut client, text);
        assert_eq!(shown(&mut client, text), shown(&mut direct, text), "{text}");
    }
    for text in [
        "SELECT v FROM t GROUP BY v::text",
        "SELECT v FROM t GROUP BY v COLLATE \"C\"",
        "SELECT v FROM t GROUP BY upper(v)",
    ] {
        for _ in 0..4 {
            assert!(shown(&mut client, text).contains("must appear in the GROUP BY clause"), "{text}");
        }
    }
}

#[test]
fn another_value_is_no_other_kind_of_statement() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE t (id int PRIMARY KEY, v varchar(20), at timestamptz, tags text[], j jsonb);
         INSERT INTO t SELECT n, 'v' || n % 5, '2024-01-01'::timestamptz + n * interval '1 hour', ARRAY['a' || n % 3, 'b'], jsonb_build_object('n', n % 4)
           FROM generate_series(1, 60) n",
    );
    let (mut client, mut direct) = (world.client(), world.direct());
    for [one, other] in [
        [
            "SELECT id FROM t WHERE (at, id) < ('2024-01-02', 5) ORDER BY at DESC, id LIMIT 3",
            "SELECT id FROM t WHERE (at, id) < ('2024-01-03 12:00', 9) ORDER BY at DESC, id LIMIT 4",
        ],
        ["SELECT count(*) FROM t WHERE tags @> '{a1}'", "SELECT count(*) FROM t WHERE tags @> '{a2,b}'"],
        ["SELECT count(*) FROM t WHERE j @> '{\"n\": 1}'", "SELECT count(*) FROM t WHERE j @> '{\"n\": 3}'"],
        ["SELECT count(*) FROM t WHERE 'a1' = ANY (tags)", "SELECT count(*) FROM t WHERE 'a2' = ANY (tags)"],
        ["SELECT count(*) FROM t WHERE id = ANY ('{1,2}')", "SELECT count(*) FROM t WHERE id = ANY ('{3,4,5}')"],
        [
            "SELECT count(*) FROM t WHERE v LIKE '%' || 'v1' || '%'",
            "SELECT count(*) FROM t WHERE v LIKE '%' || 'v2' || '%'",
        ],
        [
            "SELECT count(*) FROM t WHERE at > '2024-01-03'::timestamptz - interval '3 hours'",
            "SELECT count(*) FROM t WHERE at > '2024-01-03'::timestamptz - interval '14 hours'",
        ],
        [
            "SELECT count(*) FROM t WHERE id IN (1, 2) AND v = 'v1'",
            "SELECT count(*) FROM t WHERE id IN (1, 2, 3, 4, 6) AND v = 'v3'",
        ],
    ] {
        settle(&mut client, one);
        assert_eq!(shown(&mut client, other), shown(&mut direct, other), "{other}");
        assert_eq!(client.last().expect("answers").0, "local", "{other}");
    }
    let listed = |client: &mut RawClient, sql: &str, parameters: &[Option<&str>]| {
        let reply = client.extended(sql, parameters, 0).expect("answers");
        (reply.rows(), client.last().expect("answers").0)
    };
    let two = "SELECT count(*) FROM t WHERE id IN ($1, $2) AND v <> $3";
    until("of two", || listed(&mut client, two, &[Some("1"), Some("2"), Some("x")]).1 != "relay");
    let four = "SELECT count(*) FROM t WHERE id IN ($1, $2, $3, $4) AND v <> $5";
    let (rows, route) = listed(&mut client, four, &[Some("1"), Some("2"), Some("3"), Some("70"), Some("x")]);
    assert_eq!((rows[0][0].as_deref(), route.as_str()), (Some(&b"3"[..]), "local"));
}

/// The probe asks for temporary objects. Where an operator has hardened the catalog it would fail, and with it the block that it is
/// sent in.
#[test]
fn a_block_does_not_fail_by_what_a_role_may_not_ask() {
    let world = World::start(
        FreshnessMode::Exact,
        "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT n, n FROM generate_series(1, 100) n; GRANT SELECT ON t TO guest",
    );
    let mut client = world.client();
    let read = "SELECT sum(v) FROM t";
    settle(&mut client, read);
    // What the role finds by its search path has to be asked.
    let mut in_block = || {
        let said = ["BEGIN", "SET LOCAL ROLE guest", read, "COMMIT"].map(|sql| {
            let said = shown(&mut client, sql);
            // In a failed block that is refused, too.
            (said, client.last().map_or_else(|_| "failed".to_owned(), |last| last.0))
        });
        said[2].clone()
    };
    until("asked within the block", || in_block().1 != "relay");
    for taken in ["SELECT ON pg_class", "SELECT ON pg_type", "EXECUTE ON FUNCTION pg_listening_channels()"] {
        world.past(&format!("REVOKE {taken} FROM PUBLIC"));
        // Noticed half a second later at most. Meanwhile a block may fail.
        until(taken, || in_block() == ("5050".into(), "relay".into()));
        (0..5).for_each(|_| assert_eq!(in_block(), ("5050".into(), "relay".into()), "{taken}"));
        world.past(&format!("GRANT {taken} TO PUBLIC"));
        until("asked again", || in_block().1 != "relay");
    }
}
