//! Codex's rollbacks: what they take back is not sent.
use super::{
    entry::{Link, What},
    located::Located,
};
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

/// Takes back the last `turns` of these entries; `false` if they have fewer, and older ones are not among them.
pub(super) fn undo(entries: &mut [Located], turns: u64, has_before: bool) -> bool {
    let begins = |it: &Located| it.entry.link == Link::Root && !it.entry.is_outside();
    let Some(back) = turns.checked_sub(1) else { return true };
    let back = usize::try_from(back).unwrap_or(usize::MAX);
    let starts = entries.iter().enumerate().rev().filter(|(_, it)| begins(it));
    let from = match starts.map(|(at, _)| at).nth(back) {
        Some(from) => from,
        None if has_before => return false,
        None => entries.iter().position(begins).unwrap_or(entries.len()),
    };
    for located in &mut entries[from..] {
        (located.entry.what, located.entry.link) = (What::Outside, Link::Before);
    }
    true
}
