//! In the modes observe and shadow nothing changes, and the log says what happened, or what would have.
use super::client::{Client, text};
use rustix::process::Signal;
use serde_json::{Value, json};

fn events(log: &str) -> Vec<Value> {
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn what_would_have_been_retried_or_blocked_is_only_logged() {
    let mut client = Client::guarded(&["--mode", "shadow"]);
    client.list_tools();
    assert_eq!(text(&client.ask(1, "read_file", json!({ "path": "a" }))), "read ECONNRESET");
    for id in 2..=5 {
        client.call(id, "read_file", json!({}));
        assert_eq!(text(&client.answer(id)), "Missing required parameter: path");
    }
    assert_eq!(client.executions("read_file a"), 1);
    assert_eq!(client.executions("read_file {}"), 4);
    // The log is written beside the answers, so it may still be on its way.
    let log = client.log_until(|log| {
        let events = events(log);
        let retried = events.iter().any(|event| event["event"] == "tool_call_retry");
        retried && events.iter().any(|event| event["errorCode"] == "loop_detected")
    });
    assert!(!log.contains("\"a\""), "no value of a param is logged");
    for event in events(&log) {
        assert_eq!(event["shadow"], true, "{event}");
    }
}

#[test]
fn a_repeated_key_is_executed_again_and_logged_as_a_replay() {
    let mut client = Client::guarded(&["--mode", "shadow", "--log", "info"]);
    for id in 1..=2 {
        let params = json!({
            "name": "charge_card", "arguments": { "order": "o" }, "_meta": { "idempotencyKey": "k" },
        });
        assert_eq!(text(&client.ask_for(id, "tools/call", params)), "charged order o");
    }
    assert_eq!(client.executions("charge_card"), 2);
    client.log_until(|log| events(log).iter().any(|event| event["fromCache"] == true));
}

#[test]
fn a_call_with_a_task_is_guarded_up_to_its_handle() {
    let script = r#"read call
        echo '{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t-1","status":"working"}}}'
        exec cat >/dev/null"#;
    let mut client = Client::script(&[], script);
    let params = json!({ "name": "long", "arguments": {}, "task": { "ttl": 60_000 } });
    client.request(1, "tools/call", params);
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t-1","status":"working"}}}"#;
    assert_eq!(client.line(), format!("{line}\n").as_bytes());
}

#[test]
fn a_line_too_long_passes_where_every_byte_does() {
    for mode in ["off", "observe", "shadow"] {
        let mut client = Client::script(&["--mode", mode, "--max-line", "2000"], "exec cat");
        for id in ["big", "small"] {
            let text = "x".repeat(if id == "big" { 300_000 } else { 3 });
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "echo", "arguments": { "text": text } } });
            client.send(&call);
            assert_eq!(client.receive(), call);
        }
    }
}

#[test]
fn an_observed_call_is_logged_as_it_was() {
    let mut client = Client::guarded(&["--mode", "observe", "--log", "info"]);
    client.list_tools();
    assert_eq!(text(&client.ask(1, "read_file", json!({ "path": "a" }))), "read ECONNRESET");
    // As many as would end a loop, and a key that would be answered from its record.
    for id in 2..=5 {
        client.call(id, "read_file", json!({}));
        assert_eq!(text(&client.answer(id)), "Missing required parameter: path");
    }
    for id in 6..=7 {
        let params = json!({
            "name": "charge_card", "arguments": { "order": "o" }, "_meta": { "idempotencyKey": "k" },
        });
        assert_eq!(text(&client.ask_for(id, "tools/call", params)), "charged order o");
    }
    assert_eq!(client.executions("read_file a"), 1);
    assert_eq!(client.executions("charge_card"), 2);
    let ends = |log: &str| {
        let events = events(log).into_iter();
        events.filter(|event| event["event"] == "tool_call_end").collect::<Vec<_>>()
    };
    let log = client.log_until(|log| ends(log).len() == 7);
    for event in events(&log) {
        assert!(event["shadow"].is_null() && event["fromCache"] != true, "{event}");
        let name = event["event"].as_str().unwrap();
        assert!(["tool_call_start", "tool_call_end"].contains(&name), "{event}");
    }
    assert!(ends(&log).iter().all(|end| end["attempt"] == 1));
}

#[test]
fn a_configured_rollout_enforces_nothing_where_calls_are_only_watched() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("stack.toml");
    std::fs::write(&config, "[rollout]\nmode = \"enforce\"\n").unwrap();
    for mode in ["observe", "shadow"] {
        let config = config.to_str().unwrap();
        let mut client = Client::guarded(&["--mode", mode, "--config", config, "--log", "info"]);
        assert_eq!(text(&client.ask(1, "read_file", json!({ "path": "a" }))), "read ECONNRESET");
        client.signal(Signal::HUP);
        client.log_until(|log| log.contains("config_reloaded"));
        client.call(2, "read_file", json!({ "path": "b" }));
        assert_eq!(text(&client.answer(2)), "read ECONNRESET", "{mode}");
        assert_eq!(client.executions("read_file"), 2, "{mode}");
    }
}
