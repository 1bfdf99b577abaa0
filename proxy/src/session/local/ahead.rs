//! Refresh ahead: a reply that is polled is computed anew right after a change has outdated it, so that the next poll finds it.
//!
//! Only where it pays: the reply before must have been asked for since it was made, and so must each that is made ahead before another one
//! is. So there are at most as many as there would be misses, and one for who stops asking. All together take no more than a
//! share of one processor. What is made is a kept reply like any other, of the moment of a barrier, and valid for readers as any other is.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_engine::Prepared;
use freshet_engine::catalog::RelationId;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::{CachedReply, Keys, ResultKey};
use freshet_engine::types::Value;
use freshet_engine::types::encode::Format;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::audit::Encodings;
use crate::freshness::Served;
use crate::freshness::exposure::BarrierNumber;
use crate::session::local::execute::Execution;
use crate::session::local::{Local, flight};
use crate::session::settings::SessionSettings;
use crate::statistics::ShapeStatistics;

/// Replies watched; one more takes the place of any.
const JOBS_MAX: usize = 128;
/// A reply that took less, in microseconds, is soon made when it is asked for.
const WORTH_US: u64 = 200;
/// Changes are looked at together, at most so often.
const PACE: Duration = Duration::from_millis(10);
/// What could not be looked at is looked at after this.
const AGAIN: Duration = Duration::from_millis(100);
/// How long there may be nothing to watch before it is looked whether the database is still mirrored.
const IDLE: Duration = Duration::from_secs(1);
/// Time that may be saved up.
const SAVED_MAX: Duration = Duration::from_secs(1);

/// The replies of a database that are kept fresh.
#[derive(Debug)]
pub struct Ahead {
    /// Of one processor; 0: off.
    share: f64,
    jobs: Mutex<HashMap<ResultKey, Arc<Job>>>,
    noted: Notify,
}

/// How a reply is computed anew.
#[derive(Debug)]
pub struct Job {
    pub prepared: Arc<Prepared>,
    pub parameters: Arc<[Value]>,
    pub settings: Arc<SessionSettings>,
    pub formats: Vec<Format>,
    pub keys: Keys,
    pub statistics: Arc<ShapeStatistics>,
}

impl Ahead {
    /// `percent`: of one processor, for all `databases` together.
    pub fn new(percent: u64, databases: u64) -> Self {
        Self { share: percent as f64 / 100.0 / databases.max(1) as f64, jobs: Mutex::default(), noted: Notify::new() }
    }

    /// Whether this reply, which is about to take the place of the one kept so far, is one of a series that is polled.
    pub(super) fn wants(&self, local: &Local, key: &ResultKey, reply: &CachedReply) -> bool {
        self.share > 0.0
            && reply.elapsed_us >= WORTH_US
            && local.engine.results.peek(key).is_some_and(|before| before.repeated.is_noted())
    }

    pub(super) fn note(&self, key: &ResultKey, job: Job) {
        let mut jobs = self.jobs.lock();
        if jobs.len() >= JOBS_MAX
            && !jobs.contains_key(key)
            && let Some(other) = jobs.keys().next().cloned()
        {
            jobs.remove(&other);
        }
        jobs.insert(key.clone(), Arc::new(job));
        drop(jobs);
        self.noted.notify_one();
    }

    fn all(&self) -> Vec<(ResultKey, Arc<Job>)> {
        self.jobs.lock().iter().map(|(key, job)| (key.clone(), Arc::clone(job))).collect()
    }

    fn forget(&self, key: &ResultKey) {
        self.jobs.lock().remove(key);
    }

    pub(super) fn clear(&self) {
        self.jobs.lock().clear();
    }
}

/// Runs until the database's mirror ends.
pub async fn run(local: Weak<Local>) {
    let mut transactions = 0;
    let mut purse = None;
    loop {
        let Some(local) = local.upgrade().filter(|local| !local.freshness.is_stopped()) else { return };
        let purse = purse.get_or_insert_with(|| Purse::new(local.ahead.share, Instant::now()));
        if local.ahead.jobs.lock().is_empty() {
            let _ = timeout(IDLE, local.ahead.noted.notified()).await;
            continue;
        }
        let now = local.freshness.replication().transactions();
        let mut pause = PACE;
        if now != transactions && purse.is_open(Instant::now()) {
            match refresh(&local, local.ahead.all(), purse).await {
                true => transactions = now,
                false => pause = AGAIN,
            }
        }
        drop(local);
        sleep(pause).await;
    }
}

/// False: some are to be looked at again.
async fn refresh(local: &Arc<Local>, jobs: Vec<(ResultKey, Arc<Job>)>, purse: &mut Purse) -> bool {
    // One barrier for all that read the same tables, and for all that are asked for together.
    let mut by_relations: HashMap<Vec<RelationId>, Vec<(ResultKey, Arc<Job>)>> = HashMap::new();
    for (key, job) in jobs {
        by_relations.entry(job.prepared.plan.relations()).or_default().push((key, job));
    }
    let moments = join_all(by_relations.into_iter().map(async |(relations, jobs)| {
        (local.freshness.acquire(FreshnessMode::Exact, &relations, BarrierNumber(0)).await, relations, jobs)
    }));
    let mut is_done = true;
    for (served, relations, jobs) in moments.await {
        let served = match served {
            Ok(served) => {
                // What has been received may not be visible yet: there is another look then.
                let tables = served.snapshot.catalog.expand(&relations);
                is_done &= local.freshness.replication().is_newest(&served.snapshot, &tables);
                served
            }
            Err(reason) => {
                is_done &= !matches!(reason, UpstreamReason::WaitBudget | UpstreamReason::NotAPrefix);
                continue;
            }
        };
        for (key, job) in jobs {
            if !purse.is_open(Instant::now()) {
                return false;
            }
            let started = Instant::now();
            if !local.refresh(&key, &job, &served).await {
                local.ahead.forget(&key);
            }
            // Its threads count each.
            let threads = local.engine.limits(freshet_engine::Pace::Full).threads_max.max(1);
            purse.spend(started.elapsed() * u32::try_from(threads).unwrap_or(1));
        }
    }
    is_done
}

impl Local {
    /// Brings the kept reply up to this moment. False: it is not to be watched any more.
    async fn refresh(self: &Arc<Self>, key: &ResultKey, job: &Job, served: &Served) -> bool {
        let Some(kept) = self.engine.results.peek(key) else { return false };
        let Ok(format) = &job.settings.format else { return false };
        let versions = [kept.catalog_version, job.prepared.catalog_version];
        if versions.iter().any(|version| *version != served.snapshot.catalog.version) {
            return false;
        }
        let tables = &job.prepared.plan.tables;
        if !tables.iter().all(|table| served.snapshot.tables.contains_key(&table.table)) {
            return false;
        }
        let changes = |table, after, through| self.freshness.changes_between(table, after, through);
        if kept.is_valid_at(&served.snapshot) || kept.outlives(&served.snapshot, &changes, format).is_ok() {
            return true;
        }
        if !kept.repeated.is_noted() {
            return false;
        }
        // An execution to be compared with upstream's has to be a client's.
        if !self.audit.serves_ahead(&job.prepared.identity, Encodings::of(&job.formats)) {
            return false;
        }
        // Somebody computes it already.
        let Some(flight) = self.flights.lead(key) else { return true };
        let execution = Execution {
            settings: format,
            formats: &job.formats,
            prepared: &job.prepared,
            parameters: &job.parameters,
            served,
            point: None,
            is_quick: false,
            early: None,
        };
        let Ok(reply) = self.execute(&execution, Some(&kept), &job.statistics).await else { return false };
        let has_place = self.keep(key, CachedReply { keys: job.keys.clone(), ..reply });
        job.statistics.note_refresh();
        flight.land(if has_place { flight::Outcome::Kept } else { flight::Outcome::NotKept });
        has_place
    }
}

/// Time to spend: a share of the time that goes by.
#[derive(Debug)]
struct Purse {
    share: f64,
    /// In seconds; less than nothing once more was spent.
    saved: f64,
    filled_at: Instant,
}

impl Purse {
    fn new(share: f64, now: Instant) -> Self {
        Self { share, saved: share * SAVED_MAX.as_secs_f64(), filled_at: now }
    }

    fn is_open(&mut self, now: Instant) -> bool {
        let earned = now.duration_since(self.filled_at).as_secs_f64() * self.share;
        self.saved = (self.saved + earned).min(self.share * SAVED_MAX.as_secs_f64());
        self.filled_at = now;
        self.saved > 0.0
    }

    fn spend(&mut self, time: Duration) {
        self.saved -= time.as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_spent_than_the_share_of_the_time() {
        let begun = Instant::now();
        let mut purse = Purse::new(0.1, begun);
        let mut spent = Duration::ZERO;
        for millisecond in 0..60_000_u64 {
            if purse.is_open(begun + Duration::from_millis(millisecond)) {
                purse.spend(Duration::from_millis(30));
                spent += Duration::from_millis(30);
            }
        }
        let share = spent.as_secs_f64() / 60.0;
        assert!((0.099..0.104).contains(&share), "{share}");
        assert!(!Purse::new(0.0, begun).is_open(begun + Duration::from_secs(9)), "off");
    }
}
