//! How a call of the model ended, and what its provider complains about.

/// How a call of the model ended, as far as it concerns the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelEnd {
    /// With an answer.
    Answered,
    /// A content filter stopped the answer, or the model's safety system refused.
    Filtered,
    /// The provider refuses the session, which needs a repair.
    Refused(Complaint),
    /// With any other failure.
    Failed,
}

/// A complaint about the session itself: every further call would get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Complaint {
    /// A use without its result.
    IncompleteUse,
    /// A result without its use.
    OrphanedResult,
    /// Two uses, or two items, with one id.
    DuplicateId,
    /// Two results for one use.
    SeveralResults,
    /// A thinking block that was changed, or is missing.
    Thinking,
    /// A text block without text.
    EmptyText,
    /// A use in a place where the provider does not accept one.
    Misplaced,
}

/// What a response says before its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Head {
    /// An answer follows.
    Answer,
    /// A failure, as by an HTTP status of 400 and above; the body has details.
    Failure,
    /// The body is compressed or otherwise encoded, and cannot be watched: it counts as answered
    /// when it ends.
    Encoded,
}
