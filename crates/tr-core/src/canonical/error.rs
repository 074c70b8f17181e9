//! Why a text has no canonical form, and where.
use std::{error, fmt};

/// A text that has no canonical form; the tool did not run.
///
/// Names the byte and the JSON pointer of the first fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Fault>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    kind: ErrorKind,
    offset: usize,
    pointer: String,
}

/// What is wrong with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// It begins with a byte order mark.
    #[error("byte order mark")]
    ByteOrderMark,
    /// It is not UTF-8.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// It ends in the middle of a value, or is empty.
    #[error("unexpected end")]
    UnexpectedEnd,
    /// A byte stands where JSON allows none like it.
    #[error("unexpected byte")]
    UnexpectedByte,
    /// Something follows the value.
    #[error("trailing data after the value")]
    TrailingData,
    /// A control character stands unescaped in a string.
    #[error("unescaped control character")]
    ControlCharacter,
    /// JSON knows no such escape.
    #[error("invalid escape")]
    InvalidEscape,
    /// Half of a surrogate pair, escaped or encoded: no character at all.
    #[error("lone surrogate")]
    LoneSurrogate,
    /// `NaN` or `Infinity`.
    #[error("number is not finite")]
    NotFinite,
    /// A number too large for a double, such as `1e400`.
    #[error("number is too large")]
    NumberOverflow,
    /// Two members of an object have the same name once unescaped.
    #[error("duplicate member name")]
    DuplicateName,
    /// Arrays and objects nest deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    #[error("nested too deep")]
    TooDeep,
}

impl Error {
    #[cold]
    pub(super) fn new(kind: ErrorKind, offset: usize) -> Self {
        Self(Box::new(Fault { kind, offset, pointer: String::new() }))
    }

    /// The error as the container sees it: the pointer grows at its front as the reader unwinds.
    #[cold]
    pub(super) fn within(mut self, token: &str) -> Self {
        let token = escape(token);
        self.0.pointer = format!("/{token}{}", self.0.pointer);
        self
    }

    #[cold]
    pub(super) fn replaced(mut self, kind: ErrorKind, offset: usize) -> Self {
        (self.0.kind, self.0.offset) = (kind, offset);
        self
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Where, in bytes from the start of the text.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// The RFC 6901 JSON pointer of the invalid value; empty for the whole text.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.0.pointer
    }
}

/// A reference token as it stands in a pointer.
pub(crate) fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind(), self.offset())?;
        match self.pointer() {
            "" => Ok(()),
            pointer => write!(f, ", in {pointer}"),
        }
    }
}

impl error::Error for Error {}
