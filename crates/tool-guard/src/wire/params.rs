//! The params of a message and their `_meta`: all members that the guard reads. Values of another type are ignored.
use super::jsonrpc::{self, Line, Message, Token, present, string};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use std::{collections::HashMap, ops::Range};
use tr_core::canonical::Pointer;

/// The params.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Params<'l> {
    #[serde(borrow)]
    pub(crate) name: Option<&'l RawValue>,
    pub(crate) arguments: Option<&'l RawValue>,
    #[serde(rename = "_meta")]
    pub(crate) meta: Option<&'l RawValue>,
    #[serde(rename = "inputResponses")]
    pub(crate) input_responses: Option<&'l RawValue>,
    #[serde(rename = "requestState")]
    pub(crate) request_state: Option<&'l RawValue>,
    /// Of a resource.
    pub(crate) uri: Option<&'l RawValue>,
    /// The request that is cancelled.
    #[serde(default, rename = "requestId", deserialize_with = "present")]
    pub(crate) request_id: Option<&'l RawValue>,
    #[serde(rename = "progressToken")]
    pub(crate) progress_token: Option<&'l RawValue>,
    pub(crate) progress: Option<&'l RawValue>,
    /// Of `initialize`.
    #[serde(rename = "clientInfo")]
    client: Option<&'l RawValue>,
}

impl<'l> Params<'l> {
    /// The params of a message; none if they are ambiguous.
    pub(crate) fn of(message: &Message<'l>) -> Self {
        message.params.and_then(|raw| jsonrpc::object(raw.get()).ok()).unwrap_or_default()
    }

    /// Their `_meta`; nothing if it is ambiguous.
    pub(crate) fn meta(&self) -> Meta<'l> {
        self.meta.and_then(|raw| jsonrpc::object(raw.get()).ok()).unwrap_or_default()
    }
}

/// What a request of this version says of its client.
pub(crate) fn client_meta(request: &[u8]) -> Map<String, Value> {
    let Line::One(message) = jsonrpc::read(request) else { return Map::new() };
    let meta = Params::of(&message).meta.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let mut meta: Map<String, Value> = meta.unwrap_or_default();
    meta.retain(|name, _| name.starts_with("io.modelcontextprotocol/"));
    meta
}

/// The id of the request that a line cancels.
pub(crate) fn cancelled(line: &[u8]) -> Option<Token> {
    let Line::One(message) = jsonrpc::read(line) else { return None };
    (message.method.as_deref()? == "notifications/cancelled").then_some(())?;
    Token::read(Params::of(&message).request_id?)
}

/// The JSON of the member at this place of an object; `None` if there is none, or `null`.
pub(crate) fn value_at(object: &str, at: &Pointer) -> Option<Box<str>> {
    let (parent, name) = parent(object, at)?;
    let value = members(parent)?.get(name)?.get();
    (value != "null").then(|| value.into())
}

/// Where to write what, so that the object has this JSON in the member at this place; `None` if there is no object to
/// have it.
pub(crate) fn value_put(object: &str, at: &Pointer, value: &str) -> Option<(Range<usize>, String)> {
    let (parent, name) = parent(object, at)?;
    let members = members(parent)?;
    if let Some(old) = members.get(name) {
        return Some((jsonrpc::range(object.as_bytes(), old), value.to_owned()));
    }
    let begin = jsonrpc::range(object.as_bytes(), parent).start + 1;
    let comma = if members.is_empty() { "" } else { "," };
    Some((begin..begin, format!("{}:{value}{comma}", Value::from(name))))
}

/// The object that has the member at this place, and the member's name.
fn parent<'o, 'p>(object: &'o str, at: &'p Pointer) -> Option<(&'o RawValue, &'p str)> {
    let (mut parent, mut tokens) = (serde_json::from_str::<&RawValue>(object).ok()?, at.tokens());
    let mut name = tokens.next()?;
    for inner in tokens {
        parent = members(parent)?.get(name)?;
        name = inner;
    }
    Some((parent, name))
}

fn members(object: &RawValue) -> Option<HashMap<String, &RawValue>> {
    jsonrpc::object(object.get()).ok()
}

/// The members of `_meta`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Meta<'l> {
    #[serde(borrow, rename = "progressToken")]
    pub(crate) progress_token: Option<&'l RawValue>,
    /// `null` counts as present, but is no usable key.
    #[serde(borrow, default, rename = "idempotencyKey", deserialize_with = "present")]
    pub(crate) idempotency_key: Option<&'l RawValue>,
    pub(crate) traceparent: Option<&'l RawValue>,
    /// Codex's description of its turn.
    #[serde(borrow, rename = "x-codex-turn-metadata")]
    codex_turn: Option<&'l RawValue>,
    /// The model's id of the call, in Codex's member.
    #[serde(borrow, rename = "callId")]
    pub(crate) codex_call: Option<&'l RawValue>,
    #[serde(borrow, rename = "threadId")]
    pub(crate) codex_thread: Option<&'l RawValue>,
    /// The same, in Claude Code's member.
    #[serde(borrow, rename = "claudecode/toolUseId")]
    pub(crate) claude_call: Option<&'l RawValue>,
    /// The client's information, which MCP 2026-07-28 sends in place of `initialize`.
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client: Option<&'l RawValue>,
    /// The version of MCP, which 2026-07-28 and later ones name with each request.
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) version: Option<&'l RawValue>,
    /// The subscription that a message of the server's belongs to.
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    pub(crate) subscription: Option<&'l RawValue>,
    // Members that name conversations, and no calls.
    #[serde(borrow, rename = "vscode.conversationId")]
    pub(crate) vscode: Option<&'l RawValue>,
    #[serde(borrow, rename = "ai.opencode/sessionID")]
    pub(crate) opencode: Option<&'l RawValue>,
    #[serde(borrow, rename = "agent-session-id")]
    pub(crate) goose: Option<&'l RawValue>,
    #[serde(borrow, rename = "antigravity.google/conversation_id")]
    pub(crate) antigravity: Option<&'l RawValue>,
}

/// The members of Codex's description of a turn that the guard reads.
#[derive(Debug, Default, Deserialize)]
struct CodexTurn<'l> {
    #[serde(borrow)]
    turn_id: Option<&'l RawValue>,
    model: Option<&'l RawValue>,
}

/// A client's description of itself.
#[derive(Default, Deserialize)]
struct Client<'l> {
    #[serde(borrow)]
    name: Option<&'l RawValue>,
    version: Option<&'l RawValue>,
}

/// Other information of a client's about a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Its turn.
    pub(crate) turn: Option<Box<str>>,
    /// The model that makes the call.
    pub(crate) model: Option<Box<str>>,
    /// The client, as `name/version`.
    pub(crate) client: Option<Box<str>>,
}

impl Meta<'_> {
    /// The turn is the `turn_id` of Codex's description, which may also be written into a string, as in the
    /// header of the same name; else the string itself. Other values name no turn.
    pub(crate) fn said(&self) -> Said {
        let client = self.client.and_then(client);
        let Some(raw) = self.codex_turn.map(RawValue::get) else {
            return Said { client, ..Said::default() };
        };
        let inner = self.codex_turn.and_then(string);
        let described = inner.as_deref().unwrap_or(raw);
        if described.starts_with('{') {
            let turn: CodexTurn<'_> = jsonrpc::object(described).unwrap_or_default();
            return Said { turn: text(turn.turn_id), model: text(turn.model), client };
        }
        Said { turn: text(self.codex_turn), model: None, client }
    }
}

/// The client, as `name/version`.
fn client(raw: &RawValue) -> Option<Box<str>> {
    let client: Client<'_> = jsonrpc::object(raw.get()).ok()?;
    let name = text(client.name)?;
    Some(match text(client.version) {
        Some(version) => format!("{name}/{version}").into(),
        None => name,
    })
}

/// The client whose `initialize` this is, as `name/version`.
pub(crate) fn initializes(message: &Message<'_>) -> Option<Box<str>> {
    message.is_initialize().then(|| Params::of(message).client.and_then(client)).flatten()
}

/// A member's text; clients may put anything into `_meta`, so other types count as none.
pub(crate) fn text(raw: Option<&RawValue>) -> Option<Box<str>> {
    string(raw?).filter(|text| !text.is_empty()).map(|text| text.into_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn said(meta: &str) -> Said {
        jsonrpc::object::<Meta<'_>>(meta).unwrap().said()
    }

    #[test]
    fn a_turn_is_named_by_codex() {
        let turn = |value: &str| said(&format!(r#"{{"x-codex-turn-metadata":{value}}}"#)).turn;
        let named = r#"{"session_id":"s","turn_id":"t1","turn_started_at_unix_ms":1}"#;
        assert_eq!(turn(named).as_deref(), Some("t1"));
        assert_eq!(turn(&serde_json::to_string(named).unwrap()).as_deref(), Some("t1"));
        assert_eq!(turn(r#""t2""#).as_deref(), Some("t2"));
        for none in ["7", "null", "{}", r#"{"turn_id":7}"#, r#"{"turn_id":null}"#, r#""""#, "[]"] {
            assert_eq!(turn(none), None, "{none}");
        }
    }

    #[test]
    fn codex_says_which_model_it_runs() {
        let turn = json!({ "turn_id": "t", "model": "gpt-5.4", "reasoning_effort": "high" });
        for value in [turn.clone(), Value::from(turn.to_string())] {
            let said = said(&json!({ "x-codex-turn-metadata": value }).to_string());
            assert_eq!(said.model.as_deref(), Some("gpt-5.4"));
            assert_eq!(said.turn.as_deref(), Some("t"));
        }
    }

    #[test]
    fn a_client_introduces_itself_with_a_call() {
        let client = |value: Value| {
            said(&json!({ "io.modelcontextprotocol/clientInfo": value }).to_string()).client
        };
        let both = json!({ "name": "claude-code", "version": "2.1" });
        assert_eq!(client(both).as_deref(), Some("claude-code/2.1"));
        assert_eq!(client(json!({ "name": "codex" })).as_deref(), Some("codex"));
        for none in [json!([]), json!({ "version": "1" }), json!({ "name": 7 }), json!(null)] {
            assert_eq!(client(none.clone()), None, "{none}");
        }
    }

    #[test]
    fn what_is_not_said_is_not_guessed() {
        for meta in [
            json!({}),
            json!({ "x-codex-turn-metadata": { "model": ["gpt"] } }),
            json!({ "x-codex-turn-metadata": [{ "model": "gpt" }], "model": "other" }),
        ] {
            assert_eq!(said(&meta.to_string()), Said::default(), "{meta}");
        }
    }
}
