//! Reads a record's outline in one pass: the structure that a check needs, without texts.
//!
//! Returns `None` for anything unusual; [`Entry::read`] reads that, and agrees with the outline on
//! the rest.
mod message;
mod part;
mod scan;

use self::{message::Body, part::Seen, scan::Scan};
use super::{
    entry::{Entry, Link, What},
    form::FileForm,
};
use crate::{format::Format, name::Name};
use serde::de::IgnoredAny;

/// Reads a record, without the text of its message; `None` if it is no JSON. A message with more than
/// `most` blocks, or members in a block, is not parsed.
#[inline]
pub(super) fn read(form: FileForm, record: &str, most: usize) -> Option<Outline> {
    // No session has others; that they are valid JSON was checked when they were split off.
    if !record.starts_with('{') {
        return Some(Outline::new(Entry::OUTSIDE, false));
    }
    outline(form, record, most).or_else(|| {
        serde_json::from_str::<IgnoredAny>(record).ok()?;
        let mut entry = Entry::read(form, record);
        if let What::Message { message, .. } = &mut entry.what {
            *message = message.without_text();
        }
        Some(Outline::new(entry, form.owns(record)))
    })
}

/// The outline of a record.
pub(super) struct Outline {
    pub(super) entry: Entry,
    /// Whether the form [owns](FileForm::owns) the record.
    pub(super) is_own: bool,
    /// Whether its message has more blocks, or a block more members, than the limit.
    pub(super) is_too_much: bool,
}

impl Outline {
    const fn new(entry: Entry, is_own: bool) -> Self {
        Self { entry, is_own, is_too_much: false }
    }

    /// The outline of a message.
    const fn of(id: Option<Name>, link: Link, what: What) -> Self {
        let is_too_much = matches!(what, What::Hidden);
        Self { entry: Entry { id, link, what }, is_own: true, is_too_much }
    }
}

/// Reads a record, which may be invalid JSON, without the text of its message.
fn outline(form: FileForm, record: &str, most: usize) -> Option<Outline> {
    let mut scan = Scan::new(record, most);
    let mut line = Line::default();
    match form {
        FileForm::ClaudeCode | FileForm::ClaudeSubagent => {
            line.read(&mut scan, false)?;
            line.claude_code(form == FileForm::ClaudeSubagent)
        }
        FileForm::OpenClaw { .. } => {
            line.read(&mut scan, true)?;
            line.openclaw()
        }
        FileForm::Messages(Format::AnthropicMessages) => {
            let said = Body::read(&mut scan, false)?;
            scan.is_done().then_some(())?;
            Some(Outline::of(None, Link::Before, said.anthropic(None)?))
        }
        FileForm::Messages(_) | FileForm::Codex | FileForm::Other => None,
    }
}

/// A line of Claude Code's or OpenClaw's.
#[derive(Default)]
struct Line<'t> {
    kind: Option<&'t str>,
    subtype: Option<&'t str>,
    id: Option<&'t str>,
    parent: Link<&'t str>,
    is_sidechain: bool,
    is_api_error: bool,
    is_transcript_only: bool,
    message: Option<Body<'t>>,
}

impl<'t> Line<'t> {
    /// Reads a line that is one object.
    fn read(&mut self, scan: &mut Scan<'t>, is_openclaws: bool) -> Option<()> {
        let (line, mut seen) = (self, Seen::default());
        scan.object(|scan, name| {
            match (name, is_openclaws) {
                ("type", _) => line.kind = seen.string(1, scan)?,
                ("message", _) => {
                    seen.once(1 << 1)?;
                    line.message =
                        if scan.null()? { None } else { Some(Body::read(scan, is_openclaws)?) };
                }
                ("isSidechain", false) => line.is_sidechain = seen.boolean(1 << 2, scan)?,
                ("isApiErrorMessage", false) => line.is_api_error = seen.boolean(1 << 3, scan)?,
                ("isVisibleInTranscriptOnly", false) => {
                    line.is_transcript_only = seen.boolean(1 << 4, scan)?;
                }
                ("uuid", false) | ("id", true) => line.id = seen.string(1 << 5, scan)?,
                ("parentUuid", false) | ("parentId", true) => {
                    line.parent = seen.string(1 << 6, scan)?.map_or(Link::Root, Link::To);
                }
                ("subtype", false) => line.subtype = seen.string(1 << 7, scan)?,
                ("summary", _) => seen.skip(1 << 7, scan)?,
                ("leafUuid" | "firstKeptEntryId", _) => seen.skip(1 << 8, scan)?,
                ("firstKeptEntryIndex", _) => seen.skip(1 << 9, scan)?,
                _ => scan.skip_value()?,
            }
            Some(())
        })?;
        scan.is_done().then_some(())
    }

    fn claude_code(self, takes_sides: bool) -> Option<Outline> {
        let is_own = self.kind.is_some();
        if self.is_sidechain && !takes_sides {
            return Some(Outline::new(Entry::OUTSIDE, is_own));
        }
        let what = match (self.kind, self.subtype) {
            (Some("user" | "assistant"), _) if self.is_api_error || self.is_transcript_only => {
                return None;
            }
            (Some("user" | "assistant"), _) => {
                let message = self.message?;
                let group = message.id.map(Into::into);
                message.anthropic(group)?
            }
            (Some("system"), Some("compact_boundary")) | (Some("last-prompt"), _) => return None,
            _ => return Some(Outline::new(hidden(self.id, self.parent), is_own)),
        };
        Some(Outline::of(self.id.map(Into::into), owned(self.parent), what))
    }

    fn openclaw(self) -> Option<Outline> {
        let what = match self.kind {
            Some("message") => self.message?.openclaw()?,
            Some(
                "session" | "custom_message" | "branch_summary" | "compaction" | "context_edit"
                | "reset",
            ) => {
                return None;
            }
            Some(_) => return Some(Outline::new(hidden(self.id, self.parent), true)),
            None => return Some(Outline::new(Entry::OUTSIDE, false)),
        };
        Some(Outline::of(self.id.map(Into::into), owned(self.parent), what))
    }
}

/// An entry that the model does not see; without an id it is not part of the tree.
fn hidden(id: Option<&str>, parent: Link<&str>) -> Entry {
    match id {
        None => Entry::OUTSIDE,
        id => Entry { id: id.map(Into::into), link: owned(parent), what: What::Hidden },
    }
}

fn owned(parent: Link<&str>) -> Link {
    parent.map(|id| Name::from(*id))
}

#[cfg(test)]
mod tests;
