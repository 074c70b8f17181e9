//! [`Finding`], the result of every function of this module: a classification, and its reason.
use super::{Kind, reason};
use crate::{Classification, Ran, ToolError, Verdict};
use std::mem;

/// The result of classifying an error: the classification that layers use, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding<'r> {
    /// The classification that layers use.
    pub end: Classification<'r>,
    /// The kind that the tables found; `None` for a success, or if the error was classified before.
    pub kind: Option<Kind>,
    /// The HTTP status that the error has or names.
    pub status: Option<u16>,
    /// Why, where it is not for the kind's reason.
    overruled: Option<&'static str>,
    /// Where the code or the status comes from, if it was not found in the text.
    structured: Option<Structured>,
    /// The error that was classified before: kind and status are in its code and text.
    pub(super) stamped: Option<&'r ToolError>,
}

/// What an error says in fields of its own, not in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Structured {
    Code,
    Status(u16),
}

impl<'r> Finding<'r> {
    pub(super) const fn of(kind: Kind) -> Self {
        let end = kind.classification();
        Self { kind: Some(kind), ..Self::judged(end) }
    }

    /// What a status or a code means by itself.
    pub(super) fn by_code(end: Classification<'static>) -> Self {
        Self { kind: Kind::from_code(end.code), ..Self::judged(end) }
    }

    /// A classification that was made before.
    pub(super) const fn judged(end: Classification<'r>) -> Self {
        let (kind, status, overruled, structured) = (None, None, None, None);
        Self { end, kind, status, overruled, structured, stamped: None }
    }

    /// The classification that was written into the error.
    pub(super) fn stamped(error: &'r ToolError, verdict: Verdict) -> Self {
        let mut end = Classification::new(verdict, error.ran, &error.code);
        end.exhausted = error.exhausted;
        Self { stamped: Some(error), ..Self::judged(end) }
    }

    pub(super) const fn status(mut self, status: Option<u16>) -> Self {
        self.status = status;
        self
    }

    /// For an error about a call that the tool itself made: neither it nor what a manifest declares
    /// for its code proves that this call did not run.
    pub(super) const fn without_proof_of_no_run(mut self) -> Self {
        self.structured = None;
        self.end = self.end.of_handler();
        self
    }

    pub(super) const fn structured(mut self, structured: Structured) -> Self {
        self.structured = Some(structured);
        self
    }

    pub(super) fn overruled(mut self, verdict: Verdict, reason: &'static str) -> Self {
        self.end.verdict = match (self.end.verdict, verdict) {
            (hinted @ Verdict::Transient { .. }, Verdict::TRANSIENT) => hinted,
            (_, verdict) => verdict,
        };
        // `Ran::Yes` assumed a refusal, and now it is known that it was none.
        if verdict.is_transient() && self.end.ran == Ran::Yes {
            self.end.ran = Ran::Unknown;
        }
        self.overruled = Some(reason);
        self
    }

    /// Why, in one sentence for people; empty for a success.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        if let Some(reason) = self.overruled {
            return reason;
        }
        let same = |kind: &Kind| {
            mem::discriminant(&kind.verdict()) == mem::discriminant(&self.end.verdict)
        };
        let kind = self.kind.or_else(|| Kind::from_code(self.end.code)).filter(same);
        match (kind, self.end.verdict) {
            (Some(kind), _) => kind.reason(),
            (None, Verdict::Success) => "",
            (None, Verdict::Transient { .. }) => reason::UNCLASSIFIED,
            (None, Verdict::Permanent) => reason::PERMANENT,
            (None, Verdict::Cancelled) => Kind::Cancelled.reason(),
        }
    }

    /// Whether `key` is the error's own code or status.
    pub(super) fn says(&self, key: &str) -> bool {
        match self.structured {
            None => false,
            Some(Structured::Code) => key.eq_ignore_ascii_case(self.end.code),
            Some(Structured::Status(status)) => key.parse() == Ok(status),
        }
    }

    /// Whether `key` names the error: by its own code, its kind's, or its status.
    pub(super) fn is(&self, key: &str) -> bool {
        key.eq_ignore_ascii_case(self.end.code)
            || self.kind.is_some_and(|kind| key.eq_ignore_ascii_case(kind.code()))
            || self.status.is_some_and(|status| key.parse() == Ok(status))
    }
}
