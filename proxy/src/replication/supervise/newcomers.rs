//! Tables that are new since the catalog in use was read. The fingerprint covers only what statements are answered from,
//! so that an application's other tables may come and go; a statement that names a table which the catalog does not
//! have makes freshet look for one of that name.

use std::time::Duration;

use freshet_engine::catalog::RelationId;
use tokio::time::sleep;

use crate::replication::catalog::versions_sql;
use crate::replication::supervise::Replication;
use crate::upstream::UpstreamError;

/// Looks follow each other no faster.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// Names looked for at a time; further ones are looked for when they are named again.
const NAMES_MAX: usize = 64;

const OF_NAMES: &str = "c.relname = ANY ($1::text[]) AND c.relkind IN ('r', 'p', 'v', 'm') AND c.relpersistence = 'p'";

impl Replication {
    /// A statement named a relation that the catalog in use does not have, or that is not answered from.
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
            match self.has_new_table(&names).await {
                Ok(true) => self.request_reload(),
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "new tables were not looked for"),
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    async fn has_new_table(&self, names: &[String]) -> Result<bool, UpstreamError> {
        let rows = self.shared.pool.connection().await?.query(&versions_sql(OF_NAMES), &[&names]).await?;
        let loaded = self.loaded();
        let is_known = |row: &tokio_postgres::Row| {
            let (id, name) = (RelationId(row.get(0)), row.get::<_, &str>(1));
            let entries = loaded.catalog.schemas.values().filter_map(|entries| entries.get(name));
            let is_as_it_was = || loaded.others.get(&id).is_none_or(|version| *version == row.get::<_, i64>(2));
            entries.into_iter().any(|entry| entry.id() == id) && is_as_it_was()
        };
        Ok(!rows.iter().all(is_known))
    }
}
