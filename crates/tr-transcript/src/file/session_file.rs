//! A session file in memory, for edits.
use super::{
    check::FileCheck,
    drafts::{self, Draft},
    entry::{Entry, What},
    finding::FileReport,
    form::FileForm,
    located::{Located, Place},
    path::{self, Path},
    records::{Piece, Record, Records, Skipped},
    recover::on_one_line,
    relink,
};
use crate::{
    format::{Applies, Format},
    message::Message,
    transcript::Transcript,
};
use std::{borrow::Cow, fmt, ops::Range};

/// A session file in memory, for edits.
///
/// Unedited parts are written back byte for byte, including bytes that are no record; an edit
/// changes only the lines that it must.
///
/// ```
/// use tr_transcript::{Repair, SessionFile};
///
/// let file = br#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}
/// {"type":"message","id":"a","parentId":null,"message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"pay","arguments":{}}]}}
/// {"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"did it work?"}}
/// "#;
/// let mut session = SessionFile::read(&file[..]);
/// assert_eq!(session.to_bytes(), file);
///
/// let plan = session.plan(Repair::preserve());
/// assert_eq!(plan.actions.len(), 2); // the missing result, and what follows it is linked to it
/// session.apply(plan)?;
/// assert!(session.check().is_clean());
/// # Ok::<_, tr_transcript::StalePlan>(())
/// ```
#[derive(Clone)]
pub struct SessionFile {
    pub(super) bytes: Box<[u8]>,
    form: FileForm,
    pub(super) parts: Vec<PartOfFile>,
    pub(super) spans: Vec<RecordSpan>,
    /// The entry of each record.
    pub(super) entries: Vec<Located>,
    pub(super) is_linked: bool,
    /// The form in which the provider is asked, if that is known from elsewhere.
    pub(super) asked: Option<Format>,
}

/// A piece of the file.
#[derive(Clone, Copy, Debug)]
pub(super) enum PartOfFile {
    Record(usize),
    Skipped(Skipped),
}

/// Where a record is.
#[derive(Clone, Debug)]
pub(super) struct RecordSpan {
    pub(super) at: Range<usize>,
    pub(super) is_glued: bool,
}

impl SessionFile {
    /// Reads a file; this never fails.
    #[must_use]
    pub fn read(bytes: impl Into<Box<[u8]>>) -> Self {
        Self::read_as(None, bytes.into(), None)
    }

    /// Reads a file whose form may be known, and the form in which the provider is asked.
    pub(super) fn read_as(form: Option<FileForm>, bytes: Box<[u8]>, asked: Option<Format>) -> Self {
        let form = form.unwrap_or_else(|| FileForm::of(&bytes));
        let (mut parts, mut spans, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        let mut records = Records::new(&*bytes).max_record(usize::MAX);
        // Reading a slice cannot fail.
        while let Ok(Some(piece)) = records.next() {
            match piece {
                Piece::Skipped(skipped) => parts.push(PartOfFile::Skipped(skipped)),
                Piece::Record(record) => {
                    parts.push(PartOfFile::Record(spans.len()));
                    let Record { line, offset, length, is_glued, .. } = record;
                    let (entry, number) = (Entry::read(form, &record.text), spans.len() as u64);
                    entries.push(Located { entry, place: Place { number, line, offset } });
                    let at = offset as usize..(offset + length) as usize;
                    spans.push(RecordSpan { at, is_glued });
                }
            }
        }
        relink::link(&mut entries, false);
        for at in 0..entries.len() {
            if let What::Undone(turns) = entries[at].entry.what {
                relink::undo(&mut entries[..at], turns, false);
                entries[at].entry.what = What::Outside;
            }
        }
        let is_linked = path::is_linked(&entries);
        Self { bytes, form, parts, spans, entries, is_linked, asked }
    }

    /// Its form.
    #[must_use]
    pub fn form(&self) -> FileForm {
        self.form
    }

    /// A copy of the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes.to_vec()
    }

    /// Checks it as [`FileCheck`] does while reading; here no line is too long.
    #[must_use]
    pub fn check(&self) -> FileReport {
        self.check_as(None, false)
    }

    /// The same in this form, if it is known; with `members` also what the provider refuses on its
    /// own.
    pub(super) fn check_as(&self, form: Option<FileForm>, members: bool) -> FileReport {
        FileCheck { form, members, asked: self.asked, ..FileCheck::in_memory(usize::MAX) }
            .run(&*self.bytes, |_| {})
            .unwrap_or_else(|error| unreachable!("a slice can always be read: {error}"))
    }

    /// The messages that the model would be sent; `None` if the form is not known.
    ///
    /// Lines that form one message for the model are one message here. In OpenClaw's form, an entry
    /// that stands for something else (a summary, a custom message) is a user's message with the
    /// text `…`.
    #[must_use]
    pub fn transcript(&self) -> Option<Transcript> {
        let (path, drafts) = self.branch();
        self.transcript_of(&path, &drafts)
    }

    /// The active branch, and its messages.
    pub(super) fn branch(&self) -> (Path, Vec<Draft>) {
        let path = Path::active(self.form, &self.entries, false, self.is_linked);
        let drafts = drafts::drafts(self.form, &self.entries, &path);
        (path, drafts)
    }

    pub(super) fn transcript_of(&self, path: &Path, drafts: &[Draft]) -> Option<Transcript> {
        let mut transcript = Transcript::new(self.form.messages()?);
        (transcript.continues, transcript.asked) = (path.rewritten.is_some(), self.asked);
        let is_other =
            |located: &Located| matches!(located.entry.what, What::Header { is_openais: false });
        let is_other = self.entries.iter().any(is_other);
        transcript.applies = Applies { is_other, ..self.form.applies() };
        drafts.iter().for_each(|draft| transcript.push(self.message(draft)));
        Some(transcript)
    }

    /// The message that a draft describes.
    fn message(&self, draft: &Draft) -> Message {
        if draft.is_summary || draft.is_filled || draft.is_one_entry() {
            return draft.to_skeleton(&self.entries).into_owned();
        }
        let role = if draft.role == crate::Role::User { "user" } else { "assistant" };
        let blocks = draft.blocks.iter().map(|&at| self.block(at));
        let blank = |_| r#"{"type":"text","text":""}"#.to_owned();
        let blocks: Vec<_> = blocks.chain(draft.blanks(&self.entries).map(blank)).collect();
        let raw = format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(","));
        // It is assembled from blocks that were read.
        crate::Format::AnthropicMessages.own(raw)
    }

    /// The text of a block of an entry's message, as an element of a list of blocks.
    pub(super) fn block(&self, (entry, block): (usize, usize)) -> String {
        let message = self.entries[entry].entry.as_message();
        let (Some(message), Some(format)) = (message, self.form.messages()) else {
            return String::new();
        };
        format.listed(message, &message.blocks()[block], None)
    }

    /// The text of a record.
    pub(super) fn text(&self, record: usize) -> Cow<'_, str> {
        on_one_line(&self.bytes[self.spans[record].at.clone()])
    }
}

impl fmt::Debug for SessionFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionFile")
            .field("form", &self.form)
            .field("bytes", &self.bytes.len())
            .field("records", &self.entries.len())
            .finish_non_exhaustive()
    }
}
