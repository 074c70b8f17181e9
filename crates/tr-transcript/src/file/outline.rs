//! Reads a record's outline in few passes: the structure that a check needs, without texts.
//!
//! What is unusual in any way is read by [`Entry::read`], which agrees with the outline on the rest.

mod message;

#[cfg(test)]
mod tests;

use self::message::Body;
use super::{
    entry::{Entry, Link, What},
    form::FileForm,
};
use crate::{
    format::Format,
    json::{self, Members, Object, ReadInto, once},
    name::Name,
};
use serde::de::{Error as _, IgnoredAny, MapAccess};

/// The outline of a record.
pub(super) struct Outline {
    pub(super) entry: Entry,
    /// Whether the form [owns](FileForm::owns) the record.
    pub(super) is_own: bool,
    /// Whether its message has more blocks, or a block more members, than the limit.
    pub(super) is_too_much: bool,
}

/// Reads a record, without the text of its message; `None` if it is no JSON. A message with more than
/// `most` blocks, or members in a block, is not parsed.
pub(super) fn read(form: FileForm, record: &str, most: usize) -> Option<Outline> {
    // No session has others; that they are valid JSON was checked when they were split off.
    if !record.starts_with('{') {
        return Some(Outline { entry: Entry::OUTSIDE, is_own: false, is_too_much: false });
    }
    if record.len() > most
        && let Some(emptied) = without_much(form, record, most)
    {
        let mut outline = read(form, &emptied, usize::MAX)?;
        if matches!(outline.entry.what, What::Message { .. } | What::Empty(_)) {
            (outline.entry.what, outline.is_too_much) = (What::Hidden, true);
        }
        return Some(outline);
    }
    outline(form, record).or_else(|| whole(form, record))
}

/// The outline of a record that is read as a whole.
fn whole(form: FileForm, record: &str) -> Option<Outline> {
    serde_json::from_str::<IgnoredAny>(record).ok()?;
    let mut entry = Entry::read(form, record);
    if let What::Message { message, .. } = &mut entry.what {
        message.drop_text();
    }
    Some(Outline { entry, is_own: form.owns(record), is_too_much: false })
}

/// The record without the content of its message, if that has more than `most` blocks, or a block
/// more members.
fn without_much(form: FileForm, record: &str, most: usize) -> Option<String> {
    let line = Members::of(record, &["message"]).ok()?;
    let is_message = matches!(form, FileForm::Messages(_));
    let message = if is_message { record } else { line.get("message")?.get() };
    let content = Members::of(message, &["content"]).ok()?.get("content")?.get();
    // Those that are not read take no memory.
    let is_much = serde_json::from_str::<Vec<IgnoredAny>>(content).ok()?.len() > most || {
        let members = |block: &str| Members::of(block, &[]).map_or(0, |block| block.len);
        json::elements(content).ok()?.into_iter().any(|block| members(block) > most)
    };
    if !is_much {
        return None;
    }
    let emptied = json::set_member(message, "content", "[]");
    Some(if is_message { emptied } else { json::set_member(record, "message", &emptied) })
}

/// Reads a record, which may be invalid JSON; `None` where it is not fully understood.
fn outline(form: FileForm, record: &str) -> Option<Outline> {
    let (entry, is_own) = match form {
        FileForm::Messages(Format::AnthropicMessages) => {
            let mut message = Body::of(false);
            json::read_into(record, &mut message)?;
            (Entry::message(None, Link::Before, message.anthropic()?), true)
        }
        FileForm::Messages(_) | FileForm::Codex | FileForm::Other => return None,
        _ => {
            let mut line = Line { form, ..Line::default() };
            json::read_into(record, &mut line)?;
            let is_own = line.kind.flatten().is_some();
            (if form.is_claude_code() { line.claude_code() } else { line.openclaw() }?, is_own)
        }
    };
    Some(Outline { entry, is_own, is_too_much: false })
}

/// A line of Claude Code's or OpenClaw's; `Some(None)` for members that are `null`.
#[derive(Default)]
struct Line<'t> {
    form: FileForm,
    kind: Option<Option<&'t str>>,
    subtype: Option<Option<&'t str>>,
    /// By whichever name the form gives them.
    id: Option<Option<&'t str>>,
    parent: Option<Option<&'t str>>,
    is_sidechain: Option<bool>,
    is_api_error: Option<bool>,
    is_transcript_only: Option<bool>,
    message: Option<Body<'t>>,
    /// What only other kinds of lines have.
    others: Option<IgnoredAny>,
}

impl<'t> Object<'t> for Line<'t> {
    fn member<A: MapAccess<'t>>(&mut self, name: &str, from: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => once(&mut self.kind, from),
            "subtype" => once(&mut self.subtype, from),
            "uuid" | "id" if name == self.form.id_member() => once(&mut self.id, from),
            "parentUuid" | "parentId" if name == self.form.parent_member() => {
                once(&mut self.parent, from)
            }
            "isSidechain" => once(&mut self.is_sidechain, from),
            "isApiErrorMessage" => once(&mut self.is_api_error, from),
            "isVisibleInTranscriptOnly" => once(&mut self.is_transcript_only, from),
            "message" if self.message.is_none() => from.next_value_seed(ReadInto(
                self.message.insert(Body::of(!self.form.is_claude_code())),
            )),
            "message" => Err(A::Error::custom("two messages")),
            "compactMetadata"
            | "explicit"
            | "firstKeptEntryId"
            | "firstKeptEntryIndex"
            | "isCompactSummary"
            | "leafUuid"
            | "replacement"
            | "summary"
            | "targetId" => once(&mut self.others, from),
            _ => from.next_value::<IgnoredAny>().map(drop),
        }
    }
}

impl Line<'_> {
    fn claude_code(&mut self) -> Option<Entry> {
        if self.is_sidechain == Some(true) && self.form != FileForm::ClaudeSubagent {
            return Some(Entry::OUTSIDE);
        }
        let is_shown = ![self.is_api_error, self.is_transcript_only].contains(&Some(true));
        let what = match (self.kind.flatten(), self.subtype.flatten()) {
            (Some("user" | "assistant"), _) if is_shown => {
                let message = self.message.as_mut()?;
                let group = message.id.flatten().map(Name::from);
                What::Message { message: message.anthropic()?, group }
            }
            (Some("user" | "assistant" | "last-prompt"), _)
            | (Some("system"), Some("compact_boundary")) => return None,
            _ => What::Hidden,
        };
        Some(self.entry(what))
    }

    fn openclaw(&mut self) -> Option<Entry> {
        let what = match self.kind.flatten() {
            Some("message") => {
                let message = self.message.as_mut()?;
                What::Message { message: message.openclaw()?, group: None }
            }
            Some(
                "session" | "custom_message" | "branch_summary" | "compaction" | "context_edit"
                | "reset",
            ) => return None,
            Some(_) => What::Hidden,
            None => return Some(Entry::OUTSIDE),
        };
        Some(self.entry(what))
    }

    fn entry(&self, what: What) -> Entry {
        let id = self.id.flatten().map(Name::from);
        if id.is_none() && matches!(what, What::Hidden) {
            return Entry::OUTSIDE;
        }
        let link = self.parent.map(|parent| parent.map_or(Link::Root, |id| Link::To(id.into())));
        Entry { id, link: link.unwrap_or_default(), what }
    }
}
