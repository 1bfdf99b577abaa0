//! What a session asks of its answerer, and which database's mirror that is.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Instant;

use freshet_engine::catalog::Catalog;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::ResultKey;

use crate::freshness::exposure::BarrierNumber;
use crate::freshness::pins::{Choice, Token};
use crate::freshness::seats::Seat;
use crate::session::answer::early::EarlyRows;
use crate::session::answer::{
    Answerer, Answerers, Asking, Awaited, Known, Outcome, RawUnit, Relay, Relayed, Reply, TextTable, Unit, Unused,
};
use crate::session::effect::{Effect, Written};
use crate::session::local::databases::Databases;
use crate::session::local::databases::texts::reads::reads;
use crate::session::local::moment::Moments;
use crate::session::local::patient::Patience;
use crate::session::local::refusals::{DecidedBy, KEPT_FOR, KEPT_FOR_LONG_GROUPS, Refusals};
use crate::session::local::{Local, LocalAnswerer, is_execution};
use crate::session::state::{Login, SessionState};
use crate::statistics::Answered;

/// Opens sessions, each with the [`Local`] of its database.
#[derive(Clone)]
pub struct LocalAnswerers(pub Arc<Databases>);

impl Answerers for LocalAnswerers {
    type Answerer = LocalAnswerer;

    fn open(&self, login: &Login) -> LocalAnswerer {
        let first = self.0.first();
        let other = (login.database != first.database).then(|| Arc::from(login.database.as_str()));
        let mut answerer = LocalAnswerer {
            is_mirrored_database: other.is_none(),
            local: Arc::clone(first),
            databases: Arc::clone(&self.0),
            other,
            user: login.user.as_str().into(),
            moves: 0,
            looked: None,
            wished: None,
            required: BarrierNumber::default(),
            moments: Moments::default(),
            generations: Vec::new(),
            key: ResultKey::default(),
            text: Vec::new(),
            refusals: Refusals::default(),
            counted: None,
            at_hand: None,
        };
        answerer.refresh();
        answerer
    }
}

impl Answerer for LocalAnswerer {
    fn refresh(&mut self) {
        let Some(name) = &self.other else { return };
        if self.is_mirrored_database && !self.local.is_retired.load(SeqCst) {
            return;
        }
        // Without a lock as long as nothing is new: most sessions of other databases are relayed for ever.
        let changes = Some(self.databases.changes());
        if !self.is_mirrored_database && self.looked == changes {
            return;
        }
        self.looked = changes;
        match self.databases.running(name) {
            Some(local) => self.move_to(local, true),
            None if self.is_mirrored_database => self.move_to(Arc::clone(self.databases.first()), false),
            None => {}
        }
    }

    fn note_query(&mut self, sql: &[u8]) {
        let Some(name) = &self.other else { return };
        if self.is_mirrored_database {
            // Once per look at who is idle: a sign of life keeps no mirror alive, so that the text has to be read.
            if !self.local.is_used.load(Relaxed) && reads(sql) {
                self.local.note_used();
            }
            return;
        }
        let changes = Some(self.databases.changes());
        if self.wished != changes && self.databases.wish(name, sql) {
            self.wished = changes;
        }
    }

    fn in_the_way(&self, sql: &[u8], is_in_block: bool) -> Option<Unused> {
        let unused = self.databases.in_the_way(sql)?;
        let is_own = self.other.as_deref().is_some_and(|own| own == unused.database);
        (!unused.use_of_it.is_refused(is_own, is_in_block)).then_some(unused)
    }

    async fn make_way(&mut self, unused: &Unused) {
        self.databases.make_way(unused, &self.user).await;
    }

    fn known(&mut self, asking: Asking) -> Option<impl Known> {
        self.known_recently(asking)
    }

    fn awaited(&mut self, asking: &Asking, unit: &RawUnit<'_>) -> Option<Awaited> {
        self.await_recent(asking, unit)
    }

    async fn meet(&mut self, awaited: &Awaited) -> Result<(), Relay> {
        self.meet_moment(awaited).await
    }

    fn seat(&self) -> Option<Seat> {
        self.local.freshness.seats().take()
    }

    fn end_burst(&mut self) {
        self.moments.end();
    }

    fn look_up(&mut self, unit: &Unit<'_>, state: &SessionState) -> Option<Reply> {
        self.look_up_kept(unit, state)
    }

    fn refusal(&mut self, unit: &Unit<'_>, state: &SessionState, now: Instant) -> Option<Relay> {
        let settings = state.settings.as_ref()?;
        if !is_execution(unit) {
            return None;
        }
        let by = DecidedBy { settings: settings.id, catalog_version: state.catalog_version };
        let (reason, statistics) = self.refusals.get(unit.sql, unit.parameter_types, by, now, KEPT_FOR)?;
        statistics.count(Answered::Relay, 0);
        Some(Relay { shape: Some(Arc::clone(statistics)), ..Relay::because(reason.clone()) })
    }

    fn late_refusal(&self, unit: &Unit<'_>, state: &SessionState) -> Option<UpstreamReason> {
        let settings = state.settings.as_ref()?.id;
        let by = DecidedBy { settings, catalog_version: state.catalog_version };
        let known = self.refusals.get(unit.sql, unit.parameter_types, by, Instant::now(), KEPT_FOR_LONG_GROUPS)?;
        Some(known.0.clone())
    }

    async fn answer(&mut self, unit: &Unit<'_>, state: &SessionState, early: Option<&Arc<EarlyRows>>) -> Outcome {
        let answered = match &self.local.patience {
            None => self.try_answer(unit, state, early).await,
            Some(_) => self.answer_patiently(unit, state).await,
        };
        match answered {
            Ok(reply) => Outcome::Local(reply),
            Err(relay) => Outcome::Relay(relay),
        }
    }

    async fn pin(&mut self, choice: &Choice, state: &SessionState) -> Result<Token, UpstreamReason> {
        if !self.is_mirrored_database {
            return Err(UpstreamReason::OtherDatabase);
        }
        let Some(settings) = state.settings.as_ref() else {
            return Err(UpstreamReason::OpaqueSession("not probed".into()));
        };
        Ok(self.local.freshness.pinned(choice, settings.role(), self.required).await?.token)
    }

    fn write_acknowledged(&mut self, what: Effect, written: &Written) {
        match what {
            Effect::Write => {
                let is_known = match written {
                    // Those of another database by these names are others.
                    Written::Named(names) if self.is_mirrored_database => {
                        // Asked afterwards: of a database that is mirrored anew, another mirror may have to know it.
                        self.local.freshness.note_tables_written(names) && !self.local.is_retired.load(SeqCst)
                    }
                    Written::Named(_) | Written::Anything => {
                        self.local.freshness.note_rows_written();
                        false
                    }
                };
                if !is_known {
                    self.databases.note_rows_written_elsewhere(&self.local);
                }
            }
            _ => {
                self.local.freshness.note_write_acknowledged();
                self.databases.note_catalog_changed_elsewhere(&self.local);
                self.local.patience.iter().for_each(Patience::note_catalog_changed);
            }
        }
    }

    fn note_not_awaited(&mut self) {
        // A session elsewhere is not asked how its commits wait.
        if self.is_mirrored_database {
            self.local.freshness.note_not_awaited();
        }
    }

    fn note_lacks_identity(&mut self, message: &[u8]) {
        if self.is_mirrored_database {
            self.local.freshness.replication().make_way(message);
        }
    }

    fn relayed(&mut self, _unit: &Relayed) {
        self.required = self.local.freshness.required_now();
    }

    fn configuration(&self) -> u64 {
        let first = self.databases.first().freshness.configuration_changes();
        if self.other.is_none() {
            return first;
        }
        // Another one counts anew: what changed in between is not known.
        (self.moves << 32) + first + self.local.freshness.configuration_changes()
    }

    fn wants_settings(&self) -> bool {
        self.is_mirrored_database
    }

    fn is_at_server(&self, started_at: i64) -> bool {
        self.local.freshness.replication().is_at_server(started_at)
    }

    fn knows(&self, function: &str) -> bool {
        self.local.freshness.catalog().sql_functions.contains_key(function)
    }

    fn catalog_version(&self) -> u64 {
        self.local.freshness.catalog_version()
    }

    fn catalog(&self) -> Option<Arc<Catalog>> {
        self.is_mirrored_database.then(|| self.local.freshness.catalog())
    }

    async fn virtual_table(&mut self, name: &str, role: &str) -> Option<TextTable> {
        let local = self.is_mirrored_database.then(|| Arc::clone(&self.local));
        let sees_all = name != "statements" || local.is_none() || self.sees_statistics(role).await;
        self.databases.virtual_table(local.as_deref(), name, (!sees_all).then_some(role))
    }

    async fn sees_statistics(&mut self, role: &str) -> bool {
        // Roles are the cluster's, whichever database the session is in.
        let local = Arc::clone(&self.local);
        local.freshness.privileges().sees_statistics(role).await
    }
}

impl LocalAnswerer {
    /// From here on the session is answered from there.
    fn move_to(&mut self, local: Arc<Local>, is_mirrored: bool) {
        // It has seen upstream's state of this moment.
        self.required = local.freshness.required_now();
        self.local = local;
        self.counted = None;
        self.is_mirrored_database = is_mirrored;
        self.moves += 1;
        self.moments = Moments::default();
        self.refusals = Refusals::default();
        self.at_hand = None;
    }
}
