//! What `check` prints for programs and for people.
use super::folder::{FINE, Folder, ORPHANED};
use serde_json::json;

#[test]
fn the_json_has_an_object_for_each_file() {
    let folder = Folder::with("a.json", ORPHANED);
    folder.write("b.txt", "hello");
    folder.write("c.json", FINE);
    let lines = folder.json_of(1, &["check", "."]);
    let error = "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: \
        toolu_01A. Each `tool_result` block must have a corresponding `tool_use` block in the \
        previous message.";
    let expected = [
        json!({
            "version": 1, "file": "./a.json", "status": "findings",
            "form": "json", "format": "anthropic_messages",
            "messages": 4, "bytes": 393, "skippedBytes": 0, "pending": [], "found": 1, "errors": 1,
            "findings": [{
                "line": 4, "message": 2, "block": 0, "rule": 1, "severity": "error",
                "fault": "orphaned_result", "toolUseId": "toolu_01A",
                "what": "Orphaned tool_result: toolu_01A",
                "provider": "Anthropic", "providerError": error,
            }],
        }),
        json!({
            "version": 1, "file": "./b.txt", "status": "skipped",
            "reason": "there is no JSON in it",
        }),
        json!({
            "version": 1, "file": "./c.json", "status": "clean",
            "form": "json", "format": "anthropic_messages",
            "messages": 4, "bytes": FINE.len(), "skippedBytes": 0,
            "pending": [], "found": 0, "errors": 0, "findings": [],
        }),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_warning_alone_is_clean_and_shown() {
    let folder = Folder::new();
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"read:0","type":"function","function":{"name":"read","arguments":"{}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"read:0","content":"x"}"#;
    folder.write("s.json", format!("[{call},{result},\n{call},{result}]"));
    let done = folder.ends(0, &["check", "s.json"]);
    let expected = "  s.json:2  Duplicate tool_use id: read:0
      message 2, block 0 · rule 3
      OpenAI accepts it; a person may misread it
";
    assert!(done.out.ends_with(expected), "{}", done.out);
}

#[test]
fn requests_to_openai_and_gemini_are_sessions_too() {
    let folder = Folder::new();
    folder.write(
        "responses.json",
        r#"{"model":"m","input":[
{"type":"message","role":"user","content":"pay"},
{"type":"function_call","call_id":"call_1","name":"pay","arguments":"{}"},
{"type":"message","role":"user","content":"well?"}
]}"#,
    );
    folder.write(
        "gemini.json",
        r#"{"contents":[
{"role":"user","parts":[{"text":"pay"}]},
{"role":"model","parts":[{"functionCall":{"name":"pay","args":{}}}]},
{"role":"user","parts":[{"text":"well?"}]}
]}"#,
    );
    let lines = folder.json_of(1, &["check", "gemini.json", "responses.json"]);
    let formats: Vec<_> = lines.iter().map(|line| line["format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["gemini", "open_ai_responses"]);
    let errors: Vec<_> =
        lines.iter().map(|line| line["findings"][0]["providerError"].as_str().unwrap()).collect();
    assert!(errors[0].contains("number of function response parts"), "{}", errors[0]);
    assert!(
        errors[1].starts_with("No tool output found for function call call_1"),
        "{}",
        errors[1]
    );
    folder.ends(0, &["repair", "--write", "gemini.json", "responses.json"]);
    assert_eq!(folder.session(&["check", "gemini.json", "responses.json"]).code, 0);
}

#[test]
fn a_live_tail_is_clean_and_its_calls_are_named() {
    let folder = Folder::new();
    let cut = FINE.find(",\n{\"role\":\"user\",\"content\":[").unwrap();
    folder.write("s.json", format!("{}]", &FINE[..cut]));
    let done = folder.ends(0, &["check", "s.json"]);
    assert!(done.out.contains("1 call of the last step without a result yet: toolu_1"));
    let (lines, _) = folder.json(&["check", "s.json"]);
    assert_eq!(lines[0]["pending"], json!(["toolu_1"]));

    folder.ends(0, &["repair", "--close-tail", "--write", "s.json"]);
    assert!(folder.read("s.json").contains("outcome unknown, may have run"));
    assert_eq!(folder.json(&["check", "s.json"]).0[0]["pending"], json!([]));
}

#[test]
fn colors_are_where_the_terminal_has_them() {
    let folder = Folder::with("a.json", ORPHANED);
    let run = |variable: &str, value: &str| {
        let mut command = folder.command(&["check", "a.json"]);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env(variable, value);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(run("CLICOLOR_FORCE", "1").contains("\u{1b}[1m\u{1b}[31m✗"));
    assert!(!run("NO_COLOR", "1").contains('\u{1b}'));
    assert!(!run("TERM", "xterm").contains('\u{1b}'), "a pipe has none");
}

#[test]
fn a_reader_that_goes_away_stops_nothing() {
    let folder = Folder::new();
    for number in 0..200 {
        folder.write(&format!("{number}.json"), ORPHANED);
    }
    let guard = crate::session::folder::guard().display();
    let script = format!("{guard} session repair --write . | head -n 1");
    let mut command = std::process::Command::new("sh");
    let done = command.args(["-c", &script]).current_dir(folder.path("")).output().unwrap();
    assert_eq!(String::from_utf8(done.stderr).unwrap(), "");
    assert_eq!(folder.session(&["check", "."]).code, 0, "all are mended");
}

/// Neither ✓ nor ✗: what is understood is valid, and not all is understood.
#[test]
fn what_is_not_understood_is_not_judged() {
    let folder = Folder::new();
    let hi = r#"{"role":"user","content":"hi"}"#;
    let unknown = [
        r#"{"role":"narrator","content":"Meanwhile…"}"#,
        r#"{"role":"user","text":"Pay order 42"}"#,
        r#"{"role":"assistant","content":"I pay it.","steps":[{"call":"1"}]}"#,
        r#"{"role":"assistant","content":[{"type":"hologram","data":"…"}]}"#,
        r#"{"role":"assistant","content":[{"type":"text","txt":"I pay it."}]}"#,
        r#"{"role":"assistant","content":[7]}"#,
        r#"{"role":"user","content":{"type":"text","text":"Pay order 42"}}"#,
        r#"{"role":"user","content":42}"#,
        r#"{"role":"user","content":{}}"#,
    ];
    for message in unknown {
        let text = format!("[{hi},\n{message},\n{hi}]");
        folder.write("s.json", &text);
        for command in [&["check"][..], &["repair"], &["repair", "--write"], &["diff"]] {
            let done = folder.session(&[command, &["s.json"]].concat());
            assert_eq!(done.code, 3, "{message}\n{}{}", done.out, done.err);
            assert!(done.out.starts_with("? s.json"), "{}", done.out);
            assert!(done.out.contains("not judged: line 2: ") && !done.out.contains('✓'));
        }
        assert_eq!(folder.read("s.json"), text);
        for command in [&["repair"][..], &["repair", "--write"], &["diff"], &["check"]] {
            let (lines, code) = folder.json(&[command, &["s.json"]].concat());
            assert_eq!((&lines[0]["status"], code), (&"notJudged".into(), 3), "{command:?}");
        }
        let (lines, _) = folder.json(&["check", "s.json"]);
        assert!(!lines[0]["reason"].as_str().unwrap().is_empty());
        assert!(!lines[0]["help"].as_str().unwrap().is_empty());
    }
}

#[test]
fn of_several_files_the_worst_counts() {
    let folder = Folder::with("clean.json", FINE);
    let unknown = r#"[{"role":"user","content":"hi"},{"role":"narrator","content":"Meanwhile…"}]"#;
    folder.write("unknown.json", unknown);
    folder.write("bad.json", ORPHANED);
    let code = |files: &[&str]| folder.session(&[&["check"], files].concat()).code;
    assert_eq!(code(&["clean.json", "unknown.json"]), 3);
    assert_eq!(code(&["clean.json", "unknown.json", "bad.json"]), 1);
    assert_eq!(code(&["unknown.json", "none.json", "bad.json"]), 2);
    let done = folder.session(&["check", "."]);
    assert!(
        done.out.contains("3 sessions: 1 clean, 1 not judged, 1 with findings"),
        "{}",
        done.out
    );
}

/// A line of Claude Code's.
fn line(id: &str, parent: &str, role: &str, content: &str) -> String {
    let group = if role == "assistant" { format!(r#""id":"m-{id}","#) } else { String::new() };
    format!(
        r#"{{"type":"{role}","uuid":"{id}","parentUuid":{parent},"message":{{{group}"role":"{role}","content":{content}}}}}"#
    )
}

const CALL: &str = r#"[{"type":"tool_use","id":"t1","name":"pay","input":{}}]"#;

#[test]
fn claude_code_forgets_a_call_without_a_result() {
    let folder = Folder::new();
    let dropped = "Claude Code drops this call on resume, silently: the model forgets that it ran; until then it shows \"API Error: 400 due to tool use concurrency issues\"";
    let call = [line("a", "null", "user", r#""pay""#), line("b", r#""a""#, "assistant", CALL)];
    let on = line("c", r#""b""#, "user", r#""did it work?""#);
    folder.write("s.jsonl", format!("{}\n{on}\n", call.join("\n")));
    let done = folder.ends(1, &["check", "s.jsonl"]);
    assert!(
        done.out.contains(&format!(
            "Incomplete tool_use: t1\n      message 1, block 0 · rule 2\n      {dropped}\n      of the session as it stands Anthropic says: "
        )),
        "{}",
        done.out
    );
    assert!(!done.out.contains("refuses it"), "{}", done.out);
    let (told, _) = folder.json(&["check", "s.jsonl"]);
    let found = &told[0]["findings"][0];
    assert_eq!((&found["provider"], &found["onResume"]), (&"Anthropic".into(), &dropped.into()));

    // At the end it may still run, for all that a file can tell.
    folder.write("t.jsonl", call.join("\n") + "\n");
    let done = folder.ends(0, &["check", "t.jsonl"]);
    assert!(done.out.contains("1 call of the last step"), "{}", done.out);
    assert!(
        done.out.contains("2.1.332 tells the model that its outcome is unknown"),
        "{}",
        done.out
    );
    let done = folder.ends(1, &["check", "--strict", "t.jsonl"]);
    assert!(done.out.contains("session repair --close-tail t.jsonl"), "{}", done.out);
    let (told, code) = folder.json(&["check", "--strict", "t.jsonl"]);
    assert_eq!((code, &told[0]["status"]), (1, &"findings".into()));
    assert_eq!(folder.session(&["repair", "--close-tail", "--write", "t.jsonl"]).code, 0);
    assert_eq!(folder.session(&["check", "--strict", "t.jsonl"]).code, 0);
}

/// The user went back and asked something else: which branch goes on is written behind them.
#[test]
fn claude_codes_last_prompt_says_which_branch_goes_on() {
    let folder = Folder::new();
    let lines = [
        line("a", "null", "user", r#""pay""#),
        line("b", r#""a""#, "assistant", CALL),
        line("c", r#""b""#, "user", r#""and?""#),
        line("x", r#""a""#, "assistant", r#"[{"type":"text","text":"no"}]"#),
    ];
    let prompt =
        |leaf: &str| format!(r#"{{"type":"last-prompt","lastPrompt":"p","leafUuid":"{leaf}"}}"#);
    for (leaf, code) in [("x", 0), ("c", 1), ("gone", 0)] {
        folder.write("s.jsonl", format!("{}\n{}\n", lines.join("\n"), prompt(leaf)));
        let done = folder.session(&["check", "s.jsonl"]);
        assert_eq!(done.code, code, "{leaf}\n{}", done.out);
    }
    // What was written since is newer.
    folder.write("s.jsonl", format!("{}\n{}\n{}\n", lines[..3].join("\n"), prompt("c"), lines[3]));
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 0);

    // A repair keeps to the branch, and names its new end where that is new.
    let tail = [&lines[..2], &lines[3..]].concat().join("\n");
    folder.write("t.jsonl", format!("{tail}\n{}\n", prompt("b")));
    assert_eq!(folder.session(&["repair", "--close-tail", "--write", "t.jsonl"]).code, 0);
    let now = folder.read("t.jsonl");
    let records: Vec<serde_json::Value> =
        now.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = records.iter().find(|record| record["parentUuid"] == "b").expect("an answer");
    assert_eq!(records.last().unwrap()["leafUuid"], answer["uuid"]);
    assert_eq!(folder.session(&["check", "--strict", "t.jsonl"]).code, 0);
}

/// What the name should be is not known, so that every repair leaves it.
#[test]
fn for_what_every_repair_leaves_check_suggests_to_go_back() {
    let folder = Folder::new();
    let call = |name: &str| {
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
        ]})
    };
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    ]});
    let go = json!({"role": "user", "content": "go"});
    folder.write("a.json", json!([go, call(""), result]).to_string());
    let done = folder.ends(1, &["check", "a.json"]);
    assert!(done.out.contains("session rollback --before-fault a.json"), "{}", done.out);
    assert!(!done.out.contains("session repair"), "{}", done.out);
    let (told, _) = folder.json(&["repair", "a.json"]);
    assert_eq!(told[0]["repairs"], json!([]));

    folder.write("b.json", json!([go, call(""), result, result]).to_string());
    let done = folder.session(&["check", "b.json"]);
    assert!(done.out.contains("session repair b.json"), "{}", done.out);
}
