//! The results of operations on a session.
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use tr_core::SessionAction;
use tr_transcript::Message;

/// What was done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecoveryAction {
    /// The session was rolled back to the checkpoint.
    RolledBack,
    /// The session was invalid and was repaired.
    Repaired,
    /// The session could not be repaired and was reset; its messages are archived.
    Reset,
    /// Nothing was done.
    Escalate,
    /// There was no checkpoint: the session was validated, and repaired if that is allowed.
    ValidateAndRepair,
}

impl RecoveryAction {
    /// The action for observers.
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

/// What was done about a failure, with a message for the user.
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
    /// Further details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
}

/// Options of a reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResetOptions {
    /// Keeps the messages in the session's archive.
    pub archive: bool,
}

/// The result of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResetResult {
    /// Always true.
    pub success: bool,
    /// Whether the messages were archived.
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
    /// The archived messages.
    pub messages: Vec<Message>,
}

/// An incident of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Incident {
    /// What went wrong, or was done about it: `content_filter`, `api_error`, `session_refused`,
    /// `blocked`, `outcome_unknown`, `not_recorded`, `tool_cycle` (rolled back), `rollback`,
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
