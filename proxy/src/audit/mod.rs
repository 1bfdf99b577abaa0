//! Compares local answers with upstream's and keeps the verdict per statement shape.
//!
//! The first execution of a shape is relayed on the client's own session and upstream's reply is the oracle, for types
//! and for rows; later a sample is. The same holds for the first one that wants its values in binary, or in text. A barrier before
//! and one after bracket it: only if no relation in use changed between them is the comparison fair; else the next execution is
//! the audit. What has agreed on no rows, or on a part of them, has said little: until more agrees, samples are taken at once, and
//! then at growing distances. A shape that is not verified is never served; a difference quarantines it for the life of the
//! process.

pub mod compare;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ahash::{HashMap, HashSet};
use freshet_engine::executor::memory::POOL_IS_EMPTY;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::Withdrawn;
use freshet_engine::types::encode::Format;
use parking_lot::RwLock;

/// What is known of one shape (see `Prepared::identity`).
#[derive(Debug, Default)]
struct Standing {
    /// The encodings in which upstream's rows agreed at least once ([`Encodings`]).
    rows_verified: AtomicU8,
    /// Those of them in which there were none, or not all were compared, each time.
    provisional: AtomicU8,
    /// Upstream's description of the result agreed.
    columns_verified: std::sync::atomic::AtomicBool,
    is_quarantined: std::sync::atomic::AtomicBool,
    /// Kept replies of the shape are not served any more.
    withdrawn: Withdrawn,
    /// Upstream's description of the result is another one.
    is_mismatched: std::sync::atomic::AtomicBool,
    /// An execution is being compared.
    is_judged: std::sync::atomic::AtomicBool,
    executions: AtomicU64,
    /// The engine refused or failed while upstream answered: relayed without another comparison for a while.
    refusal: parking_lot::Mutex<Option<Refusal>>,
    /// A comparison sent it upstream for a while, which is over: another comes before it is served again.
    is_in_doubt: std::sync::atomic::AtomicBool,
    /// Executions that came to nothing since it was last compared.
    failures: AtomicU32,
    pace: parking_lot::Mutex<Pace>,
    /// The next execution is to be compared for its time.
    wants_comparison: std::sync::atomic::AtomicBool,
}

/// How long executions take here and upstream.
#[derive(Debug, Default)]
struct Pace {
    /// Upstream's time when it was compared; the least counts most, as what was slow once may have been held up.
    upstream: Option<Duration>,
    /// Executions here, and the least that those took which have not been judged yet.
    executions: u32,
    least: Option<Duration>,
}

#[derive(Debug)]
struct Refusal {
    reason: UpstreamReason,
    executions_left: u32,
    /// By a comparison, and not by what came of one execution.
    is_judged: bool,
}

/// Executions after which a shape that could not be computed is tried again: the rows may have changed.
const REFUSED_EXECUTIONS: u32 = 200;
/// The same where others had the memory that it would have needed, and after the first that came to nothing: it may have been its values.
const REFUSED_FOR_OTHERS: u32 = 8;
/// How often that doubles.
const DOUBLINGS_MAX: u32 = 5;
/// What takes no longer is never too slow.
const SLOW_MIN: Duration = Duration::from_micros(500);
/// Upstream may have been so many times as slow as here by chance.
const CHANCE_TIMES: u32 = 4;
/// Of so many executions the quickest is judged.
const JUDGED_AT_ONCE: u32 = 4;
/// Said of a shape that is relayed for being slow.
const SLOWER: UpstreamReason = UpstreamReason::OverBudget("slower here than upstream");

/// What to do with one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Serve,
    /// Relay it and compare.
    Audit(UpstreamReason),
    /// Relay it; another execution is being compared.
    Await(UpstreamReason),
    /// Relay it; nothing would be learnt.
    Relay(UpstreamReason),
}

/// How the values of a reply are encoded: as text, in binary, or some so and some so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encodings(u8);

impl Encodings {
    pub const TEXT: Self = Self(1);
    pub const BINARY: Self = Self(2);
    pub const MIXED: Self = Self(4);

    /// By the format of each column.
    pub fn of(formats: &[Format]) -> Self {
        let has = |format: Format| formats.contains(&format);
        match (has(Format::Text), has(Format::Binary)) {
            (true, true) => Self::MIXED,
            (false, true) => Self::BINARY,
            (_, false) => Self::TEXT,
        }
    }

    /// Whether what is known of these says something of this one: of a mixed one, those of both kinds do.
    fn is_among(self, known: u8) -> bool {
        const BOTH: u8 = Encodings::TEXT.0 | Encodings::BINARY.0;
        known & self.0 != 0 || self == Self::MIXED && known & BOTH == BOTH
    }
}

/// What agreed with upstream.
#[derive(Clone, Copy, Debug)]
pub struct Agreement {
    pub encodings: Encodings,
    /// The description of the result, too.
    pub with_columns: bool,
    /// There were rows, and all of them were compared.
    pub is_whole: bool,
}

/// Verdicts, shared by all sessions.
#[derive(Debug)]
pub struct Audit {
    standings: RwLock<HashMap<Arc<str>, Arc<Standing>>>,
    /// Shapes that are quarantined, without their styles: others of theirs are, too, whenever they come. Changed and asked with the
    /// standings locked.
    quarantined: parking_lot::Mutex<HashSet<Box<str>>>,
    /// 0: no samples.
    sample_one_in: u64,
    /// So many times upstream's time is too slow; 0: nothing is.
    slower_times: u64,
    pub counters: AuditCounters,
}

#[derive(Debug, Default)]
pub struct AuditCounters {
    /// Comparisons that were made.
    pub compared: AtomicU64,
    /// Executions that could not be compared, because something changed meanwhile or the reply was too large.
    pub inconclusive: AtomicU64,
    /// Rows differed: an answer that was or would have been wrong.
    pub wrong_answers: AtomicU64,
    /// Descriptions differed, before anything was served.
    pub shape_mismatches: AtomicU64,
}

/// Shapes remembered. Beyond, all verdicts but quarantines are forgotten: they cost one relayed execution to make again.
const STANDINGS_MAX: usize = 50_000;

impl Audit {
    pub fn new(sample_one_in: u64, slower_times: u64) -> Self {
        Self {
            standings: RwLock::default(),
            quarantined: parking_lot::Mutex::default(),
            sample_one_in,
            slower_times,
            counters: AuditCounters::default(),
        }
    }

    /// `needs_columns`: the reply will carry a description of the result.
    pub fn decide(&self, identity: &Arc<str>, needs_columns: bool, encodings: Encodings) -> Decision {
        let standing = self.standing(identity);
        if standing.is_mismatched.load(Relaxed) {
            return Decision::Relay(UpstreamReason::ShapeMismatch);
        }
        if standing.is_quarantined.load(Relaxed) {
            return Decision::Relay(UpstreamReason::Quarantined);
        }
        if let Some(reason) = standing.refused() {
            return Decision::Relay(reason);
        }
        if !standing.is_verified(needs_columns, encodings) || standing.is_in_doubt.load(Relaxed) {
            let is_judged = standing.is_judged.load(Relaxed);
            return if is_judged { Decision::Await } else { Decision::Audit }(UpstreamReason::FirstRun);
        }
        let execution = standing.executions.fetch_add(1, Relaxed) + 1;
        if self.is_sample(&standing, execution, encodings) {
            // Where nothing comes of it, as on a table that is written all the time, the next is not sent for it, too.
            standing.wants_comparison.store(false, Relaxed);
            return Decision::Audit(UpstreamReason::AuditSample);
        }
        Decision::Serve
    }

    /// Whether an execution that no client waits for may be done; then it is counted. One that is to be compared is left, uncounted,
    /// to the next client.
    pub fn serves_ahead(&self, identity: &Arc<str>, encodings: Encodings) -> bool {
        self.would_serve(identity, false, encodings) && self.decide(identity, false, encodings) == Decision::Serve
    }

    fn is_sample(&self, standing: &Standing, execution: u64, encodings: Encodings) -> bool {
        let is_due = || execution.is_multiple_of(self.sample_one_in);
        let is_provisional = || {
            let firm = standing.rows_verified.load(Relaxed) & !standing.provisional.load(Relaxed);
            execution.is_power_of_two() && !encodings.is_among(firm)
        };
        self.sample_one_in > 0 && (is_due() || is_provisional()) || standing.wants_comparison.load(Relaxed)
    }

    /// To compare one execution of a shape. None: another one is being compared, which is soon to tell as much. Several at once would
    /// only take the time and the memory that the first needs.
    pub fn begin(&self, identity: &Arc<str>) -> Option<Judging> {
        let standing = self.standing(identity);
        (!standing.is_judged.swap(true, Relaxed)).then(|| Judging(standing))
    }

    /// Whether [`Self::decide`] would most likely say so. Nothing is counted.
    pub fn would_serve(&self, identity: &Arc<str>, needs_columns: bool, encodings: Encodings) -> bool {
        let standing = self.standing(identity);
        standing.is_verified(needs_columns, encodings)
            && !standing.is_mismatched.load(Relaxed)
            && !standing.is_quarantined.load(Relaxed)
            && standing.refusal.lock().is_none()
            && !standing.is_in_doubt.load(Relaxed)
            && !self.is_sample(&standing, standing.executions.load(Relaxed) + 1, encodings)
    }

    /// Upstream's rows agreed.
    pub fn agreed(&self, identity: &Arc<str>, agreement: Agreement) {
        self.counters.compared.fetch_add(1, Relaxed);
        let standing = self.standing(identity);
        standing.failures.store(0, Relaxed);
        standing.is_in_doubt.store(false, Relaxed);
        let Encodings(bit) = agreement.encodings;
        if agreement.is_whole {
            standing.provisional.fetch_and(!bit, Relaxed);
        } else if standing.rows_verified.load(Relaxed) & bit == 0 {
            standing.provisional.fetch_or(bit, Relaxed);
        }
        standing.rows_verified.fetch_or(bit, Relaxed);
        if agreement.with_columns {
            standing.columns_verified.store(true, Relaxed);
        }
    }

    /// Upstream's description of the statement agreed with the binder's.
    pub fn described(&self, identity: &Arc<str>) {
        self.standing(identity).columns_verified.store(true, Relaxed);
    }

    /// Whether a description of the statement can be given from here.
    pub fn is_described(&self, identity: &Arc<str>) -> bool {
        let standing = self.standing(identity);
        standing.columns_verified.load(Relaxed) && !standing.is_quarantined.load(Relaxed)
    }

    /// The engine could not answer; what it said is the reason for some executions to come.
    pub fn refused(&self, identity: &Arc<str>, reason: UpstreamReason) {
        self.inconclusive();
        let is_for_others = reason == UpstreamReason::OverBudget(POOL_IS_EMPTY);
        let executions_left = if is_for_others { REFUSED_FOR_OTHERS } else { REFUSED_EXECUTIONS };
        let standing = self.standing(identity);
        *standing.refusal.lock() = Some(Refusal { reason, executions_left, is_judged: true });
        standing.is_in_doubt.store(false, Relaxed);
    }

    /// Whether an execution took too long here to be worth it.
    pub fn is_too_slow(&self, local: Duration, upstream: Duration) -> bool {
        let allowed = upstream.saturating_mul(u32::try_from(self.slower_times).unwrap_or(u32::MAX));
        self.slower_times > 0 && local >= SLOW_MIN && local > allowed
    }

    /// What a comparison found upstream to take.
    pub fn upstream_took(&self, identity: &Arc<str>, took: Duration) {
        let standing = self.standing(identity);
        let mut pace = standing.pace.lock();
        let upstream = match pace.upstream {
            Some(known) if known < took => known + (took - known) / 4,
            _ => took,
        };
        (pace.upstream, pace.least) = (Some(upstream), None);
    }

    /// An execution here. What was compared when upstream was slow (a cold page, a first plan) is compared again after some that took
    /// long, each time later; what is slower than upstream by what is known is upstream's for a while.
    fn took(&self, identity: &Arc<str>, standing: &Standing, took: Duration) {
        if self.slower_times == 0 {
            return;
        }
        let mut pace = standing.pace.lock();
        pace.least = Some(pace.least.map_or(took, |least| least.min(took)));
        pace.executions = pace.executions.saturating_add(1);
        if !pace.executions.is_multiple_of(JUDGED_AT_ONCE) {
            return;
        }
        let Some(least) = pace.least.take().filter(|least| *least >= SLOW_MIN) else { return };
        let is_slow = pace.upstream.is_some_and(|upstream| self.is_too_slow(least, upstream));
        // What is many times as quick here is so by no chance, and to relay it would be felt.
        let may_be_chance = pace.upstream.is_none_or(|upstream| upstream <= least * CHANCE_TIMES);
        let is_asked_again = !is_slow && may_be_chance && pace.executions.is_power_of_two();
        drop(pace);
        standing.wants_comparison.store(is_asked_again, Relaxed);
        if is_slow {
            self.slow(identity);
        }
    }

    /// The shape is upstream's for a while, unless nothing is too slow.
    pub fn slow(&self, identity: &Arc<str>) {
        if self.slower_times > 0 {
            let refusal = Refusal { reason: SLOWER, executions_left: REFUSED_EXECUTIONS, is_judged: true };
            *self.standing(identity).refusal.lock() = Some(refusal);
        }
    }

    /// An execution for a client came to nothing here: it needed too much, or was given up after a long time. To try the next would
    /// cost as much again; what it needs may hang on its values.
    pub fn failed(&self, identity: &Arc<str>, reason: UpstreamReason) {
        let standing = self.standing(identity);
        let mut refusal = standing.refusal.lock();
        // Those that ran beside it fail as well.
        if refusal.is_none() {
            let doublings = standing.failures.fetch_add(1, Relaxed).min(DOUBLINGS_MAX);
            let executions_left = REFUSED_FOR_OTHERS << doublings;
            *refusal = Some(Refusal { reason, executions_left, is_judged: false });
        }
    }

    /// One came to its end.
    pub fn succeeded(&self, identity: &Arc<str>, took: Duration) {
        let standing = self.standing(identity);
        self.took(identity, &standing, took);
        if standing.failures.load(Relaxed) > 0 {
            standing.failures.store(0, Relaxed);
        }
    }

    pub fn inconclusive(&self) {
        self.counters.inconclusive.fetch_add(1, Relaxed);
    }

    /// The rows differ.
    pub fn differed(&self, identity: &Arc<str>) {
        self.counters.compared.fetch_add(1, Relaxed);
        self.counters.wrong_answers.fetch_add(1, Relaxed);
        self.quarantine(identity);
    }

    /// The descriptions differ.
    pub fn mismatched(&self, identity: &Arc<str>) {
        self.counters.shape_mismatches.fetch_add(1, Relaxed);
        self.standing(identity).is_mismatched.store(true, Relaxed);
        self.quarantine(identity);
    }

    /// Never served again, nor is what was kept of it; also for a shape whose local run failed where upstream's did not.
    pub fn quarantine(&self, identity: &Arc<str>) {
        self.standing(identity);
        // In whichever style its values are printed.
        let shape = without_style(identity);
        let standings = self.standings.write();
        self.quarantined.lock().insert(shape.into());
        for (_, standing) in standings.iter().filter(|(other, _)| without_style(other) == shape) {
            standing.is_quarantined.store(true, Relaxed);
            standing.withdrawn.set();
        }
    }

    /// What a reply of the shape that is kept has to be asked for.
    pub fn withdrawn(&self, identity: &Arc<str>) -> Withdrawn {
        self.standing(identity).withdrawn.clone()
    }

    fn standing(&self, identity: &Arc<str>) -> Arc<Standing> {
        if let Some(known) = self.standings.read().get(identity) {
            return Arc::clone(known);
        }
        let mut standings = self.standings.write();
        if standings.len() >= STANDINGS_MAX {
            forget_half(&mut standings);
        }
        let standing = standings.entry(Arc::clone(identity)).or_default();
        if self.quarantined.lock().contains(without_style(identity)) {
            standing.is_quarantined.store(true, Relaxed);
            standing.withdrawn.set();
        }
        Arc::clone(standing)
    }
}

/// Every second of those that may be forgotten. Their kept replies are, too: a later verdict on the shape would not find them.
fn forget_half(standings: &mut HashMap<Arc<str>, Arc<Standing>>) {
    let mut stays = false;
    standings.retain(|_, standing| {
        stays = !stays;
        let is_kept = stays || standing.is_quarantined.load(Relaxed);
        if !is_kept {
            standing.withdrawn.set();
        }
        is_kept
    });
}

/// An identity but for the style at its end (`Prepared::identity`).
fn without_style(identity: &str) -> &str {
    identity.rsplit_once("|s").map_or(identity, |(shape, _)| shape)
}

/// An execution that is being compared, until this is dropped.
#[derive(Debug)]
pub struct Judging(Arc<Standing>);

impl Drop for Judging {
    fn drop(&mut self) {
        self.0.is_judged.store(false, Relaxed);
    }
}

impl Standing {
    fn is_verified(&self, needs_columns: bool, encodings: Encodings) -> bool {
        encodings.is_among(self.rows_verified.load(Relaxed)) && (!needs_columns || self.columns_verified.load(Relaxed))
    }

    fn refused(&self) -> Option<UpstreamReason> {
        let mut refusal = self.refusal.lock();
        let known = refusal.as_mut()?;
        let reason = known.reason.clone();
        known.executions_left -= 1;
        if known.executions_left == 0 {
            if known.is_judged {
                self.is_in_doubt.store(true, Relaxed);
            }
            *refusal = None;
        }
        Some(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: Agreement = Agreement { encodings: Encodings::TEXT, with_columns: false, is_whole: true };

    #[test]
    fn what_cannot_be_computed_is_tried_again_later() {
        let audit = Audit::new(0, 3);
        let shape: Arc<str> = "select".into();
        let reason = UpstreamReason::LocalError("division by zero".into());
        audit.refused(&shape, reason.clone());
        for _ in 0..REFUSED_EXECUTIONS {
            assert_eq!(audit.decide(&shape, false, Encodings::TEXT), Decision::Relay(reason.clone()));
        }
        assert_eq!(audit.decide(&shape, false, Encodings::TEXT), Decision::Audit(UpstreamReason::FirstRun));
        audit.refused(&shape, UpstreamReason::OverBudget(POOL_IS_EMPTY));
        let relayed = (0..REFUSED_EXECUTIONS)
            .take_while(|_| matches!(audit.decide(&shape, false, Encodings::TEXT), Decision::Relay(_)));
        assert_eq!(relayed.count(), REFUSED_FOR_OTHERS as usize);
    }

    #[test]
    fn nothing_is_served_before_rows_and_columns_agreed() {
        let audit = Audit::new(0, 3);
        let shape: Arc<str> = "select {int4}".into();
        assert_eq!(audit.decide(&shape, false, Encodings::TEXT), Decision::Audit(UpstreamReason::FirstRun));
        audit.agreed(&shape, ROWS);
        assert_eq!(audit.decide(&shape, false, Encodings::TEXT), Decision::Serve);
        assert_eq!(audit.decide(&shape, true, Encodings::TEXT), Decision::Audit(UpstreamReason::FirstRun));
        audit.described(&shape);
        assert_eq!(audit.decide(&shape, true, Encodings::TEXT), Decision::Serve);
    }

    #[test]
    fn one_execution_of_a_shape_is_compared_at_a_time() {
        let audit = Audit::new(0, 3);
        let (shape, other): (Arc<str>, Arc<str>) = ("select".into(), "select {int4}".into());
        let judging = audit.begin(&shape).expect("the first");
        assert!(audit.begin(&shape).is_none() && audit.begin(&other).is_some());
        assert_eq!(audit.decide(&shape, false, Encodings::TEXT), Decision::Await(UpstreamReason::FirstRun));
        assert_eq!(audit.decide(&other, false, Encodings::TEXT), Decision::Audit(UpstreamReason::FirstRun));
        drop(judging);
        assert_eq!(audit.decide(&shape, false, Encodings::TEXT), Decision::Audit(UpstreamReason::FirstRun));
        let _judging = audit.begin(&shape).expect("none is compared");
        audit.agreed(&shape, ROWS);
        assert_eq!(audit.decide(&shape, false, Encodings::TEXT), Decision::Serve);
    }

    #[test]
    fn what_nobody_waits_for_leaves_the_sample_to_a_client() {
        let audit = Audit::new(3, 3);
        let shape: Arc<str> = "select".into();
        assert!(!audit.serves_ahead(&shape, Encodings::TEXT), "nobody has compared it");
        audit.agreed(&shape, ROWS);
        assert_eq!([(); 4].map(|()| audit.serves_ahead(&shape, Encodings::TEXT)), [true, true, false, false]);
        assert_eq!(audit.decide(&shape, false, Encodings::TEXT), Decision::Audit(UpstreamReason::AuditSample));
        assert!(audit.serves_ahead(&shape, Encodings::TEXT));
    }

    #[test]
    fn a_difference_is_for_good() {
        let audit = Audit::new(0, 3);
        let shape: Arc<str> = "select".into();
        audit.agreed(&shape, Agreement { with_columns: true, ..ROWS });
        audit.differed(&shape);
        audit.agreed(&shape, Agreement { with_columns: true, ..ROWS });
        assert_eq!(audit.decide(&shape, true, Encodings::TEXT), Decision::Relay(UpstreamReason::Quarantined));
        assert_eq!(audit.counters.wrong_answers.load(Relaxed), 1);
    }

    #[test]
    fn a_difference_is_one_in_every_style() {
        let audit = Audit::new(0, 3);
        let [iso, german, other] = ["select|c:1|sIso", "select|c:1|sGerman", "select 1|c:1|sIso"].map(Arc::<str>::from);
        for shape in [&iso, &german, &other] {
            audit.agreed(shape, ROWS);
        }
        audit.differed(&german);
        let decisions = [&iso, &german, &other].map(|shape| audit.decide(shape, false, Encodings::TEXT));
        let quarantined = Decision::Relay(UpstreamReason::Quarantined);
        assert_eq!(decisions, [quarantined.clone(), quarantined.clone(), Decision::Serve]);
        assert_eq!(audit.decide(&"select|c:1|sSql".into(), false, Encodings::TEXT), quarantined, "seen later");
    }

    #[test]
    fn a_verdict_takes_back_what_is_kept_of_the_shape() {
        let audit = Audit::new(0, 3);
        let wrong: Arc<str> = "select 1".into();
        let before = audit.withdrawn(&wrong);
        audit.differed(&wrong);
        // Also what was being computed meanwhile.
        assert!(before.is_set() && audit.withdrawn(&wrong).is_set() && !audit.withdrawn(&"select 2".into()).is_set());
        let others: Vec<Arc<str>> = (0..STANDINGS_MAX).map(|shape| shape.to_string().into()).collect();
        let flags: Vec<Withdrawn> = others.iter().map(|shape| audit.withdrawn(shape)).collect();
        let withdrawn = flags.iter().filter(|flag| flag.is_set()).count();
        assert!(
            (STANDINGS_MAX / 3..STANDINGS_MAX * 2 / 3).contains(&withdrawn),
            "{withdrawn} of them, not all at once"
        );
        for (shape, flag) in others.iter().zip(&flags).filter(|(_, flag)| flag.is_set()).take(100) {
            assert!(
                !audit.withdrawn(shape).is_set() && flag.is_set(),
                "nobody would know of it when there is a verdict"
            );
        }
        assert!(audit.withdrawn(&wrong).is_set());
    }

    #[test]
    fn another_description_is_said_to_be_one() {
        let audit = Audit::new(0, 3);
        let shape: Arc<str> = "select".into();
        audit.mismatched(&shape);
        audit.agreed(&shape, ROWS);
        assert_eq!(audit.decide(&shape, false, Encodings::TEXT), Decision::Relay(UpstreamReason::ShapeMismatch));
        assert_eq!(audit.counters.wrong_answers.load(Relaxed), 0);
    }

    #[test]
    fn every_nth_execution_is_a_sample() {
        let audit = Audit::new(3, 3);
        let shape: Arc<str> = "select".into();
        audit.agreed(&shape, Agreement { with_columns: true, ..ROWS });
        let decisions: Vec<bool> =
            (0..6).map(|_| audit.decide(&shape, true, Encodings::TEXT) == Decision::Serve).collect();
        assert_eq!(decisions, [true, true, false, true, true, false]);
    }

    #[test]
    fn each_encoding_has_a_first_run() {
        let audit = Audit::new(0, 3);
        let shape: Arc<str> = "select".into();
        let both = Encodings::of(&[Format::Text, Format::Binary]);
        audit.agreed(&shape, ROWS);
        for encodings in [Encodings::BINARY, both] {
            assert_eq!(audit.decide(&shape, false, encodings), Decision::Audit(UpstreamReason::FirstRun));
        }
        audit.agreed(&shape, Agreement { encodings: Encodings::BINARY, ..ROWS });
        for encodings in [Encodings::TEXT, Encodings::BINARY, both, Encodings::of(&[])] {
            assert_eq!(audit.decide(&shape, false, encodings), Decision::Serve);
        }
        let other: Arc<str> = "select 1".into();
        audit.agreed(&other, Agreement { encodings: both, ..ROWS });
        assert_eq!(audit.decide(&other, false, both), Decision::Serve);
        assert_eq!(audit.decide(&other, false, Encodings::BINARY), Decision::Audit(UpstreamReason::FirstRun));
    }

    #[test]
    fn who_has_agreed_on_nothing_is_asked_again_soon() {
        let audit = Audit::new(1_000, 3);
        let shape: Arc<str> = "select".into();
        let nothing = Agreement { is_whole: false, ..ROWS };
        audit.agreed(&shape, nothing);
        let samples = |executions: usize| -> Vec<usize> {
            let is_sample = |_: &usize| audit.decide(&shape, false, Encodings::TEXT) != Decision::Serve;
            (1..=executions).filter(is_sample).collect()
        };
        assert_eq!(samples(20), [1, 2, 4, 8, 16]);
        audit.agreed(&shape, nothing);
        assert_eq!(samples(20), [12], "the 32nd");
        audit.agreed(&shape, ROWS);
        audit.agreed(&shape, nothing);
        assert_eq!(samples(200), Vec::<usize>::new(), "it has had rows since");
        audit.agreed(&shape, Agreement { encodings: Encodings::BINARY, ..nothing });
        let is_sample = |_: &usize| audit.decide(&shape, false, Encodings::BINARY) != Decision::Serve;
        assert_eq!((1..=400).filter(is_sample).collect::<Vec<_>>(), [16, 272], "the 256th and the 512th, in binary");
    }

    #[test]
    fn what_is_slow_is_relayed_for_a_while_and_then_looked_at_again() {
        let (audit, patient) = (Audit::new(0, 3), Audit::new(0, 0));
        let of = Duration::from_millis;
        assert!(audit.is_too_slow(of(200), of(60)) && !audit.is_too_slow(of(200), of(70)));
        let micros = Duration::from_micros;
        assert!(audit.is_too_slow(of(1), micros(300)) && !audit.is_too_slow(micros(450), micros(100)));
        assert!(!patient.is_too_slow(of(4_000), of(1)));
        let shape: Arc<str> = "select".into();
        let decide = || audit.decide(&shape, false, Encodings::TEXT);
        audit.agreed(&shape, ROWS);
        audit.slow(&shape);
        for _ in 0..REFUSED_EXECUTIONS {
            assert!(!audit.would_serve(&shape, false, Encodings::TEXT));
            assert_eq!(decide(), Decision::Relay(SLOWER));
        }
        for _ in 0..3 {
            assert!(!audit.would_serve(&shape, false, Encodings::TEXT));
            assert_eq!(decide(), Decision::Audit(UpstreamReason::FirstRun), "until something is said");
        }
        audit.agreed(&shape, ROWS);
        assert_eq!(decide(), Decision::Serve);
    }

    #[test]
    fn what_was_compared_at_a_bad_moment_is_compared_again() {
        let audit = Audit::new(0, 3);
        let (of, shape): (_, Arc<str>) = (Duration::from_millis, "select".into());
        let decide = || audit.decide(&shape, false, Encodings::TEXT);
        // How many are served before the first that is not, and what becomes of that.
        let served = |took: Duration| {
            for count in 0..1_000 {
                match decide() {
                    Decision::Serve => audit.succeeded(&shape, took),
                    other => return (count, other),
                }
            }
            (1_000, Decision::Serve)
        };
        let sample = Decision::Audit(UpstreamReason::AuditSample);
        audit.upstream_took(&shape, of(20));
        audit.agreed(&shape, ROWS);
        assert_eq!(served(of(10)), (4, sample.clone()));
        assert_eq!(served(of(10)), (4, sample.clone()), "the eighth: nothing came of the first");
        // It is as slow again.
        audit.upstream_took(&shape, of(22));
        audit.agreed(&shape, ROWS);
        assert_eq!(served(of(10)), (8, sample), "the sixteenth");
        audit.upstream_took(&shape, of(1));
        audit.agreed(&shape, ROWS);
        assert_eq!(served(of(10)), (4, Decision::Relay(SLOWER)), "not by chance");
    }

    #[test]
    fn what_is_quick_is_not_compared_for_its_time() {
        let audit = Audit::new(0, 3);
        let shape: Arc<str> = "select".into();
        audit.upstream_took(&shape, Duration::from_micros(10));
        audit.agreed(&shape, ROWS);
        let mut times = [100_u64, 400, 20_000].iter().cycle();
        for _ in 0..300 {
            assert_eq!(audit.decide(&shape, false, Encodings::TEXT), Decision::Serve);
            audit.succeeded(&shape, Duration::from_micros(*times.next().expect("endless")));
        }
        let quicker: Arc<str> = "select sum".into();
        audit.upstream_took(&quicker, Duration::from_millis(300));
        audit.agreed(&quicker, ROWS);
        for _ in 0..300 {
            assert_eq!(audit.decide(&quicker, false, Encodings::TEXT), Decision::Serve);
            audit.succeeded(&quicker, Duration::from_millis(40));
        }
        let never = Audit::new(0, 0);
        never.agreed(&shape, ROWS);
        (0..300).for_each(|_| never.succeeded(&shape, Duration::from_secs(1)));
        assert_eq!(never.decide(&shape, false, Encodings::TEXT), Decision::Serve);
    }

    #[test]
    fn what_comes_to_nothing_is_tried_less_and_less_often() {
        let audit = Audit::new(0, 3);
        let shape: Arc<str> = "select".into();
        let reason = UpstreamReason::OverBudget("memory");
        audit.agreed(&shape, ROWS);
        let relayed = || {
            audit.failed(&shape, reason.clone());
            std::iter::repeat_with(|| audit.decide(&shape, false, Encodings::TEXT))
                .take_while(|decision| *decision == Decision::Relay(reason.clone()))
                .count()
        };
        assert_eq!([(); 7].map(|()| relayed()), [8, 16, 32, 64, 128, 256, 256]);
        audit.succeeded(&shape, Duration::ZERO);
        audit.failed(&shape, reason.clone());
        assert_eq!(relayed(), 8, "those beside it count once");
        assert_eq!(relayed(), 16);
    }
}
