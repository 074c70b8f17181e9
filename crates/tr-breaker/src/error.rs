//! Error types.
use crate::state::Refusal;
use std::{error::Error, fmt, sync::Arc, time::Duration};
use tr_core::{BreakerState, Facts, Ran, Verdict, code};

/// A breaker refused the call. The tool did not run.
///
/// Its facts: code `circuit_open`, [`Ran::No`], transient with the time left as `retry_after`, and
/// exhausted, so that nobody retries it on the spot. Behind them lies what the last failure said.
#[derive(Debug)]
pub struct CircuitOpen {
    breaker: Arc<str>,
    state: BreakerState,
    retry_after: Option<Duration>,
    facts: Facts,
}

/// What the last call said that failed, somebody else's perhaps.
#[derive(Debug)]
pub(crate) struct LastFailure(pub(crate) Arc<str>);

impl CircuitOpen {
    pub(crate) fn new(
        breaker: Arc<str>,
        refusal: Refusal,
        last_failure: Option<Arc<LastFailure>>,
    ) -> Self {
        let Refusal { state, left: retry_after, .. } = refusal;
        let verdict = Verdict::Transient { retry_after };
        let facts = Facts::new(code::CIRCUIT_OPEN, Ran::No, verdict).exhausted();
        let facts = match last_failure {
            Some(shared) => facts.because_shared(shared),
            None => facts,
        };
        Self { breaker, state, retry_after, facts }
    }

    /// The breaker's key.
    #[must_use]
    pub fn breaker(&self) -> &str {
        &self.breaker
    }

    /// The state in which it refused.
    #[must_use]
    pub const fn state(&self) -> BreakerState {
        self.state
    }

    /// Until the next probe may go out; `None` while probes are out, when it was forced open, and
    /// while it lets only some calls pass after closing.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// What the last failure said, shortened.
    #[must_use]
    pub fn last_failure(&self) -> Option<&str> {
        Some(&self.facts.source()?.downcast_ref::<LastFailure>()?.0)
    }
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "circuit breaker of {} is {}", self.breaker, self.state.as_str())?;
        match (self.retry_after, self.state) {
            (Some(left), _) => write!(f, " for another {left:.0?}"),
            (None, BreakerState::Closed) => f.write_str(" and lets only some calls pass yet"),
            (None, BreakerState::HalfOpen) => f.write_str(" and waits for its probe"),
            (None, _) => f.write_str(" until it is reset"),
        }
    }
}

impl Error for CircuitOpen {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.facts)
    }
}

impl fmt::Display for LastFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for LastFailure {}

/// Settings that no breaker can go by: the text names each fault and what is allowed.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError(pub(crate) Vec<String>);

impl ConfigError {
    /// The faults, one by one.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the breaker's settings are at fault: ")?;
        f.write_str(&self.0.join("; "))
    }
}

impl Error for ConfigError {}
