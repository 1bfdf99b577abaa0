//! [`Seats`]: sessions that mostly wait for barriers live on the event loop that the barrier runs on. Elsewhere each wait wakes
//! two threads more, which costs a fifth of what such an answer costs in all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::runtime::Handle;

/// As many as one thread serves well; with more, other threads have processors to give that are worth the waking.
const SEATS: usize = 16;

/// The places beside the barrier.
#[derive(Debug)]
pub struct Seats {
    event_loop: Handle,
    taken: AtomicUsize,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Seat(Arc<Seats>);

impl Seats {
    pub(super) fn new(event_loop: Handle) -> Arc<Self> {
        Arc::new(Self { event_loop, taken: AtomicUsize::new(0) })
    }

    /// A free one, for a session that is elsewhere.
    pub fn take(self: &Arc<Self>) -> Option<Seat> {
        if Handle::current().id() == self.event_loop.id() {
            return None;
        }
        let more = |taken: usize| (taken < SEATS).then_some(taken + 1);
        self.taken.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Seat(Arc::clone(self)))
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }
}

impl Seat {
    pub fn event_loop(&self) -> &Handle {
        &self.0.event_loop
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_limited_given_back_and_for_those_elsewhere() {
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (here, there) = (runtime(), runtime());
        let seats = Seats::new(there.handle().clone());
        there.block_on(async { assert!(seats.take().is_none()) });
        here.block_on(async {
            let mut taken: Vec<Seat> = std::iter::from_fn(|| seats.take()).collect();
            assert_eq!(taken.len(), SEATS);
            taken.pop();
            assert!(seats.take().is_some() && seats.take().is_some(), "given back at once");
        });
        assert_eq!(seats.taken(), 0);
    }
}
