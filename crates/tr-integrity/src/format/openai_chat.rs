//! OpenAI's Chat Completions API: uses are `tool_calls` of an assistant message, a result is a
//! message of the role `tool`.
use super::{
    ReadError,
    form::{Asked, Form, NewUse, Results, Rules, as_text, is_synthetic, role, text},
};
use crate::{
    json::{self, Piece, quote},
    message::{Block, Body, Kind, Message, Role},
    validate::{Fault, Finding},
};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Wire<'t> {
    #[serde(borrow)]
    role: Option<&'t RawValue>,
    #[serde(borrow)]
    content: Option<&'t RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'t RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'t RawValue>,
}

#[derive(Default, Deserialize)]
struct WireCall<'t> {
    #[serde(borrow)]
    id: Option<&'t RawValue>,
    #[serde(borrow)]
    function: Option<WireFunction<'t>>,
}

#[derive(Default, Deserialize)]
struct WireFunction<'t> {
    #[serde(borrow)]
    name: Option<&'t RawValue>,
}

/// The form.
pub(super) struct Chat;

impl Form for Chat {
    fn rules(&self) -> Rules {
        Rules::of(Results::Messages, "id", "tool_call_id")
    }

    fn read(&self, raw: Box<str>) -> Result<Body, ReadError> {
        let wire: Wire<'_> =
            json::object(&raw).map_err(|error| ReadError::json("not a message", error))?;
        let role = role(wire.role)?;
        let at = |part: Option<&RawValue>| part.map(|part| json::span(&raw, part.get()));
        let mut blocks = Vec::new();
        let mut list = None;
        if role == Role::Tool {
            let kind = Kind::Result {
                id: text(wire.tool_call_id),
                id_at: at(wire.tool_call_id),
                name: Box::default(),
                content: at(wire.content),
                synthetic: is_synthetic(wire.content),
            };
            blocks.push(Block { span: 0..raw.len(), kind });
        } else if role == Role::Assistant
            && let Some(calls) = wire.tool_calls
            && let Ok(elements) = json::elements(calls.get())
        {
            list = at(Some(calls));
            for element in elements {
                let kind = |call: WireCall<'_>| {
                    let name = text(call.function.and_then(|function| function.name));
                    Kind::Use { id: text(call.id), id_at: at(call.id), name, noun: "" }
                };
                let kind = json::object(element).map_or(Kind::Unread, kind);
                blocks.push(Block { span: json::span(&raw, element), kind });
            }
        }
        Ok(Body { role, list, blocks, is_system: role == Role::System, ..Body::of(raw) })
    }

    fn evidence(&self, message: &str) -> usize {
        let Ok(wire) = json::object::<Wire<'_>>(message) else { return 0 };
        let role = role(wire.role).unwrap_or(Role::Other);
        usize::from(matches!(role, Role::System | Role::Tool) || wire.tool_calls.is_some())
    }

    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String> {
        let calls: Vec<_> = uses
            .iter()
            .map(|NewUse { id, name, input }| {
                let (id, name, input) = (quote(id), quote(name), quote(input));
                format!(
                    r#"{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{input}}}}}"#
                )
            })
            .collect();
        vec![format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, calls.join(","))]
    }

    /// This form has no mark for errors: the content says it.
    fn write_result(&self, asked: &Asked<'_>, content: &str, _: bool) -> String {
        let (id, content) = (quote(asked.id), quote(content));
        format!(r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#)
    }

    fn rewrite(&self, message: &Message, pieces: &[Piece]) -> Option<String> {
        if pieces.is_empty() {
            return Some(without_calls(message.raw()));
        }
        Some(message.with_pieces(pieces))
    }

    /// A user message with the title and the content, whose parts stay as they are.
    fn result_as_text(&self, title: &str, content: Option<&str>) -> Vec<String> {
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
            _ => "messages with role 'tool' must be a response to a preceeding message with \
                  'tool_calls'."
                .to_owned(),
        }
    }
}

/// How `OpenAI` refuses an id that is not there, or empty.
pub(super) fn missing(finding: &Finding, member: &str) -> String {
    if finding.is_empty_id() {
        return format!(
            "Invalid '{member}': empty string. Expected a string with minimum length 1, but got \
             an empty string instead."
        );
    }
    format!("Missing required parameter: '{member}'.")
}

#[derive(Deserialize)]
struct Content<'t> {
    /// Without an `Option` around it, `null` is a value like others.
    #[serde(borrow)]
    content: &'t RawValue,
}

/// `raw` without its member `tool_calls`, whose list the provider refuses when it is empty; a
/// message that has no content then gets an empty one in its place.
fn without_calls(raw: &str) -> String {
    let Ok(Wire { content, tool_calls: Some(calls), .. }) = json::object(raw) else {
        return raw.to_owned();
    };
    let at = json::span(raw, calls.get());
    if json::object::<Content<'_>>(raw).is_err() {
        return json::with_member(raw, &at, r#""content":"""#);
    }
    let rest = json::without_member(raw, &at);
    if content.is_none() { empty_content(rest) } else { rest }
}

/// `raw` with `""` in the place of its content's `null`.
fn empty_content(raw: String) -> String {
    let Ok(Content { content }) = json::object(&raw) else { return raw };
    let at = json::span(&raw, content.get());
    format!(r#"{}""{}"#, &raw[..at.start], &raw[at.end..])
}
