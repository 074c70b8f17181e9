//! pi and OpenClaw name for each answer the API that gave it: the last answer's provider is asked
//! next, and the session is judged by its rules and in its words.
use super::folder::Folder;
use serde_json::{Value, json};

/// A session in pi's form: a prompt, then these messages.
fn session(messages: &[Value]) -> String {
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-02-03T04:05:06Z", "cwd": "/w"});
    let prompt = json!({"role": "user", "content": "Pay order 42.", "timestamp": 1});
    let mut lines = vec![header];
    for (at, message) in [&prompt].into_iter().chain(messages).enumerate() {
        let parent = at.checked_sub(1).map(|before| format!("e{before}"));
        lines.push(json!({"type": "message", "id": format!("e{at}"), "parentId": parent, "message": message}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn answer(api: &str, content: &Value) -> Value {
    json!({"role": "assistant", "api": api, "provider": "p", "model": "m", "content": content})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "pay", "arguments": {"n": 1}})
}

fn result(id: &str) -> Value {
    let text = json!([{"type": "text", "text": "paid"}]);
    json!({"role": "toolResult", "toolCallId": id, "toolName": "pay", "content": text, "isError": false})
}

fn done(api: &str) -> Value {
    answer(api, &json!([{"type": "text", "text": "done"}]))
}

fn first_finding(folder: &Folder, messages: &[Value]) -> (Value, i32) {
    folder.write("s.jsonl", session(messages));
    let (lines, code) = folder.json(&["check", "s.jsonl"]);
    (lines[0]["findings"][0].clone(), code)
}

#[test]
fn the_provider_of_the_last_answer_refuses_the_session_in_its_own_words() {
    let folder = Folder::new();
    let cases = [
        ("anthropic-messages", "Anthropic", "messages.3: `tool_use` ids were found without"),
        ("openai-completions", "OpenAI", "An assistant message with 'tool_calls' must be followed"),
        ("openai-responses", "OpenAI", "No tool output found for function call b."),
        ("openai-codex-responses", "OpenAI", "No tool output found for function call b."),
        ("google-vertex", "Google", "Please ensure that the number of function response parts"),
    ];
    for (api, provider, words) in cases {
        // Two results are one message to Anthropic: the call is in its message 3.
        let messages = [
            answer("openai-completions", &json!([call("a"), call("a2")])),
            result("a"),
            result("a2"),
            answer("openai-completions", &json!([call("b")])),
            json!({"role": "user", "content": "and?"}),
            done(api),
        ];
        let (found, code) = first_finding(&folder, &messages);
        assert_eq!(
            (code, &found["fault"], &found["provider"]),
            (1, &json!("incomplete_use"), &json!(provider))
        );
        let error = found["providerError"].as_str().unwrap();
        assert!(error.starts_with(words), "{api}: {error}");
    }
}

#[test]
fn an_orphaned_result_has_the_place_that_anthropic_names() {
    let folder = Folder::new();
    let messages = [
        answer("anthropic-messages", &json!([call("a")])),
        result("a"),
        result("lost"),
        done("anthropic-messages"),
    ];
    let (found, code) = first_finding(&folder, &messages);
    assert_eq!(
        (code, &found["fault"], &found["message"]),
        (1, &json!("orphaned_result"), &json!(3))
    );
    let error = found["providerError"].as_str().unwrap();
    assert!(error.starts_with("messages.2.content.1: unexpected `tool_use_id` found"), "{error}");
}

/// An id that comes again is refused by Anthropic, and by no other.
fn repeated(last: &str) -> Vec<Value> {
    let step = |api| [answer(api, &json!([call("c1")])), result("c1")];
    [&step("anthropic-messages")[..], &step("openai-completions"), &[done(last)]].concat()
}

#[test]
fn an_id_that_comes_again_is_a_fault_where_the_last_answer_is_anthropics() {
    let folder = Folder::new();
    let (found, code) = first_finding(&folder, &repeated("openai-completions"));
    assert_eq!((code, &found["severity"]), (0, &json!("warning")));
    folder.write("o.jsonl", session(&repeated("openai-completions")));
    assert!(folder.session(&["repair", "o.jsonl"]).out.contains("nothing to repair"));

    let (found, code) = first_finding(&folder, &repeated("anthropic-messages"));
    assert_eq!((code, &found["severity"]), (1, &json!("error")));
    assert_eq!(found["providerError"], "messages.3.content.0: `tool_use` ids must be unique");
    let messages: Vec<Value> = repeated("anthropic-messages");
    folder.write("list.json", json!(messages).to_string());
    for file in ["s.jsonl", "list.json"] {
        assert_eq!(folder.session(&["check", file]).code, 1, "{file}");
        folder.ends(0, &["repair", "--write", file]);
        assert_eq!(folder.read(file).matches("\"c1_r2\"").count(), 2, "the call and its result");
    }
}

#[test]
fn of_a_large_file_the_last_answer_of_the_whole_counts_in_each_part() {
    let folder = Folder::new();
    let mut messages = vec![answer("openai-completions", &json!([call("a")])), result("a")];
    messages.push(answer("openai-completions", &json!([call("a")])));
    messages.push(result("a"));
    for at in 0..3_000 {
        messages
            .push(json!({"role": "user", "content": format!("prompt {at} {}", "x".repeat(200))}));
        messages.push(done("openai-completions"));
    }
    messages.push(done("anthropic-messages"));
    let text = session(&messages);
    assert!(text.len() > 1 << 20, "it is looked at in parts");
    folder.write("s.jsonl", &text);
    let (lines, code) = folder.json(&["repair", "s.jsonl"]);
    assert_eq!((code, lines[0]["repairs"][0]["action"].as_str()), (1, Some("rename_id")));
    assert_eq!(folder.session(&["repair", "--write", "s.jsonl"]).code, 0);
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 0);
}
