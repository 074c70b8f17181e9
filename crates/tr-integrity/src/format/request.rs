//! Where in a text the messages lie: an array of them, a request, a response.
use super::{Format, ReadError, form::Form};
use crate::json;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a text is that holds no messages.
pub(crate) const NEITHER: &str = "neither an array of messages nor a request";

/// The body of a request to a model's API, or of a response, as far as it concerns the messages.
#[derive(Default, Deserialize)]
pub(crate) struct Request<'t> {
    #[serde(borrow)]
    messages: Option<&'t RawValue>,
    #[serde(borrow)]
    contents: Option<&'t RawValue>,
    #[serde(borrow)]
    input: Option<&'t RawValue>,
    #[serde(borrow)]
    output: Option<&'t RawValue>,
    /// Anthropic's system prompt stands beside the messages.
    #[serde(borrow)]
    system: Option<&'t RawValue>,
    #[serde(borrow)]
    previous_response_id: Option<&'t RawValue>,
    #[serde(borrow)]
    conversation: Option<&'t RawValue>,
}

impl<'t> Request<'t> {
    /// Reads a text, which may be an array of messages alone.
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

    /// The messages: an array, or the user's words.
    pub(crate) fn messages(&self) -> Option<&'t str> {
        let Self { messages, contents, input, output, .. } = self;
        messages.or(*contents).or(*input).or(*output).map(RawValue::get)
    }

    /// Whether the provider knows of messages that are not in it.
    pub(crate) fn continues(&self) -> bool {
        let given = |member: Option<&RawValue>| member.is_some();
        given(self.previous_response_id) || given(self.conversation)
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
        let mut most = (0, None);
        let elements = json::elements(self.messages()?).ok()?;
        for format in Format::ALL {
            let evidence = |form: &dyn Form| elements.iter().map(|m| form.evidence(m)).sum();
            let mut found: usize = evidence(format.form());
            found += usize::from(format == Format::AnthropicMessages && self.system.is_some());
            if found > most.0 {
                most = (found, Some(format));
            }
        }
        most.1
    }
}
