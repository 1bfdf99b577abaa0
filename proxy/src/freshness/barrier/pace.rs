//! When the barrier task does what nobody asks for: background statements, nudges, and telling readers that it took too long.

use std::sync::atomic::Ordering;
use std::time::Duration;

use freshet_engine::reason::UpstreamReason;
use tokio::time::Instant;

use crate::freshness::barrier::{ANSWER_MAX, Barrier, Flight, HEARTBEAT, READERS_RECENT, Reader};
use crate::freshness::exposure::Heed;
use crate::replication::applied::Attention;

/// Barriers that no reader waits for follow each other no faster.
pub(super) const BACKGROUND_PAUSE_MIN: Duration = Duration::from_micros(500);
/// Nor much slower than this, unless upstream is far away.
const BACKGROUND_PAUSE_BUSY: Duration = Duration::from_millis(2);
/// How long the mirror is given to deliver by itself before the first nudge.
const NUDGE_AFTER: Duration = Duration::from_millis(1);

/// After somebody has waited in vain, nobody does for so long.
const TRIED_AGAIN: Duration = Duration::from_millis(250);

impl Barrier {
    /// What is received concerns this task at once: somebody waits for it, or it may send a statement to expose it. Else it would
    /// be woken, from another thread, by each of the many transactions that one such statement exposes.
    pub(super) fn heeds_transactions(&self, now: Instant) -> bool {
        !self.landed.is_empty() || now >= self.last_sent + self.background_pause()
    }

    /// Which acknowledged writes would have this task send a statement at once.
    pub(super) fn heed(&self, now: Instant) -> Heed {
        let is_idle = self.flight.is_none() && self.landed.is_empty();
        match is_idle && now >= self.last_sent + self.background_pause() {
            true if self.is_read(now) => Heed::Each,
            true => Heed::IfRead,
            false => Heed::No,
        }
    }

    /// Sessions have read lately what was exposed.
    pub(super) fn is_read(&self, now: Instant) -> bool {
        self.session_read_at.is_some_and(|at| now - at < READERS_RECENT)
    }

    /// How much hurry the stream is asked for.
    pub(super) fn attention(&self, heeds_transactions: bool) -> Attention {
        match self.flight.is_some() || !self.landed.is_empty() {
            true => Attention::Awaited,
            false if heeds_transactions && self.is_read(Instant::now()) => Attention::Followed,
            false => Attention::None,
        }
    }

    /// Barriers that nobody waits for take little of upstream's time: an eighth of one session, up to half of one where the
    /// round trip is long. On a machine that has much to do, where it is longer than else, they are rarer.
    pub(super) fn background_pause(&self) -> Duration {
        let round_trip = Duration::from_micros(self.shared.counters.round_trip_us.load(Ordering::Relaxed));
        let pause = (8 * round_trip).min((2 * round_trip).max(BACKGROUND_PAUSE_BUSY));
        pause.clamp(BACKGROUND_PAUSE_MIN, HEARTBEAT)
    }

    /// Relays readers that have waited too long, and nudges where the log does not arrive.
    pub(super) fn expire(&mut self) {
        let now = Instant::now();
        let counters = &self.shared.counters;
        let expire = |readers: &mut Vec<Reader>| {
            let mut longest = None;
            for reader in readers.extract_if(.., |reader| now >= reader.arrived + reader.patience) {
                counters.over_budget.fetch_add(1, Ordering::Relaxed);
                longest = longest.max(Some(reader.patience));
                reader.answer(Err(UpstreamReason::WaitBudget));
            }
            longest
        };
        expire(&mut self.collecting);
        if let Some(flight) = &mut self.flight {
            let longest = expire(&mut flight.readers);
            flight.note_expired(now, longest);
        }
        let is_read = self.is_read(now);
        let nudge_after = self.nudge_after();
        for landed in &mut self.landed {
            let longest = expire(&mut landed.flight.readers);
            landed.flight.note_expired(now, longest);
            let is_wanted = is_read || !landed.flight.readers.is_empty();
            if is_wanted && !landed.was_nudged && now >= landed.landed_at + nudge_after {
                landed.was_nudged = true;
                self.nudge.notify_one();
            }
        }
    }

    /// How long somebody has waited in vain for what has not come yet: upstream does not answer, or a part of its log is decoded that
    /// takes long. Now and then another one tries, who would ask for a nudge, too.
    pub(super) fn tell_how_far_behind(&self) {
        let flights = self.flight.iter().chain(self.landed.iter().map(|landed| &landed.flight));
        let lately = flights.filter_map(|flight| flight.expired.filter(|(at, _)| at.elapsed() < TRIED_AGAIN));
        let behind = lately.map(|(_, waited)| waited).max().unwrap_or_default();
        if behind != self.shared.behind() {
            self.shared.behind_us.store(behind.as_micros() as u64, Ordering::Relaxed);
        }
    }

    /// Where most moments needed a nudge lately, the next one gets it at once.
    fn nudge_after(&self) -> Duration {
        if self.nudges_needed >= 4 { Duration::ZERO } else { NUDGE_AFTER }
    }

    /// When something is due even if nothing happens.
    pub(super) fn wake_at(&self) -> Instant {
        let mut at = match &self.flight {
            // An answer must come; the heartbeat waits for it.
            Some(flight) => flight.sent_at + ANSWER_MAX,
            None => next_statement(self.heartbeat, self.not_before, !self.collecting.is_empty()),
        };
        let flying = self.flight.iter().flat_map(|flight| &flight.readers);
        let landed = self.landed.iter().flat_map(|landed| &landed.flight.readers);
        for reader in self.collecting.iter().chain(flying).chain(landed) {
            at = at.min(reader.arrived + reader.patience);
        }
        let nudge_after = self.nudge_after();
        for landed in self.landed.iter().filter(|landed| !landed.was_nudged && !landed.flight.readers.is_empty()) {
            at = at.min(landed.landed_at + nudge_after);
        }
        let now = Instant::now();
        let is_read = self.is_read(now);
        if self.flight.is_none() {
            let pause_ends = self.last_sent + self.background_pause();
            let has_unexposed = self.shared.replication.transactions() != self.exposed_transactions;
            if !self.heeds_transactions(now) {
                // Readers may have come since it was last looked, and then transactions.
                at = at.min(pause_ends);
            } else if is_read && has_unexposed {
                at = at.min(pause_ends.max(now + BACKGROUND_PAUSE_MIN));
            }
        }
        at
    }
}

impl Flight {
    fn note_expired(&mut self, now: Instant, longest: Option<Duration>) {
        if let Some(longest) = longest {
            let before = self.expired.map_or(Duration::ZERO, |(_, waited)| waited);
            self.expired = Some((now, longest.max(before)));
        }
    }
}

/// When to look again whether a statement is due, where none is under way: `is_awaited` by readers, or by the heartbeat alone.
fn next_statement(heartbeat: Instant, not_before: Instant, is_awaited: bool) -> Instant {
    if is_awaited { not_before } else { heartbeat.max(not_before) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers whose statement had been put off for half a millisecond waited for the heartbeat, or until their patience ended.
    #[test]
    fn readers_wait_for_no_heartbeat() {
        let now = Instant::now();
        let (heartbeat, not_before) = (now + HEARTBEAT, now + BACKGROUND_PAUSE_MIN);
        assert_eq!(next_statement(heartbeat, not_before, true), not_before);
        assert_eq!(next_statement(heartbeat, not_before, false), heartbeat);
        assert_eq!(next_statement(now, not_before, false), not_before);
    }
}
