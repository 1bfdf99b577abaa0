//! The corpus again, answered without the first-run audit, each statement once: what the engine says by itself. What PostgreSQL
//! refuses has to be refused here, too: behind an audit that a harmless literal has passed, another one raises.

use std::net::SocketAddr;

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::cluster::Cluster;
use freshet_tests::corpus::{Chapter, chapters, connect, connect_through, differs, setup};
use freshet_tests::freshet::Freshet;
use freshet_tests::generator::{Options, Share, run};
use freshet_tests::raw::RawClient;
use freshet_tests::world::{World, settle};

#[derive(Default)]
struct Answered {
    local: usize,
    refused: usize,
    problems: Vec<String>,
}

fn ask(chapter: &Chapter, direct: SocketAddr, through: SocketAddr, database: &str) -> Answered {
    let (mut direct, mut through) = (connect(direct, database), connect_through(through, database));
    let mut share = Answered::default();
    for sql in &chapter.statements {
        let expected = direct.simple(sql).expect("answers");
        let got = through.simple(sql).expect("answers");
        let (route, _) = through.last().expect("answers");
        share.local += usize::from(route == "local");
        share.refused += usize::from(expected.error().is_some());
        if let Some(difference) = differs(sql, &expected, &got) {
            share.problems.push(format!("{sql}: {route}: {difference}"));
        }
    }
    share
}

#[test]
fn the_engine_by_itself_has_upstreams_answers() {
    freshet::session::local::patient::want();
    let cluster = Cluster::shared();
    let database = setup(cluster);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let chapters = chapters();
    let shares: Vec<Answered> = std::thread::scope(|scope| {
        let ask = |chapter| ask(chapter, cluster.address(), freshet.address(), &database);
        let threads: Vec<_> = chapters.iter().map(|chapter| scope.spawn(move || ask(chapter))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a chapter")).collect()
    });
    for (chapter, share) in chapters.iter().zip(&shares) {
        let all = chapter.statements.len();
        println!("{}: {all} statements, {} refused, {} answered here", chapter.name, share.refused, share.local);
        let answered = all - share.refused;
        assert!(share.local <= answered, "{}", chapter.name);
        assert!(share.local * 10 >= answered * 8 || chapter.name == "11-refused", "{}: too few", chapter.name);
    }
    let problems: Vec<&String> = shares.iter().flat_map(|share| &share.problems).collect();
    assert!(problems.is_empty(), "{} differ: {problems:#?}", problems.len());
}

/// Likewise statements of the generator, constants among them that are no values of their type: in `generator.rs` the first execution,
/// which is upstream's, would be all that is ever seen of them.
#[test]
fn generated_statements_are_refused_where_upstream_refuses_them() {
    freshet::session::local::patient::want();
    let options = Options::of_environment(20_261_127, 60);
    let report = run(Cluster::shared(), &options);
    let sum = |of: fn(&Share) -> usize| report.shares.values().map(of).sum::<usize>();
    let (asked, refused, local, free) = (sum(|s| s.asked), sum(|s| s.refused), sum(|s| s.local), sum(|s| s.free));
    println!(
        "seed {}: {} worlds, {asked} statements, {refused} refused, {local} answered here, {free} free",
        options.seed, report.worlds
    );
    for sql in report.free.iter().take(5) {
        println!("- PostgreSQL answers in two ways: {sql}");
    }
    let failures: Vec<String> =
        report.failures.iter().map(|(path, text)| format!("{}\n{text}", path.display())).collect();
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(refused * 50 > asked && local * 2 > asked, "{asked} asked, {refused} refused, {local} answered here");
}

const PASSED_OVER: &str = "
    CREATE TABLE fa (id int PRIMARY KEY, k int, s text NOT NULL, g int NOT NULL);
    CREATE TABLE fb (id int PRIMARY KEY, g int NOT NULL, name text);
    CREATE TABLE fc (id int PRIMARY KEY, fa int, g int NOT NULL);
    INSERT INTO fa SELECT i, i, 's' || (7 - i), i - 1 FROM generate_series(1, 6) i;
    INSERT INTO fb SELECT i, i - 6, 'n' FROM generate_series(1, 6) i;
    INSERT INTO fc SELECT i, i, 1 FROM generate_series(1, 3000) i;
    UPDATE fc SET g = 0 WHERE id = 3000; UPDATE fa SET k = 3000 WHERE id = 1; ANALYZE";

/// Rows that the sort leaves out, and rows that OFFSET passes over: what PostgreSQL computes of them before it lets them go.
#[test]
fn errors_of_rows_that_are_passed_over_are_raised() {
    let (_world, mut both) = passed_over();
    let lateral = |inner: &str, outer: &str| {
        format!("SELECT fa.id, {outer} FROM fa LEFT JOIN LATERAL ({inner}) x ON true ORDER BY fa.s, fa.id LIMIT 2")
    };
    let mut raising = vec![
        lateral("SELECT 10 / fc.g v FROM fc WHERE fc.id = fa.k", "x.v"),
        lateral("SELECT 10 / fc.g v FROM fc WHERE fc.id = fa.k LIMIT 1", "x.v"),
        lateral("SELECT max(10 / fc.g) v FROM fc WHERE fc.id = fa.k", "x.v"),
        lateral("SELECT fc.g v FROM fc WHERE fc.id = fa.k", "10 / x.v"),
        lateral("SELECT fc.g + 2147483647 v FROM fc WHERE fc.id = fa.k", "x.v"),
    ];
    raising.extend(
        [
            "SELECT fa.id, (SELECT fb.name FROM fb WHERE fb.id > fa.g * 5) FROM fa ORDER BY fa.id LIMIT 2 OFFSET 2",
            "SELECT fa.id, (SELECT 10 / fa.g FROM fb WHERE fb.id = 1) FROM fa ORDER BY fa.id LIMIT 1 OFFSET 1",
            "SELECT fa.id, (SELECT max(10 / fa.g) FROM fb WHERE fb.id < 3) FROM fa ORDER BY fa.id LIMIT 1 OFFSET 100",
            "SELECT fa.id, (SELECT 10 / fa.g) FROM fa ORDER BY fa.s LIMIT 2",
            "SELECT fa.id, (SELECT 10 / fa.g WHERE fa.id < 9) FROM fa ORDER BY fa.s LIMIT 2",
            "SELECT id, (10 / g) IN (SELECT id FROM fb) FROM fa ORDER BY s LIMIT 1",
            "SELECT id, CASE WHEN k NOT IN (SELECT id FROM fb) THEN 10 / g END FROM fa ORDER BY s LIMIT 1",
            "WITH c AS MATERIALIZED (SELECT 1 x) SELECT id, (SELECT 10 / fa.g FROM c) FROM fa ORDER BY s LIMIT 5",
            "SELECT * FROM (SELECT g, count(*) n, (SELECT 10 / fa.g FROM fb WHERE id = 1) v FROM fa GROUP BY g) q ORDER BY n, g DESC LIMIT 3",
            "SELECT id, (SELECT 10 / fa.g FROM fb WHERE id = 1) FROM fa ORDER BY s FETCH FIRST 5 ROWS WITH TIES",
            "SELECT id, unnest(CASE WHEN g > 0 THEN ARRAY[g] ELSE '{}' END), 10 / g FROM fa",
            "SELECT 10 / g, generate_series(1, g), id FROM fa WHERE id < 3 ORDER BY id",
            "SELECT id, s::int, unnest('{}'::int[]) FROM fa",
            "SELECT id FROM fa WHERE 1 = 2 OR (s || 'x' || 'y' || 'z' = 'q' AND 10 / g > 1)",
            "SELECT id FROM fa WHERE k = NULL OR (k IN (11, 12, 13, 14, 15, 16, 17, 18) AND 10 / g > 1)",
            "SELECT id FROM fa WHERE (k = NULL AND id = 4) OR (k IN (11, 12, 13, 14, 15, 16, 17, 18) AND 10 / g > 1)",
            "SELECT id FROM fa WHERE NOT (k NOT IN (11, 12, 13, 14, 15, 16, 17, 18) OR 10 / g <= 1)",
            "SELECT id FROM fa WHERE NOT (NOT (s || 'x' || 'y' || 'z' = 'q' AND 10 / g > 1))",
            // What is said of a side that the conditions keep is computed for all its rows.
            "SELECT count(*) FROM fa a FULL JOIN fb b ON a.s = b.name WHERE 10 / a.g >= 0 AND b.id > 0",
            "SELECT count(*) FROM fb b FULL JOIN fa a ON a.s = b.name WHERE b.id > 0 AND 10 / a.g >= 0",
            "SELECT count(*) FROM fa a FULL JOIN fb b ON a.s = b.name WHERE 10 / b.g < 0 AND coalesce(a.id, 0) > 0",
            "SELECT count(*) FROM fa a FULL JOIN fb b ON a.s = b.name WHERE 10 / a.g > 0 AND coalesce(b.id, 0) > 7",
            // Nor do subqueries that are computed for each row say which rows those are, in whatever order conditions are written.
            "SELECT fa.id FROM fa WHERE 10 / fa.g > -1 AND 2 < (SELECT sum(fb.id) FROM fb WHERE fb.g = fa.id)",
            "SELECT fa.id, l.s FROM fa JOIN LATERAL (SELECT sum(fb.id) s FROM fb WHERE fb.g = fa.id) l ON l.s > 2 WHERE 10 / fa.g > -1",
            "SELECT count(*) FROM fa CROSS JOIN LATERAL (SELECT max(id) m, fa.id g FROM fb WHERE fb.g = fa.id) l WHERE l.m = 77 AND 10 / fa.g > -1",
            "SELECT count(*) FROM fa c LEFT JOIN (fa a JOIN fb b ON a.id = b.g + 100) ON b.id = c.k AND a.g = 5 WHERE (b.g > 2 OR a.k > 3) AND 10 / c.g > -1",
            // A correlated IN is asked of each row that there is; groups beside outer columns say nothing of the outer rows.
            "SELECT fc.id FROM fc WHERE fc.g IN (SELECT fb.id FROM fb WHERE fb.id = fc.id AND fb.g < 5) AND 10 / fc.g > 0",
            "SELECT fa.id, l.n FROM fa LEFT JOIN LATERAL (SELECT count(*) n, fa.id g FROM fb WHERE fb.g = fa.id) l ON true WHERE 10 / fa.g > -1 AND l.g = 6",
            "SELECT fa.id, l.n FROM fa, LATERAL (SELECT 10 / min(fb.g) n, fa.id g FROM fb WHERE fb.id = fa.id) l WHERE l.g > 2",
            // By what PostgreSQL takes conditions to cost, these come first.
            "SELECT id FROM fa WHERE 10 / g::float8 > -1 AND id + 0 + 0 > 1",
            "SELECT id FROM fa WHERE json_build_object(CASE id WHEN 1 THEN NULL ELSE s END, 1) IS NOT NULL AND id + 0 + 0 + 0 > 1",
            // The ends of frames are looked for, whatever the function is.
            "SELECT id, lag(id) OVER (ORDER BY timestamp '294276-12-31' - g * interval '1 hour' RANGE BETWEEN CURRENT ROW AND '2 days' FOLLOWING) FROM fa",
            // Of two untyped operands nothing tells which operator it is.
            r#"SELECT id, '{"a": 1}' ?| '{a}' FROM fa"#,
            "SELECT percentile_disc('0.5') WITHIN GROUP (ORDER BY s) FROM fa",
        ]
        .map(str::to_owned),
    );
    assert_raised(&mut both, raising.iter().map(String::as_str));
    // Those that are asked for have none.
    for sql in [
        "SELECT fa.id, (SELECT fb.name FROM fb WHERE fb.id > fa.g * 5) FROM fa ORDER BY fa.id DESC LIMIT 2 OFFSET 2",
        "SELECT fa.id, (SELECT 10 / fa.g FROM fb WHERE fb.id = 1) FROM fa ORDER BY fa.id DESC LIMIT 2 OFFSET 1",
        "SELECT id FROM fa WHERE NOT (g = 0 OR 10 / g < 3) ORDER BY id",
        "SELECT id FROM fa WHERE (g = 0 OR k IS NULL OR NOT (id > 2 AND NOT k = 4)) AND (NULL OR s <> 's3') ORDER BY id",
        "SELECT id, unnest(ARRAY[g, k]) AS u, 10 / g AS q FROM fa WHERE g <> 0 AND k < 5 ORDER BY q DESC, id, u",
        "SELECT generate_series(1, g) AS n, 10 / g, id * 2, s || 'x' FROM fa WHERE id BETWEEN 2 AND 4 ORDER BY id, n LIMIT 4",
        "SELECT fa.id, (SELECT max(fc.g) FROM fc WHERE fc.fa = fa.id) FROM fa ORDER BY fa.s, fa.id LIMIT 2 OFFSET 1",
        "SELECT a.id, b.id FROM fa a FULL JOIN fb b ON a.id = b.id + 3 WHERE a.id > 1 AND 10 / a.id > 1 ORDER BY 1, 2",
        "SELECT a.id, b.id FROM fa a FULL JOIN fb b ON a.id = b.id + 3 WHERE b.id > 1 AND 10 / b.id > 1 ORDER BY 2, 1",
        "SELECT a.id, b.id FROM fa a FULL JOIN fb b ON a.id = b.id + 3 WHERE 10 / b.id > 1 AND a.id < 6 ORDER BY 2, 1",
        "SELECT a.id, b.id FROM fa a FULL JOIN fb b ON a.id = b.id + 3 WHERE coalesce(a.id, b.id) > 2 ORDER BY 1, 2",
        "SELECT fa.id, (SELECT count(*) + fa.g FROM fc WHERE fc.fa = fa.id) FROM fa ORDER BY 1",
        "SELECT fa.id, l.n FROM fa, LATERAL (SELECT count(*) + fa.g n FROM fc WHERE fc.fa = fa.id) l WHERE l.n > 2 ORDER BY 1",
        "SELECT fa.id, l.n, l.g FROM fa, LATERAL (SELECT count(*) n, fa.g g FROM fb WHERE fb.id > fa.id) l WHERE l.g > 2 ORDER BY 1",
        "SELECT c.id, b.id FROM fa c LEFT JOIN (fa a JOIN fb b ON a.id = b.id) ON b.id = c.k + 1 WHERE b.id > 4 OR b.g > -4 ORDER BY 1, 2",
        "SELECT fc.id FROM fc WHERE fc.g IN (SELECT fb.id FROM fb WHERE fb.id < fc.id AND fb.g < 5) AND 10 / fc.id > 0 ORDER BY 1",
        "SELECT fa.id, x.id FROM fa LEFT JOIN LATERAL (SELECT fc.id FROM fc WHERE fc.fa = fa.k ORDER BY fc.id LIMIT 1) x ON true ORDER BY fa.id LIMIT 3 OFFSET 2",
    ] {
        assert_local(&mut both, sql);
    }
}

/// What WHERE asks of a table's rows is asked of all of them, whatever the table is joined with.
#[test]
fn errors_of_rows_that_a_join_drops_are_raised() {
    let (_world, mut both) = passed_over();
    let several = "(SELECT fb.id FROM fb WHERE fb.g < fa.g)";
    let raising = [
        format!(
            "SELECT count(*) FROM fa LEFT JOIN fc ON fc.id = fa.id + 5000 WHERE coalesce(fc.g, 99) = 98 AND fa.g < {several}"
        ),
        format!("SELECT count(*) FROM fa JOIN fc ON fc.id = fa.id + 5000 WHERE fa.g < {several}"),
        format!(
            "SELECT count(*) FROM fc JOIN fa ON fc.id = fa.id + 5000 JOIN fb x ON x.id = fc.g WHERE fa.g < {several}"
        ),
        format!("SELECT count(*) FROM fb x LEFT JOIN fa ON fa.id = x.id + 5000 WHERE fa.g < {several}"),
        format!(
            "SELECT count(*) FROM fb x FULL JOIN fa ON fa.id = x.id + 5000 WHERE fa.g < {several} AND coalesce(x.id, -1) > 0"
        ),
        format!(
            "SELECT count(*) FROM fa FULL JOIN fb x ON fa.id = x.id + 5000 WHERE fa.g < {several} AND coalesce(x.id, -1) > 0"
        ),
        format!("SELECT q.id FROM (SELECT fa.id, {several} v FROM fa JOIN fc ON fc.id = fa.id + 5000) q WHERE q.v = 3"),
        format!(
            "SELECT count(*) FROM fa JOIN fc ON fc.id = fa.id + 5000 WHERE {several} < (SELECT max(fb.id) FROM fb WHERE fb.id = fa.id)"
        ),
        format!(
            "SELECT count(*) FROM fa JOIN fc ON fc.id = fa.id + 5000 WHERE (SELECT max(fb.id) FROM fb WHERE fb.id = fa.id) > {several}"
        ),
        format!(
            "SELECT count(*) FROM fa WHERE EXISTS (SELECT 1 FROM fc WHERE fc.id = fa.id + 5000) AND fa.g < {several}"
        ),
        format!("SELECT count(*) FROM fa JOIN fc USING (id, g) WHERE fa.g < {several} AND fc.id > 5"),
    ];
    assert_raised(&mut both, raising.iter().map(String::as_str));
    let raising = [
        "SELECT count(*) FROM fa JOIN fc ON fc.id = fa.id + 5000 WHERE 10 / (SELECT count(*) FROM fb WHERE fb.g > fa.id) > 0",
        "SELECT count(*) FROM fa JOIN fc ON fc.id = fa.id + 5000 WHERE 10 / (SELECT count(*) FROM fb WHERE fb.id = fa.g) > 0",
        "SELECT count(*) FROM fa JOIN fc ON fc.id = fa.id + 5000 WHERE fa.k NOT IN (SELECT id FROM fb) AND 10 / fa.g > 0",
        "SELECT count(*) FROM fa JOIN fc ON fc.id = fa.id + 5000 WHERE fa.k IN (SELECT id FROM fb) OR 10 / fa.g > 0",
        "SELECT count(*) FROM fa JOIN fc ON fc.id = fa.id + 5000 WHERE EXISTS (SELECT FROM fb WHERE fb.id = fa.k) IS NOT TRUE AND 10 / fa.g > 0",
        "SELECT count(*) FROM fa JOIN fc ON fc.id = fa.id + 5000 WHERE 10 / fa.g NOT IN (SELECT id FROM fb)",
        "SELECT count(*) FROM fa JOIN fc ON fc.id = fa.id + 5000 WHERE 0 NOT IN (SELECT 10 / fa.g FROM fb)",
        "SELECT count(*) FROM fb WHERE 3 IN (SELECT g FROM fa WHERE 10 / g < 20)",
        "SELECT count(*) FROM fb WHERE 3 IN (SELECT g FROM fa GROUP BY g HAVING 10 / g < 20)",
        "SELECT * FROM (SELECT id FROM fa WHERE id < 3 INTERSECT SELECT id FROM fb) u WHERE u.id + 2147483644 <> 1",
        "SELECT count(*) FROM fa LEFT JOIN fc ON fc.id = fa.k AND fc.g = 7 WHERE fc.id IS NOT NULL AND 10 / (SELECT count(*) FROM fb WHERE fb.id = fa.g) > 0",
    ];
    assert_raised(&mut both, raising.into_iter());
    // With a primary key that leads to the few rows that are wanted, PostgreSQL computes all of them where it takes that to be cheaper.
    both.direct.simple("SET enable_nestloop = off; SET enable_mergejoin = off").expect("answers");
    let raising = [
        "SELECT count(*) FROM fc WHERE id IN (SELECT id FROM fb) AND 10 / g = 7",
        "SELECT count(*) FROM fc WHERE EXISTS (SELECT 1 FROM fb WHERE fb.id = fc.id) AND 10 / g > 500",
        "SELECT count(*) FROM fc JOIN fb USING (id) WHERE 10 / fc.g > 500",
    ];
    assert_raised(&mut both, raising.into_iter());
    both.direct.simple("RESET ALL").expect("answers");
    for sql in [
        "SELECT fa.id, fc.id FROM fa JOIN fc ON fc.fa = fa.id WHERE fa.g = (SELECT fb.id FROM fb WHERE fb.id = fa.g) ORDER BY 1, 2",
        "SELECT fa.id, fc.id FROM fc JOIN fa ON fc.fa = fa.id WHERE fa.g = (SELECT fb.id FROM fb WHERE fb.id = fa.g) AND fc.id < 4 ORDER BY 1, 2",
        "SELECT x.*, fa.*, fc.* FROM fb x LEFT JOIN fa ON fa.id = x.id LEFT JOIN fc ON fc.fa = fa.id WHERE fa.g = (SELECT fb.id FROM fb WHERE fb.id = fa.g) ORDER BY 1",
        "SELECT x.*, fa.* FROM fa LEFT JOIN fb x ON fa.id = x.id + 3 WHERE fa.g = (SELECT fb.id FROM fb WHERE fb.id = fa.g) ORDER BY fa.id",
        "SELECT x.*, fa.* FROM fb x FULL JOIN fa ON fa.id = x.id + 3 WHERE fa.g = (SELECT fb.id FROM fb WHERE fb.id = fa.g) ORDER BY fa.id",
        "SELECT x.*, fa.* FROM fa FULL JOIN fb x ON fa.id = x.id + 3 WHERE fa.g = (SELECT fb.id FROM fb WHERE fb.id = fa.g) ORDER BY fa.id",
        "SELECT q.*, fc.g FROM (SELECT fa.id, (SELECT fb.id FROM fb WHERE fb.id = fa.g) v, x.name FROM fa JOIN fb x ON x.id = fa.id) q JOIN fc ON fc.fa = q.id WHERE q.v > 1 ORDER BY 1",
        "SELECT fa.id, fc.id FROM fc JOIN fa ON fc.fa = fa.id WHERE (SELECT fb.id FROM fb WHERE fb.id = fa.g) >= (SELECT x.id FROM fb x WHERE x.id = fa.g) ORDER BY 1",
        "SELECT fa.id, x.name FROM fa JOIN fb x ON x.id = fa.id WHERE 12 / (SELECT count(*) + 1 FROM fb WHERE fb.id = fa.g) > 6 ORDER BY 1",
        "SELECT fa.id, x.name FROM fb x JOIN fa ON x.id = fa.id WHERE 12 / (fa.id + 1) > 2 OR fa.k IN (SELECT id FROM fb WHERE id > 4) ORDER BY 1",
        "SELECT fa.id, x.name FROM fa JOIN fb x ON x.id = fa.id WHERE fa.id > (SELECT count(*) FROM fb WHERE fb.id < fa.g) ORDER BY 1",
        "SELECT fa.id, x.name, (SELECT fb.id FROM fb WHERE fb.id > fa.g ORDER BY 1 LIMIT 1) FROM fa JOIN fb x ON x.id = fa.id ORDER BY 1",
        "SELECT fa.id FROM fa WHERE EXISTS (SELECT 1 FROM fc WHERE fc.fa = fa.id) AND fa.g = (SELECT fb.id FROM fb WHERE fb.id = fa.g) ORDER BY 1",
        "SELECT fa.id FROM fa WHERE NOT EXISTS (SELECT 1 FROM fc WHERE fc.fa = fa.id + 2996) AND fa.g = (SELECT fb.id FROM fb WHERE fb.id = fa.g) ORDER BY 1",
    ] {
        assert_local(&mut both, sql);
    }
}

fn passed_over() -> (World, Both) {
    freshet::session::local::patient::want();
    let world = World::start(FreshnessMode::Session, PASSED_OVER);
    let mut both = Both::open(&world.freshet, world.cluster, "postgres", &world.database, &[]);
    for sql in ["SELECT * FROM fa", "SELECT * FROM fb", "SELECT * FROM fc"] {
        settle(&mut both.through, sql);
    }
    both.through.simple("SET freshet.route = 'local'").expect("answers");
    (world, both)
}

/// With upstream's frames.
fn assert_local(both: &mut Both, sql: &str) {
    let (route, reason) = both.routed("nothing", sql);
    assert!(route == "local", "{sql}: {route} {reason}");
}

fn assert_raised<'s>(both: &mut Both, statements: impl Iterator<Item = &'s str>) {
    let mut problems = Vec::new();
    for sql in statements {
        let ask = |client: &mut RawClient| client.simple(sql).expect("answers").error();
        let (found, expected) = (ask(&mut both.through), ask(&mut both.direct));
        if expected.is_none() || found != expected {
            problems.push(format!("{sql}: {found:?}, not {expected:?}"));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// A parameter of no declared type is no constant: what takes one is told by functions and operators alone. And a word that is reserved in
/// later releases is no column there.
#[test]
fn untyped_parameters_and_later_words_mean_what_they_do_upstream() {
    let (world, mut both) = passed_over();
    let moments = ["2024-02-29", "2024-02-28T22:30:00.000-08:00"];
    for (sql, values, is_local) in [
        ("SELECT id, date($1) FROM fa WHERE id < 3 ORDER BY 1", moments, true),
        ("SELECT id FROM fa WHERE date '2024-02-28' + g = date($1)", moments, true),
        ("SELECT id, text($1) FROM fa ORDER BY 1", ["1", "2"], true),
        (r#"SELECT id, jsonb '{"a": 1}' ?| $1 FROM fa ORDER BY 1"#, ["{a}", "{b}"], true),
        // Which function it is is not told, or there is none.
        ("SELECT id, int4($1) FROM fa", ["1", "2"], false),
        ("SELECT id, numeric($1) FROM fa", ["1", "2"], false),
        ("SELECT id, jsonb($1) FROM fa", ["1", "2"], false),
    ] {
        for value in values {
            let ask = |client: &mut RawClient| client.extended(sql, &[Some(value)], 0).expect("answers");
            let (found, expected) = (ask(&mut both.through), ask(&mut both.direct));
            assert_eq!(found, expected, "{sql} of {value}");
            let (route, reason) = both.through.last().expect("answers");
            assert_eq!(route == "local", is_local, "{sql} of {value}: {route} {reason}");
        }
    }
    world.past(r#"CREATE TABLE su (id int PRIMARY KEY, "system_user" text); INSERT INTO su SELECT i, 'u' FROM generate_series(1, 5) i"#);
    settle(&mut both.through, r#"SELECT count("system_user") FROM su"#);
    for sql in [
        "SELECT count(*) FROM su WHERE system_user IS NULL",
        "SELECT count(system_user) FROM su",
        "SELECT id, coalesce(su.system_user, '-') FROM su ORDER BY id",
        r#"SELECT id, "system_user" FROM su ORDER BY id"#,
    ] {
        both.routed("nothing", sql);
    }
}

/// A side of a union of which PostgreSQL proves that it has no rows leaves the other's modifiers; INTERSECT and EXCEPT have had those of their
/// left side since 18.
#[test]
fn modifiers_of_set_operations_are_those_of_the_planned_sides() {
    freshet::session::local::patient::want();
    let (world, mut both) = passed_over();
    world.past("CREATE TABLE md (id int PRIMARY KEY, v numeric(10,2), n numeric, s varchar(12), t text)");
    world.past("INSERT INTO md SELECT i, i, i, i, i FROM generate_series(1, 9) i");
    settle(&mut both.through, "SELECT sum(v), sum(n), max(s), max(t) FROM md");
    let conditions = [
        "false",
        "NULL",
        "'a' = 'b'",
        "id = NULL",
        "id IN (NULL)",
        "id IS NULL",
        "id > 5 AND id < 3",
        "id > 5 AND 1 = 2",
        "EXISTS (SELECT FROM md WHERE false)",
    ];
    for condition in conditions {
        for sql in [
            format!("SELECT v FROM md UNION ALL SELECT n FROM md WHERE {condition}"),
            format!("SELECT s, id FROM md WHERE {condition} UNION ALL SELECT t, id FROM md"),
            format!("SELECT * FROM (SELECT s FROM md UNION ALL SELECT t FROM md WHERE {condition}) q"),
            format!("SELECT s FROM (SELECT s FROM md UNION ALL SELECT t FROM md WHERE {condition}) q"),
            format!("WITH c AS (SELECT v FROM md UNION ALL SELECT n FROM md WHERE {condition}) SELECT * FROM c"),
            format!("SELECT (SELECT v FROM md WHERE id = 1 UNION ALL SELECT n FROM md WHERE {condition} LIMIT 1)"),
            format!("SELECT v FROM md UNION ALL SELECT v FROM md UNION ALL SELECT n FROM md WHERE {condition}"),
        ] {
            let (route, reason) = both.routed("nothing", &sql);
            assert_eq!(route, "relay", "{sql}: {reason}");
        }
    }
    let way = if world.cluster.major() < 18 { "local" } else { "relay" };
    for operation in ["INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"] {
        for sql in [
            format!("SELECT s FROM md {operation} SELECT t FROM md ORDER BY 1"),
            format!("SELECT * FROM (SELECT s FROM md {operation} SELECT t FROM md) q ORDER BY 1"),
        ] {
            let (route, reason) = both.routed("nothing", &sql);
            assert_eq!(route, way, "{sql}: {reason}");
        }
    }
    // What they are does not hang on it, or nobody is told.
    for sql in [
        "SELECT v FROM md UNION ALL SELECT n FROM md",
        "SELECT v FROM md WHERE false UNION ALL SELECT v FROM md",
        "SELECT a.v FROM md a JOIN md b ON a.id = b.id UNION ALL SELECT n FROM md",
        "SELECT count(*), max(v) FROM (SELECT v FROM md UNION ALL SELECT n FROM md WHERE id = 3) q",
        "SELECT v + 1 FROM (SELECT v FROM md UNION ALL SELECT n FROM md WHERE id = 3) q",
        "SELECT id FROM md WHERE v IN (SELECT v FROM md UNION ALL SELECT n FROM md WHERE id > 3)",
    ] {
        assert_local(&mut both, sql);
    }
}
