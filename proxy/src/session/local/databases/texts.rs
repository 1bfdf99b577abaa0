//! What a statement's text says about databases: whether it reads one, and which one it wants nobody to use.

pub(in crate::session::local) mod reads;

use std::borrow::Cow;

use freshet_engine::statement::lexer::{self, Token};

use crate::session::answer::{Unused, Use};

/// The database that a statement wants nobody to use.
pub(super) fn wants_unused(sql: &[u8]) -> Option<Unused> {
    // Most statements need not be taken apart to know.
    sql.windows(8).find(|word| word.eq_ignore_ascii_case(b"database"))?;
    let tokens = lexer::tokens(std::str::from_utf8(sql).ok()?).ok()?;
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is_word(word));
    let name = |at: usize| tokens.get(at).and_then(Token::name).map(Cow::into_owned);
    if !is(1, "database") {
        return None;
    }
    let (database, use_of_it) = if is(0, "drop") {
        (name(if is(2, "if") { 4 } else { 2 }), Use::Drop)
    } else if is(0, "alter") && is(3, "rename") {
        (name(2), Use::Rename)
    } else if is(0, "alter") && is(3, "set") && is(4, "tablespace") {
        (name(2), Use::Move)
    } else if is(0, "create") {
        let at = tokens.iter().position(|token| token.is_word("template"))? + 1;
        let at = at + usize::from(tokens.get(at).is_some_and(|token| token.is_symbol("=")));
        (name(at).or_else(|| tokens.get(at)?.string_value().map(Cow::into_owned)), Use::Copy)
    } else {
        return None;
    };
    Some(Unused { database: database?, use_of_it })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_want_a_database_unused_are_known() {
        for (sql, expected) in [
            ("DROP DATABASE shop", Some(("shop", Use::Drop))),
            ("/* x */ drop database if exists \"My Shop\" WITH (FORCE);", Some(("My Shop", Use::Drop))),
            ("ALTER DATABASE Shop RENAME TO store", Some(("shop", Use::Rename))),
            ("alter database shop set tablespace fast", Some(("shop", Use::Move))),
            ("ALTER DATABASE shop SET work_mem = '1MB'", None),
            ("ALTER DATABASE shop OWNER TO ann", None),
            ("CREATE DATABASE x TEMPLATE shop", Some(("shop", Use::Copy))),
            ("CREATE DATABASE x WITH OWNER ann TEMPLATE = 'shop'", Some(("shop", Use::Copy))),
            ("CREATE DATABASE x", None),
            ("DROP TABLE database", None),
            ("SELECT 1", None),
            ("DROP DATABASE", None),
        ] {
            let expected = expected.map(|(database, use_of_it)| Unused { database: database.to_string(), use_of_it });
            assert_eq!(wants_unused(sql.as_bytes()), expected, "{sql}");
        }
        assert_eq!(wants_unused(b"DROP DATABASE \xff"), None);
    }

    #[test]
    fn what_upstream_refuses_wherever_it_is_said_is_known() {
        for (use_of_it, in_its_own, in_a_block) in
            [(Use::Drop, true, true), (Use::Rename, true, false), (Use::Move, true, true), (Use::Copy, false, true)]
        {
            assert_eq!(use_of_it.is_refused(true, false), in_its_own, "{use_of_it:?}");
            assert_eq!(use_of_it.is_refused(false, true), in_a_block, "{use_of_it:?}");
            assert!(!use_of_it.is_refused(false, false), "{use_of_it:?}");
        }
    }
}
