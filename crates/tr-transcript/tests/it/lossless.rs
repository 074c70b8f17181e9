//! What is not edited comes out as it went in.

use crate::common::{anthropic, message, user};
use tr_transcript::{Format, Message, OUTCOME_UNKNOWN, Repair, Transcript, Validator};

/// Odd white space, escapes, lone surrogates, big numbers, unknown fields.
const ODD: [&str; 6] = [
    "[]",
    " [ ] \n",
    "[ {\"role\" : \"user\",\t\"content\":\"\\u0041\\ud800 \\/\"} ,\n{\"role\":\"assistant\",\"content\":[ ]}\n]\n",
    "{\"n\":12345678901234567890123, \"messages\" : [\n  {\"role\":\"user\",\"content\":\"hi\",\"x\":1e400}\n ], \"messages2\":[], \"z\":-0}",
    "[{\"content\":[{\"text\":\"b\",\"type\":\"text\",\"cache_control\":{\"type\":\"ephemeral\"}}],\"role\":\"user\"}]",
    "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"alien\",\"content\":{\"a\":[1,2 ,3]}}]",
];

#[test]
fn an_untouched_text_comes_out_byte_for_byte() {
    for text in ODD {
        let transcript = Transcript::read(text).unwrap();
        assert_eq!(transcript.to_json(), text);
        let messages = transcript.messages().iter().map(Message::raw);
        assert!(transcript.spans().map(|span| &text[span]).eq(messages));
        let plan = Repair::preserve().plan(&transcript);
        if plan.is_empty() {
            let mut repaired = transcript.clone();
            let result = plan.apply(&mut repaired).unwrap();
            assert_eq!(repaired.to_json(), text);
            let raw: Vec<_> = repaired.messages().iter().map(Message::raw).collect();
            let raw =
                format!(r#"{{"repaired":false,"repairs":[],"messages":[{}]}}"#, raw.join(","));
            assert_eq!(serde_json::to_string(&result).unwrap(), raw);
        }
    }
}

/// Two published transcripts of Claude Code, their messages taken out of the lines that hold them.
#[test]
fn real_messages_come_out_byte_for_byte() {
    let mut texts = 0;
    for file in [
        include_str!("data/representative_messages.jsonl"),
        include_str!("data/todowrite_examples.jsonl"),
    ] {
        let messages: Vec<_> = file
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|line| line["message"].is_object())
            .map(|line| line["message"].to_string())
            .collect();
        let text = format!("[\n{}\n]", messages.join(" ,\n"));
        assert_eq!(Format::detect(&text), Some(Format::AnthropicMessages));
        assert_eq!(Transcript::read(&text).unwrap().to_json(), text);
        texts += messages.len();
    }
    assert!(texts > 10);
}

#[test]
fn an_edit_changes_only_what_it_must() {
    let text = r#"{ "model":"m", "messages":[
      {"role":"user", "content":"go"},
      {"role":"assistant","content":[ {"type":"thinking","thinking":"…","signature":"S\u003d"}, {"type":"tool_use","id":"a","name":"pay","input":{ "n" : 1.0 }} ], "extra":true},
      {"role":"user",  "content":[ {"type":"text","text":"did it?"} ]}
    ], "max_tokens":7 }"#;
    let mut transcript = Transcript::read(text).unwrap();
    let _ = Repair::preserve().plan(&transcript).apply(&mut transcript).unwrap();
    let expected = text.replace(
        r#"[ {"type":"text","text":"did it?"} ]"#,
        r#"[ {"type":"tool_result","tool_use_id":"a","content":"outcome unknown, may have run","is_error":true}, {"type":"text","text":"did it?"} ]"#,
    );
    // The one gap between two blocks that were not there before is the first block's.
    assert_eq!(transcript.to_json(), expected);
}

#[test]
fn a_message_that_is_added_is_set_like_the_one_before_it() {
    let format = Format::AnthropicMessages;
    let mut transcript =
        Transcript::read("[\n  {\"role\":\"user\",\"content\":\"hi\"}\n]\n").unwrap();
    transcript.push(message(format, r#"{"role":"assistant","content":"hello"}"#));
    assert_eq!(
        transcript.to_json(),
        "[\n  {\"role\":\"user\",\"content\":\"hi\"},\n  {\"role\":\"assistant\",\"content\":\"hello\"}\n]\n"
    );
    transcript.truncate(0);
    assert_eq!(transcript.to_json(), "[\n]\n");
}

#[test]
fn debug_shows_no_text() {
    let transcript = Transcript::read(r#"[{"role":"user","content":"hunter2"}]"#).unwrap();
    assert!(!format!("{transcript:?} {:?}", transcript.messages()).contains("hunter2"));
}

/// Calls that lost their ids share the empty one.
#[test]
fn calls_without_ids_get_different_ones() {
    let step = r#"{"role":"assistant","content":[{"type":"tool_use","name":"a","input":{}},{"type":"tool_use","id":null,"name":"b","input":{}}]}"#;
    let mut transcript =
        Transcript::read(&format!("[{step},{}]", r#"{"role":"user","content":"well?"}"#)).unwrap();
    let plan = Repair::preserve().plan(&transcript);
    let _ = plan.apply(&mut transcript).unwrap();
    assert!(Validator::of(&transcript).is_valid(), "{}", transcript.to_json());
    assert_eq!(transcript.to_json().matches(OUTCOME_UNKNOWN).count(), 2);
    assert!(Repair::preserve().plan(&transcript).is_empty());
}

#[test]
fn a_plan_for_another_transcript_is_refused() {
    let mut transcript = anthropic(&[&user("x"), &user(" ")]);
    let plan = Repair::preserve().plan(&transcript);
    transcript.push(message(Format::AnthropicMessages, user("y")));
    let before = transcript.to_json();
    assert!(plan.apply(&mut transcript).is_err());
    assert_eq!(transcript.to_json(), before);
}
