//! The kinds of session files in JSON lines.
use crate::{format::Format, json};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The kind of session in a file of JSON lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileForm {
    /// Claude Code's: a line for each block, linked by `uuid` and `parentUuid`.
    ClaudeCode,
    /// A session of one of Claude Code's subagents: the same lines, all of a side chain.
    ClaudeSubagent,
    /// Codex's rollouts: items of OpenAI's Responses, one in each line, with a timestamp.
    Codex,
    /// OpenClaw's and pi's: a header, then entries; from version 2 on linked by `id` and
    /// `parentId`.
    OpenClaw {
        /// The header's version; 1 where it names none.
        version: u32,
    },
    /// A message of this form on each line.
    Messages(Format),
    /// Unknown: the lines are read, and their content is not judged.
    Other,
}

/// The members of a record that tell the forms apart.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'t> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'t RawValue>,
    id: Option<&'t RawValue>,
    version: Option<&'t RawValue>,
    uuid: Option<&'t RawValue>,
    leaf_uuid: Option<&'t RawValue>,
    #[serde(default, deserialize_with = "json::present")]
    parent_uuid: Option<&'t RawValue>,
    session_id: Option<&'t RawValue>,
    is_sidechain: Option<&'t RawValue>,
    message: Option<&'t RawValue>,
    timestamp: Option<&'t RawValue>,
    payload: Option<&'t RawValue>,
    cwd: Option<&'t RawValue>,
}

/// The record types of a rollout other than the items.
const CODEX: [&str; 6] =
    ["session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"];

impl Wire<'_> {
    fn kind(&self) -> Option<Cow<'_, str>> {
        self.kind.and_then(json::string)
    }

    /// Whether it is a message of Claude Code's, or an entry with a place in one of its sessions.
    fn is_claude_code(&self) -> bool {
        let has_place = is_string(self.uuid) || is_string(self.session_id);
        let has_place = has_place || self.parent_uuid.is_some();
        match self.kind().as_deref() {
            Some("user" | "assistant") => is_object(self.message) && has_place,
            Some(_) => {
                let is_linked = self.parent_uuid.is_some() || is_string(self.session_id);
                is_string(self.leaf_uuid) || is_string(self.uuid) && is_linked
            }
            None => false,
        }
    }

    fn is_sidechain(&self) -> bool {
        self.is_sidechain.is_some_and(|raw| raw.get() == "true")
    }

    fn is_codex(&self) -> bool {
        is_object(self.payload) && is_string(self.timestamp) && is_string(self.kind)
    }
}

fn is_object(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get().starts_with('{'))
}

fn is_string(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get().starts_with('"'))
}

impl FileForm {
    /// The form that follows from this record alone; `None` if several are possible.
    pub(super) fn detect(record: &str) -> Option<Self> {
        let wire: Wire<'_> = json::object(record).ok()?;
        let begins = is_string(wire.timestamp) || wire.version.or(wire.cwd).is_some();
        match wire.kind().as_deref() {
            Some("session") if is_string(wire.id) && begins => {
                let version = wire.version.and_then(|raw| raw.get().parse().ok()).unwrap_or(1);
                return Some(Self::OpenClaw { version });
            }
            // A subagent's lines may stand in the file of its session.
            _ if wire.is_claude_code() && wire.is_sidechain() => return None,
            _ if wire.is_claude_code() => return Some(Self::ClaudeCode),
            Some(kind) if wire.is_codex() && CODEX.contains(&kind) => return Some(Self::Codex),
            // The header is missing.
            Some("message") if says_openclaw(wire.message) => {
                let version = if is_string(wire.id) { 3 } else { 1 };
                return Some(Self::OpenClaw { version });
            }
            _ => {}
        }
        Format::detect(&format!("[{record}]")).map(Self::Messages)
    }

    /// The form of a file of which no record alone decides the form.
    pub(super) fn of_plain(records: &[&str]) -> Self {
        let is_of_subagent = |record: &&str| {
            let wire: Wire<'_> = json::object(record).unwrap_or_default();
            wire.is_claude_code() && wire.is_sidechain()
        };
        if records.iter().any(is_of_subagent) {
            return Self::ClaudeSubagent;
        }
        let format = Format::AnthropicMessages;
        let is_plain = records.iter().any(|record| format.read(*record).is_ok());
        if is_plain { Self::Messages(format) } else { Self::Other }
    }

    /// Whether a record has the shape of this form's records.
    pub(super) fn owns(self, record: &str) -> bool {
        let wire: Wire<'_> = json::object(record).unwrap_or_default();
        match self {
            Self::ClaudeCode | Self::ClaudeSubagent | Self::OpenClaw { .. } => is_string(wire.kind),
            Self::Codex => wire.is_codex(),
            Self::Messages(format) => {
                let message = format.read(record);
                message.is_ok_and(|message| !message.says_unknown())
            }
            Self::Other => false,
        }
    }

    /// Whether its lines are Claude Code's.
    pub(super) const fn is_claude_code(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::ClaudeSubagent)
    }

    /// The form of the messages in it.
    #[must_use]
    pub const fn messages(self) -> Option<Format> {
        match self {
            Self::ClaudeCode | Self::ClaudeSubagent => Some(Format::AnthropicMessages),
            Self::Codex => Some(Format::OpenAiResponses),
            Self::OpenClaw { .. } => Some(Format::OpenClaw),
            Self::Messages(format) => Some(format),
            Self::Other => None,
        }
    }
}

/// Whether a message names its speaker, as all of OpenClaw's do.
fn says_openclaw(message: Option<&RawValue>) -> bool {
    #[derive(Default, Deserialize)]
    struct Inner<'t> {
        #[serde(borrow)]
        role: Option<&'t RawValue>,
    }
    let inner = message.and_then(|message| json::object::<Inner<'_>>(message.get()).ok());
    inner.is_some_and(|inner| is_string(inner.role))
}

impl fmt::Display for FileForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClaudeCode => f.write_str("Claude Code"),
            Self::ClaudeSubagent => f.write_str("Claude Code subagent"),
            Self::Codex => f.write_str("Codex"),
            Self::OpenClaw { version } => write!(f, "OpenClaw version {version}"),
            Self::Messages(Format::AnthropicMessages) => f.write_str("Anthropic messages"),
            Self::Messages(Format::OpenAiChat) => f.write_str("OpenAI Chat messages"),
            Self::Messages(Format::OpenAiResponses) => f.write_str("OpenAI Responses items"),
            Self::Messages(Format::Gemini) => f.write_str("Gemini contents"),
            Self::Messages(Format::OpenClaw) => f.write_str("OpenClaw messages"),
            Self::Other => f.write_str("no known session"),
        }
    }
}
