//! gRPC's retries with throttling, by the numbers of its proposal A6.
use super::{Failed, PeerRules, doubled};
use crate::backend::Fault;
use std::time::Duration;

/// `maxTokens` 10, `tokenRatio` 0.1: a failure takes a token, a success brings a tenth, and above half of them there are
/// retries. 4 attempts, 100 ms doubled up to 1 s, ±20 %.
#[derive(Debug)]
pub(super) struct Rules {
    tokens: f64,
}

const MOST: f64 = 10.0;

impl Default for Rules {
    fn default() -> Self {
        Self { tokens: MOST }
    }
}

impl PeerRules for Rules {
    fn ended(&mut self, _: Duration, end: Result<(), Fault>, _: Option<Failed>) {
        let change = if end.is_ok() { 0.1 } else { -1.0 };
        self.tokens = (self.tokens + change).clamp(0.0, MOST);
    }

    fn again(&mut self, attempt: u32, _: Failed, draw: f64) -> Option<Duration> {
        let backoff = doubled(Duration::from_millis(100), attempt, Duration::from_secs(1));
        (attempt < 3 && self.tokens > MOST / 2.0).then(|| backoff.mul_f64(0.8 + 0.4 * draw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_end_retrying_until_successes_have_paid() {
        let mut rules = Rules::default();
        let fail = |rules: &mut Rules| {
            rules.ended(Duration::ZERO, Err(Fault::Refused), None);
            rules.again(0, Failed::At(Fault::Refused), 0.5)
        };
        assert_eq!(fail(&mut rules), Some(Duration::from_millis(100)));
        assert_eq!((0..9).filter(|_| fail(&mut rules).is_some()).count(), 3);
        (0..62).for_each(|_| rules.ended(Duration::ZERO, Ok(()), None));
        assert!(fail(&mut rules).is_some());
        assert!(fail(&mut rules).is_none());
    }
}
