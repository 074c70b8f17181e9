//! A caller's changes to the retry policy.
use crate::{
    RetryOverride,
    wire::read::{Count, Factor, List, Maybe, Millis, Percent, Text, object},
};
use std::time::Duration;

object! { open
    /// A caller's changes to the retry policy. What is absent stays as the layer has it; with
    /// `RetryConfig::per_request()` that is 3 attempts, 100 ms, 5000 ms, 2.0 and 20 %.
    #[derive(Default)]
    pub struct RetryPolicy {
        /// Attempts in all, the first included; at most 1000.
        "maxAttempts" => max_attempts: Option<u32>, Maybe<Count<1000>>;
        /// The first delay, in milliseconds.
        "initialDelayMs" => initial_delay_ms: Option<u64>, Maybe<Millis<0>>;
        /// No delay is longer, in milliseconds.
        "maxDelayMs" => max_delay_ms: Option<u64>, Maybe<Millis<0>>;
        /// By what each delay grows.
        "backoffMultiplier" => backoff_multiplier: Option<f64>, Maybe<Factor>;
        /// How far a delay may stray to either side, in percent.
        "jitterPercent" => jitter_percent: Option<f64>, Maybe<Percent>;
        /// Only these codes are retried; empty for all that are retryable.
        "retryableErrors" => retryable_errors: Option<Vec<Box<str>>>, Maybe<List<Text>>;
    }
}

impl RetryPolicy {
    /// The default policy of a UTEE envelope.
    #[must_use]
    pub fn envelope_defaults() -> Self {
        Self {
            max_attempts: Some(3),
            initial_delay_ms: Some(100),
            max_delay_ms: Some(5000),
            backoff_multiplier: Some(2.0),
            jitter_percent: Some(20.0),
            retryable_errors: Some(Vec::new()),
            ..Self::default()
        }
    }
}

impl From<RetryPolicy> for RetryOverride {
    fn from(policy: RetryPolicy) -> Self {
        Self {
            attempts: policy.max_attempts,
            base: policy.initial_delay_ms.map(Duration::from_millis),
            multiplier: policy.backoff_multiplier,
            cap: policy.max_delay_ms.map(Duration::from_millis),
            jitter: policy.jitter_percent.map(jitter),
            max_elapsed: None,
            only_codes: policy.retryable_errors.map(Vec::into_boxed_slice),
        }
    }
}

/// Percent to either side as shares of the delay.
pub(crate) fn jitter(percent: f64) -> (f64, f64) {
    (1.0 - percent / 100.0, 1.0 + percent / 100.0)
}
