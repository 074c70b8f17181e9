//! Clients that repeat calls as agents and SDKs were observed to do.

mod http;
mod stdio;

pub(crate) use http::{Http, answer, ask};
pub(crate) use stdio::Stdio;

use crate::wire::PATIENCE;
use serde_json::{Value, json};
use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

/// How long a client waits for an answer, as agents do: no row of the table takes longer.
pub(crate) const WAITS: Duration = Duration::from_secs(PATIENCE.as_secs() / 2);

/// What a client is like: how it names its calls, and on which refusals it repeats them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ClaudeCode,
    Codex,
    /// Sends `_meta.idempotencyKey`, and repeats as rmcp does.
    Keyed,
    /// Names no call, and repeats as rmcp does.
    Keyless,
}

/// The version of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2025-11-25, with sessions.
    Legacy,
    /// 2026-07-28, without: a call whose stream broke is sent again under a new id.
    Modern,
}

impl Era {
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

/// An intended call: it is one, however often it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) order: String,
    pub(crate) meta: Value,
    /// The server's key, among the arguments.
    pub(crate) key: Option<&'static str>,
}

impl Call {
    /// A call as this client makes it, under an id of its own.
    pub(crate) fn new(kind: Kind, tool: &'static str, order: &str) -> Self {
        let meta = match kind {
            Kind::ClaudeCode => {
                json!({ "claudecode/toolUseId": format!("toolu_01{}", random(22)) })
            }
            Kind::Codex => json!({ "callId": format!("call_{}", random(24)),
                                   "threadId": "0199d4c8-6a3e-7c52-9d41-7b1f0a5c2e63" }),
            Kind::Keyed => json!({ "idempotencyKey": format!("order-{}", random(20)) }),
            Kind::Keyless => json!({}),
        };
        Self { tool, order: order.into(), meta, key: None }
    }

    fn params(&self, era: Era) -> Value {
        let mut meta = self.meta.clone();
        if era == Era::Modern {
            modern(&mut meta);
        }
        let mut arguments = json!({ "order": self.order });
        if let Some(key) = self.key {
            arguments["idempotency_key"] = key.into();
        }
        json!({ "name": self.tool, "arguments": arguments, "_meta": meta })
    }
}

/// What 2026-07-28 asks of each request.
fn modern(meta: &mut Value) {
    meta["io.modelcontextprotocol/protocolVersion"] = Era::Modern.version().into();
    meta["io.modelcontextprotocol/clientInfo"] = client_info();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
}

fn client_info() -> Value {
    json!({ "name": "mcp-http", "version": "1" })
}

fn hello() -> Value {
    json!({ "protocolVersion": Era::Legacy.version(), "capabilities": {}, "clientInfo": client_info() })
}

/// Letters and digits that no two calls share; they alternate as in most random ids, since the guard takes
/// 4 of 1,000 for names, which may come again.
pub(crate) fn random(length: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    const DIGITS: &[u8] = b"23456789";
    let one = |place: usize| {
        let of = if place.is_multiple_of(3) { DIGITS } else { LETTERS };
        let number = RandomState::new().hash_one(place) as usize;
        char::from(of[number % of.len()])
    };
    (0..length).map(one).collect()
}

/// What a client sees of one request.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    /// The message that answers it.
    Answer(Value),
    /// A response without one.
    Status { status: u16, challenge: Option<String>, body: String },
    /// A response of 200 that cannot be read as an answer: malformed, or under another id.
    Unreadable(String),
    /// The connection ended first.
    Cut,
    /// Nothing came within the client's patience.
    Hung,
}

impl Seen {
    /// What the model reads.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Answer(answer) => {
                let result = &answer["result"]["content"];
                let parts = result.as_array().into_iter().flatten();
                let texts: Vec<_> = parts.filter_map(|part| part["text"].as_str()).collect();
                let error = answer["error"]["message"].as_str().unwrap_or_default();
                format!("{}{error}", texts.join("\n"))
            }
            Self::Unreadable(text) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    /// Whether it is a result that is no failure.
    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Answer(answer) if answer["result"].is_object() && answer["result"]["isError"] != true)
    }

    /// Whether it is a result that says it failed, as the guard's own answers do.
    pub(crate) fn is_in_band_failure(&self) -> bool {
        matches!(self, Self::Answer(answer) if answer["result"]["isError"] == true)
    }

    pub(crate) fn is_status(&self, expected: u16) -> bool {
        matches!(self, Self::Status { status, .. } if *status == expected)
    }
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Keyed, Self::Keyless];

    /// Whether it begins a new session and sends the call again.
    fn repeats(self, seen: &Seen, era: Era) -> bool {
        match (self, seen) {
            (_, Seen::Status { status: 404, .. }) => era == Era::Legacy,
            (Self::ClaudeCode, Seen::Status { status: 401, challenge, .. }) => challenge.is_some(),
            (Self::ClaudeCode, Seen::Status { status: 400, body, .. }) => body.contains("-32000"),
            (_, Seen::Cut) => era == Era::Modern,
            _ => false,
        }
    }
}
