//! The result of a check of a session file.
use super::{finding::FileFinding, form::FileForm};

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
