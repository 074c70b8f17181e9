//! Reads one record: its place in the session's tree, and its message.
use super::{form::FileForm, preserved::Preserved};
use crate::{
    format::{Blanks, Format, Why},
    json::{self, Members},
    message::{Blank, Block, Body, Kind, Message, Role},
    name::Name,
};
use serde_json::value::RawValue;

/// One record's content.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: Option<Name>,
    pub(super) link: Link,
    pub(super) what: What,
}

/// What it follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Link<I = Name> {
    /// The entry before it in the file.
    #[default]
    Before,
    /// Nothing: it begins a session.
    Root,
    /// The entry of this id.
    To(I),
}

impl<I> Link<I> {
    /// The same with another form of its id.
    pub(super) fn map<O>(&self, id: impl FnOnce(&I) -> O) -> Link<O> {
        match self {
            Self::Before => Link::Before,
            Self::Root => Link::Root,
            Self::To(it) => Link::To(id(it)),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// The file's header; `is_openais` unless it names another provider.
    Header { is_openais: bool },
    /// Not part of the session's tree.
    Outside,
    /// The model does not see it.
    Hidden,
    /// An answer that the agent does not send because it is empty; and its group.
    Empty(Option<Name>),
    /// A message that cannot be read: what the model sees of it is not known.
    Unread,
    Message {
        message: Message,
        /// Messages of one group are one message to the model.
        group: Option<Name>,
    },
    /// The model does not see another entry, or something else in its place.
    Edited { target: Name, omits: bool },
    /// The model sees a summary instead of the entries before the first kept one.
    Compaction(FirstKept),
    /// The model sees no entry before this one, but those that a compaction keeps.
    Reset(Option<Box<Preserved>>),
    /// Changes what the model sees of earlier entries, in a way that is not known.
    Rewritten,
    /// Takes back so many turns. In a form that has this, a turn begins with [`Link::Root`].
    Undone(u64),
    /// Not part of the tree: it names the last entry of the active branch.
    Leaf {
        id: Name,
        /// The user chose it.
        is_explicit: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) enum FirstKept {
    Id(Name),
    /// Among the file's records.
    Number(u64),
    Nothing,
}

impl Entry {
    /// No part of the session.
    pub(super) const OUTSIDE: Self = Self { id: None, link: Link::Before, what: What::Outside };

    /// Reads a record of a file in this form.
    pub(super) fn read(form: FileForm, record: &str) -> Self {
        let read = match form {
            FileForm::ClaudeCode => claude_code(record, false),
            FileForm::ClaudeSubagent => claude_code(record, true),
            FileForm::Codex => codex(record),
            FileForm::OpenClaw { .. } => openclaw(record),
            FileForm::Messages(format) => {
                read(format, record).map(|message| Self::message(None, Link::Before, message))
            }
            FileForm::Other => None,
        };
        read.unwrap_or(Self::OUTSIDE)
    }

    pub(super) fn message(id: Option<Name>, link: Link, message: Message) -> Self {
        Self { id, link, what: What::Message { message, group: None } }
    }

    /// Its message, if the model sees it.
    pub(super) fn as_message(&self) -> Option<&Message> {
        let What::Message { message, .. } = &self.what else { return None };
        Some(message)
    }

    /// The answer to which this line belongs, in a form where an answer has several lines.
    pub(super) fn answer(&self) -> Option<&str> {
        match &self.what {
            What::Message { message, group } if message.role() == Role::Assistant => {
                group.as_deref()
            }
            What::Empty(group) => group.as_deref(),
            _ => None,
        }
    }

    /// Whether a branch may end with it: the last such entry of the file ends the active one.
    pub(super) fn is_leaf(&self, form: FileForm) -> bool {
        let may_speak = matches!(self.what, What::Message { .. } | What::Empty(_) | What::Unread);
        if form.is_claude_code() { may_speak } else { !self.is_outside() }
    }

    pub(super) fn is_outside(&self) -> bool {
        matches!(self.what, What::Outside | What::Header { .. } | What::Leaf { .. })
    }
}

/// The members of Claude Code's lines that are read.
const CLAUDE_CODE: [&str; 12] = [
    "type",
    "subtype",
    "uuid",
    "leafUuid",
    "parentUuid",
    "isSidechain",
    "isApiErrorMessage",
    "isVisibleInTranscriptOnly",
    "message",
    "compactMetadata",
    "explicit",
    "isCompactSummary",
];

/// `takes_sides` says that side chain lines form the session.
fn claude_code(record: &str, takes_sides: bool) -> Option<Entry> {
    let wire = Members::of(record, &CLAUDE_CODE).ok()?;
    if wire.is_true("isSidechain") && !takes_sides {
        return None;
    }
    let (id, link) = (named(&wire, "uuid"), link(&wire, "parentUuid"));
    let is_hidden = wire.is_true("isApiErrorMessage")
        || wire.is_true("isVisibleInTranscriptOnly") && !wire.is_true("isCompactSummary");
    let what = match &*wire.text("type") {
        "user" | "assistant" if !is_hidden => {
            let read = |raw: &RawValue| read(Format::AnthropicMessages, raw.get());
            let group = named(&wire.inside("message", &["id"]), "id");
            match wire.get("message").and_then(read) {
                None => What::Unread,
                Some(message) if is_empty(&message) => What::Empty(group),
                Some(message) => What::Message { message, group },
            }
        }
        "system" if wire.text("subtype") == "compact_boundary" => {
            let metadata = wire.get("compactMetadata");
            let kept = metadata.and_then(|metadata| Preserved::of(metadata.get()));
            What::Reset(kept.map(Box::new))
        }
        "last-prompt" => {
            let is_explicit = wire.is_true("explicit");
            named(&wire, "leafUuid").map_or(What::Hidden, |id| What::Leaf { id, is_explicit })
        }
        _ => What::Hidden,
    };
    (id.is_some() || !matches!(what, What::Hidden)).then_some(Entry { id, link, what })
}

/// Codex's line. Its history is the sequence of items; other lines that change the history are not
/// understood, except a compaction that leaves no calls.
fn codex(record: &str) -> Option<Entry> {
    let wire = Members::of(record, &["type", "payload"]).ok()?;
    let payload = wire.get("payload")?.get();
    let names = [
        "type",
        "num_turns",
        "replacement_history",
        "replacement_history_entries",
        "model_provider",
    ];
    let inner = wire.inside("payload", &names);
    let what = match &*wire.string("type")? {
        "session_meta" => {
            let provider = inner.string("model_provider");
            What::Header { is_openais: provider.is_none_or(|provider| provider == "openai") }
        }
        "response_item" => match read(Format::OpenAiResponses, payload) {
            Some(message) if is_of_its_types(&message) => {
                let link = if begins_turn(payload) { Link::Root } else { Link::Before };
                return Some(Entry::message(None, link, message));
            }
            _ => What::Unread,
        },
        "compacted" if is_plain(&inner) => What::Reset(None),
        "event_msg" => match inner.string("type").as_deref() {
            Some("thread_rolled_back") => {
                let turns = inner.get("num_turns").and_then(|turns| turns.get().parse().ok());
                What::Undone(turns.unwrap_or_default())
            }
            None => What::Rewritten,
            Some(_) => What::Outside,
        },
        "turn_context"
        | "world_state"
        | "token_usage_record"
        | "security_risk_score"
        | "inter_agent_communication_metadata" => What::Outside,
        "inter_agent_communication" => return Some(Entry::message(None, Link::Root, said())),
        _ => What::Rewritten,
    };
    Some(Entry { id: None, link: Link::Before, what })
}

/// Beginnings of what Codex itself writes as the user's. They begin no turn.
const CONTEXT: [&str; 7] = [
    "# AGENTS.md instructions",
    "<environment_context>",
    "<recommended_plugins>",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_shell_command>",
];

/// Whether an item begins a turn: the user says something, or another agent.
fn begins_turn(item: &str) -> bool {
    let wire = Members::of(item, &["type", "role", "content"]).unwrap_or_default();
    let parts = wire.get("content").and_then(|content| json::elements(content.get()).ok());
    let first = parts.as_ref().and_then(|parts| parts.first());
    let text = first.map(|part| Members::of(part, &["text"]).unwrap_or_default().text("text"));
    let is_context = text.is_some_and(|text| CONTEXT.iter().any(|begin| text.starts_with(begin)));
    wire.text("type") == "agent_message" || wire.text("role") == "user" && !is_context
}

/// Whether a compaction leaves nothing to which a later item may belong.
fn is_plain(compacted: &Members<'_>) -> bool {
    let Some(history) = compacted.get("replacement_history") else {
        return compacted.get("replacement_history_entries").is_none();
    };
    let is_plain = |item: &str| {
        let Ok(item) = Format::OpenAiResponses.read(item) else { return false };
        let pairs = item.tool_uses().next().or(item.tool_results().next());
        let is_kept = |block: &Block| matches!(block.kind, Kind::Reasoning | Kind::Reference);
        pairs.is_none() && item.is_understood() && !item.blocks().iter().any(is_kept)
    };
    let items = json::elements(history.get());
    items.is_ok_and(|items| items.into_iter().all(is_plain))
}

/// The members of OpenClaw's lines that are read.
const OPENCLAW: [&str; 9] = [
    "type",
    "id",
    "parentId",
    "message",
    "summary",
    "firstKeptEntryId",
    "firstKeptEntryIndex",
    "targetId",
    "replacement",
];

fn openclaw(record: &str) -> Option<Entry> {
    let wire = Members::of(record, &OPENCLAW).ok()?;
    let what = match &*wire.string("type")? {
        "session" => {
            return Some(Entry { what: What::Header { is_openais: true }, ..Entry::OUTSIDE });
        }
        "message" => match wire.get("message").and_then(|raw| read(Format::OpenClaw, raw.get())) {
            Some(message) if is_broken_off(&message) => What::Hidden,
            Some(message) => What::Message { message, group: None },
            None => What::Unread,
        },
        "custom_message" => What::Message { message: said(), group: None },
        "branch_summary" if wire.get("summary").is_some_and(|summary| summary.get() != r#""""#) => {
            What::Message { message: said(), group: None }
        }
        "compaction" => {
            let number = wire.get("firstKeptEntryIndex").and_then(|it| it.get().parse().ok());
            let number = number.map_or(FirstKept::Nothing, FirstKept::Number);
            What::Compaction(named(&wire, "firstKeptEntryId").map_or(number, FirstKept::Id))
        }
        "reset" => What::Reset(None),
        "context_edit" => match named(&wire, "targetId") {
            Some(target) => What::Edited { target, omits: wire.get("replacement").is_none() },
            None => What::Hidden,
        },
        // For example a block that a torn record left on its line: nothing may be linked to it.
        _ if wire.get("id").is_none() => return Some(Entry::OUTSIDE),
        _ => What::Hidden,
    };
    Some(Entry { id: named(&wire, "id"), link: link(&wire, "parentId"), what })
}

/// Reads a message. One without the expected content, but with text elsewhere, is of another form
/// or damaged.
fn read(format: Format, raw: &str) -> Option<Message> {
    let message = format.read(raw).ok()?;
    if message.body.list.is_none() && format.rules().blanks != Blanks::Nothing {
        let list = if format == Format::Gemini { "parts" } else { "content" };
        if json::members(raw).ok()?.keys().any(|name| name != "role" && name != list) {
            return None;
        }
    }
    Some(message)
}

/// Whether it is an answer with the text `""`, which Claude Code does not send; it does send one
/// without blocks.
fn is_empty(message: &Message) -> bool {
    let list = message.body.list.as_ref().map(|list| message.text(list));
    message.role() == Role::Assistant && message.blocks().is_empty() && list == Some(r#""""#)
}

/// Whether it is an answer that failed or was interrupted, which OpenClaw does not send.
fn is_broken_off(message: &Message) -> bool {
    let reason = Members::of(message.raw(), &["stopReason"]).unwrap_or_default().text("stopReason");
    message.role() == Role::Assistant && matches!(&*reason, "error" | "aborted")
}

/// Whether Codex can read an item: no required member is missing or of another type. How Codex
/// treats the others is not known.
fn is_of_its_types(item: &Message) -> bool {
    let refused = item.blocks().iter().filter_map(|block| block.refused.as_deref());
    let mut refused = refused.chain(item.refused());
    !refused.any(|refused| matches!(refused.why, Why::Missing | Why::Type { .. }))
}

/// A placeholder for what the model sees as a user's text.
pub(super) fn said() -> Message {
    text_of(Role::User, r#"{"role":"user","content":"…"}"#)
}

/// What Claude Code sends for an answer without blocks.
pub(super) fn filled() -> Message {
    text_of(Role::Assistant, r#"{"role":"assistant","content":"(no content)"}"#)
}

fn text_of(role: Role, raw: &str) -> Message {
    let text = Block::new(0..0, Kind::Text(Blank::No));
    Message::new(Body { role, blocks: vec![text], ..Body::of(raw.into()) })
}

fn named(wire: &Members<'_>, name: &str) -> Option<Name> {
    wire.string(name).map(|text| Name::from(&*text))
}

fn link(wire: &Members<'_>, name: &str) -> Link {
    match wire.present(name) {
        None => Link::Before,
        Some(_) => named(wire, name).map_or(Link::Root, Link::To),
    }
}
