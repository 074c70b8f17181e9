//! Gemini contents.
//!
//! From "Function calling", the reference of `Content` and `Part`, and the server's answers: "ensure
//! that function call turn comes immediately after a user turn or after a function response turn",
//! "the number of function response parts is equal to the number of function call parts".
use super::{Told, text};
use serde_json::Value;

/// A part has one of these: the reference's `oneof`, in both spellings that the server takes.
const DATA: [&str; 11] = [
    "text",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
    "executableCode",
    "codeExecutionResult",
];

pub(crate) fn contents(contents: &[Value]) -> Told {
    let mut told = Told::default();
    for (at, content) in contents.iter().enumerate() {
        if !["user", "model", "function", ""].contains(&text(content, "role")) {
            told.is_misplaced |= content["role"] == "system";
            told.wrong(at, "please use a valid role: user, model");
        }
        parts(&mut told, at, content);
        let before = at.checked_sub(1).map(|before| &contents[before]);
        let called = of(content, "functionCall", "function_call");
        let answered = of(content, "functionResponse", "function_response");
        if !called.is_empty() && before.is_none_or(|before| before["role"] == "model") {
            told.wrong(at, "a function call turn comes right after a user or a response turn");
        }
        let asked = before.map_or(0, |before| of(before, "functionCall", "function_call").len());
        if !answered.is_empty() && asked == 0 {
            told.wrong(at, "a function response turn comes right after a function call turn");
        } else if asked != answered.len() {
            told.wrong(at, "as many function response parts as function call parts");
        }
        if !called.is_empty() && content["role"] != "model" {
            told.is_misplaced = true;
            told.member(at, "function calls are the model's");
        }
        if at + 1 == contents.len() {
            told.open.extend(called.iter().map(|call| text(call, "name").to_owned()));
        }
    }
    told.settled()
}

fn of<'a>(content: &'a Value, member: &str, other: &str) -> Vec<&'a Value> {
    let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
    parts.iter().filter_map(|part| part.get(member).or_else(|| part.get(other))).collect()
}

fn parts(told: &mut Told, at: usize, content: &Value) {
    let Some(parts) = content["parts"].as_array().filter(|parts| !parts.is_empty()) else {
        return told.member(at, "contents.parts must not be empty");
    };
    for part in parts {
        if !DATA.iter().any(|member| part.get(member).is_some()) {
            told.member(at, "required oneof field 'data' must have one initialized field");
        }
    }
    for call in of(content, "functionCall", "function_call") {
        if text(call, "name").is_empty() {
            told.member(at, "function_call.name: name cannot be empty");
        }
        if !call["args"].is_null() && !call["args"].is_object() {
            told.member(at, "function_call.args: expected a struct");
        }
    }
    for response in of(content, "functionResponse", "function_response") {
        if text(response, "name").is_empty() {
            told.member(at, "function_response.name: name cannot be empty");
        }
        if !response["response"].is_object() {
            told.member(at, "function_response.response: expected a struct");
        }
    }
}
