//! The kinds of session files in JSON lines.
use super::records::find_in_records;
use crate::{
    format::{Applies, Format},
    json::Members,
};
use std::fmt;

/// The kind of session in a file of JSON lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
    #[default]
    Other,
}

/// The members of a record that tell the forms apart.
const READ: [&str; 12] = [
    "type",
    "id",
    "version",
    "uuid",
    "leafUuid",
    "parentUuid",
    "sessionId",
    "isSidechain",
    "message",
    "timestamp",
    "payload",
    "cwd",
];

/// The record types of a rollout other than the items.
const CODEX: [&str; 6] =
    ["session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"];

fn is_codex(wire: &Members<'_>) -> bool {
    wire.begins("payload", '{') && wire.begins("timestamp", '"') && wire.begins("type", '"')
}

/// Whether a record is a message of Claude Code's, or an entry with a place in one of its sessions.
fn is_claude_code(wire: &Members<'_>) -> bool {
    let is_linked = wire.present("parentUuid").is_some() || wire.begins("sessionId", '"');
    match wire.string("type").as_deref() {
        Some("user" | "assistant") => {
            wire.begins("message", '{') && (is_linked || wire.begins("uuid", '"'))
        }
        Some(_) => wire.begins("leafUuid", '"') || wire.begins("uuid", '"') && is_linked,
        None => false,
    }
}

impl FileForm {
    /// The form of a file.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut plain = Self::Other;
        let told = find_in_records(bytes, |record| {
            let form = Self::detect(record);
            if form.is_none() {
                plain = plain.or_plain(record);
            }
            form
        });
        told.unwrap_or(plain)
    }

    /// The form that follows from this record alone; `None` if several are possible.
    pub(super) fn detect(record: &str) -> Option<Self> {
        let wire = Members::of(record, &READ).ok()?;
        let version = wire.get("version");
        let begins = wire.begins("timestamp", '"') || version.or(wire.get("cwd")).is_some();
        match wire.string("type").as_deref() {
            Some("session") if wire.begins("id", '"') && begins => {
                let version = version.and_then(|raw| raw.get().parse().ok()).unwrap_or(1);
                return Some(Self::OpenClaw { version });
            }
            // A subagent's lines may stand in the file of its session.
            _ if is_claude_code(&wire) && wire.is_true("isSidechain") => return None,
            _ if is_claude_code(&wire) => return Some(Self::ClaudeCode),
            Some(kind) if is_codex(&wire) && CODEX.contains(&kind) => return Some(Self::Codex),
            // The header is missing.
            // All of its messages name their speaker.
            Some("message") if wire.inside("message", &["role"]).begins("role", '"') => {
                let version = if wire.begins("id", '"') { 3 } else { 1 };
                return Some(Self::OpenClaw { version });
            }
            _ => {}
        }
        Format::detect(&format!("[{record}]")).map(Self::Messages)
    }

    /// The form of a file of which no record alone decides the form, this one neither; `self` is
    /// that of the records before it.
    pub(super) fn or_plain(self, record: &str) -> Self {
        let wire = Members::of(record, &READ).unwrap_or_default();
        let is_plain = || Format::AnthropicMessages.read(record).is_ok();
        match self {
            _ if is_claude_code(&wire) && wire.is_true("isSidechain") => Self::ClaudeSubagent,
            Self::Other if is_plain() => Self::Messages(Format::AnthropicMessages),
            form => form,
        }
    }

    /// Whether a record has the shape of this form's records.
    pub(super) fn owns(self, record: &str) -> bool {
        let wire = Members::of(record, &READ).unwrap_or_default();
        match self {
            Self::ClaudeCode | Self::ClaudeSubagent | Self::OpenClaw { .. } => {
                wire.begins("type", '"')
            }
            Self::Codex => is_codex(&wire),
            Self::Messages(format) => format.read(record).is_ok_and(|it| !it.says_unknown()),
            Self::Other => false,
        }
    }

    /// Which of the provider's refusals concern such a file: Codex has nothing stored.
    pub(super) fn applies(self) -> Applies {
        Applies { unstored: self == Self::Codex, ..Applies::default() }
    }

    /// Whether its lines are Claude Code's.
    pub(super) const fn is_claude_code(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::ClaudeSubagent)
    }

    /// The member of an entry that names its parent.
    #[must_use]
    pub const fn parent_member(self) -> &'static str {
        if self.is_claude_code() { "parentUuid" } else { "parentId" }
    }

    /// The member that holds an entry's id.
    pub(super) const fn id_member(self) -> &'static str {
        if self.is_claude_code() { "uuid" } else { "id" }
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
