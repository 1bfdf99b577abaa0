//! What the bodies of users' functions may do to a session: a trigger, a default or a view may call them where no text of a client
//! shows it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use crate::catalog::hidden::HiddenCalls;
use crate::statement::classify::{called_names, changes_no_setting, is_harmless};
use crate::statement::lexer::{self, Token, TokenKind, fold};

/// A body of a function in SQL or PL/pgSQL, as far as it tells what a call may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// It sets, creates or runs what cannot be seen from its text.
    pub is_open: bool,
    /// It may write or lock rows itself, or call what pg_catalog has to lock and to count.
    pub writes: bool,
    /// Names that look like calls and are none of pg_catalog's that leave the session alone; folded, without schema.
    pub calls: HashSet<String>,
    /// All names in it: relations may be among them, and calls by `row.function`, or of a user's function that has a name of
    /// PostgreSQL's.
    pub names: HashSet<String>,
    /// Its operators.
    pub operators: HashSet<String>,
}

impl Body {
    /// Whether it runs what is not trusted by an operator, a cast or a type.
    pub fn uses_unnamed(&self, hidden: &HiddenCalls) -> bool {
        let uses = |known: &HashSet<Arc<str>>, own: &HashSet<String>| known.iter().any(|name| own.contains(&**name));
        hidden.is_unseen || uses(&hidden.operators, &self.operators) || uses(&hidden.types, &self.names)
    }

    /// Everything that is not understood makes it open.
    pub fn of(text: &str) -> Self {
        Self::read(text, |_| false)
    }

    /// Of a function in SQL, where SELECT ... INTO makes a table and is no assignment.
    pub fn of_sql(text: &str) -> Self {
        Self::read(text, makes_table)
    }

    fn read(text: &str, is_open_too: fn(&[Token<'_>]) -> bool) -> Self {
        let Ok(tokens) = lexer::tokens(text) else { return Self { is_open: true, ..Self::default() } };
        let is_open = is_open(&tokens) || is_open_too(&tokens);
        let mut body = Self { is_open, writes: writes(&tokens), ..Self::default() };
        for (at, name, is_keyword) in called_names(&tokens) {
            body.writes |= changes_no_setting(&name);
            // `RETURN (x)`, `IF (x)`, `%ROWTYPE (`.
            let is_language = tokens[at].kind == TokenKind::Word && PLPGSQL_WORDS.contains(&&*fold(tokens[at].text));
            let is_told = TELLING.contains(&&*name) || name == "set_config" && sets_own(&tokens, at);
            if is_keyword || is_language || is_told || changes_no_setting(&name) || is_harmless(&name) {
                continue;
            }
            let plain = name.rsplit_once('.').map_or(&*name, |(_, plain)| plain);
            body.calls.insert(plain.to_owned());
        }
        body.names = names(&tokens);
        let operators = tokens.iter().filter(|token| token.kind == TokenKind::Symbol);
        body.operators = operators.map(|token| token.text.to_owned()).collect();
        body
    }
}

/// Names in a text, keywords among them.
fn names(tokens: &[Token<'_>]) -> HashSet<String> {
    tokens.iter().filter_map(Token::name).map(Cow::into_owned).collect()
}

/// The operator or type in the statement that runs what is not trusted, and nothing of which shows.
pub fn unnamed<'a>(tokens: &[Token<'a>], hidden: &HiddenCalls) -> Option<Cow<'a, str>> {
    if hidden.is_unseen {
        return Some("an operator or a cast".into());
    }
    if hidden.unnamed_count() == 0 {
        return None;
    }
    let is_operator = |token: &Token<'_>| token.kind == TokenKind::Symbol && hidden.operators.contains(token.text);
    let name = |token: &Token<'a>| token.name().filter(|name| hidden.types.contains(&**name));
    tokens.iter().find_map(|token| if is_operator(token) { Some(token.text.into()) } else { name(token) })
}

/// Names that stand where a statement names a relation, with those of their schemas, and a keyword in its place.
pub fn relation_names<'t, 'a>(tokens: &'t [Token<'a>]) -> impl Iterator<Item = Cow<'a, str>> + 't {
    const BEFORE: [&str; 8] = ["from", "join", "into", "update", "only", "table", "copy", "truncate"];
    // The clause at each depth of parentheses.
    let mut clauses = vec![""];
    tokens.iter().enumerate().filter_map(move |(at, token)| {
        if token.is_symbol("(") {
            clauses.push("");
        } else if token.is_symbol(")") && clauses.len() > 1 {
            clauses.pop();
        } else if let Some(clause) = CLAUSES.iter().find(|word| token.is_word(word))
            && let Some(last) = clauses.last_mut()
        {
            *last = clause;
        }
        let mut first = at;
        while first > 1 && tokens[first - 1].is_symbol(".") {
            first -= 2;
        }
        let before = tokens.get(first.checked_sub(1)?)?;
        let is_list = |clause: Option<&&str>| clause.is_some_and(|clause| LISTS.contains(clause));
        let is_listed = before.is_symbol(",") && is_list(clauses.last());
        // `FROM (t CROSS JOIN u)`.
        let is_nested = before.is_symbol("(") && is_list(clauses.iter().rev().nth(1));
        let is_named = is_listed || is_nested || BEFORE.iter().any(|word| before.is_word(word));
        // `MERGE INTO t USING s`.
        (is_named || before.is_word("using")).then(|| token.name()).flatten()
    })
}

/// Words that begin a part of a statement; in some the commas stand between relations.
const CLAUSES: [&str; 11] =
    ["select", "from", "where", "group", "order", "having", "set", "values", "returning", "using", "truncate"];
const LISTS: [&str; 3] = ["from", "using", "truncate"];

/// PL/pgSQL's own words that may stand before a parenthesis (pl_reserved_kwlist.h, pl_unreserved_kwlist.h).
const PLPGSQL_WORDS: [&str; 17] = [
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
    "perform",
    "default",
    "strict",
];

/// Volatile functions of pg_catalog that only tell something, beside those that may be called in a query that is answered here.
const TELLING: [&str; 2] = ["current_query", "pg_trigger_depth"];

/// Words that begin a statement which may change more than rows: definitions (temporary tables win over others), privileges, what
/// belongs to the session, what is run out of sight.
const OPEN_WORDS: [&str; 21] = [
    "create",
    "alter",
    "drop",
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
    "set",
    "do",
    "comment",
    "grant",
    "revoke",
    "reassign",
    // A definition's number, not rows, tells of it.
    "refresh",
];

fn is_open(tokens: &[Token<'_>]) -> bool {
    let begins = |at: usize| {
        at.checked_sub(1).is_none_or(|before| {
            let before = &tokens[before];
            let words = ["begin", "atomic", "then", "else", "loop"];
            [";", ">>"].iter().any(|end| before.is_symbol(end)) || words.iter().any(|word| before.is_word(word))
        })
    };
    tokens.iter().enumerate().any(|(at, token)| {
        let is_field = at > 0 && tokens[at - 1].is_symbol(".");
        let makes_temporary = at > 0
            && ["into", "table"].iter().any(|word| tokens[at - 1].is_word(word))
            && ["temp", "temporary"].iter().any(|word| token.is_word(word));
        let is_dynamic = token.is_word("execute") && !is_field;
        is_dynamic || makes_temporary || begins(at) && OPEN_WORDS.iter().any(|word| token.is_word(word))
    })
}

/// INTO behind another word than INSERT and MERGE.
fn makes_table(tokens: &[Token<'_>]) -> bool {
    tokens
        .windows(2)
        .any(|pair| pair[1].is_word("into") && !["insert", "merge"].iter().any(|word| pair[0].is_word(word)))
}

/// Prefixes of settings by which an approximate index (pgvector's, or another extension's over its types) gives other rows.
pub const CHOOSING_ROWS: [&str; 4] = ["hnsw.", "ivfflat.", "diskann.", "vchord"];

/// `set_config('app.user', ...)`: a setting of an application's own, which a session asks for anew after anything that has run.
fn sets_own(tokens: &[Token<'_>], at: usize) -> bool {
    let name = tokens.get(at + 2).filter(|name| name.kind == TokenKind::String);
    let name = name.map(|name| name.text.trim_start_matches('\'').to_ascii_lowercase()).unwrap_or_default();
    let is_others = name.starts_with("freshet") || CHOOSING_ROWS.iter().any(|prefix| name.starts_with(prefix));
    name.contains('.') && !is_others && tokens.get(at + 3).is_some_and(|comma| comma.is_symbol(","))
}

/// FOR UPDATE among them: a cost, no error.
fn writes(tokens: &[Token<'_>]) -> bool {
    ["insert", "update", "delete", "merge", "truncate", "refresh", "lock", "share"]
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
            "BEGIN NEW.temp := NEW.load; INSERT INTO log (q) VALUES (current_query()); PERFORM (SELECT 1); RETURN NEW; END",
            "DECLARE n int DEFAULT (1 + 1); BEGIN PERFORM set_config('app.user', 'x', true); RETURN NEW; END",
        ] {
            assert_eq!(calls(text), Some(Vec::new()), "{text}");
        }
    }

    #[test]
    fn into_makes_a_table_in_sql_and_assigns_in_plpgsql() {
        for text in ["SELECT 1 AS id INTO pg_temp.t", "INSERT INTO t VALUES (1); SELECT a INTO b FROM t"] {
            assert!(Body::of_sql(text).is_open && !Body::of(text).is_open, "{text}");
        }
        for text in ["INSERT INTO t VALUES (1)", "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE"] {
            assert!(!Body::of_sql(text).is_open, "{text}");
        }
    }

    #[test]
    fn relations_are_told_from_columns() {
        for (text, expected) in [
            (
                "SELECT d, e FROM ev, public.f x JOIN ONLY g ON d = 1 WHERE h IN (SELECT i FROM j) ORDER BY k, l",
                "ev public f only g j",
            ),
            ("INSERT INTO t (a, b) SELECT c, d FROM u", "t u"),
            ("UPDATE s.t SET a = 1, b = 2 FROM u, v", "s t u v"),
            ("SELECT 1 FROM (a CROSS JOIN b), c JOIN d ON e = f, g", "a b c d g"),
            ("DELETE FROM t USING u, v WHERE a = 1", "t u v"),
            ("COPY (SELECT a FROM t) TO STDOUT", "t"),
            ("TRUNCATE a, b", "a b"),
            ("TRUNCATE TABLE a", "table a"),
        ] {
            let tokens = lexer::tokens(text).unwrap();
            assert_eq!(relation_names(&tokens).collect::<Vec<_>>().join(" "), expected, "{text}");
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
            "BEGIN SELECT 1 AS a INTO TEMP o; END",
            "BEGIN RETURN QUERY EXECUTE 'x'; END",
            "BEGIN REVOKE SELECT ON t FROM alice; END",
            "BEGIN IF a THEN GRANT SELECT ON t TO alice; END IF; END",
            "BEGIN REASSIGN OWNED BY a TO b; END",
            "BEGIN REFRESH MATERIALIZED VIEW m; RETURN NULL; END",
            "SELECT 'open",
        ] {
            assert_eq!(calls(text), None, "{text}");
        }
        let called = |text: &str, name: &str| assert_eq!(calls(text), Some(vec![name.to_owned()]), "{text}");
        called("BEGIN PERFORM set_config('role', 'x', false); RETURN NEW; END", "set_config");
        called("BEGIN PERFORM set_config('HNSW.ef_search', '400', false); END", "set_config");
        called("SELECT pg_catalog.set_config('a', 'b', true)", "set_config");
        called("begin return other.f(new.id); end", "f");
        called("select \"F\"(1)", "F");
    }
}
