//! [`Known`]: the units of a burst that [`super::recent`] has the replies of. One look at the freshness for all that read
//! the same tables, one addition to the counters for all of a shape.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use freshet_config::FreshnessMode;
use freshet_engine::catalog::RelationId;
use freshet_engine::result_cache::CachedReply;
use freshet_engine::table::Generation;
use parking_lot::MutexGuard;

use crate::freshness::Served;
use crate::freshness::exposure::BarrierNumber;
use crate::session::answer::{Account, Asking, Awaited, Known, RawUnit, Reply, Unit};
use crate::session::buffer::OutBuffer;
use crate::session::local::kept::is_confirmed;
use crate::session::local::moment::Moments;
use crate::session::local::recent::{FRAMES_BYTES_MAX, Place, Recents, Table, Wanted};
use crate::session::local::{Local, LocalAnswerer, is_described, is_read_by};
use crate::session::machine::local::write_reply;
use crate::session::settings::SessionSettings;
use crate::statistics::{Answered, ShapeStatistics};

/// One burst's.
pub(super) struct LocalKnown<'a> {
    local: &'a Local,
    table: MutexGuard<'a, Table>,
    moments: &'a mut Moments,
    required: &'a mut BarrierNumber,
    /// Of the tables of what is shown, in the order of its reply's basis. The session's, so that it is allocated once.
    generations: &'a mut Vec<(RelationId, Generation)>,
    asking: Asking,
    shown: Option<Shown>,
    counted: Option<Counted>,
    /// Of the last reply.
    rows: u64,
}

/// The moment for the tables of a reply.
struct Shown {
    of: Arc<CachedReply>,
    served: Served,
    /// For units that had come by then: up to where in what the client has sent.
    through: u64,
    /// For readers of the same keys only.
    is_confined: bool,
}

impl Shown {
    fn is_valid(&self, kept: &CachedReply, generations: &[(RelationId, Generation)], local: &Local) -> bool {
        is_confirmed(kept, &self.served, local)
            && (kept.is_at(generations, self.served.snapshot.catalog.version)
                || kept.is_valid_at(&self.served.snapshot)
                || self.is_untouched(kept))
    }

    fn is_untouched(&self, kept: &CachedReply) -> bool {
        let is_untouched = kept.is_untouched_at(&self.served.snapshot);
        if is_untouched && let Some(statistics) = kept.attachment.downcast_ref::<ShapeStatistics>() {
            statistics.note_survival();
        }
        is_untouched
    }
}

/// Hits of one shape that are not counted yet.
struct Counted {
    attachment: Arc<dyn Any + Send + Sync>,
    hits: u64,
    wait_us: u64,
}

impl Counted {
    fn count(&self) {
        if let Some(statistics) = self.attachment.downcast_ref::<ShapeStatistics>() {
            statistics.count_several(Answered::Hit, self.hits, self.wait_us);
        }
    }
}

impl LocalAnswerer {
    pub(super) fn known_recently(&mut self, asking: Asking) -> Option<LocalKnown<'_>> {
        let has_moment = asking.freshness != FreshnessMode::Exact || !self.moments.is_empty();
        (self.is_mirrored_database && has_moment).then(|| LocalKnown {
            local: &self.local,
            table: self.local.recent.table(),
            moments: &mut self.moments,
            required: &mut self.required,
            generations: &mut self.generations,
            asking,
            shown: None,
            counted: None,
            rows: 0,
        })
    }

    /// In exact mode: the reply that needs a moment.
    pub(super) fn await_recent(&self, asking: &Asking, unit: &RawUnit<'_>) -> Option<Awaited> {
        if !self.is_mirrored_database {
            return None;
        }
        let recent = &self.local.recent;
        let kept = Arc::clone(&find(recent, &mut recent.table(), unit, &asking.settings)?.kept);
        Some(Awaited { kept, arrival: unit.arrival, catalog_version: asking.catalog_version })
    }

    /// The unit has been answered by the kept reply: the next time its bytes are enough to know that.
    pub(super) fn note_recent(
        &self,
        unit: &Unit<'_>,
        settings: &SessionSettings,
        kept: &Arc<CachedReply>,
        reply: &Reply,
    ) {
        let is_small = kept.rows.len() + kept.row_description.len() <= FRAMES_BYTES_MAX;
        if unit.bytes.is_empty() || !is_small {
            return;
        }
        let recent = &self.local.recent;
        let text = unit.prepared.map_or(0, |statement| recent.text_number(statement));
        let wanted = Wanted { settings: settings.id, text, unit: unit.bytes };
        let hash = recent.hash(&wanted);
        let mut table = recent.table();
        if !table.has(hash, &wanted, kept) {
            let mut frames = OutBuffer::default();
            write_reply(&mut frames, unit.bytes, reply);
            table.insert(hash, &wanted, kept, frames.take());
        }
    }
}

/// What is known of the unit's bytes, if it is of use to its session.
fn find<'a>(
    recent: &Recents,
    table: &'a mut Table,
    unit: &RawUnit<'_>,
    settings: &SessionSettings,
) -> Option<&'a Place> {
    let text = unit.statement.map_or(0, |statement| statement.text_number.load(Relaxed));
    if unit.statement.is_some() && text == 0 {
        return None;
    }
    let wanted = Wanted { settings: settings.id, text, unit: unit.bytes };
    let place = table.find(recent.hash(&wanted), &wanted)?;
    let kept = &place.kept;
    // As for any kept reply (`kept::is_of_use`); that it has the columns asked for was seen when it was found first.
    let is_of_use = unit.statement.is_none_or(|statement| {
        is_described(statement, kept.catalog_version, settings) && is_read_by(statement, settings, kept.folds_settings)
    });
    is_of_use.then_some(place)
}

impl Known for LocalKnown<'_> {
    fn answer(&mut self, unit: &RawUnit<'_>, out: &mut OutBuffer) -> bool {
        let Some(place) = find(&self.local.recent, &mut self.table, unit, &self.asking.settings) else {
            return false;
        };
        let kept = &place.kept;
        let is_shown = self
            .shown
            .as_ref()
            .is_some_and(|shown| unit.arrival.end <= shown.through && shown.of.relations == kept.relations);
        let freshness = &self.local.freshness;
        if let Some(shown) = self.shown.as_ref().filter(|shown| is_shown && shown.is_confined)
            && !freshness.covers(&shown.served, &kept.relations, &kept.keys)
        {
            return false;
        }
        if !is_shown {
            let version = self.asking.catalog_version;
            let shared =
                self.moments.find(Some(unit.arrival), self.asking.freshness, &kept.relations, *self.required, version);
            let found = shared.map(|(served, through)| (served, through, false)).or_else(|| {
                let mode = self.asking.freshness;
                let found = freshness.try_acquire_generations(mode, &kept.relations, &kept.keys, *self.required)?;
                Some((found.served, unit.arrival.received, found.is_confined))
            });
            let found = found.filter(|(served, ..)| served.snapshot.catalog.version == version);
            let Some((served, through, is_confined)) = found else { return false };
            *self.required = (*self.required).max(served.barrier);
            kept.generations_at(&served.snapshot, self.generations);
            self.shown = Some(Shown { of: Arc::clone(kept), served, through, is_confined });
        }
        let valid = |shown: &&Shown| shown.is_valid(kept, self.generations, self.local);
        let Some(shown) = self.shown.as_ref().filter(valid) else { return false };
        out.push(&place.frames);
        self.rows = kept.row_count;
        match &mut self.counted {
            Some(counted) if Arc::ptr_eq(&counted.attachment, &kept.attachment) => counted.hits += 1,
            counted => {
                let (attachment, wait_us) = (Arc::clone(&kept.attachment), shown.served.wait_us);
                let before = counted.replace(Counted { attachment, hits: 1, wait_us });
                before.iter().for_each(Counted::count);
            }
        }
        true
    }

    fn finish(self) -> Account {
        self.counted.iter().for_each(Counted::count);
        let Some(Shown { of, served, .. }) = &self.shown else { return Account::default() };
        self.local.note_read(&of.relations);
        Account {
            route: Answered::Hit,
            freshness: self.asking.freshness.name(),
            lsn: Some(served.snapshot.applied),
            wait_us: served.wait_us,
            rows: self.rows,
            is_query: true,
        }
    }
}
