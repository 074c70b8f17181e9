//! How long the sharing task waits before it connects to Redis again.
use std::time::Duration;

/// Waits that double after each failure up to a bound, with jitter, so that processes do not reconnect all at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    failures: u32,
    chance: fastrand::Rng,
}

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

impl Backoff {
    pub(crate) const fn new(chance: fastrand::Rng) -> Self {
        Self { failures: 0, chance }
    }

    /// Redis has answered.
    pub(crate) const fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next wait: between half of the doubled time and all of it.
    pub(crate) fn next(&mut self) -> Duration {
        let ceiling = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        ceiling.mul_f64(0.5 + self.chance.f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_its_bound_and_is_reset() {
        let mut backoff = Backoff::new(fastrand::Rng::with_seed(7));
        for ceiling in [100, 200, 400, 800, 1_600, 2_000, 2_000] {
            let next = backoff.next().as_millis();
            assert!((ceiling / 2..=ceiling).contains(&next), "{next} of {ceiling}");
        }
        for _ in 0..100 {
            assert!(backoff.next() <= LONGEST);
        }
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
