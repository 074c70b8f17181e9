//! Lines that the proxy changes or writes itself.
use crate::mcp::{answer, codes::INVALID_REQUEST, in_flight::Relay, lines::Oversized, message};
use bytes::Bytes;

/// The answer to a request after the server has ended, in the words of MCP's own clients.
pub(super) const CONNECTION_CLOSED: i64 = -32000;
pub(super) const CLOSED: &str = "Connection closed: the MCP server has ended";
/// A request beyond the most that may be in flight.
pub(super) const OVERLOADED: i64 = -32000;

/// The line changed by `relay`, `None` if it is discarded.
pub(super) fn relayed(
    line: &Bytes,
    part: Option<&serde_json::value::RawValue>,
    relay: &Relay,
) -> Option<Bytes> {
    match (relay, part) {
        (Relay::With(text), Some(raw)) => {
            Some(message::splice(line, &[(message::range(line, raw), text)]))
        }
        (Relay::Discarded, _) => None,
        _ => Some(line.clone()),
    }
}

/// The error for a sender whose line, or whose answer, was too long.
pub(crate) fn too_long(line: &Oversized, id: Option<&str>) -> Bytes {
    let what = if line.asks { "line" } else { "answer" };
    let text =
        format!("the {what} has {} bytes, and was not forwarded: raise --max-line", line.bytes);
    answer::refusal(id.unwrap_or("null"), INVALID_REQUEST, &text)
}
