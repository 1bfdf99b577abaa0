//! Units that came together: those at the head of a burst whose replies are at hand are answered in one go.

use std::time::Instant;

use crate::session::Session;
use crate::session::answer::{Answerer, Asking, Known};
use crate::session::state::RouteSetting;

impl<A: Answerer> Session<A> {
    /// Whether the unit at hand was answered, and maybe some behind it.
    pub(super) fn answer_known(&mut self, started: Instant) -> bool {
        let state = &self.machine.state;
        if state.route != RouteSetting::Auto || state.snapshot.is_some() || !self.may_answer() {
            return false;
        }
        let Some(settings) = state.settings.clone() else { return false };
        let asking = Asking { settings, freshness: state.freshness, catalog_version: state.catalog_version };
        let Some(mut known) = self.answerer.known(asking) else { return false };
        let count = self.machine.answer_known(&mut known);
        if count == 0 {
            return false;
        }
        let account = known.finish();
        self.keep_alive(started);
        self.probes = 0;
        let elapsed = started.elapsed();
        self.context.metrics.count_hits(count, elapsed);
        self.entry.record.note_hits(count);
        let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        self.last = super::Last { account, reason: None, elapsed_us };
        true
    }
}
