//! A small MCP server whose tools fail.
//!
//! Every execution of a tool with a side effect is a line in a ledger, so that the executions can be
//! counted.
use crate::terminal::print;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, BufRead as _, Write as _},
    path::Path,
    process::{self, ExitCode},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};
use tr_core::internal::lock;

/// How long a payment takes whose answer is too late.
const LATE: Duration = Duration::from_millis(800);
/// How long a backend that is down takes to say so.
const OUTAGE: Duration = Duration::from_millis(80);

struct Server {
    ledger: File,
    /// How often each file was read.
    reads: Mutex<HashMap<String, u32>>,
}

/// Serves until its input ends; each call that takes time has a thread. The ledger has a line for each execution.
pub(crate) fn serve(ledger: &Path) -> io::Result<ExitCode> {
    let ledger = OpenOptions::new().create(true).append(true).open(ledger)?;
    let server = Arc::new(Server { ledger, reads: Mutex::default() });
    for line in io::stdin().lock().split(b'\n') {
        server.clone().take(&line?);
    }
    Ok(ExitCode::SUCCESS)
}

impl Server {
    fn take(self: Arc<Self>, line: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return self.answer(&Value::Null, error(-32700, "Parse error"));
        };
        let Some(id) = message.get("id").cloned() else { return };
        let params = message["params"].clone();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "tool-guard-demo", "version": env!("CARGO_PKG_VERSION") },
            }),
            Some("ping") => json!({}),
            Some("tools/list") => json!({ "tools": tools() }),
            Some("tools/call") => return self.call(id, params),
            Some(method) => {
                return self.answer(&id, error(-32601, &format!("Method not found: {method}")));
            }
            None => return,
        };
        self.answer(&id, json!({ "result": result }));
    }

    fn send(&self, message: &Value) {
        // A client that has left reads no answer.
        let _ = print(format!("{message}\n"));
    }

    /// Answers with a result or an error.
    fn answer(&self, id: &Value, mut said: Value) {
        said["jsonrpc"] = "2.0".into();
        said["id"] = id.clone();
        self.send(&said);
    }

    /// Runs a tool. Those that take no time are answered in the order of their calls.
    fn call(self: Arc<Self>, id: Value, params: Value) {
        let name = params["name"].as_str().unwrap_or_default();
        let arguments = &params["arguments"];
        let (wait, said) = match name {
            "echo" => (Duration::ZERO, text(arguments["text"].as_str().unwrap_or_default())),
            "read_file" => (Duration::ZERO, self.read_file(arguments)),
            "charge_card" => match self.charge_card(arguments) {
                Some(charged) => charged,
                None => return,
            },
            "exchange_rate" => {
                self.write_down(name, arguments["pair"].as_str().unwrap_or_default());
                (OUTAGE, failed("Service unavailable (503): rates backend is down"))
            }
            "slow" => {
                thread::spawn(move || self.slow(&id, &params));
                return;
            }
            _ => (Duration::ZERO, error(-32602, &format!("Unknown tool: {name}"))),
        };
        if wait.is_zero() {
            return self.answer(&id, said);
        }
        thread::spawn(move || {
            sleep(wait);
            self.answer(&id, said);
        });
    }

    /// Every first read of a path is reset by the peer.
    fn read_file(&self, arguments: &Value) -> Value {
        let Some(path) = arguments["path"].as_str() else {
            self.write_down("read_file", "{}");
            return failed("Missing required parameter: path");
        };
        self.write_down("read_file", path);
        let mut reads = lock(&self.reads);
        let count = reads.entry(path.to_owned()).or_default();
        *count += 1;
        match *count {
            1 => failed("read ECONNRESET"),
            _ => text(&format!("contents of {path}")),
        }
    }

    /// Charges first; `then` selects the answer, and how long it takes. `None` if it never answers.
    fn charge_card(&self, arguments: &Value) -> Option<(Duration, Value)> {
        let Some(order) = arguments["order"].as_str() else {
            return Some((Duration::ZERO, failed("Missing required parameter: order")));
        };
        self.write_down("charge_card", order);
        let charged = text(&format!("charged order {order}"));
        match arguments["then"].as_str() {
            Some("crash") => process::exit(70),
            Some("hang") => None,
            // After every caller's timeout.
            Some("late") => Some((LATE, charged)),
            Some("error") => {
                let message = arguments["message"].as_str().unwrap_or("Request timed out");
                let code = arguments["code"].as_i64().unwrap_or(-32001);
                Some((Duration::ZERO, error(code, message)))
            }
            _ => Some((Duration::ZERO, charged)),
        }
    }

    /// Takes `ms`, and reports progress `steps` times.
    fn slow(&self, id: &Value, params: &Value) {
        let (arguments, token) = (&params["arguments"], &params["_meta"]["progressToken"]);
        let steps = arguments["steps"].as_u64().unwrap_or(1).max(1);
        let total = Duration::from_millis(arguments["ms"].as_u64().unwrap_or(100));
        for step in 1..=steps {
            sleep(total / u32::try_from(steps).unwrap_or(1));
            if !token.is_null() {
                self.send(&json!({
                    "jsonrpc": "2.0", "method": "notifications/progress",
                    "params": { "progressToken": token, "progress": step, "total": steps },
                }));
            }
        }
        self.answer(id, text("done"));
    }

    fn write_down(&self, tool: &str, what: &str) {
        let line = format!("{tool} {what}\n");
        (&self.ledger).write_all(line.as_bytes()).expect("the ledger can be written");
    }
}

#[expect(clippy::disallowed_methods, reason = "a tool that takes its time")]
fn sleep(time: Duration) {
    thread::sleep(time);
}

fn text(text: &str) -> Value {
    json!({ "result": { "content": [{ "type": "text", "text": text }] } })
}

fn failed(text: &str) -> Value {
    json!({ "result": { "content": [{ "type": "text", "text": text }], "isError": true } })
}

fn error(code: i64, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message } })
}

fn tools() -> Value {
    let tool = |name: &str, description: &str, hint: &str, properties: Value| {
        json!({
            "name": name, "description": description,
            "inputSchema": { "type": "object", "properties": properties },
            "annotations": { hint: true },
        })
    };
    let (text, number) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let order = json!({ "order": text, "then": text, "code": number, "message": text });
    let time = json!({ "ms": number, "steps": number });
    let file = json!({ "path": text });
    json!([
        tool("echo", "Says it again", "readOnlyHint", json!({ "text": text })),
        tool("read_file", "Reads a file over a flaky network", "readOnlyHint", file),
        tool("charge_card", "Charges the card for an order", "destructiveHint", order),
        tool("exchange_rate", "Asks a backend that is down", "readOnlyHint", json!({})),
        tool("slow", "Takes its time", "readOnlyHint", time),
    ])
}
