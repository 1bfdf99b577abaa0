//! The statements of random scripts: what each yields follows from its text alone.

use freshet::wire::extended::format_at;
use freshet::wire::query::{Field, write_data_row, write_row_description, write_value};

/// Texts by their share in scripts.
pub const TEXTS: [&str; 32] = [
    "VALUES (1, 1)",
    "VALUES (2, 1), (2, 2)",
    "VALUES (3, 1), (3, 2), (3, 3)",
    "VALUES (4, 1), (4, 2), (4, 3), (4, 4), (4, 5)",
    "SELECT 5 AS v WHERE false",
    "SELECT $1::int4 AS p",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "VALUES (1, 1)",
    "VALUES (6, 1), (6, 2)",
    "VALUES (7, 1), (7, 2), (7, 3)",
    "BEGIN",
    "COMMIT",
    "",
    "UPDATE t SET a = a WHERE false",
    "SET work_mem = '4MB'",
    "SET TimeZone = 'UTC'",
    "SELEC",
    "SELECT nothing",
    "SELECT 1 / (v - 2) AS q FROM (VALUES (1), (2), (3)) AS t (v)",
    "DEALLOCATE ALL",
    "DEALLOCATE s1",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "SAVEPOINT a",
    "ROLLBACK TO a",
    "RELEASE a",
    "PREPARE s1 AS VALUES (8, 1)",
    "START TRANSACTION",
    "SAVEPOINT b",
    "ROLLBACK TO b",
    "VALUES (9, 1), (9, 2)",
];

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    Empty,
    /// Refused where it is parsed, with this SQLSTATE.
    Invalid(&'static str),
    Rows(Rows),
    Begin {
        tag: &'static str,
        /// REPEATABLE READ, which must come before the first snapshot.
        is_serial: bool,
    },
    Commit,
    Rollback,
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    Write,
    Set,
    Deallocate(Option<String>),
    Prepare(String, Rows),
    Discard,
}

/// A result of integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    pub columns: Vec<&'static str>,
    pub values: Vec<Vec<i32>>,
    /// A division by zero comes after the rows.
    pub fails: bool,
    /// 1: the one value is the parameter.
    pub parameters: usize,
    /// What the session's probe is told instead.
    pub text: Option<&'static str>,
}

/// An ordinary session's settings, as the probe asks for them.
const SETTINGS: &str = r#"["postgres", "postgres", "PostgreSQL 15", ["pg_catalog", "public"], false, false, "", "946684800000000", "946684800000000", "UTC", "ISO, MDY", "postgres", "UTF8", "on", "1",
    "hex", "on", "off", "Default", "on", "safe_encoding", "content", "C", "C", "C", "UTF8", "150018", "notice", "read committed", "\"$user\", public", "0", "on", "0", "0"]"#;

impl Statement {
    /// Reads one statement.
    pub fn read(text: &str) -> Self {
        let name = |name: &str| name.to_string();
        let rows = |columns: &[&'static str], values: Vec<Vec<i32>>| Rows {
            columns: columns.to_vec(),
            values,
            fails: false,
            parameters: 0,
            text: None,
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [] => Self::Empty,
            ["VALUES", ..] => Self::Rows(rows(&["column1", "column2"], tuples(text))),
            ["SELECT", "$1::int4", ..] => Self::Rows(Rows { parameters: 1, ..rows(&["p"], vec![vec![0]]) }),
            ["SELECT", "1", "/", ..] => Self::Rows(Rows { fails: true, ..rows(&["q"], vec![vec![-1]]) }),
            ["SELECT", "5", ..] => Self::Rows(rows(&["v"], Vec::new())),
            ["SELECT", probe, ..] if probe.starts_with("pg_catalog.json_build_array") => {
                Self::Rows(Rows { text: Some(SETTINGS), ..rows(&["json_build_array"], vec![vec![0]]) })
            }
            ["SELECT", time, ..] if time.starts_with("CAST(CAST(EXTRACT(epoch") => {
                Self::Rows(Rows { text: Some("946684800000001"), ..rows(&["text"], vec![vec![0]]) })
            }
            // So that a transaction has a query.
            ["SELECT", "1"] => Self::Rows(rows(&["?column?"], vec![vec![1]])),
            ["SELECT", ..] => Self::Invalid("42703"),
            // By which a block is made to fail: like any statement that fails when it is run.
            ["DO", ..] => Self::Rows(Rows { fails: true, ..rows(&[], Vec::new()) }),
            ["BEGIN", modes @ ..] => Self::Begin { tag: "BEGIN", is_serial: modes.contains(&"REPEATABLE") },
            ["START", ..] => Self::Begin { tag: "START TRANSACTION", is_serial: false },
            ["COMMIT"] => Self::Commit,
            ["ROLLBACK", "TO", to] => Self::RollbackTo(name(to)),
            ["ROLLBACK"] => Self::Rollback,
            ["SAVEPOINT", savepoint] => Self::Savepoint(name(savepoint)),
            ["RELEASE", savepoint] => Self::Release(name(savepoint)),
            ["UPDATE", ..] => Self::Write,
            // No more a query than this; what it shows nobody reads.
            ["SHOW", ..] | ["SET", ..] => Self::Set,
            ["DEALLOCATE", "ALL"] => Self::Deallocate(None),
            ["DEALLOCATE", statement] => Self::Deallocate(Some(name(statement))),
            ["PREPARE", statement, "AS", ..] => {
                Self::Prepare(name(statement), rows(&["column1", "column2"], tuples(text)))
            }
            ["DISCARD", "ALL"] => Self::Discard,
            _ => Self::Invalid("42601"),
        }
    }

    /// Done in a failed block, too.
    pub fn ends_block(&self) -> bool {
        matches!(self, Self::Commit | Self::Rollback | Self::RollbackTo(_))
    }

    /// Its analysis takes a snapshot (PostgreSQL: analyze_requires_snapshot).
    pub fn is_analysed(&self) -> bool {
        matches!(self, Self::Rows(_) | Self::Write | Self::Invalid(_))
    }

    /// Its analysis or its execution does (PostgreSQL: PlannedStmtRequiresSnapshot).
    pub fn needs_snapshot(&self) -> bool {
        self.is_analysed() || matches!(self, Self::Prepare(..) | Self::Deallocate(_) | Self::Discard)
    }

    pub fn rows(&self) -> Option<&Rows> {
        match self {
            Self::Rows(rows) => Some(rows),
            _ => None,
        }
    }

    pub fn parameters(&self) -> usize {
        self.rows().map_or(0, |rows| rows.parameters)
    }
}

impl Rows {
    /// RowDescription.
    pub fn description(&self, formats: &[i16]) -> Vec<u8> {
        let (type_oid, type_length) = if self.text.is_some() { (114, -1) } else { (23, 4) };
        let field = |(index, name): (usize, &&'static str)| Field {
            name: name.as_bytes(),
            table_oid: 0,
            attnum: 0,
            type_oid,
            type_length,
            typmod: -1,
            format: formats.get(index).copied().unwrap_or(0),
        };
        let mut out = Vec::new();
        write_row_description(&mut out, self.columns.iter().enumerate().map(field));
        out
    }

    /// One DataRow.
    pub fn write_row(&self, row: usize, parameter: i32, formats: &[i16], out: &mut Vec<u8>) {
        write_data_row(out, self.columns.len(), |out| {
            for (column, value) in self.values[row].iter().enumerate() {
                let value = if self.parameters > 0 { parameter } else { *value };
                match self.text {
                    Some(text) => write_value(out, Some(text.as_bytes())),
                    None if formats.get(column) == Some(&1) => write_value(out, Some(&value.to_be_bytes())),
                    None => write_value(out, Some(value.to_string().as_bytes())),
                }
            }
        });
    }
}

/// The statements of a query string, without those that are empty.
pub fn split(sql: &[u8]) -> Vec<&str> {
    let sql = std::str::from_utf8(sql).unwrap_or("not UTF-8");
    // Its body has semicolons.
    if sql.starts_with("DO $$") {
        return vec![sql];
    }
    sql.split(';').map(str::trim).filter(|piece| !piece.is_empty()).collect()
}

/// One format per column, if as many are given as PostgreSQL accepts (PostgreSQL: PortalSetResultFormat).
pub fn formats(raw: &[u8], columns: usize) -> Option<Vec<i16>> {
    let given = raw.len() / 2;
    (given <= 1 || given == columns).then(|| (0..columns).map(|index| format_at(raw, index)).collect())
}

/// A parameter's value.
pub fn integer(value: Option<&[u8]>, raw_formats: &[u8]) -> Result<i32, &'static str> {
    let value = value.ok_or("22004")?;
    if format_at(raw_formats, 0) == 1 {
        return value.try_into().map(i32::from_be_bytes).map_err(|_| "22P03");
    }
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or("22P02")
}

/// `(1, 2), (3, 4)` as numbers.
fn tuples(text: &str) -> Vec<Vec<i32>> {
    let tuple = |piece: &str| {
        let inside = piece.split(')').next().unwrap_or_default();
        inside.split(',').map(|number| number.trim().parse().expect("a number")).collect()
    };
    text.split('(').skip(1).map(tuple).collect()
}
