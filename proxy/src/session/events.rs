//! What happened upstream, told on: to the answerer, to the operator, and to the session itself.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use freshet_engine::reason::UpstreamReason;
use tracing::warn;

use crate::metrics::CauseLabel;
use crate::session::answer::{Account, Answerer};
use crate::session::change::opaque_label;
use crate::session::effect::{Effect, Written};
use crate::session::machine::{Event, Machine, Observed};
use crate::session::settings::TEMPORARY_TABLES;
use crate::session::{PROBE_FAILURES_MAX, PROBES_MAX, Relaying, Session};
use crate::statistics::Answered;
use crate::wire::error::field;
use crate::wire::query::TransactionStatus;

impl<A: Answerer> Session<A> {
    /// What happened upstream, told on before the client hears of it.
    pub(super) fn note_events(&mut self) {
        if !self.machine.has_events() {
            return;
        }
        let mut events = self.machine.take_events();
        // How a statement was answered depends on what became of its reply.
        for event in events.extract_if(.., |event| matches!(event, Event::Observed(_))) {
            let Event::Observed(Observed { observer, reply }) = event else { continue };
            let captured = observer.captured();
            observer.observe(reply);
            self.is_captured = captured.is_some_and(|captured| captured.load(Relaxed));
        }
        for event in events {
            match event {
                Event::WriteAcknowledged(effect, written) => {
                    // A temporary table may go by the name of another and have triggers that write a third.
                    let may_have_any = self.machine.tracker.may_have_temporary_objects();
                    let written = if may_have_any { Written::Anything } else { written };
                    self.answerer.write_acknowledged(effect, &written);
                }
                Event::NotAwaited => self.answerer.note_not_awaited(),
                Event::LacksIdentity(message) => self.answerer.note_lacks_identity(&message),
                Event::Relayed(relayed) => {
                    self.answerer.relayed(&relayed);
                    if matches!(relayed.effect, Effect::Settings | Effect::Discard) {
                        self.probe_failures = 0;
                    }
                    self.note_opaque();
                    let unknown =
                        || Relaying { started: Instant::now(), reason: UpstreamReason::Outstanding, shape: None };
                    let Relaying { started, reason, shape } = self.relaying.take().unwrap_or_else(unknown);
                    // It will be the first run again.
                    let reason = match reason {
                        UpstreamReason::FirstRun if relayed.has_error => UpstreamReason::UpstreamError,
                        reason => reason,
                    };
                    // What is not answered from the session's snapshot is not of its moment.
                    let freshness = if self.machine.state.snapshot.is_some() { "own moment" } else { "" };
                    let is_captured = std::mem::take(&mut self.is_captured);
                    let route = if is_captured { Answered::Capture } else { Answered::Relay };
                    // What is kept is counted with its time.
                    if let Some(shape) = shape.filter(|_| !is_captured) {
                        shape.note_relay(u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX));
                    }
                    self.account(started, Account { route, freshness, ..Account::default() }, Some(reason));
                }
                Event::Observed(_) => {}
                Event::BlockFailed(error) => self.failure = Some(error),
                Event::Probed(Ok(probed)) => {
                    self.probe_failures = 0;
                    self.machine.tracker.probed(&probed, &self.context.interner, self.probed_version);
                    self.machine.state.settings = None;
                    self.machine.state.version = Some((probed.version, probed.role));
                    self.machine.state.started_at = Some(probed.started_at);
                    self.note_time(probed.transaction_time);
                    self.note_opaque();
                }
                Event::TimeTold(Ok(time)) => {
                    self.probe_failures = 0;
                    self.note_time(time);
                }
                Event::CustomTold(Ok(told)) => {
                    self.probe_failures = 0;
                    self.machine.tracker.learn_custom(&told);
                    self.machine.state.settings = None;
                }
                Event::CustomTold(Err(error)) => self.probe_failed(error, true),
                Event::Probed(Err(error)) | Event::TimeTold(Err(error)) => self.probe_failed(error, false),
            }
        }
    }

    /// Nothing will come from upstream any more, and the client is about to learn that.
    pub(super) fn note_end(&mut self) {
        self.machine.note_end_of_session();
        self.note_events();
    }

    fn note_time(&mut self, time: i64) {
        if self.machine.state.status == TransactionStatus::InTransaction {
            self.machine.state.transaction.time = Some(time);
        }
    }

    /// Upstream did not tell the settings, or the time. What it says instead is news to the client where a block has failed
    /// by it, and where it was asked to cancel: then the request was meant for the statement that waits for the probe.
    /// `of_custom`: only settings of an application's own were asked for, some of which are not for everybody.
    fn probe_failed(&mut self, error: Option<Box<[u8]>>, of_custom: bool) {
        let sqlstate = error.as_deref().and_then(|error| field(error, b'C')).unwrap_or_default();
        let is_cancelled = sqlstate == b"57014" && {
            // A time limit has the same code; its message may be in any language.
            let message = error.as_deref().and_then(|error| field(error, b'M')).unwrap_or_default();
            message == b"canceling statement due to user request" || self.machine.tracker.may_probe_inside()
        };
        let has_failed = self.machine.state.status == TransactionStatus::Failed;
        if !is_cancelled && !has_failed {
            // Of resources, locks and limits, and what an operator does: another time there may be an answer.
            let may_pass = ["40", "53", "55", "57", "58"].iter().any(|class| sqlstate.starts_with(class.as_bytes()));
            match (of_custom, may_pass) {
                (true, may_pass) => self.may_ask_custom = may_pass,
                (false, true) => self.probe_failures += 1,
                (false, false) => self.probe_failures = PROBE_FAILURES_MAX,
            }
            // The unit at hand does not wait for another.
            self.probes = PROBES_MAX;
            let sqlstate = String::from_utf8_lossy(sqlstate).into_owned();
            warn!(client = %self.machine.state.login.client, sqlstate, "upstream did not tell the session's settings or its time");
        }
        if is_cancelled || has_failed {
            self.failure = error;
        }
    }

    /// Tells the operator why the session's settings are not known, if they are not.
    fn note_opaque(&mut self) {
        let Machine { state, tracker, .. } = &mut self.machine;
        if let Some(reason) = tracker.newly_opaque() {
            self.context.metrics.opaque.get_or_create(&CauseLabel { cause: opaque_label(&reason) }).inc();
        }
        let opaque = match &state.settings {
            None => tracker.opaque().cloned(),
            Some(settings) => settings.values.has_temporary_objects.then(|| TEMPORARY_TABLES.into()),
        };
        self.entry.record.note_settings(state, opaque.as_ref());
    }
}
