//! Units that came together: those at the head of a burst whose replies are at hand are answered in one go. Where a moment
//! must be waited for, the first of them does so for all, and nothing else is done for it before.

use std::io;
use std::time::Instant;

use freshet_config::FreshnessMode;

use crate::session::Session;
use crate::session::answer::{Answerer, Asking, Awaited, Known, Relay};
use crate::session::serving::{Ended, Serving};
use crate::session::state::RouteSetting;

impl<A: Answerer> Session<A> {
    /// Whether the unit at hand was answered, and maybe some behind it.
    pub(super) fn answer_known(&mut self, started: Instant) -> bool {
        let Some(asking) = self.asking() else { return false };
        let Some(mut known) = self.answerer.known(asking) else { return false };
        let count = self.machine.answer_known(&mut known);
        if count == 0 {
            return false;
        }
        let account = known.finish();
        self.keep_alive(started);
        self.probes = 0;
        self.note_wait(account.route);
        let elapsed = started.elapsed();
        self.context.metrics.count_hits(count, elapsed);
        self.entry.record.note_hits(count);
        let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        self.last = super::Last { account, reason: None, elapsed_us };
        true
    }

    /// What replies at hand may depend on, where they may be given.
    fn asking(&self) -> Option<Asking> {
        let state = &self.machine.state;
        if state.route != RouteSetting::Auto || state.snapshot.is_some() || !self.may_answer() {
            return None;
        }
        let settings = state.settings.clone()?;
        Some(Asking { settings, freshness: state.freshness, catalog_version: state.catalog_version })
    }

    /// What the unit at hand waits for, if that is all that its reply lacks.
    pub(super) fn awaited(&mut self) -> Option<Awaited> {
        if self.machine.state.freshness != FreshnessMode::Exact {
            return None;
        }
        let asking = self.asking()?;
        self.answerer.awaited(&asking, &self.machine.raw_unit()?)
    }

    /// Waits for it, while both lines are served.
    pub(super) async fn meet(&mut self, awaited: &Awaited) -> io::Result<Ended<Result<(), Relay>>> {
        self.begin_work();
        let limit = self.machine.tracker.statement_timeout();
        let met = self.answerer.meet(awaited);
        let serving = Serving { lines: &mut self.lines, machine: &mut self.machine, cancel: self.cancel.as_ref() };
        serving.during(met, limit, None).await
    }
}
