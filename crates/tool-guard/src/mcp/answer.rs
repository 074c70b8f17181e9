//! From the server's answer to an outcome, and from an outcome to the client's line.
use super::{call::McpCall, message::Message};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{borrow::Cow, fmt::Write};
use tr_core::{BoxError, Json, Ran, ToolError, ToolOutcome, classify};

/// How much of an error's text is classified and kept, in bytes.
const MAX_TEXT: usize = 8 * 1024;

/// As much of a `tools/call` result as tells success from failure.
#[derive(Deserialize)]
struct CallResult<'l> {
    #[serde(default, rename = "isError")]
    is_error: bool,
    #[serde(borrow, default)]
    content: Option<&'l RawValue>,
}

#[derive(Deserialize)]
struct Block<'l> {
    #[serde(borrow, default)]
    text: Option<Cow<'l, str>>,
}

#[derive(Deserialize)]
struct RpcError<'l> {
    #[serde(default)]
    code: i64,
    #[serde(borrow, default)]
    message: Cow<'l, str>,
}

/// What the server's answer says. A success is copied only if it is to be `recorded`.
pub(crate) fn outcome(answer: &Message<'_>, recorded: bool) -> ToolOutcome {
    if let Some(raw) = answer.error {
        let error: RpcError<'_> = serde_json::from_str(raw.get())
            .unwrap_or(RpcError { code: 0, message: Cow::Borrowed("") });
        let end = classify::json_rpc(error.code, &error.message).end;
        let mut failure = ToolError::new(end.code, bounded(&error.message)).classified(end);
        failure.details = Some(raw.to_owned().into());
        return ToolOutcome::failure(failure);
    }
    let Some(raw) = answer.result else { return ToolOutcome::default() };
    let result: Result<CallResult<'_>, _> = serde_json::from_str(raw.get());
    match result {
        Ok(result) if result.is_error => {
            let text = text(result.content);
            let end = classify::mcp_is_error(&text).end;
            let mut outcome =
                ToolOutcome::failure(ToolError::new(end.code, text.as_str()).classified(end));
            outcome.parts_mut().content = Some(raw.to_owned().into());
            outcome
        }
        _ if recorded => ToolOutcome::success(Json::from(raw.to_owned())),
        _ => ToolOutcome::default(),
    }
}

fn bounded(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

fn text(content: Option<&RawValue>) -> String {
    let blocks: Vec<Block<'_>> =
        content.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let mut all = String::new();
    for text in blocks.iter().filter_map(|block| block.text.as_deref()) {
        if !all.is_empty() {
            all.push('\n');
        }
        all.push_str(bounded(text));
        if all.len() > MAX_TEXT {
            break;
        }
    }
    all
}

/// The line that answers the client's call: the server's own wherever there is one.
pub(crate) fn line(call: &McpCall, end: &Result<ToolOutcome, BoxError>) -> Bytes {
    let id = call.id_text();
    match end {
        Ok(outcome) if outcome.parts().notes.is_empty() && !outcome.from_cache() => {
            call.answer().unwrap_or_else(|| made(id, outcome))
        }
        Ok(outcome) => made(id, outcome),
        Err(error) => {
            let found = classify::error(&**error).end;
            let mut text = message(&**error);
            if found.ran == Ran::Unknown && !text.contains("may have run") {
                text.push_str(" (the tool may have run: check before you repeat the call)");
            }
            let meta = json!({ "code": found.code, "ran": found.ran, "retriable": found.verdict.is_transient() && !found.exhausted });
            let result = json!({
                "content": [{ "type": "text", "text": text }],
                "isError": true,
                "_meta": { "tool-reliability/error": meta },
            });
            result_line(id, &result.to_string())
        }
    }
}

/// The error and the causes that say more than it does.
fn message(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in tr_core::causes(error).skip(1).filter(|cause| !cause.is::<tr_core::Facts>()) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            let _ = write!(text, ": {cause}");
        }
    }
    text
}

/// A line for an outcome that the server did not send in answer to this call, or that we add to.
fn made(id: &str, outcome: &ToolOutcome) -> Bytes {
    let parts = outcome.parts();
    match (&parts.content, &parts.error) {
        (Some(content), _) if parts.notes.is_empty() => result_line(id, content.get()),
        (Some(content), _) => result_line(id, &with_notes(content, &parts.notes)),
        (None, Some(error)) => {
            let details = error.details.as_ref().and_then(|details| details.parse().ok());
            let mut body: Value =
                details.unwrap_or_else(|| json!({ "code": -32603, "message": &*error.message }));
            let message = body["message"].as_str().unwrap_or_default().to_owned();
            let notes = parts.notes.iter().map(|note| &**note);
            body["message"] =
                [&*message].into_iter().chain(notes).collect::<Vec<_>>().join("\n").into();
            error_line(id, &body)
        }
        (None, None) => result_line(id, "{\"content\":[]}"),
    }
}

fn with_notes(content: &Json, notes: &[Box<str>]) -> String {
    let mut result: Value = content.parse().unwrap_or_default();
    let blocks = notes.iter().map(|note| json!({ "type": "text", "text": &**note }));
    match result.get_mut("content").and_then(Value::as_array_mut) {
        Some(content) => content.extend(blocks),
        None => result["content"] = blocks.collect(),
    }
    result.to_string()
}

fn result_line(id: &str, result: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").into()
}

fn error_line(id: &str, error: &Value) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").into()
}

/// A JSON-RPC error of our own; `id` is JSON text, `null` where there is none.
pub(crate) fn refusal(id: &str, code: i64, message: &str) -> Bytes {
    error_line(id, &json!({ "code": code, "message": message }))
}
