//! Cooldowns that differ, so that breakers that opened together do not probe together.
use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Makes each cooldown longer by a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Jitter {
    /// By at most this share.
    pub(crate) share: f64,
    pub(crate) seed: u64,
}

impl Jitter {
    /// The cooldown of the breaker of this name that opens after so many steps: the same for the
    /// same seed.
    pub(crate) fn lengthen(self, cooldown: Duration, name: &str, steps: u32) -> Duration {
        let start = mix(self.seed ^ u64::from(steps));
        let drawn = name.bytes().fold(start, |hash, byte| mix(hash ^ u64::from(byte)));
        // 53 bits: as many as a share can tell apart.
        let part = (drawn >> 11) as f64 / (1_u64 << 53) as f64;
        cooldown + cooldown.mul_f64(self.share * part)
    }
}

/// A seed that no other process has.
pub(crate) fn own_seed() -> u64 {
    RandomState::new().hash_one(())
}

/// `SplitMix64`'s next.
const fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn cooldowns_spread_over_the_share_and_a_seed_repeats_them() {
        let draw = |seed| {
            let jitter = Jitter { share: 0.2, seed };
            let each = |n: u32| jitter.lengthen(SECOND, &format!("tool {n}"), n / 7).as_secs_f64();
            (0..1_000).map(each).collect::<Vec<_>>()
        };
        let drawn = draw(1);
        assert_eq!(drawn, draw(1));
        assert_ne!(drawn, draw(2));
        assert!(drawn.iter().all(|seconds| (1.0..1.2).contains(seconds)));
        let mean = drawn.iter().sum::<f64>() / 1_000.0;
        assert!((1.09..1.11).contains(&mean), "{mean}");
    }
}
