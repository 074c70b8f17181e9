//! The result of a check of a session file: what is wrong with it, and where.
use super::{
    form::FileForm,
    records::{SkipReason, Skipped},
};
use crate::validate::{Fault, Finding, Severity};
use serde::Serialize;
use std::fmt;

/// What is wrong with a session file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileFault {
    /// A record after another one on the same line: harnesses then read neither.
    Glued,
    /// A record on a line with other bytes: harnesses then do not read it.
    SharedLine,
    /// An entry whose parent is missing: agents then see nothing before it.
    PhantomParent,
    /// An entry whose parent is one of its own descendants: agents then see nothing before them.
    ParentCycle,
    /// An entry whose message cannot be read: a member is duplicated, or the content is in the
    /// wrong place. It is left unchanged and not judged.
    UnreadMessage,
    /// An entry of the branch whose position is uncertain: the entry before it or the call that it answers is
    /// missing, another entry with its id differs, or (Claude Code) it has no `parentUuid`. The file is neither
    /// judged nor repaired.
    UnsurePlace,
    /// A record of Codex's whose ordinal is not above those before it: Codex then does not show it. The model is
    /// sent it.
    OldOrdinal,
    /// In the messages that the model would be sent.
    #[serde(untagged)]
    Message(Fault),
    /// Bytes that are no record.
    #[serde(untagged)]
    Skipped(SkipReason),
}

/// One thing that is wrong with a session file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFinding {
    /// What.
    pub fault: FileFault,
    /// Whether the session can go on with it.
    pub severity: Severity,
    /// On which line, from 1.
    pub line: u64,
    /// The byte offset of the record, or of the bytes that are no record.
    pub offset: u64,
    /// How many bytes are no record; 0 for findings about records.
    pub length: u64,
    /// The validator's finding, with its message and block; `None` if the fault is the file's.
    pub finding: Option<Finding>,
    /// The id of the parent that is missing or a descendant.
    pub parent: Option<Box<str>>,
}

impl FileFault {
    /// Whether it is about an entry's parent.
    #[must_use]
    pub const fn is_of_parent(self) -> bool {
        matches!(self, Self::PhantomParent | Self::ParentCycle)
    }

    /// Whether it says that something is not understood, so that the provider's verdict is not
    /// known.
    #[must_use]
    pub const fn is_not_judged(self) -> bool {
        match self {
            Self::Message(fault) => fault.is_not_judged(),
            Self::UnreadMessage | Self::UnsurePlace | Self::Skipped(SkipReason::TooLong) => true,
            _ => false,
        }
    }
}

impl FileFinding {
    pub(super) fn of_message(finding: Finding, line: u64, offset: u64) -> Self {
        let (fault, severity) = (FileFault::Message(finding.fault), finding.severity);
        Self { severity, finding: Some(finding), ..Self::of_record(fault, line, offset) }
    }

    pub(super) fn of_skipped(skipped: Skipped) -> Self {
        let fault = FileFault::Skipped(skipped.why);
        let Skipped { offset, length, line, .. } = skipped;
        Self { length, ..Self::of_record(fault, line, offset) }
    }

    pub(super) fn of_record(fault: FileFault, line: u64, offset: u64) -> Self {
        let severity = match fault {
            FileFault::Glued
            | FileFault::SharedLine
            | FileFault::Skipped(SkipReason::LineBreak) => Severity::Error,
            fault if fault.is_of_parent() => Severity::Error,
            _ => Severity::Warning,
        };
        Self { fault, severity, line, offset, length: 0, finding: None, parent: None }
    }
}

/// Without line and offset.
impl fmt::Display for FileFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (length, plural) = (self.length, if self.length == 1 { "" } else { "s" });
        if let Some(finding) = &self.finding {
            return finding.fmt(f);
        }
        match self.fault {
            FileFault::Skipped(SkipReason::Torn) => write!(f, "Torn record: {length} byte{plural}"),
            FileFault::Skipped(SkipReason::Nul) => write!(f, "Run of {length} NUL byte{plural}"),
            FileFault::Skipped(SkipReason::NotUtf8) => {
                write!(f, "Invalid UTF-8: {length} byte{plural}")
            }
            FileFault::Skipped(SkipReason::TooLong) => {
                write!(f, "Line too long to be checked: {length} bytes")
            }
            FileFault::Skipped(SkipReason::LineBreak) => f.write_str("Raw line break in a string"),
            FileFault::Glued => f.write_str("Record behind another on its line"),
            FileFault::SharedLine => f.write_str("Record on a line with other bytes"),
            FileFault::PhantomParent => f.write_str("Entry whose parent is missing"),
            FileFault::ParentCycle => f.write_str("Entry whose parent is one of its descendants"),
            FileFault::UnreadMessage => f.write_str("Message that cannot be read"),
            FileFault::OldOrdinal => f.write_str("Ordinal that is not above those before it"),
            FileFault::UnsurePlace => f.write_str("Record whose position is uncertain"),
            FileFault::Message(_) => f.write_str("Invalid message"),
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FileReport {
    /// The file's form.
    pub form: FileForm,
    /// What is wrong, in the order of the file; the first ones, up to the limit, and of those
    /// behind them the first of each kind that is not among them.
    pub findings: Vec<FileFinding>,
    /// How many findings there are in all.
    pub found: u64,
    /// How many of them are errors, with which the session cannot go on.
    pub errors: u64,
    /// What the bytes of the file are.
    pub bytes: FileBytes,
    /// How many records there are.
    pub records: u64,
    /// How many records fill their lines and have the shape of this form's records.
    pub own_records: u64,
    /// How many records fill their lines and have another shape.
    pub other_records: u64,
    /// How many lines hold something that is no record.
    pub torn_lines: u64,
    /// Whether the file was read to its end; otherwise the counts cover the part that was read.
    pub is_whole: bool,
    /// In a [bounded](crate::FileCheck::bounded) check, the first line with a message that has more
    /// than 10,000 blocks, or a block with more than 10,000 members: no model and no agent writes
    /// such messages. It is not parsed, and the session cannot be judged.
    pub too_much: Option<u64>,
    /// How many messages the model would be sent.
    pub messages: usize,
    /// Where each of them begins, if that is noted.
    pub(super) places: Vec<u64>,
    /// The uses of the live tail that wait for their results.
    pub pending: Vec<Box<str>>,
    /// The API of the last answer, if its provider's rules are not known.
    pub unknown_api: Option<Box<str>>,
}

/// The number of bytes by kind: `total` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileBytes {
    /// All.
    pub total: u64,
    /// Those of records.
    pub records: u64,
    /// Those that are no record.
    pub skipped: u64,
    /// White space, line ends and the byte order mark between them.
    pub separators: u64,
}

impl FileReport {
    /// Whether the session can go on: warnings do not count.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.errors == 0
    }

    /// Whether the file is a session, judged by whether most of its lines are records of its form.
    /// Other files may also contain messages.
    #[must_use]
    pub fn is_session(&self) -> bool {
        let Self { own_records, other_records, torn_lines, .. } = *self;
        self.form != FileForm::Other && own_records > other_records && own_records >= torn_lines
    }

    /// Whether nothing is wrong, not even a warning.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.found == 0
    }
}
