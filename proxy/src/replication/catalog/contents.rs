//! What is changed of a relation's rows in the catalog without a change of what it is.
//!
//! TRUNCATE, VACUUM FULL and CLUSTER give a table another file, and its row in pg_class says so: the digest that barriers compare is
//! another, although every statement means what it meant, and what became of the rows is in the stream. A version of the catalog that
//! differs in no more keeps its number, and with it all plans and replies that do not read the table.
//!
//! Materialized views: their rows are upstream's, but what changes them can be followed, so that replies over them are kept.
//! Every REFRESH, CONCURRENTLY too, writes the view's row in pg_class anew in the transaction that changes the rows (matview.c,
//! SetMatViewPopulatedState; seen on 14 to 18), and nothing else may change them: no DML, no COPY, no TRUNCATE, no trigger, no
//! rule. So the digest that barriers compare for every relation tells whether the rows are the same. As most of that row is
//! not what a statement means but where the rows are, a REFRESH alone makes no new version of the catalog: it makes another
//! number of this view's contents.

use std::collections::HashMap;
use std::sync::Arc;

use freshet_engine::catalog::{Catalog, RelationId};
use freshet_engine::types::Oid;
use tokio_postgres::Transaction;

use crate::replication::catalog::{LoadedCatalog, TableFacts};
use crate::upstream::UpstreamError;

/// For relations `$1`, what to combine the digest of their rows in the catalog with: it takes out the row in pg_class, and puts in
/// what of it neither another file nor a REFRESH changes (relcache.c, RelationSetNewRelfilenumber; cluster.c, swap_relation_files;
/// matview.c).
const WITHOUT_CONTENTS: &str = "\
    SELECT c.oid, hashint8extended(c.xmin::text::int8, c.oid::int8 << 32 | c.oid::int8)
                  # hashtextextended((to_jsonb(c) - '{relfilenode, reltoastrelid, relpages, reltuples, relallvisible,
                        relallfrozen, relfrozenxid, relminmxid, relispopulated}'::text[])::text, 0)
      FROM pg_class c WHERE c.oid = ANY ($1::oid[])";

/// For each materialized view, a digest of everything that decides what a statement over it means and who may read it: the digest
/// of its rows in the catalog (`digests`), but for its contents. Likewise for the tables, [`TableFacts::definition`].
pub(super) async fn load(
    transaction: &Transaction<'_>,
    catalog: &Catalog,
    digests: &HashMap<RelationId, i64>,
    tables: &mut HashMap<RelationId, TableFacts>,
    before: &LoadedCatalog,
) -> Result<HashMap<RelationId, i64>, UpstreamError> {
    // A relation takes PostgreSQL 20 us: those that are as they were are not asked for.
    let is_same_life = is_same_life(catalog, before);
    let known = |relation: &RelationId| before.tables.get(relation).filter(|_| is_same_life);
    let mut oids: Vec<Oid> = catalog.materialized.keys().map(|relation| relation.0).collect();
    for (relation, facts) in &mut *tables {
        match known(relation) {
            Some(known) if known.digest == facts.digest => facts.definition = known.definition,
            _ => oids.push(relation.0),
        }
    }
    let mut materialized = HashMap::new();
    for row in transaction.query(WITHOUT_CONTENTS, &[&oids]).await? {
        let (relation, contents) = (RelationId(row.get(0)), row.get::<_, i64>(1));
        if let Some(facts) = tables.get_mut(&relation) {
            facts.definition = facts.digest ^ contents;
        } else {
            materialized.insert(relation, digests.get(&relation).copied().unwrap_or_default() ^ contents);
        }
    }
    Ok(materialized)
}

/// Views that have not changed since `before` was read have the contents that they had. Within one life of the stream: another
/// server may have made other rows in a transaction of the same number.
pub(super) fn carry_over(catalog: &mut Catalog, digests: &HashMap<RelationId, i64>, before: &LoadedCatalog) {
    if !is_same_life(catalog, before) {
        return;
    }
    for (relation, view) in &mut catalog.materialized {
        if let Some(known) = before.catalog.materialized.get(relation)
            && digests.get(relation) == before.derived.get(relation)
        {
            view.contents = known.contents;
        }
    }
}

pub(super) fn is_same_life(catalog: &Catalog, before: &LoadedCatalog) -> bool {
    Arc::ptr_eq(&catalog.orders, &before.catalog.orders)
}

impl LoadedCatalog {
    /// Whether nothing has changed since `before` was read, in the same life of the stream, but the contents of materialized
    /// views, and the files that tables are in (and sizes, and statistics): what was made by that catalog and does not read them is as
    /// good as ever.
    pub(super) fn differs_in_contents_only(&self, before: &Self) -> bool {
        let Self {
            catalog,
            tables,
            derived,
            materialized,
            // No statement that reads one of them is answered.
            others: _,
            definitions: _,
            quiet_roots,
            lookalikes,
            stored_columns: _,
            lacks_texts: _,
        } = self;
        let is_same_table = |(relation, facts): (&RelationId, &TableFacts)| {
            before.tables.get(relation).is_some_and(|known| {
                (known.definition, known.layout, known.writes_stay)
                    == (facts.definition, facts.layout, facts.writes_stay)
                    && known.refusal == facts.refusal
            })
        };
        let is_same_derived = |(relation, digest): (&RelationId, &i64)| {
            materialized.contains_key(relation) || before.derived.get(relation) == Some(digest)
        };
        *materialized == before.materialized
            && *quiet_roots == before.quiet_roots
            && *lookalikes == before.lookalikes
            && tables.len() == before.tables.len()
            && tables.iter().all(is_same_table)
            && derived.len() == before.derived.len()
            && derived.iter().all(is_same_derived)
            && catalog.means_the_same_as(&before.catalog)
    }
}

#[cfg(test)]
mod tests {
    use freshet_engine::catalog::{Materialized, ReplicaIdentity, TableSchema, View};

    use super::*;

    const VIEW: RelationId = RelationId(20_000);
    const OTHER: RelationId = RelationId(20_001);

    /// A catalog with a materialized view and another one.
    fn loaded(
        version: u64,
        digest: i64,
        definition: i64,
        orders: &Arc<freshet_engine::catalog::order::Orders>,
    ) -> LoadedCatalog {
        let (schema, name): (Arc<str>, Arc<str>) = ("public".into(), "m".into());
        let identity = ReplicaIdentity::Nothing;
        let schema =
            Arc::new(TableSchema { id: VIEW, schema, name, columns: Vec::new(), primary_key: Vec::new(), identity });
        let view = View { schema: Arc::clone(&schema), definition: "SELECT 1".into(), owner: None, is_barrier: false };
        let catalog = Catalog {
            version,
            materialized: [(VIEW, Materialized { schema, contents: version })].into(),
            views: [(OTHER, Arc::new(view))].into(),
            orders: Arc::clone(orders),
            ..Catalog::default()
        };
        LoadedCatalog {
            catalog: Arc::new(catalog),
            derived: [(VIEW, digest), (OTHER, 5)].into(),
            materialized: [(VIEW, definition)].into(),
            ..LoadedCatalog::default()
        }
    }

    #[test]
    fn a_refresh_is_told_from_every_other_change() {
        let orders = Arc::default();
        let before = loaded(1, 10, 20, &orders);
        assert!(loaded(2, 11, 20, &orders).differs_in_contents_only(&before));
        assert!(!loaded(2, 11, 21, &orders).differs_in_contents_only(&before), "a privilege, say");
        assert!(!loaded(2, 11, 20, &Arc::default()).differs_in_contents_only(&before), "another life of the stream");
        let mut other = loaded(2, 11, 20, &orders);
        other.derived.insert(OTHER, 6);
        assert!(!other.differs_in_contents_only(&before), "another relation's definition");
        let mut dropped = loaded(2, 11, 20, &orders);
        dropped.derived.remove(&OTHER);
        assert!(!dropped.differs_in_contents_only(&before));
        let mut common = loaded(2, 11, 20, &orders);
        Arc::make_mut(&mut common.catalog).digest = 1;
        assert!(!common.differs_in_contents_only(&before));
    }

    #[test]
    fn contents_keep_their_number_only_while_nothing_has_touched_them_in_one_life_of_the_stream() {
        let orders = Arc::default();
        let before = loaded(1, 10, 20, &orders);
        let contents = |digest, orders| {
            let now = loaded(2, digest, 20, orders);
            let mut catalog = Arc::unwrap_or_clone(now.catalog);
            carry_over(&mut catalog, &now.derived, &before);
            catalog.materialized[&VIEW].contents
        };
        assert_eq!(contents(10, &orders), 1);
        assert_eq!(contents(11, &orders), 2);
        assert_eq!(contents(10, &Arc::default()), 2);
    }
}
