//! What a repair does not decide: nothing is written where the outcome is `not judged`.
use super::folder::Folder;

/// Runs `repair --write` on a text, which has to stay as it is, and gives back what is said.
fn left_alone(text: &str) -> String {
    let folder = Folder::with("s.json", text);
    let planned = folder.session(&["repair", "s.json"]);
    let done = folder.session(&["repair", "--write", "s.json"]);
    assert_eq!((planned.code, done.code), (3, 3), "{}{}", done.out, done.err);
    assert_eq!(folder.read("s.json"), text, "{}", done.out);
    assert_eq!(folder.names(), ["s.json"], "no backup of what is not written");
    assert!(done.out.contains("not judged: ") && !done.out.contains("repaired:"), "{}", done.out);
    done.out
}

#[test]
fn nothing_is_written_of_a_session_that_is_not_judged_after_its_repair() {
    let text = r#"{"system":"s","messages":[
{"role":"user","content":"Pay order 42."},
{"role":"narrator","content":"Night falls."},
{"role":"assistant","content":"Done."},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_7","content":"receipt 7"}]}
]}"#;
    let said = left_alone(text);
    assert!(said.contains("--force"), "{said}");
    let folder = Folder::with("s.json", text);
    let forced = folder.session(&["repair", "--write", "--force", "s.json"]);
    assert_eq!(forced.code, 3, "it is still not judged: {}", forced.out);
    let now = folder.read("s.json");
    assert!(now.contains("Night falls.") && now.contains("receipt 7"), "{now}");
    assert!(now.contains("not in this session: toolu_7"), "{now}");
}

#[test]
fn no_outcome_is_made_up_where_something_unknown_names_the_call() {
    let said = left_alone(
        r#"{"system":"s","messages":[
{"role":"user","content":"Pay order 42."},
{"role":"assistant","content":[{"type":"tool_use","id":"toolu_7","name":"pay","input":{}}]},
{"role":"tool","content":"receipt 7","tool_call_id":"toolu_7"},
{"role":"user","content":"Well?"}
]}"#,
    );
    assert!(said.contains("message 2 may be its result"), "{said}");
    let folder = Folder::new();
    folder.write(
        "s.jsonl",
        r#"{"role":"user","content":"Pay order 42."}
{"role":"assistant","content":[{"type":"tool_use","id":"toolu_7","name":"pay","input":{}}]}
{"role":"user","content":[{"type":"receipt","for":"toolu_7"},{"type":"text","text":"Well?"}]}
"#,
    );
    let done = folder.ends(3, &["repair", "--write", "s.jsonl"]);
    assert!(done.out.contains("message 2 may be its result"), "{}", done.out);
}

#[test]
fn no_outcome_is_made_up_beside_the_only_result_of_another_name() {
    let said = left_alone(
        r#"{"contents":[
{"role":"user","parts":[{"text":"Pay order 42."}]},
{"role":"model","parts":[{"functionCall":{"name":"pay","args":{}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"pay_order","response":{"output":"receipt 7"}}}]},
{"role":"model","parts":[{"text":"Paid."}]}
]}"#,
    );
    assert!(said.contains("message 2 may be its result"), "{said}");
}

#[test]
fn a_repair_that_turns_a_session_into_another_providers_is_not_made() {
    // The result is all that says whose it is, and without it Anthropic's rules refuse the rest.
    let chat = r#"{"model":"m","messages":[
{"role":"user","content":""},
{"role":"assistant","content":"Hm."},
{"role":"tool","tool_call_id":"call_7","content":"receipt 7"},
{"role":"user","content":"Well?"}
]}"#;
    let said = left_alone(chat);
    assert!(said.contains("would be read as Anthropic Messages"), "{said}");
    let mixed = r#"[
{"role":"user","content":"Pay order 42."},
{"role":"assistant","content":"I do.","tool_calls":[{"id":"c1","type":"function","function":{"name":"pay","arguments":"{}"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"receipt 7"}]},
{"role":"user","content":"Well?"}
]"#;
    left_alone(mixed);
    // What any of them takes is written.
    let folder = Folder::with("s.json", chat.replace(r#""content":"""#, r#""content":"Pay.""#));
    folder.ends(0, &["repair", "--write", "s.json"]);
    assert_eq!(folder.session(&["check", "s.json"]).code, 0);
}

#[test]
fn a_session_that_is_not_judged_is_not_begun_anew_and_gets_no_checkpoint() {
    let text = r#"{"system":"s","messages":[
{"role":"user","content":"Pay order 42."},
{"role":"narrator","content":"Night falls."}
]}"#;
    let folder = Folder::with("s.json", text);
    for arguments in [["reset", "--write", "s.json"], ["checkpoints", "--create", "s.json"]] {
        let done = folder.session(&arguments);
        assert_eq!(done.code, 3, "{}{}", done.out, done.err);
        assert!(done.out.contains("not judged: "), "{}", done.out);
        assert_eq!(folder.names(), ["s.json"]);
    }
    assert_eq!(folder.read("s.json"), text);
    assert_eq!(folder.session(&["checkpoints", "s.json"]).code, 0, "those that are there");
}

/// Nothing of it is kept, so its calls and results are not judged either.
#[test]
fn a_message_of_more_than_any_model_writes_is_not_judged() {
    let tool_use =
        |n: usize| format!(r#"{{"type":"tool_use","id":"t{n}","name":"pay","input":{{}}}}"#);
    let result =
        |n: usize| format!(r#"{{"type":"tool_result","tool_use_id":"t{n}","content":"a"}}"#);
    let list =
        |part: &dyn Fn(usize) -> String, count| (0..count).map(part).collect::<Vec<_>>().join(",");
    let session = |count| {
        format!(
            "{{\"role\":\"user\",\"content\":\"go\"}}\n\
             {{\"role\":\"assistant\",\"content\":[{}]}}\n\
             {{\"role\":\"user\",\"content\":[{}]}}\n",
            list(&tool_use, count),
            list(&result, count)
        )
    };
    let folder = Folder::with("most.jsonl", session(10_000));
    assert_eq!(folder.session(&["check", "most.jsonl"]).code, 0);
    let more = session(10_001);
    folder.write("more.jsonl", &more);
    for args in [&["check", "more.jsonl"][..], &["repair", "--write", "more.jsonl"]] {
        let done = folder.session(args);
        assert_eq!(done.code, 3, "{}{}", done.out, done.err);
        assert!(
            done.out.contains("line 2 has a message of more than 10,000 blocks"),
            "{}",
            done.out
        );
    }
    assert_eq!(folder.read("more.jsonl"), more);
}

#[test]
fn more_messages_than_any_provider_takes_are_not_judged() {
    let list = |message: &str| format!("[{}]", vec![message; 100_001].join(","));
    let folder = Folder::with("s.json", list(r#"{"role":"user","content":"a"}"#));
    folder.write("rows.json", list("{}"));
    let done = folder.ends(3, &["check", "s.json"]);
    assert!(done.out.contains("it has more than 100,000 messages"), "{}", done.out);
    let done = folder.session(&["check", "rows.json"]);
    assert!(done.out.contains("it is no session: "), "{}", done.out);
}

/// However many warnings there are, what is not understood counts.
#[test]
fn an_unknown_part_behind_thousands_of_warnings_is_not_passed_over() {
    let folder = Folder::new();
    let mut text = String::from(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"\",\"cwd\":\"/\"}\n",
    );
    let mut parent = "null".to_owned();
    let mut add = |message: &str| {
        let id = format!("\"{}\"", text.len());
        let line =
            format!(r#"{{"type":"message","id":{id},"parentId":{parent},"message":{message}}}"#);
        parent = id;
        text += &(line + "\n");
    };
    for _ in 0..10_003 {
        add(
            r#"{"role":"assistant","api":"openai-completions","content":[{"type":"toolCall","id":"read:0","name":"read","arguments":{}}]}"#,
        );
        add(
            r#"{"role":"toolResult","toolCallId":"read:0","content":[{"type":"text","text":"x"}]}"#,
        );
    }
    let checked = |text: &str, code: i32| {
        folder.write("s.jsonl", text);
        let (lines, checked) = folder.json(&["check", "s.jsonl"]);
        assert_eq!(
            (checked, lines[0]["found"].as_u64()),
            (code, Some(if code == 0 { 10_002 } else { 10_003 }))
        );
        assert_eq!(folder.session(&["repair", "--write", "s.jsonl"]).code, code);
    };
    checked(&text, 0);
    let unknown =
        r#"{"role":"assistant","api":"openai-completions","content":[{"type":"hologram"}]}"#;
    let line =
        format!(r#"{{"type":"message","id":"last","parentId":{parent},"message":{unknown}}}"#);
    checked(&format!("{text}{line}\n"), 3);
}
