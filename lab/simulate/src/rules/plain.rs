//! Retries without any bound but their number, and none at all.
use super::{Failed, PeerRules, doubled};
use std::time::Duration;

/// 4 attempts, 200, 400 and 800 ms apart, without jitter.
#[derive(Debug, Default)]
pub(super) struct Rules;

impl PeerRules for Rules {
    fn again(&mut self, attempt: u32, _: Failed, _: f64) -> Option<Duration> {
        (attempt < 3).then(|| doubled(Duration::from_millis(200), attempt, Duration::MAX))
    }
}

/// One attempt.
#[derive(Debug, Default)]
pub(super) struct NoRetries;

impl PeerRules for NoRetries {
    fn again(&mut self, _: u32, _: Failed, _: f64) -> Option<Duration> {
        None
    }
}
