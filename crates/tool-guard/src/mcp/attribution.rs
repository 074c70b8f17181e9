//! Whose model made a malformed call, for the attribution log: what the client says of itself, of
//! its turn and of the call. Nothing of it changes a byte that passes.
use super::message::{self, Message};
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tool_reliability::{
    loopguard::{Attribution, AttributionLog, FileLog},
    telemetry::redact::{Redact as _, Redactor},
};
use tr_core::CallParts;

/// How long the guard waits at its end until the log is written.
const PATIENCE: Duration = Duration::from_secs(1);
/// Of a longer name or id only the beginning is kept, in characters.
const MOST: usize = 256;

/// The file of malformed calls, and the client that sends them.
#[derive(Debug)]
pub(crate) struct ClientLog {
    file: FileLog,
    client: Mutex<Option<String>>,
}

/// What clients say of a call in `_meta`. Values of another kind than expected say nothing.
#[derive(Default, Deserialize)]
struct Said<'l> {
    /// Codex's description of its turn.
    #[serde(borrow, rename = "x-codex-turn-metadata")]
    codex_turn: Option<&'l RawValue>,
    /// The id that the model gave to the call, as Codex has it.
    #[serde(borrow, rename = "callId")]
    codex_call: Option<&'l RawValue>,
    /// The same, as Claude Code has it.
    #[serde(borrow, rename = "claudecode/toolUseId")]
    claude_code_call: Option<&'l RawValue>,
    /// What MCP 2026-07-28 has in place of `initialize`.
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client: Option<&'l RawValue>,
}

#[derive(Default, Deserialize)]
struct Turn<'l> {
    #[serde(borrow)]
    model: Option<&'l RawValue>,
}

#[derive(Default, Deserialize)]
struct Initialize<'l> {
    #[serde(borrow, rename = "clientInfo")]
    client: Option<&'l RawValue>,
}

#[derive(Default, Deserialize)]
struct Client<'l> {
    #[serde(borrow)]
    name: Option<&'l RawValue>,
    #[serde(borrow)]
    version: Option<&'l RawValue>,
}

impl ClientLog {
    /// Opens the file.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let redactor = Redactor::default();
        let file = FileLog::new(path).cleaning(move |text| redactor.redact(text).into());
        file.open().with_context(|| format!("cannot log to {}", file.path().display()))?;
        Ok(Self { file, client: Mutex::default() })
    }

    /// The client has sent a request: `initialize` names it.
    pub(crate) fn on_request(&self, message: &Message<'_>) {
        if message.method.as_deref() == Some("initialize") {
            let said: Initialize<'_> = read(message.params);
            self.know(said.client);
        }
    }

    /// Tells the call what its `_meta` says of its model.
    pub(crate) fn attribute(&self, parts: &mut CallParts, meta: Option<&str>) {
        let said: Said<'_> = meta.and_then(|meta| message::object(meta).ok()).unwrap_or_default();
        self.know(said.client);
        let id = text(said.codex_call).or_else(|| text(said.claude_code_call));
        parts.tool_call_id = parts.tool_call_id.take().or(id.map(Into::into));
        parts.model = model(said.codex_turn).map(Into::into);
    }

    /// Waits until all is written, if that takes no longer than it should.
    pub(crate) fn finish(&self) {
        self.file.flush(PATIENCE);
    }

    fn know(&self, client: Option<&RawValue>) {
        let client: Client<'_> = read(client);
        let Some(name) = text(client.name) else { return };
        let client = match text(client.version) {
            Some(version) => format!("{name}/{version}"),
            None => name,
        };
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
    }
}

impl AttributionLog for ClientLog {
    fn write(&self, entry: &Attribution<'_>) {
        let mut entry = entry.to_map();
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        entry.insert("client".into(), client.into());
        self.file.append(entry);
    }
}

/// The model that Codex's description of a turn names. That is an object, or a text that holds one.
fn model(turn: Option<&RawValue>) -> Option<String> {
    let raw = turn?.get();
    let inner: Option<String> = serde_json::from_str(raw).ok();
    let turn: Turn<'_> = message::object(inner.as_deref().unwrap_or(raw)).ok()?;
    text(turn.model)
}

fn read<'l, T: Deserialize<'l> + Default>(raw: Option<&'l RawValue>) -> T {
    raw.and_then(|raw| message::object(raw.get()).ok()).unwrap_or_default()
}

/// A text that says something.
fn text(raw: Option<&RawValue>) -> Option<String> {
    let text: String = serde_json::from_str(raw?.get()).ok()?;
    let text: String = text.chars().take(MOST).collect();
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tr_core::Json;

    fn log() -> ClientLog {
        ClientLog { file: FileLog::new("/no/such/log"), client: Mutex::default() }
    }

    /// The model and the id of a call.
    fn said(meta: &Value) -> (Option<String>, Option<String>) {
        let mut parts = CallParts::new("read", Json::empty_object());
        log().attribute(&mut parts, Some(&meta.to_string()));
        (parts.model.map(Into::into), parts.tool_call_id.map(Into::into))
    }

    fn some(text: &str) -> Option<String> {
        Some(text.into())
    }

    #[test]
    fn a_client_says_what_its_model_is_and_how_it_calls_the_call() {
        let turn = json!({ "turn_id": "t", "model": "gpt-5.4", "reasoning_effort": "high" });
        let codex = json!({ "x-codex-turn-metadata": turn, "callId": "call_1", "threadId": "t" });
        assert_eq!(said(&codex), (some("gpt-5.4"), some("call_1")));
        let header = json!({ "x-codex-turn-metadata": turn.to_string() });
        assert_eq!(said(&header), (some("gpt-5.4"), None));
        let claude_code = json!({ "claudecode/toolUseId": "toolu_1", "progressToken": 1 });
        assert_eq!(said(&claude_code), (None, some("toolu_1")));
    }

    #[test]
    fn what_is_not_said_is_not_guessed() {
        for meta in [
            json!({}),
            json!([]),
            json!({ "x-codex-turn-metadata": "t1", "callId": 7, "claudecode/toolUseId": "" }),
            json!({ "x-codex-turn-metadata": { "model": ["gpt"] }, "callId": null }),
            json!({ "x-codex-turn-metadata": [{ "model": "gpt" }], "model": "other" }),
        ] {
            assert_eq!(said(&meta), (None, None), "{meta}");
        }
    }

    #[test]
    fn a_client_is_known_by_its_initialize_or_by_its_calls() {
        let log = log();
        let known = || log.client.lock().unwrap().clone();
        let hear = |line: &str| {
            let message::Line::One(message) = message::read(line.as_bytes()) else { panic!() };
            log.on_request(&message);
        };
        hear(r#"{"id":1,"method":"ping","params":{"clientInfo":{"name":"other"}}}"#);
        hear(r#"{"id":1,"method":"initialize","params":{"clientInfo":[]}}"#);
        assert_eq!(known(), None);
        hear(
            r#"{"id":1,"method":"initialize","params":{"clientInfo":{"name":"claude-code","version":"2.1"}}}"#,
        );
        assert_eq!(known(), some("claude-code/2.1"));
        let mut parts = CallParts::new("read", Json::empty_object());
        log.attribute(&mut parts, Some("{}"));
        assert_eq!(known(), some("claude-code/2.1"));
        let meta = json!({ "io.modelcontextprotocol/clientInfo": { "name": "codex" } });
        log.attribute(&mut parts, Some(&meta.to_string()));
        assert_eq!(known(), some("codex"));
    }
}
