//! Session files of any size, generated while they are read.
//!
//! # When to use
//!
//! Where a test or a benchmark needs a long session file without writing it to disk.
//!
//! # Example
//!
//! ```
//! use std::io::Read;
//! use tr_testkit::sessions::{Form, SessionLines};
//!
//! let mut file = String::new();
//! SessionLines::new(Form::OpenClaw, 10_000).read_to_string(&mut file)?;
//! assert!(file.len() >= 10_000 && file.ends_with('\n'));
//! assert!(file.starts_with(r#"{"type":"session","version":3"#));
//! # Ok::<_, std::io::Error>(())
//! ```

use std::io::{self, Read};

/// The format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// OpenClaw's, version 3.
    OpenClaw,
    /// Claude Code's: a line for each block.
    ClaudeCode,
    /// A message of Anthropic's on each line.
    Anthropic,
}

/// A valid session: turns with a text, five steps with a tool call and its result, and a reply.
///
/// A line has about 700 bytes. The same size gives the same file.
#[derive(Clone, Debug)]
pub struct SessionLines {
    form: Form,
    /// The size after which no turn starts.
    size: u64,
    made: u64,
    line: Vec<u8>,
    read: usize,
    entries: u64,
}

/// Lines of a turn.
const TURN: u64 = 12;

impl SessionLines {
    /// A file of at least `size` bytes, ended by a whole turn.
    pub const fn new(form: Form, size: u64) -> Self {
        Self { form, size, made: 0, line: Vec::new(), read: 0, entries: 0 }
    }

    /// The next line, if there is one.
    fn next_line(&mut self) -> Option<String> {
        if self.form == Form::OpenClaw && self.made == 0 {
            return Some(
                r#"{"type":"session","version":3,"id":"s-1","timestamp":"2026-01-01T00:00:00Z","cwd":"/work"}"#
                    .to_owned(),
            );
        }
        let at = self.entries % TURN;
        if at == 0 && self.made >= self.size {
            return None;
        }
        self.entries += 1;
        let number = self.entries;
        Some(match at {
            0 => self.entry("user", &text(number, 2)),
            11 => self.entry("assistant", &text(number, 12)),
            at if at % 2 == 1 => self.call(number),
            _ => self.result(number - 1),
        })
    }

    fn call(&self, number: u64) -> String {
        let arguments = format!(r#"{{"path":"src/module_{number}.rs","limit":200}}"#);
        let thought = text(number, 3);
        let content = match self.form {
            Form::OpenClaw => format!(
                r#"[{{"type":"text","text":"{thought}"}},{{"type":"toolCall","id":"call_{number:010}","name":"read","arguments":{arguments}}}]"#
            ),
            _ => format!(
                r#"[{{"type":"text","text":"{thought}"}},{{"type":"tool_use","id":"toolu_{number:010}","name":"read","input":{arguments}}}]"#
            ),
        };
        self.message("assistant", &content)
    }

    fn result(&self, call: u64) -> String {
        let answer = text(call, 15);
        match self.form {
            Form::OpenClaw => self.wrap(
                "message",
                &format!(
                    r#"{{"role":"toolResult","toolCallId":"call_{call:010}","toolName":"read","content":[{{"type":"text","text":"{answer}"}}],"isError":false}}"#
                ),
            ),
            _ => self.message(
                "user",
                &format!(
                    r#"[{{"type":"tool_result","tool_use_id":"toolu_{call:010}","content":"{answer}"}}]"#
                ),
            ),
        }
    }

    fn entry(&self, role: &str, text: &str) -> String {
        self.message(role, &format!(r#"[{{"type":"text","text":"{text}"}}]"#))
    }

    fn message(&self, role: &str, content: &str) -> String {
        let number = self.entries;
        let id = if role == "assistant" && self.form == Form::ClaudeCode {
            format!(r#""id":"msg_{number:010}","#)
        } else {
            String::new()
        };
        self.wrap(role, &format!(r#"{{{id}"role":"{role}","content":{content}}}"#))
    }

    /// The line around a message.
    fn wrap(&self, role: &str, message: &str) -> String {
        let number = self.entries;
        let before = number - 1;
        match self.form {
            Form::Anthropic => message.to_owned(),
            Form::OpenClaw => {
                let parent =
                    if before == 0 { "null".to_owned() } else { format!(r#""{before:08x}""#) };
                format!(
                    r#"{{"type":"message","id":"{number:08x}","parentId":{parent},"timestamp":"2026-01-01T00:00:00Z","message":{message}}}"#
                )
            }
            Form::ClaudeCode => {
                let uuid = |number: u64| format!(r#""00000000-0000-4000-8000-{number:012x}""#);
                let parent = if before == 0 { "null".to_owned() } else { uuid(before) };
                let uuid = uuid(number);
                format!(
                    r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external","cwd":"/work","sessionId":"s-1","version":"2.0.0","type":"{role}","message":{message},"uuid":{uuid},"timestamp":"2026-01-01T00:00:00Z"}}"#
                )
            }
        }
    }
}

/// So many short sentences.
fn text(number: u64, sentences: usize) -> String {
    format!("Line {number} says \\\"so\\\" and more of it.\\n").repeat(sentences)
}

impl Read for SessionLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.line.len() {
            let Some(line) = self.next_line() else { return Ok(0) };
            self.line = line.into_bytes();
            self.line.push(b'\n');
            self.made += self.line.len() as u64;
            self.read = 0;
        }
        let count = buffer.len().min(self.line.len() - self.read);
        buffer[..count].copy_from_slice(&self.line[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}
