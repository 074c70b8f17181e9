//! Any bytes: a session file comes out as it was, a repair keeps its promises, and a rollback leaves its beginning.
#![no_main]
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tr_transcript::{FileForm, Format, Repair, RepairMode, SessionFile};

fuzz_target!(|bytes: &[u8]| {
    let session = SessionFile::read(bytes);
    assert_eq!(session.to_bytes(), bytes);
    for repair in [Repair::preserve(), Repair::preserve().close_tail(), Repair::remove()] {
        let mut repaired = session.clone();
        let plan = repaired.plan(repair);
        if plan.unsure_place.is_some() {
            assert!(plan.is_empty(), "{:?}", plan.actions);
            continue;
        }
        repaired.apply(plan).expect("it was planned for this file");
        let written = SessionFile::read(&*repaired.to_bytes());
        let report = written.check();
        assert_eq!(report.findings, repaired.check().findings);
        if repair.mode() == RepairMode::Preserve {
            assert!(report.is_valid(), "{:?}", report.findings);
            nothing_is_lost(&session, &written);
        }
        let again = written.plan(repair);
        assert!(again.is_empty(), "{:?}", again.actions);
    }
    if let Some(point) = session.checkpoints().next() {
        let mut back = session.clone();
        back.rollback(&point.id).expect("it is a checkpoint of this file");
        // It takes away, and mends nothing of what stays.
        assert!(bytes.starts_with(&back.to_bytes()));
    }
});

/// What tools answered is still in the file.
fn nothing_is_lost(was: &SessionFile, now: &SessionFile) {
    let bytes = now.to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    let mut said = String::new();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).for_each(|record| {
        strings(&record, &mut said);
    });
    let messages = was.transcript().into_iter().flat_map(|transcript| {
        let values =
            transcript.messages().iter().map(|message| serde_json::from_str(message.raw()));
        values.filter_map(Result::ok).collect::<Vec<Value>>()
    });
    for message in messages {
        for answer in answers(was.form(), &message) {
            assert!(said.contains(answer), "{answer} is lost");
        }
    }
}

/// The texts with which tools answered, where the form has them as texts.
fn answers(form: FileForm, message: &Value) -> Vec<&str> {
    let content = &message["content"];
    let answer = match form.messages() {
        Some(Format::OpenAiChat) if message["role"] == "tool" => content,
        Some(Format::OpenAiResponses) if message["type"] == "function_call_output" => {
            &message["output"]
        }
        Some(Format::OpenClaw) if message["role"] == "toolResult" => &content[0]["text"],
        Some(Format::AnthropicMessages) => {
            let blocks = content.as_array().into_iter().flatten();
            let results = blocks.filter(|block| block["type"] == "tool_result");
            return results.filter_map(|block| block["content"].as_str()).collect();
        }
        _ => &Value::Null,
    };
    answer.as_str().into_iter().collect()
}

fn strings(value: &Value, said: &mut String) {
    match value {
        Value::String(text) => said.push_str(text),
        Value::Array(values) => values.iter().for_each(|value| strings(value, said)),
        Value::Object(members) => members.values().for_each(|value| strings(value, said)),
        _ => {}
    }
}
