//! A second, independent parser must read the same tables out of a statement before freshet answers it.
//!
//! The first reader is [`mod@super::parse`], ours. A slip in its grammar (a clause taken for an alias, a table that is not
//! seen) would be a wrong answer; two readers that share no code do not make the same slip.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};

use sqlparser::ast::{Ident, ObjectName, Query, Statement, TableFactor, Visit, Visitor};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::reason::UpstreamReason;
use crate::statement::lexer::{self, fold};

/// Nesting that the second parser follows; the first allows less.
const NESTING_MAX: usize = 150;

/// The parser's own errors quote what they were found at, constants too.
const NOT_READ: &str = "it does not read this form";

/// Ok if the statement is one query whose relations have exactly the names `expected` (without schemas).
pub fn confirm<'a>(sql: &str, expected: impl Iterator<Item = &'a str>) -> Result<(), UpstreamReason> {
    let refuse = |why: &str| UpstreamReason::NotParsed(format!("by the second parser: {why}").into());
    let tokens =
        Tokenizer::new(&PostgreSqlDialect {}, &with_known_words(sql)).tokenize().map_err(|_| refuse(NOT_READ))?;
    let statements = Parser::new(&PostgreSqlDialect {})
        .with_recursion_limit(NESTING_MAX)
        .with_tokens(with_plain_names(without_types(without_exclusions(tokens))))
        .parse_statements()
        .map_err(|_| refuse(NOT_READ))?;
    let [statement @ Statement::Query(_)] = statements.as_slice() else {
        return Err(refuse("not one query"));
    };
    let mut names = Names::default();
    let _ = statement.visit(&mut names);
    // A name that WITH gives may be a table's elsewhere in the statement; which it is where, only one reader says.
    let is_certain = |name: &&str| !names.common.contains(*name) && !names.functions.contains(*name);
    let read: BTreeSet<&str> = names.relations.iter().map(String::as_str).collect();
    let certain: BTreeSet<&str> = read.iter().copied().filter(is_certain).collect();
    let expected: BTreeSet<&str> = expected.collect();
    let agrees = certain.is_subset(&expected) && expected.is_subset(&read);
    if agrees { Ok(()) } else { Err(refuse("it reads other tables")) }
}

/// Without the EXCLUDE of frames, which the parser does not know. It ends at a closing parenthesis; where the words mean
/// something else, a table would be missing, and the statement is refused.
fn without_exclusions(tokens: Vec<Token>) -> Vec<Token> {
    let is = |token: &Token, word: &str| matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word));
    let mut kept: Vec<Token> = Vec::with_capacity(tokens.len());
    for token in tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))) {
        if token == Token::RParen {
            let ends = |words: &[&str]| {
                kept.len() > words.len() && kept[kept.len() - words.len()..].iter().zip(words).all(|(t, w)| is(t, w))
            };
            let forms: [&[&str]; 4] = [
                &["exclude", "current", "row"],
                &["exclude", "no", "others"],
                &["exclude", "group"],
                &["exclude", "ties"],
            ];
            let found = forms.into_iter().find(|words| ends(words)).map_or(0, <[_]>::len);
            kept.truncate(kept.len() - found);
        }
        kept.push(token);
    }
    kept
}

/// Literals of types that the second parser does not know, without the name before them: a name before a literal is always a
/// type's (gram.y, AexprConst).
fn without_types(tokens: Vec<Token>) -> Vec<Token> {
    let is_type = |token: &Token| matches!(token, Token::Word(word) if word.quote_style.is_none() && ["inet", "cidr"].iter().any(|name| word.value.eq_ignore_ascii_case(name)));
    let is_literal = |token: Option<&Token>| matches!(token, Some(Token::SingleQuotedString(_)));
    let kept = (0..tokens.len()).filter(|at| !(is_type(&tokens[*at]) && is_literal(tokens.get(at + 1))));
    kept.map(|at| tokens[at].clone()).collect()
}

/// Words that mean something in other dialects and nothing in PostgreSQL's queries (kwlist.h; FORMAT, since 16, in JSON's): there they are
/// names wherever they stand.
const NAMES: [&str; 19] = [
    "anti",
    "apply",
    "asof",
    "connect",
    "distribute",
    "final",
    "format",
    "minus",
    "open",
    "pivot",
    "prewhere",
    "qualify",
    "sample",
    "semi",
    "settings",
    "sort",
    "straight_join",
    "top",
    "unpivot",
];

fn with_plain_names(mut tokens: Vec<Token>) -> Vec<Token> {
    for at in 0..tokens.len() {
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let is_type = matches!(before, Some(Token::DoubleColon))
            || matches!(before, Some(Token::Word(word)) if word.keyword == Keyword::AS);
        let has_value = matches!(
            tokens.get(at + 1),
            Some(
                Token::SingleQuotedString(_)
                    | Token::EscapedStringLiteral(_)
                    | Token::DollarQuotedString(_)
                    | Token::LParen
            )
        );
        if let Token::Word(word) = &mut tokens[at]
            && word.quote_style.is_none()
            && (NAMES.iter().any(|name| word.value.eq_ignore_ascii_case(name))
                // A column, where neither a literal of the type follows nor the type is meant.
                || word.keyword == Keyword::INTERVAL && !is_type && !has_value)
        {
            word.keyword = Keyword::NoKeyword;
        }
    }
    tokens
}

/// The second parser takes ONLY for a table, SYMMETRIC and ASYMMETRIC for columns. They are reserved: without quotes they name
/// nothing (gram.y). ONLY stands before tables or, behind ROW or ROWS, at the end of FETCH FIRST, the others behind BETWEEN. As the
/// count of FETCH FIRST it knows literals and parameters alone: it reads none. A table that only the count names is then missing,
/// and the statement refused.
fn with_known_words(sql: &str) -> Cow<'_, str> {
    let Ok(tokens) = lexer::tokens(sql) else { return Cow::Borrowed(sql) };
    let is_behind = |at: usize, words: &[&str]| {
        at.checked_sub(1).is_some_and(|before| words.iter().any(|word| tokens[before].is_word(word)))
    };
    let is_unknown = |at: usize, token: &lexer::Token<'_>| {
        let is_symmetry = token.is_word("symmetric") || token.is_word("asymmetric");
        (token.is_word("only") && !is_behind(at, &["row", "rows"])) || (is_symmetry && is_behind(at, &["between"]))
    };
    let mut text = Cow::Borrowed(sql);
    for count in fetch_counts(&tokens) {
        let blank = " ".repeat(count.len());
        text.to_mut().replace_range(count, &blank);
    }
    for (_, token) in tokens.iter().enumerate().filter(|(at, token)| is_unknown(*at, token)) {
        text.to_mut().replace_range(token.start..token.end(), &" ".repeat(token.text.len()));
    }
    text
}

/// Where the counts of FETCH FIRST and FETCH NEXT stand. FETCH is reserved (gram.y).
fn fetch_counts(tokens: &[lexer::Token<'_>]) -> Vec<Range<usize>> {
    let is_word = |at: usize, words: [&str; 2]| {
        tokens.get(at).is_some_and(|token: &lexer::Token<'_>| words.iter().any(|word| token.is_word(word)))
    };
    let mut counts = Vec::new();
    for at in (2..tokens.len()).filter(|at| tokens[at - 2].is_word("fetch") && is_word(at - 1, ["first", "next"])) {
        let mut depth = 0;
        let is_end = |end: &usize| {
            depth += i32::from(tokens[*end].is_symbol("(")) - i32::from(tokens[*end].is_symbol(")"));
            depth == 0 && is_word(*end, ["row", "rows"])
        };
        if let Some(end) = (at..tokens.len()).find(is_end)
            && end > at
        {
            counts.push(tokens[at].start..tokens[end - 1].end());
        }
    }
    counts
}

/// The names of relations and of common table expressions.
#[derive(Default)]
struct Names {
    relations: BTreeSet<String>,
    common: BTreeSet<String>,
    /// Functions in FROM.
    functions: BTreeSet<String>,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.common.insert(name(&table.alias.name).into_owned());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name: called, args: Some(_), .. } | TableFactor::Function { name: called, .. } =
            factor
            && let Some(last) = called.0.last().and_then(|part| part.as_ident())
        {
            self.functions.insert(name(last).into_owned());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if let Some(last) = relation.0.last().and_then(|part| part.as_ident()) {
            self.relations.insert(name(last).into_owned());
        }
        ControlFlow::Continue(())
    }
}

/// As PostgreSQL knows it: folded unless quoted.
fn name(ident: &Ident) -> Cow<'_, str> {
    if ident.quote_style.is_some() { Cow::Borrowed(&ident.value) } else { fold(&ident.value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmed(sql: &str, expected: &[&str]) -> bool {
        confirm(sql, expected.iter().copied()).is_ok()
    }

    #[test]
    fn the_same_tables_are_read() {
        assert!(confirmed("SELECT a FROM Flights f JOIN public.\"Air Lines\" USING (c)", &["flights", "Air Lines"]));
        assert!(confirmed("WITH x AS (SELECT 1 FROM t) SELECT * FROM x", &["t"]));
        assert!(confirmed("SELECT 1", &[]));
        let interval = "SELECT interval, x::interval, CAST(y AS interval), interval '1 day', interval (3) '1' FROM t GROUP BY interval, t.interval";
        assert!(confirmed(interval, &["t"]));
        for name in NAMES {
            let sql = format!(
                "WITH {name} AS (SELECT id AS {name} FROM t) SELECT {name}.id, {name}.*, u.a {name} FROM {name}, u {name} WHERE {name}.a = 1"
            );
            assert!(confirmed(&sql, &["t", "u"]), "{name}");
            assert!(
                confirmed(&format!("SELECT {name} FROM (SELECT a FROM t) {name} JOIN {name} ON true"), &["t", name]),
                "{name}"
            );
        }
        assert!(confirmed("SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING EXCLUDE TIES) FROM t", &["t"]));
        assert!(confirmed("SELECT a FROM ONLY t x, only u JOIN ONLY \"only\" o USING (a)", &["t", "u", "only"]));
        assert!(confirmed("SELECT a FROM t FETCH FIRST 2 ROWS ONLY", &["t"]));
        assert!(confirmed("SELECT a FROM t ORDER BY a OFFSET 1 ROW FETCH NEXT (1 + $1) ROWS WITH TIES", &["t"]));
        assert!(confirmed("SELECT a FROM t ORDER BY a FETCH FIRST ROW WITH TIES", &["t"]));
        assert!(confirmed("SELECT a FROM t WHERE a NOT BETWEEN SYMMETRIC 2 AND (SELECT b FROM u)", &["t", "u"]));
        assert!(confirmed("SELECT a BETWEEN ASYMMETRIC 2 AND 3, a \"symmetric\" FROM t", &["t"]));
        assert!(confirmed("SELECT * FROM (SELECT * FROM t) s WHERE a IN ('t2')", &["t"]));
        assert!(confirmed("SELECT * FROM generate_series(1, 2) g, t WHERE a IN (SELECT b FROM u)", &["t", "u"]));
        assert!(confirmed("WITH t AS (SELECT * FROM t) SELECT * FROM t UNION SELECT * FROM u", &["t", "u"]));
    }

    #[test]
    fn what_differs_is_refused() {
        assert!(!confirmed("SELECT a FROM t, u", &["t"]));
        assert!(!confirmed("SELECT a FROM t FETCH FIRST (SELECT b FROM u) ROWS ONLY", &["t", "u"]));
        assert!(!confirmed("SELECT a FROM t", &["t", "u"]));
        assert!(!confirmed("SELECT a FROM t; SELECT 1", &["t"]));
        assert!(!confirmed("DELETE FROM t", &["t"]));
        assert!(!confirmed("SELECT FROM WHERE", &[]));
        assert!(!confirmed("SELECT * FROM (SELECT * FROM exclude ties) s, t", &["exclude", "t"]));
    }
}
