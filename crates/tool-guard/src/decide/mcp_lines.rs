//! A host's events as lines of MCP, and the guard's lines as answers: so the guard of `tool-guard mcp`, with its
//! records and its rules, decides about tools that run in the host.
use super::events::{After, Answer, Before, Decision};
use crate::mcp::{
    mark,
    message::{self, Line, Token},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::borrow::Cow;
use tool_reliability::{config::IdentityConfig, wire::utee};
use tr_core::{Effect, Json, Ran, code};

/// The members of `_meta` that name a host's call and its session.
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

/// A call as a line of a client's.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) line: Bytes,
    /// The params to make it with, if the host's are not these.
    pub(super) params: Option<Box<RawValue>>,
}

/// The line of a call, in this turn.
///
/// # Errors
/// If `_utee` in the params does not have its form.
pub(super) fn call(number: u64, before: &Before<'_>, turn: Option<&str>) -> Result<Call, String> {
    let params = before.params.map_or_else(Json::empty_object, |raw| raw.to_owned().into());
    let (own, options) = utee::Options::take(&params).map_err(|error| error.to_string())?;
    let changed = options.is_some().then(|| own.get().to_owned());
    let options = options.unwrap_or_default();
    let mut meta = before.meta.clone();
    let mut tell = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            meta.insert(name.into(), value.into());
        }
    };
    tell(CALL, before.call.as_deref());
    tell(SESSION, before.session.as_deref());
    tell("idempotencyKey", before.key.as_deref().or(options.idempotency_key.as_deref()));
    tell("traceparent", before.traceparent.as_deref());
    if turn.is_some() || before.model.is_some() {
        let said = json!({ "turn_id": turn, "model": before.model });
        meta.insert("x-codex-turn-metadata".into(), said);
    }
    if let Some(client) = &before.client {
        meta.insert("io.modelcontextprotocol/clientInfo".into(), json!({ "name": client }));
    }
    let (name, arguments, meta) = (Value::from(&*before.tool), own.get(), Value::from(meta));
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":{name},"arguments":{arguments},"_meta":{meta}}}}}"#
    );
    let params = changed.map(|text| RawValue::from_string(text).expect("params are JSON"));
    Ok(Call { line: (line + "\n").into(), params })
}

/// What a host says about a tool, as a server's list of tools.
pub(super) fn listed(tool: &str, effect: Option<Effect>) -> Box<RawValue> {
    let annotations = match effect {
        Some(Effect::ReadOnly) => json!({ "readOnlyHint": true }),
        Some(Effect::Idempotent) => json!({ "idempotentHint": true }),
        Some(Effect::Mutating) => json!({ "readOnlyHint": false }),
        None => json!({}),
    };
    let list = json!({ "tools": [{ "name": tool, "annotations": annotations }] });
    RawValue::from_string(list.to_string()).expect("made of JSON")
}

/// The line that ends a call.
pub(super) fn end(number: u64, after: &After<'_>) -> Bytes {
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
    let is_error = after.is_error || after.error.is_some();
    let ran = after.ran.filter(|_| is_error);
    let meta = ran.map(|ran| json!({ "tool-reliability/error": { "ran": ran } }));
    let meta = meta.map_or_else(String::new, |meta| format!(r#","_meta":{meta}"#));
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":{number},"result":{{"content":{content},"isError":{is_error}{meta}}}}}"#
    );
    mark::without(&(line + "\n").into())
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

/// The number of the call that this line of the guard's makes, if it makes one.
pub(super) fn made(line: &[u8]) -> Option<u64> {
    let Line::One(message) = message::read(line) else { return None };
    message.token()?.number().filter(|_| message.is_tool_call())
}

/// What the guard says of a call to the one who made it.
#[derive(Debug, Default)]
pub(super) struct GuardAnswer {
    /// The call.
    pub(super) number: u64,
    code: Option<Box<str>>,
    ran: Option<Ran>,
    retriable: bool,
    /// All words, one block a line.
    text: String,
    notes: Vec<String>,
    result: Option<Box<RawValue>>,
    is_unrecorded: bool,
}

#[derive(Default, Deserialize)]
struct Ended<'l> {
    content: Option<&'l RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'l RawValue>,
}

#[derive(Deserialize)]
struct Block {
    text: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

/// Reads a line of the guard's for the one who made a call.
pub(super) fn said(line: &[u8]) -> Option<GuardAnswer> {
    let Line::One(message) = message::read(line) else { return None };
    let said = GuardAnswer { number: message.token()?.number()?, ..GuardAnswer::default() };
    if let Some(error) = message.error {
        let error: Value = message::object(error.get()).unwrap_or_default();
        let text = error["message"].as_str().unwrap_or("the guard refused the call").to_owned();
        return Some(GuardAnswer {
            code: Some("refused".into()),
            ran: Some(Ran::No),
            text,
            ..said
        });
    }
    let raw = message.result?;
    let ended: Ended<'_> = message::object(raw.get()).unwrap_or_default();
    let meta: Value = ended.meta.and_then(|it| message::object(it.get()).ok()).unwrap_or_default();
    let error = &meta["tool-reliability/error"];
    let blocks = ended.content.and_then(|it| serde_json::from_str::<Vec<Block>>(it.get()).ok());
    let (mut texts, mut notes) = (Vec::new(), Vec::new());
    for block in blocks.unwrap_or_default() {
        let Some(text) = block.text else { continue };
        if block.meta[mark::NAME] == json!(true) {
            notes.push(text.clone());
        }
        texts.push(text);
    }
    Some(GuardAnswer {
        code: error["code"].as_str().map(Into::into),
        ran: Ran::deserialize(&error["ran"]).ok(),
        retriable: error["retriable"] == true,
        text: texts.join("\n"),
        notes,
        result: Some(raw.to_owned()),
        is_unrecorded: meta["tool-reliability/recorded"] == false,
        ..said
    })
}

impl GuardAnswer {
    /// As the answer to the line that wanted to make the call.
    pub(super) fn blocks(self, id: &Token) -> Answer {
        let answer = Answer { reason: Some(self.text), ..Answer::new(id, Decision::Block) };
        match self.code {
            Some(code) => Answer {
                // The layer that retries is off, and counts its one attempt as used up.
                retriable: Some(self.retriable || PASSING.contains(&&*code)),
                code: Some(code),
                ran: self.ran,
                ..answer
            },
            // The end of an earlier call, from its record.
            None => Answer { code: Some("replayed".into()), result: self.result, ..answer },
        }
    }

    /// As the answer to the line that told the call's end.
    pub(super) fn notes(self, id: &Token) -> Answer {
        let decision = if self.notes.is_empty() { Decision::None } else { Decision::Note };
        let recorded = self.is_unrecorded.then_some(false);
        Answer { notes: self.notes, recorded, ..Answer::new(id, decision) }
    }
}

#[cfg(test)]
mod tests;
