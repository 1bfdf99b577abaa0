//! func_expr: calls with what may follow them, and the SQL forms that stand for one.

use super::expression::Form;
use super::name::{WordClass, word_class};
use super::{Parsed, Parser, unsupported};
use crate::statement::ast::{Call, CallSchema, Expr, Over, TypeName};
use crate::statement::lexer::{Token, TokenKind};

impl Parser<'_, '_> {
    /// func_expr from its opening parenthesis.
    pub(super) fn call(&mut self, mut names: Vec<String>) -> Parsed<Expr> {
        let schema = match names.as_slice() {
            [_] => CallSchema::SearchPath,
            [schema, _] if schema == "pg_catalog" => CallSchema::PgCatalog,
            [schema, _] => CallSchema::Named(schema.clone()),
            _ => return Err(unsupported("database-qualified function")),
        };
        let name = names.pop().ok_or_else(|| self.unexpected())?;
        self.expect_symbol("(")?;
        let mut call = Call::plain(name, schema, Vec::new());
        if self.accept_symbol("*") {
            call.is_star = true;
        } else if !self.peek_is_symbol(")") {
            call.is_distinct = self.accept_word("distinct");
            if !call.is_distinct {
                self.accept_word("all");
            }
            if self.peek_is_word("variadic") {
                return Err(unsupported("VARIADIC"));
            }
            call.arguments = self.list(Self::argument)?;
            call.order_by = self.order_by_clause()?;
        }
        self.expect_symbol(")")?;
        self.call_clauses(call)
    }

    /// func_arg_expr. Positional arguments stand before named ones; the binder sees to that.
    fn argument(&mut self) -> Parsed<Expr> {
        let is_name = |token: &Token<'_>| matches!(token.kind, TokenKind::Word | TokenKind::QuotedName);
        let has_name = self.peek().is_some_and(is_name)
            && self.peek_at(1).is_some_and(|token| token.is_symbol("=>") || token.is_symbol(":="));
        if !has_name {
            return self.expression();
        }
        let name = self.column_id()?;
        self.at += 1;
        Ok(Expr::Named(name, Box::new(self.expression()?)))
    }

    fn call_clauses(&mut self, mut call: Call) -> Parsed<Expr> {
        if self.accept_word("within") {
            self.expect_word("group")?;
            self.expect_symbol("(")?;
            call.within_group = self.order_by_clause()?;
            if call.within_group.is_empty() {
                return Err(self.unexpected());
            }
            self.expect_symbol(")")?;
        }
        if self.accept_word("filter") {
            self.expect_symbol("(")?;
            self.expect_word("where")?;
            call.filter = Some(Box::new(self.expression()?));
            self.expect_symbol(")")?;
        }
        if self.accept_word("over") {
            let over =
                if self.peek_is_symbol("(") { Over::Window(self.window()?) } else { Over::Name(self.column_id()?) };
            call.over = Some(over);
        }
        Ok(Expr::Call(Box::new(call)))
    }

    /// `EXTRACT(field FROM x)`; the field is a word or a string (extract_arg).
    pub(super) fn extract(&mut self) -> Parsed<Expr> {
        self.at += 2;
        let field = match self.peek() {
            Some(token) if token.kind == TokenKind::Word || token.kind == TokenKind::QuotedName => {
                let is_field = word_class(token).is_some_and(|class| class == WordClass::Plain)
                    || ["year", "month", "day", "hour", "minute", "second"].iter().any(|word| token.is_word(word));
                if !is_field {
                    return Err(self.unexpected());
                }
                Expr::String(self.any_name()?)
            }
            _ => self.string_constant()?,
        };
        self.expect_word("from")?;
        let operand = self.expression()?;
        self.expect_symbol(")")?;
        Ok(system_call("extract", vec![field, operand]))
    }

    /// `POSITION(a IN b)` is position(b, a).
    pub(super) fn position(&mut self) -> Parsed<Expr> {
        self.at += 2;
        let needle = self.climb(0, Form::B)?;
        self.expect_word("in")?;
        let haystack = self.climb(0, Form::B)?;
        self.expect_symbol(")")?;
        Ok(system_call("position", vec![haystack, needle]))
    }

    /// `OVERLAY(x PLACING y FROM a [FOR b])`, or an ordinary call.
    pub(super) fn overlay(&mut self) -> Parsed<Expr> {
        self.at += 2;
        let mut arguments = self.list(Self::expression)?;
        if arguments.len() != 1 || !self.accept_word("placing") {
            self.expect_symbol(")")?;
            return Ok(Expr::Call(Box::new(Call::plain("overlay", CallSchema::SearchPath, arguments))));
        }
        arguments.push(self.expression()?);
        self.expect_word("from")?;
        arguments.push(self.expression()?);
        if self.accept_word("for") {
            arguments.push(self.expression()?);
        }
        self.expect_symbol(")")?;
        Ok(system_call("overlay", arguments))
    }

    /// substr_list, or an ordinary call.
    pub(super) fn substring(&mut self) -> Parsed<Expr> {
        self.at += 2;
        if self.peek_is_symbol(")") {
            return Err(self.unexpected());
        }
        let mut arguments = self.list(Self::expression)?;
        if self.peek_is_symbol(")") {
            self.at += 1;
            return Ok(Expr::Call(Box::new(Call::plain("substring", CallSchema::SearchPath, arguments))));
        }
        if arguments.len() != 1 || self.peek_is_word("similar") {
            return Err(unsupported("SUBSTRING form"));
        }
        let (mut from, mut count) = (None, None);
        for _ in 0..2 {
            if from.is_none() && self.accept_word("from") {
                from = Some(self.expression()?);
            } else if count.is_none() && self.accept_word("for") {
                count = Some(self.expression()?);
            }
        }
        self.expect_symbol(")")?;
        match (from, count) {
            (Some(from), None) => arguments.push(from),
            (Some(from), Some(count)) => arguments.extend([from, count]),
            (None, Some(count)) => {
                // gram.y casts the count so that substring(text, text, text) is not chosen.
                let to = TypeName {
                    schema: None,
                    name: "int4".into(),
                    is_system: true,
                    modifiers: Vec::new(),
                    is_array: false,
                };
                arguments.extend([Expr::Number("1".into()), Expr::Cast { operand: Box::new(count), to }]);
            }
            (None, None) => return Err(self.unexpected()),
        }
        Ok(system_call("substring", arguments))
    }

    /// `TRIM([BOTH | LEADING | TRAILING] [characters] FROM x)`: btrim, ltrim, rtrim (x, characters).
    pub(super) fn trim(&mut self) -> Parsed<Expr> {
        self.at += 2;
        let name = if self.accept_word("leading") {
            "ltrim"
        } else if self.accept_word("trailing") {
            "rtrim"
        } else {
            self.accept_word("both");
            "btrim"
        };
        let arguments = if self.accept_word("from") {
            self.list(Self::expression)?
        } else {
            let mut first = self.list(Self::expression)?;
            if self.accept_word("from") {
                if first.len() != 1 {
                    return Err(self.unexpected());
                }
                let mut arguments = self.list(Self::expression)?;
                arguments.append(&mut first);
                arguments
            } else {
                first
            }
        };
        self.expect_symbol(")")?;
        Ok(system_call(name, arguments))
    }
}

/// An SQL form that gram.y turns into a call of a pg_catalog function (SystemFuncName).
pub(super) fn system_call(name: &str, arguments: Vec<Expr>) -> Expr {
    Expr::Call(Box::new(Call::plain(name, CallSchema::PgCatalog, arguments)))
}
