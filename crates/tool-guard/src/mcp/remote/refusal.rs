//! What is said of requests that get no answer.
use crate::mcp::failure::Failure;
use serde_json::Value;
use tr_core::{FailureInfo, Ran, Verdict};

pub(super) fn unanswered() -> Failure {
    let facts = FailureInfo::new("server_gone", Ran::Unknown, Verdict::TRANSIENT);
    Failure::said("The MCP server's response ended without an answer", facts)
}

/// The message of a JSON-RPC error.
pub(super) fn error_of(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(body["error"]["message"].as_str()?.to_owned())
}
