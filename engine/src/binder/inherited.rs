//! A table with those that inherit from it: the rows of all of them, by the columns of the one that is named (inherit.c,
//! expand_inherited_rtentry). Column names decide; the order may differ. Privileges are the named one's.

use crate::binder::from::FromItem;
use crate::binder::scope::{Scope, ScopeColumn};
use crate::binder::{Binder, Bound, BoundRelation, Reader, TableUse};
use crate::catalog::{Leaf, TableSchema};
use crate::reason::UpstreamReason;
use crate::statement::ast::Alias;

impl Binder<'_> {
    pub(super) fn with_heirs(&mut self, table: &TableSchema, heirs: &[Leaf], alias: Option<&Alias>) -> Bound<FromItem> {
        self.spend(heirs.len() * table.columns.len())?;
        let mut schemas = Vec::with_capacity(heirs.len());
        for heir in heirs {
            schemas.push(self.catalog.tables.get(&heir.table).ok_or(UpstreamReason::CatalogChanged)?);
        }
        // One of them may compute what the others hold.
        let is_held = |index: usize| {
            let mut places = heirs.iter().zip(&schemas).map(|(heir, schema)| &schema.columns[heir.columns[index]]);
            places.all(|column| column.pg_type == table.columns[index].pg_type)
        };
        let (columns, item) = self.table_columns(table, &is_held, alias)?;
        let mut inputs = vec![BoundRelation::Scan { table: table.id, columns: columns.clone() }];
        for heir in heirs {
            self.tables.push(TableUse { table: heir.table, reader: Reader::Heir, columns: Vec::new() });
            let columns = columns.iter().map(|column| heir.columns[*column]).collect();
            inputs.push(BoundRelation::Scan { table: heir.table, columns });
        }
        let types = |column: &ScopeColumn| column.expr_type;
        let relation = BoundRelation::Append { inputs, columns: item.columns.iter().filter_map(types).collect() };
        Ok(FromItem { width: columns.len(), relation, scope: Scope { items: vec![item] } })
    }
}
