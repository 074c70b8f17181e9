//! Checkpoints, rollback, reset, and what is done about failures.
use crate::common::{FORMATS, message, of, results, says, user, uses};
use serde_json::json;
use std::sync::Arc;
use tr_core::SetClock;
use tr_integrity::{
    Checkpoint, CheckpointError, Complaint, CycleMode, Format, Layer0Config, ModelEnd, Operation,
    RecoveryAction, Repair, ResetOptions, Session, Sessions,
};

pub(crate) fn sessions(format: Format, mode: CycleMode, config: serde_json::Value) -> Sessions {
    let config = serde_json::from_value(config).unwrap();
    let clock = Arc::new(SetClock::at(1_000));
    Sessions::builder(format).config(config).mode(mode).clock(clock).build().unwrap()
}

fn session(format: Format, messages: &[String]) -> Session {
    Session::load("s", of(format, messages))
}

pub(crate) fn say(session: &mut Session, text: &str) {
    let format = session.transcript().format();
    session.push(message(format, user(text)));
}

#[test]
fn si_06_create_checkpoint() {
    for format in FORMATS {
        let mut session = session(format, &[user("hi"), says("hello")]);
        let made = session.checkpoint(Operation::ToolCycle, 77);
        assert_eq!(session.latest(), Some(&made));
        let json = serde_json::to_value(&made).unwrap();
        assert_eq!(json["id"], "s#1");
        assert_eq!(json["sessionId"], "s");
        assert_eq!(json["timestamp"], 77);
        assert_eq!(json["messageIndex"], 2);
        assert_eq!(json["contentHash"].as_str().unwrap().len(), 64);
        assert_eq!(json["operation"], "tool_cycle");
        assert_eq!(json.as_object().unwrap().len(), 6);
        assert!(!made.is_committed());
    }
    let names = [Operation::Compaction, Operation::ApiCall, Operation::Manual];
    assert_eq!(serde_json::to_value(names).unwrap(), json!(["compaction", "api_call", "manual"]));
}

#[test]
fn si_07_commit_checkpoint() {
    let mut session = session(Format::AnthropicMessages, &[user("hi")]);
    let made = session.checkpoint(Operation::Manual, 0);
    assert_eq!(session.active(), Some(&made));
    session.commit(&made.id, 1).unwrap();
    assert!(session.latest().unwrap().is_committed());
    assert_eq!(session.active(), None);
    assert_eq!(session.commit("s#9", 1), Err(CheckpointError::NotFound("s#9".into())));
}

#[test]
fn si_08_rollback_truncates() {
    for format in FORMATS {
        let mut session = session(format, &[user("hi")]);
        let before = session.transcript().to_json();
        let made = session.checkpoint(Operation::ApiCall, 0);
        session.push(message(format, uses(format, &["a"])));
        say(&mut session, "broken");
        assert!(!session.validate().valid);
        let rolled_back = session.rollback(&made.id, 5).unwrap();
        assert_eq!(session.transcript().to_json(), before);
        assert!(session.validate().valid);
        assert_eq!(
            serde_json::to_value(rolled_back).unwrap(),
            json!({"success": true, "messagesRemoved": 2, "newMessageCount": 1})
        );
        // The id may be used again: the validator has forgotten it too.
        session.push(message(format, uses(format, &["a"])));
        assert_eq!(session.validator().findings(), []);
        assert_eq!(session.validator().pending().collect::<Vec<_>>(), ["a"]);
    }
}

#[test]
fn si_08_rollback_into_a_step_waits_for_its_results_again() {
    for format in FORMATS {
        let mut session = session(format, &[user("hi"), uses(format, &["a"])]);
        let made = session.checkpoint(Operation::Manual, 0);
        say(&mut session, "oops");
        assert!(!session.validate().valid);
        session.rollback(&made.id, 0).unwrap();
        assert_eq!(session.validator().pending().collect::<Vec<_>>(), ["a"]);
        for raw in results(format, &[("a", "1")]) {
            session.push(message(format, raw));
        }
        assert_eq!(session.validator().findings(), []);
        assert_eq!(session.validator().pending().count(), 0);
    }
}

#[test]
fn si_09_rollback_with_an_altered_prefix_is_refused() {
    let format = Format::AnthropicMessages;
    let mut session = session(format, &[user(" "), user("hi")]);
    let made = session.checkpoint(Operation::Manual, 0);
    say(&mut session, "more");
    let plan = session.plan(Repair::preserve());
    let _ = session.apply(plan, 1).unwrap();
    let before = session.transcript().to_json();
    let error = session.rollback(&made.id, 2).unwrap_err();
    assert_eq!(error, CheckpointError::Mismatch);
    assert_eq!(error.to_string(), "Checkpoint integrity mismatch — messages were modified");
    assert_eq!(session.transcript().to_json(), before);
    assert_eq!((session.latest(), session.active()), (None, None));
}

#[test]
fn si_09_rollback_to_a_missing_id_is_refused() {
    let mut session = session(Format::AnthropicMessages, &[user("hi")]);
    let error = session.rollback("nowhere", 2).unwrap_err();
    assert_eq!(error.to_string(), "Checkpoint not found: nowhere");
    assert_eq!(session.transcript().len(), 1);
    // A checkpoint behind the point that a rollback went to is gone as well.
    let first = session.checkpoint(Operation::Manual, 0);
    say(&mut session, "more");
    let second = session.checkpoint(Operation::Manual, 0);
    session.rollback(&first.id, 0).unwrap();
    assert!(matches!(session.rollback(&second.id, 0), Err(CheckpointError::NotFound(_))));
}

#[test]
fn the_hash_depends_on_every_message_and_their_order() {
    let hash = |messages: &[String]| {
        session(Format::AnthropicMessages, messages).checkpoint(Operation::Manual, 0).content_hash
    };
    let (a, b) = (user("a"), user("b"));
    let hashes = [
        hash(&[]),
        hash(std::slice::from_ref(&a)),
        hash(&[a.clone(), b.clone()]),
        hash(&[b, a.clone()]),
        hash(&[a.clone(), a]),
    ];
    for (at, one) in hashes.iter().enumerate() {
        assert!(!hashes[..at].contains(one));
    }
}

#[test]
fn old_committed_checkpoints_are_pruned() {
    let sessions =
        sessions(Format::OpenAiChat, CycleMode::Preserve, json!({"checkpointRetention": 2}));
    sessions.with("s", |session, now| {
        let open = session.checkpoint(Operation::Manual, now);
        let made: Vec<Checkpoint> =
            (0..5).map(|_| session.checkpoint(Operation::ToolCycle, now)).collect();
        for checkpoint in &made {
            session.commit(&checkpoint.id, now).unwrap();
        }
        let left: Vec<_> = session.checkpoints().iter().map(|checkpoint| &*checkpoint.id).collect();
        assert_eq!(left, [&*open.id, &*made[3].id, &*made[4].id]);
        assert_eq!(session.prune(0), 2);
        assert_eq!(session.checkpoints().len(), 1);
    });
}

#[test]
fn checkpoints_made_by_hand_are_not_pushed_out_by_calls() {
    let sessions =
        sessions(Format::OpenAiChat, CycleMode::Preserve, json!({"checkpointRetention": 2}));
    sessions.with("s", |session, now| {
        let mut make = |operation| {
            let made = session.checkpoint(operation, now).id;
            session.commit(&made, now).unwrap();
            made
        };
        let by_hand: Vec<_> = (0..3).map(|_| make(Operation::Manual)).collect();
        let calls: Vec<_> = (0..5).map(|_| make(Operation::ApiCall)).collect();
        let left: Vec<_> = session.checkpoints().iter().map(|checkpoint| &checkpoint.id).collect();
        assert_eq!(left, [&by_hand[1], &by_hand[2], &calls[3], &calls[4]]);
        assert_eq!(session.prune(1), 2);
        assert_eq!(session.checkpoints()[0].id, by_hand[2]);
    });
}

#[test]
fn without_a_checkpoint_a_session_is_taken_back_to_any_message() {
    let mut session =
        session(Format::AnthropicMessages, &[user("a"), says("b"), user("c"), says("d")]);
    let first = session.checkpoint(Operation::Manual, 0);
    session.truncate(3, 5);
    assert!(session.checkpoints().is_empty(), "{first:?} lies behind the end");
    let kept = session.checkpoint(Operation::Manual, 6);
    let done = session.truncate(9, 7);
    assert_eq!((done.messages_removed, done.new_message_count), (0, 3));
    assert_eq!(session.rollback(&kept.id, 8).unwrap().messages_removed, 0);
    let noted: Vec<_> = session.incidents().map(|incident| incident.rolled_back).collect();
    assert_eq!(noted, [Some(1), Some(0), Some(0)]);
}

#[test]
fn a_snapshot_is_restored_where_a_rollback_is_refused() {
    let format = Format::AnthropicMessages;
    let sessions = sessions(format, CycleMode::Preserve, json!({"snapshotMessages": true}));
    sessions.insert(session(format, &[user(" "), user("hi")]));
    sessions.with("s", |session, now| {
        let made = session.checkpoint(Operation::Compaction, now);
        assert_eq!(made.snapshot.as_ref().map(Vec::len), Some(2));
        let plan = session.plan(Repair::preserve());
        let _ = session.apply(plan, now).unwrap();
        assert_eq!(session.rollback(&made.id, now), Err(CheckpointError::Mismatch));
        session.restore(&made.id, now).unwrap();
        assert_eq!(session.transcript().len(), 2);
        session.rollback(&made.id, now).unwrap();
    });
}

#[test]
fn si_15_reset_archives() {
    let prompts = [
        (
            Format::AnthropicMessages,
            r#"{"role":"user","content":[{"type":"text","text":"be kind","isSystemPrompt":true}]}"#,
        ),
        (Format::OpenAiChat, r#"{"role":"system","content":"be kind"}"#),
    ];
    for (format, prompt) in prompts {
        let mut session = session(format, &[prompt.to_owned(), user("hi"), uses(format, &["a"])]);
        session.checkpoint(Operation::Manual, 0);
        let before = session.transcript().messages().to_vec();
        let reset = session.reset(ResetOptions { archive: true }, 9);
        assert!(reset.success && reset.archived && reset.remaining_messages == 1, "{reset:?}");
        assert_eq!(session.transcript().messages()[0].raw(), prompt);
        assert_eq!((session.checkpoints().len(), session.validator().findings().len()), (0, 0));
        assert_eq!(session.validator().pending().count(), 0);
        let archive = session.archives().next().unwrap();
        assert_eq!((archive.timestamp, &archive.messages), (9, &before));
        let again = session.reset(ResetOptions::default(), 10);
        assert!(!again.archived && session.archives().count() == 1);
    }
}

#[test]
fn the_configuration_is_that_of_002() {
    let defaults = serde_json::to_value(Layer0Config::default()).unwrap();
    assert_eq!(
        defaults,
        json!({
            "enabled": true,
            "validateBeforeCall": true,
            "autoRepair": false,
            "checkpointRetention": 10,
            "snapshotMessages": false,
            "verbose": false,
        })
    );
    let config = serde_json::from_value(json!({"checkpointRetention": 0})).unwrap();
    let error = Sessions::builder(Format::OpenAiChat).config(config).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid session configuration: `checkpointRetention` is 0, must be 1 to 10000"
    );
}

#[test]
fn content_filter_rolls_back_and_says_so() {
    for format in FORMATS {
        let mut session = session(format, &[user("hi")]);
        let made = session.checkpoint(Operation::ApiCall, 0);
        session.push(message(format, says("cut o")));
        say(&mut session, "?");
        let recovery = session.handle_error(ModelEnd::Filtered, None, 42);
        assert_eq!(
            serde_json::to_value(&recovery).unwrap(),
            json!({
                "action": "rolled_back",
                "message": "Content filter triggered. Rolled back 2 messages.",
                "checkpoint": made.id,
            })
        );
        assert_eq!(session.transcript().len(), 1);
        let incident = session.incidents().find(|i| i.kind == "content_filter").unwrap();
        assert_eq!(
            serde_json::to_value(incident).unwrap(),
            json!({"type": "content_filter", "timestamp": 42, "checkpoint": made.id, "rolledBack": 2})
        );
    }
}

#[test]
fn content_filter_without_a_checkpoint_validates() {
    for auto_repair in [false, true] {
        let format = Format::AnthropicMessages;
        let config = json!({"autoRepair": auto_repair});
        let sessions = sessions(format, CycleMode::Preserve, config);
        sessions.insert(session(format, &[uses(format, &["a"]), user("hm")]));
        let (recovery, valid) = sessions.with("s", |session, now| {
            // A committed checkpoint is not active: what was completed since stays.
            let made = session.checkpoint(Operation::ApiCall, now);
            session.commit(&made.id, now).unwrap();
            let recovery = session.handle_error(ModelEnd::Filtered, None, now);
            (recovery, session.validate().valid)
        });
        let message = "Content filtered with no checkpoint. Validating session state.";
        assert!(recovery.message.starts_with(message));
        assert_eq!(valid, auto_repair);
        if auto_repair {
            assert_eq!(recovery.action, RecoveryAction::Repaired);
        } else {
            assert_eq!(recovery.action, RecoveryAction::ValidateAndRepair);
            assert_eq!(recovery.message, message);
            assert_eq!(recovery.details.unwrap()["repairsOffered"], 1);
        }
    }
}

#[test]
fn other_failures() {
    let mut session = session(Format::OpenAiChat, &[user("hi")]);
    let nothing = session.handle_error(ModelEnd::Failed, None, 0);
    assert_eq!(nothing.action, RecoveryAction::Escalate);
    session.checkpoint(Operation::ApiCall, 0);
    say(&mut session, "more");
    let back = session.handle_error(ModelEnd::Failed, None, 0);
    assert_eq!(back.action, RecoveryAction::RolledBack);
    assert_eq!(back.message, "API error. Rolled back 1 messages.");
    let refused = session.handle_error(ModelEnd::Refused(Complaint::OrphanedResult), None, 0);
    assert_eq!(refused.action, RecoveryAction::ValidateAndRepair);
    let names = [RecoveryAction::Reset, RecoveryAction::Repaired, RecoveryAction::Escalate];
    assert_eq!(serde_json::to_value(names).unwrap(), json!(["reset", "repaired", "escalate"]));
}

#[test]
fn sessions_are_opened_shared_and_removed() {
    let sessions = Sessions::new(Format::AnthropicMessages);
    assert!(sessions.is_empty());
    sessions.clone().with("s", |session, _| say(session, "hi"));
    assert_eq!(sessions.with("s", |session, _| session.transcript().len()), 1);
    assert_eq!(sessions.len(), 1);
    let session = sessions.remove("s").unwrap();
    assert_eq!((session.id(), sessions.len()), ("s", 0));
    assert!(sessions.remove("s").is_none());
}
