//! Which attempts count as executions of their tool.
use crate::{Classification, Ran, code};

impl Classification<'_> {
    /// Whether the attempt that ended like this got as far as its tool. One that an open breaker or
    /// `load_shed` refused, whose deadline passed before the tool was ready, or that was cancelled
    /// before did not, and is not counted.
    ///
    /// A tool that could not reach its server was asked all the same: that is an attempt.
    #[must_use]
    pub fn reached_tool(&self) -> bool {
        let refused = matches!(
            self.code,
            code::CIRCUIT_OPEN | code::TIMEOUT | code::CANCELLED | "overloaded"
        );
        !(refused && self.ran == Ran::No && !self.verdict.is_success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn what_a_layer_in_front_refused_is_no_attempt() {
        let reached = |code, ran| Classification::new(Verdict::TRANSIENT, ran, code).reached_tool();
        for refusal in [code::CIRCUIT_OPEN, code::TIMEOUT, code::CANCELLED, "overloaded"] {
            assert!(!reached(refusal, Ran::No), "{refusal}");
            // The tool's own, or an inner breaker behind attempts that may have run.
            assert!(reached(refusal, Ran::Unknown) && reached(refusal, Ran::Yes), "{refusal}");
        }
        for failure in ["network_error", "rate_limited", code::UNCLASSIFIED] {
            assert!(reached(failure, Ran::No), "{failure}");
        }
        assert!(Classification::SUCCESS.reached_tool());
    }
}
