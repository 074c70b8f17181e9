//! What this crate writes into transcripts, and how it recognizes that.
use super::refused::CACHE;
use crate::json::{self, Members};
use serde_json::value::RawValue;

/// The content of the error result that a repair adds for an unanswered use.
pub const OUTCOME_UNKNOWN: &str = "outcome unknown, may have run";

/// The beginning of the content with which OpenClaw's own repair fills in a missing result.
const OPENCLAW_SYNTHETIC: &str = "[openclaw] missing tool result in session history";

/// A tool use to write: its id, its name and its input.
pub(crate) type NewUse<'r> = (&'r str, &'r str, &'r str);

/// A result to write.
#[derive(Clone, Copy, Debug)]
pub struct NewResult<'r> {
    /// The id of its use.
    pub id: &'r str,
    /// The tool.
    pub name: &'r str,
    /// What the model sees.
    pub content: &'r str,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// Whether a repair wrote this content.
pub(crate) fn is_synthetic(content: Option<&RawValue>) -> bool {
    content.is_some_and(|content| is_synthetic_text(&plain_text(content)))
}

pub(crate) fn is_synthetic_text(text: &str) -> bool {
    text == OUTCOME_UNKNOWN || text.starts_with(OPENCLAW_SYNTHETIC)
}

/// The text of a content: a string, or its only text part.
fn plain_text(content: &RawValue) -> String {
    if let Some(text) = json::string(content) {
        return text.into_owned();
    }
    match json::elements(content.get()).as_deref() {
        Ok([part]) => Members::of(part, &["text"]).unwrap_or_default().text("text").into_owned(),
        _ => String::new(),
    }
}

/// `text` with the cache mark of `was`, which it replaces.
pub(crate) fn with_mark_of(text: String, was: &str) -> String {
    let marks = json::members(was).unwrap_or_default();
    let Some(mark) = marks.get(CACHE) else { return text };
    match json::members(&text) {
        Ok(members) if !members.contains_key(CACHE) => json::set_member(&text, CACHE, mark.get()),
        _ => text,
    }
}
