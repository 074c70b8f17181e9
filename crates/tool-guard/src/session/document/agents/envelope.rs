//! Members that all lines of a file have in addition to their messages: such a file is a log, or
//! the session of an unknown agent.
use crate::session::document::outline::Record;
use std::collections::BTreeSet;
use tr_core::printable;

/// Members that messages have in one of the forms, and those that agents add to a message.
const OF_MESSAGES: [&str; 58] = [
    "annotations",
    "api",
    "audio",
    "author",
    "cache_control",
    "call_id",
    "container",
    "content",
    "context_management",
    "created",
    "createdAt",
    "created_at",
    "date",
    "details",
    "diagnostics",
    "effort",
    "errorMessage",
    "extra_content",
    "function_call",
    "id",
    "images",
    "index",
    "isError",
    "message_id",
    "metadata",
    "meta",
    "model",
    "name",
    "object",
    "parts",
    "phase",
    "prefix",
    "provider",
    "provider_extra",
    "provider_specific_fields",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "responseId",
    "role",
    "status",
    "stopReason",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "thinking",
    "thinking_blocks",
    "time",
    "timestamp",
    "toolCallId",
    "toolName",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "type",
    "usage",
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
    pub(super) fn add(&mut self, line: &Record<'_>) {
        self.is_mixed |= line.text("role").is_empty();
        if self.is_mixed {
            return;
        }
        let names = line.names().filter(|name| !OF_MESSAGES.contains(name)).map(str::to_owned);
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
