//! Which tables the setting `mirror.tables` means in a catalog, and which of its names mean none.

use std::collections::HashSet;

use freshet_config::TableChoice;
use freshet_engine::catalog::{Catalog, RelationEntry, RelationId, with_article};

/// What a statement over another table is told.
pub const LEFT_OUT: &str = "mirror.tables leaves it out";

/// What a setting means in one catalog.
#[derive(Debug, Default)]
pub struct Chosen {
    /// None: all of them.
    tables: Option<HashSet<RelationId>>,
    /// Names that are of no table, and why.
    pub unknown: Vec<(String, String)>,
}

impl Chosen {
    pub fn of(choice: &TableChoice, catalog: &Catalog) -> Self {
        match choice {
            TableChoice::Auto => Self::default(),
            TableChoice::None => Self { tables: Some(HashSet::new()), unknown: Vec::new() },
            TableChoice::List(names) => Self::listed(names, catalog),
        }
    }

    fn listed(names: &[String], catalog: &Catalog) -> Self {
        let mut tables = HashSet::new();
        let mut unknown = Vec::new();
        for listed in names {
            let (schema, name) = listed.split_once('.').unwrap_or(("public", listed));
            match catalog.relation(Some(schema), name, &[]) {
                Some(RelationEntry::Table(table)) => {
                    // With those that inherit from it, or its name could not be answered.
                    let all = catalog.with_heirs(table.id).unwrap_or_else(|_| vec![table.id]);
                    tables.extend(catalog.expand(&all).into_iter().filter(|id| !catalog.is_derived(*id)));
                }
                Some(RelationEntry::View(_)) => unknown.push((listed.clone(), "it is a view: name its tables".into())),
                Some(RelationEntry::Materialized(_)) => {
                    unknown.push((listed.clone(), "it is a materialized view, of which replies are kept".into()));
                }
                Some(RelationEntry::Other { kind, .. }) => {
                    unknown.push((listed.clone(), format!("it is {}", with_article(kind))));
                }
                None => unknown.push((listed.clone(), absent(schema, name, catalog))),
            }
        }
        Self { tables: Some(tables), unknown }
    }

    pub fn has(&self, table: RelationId) -> bool {
        self.tables.as_ref().is_none_or(|tables| tables.contains(&table))
    }

    /// Those of a list.
    pub fn tables(&self) -> impl Iterator<Item = RelationId> {
        self.tables.iter().flatten().copied()
    }
}

fn absent(schema: &str, name: &str, catalog: &Catalog) -> String {
    let mut elsewhere: Vec<&str> = catalog
        .schemas
        .iter()
        .filter(|(_, entries)| matches!(entries.get(name), Some(RelationEntry::Table(_))))
        .map(|(schema, _)| &**schema)
        .collect();
    elsewhere.sort_unstable();
    match elsewhere.first() {
        Some(found) => format!("there is no such table in schema {schema}, but there is {found}.{name}"),
        None => format!("there is no such table in schema {schema}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_no_table_are_told_apart_from_what_is_left_out() {
        let list = TableChoice::List(vec!["nope".into(), "no.such".into()]);
        let chosen = Chosen::of(&list, &Catalog::default());
        let why = |schema| format!("there is no such table in schema {schema}");
        assert_eq!(chosen.unknown, [("nope".into(), why("public")), ("no.such".into(), why("no"))]);
        let table = RelationId(1);
        assert!(!chosen.has(table) && Chosen::of(&TableChoice::Auto, &Catalog::default()).has(table));
        assert!(!Chosen::of(&TableChoice::None, &Catalog::default()).has(table));
    }
}
