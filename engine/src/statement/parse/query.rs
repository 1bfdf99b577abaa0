//! select_no_parens: WITH, set operations, SELECT, VALUES, and the clauses around them.

use super::expression::is_count;
use super::{Parsed, Parser, unsupported};
use crate::statement::ast::{
    Body, CommonTable, Exclusion, Expr, Frame, FrameBound, FrameUnit, GroupItem, OrderItem, Quantifier, Query, Select,
    SetOperation, TableRef, Target, Window,
};
use crate::statement::lexer::TokenKind;

impl Parser<'_, '_> {
    /// select_no_parens, or one that is all in parentheses.
    pub(super) fn query(&mut self) -> Parsed<Query> {
        self.nest()?;
        let is_recursive = self.peek_is_word("with") && self.peek_at(1).is_some_and(|token| token.is_word("recursive"));
        let with = self.with_clause()?;
        let mut query = self.set_operations(0)?;
        let order_by = self.order_by_clause()?;
        let LimitClauses { limit, offset, with_ties } = self.limit_clauses()?;
        self.unnest();
        // Clauses inside and outside of the parentheses belong to one statement, each given once (insertSelectOptions).
        let is_given_twice = (!query.with.is_empty() && !with.is_empty())
            || (!query.order_by.is_empty() && !order_by.is_empty())
            || (query.limit.is_some() && limit.is_some())
            || (query.offset.is_some() && offset.is_some());
        if is_given_twice {
            return Err(self.unexpected());
        }
        if !with.is_empty() {
            (query.with, query.is_recursive) = (with, is_recursive);
        }
        if !order_by.is_empty() {
            query.order_by = order_by;
        }
        // insertSelectOptions; transformLimitClause: a NULL that is written is an error there, too.
        if with_ties && (query.order_by.is_empty() || limit == Some(Expr::Null)) {
            return Err(unsupported("FETCH FIRST WITH TIES without ORDER BY or count"));
        }
        query.with_ties |= with_ties;
        query.limit = query.limit.or(limit);
        query.offset = query.offset.or(offset);
        Ok(query)
    }

    fn with_clause(&mut self) -> Parsed<Vec<CommonTable>> {
        let mut tables = Vec::new();
        if !self.accept_word("with") {
            return Ok(tables);
        }
        self.accept_word("recursive");
        loop {
            let name = self.column_id()?;
            let columns = if self.peek_is_symbol("(") { self.name_list()? } else { Vec::new() };
            self.expect_word("as")?;
            let is_materialized = if self.accept_word("not") {
                self.expect_word("materialized")?;
                Some(false)
            } else {
                self.accept_word("materialized").then_some(true)
            };
            self.expect_symbol("(")?;
            let query = self.query()?;
            self.expect_symbol(")")?;
            if self.peek_is_word("search") || self.peek_is_word("cycle") {
                return Err(unsupported("SEARCH or CYCLE"));
            }
            tables.push(CommonTable { name, columns, is_materialized, query });
            if !self.accept_symbol(",") {
                return Ok(tables);
            }
        }
    }

    /// select_clause: UNION and EXCEPT bind alike and to the left, INTERSECT closer.
    fn set_operations(&mut self, minimum: u8) -> Parsed<Query> {
        let mut left = self.set_operand()?;
        loop {
            let (operation, level) = if self.peek_is_word("union") {
                (SetOperation::Union, 1)
            } else if self.peek_is_word("except") {
                (SetOperation::Except, 1)
            } else if self.peek_is_word("intersect") {
                (SetOperation::Intersect, 2)
            } else {
                return Ok(left);
            };
            if level < minimum {
                return Ok(left);
            }
            self.at += 1;
            self.chain()?;
            let is_all = self.accept_word("all");
            if !is_all {
                self.accept_word("distinct");
            }
            let right = Box::new(self.set_operations(level + 1)?);
            left = plain(Body::Set { operation, is_all, left: Box::new(left), right });
        }
    }

    /// simple_select, or a query in parentheses.
    fn set_operand(&mut self) -> Parsed<Query> {
        if self.accept_symbol("(") {
            let query = self.query()?;
            self.expect_symbol(")")?;
            return Ok(query);
        }
        if self.accept_word("values") {
            let rows = self.list(|parser| {
                parser.expect_symbol("(")?;
                let row = parser.list(Self::expression)?;
                parser.expect_symbol(")")?;
                Ok(row)
            })?;
            return Ok(plain(Body::Values(rows)));
        }
        if self.accept_word("table") {
            let table = self.named_table()?;
            if !matches!(table, TableRef::Table { alias: None, .. }) {
                return Err(self.unexpected());
            }
            let select = Select { targets: vec![Target::Star(Vec::new())], from: vec![table], ..empty_select() };
            return Ok(plain(Body::Select(Box::new(select))));
        }
        Ok(plain(Body::Select(Box::new(self.select()?))))
    }

    fn select(&mut self) -> Parsed<Select> {
        self.expect_word("select")?;
        let quantifier = self.quantifier()?;
        let targets = match self.is_of_exists() && self.peek_is_word("from") {
            // Without columns; only whether there is a row matters.
            true => vec![Target::Expr { expr: Expr::Number("1".into()), label: None }],
            false => self.list(Self::target)?,
        };
        let from = if self.accept_word("from") { self.list(Self::table_ref)? } else { Vec::new() };
        let filter = if self.accept_word("where") { Some(self.expression()?) } else { None };
        let group_by = self.group_clause()?;
        let having = if self.accept_word("having") { Some(self.expression()?) } else { None };
        let windows = if self.accept_word("window") {
            self.list(|parser| {
                let name = parser.column_id()?;
                parser.expect_word("as")?;
                Ok((name, parser.window()?))
            })?
        } else {
            Vec::new()
        };
        Ok(Select { quantifier, targets, from, filter, group_by, having, windows })
    }

    /// Whether the last tokens are `EXISTS (SELECT`.
    fn is_of_exists(&self) -> bool {
        let [.., exists, open, select] = &self.tokens[..self.at] else { return false };
        exists.is_word("exists") && open.is_symbol("(") && select.is_word("select")
    }

    /// ORDER BY items, if it is there.
    pub(super) fn order_by_clause(&mut self) -> Parsed<Vec<OrderItem>> {
        if !self.accept_word("order") {
            return Ok(Vec::new());
        }
        self.expect_word("by")?;
        self.list(Self::order_item)
    }

    fn quantifier(&mut self) -> Parsed<Quantifier> {
        if self.accept_word("distinct") {
            if self.accept_word("on") {
                self.expect_symbol("(")?;
                let on = self.list(Self::expression)?;
                self.expect_symbol(")")?;
                return Ok(Quantifier::DistinctOn(on));
            }
            return Ok(Quantifier::Distinct);
        }
        self.accept_word("all");
        Ok(Quantifier::All)
    }

    fn group_clause(&mut self) -> Parsed<Vec<GroupItem>> {
        if !self.accept_word("group") {
            return Ok(Vec::new());
        }
        self.expect_word("by")?;
        if self.peek_is_word("distinct") {
            return Err(unsupported("GROUP BY DISTINCT"));
        }
        self.accept_word("all");
        self.list(Self::group_item)
    }

    fn group_item(&mut self) -> Parsed<GroupItem> {
        let next_is = |parser: &Self, symbol: &str| parser.peek_at(1).is_some_and(|token| token.is_symbol(symbol));
        if self.peek_is_symbol("(") && next_is(self, ")") {
            self.at += 2;
            return Ok(GroupItem::Empty);
        }
        if (self.peek_is_word("rollup") || self.peek_is_word("cube")) && next_is(self, "(") {
            let is_rollup = self.peek_is_word("rollup");
            self.at += 2;
            let elements = self.list(|parser| {
                Ok(match parser.expression()? {
                    Expr::Row { items, is_explicit: false } => items,
                    single => vec![single],
                })
            })?;
            self.expect_symbol(")")?;
            return Ok(if is_rollup { GroupItem::Rollup(elements) } else { GroupItem::Cube(elements) });
        }
        if self.peek_is_word("grouping") && self.peek_at(1).is_some_and(|token| token.is_word("sets")) {
            self.nest()?;
            self.at += 2;
            self.expect_symbol("(")?;
            let sets = self.list(Self::group_item)?;
            self.expect_symbol(")")?;
            self.unnest();
            return Ok(GroupItem::Sets(sets));
        }
        Ok(GroupItem::Expr(self.expression()?))
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
    fn limit_clauses(&mut self) -> Parsed<LimitClauses> {
        let LimitClauses { mut limit, mut offset, mut with_ties } = LimitClauses::default();
        loop {
            if self.accept_word("limit") {
                let count = if self.accept_word("all") { Expr::Null } else { self.expression()? };
                if limit.replace(count).is_some() {
                    return Err(self.unexpected());
                }
            } else if self.accept_word("fetch") {
                let count;
                (count, with_ties) = self.fetch_clause()?;
                if limit.replace(count).is_some() {
                    return Err(self.unexpected());
                }
            } else if self.accept_word("offset") {
                let (tokens, first) = (self.tokens, self.at);
                let count = self.expression()?;
                let end = self.at;
                // In front of ROWS it is no a_expr (gram.y, offset_clause).
                if (self.accept_word("row") || self.accept_word("rows")) && !is_count(&tokens[first..end]) {
                    return Err(self.unexpected());
                }
                if offset.replace(count).is_some() {
                    return Err(self.unexpected());
                }
            } else if self.peek_is_word("for") {
                return Err(unsupported("row locking clause"));
            } else {
                return Ok(LimitClauses { limit, offset, with_ties });
            }
        }
    }

    /// The count, and whether it is WITH TIES.
    fn fetch_clause(&mut self) -> Parsed<(Expr, bool)> {
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
        let with_ties = self.accept_word("with");
        self.expect_word(if with_ties { "ties" } else { "only" })?;
        Ok((count, with_ties))
    }

    /// window_specification, in its parentheses.
    pub(super) fn window(&mut self) -> Parsed<Window> {
        self.expect_symbol("(")?;
        let is_clause = ["partition", "order", "range", "rows", "groups"].iter().any(|word| self.peek_is_word(word));
        let base = if is_clause || self.peek_is_symbol(")") { None } else { Some(self.column_id()?) };
        let partition_by = if self.accept_word("partition") {
            self.expect_word("by")?;
            self.list(Self::expression)?
        } else {
            Vec::new()
        };
        let order_by = self.order_by_clause()?;
        let frame = self.frame()?;
        self.expect_symbol(")")?;
        Ok(Window { base, partition_by, order_by, frame })
    }

    /// opt_frame_clause.
    fn frame(&mut self) -> Parsed<Option<Frame>> {
        let unit = if self.accept_word("rows") {
            FrameUnit::Rows
        } else if self.accept_word("range") {
            FrameUnit::Range
        } else if self.accept_word("groups") {
            FrameUnit::Groups
        } else {
            return Ok(None);
        };
        let (start, end) = if self.accept_word("between") {
            let start = self.frame_bound()?;
            self.expect_word("and")?;
            (start, self.frame_bound()?)
        } else {
            (self.frame_bound()?, FrameBound::CurrentRow)
        };
        Ok(Some(Frame { unit, start, end, exclusion: self.exclusion()? }))
    }

    fn exclusion(&mut self) -> Parsed<Exclusion> {
        if !self.accept_word("exclude") {
            return Ok(Exclusion::Nothing);
        }
        if self.accept_word("current") {
            self.expect_word("row")?;
            return Ok(Exclusion::CurrentRow);
        }
        if self.accept_word("group") {
            return Ok(Exclusion::Group);
        }
        if self.accept_word("ties") {
            return Ok(Exclusion::Ties);
        }
        self.expect_word("no")?;
        self.expect_word("others")?;
        Ok(Exclusion::Nothing)
    }

    fn frame_bound(&mut self) -> Parsed<FrameBound> {
        if self.accept_word("unbounded") {
            if self.accept_word("preceding") {
                return Ok(FrameBound::UnboundedPreceding);
            }
            self.expect_word("following")?;
            return Ok(FrameBound::UnboundedFollowing);
        }
        if self.peek_is_word("current") && self.peek_at(1).is_some_and(|token| token.is_word("row")) {
            self.at += 2;
            return Ok(FrameBound::CurrentRow);
        }
        let distance = Box::new(self.expression()?);
        if self.accept_word("preceding") {
            return Ok(FrameBound::Preceding(distance));
        }
        self.expect_word("following")?;
        Ok(FrameBound::Following(distance))
    }
}

/// What limit_clause and offset_clause say.
#[derive(Default)]
struct LimitClauses {
    limit: Option<Expr>,
    offset: Option<Expr>,
    with_ties: bool,
}

fn plain(body: Body) -> Query {
    let (with, order_by) = (Vec::new(), Vec::new());
    Query { with, is_recursive: false, body, order_by, limit: None, offset: None, with_ties: false }
}

fn empty_select() -> Select {
    Select {
        quantifier: Quantifier::All,
        targets: Vec::new(),
        from: Vec::new(),
        filter: None,
        group_by: Vec::new(),
        having: None,
        windows: Vec::new(),
    }
}
