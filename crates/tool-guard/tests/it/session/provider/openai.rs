//! OpenAI Chat Completions and Responses.
//!
//! From the API reference's request types and the server's answers: "An assistant message with
//! 'tool_calls' must be followed by tool messages", "No tool output found for function call", "No
//! tool call found for function call output". Ids may repeat.
use super::{Told, is_plain, text};
use serde_json::Value;

pub(crate) fn chat(messages: &[Value]) -> Told {
    let mut told = Told::default();
    // What the last assistant message called; `None` where another message came since.
    let mut called: Option<Vec<&str>> = None;
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = text(message, "role");
        if role == "tool" {
            let id = text(message, "tool_call_id");
            let is_of_it = called.as_ref().is_some_and(|called| called.contains(&id));
            if !is_of_it || id.is_empty() {
                told.wrong(at, "role 'tool' must be a response to a preceding 'tool_calls'");
            }
            if let Some(found) = open.iter().position(|other| *other == id) {
                open.remove(found);
            }
            content(&mut told, at, message);
            continue;
        }
        if !open.is_empty() {
            told.wrong(at, &format!("tool_call_ids without response messages: {open:?}"));
        }
        (called, open) = (None, Vec::new());
        match role {
            "assistant" => {
                open = assistant(&mut told, at, message);
                called = Some(open.clone());
            }
            "system" | "developer" | "user" | "function" => content(&mut told, at, message),
            _ => told.wrong(at, "unknown role"),
        }
    }
    told.open = open.into_iter().map(str::to_owned).collect();
    told
}

fn content(told: &mut Told, at: usize, message: &Value) {
    let is_fine = match &message["content"] {
        Value::String(_) => true,
        Value::Array(parts) => {
            !parts.is_empty() && parts.iter().all(|part| part["type"].is_string())
        }
        _ => false,
    };
    if !is_fine {
        told.member(at, "content: expected a string or a list of parts");
    }
}

fn assistant<'a>(told: &mut Told, at: usize, message: &'a Value) -> Vec<&'a str> {
    let calls = &message["tool_calls"];
    let has_other =
        ["refusal", "audio", "function_call"].iter().any(|other| !message[other].is_null());
    if calls.is_null() {
        if !has_other {
            content(told, at, message);
        }
        return Vec::new();
    }
    let Some(calls) = calls.as_array().filter(|calls| !calls.is_empty()) else {
        told.member(at, "tool_calls: expected a list with at least one");
        return Vec::new();
    };
    for call in calls {
        let id = text(call, "id");
        if id.is_empty() || id.len() > 40 {
            told.member(at, "tool_calls.id: expected 1 to 40 characters");
        }
        if call["type"] == "custom" {
            continue;
        }
        let function = &call["function"];
        if !is_plain(text(function, "name"), 128) {
            told.member(at, "tool_calls.function.name does not match the pattern");
        }
        if !function["arguments"].is_string() {
            told.member(at, "tool_calls.function.arguments: expected a string");
        }
    }
    calls.iter().map(|call| text(call, "id")).collect()
}

/// The items that call, and what their outputs are called.
const CALLS: [&str; 6] = [
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
];

pub(crate) fn responses(items: &[Value]) -> Told {
    let mut told = Told::default();
    let last_prompt = items.iter().rposition(|item| item["role"] == "user").unwrap_or(0);
    for (at, item) in items.iter().enumerate() {
        let kind = text(item, "type");
        let (before, after) = (&items[..at], &items[at + 1..]);
        let id = text(item, "call_id");
        let matches =
            |other: &&Value, kind: &str| other["type"] == kind && text(other, "call_id") == id;
        if CALLS.contains(&kind) {
            call(&mut told, at, item);
            let output = format!("{kind}_output");
            let answered = after.iter().any(|other| matches(&other, &output));
            if !answered && at > last_prompt {
                told.open.push(id.to_owned());
            } else if !answered {
                told.wrong(at, &format!("no tool output found for function call {id}"));
            }
        } else if let Some(call) = kind.strip_suffix("_output").filter(|call| CALLS.contains(call))
        {
            if !before.iter().any(|other| matches(&other, call)) {
                told.wrong(at, &format!("no tool call found for function call output {id}"));
            }
            if item["output"].is_null() {
                told.member(at, "missing required parameter: output");
            }
        } else if kind == "message" || kind.is_empty() {
            message(&mut told, at, item);
        }
        let own = text(item, "id");
        if !own.is_empty() && before.iter().any(|other| text(other, "id") == own) {
            told.member(at, &format!("duplicate item found with id {own}"));
        }
    }
    told
}

fn call(told: &mut Told, at: usize, item: &Value) {
    let id = text(item, "call_id");
    if id.is_empty() || id.len() > 64 {
        told.member(at, "call_id: expected 1 to 64 characters");
    }
    if item["type"] == "function_call" {
        if !is_plain(text(item, "name"), 128) {
            told.member(at, "name does not match the pattern");
        }
        if !item["arguments"].is_string() {
            told.member(at, "arguments: expected a string");
        }
    }
}

fn message(told: &mut Told, at: usize, item: &Value) {
    if !["user", "assistant", "system", "developer"].contains(&text(item, "role")) {
        told.wrong(at, "unknown role");
    }
    if !item["content"].is_string() && !item["content"].is_array() {
        told.member(at, "content: expected a string or a list");
    }
}
