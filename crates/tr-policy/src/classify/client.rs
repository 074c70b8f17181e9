//! Errors of HTTP clients.
use super::error;
use crate::{Classification, Ran, failure_info};
use std::error::Error;

/// Classifies what an HTTP client failed with instead of a response.
///
/// As [`error`] does; besides, the client's own connect error says that the request was not sent,
/// and a stream that the server refused (HTTP/2 `REFUSED_STREAM`) that it was not looked at. That
/// client is hyper-util's, with the feature `hyper-util`; the refused stream takes `h2` besides. It
/// must not follow redirects inside of what classifies its errors: the connection that fails may
/// then be that of a second request.
#[must_use]
pub fn http_error<'e>(failed: &'e (dyn Error + 'static)) -> Classification<'e> {
    let end = error(failed);
    if was_not_sent(failed) { Classification { ran: Ran::No, ..end } } else { end }
}

/// Whether `failed` is the error of a client that is known here, and says that nothing was sent.
#[doc(hidden)]
#[must_use]
pub fn was_not_sent(failed: &(dyn Error + 'static)) -> bool {
    // A client's own error has no failure information; if there is some, an inner layer has classified it.
    if failure_info(failed).is_some() {
        return false;
    }
    #[cfg(feature = "hyper-util")]
    if let Some(error) = failed.downcast_ref::<hyper_util::client::legacy::Error>() {
        return error.is_connect() || crate::causes(failed).any(is_refused_stream);
    }
    false
}

#[cfg(feature = "hyper-util")]
fn is_refused_stream(link: &(dyn Error + 'static)) -> bool {
    #[cfg(feature = "h2")]
    if let Some(error) = link.downcast_ref::<h2::Error>() {
        let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
        return error.is_remote() && error.is_reset() && refused;
    }
    let _ = link;
    false
}
