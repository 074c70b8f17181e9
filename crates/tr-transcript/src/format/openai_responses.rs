//! OpenAI's Responses API: messages, uses, results and reasoning are items of one list; the items
//! of the provider's own tools are never changed.
use super::{
    ReadError,
    form::{Form, as_text, role, types},
    known, media,
    openai_chat::missing,
    openai_items::{is_known_search, refused_content, refused_id, refused_image, refused_in},
    refused::{Applies, Refused, Why, openai},
    written::{NewResult, NewUse, is_synthetic},
};
use crate::{
    json::{self, Members, Piece, quote},
    message::{Block, Body, Item, Kind, Message, Role, Unknown},
    name::Name,
    validate::{Fault, Finding},
};
use serde_json::value::RawValue;

/// The members of an item that are read.
const READ: [&str; 10] = [
    "type",
    "role",
    "content",
    "id",
    "call_id",
    "name",
    "arguments",
    "output",
    "encrypted_content",
    "action",
];

/// The types of calls that the caller answers, and their names in errors.
const CALLS: [(&str, &str); 6] = [
    ("function_call", "function call"),
    ("custom_tool_call", "custom tool call"),
    ("local_shell_call", "local shell call"),
    ("shell_call", "shell call"),
    ("apply_patch_call", "apply patch call"),
    ("computer_call", "computer call"),
];

/// The known members of a message.
pub(super) const MESSAGE: [&str; 9] = [
    "content",
    "end_turn",
    "id",
    "internal_chat_message_metadata_passthrough",
    "name",
    "phase",
    "role",
    "status",
    "type",
];

/// The known types of a message's parts.
const PARTS: [&str; 10] = [
    "computer_screenshot",
    "input_audio",
    "input_file",
    "input_image",
    "input_text",
    "output_audio",
    "output_text",
    "reasoning_text",
    "refusal",
    "text",
];

/// The known members of a call and of its output.
const PAIR: [&str; 21] = [
    "acknowledged_safety_checks",
    "action",
    "actions",
    "arguments",
    "call_id",
    "caller",
    "created_by",
    "environment",
    "execution",
    "id",
    "input",
    "internal_chat_message_metadata_passthrough",
    "max_output_length",
    "name",
    "namespace",
    "operation",
    "output",
    "pending_safety_checks",
    "status",
    "success",
    "type",
];

/// The placeholder for a missing screenshot, which is the only valid answer to `computer_call`: one
/// pixel.
const NO_SCREEN: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

/// The form of OpenAI's Responses API.
pub(super) struct Responses;

impl Form for Responses {
    fn read(&self, raw: Box<str>) -> Result<Body, ReadError> {
        let wire =
            Members::of(&raw, &READ).map_err(|error| ReadError::json("not an item", error))?;
        let at = |part: Option<&RawValue>| part.map(|part| json::span(&raw, part.get()));
        let (content, own_id) = (wire.get("content"), wire.get("id"));
        let kind = match wire.get("type") {
            Some(kind) => json::string(kind).ok_or(ReadError::new("an item without a type"))?,
            None => "message".into(),
        };
        if kind == "message" {
            let role = match role(&wire)? {
                // A message may have the role `tool`, but it is no tool output.
                Role::Tool => Role::Other,
                role => role,
            };
            let (list, item) = (at(content), item(&raw, own_id));
            let is_known = role != Role::Other && known::has_parts(content, &PARTS);
            let unknown = known::message(&raw, &MESSAGE, content, is_known);
            let refused = refused_content(content).or_else(|| refused_id(&kind, item.as_ref()?));
            let refused = refused.map(Box::new);
            return Ok(Body { role, list, item, unknown, refused, ..Body::of(raw) });
        }
        let id = wire.get("call_id").or(own_id);
        // Codex tells the end of a handoff so.
        let is_alone = wire.get("call_id").is_none() && wire.get("name").is_some();
        let (id_at, name) = (at(id), Box::default());
        let id = Name::from(&*id.and_then(json::string).unwrap_or_default());
        let (role, part) = match &*kind {
            "reasoning" => (Role::Assistant, Kind::Reasoning),
            "item_reference" => (Role::Other, Kind::Reference),
            "function_call_output" if is_alone => (Role::Other, Kind::Other),
            result if result.strip_suffix("_output").is_some_and(is_call) => {
                let output = wire.get("output");
                let (content, synthetic) = (at(output), is_made_up(output));
                (Role::Tool, Kind::Result { id, id_at, name, content, synthetic })
            }
            "agent_message" | "compaction" | "context_compaction" | "mcp_approval_response" => {
                (Role::Other, Kind::Other)
            }
            other => match CALLS.iter().find(|(call, _)| *call == other) {
                Some(&(_, noun)) => {
                    let is_named = wire.get("name").is_some();
                    let name = if is_named { wire.text("name").into() } else { other.into() };
                    (Role::Assistant, Kind::Use { id, id_at, name, noun })
                }
                None => (Role::Assistant, Kind::Other),
            },
        };
        // If the call's id is in the member for the item's id, it is not an item id.
        let is_pair = matches!(part, Kind::Use { .. } | Kind::Result { .. });
        let item = item(&raw, own_id.filter(|_| !is_pair || wire.get("call_id").is_some()));
        let unknown = unknown(&raw, &wire, &kind, &part);
        let refused = refused_in(&wire, &kind, &part);
        let refused = refused.or_else(|| refused_id(&kind, item.as_ref()?)).map(Box::new);
        let blocks = vec![Block { unknown, refused, ..Block::new(0..raw.len(), part) }];
        Ok(Body { role, blocks, item, ..Body::of(raw) })
    }

    fn evidence(&self, message: &str) -> usize {
        let wire = Members::of(message, &READ).unwrap_or_default();
        let own = ["input_text", "output_text", "input_image", "input_file"];
        let told = types(wire.get("content")).any(|kind| own.contains(&&*kind));
        let kind = wire.text("type");
        // Anthropic writes this type on its model's messages only.
        let is_item = &*kind == "message" && wire.text("role") != "assistant"
            || matches!(&*kind, "reasoning" | "item_reference")
            || is_call(kind.strip_suffix("_output").unwrap_or(&kind));
        // Stronger evidence than a message's role is for other forms.
        2 * usize::from(is_item || told)
    }

    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String> {
        let write = |(id, name, input): &NewUse<'_>| {
            let (id, name, input) = (quote(id), quote(name), quote(input));
            format!(
                r#"{{"type":"function_call","call_id":{id},"name":{name},"arguments":{input}}}"#
            )
        };
        uses.iter().map(write).collect()
    }

    /// Most kinds have no error flag: the content says that it is an error.
    fn write_result(&self, result: &NewResult<'_>, used: &str) -> String {
        let wire = Members::of(used, &READ).unwrap_or_default();
        let (id, content, is_error) = (quote(result.id), quote(result.content), result.is_error);
        let rest = match &*wire.text("type") {
            "custom_tool_call" => {
                format!(r#"custom_tool_call_output","call_id":{id},"output":{content}"#)
            }
            "shell_call" => {
                let (stdout, stderr) =
                    if is_error { (r#""""#, &*content) } else { (&*content, r#""""#) };
                let code = u8::from(is_error);
                format!(
                    r#"shell_call_output","call_id":{id},"output":[{{"stdout":{stdout},"stderr":{stderr},"outcome":{{"type":"exit","exit_code":{code}}}}}]"#
                )
            }
            "apply_patch_call" => {
                let status = if is_error { "failed" } else { "completed" };
                format!(
                    r#"apply_patch_call_output","call_id":{id},"status":"{status}","output":{content}"#
                )
            }
            "computer_call" => format!(
                r#"computer_call_output","call_id":{id},"output":{{"type":"computer_screenshot","image_url":"{NO_SCREEN}"}}"#
            ),
            _ => format!(r#"function_call_output","call_id":{id},"output":{content}"#),
        };
        format!(r#"{{"type":"{rest}}}"#)
    }

    /// An item is its only block; without that block it is removed.
    fn rewrite(&self, message: &Message, pieces: &[Piece]) -> Option<String> {
        match pieces {
            [] if message.blocks().is_empty() => Some(message.raw().to_owned()),
            pieces => pieces.first().map(|piece| piece.text.clone()),
        }
    }

    /// A user's message with the title and the content, whose parts are unchanged.
    fn result_as_text(&self, title: &str, _: &str, content: Option<&str>) -> Vec<String> {
        let content = content.unwrap_or(r#""""#);
        let title_part = format!(r#"{{"type":"input_text","text":{}}}"#, quote(title));
        let parts = json::elements(content).unwrap_or_default();
        let is_input = |part: &&str| {
            Members::of(part, &READ).unwrap_or_default().text("type").starts_with("input_")
        };
        let content = if !parts.is_empty() && parts.iter().all(is_input) {
            format!("[{title_part},{}]", parts.join(","))
        } else if let Some(image) = screen(content) {
            format!(r#"[{title_part},{{"type":"input_image","image_url":{image}}}]"#)
        } else {
            // In a list, since Codex drops a message whose content is a string.
            let text = quote(&format!("{title}\n{}", as_text(content)));
            format!(r#"[{{"type":"input_text","text":{text}}}]"#)
        };
        vec![format!(r#"{{"type":"message","role":"user","content":{content}}}"#)]
    }

    /// The provider demands reasoning by the ids of the items that followed it.
    fn waive_thoughts(&self, messages: &[Message]) -> Vec<(usize, String)> {
        let (mut waived, mut explained) = (Vec::new(), false);
        for (at, message) in messages.iter().enumerate() {
            if message.role() != Role::Assistant {
                explained = false;
                continue;
            }
            explained |= message.blocks().iter().any(|block| block.kind == Kind::Reasoning);
            if let Some(item) = message.item().filter(|_| !explained) {
                waived.push((at, json::without_member(message.raw(), &item.at)));
            }
        }
        waived
    }

    /// Arguments become a JSON string; an item loses an id of another kind, and reasoning its content; a text
    /// says which image was there.
    fn corrected(&self, item: &Message, _: bool, applies: Applies) -> Option<String> {
        let (raw, wire) = (item.raw(), Members::of(item.raw(), &READ).ok()?);
        let Refused { member, why, .. } = item.all_refused(applies).next()?;
        match why {
            Why::Prefix { .. } => Some(json::without_member(raw, &item.item()?.at)),
            Why::Full(_) => {
                let content = json::span(raw, wire.get("content")?.get());
                Some(json::without_member(raw, &content))
            }
            Why::Said(_) => {
                let list = member.split('[').next()?;
                let refused = |at, part: &str| refused_image(list, at, part);
                media::instead_of(raw, list, "input_text", refused)
            }
            _ => {
                let given = wire.get("arguments").filter(|given| given.get().starts_with('{'))?;
                Some(json::set_member(raw, "arguments", &quote(given.get())))
            }
        }
    }

    fn error(&self, finding: &Finding) -> String {
        let id = finding.tool_use_id.as_deref().unwrap_or_default();
        match finding.fault {
            Fault::IncompleteUse | Fault::UseWithoutUser => {
                format!("No tool output found for {} {id}.", finding.about)
            }
            Fault::MissingId => {
                missing(finding, &format!("input[{}].call_id", finding.message_index))
            }
            Fault::LoneReasoning if finding.about.is_empty() => {
                "Item of type 'reasoning' was provided without its required following item.".into()
            }
            Fault::LoneReasoning => format!(
                "Item '{}' of type 'reasoning' was provided without its required following item.",
                finding.about
            ),
            Fault::DuplicateItem => format!(
                "Duplicate item found with id {}. Remove duplicate items from your input and try \
                 again.",
                finding.about
            ),
            _ => match &finding.refused {
                Some(refused) => openai(
                    &refused.why,
                    &format!("input[{}].{}", finding.message_index, refused.member),
                ),
                None => format!("No tool call found for function call output with call_id {id}."),
            },
        }
    }
}

/// Whether an item other than a message has unknown parts.
fn unknown(raw: &str, wire: &Members<'_>, kind: &str, part: &Kind) -> Option<Unknown> {
    match part {
        Kind::Use { .. } | Kind::Result { .. } => known::block(raw, &PAIR),
        Kind::Reasoning | Kind::Reference => None,
        Kind::Other if kind == "function_call_output" => None,
        _ => match kind {
            // A repair leaves them as they are.
            "agent_message"
            | "code_interpreter_call"
            | "compaction"
            | "compaction_summary"
            | "compaction_trigger"
            | "context_compaction"
            | "file_search_call"
            | "ghost_snapshot"
            | "image_generation_call"
            | "mcp_approval_request"
            | "mcp_approval_response"
            | "mcp_call"
            | "mcp_list_tools"
            | "tool_search_call"
            | "tool_search_output" => None,
            "web_search_call" if is_known_search(wire) => None,
            _ => Some(Unknown::Content),
        },
    }
}

fn is_call(kind: &str) -> bool {
    CALLS.iter().any(|(call, _)| *call == kind)
}

fn item(raw: &str, id: Option<&RawValue>) -> Option<Item> {
    let id = id.filter(|id| id.get() != "null")?;
    Some(Item { id: json::string(id)?.into(), at: json::span(raw, id.get()) })
}

/// The image of a screenshot, as JSON.
fn screen(output: &str) -> Option<&str> {
    let image = Members::of(output, &["image_url"]).ok()?.present("image_url")?.get();
    image.starts_with('"').then_some(image)
}

/// Whether a repair wrote this output.
fn is_made_up(output: Option<&RawValue>) -> bool {
    let Some(raw) = output.map(RawValue::get) else { return false };
    let shell = json::elements(raw).unwrap_or_default();
    let stderr = |shell| Members::of(shell, &["stderr"]).ok()?.get("stderr");
    is_synthetic(output)
        || screen(raw).is_some_and(|image| image.trim_matches('"') == NO_SCREEN)
        || matches!(&*shell, [shell] if is_synthetic(stderr(shell)))
}
