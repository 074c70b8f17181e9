//! Reads a record's outline in one pass over its text: what a check needs of most of them.
//!
//! What it does not understand at once is `None`, and left to [`Entry::read`], which agrees with
//! it on all that it does.
mod wire;

use self::wire::{Answer, Content, Object, Parent, Text};
use super::{
    entry::{Entry, Link, What},
    form::FileForm,
};
use crate::{
    format::{self, Format},
    message::{Blank, Block, Body, Kind, Message, Role},
};
use serde::{Deserialize, de::IgnoredAny};

/// Reads a record that may be no JSON. Its message has no text.
pub(super) fn read(form: FileForm, record: &str) -> Option<Entry> {
    match form {
        FileForm::ClaudeCode | FileForm::ClaudeSubagent => {
            let takes_sides = form == FileForm::ClaudeSubagent;
            let line: Line<'_> = object(record)?;
            let kind = line.kind.filter(|kind| matches!(*kind, "user" | "assistant"));
            let is_plain = !(line.is_sidechain && !takes_sides
                || line.is_api_error
                || line.is_transcript_only);
            let Object(message) = line.message.filter(|_| kind.is_some() && is_plain)?;
            let group = message.id.map(Into::into);
            let message = message.anthropic()?;
            let (id, link) = (line.uuid.map(Into::into), line.parent_uuid.into_link());
            Some(Entry { id, link, what: What::Message { message, group } })
        }
        FileForm::OpenClaw { .. } => {
            let line: Line<'_> = object(record)?;
            let Object(message) = line.message.filter(|_| line.kind == Some("message"))?;
            let message = message.openclaw()?;
            let (id, link) = (line.id.map(Into::into), line.parent_id.into_link());
            Some(Entry { id, link, what: What::Message { message, group: None } })
        }
        FileForm::Messages(Format::AnthropicMessages) => {
            let message: Said<'_> = object(record)?;
            let what = What::Message { message: message.anthropic()?, group: None };
            Some(Entry { id: None, link: Link::Before, what })
        }
        FileForm::Messages(_) | FileForm::Codex | FileForm::Other => None,
    }
}

fn object<'t, T: Deserialize<'t>>(record: &'t str) -> Option<T> {
    let Object(object) = serde_json::from_str(record).ok()?;
    Some(object)
}

/// A line of Claude Code's or OpenClaw's.
#[derive(Deserialize)]
struct Line<'t> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'t str>,
    #[serde(borrow, default)]
    uuid: Option<&'t str>,
    #[serde(borrow, default, rename = "parentUuid")]
    parent_uuid: Parent<'t>,
    #[serde(borrow, default)]
    id: Option<&'t str>,
    #[serde(borrow, default, rename = "parentId")]
    parent_id: Parent<'t>,
    #[serde(default, rename = "isSidechain")]
    is_sidechain: bool,
    #[serde(default, rename = "isApiErrorMessage")]
    is_api_error: bool,
    #[serde(default, rename = "isVisibleInTranscriptOnly")]
    is_transcript_only: bool,
    #[serde(borrow, default)]
    message: Option<Object<Said<'t>>>,
}

/// A message.
#[derive(Deserialize)]
struct Said<'t> {
    #[serde(borrow, default)]
    id: Option<&'t str>,
    #[serde(borrow)]
    role: &'t str,
    #[serde(borrow, default)]
    content: Content<'t>,
    #[serde(borrow, default, rename = "toolCallId")]
    tool_call_id: Option<&'t str>,
    #[serde(borrow, default, rename = "stopReason")]
    stop_reason: Option<&'t str>,
    #[serde(borrow, default)]
    api: Option<&'t str>,
    /// Members in which other forms say something, of which some may be there twice.
    #[serde(
        default,
        alias = "args",
        alias = "arguments",
        alias = "blocks",
        alias = "body",
        alias = "call",
        alias = "contents",
        alias = "data",
        alias = "functionCall",
        alias = "functionResponse",
        alias = "function_call",
        alias = "function_response",
        alias = "input",
        alias = "kwargs",
        alias = "message",
        alias = "messages",
        alias = "output",
        alias = "parts",
        alias = "prompt",
        alias = "result",
        alias = "results",
        alias = "steps",
        alias = "text",
        alias = "toolCall",
        alias = "toolCalls",
        alias = "toolInvocations",
        alias = "toolResult",
        alias = "toolResults",
        alias = "toolUse",
        alias = "tool_call_id",
        alias = "tool_calls",
        alias = "tool_results",
        alias = "tool_use_id"
    )]
    says_more: Option<IgnoredAny>,
}

/// A block of a message, with all members that [`Entry::read`] looks at: one that is there twice
/// is not understood here either.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part<'t> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'t str>,
    #[serde(borrow, default)]
    id: Option<&'t str>,
    #[serde(borrow, default)]
    tool_use_id: Option<&'t str>,
    #[serde(default)]
    text: Option<Text>,
    #[serde(default)]
    content: Option<Answer>,
    #[serde(borrow, default)]
    name: Option<&'t str>,
    input: Option<Object<IgnoredAny>>,
    caller: Option<IgnoredAny>,
    is_error: Option<IgnoredAny>,
    arguments: Option<Object<IgnoredAny>>,
    #[serde(rename = "thoughtSignature")]
    thought_signature: Option<IgnoredAny>,
    citations: Option<IgnoredAny>,
    #[serde(rename = "isSystemPrompt")]
    is_system_prompt: Option<IgnoredAny>,
    #[serde(rename = "textSignature")]
    text_signature: Option<IgnoredAny>,
    /// Members of blocks that are never touched.
    thinking: Option<IgnoredAny>,
    #[serde(rename = "thinkingSignature")]
    thinking_signature: Option<IgnoredAny>,
    signature: Option<IgnoredAny>,
    source: Option<IgnoredAny>,
    data: Option<IgnoredAny>,
    #[serde(rename = "mimeType")]
    mime_type: Option<IgnoredAny>,
    cache_control: Option<IgnoredAny>,
}

impl Said<'_> {
    /// `None` where not all of it is understood, here and below.
    fn anthropic(self) -> Option<Message> {
        if self.says_more.is_some() || self.tool_call_id.is_some() {
            return None;
        }
        let role = match self.role {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return None,
        };
        let blocks = match self.content {
            Content::Absent => return None,
            Content::Text(Text { blank: Blank::Empty, .. }) => return None,
            Content::Text(text) => vec![block(Kind::Text(text.blank))],
            Content::Parts(parts) if parts.is_empty() => return None,
            Content::Parts(parts) => {
                let blocks = parts.into_iter().map(|Object(part)| part.anthropic(role));
                blocks.collect::<Option<_>>()?
            }
        };
        Some(message(role, blocks, None))
    }

    fn openclaw(self) -> Option<Message> {
        match self.role {
            "user" => Some(message(Role::User, Vec::new(), None)),
            "assistant" if !matches!(self.stop_reason, Some("error" | "aborted")) => {
                let Content::Parts(parts) = self.content else { return None };
                if self.says_more.is_some() {
                    return None;
                }
                let blocks = parts.into_iter().map(|Object(part)| part.openclaw());
                let blocks = blocks.collect::<Option<_>>()?;
                let answered_in = self.api.and_then(format::form_of_api);
                Some(message(Role::Assistant, blocks, answered_in))
            }
            "toolResult" => {
                let is_synthetic = match &self.content {
                    Content::Text(text) => text.is_synthetic,
                    Content::Parts(parts) => matches!(
                        &**parts,
                        [Object(Part { text: Some(Text { is_synthetic: true, .. }), .. })]
                    ),
                    Content::Absent => false,
                };
                let result = result(self.tool_call_id, is_synthetic);
                Some(message(Role::Tool, vec![block(result)], None))
            }
            _ => None,
        }
    }
}

impl Part<'_> {
    fn anthropic(self, role: Role) -> Option<Block> {
        let is_refused = self.input.is_none() || self.is_refused(200);
        let is_refused = is_refused || !self.id.is_none_or(format::is_plain);
        let is_use = self.is_of_use();
        let is_result = self.tool_use_id.is_some() || self.is_error.is_some();
        let is_text = self.text.is_some() || self.citations.is_some();
        let is_text = is_text || self.is_system_prompt.is_some();
        let is_openclaws = self.arguments.is_some() || self.thought_signature.is_some();
        let has_content = self.content.is_some();
        let is_other = is_openclaws || self.is_untouched();
        Some(block(match self.kind? {
            "tool_use" if !(is_result || is_text || is_other || has_content || is_refused) => {
                used(self.id)
            }
            "tool_result" if !(is_use || is_text || is_other) => {
                result(self.tool_use_id, self.content?.is_synthetic)
            }
            "text" if !(is_use || is_result || is_other || has_content) => {
                Kind::Text(self.text?.blank)
            }
            "thinking" | "redacted_thinking" if role == Role::User => return None,
            kind if format::is_untouched(kind) => Kind::Other,
            _ => return None,
        }))
    }

    fn openclaw(self) -> Option<Block> {
        let is_call = self.input.is_none() && self.caller.is_none() && !self.is_untouched();
        let is_call = is_call && self.text.is_none() && self.tool_use_id.is_none();
        let is_call = is_call && self.content.is_none() && self.is_error.is_none();
        let is_call = is_call && self.citations.is_none() && self.cache_control.is_none();
        let is_refused = self.arguments.is_none() || self.is_refused(usize::MAX);
        Some(block(match self.kind? {
            "toolCall" if is_call && self.is_system_prompt.is_none() && !is_refused => {
                used(self.id)
            }
            "text" => Kind::Text(Blank::No),
            "thinking" | "image" => Kind::Other,
            _ => return None,
        }))
    }

    /// Whether the name of a tool is refused, if at most so many bytes of it are taken.
    fn is_refused(&self, most: usize) -> bool {
        self.name.is_none_or(|name| name.is_empty() || name.len() > most)
    }

    /// Whether it has a member of Anthropic's uses.
    const fn is_of_use(&self) -> bool {
        let is_named = self.id.is_some() || self.name.is_some();
        is_named || self.input.is_some() || self.caller.is_some()
    }

    /// Whether it has a member of blocks that are never touched.
    const fn is_untouched(&self) -> bool {
        let is_thought = self.thinking.is_some() || self.thinking_signature.is_some();
        let is_thought = is_thought || self.signature.is_some() || self.text_signature.is_some();
        is_thought || self.source.is_some() || self.data.is_some() || self.mime_type.is_some()
    }
}

fn used(id: Option<&str>) -> Kind {
    let (id_at, name) = (id.map(|_| 0..0), Box::default());
    Kind::Use { id: id.unwrap_or_default().into(), id_at, name, noun: "" }
}

fn result(id: Option<&str>, synthetic: bool) -> Kind {
    let id = id.unwrap_or_default().into();
    Kind::Result { id, id_at: None, name: Box::default(), content: None, synthetic }
}

const fn block(kind: Kind) -> Block {
    Block::new(0..0, kind)
}

fn message(role: Role, mut blocks: Vec<Block>, answered_in: Option<Format>) -> Message {
    // It may have the room of what it was made of, and is kept.
    blocks.shrink_to_fit();
    Message::new(Body { role, blocks, answered_in, ..Body::of(Box::default()) })
}

impl Parent<'_> {
    fn into_link(self) -> Link {
        match self {
            Self::Absent => Link::Before,
            Self::Null => Link::Root,
            Self::Of(id) => Link::To(id.into()),
        }
    }
}
