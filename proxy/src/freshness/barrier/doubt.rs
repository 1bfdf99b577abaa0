//! The catalog in use was found not to be in force: it is read again, which takes as long as the database has tables.
//!
//! Meanwhile a reader whose barrier finds its own relations as they were, and what counts for all, reads by the catalog in use: what a
//! statement means, and who may run it, is in those rows. A barrier that finds otherwise is followed by the question which relations
//! differ, so that only their readers go upstream. Nothing is exposed: what writes by clients change is told by the catalog (a new
//! trigger may change another table), so that in mode session everybody goes upstream.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use freshet_config::FreshnessMode;
use freshet_engine::catalog::RelationId;
use freshet_engine::reason::UpstreamReason;
use tokio::time::Instant;

use crate::freshness::barrier::{Barrier, Flight, HEARTBEAT, Reader, Scope, lost};
use crate::freshness::exposure::BarrierNumber;
use crate::freshness::fingerprint::{differing, of_differing};
use crate::replication::catalog::LoadedCatalog;
use crate::replication::uptime::Uptime;
use crate::upstream::connection::Row;
use crate::upstream::{ServerError, UpstreamError};

/// How often it is looked whether the catalog has been read again.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// What is known of a catalog that is not in force.
pub(super) struct Doubt {
    catalog: Arc<LoadedCatalog>,
    since: Instant,
    /// Relations that are others by now.
    relations: BTreeSet<RelationId>,
    /// A barrier found a difference that none of `relations` explains.
    is_unexplained: bool,
    /// What counts for all statements is another.
    is_of_all: bool,
}

impl Doubt {
    fn concerns(&self, reader: &Reader) -> bool {
        self.is_of_all
            || reader.mode == FreshnessMode::Session
            || reader.relations.iter().any(|relation| self.relations.contains(relation))
    }
}

impl Barrier {
    /// The catalog in use is not the one in force. `is_confined`: only relations' own rows are others.
    pub(super) fn doubt(&mut self, flight: Flight, is_confined: bool) {
        self.shared.counters.catalog_changes.fetch_add(1, Ordering::Relaxed);
        self.is_suspect = true;
        self.shared.exposure.clear();
        // Unless it has been read again since this statement was sent: then the next barrier will tell.
        if !Arc::ptr_eq(&flight.catalog, &self.shared.replication.loaded()) {
            flight.readers.into_iter().for_each(|reader| reader.answer(Err(UpstreamReason::CatalogChanged)));
            return;
        }
        self.shared.replication.request_reload();
        let now = Instant::now();
        // Not at once: the reload takes longer than a barrier.
        self.heartbeat = now + LOOK_PAUSE;
        let known = self.doubt.take().filter(|known| Arc::ptr_eq(&known.catalog, &flight.catalog));
        let catalog = Arc::clone(&flight.catalog);
        let (relations, is_unexplained, is_of_all) = (BTreeSet::new(), false, false);
        let known = known.unwrap_or(Doubt { catalog, since: now, relations, is_unexplained, is_of_all });
        let is_of_all = known.is_of_all || !is_confined;
        self.doubt = Some(Doubt { since: now, is_unexplained: true, is_of_all, ..known });
        self.collecting.extend(flight.readers);
        self.refuse_in_doubt();
    }

    /// The catalog in use is known not to be in force.
    pub(super) fn is_in_doubt(&self) -> bool {
        let loaded = || self.shared.replication.loaded();
        self.doubt.as_ref().is_some_and(|doubt| self.is_suspect && Arc::ptr_eq(&doubt.catalog, &loaded()))
    }

    /// Who is concerned goes upstream.
    fn refuse_in_doubt(&mut self) {
        let Some(doubt) = &self.doubt else { return };
        for reader in self.collecting.extract_if(.., |reader| doubt.concerns(reader)) {
            reader.answer(Err(UpstreamReason::CatalogChanged));
        }
    }

    /// [`Self::due`] as long as that is so.
    pub(super) fn due_in_doubt(&mut self, now: Instant) -> Option<Scope> {
        self.refuse_in_doubt();
        let doubt = self.doubt.as_ref()?;
        // Only to be sure that somebody reads it again.
        if now >= doubt.since + HEARTBEAT {
            return Some(Scope::Everything);
        }
        self.heartbeat = now + LOOK_PAUSE;
        match self.collecting.is_empty() {
            true => None,
            false if doubt.is_unexplained => Some(Scope::Which),
            false => Some(Scope::Readers),
        }
    }

    /// Asks which of the relations are others.
    pub(super) async fn ask_which(&mut self, relations: Vec<RelationId>) -> Result<(), UpstreamError> {
        let catalog = self.shared.replication.loaded();
        let Some(parameters) = of_differing(&relations, &catalog) else {
            // It was read again meanwhile, without one of them.
            self.collecting.drain(..).for_each(|reader| reader.answer(Err(UpstreamReason::CatalogChanged)));
            return Ok(());
        };
        self.connection.send_execute("differing", &parameters.each_ref().map(|parameter| &parameter[..]))?;
        self.connection.flush().await?;
        self.last_sent = Instant::now();
        self.flight = Some(Flight {
            number: BarrierNumber::default(),
            sent_at: self.last_sent,
            as_of: Uptime::now(),
            readers: Vec::new(),
            catalog,
            expected: None,
            known: None,
            relations,
            checked: BTreeSet::new(),
            checks_all: false,
            is_complete: false,
            asks_which: true,
            expired: None,
            row: None,
            error: None,
        });
        Ok(())
    }

    /// The answer.
    pub(super) fn learn_which(
        &mut self,
        flight: &Flight,
        row: Option<Row>,
        error: Option<ServerError>,
    ) -> Result<(), UpstreamReason> {
        let differing = match (row, error) {
            (Some(row), None) => differing(&row),
            (_, Some(error)) => Err(UpstreamError::Server(error)),
            (None, None) => Err(UpstreamError::Protocol("no relations where they were asked for")),
        };
        let differing = differing.map_err(lost)?;
        if let Some(doubt) = self.doubt.as_mut().filter(|doubt| Arc::ptr_eq(&doubt.catalog, &flight.catalog)) {
            let known = doubt.relations.len();
            doubt.relations.extend(differing);
            // What differed was nothing that was asked for: a later reader's, or it is told when the catalog has been read again.
            doubt.is_unexplained = false;
            tracing::debug!(relations = ?doubt.relations, new = doubt.relations.len() - known, "the catalog is another for these");
        }
        Ok(())
    }
}
