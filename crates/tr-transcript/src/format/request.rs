//! Locates the messages in a text: an array, a request, or a response.
use super::{
    Format, ReadError, anthropic,
    form::Form,
    refused::{Applies, CACHE},
};
use crate::json::{self, Members};
use serde_json::value::RawValue;

/// The error for a text without messages.
pub(crate) const NEITHER: &str = "neither an array of messages nor a request";

/// The members of a request to a model's API, of a response, or of a chat that gemini-cli saved (`history`), that
/// concern the messages.
/// Anthropic's system prompt stands beside the messages.
const READ: [&str; 18] = [
    "messages",
    "contents",
    "input",
    "output",
    "history",
    "system",
    "tools",
    "model",
    "anthropic_version",
    "stop_sequences",
    "thinking",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
    "stream_options",
    "previous_response_id",
    "conversation",
    "store",
];

/// A request, a response, or a bare array of messages.
#[derive(Default)]
pub(crate) struct Request<'t> {
    members: Members<'t>,
    /// The messages: an array, or the user's text.
    pub(crate) messages: &'t str,
}

/// What a complete request says beside its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Its model continues no answer with which it ends.
    pub(crate) refuses_prefill: bool,
    /// How many marks for the cache its system prompt and its tools have.
    pub(crate) cache_marks: usize,
}

impl<'t> Request<'t> {
    /// Reads a text, which may be a bare array of messages.
    pub(crate) fn of(text: &'t str) -> Result<Self, ReadError> {
        let neither = |error| ReadError::json(NEITHER, error);
        if text.trim_start().starts_with('[') {
            let messages: &RawValue = serde_json::from_str(text).map_err(neither)?;
            return Ok(Self { members: Members::default(), messages: messages.get() });
        }
        let members = Members::of(text, &READ).map_err(neither)?;
        let mut lists = READ[..5].iter().filter_map(|name| members.get(name));
        let messages = lists.next().ok_or(ReadError::new(NEITHER))?.get();
        Ok(Self { members, messages })
    }

    fn has(&self, name: &str) -> bool {
        self.members.get(name).is_some()
    }

    /// Whether the provider stores earlier messages that are not in it.
    pub(crate) fn continues(&self) -> bool {
        self.has("previous_response_id") || self.has("conversation")
    }

    /// What a complete request says beside its messages; `None` if it does not name the model and the
    /// maximum length of the answer. A stored session need not end like a request.
    pub(crate) fn sent(&self) -> Option<Sent> {
        self.members.get("max_tokens")?;
        let refuses_prefill = anthropic::refuses_prefill(&self.members.string("model")?);
        let lists = ["system", "tools"].into_iter().filter_map(|name| self.members.get(name));
        let cache_marks = lists.map(|list| json::marks(list.get(), CACHE)).sum();
        Some(Sent { refuses_prefill, cache_marks })
    }

    /// Which refusals concern it.
    pub(crate) fn applies(&self, format: Format) -> Applies {
        let unstored = self.members.get("store").is_some_and(|store| store.get() == "false");
        Applies { is_other: !self.has_limits(format), unstored, many_images: false }
    }

    /// Whether the form's own provider may receive it, judging by the model's name.
    fn has_limits(&self, format: Format) -> bool {
        let Some(model) = self.members.string("model") else { return true };
        match format {
            Format::AnthropicMessages => anthropic::is_ours(&model),
            Format::OpenAiChat | Format::OpenAiResponses => {
                let name = model.rsplit('/').next().unwrap_or(&model);
                let is_gpt = ["gpt", "codex"].iter().any(|word| name.contains(word));
                (is_gpt || is_openai(name)) && !name.starts_with("gpt-oss")
            }
            Format::Gemini | Format::OpenClaw => true,
        }
    }

    /// The form that the request's own members tell.
    fn named(&self) -> Option<Format> {
        match READ[..5].iter().find(|name| self.has(name)).copied() {
            Some("contents" | "history") => Some(Format::Gemini),
            Some("input" | "output") => Some(Format::OpenAiResponses),
            _ => None,
        }
    }

    pub(super) fn detect(&self) -> Option<Format> {
        let named = self.named();
        if named.is_some() {
            return named;
        }
        let (by_model, mut most) = (self.named_by_model(), (0, None));
        let elements = json::elements(self.messages).ok()?;
        for format in Format::ALL {
            let evidence = |form: &dyn Form| elements.iter().map(|m| form.evidence(m)).sum();
            let mut found: usize = evidence(format.form());
            // Requests of several forms have these members; the messages differ.
            if by_model.is_none_or(|by_model| by_model == format) {
                found += self.members_of(format);
            }
            if found > most.0 {
                most = (found, Some(format));
            }
        }
        let by_system = || begins_with_system(&elements).then_some(Format::OpenAiChat);
        most.1.or_else(by_system).or(by_model)
    }

    /// The form of the provider whose model it names. A name with a router's prefix (`anthropic/…`)
    /// may be used in any form.
    fn named_by_model(&self) -> Option<Format> {
        let model = self.members.string("model")?;
        let name = model.strip_prefix("openai/").unwrap_or(&model);
        let is_anthropic = || name.starts_with("claude").then_some(Format::AnthropicMessages);
        if is_openai(name) { Some(Format::OpenAiChat) } else { is_anthropic() }
    }

    /// How many of the request's members belong to this form.
    fn members_of(&self, format: Format) -> usize {
        // Anthropic's tools have a schema, `OpenAI`'s a function.
        let (own, of_tools): (&[&str], _) = match format {
            Format::AnthropicMessages => {
                (&["system", "anthropic_version", "stop_sequences", "thinking"], "input_schema")
            }
            Format::OpenAiChat => {
                (&["max_completion_tokens", "response_format", "stream_options"], "function")
            }
            _ => return 0,
        };
        let tools = self.members.get("tools").map_or("[]", RawValue::get);
        let has = |tool| Members::of(tool, &[of_tools]).is_ok_and(|it| it.get(of_tools).is_some());
        let has_tool = json::elements(tools).is_ok_and(|tools| tools.into_iter().any(has));
        own.iter().filter(|name| self.has(name)).count() + usize::from(has_tool)
    }
}

/// Whether this is the name of a model of `OpenAI`'s.
fn is_openai(name: &str) -> bool {
    const OPENAI: [&str; 5] = ["chatgpt", "gpt-", "o1", "o3", "o4"];
    OPENAI.iter().any(|begin| name.starts_with(begin))
}

/// Whether a system message comes first. Anthropic's prompt is a member of the request, and its
/// system messages follow a user's.
fn begins_with_system(messages: &[&str]) -> bool {
    let first = messages.first().filter(|_| messages.len() > 1);
    let speaker = first.and_then(|first| Members::of(first, &["role"]).ok());
    speaker.unwrap_or_default().text("role") == "system"
}
