//! Messages of all forms, short, and steps of sessions.
#[path = "../../../tr-transcript/tests/it/common.rs"]
mod messages;

pub(crate) use self::messages::*;
use tr_integrity::Session;

/// The agent records a step.
pub(crate) fn push_step(session: &mut Session, ids: &[&str]) {
    let format = session.transcript().format();
    step(format, ids).into_iter().for_each(|raw| session.push(message(format, raw)));
}

/// Reasoning of OpenAI's Responses.
pub(crate) fn reasoning(id: &str) -> String {
    format!(r#"{{"type":"reasoning","id":"{id}","summary":[],"encrypted_content":"gAAA{id}"}}"#)
}
