//! What is wrong with a session file, and where.
use super::records::{SkipReason, Skipped};
use crate::{
    format::Format,
    validate::{Fault, Finding, Severity},
};
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
    /// An entry whose parent is missing or is one of its own descendants: agents then see nothing
    /// before it.
    PhantomParent,
    /// An entry whose message cannot be read: a member is duplicated, or the content is in the
    /// wrong place. It is left unchanged and not judged.
    UnreadMessage,
    /// An entry of the branch whose position is uncertain: the entry before it or the call that it answers is
    /// missing, another entry with its id differs, or (Claude Code) it has no `parentUuid`. The file is neither
    /// judged nor repaired.
    UnsurePlace,
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
    /// The index among the messages that the model would be sent.
    pub message_index: Option<usize>,
    /// The id of the tool use.
    pub tool_use_id: Option<Box<str>>,
    /// The validator's finding, if the fault is in a message.
    pub(super) finding: Option<Finding>,
}

impl FileFault {
    /// Whether it says that something is not understood, so that the provider's verdict is not
    /// known.
    #[must_use]
    pub const fn is_not_judged(self) -> bool {
        match self {
            Self::Message(fault) => fault.is_not_judged(),
            fault => matches!(
                fault,
                Self::UnreadMessage | Self::UnsurePlace | Self::Skipped(SkipReason::TooLong)
            ),
        }
    }
}

impl FileFinding {
    pub(super) fn of_message(finding: Finding, line: u64, offset: u64) -> Self {
        Self {
            fault: FileFault::Message(finding.fault),
            severity: finding.severity,
            line,
            offset,
            length: 0,
            message_index: Some(finding.message_index),
            tool_use_id: finding.tool_use_id.clone(),
            finding: Some(finding),
        }
    }

    /// The same for a provider that is asked in this form.
    pub(super) fn asked(mut self, asked: Option<Format>) -> Self {
        if let Some(finding) = self.finding.take() {
            let finding = finding.asked(asked);
            self.severity = finding.severity;
            self.finding = Some(finding);
        }
        self
    }

    /// The same for a file with more, or less, before it.
    pub(super) fn shifted(mut self, lines: i64, bytes: i64, messages: i64) -> Self {
        self.line = self.line.saturating_add_signed(lines);
        self.offset = self.offset.saturating_add_signed(bytes);
        let message = |at: usize| at.saturating_add_signed(messages as isize);
        self.message_index = self.message_index.map(message);
        if let Some(finding) = &mut self.finding {
            finding.message_index = message(finding.message_index);
        }
        self
    }

    pub(super) fn of_skipped(skipped: Skipped) -> Self {
        let fault = FileFault::Skipped(skipped.why);
        let Skipped { offset, length, line, .. } = skipped;
        Self { length, ..Self::of_record(fault, line, offset) }
    }

    pub(super) fn of_record(fault: FileFault, line: u64, offset: u64) -> Self {
        let severity = match fault {
            FileFault::Glued | FileFault::SharedLine | FileFault::PhantomParent => Severity::Error,
            _ => Severity::Warning,
        };
        let (message_index, tool_use_id, finding) = (None, None, None);
        Self { fault, severity, line, offset, length: 0, message_index, tool_use_id, finding }
    }

    /// The number of the validation rule that it breaks, 1 to 3; 0 for other faults.
    #[must_use]
    pub const fn rule(&self) -> u8 {
        match self.fault {
            FileFault::Message(fault) => fault.rule(),
            _ => 0,
        }
    }

    /// The validator's finding with its block; `None` if the fault is the file's.
    #[must_use]
    pub const fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }

    /// The text with which the provider would refuse the session; `None` if it would not.
    #[must_use]
    pub fn provider_error(&self) -> Option<String> {
        self.finding.as_ref()?.provider_error()
    }
}

/// Without line and offset.
impl fmt::Display for FileFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (length, plural) = (self.length, if self.length == 1 { "" } else { "s" });
        match (self.fault, &self.finding) {
            (_, Some(finding)) => finding.fmt(f),
            (FileFault::Skipped(SkipReason::Torn), _) => {
                write!(f, "Torn record: {length} byte{plural}")
            }
            (FileFault::Skipped(SkipReason::Nul), _) => {
                write!(f, "Run of {length} NUL byte{plural}")
            }
            (FileFault::Skipped(SkipReason::NotUtf8), _) => {
                write!(f, "Invalid UTF-8: {length} byte{plural}")
            }
            (FileFault::Skipped(SkipReason::TooLong), _) => {
                write!(f, "Line too long to be checked: {length} bytes")
            }
            (FileFault::Glued, _) => f.write_str("Record behind another on its line"),
            (FileFault::SharedLine, _) => f.write_str("Record on a line with other bytes"),
            (FileFault::PhantomParent, _) => {
                f.write_str("Entry whose parent is missing or one of its descendants")
            }
            (FileFault::UnreadMessage, _) => f.write_str("Message that cannot be read"),
            (FileFault::UnsurePlace, _) => f.write_str("Record whose position is uncertain"),
            (FileFault::Message(_), None) => f.write_str("Invalid message"),
        }
    }
}
