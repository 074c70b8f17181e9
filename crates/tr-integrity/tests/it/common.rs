//! Messages of all forms, short, and steps of sessions.
#[path = "../../../tr-transcript/tests/it/common.rs"]
mod messages;

pub(crate) use self::messages::*;
use tr_integrity::{CycleMode, Session, Sessions};

pub(crate) const MODES: [CycleMode; 2] = [CycleMode::Preserve, CycleMode::Rollback];

/// The agent records a step.
pub(crate) fn push_step(session: &mut Session, ids: &[&str]) {
    let format = session.transcript().format();
    step(format, ids).into_iter().for_each(|raw| session.push(message(format, raw)));
}

/// Reasoning of OpenAI's Responses.
pub(crate) fn reasoning(id: &str) -> String {
    format!(r#"{{"type":"reasoning","id":"{id}","summary":[],"encrypted_content":"gAAA{id}"}}"#)
}

/// The session `s`, which is valid.
pub(crate) fn json(sessions: &Sessions) -> String {
    sessions.with("s", |session, _| {
        assert!(session.validate().valid, "{}", session.transcript().to_json());
        session.transcript().to_json()
    })
}
