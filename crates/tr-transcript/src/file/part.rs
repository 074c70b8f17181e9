//! Repairs a damaged part of a file on its own, with stub lines that stand for the rest of the
//! file.
use super::{
    check::FileCheck,
    done::FilePlan,
    entry::Entry,
    finding::{FileFinding, FileReport},
    form::FileForm,
    index::{Cut, Index, Name},
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

/// A file whose damaged parts are repaired on their own.
pub(super) struct Parts<'f> {
    pub(super) bytes: &'f [u8],
    pub(super) form: FileForm,
    /// Of each part.
    check: FileCheck,
    index: Index,
    /// They separate the stretches; the first stretch begins the file, the last one ends it.
    pub(super) cuts: Vec<Cut>,
    pub(super) findings: Vec<FileFinding>,
    /// For some stretches, the number of messages before them.
    messages: Vec<(usize, usize)>,
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
    /// How many messages the model sees in the stub lines before and after it.
    messages_before: usize,
    messages_behind: usize,
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
    /// Checks the file in pieces of about `at_once` bytes; `None` if it must be checked as a whole.
    pub(super) fn find(
        form: FileForm,
        bytes: &'f [u8],
        (index, cuts): (Index, Vec<Cut>),
        at_once: usize,
        members: bool,
        mut progress: impl FnMut(u64),
    ) -> Option<Self> {
        let (findings, messages) = (Vec::new(), Vec::new());
        let asked = index.last_answer(form).and_then(|at| asked(form, bytes, at));
        let max_findings = usize::MAX;
        let check = FileCheck::in_memory(usize::MAX).form(form);
        let check = FileCheck { members, asked, max_findings, ..check };
        let mut parts = Self { bytes, form, check, index, cuts, findings, messages };
        let (mut first, mut before) = (0, 0);
        while first <= parts.cuts.len() {
            let start = parts.start(first);
            let is_enough = |cut: &Cut| cut.offset >= start + at_once;
            let last = first + parts.cuts[first..].partition_point(|cut| !is_enough(cut));
            parts.messages.push((first, before));
            before += parts.look(first, last, before)?;
            first = last + 1;
            progress((bytes.len() + parts.start(first)) as u64);
        }
        Some(parts)
    }

    /// Where a stretch begins.
    fn start(&self, stretch: usize) -> usize {
        match stretch.checked_sub(1) {
            None => 0,
            Some(cut) => self.cuts.get(cut).map_or(self.bytes.len(), |cut| cut.offset),
        }
    }

    /// Checks stretches with this many messages before them; returns how many messages they have.
    fn look(&mut self, first: usize, last: usize, before: usize) -> Option<usize> {
        let alone = self.alone(first, last)?;
        let report = alone.check(&self.check)?;
        let messages = before as i64 - alone.messages_before as i64;
        let found = report.findings.into_iter();
        let shifted = |found: FileFinding| found.shifted(alone.lines, alone.offset, messages);
        self.findings.extend(found.map(shifted));
        Some(report.messages.saturating_sub(alone.messages_before + alone.messages_behind))
    }

    /// Repairs the stretches from `first` to `last`; `None` if the rest of the file affects the
    /// result.
    pub(super) fn repair(&self, first: usize, last: usize, repair: Repair) -> Option<Repaired> {
        let form = self.form;
        let at = self.start(first)..self.start(last + 1);
        let alone = self.alone(first, last)?;
        let report = alone.check(&self.check)?;
        let shift = self.is_seen_alike(first, &at, &alone, &report)?;

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
        done.shift(alone.lines, alone.offset, shift);
        let bytes = bytes[head.len()..bytes.len() - tail.len()].to_vec();
        Some(Repaired { at, bytes, done })
    }

    /// The stretches from `first` to `last` as a complete file.
    fn alone(&self, first: usize, last: usize) -> Option<Standalone<'f>> {
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
        let part = &self.bytes[at];
        let lines = from.map_or(0, |cut| cut.line as i64 - 2);
        let offset = self.start(first) as i64 - head.len() as i64;
        let messages_before = usize::from(from.is_some_and(|cut| !cut.is_hidden));
        let messages_behind = usize::from(to.is_some());
        Some(Standalone { head, part, tail, lines, offset, messages_before, messages_behind })
    }

    /// The id of the record at `offset`.
    fn id_at(&self, offset: usize) -> Option<Option<Id>> {
        Some(entry_at(self.form, self.bytes, offset)?.id)
    }

    /// Checks that the part alone has the same findings as in the whole file; returns how many more
    /// messages stand before it there.
    fn is_seen_alike(
        &self,
        first: usize,
        at: &Range<usize>,
        alone: &Standalone,
        report: &FileReport,
    ) -> Option<i64> {
        let from = self.findings.partition_point(|found| (found.offset as usize) < at.start);
        let found = self.findings[from..].iter();
        let mut whole: Vec<_> = found
            .take_while(|finding| (finding.offset as usize) < at.end || at.end == self.bytes.len())
            .map(|finding| (relative(finding, 0, 0), finding))
            .collect();
        let mut part: Vec<_> = report
            .findings
            .iter()
            .map(|finding| (relative(finding, alone.lines, alone.offset), finding))
            .collect();
        whole.sort_by(|(one, _), (other, _)| one.cmp(other));
        part.sort_by(|(one, _), (other, _)| one.cmp(other));
        if !whole.iter().map(|(seen, _)| seen).eq(part.iter().map(|(seen, _)| seen)) {
            return None;
        }
        let index = |found: &FileFinding| Some(found.finding.as_ref()?.message_index as i64);
        let shifts = whole.iter().zip(&part);
        let mut shifts =
            shifts.filter_map(|((_, whole), (_, part))| Some(index(whole)? - index(part)?));
        match shifts.next() {
            Some(shift) if shifts.all(|other| other == shift) => Some(shift),
            Some(_) => None,
            None => Some(self.messages_before(first)? - alone.messages_before as i64),
        }
    }

    /// How many messages stand before a stretch.
    fn messages_before(&self, stretch: usize) -> Option<i64> {
        let behind = self.messages.partition_point(|(first, _)| *first <= stretch);
        let &(first, before) = self.messages.get(behind.checked_sub(1)?)?;
        if first == stretch {
            return Some(before as i64);
        }
        let alone = self.alone(first, stretch - 1)?;
        let stubs = alone.messages_before + alone.messages_behind;
        let report = alone.check(&self.check)?;
        let between = report.messages.saturating_sub(stubs);
        Some((before + between) as i64)
    }
}

/// The entry of the record at `offset`.
fn entry_at(form: FileForm, bytes: &[u8], offset: usize) -> Option<Entry> {
    find_in_records(&bytes[offset..], |record| Some(Entry::read(form, record)))
}

/// The form in which the provider of the answer at `offset` was asked.
fn asked(form: FileForm, bytes: &[u8], offset: usize) -> Option<Format> {
    entry_at(form, bytes, offset)?.as_message()?.body.answered_in
}

/// A finding without its position among the messages, this many lines and bytes further on.
fn relative(finding: &FileFinding, lines: i64, bytes: i64) -> impl Ord {
    let (offset, line) = (finding.offset as i64 + bytes, finding.line as i64 + lines);
    let fault = format!("{:?} {:?}", finding.severity, finding.fault);
    let id = finding.finding.as_ref().and_then(|finding| finding.tool_use_id.clone());
    (offset, line, finding.length, fault, id)
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
