//! What is particular to Gemini: calls without ids, turns, signatures, two spellings.
use crate::common::{message, of, response, results, says, user, uses};
use tr_integrity::{
    ActionKind::{
        self, AddUnknown, AddUserMessage, JoinMessages, MoveResult, OrphanToText,
        RemoveEmptyMessage, RemoveIncomplete, RemoveSynthetic,
    },
    Fault, Finding, Format, ModelEnd, OUTCOME_UNKNOWN, RecoveryAction, Repair, ResetOptions,
    Session, Severity, Transcript, Validator,
};

const FORMAT: Format = Format::Gemini;

/// The model's content with these parts.
fn model(parts: &[&str]) -> String {
    format!(r#"{{"role":"model","parts":[{}]}}"#, parts.join(","))
}

/// The user's.
fn tools(parts: &[&str]) -> String {
    format!(r#"{{"role":"user","parts":[{}]}}"#, parts.join(","))
}

/// Without an id.
fn call(name: &str) -> String {
    format!(r#"{{"functionCall":{{"name":"{name}","args":{{}}}}}}"#)
}

fn answer(name: &str, text: &str) -> String {
    format!(r#"{{"functionResponse":{{"name":"{name}","response":{{"result":"{text}"}}}}}}"#)
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
    let validator = Validator::of(&transcript);
    assert!(validator.is_valid(), "{:?}\n{}", validator.findings(), transcript.to_json());
    assert!(repair.plan(&transcript).is_empty(), "{}", transcript.to_json());
    let actions = result.repairs.iter().map(|repair| repair.action).collect();
    (actions, transcript.messages().iter().map(|message| message.raw().to_owned()).collect())
}

#[test]
fn names_and_places_pair_where_there_is_no_id() {
    let (first, second) = (answer("read", "1"), answer("read", "2"));
    let items = [
        user("go"),
        model(&[&call("read"), &call("read"), &call("list")]),
        tools(&[&first, r#"{"text":"between"}"#, &answer("list", "3"), &second]),
        model(&[&call("read")]),
        // The role of older clients.
        tools(&[&answer("read", "4")]).replace("user", "function"),
        model(&[r#"{"text":"done"}"#]),
    ];
    assert_eq!(faults(&items), []);
    for repair in [Repair::preserve(), Repair::remove()] {
        assert!(repaired(&items, repair).0.is_empty());
    }
}

#[test]
fn one_side_may_have_an_id() {
    let with_ids =
        [user("go"), uses(FORMAT, &["x"]).replace("so", "hm"), tools(&[&answer("read", "1")])];
    let without = [user("go"), model(&[&call("read")]), tools(&[&response("made-up", "1")])];
    for items in [with_ids, without] {
        assert_eq!(faults(&items), []);
        for repair in [Repair::preserve(), Repair::remove()] {
            assert!(repaired(&items, repair).0.is_empty());
        }
    }
    // Two ids that differ do not pair, whatever the name.
    let items = [user("go"), uses(FORMAT, &["x"]), tools(&[&response("y", "1")])];
    assert_eq!(faults(&items), [Fault::OrphanedResult, Fault::IncompleteUse]);
    assert_eq!(repaired(&items, Repair::preserve()).0, [AddUnknown, OrphanToText]);
}

#[test]
fn what_gemini_says() {
    let count = "Please ensure that the number of function response parts is equal to the number \
                 of function call parts of the function call turn.";
    let (step, one) = (model(&[&call("a"), &call("b")]), answer("a", "1"));
    assert_eq!(errors(&[user("go"), step.clone(), tools(&[&one])]), [count]);
    assert_eq!(errors(&[user("go"), step, user("hm")]), [count, count]);
    let twice = [user("go"), model(&[&call("a")]), tools(&[&one, &one])];
    assert_eq!((errors(&twice), faults(&twice)), (vec![count.into()], vec![Fault::SeveralResults]));
    assert_eq!(
        errors(&[user("go"), tools(&[&one])]),
        ["Please ensure that function response turn comes immediately after a function call turn."]
    );
    for before in [vec![], vec![user("go"), says("hm")]] {
        let items = [before, vec![model(&[&call("a")]), tools(&[&one])]].concat();
        assert_eq!(
            errors(&items),
            ["Please ensure that function call turn comes immediately after a user turn or after \
              a function response turn."]
        );
    }
    assert_eq!(
        errors(&[user("go"), model(&[])]),
        ["* GenerateContentRequest.contents[1].parts: contents.parts must not be empty."]
    );
}

#[test]
fn a_step_follows_the_user_after_a_repair() {
    let step = [model(&[&call("a")]), tools(&[&answer("a", "1")])];
    let (actions, left) = repaired(&step, Repair::preserve());
    assert_eq!((actions, left.len()), (vec![AddUserMessage], 3));
    let words = r#"{"thoughtSignature":"abc","text":"so"}"#;
    let split = [vec![user("go"), model(&[words])], step.to_vec()].concat();
    let (actions, left) = repaired(&split, Repair::preserve());
    assert_eq!(actions, [JoinMessages]);
    assert_eq!(left[1..], [model(&[words, &call("a")]), step[1].clone()]);
}

#[test]
fn a_made_up_response_is_spelled_as_its_call() {
    let snake = r#"{"function_call":{"name":"read","args":{}},"thought_signature":"abc"}"#;
    let items = [user("go"), model(&[snake, &call("list")]), user("hm")];
    let (actions, left) = repaired(&items, Repair::preserve());
    assert_eq!(actions, [AddUnknown, AddUnknown]);
    let unknown = [
        r#"{"function_response":{"name":"read","response":{"error":"outcome unknown, may have run"}}}"#,
        r#"{"functionResponse":{"name":"list","response":{"error":"outcome unknown, may have run"}}}"#,
        r#"{"text":"hm"}"#,
    ];
    assert_eq!(left[2], tools(&unknown));
    // It does not give way to one that names no call: that may be another's.
    let real = tools(&[&answer("read", "real"), &answer("list", "too")]);
    let both = [left.as_slice(), &[real]].concat();
    let (actions, left) = repaired(&both, Repair::preserve());
    assert_eq!(actions, [OrphanToText, OrphanToText]);
    assert!(left[2].contains(OUTCOME_UNKNOWN), "{}", left[2]);
    assert!(left[3].contains("real") && left[3].contains("too"), "{}", left[3]);
    // To one with the call's id it does.
    let step = [
        user("go"),
        uses(FORMAT, &["call_a7Bq3xYz9Kd0"]),
        results(FORMAT, &[("call_a7Bq3xYz9Kd0", OUTCOME_UNKNOWN)]).remove(0),
        user("hm"),
        results(FORMAT, &[("call_a7Bq3xYz9Kd0", "real")]).remove(0),
    ];
    let (actions, left) = repaired(&step, Repair::preserve());
    assert_eq!(actions, [MoveResult, RemoveSynthetic, RemoveEmptyMessage]);
    assert!(left[2].contains("real") && !left[2].contains(OUTCOME_UNKNOWN), "{}", left[2]);
}

/// Of two calls of one name, the second of which has no response.
#[test]
fn a_made_up_response_keeps_the_order_of_its_step() {
    let with_id = |id: u8| format!(r#"{{"functionCall":{{"id":"{id}","name":"a","args":{{}}}}}}"#);
    let real = r#"{"functionResponse":{"id":"1","name":"a","response":{"result":"real"}}}"#;
    let items = [user("go"), model(&[&with_id(1), &with_id(2)]), tools(&[real]), says("so")];
    let (actions, left) = repaired(&items, Repair::preserve());
    assert_eq!(actions, [AddUnknown]);
    assert!(left[2].find("real") < left[2].find(OUTCOME_UNKNOWN), "{}", left[2]);
}

/// Which of two equal calls without ids a single response answers, nobody knows.
#[test]
fn a_response_that_may_be_of_either_of_two_calls_answers_neither() {
    let items =
        [user("go"), model(&[&call("a"), &call("a")]), tools(&[&answer("a", "1")]), says("so")];
    let (actions, left) = repaired(&items, Repair::preserve());
    assert_eq!(actions, [AddUnknown, AddUnknown, OrphanToText]);
    let text = "[result of one of several calls of a tool, it is not known of which: a]";
    assert!(left[2].contains(&format!(r"{text}\n1")), "{}", left[2]);
    assert_eq!(left[2].matches(OUTCOME_UNKNOWN).count(), 2, "{}", left[2]);
    // A call of another name is told apart by it, and as many responses by their places.
    let step = model(&[&call("a"), &call("b")]);
    let other = [user("go"), step, tools(&[&answer("a", "1")]), says("so")];
    assert_eq!(repaired(&other, Repair::preserve()).0, [AddUnknown]);
    let step = model(&[&call("a"), &call("a")]);
    let all = [user("go"), step, tools(&[&answer("a", "1"), &answer("a", "1")]), says("so")];
    assert_eq!(repaired(&all, Repair::preserve()).0, []);
}

/// Two payments, the call of the second of which is lost: its receipt is no copy of the first's.
#[test]
fn a_second_equal_response_without_an_id_stays_as_text() {
    let (paid, done) = (tools(&[&answer("pay", "paid")]), says("done"));
    let items =
        [user("go"), model(&[&call("pay")]), paid.clone(), says("now order 2"), paid, done.clone()];
    let (actions, left) = repaired(&items, Repair::preserve());
    assert_eq!(actions, [OrphanToText]);
    assert_eq!(left.join("").matches("paid").count(), 2, "{left:?}");
    // Nor does it answer another call than the one that it stands behind.
    let lost = [
        user("go"),
        model(&[&call("pay")]),
        user("and order 2"),
        says("so"),
        tools(&[&answer("pay", "paid")]),
        done,
    ];
    assert_eq!(repaired(&lost, Repair::preserve()).0, [AddUnknown, OrphanToText]);
}

#[test]
fn an_orphan_keeps_what_stands_beside_it() {
    let image = r#"{"inlineData":{"mimeType":"image/png","data":""}}"#;
    let ghost = format!(
        r#"{{"functionResponse":{{"id":"x","name":"shot","response":{{"n":[1]}},"parts":[{image}]}}}}"#
    );
    let (actions, left) = repaired(&[user("go"), tools(&[&ghost])], Repair::preserve());
    assert_eq!(actions, [OrphanToText]);
    assert!(left[1].contains(image) && left[1].contains(r#"{\"n\":[1]}"#), "{}", left[1]);
}

/// Parallel calls carry one signature, at the first.
#[test]
fn a_signature_that_goes_with_its_call_is_said_to_be_missing() {
    let items =
        [user("go"), model(&[&signed("a"), &call("b")]), tools(&[&answer("b", "1")]), says("so")];
    let (actions, left) = repaired(&items, Repair::remove());
    assert_eq!(actions, [RemoveIncomplete]);
    let said = r#"{"thoughtSignature":"skip_thought_signature_validator","functionCall":{"name":"b","args":{}}}"#;
    assert_eq!(left[1], model(&[said]));
    // What is left as it was keeps what it had.
    let items =
        [user("go"), model(&[&signed("a"), &call("b")]), tools(&[&answer("a", "1")]), says("so")];
    assert_eq!(repaired(&items, Repair::remove()).1[1], model(&[&signed("a")]));
}

#[test]
fn repeated_ids_are_warnings() {
    let step = [uses(FORMAT, &["x"]), results(FORMAT, &[("x", "1")]).remove(0)];
    let items = [vec![user("go")], step.to_vec(), step.to_vec()].concat();
    let validator = Validator::of(&of(FORMAT, &items));
    let [finding] = validator.findings() else { panic!("{:?}", validator.findings()) };
    assert_eq!((finding.fault, finding.severity), (Fault::DuplicateId, Severity::Warning));
    let mut items = items;
    items[4] = tools(&[&response("x", "1"), &response("x", "1")]);
    assert_eq!(repaired(&items, Repair::preserve()).0, [OrphanToText]);
}

#[test]
fn a_request_comes_out_byte_for_byte() {
    for text in [
        "{ \"systemInstruction\":{\"parts\":[{\"text\":\"be kind\"}]},\n \"contents\" : [ {\"parts\":[{\"text\":\"hi\\u0021\"} ]} ], \"tools\":[] }",
        r#"{"contents":[{"role":"model","parts":[{"executable_code":{}},{"thought":true,"text":"","thoughtSignature":"a"}]}],"system_instruction":{}}"#,
    ] {
        assert_eq!(Format::detect(text), Some(FORMAT), "{text}");
        let transcript = Transcript::read(text).unwrap();
        assert_eq!(transcript.to_json(), text);
        assert_eq!(Validator::of(&transcript).findings(), []);
    }
    let bare = of(FORMAT, &[user("hi")]).to_json();
    assert_eq!(Format::detect(&bare), Some(FORMAT));
}

#[test]
fn a_reset_keeps_the_system_instruction() {
    let text = r#"{"systemInstruction":{"parts":[{"text":"be kind"}]},"contents":[{"parts":[{"text":"hi"}]}]}"#;
    let mut session = Session::load("s", Transcript::read(text).unwrap());
    session.reset(ResetOptions::default(), 0);
    let expected = r#"{"systemInstruction":{"parts":[{"text":"be kind"}]},"contents":[]}"#;
    assert_eq!(session.transcript().to_json(), expected);
    session.push(message(FORMAT, user("hi again")));
    assert!(session.transcript().to_json().contains("hi again"));
}

fn signed(name: &str) -> String {
    call(name).replacen('{', r#"{"thoughtSignature":"abc","#, 1)
}

/// A turn whose steps are signed, but for the first.
fn unsigned() -> Vec<String> {
    vec![
        user("go"),
        model(&[&call("a")]),
        tools(&[&answer("a", "1")]),
        model(&[&signed("b"), &call("c")]),
        tools(&[&answer("b", "2"), &answer("c", "3")]),
    ]
}

#[test]
fn a_step_without_the_signature_that_others_of_its_turn_have() {
    let items = unsigned();
    let validator = Validator::of(&of(FORMAT, &items));
    let [finding] = validator.findings() else { panic!("{:?}", validator.findings()) };
    // Some models of the provider take it.
    assert_eq!((finding.fault, finding.severity), (Fault::MissingSignature, Severity::Warning));
    assert_eq!((finding.message_index, finding.block_index), (1, Some(0)));
    assert_eq!(
        finding.provider_error().unwrap(),
        "Function call is missing a thought_signature in functionCall parts. This is required for \
         tools to work correctly, and missing thought_signature may lead to degraded model \
         performance. Additional data, function call `default_api:a` , position 2. Please refer to \
         https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    );
    assert!(repaired(&items, Repair::preserve()).0.is_empty());
    // Another turn is another matter.
    let mut items = items;
    items.insert(3, user("and?"));
    assert_eq!(faults(&items), []);
    // What is forgotten and comes again is found again.
    let mut session = Session::load("s", of(FORMAT, &unsigned()[..3]));
    let before = session.checkpoint(tr_integrity::Operation::Manual, 0);
    session.push(message(FORMAT, unsigned()[3].as_str()));
    assert_eq!(session.validator().findings().len(), 1);
    session.rollback(&before.id, 0).unwrap();
    assert_eq!(session.validator().findings().len(), 0);
    session.push(message(FORMAT, unsigned()[3].as_str()));
    assert_eq!(session.validator().findings().len(), 1);
}

/// Only the provider knows which thoughts are missing: it says so, and nobody asks again.
#[test]
fn a_session_refused_for_a_missing_thought_is_repaired() {
    let said = "Function call is missing a thought_signature in functionCall parts.";
    let config = serde_json::json!({"autoRepair": true});
    let sessions = crate::session::sessions(FORMAT, tr_integrity::CycleMode::Preserve, config);
    let items = [user("go"), model(&[&call("a")]), tools(&[&answer("a", "1")])];
    sessions.insert(Session::load("s", of(FORMAT, &items)));
    sessions.with("s", |session, now| {
        let recovery = session.handle_error(ModelEnd::of_error(said), None, now);
        assert_eq!(recovery.action, RecoveryAction::Repaired, "{recovery:?}");
        let json = session.transcript().to_json();
        let placeholder =
            r#"{"thoughtSignature":"skip_thought_signature_validator","functionCall""#;
        assert!(json.contains(placeholder), "{json}");
        let again = session.plan(Repair::preserve().waive_thoughts());
        assert!(again.is_empty(), "{:?}", again.actions());
    });
}
