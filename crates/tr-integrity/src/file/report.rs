//! What came of a check of a session file.
use super::{finding::FileFinding, form::FileForm};

/// What came of a check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileReport {
    /// The file's form.
    pub form: FileForm,
    /// What is wrong, by the place in the file; the first ones, up to the limit.
    pub findings: Vec<FileFinding>,
    /// How many findings there are in all.
    pub found: u64,
    /// How many of them are errors: with these the session cannot go on.
    pub errors: u64,
    /// How the bytes of the file are spread.
    pub bytes: FileBytes,
    /// How many lines there are; a last one without an end counts.
    pub lines: u64,
    /// How many records there are.
    pub records: u64,
    /// How many of them stand whole on their lines and have the shape of this form's records.
    pub own_records: u64,
    /// How many records stand whole on their lines and have not.
    pub other_records: u64,
    /// How many lines hold something that is no record.
    pub torn_lines: u64,
    /// Whether it was read to its end; otherwise what is counted is counted up to where it was.
    pub is_whole: bool,
    /// In a [bounded](crate::FileCheck::bounded) check, the first line with a message that has more
    /// than 10,000 blocks, or a block with more than 10,000 members: no model and no agent writes
    /// such. It is not looked into, and the session cannot be judged.
    pub too_much: Option<u64>,
    /// How many messages the model would be sent.
    pub messages: usize,
    /// The uses of the live tail that wait for their results.
    pub pending: Vec<Box<str>>,
    /// The API of the last answer, if its provider's rules are not known.
    pub unknown_api: Option<Box<str>>,
}

/// How the bytes of a file are spread: `total` is the sum of the others.
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
    /// Whether the session can go on: warnings don't count.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.errors == 0
    }

    /// Whether the file is a session by evidence: most of its lines are records of its form. In
    /// what is something else, a message may stand all the same.
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
