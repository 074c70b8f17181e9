//! The conversation that Claude Code gives to the servers that it starts.
use super::via::label;
use std::{env, ffi::OsString};
use tr_core::canonical::Digest;

/// Claude Code's folder: a resumed session has a [`SESSION`] of its own, so only this tells the conversation.
const PROJECT: &str = "CLAUDE_PROJECT_DIR";

/// The session that Claude Code gives to the servers that it starts.
const SESSION: &str = "CLAUDE_CODE_SESSION_ID";

/// The conversation, if Claude Code has started this process.
pub(super) fn session() -> Option<Box<str>> {
    let named = |name| env::var_os(name).filter(|value| !value.is_empty());
    of(named(PROJECT), named(SESSION))
}

/// The conversation in this folder, else in this session. Readers of the records need not
/// learn the folder's name, so its digest is used.
pub(super) fn of(project: Option<OsString>, session: Option<OsString>) -> Option<Box<str>> {
    let of_project =
        |folder: OsString| label("project", &Digest::of_bytes(folder.as_encoded_bytes()));
    let of_session = |id: OsString| id.into_string().ok().map(String::into_boxed_str);
    project.map(of_project).or_else(|| of_session(session?))
}
