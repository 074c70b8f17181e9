//! Results that answer nothing, or are told apart by no id: what becomes of them.
use tr_transcript::{ActionKind, Format, Repair, Transcript, Validator};

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
    // Of a step that still waits for another result, the call is there, too, if the id is its own.
    let early = |id: &str| {
        let text = format!(
            r#"[{{"role":"user","content":"Pay."}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"receipt 1"}}]}},
            {{"role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"pay","input":{{}}}},
                {{"type":"tool_use","id":"t2","name":"pay","input":{{}}}}]}}]"#
        );
        repaired(Format::AnthropicMessages, &text).1
    };
    let text = early("toolu_01A09q90qw90lq917835lq9");
    let said = r"[result of a tool call: toolu_01A09q90qw90lq917835lq9]\nreceipt 1";
    assert!(text.contains(said), "{text}");
    let text = early("t1");
    let said = r"[result of a tool call, it is not known of which: t1]\nreceipt 1";
    assert!(text.contains(said), "{text}");
}

/// A counted id is that of a lost call as well as that of a later one.
#[test]
fn the_receipt_of_a_lost_call_is_no_answer_to_another() {
    let behind = r#",{"role":"user","content":"well?"}"#;
    let chat = |id: &str, behind: &str| {
        format!(
            r#"[{{"role":"user","content":"pay Ann"}},{{"role":"tool","tool_call_id":"{id}","content":"receipt ANN"}},
            {{"role":"assistant","content":"Ann is paid"}},{{"role":"user","content":"pay Bob"}},
            {{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"pay","arguments":"{{}}"}}}}]}}{behind}]"#
        )
    };
    let anthropic = |id: &str, behind: &str| {
        format!(
            r#"[{{"role":"user","content":"pay Ann"}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"receipt ANN"}}]}},
            {{"role":"assistant","content":"Ann is paid"}},{{"role":"user","content":"pay Bob"}},
            {{"role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"pay","input":{{}}}}]}}{behind}]"#
        )
    };
    let responses = |id: &str, behind: &str| {
        format!(
            r#"[{{"role":"user","content":"pay Ann"}},{{"type":"function_call_output","call_id":"{id}","output":"receipt ANN"}},
            {{"role":"assistant","content":"Ann is paid"}},{{"role":"user","content":"pay Bob"}},
            {{"type":"function_call","call_id":"{id}","name":"pay","arguments":"{{}}"}}{behind}]"#
        )
    };
    let gemini = |id: &str, behind: &str| {
        let behind = behind.replace(r#""content":"well?""#, r#""parts":[{"text":"well?"}]"#);
        format!(
            r#"[{{"role":"user","parts":[{{"text":"pay Ann"}}]}},{{"role":"user","parts":[{{"functionResponse":{{"id":"{id}","name":"pay","response":{{"r":"receipt ANN"}}}}}}]}},
            {{"role":"model","parts":[{{"text":"Ann is paid"}}]}},{{"role":"user","parts":[{{"text":"pay Bob"}}]}},
            {{"role":"model","parts":[{{"functionCall":{{"id":"{id}","name":"pay","args":{{}}}}}}]}}{behind}]"#
        )
    };
    type Says<'s> = &'s dyn Fn(&str, &str) -> String;
    let forms: [(Format, Says<'_>); 4] = [
        (Format::OpenAiChat, &chat),
        (Format::AnthropicMessages, &anthropic),
        (Format::OpenAiResponses, &responses),
        (Format::Gemini, &gemini),
    ];
    for (format, says) in forms {
        for behind in ["", behind] {
            let (actions, text) = repaired(format, &says("call_0", behind));
            assert!(actions.contains(&ActionKind::OrphanToText), "{text}");
            assert!(!actions.contains(&ActionKind::MoveResult), "{text}");
            assert!(text.contains("it is not known of which: call_0"), "{text}");
            // Whether it is Bob's is not known, so nor is it that his outcome is unknown.
            let before = Transcript::read_as(format, &says("call_0", behind)).unwrap();
            let after = Transcript::read_as(format, &text).unwrap();
            let doubtful = before.first_doubtful_answer(&after);
            assert_eq!(doubtful, (!behind.is_empty()).then_some(1), "{text}");
        }
        // No other call has a random id.
        let (actions, text) = repaired(format, &says("call_a7Bq3xYz9Kd0", behind));
        assert!(!actions.contains(&ActionKind::OrphanToText), "{text}");
    }
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
