//! The system speaks among Anthropic's messages.
use crate::common::{anthropic, message, push_step, result_block, user, uses};
use tr_core::{Answer, CycleRef, Ran};
use tr_integrity::{Fault, Format, Repair, Sessions, Transcript, Validator};

const FORMAT: Format = Format::AnthropicMessages;

/// A change of effort: the system says nothing.
const EFFORT: [&str; 3] = [
    r#"{"role":"system","content":[]}"#,
    r#"{"role":"system","content":""}"#,
    r#"{"role":"system","content":[],"output_config":{"effort":"low"}}"#,
];

fn answered(between: &str, answers: &str) -> Transcript {
    let answers = format!(r#"{{"role":"user","content":[{answers}]}}"#);
    anthropic(&[&user("go"), &uses(FORMAT, &["a", "b"]), between, &answers])
}

#[test]
fn a_system_message_that_says_nothing_may_stand_before_the_results() {
    let both = [result_block("a", "1"), result_block("b", "2")].join(",");
    for between in EFFORT {
        let valid = answered(between, &both);
        assert!(Validator::of(&valid).is_valid());
        assert!(Repair::preserve().plan(&valid).is_empty());
        assert!(Repair::remove().plan(&valid).is_empty());

        // A live tail stays one.
        let mut tail = Validator::of(&anthropic(&[&user("go"), &uses(FORMAT, &["a"]), between]));
        assert_eq!(tail.pending().collect::<Vec<_>>(), ["a"]);
        assert!(tail.is_valid());
        let answer = format!(r#"{{"role":"user","content":[{}]}}"#, result_block("a", "1"));
        tail.push(&message(FORMAT, answer));
        assert!(tail.is_valid() && !tail.waits());

        let mut broken = answered(between, &result_block("a", "1"));
        let validator = Validator::of(&broken);
        let errors = validator.findings().iter().filter(|it| it.provider_error().is_some());
        assert_eq!(errors.map(|it| it.fault).collect::<Vec<_>>(), [Fault::IncompleteUse]);
        let _ = Repair::preserve().plan(&broken).apply(&mut broken).unwrap();
        assert!(Validator::of(&broken).is_valid());
        assert_eq!(broken.len(), 4);
        assert_eq!(broken.messages()[2].raw(), between);
        assert_eq!(broken.messages()[3].tool_results().collect::<Vec<_>>(), ["a", "b"]);
    }
    // One that says something is refused there.
    let says = answered(r#"{"role":"system","content":"be quick"}"#, &both);
    assert!(!Validator::of(&says).is_valid());
}

#[test]
fn a_change_of_effort_while_a_tool_runs_ends_no_step() {
    let sessions = Sessions::new(FORMAT);
    sessions.with("s", |session, now| {
        session.push(message(FORMAT, user("go")));
        push_step(session, &["a"]);
        let cycle = CycleRef { session: "s", tool_use_id: "a", name: "read", input: "{}" };
        let cycle = session.begin_cycle(&cycle, now);
        session.start_cycle(cycle);
        session.push(message(FORMAT, EFFORT[0]));
        let answer = Answer { content: "read".into(), is_error: false, ran: Ran::Yes };
        session.finish_cycle(cycle, &answer, now);
        let json = session.transcript().to_json();
        assert!(
            json.contains(r#""content":"read""#) && !json.contains("outcome unknown"),
            "{json}"
        );
        assert_eq!(session.validator().findings(), []);
        assert!(!session.validator().waits());
    });
}
