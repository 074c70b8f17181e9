//! Anthropic's Messages API: uses and results are blocks of a message's content.
use super::{
    ReadError,
    form::{Form, answered, as_text, role, step, types, used},
    known, media,
    refused::{Applies, CACHE, PATTERN, Refused, SIGNATURE, Text, Why, must_be, type_of},
    written::{NewResult, NewUse, with_mark_of},
};
use crate::{
    json::{self, Members, quote},
    message::{Blank, Block, Body, Kind, Message, Role, Unknown},
    name::Name,
    validate::{Fault, Finding},
};
use serde_json::value::RawValue;

/// The members of a block that are read.
const BLOCK: [&str; 10] = [
    "type",
    "id",
    "name",
    "input",
    "tool_use_id",
    "content",
    "caller",
    "text",
    "isSystemPrompt",
    "signature",
];

/// The known members of a message, including those of the model's answers.
pub(super) const MEMBERS: [&str; 13] = [
    "container",
    "content",
    "context_management",
    "diagnostics",
    "id",
    "model",
    "role",
    "service_tier",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "type",
    "usage",
];

/// The provider's limits for tool names and ids.
const NAME: Text = Text::name("tool_use.name", 200, false);
const ID: Text = Text::id("tool_use.id", usize::MAX, true);

/// The form of Anthropic's Messages API.
pub(super) struct Anthropic;

impl Form for Anthropic {
    fn read(&self, raw: Box<str>) -> Result<Body, ReadError> {
        // A session of Claude Code's names the model that answered.
        let wire = Members::of(&raw, &["role", "content", "model"])
            .map_err(|error| ReadError::json("not a message", error))?;
        let (role, content) = (role(&wire)?, wire.present("content"));
        let has_shape = known::has_shape(content, true);
        let is_known = matches!(role, Role::User | Role::Assistant | Role::System) && has_shape;
        let unknown = known::message(&raw, &MEMBERS, content, is_known);
        let is_ours = wire.string("model").is_none_or(|model| is_ours(&model));
        let (mut blocks, mut is_prompt, mut images) = (Vec::new(), false, 0);
        let list = wire.get("content").filter(|_| has_shape);
        let list = list.map(|content| json::span(&raw, content.get()));
        if let Some(content) = content {
            if content.get().starts_with('"') {
                // An empty string is an empty content, not an empty block.
                let blank = blank(content);
                if blank != Blank::Empty {
                    let span = json::span(&raw, content.get());
                    blocks.push(Block::new(span, Kind::Text(blank)));
                }
            } else if let Ok(elements) = json::elements(content.get()) {
                for element in elements {
                    let wire = Members::of(element, &BLOCK).ok();
                    is_prompt |= role == Role::User
                        && wire.as_ref().is_some_and(|it| it.is_true("isSystemPrompt"));
                    let unknown = wire.as_ref().and_then(|wire| unknown_in(element, wire));
                    let kind = match wire.as_ref().map_or(Kind::Unread, |wire| kind(&raw, wire)) {
                        // Its content is in an unknown member.
                        Kind::Text(_) if unknown == Some(Unknown::Content) => Kind::Other,
                        kind => kind,
                    };
                    let refused = wire.as_ref().and_then(|wire| refused_in(wire, &kind, role));
                    let (more, media) = media::seen(element);
                    images += more;
                    let refused = refused.or(media);
                    let refused = refused.filter(|it| is_ours || !it.is_limit()).map(Box::new);
                    let block = Block::new(json::span(&raw, element), kind);
                    Block { unknown, refused, ..block }.add_to(&mut blocks);
                }
            }
        }
        let refused = refused(content).map(Box::new);
        let body = Body { role, list, blocks, is_prompt, unknown, refused, ..Body::of(raw) };
        Ok(Body { images, ..body })
    }

    fn evidence(&self, message: &str) -> usize {
        const OWN: [&str; 5] =
            ["tool_use", "tool_result", "thinking", "redacted_thinking", "image"];
        let wire = Members::of(message, &["role", "content", "model"]).unwrap_or_default();
        types(wire.present("content")).filter(|kind| OWN.contains(&&**kind)).count()
    }

    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String> {
        step(r#"{"role":"assistant","content":["#, uses, |id, name, input| {
            format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
        })
    }

    fn write_result(&self, result: &NewResult<'_>, _: &str) -> String {
        let (id, content) = (quote(result.id), quote(result.content));
        let is_error = if result.is_error { r#","is_error":true"# } else { "" };
        format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content}{is_error}}}"#)
    }

    fn hold(&self, results: &[String]) -> Vec<String> {
        vec![format!(r#"{{"role":"user","content":[{}]}}"#, results.join(","))]
    }

    /// A string content becomes a text block.
    fn listed(&self, block: String) -> String {
        if block.starts_with('"') { format!(r#"{{"type":"text","text":{block}}}"#) } else { block }
    }

    /// A block with the title, then those blocks of the content that a user may send.
    fn result_as_text(&self, title: &str, _: &str, content: Option<&str>) -> Vec<String> {
        let mut blocks = vec![text_block(title)];
        let Some(content) = content else { return blocks };
        let Ok(parts) = json::elements(content) else {
            return vec![text_block(&format!("{title}\n{}", as_text(content)))];
        };
        for part in parts {
            let wire = Members::of(part, &BLOCK).unwrap_or_default();
            match &*wire.text("type") {
                "text" if wire.get("text").is_some_and(|text| text.get() == r#""""#) => {
                    let last = blocks.pop().map(|last| with_mark_of(last, part));
                    blocks.extend(last);
                }
                "text" if wire.begins("text", '"') => blocks.push(part.to_owned()),
                "image" | "document" | "search_result" => blocks.push(part.to_owned()),
                // A text block without a text is damaged: its content may be in another member.
                _ => blocks.push(with_mark_of(text_block(part), part)),
            }
        }
        blocks
    }

    /// A text says which image or document was there. Thoughts without a signature go, if their turn is over and
    /// something is left: the provider wants those of a turn that uses tools.
    fn corrected(&self, message: &Message, is_past: bool, applies: Applies) -> Option<String> {
        let content = Members::of(message.raw(), &["content"]).ok()?;
        let content = content.get("content")?.get();
        let changed = media::without_refused(content, applies);
        let parts = json::elements(changed.as_deref().unwrap_or(content)).ok()?;
        let is_unsigned = |block: &Block| block.refused.as_ref().is_some_and(|it| it.is_unsigned());
        let stay: Vec<_> = parts
            .iter()
            .zip(message.blocks())
            .filter(|(_, block)| !is_past || !is_unsigned(block))
            .map(|(part, _)| *part)
            .collect();
        let is_shorter = !stay.is_empty() && stay.len() < parts.len();
        let content = if is_shorter { Some(format!("[{}]", stay.join(","))) } else { changed };
        Some(json::set_member(message.raw(), "content", &content?))
    }

    fn error(&self, finding: &Finding) -> String {
        let id = finding.tool_use_id.as_deref().unwrap_or_default();
        let message = finding.message_index;
        let block = finding.block_index.unwrap_or_default();
        match finding.fault {
            // The provider only accepts a result at the head of the next message.
            Fault::IncompleteUse
            | Fault::UseWithoutUser
            | Fault::ContentAfterUse
            | Fault::ResultAfterContent => {
                let is_next = finding.fault == Fault::ResultAfterContent;
                let message = message.saturating_sub(usize::from(is_next));
                format!(
                    "messages.{message}: `tool_use` ids were found without `tool_result` blocks \
                     immediately after: {id}. Each `tool_use` block must have a corresponding \
                     `tool_result` block in the next message."
                )
            }
            Fault::OrphanedResult | Fault::ResultWithoutAssistant => format!(
                "messages.{message}.content.{block}: unexpected `tool_use_id` found in \
                 `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding \
                 `tool_use` block in the previous message."
            ),
            Fault::UnansweredServerUse => {
                let name = &finding.about;
                let of = if name.starts_with("tool_search") { "tool_search" } else { name };
                format!(
                    "messages.{message}: `{name}` tool use with id `{id}` was found without a \
                     corresponding `{of}_tool_result` block"
                )
            }
            Fault::MissingId => {
                let why = if finding.is_empty_id() { Why::Pattern } else { Why::Missing };
                words(&Refused::new(Fault::MissingId, "tool_use.id", why), message, Some(block))
            }
            Fault::DuplicateId => {
                format!("messages.{message}.content.{block}: `tool_use` ids must be unique")
            }
            Fault::SeveralResults => format!(
                "messages.{message}.content.{block}: each tool_use must have a single result. \
                 Found multiple `tool_result` blocks with id: {id}"
            ),
            Fault::EmptyText => "messages: text content blocks must be non-empty".to_owned(),
            Fault::BlankMessage | Fault::BlankText => {
                "messages: text content blocks must contain non-whitespace text".to_owned()
            }
            Fault::EmptyAnswer => format!(
                "messages.{message}: all messages must have non-empty content except for the \
                 optional final assistant message"
            ),
            Fault::MisplacedBlock => format!(
                "messages.{message}.content.{block}: `{}` blocks can only be in `assistant` \
                 messages",
                finding.member().unwrap_or("tool_use")
            ),
            Fault::RefusedRole => "messages: Unexpected role \"system\". The Messages API accepts \
                                   a top-level `system` parameter, not \"system\" as an input \
                                   message role."
                .to_owned(),
            Fault::RefusedEnd if finding.is_white() => {
                "messages: final assistant content cannot end with trailing whitespace".to_owned()
            }
            Fault::RefusedEnd if finding.block_index.is_none() => {
                "This model does not support assistant message prefill. The conversation must end \
                 with a user message."
                    .to_owned()
            }
            Fault::RefusedEnd => format!(
                "messages.{message}: The final block in an assistant message cannot be `thinking`."
            ),
            _ => match &finding.refused {
                Some(refused) => words(refused, message, finding.block_index),
                None => format!("messages.{message}: user messages must have non-empty content"),
            },
        }
    }
}

/// Whether this is a model of Anthropic's; others that use this form have their own limits.
pub(super) fn is_ours(model: &str) -> bool {
    model.contains("claude") || model.contains("anthropic")
}

/// Whether this model continues no answer with which a request ends: those from 4.6 on. Older names have
/// the version before the family (`claude-3-7-sonnet`), or a date behind it (`claude-opus-4-20250514`).
pub(super) fn refuses_prefill(model: &str) -> bool {
    let name = model.split_once("claude-").map_or("", |(_, name)| name);
    let numbers = name.split(['-', '.', '@', ':']).map(|part| part.parse::<u32>().ok());
    let mut numbers = numbers.skip_while(Option::is_none).map_while(|number| number);
    let version = (numbers.next(), numbers.next().filter(|minor| *minor < 1_000));
    version >= (Some(4), Some(6))
}

/// The provider's error text for a refused member.
fn words(refused: &Refused, message: usize, block: Option<usize>) -> String {
    let place = match block {
        Some(block) => format!("messages.{message}.content.{block}.{}", refused.member),
        None => format!("messages.{message}.{}", refused.member),
    };
    let why = match &refused.why {
        Why::Missing => "Field required".to_owned(),
        Why::Long { most, .. } => format!("String should have at most {most} characters"),
        Why::Pattern => format!("String should match pattern '{PATTERN}'"),
        Why::Type { expected: "an object", .. } => "Input should be a valid dictionary".to_owned(),
        Why::Type { expected: "a list", .. } => "Input should be a valid list".to_owned(),
        Why::Type { .. } => "Input should be a valid string".to_owned(),
        Why::Said(why) if refused.member == *CACHE => return why.to_string(),
        Why::Said(_) | Why::Wide => refused.told(),
        Why::Empty if refused.member == *SIGNATURE => {
            return format!(
                "messages.{message}.content.{}: Invalid `signature` in `thinking` block",
                block.unwrap_or_default()
            );
        }
        _ => "String should have at least 1 character".to_owned(),
    };
    format!("{place}: {why}")
}

/// Why the provider refuses a message's content. A content that is neither a text nor a list is not
/// judged here.
fn refused(content: Option<&RawValue>) -> Option<Refused> {
    let why = match content {
        None => Why::Missing,
        Some(raw) if raw.get() == "null" => Why::Type { expected: "a list", got: type_of(raw) },
        Some(_) => return None,
    };
    Some(Refused::content("content", why))
}

/// Why the provider refuses a block in a message of this role.
fn refused_in(wire: &Members<'_>, kind: &Kind, role: Role) -> Option<Refused> {
    match kind {
        Kind::Use { id, .. } => {
            let given = || wire.present("input");
            let input = || must_be("an object", Fault::RefusedInput, "tool_use.input", given());
            ID.refused_id(id).or_else(|| NAME.refused(wire.present("name"))).or_else(input)
        }
        Kind::Other if role == Role::User => {
            let kind = wire.string("type")?;
            let member = ["thinking", "redacted_thinking"].into_iter().find(|it| *it == kind)?;
            Some(Refused::new(Fault::MisplacedBlock, member, Why::Place))
        }
        // A block that Claude wrote has a signature.
        Kind::Other if wire.text("type") == "thinking" => match wire.string("signature") {
            None => Some(Refused::content(SIGNATURE, Why::Missing)),
            Some(text) => text.is_empty().then(|| Refused::content(SIGNATURE, Why::Empty)),
        },
        _ => None,
    }
}

fn kind(raw: &str, wire: &Members<'_>) -> Kind {
    let id = |name| Name::from(&*wire.text(name));
    match &*wire.text("type") {
        "tool_use" => used(raw, wire, "id", wire.text("name").into()),
        "tool_result" => answered(raw, wire, "tool_use_id", "content"),
        "text" => Kind::Text(wire.get("text").map_or(Blank::Empty, blank)),
        kind @ ("server_tool_use" | "mcp_tool_use") => {
            let name = wire.text("name").into();
            let by = wire.inside("caller", &BLOCK).string("type");
            // Code of the model's that waits for another tool has no result yet.
            let is_direct = kind == "server_tool_use" && wire.text("name") != "code_execution";
            let is_direct = is_direct && by.is_none_or(|by| by == "direct");
            Kind::ServerUse { id: id("id"), name, is_direct }
        }
        kind if known::is_of_server(kind) => Kind::ServerResult(id("tool_use_id")),
        _ => Kind::Other,
    }
}

/// Whether a block has unknown parts.
fn unknown_in(block: &str, wire: &Members<'_>) -> Option<Unknown> {
    let kind = wire.text("type");
    let members: &[&str] = match &*kind {
        "text" => &["type", "text", "citations", "cache_control", "isSystemPrompt"],
        "tool_use" => &["type", "id", "name", "input", "caller", "cache_control"],
        "tool_result" => &["type", "tool_use_id", "content", "is_error", "cache_control"],
        // A repair never changes these, whatever members they have.
        kind if known::is_untouched(kind) => return None,
        _ => return Some(Unknown::Content),
    };
    let unknown = known::block(block, members)?;
    // The content may be in an unknown member.
    let is_bare = match &*kind {
        "text" => wire.get("text").is_none(),
        "tool_result" => wire.get("content").is_none(),
        _ => false,
    };
    Some(if is_bare { Unknown::Content } else { unknown })
}

/// A text that cannot be decoded (a lone surrogate) counts as not blank.
fn blank(text: &RawValue) -> Blank {
    json::string(text).as_deref().map_or(Blank::No, Blank::of)
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quote(text))
}
