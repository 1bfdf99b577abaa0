//! What a statement's text says about databases: whether it reads one, and which one it wants nobody to use.

use std::borrow::Cow;

use freshet_engine::statement::lexer::{self, Token};

/// Whether a query may read a table of an application: what only asks whether somebody is there, or looks at the system's own
/// tables as clients do when they connect, is no reason to mirror anything.
pub(super) fn reads(sql: &[u8]) -> bool {
    let is_of_system = |name: &[u8]| {
        let starts = |with: &[u8]| name.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
        // The FROM of what is in the parentheses comes; the end of a text is no name.
        name.is_empty() || matches!(name[0], b'(' | b'\'') || starts(b"pg_") || starts(b"information_schema.")
    };
    let mut froms = sql.windows(4).enumerate().filter(|(_, word)| word.eq_ignore_ascii_case(b"from"));
    froms.any(|(at, _)| !is_of_system(sql[at + 4..].trim_ascii_start()))
}

/// The database that a statement wants nobody to use: one to be dropped, renamed, moved or copied.
pub(super) fn wants_unused(sql: &[u8]) -> Option<String> {
    // Most statements need not be taken apart to know.
    sql.windows(8).find(|word| word.eq_ignore_ascii_case(b"database"))?;
    let tokens = lexer::tokens(std::str::from_utf8(sql).ok()?).ok()?;
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_word(word));
    let name = |at: usize| tokens.get(at).and_then(Token::name).map(Cow::into_owned);
    if !is(1, "database") {
        return None;
    }
    if is(0, "drop") {
        return name(if is(2, "if") { 4 } else { 2 });
    }
    if is(0, "alter") && (is(3, "rename") || is(3, "set") && is(4, "tablespace")) {
        return name(2);
    }
    if is(0, "create") {
        let at = tokens.iter().position(|token| token.is_word("template"))? + 1;
        let at = at + usize::from(tokens.get(at).is_some_and(|token| token.is_symbol("=")));
        return name(at).or_else(|| tokens.get(at)?.string_value().map(Cow::into_owned));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_want_a_database_unused_are_known() {
        for (sql, name) in [
            ("DROP DATABASE shop", Some("shop")),
            ("/* x */ drop database if exists \"My Shop\" WITH (FORCE);", Some("My Shop")),
            ("ALTER DATABASE Shop RENAME TO store", Some("shop")),
            ("alter database shop set tablespace fast", Some("shop")),
            ("ALTER DATABASE shop SET work_mem = '1MB'", None),
            ("ALTER DATABASE shop OWNER TO ann", None),
            ("CREATE DATABASE x TEMPLATE shop", Some("shop")),
            ("CREATE DATABASE x WITH OWNER ann TEMPLATE = 'shop'", Some("shop")),
            ("CREATE DATABASE x", None),
            ("DROP TABLE database", None),
            ("SELECT 1", None),
            ("DROP DATABASE", None),
        ] {
            assert_eq!(wants_unused(sql.as_bytes()).as_deref(), name, "{sql}");
        }
        assert_eq!(wants_unused(b"DROP DATABASE \xff"), None);
    }

    #[test]
    fn questions_about_the_system_read_no_application() {
        for (sql, does) in [
            ("SELECT 1", false),
            ("SELECT * FROM t", true),
            ("select x\nfrom\n\"My Table\"", true),
            ("SELECT oid FROM pg_catalog.pg_type", false),
            ("SELECT count(*) FROM pg_stat_activity", false),
            ("SELECT table_name FROM information_schema.tables", false),
            ("SELECT * FROM (SELECT oid FROM pg_class) c", false),
            ("SELECT * FROM (SELECT id FROM orders) o", true),
            ("SELECT 'away from'", false),
            ("SELECT * FROM", false),
        ] {
            assert_eq!(reads(sql.as_bytes()), does, "{sql}");
        }
    }
}
