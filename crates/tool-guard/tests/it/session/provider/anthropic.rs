//! Anthropic Messages.
//!
//! From "Handle tool calls", "Parallel tool use", "Extended thinking", "Mid-conversation system
//! messages" and the Messages reference. That results lead the next message without a gap, and that
//! no text follows a call, is from recorded answers of the server.
use super::{Told, is_plain, object, text};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The messages of a request, which is sent as it stands.
pub(crate) fn request(messages: &[Value]) -> Told {
    let mut told = conversation(messages);
    if messages.first().is_some_and(|first| first["role"] == "system") {
        told.member(0, "use the top-level 'system' parameter for the initial system prompt");
    }
    let last = messages.iter().rfind(|message| !is_pause(message));
    if let Some(last) = last.filter(|last| last["role"] == "assistant") {
        ending(&mut told, last);
    }
    told
}

/// The messages of a session, which a prompt of the user's will follow.
pub(crate) fn conversation(messages: &[Value]) -> Told {
    let mut told = Told::default();
    let turns = turns(messages, &mut told);
    let mut ids = HashSet::new();
    for (at, turn) in turns.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &turns[before]);
        match &*turn.role {
            "assistant" => assistant(&mut told, turn, &mut ids),
            "user" => user(&mut told, turn, before),
            _ => instruction(&mut told, turn, before),
        }
        let next = turns.get(at + 1);
        let unanswered = unanswered(turn, next);
        if next.is_some() && !unanswered.is_empty() {
            told.wrong(turn.at, &format!("tool_use without tool_result: {unanswered:?}"));
        } else {
            told.open.extend(unanswered);
        }
    }
    told.settled()
}

/// Messages of one role in a row, which the server combines.
struct Turn {
    at: usize,
    role: String,
    blocks: Vec<Value>,
}

/// An effort change: a system message without content, which may stand anywhere but first.
fn is_pause(message: &Value) -> bool {
    let content = &message["content"];
    message["role"] == "system" && (content == "" || *content == json!([]))
}

fn turns(messages: &[Value], told: &mut Told) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for (at, message) in messages.iter().enumerate().filter(|(_, it)| !is_pause(it)) {
        let role = text(message, "role");
        if !["user", "assistant", "system"].contains(&role) {
            told.wrong(at, "unknown role");
        }
        let blocks = blocks(message, at, at + 1 == messages.len(), told);
        match turns.last_mut().filter(|turn| turn.role == role) {
            Some(turn) => turn.blocks.extend(blocks),
            None => turns.push(Turn { at, role: role.to_owned(), blocks }),
        }
    }
    turns
}

fn blocks(message: &Value, at: usize, is_last: bool, told: &mut Told) -> Vec<Value> {
    let blocks = match &message["content"] {
        Value::String(said) if said.is_empty() => Vec::new(),
        Value::String(said) => vec![json!({"type": "text", "text": said})],
        Value::Array(blocks) => blocks.clone(),
        _ => {
            told.member(at, "content is neither a text nor a list");
            return Vec::new();
        }
    };
    if blocks.is_empty() && !(is_last && message["role"] == "assistant") {
        told.member(at, "messages must have non-empty content");
    }
    for block in &blocks {
        if block["type"] == "text" && text(block, "text").trim().is_empty() {
            told.member(at, "text content blocks must contain non-whitespace text");
        }
        if object(block).is_none_or(|block| !block.contains_key("type")) {
            told.member(at, "a block without a type");
        }
    }
    blocks
}

fn is(block: &Value, kind: &str) -> bool {
    block["type"] == kind
}

fn assistant(told: &mut Told, turn: &Turn, ids: &mut HashSet<String>) {
    let mut has_called = false;
    for block in &turn.blocks {
        if is(block, "tool_result") {
            told.member(turn.at, "tool_result blocks can only be in user messages");
        }
        if !is(block, "tool_use") {
            if has_called && is(block, "text") {
                told.member(turn.at, "tool_use without tool_result right after: a block between");
            }
            continue;
        }
        has_called = true;
        let id = text(block, "id");
        if !is_plain(id, usize::MAX) {
            told.member(turn.at, "tool_use.id should match '^[a-zA-Z0-9_-]+$'");
        }
        if !(1..=200).contains(&text(block, "name").len()) {
            told.member(turn.at, "tool_use.name should have 1 to 200 characters");
        }
        if object(&block["input"]).is_none() {
            told.member(turn.at, "tool_use.input should be an object");
        }
        if !ids.insert(id.to_owned()) {
            told.wrong(turn.at, &format!("tool_use ids must be unique: {id}"));
        }
    }
}

/// The ids of the results that lead a message.
fn leading(turn: &Turn) -> impl Iterator<Item = &str> {
    let blocks = turn.blocks.iter().take_while(|block| is(block, "tool_result"));
    blocks.map(|block| text(block, "tool_use_id"))
}

fn calls(turn: &Turn) -> impl Iterator<Item = &str> {
    let blocks = turn.blocks.iter().filter(|block| is(block, "tool_use"));
    blocks.map(|block| text(block, "id"))
}

fn user(told: &mut Told, turn: &Turn, before: Option<&Turn>) {
    let called: Vec<_> = before.map(|before| calls(before).collect()).unwrap_or_default();
    let mut seen = HashSet::new();
    for block in &turn.blocks {
        if is(block, "tool_use") || is(block, "thinking") || is(block, "redacted_thinking") {
            told.is_misplaced = true;
            told.member(turn.at, "tool_use and thinking can only be in assistant messages");
        }
        if !is(block, "tool_result") {
            continue;
        }
        let id = text(block, "tool_use_id");
        if !called.contains(&id) {
            told.wrong(turn.at, &format!("unexpected tool_use_id in tool_result: {id}"));
        }
        if !seen.insert(id) {
            told.wrong(turn.at, &format!("each tool_use must have a single result: {id}"));
        }
    }
    let led = leading(turn).count();
    if turn.blocks[led..].iter().any(|block| is(block, "tool_result")) {
        told.wrong(turn.at, "tool_result blocks must come first");
    }
}

fn instruction(told: &mut Told, turn: &Turn, before: Option<&Turn>) {
    if before.is_some_and(|before| calls(before).next().is_some()) {
        told.wrong(turn.at, "a system message between tool_use and tool_result");
    }
}

fn unanswered(turn: &Turn, next: Option<&Turn>) -> Vec<String> {
    let answered: Vec<_> = next.map(|next| leading(next).collect()).unwrap_or_default();
    let is_open = |id: &&str| turn.role == "assistant" && !answered.contains(id);
    let open = calls(turn).filter(is_open);
    open.map(str::to_owned).collect()
}

/// What the last message of a request may not end with, where it is the assistant's.
fn ending(told: &mut Told, last: &Value) {
    let block = last["content"].as_array().and_then(|blocks| blocks.last());
    let kind = block.map_or("", |block| text(block, "type"));
    if kind == "thinking" || kind == "redacted_thinking" {
        told.member("last", "the final block in an assistant message cannot be `thinking`");
    }
    let said = match block {
        Some(block) if kind == "text" => text(block, "text"),
        _ => last["content"].as_str().unwrap_or(""),
    };
    if said.ends_with(char::is_whitespace) {
        told.member("last", "final assistant content cannot end with trailing whitespace");
    }
}
