//! What OpenAI refuses of an item on its own.
use super::{
    media,
    refused::{Refused, Text, Why, must_be, type_of},
};
use crate::{
    json::{self, Members},
    message::{Item, Kind},
    validate::Fault,
};
use serde_json::value::RawValue;

/// The provider's limits for ids and tool names.
const ID: Text = Text::id("call_id", 64, false);
const NAME: Text = Text::name("name", 128, true);

/// How the ids of items begin, by their types.
const PREFIXES: [(&str, &str); 5] = [
    ("message", "msg"),
    ("function_call", "fc"),
    ("custom_tool_call", "ctc"),
    ("reasoning", "rs"),
    ("web_search_call", "ws"),
];

/// Whether a search of the provider's is of a kind that it takes back, as far as is known.
pub(super) fn is_known_search(wire: &Members<'_>) -> bool {
    let kind = wire.inside("action", &["type"]).string("type");
    kind.is_none_or(|kind| matches!(&*kind, "search" | "open_page" | "find_in_page"))
}

/// Why the provider refuses a call or an output.
pub(super) fn refused_in(wire: &Members<'_>, kind: &str, part: &Kind) -> Option<Refused> {
    match part {
        Kind::Use { id, .. } => {
            let refused = ID.refused_id(id);
            if refused.is_some() || kind != "function_call" {
                return refused;
            }
            let given = || wire.present("arguments");
            let given = || must_be("a string", Fault::RefusedInput, "arguments", given());
            NAME.refused(wire.get("name")).or_else(given)
        }
        Kind::Result { .. } => match wire.get("output") {
            None => Some(Refused::content("output", Why::Missing)),
            Some(output) => refused_images("output", output),
        },
        Kind::Reasoning => {
            let full = wire.get("content").and_then(|content| json::elements(content.get()).ok());
            let refused = |member, why| Some(Refused::content(member, why));
            match (full.map_or(0, |full| full.len()), wire.string("id")) {
                (0, Some(id)) if wire.get("encrypted_content").is_none() => {
                    refused("encrypted_content", Why::Unstored((&*id).into()))
                }
                (0, _) => None,
                (len, _) => refused("content", Why::Full(len)),
            }
        }
        _ => None,
    }
}

/// Why the provider refuses the id of an item of this type: it begins as that of another.
pub(super) fn refused_id(kind: &str, item: &Item) -> Option<Refused> {
    let (_, expected) = *PREFIXES.iter().find(|(of, _)| *of == kind)?;
    let why = Why::Prefix { id: item.id.clone(), expected };
    let is_other = !item.id.starts_with(expected);
    is_other.then(|| Refused::content("id", why))
}

/// Why the provider refuses an image of a list.
pub(super) fn refused_images(list: &str, parts: &RawValue) -> Option<Refused> {
    let parts = json::elements(parts.get()).ok()?.into_iter().enumerate();
    parts.into_iter().find_map(|(at, part)| refused_image(list, at, part))
}

pub(super) fn refused_image(list: &str, at: usize, part: &str) -> Option<Refused> {
    let wire = Members::of(part, &["type", "image_url"]).ok()?;
    let wire = Some(wire).filter(|wire| wire.text("type") == "input_image")?;
    media::refused_url(list, at, &wire.string("image_url")?, false)
}

/// Why the provider refuses a message's content.
pub(super) fn refused_content(content: Option<&RawValue>) -> Option<Refused> {
    let got = match content {
        None => "null",
        Some(content) if content.get().starts_with('[') => {
            return refused_images("content", content);
        }
        Some(content) if content.get().starts_with('"') => return None,
        Some(content) => type_of(content),
    };
    let why = Why::Type { expected: "one of an array of objects or string", got };
    Some(Refused::content("content", why))
}
