//! resilience4j 2 with its defaults: retry around the circuit breaker, as its Spring starter nests them.
use super::{
    Failed, PeerRules,
    breaker::{RateBreaker, Window},
};
use crate::backend::Fault;
use std::time::Duration;

/// Opens at 50 % of the last 100 calls, for 60 s; then 10 calls decide. 3 attempts, 500 ms apart. Its retry knows nothing
/// of its breaker: a call that is not permitted is tried again like one that failed.
#[derive(Debug)]
pub(super) struct Rules(RateBreaker);

impl Default for Rules {
    fn default() -> Self {
        Self(RateBreaker::new(Window::Sliding, 100, Duration::from_secs(60), 10))
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
        (attempt < 2).then_some(Duration::from_millis(500))
    }
}
