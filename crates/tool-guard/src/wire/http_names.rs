//! The headers, versions and statuses of MCP over HTTP, on either side.
use crate::front::access::text;
use hyper::{HeaderMap, StatusCode, header::HeaderName};

pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The headers that repeat arguments begin so.
pub(crate) const PARAM: &str = "mcp-param-";
/// The header of a request that resumes a stream.
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The first version without sessions and resumption. Versions are dates, so they sort as text.
pub(crate) const MODERN: &str = "2026-07-28";

/// Removes the headers with such names.
pub(crate) fn remove(headers: &mut HeaderMap, is_one: impl Fn(&str) -> bool) {
    let names: Vec<_> = headers.keys().filter(|name| is_one(name.as_str())).cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

/// Whether the request is of MCP 2026-07-28 or later.
pub(crate) fn is_modern(headers: &HeaderMap) -> bool {
    is_from(headers, MODERN)
}

/// Whether the request is of this version of MCP, or of a later one.
pub(crate) fn is_from(headers: &HeaderMap, first: &str) -> bool {
    text(headers, &VERSION).is_some_and(|version| version.len() == first.len() && version >= first)
}

/// The status of a response with this JSON-RPC error, to a modern request.
pub(crate) const fn status_of(code: i64) -> StatusCode {
    match code {
        -32_601 => StatusCode::NOT_FOUND,
        -32_022..=-32_020 => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
