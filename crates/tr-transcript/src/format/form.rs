//! The interface of a transcript form, and code that several forms share.
use super::{
    ReadError, known,
    refused::Applies,
    written::{NewResult, NewUse, is_synthetic},
};
use crate::{
    json::{self, Members, Piece, quote},
    message::{Block, Body, Kind, Message, Role},
    name::Name,
    validate::Finding,
};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One form: reads and writes its messages. The provider's rules are data ([`Rules`]), so that each
/// rule is implemented once for all forms.
pub(crate) trait Form: Sync {
    /// Reads a message.
    fn read(&self, raw: Box<str>) -> Result<Body, ReadError>;

    /// A score for how strongly a message looks like this form.
    fn evidence(&self, message: &str) -> usize;

    /// Writes the messages with these uses.
    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String>;

    /// Writes a result: a block, or a message of its own. `used` is the text of its use in the
    /// transcript; empty if this crate writes the use.
    fn write_result(&self, result: &NewResult<'_>, used: &str) -> String;

    /// Writes the messages that hold these results.
    fn hold(&self, results: &[String]) -> Vec<String> {
        results.to_vec()
    }

    /// A block as an element of a list of blocks.
    fn listed(&self, block: String) -> String {
        block
    }

    /// `message` with the blocks `pieces`; `None` if it cannot exist without blocks.
    fn rewrite(&self, message: &Message, pieces: &[Piece]) -> Option<String> {
        Some(message.with_pieces(pieces))
    }

    /// The members of a result other than its content, as lines of the text that replaces it. Its title contains `id`.
    fn beside(&self, result: &str, id: &str) -> Vec<String> {
        known::beside(result, id)
    }

    /// Converts a result without its use to text that keeps its content: blocks, or the message.
    /// `result` is the whole result.
    fn result_as_text(&self, title: &str, result: &str, content: Option<&str>) -> Vec<String>;

    /// The messages for which the provider may demand missing thoughts, each with a text for which
    /// it does not.
    fn waive_thoughts(&self, _: &[Message]) -> Vec<(usize, String)> {
        Vec::new()
    }

    /// `message` with those refused members corrected that can be written in another way; `None` if
    /// there are none. `is_past` says that its turn is over.
    fn corrected(&self, _: &Message, _is_past: bool, _: Applies) -> Option<String> {
        None
    }

    /// The provider's error text for a finding.
    fn error(&self, finding: &Finding) -> String;
}

/// A message that begins with `head` and lists these uses, each written by `write` from its id and
/// its name, both as JSON, and its input.
pub(super) fn step(
    head: &str,
    uses: &[NewUse<'_>],
    write: impl Fn(&str, &str, &str) -> String,
) -> Vec<String> {
    let write = |(id, name, input): &NewUse<'_>| write(&quote(id), &quote(name), input);
    let uses: Vec<_> = uses.iter().map(write).collect();
    vec![format!("{head}{}]}}", uses.join(","))]
}

/// The block of a message that is a result. `members` are the known ones.
pub(super) fn result(raw: &str, wire: &Members<'_>, id: &str, members: &[&str]) -> Block {
    let kind = answered(raw, wire, id, "content");
    Block { unknown: known::block(raw, members), ..Block::new(0..raw.len(), kind) }
}

/// A use, with its id in the member `id`.
pub(super) fn used(raw: &str, wire: &Members<'_>, id: &str, name: Box<str>) -> Kind {
    let id_at = wire.get(id).map(|at| json::span(raw, at.get()));
    Kind::Use { id: Name::from(&*wire.text(id)), id_at, name, noun: "" }
}

/// A result, with the id of its use in the member `id` and its content in the member `content`.
pub(super) fn answered(raw: &str, wire: &Members<'_>, id: &str, content: &str) -> Kind {
    let at = |name| wire.get(name).map(|part| json::span(raw, part.get()));
    let (id_at, synthetic) = (at(id), is_synthetic(wire.get(content)));
    let (id, name) = (Name::from(&*wire.text(id)), Box::default());
    Kind::Result { id, id_at, name, content: at(content), synthetic }
}

/// The types of a list's parts, in their order; empty where a part has none.
pub(crate) fn types<'t>(list: Option<&'t RawValue>) -> impl Iterator<Item = Cow<'t, str>> {
    let parts = list.and_then(|list| json::elements(list.get()).ok()).unwrap_or_default();
    parts.into_iter().map(|part| Members::of(part, &["type"]).unwrap_or_default().text("type"))
}

/// The content as one text: a string's value, or the JSON of anything else.
pub(super) fn as_text(content: &str) -> String {
    serde_json::from_str(content).unwrap_or_else(|_| content.to_owned())
}

pub(super) fn role(wire: &Members<'_>) -> Result<Role, ReadError> {
    let role = wire.string("role").ok_or(ReadError::new("a message without a role"))?;
    Ok(match &*role {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => Role::Other,
    })
}
