//! The content of a checkpoint file.
use serde::{Deserialize, Serialize};
use tr_integrity::Operation;

/// A checkpoint. For one in a file, with its length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Checkpoint {
    pub(crate) id: String,
    pub(crate) session_id: String,
    /// When it was made, in milliseconds since the Unix epoch.
    pub(crate) timestamp: u64,
    /// How many messages are before it.
    pub(crate) message_index: usize,
    /// The BLAKE3 hash of the file's bytes before it, or the session's own hash.
    pub(crate) content_hash: String,
    pub(crate) operation: Operation,
    /// How many bytes of the file are before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<u64>,
    /// Its id for [`SessionFile::rollback`](tr_transcript::SessionFile::rollback).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) point: Option<Box<str>>,
    /// For a session in a database: whether the checkpoint's operation succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) committed: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// The content of a checkpoint file.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// Invalid lines: torn, or of another program. They are kept.
    pub(crate) unreadable: Vec<usize>,
    /// Whether its last line has no line break.
    pub(crate) ends_torn: bool,
}

impl Checkpoint {
    /// Converts a checkpoint of a session in a database.
    pub(crate) fn of_session(checkpoint: &tr_integrity::Checkpoint) -> Self {
        Self {
            id: checkpoint.id.to_string(),
            session_id: checkpoint.session_id.to_string(),
            timestamp: checkpoint.timestamp,
            message_index: checkpoint.message_index,
            content_hash: checkpoint.content_hash.to_string(),
            operation: checkpoint.operation,
            length: None,
            point: None,
            committed: Some(checkpoint.is_committed()),
            note: None,
        }
    }
}

impl Kept {
    /// Reads a checkpoint file.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut kept =
            Self { ends_torn: bytes.last().is_some_and(|last| *last != b'\n'), ..Self::default() };
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            match serde_json::from_slice::<Checkpoint>(line) {
                Ok(checkpoint) if checkpoint.length.is_some() => kept.checkpoints.push(checkpoint),
                _ if line.iter().all(u8::is_ascii_whitespace) => {}
                _ => kept.unreadable.push(at + 1),
            }
        }
        kept
    }

    /// The checkpoint with this id, with this point, or with this number at the end of its id; the
    /// last one if several match.
    pub(crate) fn get(&self, id: &str) -> Option<&Checkpoint> {
        let mut newest = self.checkpoints.iter().rev();
        let named = newest.clone().find(|it| it.id == id || it.point.as_deref() == Some(id));
        let has_number =
            |it: &&Checkpoint| it.id.rsplit_once('#').is_some_and(|(_, number)| number == id);
        named.or_else(|| newest.find(has_number))
    }
}

/// The hash of a session's beginning.
pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
