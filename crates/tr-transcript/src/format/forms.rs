//! Reads and writes messages of any form.
use super::{
    ReadError, anthropic,
    form::Form,
    gemini, openai_chat, openai_responses, openclaw,
    request::Request,
    rules::{Format, Results},
    written::NewUse,
};
use crate::{
    json::Piece,
    message::{Block, Message, Role},
};

/// Whether messages of a form have this member.
#[must_use]
pub fn is_of_messages(name: &str) -> bool {
    let forms: [&[&str]; 4] =
        [&anthropic::MEMBERS, &openai_chat::MEMBERS, &openai_responses::MESSAGE, &openclaw::RESULT];
    forms.iter().any(|members| members.contains(&name))
}

impl Format {
    pub(crate) fn form(self) -> &'static dyn Form {
        match self {
            Self::AnthropicMessages => &anthropic::Anthropic,
            Self::OpenAiChat => &openai_chat::Chat,
            Self::OpenAiResponses => &openai_responses::Responses,
            Self::Gemini => &gemini::Gemini,
            Self::OpenClaw => &openclaw::OpenClaw,
        }
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

    /// Where the last step begins, or its turn where that matters; the end of the list if there is
    /// no step.
    #[doc(hidden)]
    pub fn last_step(self, messages: &[Message]) -> usize {
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

    /// Writes the messages of a step with these uses: id, name and input of each.
    #[doc(hidden)]
    #[must_use]
    pub fn write_uses(self, uses: &[NewUse<'_>]) -> Vec<Message> {
        self.form().write_uses(uses).into_iter().map(|raw| self.own(raw)).collect()
    }

    /// Writes the messages that hold these results.
    #[doc(hidden)]
    #[must_use]
    pub fn hold_results(self, results: &[String]) -> Vec<Message> {
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
        // A content in the wrong place counts as the whole content.
        let beside = if content == Some(result) { Vec::new() } else { form.beside(result, id) };
        let title = std::iter::once(title.to_owned()).chain(beside).collect::<Vec<_>>().join("\n");
        form.result_as_text(&title, result, content)
    }
}
