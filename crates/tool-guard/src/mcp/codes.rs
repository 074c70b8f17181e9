//! The codes of JSON-RPC's and MCP's errors.

pub(crate) const PARSE_ERROR: i64 = -32_700;
pub(crate) const INVALID_REQUEST: i64 = -32_600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;
pub(crate) const INVALID_PARAMS: i64 = -32_602;
/// The error of a request that was not forwarded, or not answered.
pub(crate) const NOT_FORWARDED: i64 = -32_000;
/// The error of a request whose headers and body differ.
pub(crate) const MISMATCH: i64 = -32_020;
