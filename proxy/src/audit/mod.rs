//! Compares local answers with upstream's and keeps the verdict per statement shape.
//!
//! The first execution of a shape is relayed on the client's own session and upstream's reply is the oracle, for types
//! and for rows; later a sample is. A barrier before and one after bracket it: only if no relation in use changed between
//! them is the comparison fair; else the next execution is the audit. A shape that is not verified is never served; a
//! difference quarantines it for the life of the process.

pub mod compare;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ahash::HashMap;
use freshet_engine::executor::memory::POOL_IS_EMPTY;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::result_cache::Withdrawn;
use parking_lot::RwLock;

/// What is known of one shape (see `Prepared::identity`).
#[derive(Debug, Default)]
struct Standing {
    /// Upstream's rows agreed at least once.
    rows_verified: std::sync::atomic::AtomicBool,
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
}

#[derive(Debug)]
struct Refusal {
    reason: UpstreamReason,
    executions_left: u32,
}

/// Executions after which a shape that could not be computed is tried again: the rows may have changed.
const REFUSED_EXECUTIONS: u32 = 200;
/// The same where others had the memory that it would have needed.
const REFUSED_FOR_OTHERS: u32 = 8;

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

/// Verdicts, shared by all sessions.
#[derive(Debug)]
pub struct Audit {
    standings: RwLock<HashMap<Arc<str>, Arc<Standing>>>,
    /// 0: no samples.
    sample_one_in: u64,
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
    pub fn new(sample_one_in: u64) -> Self {
        Self { standings: RwLock::default(), sample_one_in, counters: AuditCounters::default() }
    }

    /// `needs_columns`: the reply will carry a description of the result.
    pub fn decide(&self, identity: &Arc<str>, needs_columns: bool) -> Decision {
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
        if !standing.rows_verified.load(Relaxed) || (needs_columns && !standing.columns_verified.load(Relaxed)) {
            let is_judged = standing.is_judged.load(Relaxed);
            return if is_judged { Decision::Await } else { Decision::Audit }(UpstreamReason::FirstRun);
        }
        let execution = standing.executions.fetch_add(1, Relaxed) + 1;
        if self.sample_one_in > 0 && execution.is_multiple_of(self.sample_one_in) {
            return Decision::Audit(UpstreamReason::AuditSample);
        }
        Decision::Serve
    }

    /// Whether an execution that no client waits for may be done; then it is counted. One that is to be compared is left, uncounted,
    /// to the next client.
    pub fn serves_ahead(&self, identity: &Arc<str>) -> bool {
        self.would_serve(identity, false) && self.decide(identity, false) == Decision::Serve
    }

    /// To compare one execution of a shape. None: another one is being compared, which is soon to tell as much. Several at once would
    /// only take the time and the memory that the first needs.
    pub fn begin(&self, identity: &Arc<str>) -> Option<Judging> {
        let standing = self.standing(identity);
        (!standing.is_judged.swap(true, Relaxed)).then(|| Judging(standing))
    }

    /// Whether [`Self::decide`] would most likely say so. Nothing is counted.
    pub fn would_serve(&self, identity: &Arc<str>, needs_columns: bool) -> bool {
        let standing = self.standing(identity);
        let is_verified =
            standing.rows_verified.load(Relaxed) && (!needs_columns || standing.columns_verified.load(Relaxed));
        let is_sample = || (standing.executions.load(Relaxed) + 1).is_multiple_of(self.sample_one_in);
        is_verified
            && !standing.is_mismatched.load(Relaxed)
            && !standing.is_quarantined.load(Relaxed)
            && standing.refusal.lock().is_none()
            && (self.sample_one_in == 0 || !is_sample())
    }

    /// Upstream's rows agreed; `with_columns`: its description of the result, too.
    pub fn agreed(&self, identity: &Arc<str>, with_columns: bool) {
        self.counters.compared.fetch_add(1, Relaxed);
        let standing = self.standing(identity);
        standing.rows_verified.store(true, Relaxed);
        if with_columns {
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
        *self.standing(identity).refusal.lock() = Some(Refusal { reason, executions_left });
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
        let standing = self.standing(identity);
        standing.is_quarantined.store(true, Relaxed);
        standing.withdrawn.set();
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
        Arc::clone(standings.entry(Arc::clone(identity)).or_default())
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

/// An execution that is being compared, until this is dropped.
#[derive(Debug)]
pub struct Judging(Arc<Standing>);

impl Drop for Judging {
    fn drop(&mut self) {
        self.0.is_judged.store(false, Relaxed);
    }
}

impl Standing {
    fn refused(&self) -> Option<UpstreamReason> {
        let mut refusal = self.refusal.lock();
        let known = refusal.as_mut()?;
        let reason = known.reason.clone();
        known.executions_left -= 1;
        if known.executions_left == 0 {
            *refusal = None;
        }
        Some(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_computed_is_tried_again_later() {
        let audit = Audit::new(0);
        let shape: Arc<str> = "select".into();
        let reason = UpstreamReason::LocalError("division by zero".into());
        audit.refused(&shape, reason.clone());
        for _ in 0..REFUSED_EXECUTIONS {
            assert_eq!(audit.decide(&shape, false), Decision::Relay(reason.clone()));
        }
        assert_eq!(audit.decide(&shape, false), Decision::Audit(UpstreamReason::FirstRun));
        audit.refused(&shape, UpstreamReason::OverBudget(POOL_IS_EMPTY));
        let relayed = (0..REFUSED_EXECUTIONS).take_while(|_| matches!(audit.decide(&shape, false), Decision::Relay(_)));
        assert_eq!(relayed.count(), REFUSED_FOR_OTHERS as usize);
    }

    #[test]
    fn nothing_is_served_before_rows_and_columns_agreed() {
        let audit = Audit::new(0);
        let shape: Arc<str> = "select {int4}".into();
        assert_eq!(audit.decide(&shape, false), Decision::Audit(UpstreamReason::FirstRun));
        audit.agreed(&shape, false);
        assert_eq!(audit.decide(&shape, false), Decision::Serve);
        assert_eq!(audit.decide(&shape, true), Decision::Audit(UpstreamReason::FirstRun));
        audit.described(&shape);
        assert_eq!(audit.decide(&shape, true), Decision::Serve);
    }

    #[test]
    fn one_execution_of_a_shape_is_compared_at_a_time() {
        let audit = Audit::new(0);
        let (shape, other): (Arc<str>, Arc<str>) = ("select".into(), "select {int4}".into());
        let judging = audit.begin(&shape).expect("the first");
        assert!(audit.begin(&shape).is_none() && audit.begin(&other).is_some());
        assert_eq!(audit.decide(&shape, false), Decision::Await(UpstreamReason::FirstRun));
        assert_eq!(audit.decide(&other, false), Decision::Audit(UpstreamReason::FirstRun));
        drop(judging);
        assert_eq!(audit.decide(&shape, false), Decision::Audit(UpstreamReason::FirstRun));
        let _judging = audit.begin(&shape).expect("none is compared");
        audit.agreed(&shape, false);
        assert_eq!(audit.decide(&shape, false), Decision::Serve);
    }

    #[test]
    fn what_nobody_waits_for_leaves_the_sample_to_a_client() {
        let audit = Audit::new(3);
        let shape: Arc<str> = "select".into();
        assert!(!audit.serves_ahead(&shape), "nobody has compared it");
        audit.agreed(&shape, false);
        assert_eq!([(); 4].map(|()| audit.serves_ahead(&shape)), [true, true, false, false]);
        assert_eq!(audit.decide(&shape, false), Decision::Audit(UpstreamReason::AuditSample));
        assert!(audit.serves_ahead(&shape));
    }

    #[test]
    fn a_difference_is_for_good() {
        let audit = Audit::new(0);
        let shape: Arc<str> = "select".into();
        audit.agreed(&shape, true);
        audit.differed(&shape);
        audit.agreed(&shape, true);
        assert_eq!(audit.decide(&shape, true), Decision::Relay(UpstreamReason::Quarantined));
        assert_eq!(audit.counters.wrong_answers.load(Relaxed), 1);
    }

    #[test]
    fn a_verdict_takes_back_what_is_kept_of_the_shape() {
        let audit = Audit::new(0);
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
        let audit = Audit::new(0);
        let shape: Arc<str> = "select".into();
        audit.mismatched(&shape);
        audit.agreed(&shape, false);
        assert_eq!(audit.decide(&shape, false), Decision::Relay(UpstreamReason::ShapeMismatch));
        assert_eq!(audit.counters.wrong_answers.load(Relaxed), 0);
    }

    #[test]
    fn every_nth_execution_is_a_sample() {
        let audit = Audit::new(3);
        let shape: Arc<str> = "select".into();
        audit.agreed(&shape, true);
        let decisions: Vec<bool> = (0..6).map(|_| audit.decide(&shape, true) == Decision::Serve).collect();
        assert_eq!(decisions, [true, true, false, true, true, false]);
    }
}
