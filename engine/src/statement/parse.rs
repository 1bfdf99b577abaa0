//! Tokens → [`Query`], following PostgreSQL's gram.y for the SELECT forms that the binder knows.
//!
//! Anything else is an `UpstreamReason`; upstream decides whether it is an error. A hand-written parser, because the
//! grammar is the first half of "exact": operator precedence, which keyword may be which name, and what the SQL forms
//! (EXTRACT, SUBSTRING, AT TIME ZONE...) stand for are gram.y's and are kept as it has them.

mod call;
mod expression;
mod from;
mod name;
mod query;

use crate::reason::UpstreamReason;
use crate::statement::ast::Query;
use crate::statement::fingerprint;
use crate::statement::lexer::Token;

/// Nesting of parentheses, subqueries and right operands. Bounds the stack here and in every later walk.
const NESTING_MAX: u32 = 100;
/// Operators beyond the first in chains such as `a || b || c`, over the whole statement: such a chain nests to the left.
const CHAINED_MAX: u32 = 200;
/// Casts of one constant that do not count among them: SQLAlchemy writes `'...'::uuid::UUID` for each of hundreds of keys, and a
/// constant is no deeper for these few.
const CONSTANT_CASTS_MAX: u32 = 3;

/// Readings that may be begun a second time, because parentheses may hold a query or something else.
const RETRIES_MAX: u32 = 64;

/// The query that `tokens` (one statement without its semicolon) is.
pub fn parse_query(tokens: &[Token<'_>]) -> Result<Query, UpstreamReason> {
    let mut parser = Parser { tokens, at: 0, nesting: 0, chained: 0, retries: 0 };
    let query = parser.query()?;
    match parser.peek() {
        None => Ok(query),
        Some(_) => Err(parser.unexpected()),
    }
}

type Parsed<T> = Result<T, UpstreamReason>;

struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    nesting: u32,
    chained: u32,
    retries: u32,
}

impl<'t, 'a> Parser<'t, 'a> {
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept_symbol(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn peek(&self) -> Option<&'t Token<'a>> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<&'t Token<'a>> {
        self.tokens.get(self.at + ahead)
    }

    fn peek_is_word(&self, word: &str) -> bool {
        self.peek().is_some_and(|token| token.is_word(word))
    }

    fn peek_is_symbol(&self, symbol: &str) -> bool {
        self.peek().is_some_and(|token| token.is_symbol(symbol))
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let accepted = self.peek_is_word(word);
        self.at += usize::from(accepted);
        accepted
    }

    fn accept_symbol(&mut self, symbol: &str) -> bool {
        let accepted = self.peek_is_symbol(symbol);
        self.at += usize::from(accepted);
        accepted
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.accept_word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn expect_symbol(&mut self, symbol: &str) -> Parsed<()> {
        if self.accept_symbol(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> UpstreamReason {
        match self.peek() {
            Some(token) => {
                let near = fingerprint::without_value(token);
                let near: String = near.chars().take(40).collect();
                UpstreamReason::NotParsed(format!("at or near \"{near}\", byte {}", token.start).into())
            }
            None => UpstreamReason::NotParsed("at end of input".into()),
        }
    }

    fn nest(&mut self) -> Parsed<()> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX { Err(unsupported("nesting too deep")) } else { Ok(()) }
    }

    /// What is open here as a query, if it is one; else nothing was read. Parentheses do not tell before they are closed.
    fn query_or_nothing(&mut self) -> Parsed<Option<Query>> {
        let (at, nesting) = (self.at, self.nesting);
        if !self.parentheses_hold_query() {
            return Ok(None);
        }
        self.expect_symbol("(")?;
        // Each is another join around the rows that it is asked for.
        self.chain()?;
        if !self.peek_is_symbol("(") {
            let query = self.query()?;
            self.expect_symbol(")")?;
            return Ok(Some(query));
        }
        self.retries += 1;
        if self.retries > RETRIES_MAX {
            return Err(unsupported("too many parentheses"));
        }
        if let Ok(query) = self.query()
            && self.accept_symbol(")")
        {
            return Ok(Some(query));
        }
        (self.at, self.nesting) = (at, nesting);
        Ok(None)
    }

    /// Whether the first word behind the parentheses that open here begins a query.
    fn parentheses_hold_query(&self) -> bool {
        let rest = &self.tokens[self.at..];
        let opened = rest.iter().find(|token| !token.is_symbol("("));
        let begins = |token: &Token<'_>| ["select", "with", "values", "table"].iter().any(|word| token.is_word(word));
        self.peek_is_symbol("(") && opened.is_some_and(begins)
    }

    /// Errors end the parse, so only success has to count back.
    fn unnest(&mut self) {
        self.nesting -= 1;
    }

    fn chain(&mut self) -> Parsed<()> {
        self.chained += 1;
        if self.chained > CHAINED_MAX { Err(unsupported("operator chain too long")) } else { Ok(()) }
    }
}

fn unsupported(what: impl Into<std::borrow::Cow<'static, str>>) -> UpstreamReason {
    UpstreamReason::Unsupported(what.into())
}

#[cfg(test)]
mod tests;
