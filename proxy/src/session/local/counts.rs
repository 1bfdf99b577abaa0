//! [`Counts`]: what a mirrored database counts for the metrics, which add those of all databases up.

use std::sync::atomic::Ordering::Relaxed;

use crate::session::local::Local;

/// In the order of [`Local::counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub [u64; 8]);

impl Counts {
    pub fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }
}

impl Local {
    /// Replies compared, wrong ones, barriers, full ones, nudges, waits over budget, moments that were no prefix, changes of the
    /// catalog.
    pub fn counts(&self) -> Counts {
        let (audit, barriers) = (&self.audit.counters, self.freshness.counters());
        Counts(
            [
                &audit.compared,
                &audit.wrong_answers,
                &barriers.barriers,
                &barriers.full_barriers,
                &barriers.nudges,
                &barriers.over_budget,
                &barriers.not_a_prefix,
                &barriers.catalog_changes,
            ]
            .map(|counter| counter.load(Relaxed)),
        )
    }
}
