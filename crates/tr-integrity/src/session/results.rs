//! What the operations on a session give back, as 002 has it.
use crate::{message::Message, session::cycle::ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use tr_core::SessionAction;

/// What came of a tool cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCycleResult {
    /// Whether the cycle is recorded with the tool's own answer.
    pub success: bool,
    /// What is recorded, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether nothing of it is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<bool>,
}

/// What was done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecoveryAction {
    /// The session is as it was at the checkpoint.
    RolledBack,
    /// The session was corrupt, and is repaired.
    Repaired,
    /// The session could not be repaired, and begins anew; it is archived.
    Reset,
    /// Nothing could be done here.
    Escalate,
    /// There was no checkpoint: the session was checked, and repaired where that is allowed.
    ValidateAndRepair,
}

impl RecoveryAction {
    /// What observers are told.
    pub(crate) const fn told(self) -> SessionAction {
        match self {
            Self::RolledBack => SessionAction::RolledBack,
            Self::Repaired => SessionAction::Repaired,
            Self::Reset => SessionAction::Reset,
            Self::Escalate => SessionAction::Escalate,
            Self::ValidateAndRepair => SessionAction::ValidateAndRepair,
        }
    }
}

/// What was done about a failure, and what the user is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorRecovery {
    /// What was done.
    pub action: RecoveryAction,
    /// For the user.
    pub message: String,
    /// The checkpoint to which the session was rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<str>>,
    /// More of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
}

/// How to reset a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResetOptions {
    /// Keeps the messages in the session's archive.
    pub archive: bool,
}

/// What a reset did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResetResult {
    /// Always true.
    pub success: bool,
    /// Whether the messages are in the archive.
    pub archived: bool,
    /// How many messages are left: the system's prompt.
    pub remaining_messages: usize,
}

/// The messages of a session before a reset.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Archive {
    /// When it was reset, in milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// What it held.
    pub messages: Vec<Message>,
}

/// Something that happened to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Incident {
    /// What went wrong, or was done about it: `content_filter`, `api_error`, `session_refused`,
    /// `blocked`, `outcome_unknown`, `not_recorded`, `tool_cycle` (taken back), `rollback`,
    /// `restore`, `repair`, `reset`. With [`verbose`](crate::Layer0Config::verbose) also
    /// `checkpoint`, `commit`, `prune`, `cycle_begun`, `cycle_recorded`, `cycle_abandoned`, `load`.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// When, in milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// The checkpoint that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<str>>,
    /// How many messages were rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<usize>,
}
