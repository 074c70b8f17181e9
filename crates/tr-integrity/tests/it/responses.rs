//! What is particular to OpenAI's Responses: items with ids, reasoning, and what the provider keeps.
use crate::common::{of, output, reasoning, says, user};
use tr_integrity::{
    ActionKind::{self, AddUnknown, RemoveDuplicate, RemoveReasoning, UnlinkItem},
    Fault, Finding, Format, LossKind, ModelEnd, OUTCOME_UNKNOWN, RecoveryAction, Repair,
    ResetOptions, Session, Severity, Transcript, Validator,
};

const FORMAT: Format = Format::OpenAiResponses;

fn call(n: usize) -> String {
    format!(
        r#"{{"type":"function_call","id":"fc_{n}","call_id":"call_{n}","name":"read","arguments":"{{}}"}}"#
    )
}

fn answer(n: usize) -> String {
    output(&format!("call_{n}"), &format!("answer {n}"))
}

fn faults(messages: &[String]) -> Vec<Fault> {
    Validator::of(&of(FORMAT, messages)).findings().iter().map(|finding| finding.fault).collect()
}

fn errors(messages: &[String]) -> Vec<String> {
    let validator = Validator::of(&of(FORMAT, messages));
    validator.findings().iter().filter_map(Finding::provider_error).collect()
}

/// Repairs; what comes of it is valid and stays so.
fn repaired(messages: &[String], repair: Repair) -> (Vec<ActionKind>, Vec<String>) {
    let mut transcript = of(FORMAT, messages);
    let result = repair.plan(&transcript).apply(&mut transcript).unwrap();
    assert_eq!(Validator::of(&transcript).findings(), [], "{}", transcript.to_json());
    assert!(repair.plan(&transcript).is_empty());
    let actions = result.repairs.iter().map(|repair| repair.action).collect();
    (actions, transcript.messages().iter().map(|message| message.raw().to_owned()).collect())
}

#[test]
fn a_session_of_items_is_valid() {
    let search = r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#.to_owned();
    let said = r#"{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"so","annotations":[]}]}"#;
    let items = [
        r#"{"role":"developer","content":"be kind"}"#.to_owned(),
        user("go"),
        reasoning("rs_1"),
        search,
        reasoning("rs_2"),
        call(1),
        // The model may speak behind its calls, and a hook between call and result.
        said.to_owned(),
        call(2),
        r#"{"type":"message","role":"developer","content":"a hook"}"#.to_owned(),
        answer(2),
        answer(1),
        user("and?"),
    ];
    assert_eq!(faults(&items), []);
    assert!(repaired(&items, Repair::preserve()).0.is_empty());
}

#[test]
fn what_openai_says() {
    let custom = r#"{"type":"custom_tool_call","call_id":"call_9","name":"patch","input":"x"}"#;
    assert_eq!(
        errors(&[call(1), custom.to_owned(), user("hm")]),
        [
            "No tool output found for function call call_1.",
            "No tool output found for custom tool call call_9."
        ]
    );
    assert_eq!(
        errors(&[user("hm"), answer(1)]),
        ["No tool call found for function call output with call_id call_1."]
    );
    assert_eq!(
        errors(&[reasoning("rs_1"), user("hm")]),
        ["Item 'rs_1' of type 'reasoning' was provided without its required following item."]
    );
    assert_eq!(
        errors(&[call(1), answer(1), call(1).replace("call_1", "call_2"), answer(2)]),
        [
            "Duplicate item found with id fc_1. Remove duplicate items from your input and try again."
        ]
    );
}

/// A result may come late: what was found before it is no fault any more.
#[test]
fn a_late_result_heals_what_was_found() {
    let items = [call(1), call(2), user("hm"), answer(1), answer(2)];
    let mut validator = Validator::new(FORMAT);
    let mut found = Vec::new();
    for item in &items {
        validator.push(&FORMAT.read(item.as_str()).unwrap());
        found.push(validator.findings().len());
    }
    assert_eq!(found, [0, 0, 2, 1, 0]);
    assert!(validator.is_valid());
    // A rollback brings the fault back.
    let mut session = Session::load("s", of(FORMAT, &items[..3]));
    let before = session.checkpoint(tr_integrity::Operation::Manual, 0);
    let faults = session.validator().findings().to_vec();
    items[3..].iter().for_each(|item| session.push(FORMAT.read(item.as_str()).unwrap()));
    assert!(session.validate().valid);
    session.rollback(&before.id, 0).unwrap();
    assert_eq!(session.validator().findings(), faults);
}

#[test]
fn what_the_provider_keeps_is_not_missing() {
    for begin in [
        r#"{"previous_response_id":"resp_1","input":["#,
        r#"{"conversation":{"id":"conv_1"},"input":["#,
    ] {
        let request = format!("{begin}{},{}]}}", answer(1), user("and?"));
        let transcript = Transcript::read(&request).unwrap();
        assert_eq!(Validator::of(&transcript).findings(), []);
        for repair in [Repair::preserve(), Repair::remove()] {
            assert!(repair.plan(&transcript).is_empty());
        }
        // A use in it needs its result in it, all the same.
        let request = format!("{begin}{},{}]}}", call(1), user("and?"));
        assert!(!Validator::of(&Transcript::read(&request).unwrap()).is_valid());
    }
    let referred = r#"{"type":"item_reference","id":"fc_7"}"#.to_owned();
    let items = [referred, answer(7), user("and?")];
    assert_eq!(faults(&items), []);
    assert!(repaired(&items, Repair::preserve()).0.is_empty());
}

#[test]
fn reasoning_at_the_end_waits_for_what_follows() {
    let items = [user("go"), reasoning("rs_1")];
    let validator = Validator::of(&of(FORMAT, &items));
    assert!(validator.is_valid() && validator.waits());
    assert!(repaired(&items, Repair::preserve()).0.is_empty());
    let (actions, left) = repaired(&items, Repair::preserve().close_tail());
    assert_eq!((actions, left.len()), (vec![RemoveReasoning], 1));
}

/// Also after a rollback, across results.
#[test]
fn reasoning_that_waits_before_a_result_waits_after_a_rollback() {
    let items = [call(1), reasoning("rs_1"), answer(1), reasoning("rs_2"), user("hm")];
    let mut session = Session::load("s", of(FORMAT, &items[..4]));
    for _ in 0..2 {
        let before = session.checkpoint(tr_integrity::Operation::Manual, 0);
        session.push(FORMAT.read(items[4].as_str()).unwrap());
        let found = session.validator().findings().iter().map(|it| it.fault);
        assert_eq!(found.collect::<Vec<_>>(), [Fault::LoneReasoning; 2]);
        session.rollback(&before.id, 0).unwrap();
    }
}

/// An aborted stream: the reasoning is saved, what followed from it is not.
#[test]
fn reasoning_without_what_follows_goes_and_says_so() {
    let items = [call(1), answer(1), reasoning("rs_1"), user("hm"), call(2), answer(2)];
    let plan = Repair::preserve().plan(&of(FORMAT, &items));
    let [loss] = plan.losses() else { panic!("{:?}", plan.losses()) };
    assert_eq!(
        (loss.what, loss.message_index, &*loss.tool_use_id),
        (LossKind::Reasoning, 2, "rs_1")
    );
    let (actions, left) = repaired(&items, Repair::preserve());
    // The call behind it may be what followed: without its id, nobody asks for its reasoning.
    assert_eq!(actions, [RemoveReasoning]);
    assert_eq!(left[3], call(2), "a live tail is left alone");
    let mut longer = items.to_vec();
    longer.push(user("so?"));
    let (actions, left) = repaired(&longer, Repair::preserve());
    assert_eq!(actions, [RemoveReasoning, UnlinkItem]);
    assert_eq!(left[3], call(2).replace(r#""id":"fc_2","#, ""));
}

/// 002's removal of a call takes the reasoning that led to it along.
#[test]
fn removing_a_call_removes_its_reasoning() {
    let items = [user("go"), reasoning("rs_1"), call(1), user("hm")];
    let (actions, left) = repaired(&items, Repair::remove());
    assert_eq!(actions, [ActionKind::RemoveIncomplete, RemoveReasoning]);
    assert_eq!(left, [user("go"), user("hm")]);
    // Not where another call of the same response stays.
    let items = [reasoning("rs_1"), call(1), call(2), answer(2), user("hm")];
    let (actions, left) = repaired(&items, Repair::remove());
    assert_eq!((actions, left.len()), (vec![ActionKind::RemoveIncomplete], 4));
}

#[test]
fn repeated_items_go_and_other_items_of_an_id_lose_it() {
    let other = call(1).replace("call_1", "call_2");
    let named = |item: String| item.replace("_1", "_0a7b3c9d2e");
    let items = [reasoning("rs_1"), call(1), answer(1), reasoning("rs_1"), call(1), answer(1)];
    let items = items.map(named);
    let (actions, left) = repaired(&items, Repair::preserve());
    assert_eq!(actions, [RemoveDuplicate; 3]);
    assert_eq!(left, items[..3]);
    // Where ids are counted up, an equal call is another call.
    let mut transcript = of(FORMAT, &[call(1), answer(1), user("again"), call(1), answer(1)]);
    let plan = Repair::preserve().plan(&transcript);
    assert_eq!(plan.actions().iter().map(|it| it.action).collect::<Vec<_>>(), [UnlinkItem]);
    let _ = plan.apply(&mut transcript).unwrap();
    assert_eq!(transcript.messages().len(), 5);
    let (actions, left) = repaired(&[call(1), answer(1), other, answer(2)], Repair::preserve());
    assert_eq!(actions, [UnlinkItem]);
    assert!(!left[2].contains("fc_1"));
}

#[test]
fn every_kind_of_call_gets_its_kind_of_result() {
    let kinds = [
        ("function_call", r#""output":"outcome unknown, may have run""#),
        ("custom_tool_call", r#""output":"outcome unknown, may have run""#),
        ("shell_call", r#""stderr":"outcome unknown, may have run""#),
        ("apply_patch_call", r#""status":"failed","output":"outcome unknown, may have run""#),
        ("local_shell_call", r#""output":"outcome unknown, may have run""#),
        ("computer_call", r#""image_url":"data:image/png;base64,"#),
    ];
    for (kind, said) in kinds {
        let call = format!(r#"{{"type":"{kind}","call_id":"c"}}"#);
        let (actions, left) = repaired(&[call.clone(), user("hm")], Repair::preserve());
        assert_eq!(actions, [AddUnknown]);
        assert!(left[1].contains(said), "{}", left[1]);
        // Its own repair is known again: a real result takes its place.
        let real = left[1].replace(OUTCOME_UNKNOWN, "real").replace("iVBOR", "REAL");
        let items = [call, left[1].clone(), user("hm"), real.clone()];
        let (actions, left) = repaired(&items, Repair::preserve());
        assert_eq!((actions, &left[2]), (vec![ActionKind::RemoveSynthetic], &real));
    }
}

#[test]
fn an_orphan_keeps_its_parts() {
    let image = r#"{"type":"input_image","image_url":"data:,"}"#;
    let orphan = format!(r#"{{"type":"function_call_output","call_id":"c","output":[{image}]}}"#);
    let (_, left) = repaired(&[user("x"), orphan], Repair::preserve());
    assert!(left[1].contains(image) && left[1].contains("not in this session: c"), "{}", left[1]);
    let screen = r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"}}"#;
    let (_, left) = repaired(&[user("x"), screen.to_owned()], Repair::preserve());
    assert!(left[1].contains(r#"{"type":"input_image","image_url":"data:image/png;base64,AAAA"}"#));
}

/// A text must come neither between reasoning and its call, nor behind a live tail.
#[test]
fn an_orphan_parts_nothing() {
    let ghost = output("ghost", "boo");
    let items = [user("go"), reasoning("rs_1"), ghost.clone(), call(1), answer(1), user("so")];
    let (_, left) = repaired(&items, Repair::preserve());
    assert!(left[1].contains("boo") && left[2..4] == [reasoning("rs_1"), call(1)], "{left:?}");
    let items = [user("go"), reasoning("rs_1"), call(1), ghost];
    let (_, left) = repaired(&items, Repair::preserve());
    assert!(left[1].contains("boo") && left[2..] == [reasoning("rs_1"), call(1)], "{left:?}");
}

#[test]
fn a_request_comes_out_byte_for_byte() {
    for text in [
        r#"{"model":"m", "instructions":"be kind", "input" : "hi\u0021" , "store":false}"#,
        "{\"input\":[ {\"role\":\"user\",\"content\":\"hi\"} ,\n {\"type\":\"alien\",\"x\":1e400} ]}",
        r#"{"object":"response","id":"resp_1","output":[{"type":"message","role":"assistant","content":[]}],"usage":{}}"#,
    ] {
        assert_eq!(Format::detect(text), Some(FORMAT), "{text}");
        let transcript = Transcript::read(text).unwrap();
        assert_eq!(transcript.to_json(), text);
    }
}

/// A plain string is the user's words; with more messages it becomes a list.
#[test]
fn a_plain_string_is_the_users_words() {
    let mut transcript = Transcript::read(r#"{"input":"hi","n":1}"#).unwrap();
    assert_eq!(transcript.len(), 1);
    transcript.push(FORMAT.read(says("hello")).unwrap());
    assert_eq!(
        transcript.to_json(),
        r#"{"input":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}],"n":1}"#
    );
    transcript.truncate(1);
    assert_eq!(transcript.to_json(), r#"{"input":"hi","n":1}"#);
    transcript.truncate(0);
    assert_eq!(transcript.to_json(), r#"{"input":[],"n":1}"#);
}

#[test]
fn a_reset_keeps_instructions_and_prompts() {
    let text = r#"{"instructions":"be kind","input":[{"type":"message","role":"developer","content":"be brief"},{"role":"user","content":"hi"}]}"#;
    let mut session = Session::load("s", Transcript::read(text).unwrap());
    session.reset(ResetOptions::default(), 0);
    assert_eq!(
        session.transcript().to_json(),
        r#"{"instructions":"be kind","input":[{"type":"message","role":"developer","content":"be brief"}]}"#
    );
}

#[test]
fn repeats_of_call_ids_are_warnings() {
    let again = [call(1), answer(1), call(1).replace("fc_1", "fc_2"), answer(1)];
    let validator = Validator::of(&of(FORMAT, &again));
    let [finding] = validator.findings() else { panic!("{:?}", validator.findings()) };
    assert_eq!((finding.fault, finding.severity), (Fault::DuplicateId, Severity::Warning));
    assert!(Repair::preserve().plan(&of(FORMAT, &again)).is_empty());
}

/// A compaction has cut reasoning from its call: only the provider knows, and says so.
#[test]
fn a_session_refused_for_missing_reasoning_is_repaired() {
    let said = "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' \
                item: 'rs_1'.";
    let config = serde_json::json!({"autoRepair": true});
    let sessions = crate::session::sessions(FORMAT, tr_integrity::CycleMode::Preserve, config);
    let items = [user("a summary"), call(1), answer(1), reasoning("rs_2"), call(2), answer(2)];
    sessions.insert(Session::load("s", of(FORMAT, &items)));
    sessions.with("s", |session, now| {
        assert!(session.validate().valid);
        let recovery = session.handle_error(ModelEnd::of_error(said), None, now);
        assert_eq!(recovery.action, RecoveryAction::Repaired, "{recovery:?}");
        let json = session.transcript().to_json();
        // The call that has its reasoning keeps its id.
        assert!(!json.contains("fc_1") && json.contains("call_1") && json.contains("fc_2"));
        assert!(session.plan(Repair::preserve().waive_thoughts()).is_empty());
    });
}

/// Found by fuzzing: an item that calls itself a tool and is no output of one.
#[test]
fn an_item_of_a_tool_that_is_no_output_stays() {
    for items in [
        vec![r#"{"role":"tool","contnt":[{"type":"ty"}]}"#.to_owned()],
        vec![call(1), r#"{"role":"tool"}"#.to_owned(), answer(1)],
    ] {
        let transcript = of(FORMAT, &items);
        let plan = Repair::preserve().close_tail().plan(&transcript);
        let mut repaired = transcript.clone();
        plan.apply(&mut repaired).unwrap();
        assert!(Validator::of(&repaired).is_valid());
        assert!(repaired.to_json().contains(r#""role":"tool""#));
    }
    // Nor is it part of a live tail.
    let mut transcript = of(FORMAT, &[call(1), r#"{"role":"tool"}"#.to_owned()]);
    let plan = Repair::preserve().plan(&transcript);
    plan.apply(&mut transcript).unwrap();
    assert!(Validator::of(&transcript).is_valid());
}
