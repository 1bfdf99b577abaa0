//! Tokens → [`Query`], following PostgreSQL's gram.y for the SELECT forms that the binder knows.
//!
//! Anything else is an `UpstreamReason`; upstream decides whether it is an error. A hand-written parser, because the
//! grammar is the first half of "exact": operator precedence, which keyword may be which name, and what the SQL forms
//! (EXTRACT, SUBSTRING, AT TIME ZONE...) stand for are gram.y's and are kept as it has them.

mod expression;
mod name;

use crate::reason::UpstreamReason;
use crate::statement::ast::{
    Alias, CommonTable, Expr, JoinCondition, JoinType, OrderItem, Quantifier, Query, TableRef, Target,
};
use crate::statement::lexer::{Token, TokenKind};

/// Nesting of parentheses, subqueries and right operands. Bounds the stack here and in every later walk.
const NESTING_MAX: u32 = 100;
/// Operators beyond the first in chains such as `a || b || c`, over the whole statement: such a chain nests to the left.
const CHAINED_MAX: u32 = 200;

/// The query that `tokens` (one statement without its semicolon) is.
pub fn parse_query(tokens: &[Token<'_>]) -> Result<Query, UpstreamReason> {
    let mut parser = Parser { tokens, at: 0, nesting: 0, chained: 0 };
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
}

impl<'t, 'a> Parser<'t, 'a> {
    /// select_no_parens, or one that is all in parentheses.
    fn query(&mut self) -> Parsed<Query> {
        self.nest()?;
        let query = if self.accept_symbol("(") {
            let query = self.query()?;
            self.expect_symbol(")")?;
            self.refuse_clause_after_parentheses()?;
            query
        } else {
            let with = self.with_clause()?;
            self.select(with)?
        };
        self.unnest();
        Ok(query)
    }

    /// `(SELECT ...) ORDER BY ...` and set operations.
    fn refuse_clause_after_parentheses(&self) -> Parsed<()> {
        match self.peek() {
            None => Ok(()),
            Some(token) if token.is_symbol(")") => Ok(()),
            Some(_) => Err(self.unexpected()),
        }
    }

    fn with_clause(&mut self) -> Parsed<Vec<CommonTable>> {
        let mut tables = Vec::new();
        if !self.accept_word("with") {
            return Ok(tables);
        }
        if self.peek_is_word("recursive") {
            return Err(unsupported("WITH RECURSIVE"));
        }
        loop {
            let name = self.column_id()?;
            let columns = if self.peek_is_symbol("(") { self.name_list()? } else { Vec::new() };
            self.expect_word("as")?;
            if self.accept_word("not") {
                self.expect_word("materialized")?;
            } else {
                self.accept_word("materialized");
            }
            self.expect_symbol("(")?;
            let query = self.query()?;
            self.expect_symbol(")")?;
            tables.push(CommonTable { name, columns, query });
            if !self.accept_symbol(",") {
                return Ok(tables);
            }
        }
    }

    /// simple_select with the clauses that select_no_parens adds.
    fn select(&mut self, with: Vec<CommonTable>) -> Parsed<Query> {
        self.expect_word("select")?;
        let quantifier = self.quantifier()?;
        let targets = self.list(Self::target)?;
        let from = if self.accept_word("from") { self.list(Self::table_ref)? } else { Vec::new() };
        let filter = if self.accept_word("where") { Some(self.expression()?) } else { None };
        let group_by = self.group_clause()?;
        let having = if self.accept_word("having") { Some(self.expression()?) } else { None };
        let order_by = if self.accept_word("order") {
            self.expect_word("by")?;
            self.list(Self::order_item)?
        } else {
            Vec::new()
        };
        let (limit, offset) = self.limit_clauses()?;
        Ok(Query { with, quantifier, targets, from, filter, group_by, having, order_by, limit, offset })
    }

    fn quantifier(&mut self) -> Parsed<Quantifier> {
        if self.accept_word("distinct") {
            if self.peek_is_word("on") {
                return Err(unsupported("DISTINCT ON"));
            }
            return Ok(Quantifier::Distinct);
        }
        self.accept_word("all");
        Ok(Quantifier::All)
    }

    fn group_clause(&mut self) -> Parsed<Vec<Expr>> {
        if !self.accept_word("group") {
            return Ok(Vec::new());
        }
        self.expect_word("by")?;
        if self.peek_is_word("distinct") {
            return Err(unsupported("GROUP BY DISTINCT"));
        }
        self.accept_word("all");
        // ROLLUP (...), CUBE (...) and GROUPING SETS (...) come out as calls or columns of those names; refuse them by name.
        if ["rollup", "cube", "grouping"].iter().any(|word| self.peek_is_word(word)) {
            return Err(unsupported("grouping sets"));
        }
        self.list(|parser| {
            let starts_grouping_set = ["rollup", "cube", "grouping"].iter().any(|word| parser.peek_is_word(word));
            if starts_grouping_set { Err(unsupported("grouping sets")) } else { parser.expression() }
        })
    }

    fn target(&mut self) -> Parsed<Target> {
        if let Some(qualifier) = self.accept_star()? {
            return Ok(Target::Star(qualifier));
        }
        let expr = self.expression()?;
        let label = if self.accept_word("as") { Some(self.column_label()?) } else { self.bare_label()? };
        Ok(Target::Expr { expr, label })
    }

    /// `*`, or `name.*`.
    fn accept_star(&mut self) -> Parsed<Option<Vec<String>>> {
        let mut ahead = 0;
        while self.peek_at(ahead).is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedName))
            && self.peek_at(ahead + 1).is_some_and(|token| token.is_symbol("."))
        {
            ahead += 2;
        }
        if !self.peek_at(ahead).is_some_and(|token| token.is_symbol("*")) {
            return Ok(None);
        }
        let mut qualifier = Vec::new();
        while !self.accept_symbol("*") {
            qualifier.push(if qualifier.is_empty() { self.column_id()? } else { self.column_label()? });
            self.expect_symbol(".")?;
        }
        Ok(Some(qualifier))
    }

    fn order_item(&mut self) -> Parsed<OrderItem> {
        let expr = self.expression()?;
        if self.peek_is_word("using") {
            return Err(unsupported("ORDER BY USING"));
        }
        let descending = self.accept_word("desc");
        if !descending {
            self.accept_word("asc");
        }
        let nulls_first = if self.accept_word("nulls") {
            if self.accept_word("first") {
                Some(true)
            } else {
                self.expect_word("last")?;
                Some(false)
            }
        } else {
            None
        };
        Ok(OrderItem { expr, descending, nulls_first })
    }

    /// LIMIT, OFFSET and FETCH FIRST, each once, in any order.
    fn limit_clauses(&mut self) -> Parsed<(Option<Expr>, Option<Expr>)> {
        let (mut limit, mut offset) = (None, None);
        loop {
            if self.accept_word("limit") {
                let count = if self.accept_word("all") { Expr::Null } else { self.expression()? };
                if limit.replace(count).is_some() {
                    return Err(self.unexpected());
                }
            } else if self.accept_word("fetch") {
                if limit.replace(self.fetch_clause()?).is_some() {
                    return Err(self.unexpected());
                }
            } else if self.accept_word("offset") {
                let count = self.expression()?;
                if !self.accept_word("row") {
                    self.accept_word("rows");
                }
                if offset.replace(count).is_some() {
                    return Err(self.unexpected());
                }
            } else if self.peek_is_word("for") {
                return Err(unsupported("row locking clause"));
            } else {
                return Ok((limit, offset));
            }
        }
    }

    fn fetch_clause(&mut self) -> Parsed<Expr> {
        if !self.accept_word("first") {
            self.expect_word("next")?;
        }
        let count = if self.peek_is_word("row") || self.peek_is_word("rows") {
            Expr::Number("1".into())
        } else {
            self.fetch_count()?
        };
        if !self.accept_word("row") {
            self.expect_word("rows")?;
        }
        if self.peek_is_word("with") {
            return Err(unsupported("FETCH FIRST WITH TIES"));
        }
        self.expect_word("only")?;
        Ok(count)
    }

    // -- FROM

    fn table_ref(&mut self) -> Parsed<TableRef> {
        let left = self.table_primary()?;
        self.joins(left)
    }

    /// The joins that follow `left`. `a JOIN b JOIN c ON x ON y` nests to the right: an inner join takes its own
    /// qualifier before the outer one gets its.
    fn joins(&mut self, mut left: TableRef) -> Parsed<TableRef> {
        while let Some(kind) = self.accept_join()? {
            let mut right = self.table_primary()?;
            let condition = if kind == JoinType::Cross {
                JoinCondition::None
            } else {
                self.nest()?;
                right = self.joins(right)?;
                self.unnest();
                self.join_condition()?
            };
            self.chain()?;
            left = TableRef::Join { kind, left: Box::new(left), right: Box::new(right), condition };
        }
        Ok(left)
    }

    fn accept_join(&mut self) -> Parsed<Option<JoinType>> {
        let kind = if self.accept_word("cross") {
            JoinType::Cross
        } else if self.accept_word("inner") {
            JoinType::Inner
        } else if self.accept_word("left") {
            self.accept_word("outer");
            JoinType::Left
        } else if self.peek_is_word("join") {
            JoinType::Inner
        } else if let Some(other) = ["natural", "right", "full"].iter().find(|word| self.peek_is_word(word)) {
            return Err(unsupported(format!("{other} join")));
        } else {
            return Ok(None);
        };
        self.expect_word("join")?;
        Ok(Some(kind))
    }

    fn join_condition(&mut self) -> Parsed<JoinCondition> {
        if self.accept_word("using") {
            let columns = self.name_list()?;
            return if self.peek_is_word("as") {
                Err(unsupported("JOIN USING alias"))
            } else {
                Ok(JoinCondition::Using(columns))
            };
        }
        self.expect_word("on")?;
        Ok(JoinCondition::On(self.expression()?))
    }

    fn table_primary(&mut self) -> Parsed<TableRef> {
        self.nest()?;
        let table = if self.peek_is_symbol("(") { self.parenthesised_table()? } else { self.named_table()? };
        self.unnest();
        Ok(table)
    }

    fn named_table(&mut self) -> Parsed<TableRef> {
        if self.peek_is_word("only") || self.peek_is_word("lateral") {
            return Err(unsupported("ONLY or LATERAL"));
        }
        let mut name = vec![self.column_id()?];
        while self.accept_symbol(".") {
            name.push(self.column_label()?);
        }
        if self.peek_is_symbol("(") {
            return Err(unsupported("function in FROM"));
        }
        if name.len() > 2 {
            return Err(unsupported("database-qualified name"));
        }
        self.accept_symbol("*");
        let alias = self.alias()?;
        if self.peek_is_word("tablesample") {
            return Err(unsupported("TABLESAMPLE"));
        }
        Ok(TableRef::Table { name, alias })
    }

    /// A subquery with its alias, or a joined table.
    fn parenthesised_table(&mut self) -> Parsed<TableRef> {
        if self.parentheses_hold_query() {
            self.expect_symbol("(")?;
            let query = Box::new(self.query()?);
            self.expect_symbol(")")?;
            // Before PostgreSQL 16 the alias is required.
            let alias = self.alias()?.ok_or_else(|| unsupported("subquery in FROM without alias"))?;
            return Ok(TableRef::Subquery { query, alias });
        }
        self.expect_symbol("(")?;
        let table = self.table_ref()?;
        if !matches!(table, TableRef::Join { .. }) {
            return Err(self.unexpected());
        }
        self.expect_symbol(")")?;
        if self.alias()?.is_some() {
            return Err(unsupported("alias of a join"));
        }
        Ok(table)
    }

    /// Whether the first word behind the parentheses that open here begins a query.
    fn parentheses_hold_query(&self) -> bool {
        let opened = self.tokens[self.at..].iter().find(|token| !token.is_symbol("("));
        opened.is_some_and(|token| ["select", "with", "values", "table"].iter().any(|word| token.is_word(word)))
    }

    /// opt_alias_clause.
    fn alias(&mut self) -> Parsed<Option<Alias>> {
        if !self.accept_word("as") && !self.peek_is_column_id() {
            return Ok(None);
        }
        let name = self.column_id()?;
        let columns = if self.peek_is_symbol("(") { self.name_list()? } else { Vec::new() };
        Ok(Some(Alias { name, columns }))
    }

    /// `(name, name...)`.
    fn name_list(&mut self) -> Parsed<Vec<String>> {
        self.expect_symbol("(")?;
        let names = self.list(Self::column_id)?;
        self.expect_symbol(")")?;
        Ok(names)
    }

    // -- tokens

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
                let near: String = token.text.chars().take(40).collect();
                UpstreamReason::NotParsed(format!("at or near \"{near}\", byte {}", token.start).into())
            }
            None => UpstreamReason::NotParsed("at end of input".into()),
        }
    }

    fn nest(&mut self) -> Parsed<()> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX { Err(unsupported("nesting too deep")) } else { Ok(()) }
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
