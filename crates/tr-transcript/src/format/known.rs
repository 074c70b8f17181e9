//! The known members of messages and blocks; other members make them not understood.
use crate::{json, message::Unknown};
use serde_json::value::RawValue;

/// The members that hold content in any form. A message in a form without such a member has content
/// that is not read.
pub(crate) fn may_say(name: &str) -> bool {
    matches!(
        name,
        "args"
            | "arguments"
            | "blocks"
            | "body"
            | "call"
            | "content"
            | "contents"
            | "data"
            | "functionCall"
            | "functionResponse"
            | "function_call"
            | "function_response"
            | "input"
            | "kwargs"
            | "message"
            | "messages"
            | "output"
            | "parts"
            | "prompt"
            | "result"
            | "results"
            | "steps"
            | "text"
            | "toolCall"
            | "toolCallId"
            | "toolCalls"
            | "toolInvocations"
            | "toolResult"
            | "toolResults"
            | "toolUse"
            | "tool_call_id"
            | "tool_calls"
            | "tool_results"
            | "tool_use_id"
    )
}

/// Whether a block type of Anthropic's is known and irrelevant to a repair.
pub(crate) fn is_untouched(kind: &str) -> bool {
    match kind {
        "compaction" | "container_upload" | "document" | "image" | "redacted_thinking"
        | "search_result" | "thinking" | "tool_reference" => true,
        kind => is_of_server(kind),
    }
}

/// Whether a block of Anthropic's is a use of a tool that the provider runs, or its result.
pub(crate) fn is_of_server(kind: &str) -> bool {
    matches!(kind, "mcp_tool_use" | "server_tool_use") || kind.ends_with("_tool_result")
}

/// Whether a value is empty at every level.
fn is_nothing(value: &RawValue) -> bool {
    matches!(value.get(), "null" | r#""""# | "[]" | "{}")
}

/// Whether a content has a type that the form allows: a list, or missing; with `takes_text`, also a
/// string.
pub(super) fn has_shape(content: Option<&RawValue>, takes_text: bool) -> bool {
    content.map(RawValue::get).is_none_or(|content| {
        content == "null" || content.starts_with('[') || takes_text && content.starts_with('"')
    })
}

/// Whether a message has unknown parts. `known` are the members of its form, `content` is the
/// content that they hold, and `is_known` says whether its role and its content's type are known.
pub(super) fn message(
    raw: &str,
    known: &[&str],
    content: Option<&RawValue>,
    is_known: bool,
) -> Option<Unknown> {
    if !is_known {
        return Some(Unknown::Content);
    }
    let members = json::members(raw).unwrap_or_default();
    let others = members
        .iter()
        .filter(|(name, value)| !known.contains(&name.as_ref()) && !is_nothing(value));
    let mut others = others.peekable();
    others.peek()?;
    let is_bare = content.is_none_or(is_nothing);
    let says = |value: &RawValue| value.get().starts_with(['"', '[', '{']);
    let says_unknown = others.any(|(name, value)| is_bare || may_say(name) && says(value));
    Some(if says_unknown { Unknown::Content } else { Unknown::Members })
}

/// The members of a result other than its content, one line for each: its tool, that it failed. Its
/// title contains `id`.
pub(super) fn beside(result: &str, id: &str) -> Vec<String> {
    let members = json::members(result).unwrap_or_default();
    let mut lines = Vec::new();
    for (name, value) in members {
        match &*json::camel_case(&name) {
            "functionResponse" => lines.extend(beside(value.get(), id)),
            // The text says these, or a text has no place for them.
            "cacheControl" | "callId" | "content" | "id" | "isError" | "output" | "parts"
            | "response" | "role" | "thoughtSignature" | "timestamp" | "toolCallId"
            | "toolUseId" | "type" | "functionCall" => {}
            _ if is_nothing(value) || value.get() == "false" => {}
            _ => {
                let value = json::string(value).unwrap_or_else(|| value.get().into());
                lines.extend((value != id).then(|| format!("[{name}: {value}]")));
            }
        }
    }
    lines
}

/// Whether a block of a known type has other members than these.
pub(super) fn block(raw: &str, known: &[&str]) -> Option<Unknown> {
    let members = json::members(raw).unwrap_or_default();
    members.keys().any(|name| !known.contains(&&**name)).then_some(Unknown::Members)
}

/// Whether a content is a text, or a list of parts of these types.
pub(super) fn has_parts(content: Option<&RawValue>, types: &[&str]) -> bool {
    let Some(content) = content.filter(|content| !content.get().starts_with('"')) else {
        return true;
    };
    let Ok(parts) = json::elements(content.get()) else { return is_nothing(content) };
    parts.into_iter().all(|part| {
        types.contains(&&*json::Members::of(part, &["type"]).unwrap_or_default().text("type"))
    })
}
