//! What is not known of a message is neither judged nor lost.
use crate::common::{FORMATS, of, says, user};
use tr_transcript::{Fault, Format, Repair, SessionFile, Transcript, Validator};

const ALL: [Format; 5] = [FORMATS[0], FORMATS[1], FORMATS[2], FORMATS[3], Format::OpenClaw];

/// In the form's own spelling, whatever the content is.
fn with_content(format: Format, content: &str) -> String {
    let member = if format == Format::Gemini { "parts" } else { "content" };
    format!(r#"{{"role":"user","{member}":{content}}}"#)
}

fn faults(transcript: &Transcript) -> Vec<(usize, Fault)> {
    let validator = Validator::of(transcript);
    validator.findings().iter().map(|finding| (finding.message_index, finding.fault)).collect()
}

#[test]
fn a_content_of_another_shape_is_not_judged_and_stays() {
    let contents = [r#"{"type":"text","text":"Refund order 7"}"#, "42", "true"];
    for format in ALL {
        let own: &[&str] =
            if format == Format::Gemini { &[r#""Refund order 7""#, "{}"] } else { &[] };
        for content in contents.iter().chain(own) {
            let odd = with_content(format, content);
            let messages = of(format, &[user("hi"), says("yes?")]).to_json();
            let text = messages.replacen('[', &format!("[{odd},"), 1);
            let transcript = Transcript::read_as(format, &text).unwrap();
            assert_eq!(faults(&transcript), [(0, Fault::UnknownMessage)], "{format:?} {odd}");
            for repair in [Repair::preserve(), Repair::preserve().close_tail(), Repair::remove()] {
                assert!(repair.plan(&transcript).is_empty(), "{format:?} {odd}");
            }
        }
    }
}

/// A call before it gets its answer beside it, and not in it.
#[test]
fn an_answer_comes_before_a_content_of_another_shape() {
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t7","name":"refund","input":{}}]}"#;
    let odd = with_content(Format::AnthropicMessages, r#"{"type":"text","text":"and?"}"#);
    let text = format!("[{},{call},{odd},{}]", user("refund it"), user("well?"));
    let mut transcript = Transcript::read_as(Format::AnthropicMessages, &text).unwrap();
    let before = transcript.clone();
    let _ = Repair::preserve().plan(&transcript).apply(&mut transcript).unwrap();
    assert_eq!(before.first_changed_unknown(&transcript), None);
    assert_eq!(faults(&transcript), [(3, Fault::UnknownMessage)], "{}", transcript.to_json());
}

/// In lines, too, be they Claude Code's, OpenClaw's or plain ones.
#[test]
fn a_line_with_a_content_of_another_shape_stays() {
    let (hi, odd) = (r#""hi""#, r#"{"text":"Refund order 7"}"#);
    let claude = |id: &str, parent: &str, content: &str| {
        format!(
            r#"{{"type":"user","uuid":"{id}","parentUuid":{parent},"sessionId":"s","message":{{"role":"user","content":{content}}}}}"#
        )
    };
    let claw = |id: &str, parent: &str, content: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"t","message":{{"role":"user","content":{content}}}}}"#
        )
    };
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}"#.to_owned();
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t7","name":"refund","input":{}}]}"#;
    let plain = |content: &str| with_content(Format::AnthropicMessages, content);
    let files = [
        vec![claude("a", "null", hi), claude("b", r#""a""#, odd), claude("c", r#""b""#, hi)],
        vec![header, claw("a", "null", hi), claw("b", r#""a""#, odd), claw("c", r#""b""#, hi)],
        vec![plain(hi), call.to_owned(), plain(odd), plain(hi)],
    ];
    for lines in files {
        let mut file = SessionFile::read(format!("{}\n", lines.join("\n")).as_bytes());
        let is_told = file.check().findings.iter().any(|found| found.fault.is_not_judged());
        assert!(is_told, "{:?}", file.check());
        let plan = file.plan(Repair::preserve());
        assert_eq!(plan.changed_unknown, None);
        file.apply(plan).unwrap();
        let text = String::from_utf8(file.to_bytes()).unwrap();
        assert!(lines.iter().all(|line| text.contains(line)), "{text}");
    }
}

/// The form's result of a call that is not there, with more members.
fn orphan(format: Format, members: &str) -> String {
    let result = match format {
        Format::OpenAiChat => r#"{"role":"tool","tool_call_id":"lost7","content":"receipt 9","#,
        Format::OpenAiResponses => {
            r#"{"type":"function_call_output","call_id":"lost7","output":"receipt 9","#
        }
        Format::OpenClaw => {
            r#"{"role":"toolResult","toolCallId":"lost7","content":[{"type":"text","text":"receipt 9"}],"#
        }
        Format::Gemini => {
            r#"{"role":"user","parts":[{"functionResponse":{"id":"lost7","response":{"output":"receipt 9"},"#
        }
        _ => {
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"lost7","content":"receipt 9","#
        }
    };
    let end = match format {
        Format::Gemini => "}}]}",
        Format::AnthropicMessages => "}]}",
        _ => "}",
    };
    format!("{result}{members}{end}")
}

/// A session that ends with it, before and after its repair.
fn with_orphan(format: Format, members: &str) -> (Transcript, Transcript) {
    let mut before = of(format, &[user("hi"), says("yes?")]);
    before.push(format.read(orphan(format, members)).unwrap());
    let mut after = before.clone();
    let _ = Repair::preserve().plan(&before).apply(&mut after).unwrap();
    (before, after)
}

#[test]
fn an_orphan_with_members_that_are_not_known_is_not_rewritten() {
    for format in ALL {
        let (before, after) = with_orphan(format, r#""artifact":{"scan":[1,2]},"verdict":"late""#);
        assert_eq!(before.first_changed_unknown(&after), Some(2), "{format:?}");
    }
}

#[test]
fn the_text_of_an_orphan_keeps_what_its_members_say() {
    let known = [
        (Format::AnthropicMessages, r#""is_error":true"#, "[failed result of"),
        (Format::OpenAiChat, r#""name":"refund""#, "[name: refund]"),
        (
            Format::OpenAiResponses,
            r#""status":"incomplete","success":true"#,
            r"[status: incomplete]\n[success: true]",
        ),
        (
            Format::Gemini,
            r#""name":"refund","willContinue":true"#,
            r"[name: refund]\n[willContinue: true]",
        ),
        (
            Format::OpenClaw,
            r#""details":{"diff":"-a"},"toolName":"refund","isError":true,"timestamp":5"#,
            r#""details":{"diff":"-a"}"#,
        ),
    ];
    for (format, members, kept) in known {
        let (before, after) = with_orphan(format, members);
        assert_eq!(before.first_changed_unknown(&after), None, "{format:?}");
        let json = after.to_json();
        assert!(json.contains(kept) && json.contains("receipt 9"), "{json}");
        assert_eq!(faults(&after), [], "{json}");
        if format == Format::OpenClaw {
            let kept = [r#""toolName":"refund""#, r#""isError":true"#, r#""timestamp":5"#];
            assert!(kept.iter().all(|kept| json.contains(kept)), "{json}");
        }
    }
}

/// Its results move to their calls; what else it says stays where it was.
#[test]
fn a_message_whose_results_move_keeps_its_other_members() {
    let calls = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"a","input":{}},{"type":"tool_use","id":"t2","name":"b","input":{}}]}"#;
    let held = |id: &str, more: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"ok"}}]{more}}}"#
        )
    };
    let messages = [
        user("go"),
        calls.to_owned(),
        held("t1", ""),
        held("t2", r#","signed_by":"the owner""#),
        user("well?"),
    ];
    let before = of(Format::AnthropicMessages, &messages);
    let mut after = before.clone();
    let _ = Repair::preserve().plan(&before).apply(&mut after).unwrap();
    let json = after.to_json();
    assert!(json.contains(r#""signed_by":"the owner""#), "{json}");
    assert_eq!((faults(&after), before.first_changed_unknown(&after)), (vec![], None), "{json}");
    // Were it removed, that would be told.
    let mut short = after.clone();
    short.truncate(3);
    assert_eq!(before.first_changed_unknown(&short), Some(3));
}

#[test]
fn a_model_tells_the_form_where_messages_do_not() {
    let with = |model: &str, members: &str| {
        let text = format!(
            r#"{{"model":"{model}",{members}"messages":[{{"role":"user","content":""}},{{"role":"assistant","content":"x"}}]}}"#
        );
        Format::detect(&text)
    };
    for model in ["gpt-5-mini", "o1", "o3-mini", "o4-mini", "chatgpt-4o-latest", "openai/gpt-4.1"] {
        assert_eq!(with(model, ""), Some(Format::OpenAiChat), "{model}");
        assert_eq!(with(model, r#""system":"s","#), Some(Format::OpenAiChat), "{model}");
    }
    assert_eq!(with("claude-opus-4-1", ""), Some(Format::AnthropicMessages));
    let chat = r#""response_format":{"type":"text"},"#;
    assert_eq!(with("claude-opus-4-1", chat), Some(Format::AnthropicMessages));
    assert_eq!(with("anthropic/claude-opus-4.1", chat), Some(Format::OpenAiChat));
    for model in ["mistral-large", "anthropic/claude-opus-4.1"] {
        assert_eq!(with(model, ""), None, "{model}");
    }
    // Messages tell more than a model's name: proxies give it in the other form.
    let call =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"a","input":{}}]}"#;
    let text = format!(r#"{{"model":"gpt-5-mini","messages":[{call}]}}"#);
    assert_eq!(Format::detect(&text), Some(Format::AnthropicMessages));
    for member in ["tool_calls", "function_call", "audio", "refusal"] {
        let text = format!(r#"[{{"role":"assistant","content":"x","{member}":null}}]"#);
        assert_eq!(Format::detect(&text), Some(Format::OpenAiChat), "{member}");
    }
}

/// A list of millions takes no more room than its text, and none of it is lost.
#[test]
fn many_blocks_that_are_not_known_stay_as_they_are() {
    let odd = ["1", "{}", r#"{"type":"spell"}"#, "[2]"].map(|it| vec![it; 2_500].join(","));
    let odd = odd.join(",");
    for (format, call) in [
        (
            Format::AnthropicMessages,
            r#"{"role":"assistant","content":[CALL,ODD,{"type":"text","text":"so"}]}"#,
        ),
        (Format::OpenClaw, r#"{"role":"assistant","content":[CALL,ODD]}"#),
        (Format::Gemini, r#"{"role":"model","parts":[CALL,ODD]}"#),
    ] {
        let used = match format {
            Format::OpenClaw => r#"{"type":"toolCall","id":"t7","name":"pay","arguments":{}}"#,
            Format::Gemini => r#"{"functionCall":{"id":"t7","name":"pay","args":{}}}"#,
            _ => r#"{"type":"tool_use","id":"t7","name":"pay","input":{}}"#,
        };
        let call = call.replace("CALL", used).replace("ODD", &odd);
        let go = of(format, &[user("go")]).to_json();
        let go = go.trim_start_matches('[').trim_end_matches(']');
        let text = format!("[{go},{call},{go}]");
        let transcript = Transcript::read_as(format, &text).unwrap();
        let found = faults(&transcript);
        let lacks = found.iter().filter(|(_, fault)| *fault == Fault::IncompleteUse).count();
        assert!(lacks == 1 && found.len() <= 1_001, "{format:?} {}", found.len());
        for repair in [Repair::preserve(), Repair::remove()] {
            let mut mended = transcript.clone();
            let _ = repair.plan(&transcript).apply(&mut mended).unwrap();
            assert!(mended.to_json().contains(&odd), "{format:?}");
            assert!(faults(&mended).len() <= 1_000, "{format:?}");
            assert!(Validator::of(&mended).is_valid(), "{format:?}");
        }
    }
}
