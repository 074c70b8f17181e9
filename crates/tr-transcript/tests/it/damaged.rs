//! Uses that lost their ids, and results whose content is damaged.
use crate::common::{FORMATS, anthropic, of, results, says, step, user};
use tr_transcript::{
    ActionKind, Fault, Finding, Format, LossKind, OUTCOME_UNKNOWN, Repair, SessionFile, Transcript,
    Validator,
};

/// The members that hold ids.
const IDS: [&str; 5] = ["id", "tool_use_id", "tool_call_id", "call_id", "toolCallId"];

/// `raw` with `to` in the place of the member that says `id`.
fn with_id(raw: &str, id: &str, to: impl Fn(&str) -> String) -> String {
    IDS.iter().fold(raw.to_owned(), |raw, name| {
        raw.replace(&format!(r#""{name}":"{id}","#), &to(&format!(r#""{name}""#)))
    })
}

fn without_id(raw: &str) -> String {
    with_id(raw, "a", |_| String::new())
}

/// A step of which the second use, and its result, lost the id.
fn lost(format: Format, to: impl Fn(&str) -> String) -> Transcript {
    let mut messages = vec![user("go")];
    messages.extend(step(format, &["b", "a"]));
    messages.extend(results(format, &[("b", "one"), ("a", "two")]));
    messages.push(says("done"));
    let messages: Vec<_> = messages.iter().map(|raw| with_id(raw, "a", &to)).collect();
    of(format, &messages)
}

fn repaired(transcript: &mut Transcript) -> (Vec<ActionKind>, Vec<LossKind>) {
    let plan = Repair::preserve().plan(transcript);
    let done = plan.actions().iter().map(|action| action.action).collect();
    let losses = plan.losses().iter().map(|loss| loss.what).collect();
    let _ = plan.apply(transcript).unwrap();
    let validator = Validator::of(transcript);
    assert!(validator.is_valid(), "{:?}\n{}", validator.findings(), transcript.to_json());
    assert!(Repair::preserve().plan(transcript).is_empty(), "{}", transcript.to_json());
    (done, losses)
}

#[test]
fn a_use_that_lost_its_id_gets_one_with_its_result() {
    let spellings: [fn(&str) -> String; 4] = [
        |_| String::new(),
        |name| format!("{name}:null,"),
        |name| format!(r#"{name}:"","#),
        |name| format!("{name}:7,"),
    ];
    for format in FORMATS.into_iter().filter(|format| *format != Format::Gemini) {
        for spelling in spellings {
            let mut transcript = lost(format, spelling);
            let validator = Validator::of(&transcript);
            let [finding] = validator.findings() else { panic!("{:?}", validator.findings()) };
            assert_eq!((finding.fault, finding.fault.rule()), (Fault::MissingId, 0));
            assert_eq!(repaired(&mut transcript), (vec![ActionKind::RenameId; 2], vec![]));
            let json = transcript.to_json();
            assert_eq!(json.matches(r#":"call_r1""#).count(), 2, "{json}");
            assert!(json.contains("two") && !json.contains(OUTCOME_UNKNOWN));
            // Only the ids are other than they were.
            let named = with_id(&json, "call_r1", |name| format!(r#"{name}:"a","#));
            let whole = lost(format, |name| format!(r#"{name}:"a","#));
            let sorted = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
            assert_eq!(sorted(&named), sorted(&whole.to_json()));
        }
    }
}

#[test]
fn what_providers_say_of_an_id_that_is_not_there() {
    let error = |format, to: fn(&str) -> String| {
        let transcript = lost(format, to);
        Validator::of(&transcript).findings().first().and_then(Finding::provider_error).unwrap()
    };
    let absent: fn(&str) -> String = |_| String::new();
    let empty: fn(&str) -> String = |name| format!(r#"{name}:"","#);
    let expected = [
        (
            Format::AnthropicMessages,
            "messages.1.content.2.tool_use.id: Field required",
            "messages.1.content.2.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ),
        (
            Format::OpenAiChat,
            "Missing required parameter: 'messages[1].tool_calls[1].id'.",
            "Invalid 'messages[1].tool_calls[1].id': empty string. Expected a string with minimum \
             length 1, but got an empty string instead.",
        ),
        (
            Format::OpenAiResponses,
            "Missing required parameter: 'input[2].call_id'.",
            "Invalid 'input[2].call_id': empty string. Expected a string with minimum length 1, \
             but got an empty string instead.",
        ),
    ];
    for (format, of_absent, of_empty) in expected {
        assert_eq!(error(format, absent), of_absent);
        assert_eq!(error(format, empty), of_empty);
    }
    // There names pair.
    assert!(Validator::of(&lost(Format::Gemini, absent)).findings().is_empty());
}

/// The new name is taken by no other use, and the other way round.
#[test]
fn a_new_id_is_nobody_elses() {
    for format in FORMATS.into_iter().filter(|format| *format != Format::Gemini) {
        let mut messages = vec![user("go")];
        for ids in [["a", "call_r1"], ["a", "a"]] {
            messages.extend(step(format, &ids));
            messages.extend(results(format, &ids.map(|id| (id, "said"))));
        }
        let messages: Vec<_> = messages.iter().map(|raw| without_id(raw)).collect();
        let mut transcript = of(format, &messages);
        assert_eq!(repaired(&mut transcript).0, [ActionKind::RenameId; 6]);
        let json = transcript.to_json();
        for id in ["call_r1", "call_r2", "call_r3", "call_r4"] {
            assert_eq!(json.matches(&format!(r#":"{id}""#)).count(), 2, "{id} {json}");
        }
    }
}

/// The lines keep all else that they have.
#[test]
fn in_a_file_only_the_ids_change() {
    let files = [
        r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}
{"type":"message","id":"a","parentId":null,"message":{"role":"assistant","content":[{"type":"toolCall","NAME":"ID","name":"pay","arguments":{}}],"usage":{"input":3}}}
{"type":"message","id":"b","parentId":"a","message":{"role":"toolResult","RESULT":"ID","toolName":"pay","content":[{"type":"text","text":"paid"}],"timestamp":7}}
"#
        .replace("NAME", "id")
        .replace("RESULT", "toolCallId"),
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"ID","type":"function","function":{"name":"pay","arguments":"{}"}}],"x":1}
{"role":"tool","tool_call_id":"ID","content":"paid","y":2}
"#
        .to_owned(),
        r#"{"type":"assistant","uuid":"a","parentUuid":null,"message":{"role":"assistant","content":[{"type":"tool_use","id":"ID","name":"pay","input":{}}]},"x":1}
{"type":"user","uuid":"b","parentUuid":"a","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","content":"paid"}]},"toolUseResult":"paid"}
"#
        .to_owned(),
    ];
    for file in files {
        let mut session = SessionFile::read(file.replace("ID", "").into_bytes());
        let report = session.check();
        assert_eq!((report.found, report.errors), (1, 1), "{:?}", report.findings);
        let plan = session.plan(Repair::preserve());
        session.apply(plan).unwrap();
        assert_eq!(String::from_utf8(session.to_bytes()).unwrap(), file.replace("ID", "call_r1"));
        assert!(session.check().is_clean());
    }
}

#[test]
fn damaged_content_of_an_orphan_stays_word_for_word() {
    let text = |members: &str| format!(r#"[{{"type":"text",{members}}}]"#);
    let contents = [
        r#""contnt":"receipt 7""#.to_owned(),
        r#""is_error":false,"contnt":["receipt 7"]"#.to_owned(),
        format!(r#""content":{}"#, text(r#""text":null,"txt":"receipt 7""#)),
        format!(r#""content":{}"#, text(r#""txt":"receipt 7""#)),
        format!(r#""content":{}"#, text(r#""text":["receipt 7"]"#)),
        format!(r#""content":{}"#, text(r#""text":"a","text":"receipt 7""#)),
        r#""content":["receipt 7"]"#.to_owned(),
        r#""content":{"text":"receipt 7"}"#.to_owned(),
        r#""content":"receipt 7 \ud800""#.to_owned(),
    ];
    for content in contents {
        let orphan = format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t",{content}}}]}}"#
        );
        let mut transcript = anthropic(&[&user("hm"), &orphan]);
        let (done, losses) = repaired(&mut transcript);
        assert_eq!((done, losses), (vec![ActionKind::OrphanToText], vec![LossKind::Link]));
        let json = transcript.to_json();
        assert!(json.contains("receipt 7"), "{content}\n{json}");
        // What the model is sent is text, and nothing but text.
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let blocks = value[1]["content"].as_array().unwrap();
        assert!(blocks.iter().all(|block| block["text"].is_string()), "{json}");
    }
}

/// In the forms where a result is a message, or a part, or an item.
#[test]
fn damaged_orphans_of_all_forms_keep_what_they_say() {
    let orphans = [
        (Format::OpenAiChat, r#"{"role":"tool","tool_call_id":"t","contnt":"receipt 7"}"#),
        (
            Format::OpenAiResponses,
            r#"{"type":"function_call_output","call_id":"t","ouput":"receipt 7"}"#,
        ),
        (
            Format::OpenAiResponses,
            r#"{"type":"computer_call_output","call_id":"t","output":{"image_url":null,"txt":"receipt 7"}}"#,
        ),
        (
            Format::Gemini,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"t","response":{"output":"-"},"parts":"receipt 7"}}]}"#,
        ),
        (
            Format::Gemini,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"t","respnse":"receipt 7"}}]}"#,
        ),
    ];
    for (format, orphan) in orphans {
        let mut transcript = of(format, &[&user("hm"), orphan]);
        assert_eq!(repaired(&mut transcript).0, [ActionKind::OrphanToText]);
        assert!(transcript.to_json().contains("receipt 7"), "{}", transcript.to_json());
    }
}

/// Two that are damaged alike say different things.
#[test]
fn damaged_repeats_are_not_taken_for_one() {
    let result =
        |text: &str| format!(r#"{{"type":"tool_result","tool_use_id":"t","contnt":"{text}"}}"#);
    let both = format!(r#"{{"role":"user","content":[{},{}]}}"#, result("one"), result("two"));
    let mut transcript = anthropic(&[&step(Format::AnthropicMessages, &["t"])[0], &both]);
    let (done, losses) = repaired(&mut transcript);
    assert_eq!((done, losses), (vec![ActionKind::OrphanToText], vec![LossKind::Link]));
    assert!(transcript.to_json().contains("one") && transcript.to_json().contains("two"));
}
