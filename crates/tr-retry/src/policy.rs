//! How often, how long, and what: numbers only.
use crate::chance::Stream;
use std::{sync::Arc, time::Duration};
use tr_core::RetryOverride;

/// How often a call is tried, how long is waited between attempts, and what is retried.
///
/// Fields are added in minor versions: start from a preset and change what differs.
///
/// ```
/// use std::time::Duration;
/// use tr_retry::Policy;
///
/// let mut policy = Policy::tool_reliability();
/// policy.attempts = 3;
/// assert_eq!(policy.ceiling(1), Duration::from_millis(400));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Policy {
    /// Attempts in all, the first included; 1 to 1,000.
    pub attempts: u32,
    /// Ceiling of the first delay; 1 ms to 24 h.
    pub base: Duration,
    /// By what each further ceiling grows; 1 to 100.
    pub multiplier: f64,
    /// No delay is longer than this; at least `base`.
    pub cap: Option<Duration>,
    /// The delay is drawn uniformly between these shares of its ceiling, and never above the
    /// cap; `(0.0, 1.0)` is full jitter, `(0.9, 1.1)` is ±10 %. Up to 10.
    pub jitter: (f64, f64),
    /// From where a delay is counted.
    pub anchor: Anchor,
    /// No attempt starts later than this after the first; at least 1 ms.
    pub max_elapsed: Option<Duration>,
    /// Only failures with these codes are retried; `None` means all that are transient.
    pub only_codes: Option<Arc<[Box<str>]>>,
}

/// Nobody gets more attempts than this, whoever asks for them.
pub(crate) const MOST_ATTEMPTS: u32 = 1_000;

/// From where a delay is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Anchor {
    /// From the start of the attempt that failed: a slow attempt has waited already.
    AttemptStart,
    /// From its end.
    AttemptEnd,
}

impl Policy {
    /// 4 attempts, delays drawn from 0 up to 200, 400, 800 ms (never above 4 s), counted from the
    /// end of an attempt; no attempt starts later than 30 s after the first. The default.
    #[must_use]
    pub const fn tool_reliability() -> Self {
        Self {
            attempts: 4,
            base: Duration::from_millis(200),
            multiplier: 2.0,
            cap: Some(Duration::from_secs(4)),
            jitter: (0.0, 1.0),
            anchor: Anchor::AttemptEnd,
            max_elapsed: Some(Duration::from_secs(30)),
            only_codes: None,
        }
    }

    /// 5 attempts, delays of 100, 200, 400, 800 ms ±10 %, counted from the start of an attempt.
    #[must_use]
    pub const fn error_handling() -> Self {
        Self {
            attempts: 5,
            base: Duration::from_millis(100),
            multiplier: 2.0,
            cap: None,
            jitter: (0.9, 1.1),
            anchor: Anchor::AttemptStart,
            max_elapsed: None,
            only_codes: None,
        }
    }

    /// 3 attempts, delays of 100, 200 ms ±20 % (never above 5 s), counted from the end of an
    /// attempt.
    #[must_use]
    pub const fn utee() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_millis(100),
            multiplier: 2.0,
            cap: Some(Duration::from_secs(5)),
            jitter: (0.8, 1.2),
            anchor: Anchor::AttemptEnd,
            max_elapsed: None,
            only_codes: None,
        }
    }

    /// Takes over what `changes` says.
    pub fn apply(&mut self, changes: &RetryOverride) {
        let RetryOverride { attempts, base, multiplier, cap, jitter, max_elapsed, only_codes } =
            changes;
        self.attempts = attempts.unwrap_or(self.attempts);
        self.base = base.unwrap_or(self.base);
        self.multiplier = multiplier.unwrap_or(self.multiplier);
        self.cap = cap.or(self.cap);
        self.jitter = jitter.unwrap_or(self.jitter);
        self.max_elapsed = max_elapsed.or(self.max_elapsed);
        if let Some(codes) = only_codes {
            self.only_codes = (!codes.is_empty()).then(|| codes.iter().cloned().collect());
        }
    }

    /// The ceiling of the delay after the failed attempt `n`, from 0. Never shrinks as `n` grows.
    #[must_use]
    pub fn ceiling(&self, n: u32) -> Duration {
        let growth = self.multiplier.max(1.0).powi(i32::try_from(n).unwrap_or(i32::MAX));
        let ceiling = Duration::from_nanos(scaled(nanos(self.base), growth));
        self.cap.map_or(ceiling, |cap| ceiling.min(cap))
    }

    /// Nanoseconds to wait after the failed attempt `n`.
    pub(crate) fn draw(&self, n: u32, stream: &mut Stream) -> u64 {
        let ceiling = nanos(self.ceiling(n));
        let cap = self.cap.map_or(u64::MAX, nanos);
        let share = |share| scaled(ceiling, share).min(cap);
        stream.between(share(self.jitter.0), share(self.jitter.1))
    }

    pub(crate) fn allows_code(&self, code: &str) -> bool {
        self.only_codes.as_deref().is_none_or(|codes| codes.iter().any(|one| **one == *code))
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::tool_reliability()
    }
}

/// Nanoseconds; what 64 bits cannot hold is 584 years and means "never".
pub(crate) const fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos() as u64)
}

/// A cast saturates and takes a NaN for nothing, so any numbers give some delay.
fn scaled(nanos: u64, by: f64) -> u64 {
    (nanos as f64 * by) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceilings(policy: &Policy) -> Vec<u128> {
        (0..policy.attempts - 1).map(|n| policy.ceiling(n).as_millis()).collect()
    }

    #[test]
    fn ceilings_of_the_presets() {
        assert_eq!(ceilings(&Policy::tool_reliability()), [200, 400, 800]);
        assert_eq!(ceilings(&Policy::error_handling()), [100, 200, 400, 800]);
        assert_eq!(ceilings(&Policy::utee()), [100, 200]);
        assert_eq!(Policy::tool_reliability().ceiling(9), Duration::from_secs(4));
        assert_eq!(Policy::utee().ceiling(u32::MAX), Duration::from_secs(5));
        assert_eq!(Policy::error_handling().ceiling(u32::MAX), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn at_the_cap_jitter_stays_below_it_and_alive() {
        let mut stream = Stream::new(1, 0);
        let draws: Vec<_> = (0..100).map(|_| Policy::utee().draw(30, &mut stream)).collect();
        assert!(draws.iter().all(|ns| (4_000_000_000..=5_000_000_000).contains(ns)));
        assert!(draws.iter().filter(|ns| **ns == 5_000_000_000).count() < 2);
    }

    #[test]
    fn an_empty_list_of_codes_means_all() {
        let mut policy = Policy::utee();
        let only = |codes: &[&str]| RetryOverride {
            only_codes: Some(codes.iter().map(|code| Box::from(*code)).collect()),
            ..RetryOverride::default()
        };
        policy.apply(&only(&["busy"]));
        assert_eq!((policy.allows_code("busy"), policy.allows_code("down")), (true, false));
        policy.apply(&only(&[]));
        assert_eq!(policy, Policy::utee());
    }
}
