//! What `repair`, `diff` and `reset` write, and what they refuse.
use super::folder::{FINE, Folder, ORPHANED};
use serde_json::json;
use std::{fs, os::unix::fs::MetadataExt as _};

#[test]
fn the_json_tells_plan_losses_and_backup() {
    let folder = Folder::new();
    let file = folder.write("a.json", ORPHANED);
    let expected = json!({
        "version": 1, "file": "a.json", "status": "planned",
        "form": "json", "format": "anthropic_messages",
        "messages": 4, "bytes": 393, "skippedBytes": 0, "mode": "preserve", "closeTail": false,
        "messagesAfter": 4, "bytesAfter": 421,
        "repairs": [{
            "line": 4, "action": "orphan_to_text", "messageIndex": 2, "toolUseId": "toolu_01A",
        }],
        "losses": [{"line": 4, "what": "link", "messageIndex": 2, "toolUseId": "toolu_01A"}],
        "remaining": {"pending": [], "found": 0, "errors": 0, "findings": []},
    });
    assert_eq!(folder.json(&["repair", "a.json"]), (vec![expected.clone()], 1));

    let lines = folder.json_of(0, &["repair", "--write", "a.json"]);
    let mut written = expected;
    written["status"] = json!("repaired");
    let backup = file.canonicalize().unwrap().with_file_name(folder.only("a.json.bak-"));
    written["backup"] = json!(backup);
    assert_eq!(lines, [written]);

    let (lines, code) = folder.json(&["repair", "--write", "a.json"]);
    assert_eq!((&lines[0]["status"], code), (&json!("clean"), 0));
}

#[test]
fn a_call_that_lost_its_id_gets_one() {
    let folder = Folder::with("a.json", FINE.replace("toolu_1", ""));
    let done = folder.ends(1, &["check", "a.json"]);
    let refused = "Anthropic refuses it: messages.1.content.0.tool_use.id: String should match";
    assert!(done.out.contains("a.json:3  tool_use without an id\n"), "{}", done.out);
    assert!(done.out.contains(refused), "{}", done.out);
    let done = folder.ends(0, &["repair", "--write", "a.json"]);
    assert!(done.out.contains("a.json:3  give the call an id of its own"), "{}", done.out);
    assert!(done.out.contains("nothing that a tool did or answered is lost"), "{}", done.out);
    assert_eq!(folder.read("a.json"), FINE.replace("toolu_1", "call_r1"));
}

#[test]
fn mode_remove_names_the_lines_of_items_as_they_were() {
    let says = |role: &str| format!(r#"{{"type":"message","role":"{role}","content":"a"}}"#);
    let call = |id: &str| {
        format!(r#"{{"type":"function_call","call_id":"{id}","name":"pay","arguments":"{{}}"}}"#)
    };
    let orphan = r#"{"type":"function_call_output","call_id":"ghost","output":"x"}"#;
    let linked = r#"{"type":"message","role":"assistant","id":"msg_1","content":"b"}"#;
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let (user, model) = (says("user"), says("assistant"));
    let (first, second) = (call("a"), call("b"));
    for (items, expected) in [
        ([&user, &first, &user, &second, &user, &model].map(|it| &**it).to_vec(), vec![3, 5]),
        // After the first removal, an item loses its link, and a reasoning goes.
        (vec![&user, orphan, &user, linked, reasoning, &user, &model], vec![3, 3, 5, 6]),
    ] {
        let folder = Folder::with("a.json", format!("{{\"input\":[\n{}\n]}}", items.join(",\n")));
        let (lines, code) = folder.json(&["repair", "--mode", "remove", "--write", "a.json"]);
        assert_eq!((&lines[0]["status"], code), (&json!("repaired"), 0), "{lines:?}");
        let repairs = lines[0]["repairs"].as_array().unwrap();
        let found: Vec<_> = repairs.iter().map(|it| it["line"].as_u64().unwrap()).collect();
        assert_eq!(found, expected, "{lines:?}");
        assert_eq!(folder.session(&["check", "a.json"]).code, 0);
    }
}

#[test]
fn mode_remove_names_what_it_removes_and_leaves_nothing_that_is_refused() {
    let folder = Folder::new();
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_9","name":"pay","input":{}}]}"#;
    let orphan =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"1"}]}"#;
    let says = |role: &str, text: &str| format!(r#"{{"role":"{role}","content":"{text}"}}"#);
    let text = format!(
        "[{},\n{},\n{orphan},\n{call},\n{},\n{}]",
        says("user", "go"),
        says("assistant", "yes"),
        says("user", "well?"),
        says("assistant", "done"),
    );
    folder.write("a.json", &text);
    let lines = folder.json_of(1, &["repair", "--mode", "remove", "a.json"]);
    let repairs: Vec<_> = lines[0]["repairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|act| (act["line"].as_u64().unwrap(), act["action"].as_str().unwrap()))
        .collect();
    assert_eq!(repairs[..2], [(3, "remove_orphan"), (3, "remove_empty_message")]);
    assert_eq!(
        repairs[2],
        (4, "remove_incomplete"),
        "counted after the removals, shown where it is"
    );
    assert_eq!(repairs[3..], [(4, "remove_empty_message")]);
    let lost: Vec<_> =
        lines[0]["losses"].as_array().unwrap().iter().map(|it| &it["what"]).collect();
    assert_eq!(lost, ["result", "call"]);

    let done = folder.ends(1, &["diff", "--mode", "remove", "a.json"]);
    assert!(done.out.contains("@@ a.json:3, records 2 to 3 go @@\n-{\n-  \"role\": \"user\",\n"));
    let done = folder.session(&["repair", "--mode", "remove", "a.json"]);
    assert!(done.out.contains("tool-guard session repair --mode remove --write a.json"));
    assert!(done.out.contains("a.json:4  lost: that the tool was called of pay  toolu_9"));
    assert_eq!(folder.session(&["repair", "--mode", "remove", "--write", "a.json"]).code, 0);
    assert_eq!(folder.session(&["check", "a.json"]).code, 0);
}

#[test]
fn a_diff_of_what_is_clean_is_empty() {
    let folder = Folder::with("a.json", FINE);
    assert_eq!(folder.session(&["diff", "a.json"]).code, 0);
    let (lines, code) = folder.json(&["diff", "a.json"]);
    assert_eq!((&lines[0]["changes"], code), (&json!([]), 0));
    folder.write("b.json", ORPHANED);
    let lines = folder.json_of(1, &["diff", "b.json"]);
    let change = &lines[0]["changes"][0];
    assert_eq!((&change["line"], &change["record"]), (&json!(4), &json!(2)));
    let before = change["before"][0].as_str().unwrap();
    assert!(ORPHANED.contains(before) && before.starts_with("{\"role\":\"user\",\"content\":[\n"));
    assert!(change["after"][0].as_str().unwrap().contains("[result of a tool call"));
}

#[test]
fn a_link_stays_and_its_target_is_mended() {
    let folder = Folder::new();
    let target = folder.write("deep/real.json", ORPHANED);
    std::os::unix::fs::symlink(&target, folder.path("link.json")).unwrap();
    assert_eq!(folder.session(&["repair", "--write", "link.json"]).code, 0);
    assert!(folder.path("link.json").is_symlink());
    assert_eq!(folder.names(), ["deep", "link.json"], "the backup is beside the target");
    assert_eq!(folder.session(&["check", "deep/real.json"]).code, 0);
    assert_eq!(fs::read_dir(folder.path("deep")).unwrap().count(), 2);
}

#[test]
fn earlier_backups_stay() {
    let folder = Folder::new();
    for _ in 0..3 {
        folder.write("a.json", ORPHANED);
        assert_eq!(folder.session(&["repair", "--write", "a.json"]).code, 0);
    }
    let names = folder.names();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names[1..].iter().all(|name| folder.read(name) == ORPHANED));
}

#[test]
fn a_file_that_another_program_writes_is_left_alone() {
    let folder = Folder::new();
    let file = folder.write("a.json", ORPHANED);
    let inode = fs::metadata(&file).unwrap().ino();

    let mut writer = std::process::Command::new("sh")
        .args(["-c", "exec >> a.json; echo ready >&2; read line"])
        .current_dir(folder.path(""))
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(writer.stderr.as_mut().unwrap(), &mut ready).unwrap();
    let done = folder.session(&["repair", "--write", "a.json"]);
    assert_eq!((done.code, &*done.out), (2, ""));
    let pid = writer.id();
    let expected =
        format!("a.json sh (process {pid}) has it open for writing; the file is as it was");
    assert!(done.err.contains(&expected), "{}", done.err);
    assert!(done.err.contains("→ stop the agent first"), "{}", done.err);
    drop(writer.stdin.take());
    writer.wait().unwrap();
    assert_eq!(folder.names(), ["a.json"]);
    assert_eq!(folder.session(&["check", "a.json"]).code, 1, "reading is never refused");

    let locked = fs::File::open(&file).unwrap();
    locked.lock().unwrap();
    let done = folder.ends(2, &["repair", "--write", "a.json"]);
    assert!(done.err.contains("another program has locked it"), "{}", done.err);
    // Dropping it is not enough while another test's child has not begun, which has it too.
    locked.unlock().unwrap();
    drop(locked);
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode);
    assert_eq!(folder.session(&["repair", "--write", "a.json"]).code, 0);
}

#[test]
fn a_reset_keeps_the_prompt_and_the_old_file() {
    let folder = Folder::with("a.json", ORPHANED);
    folder.session(&["checkpoints", "--create", "a.json"]);
    let done = folder.ends(1, &["reset", "a.json"]);
    assert!(done.out.contains("nothing is written yet: 4 messages would go, 0 messages of the"));
    assert_eq!(folder.read("a.json"), ORPHANED);

    let lines = folder.json_of(0, &["reset", "--archive", "--write", "a.json"]);
    assert_eq!((&lines[0]["status"], &lines[0]["archived"]), (&json!("reset"), &json!(true)));
    assert_eq!(lines[0]["remainingMessages"], 0);
    let left = r#"{"model":"claude","system":"Be brief.","messages":[
],"max_tokens":1024}
"#;
    assert_eq!(folder.read("a.json"), left);
    let names = folder.names();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(
        names[1].starts_with("a.json.archive-") && names[2] == format!("{}.checkpoints", names[1])
    );
    assert_eq!(folder.read(&names[1]), ORPHANED);
    assert_eq!(folder.session(&["reset", "--write", "a.json"]).code, 0, "nothing is left to do");
    assert_eq!(folder.names().len(), 3);

    let prompt = r#"{"role":"system","content":"Be brief."}"#;
    folder.write("b.json", format!("[{prompt},{}]", r#"{"role":"user","content":"hi"}"#));
    assert_eq!(folder.session(&["reset", "--write", "b.json"]).code, 0);
    assert_eq!(folder.read("b.json"), format!("[{prompt}]"));
    assert_eq!(folder.names().iter().filter(|name| name.starts_with("b.json.bak-")).count(), 1);
}

const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}"#;

#[test]
fn a_repair_that_takes_out_much_is_refused_without_force() {
    let folder = Folder::new();
    let said = |id: &str, parent: &str| {
        let message = r#"{"role":"user","content":"so"}"#;
        format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{message}}}"#)
    };
    let (a, b) = (said("a", "null"), said("b", "\"a\""));
    // Of a file of this size a torn record is much, but for the one that was being written.
    let torn = format!("{HEADER}\n{a}\n{}\n{b}\n", &a[..60]);
    folder.write("s.jsonl", &torn);
    let planned = folder.ends(1, &["repair", "s.jsonl"]);
    let why = "it would take out 60 bytes that are no whole record, 21 % of the file";
    assert!(planned.out.contains(&format!("--write is refused without --force: {why}")));
    assert!(planned.out.contains("repair --write --force s.jsonl"), "{}", planned.out);
    let (lines, _) = folder.json(&["repair", "s.jsonl"]);
    assert_eq!(lines[0]["refused"], why);

    let refused = folder.ends(2, &["repair", "--write", "s.jsonl"]);
    assert!(refused.err.contains("is not repaired, and is as it was"), "{}", refused.err);
    assert!(refused.err.contains("session repair --write --force s.jsonl"), "{}", refused.err);
    assert_eq!((folder.names().len(), folder.read("s.jsonl")), (1, torn.clone()));

    folder.ends(0, &["repair", "--write", "--force", "s.jsonl"]);
    assert_eq!(folder.read("s.jsonl"), format!("{HEADER}\n{a}\n{b}\n"));
    assert_eq!(folder.read(&folder.only("s.jsonl.bak-")), torn);

    folder.write("t.jsonl", format!("{HEADER}\n{a}\n{}", &b[..60]));
    assert_eq!(folder.session(&["repair", "--write", "t.jsonl"]).code, 0);
    assert_eq!(folder.read("t.jsonl"), format!("{HEADER}\n{a}\n"));
}

/// Two equal calls in Claude Code's lines: the second gets an id of its own, and so its result.
#[test]
fn every_line_that_a_new_id_touches_is_named() {
    let folder = Folder::new();
    let line = |at: usize, role: &str, block: &str| {
        let parent = at.checked_sub(1).map_or("null".to_owned(), |at| format!("\"u{at}\""));
        let id = if role == "assistant" { format!(r#""id":"m{at}","#) } else { String::new() };
        format!(
            r#"{{"type":"{role}","uuid":"u{at}","parentUuid":{parent},"message":{{{id}"role":"{role}","content":[{block}]}}}}"#
        )
    };
    let (call, result) = (
        r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#,
        r#"{"type":"tool_result","tool_use_id":"t","content":"ok"}"#,
    );
    let lines = [
        line(0, "user", r#"{"type":"text","text":"go"}"#),
        line(1, "assistant", call),
        line(2, "user", result),
        line(3, "assistant", call),
        line(4, "user", result),
        line(5, "assistant", r#"{"type":"text","text":"done"}"#),
    ];
    folder.write("s.jsonl", lines.join("\n") + "\n");
    let told = folder.json_of(0, &["repair", "--write", "s.jsonl"]);
    let acts = told[0]["repairs"].as_array().unwrap();
    let named: Vec<_> = acts.iter().map(|act| (&act["action"], &act["line"])).collect();
    assert_eq!(named, [(&json!("rename_id"), &json!(4)), (&json!("rename_id"), &json!(5))]);
    let now = folder.read("s.jsonl");
    let changed = lines.iter().zip(now.lines()).enumerate();
    let changed: Vec<_> = changed.filter(|(_, (was, now))| was != now).map(|(at, _)| at).collect();
    assert_eq!(changed, [3, 4]);
}

#[test]
fn a_reset_of_claude_codes_file_leaves_one_that_is_read() {
    let folder = Folder::new();
    let line = |id: &str, parent: &str, role: &str| {
        format!(
            r#"{{"type":"{role}","uuid":"{id}","parentUuid":{parent},"sessionId":"s","cwd":"/w","isSidechain":false,"message":{{"role":"{role}","content":"so"}}}}"#
        )
    };
    let lines = [line("a", "null", "user"), line("b", "\"a\"", "assistant")];
    folder.write("s.jsonl", lines.join("\n") + "\n");
    assert_eq!(folder.session(&["reset", "--write", "s.jsonl"]).code, 0);
    let left = folder.read("s.jsonl");
    let record: serde_json::Value = serde_json::from_str(&left).unwrap();
    assert_eq!((&record["sessionId"], &record["cwd"]), (&json!("s"), &json!("/w")));
    let done = folder.session(&["check", "s.jsonl"]);
    assert_eq!((done.code, done.out.starts_with("✓")), (0, true), "{}{}", done.out, done.err);
    assert!(done.out.contains("0 messages"), "{}", done.out);
    let again = folder.session(&["reset", "--write", "s.jsonl"]);
    assert!(again.out.contains("nothing to reset"), "{}", again.out);
    assert_eq!(folder.read("s.jsonl"), left);
    // What the agent writes next is all that is seen.
    let uuid = record["uuid"].as_str().unwrap();
    folder.write("s.jsonl", left + &line("c", &format!("\"{uuid}\""), "user") + "\n");
    let done = folder.session(&["check", "s.jsonl"]);
    assert!(done.code == 0 && done.out.contains("1 message"), "{}", done.out);
}
