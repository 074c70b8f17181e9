//! Results that answer nothing, or are told apart by no id: what becomes of them.
use tr_integrity::{ActionKind, Format, Repair, Transcript, Validator};

/// Repairs a request; what comes of it is valid and stays so.
fn repaired(format: Format, text: &str) -> (Vec<ActionKind>, String) {
    let mut transcript = Transcript::read_as(format, text).unwrap();
    let result = Repair::preserve().plan(&transcript).apply(&mut transcript).unwrap();
    assert_eq!(Validator::of(&transcript).findings(), [], "{}", transcript.to_json());
    assert!(Repair::preserve().plan(&transcript).is_empty());
    (result.repairs.iter().map(|it| it.action).collect(), transcript.to_json())
}

#[test]
fn a_failed_result_stays_failed_as_text() {
    let result = |format, result: &str| {
        let text = format!(
            r#"[{{"role":"user","content":"Pay."}},{{"role":"assistant","content":[{{"type":"text","text":"Hm."}}]}},{result}]"#
        );
        repaired(format, &text).1
    };
    let anthropic = |rest: &str| {
        let block = format!(
            r#"{{"type":"tool_result","tool_use_id":"t7","content":"payment done"{rest}}}"#
        );
        let message = format!(r#"{{"role":"user","content":[{block}]}}"#);
        result(Format::AnthropicMessages, &message)
    };
    let openclaw = |error: bool| {
        let message = format!(
            r#"{{"role":"toolResult","toolCallId":"t7","toolName":"pay","content":[{{"type":"text","text":"payment done"}}],"isError":{error}}}"#
        );
        result(Format::OpenClaw, &message)
    };
    let responses = |rest: &str| {
        let item = format!(
            r#"[{{"type":"message","role":"user","content":"Pay."}},{{"type":"function_call_output","call_id":"t7","output":"payment done"{rest}}}]"#
        );
        repaired(Format::OpenAiResponses, &item).1
    };
    let failed = "[failed result of a tool call that is not in this session: t7]";
    for text in [
        anthropic(r#","is_error":true"#),
        openclaw(true),
        responses(r#","success":false"#),
        responses(r#","status":"incomplete""#),
    ] {
        assert!(text.contains(failed) && text.contains("payment done"), "{text}");
    }
    let succeeded = "[result of a tool call that is not in this session: t7]";
    for text in [
        anthropic(""),
        anthropic(r#","is_error":false"#),
        openclaw(false),
        responses(r#","success":true,"status":"completed""#),
    ] {
        assert!(text.contains(succeeded), "{text}");
    }
}

#[test]
fn a_second_result_is_told_as_a_further_one() {
    let (_, text) = repaired(
        Format::AnthropicMessages,
        r#"[{"role":"user","content":"Pay."},
        {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"pay","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"receipt 1"},
            {"type":"tool_result","tool_use_id":"t1","content":"timed out","is_error":true}]}]"#,
    );
    assert!(text.contains(r"[further failed result of a tool call: t1]\ntimed out"), "{text}");
    assert!(!text.contains("not in this session"), "{text}");
    // Of a step that still waits for another result, the call is there, too.
    let (_, text) = repaired(
        Format::AnthropicMessages,
        r#"[{"role":"user","content":"Pay."},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"receipt 1"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"pay","input":{}},
            {"type":"tool_use","id":"t2","name":"pay","input":{}}]}]"#,
    );
    assert!(text.contains(r"[result of a tool call: t1]\nreceipt 1"), "{text}");
}

#[test]
fn text_in_the_place_of_a_result_keeps_its_mark_for_the_cache() {
    let (_, text) = repaired(
        Format::AnthropicMessages,
        r#"[{"role":"user","content":"Pay."},{"role":"assistant","content":"Hm."},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t7",
            "content":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"cache_control":{"type":"ephemeral"}}]}]"#,
    );
    let marked = r#"{"cache_control":{"type":"ephemeral"},"type":"text","text":"two"}"#;
    assert!(text.contains(marked), "{text}");
    assert_eq!(text.matches("cache_control").count(), 1, "{text}");
}

const MARK: &str = r#""cache_control":{"type":"ephemeral"}"#;

/// Whatever a repair writes or keeps in the place of a marked block has its mark, once.
#[test]
fn what_takes_the_place_of_a_marked_block_keeps_its_mark_for_the_cache() {
    let ask = r#"{"role":"user","content":"Pay."}"#;
    let call =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"pay","input":{}}]}"#;
    let result = |content: &str, mark: &str| {
        format!(r#"{{"type":"tool_result","tool_use_id":"t1","content":"{content}"{mark}}}"#)
    };
    let (mark, unknown) = (format!(",{MARK}"), "outcome unknown, may have run");
    let user = |blocks: &[String]| format!(r#"{{"role":"user","content":[{}]}}"#, blocks.join(","));
    let damaged = format!(
        r#"{{"type":"tool_result","tool_use_id":"t7","content":[{{"type":"chart","data":[1]{mark}}}]}}"#
    );
    let cases = [
        // The real result comes home to the place of the made-up one.
        (vec![user(&[result(unknown, &mark)]), user(&[result("paid", "")])], "paid"),
        // Said twice, the second time with a mark: side by side, and elsewhere.
        (vec![user(&[result("paid", ""), result("paid", &mark)])], "paid"),
        (
            vec![
                user(&[result("paid", "")]),
                ask.into(),
                ask.into(),
                user(&[result("paid", &mark)]),
            ],
            "paid",
        ),
        // A part of an orphan's content that no user may send.
        (vec![user(&[result("paid", "")]), user(&[damaged])], "chart"),
    ];
    for (behind, says) in cases {
        let messages = [&[ask.to_owned(), call.to_owned()][..], &behind].concat().join(",");
        let (_, text) = repaired(Format::AnthropicMessages, &format!("[{messages}]"));
        assert_eq!(text.matches(MARK).count(), 1, "{text}");
        let marked = text.split('{').find(|object| object.starts_with(r#""cache_control"#));
        let has_mark = |block: &str| block.contains(MARK) && block.contains(says);
        assert!(marked.is_some() && text.split(r#"},{"#).any(has_mark), "{text}");
    }
}

#[test]
fn a_user_may_say_the_same_twice_under_one_item_id() {
    let said = r#"{"type":"message","id":"msg_1","role":"user","content":"yes"}"#;
    let asked = |id: u8| {
        format!(
            r#"{{"type":"message","id":"a_{id}","role":"assistant","content":[{{"type":"output_text","text":"Sure?"}}]}}"#
        )
    };
    let call = r#"{"type":"function_call","id":"fc_0a7b3c9d2","call_id":"c1","name":"pay","arguments":"{}"}"#;
    let output = r#"{"type":"function_call_output","call_id":"c1","output":"paid"}"#;
    let items = [&asked(1), said, call, call, output, &asked(2), said].join(",");
    let (actions, text) = repaired(Format::OpenAiResponses, &format!("[{items}]"));
    assert_eq!(actions, [ActionKind::RemoveDuplicate, ActionKind::UnlinkItem]);
    assert_eq!(text.matches(r#""content":"yes""#).count(), 2, "{text}");
    assert_eq!(text.matches("msg_1").count(), 1, "{text}");
    assert_eq!(text.matches("fc_0a7b3c9d2").count(), 1, "{text}");
}

#[test]
fn a_finding_says_that_there_is_no_id_and_blames_no_user_for_the_model() {
    let found = |format, text: &str| {
        let transcript = Transcript::read_as(format, text).unwrap();
        let findings = Validator::of(&transcript).findings().to_vec();
        findings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let call = r#"{"id":"c1","type":"function","function":{"name":"pay","arguments":"{}"}}"#;
    let chat = format!(
        r#"[{{"role":"assistant","content":null,"tool_calls":[{call}]}},{{"role":"tool","content":"paid"}}]"#
    );
    assert_eq!(found(Format::OpenAiChat, &chat), ["Orphaned tool_result: (without an id)"]);
    let empty = r#"[{"role":"user","parts":[{"text":"Pay."}]},{"role":"model","parts":[]}]"#;
    assert_eq!(found(Format::Gemini, empty), ["Message without content"]);
}
