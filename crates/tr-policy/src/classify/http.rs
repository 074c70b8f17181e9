//! HTTP statuses.
use super::{Kind, retry_after};
use crate::{Classification, Ran, Verdict, WallClock};

/// gRPC's code for a status that cannot be read.
const UNKNOWN: i32 = 2;

/// What a status of 400 or above means, and the phrase that goes with it. `None` for an
/// unregistered 4xx: servers give those meanings of their own.
#[doc(hidden)]
#[must_use]
pub const fn status(status: u16) -> Option<(Kind, &'static str)> {
    Some(match status {
        400 => (Kind::InvalidInput, "bad request"),
        401 => (Kind::AuthFailed, "unauthorized"),
        402 => (Kind::QuotaExhausted, "payment required"),
        403 => (Kind::PermissionDenied, "forbidden"),
        404 => (Kind::NotFound, "not found"),
        405 => (Kind::Unsupported, "method not allowed"),
        406 => (Kind::ClientError, "not acceptable"),
        407 => (Kind::AuthFailed, "proxy authentication required"),
        408 => (Kind::Timeout, "request timeout"),
        409 => (Kind::Conflict, "conflict"),
        410 => (Kind::NotFound, "gone"),
        411 => (Kind::ClientError, "length required"),
        412 => (Kind::PreconditionFailed, "precondition failed"),
        413 => (Kind::TooLarge, "payload too large"),
        414 => (Kind::TooLarge, "uri too long"),
        415 => (Kind::Unsupported, "unsupported media type"),
        416 => (Kind::InvalidInput, "range not satisfiable"),
        417 => (Kind::PreconditionFailed, "expectation failed"),
        418 => (Kind::ClientError, "i'm a teapot"),
        421 => (Kind::ClientError, "misdirected request"),
        422 => (Kind::InvalidInput, "unprocessable"),
        423 => (Kind::Busy, "locked"),
        424 => (Kind::PreconditionFailed, "failed dependency"),
        425 => (Kind::Busy, "too early"),
        426 => (Kind::Unsupported, "upgrade required"),
        428 => (Kind::PreconditionFailed, "precondition required"),
        429 => (Kind::RateLimited, "too many requests"),
        431 => (Kind::TooLarge, "request header fields too large"),
        451 => (Kind::PermissionDenied, "unavailable for legal reasons"),
        500 => (Kind::ServerError, "internal"),
        501 => (Kind::Unsupported, "not implemented"),
        502 => (Kind::BadGateway, "bad gateway"),
        503 => (Kind::ServiceUnavailable, "service"),
        504 => (Kind::GatewayTimeout, "gateway time"),
        505 => (Kind::Unsupported, "http version not supported"),
        529 => (Kind::Overloaded, "overloaded"),
        506..=599 => (Kind::ServerError, "server error"),
        _ => return None,
    })
}

/// Classifies an HTTP response by its status and its headers.
///
/// 425 and 429, as the status of the very request that was sent, say that nothing was done
/// ([`Ran::No`]); no other status does: gateways answer 408 and 503, too, after the server has acted.
/// Around a handler of your own, [`of_handler`](crate::Classification::of_handler) takes that back.
///
/// Below 400 it is a success. Listed 4xx are permanent but for 408, 409, 423, 425 and 429; an
/// unregistered 4xx is unclassified; 501 and 505 are permanent, every other 5xx is
/// transient. A transient one carries the hint of `retry-after-ms` or `Retry-After`; a malformed
/// hint counts as absent. The clock is read only for a hint that is a date. `x-should-retry: false`
/// forbids every retry, and the end is marked as exhausted.
///
/// A gRPC answer is always a 200; one that failed before its first message says so in the header
/// `grpc-status`, and is classified by that, as [`grpc`](super::grpc) does.
///
/// ```
/// use tr_policy::{SetClock, Verdict, classify};
/// use std::time::Duration;
///
/// let headers = |name: &str| (name == "retry-after").then_some("3");
/// let end = classify::http_response(429, headers, &SetClock::at(0));
/// assert_eq!(end.code, "rate_limited");
/// assert_eq!(end.verdict, Verdict::Transient { retry_after: Some(Duration::from_secs(3)) });
/// ```
#[must_use]
pub fn http_response<'h>(
    status: u16,
    header: impl Fn(&str) -> Option<&'h str>,
    clock: &dyn WallClock,
) -> Classification<'static> {
    if status == 200
        && let Some(code) = header("grpc-status")
    {
        let code = code.trim().parse().unwrap_or(UNKNOWN);
        return super::grpc(code, header("grpc-retry-pushback-ms"));
    }
    if (100..400).contains(&status) {
        return Classification::SUCCESS;
    }
    let kind = self::status(status).map_or(Kind::Unclassified, |(kind, _)| kind);
    let mut end = kind.classification();
    if let Verdict::Transient { retry_after } = &mut end.verdict {
        if matches!(status, 425 | 429) {
            end.ran = Ran::No;
        }
        end.exhausted = header("x-should-retry").is_some_and(|value| value.trim() == "false");
        *retry_after = retry_after::from_headers(header, clock);
    }
    end
}
