//! Where a turn begins in a session of Codex's.
use crate::json::{self, Members};

/// Beginnings of what Codex itself writes as the user's. They begin no turn.
const CONTEXT: [&str; 7] = [
    "# AGENTS.md instructions",
    "<environment_context>",
    "<recommended_plugins>",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_shell_command>",
];

/// Whether an item begins a turn: the user says something, or another agent.
pub(super) fn begins_turn(item: &str) -> bool {
    let wire = Members::of(item, &["type", "role", "content"]).unwrap_or_default();
    let parts = wire.get("content").and_then(|content| json::elements(content.get()).ok());
    let first = parts.as_ref().and_then(|parts| parts.first());
    let text = first.map(|part| Members::of(part, &["text"]).unwrap_or_default().text("text"));
    let is_context = text.is_some_and(|text| CONTEXT.iter().any(|begin| text.starts_with(begin)));
    wire.text("type") == "agent_message" || wire.text("role") == "user" && !is_context
}
