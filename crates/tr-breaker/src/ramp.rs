//! Not all calls at once, for a tool that has just recovered.
use std::time::{Duration, Instant};

/// After closing, lets pass a share of the calls that grows with time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ramp {
    since: Instant,
    lasts: Duration,
    /// What the calls so far have saved up; one may pass for each whole.
    credit: f64,
}

/// The share at the beginning.
const FIRST: f64 = 0.1;

impl Ramp {
    pub(crate) const fn new(since: Instant, lasts: Duration) -> Self {
        Self { since, lasts, credit: 0.0 }
    }

    /// Until all calls pass; `None`: they do.
    pub(crate) fn left(&mut self, now: Instant) -> Option<Duration> {
        // A clock that went back must not prolong it.
        self.since = self.since.min(now);
        self.lasts.checked_sub(now.duration_since(self.since)).filter(|left| !left.is_zero())
    }

    /// Whether this call passes. No chance is needed: each saves up its share.
    pub(crate) fn admits(&mut self, now: Instant) -> bool {
        let Some(left) = self.left(now) else { return true };
        let share = 1.0 - left.as_secs_f64() / self.lasts.as_secs_f64();
        self.credit += share.max(FIRST);
        let passes = self.credit >= 1.0;
        self.credit -= f64::from(u8::from(passes));
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_grows_from_a_tenth_to_all() {
        let zero = crate::clock::now();
        let mut ramp = Ramp::new(zero, Duration::from_secs(10));
        for (second, about) in [(0, 100), (1, 100), (5, 500), (9, 900), (10, 1_000)] {
            let now = zero + Duration::from_secs(second);
            let passed = (0..1_000).filter(|_| ramp.admits(now)).count();
            assert!(passed.abs_diff(about) <= 1, "{passed} at {second} s");
            assert_eq!(ramp.left(now).is_none(), second == 10);
        }
    }

    #[test]
    fn a_clock_put_back_starts_it_again_and_no_later() {
        let (zero, lasts) = (crate::clock::now(), Duration::from_secs(10));
        let mut ramp = Ramp::new(zero + Duration::from_secs(1_000), lasts);
        assert_eq!(ramp.left(zero), Some(lasts));
        assert_eq!(ramp.left(zero + lasts), None);
    }
}
