//! The forms in which providers and harnesses write transcripts; one module for each.
mod anthropic;
mod openai_chat;
mod openclaw;
#[cfg(test)]
mod tests;

use crate::{
    json::{self, Piece},
    message::{Block, Message, Role},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;

/// What an unanswered use gets as its result: an error with exactly this content.
pub const OUTCOME_UNKNOWN: &str = "outcome unknown, may have run";

/// How a repair of OpenClaw's begins what it puts in the place of a missing result.
const OPENCLAW_SYNTHETIC: &str = "[openclaw] missing tool result in session history";

/// A form of transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// Anthropic's Messages API: results are blocks of the next user message.
    AnthropicMessages,
    /// OpenAI's Chat Completions API: results are messages of the role `tool`.
    OpenAiChat,
    /// OpenClaw's and pi's own messages: results are messages of the role `toolResult`.
    OpenClaw,
}

/// A message that is not in its format's form.
#[derive(Debug)]
pub struct ReadError {
    what: &'static str,
    at: Option<usize>,
    source: Option<serde_json::Error>,
}

/// A tool use that is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewUse<'r> {
    pub(crate) id: &'r str,
    pub(crate) name: &'r str,
    pub(crate) input: &'r str,
}

impl Format {
    /// The form of a JSON text: an array of messages, or a request with `messages` in it.
    ///
    /// `None` if nothing in it tells the forms apart (only plain texts), or if it is neither.
    #[must_use]
    pub fn detect(text: &str) -> Option<Self> {
        let request: Request<'_> = json::object(text).unwrap_or_default();
        let messages = request.messages.map_or(text, RawValue::get);
        // Anthropic's system prompt stands beside the messages.
        let mut anthropic = usize::from(request.system.is_some());
        let (mut openai, mut openclaw) = (0, 0);
        for message in json::elements(messages).ok()? {
            anthropic += anthropic::evidence(message);
            openai += openai_chat::evidence(message);
            openclaw += openclaw::evidence(message);
        }
        // No other form has calls or results like its.
        if openclaw > 0 {
            return Some(Self::OpenClaw);
        }
        match anthropic.cmp(&openai) {
            std::cmp::Ordering::Greater => Some(Self::AnthropicMessages),
            std::cmp::Ordering::Less => Some(Self::OpenAiChat),
            std::cmp::Ordering::Equal => (anthropic > 0).then_some(Self::AnthropicMessages),
        }
    }

    /// Reads one message.
    ///
    /// # Errors
    /// If it is no JSON object with a role, or names a member twice.
    pub fn read(self, raw: impl Into<Box<str>>) -> Result<Message, ReadError> {
        let raw = raw.into();
        match self {
            Self::AnthropicMessages => anthropic::read(raw),
            Self::OpenAiChat => openai_chat::read(raw),
            Self::OpenClaw => openclaw::read(raw),
        }
        .map(Message::new)
    }

    /// Whether the provider refuses a session that names an id twice.
    #[must_use]
    pub const fn refuses_repeated_ids(self) -> bool {
        matches!(self, Self::AnthropicMessages)
    }

    /// Reads what this crate wrote itself.
    pub(crate) fn own(self, raw: String) -> Message {
        self.read(raw).expect("what was written here can be read")
    }

    /// An assistant message with these uses.
    pub(crate) fn write_uses(self, uses: &[NewUse<'_>]) -> Message {
        self.own(match self {
            Self::AnthropicMessages => anthropic::write_uses(uses),
            Self::OpenAiChat => openai_chat::write_uses(uses),
            Self::OpenClaw => openclaw::write_uses(uses),
        })
    }

    /// A result: a block of a user message, or a message of its own.
    pub(crate) fn write_result(self, id: &str, content: &str, is_error: bool) -> String {
        match self {
            Self::AnthropicMessages => anthropic::write_result(id, content, is_error),
            Self::OpenAiChat => openai_chat::write_result(id, content),
            Self::OpenClaw => openclaw::write_result(id, content, is_error),
        }
    }

    /// The messages that hold these results.
    pub(crate) fn hold_results(self, results: &[String]) -> Vec<Message> {
        match self {
            Self::AnthropicMessages => vec![self.own(anthropic::hold(results))],
            Self::OpenAiChat | Self::OpenClaw => {
                results.iter().map(|raw| self.own(raw.clone())).collect()
            }
        }
    }

    /// A block as it stands in a list of blocks: a content that is one string becomes a block.
    pub(crate) fn listed(self, message: &Message, block: &Block, new_id: Option<&str>) -> String {
        let text = block.text_in(message, new_id);
        if self == Self::AnthropicMessages && text.starts_with('"') {
            return anthropic::string_as_block(&text);
        }
        text
    }

    /// `message` with its blocks made of `pieces`.
    pub(crate) fn rewrite(self, message: &Message, pieces: &[Piece]) -> Message {
        let raw = if self == Self::OpenAiChat && pieces.is_empty() {
            openai_chat::without_calls(message.raw())
        } else {
            message.with_pieces(pieces)
        };
        Message { before: message.before.clone(), after: message.after.clone(), ..self.own(raw) }
    }

    /// A result without its use, as text that keeps its content: blocks, or the message.
    pub(crate) fn result_as_text(self, id: &str, content: Option<&str>) -> Vec<String> {
        let title = format!("[result of a tool call that is not in this session: {id}]");
        match self {
            Self::AnthropicMessages => anthropic::result_as_text(&title, content),
            Self::OpenAiChat => vec![openai_chat::result_as_text(&title, content)],
            Self::OpenClaw => vec![openclaw::result_as_text(&title, content)],
        }
    }
}

/// A request to a model's API, as far as it tells the forms apart.
#[derive(Default, Deserialize)]
struct Request<'t> {
    #[serde(borrow)]
    messages: Option<&'t RawValue>,
    #[serde(borrow)]
    system: Option<&'t RawValue>,
}

/// Whether a repair put this content there.
fn is_synthetic(content: Option<&RawValue>) -> bool {
    let known = |text: &str| text == OUTCOME_UNKNOWN || text.starts_with(OPENCLAW_SYNTHETIC);
    content.is_some_and(|content| known(&plain_text(content)))
}

/// The text of a content: a string, or the one text part that it has.
fn plain_text(content: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Part<'t> {
        #[serde(borrow)]
        text: Option<&'t RawValue>,
    }
    if let Some(text) = json::string(content) {
        return text.into_owned();
    }
    match serde_json::from_str::<Vec<Part<'_>>>(content.get()).as_deref() {
        Ok([Part { text: Some(text) }]) => json::string(text).unwrap_or_default().into_owned(),
        _ => String::new(),
    }
}

fn role(raw: Option<&RawValue>) -> Result<Role, ReadError> {
    let role = raw.and_then(json::string).ok_or(ReadError::new("a message without a role"))?;
    Ok(match &*role {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => Role::Other,
    })
}

impl ReadError {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { what, at: None, source: None }
    }

    pub(crate) fn json(what: &'static str, source: serde_json::Error) -> Self {
        Self { what, at: None, source: Some(source) }
    }

    pub(crate) const fn at(mut self, message: usize) -> Self {
        self.at = Some(message);
        self
    }

    /// The message that could not be read, from 0.
    #[must_use]
    pub const fn message_index(&self) -> Option<usize> {
        self.at
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.at {
            write!(f, "messages.{at}: ")?;
        }
        f.write_str(self.what)
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
