//! Who may execute PostgreSQL's own functions, and which types have their names. There are thousands, so that no barrier looks at
//! them: a REVOKE of EXECUTE from everybody, a GRANT, and such a type count from the next look on, half a second later at most.

use std::time::Duration;

use tokio::time::sleep;

use crate::replication::catalog::{RESTRICTED, namesakes_digest_sql, restricted};
use crate::replication::supervise::Replication;
use crate::upstream::UpstreamError;

/// A look costs upstream about a millisecond.
const LOOK_PAUSE: Duration = Duration::from_millis(400);

impl Replication {
    pub(super) async fn look_at_built_ins(self) {
        // What the catalog in use was read beside is not known at first: one reload too many where there are any.
        let mut namesakes = 0;
        let digest = namesakes_digest_sql();
        loop {
            sleep(LOOK_PAUSE).await;
            match self.look_once(&digest, &mut namesakes).await {
                Ok(true) => self.request_reload(),
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "PostgreSQL's own functions were not looked at"),
            }
        }
    }

    /// Whether others are restricted than the catalog in use says, or there are other namesakes than at the last look.
    async fn look_once(&self, digest: &str, namesakes: &mut i64) -> Result<bool, UpstreamError> {
        let client = self.shared.pool.connection().await?;
        let rows = client.query(&client.prepare_cached(RESTRICTED).await?, &[]).await?;
        // Noted once nothing can fail any more.
        let now = client.query_one(&client.prepare_cached(digest).await?, &[]).await?.get(0);
        let before = std::mem::replace(namesakes, now);
        Ok(before != now || restricted(&rows) != self.loaded().catalog.restricted)
    }
}
