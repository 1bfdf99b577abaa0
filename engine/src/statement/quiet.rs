//! What the bodies of users' functions may do to a session: a trigger, a default or a view may call them where no text of a client
//! shows it.

use std::collections::HashSet;

use crate::statement::classify::{called_names, changes_no_setting, is_harmless};
use crate::statement::lexer::{self, Token, TokenKind, fold};

/// A body of a function in SQL or PL/pgSQL, as far as it tells what a call may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// It sets, creates or runs what cannot be seen from its text.
    pub is_open: bool,
    /// It may write rows itself.
    pub writes: bool,
    /// Names that look like calls and are none of pg_catalog's that leave the session alone; folded, without schema.
    pub calls: HashSet<String>,
    /// All other names in it: relations may be among them.
    pub names: HashSet<String>,
}

impl Body {
    /// Everything that is not understood makes it open.
    pub fn of(text: &str) -> Self {
        let Ok(tokens) = lexer::tokens(text) else { return Self { is_open: true, ..Self::default() } };
        let mut body = Self { is_open: is_open(&tokens), writes: writes(&tokens), ..Self::default() };
        for (at, name, is_keyword) in called_names(&tokens) {
            // `RETURN (x)`, `IF (x)`, `%ROWTYPE (`.
            let is_language = tokens[at].kind == TokenKind::Word && PLPGSQL_WORDS.contains(&&*fold(tokens[at].text));
            if is_keyword || is_language || changes_no_setting(&name) || is_harmless(&name) {
                continue;
            }
            let plain = name.rsplit_once('.').map_or(&*name, |(_, plain)| plain);
            body.calls.insert(plain.to_owned());
        }
        body.names = names(&tokens);
        body
    }
}

/// Names in a text, keywords among them.
pub fn names(tokens: &[Token<'_>]) -> HashSet<String> {
    tokens.iter().filter_map(Token::name).map(std::borrow::Cow::into_owned).collect()
}

/// PL/pgSQL's own words that may stand before a parenthesis (pl_reserved_kwlist.h, pl_unreserved_kwlist.h).
const PLPGSQL_WORDS: [&str; 14] = [
    "if",
    "elsif",
    "elseif",
    "while",
    "return",
    "query",
    "next",
    "loop",
    "in",
    "by",
    "raise",
    "exception",
    "assert",
    "using",
];

/// Words by which a body may change more than rows: dynamic SQL, definitions (temporary tables win over others), what belongs to
/// the session.
const OPEN_WORDS: [&str; 17] = [
    "execute",
    "create",
    "alter",
    "drop",
    "temp",
    "temporary",
    "discard",
    "load",
    "reset",
    "prepare",
    "deallocate",
    "listen",
    "unlisten",
    "call",
    "import",
    "copy",
    "security",
];

fn is_open(tokens: &[Token<'_>]) -> bool {
    let begins = |at: usize| {
        at.checked_sub(1).is_none_or(|before| {
            let before = &tokens[before];
            before.is_symbol(";") || ["begin", "then", "else", "loop"].iter().any(|word| before.is_word(word))
        })
    };
    tokens.iter().enumerate().any(|(at, token)| {
        let is_set = token.is_word("set") && begins(at);
        let is_nested = token.is_word("do") && begins(at);
        is_set || is_nested || OPEN_WORDS.iter().any(|word| token.is_word(word))
    })
}

/// FOR UPDATE among them: a cost, no error.
fn writes(tokens: &[Token<'_>]) -> bool {
    ["insert", "update", "delete", "merge", "truncate", "refresh"]
        .iter()
        .any(|word| tokens.iter().any(|token| token.is_word(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Option<Vec<String>> {
        let body = Body::of(text);
        let mut calls: Vec<String> = body.calls.into_iter().collect();
        calls.sort();
        (!body.is_open).then_some(calls)
    }

    #[test]
    fn what_triggers_mostly_do_is_closed() {
        for text in [
            "BEGIN NEW.updated_at = now(); RETURN NEW; END",
            "begin new.n := coalesce(old.n, 0) + 1; return new; end",
            "BEGIN IF (TG_OP = 'DELETE') THEN INSERT INTO audit(id, op) VALUES (OLD.id, 'D'); RETURN OLD; END IF; RETURN NULL; END;",
            "BEGIN UPDATE counts SET n = n + 1 WHERE id = NEW.id; PERFORM pg_notify('c', NEW.id::text); RETURN NEW; END",
            "DECLARE n int := 0; BEGIN FOR n IN 1..3 LOOP UPDATE t SET a = n; END LOOP; RETURN (SELECT max(a) FROM t); END",
            "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING; SELECT 1",
            "BEGIN RAISE EXCEPTION 'no %', NEW.id USING ERRCODE = '23514'; END",
        ] {
            assert_eq!(calls(text), Some(Vec::new()), "{text}");
        }
    }

    #[test]
    fn what_may_change_the_session_is_open_or_called() {
        for text in [
            "BEGIN SET search_path = x; RETURN NEW; END",
            "BEGIN IF true THEN SET LOCAL role = 'x'; END IF; END",
            "BEGIN EXECUTE 'set role x'; RETURN NEW; END",
            "BEGIN CREATE TEMP TABLE o (a int); RETURN NEW; END",
            "SET role x",
            "SELECT 1; DISCARD ALL",
            "BEGIN DO $$ $$; END",
            "SELECT 'open",
        ] {
            assert_eq!(calls(text), None, "{text}");
        }
        let called = |text: &str, name: &str| assert_eq!(calls(text), Some(vec![name.to_owned()]), "{text}");
        called("BEGIN PERFORM set_config('role', 'x', false); RETURN NEW; END", "set_config");
        called("SELECT pg_catalog.set_config('a', 'b', true)", "set_config");
        called("begin return other.f(new.id); end", "f");
        called("select \"F\"(1)", "F");
    }
}
