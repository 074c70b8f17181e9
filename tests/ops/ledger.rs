//! The client's own ledger agrees with the guard's summary, metrics, log and status.
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{ChildStdin, ChildStdout, Command, Stdio},
};

/// Answers each call as its argument `how` says.
const SERVER: &str = r#"
import sys, json
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message: continue
    result = {"content": []}
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "search", "inputSchema": {}, "annotations": {"readOnlyHint": True}}, {"name": "pay", "inputSchema": {}}]}
    elif method == "tools/call":
        how = message["params"]["arguments"]["how"]
        result = {"content": [{"type": "text", "text": how}]}
        if how != "ok": result["isError"] = True
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// What the server says of failures: one that leaves a payment unknown, and one that does not.
const UNKNOWN: &str = "HTTP 503: lost";
const FAILED: &str = "invalid amount";

struct Client {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
    ledger: Ledger,
}

/// What the client was told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ledger {
    calls: u64,
    replayed: u64,
    refused: BTreeMap<String, u64>,
    unknown: u64,
}

impl Client {
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        writeln!(self.input, "{line}").unwrap();
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the guard has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Makes a call. A refusal is the guard's own word, before the call was sent: those it has by `refuses`.
    fn call(&mut self, tool: &str, order: u64, how: &str, meta: &Value, repeats: Option<&str>) {
        let arguments = json!({ "order": order, "how": how });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let answer = self.ask("tools/call", &params);
        let result = &answer["result"];
        let code = result["_meta"]["tool-reliability/error"]["code"].as_str();
        let said = result["content"].to_string();
        self.ledger.calls += 1;
        match (repeats, code) {
            (Some("replayed"), None) => self.ledger.replayed += 1,
            (Some(refused), Some(code)) => {
                assert_eq!(code, refused, "{answer}");
                *self.ledger.refused.entry(code.into()).or_default() += 1;
            }
            (None, None) if said.contains("[MAY HAVE RUN]") => self.ledger.unknown += 1,
            (None, None) => {}
            other => panic!("{other:?}: {answer}"),
        }
    }
}

/// A row of numbers that looks like chance, and is the same each time.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn the_client_s_ledger_agrees_with_summary_metrics_log_and_status() {
    let calls: u64 = env::var("TR_LEDGER").map_or(3_000, |calls| calls.parse().unwrap());
    let (guard, folder) = (crate::guard::program(), tempfile::tempdir().unwrap());
    let config = folder.path().join("stack.toml");
    // What a breaker or the loop guard refuses depends on the clock.
    let text = "[breaker]\nmode = \"disabled\"\n[loops]\nmode = \"off\"\n[retry]\nattempts = 1\n";
    std::fs::write(&config, text).unwrap();
    let mut child = Command::new(&guard)
        .args(["mcp", "--metrics", "127.0.0.1:0", "--log", "info", "--config"])
        .arg(&config)
        .args(["--", "python3", "-c", SERVER])
        .env("XDG_STATE_HOME", folder.path())
        .env("CLAUDE_PROJECT_DIR", "/home/user/shop")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut address = String::new();
    while !address.contains("metrics_listening") {
        address.clear();
        assert!(log.read_line(&mut address).unwrap() > 0, "it serves no metrics");
    }
    let address = serde_json::from_str::<Value>(&address).unwrap()["address"].clone();
    let log = std::thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        text
    });
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let output = BufReader::new(output);
    let mut client = Client { input, output, last: 0, ledger: Ledger::default() };
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    client.ask("initialize", &hello);
    client.ask("tools/list", &json!({}));
    let (mut chance, mut order) = (7, 0);
    let key = |order: u64| json!({ "idempotencyKey": format!("order-{order}") });
    let by_model =
        |order: u64| json!({ "claudecode/toolUseId": format!("toolu_01A09q90qw90lq9{order:09}c") });
    while client.ledger.calls < calls {
        order += 1;
        let (none, key, by_model) = (json!({}), key(order), by_model(order));
        match next(&mut chance) % 9 {
            0 => client.call("search", order, "ok", &none, None),
            1 => client.call("search", order, FAILED, &by_model, None),
            2 => client.call("pay", order, "ok", &none, None),
            3 => {
                client.call("pay", order, "ok", &key, None);
                client.call("pay", order, "ok", &key, Some("replayed"));
                client.call("pay", order + 1_000_000, "ok", &key, Some("idempotency_conflict"));
            }
            4 => {
                client.call("pay", order, UNKNOWN, &key, None);
                client.call("pay", order, UNKNOWN, &key, Some("outcome_unknown"));
            }
            5 => {
                client.call("pay", order, FAILED, &key, None);
                client.call("pay", order, FAILED, &key, Some("replayed"));
            }
            6 => {
                // An equal call without an id, and under a new one of the model's.
                client.call("pay", order, UNKNOWN, &none, None);
                client.call("pay", order, UNKNOWN, &none, Some("outcome_unknown"));
            }
            7 => {
                client.call("pay", order, UNKNOWN, &by_model, None);
                let other =
                    json!({ "claudecode/toolUseId": format!("toolu_01B39q90qw90lq9{order:09}d") });
                client.call("pay", order, UNKNOWN, &other, Some("outcome_unknown"));
            }
            _ => client.call("pay", order, "ok", &by_model, None),
        }
    }
    let mut scrape = TcpStream::connect(address.as_str().unwrap()).unwrap();
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut metrics = String::new();
    scrape.read_to_string(&mut metrics).unwrap();
    let counted = metrics.lines().filter(|line| line.starts_with("openclaw_tool_calls_total{"));
    let counted: f64 =
        counted.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum();

    let status = Command::new(&guard)
        .args(["status", "--json"])
        .env("XDG_STATE_HOME", folder.path())
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let shown = &status["guards"][0]["counts"];

    let Client { input, ledger, .. } = client;
    drop(input);
    assert!(child.wait().unwrap().success());
    let log = log.join().unwrap();
    let events: Vec<Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let summary = events.iter().find(|event| event["event"] == "summary").unwrap();
    let by = |by: &Value| {
        let parts = by.as_str().unwrap().split(' ').filter_map(|it| it.split_once('='));
        parts
            .map(|(code, calls)| (code.to_owned(), calls.parse().unwrap()))
            .collect::<BTreeMap<_, u64>>()
    };
    let of = |event: &Value, refused| Ledger {
        calls: event["calls"].as_u64().unwrap(),
        replayed: event["replayed"].as_u64().unwrap(),
        refused,
        unknown: event["unknown"].as_u64().unwrap(),
    };
    assert_eq!(of(summary, by(&summary["refusedBy"])), ledger, "the summary");
    let refused = serde_json::from_value(shown["refused"].clone()).unwrap();
    assert_eq!(of(shown, refused), ledger, "status");
    assert_eq!(counted, ledger.calls as f64, "metrics");
    let ends = ["tool_call_end", "tool_call_blocked"];
    let told = events.iter().filter(|event| ends.iter().any(|end| event["event"] == *end)).count();
    assert_eq!(told as u64, ledger.calls, "the log");
    let blocked = events.iter().filter(|event| event["event"] == "tool_call_blocked").count();
    assert_eq!(blocked as u64, ledger.refused.values().sum::<u64>(), "refusals in the log");
}
