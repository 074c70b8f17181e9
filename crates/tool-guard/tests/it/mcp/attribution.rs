//! The attribution log: which model, of which client, made a malformed call.
use super::client::{BIN, Client, ledger};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

/// Writes down what it gets, and refuses every call as malformed.
const STRICT: &str = r#"
    while read -r line; do
        printf '%s\n' "$line" >>"$LEDGER"
        id=$(printf %s "$line" | sed 's/.*"id" *: *\([0-9]*\).*/\1/')
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"Missing required parameter: path\"}]}}"
    done"#;

/// A guard in a home of its own, and what the server gets.
fn guard(options: &[&str], home: &Path) -> (Client, PathBuf) {
    let got = ledger();
    let mut command = Command::new(BIN);
    command.arg("mcp").args(options).args(["--", "sh", "-c", STRICT]);
    command.env("LEDGER", &got).env("HOME", home);
    (Client::start(command, got.clone()), got)
}

fn home() -> PathBuf {
    let home = ledger().with_extension("home");
    fs::create_dir(&home).unwrap();
    home
}

fn call(client: &mut Client, id: u32, tool: &str, meta: &Value) {
    let arguments = json!({ "file": "/etc/s3cret", "lines": [1] });
    client.request(
        id,
        "tools/call",
        json!({ "name": tool, "arguments": arguments, "_meta": meta }),
    );
    client.answer(id);
}

/// The entries of a log, once the guard has ended.
fn ended(mut client: Client, log: &Path) -> Vec<Value> {
    client.signal(Signal::TERM);
    client.wait();
    let log = fs::read_to_string(log).unwrap_or_default();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_malformed_call_is_written_down_with_its_model() {
    let home = home();
    let (mut client, _) = guard(&["--attribution-log"], &home);
    let info = json!({ "name": "codex", "version": "0.169.0" });
    client.ask_for(1, "initialize", json!({ "clientInfo": info }));
    let codex = json!({ "callId": "call_7", "x-codex-turn-metadata": { "turn_id": "t", "model": "gpt-5.4" } });
    call(&mut client, 2, "read", &codex);
    call(&mut client, 3, "read", &json!({ "claudecode/toolUseId": "toolu_01" }));
    call(&mut client, 4, "read apiKey=k-123", &json!({ "callId": "exec-1" }));
    let log = home.join(".openclaw/tool-guard.log");
    let entries = ended(client, &log);
    let mut seen = entries.clone();
    for entry in &mut seen {
        let time = entry.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
    }
    let entry = |model: &str, provider: &str, tool: &str, id: &str, action: &str| {
        json!({
            "model": model, "provider": provider, "toolName": tool, "toolCallId": id,
            "args": { "file": "string", "lines": "array" }, "errorType": "non-retryable",
            "action": action, "client": "codex/0.169.0",
        })
    };
    let wanted = [
        entry("gpt-5.4", "fireworks/openai-compat", "read", "call_7", "continue"),
        entry("anthropic", "anthropic", "read", "toolu_01", "continue"),
        entry("unknown", "unknown", "read apiKey=[redacted]", "exec-1", "continue"),
    ];
    assert_eq!(seen, wanted);
    assert_eq!((mode(&log), mode(log.parent().unwrap())), (0o600, 0o700));
    fs::remove_dir_all(home).unwrap();
}

/// What the guard reads of `initialize` and of calls changes neither.
#[test]
fn what_is_read_for_the_log_passes_as_it_came() {
    let home = home();
    let (mut client, got) = guard(&["--attribution-log"], &home);
    let lines = [
        r#"{ "method":"initialize" , "jsonrpc":"2.0", "id":1, "params":{"clientInfo":{"version":"1","name":"codex"},"x":1.0} }"#,
        r#"{ "method":"tools/call" , "jsonrpc":"2.0", "id":2, "params":{"name":"read", "_meta":{"callId" : "call_1","x":1.0}} }"#,
    ];
    for (line, id) in lines.iter().zip(1..) {
        client.send_raw(format!("{line}\n").as_bytes());
        client.answer(id);
    }
    assert_eq!(fs::read_to_string(got).unwrap().lines().collect::<Vec<_>>(), lines);
    drop(client);
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn a_configuration_may_name_the_log_and_the_option_beats_it() {
    let home = home();
    let (config, here, there) = (home.join("c.toml"), home.join("here"), home.join("there"));
    fs::write(&config, format!("[loops]\nlog_path = \"{}\"\n", here.display())).unwrap();
    let config = config.to_str().unwrap();
    let option = format!("--attribution-log={}", there.display());
    for (options, log) in [
        (vec!["--config", config], &here),
        (vec!["--config", config, &option], &there),
        (vec!["--config", config, &option, "--mode", "shadow"], &there),
    ] {
        let _ = fs::remove_file(log);
        let (mut client, _) = guard(&options, &home);
        call(&mut client, 1, "read", &json!({}));
        assert_eq!(ended(client, log).len(), 1, "{options:?}");
    }
    assert_eq!(fs::read_to_string(&here).unwrap().lines().count(), 1);
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn a_log_that_nothing_can_be_written_to_is_said_at_once() {
    let home = home();
    let (link, victim) = (home.join("link"), home.join("victim"));
    fs::write(&victim, "kept").unwrap();
    symlink(&victim, &link).unwrap();
    for (path, why) in [(link, "is a link"), (home.clone(), "directory")] {
        let option = format!("--attribution-log={}", path.display());
        let output = Command::new(BIN).args(["mcp", &option, "--", "true"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot log to ") && said.contains(why), "{said}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    // Without the loop guard nobody counts malformed calls.
    for off in [["--loops", "off"], ["--mode", "off"]] {
        let (mut client, _) = guard(&["--attribution-log", off[0], off[1]], &home);
        client.log_until(|log| log.contains("nothing is written to the attribution log"));
    }
    assert!(!home.join(".openclaw").exists());
    fs::remove_dir_all(home).unwrap();
}
