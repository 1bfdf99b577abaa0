//! Whether upstream's time zone data is ours: asked once for each zone that a session or a statement names.
//!
//! PostgreSQL may use the system's zone database, freshet the system's or its own copy; releases differ. A zone whose
//! offsets differ anywhere goes upstream. Another start of upstream's may be with other data: then all are asked again.

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use ahash::HashMap;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::types::datetime::zone::{named, of_session, offset_seconds_at, telling_moments};
use jiff::tz::TimeZone;
use parking_lot::RwLock;

use crate::upstream::UpstreamError;
use crate::upstream::service::ServicePool;

/// Verdicts by zone name. Bounded by the names of zones that exist.
pub struct ZoneData {
    pool: ServicePool,
    /// When upstream was started, as of the verdicts.
    started_at: AtomicI64,
    agrees: RwLock<HashMap<String, bool>>,
}

impl ZoneData {
    pub(super) fn new(pool: ServicePool) -> Self {
        Self { pool, started_at: AtomicI64::new(0), agrees: RwLock::default() }
    }

    /// Forgets the verdicts on the data of another start.
    pub(super) fn of_start(&self, started_at: i64) -> &Self {
        if self.started_at.load(SeqCst) != started_at {
            let mut agrees = self.agrees.write();
            if self.started_at.swap(started_at, SeqCst) != started_at {
                agrees.clear();
            }
        }
        self
    }

    /// Ok if `name`, which a statement names, is no zone of the zone database here (then nothing is computed with it), or one that
    /// upstream has with the same offsets.
    pub async fn check(&self, name: &str) -> Result<(), UpstreamReason> {
        if self.is_known_to_agree(name) {
            return Ok(());
        }
        let Some(zone) = named(name) else { return Ok(()) };
        self.compare(name, &zone).await
    }

    /// Likewise of the value of a session's TimeZone: names without a slash (`CET`, `Japan`, `localtime`) are zones there, too, whereas in a
    /// statement they may be abbreviations.
    pub async fn check_session(&self, value: &str) -> Result<(), UpstreamReason> {
        if self.is_known_to_agree_for_session(value) {
            return Ok(());
        }
        let Some(zone) = of_session(value) else { return Ok(()) };
        self.compare(value, &zone).await
    }

    async fn compare(&self, name: &str, zone: &TimeZone) -> Result<(), UpstreamReason> {
        let known = self.agrees.read().get(name).copied();
        let agrees = match known {
            Some(agrees) => agrees,
            None => {
                let moments = telling_moments(zone);
                let started_at = self.started_at.load(SeqCst);
                let theirs = self.ask(name, &moments).await.map_err(|error| {
                    UpstreamReason::SessionSetting(format!("time zone {name} could not be compared: {error}").into())
                })?;
                let ours = moments.iter().map(|moment| offset_seconds_at(zone, *moment));
                let agrees = ours.eq(theirs);
                if !agrees {
                    tracing::warn!(zone = name, "upstream's time zone data differ; what uses this zone is relayed");
                }
                let mut known = self.agrees.write();
                if self.started_at.load(SeqCst) == started_at {
                    known.insert(name.to_string(), agrees);
                }
                agrees
            }
        };
        let differs = || UpstreamReason::SessionSetting(format!("time zone {name} differs upstream").into());
        if agrees { Ok(()) } else { Err(differs()) }
    }

    /// Whether a check of that name would be Ok at once.
    pub fn is_known_to_agree(&self, name: &str) -> bool {
        let is_no_region = || named(name).is_none();
        !name.contains('/') || self.agrees.read().get(name).copied().unwrap_or_else(is_no_region)
    }

    /// Likewise of a session's TimeZone.
    pub fn is_known_to_agree_for_session(&self, value: &str) -> bool {
        if value.contains('/') {
            return self.is_known_to_agree(value);
        }
        // UTC by any name, and offsets, are what they are.
        let is_fixed = value.starts_with('<') || named(value).is_some();
        is_fixed || self.agrees.read().get(value).copied().unwrap_or_else(|| of_session(value).is_none())
    }

    /// Upstream's offsets at these moments, by what its sessions make of the name.
    async fn ask(&self, name: &str, moments: &[i64]) -> Result<Vec<i32>, UpstreamError> {
        let mut client = self.pool.connection().await?;
        let transaction = client.transaction().await?;
        transaction.execute("SELECT set_config('TimeZone', $1, true)", &[&name]).await?;
        let row = transaction
            .query_one(
                "SELECT array_agg((extract(epoch FROM to_timestamp(u.t::float8)::timestamp) - u.t)::int ORDER BY u.place)
                   FROM unnest($1::int8[]) WITH ORDINALITY u (t, place)",
                &[&moments],
            )
            .await?;
        transaction.rollback().await?;
        Ok(row.try_get::<_, Option<Vec<i32>>>(0)?.unwrap_or_default())
    }
}
