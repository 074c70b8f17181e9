//! Members that all lines of a file have in addition to their messages: such a file is a log, or
//! the session of an unknown agent.
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use tr_core::printable;
use tr_transcript::internal::is_of_messages;

/// Members that agents add to a message, beside those that messages have in one of the forms.
const ADDED: [&str; 26] = [
    "api",
    "author",
    "call_id",
    "created",
    "createdAt",
    "created_at",
    "date",
    "effort",
    "errorMessage",
    "extra_content",
    "function_call",
    "images",
    "index",
    "message_id",
    "metadata",
    "meta",
    "object",
    "parts",
    "prefix",
    "provider",
    "provider_extra",
    "responseId",
    "stopReason",
    "thinking",
    "time",
    "weight",
];

/// The common members of a file's lines.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    lines: usize,
    /// Members that each line has, and no message.
    shared: BTreeSet<String>,
    /// Whether a line is no message.
    is_mixed: bool,
}

impl Envelope {
    pub(super) fn add(&mut self, line: &Value) {
        self.is_mixed |= line["role"].as_str().is_none_or(str::is_empty);
        if self.is_mixed {
            return;
        }
        let is_own = |name: &&String| !ADDED.contains(&name.as_str()) && !is_of_messages(name);
        let names = line.as_object().into_iter().flat_map(Map::keys).filter(is_own).cloned();
        if self.lines == 0 {
            self.shared = names.collect();
        } else {
            let names: BTreeSet<_> = names.collect();
            self.shared.retain(|name| names.contains(name));
        }
        self.lines += 1;
    }

    /// The members' names, for display; `None` if there are none.
    pub(super) fn names(self) -> Option<String> {
        let is_one = !self.is_mixed && !self.shared.is_empty();
        let names = self.shared.iter().map(|name| printable(name).to_string());
        is_one.then(|| names.collect::<Vec<_>>().join(", "))
    }
}
