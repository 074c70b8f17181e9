//! Checks a session file while it is read, in bounded memory.
use super::{
    branch::Branch,
    evidence::Evidence,
    finding::{FileFault, FileFinding, FileReport},
    form::FileForm,
    located::Place,
    outline::read,
    records::{Piece, Record, Records},
};
use crate::{format::Format, json::Members, validate::Severity};
use std::{
    collections::HashSet,
    io::{self, Read},
    mem,
};

/// Plain messages are held back until a record tells the form, up to this many.
const UNDECIDED_PIECES: usize = 1_000;
const UNDECIDED_BYTES: usize = 4 << 20;

/// More blocks than any model or agent writes in a message, and more members than in a block.
const MOST: usize = 10_000;

/// The memory limit for the structure of the newest entries.
const DEFAULT_WINDOW: usize = 8 << 20;

/// Checks a session file while it is read, in bounded memory.
///
/// Validates the messages that the model would be sent: those of the active branch, after its last
/// compaction or reset. Other branches and sidechains are not validated. A live tail is no finding.
///
/// ```
/// use tr_transcript::FileCheck;
///
/// let file = br#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}
/// {"type":"message","id":"a","parentId":null,"message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"pay","arguments":{}}]}}
/// {"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"did it work?"}}
/// "#;
/// let report = FileCheck::new().run(&file[..], |_bytes_done| {})?;
/// assert_eq!(report.findings[0].line, 2);
/// assert_eq!(report.findings[0].to_string(), "Incomplete tool_use: c");
/// # Ok::<_, std::io::Error>(())
/// ```
///
/// # Memory
///
/// The longest record, a few bytes for each tool id in use, and the structure of the newest entries
/// up to the window (8 MiB). Entries older than the window count as sent: a branch that begins there,
/// or a compaction that keeps something from there, is not followed back.
#[derive(Clone, Debug)]
#[must_use]
pub struct FileCheck {
    pub(super) form: Option<FileForm>,
    pub(super) max_record: usize,
    pub(super) max_findings: usize,
    pub(super) window: usize,
    pub(super) members: bool,
    /// The form in which the provider is asked.
    pub(super) asked: Option<Format>,
    /// Whether to note where each message begins.
    pub(super) notes: bool,
    pub(super) length: Option<u64>,
}

impl Default for FileCheck {
    fn default() -> Self {
        Self {
            form: None,
            max_record: 16 << 20,
            max_findings: 10_000,
            window: DEFAULT_WINDOW,
            members: false,
            asked: None,
            notes: false,
            length: None,
        }
    }
}

impl FileCheck {
    /// With the defaults. Keeps 10,000 findings and the first of each further kind, and counts the
    /// others.
    pub fn new() -> Self {
        Self::default()
    }

    /// Settings for a file of this many bytes that is in memory anyway: looks into all lines, and
    /// keeps the structure of the newest entries in half the file's size.
    pub fn in_memory(len: usize) -> Self {
        Self { max_record: usize::MAX, window: DEFAULT_WINDOW.max(len / 2), ..Self::default() }
    }

    /// Reads the file as this form, whatever its content says.
    pub const fn form(mut self, form: FileForm) -> Self {
        self.form = Some(form);
        self
    }

    /// Also looks at what the provider refuses on its own: see
    /// [`Validator::with_members`](crate::Validator::with_members).
    pub const fn with_members(mut self) -> Self {
        self.members = true;
        self
    }

    /// Does not look into lines longer than this many bytes; 16 MiB by default.
    pub const fn max_record(mut self, bytes: usize) -> Self {
        self.max_record = bytes;
        self
    }

    /// Remembers the structure of the newest entries in about this many bytes; 8 MiB by default.
    pub const fn window(mut self, bytes: usize) -> Self {
        self.window = bytes;
        self
    }

    /// For a file of this many bytes that may be anything: reads no more than a session needs. Once
    /// the rest of the file cannot make it a session any more, it is not read
    /// ([`FileReport::is_whole`]). A message with more than 10,000 blocks, or with a block of more
    /// than 10,000 members, is not parsed ([`FileReport::too_much`]).
    pub const fn bounded(mut self, bytes: u64) -> Self {
        self.length = Some(bytes);
        self
    }

    const fn most(&self) -> usize {
        if self.length.is_some() { MOST } else { usize::MAX }
    }

    /// Reads and checks a file. Calls `progress` after each record with the number of bytes read.
    ///
    /// # Errors
    /// Those of reading; never because of what the file holds.
    pub fn run<R: Read>(&self, read: R, mut progress: impl FnMut(u64)) -> io::Result<FileReport> {
        let mut records = Records::new(read).max_record(self.max_record);
        let mut run = Run::new(self);
        while let Some(piece) = records.next()? {
            let refused = run.take(piece);
            if let Some((offset, is_glued)) = refused {
                records.distrust(offset, is_glued);
            } else if run.branch.is_some() {
                records.trust();
            }
            progress(records.position());
            let rest = self.length.map(|length| length.saturating_sub(records.position()));
            let is_against = |rest| run.branch.is_some() && run.evidence.is_against(rest);
            if rest.is_some_and(|rest| rest > 0 && is_against(rest)) {
                run.report.is_whole = false;
                break;
            }
        }
        let total = records.position();
        progress(total);
        Ok(run.finish(total))
    }
}

/// A running check.
struct Run<'c> {
    check: &'c FileCheck,
    /// The branch of a file whose form is known.
    branch: Option<Branch>,
    /// The pieces from the first record on, before the form is known.
    held: Vec<Piece<'static>>,
    held_bytes: usize,
    /// The highest ordinal of Codex's records.
    ordinal: Option<u64>,
    /// The kinds of the findings kept, once there are more than are kept.
    kinds: Option<HashSet<FileFault>>,
    evidence: Evidence,
    /// What is known of the report so far.
    report: FileReport,
}

impl<'c> Run<'c> {
    fn new(check: &'c FileCheck) -> Self {
        let mut run = Self {
            check,
            branch: None,
            held: Vec::new(),
            held_bytes: 0,
            ordinal: None,
            kinds: None,
            evidence: Evidence::default(),
            report: FileReport { is_whole: true, ..FileReport::default() },
        };
        check.form.into_iter().for_each(|form| run.decide(form));
        run
    }

    /// Takes a piece; returns the place of a record that is no JSON.
    fn take(&mut self, piece: Piece<'_>) -> Option<(u64, bool)> {
        match piece {
            Piece::Record(record) if self.branch.is_some() => {
                let (offset, is_glued) = (record.offset, record.is_glued);
                return (!self.record(&record)).then_some((offset, is_glued));
            }
            Piece::Skipped(skipped) if self.branch.is_some() || self.held.is_empty() => {
                self.report.bytes.skipped += skipped.length;
                let shared = self.evidence.skipped(&skipped);
                self.find(FileFinding::of_skipped(skipped));
                self.share(shared, skipped.line);
            }
            piece => self.hold(piece),
        }
        None
    }

    /// Holds a piece back until the form is known.
    fn hold(&mut self, piece: Piece<'_>) {
        let mut told = None;
        self.held.push(match piece {
            Piece::Skipped(skipped) => Piece::Skipped(skipped),
            Piece::Record(record) => {
                told = FileForm::detect(&record.text);
                self.held_bytes += record.text.len();
                Piece::Record(record.into_owned())
            }
        });
        let is_too_much = self.held.len() >= UNDECIDED_PIECES || self.held_bytes >= UNDECIDED_BYTES;
        if let Some(form) = told {
            self.decide(form);
        } else if is_too_much {
            self.decide_plain();
        }
    }

    fn decide_plain(&mut self) {
        let records = self.held.iter().filter_map(|piece| match piece {
            Piece::Record(record) => Some(&*record.text),
            Piece::Skipped(_) => None,
        });
        self.decide(records.fold(FileForm::Other, FileForm::or_plain));
    }

    fn decide(&mut self, form: FileForm) {
        self.report.form = form;
        let FileCheck { window, members, notes, .. } = *self.check;
        self.branch = Some(Branch::new(form, window, members, notes));
        for piece in mem::take(&mut self.held) {
            // Those that were held are JSON.
            self.take(piece);
        }
    }

    /// Takes a record; `false` if it is no JSON.
    fn record(&mut self, record: &Record<'_>) -> bool {
        let (line, offset, form) = (record.line, record.offset, self.report.form);
        let Some(outline) = read(form, &record.text, self.check.most()) else { return false };
        let shared = self.evidence.record(record, outline.is_own);
        if outline.is_too_much {
            self.report.too_much.get_or_insert(line);
            self.find(FileFinding::of_record(FileFault::UnreadMessage, line, offset));
        }
        let place = Place { number: self.report.records, line, offset };
        if let Some(branch) = &mut self.branch {
            branch.push(outline.entry, place);
        }
        self.order(&record.text, place);
        self.report.records += 1;
        self.report.bytes.records += record.length - record.invalid;
        if record.is_glued {
            self.find(FileFinding::of_record(FileFault::Glued, line, offset));
        }
        self.share(shared, line);
        true
    }

    /// Compares the ordinal of a record of Codex's with those before it.
    fn order(&mut self, record: &str, Place { line, offset, .. }: Place) {
        if self.report.form != FileForm::Codex || !record.contains("\"ordinal\"") {
            return;
        }
        let ordinal = Members::of(record, &["ordinal"]).unwrap_or_default().get("ordinal");
        let Some(ordinal) = ordinal.and_then(|it| it.get().parse().ok()) else { return };
        if self.ordinal.is_some_and(|last| ordinal <= last) {
            self.find(FileFinding::of_record(FileFault::OldOrdinal, line, offset));
        }
        self.ordinal = self.ordinal.max(Some(ordinal));
    }

    /// Of the findings beyond the limit only the first of each kind is kept, so that the kept ones
    /// tell whether something is not understood.
    fn find(&mut self, finding: FileFinding) {
        self.report.found += 1;
        self.report.errors += u64::from(finding.severity == Severity::Error);
        let kept = &mut self.report.findings;
        if kept.len() >= self.check.max_findings {
            let kinds = || kept.iter().map(|finding| finding.fault).collect();
            if !self.kinds.get_or_insert_with(kinds).insert(finding.fault) {
                return;
            }
        }
        kept.push(finding);
    }

    /// Notes that the record at `offset` shares its line.
    fn share(&mut self, offset: Option<u64>, line: u64) {
        if let Some(offset) = offset {
            self.find(FileFinding::of_record(FileFault::SharedLine, line, offset));
        }
    }

    fn finish(mut self, total: u64) -> FileReport {
        if self.branch.is_none() {
            self.decide_plain();
        }
        if let Some(mut walk) = self.branch.take().and_then(Branch::finish) {
            self.report.messages = walk.validator.len();
            self.report.places = walk.noted.take().unwrap_or_default();
            self.report.pending.extend(walk.validator.pending().map(Into::into));
            self.report.unknown_api = walk.unknown_api.take();
            for finding in walk.take_findings(self.check.asked) {
                self.find(finding);
            }
        }
        let Self { evidence, mut report, .. } = self;
        report.findings.sort_by_key(|finding| finding.offset);
        (report.own_records, report.other_records, report.torn_lines) = evidence.finish();
        report.bytes.total = total;
        report.bytes.separators = total - report.bytes.records - report.bytes.skipped;
        report
    }
}
