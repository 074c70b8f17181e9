//! The switches that an operator sets in the environment.
use std::env;
use tr_config::{Config, PREFIX};
use tr_wire::closest;

/// The variable that turns the stack off: `TOOL_RELIABILITY_ENABLED=false`.
pub const ENABLED: &str = "TOOL_RELIABILITY_ENABLED";
/// The variable that keeps breakers from refusing calls: `TOOL_RELIABILITY_OPEN_MODE=off`.
pub const OPEN_MODE: &str = "TOOL_RELIABILITY_OPEN_MODE";
/// The variable that turns derived keys off: `TOOL_RELIABILITY_DERIVE_IDEMPOTENCY=off`. Its alias
/// `TOOL_RELIABLE_DERIVE_IDEMPOTENCY` does the same.
pub const DERIVE_IDEMPOTENCY: &str = "TOOL_RELIABILITY_DERIVE_IDEMPOTENCY";
/// The alias of [`DERIVE_IDEMPOTENCY`].
const DERIVE_ALIAS: &str = "TOOL_RELIABLE_DERIVE_IDEMPOTENCY";
/// The variable that leaves the tools' own errors as they are: `TOOL_RELIABILITY_NORMALISE=off`.
pub const NORMALISE: &str = "TOOL_RELIABILITY_NORMALISE";

const SWITCHES: [&str; 4] = [ENABLED, OPEN_MODE, DERIVE_IDEMPOTENCY, NORMALISE];
const YES: [&str; 4] = ["true", "1", "on", "yes"];
const NO: [&str; 4] = ["false", "0", "off", "no"];

/// The switches of the environment. Each is on unless its variable is `false`, `0`, `off` or `no`, in
/// any case. A switch that is off overrides the builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// [`ENABLED`]: the stack is on. Applied when a stack is built, unless the builder has a
    /// [`KillSwitch`](crate::KillSwitch) of its own.
    pub enabled: bool,
    /// [`OPEN_MODE`]: open breakers reject calls. Off, breakers only count.
    pub open_mode: bool,
    /// [`DERIVE_IDEMPOTENCY`]: keys are derived for calls without one.
    pub derive_idempotency: bool,
    /// [`NORMALISE`]: tools' errors are classified and converted to [`ToolError`](tr_core::ToolError)s.
    /// Off, the caller gets each tool's own error: see
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
    /// Reads this process's environment.
    #[must_use]
    pub fn from_env() -> Self {
        Self::read(|name| env::var(name).ok())
    }

    /// Reads an environment through `get`.
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
        let derives = is_on(DERIVE_IDEMPOTENCY) && is_on(DERIVE_ALIAS);
        Self {
            enabled: is_on(ENABLED),
            open_mode: is_on(OPEN_MODE),
            derive_idempotency: derives,
            normalise: is_on(NORMALISE),
        }
    }

    /// A warning for each of these names that starts like one of our variables but is unknown, with
    /// the closest known name. Names that begin with [`PREFIX`] are settings: the configuration
    /// checks them.
    ///
    /// ```
    /// use tool_reliability::Environment;
    ///
    /// let said = Environment::unknown(["TOOL_RELIABILITY_ENABLE"]);
    /// assert_eq!(
    ///     said,
    ///     ["unknown variable TOOL_RELIABILITY_ENABLE: did you mean TOOL_RELIABILITY_ENABLED?"]
    /// );
    /// ```
    pub fn unknown<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Vec<String> {
        let say = |name: N| {
            let name = name.as_ref();
            let ours = OURS.iter().any(|ours| name.starts_with(ours));
            if !ours || name.starts_with(PREFIX) || known().any(|known| known == name) {
                return None;
            }
            Some(match meant(name) {
                Some(meant) => format!("unknown variable {name}: did you mean {meant}?"),
                None => format!(
                    "unknown variable {name}: the switches are {}; settings look like {PREFIX}LOOPS__MODE",
                    SWITCHES.join(", ")
                ),
            })
        };
        let mut said: Vec<_> = names.into_iter().filter_map(say).collect();
        said.sort_unstable();
        said
    }

    /// An error for each switch whose value is neither a yes nor a no, which leaves it on: for programs
    /// that refuse to start with a misspelt switch.
    pub fn faults(get: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let unclear = known().filter_map(|name| {
            let value = get(name)?;
            let is_clear = value.is_empty() || is_one_of(&value, YES) || is_one_of(&value, NO);
            (!is_clear).then(|| format!("{name}: expected \"on\" or \"off\", found {value:?}"))
        });
        unclear.collect()
    }
}

/// All switches, with their aliases.
fn known() -> impl Iterator<Item = &'static str> {
    SWITCHES.into_iter().chain([DERIVE_ALIAS])
}

/// The prefix of our variables, and that of the alias.
const OURS: [&str; 2] = ["TOOL_RELIABILITY_", "TOOL_RELIABLE_"];

/// The known variable that is closest to an unknown name.
fn meant(name: &str) -> Option<String> {
    let rest = OURS.iter().find_map(|ours| name.strip_prefix(ours))?;
    let own = |known: &&str| OURS.iter().any(|ours| known.strip_prefix(ours) == Some(rest));
    let switch = SWITCHES.into_iter().find(own).or_else(|| {
        let names = SWITCHES.map(|known| known.trim_start_matches("TOOL_RELIAB"));
        let said = name.trim_start_matches("TOOL_RELIAB");
        let found = closest(said, names)?;
        SWITCHES.into_iter().find(|known| known.ends_with(found))
    });
    let section = || {
        let begins = |section: &String| {
            rest.strip_prefix(&**section)
                .is_some_and(|more| more.is_empty() || more.starts_with('_'))
        };
        let sections = Config::sections().map(str::to_ascii_uppercase);
        let section = sections.filter(begins).max_by_key(String::len)?;
        let more = rest[section.len()..].trim_start_matches('_');
        let joint = if more.is_empty() { "" } else { "__" };
        Some(format!("{PREFIX}{section}{joint}{more}"))
    };
    switch.map(str::to_owned).or_else(section)
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
        for derive in ["TOOL_RELIABILITY_DERIVE_IDEMPOTENCY", "TOOL_RELIABLE_DERIVE_IDEMPOTENCY"] {
            assert_eq!(off(derive), Environment { derive_idempotency: false, ..all });
        }
        assert_eq!(off(NORMALISE), Environment { normalise: false, ..all });
    }

    #[test]
    fn an_unknown_name_gets_a_suggestion() {
        for (name, meant) in [
            ("TOOL_RELIABILITY_ENABELD", "TOOL_RELIABILITY_ENABLED?"),
            ("TOOL_RELIABLE_ENABLED", "TOOL_RELIABILITY_ENABLED?"),
            ("TOOL_RELIABILITY_DERIVE_IDEMPOTENC", "TOOL_RELIABILITY_DERIVE_IDEMPOTENCY?"),
            ("TOOL_RELIABILITY_NORMALIZE", "TOOL_RELIABILITY_NORMALISE?"),
            ("TOOL_RELIABILITY_LOOPS_MODE", "TOOL_RELIABILITY__LOOPS__MODE?"),
            ("TOOL_RELIABILITY_RETRY_OPT_IN_CALLS", "TOOL_RELIABILITY__RETRY_OPT_IN__CALLS?"),
            ("TOOL_RELIABILITY_ATTEMPT_TIMEOUT_MS", "TOOL_RELIABILITY__ATTEMPT_TIMEOUT_MS?"),
            ("TOOL_RELIABILITY_BREAKER__WINDOW", "TOOL_RELIABILITY__BREAKER__WINDOW?"),
            ("TOOL_RELIABILITY_COLOUR", "the switches are TOOL_RELIABILITY_ENABLED, "),
        ] {
            let said = Environment::unknown([name]);
            assert!(said.len() == 1 && said[0].contains(meant), "{said:?}");
        }
        let fine = [
            ENABLED,
            OPEN_MODE,
            DERIVE_IDEMPOTENCY,
            DERIVE_ALIAS,
            NORMALISE,
            "PATH",
            "TOOL_RELIABILITY__X",
        ];
        assert_eq!(Environment::unknown(fine), [""; 0]);
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
