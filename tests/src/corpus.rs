//! The corpus of statements by chapter (`differential/corpus`), and how answers to them are compared.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use bytes::Bytes;
use freshet::audit::compare::{ComparedColumn, Freedom, Nearness, Row, compare};
use freshet_engine::types::PgType;

use crate::cluster::Cluster;
use crate::raw::{RawClient, RawReply};

/// Statements of one kind.
pub struct Chapter {
    pub name: String,
    pub statements: Vec<String>,
}

/// All of them, by name.
pub fn chapters() -> Vec<Chapter> {
    let folder = crate::folder().join("differential/corpus");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("the corpus").flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let chapter = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Chapter { name, statements: statements(&std::fs::read_to_string(path).expect("a chapter")) }
    };
    paths.iter().map(chapter).collect()
}

fn statements(text: &str) -> Vec<String> {
    let mut lists: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut statements = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("--") && !line.is_empty()) {
        if let Some((name, values)) = line.strip_prefix("let ").and_then(|list| list.split_once(" = ")) {
            lists.insert(name, values.split(";;").map(str::trim).collect());
            continue;
        }
        let template = line.strip_suffix(';').unwrap_or_else(|| panic!("no semicolon: {line}"));
        let mut expanded = vec![template.to_string()];
        for (name, values) in &lists {
            let place = format!("{{{name}}}");
            if template.contains(&place) {
                let with = |statement: &String| {
                    let of = values.iter().map(|value| statement.replace(&place, value));
                    of.collect::<Vec<_>>()
                };
                expanded = expanded.iter().flat_map(with).collect();
            }
        }
        statements.append(&mut expanded);
    }
    statements
}

/// A database with the tables of the other scripts.
pub fn setup(cluster: &Cluster) -> String {
    let database = cluster.database();
    for script in [
        include_str!("../sql/edge.setup.sql"),
        include_str!("../sql/windows.setup.sql"),
        include_str!("../sql/arrays.setup.sql"),
        include_str!("../sql/json.setup.sql"),
        include_str!("../sql/bits.setup.sql"),
        include_str!("../sql/networks.setup.sql"),
    ] {
        cluster.psql(&database, script);
    }
    database
}

/// A session in the zone that the corpus is asked in.
pub fn connect(address: SocketAddr, database: &str) -> RawClient {
    let mut client = RawClient::connect(address, "postgres", database).expect("connects");
    client.simple("SET TimeZone = 'America/New_York'").expect("answers");
    client
}

/// Likewise through freshet, whose engine is to answer.
pub fn connect_through(address: SocketAddr, database: &str) -> RawClient {
    let mut client = connect(address, database);
    client.simple("SET freshet.route = 'local'").expect("answers");
    client
}

/// Of floats in the statement's answer: it may add some up.
pub fn nearness(sql: &str) -> Nearness {
    let sql = sql.to_ascii_lowercase();
    let may_add = ["sum", "avg", "std", "var", "corr", "regr_"].iter().any(|name| sql.contains(name));
    if may_add { Nearness::Summed } else { Nearness::Exact }
}

/// What of an answer is not PostgreSQL's. Every statement of the corpus orders its rows.
pub fn differs(sql: &str, expected: &RawReply, got: &RawReply) -> Option<String> {
    if expected.envelope() != got.envelope() {
        return Some(format!("messages differ: {:?} and {:?}", expected.error(), got.error()));
    }
    let columns = columns(sql, expected);
    let freedom = Freedom { order_columns: (0..columns.len()).collect(), is_limited: false };
    let (theirs, ours) = (rows(expected), rows(got));
    let difference = compare(&columns, &freedom, &theirs, &ours, None).err()?;
    Some(format!("{difference:?}\n  expected {theirs:?}\n  got      {ours:?}"))
}

fn rows(reply: &RawReply) -> Vec<Row> {
    reply.rows().into_iter().map(|row| row.into_iter().map(|cell| cell.map(Bytes::from)).collect()).collect()
}

fn columns(sql: &str, reply: &RawReply) -> Vec<ComparedColumn> {
    let Some(body) = reply.bodies(b'T').first().copied() else { return Vec::new() };
    let fields = freshet::wire::query::row_description(body).expect("a RowDescription");
    let pg_type = |oid| PgType::from_oid(oid).unwrap_or(PgType::Text);
    let nearness = nearness(sql);
    fields.iter().map(|field| ComparedColumn { pg_type: pg_type(field.type_oid), is_binary: false, nearness }).collect()
}
