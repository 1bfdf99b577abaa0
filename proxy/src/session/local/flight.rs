//! One computation for equal misses: who comes while an equal statement is being computed waits for its reply instead.
//!
//! Equal means an equal key, hence equal role, settings, parameters and formats. What the one makes is a kept reply like any
//! other, so whoever waited holds it against the moment of its own. Sessions live on several threads; a channel wakes them.
//!
//! Where the reply turns out to be of no use to who waited (the cache is off, it is too large, its table moves faster than it
//! is computed), waiting again would put equal statements in a queue, each behind a computation that does nothing for
//! it; computing at once, all together, would take the processors and the memory of as many as have come. So for a while
//! ([`UNSHARED_FOR`]) nobody waits for a reply of that key: each computes its own, at most as many at a time as the machine
//! has processors. After that the next one leads again and shows whether it has become worth it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use freshet_engine::result_cache::ResultKey;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout_at};

/// How long a key's replies are not waited for, once one was of no use.
const UNSHARED_FOR: Duration = Duration::from_secs(1);
/// Keys that are remembered for it, and the bytes that they take; beyond, those whose time is over are forgotten.
const UNSHARED_MAX: usize = 1_024;
const UNSHARED_BYTES_MAX: usize = 4 << 20;

/// The computations under way.
#[derive(Debug)]
pub struct Flights {
    keys: Arc<Keys>,
    wait_max: Duration,
    apart: Apart,
}

/// How computations of one key go on, each for itself.
#[derive(Clone, Copy, Debug)]
struct Apart {
    /// At a time.
    at_once: usize,
    lasts: Duration,
}

type Keys = Mutex<HashMap<Box<[u8]>, State>>;

#[derive(Debug)]
enum State {
    /// One is under way; the channel closes when it is over.
    Flying(watch::Receiver<Landing>),
    /// Each computes for itself, with one of these, until then.
    Unshared { gate: Arc<Semaphore>, until: Instant },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Landing {
    /// Still under way; or, once the channel is closed, given up.
    None,
    Kept,
    NotKept,
}

/// What a statement that was not found is to do.
#[derive(Debug)]
pub enum Boarding {
    /// Compute, and tell when that is done.
    Lead(Flight),
    /// Look again: an equal statement has been computed meanwhile.
    Landed,
    /// Compute without anybody waiting for it, and hold the pass meanwhile. None: it has waited long enough.
    Alone(Option<Pass>),
}

/// One of the computations of a key that may run at the same time.
#[derive(Debug)]
pub struct Pass(#[expect(dead_code, reason = "given back when dropped")] OwnedSemaphorePermit);

/// Held by who computes. Dropped without [`Flight::land`], it lets the next one lead.
#[derive(Debug)]
pub struct Flight {
    keys: Arc<Keys>,
    key: Box<[u8]>,
    landing: watch::Sender<Landing>,
    apart: Apart,
}

enum Found {
    Leads(Flight),
    Flying(watch::Receiver<Landing>),
    Unshared(Arc<Semaphore>),
}

impl Flights {
    /// Zero: nobody waits for another.
    pub fn new(wait_max: Duration) -> Self {
        let at_once = std::thread::available_parallelism().map_or(1, usize::from);
        Self { keys: Arc::default(), wait_max, apart: Apart { at_once, lasts: UNSHARED_FOR } }
    }

    /// Waits for an equal statement, if one is being computed.
    pub async fn board(&self, key: &ResultKey) -> Boarding {
        if self.wait_max.is_zero() {
            return Boarding::Alone(None);
        }
        let deadline = Instant::now() + self.wait_max;
        loop {
            let mut landing = match self.find(key) {
                Found::Leads(flight) => return Boarding::Lead(flight),
                Found::Unshared(gate) => return Boarding::Alone(pass(gate, deadline).await),
                Found::Flying(landing) => landing,
            };
            let landed = timeout_at(deadline, landing.wait_for(|landing| *landing != Landing::None)).await;
            match landed.map(|landed| landed.map(|landing| *landing)) {
                Ok(Ok(Landing::Kept)) => return Boarding::Landed,
                // Not kept: there is a gate now. Given up (cancelled, its client has gone, it failed): the next one leads.
                Ok(Ok(Landing::None | Landing::NotKept) | Err(_)) => {}
                Err(_) => return Boarding::Alone(None),
            }
        }
    }

    /// The reply that it has waited for was of no use to it: it goes on alone, and for a while so do others.
    pub async fn go_on(&self, key: &ResultKey) -> Option<Pass> {
        let gate = {
            let mut keys = self.keys.lock();
            match keys.get(key.as_bytes()) {
                Some(State::Unshared { gate, until }) if *until > Instant::now() => Arc::clone(gate),
                // Another leads already, for those who came later; this one has waited its turn.
                Some(State::Flying(_)) => return None,
                Some(State::Unshared { .. }) | None => unshare(&mut keys, key.as_bytes(), self.apart),
            }
        };
        pass(gate, Instant::now() + self.wait_max).await
    }

    /// Without waiting: None if another leads, or nobody is to.
    pub fn lead(&self, key: &ResultKey) -> Option<Flight> {
        match self.find(key) {
            Found::Leads(flight) => Some(flight),
            Found::Flying(_) | Found::Unshared(_) => None,
        }
    }

    fn find(&self, key: &ResultKey) -> Found {
        let mut keys = self.keys.lock();
        match keys.get(key.as_bytes()) {
            Some(State::Flying(landing)) => return Found::Flying(landing.clone()),
            Some(State::Unshared { gate, until }) if *until > Instant::now() => {
                return Found::Unshared(Arc::clone(gate));
            }
            Some(State::Unshared { .. }) | None => {}
        }
        let key: Box<[u8]> = key.as_bytes().into();
        let (landing, receiver) = watch::channel(Landing::None);
        keys.insert(key.clone(), State::Flying(receiver));
        Found::Leads(Flight { keys: Arc::clone(&self.keys), key, landing, apart: self.apart })
    }
}

async fn pass(gate: Arc<Semaphore>, deadline: Instant) -> Option<Pass> {
    timeout_at(deadline, gate.acquire_owned()).await.ok()?.ok().map(Pass)
}

fn unshare(keys: &mut HashMap<Box<[u8]>, State>, key: &[u8], apart: Apart) -> Arc<Semaphore> {
    let now = Instant::now();
    let is_full = |keys: &HashMap<Box<[u8]>, State>| {
        keys.len() >= UNSHARED_MAX || keys.keys().map(|key| key.len()).sum::<usize>() + key.len() > UNSHARED_BYTES_MAX
    };
    if is_full(keys) {
        keys.retain(|_, state| !matches!(state, State::Unshared { until, .. } if *until <= now));
    }
    let gate = Arc::new(Semaphore::new(apart.at_once));
    let state = State::Unshared { gate: Arc::clone(&gate), until: now + apart.lasts };
    // Too many at a time are let go together.
    if !is_full(keys) || keys.contains_key(key) {
        keys.insert(key.into(), state);
    }
    gate
}

/// Whether there is a reply for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Kept,
    NotKept,
}

impl Flight {
    /// It is done: who waited looks at what is kept, or computes its own.
    pub fn land(self, outcome: Outcome) {
        let mut keys = self.keys.lock();
        // Not found any more by the time that anybody is woken.
        keys.remove(&self.key);
        let landing = match outcome {
            Outcome::Kept => Landing::Kept,
            Outcome::NotKept => {
                unshare(&mut keys, &self.key, self.apart);
                Landing::NotKept
            }
        };
        drop(keys);
        self.landing.send_replace(landing);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut keys = self.keys.lock();
        // Another may have the key since this one has landed.
        let is_own =
            |state: &State| matches!(state, State::Flying(landing) if landing.same_channel(&self.landing.subscribe()));
        if keys.get(&self.key).is_some_and(is_own) {
            keys.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;

    use freshet_engine::result_cache::KeyParts;

    use super::*;

    fn key(sql: &str) -> ResultKey {
        let mut key = ResultKey::default();
        key.set(&KeyParts { sql: sql.as_bytes(), ..KeyParts::default() });
        key
    }

    async fn lead(flights: &Flights, sql: &str) -> Flight {
        match flights.board(&key(sql)).await {
            Boarding::Lead(flight) => flight,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[tokio::test]
    async fn an_equal_statement_waits_and_another_does_not() {
        let flights = Arc::new(Flights::new(Duration::from_secs(20)));
        let first = lead(&flights, "SELECT 1").await;
        let other = lead(&flights, "SELECT 2").await;
        // On a thread with an event loop of its own, as sessions are.
        let waiting = Arc::clone(&flights);
        let waiter = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async { matches!(waiting.board(&key("SELECT 1")).await, Boarding::Landed) })
        });
        first.land(Outcome::Kept);
        // Whether it came before or after the landing: if after, it leads itself.
        let landed = waiter.join().expect("no panic");
        drop(other);
        assert!(flights.keys.lock().is_empty(), "{landed}");
    }

    #[tokio::test]
    async fn waiters_are_told_when_it_is_done_and_lead_when_it_is_given_up() {
        let flights = Arc::new(Flights::new(Duration::from_secs(20)));
        let first = lead(&flights, "SELECT 1").await;
        let board = |flights: Arc<Flights>| async move { flights.board(&key("SELECT 1")).await };
        let mut waiters: Vec<_> = (0..3).map(|_| tokio::spawn(board(Arc::clone(&flights)))).collect();
        tokio::task::yield_now().await;
        first.land(Outcome::Kept);
        for waiter in waiters.drain(..) {
            assert!(matches!(waiter.await.expect("no panic"), Boarding::Landed));
        }
        let cancelled = lead(&flights, "SELECT 1").await;
        let waiter = tokio::spawn(board(Arc::clone(&flights)));
        tokio::task::yield_now().await;
        drop(cancelled);
        let Boarding::Lead(next) = waiter.await.expect("no panic") else { panic!("the next one leads") };
        drop(next);
        assert!(flights.keys.lock().is_empty());
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let flights = Flights::new(Duration::from_millis(20));
        let _first = lead(&flights, "SELECT 1").await;
        assert!(matches!(flights.board(&key("SELECT 1")).await, Boarding::Alone(None)));
        assert!(matches!(Flights::new(Duration::ZERO).board(&key("SELECT 1")).await, Boarding::Alone(None)));
    }

    #[tokio::test]
    async fn a_reply_that_is_not_kept_lets_some_at_a_time_compute() {
        let mut flights = Flights::new(Duration::from_secs(20));
        flights.apart.at_once = 2;
        let flights = Arc::new(flights);
        let first = lead(&flights, "SELECT 1").await;
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let compute = || {
            let (flights, running, most) = (Arc::clone(&flights), Arc::clone(&running), Arc::clone(&most));
            tokio::spawn(async move {
                let Boarding::Alone(Some(_pass)) = flights.board(&key("SELECT 1")).await else {
                    panic!("nobody leads, nobody waits for another's reply")
                };
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                tokio::task::yield_now().await;
                running.fetch_sub(1, SeqCst);
            })
        };
        let mut waiters: Vec<_> = (0..10).map(|_| compute()).collect();
        tokio::task::yield_now().await;
        assert_eq!(most.load(SeqCst), 0, "all wait for the first");
        first.land(Outcome::NotKept);
        waiters.extend((0..10).map(|_| compute()));
        for waiter in waiters {
            waiter.await.expect("no panic");
        }
        assert_eq!(most.load(SeqCst), 2);
        // Of other keys nothing is said.
        lead(&flights, "SELECT 2").await.land(Outcome::Kept);
        assert!(flights.lead(&key("SELECT 1")).is_none());
    }

    #[tokio::test]
    async fn after_a_while_one_leads_again() {
        let mut flights = Flights::new(Duration::from_secs(20));
        lead(&flights, "SELECT 1").await.land(Outcome::NotKept);
        assert!(matches!(flights.board(&key("SELECT 1")).await, Boarding::Alone(Some(_))));
        flights.apart.lasts = Duration::from_millis(20);
        lead(&flights, "SELECT 2").await.land(Outcome::NotKept);
        tokio::time::sleep(2 * flights.apart.lasts).await;
        lead(&flights, "SELECT 2").await.land(Outcome::Kept);
        flights.apart.lasts = UNSHARED_FOR;
        lead(&flights, "SELECT 3").await.land(Outcome::Kept);
        // Kept, but it was of no use to who waited.
        assert!(flights.go_on(&key("SELECT 3")).await.is_some());
        assert!(matches!(flights.board(&key("SELECT 3")).await, Boarding::Alone(Some(_))));
    }

    #[tokio::test]
    async fn keys_that_are_not_shared_are_bounded() {
        let flights = Flights::new(Duration::from_secs(20));
        for n in 0..2 * UNSHARED_MAX {
            lead(&flights, &n.to_string()).await.land(Outcome::NotKept);
        }
        assert!(flights.keys.lock().len() <= UNSHARED_MAX);
    }
}
