//! From the server's answer to an outcome, and from an outcome to the client's line.
use super::{
    call::McpCall,
    message::{self, Message},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{borrow::Cow, fmt::Write, iter};
use tool_reliability::loopguard::Noted;
use tr_core::{
    BoxError, Classification, Effect, EffectOf, Json, Ran, Standard, ToolCall, ToolError,
    ToolOutcome, classify,
};

/// How much of an error's text is classified and kept, in bytes.
const MAX_TEXT: usize = 8 * 1024;

/// As much of a `tools/call` result as tells success from failure.
#[derive(Deserialize)]
struct CallResult<'l> {
    #[serde(default, rename = "isError")]
    is_error: bool,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'l RawValue>,
    #[serde(borrow, default)]
    content: Option<&'l RawValue>,
}

/// What a guard, or a tool with the same manners, says of a failure in `_meta`.
#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "tool-reliability/error")]
    error: OwnWord,
}

#[derive(Deserialize)]
struct OwnWord {
    ran: Ran,
}

/// The tool's own word on whether it ran.
fn own_word(meta: Option<&RawValue>) -> Option<Ran> {
    let meta: Meta = serde_json::from_str(meta?.get()).ok()?;
    Some(meta.error.ran)
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

/// What the server's answer says. A success is copied only if it is to be `kept`.
pub(crate) fn outcome(answer: &Message<'_>, kept: bool) -> ToolOutcome {
    if let Some(raw) = answer.error {
        let error: RpcError<'_> = message::object(raw.get())
            .unwrap_or(RpcError { code: 0, message: Cow::Borrowed(raw.get()) });
        let end = classify::json_rpc(error.code, &error.message).end;
        let mut failure = ToolError::new(end.code, bounded(&error.message)).classified(end);
        failure.details = Some(raw.to_owned().into());
        return ToolOutcome::failure(failure);
    }
    let Some(raw) = answer.result else { return ToolOutcome::default() };
    let result: Result<CallResult<'_>, _> = message::object(raw.get());
    match result {
        Ok(result) if result.is_error => {
            let text = text(result.content);
            let mut end = classify::mcp_is_error(&text).end;
            if let Some(ran) = own_word(result.meta) {
                end.ran = ran;
            }
            let mut outcome =
                ToolOutcome::failure(ToolError::new(end.code, text.as_str()).classified(end));
            outcome.parts_mut().content = Some(raw.to_owned().into());
            outcome
        }
        _ if kept => ToolOutcome::success(Json::from(raw.to_owned())),
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

/// Whether the JSON-RPC error that `outcome` tells of has one of these codes, by which its tool says
/// that it did not run.
pub(crate) fn says_not_run(outcome: &ToolOutcome, codes: &[Box<str>]) -> bool {
    let details = outcome.error().and_then(|error| error.details.as_ref());
    let code = details.and_then(|raw| message::object::<RpcError<'_>>(raw.get()).ok());
    code.is_some_and(|error| codes.iter().any(|code| code.parse() == Ok(error.code)))
}

/// What decides whether a failed call may be repeated as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeatable {
    effect: Effect,
    declared_safe: Option<bool>,
}

impl Repeatable {
    pub(crate) fn of(call: &ToolCall) -> Self {
        let (effect, declared_safe) = (Standard.effect_of(call), Standard.is_repeat_safe(call));
        Self { effect, declared_safe }
    }

    fn after(self, end: Classification<'_>) -> bool {
        end.is_retriable(self.effect, self.declared_safe) && !end.exhausted
    }

    /// What a model must know of a call that ended without the server's answer.
    const fn warning(self, ran: Ran) -> &'static str {
        match (self.effect.may_repeat(ran, self.declared_safe), ran) {
            (true, _) => "",
            (false, Ran::Yes) => " (it has run; do not repeat it)",
            (false, _) => " (it may have run; do not repeat it; check first)",
        }
    }
}

/// The line that answers the client's call: the server's own wherever there is one.
pub(crate) fn line(
    call: &McpCall,
    repeatable: Repeatable,
    end: &Result<ToolOutcome, BoxError>,
) -> Bytes {
    let id = call.id_text();
    match end {
        Ok(outcome)
            if (outcome.parts().notes.is_empty() || call.is_opaque()) && !outcome.from_cache() =>
        {
            call.answer().unwrap_or_else(|| made(id, outcome))
        }
        Ok(outcome) => made(id, outcome),
        Err(error) => {
            let found = classify::error(&**error).end;
            let noted = error.downcast_ref::<Noted>();
            let mut text = match noted {
                Some(noted) => in_full(noted.inner()),
                None => in_full(&**error),
            };
            text.push_str(repeatable.warning(found.ran));
            let retriable = repeatable.after(found);
            let meta = json!({ "code": found.code, "ran": found.ran, "retriable": retriable });
            let notes = noted.map(Noted::notes).unwrap_or_default();
            let texts = iter::once(&text).chain(notes);
            let blocks: Vec<_> =
                texts.map(|text| json!({ "type": "text", "text": text })).collect();
            let result = json!({
                "content": blocks,
                "isError": true,
                "_meta": { "tool-reliability/error": meta },
            });
            result_line(id, &result.to_string())
        }
    }
}

/// The error and the causes that say more than it does.
fn in_full(error: &(dyn std::error::Error + 'static)) -> String {
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
            // A server may send any JSON as its error; only an object can carry our notes.
            let mut body = details
                .filter(Value::is_object)
                .unwrap_or_else(|| json!({ "code": -32603, "message": &*error.message }));
            let message = body["message"].as_str().unwrap_or_default().to_owned();
            let notes = parts.notes.iter().map(|note| &**note);
            body["message"] =
                [&*message].into_iter().chain(notes).collect::<Vec<_>>().join("\n").into();
            error_line(id, &body)
        }
        (None, None) => result_line(id, "{\"content\":[]}"),
    }
}

/// The result with further blocks of text; all else stays as the server wrote it.
fn with_notes(result: &Json, notes: &[Box<str>]) -> String {
    let result = result.get();
    let blocks = notes.iter().map(|note| json!({ "type": "text", "text": &**note }).to_string());
    let blocks = blocks.collect::<Vec<_>>().join(",");
    // A server may send any JSON as its result; only an object can carry our notes.
    let Ok(read) = message::object::<CallResult<'_>>(result) else { return result.to_owned() };
    let (at, text) = match read.content {
        None => {
            let is_empty = result[1..].trim_start().starts_with('}');
            let comma = if is_empty { "" } else { "," };
            (1..1, format!("\"content\":[{blocks}]{comma}"))
        }
        Some(content) => {
            let inside = content.get().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let own = match inside.map(str::trim) {
                Some(inside) => inside.to_owned(),
                None => json!({ "type": "text", "text": content.get() }).to_string(),
            };
            let comma = if own.is_empty() { "" } else { "," };
            (message::range(result.as_bytes(), content), format!("[{own}{comma}{blocks}]"))
        }
    };
    let line = message::splice(result.as_bytes(), &[(at, &text)]);
    String::from_utf8(line.into()).expect("text put into text")
}

fn result_line(id: &str, result: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").into()
}

fn error_line(id: &str, error: &Value) -> Bytes {
    (error_message(id, error) + "\n").into()
}

fn error_message(id: &str, error: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}")
}

/// A JSON-RPC error of our own; `id` is JSON text, `null` where there is none.
pub(crate) fn refusal(id: &str, code: i64, message: &str) -> Bytes {
    error_line(id, &json!({ "code": code, "message": message }))
}

/// The answer to a batch: the same error for each of the `ids`, `None` if there are none.
pub(crate) fn refusals(ids: &[&str], code: i64, message: &str) -> Option<Bytes> {
    let error = json!({ "code": code, "message": message });
    let all: Vec<_> = ids.iter().map(|id| error_message(id, &error)).collect();
    (!all.is_empty()).then(|| format!("[{}]\n", all.join(",")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(line: &str) -> String {
        let message::Line::One(answer) = message::read(line.as_bytes()) else { panic!() };
        let mut outcome = outcome(&answer, false);
        outcome.parts_mut().notes = vec!["note".into()];
        String::from_utf8(made("1", &outcome).to_vec()).unwrap()
    }

    #[test]
    fn a_note_joins_whatever_a_server_says_of_a_failure() {
        let note = r#"{"text":"note","type":"text"}"#;
        let cases = [
            (r#"[{"text":"a"}]"#, r#"[{"text":"a"},NOTE]"#),
            ("[ ]", "[NOTE]"),
            (r#""a""#, r#"[{"text":"\"a\"","type":"text"},NOTE]"#),
            ("7", r#"[{"text":"7","type":"text"},NOTE]"#),
        ];
        for (content, with_note) in cases {
            let line = format!(
                r#"{{"id":1,"result":{{"big":12345678901234567890123, "isError":true,"content":{content},"x":1.0}}}}"#
            );
            let with_note = with_note.replace("NOTE", note);
            assert_eq!(
                noted(&line),
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"big\":12345678901234567890123, \"isError\":true,\"content\":{with_note},\"x\":1.0}}}}\n"
                )
            );
        }
        assert_eq!(
            noted(r#"{"id":1,"result":{"isError":true}}"#),
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[{note}],\"isError\":true}}}}\n"
            )
        );
    }

    #[test]
    fn a_note_leaves_a_success_of_any_form_readable() {
        for result in ["{}", "{ }", r#"{"x":1}"#, r#"{"content":[]}"#, "\"ok\"", "[]", "7", "null"]
        {
            let outcome = {
                let line = format!(r#"{{"id":1,"result":{result}}}"#);
                let message::Line::One(answer) = message::read(line.as_bytes()) else { panic!() };
                let mut outcome = outcome(&answer, true);
                outcome.parts_mut().notes = vec!["note".into()];
                outcome
            };
            let line = made("1", &outcome);
            let read: Value = serde_json::from_slice(&line).unwrap_or_else(|error| {
                panic!("{result}: {error}: {}", String::from_utf8_lossy(&line))
            });
            let noted = read["result"]["content"].as_array().is_some_and(|all| !all.is_empty());
            assert_eq!(noted, result.starts_with('{'), "{result}");
        }
    }

    #[test]
    fn a_failure_of_any_depth_stays_a_failure_with_its_note() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let line = format!(r#"{{"id":1,"result":{{"isError":true,"content":[{{"x":{deep}}}]}}}}"#);
        let noted = noted(&line);
        assert!(noted.contains(r#""isError":true"#) && noted.contains(&deep), "{noted}");
    }

    #[test]
    fn an_error_that_is_no_object_can_be_noted() {
        for error in ["\"boom\"", "[5]", "7", "true"] {
            let line = format!(r#"{{"id":1,"error":{error}}}"#);
            let answer: Value = serde_json::from_str(&noted(&line)).unwrap();
            assert_eq!(answer["error"]["message"], format!("{error}\nnote"));
        }
    }
}
