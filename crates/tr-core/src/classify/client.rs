//! Errors of HTTP clients.
use super::{Finding, error};
use crate::Ran;
use std::error::Error;
use tr_policy::classify::was_not_sent;

/// Classifies what an HTTP client failed with instead of a response.
///
/// As [`error`] does; besides, the client's own connect error says that the request was not sent,
/// and a stream that the server refused (HTTP/2 `REFUSED_STREAM`) that it was not looked at. That
/// client is hyper-util's, with the feature `hyper-util`; the refused stream takes `h2` besides. It
/// must not follow redirects inside of what classifies its errors: the connection that fails may
/// then be that of a second request. Of any other client, wrap what it never sent in [`NotSent`](crate::NotSent).
#[must_use]
pub fn http_error<'e>(failed: &'e (dyn Error + 'static)) -> Finding<'e> {
    let mut found = error(failed);
    if was_not_sent(failed) {
        found.end.ran = Ran::No;
    }
    found
}
