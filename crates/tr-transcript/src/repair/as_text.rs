//! Turns a result without a use into text.
use super::pairs::{Found, Pairs, is_random};
use crate::{
    format::{Format, with_mark_of},
    json,
    message::Message,
};
use serde_json::Value;

impl Found<'_> {
    /// The result as text: blocks, or a message. The text says whether the tool failed, and keeps
    /// the result's cache mark.
    pub(super) fn as_text(
        &self,
        format: Format,
        messages: &[&Message],
        pairs: &Pairs<'_>,
    ) -> Vec<String> {
        let message = messages[self.at];
        let whole = message.text(&message.blocks()[self.block].span);
        let mut texts =
            format.result_as_text(&self.title(whole, pairs), self.id, whole, self.content);
        if let Some(last) = texts.pop() {
            texts.push(with_mark_of(last, whole));
        }
        texts
    }

    fn title(&self, result: &str, pairs: &Pairs<'_>) -> String {
        let failed = if has_failed(result) { "failed " } else { "" };
        let id = if self.id.is_empty() { String::new() } else { format!(": {}", self.id) };
        if self.is_guessed {
            return format!(
                "[{failed}result of one of several calls of a tool, it is not known of which{id}]"
            );
        }
        match pairs.answers_of(self) {
            None => format!("[{failed}result of a tool call that is not in this session{id}]"),
            Some(false) if self.home.is_some() || is_random(self.id) => {
                format!("[{failed}result of a tool call{id}]")
            }
            Some(false) => format!("[{failed}result of a tool call, it is not known of which{id}]"),
            Some(true) => format!("[further {failed}result of a tool call{id}]"),
        }
    }
}

/// Whether a member other than the content says that the tool failed.
fn has_failed(result: &str) -> bool {
    let members = json::members(result).unwrap_or_default();
    let says = |name: &str, values: &[Value]| {
        let value = members.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok());
        value.is_some_and(|value: Value| values.contains(&value))
    };
    says("is_error", &[true.into()])
        || says("isError", &[true.into()])
        || says("success", &[false.into()])
        || says("status", &["incomplete".into(), "failed".into()])
}
