//! What each statement shape cost and how it was answered: the operator's list of top statements.
//!
//! Only what was considered for an answer is counted: not writes and transaction control, which the session relays by their texts, and
//! a definition only where the session's settings are known when it comes. All relayed statements are in the metrics.
//!
//! What is shown of a shape has no constant of a statement in it, and to a role that may not see all of them its own only.
//!
//! Bounded: past [`SHAPES_MAX`] shapes new ones are counted together. Counting is an atomic addition on a handle that
//! plans and cached replies carry, so a hit looks nothing up here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ahash::HashMap;
use freshet_engine::catalog::RelationId;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::Outdated;
use freshet_engine::statement::fingerprint;
use parking_lot::Mutex;
use serde::Serialize;

/// Shapes told apart; an application rarely has more than some thousand.
pub const SHAPES_MAX: usize = 5_000;
/// A longer shape is shown cut; its counters are still its own.
const SHOWN_BYTES_MAX: usize = 2_000;

/// Shapes that begin with as many equal bytes are counted as one.
const KEY_BYTES_MAX: usize = 16 << 10;

/// Roles of which it is known that they have asked for a shape.
const ROLES_MAX: usize = 64;

/// What all further shapes are counted as.
const OTHERS: &str = "(other statements)";

/// The beginning of a text, of so many bytes at most.
fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=text.len().min(bytes_max)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..end]
}

/// How a statement was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Answered {
    Hit,
    Local,
    Capture,
    #[default]
    Relay,
}

impl Answered {
    pub const ALL: [Self; 4] = [Self::Hit, Self::Local, Self::Capture, Self::Relay];

    /// As `SHOW freshet.last` and metric labels have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Local => "local",
            Self::Capture => "capture",
            Self::Relay => "relay",
        }
    }
}

/// What became of kept replies, and those made of them, of all shapes together.
#[derive(Debug, Default)]
pub struct Totals {
    pub survivals: AtomicU64,
    pub updates: AtomicU64,
    pub refreshes: AtomicU64,
    pub invalidations: [AtomicU64; Outdated::ALL.len()],
}

/// The counters of one shape.
#[derive(Debug, Default)]
pub struct ShapeStatistics {
    text: String,
    /// Who has asked for it.
    roles: Mutex<Vec<Box<str>>>,
    totals: Arc<Totals>,
    calls: [AtomicU64; 4],
    elapsed_us: [AtomicU64; 4],
    /// Of each route, times that are not zero, by power of two.
    times: [Times; 4],
    /// Kept replies that outlived a change of their tables, and those that did not, by cause.
    survivals: AtomicU64,
    /// Replies computed from the changes since an outdated one.
    updates: AtomicU64,
    /// Replies computed before they were asked for.
    refreshes: AtomicU64,
    invalidations: [AtomicU64; Outdated::ALL.len()],
    /// Of the last reply that was made here or kept.
    bytes: AtomicU64,
    last_reason: Mutex<Option<UpstreamReason>>,
    /// What it reads, as it was last bound.
    relations: Mutex<Vec<RelationId>>,
    /// Calls that [`Statistics::reads`] has told.
    told: AtomicU64,
}

/// How many of a route's times were below `2^n` microseconds, and not below half of that. Zero is not counted: hits that did
/// not wait touch nothing here.
#[derive(Debug, Default)]
struct Times([AtomicU64; 24]);

impl Times {
    fn note_several(&self, count: u64, elapsed_us: u64) {
        if elapsed_us > 0 {
            let bucket = (u64::BITS - elapsed_us.leading_zeros()) as usize;
            self.0[bucket.min(self.0.len() - 1)].fetch_add(count, Relaxed);
        }
    }

    /// The bound below which half of those that were counted lie.
    fn median(&self) -> Option<u64> {
        let all: u64 = self.0.iter().map(|bucket| bucket.load(Relaxed)).sum();
        let mut below = 0;
        let half = self.0.iter().position(|bucket| {
            below += bucket.load(Relaxed);
            2 * below >= all
        });
        half.filter(|_| all > 0).map(|bucket| 1 << bucket)
    }

    /// The bound below which `share` of `calls` times lie; 0 of those that were not counted.
    fn quantile(&self, share: f64, calls: u64) -> u64 {
        let counted: Vec<u64> = self.0.iter().map(|bucket| bucket.load(Relaxed)).collect();
        let mut below = calls.saturating_sub(counted.iter().sum());
        let wanted = (calls as f64 * share).ceil() as u64;
        for (bucket, count) in counted.iter().enumerate() {
            if below >= wanted {
                return if bucket == 0 { 0 } else { 1 << (bucket - 1) };
            }
            below += count;
        }
        1 << (counted.len() - 1)
    }
}

impl ShapeStatistics {
    pub fn count(&self, answered: Answered, elapsed_us: u64) {
        self.count_several(answered, 1, elapsed_us);
    }

    /// So many that took as long each.
    pub fn count_several(&self, answered: Answered, count: u64, elapsed_us: u64) {
        self.calls[answered as usize].fetch_add(count, Relaxed);
        if elapsed_us > 0 {
            self.elapsed_us[answered as usize].fetch_add(count * elapsed_us, Relaxed);
            self.times[answered as usize].note_several(count, elapsed_us);
        }
    }

    /// How long upstream took for what was counted as relayed when it was sent.
    pub fn note_relay(&self, elapsed_us: u64) {
        self.elapsed_us[Answered::Relay as usize].fetch_add(elapsed_us, Relaxed);
        self.times[Answered::Relay as usize].note_several(1, elapsed_us);
    }

    /// What upstream mostly takes for it, at most; None: it has not been seen to.
    pub fn upstream_takes(&self) -> Option<Duration> {
        self.times[Answered::Relay as usize].median().map(Duration::from_micros)
    }

    /// How large a reply is.
    pub fn note_bytes(&self, bytes: usize) {
        self.bytes.store(bytes as u64, Relaxed);
    }

    pub fn note_survival(&self) {
        self.survivals.fetch_add(1, Relaxed);
        self.totals.survivals.fetch_add(1, Relaxed);
    }

    pub fn note_update(&self) {
        self.updates.fetch_add(1, Relaxed);
        self.totals.updates.fetch_add(1, Relaxed);
    }

    pub fn note_refresh(&self) {
        self.refreshes.fetch_add(1, Relaxed);
        self.totals.refreshes.fetch_add(1, Relaxed);
    }

    pub fn note_invalidation(&self, cause: Outdated) {
        self.invalidations[cause as usize].fetch_add(1, Relaxed);
        self.totals.invalidations[cause as usize].fetch_add(1, Relaxed);
    }

    /// What was counted as relayed has been kept.
    pub fn recount_as_capture(&self, elapsed_us: u64) {
        self.calls[Answered::Relay as usize].fetch_sub(1, Relaxed);
        self.count(Answered::Capture, elapsed_us);
    }

    fn note_role(&self, role: &str) {
        let mut roles = self.roles.lock();
        if roles.len() < ROLES_MAX && !roles.iter().any(|known| **known == *role) {
            roles.push(role.into());
        }
    }

    pub fn set_relations(&self, relations: &[RelationId]) {
        let mut known = self.relations.lock();
        if *known != relations {
            known.clear();
            known.extend_from_slice(relations);
        }
    }

    /// Calls since the last time that this was asked, and what they read; None if there was none.
    fn reads(&self) -> Option<(Vec<RelationId>, u64)> {
        let calls: u64 = self.calls.iter().map(|calls| calls.load(Relaxed)).sum();
        let since = calls.saturating_sub(self.told.swap(calls, Relaxed));
        (since > 0).then(|| (self.relations.lock().clone(), since))
    }

    pub fn set_reason(&self, reason: &UpstreamReason) {
        *self.last_reason.lock() = Some(reason.clone());
    }

    fn report(&self) -> ShapeReport {
        let number = |of: &[AtomicU64; 4], answered: Answered| of[answered as usize].load(Relaxed);
        let time =
            |answered: Answered, share| self.times[answered as usize].quantile(share, number(&self.calls, answered));
        // What was made here, or asked of upstream, once, and then repeated.
        let made = [Answered::Local, Answered::Capture];
        let sum = |of: &[AtomicU64; 4]| made.iter().map(|answered| number(of, *answered)).sum::<u64>();
        let made_us = sum(&self.elapsed_us).checked_div(sum(&self.calls)).unwrap_or(0);
        let asked = [Answered::Capture, Answered::Relay];
        let upstream = |of: &[AtomicU64; 4]| asked.iter().map(|answered| number(of, *answered)).sum::<u64>();
        // Where upstream was never asked it would have taken about as long.
        let upstream_us = match upstream(&self.elapsed_us) {
            0 => made_us,
            elapsed => elapsed.checked_div(upstream(&self.calls)).unwrap_or(0),
        };
        let invalidations = Outdated::ALL.map(|cause| self.invalidations[cause as usize].load(Relaxed));
        let reason = self.last_reason.lock().as_ref().map(ToString::to_string).unwrap_or_default();
        let relayed_us = number(&self.elapsed_us, Answered::Relay);
        // A first run is not what keeps a shape going upstream.
        let is_relayed = reason != UpstreamReason::FirstRun.to_string();
        let lost_us = made_us * invalidations.iter().sum::<u64>() + if is_relayed { relayed_us } else { 0 };
        ShapeReport {
            statement: self.text.clone(),
            roles: self.roles.lock().clone(),
            hit_us: [time(Answered::Hit, 0.5), time(Answered::Hit, 0.99)],
            local_us: [time(Answered::Local, 0.5), time(Answered::Local, 0.99)],
            capture_us: [time(Answered::Capture, 0.5), time(Answered::Capture, 0.99)],
            relay_us: [time(Answered::Relay, 0.5), time(Answered::Relay, 0.99)],
            relayed_us,
            lost_us,
            bytes: self.bytes.load(Relaxed),
            saved_us: upstream_us * (number(&self.calls, Answered::Hit) + number(&self.calls, Answered::Local)),
            hits: number(&self.calls, Answered::Hit),
            local: number(&self.calls, Answered::Local),
            captures: number(&self.calls, Answered::Capture),
            relayed: number(&self.calls, Answered::Relay),
            elapsed_us: Answered::ALL.iter().map(|&a| number(&self.elapsed_us, a)).sum(),
            survivals: self.survivals.load(Relaxed),
            updates: self.updates.load(Relaxed),
            refreshes: self.refreshes.load(Relaxed),
            invalidations,
            invalidated_by: causes(invalidations),
            reason,
        }
    }
}

/// One line of `freshet.statements` and of the page.
#[derive(Clone, Debug, Serialize)]
pub struct ShapeReport {
    pub statement: String,
    /// Who may see it, beside those that may see all.
    #[serde(skip)]
    pub roles: Vec<Box<str>>,
    pub hits: u64,
    pub local: u64,
    pub captures: u64,
    pub relayed: u64,
    pub elapsed_us: u64,
    /// Median and 99th percentile, rounded up to a power of two: what hits waited for freshness, what computing took, and how long
    /// upstream took for what was captured.
    pub hit_us: [u64; 2],
    pub local_us: [u64; 2],
    pub capture_us: [u64; 2],
    pub relay_us: [u64; 2],
    /// What upstream took for what was relayed, of all executions: what the shape would profit at most.
    pub relayed_us: u64,
    /// Of the last reply that was made here or kept.
    pub bytes: u64,
    /// Upstream's time that was not needed: what it took where it was asked, for each answer that was given here.
    pub saved_us: u64,
    /// What the shape could profit at most: upstream's time for what was relayed, and that of computing again what changes made useless.
    pub lost_us: u64,
    /// How often a kept reply outlived changes of its tables.
    pub survivals: u64,
    /// How often the next reply was computed from the changes since, not from all rows.
    pub updates: u64,
    /// How often one was computed right after a change, before it was asked for.
    pub refreshes: u64,
    /// How often one did not, in the order of [`Outdated::ALL`].
    pub invalidations: [u64; Outdated::ALL.len()],
    /// The causes that occurred, each with its count.
    pub invalidated_by: String,
    /// Why it last went upstream; empty if it never did.
    pub reason: String,
}

fn causes(invalidations: [u64; Outdated::ALL.len()]) -> String {
    let counted = Outdated::ALL.iter().zip(invalidations).filter(|(_, count)| *count > 0);
    counted.map(|(cause, count)| format!("{} {count}", cause.name())).collect::<Vec<_>>().join(", ")
}

/// In the place of a text that a session may not see (pg_stat_statements.c).
const NOT_SHOWN: &str = "<insufficient privilege>";

impl ShapeReport {
    /// As a role sees it that may see its own statements only.
    pub fn seen_by(self, role: &str) -> Self {
        if self.roles.iter().any(|own| **own == *role) {
            return self;
        }
        Self { statement: NOT_SHOWN.to_owned(), reason: String::new(), ..self }
    }

    pub fn calls(&self) -> u64 {
        self.hits + self.local + self.captures + self.relayed
    }
}

/// All shapes seen.
#[derive(Debug, Default)]
pub struct Statistics {
    shapes: Mutex<HashMap<Box<str>, Arc<ShapeStatistics>>>,
    totals: Arc<Totals>,
}

impl Statistics {
    /// The counters of a shape that `role` asks for; made on first sight.
    pub fn shape(&self, shape: &str, role: &str) -> Arc<ShapeStatistics> {
        let key = cut(shape, KEY_BYTES_MAX);
        let mut shapes = self.shapes.lock();
        if let Some(found) = shapes.get(key) {
            found.note_role(role);
            return Arc::clone(found);
        }
        // Of the whole shape: a cut may open a constant.
        let (key, whole) = if shapes.len() < SHAPES_MAX { (key, shape) } else { (OTHERS, OTHERS) };
        let made = shapes.entry(key.into()).or_insert_with(|| {
            let text = cut(&fingerprint::shown(whole), SHOWN_BYTES_MAX).to_string();
            Arc::new(ShapeStatistics { text, totals: Arc::clone(&self.totals), ..ShapeStatistics::default() })
        });
        made.note_role(role);
        Arc::clone(made)
    }

    /// Per shape that was asked for what it reads, and how often it was asked for since the last time that this was.
    pub fn reads(&self) -> Vec<(Vec<RelationId>, u64)> {
        self.shapes.lock().values().filter_map(|shape| shape.reads()).collect()
    }

    /// Since the start, whatever has been forgotten.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        self.shapes.lock().clear();
    }

    /// The `count` shapes with the most calls, most first.
    pub fn top(&self, count: usize) -> Vec<ShapeReport> {
        self.ranked(count, ShapeReport::calls)
    }

    /// The `count` shapes that would profit most if they were found each time.
    pub fn most_lost(&self, count: usize) -> Vec<ShapeReport> {
        let mut reports = self.ranked(count, |report| report.lost_us);
        reports.retain(|report| report.lost_us > 0);
        reports
    }

    fn ranked(&self, count: usize, by: impl Fn(&ShapeReport) -> u64) -> Vec<ShapeReport> {
        let mut reports: Vec<ShapeReport> = self.shapes.lock().values().map(|shape| shape.report()).collect();
        // One that was looked up and then counted as another.
        reports.retain(|report| report.calls() > 0);
        reports.sort_by(|a, b| by(b).cmp(&by(a)).then_with(|| a.statement.cmp(&b.statement)));
        reports.truncate(count);
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_time_is_that_of_most_relays() {
        let times = Times::default();
        assert_eq!(times.median(), None);
        [300, 310, 5_000_000].iter().for_each(|us| times.note_several(1, *us));
        assert_eq!(times.median(), Some(512));
        times.note_several(4, 90_000);
        assert_eq!(times.median(), Some(131_072));
    }

    #[test]
    fn shapes_are_counted_apart_and_bounded() {
        let statistics = Statistics::default();
        for n in 0..SHAPES_MAX + 10 {
            statistics.shape(&format!("SELECT {n}"), "app").count(Answered::Relay, 5);
        }
        let top = statistics.top(1);
        assert_eq!((top[0].statement.as_str(), top[0].relayed), ("(other statements)", 10));
        let again = statistics.shape("SELECT 3", "app");
        again.count(Answered::Hit, 1);
        again.set_reason(&UpstreamReason::FirstRun);
        let reports = statistics.top(SHAPES_MAX + 1);
        let report = reports.iter().find(|r| r.statement == "SELECT 3").expect("kept");
        assert_eq!((report.hits, report.relayed, report.elapsed_us, report.reason.as_str()), (1, 1, 6, "first_run"));
    }

    #[test]
    fn what_is_shown_has_no_constants_and_some_calls() {
        let statistics = Statistics::default();
        let long = format!("select md5 ( 's3cret' ) , '{}'", "s3cret".repeat(KEY_BYTES_MAX));
        for shape in ["select md5 ( 's3cret' )", &long] {
            statistics.shape(shape, "app").count(Answered::Relay, 0);
        }
        statistics.shape("select never", "app");
        let texts: Vec<String> = statistics.top(9).into_iter().map(|report| report.statement).collect();
        assert_eq!(texts, ["select md5 ( {text} )", "select md5 ( {text} ) , {text}"]);
    }

    #[test]
    fn a_role_sees_what_it_has_asked_itself() {
        let statistics = Statistics::default();
        for role in ["ann", "ben", "ann"] {
            statistics.shape("select 1", role).count(Answered::Relay, 0);
        }
        let of = |role| statistics.top(1).remove(0).seen_by(role);
        assert_eq!((of("ann").statement, of("ben").statement), ("select 1".to_owned(), "select 1".to_owned()));
        assert_eq!((of("eve").statement.as_str(), of("eve").relayed), (NOT_SHOWN, 3));
    }

    #[test]
    fn times_are_told_to_a_power_of_two_and_hits_save_what_was_computed() {
        let statistics = Statistics::default();
        let shape = statistics.shape("SELECT", "app");
        [100, 100, 100, 900].iter().for_each(|time| shape.count(Answered::Local, *time));
        (0..99).for_each(|_| shape.count(Answered::Hit, 0));
        shape.count(Answered::Hit, 300);
        shape.note_survival();
        shape.note_invalidation(Outdated::Rows);
        shape.note_invalidation(Outdated::Rows);
        let report = statistics.top(1).remove(0);
        assert_eq!((report.local_us, report.hit_us), ([128, 1_024], [0, 0]));
        assert_eq!(report.saved_us, 104 * 300);
        assert_eq!((report.survivals, report.invalidated_by.as_str(), report.lost_us), (1, "rows 2", 2 * 300));
        (0..9).for_each(|_| shape.count(Answered::Hit, 300));
        assert_eq!(statistics.top(1)[0].hit_us, [0, 512]);
        shape.count(Answered::Relay, 0);
        shape.recount_as_capture(5_000);
        let report = statistics.top(1).remove(0);
        assert_eq!((report.relayed, report.captures, report.capture_us), (0, 1, [8_192, 8_192]));
        assert_eq!(report.saved_us, (109 + 4) * 5_000, "what upstream took, for each hit and each computed here");
        let dear = statistics.shape("SELECT dear", "app");
        dear.count(Answered::Relay, 0);
        dear.note_relay(700);
        let first = statistics.shape("SELECT first", "app");
        first.set_reason(&UpstreamReason::FirstRun);
        first.count(Answered::Relay, 0);
        first.note_relay(7_000);
        let reports = statistics.most_lost(9);
        let ranked: Vec<(&str, u64)> =
            reports.iter().map(|report| (report.statement.as_str(), report.lost_us)).collect();
        assert_eq!(
            ranked,
            [("SELECT", 2 * 1_240), ("SELECT dear", 700)],
            "a first run is not what keeps a shape there"
        );
        assert_eq!((reports[1].relay_us, reports[1].relayed_us), ([1_024, 1_024], 700));
    }

    #[test]
    fn reads_are_told_once() {
        let statistics = Statistics::default();
        let shape = statistics.shape("SELECT", "app");
        shape.set_relations(&[RelationId(7)]);
        shape.count_several(Answered::Hit, 5, 0);
        shape.count(Answered::Relay, 0);
        assert_eq!(statistics.reads(), [(vec![RelationId(7)], 6)]);
        assert_eq!(statistics.reads(), []);
        shape.set_relations(&[RelationId(7), RelationId(8)]);
        shape.count(Answered::Local, 1);
        assert_eq!(statistics.reads(), [(vec![RelationId(7), RelationId(8)], 1)]);
    }
}
