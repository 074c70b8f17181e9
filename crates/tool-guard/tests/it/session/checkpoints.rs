//! Checkpoints of files, and the way back to them.
use super::folder::{FINE, Folder, ORPHANED};
use serde_json::json;
use std::{fs, io::Write as _};

/// `FINE` with more behind its end.
fn longer(more: &str) -> String {
    let whole = FINE.trim_end().trim_end_matches(']').trim_end();
    format!("{whole},\n{more}\n]\n")
}

const ORPHAN: &str =
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":"1"}]}"#;

#[test]
fn a_checkpoint_is_made_listed_and_gone_back_to() {
    let folder = Folder::with("a.json", FINE);
    let done = folder.ends(0, &["checkpoints", "a.json"]);
    assert!(done.out.ends_with(
        "  no checkpoints\n\nMake one:  tool-guard session checkpoints --create a.json\n"
    ));

    let create = ["checkpoints", "--create", "--note", "before the migration", "a.json"];
    let (lines, code) = folder.json(&create);
    assert_eq!(code, 0);
    assert_eq!(lines[0]["created"], "a#1");
    let checkpoint = &lines[0]["checkpoints"][0];
    let prefix = &FINE.as_bytes()[..FINE.len() - 3];
    let expected = json!({
        "id": "a#1", "sessionId": "a", "timestamp": checkpoint["timestamp"], "messageIndex": 4,
        "contentHash": blake3::hash(prefix).to_hex().as_str(), "operation": "manual",
        "length": prefix.len(), "note": "before the migration", "holds": true,
    });
    assert_eq!(*checkpoint, expected);

    folder.write("a.json", longer(ORPHAN));
    let done = folder.session(&["checkpoints", "a.json"]);
    assert!(done.out.contains("UTC      4 messages  before the migration\n"), "{}", done.out);
    assert!(done.out.contains("tool-guard session rollback --to 'a#1' a.json"), "{}", done.out);

    let done = folder.ends(1, &["rollback", "--to", "a#1", "a.json"]);
    let planned = "nothing is written yet: the last 1 message (87 bytes) would go, 4 messages would be \
                   left\n";
    assert!(done.out.contains(planned), "{}", done.out);
    assert_eq!(folder.read("a.json"), longer(ORPHAN));

    let lines = folder.json_of(0, &["rollback", "--to", "1", "--write", "a.json"]);
    assert_eq!(lines[0]["status"], "rolledBack");
    assert_eq!(
        (&lines[0]["messagesRemoved"], &lines[0]["newMessageCount"]),
        (&json!(1), &json!(4))
    );
    assert_eq!(folder.read("a.json"), FINE);
    assert_eq!(folder.read(&folder.only("a.json.bak-")), longer(ORPHAN));
    assert_eq!(folder.session(&["rollback", "--to", "1", "--write", "a.json"]).code, 0);
    assert_eq!(folder.names().len(), 3, "there was nothing to write");
}

#[test]
fn a_checkpoint_that_does_not_hold_is_refused() {
    let folder = Folder::with("a.json", FINE);
    folder.session(&["checkpoints", "--create", "a.json"]);
    let changed = longer(ORPHAN).replace("It says hello.", "It says hullo.");
    folder.write("a.json", &changed);

    let done = folder.session(&["rollback", "--to", "a#1", "--write", "a.json"]);
    assert_eq!((done.code, &*done.out), (2, ""));
    assert!(done.err.contains("Checkpoint integrity mismatch — messages were modified"));
    assert!(done.err.contains("so nothing was cut"), "{}", done.err);
    let done = folder.ends(2, &["rollback", "--to", "a#7", "--write", "a.json"]);
    assert!(done.err.contains("Checkpoint not found: a#7"), "{}", done.err);
    assert!(done.err.contains("→ there are: a#1"), "{}", done.err);
    assert_eq!(folder.read("a.json"), changed);
    assert_eq!(folder.names(), ["a.json", "a.json.checkpoints"]);
    let (lines, _) = folder.json(&["checkpoints", "a.json"]);
    assert_eq!(lines[0]["checkpoints"][0]["holds"], false);
}

#[test]
fn a_torn_sidecar_costs_one_line() {
    let folder = Folder::with("a.json", FINE);
    folder.session(&["checkpoints", "--create", "a.json"]);
    let sidecar = folder.path("a.json.checkpoints");
    let half = folder.read("a.json.checkpoints")[..30].to_owned();
    fs::File::options().append(true).open(&sidecar).unwrap().write_all(half.as_bytes()).unwrap();
    let (lines, code) = folder.json(&["checkpoints", "--create", "a.json"]);
    assert_eq!((code, &lines[0]["created"]), (0, &json!("a#3")));
    assert_eq!(lines[0]["unreadableLines"], json!([2]));
    assert_eq!(lines[0]["checkpoints"].as_array().unwrap().len(), 2);
    assert!(
        folder.session(&["checkpoints", "a.json"]).out.contains("a.json.checkpoints:2 is torn")
    );
}

#[test]
fn without_a_checkpoint_the_way_back_is_to_before_the_fault() {
    let folder = Folder::with("a.json", ORPHANED);
    let (lines, code) = folder.json(&["rollback", "--before-fault", "a.json"]);
    assert_eq!((code, &lines[0]["newMessageCount"]), (1, &json!(2)));

    // A call whose answer never came: the prefix ends before the call.
    let call =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"pay","input":{}}]}"#;
    let says = r#"{"role":"user","content":"well?"}"#;
    folder.write("b.json", longer(&format!("{says},\n{call},\n{says}")));
    let (lines, code) = folder.json(&["rollback", "--before-fault", "--write", "b.json"]);
    assert_eq!((code, &lines[0]["newMessageCount"]), (0, &json!(5)));
    assert_eq!(folder.read("b.json"), longer(says));
    assert_eq!(folder.session(&["check", "b.json"]).code, 0);
    assert_eq!(folder.session(&["rollback", "--before-fault", "b.json"]).code, 0);
}
