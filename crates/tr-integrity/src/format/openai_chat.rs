//! OpenAI's Chat Completions API: uses are `tool_calls` of an assistant message, a result is a
//! message of the role `tool`.
use super::{NewUse, ReadError, is_synthetic, role};
use crate::{
    json::{self, quote},
    message::{Block, Body, Kind, Role},
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

pub(super) fn read(raw: Box<str>) -> Result<Body, ReadError> {
    let wire: Wire<'_> =
        json::object(&raw).map_err(|error| ReadError::json("not a message", error))?;
    let role = role(wire.role)?;
    let at = |part: Option<&RawValue>| part.map(|part| json::span(&raw, part.get()));
    let text = |part: Option<&RawValue>| -> Box<str> {
        part.and_then(json::string).unwrap_or_default().into()
    };
    let mut blocks = Vec::new();
    let mut list = None;
    if role == Role::Tool {
        let kind = Kind::Result {
            id: text(wire.tool_call_id),
            id_at: at(wire.tool_call_id),
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
            let call: WireCall<'_> = json::object(element).unwrap_or_default();
            let name = text(call.function.and_then(|function| function.name));
            let kind = Kind::Use { id: text(call.id), id_at: at(call.id), name };
            blocks.push(Block { span: json::span(&raw, element), kind });
        }
    }
    Ok(Body { role, list, blocks, is_system: role == Role::System, raw })
}

/// How much says that a message is in this form.
pub(super) fn evidence(message: &str) -> usize {
    let Ok(wire) = json::object::<Wire<'_>>(message) else { return 0 };
    let role = role(wire.role).unwrap_or(Role::Other);
    usize::from(matches!(role, Role::System | Role::Tool) || wire.tool_calls.is_some())
}

pub(super) fn write_uses(uses: &[NewUse<'_>]) -> String {
    let calls: Vec<_> = uses
        .iter()
        .map(|NewUse { id, name, input }| {
            let (id, name, input) = (quote(id), quote(name), quote(input));
            format!(
                r#"{{"id":{id},"type":"function","function":{{"name":{name},"arguments":{input}}}}}"#
            )
        })
        .collect();
    format!(r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#, calls.join(","))
}

/// This form has no mark for errors: the content says it.
pub(super) fn write_result(id: &str, content: &str) -> String {
    let (id, content) = (quote(id), quote(content));
    format!(r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#)
}

/// A user message with the title and the content, whose parts stay as they are.
pub(super) fn result_as_text(title: &str, content: Option<&str>) -> String {
    let content = content.unwrap_or(r#""""#);
    let content = match json::elements(content) {
        Ok(parts) => {
            let mut all = vec![format!(r#"{{"type":"text","text":{}}}"#, quote(title))];
            all.extend(parts.into_iter().map(str::to_owned));
            format!("[{}]", all.join(","))
        }
        Err(_) => {
            let text: String = serde_json::from_str(content).unwrap_or_else(|_| content.to_owned());
            quote(&format!("{title}\n{text}"))
        }
    };
    format!(r#"{{"role":"user","content":{content}}}"#)
}

#[derive(Deserialize)]
struct Content<'t> {
    /// Without an `Option` around it, `null` is a value like others.
    #[serde(borrow)]
    content: &'t RawValue,
}

/// `raw` without its member `tool_calls`, whose list the provider refuses when it is empty; a
/// message that has no content then gets an empty one in its place.
pub(super) fn without_calls(raw: &str) -> String {
    let Ok(Wire { content, tool_calls: Some(calls), .. }) = json::object(raw) else {
        return raw.to_owned();
    };
    let at = json::span(raw, calls.get());
    let name = raw[..at.start].rfind('"').and_then(|end| raw[..end].rfind('"'));
    let (before, after) = (&raw[..name.expect("a member has a name")], &raw[at.end..]);
    if json::object::<Content<'_>>(raw).is_err() {
        return format!(r#"{before}"content":""{after}"#);
    }
    let rest = match before.trim_end().strip_suffix(',') {
        Some(before) => format!("{before}{after}"),
        None => {
            let after = after.trim_start();
            format!("{before}{}", after.strip_prefix(',').unwrap_or(after).trim_start())
        }
    };
    if content.is_none() { empty_content(rest) } else { rest }
}

/// `raw` with `""` in the place of its content's `null`.
fn empty_content(raw: String) -> String {
    let Ok(Content { content }) = json::object(&raw) else { return raw };
    let at = json::span(&raw, content.get());
    format!(r#"{}""{}"#, &raw[..at.start], &raw[at.end..])
}
