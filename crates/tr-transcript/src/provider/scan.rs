//! Reads a model's answer in pieces.
use super::{
    end::{Head, ModelEnd},
    evidence::Evidence,
    lines::Lines,
    walk::Walk,
    words::Search,
};

/// Reads a model's answer in pieces, and tells how it ended.
///
/// Accepts what Anthropic's Messages, OpenAI's Chat Completions and Responses, and Gemini send: a
/// body, an event stream, or Gemini's streamed array, detected by content; and an error's text. The
/// result does not depend on how the bytes are split. Each byte is read once, no byte of a good
/// answer is copied, and the state is below 3 KiB for answers of any length.
///
/// An event stream counts as answered once its provider's last event is seen: `message_stop`, a
/// `finish_reason`, `[DONE]`, `response.completed` or `response.incomplete`, a `finishReason`. A
/// body counts once it is complete. Bytes that are neither text nor JSON, for example a compressed
/// body, cannot be read and count as answered.
///
/// ```
/// use tr_transcript::{AnswerScanner, ModelEnd};
///
/// let mut scanner = AnswerScanner::new();
/// scanner.push(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel");
/// assert_eq!(scanner.end(), ModelEnd::Failed); // were that all
/// scanner.push(b"lo\"},\"finish_reason\":null}]}\n\n");
/// scanner.push(b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n");
/// assert_eq!(scanner.end(), ModelEnd::Filtered);
/// ```
#[derive(Clone, Debug, Default)]
pub struct AnswerScanner {
    form: Form,
    walk: Walk,
    evidence: Evidence,
    has_fault: bool,
}

/// What the bytes are, as far as known.
#[derive(Clone, Debug)]
enum Form {
    /// Only white space so far, and this many bytes of a byte order mark.
    Blank(usize),
    /// This many bytes of this name, which begins an event stream.
    First(&'static [u8], usize),
    Json,
    Events(Lines),
    /// Neither JSON nor an event stream: an error's text.
    Text(Search),
    /// Neither JSON nor text.
    Opaque,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The names of an event stream's lines with their colons. A comment has no name.
const LINES: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];

impl Default for Form {
    fn default() -> Self {
        Self::Blank(0)
    }
}

impl AnswerScanner {
    /// Starts a new answer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a new answer, given what the response said before its body.
    #[must_use]
    pub fn of_head(head: Head) -> Self {
        match head {
            Head::Answer => Self::default(),
            Head::Failure => Self { has_fault: true, ..Self::default() },
            Head::Encoded => Self { form: Form::Opaque, ..Self::default() },
        }
    }

    /// Reads the next piece.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match &mut self.form {
                Form::Json => return self.walk.push(bytes, &mut self.evidence),
                Form::Events(lines) => {
                    return lines.push(bytes, &mut self.walk, &mut self.evidence);
                }
                Form::Text(search) => return search.push(bytes),
                Form::Opaque => return,
                Form::Blank(_) | Form::First(..) => {
                    let (byte, rest) = bytes.split_at(1);
                    self.begin(byte[0]);
                    bytes = rest;
                }
            }
        }
    }

    /// How the answer ended, if no further piece follows.
    #[must_use]
    pub fn end(&self) -> ModelEnd {
        let is_answered = match &self.form {
            Form::Text(search) => return search.found().into(),
            Form::Json => self.walk.is_whole(),
            Form::Events(_) if self.evidence.is_over => true,
            Form::Events(lines) => {
                lines.has_data && !self.evidence.is_begun && !self.walk.is_inside()
            }
            Form::Opaque => true,
            Form::Blank(_) | Form::First(..) => false,
        };
        let unfaulted =
            if is_answered && !self.has_fault { ModelEnd::Answered } else { ModelEnd::Failed };
        self.evidence.fault().unwrap_or(unfaulted)
    }

    /// Whether the answer's end was seen: a final event, or a complete body.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match &self.form {
            Form::Json => self.walk.is_whole(),
            Form::Events(_) => self.evidence.is_over,
            _ => false,
        }
    }

    /// Whether the answer was cut off: neither a failure nor an end was seen.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let is_faultless = self.evidence.fault().is_none() && !self.has_fault;
        is_faultless && !matches!(self.form, Form::Text(_)) && self.end() == ModelEnd::Failed
    }

    /// Takes a byte before the form is known.
    fn begin(&mut self, byte: u8) {
        match &mut self.form {
            Form::Blank(mark) if BYTE_ORDER_MARK.get(*mark) == Some(&byte) => *mark += 1,
            Form::Blank(_) if byte.is_ascii_whitespace() => {}
            Form::Blank(_) => match byte {
                b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' => {
                    self.form = Form::Json;
                    self.walk.push(&[byte], &mut self.evidence);
                }
                0..=0x1f => self.form = Form::Opaque,
                _ => self.line(b"", byte),
            },
            Form::First(name, seen) => {
                let before = &name[..*seen];
                self.line(before, byte);
            }
            _ => self.push(&[byte]),
        }
    }

    /// Takes a byte of a possible first line of an event stream, after `before` it.
    fn line(&mut self, before: &[u8], byte: u8) {
        let seen = before.len();
        let may_be = |name: &&[u8]| name.starts_with(before) && name.get(seen) == Some(&byte);
        match LINES.iter().find(|name| may_be(name)) {
            Some(name) if name.len() == seen + 1 => {
                self.form = Form::Events(Lines::default());
                self.push(name);
            }
            Some(name) => self.form = Form::First(name, seen + 1),
            None => {
                let mut search = Search::default();
                search.begin();
                search.push(before);
                search.push(&[byte]);
                self.form = Form::Text(search);
            }
        }
    }
}
