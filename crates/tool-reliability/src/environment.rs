//! The switches that an operator sets in the environment.
use std::env;

/// The variable that turns the stack off: `TOOL_RELIABILITY_ENABLED=false`.
pub const ENABLED: &str = "TOOL_RELIABILITY_ENABLED";
/// The variable that keeps breakers from refusing calls: `TOOL_RELIABILITY_OPEN_MODE=off`.
pub const OPEN_MODE: &str = "TOOL_RELIABILITY_OPEN_MODE";
/// The variable that keeps keys from being derived: `TOOL_RELIABLE_DERIVE_IDEMPOTENCY=off`.
pub const DERIVE_IDEMPOTENCY: &str = "TOOL_RELIABLE_DERIVE_IDEMPOTENCY";
/// The variable that leaves the tools' own errors as they are: `TOOL_RELIABILITY_NORMALISE=off`.
pub const NORMALISE: &str = "TOOL_RELIABILITY_NORMALISE";

const YES: [&str; 4] = ["true", "1", "on", "yes"];
const NO: [&str; 4] = ["false", "0", "off", "no"];

/// The switches of the rollback plan. All are on unless the environment clearly says no (`false`,
/// `0`, `off` or `no`, in any case); they beat whatever the builder was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// [`ENABLED`]: the stack is there at all. Read when a stack is built, if the builder was given
    /// no [`KillSwitch`](crate::KillSwitch).
    pub enabled: bool,
    /// [`OPEN_MODE`]: breakers refuse calls. Without it they count, and never refuse one.
    pub open_mode: bool,
    /// [`DERIVE_IDEMPOTENCY`]: keys are derived for calls without one.
    pub derive_idempotency: bool,
    /// [`NORMALISE`]: tools' errors are classified and put into the contract's words. Without it
    /// the caller gets a tool's own error, whatever the stack made of it: see
    /// [`Builder::normalise`](crate::Builder::normalise).
    pub normalise: bool,
}

impl Default for Environment {
    /// All on.
    fn default() -> Self {
        Self { enabled: true, open_mode: true, derive_idempotency: true, normalise: true }
    }
}

impl Environment {
    /// What this process's environment says.
    #[must_use]
    pub fn from_env() -> Self {
        Self::read(|name| env::var(name).ok())
    }

    /// What an environment says whose variables `get` finds.
    ///
    /// ```
    /// use tool_reliability::{Environment, environment};
    ///
    /// let said = Environment::read(|name| (name == environment::OPEN_MODE).then(|| "off".into()));
    /// assert!(said.enabled && !said.open_mode);
    /// ```
    #[must_use]
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let is_on = |name| !get(name).is_some_and(|value| is_one_of(&value, NO));
        Self {
            enabled: is_on(ENABLED),
            open_mode: is_on(OPEN_MODE),
            derive_idempotency: is_on(DERIVE_IDEMPOTENCY),
            normalise: is_on(NORMALISE),
        }
    }

    /// The variables whose value is neither a clear yes nor a clear no, which leaves them on: for
    /// programs that rather refuse to start than run with a misspelt switch.
    pub fn faults(get: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let all = [ENABLED, OPEN_MODE, DERIVE_IDEMPOTENCY, NORMALISE];
        let unclear = all.into_iter().filter_map(|name| {
            let value = get(name)?;
            let is_clear = value.is_empty() || is_one_of(&value, YES) || is_one_of(&value, NO);
            (!is_clear).then(|| format!("{name}: expected \"on\" or \"off\", found {value:?}"))
        });
        unclear.collect()
    }
}

fn is_one_of(value: &str, words: [&str; 4]) -> bool {
    words.iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_no_turns_it_off() {
        let enabled = |value: &str| Environment::read(|_| Some(value.into())).enabled;
        assert!(!["false", " FALSE", "0", "off", "No"].into_iter().any(enabled));
        assert!(["", "true", "1", "falsehood"].into_iter().all(enabled));
        assert_eq!(Environment::read(|_| None), Environment::default());
    }

    #[test]
    fn each_variable_turns_its_own_switch() {
        let off = |wanted: &'static str| {
            Environment::read(move |name| (name == wanted).then(|| "off".into()))
        };
        let all = Environment::default();
        assert_eq!(off(ENABLED), Environment { enabled: false, ..all });
        assert_eq!(off("TOOL_RELIABILITY_OPEN_MODE"), Environment { open_mode: false, ..all });
        assert_eq!(
            off("TOOL_RELIABLE_DERIVE_IDEMPOTENCY"),
            Environment { derive_idempotency: false, ..all }
        );
        assert_eq!(off(NORMALISE), Environment { normalise: false, ..all });
    }

    #[test]
    fn a_misspelt_switch_is_named() {
        let faults = Environment::faults(|name| match name {
            ENABLED => Some("flase".into()),
            OPEN_MODE => Some("off".into()),
            _ => None,
        });
        assert_eq!(
            faults,
            ["TOOL_RELIABILITY_ENABLED: expected \"on\" or \"off\", found \"flase\""]
        );
    }
}
