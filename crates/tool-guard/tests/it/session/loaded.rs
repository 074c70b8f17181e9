//! What agents of 2026 make of their files when they load them, as the real ones were seen to.
use super::folder::{Done, Folder};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAYAAABzenr0AAAAGUlEQVR4nO3BAQEAAACCIP+vbkhAAQAAAO8GECAAAUGc0BwAAAAASUVORK5CYII=";

/// A line of Claude Code's.
fn claude(kind: &str, id: &str, parent: Option<&str>, message: &Value) -> Value {
    json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "message": message})
}

fn user(id: &str, parent: Option<&str>, content: &Value) -> Value {
    claude("user", id, parent, &json!({"role": "user", "content": content}))
}

fn model(id: &str, parent: &str, content: &Value) -> Value {
    let message =
        json!({"role": "assistant", "id": id, "model": "claude-opus-4-8", "content": content});
    claude("assistant", id, Some(parent), &message)
}

fn call(id: &str) -> Value {
    json!([{"type": "tool_use", "id": id, "name": "pay", "input": {}}])
}

fn result(id: &str, content: &Value) -> Value {
    json!([{"type": "tool_result", "tool_use_id": id, "content": content}])
}

/// A compaction with its summary that keeps these lines.
fn compaction(kept: &[&str]) -> [Value; 2] {
    let metadata = json!({
        "trigger": "auto",
        "preservedSegment": {"headUuid": kept[0], "anchorUuid": "sum", "tailUuid": kept[kept.len() - 1]},
        "preservedMessages": {"anchorUuid": "sum", "uuids": kept, "allUuids": kept},
    });
    let boundary = json!({
        "type": "system", "subtype": "compact_boundary", "uuid": "bound", "parentUuid": null,
        "sessionId": "s", "compactMetadata": metadata,
    });
    let mut summary = user("sum", Some("bound"), &json!("What was done before."));
    summary["isCompactSummary"] = true.into();
    summary["isVisibleInTranscriptOnly"] = true.into();
    [boundary, summary]
}

fn file(lines: &[Value]) -> Folder {
    Folder::with("s.jsonl", lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

fn checked(folder: &Folder, code: i32) -> Done {
    folder.ends(code, &["check", "s.jsonl"])
}

#[test]
fn claude_codes_compaction_keeps_what_it_lists_and_hides_the_rest() {
    let old = [
        user("a", None, &json!("Pay order 41.")),
        user("b", Some("a"), &result("toolu_lost", &json!("paid 41"))),
        model("c", "b", &json!([{"type": "text", "text": "I pay 42."}])),
        model("d", "c", &call("toolu_42")),
        user("e", Some("d"), &result("toolu_42", &json!("paid 42"))),
    ];
    let end = [user("f", Some("e"), &json!("Thanks.")), model("g", "f", &json!("Good bye."))];
    let whole = [&old[..], &compaction(&["c", "d", "e"]), &end].concat();
    let folder = file(&whole);
    let done = checked(&folder, 0);
    assert!(done.out.contains(" · 5 messages"), "the result before it is not sent: {}", done.out);

    // The call that is kept has lost its result: its answer is kept with it.
    let mut lost: Vec<Value> = whole.iter().filter(|line| line["uuid"] != "e").cloned().collect();
    lost[4..6].clone_from_slice(&compaction(&["c", "d"]));
    lost[6]["parentUuid"] = "d".into();
    let folder = file(&lost);
    assert!(checked(&folder, 1).out.contains("s.jsonl:4  Incomplete tool_use: toolu_42"));
    folder.ends(0, &["repair", "--write", "s.jsonl"]);
    let mended = folder.read("s.jsonl");
    let line = |at: usize| serde_json::from_str::<Value>(mended.lines().nth(at).unwrap()).unwrap();
    let (answer, kept) = (line(4), &line(5)["compactMetadata"]);
    assert!(answer.to_string().contains("outcome unknown, may have run"), "{mended}");
    let listed = json!(["c", "d", answer["uuid"]]);
    assert_eq!(kept["preservedMessages"]["uuids"], listed, "{mended}");
    assert_eq!(kept["preservedSegment"]["tailUuid"], answer["uuid"]);
    assert_eq!(kept["preservedMessages"]["allUuids"], json!(["c", "d"]));
    checked(&folder, 0);

    // One that is listed is missing: Claude Code links none then, and cuts at the boundary.
    let folder = file(
        &[&old[..], &compaction(&["c", "x"]), &[user("f", Some("sum"), &json!("On."))]].concat(),
    );
    assert!(checked(&folder, 0).out.contains(" · 1 message ·"));
}

#[test]
fn images_documents_and_unsigned_thoughts_are_found_and_taken_out() {
    let image = |data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let ask = |content: Value| {
        [
            user("a", None, &json!("Look.")),
            model("b", "a", &call("toolu_1")),
            user("c", Some("b"), &result("toolu_1", &json!([content]))),
            model("d", "c", &json!([{"type": "text", "text": "So?"}])),
        ]
    };
    checked(&file(&ask(image(PNG))), 0);
    let folder = file(&ask(image("PCFET0NUWVBFIGh0bWw+")));
    let done = checked(&folder, 1);
    assert!(
        done.out.contains("messages.2.content.0.image.source.base64: Could not process image"),
        "{}",
        done.out
    );
    folder.ends(2, &["repair", "--extract", "kept", "s.jsonl"]);
    folder.write("kept/s.jsonl-3-1.png", "another");
    let done = folder.ends(2, &["repair", "--write", "--extract", "kept", "s.jsonl"]);
    assert!(done.err.contains("give a folder without such a file"), "{}", done.err);
    checked(&folder, 1);
    let done = folder.ends(0, &["repair", "--write", "--extract", "new/kept", "s.jsonl"]);
    assert!(done.out.contains("s.jsonl:3  lost: an image or a document"), "{}", done.out);
    assert!(done.out.contains("kept: new/kept/s.jsonl-3-1.png"), "{}", done.out);
    assert_eq!(folder.read("new/kept/s.jsonl-3-1.png"), "<!DOCTYPE html>");
    assert_eq!(folder.read("kept/s.jsonl-3-1.png"), "another");
    let mode = |name: &str| folder.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("new/kept"), mode("new/kept/s.jsonl-3-1.png")), (0o700, 0o600));
    assert!(
        folder
            .read("s.jsonl")
            .contains("[the image that was here was removed: Could not process image]")
    );
    checked(&folder, 0);

    // A record that a raw line break divides keeps its image, too.
    let folder = file(&ask(image("PCFET0NUWVBFIGh0bWw+")));
    let divided =
        folder.read("s.jsonl").replace("\"uuid\":\"c\"", "\"note\":\"a\nb\",\"uuid\":\"c\"");
    folder.write("s.jsonl", divided);
    folder.ends(0, &["repair", "--write", "--extract", "kept", "s.jsonl"]);
    assert_eq!(folder.read("kept/s.jsonl-3-1.png"), "<!DOCTYPE html>");

    let thought = json!({"type": "thinking", "thinking": "I pay."});
    let unsigned = |behind: &[Value]| {
        let step = json!([thought, {"type": "text", "text": "I pay."}]);
        file(&[&[user("a", None, &json!("Pay.")), model("b", "a", &step)], behind].concat())
    };
    let folder = unsigned(&[user("c", Some("b"), &json!("Did it work?"))]);
    let done = checked(&folder, 1);
    assert!(
        done.out.contains("messages.1.content.0.thinking.signature: Field required"),
        "{}",
        done.out
    );
    folder.ends(0, &["repair", "--write", "s.jsonl"]);
    assert!(!folder.read("s.jsonl").contains("thinking"), "its turn is over");
    checked(&folder, 0);
    let done = unsigned(&[]).ends(1, &["repair", "s.jsonl"]);
    assert!(done.out.contains("rollback --before-fault"), "its turn is not over: {}", done.out);
}

/// A line of Codex's.
fn codex(kind: &str, payload: &Value) -> Value {
    json!({"timestamp": "2026-10-01T10:00:00.000Z", "type": kind, "payload": payload})
}

fn item(payload: &Value) -> Value {
    codex("response_item", payload)
}

fn says(text: &str) -> Value {
    item(
        &json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
    )
}

#[test]
fn codexs_sessions_are_judged_by_what_codex_sends() {
    let meta = codex("session_meta", &json!({"id": "s", "cwd": "/", "cli_version": "0.169.0"}));
    let call = item(
        &json!({"type": "function_call", "call_id": "call_1", "name": "pay", "arguments": "{}"}),
    );
    let output = |said: &str| {
        item(&json!({"type": "function_call_output", "call_id": "call_1", "output": said}))
    };
    // Two results of one call are both sent: nothing is wrong, and nothing is changed.
    let folder = file(&[
        meta.clone(),
        says("go"),
        call.clone(),
        output("paid"),
        output("again"),
        says("so?"),
    ]);
    let before = folder.read("s.jsonl");
    checked(&folder, 0);
    folder.ends(0, &["repair", "--write", "s.jsonl"]);
    assert_eq!(folder.read("s.jsonl"), before);
    // Codex reads a content only if it is a list.
    let folder = file(&[meta.clone(), says("go"), output("paid ch_1"), says("so?")]);
    let done = checked(&folder, 1);
    assert!(done.out.contains("Codex drops this result on resume, silently"), "{}", done.out);
    folder.ends(0, &["repair", "--write", "s.jsonl"]);
    let mended: Value =
        serde_json::from_str(folder.read("s.jsonl").lines().nth(2).unwrap()).unwrap();
    let text = mended["payload"]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("\npaid ch_1"), "{mended}");

    for (healthy, messages) in [
        (item(&json!({"type": "function_call_output", "name": "handoff", "output": "ok"})), 3),
        (
            item(
                &json!({"type": "agent_message", "author": "/a", "recipient": "/", "content": [{"type": "input_text", "text": "done"}]}),
            ),
            3,
        ),
        (codex("inter_agent_communication_metadata", &json!({"trigger_turn": false})), 2),
        (codex("event_msg", &json!({"type": "thread_rolled_back", "num_turns": 1})), 1),
        (codex("event_msg", &json!({"type": "thread_rolled_back", "num_turns": 0})), 2),
    ] {
        let folder = file(&[meta.clone(), says("go"), healthy.clone(), says("next")]);
        let done = checked(&folder, 0);
        let of = format!(" · {messages} message");
        assert!(done.out.contains(&of), "{healthy}: {}", done.out);
    }
    // What begins a turn is what the user says, not what Codex says of the surroundings.
    let undone = codex("event_msg", &json!({"type": "thread_rolled_back", "num_turns": 1}));
    let folder = file(&[
        meta,
        says("go"),
        call,
        output("paid"),
        says("<environment_context>…"),
        undone,
        says("on"),
    ]);
    assert!(checked(&folder, 0).out.contains(" · 1 message"));
}

#[test]
fn pis_edits_take_out_of_the_context_what_they_name() {
    let entry = |id: &str, parent: Option<&str>, of: Value| {
        let mut entry =
            json!({"id": id, "parentId": parent, "timestamp": "2026-10-01T10:00:00.000Z"});
        entry.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
        entry
    };
    let message = |message: Value| json!({"type": "message", "message": message});
    let with = |target: &str, replacement: Value| {
        file(&[
            json!({"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/"}),
            entry("a", None, message(json!({"role": "user", "content": "go"}))),
            entry(
                "b",
                Some("a"),
                message(
                    json!({"role": "toolResult", "toolCallId": "call_1", "toolName": "x", "content": [{"type": "text", "text": "lost"}]}),
                ),
            ),
            entry(
                "c",
                Some("b"),
                json!({"type": "context_edit", "targetId": target, "replacement": replacement}),
            ),
            entry("d", Some("c"), message(json!({"role": "user", "content": "on"}))),
        ])
    };
    checked(&with("b", Value::Null), 0);
    checked(&with("a", Value::Null), 1);
    checked(&with("b", json!({"content": "shorter"})), 1);
}

#[test]
fn without_a_path_the_agents_sessions_are_checked() {
    let home = Folder::new();
    let fine = [
        user("a", None, &json!("Hi.")),
        model("b", "a", &json!([{"type": "text", "text": "Hi."}])),
    ];
    home.write(".claude/projects/p/s.jsonl", fine.map(|line| format!("{line}\n")).concat());
    let all = home.at_home(&["check", "--verbose"]);
    assert_eq!(all.code, 0, "{}{}", all.out, all.err);
    assert!(all.out.contains(".claude/projects/p/s.jsonl  Claude Code"), "{}", all.out);
    assert_eq!(home.at_home(&["check"]).out, "✓ 1 session, clean\n");
    assert_eq!(Folder::new().at_home(&["check"]).code, 2);
}

/// Codex 0.169 logs "skipping duplicate or regressed rollout ordinal during projection", and sends the item.
#[test]
fn a_line_that_codex_does_not_show_is_told_and_stays() {
    let numbered = |ordinal: u64, mut line: Value| {
        line["ordinal"] = ordinal.into();
        line
    };
    let meta = codex("session_meta", &json!({"id": "s", "cwd": "/", "cli_version": "0.153.4"}));
    let lines = |ordinals: [u64; 4]| {
        let lines = [meta.clone(), says("go"), says("on"), says("so?")];
        ordinals.into_iter().zip(lines).map(|(at, line)| numbered(at, line)).collect::<Vec<_>>()
    };
    // A repair adds lines without an ordinal, and takes out lines that have one.
    for rising in [lines([0, 1, 2, 3]), lines([0, 1, 5, 6])] {
        assert!(!checked(&file(&rising), 0).out.contains("rdinal"));
    }
    for (ordinals, line) in [([0, 1, 1, 2], 3), ([0, 3, 2, 4], 3), ([0, 1, 2, 0], 4)] {
        let folder = file(&lines(ordinals));
        let out = checked(&folder, 0).out;
        let told = format!("s.jsonl:{line}  Ordinal that is not above those before it");
        assert!(out.contains(&told) && out.contains("the model is sent it"), "{out}");
        let before = folder.read("s.jsonl");
        folder.ends(0, &["repair", "--write", "s.jsonl"]);
        assert_eq!(folder.read("s.jsonl"), before);
    }
}
