//! How long to leave a Redis alone that is not there.
use std::time::Duration;

/// Longer after each failure, up to a bound, and by chance, so that a fleet does not come back at one moment.
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

    /// It was there.
    pub(crate) const fn reset(&mut self) {
        self.failures = 0;
    }

    /// Between a half and all of what doubles each time: never at once.
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
    fn it_grows_to_its_bound_and_starts_anew() {
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
