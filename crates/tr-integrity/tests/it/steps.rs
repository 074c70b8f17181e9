//! Tool cycles within a session, beside its other events.
use crate::{
    common::{FORMATS, MODES, message, push_step, results, says, step, uses},
    session::{say, sessions},
};
use serde_json::json;
use tr_core::{Answer, CycleRef, Ran};
use tr_integrity::{
    CycleMode, CycleState, Format, Message, ModelEnd, OUTCOME_UNKNOWN, Operation, Session,
};

fn cycle<'r>(id: &'r str) -> CycleRef<'r> {
    CycleRef { session: "s", tool_use_id: id, name: "pay", input: r#"{"eur":5}"# }
}

fn answer(text: &str) -> Answer<'_> {
    Answer { content: text.into(), is_error: false, ran: Ran::Yes }
}

fn failed(text: &str, ran: Ran) -> Answer<'_> {
    Answer { content: text.into(), is_error: true, ran }
}

/// Does this in a session of each form and mode.
fn in_each(modes: &[CycleMode], test: impl Fn(Format, CycleMode, &mut Session, u64)) {
    for format in FORMATS {
        for &mode in modes {
            let sessions = sessions(format, mode, json!({}));
            sessions.with("s", |session, now| test(format, mode, session, now));
        }
    }
}

/// With the names of the document's own type.
#[test]
fn a_cycle_that_has_not_ended_serializes() {
    let sessions = sessions(Format::AnthropicMessages, CycleMode::default(), json!({}));
    sessions.with("s", |session, now| {
        session.begin_cycle(&cycle("toolu_01A"), now);
        let [open] = session.cycles() else { panic!("one is open") };
        let said = serde_json::to_value(open).unwrap();
        let names: Vec<_> = said.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["abandoned", "checkpoint", "id", "state", "toolUse"]);
        assert_eq!(said["state"], "pending");
        assert_eq!(
            (&said["toolUse"]["id"], &said["toolUse"]["name"]),
            (&json!("toolu_01A"), &json!("pay"))
        );
    });
}

#[test]
fn si_12_content_filter_during_a_tool() {
    in_each(&MODES, |format, mode, session, now| {
        say(session, "pay, then look");
        let made = session.checkpoint(Operation::ApiCall, now);
        session.push(message(format, says("cut o")));
        let paid = session.begin_cycle(&cycle("paid"), now);
        session.start_cycle(paid);
        session.finish_cycle(paid, &answer("receipt 7"), now);
        let running = session.begin_cycle(&cycle("running"), now);
        session.start_cycle(running);
        let recovery = session.handle_error(ModelEnd::Filtered, Some(&made.id), now);
        // Gemini's step follows the user: it was joined to what the model said before.
        let removed = if format == Format::Gemini { 2 } else { 3 };
        let said = format!("Content filter triggered. Rolled back {removed} messages.");
        assert_eq!(recovery.message, said);
        assert!(session.validate().valid);
        let json = session.transcript().to_json();
        assert!(!json.contains("cut o"));
        if mode == CycleMode::Rollback {
            // 002 to the letter: the session is what it was at the checkpoint.
            assert_eq!(session.transcript().len(), 1);
        } else {
            // The payment was made: the session goes on knowing it.
            assert!(json.contains("receipt 7") && json.contains(r#"eur"#), "{json}");
            assert_eq!(recovery.details.unwrap()["cyclesKept"], 1);
        }
        // The tool that ran meanwhile ends, and finds its place.
        session.finish_cycle(running, &answer("late"), now);
        assert!(session.validate().valid);
        assert!(session.transcript().to_json().contains("late"));
    });
}

#[test]
fn results_of_a_step_become_visible_together() {
    in_each(&[CycleMode::Preserve], |format, _, session, now| {
        say(session, "go");
        push_step(session, &["a", "b"]);
        let a = session.begin_cycle(&cycle("a"), now);
        let b = session.begin_cycle(&cycle("b"), now);
        session.start_cycle(a);
        session.start_cycle(b);
        session.finish_cycle(b, &answer("second"), now);
        let uses = step(format, &["a", "b"]).len();
        assert_eq!((session.transcript().len(), session.validate().valid), (1 + uses, true));
        session.finish_cycle(a, &answer("first"), now);
        let json = session.transcript().to_json();
        assert!(json.find("first") < json.find("second"), "{json}");
        assert_eq!(session.validator().findings(), []);
        assert_eq!((session.cycles().len(), session.active()), (0, None));
    });
}

#[test]
fn the_user_speaks_while_a_tool_runs() {
    in_each(&[CycleMode::Preserve], |format, _, session, now| {
        say(session, "go");
        push_step(session, &["a", "b"]);
        let ids = ["a", "b"].map(|id| session.begin_cycle(&cycle(id), now));
        ids.iter().for_each(|&id| session.start_cycle(id));
        session.finish_cycle(ids[0], &answer("quick"), now);
        say(session, "are you there?");
        assert!(session.validate().valid, "{}", session.transcript().to_json());
        assert!(session.transcript().to_json().contains("outcome unknown, may have run"));
        session.push(message(format, says("yes")));
        session.push(message(format, uses(format, &["c"])));
        session.finish_cycle(ids[1], &answer("slow"), now);
        let json = session.transcript().to_json();
        assert!(session.validate().valid, "{json}");
        assert!(json.contains("quick") && json.contains("slow") && json.contains("there?"));
        assert!(!json.contains("outcome unknown"), "{json}");
        // The step that waits now is still live.
        assert_eq!(session.validator().pending().collect::<Vec<_>>(), ["c"]);
    });
}

#[test]
fn recovery_settles_what_nobody_drives() {
    in_each(&MODES, |_, mode, session, now| {
        say(session, "go");
        let pending = session.begin_cycle(&cycle("never started"), now);
        let dropped = session.begin_cycle(&cycle("dropped"), now);
        let running = session.begin_cycle(&cycle("running"), now);
        session.start_cycle(dropped);
        session.start_cycle(running);
        session.abandon_cycle(pending, now);
        session.abandon_cycle(dropped, now);
        assert_eq!(session.transcript().len(), 1);
        assert_eq!(session.recover(now), 1);
        assert_eq!(session.recover(now), 0);
        let json = session.transcript().to_json();
        assert!(!json.contains("never started") && !json.contains("running"));
        let is_recorded =
            json.contains("dropped") && json.contains("outcome unknown, may have run");
        assert_eq!(is_recorded, mode == CycleMode::Preserve, "{json}");
        assert!(session.validate().valid);
        assert_eq!(session.cycles().len(), 1);
    });
}

/// A use that the agent has put into the transcript is not the cycle's to take back.
#[test]
fn a_use_of_the_agents_is_answered_by_the_refusal() {
    in_each(&MODES, |_, _, session, now| {
        say(session, "go");
        push_step(session, &["a", "b"]);
        let [a, b] = ["a", "b"].map(|id| session.begin_cycle(&cycle(id), now));
        session.start_cycle(a);
        session.start_cycle(b);
        let refused = failed("circuit open", Ran::No);
        let result = session.fail_cycle(b, &refused, now);
        assert_eq!((result.success, result.rolled_back), (false, None));
        assert_eq!(&*result.result.unwrap().content, "circuit open");
        // It waits for its sibling, and is known not to have run.
        let waits = session.cycles().iter().find(|cycle| cycle.id == b).unwrap();
        assert_eq!((waits.state, waits.ran()), (CycleState::Recording, Ran::No));
        session.finish_cycle(a, &answer("paid"), now);
        let json = session.transcript().to_json();
        assert_eq!(session.validator().findings(), [], "{json}");
        assert!(!session.validator().waits());
        assert!(json.find("paid") < json.find("circuit open"), "{json}");
        let left = session.transcript().messages().iter().flat_map(Message::tool_uses);
        assert_eq!(left.collect::<Vec<_>>(), ["a", "b"]);
    });
}

/// What ran is told in both modes: a use without a result would end the session.
#[test]
fn a_use_of_the_agents_is_answered_by_the_failure() {
    for format in FORMATS {
        for mode in MODES {
            for (ran, is_unknown) in [(Ran::Yes, false), (Ran::Unknown, true)] {
                let sessions = sessions(format, mode, json!({}));
                sessions.with("s", |session, now| {
                    say(session, "go");
                    push_step(session, &["a"]);
                    let a = session.begin_cycle(&cycle("a"), now);
                    session.start_cycle(a);
                    session.fail_cycle(a, &failed("timed out", ran), now);
                    let json = session.transcript().to_json();
                    assert!(session.validate().valid && !session.validator().waits(), "{json}");
                    assert!(json.contains("timed out"), "{json}");
                    assert_eq!(json.contains(OUTCOME_UNKNOWN), is_unknown, "{json}");
                });
            }
        }
    }
}

/// The agent calls a refused tool again under the same id while a sibling runs.
#[test]
fn a_refusal_gives_way_to_a_second_try() {
    let sessions = sessions(Format::OpenAiChat, CycleMode::Preserve, json!({}));
    sessions.with("s", |session, now| {
        push_step(session, &["a", "b"]);
        let refused = failed("circuit open", Ran::No);
        let first = session.begin_cycle(&cycle("a"), now);
        session.fail_cycle(first, &refused, now);
        let second = session.begin_cycle(&cycle("a"), now);
        assert_eq!(session.cycle_state(first), Some(CycleState::RolledBack));
        session.start_cycle(second);
        session.finish_cycle(second, &answer("paid"), now);
        let sibling = session.begin_cycle(&cycle("b"), now);
        session.finish_cycle(sibling, &answer("seen"), now);
        let json = session.transcript().to_json();
        assert!(json.contains("paid") && !json.contains("circuit open"), "{json}");
        assert_eq!(session.validator().findings(), []);
    });
}

/// The agent repeats a call itself while a sibling runs: one use has one result, the best.
#[test]
fn a_use_that_is_called_twice_is_answered_once() {
    let lost = || failed("timed out", Ran::Unknown);
    let refused = || failed("circuit open", Ran::No);
    for format in FORMATS {
        for (first, second, stays) in [
            (lost(), answer("paid"), "paid"),
            (answer("paid"), lost(), "paid"),
            (lost(), refused(), "timed out"),
            (answer("paid"), refused(), "paid"),
            (answer("older"), answer("newer"), "newer"),
        ] {
            let sessions = sessions(format, CycleMode::Preserve, json!({}));
            sessions.with("s", |session, now| {
                say(session, "go");
                push_step(session, &["a", "b"]);
                let all = [first.content.clone(), second.content.clone()];
                for end in [first, second] {
                    let run = session.begin_cycle(&cycle("a"), now);
                    match (end.is_error, end.ran) {
                        (true, Ran::No) => drop(session.fail_cycle(run, &end, now)),
                        (true, _) => {
                            session.start_cycle(run);
                            session.fail_cycle(run, &end, now);
                        }
                        (false, _) => {
                            session.start_cycle(run);
                            session.finish_cycle(run, &end, now);
                        }
                    }
                }
                let sibling = session.begin_cycle(&cycle("b"), now);
                session.finish_cycle(sibling, &answer("seen"), now);
                let json = session.transcript().to_json();
                for text in all.iter().filter(|text| **text != stays) {
                    assert!(!json.contains(&**text), "{text}: {json}");
                }
                assert!(json.contains(stays) && json.contains("seen"), "{stays}: {json}");
                assert_eq!(session.validator().findings(), []);
                assert!(session.cycles().is_empty() && !session.validator().waits());
            });
        }
    }
}

/// A failed call of the model takes the refusal back with the use, and leaves it where that stays.
#[test]
fn a_refusal_goes_with_its_use() {
    for mode in MODES {
        for use_stays in [false, true] {
            let format = Format::AnthropicMessages;
            let sessions = sessions(format, mode, json!({}));
            sessions.with("s", |session, now| {
                say(session, "go");
                let before = session.checkpoint(Operation::ApiCall, now).id;
                push_step(session, &["a", "b"]);
                let behind = session.checkpoint(Operation::ApiCall, now).id;
                let [a, b] = ["a", "b"].map(|id| session.begin_cycle(&cycle(id), now));
                let refused = failed("no", Ran::No);
                session.fail_cycle(a, &refused, now);
                session.finish_cycle(b, &answer("paid"), now);
                assert_eq!(session.transcript().len(), 3);
                let to = if use_stays { &behind } else { &before };
                session.handle_error(ModelEnd::Filtered, Some(to), now);
                let json = session.transcript().to_json();
                assert!(session.validate().valid && !session.validator().waits(), "{json}");
                assert_eq!(json.contains("\"no\""), use_stays, "{json}");
                let is_kept = use_stays || mode == CycleMode::Preserve;
                assert_eq!(json.contains("paid"), is_kept, "{json}");
            });
        }
    }
}

#[test]
fn every_state_of_a_cycle_is_there_to_see() {
    let sessions = sessions(Format::OpenAiChat, CycleMode::Preserve, json!({}));
    sessions.with("s", |session, now| {
        push_step(session, &["a", "b"]);
        let a = session.begin_cycle(&cycle("a"), now);
        assert_eq!(session.cycle_state(a), Some(CycleState::Pending));
        session.start_cycle(a);
        assert_eq!(session.cycle_state(a), Some(CycleState::Executing));
        session.finish_cycle(a, &answer("1"), now);
        assert_eq!(session.cycle_state(a), Some(CycleState::Recording));
        let b = session.begin_cycle(&cycle("b"), now);
        session.finish_cycle(b, &answer("2"), now);
        assert_eq!(session.cycle_state(a), Some(CycleState::Committed));
        assert_eq!(session.cycle_state(b), Some(CycleState::Committed));
        let refused = failed("no", Ran::No);
        let c = session.begin_cycle(&cycle("c"), now);
        session.fail_cycle(c, &refused, now);
        assert_eq!(session.cycle_state(c), Some(CycleState::RolledBack));
        // Of many, the last thousand are remembered.
        for n in 0..1_000 {
            let id = session.begin_cycle(&cycle(&format!("n{n}")), now);
            session.fail_cycle(id, &refused, now);
        }
        assert_eq!(session.cycle_state(c), None);
    });
}

#[test]
fn an_agent_may_answer_for_itself() {
    in_each(&[CycleMode::Preserve], |format, _, session, now| {
        say(session, "go");
        push_step(session, &["a", "b"]);
        let a = session.begin_cycle(&cycle("a"), now);
        session.start_cycle(a);
        session.finish_cycle(a, &answer("ours"), now);
        for raw in results(format, &[("b", "theirs")]) {
            session.push(message(format, raw));
        }
        let json = session.transcript().to_json();
        assert_eq!(session.validator().findings(), [], "{json}");
        assert!(json.contains("ours") && json.contains("theirs") && !json.contains("unknown"));
    });
}
