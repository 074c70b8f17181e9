//! All forms: detection, and what is written.
use super::*;
use crate::transcript::Transcript;

#[test]
fn forms_are_told_apart_by_content() {
    let anthropic = [
        r#"[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}}]}]"#,
        r#"{"system":"be kind","messages":[{"role":"user","content":"hi"}]}"#,
        r#"[{"role":"user","content":"hi"},{"role":"system","content":"be quick"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}}]}]"#,
        r#"{"messages":[{"role":"user","content":"hi"},{"role":"system","content":"be quick"}],"tools":[{"name":"x","input_schema":{}}]}"#,
        r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]}]"#,
    ];
    let openai = [
        r#"[{"role":"system","content":"be kind"},{"role":"user","content":"hi"}]"#,
        r#"{"messages":[{"role":"assistant","content":null,"tool_calls":[]}]}"#,
        r#"[{"role":"tool","tool_call_id":"a","content":"x"}]"#,
        r#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"x"}}]}"#,
    ];
    let system = r#"[{"role":"user","content":"hi"},{"role":"system","content":"be quick"}]"#;
    let plain = [system, r#"[{"role":"user","content":"hi"}]"#, "[]", "{}", "no json"];
    for text in anthropic {
        assert_eq!(Format::detect(text), Some(Format::AnthropicMessages), "{text}");
    }
    for text in openai {
        assert_eq!(Format::detect(text), Some(Format::OpenAiChat), "{text}");
    }
    for text in plain {
        assert_eq!(Format::detect(text), None, "{text}");
    }
}

#[test]
fn an_error_says_which_message() {
    let error = Transcript::read(r#"[{"role":"user","content":"hi"}, {"content":"?"}]"#);
    let error = error.unwrap_err();
    assert_eq!(error.message_index(), Some(1));
    assert_eq!(error.to_string(), "messages.1: a message without a role");
    assert!(Transcript::read("{}").is_err());
    assert!(Transcript::read("[{]").is_err());
}

#[test]
fn calls_are_taken_out_of_a_message_that_needs_content() {
    let call = r#"{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}"#;
    for (members, without) in [
        (format!(r#""content":null, "tool_calls" : [{call}]"#), r#""content":"""#),
        (format!(r#""tool_calls":[{call}],"content":"so""#), r#""content":"so""#),
        (
            format!(r#""content":"so","tool_calls":[{call}],"name":"n""#),
            r#""content":"so","name":"n""#,
        ),
        (format!(r#""tool_calls":[{call}]"#), r#""content":"""#),
    ] {
        let raw = format!(r#"{{"role":"assistant",{members}}}"#);
        let message = Format::OpenAiChat.read(raw).unwrap();
        let rewritten = Format::OpenAiChat.rewrite(&message, &[]).unwrap();
        assert_eq!(rewritten.raw(), format!(r#"{{"role":"assistant",{without}}}"#));
    }
    let raw = format!(r#"{{"tool_calls":[{call}],"content":null,"role":"assistant"}}"#);
    let message = Format::OpenAiChat.read(raw).unwrap();
    let rewritten = Format::OpenAiChat.rewrite(&message, &[]).unwrap();
    assert_eq!(rewritten.raw(), r#"{"content":"","role":"assistant"}"#);
}

#[test]
fn an_orphan_keeps_what_a_user_may_say() {
    let image = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}"#;
    let content = format!(r#"[{{"type":"text","text":""}},{image},{{"type":"odd","n":1}}]"#);
    let blocks = Format::AnthropicMessages.result_as_text("a", "b", "{}", Some(&content));
    assert_eq!(blocks.len(), 3);
    assert_eq!(blocks[1], image);
    assert_eq!(blocks[2], r#"{"type":"text","text":"{\"type\":\"odd\",\"n\":1}"}"#);
}

#[test]
fn openclaws_messages_are_paired_and_repaired_like_openais() {
    use crate::{repair::Repair, validate::Validator};
    let text = r#"[
      {"role":"user","content":"go","timestamp":1},
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"a","name":"pay","arguments":{}},{"type":"toolCall","id":"b","name":"pay","arguments":{}}]},
      {"role":"toolResult","toolCallId":"b","toolName":"pay","content":[{"type":"text","text":"paid"}],"isError":false},
      {"role":"user","content":"and?"}
    ]"#;
    assert_eq!(Format::detect(text), Some(Format::OpenClaw));
    let mut transcript = Transcript::read(text).unwrap();
    assert_eq!(transcript.to_json(), text);
    let validator = Validator::of(&transcript);
    assert_eq!(validator.result().incomplete_ids.unwrap(), [Box::<str>::from("a")]);
    let _ = Repair::preserve().plan(&transcript).apply(&mut transcript).unwrap();
    assert!(Validator::of(&transcript).findings().is_empty());
    let added = transcript.messages()[2].raw();
    assert!(added.contains(r#""toolCallId":"a","content":[{"type":"text""#), "{added}");
    assert!(added.contains(r#""isError":true"#), "{added}");

    let mut transcript = Transcript::read(text).unwrap();
    let _ = Repair::remove().plan(&transcript).apply(&mut transcript).unwrap();
    assert!(Validator::of(&transcript).findings().is_empty());
    assert!(!transcript.to_json().contains(r#""id":"a""#));
}
