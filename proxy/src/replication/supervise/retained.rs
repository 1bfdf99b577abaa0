//! How much of its log upstream keeps for freshet's slot, and what happens when that is too much.
//!
//! A logical slot keeps the log from where decoding would have to start again: from the beginning of the oldest transaction that was
//! open when it last looked, or from what freshet has not acknowledged. So a transaction that somebody leaves open, or a freshet that does
//! not keep up, can fill upstream's disk. The slot goes before that, and everything is relayed meanwhile.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::replication::supervise::Replication;
use crate::upstream::UpstreamError;

/// Between looks at what is kept.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// A look.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// After a slot was given up, the next one waits as long as that one lived, within these: whatever was too much is likely to be so
/// again, and the copies of the next life are a load, too.
const RESPITE_MIN: Duration = Duration::from_secs(1);
const RESPITE_MAX: Duration = Duration::from_secs(600);

/// Of the slot that a process holds, also while it is still being made. `restart_lsn`: see pg_replication_slots.
const KEPT: &str = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::int8
                      FROM pg_replication_slots WHERE active_pid = $1 AND restart_lsn IS NOT NULL";

/// How long upstream is left alone after a slot that lived so long was given up.
pub(super) fn respite(lived: Duration) -> Duration {
    lived.clamp(RESPITE_MIN, RESPITE_MAX)
}

impl Replication {
    /// Returns, with the reason, when upstream keeps more of its log for the walsender's slot than it may.
    pub(super) async fn watch_kept_wal(&self, walsender: i32) -> String {
        let shared = &self.shared;
        let max = shared.options.wal_kept_bytes_max;
        loop {
            // Upstream may not answer: what it keeps is told by the next look that it answers.
            if let Ok(Ok(Some(kept))) = timeout(LOOK_MAX, self.look_at_kept_wal(walsender)).await {
                shared.counters.wal_kept_bytes.store(kept, Ordering::Relaxed);
                if max > 0 && kept > max {
                    return format!(
                        "upstream kept {kept} bytes of its log for freshet's slot, more than mirror.wal_kept_bytes_max ({max}): \
                         a transaction has been open for long, or freshet does not keep up; the slot was given up"
                    );
                }
            }
            sleep(LOOK_PAUSE).await;
        }
    }

    async fn look_at_kept_wal(&self, walsender: i32) -> Result<Option<u64>, UpstreamError> {
        let row = self.shared.pool.connection().await?.query_opt(KEPT, &[&walsender]).await?;
        Ok(row.map(|row| u64::try_from(row.get::<_, i64>(0)).unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_has_at_least_half_of_the_time_for_itself() {
        for lived in [0, 1, 5, 599, 600] {
            assert!(respite(Duration::from_secs(lived)) >= Duration::from_secs(lived));
        }
        assert_eq!(respite(Duration::ZERO), RESPITE_MIN);
        assert_eq!(respite(Duration::from_secs(86_400)), RESPITE_MAX);
    }
}
