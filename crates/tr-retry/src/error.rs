//! The error: leaf → [`FailureInfo`] → the last attempt's error.
use crate::RetryStop;
use std::{error::Error as _, fmt};
use tr_policy::{FailureInfo, Ran, Retried};

/// A call failed for good after retries, or time or budget forbade the first retry.
///
/// Its code is `retry_exhausted` if attempts, time or budget are used up; else the last attempt
/// itself ended the retrying, and the code is that attempt's own (`circuit_open`, say), or the
/// caller cancelled the call between two attempts (`cancelled`). The verdict carries the
/// `retry_after` hint. [`ran`](Self::ran) covers all attempts together: [`Ran::No`] only if the tool
/// ran in none. The cause is the last attempt's error; where that is a refusal,
/// [`causes`](tr_policy::causes) lists the last real failure behind it.
///
/// Marked as exhausted, unless the failure is permanent or the call cancelled anyway: no outer
/// retry multiplies it. A call whose only attempt may not be retried keeps its own error, and
/// never becomes this.
#[derive(Debug, thiserror::Error)]
pub struct RetryExhausted {
    pub(crate) why: RetryStop,
    pub(crate) attempts: usize,
    pub(crate) retried: Vec<Retried>,
    #[source]
    pub(crate) info: FailureInfo,
}

impl RetryExhausted {
    /// Why it was not tried again.
    #[must_use]
    pub const fn why(&self) -> RetryStop {
        self.why
    }

    /// How many attempts got as far as the tool: one that a breaker refused, or whose time was over
    /// before the tool was ready, is none.
    #[must_use]
    pub const fn attempts(&self) -> usize {
        self.attempts
    }

    /// Each retry, those that did not get as far as the tool included: after which attempt, why, after how long.
    #[must_use]
    pub fn retried(&self) -> &[Retried] {
        &self.retried
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        self.info.code()
    }

    /// Whether the tool ran in any attempt.
    #[must_use]
    pub const fn ran(&self) -> Ran {
        self.info.ran()
    }
}

impl fmt::Display for RetryExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.attempts {
            0 => f.write_str("gave up before an attempt reached the tool")?,
            1 => f.write_str("gave up after 1 attempt")?,
            attempts => write!(f, "gave up after {attempts} attempts")?,
        }
        write!(f, " ({}", self.why.reason())?;
        for (n, retried) in self.retried.iter().enumerate() {
            f.write_str(if n == 0 { "; earlier: " } else { ", " })?;
            f.write_str(&retried.reason)?;
        }
        f.write_str(")")?;
        match self.info.source() {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}
