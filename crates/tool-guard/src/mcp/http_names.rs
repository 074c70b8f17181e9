//! The headers and the errors of MCP over HTTP, on either side.
use hyper::header::HeaderName;

pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The header of a request that resumes a stream.
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The first version without sessions and resumption. Versions are dates, so they sort as text.
pub(crate) const MODERN: &str = "2026-07-28";

pub(crate) const PARSE_ERROR: i64 = -32_700;
pub(crate) const INVALID_REQUEST: i64 = -32_600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;
pub(crate) const INVALID_PARAMS: i64 = -32_602;
/// The error of a request that was not forwarded, or not answered.
pub(crate) const NOT_FORWARDED: i64 = -32_000;
/// The error of a request whose headers and body differ.
pub(crate) const MISMATCH: i64 = -32_020;
