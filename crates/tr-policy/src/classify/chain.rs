//! Classifies an error by the types in its chain of sources.
use super::{Kind, io::io_kind};
use crate::{
    BoxError, Classification, FailureInfo, Ran,
    error::{causes, failure_info},
};
use std::{error::Error, io};

/// How many links of a chain are read in search of a type that is known.
const LINKS: usize = 16;

/// Classifies an error.
///
/// The outermost [`FailureInfo`] of the chain decides. Without one, the outermost among the first 16 links that
/// is known does: an [`io::Error`](std::io::Error) by its kind; with the feature `tonic`, its `Status` by its
/// code; with the feature `tower`, the refusal of its `load_shed`. Messages are not read.
///
/// [`Ran::No`] counts only from the outermost error: an error of our own layers, or a `load_shed` refusal.
/// Deeper in the chain, the same error is about a call that the service itself made, so the result is
/// [`Ran::Unknown`].
///
/// ```
/// use std::io::{Error, ErrorKind};
/// use tr_policy::{BoxError, Verdict, classify};
///
/// let missing = Error::from(ErrorKind::NotFound);
/// assert_eq!(classify::error(&missing).verdict, Verdict::Permanent);
/// let in_words: BoxError = "404 not found".into();
/// assert_eq!(classify::error(&*in_words).code, "unclassified");
/// ```
#[must_use]
pub fn error<'e>(error: &'e (dyn Error + 'static)) -> Classification<'e> {
    said_by_layer(error, self::error).unwrap_or_else(|| {
        let known = causes(error).take(LINKS).enumerate().find_map(|(at, link)| typed(at, link));
        known.unwrap_or(Kind::Unclassified.classification())
    })
}

/// What the outermost [`FailureInfo`] of the chain says; `judge` has the word on an error that is only wrapped.
#[must_use]
pub fn said_by_layer<'e>(
    error: &'e (dyn Error + 'static),
    judge: impl FnOnce(&'e (dyn Error + 'static)) -> Classification<'e>,
) -> Option<Classification<'e>> {
    let mut links = causes(error).enumerate();
    let (at, info) =
        links.find_map(|(at, link)| Some((at, link.downcast_ref::<FailureInfo>()?)))?;
    // The failure information comes right after the error that it belongs to.
    let depth = at.saturating_sub(1);
    let is_passed_on = causes(error).nth(depth).is_some_and(|owner| !info.may_belong_to(owner));
    let end = info.unjudged().map_or_else(|| info.classification(), judge);
    Some(if depth > 0 || is_passed_on { end.of_handler() } else { end })
}

/// What the type of a link says, `at` links below the outermost.
fn typed(at: usize, link: &(dyn Error + 'static)) -> Option<Classification<'static>> {
    if is_load_shed(link) {
        let ran = if at == 0 { Ran::No } else { Ran::Unknown };
        return Some(Classification { ran, ..Kind::Overloaded.classification() });
    }
    #[cfg(feature = "tonic")]
    if let Some(status) = link.downcast_ref::<tonic::Status>() {
        use tonic::Code;
        // These say nothing, and the status's source may.
        let code = Some(status.code()).filter(|code| !matches!(code, Code::Ok | Code::Unknown));
        return code.map(|code| super::grpc(code as i32, None));
    }
    let error = link.downcast_ref::<io::Error>()?;
    // What it wraps is no link of the chain.
    io_kind(error.kind()).map(Kind::classification).or_else(|| typed(at + 1, error.get_ref()?))
}

impl FailureInfo {
    /// Failure info for an error that wraps `error`, for example to add a message: its classification
    /// and replay mark, with `error` as the cause.
    #[must_use]
    pub fn wrapping(error: BoxError) -> Self {
        let info = Self::of(self::error(&*error));
        let info = match failure_info(&*error) {
            Some(inner) if inner.unjudged().is_none() => {
                inner.replay().into_iter().fold(info, Self::replayed)
            }
            _ => info.transparent(),
        };
        info.because(error)
    }
}

/// Whether this is the refusal of tower's `load_shed`.
#[must_use]
pub fn is_load_shed(error: &(dyn Error + 'static)) -> bool {
    #[cfg(feature = "tower")]
    if error.is::<tower::load_shed::error::Overloaded>() {
        return true;
    }
    let _ = error;
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Verdict, code};

    /// An error around another one.
    #[derive(Debug, thiserror::Error)]
    #[error("HTTP 404 Not Found: quota exceeded")]
    struct Outer(#[source] BoxError);

    #[test]
    fn words_say_nothing_and_the_outermost_known_type_decides() {
        let unknown: BoxError = "404 not found".into();
        assert_eq!(error(&*unknown), Kind::Unclassified.classification());
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(error(&Outer(refused.into())), Kind::ConnectionRefused.classification());
        let late = io::Error::other(io::Error::from(io::ErrorKind::TimedOut));
        assert_eq!(error(&Outer(late.into())), Kind::NetworkTimeout.classification());
    }

    #[test]
    fn what_a_layer_says_of_an_inner_call_is_no_proof_for_this_one() {
        let open = || FailureInfo::new(code::CIRCUIT_OPEN, Ran::No, Verdict::TRANSIENT);
        assert_eq!(error(&open()).ran, Ran::No);
        assert_eq!(error(&Outer(open().into())).ran, Ran::No, "the information of `Outer`");
        let found = Outer(Outer(open().into()).into());
        assert_eq!((error(&found).code, error(&found).ran), (code::CIRCUIT_OPEN, Ran::Unknown));
    }

    #[cfg(feature = "tower")]
    #[test]
    fn a_shed_request_did_not_run_unless_it_was_another_one() {
        let shed = tower::load_shed::error::Overloaded::new;
        assert_eq!((error(&shed()).code, error(&shed()).ran), ("overloaded", Ran::No));
        assert_eq!(error(&Outer(shed().into())).ran, Ran::Unknown);
    }

    #[cfg(feature = "tonic")]
    #[test]
    fn a_status_of_grpc_counts_by_its_code() {
        let code = |status: tonic::Status| error(&Outer(status.into())).code.to_owned();
        assert_eq!(code(tonic::Status::not_found("busy")), "not_found");
        assert_eq!(code(tonic::Status::unavailable("404")), "network_error");
        assert_eq!(code(tonic::Status::unknown("timed out")), "unclassified");
    }
}
