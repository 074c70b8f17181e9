//! Tools that the provider runs itself: their results stand in the turn of their uses.
use tr_transcript::{Fault, Finding, Format, Transcript, Validator};

/// By the provider's page on stop reasons: the result may come after those of other tools.
#[test]
fn a_tool_of_the_providers_has_its_result_before_the_turn_ends() {
    let used = |kind: &str, name: &str, more: &str| {
        format!(r#"{{"type":"{kind}","id":"srvtoolu_1","name":"{name}","input":{{}}{more}}}"#)
    };
    let says = |role: &str, block: &str| format!(r#"{{"role":"{role}","content":[{block}]}}"#);
    let text = r#"{"type":"text","text":"so"}"#;
    let call = r#"{"type":"tool_use","id":"toolu_1","name":"read","input":{}}"#;
    let read = r#"{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}"#;
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;
    let search = used("server_tool_use", "web_search", "");
    let found_in = |messages: &[String]| {
        let text = format!("[{}]", messages.join(","));
        let transcript = Transcript::read_as(Format::AnthropicMessages, &text).unwrap();
        let findings = Validator::with_members_of(&transcript).findings().to_vec();
        let faults: Vec<_> = findings.iter().map(|it| (it.fault, it.message_index)).collect();
        assert!(Validator::of(&transcript).is_valid(), "a session in use is not blocked");
        (faults, findings.first().and_then(Finding::provider_error))
    };
    let (go, both) = (says("user", text), format!("{search},{call}"));
    let healthy = [
        vec![go.clone(), says("assistant", &format!("{search},{found},{text}")), go.clone()],
        // A turn that was paused goes on.
        vec![go.clone(), says("assistant", &search)],
        vec![go.clone(), says("assistant", &search), says("assistant", found), go.clone()],
        vec![go.clone(), says("assistant", &both), says("user", read)],
        vec![go.clone(), says("assistant", &both), says("user", read), says("assistant", found)],
    ];
    for messages in healthy {
        assert_eq!(found_in(&messages).0, [], "{messages:?}");
    }
    let error = "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a \
                 corresponding `web_search_tool_result` block";
    let refused = [
        vec![go.clone(), says("assistant", &search), go.clone()],
        vec![go.clone(), says("assistant", &both), says("user", &format!("{read},{text}"))],
        vec![go.clone(), says("assistant", &both), says("user", read), go.clone()],
    ];
    for messages in refused {
        let expected = (vec![(Fault::UnansweredServerUse, 1)], Some(error.to_owned()));
        assert_eq!(found_in(&messages), expected, "{messages:?}");
    }
    let by_code = r#","caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_0"}"#;
    for open in [
        used("mcp_tool_use", "echo", ""),
        used("server_tool_use", "code_execution", ""),
        used("server_tool_use", "web_search", by_code),
    ] {
        let expected = (vec![(Fault::OpenServerUse, 1)], None);
        assert_eq!(found_in(&[go.clone(), says("assistant", &open), go.clone()]), expected);
    }
}
