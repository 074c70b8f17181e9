//! The time and concurrency limits of a turn, as its plan sets them.
use crate::json::below;
use std::time::Duration;
use tr_wire::read::Faults;

/// The longest timeout that a plan may ask for.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// The most calls that may run at once.
pub const MAX_CONCURRENCY: usize = 1_000;
/// The most calls of one plan.
pub const MAX_CALLS: usize = 10_000;

/// The time and concurrency limits of a turn.
///
/// ```
/// use std::time::Duration;
/// use tr_turn::Limits;
///
/// let limits = Limits { concurrency: 2, ..Limits::default() };
/// assert_eq!(limits.timeout, Duration::from_secs(300));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long the turn may take; 300 s by default.
    pub timeout: Duration,
    /// How long a call may take, with all its attempts; by default as long as the turn.
    pub call_timeout: Option<Duration>,
    /// How long an attempt may take; by default as set by its tool's manifest or the `ToolStack`.
    /// The turn passes it to the service, which enforces it.
    pub attempt_timeout: Option<Duration>,
    /// How many calls run at once; 8 by default.
    pub concurrency: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(300),
            call_timeout: None,
            attempt_timeout: None,
            concurrency: 8,
        }
    }
}

impl Limits {
    pub(super) fn check(&self, faults: &mut Faults) {
        check_timeout(Some(self.timeout), "/limits", "timeout_ms", faults);
        check_timeout(self.call_timeout, "/limits", "call_timeout_ms", faults);
        check_timeout(self.attempt_timeout, "/limits", "attempt_timeout_ms", faults);
        if !(1..=MAX_CONCURRENCY).contains(&self.concurrency) {
            let found = self.concurrency.to_string();
            faults.add("/limits/concurrency", "1 to 1000 calls at once", found);
        }
    }
}

/// Reports a timeout outside 1 ms to 24 h. `parent` is the JSON pointer of the object that has it.
pub(super) fn check_timeout(
    timeout: Option<Duration>,
    parent: &str,
    name: &str,
    faults: &mut Faults,
) {
    let Some(timeout) = timeout else { return };
    if timeout < Duration::from_millis(1) || timeout > MAX_TIMEOUT {
        let found = format!("{} ms", timeout.as_millis());
        faults.add(below(parent, name), "1 ms to 24 h", found);
    }
}
