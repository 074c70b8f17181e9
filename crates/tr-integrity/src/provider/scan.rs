//! Watches an answer as it comes.
use super::{Head, ModelEnd, evidence::Evidence, lines::Lines, walk::Walk, words::Search};

/// Watches a model's answer as it comes, and says how it ended.
///
/// Takes what Anthropic's Messages, OpenAI's Chat Completions and Responses, and Gemini send: a
/// body, an event stream, or Gemini's streamed array, told apart by content; the text of an error
/// too. It gives the same end however the bytes are cut, looks at each of them once, copies none
/// of a good answer, and keeps less than 3 KiB, however long the answer is.
///
/// An event stream counts as answered once its provider's last event is seen: `message_stop`, a
/// `finish_reason`, `[DONE]`, `response.completed` or `response.incomplete`, a `finishReason`. A
/// body counts once it is whole. What is neither text nor JSON, a compressed body say, can't be
/// watched and counts as answered.
///
/// ```
/// use tr_integrity::{AnswerScanner, ModelEnd};
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

/// What the bytes turn out to be.
#[derive(Clone, Debug)]
enum Form {
    /// Only white space so far, and so many bytes of a byte order mark.
    Blank(usize),
    /// So many bytes of this, the name of an event stream's first line.
    First(&'static [u8], usize),
    Json,
    Events(Lines),
    /// Neither: an error's text.
    Text(Search),
    /// Neither JSON nor text.
    Opaque,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The names of an event stream's lines, with what ends them. A comment has none.
const LINES: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];

impl Default for Form {
    fn default() -> Self {
        Self::Blank(0)
    }
}

impl AnswerScanner {
    /// Nothing is seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, knowing what the response said ahead of its body.
    #[must_use]
    pub fn of_head(head: Head) -> Self {
        match head {
            Head::Answer => Self::default(),
            Head::Failure => Self { has_fault: true, ..Self::default() },
            Head::Encoded => Self { form: Form::Opaque, ..Self::default() },
        }
    }

    /// Reads what came next.
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

    /// How the answer ended, if nothing more comes.
    #[must_use]
    pub fn end(&self) -> ModelEnd {
        let fault = match &self.form {
            Form::Text(search) => Some(search.found().into()),
            _ => self.evidence.fault(),
        };
        let is_answered = match &self.form {
            Form::Json => self.walk.is_whole(),
            Form::Events(_) if self.evidence.is_over() => true,
            Form::Events(lines) => {
                lines.has_data() && !self.evidence.is_begun() && !self.walk.is_inside()
            }
            Form::Opaque => true,
            Form::Blank(_) | Form::First(..) | Form::Text(_) => false,
        };
        let unfaulted =
            if is_answered && !self.has_fault { ModelEnd::Answered } else { ModelEnd::Failed };
        fault.unwrap_or(unfaulted)
    }

    /// Whether what says how it ended was seen: an end that is known, or a whole body.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match &self.form {
            Form::Json => self.walk.is_whole(),
            Form::Events(_) => self.evidence.is_over(),
            _ => false,
        }
    }

    /// Whether it broke off: no failure was seen, and no end.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let is_faultless = self.evidence.fault().is_none() && !self.has_fault;
        is_faultless && !matches!(self.form, Form::Text(_)) && self.end() == ModelEnd::Failed
    }

    /// Takes a byte before it is known what they are.
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

    /// Takes a byte of what may be an event stream's first line, after those `before` it.
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
