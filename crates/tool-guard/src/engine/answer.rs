//! Converts the server's answer to an outcome, and an outcome to the client's line.
use super::{
    call::McpCall,
    failure::in_full,
    notes,
    unknowns::{Unknowns, leaves_unknown},
    warnings::{Repeatable, advice, joined, warning},
};
use crate::wire::{
    elements::unchecked_elements,
    jsonrpc::{self, CallResult, Message, RpcError, string},
};
use bytes::Bytes;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{json, value::RawValue};
use std::{borrow::Cow, iter};
use tool_reliability::loopguard::Noted;
use tr_core::{
    BoxError, Classification, Json, Ran, ToolError, ToolManifest, ToolOutcome, Verdict, classify,
    one_line,
};

/// The part of a failure's `_meta` that a guard, or a tool with the same convention, writes.
#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "tool-reliability/error")]
    error: OwnWord,
}

/// The tool's own statement on whether it ran, and whether a repeat may help.
#[derive(Deserialize)]
struct OwnWord {
    ran: Ran,
    retriable: Option<bool>,
}

/// Reads the server's answer. A success is copied only if it is to be `kept`.
pub(crate) fn outcome(answer: &Message<'_>, kept: bool) -> ToolOutcome {
    if let Some(raw) = answer.error {
        let error = jsonrpc::object::<RpcError<'_>>(raw.get());
        let text = error.as_ref().ok().and_then(|it| it.message.map_or(Some("".into()), string));
        let (text, error) = (text.unwrap_or_else(|| raw.get().into()), error.unwrap_or_default());
        let code = error.code().unwrap_or_default();
        let pending = pending_error(code, error.data);
        let end = pending.unwrap_or_else(|| classify::json_rpc(code, &text).end);
        let mut failure = ToolError::new(end.code, bounded(&text)).classified(end);
        failure.details = Some(raw.to_owned().into());
        return ToolOutcome::failure(failure);
    }
    answer.result.map_or_else(ToolOutcome::default, |result| of_result(result, kept))
}

/// Reads a result. A success is copied only if it is to be `kept`.
pub(crate) fn of_result(raw: &RawValue, kept: bool) -> ToolOutcome {
    let result: Result<CallResult<'_>, _> = jsonrpc::object(raw.get());
    match result {
        Ok(result) if result.is_error.is_some_and(|raw| raw.get() == "true") => {
            let text = text_of(result.content);
            let mut end = classify::mcp_is_error(&text).end;
            let said = result.meta.and_then(|meta| serde_json::from_str(meta.get()).ok());
            if let Some(Meta { error: OwnWord { ran, retriable } }) = said {
                end.ran = ran;
                match (ran, retriable) {
                    (Ran::No, Some(false)) => end.verdict = Verdict::Permanent,
                    (Ran::No, _) if !end.verdict.is_transient() => end.verdict = Verdict::TRANSIENT,
                    _ => {}
                }
            }
            let mut outcome =
                ToolOutcome::failure(ToolError::new(end.code, text.as_str()).classified(end));
            outcome.parts_mut().content = Some(raw.to_owned().into());
            outcome
        }
        Ok(result) if result.kind.and_then(string).as_deref() == Some(INPUT_REQUIRED) => {
            pending_result(raw)
        }
        _ if kept => ToolOutcome::success(Json::from(raw.to_owned())),
        _ => ToolOutcome::default(),
    }
}

/// The outcome, corrected by the codes of JSON-RPC errors by which its tool says that it did not run.
pub(crate) fn judged(mut outcome: ToolOutcome, codes: Option<&ToolManifest>) -> ToolOutcome {
    let not_run = codes.and_then(|tool| {
        let details = outcome.error()?.details.as_ref()?;
        let said = jsonrpc::object::<RpcError<'_>>(details.get()).ok()?.code()?;
        tool.not_run.iter().find(|code| code.parse() == Ok(said))
    });
    if not_run.is_some()
        && let Some(error) = &mut outcome.parts_mut().error
    {
        (error.verdict, error.ran) = (Some(Verdict::TRANSIENT), Ran::No);
    }
    outcome
}

/// What a call's end says to its caller.
#[derive(Debug)]
pub(crate) struct CallReply<'e> {
    /// The outcome in its tool's words, or a failure that the tool did not report in these words.
    pub(crate) end: Result<&'e ToolOutcome, Failed>,
    /// The guard's lines for the model.
    pub(crate) notes: Vec<String>,
    /// The end should be in the store, and is not.
    pub(crate) is_unrecorded: bool,
}

/// A failure that the tool did not report in these words.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) code: Box<str>,
    pub(crate) ran: Ran,
    pub(crate) retriable: bool,
    /// The tool's own words, if there are any.
    pub(crate) text: Option<String>,
}

impl<'e> CallReply<'e> {
    pub(crate) fn of(
        call: &McpCall,
        repeatable: Repeatable,
        end: &'e Result<ToolOutcome, BoxError>,
        is_unrecorded: bool,
        unknowns: &Unknowns,
    ) -> Self {
        let failed = |found: Classification<'_>, text| Failed {
            code: found.code.into(),
            ran: found.ran,
            retriable: repeatable.after(found),
            text,
        };
        match end {
            Ok(outcome) => {
                let ran = call.trace.joined.filter(|_| !call.is_own_id_used());
                let joined = ran.filter(|_| !leaves_unknown(outcome)).map(joined);
                let own = repeatable.note(outcome, call.trace.record);
                let noted = outcome.parts().notes.iter().map(ToString::to_string);
                // For a larger failure a record keeps only its beginning.
                let is_short = outcome.content().is_none();
                let short = outcome.error().filter(|it| is_short && it.details.is_none());
                let end = short.map_or(Ok(outcome), |error| {
                    let text = Some(error.message.to_string());
                    Err(failed(classify::tool_error(error).end, text))
                });
                Self { end, notes: noted.chain(own).chain(joined).collect(), is_unrecorded }
            }
            Err(error) => {
                let found = classify::error(&**error).end;
                let noted = error.downcast_ref::<Noted>();
                let mut text =
                    noted.map_or_else(|| in_full(&**error), |noted| in_full(noted.inner()));
                text.push_str(&warning(
                    &call.tool,
                    &call.trace,
                    repeatable,
                    error,
                    found,
                    unknowns,
                ));
                text.push_str(&advice(&call.trace, error, found));
                let notes = noted.map(Noted::notes).unwrap_or_default();
                let notes = iter::once(text).chain(notes.iter().map(ToString::to_string));
                Self { end: Err(failed(found, None)), notes: notes.collect(), is_unrecorded }
            }
        }
    }

    /// The line that answers the client's call, which ended so: the server's own if there is one.
    pub(crate) fn line(&self, call: &McpCall, end: &Result<ToolOutcome, BoxError>) -> Bytes {
        let may_pass = self.notes.is_empty() || call.is_opaque();
        let is_as_sent = end.as_ref().is_ok_and(|outcome| may_pass && !outcome.from_cache());
        let sent = if is_as_sent { call.answer() } else { None };
        let line = sent.unwrap_or_else(|| match &self.end {
            Ok(outcome) => made(call.id_text(), outcome, &self.notes, call.wants_result_type),
            Err(failed) => failed.line(call, &self.notes),
        });
        if self.is_unrecorded { notes::unrecorded(line) } else { line }
    }
}

impl Failed {
    fn line(&self, call: &McpCall, notes: &[String]) -> Bytes {
        let text = self.text.iter().map(|text| json!({ "type": "text", "text": text }));
        let blocks = text.chain(notes.iter().map(|note| notes::block(note)));
        let meta = json!({ "code": self.code, "ran": self.ran, "retriable": self.retriable });
        let mut result = json!({
            "content": blocks.collect::<Vec<_>>(),
            "isError": true,
            "_meta": { "tool-reliability/error": meta },
        });
        if call.wants_result_type {
            result["resultType"] = "complete".into();
        }
        result_line(call.id_text(), &result.to_string())
    }
}

/// A line for an outcome that the server did not send as the answer to this call, or that gets notes.
fn made(id: &str, outcome: &ToolOutcome, notes: &[String], wants_type: bool) -> Bytes {
    match (outcome.content(), outcome.error()) {
        (None, Some(error)) => {
            let details = error.details.as_ref().map_or("", |details| details.get());
            let error = notes::below_error(details, &error.message, notes);
            (error_message(id, &error) + "\n").into()
        }
        _ => result_line(id, &result(outcome, notes, wants_type)),
    }
}

/// The result of a call with this outcome, and its type if that is wanted.
pub(crate) fn result(outcome: &ToolOutcome, notes: &[String], wants_type: bool) -> String {
    match outcome.content() {
        Some(content) => notes::below_result(content.get(), notes),
        None if wants_type => r#"{"content":[],"resultType":"complete"}"#.to_owned(),
        None => r#"{"content":[]}"#.to_owned(),
    }
}

fn result_line(id: &str, result: &str) -> Bytes {
    // A person may have written the stored result by hand.
    let result = one_line(result);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").into()
}

fn error_message(id: &str, error: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{}}}", one_line(error))
}

/// A JSON-RPC error of the guard's; `id` is JSON text, `null` if there is none.
pub(crate) fn refusal(id: &str, code: i64, message: &str) -> Bytes {
    let error = json!({ "code": code, "message": message }).to_string();
    (error_message(id, &error) + "\n").into()
}

/// How many requests of one batch each get the full reason.
const MANY: usize = 100;
const BRIEF: &str = "refused: the error of the first request of the batch says why";

/// The answer to a batch: the same error for each of the `ids`, `None` if there are none.
pub(crate) fn refusals(ids: &[&str], code: i64, message: &str) -> Option<Bytes> {
    let (first, rest) = ids.split_first()?;
    let error = |message: &str| json!({ "code": code, "message": message }).to_string();
    // Answers to many requests are several times as long as the batch, so the reason is given once.
    let (whole, other) = (error(message), error(if rest.len() < MANY { message } else { BRIEF }));
    let each = error_message("", &other).len() + 1;
    let ids = rest.iter().map(|id| id.len() + each).sum::<usize>();
    let mut line = error_message(first, &whole);
    line.reserve_exact(ids + 3);
    line.insert(0, '[');
    for id in rest {
        line.push(',');
        line.push_str(&error_message(id, &other));
    }
    line.push_str("]\n");
    Some(line.into())
}

/// How much of an error's text is classified and kept, in bytes.
const MAX_TEXT: usize = 8 * 1024;

#[derive(Deserialize)]
struct Block<'l> {
    // An array without members has no text.
    #[serde(borrow, default)]
    text: Option<Cow<'l, str>>,
}

/// The beginning of a text.
fn bounded(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

/// The texts of a result's content that are classified and kept: of millions of blocks only the first ones.
fn text_of(content: Option<&RawValue>) -> String {
    let blocks = content.and_then(|raw| unchecked_elements(raw.get().as_bytes()));
    let mut texts = String::new();
    for block in blocks.into_iter().flatten() {
        if texts.len() > MAX_TEXT {
            break;
        }
        let Ok(block) = serde_json::from_slice::<Block<'_>>(block) else { return String::new() };
        let Some(text) = block.text else { continue };
        if !texts.is_empty() {
            texts.push('\n');
        }
        texts.push_str(bounded(&text));
    }
    texts
}

/// The JSON-RPC error by which a server asks its user to open a page first.
const URL_ELICITATION: i64 = -32_042;

/// The `resultType` of MCP 2026-07-28 for a result of a server that needs more input.
const INPUT_REQUIRED: &str = "input_required";

/// The outcome that the layers see for an answer that asks the client for something first: the call was not made yet, its record is released, it
/// is not retried, and it counts as no failure.
fn pending() -> Classification<'static> {
    let mut end = classify::json_rpc(URL_ELICITATION, "").end;
    (end.code, end.verdict, end.ran) = (INPUT_REQUIRED, Verdict::Cancelled, Ran::No);
    end
}

/// The outcome of a result that does not end its call.
fn pending_result(raw: &RawValue) -> ToolOutcome {
    let text = "the server needs more input before the call can continue";
    let mut outcome =
        ToolOutcome::failure(ToolError::new(INPUT_REQUIRED, text).classified(pending()));
    outcome.parts_mut().content = Some(raw.to_owned().into());
    outcome
}

/// The pages that the user is asked to open.
#[derive(Deserialize)]
struct Pages {
    elicitations: Vec<IgnoredAny>,
}

/// The outcome of a JSON-RPC error that does not end its call: the code alone is not enough.
fn pending_error(code: i64, data: Option<&RawValue>) -> Option<Classification<'static>> {
    let data = data.filter(|_| code == URL_ELICITATION)?;
    let pages: Pages = jsonrpc::object(data.get()).ok()?;
    (!pages.elicitations.is_empty()).then(pending)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn noted(line: &str) -> String {
        let jsonrpc::Line::One(answer) = jsonrpc::read(line.as_bytes()) else { panic!() };
        String::from_utf8(made("1", &outcome(&answer, false), &["note".into()], false).to_vec())
            .unwrap()
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
            let answer = noted(&format!(r#"{{"id":1,"error":{error}}}"#));
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["error"]["message"], format!("{error}\nnote"));
        }
    }

    #[test]
    fn what_is_kept_on_several_lines_is_answered_on_one() {
        let text = "{\n  \"content\": [\r\n{ \"type\": \"text\", \"text\": \"a  b\" }]\n}";
        let kept = || Json::from(RawValue::from_string(text.to_owned()).unwrap());
        let mut failed = ToolOutcome::failure(ToolError::new("x", "y"));
        failed.parts_mut().error.as_mut().unwrap().details = Some(kept());
        for (outcome, notes) in [
            (ToolOutcome::success(kept()), vec![]),
            (ToolOutcome::success(kept()), vec!["n".into()]),
            (failed, vec![]),
        ] {
            let line = made("1", &outcome, &notes, false);
            let (breaks, last) = (memchr::memchr_iter(b'\n', &line).count(), line.last());
            assert_eq!((breaks, last, line.contains(&b'\r')), (1, Some(&b'\n'), false));
            let line = String::from_utf8(line.to_vec()).unwrap();
            assert!(line.contains("\"text\":\"a  b\""), "{line}");
        }
    }
}
