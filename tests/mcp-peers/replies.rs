//! What the client answers when the server asks.
use serde_json::{Value, json};

/// The answer to a message, if it is a request.
pub(crate) fn to(message: &Value) -> Option<Value> {
    let (method, id) = (message.get("method")?.as_str()?, message.get("id")?);
    let params = message["params"].to_string();
    if params.contains("please refuse") {
        let error = json!({ "code": -1, "message": "User rejected sampling request" });
        return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }
    let result = match method {
        "roots/list" => json!({ "roots": [{ "uri": "file:///tmp", "name": "Temporary files" }] }),
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "none", "stopReason": "endTurn",
            "content": { "type": "text", "text": "Sampled: späß 🦀" },
        }),
        "elicitation/create" if params.contains("interpretations") => {
            json!({ "action": "accept", "content": { "interpretation": "snake" } })
        }
        "elicitation/create" if params.contains("async task demo") => {
            json!({ "action": "decline" })
        }
        "elicitation/create" if params.contains("\"url\"") => json!({ "action": "accept" }),
        "elicitation/create" => {
            json!({ "action": "accept", "content": { "name": "Ada", "check": true, "integer": 7 } })
        }
        _ => panic!("the server asks for {method}"),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}
