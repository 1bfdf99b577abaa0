//! For tests only (`FRESHET_TEST_MIRROR_ALL`): a statement waits until the catalog in use is upstream's and every table
//! that it reads is mirrored or refused, and is answered without the first-run audit. Whatever can be answered locally
//! then is, from its first execution on, and a wrong answer is seen by whoever compares. It is answered twice, and the second
//! answer is the client's: what was computed may be right and what was kept of it wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use freshet_engine::reason::UpstreamReason;
use tokio::time::sleep;

use crate::session::answer::{Relay, Reply, Unit};
use crate::session::local::{LocalAnswerer, Request, is_execution};
use crate::session::state::SessionState;

/// A copy waits for other sessions' transactions; some tests of PostgreSQL keep one open.
const PATIENCE: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_millis(2);

/// What all sessions share of it.
#[derive(Debug, Default)]
pub struct Patience {
    /// Statements acknowledged that may have changed the catalog, and how many of them the catalog in use was read after.
    changes: AtomicU64,
    read_after: AtomicU64,
}

/// Asked for within the process, by a test.
static IS_WANTED: AtomicBool = AtomicBool::new(false);

/// For tests: servers that start from now on are patient.
pub fn want() {
    IS_WANTED.store(true, Ordering::SeqCst);
}

impl Patience {
    /// None: it is not asked for, as outside of tests.
    pub fn if_wanted() -> Option<Self> {
        let is_wanted = std::env::var_os("FRESHET_TEST_MIRROR_ALL").is_some() || IS_WANTED.load(Ordering::SeqCst);
        is_wanted.then(Self::default)
    }

    pub(super) fn note_catalog_changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
}

impl LocalAnswerer {
    pub(super) async fn answer_patiently(&mut self, unit: &Unit<'_>, state: &SessionState) -> Result<Reply, Relay> {
        if !is_execution(unit) || !self.is_mirrored_database {
            return self.try_answer(unit, state, None).await;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            if self.local.freshness.catalog().version != state.catalog_version {
                // The session asks for its search path again, and then this.
                return Err(Relay::because(UpstreamReason::CatalogChanged));
            }
            let refused = match self.try_answer(unit, state, None).await {
                // A write past this session may have come in between.
                Ok(reply) => return Ok(self.try_answer(unit, state, None).await.unwrap_or(reply)),
                Err(relay) => relay,
            };
            let may_pass = match &refused.reason {
                // Upstream's reply to this very execution is wanted.
                _ if refused.observer.is_some() => false,
                UpstreamReason::TableNotMirrored(_) => self.awaits_a_copy(unit, state),
                // A table that is new is found when the catalog is next read: now.
                UpstreamReason::UnknownRelation(_)
                | UpstreamReason::UnknownColumn(_)
                | UpstreamReason::UnsupportedType(_) => self.reads_newer_catalog(deadline).await,
                reason => is_passing(reason),
            };
            if !may_pass || Instant::now() >= deadline {
                return Err(refused);
            }
            sleep(PAUSE).await;
        }
    }

    /// Whether there was a newer one to read.
    async fn reads_newer_catalog(&self, deadline: Instant) -> bool {
        let Some(patience) = &self.local.patience else { return false };
        let changes = patience.changes.load(Ordering::SeqCst);
        if patience.read_after.swap(changes, Ordering::SeqCst) == changes {
            return false;
        }
        // By its address: one that says the same has the same number.
        let before = self.local.freshness.catalog();
        self.local.freshness.replication().request_reload();
        while Arc::ptr_eq(&self.local.freshness.catalog(), &before) && Instant::now() < deadline {
            sleep(PAUSE).await;
        }
        true
    }

    fn awaits_a_copy(&self, unit: &Unit<'_>, state: &SessionState) -> bool {
        let Some(settings) = &state.settings else { return false };
        let (Ok(format), Ok(sql)) = (&settings.format, std::str::from_utf8(unit.sql)) else { return false };
        let catalog_version = state.catalog_version;
        let has_upstreams_clock = state.has_upstreams_clock();
        let transaction_time = state.transaction_time();
        let (mode, route, configuration) = (state.freshness, state.route, state.configuration);
        let choice = state.snapshot.as_deref();
        let request = Request {
            unit,
            settings,
            format,
            sql,
            mode,
            choice,
            route,
            has_upstreams_clock,
            shares_transaction: state.shares_transaction,
            transaction_time,
            catalog_version,
            configuration,
            early: None,
        };
        let awaited = |table| self.local.freshness.awaits_copy(table);
        // Tables that a new catalog has made unknown are looked for once more.
        self.prepare(&request).map_or(true, |prepared| prepared.plan.tables.iter().any(|table| awaited(table.table)))
    }
}

fn is_passing(reason: &UpstreamReason) -> bool {
    matches!(
        reason,
        UpstreamReason::CatalogChanged
            | UpstreamReason::WaitBudget
            | UpstreamReason::NotAPrefix
            | UpstreamReason::MirrorBehind(_)
    )
}
