//! A host's events as calls and results of the guard of `tool-guard mcp`, and their ends as answers: so that guard,
//! with its records and its rules, decides about tools that run in the host.
use super::events::{After, Answer, Before, Decision};
use crate::{
    engine::{
        answer::{self, CallReply},
        call::McpCall,
        identity::Client,
        request::Request,
        unknowns::left_unknown,
    },
    wire::{
        jsonrpc::{self, Token},
        mark,
        params::Said,
    },
};
use serde::Deserialize;
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};
use std::borrow::Cow;
use tool_reliability::{config::IdentityConfig, wire::utee};
use tr_core::{BoxError, Json, Ran, ToolOutcome, code, printable};

/// The members of a host's `meta` that name its call and its session.
const CALL: &str = "tool-guard/call";
const SESSION: &str = "tool-guard/session";

/// The codes of refusals that pass with time.
const PASSING: [&str; 2] = [code::CIRCUIT_OPEN, code::IDEMPOTENCY_IN_FLIGHT];

/// The rule by which the guard finds them.
pub(crate) fn identity() -> IdentityConfig {
    let mut rule = IdentityConfig::default();
    (rule.call, rule.conversation) = (Some(CALL.into()), Some(SESSION.into()));
    rule
}

/// The call, in this turn, of a client with such a rule; and the params to make it with, if the host's are not these.
///
/// # Errors
/// If `_utee` in the params does not have its form.
pub(crate) fn request(
    id: Token,
    before: &Before<'_>,
    turn: Option<&str>,
    client: &Client,
) -> Result<(Request, Option<Box<RawValue>>), String> {
    let params = before.params.map_or_else(Json::empty_object, |raw| raw.to_owned().into());
    let (own, options) = utee::Options::take(&params).map_err(|error| error.to_string())?;
    let raw = || RawValue::from_string(own.get().to_owned()).expect("params are JSON");
    let changed = options.is_some().then(raw);
    let options = options.unwrap_or_default();
    let mut meta = before.meta.clone();
    for (name, value) in [(CALL, &before.call), (SESSION, &before.session)] {
        meta.extend(value.as_deref().map(|value| (name.to_owned(), value.into())));
    }
    let meta = to_raw_value(&meta).expect("made of JSON");
    let members = jsonrpc::object(meta.get()).unwrap_or_default();
    let key = before.key.as_deref().or(options.idempotency_key.as_deref());
    let text = |text: &Option<Box<str>>| text.clone().filter(|text| !text.is_empty());
    let (model, named) = (text(&before.model), text(&before.client));
    let request = Request {
        call: McpCall::new(id, &before.tool),
        arguments: own,
        identity: client.identify(&before.tool, key, &members, Some(&meta)),
        continues: None,
        traceparent: before.traceparent.clone(),
        said: Said { turn: turn.map(Into::into), model, client: named },
    };
    Ok((request, changed))
}

/// The result of a call that has ended.
pub(crate) fn result(after: &After<'_>) -> Box<RawValue> {
    let text = |text: &str| Cow::Owned(json!([{ "type": "text", "text": text }]).to_string());
    let content = match (&after.error, after.output) {
        (Some(error), _) => text(error),
        (None, Some(raw)) if is_blocks(raw) => Cow::Borrowed(raw.get()),
        (None, Some(raw)) => match serde_json::from_str::<String>(raw.get()) {
            Ok(output) => text(&output),
            Err(_) => text(raw.get()),
        },
        (None, None) => text(""),
    };
    let is_error = after.is_failure();
    let ran = after.ran.filter(|_| is_error);
    let meta = ran.map(|ran| json!({ "tool-reliability/error": { "ran": ran } }));
    let meta = meta.map_or_else(String::new, |meta| format!(r#","_meta":{meta}"#));
    let result = format!(r#"{{"content":{content},"isError":{is_error}{meta}}}"#);
    serde_json::from_slice(&mark::without(&result.into())).expect("made of JSON")
}

/// Whether an output has the form of a model's content: a list of objects with a type.
fn is_blocks(raw: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Block {
        #[serde(rename = "type")]
        _kind: String,
    }
    raw.get().starts_with('[') && serde_json::from_str::<Vec<Block>>(raw.get()).is_ok()
}

/// The texts of a result, one block a line.
fn text(result: &str) -> String {
    #[derive(Default, Deserialize)]
    struct Ended {
        content: Vec<Block>,
    }
    #[derive(Deserialize)]
    struct Block {
        text: Option<String>,
    }
    let Ended { content } = jsonrpc::object(result).unwrap_or_default();
    content.into_iter().filter_map(|block| block.text).collect::<Vec<_>>().join("\n")
}

/// The answer to the line that wanted to make the call, which ended so.
pub(crate) fn block(told: CallReply<'_>, id: &Token) -> Answer {
    let answer = Answer::new(id, Decision::Block);
    match told.end {
        Err(failed) => Answer {
            // The layer that retries is off, and counts its one attempt as used up.
            retriable: Some(failed.retriable || PASSING.contains(&&*failed.code)),
            code: Some(failed.code),
            ran: Some(failed.ran),
            reason: Some(failed.text.into_iter().chain(told.notes).collect::<Vec<_>>().join("\n")),
            ..answer
        },
        // The end of an earlier call, from its record.
        Ok(outcome) => {
            let result = answer::result(outcome, &told.notes, false);
            let reason = Some(text(&result));
            let result = RawValue::from_string(result).ok();
            Answer { code: Some("replayed".into()), reason, result, ..answer }
        }
    }
}

/// Which call shows how this one ended, of which that is unknown.
pub(crate) fn to_ask(
    call: &McpCall,
    told: &CallReply<'_>,
    end: &Result<ToolOutcome, BoxError>,
) -> Option<String> {
    let is_blocked = told.end.as_ref().is_err_and(|failed| failed.ran == Ran::Unknown);
    let checked = call.checked.as_ref().filter(|_| is_blocked || left_unknown(end).is_some())?;
    let (tool, args) = (&checked.check()?.tool, json!(checked.question.args));
    let asked = printable(&format!("{tool} {args}")).to_string();
    Some(format!("[CHECK: {asked} shows whether the call ran]"))
}

/// The answer to the line that told the call's end.
pub(crate) fn notes(told: CallReply<'_>, id: &Token) -> Answer {
    let decision = if told.notes.is_empty() { Decision::None } else { Decision::Note };
    let recorded = told.is_unrecorded.then_some(false);
    Answer { notes: told.notes, recorded, ..Answer::new(id, decision) }
}

#[cfg(test)]
mod tests;
