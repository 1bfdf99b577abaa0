//! Statements that were just refused for what their text and the set of mirrored tables decide, whatever the parameters, so
//! that one that is relayed again and again costs a look-up in a small table of the session's own instead of a plan and its
//! checks. One that names a table which is not mirrored is known again with other numbers in it, too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use freshet_engine::reason::UpstreamReason;
use freshet_engine::statement::skeleton::Skeleton;

use crate::session::settings::SettingsId;
use crate::statistics::ShapeStatistics;

/// Places, one per hash: an application repeats few statements on one connection.
const PLACES: usize = 16;
/// Texts with numbers left open, compared one by one.
const SERIES_MAX: usize = 4;
/// A longer text is not kept.
const TEXT_BYTES_MAX: usize = 2_048;
/// Then the statement is looked at again: a table that upstream has not had may be there by now. Short for who polls, long
/// for who repeats a statement as fast as it can.
pub(super) const KEPT_FOR: Duration = Duration::from_millis(100);
/// Likewise where many units in a row begin with the statement: holding them all costs more than looking later.
pub(super) const KEPT_FOR_LONG_GROUPS: Duration = Duration::from_secs(1);

/// What, beside the text, the refusal was decided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DecidedBy {
    pub(super) settings: SettingsId,
    pub(super) catalog_version: u64,
}

/// The session's refused statements.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    places: Vec<Option<Refusal>>,
    /// Refused whatever numbers they have, the one noted last at the end.
    series: Vec<Refusal>,
    hasher: ahash::RandomState,
}

#[derive(Debug)]
struct Refusal {
    text: Skeleton,
    parameter_types: Box<[u8]>,
    by: DecidedBy,
    noted_at: Instant,
    reason: UpstreamReason,
    statistics: Arc<ShapeStatistics>,
}

impl Refusals {
    /// Why the statement is refused again, and its counters.
    pub(super) fn get(
        &self,
        sql: &[u8],
        parameter_types: &[u8],
        by: DecidedBy,
        now: Instant,
        kept_for: Duration,
    ) -> Option<(&UpstreamReason, &Arc<ShapeStatistics>)> {
        if self.places.is_empty() || sql.len() > TEXT_BYTES_MAX {
            return None;
        }
        let place = self.place(sql);
        let mut candidates = self.places[place].iter().chain(self.series.iter().rev());
        let known = candidates
            .find(|known| known.is_about(sql, parameter_types, by) && now.duration_since(known.noted_at) < kept_for)?;
        Some((&known.reason, &known.statistics))
    }

    pub(super) fn note(
        &mut self,
        sql: &[u8],
        parameter_types: &[u8],
        by: DecidedBy,
        reason: &UpstreamReason,
        statistics: &Arc<ShapeStatistics>,
    ) {
        if sql.len() > TEXT_BYTES_MAX {
            return;
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        let refusal = |text| Refusal {
            text,
            parameter_types: parameter_types.into(),
            by,
            noted_at: Instant::now(),
            reason: reason.clone(),
            statistics: Arc::clone(statistics),
        };
        let place = self.place(sql);
        self.places[place] = Some(refusal(Skeleton::closed(sql)));
        // Any other reason may be one of the numbers themselves.
        if matches!(reason, UpstreamReason::TableNotMirrored(_)) {
            self.note_series(refusal(Skeleton::open(sql)), sql);
        }
    }

    fn note_series(&mut self, refusal: Refusal, sql: &[u8]) {
        self.series.retain(|known| !known.text.fits(sql));
        if refusal.text.has_holes() {
            if self.series.len() >= SERIES_MAX {
                self.series.remove(0);
            }
            self.series.push(refusal);
        }
    }

    fn place(&self, sql: &[u8]) -> usize {
        (self.hasher.hash_one(sql) % PLACES as u64) as usize
    }
}

impl Refusal {
    fn is_about(&self, sql: &[u8], parameter_types: &[u8], by: DecidedBy) -> bool {
        self.by == by && *self.parameter_types == *parameter_types && self.text.fits(sql)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_statement_under_the_same_state_is_refused_again_and_not_for_ever() {
        let mut refusals = Refusals::default();
        let by = DecidedBy { settings: SettingsId(7), catalog_version: 3 };
        let statistics = Arc::default();
        let begun = Instant::now();
        assert!(refusals.get(b"SELECT a", b"", by, begun, KEPT_FOR).is_none());
        refusals.note(b"SELECT a", b"", by, &UpstreamReason::FirstRun, &statistics);
        let get = |sql: &[u8], types: &[u8], by, now| {
            refusals.get(sql, types, by, now, KEPT_FOR).map(|known| known.0.clone())
        };
        assert_eq!(get(b"SELECT a", b"", by, begun), Some(UpstreamReason::FirstRun));
        assert!(get(b"SELECT b", b"", by, begun).is_none());
        assert!(get(b"SELECT a", &23_u32.to_be_bytes(), by, begun).is_none());
        assert!(get(b"SELECT a", b"", DecidedBy { catalog_version: 4, ..by }, begun).is_none());
        assert!(get(b"SELECT a", b"", DecidedBy { settings: SettingsId(8), ..by }, begun).is_none());
        let later = Instant::now() + KEPT_FOR;
        assert!(get(b"SELECT a", b"", by, later).is_none());
        assert!(refusals.get(b"SELECT a", b"", by, later, KEPT_FOR_LONG_GROUPS).is_some());
        assert!(refusals.get(b"SELECT a", b"", by, later + KEPT_FOR_LONG_GROUPS, KEPT_FOR_LONG_GROUPS).is_none());
    }

    #[test]
    fn a_table_that_is_not_mirrored_refuses_a_series() {
        let mut refusals = Refusals::default();
        let by = DecidedBy { settings: SettingsId(7), catalog_version: 3 };
        let (statistics, now) = (Arc::default(), Instant::now());
        let reason = UpstreamReason::TableNotMirrored("t".into());
        refusals.note(b"SELECT a FROM t WHERE b = 1", b"", by, &reason, &statistics);
        refusals.note(b"SELECT 10 / 0", b"", by, &UpstreamReason::LocalError("division by zero".into()), &statistics);
        let get = |refusals: &Refusals, sql: &[u8], by| refusals.get(sql, b"", by, now, KEPT_FOR).is_some();
        assert!(get(&refusals, b"SELECT a FROM t WHERE b = 42", by));
        assert!(!get(&refusals, b"SELECT a FROM t WHERE b = 42", DecidedBy { catalog_version: 4, ..by }));
        assert!(!get(&refusals, b"SELECT a FROM u WHERE b = 42", by));
        assert!(!get(&refusals, b"SELECT 10 / 5", by), "its number may be the reason");
        for table in ["a", "b", "c", "d"] {
            refusals.note(format!("SELECT 1 FROM {table}").as_bytes(), b"", by, &reason, &statistics);
        }
        assert_eq!(refusals.series.len(), SERIES_MAX);
        assert!(!get(&refusals, b"SELECT a FROM t WHERE b = 42", by), "the oldest has gone");
        assert!(get(&refusals, b"SELECT 2 FROM a", by));
    }
}
