//! Mode `remove` with members: messages of which nothing is left.
use crate::common::{FORMATS, of, openai, says, user, uses};
use tr_transcript::{
    ActionKind::{RemoveEmptyMessage, RemoveIncomplete},
    Format, Repair, Validator,
};

/// Its provider refuses what the seed leaves.
#[test]
fn with_members_remove_takes_an_emptied_assistant_message_too() {
    for format in FORMATS {
        let alone = |id: &str| {
            let call = uses(format, &[id]).replace(r#""content":"so""#, r#""content":null"#);
            call.replace(r#"{"type":"text","text":"so"},"#, "").replace(r#"{"text":"so"},"#, "")
        };
        let mut messages = vec![user("go"), alone("a"), user("hm")];
        messages.extend([alone("b"), user("well?"), says("ok")]);
        let mut transcript = of(format, &messages);
        let plan = Repair::remove().with_members().plan(&transcript);
        let done: Vec<_> = plan.actions().iter().map(|it| (it.action, it.message_index)).collect();
        let removed = [(RemoveIncomplete, 1), (RemoveIncomplete, 3)];
        let emptied = [(RemoveEmptyMessage, 1), (RemoveEmptyMessage, 2)];
        let places = plan.places();
        let _ = plan.apply(&mut transcript).unwrap();
        assert!(Validator::with_members_of(&transcript).is_valid(), "{}", transcript.to_json());
        let (expected, left) = match format {
            // A call is a message of its own.
            Format::OpenAiResponses => (vec![(RemoveIncomplete, 1), (RemoveIncomplete, 2)], 4),
            // OpenAI takes an empty text.
            Format::OpenAiChat => (removed.to_vec(), 6),
            _ => ([removed, emptied].concat(), 4),
        };
        assert_eq!(done, expected, "{format:?}");
        assert_eq!(places, [1, 3, 1, 3][..expected.len()], "{format:?}");
        assert_eq!(transcript.len(), left, "{}", transcript.to_json());
        assert!(Repair::remove().with_members().plan(&transcript).is_empty());
    }
    // One with a text stays.
    let said = r#"{"role":"assistant","content":"I read.","tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]}"#;
    let mut transcript = openai(&[said, &user("hm")]);
    let _ = Repair::remove().with_members().plan(&transcript).apply(&mut transcript).unwrap();
    assert_eq!(transcript.messages()[0].raw(), r#"{"role":"assistant","content":"I read."}"#);
}
