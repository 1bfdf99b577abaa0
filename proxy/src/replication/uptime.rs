//! [`Uptime`]: a clock that goes on while the machine is suspended.

use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A point in time by CLOCK_BOOTTIME: what was confirmed before the machine slept is old when it wakes up. For
/// [`std::time::Instant`], which is CLOCK_MONOTONIC, no time has passed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(Duration);

impl Uptime {
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Self(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default()))
    }

    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

impl Add<Duration> for Uptime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn it_goes_at_least_as_fast_as_the_clock_that_stands_still_now_and_then() {
        let (begun, since) = (Uptime::now(), Instant::now());
        while since.elapsed() < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
        assert!(begun.elapsed() >= Duration::from_millis(5));
        assert!(Uptime::now() > begun && begun + Duration::from_secs(3600) > Uptime::now());
        assert_eq!((begun + Duration::from_secs(3600)).elapsed(), Duration::ZERO);
    }
}
