//! Partitioned tables: which ordinary tables are below each, and which of their columns are its own.

use std::collections::HashMap;
use std::sync::Arc;

use freshet_engine::catalog::{Catalog, ColumnSchema, Leaf, Partitioned, RelationEntry, RelationId, TableSchema};
use tokio_postgres::Transaction;

use crate::upstream::UpstreamError;

/// What is below each table; None: a partition is being detached, and who sees it depends.
pub(super) type Children = HashMap<RelationId, Option<Vec<RelationId>>>;

pub(super) async fn load_children(transaction: &Transaction<'_>) -> Result<Children, UpstreamError> {
    let rows = transaction
        .query(
            "SELECT inhparent, inhrelid, inhdetachpending FROM pg_inherits JOIN pg_class c ON c.oid = inhparent
              WHERE relkind IN ('p', 'r') ORDER BY inhparent, inhrelid",
            &[],
        )
        .await?;
    let mut children = Children::new();
    for row in rows {
        let of = children.entry(RelationId(row.get(0))).or_insert_with(|| Some(Vec::new()));
        match of {
            Some(list) if !row.get::<_, bool>(2) => list.push(RelationId(row.get(1))),
            _ => *of = None,
        }
    }
    Ok(children)
}

/// Makes entries of the partitioned tables: as tables where all their leaves are ordinary ones.
pub(super) fn place(catalog: &mut Catalog, roots: Roots, children: &Children) {
    for (id, root) in &roots {
        let placed = match root {
            Err(special) => Err((special.schema.clone(), special.name.clone(), special.kind)),
            Ok(schema) => partitioned(catalog, &roots, children, schema)
                .map_err(|kind| (Arc::clone(&schema.schema), Arc::clone(&schema.name), kind)),
        };
        match placed {
            Ok(partitioned) => {
                let schema = Arc::clone(&partitioned.schema);
                let names = catalog.schemas.entry(Arc::clone(&schema.schema)).or_default();
                names.insert(Arc::clone(&schema.name), RelationEntry::Table(Arc::clone(&schema)));
                catalog.tables.insert(*id, schema);
                catalog.partitioned.insert(*id, Arc::new(partitioned));
            }
            Err((schema, name, kind)) => {
                let entry = RelationEntry::Other { id: *id, kind };
                catalog.schemas.entry(schema).or_default().insert(name, entry);
            }
        }
    }
}

/// A relation that is not what its kind promises.
pub(super) struct Special {
    pub(super) schema: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) kind: &'static str,
}

/// The partitioned tables by OID.
pub(super) type Roots = HashMap<RelationId, Result<TableSchema, Special>>;

fn partitioned(
    catalog: &Catalog,
    roots: &Roots,
    children: &Children,
    root: &TableSchema,
) -> Result<Partitioned, &'static str> {
    let mut levels = vec![root.id];
    let mut tables: Vec<&Arc<TableSchema>> = Vec::new();
    let mut next = 0;
    while let Some(level) = levels.get(next) {
        next += 1;
        let below = match children.get(level) {
            None => &[][..],
            Some(Some(below)) => below,
            Some(None) => return Err("partitioned table with a partition that is being detached"),
        };
        for child in below {
            match catalog.tables.get(child).filter(|_| !catalog.partitioned.contains_key(child)) {
                Some(table) => tables.push(table),
                // Rules and row security of a level between are not applied to who reads from above, but rare.
                None if matches!(roots.get(child), Some(Ok(_))) => levels.push(*child),
                None => return Err("partitioned table with a partition that is no ordinary table"),
            }
        }
    }
    let mut schema = root.clone();
    let mut leaves = Vec::with_capacity(tables.len());
    for table in tables {
        let columns = places(&schema, table).map_err(|mismatch| match mismatch {
            Mismatch::Missing => "partitioned table whose partition lacks a column",
            Mismatch::Type => "partitioned table whose partition has a column of another type",
        })?;
        for (column, place) in schema.columns.iter_mut().zip(&columns) {
            if table.columns[*place].pg_type.is_none() {
                column.pg_type = None;
            }
        }
        leaves.push(Leaf { table: table.id, columns });
    }
    leaves.sort_unstable_by_key(|leaf| leaf.table);
    levels.sort_unstable();
    Ok(Partitioned { schema: Arc::new(schema), leaves, levels })
}

/// Why rows of one table are not rows of another.
pub(super) enum Mismatch {
    Missing,
    Type,
}

/// For each column of `above`, by name, its place in `below`.
pub(super) fn places(above: &TableSchema, below: &TableSchema) -> Result<Vec<usize>, Mismatch> {
    let place = |column: &ColumnSchema| {
        let place = below.column(&column.name).ok_or(Mismatch::Missing)?;
        let of = &below.columns[place];
        let is_same = (of.type_oid, of.typmod, of.collation) == (column.type_oid, column.typmod, column.collation);
        if is_same { Ok(place) } else { Err(Mismatch::Type) }
    };
    above.columns.iter().map(place).collect()
}
