//! The moment that units of one burst share: who waited for a barrier, waited for all that had come by then.
//!
//! A read must see every commit that was acknowledged before its request arrived. A moment that was asked for after the unit
//! had come is therefore good for it, whether the unit was the first of its burst or the last, as long as nothing was relayed
//! to the session in between (which may have shown it, or made, something newer: [`LocalAnswerer::required`] tells). It is
//! given up when the session next waits for anything but an answer of its own.

use std::sync::Arc;

use freshet_config::FreshnessMode;
use freshet_engine::catalog::RelationId;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::Keys;

use crate::freshness::Served;
use crate::freshness::exposure::BarrierNumber;
use crate::session::answer::{Answerer, Arrival, Awaited, Relay};
use crate::session::local::{LocalAnswerer, Request};
use crate::statistics::{Answered, ShapeStatistics};

/// Relations that are asked for ahead.
const AHEAD_MAX: usize = 32;

/// What a session has of the burst at hand.
#[derive(Debug, Default)]
pub(super) struct Moments {
    shared: Option<Moment>,
    /// What later units of bursts have needed beside the relations of the first. Asked for with it the next time.
    ahead: Vec<RelationId>,
}

#[derive(Debug)]
struct Moment {
    /// What was asked for: what satisfies one mode may be too old for another.
    mode: FreshnessMode,
    served: Served,
    /// Those that it is known for, ascending.
    relations: Vec<RelationId>,
    /// Of what the client has sent, how much had come when it was asked for.
    through: u64,
}

impl Moment {
    fn knows(&self, relation: RelationId) -> bool {
        self.relations.binary_search(&relation).is_ok()
    }
}

impl Moments {
    pub(super) fn end(&mut self) {
        self.shared = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shared.is_none()
    }

    /// The moment that was found for a unit before, if it is one for this unit, too; and of what the client has sent, up to
    /// where units may have it. All of them have waited for it, at the same time.
    pub(super) fn find(
        &self,
        arrival: Option<Arrival>,
        mode: FreshnessMode,
        relations: &[RelationId],
        required: BarrierNumber,
        catalog_version: u64,
    ) -> Option<(Served, u64)> {
        let moment = self.shared.as_ref()?;
        let is_good = moment.mode == mode
            && arrival.is_some_and(|arrival| arrival.end <= moment.through)
            && moment.served.barrier >= required
            && moment.served.snapshot.catalog.version == catalog_version;
        let is_good = is_good && relations.iter().all(|relation| moment.knows(*relation));
        is_good.then(|| (moment.served.clone(), moment.through))
    }

    /// These relations are needed, and the moment at hand is not known for all of them.
    fn note_missing(&mut self, relations: &[RelationId]) {
        let Some(moment) = &self.shared else { return };
        let missing = relations.iter().filter(|relation| !moment.knows(**relation) && !self.ahead.contains(relation));
        let missing: Vec<RelationId> = missing.copied().collect();
        if self.ahead.len() + missing.len() > AHEAD_MAX {
            self.ahead.clear();
        }
        self.ahead.extend(missing.iter().take(AHEAD_MAX));
    }

    /// The relations to ask for, where more units have come than the one that asks.
    fn with_ahead(&self, arrival: Option<Arrival>, relations: &[RelationId]) -> Vec<RelationId> {
        let has_more = arrival.is_some_and(|arrival| arrival.received > arrival.end);
        let ahead = self.ahead.iter().filter(|_| has_more);
        let mut all: Vec<RelationId> = relations.iter().chain(ahead).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn note(&mut self, arrival: Option<Arrival>, mode: FreshnessMode, served: &Served, relations: Vec<RelationId>) {
        self.shared =
            arrival.map(|arrival| Moment { mode, served: served.clone(), relations, through: arrival.received });
    }
}

impl LocalAnswerer {
    /// A moment that satisfies `mode`; of the session's pinned snapshot if it has one. With an `arrival` it may be one that a
    /// unit before has waited for.
    pub(super) async fn acquire(
        &mut self,
        request: &Request<'_>,
        shape: Option<&ShapeStatistics>,
        mode: FreshnessMode,
        relations: &[RelationId],
        arrival: Option<Arrival>,
    ) -> Result<Served, UpstreamReason> {
        let Some(choice) = request.choice else {
            let served = self.acquire_shared(request.catalog_version, shape, mode, relations, arrival).await?;
            // The barrier may have seen a change of the configuration, from which the session's settings are others.
            let is_same = self.configuration() == request.configuration;
            return if is_same { Ok(served) } else { Err(UpstreamReason::CatalogChanged) };
        };
        let freshness = &self.local.freshness;
        let now = freshness.acquire_for(shape, mode, relations, self.required).await?;
        let pinned = freshness.pinned(choice, request.settings.role(), self.required).await?;
        freshness.at_pinned(&pinned, &now, relations)
    }

    /// Likewise for who reads of some tables only `keys`: without waiting if no others have been written, in mode session. Such a
    /// moment is not shared with units that read other rows.
    pub(super) async fn acquire_for_keys(
        &mut self,
        request: &Request<'_>,
        shape: Option<&ShapeStatistics>,
        mode: FreshnessMode,
        relations: &[RelationId],
        keys: &Keys,
    ) -> Result<Served, UpstreamReason> {
        if mode == FreshnessMode::Session
            && request.choice.is_none()
            && !keys.is_empty()
            && let Some(found) = self.local.freshness.try_acquire(mode, relations, keys, self.required)
        {
            return Ok(found.served);
        }
        self.acquire(request, shape, mode, relations, request.unit.arrival).await
    }

    /// The moment that a kept reply lacks. An error: upstream is to answer; what would not take another wait to find out is none.
    pub(super) async fn meet_moment(&mut self, awaited: &Awaited) -> Result<(), Relay> {
        let Awaited { kept, arrival, catalog_version } = awaited;
        let relations = &kept.relations;
        let shape = kept.attachment.downcast_ref::<ShapeStatistics>();
        let met = self.acquire_shared(*catalog_version, shape, FreshnessMode::Exact, relations, Some(*arrival)).await;
        match met {
            Ok(_) | Err(UpstreamReason::TableNotMirrored(_) | UpstreamReason::CatalogChanged) => Ok(()),
            Err(reason) => {
                let shape = Arc::clone(&kept.attachment).downcast::<ShapeStatistics>().ok();
                if let Some(statistics) = &shape {
                    statistics.set_reason(&reason);
                    statistics.count(Answered::Relay, 0);
                }
                Err(Relay { shape, ..Relay::because(reason) })
            }
        }
    }

    async fn acquire_shared(
        &mut self,
        catalog_version: u64,
        shape: Option<&ShapeStatistics>,
        mode: FreshnessMode,
        relations: &[RelationId],
        arrival: Option<Arrival>,
    ) -> Result<Served, UpstreamReason> {
        if let Some((served, _)) = self.moments.find(arrival, mode, relations, self.required, catalog_version) {
            return Ok(served);
        }
        self.moments.note_missing(relations);
        let wanted = self.moments.with_ahead(arrival, relations);
        let freshness = &self.local.freshness;
        let mut acquired = freshness.acquire_for(shape, mode, &wanted, self.required).await;
        if wanted.len() > relations.len() {
            match acquired {
                // What others may need is no reason to refuse this one.
                Err(UpstreamReason::TableNotMirrored(_) | UpstreamReason::NotAPrefix) => {
                    self.moments.ahead.clear();
                    acquired = freshness.acquire_for(shape, mode, relations, self.required).await;
                    return acquired;
                }
                Err(_) => self.moments.ahead.clear(),
                Ok(_) => {}
            }
        }
        let served = acquired?;
        self.moments.note(arrival, mode, &served, wanted);
        Ok(served)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use freshet_engine::snapshot::Snapshot;

    use super::*;

    const ONE: RelationId = RelationId(1);
    const TWO: RelationId = RelationId(2);
    const EXACT: FreshnessMode = FreshnessMode::Exact;

    fn served(barrier: u64) -> Served {
        let snapshot = Arc::new(Snapshot::default());
        Served { snapshot, statement_time: None, wait_us: 1, barrier: BarrierNumber(barrier) }
    }

    fn at(end: u64, received: u64) -> Option<Arrival> {
        Some(Arrival { end, received })
    }

    #[test]
    fn a_moment_is_for_units_that_had_come_when_it_was_asked_for() {
        let mut moments = Moments::default();
        moments.note(at(10, 100), EXACT, &served(5), vec![ONE]);
        let has =
            |arrival, barrier, version| moments.find(arrival, EXACT, &[ONE], BarrierNumber(barrier), version).is_some();
        assert!(has(at(100, 300), 5, 0));
        assert!(!has(at(101, 300), 5, 0), "it came later");
        assert!(!has(None, 5, 0), "nothing is known of when it came");
        assert!(!has(at(100, 300), 6, 0), "a relayed statement lies in between");
        assert!(!has(at(100, 300), 5, 1), "another catalog");
        assert!(moments.find(at(20, 100), FreshnessMode::Session, &[ONE], BarrierNumber(0), 0).is_none());
        moments.end();
        assert!(moments.find(at(20, 100), EXACT, &[ONE], BarrierNumber(0), 0).is_none());
        moments.note(at(100, 100), EXACT, &served(5), vec![ONE]);
        assert!(moments.find(at(100, 100), EXACT, &[ONE], BarrierNumber(0), 0).is_some(), "another of its group");
        assert!(moments.find(at(120, 120), EXACT, &[ONE], BarrierNumber(0), 0).is_none(), "it came later");
    }

    #[test]
    fn what_a_burst_was_short_of_is_asked_for_the_next_time() {
        let mut moments = Moments::default();
        assert_eq!(moments.with_ahead(at(10, 100), &[ONE]), [ONE]);
        moments.note(at(10, 100), EXACT, &served(5), vec![ONE]);
        assert!(moments.find(at(20, 100), EXACT, &[TWO], BarrierNumber(0), 0).is_none());
        moments.note_missing(&[ONE, TWO]);
        moments.note_missing(&[TWO]);
        assert_eq!(moments.ahead, [TWO]);
        assert_eq!(moments.with_ahead(at(10, 100), &[ONE]), [ONE, TWO]);
        assert_eq!(moments.with_ahead(at(100, 100), &[ONE]), [ONE], "a unit by itself");
        for n in 3..200 {
            moments.note_missing(&[RelationId(n)]);
            assert!(moments.ahead.len() <= AHEAD_MAX);
        }
    }
}
