//! from_clause: tables, subqueries, functions and joins.

use super::{Parsed, Parser, unsupported};
use crate::statement::ast::{Alias, Expr, JoinCondition, JoinType, TableRef};

impl Parser<'_, '_> {
    pub(super) fn table_ref(&mut self) -> Parsed<TableRef> {
        let left = self.table_primary()?;
        self.joins(left)
    }

    /// The joins that follow `left`. `a JOIN b JOIN c ON x ON y` nests to the right: an inner join takes its own
    /// qualifier before the outer one gets its.
    fn joins(&mut self, mut left: TableRef) -> Parsed<TableRef> {
        while let Some((kind, is_natural)) = self.accept_join()? {
            let mut right = self.table_primary()?;
            let condition = if kind == JoinType::Cross {
                JoinCondition::None
            } else if is_natural {
                JoinCondition::Natural
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

    /// The kind of the join, and whether it is NATURAL.
    fn accept_join(&mut self) -> Parsed<Option<(JoinType, bool)>> {
        let is_natural = self.accept_word("natural");
        let outer = [("left", JoinType::Left), ("right", JoinType::Right), ("full", JoinType::Full)];
        let kind = if !is_natural && self.accept_word("cross") {
            JoinType::Cross
        } else if self.accept_word("inner") {
            JoinType::Inner
        } else if let Some((_, kind)) = outer.into_iter().find(|(word, _)| self.peek_is_word(word)) {
            self.at += 1;
            self.accept_word("outer");
            kind
        } else if is_natural || self.peek_is_word("join") {
            JoinType::Inner
        } else {
            return Ok(None);
        };
        self.expect_word("join")?;
        Ok(Some((kind, is_natural)))
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

    pub(super) fn named_table(&mut self) -> Parsed<TableRef> {
        let is_only = self.accept_word("only");
        if is_only && self.peek_is_symbol("(") {
            return Err(unsupported("ONLY with parentheses"));
        }
        let is_lateral = !is_only && self.accept_word("lateral");
        if is_lateral && self.peek_is_symbol("(") {
            return self.subquery(true)?.ok_or_else(|| self.unexpected());
        }
        let mut name = vec![self.column_id()?];
        while self.accept_symbol(".") {
            name.push(self.column_label()?);
        }
        if self.peek_is_symbol("(") && !is_only {
            return self.function(name, is_lateral);
        }
        if is_lateral {
            return Err(self.unexpected());
        }
        if name.len() > 3 {
            return Err(self.unexpected());
        }
        if !is_only {
            self.accept_symbol("*");
        }
        let alias = self.alias()?;
        if self.peek_is_word("tablesample") {
            return Err(unsupported("TABLESAMPLE"));
        }
        Ok(TableRef::Table { name, is_only, alias })
    }

    /// func_table.
    fn function(&mut self, name: Vec<String>, is_lateral: bool) -> Parsed<TableRef> {
        let Expr::Call(call) = self.call(name)? else { return Err(unsupported("function in FROM")) };
        let is_numbered = self.accept_word("with");
        if is_numbered {
            self.expect_word("ordinality")?;
        }
        if self.peek_is_word("as") && self.peek_at(1).is_some_and(|token| token.is_symbol("(")) {
            return Err(unsupported("column definition list"));
        }
        let alias = self.alias()?;
        Ok(TableRef::Function { call: *call, is_numbered, alias, is_lateral })
    }

    /// A subquery with its alias; None, and nothing read, if the parentheses hold something else.
    fn subquery(&mut self, is_lateral: bool) -> Parsed<Option<TableRef>> {
        let Some(query) = self.query_or_nothing()? else { return Ok(None) };
        let alias = self.alias()?;
        Ok(Some(TableRef::Subquery { query: Box::new(query), alias, is_lateral }))
    }

    /// A subquery with its alias, or a joined table.
    fn parenthesised_table(&mut self) -> Parsed<TableRef> {
        if let Some(subquery) = self.subquery(false)? {
            return Ok(subquery);
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
    pub(super) fn name_list(&mut self) -> Parsed<Vec<String>> {
        self.expect_symbol("(")?;
        let names = self.list(Self::column_id)?;
        self.expect_symbol(")")?;
        Ok(names)
    }
}
