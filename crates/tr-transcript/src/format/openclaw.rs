//! OpenClaw's and pi's own messages, as their session files hold them: uses are `toolCall` blocks
//! of an assistant message, a result is a message of the role `toolResult`.
use super::{
    Format, ReadError,
    form::{Form, result, step, types, used},
    known,
    openai_chat::Chat,
    refused::{Refused, Text, must_be},
    written::{NewResult, NewUse},
};
use crate::{
    json::{self, Members, quote},
    message::{Blank, Block, Body, Kind, Role, Unknown},
    validate::{Fault, Finding},
};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The members that are read of a message, with the API that answered; and of a block.
const READ: [&str; 4] = ["role", "content", "toolCallId", "api"];
const BLOCK: [&str; 4] = ["type", "id", "name", "arguments"];

/// The members of a message that hold content.
const SAYING: [&str; 2] = ["content", "toolCallId"];

/// Members that a result and a text share, or that only the harness reads.
const KEPT: [&str; 4] = ["details", "isError", "timestamp", "toolName"];

/// The known members of a call.
const CALL: [&str; 6] = ["type", "id", "name", "arguments", "thoughtSignature", "partialJson"];

/// The known members of a result.
pub(super) const RESULT: [&str; 7] =
    ["content", "details", "isError", "role", "timestamp", "toolCallId", "toolName"];

/// The form of OpenClaw and pi.
pub(super) struct OpenClaw;

impl Form for OpenClaw {
    fn read(&self, raw: Box<str>) -> Result<Body, ReadError> {
        let wire =
            Members::of(&raw, &READ).map_err(|error| ReadError::json("not a message", error))?;
        let (role, content) = (role(&wire)?, wire.get("content"));
        let mut blocks = Vec::new();
        let list = content.map(|content| json::span(&raw, content.get()));
        if role == Role::Tool {
            blocks.push(result(&raw, &wire, "toolCallId", &RESULT));
        } else if role == Role::Assistant
            && let Some(content) = content
            && let Ok(elements) = json::elements(content.get())
        {
            for element in elements {
                let kind = |wire: Members<'_>| match &*wire.text("type") {
                    "toolCall" => used(&raw, &wire, "id", wire.text("name").into()),
                    "text" => Kind::Text(Blank::No),
                    _ => Kind::Other,
                };
                let wire = Members::of(element, &BLOCK).ok();
                let unknown = wire.as_ref().and_then(|wire| unknown(element, wire));
                let refused = wire.as_ref().and_then(refused_in).map(Box::new);
                let kind = wire.map_or(Kind::Unread, kind);
                let block = Block::new(json::span(&raw, element), kind);
                Block { unknown, refused, ..block }.add_to(&mut blocks);
            }
        }
        let is_known = role != Role::Other && known::has_shape(content, true);
        let unknown = match role {
            // A repair never removes these messages, so their other unknown members are safe.
            Role::Assistant => known::message(&raw, &SAYING, wire.get("role"), is_known)
                .filter(|unknown| *unknown == Unknown::Content),
            _ => (!is_known).then_some(Unknown::Content),
        };
        let api = if role == Role::Assistant { wire.text("api") } else { "".into() };
        let answered_in = form_of(&api);
        let is_unknown = answered_in.is_none() && !api.is_empty();
        let unknown_api = is_unknown.then(|| api.into());
        let body = Body { answered_in, unknown_api, ..Body::of(raw) };
        Ok(Body { role, list, blocks, unknown, ..body })
    }

    fn evidence(&self, message: &str) -> usize {
        let Ok(wire) = Members::of(message, &READ) else { return 0 };
        let is_result = role(&wire).is_ok_and(|role| role == Role::Tool);
        let calls = types(wire.get("content")).filter(|kind| kind == "toolCall").count();
        // No other form has such calls or results: one of them outweighs all other evidence.
        (usize::from(is_result) + calls) << 16
    }

    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String> {
        step(r#"{"role":"assistant","content":["#, uses, |id, name, input| {
            format!(r#"{{"type":"toolCall","id":{id},"name":{name},"arguments":{input}}}"#)
        })
    }

    fn write_result(&self, result: &NewResult<'_>, _: &str) -> String {
        let (id, content) = (quote(result.id), quote(result.content));
        let is_error = result.is_error;
        format!(
            r#"{{"role":"toolResult","toolCallId":{id},"content":[{{"type":"text","text":{content}}}],"isError":{is_error}}}"#
        )
    }

    /// The message that replaces the result keeps them.
    fn beside(&self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }

    /// A user message with the title and the content; the content's parts and the result's other
    /// members are unchanged, because the harness sends those members to no model.
    fn result_as_text(&self, title: &str, result: &str, content: Option<&str>) -> Vec<String> {
        let keeps = |(name, value): &(Cow<'_, str>, &RawValue)| {
            content != Some(result) && KEPT.contains(&&**name) && value.get() != "null"
        };
        let members = json::members(result).unwrap_or_default().into_iter().filter(keeps);
        let text = Chat.result_as_text(title, result, content);
        let kept = members
            .fold(text.concat(), |text, (name, value)| json::set_member(&text, &name, value.get()));
        vec![kept]
    }

    fn error(&self, finding: &Finding) -> String {
        Chat.error(finding)
    }
}

/// The form of the messages that an API of pi's takes, if it is known.
pub(crate) fn form_of(api: &str) -> Option<Format> {
    match api {
        "anthropic-messages" => Some(Format::AnthropicMessages),
        "openai-completions" => Some(Format::OpenAiChat),
        "openai-responses" | "openai-codex-responses" | "azure-openai-responses" => {
            Some(Format::OpenAiResponses)
        }
        "google-gemini-cli" | "google-generative-ai" | "google-vertex" => Some(Format::Gemini),
        _ => None,
    }
}

/// The provider's limit for tool names: any name that is not empty.
const NAME: Text = Text::name("function.name", usize::MAX, false);

/// Why the provider refuses a call. The agent writes its arguments as an object.
fn refused_in(wire: &Members<'_>) -> Option<Refused> {
    if wire.text("type") != "toolCall" {
        return None;
    }
    let given = || wire.present("arguments");
    let given = || must_be("an object", Fault::UnreadInput, "arguments", given());
    NAME.refused(wire.present("name")).or_else(given)
}

/// Whether a block has unknown parts.
fn unknown(block: &str, wire: &Members<'_>) -> Option<Unknown> {
    match &*wire.text("type") {
        "toolCall" => known::block(block, &CALL),
        "text" | "thinking" | "image" => None,
        _ => Some(Unknown::Content),
    }
}

/// Messages of extensions and of the harness are sent as the user's.
fn role(wire: &Members<'_>) -> Result<Role, ReadError> {
    let role = wire.string("role").ok_or(ReadError::new("a message without a role"))?;
    Ok(match &*role {
        "system" => Role::System,
        "assistant" => Role::Assistant,
        "toolResult" => Role::Tool,
        "user" | "custom" | "hookMessage" | "bashExecution" | "branchSummary"
        | "compactionSummary" => Role::User,
        _ => Role::Other,
    })
}
