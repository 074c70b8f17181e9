//! `tool-guard decide` from outside: hosts that talk to it, die, and come back.
mod checks;
mod closed_pipe;
mod host;
mod socket;

use self::host::{Folder, Host, STRONG, pay};
use serde_json::json;

#[test]
fn a_host_is_told_what_to_do_with_each_call() {
    let folder = Folder::new();
    let mut host = Host::start(&folder, &[]);
    let read = json!({ "event": "before", "id": 1, "tool": "read", "params": {}, "turn": "t", "effect": "read_only" });
    let refused =
        "Validation failed for tool \"read\":\n  - path: must have required property 'path'";
    let mut notes = Vec::new();
    for _ in 0..2 {
        assert_eq!(host.ask(&read)["decision"], "allow");
        notes.push(host.ask(&json!({ "event": "after", "id": "e", "before": 1, "error": refused }))["notes"].clone());
    }
    assert_eq!(notes[0], json!(["[NON-RETRYABLE]"]));
    assert!(notes[1].to_string().contains("LOOP DETECTED"), "{notes:?}");
    assert_eq!(host.ask(&read)["code"], "loop_detected");
    let rewritten = host.ask(&json!({ "event": "before", "id": 2, "tool": "ls", "params": { "a": 1.0, "_utee": { "timeout": 5 } } }));
    assert_eq!(
        (&rewritten["decision"], rewritten["params"].to_string()),
        (&"rewrite".into(), "{\"a\":1.0}".into())
    );
    assert_eq!(
        host.ask(&json!({ "event": "turn_end", "id": 3, "session": "s" }))["decision"],
        "none"
    );
    assert_eq!(host.end(), 0);
}

#[test]
fn every_line_gets_one_answer_under_its_id() {
    let folder = Folder::new();
    let mut host = Host::start(&folder, &["--max-line", "1024"]);
    let mut long = pay(7, STRONG);
    long["params"] = json!({ "text": "x".repeat(2000) });
    assert!(host.ask(&long)["error"].as_str().unwrap().contains("--max-line"), "long");
    for (line, id) in [("hi", "null"), ("{}", "null"), ("{\"id\":\"a\",\"event\":\"x\"}", "\"a\"")]
    {
        let answer = host.raw(line);
        assert_eq!(answer["id"].to_string(), id);
        assert!(answer["error"].is_string(), "{answer}");
    }
    // Lines that arrive together are answered, too; an empty one is none.
    host.write("\n{\"id\":1,\"event\":\"turn_end\",\"session\":\"s\"}\n\n{\"id\":2,\"event\":\"turn_end\",\"session\":\"s\"}\n");
    assert_eq!((host.read()["id"].clone(), host.read()["id"].clone()), (json!(1), json!(2)));
    assert_eq!(host.end(), 0);
}

#[test]
fn a_recorded_answer_outlives_host_and_guard() {
    let folder = Folder::new();
    let mut host = Host::start(&folder, &[]);
    assert_eq!(host.ask(&pay(1, STRONG))["decision"], "allow");
    host.ask(&json!({ "event": "after", "id": 2, "before": 1, "output": [{ "type": "text", "text": "paid" }] }));
    host.kill();
    let mut host = Host::start(&folder, &[]);
    let again = host.ask(&pay(1, STRONG));
    assert_eq!((&again["code"], &again["reason"]), (&"replayed".into(), &"paid".into()));
    assert_eq!(again["result"]["content"][0]["text"], "paid");
}

#[test]
fn a_call_whose_end_nobody_told_is_unknown_whether_the_guard_was_killed_or_its_input_ended() {
    for is_killed in [true, false] {
        let folder = Folder::new();
        let mut host = Host::start(&folder, &[]);
        assert_eq!(host.ask(&pay(1, STRONG))["decision"], "allow");
        if is_killed {
            host.kill();
        } else {
            assert_eq!(host.end(), 0);
        }
        let mut host = Host::start(&folder, &[]);
        let again = host.ask(&pay(1, STRONG));
        assert_eq!(
            (&again["code"], &again["ran"]),
            (&"outcome_unknown".into(), &"unknown".into()),
            "killed: {is_killed}"
        );
        // A person settles it with the command that the answer names.
        let reason = again["reason"].as_str().unwrap();
        let record = reason.split("[record ").nth(1).unwrap().split(':').next().unwrap();
        folder.settle(record, "did-not-run");
        assert_eq!(host.ask(&pay(2, STRONG))["decision"], "allow");
    }
}

#[test]
fn what_the_catalog_says_of_a_tool_comes_before_what_the_host_says() {
    let folder = Folder::new();
    let catalog = folder.file("tools.toml", "[tools.pay]\neffect = \"read_only\"\n");
    let mut host = Host::start(&folder, &["--catalog", catalog.to_str().unwrap()]);
    let mut call = pay(1, STRONG);
    call["effect"] = "mutating".into();
    for _ in 0..2 {
        // A read leaves no record.
        assert_eq!(host.ask(&call)["decision"], "allow");
        host.ask(&json!({ "event": "after", "id": 2, "before": 1, "output": "5" }));
    }
}

#[test]
fn equal_calls_run_once_where_keys_are_derived_but_reads_each_time() {
    let folder = Folder::new();
    let mut host = Host::start(&folder, &["--derive-keys", "session"]);
    for (tool, effect, again) in [("exec", "mutating", "block"), ("read", "read_only", "allow")] {
        let mut decisions = Vec::new();
        for (id, call) in [(1, STRONG), (2, "call_ZZcdEFGH1234567890ijKLmn")] {
            let mut event = pay(id, call);
            (event["tool"], event["effect"]) = (tool.into(), effect.into());
            let answer = host.ask(&event);
            if answer["decision"] == "allow" {
                host.ask(&json!({ "event": "after", "id": "e", "before": id, "output": "done" }));
            }
            decisions.push(answer["decision"].clone());
        }
        assert_eq!(decisions, ["allow", again], "{tool}");
    }
}

#[test]
fn a_breaker_refuses_what_keeps_failing_elsewhere() {
    let folder = Folder::new();
    let mut host = Host::start(&folder, &["--loops", "off"]);
    let mut last = json!(null);
    for number in 0..12 {
        let call = json!({ "event": "before", "id": number, "tool": "fetch", "params": { "page": number }, "effect": "read_only" });
        last = host.ask(&call);
        if last["decision"] == "allow" {
            host.ask(&json!({ "event": "after", "id": "e", "before": number, "error": "503 Service Unavailable" }));
        }
    }
    assert_eq!((&last["code"], &last["retriable"]), (&"circuit_open".into(), &true.into()));
}

#[test]
fn a_mistake_in_the_setup_ends_the_guard_before_it_reads() {
    let folder = Folder::new();
    let config = folder.file("stack.toml", "[loops]\nmode = \"blok\"\n");
    let (code, said) = Host::refused(&folder, &["--config", config.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(said.contains("blok") && said.contains("block"), "{said}");
}
