//! How an attempt ends: with an answer, or why there is none; and errors as text.
use crate::secrets::without;
use bytes::Bytes;
use std::{borrow::Cow, error::Error, fmt::Write as _, ops::Range, time::Duration};
use tool_reliability::idempotency::store::StoreError;
use tr_core::{FailureInfo, Ran, ToolOutcome, Verdict, code};

/// The server did not answer an attempt.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    message: Cow<'static, str>,
    #[source]
    facts: FailureInfo,
}

impl Failure {
    /// Permanent: the server is not started again, so no retry can help.
    pub(crate) const SERVER_GONE_BEFORE: Self = Self::new(
        "The MCP server has ended; the tool did not run",
        FailureInfo::new("server_gone", Ran::No, Verdict::Permanent),
    );
    pub(crate) const SERVER_GONE: Self = Self::new(
        "The MCP server ended before it answered",
        FailureInfo::new("server_gone", Ran::Unknown, Verdict::Permanent),
    );
    /// The server is started again: what is safe to repeat is.
    pub(crate) const SERVER_CRASHED: Self = Self::new(
        "The MCP server crashed before it answered; it is started again",
        FailureInfo::new("server_gone", Ran::Unknown, Verdict::TRANSIENT),
    );
    /// Of a server that is not started again, too.
    pub(crate) const GONE_OR_TOO_LONG: Self = Self::new(
        "The MCP server ended, or its answer was too long to read",
        FailureInfo::new("server_gone", Ran::Unknown, Verdict::Permanent),
    );
    pub(crate) const UNANSWERED: Self = Self::new(
        "The MCP server's response ended without an answer",
        FailureInfo::new("server_gone", Ran::Unknown, Verdict::TRANSIENT),
    );
    pub(crate) const CANCELLED_BEFORE: Self = Self::new(
        "The call was cancelled; the tool did not run",
        FailureInfo::new(code::CANCELLED, Ran::No, Verdict::Cancelled),
    );
    pub(crate) const CANCELLED: Self = Self::new(
        "The call was cancelled",
        FailureInfo::new(code::CANCELLED, Ran::Unknown, Verdict::Cancelled),
    );

    /// An equal call was given up, and has succeeded since.
    pub(crate) const RAN_BEFORE: Self = Self::new(
        "The same call was sent before and given up; it has run since, and its answer could not be kept. This call was not made; call again to make another",
        FailureInfo::new(code::ANSWER_NOT_KEPT, Ran::Yes, Verdict::Permanent),
    );
    /// The same, and its caller had another credential.
    pub(crate) const RAN_FOR_ANOTHER: Self = Self::new(
        "The same call was sent before with another credential, and has run. This call was not made: ask the user",
        FailureInfo::new(code::IDEMPOTENCY_CONFLICT, Ran::No, Verdict::Permanent),
    );

    const fn new(text: &'static str, facts: FailureInfo) -> Self {
        Self { message: Cow::Borrowed(text), facts }
    }

    /// A call while the server is started again.
    pub(crate) const fn starting(after: Duration) -> Self {
        let verdict = Verdict::Transient { retry_after: Some(after) };
        Self::new(
            "The MCP server has crashed and is started again; the tool did not run",
            FailureInfo::new("server_gone", Ran::No, verdict),
        )
    }

    /// A failure of the way to the server, in these words.
    pub(crate) fn said(text: impl Into<Cow<'static, str>>, facts: FailureInfo) -> Self {
        // It may quote what the server says.
        let text = match text.into() {
            Cow::Owned(text) => without(&text).into_owned().into(),
            text @ Cow::Borrowed(_) => text,
        };
        Self { message: text, facts }
    }

    /// Whether the tool ran.
    pub(crate) const fn ran(&self) -> Ran {
        self.facts.ran()
    }

    /// Whether a repeat may help.
    pub(crate) const fn is_transient(&self) -> bool {
        matches!(self.facts.verdict(), Verdict::Transient { .. })
    }

    pub(crate) fn oversized(bytes: usize, ran: Ran) -> Self {
        let what = match ran {
            Ran::Unknown => {
                format!("The server answered with a failure or a request for input of {bytes}")
            }
            _ => format!("The tool ran, but its answer has {bytes}"),
        };
        let facts = FailureInfo::new(code::ANSWER_TOO_LARGE, ran, Verdict::Permanent);
        Self::said(format!("{what} bytes, more than the guard forwards: raise --max-line"), facts)
    }

    pub(crate) fn timeout(after: Duration) -> Self {
        let facts = FailureInfo::new(code::TIMEOUT, Ran::Unknown, Verdict::TRANSIENT);
        Self::said(format!("Tool timeout after {after:?}"), facts)
    }
}

/// The server's answer to an attempt, unchanged.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) line: Bytes,
    pub(crate) id_range: Range<usize>,
    /// Only its id could be read: the guard can add nothing to it.
    pub(crate) opaque: bool,
}

/// How an attempt ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The server answered, or the host that ran the call told its end.
    Answered(Option<Answer>, ToolOutcome),
    /// No answer can come any more, for this reason.
    Failed(Failure),
    /// No answer or progress for this long.
    Overdue(Duration),
}

/// The error and those of its causes that add information.
pub(crate) fn in_full(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in tr_core::causes(error).skip(1).filter(|cause| !cause.is::<FailureInfo>()) {
        let said = cause.to_string();
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        // A store's error tells its causes itself.
        if cause.is::<StoreError>() {
            break;
        }
    }
    text
}
