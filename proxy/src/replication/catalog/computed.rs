//! Generated columns that the engine may compute: their expressions, which name nothing but the table's own columns and what is built
//! in. Functions, types and operators of users may compute something else by now than when a row was written.
//!
//! A stored column need not be what its expression gives: ALTER COLUMN ... TYPE converts the values that are there (tablecmds.c,
//! ATPrepAlterColumnType), and another release may compute otherwise. So upstream compares all rows when the table is copied; what
//! is written from then on is computed. Rows that were there before a change of the type are copied anew.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use freshet_engine::binder::computed_columns;
use freshet_engine::catalog::{Catalog, Computed, Leaf, RelationId, TableSchema};
use freshet_engine::types::Oid;
use tokio_postgres::Transaction;

use crate::replication::catalog::texts;
use crate::upstream::UpstreamError;

/// Before PostgreSQL 15 what an expression depends on is said of the column (catalog/heap.c, StoreAttrDefault).
const GENERATED: &str = "\
    SELECT d.oid, adrelid, adnum, attgenerated = 's', quote_ident(attname), format_type(atttypid, atttypmod)
      FROM pg_attribute a JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
     WHERE attgenerated <> '' AND NOT attisdropped AND attrelid >= 16384
       AND NOT EXISTS (SELECT FROM pg_depend
                        WHERE (classid = 'pg_attrdef'::regclass AND objid = d.oid
                               OR classid = 'pg_class'::regclass AND objid = attrelid AND objsubid = attnum)
                          AND refobjid >= 16384 AND NOT (refclassid = 'pg_class'::regclass AND refobjid = attrelid))";

/// A generated column as upstream describes it.
pub(super) struct Generated {
    /// As pg_get_expr writes it.
    expression: Arc<str>,
    is_stored: bool,
    /// SQL for whether a stored value is none that the expression gives.
    differs: String,
}

/// By table and `attnum`.
pub(super) type Expressions = HashMap<(RelationId, i16), Generated>;

/// Beside them, whether some could not be read because somebody holds their table.
pub(super) async fn load_expressions(transaction: &Transaction<'_>) -> Result<(Expressions, bool), UpstreamError> {
    let rows = transaction.query(GENERATED, &[]).await?;
    let oids: Vec<Oid> = rows.iter().map(|row| row.get(0)).collect();
    let call = "(SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE oid = $)";
    let mut texts = texts::read(transaction, call, &oids).await?;
    let generated = |row: &tokio_postgres::Row| {
        let expression = texts.read.remove(&row.get(0))?;
        let (name, type_name): (&str, &str) = (row.get(4), row.get(5));
        // By their texts: equal numbers may have other scales.
        let differs =
            format!("({name})::text COLLATE \"C\" IS DISTINCT FROM (({expression})::{type_name})::text COLLATE \"C\"");
        let generated = Generated { expression: expression.into(), is_stored: row.get(3), differs };
        Some(((RelationId(row.get(1)), row.get(2)), generated))
    };
    Ok((rows.iter().filter_map(generated).collect(), !texts.locked.is_empty()))
}

/// For each table with stored columns that are computed here, SQL for whether one of a row's has another value.
pub(super) fn comparisons(catalog: &Catalog, expressions: &Expressions) -> HashMap<RelationId, String> {
    let of = |(relation, table): (&RelationId, &Arc<TableSchema>)| {
        let columns = catalog.computed.get(relation).map(|_| computed_columns(catalog, table)).unwrap_or_default();
        let generated = columns.iter().filter_map(|at| expressions.get(&(*relation, table.columns[*at].attnum)));
        let stored: Vec<&str> = generated.filter(|of| of.is_stored).map(|of| &*of.differs).collect();
        (!stored.is_empty()).then(|| (*relation, stored.join(" OR ")))
    };
    catalog.tables.iter().filter(|(relation, _)| !catalog.partitioned.contains_key(relation)).filter_map(of).collect()
}

/// Takes back what would be computed of these tables, and of what they are partitions of.
pub(super) fn withhold(catalog: &mut Catalog, otherwise: &HashSet<RelationId>) {
    let partitioned = &catalog.partitioned;
    let is_above = |relation: &RelationId| {
        let leaves = partitioned.get(relation).map_or(&[][..], |partitioned| &partitioned.leaves);
        leaves.iter().any(|leaf| otherwise.contains(&leaf.table))
    };
    for (relation, computed) in &mut catalog.computed {
        if otherwise.contains(relation) || is_above(relation) {
            computed.retain(|column| !column.is_stored);
        }
    }
    catalog.computed.retain(|_, computed| !computed.is_empty());
}

/// Fills [`Catalog::computed`], once all tables are in their place.
pub(super) fn place(catalog: &mut Catalog, expressions: &Expressions) {
    if expressions.is_empty() {
        return;
    }
    let of = |table: &TableSchema| {
        let computed: Vec<Computed> =
            (0..table.columns.len()).filter_map(|column| computed(catalog, expressions, table, column)).collect();
        (!computed.is_empty()).then_some((table.id, computed))
    };
    catalog.computed = catalog.tables.values().filter_map(|table| of(table)).collect();
}

fn computed(catalog: &Catalog, expressions: &Expressions, table: &TableSchema, column: usize) -> Option<Computed> {
    let of = &table.columns[column];
    let Generated { expression, is_stored, .. } = expressions.get(&(table.id, of.attnum))?;
    // A partition may compute it otherwise.
    let is_same = |leaf: &Leaf| {
        let below = catalog.tables.get(&leaf.table)?;
        let attnum = below.columns[*leaf.columns.get(column)?].attnum;
        let below = expressions.get(&(leaf.table, attnum))?;
        Some(below.expression == *expression && below.is_stored == *is_stored)
    };
    let leaves = catalog.partitioned.get(&table.id).map_or(&[][..], |partitioned| &partitioned.leaves);
    if !leaves.iter().all(|leaf| is_same(leaf) == Some(true)) {
        return None;
    }
    // What is of a domain is checked where it is made.
    let pg_type = catalog.pg_type(of.type_oid)?;
    Some(Computed { attnum: of.attnum, pg_type, expression: Arc::clone(expression), is_stored: *is_stored })
}
