//! Sessions of JSON lines: Claude Code's and OpenClaw's.
use super::folder::Folder;
use serde_json::json;
use tr_transcript::SessionFile;

/// OpenClaw's session whose call of `pay` was never answered, and whose last line is torn.
pub(crate) const OPENCLAW: &str = r#"{"type":"session","version":3,"id":"s-1","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}
{"type":"message","id":"a","parentId":null,"timestamp":"","message":{"role":"user","content":"Pay order 42."}}
{"type":"message","id":"b","parentId":"a","timestamp":"","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_1","name":"pay","arguments":{"order":42}}]}}
{"type":"message","id":"c","parentId":"b","timestamp":"","message":{"role":"user","content":"Did it work?"}}
"#;

const TORN: &str = r#"{"type":"message","id":"d","parentId":"c","mess"#;

/// Claude Code's session with a result whose call is gone.
pub(crate) const CLAUDE: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Pay order 42."}}
{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"I pay it."}]}}
{"type":"user","uuid":"u3","parentUuid":"u2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01A","content":"receipt ch_1"}]}}
{"type":"assistant","uuid":"u4","parentUuid":"u3","sessionId":"s","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"Done."}]}}
"#;

#[test]
fn claude_codes_orphaned_result_is_found_and_mended() {
    let folder = Folder::with("s.jsonl", CLAUDE);
    let checked = folder.ends(1, &["check", "s.jsonl"]);
    let expected = "✗ s.jsonl  Claude Code · 4 messages · 594 bytes
  s.jsonl:3  Orphaned tool_result: toolu_01A
      message 2, block 0 · rule 1
      Claude Code drops this result on resume, silently: the model never reads it
      of the session as it stands Anthropic says: messages.2.content.0: unexpected `tool_use_id` \
                    found in `tool_result` blocks: toolu_01A. Each `tool_result` block must have a corresponding \
                    `tool_use` block in the previous message.

See how to repair it:  tool-guard session repair s.jsonl
";
    assert_eq!(checked.out, expected);
    folder.ends(0, &["repair", "--write", "s.jsonl"]);
    let mended = folder.read("s.jsonl");
    assert!(mended.contains("receipt ch_1") && !mended.contains("tool_result\""), "{mended}");
    let others = |text: &str| -> Vec<String> {
        text.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| line.into()).collect()
    };
    assert_eq!(others(&mended), others(CLAUDE), "only the line at fault is written anew");
    assert_eq!(folder.read(&folder.only("s.jsonl.bak-")), CLAUDE);
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 0);
}

#[test]
fn openclaws_unanswered_call_gets_its_answer_and_the_torn_line_goes() {
    let folder = Folder::new();
    let text = format!("{OPENCLAW}{TORN}");
    folder.write("s.jsonl", &text);
    let lines = folder.json_of(1, &["check", "s.jsonl"]);
    assert_eq!(
        (&lines[0]["form"], &lines[0]["skippedBytes"]),
        (&json!("openclaw"), &json!(TORN.len()))
    );
    let faults: Vec<_> = lines[0]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| (found["line"].as_u64().unwrap(), found["fault"].as_str().unwrap()))
        .collect();
    assert_eq!(faults, [(3, "incomplete_use"), (5, "torn")]);

    let lines = folder.json_of(1, &["repair", "s.jsonl"]);
    let acts = lines[0]["repairs"].as_array().unwrap();
    let act = |name: &str| acts.iter().find(|act| act["action"] == name).unwrap();
    assert_eq!(act("add_unknown")["toolUseId"], "call_1");
    let drop = json!({"line": 5, "action": "drop_bytes", "length": TORN.len(), "why": "torn"});
    assert_eq!(*act("drop_bytes"), drop);

    let done = folder.ends(0, &["repair", "--write", "s.jsonl"]);
    assert!(done.out.contains(&format!("take out {} bytes that belong to no record", TORN.len())));
    // They may have been half of an answer.
    let lost = format!(
        "lost: what the {} bytes said that are taken out; the old file keeps them",
        TORN.len()
    );
    assert!(done.out.contains(&lost) && !done.out.contains("is lost"), "{}", done.out);
    assert!(folder.read("s.jsonl").contains("outcome unknown, may have run"));
    assert_eq!(folder.read(&folder.only("s.jsonl.bak-")), text);
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 0);
}

#[test]
fn lines_have_checkpoints_too() {
    let folder = Folder::new();
    let start: String = OPENCLAW.lines().take(2).map(|line| format!("{line}\n")).collect();
    folder.write("s.jsonl", &start);
    let (lines, code) = folder.json(&["checkpoints", "--create", "s.jsonl"]);
    assert_eq!((code, &lines[0]["created"]), (0, &json!("s#1")));
    let checkpoint = &lines[0]["checkpoints"][0];
    assert_eq!(
        (&checkpoint["length"], &checkpoint["messageIndex"]),
        (&json!(start.len()), &json!(1))
    );
    assert_eq!(checkpoint["contentHash"], blake3::hash(start.as_bytes()).to_hex().as_str());

    folder.write("s.jsonl", format!("{OPENCLAW}{TORN}"));
    folder.ends(0, &["rollback", "--to", "1", "--write", "s.jsonl"]);
    assert_eq!(folder.read("s.jsonl"), start);

    folder.write("s.jsonl", OPENCLAW);
    folder.ends(0, &["rollback", "--before-fault", "--write", "s.jsonl"]);
    assert_eq!(folder.read("s.jsonl"), start, "the call that was never answered goes");
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 0);
}

#[test]
fn a_checkpoint_of_the_commands_is_one_of_the_librarys_and_the_reverse() {
    let folder = Folder::new();
    for line_end in ["\n", "\r\n"] {
        let start: String =
            OPENCLAW.lines().take(3).map(|line| format!("{line}{line_end}")).collect();
        let name = format!("s{}.jsonl", line_end.len());
        folder.write(&name, &start);
        let (lines, _) = folder.json(&["checkpoints", "--create", &name]);
        let made = &lines[0]["checkpoints"][0];
        let point = made["point"].as_str().unwrap();
        let whole = format!("{start}{}{line_end}", OPENCLAW.lines().nth(3).unwrap());
        let mut file = SessionFile::read(whole.as_bytes());
        file.rollback(point).unwrap();
        assert_eq!(file.to_bytes(), start.as_bytes());
        assert_eq!((&*file.end().id, file.end().length), (point, made["length"].as_u64().unwrap()));

        folder.write(&name, &whole);
        for id in [point, &*SessionFile::read(start.as_bytes()).end().id, "1"] {
            let (lines, code) = folder.json(&["rollback", "--to", id, &name]);
            assert_eq!((code, &lines[0]["newMessageCount"]), (1, &json!(2)), "{id}");
            let checkpoint = lines[0]["checkpoint"].as_str().unwrap();
            assert!(checkpoint.ends_with("#1"), "{checkpoint}");
        }
        // One that nobody has written down.
        let file = SessionFile::read(whole.as_bytes());
        let turn = file.checkpoints().find(|turn| turn.messages == 0).unwrap();
        let (lines, code) = folder.json(&["rollback", "--to", &turn.id, "--write", &name]);
        assert_eq!((code, &lines[0]["newMessageCount"]), (0, &json!(0)));
    }
}

#[test]
fn turns_are_points_to_go_back_to_without_a_checkpoint() {
    let folder = Folder::new();
    let more = r#"{"type":"message","id":"e","parentId":"a","timestamp":"","message":{"role":"assistant","content":[{"type":"text","text":"Which?"}]}}
{"type":"message","id":"f","parentId":"e","timestamp":"","message":{"role":"user","content":"That one."}}
"#;
    let start: String = OPENCLAW.lines().take(2).map(|line| format!("{line}\n")).collect();
    let text = format!("{start}{more}");
    folder.write("s.jsonl", &text);
    let lines = folder.json_of(0, &["checkpoints", "s.jsonl"]);
    let turn = &lines[0]["turns"][0];
    assert_eq!((&turn["line"], &turn["messageIndex"]), (&json!(3), &json!(2)));
    let id = turn["id"].as_str().unwrap();
    folder.ends(0, &["rollback", "--to", id, "--write", "s.jsonl"]);
    let without_last = text.lines().take(3).map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(folder.read("s.jsonl"), without_last);
    let other = format!("{}-000000000000", id.split('-').next().unwrap());
    let done = folder.ends(2, &["rollback", "--to", &other, "--write", "s.jsonl"]);
    assert!(done.err.contains("Checkpoint integrity mismatch"), "{}", done.err);
}

#[test]
fn a_reset_keeps_the_header() {
    let folder = Folder::with("s.jsonl", OPENCLAW);
    folder.ends(0, &["reset", "--archive", "--write", "s.jsonl"]);
    assert_eq!(folder.read("s.jsonl"), format!("{}\n", OPENCLAW.lines().next().unwrap()));
    assert_eq!(folder.read(&folder.only("s.jsonl.archive-")), OPENCLAW);
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 0);
}

#[test]
fn a_diff_shows_the_lines_that_change() {
    let folder = Folder::with("s.jsonl", CLAUDE);
    let done = folder.ends(1, &["diff", "s.jsonl"]);
    assert!(done.out.contains("@@ s.jsonl:3, record 2 changes @@"), "{}", done.out);
    assert!(done.out.contains("-        \"tool_use_id\": \"toolu_01A\",\n"), "{}", done.out);
    assert!(done.out.contains("+        \"type\": \"text\",\n"), "{}", done.out);
}

#[test]
fn runs_of_nul_and_glued_records_are_mended() {
    let folder = Folder::new();
    let glued = OPENCLAW.replacen("\n", "", 1);
    folder.write("s.jsonl", format!("{}{}", "\0".repeat(512), glued));
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 1);
    folder.ends(0, &["repair", "--write", "s.jsonl"]);
    let mended = folder.read("s.jsonl");
    assert!(mended.starts_with(OPENCLAW.lines().next().unwrap()) && !mended.contains('\0'));
    assert_eq!(folder.session(&["check", "s.jsonl"]).code, 0);
}

/// A picture of 12 MB in base64 is a line that a harness reads.
#[test]
fn a_call_in_a_very_long_line_is_seen() {
    let folder = Folder::new();
    let call = r#"{"type":"toolCall","id":"call_1","name":"pay","arguments":{"order":42}}"#;
    let picture = format!(r#"{call},{{"type":"text","text":"{}"}}"#, "A".repeat(17 << 20));
    let answer = r#"{"type":"message","id":"c","parentId":"b","timestamp":"","message":{"role":"toolResult","toolCallId":"call_1","toolName":"pay","content":[],"isError":false}}"#;
    let start: String = OPENCLAW.lines().take(3).map(|line| format!("{line}\n")).collect();
    folder.write("s.jsonl", format!("{}{answer}\n", start.replace(call, &picture)));
    let (lines, code) = folder.json(&["check", "s.jsonl"]);
    assert_eq!((code, &lines[0]["messages"], &lines[0]["found"]), (0, &json!(3), &json!(0)));
}

/// Copilot CLI #2649: the record is whole, and its repair loses nothing.
#[test]
fn the_lines_of_a_record_that_a_line_break_divides_are_joined() {
    let folder = Folder::new();
    let (head, tail) = OPENCLAW.split_at(OPENCLAW.find("Pay order").unwrap());
    folder.write("s.jsonl", format!("{head}\n\n{tail}"));
    let checked = folder.session(&["check", "s.jsonl"]);
    let (text, code) = (checked.out, checked.code);
    let found = "s.jsonl:2  Raw line break in a string\n      the agent reads two broken lines";
    assert!(code == 1 && text.matches(found).count() == 2, "{text}");
    let (planned, code) = folder.json(&["repair", "--write", "s.jsonl"]);
    let acts = planned[0]["repairs"].as_array().unwrap();
    let of_line_2 = acts.iter().filter(|act| act["line"] == 2).count();
    assert!(code == 0 && of_line_2 == 2 && acts.iter().all(|act| act["action"] != "extend"));
    assert!(folder.read("s.jsonl").starts_with(&format!(r"{head}\n\n{}", &tail[..9])));
}

#[test]
fn bytes_that_are_no_text_are_compared_as_bytes() {
    let folder = Folder::new();
    let (head, tail) = OPENCLAW.split_at(OPENCLAW.find("Pay order").unwrap());
    folder.write("s.jsonl", [head.as_bytes(), b"\xff", tail.as_bytes()].concat());
    let (planned, _) = folder.json(&["repair", "s.jsonl"]);
    let drops = planned[0]["repairs"].as_array().unwrap();
    assert!(drops.iter().any(|act| act["why"] == "not_utf8"), "{drops:?}");
    let lines = folder.json_of(1, &["diff", "s.jsonl"]);
    let changes = lines[0]["changes"].as_array().unwrap();
    let change = changes.iter().find(|change| change["line"] == 2).expect("line 2 differs");
    let text = |side: &str| change[side][0].as_str().unwrap().to_owned();
    assert!(text("before").contains(r"\xFFPay order"), "{}", text("before"));
    assert_ne!(text("before"), text("after"));
}
