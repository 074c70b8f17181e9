//! From what a call came to, to the result's envelope.
use super::{CacheHit, Failure, Output, RetriedBy, ToolResultEnvelope};
use crate::{
    End, FailureInfo, Json, Replay, Retried, ToolCall, ToolOutcome, failure_info,
    wire::{Extra, Status, failure::Failed, hex, metadata, millis},
};
use std::time::Duration;

impl ToolResultEnvelope {
    /// The envelope for what `call` came to after `attempts` attempts (0 if it was not run) and
    /// `duration`.
    #[must_use]
    pub fn of(
        call: &ToolCall,
        end: End<'_, ToolOutcome>,
        attempts: u32,
        duration: Duration,
    ) -> Self {
        let failed = Failed::of(call, end);
        let replay = match end {
            Ok(outcome) => outcome.replay(),
            Err(error) => failure_info(error).and_then(FailureInfo::replay),
        };
        let retried = end.ok().map(ToolOutcome::retried).unwrap_or_default();
        Self {
            request_id: call.parts().request_id.clone().unwrap_or_default(),
            status: failed.as_ref().map_or(Status::Success, |failed| failed.status),
            from_cache: replay.is_some(),
            cache: replay.map(CacheHit::from),
            tool_name: call.parts().tool.label().into(),
            duration_ms: millis(duration),
            attempts,
            output: end.ok().and_then(|outcome| output(outcome, failed.is_some())),
            error: failed.map(Failure::from),
            retried_by: (!retried.is_empty())
                .then(|| retried.iter().map(RetriedBy::from).collect()),
            extra: Extra::default(),
        }
    }
}

/// A failure has output only if the tool gave some.
fn output(outcome: &ToolOutcome, failed: bool) -> Option<Output> {
    let parts = outcome.parts();
    let metadata = metadata::of(outcome, failed);
    if failed && parts.content.is_none() && metadata.is_none() {
        return None;
    }
    let content = parts.content.clone().unwrap_or_else(|| Json::from(serde_json::Value::Null));
    Some(Output { content, metadata, extra: Extra::default() })
}

impl From<Replay> for CacheHit {
    fn from(replay: Replay) -> Self {
        Self {
            matched_on: replay.matched_on,
            age_ms: millis(replay.age),
            key_fingerprint: hex::write(replay.fingerprint),
            extra: Extra::default(),
        }
    }
}

impl From<&Retried> for RetriedBy {
    fn from(retried: &Retried) -> Self {
        Self {
            attempt: retried.attempt,
            delay_ms: millis(retried.delay),
            reason_code: retried.reason.clone(),
            latency_ms: millis(retried.latency),
            extra: Extra::default(),
        }
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        let mut extra = Extra::default();
        if let Some(details) = failed.details {
            extra.set("details", details);
        }
        Self {
            code: failed.code,
            message: failed.message,
            retriable: failed.retriable,
            terminal: failed.terminal,
            breaker_state: failed.breaker,
            ran: Some(failed.ran),
            recorded: failed.recorded,
            cause: failed.cause,
            extra,
        }
    }
}
