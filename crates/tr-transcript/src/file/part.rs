//! Repairs a damaged part of a file on its own, with stub lines that stand for the rest of the
//! file.
use super::{
    check::FileCheck,
    done::FilePlan,
    entry::Entry,
    finding::{FileFault, FileReport},
    form::FileForm,
    index::{Cut, Index, Name},
    new_line::quoted,
    records::find_in_records,
    session_file::SessionFile,
};
use crate::{
    format::Format,
    json::quote,
    message::{Message, Role},
    name::Name as Id,
    repair::Repair,
};
use std::{collections::HashSet, io::Read as _, ops::Range};

/// The ids of the stub lines after a part. No harness generates such ids.
const HIDES: &str = "tool-guard:hides";
const ENDS: &str = "tool-guard:ends";

/// A file in stretches, of which those around damage are repaired on their own.
pub(super) struct Parts<'f> {
    bytes: &'f [u8],
    form: FileForm,
    /// Of each part.
    check: FileCheck,
    index: Index,
    /// They separate the stretches; the first stretch begins the file, the last one ends it.
    pub(super) cuts: Vec<Cut>,
    /// The stretch of each finding, in order.
    pub(super) damaged: Vec<usize>,
    /// Where the messages that the model sees begin, in order.
    messages: Vec<usize>,
}

/// A repaired part of a file, and the bytes that replace it.
pub(super) struct Repaired {
    pub(super) at: Range<usize>,
    pub(super) bytes: Vec<u8>,
    pub(super) done: FilePlan,
}

/// A part with stub lines around it: a complete file.
struct Standalone<'f> {
    /// The stub lines before and after it.
    head: String,
    part: &'f [u8],
    tail: String,
    /// What to add to its line numbers and offsets to have those in the whole file.
    lines: i64,
    offset: i64,
}

impl Standalone<'_> {
    fn check(&self, check: &FileCheck) -> Option<FileReport> {
        let all = self.head.as_bytes().chain(self.part).chain(self.tail.as_bytes());
        check.run(all, |_| {}).ok()
    }
}

/// Whether parts of such a file can be repaired on their own: names only pair neighboring lines,
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
    /// Checks the file in pieces of about `at_once` bytes; `None` if it must be repaired as a whole.
    pub(super) fn find(
        form: FileForm,
        bytes: &'f [u8],
        index: Index,
        at_once: usize,
        members: bool,
        mut progress: impl FnMut(u64),
    ) -> Option<Self> {
        let cuts = index.cuts(bytes);
        let asked = index
            .last_answer(form)
            .and_then(|at| entry_at(form, bytes, at)?.as_message()?.body.answered_in);
        let check = FileCheck::in_memory(usize::MAX).form(form);
        let check = FileCheck { members, asked, notes: true, max_findings: usize::MAX, ..check };
        let (damaged, messages) = (Vec::new(), Vec::new());
        let mut parts = Self { bytes, form, check, index, cuts, damaged, messages };
        let mut has_lost_parent = false;
        let mut first = 0;
        while first <= parts.cuts.len() {
            let enough = parts.start(first) + at_once;
            let last = first + parts.cuts[first..].partition_point(|cut| cut.offset < enough);
            let at = parts.start(first)..parts.start(last + 1);
            let alone = parts.alone(first, last);
            let report = alone.check(&parts.check)?;
            // Where the branch begins in this piece, the model sees nothing before it.
            let is_from_head = alone.head.is_empty()
                || parts.cuts[first - 1].is_hidden
                || report.places.contains(&0);
            if has_unsure(&report) || !is_from_head {
                return None;
            }
            let mut faults = report.findings.iter().map(|finding| finding.fault);
            has_lost_parent |= faults.any(FileFault::is_of_parent);
            let in_file = |offset: u64| offset.saturating_add_signed(alone.offset) as usize;
            for damage in report.findings.iter().map(|finding| in_file(finding.offset)) {
                let stretch = parts.cuts.partition_point(|cut| cut.offset <= damage);
                parts.damaged.push(stretch.clamp(first, last));
            }
            // Without those of the stubs.
            let messages = report.places.iter().map(|&offset| in_file(offset));
            parts.messages.extend(messages.filter(|offset| at.contains(offset)));
            progress((bytes.len() + at.end) as u64);
            first = last + 1;
        }
        parts.messages.sort_unstable();
        // Only the whole file tells whether the place of a line is certain whose parent is missing.
        let is_unsure = has_lost_parent && {
            let whole = FileCheck::in_memory(bytes.len()).form(form).run(bytes, |_| {});
            whole.is_ok_and(|whole| has_unsure(&whole))
        };
        (!is_unsure).then_some(parts)
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
        let at = self.start(first)..self.start(last + 1);
        let alone = self.alone(first, last);
        let before = |stretch| self.damaged.partition_point(|&damaged| damaged < stretch);
        let found = (before(last + 1) - before(first)) as u64;
        let report = alone.check(&self.check).filter(|report| report.found == found)?;
        // The model sees the stub line before the part, too, unless something hides both, or the branch begins here.
        let stubs = i64::from(!alone.head.is_empty() && report.places.contains(&0));
        let messages = self.messages.partition_point(|&offset| offset < at.start) as i64 - stubs;
        let Standalone { head, part, tail, .. } = &alone;
        let was = [head.as_bytes(), part, tail.as_bytes()].concat();
        // The line beside a stub stays, too.
        let first = if head.is_empty() { 0 } else { head.len() + line_len(part) };
        let last = if tail.is_empty() { 0 } else { last_line_len(part) + tail.len() };
        let before = SessionFile::read_as(Some(form), was.clone().into(), self.check.asked);
        let known: HashSet<_> = names(&before).collect();
        let (after, mut done) = before.repaired(repair, Some(form));
        if names(&after).any(|name| !known.contains(&name) && self.index.has(&name)) {
            return None;
        }
        let bytes = &after.bytes;
        let stays = bytes.starts_with(&was[..first]) && bytes.ends_with(&was[was.len() - last..]);
        if !stays || bytes.len() < first + last {
            return None;
        }
        done.shift(alone.lines, alone.offset, messages);
        let bytes = bytes[head.len()..bytes.len() - tail.len()].to_vec();
        Some(Repaired { at, bytes, done })
    }

    /// The stretches from `first` to `last` as a complete file.
    fn alone(&self, first: usize, last: usize) -> Standalone<'f> {
        let (from, to) = (first.checked_sub(1).map(|cut| &self.cuts[cut]), self.cuts.get(last));
        let form = self.form;
        let end = if self.bytes[..line_len(self.bytes)].ends_with(b"\r\n") { "\r\n" } else { "\n" };
        let mut head = String::new();
        if let Some(cut) = from {
            let other = if cut.role == Role::User { Role::Assistant } else { Role::User };
            let id = self.id_at(cut.parent);
            head = stub(form, other, id.as_deref(), None) + end;
        }
        let mut tail = String::new();
        if let Some(cut) = to {
            let mut parent = self.id_at(cut.parent);
            let has_ids = parent.is_some();
            if cut.is_hidden {
                tail = hides(form, parent.as_deref()) + end;
                parent = has_ids.then(|| HIDES.into());
            }
            let id = has_ids.then_some(ENDS);
            tail += &stub(form, cut.role, id, parent.as_deref());
            tail += end;
        }
        let at = self.start(first)..self.start(last + 1);
        let part = &self.bytes[at];
        let lines = from.map_or(0, |cut| cut.line as i64 - 2);
        let offset = self.start(first) as i64 - head.len() as i64;
        Standalone { head, part, tail, lines, offset }
    }

    /// The id of the record at `offset`.
    fn id_at(&self, offset: usize) -> Option<Id> {
        entry_at(self.form, self.bytes, offset)?.id
    }
}

/// The entry of the record at `offset`.
fn entry_at(form: FileForm, bytes: &[u8], offset: usize) -> Option<Entry> {
    find_in_records(&bytes[offset..], |record| Some(Entry::read(form, record)))
}

/// Whether the place of a line is not certain.
fn has_unsure(report: &FileReport) -> bool {
    report.findings.iter().any(|finding| finding.fault == FileFault::UnsurePlace)
}

fn names(file: &SessionFile) -> impl Iterator<Item = Name<Id>> {
    file.entries.iter().flat_map(|located| {
        let id = located.entry.id.iter().map(|id| Name::Entry(id.clone()));
        let messages = located.entry.as_message().into_iter();
        let tools = messages.flat_map(Message::tool_uses).map(|id| Name::Tool(id.into()));
        id.chain(tools)
    })
}

/// A line that replaces others; `parent` is the id of its parent.
fn stub(form: FileForm, role: Role, id: Option<&str>, parent: Option<&str>) -> String {
    let role = if role == Role::User { "user" } else { "assistant" };
    if let FileForm::Messages(_) = form {
        return format!(r#"{{"role":"{role}","content":"…"}}"#);
    }
    let message = format!(r#"{{"role":"{role}","content":[{{"type":"text","text":"…"}}]}}"#);
    let links = links(form, id, parent);
    let kind = if form == FileForm::ClaudeCode { role } else { "message" };
    format!(r#"{{"type":"{kind}"{links},"message":{message}}}"#)
}

/// A line of an agent's that hides everything before it from the model.
fn hides(form: FileForm, parent: Option<&str>) -> String {
    let links = links(form, parent.map(|_| HIDES), parent);
    if form == FileForm::ClaudeCode {
        return format!(r#"{{"type":"system","subtype":"compact_boundary"{links}}}"#);
    }
    format!(r#"{{"type":"reset"{links}}}"#)
}

fn links(form: FileForm, id: Option<&str>, parent: Option<&str>) -> String {
    let Some(id) = id else { return String::new() };
    let (id, parent) = (quote(id), quoted(parent));
    format!(r#","{}":{parent},"{}":{id}"#, form.parent_member(), form.id_member())
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
