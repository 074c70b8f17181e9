//! OpenAI's Chat Completions API: uses are `tool_calls` of an assistant message, a result is a
//! message of the role `tool`.
use super::{
    ReadError,
    form::{Form, as_text, result, role, step, used},
    known, media,
    refused::{Applies, Refused, Text, Why, must_be, openai},
    written::{NewResult, NewUse},
};
use crate::{
    json::{self, Members, Piece, quote},
    message::{Block, Body, Kind, Message, Role},
    validate::{Fault, Finding},
};
use serde_json::value::RawValue;

/// The members of a message that are read. With one of the last three, an answer may have no
/// content.
const READ: [&str; 7] =
    ["role", "content", "tool_calls", "tool_call_id", "audio", "function_call", "refusal"];

/// The known members of a message, including those of the model's answers and of other providers
/// that use this form.
pub(super) const MEMBERS: [&str; 15] = [
    "annotations",
    "audio",
    "cache_control",
    "content",
    "name",
    "provider_specific_fields",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "role",
    "thinking_blocks",
    "tool_call_id",
    "tool_calls",
    "tool_name",
];

/// The known members of a call.
const CALL: [&str; 7] =
    ["custom", "extra_content", "function", "id", "index", "provider_specific_fields", "type"];

/// The known members of a result.
const RESULT: [&str; 6] = ["cache_control", "content", "name", "role", "tool_call_id", "tool_name"];

/// The known types of a content's parts.
const PARTS: [&str; 7] =
    ["audio_url", "file", "image_url", "input_audio", "refusal", "text", "video_url"];

/// The provider's limits for ids and tool names.
const ID: Text = Text::id("id", 40, false);
const NAME: Text = Text::name("function.name", 128, true);

/// The form of OpenAI's Chat Completions API.
pub(super) struct Chat;

impl Form for Chat {
    fn read(&self, raw: Box<str>) -> Result<Body, ReadError> {
        let wire =
            Members::of(&raw, &READ).map_err(|error| ReadError::json("not a message", error))?;
        let (role, content) = (role(&wire)?, wire.get("content"));
        let mut blocks = Vec::new();
        let mut list = None;
        if role == Role::Tool {
            blocks.push(result(&raw, &wire, "tool_call_id", &RESULT));
        } else if role == Role::Assistant
            && let Some(calls) = wire.get("tool_calls")
            && let Ok(elements) = json::elements(calls.get())
        {
            list = Some(json::span(&raw, calls.get()));
            for element in elements {
                let call = Call::of(element);
                let refused = call.as_ref().and_then(refused_in).map(Box::new);
                let kind = call.map_or(Kind::Unread, |Call { members, function }| {
                    let name = function.unwrap_or_default().text("name");
                    used(&raw, &members, "id", name.into())
                });
                let unknown = known::block(element, &CALL);
                let block = Block::new(json::span(&raw, element), kind);
                Block { unknown, refused, ..block }.add_to(&mut blocks);
            }
        }
        let says = wire.get("tool_calls").filter(|_| !blocks.is_empty()).or(content);
        let is_known = role != Role::Other && known::has_parts(content, &PARTS);
        let unknown = known::message(&raw, &MEMBERS, says, is_known);
        let refused = refused(&wire, role).map(Box::new);
        Ok(Body { role, list, blocks, unknown, refused, ..Body::of(raw) })
    }

    fn evidence(&self, message: &str) -> usize {
        let Ok(wire) = Members::of(message, &READ) else { return 0 };
        // The role `system` is no evidence: Anthropic's messages may have it, too.
        let tells = matches!(&*wire.text("role"), "tool" | "developer");
        // Members that only this form has, even if they are `null`.
        let own = ["audio", "function_call", "refusal", "tool_calls"];
        usize::from(tells || own.iter().any(|name| wire.present(name).is_some()))
    }

    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String> {
        step(r#"{"role":"assistant","content":null,"tool_calls":["#, uses, |id, name, input| {
            let function = format!(r#"{{"name":{name},"arguments":{}}}"#, quote(input));
            format!(r#"{{"id":{id},"type":"function","function":{function}}}"#)
        })
    }

    /// This form has no error flag: the content says that it is an error.
    fn write_result(&self, result: &NewResult<'_>, _: &str) -> String {
        let (id, content) = (quote(result.id), quote(result.content));
        format!(r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#)
    }

    fn rewrite(&self, message: &Message, pieces: &[Piece]) -> Option<String> {
        if pieces.is_empty() {
            return Some(without_calls(message.raw()));
        }
        Some(message.with_pieces(pieces))
    }

    /// A user message with the title and the content, whose parts are unchanged.
    fn result_as_text(&self, title: &str, _: &str, content: Option<&str>) -> Vec<String> {
        let content = content.unwrap_or(r#""""#);
        let content = match json::elements(content) {
            Ok(parts) => {
                let mut all = vec![format!(r#"{{"type":"text","text":{}}}"#, quote(title))];
                all.extend(parts.into_iter().map(str::to_owned));
                format!("[{}]", all.join(","))
            }
            Err(_) => quote(&format!("{title}\n{}", as_text(content))),
        };
        vec![format!(r#"{{"role":"user","content":{content}}}"#)]
    }

    /// Arguments become a JSON string; an empty list of calls is removed; a missing content becomes
    /// an empty text.
    fn corrected(&self, message: &Message, _: bool, _: Applies) -> Option<String> {
        match message.refused().map(|refused| (&*refused.member, &refused.why)) {
            Some(("tool_calls", _)) => return Some(without_calls(message.raw())),
            Some(("content", Why::Type { .. })) if message.role() != Role::Tool => {
                return Some(json::set_member(message.raw(), "content", r#""""#));
            }
            Some((_, Why::Said(_))) => {
                return media::instead_of(message.raw(), "content", "text", refused_image);
            }
            _ => {}
        }
        let mut is_corrected = false;
        let piece = |(at, block): (usize, &Block)| {
            let call = message.text(&block.span);
            let text = block.refused.as_ref().and_then(|_| corrected_call(call));
            is_corrected |= text.is_some();
            Piece { was: Some(at), text: text.unwrap_or_else(|| call.to_owned()) }
        };
        let pieces: Vec<_> = message.blocks().iter().enumerate().map(piece).collect();
        is_corrected.then(|| message.with_pieces(&pieces))
    }

    fn error(&self, finding: &Finding) -> String {
        let id = finding.tool_use_id.as_deref().unwrap_or_default();
        match finding.fault {
            Fault::IncompleteUse | Fault::UseWithoutUser => format!(
                "An assistant message with 'tool_calls' must be followed by tool messages \
                 responding to each 'tool_call_id'. The following tool_call_ids did not have \
                 response messages: {id}"
            ),
            Fault::MissingId => {
                let (at, call) = (finding.message_index, finding.block_index.unwrap_or_default());
                missing(finding, &format!("messages[{at}].tool_calls[{call}].id"))
            }
            Fault::OrphanedResult | Fault::ResultWithoutAssistant if id.is_empty() => {
                "Missing parameter 'tool_call_id': messages with role 'tool' must have a \
                 'tool_call_id'."
                    .to_owned()
            }
            _ => match &finding.refused {
                Some(refused) => words(refused, finding.message_index, finding.block_index),
                None => {
                    "messages with role 'tool' must be a response to a preceeding message with \
                         'tool_calls'."
                        .to_owned()
                }
            },
        }
    }
}

/// The provider's error text for a refused member.
fn words(refused: &Refused, at: usize, call: Option<usize>) -> String {
    let member = &*refused.member;
    match (call, &refused.why) {
        (Some(call), why) => openai(why, &format!("messages[{at}].tool_calls[{call}].{member}")),
        (None, Why::Type { got, .. }) if member == "content" => {
            format!("Invalid value for 'content': expected a string, got {got}.")
        }
        (None, why) => openai(why, &format!("messages[{at}].{member}")),
    }
}

/// The members of a call, and of its function.
struct Call<'t> {
    members: Members<'t>,
    function: Option<Members<'t>>,
}

impl<'t> Call<'t> {
    /// `None` if the call or its function cannot be read.
    fn of(call: &'t str) -> Option<Self> {
        let members = Members::of(call, &["id", "type", "function", "custom"]).ok()?;
        let function = members.get("function").map(RawValue::get);
        let function =
            function.map(|it| Members::of(it, &["name", "arguments"])).transpose().ok()?;
        Some(Self { members, function })
    }
}

/// Why the provider refuses a call.
fn refused_in(Call { members, function }: &Call<'_>) -> Option<Refused> {
    let refused = ID.refused_id(&members.text("id"));
    if refused.is_some() || members.get("custom").is_some() || members.text("type") == "custom" {
        return refused;
    }
    let Some(function) = function else {
        return Some(Refused::new(Fault::RefusedName, "function", Why::Missing));
    };
    let is_bare = members.get("type").is_none();
    let kind = || is_bare.then(|| Refused::content("type", Why::Missing));
    let given = || function.present("arguments");
    let given = || must_be("a string", Fault::RefusedInput, "function.arguments", given());
    NAME.refused(function.present("name")).or_else(given).or_else(kind)
}

/// A call with its type, and with its arguments as a string, if they were missing or not a string.
fn corrected_call(call: &str) -> Option<String> {
    let wire = Call::of(call)?;
    let typed = || json::set_member(call, "type", r#""function""#);
    let is_bare = wire.members.get("type").is_none() && wire.function.is_some();
    let typed = is_bare.then(typed);
    with_string(typed.as_deref().unwrap_or(call)).or(typed)
}

/// A call with its arguments as a JSON string, if they are written as an object.
fn with_string(call: &str) -> Option<String> {
    let given = Call::of(call)?.function?.get("arguments");
    let given = given.filter(|given| given.get().starts_with('{'))?;
    let at = json::span(call, given.get());
    Some(format!("{}{}{}", &call[..at.start], quote(given.get()), &call[at.end..]))
}

/// Why the provider refuses a message's content or its list of calls.
fn refused(wire: &Members<'_>, role: Role) -> Option<Refused> {
    let content = |why| Some(Refused::content("content", why));
    if role == Role::Assistant {
        let speaks = ["audio", "function_call", "refusal"];
        match wire.get("tool_calls").map(RawValue::get) {
            Some(calls) if json::elements(calls).is_ok_and(|calls| calls.is_empty()) => {
                return Some(Refused::content("tool_calls", Why::EmptyList));
            }
            Some(_) => return None,
            None if speaks.iter().any(|name| wire.get(name).is_some()) => return None,
            None => {}
        }
    }
    match wire.get("content").map(RawValue::get) {
        _ if role == Role::Other => None,
        None => content(Why::Type { expected: "a string", got: "null" }),
        Some(text) if text.starts_with('"') => None,
        Some(list) => match json::elements(list) {
            Ok(parts) if parts.is_empty() => content(Why::EmptyList),
            parts => {
                parts.ok()?.into_iter().enumerate().find_map(|(at, part)| refused_image(at, part))
            }
        },
    }
}

/// Why the provider refuses a part of a content that is an image.
fn refused_image(at: usize, part: &str) -> Option<Refused> {
    let image = Members::of(part, &["image_url"]).ok()?.inside("image_url", &["url"]);
    media::refused_url("content", at, &image.string("url")?, true)
}

/// `OpenAI`'s error text for an id that is missing or empty.
pub(super) fn missing(finding: &Finding, member: &str) -> String {
    openai(if finding.is_empty_id() { &Why::Empty } else { &Why::Missing }, member)
}

/// `raw` without its member `tool_calls`, which the provider refuses when it is empty; a message
/// without content then gets an empty content.
fn without_calls(raw: &str) -> String {
    let wire = Members::of(raw, &READ).unwrap_or_default();
    let (content, Some(calls)) = (wire.get("content"), wire.get("tool_calls")) else {
        return raw.to_owned();
    };
    let at = json::span(raw, calls.get());
    if !json::members(raw).is_ok_and(|members| members.contains_key("content")) {
        return json::with_member(raw, &at, r#""content":"""#);
    }
    let rest = json::without_member(raw, &at);
    if content.is_none() { json::set_member(&rest, "content", r#""""#) } else { rest }
}
