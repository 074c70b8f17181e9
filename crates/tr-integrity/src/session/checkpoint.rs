//! Points of a session to which it can be rolled back.
use serde::{Deserialize, Serialize};
use tr_transcript::Message;

/// The operation that a checkpoint precedes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Operation {
    /// A tool call.
    ToolCycle,
    /// Shortening the transcript.
    Compaction,
    /// A call of the model.
    ApiCall,
    /// None: the caller asked for it.
    Manual,
}

/// A point of a session, before an operation that may fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Checkpoint {
    /// Unique.
    pub id: Box<str>,
    /// The session that it belongs to.
    pub session_id: Box<str>,
    /// When it was made, in milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// How many messages the session had.
    pub message_index: usize,
    /// Hash of these messages: a BLAKE3 chain over each message's bytes.
    pub content_hash: Box<str>,
    /// The operation that it precedes.
    pub operation: Operation,
    /// The messages, if they are kept.
    #[serde(skip)]
    pub snapshot: Option<Vec<Message>>,
    #[serde(skip)]
    pub(super) is_committed: bool,
    #[serde(skip)]
    pub(super) number: u64,
}

impl Checkpoint {
    pub(super) fn id_of(session: &str, number: u64) -> Box<str> {
        format!("{session}#{number}").into()
    }

    /// Whether its operation succeeded.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        self.is_committed
    }
}

/// What a rollback did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RollbackResult {
    /// Always true; a refused rollback is an error.
    pub success: bool,
    /// How many messages were removed.
    pub messages_removed: usize,
    /// How many are left.
    pub new_message_count: usize,
}
