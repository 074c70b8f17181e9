//! Which kind of session a file of JSON lines holds.
use crate::{format::Format, json};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::fmt;

/// Which kind of session a file of JSON lines holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileForm {
    /// Claude Code's: a line for each block, linked by `uuid` and `parentUuid`.
    ClaudeCode,
    /// OpenClaw's and pi's: a header, then entries; from version 2 on linked by `id` and
    /// `parentId`.
    OpenClaw {
        /// The header's version; 1 where it names none.
        version: u32,
    },
    /// A message of this form on each line.
    Messages(Format),
    /// Nothing known: its lines are read, and their content is not judged.
    Other,
}

/// A record, as far as it tells the forms apart.
#[derive(Default, Deserialize)]
struct Wire<'t> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'t RawValue>,
    #[serde(borrow)]
    id: Option<&'t RawValue>,
    #[serde(borrow)]
    version: Option<&'t RawValue>,
    #[serde(borrow)]
    uuid: Option<&'t RawValue>,
    #[serde(borrow, rename = "leafUuid")]
    leaf_uuid: Option<&'t RawValue>,
    #[serde(borrow)]
    message: Option<&'t RawValue>,
}

impl FileForm {
    /// The form that one record tells; `None` if it could be of several.
    pub(super) fn detect(record: &str) -> Option<Self> {
        let wire: Wire<'_> = json::object(record).ok()?;
        let is_object = |raw: &RawValue| raw.get().starts_with('{');
        let has_message = wire.message.is_some_and(is_object);
        let is_string = |raw: Option<&RawValue>| raw.is_some_and(|raw| raw.get().starts_with('"'));
        match wire.kind.and_then(json::string).as_deref() {
            Some("session") if is_string(wire.id) => {
                let version = wire.version.and_then(|raw| raw.get().parse().ok()).unwrap_or(1);
                return Some(Self::OpenClaw { version });
            }
            Some("user" | "assistant") if has_message => return Some(Self::ClaudeCode),
            Some(_) if is_string(wire.uuid) || is_string(wire.leaf_uuid) => {
                return Some(Self::ClaudeCode);
            }
            // Its header is lost.
            Some("message") if has_message => {
                let version = if is_string(wire.id) { 3 } else { 1 };
                return Some(Self::OpenClaw { version });
            }
            _ => {}
        }
        Format::detect(&format!("[{record}]")).map(Self::Messages)
    }

    /// The form of records none of which tells it.
    pub(super) fn of_plain(records: &[&str]) -> Self {
        let format = Format::AnthropicMessages;
        let is_plain = records.iter().any(|record| format.read(*record).is_ok());
        if is_plain { Self::Messages(format) } else { Self::Other }
    }

    /// The form of the messages in it.
    #[must_use]
    pub const fn messages(self) -> Option<Format> {
        match self {
            Self::ClaudeCode => Some(Format::AnthropicMessages),
            Self::OpenClaw { .. } => Some(Format::OpenClaw),
            Self::Messages(format) => Some(format),
            Self::Other => None,
        }
    }
}

impl fmt::Display for FileForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClaudeCode => f.write_str("Claude Code"),
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
