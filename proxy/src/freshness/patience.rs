//! Waiting for no longer than so long, many times a second.
//!
//! A new timer that is due before all others makes tokio wake its own event loop, by a write and one turn more; waits that end
//! long before their time is over would pay that each. So timers are used again: one that is still to come is put off
//! to its new time without anybody being told, and fires in vain at most once in each period.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Timers that a thread keeps: as many as usually wait at a time.
const SPARE_MAX: usize = 64;

thread_local! {
    /// Of the event loop that the thread runs.
    static SPARE: RefCell<Vec<Pin<Box<Sleep>>>> = const { RefCell::new(Vec::new()) };
}

/// What the future yields; None if it has not after this time.
pub(super) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let deadline = Instant::now() + limit;
    let mut timer = match SPARE.with_borrow_mut(Vec::pop) {
        Some(mut timer) => {
            timer.as_mut().reset(deadline);
            timer
        }
        None => Box::pin(sleep_until(deadline)),
    };
    let mut future = pin!(future);
    let outcome = tokio::select! {
        biased;
        outcome = &mut future => Some(outcome),
        () = &mut timer => None,
    };
    if outcome.is_some() {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < SPARE_MAX {
                spare.push(timer);
            }
        });
    }
    outcome
}

/// A timer that may fire before it is due, for one who looks again then.
#[derive(Debug)]
pub(super) struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    pub(super) fn new() -> Self {
        Self(Box::pin(sleep_until(Instant::now())))
    }

    /// Returns at `due` or before. Cancel safe.
    pub(super) async fn wait_until(&mut self, due: Instant) {
        if self.0.is_elapsed() || self.0.deadline() > due {
            self.0.as_mut().reset(due);
        }
        self.0.as_mut().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_timer_that_is_used_again_keeps_its_time() {
        let short = Duration::from_millis(20);
        let began = Instant::now();
        for round in 0..5_u32 {
            assert_eq!(within(short, async { round }).await, Some(round));
            assert_eq!(SPARE.with_borrow(Vec::len), 1);
            tokio::time::sleep(short / 2).await;
        }
        // By now the first time is over, but not the last.
        assert!(began.elapsed() > short);
        let began = Instant::now();
        assert_eq!(within(short, std::future::pending::<()>()).await, None);
        assert!(began.elapsed() >= short);
        assert_eq!(SPARE.with_borrow(Vec::len), 0);
        // One whose time went by while nobody used it.
        assert!(within(short, async {}).await.is_some());
        tokio::time::sleep(2 * short).await;
        assert_eq!(within(short, std::future::ready(1)).await, Some(1));
        let began = Instant::now();
        assert_eq!(within(short, std::future::pending::<()>()).await, None);
        assert!(began.elapsed() >= short);
    }

    #[tokio::test]
    async fn an_alarm_is_never_late() {
        let mut alarm = Alarm::new();
        let began = Instant::now();
        let mut turns = 0;
        // What is due moves on, back and on again, as with readers that come and go.
        for (due, seen) in [(400, 30), (20, 15), (300, 40), (60, 60)] {
            let due = began + Duration::from_millis(due);
            let look = began + Duration::from_millis(seen);
            tokio::select! {
                () = alarm.wait_until(due) => turns += 1,
                () = sleep_until(look) => {}
            }
        }
        assert!(turns <= 3);
        let due = Instant::now() + Duration::from_millis(30);
        while Instant::now() < due {
            alarm.wait_until(due).await;
        }
        assert!(due.elapsed() < Duration::from_secs(5));
    }
}
