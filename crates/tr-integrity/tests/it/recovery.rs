//! 002's `handleError`: each of its actions, message by message.
use crate::{
    common::{FORMATS, of, results, says, user, uses},
    session::{say, sessions},
};
use serde_json::json;
use tr_integrity::{Complaint, CycleMode, Format, ModelEnd, Operation, Session};

const REFUSED: ModelEnd = ModelEnd::Refused(Complaint::IncompleteUse);

fn with(format: Format, messages: &[String], config: serde_json::Value) -> Session {
    let sessions = sessions(format, CycleMode::Preserve, config);
    sessions.insert(Session::load("s", of(format, messages)));
    sessions.remove("s").unwrap()
}

fn corrupt(format: Format) -> Vec<String> {
    vec![user("hi"), uses(format, &["a"]), user("so?")]
}

#[test]
fn rolled_back() {
    for format in FORMATS {
        let mut session = with(format, &[user("hi")], json!({}));
        for (end, what) in
            [(ModelEnd::Filtered, "Content filter triggered."), (ModelEnd::Failed, "API error.")]
        {
            let made = session.checkpoint(Operation::ApiCall, 0);
            say(&mut session, "more");
            say(&mut session, "and more");
            let recovery = session.handle_error(end, None, 0);
            let message = format!("{what} Rolled back 2 messages.");
            let expected =
                json!({"action": "rolled_back", "message": message, "checkpoint": made.id});
            assert_eq!(serde_json::to_value(&recovery).unwrap(), expected);
            assert_eq!(session.transcript().len(), 1);
        }
    }
}

#[test]
fn validate_and_repair() {
    for format in FORMATS {
        let mut session = with(format, &[user("hi")], json!({}));
        let recovery = session.handle_error(ModelEnd::Filtered, None, 0);
        assert_eq!(
            serde_json::to_value(&recovery).unwrap(),
            json!({
                "action": "validate_and_repair",
                "message": "Content filtered with no checkpoint. Validating session state.",
                "details": {"valid": true},
            })
        );
        let mut session = with(format, &corrupt(format), json!({}));
        let recovery = session.handle_error(REFUSED, None, 0);
        assert_eq!(
            serde_json::to_value(&recovery).unwrap(),
            json!({
                "action": "validate_and_repair",
                "message": "The provider refuses the session.",
                "details": {"valid": false, "repairsOffered": 1},
            })
        );
        assert!(!session.validate().valid);
    }
}

#[test]
fn repaired() {
    for format in FORMATS {
        for (end, what) in [
            (REFUSED, "The provider refuses the session."),
            (ModelEnd::Filtered, "Content filtered with no checkpoint. Validating session state."),
        ] {
            let mut session = with(format, &corrupt(format), json!({"autoRepair": true}));
            let recovery = session.handle_error(end, None, 0);
            assert_eq!(
                serde_json::to_value(&recovery).unwrap(),
                json!({
                    "action": "repaired",
                    "message": format!("{what} Made 1 repairs."),
                    "details": {"repairs": 1},
                })
            );
            assert!(session.validate().valid);
        }
    }
}

/// The provider refuses what we find nothing wrong with, and refuses it again.
#[test]
fn reset() {
    for format in FORMATS {
        for auto_repair in [false, true] {
            let mut messages = vec![user("hi"), uses(format, &["a"])];
            messages.extend(results(format, &[("a", "1")]));
            let mut session = with(format, &messages, json!({"autoRepair": auto_repair}));
            let first = session.handle_error(REFUSED, None, 1);
            assert_eq!(serde_json::to_value(first.action).unwrap(), json!("validate_and_repair"));
            // An answer in between: the session is not hopeless.
            let answered = session.checkpoint(Operation::ApiCall, 2);
            session.commit(&answered.id, 2).unwrap();
            let second = session.handle_error(REFUSED, None, 3);
            assert_eq!(second, first);

            let third = session.handle_error(REFUSED, None, 4);
            if !auto_repair {
                assert_eq!(third, first);
                continue;
            }
            assert_eq!(
                serde_json::to_value(&third).unwrap(),
                json!({
                    "action": "reset",
                    "message": "The provider refuses the session. It could not be repaired and was reset.",
                    "details": {"remainingMessages": 0},
                })
            );
            assert!(session.transcript().is_empty());
            assert_eq!(session.archives().next().unwrap().messages.len(), messages.len());
        }
    }
}

#[test]
fn escalate() {
    for format in FORMATS {
        let mut session = with(format, &[user("hi"), says("hello")], json!({}));
        let recovery = session.handle_error(ModelEnd::Failed, None, 0);
        assert_eq!(
            serde_json::to_value(&recovery).unwrap(),
            json!({
                "action": "escalate",
                "message": "API error with no checkpoint. The session is unchanged.",
            })
        );
        assert_eq!(session.transcript().len(), 2);
    }
}
