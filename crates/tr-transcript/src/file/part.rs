//! Repairs a damaged part of a file on its own, with stub lines that stand for the rest of the
//! file.
use super::{
    check::FileCheck,
    done::{FileAction, FileActionKind, FilePlan},
    entry::Entry,
    finding::FileFinding,
    form::FileForm,
    index::{Cut, Index, Name},
    records::find_in_records,
    report::FileReport,
    session_file::SessionFile,
};
use crate::{
    format::Format,
    json::quote,
    message::{Message, Role},
    name::Name as Id,
    repair::Repair,
};
use std::{collections::HashSet, ops::Range};

/// The ids of the stub lines after a part. No harness generates such ids.
const HIDES: &str = "tool-guard:hides";
const ENDS: &str = "tool-guard:ends";

/// A file whose damaged parts are repaired on their own.
pub(super) struct Parts<'f> {
    pub(super) bytes: &'f [u8],
    pub(super) form: FileForm,
    /// Of each part.
    check: FileCheck,
    index: Index,
    /// They separate the stretches; the first stretch begins the file, the last one ends it.
    pub(super) cuts: Vec<Cut>,
    /// Of the whole file.
    pub(super) report: FileReport,
}

/// A repaired part of a file, and the bytes that replace it.
pub(super) struct Repaired {
    pub(super) at: Range<usize>,
    pub(super) bytes: Vec<u8>,
    pub(super) done: FilePlan,
}

/// A part with stub lines around it: a complete file.
struct Standalone {
    bytes: Box<[u8]>,
    /// The lengths of the stub lines before and after it.
    head: usize,
    tail: usize,
    /// What to add to its line numbers and offsets to have those in the whole file.
    lines: i64,
    offset: i64,
}

/// Whether parts of such a file can be repaired on their own: names only pair neighbouring lines,
/// and no message depends on items that the provider keeps.
pub(super) const fn may_cut(form: FileForm) -> bool {
    matches!(
        form,
        FileForm::ClaudeCode
            | FileForm::OpenClaw { .. }
            | FileForm::Messages(Format::AnthropicMessages | Format::OpenAiChat)
    )
}

impl<'f> Parts<'f> {
    /// A file with the findings of its check.
    pub(super) fn new(
        bytes: &'f [u8],
        mut index: Index,
        report: FileReport,
        check: &FileCheck,
    ) -> Self {
        let cuts = index.cuts(bytes);
        let check = FileCheck { asked: report.asked, window: usize::MAX, ..check.clone() };
        Self { bytes, form: report.form, check, index, cuts, report }
    }

    /// Where a stretch begins.
    fn start(&self, stretch: usize) -> usize {
        match stretch.checked_sub(1) {
            None => 0,
            Some(cut) => self.cuts.get(cut).map_or(self.bytes.len(), |cut| cut.offset),
        }
    }

    /// Repairs the stretches from `first` to `last`; `None` if the rest of the file affects the
    /// result.
    pub(super) fn repair(&self, first: usize, last: usize, repair: Repair) -> Option<Repaired> {
        let form = self.form;
        let (start, end) = (self.start(first), self.start(last + 1));
        let at = start..end;
        let alone = self.alone(first, last)?;
        let report = self.check.run(&*alone.bytes, |_| {}).ok()?;
        let shift = self.is_seen_alike(&at, &alone, &report)?;

        let before = SessionFile::read_as(Some(form), alone.bytes.clone(), self.check.asked);
        let known: HashSet<_> = names(&before).collect();
        let (after, mut done) = before.repaired(repair, Some(form));
        if names(&after).any(|name| !known.contains(&name) && self.index.has(&name)) {
            return None;
        }
        let (bytes, was) = (&after.bytes, &alone.bytes);
        let first_line = alone.head + line_len(&was[alone.head..]);
        let first_line = if alone.head > 0 { first_line } else { 0 };
        let last_line = was.len() - alone.tail - last_line_len(&was[..was.len() - alone.tail]);
        let last_line = if alone.tail > 0 { last_line } else { was.len() };
        let stays = bytes.starts_with(&was[..first_line]) && bytes.ends_with(&was[last_line..]);
        if !stays || bytes.len() < first_line + (was.len() - last_line) {
            return None;
        }
        // The index of a message in the whole file may not be known.
        let acts = |act: &FileAction| matches!(act.action, FileActionKind::Message(_));
        if shift.is_none() && done.actions.iter().any(acts) {
            return None;
        }
        done.shift(alone.lines, alone.offset, shift.unwrap_or_default());
        let bytes = bytes[alone.head..bytes.len() - alone.tail].to_vec();
        Some(Repaired { at, bytes, done })
    }

    /// The stretches from `first` to `last` as a complete file.
    fn alone(&self, first: usize, last: usize) -> Option<Standalone> {
        let (from, to) = (first.checked_sub(1).map(|cut| &self.cuts[cut]), self.cuts.get(last));
        let form = self.form;
        let end = if self.bytes[..line_len(self.bytes)].ends_with(b"\r\n") { "\r\n" } else { "\n" };
        let mut head = String::new();
        if let Some(cut) = from {
            let other = if cut.role == Role::User { Role::Assistant } else { Role::User };
            let id = self.id_at(cut.parent)?;
            head = stub(form, other, id.as_deref(), Some(None))? + end;
        }
        let mut tail = String::new();
        if let Some(cut) = to {
            let mut parent = self.id_at(cut.parent)?;
            let has_ids = parent.is_some();
            if cut.is_hidden {
                tail = hides(form, parent.as_deref())? + end;
                parent = has_ids.then(|| HIDES.into());
            }
            let id = has_ids.then_some(ENDS);
            tail += &stub(form, cut.role, id, parent.as_deref().map(Some))?;
            tail += end;
        }
        let at = self.start(first)..self.start(last + 1);
        let bytes = [head.as_bytes(), &self.bytes[at], tail.as_bytes()].concat();
        let lines = from.map_or(0, |cut| cut.line as i64 - 2);
        let offset = self.start(first) as i64 - head.len() as i64;
        let (head, tail) = (head.len(), tail.len());
        Some(Standalone { bytes: bytes.into(), head, tail, lines, offset })
    }

    /// The id of the record at `offset`.
    fn id_at(&self, offset: usize) -> Option<Option<Id>> {
        Some(entry_at(self.form, self.bytes, offset)?.id)
    }

    /// Checks that the part alone has the same findings as in the whole file; returns how many more
    /// messages stand before it there, if that is known.
    fn is_seen_alike(
        &self,
        at: &Range<usize>,
        alone: &Standalone,
        report: &FileReport,
    ) -> Option<Option<i64>> {
        let is_end = at.end == self.bytes.len();
        let from = self.report.findings.partition_point(|it| (it.offset as usize) < at.start);
        let whole = self.report.findings[from..].iter();
        let whole = whole.take_while(|it| is_end || (it.offset as usize) < at.end);
        let index = |found: &FileFinding| Some(found.finding.as_ref()?.message_index as i64);
        let first = whole.clone().find_map(index).zip(report.findings.iter().find_map(index));
        let shift = first.map(|(whole, part)| whole - part);
        let behind = is_end.then(|| self.report.messages as i64 - report.messages as i64);
        let shift = shift.or(behind);
        let whole = whole.map(|found| told(found, 0, 0, 0));
        let (lines, bytes, messages) = (alone.lines, alone.offset, shift.unwrap_or_default());
        let part = report.findings.iter().map(|found| told(found, lines, bytes, messages));
        let (mut whole, mut part): (Vec<_>, Vec<_>) = (whole.collect(), part.collect());
        whole.sort_unstable();
        part.sort_unstable();
        (whole == part).then_some(shift)
    }
}

/// The entry of the record at `offset`.
fn entry_at(form: FileForm, bytes: &[u8], offset: usize) -> Option<Entry> {
    find_in_records(&bytes[offset..], |record| Some(Entry::read(form, record)))
}

/// What a finding says, for a file with so many more lines, bytes and messages before it.
fn told(found: &FileFinding, lines: i64, bytes: i64, messages: i64) -> impl Ord + use<> {
    let (offset, line) = (found.offset as i64 + bytes, found.line as i64 + lines);
    let message = found.finding.as_ref();
    let id = message.and_then(|message| message.tool_use_id.clone());
    let index = message.map(|message| message.message_index as i64 + messages);
    let fault = format!("{:?} {:?}", found.severity, found.fault);
    (offset, line, found.length, fault, id, index)
}

fn names(file: &SessionFile) -> impl Iterator<Item = Name<Id>> {
    file.entries.iter().flat_map(|located| {
        let id = located.entry.id.iter().map(|id| Name::Entry(id.clone()));
        let messages = located.entry.as_message().into_iter();
        let tools = messages.flat_map(Message::tool_uses).map(|id| Name::Tool(id.into()));
        id.chain(tools)
    })
}

/// A line that replaces others. `parent` is the id of its parent, if it names one.
fn stub(
    form: FileForm,
    role: Role,
    id: Option<&str>,
    parent: Option<Option<&str>>,
) -> Option<String> {
    let role = if role == Role::User { "user" } else { "assistant" };
    let message = match form {
        FileForm::OpenClaw { .. } | FileForm::ClaudeCode => {
            format!(r#"{{"role":"{role}","content":[{{"type":"text","text":"…"}}]}}"#)
        }
        FileForm::Messages(Format::AnthropicMessages | Format::OpenAiChat) => {
            return Some(format!(r#"{{"role":"{role}","content":"…"}}"#));
        }
        _ => return None,
    };
    let links = links(form, id, parent);
    let kind = if form == FileForm::ClaudeCode { role } else { "message" };
    Some(format!(r#"{{"type":"{kind}"{links},"message":{message}}}"#))
}

/// A line that hides everything before it from the model.
fn hides(form: FileForm, parent: Option<&str>) -> Option<String> {
    let links = links(form, parent.map(|_| HIDES), parent.map(Some));
    match form {
        FileForm::ClaudeCode => {
            Some(format!(r#"{{"type":"system","subtype":"compact_boundary"{links}}}"#))
        }
        FileForm::OpenClaw { .. } => Some(format!(r#"{{"type":"reset"{links}}}"#)),
        _ => None,
    }
}

fn links(form: FileForm, id: Option<&str>, parent: Option<Option<&str>>) -> String {
    use super::new_line::quoted;
    let Some(id) = id else { return String::new() };
    let parent = parent.map(|id| format!(r#","{}":{}"#, form.parent_member(), quoted(id)));
    format!(r#","{}":{}{}"#, form.id_member(), quote(id), parent.unwrap_or_default())
}

/// The length of the first line, with its line break.
fn line_len(bytes: &[u8]) -> usize {
    memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1)
}

/// The length of the last line, with its line break.
fn last_line_len(bytes: &[u8]) -> usize {
    let inside = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.len() - memchr::memrchr(b'\n', inside).map_or(0, |end| end + 1)
}
