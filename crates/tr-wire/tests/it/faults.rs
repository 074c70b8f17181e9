//! What is refused, and how it is said.
use crate::samples::{BARE_CALL, CALL, REQUEST, RESULT};
use tr_core::{
    DefaultPolicy, Ran, ResponsePolicy, Status, ToolOutcome, Verdict, code, failure_info,
};
use tr_wire::{
    EnvelopeFault, InvalidEnvelope,
    bs_tim_5::{ToolCallEnvelope, ToolResultEnvelope},
    utee::{ToolRequest, ToolResponse},
};

fn pointers(error: &InvalidEnvelope) -> Vec<&str> {
    error.faults().iter().map(EnvelopeFault::pointer).collect()
}

/// Replaces `from` in a text that must hold it.
#[track_caller]
fn swapped(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not there");
    text.replace(from, to)
}

#[test]
fn tr_01_a_malformed_envelope_is_one_terminal_error_that_names_every_fault() {
    let text = r#"{
        "contractVersion": "2.0", "requestId": "", "toolNamespace": 7, "tool_name": "x",
        "target": {"sessionKey": null, "actorId": "a"},
        "payload": {"version": "1.0", "params": [1], "callHints": {"timeoutMs": -1, "safetyCritical": "yes"}},
        "transport": {"dedupeMode": "sometimes", "retryBudget": {"maxAttempts": 0, "maxElapsedMs": 1.5}},
        "control": {"requestTags": ["a", 1, "b", {}]},
        "trace": {"baggage": {"a/b": 1}}
    }"#;
    let error = ToolCallEnvelope::read(text).unwrap_err();
    assert_eq!(error.form(), "ToolCallEnvelope");
    let found: Vec<_> = error
        .faults()
        .iter()
        .map(|fault| (fault.pointer(), fault.expected(), fault.found()))
        .collect();
    assert_eq!(
        found,
        [
            ("/toolName", "a non-empty string", "nothing"),
            ("/contractVersion", "\"1.1\"", "\"2.0\""),
            ("/requestId", "a non-empty string", "an empty string"),
            ("/toolNamespace", "a string", "7"),
            ("/target/sessionKey", "a non-empty string", "null"),
            ("/payload/params", "an object", "an array"),
            (
                "/payload/callHints/timeoutMs",
                "a whole number of milliseconds from 1 to 9007199254740991",
                "-1"
            ),
            ("/payload/callHints/safetyCritical", "true or false", "a string"),
            (
                "/transport/dedupeMode",
                "\"enforced\", \"enabled\", \"bestEffort\" or \"disabled\"",
                "\"sometimes\""
            ),
            ("/transport/retryBudget/maxAttempts", "a whole number from 1 to 1000", "0"),
            (
                "/transport/retryBudget/maxElapsedMs",
                "a whole number of milliseconds from 0 to 9007199254740991",
                "1.5"
            ),
            ("/control/requestTags/1", "a string", "1"),
            ("/control/requestTags/3", "a string", "an object"),
            ("/trace/baggage/a~1b", "a string", "1"),
        ]
    );
    assert_eq!(
        error.faults()[0].suggestion(),
        Some("\"tool_name\" is there; did you mean \"toolName\"?")
    );
}

#[test]
fn tr_01_the_error_says_that_nothing_ran_and_nothing_is_to_be_retried() {
    let text = swapped(CALL, "\"toolName\": \"message\",", "");
    let text = swapped(&text, "\"contractVersion\": \"1.1\"", "\"contractVersion\": \"1.0\"");
    let error = ToolCallEnvelope::read(text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid ToolCallEnvelope: /toolName: expected a non-empty string, found nothing; \
         /contractVersion: expected \"1.1\", found \"1.0\""
    );
    let said = failure_info(&error).unwrap();
    assert_eq!((said.code(), said.ran()), (code::INVALID_ENVELOPE, Ran::No));
    assert_eq!(said.verdict(), Verdict::Permanent);
    let judged = ResponsePolicy::<ToolOutcome>::classify(&DefaultPolicy, Err(&error));
    assert_eq!((judged.verdict, judged.ran), (Verdict::Permanent, Ran::No));
    assert_eq!(Status::of(judged, false), Status::Error);
}

#[test]
fn tr_01_a_valid_envelope_is_still_read() {
    assert!(ToolCallEnvelope::read(CALL).is_ok());
    assert!(ToolCallEnvelope::read(BARE_CALL).is_ok());
}

#[test]
fn what_is_no_json_is_named_with_its_byte() {
    for (text, pointer, found) in [
        ("", "", "unexpected end at byte 0"),
        ("{\"a\": }", "/a", "unexpected byte at byte 6"),
        ("{} x", "", "trailing data after the value at byte 3"),
        ("\u{feff}{}", "", "byte order mark at byte 0"),
    ] {
        let error = ToolCallEnvelope::read(text).unwrap_err();
        let [fault] = error.faults() else { panic!("{error}") };
        assert_eq!((fault.pointer(), fault.expected(), fault.found()), (pointer, "JSON", found));
    }
    let error = ToolCallEnvelope::read(b"{\"a\": \"\xff\"}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid ToolCallEnvelope: the whole text: expected JSON in UTF-8, found other bytes at byte 7"
    );
}

#[test]
fn params_without_canonical_form_are_named_one_and_all() {
    let params = r#"{"a": 1, "a": 2, "b": [1e400, {"c": "\ud800"}], "d": {"x": 0, "x": 0}}"#;
    let text = swapped(BARE_CALL, "\"params\": {}", &format!("\"params\": {params}"));
    let error = ToolCallEnvelope::read(&text).unwrap_err();
    let mut found = pointers(&error);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "/payload/params/a",
            "/payload/params/b/0",
            "/payload/params/b/1/c",
            "/payload/params/d/x"
        ]
    );
}

#[test]
fn names_given_twice_are_refused_at_every_level() {
    let text = swapped(
        BARE_CALL,
        "\"control\": {}",
        "\"control\": {}, \"control\": {}, \"x\": 1, \"x\": 2",
    );
    let error = ToolCallEnvelope::read(&text).unwrap_err();
    assert_eq!(pointers(&error), ["/control", "/x"]);
    let result = swapped(RESULT, "\"ageMs\": 1200", "\"ageMs\": 1200, \"ageMs\": 1");
    let error = ToolResultEnvelope::read(&result).unwrap_err();
    assert_eq!(pointers(&error), ["/cache/ageMs"]);
}

#[test]
fn what_nests_too_deep_is_refused() {
    let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let call = |levels| BARE_CALL.replace("{}}", &format!("{{\"x\": {}}}}}", deep(levels)));
    assert!(ToolCallEnvelope::read(call(125)).is_ok());
    let error = ToolCallEnvelope::read(call(126)).unwrap_err();
    assert_eq!(error.faults()[0].expected(), "at most 128 levels of nesting");
    let response = |levels| {
        format!(r#"{{"requestId": "r", "status": "success", "result": {}}}"#, deep(levels))
    };
    assert!(ToolResponse::read(response(127)).is_ok());
    assert!(ToolResponse::read(response(128)).is_err());
    assert!(ToolResponse::read(response(100_000)).is_err());
}

#[test]
fn content_may_be_any_json() {
    let text = r#"{"requestId": "r", "status": "success", "durationMs": 1,
        "result": {"cut": "\ud83d", "huge": 1e999, "a": 1, "a": 2}}"#;
    let response = ToolResponse::read(text).unwrap();
    assert_eq!(
        response.result.unwrap().get(),
        r#"{"cut": "\ud83d", "huge": 1e999, "a": 1, "a": 2}"#
    );
}

#[test]
fn faults_never_show_what_could_be_a_secret() {
    let secret = "sk-live-4f9a8b7c6d5e4f3a2b1c";
    let text = swapped(BARE_CALL, "\"enforced\"", &format!("{secret:?}"));
    let text = swapped(&text, "\"version\": \"1.0\"", &format!("\"version\": {secret:?}"));
    let text = swapped(&text, "\"control\": {}", &format!("\"control\": {secret:?}"));
    let error = ToolCallEnvelope::read(&text).unwrap_err();
    assert_eq!(error.faults().len(), 3);
    assert!(!format!("{error} {error:?}").contains("live"), "{error}");
}

#[test]
fn a_flood_of_faults_is_counted_and_not_kept() {
    let tags = vec!["1"; 1000].join(",");
    let text = swapped(
        BARE_CALL,
        "\"control\": {}",
        &format!("\"control\": {{\"requestTags\": [{tags}]}}"),
    );
    let error = ToolCallEnvelope::read(&text).unwrap_err();
    assert_eq!(error.faults().len(), 100);
    assert!(error.to_string().ends_with("; and 900 more"));
}

#[test]
fn settings_have_limits() {
    for (from, to, pointer) in [
        ("\"timeout\": 5000", "\"timeout\": 0", "/timeout"),
        ("\"timeout\": 5000", "\"timeout\": 0.5", "/timeout"),
        ("\"timeout\": 5000", "\"timeout\": \"5s\"", "/timeout"),
        ("\"timeout\": 5000", "\"timeout\": 9007199254740992", "/timeout"),
        ("\"high\"", "\"urgent\"", "/priority"),
        ("\"maxAttempts\": 2", "\"maxAttempts\": 1001", "/hints/retryPolicy/maxAttempts"),
        ("\"jitterPercent\": 20", "\"jitterPercent\": 101", "/hints/retryPolicy/jitterPercent"),
        (
            "\"backoffMultiplier\": 2.0",
            "\"backoffMultiplier\": 0.5",
            "/hints/retryPolicy/backoffMultiplier",
        ),
        ("\"rate_limit\"", "429", "/hints/retryPolicy/retryableErrors/0"),
    ] {
        let error = ToolRequest::read(swapped(REQUEST, from, to)).unwrap_err();
        assert_eq!(pointers(&error), [pointer]);
    }
    for whole in ["5000.0", "5e3", "50e2"] {
        let request = ToolRequest::read(swapped(REQUEST, "5000,", &format!("{whole},"))).unwrap();
        assert_eq!(request.timeout, Some(5000));
    }
}

#[test]
fn faults_of_utee_options_stand_where_they_are() {
    let text = swapped(BARE_CALL, "\"params\": {}", r#""params": {"_utee": {"timeout": 0}}"#);
    let error = ToolCallEnvelope::read(&text).unwrap_err();
    assert_eq!(pointers(&error), ["/payload/params/_utee/timeout"]);
}
