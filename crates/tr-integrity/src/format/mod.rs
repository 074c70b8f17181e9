//! The transcript forms of providers, one module for each.
mod anthropic;
mod form;
mod gemini;
mod known;
mod openai_chat;
mod openai_responses;
mod openclaw;
mod refused;
mod request;
#[cfg(test)]
mod tests;

pub use self::form::OUTCOME_UNKNOWN;
pub(crate) use self::form::{is_synthetic_text, with_mark_of};
pub(crate) use self::known::{is_of_server, is_untouched, may_say};
pub(crate) use self::openclaw::form_of as form_of_api;
pub(crate) use self::{
    form::{Asked, Blanks, Form, NewUse, Results, Rules},
    refused::{Refused, Why, is_plain},
    request::{NEITHER, Request},
};
use crate::{
    json::Piece,
    message::{Block, Message, Role},
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A form of transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// Anthropic's Messages API: results are blocks of the next user message.
    AnthropicMessages,
    /// OpenAI's Chat Completions API: results are messages of the role `tool`.
    OpenAiChat,
    /// OpenAI's Responses API: uses, results and reasoning are items of their own.
    OpenAiResponses,
    /// Google's Gemini API: results are parts of the next content of the user's.
    Gemini,
    /// OpenClaw's and pi's own messages: results are messages of the role `toolResult`.
    OpenClaw,
}

/// A message that does not fit its format.
#[derive(Debug)]
pub struct ReadError {
    what: &'static str,
    at: Option<usize>,
    source: Option<serde_json::Error>,
}

impl Format {
    /// All forms, in the order of preference for a text that fits several equally well.
    pub(crate) const ALL: [Self; 5] = [
        Self::OpenClaw,
        Self::AnthropicMessages,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Gemini,
    ];

    pub(crate) fn form(self) -> &'static dyn Form {
        match self {
            Self::AnthropicMessages => &anthropic::Anthropic,
            Self::OpenAiChat => &openai_chat::Chat,
            Self::OpenAiResponses => &openai_responses::Responses,
            Self::Gemini => &gemini::Gemini,
            Self::OpenClaw => &openclaw::OpenClaw,
        }
    }

    pub(crate) fn rules(self) -> Rules {
        self.form().rules()
    }

    /// Detects the form of a JSON text: an array of messages, or a request with messages.
    ///
    /// `None` if only plain texts are in it, which every form has, or if it is neither.
    #[must_use]
    pub fn detect(text: &str) -> Option<Self> {
        Request::of(text).ok()?.detect()
    }

    /// Reads one message.
    ///
    /// # Errors
    /// If it is no JSON object with a role or, in a form of items, a type; or if it names a member
    /// twice.
    pub fn read(self, raw: impl Into<Box<str>>) -> Result<Message, ReadError> {
        self.form().read(raw.into()).map(Message::new)
    }

    /// Whether the provider refuses a session in which two uses have the same id.
    #[must_use]
    pub fn refuses_repeated_ids(self) -> bool {
        self.rules().refuses_repeated_ids
    }

    /// The rules for a provider that takes messages in the form `asked`, if that is known. The
    /// agent converts the messages to that form: only the rules for unconverted parts apply.
    pub(crate) fn rules_of(self, asked: Option<Self>) -> Rules {
        let rules = self.rules();
        let refuses = |asked: Self| asked.rules().refuses_repeated_ids;
        let refuses_repeated_ids = asked.map_or(rules.refuses_repeated_ids, refuses);
        Rules { refuses_repeated_ids, ..rules }
    }

    /// Where the last step begins, or its turn where that matters; the end of the list if there is
    /// no step.
    pub(crate) fn last_step(self, messages: &[Message]) -> usize {
        if self.rules().signs_steps {
            return messages.iter().rposition(Message::begins_turn).unwrap_or(0);
        }
        let is_model = |message: &Message| message.role() == Role::Assistant;
        let Some(last) = messages.iter().rposition(is_model) else { return messages.len() };
        if self.rules().results != Results::Items {
            return last;
        }
        messages[..last].iter().rposition(|m| !is_model(m)).map_or(0, |before| before + 1)
    }

    /// Reads a message that this crate wrote.
    pub(crate) fn own(self, raw: String) -> Message {
        self.read(raw).expect("what was written here can be read")
    }

    /// Writes the messages of a step with these uses.
    pub(crate) fn write_uses(self, uses: &[NewUse<'_>]) -> Vec<Message> {
        self.form().write_uses(uses).into_iter().map(|raw| self.own(raw)).collect()
    }

    /// Writes the messages that hold these results.
    pub(crate) fn hold_results(self, results: &[String]) -> Vec<Message> {
        self.form().hold(results).into_iter().map(|raw| self.own(raw)).collect()
    }

    /// A block as an element of a list of blocks: a string content becomes a block.
    pub(crate) fn listed(self, message: &Message, block: &Block, new_id: Option<&str>) -> String {
        self.form().listed(block.text_in(message, self, new_id))
    }

    /// `message` with the blocks `pieces`; `None` if it cannot exist without blocks.
    pub(crate) fn rewrite(self, message: &Message, pieces: &[Piece]) -> Option<Message> {
        let raw = self.form().rewrite(message, pieces)?;
        Some(message.with_raw_of(self.own(raw)))
    }

    /// Converts a result without its use to text that keeps its content and its other members:
    /// blocks, or the message. `result` is the whole result.
    pub(crate) fn result_as_text(
        self,
        title: &str,
        id: &str,
        result: &str,
        content: Option<&str>,
    ) -> Vec<String> {
        let form = self.form();
        if form.keeps_members() {
            return form.result_as_text(title, result, content);
        }
        // A content in the wrong place counts as the whole content.
        let beside = if content == Some(result) { Vec::new() } else { known::beside(result, id) };
        let title = std::iter::once(title.to_owned()).chain(beside).collect::<Vec<_>>().join("\n");
        form.result_as_text(&title, result, content)
    }
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

    /// The index of the message that could not be read.
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
