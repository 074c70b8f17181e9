//! A session's messages, and the text around them.
use crate::{
    format::{Applies, Format, MANY_IMAGES, NEITHER, ReadError, Request, Results, Sent},
    json,
    message::Message,
    messages::Messages,
};
use std::{collections::HashMap, fmt, ops::Range, slice};

/// A session's messages as a file or a request holds them.
///
/// Unedited parts are written back byte for byte:
///
/// ```
/// use tr_transcript::{Format, Transcript};
///
/// let text = r#"{ "model": "m", "messages": [ {"role":"user", "content":"hi"} ], "n" : 1 }"#;
/// let transcript = Transcript::read(text)?;
/// assert_eq!(transcript.len(), 1);
/// assert_eq!(transcript.to_json(), text);
/// # Ok::<_, tr_transcript::ReadError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Transcript {
    format: Format,
    /// The text before the first message, the bracket included.
    head: Box<str>,
    messages: Messages,
    tail: Box<str>,
    /// The message for a list that is a single string, as long as it is the only one.
    words: Option<Message>,
    /// The provider stores earlier messages that are not here, whose uses a result here may answer.
    pub(crate) continues: bool,
    /// Set if it is a complete request, which no further message need follow.
    pub(crate) sent: Option<Sent>,
    /// Which refusals concern it, apart from the number of its images.
    pub(crate) applies: Applies,
    /// The form in which the provider is asked, if that is known from another source.
    pub(crate) asked: Option<Format>,
}

impl Transcript {
    /// No messages.
    #[must_use]
    pub fn new(format: Format) -> Self {
        let (head, tail) = ("[".into(), "]".into());
        let (messages, words, continues) = (Messages::default(), None, false);
        let (sent, applies, asked) = (None, Applies::default(), None);
        Self { format, head, messages, tail, words, continues, sent, applies, asked }
    }

    /// An empty list of messages between these texts.
    #[doc(hidden)]
    #[must_use]
    pub fn with_around(format: Format, head: Box<str>, tail: Box<str>) -> Self {
        let request = format!("{head}{tail}");
        let request = Request::of(&request).unwrap_or_default();
        let (continues, applies) = (request.continues(), request.applies(format));
        Self { head, tail, continues, applies, ..Self::new(format) }
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
        let list = request.messages;
        let span = json::span(text, list);
        let (head, tail) = (&text[..span.start], &text[span.end..]);
        let (head, tail) = (format!("{head}[").into(), format!("]{tail}").into());
        let continues = request.continues();
        let (sent, applies) = (request.sent(), request.applies(format));
        let mut transcript = Self { head, tail, continues, sent, applies, ..Self::new(format) };
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
        let mut messages = Vec::with_capacity(elements.len());
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
            messages.push(message);
        }
        let space = &list[from..list.len() - 1];
        (self.messages, self.tail) = (messages.into(), format!("{space}{}", self.tail).into());
        Ok(())
    }

    /// Which refusals concern it.
    pub(crate) fn applies(&self) -> Applies {
        let images: usize = self.messages.iter().map(|message| message.body.images).sum();
        Applies { many_images: images > MANY_IMAGES, ..self.applies }
    }

    /// The form in which the provider is asked, for messages in an agent's own form: that of the
    /// last answer.
    pub(crate) fn asked_in(&self) -> Option<Format> {
        self.asked
            .or_else(|| self.messages.iter().rev().find_map(|message| message.body.answered_in))
    }

    /// The API of the last answer, for messages in an agent's own form, if that API's rules are not
    /// known.
    #[must_use]
    pub fn unknown_api(&self) -> Option<&str> {
        let mut answers = self.messages.iter().rev();
        let last =
            answers.find(|it| it.body.answered_in.is_some() || it.body.unknown_api.is_some());
        last?.body.unknown_api.as_deref()
    }

    /// The texts around the messages.
    #[doc(hidden)]
    #[must_use]
    pub fn around(&self) -> (&str, &str) {
        (&self.head, &self.tail)
    }

    /// The form of its messages.
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

    /// The first message with an unknown part that `after` does not contain unchanged and in the
    /// same order. A repair must not change such parts.
    #[must_use]
    pub fn first_changed_unknown(&self, after: &Self) -> Option<usize> {
        let mut left = after.messages().iter().flat_map(Message::not_understood);
        let mut stays = |text: &str| left.any(|kept| kept == text);
        self.messages().iter().position(|message| !message.not_understood().all(&mut stays))
    }

    /// Whether its list of messages is a single string.
    #[must_use]
    pub fn is_words(&self) -> bool {
        self.plain_words().is_some()
    }

    /// Adds a message that was read in this transcript's format.
    pub fn push(&mut self, mut message: Message) {
        // Gets the white space of the message before it.
        if let Some(last) = self.messages.last()
            && message.before.is_empty()
        {
            message.before = last.before.clone();
        }
        self.messages.push(message);
    }

    /// Adds a message with its own white space.
    #[doc(hidden)]
    pub fn push_as_is(&mut self, message: Message) {
        self.messages.push(message);
    }

    /// Keeps the first `len` messages. Takes constant time: the memory of the others is freed as
    /// messages are pushed, two for each push.
    pub fn truncate(&mut self, len: usize) {
        self.messages.truncate(len);
    }

    /// Replaces all messages.
    #[doc(hidden)]
    pub fn set_messages(&mut self, messages: Vec<Message>) {
        self.messages = Messages::default();
        messages.into_iter().for_each(|message| self.push(message));
    }

    /// The messages from `at` on, as a separate transcript.
    #[doc(hidden)]
    #[must_use]
    pub fn rest(&self, at: usize) -> Self {
        let (messages, continues) = (self.messages[at..].to_vec().into(), self.continues);
        Self { messages, continues, ..Self::new(self.format) }
    }

    /// The index from which the messages can be validated separately, at most `at`: earlier ones
    /// have no influence.
    #[doc(hidden)]
    #[must_use]
    pub fn whole_from(&self, at: usize) -> usize {
        let rules = self.format.rules();
        if rules.follows_user.is_some() {
            let begins = self.messages[..at].iter().rposition(Message::is_without_results);
            return begins.unwrap_or(0);
        }
        // A result after its use may be in the rest, and the use before it.
        let rest = &self.messages[at..];
        if rules.results == Results::Items && has_results_of_others(rest) { 0 } else { at }
    }

    /// The byte range of each message in the text that [`to_json`](Self::to_json) returns.
    pub fn spans(&self) -> impl Iterator<Item = Range<usize>> {
        let words = self.plain_words().map(|words| {
            let start = self.head.len() - 1;
            start..start + words.len()
        });
        let mut from = self.head.len();
        self.messages.iter().map(move |message| {
            let start = from + message.before.len();
            let end = start + message.raw().len();
            // A comma follows.
            from = end + message.after.len() + 1;
            words.clone().unwrap_or(start..end)
        })
    }

    /// The JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let size = |message: &Message| message.raw().len() + 1;
        let size = self.messages.iter().map(size).sum::<usize>();
        let mut out = String::with_capacity(self.head.len() + size + self.tail.len());
        if let Some(words) = self.plain_words() {
            // It replaces the list, brackets included.
            out.push_str(self.head.strip_suffix('[').unwrap_or(&self.head));
            out.push_str(words);
            out.push_str(self.tail.strip_prefix(']').unwrap_or(&self.tail));
            return out;
        }
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

    /// The string that replaces the list, as JSON.
    fn plain_words(&self) -> Option<&str> {
        let words =
            self.words.as_ref().filter(|words| *self.messages == *slice::from_ref(*words))?;
        Some(words.text(words.body.list.as_ref()?))
    }
}

/// Whether a result in `items` answers a use before them: each answers the nearest use without one.
fn has_results_of_others(items: &[Message]) -> bool {
    let mut open: HashMap<&str, usize> = HashMap::new();
    items.iter().any(|item| {
        item.tool_uses().for_each(|id| *open.entry(id).or_default() += 1);
        item.tool_results().any(|id| match open.get_mut(id) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        })
    })
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("format", &self.format)
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}
