//! Tables as data: names, columns and the value of every cell by its row number, so that each engine gets the same rows.
//!
//! Loaded into PostgreSQL by COPY, into DuckDB by its appender and into freshet's engine as its first copy does it.

use std::io::{self, Write as _};
use std::sync::Arc;

use freshet_bench_duckdb::Database;
use freshet_engine::catalog::{
    Catalog, Collation, ColumnSchema, RelationEntry, RelationId, ReplicaIdentity, TableSchema,
};
use freshet_engine::snapshot::Snapshot;
use freshet_engine::table::{TableBuilder, TableVersion};
use freshet_engine::types::PgType;
use indicatif::ProgressBar;

use crate::console::progress;
use crate::wire::{Client, query_message};

pub(crate) enum Cell {
    Int(i32),
    Float(f64),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Float,
    Text,
}

/// The value of row `n`.
type Value = Box<dyn Fn(i64) -> Cell + Send + Sync>;

pub(crate) struct Column {
    pub(crate) name: &'static str,
    kind: Kind,
    value: Value,
}

/// Rows 0 to `rows - 1`.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) rows: i64,
    pub(crate) columns: Vec<Column>,
    /// Column lists, made after loading.
    pub(crate) indexes: Vec<&'static str>,
}

pub(crate) fn int(name: &'static str, value: impl Fn(i64) -> i64 + Send + Sync + 'static) -> Column {
    let value = move |n| Cell::Int(i32::try_from(value(n)).expect("a workload's integers are int4"));
    Column { name, kind: Kind::Int, value: Box::new(value) }
}

pub(crate) fn text(name: &'static str, value: impl Fn(i64) -> String + Send + Sync + 'static) -> Column {
    Column { name, kind: Kind::Text, value: Box::new(move |n| Cell::Text(value(n))) }
}

/// One of `words` by turns.
pub(crate) fn word(name: &'static str, words: &'static [&'static str]) -> Column {
    text(name, move |n| words[n as usize % words.len()].to_owned())
}

pub(crate) fn float(name: &'static str, value: impl Fn(i64) -> f64 + Send + Sync + 'static) -> Column {
    Column { name, kind: Kind::Float, value: Box::new(move |n| Cell::Float(value(n))) }
}

/// `(n % 100).(n % 10)`, the score of several workloads.
pub(crate) fn score(n: i64) -> f64 {
    (n % 100) as f64 + (n % 10) as f64 / 10.0
}

pub(crate) fn table(name: &'static str, rows: i64, columns: Vec<Column>) -> Table {
    Table { name, rows, columns, indexes: Vec::new() }
}

impl Table {
    pub(crate) fn with_index(mut self, columns: &'static str) -> Self {
        self.indexes.push(columns);
        self
    }

    fn definition(&self, names: [&str; 3]) -> String {
        let [int, float, text] = names;
        let of = |kind: Kind| match kind {
            Kind::Int => int,
            Kind::Float => float,
            Kind::Text => text,
        };
        let columns: Vec<String> = self.columns.iter().map(|c| format!("{} {}", c.name, of(c.kind))).collect();
        format!("CREATE TABLE {} ({})", self.name, columns.join(", "))
    }

    /// By COPY, then its indexes. Without a key it gets REPLICA IDENTITY FULL, so that it can be mirrored while
    /// upstream's plans stay those of a table without an index.
    pub(crate) fn load_upstream(&self, client: &mut Client) -> io::Result<()> {
        self.load_alone(client)?;
        client.query(&query_message(&format!("ALTER TABLE {} REPLICA IDENTITY FULL", self.name)))?;
        Ok(())
    }

    /// Likewise where nobody follows its changes: writes log no more than they have to.
    pub(crate) fn load_alone(&self, client: &mut Client) -> io::Result<()> {
        client.query(&query_message(&format!("DROP TABLE IF EXISTS {}", self.name)))?;
        client.query(&query_message(&self.definition(["int", "float8", "text"])))?;
        self.copy(client)?;
        for columns in &self.indexes {
            client.query(&query_message(&format!("CREATE INDEX ON {} ({columns})", self.name)))?;
        }
        client.query(&query_message(&format!("ANALYZE {}", self.name)))?;
        Ok(())
    }

    fn copy(&self, client: &mut Client) -> io::Result<()> {
        client.send(&query_message(&format!("COPY {} FROM STDIN", self.name)))?;
        client.read_frame_of(b'G')?;
        let bar = self.progress("PostgreSQL");
        let mut rows = Vec::with_capacity(1 << 17);
        for n in 0..self.rows {
            for (at, column) in self.columns.iter().enumerate() {
                if at > 0 {
                    rows.push(b'\t');
                }
                match (column.value)(n) {
                    Cell::Int(value) => write!(rows, "{value}")?,
                    Cell::Float(value) => write!(rows, "{value}")?,
                    // No value of a workload needs an escape.
                    Cell::Text(value) => rows.extend_from_slice(value.as_bytes()),
                }
            }
            rows.push(b'\n');
            if rows.len() > 1 << 16 {
                send_copy_data(client, &rows)?;
                rows.clear();
                bar.set_position(n as u64);
            }
        }
        if !rows.is_empty() {
            send_copy_data(client, &rows)?;
        }
        bar.finish_and_clear();
        client.send(&[b'c', 0, 0, 0, 4])?;
        client.read_reply().map(|_| ())
    }

    pub(crate) fn load_duckdb(&self, database: &Database) -> io::Result<()> {
        database.query(&self.definition(["INTEGER", "DOUBLE", "VARCHAR"])).map_err(io::Error::other)?;
        let bar = self.progress("DuckDB");
        self.append(database, &bar).map_err(io::Error::other)?;
        bar.finish_and_clear();
        for columns in &self.indexes {
            let name = columns.replace(", ", "_");
            let sql = format!("CREATE INDEX {}_{name} ON {} ({columns})", self.name, self.name);
            database.query(&sql).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn append(&self, database: &Database, bar: &ProgressBar) -> Result<(), freshet_bench_duckdb::Error> {
        let mut appender = database.append(self.name)?;
        for n in 0..self.rows {
            for column in &self.columns {
                match (column.value)(n) {
                    Cell::Int(value) => appender.int(value)?,
                    Cell::Float(value) => appender.double(value)?,
                    Cell::Text(value) => appender.text(&value)?,
                }
            }
            appender.end_row()?;
            if n % 65_536 == 0 {
                bar.set_position(n as u64);
            }
        }
        appender.finish()
    }

    fn progress(&self, engine: &str) -> ProgressBar {
        progress(&format!("{} into {engine}", self.name), self.rows as u64)
    }

    fn schema(&self, id: u32) -> TableSchema {
        let columns = self.columns.iter().enumerate().map(|(at, column)| {
            let (pg_type, collation) = match column.kind {
                Kind::Int => (PgType::Int4, Collation::None),
                Kind::Float => (PgType::Float8, Collation::None),
                Kind::Text => (PgType::Text, Collation::C),
            };
            ColumnSchema {
                name: column.name.into(),
                attnum: i16::try_from(at + 1).unwrap_or(i16::MAX),
                type_oid: pg_type.oid(),
                typmod: -1,
                pg_type: Some(pg_type),
                not_null: false,
                collation,
            }
        });
        TableSchema {
            id: RelationId(id),
            schema: "public".into(),
            name: self.name.into(),
            columns: columns.collect(),
            primary_key: Vec::new(),
            identity: ReplicaIdentity::Full,
        }
    }

    /// As a first copy builds it: from the binary cells of COPY.
    fn version(&self, schema: &Arc<TableSchema>) -> TableVersion {
        let bar = self.progress("freshet's engine");
        let mut builder = TableBuilder::new(Arc::clone(schema));
        let mut cells: Vec<Vec<u8>> = vec![Vec::new(); self.columns.len()];
        for n in 0..self.rows {
            for (cell, column) in cells.iter_mut().zip(&self.columns) {
                cell.clear();
                match (column.value)(n) {
                    Cell::Int(value) => cell.extend_from_slice(&value.to_be_bytes()),
                    Cell::Float(value) => cell.extend_from_slice(&value.to_be_bytes()),
                    Cell::Text(value) => cell.extend_from_slice(value.as_bytes()),
                }
            }
            let row = cells.iter().map(|cell| Some(cell.as_slice()));
            builder.append_copy_row(row).expect("a workload's cells are well-formed");
            if n % 65_536 == 0 {
                bar.set_position(n as u64);
            }
        }
        bar.finish_and_clear();
        TableVersion::of_ranges(Arc::clone(schema), [builder])
    }
}

/// The tables as freshet's mirror holds them, in a database of collation C.
pub(crate) fn snapshot(tables: &[Table]) -> Snapshot {
    let mut catalog = Catalog { version: 1, database: "bench".into(), ..Catalog::default() };
    catalog.default_collation = Some(Collation::C);
    catalog.schemas.insert("pg_catalog".into(), std::collections::HashMap::new());
    let mut versions = std::collections::HashMap::new();
    let mut names = std::collections::HashMap::new();
    for (id, table) in (16_384..).zip(tables) {
        let schema = Arc::new(table.schema(id));
        names.insert(Arc::from(table.name), RelationEntry::Table(Arc::clone(&schema)));
        catalog.tables.insert(schema.id, Arc::clone(&schema));
        versions.insert(schema.id, Arc::new(table.version(&schema)));
    }
    catalog.schemas.insert("public".into(), names);
    Snapshot { catalog: Arc::new(catalog), tables: versions, ..Snapshot::default() }
}

fn send_copy_data(client: &mut Client, rows: &[u8]) -> io::Result<()> {
    let length = u32::try_from(rows.len() + 4).map_err(io::Error::other)?;
    client.send(&[b"d".as_slice(), length.to_be_bytes().as_slice(), rows].concat())
}

pub(crate) const REGIONS: &[&str] = &["north", "south", "east", "west"];
const TIERS: &[&str] = &["basic", "premium", "enterprise"];
pub(crate) const CATEGORIES: &[&str] = &["electronics", "clothing", "food", "books", "toys"];

pub(crate) fn region() -> Column {
    word("region", REGIONS)
}

/// The star: its two dimensions and four tables of `rows` rows.
pub(crate) fn star(rows: i64) -> Vec<Table> {
    let id = || int("id", |n| n);
    vec![
        table("customers", 2_000, vec![id(), text("name", |n| format!("cust_{n}")), region(), word("tier", TIERS)]),
        table(
            "products",
            500,
            vec![
                id(),
                text("name", |n| format!("prod_{n}")),
                word("category", CATEGORIES),
                int("price", |n| 10 + 17 * n % 490),
            ],
        ),
        table(
            "orders",
            rows,
            vec![
                id(),
                int("customer_id", |n| n % 2_000),
                int("product_id", |n| n % 500),
                int("quantity", |n| 1 + 7 * n % 20),
                int("amount", |n| 10 + 13 * n % 990),
            ],
        ),
        table(
            "events",
            rows,
            vec![
                id(),
                int("user_id", |n| n % 2_000),
                int("event_type", |n| n % 5),
                int("amount", |n| 11 * n % 1_000),
                int("score", |n| 31_337 * n % 10_000),
            ],
        ),
        table(
            "metrics",
            rows,
            vec![
                id(),
                int("sensor_id", |n| n % 100),
                int("v1", |n| 7 * n % 1_000),
                int("v2", |n| 13 * n % 1_000),
                int("v3", |n| 19 * n % 1_000),
                int("v4", |n| 23 * n % 1_000),
                int("v5", |n| 29 * n % 1_000),
            ],
        ),
        table(
            "sales",
            rows,
            vec![id(), int("rep_id", |n| n % 200), int("region_id", |n| n % 4), int("amount", |n| 10 + 17 * n % 990)],
        ),
    ]
}
