//! Anthropic's Messages API: uses and results are blocks of a message's content.
use super::{NewUse, ReadError, is_synthetic, role};
use crate::{
    json::{self, quote},
    message::{Blank, Block, Body, Kind, Role},
};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Wire<'t> {
    #[serde(borrow)]
    role: Option<&'t RawValue>,
    #[serde(borrow)]
    content: Option<&'t RawValue>,
}

#[derive(Default, Deserialize)]
struct WireBlock<'t> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'t RawValue>,
    #[serde(borrow)]
    id: Option<&'t RawValue>,
    #[serde(borrow)]
    name: Option<&'t RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<&'t RawValue>,
    #[serde(borrow)]
    content: Option<&'t RawValue>,
    #[serde(borrow)]
    text: Option<&'t RawValue>,
    #[serde(borrow, rename = "isSystemPrompt")]
    is_system_prompt: Option<&'t RawValue>,
}

pub(super) fn read(raw: Box<str>) -> Result<Body, ReadError> {
    let wire: Wire<'_> =
        json::object(&raw).map_err(|error| ReadError::json("not a message", error))?;
    let role = role(wire.role)?;
    let (mut blocks, mut is_system) = (Vec::new(), role == Role::System);
    let list = wire.content.map(|content| json::span(&raw, content.get()));
    if let Some(content) = wire.content {
        if content.get().starts_with('"') {
            // An empty string is no content, not an empty block.
            let blank = blank(content);
            if blank != Blank::Empty {
                let span = json::span(&raw, content.get());
                blocks.push(Block { span, kind: Kind::Text(blank) });
            }
        } else if let Ok(elements) = json::elements(content.get()) {
            for element in elements {
                let wire: WireBlock<'_> = json::object(element).unwrap_or_default();
                let is_true = |raw: &RawValue| raw.get() == "true";
                is_system |= role == Role::User && wire.is_system_prompt.is_some_and(is_true);
                let kind = kind(&raw, &wire);
                blocks.push(Block { span: json::span(&raw, element), kind });
            }
        }
    }
    Ok(Body { role, list, blocks, is_system, raw })
}

fn kind(raw: &str, wire: &WireBlock<'_>) -> Kind {
    let at = |part: Option<&RawValue>| part.map(|part| json::span(raw, part.get()));
    let text = |part: Option<&RawValue>| -> Box<str> {
        part.and_then(json::string).unwrap_or_default().into()
    };
    match wire.kind.and_then(json::string).as_deref() {
        Some("tool_use") => {
            Kind::Use { id: text(wire.id), id_at: at(wire.id), name: text(wire.name) }
        }
        Some("tool_result") => Kind::Result {
            id: text(wire.tool_use_id),
            id_at: at(wire.tool_use_id),
            content: at(wire.content),
            synthetic: is_synthetic(wire.content),
        },
        Some("text") => Kind::Text(wire.text.map_or(Blank::Empty, blank)),
        _ => Kind::Other,
    }
}

/// What cannot be read as a string (a lone surrogate) is text all the same.
fn blank(text: &RawValue) -> Blank {
    json::string(text).as_deref().map_or(Blank::No, Blank::of)
}

/// How much says that a message is in this form.
pub(super) fn evidence(message: &str) -> usize {
    let Ok(Wire { content: Some(content), .. }) = json::object(message) else { return 0 };
    let telling = |element: &str| {
        let wire: WireBlock<'_> = json::object(element).unwrap_or_default();
        let kind = wire.kind.and_then(json::string);
        kind.is_some_and(|kind| {
            matches!(
                &*kind,
                "tool_use" | "tool_result" | "thinking" | "redacted_thinking" | "image"
            )
        })
    };
    json::elements(content.get())
        .map_or(0, |blocks| blocks.into_iter().filter(|block| telling(block)).count())
}

pub(super) fn write_uses(uses: &[NewUse<'_>]) -> String {
    let blocks: Vec<_> = uses
        .iter()
        .map(|NewUse { id, name, input }| {
            let (id, name) = (quote(id), quote(name));
            format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
        })
        .collect();
    format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","))
}

pub(super) fn write_result(id: &str, content: &str, is_error: bool) -> String {
    let (id, content) = (quote(id), quote(content));
    let is_error = if is_error { r#","is_error":true"# } else { "" };
    format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content}{is_error}}}"#)
}

pub(super) fn hold(results: &[String]) -> String {
    format!(r#"{{"role":"user","content":[{}]}}"#, results.join(","))
}

/// A block with the title, then the content's own blocks as far as a user may send them.
pub(super) fn result_as_text(title: &str, content: Option<&str>) -> Vec<String> {
    let mut blocks = vec![text_block(title)];
    let content = content.unwrap_or(r#""""#);
    let Ok(parts) = json::elements(content) else {
        let text: String = serde_json::from_str(content).unwrap_or_else(|_| content.to_owned());
        return vec![text_block(&format!("{title}\n{text}"))];
    };
    for part in parts {
        let wire: WireBlock<'_> = json::object(part).unwrap_or_default();
        match wire.kind.and_then(json::string).as_deref() {
            Some("text") if wire.text.is_none_or(|text| text.get() == r#""""#) => {}
            Some("text" | "image" | "document" | "search_result") => blocks.push(part.to_owned()),
            _ => blocks.push(text_block(part)),
        }
    }
    blocks
}

pub(super) fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quote(text))
}

/// The text block that a content given as one string stands for.
pub(super) fn string_as_block(string: &str) -> String {
    format!(r#"{{"type":"text","text":{string}}}"#)
}
