//! What is read is written again, members that nobody knows included.
use crate::samples::{BARE_CALL, CALL, FAILED_RESPONSE, REQUEST, RESPONSE, RESULT, assert_same};
use tr_wire::{
    bs_tim_5::{ToolCallEnvelope, ToolResultEnvelope},
    utee::{ToolRequest, ToolResponse},
};

pub(crate) fn call(text: &str) -> String {
    ToolCallEnvelope::read(text).unwrap().to_json().get().to_owned()
}

pub(crate) fn result(text: &str) -> String {
    ToolResultEnvelope::read(text).unwrap().to_json().get().to_owned()
}

pub(crate) fn request(text: &str) -> String {
    ToolRequest::read(text).unwrap().to_json().get().to_owned()
}

pub(crate) fn response(text: &str) -> String {
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
