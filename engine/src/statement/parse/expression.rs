//! a_expr, b_expr and c_expr of gram.y: precedence climbing over PostgreSQL's own precedence table.

use super::call::system_call;
use super::name::{WordClass, word_class};
use super::{Parsed, Parser, unsupported};
use crate::statement::ast::{ArrayItems, ArrayLiteral, Expr, SqlValueFunction, TypeName};
use crate::statement::keywords::{self, KeywordClass};
use crate::statement::lexer::{Token, TokenKind, fold};
use crate::types::array::plain_items;

/// The %left, %right and %nonassoc lines of gram.y, loosest first.
mod precedence {
    pub(super) const OR: u8 = 1;
    pub(super) const AND: u8 = 2;
    pub(super) const NOT: u8 = 3;
    pub(super) const IS: u8 = 4;
    pub(super) const COMPARISON: u8 = 5;
    pub(super) const LIKE: u8 = 6;
    pub(super) const ESCAPE: u8 = 7;
    pub(super) const OPERATOR: u8 = 8;
    pub(super) const PLUS: u8 = 9;
    pub(super) const TIMES: u8 = 10;
    pub(super) const POWER: u8 = 11;
    pub(super) const AT: u8 = 12;
    pub(super) const COLLATE: u8 = 13;
    pub(super) const UNARY_MINUS: u8 = 14;
    pub(super) const CAST: u8 = 15;
}

/// b_expr is a_expr without the constructs that would swallow the AND of BETWEEN.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    A,
    B,
}

/// What may follow an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Infix<'a> {
    Or,
    And,
    Is,
    IsNull {
        negated: bool,
    },
    Like {
        symbol: &'static str,
        negated: bool,
    },
    Between {
        negated: bool,
    },
    In {
        negated: bool,
    },
    Similar {
        negated: bool,
    },
    Overlaps,
    /// OPERATOR(schema.symbol).
    Named,
    AtTimeZone,
    Collate,
    Cast,
    Subscript,
    Symbol(&'a str),
}

/// Fields that a literal may name, with their bits in a modifier (timestamp.h, datetime.h).
const INTERVAL_FIELDS: [(&str, i32); 6] =
    [("year", 2), ("month", 1), ("day", 3), ("hour", 10), ("minute", 11), ("second", 12)];

impl Infix<'_> {
    fn precedence(self) -> u8 {
        match self {
            Self::Or => precedence::OR,
            Self::And => precedence::AND,
            Self::Is | Self::IsNull { .. } => precedence::IS,
            Self::Like { .. }
            | Self::Between { .. }
            | Self::In { .. }
            | Self::Similar { .. }
            | Self::Overlaps
            | Self::Named => precedence::LIKE,
            Self::AtTimeZone => precedence::AT,
            Self::Collate => precedence::COLLATE,
            Self::Cast | Self::Subscript => precedence::CAST,
            Self::Symbol(symbol) => match symbol {
                "<" | ">" | "=" | "<=" | ">=" | "<>" | "!=" => precedence::COMPARISON,
                "+" | "-" => precedence::PLUS,
                "*" | "/" | "%" => precedence::TIMES,
                "^" => precedence::POWER,
                _ => precedence::OPERATOR,
            },
        }
    }

    fn is_in_b_expr(self) -> bool {
        matches!(self, Self::Is | Self::Cast | Self::Subscript | Self::Symbol(_))
    }
}

impl<'a> Parser<'_, 'a> {
    /// a_expr.
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.climb(0, Form::A)
    }

    pub(super) fn climb(&mut self, minimum: u8, form: Form) -> Parsed<Expr> {
        self.nest()?;
        let mut left = self.prefix(form)?;
        // After a %nonassoc operator another one of its level is a syntax error.
        let mut blocked = None;
        let mut operators = 0;
        let mut is_constant = matches!(left, Expr::Number(_) | Expr::String(_) | Expr::Parameter(_) | Expr::Null);
        while let Some(infix) = self.peek_infix(form) {
            let level = infix.precedence();
            if level < minimum {
                break;
            }
            if blocked == Some(level) {
                return Err(self.unexpected());
            }
            if !matches!(infix, Infix::And | Infix::Or) {
                operators += 1;
                is_constant &= infix == Infix::Cast && operators <= super::CONSTANT_CASTS_MAX;
                if operators > 1 && !is_constant {
                    self.chain()?;
                }
            }
            (left, blocked) = self.infix(left, infix, level, form)?;
        }
        self.unnest();
        Ok(left)
    }

    fn prefix(&mut self, form: Form) -> Parsed<Expr> {
        let Some(token) = self.peek() else { return Err(self.unexpected()) };
        if token.is_word("not") && form == Form::A {
            self.at += 1;
            return Ok(Expr::Not(Box::new(self.climb(precedence::NOT, form)?)));
        }
        if token.is_symbol("-") {
            self.at += 1;
            return Ok(negate(self.climb(precedence::UNARY_MINUS, form)?));
        }
        if token.is_symbol("+") {
            self.at += 1;
            return Ok(prefix_operator("+", self.climb(precedence::UNARY_MINUS, form)?));
        }
        if is_operator(token) && precedence_of(token.text) == precedence::OPERATOR {
            self.at += 1;
            let operand = self.climb(precedence::OPERATOR + 1, form)?;
            return Ok(prefix_operator(token.text, operand));
        }
        self.primary()
    }

    fn peek_infix(&self, form: Form) -> Option<Infix<'a>> {
        let token = self.peek()?;
        let infix = match token.kind {
            TokenKind::Symbol if token.text == "::" => Infix::Cast,
            TokenKind::Symbol if token.text == "[" => Infix::Subscript,
            TokenKind::Symbol if is_operator(token) => Infix::Symbol(token.text),
            TokenKind::Word => self.word_infix(token)?,
            _ => return None,
        };
        (form == Form::A || infix.is_in_b_expr()).then_some(infix)
    }

    fn word_infix(&self, token: &Token<'a>) -> Option<Infix<'a>> {
        let next_is = |word: &str| self.peek_at(1).is_some_and(|token| token.is_word(word));
        Some(match &*fold(token.text) {
            "or" => Infix::Or,
            "and" => Infix::And,
            "is" => Infix::Is,
            "isnull" => Infix::IsNull { negated: false },
            "notnull" => Infix::IsNull { negated: true },
            "like" => Infix::Like { symbol: "~~", negated: false },
            "ilike" => Infix::Like { symbol: "~~*", negated: false },
            "between" => Infix::Between { negated: false },
            "in" => Infix::In { negated: false },
            "similar" => Infix::Similar { negated: false },
            "overlaps" => Infix::Overlaps,
            "operator" => Infix::Named,
            "not" if next_is("like") => Infix::Like { symbol: "!~~", negated: true },
            "not" if next_is("ilike") => Infix::Like { symbol: "!~~*", negated: true },
            "not" if next_is("between") => Infix::Between { negated: true },
            "not" if next_is("in") => Infix::In { negated: true },
            "not" if next_is("similar") => Infix::Similar { negated: true },
            "at" if next_is("time") => Infix::AtTimeZone,
            "collate" => Infix::Collate,
            _ => return None,
        })
    }

    /// Consumes the operator and what belongs to it. The second part: the level that may not follow.
    fn infix(&mut self, left: Expr, infix: Infix<'a>, level: u8, form: Form) -> Parsed<(Expr, Option<u8>)> {
        self.at += 1;
        let expr = match infix {
            Infix::Or => {
                let right = self.climb(level + 1, form)?;
                Expr::Or(flattened(left, right, |expr| match expr {
                    Expr::Or(items) => Ok(items),
                    other => Err(other),
                }))
            }
            Infix::And => {
                let right = self.climb(level + 1, form)?;
                Expr::And(flattened(left, right, |expr| match expr {
                    Expr::And(items) => Ok(items),
                    other => Err(other),
                }))
            }
            Infix::Is => return self.is_test(left, form),
            Infix::IsNull { negated } => Expr::IsNull { operand: Box::new(left), negated },
            Infix::Like { symbol, negated } => {
                self.at += usize::from(negated);
                return Ok((self.like(left, symbol)?, Some(level)));
            }
            Infix::Between { negated } => {
                self.at += usize::from(negated);
                return Ok((self.between(left, negated)?, Some(level)));
            }
            Infix::In { negated } => {
                self.at += usize::from(negated);
                self.in_list(left, negated)?
            }
            Infix::Similar { negated } => {
                self.at += usize::from(negated);
                return Ok((self.similar(left, negated)?, Some(level)));
            }
            Infix::Overlaps => self.overlaps(left)?,
            Infix::Named => return Err(unsupported("OPERATOR()")),
            Infix::AtTimeZone => {
                self.expect_word("time")?;
                self.expect_word("zone")?;
                let zone = self.climb(level + 1, form)?;
                system_call("timezone", vec![zone, left])
            }
            Infix::Collate => {
                let mut collation = vec![self.column_id()?];
                while self.accept_symbol(".") {
                    collation.push(self.column_label()?);
                }
                Expr::Collate { operand: Box::new(left), collation }
            }
            Infix::Cast => Expr::Cast { operand: Box::new(left), to: self.type_name()? },
            Infix::Subscript => {
                let is_plain = matches!(left, Expr::Column { .. } | Expr::Parameter { .. } | Expr::Subscript { .. });
                if !is_plain && !self.follows_parentheses() {
                    return Err(unsupported("subscript of what is no name"));
                }
                let lower = if self.peek_is_symbol(":") { None } else { Some(Box::new(self.expression()?)) };
                if self.accept_symbol(":") {
                    let upper = if self.peek_is_symbol("]") { None } else { Some(Box::new(self.expression()?)) };
                    self.expect_symbol("]")?;
                    // One slice makes slices of all subscripts of the value.
                    if matches!(left, Expr::Subscript { .. }) || self.peek_is_symbol("[") {
                        return Err(unsupported("slice of several dimensions"));
                    }
                    Expr::Slice { array: Box::new(left), lower, upper }
                } else {
                    self.expect_symbol("]")?;
                    let Some(subscript) = lower else { return Err(self.unexpected()) };
                    Expr::Subscript { array: Box::new(left), subscript }
                }
            }
            Infix::Symbol(symbol) => {
                if ["any", "some", "all"].iter().any(|word| self.peek_is_word(word)) {
                    return Ok((self.quantified(left, symbol)?, (level == precedence::COMPARISON).then_some(level)));
                }
                let right = Box::new(self.climb(level + 1, form)?);
                let symbol = if symbol == "!=" { "<>" } else { symbol }.to_owned();
                let operator = Expr::Operator { symbol, left: Some(Box::new(left)), right };
                return Ok((operator, (level == precedence::COMPARISON).then_some(level)));
            }
        };
        Ok((expr, None))
    }

    /// Whether what the bracket just taken follows is in parentheses of its own, not those of a call (gram.y, c_expr: only
    /// names, parameters and parenthesised expressions take subscripts).
    fn follows_parentheses(&self) -> bool {
        let mut depth = 0;
        for (at, token) in self.tokens[..self.at - 1].iter().enumerate().rev() {
            depth += i32::from(token.is_symbol(")")) - i32::from(token.is_symbol("("));
            match depth {
                // The first one is no parenthesis.
                0 if !token.is_symbol("(") => return false,
                0 => return at.checked_sub(1).is_none_or(|before| !self.may_be_called(before)),
                _ => {}
            }
        }
        false
    }

    /// Whether the token may end the name of a function, or its arguments' (WITHIN GROUP and the like).
    fn may_be_called(&self, at: usize) -> bool {
        let token = &self.tokens[at];
        token.is_symbol(")")
            || token.name().is_some_and(|name| match keywords::look_up(&name) {
                Some(keyword) => {
                    let is_reserved = keyword.class == KeywordClass::Reserved && !matches!(&*name, "cast" | "array");
                    token.kind != TokenKind::Word || !is_reserved
                }
                None => true,
            })
    }

    fn is_test(&mut self, left: Expr, form: Form) -> Parsed<(Expr, Option<u8>)> {
        let negated = self.accept_word("not");
        if self.accept_word("distinct") {
            self.expect_word("from")?;
            let right = self.climb(precedence::IS + 1, form)?;
            let distinct = Expr::IsDistinct { left: Box::new(left), right: Box::new(right), negated };
            return Ok((distinct, Some(precedence::IS)));
        }
        if form == Form::B {
            return Err(self.unexpected());
        }
        let operand = Box::new(left);
        let test = if self.accept_word("null") {
            Expr::IsNull { operand, negated }
        } else if self.accept_word("true") {
            Expr::IsBool { operand, expected: Some(true), negated }
        } else if self.accept_word("false") {
            Expr::IsBool { operand, expected: Some(false), negated }
        } else if self.accept_word("unknown") {
            Expr::IsBool { operand, expected: None, negated }
        } else {
            return Err(self.unexpected());
        };
        Ok((test, None))
    }

    /// After LIKE or ILIKE. With ESCAPE the pattern is `like_escape(pattern, escape)`, as in gram.y.
    fn like(&mut self, left: Expr, symbol: &str) -> Parsed<Expr> {
        if ["any", "some", "all"].iter().any(|word| self.peek_is_word(word)) {
            return self.quantified(left, symbol);
        }
        let mut pattern = self.climb(precedence::ESCAPE, Form::A)?;
        if self.accept_word("escape") {
            let escape = self.climb(precedence::ESCAPE, Form::A)?;
            pattern = system_call("like_escape", vec![pattern, escape]);
        }
        Ok(Expr::Operator { symbol: symbol.to_owned(), left: Some(Box::new(left)), right: Box::new(pattern) })
    }

    /// After SIMILAR: what it is in gram.y, a regular expression that similar_to_escape() makes of the pattern.
    fn similar(&mut self, left: Expr, negated: bool) -> Parsed<Expr> {
        self.expect_word("to")?;
        let mut arguments = vec![self.climb(precedence::ESCAPE, Form::A)?];
        if self.accept_word("escape") {
            arguments.push(self.climb(precedence::ESCAPE, Form::A)?);
        }
        let pattern = Box::new(system_call("similar_to_escape", arguments));
        let symbol = if negated { "!~" } else { "~" };
        Ok(Expr::Operator { symbol: symbol.to_owned(), left: Some(Box::new(left)), right: pattern })
    }

    /// `row OVERLAPS row`, of two items each.
    fn overlaps(&mut self, left: Expr) -> Parsed<Expr> {
        let right = self.primary()?;
        match (left, right) {
            (Expr::Row { items: mut ends, .. }, Expr::Row { items: others, .. })
                if ends.len() == 2 && others.len() == 2 =>
            {
                ends.extend(others);
                Ok(system_call("overlaps", ends))
            }
            _ => Err(unsupported("OVERLAPS of other than two pairs")),
        }
    }

    fn between(&mut self, left: Expr, negated: bool) -> Parsed<Expr> {
        let is_symmetric = self.accept_word("symmetric");
        if !is_symmetric {
            self.accept_word("asymmetric");
        }
        let low = self.climb(0, Form::B)?;
        self.expect_word("and")?;
        let high = self.climb(precedence::LIKE + 1, Form::A)?;
        let (operand, low, high) = (Box::new(left), Box::new(low), Box::new(high));
        Ok(Expr::Between { operand, low, high, negated, is_symmetric })
    }

    fn in_list(&mut self, left: Expr, negated: bool) -> Parsed<Expr> {
        let operand = Box::new(left);
        if let Some(query) = self.query_or_nothing()? {
            let symbol = "=".to_owned();
            return Ok(Expr::InSubquery { symbol, operand, query: Box::new(query), negated });
        }
        self.expect_symbol("(")?;
        let list = self.list(Self::expression)?;
        self.expect_symbol(")")?;
        Ok(Expr::In { operand, list, negated })
    }

    /// ANY, SOME or ALL of a subquery or an array. `= ANY (SELECT ...)` is IN, `<> ALL (SELECT ...)` is NOT IN, and so on: what is
    /// true of all is its contrary of none, NULLs included.
    fn quantified(&mut self, left: Expr, symbol: &str) -> Parsed<Expr> {
        let is_all = self.peek_is_word("all");
        let symbol = if symbol == "!=" { "<>" } else { symbol };
        self.at += 1;
        let operand = Box::new(left);
        let Some(query) = self.query_or_nothing()? else {
            let array = self.quantified_array()?;
            return Ok(Expr::Quantified { operand, symbol: symbol.to_owned(), is_all, array });
        };
        let symbol = match is_all {
            false => symbol,
            true => negator(symbol).ok_or_else(|| unsupported("ALL of a subquery by this operator"))?,
        };
        Ok(Expr::InSubquery { symbol: symbol.to_owned(), operand, query: Box::new(query), negated: is_all })
    }

    /// A literal, or any other expression in parentheses.
    fn quantified_array(&mut self) -> Parsed<ArrayLiteral> {
        let start = self.at;
        self.array_literal().or_else(|_| {
            self.at = start;
            self.expect_symbol("(")?;
            let array = self.expression()?;
            self.expect_symbol(")")?;
            Ok(ArrayLiteral { items: ArrayItems::Of(Box::new(array)), to: None })
        })
    }

    /// `(ARRAY[...])` or `('{...}')`, with or without a cast.
    fn array_literal(&mut self) -> Parsed<ArrayLiteral> {
        let unknown = || unsupported("ANY or ALL of an array");
        self.expect_symbol("(")?;
        let items = if self.accept_word("array") {
            self.expect_symbol("[").map_err(|_| unknown())?;
            let items = self.list(Self::expression)?;
            self.expect_symbol("]")?;
            ArrayItems::Listed(items)
        } else {
            let Ok(Expr::String(text)) = self.string_constant() else { return Err(unknown()) };
            ArrayItems::Text(plain_items(&text).ok_or_else(unknown)?)
        };
        let to = if self.accept_symbol("::") {
            let element = self.element_type()?;
            self.expect_symbol("[").map_err(|_| unknown())?;
            self.expect_symbol("]").map_err(|_| unknown())?;
            Some(element)
        } else {
            None
        };
        self.expect_symbol(")").map_err(|_| unknown())?;
        Ok(ArrayLiteral { items, to: to.map(Box::new) })
    }

    /// c_expr.
    fn primary(&mut self) -> Parsed<Expr> {
        let Some(token) = self.peek() else { return Err(self.unexpected()) };
        match token.kind {
            TokenKind::Integer | TokenKind::Decimal => {
                self.at += 1;
                Ok(Expr::Number(token.text.to_owned()))
            }
            TokenKind::String | TokenKind::EscapeString | TokenKind::DollarString => self.string_constant(),
            TokenKind::OtherString => Err(unsupported("U&, B, X or N string")),
            TokenKind::Parameter => {
                self.at += 1;
                match token.text[1..].parse() {
                    Ok(number @ 1..=65_535) => Ok(Expr::Parameter(number)),
                    _ => Err(unsupported("parameter number")),
                }
            }
            TokenKind::Symbol if token.text == "(" => self.parenthesised(),
            TokenKind::Symbol => Err(self.unexpected()),
            TokenKind::QuotedName => self.named(),
            TokenKind::Word => self.word(token),
        }
    }

    pub(super) fn string_constant(&mut self) -> Parsed<Expr> {
        let token = self.peek().ok_or_else(|| self.unexpected())?;
        let value = token.string_value().ok_or_else(|| unsupported("escape or continuation in a string"))?;
        self.at += 1;
        Ok(Expr::String(value.into_owned()))
    }

    fn parenthesised(&mut self) -> Parsed<Expr> {
        if let Some(query) = self.query_or_nothing()? {
            if self.peek_is_symbol(".") {
                return Err(unsupported("field selection"));
            }
            return Ok(Expr::Subquery(Box::new(query)));
        }
        self.expect_symbol("(")?;
        let mut items = self.list(Self::expression)?;
        self.expect_symbol(")")?;
        if self.peek_is_symbol(".") {
            return Err(unsupported("field selection"));
        }
        Ok(if items.len() == 1 { items.remove(0) } else { Expr::Row { items, is_explicit: false } })
    }

    /// Keywords that begin an expression of their own, typed literals of keyword types, else a name.
    fn word(&mut self, token: &Token<'a>) -> Parsed<Expr> {
        let word = fold(token.text);
        let is_call = self.peek_at(1).is_some_and(|next| next.is_symbol("("));
        match &*word {
            "null" => self.constant(Expr::Null),
            "true" => self.constant(Expr::Bool(true)),
            "false" => self.constant(Expr::Bool(false)),
            "case" => self.case(),
            "array" if self.peek_at(1).is_some_and(|next| next.is_symbol("[")) => {
                self.at += 2;
                if self.accept_symbol("]") {
                    return Ok(Expr::Array(Vec::new()));
                }
                let items = self.list(Self::expression)?;
                self.expect_symbol("]")?;
                Ok(Expr::Array(items))
            }
            "array" if is_call => {
                self.at += 1;
                let query = self.query_or_nothing()?.ok_or_else(|| self.unexpected())?;
                Ok(Expr::ArrayOf(Box::new(query)))
            }
            "cast" => self.cast(),
            "row" if is_call => Ok(Expr::Row { items: self.plain_arguments()?, is_explicit: true }),
            "current_date" => self.constant(sql_value(SqlValueFunction::CurrentDate)),
            "current_time" => self.timed(SqlValueFunction::CurrentTime),
            "current_timestamp" => self.timed(SqlValueFunction::CurrentTimestamp),
            "localtime" => self.timed(SqlValueFunction::LocalTime),
            "localtimestamp" => self.timed(SqlValueFunction::LocalTimestamp),
            "coalesce" if is_call => Ok(Expr::Coalesce(self.plain_arguments()?)),
            "greatest" if is_call => Ok(Expr::Extreme { greatest: true, arguments: self.plain_arguments()? }),
            "least" if is_call => Ok(Expr::Extreme { greatest: false, arguments: self.plain_arguments()? }),
            "nullif" if is_call => {
                let [left, right]: [Expr; 2] = self.plain_arguments()?.try_into().map_err(|_| self.unexpected())?;
                Ok(Expr::NullIf(Box::new(left), Box::new(right)))
            }
            "exists" if is_call => {
                self.at += 1;
                let query = self.query_or_nothing()?.ok_or_else(|| self.unexpected())?;
                Ok(Expr::Exists(Box::new(query)))
            }
            "grouping" if is_call => Ok(Expr::Grouping(self.plain_arguments()?)),
            "extract" if is_call => self.extract(),
            "position" if is_call => self.position(),
            "overlay" if is_call => self.overlay(),
            "substring" if is_call => self.substring(),
            "trim" if is_call => self.trim(),
            _ => match self.typed_literal()? {
                Some(literal) => Ok(literal),
                None => self.named(),
            },
        }
    }

    fn constant(&mut self, expr: Expr) -> Parsed<Expr> {
        self.at += 1;
        Ok(expr)
    }

    fn timed(&mut self, function: SqlValueFunction) -> Parsed<Expr> {
        self.at += 1;
        let mut precision = None;
        if self.accept_symbol("(") {
            let token = self.peek().filter(|token| token.kind == TokenKind::Integer);
            precision = Some(token.and_then(|token| token.text.parse().ok()).ok_or_else(|| self.unexpected())?);
            self.at += 1;
            self.expect_symbol(")")?;
        }
        Ok(Expr::SqlValue { function, precision })
    }

    /// `timestamp '...'` and the like (ConstTypename Sconst); the words are also column names.
    fn typed_literal(&mut self) -> Parsed<Option<Expr>> {
        let start = self.at;
        let to = self.keyword_type().ok().flatten();
        let is_literal = self.peek().is_some_and(|token| {
            matches!(token.kind, TokenKind::String | TokenKind::EscapeString | TokenKind::DollarString)
        });
        match to {
            Some(to) if is_literal => {
                let operand = self.string_constant()?;
                if to.name == "interval" && to.modifiers.is_empty() {
                    return self.interval_field(operand, to).map(Some);
                }
                Ok(Some(Expr::Cast { operand: Box::new(operand), to }))
            }
            _ => {
                self.at = start;
                Ok(None)
            }
        }
    }

    /// `interval '90' day`: a whole number of the one field named (gram.y, ConstInterval Sconst opt_interval).
    fn interval_field(&mut self, literal: Expr, mut to: TypeName) -> Parsed<Expr> {
        let is_field = |(word, _): &&(&str, i32)| self.peek_is_word(word);
        if let Some((word, bit)) = INTERVAL_FIELDS.iter().find(is_field) {
            self.at += 1;
            let is_more = self.peek_is_word("to") || self.peek_is_symbol("(");
            let number = match &literal {
                Expr::String(text) => text.parse::<u32>().ok().filter(|_| !text.starts_with('+')),
                _ => None,
            };
            let number = number.filter(|number| *number < 1_000_000 && !is_more);
            let number = number.ok_or_else(|| unsupported("fields of an interval"))?;
            // timestamp.h, INTERVAL_TYPMOD(INTERVAL_FULL_PRECISION, INTERVAL_MASK(field)).
            to.modifiers = vec![1 << (16 + bit) | 0xffff];
            return Ok(Expr::Cast { operand: Box::new(Expr::String(format!("{number} {word}"))), to });
        }
        Ok(Expr::Cast { operand: Box::new(literal), to })
    }

    /// A column, a function call, or a typed literal of a named type.
    pub(super) fn named(&mut self) -> Parsed<Expr> {
        let class = self.peek().and_then(word_class).ok_or_else(|| self.unexpected())?;
        if class == WordClass::Keyword(KeywordClass::Reserved) {
            return Err(self.unexpected());
        }
        let mut names = vec![self.any_name()?];
        if class.is_column_id() && self.peek_is_symbol(".") && self.peek_at(1).is_some_and(|token| token.is_symbol("*"))
        {
            self.at += 2;
            return Ok(Expr::WholeRow(names.remove(0)));
        }
        while self.accept_symbol(".") {
            names.push(self.column_label()?);
        }
        let is_name_of_function = if names.len() == 1 { class.is_type_or_function() } else { class.is_column_id() };
        if self.peek_is_symbol("(") {
            return if is_name_of_function { self.call(names) } else { Err(self.unexpected()) };
        }
        let is_string = self.peek().is_some_and(|token| {
            matches!(token.kind, TokenKind::String | TokenKind::EscapeString | TokenKind::DollarString)
        });
        if is_string {
            return if is_name_of_function { self.named_literal(names) } else { Err(self.unexpected()) };
        }
        if class.is_column_id() && names.len() <= 4 { Ok(Expr::Column(names)) } else { Err(self.unexpected()) }
    }

    /// `date '...'`: func_name Sconst.
    fn named_literal(&mut self, mut names: Vec<String>) -> Parsed<Expr> {
        if names.len() > 2 {
            return Err(unsupported("type of a named database"));
        }
        let name = names.pop().ok_or_else(|| self.unexpected())?;
        let schema = names.pop();
        let is_system = schema.as_deref() == Some("pg_catalog");
        let schema = schema.filter(|_| !is_system).map(String::into_boxed_str);
        let to = TypeName { schema, name, is_system, modifiers: Vec::new(), is_array: false };
        Ok(Expr::Cast { operand: Box::new(self.string_constant()?), to })
    }

    fn case(&mut self) -> Parsed<Expr> {
        self.at += 1;
        let operand = if self.peek_is_word("when") { None } else { Some(Box::new(self.expression()?)) };
        let mut branches = Vec::new();
        while self.accept_word("when") {
            let condition = self.expression()?;
            self.expect_word("then")?;
            branches.push((condition, self.expression()?));
        }
        if branches.is_empty() {
            return Err(self.unexpected());
        }
        let otherwise = if self.accept_word("else") { Some(Box::new(self.expression()?)) } else { None };
        self.expect_word("end")?;
        Ok(Expr::Case { operand, branches, otherwise })
    }

    fn cast(&mut self) -> Parsed<Expr> {
        self.at += 1;
        self.expect_symbol("(")?;
        let operand = Box::new(self.expression()?);
        self.expect_word("as")?;
        let to = self.type_name()?;
        self.expect_symbol(")")?;
        Ok(Expr::Cast { operand, to })
    }

    /// The word and its parenthesised list of expressions.
    fn plain_arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.at += 1;
        self.expect_symbol("(")?;
        let arguments = self.list(Self::expression)?;
        self.expect_symbol(")")?;
        Ok(arguments)
    }

    /// select_fetch_first_value: c_expr, or a signed number.
    pub(super) fn fetch_count(&mut self) -> Parsed<Expr> {
        if !self.peek_is_symbol("+") && !self.peek_is_symbol("-") {
            return self.primary();
        }
        let first = self.at;
        let count = self.prefix(Form::A)?;
        if is_count(&self.tokens[first..self.at]) { Ok(count) } else { Err(self.unexpected()) }
    }
}

/// Whether the tokens, which are an expression, are a select_fetch_first_value as well. Of c_expr a value and what stands in
/// parentheses; the rest is upstream's.
pub(super) fn is_count(tokens: &[Token<'_>]) -> bool {
    match tokens {
        [_] => true,
        [sign, number] if sign.is_symbol("+") || sign.is_symbol("-") => {
            matches!(number.kind, TokenKind::Integer | TokenKind::Decimal)
        }
        [inner @ .., last] => {
            // The first parenthesis is closed by the last token.
            let mut open = 0_usize;
            let stays_open = inner.iter().all(|token| {
                open += usize::from(token.is_symbol("("));
                open -= usize::from(token.is_symbol(")") && open > 0);
                open > 0
            });
            stays_open && last.is_symbol(")")
        }
        [] => false,
    }
}

fn is_operator(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Symbol
        && !matches!(token.text, "(" | ")" | "[" | "]" | "," | ";" | ":" | "::" | ":=" | "." | ".." | "=>")
}

fn precedence_of(symbol: &str) -> u8 {
    Infix::Symbol(symbol).precedence()
}

fn prefix_operator(symbol: &str, operand: Expr) -> Expr {
    Expr::Operator { symbol: symbol.to_owned(), left: None, right: Box::new(operand) }
}

/// doNegate: the sign of a numeric constant is part of it.
fn negate(operand: Expr) -> Expr {
    match operand {
        Expr::Number(digits) => Expr::Number(match digits.strip_prefix('-') {
            Some(positive) => positive.to_owned(),
            None => format!("-{digits}"),
        }),
        other => prefix_operator("-", other),
    }
}

/// makeAndExpr / makeOrExpr: a left operand that is already such a list takes the right one in.
fn flattened(left: Expr, right: Expr, items_of: fn(Expr) -> Result<Vec<Expr>, Expr>) -> Vec<Expr> {
    match items_of(left) {
        Ok(mut items) => {
            items.push(right);
            items
        }
        Err(left) => vec![left, right],
    }
}

fn sql_value(function: SqlValueFunction) -> Expr {
    Expr::SqlValue { function, precision: None }
}

/// `pg_operator.oprnegate` of comparisons and pattern matches.
fn negator(symbol: &str) -> Option<&'static str> {
    Some(match symbol {
        "=" => "<>",
        "<>" => "=",
        "<" => ">=",
        ">=" => "<",
        ">" => "<=",
        "<=" => ">",
        "~~" => "!~~",
        "!~~" => "~~",
        "~~*" => "!~~*",
        "!~~*" => "~~*",
        "~" => "!~",
        "!~" => "~",
        "~*" => "!~*",
        "!~*" => "~*",
        _ => return None,
    })
}
