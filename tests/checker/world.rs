//! What all workers of a run share: addresses, gates, what was found, counters.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::ledger::{List, Registers, locked};
use crate::random::Random;
use crate::standby::Hazards;

/// The freshness that is asked for, whose promise is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Exact,
    Session,
    /// As exact, as long as every commit waits for freshet; but for changes of the catalog past it.
    Standby,
}

impl Mode {
    /// Whether rows are as upstream shows them, whoever wrote them.
    pub(crate) fn is_exact(self) -> bool {
        self != Self::Session
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Session => "session",
            Self::Standby => "standby",
        }
    }
}

/// How a read may break the promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Older than what was acknowledged, or seen by somebody before.
    Stale,
    /// No state that ever was: torn, uncommitted, different from PostgreSQL's answer.
    Wrong,
    /// Older than what the same session saw before.
    NonMonotonic,
    /// Shown before upstream showed it.
    Early,
    /// Nothing was answered here again after the faults were over.
    NotRecovered,
}

pub(crate) const LISTS: usize = 4;
/// Lists from this one on are written through freshet.
pub(crate) const FIRST_LIST_THROUGH: usize = 2;

pub(crate) struct World {
    pub(crate) mode: Mode,
    pub(crate) seed: u64,
    /// PostgreSQL itself.
    pub(crate) direct: SocketAddr,
    pub(crate) through: SocketAddr,
    pub(crate) database: String,
    pub(crate) registers: Registers,
    pub(crate) lists: [List; LISTS],
    /// Held for reading by every write; for writing by who wants nothing to change.
    pub(crate) gate: RwLock<()>,
    /// Held for reading, and taken before the other, by every write through freshet: for writing by who wants it to be told of none.
    pub(crate) through_gate: RwLock<()>,
    /// Held for reading by every write that commits asynchronously; for writing across a crash, which may lose such.
    pub(crate) asynchronous: RwLock<()>,
    pub(crate) stop: AtomicBool,
    pub(crate) stop_at_first: bool,
    pub(crate) found: Mutex<Vec<(Kind, String)>>,
    counters: Mutex<BTreeMap<String, u64>>,
    /// How old session-mode reads of what is written past freshet were, in ms by power of two.
    pub(crate) ages: Mutex<[u64; 14]>,
    pub(crate) hazards: Hazards,
    /// How long after a change of the catalog it was not seen yet: the longest.
    lateness: Mutex<Duration>,
    /// Whether something is broken, and when that last ended.
    disturbed: Mutex<(bool, Option<Instant>)>,
    /// freshet has its event trigger.
    pub(crate) has_event_trigger: bool,
    /// What the run did, with times.
    pub(crate) events: Mutex<Vec<String>>,
    pub(crate) started: Instant,
    pub(crate) is_verbose: bool,
}

impl World {
    pub(crate) fn new(mode: Mode, seed: u64, direct: SocketAddr, through: SocketAddr, database: String) -> Self {
        Self {
            mode,
            seed,
            direct,
            through,
            database,
            registers: Registers::default(),
            lists: Default::default(),
            gate: RwLock::default(),
            through_gate: RwLock::default(),
            asynchronous: RwLock::default(),
            stop: AtomicBool::new(false),
            stop_at_first: false,
            found: Mutex::default(),
            counters: Mutex::default(),
            ages: Mutex::default(),
            hazards: Hazards::default(),
            lateness: Mutex::default(),
            disturbed: Mutex::default(),
            has_event_trigger: false,
            events: Mutex::default(),
            started: Instant::now(),
            is_verbose: false,
        }
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.load(SeqCst)
    }

    /// To be held while a write is under way.
    pub(crate) fn write_gate(&self, is_through: bool) -> (Option<RwLockReadGuard<'_, ()>>, RwLockReadGuard<'_, ()>) {
        let through = is_through.then(|| self.through_gate.read().unwrap_or_else(PoisonError::into_inner));
        (through, self.gate.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn random(&self, worker: u64) -> Random {
        Random::new(self.seed, worker)
    }

    pub(crate) fn past(&self, setup: &[&str]) -> Client {
        Client::new(self.direct, "postgres", &self.database, setup)
    }

    /// Through freshet, in the mode of the run.
    pub(crate) fn through(&self, setup: &[&str]) -> Client {
        self.through_as("postgres", setup)
    }

    pub(crate) fn through_as(&self, user: &'static str, setup: &[&str]) -> Client {
        let mode = match self.mode {
            Mode::Exact => "SET freshet.freshness = 'exact'",
            Mode::Session => "SET freshet.freshness = 'session'",
            // The whole server's.
            Mode::Standby => "RESET freshet.freshness",
        };
        let setup: Vec<&str> = [mode].into_iter().chain(setup.iter().copied()).collect();
        Client::new(self.through, user, &self.database, &setup)
    }

    pub(crate) fn count(&self, what: &str) {
        self.add(what, 1);
    }

    pub(crate) fn add(&self, what: &str, by: u64) {
        let mut counters = locked(&self.counters);
        match counters.get_mut(what) {
            Some(count) => *count += by,
            None => {
                counters.insert(what.to_string(), by);
            }
        }
    }

    pub(crate) fn counters(&self) -> BTreeMap<String, u64> {
        locked(&self.counters).clone()
    }

    pub(crate) fn counter(&self, what: &str) -> u64 {
        locked(&self.counters).get(what).copied().unwrap_or_default()
    }

    pub(crate) fn violated(&self, kind: Kind, text: String) {
        self.note(&format!("{kind:?}: {text}"));
        self.count(&format!("found {kind:?}"));
        let mut found = locked(&self.found);
        if found.len() < 100 {
            found.push((kind, text));
        }
        if self.stop_at_first {
            self.stop.store(true, SeqCst);
        }
    }

    pub(crate) fn note(&self, text: &str) {
        let line = format!("{:9.3} s  {text}", self.started.elapsed().as_secs_f64());
        if self.is_verbose {
            crate::report::say(&line);
        }
        let mut events = locked(&self.events);
        if events.len() < 20_000 {
            events.push(line);
        }
    }

    /// Something breaks from here on.
    pub(crate) fn break_off(&self) {
        locked(&self.disturbed).0 = true;
    }

    pub(crate) fn calm_down(&self) {
        *locked(&self.disturbed) = (false, Some(Instant::now()));
    }

    /// Whether anything was broken since then.
    pub(crate) fn was_disturbed_since(&self, at: Instant) -> bool {
        let (is_disturbed, ended) = *locked(&self.disturbed);
        is_disturbed || ended.is_some_and(|ended| ended >= at)
    }

    pub(crate) fn note_lateness(&self, age: Duration) {
        let mut longest = locked(&self.lateness);
        *longest = age.max(*longest);
    }

    pub(crate) fn lateness(&self) -> Duration {
        *locked(&self.lateness)
    }

    pub(crate) fn note_age(&self, age: Duration) {
        let bucket = (u64::BITS - (age.as_millis() as u64).leading_zeros()) as usize;
        let mut ages = locked(&self.ages);
        let last = ages.len() - 1;
        ages[bucket.min(last)] += 1;
    }
}

/// The run ends with this, also by a panic: nobody would end the workers.
pub(crate) struct StopAtEnd<'a>(pub(crate) &'a World);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, SeqCst);
    }
}

/// What `freshet.status` says of mode standby.
pub(crate) fn standby_state(through: &mut Client) -> Option<String> {
    let rows = through.run("SELECT name, value FROM freshet.status").ok()?.rows();
    let row = rows.into_iter().find(|row| row[0].as_deref() == Some(b"standby"))?;
    Some(String::from_utf8_lossy(row[1].as_deref().unwrap_or_default()).into_owned())
}

/// Leaves the processors to others for a while: at most `limit_ms`.
pub(crate) fn pause(random: &mut Random, limit_ms: u64) {
    std::thread::sleep(Duration::from_micros(random.below(limit_ms * 1_000)));
}
