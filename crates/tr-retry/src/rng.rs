//! Seeded random numbers: one generator for each request.
use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// The golden ratio in 64 bits, `SplitMix64`'s step.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The random numbers of one request (`SplitMix64`): the same seed and number give the same delays.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The generator for the request `number` under `seed`. Two numbers never share a sequence.
    #[must_use]
    pub const fn new(seed: u64, number: u64) -> Self {
        // Mixed, because generators that start one step apart would produce one shifted sequence.
        Self(mix(seed.wrapping_add(number.wrapping_mul(STEP))))
    }

    /// Uniform in `low..=high`; `low` if that is empty.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let span = u128::from(high.saturating_sub(low)) + 1;
        low + ((u128::from(mix(self.0)) * span) >> 64) as u64
    }
}

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Creates the generators of requests.
#[derive(Debug)]
pub(crate) struct RngSource {
    seed: u64,
    handed_out: AtomicU64,
}

impl RngSource {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, handed_out: AtomicU64::new(0) }
    }

    /// The source for layers without a seed: seeded once for each process.
    pub(crate) fn of_process() -> &'static Self {
        static STREAMS: LazyLock<RngSource> =
            LazyLock::new(|| RngSource::new(RandomState::new().hash_one(STEP)));
        &STREAMS
    }

    pub(crate) fn next_rng(&self) -> Rng {
        Rng::new(self.seed, self.handed_out.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn one_seed_repeats_and_requests_differ() {
        let first = |rngs: &RngSource| -> Vec<_> {
            (0..1_000).map(|_| rngs.next_rng().between(0, u64::MAX)).collect()
        };
        let values = first(&RngSource::new(7));
        assert_eq!(values, first(&RngSource::new(7)));
        assert_eq!(values.iter().collect::<BTreeSet<_>>().len(), 1_000);
    }

    #[test]
    fn streams_are_no_shifts_of_one_another() {
        let long: BTreeSet<_> = {
            let mut one = Rng::new(7, 0);
            (0..10_000).map(|_| one.between(0, u64::MAX)).collect()
        };
        let mut other = Rng::new(7, 1);
        assert!((0..1_000).all(|_| !long.contains(&other.between(0, u64::MAX))));
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut rng = Rng::new(1, 1);
        let seen: BTreeSet<_> = (0..200).map(|_| rng.between(5, 8)).collect();
        assert_eq!(seen, BTreeSet::from([5, 6, 7, 8]));
        assert_eq!((rng.between(9, 9), rng.between(9, 3)), (9, 9));
        rng.between(0, u64::MAX);
    }
}
