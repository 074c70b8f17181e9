//! A transport's word that a request never left.
use crate::{BoxError, FailureInfo, Ran, Verdict, classify, code};

/// The request was never sent: the tool did not run.
///
/// A transport wraps what it fails with before the first byte of a request leaves: a process that
/// cannot be spawned, a refused connection, a name that does not resolve, a certificate that is not
/// trusted, a pool without a free connection. It is evidence only as the outermost error of a
/// service: inside another error it speaks of some other request, such as the receipt mail of a
/// payment.
///
/// Its text and its verdict are those of the error inside; its code too, or `not_sent` where that
/// is unclassified. Its source leads to [`FailureInfo`] with [`Ran::No`], and from there to the error.
///
/// ```
/// use std::io;
/// use tr_core::{NotSent, Ran, classify};
///
/// let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
/// assert_eq!(classify::error(&refused()).end.ran, Ran::Unknown);
/// assert_eq!(classify::error(&NotSent::new(refused())).end.ran, Ran::No);
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct NotSent {
    text: Box<str>,
    #[source]
    info: FailureInfo,
}

/// The code of what was never sent for a reason that nothing matches.
const NOT_SENT: &str = "not_sent";

impl NotSent {
    /// `error` came up before anything of the request was sent.
    #[must_use]
    pub fn new(error: impl Into<BoxError>) -> Self {
        let error = error.into();
        let mut end = classify::error(&*error).end;
        end.ran = Ran::No;
        if end.code == code::UNCLASSIFIED {
            end.code = NOT_SENT;
        }
        if end.verdict.is_success() {
            end.verdict = Verdict::TRANSIENT;
        }
        let info = FailureInfo::of(end).of_a::<Self>();
        Self { text: error.to_string().into(), info: info.because(error) }
    }
}
