//! What `check` prints for programs and for people.
use crate::folder::{FINE, Folder, ORPHANED};
use serde_json::json;

#[test]
fn the_json_has_an_object_for_each_file() {
    let folder = Folder::new();
    folder.write("a.json", ORPHANED);
    folder.write("b.txt", "hello");
    folder.write("c.json", FINE);
    let (lines, code) = folder.json(&["check", "."]);
    assert_eq!(code, 1);
    let error = "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: \
        toolu_01A. Each `tool_result` block must have a corresponding `tool_use` block in the \
        previous message.";
    let expected = [
        json!({
            "file": "./a.json", "status": "findings",
            "form": "json", "format": "anthropic_messages",
            "messages": 4, "bytes": 393, "skippedBytes": 0, "pending": [], "found": 1, "errors": 1,
            "findings": [{
                "line": 4, "message": 2, "block": 0, "rule": 1, "severity": "error",
                "fault": "orphaned_result", "toolUseId": "toolu_01A",
                "what": "Orphaned tool_result: toolu_01A",
                "provider": "Anthropic", "providerError": error,
            }],
        }),
        json!({"file": "./b.txt", "status": "skipped", "reason": "there is no JSON in it"}),
        json!({
            "file": "./c.json", "status": "clean",
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
    let done = folder.session(&["check", "s.json"]);
    assert_eq!(done.code, 0);
    let expected = "  s.json:2  Duplicate tool_use id: read:0
      message 2, block 0 · rule 3
      OpenAI takes it; a reader may be misled
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
    let (lines, code) = folder.json(&["check", "gemini.json", "responses.json"]);
    assert_eq!(code, 1);
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
    let done = folder.session(&["repair", "--write", "gemini.json", "responses.json"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert_eq!(folder.session(&["check", "gemini.json", "responses.json"]).code, 0);
}

#[test]
fn a_live_tail_is_clean_and_its_calls_are_named() {
    let folder = Folder::new();
    let cut = FINE.find(",\n{\"role\":\"user\",\"content\":[").unwrap();
    folder.write("s.json", format!("{}]", &FINE[..cut]));
    let done = folder.session(&["check", "s.json"]);
    assert_eq!(done.code, 0);
    assert!(done.out.contains("1 call of the last step without a result yet: toolu_1"));
    let (lines, _) = folder.json(&["check", "s.json"]);
    assert_eq!(lines[0]["pending"], json!(["toolu_1"]));

    let done = folder.session(&["repair", "--close-tail", "--write", "s.json"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(folder.read("s.json").contains("outcome unknown, may have run"));
    assert_eq!(folder.json(&["check", "s.json"]).0[0]["pending"], json!([]));
}

#[test]
fn colours_are_where_the_terminal_has_them() {
    let folder = Folder::new();
    folder.write("a.json", ORPHANED);
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
    let guard = crate::folder::guard().display();
    let script = format!("{guard} session repair --write . | head -n 1");
    let mut command = std::process::Command::new("sh");
    let done = command.args(["-c", &script]).current_dir(folder.path("")).output().unwrap();
    assert_eq!(String::from_utf8(done.stderr).unwrap(), "");
    assert_eq!(folder.session(&["check", "."]).code, 0, "all are mended");
}
