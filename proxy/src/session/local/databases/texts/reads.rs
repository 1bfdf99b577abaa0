//! Whether a query's text names a relation of an application: what only asks whether somebody is there, or looks at the system's
//! own tables as clients do when they connect, is no reason to mirror anything.

use std::borrow::Cow;
use std::collections::BTreeSet;

use freshet_engine::statement::lexer::{Lexer, Token};

/// Calls whose arguments have a FROM of their own (gram.y, func_expr_common_subexpr).
const WITH_FROM: [&str; 4] = ["extract", "overlay", "substring", "trim"];
/// What ends a FROM clause.
const ENDS: [&str; 15] = [
    "except",
    "fetch",
    "for",
    "group",
    "having",
    "intersect",
    "limit",
    "offset",
    "order",
    "returning",
    "select",
    "union",
    "values",
    "where",
    "window",
];

/// Whether a query reads a relation that is not the system's. Functions that stand in FROM are none, nor are names given by WITH.
pub(in crate::session::local) fn reads(sql: &[u8]) -> bool {
    let is_there = |word: &[u8]| sql.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    // Most of what names no relation need not be taken apart to know.
    if !is_there(b"from") && !is_there(b"table") {
        return false;
    }
    // Of another encoding it is not answered here, but read.
    let sql = String::from_utf8_lossy(sql);
    let tokens: Vec<Token<'_>> = Lexer::new(&sql).map_while(Result::ok).collect();
    Reading { tokens: &tokens, named: BTreeSet::new(), levels: vec![Level::default()] }.finds_relation()
}

/// What is known between two parentheses.
#[derive(Clone, Copy, Default)]
struct Level {
    /// A FROM here is no clause.
    is_call: bool,
    /// In a FROM clause: after a comma another relation comes.
    is_from: bool,
}

struct Reading<'a> {
    tokens: &'a [Token<'a>],
    /// By WITH.
    named: BTreeSet<String>,
    levels: Vec<Level>,
}

impl Reading<'_> {
    fn finds_relation(mut self) -> bool {
        let mut is_due = false;
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            let is_before = |word: &str| at > 0 && self.tokens[at - 1].is_word(word);
            let is_name = is_before("as") || at > 0 && self.tokens[at - 1].is_symbol(".");
            let level = self.levels.last().copied().unwrap_or_default();
            if token.is_symbol("(") {
                let is_call = at > 0 && WITH_FROM.iter().any(|call| self.tokens[at - 1].is_word(call));
                // Relations that are joined may be in parentheses.
                self.levels.push(Level { is_call, is_from: is_due });
            } else if token.is_symbol(")") {
                self.levels.pop();
                is_due = false;
            } else if token.is_symbol(",") {
                is_due = level.is_from;
            } else if !is_name && token.is_word("from") {
                is_due = !level.is_call && !is_before("distinct");
                if is_due {
                    self.set_from(true);
                }
            } else if !is_name && token.is_word("join") {
                is_due = level.is_from;
            } else if !is_name && token.is_word("table") && self.is_start(at) {
                is_due = true;
            } else if !is_name && (is_due && token.is_word("with") || ENDS.iter().any(|end| token.is_word(end))) {
                is_due = false;
                self.set_from(false);
            } else if is_due && !["only", "lateral"].iter().any(|word| token.is_word(word)) {
                let (is_relation, end) = self.relation(at);
                if is_relation {
                    return true;
                }
                is_due = false;
                at = end;
                continue;
            } else if self.is_named_by_with(at) {
                self.named.extend(token.name().map(Cow::into_owned));
            }
            at += 1;
        }
        false
    }

    fn set_from(&mut self, is_from: bool) {
        if let Some(level) = self.levels.last_mut() {
            level.is_from = is_from;
        }
    }

    /// A statement begins there, or a query in parentheses: TABLE is one.
    fn is_start(&self, at: usize) -> bool {
        at == 0 || self.tokens[at - 1].is_symbol("(") || self.tokens[at - 1].is_symbol(";")
    }

    /// `name AS [[NOT] MATERIALIZED] (`.
    fn is_named_by_with(&self, at: usize) -> bool {
        let is = |at: usize, word: &str| self.tokens.get(at).is_some_and(|token| token.is_word(word));
        let mut open = at + 2;
        open += usize::from(is(open, "not"));
        open += usize::from(is(open, "materialized"));
        is(at + 1, "as") && self.tokens.get(open).is_some_and(|token| token.is_symbol("("))
    }

    /// Whether the name there is that of an application's relation, and where it ends.
    fn relation(&self, at: usize) -> (bool, usize) {
        let symbol = |at: usize, symbol: &str| self.tokens.get(at).is_some_and(|token| token.is_symbol(symbol));
        let (mut names, mut end) = (Vec::new(), at);
        while let Some(name) = self.tokens.get(end).and_then(Token::name) {
            names.push(name);
            end += 1;
            if !symbol(end, ".") {
                break;
            }
            end += 1;
        }
        let is_system = match names.as_slice() {
            // No name at all.
            [] => return (false, at + 1),
            [relation] => relation.starts_with("pg_") || self.named.contains(&**relation),
            [.., schema, _] => schema.starts_with("pg_") || schema == "information_schema",
        };
        (!is_system && !symbol(end, "("), end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_an_application_are_told_from_questions_about_the_system() {
        for sql in [
            "SELECT * FROM t",
            "select x\nfrom\n\"My Table\"",
            "SELECT * FROM (SELECT id FROM orders) o",
            "SELECT * FROM pg_class, orders",
            "SELECT * FROM pg_class c JOIN public.orders o ON c.oid = o.id",
            "SELECT * FROM (pg_class c CROSS JOIN orders o)",
            "SELECT * FROM ONLY orders",
            "SELECT * FROM shop.public.orders",
            "SELECT * FROM pg_class c, LATERAL (SELECT * FROM orders) o",
            "SELECT * FROM generate_series(1, 3) g, orders",
            "SELECT * FROM unnest($1) WITH ORDINALITY, orders",
            "SELECT extract(epoch FROM at) FROM orders",
            "SELECT extract(epoch FROM (SELECT max(at) FROM orders))",
            "SELECT a IS DISTINCT FROM b FROM orders",
            "SELECT 1 WHERE EXISTS (SELECT FROM orders)",
            "WITH x AS (SELECT * FROM orders) SELECT * FROM x",
            "TABLE orders",
            "SELECT * FROM (TABLE orders) o",
            "SELECT 1; SELECT * FROM orders",
            "SELECT/**/1/**/FROM/**/orders",
            "SELECT * FROM \"Pg_x\"",
        ] {
            assert!(reads(sql.as_bytes()), "{sql}");
        }
        assert!(reads(b"SELECT '\xe9' FROM orders"));
    }

    #[test]
    fn questions_about_the_system_and_froms_that_are_none_read_no_application() {
        for sql in [
            "SELECT 1",
            "SELECT oid FROM pg_catalog.pg_type",
            "SELECT oid FROM \"pg_catalog\".\"pg_type\", pg_catalog . pg_class",
            "SELECT count(*) FROM pg_stat_activity",
            "SELECT table_name FROM information_schema.tables",
            "SELECT table_name FROM \"information_schema\".tables ORDER BY a, b",
            "SELECT * FROM (SELECT oid FROM pg_class) c",
            "SELECT c.oid, c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE a IN (b, c)",
            "SELECT 'away from'",
            "SELECT * FROM",
            "SELECT extract(epoch FROM now())",
            "SELECT EXTRACT (EPOCH FROM CURRENT_TIMESTAMP), trim(both from 'x'), substring('abc' from 2 for 1)",
            "SELECT 1 IS DISTINCT FROM two, 1 IS NOT DISTINCT FROM three",
            "SELECT valid_from, from_date AS from",
            "SELECT 1 -- from orders",
            "SELECT /* from orders */ 1",
            "SELECT count(*) FROM generate_series(1, 2)",
            "SELECT * FROM (VALUES (a), (b)) v (c)",
            "SELECT * FROM (WITH x AS (SELECT 1), y AS (SELECT 2) SELECT * FROM x, y) v",
            "SELECT * FROM pg_catalog.generate_series(1, 2) g(a, b), unnest($1) WITH ORDINALITY AS u(c, d)",
            "WITH x AS MATERIALIZED (SELECT 1) SELECT * FROM x",
            "WITH a AS (SELECT 1), b AS NOT MATERIALIZED (SELECT * FROM a) SELECT * FROM a, b",
            "VALUES ('table', 1)",
            "SHOW transaction_isolation",
            "SELECT 'unterminated from orders",
        ] {
            assert!(!reads(sql.as_bytes()), "{sql}");
        }
    }
}
