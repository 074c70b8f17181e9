//! Error types: leaf → [`FailureInfo`](tr_core::FailureInfo).
use std::{fmt, time::Duration};
use tr_core::{FailureInfo, Ran, Verdict, code, internal::HumanDuration};

/// An attempt ran out of time, its wait for readiness included, and was dropped.
///
/// Transient. The tool may have run ([`Ran::Unknown`]), unless it never got ready ([`Ran::No`]). An answer
/// in chunks runs out of time if its next chunk is overdue.
#[derive(Debug, thiserror::Error)]
pub struct AttemptTimedOut {
    after: Duration,
    is_idle: bool,
    #[source]
    info: FailureInfo,
}

/// The call's deadline passed.
///
/// Transient. What was running was dropped, so the tool may have run ([`Ran::Unknown`]), unless
/// the inner service had not been called ([`Ran::No`]): a call that comes after its deadline never
/// reaches it, and one that waited until then for its tool to be ready did not run either.
#[derive(Debug, thiserror::Error)]
pub struct DeadlineExceeded {
    after: Duration,
    was_ready: bool,
    #[source]
    info: FailureInfo,
}

const fn failure_info(ran: Ran) -> FailureInfo {
    FailureInfo::new(code::TIMEOUT, ran, Verdict::TRANSIENT).by_layer()
}

impl AttemptTimedOut {
    /// `idle` is how long the next chunk had, if that is what was overdue.
    pub(crate) fn new(after: Duration, idle: Option<Duration>, ran: Ran) -> Self {
        Self { after: idle.unwrap_or(after), is_idle: idle.is_some(), info: failure_info(ran) }
    }

    /// How long the attempt had, or its next chunk.
    #[must_use]
    pub const fn after(&self) -> Duration {
        self.after
    }

    /// Whether a part of the answer was sent, and the next chunk was overdue.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// Whether the tool ran.
    #[must_use]
    pub const fn ran(&self) -> Ran {
        self.info.ran()
    }
}

impl DeadlineExceeded {
    pub(crate) const fn new(after: Duration, ran: Ran) -> Self {
        Self { after, was_ready: true, info: failure_info(ran) }
    }

    /// The tool did not get ready in time.
    pub(crate) const fn not_ready(after: Duration) -> Self {
        Self { after, was_ready: false, info: failure_info(Ran::No) }
    }

    /// How long the call had, or how long its last attempt waited for the tool to be ready; zero if
    /// it came too late.
    #[must_use]
    pub const fn after(&self) -> Duration {
        self.after
    }

    /// Whether the tool ran.
    #[must_use]
    pub const fn ran(&self) -> Ran {
        self.info.ran()
    }
}

impl fmt::Display for AttemptTimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_idle { ": no chunk for" } else { " after" };
        write!(f, "Tool timeout{what} {}", HumanDuration(self.after))
    }
}

impl fmt::Display for DeadlineExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.after.is_zero() {
            return f.write_str("Call timeout: the deadline had passed before the call began");
        }
        let what = if self.was_ready { " after" } else { ": the tool was not ready for" };
        write!(f, "Call timeout{what} {}", HumanDuration(self.after))
    }
}
