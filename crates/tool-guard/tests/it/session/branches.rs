//! Files of Claude Code's and of OpenClaw's with several branches, and answers of several lines.
use super::folder::Folder;
use serde_json::{Value, json};

/// A line of an answer, or of the user's.
fn line(id: &str, parent: &str, answer: Option<&str>, content: &Value) -> Value {
    let role = if answer.is_some() { "assistant" } else { "user" };
    let mut message = json!({"role": role, "content": content});
    if let Some(answer) = answer {
        message["id"] = answer.into();
        message["model"] = "claude-opus-4-5".into();
    }
    let parent = (!parent.is_empty()).then_some(parent);
    json!({
        "parentUuid": parent, "isSidechain": false, "sessionId": "s", "version": "2.1.330",
        "type": role, "uuid": id, "timestamp": "2026-02-21T11:00:01.000Z", "message": message,
    })
}

fn pays(id: &str) -> Value {
    json!([{"type": "tool_use", "id": id, "name": "pay", "input": {}}])
}

fn paid(id: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": id, "content": format!("receipt {id}")}])
}

/// An answer with two calls, each on its line and answered behind it; the second's result first.
fn parallel() -> Vec<Value> {
    let thinking = json!([{"type": "thinking", "thinking": "hm", "signature": "Eo3c"}]);
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    vec![
        line("u", "", None, &json!("Pay both.")),
        line("t", "u", Some("m"), &thinking),
        line("x", "t", Some("m"), &text("I pay.")),
        line("a", "x", Some("m"), &pays("toolu_A")),
        line("b", "a", Some("m"), &pays("toolu_B")),
        line("rb", "b", None, &paid("toolu_B")),
        line("ra", "a", None, &paid("toolu_A")),
        line("d", "ra", Some("n"), &text("Done.")),
    ]
}

fn text_of(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The codes of `check` and `repair --write`, and what is in the file then.
fn checked(lines: &[Value]) -> (i32, i32, String) {
    let folder = Folder::with("s.jsonl", text_of(lines));
    let check = folder.session(&["check", "s.jsonl"]).code;
    let repair = folder.session(&["repair", "--write", "s.jsonl"]).code;
    (check, repair, folder.read("s.jsonl"))
}

#[test]
fn an_answer_with_two_calls_is_healthy_whichever_result_is_first() {
    let lines = parallel();
    assert_eq!(checked(&lines), (0, 0, text_of(&lines)));
    let mut lines = parallel();
    lines.swap(5, 6);
    (lines[6]["parentUuid"], lines[7]["parentUuid"]) = ("b".into(), "rb".into());
    assert_eq!(checked(&lines), (0, 0, text_of(&lines)));
}

#[test]
fn a_line_that_is_there_twice_is_one() {
    for twice in 1..5 {
        let mut lines = parallel();
        lines.insert(twice, lines[twice].clone());
        assert_eq!(checked(&lines), (0, 0, text_of(&lines)), "{twice}");
    }
    // One that says something else is another: which of them the agent reads is not known.
    let mut lines = parallel();
    lines.insert(4, line("b", "a", Some("m"), &pays("toolu_C")));
    assert_eq!(checked(&lines), (3, 3, text_of(&lines)));
}

#[test]
fn a_receipt_whose_call_is_lost_is_not_passed_over() {
    let mut lines = parallel();
    lines.remove(4);
    assert_eq!(checked(&lines), (3, 3, text_of(&lines)));
    let mut lines = parallel();
    lines.remove(4);
    lines.remove(4);
    assert_eq!(checked(&lines).0, 0, "without the receipt nothing tells of it");
}

/// Claude Code names in each line the one before it, and `null` in the first one.
#[test]
fn a_line_that_names_no_line_before_it_is_not_judged() {
    for free in 0..8 {
        let mut lines = parallel();
        lines[free].as_object_mut().unwrap().remove("parentUuid");
        assert_eq!(checked(&lines), (3, 3, text_of(&lines)), "{free}");
    }
    let mut lines = parallel();
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("parentUuid");
    }
    assert_eq!(checked(&lines), (3, 3, text_of(&lines)));
}

/// A line before it is lost: it continues one of two branches, it is not certain which.
#[test]
fn a_line_is_linked_to_no_branch_by_guess() {
    let says = |text: &str| json!([{"type": "text", "text": text}]);
    let mut lines = parallel();
    lines.push(line("o", "u", None, &json!("Another question.")));
    lines.push(line("p", "o", Some("k"), &says("Another answer.")));
    lines.push(line("q", "lost", Some("l"), &says("Which?")));
    assert_eq!(checked(&lines), (3, 3, text_of(&lines)));
    let why = Folder::with("s.jsonl", text_of(&lines)).json_of(3, &["check", "s.jsonl"]);
    assert_eq!(
        why[0]["reason"],
        "the position of line 11 in the session is uncertain: its parentUuid lost is missing, and \
         several branches end before it"
    );
    // With one branch it is, however many results are beside it.
    let mut lines = parallel();
    lines.push(line("q", "lost", None, &json!("Well?")));
    let (check, repair, text) = checked(&lines);
    assert_eq!((check, repair), (1, 0));
    assert!(text.contains("Well?") && !text.contains("lost"), "{text}");

    let entry = |id: &str, parent: Option<&str>, role: &str, text: &str| {
        let message = json!({
            "role": role, "content": [{"type": "text", "text": text}], "api": "anthropic-messages",
        });
        json!({"type": "message", "id": id, "parentId": parent, "message": message})
    };
    let mut lines = vec![
        json!({"type": "session", "version": 3, "id": "s", "cwd": "/w"}),
        entry("a", None, "user", "go"),
        entry("b", Some("a"), "assistant", "gone"),
        entry("c", Some("a"), "user", "go elsewhere"),
        entry("d", Some("c"), "assistant", "gone there"),
        entry("f", Some("e"), "user", "which way?"),
    ];
    assert_eq!(checked(&lines), (3, 3, text_of(&lines)));
    lines.drain(3..5);
    let (check, repair, _) = checked(&lines);
    assert_eq!((check, repair), (1, 0));
}

#[test]
fn a_missing_parent_and_a_circle_are_told_apart_with_the_parents_id() {
    let says = |id: &str, parent: &str| line(id, parent, None, &json!("Pay."));
    let fault = |lines: &[Value]| {
        let folder = Folder::with("s.jsonl", text_of(lines));
        let told = folder.json_of(1, &["check", "s.jsonl"]).remove(0);
        let found = told["findings"][0].clone();
        let shown = folder.session(&["check", "s.jsonl"]).out;
        assert!(shown.contains(found["what"].as_str().unwrap()), "{shown}");
        folder.ends(0, &["repair", "--write", "s.jsonl"]);
        [found["fault"].clone(), found["parent"].clone(), found["what"].clone()]
    };
    let missing = [says("a", ""), says("b", "a"), says("c", "1111"), says("d", "c")];
    let what = "Entry whose parent is missing: parentUuid 1111";
    assert_eq!(fault(&missing), ["phantom_parent", "1111", what]);
    let circle = [says("x", ""), says("a", "b"), says("b", "a"), says("c", "b")];
    let what = "Entry whose parent is one of its descendants: parentUuid b";
    assert_eq!(fault(&circle), ["parent_cycle", "b", what]);
}
