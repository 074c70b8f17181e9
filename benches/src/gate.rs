//! What `cargo xtask gate` counts the instructions of.
use crate::{call::Leaf as Call, ours, run::Make, small::Leaf as Small, tower};

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
pub static CASES: &[Case] = &[
    case("bare leaf, small request", ours::bare::<Small>),
    case("bare leaf, tool call", ours::bare::<Call>),
    case("breaker closed", ours::breaker::closed::<Small>),
    case("breaker closed, window by number", ours::breaker::by_number::<Small>),
    case("breaker closed, consecutive", ours::breaker::consecutive::<Small>),
    case("breaker open", ours::breaker::open::<Small>),
    case("breaker open, stamped", ours::breaker::open_stamped),
    case("retry success", ours::retry::success::<Small>),
    case("retry success, tool call", ours::retry::success::<Call>),
    case("retry with budget", ours::retry::budget::<Small>),
    case("idempotency first call", ours::idempotency::first::<Small>),
    case("idempotency replay", ours::idempotency::replay::<Small>),
    case("loopguard success", ours::loopguard::success),
    case("loopguard with signals, early in a turn", ours::loopguard::signals_early),
    case("loopguard with signals, late in a turn", ours::loopguard::signals),
    case("loopguard with signals, answers of 1 KiB", ours::loopguard::answers),
    case("timeout success", ours::timeout::attempt::<Call>),
    case("key of 1 KiB", ours::keys::key),
    case("full stack, new call", ours::stack::new_key),
    case("full stack first call", ours::stack::first),
    case("full stack, various params", ours::stack::various),
    case("full stack, various params, with signals", ours::stack::signals),
    case("full stack, no key", ours::stack::without_key),
    case("full stack replay", ours::stack::replay),
    case("tower: retry", tower::retry::<Small>),
    case("tower: retry with budget", tower::budget::<Small>),
    case("tower: timeout", tower::timeout::<Call>),
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
            let mut run = (case.run)().warm();
            assert_eq!(run.seen(), run.wanted(), "{}", case.name);
        }
    }

    #[test]
    fn names_are_told_apart() {
        let names: HashSet<_> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
    }
}
