//! Units of several statements, with portals that outlive them, or that end with Flush: decided item by item, answered or
//! relayed as a whole.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use freshet_engine::reason::UpstreamReason;

use crate::session::answer::{Answerer, Arrival, Form, ObservedReply, Observer, Outcome, Relay, Unit};
use crate::session::control::{self, Control, Decision};
use crate::session::effect::{self, Effect, worst};
use crate::session::intercept::{self, Request};
use crate::session::machine::WatchEnd;
use crate::session::machine::group::{Answer, Group, GroupEnd, Item};
use crate::session::settings::{Question, SessionSettings};
use crate::session::state::{FirstQuery, Isolation, RouteSetting, SessionState};
use crate::session::{NO_SNAPSHOT, Relaying, Session, local, preamble};
use crate::statistics::Answered;
use crate::wire::frame::Frames;
use crate::wire::query::TransactionStatus;

/// Rows that a session may keep in suspended portals; a larger result is fetched from upstream.
const PORTAL_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What becomes of one item.
enum Decided {
    Answer(Answer),
    Relay(Relay),
    /// That must be asked first.
    Ask(Question),
    /// The client's cancel request came first.
    Cancelled,
}

/// The group that an item is of.
#[derive(Clone, Copy)]
struct Whole {
    /// There is at most one execution.
    is_alone: bool,
    is_of_one_statement: bool,
    /// Transaction control stands before the item.
    is_behind_control: bool,
    arrival: Arrival,
}

/// Sees the reply to a FETCH: as many rows as were asked for may not be all.
struct OfFetch {
    observer: Box<dyn Observer>,
    limit: Option<usize>,
}

impl Observer for OfFetch {
    fn bytes_max(&self) -> usize {
        self.observer.bytes_max()
    }

    fn bytes_max_for(&mut self, wanted: usize) -> usize {
        self.observer.bytes_max_for(wanted)
    }

    fn observe(self: Box<Self>, mut reply: ObservedReply) {
        let rows = Frames::new(&reply.bytes).filter(|frame| frame.tag == b'D').count();
        reply.is_suspended = self.limit == Some(rows);
        self.observer.observe(reply);
    }
}

/// An execution that reads, and is no transaction control.
fn is_read(item: &Item<'_>, effect: Effect) -> bool {
    let is_execution = item.question().is_some_and(|unit| {
        unit.form != Form::Prepare && control::read(unit.sql).is_none() && !preamble::asks_for_life(unit.sql)
    });
    is_execution && matches!(effect, Effect::Neutral | Effect::Opaque)
}

/// What replies that were computed for one group take together before all of it goes upstream.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// Of a reply that nobody else has.
fn made_bytes(answer: &Answer) -> usize {
    match answer {
        Answer::Reply(reply) if reply.account.route == Answered::Local => {
            reply.rows.iter().map(bytes::Bytes::len).sum()
        }
        Answer::Reply(_) | Answer::None | Answer::Control(_) => 0,
    }
}

impl<A: Answerer> Session<A> {
    /// The unit at hand is not a plain one.
    pub(super) async fn decide_group(&mut self, started: Instant) -> io::Result<()> {
        let bytes = self.machine.unit_bytes().to_vec();
        let mut group = match self.machine.group(&bytes) {
            Ok(group) => group,
            // What it does is not known: it might read.
            Err(form) => {
                let relay = Relay::because(UpstreamReason::UnitForm(form));
                return self.relay_unless_strict(started, Effect::Opaque, relay);
            }
        };
        if self.machine.fetches_outdated_rows(&group) {
            self.machine.refuse_outdated_rows();
            return self.account_here(started);
        }
        let mut state = self.machine.state.clone();
        let is_several = group.executions() > 1;
        state.shares_transaction |= is_several || group.end == GroupEnd::Flush && group.executions() > 0;
        let effects: Vec<Effect> = group.items.iter().map(|item| self.effect(item)).collect();
        for (item, effect) in group.items.iter().zip(&effects) {
            match item.question().filter(|unit| unit.form != Form::Prepare) {
                Some(unit) if *effect == Effect::Neutral && !self.is_addressed(&unit) => {
                    self.answerer.note_query(unit.sql);
                }
                Some(unit) if *effect == Effect::Opaque => {
                    // One string of several statements is a block (xact.c, PreventInTransactionBlock); one message of several
                    // may have ended it before.
                    let is_in_block = match unit.form {
                        Form::Simple if is_several => true,
                        _ => !is_several && state.is_in_transaction(),
                    };
                    let unused = self.answerer.in_the_way(unit.sql, is_in_block);
                    if !self.make_way(unused).await? {
                        return self.cancel(started);
                    }
                }
                Some(_) | None => {}
            }
        }
        let reads = || group.items.iter().zip(&effects).any(|(item, effect)| is_read(item, *effect));
        if let Some(reason) = self.common_obstacle(&group, &effects, &state) {
            if reads() && self.must_refuse(Effect::Neutral, &reason) {
                return self.refuse_strictly(started, reason);
            }
            return self.relay(started, Relay::because(reason));
        }
        let (mut answers, mut made) = (Vec::with_capacity(group.items.len()), 0);
        let mut whole = Whole {
            is_alone: group.executions() <= 1,
            is_of_one_statement: group.is_of_one_statement(),
            is_behind_control: false,
            arrival: self.machine.arrival(),
        };
        for (at, item) in group.items.iter().enumerate() {
            match self.decide_item(item, effects[at], &mut state, whole).await? {
                Decided::Answer(answer) => {
                    if matches!(&answer, Answer::Reply(reply) if reply.account.is_query) {
                        state.note_answer();
                    }
                    made += made_bytes(&answer);
                    whole.is_behind_control |= matches!(answer, Answer::Control(_));
                    answers.push(answer);
                    // They are sent together. Upstream, which sends one by one, waits for who does not read them.
                    if made > GROUP_BYTES_MAX && at + 1 < group.items.len() && group.executions() > 1 {
                        let relay = Relay::because(UpstreamReason::OverBudget("replies of one group"));
                        return self.relay_unless_strict(started, Effect::Neutral, relay);
                    }
                }
                Decided::Ask(question) => {
                    self.ask_upstream(question);
                    return Ok(());
                }
                Decided::Relay(relay) if reads() && self.must_refuse(Effect::Neutral, &relay.reason) => {
                    return self.refuse_strictly(started, relay.reason);
                }
                Decided::Relay(relay) => {
                    // With BEGIN upstream it has a time.
                    let lacks_time = local::lacks_time(&relay.reason) && self.may_ask();
                    if let Some(begin) = self.machine.begins_block(&group, &answers).filter(|_| lacks_time) {
                        answers.truncate(begin);
                        self.machine.answer_first(group.items.drain(..begin).collect(), answers);
                        return Ok(());
                    }
                    let closes = |item: &Item<'_>| matches!(item, Item::Cursor(..));
                    let rest = group.last_statement(at).filter(|rest| control::read(rest).is_some());
                    // psqlODBC ends a block in one string with the last FETCH or CLOSE of a cursor that lives here.
                    let Some(rest) = rest.filter(|_| group.items[..at].iter().any(closes)).map(<[u8]>::to_vec) else {
                        return self.relay_group(started, &group, at, relay);
                    };
                    self.relaying = Some(Relaying { started, reason: relay.reason, shape: relay.shape });
                    self.machine.answer_beginning(group.items.drain(..at).collect(), answers, &rest);
                    return Ok(());
                }
                Decided::Cancelled => return self.cancel(started),
            }
        }
        if let Some(reason) = self.keeps_too_much(&group, &answers) {
            return self.relay_unless_strict(started, Effect::Neutral, Relay::because(reason));
        }
        for (item, answer) in group.items.iter().zip(&answers) {
            if let (Item::Bind { .. } | Item::Statement(_) | Item::Cursor(..), Answer::Reply(reply)) = (item, answer)
                && !item.question().is_some_and(|unit| self.is_addressed(&unit))
            {
                self.account(started, reply.account.clone(), None);
            }
        }
        self.machine.answer_group(group, answers);
        self.keep_alive(started);
        Ok(())
    }

    /// Why rows of the group may not stay in portals here.
    fn keeps_too_much(&self, group: &Group<'_>, answers: &[Answer]) -> Option<UpstreamReason> {
        let (named, leaves_rows) = (group.named_portals(), group.leaves_rows());
        // PostgreSQL computes what a portal gives when it is run: by then they may be others.
        let has_custom = |settings: &Arc<SessionSettings>| !settings.values.custom.is_empty();
        if leaves_rows && self.machine.state.settings.as_ref().is_some_and(has_custom) {
            return Some(UpstreamReason::UnitForm("rows that stay in a portal beside an application's own settings"));
        }
        let rows = |answer: &Answer| match answer {
            Answer::Reply(reply) => reply.rows.iter().map(bytes::Bytes::len).sum(),
            Answer::None | Answer::Control(_) => 0,
        };
        let kept = named + answers.iter().map(rows).sum::<usize>();
        let is_too_much = self.machine.portal_bytes() + kept > PORTAL_BYTES_MAX && (named > 0 || leaves_rows);
        is_too_much.then_some(UpstreamReason::OverBudget("rows in portals"))
    }

    /// What stands against the whole group, seen without asking anybody.
    fn common_obstacle(&self, group: &Group<'_>, effects: &[Effect], state: &SessionState) -> Option<UpstreamReason> {
        if state.status == TransactionStatus::Failed {
            return Some(UpstreamReason::FailedTransaction);
        }
        // One implicit transaction for all: under a stricter default its statements share a snapshot.
        let shares = state.shares_transaction && state.status == TransactionStatus::Idle;
        let default = state.settings.as_ref().map(|settings| settings.default_isolation);
        if shares && default.is_some_and(|default| !default.is_some_and(Isolation::is_per_statement)) {
            return Some(UpstreamReason::IsolationLevel);
        }
        for (item, effect) in group.items.iter().zip(effects) {
            let Some(unit) = item.question() else { continue };
            if control::read(unit.sql).is_some() || self.is_addressed(&unit) {
                continue;
            }
            if *effect != Effect::Neutral
                && let Some(reason) = self.obstacle(*effect, unit.sql, state)
            {
                return Some(reason);
            }
        }
        None
    }

    /// To freshet itself.
    fn is_addressed(&self, unit: &Unit<'_>) -> bool {
        intercept::is_for_freshet(unit.sql, self.context.limits.schema)
    }

    /// What an item may do, judged once.
    fn effect(&self, item: &Item<'_>) -> Effect {
        let Some(unit) = item.question() else { return Effect::Neutral };
        unit.prepared.map_or_else(|| worst(&self.machine.judge(unit.sql).effects), |prepared| prepared.effect)
    }

    async fn decide_item(
        &mut self,
        item: &Item<'_>,
        effect: Effect,
        state: &mut SessionState,
        whole: Whole,
    ) -> io::Result<Decided> {
        let Some(unit) = item.question() else { return Ok(Decided::Answer(Answer::None)) };
        let unit = Unit { arrival: Some(whole.arrival), ..unit };
        if let Some(request) = intercept::read_if_addressed(unit.sql, self.context.limits.schema) {
            return Ok(self.answer_item_for_freshet(&unit, request, whole.is_alone).await);
        }
        if let Some(control) = control::read(unit.sql) {
            // What else the group does to statements may depend on it.
            if control == Control::Deallocate && unit.form != Form::Prepare && !whole.is_of_one_statement {
                return Ok(Decided::Relay(Relay::because(UpstreamReason::NotAQuery("DEALLOCATE among others"))));
            }
            // It stays when it has been run, in a block that does (postgres.c, exec_execute_message), for who names it then.
            let is_named = matches!(item, Item::Bind { bind, .. } if !bind.portal.is_empty());
            if is_named && !matches!(control, Control::Commit | Control::Rollback) {
                let reason = UpstreamReason::NotAQuery("transaction control in a portal with a name");
                return Ok(Decided::Relay(Relay::because(reason)));
            }
            // Which savepoints there are then is known when they are answered.
            if control == Control::Release && unit.form != Form::Prepare && whole.is_behind_control {
                return Ok(Decided::Relay(Relay::because(UpstreamReason::NotAQuery("RELEASE among others"))));
            }
            return Ok(self.decide_control(control, &unit, state));
        }
        if matches!(item, Item::Cursor(..)) && state.status != TransactionStatus::InTransaction {
            let reason = UpstreamReason::UnitForm("a cursor outside of a transaction block");
            return Ok(Decided::Relay(Relay::because(reason)));
        }
        if let Some(reason) = self.obstacle(effect, unit.sql, state) {
            return Ok(Decided::Relay(Relay::because(reason)));
        }
        if preamble::asks_for_life(unit.sql) {
            return Ok(Decided::Relay(Relay::because(UpstreamReason::NotAQuery("a sign of life"))));
        }
        if state.settings.is_none() {
            return Ok(match state.is_in_transaction() && !effect::takes_snapshot(unit.sql) {
                true => Decided::Relay(Relay::because(NO_SNAPSHOT)),
                false => Decided::Ask(Question::Settings),
            });
        }
        if let Some(reply) = preamble::answer(&unit, state) {
            return Ok(Decided::Answer(Answer::Reply(reply)));
        }
        if unit.form != Form::Prepare
            && state.route == RouteSetting::Auto
            && self.may_answer_in(state)
            && let Some(reply) = self.answerer.look_up(&unit, state)
        {
            return Ok(Decided::Answer(Answer::Reply(reply)));
        }
        match self.ask(&unit, state, None).await? {
            Some(Outcome::Local(reply)) => Ok(Decided::Answer(Answer::Reply(reply))),
            Some(Outcome::Relay(relay)) => Ok(match self.worth_asking(&relay) {
                Some(question) => Decided::Ask(question),
                None => Decided::Relay(relay),
            }),
            None => Ok(Decided::Cancelled),
        }
    }

    /// What is addressed to freshet itself. Its errors are answered only where the unit is plain: a group that has one goes
    /// upstream, which reports an error of its own.
    async fn answer_item_for_freshet(
        &mut self,
        unit: &Unit<'_>,
        request: Result<(Request, intercept::Verb), intercept::Refused>,
        is_alone: bool,
    ) -> Decided {
        let failed = || Decided::Relay(Relay::because(UpstreamReason::UnitForm("freshet's own settings in a group")));
        let Ok((request, verb)) = request else { return failed() };
        if self.machine.state.status == TransactionStatus::Failed {
            return failed();
        }
        if unit.form == Form::Prepare && request.sets() {
            return Decided::Answer(Answer::None);
        }
        // Others in the group may end the transaction that it belongs to, or fail: upstream knows, and takes the setting
        // for one of an extension. The session follows it by the text.
        if request.sets() && !is_alone {
            return failed();
        }
        if self.must_probe_for(&request) {
            return Decided::Ask(Question::Settings);
        }
        match self.carry_out(request, verb, unit).await {
            Ok(reply) => Decided::Answer(Answer::Reply(reply)),
            Err(_) => failed(),
        }
    }

    /// Transaction control whose reply is known: answered at once where the state is what it expects.
    fn decide_control(&mut self, control: Control, unit: &Unit<'_>, state: &mut SessionState) -> Decided {
        let relayed = || Decided::Relay(Relay::because(UpstreamReason::NotAQuery("transaction control")));
        let is_asked = self.machine.answers_locally() && self.answerer.wants_settings() && !state.listens;
        if !is_asked || state.route == RouteSetting::Relay {
            return relayed();
        }
        if unit.form == Form::Prepare {
            return Decided::Answer(Answer::None);
        }
        // Behind a query of its transaction it may be refused, as SET TRANSACTION is.
        let names_level = matches!(control, Control::Begin { isolation: Some(_), .. });
        if names_level && state.transaction.first_query != FirstQuery::None || !self.may_answer_beforehand() {
            return relayed();
        }
        match control::decide(control, state, || self.machine.knows_what_is_named(unit.sql)) {
            Decision::Answer => Decided::Answer(Answer::Control(control)),
            Decision::Ask if self.may_ask() => Decided::Ask(Question::Settings),
            Decision::Ask | Decision::Relay => relayed(),
        }
    }

    /// The whole group goes upstream; what item `at` wanted to see of the reply, it sees.
    fn relay_group(&mut self, started: Instant, group: &Group<'_>, at: usize, relay: Relay) -> io::Result<()> {
        // What a Parse makes is described later, perhaps.
        let is_description = matches!(group.items.get(at), Some(Item::DescribeStatement { .. } | Item::Parse { .. }));
        let end = if is_description { WatchEnd::Description } else { WatchEnd::Execution };
        let mut observer: Option<Box<dyn Observer>> = relay.observer.filter(|_| group.is_told_apart(at));
        let mut skip = group.executions_before(at);
        if let Some(Item::Cursor(..)) = group.items.get(at) {
            // The rows come with the FETCH.
            let fetch = group.fetch_of(at);
            skip = group.executions_before(fetch.map_or(at, |(fetch, _)| fetch));
            observer = observer.filter(|_| fetch.is_some()).map(|observer| {
                Box::new(OfFetch { observer, limit: fetch.and_then(|(_, limit)| limit) }) as Box<dyn Observer>
            });
        }
        self.relaying = Some(Relaying { started, reason: relay.reason, shape: relay.shape });
        match group.bound_only(at) {
            Some(portal) => self.machine.relay_bind(observer, skip, portal),
            None => self.machine.relay_group(observer, end, skip),
        }
        Ok(())
    }
}
