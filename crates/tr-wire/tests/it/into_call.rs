//! From envelopes to calls.
use crate::samples::{BARE_CALL, CALL, REQUEST};
use std::time::{Duration, Instant};
use tr_core::{BreakerHint, DedupeMode, Params, Priority, ToolId, ToolManifest, call::CallContext};
use tr_wire::{
    Arrival, EnvelopeFault,
    bs_tim_5::ToolCallEnvelope,
    utee::{self, Options, ToolRequest},
};

#[expect(clippy::disallowed_methods, reason = "an instant to count from; no time passes here")]
fn arrival() -> Arrival {
    Arrival { now: Instant::now(), unix_ms: 1_700_000_000_000 }
}

fn no_id() -> Box<str> {
    panic!("the request has an id")
}

#[test]
fn every_field_of_a_call_envelope_reaches_the_call() {
    let arrival = arrival();
    let call = ToolCallEnvelope::read(CALL).unwrap().into_call(arrival).unwrap();
    let parts = call.parts();
    assert_eq!(parts.tool, ToolId::from_parts(Some("agents.tools.messaging"), "message", None));
    assert_eq!(parts.request_id.as_deref(), Some("0190b3c4-0000-7000-8000-000000000001"));
    assert_eq!(parts.tool_call_id.as_deref(), Some("toolu_01"));
    let context = &parts.context;
    let context = [
        &context.agent,
        &context.session,
        &context.actor,
        &context.workspace,
        &context.correlation,
        &context.tenant,
    ];
    let context = context.map(|part| part.as_deref().unwrap());
    assert_eq!(context, ["larry", "s-1", "ada", "w-1", "c-1", "t-1"]);
    assert_eq!(
        parts.params.get(),
        r#"{"to": "bob", "snowflake": 9007199254740993, "nested": {"z": 1, "a": [1.50, null]}}"#
    );
    assert_eq!(parts.idempotency.key.as_deref(), Some("k-1"));
    assert_eq!(parts.idempotency.mode, DedupeMode::BestEffort);
    assert!(parts.hints.safety_critical && !parts.hints.expected_retry_safe);
    assert_eq!(parts.hints.timeout, Some(Duration::from_millis(2500)));
    let retry = parts.retry.as_ref().unwrap();
    assert_eq!((retry.attempts, retry.max_elapsed), (Some(4), Some(Duration::from_secs(30))));
    assert_eq!((retry.base, retry.cap, &retry.only_codes), (None, None, &None));
    assert_eq!(parts.breaker, Some(BreakerHint::Dependency));
    assert_eq!(parts.deadline, Some(arrival.now + Duration::from_secs(60)));
    assert_eq!(parts.tags, ["a".into(), "b".into()]);
    assert_eq!(parts.from_hook.as_deref(), Some("before"));
    assert!(parts.trace.traceparent.as_deref().unwrap().starts_with("00-4bf9"));
    assert_eq!(
        parts.trace.baggage,
        [("user".into(), "ada".into()), ("region".into(), "eu".into())]
    );
}

#[test]
fn a_deadline_of_the_past_is_now() {
    let arrival = arrival();
    let text = CALL.replace("1700000060000", "1600000000000");
    let call = ToolCallEnvelope::read(text).unwrap().into_call(arrival).unwrap();
    assert_eq!(call.parts().deadline, Some(arrival.now));
}

#[test]
fn every_field_of_a_request_reaches_the_call() {
    let mut context = CallContext::default();
    context.session = Some("s-9".into());
    let request =
        ToolRequest::read(REQUEST.replace("\"tool\"", "\"cancellationId\": \"stop-1\", \"tool\""));
    let call = request.unwrap().into_call(context.clone(), no_id).unwrap();
    let parts = call.parts();
    assert_eq!(parts.tool, ToolId::from_parts(None, "exec", Some("run")));
    assert_eq!(parts.request_id.as_deref(), Some("abc123"));
    assert_eq!(parts.context, context);
    assert_eq!(parts.idempotency.key.as_deref(), Some("git-status-repo-x"));
    assert_eq!(parts.hints.timeout, Some(Duration::from_secs(5)));
    assert_eq!(parts.priority, Priority::High);
    let trace = &parts.trace;
    let trace = [&trace.trace_id, &trace.span_id, &trace.parent_span_id];
    assert_eq!(trace.map(|id| id.as_deref().unwrap()), ["trace-456", "span-1", "span-0"]);
    assert_eq!(parts.cancellation_id.as_deref(), Some("stop-1"));
    assert!(parts.hints.prefer_streaming);
    assert_eq!(parts.hints.cache_key.as_deref(), Some("status"));
    let retry = parts.retry.as_ref().unwrap();
    assert_eq!(retry.attempts, Some(2));
    assert_eq!(retry.base, Some(Duration::from_millis(100)));
    assert_eq!(retry.cap, Some(Duration::from_secs(5)));
    assert_eq!((retry.multiplier, retry.jitter), (Some(2.0), Some((0.8, 1.2))));
    assert_eq!(retry.only_codes.as_deref(), Some(&["rate_limit".into()][..]));
    assert_eq!(retry.max_elapsed, None);
}

#[test]
fn ut_02_what_a_request_leaves_out_has_its_default() {
    let request = ToolRequest::read(r#"{"tool": "exec", "action": "run", "params": {}}"#).unwrap();
    let call = request.into_call(CallContext::default(), || "made-up".into()).unwrap();
    assert_eq!(call.parts().request_id.as_deref(), Some("made-up"));
    assert_eq!(call.parts().priority, Priority::Normal);
    // The tool's own timeout holds: the call has none.
    let mut manifest = ToolManifest::new(call.parts().tool.clone());
    manifest.timeout = Some(Duration::from_secs(7));
    let call = call.manifested(manifest.into());
    let timeout = tr_core::RequestPolicy::attempt_timeout(&tr_core::DefaultPolicy, &call);
    assert_eq!(timeout, Some(Duration::from_secs(7)));
}

/// The example of UTEE's appendix A.
const APPENDIX_A: &str = r#"{
    "command": "git status",
    "_utee": {
        "idempotencyKey": "git-status-repo-x",
        "timeout": 5000,
        "retryPolicy": { "maxAttempts": 2 }
    }
}"#;

#[test]
fn utee_options_leave_the_params_before_anybody_looks() {
    let params = Params::from_text(APPENDIX_A).unwrap();
    let call = utee::bare_call("exec", &params, CallContext::default(), || "r".into()).unwrap();
    let parts = call.parts();
    assert_eq!(parts.params.get(), r#"{"command":"git status"}"#);
    assert_eq!(parts.idempotency.key.as_deref(), Some("git-status-repo-x"));
    assert_eq!(parts.hints.timeout, Some(Duration::from_secs(5)));
    let retry = parts.retry.as_ref().unwrap();
    assert_eq!((retry.attempts, retry.base), (Some(2), None));
    let plain = Params::from_text(r#"{"command": "git status"}"#).unwrap();
    let plain = utee::bare_call("exec", &plain, CallContext::default(), || "r".into()).unwrap();
    assert_eq!(call.digest(), plain.digest());
}

#[test]
fn utee_options_count_where_the_envelope_says_nothing() {
    let with = |text: &str| {
        text.replace(
            "\"params\": {",
            &format!("\"params\": {{{},", &APPENDIX_A[1..APPENDIX_A.len() - 1]),
        )
        .replace(",}", "}")
    };
    let call = ToolCallEnvelope::read(with(BARE_CALL)).unwrap().into_call(arrival()).unwrap();
    assert_eq!(call.parts().idempotency.key.as_deref(), Some("git-status-repo-x"));
    assert_eq!(call.parts().hints.timeout, Some(Duration::from_secs(5)));
    // Both limits hold: the envelope's single attempt is the lower one.
    assert_eq!(call.parts().retry.as_ref().unwrap().attempts, Some(1));

    let call = ToolCallEnvelope::read(with(CALL)).unwrap().into_call(arrival()).unwrap();
    assert_eq!(call.parts().idempotency.key.as_deref(), Some("k-1"));
    assert_eq!(call.parts().hints.timeout, Some(Duration::from_millis(2500)));
    assert_eq!(call.parts().retry.as_ref().unwrap().attempts, Some(2));
    assert!(!call.parts().params.get().contains("_utee"));
}

#[test]
fn an_escaped_name_hides_no_options_and_others_stay_the_same_text() {
    let hidden = Params::from_text(r#"{"\u005futee": {"timeout": 5}, "a": 1.50}"#).unwrap();
    let (params, options) = Options::take(&hidden).unwrap();
    assert_eq!((params.get(), options.unwrap().timeout), (r#"{"a":1.50}"#, Some(5)));

    let plain = Params::from_text(r#"{"a":  {"_utee": 1}, "b": "\u00e9"}"#).unwrap();
    let (params, options) = Options::take(&plain).unwrap();
    assert!(params.ptr_eq(&plain) && options.is_none());
}

#[test]
fn options_of_the_wrong_form_are_refused() {
    let params = Params::from_text(r#"{"_utee": {"timeout": -5, "priority": "now"}}"#).unwrap();
    let error = Options::take(&params).unwrap_err();
    let pointers: Vec<_> = error.faults().iter().map(EnvelopeFault::pointer).collect();
    assert_eq!(pointers, ["/_utee/timeout", "/_utee/priority"]);
}
