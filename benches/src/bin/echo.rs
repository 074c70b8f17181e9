//! The smallest MCP server: one tool that answers with its argument.
use serde_json::{Value, json};
use std::{
    io,
    io::{BufRead as _, Write as _},
};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "echo", "version": "1" },
            }),
            Some("tools/list") => json!({ "tools": [{
                "name": "echo",
                "inputSchema": { "type": "object" },
                "annotations": { "readOnlyHint": true },
            }] }),
            _ => {
                let text = &message["params"]["arguments"]["text"];
                json!({ "content": [{ "type": "text", "text": text }] })
            }
        };
        writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
    }
    Ok(())
}
