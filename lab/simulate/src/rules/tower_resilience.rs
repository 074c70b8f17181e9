//! tower-resilience 0.13 with its defaults: retry around the circuit breaker.
use super::{
    Failed, PeerRules,
    breaker::{RateBreaker, Window},
    doubled,
};
use crate::backend::Fault;
use std::time::Duration;

/// Opens at 50 % of the calls since its last change of state, once there are 100, for 30 s; then one call decides.
/// 3 attempts, 100 and 200 ms apart, without jitter, and after a call that its breaker refused too.
#[derive(Debug)]
pub(super) struct Rules(RateBreaker);

impl Default for Rules {
    fn default() -> Self {
        Self(RateBreaker::new(Window::Growing, 100, Duration::from_secs(30), 1))
    }
}

impl PeerRules for Rules {
    fn admit(&mut self, now: Duration) -> bool {
        self.0.admit(now)
    }

    fn ended(&mut self, now: Duration, end: Result<(), Fault>, _: Option<Failed>) {
        self.0.ended(end.is_err(), now);
    }

    fn again(&mut self, attempt: u32, _: Failed, _: f64) -> Option<Duration> {
        (attempt < 2).then(|| doubled(Duration::from_millis(100), attempt, Duration::MAX))
    }
}
