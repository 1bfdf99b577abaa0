//! Tables that are new or others since the catalog in use was read. The fingerprint covers only what statements are answered from,
//! so that an application's other tables may come and go; a statement that names a table which the catalog does not
//! have, or that is refused for what the catalog says of its tables, makes freshet look at those of that name.

use std::time::Duration;

use freshet_engine::catalog::{RelationEntry, RelationId};
use tokio::time::sleep;

use crate::replication::catalog::{relations_digest_sql, versions_sql};
use crate::replication::supervise::Replication;
use crate::upstream::UpstreamError;

/// Looks follow each other no faster.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// Names looked for at a time; further ones are looked for when they are named again.
const NAMES_MAX: usize = 64;

/// All that a statement may read: of those that are never answered from the operator is told what they are.
const OF_NAMES: &str =
    "c.relname = ANY ($1::text[]) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relpersistence <> 't'";

impl Replication {
    /// A statement named a relation that the catalog in use does not have, or was refused for what it says of it.
    pub fn look_for_table(&self, name: &str) {
        let mut names = self.shared.newcomers.lock();
        if names.len() < NAMES_MAX && names.insert(name.to_string()) {
            self.shared.named.notify_one();
        }
    }

    pub(super) async fn look_on_demand(self) {
        loop {
            self.shared.named.notified().await;
            let names: Vec<String> = self.shared.newcomers.lock().drain().collect();
            match self.has_changed(&names).await {
                Ok(true) => self.request_reload(),
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "named tables were not looked for"),
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    async fn has_changed(&self, names: &[String]) -> Result<bool, UpstreamError> {
        let client = self.shared.pool.connection().await?;
        let rows = client.query(&versions_sql(OF_NAMES), &[&names]).await?;
        let loaded = self.loaded();
        let named = |name: &str| {
            let entries = loaded.catalog.schemas.values().filter_map(move |entries| entries.get(name));
            entries.map(RelationEntry::id).collect::<Vec<RelationId>>()
        };
        let is_known = |row: &tokio_postgres::Row| {
            let id = RelationId(row.get(0));
            let is_as_it_was = || loaded.others.get(&id).is_none_or(|version| *version == row.get::<_, i64>(2));
            named(row.get(1)).contains(&id) && is_as_it_was()
        };
        if !rows.iter().all(is_known) {
            return Ok(true);
        }
        // Those that a barrier would compare, too; a REFRESH alone changes what is compared of a materialized view.
        let is_compared = |id: &RelationId| {
            loaded.tables.contains_key(id) || loaded.derived.contains_key(id) && !loaded.materialized.contains_key(id)
        };
        let compared: Vec<RelationId> = names.iter().flat_map(|name| named(name)).filter(is_compared).collect();
        let oids: Vec<u32> = compared.iter().map(|relation| relation.0).collect();
        let found = client.query_one(&format!("SELECT {}", relations_digest_sql()), &[&oids]).await?.get(0);
        Ok(loaded.relations_digest(&compared) != Some(found))
    }
}
