//! Tool cycles within a session, beside its other events.
use crate::{
    common::{FORMATS, message, push_step, results, says, step, uses},
    session::{say, sessions},
};
use serde_json::json;
use tr_core::{Answer, CycleRef, Ran};
use tr_integrity::{CycleMode, Format, ModelEnd, Operation};

fn cycle<'r>(id: &'r str) -> CycleRef<'r> {
    CycleRef { session: "s", tool_use_id: id, name: "pay", input: r#"{"eur":5}"# }
}

fn answer(text: &str) -> Answer<'_> {
    Answer { content: text.into(), is_error: false, ran: Ran::Yes }
}

#[test]
fn si_12_content_filter_during_a_tool() {
    for format in FORMATS {
        for mode in [CycleMode::Preserve, CycleMode::Rollback] {
            let sessions = sessions(format, mode, json!({}));
            sessions.with("s", |session, now| {
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
    }
}

#[test]
fn results_of_a_step_become_visible_together() {
    for format in FORMATS {
        let sessions = sessions(format, CycleMode::Preserve, json!({}));
        sessions.with("s", |session, now| {
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
}

#[test]
fn the_user_speaks_while_a_tool_runs() {
    for format in FORMATS {
        let sessions = sessions(format, CycleMode::Preserve, json!({}));
        sessions.with("s", |session, now| {
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
}

#[test]
fn recovery_settles_what_nobody_drives() {
    for format in FORMATS {
        for mode in [CycleMode::Preserve, CycleMode::Rollback] {
            let sessions = sessions(format, mode, json!({}));
            sessions.with("s", |session, now| {
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
    }
}

/// A tool that did not run leaves no trace, even where the agent has recorded its use.
#[test]
fn recovery_takes_uses_back_that_did_not_run() {
    for format in FORMATS {
        let sessions = sessions(format, CycleMode::Preserve, json!({}));
        sessions.with("s", |session, now| {
            say(session, "go");
            push_step(session, &["a", "b"]);
            let [a, b] = ["a", "b"].map(|id| session.begin_cycle(&cycle(id), now));
            session.start_cycle(a);
            session.start_cycle(b);
            session.finish_cycle(a, &answer("1"), now);
            let refused = Answer { content: "circuit open".into(), is_error: true, ran: Ran::No };
            let result = session.fail_cycle(b, &refused, now);
            assert_eq!(result.rolled_back, Some(true));
            session.recover(now);
            let json = session.transcript().to_json();
            assert!(session.validate().valid, "{json}");
            let left: Vec<_> = session.transcript().messages()[1].tool_uses().collect();
            assert_eq!((left, session.validator().pending().count()), (vec!["a"], 0), "{json}");
        });
    }
}

#[test]
fn an_agent_may_answer_for_itself() {
    for format in FORMATS {
        let sessions = sessions(format, CycleMode::Preserve, json!({}));
        sessions.with("s", |session, now| {
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
}
