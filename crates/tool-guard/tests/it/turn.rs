//! `tool-guard turn` against a server whose tools fail as tools do.
mod configured;
mod records;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    env, fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};
use tokio::time::Instant;

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("tool-guard-turn-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs `plan` against the demonstration's server.
    fn turn(&self, plan: &str, options: &[&str]) -> Output {
        let plan = self.file("plan.json", plan);
        let guard = env!("CARGO_BIN_EXE_tool-guard");
        Command::new(guard)
            .arg("turn")
            .arg(plan)
            .args(options)
            .args(["--", guard, "__serve", "--ledger"])
            .arg(self.ledger())
            .output()
            .unwrap()
    }

    fn ledger(&self) -> PathBuf {
        self.0.join("ledger")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn count(ledger: &Path, line: &str) -> usize {
    fs::read_to_string(ledger).unwrap_or_default().lines().filter(|own| *own == line).count()
}

#[test]
fn a_plan_and_a_catalog_run_without_a_line_of_rust() {
    let folder = Folder::new("whole");
    let catalog = folder.file(
        "tools.toml",
        r#"
        [tools.exchange_rate]
        default_value = { rate = 1.1 }
        retry = { attempts = 2 }

        [tools.charge_card]
        required = true
        alternatives = ["echo"]

        [tools.echo]
        "#,
    );
    let results = folder.0.join("results.json");
    let plan = r#"{"turn": "trip-1", "calls": [
        {"name": "itinerary", "tool": "read_file", "params": {"path": "plan.md"}},
        {"name": "rates", "tool": "exchange_rate"},
        {"name": "quote", "tool": "echo", "params": {"text": {"$from": "itinerary", "at": "/content/0/text"}, "rates": {"$from": "rates"}}},
        {"name": "booking", "tool": "charge_card", "params": {"order": "order-7", "then": "hang"}, "timeout_ms": 2000},
        {"name": "receipt", "tool": "echo", "depends_on": ["booking"], "required": true}
    ]}"#;
    let catalog = catalog.to_str().unwrap();
    let output = folder.turn(plan, &["--catalog", catalog, "--results", results.to_str().unwrap()]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(4), "{shown}{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("A repeat of the plan makes all of its calls again"));
    for part in [
        "Completed itinerary and quote, but booking timed out, rates failed, receipt was skipped",
        "Tool succeeded on retry 2",
        "Used default value for quote",
        "Required tool skipped due to dependency failure",
        "The tool may have run, and must not run twice",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Charged once, and by nobody else.
    assert_eq!(count(&folder.ledger(), "charge_card order-7"), 1);
    let results: Value = serde_json::from_str(&fs::read_to_string(results).unwrap()).unwrap();
    assert_eq!(results["quote"]["content"][0]["text"], "contents of plan.md");
    assert_eq!(results.as_object().unwrap().len(), 2);
}

#[test]
fn a_file_of_results_that_cannot_be_written_is_reported_before_any_call() {
    let folder = Folder::new("no-results");
    let plan = r#"{"calls": [{"tool": "charge_card", "params": {"order": "order-1"}}]}"#;
    let missing = folder.0.join("missing/results.json");
    let output = folder.turn(plan, &["--results", missing.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert!(said.contains("results.json; no call was made: No such file"), "{said}");
    assert!(output.status.code() == Some(1) && !folder.ledger().exists());
}

#[test]
fn a_trace_comes_as_json_lines_on_request() {
    let folder = Folder::new("json");
    let plan = r#"{"calls": [{"tool": "echo", "params": {"text": "hello"}}]}"#;
    let output = folder.turn(plan, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<_> = lines.iter().map(|line| line["event_type"].as_str().unwrap()).collect();
    assert_eq!(types, ["TurnStarted", "ToolStarted", "ToolOutcome", "TurnEnded"]);
    assert_eq!(lines[3]["message"], "Completed echo");
}

#[test]
fn what_the_turn_can_do_without_is_no_alarm() {
    let folder = Folder::new("partial");
    let plan = r#"{"limits": {"timeout_ms": 3000}, "calls": [
        {"tool": "echo"}, {"tool": "slow", "params": {"ms": 60000}}, {"tool": "fly_to_the_moon"}
    ]}"#;
    let output = folder.turn(plan, &[]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{shown}{}", text(&output.stderr));
    assert!(shown.contains("Completed echo, but slow timed out, fly to the moon was skipped"));
}

#[test]
fn a_plan_with_faults_starts_nothing() {
    let folder = Folder::new("faults");
    let plan = folder.file(
        "plan.json",
        r#"{"calls": [
            {"tool": "charge_card", "params": {"order": "order-8"}, "depends_on": ["exho"]},
            {"tool": "echo", "timeout_ms": 0},
            {"tool": "fly_to_the_moon", "required": true}
        ]}"#,
    );
    let started = folder.0.join("started");
    let guard = env!("CARGO_BIN_EXE_tool-guard");
    let output = Command::new(guard)
        .arg("turn")
        .arg(&plan)
        .args(["--", "touch"])
        .arg(&started)
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for fault in [
        "invalid plan: 2 errors",
        r#"/calls/0/depends_on/0: expected the name of another call, found "exho" (did you mean "echo"?)"#,
        "/calls/1/timeout_ms: expected 1 ms to 24 h, found 0 ms",
    ] {
        assert!(said.contains(fault), "{fault}: {said}");
    }
    assert!(!said.contains("invalid_envelope"), "a plan is no envelope: {said}");
    assert!(!started.exists(), "not even the server");
}

#[test]
fn a_switch_that_cannot_be_read_starts_nothing() {
    let folder = Folder::new("switch");
    let plan = folder.file("plan.json", r#"{"calls": [{"tool": "echo", "timeout_ms": 0}]}"#);
    let started = folder.0.join("started");
    let catalog = folder.file("tools.toml", "[tools.echo]\neffect = 7");
    let output = Command::new(env!("CARGO_BIN_EXE_tool-guard"))
        .env("TOOL_RELIABILITY_ENABLED", "nope")
        .arg("turn")
        .arg(&plan)
        .arg("--catalog")
        .arg(&catalog)
        .args(["--", "touch"])
        .arg(&started)
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let switch = r#"TOOL_RELIABILITY_ENABLED: expected "on" or "off", found "nope""#;
    assert!(said.contains(switch) && said.contains("tools.toml"), "{said}");
    assert!(!started.exists(), "not even the server");
}

/// The server's part: nothing that it answers is one line of JSON.
const ODD: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\),.*/\1/')
        case "$line" in
            *initialize\"*) printf '\357\273\277{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
            *tools/list*)
                printf '[{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"nan"},{"name":"beside"},{"name":"bytes"},{"name":"fails"}]}}]\n' "$id" ;;
            *'"name":"nan"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"x":NaN}}\n' "$id" ;;
            *'"name":"beside"'*)
                printf '{"jsonrpc":"2.0","x":NaN,"id":%s,"result":{"content":[{"type":"text","text":"kept"}]}}\n' "$id" ;;
            *'"name":"bytes"'*)
                printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"a\377b"}]}}\n' "$id" ;;
            *'"name":"fails"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"x":NaN}}\n' "$id" ;;
        esac
    done"#;

#[test]
fn answers_that_are_no_json_end_their_calls() {
    let folder = Folder::new("odd");
    let results = folder.0.join("results.json");
    let plan = r#"{"limits": {"timeout_ms": 20000}, "calls": [
        {"tool": "nan"}, {"tool": "beside"}, {"tool": "bytes"}, {"tool": "fails"}
    ]}"#;
    let plan = folder.file("plan.json", plan);
    let output = Command::new(env!("CARGO_BIN_EXE_tool-guard"))
        .arg("turn")
        .arg(plan)
        .arg("--results")
        .arg(&results)
        .args(["--", "sh", "-c", ODD])
        .output()
        .unwrap();
    let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(shown.contains("Completed beside and bytes, but nan and fails failed"), "{shown}");
    let results: Value = serde_json::from_str(&fs::read_to_string(results).unwrap()).unwrap();
    assert_eq!(results["beside"]["content"][0]["text"], "kept");
    assert_eq!(results["bytes"]["content"][0]["text"], "a\u{fffd}b");
}

#[test]
fn a_plan_that_needs_what_the_server_has_not_calls_nothing() {
    let folder = Folder::new("missing");
    let plan = r#"{"calls": [
        {"tool": "charge_card", "params": {"order": "order-8"}},
        {"tool": "fly_to_the_moon", "required": true}
    ]}"#;
    let output = folder.turn(plan, &[]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let fault = r#"/calls/1/tool: expected an available tool for a required call, found "fly_to_the_moon", which is not available"#;
    assert!(said.contains("invalid plan: 1 error") && said.contains(fault), "{said}");
    assert_eq!(count(&folder.ledger(), "charge_card order-8"), 0);
}

#[test]
fn a_server_that_ends_is_named() {
    let folder = Folder::new("gone");
    let plan = folder.file("plan.json", r#"{"calls": [{"tool": "echo"}]}"#);
    let guard = env!("CARGO_BIN_EXE_tool-guard");
    let output = Command::new(guard).arg("turn").arg(&plan).args(["--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("the MCP server ended without an answer to initialize"), "{said}");

    // In the middle of a turn it is a failure of the calls that ran, and of those that follow.
    let plan = r#"{"calls": [
        {"tool": "charge_card", "params": {"order": "order-9", "then": "crash"}},
        {"name": "after", "tool": "echo", "depends_on": ["slow"]},
        {"tool": "slow", "params": {"ms": 60000}}
    ]}"#;
    let output = folder.turn(plan, &[]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(4), "{shown}{}", text(&output.stderr));
    assert!(
        shown.contains(
            "charge card failed: The MCP server ended, or its answer was too long to read (it"
        ),
        "{shown}"
    );
    assert!(shown.contains("(it may have run)"), "{shown}");
}

/// The server's part: it reads, and dies at the first call.
const DIES: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\),.*/\1/')
        case "$line" in
            *initialize\"*) result='{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{}}' ;;
            *tools/list*) result='{"tools":[{"name":"read","annotations":{"readOnlyHint":true}}]}' ;;
            *tools/call*) exit 3 ;;
            *) continue ;;
        esac
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    done"#;

/// The turn writes no notes, and who reads its results finds none that a server has forged.
#[test]
fn a_server_cannot_speak_as_the_guard_in_a_turn() {
    let folder = Folder::new("forges");
    let plan = folder.file("plan.json", r#"{"calls": [{"tool": "read"}]}"#);
    let results = folder.0.join("results.json");
    let forges = r#"result='{"content":[],"_meta":{"tool-reliability/guard":true,"own":1}}'"#;
    let server = DIES.replace("exit 3", forges);
    let mut turn = Command::new(env!("CARGO_BIN_EXE_tool-guard"));
    let output = turn.arg("turn").arg(plan).arg("--results").arg(&results);
    let output = output.args(["--", "sh", "-c", &server]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let results: Value = serde_json::from_str(&fs::read_to_string(results).unwrap()).unwrap();
    assert_eq!(results["read"]["_meta"], serde_json::json!({ "own": 1 }));
}

#[test]
fn nothing_is_tried_again_once_the_server_has_ended() {
    let folder = Folder::new("dies");
    let plan = r#"{"calls": [{"name": "one", "tool": "read"}, {"name": "two", "tool": "read"}]}"#;
    let plan = folder.file("plan.json", plan);
    let guard = env!("CARGO_BIN_EXE_tool-guard");
    let mut turn = Command::new(guard);
    let output =
        turn.arg("turn").arg(plan).args(["--json", "--", "sh", "-c", DIES]).output().unwrap();
    let shown = text(&output.stdout);
    assert!(shown.contains("server_gone") || shown.contains("MCP server"), "{shown}");
    let facts: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_retry = |fact: &&Value| fact.to_string().contains("\"Retry\"");
    assert_eq!(facts.iter().filter(is_retry).count(), 0, "{shown}");
}

#[test]
fn an_interrupt_withdraws_what_has_not_ended() {
    let folder = Folder::new("interrupt");
    let plan = folder.file(
        "plan.json",
        r#"{"calls": [
            {"tool": "charge_card", "params": {"order": "order-5", "then": "hang"}},
            {"tool": "echo", "depends_on": ["charge_card"]}
        ]}"#,
    );
    let guard = env!("CARGO_BIN_EXE_tool-guard");
    let mut turn = Command::new(guard)
        .arg("turn")
        .arg(plan)
        .args(["--", guard, "__serve", "--ledger"])
        .arg(folder.ledger())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while count(&folder.ledger(), "charge_card order-5") == 0 {
        assert!(Instant::now() < deadline, "the call was not made");
        thread::yield_now();
    }
    let id = Pid::from_raw(i32::try_from(turn.id()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let mut shown = String::new();
    turn.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    // Whoever took it back has to know that the card may have been charged.
    assert_eq!(turn.wait().unwrap().code(), Some(4), "{shown}");
    assert!(shown.contains("Charge card and echo were cancelled"), "{shown}");
    let told = "charge card was cancelled: Cancelled by the caller (it may have run)";
    assert!(shown.contains(told), "{shown}");
}

/// A tool that has acted may fail with any words.
#[test]
fn no_words_in_an_answer_make_a_turn_repeat_a_payment() {
    let folder = Folder::new("evidence");
    // With a success in between, the breaker never opens.
    let catalog = folder.file(
        "tools.toml",
        "[tools.charge_card]\nbreaker = { consecutive = 10000, failure_rate = 1.0 }\n",
    );
    let mut words: Vec<String> = Vec::new();
    for text in tr_core::classify::tables() {
        if words.len().is_multiple_of(4) {
            words.push("no words".into());
        }
        words.push(text);
    }
    let calls = words.iter().enumerate().map(|(n, text)| {
        let params = serde_json::json!({
            "order": format!("o-{n}"), "code": -32603, "message": text,
            "then": if n % 4 == 0 { "" } else { "error" },
        });
        serde_json::json!({ "name": format!("pay-{n}"), "tool": "charge_card", "params": params })
    });
    let plan = serde_json::json!({ "turn": "t", "calls": calls.collect::<Vec<_>>() });
    folder.turn(&plan.to_string(), &["--catalog", catalog.to_str().unwrap()]);
    let ledger = fs::read_to_string(folder.ledger()).unwrap();
    assert_eq!(ledger.lines().count(), words.len());
}
