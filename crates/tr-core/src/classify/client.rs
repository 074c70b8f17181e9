//! Errors of HTTP clients.
use super::{Finding, error};
use crate::{NotSent, Ran};
use std::error::Error;

/// Classifies what an HTTP client failed with instead of a response.
///
/// As [`error`] does; besides, the client's own connect error says that the request was not sent,
/// and a stream that the server refused (HTTP/2 `REFUSED_STREAM`) that it was not looked at. That
/// client is hyper-util's, with the feature `hyper-util`; the refused stream takes `h2` besides. It
/// must not follow redirects inside of what classifies its errors: the connection that fails may
/// then be that of a second request. Of any other client, wrap what it never sent in [`NotSent`].
#[must_use]
pub fn http_error<'e>(failed: &'e (dyn Error + 'static)) -> Finding<'e> {
    let mut found = error(failed);
    // A client's own error has no failure information; if there is some, an inner layer has classified it.
    if !failed.is::<NotSent>() && crate::failure_info(failed).is_none() && was_not_sent(failed) {
        found.end.ran = Ran::No;
    }
    found
}

/// Whether `failed` is the error of a client that is known here, and says so.
fn was_not_sent(failed: &(dyn Error + 'static)) -> bool {
    #[cfg(feature = "hyper-util")]
    if let Some(error) = failed.downcast_ref::<hyper_util::client::legacy::Error>() {
        return error.is_connect() || is_refused_stream(failed);
    }
    let _ = failed;
    false
}

#[cfg(all(feature = "h2", feature = "hyper-util"))]
fn is_refused_stream(failed: &(dyn Error + 'static)) -> bool {
    crate::causes(failed).any(|link| {
        link.downcast_ref::<h2::Error>().is_some_and(|error| {
            error.is_remote()
                && error.is_reset()
                && error.reason() == Some(h2::Reason::REFUSED_STREAM)
        })
    })
}

#[cfg(all(not(feature = "h2"), feature = "hyper-util"))]
const fn is_refused_stream(_: &(dyn Error + 'static)) -> bool {
    false
}
