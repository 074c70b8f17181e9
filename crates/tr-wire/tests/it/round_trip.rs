//! What is read is written again, members that nobody knows included.
use crate::samples::{BARE_CALL, CALL, FAILED_RESPONSE, REQUEST, RESPONSE, RESULT, assert_same};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use tr_wire::{
    bs_tim_5::{ToolCallEnvelope, ToolResultEnvelope},
    utee::{ToolRequest, ToolResponse},
};

fn call(text: &str) -> String {
    ToolCallEnvelope::read(text).unwrap().to_json().get().to_owned()
}

fn result(text: &str) -> String {
    ToolResultEnvelope::read(text).unwrap().to_json().get().to_owned()
}

fn request(text: &str) -> String {
    ToolRequest::read(text).unwrap().to_json().get().to_owned()
}

fn response(text: &str) -> String {
    ToolResponse::read(text).unwrap().to_json().get().to_owned()
}

#[test]
fn ut_01_every_field_of_both_forms_survives() {
    assert_same(&call(CALL), CALL);
    assert_same(&call(BARE_CALL), BARE_CALL);
    assert_same(&result(RESULT), RESULT);
    assert_same(&request(REQUEST), REQUEST);
    assert_same(&response(RESPONSE), RESPONSE);
    assert_same(&response(FAILED_RESPONSE), FAILED_RESPONSE);
}

#[test]
fn ut_01_params_and_content_stay_the_text_that_came() {
    let params = r#"{"z":  1.50, "a": 9007199254740993, "é": "\u00e9"}"#;
    let text = BARE_CALL.replace("\"params\": {}", &format!("\"params\": {params}"));
    assert!(call(&text).contains(params));
    let content = r#"{"b": 1e2,   "a": 123456789012345678901234567890}"#;
    let text = RESPONSE.replace(r#"{"lines": ["a"]}"#, content);
    assert!(response(&text).contains(content));
}

#[test]
fn ut_01_strangers_are_kept_at_every_level() {
    let text = CALL.replace(": {", r#": {"x-new": {"a": 9007199254740993}, "#).replacen(
        '{',
        r#"{"x": 1, "#,
        1,
    );
    // Baggage holds strings only.
    let text = text.replace(r#""baggage": {"x-new": {"a": 9007199254740993}, "#, r#""baggage": {"#);
    assert_eq!(text.matches("x-new").count(), 9);
    assert_same(&call(&text), &text);
    for text in [RESULT, REQUEST, RESPONSE, FAILED_RESPONSE] {
        let text = text.replace(": {\n", ": {\"x\": [1], \n").replacen('{', r#"{"x": {}, "#, 1);
        let written = match text.contains("\"tool\"") {
            true => request(&text),
            false if text.contains("\"toolName\"") => result(&text),
            false => response(&text),
        };
        assert_same(&written, &text);
    }
}

#[test]
fn ut_01_null_for_an_optional_member_is_its_absence_and_is_kept() {
    let text = BARE_CALL.replace("\"control\": {}", r#""control": {"fromHook": null}"#);
    let mut envelope = ToolCallEnvelope::read(&text).unwrap();
    assert_eq!(envelope.control.from_hook, None);
    assert_same(envelope.to_json().get(), &text);
    envelope.control.from_hook = Some("h".into());
    assert_same(envelope.to_json().get(), &text.replace("null", "\"h\""));

    let text = r#"{"requestId": "r", "status": "success", "result": null}"#;
    assert_eq!(ToolResponse::read(text).unwrap().result.unwrap().get(), "null");
    assert_same(&response(text), text);
}

#[test]
fn ut_01_the_matrix_name_of_enforced_is_understood() {
    let text = BARE_CALL.replace("enforced", "enabled");
    assert_same(&call(&text), BARE_CALL);
}

fn text() -> impl Strategy<Value = Value> {
    "\\PC{0,8}".prop_map(Value::from)
}

fn name() -> impl Strategy<Value = Value> {
    "[a-zA-Z0-9:./ü-]{1,12}".prop_map(Value::from)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300).prop_map(Value::from),
        text(),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner).prop_map(Value::from)
        ]
    })
}

fn object(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    vec(("\\PC{0,6}", values), 0..4).prop_map(Map::from_iter)
}

/// An object of a form: required and optional members, and some that it does not know.
fn form(
    required: Vec<(&'static str, BoxedStrategy<Value>)>,
    optional: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> BoxedStrategy<Value> {
    let required: Vec<_> = required
        .into_iter()
        .map(|(name, value)| (Just(name), value.prop_map(Some).boxed()))
        .collect();
    let optional: Vec<_> =
        optional.into_iter().map(|(name, value)| (Just(name), option::of(value).boxed())).collect();
    let strangers = vec(("x-[a-z]{1,5}", any_json()), 0..3);
    (required, optional, strangers)
        .prop_map(|(required, optional, strangers)| {
            let known = required.into_iter().chain(optional);
            let known = known.filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(known.chain(strangers).collect())
        })
        .boxed()
}

fn words(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    select(words).prop_map(Value::from).boxed()
}

fn whole(from: u64, to: u64) -> BoxedStrategy<Value> {
    (from..=to).prop_map(Value::from).boxed()
}

fn measured() -> BoxedStrategy<Value> {
    prop_oneof![(0..1u64 << 53).prop_map(Value::from), (0.0..1e9).prop_map(Value::from)].boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

fn texts() -> BoxedStrategy<Value> {
    vec(text(), 0..4).prop_map(Value::from).boxed()
}

fn params() -> BoxedStrategy<Value> {
    object(any_json()).prop_map(Value::from).boxed()
}

const MAX: u64 = (1 << 53) - 1;

pub(crate) fn calls() -> BoxedStrategy<Value> {
    let ids = ["agentId", "workspaceId", "correlationId", "tenantId"];
    let target = form(
        vec![("sessionKey", name().boxed()), ("actorId", name().boxed())],
        ids.map(|id| (id, text().boxed())).to_vec(),
    );
    let hints = form(
        vec![],
        vec![
            ("safetyCritical", flag()),
            ("expectedRetrySafe", flag()),
            ("timeoutMs", whole(1, MAX)),
        ],
    );
    let payload = form(
        vec![("version", Just(json!("1.0")).boxed()), ("params", params())],
        vec![("idempotencyKey", name().boxed()), ("callHints", hints)],
    );
    let budget =
        form(vec![("maxAttempts", whole(1, 1000)), ("maxElapsedMs", whole(0, MAX))], vec![]);
    let transport = form(
        vec![
            ("dedupeMode", words(&["enforced", "bestEffort", "disabled"])),
            ("retryBudget", budget),
        ],
        vec![("circuitBreakerHint", words(&["tool", "dependency", "global"]))],
    );
    let control = form(
        vec![],
        vec![
            ("deadlineAtMs", whole(0, MAX)),
            ("requestTags", texts()),
            ("fromHook", text().boxed()),
        ],
    );
    let baggage = object(text()).prop_map(Value::from).boxed();
    let trace = form(vec![], vec![("traceparent", text().boxed()), ("baggage", baggage)]);
    form(
        vec![
            ("contractVersion", Just(json!("1.1")).boxed()),
            ("requestId", name().boxed()),
            ("toolName", name().boxed()),
            ("toolNamespace", text().boxed()),
            ("target", target),
            ("payload", payload),
            ("transport", transport),
            ("control", control),
            ("trace", trace),
        ],
        vec![("toolCallId", text().boxed())],
    )
}

pub(crate) fn results() -> BoxedStrategy<Value> {
    let cache = form(
        vec![
            ("matchedOn", words(&["inflight", "completed"])),
            ("ageMs", measured()),
            ("keyFingerprint", text().boxed()),
        ],
        vec![],
    );
    let output = form(vec![("content", any_json().boxed())], vec![("metadata", params())]);
    let error = form(
        vec![
            ("code", text().boxed()),
            ("message", text().boxed()),
            ("retriable", flag()),
            ("terminal", flag()),
        ],
        vec![("breakerState", words(&["CLOSED", "OPEN", "HALF_OPEN", "FORCED_OPEN"]))],
    );
    let retried = form(
        vec![
            ("attempt", whole(0, u32::MAX.into())),
            ("delayMs", measured()),
            ("reasonCode", text().boxed()),
            ("latencyMs", measured()),
        ],
        vec![],
    );
    let statuses =
        &["success", "error", "retriable_error", "retry_exhausted", "circuit_open", "timeout"];
    form(
        vec![
            ("requestId", text().boxed()),
            ("status", words(statuses)),
            ("fromCache", flag()),
            ("toolName", text().boxed()),
            ("durationMs", measured()),
            ("attempts", whole(0, u32::MAX.into())),
        ],
        vec![
            ("cache", cache),
            ("output", output),
            ("error", error),
            ("retriedBy", vec(retried, 0..3).prop_map(Value::from).boxed()),
        ],
    )
}

pub(crate) fn requests() -> BoxedStrategy<Value> {
    let policy = form(
        vec![],
        vec![
            ("maxAttempts", whole(1, 1000)),
            ("initialDelayMs", whole(0, MAX)),
            ("maxDelayMs", whole(0, MAX)),
            ("backoffMultiplier", (1.0..100.0).prop_map(Value::from).boxed()),
            ("jitterPercent", (0.0..100.0).prop_map(Value::from).boxed()),
            ("retryableErrors", texts()),
        ],
    );
    let hints = form(
        vec![],
        vec![("preferStreaming", flag()), ("cacheKey", text().boxed()), ("retryPolicy", policy)],
    );
    form(
        vec![("tool", name().boxed()), ("action", text().boxed()), ("params", params())],
        vec![
            ("requestId", name().boxed()),
            ("idempotencyKey", name().boxed()),
            ("timeout", whole(1, MAX)),
            ("priority", words(&["low", "normal", "high"])),
            ("traceId", text().boxed()),
            ("spanId", text().boxed()),
            ("parentSpanId", text().boxed()),
            ("hints", hints),
        ],
    )
}

pub(crate) fn responses() -> BoxedStrategy<Value> {
    let error = form(
        vec![("code", text().boxed()), ("message", text().boxed()), ("retryable", flag())],
        vec![("details", params())],
    );
    form(
        vec![("requestId", text().boxed()), ("status", words(&["success", "error", "partial"]))],
        vec![
            ("result", any_json().boxed()),
            ("error", error),
            ("durationMs", measured()),
            ("toolVersion", text().boxed()),
            ("spanId", text().boxed()),
            ("emittedSpans", texts()),
            ("isStreaming", flag()),
            ("chunkIndex", whole(0, MAX)),
            ("finalChunk", flag()),
        ],
    )
}

proptest! {
    #[test]
    fn ut_01_any_call_envelope_survives(value in calls()) {
        let text = value.to_string();
        assert_same(&call(&text), &text);
    }

    #[test]
    fn ut_01_any_result_envelope_survives(value in results()) {
        let text = value.to_string();
        assert_same(&result(&text), &text);
    }

    #[test]
    fn ut_01_any_request_survives(value in requests()) {
        let text = value.to_string();
        assert_same(&request(&text), &text);
    }

    #[test]
    fn ut_01_any_response_survives(value in responses()) {
        let text = value.to_string();
        assert_same(&response(&text), &text);
    }
}
