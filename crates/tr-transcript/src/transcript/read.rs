//! Reads a session's messages, and the text around them.
use super::Transcript;
use crate::{
    format::{Format, NEITHER, ReadError, Request},
    json,
};

impl Transcript {
    /// An empty list of messages between these texts.
    #[doc(hidden)]
    #[must_use]
    pub fn with_around(format: Format, head: Box<str>, tail: Box<str>) -> Self {
        let request = format!("{head}{tail}");
        let request = Request::of(&request).unwrap_or_default();
        let (continues, has_limits) = (request.continues(), request.has_limits(format));
        Self { head, tail, continues, has_limits, ..Self::new(format) }
    }

    /// Reads an array of messages, or a request or a response with messages (`messages`,
    /// `contents`, `input`, `output`), in the form that [`Format::detect`] finds; if it finds none,
    /// in Anthropic's.
    ///
    /// # Errors
    /// If it is neither, or a message does not fit the format.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        Self::read_as(Format::detect(text).unwrap_or(Format::AnthropicMessages), text)
    }

    /// Reads messages in a known form.
    ///
    /// # Errors
    /// If it is neither, or a message does not fit the format.
    pub fn read_as(format: Format, text: &str) -> Result<Self, ReadError> {
        let request = Request::of(text)?;
        let list = request.messages().unwrap_or_default();
        let span = json::span(text, list);
        let (head, tail) = (&text[..span.start], &text[span.end..]);
        let (head, tail) = (format!("{head}[").into(), format!("]{tail}").into());
        let continues = request.continues();
        let (is_request, has_limits) = (request.is_sent(), request.has_limits(format));
        let mut transcript =
            Self { head, tail, continues, is_request, has_limits, ..Self::new(format) };
        if list.starts_with('"') && format == Format::OpenAiResponses {
            let words = format.own(format!(r#"{{"role":"user","content":{list}}}"#));
            (transcript.messages, transcript.words) = (vec![words.clone()].into(), Some(words));
        } else {
            transcript.read_list(list)?;
        }
        Ok(transcript)
    }

    fn read_list(&mut self, list: &str) -> Result<(), ReadError> {
        let elements = json::elements(list).map_err(|error| ReadError::json(NEITHER, error))?;
        self.messages.reserve(elements.len());
        let mut from = 1;
        for (at, element) in elements.iter().enumerate() {
            let span = json::span(list, element);
            let mut message = self.format.read(*element).map_err(|error| error.at(at))?;
            message.before = list[from..span.start].into();
            from = span.end;
            if at + 1 < elements.len() {
                let comma = from + list[from..].find(',').expect("a comma between elements");
                message.after = list[from..comma].into();
                from = comma + 1;
            }
            self.messages.push(message);
        }
        let space = &list[from..list.len() - 1];
        self.tail = format!("{space}{}", self.tail).into();
        Ok(())
    }
}
