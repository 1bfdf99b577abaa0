//! Views: their stored query in place of their name, as the rewriter puts it there (rewriteHandler.c, ApplyRetrieveRule).
//!
//! A view's names were resolved when it was made. Its text comes with a schema on every name that is not pg_catalog's, and
//! is bound with nothing else in the path; its literals are read by fixed settings, whatever the session's are.

use std::sync::{Arc, LazyLock};

use crate::binder::from::{FromItem, rename};
use crate::binder::scope::{Scope, ScopeColumn, ScopeItem, Whole};
use crate::binder::typed::Origin;
use crate::binder::{Binder, Bound, NODES_MAX, Reader, TableUse, unsupported};
use crate::catalog::View;
use crate::statement;
use crate::statement::ast::Alias;
use crate::types::FormatSettings;

/// Views that one statement may name, those within views included.
const VIEWS_MAX: usize = 100;

pub(super) static PATH: LazyLock<[Arc<str>; 1]> = LazyLock::new(|| ["pg_catalog".into()]);
pub(super) static SETTINGS: LazyLock<FormatSettings> = LazyLock::new(FormatSettings::default);

impl Binder<'_> {
    pub(super) fn view(&mut self, view: &View, alias: Option<&Alias>) -> Bound<FromItem> {
        self.spend(NODES_MAX / VIEWS_MAX)?;
        let mut statements = statement::parse(&view.definition)?;
        let (Some(query), true) = (statements.pop(), statements.is_empty()) else {
            return Err(unsupported("a view's definition that is not one query"));
        };
        self.note_definition(view.schema.id, &view.definition);
        let schema = &view.schema;
        let table_use = self.tables.len();
        self.tables.push(TableUse { table: schema.id, reader: self.reader.clone(), columns: Vec::new() });
        // An invoker's view within another one is not read for that one's owner (setRuleCheckAsUser marks stored queries).
        let reader = Reader::View { owner: view.owner.clone() };
        let outer_reader = std::mem::replace(&mut self.reader, reader);
        let (outer, folds_settings) = (self.context, self.folds_settings);
        self.context.search_path = &*PATH;
        self.context.settings = &SETTINGS;
        // WITH queries around it are none of its own. (Levels around it are not in its way: its names are found before.)
        let (with, function) = (std::mem::take(&mut self.with), self.function.take());
        let selected = query.query().and_then(|query| self.source(query));
        (self.with, self.function) = (with, function);
        (self.context, self.folds_settings, self.reader) = (outer, folds_settings, outer_reader);
        let selected = selected?;
        if selected.columns.len() != schema.columns.len() {
            return Err(unsupported("a view whose text has other columns"));
        }
        let mut columns = Vec::with_capacity(schema.columns.len());
        for (index, (column, of)) in selected.columns.iter().zip(&schema.columns).enumerate() {
            let expr_type = column.unheld.is_none().then_some(column.expr_type);
            // A text that does not mean what was stored would be found here.
            let is_same = of.pg_type == expr_type.map(|expr_type| expr_type.pg_type)
                && expr_type.is_none_or(|own| of.typmod == own.typmod && of.collation == own.collation);
            if !is_same {
                return Err(unsupported(format!("column {} of view {} reads otherwise", of.name, schema.name)));
            }
            columns.push(ScopeColumn {
                name: Arc::clone(&of.name),
                index,
                merged: None,
                expr_type,
                origin: Some(Origin { table: schema.id, attnum: of.attnum }),
                is_constant: column.is_constant,
                is_open: column.is_open,
                uses: vec![(table_use, index)],
            });
        }
        let name = alias.map_or_else(|| schema.name.to_string(), |alias| alias.name.clone());
        let of_schema = alias.is_none().then(|| Arc::clone(&schema.schema));
        let renamed = alias.map_or(&[][..], |alias| &alias.columns);
        rename(&mut columns, renamed)?;
        let whole = if renamed.is_empty() { Whole::Record } else { Whole::Unknown };
        let width = columns.len();
        let (columns_visible, is_table, mark) = (true, false, None);
        let item = ScopeItem { name: Some(name), schema: of_schema, columns_visible, is_table, whole, columns, mark };
        // PostgreSQL lets through what cannot tell anything of a row (LEAKPROOF functions); here nothing passes.
        let relation = if view.is_barrier { selected.relation.fenced() } else { selected.relation };
        Ok(FromItem { relation, width, scope: Scope { items: vec![item] } })
    }
}
