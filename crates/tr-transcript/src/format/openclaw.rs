//! OpenClaw's and pi's own messages, as their session files hold them: uses are `toolCall` blocks
//! of an assistant message, a result is a message of the role `toolResult`.
use super::{
    Format, ReadError,
    form::{Form, id, result, step, text},
    known,
    openai_chat::Chat,
    refused::{Refused, Text, must_be},
    written::{Asked, NewUse},
};
use crate::{
    json::{self, quote},
    message::{Blank, Block, Body, Kind, Role, Unknown},
    validate::{Fault, Finding},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct Wire<'t> {
    #[serde(borrow)]
    role: Option<&'t RawValue>,
    content: Option<&'t RawValue>,
    #[serde(rename = "toolCallId")]
    tool_call_id: Option<&'t RawValue>,
    /// The API that answered.
    api: Option<&'t RawValue>,
}

#[derive(Default, Deserialize)]
struct WireBlock<'t> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'t RawValue>,
    id: Option<&'t RawValue>,
    #[serde(default, deserialize_with = "json::present")]
    name: Option<&'t RawValue>,
    #[serde(default, deserialize_with = "json::present")]
    arguments: Option<&'t RawValue>,
}

/// The members of a message that hold content.
const SAYING: [&str; 2] = ["content", "toolCallId"];

/// Members that a result and a text share, or that only the harness reads.
const KEPT: [&str; 4] = ["details", "isError", "timestamp", "toolName"];

/// The known members of a call.
const CALL: [&str; 6] = ["type", "id", "name", "arguments", "thoughtSignature", "partialJson"];

/// The known members of a result.
const RESULT: [&str; 7] =
    ["content", "details", "isError", "role", "timestamp", "toolCallId", "toolName"];

/// The form of OpenClaw and pi.
pub(super) struct OpenClaw;

impl Form for OpenClaw {
    fn read(&self, raw: Box<str>) -> Result<Body, ReadError> {
        let wire: Wire<'_> =
            json::object(&raw).map_err(|error| ReadError::json("not a message", error))?;
        let role = role(wire.role)?;
        let at = |part: Option<&RawValue>| part.map(|part| json::span(&raw, part.get()));
        let mut blocks = Vec::new();
        let list = at(wire.content);
        if role == Role::Tool {
            blocks.push(result(&raw, wire.tool_call_id, wire.content, &RESULT));
        } else if role == Role::Assistant
            && let Some(content) = wire.content
            && let Ok(elements) = json::elements(content.get())
        {
            for element in elements {
                let kind = |wire: WireBlock<'_>| match wire.kind.and_then(json::string).as_deref() {
                    Some("toolCall") => Kind::Use {
                        id: id(wire.id),
                        id_at: at(wire.id),
                        name: text(wire.name),
                        noun: "",
                    },
                    Some("text") => Kind::Text(Blank::No),
                    _ => Kind::Other,
                };
                let wire: Option<WireBlock<'_>> = json::object(element).ok();
                let unknown = wire.as_ref().and_then(|wire| unknown(element, wire));
                let refused = wire.as_ref().and_then(refused_in).map(Box::new);
                let kind = wire.map_or(Kind::Unread, kind);
                let block = Block::new(json::span(&raw, element), kind);
                Block { unknown, refused, ..block }.add_to(&mut blocks);
            }
        }
        let is_system = role == Role::System;
        let unknown = match role {
            Role::Other => Some(Unknown::Content),
            _ if !known::has_shape(wire.content, true) => Some(Unknown::Content),
            // A repair never removes these messages, so their other unknown members are safe.
            Role::Assistant => known::message(&raw, &SAYING, wire.role)
                .filter(|unknown| *unknown == Unknown::Content),
            _ => None,
        };
        let api = text(wire.api.filter(|_| role == Role::Assistant));
        let answered_in = form_of(&api);
        let unknown_api = Some(api).filter(|api| answered_in.is_none() && !api.is_empty());
        let body = Body { answered_in, unknown_api, ..Body::of(raw) };
        Ok(Body { role, list, blocks, is_system, unknown, ..body })
    }

    fn evidence(&self, message: &str) -> usize {
        let Ok(wire) = json::object::<Wire<'_>>(message) else { return 0 };
        let is_result = role(wire.role).is_ok_and(|role| role == Role::Tool);
        let is_call = |element: &&str| {
            let block: WireBlock<'_> = json::object(element).unwrap_or_default();
            block.kind.and_then(json::string).as_deref() == Some("toolCall")
        };
        let blocks = wire.content.and_then(|content| json::elements(content.get()).ok());
        let calls = blocks.map_or(0, |blocks| blocks.into_iter().filter(is_call).count());
        // No other form has such calls or results: one of them outweighs all other evidence.
        (usize::from(is_result) + calls) << 16
    }

    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String> {
        step(r#"{"role":"assistant","content":["#, uses, |id, name, input| {
            format!(r#"{{"type":"toolCall","id":{id},"name":{name},"arguments":{input}}}"#)
        })
    }

    fn write_result(&self, asked: &Asked<'_>, content: &str, is_error: bool) -> String {
        let (id, content) = (quote(asked.id), quote(content));
        format!(
            r#"{{"role":"toolResult","toolCallId":{id},"content":[{{"type":"text","text":{content}}}],"isError":{is_error}}}"#
        )
    }

    fn keeps_members(&self) -> bool {
        true
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
fn refused_in(wire: &WireBlock<'_>) -> Option<Refused> {
    if &*text(wire.kind) != "toolCall" {
        return None;
    }
    let given = || must_be("an object", Fault::UnreadInput, "arguments", wire.arguments);
    NAME.refused(wire.name).or_else(given)
}

/// Whether a block has unknown parts.
fn unknown(block: &str, wire: &WireBlock<'_>) -> Option<Unknown> {
    match &*text(wire.kind) {
        "toolCall" => known::block(block, &CALL),
        "text" | "thinking" | "image" => None,
        _ => Some(Unknown::Content),
    }
}

/// Messages of extensions and of the harness are sent as the user's.
fn role(raw: Option<&RawValue>) -> Result<Role, ReadError> {
    let role = raw.and_then(json::string).ok_or(ReadError::new("a message without a role"))?;
    Ok(match &*role {
        "system" => Role::System,
        "assistant" => Role::Assistant,
        "toolResult" => Role::Tool,
        "user" | "custom" | "hookMessage" | "bashExecution" | "branchSummary"
        | "compactionSummary" => Role::User,
        _ => Role::Other,
    })
}
