//! Statements that tools send on every new connection, answered from what is known of the session for certain.
//!
//! `SHOW` of settings that the session's state holds, and `version()`: their values cannot differ upstream as long as the
//! state is certain, and they read nothing. `current_schema()` reads the catalog, so it needs a moment like any other read.
//! Everything else of a preamble is the engine's or upstream's.

use freshet_engine::catalog::Catalog;

use crate::session::answer::{Account, Form, Reply, Unit};
use crate::session::control::{trimmed, words};
use crate::session::settings::SessionSettings;
use crate::session::state::SessionState;
use crate::statistics::Answered;
use crate::wire::extended::{Bind, are_formats, format_at, write_parameter_description};
use crate::wire::query::{
    Field, TransactionStatus, write_command_complete, write_data_row, write_row_description, write_value,
};

/// A type by its OID and length (PostgreSQL: pg_type.dat).
type ColumnType = (u32, i16);
const TEXT: ColumnType = (25, -1);
const NAME: ColumnType = (19, 64);

/// Without parameters, neither given nor declared, for one column.
fn is_plain(unit: &Unit<'_>) -> bool {
    let is_plain_bind = |bind: &Bind<'_>| {
        bind.parameter_count == 0 && are_formats(bind.parameter_formats, 0) && are_formats(bind.result_formats, 1)
    };
    unit.parameter_types.is_empty() && unit.bind.as_ref().is_none_or(is_plain_bind)
}

/// The reply to a statement that the session's state answers. None: it is none of these, or not certain.
pub(super) fn answer(unit: &Unit<'_>, state: &SessionState) -> Option<Reply> {
    let settings = state.settings.as_ref()?;
    // A value is text; in binary it is the same bytes under UTF8, which `format` being known implies.
    settings.format.as_ref().ok()?;
    if !is_plain(unit) {
        return None;
    }
    let format = unit.bind.map_or(0, |bind| format_at(bind.result_formats, 0));
    if let Some(is_qualified) = asks_for_version(unit.sql) {
        let (version, told) = state.version.as_ref()?;
        let is_pg_catalogs =
            is_qualified || settings.values.search_path.first().is_some_and(|first| &**first == "pg_catalog");
        let may = is_pg_catalogs && settings.role() == &**told;
        return may.then(|| reply(unit, ("version", TEXT), version, format, "SELECT 1"));
    }
    let name = shown(unit.sql)?;
    let value = value(&name, settings, state)?;
    Some(reply(unit, (&name, TEXT), value, format, "SHOW"))
}

/// The reply to a statement that asks for the first schema in the search path, where the path that the settings hold is the
/// one in force. None: it is none of these, or not certain.
pub(super) fn answer_schema(unit: &Unit<'_>, settings: &SessionSettings, catalog: &Catalog) -> Option<Reply> {
    // As a keyword it is not a call of a function that some may not execute.
    let is_call = trimmed(unit.sql).ends_with(b")");
    if !asks_for_schema(unit.sql) || is_call && catalog.restricted.names.contains("current_schema") {
        return None;
    }
    let (first, rest) = settings.values.search_path.split_first()?;
    // The path as asked for says nothing of pg_catalog, so it is first and does not count (PostgreSQL: namespace.c,
    // current_schema).
    let is_implied = &**first == "pg_catalog" && !settings.value("search_path")?.to_ascii_lowercase().contains("pg_");
    if !is_implied {
        return None;
    }
    let schema = rest.first()?;
    if unit.prepared.is_some() || !is_plain(unit) {
        return None;
    }
    let format = unit.bind.map_or(0, |bind| format_at(bind.result_formats, 0));
    Some(reply(unit, ("current_schema", NAME), schema, format, "SELECT 1"))
}

/// `SELECT current_schema()`, which is pg_catalog's function where that schema is first in the path.
pub(super) fn asks_for_schema(sql: &[u8]) -> bool {
    let known: [&[u8]; 3] =
        [b"select current_schema()", b"select current_schema", b"select pg_catalog.current_schema()"];
    known.iter().any(|known| trimmed(sql).eq_ignore_ascii_case(known))
}

/// `SELECT version()`; true where the function is named with its schema.
fn asks_for_version(sql: &[u8]) -> Option<bool> {
    let sql = trimmed(sql);
    if sql.eq_ignore_ascii_case(b"select version()") {
        Some(false)
    } else if sql.eq_ignore_ascii_case(b"select pg_catalog.version()") {
        Some(true)
    } else {
        None
    }
}

/// `SELECT 1`, by which pools and frameworks find out whether the connection still lives: an answer from here would
/// not tell them.
pub(super) fn asks_for_life(sql: &[u8]) -> bool {
    let Some((verb, rest)) = trimmed(sql).split_at_checked(6) else { return false };
    verb.eq_ignore_ascii_case(b"select") && rest.starts_with(b" ") && rest.trim_ascii_start() == b"1"
}

/// The setting that a SHOW asks for, under its canonical name (PostgreSQL: guc_tables.c, gram.y VariableShowStmt).
fn shown(sql: &[u8]) -> Option<String> {
    let start = sql.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if !sql.get(start..start + 4)?.eq_ignore_ascii_case(b"show") || sql.len() > 200 {
        return None;
    }
    match words(sql)?.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["show", "time", "zone"] => Some("TimeZone".to_string()),
        ["show", "transaction", "isolation", "level"] => Some("transaction_isolation".to_string()),
        ["show", name] => {
            CANONICAL.iter().find(|known| known.eq_ignore_ascii_case(name)).map(|known| (*known).to_string())
        }
        _ => None,
    }
}

/// What can be shown, as PostgreSQL spells it.
const CANONICAL: [&str; 13] = [
    "TimeZone",
    "DateStyle",
    "IntervalStyle",
    "extra_float_digits",
    "bytea_output",
    "client_encoding",
    "standard_conforming_strings",
    "default_transaction_isolation",
    "server_encoding",
    "search_path",
    "lc_monetary",
    "lc_numeric",
    "transaction_isolation",
];

fn value<'a>(name: &str, settings: &'a SessionSettings, state: &SessionState) -> Option<&'a str> {
    if name != "transaction_isolation" {
        return settings.value(name);
    }
    // A block has a level of its own. Outside of one, each statement has the default.
    match state.status {
        TransactionStatus::Idle => settings.value("default_transaction_isolation"),
        TransactionStatus::InTransaction if state.transaction.isolation == settings.default_isolation => {
            settings.value("default_transaction_isolation")
        }
        TransactionStatus::InTransaction | TransactionStatus::Failed => None,
    }
}

fn reply(
    unit: &Unit<'_>,
    (name, (type_oid, type_length)): (&str, ColumnType),
    value: &str,
    format: i16,
    tag: &str,
) -> Reply {
    let columns = |format: i16| {
        let field = Field { name: name.as_bytes(), table_oid: 0, attnum: 0, type_oid, type_length, typmod: -1, format };
        let mut out = Vec::new();
        write_row_description(&mut out, [field].into_iter());
        bytes::Bytes::from(out)
    };
    let mut parameters = Vec::new();
    write_parameter_description(&mut parameters, &[]);
    let mut rows = Vec::new();
    if unit.form != Form::Prepare {
        write_data_row(&mut rows, 1, |out| write_value(out, Some(value.as_bytes())));
        write_command_complete(&mut rows, tag);
    }
    Reply {
        parameters: parameters.into(),
        statement_columns: columns(0),
        columns: columns(format),
        rows: vec![rows.into()],
        account: Account { route: Answered::Local, rows: 1, is_query: tag == "SELECT 1", ..Account::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_life_are_told_from_queries() {
        for sql in ["SELECT 1", "select 1;", " SELECT  1 ; "] {
            assert!(asks_for_life(sql.as_bytes()), "{sql}");
        }
        for sql in ["SELECT 1 FROM t", "select", "select1", "SELECT 1.5", "SELECT 2", "SELECT a", ""] {
            assert!(!asks_for_life(sql.as_bytes()), "{sql}");
        }
    }
}
