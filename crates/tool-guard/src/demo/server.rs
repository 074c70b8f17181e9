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

/// How long a bank takes between a payment and its answer.
const SOON: Duration = Duration::from_millis(200);
/// How long a payment takes whose answer is too late.
const LATE: Duration = Duration::from_millis(800);
/// How long a backend that is down takes to say so.
const OUTAGE: Duration = Duration::from_millis(80);

struct Server {
    ledger: File,
    /// How often each file was read.
    reads: Mutex<HashMap<String, u32>>,
}

/// How a tool's run ends.
enum End {
    Text(String),
    Failed(String),
    Error(i64, String),
    /// It never answers.
    Never,
    Crash,
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
            return self.send(&json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "Parse error" } }));
        };
        let Some(id) = message.get("id").cloned() else { return };
        let params = message["params"].clone();
        match message["method"].as_str() {
            Some("initialize") => self.answer(&id, &json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "tool-guard-demo", "version": env!("CARGO_PKG_VERSION") },
            })),
            Some("ping") => self.answer(&id, &json!({})),
            Some("tools/list") => self.answer(&id, &json!({ "tools": tools() })),
            Some("tools/call") => self.call(id, params),
            Some(method) => self.send(&json!({
                "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": format!("Method not found: {method}") },
            })),
            None => {}
        }
    }

    fn send(&self, message: &Value) {
        // A client that has left reads no answer.
        let _ = print(format!("{message}\n"));
    }

    fn answer(&self, id: &Value, result: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// Runs a tool. Those that take no time are answered in the order of their calls.
    fn call(self: Arc<Self>, id: Value, params: Value) {
        let name = params["name"].as_str().unwrap_or_default();
        let arguments = &params["arguments"];
        let (wait, end) = match name {
            "echo" => {
                let text = arguments["text"].as_str().unwrap_or_default();
                (Duration::ZERO, End::Text(text.to_owned()))
            }
            "read_file" => (Duration::ZERO, self.read_file(arguments)),
            "charge_card" => self.charge_card(arguments),
            "exchange_rate" => {
                self.write_down(name, arguments["pair"].as_str().unwrap_or_default());
                (OUTAGE, End::Failed("Service unavailable (503): rates backend is down".into()))
            }
            "slow" => {
                thread::spawn(move || self.slow(&id, &params));
                return;
            }
            _ => (Duration::ZERO, End::Error(-32602, format!("Unknown tool: {name}"))),
        };
        if wait.is_zero() {
            return self.end(&id, end);
        }
        thread::spawn(move || {
            sleep(wait);
            self.end(&id, end);
        });
    }

    fn end(&self, id: &Value, end: End) {
        match end {
            End::Text(text) => self.answer(id, &json!({ "content": [{ "type": "text", "text": text }] })),
            End::Failed(text) => self.answer(
                id,
                &json!({ "content": [{ "type": "text", "text": text }], "isError": true }),
            ),
            End::Error(code, message) => self.send(
                &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }),
            ),
            End::Never => {}
            End::Crash => process::exit(70),
        }
    }

    /// Every first read of a path is reset by the peer.
    fn read_file(&self, arguments: &Value) -> End {
        let Some(path) = arguments["path"].as_str() else {
            self.write_down("read_file", "{}");
            return End::Failed("Missing required parameter: path".into());
        };
        self.write_down("read_file", path);
        let mut reads = lock(&self.reads);
        let count = reads.entry(path.to_owned()).or_default();
        *count += 1;
        match *count {
            1 => End::Failed("read ECONNRESET".into()),
            _ => End::Text(format!("contents of {path}")),
        }
    }

    /// Charges first; `then` selects the answer, and how long it takes.
    fn charge_card(&self, arguments: &Value) -> (Duration, End) {
        let Some(order) = arguments["order"].as_str() else {
            return (Duration::ZERO, End::Failed("Missing required parameter: order".into()));
        };
        self.write_down("charge_card", order);
        let charged = End::Text(format!("charged order {order}"));
        match arguments["then"].as_str() {
            Some("crash") => (Duration::ZERO, End::Crash),
            Some("hang") => (Duration::ZERO, End::Never),
            Some("soon") => (SOON, charged),
            // After every caller's timeout.
            Some("late") => (LATE, charged),
            Some("error") => {
                let message = arguments["message"].as_str().unwrap_or("Request timed out");
                let code = arguments["code"].as_i64().unwrap_or(-32001);
                (Duration::ZERO, End::Error(code, message.into()))
            }
            _ => (Duration::ZERO, charged),
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
        self.end(id, End::Text("done".into()));
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
