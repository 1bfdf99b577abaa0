//! Kept replies: found by the text as it came, then by the text without comments and surplus white space; served while valid,
//! and revived where the changes since do not concern them.

use std::sync::Arc;

use freshet_config::FreshnessMode;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::{CachedReply, KeyParts};
use freshet_engine::statement::normal;

use crate::freshness::Served;
use crate::freshness::pins::Choice;
use crate::session::answer::{Account, Form, Reply, Unit};
use crate::session::local::{AtMoment, Local, LocalAnswerer, Request, is_described_by, is_execution, is_parsed_under};
use crate::session::reply::describe_statement;
use crate::session::settings::SessionSettings;
use crate::session::state::{RouteSetting, SessionState};
use crate::statistics::{Answered, ShapeStatistics};

/// A buffer that one long text has made larger than this is not kept.
const TEXT_BYTES_KEPT: usize = 4 << 10;

impl LocalAnswerer {
    /// See [`Answerer::look_up`](crate::session::answer::Answerer::look_up).
    pub(super) fn look_up_kept(&mut self, unit: &Unit<'_>, state: &SessionState) -> Option<Reply> {
        self.at_hand = None;
        let settings = state.settings.as_ref()?;
        let may = state.route == RouteSetting::Auto
            && (state.freshness != FreshnessMode::Exact || !self.moments.is_empty())
            && state.snapshot.is_none()
            && self.is_mirrored_database
            && is_execution(unit)
            && !unit.describes_statement;
        if !may {
            return None;
        }
        let Some(kept) = self.find_kept(unit, settings, None) else { return self.look_up_point(unit, state) };
        if !is_of_use(&kept, unit, settings) {
            return None;
        }
        let shared =
            self.moments.find(unit.arrival, state.freshness, &kept.relations, self.required, state.catalog_version);
        let freshness = &self.local.freshness;
        let served = match shared {
            Some((served, _)) => served,
            None => {
                freshness.try_acquire_generations(state.freshness, &kept.relations, &kept.keys, self.required)?.served
            }
        };
        self.required = self.required.max(served.barrier);
        let is_valid =
            served.snapshot.catalog.version == state.catalog_version && self.is_valid(&kept, &served, settings);
        if !is_valid {
            return None;
        }
        let reply = hit(&kept, &served, state.freshness.name());
        self.local.note_read(&kept.relations);
        self.note_recent(unit, settings, &kept, &reply);
        Some(reply)
    }

    /// The kept reply of the unit, valid or not. `self.key` is then the one under which a new reply is to be kept.
    pub(super) fn find_kept(
        &mut self,
        unit: &Unit<'_>,
        settings: &SessionSettings,
        choice: Option<&Choice>,
    ) -> Option<Arc<CachedReply>> {
        self.key.set(&key_parts(unit, settings, choice, unit.sql));
        let results = &self.local.engine.results;
        let known = results.get(&self.key);
        if known.is_some() || !normal::normalise_into(unit.sql, &mut self.text) {
            return known;
        }
        self.key.set(&key_parts(unit, settings, choice, &self.text));
        let known = results.get(&self.key);
        if self.text.capacity() > TEXT_BYTES_KEPT {
            self.text = Vec::new();
        }
        known
    }

    /// A kept reply, if it is valid at the freshness that the session asks for. If it is not, `moment` is left for the
    /// computation, so that a miss after a write does not wait twice.
    pub(super) async fn try_kept(
        &mut self,
        request: &Request<'_>,
        moment: &mut Option<AtMoment>,
    ) -> Result<Option<Reply>, UpstreamReason> {
        if self.at_hand.as_ref().is_some_and(|known| request.ends_at(known.end)) {
            return Ok(None);
        }
        let Some(kept) = self.find_kept(request.unit, request.settings, request.choice) else { return Ok(None) };
        if !is_of_use(&kept, request.unit, request.settings) {
            return Ok(None);
        }
        let shape = kept.attachment.downcast_ref::<ShapeStatistics>();
        let served = self.acquire_for_keys(request, shape, request.mode, &kept.relations, &kept.keys).await?;
        self.required = self.required.max(served.barrier);
        if served.snapshot.catalog.version != request.catalog_version
            || !self.is_valid(&kept, &served, request.settings)
        {
            *moment = Some(AtMoment { served, kept });
            return Ok(None);
        }
        self.reply_kept(request, &kept, &served).map(Some)
    }

    /// What an equal statement has just left, if it is the answer at this moment.
    pub(super) fn reply_at(&self, request: &Request<'_>, served: &Served) -> Option<Reply> {
        let kept = self.local.engine.results.get(&self.key)?;
        let is_valid = is_of_use(&kept, request.unit, request.settings)
            && served.snapshot.catalog.version == request.catalog_version
            && self.is_valid(&kept, served, request.settings);
        if !is_valid {
            return None;
        }
        self.reply_kept(request, &kept, served).ok()
    }

    fn reply_kept(
        &self,
        request: &Request<'_>,
        kept: &Arc<CachedReply>,
        served: &Served,
    ) -> Result<Reply, UpstreamReason> {
        let mut reply = hit(kept, served, request.freshness());
        if request.unit.describes_statement {
            let prepared = self.prepare(request)?;
            (reply.parameters, reply.statement_columns) = describe_statement(&prepared.plan);
        } else if request.choice.is_none() {
            self.note_recent(request.unit, request.settings, kept, &reply);
        }
        Ok(reply)
    }

    /// Whether the kept reply is the answer at this moment; counted where that took a look at what has changed.
    fn is_valid(&self, kept: &CachedReply, served: &Served, settings: &SessionSettings) -> bool {
        if !is_confirmed(kept, served, &self.local) {
            return false;
        }
        if kept.is_valid_at(&served.snapshot) {
            return true;
        }
        let Ok(format) = &settings.format else { return false };
        let freshness = &self.local.freshness;
        let changes = |table, after, through| freshness.changes_between(table, after, through);
        let outlived = kept.outlives(&served.snapshot, &changes, format);
        if let Some(statistics) = kept.attachment.downcast_ref::<ShapeStatistics>() {
            match outlived {
                Ok(()) => statistics.note_survival(),
                Err(outdated) => statistics.note_invalidation(outdated),
            }
        }
        outlived.is_ok()
    }
}

/// Upstream's own reply shows a moment of its own, which a later barrier has to confirm; and the settings of the moment, which are
/// those of its key as long as no change of the configuration is seen by then. One that was computed here counts until the
/// audit finds its shape wrong.
pub(super) fn is_confirmed(kept: &CachedReply, served: &Served, local: &Local) -> bool {
    if kept.barrier == 0 {
        return !kept.withdrawn.is_set();
    }
    served.barrier.0 >= kept.barrier && kept.configuration == local.freshness.configuration_changes()
}

fn key_parts<'a>(
    unit: &'a Unit<'_>,
    settings: &SessionSettings,
    choice: Option<&'a Choice>,
    sql: &'a [u8],
) -> KeyParts<'a> {
    let bind = unit.bind.as_ref();
    KeyParts {
        settings_id: settings.id.0,
        snapshot: choice.map(Choice::token_bytes).unwrap_or_default(),
        is_extended: unit.form != Form::Simple,
        sql,
        parameter_types: unit.parameter_types,
        parameter_formats: bind.map_or(&[], |bind| bind.parameter_formats),
        parameters: bind.map_or(&[], |bind| bind.parameters),
        result_formats: bind.map_or(&[], |bind| bind.result_formats),
    }
}

/// Whether the reply, if it is valid, is what this unit asks for.
fn is_of_use(kept: &CachedReply, unit: &Unit<'_>, settings: &SessionSettings) -> bool {
    is_described_by(unit, kept.catalog_version, settings)
        && is_parsed_under(unit, settings, kept.folds_settings)
        && (!unit.describes_portal || !kept.row_description.is_empty())
}

fn hit(kept: &CachedReply, served: &Served, freshness: &'static str) -> Reply {
    kept.repeated.note();
    if let Some(statistics) = kept.attachment.downcast_ref::<ShapeStatistics>() {
        statistics.count(Answered::Hit, served.wait_us);
    }
    reply(kept, served, freshness, Answered::Hit)
}

/// The reply as the session writes it.
pub(super) fn reply(kept: &CachedReply, served: &Served, freshness: &'static str, route: Answered) -> Reply {
    let account = account(served, freshness, route, kept.row_count);
    Reply {
        columns: kept.row_description.clone(),
        rows: kept.rows.iter().cloned().collect(),
        account,
        ..Reply::default()
    }
}

pub(super) fn account(served: &Served, freshness: &'static str, route: Answered, rows: u64) -> Account {
    Account { route, freshness, lsn: Some(served.snapshot.applied), wait_us: served.wait_us, rows, is_query: true }
}
