//! Statements with the answers that PostgreSQL 15 gave (answers.txt), from text to text: parsed, bound, planned, run.
//!
//! `table|` and `row|` lines are the data; `>` is a statement, `<` a row of its answer as psql prints it unaligned,
//! `!` the error that PostgreSQL raised. Rows are compared in order where the statement has an ORDER BY.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::binder::{BindContext, BoundExpr, OutputColumn, bind};
use crate::catalog::functions::EvalContext;
use crate::catalog::{Catalog, Collation, ColumnSchema, RelationEntry, RelationId, ReplicaIdentity, TableSchema};
use crate::executor::plan;
use crate::executor::point::PointRow;
use crate::executor::{Builds, Limits, Run, RunContext, State, execute};
use crate::join_cache::JoinCache;
use crate::planner::Plan;
use crate::planner::node::{PlanNode, SideKind};
use crate::planner::upkeep::Upkeep;
use crate::snapshot::Snapshot;
use crate::statement;
use crate::table::{Chunk, Generation, RowAt, TableDelta, TableVersion};
use crate::types::access::value_at;
use crate::types::build::ColumnBuilder;
use crate::types::{FormatSettings, Lsn, PgType, Value, text};

const ANSWERS: &str = include_str!("answers.txt");

/// Rows per chunk: several chunks even of small tables.
const CHUNK: usize = 25;

fn snapshot() -> Snapshot {
    let mut schemas: Vec<TableSchema> = Vec::new();
    for line in ANSWERS.lines().filter_map(|line| line.strip_prefix("table|")) {
        let fields: Vec<&str> = line.split('|').collect();
        let [table, name, attnum, typname, typmod, collated, not_null, key] = fields[..] else { panic!("{line}") };
        if schemas.last().is_none_or(|last| &*last.name != table) {
            schemas.push(TableSchema {
                id: RelationId(16_384 + schemas.len() as u32),
                schema: "public".into(),
                name: table.into(),
                columns: Vec::new(),
                primary_key: Vec::new(),
                identity: ReplicaIdentity::Nothing,
            });
        }
        let schema = schemas.last_mut().expect("just pushed");
        let pg_type = PgType::ALL.into_iter().find(|known| known.typname() == typname).expect("a known type");
        if key != "0" {
            schema.primary_key.push(schema.columns.len());
        }
        schema.columns.push(ColumnSchema {
            name: name.into(),
            attnum: attnum.parse().expect("a number"),
            type_oid: pg_type.oid(),
            typmod: typmod.parse().expect("a number"),
            pg_type: Some(pg_type),
            not_null: not_null == "t",
            collation: if collated == "0" { Collation::None } else { Collation::C },
        });
    }
    let schemas: Vec<Arc<TableSchema>> = schemas.into_iter().map(Arc::new).collect();
    let tables = schemas.iter().map(|schema| (schema.id, Arc::new(table(schema, &rows_of(schema))))).collect();
    let entries = schemas.iter().map(|schema| (schema.name.clone(), RelationEntry::Table(schema.clone()))).collect();
    let catalog = Catalog {
        schemas: HashMap::from([("public".into(), entries), ("pg_catalog".into(), HashMap::new())]),
        tables: schemas.into_iter().map(|schema| (schema.id, schema)).collect(),
        default_collation: Some(Collation::C),
        ..Catalog::default()
    };
    Snapshot { catalog: Arc::new(catalog), tables, ..Snapshot::default() }
}

fn rows_of(schema: &TableSchema) -> Vec<Vec<&'static str>> {
    let prefix = format!("row|{}|", schema.name);
    let rows = ANSWERS.lines().filter_map(|line| line.strip_prefix(prefix.as_str()));
    rows.map(|row| row.split('\t').collect()).collect()
}

fn table(schema: &Arc<TableSchema>, rows: &[Vec<&str>]) -> TableVersion {
    let chunk = |rows: &[Vec<&str>]| {
        let columns = schema.columns.iter().enumerate().map(|(at, column)| {
            let mut builder = ColumnBuilder::new(column.pg_type.expect("known"), column.typmod);
            for row in rows {
                match row[at] {
                    "\\N" => builder.append_null(),
                    cell => {
                        builder.append_text(cell.as_bytes(), &FormatSettings::default()).expect("PostgreSQL's text")
                    }
                }
            }
            builder.finish()
        });
        Arc::new(Chunk::new(schema, columns.collect(), rows.len()))
    };
    TableVersion::from_chunks(schema.clone(), rows.chunks(CHUNK).map(chunk), Generation::default())
}

fn planned(sql: &str, snapshot: &Snapshot) -> Result<Plan, String> {
    let statements = statement::parse(sql).map_err(|reason| reason.to_string())?;
    let search_path = ["pg_catalog".into(), "public".into()];
    let settings = FormatSettings::default();
    let context = BindContext { search_path: &search_path, settings: &settings, parameter_types: &[] };
    let query = bind(&statements[0], &snapshot.catalog, &context).map_err(|reason| reason.to_string())?;
    plan(query).map_err(|reason| reason.to_string())
}

/// The rows as psql prints them, or why there are none.
fn answer(sql: &str, snapshot: &Snapshot, join_cache: &JoinCache) -> Result<Vec<String>, String> {
    run(&planned(sql, snapshot)?, &[], snapshot, join_cache)
}

fn run(plan: &Plan, parameters: &[Value], snapshot: &Snapshot, join_cache: &JoinCache) -> Result<Vec<String>, String> {
    let settings = FormatSettings::default();
    let context = RunContext {
        snapshot,
        parameters,
        eval: EvalContext { settings: &settings, transaction_time: None, orders: None },
        limits: &Limits::default(),
        join_cache,
        cancelled: &Arc::new(AtomicBool::new(false)),
        changed: None,
        builds: None,
        last: None,
    };
    let mut lines = Vec::new();
    for batch in execute(plan, &context).map_err(|error| error.to_string())? {
        for row in 0..batch.rows {
            let mut line = Vec::new();
            for (at, (column, output)) in batch.columns.iter().zip(&plan.output).enumerate() {
                if at > 0 {
                    line.push(b'|');
                }
                let value = value_at(column.as_ref(), output.expr_type.pg_type, row);
                if value.is_null() {
                    line.extend_from_slice(b"\\N");
                } else {
                    text::write(&value, output.expr_type.pg_type, &settings, &mut line);
                }
            }
            lines.push(String::from_utf8(line).expect("text"));
        }
    }
    Ok(lines)
}

/// What is found in an execution of the statement, before anything of it has run.
fn within<T>(sql: &str, snapshot: &Snapshot, look: impl FnOnce(&Plan, &Run<'_>, &State) -> T) -> T {
    let (settings, limits, joins, never) =
        (FormatSettings::default(), Limits::default(), JoinCache::new(0), Arc::new(AtomicBool::new(false)));
    let context = RunContext {
        snapshot,
        parameters: &[],
        eval: EvalContext { settings: &settings, transaction_time: None, orders: None },
        limits: &limits,
        join_cache: &joins,
        cancelled: &never,
        changed: None,
        builds: None,
        last: None,
    };
    let plan = planned(sql, snapshot).expect("known");
    let state = State::new(&plan, &context);
    look(&plan, &Run::new(&plan, &context, &[], &state), &state)
}

/// Of a statement and its parameters, whether it reads a point, and if so whether that is what the executor gives.
fn point(sql: &str, parameters: &[Value], snapshot: &Snapshot) -> Option<bool> {
    let plan = planned(sql, snapshot).expect("known");
    let rows = run(&plan, parameters, snapshot, &JoinCache::new(0)).expect("runs");
    let found = PointRow::of(&plan, snapshot, parameters)?;
    let cell = |chunk: &Chunk, row, column: usize, output: &OutputColumn| {
        let value = value_at(chunk.columns[column].as_ref(), output.expr_type.pg_type, row);
        let mut cell = Vec::new();
        match value.is_null() {
            true => cell.extend_from_slice(b"\\N"),
            false => text::write(&value, output.expr_type.pg_type, &FormatSettings::default(), &mut cell),
        }
        String::from_utf8(cell).expect("text")
    };
    let line = found.row.map(|(chunk, row)| {
        let cells = found.columns.iter().zip(&plan.output).map(|(column, output)| cell(chunk, row, *column, output));
        cells.collect::<Vec<_>>().join("|")
    });
    Some(rows == line.into_iter().collect::<Vec<_>>())
}

#[test]
fn a_row_found_by_its_key_is_the_executors_row() {
    let snapshot = snapshot();
    let (int, big) = (|value| [Value::Int4(value)], |value| [Value::Int4(17), Value::Int8(value)]);
    let points: [(&str, &[Value]); 14] = [
        ("SELECT * FROM emp WHERE id = 17", &[]),
        ("SELECT note, id, note FROM emp WHERE 17 = id", &[]),
        ("SELECT id FROM emp WHERE id = 100000", &[]),
        ("SELECT id FROM emp WHERE id = 10000000000", &[]),
        ("SELECT name FROM emp WHERE id = $1", &int(3)),
        ("SELECT name FROM emp WHERE id = $1", &[Value::Null]),
        ("SELECT name FROM emp e WHERE e.id = 40 LIMIT 1", &[]),
        ("SELECT name FROM emp WHERE id = 40 LIMIT 0", &[]),
        ("SELECT name FROM emp WHERE id = 40 LIMIT ALL", &[]),
        ("SELECT name FROM emp WHERE id = $1 LIMIT $2", &big(2)),
        ("SELECT name FROM emp WHERE id = $1 LIMIT $2", &big(0)),
        ("SELECT name, id FROM emp WHERE id = $1 ORDER BY name DESC, id LIMIT 2", &int(5)),
        ("SELECT s.title FROM (SELECT title, id AS n FROM dept) s WHERE s.n = 2", &[]),
        ("WITH d AS (SELECT * FROM dept) SELECT title FROM d WHERE id = 1", &[]),
    ];
    for (sql, parameters) in points {
        assert_eq!(point(sql, parameters, &snapshot), Some(true), "{sql} {parameters:?}");
    }
    let others: [(&str, &[Value]); 9] = [
        ("SELECT id FROM emp WHERE id = 17 AND salary > 100000", &[]),
        ("SELECT id + 1 FROM emp WHERE id = 17", &[]),
        ("SELECT id FROM emp WHERE id = 17 OFFSET 1", &[]),
        ("SELECT id FROM emp WHERE id = 17 AND id = 17", &[]),
        ("SELECT id FROM emp WHERE id IN (17, 18)", &[]),
        ("SELECT id FROM emp WHERE dept = 3", &[]),
        ("SELECT id FROM num WHERE id = 3", &[]),
        ("SELECT count(*) FROM emp WHERE id = 17", &[]),
        ("SELECT DISTINCT name FROM emp WHERE id = 17", &[]),
    ];
    for (sql, parameters) in others {
        assert_eq!(point(sql, parameters, &snapshot), None, "{sql}");
    }
    let fresh = self::snapshot();
    let plan = planned("SELECT * FROM emp WHERE id = 17", &fresh).expect("known");
    assert!(
        PointRow::of(&plan, &fresh, &[]).is_none(),
        "whether the key ascends is found out by the first who needs it"
    );
}

/// The tables are large enough for that here (`scan::INDEX_ROWS_MIN`).
#[test]
fn a_table_is_read_by_the_keys_of_what_it_is_joined_with() {
    let snapshot = snapshot();
    fn below(node: &PlanNode) -> &PlanNode {
        match node {
            PlanNode::Project { input, .. } | PlanNode::Sort { input, .. } => below(input),
            other => other,
        }
    }
    let read = |sql: &str| -> usize {
        within(sql, &snapshot, |plan, run, state| match below(&plan.root) {
            PlanNode::Join(join) => run.read_first(join).expect("read").iter().flatten().map(|batch| batch.rows).sum(),
            PlanNode::SideJoin(join) if join.kind == SideKind::Semi => {
                let keys: Vec<_> = join.equalities.iter().map(|equality| equality.key(1)).collect();
                let (base, width) = (join.left.width(), join.left.width() + join.right.width());
                let right = run.build_side(&join.right, &keys, base, width).expect("read");
                let _wanted = run.left_by_keys(join, &right).expect("read").expect("the right side is small");
                run.collect(&join.left).expect("read").iter().map(|batch| batch.rows).sum()
            }
            PlanNode::SideJoin(join) => {
                let left = run.left_first(join).expect("read").expect("the left side is small");
                assert_eq!(state.wanted.borrow().len(), 1, "{sql}");
                left.batches.iter().map(|batch| batch.rows).sum()
            }
            other => panic!("{sql}: {other:?}"),
        })
    };
    let rows = |sql: &str| answer(sql, &snapshot, &JoinCache::new(0)).expect("runs").len();
    // The one of the first, and those that it leads to.
    let theirs = rows("SELECT id FROM emp WHERE dept = 3");
    assert!(theirs > 0 && theirs < rows("SELECT id FROM emp") / 2);
    assert_eq!(read("SELECT d.title, e.name FROM dept d JOIN emp e ON e.dept = d.id WHERE d.id + 0 = 3"), 1 + theirs);
    assert_eq!(read("SELECT d.title, (SELECT count(*) FROM emp e WHERE e.dept = d.id) FROM dept d WHERE d.id = 3"), 1);
    let of_join = "(SELECT count(*) FROM emp e WHERE e.dept = d.id) FROM dept d JOIN emp f ON f.dept = d.id";
    assert_eq!(read(&format!("SELECT f.name, {of_join} WHERE d.id + 0 = 3")), theirs, "as few as the join gives");
    assert_eq!(read("SELECT name FROM emp WHERE dept IN (SELECT id FROM dept WHERE id + 0 = 3)"), theirs);
    assert_eq!(read("SELECT e.name, f.id FROM emp e JOIN emp f ON f.dept = e.dept"), 0, "all of them lead to all");
    let reads_by_keys = |condition: &str| {
        within(&format!("SELECT name FROM emp WHERE {condition}"), &snapshot, |plan, run, _| match below(&plan.root) {
            PlanNode::Scan(scan) => run.reads_by_keys(plan, scan),
            other => panic!("{other:?}"),
        })
    };
    assert!(reads_by_keys("(3 IS NULL OR dept = 3)"), "a condition that is not open");
    assert!(reads_by_keys("(NULL::bool OR dept IN (3, 4))"));
    assert!(!reads_by_keys("(NULL::int IS NULL OR dept = 3)"), "an open one");
    assert!(!reads_by_keys("(salary IS NULL OR dept = 3)"));
    let lateral = "SELECT d.id, x.id FROM dept d CROSS JOIN LATERAL (SELECT id FROM emp WHERE dept = d.id ORDER BY salary DESC LIMIT 3) x";
    assert_eq!(read(&format!("{lateral} WHERE d.id BETWEEN 3 AND 3")), 1 + 3, "numbering the others raises nothing");
    let both = "SELECT d.id, (SELECT count(*) FROM emp e WHERE e.dept = d.id), (SELECT sum(salary) FROM emp e WHERE e.dept = d.id) FROM dept d";
    assert_eq!(read(&format!("{both} WHERE d.id = 3")), 1, "a row meets one group");
    let joined = |condition: &str| {
        read(&format!(
            "SELECT d.title, e.name FROM dept d JOIN emp e ON e.dept = d.id AND {condition} WHERE d.id + 0 = 3"
        ))
    };
    // No row that is there raises an error, whatever the types may hold.
    for condition in [
        "e.salary * 2 > 100",
        "(e.id + 1) * e.dept < 1000000",
        "e.id / 2 >= 0 AND e.id % -7 < 7",
        "round(e.salary / 3, 2)::int > 10",
        "e.hired + 30 > date '1990-01-01'",
        "e.hired - interval '1 year' < timestamp '2100-01-01'",
        "date_trunc('month', e.hired::timestamp)::date >= date '1990-01-01'",
        "extract(year FROM e.hired) > 1990",
        "coalesce(e.dept, 0) + 1 > 0",
    ] {
        let passing = rows(&format!("SELECT id FROM emp e WHERE dept = 3 AND {condition}"));
        assert!(passing > 0, "{condition}");
        assert_eq!(joined(condition), 1 + passing, "{condition}");
    }
    // Some other row's does, or may.
    for condition in [
        "100 / (e.id - 7) < 1000",
        "e.id + 2147483600 > 0",
        "e.id * 50000000 >= 0",
        "e.score + 1 > 0",
        "e.hired + interval '293000 years' > timestamp '2000-01-01'",
        "e.name::int > 0",
        "extract(year FROM e.hired) + e.score > 0",
    ] {
        assert_eq!(joined(condition), 0, "{condition}");
    }
    let half = "SELECT name FROM emp e WHERE dept IN (SELECT id FROM dept WHERE id + 0 = 3)
        AND id < (SELECT 0.5 * sum(f.salary) FROM emp f WHERE f.dept = e.dept AND f.hired < date '2020-01-01' + interval '1 year')";
    assert_eq!(read(half), rows(&format!("SELECT * FROM ({half}) h")), "what is asked for each row raises nothing");
    // The condition makes the subquery's outer join an inner one; what a row that nobody has would raise is not computed still.
    let per_row = "SELECT e.name FROM dept d JOIN emp e ON e.dept = d.id
        WHERE d.id + 0 = 3 AND e.salary >= (SELECT max(f.salary / f.id) FROM emp f, dept x WHERE f.id = e.id)";
    assert_eq!(read(per_row), 1 + 2 * theirs);
    let derived = "SELECT e.name FROM dept d JOIN emp e ON e.dept = d.id
        JOIN (SELECT f.id, max(f.salary / f.id) AS most FROM emp f, dept x GROUP BY f.id) f ON f.id = e.id AND e.salary >= f.most WHERE d.id + 0 = 3";
    assert_eq!(read(derived), 1 + theirs, "PostgreSQL computes this one for all rows");
    // It is computed for all of emp, whatever dept leads to.
    let lateral = "SELECT e.id, s.most FROM emp e LEFT JOIN LATERAL (
            SELECT f.id, max(f.salary / f.id) AS most FROM emp f, dept y WHERE f.id = e.id GROUP BY f.id) s ON true
        JOIN (SELECT id FROM dept WHERE id + 0 = 3) d ON d.id = s.id WHERE s.most > 0";
    within(lateral, &snapshot, |plan, _, _| match below(&plan.root) {
        PlanNode::Join(join) => assert!(join.inputs.len() < 3 || !join.per_row.contains(&true), "{join:?}"),
        other => panic!("{other:?}"),
    });
}

/// A table that is not found by keys is read through either way.
#[test]
fn what_the_join_cache_keeps_is_built_as_a_whole() {
    let snapshot = snapshot();
    let wanted = |sql: &str| {
        within(sql, &snapshot, |plan, run, state| {
            let PlanNode::Project { input, .. } = &plan.root else { panic!("{plan:?}") };
            let PlanNode::SideJoin(join) = &**input else { panic!("{input:?}") };
            let _left = run.left_first(join).expect("read").expect("the left side is small");
            state.wanted.borrow().len()
        })
    };
    // Too many of the departments to be looked up.
    let left = "SELECT d.id, e.name FROM (SELECT * FROM emp WHERE id + 0 < 15) d LEFT JOIN";
    assert_eq!(wanted(&format!("{left} emp e ON e.dept = d.dept")), 0);
    let grouped = "(SELECT dept, max(name) AS name FROM emp GROUP BY dept)";
    assert_eq!(wanted(&format!("{left} {grouped} e ON e.dept = d.dept")), 1);
}

#[test]
fn a_join_is_led_by_the_input_that_is_ordered() {
    let snapshot = snapshot();
    let first = |sql: &str| {
        within(sql, &snapshot, |plan, run, state| {
            fn sort(node: &PlanNode) -> (&PlanNode, &crate::binder::SortKey) {
                match node {
                    PlanNode::Sort { input, keys, .. } => (input, &keys[0]),
                    PlanNode::Project { input, .. } => sort(input),
                    other => panic!("{other:?}"),
                }
            }
            let (mut node, key) = sort(&plan.root);
            let (scan, bound) = run.bound(node, key).expect("a column of a table");
            state.bounds.borrow_mut().insert(scan, bound);
            while let PlanNode::Project { input, .. } = node {
                node = input;
            }
            let PlanNode::Join(join) = node else { panic!("{node:?}") };
            let order = run.join_order(join, &vec![None; join.inputs.len()]).expect("ordered");
            let input = &join.inputs[order[0]];
            let PlanNode::Scan(scan) = input else { panic!("{input:?}") };
            !scan.filters.is_empty()
        })
    };
    // The other one is larger, which is read first otherwise.
    let of = "SELECT e.id, f.name FROM emp e JOIN emp f ON f.id = e.id WHERE e.salary > 0";
    assert!(first(&format!("{of} ORDER BY e.hired LIMIT 3")));
    assert!(!first(&format!("{of} ORDER BY f.hired LIMIT 3")));
}

#[test]
fn a_semi_join_gives_as_few_rows_as_the_other_side_has_keys() {
    let snapshot = snapshot();
    let rows = answer("SELECT id FROM emp", &snapshot, &JoinCache::new(0)).expect("runs").len();
    let estimate = |sql: &str| within(sql, &snapshot, |plan, run, _| run.estimate_closely(&plan.root));
    assert_eq!(estimate("SELECT id FROM emp WHERE id IN (SELECT id FROM dept WHERE id + 0 = 3)"), 1);
    assert_eq!(estimate("SELECT id FROM emp WHERE id IN (SELECT id FROM emp)"), rows.div_ceil(2), "no more is known");
}

/// Nothing is kept for other statements here: what is the same was built once.
#[test]
fn threads_of_a_statement_share_what_they_build() {
    let sql = "SELECT e.name, d.title FROM emp e LEFT JOIN dept d ON d.id = e.dept";
    within(sql, &snapshot(), |plan, run, _| {
        let PlanNode::Project { input, .. } = &plan.root else { panic!("{plan:?}") };
        let PlanNode::SideJoin(join) = &**input else { panic!("{input:?}") };
        let keys: Vec<_> = join.equalities.iter().map(|equality| equality.key(1)).collect();
        let (base, width) = (join.left.width(), join.left.width() + join.right.width());
        let build = |run: &Run<'_>| run.build_side(&join.right, &keys, base, width).expect("built");
        assert!(!Arc::ptr_eq(&build(run), &build(run)));
        let builds = Builds::default();
        let [one, other] = [(); 2].map(|()| Run { builds: Some(&builds), ..*run });
        assert!(Arc::ptr_eq(&build(&one), &build(&other)));
    });
}

#[test]
fn groups_by_padded_text_are_kept_where_the_padding_is_the_tables() {
    let snapshot = snapshot();
    let is_kept = |sql: &str| Upkeep::of(&planned(sql, &snapshot).expect("known"), &|_| true).is_some();
    assert!(is_kept("SELECT code, count(*) FROM dept GROUP BY code"));
    assert!(is_kept("SELECT c, sum(n) FROM (SELECT code AS c, budget::int4 AS n FROM dept) d GROUP BY c"));
    assert!(!is_kept("SELECT title::char(5), count(*) FROM dept GROUP BY 1"));
}

#[test]
fn what_nobody_sorts_by_is_computed_for_the_rows_that_are_left() {
    let snapshot = snapshot();
    let above = |sql: &str| -> Vec<bool> {
        let plan = planned(sql, &snapshot).expect("known");
        let PlanNode::Project { expressions, .. } = &plan.root else { return Vec::new() };
        expressions.iter().map(|expr| !matches!(expr, BoundExpr::Column { .. })).collect()
    };
    let sql = "SELECT id, md5(name), name || '!', salary / 2, length(note) FROM emp ORDER BY id LIMIT 3";
    assert_eq!(above(sql), [false, true, true, false, true], "a division may raise an error for any row");
    assert_eq!(above("SELECT md5(name) AS m, upper(name) FROM emp ORDER BY m LIMIT 3"), [false, true]);
    assert_eq!(above("SELECT md5(name) FROM emp ORDER BY id"), [false], "all rows are left");
    let rows = |sql: &str| answer(sql, &snapshot, &JoinCache::new(0)).expect("runs");
    let all = rows("SELECT id, md5(name), name || '!', salary / 2, length(note) FROM emp ORDER BY id");
    assert_eq!(rows(sql), all[..3]);
    assert_eq!(rows(&sql.replace("LIMIT 3", "LIMIT 2 OFFSET 5")), all[5..7]);
}

/// Pairs of rows that joins looked at.
fn pairs_looked_at(sql: &str, snapshot: &Snapshot) -> usize {
    within(sql, snapshot, |plan, run, state| {
        run.collect(&plan.root).expect("runs");
        state.join_rows.get()
    })
}

#[test]
fn joins_by_ranges_and_questions_whether_a_row_is_there_look_at_few_pairs() {
    let snapshot = snapshot();
    let ids = answer("SELECT id FROM emp", &snapshot, &JoinCache::new(0)).expect("runs").len();
    let pairs = |sql: &str| pairs_looked_at(sql, &snapshot);
    assert_eq!(pairs("SELECT a.id FROM emp a JOIN emp b ON a.id + b.id > 10"), ids * ids, "no range: each with each");
    let band = pairs("SELECT a.id, b.id FROM emp a JOIN emp b ON b.id BETWEEN a.id AND a.id + 2");
    assert_eq!(band, 3 * ids - 3, "no row is beyond the last");
    // Nobody is behind the last; for all others the first that is looked at will do.
    assert_eq!(pairs("SELECT id FROM emp a WHERE NOT EXISTS (SELECT FROM emp b WHERE b.id > a.id)"), ids - 1);
    let of_equals =
        pairs("SELECT id FROM emp a WHERE EXISTS (SELECT FROM emp b WHERE b.active = a.active AND b.id <> 3)");
    assert!(of_equals < 2 * ids, "{of_equals}");
    let each = pairs(
        "SELECT id FROM emp a WHERE EXISTS (SELECT FROM emp b WHERE b.id <> a.id AND 1 / (a.id - b.id + 100) < 9)",
    );
    assert_eq!(each, ids * ids, "a condition may raise an error: it is asked of all");
}

#[test]
fn rows_of_one_value_are_found_by_an_index_where_values_are_many() {
    let snapshot = snapshot();
    let emp = snapshot.tables.values().find(|table| &*table.schema.name == "emp").expect("there");
    let to_index = |column: usize, key: &Value| emp.rows_to_index(&[column], std::slice::from_ref(key));
    let (name, note) = (Value::Text("zz_top0".into()), Value::Text("east".into()));
    // Chunks of few rows have none.
    let before = to_index(7, &note);
    assert!(to_index(1, &name) == before && before > emp.rows / 2, "{before}");
    for sql in ["SELECT id FROM emp WHERE name = 'zz_top0'", "SELECT id FROM emp WHERE 'zz_top0' = name AND id > 0"] {
        assert_eq!(answer(sql, &snapshot, &JoinCache::new(0)).expect("runs"), ["21"], "{sql}");
    }
    assert_eq!((to_index(1, &name), to_index(7, &note)), (0, before), "the other column's was not made");
}

/// Asks every statement; what is answered otherwise than by PostgreSQL.
fn wrong_answers(mut answer: impl FnMut(&str) -> Result<Vec<String>, String>) -> String {
    let mut wrong = Vec::new();
    let mut lines = ANSWERS.lines().skip_while(|line| !line.starts_with("> ")).peekable();
    while let Some(sql) = lines.next().and_then(|line| line.strip_prefix("> ")) {
        let mut expected: Result<Vec<String>, String> = Ok(Vec::new());
        while let Some(line) = lines.next_if(|line| !line.starts_with("> ")) {
            match (line.strip_prefix("< "), &mut expected) {
                (Some(row), Ok(rows)) => rows.push(row.to_owned()),
                _ => expected = Err(line.to_owned()),
            }
        }
        let mut found = answer(sql);
        if !sql.contains("ORDER BY") {
            found.iter_mut().chain(&mut expected).for_each(|rows| rows.sort());
        }
        let is_right = match (&found, &expected) {
            (Ok(found), Ok(expected)) => found == expected,
            (Err(_), Err(_)) => true,
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{sql}\n  found    {found:?}\n  expected {expected:?}"));
        }
    }
    wrong.join("\n")
}

#[test]
fn statements_are_answered_as_by_postgresql() {
    let snapshot = snapshot();
    let join_cache = JoinCache::new(1 << 20);
    let wrong = wrong_answers(|sql| answer(sql, &snapshot, &join_cache));
    assert!(wrong.is_empty(), "{wrong}");
}

/// The tables as they have grown, a third of their rows at a time, to what they are.
fn grown() -> Vec<Snapshot> {
    let whole = snapshot();
    let mut tables: Vec<HashMap<RelationId, Arc<TableVersion>>> = vec![HashMap::new(); 3];
    for schema in whole.catalog.tables.values() {
        let rows = rows_of(schema);
        let mut parts = rows.chunks(rows.len().div_ceil(3).max(1)).map(|rows| table(schema, rows));
        let mut version = Arc::new(parts.next().unwrap_or_else(|| table(schema, &[])));
        for (step, tables) in tables.iter_mut().enumerate() {
            if step > 0 {
                let mut delta = TableDelta::new(Arc::clone(&version));
                let added = parts.next();
                added.iter().flat_map(|part| part.chunks.iter()).for_each(|of| delta.insert(Arc::clone(&of.chunk)));
                version = Arc::new(delta.apply(Generation(Lsn(step as u64))));
            }
            tables.insert(schema.id, Arc::clone(&version));
        }
    }
    tables.into_iter().map(|tables| whole.with_tables(tables)).collect()
}

#[test]
fn what_was_built_of_fewer_rows_is_extended() {
    let steps = grown();
    let join_cache = JoinCache::new(1 << 20);
    let mut differences = Vec::new();
    let wrong = wrong_answers(|sql| {
        let mut last = Err("no step".to_owned());
        for (step, snapshot) in steps.iter().enumerate() {
            let [mut found, mut fresh] = [&join_cache, &JoinCache::new(0)].map(|cache| answer(sql, snapshot, cache));
            last = found.clone();
            if !sql.contains("ORDER BY") {
                [&mut found, &mut fresh].into_iter().flatten().for_each(|rows| rows.sort());
            }
            if found != fresh {
                differences.push(format!("{sql}, step {step}:\n{found:?}\n{fresh:?}"));
            }
        }
        last
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(wrong.is_empty(), "{wrong}");
    assert!(join_cache.extended() > 40, "{}", join_cache.extended());
}

#[test]
fn what_was_built_of_rows_that_have_gone_is_built_anew() {
    let snapshot = &grown()[0];
    let join_cache = JoinCache::new(1 << 20);
    let sql = "SELECT e.name, d.title FROM emp e LEFT JOIN dept d ON d.id = e.dept ORDER BY 1, 2";
    let dept = snapshot.catalog.tables.values().find(|schema| &*schema.name == "dept").expect("there").id;
    let before = answer(sql, snapshot, &join_cache).expect("runs");
    let mut delta = TableDelta::new(Arc::clone(&snapshot.tables[&dept]));
    delta.delete(RowAt { chunk: 0, row: 0 });
    let mut tables = snapshot.tables.clone();
    tables.insert(dept, Arc::new(delta.apply(Generation(Lsn(9)))));
    let after = snapshot.with_tables(tables);
    let found = answer(sql, &after, &join_cache).expect("runs");
    assert_eq!(found, answer(sql, &after, &JoinCache::new(0)).expect("runs"));
    assert_ne!(found, before);
    assert_eq!(join_cache.extended(), 0);
}
