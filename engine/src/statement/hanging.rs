//! What of a text hangs on the session's settings when PostgreSQL reads it, beside what its types do: whoever keeps a parsed statement
//! keeps what they were then.

use crate::statement::lexer::{self, Token, TokenKind};

/// Whether settings have a part in where its quotes end, and in what is between them: bytes beyond ASCII mean what client_encoding
/// says, backslashes what standard_conforming_strings and backslash_quote do (PostgreSQL: scan.l).
pub fn quotes_hang_on_settings(sql: &[u8]) -> bool {
    !sql.is_ascii() || sql.contains(&b'\\')
}

/// Likewise what it means: `= NULL` hangs on transform_null_equals (PostgreSQL: transformAExprOp), NULL within quotes may be an
/// array's element, which hangs on array_nulls (array_in).
pub fn meaning_hangs_on_settings(sql: &[u8]) -> bool {
    if quotes_hang_on_settings(sql) {
        return true;
    }
    // Strings may go on in the next line.
    let has_lines = sql.contains(&b'\n') || sql.contains(&b'\r');
    if !has_lines && !sql.windows(4).any(|part| part.eq_ignore_ascii_case(b"null")) {
        return false;
    }
    let tokens = std::str::from_utf8(sql).ok().and_then(|sql| lexer::tokens(sql).ok());
    tokens.is_none_or(|tokens| (0..tokens.len()).any(|at| is_null_of_settings(&tokens, at)))
}

fn is_null_of_settings(tokens: &[Token<'_>], at: usize) -> bool {
    match tokens[at].kind {
        TokenKind::Word => tokens[at].is_word("null") && is_compared(tokens, at),
        TokenKind::String | TokenKind::EscapeString | TokenKind::DollarString | TokenKind::OtherString => {
            let text = tokens[at].text;
            let is_joined = |c: char| c == '\'' || c.is_ascii_whitespace();
            text.to_ascii_lowercase().contains("null")
                || text.contains(['\n', '\r']) && text.replace(is_joined, "").to_ascii_lowercase().contains("null")
        }
        TokenKind::QuotedName | TokenKind::Integer | TokenKind::Decimal | TokenKind::Parameter | TokenKind::Symbol => {
            false
        }
    }
}

/// Parentheses around a constant leave no trace; the operator may be written `OPERATOR(=)`.
fn is_compared(tokens: &[Token<'_>], at: usize) -> bool {
    let before = tokens[..at].iter().rev().find(|token| !token.is_symbol("("));
    let after = tokens[at + 1..].iter().find(|token| !token.is_symbol(")"));
    before.is_some_and(|token| token.is_symbol("=") || token.is_symbol(")"))
        || after.is_some_and(|token| token.is_symbol("=") || token.is_word("operator"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settings_decide_is_found() {
        for sql in [
            r"SELECT 'a\b'",
            "SELECT 'ü'",
            "SELECT a = null FROM t",
            "SELECT 1 WHERE NULL=a",
            "SELECT a = ((NULL)) FROM t",
            "SELECT ((NULL)) = a FROM t",
            "SELECT a OPERATOR(=) NULL, NULL OPERATOR(=) a",
            "SELECT a = /* nothing */ NULL",
            "SELECT '{1,Null}'::int[]",
            "SELECT '{1,NU'\n  'LL}'::int[]",
            "SELECT $q${NULL}$q$::int[]",
            "SELECT 'not closed, null",
        ] {
            assert!(meaning_hangs_on_settings(sql.as_bytes()), "{sql}");
        }
    }

    #[test]
    fn what_they_do_not_is_left_alone() {
        for sql in [
            "SELECT 'a', $1 FROM t WHERE a = 1",
            "SELECT a FROM t WHERE a IS NULL AND b IS NOT NULL ORDER BY a NULLS LAST",
            "SELECT nullif(a, 1) = 2, coalesce(a, NULL), CASE WHEN a THEN NULL ELSE NULL END FROM t",
            "SELECT a = ANY (ARRAY[NULL, 1]), \"null\" FROM t -- = NULL",
        ] {
            assert!(!meaning_hangs_on_settings(sql.as_bytes()), "{sql}");
        }
        assert!(!quotes_hang_on_settings(b"SELECT a = NULL"));
    }
}
