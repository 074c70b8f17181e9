//! Lines that the proxy changes or writes itself.
use super::INVALID_REQUEST;
use crate::mcp::{answer, in_flight::Relay, lines::Oversized, message};
use bytes::Bytes;

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
pub(super) fn too_long(line: &Oversized, what: &str, id: Option<&str>) -> Bytes {
    let text =
        format!("the {what} has {} bytes, and was not forwarded: raise --max-line", line.bytes);
    answer::refusal(id.unwrap_or("null"), INVALID_REQUEST, &text)
}
