//! Generated columns that the engine may compute: their expressions, which name nothing but the table's own columns and what is built
//! in. Functions, types and operators of users may compute something else by now than when a row was written.

use std::collections::HashMap;
use std::sync::Arc;

use freshet_engine::catalog::{Catalog, Computed, RelationId, TableSchema};
use freshet_engine::types::Oid;
use tokio_postgres::Transaction;

use crate::replication::catalog::texts;
use crate::upstream::UpstreamError;

/// Before PostgreSQL 15 what an expression depends on is said of the column (catalog/heap.c, StoreAttrDefault).
const GENERATED: &str = "\
    SELECT d.oid, adrelid, adnum, attgenerated = 's'
      FROM pg_attribute a JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum
     WHERE attgenerated <> '' AND NOT attisdropped AND attrelid >= 16384
       AND NOT EXISTS (SELECT FROM pg_depend
                        WHERE (classid = 'pg_attrdef'::regclass AND objid = d.oid
                               OR classid = 'pg_class'::regclass AND objid = attrelid AND objsubid = attnum)
                          AND refobjid >= 16384 AND NOT (refclassid = 'pg_class'::regclass AND refobjid = attrelid))";

/// The expressions of generated columns, as pg_get_expr writes them, and whether the column is stored.
pub(super) type Expressions = HashMap<(RelationId, i16), (Arc<str>, bool)>;

/// Beside them, whether some could not be read because somebody holds their table.
pub(super) async fn load_expressions(transaction: &Transaction<'_>) -> Result<(Expressions, bool), UpstreamError> {
    let rows = transaction.query(GENERATED, &[]).await?;
    let oids: Vec<Oid> = rows.iter().map(|row| row.get(0)).collect();
    let call = "(SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE oid = $)";
    let mut texts = texts::read(transaction, call, &oids).await?;
    let expression = |row: &tokio_postgres::Row| {
        let text = texts.read.remove(&row.get(0))?;
        Some(((RelationId(row.get(1)), row.get(2)), (text.into(), row.get(3))))
    };
    Ok((rows.iter().filter_map(expression).collect(), !texts.locked.is_empty()))
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
    let (expression, is_stored) = expressions.get(&(table.id, of.attnum))?;
    // A partition may compute it otherwise.
    let is_same = |leaf: &freshet_engine::catalog::Leaf| {
        let below = catalog.tables.get(&leaf.table)?;
        let attnum = below.columns[*leaf.columns.get(column)?].attnum;
        Some(expressions.get(&(leaf.table, attnum))? == &(Arc::clone(expression), *is_stored))
    };
    let leaves = catalog.partitioned.get(&table.id).map_or(&[][..], |partitioned| &partitioned.leaves);
    if !leaves.iter().all(|leaf| is_same(leaf) == Some(true)) {
        return None;
    }
    // What is of a domain is checked where it is made.
    let pg_type = catalog.pg_type(of.type_oid)?;
    Some(Computed { attnum: of.attnum, pg_type, expression: Arc::clone(expression), is_stored: *is_stored })
}
