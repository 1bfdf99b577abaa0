//! Generated columns, which the stream does not carry: computed here of the columns that it does, below everything else, as a view's
//! columns are.
//!
//! To PostgreSQL a stored one is a column like any other: its privilege is its own, and that it was computed cannot raise any more. It
//! was computed of the same row by immutable functions, so that computing it again gives the same, but where a function that PostgreSQL
//! calls immutable prints by the settings of whoever wrote the row. Since PostgreSQL 18 a virtual one is replaced by its expression
//! (rewriteHandler.c, expand_virtual_generated_columns); here only where that cannot raise.

use crate::binder::expression::{Clause, Level};
use crate::binder::function::{is_immutable, only_expression, only_query};
use crate::binder::scope::{Scope, ScopeColumn, ScopeItem, not_held};
use crate::binder::typed::{children, size};
use crate::binder::view::{PATH, SETTINGS};
use crate::binder::{
    BindContext, Binder, Bound, BoundExpr, BoundRelation, ExprType, Reader, cannot_raise, unsupported,
};
use crate::catalog::{Catalog, Computed, TableSchema};
use crate::reason::UpstreamReason;
use crate::statement::ast::Expr;
use crate::types::PgType;

impl Binder<'_> {
    /// The rows of `scan`, which has the held columns of `table` that `item` names, with the generated columns that can be computed
    /// behind them. `item` says afterwards where those are.
    pub(super) fn with_computed(
        &mut self,
        table: &TableSchema,
        item: &mut ScopeItem,
        scan: BoundRelation,
    ) -> Bound<BoundRelation> {
        let Some(computed) = self.catalog.computed.get(&table.id) else { return Ok(scan) };
        self.has_computed = true;
        if !self.computes {
            return Ok(scan);
        }
        let held = item.columns.iter().filter_map(|column| Some((column.index, column.expr_type?)));
        let mut expressions: Vec<BoundExpr> =
            held.map(|(index, expr_type)| BoundExpr::Column { index, expr_type }).collect();
        for of in computed {
            let Some(at) = table.columns.iter().position(|column| column.attnum == of.attnum) else { continue };
            match self.computed(table, item, of, at) {
                Ok(expr) => {
                    self.spend(size(&expr))?;
                    let column = &mut item.columns[at];
                    (column.index, column.expr_type) = (expressions.len(), Some(expr.expr_type()));
                    expressions.push(expr);
                    self.note_definition((table.id, of.attnum, of.is_stored), &of.expression);
                }
                Err(reason) => {
                    let name = &table.columns[at].name;
                    self.uncomputed.get_or_insert_with(|| unsupported(format!("generated column {name}: {reason}")));
                }
            }
        }
        Ok(BoundRelation::Project { input: Box::new(scan), expressions })
    }

    /// The value of column `at`, over the table's held columns, as `item` places them.
    fn computed(&mut self, table: &TableSchema, item: &ScopeItem, of: &Computed, at: usize) -> Bound<BoundExpr> {
        let column = &table.columns[at];
        let query = only_query(&format!("SELECT {}", of.expression))?;
        let expr = query.as_ref().and_then(only_expression).ok_or_else(|| unsupported("such an expression"))?;
        // The text has the columns' own names, and nobody's privileges on them count.
        let own = table.columns.iter().zip(&item.columns).map(|(own, column)| ScopeColumn {
            name: own.name.clone(),
            uses: Vec::new(),
            // None is made of another (catalog/heap.c, check_nested_generated).
            expr_type: column.expr_type.filter(|_| own.pg_type.is_some()),
            ..column.clone()
        });
        let item = ScopeItem { columns: own.collect(), name: None, schema: None, mark: None, ..item.clone() };
        let mut level = Level::new(Scope { items: vec![item] }, Clause::Where);
        let (context, reader, folds_settings) = (self.context, self.reader.clone(), self.folds_settings);
        (self.context.search_path, self.context.settings) = (&*PATH, &SETTINGS);
        self.reader = Reader::View { owner: None };
        let (outer, with, function) =
            (std::mem::take(&mut self.outer), std::mem::take(&mut self.with), self.function.take());
        let to = ExprType { pg_type: of.pg_type, typmod: column.typmod, collation: column.collation };
        let bound = self.stored(&mut level, expr, to);
        (self.outer, self.with, self.function) = (outer, with, function);
        (self.context, self.reader, self.folds_settings) = (context, reader, folds_settings);
        let (expr, fits) = bound?;
        if prints_by_settings(&expr) {
            return Err(unsupported("a text that hangs on the settings of who wrote the row"));
        }
        if !(level.is_plain() && is_immutable(&expr)) {
            return Err(unsupported("such an expression"));
        }
        let is_safe = fits && cannot_raise(&expr);
        if !(of.is_stored || is_safe) {
            return Err(unsupported("virtual, of an expression that may raise"));
        }
        Ok(expr)
    }

    /// As cookDefault converts it (catalog/heap.c), and whether that was nothing that may raise. What is too long for a stored column is not in it,
    /// so that an explicit cast does the same as the assignment.
    fn stored(&mut self, level: &mut Level, expr: &Expr, to: ExprType) -> Bound<(BoundExpr, bool)> {
        let typed = self.expression(level, expr)?;
        let typed = self.assigned(typed, to.pg_type)?;
        let fits = to.typmod < 0 || typed.expr_type.typmod == to.typmod;
        let typed = self.cast(typed, to.pg_type, to.typmod)?;
        Ok((typed.relabelled(to).expr, fits))
    }
}

/// Indexes into the columns of `table` of generated ones that statements can use although they are not mirrored.
pub fn computed_columns(catalog: &Catalog, table: &TableSchema) -> Vec<usize> {
    let context = BindContext { search_path: &*PATH, settings: &SETTINGS, parameter_types: &[] };
    let item = Binder::new(catalog, &context).and_then(|binder| {
        let mut binder = Binder { computes: true, ..binder };
        let (columns, mut item) = binder.table_columns(table, &|_| true, None)?;
        binder.with_computed(table, &mut item, BoundRelation::Scan { table: table.id, columns })?;
        Ok(item)
    });
    let columns = item.map(|item| item.columns).unwrap_or_default();
    let both = columns.iter().zip(&table.columns).enumerate();
    both.filter(|(_, (computed, own))| computed.expr_type.is_some() && own.pg_type.is_none())
        .map(|(at, _)| at)
        .collect()
}

impl Binder<'_> {
    /// Why a column that a statement wants is not here.
    pub(super) fn lacks(&self, column: &ScopeColumn) -> UpstreamReason {
        let is_computed = |(table, index): &(usize, usize)| {
            let table = self.tables[*table].table;
            let schema = self.catalog.described(table);
            let attnum = schema.and_then(|schema| Some(schema.columns.get(*index)?.attnum));
            let computed = self.catalog.computed.get(&table).into_iter().flatten();
            computed.into_iter().any(|of| Some(of.attnum) == attnum)
        };
        match &self.uncomputed {
            Some(why) if column.uses.iter().any(is_computed) => why.clone(),
            _ => not_held(column),
        }
    }
}

/// Whether a value is printed on the way whose text hangs on a setting although PostgreSQL calls its output function immutable
/// (pg_proc.dat: float4out, float8out, byteaout).
fn prints_by_settings(expr: &BoundExpr) -> bool {
    let is_printed = |argument: &BoundExpr| {
        let printed = [PgType::Float4, PgType::Float8, PgType::Bytea];
        printed.contains(&argument.expr_type().pg_type)
    };
    let is_text = |pg_type| matches!(pg_type, PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name);
    let prints = match expr {
        BoundExpr::Call { arguments, expr_type, .. } => is_text(expr_type.pg_type) && arguments.iter().any(is_printed),
        _ => false,
    };
    prints || children(expr).into_iter().any(prints_by_settings)
}
