//! What is said of requests that get no answer.
use serde_json::Value;

/// The message of a JSON-RPC error.
pub(super) fn error_of(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(body["error"]["message"].as_str()?.to_owned())
}
