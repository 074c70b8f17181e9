//! Calls without a result, of which another line of the file speaks: what it says may be the outcome.
use serde_json::{Value, json};
use tr_transcript::{FilePlanner, OUTCOME_UNKNOWN, Repair};

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// What the plan for a file, whole and in parts, says of another line.
fn named(file: &str) -> Option<(u64, String)> {
    let plans = [1 << 20, 1].map(|whole| {
        let planner = FilePlanner::new(Repair::preserve()).whole_up_to(whole);
        let plan = planner.plan(file.as_bytes(), |_| {});
        let after = String::from_utf8(plan.after.unwrap()).unwrap();
        assert!(after.contains(OUTCOME_UNKNOWN), "{after}");
        plan.named_elsewhere.map(|(line, id)| (line, id.into()))
    });
    let [whole, parts] = plans;
    assert_eq!(whole, parts, "{file}");
    whole
}

fn codex(beside: Value) -> String {
    let line =
        |kind: &str, payload: Value| json!({"timestamp": "t", "type": kind, "payload": payload});
    let says = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let call =
        json!({"type": "function_call", "name": "pay", "arguments": "{}", "call_id": "call_1"});
    lines(&[
        line("session_meta", json!({"id": "s", "cwd": "/"})),
        line("response_item", says("go")),
        line("response_item", call),
        beside,
        line("response_item", says("well?")),
    ])
}

#[test]
fn an_event_of_a_rollout_may_hold_the_outcome() {
    let event = |kind: &str, id: &str| {
        let payload = json!({"type": kind, "call_id": id, "result": {"Ok": {"content": "paid"}}});
        json!({"timestamp": "t", "type": "event_msg", "payload": payload})
    };
    let told = Some((4, "call_1".to_owned()));
    for kind in ["mcp_tool_call_end", "exec_command_end", "something_new"] {
        assert_eq!(named(&codex(event(kind, "call_1"))), told, "{kind}");
        assert_eq!(named(&codex(event(kind, "call_2"))), None, "{kind}");
    }
    // That a call has begun says nothing of its end.
    for kind in ["mcp_tool_call_begin", "exec_approval_request"] {
        assert_eq!(named(&codex(event(kind, "call_1"))), None, "{kind}");
    }
}

fn claude_code(beside: &[Value]) -> String {
    let line = |kind: &str, id: &str, parent: Value, message: Value| json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "message": message});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {}});
    let mut records = vec![
        line("user", "a", json!(null), json!({"role": "user", "content": "go"})),
        line("assistant", "b", json!("a"), json!({"role": "assistant", "content": [call]})),
    ];
    records.extend_from_slice(beside);
    let parent = beside.iter().rev().find_map(|it| Some(it["uuid"].as_str()?.to_owned()));
    let parent = parent.filter(|id| id != "x").unwrap_or_else(|| "b".into());
    let well = json!({"role": "user", "content": "well?"});
    records.push(line("user", "z", json!(parent), well));
    lines(&records)
}

#[test]
fn a_record_of_an_unknown_type_that_names_the_call_may_hold_the_outcome() {
    let told = Some((3, "toolu_1".to_owned()));
    let beside = |kind: &str| json!({"type": kind, "uuid": "c", "parentUuid": "b", "sessionId": "s", "toolUseID": "toolu_1", "data": {"type": "hook_progress"}});
    assert_eq!(named(&claude_code(&[beside("tool_outcome")])), told);
    assert_eq!(named(&claude_code(&[beside("progress")])), None);
    // A text that quotes the id is no member of its own.
    let quoted = json!({"type": "note", "uuid": "c", "parentUuid": "b", "sessionId": "s", "text": "it was \"toolu_1\""});
    assert_eq!(named(&claude_code(&[quoted])), None);
    // The same for many calls: they are looked for all at once.
    let many = |beside: &[Value]| {
        let header = json!({"type": "session", "version": 3, "id": "s", "cwd": "/"});
        let call = |n: u32| json!({"type": "toolCall", "id": format!("call_{n}"), "name": "pay", "arguments": {}});
        let calls: Vec<_> = (0..20).map(call).collect();
        let says = |id: &str, parent: &str, message: Value| json!({"type": "message", "id": id, "parentId": parent, "message": message});
        let mut records =
            vec![header, says("b", "a", json!({"role": "assistant", "content": calls}))];
        records.extend_from_slice(beside);
        records.push(says("d", "b", json!({"role": "user", "content": "well?"})));
        lines(&records)
    };
    let custom = json!({"type": "custom", "id": "c", "parentId": "b", "data": {"for": "call_17"}});
    assert_eq!(named(&many(&[custom])), Some((3, "call_17".to_owned())));
    assert_eq!(named(&many(&[])), None);
}

#[test]
fn a_result_aside_of_the_active_branch_is_an_outcome() {
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "paid"});
    let aside = json!({"type": "user", "uuid": "x", "parentUuid": "a", "sessionId": "s", "message": {"role": "user", "content": [result]}});
    assert_eq!(named(&claude_code(&[aside])), Some((3, "toolu_1".to_owned())));
}
