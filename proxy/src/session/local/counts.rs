//! [`Counts`]: what a mirrored database counts for the metrics, which add those of all databases up.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use freshet_engine::result_cache::Outdated;

use crate::session::local::Local;

/// In the order of [`Local::counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub counts: [u64; 12],
    /// Kept replies that changes of their tables made useless, in the order of [`Outdated::ALL`].
    pub invalidations: [u64; Outdated::ALL.len()],
}

impl Counts {
    pub fn add(&mut self, other: Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, more)| *sum += more);
        self.invalidations.iter_mut().zip(other.invalidations).for_each(|(sum, more)| *sum += more);
    }
}

impl Local {
    /// Replies compared, wrong ones, barriers, full ones, nudges, waits over budget, moments that were no prefix, changes of the
    /// catalog; replies that outlived a change, those computed from changes, those computed ahead; sides of joins that were extended.
    pub fn counts(&self) -> Counts {
        let (audit, barriers, totals) = (&self.audit.counters, self.freshness.counters(), self.statistics.totals());
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        Counts {
            counts: [
                read(&audit.compared),
                read(&audit.wrong_answers),
                read(&barriers.barriers),
                read(&barriers.full_barriers),
                read(&barriers.nudges),
                read(&barriers.over_budget),
                read(&barriers.not_a_prefix),
                read(&barriers.catalog_changes),
                read(&totals.survivals),
                read(&totals.updates),
                read(&totals.refreshes),
                self.engine.join_sides_extended(),
            ],
            invalidations: std::array::from_fn(|cause| read(&totals.invalidations[cause])),
        }
    }
}
