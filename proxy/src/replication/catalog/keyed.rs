//! Whether the text of a write means what [`freshet_engine::statement::confined`] read in it, by what the database has beside
//! PostgreSQL's own; and since when tables have had their columns.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use freshet_engine::catalog::{Catalog, RelationId, TableSchema};
use freshet_engine::statement::confined::ConfinedWrite;
use tokio_postgres::Transaction;

use crate::replication::catalog::contents::is_same_life;
use crate::replication::catalog::{LoadedCatalog, TableFacts};
use crate::upstream::UpstreamError;

/// What a text may mean in place of PostgreSQL's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookalikes {
    /// Operators: another `=` over a type of PostgreSQL's may take other values for equal, and what is not written in C may
    /// write rows.
    operators: HashSet<Arc<str>>,
    /// A unique index may take other values for equal: the row that conflicts is another one.
    has_operator_classes: bool,
}

pub(super) async fn load(transaction: &Transaction<'_>) -> Result<Lookalikes, UpstreamError> {
    // Extensions' operators over their own types are none (citext, hstore, PostGIS and pgvector have each an =): a constant beside
    // a column of PostgreSQL's types never makes the parser choose them (parse_oper.c, binary_oper_exact). A varchar has no = of its
    // own, so that one with a foreign type on one side might be chosen.
    let operators = transaction
        .query(
            "SELECT DISTINCT oprname FROM pg_operator o JOIN pg_proc p ON p.oid = oprcode
              WHERE o.oid >= 16384
                AND (prolang NOT IN (12, 13) OR oprname = '=' AND (oprleft < 16384 OR oprright < 16384))",
            &[],
        )
        .await?;
    let classes = transaction
        .query_one(
            "SELECT EXISTS (SELECT FROM pg_opclass WHERE oid >= 16384 AND opcmethod = 403 AND opcintype < 16384)",
            &[],
        )
        .await?;
    let operators = operators.iter().map(|row| Arc::from(row.get::<_, &str>(0))).collect();
    Ok(Lookalikes { operators, has_operator_classes: classes.get(0) })
}

/// Notes since which version of the catalog the tables have had the columns that they have.
pub(super) fn date_layouts(tables: &mut HashMap<RelationId, TableFacts>, catalog: &Catalog, before: &LoadedCatalog) {
    let is_same_life = is_same_life(catalog, before);
    for (relation, facts) in tables {
        // The definition has every relation of the name in it: a statement may have been parsed when it meant another.
        let is_same = |known: &&TableFacts| known.layout == facts.layout && known.definition == facts.definition;
        let known = before.tables.get(relation).filter(|known| is_same_life && is_same(known));
        facts.layout_since = known.map_or(catalog.version, |known| known.layout_since);
    }
}

impl LoadedCatalog {
    /// Whether a write of this table means what its text looks like.
    pub fn understands(&self, write: &ConfinedWrite, table: &TableSchema) -> bool {
        let (names, catalog) = (&write.names, &self.catalog);
        // A name that is no column may be the whole row, or with a table before it a function's (parse_func.c).
        let is_column = |name: &String| table.columns.iter().any(|column| *column.name == **name);
        let is_another = names.types.iter().any(|name| catalog.user_types.contains(*name))
            || names.functions.iter().any(|name| catalog.user_functions.contains(name))
            || names.operators.iter().any(|name| self.lookalikes.operators.contains(*name))
            || (write.upserts_by.is_some() && self.lookalikes.has_operator_classes);
        self.keys_are_not_told_because().is_none() && !is_another && names.columns.iter().all(is_column)
    }

    /// Why no write is told apart by its keys; for people.
    pub fn keys_are_not_told_because(&self) -> Option<&'static str> {
        if self.catalog.changes_builtin_types {
            return Some("the database has casts between PostgreSQL's types, or default operator classes of them");
        }
        self.lookalikes.operators.contains("=").then_some("the database has an operator = over PostgreSQL's types")
    }
}

#[cfg(test)]
mod tests {
    use freshet_engine::catalog::{Collation, ColumnSchema, ReplicaIdentity};
    use freshet_engine::statement::{confined::confined, lexer};
    use freshet_engine::types::PgType;

    use super::*;

    fn table() -> TableSchema {
        let column = |(at, name): (usize, &&str)| ColumnSchema {
            name: (*name).into(),
            attnum: at as i16 + 1,
            type_oid: 23,
            typmod: -1,
            pg_type: Some(PgType::Int4),
            not_null: true,
            collation: Collation::None,
        };
        TableSchema {
            id: RelationId(20_000),
            schema: "public".into(),
            name: "t".into(),
            columns: ["id", "v"].iter().enumerate().map(column).collect(),
            primary_key: vec![0],
            identity: ReplicaIdentity::Key(vec![0]),
        }
    }

    fn understands(loaded: &LoadedCatalog, sql: &str) -> bool {
        let tokens = lexer::tokens(sql).expect("lexes");
        loaded.understands(&confined(&tokens).expect("is read"), &table())
    }

    fn with(catalog: Catalog, lookalikes: Lookalikes) -> LoadedCatalog {
        LoadedCatalog { catalog: Arc::new(catalog), lookalikes, ..LoadedCatalog::default() }
    }

    const PLAIN: &str = "UPDATE t SET v = v + 1 WHERE id = 5";
    const CAST: &str = "UPDATE t SET v = 1::int4 WHERE id = 5";
    const NOW: &str = "UPDATE t SET v = now() WHERE id = 5";
    const UPSERT: &str = "INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = 3";

    #[test]
    fn a_name_that_may_be_another_is_not_understood() {
        let names = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect();
        let all = [PLAIN, CAST, NOW, UPSERT];
        let understood = |loaded: &LoadedCatalog| all.map(|sql| understands(loaded, sql));
        assert_eq!(understood(&LoadedCatalog::default()), [true; 4]);
        assert!(!understands(&LoadedCatalog::default(), "UPDATE t SET v = t.twice WHERE id = 5"), "no column");
        let operators = |operator: &str| Lookalikes { operators: names(&[operator]), ..Lookalikes::default() };
        assert_eq!(understood(&with(Catalog::default(), operators("+"))), [false, true, true, true]);
        assert_eq!(understood(&with(Catalog::default(), operators("="))), [false; 4]);
        let classes = Lookalikes { has_operator_classes: true, ..Lookalikes::default() };
        assert_eq!(understood(&with(Catalog::default(), classes)), [true, true, true, false]);
        let types = Catalog { user_types: names(&["int4"]), ..Catalog::default() };
        assert_eq!(understood(&with(types, Lookalikes::default())), [true, false, true, true]);
        let functions = Catalog { user_functions: ["now".into()].into_iter().collect(), ..Catalog::default() };
        assert_eq!(understood(&with(functions, Lookalikes::default())), [true, true, false, true]);
        let casts = Catalog { changes_builtin_types: true, ..Catalog::default() };
        assert_eq!(understood(&with(casts, Lookalikes::default())), [false; 4]);
    }

    #[test]
    fn a_layout_is_as_old_as_it_has_been_known_without_a_change() {
        let facts = |(layout, digest)| TableFacts {
            schema: Arc::new(table()),
            digest,
            definition: digest,
            layout,
            filenode: 0,
            layout_since: 0,
            heap_bytes: 0,
            refusal: None,
            writes_stay: true,
        };
        let id = RelationId(20_000);
        let load = |version, layout, before: &LoadedCatalog| {
            let orders = Arc::clone(&before.catalog.orders);
            let catalog = Catalog { version, orders, ..Catalog::default() };
            let mut tables = HashMap::from([(id, facts(layout))]);
            date_layouts(&mut tables, &catalog, before);
            LoadedCatalog { tables, ..with(catalog, Lookalikes::default()) }
        };
        let since = |loaded: &LoadedCatalog| loaded.tables[&id].layout_since;
        let first = load(3, (7, 1), &LoadedCatalog::default());
        let same = load(4, (7, 1), &first);
        let other = load(5, (8, 1), &same);
        let namesake = load(6, (8, 2), &other);
        assert_eq!([since(&first), since(&same), since(&other), since(&namesake)], [3, 3, 5, 6]);
    }
}
