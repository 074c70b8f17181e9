//! The many ways in which tools fail, and the one form that they get.
use crate::samples::{FAILED_RESPONSE, RESPONSE, RESULT};
use tr_core::{FailureInfo, Json, Ran, ToolError, ToolOutcome, Verdict};
use tr_wire::{EMPTY_RESULT, NONZERO_EXIT, NOT_OK, Normaliser, thrown};

fn outcome(text: &str) -> ToolOutcome {
    Normaliser::default().outcome(Json::from_text(text).unwrap())
}

#[track_caller]
fn failure(text: &str) -> (String, String) {
    let outcome = outcome(text);
    let error = outcome.error().unwrap_or_else(|| panic!("no failure: {text}"));
    assert_eq!(outcome.content().unwrap().get(), text, "the tool's own words are kept");
    (error.code.to_string(), error.message.to_string())
}

#[test]
fn ut_03_thrown_errors_become_tool_errors() {
    let error = FailureInfo::new("timeout", Ran::Unknown, Verdict::TRANSIENT);
    let said = thrown(&error);
    assert_eq!((&*said.code, said.ran), ("timeout", Ran::Unknown));
    assert_eq!(said.verdict, Some(Verdict::TRANSIENT));

    let own = ToolError::new("bad_airport", "Invalid airport code: XYZ");
    assert_eq!(thrown(&own), own);
    let wrapped = FailureInfo::new("x", Ran::Yes, Verdict::Permanent).because(own.clone());
    assert_eq!(thrown(&wrapped), own);
}

#[test]
fn ut_03_returned_errors_become_tool_errors() {
    for (text, code, message) in [
        (r#"{"error": "no such file"}"#, NOT_OK, "no such file"),
        (r#"{"error": {"code": "ENOENT", "message": "no such file"}}"#, "ENOENT", "no such file"),
        (
            r#"{"error": {"code": -32602, "message": "bad params"}, "id": 1}"#,
            "-32602",
            "bad params",
        ),
        (r#"{"error": true, "message": "no luck"}"#, NOT_OK, "no luck"),
        (r#"{"error": ["boom"]}"#, NOT_OK, "boom"),
        (r#"{"error": ["", "no disk", null, "no paper"]}"#, NOT_OK, "no disk; no paper"),
        (r#"{"error": [{}, {"code": "E7", "message": "quota"}]}"#, "E7", "quota"),
        (r#"{"error": [7], "message": "no luck"}"#, NOT_OK, "no luck"),
        (r#"{"error": 5}"#, "5", "Error 5"),
        (r#"{"error": -5.0, "reason": "no luck"}"#, "-5", "no luck"),
        (r#"{"error": 5, "code": "EIO"}"#, "EIO", "Error 5"),
    ] {
        assert_eq!(failure(text), (code.into(), message.into()));
    }
    let said =
        outcome(r#"{"error": {"message": "later", "retryable": false, "details": {"a": 1}}}"#);
    let error = said.error().unwrap();
    assert_eq!(error.retryable, Some(false));
    assert_eq!(error.details.as_ref().unwrap().get(), r#"{"a": 1}"#);
}

#[test]
fn ut_03_silent_failures_become_tool_errors() {
    for (text, code, message) in [
        ("null", EMPTY_RESULT, "The tool returned nothing"),
        (r#"{"ok": false}"#, NOT_OK, "The tool reported a failure and no reason"),
        (r#"{"ok":false,"reason":"quota","code":"E7"}"#, "E7", "quota"),
        (r#"{"exitCode": 1}"#, NONZERO_EXIT, "Exit code 1"),
        (
            r#"{"exit_code": 2, "stdout": "x", "stderr": "boom\n"}"#,
            NONZERO_EXIT,
            "Exit code 2: boom",
        ),
        (r#"{"returncode": -9, "stderr": " "}"#, NONZERO_EXIT, "Exit code -9"),
    ] {
        assert_eq!(failure(text), (code.into(), message.into()));
    }
}

#[test]
fn ut_03_answers_that_only_look_like_failures_stay_answers() {
    for text in [
        r#"{"ok": true, "error": "none"}"#,
        r#"{"error": null}"#,
        r#"{"error": ""}"#,
        r#"{"error": false}"#,
        r#"{"error": {}}"#,
        r#"{"error": []}"#,
        r#"{"error": [null, "", {}, 0, false]}"#,
        r#"{"error": [[]]}"#,
        r#"{"error": 0}"#,
        r#"{"error": -0.0}"#,
        r#"{"slope": 1.5, "error": 0.02}"#,
        r#"{"ok": true, "error": 5}"#,
        r#"{"exitCode": 0, "error": ["a warning"]}"#,
        r#"{"exitCode": 0, "error": "a warning"}"#,
        r#"{"ok": "false"}"#,
        r#"{"errors": []}"#,
        r#"["null"]"#,
        "false",
        "0",
        "\"\"",
        "{}",
    ] {
        assert!(outcome(text).error().is_none(), "{text}");
    }
    let silent = Normaliser::default().null_is_success();
    assert!(silent.outcome(Json::from_text("null").unwrap()).error().is_none());
}

#[test]
fn ut_03_a_long_complaint_is_cut_to_its_end() {
    let text = format!(r#"{{"exitCode": 1, "stderr": "{}the cause"}}"#, "ü".repeat(5000));
    let (_, message) = failure(&text);
    assert!(message.starts_with("Exit code 1: …ü") && message.ends_with("üthe cause"));
    assert!(message.len() < 2100);
}

#[test]
fn ut_03_a_failure_that_is_said_already_is_left_alone() {
    let said = ToolOutcome::failure(ToolError::new("x", "y"));
    let after = Normaliser::default().normalise(said.clone());
    assert_eq!(after.error(), said.error());
}

#[test]
fn ut_04_an_envelope_of_either_form_is_not_wrapped_again() {
    let said = outcome(RESULT);
    assert_eq!(said.error().unwrap().message.as_ref(), "the breaker is open");
    assert!(said.from_cache());
    assert_eq!(said.content().unwrap().get(), r#"{"partial": [1, 2]}"#);

    let said = outcome(RESPONSE);
    assert_eq!(said.content().unwrap().get(), r#"{"lines": ["a"]}"#);
    assert_eq!(said.parts().chunk.unwrap().index, 3);

    let said = outcome(FAILED_RESPONSE);
    let error = said.error().unwrap();
    assert_eq!((&*error.code, error.retryable), ("rate_limit", Some(true)));
    assert_eq!(&*error.message, "Rate limit exceeded (429)");
}

#[test]
fn ut_04_a_look_alike_is_wrapped() {
    for text in [
        // What many services send.
        r#"{"requestId": "aws-1", "status": "success", "data": [1]}"#,
        r#"{"requestId": "aws-1", "status": "success", "result": 1}"#,
        r#"{"status": "success", "result": 1, "durationMs": 5}"#,
        // A status of its own, a member of the wrong type, both outcomes at once.
        r#"{"requestId": "r", "status": "done", "result": 1, "durationMs": 5}"#,
        r#"{"requestId": 7, "status": "success", "result": 1, "durationMs": 5}"#,
        r#"{"requestId": "r", "status": "success", "durationMs": 5}"#,
        r#"{"requestId": "r", "status": "success", "fromCache": "no", "toolName": "x", "durationMs": 1, "attempts": 1}"#,
    ] {
        let said = outcome(text);
        assert!(said.error().is_none(), "{text}");
        assert_eq!(said.content().unwrap().get(), text);
    }
}

#[test]
fn ut_04_an_error_without_its_required_fields_is_no_envelope() {
    // It has no `retryable`, so it is a returned error, kept whole.
    let text = r#"{"requestId": "r", "status": "error", "durationMs": 5, "error": {"code": "c", "message": "m"}}"#;
    assert_eq!(failure(text), ("c".into(), "m".into()));
}
