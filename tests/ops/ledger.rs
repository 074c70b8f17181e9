//! The client's own ledger agrees with the guard's summary, metrics, log and status.
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{ChildStdin, ChildStdout, Command, Stdio},
    thread,
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
        if how == "crash": sys.exit(7)
        result = {"content": [{"type": "text", "text": how}]}
        if how != "ok": result["isError"] = True
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// What the server says of failures: one that leaves a payment unknown, and one that does not.
const UNKNOWN: &str = "HTTP 503: lost";
const FAILED: &str = "invalid amount";

/// The tool of `serve`, which gets its params on standard input.
const COMMAND: &str = r#"read -r params; case "$params" in *'"ok"'*) echo '"ok"';; *'HTTP 503'*) echo HTTP 503: lost >&2; exit 130;; *) echo invalid amount >&2; exit 3;; esac"#;

/// The ways to a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Stdio,
    Http,
    Decide,
    Serve,
}

/// How a client identifies a call.
#[derive(Clone, Debug)]
enum Id {
    None,
    Key(u64),
    /// The model's.
    Model(String),
}

/// What a client is told of a call.
struct Told {
    code: Option<String>,
    /// Of a call that was made.
    is_unknown: bool,
    answer: Value,
}

struct Client {
    door: Door,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Where the guard listens, and the session that it gave.
    address: String,
    session: String,
    last: u64,
    crashes: u32,
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
    /// Sends a line, and reads its answer: a server that is back has news, too.
    fn line(&mut self, sent: &Value) -> Value {
        writeln!(self.input, "{sent}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the guard has ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer.get("method").is_none() {
                return answer;
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        if self.door == Door::Stdio {
            return self.line(&line);
        }
        let body = line.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{}content-length: {}\r\n\r\n{body}",
            self.session,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let session = answer.lines().find(|line| line.starts_with("mcp-session-id:"));
        if let Some(session) = session {
            self.session = format!("{session}\r\n");
        }
        let message = answer.lines().find_map(|line| {
            let data = line.strip_prefix("data: ").unwrap_or(line);
            serde_json::from_str::<Value>(data).ok().filter(|it| it["id"] == self.last)
        });
        message.unwrap_or_else(|| panic!("{answer}"))
    }

    fn tell(&mut self, tool: &str, order: u64, how: &str, id: &Id) -> Told {
        let arguments = json!({ "order": order, "how": how });
        let key = match id {
            Id::Key(key) => Some(format!("order-{key}")),
            _ => None,
        };
        let model = match id {
            Id::Model(id) => Some(id.clone()),
            _ => None,
        };
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        match self.door {
            Door::Stdio | Door::Http => {
                let mut meta = json!({});
                key.into_iter().for_each(|key| meta["idempotencyKey"] = key.into());
                model.into_iter().for_each(|id| meta["claudecode/toolUseId"] = id.into());
                let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
                let answer = self.ask("tools/call", &params);
                let result = &answer["result"];
                let error = &result["_meta"]["tool-reliability/error"];
                let said = result["content"].to_string();
                // The server is gone: the guard's words, for a call that was sent.
                let is_sent = error["code"] == "server_gone" && error["ran"] == "unknown";
                let code = text(&error["code"]).filter(|_| !is_sent);
                Told { code, is_unknown: is_sent || said.contains("[MAY HAVE RUN]"), answer }
            }
            Door::Decide => {
                self.last += 1;
                let effect = if tool == "search" { "read_only" } else { "mutating" };
                let mut before = json!({ "event": "before", "id": self.last, "tool": tool,
                    "params": arguments, "effect": effect, "session": "s" });
                key.into_iter().for_each(|key| before["key"] = key.into());
                model.into_iter().for_each(|id| before["call"] = id.into());
                let answer = self.line(&before);
                if answer["decision"] == "block" {
                    let code = text(&answer["code"]).filter(|code| code != "replayed");
                    return Told { code, is_unknown: false, answer };
                }
                let after = json!({ "event": "after", "id": "a", "before": self.last,
                    "output": how, "isError": how != "ok" });
                let answer = self.line(&after);
                let is_unknown = answer["notes"].to_string().contains("[MAY HAVE RUN]");
                Told { code: None, is_unknown, answer }
            }
            Door::Serve => {
                let mut call = json!({ "tool": tool, "action": "", "params": arguments });
                key.into_iter().for_each(|key| call["idempotencyKey"] = key.into());
                let answer = self.line(&call);
                let error = &answer["error"];
                let refusals = ["outcome_unknown", "idempotency_conflict"];
                let code = text(&error["code"]).filter(|code| refusals.contains(&&**code));
                let is_unknown = code.is_none() && error["ran"] == "unknown";
                Told { code, is_unknown, answer }
            }
        }
    }

    /// Makes a call, of which the guard says `repeats`, if it does not make it.
    fn call(&mut self, tool: &str, order: u64, how: &str, id: &Id, repeats: Option<&str>) {
        let Told { code, is_unknown, answer } = self.tell(tool, order, how, id);
        self.ledger.calls += 1;
        match (repeats, code) {
            (Some("replayed"), None) => self.ledger.replayed += 1,
            (Some(refused), Some(code)) => {
                assert_eq!(code, refused, "{answer}");
                *self.ledger.refused.entry(code).or_default() += 1;
            }
            (None, None) => self.ledger.unknown += u64::from(is_unknown),
            other => panic!("{other:?}: {answer}"),
        }
    }

    /// One of the ways in which calls go, and what comes after it.
    fn play(&mut self, chance: u64, order: u64) {
        let key = Id::Key(order);
        let by_model = |end: &str| Id::Model(format!("toolu_01A09q90qw90lq{order:09}{end}"));
        let (first, other) = (by_model("Ax"), by_model("Bz"));
        match chance % 10 {
            0 => self.call("search", order, "ok", &Id::None, None),
            1 => self.call("search", order, FAILED, &first, None),
            2 => self.call("pay", order, "ok", &Id::None, None),
            3 => {
                self.call("pay", order, "ok", &key, None);
                self.call("pay", order, "ok", &key, Some("replayed"));
                self.call("pay", order + 1_000_000, "ok", &key, Some("idempotency_conflict"));
            }
            4 => {
                self.call("pay", order, UNKNOWN, &key, None);
                self.call("pay", order, UNKNOWN, &key, Some("outcome_unknown"));
            }
            5 => {
                self.call("pay", order, FAILED, &key, None);
                self.call("pay", order, FAILED, &key, Some("replayed"));
            }
            // An equal call without an id, and under a new one of the model's.
            6 if self.door != Door::Serve && self.door != Door::Decide => {
                self.call("pay", order, UNKNOWN, &Id::None, None);
                self.call("pay", order, UNKNOWN, &Id::None, Some("outcome_unknown"));
            }
            7 if self.door != Door::Serve => {
                self.call("pay", order, UNKNOWN, &first, None);
                self.call("pay", order, UNKNOWN, &other, Some("outcome_unknown"));
            }
            // A server that crashes more often stays down.
            8 if self.door == Door::Stdio && order.is_multiple_of(10) && self.crashes < 4 => {
                self.crashes += 1;
                self.call("pay", order, "crash", &key, None);
                self.call("pay", order, "crash", &key, Some("outcome_unknown"));
                let is_back = |told: &Told| told.code.is_none();
                crate::until("the server is back", || {
                    let told = self.tell("search", order, "ok", &Id::None);
                    self.ledger.calls += 1;
                    if !is_back(&told) {
                        *self.ledger.refused.entry("server_gone".into()).or_default() += 1;
                    }
                    is_back(&told).then_some(())
                });
            }
            _ => self.call("pay", order, "ok", &first, None),
        }
    }
}

/// A row of numbers that looks like chance, and is the same each time.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// What a running guard says of itself.
fn scraped(address: &str) -> f64 {
    let mut scrape = TcpStream::connect(address).unwrap();
    scrape.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut metrics = String::new();
    scrape.read_to_string(&mut metrics).unwrap();
    let counted = metrics.lines().filter(|line| line.starts_with("openclaw_tool_calls_total{"));
    counted.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

fn play(door: Door) {
    let calls: u64 = env::var("TR_LEDGER").map_or(1_500, |calls| calls.parse().unwrap());
    let (guard, folder) = (crate::guard::program(), tempfile::tempdir().unwrap());
    let config = folder.path().join("stack.toml");
    // What a breaker or the loop guard refuses depends on the clock.
    let mut text =
        "[breaker]\nmode = \"disabled\"\n[loops]\nmode = \"off\"\n[retry]\nattempts = 1\n"
            .to_owned();
    let command = ["sh", "-c", COMMAND];
    if door == Door::Serve {
        text += &format!("[tools.search]\neffect = \"read_only\"\ncommand = {command:?}\n");
        text += &format!("[tools.pay]\neffect = \"mutating\"\ncommand = {command:?}\n");
    }
    fs::write(&config, text).unwrap();
    let mut process = Command::new(&guard);
    process.arg(match door {
        Door::Stdio | Door::Http => "mcp",
        Door::Decide => "decide",
        Door::Serve => "serve",
    });
    process.args(["--metrics", "127.0.0.1:0", "--log", "info", "--config"]).arg(&config);
    match door {
        Door::Stdio => process.args(["--restart", "crash", "--", "python3", "-c", SERVER]),
        Door::Http => process.args(["--listen", "127.0.0.1:0", "--", "python3", "-c", SERVER]),
        Door::Decide => &mut process,
        Door::Serve => process.arg("--stdio"),
    };
    let mut child = process
        .env("XDG_STATE_HOME", folder.path())
        .env("CLAUDE_PROJECT_DIR", "/home/user/shop")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut listening = BTreeMap::new();
    let wanted = ["metrics_listening", "mcp_listening"];
    let wanted = if door == Door::Http { &wanted[..] } else { &wanted[..1] };
    while !wanted.iter().all(|event| listening.contains_key(*event)) {
        let mut line = String::new();
        assert!(log.read_line(&mut line).unwrap() > 0, "it does not listen: {listening:?}");
        let event: Value = serde_json::from_str(&line).unwrap_or_default();
        if let (Some(name), Some(address)) = (event["event"].as_str(), event["address"].as_str()) {
            listening.insert(name.to_owned(), address.to_owned());
        }
    }
    let log = thread::spawn(move || {
        let mut text = String::new();
        log.read_to_string(&mut text).unwrap();
        text
    });
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (output, address) =
        (BufReader::new(output), listening.get("mcp_listening").cloned().unwrap_or_default());
    let (session, ledger) = (String::new(), Ledger::default());
    let mut client = Client { door, input, output, address, session, last: 0, crashes: 0, ledger };
    if matches!(door, Door::Stdio | Door::Http) {
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
        client.ask("initialize", &hello);
        client.ask("tools/list", &json!({}));
    }
    let (mut chance, mut order) = (7, 0);
    while client.ledger.calls < calls {
        order += 1;
        client.play(next(&mut chance), order);
    }
    let counted = scraped(&listening["metrics_listening"]);
    let status = Command::new(&guard)
        .args(["status", "--json"])
        .env("XDG_STATE_HOME", folder.path())
        .env("HOME", folder.path())
        .output()
        .unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();

    let Client { input, ledger, .. } = client;
    drop(input);
    if door == Door::Http {
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    }
    let end = child.wait().unwrap();
    assert!(end.success() || door == Door::Http, "{end}");
    let log = log.join().unwrap();
    let events: Vec<Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |event: &Value, refused| Ledger {
        calls: event["calls"].as_u64().unwrap(),
        replayed: event["replayed"].as_u64().unwrap(),
        refused,
        unknown: event["unknown"].as_u64().unwrap(),
    };
    if door != Door::Serve {
        let summary = events.iter().find(|event| event["event"] == "summary");
        let summary = summary.unwrap_or_else(|| panic!("{door:?}: {log}"));
        let by = summary["refusedBy"].as_str().unwrap().split(' ');
        let by = by.filter_map(|it| it.split_once('='));
        let by = by.map(|(code, calls)| (code.to_owned(), calls.parse().unwrap())).collect();
        assert_eq!(of(summary, by), ledger, "{door:?}: the summary");
        let shown = &status["guards"][0]["counts"];
        let refused = serde_json::from_value(shown["refused"].clone()).unwrap();
        assert_eq!(of(shown, refused), ledger, "{door:?}: status");
    }
    assert_eq!(counted, ledger.calls as f64, "{door:?}: metrics");
    let ends = ["tool_call_end", "tool_call_blocked"];
    let told = events.iter().filter(|event| ends.iter().any(|end| event["event"] == *end)).count();
    assert_eq!(told as u64, ledger.calls, "{door:?}: the log");
    let blocked = events.iter().filter(|event| event["event"] == "tool_call_blocked").count();
    // What is found out only as the call is sent is its end.
    let refused = ledger.refused.iter().filter(|(code, _)| *code != "server_gone");
    let refused: u64 = refused.map(|(_, calls)| calls).sum();
    assert_eq!(blocked as u64, refused, "{door:?}: refusals in the log");
}

#[test]
fn the_client_s_ledger_agrees_with_summary_metrics_log_and_status() {
    play(Door::Stdio);
}

#[test]
fn a_ledger_over_http_agrees() {
    play(Door::Http);
}

#[test]
fn the_ledger_of_a_host_agrees() {
    play(Door::Decide);
}

#[test]
fn the_ledger_of_envelopes_agrees() {
    play(Door::Serve);
}
