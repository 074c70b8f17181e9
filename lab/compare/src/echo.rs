//! What the smallest MCP servers answer: one tool gives its argument back.
use serde_json::{Value, json};

/// The bytes of the text that the tool `large` answers with.
pub const LARGE: usize = 10 * 1024 * 1024;

/// The answer to a message, if it wants one.
#[must_use]
pub fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let params = &message["params"];
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "echo", "version": "1" },
        }),
        Some("tools/list") => {
            let tools = ["echo", "large", "stream"].map(|name| {
                json!({
                    "name": name,
                    "inputSchema": { "type": "object" },
                    "annotations": { "readOnlyHint": true },
                })
            });
            json!({ "tools": tools })
        }
        _ if params["name"].as_str().is_some_and(|name| name.ends_with("large")) => {
            json!({ "content": [{ "type": "text", "text": "a".repeat(LARGE) }] })
        }
        _ => {
            let text = &params["arguments"]["text"];
            json!({ "content": [{ "type": "text", "text": text }] })
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}
