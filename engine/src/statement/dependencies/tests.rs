//! What is read, and what is in doubt.

use std::collections::HashMap;

use super::*;
use crate::catalog::{Collation, ColumnSchema, Materialized, ReplicaIdentity, View};

fn table(id: u32, schema: &str, name: &str, columns: &[(&str, u32)]) -> Arc<TableSchema> {
    let column = |(at, (name, type_oid)): (usize, &(&str, u32))| ColumnSchema {
        name: (*name).into(),
        attnum: at as i16 + 1,
        type_oid: *type_oid,
        typmod: -1,
        pg_type: None,
        not_null: false,
        collation: Collation::None,
    };
    Arc::new(TableSchema {
        id: RelationId(id),
        schema: schema.into(),
        name: name.into(),
        columns: columns.iter().enumerate().map(column).collect(),
        primary_key: Vec::new(),
        identity: ReplicaIdentity::Nothing,
    })
}

fn catalog() -> Catalog {
    let columns = [("id", 23), ("name", 25), ("at", 1184), ("tags", 1009)];
    let mut schemas: HashMap<Arc<str>, HashMap<Arc<str>, RelationEntry>> = HashMap::new();
    let mut tables = HashMap::new();
    for (id, schema, name, columns) in [
        (1, "public", "t", &columns[..]),
        (2, "public", "u", &columns[..]),
        (3, "other", "t", &columns[..]),
        (4, "public", "moods", &[("id", 23), ("mood", 20_000)][..]),
        (5, "public", "named", &[("at", 25)][..]),
    ] {
        let table = table(id, schema, name, columns);
        schemas.entry(schema.into()).or_default().insert(name.into(), RelationEntry::Table(Arc::clone(&table)));
        tables.insert(table.id, table);
    }
    let mut views = HashMap::new();
    let public = schemas.entry("public".into()).or_default();
    for (id, name, columns, definition) in [
        (6, "v", &[("id", 23)][..], "SELECT u.id FROM public.u;"),
        (
            8,
            "nested",
            &[("id", 23), ("at", 25)],
            " SELECT v.id, 'x'::text AS at FROM public.v, other.t WHERE t.id = v.id;",
        ),
        (9, "volatile", &[("r", 701)], "SELECT random() AS r FROM public.t"),
        (13, "of_daily", &[("id", 23)], " SELECT daily.id FROM public.daily;"),
        (10, "moody", &[("mood", 20_000)], "SELECT NULL AS mood"),
    ] {
        let view = View {
            schema: table(id, "public", name, columns),
            definition: definition.into(),
            owner: None,
            is_barrier: false,
        };
        let view = Arc::new(view);
        views.insert(view.schema.id, Arc::clone(&view));
        public.insert(name.into(), RelationEntry::View(view));
    }
    let snapshot = table(11, "public", "daily", &columns);
    public.insert("daily".into(), RelationEntry::Materialized(Arc::clone(&snapshot)));
    let typed = table(12, "public", "moods_daily", &[("mood", 20_000)]);
    public.insert("moods_daily".into(), RelationEntry::Materialized(Arc::clone(&typed)));
    let materialized = [snapshot, typed].map(|schema| (schema.id, Materialized { schema, contents: 1 })).into();
    public.insert("secured".into(), RelationEntry::Other { id: RelationId(7), kind: "table with row security" });
    schemas.insert("empty".into(), HashMap::new());
    let names = |names: &'static [&str]| names.iter().map(|name| Arc::from(*name));
    Catalog {
        schemas,
        tables,
        views,
        materialized,
        user_functions: names(&["own", "next_id"]).collect(),
        user_operators: names(&["<=>"]).collect(),
        immutable_functions: names(&[
            "lower",
            "regexp_replace",
            "count",
            "array_agg",
            "unnest",
            "cardinality",
            "sum",
            "min",
        ])
        .collect(),
        ..Catalog::default()
    }
}

fn read(sql: &str) -> Result<Vec<u32>, String> {
    let found = dependencies(sql, &catalog(), &["pg_catalog".into(), "public".into()])?;
    let mut relations: Vec<u32> = found.relations().map(|RelationId(id)| id).collect();
    relations.sort_unstable();
    Ok(relations)
}

#[test]
fn every_table_is_found_wherever_it_stands() {
    for (sql, expected) in [
        ("SELECT regexp_replace(name, 'a', 'b') FROM t", &[1][..]),
        ("SELECT 1", &[]),
        ("select t.id from t join public.u on u.id = t.id;", &[1, 2]),
        ("SELECT id FROM other.t", &[1, 3]),
        ("SELECT tags[1] FROM t WHERE id IN (SELECT id FROM u)", &[1, 2]),
        ("SELECT (SELECT array_agg(name) FROM u WHERE u.id = t.id) FROM t", &[1, 2]),
        ("WITH w AS (SELECT * FROM u) SELECT * FROM w, LATERAL (SELECT count(*) FROM t WHERE t.id = w.id) x", &[1, 2]),
        ("WITH t AS (SELECT * FROM u) SELECT * FROM t", &[1, 2]),
        ("SELECT lower(name) FROM v, t WHERE t.id = v.id", &[1, 2, 6]),
        ("SELECT tags[1] FROM t WHERE id IN (SELECT id FROM nested)", &[1, 2, 3, 6, 8]),
        ("WITH a AS (SELECT * FROM t), b AS (SELECT * FROM a) SELECT * FROM b JOIN a USING (id)", &[1]),
        ("WITH RECURSIVE r AS (SELECT id FROM t UNION SELECT r.id FROM r) SELECT * FROM r", &[1]),
        ("SELECT * FROM (WITH a AS (SELECT * FROM t) SELECT * FROM a) x", &[1]),
        ("SELECT x FROM t, unnest(tags) AS x", &[1]),
        ("SELECT x.x, e.key, lower.lower FROM t, unnest(tags) x, unnest(tags) e, lower('A')", &[1]),
        ("SELECT row_to_json(t), count(u), u.count FROM t, u GROUP BY t, u", &[1, 2]),
        (
            "SELECT t.at::date, x.at::date FROM t JOIN (SELECT id FROM u) q ON q.id = t.id JOIN u AS x USING (id)",
            &[1, 2],
        ),
        ("WITH w (k) AS (SELECT id FROM t) SELECT k, d FROM w, unnest(ARRAY[1]) AS e (d), unnest(ARRAY[1]) f(g)", &[1]),
        ("SELECT min(at)::date, (at + interval '1 day')::date FROM t GROUP BY at", &[1]),
        ("SELECT id FROM t WHERE name = 'unknown' OR name LIKE '%know%'", &[1]),
        ("SELECT 1 FROM \"t\" WHERE EXISTS (SELECT FROM u)", &[1, 2]),
        ("SELECT at::date, to_char(at, 'YYYY') FROM t WHERE at > '2024-01-01'::timestamptz", &[1]),
        (
            "SELECT CAST(date_trunc('day', at) AS date), sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
            &[1],
        ),
        ("SELECT id::text, name::varchar(3), '1 day'::interval FROM t", &[1]),
        ("SELECT count(*) FROM daily", &[11]),
        ("SELECT * FROM t JOIN public.daily d ON d.id = t.id WHERE t.id IN (SELECT id FROM v)", &[1, 2, 6, 11]),
        ("SELECT id FROM of_daily", &[11, 13]),
    ] {
        assert_eq!(read(sql).as_deref(), Ok(expected), "{sql}");
    }
}

#[test]
fn what_is_in_doubt_is_refused() {
    for sql in [
        // Volatile, stable by more than settings, or not known.
        "SELECT random() FROM t",
        "SELECT now() FROM t",
        "SELECT id FROM t WHERE at > current_date",
        "SELECT current_user, id FROM t",
        "SELECT nextval('s') FROM t",
        "SELECT own(id) FROM t",
        "SELECT t.own FROM t",
        "SELECT public.lower(name), public.next_id FROM t",
        "SELECT pg_sleep(1) FROM t",
        "SELECT \"random\"() FROM t",
        "SELECT pg_catalog.random() FROM t",
        "SELECT id <=> 2 FROM t",
        "SELECT name @@ 'x' FROM t",
        // Texts that mean the time.
        "SELECT id FROM t WHERE at > 'now'",
        r"SELECT id FROM t WHERE at > ANY ('{n\ow}')",
        "SELECT id FROM t WHERE at > E'n\\x6fw'",
        "SELECT id FROM t WHERE at > U&'n\\006fw'",
        "SELECT id FROM t WHERE at > $$Today$$",
        "SELECT name::date FROM t",
        "SELECT (name || name)::timestamptz FROM t",
        "SELECT CAST(lower(name) AS timestamp) FROM t",
        "SELECT tags::date[] FROM t",
        "SELECT at::date FROM t, named",
        "SELECT at::date FROM (SELECT name AS at FROM t) x",
        "SELECT name::regclass FROM t",
        "SELECT name::mytype FROM t",
        "SELECT date(at) FROM t",
        "SELECT x.timestamptz FROM t, unnest(tags) x",
        "SELECT max(q.at::timestamptz) FROM (SELECT at::text FROM t UNION ALL SELECT name FROM t) q",
        "WITH q AS (SELECT CASE WHEN id = 1 THEN name ELSE at::text END FROM t) SELECT q.at::timestamptz FROM q",
        "WITH q AS (SELECT name AS k FROM t) SELECT x.at::timestamptz FROM q AS x (at), t",
        "SELECT at::timestamptz FROM (SELECT name FROM t) q, unnest(tags) at",
        "SELECT at::timestamptz FROM t, unnest(tags) x",
        "SELECT (1) OPERATOR(public.<=>) 2 FROM t",
        "SELECT min(name)::date FROM t",
        "SELECT (name + '1 day')::date FROM t",
        "SELECT x.current_setting AS current_setting FROM t, unnest(tags) AS x",
        "SELECT replace.timestamptz FROM t, replace('n,ow', ',', '')",
        "SELECT x.date FROM t, LATERAL lower(name) x JOIN unnest(tags) AS y (date) ON true",
        "SELECT x.date FROM t, unnest(tags) AS x (date), (SELECT x.date FROM unnest(tags) AS x) y",
        // Rows of more than their tables, or of others.
        "SELECT ctid FROM t",
        "SELECT \"xmin\" FROM t",
        "SELECT tableoid::int FROM t",
        "SELECT id FROM t TABLESAMPLE SYSTEM (10)",
        "SELECT id FROM t FOR UPDATE",
        "SELECT id FROM t FOR SHARE",
        "SELECT id INTO x FROM t",
        "SELECT ctid FROM daily",
        "SELECT count(*) FROM moods_daily",
        "WITH d AS (DELETE FROM t RETURNING id) SELECT * FROM d",
        "INSERT INTO t VALUES (1)",
        "TABLE t",
        "SELECT * FROM volatile",
        "SELECT * FROM moody",
        "SELECT at::date FROM nested",
        // A table of that name, which is not known here, is meant where the WITH query is not.
        "WITH fresh AS (SELECT * FROM fresh) SELECT * FROM fresh",
        "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM t) SELECT * FROM a",
        "SELECT * FROM (WITH fresh AS (SELECT * FROM t) SELECT * FROM fresh) x, fresh",
        "SELECT * FROM t, secured",
        "SELECT * FROM missing",
        "SELECT * FROM empty.missing",
        "SELECT * FROM unknown.t",
        "SELECT * FROM pg_class",
        "SELECT * FROM moods",
        "SELECT id FROM t; SELECT id FROM u",
        "SELECT FROM WHERE",
        "",
    ] {
        assert!(read(sql).is_err(), "{sql}: {:?}", read(sql));
    }
    let casts = Catalog { changes_builtin_types: true, ..catalog() };
    assert!(dependencies("SELECT id FROM t", &casts, &["public".into()]).is_err());
}

/// Words of the grammar are operators, too.
#[test]
fn operators_without_a_symbol_are_looked_for() {
    for (operator, condition) in [
        ("~~", "name LIKE 'a%'"),
        ("!~~", "name NOT LIKE 'a%'"),
        ("~~*", "name ILIKE 'a%'"),
        ("!~~*", "name NOT ILIKE 'a%'"),
        ("~", "name SIMILAR TO 'a'"),
        ("=", "name IN ('a', 'b')"),
        ("<>", "name NOT IN ('a', 'b')"),
        (">=", "name BETWEEN 'a' AND 'b'"),
        ("<", "name NOT BETWEEN 'a' AND 'b'"),
        ("=", "CASE name WHEN 'a' THEN true END"),
        ("=", "nullif(name, 'a') > ''"),
        ("=", "name IS DISTINCT FROM 'a'"),
        ("=", "name IS NOT DISTINCT FROM 'a'"),
        ("=", "EXISTS (SELECT FROM u JOIN t AS x USING (id))"),
        ("=", "EXISTS (SELECT FROM u NATURAL JOIN t AS x)"),
    ] {
        let sql = format!("SELECT lower(name) FROM t WHERE {condition}");
        assert!(read(&sql).is_ok(), "{sql}: {:?}", read(&sql));
        let catalog = Catalog { user_operators: [Arc::from(operator)].into_iter().collect(), ..catalog() };
        assert!(dependencies(&sql, &catalog, &["public".into()]).is_err(), "{sql}");
        for other in ["SELECT DISTINCT lower(name) FROM t", "SELECT CASE WHEN name IS NULL THEN 1 END FROM t"] {
            assert!(dependencies(other, &catalog, &["public".into()]).is_ok(), "{operator}: {other}");
        }
    }
}

#[test]
fn values_that_mean_the_time() {
    let of_elements = [r"{n\ow}", r#"{"to\day"}"#, r#"[t"od"ay,)"#, r#"{utc\"n\ow}"#];
    for value in ["now", "NOW", " Today ", "tomorrow", "x yesterday"].into_iter().chain(of_elements) {
        assert!(may_mean_the_time(value.as_bytes()), "{value}");
    }
    assert!(!may_mean_the_time(b"2024-01-01") && !may_mean_the_time(b"") && !may_mean_the_time(br#"{"k\nown"}"#));
}

#[test]
fn what_is_called_behind_distinct_on_is_called() {
    for sql in [
        "SELECT DISTINCT ON (id) random(), id FROM t ORDER BY id",
        "SELECT DISTINCT ON (id) current_setting('app.tenant'), id FROM t ORDER BY id",
        "SELECT at::timetz FROM t",
        "SELECT CAST(at AS time (3) with time zone) FROM t",
        "SELECT at::time AT TIME ZONE 'UTC' FROM t",
        "SELECT timezone('UTC', CAST(at AS time)) FROM t",
        "SELECT make_time(id, 0, 0) AT TIME ZONE name FROM t",
        "SELECT time '10:00' AT TIME ZONE name FROM t",
        "SELECT datetimetz_pl(at::date, at::time) FROM t",
    ] {
        assert!(read(sql).is_err(), "{sql}");
    }
    assert_eq!(read("SELECT DISTINCT ON (id) lower(name) FROM t ORDER BY id"), Ok(vec![1]));
    // A moment has the offset of its own day.
    assert_eq!(read("SELECT at AT TIME ZONE 'UTC', at::timestamp with time zone FROM t"), Ok(vec![1]));
}
