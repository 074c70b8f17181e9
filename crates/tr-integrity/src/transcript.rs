//! A session's messages, and the text around them.
use crate::{
    format::{Format, ReadError},
    json,
    message::Message,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{fmt, ops::Range};

/// A session's messages as a file or a request holds them.
///
/// What is not edited comes out as it went in, byte for byte:
///
/// ```
/// use tr_integrity::{Format, Transcript};
///
/// let text = r#"{ "model": "m", "messages": [ {"role":"user", "content":"hi"} ], "n" : 1 }"#;
/// let transcript = Transcript::read(text)?;
/// assert_eq!(transcript.len(), 1);
/// assert_eq!(transcript.to_json(), text);
/// # Ok::<_, tr_integrity::ReadError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Transcript {
    format: Format,
    /// The text up to the first message, the bracket included.
    head: Box<str>,
    messages: Vec<Message>,
    tail: Box<str>,
}

impl Transcript {
    /// No messages.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, head: "[".into(), messages: Vec::new(), tail: "]".into() }
    }

    /// No messages yet, between these texts.
    pub(crate) fn with_around(format: Format, head: Box<str>, tail: Box<str>) -> Self {
        Self { format, head, messages: Vec::new(), tail }
    }

    /// The texts around the messages.
    pub(crate) fn around(&self) -> (&str, &str) {
        (&self.head, &self.tail)
    }

    /// Reads an array of messages, or a request that has `messages`, in the form that
    /// [`Format::detect`] finds; where nothing tells the forms apart, in Anthropic's.
    ///
    /// # Errors
    /// If it is neither, or a message is not in the format's form.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        Self::read_as(Format::detect(text).unwrap_or(Format::AnthropicMessages), text)
    }

    /// The same in a form that is known.
    ///
    /// # Errors
    /// If it is neither, or a message is not in the format's form.
    pub fn read_as(format: Format, text: &str) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Request<'t> {
            #[serde(borrow)]
            messages: &'t RawValue,
        }
        let neither = |error| ReadError::json("neither an array of messages nor a request", error);
        let array = if text.trim_start().starts_with('[') {
            text
        } else {
            json::object::<Request<'_>>(text).map_err(neither)?.messages.get()
        };
        let elements = json::elements(array).map_err(neither)?;

        let start = json::span(text, array).start;
        let open = start + array.find('[').expect("an array has a bracket") + 1;
        let mut messages = Vec::with_capacity(elements.len());
        let mut from = open;
        for (at, element) in elements.iter().enumerate() {
            let span = json::span(text, element);
            let mut message = format.read(*element).map_err(|error| error.at(at))?;
            message.before = text[from..span.start].into();
            from = span.end;
            if at + 1 < elements.len() {
                let comma = from + text[from..].find(',').expect("a comma between elements");
                message.after = text[from..comma].into();
                from = comma + 1;
            }
            messages.push(message);
        }
        Ok(Self { format, head: text[..open].into(), messages, tail: text[from..].into() })
    }

    /// The form it is in.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Adds a message that was read in this transcript's format.
    pub fn push(&mut self, mut message: Message) {
        // It is set like the message before it.
        if let Some(last) = self.messages.last()
            && message.before.is_empty()
        {
            message.before = last.before.clone();
        }
        self.messages.push(message);
    }

    /// Adds a message with the white space that it has.
    pub(crate) fn push_as_is(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Keeps the first `len` messages.
    pub fn truncate(&mut self, len: usize) {
        self.messages.truncate(len);
    }

    /// Puts other messages in the place of all.
    pub(crate) fn set_messages(&mut self, messages: Vec<Message>) {
        self.messages.clear();
        messages.into_iter().for_each(|message| self.push(message));
    }

    /// The messages from `at` on, as a transcript of their own.
    pub(crate) fn rest(&self, at: usize) -> Self {
        Self { messages: self.messages[at..].to_vec(), ..Self::new(self.format) }
    }

    /// Where each message lies in the text that [`to_json`](Self::to_json) gives, in bytes.
    pub fn spans(&self) -> impl Iterator<Item = Range<usize>> {
        let mut from = self.head.len();
        self.messages.iter().map(move |message| {
            let start = from + message.before.len();
            let end = start + message.raw().len();
            // A comma follows.
            from = end + message.after.len() + 1;
            start..end
        })
    }

    /// The text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let size = |message: &Message| message.raw().len() + 1;
        let mut out = String::with_capacity(
            self.head.len() + self.messages.iter().map(size).sum::<usize>() + self.tail.len(),
        );
        out.push_str(&self.head);
        for (at, message) in self.messages.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(&message.before);
            out.push_str(message.raw());
            out.push_str(&message.after);
        }
        out.push_str(&self.tail);
        out
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("format", &self.format)
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}
