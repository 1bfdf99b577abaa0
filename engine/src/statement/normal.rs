//! A text without comments and surplus white space: the second key under which a reply is found.
//!
//! Equal normal texts are one statement to PostgreSQL: tokens stay as they are, byte for byte, and what stood between two of
//! them is one space or nothing, as it was. A string that is continued on another line is one token with its line break.

use std::borrow::Cow;

use crate::statement::lexer::{Lexer, TokenKind};

/// A longer text is not worth the reading: it is looked up as it came only.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// `sql` with every run of white space and comments as one space, none at its ends. Text that does not lex stays as it is.
pub fn normalise(sql: &str) -> Cow<'_, str> {
    let mut normal = Vec::new();
    if normalise_into(sql.as_bytes(), &mut normal) {
        String::from_utf8_lossy(&normal).into_owned().into()
    } else {
        sql.into()
    }
}

/// Puts the normal text of a query into `normal`; false: it is the text itself, or the text is no query or not for us to
/// read, and `normal` holds nothing of use. Allocates only while the buffer grows.
pub fn normalise_into(sql: &[u8], normal: &mut Vec<u8>) -> bool {
    normal.clear();
    if sql.len() > TEXT_BYTES_MAX || is_plain(sql) {
        return false;
    }
    let Ok(text) = std::str::from_utf8(sql) else { return false };
    let mut end = 0;
    for token in Lexer::new(text) {
        let Ok(token) = token else { return false };
        if normal.is_empty() {
            let is_query = token.is_symbol("(")
                || token.kind == TokenKind::Word
                    && ["select", "with", "values", "table"].iter().any(|word| token.is_word(word));
            if !is_query {
                return false;
            }
        } else if token.start > end {
            normal.push(b' ');
        }
        normal.extend_from_slice(token.text.as_bytes());
        end = token.end();
    }
    !normal.is_empty() && normal.as_slice() != sql
}

/// Whether there is nothing in the text that could be left out, by a look at its bytes in pairs: most texts that programs
/// send are like that. (One in quotes counts too: then the lexer decides.)
fn is_plain(sql: &[u8]) -> bool {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
    let (Some(first), Some(last)) = (sql.first(), sql.last()) else { return true };
    if is_space(*first) || is_space(*last) {
        return false;
    }
    // Without an early end, so that the compiler can take many bytes at a time.
    let suspects = sql.iter().zip(&sql[1..]).fold(false, |found, (a, b)| {
        let spaces = is_space(*a) & is_space(*b) | (is_space(*b) & (*b != b' '));
        let comment = (*a == b'-') & (*b == b'-') | (*a == b'/') & (*b == b'*');
        found | spaces | comment
    });
    !suspects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalising_keeps_quoted_text_and_drops_comments() {
        for (sql, expected) in [
            ("SELECT  1\n", "SELECT 1"),
            ("/* Username: x */ SELECT 1 -- end", "SELECT 1"),
            ("SELECT 'a  -- b', \"c  /* d\"", "SELECT 'a  -- b', \"c  /* d\""),
            ("SELECT $$a  b$$ , E'\\'  --x'", "SELECT $$a  b$$ , E'\\'  --x'"),
            ("SELECT $x$ -- $$ $x$  -- c", "SELECT $x$ -- $$ $x$"),
            ("SELECT a/* x /* y */ */b", "SELECT a b"),
            ("SELECT 'a'\n  'b'", "SELECT 'a'\n  'b'"),
            ("SELECT 'a' -- c\n 'b'", "SELECT 'a' -- c\n 'b'"),
            ("SELECT 'open", "SELECT 'open"),
            ("SELECT\t1", "SELECT 1"),
            ("(SELECT 1 )  UNION\r\nSELECT 2", "(SELECT 1 ) UNION SELECT 2"),
            ("INSERT  INTO t", "INSERT  INTO t"),
            ("", ""),
            ("  ", "  "),
        ] {
            assert_eq!(normalise(sql), expected, "{sql:?}");
        }
        assert!(matches!(normalise("SELECT a, b FROM t"), Cow::Borrowed(_)));
    }

    #[test]
    fn texts_that_differ_in_more_than_space_keep_different_keys() {
        for (a, b) in [
            ("SELECT 'a'\n'b'", "SELECT 'a' 'b'"),
            ("SELECT 'a  b'", "SELECT 'a b'"),
            ("SELECT E'a\\'  b'", "SELECT E'a\\' b'"),
            ("SELECT $$ -- x\n$$", "SELECT $$ $$"),
            ("SELECT \"a  b\" FROM t", "SELECT \"a b\" FROM t"),
            ("SELECT U&'a  b'", "SELECT U&'a b'"),
            ("SELECT 1 - -1", "SELECT 1 --1"),
            ("SELECT a b", "SELECT ab"),
        ] {
            assert_ne!(normalise(a), normalise(b), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn what_is_plain_needs_no_reading() {
        assert!(is_plain(b"SELECT a FROM t WHERE b = $1 AND c = 'x'"));
        for sql in
            ["SELECT  1", "SELECT\n1", " SELECT 1", "SELECT 1\n", "SELECT 1 -- c", "SELECT /* c */1", "SELECT 1--"]
        {
            assert!(!is_plain(sql.as_bytes()), "{sql:?}");
        }
    }
}
