//! HTTP statuses.
use super::{Finding, finding::Structured};
use crate::WallClock;
pub(super) use tr_policy::classify::http_status as status;

/// A status as an error's code spells it: `503`, `HTTP_503`, `http503`, npm's `E503`.
pub(super) fn from_word(word: &str) -> Option<u16> {
    let (prefix, digits) = word.split_at_checked(word.len().checked_sub(3)?)?;
    let known = ["", "http", "http_", "status_", "err_http_"];
    let is_status = prefix == "E" || known.iter().any(|one| prefix.eq_ignore_ascii_case(one));
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|status| is_status && all_digits && (400..600).contains(status))
}

/// Classifies an HTTP response by its status and its headers.
///
/// 425 and 429, as the status of the very request that was sent, say that nothing was done
/// ([`Ran::No`](crate::Ran::No)); no other status does: gateways answer 408 and 503, too, after the server has acted.
/// Around a handler of your own, [`of_handler`](crate::Classification::of_handler) takes that back.
///
/// Below 400 it is a success. Listed 4xx are permanent but for 408, 409, 423, 425 and 429; an
/// unregistered 4xx is unclassified; 501 and 505 are permanent, every other 5xx is
/// transient. A transient one carries the hint of `retry-after-ms` or `Retry-After`; a malformed
/// hint counts as absent. The clock is read only for a hint that is a date. `x-should-retry: false`
/// forbids every retry, and the finding is marked as exhausted.
///
/// A gRPC answer is always a 200; one that failed before its first message says so in the header
/// `grpc-status`, and is classified by that, as [`grpc`](super::grpc) does.
///
/// ```
/// use tr_core::{SetClock, Verdict, classify};
/// use std::time::Duration;
///
/// let headers = |name: &str| (name == "retry-after").then_some("3");
/// let found = classify::http_response(429, headers, &SetClock::at(0));
/// assert_eq!(found.end.code, "rate_limited");
/// assert_eq!(found.end.verdict, Verdict::Transient { retry_after: Some(Duration::from_secs(3)) });
/// ```
#[must_use]
pub fn http_response<'h>(
    status: u16,
    header: impl Fn(&str) -> Option<&'h str>,
    clock: &dyn WallClock,
) -> Finding<'static> {
    let is_grpc = status == 200 && header("grpc-status").is_some();
    let found = Finding::by_code(tr_policy::classify::http_response(status, header, clock));
    if is_grpc { found } else { found.status(Some(status)).structured(Structured::Status(status)) }
}
