//! What is addressed to freshet itself: its settings, `SHOW freshet.last`, its tables; and what `freshet.snapshot_strict`
//! refuses. The grammar is [`super::intercept`]'s.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use freshet_engine::reason::UpstreamReason;

use crate::freshness::pins::Choice;
use crate::session::Session;
use crate::session::answer::{Account, Answerer, Relay, Reply, Unit};
use crate::session::effect::Effect;
use crate::session::intercept::{self, Refused, Request, Select, Verb};
use crate::session::machine::Machine;
use crate::session::machine::local::view;
use crate::session::tracker::OwnChange;
use crate::statistics::Answered;
use crate::wire::query::TransactionStatus;

impl<A: Answerer> Session<A> {
    /// What is addressed to freshet itself is never upstream's, and not remembered as the last statement.
    pub(super) async fn answer_for_freshet(&mut self, request: Result<(Request, Verb), Refused>) -> io::Result<()> {
        if request.as_ref().is_ok_and(|(request, _)| self.must_probe_for(request)) {
            self.probe();
            return Ok(());
        }
        let bytes = self.machine.unit_bytes().to_vec();
        let prepared = self.machine.unit().ok().and_then(|unit| unit.prepared.cloned());
        let reply = match (request, view(&bytes, |_| prepared.as_ref())) {
            _ if self.machine.state.status == TransactionStatus::Failed => Err(Refused::failed_transaction()),
            (Ok((request, verb)), Ok(unit)) => self.carry_out(request, verb, &unit).await,
            (Err(refused), _) => Err(refused),
            (_, Err(_)) => Err(Refused::form()),
        };
        match reply {
            Ok(reply) => self.machine.answer_locally(&reply),
            Err(refused) if self.machine.state.status == TransactionStatus::InTransaction => {
                self.machine.fail_locally(&refused.fields());
            }
            Err(refused) => self.machine.refuse_locally(&refused.fields()),
        }
        Ok(())
    }

    /// The role decides whose a snapshot is.
    pub(super) fn must_probe_for(&self, request: &Request) -> bool {
        let state = &self.machine.state;
        request.wants_snapshot()
            && state.settings.is_none()
            && state.status != TransactionStatus::Failed
            && self.may_ask()
            && self.machine.answers_locally()
            && self.answerer.wants_settings()
            && (!state.is_in_transaction() || self.machine.may_probe_inside())
    }

    pub(super) async fn carry_out(&mut self, request: Request, verb: Verb, unit: &Unit<'_>) -> Result<Reply, Refused> {
        let (table, select) = match request {
            Request::SetFreshness(_)
            | Request::SetRoute(_)
            | Request::SetSnapshot(_)
            | Request::SetSnapshotStrict(_) => {
                let change = self.own_change(&request).await?;
                return Ok(self.set_own(change, verb));
            }
            Request::ShowLast => (intercept::last_table(&self.last), None),
            Request::ShowFreshness | Request::ShowRoute | Request::ShowSnapshot | Request::ShowSnapshotStrict => {
                let name = request.setting().unwrap_or_default();
                (intercept::single_value(name, &self.own_value(name)), None)
            }
            Request::SetConfig(request) => {
                let change = self.own_change(&request).await?;
                self.set_own(change, verb);
                let value = self.own_value(request.setting().unwrap_or_default());
                (intercept::single_value("set_config", &value), Some(Select::all()))
            }
            Request::CurrentSetting(request) => {
                let value = self.own_value(request.setting().unwrap_or_default());
                (intercept::single_value("current_setting", &value), Some(Select::all()))
            }
            Request::Select(select) => {
                let state = &self.machine.state;
                // Where the settings are not known, it is the role that the session can always be again.
                let role = state.settings.as_ref().map_or(&*state.login.user, |settings| settings.role());
                let table = match select.table.as_str() {
                    "sessions" => {
                        let sees_all = self.answerer.sees_statistics(role).await;
                        Some(self.context.sessions.table((!sees_all).then_some(role)))
                    }
                    name => self.answerer.virtual_table(name, role).await,
                };
                let mut table = table.ok_or_else(|| Refused::no_table(self.context.limits.schema, &select.table))?;
                if select.table == "status" {
                    let totals = self.context.metrics.route_totals().into_iter();
                    let row = |(route, count): (Answered, u64)| {
                        vec![Some(format!("statements_{}", route.name())), Some(count.to_string())]
                    };
                    table.rows.extend(totals.map(row));
                }
                (select.run(&table)?, Some(select))
            }
        };
        Ok(intercept::table_reply(unit, &table, select.as_ref()))
    }

    /// The value of one of freshet's own settings, as SHOW gives it.
    fn own_value(&self, name: &str) -> String {
        let state = &self.machine.state;
        match name {
            "freshet.route" => state.route.name().into(),
            "freshet.snapshot_strict" => if state.snapshot_strict { "on" } else { "off" }.into(),
            "freshet.snapshot" => match &state.snapshot {
                None => "off".into(),
                Some(choice) => choice.token().map_or_else(|| "expired".into(), |token| token.to_string()),
            },
            _ => state.freshness.name().into(),
        }
    }

    /// What a request sets. A snapshot is taken now, so that an error comes with the statement that asks for it.
    async fn own_change(&mut self, request: &Request) -> Result<OwnChange, Refused> {
        if let Some(change) = request.change() {
            return Ok(change);
        }
        let Request::SetSnapshot(Some(asked)) = request else { return Err(Refused::form()) };
        let choice = Choice::read(asked).ok_or_else(Refused::form)?;
        match self.answerer.pin(&choice, &self.machine.state).await {
            Ok(_) => Ok(OwnChange::Snapshot(Some(Arc::new(choice)))),
            Err(reason) => Err(Refused::snapshot(asked, &reason)),
        }
    }

    /// Sets one of freshet's own settings, undone with the transaction like any other.
    fn set_own(&mut self, change: OwnChange, verb: Verb) -> Reply {
        let Machine { state, tracker, .. } = &mut self.machine;
        tracker.set_own(change, verb == Verb::SetLocal);
        let is_in_block = state.is_in_transaction();
        if !is_in_block {
            tracker.ready(state.status, false, false);
        }
        state.take_own(tracker.own());
        self.entry.record.note_settings(state, None);
        state.settings = tracker.settings(&self.context.interner, state.catalog_version);
        intercept::tag_reply(verb, is_in_block)
    }

    /// A read that its pinned snapshot does not answer fails where the session asked for that.
    pub(super) fn relay_unless_strict(&mut self, started: Instant, effect: Effect, relay: Relay) -> io::Result<()> {
        if !self.must_refuse(effect, &relay.reason) {
            return self.relay(started, relay);
        }
        self.refuse_strictly(started, relay.reason)
    }

    /// Writes, settings and the like are not of the snapshot, nor is a SHOW, and what is wrong with a failed block upstream says.
    pub(super) fn must_refuse(&self, effect: Effect, reason: &UpstreamReason) -> bool {
        self.machine.state.is_strict()
            && matches!(effect, Effect::Neutral | Effect::Opaque)
            && !matches!(reason, UpstreamReason::FailedTransaction | UpstreamReason::NotAQuery("setting" | "empty"))
    }

    pub(super) fn refuse_strictly(&mut self, started: Instant, reason: UpstreamReason) -> io::Result<()> {
        self.machine.fail_locally(&Refused::not_from_snapshot(&reason).fields());
        let account = Account { route: Answered::Local, freshness: "refused", ..Account::default() };
        self.account(started, account, Some(reason));
        Ok(())
    }
}
