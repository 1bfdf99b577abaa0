//! One computation for equal misses: who comes while an equal statement is being computed waits for its reply instead.
//!
//! Equal means an equal key, hence equal role, settings, parameters and formats. What the one makes is a kept reply like any
//! other, so whoever waited holds it against the moment of its own. Sessions live on several threads; a channel wakes them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use freshet_engine::result_cache::ResultKey;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// The computations under way.
#[derive(Debug)]
pub struct Flights {
    running: Arc<Running>,
    wait_max: Duration,
}

/// By key; the channel closes when the flight is over.
type Running = Mutex<HashMap<Box<[u8]>, watch::Receiver<Landing>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Landing {
    /// Still under way; or, once the channel is closed, given up.
    None,
    /// The reply is kept, if it can be.
    Done,
}

/// What a statement that was not found is to do.
#[derive(Debug)]
pub enum Boarding {
    /// Compute, and tell when that is done.
    Lead(Flight),
    /// Look again: an equal statement has been computed meanwhile.
    Landed,
    /// Compute without anybody knowing: it has waited long enough.
    Alone,
}

/// Held by who computes. Dropped without [`Flight::land`], it lets the next one lead.
#[derive(Debug)]
pub struct Flight {
    running: Arc<Running>,
    key: Box<[u8]>,
    landing: watch::Sender<Landing>,
}

impl Flights {
    /// Zero: nobody waits for another.
    pub fn new(wait_max: Duration) -> Self {
        Self { running: Arc::default(), wait_max }
    }

    /// Waits for an equal statement, if one is being computed.
    pub async fn board(&self, key: &ResultKey) -> Boarding {
        if self.wait_max.is_zero() {
            return Boarding::Alone;
        }
        let deadline = Instant::now() + self.wait_max;
        loop {
            let mut landing = match self.find_or_lead(key) {
                Ok(flight) => return Boarding::Lead(flight),
                Err(landing) => landing,
            };
            match timeout_at(deadline, landing.wait_for(|landing| *landing == Landing::Done)).await {
                Ok(Ok(_)) => return Boarding::Landed,
                // Given up: cancelled, or its client has gone, or it failed.
                Ok(Err(_)) => {}
                Err(_) => return Boarding::Alone,
            }
        }
    }

    /// Without waiting: None if another leads.
    pub fn lead(&self, key: &ResultKey) -> Option<Flight> {
        self.find_or_lead(key).ok()
    }

    fn find_or_lead(&self, key: &ResultKey) -> Result<Flight, watch::Receiver<Landing>> {
        let mut running = self.running.lock();
        if let Some(landing) = running.get(key.as_bytes()) {
            return Err(landing.clone());
        }
        let key: Box<[u8]> = key.as_bytes().into();
        let (landing, receiver) = watch::channel(Landing::None);
        running.insert(key.clone(), receiver);
        Ok(Flight { running: Arc::clone(&self.running), key, landing })
    }
}

impl Flight {
    /// The reply is kept, or cannot be: who waited looks, and does not wait again.
    pub fn land(self) {
        // Not found any more by the time that anybody is woken.
        self.running.lock().remove(&self.key);
        self.landing.send_replace(Landing::Done);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        // Another may have the key since this one has landed.
        if running.get(&self.key).is_some_and(|landing| landing.same_channel(&self.landing.subscribe())) {
            running.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
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
        first.land();
        // Whether it came before or after the landing: if after, it leads itself.
        let landed = waiter.join().expect("no panic");
        drop(other);
        assert!(flights.running.lock().is_empty(), "{landed}");
    }

    #[tokio::test]
    async fn waiters_are_told_when_it_is_done_and_lead_when_it_is_given_up() {
        let flights = Arc::new(Flights::new(Duration::from_secs(20)));
        let first = lead(&flights, "SELECT 1").await;
        let board = |flights: Arc<Flights>| async move { flights.board(&key("SELECT 1")).await };
        let mut waiters: Vec<_> = (0..3).map(|_| tokio::spawn(board(Arc::clone(&flights)))).collect();
        tokio::task::yield_now().await;
        first.land();
        for waiter in waiters.drain(..) {
            assert!(matches!(waiter.await.expect("no panic"), Boarding::Landed));
        }
        let cancelled = lead(&flights, "SELECT 1").await;
        let waiter = tokio::spawn(board(Arc::clone(&flights)));
        tokio::task::yield_now().await;
        drop(cancelled);
        let Boarding::Lead(next) = waiter.await.expect("no panic") else { panic!("the next one leads") };
        drop(next);
        assert!(flights.running.lock().is_empty());
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let flights = Flights::new(Duration::from_millis(20));
        let _first = lead(&flights, "SELECT 1").await;
        assert!(matches!(flights.board(&key("SELECT 1")).await, Boarding::Alone));
        assert!(matches!(Flights::new(Duration::ZERO).board(&key("SELECT 1")).await, Boarding::Alone));
    }
}
