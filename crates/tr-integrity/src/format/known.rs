//! What is known of the members of messages and blocks: what has others is not understood.
use crate::{json, message::Unknown};
use serde_json::value::RawValue;

/// Members in which some form or other keeps what a message says. In a form that does not know
/// them, a message that has one says something that is not read.
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

/// Whether a value says nothing, wherever it stands.
fn is_nothing(value: &RawValue) -> bool {
    matches!(value.get(), "null" | r#""""# | "[]" | "{}")
}

/// Whether a content is of a shape that its form takes: a list, or nothing; a text begins with `"`.
pub(super) fn has_shape(content: Option<&RawValue>, takes_text: bool) -> bool {
    content.map(RawValue::get).is_none_or(|content| {
        content == "null" || content.starts_with('[') || takes_text && content.starts_with('"')
    })
}

/// What of a message is not understood. `known` are the members that its form knows, and `content`
/// is what it says by them.
pub(super) fn message(raw: &str, known: &[&str], content: Option<&RawValue>) -> Option<Unknown> {
    let members = json::members(raw).unwrap_or_default();
    let others = members
        .iter()
        .filter(|(name, value)| !known.contains(&name.as_ref()) && !is_nothing(value));
    let mut others = others.peekable();
    others.peek()?;
    let says = |(name, value): (&str, &RawValue)| {
        may_say(name) && value.get().starts_with(['"', '[', '{'])
    };
    let is_bare = content.is_none_or(is_nothing);
    let says_unknown = others.any(|(name, value)| is_bare || says((name, *value)));
    Some(if says_unknown { Unknown::Content } else { Unknown::Members })
}

/// The members of a result that its text, or its title, tells, and those that say something to
/// nobody once it is no result.
const TOLD: [&str; 16] = [
    "cacheControl",
    "callId",
    "content",
    "id",
    "isError",
    "output",
    "parts",
    "response",
    "role",
    "thoughtSignature",
    "timestamp",
    "toolCallId",
    "toolUseId",
    "type",
    "functionResponse",
    "functionCall",
];

/// What a result says beside its content, a line for each member: its tool, that it failed. Its
/// title tells `id`.
pub(super) fn beside(result: &str, id: &str) -> Vec<String> {
    let members = json::members(result).unwrap_or_default();
    let mut lines = Vec::new();
    for (name, value) in members {
        let is_said = is_nothing(value) || value.get() == "false";
        if json::camel_case(&name) == "functionResponse" {
            lines.extend(beside(value.get(), id));
        } else if !is_said && !TOLD.contains(&&*json::camel_case(&name)) {
            let value = json::string(value).unwrap_or_else(|| value.get().into());
            lines.extend((value != id).then(|| format!("[{name}: {value}]")));
        }
    }
    lines
}

/// What of a block is not understood, if its type is known to have these members.
pub(super) fn block(raw: &str, known: &[&str]) -> Option<Unknown> {
    let members = json::members(raw).unwrap_or_default();
    members.keys().any(|name| !known.contains(&&**name)).then_some(Unknown::Members)
}

/// Whether a content is a text, or a list of parts of these types.
pub(super) fn has_parts(content: Option<&RawValue>, types: &[&str]) -> bool {
    #[derive(Default, serde::Deserialize)]
    struct Part<'t> {
        #[serde(borrow, rename = "type")]
        kind: Option<&'t RawValue>,
    }
    let Some(content) = content.filter(|content| !content.get().starts_with('"')) else {
        return true;
    };
    let Ok(parts) = json::elements(content.get()) else { return is_nothing(content) };
    parts.into_iter().all(|part| {
        let part: Part<'_> = json::object(part).unwrap_or_default();
        part.kind.and_then(json::string).is_some_and(|kind| types.contains(&&*kind))
    })
}
