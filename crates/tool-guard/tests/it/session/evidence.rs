//! What is not known is not judged: no evidence of a session, lines of a log, an API without rules.
use super::folder::Folder;
use serde_json::{Value, json};

/// Checks and repairs a text, which has to be not judged and to stay as it is; what is said.
fn not_judged(name: &str, text: &str) -> String {
    let folder = Folder::new();
    folder.write(name, text);
    let checked = folder.session(&["check", name]);
    let done = folder.session(&["repair", "--write", name]);
    assert_eq!((checked.code, done.code), (3, 3), "{text}\n{}{}", checked.out, checked.err);
    assert_eq!((folder.read(name), folder.names().len()), (text.into(), 1), "{text}");
    assert!(!checked.out.contains('✓'), "{}", checked.out);
    format!("{}{}", checked.out, checked.err)
}

#[test]
fn a_list_of_no_messages_is_no_evidence_of_a_session() {
    for text in [
        "[]",
        r#"{"messages":[]}"#,
        r#"{"input":[]}"#,
        r#"{"contents":[]}"#,
        r#"{"name":"x","version":"1","messages":[]}"#,
    ] {
        let said = not_judged("s.json", text);
        assert!(said.contains("there are no messages in it"), "{said}");
    }
    let folder = Folder::new();
    for request in
        [r#"{"model":"claude-opus-4","messages":[]}"#, r#"{"system":"Be kind.","messages":[]}"#]
    {
        folder.write("s.json", request);
        assert_eq!(folder.session(&["check", "s.json"]).code, 0, "{request}");
    }
}

#[test]
fn a_log_of_messages_is_no_session() {
    let line = |message: Value| {
        let mut line = json!({"level": "info", "ts": "2026-01-01T00:00:00Z", "logger": "proxy"});
        line.as_object_mut().unwrap().extend(message.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": "{}"}});
    let text = [
        json!({"role": "user", "content": "hi"}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "user", "content": "next"}),
    ];
    let said = not_judged("s.jsonl", &text.clone().map(line).concat());
    assert!(
        said.contains("each line has members that no message has: level, logger, ts"),
        "{said}"
    );
    // A member that one of them has, or one of an agent's messages, is no envelope.
    let folder = Folder::new();
    let mut lines = text.map(|mut message| {
        message["timestamp"] = json!(7);
        message
    });
    lines[0]["extra"] = json!("kept");
    folder.write("s.jsonl", lines.map(|line| format!("{line}\n")).concat());
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 1);
}

fn pi(api: &str) -> String {
    let entry = |id: &str, parent: &str, message: Value| json!({"type": "message", "id": id, "parentId": parent, "message": message});
    let call = json!({"type": "toolCall", "id": "call_1", "name": "pay", "arguments": {}});
    [
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/"}),
        entry("a", "", json!({"role": "user", "content": "go"})),
        entry("b", "a", json!({"role": "assistant", "content": [call], "api": api, "provider": "p", "model": "m"})),
        entry("c", "b", json!({"role": "user", "content": "well?"})),
    ]
    .map(|line| format!("{line}\n"))
    .concat()
}

#[test]
fn an_api_without_known_rules_is_named_and_not_judged() {
    for api in ["bedrock-converse-stream", "an-api-to-come"] {
        let said = not_judged("s.jsonl", &pi(api));
        assert!(said.contains(&format!("by the API {api}, whose rules are not known")), "{said}");
        assert!(!said.contains("OpenAI"), "{said}");
    }
    let folder = Folder::with("s.jsonl", pi("anthropic-messages"));
    let checked = folder.ends(1, &["check", "s.jsonl"]);
    assert!(checked.out.contains("pi answers this call"), "{}", checked.out);
    assert!(checked.out.contains("Anthropic says: messages.1"), "{}", checked.out);
}

#[test]
fn a_call_without_a_type_gets_one() {
    let request = |model: &str| {
        format!(
            r#"{{"model":"{model}","messages":[{{"role":"user","content":"hi"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_1","function":{{"name":"pay","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"call_1","content":"ok"}}]}}"#
        )
    };
    let folder = Folder::with("s.json", request("gpt-4o"));
    let checked = folder.session(&["check", "s.json"]);
    let refusal =
        "OpenAI refuses it: Missing required parameter: 'messages[1].tool_calls[0].type'.";
    assert!(checked.code == 1 && checked.out.contains(refusal), "{}", checked.out);
    assert_eq!(folder.session(&["repair", "--write", "s.json"]).code, 0);
    let now: Value = serde_json::from_str(&folder.read("s.json")).unwrap();
    let call = &now["messages"][1]["tool_calls"][0];
    assert_eq!((&call["type"], &call["function"]["name"]), (&json!("function"), &json!("pay")));
    // Another provider's model may take it so.
    folder.write("s.json", request("llama3"));
    assert_eq!(folder.session(&["check", "s.json"]).code, 0);
    let done = folder.session(&["repair", "--write", "s.json"]);
    assert!(done.out.contains("nothing to repair"), "{}", done.out);
}

/// Claude Code reads no more than the last line.
#[test]
fn two_records_that_do_not_hang_together_are_a_finding() {
    let line = |id: &str, parent: Value, role: &str| {
        let message = json!({"role": role, "content": "so"});
        let line = json!({"type": role, "uuid": id, "parentUuid": parent, "sessionId": "s", "message": message});
        format!("{line}\n")
    };
    for role in ["user", "assistant"] {
        let text = [line("a", json!(null), "user"), line("d", json!("c"), role)].concat();
        let folder = Folder::with("s.jsonl", &text);
        folder.ends(1, &["check", "s.jsonl"]);
        assert_eq!(folder.session(&["repair", "--write", "s.jsonl"]).code, 0);
        assert_eq!(folder.session(&["check", "s.jsonl"]).code, 0);
    }
}

/// A part without data stands before the results; the missing one comes beside them.
#[test]
fn an_empty_part_stays_where_it_is() {
    let part = |id: &str| {
        format!(
            r#"{{"functionResponse":{{"id":"{id}","name":"pay","response":{{"r":"paid {id}"}}}}}}"#
        )
    };
    let call = |id: &str| format!(r#"{{"functionCall":{{"id":"{id}","name":"pay","args":{{}}}}}}"#);
    for parts in [format!("{{}},{}", part("1")), format!("{{\"text\":\"so\"}},{}", part("2"))] {
        let text = format!(
            "{{\"contents\":[\n{{\"role\":\"user\",\"parts\":[{{\"text\":\"pay\"}}]}},\n{{\"role\":\"model\",\"parts\":[{},{}]}},\n{{\"role\":\"user\",\"parts\":[{parts}]}},\n{{\"role\":\"model\",\"parts\":[{{\"text\":\"done\"}}]}}]}}",
            call("1"),
            call("2")
        );
        let folder = Folder::with("s.json", &text);
        let done = folder.session(&["repair", "--write", "s.json"]);
        assert!(done.code < 2, "{}{}", done.out, done.err);
        let now: Value = serde_json::from_str(&folder.read("s.json")).unwrap();
        let now = now["contents"][2]["parts"].to_string();
        assert!(now.contains("outcome unknown, may have run"), "{now}");
        assert!(now.contains("paid"), "{now}");
    }
}
