//! Locates the messages in a text: an array, a request, or a response.
use super::{Format, ReadError, anthropic, form::Form};
use crate::json;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The error for a text without messages.
pub(crate) const NEITHER: &str = "neither an array of messages nor a request";

/// The members of a request to a model's API, or of a response, that concern the messages.
#[derive(Default, Deserialize)]
pub(crate) struct Request<'t> {
    #[serde(borrow)]
    messages: Option<&'t RawValue>,
    contents: Option<&'t RawValue>,
    input: Option<&'t RawValue>,
    output: Option<&'t RawValue>,
    /// Anthropic's system prompt stands beside the messages.
    system: Option<&'t RawValue>,
    /// Anthropic's tools have a schema, `OpenAI`'s a function.
    tools: Option<&'t RawValue>,
    model: Option<&'t RawValue>,
    anthropic_version: Option<&'t RawValue>,
    stop_sequences: Option<&'t RawValue>,
    thinking: Option<&'t RawValue>,
    max_tokens: Option<&'t RawValue>,
    max_completion_tokens: Option<&'t RawValue>,
    response_format: Option<&'t RawValue>,
    stream_options: Option<&'t RawValue>,
    previous_response_id: Option<&'t RawValue>,
    conversation: Option<&'t RawValue>,
}

impl<'t> Request<'t> {
    /// Reads a text, which may be a bare array of messages.
    pub(crate) fn of(text: &'t str) -> Result<Self, ReadError> {
        let neither = |error| ReadError::json(NEITHER, error);
        if text.trim_start().starts_with('[') {
            let messages = serde_json::from_str(text).map_err(neither)?;
            return Ok(Self { messages: Some(messages), ..Self::default() });
        }
        let request: Self = json::object(text).map_err(neither)?;
        if request.messages().is_none() {
            return Err(ReadError::new(NEITHER));
        }
        Ok(request)
    }

    /// The messages: an array, or the user's text.
    pub(crate) fn messages(&self) -> Option<&'t str> {
        let Self { messages, contents, input, output, .. } = self;
        messages.or(*contents).or(*input).or(*output).map(RawValue::get)
    }

    /// Whether the provider stores earlier messages that are not in it.
    pub(crate) fn continues(&self) -> bool {
        let given = |member: Option<&RawValue>| member.is_some();
        given(self.previous_response_id) || given(self.conversation)
    }

    /// Whether it is a complete request: it names the model and the maximum length of the answer. A
    /// stored session need not end like a request.
    pub(crate) fn is_sent(&self) -> bool {
        self.model.and(self.max_tokens).is_some()
    }

    /// Whether the form's own provider may receive it, judging by the model's name.
    pub(crate) fn has_limits(&self, format: Format) -> bool {
        let Some(model) = self.model.and_then(json::string) else { return true };
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
        match self {
            Self { messages: Some(_), .. } => None,
            Self { contents: Some(_), .. } => Some(Format::Gemini),
            _ => self.input.or(self.output).map(|_| Format::OpenAiResponses),
        }
    }

    pub(super) fn detect(&self) -> Option<Format> {
        let named = self.named();
        if named.is_some() {
            return named;
        }
        let (by_model, mut most) = (self.named_by_model(), (0, None));
        let elements = json::elements(self.messages()?).ok()?;
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
        let model = json::string(self.model?)?;
        let name = model.strip_prefix("openai/").unwrap_or(&model);
        let is_anthropic = || name.starts_with("claude").then_some(Format::AnthropicMessages);
        if is_openai(name) { Some(Format::OpenAiChat) } else { is_anthropic() }
    }

    /// How many of the request's members belong to this form.
    fn members_of(&self, format: Format) -> usize {
        #[derive(Default, Deserialize)]
        struct Tool<'t> {
            #[serde(borrow)]
            input_schema: Option<&'t RawValue>,
            function: Option<&'t RawValue>,
        }
        let tools = self.tools.map_or("[]", RawValue::get);
        let tools = json::elements(tools).unwrap_or_default();
        let mut tools = tools.into_iter().map(|tool| json::object(tool).unwrap_or_default());
        let members = match format {
            Format::AnthropicMessages => [
                self.system.is_some(),
                self.anthropic_version.is_some(),
                self.stop_sequences.is_some(),
                self.thinking.is_some(),
                tools.any(|Tool { input_schema, .. }| input_schema.is_some()),
            ],
            Format::OpenAiChat => [
                self.max_completion_tokens.is_some(),
                self.response_format.is_some(),
                self.stream_options.is_some(),
                false,
                tools.any(|Tool { function, .. }| function.is_some()),
            ],
            _ => [false; 5],
        };
        members.into_iter().filter(|is_there| *is_there).count()
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
    #[derive(Default, Deserialize)]
    struct Speaker<'t> {
        #[serde(borrow)]
        role: Option<&'t RawValue>,
    }
    let first = messages.first().filter(|_| messages.len() > 1);
    let speaker: Speaker<'_> = first.and_then(|first| json::object(first).ok()).unwrap_or_default();
    speaker.role.and_then(json::string).as_deref() == Some("system")
}
