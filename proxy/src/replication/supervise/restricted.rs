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
        loop {
            sleep(LOOK_PAUSE).await;
            let looked = async {
                let restricts_others = self.restricts_others().await?;
                // Noted once nothing can fail any more.
                let now = self.namesakes().await?;
                let before = std::mem::replace(&mut namesakes, now);
                Ok::<_, UpstreamError>(restricts_others || before != now)
            };
            match looked.await {
                Ok(true) => self.request_reload(),
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "PostgreSQL's own functions were not looked at"),
            }
        }
    }

    async fn namesakes(&self) -> Result<i64, UpstreamError> {
        Ok(self.shared.pool.connection().await?.query_one(&namesakes_digest_sql(), &[]).await?.get(0))
    }

    /// Whether others are restricted than the catalog in use says.
    async fn restricts_others(&self) -> Result<bool, UpstreamError> {
        let rows = self.shared.pool.connection().await?.query(RESTRICTED, &[]).await?;
        Ok(restricted(&rows) != self.loaded().catalog.restricted)
    }
}
