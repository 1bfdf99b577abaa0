//! Cursors that belong to a driver, not to its user: psqlODBC's declare-fetch-close, which Tableau, Power BI and others
//! run every query by (`BEGIN;declare "SQL_CUR..." cursor with hold for SELECT ...;fetch 2048 in "SQL_CUR..."`).
//!
//! Nothing but the driver names such a cursor, and the driver only fetches forward from it and closes it; so its rows may
//! be kept here. Any other cursor is upstream's from its DECLARE on, where WHERE CURRENT OF, MOVE and functions find it.

use freshet_engine::statement::lexer::{self, Token, TokenKind};

/// The beginning of the names that psqlODBC makes up, from the address of its statement handle.
const PREFIX: &str = "SQL_CUR";

/// One statement about such a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorStatement<'a> {
    Declare {
        name: &'a str,
        with_hold: bool,
        /// The query behind FOR.
        query: &'a str,
    },
    /// The next rows; None: all that are left.
    Fetch {
        name: &'a str,
        limit: Option<usize>,
    },
    Close {
        name: &'a str,
    },
}

/// Whether a text may name such a cursor. Quick to say no.
pub(super) fn is_mentioned(sql: &[u8]) -> bool {
    sql.windows(PREFIX.len()).any(|window| window == PREFIX.as_bytes())
}

/// Whether a text has this name as a word, in a literal or not. A name that may be written in several ways is taken to be there.
pub(super) fn names(text: &[u8], name: &[u8]) -> bool {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    if name.is_empty() {
        return false;
    }
    if name.len() > lexer::NAME_BYTES_MAX || !name.iter().all(is_of_word) {
        return true;
    }
    let is_alone = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        !before.is_some_and(is_of_word) && !text.get(at + name.len()).is_some_and(is_of_word)
    };
    text.windows(name.len()).enumerate().any(|(at, window)| window.eq_ignore_ascii_case(name) && is_alone(at))
}

/// Whether a text closes every cursor, whatever its name.
pub(super) fn closes_all(sql: &[u8]) -> bool {
    let has = |word: &[u8]| sql.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
    if !has(b"close") && !has(b"discard") {
        return false;
    }
    let tokens = std::str::from_utf8(sql).ok().and_then(|sql| lexer::tokens(sql).ok()).unwrap_or_default();
    let closes = |token: &Token<'_>| token.is_word("close") || token.is_word("discard");
    tokens.windows(2).any(|pair| closes(&pair[0]) && pair[1].is_word("all"))
}

/// Reads one statement; None if it is none of these forms exactly.
pub(super) fn read(sql: &[u8]) -> Option<CursorStatement<'_>> {
    if !is_mentioned(sql) {
        return None;
    }
    let sql = std::str::from_utf8(sql).ok()?;
    let tokens = lexer::tokens(sql).ok()?;
    let (first, rest) = tokens.split_first()?;
    if first.is_word("declare") {
        declare(sql, rest)
    } else if first.is_word("fetch") {
        fetch(rest)
    } else if first.is_word("close") {
        match rest {
            [cursor] => Some(CursorStatement::Close { name: name(cursor)? }),
            _ => None,
        }
    } else {
        None
    }
}

fn declare<'a>(sql: &'a str, tokens: &[Token<'a>]) -> Option<CursorStatement<'a>> {
    let (cursor, mut rest) = tokens.split_first()?;
    let name = name(cursor)?;
    // What is left out is read-only and forward-only as far as this driver uses it; SCROLL and BINARY are upstream's.
    if let [no, scroll, ..] = rest
        && no.is_word("no")
        && scroll.is_word("scroll")
    {
        rest = &rest[2..];
    }
    rest = rest.strip_prefix_word("cursor")?;
    let with_hold = rest.first().is_some_and(|token| token.is_word("with"));
    if with_hold || rest.first().is_some_and(|token| token.is_word("without")) {
        rest = rest[1..].strip_prefix_word("hold")?;
    }
    rest = rest.strip_prefix_word("for")?;
    let (first, last) = (rest.first()?, rest.last()?);
    Some(CursorStatement::Declare { name, with_hold, query: sql.get(first.start..last.end())? })
}

fn fetch<'a>(mut tokens: &[Token<'a>]) -> Option<CursorStatement<'a>> {
    if let Some(rest) = tokens.strip_prefix_word("forward") {
        tokens = rest;
    }
    let limit = match tokens.first()? {
        token if token.is_word("all") => None,
        token if token.kind == TokenKind::Integer => Some(token.text.parse().ok().filter(|limit| *limit > 0)?),
        _ => return None,
    };
    match &tokens[1..] {
        [link, cursor] if link.is_word("in") || link.is_word("from") => {
            Some(CursorStatement::Fetch { name: name(cursor)?, limit })
        }
        _ => None,
    }
}

/// The name as it is written, for a quoted one that is the driver's.
fn name<'a>(token: &Token<'a>) -> Option<&'a str> {
    let inner = token.text.strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (token.kind == TokenKind::QuotedName && is_plain && inner.starts_with(PREFIX)).then_some(inner)
}

trait StripWord: Sized {
    fn strip_prefix_word(self, word: &str) -> Option<Self>;
}

impl StripWord for &[Token<'_>] {
    fn strip_prefix_word(self, word: &str) -> Option<Self> {
        let (first, rest) = self.split_first()?;
        first.is_word(word).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        for text in ["fetch 1 in C_1", "C_1", "select f('c_1')", "close \"C_1\";"] {
            assert!(names(text.as_bytes(), b"C_1"), "{text}");
        }
        for text in ["", "C_", "fetch 1 in C_11", "fetch 1 in aC_1", "fetch 1 in C_1_", "fetch 1 in éC_1"] {
            assert!(!names(text.as_bytes(), b"C_1"), "{text}");
        }
        assert!(names(b"fetch 1 in x", b"a name"), "it may be written with escapes");
        assert!(!names(b"fetch 1 in x", b""));
    }

    #[test]
    fn all_cursors_are_closed_by_few_texts() {
        for text in ["close all", "SELECT 1; CLOSE /* */ ALL;", "discard all"] {
            assert!(closes_all(text.as_bytes()), "{text}");
        }
        for text in ["close a", "select closed from small", "select 'close all'", "discard plans", "select all"] {
            assert!(!closes_all(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn only_the_drivers_own_forms_are_read() {
        let name = "SQL_CUR0x55ee";
        let declared = |with_hold| Some(CursorStatement::Declare { name, with_hold, query: "SELECT 1" });
        assert_eq!(read(br#"declare "SQL_CUR0x55ee" cursor with hold for SELECT 1"#), declared(true));
        assert_eq!(read(br#"declare "SQL_CUR0x55ee" cursor for SELECT 1"#), declared(false));
        assert_eq!(read(br#"declare "SQL_CUR0x55ee" no scroll cursor without hold for SELECT 1"#), declared(false));
        let fetched = |limit| Some(CursorStatement::Fetch { name, limit });
        assert_eq!(read(br#"fetch 100 in "SQL_CUR0x55ee""#), fetched(Some(100)));
        assert_eq!(read(br#"FETCH FORWARD ALL FROM "SQL_CUR0x55ee""#), fetched(None));
        assert_eq!(read(br#"close "SQL_CUR0x55ee""#), Some(CursorStatement::Close { name }));
        for other in [
            r#"declare "SQL_CUR0x55ee" scroll cursor for SELECT 1"#,
            r#"declare "SQL_CUR0x55ee" binary cursor for SELECT 1"#,
            r#"declare "mine" cursor for SELECT 'SQL_CUR'"#,
            r#"fetch backward 1 in "SQL_CUR0x55ee""#,
            r#"fetch 0 in "SQL_CUR0x55ee""#,
            r#"fetch -1 in "SQL_CUR0x55ee""#,
            r#"move 1 in "SQL_CUR0x55ee""#,
            r#"close all"#,
            r#"UPDATE t SET a = 1 WHERE CURRENT OF "SQL_CUR0x55ee""#,
        ] {
            assert_eq!(read(other.as_bytes()), None, "{other}");
        }
    }
}
