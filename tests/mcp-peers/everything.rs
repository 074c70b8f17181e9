//! npm's server-everything: all that MCP has.
mod asks;
mod describes;
mod odd_lines;
mod takes_time;
mod tools;

use crate::session::{Session, Step};
use serde_json::{Value, json};

/// Initializes a session as a client that can do nothing but `capabilities`.
pub(crate) fn hello(session: &mut Session, capabilities: Value) {
    let roots = capabilities.get("roots").is_some();
    let client = json!({ "name": "mcp-peers", "version": "0" });
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client,
    });
    session.request("initialize", params);
    session.notify("notifications/initialized", json!({}), |message| match roots {
        // Last of all it tells that it has asked for the roots.
        true => message["method"] == "notifications/message",
        false => message["method"] == "notifications/tools/list_changed",
    });
    session.request("tools/list", json!({}));
}

/// Begins a session, and ends it after `script`.
fn with_hello(mut session: Session, script: fn(&mut Session)) -> Vec<Step> {
    hello(&mut session, json!({}));
    script(&mut session);
    session.leave()
}
