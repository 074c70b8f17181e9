//! Anthropic's Messages API: uses and results are blocks of a message's content.
use super::{
    ReadError,
    form::{Asked, Blanks, Form, NewUse, Results, Rules, as_text, is_synthetic, role, text},
};
use crate::{
    json::{self, quote},
    message::{Blank, Block, Body, Kind, Role},
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

/// The form.
pub(super) struct Anthropic;

impl Form for Anthropic {
    fn rules(&self) -> Rules {
        Rules {
            refuses_repeated_ids: true,
            blanks: Blanks::Texts,
            ..Rules::of(Results::Blocks, "id", "tool_use_id")
        }
    }

    fn read(&self, raw: Box<str>) -> Result<Body, ReadError> {
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
                    let wire: Option<WireBlock<'_>> = json::object(element).ok();
                    let is_true = |raw: &RawValue| raw.get() == "true";
                    let is_prompt = wire.as_ref().and_then(|wire| wire.is_system_prompt);
                    is_system |= role == Role::User && is_prompt.is_some_and(is_true);
                    let kind = wire.map_or(Kind::Unread, |wire| kind(&raw, &wire));
                    blocks.push(Block { span: json::span(&raw, element), kind });
                }
            }
        }
        Ok(Body { role, list, blocks, is_system, ..Body::of(raw) })
    }

    fn evidence(&self, message: &str) -> usize {
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

    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String> {
        let blocks: Vec<_> = uses
            .iter()
            .map(|NewUse { id, name, input }| {
                let (id, name) = (quote(id), quote(name));
                format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
            })
            .collect();
        vec![format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","))]
    }

    fn write_result(&self, asked: &Asked<'_>, content: &str, is_error: bool) -> String {
        let (id, content) = (quote(asked.id), quote(content));
        let is_error = if is_error { r#","is_error":true"# } else { "" };
        format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content}{is_error}}}"#)
    }

    fn hold(&self, results: &[String]) -> Vec<String> {
        vec![format!(r#"{{"role":"user","content":[{}]}}"#, results.join(","))]
    }

    /// A content that is one string becomes a block.
    fn listed(&self, block: String) -> String {
        if block.starts_with('"') { format!(r#"{{"type":"text","text":{block}}}"#) } else { block }
    }

    /// A block with the title, then the content's own blocks as far as a user may send them.
    fn result_as_text(&self, title: &str, content: Option<&str>) -> Vec<String> {
        let mut blocks = vec![text_block(title)];
        let content = content.unwrap_or(r#""""#);
        let Ok(parts) = json::elements(content) else {
            return vec![text_block(&format!("{title}\n{}", as_text(content)))];
        };
        for part in parts {
            let wire: WireBlock<'_> = json::object(part).unwrap_or_default();
            match wire.kind.and_then(json::string).as_deref() {
                Some("text") if wire.text.is_some_and(|text| text.get() == r#""""#) => {}
                // Without a text it is damaged: what it says is somewhere else in it.
                Some("text") if !wire.text.is_some_and(is_string) => blocks.push(text_block(part)),
                Some("text" | "image" | "document" | "search_result") => {
                    blocks.push(part.to_owned());
                }
                _ => blocks.push(text_block(part)),
            }
        }
        blocks
    }

    fn error(&self, finding: &Finding) -> String {
        let id = finding.tool_use_id.as_deref().unwrap_or_default();
        let message = finding.message_index;
        let block = finding.block_index.unwrap_or_default();
        match finding.fault {
            Fault::IncompleteUse | Fault::UseWithoutUser => format!(
                "messages.{message}: `tool_use` ids were found without `tool_result` blocks \
                 immediately after: {id}. Each `tool_use` block must have a corresponding \
                 `tool_result` block in the next message."
            ),
            // The provider looks for the result at the head of the next message only.
            Fault::ResultAfterContent => format!(
                "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately \
                 after: {id}. Each `tool_use` block must have a corresponding `tool_result` block \
                 in the next message.",
                message.saturating_sub(1)
            ),
            Fault::OrphanedResult | Fault::ResultWithoutAssistant => format!(
                "messages.{message}.content.{block}: unexpected `tool_use_id` found in \
                 `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding \
                 `tool_use` block in the previous message."
            ),
            Fault::MissingId if finding.is_empty_id() => format!(
                "messages.{message}.content.{block}.tool_use.id: String should match pattern \
                 '^[a-zA-Z0-9_-]+$'"
            ),
            Fault::MissingId => {
                format!("messages.{message}.content.{block}.tool_use.id: Field required")
            }
            Fault::DuplicateId => {
                format!("messages.{message}.content.{block}: `tool_use` ids must be unique")
            }
            Fault::SeveralResults => format!(
                "messages.{message}.content.{block}: each tool_use must have a single result. \
                 Found multiple `tool_result` blocks with id: {id}"
            ),
            Fault::EmptyText => "messages: text content blocks must be non-empty".to_owned(),
            Fault::BlankMessage => {
                "messages: text content blocks must contain non-whitespace text".to_owned()
            }
            _ => {
                format!("messages.{message}: user messages must have non-empty content")
            }
        }
    }
}

fn kind(raw: &str, wire: &WireBlock<'_>) -> Kind {
    let at = |part: Option<&RawValue>| part.map(|part| json::span(raw, part.get()));
    match wire.kind.and_then(json::string).as_deref() {
        Some("tool_use") => {
            Kind::Use { id: text(wire.id), id_at: at(wire.id), name: text(wire.name), noun: "" }
        }
        Some("tool_result") => Kind::Result {
            id: text(wire.tool_use_id),
            id_at: at(wire.tool_use_id),
            name: Box::default(),
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

fn is_string(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quote(text))
}
