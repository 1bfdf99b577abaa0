//! Who may execute PostgreSQL's own functions. There are thousands, so that no barrier looks at them: a REVOKE of EXECUTE from
//! everybody, and a GRANT, count from the next look on, half a second later at most.

use std::time::Duration;

use tokio::time::sleep;

use crate::replication::catalog::{RESTRICTED, restricted};
use crate::replication::supervise::Replication;
use crate::upstream::UpstreamError;

/// A look costs upstream about a millisecond.
const LOOK_PAUSE: Duration = Duration::from_millis(400);

impl Replication {
    pub(super) async fn look_at_built_ins(self) {
        loop {
            sleep(LOOK_PAUSE).await;
            match self.restricts_others().await {
                Ok(true) => self.request_reload(),
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "PostgreSQL's own functions were not looked at"),
            }
        }
    }

    /// Whether others are restricted than the catalog in use says.
    async fn restricts_others(&self) -> Result<bool, UpstreamError> {
        let rows = self.shared.pool.connection().await?.query(RESTRICTED, &[]).await?;
        Ok(restricted(&rows) != self.loaded().catalog.restricted)
    }
}
