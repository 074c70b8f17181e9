//! From a result's envelope that a tool sent, to what the call came to.
use super::{CacheHit, Failure, ToolResultEnvelope};
use crate::{
    OutcomeParts, Ran, Replay, Retried, ToolError, ToolOutcome, code,
    wire::{Status, duration, hex},
};

impl From<ToolResultEnvelope> for ToolOutcome {
    fn from(envelope: ToolResultEnvelope) -> Self {
        let mut parts =
            OutcomeParts { duration: duration(envelope.duration_ms), ..OutcomeParts::default() };
        if let Some(output) = envelope.output {
            parts.content = Some(output.content);
            parts.metadata = output.metadata;
        }
        parts.error = match (envelope.status, envelope.error) {
            (Status::Success, _) => None,
            (status, Some(failure)) => Some(tool_error(status, failure)),
            (status, None) => Some(ToolError::new(
                unsaid(status),
                format!("the tool ended with status `{status}` and no error"),
            )),
        };
        let mut outcome = Self::from(parts);
        if let Some(retried) = envelope.retried_by {
            outcome.set_retried(retried.into_iter().map(Retried::from).collect::<Vec<_>>());
        }
        match envelope.cache.filter(|_| envelope.from_cache) {
            Some(cache) => outcome.replayed(cache.into()),
            None => outcome,
        }
    }
}

fn tool_error(status: Status, failure: Failure) -> ToolError {
    let mut error = ToolError::new(failure.code, failure.message);
    error.retryable = Some(failure.retriable);
    error.ran = failure.ran.unwrap_or(Ran::Unknown);
    error.details = failure.extra.get("details").cloned();
    error.breaker = failure.breaker_state;
    // Outer layers must not multiply the retries.
    error.exhausted = status == Status::RetryExhausted || (failure.terminal && failure.retriable);
    error
}

const fn unsaid(status: Status) -> &'static str {
    match status {
        Status::RetryExhausted => code::RETRY_EXHAUSTED,
        Status::CircuitOpen => code::CIRCUIT_OPEN,
        Status::Timeout => code::TIMEOUT,
        Status::Success | Status::Error | Status::RetriableError => code::UNCLASSIFIED,
    }
}

impl From<CacheHit> for Replay {
    fn from(hit: CacheHit) -> Self {
        Self {
            matched_on: hit.matched_on,
            age: duration(hit.age_ms).unwrap_or_default(),
            fingerprint: hex::read(&hit.key_fingerprint).unwrap_or_default(),
        }
    }
}

impl From<super::RetriedBy> for Retried {
    fn from(retried: super::RetriedBy) -> Self {
        Self {
            attempt: retried.attempt,
            delay: duration(retried.delay_ms).unwrap_or_default(),
            reason: retried.reason_code,
            latency: duration(retried.latency_ms).unwrap_or_default(),
        }
    }
}
