//! The validated settings of a breaker, and values derived from them.
use std::{
    hash::{BuildHasher, RandomState},
    ops::RangeInclusive,
    time::Duration,
};
use tr_policy::{BreakerOrder, BreakerOverride, Effect};

/// What may be counted. The window keeps a note of each failure, so this bounds its memory.
pub(crate) const COUNTS: RangeInclusive<u32> = 1..=10_000;

/// What may be waited for: long enough to be a time, short enough never to overflow a clock.
pub(crate) const TIMES: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(365 * 24 * 60 * 60);

/// In place of a rolling time: nothing is too old. Still short enough for a clock.
pub(crate) const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Whether it is a share that can be reached and is not always reached.
pub(crate) fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate <= 1.0
}

/// Whether a breaker applies its decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Mode {
    /// Refuses calls.
    #[default]
    Enforce,
    /// Decides and reports, and admits every call. A call that it would have refused is not counted, so
    /// that it decides as if the call had been refused.
    Shadow,
    /// Counts nothing, refuses nothing, reports nothing.
    Disabled,
}

/// When a closed breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rules {
    /// Failures in a row.
    pub(crate) consecutive: Option<u32>,
    /// The share of failures among the calls of the window.
    pub(crate) rate: Option<f64>,
    pub(crate) cooldown: Duration,
}

/// The duration above which a call is slow, and the share of slow calls that opens the breaker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slow {
    pub(crate) longer_than: Duration,
    pub(crate) rate: f64,
}

/// What a call may declare, in the order of the thresholds for it.
pub(crate) const EFFECTS: [Option<Effect>; 4] =
    [Some(Effect::ReadOnly), Some(Effect::Idempotent), Some(Effect::Mutating), None];

/// The settings of one breaker. Made by `Builder::build`, which checks them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// In the order of [`EFFECTS`].
    pub(crate) rules: [Rules; EFFECTS.len()],
    /// The rates look at this many calls at most,
    pub(crate) window: u32,
    /// at this many at least,
    pub(crate) min_calls: u32,
    /// and at none that is older.
    pub(crate) rolling: Duration,
    pub(crate) slow: Option<Slow>,
    /// Probes in flight at once.
    pub(crate) max_probes: u32,
    /// Probes that must succeed for it to close.
    pub(crate) successes_to_close: u32,
    /// After which a probe counts as hung; the cooldown where it is `None`.
    pub(crate) probe_lease: Option<Duration>,
    pub(crate) jitter: Option<Jitter>,
    /// How long after closing not all calls pass.
    pub(crate) ramp: Option<Duration>,
    pub(crate) count_rate_limits: bool,
    pub(crate) mode: Mode,
    pub(crate) force_open: bool,
    pub(crate) derived: Derived,
}

/// What follows from the others, computed once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Derived {
    /// No rule asks how old a success is, or how long it took.
    pub(crate) is_timeless: bool,
    /// As fine as the age of a success is known: a sixteenth of the rolling time.
    pub(crate) lap: Duration,
    /// The calls that any rule may look at.
    pub(crate) keep: u32,
    /// No breaker stays open for longer.
    pub(crate) longest_cooldown: Duration,
    /// With fewer failures and slow calls than these in the window, no number of successes brings any
    /// rate to its threshold.
    pub(crate) to_watch: (u32, u32),
}

impl Settings {
    /// The thresholds for a call that declares this effect, or none.
    pub(crate) fn rules(&self, effect: Option<Effect>) -> &Rules {
        &self.rules[effect.map_or(3, |effect| effect as usize)]
    }

    fn longest_cooldown(&self) -> Duration {
        let longest = self.rules.iter().map(|rules| rules.cooldown).max().unwrap_or_default();
        longest + longest.mul_f64(self.jitter.map_or(0.0, |jitter| jitter.share))
    }

    pub(crate) fn lease(&self, effect: Option<Effect>) -> Duration {
        self.probe_lease.unwrap_or(self.rules(effect).cooldown)
    }

    /// These settings, with what follows from them.
    pub(crate) fn derive(mut self) -> Self {
        let has_rate = self.rules.iter().any(|rules| rules.rate.is_some());
        let runs = self.rules.iter().filter_map(|rules| rules.consecutive);
        let failures = self.rules.iter().filter_map(|rules| Some(self.least(rules.rate?))).min();
        let slow = self.slow.map(|slow| self.least(slow.rate));
        self.derived = Derived {
            is_timeless: self.slow.is_none() && (self.rolling == FOREVER || !has_rate),
            lap: (self.rolling / 16).max(Duration::from_nanos(1)),
            longest_cooldown: self.longest_cooldown(),
            keep: runs.fold(self.window, u32::max),
            to_watch: (failures.unwrap_or(u32::MAX), slow.unwrap_or(u32::MAX)),
        };
        self
    }

    /// The least number of bad calls that makes `rate` of the least number of calls.
    fn least(&self, rate: f64) -> u32 {
        let reaches = |bad: &u32| f64::from(*bad) / f64::from(self.min_calls) >= rate;
        (1..self.min_calls).find(reaches).unwrap_or(self.min_calls)
    }

    /// For the breaker of what a tool reaches: whether it decides, the tool's breaker says.
    pub(crate) fn of_target(&self) -> Self {
        Self { mode: Mode::Enforce, force_open: false, ..self.clone() }
    }

    /// These settings with a manifest's changes, but for those that are out of range: a breaker
    /// that opens without a failure or never closes would be useless.
    pub(crate) fn with(&self, change: BreakerOverride) -> Self {
        let mut valid = change;
        valid.consecutive = change.consecutive.filter(|n| COUNTS.contains(n));
        valid.failure_rate = change.failure_rate.filter(|rate| is_rate(*rate));
        valid.cooldown = change.cooldown.filter(|cooldown| TIMES.contains(cooldown));
        let mut settings = self.clone();
        for rules in &mut settings.rules {
            rules.apply(valid);
        }
        match change.order {
            // In the layer's mode, which may refuse no call.
            Some(BreakerOrder::ForcedOpen) => {
                settings.force_open = true;
                if settings.mode == Mode::Disabled {
                    settings.mode = Mode::Enforce;
                }
            }
            Some(BreakerOrder::Disabled) => {
                (settings.mode, settings.force_open) = (Mode::Disabled, false);
            }
            Some(BreakerOrder::Shadow) => {
                (settings.mode, settings.force_open) = (Mode::Shadow, false);
            }
            _ => {}
        }
        settings.derive()
    }
}

impl Rules {
    pub(crate) fn apply(&mut self, change: BreakerOverride) {
        self.consecutive = change.consecutive.or(self.consecutive);
        self.rate = change.failure_rate.or(self.rate);
        self.cooldown = change.cooldown.unwrap_or(self.cooldown);
    }
}

/// Makes each cooldown longer by a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Jitter {
    /// By at most this share.
    pub(crate) share: f64,
    pub(crate) seed: u64,
}

impl Jitter {
    /// The cooldown of the breaker of this salt that opens after so many steps: the same for the
    /// same seed.
    pub(crate) fn lengthen(self, cooldown: Duration, salt: u16, steps: u32) -> Duration {
        let drawn = mix(mix(self.seed ^ u64::from(steps)) ^ u64::from(salt));
        // 53 bits: as many as a share can tell apart.
        let part = (drawn >> 11) as f64 / (1_u64 << 53) as f64;
        cooldown + cooldown.mul_f64(self.share * part)
    }
}

/// The salt of the breaker of this name: the same in each process.
pub(crate) fn salt_of(name: &str) -> u16 {
    name.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte))) as u16
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
            let salt = |n| salt_of(&format!("tool {n}"));
            let each = |n: u32| jitter.lengthen(SECOND, salt(n), n / 7).as_secs_f64();
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
