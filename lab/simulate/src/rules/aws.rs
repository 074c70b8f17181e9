//! The AWS SDKs' standard mode, by the numbers it has had before the update that was announced for 2026.
use super::{Failed, PeerRules, doubled};
use crate::backend::Fault;
use std::time::Duration;

/// 500 tokens; a retry costs 5, after a timeout 10; a success that needed a retry gives back what that cost, one that
/// needed none brings 1. 3 attempts, drawn from 0 up to 1 and 2 s (never above 20 s).
#[derive(Debug)]
pub(super) struct Rules {
    tokens: u32,
}

const MOST: u32 = 500;

impl Default for Rules {
    fn default() -> Self {
        Self { tokens: MOST }
    }
}

fn cost(of: Failed) -> u32 {
    if of == Failed::At(Fault::Timeout) { 10 } else { 5 }
}

impl PeerRules for Rules {
    fn ended(&mut self, _: Duration, end: Result<(), Fault>, before: Option<Failed>) {
        if end.is_ok() {
            self.tokens = (self.tokens + before.map_or(1, cost)).min(MOST);
        }
    }

    fn again(&mut self, attempt: u32, failed: Failed, draw: f64) -> Option<Duration> {
        if attempt >= 2 {
            return None;
        }
        self.tokens = self.tokens.checked_sub(cost(failed))?;
        let ceiling = doubled(Duration::from_secs(1), attempt, Duration::from_secs(20));
        Some(ceiling.mul_f64(draw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_empties_and_successes_fill_it() {
        let mut rules = Rules::default();
        let retry = |rules: &mut Rules, fault| rules.again(0, Failed::At(fault), 0.5);
        assert_eq!(retry(&mut rules, Fault::Timeout), Some(Duration::from_millis(500)));
        assert_eq!((0..200).filter(|_| retry(&mut rules, Fault::Refused).is_some()).count(), 98);
        rules.ended(Duration::ZERO, Ok(()), Some(Failed::At(Fault::Timeout)));
        rules.ended(Duration::ZERO, Ok(()), None);
        assert_eq!(rules.tokens, 11);
        assert_eq!(rules.again(2, Failed::At(Fault::Refused), 0.5), None);
    }
}
