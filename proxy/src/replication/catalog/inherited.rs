//! Ordinary tables that others inherit from: which those are, and which of their columns are the parent's.

use freshet_engine::catalog::{Catalog, Leaf, RelationId, TableSchema};

use crate::replication::catalog::partitioned::{Children, Mismatch, places};

/// Fills [`Catalog::heirs`] for the tables that stand for their own rows.
pub(super) fn place(catalog: &mut Catalog, children: &Children) {
    let parents = children.keys().filter(|id| !catalog.partitioned.contains_key(id));
    let parents = parents.filter_map(|id| catalog.tables.get(id));
    catalog.heirs = parents.map(|parent| (parent.id, heirs(catalog, children, parent))).collect();
}

/// All that is below, each once (pg_inherits.c, find_all_inheritors). Whatever is not in the catalog as an ordinary table
/// (a foreign one, one with row security, one of a session's own) is an error.
fn heirs(catalog: &Catalog, children: &Children, parent: &TableSchema) -> Result<Vec<Leaf>, &'static str> {
    let mut all = vec![parent.id];
    let mut next = 0;
    while let Some(level) = all.get(next) {
        next += 1;
        for child in children.get(level).into_iter().flatten().flatten() {
            if !all.contains(child) {
                all.push(*child);
            }
        }
    }
    all[1..].iter().map(|child| heir(catalog, *child, parent)).collect()
}

fn heir(catalog: &Catalog, child: RelationId, parent: &TableSchema) -> Result<Leaf, &'static str> {
    let table = catalog.tables.get(&child).filter(|_| !catalog.partitioned.contains_key(&child));
    let table = table.ok_or("table with an inheritance child that is no ordinary table")?;
    let columns = places(parent, table).map_err(|mismatch| match mismatch {
        Mismatch::Missing => "table whose inheritance child lacks a column",
        Mismatch::Type => "table whose inheritance child has a column of another type",
    })?;
    Ok(Leaf { table: child, columns })
}
