//! Error types.
use crate::{circuit::Refusal, keyed::KeyedCircuit, shortened::LastFailure};
use std::{
    error::Error,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tr_policy::{BreakerState, FailureInfo, Ran, Verdict, code};

/// A breaker refused the call. The tool did not run.
///
/// Its information: code `circuit_open`, [`Ran::No`], transient with the time left as `retry_after`, and
/// exhausted, so that retry layers stop. Its source is the message of the last failure. If a call
/// carries a [time](tr_policy::RequestPolicy::stamp), the time left counts from there.
pub struct CircuitOpen {
    circuit: Arc<KeyedCircuit>,
    state: BreakerState,
    retry_after: Option<Duration>,
    /// Made on demand: most refusals are only counted.
    info: OnceLock<Box<FailureInfo>>,
}

impl CircuitOpen {
    #[inline]
    pub(crate) const fn new(circuit: Arc<KeyedCircuit>, refusal: Refusal) -> Self {
        let Refusal { state, left: retry_after, .. } = refusal;
        Self { circuit, state, retry_after, info: OnceLock::new() }
    }

    fn failure_info(&self) -> &FailureInfo {
        self.info.get_or_init(|| {
            let verdict = Verdict::Transient { retry_after: self.retry_after };
            let info =
                FailureInfo::new(code::CIRCUIT_OPEN, Ran::No, verdict).exhausted().by_layer();
            Box::new(match self.circuit.last_failure() {
                Some(shared) => info.because_shared(shared),
                None => info,
            })
        })
    }

    /// The breaker's key.
    #[must_use]
    pub fn breaker(&self) -> &str {
        self.circuit.name()
    }

    /// The state in which it refused.
    #[must_use]
    pub const fn state(&self) -> BreakerState {
        self.state
    }

    /// The time until the next probe is admitted; `None` while probes are in flight, if it was forced
    /// open, and while it ramps up after closing.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The message of the last failure, shortened, as the breaker knew it when this, or a source, was
    /// asked for first; none if it had closed in the meantime.
    #[must_use]
    pub fn last_failure(&self) -> Option<&str> {
        Some(&self.failure_info().source()?.downcast_ref::<LastFailure>()?.0)
    }
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "circuit breaker of {} is {}", self.breaker(), self.state.as_str())?;
        match (self.retry_after, self.state) {
            (Some(left), _) => write!(f, " for another {left:.0?}"),
            (None, BreakerState::Closed) => {
                f.write_str(" and admits only some calls while it ramps up")
            }
            (None, BreakerState::HalfOpen) => f.write_str(" and waits for its probe to end"),
            (None, _) => f.write_str(" until it is reset"),
        }
    }
}

impl Error for CircuitOpen {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.failure_info())
    }
}

tr_policy::debug_parts! { CircuitOpen, |it|
    breaker = it.breaker(),
    state = it.state,
    retry_after = it.retry_after
}
