//! The result's envelope, from an outcome and to one.
use crate::{
    Extra,
    outcome::{Failed, duration, metadata_of, millis},
    read::{Any, Flag, List, Maybe, Measured, Record, Tally, Text, Word, object},
};
use std::time::Duration;
use tr_core::{
    BreakerState, End, FailureInfo, Json, MatchedOn, OutcomeParts, Ran, Replay, Retried, Status,
    ToolCall, ToolError, ToolOutcome, code, failure_info,
};

object! { open
    /// What a tool call came to, as BS-TIM-5 v1.1 sends it.
    pub struct ToolResultEnvelope {
        /// The request's.
        "requestId" => request_id: Box<str>, Text;
        /// How it ended.
        "status" => status: Status, Word<Status>;
        /// Whether this comes from a record and not from a run for this request.
        "fromCache" => from_cache: bool, Flag;
        /// Which record that is.
        "cache" => cache: Option<CacheHit>, Maybe<CacheHit>;
        /// The tool's name.
        "toolName" => tool_name: Box<str>, Text;
        /// How long the call took, all attempts and delays included, in milliseconds.
        "durationMs" => duration_ms: f64, Measured;
        /// How many attempts were made; 0 for a call that was not run.
        "attempts" => attempts: u32, Tally;
        /// What the tool gave back.
        "output" => output: Option<Output>, Maybe<Output>;
        /// What the call failed with.
        "error" => error: Option<Failure>, Maybe<Failure>;
        /// Each retry.
        "retriedBy" => retried_by: Option<Vec<RetriedBy>>, Maybe<List<RetriedBy>>;
    }
}

object! { open
    /// Which record an answer comes from.
    pub struct CacheHit {
        /// Whether the first call was still running.
        "matchedOn" => matched_on: MatchedOn, Word<MatchedOn>;
        /// How old the record is, in milliseconds.
        "ageMs" => age_ms: f64, Measured;
        /// A keyed hash of the key.
        "keyFingerprint" => key_fingerprint: Box<str>, Text;
    }
}

object! { open
    /// What a tool gave back.
    pub struct Output {
        /// The tool's own answer.
        "content" => content: Json, Any;
        /// What is said beside it. Ours, where the tool has no member of that name: `notes` for
        /// the model, and `ran` and `recorded` where a repeat may find no record.
        "metadata" => metadata: Option<Json>, Maybe<Record>;
    }
}

object! { open
    /// What a call failed with.
    pub struct Failure {
        /// A stable code.
        "code" => code: Box<str>, Text;
        /// For the model.
        "message" => message: Box<str>, Text;
        /// Whether the same call may succeed later.
        "retriable" => retriable: bool, Flag;
        /// Whether it is of no use to send it again now: it would fail again, or was retried
        /// already.
        "terminal" => terminal: bool, Flag;
        /// The state of the breaker that refused the call.
        "breakerState" => breaker_state: Option<BreakerState>, Maybe<Word<BreakerState>>;
        /// Whether the tool ran. Not in v1.1.
        "ran" => ran: Option<Ran>, Maybe<Word<Ran>>;
        /// `false`: a repeat may find no record of this call. Not in v1.1.
        "recorded" => recorded: Option<bool>, Maybe<Flag>;
        /// What the failure came from, where the message does not say it. Not in v1.1.
        "cause" => cause: Option<Box<str>>, Maybe<Text>;
    }
}

object! { open
    /// One retry.
    pub struct RetriedBy {
        /// The attempt that failed, from 1.
        "attempt" => attempt: u32, Tally;
        /// How long was waited after it, in milliseconds.
        "delayMs" => delay_ms: f64, Measured;
        /// The code of its failure.
        "reasonCode" => reason_code: Box<str>, Text;
        /// How long it took, in milliseconds.
        "latencyMs" => latency_ms: f64, Measured;
    }
}

envelope! { Any
    /// Names every fault of the text. Output may hold any JSON.
    ToolResultEnvelope
}

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
    let metadata = metadata_of(outcome, failed);
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
            // 16 hexadecimal digits.
            key_fingerprint: format!("{:016x}", u64::from_be_bytes(replay.fingerprint)).into(),
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

impl From<ToolResultEnvelope> for ToolOutcome {
    fn from(envelope: ToolResultEnvelope) -> Self {
        let mut parts = OutcomeParts::default();
        parts.duration = duration(envelope.duration_ms);
        if let Some(output) = envelope.output {
            parts.content = Some(output.content);
            parts.metadata = output.metadata;
        }
        parts.error = match (envelope.status, envelope.error) {
            (Status::Success, _) => None,
            (status, Some(failure)) => Some(tool_error(status, failure)),
            (status, None) => Some(ToolError::new(
                unsaid(status),
                format!("the tool ended with status `{}` and no error", status.as_str()),
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
            fingerprint: fingerprint_of(&hit.key_fingerprint).unwrap_or_default(),
        }
    }
}

impl From<RetriedBy> for Retried {
    fn from(retried: RetriedBy) -> Self {
        Self {
            attempt: retried.attempt,
            delay: duration(retried.delay_ms).unwrap_or_default(),
            reason: retried.reason_code,
            latency: duration(retried.latency_ms).unwrap_or_default(),
        }
    }
}

/// The fingerprint that `text` spells; of any other text no digits.
fn fingerprint_of(text: &str) -> Option<[u8; 8]> {
    let is_ours = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_ours.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(u64::to_be_bytes)
}
