//! Statements with the answers that PostgreSQL 15 gave (answers.txt), from text to text: parsed, bound, planned, run.
//!
//! `table|` and `row|` lines are the data; `>` is a statement, `<` a row of its answer as psql prints it unaligned,
//! `!` the error that PostgreSQL raised. Rows are compared in order where the statement has an ORDER BY.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::binder::{BindContext, bind};
use crate::catalog::functions::EvalContext;
use crate::catalog::{Catalog, Collation, ColumnSchema, RelationEntry, RelationId, ReplicaIdentity, TableSchema};
use crate::executor::plan;
use crate::executor::{Limits, RunContext, execute};
use crate::join_cache::JoinCache;
use crate::snapshot::Snapshot;
use crate::statement;
use crate::table::{Chunk, Generation, TableVersion};
use crate::types::access::value_at;
use crate::types::build::ColumnBuilder;
use crate::types::{FormatSettings, PgType, text};

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
    let tables = schemas.iter().map(|schema| (schema.id, Arc::new(table(schema)))).collect();
    let entries = schemas.iter().map(|schema| (schema.name.clone(), RelationEntry::Table(schema.clone()))).collect();
    let catalog = Catalog {
        schemas: HashMap::from([("public".into(), entries), ("pg_catalog".into(), HashMap::new())]),
        tables: schemas.into_iter().map(|schema| (schema.id, schema)).collect(),
        default_collation: Some(Collation::C),
        ..Catalog::default()
    };
    Snapshot { catalog: Arc::new(catalog), tables, ..Snapshot::default() }
}

fn table(schema: &Arc<TableSchema>) -> TableVersion {
    let prefix = format!("row|{}|", schema.name);
    let rows: Vec<Vec<&str>> = ANSWERS
        .lines()
        .filter_map(|line| line.strip_prefix(prefix.as_str()))
        .map(|row| row.split('\t').collect())
        .collect();
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

/// The rows as psql prints them, or why there are none.
fn answer(sql: &str, snapshot: &Snapshot, join_cache: &JoinCache) -> Result<Vec<String>, String> {
    let statements = statement::parse(sql).map_err(|reason| reason.to_string())?;
    let search_path = ["pg_catalog".into(), "public".into()];
    let settings = FormatSettings::default();
    let context = BindContext { search_path: &search_path, settings: &settings, parameter_types: &[] };
    let query = bind(&statements[0], &snapshot.catalog, &context).map_err(|reason| reason.to_string())?;
    let plan = plan(query).map_err(|reason| reason.to_string())?;
    let context = RunContext {
        snapshot,
        parameters: &[],
        eval: EvalContext { settings: &settings, transaction_time: None, orders: None },
        limits: &Limits::default(),
        join_cache,
        cancelled: &AtomicBool::new(false),
        changed: None,
    };
    let mut lines = Vec::new();
    for batch in execute(&plan, &context).map_err(|error| error.to_string())? {
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

#[test]
fn statements_are_answered_as_by_postgresql() {
    let snapshot = snapshot();
    let join_cache = JoinCache::new(1 << 20);
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
        let mut found = answer(sql, &snapshot, &join_cache);
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
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
