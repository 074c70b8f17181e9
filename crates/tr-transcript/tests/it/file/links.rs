//! Repairs of files whose links are at fault, or stand in the way of a repair.
use serde_json::{Value, json};
use tr_transcript::{
    FileActionKind, FileFault, FileFinding, FilePlanner, OUTCOME_UNKNOWN, Repair, SessionFile,
};

/// A file of OpenClaw's.
fn openclaw(version: u32, entries: &[Value]) -> String {
    let header = json!({"type": "session", "version": version, "id": "s", "cwd": "/"});
    [&header].into_iter().chain(entries).map(|entry| format!("{entry}\n")).collect()
}

fn entry(id: &str, parent: Option<&str>, message: Value) -> Value {
    let mut entry = json!({"type": "message", "id": id, "parentId": parent});
    entry["message"] = message;
    entry
}

fn says(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn calls(id: &str) -> Value {
    let call = json!({"type": "toolCall", "id": id, "name": "pay", "arguments": {}});
    json!({"role": "assistant", "content": [call]})
}

fn answers(id: &str, text: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "content": [{"type": "text", "text": text}]})
}

fn without(mut entry: Value, name: &str) -> Value {
    entry.as_object_mut().unwrap().remove(name);
    entry
}

/// Repairs a file; it is clean then, and one more repair changes nothing. What is sent, and what
/// was done.
fn repaired(file: &str) -> (Vec<Value>, Vec<FileActionKind>) {
    let mut session = SessionFile::read(file.as_bytes());
    let plan = session.plan(Repair::preserve());
    let done = plan.actions.iter().map(|action| action.action.clone()).collect();
    session.apply(plan).unwrap();
    let text = String::from_utf8(session.to_bytes()).unwrap();
    assert!(session.check().is_clean(), "{:?}\n{text}", session.check().findings);
    assert!(session.plan(Repair::preserve()).is_empty(), "{text}");
    let sent = session.transcript().unwrap();
    let sent = sent.messages().iter().map(|message| serde_json::from_str(message.raw()).unwrap());
    (sent.collect(), done)
}

#[test]
fn an_entry_that_lost_its_id_gets_one_before_a_result_is_linked_to_it() {
    let call = without(entry("", Some("a"), calls("c")), "id");
    let file = openclaw(
        3,
        &[entry("a", None, says("go")), call, entry("d", Some("lost"), says("did it work?"))],
    );
    let (sent, actions) = repaired(&file);
    assert_eq!(sent.len(), 4, "{sent:?}");
    assert_eq!(sent[2]["content"][0]["text"], OUTCOME_UNKNOWN);
    assert!(actions.contains(&FileActionKind::GiveId));

    let line = |kind: &str, message: Value| json!({"type": kind, "message": message});
    let call = json!({"type": "tool_use", "id": "c", "name": "pay", "input": {}});
    let mut lines = [
        line("user", says("go")),
        line("assistant", json!({"role": "assistant", "id": "m", "content": [call]})),
        line("user", says("did it work?")),
        line("user", says("well?")),
    ];
    (lines[0]["uuid"], lines[0]["parentUuid"]) = ("a".into(), Value::Null);
    lines[1]["parentUuid"] = "a".into();
    (lines[2]["uuid"], lines[2]["parentUuid"]) = ("d".into(), "lost".into());
    (lines[3]["uuid"], lines[3]["parentUuid"]) = ("e".into(), "d".into());
    let file: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (sent, actions) = repaired(&file);
    assert_eq!((sent.len(), &sent[2]["content"][0]["content"]), (3, &OUTCOME_UNKNOWN.into()));
    assert!(actions.contains(&FileActionKind::GiveId));
}

#[test]
fn of_two_entries_with_one_id_on_a_branch_one_gets_another() {
    let file = openclaw(
        3,
        &[
            entry("a", None, says("go")),
            entry("b", Some("a"), calls("c")),
            entry("b", Some("lost"), calls("d")),
            entry("e", Some("b"), says("did it work?")),
        ],
    );
    let (sent, actions) = repaired(&file);
    assert_eq!(sent.len(), 6, "{sent:?}");
    let given = actions.iter().filter(|action| **action == FileActionKind::GiveId).count();
    assert_eq!(given, 1, "{actions:?}");
}

#[test]
fn a_circle_of_links_is_found_and_opened() {
    let file = openclaw(
        3,
        &[
            entry("x", None, says("another branch")),
            entry("a", Some("b"), says("go")),
            entry("b", Some("a"), says("on")),
            without(entry("c", None, says("and on")), "parentId"),
        ],
    );
    let faults = SessionFile::read(file.as_bytes()).check().findings;
    let is_cycle = |found: &FileFinding| {
        found.fault == FileFault::ParentCycle && found.parent.as_deref() == Some("b")
    };
    assert!(faults.iter().any(is_cycle), "{faults:?}");
    let (sent, _) = repaired(&file);
    assert_eq!(sent.len(), 4, "{sent:?}");
}

/// The last entry of a file is where harnesses begin.
#[test]
fn a_branch_stays_the_active_one_when_its_last_entry_goes() {
    let id = "call_a7Bq3xYz9Kd0";
    let file = openclaw(
        3,
        &[
            entry("a", None, says("go")),
            entry("b", Some("a"), calls(id)),
            entry("d", Some("b"), answers(id, "paid")),
            entry("x", Some("a"), says("another branch")),
            entry("e", Some("d"), answers(id, "paid")),
        ],
    );
    let (sent, _) = repaired(&file);
    assert_eq!(sent, [says("go"), calls(id), answers(id, "paid")]);
}

#[test]
fn a_compaction_keeps_from_the_same_entry_on_when_that_one_goes() {
    let compaction = |kept: (&str, Value)| json!({"type": "compaction", "id": "k", "parentId": "f", "summary": "s", kept.0: kept.1});
    let entries = |kept: (&str, Value)| {
        [
            entry("a", None, says("go")),
            entry("b", Some("a"), calls("c")),
            entry("d", Some("b"), answers("c", "paid")),
            entry("e", Some("d"), answers("c", "paid")),
            entry("f", Some("e"), says("thanks")),
            compaction(kept),
            entry("g", Some("k"), says("more")),
        ]
    };
    // What is kept begins with the second result, which becomes text or goes.
    let linked = openclaw(3, &entries(("firstKeptEntryId", "e".into())));
    let (sent, _) = repaired(&linked);
    assert_eq!(sent.len(), 4, "{sent:?}");
    assert_eq!((&sent[2], &sent[3]), (&says("thanks"), &says("more")));

    let plain = entries(("firstKeptEntryIndex", 4.into()));
    let plain = plain.map(|entry| without(without(entry, "id"), "parentId"));
    let (sent, _) = repaired(&openclaw(1, &plain));
    assert_eq!((&sent[2], &sent[3]), (&says("thanks"), &says("more")));
}

/// Claude Code links each result of a step to its own use, beside the branch.
#[test]
fn a_result_beside_the_branch_is_still_seen_when_it_becomes_text() {
    let used = |id: &str, uuid: &str, parent: &str| {
        let call = json!({"type": "tool_use", "id": id, "name": "pay", "input": {}});
        let message = json!({"role": "assistant", "id": "m", "content": [call]});
        json!({"type": "assistant", "uuid": uuid, "parentUuid": parent, "message": message})
    };
    let result = |id: &str, text: &str, uuid: &str, parent: &str| {
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
        let message = json!({"role": "user", "content": [result]});
        json!({"type": "user", "uuid": uuid, "parentUuid": parent, "message": message})
    };
    let lines = [
        json!({"type": "user", "uuid": "a", "parentUuid": null, "message": says("go")}),
        used("c1", "b1", "a"),
        used("c2", "b2", "b1"),
        result("other", "paid once", "r1", "b1"),
        result("c2", "paid twice", "r2", "b2"),
        json!({"type": "user", "uuid": "d", "parentUuid": "r2", "message": says("thanks")}),
    ];
    let file: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (sent, _) = repaired(&file);
    let sent = Value::from(sent).to_string();
    for text in ["paid once", "paid twice", "thanks", OUTCOME_UNKNOWN] {
        assert_eq!(sent.matches(text).count(), 1, "{text}: {sent}");
    }
}

/// Where a line belongs is not certain, so neither is what a repair would make of the session.
#[test]
fn nothing_is_planned_by_guess() {
    let mut entries = vec![
        entry("a", None, says("go")),
        entry("b", Some("a"), says("one way")),
        entry("c", Some("a"), says("another way")),
        entry("f", Some("lost"), calls("c")),
        entry("g", Some("f"), says("which way?")),
    ];
    let end = openclaw(3, &entries).len();
    for size in [0, 200] {
        let before = |at: usize| if at == 0 { "g".to_owned() } else { format!("x{}", at - 1) };
        let said = |at: usize| entry(&format!("x{at}"), Some(&before(at)), says("…"));
        entries.truncate(5);
        entries.extend((0..size).map(said));
        let file = openclaw(3, &entries);
        for whole_up_to in [usize::MAX, end] {
            let planner = FilePlanner::new(Repair::preserve()).whole_up_to(whole_up_to);
            let plan = planner.plan(file.as_bytes(), |_| {});
            assert!(plan.is_empty() && plan.after.is_none(), "{:?}", plan.actions);
            assert_eq!(plan.unsure_place, Some(5));
        }
        let mut session = SessionFile::read(file.as_bytes());
        let plan = session.plan(Repair::preserve());
        session.apply(plan).unwrap();
        assert_eq!(session.to_bytes(), file.as_bytes());
    }
}

/// A session without a finding stays as it is, whatever its size.
#[test]
fn a_kept_entry_whose_id_repeats_is_not_renamed() {
    let compaction = json!({
        "type": "compaction", "id": "b", "parentId": "a", "firstKeptEntryId": "a", "summary": "…",
    });
    let go = entry("a", None, says("go"));
    let file = openclaw(3, &[go.clone(), go, compaction, entry("c", Some("b"), says("more"))]);
    assert!(SessionFile::read(file.as_bytes()).check().is_clean());
    for whole_up_to in [usize::MAX, 0] {
        let planner = FilePlanner::new(Repair::preserve()).whole_up_to(whole_up_to);
        let plan = planner.plan(file.as_bytes(), |_| {});
        assert!(plan.is_empty() && plan.after.is_none(), "{:?}", plan.actions);
    }
}

/// A file that is looked at in parts is repaired as it is as a whole, message by message.
#[test]
fn a_branch_that_begins_in_the_middle_is_counted_from_there() {
    let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "done"}]});
    let file = openclaw(
        3,
        &[
            entry("a", None, says("go")),
            entry("b", Some("a"), answer.clone()),
            entry("c", Some("b"), says("more")),
            entry("d", Some("c"), answer),
            // The line before these is lost, and they are swapped.
            entry("f", Some("e"), says("did it work?")),
            entry("e", Some("lost"), calls("c")),
            entry("g", Some("f"), says("well?")),
        ],
    );
    let planner = |whole_up_to| FilePlanner::new(Repair::preserve()).whole_up_to(whole_up_to);
    let plan = |whole_up_to| planner(whole_up_to).plan(file.as_bytes(), |_| {});
    let (whole, parts) = (plan(usize::MAX), plan(0));
    assert!(!whole.is_empty() && whole.unsure_place.is_none());
    assert_eq!((whole.actions, whole.after), (parts.actions, parts.after));
}
