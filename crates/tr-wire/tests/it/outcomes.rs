//! From outcomes to envelopes and back.
use crate::samples::{RESPONSE, RESULT, assert_same};
use std::{error::Error, fmt, time::Duration};
use tr_core::{
    BoxError, BreakerState, Chunk, Effect, FailureInfo, Json, MatchedOn, OutcomeParts, Ran, Replay,
    Retried, Status, ToolCall, ToolError, ToolOutcome, Verdict, code,
};
use tr_wire::{
    bs_tim_5::ToolResultEnvelope,
    utee::{ResponseStatus, ToolResponse},
};

const DURATION: Duration = Duration::from_millis(12);

fn call() -> ToolCall {
    ToolCall::new("search", Json::empty_object()).request_id("r-1")
}

fn json(text: &str) -> Json {
    Json::from_text(text).unwrap()
}

#[derive(Debug)]
struct Refused(FailureInfo);

impl Refused {
    fn boxed(code: &'static str, ran: Ran, verdict: Verdict) -> BoxError {
        Self(FailureInfo::new(code, ran, verdict).because("connection refused")).into()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the layer refused the call")
    }
}

impl Error for Refused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn a_success_says_what_the_tool_gave() {
    let outcome = ToolOutcome::success(json(r#"{"hits": [1, 2]}"#));
    let envelope = ToolResultEnvelope::of(&call(), Ok(&outcome), 1, DURATION);
    assert_eq!(
        envelope.to_json().get(),
        r#"{"requestId":"r-1","status":"success","fromCache":false,"toolName":"search","durationMs":12,"attempts":1,"output":{"content":{"hits": [1, 2]}}}"#
    );
    let response = ToolResponse::of(&call(), Ok(&outcome), DURATION);
    assert_eq!(
        response.to_json().get(),
        r#"{"requestId":"r-1","status":"success","result":{"hits": [1, 2]},"durationMs":12}"#
    );
}

#[test]
fn a_replay_says_so_and_a_retry_is_listed() {
    let replay = Replay {
        matched_on: MatchedOn::Inflight,
        age: Duration::from_micros(1500),
        fingerprint: [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7],
    };
    let mut outcome = ToolOutcome::success(json("1")).replayed(replay);
    outcome.set_retried([Retried {
        attempt: 1,
        delay: Duration::from_millis(180),
        reason: "http_503".into(),
        latency: Duration::from_millis(31),
    }]);
    let envelope = ToolResultEnvelope::of(&call(), Ok(&outcome), 0, DURATION);
    assert_same(
        envelope.to_json().get(),
        r#"{"requestId": "r-1", "status": "success", "fromCache": true, "toolName": "search",
            "cache": {"matchedOn": "inflight", "ageMs": 1.5, "keyFingerprint": "00f067aa0ba902b7"},
            "durationMs": 12, "attempts": 0, "output": {"content": 1},
            "retriedBy": [{"attempt": 1, "delayMs": 180, "reasonCode": "http_503", "latencyMs": 31}]}"#,
    );
    let back = ToolOutcome::from(envelope);
    assert_eq!(back.replay(), Some(replay));
    assert_eq!(back.retried(), outcome.retried());
}

#[test]
fn what_was_not_recorded_says_so_beside_the_tools_own_words() {
    let mut parts = OutcomeParts::default();
    parts.content = Some(json("1"));
    parts.metadata = Some(json(r#"{"ran": "a marathon", "id": 12345678901234567890}"#));
    parts.notes = vec!["mind the gap".into()];
    let mut outcome = ToolOutcome::from(parts);
    outcome.set_unrecorded();
    let envelope = ToolResultEnvelope::of(&call(), Ok(&outcome), 1, DURATION);
    let metadata = envelope.output.unwrap().metadata.unwrap();
    assert_eq!(
        metadata.get(),
        r#"{"ran":"a marathon","id":12345678901234567890,"notes":["mind the gap"],"recorded":false}"#
    );
}

#[test]
fn each_failure_has_its_status_code_and_facts() {
    use Status::{CircuitOpen, Error as Plain, RetriableError, RetryExhausted, Timeout};
    let (transient, permanent) = (Verdict::TRANSIENT, Verdict::Permanent);
    for (code, ran, verdict, status, retriable, terminal) in [
        (code::CIRCUIT_OPEN, Ran::No, transient, CircuitOpen, true, false),
        (code::RETRY_EXHAUSTED, Ran::Unknown, transient, RetryExhausted, true, true),
        (code::TIMEOUT, Ran::Unknown, transient, Timeout, true, false),
        (code::STORE_UNAVAILABLE, Ran::No, transient, RetriableError, true, false),
        (code::IDEMPOTENCY_CONFLICT, Ran::No, permanent, Plain, false, true),
        (code::IDEMPOTENCY_IN_FLIGHT, Ran::No, transient, Plain, true, false),
        (code::OUTCOME_UNKNOWN, Ran::Unknown, permanent, Plain, false, true),
        (code::ANSWER_NOT_KEPT, Ran::Yes, permanent, Plain, false, true),
        (code::RECORD_UNREADABLE, Ran::Unknown, permanent, Plain, false, true),
        (code::CANCELLED, Ran::Unknown, Verdict::Cancelled, Plain, false, true),
        (code::LOOP_DETECTED, Ran::No, permanent, Plain, false, true),
        (code::TOOL_ERROR_LIMIT, Ran::No, permanent, Plain, false, true),
        (code::INVALID_ENVELOPE, Ran::No, permanent, Plain, false, true),
        (code::UNCLASSIFIED, Ran::Unknown, transient, Plain, true, false),
    ] {
        let error = Refused::boxed(code, ran, verdict);
        // A mutating call that may have run is reported as not retriable.
        let is_safe = !retriable || ran == Ran::No;
        let envelope = ToolResultEnvelope::of(&call(), Err(&*error), 2, DURATION);
        let failure = envelope.error.as_ref().unwrap();
        assert_eq!((failure.retriable, failure.terminal || is_safe), (retriable && is_safe, true));
        let call = || call().effect(Effect::ReadOnly);
        let envelope = ToolResultEnvelope::of(&call(), Err(&*error), 2, DURATION);
        let failure = envelope.error.as_ref().unwrap();
        assert_eq!((envelope.status, &*failure.code), (status, code));
        assert_eq!((failure.retriable, failure.terminal), (retriable, terminal), "{code}");
        assert_eq!(failure.ran, Some(ran));
        assert_eq!(&*failure.message, "the layer refused the call");
        // The last real cause is attached.
        assert_eq!(failure.cause.as_deref(), Some("connection refused"));
        assert!(ToolResultEnvelope::read(envelope.to_json().get()).is_ok());

        let response = ToolResponse::of(&call(), Err(&*error), DURATION);
        let failure = response.error.as_ref().unwrap();
        assert_eq!((response.status, failure.retryable), (ResponseStatus::Error, retriable));
        assert_eq!(
            (failure.ran, failure.cause.as_deref()),
            (Some(ran), Some("connection refused"))
        );
        assert!(ToolResponse::read(response.to_json().get()).is_ok());
    }
}

#[test]
fn a_tools_own_failure_keeps_its_words_and_gets_ours_behind_them() {
    let mut error = ToolError::new("bad_airport", "Invalid airport code: XYZ");
    error.verdict = Some(Verdict::Permanent);
    error.ran = Ran::Yes;
    error.details = Some(json(r#"{"given": "XYZ"}"#));
    let mut outcome = ToolOutcome::failure(error);
    outcome.parts_mut().notes.push("[NON-RETRYABLE]".into());
    outcome.set_unrecorded();

    let envelope = ToolResultEnvelope::of(&call(), Ok(&outcome), 1, DURATION);
    assert_same(
        envelope.to_json().get(),
        r#"{"requestId": "r-1", "status": "error", "fromCache": false, "toolName": "search",
            "durationMs": 12, "attempts": 1, "error": {
                "code": "bad_airport", "message": "Invalid airport code: XYZ\n[NON-RETRYABLE]",
                "retriable": false, "terminal": true, "ran": "yes", "recorded": false,
                "details": {"given": "XYZ"}
            }}"#,
    );
    let back = ToolOutcome::from(envelope);
    let error = back.error().unwrap();
    assert_eq!((error.retryable, error.ran), (Some(false), Ran::Yes));
    assert_eq!(error.details, Some(json(r#"{"given": "XYZ"}"#)));
}

#[test]
fn a_failure_that_was_retried_already_is_exhausted_here_and_further_out() {
    let mut error = ToolError::new("timeout", "Tool timeout after 30s");
    (error.verdict, error.exhausted) = (Some(Verdict::TRANSIENT), true);
    let outcome = ToolOutcome::failure(error);
    let envelope = ToolResultEnvelope::of(&call(), Ok(&outcome), 4, DURATION);
    assert_eq!(envelope.status, Status::RetryExhausted);
    assert!(envelope.error.as_ref().unwrap().terminal);
    assert!(ToolOutcome::from(envelope).error().unwrap().exhausted);
}

#[test]
fn a_breakers_state_travels() {
    let mut error = ToolError::new(code::CIRCUIT_OPEN, "open");
    error.breaker = Some(BreakerState::ForcedOpen);
    let outcome = ToolOutcome::failure(error);
    let envelope = ToolResultEnvelope::of(&call(), Ok(&outcome), 0, DURATION);
    assert_eq!(envelope.status, Status::CircuitOpen);
    assert!(envelope.to_json().get().contains(r#""breakerState":"FORCED_OPEN""#));
    let back = ToolOutcome::from(ToolResultEnvelope::read(RESULT).unwrap());
    assert_eq!(back.error().unwrap().breaker, Some(BreakerState::HalfOpen));
}

#[test]
fn ut_07_chunks_have_an_index_and_the_last_says_so() {
    let chunk = |index, last| {
        let mut outcome = ToolOutcome::success(json("\"a\""));
        outcome.parts_mut().chunk = Some(Chunk { index, last });
        ToolResponse::of(&call(), Ok(&outcome), DURATION)
    };
    let middle = chunk(0, false);
    assert_eq!(middle.status, ResponseStatus::Partial);
    assert_eq!(
        (middle.is_streaming, middle.chunk_index, middle.final_chunk),
        (Some(true), Some(0), Some(false))
    );
    let last = chunk(1, true);
    assert_eq!(last.status, ResponseStatus::Success);
    assert_eq!(
        (last.is_streaming, last.chunk_index, last.final_chunk),
        (Some(false), Some(1), Some(true))
    );
    let back = ToolOutcome::from(ToolResponse::read(RESPONSE).unwrap());
    assert_eq!(back.parts().chunk, Some(Chunk { index: 3, last: false }));
    assert_eq!(back.parts().emitted_spans, ["span-2".into()]);
    assert_eq!(back.parts().tool_version.as_deref(), Some("2.1.0"));
    assert_eq!(back.parts().duration, Some(Duration::from_millis(1523)));
}
