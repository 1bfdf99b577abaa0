//! Against PostgreSQL's own description of the statements in tests/statements.sql: names, types, modifiers and origins of
//! columns, types of parameters, and errors. What is refused here is listed, so that a change of coverage shows.

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::catalog::overloads::{Overload, Taken};
use crate::catalog::{ColumnSchema, RelationEntry, ReplicaIdentity, TableSchema};
use crate::statement;

const DESCRIBED: &str = include_str!("tests/described.txt");
const REFUSED: &str = include_str!("tests/refused.txt");

/// The tables at the head of described.txt, under a database whose default collation is `default_collation`.
fn catalog(default_collation: Collation) -> Catalog {
    let mut tables: Vec<TableSchema> = Vec::new();
    for line in DESCRIBED.lines().filter_map(|line| line.strip_prefix("table|")) {
        let fields: Vec<&str> = line.split('|').collect();
        let [table, name, attnum, typname, typmod, collation, not_null, key] = fields[..] else { panic!("{line}") };
        if tables.last().is_none_or(|last| &*last.name != table) {
            tables.push(TableSchema {
                id: RelationId(16_384 + tables.len() as Oid),
                schema: "public".into(),
                name: table.into(),
                columns: Vec::new(),
                primary_key: Vec::new(),
                identity: ReplicaIdentity::Nothing,
            });
        }
        let schema = tables.last_mut().expect("just pushed");
        let pg_type = PgType::ALL.into_iter().find(|known| known.typname() == typname);
        if key != "-1" && !key.is_empty() {
            schema.primary_key.push(schema.columns.len());
        }
        schema.columns.push(ColumnSchema {
            name: name.into(),
            attnum: attnum.parse().expect("a number"),
            type_oid: pg_type.map_or(9_999, PgType::oid),
            typmod: typmod.parse().expect("a number"),
            pg_type,
            not_null: not_null == "t",
            collation: match collation {
                "0" => Collation::None,
                "100" => default_collation,
                _ => Collation::C,
            },
        });
    }
    let tables: Vec<Arc<TableSchema>> = tables.into_iter().map(Arc::new).collect();
    let entries =
        tables.iter().map(|table| (Arc::clone(&table.name), RelationEntry::Table(Arc::clone(table)))).collect();
    Catalog {
        schemas: HashMap::from([("public".into(), entries), ("pg_catalog".into(), HashMap::new())]),
        tables: tables.into_iter().map(|table| (table.id, table)).collect(),
        default_collation: Some(default_collation),
        collations: HashMap::from([("pg_catalog".into(), HashMap::from([("C".into(), Collation::C)]))]),
        ..Catalog::default()
    }
}

fn bind_with(sql: &str, catalog: &Catalog, parameter_types: &[Oid]) -> Result<BoundQuery, UpstreamReason> {
    let statements = statement::parse(sql)?;
    let [statement] = statements.as_slice() else { panic!("{sql}") };
    let search_path = ["pg_catalog".into(), "public".into()];
    let context = BindContext { search_path: &search_path, settings: &FormatSettings::default(), parameter_types };
    bind(statement, catalog, &context)
}

fn bind_default(sql: &str) -> Result<BoundQuery, UpstreamReason> {
    bind_with(sql, &catalog(Collation::C), &[])
}

/// As described.txt has it.
fn describe(query: &BoundQuery, catalog: &Catalog) -> Vec<String> {
    let parameters = query.parameters.iter().map(|pg_type| format!("parameter|{}", pg_type.typname()));
    let columns = query.output.iter().map(|column| {
        let table = catalog.tables.get(&RelationId(column.table_oid)).map_or("", |table| &table.name);
        let ExprType { pg_type, typmod, .. } = column.expr_type;
        format!("column|{}|{table}|{}|{}|{typmod}", column.name, column.attnum, pg_type.typname())
    });
    parameters.chain(columns).collect()
}

fn described() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut statements: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in DESCRIBED.lines().filter(|line| !line.starts_with("table|")) {
        match line.strip_prefix("> ") {
            Some(statement) => statements.push((statement, Vec::new())),
            None => statements.last_mut().expect("a statement comes first").1.push(line),
        }
    }
    statements
}

/// UPDATE_EXPECT=1 rewrites refused.txt.
#[test]
fn described_as_by_postgresql() {
    let catalog = catalog(Collation::C);
    let mut failures = Vec::new();
    let mut refused = Vec::new();
    for (sql, expected) in described() {
        let is_error = expected[0].starts_with("error|");
        match bind_with(sql, &catalog, &[]) {
            Ok(_) if is_error => failures.push(format!("{sql}\n  accepted; PostgreSQL: {}", expected[0])),
            Ok(query) if describe(&query, &catalog) == expected => {}
            Ok(query) => {
                failures.push(format!("{sql}\n  here: {:?}\n  PostgreSQL: {expected:?}", describe(&query, &catalog)));
            }
            // Which functions are computed is the function table's affair.
            Err(UpstreamReason::UnknownFunction(_)) => {}
            Err(_) if is_error => {}
            Err(reason) => refused.push(format!("{sql}\n    {reason}\n")),
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/binder/tests/refused.txt");
        std::fs::write(path, refused.concat()).expect("the source tree is writable");
    }
    assert_eq!(refused.concat(), REFUSED);
}

/// No form of damage to a statement may end in a panic.
#[test]
fn damaged_statements_are_bound_or_refused() {
    let catalog = catalog(Collation::C);
    for (sql, _) in described() {
        let words: Vec<&str> = sql.split(' ').collect();
        for skipped in 0..words.len() {
            let mut rest = words.clone();
            rest.remove(skipped);
            let damaged = rest.join(" ");
            if statement::parse(&damaged).is_ok_and(|list| list.len() == 1) {
                let _ = bind_with(&damaged, &catalog, &[]);
            }
        }
    }
}

#[test]
fn case_of_letters_needs_a_collation_that_is_not_turkish() {
    let sqls = [
        "SELECT lower(carrier) FROM flights",
        "SELECT initcap(carrier) FROM flights",
        "SELECT carrier ILIKE 'i%' FROM flights",
    ];
    for sql in sqls {
        let refusal = bind_with(sql, &catalog(Collation::OwnCase(12_345)), &[]).expect_err(sql);
        assert!(matches!(refusal, UpstreamReason::Collation(_)), "{sql}: {refusal}");
        bind_with(sql, &catalog(Collation::Deterministic(12_345)), &[])
            .unwrap_or_else(|reason| panic!("{sql}: {reason}"));
    }
    let equality = "SELECT carrier, count(*) FROM flights WHERE carrier = 'I' GROUP BY carrier";
    bind_with(equality, &catalog(Collation::OwnCase(12_345)), &[])
        .unwrap_or_else(|reason| panic!("{equality}: {reason}"));
}

#[test]
fn order_of_text_needs_a_collation_that_is_known() {
    let catalog = catalog(Collation::Deterministic(100));
    for sql in [
        "SELECT carrier FROM flights ORDER BY carrier COLLATE \"en_US\"",
        // Compares as "C" does, yet PostgreSQL says: collation mismatch between explicit collations.
        "SELECT carrier COLLATE \"C\" < carrier COLLATE \"POSIX\" FROM flights",
    ] {
        let refusal = bind_with(sql, &catalog, &[]).expect_err(sql);
        let is_collation = matches!(refusal, UpstreamReason::Collation(_) | UpstreamReason::UnknownFunction(_));
        assert!(is_collation, "{sql}: {refusal}");
    }
    for sql in [
        "SELECT carrier, count(*) FROM flights GROUP BY carrier ORDER BY count(*)",
        "SELECT DISTINCT carrier FROM flights",
        "SELECT count(DISTINCT carrier) FROM flights",
        "SELECT carrier FROM flights ORDER BY carrier COLLATE \"C\"",
        "SELECT carrier FROM flights ORDER BY carrier",
        "SELECT min(carrier) FROM flights",
        "SELECT carrier < 'x' FROM flights",
        "SELECT carrier BETWEEN 'a' AND 'b' FROM flights",
        "SELECT greatest(carrier, 'x') FROM flights",
        "SELECT carrier FROM flights ORDER BY month",
        "SELECT n FROM edge ORDER BY n",
    ] {
        bind_with(sql, &catalog, &[]).unwrap_or_else(|reason| panic!("{sql}: {reason}"));
    }
}

#[test]
fn even_equality_of_text_needs_a_deterministic_collation() {
    let catalog = catalog(Collation::NonDeterministic(12_345));
    for sql in [
        "SELECT carrier FROM flights ORDER BY carrier",
        "SELECT max(carrier) FROM flights",
        "SELECT carrier < 'x' FROM flights",
        "SELECT DISTINCT carrier FROM flights",
        "SELECT carrier, count(*) FROM flights GROUP BY carrier",
        "SELECT count(DISTINCT carrier) FROM flights",
        "SELECT carrier = 'x' FROM flights",
        "SELECT carrier IN ('x', 'y') FROM flights",
    ] {
        assert!(bind_with(sql, &catalog, &[]).is_err(), "{sql}");
    }
    assert!(bind_with("SELECT carrier, count(*) FROM flights GROUP BY month, carrier", &catalog, &[]).is_err());
    assert!(bind_with("SELECT t FROM edge WHERE b", &catalog, &[]).is_ok());
}

#[test]
fn an_exact_built_in_match_wins_over_user_objects_and_nothing_else_does() {
    let mut catalog = catalog(Collation::C);
    catalog.user_functions = ["date_trunc".into(), "count".into()].into_iter().collect();
    catalog.user_operators = ["+".into()].into_iter().collect();
    // As an extension with a type of its own defines them.
    let own = |count: usize| Overload { takes: Some(vec![Taken::Of(Vec::new()); count]), is_pure: true };
    catalog.user_operators.add("-", own(2));
    catalog.user_operators.add("||", own(2));
    catalog.user_operators.add("=", own(2));
    catalog.user_functions.add("strpos", own(2));
    catalog.user_functions.add("max", own(1));
    for (sql, is_bound) in [
        ("SELECT a + 1 FROM edge", true),
        ("SELECT a + '1' FROM edge", true),
        ("SELECT d + i2 FROM edge", false),
        ("SELECT d - i2 FROM edge", true),
        ("SELECT '1' - '2'", false),
        // Strings come first, and text among them.
        ("SELECT '%' || '1' || '%', '1' = ''", true),
        ("SELECT strpos(t, 'a') FROM edge", true),
        ("SELECT max(t) FROM edge", true),
        ("SELECT strpos('ab', 'a')", false),
        ("SELECT date_trunc('day', ts) FROM edge", false),
        ("SELECT date_trunc('day'::text, ts) FROM edge", true),
        ("SELECT pg_catalog.date_trunc('day', ts) FROM edge", true),
        ("SELECT count(*) FROM edge", true),
    ] {
        assert_eq!(bind_with(sql, &catalog, &[]).is_ok(), is_bound, "{sql}");
    }
    // A domain of the name makes a cast of what is not taken exactly.
    catalog.user_casts = ["abs".into(), "sign".into(), "unnest".into()].into();
    for (sql, is_bound) in [
        ("SELECT abs(a) FROM edge", true),
        ("SELECT sign(a) FROM edge", false),
        ("SELECT pg_catalog.sign(a) FROM edge", true),
        ("SELECT * FROM unnest(ARRAY[1, 2])", false),
    ] {
        assert_eq!(bind_with(sql, &catalog, &[]).is_ok(), is_bound, "{sql}");
    }
    // What is in pg_catalog is found there, too.
    catalog.added_functions.add("btrim", Overload { takes: Some(vec![Taken::Any]), is_pure: false });
    for (sql, is_bound) in [
        ("SELECT trim('a') FROM edge", false),
        ("SELECT pg_catalog.btrim('a') FROM edge", false),
        ("SELECT trim(t), trim('b' FROM t) FROM edge", true),
    ] {
        assert_eq!(bind_with(sql, &catalog, &[]).is_ok(), is_bound, "{sql}");
    }
    catalog.changes_builtin_types = true;
    assert!(bind_with("SELECT 1", &catalog, &[]).is_err());
}

#[test]
fn what_not_everybody_may_execute_is_upstreams() {
    let mut catalog = catalog(Collation::C);
    let calls = [
        "md5(t)",
        "pg_catalog.md5(t)",
        "max(i2)",
        "max(i2) OVER ()",
        "trim(t)",
        "(SELECT count(*) FROM unnest(ARRAY[1]))",
    ];
    let bind_call = |call: &str, catalog: &Catalog| bind_with(&format!("SELECT {call} FROM edge"), catalog, &[]);
    for call in calls {
        assert!(bind_call(call, &catalog).is_ok(), "{call}: {:?}", bind_call(call, &catalog).err());
    }
    catalog.restricted.names = ["md5".into(), "max".into(), "btrim".into(), "unnest".into()].into();
    for call in calls {
        assert!(matches!(bind_call(call, &catalog), Err(UpstreamReason::Privilege(_))), "{call}");
    }
    assert!(bind_call("min(i2)", &catalog).is_ok());
    catalog.restricted.is_behind_operators = true;
    assert!(bind_call("min(i2)", &catalog).is_err());
}

#[test]
fn another_schema_before_pg_catalog_hides_what_it_has() {
    let mut catalog = catalog(Collation::C);
    let is_bound = |sql: &str, catalog: &Catalog, search_path: &[Arc<str>]| {
        let context = BindContext { search_path, settings: &FormatSettings::default(), parameter_types: &[] };
        bind(&statement::parse(sql).expect("lexes")[0], catalog, &context).is_ok()
    };
    let (behind, first) = (["public".into(), "pg_catalog".into()], ["pg_catalog".into(), "public".into()]);
    let texts =
        ["SELECT a + 1 FROM edge", "SELECT date_trunc('day', ts) FROM edge", "SELECT '1'::int4", "SELECT a FROM edge"];
    assert!(texts.iter().all(|sql| is_bound(sql, &catalog, &behind)));
    catalog.user_functions = ["date_trunc".into()].into_iter().collect();
    catalog.user_operators = ["+".into()].into_iter().collect();
    catalog.user_types = ["int4".into()].into();
    assert_eq!(texts.map(|sql| is_bound(sql, &catalog, &behind)), [false, false, false, true]);
    // An exact match is found before them; a literal without a type is none.
    assert_eq!(texts.map(|sql| is_bound(sql, &catalog, &first)), [true, false, false, true]);
}

#[test]
fn declared_parameters_keep_their_types() {
    let catalog = catalog(Collation::C);
    let types = |sql, declared: &[PgType]| {
        let oids: Vec<Oid> = declared.iter().map(|pg_type| pg_type.oid()).collect();
        bind_with(sql, &catalog, &oids).map(|query| query.parameters)
    };
    assert_eq!(types("SELECT $1 + 1", &[PgType::Int4]), Ok(vec![PgType::Int4]));
    assert_eq!(types("SELECT $1 + 1", &[PgType::Unknown]), Ok(vec![PgType::Int4]));
    assert_eq!(types("SELECT $2 + 1", &[PgType::Text, PgType::Int4]), Ok(vec![PgType::Text, PgType::Int4]));
    assert!(types("SELECT $1 + 1", &[PgType::Text]).is_err());
    assert!(bind_with("SELECT $1 + 1", &catalog, &[1_266]).is_err());
}

#[test]
fn uses_are_noted_per_range_table_entry() {
    let names = |sql| {
        let query = bind_default(sql).unwrap_or_else(|reason| panic!("{sql}: {reason}"));
        let catalog = catalog(Collation::C);
        let names = |used: &TableUse| {
            let table = &catalog.tables[&used.table];
            let columns: Vec<_> = used.columns.iter().map(|index| &*table.columns[*index].name).collect();
            format!("{}({})", table.name, columns.join(","))
        };
        query.tables.iter().map(names).collect::<Vec<_>>()
    };
    assert_eq!(names("SELECT count(*) FROM flights"), ["flights()"]);
    assert_eq!(names("SELECT month + 1 FROM flights WHERE day IS NULL GROUP BY month"), ["flights(month,day)"]);
    assert_eq!(names("SELECT count(*) FROM (SELECT name FROM airlines) s"), ["airlines(name)"]);
    assert_eq!(names("SELECT a.* FROM airlines a, airlines b"), ["airlines(carrier,name)", "airlines()"]);
    assert_eq!(names("SELECT 1"), Vec::<String>::new());
}

#[test]
fn time_and_settings_are_noted() {
    let flags = |sql| {
        let query = bind_default(sql).unwrap_or_else(|reason| panic!("{sql}: {reason}"));
        (query.uses_time, query.folds_settings)
    };
    assert_eq!(flags("SELECT month FROM flights"), (false, false));
    assert_eq!(flags("SELECT time_hour > '2013-01-01' FROM flights"), (false, true));
    assert_eq!(flags("SELECT d > '2013-01-01' FROM edge"), (false, false));
    assert_eq!(flags("SELECT d > '1/2/2013' FROM edge"), (false, true));
    assert_eq!(flags("SELECT now() > ts FROM edge"), (true, false));
    assert_eq!(flags("SELECT CURRENT_DATE"), (true, false));
}

#[test]
fn conflicting_or_unknown_relations_go_upstream() {
    let mut catalog = catalog(Collation::C);
    let view = RelationEntry::Other { id: RelationId(1), kind: "view" };
    catalog.schemas.get_mut("public").expect("public").insert("v".into(), view);
    for sql in [
        "SELECT * FROM v",
        "SELECT * FROM nosuch",
        "SELECT * FROM nosuch.flights",
        "SELECT * FROM pg_class",
        "SELECT * FROM a.b.flights",
    ] {
        assert!(bind_with(sql, &catalog, &[]).is_err(), "{sql}");
    }
}

#[test]
fn statements_that_would_grow_without_bound_are_refused() {
    let nested = |count: usize| {
        let mut expr = String::from("b");
        for _ in 0..count {
            expr = format!("({expr}) BETWEEN false AND true");
        }
        format!("SELECT {expr} FROM edge")
    };
    assert!(bind_default(&nested(40)).is_err());
    let with: Vec<String> = std::iter::once("t0 AS (SELECT 1 AS k)".to_owned())
        .chain((1..40).map(|n| format!("t{n} AS (SELECT a.k FROM t{} a, t{} b)", n - 1, n - 1)))
        .collect();
    // Each is computed once, however often it is named.
    let shared = bind_default(&format!("WITH {} SELECT k FROM t39", with.join(", "))).expect("binds");
    assert_eq!(shared.commons.len(), 39);
    let deep = format!("SELECT {}a{} FROM edge", "(1 + ".repeat(45), ")".repeat(45));
    assert!(bind_default(&deep).is_ok());
    let chain = format!("SELECT a{} FROM edge", " + 1".repeat(190));
    assert!(bind_default(&chain).is_ok());
}

/// What PostgreSQL 15 answers otherwise than 18, for most of these.
#[test]
fn keys_of_grouping_sets_are_not_equated() {
    let refused = [
        "SELECT carrier, count(*) FROM flights WHERE carrier = 'UA' GROUP BY ROLLUP (carrier) ORDER BY 1",
        "SELECT carrier, count(*) FROM flights WHERE month > 1 AND carrier IN ('UA') GROUP BY CUBE (carrier, month) ORDER BY 1",
        "SELECT carrier, count(*) FROM flights WHERE carrier = (SELECT min(carrier) FROM airlines) GROUP BY ROLLUP (carrier)",
        "SELECT f.carrier, a.carrier FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY CUBE (f.carrier, a.carrier)",
        "SELECT f.carrier FROM flights f JOIN airlines a ON f.carrier = a.carrier WHERE a.carrier = 'UA' GROUP BY ROLLUP (f.carrier)",
        "SELECT f.carrier FROM flights f JOIN airlines a ON f.carrier = a.carrier AND a.carrier = ANY('{UA}') OR a.name = '' GROUP BY ROLLUP (1)",
        "SELECT a.name, f.month % 2 FROM flights f, airlines a, edge e WHERE e.a = f.month AND length(a.name) = f.day GROUP BY CUBE (f.month % 2, a.name)",
        "SELECT carrier FROM flights WHERE carrier IN (VALUES ('UA')) GROUP BY ROLLUP (carrier) ORDER BY 1",
        "SELECT s.month FROM (SELECT f.month FROM flights f JOIN (VALUES (3)) v (a) ON v.a = f.month) s GROUP BY ROLLUP (s.month)",
        "SELECT month FROM flights f WHERE EXISTS (SELECT 1 FROM edge e, (VALUES (3)) v (a) WHERE e.a = f.month AND v.a = e.a) GROUP BY ROLLUP (1)",
        "SELECT month FROM flights f WHERE EXISTS (SELECT 1 FROM edge e WHERE e.a = f.month AND e.a = 3) GROUP BY ROLLUP (month)",
        "SELECT month, day FROM flights f WHERE EXISTS (SELECT 1 FROM edge e WHERE e.a = f.month AND e.a = f.day) GROUP BY ROLLUP (month, day)",
        "SELECT k, kk FROM (SELECT f.month AS k, v.kk FROM flights f, LATERAL (VALUES (f.month)) v (kk)) s GROUP BY CUBE (k, kk)",
        "SELECT f.month, e.a FROM flights f, edge e, edge g WHERE f.month = g.a AND g.a = e.a GROUP BY CUBE (f.month, e.a)",
        "SELECT f.month + 1 FROM flights f, edge e WHERE f.month = e.a GROUP BY ROLLUP (f.month + 1)",
        "SELECT carrier FROM flights WHERE NOT (carrier <> 'UA') GROUP BY ROLLUP (carrier) ORDER BY 1",
        "SELECT carrier FROM flights WHERE 'UA' IN (carrier) GROUP BY ROLLUP (carrier) ORDER BY 1",
        "SELECT carrier FROM flights WHERE (carrier = 'UA' AND day = 1) OR (day = 2 AND carrier = 'UA') GROUP BY ROLLUP (carrier)",
        "SELECT c FROM (SELECT carrier AS c FROM flights WHERE carrier = 'UA') s GROUP BY ROLLUP (c) ORDER BY 1",
        "WITH s AS (SELECT carrier AS c FROM flights WHERE carrier = 'UA') SELECT c FROM s GROUP BY ROLLUP (c) ORDER BY 1",
        "SELECT date_trunc('day', time_hour) FROM flights WHERE date_trunc('day', time_hour) = '2013-01-01' GROUP BY ROLLUP (1)",
        "SELECT carrier AS a, carrier AS b FROM flights GROUP BY GROUPING SETS ((1), (2)) ORDER BY 1, 2",
        "SELECT a, b FROM (SELECT carrier AS a, carrier AS b FROM flights) s GROUP BY CUBE (a, b) ORDER BY 1, 2",
        "SELECT 'c' AS z, carrier FROM flights GROUP BY ROLLUP (1, 2) ORDER BY 1, 2",
        "SELECT 1 + 1 AS z, (1 + 1) * 2 AS y, count(*) FROM flights GROUP BY ROLLUP (1)",
        "SELECT k FROM (SELECT 5 AS k, carrier FROM flights) s GROUP BY ROLLUP (k, carrier)",
        "SELECT a.name, (SELECT max(c) FROM (SELECT count(*) AS c FROM flights f WHERE f.carrier = a.carrier GROUP BY ROLLUP (f.carrier)) s) FROM airlines a",
    ];
    for sql in refused {
        let reason = bind_default(sql).expect_err(sql);
        assert!(matches!(reason, UpstreamReason::Unsupported(_)), "{sql}: {reason}");
    }
    let bound = [
        "SELECT carrier, count(*) FROM flights WHERE month = 1 GROUP BY ROLLUP (carrier) ORDER BY 1",
        "SELECT carrier FROM flights WHERE carrier IN ('UA', 'AA') GROUP BY ROLLUP (carrier) ORDER BY 1",
        "SELECT a.name, f.month FROM flights f JOIN airlines a USING (carrier) GROUP BY CUBE (a.name, f.month) ORDER BY 1, 2",
        "SELECT date_trunc('month', time_hour), date_trunc('day', time_hour) FROM flights GROUP BY ROLLUP (1, 2) ORDER BY 1, 2",
        "SELECT c FROM (SELECT carrier AS c, month AS m FROM flights WHERE month = 1) s GROUP BY ROLLUP (c) ORDER BY 1",
        "SELECT a.name, b.name FROM airlines a, airlines b GROUP BY ROLLUP (a.name, b.name) ORDER BY 1, 2",
        "SELECT f.carrier, a.name FROM flights f JOIN airlines a USING (carrier) GROUP BY ROLLUP (f.carrier, a.name) ORDER BY 1",
        "SELECT carrier FROM flights WHERE carrier IN (SELECT carrier FROM airlines) GROUP BY ROLLUP (carrier) ORDER BY 1",
        "SELECT carrier FROM flights WHERE carrier = 'UA' GROUP BY carrier ORDER BY 1",
    ];
    for sql in bound {
        assert!(bind_default(sql).is_ok(), "{sql}: {:?}", bind_default(sql).err());
    }
}

#[test]
fn the_plan_of_a_grouped_statement_has_its_parts_in_order() {
    let query = bind_default(
        "SELECT carrier, count(*) FROM flights WHERE dep_delay IS NULL GROUP BY carrier HAVING sum(month) IS NOT NULL \
         ORDER BY max(day) DESC, 1 LIMIT 3",
    )
    .expect("binds");
    let BoundRelation::Project { input, expressions } = query.root else { panic!("the junk column is dropped last") };
    assert_eq!(expressions.len(), 2);
    let BoundRelation::Limit { input, limit: Some(_), offset: None, .. } = *input else { panic!("LIMIT") };
    let BoundRelation::Sort { input, keys } = *input else { panic!("ORDER BY") };
    assert_eq!(
        keys.iter().map(|key| (key.descending, key.nulls_first)).collect::<Vec<_>>(),
        [(true, true), (false, false)]
    );
    let BoundRelation::Project { input, expressions } = *input else { panic!("targets") };
    assert_eq!(expressions.len(), 3);
    let BoundRelation::Filter { input, .. } = *input else { panic!("HAVING") };
    let BoundRelation::Aggregate { input, groups, aggregates } = *input else { panic!("GROUP BY") };
    assert_eq!((groups.len(), aggregates.len()), (1, 3));
    let BoundRelation::Filter { input, .. } = *input else { panic!("WHERE") };
    assert!(matches!(*input, BoundRelation::Scan { .. }));
}

#[test]
fn a_dependent_column_becomes_a_group() {
    let query = bind_default("SELECT carrier, count(*) FROM flights GROUP BY id").expect("binds");
    let BoundRelation::Project { input, expressions } = query.root else { panic!("targets") };
    let BoundRelation::Aggregate { groups, .. } = *input else { panic!("GROUP BY") };
    assert_eq!(groups.len(), 2);
    let indexes: Vec<_> = expressions
        .iter()
        .map(|expr| match expr {
            BoundExpr::Column { index, .. } => *index,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(indexes, [1, 2]);
}

#[test]
fn what_hangs_on_sums_of_floats_is_told_apart() {
    let summed = |columns: &[usize], rows| Summed { columns: columns.to_vec(), rows };
    for (sql, expected) in [
        ("SELECT day::float8, sum(day), sum(day::numeric) FROM flights GROUP BY day", summed(&[], false)),
        ("SELECT id, row_number() OVER (ORDER BY month), max(day::float8) OVER () FROM flights", summed(&[], false)),
        ("SELECT month, avg(day::float8), count(*) FROM flights GROUP BY month", summed(&[1], false)),
        ("SELECT 1, round(sum(day::float4)::numeric, 2)::text FROM flights", summed(&[1], false)),
        ("SELECT id, sum(day::float8) OVER (ORDER BY id), stddev(day) OVER () FROM flights", summed(&[1], false)),
        ("SELECT corr(day, id), regr_count(day, id) FROM flights", summed(&[0], false)),
        ("SELECT month FROM flights GROUP BY month HAVING sum(day::float8) > 3", summed(&[], true)),
        ("SELECT month FROM flights GROUP BY month ORDER BY sum(day::float8) LIMIT 3", summed(&[], true)),
        ("SELECT month FROM flights GROUP BY month ORDER BY sum(day::float8)", summed(&[], false)),
        (
            "SELECT s, count(*) FROM (SELECT sum(day::float8) AS s FROM flights GROUP BY id) q GROUP BY s",
            summed(&[0, 1], true),
        ),
        ("SELECT id, (SELECT sum(day::float8) FROM flights) FROM flights LIMIT 3", summed(&[1], false)),
        (
            "SELECT DISTINCT ON (month) month, id FROM (SELECT month, id, sum(day::float8) AS s FROM flights GROUP BY month, id) q ORDER BY month, s",
            summed(&[1], false),
        ),
    ] {
        let query = bind_default(sql).unwrap_or_else(|reason| panic!("{sql}: {reason}"));
        assert_eq!(query.summed(), expected, "{sql}");
    }
}

/// What PostgreSQL may choose, in short: `-` nothing, columns with `~` behind those that are only permuted, `rows` before
/// them, `?` anything.
fn choice_of(sql: &str) -> String {
    let shown = |open: OpenColumns| {
        let column = |at: &usize| format!("{at}{}", if open.permuted.contains(at) { "~" } else { "" });
        open.columns.iter().map(column).collect::<Vec<_>>().join(" ")
    };
    match bind_default(sql).unwrap_or_else(|reason| panic!("{sql}: {reason}")).choice() {
        Choice::Nothing => "-".to_owned(),
        Choice::Values(open) => shown(open),
        Choice::Rows { open, .. } => format!("rows {}", shown(open)).trim_end().to_owned(),
        Choice::Anything => "?".to_owned(),
    }
}

#[test]
fn what_ties_decide_is_told_apart() {
    for (sql, expected) in [
        ("SELECT id, row_number() OVER (ORDER BY month) FROM flights", "1~"),
        ("SELECT row_number() OVER (ORDER BY month) AS r, rank() OVER (ORDER BY month) FROM flights ORDER BY r", "0~"),
        ("SELECT 1 + row_number() OVER (ORDER BY month) FROM flights", "0"),
        ("SELECT id, lag(day) OVER (ORDER BY month), sum(day) OVER (ORDER BY month) FROM flights", "1"),
        ("SELECT sum(day) OVER (ORDER BY month ROWS UNBOUNDED PRECEDING) FROM flights", "0"),
        ("SELECT dense_rank() OVER (ORDER BY month), count(*) OVER (PARTITION BY day) FROM flights", "-"),
        ("SELECT * FROM (SELECT day, row_number() OVER (ORDER BY month) AS r FROM flights) q WHERE r < 3", "rows 1"),
        ("SELECT day FROM (SELECT day, row_number() OVER (ORDER BY month) AS r FROM flights) q WHERE r < 3", "rows"),
        ("SELECT count(*) FROM (SELECT day, row_number() OVER (ORDER BY month) AS r FROM flights) q WHERE r < 3", "?"),
        ("SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY month) AS r FROM flights) q", "0"),
        ("SELECT r, count(*) FROM (SELECT ntile(2) OVER (ORDER BY month) AS r FROM flights) q GROUP BY r", "?"),
        ("SELECT DISTINCT ON (month) month, day, id FROM flights ORDER BY month", "1 2"),
        ("SELECT id FROM (SELECT id FROM flights LIMIT 3) q", "rows"),
        ("SELECT id FROM (SELECT id FROM flights ORDER BY month FETCH FIRST 3 ROWS WITH TIES) q", "-"),
        ("SELECT count(*) FROM (SELECT id FROM flights ORDER BY month FETCH FIRST $1 ROWS WITH TIES) q", "-"),
        ("SELECT id FROM (SELECT id FROM flights ORDER BY month OFFSET 1 FETCH FIRST 3 ROWS WITH TIES) q", "rows"),
        (
            "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY month) AS r FROM flights ORDER BY r FETCH FIRST ROW WITH TIES) q",
            "rows",
        ),
        (
            "SELECT id, (SELECT sum(id) FROM (SELECT id FROM flights g WHERE g.day = f.day ORDER BY month FETCH FIRST ROW WITH TIES) q) FROM flights f",
            "-",
        ),
        (
            "SELECT f.id, q.day FROM flights f JOIN (SELECT id, day FROM flights ORDER BY month LIMIT 3) q ON q.id = f.id",
            "rows",
        ),
        ("SELECT f.id, q.day FROM flights f LEFT JOIN (SELECT id, day FROM flights LIMIT 3) q ON q.id = f.id", "?"),
        ("SELECT id, (SELECT day FROM flights LIMIT 1) FROM flights", "1"),
        ("SELECT string_agg(carrier, ',') FROM flights", "0"),
        ("SELECT string_agg(carrier, ',' ORDER BY carrier), array_agg(id ORDER BY month) FROM flights", "1"),
        ("SELECT month, string_agg(carrier, ',') FROM flights GROUP BY month ORDER BY month", "1"),
        (
            "WITH q AS (SELECT id, row_number() OVER (ORDER BY day) AS r FROM flights) SELECT a.id, b.r FROM q a JOIN q b ON a.id = b.id",
            "1",
        ),
        ("SELECT id FROM flights UNION SELECT row_number() OVER (ORDER BY day) FROM flights", "rows 0"),
        ("SELECT id FROM flights UNION ALL SELECT row_number() OVER (ORDER BY day) FROM flights", "0"),
        ("SELECT id FROM flights WHERE id IN (SELECT id FROM flights LIMIT 3)", "?"),
        ("SELECT id, month FROM flights ORDER BY month", "-"),
    ] {
        assert_eq!(choice_of(sql), expected, "{sql}");
    }
}
