//! How many attempts, how long to wait between them, and which failures to retry.
use crate::rng::Rng;
use std::{sync::Arc, time::Duration};
use tr_policy::{RetryOverride, internal::Faults};

/// How many attempts a call gets, how long the delays between them are, and which failures are
/// retried.
///
/// Minor versions may add fields: start from a preset and change what differs.
///
/// ```
/// use std::time::Duration;
/// use tr_retry::RetryConfig;
///
/// let mut config = RetryConfig::default();
/// config.attempts = 3;
/// assert_eq!(config.ceiling(1), Duration::from_millis(400));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryConfig {
    /// Attempts in all, the first included; 1 to 1,000.
    pub attempts: u32,
    /// Ceiling of the first delay; 1 ms to 24 h.
    pub base: Duration,
    /// Factor from one ceiling to the next; 1 to 100.
    pub multiplier: f64,
    /// No delay is longer than this; at least `base`.
    pub cap: Option<Duration>,
    /// The delay is drawn uniformly between these shares of its ceiling, and never above the
    /// cap; `(0.0, 1.0)` is full jitter, `(0.9, 1.1)` is ±10 %. Up to 10.
    pub jitter: (f64, f64),
    /// Whether a delay counts from the start or from the end of the failed attempt.
    pub anchor: Anchor,
    /// No attempt starts later than this after the first; at least 1 ms.
    pub max_elapsed: Option<Duration>,
    /// Only failures with these codes are retried; `None` means all that are transient.
    pub only_codes: Option<Arc<[Box<str>]>>,
}

/// The upper bound for `attempts`, whether a builder, a manifest or a call sets it.
pub(crate) const MOST_ATTEMPTS: u32 = 1_000;

const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The point in time from which a delay counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Anchor {
    /// The start of the failed attempt: the time it took is part of the delay.
    AttemptStart,
    /// The end of the failed attempt.
    AttemptEnd,
}

impl RetryConfig {
    /// What [`Default`] returns, as a constant.
    pub(crate) const DEFAULT: Self = Self {
        attempts: 4,
        base: Duration::from_millis(200),
        multiplier: 2.0,
        cap: Some(Duration::from_secs(4)),
        jitter: (0.0, 1.0),
        anchor: Anchor::AttemptEnd,
        max_elapsed: Some(Duration::from_secs(30)),
        only_codes: None,
    };

    /// 5 attempts, delays of 100, 200, 400, 800 ms ±10 %, counted from the start of an attempt: a
    /// slow attempt shortens the delay after it, so attempts start at a steady rate.
    #[must_use]
    pub const fn fixed_cadence() -> Self {
        Self {
            attempts: 5,
            base: Duration::from_millis(100),
            cap: None,
            jitter: (0.9, 1.1),
            anchor: Anchor::AttemptStart,
            max_elapsed: None,
            ..Self::DEFAULT
        }
    }

    /// 3 attempts, delays of 100, 200 ms ±20 % (never above 5 s), counted from the end of an
    /// attempt: the defaults of an envelope whose requests change them one by one.
    #[must_use]
    pub const fn per_request() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_millis(100),
            cap: Some(Duration::from_secs(5)),
            jitter: (0.8, 1.2),
            max_elapsed: None,
            ..Self::DEFAULT
        }
    }

    /// Applies the fields that `changes` sets.
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
            self.only_codes = any_of(codes.iter().cloned());
        }
    }

    /// Reports what is out of range; `scope` prefixes the names of the settings.
    pub(crate) fn check(&self, scope: &str, faults: &mut Faults) {
        let RetryConfig { attempts, base, multiplier, cap, jitter: (low, high), .. } = *self;
        faults.range(format_args!("{scope}attempts"), attempts, 1..=MOST_ATTEMPTS);
        let mut check = |setting: &str, value: String, holds, allowed: &str| {
            faults.check(format_args!("{scope}{setting}"), value, holds, allowed);
        };
        check("base", format!("{base:?}"), (MILLISECOND..=DAY).contains(&base), "1ms to 24h");
        let multiplier_holds = (1.0..=100.0).contains(&multiplier);
        check("multiplier", multiplier.to_string(), multiplier_holds, "1 to 100");
        if let Some(cap) = cap {
            check("cap", format!("{cap:?}"), cap >= base, "`base` or more");
        }
        let jitter_holds = 0.0 <= low && low <= high && high <= 10.0;
        check("jitter", format!("({low}, {high})"), jitter_holds, "0 to 10, the lower share first");
        if let Some(most) = self.max_elapsed {
            check("max_elapsed", format!("{most:?}"), most >= MILLISECOND, "1ms or more");
        }
        if let Some(codes) = &self.only_codes {
            let holds = !codes.is_empty() && codes.iter().all(|code| !code.is_empty());
            check(
                "only_codes",
                format!("{codes:?}"),
                holds,
                "one code or more, none of them empty",
            );
        }
    }

    /// The ceiling of the delay after the failed attempt `n` (the first is 0). Never shrinks as `n`
    /// grows.
    #[must_use]
    pub fn ceiling(&self, n: u32) -> Duration {
        let growth = self.multiplier.max(1.0).powi(i32::try_from(n).unwrap_or(i32::MAX));
        let ceiling = Duration::from_nanos(scaled(nanos(self.base), growth));
        self.cap.map_or(ceiling, |cap| ceiling.min(cap))
    }

    /// Nanoseconds to wait after the failed attempt `n`.
    pub(crate) fn draw(&self, n: u32, rng: &mut Rng) -> u64 {
        let ceiling = nanos(self.ceiling(n));
        let cap = self.cap.map_or(u64::MAX, nanos);
        let share = |share| scaled(ceiling, share).min(cap);
        rng.between(share(self.jitter.0), share(self.jitter.1))
    }

    pub(crate) fn allows_code(&self, code: &str) -> bool {
        self.only_codes.as_deref().is_none_or(|codes| codes.iter().any(|one| **one == *code))
    }
}

impl Default for RetryConfig {
    /// 4 attempts, delays drawn from 0 up to 200, 400, 800 ms (never above 4 s), counted from the
    /// end of an attempt; no attempt starts later than 30 s after the first.
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The codes that are retried; none of them means all.
pub(crate) fn any_of(codes: impl IntoIterator<Item = Box<str>>) -> Option<Arc<[Box<str>]>> {
    let codes: Arc<[_]> = codes.into_iter().collect();
    (!codes.is_empty()).then_some(codes)
}

/// Nanoseconds; saturates at 584 years, which means "never".
pub(crate) const fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos() as u64)
}

/// Never fails: the cast saturates, and NaN becomes 0.
fn scaled(nanos: u64, by: f64) -> u64 {
    (nanos as f64 * by) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceilings(config: &RetryConfig) -> Vec<u128> {
        (0..config.attempts - 1).map(|n| config.ceiling(n).as_millis()).collect()
    }

    #[test]
    fn ceilings_of_the_presets() {
        assert_eq!(ceilings(&RetryConfig::default()), [200, 400, 800]);
        assert_eq!(ceilings(&RetryConfig::fixed_cadence()), [100, 200, 400, 800]);
        assert_eq!(ceilings(&RetryConfig::per_request()), [100, 200]);
        assert_eq!(RetryConfig::default().ceiling(9), Duration::from_secs(4));
        assert_eq!(RetryConfig::per_request().ceiling(u32::MAX), Duration::from_secs(5));
        assert_eq!(RetryConfig::fixed_cadence().ceiling(u32::MAX), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn at_the_cap_jitter_stays_below_it_and_alive() {
        let mut rng = Rng::new(1, 0);
        let draws: Vec<_> =
            (0..100).map(|_| RetryConfig::per_request().draw(30, &mut rng)).collect();
        assert!(draws.iter().all(|ns| (4_000_000_000..=5_000_000_000).contains(ns)));
        assert!(draws.iter().filter(|ns| **ns == 5_000_000_000).count() < 2);
    }

    #[test]
    fn an_empty_list_of_codes_means_all() {
        let mut config = RetryConfig::per_request();
        let only = |codes: &[&str]| RetryOverride {
            only_codes: Some(codes.iter().map(|code| Box::from(*code)).collect()),
            ..RetryOverride::default()
        };
        config.apply(&only(&["busy"]));
        assert_eq!((config.allows_code("busy"), config.allows_code("down")), (true, false));
        config.apply(&only(&[]));
        assert_eq!(config, RetryConfig::per_request());
    }
}
