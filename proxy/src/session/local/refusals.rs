//! Statements that were just refused for what their text and the set of mirrored tables decide, whatever the parameters, so
//! that one that is relayed again and again costs a look-up in a small table of the session's own instead of a plan and its
//! checks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use freshet_engine::reason::UpstreamReason;

use crate::session::settings::SettingsId;
use crate::statistics::ShapeStatistics;

/// Places, one per hash: an application repeats few statements on one connection.
const PLACES: usize = 16;
/// A longer text is not kept.
const TEXT_BYTES_MAX: usize = 2_048;
/// Then the statement is looked at again: a table that upstream has not had may be there by now. Short for who polls, long
/// for who repeats a statement as fast as it can.
const KEPT_FOR: Duration = Duration::from_millis(100);

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
    hasher: ahash::RandomState,
}

#[derive(Debug)]
struct Refusal {
    sql: Box<[u8]>,
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
    ) -> Option<(&UpstreamReason, &ShapeStatistics)> {
        if self.places.is_empty() || sql.len() > TEXT_BYTES_MAX {
            return None;
        }
        let place = self.place(sql);
        let known = self.places[place].as_ref()?;
        let is_same = known.by == by && *known.sql == *sql && *known.parameter_types == *parameter_types;
        (is_same && now.duration_since(known.noted_at) < KEPT_FOR).then_some((&known.reason, &known.statistics))
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
        let place = self.place(sql);
        self.places[place] = Some(Refusal {
            sql: sql.into(),
            parameter_types: parameter_types.into(),
            by,
            noted_at: Instant::now(),
            reason: reason.clone(),
            statistics: Arc::clone(statistics),
        });
    }

    fn place(&self, sql: &[u8]) -> usize {
        (self.hasher.hash_one(sql) % PLACES as u64) as usize
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
        assert!(refusals.get(b"SELECT a", b"", by, begun).is_none());
        refusals.note(b"SELECT a", b"", by, &UpstreamReason::FirstRun, &statistics);
        let get = |sql: &[u8], types: &[u8], by, now| refusals.get(sql, types, by, now).map(|known| known.0.clone());
        assert_eq!(get(b"SELECT a", b"", by, begun), Some(UpstreamReason::FirstRun));
        assert!(get(b"SELECT b", b"", by, begun).is_none());
        assert!(get(b"SELECT a", &23_u32.to_be_bytes(), by, begun).is_none());
        assert!(get(b"SELECT a", b"", DecidedBy { catalog_version: 4, ..by }, begun).is_none());
        assert!(get(b"SELECT a", b"", DecidedBy { settings: SettingsId(8), ..by }, begun).is_none());
        assert!(get(b"SELECT a", b"", by, Instant::now() + KEPT_FOR).is_none());
    }
}
