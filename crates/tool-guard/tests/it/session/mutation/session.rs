//! A session of which every record can be changed, and the file that it becomes.
use super::{
    agents, forms,
    story::{Turn, Words},
};
use crate::session::provider::Form;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) form: Form,
    pub(crate) records: Vec<Value>,
    /// Whether the messages are a request's, or stand alone.
    pub(crate) is_request: bool,
}

impl Session {
    pub(crate) fn of(form: Form, story: &[Turn], words: &mut Words) -> Self {
        let records = match form {
            Form::Anthropic | Form::AnthropicLines => forms::anthropic(story),
            Form::Chat | Form::ChatLines => forms::chat(story),
            Form::Responses => forms::responses(story),
            Form::Gemini => forms::gemini(story),
            Form::ClaudeCode => agents::claude_code(story, words),
            Form::Pi => agents::pi(story, words),
            Form::Codex => agents::codex(story),
        };
        // Alone, messages of one tool call are of one form; a request says which it is.
        Self { form, records, is_request: words.random.bool() }
    }

    /// What the agent read: one of the sessions that others published.
    pub(crate) fn read(lines: &str) -> Self {
        let records = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { form: Form::ClaudeCode, records, is_request: false }
    }

    /// The message in a record, or what stands for one.
    pub(crate) fn message(form: Form, record: &mut Value) -> Option<&mut Value> {
        let message = match form {
            Form::ClaudeCode | Form::Pi => record.get_mut("message"),
            Form::Codex => record.get_mut("payload"),
            _ => Some(record),
        };
        message.filter(|message| message.is_object())
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.form.is_lines() { "jsonl" } else { "json" }
    }

    /// A record is a line; of one JSON text, too.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let lines: Vec<_> = self.records.iter().map(Value::to_string).collect();
        if self.form.is_lines() {
            return lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes();
        }
        let messages = format!("[\n{}\n]", lines.join(",\n"));
        if !self.is_request {
            return messages.into_bytes();
        }
        let rest = match self.form {
            Form::Anthropic => json!({"model": "claude-opus-4-1", "max_tokens": 1024}),
            Form::Gemini => json!({"generationConfig": {"temperature": 1.0}}),
            _ => json!({"model": "gpt-5", "stream": true}),
        };
        let rest = rest.to_string();
        let member = self.form.member();
        format!("{},\"{member}\":{messages}}}\n", &rest[..rest.len() - 1]).into_bytes()
    }
}
