//! The agent that answers 400 on every call, from the first check to the last.
use super::{
    agents::real,
    folder::{FINE, Folder, ORPHANED},
};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

const ERROR: &str = "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: \
    toolu_01A. Each `tool_result` block must have a corresponding `tool_use` block in the previous \
    message.";

/// The screen is in the guide, with the command that shows it.
fn is_in_the_guide(command: &str, screen: &str) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/session.md");
    let guide = fs::read_to_string(guide).unwrap();
    let shown = format!("$ tool-guard session {command}\n{screen}");
    assert!(guide.contains(&shown), "docs/session.md does not have\n{shown}");
}

#[test]
fn an_orphaned_result_is_found_and_mended_and_nothing_is_lost() {
    let folder = Folder::new();
    let file = folder.write("agent.json", ORPHANED);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();

    let checked = folder.ends(1, &["check", "agent.json"]);
    let expected = format!(
        "\
✗ agent.json  Anthropic Messages · 4 messages · 393 bytes
  agent.json:4  Orphaned tool_result: toolu_01A
      message 2, block 0 · rule 1
      Anthropic refuses it: {ERROR}

See how to repair it:  tool-guard session repair agent.json
"
    );
    assert_eq!(checked.out, expected);
    is_in_the_guide("check agent.json", &checked.out);

    let planned = folder.ends(1, &["repair", "agent.json"]);
    let expected = "\
✗ agent.json  Anthropic Messages · 4 messages · 393 bytes
  agent.json:4  turn the result into text  toolu_01A
  agent.json:4  lost: which call this belongs to; what it says stays, as text  toolu_01A
  before: 4 messages, 393 bytes; after: 4 messages, 421 bytes
  nothing is written yet: 1 change planned

Look at it closer:  tool-guard session diff agent.json
Do it:              tool-guard session repair --write agent.json
";
    assert_eq!(planned.out, expected);
    is_in_the_guide("repair agent.json", &planned.out);

    let differs = folder.ends(1, &["diff", "agent.json"]);
    let expected = r#"--- agent.json
+++ agent.json, repaired
@@ agent.json:4, record 2 changes @@
   "role": "user",
   "content": [
     {
-      "type": "tool_result",
-      "tool_use_id": "toolu_01A",
-      "content": "receipt ch_1"
+      "type": "text",
+      "text": "[result of a tool call that is not in this session: toolu_01A]\nreceipt ch_1"
     },
     {
       "type": "text",

See what it loses:  tool-guard session repair agent.json
"#;
    assert_eq!(differs.out, expected);
    is_in_the_guide("diff agent.json", &differs.out);
    assert_eq!(folder.names(), ["agent.json"], "so far nothing was written");
    assert_eq!(folder.read("agent.json"), ORPHANED);

    let repaired = folder.ends(0, &["repair", "--write", "agent.json"]);
    assert!(repaired.out.contains("  repaired: 1 change; the old file is "), "{}", repaired.out);
    let backup = folder.only("agent.json.bak-");
    assert_eq!(folder.read(&backup), ORPHANED);
    let (path, guides) = (folder.path(&backup), "/home/me/agent.json.bak-20260221T112000Z");
    let shown = repaired.out.replace(&*path.to_string_lossy(), guides);
    assert_ne!(shown, repaired.out, "it names the backup");
    is_in_the_guide("repair --write agent.json", &shown);
    assert!(folder.read("agent.json").contains("receipt ch_1"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);

    let checked = folder.ends(0, &["check", "agent.json"]);
    assert_eq!(checked.out, "✓ agent.json  Anthropic Messages · 4 messages · 421 bytes\n");
    is_in_the_guide("check agent.json", &checked.out);
    assert_eq!(folder.session(&["repair", "--write", "agent.json"]).code, 0);
    assert_eq!(folder.names().len(), 2, "what is clean is not written again");
}

/// Claude Code's session, whole but for what the power cut left at its end.
const WHOLE: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Pay order 42."}}
{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"Paid."}]}}
"#;
const HALF: &str = r#"{"type":"user","uuid":"u3","parentUuid":"u2","sessionId":"s","mes"#;

#[test]
fn damaged_bytes_are_told_for_what_they_are() {
    let folder = Folder::new();
    let damaged = format!("{WHOLE}{}\n{HALF}", "\0".repeat(512));
    folder.write("power.jsonl", &damaged);
    let checked = folder.session(&["check", "power.jsonl"]);
    let expected = "\
✓ power.jsonl  Claude Code · 2 messages · 843 bytes · 577 bytes of no record
  power.jsonl:3  Run of 512 NUL bytes
      left by a crash or a full disk: they say nothing, and the session goes on
  power.jsonl:4  Torn record: 65 bytes
      half a record, as a crash leaves it: what it said is lost, and a call in it may have run
  → to take out what is no record: tool-guard session repair power.jsonl
";
    assert_eq!((checked.code, &*checked.out), (0, expected));
    is_in_the_guide("check power.jsonl", &checked.out);

    let planned = folder.session(&["repair", "power.jsonl"]);
    let expected = "\
✗ power.jsonl  Claude Code · 2 messages · 843 bytes · 577 bytes of no record
  power.jsonl:3  take out 512 NUL bytes
  power.jsonl:4  take out 65 bytes that belong to no record
  lost: what the 65 bytes said that are taken out; the old file keeps them
  before: 2 messages, 843 bytes; after: 2 messages, 265 bytes
  nothing is written yet: 2 changes planned

Look at it closer:  tool-guard session diff power.jsonl
Do it:              tool-guard session repair --write power.jsonl
";
    assert_eq!((planned.code, &*planned.out), (1, expected));
    is_in_the_guide("repair power.jsonl", &planned.out);
    let differs = folder.session(&["diff", "power.jsonl"]).out;
    assert!(differs.contains("\n-NUL×512\n"), "{differs}");

    assert_eq!(folder.session(&["repair", "--write", "power.jsonl"]).code, 0);
    assert_eq!(folder.read("power.jsonl"), WHOLE);
    assert_eq!(folder.read(&folder.only("power.jsonl.bak-")), damaged);
}

#[test]
fn a_file_of_another_agent_is_named_and_left_alone() {
    let folder = Folder::new();
    let text = real("gemini-killed.jsonl");
    folder.write("chat.jsonl", &text);
    let expected = "\
? chat.jsonl
  not judged: this is a session of gemini-cli
  → it is left as it is: the rules of gemini-cli are not known here. To have it judged, save the \
                    body of the request that gemini-cli sends to the model, and check that
";
    for command in ["check", "repair"] {
        let done = folder.session(&[command, "chat.jsonl"]);
        assert_eq!((done.code, &*done.out), (3, expected));
    }
    is_in_the_guide("check chat.jsonl", expected);
    assert_eq!((folder.read("chat.jsonl"), folder.names().len()), (text, 1));
}

#[test]
fn of_many_files_each_is_told_and_the_worst_counts() {
    let folder = Folder::with("s/a.json", FINE);
    folder.write("s/b/orphaned.json", ORPHANED);
    folder.write("s/notes.md", "# Notes");
    folder.write("s/package.json", r#"{"name":"x"}"#);
    folder.write("s/z.json", &FINE[..FINE.len() - 4]);

    let done = folder.ends(2, &["check", "s"]);
    assert!(done.out.starts_with("✗ s/b/orphaned.json"), "clean ones are not shown: {}", done.out);
    let all = folder.ends(2, &["check", "-v", "s"]).out;
    assert!(all.starts_with("✓ s/a.json  Anthropic Messages · 4 messages"), "{all}");
    let end = "
3 sessions: 1 clean, 1 with findings, 1 unreadable
skipped: s/notes.md (there is no JSON in it), s/package.json (there are no messages in it)

See how to repair it:  tool-guard session repair s/b/orphaned.json
";
    assert!(done.out.ends_with(end), "{}", done.out);
    assert!(done.err.starts_with("✗ s/z.json neither an array of messages nor a request: EOF"));
    assert!(done.err.contains("→ if it was cut off"), "{}", done.err);

    fs::remove_file(folder.path("s/z.json")).unwrap();
    assert_eq!(folder.session(&["check", "s"]).code, 1);
    folder.ends(0, &["repair", "--write", "s"]);
    let done = folder.ends(0, &["check", "s"]);
    assert!(done.out.starts_with("✓ 2 sessions, all clean\nskipped: "), "{}", done.out);
    assert!(done.out.contains(" (a backup)"), "it is not looked into: {}", done.out);
    fs::create_dir(folder.path("clean")).unwrap();
    for name in ["clean/a.json", "clean/b.json"] {
        folder.write(name, FINE);
    }
    assert_eq!(folder.ends(0, &["check", "clean"]).out, "✓ 2 sessions, all clean\n");
    let one = folder.ends(0, &["check", "clean/a.json"]).out;
    assert!(one.starts_with("✓ clean/a.json  Anthropic Messages"), "a named one is shown: {one}");
    assert_eq!(folder.json_of(0, &["check", "clean"]).len(), 2, "each session is a line");
}
