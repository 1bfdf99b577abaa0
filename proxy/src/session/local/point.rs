//! Reads of one row by its primary key, answered without waiting for anything: on the session's own turn, as a kept reply is.
//!
//! Whatever is not at hand (a privilege that upstream has to be asked about, a barrier, an audit, an index) makes it a statement
//! like any other.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use freshet_engine::executor::point::PointRow;
use freshet_engine::result_cache::CachedReply;
use freshet_engine::types::Value;
use freshet_engine::{Prepared, Shared};

use crate::audit::{Decision, Encodings};
use crate::session::answer::{Form, Reply, Unit};
use crate::session::local::execute::Execution;
use crate::session::local::kept::{account, reply};
use crate::session::local::parameters::parameters;
use crate::session::local::{AtHand, LocalAnswerer, Request, formats, is_described_by, is_parsed_under, keeps_types};
use crate::session::reply::{row_description, without_room};
use crate::session::state::SessionState;
use crate::statistics::Answered;

impl LocalAnswerer {
    /// The unit is an execution that no reply is kept of; its key is at hand. None: it is to be computed, by the plan that is left at
    /// hand, too.
    pub(super) fn look_up_point(&mut self, unit: &Unit<'_>, state: &SessionState) -> Option<Reply> {
        // Everything else that is sent would only be read in vain; of several statements of a unit, none has an end of its own.
        let may = self.local.patience.is_none()
            && unit.sql.first().is_some_and(|first| b"sS".contains(first))
            && !unit.bytes.is_empty();
        let end = unit.arrival.filter(|_| may)?.end;
        let settings = state.settings.as_ref()?;
        let format = settings.format.as_ref().ok()?;
        let request = Request::of(unit, state, settings, format, std::str::from_utf8(unit.sql).ok()?);
        // A text of its own is read by nobody again: whether it is a query at all, others say first.
        let (prepared, shared) = match unit.form {
            Form::Simple => self.shared_plan(&request)?,
            Form::Execute | Form::Prepare => (self.prepare(&request).ok()?, None),
        };
        let reply = self.answer_point(&request, &prepared, shared.as_ref());
        if reply.is_none() {
            self.at_hand = Some(AtHand { end, planned: (prepared, shared) });
        }
        reply
    }

    fn answer_point(
        &mut self,
        request: &Request<'_>,
        prepared: &Arc<Prepared>,
        shared: Option<&Shared>,
    ) -> Option<Reply> {
        let started = Instant::now();
        let (unit, plan) = (request.unit, &prepared.plan);
        let is_allowed = prepared.catalog_version == request.catalog_version
            && plan.tables.len() == 1
            && !plan.uses_time
            && is_described_by(unit, prepared.catalog_version, request.settings)
            // Else the slower way finds out.
            && unit.prepared.is_none_or(|statement| keeps_types(statement, plan) && statement.meant.is_known())
            && is_parsed_under(unit, request.settings, plan.folds_settings);
        if !is_allowed {
            return None;
        }
        let parameters: Arc<[Value]> = parameters(plan, shared, request).ok()?.into();
        let formats = formats(unit, plan);
        let encodings = Encodings::of(&formats);
        if !self.is_free_of_questions(request, prepared, &parameters, encodings) {
            return None;
        }
        let relations = plan.relations();
        let keys = self.keys(prepared, &parameters);
        let found = self.moments.find(unit.arrival, request.mode, &relations, self.required, request.catalog_version);
        let served = match found {
            Some((served, _)) => served,
            None => self.local.freshness.try_acquire(request.mode, &relations, &keys, self.required)?.served,
        };
        if served.snapshot.catalog.version != prepared.catalog_version {
            return None;
        }
        let point = Some(PointRow::of(plan, &served.snapshot, &parameters)?);
        if self.local.audit.decide(&prepared.identity, unit.describes_portal, encodings) != Decision::Serve {
            return None;
        }
        let execution = Execution {
            settings: request.format,
            formats: &formats,
            prepared,
            parameters: &parameters,
            served: &served,
            point,
            is_quick: true,
            early: None,
        };
        let rows = execution.rows_of_point(&self.local.engine)?.ok()?;
        self.local.note_read(&relations);
        let statistics = self.counters(request, prepared, shared);
        statistics.set_relations(&relations);
        statistics.count(Answered::Local, started.elapsed().as_micros() as u64);
        self.required = self.required.max(served.barrier);
        let results = &self.local.engine.results;
        if results.admits_quick(&self.key) {
            let kept = execution.reply(rows.frames, rows.count, &statistics, &self.local.audit);
            let kept = Arc::new(CachedReply { keys, rows: without_room(&kept.rows), ..kept });
            results.insert_admitted(&self.key, Arc::clone(&kept));
            return Some(reply(&kept, &served, request.mode.name(), Answered::Local));
        }
        let is_described = unit.form == Form::Simple || unit.describes_portal;
        Some(Reply {
            columns: if is_described { row_description(plan, &formats) } else { Bytes::new() },
            rows: rows.frames.iter().cloned().collect(),
            account: account(&served, request.mode.name(), Answered::Local, rows.count),
            ..Reply::default()
        })
    }

    /// Whether nothing that it depends on has to be asked of upstream first.
    fn is_free_of_questions(
        &self,
        request: &Request<'_>,
        prepared: &Prepared,
        parameters: &[Value],
        encodings: Encodings,
    ) -> bool {
        let freshness = &self.local.freshness;
        let agrees = |name: &str| freshness.zones().is_known_to_agree(name);
        // As the general way asks them: a text may be the name of a zone.
        let are_zones_known = !request.sql.contains('/')
            && freshness.zones().is_known_to_agree_for_session(request.settings.value("TimeZone").unwrap_or_default())
            && prepared.zone_names.iter().all(|name| agrees(name))
            && parameters.iter().all(|value| !matches!(value, Value::Text(text) if !agrees(text)));
        if !are_zones_known {
            return false;
        }
        if !self.local.audit.would_serve(&prepared.identity, request.unit.describes_portal, encodings) {
            return false;
        }
        let catalog = freshness.catalog();
        let uses = prepared.plan.tables.iter().chain(&prepared.plan.views);
        catalog.version == prepared.catalog_version
            && matches!(freshness.privileges().check_known(request.settings.role(), uses, &catalog), Some(Ok(())))
    }
}
