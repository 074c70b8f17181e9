//! The acceptance cases, by the literal message alone.
use tr_core::{
    Classification, Json, ToolError, ToolManifest, Verdict, classify, classify::Finding,
};

fn is(found: Finding<'_>, verdict: Verdict, reason: &str) {
    assert_eq!((found.end.verdict, found.reason()), (verdict, reason));
}

#[test]
fn eh_1_1_network_timeout_is_transient() {
    let found = classify::message("Connection timeout after 30s");
    is(found, Verdict::TRANSIENT, "Network timeouts are temporary");
}

#[test]
fn eh_1_2_invalid_input_is_permanent() {
    let found = classify::message("Invalid airport code: XYZ");
    is(found, Verdict::Permanent, "Invalid input won't change on retry");
}

#[test]
fn eh_1_3_rate_limit_is_transient() {
    let found = classify::message("Rate limit exceeded (429)");
    is(found, Verdict::TRANSIENT, "Rate limits reset over time");
}

#[test]
fn eh_1_4_auth_failure_is_permanent() {
    let found = classify::message("Authentication failed (401)");
    is(found, Verdict::Permanent, "Auth won't change on retry");
}

fn treat_503_as_permanent(key: &str) -> ToolManifest {
    let mut tool = ToolManifest::new("custom_api");
    tool.classification = vec![(key.into(), Verdict::Permanent)];
    tool
}

#[test]
fn eh_1_5_manifest_overrides_classification() {
    let found = classify::message("Service unavailable (503)");
    assert_eq!(found.end.verdict, Verdict::TRANSIENT);
    for key in ["503", "service_unavailable"] {
        let found = found.with_manifest(&treat_503_as_permanent(key));
        is(found, Verdict::Permanent, "Tool manifest override respected");
    }
    assert_eq!(found.with_manifest(&treat_503_as_permanent("502")), found);
}

/// As an adapter writes it into the error, under a stable code.
#[test]
fn eh_1_5_manifest_overrides_a_classification_that_was_made_before() {
    let end = classify::json_rpc(-32_050, "Service unavailable (503)").end;
    let mut error = ToolError::new(end.code, "Service unavailable (503)").classified(end);
    error.details = Some(Json::from_text(r#"{"code":-32050}"#).unwrap());
    let found = classify::tool_error(&error);
    for key in ["503", "service_unavailable", "-32050"] {
        let tool = treat_503_as_permanent(key);
        is(found.with_manifest(&tool), Verdict::Permanent, "Tool manifest override respected");
        let mut stamped = error.clone();
        assert_eq!(classify::stamp(&mut stamped, Some(&tool)), "Tool manifest override respected");
        assert_eq!((stamped.verdict, &*stamped.code), (Some(Verdict::Permanent), end.code));
    }
    assert_eq!(found.with_manifest(&treat_503_as_permanent("502")), found);
}

#[test]
fn eh_1_5_manifest_overrides_what_the_tool_says() {
    let mut error = ToolError::new("BUSY_NOW", "come back");
    error.retryable = Some(false);
    let mut tool = ToolManifest::new("custom_api");
    tool.classification = vec![("busy_now".into(), Verdict::TRANSIENT)];
    let found = classify::tool_error(&error);
    assert_eq!(found.end.verdict, Verdict::Permanent);
    is(found.with_manifest(&tool), Verdict::TRANSIENT, "Tool manifest override respected");
}

#[test]
fn eh_1_5_manifest_overrides_an_http_status_and_keeps_the_hint() {
    let header = |name: &str| (name == "retry-after").then_some("2");
    let found = classify::http_response(503, header, &tr_core::SetClock::at(0));
    let found = found.with_manifest(&treat_503_as_permanent("503"));
    is(found, Verdict::Permanent, "Tool manifest override respected");
    let success = classify::http_response(200, header, &tr_core::SetClock::at(0));
    assert_eq!(success.with_manifest(&treat_503_as_permanent("200")).end, Classification::SUCCESS);
}

#[test]
fn eh_4_3_timeout_is_transient() {
    let found = classify::message("Tool timeout after 30s");
    is(found, Verdict::TRANSIENT, "Timeout is temporary");
    assert_eq!(found.end.code, "timeout");
}

#[test]
fn eh_3_4_reason_why_permanent_errors_are_not_counted() {
    let reason = classify::reason::NOT_COUNTED;
    assert_eq!(reason, "Permanent errors don't indicate service issues");
    for message in ["Invalid input", "Auth failure", "Not found"] {
        assert_eq!(classify::message(message).end.verdict, Verdict::Permanent, "{message}");
    }
}

#[test]
fn eh_3_5_short_messages_are_transient() {
    for message in ["Timeout", "Rate limit", "Connection reset"] {
        assert!(classify::message(message).end.verdict.is_transient(), "{message}");
    }
}

#[test]
fn tg_4_error_classification() {
    for message in [
        "Missing required parameter: path",
        "Missing parameters for edit",
        "Expected string but received undefined",
        "Missing required property oldText",
        "TypeError [ERR_INVALID_ARG_TYPE]: The \"path\" argument must be of type string",
        "TypeError: read() missing 1 required positional argument: 'path'",
        "Type error: expected a string",
        "MCP error -32602: Input validation error: Invalid arguments for tool read: [",
        "2 validation errors for readArguments\npath\n  Field required [type=missing]",
    ] {
        assert!(classify::is_deterministic(message), "{message}");
        assert_eq!(classify::message(message).end.verdict, Verdict::Permanent, "{message}");
    }
    for message in [
        "timeout",
        "TypeError: fetch failed",
        "TypeError: Failed to fetch",
        "Expected string\nbut received undefined",
        "missing required parameter",
        "a type\nof error: argument",
        "1 validation error for WeatherReport\ntemperature\n  Field required [type=missing]",
        "",
    ] {
        assert!(!classify::is_deterministic(message), "{message}");
    }
}

#[test]
fn tg_5_model_attribution() {
    for (id, provider) in [
        ("toolu_01A", "anthropic"),
        ("call_abc", "fireworks/openai-compat"),
        ("functions.read:0", "unknown"),
        ("", "unknown"),
        ("Toolu_01A", "unknown"),
    ] {
        assert_eq!(classify::provider_of(id), provider, "{id}");
    }
}
