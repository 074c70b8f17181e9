//! What `cargo xtask gate` counts the instructions of.
use crate::{ours, run::Make};

/// One operation and its name in `gate.toml`.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name.
    pub name: &'static str,
    /// The operation.
    pub run: Make,
}

const fn case(name: &'static str, run: Make) -> Case {
    Case { name, run }
}

/// Everything that is counted. The bare leaves are counted too: what a layer adds is the rest.
pub const CASES: &[Case] = &[
    case("bare leaf, small request", ours::floor_small),
    case("bare leaf, tool call", ours::floor_call),
    case("breaker closed", ours::breaker_closed),
    case("breaker closed, window by number", ours::breaker_by_number),
    case("breaker closed, consecutive", ours::breaker_consecutive),
    case("breaker open", ours::breaker_open),
    case("breaker open, stamped", ours::breaker_open_stamped),
    case("retry success", ours::retry),
    case("retry success, tool call", ours::retry_call),
    case("retry with budget", ours::retry_budget),
    case("idempotency first call", ours::first),
    case("idempotency replay", ours::replay),
    case("loopguard success", ours::loop_guard),
    case("loopguard with signals, early in a turn", ours::loop_signals_early),
    case("loopguard with signals, late in a turn", ours::loop_signals),
    case("timeout success", ours::timeout),
    case("key of 1 KiB", ours::key),
    case("full stack first call", ours::stack_first),
    case("full stack, various params", ours::stack_various),
    case("full stack, various params, with signals", ours::stack_signals),
    case("full stack, no key", ours::stack_without_key),
    case("full stack replay", ours::stack_replay),
];

/// The case of this name.
#[must_use]
pub fn find(name: &str) -> Option<Case> {
    CASES.iter().copied().find(|case| case.name == name)
}

#[cfg(test)]
mod tests {
    use super::CASES;
    use std::collections::HashSet;

    #[test]
    fn every_case_does_what_it_says() {
        for case in CASES {
            let _ = (case.run)().warm();
        }
    }

    #[test]
    fn names_are_told_apart() {
        let names: HashSet<_> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
    }
}
