//! Sessions that providers take and refuse, in both forms.

use crate::common::{
    self, FORMATS, anthropic, message, of, openai, result_block, results, step, tool, user, uses,
};
use serde_json::json;
use tr_integrity::{
    Fault, Finding, Format, Repair, Severity, Transcript, ValidationResult, Validator,
};

fn validate(transcript: &Transcript) -> ValidationResult {
    Validator::of(transcript).result()
}

fn faults(transcript: &Transcript) -> Vec<Fault> {
    Validator::of(transcript).findings().iter().map(|finding| finding.fault).collect()
}

fn result(json: serde_json::Value) -> ValidationResult {
    serde_json::from_value(json).unwrap()
}

fn valid() -> ValidationResult {
    result(json!({"valid": true}))
}

#[test]
fn si_01_valid_session_without_tools() {
    for format in FORMATS {
        assert_eq!(validate(&of(format, &[user("hi"), common::says("hello")])), valid());
        assert_eq!(validate(&Transcript::new(format)), valid());
    }
}

#[test]
fn si_02_valid_session_with_pairs() {
    for format in FORMATS {
        let mut messages = vec![user("go")];
        messages.extend(step(format, &["a", "b"]));
        // Parallel results in another order than their calls.
        messages.extend(results(format, &[("b", "2"), ("a", "1")]));
        messages.push(uses(format, &["c"]));
        messages.extend(results(format, &[("c", "3")]));
        messages.push(user("and now?"));
        assert_eq!(validate(&of(format, &messages)), valid());
    }
}

#[test]
fn si_02_texts_may_follow_results() {
    let both = format!(
        r#"{{"role":"user","content":[{},{{"type":"text","text":"and?"}}]}}"#,
        result_block("a", "1")
    );
    let use_a = uses(Format::AnthropicMessages, &["a"]);
    assert_eq!(validate(&anthropic(&[&use_a, &both])), valid());
}

#[test]
fn si_03_orphaned_tool_result() {
    for format in FORMATS {
        let mut messages = vec![uses(format, &["a"])];
        messages.extend(results(format, &[("a", "1"), ("ghost", "2")]));
        let error = "Orphaned tool_result: ghost";
        let expected = json!({"valid": false, "error": error, "orphanedIds": ["ghost"]});
        assert_eq!(validate(&of(format, &messages)), result(expected));
    }
}

#[test]
fn si_03_result_without_an_assistant_message_before_it() {
    // In a form of items, the message before it says nothing: its id does.
    for format in [Format::AnthropicMessages, Format::OpenAiChat] {
        let mut messages = vec![user("hi")];
        messages.extend(results(format, &[("a", "1")]));
        let result = validate(&of(format, &messages));
        assert_eq!(
            result.error.as_deref(),
            Some("tool_result without preceding assistant message")
        );
        assert_eq!(result.orphaned_ids, None);
    }
}

#[test]
fn si_04_incomplete_tool_use() {
    for format in FORMATS {
        let mut messages = step(format, &["a", "b"]);
        messages.extend(results(format, &[("a", "1")]));
        messages.push(user("go on"));
        let error = "Incomplete tool_use: b";
        let expected = json!({"valid": false, "error": error, "incompleteIds": ["b"]});
        assert_eq!(validate(&of(format, &messages)), result(expected));
    }
}

#[test]
fn si_04_use_that_no_user_message_follows() {
    let format = Format::AnthropicMessages;
    let result = validate(&of(format, &[uses(format, &["a"]), common::says("hm")]));
    assert_eq!(result.error.as_deref(), Some("tool_use without following user message"));
    assert_eq!(result.incomplete_ids, None);
}

#[test]
fn si_04_a_live_tail_waits() {
    for format in FORMATS {
        let messages = [vec![user("go")], step(format, &["a", "b"])].concat();
        let validator = Validator::of(&of(format, &messages));
        assert!(validator.is_valid());
        assert_eq!(validator.pending().collect::<Vec<_>>(), ["a", "b"]);
    }
    // Results are messages in this form: they may come one by one.
    let partial = [uses(Format::OpenAiChat, &["a", "b"]), tool("b", "2")];
    let validator = Validator::of(&of(Format::OpenAiChat, &partial));
    assert!(validator.is_valid());
    assert_eq!(validator.pending().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn si_05_duplicate_ids_are_an_error_where_they_are_refused() {
    for format in FORMATS {
        let mut messages = vec![user("go")];
        for _ in 0..2 {
            messages.push(uses(format, &["functions.read:0"]));
            messages.extend(results(format, &[("functions.read:0", "1")]));
        }
        let validator = Validator::of(&of(format, &messages));
        let [finding] = validator.findings() else { panic!("{:?}", validator.findings()) };
        assert_eq!(finding.fault, Fault::DuplicateId);
        assert_eq!(finding.to_string(), "Duplicate tool_use id: functions.read:0");
        if format == Format::AnthropicMessages {
            assert_eq!(finding.severity, Severity::Error);
            let error = validator.result().error;
            assert_eq!(error.as_deref(), Some("Duplicate tool_use id: functions.read:0"));
            assert_eq!((finding.message_index, finding.block_index), (3, Some(1)));
        } else {
            assert_eq!(finding.severity, Severity::Warning);
            assert_eq!((validator.result(), finding.provider_error()), (valid(), None));
        }
    }
}

#[test]
fn repeated_ids_in_one_step_pair_by_occurrence() {
    let calls = uses(Format::OpenAiChat, &["a", "a"]);
    let (first, second) = (tool("a", "1"), tool("a", "2"));
    let validator = Validator::of(&openai(&[&calls, &first, &second, &user("so")]));
    assert!(validator.is_valid());
    let validator = Validator::of(&openai(&[&calls, &first, &user("so")]));
    assert_eq!(validator.result().error.as_deref(), Some("Incomplete tool_use: a"));
}

#[test]
fn rule_one_comes_before_rule_two() {
    let format = Format::AnthropicMessages;
    let mut messages = vec![uses(format, &["a"]), user("no result"), uses(format, &["b"])];
    messages.extend(results(format, &[("b", "2"), ("x", "3")]));
    let result = validate(&of(format, &messages));
    assert_eq!(result.error.as_deref(), Some("Orphaned tool_result: x"));
    assert_eq!(result.incomplete_ids, Some(vec!["a".into()]));
}

#[test]
fn what_anthropic_says() {
    let format = Format::AnthropicMessages;
    let answered = |blocks: &str| {
        let answer = format!(r#"{{"role":"user","content":[{blocks}]}}"#);
        of(format, &[uses(format, &["a"]), answer])
    };
    let text = r#"{"type":"text","text":"x"}"#;
    let (a, x) = (result_block("a", "1"), result_block("x", "1"));
    let alone = |content: &str| of(format, &[format!(r#"{{"role":"user","content":{content}}}"#)]);
    let cases = [
        (
            of(format, &[uses(format, &["a"]), user("hm")]),
            Fault::IncompleteUse,
            "messages.0: `tool_use` ids were found without `tool_result` blocks immediately after: \
             a. Each `tool_use` block must have a corresponding `tool_result` block in the next \
             message.",
        ),
        (
            answered(&format!("{a},{x}")),
            Fault::OrphanedResult,
            "messages.1.content.1: unexpected `tool_use_id` found in `tool_result` blocks: x. Each \
             `tool_result` block must have a corresponding `tool_use` block in the previous \
             message.",
        ),
        (
            answered(&format!("{a},{a}")),
            Fault::SeveralResults,
            "messages.1.content.1: each tool_use must have a single result. Found multiple \
             `tool_result` blocks with id: a",
        ),
        (
            answered(&format!("{text},{a}")),
            Fault::ResultAfterContent,
            "messages.0: `tool_use` ids were found without `tool_result` blocks immediately after: \
             a. Each `tool_use` block must have a corresponding `tool_result` block in the next \
             message.",
        ),
        (
            alone(r#"[{"type":"text","text":""},{"type":"text","text":"x"}]"#),
            Fault::EmptyText,
            "messages: text content blocks must be non-empty",
        ),
        (
            alone(r#"" \n""#),
            Fault::BlankMessage,
            "messages: text content blocks must contain non-whitespace text",
        ),
        (alone("[]"), Fault::EmptyMessage, "messages.0: user messages must have non-empty content"),
    ];
    for (transcript, fault, error) in cases {
        let validator = Validator::of(&transcript);
        let [finding] = validator.findings() else { panic!("{:?}", validator.findings()) };
        assert_eq!((finding.fault, finding.provider_error().as_deref()), (fault, Some(error)));
    }
    // White space beside other content is taken.
    let beside = r#"[{"type":"text","text":" "},{"type":"text","text":"x"}]"#;
    assert_eq!(faults(&alone(beside)), []);
}

#[test]
fn a_block_that_cannot_be_read_is_told_and_left_alone() {
    let twice = r#""id":"a","id":"b""#;
    let sessions = [
        (
            Format::AnthropicMessages,
            format!(r#"{{"role":"assistant","content":[{{"type":"tool_use",{twice}}}]}}"#),
        ),
        (Format::OpenAiChat, format!(r#"{{"role":"assistant","tool_calls":[{{{twice}}}]}}"#)),
        (Format::Gemini, format!(r#"{{"role":"model","parts":[{{"functionCall":{{{twice}}}}}]}}"#)),
        (Format::Gemini, r#"{"role":"user","parts":["hi"]}"#.to_owned()),
    ];
    for (format, raw) in sessions {
        let transcript = of(format, &[raw]);
        let validator = Validator::of(&transcript);
        let [finding] = validator.findings() else { panic!("{:?}", validator.findings()) };
        assert_eq!((finding.fault, finding.block_index), (Fault::UnreadBlock, Some(0)));
        assert!(validator.is_valid() && finding.provider_error().is_none());
        assert!(Repair::preserve().close_tail().plan(&transcript).is_empty());
    }
}

#[test]
fn what_openai_says() {
    let format = Format::OpenAiChat;
    let errors = |messages: &[String]| -> Vec<_> {
        let validator = Validator::of(&of(format, messages));
        validator.findings().iter().filter_map(Finding::provider_error).collect()
    };
    assert_eq!(
        errors(&[uses(format, &["a", "b"]), tool("a", "1"), user("hm")]),
        ["An assistant message with 'tool_calls' must be followed by tool messages responding to \
          each 'tool_call_id'. The following tool_call_ids did not have response messages: b"]
    );
    assert_eq!(
        errors(&[user("hm"), tool("a", "1")]),
        ["messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."]
    );
    // Twice the same answer is taken, and said.
    let twice = [uses(format, &["a"]), tool("a", "1"), tool("a", "1")];
    assert_eq!(faults(&of(format, &twice)), [Fault::SeveralResults]);
    assert_eq!(errors(&twice), [""; 0]);
}

/// An append looks at its own message only, so the same findings come however it is cut.
#[test]
fn validation_is_incremental() {
    for format in FORMATS {
        let mut messages = step(format, &["a", "b"]);
        messages.extend(results(format, &[("a", "1")]));
        messages.extend([user("hm"), uses(format, &["a"])]);
        let whole = Validator::of(&of(format, &messages));
        let mut step_by_step = Validator::new(format);
        for raw in messages {
            step_by_step.push(&message(format, raw));
        }
        assert_eq!(step_by_step.findings(), whole.findings());
        assert!(!whole.is_valid());
        assert_eq!(step_by_step.pending().collect::<Vec<_>>(), ["a"]);
    }
}
