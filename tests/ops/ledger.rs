//! The client's own ledger agrees with the guard's summary, metrics, log and status.
mod client;
mod collector;

use self::{
    client::{Client, Door, Ledger},
    collector::Collector,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Command, Stdio},
    thread,
};

/// Answers each call as its argument `how` says.
const SERVER: &str = r#"
import json, os, sys, time
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message: continue
    result = {"content": []}
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "search", "inputSchema": {}, "annotations": {"readOnlyHint": True}}, {"name": "pay", "inputSchema": {}}, {"name": "wait", "inputSchema": {}}]}
    elif method == "tools/call":
        how = message["params"]["arguments"]["how"]
        if how == "crash": sys.exit(7)
        if how == "never": continue
        if how == "late":
            open(os.environ["XDG_STATE_HOME"] + "/got-%d" % message["params"]["arguments"]["order"], "w")
            time.sleep(0.02)
            how = "ok"
        result = {"content": [{"type": "text", "text": how}]}
        if how != "ok": result["isError"] = True
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// The tool of `serve`, which gets its params on standard input.
const COMMAND: &str = r#"read -r params; case "$params" in *'"ok"'*) echo '"ok"';; *'HTTP 503'*) echo HTTP 503: lost >&2; exit 130;; *) echo invalid amount >&2; exit 3;; esac"#;

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
        "[breaker]\nmode = \"disabled\"\n[loops]\nmode = \"off\"\n[retry]\nattempts = 1\n\
         [tools.wait]\ntimeout_ms = 50\n"
            .to_owned();
    let command = ["sh", "-c", COMMAND];
    if door == Door::Serve {
        text += "effect = \"mutating\"\ncommand = [\"sleep\", \"60\"]\n";
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
    let collector = Collector::start();
    let mut child = process
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)
        .env("OTEL_BSP_MAX_QUEUE_SIZE", "1000000")
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
    let mut client = Client {
        door,
        input,
        output,
        address,
        session,
        last: 0,
        crashes: 0,
        folder: folder.path().into(),
        ledger,
    };
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
    assert_eq!(collector.calls(), ledger.calls, "{door:?}: spans");
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
