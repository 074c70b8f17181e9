//! A session in memory: messages as one JSON text, of a file or a database, or JSON lines. Commands get changed copies.
pub(crate) mod agents;
pub(crate) mod json_document;
pub(crate) mod json_lines;
pub(crate) mod kind;
pub(crate) mod messages;
mod outline;

use super::{
    edit::Edit,
    report::{About, Form, Health},
    sidecar::Checkpoint,
    verdict::NotJudged,
};
use std::{collections::BTreeSet, fmt};
use tr_transcript::{CheckpointError, FileAction, FileCheckpoint, FileLoss, Repair};

/// Records, each with its number.
pub(crate) type Numbered<'d> = Box<dyn Iterator<Item = (u64, &'d [u8])> + 'd>;

/// A session in memory. Its records are lines, or messages of a JSON text.
pub(crate) trait Document: fmt::Debug {
    fn about(&self) -> About;

    /// The file's bytes; for a session in a database, its messages as one JSON text.
    fn bytes(&self) -> &[u8];

    /// The lines that are not empty with their line numbers, or the messages with their indexes.
    fn numbered(&self) -> Numbered<'_>;

    /// The line of the file at which this record begins.
    fn line_of(&self, record: u64) -> Option<u64>;

    fn health(&self) -> Health;

    /// Plans a repair. Refuses one that would be a guess.
    fn plan(&self, repair: Repair) -> Result<Planned, NotJudged>;

    /// The longest valid beginning in which all calls are answered.
    fn before_fault(&self) -> Box<dyn Document>;

    /// The bytes before a new checkpoint in a file, and the library's id of this point in a session of
    /// JSON lines; `None` if the file is empty, or if the session stores its own checkpoints.
    fn end(&self) -> Option<(&[u8], Option<Box<str>>)>;

    /// The content at a checkpoint; `None` if it has changed since.
    fn at(&self, checkpoint: &Checkpoint) -> Option<Box<dyn Document>>;

    /// The newest points for a rollback without a checkpoint: the beginnings of turns, in a session
    /// of JSON lines.
    fn turns(&self, _most: usize) -> Vec<FileCheckpoint> {
        Vec::new()
    }

    /// The content at such a point.
    fn at_turn(&self, id: &str) -> Result<Box<dyn Document>, CheckpointError> {
        Err(CheckpointError::NotFound(id.into()))
    }

    /// Only the system's prompt, or the header.
    ///
    /// `archive` keeps the messages in the session's own archive, if it has one.
    fn prompt(&self, archive: bool) -> Box<dyn Document>;

    /// In a database, the change since the stored state.
    fn edit(&self) -> Option<&Edit> {
        None
    }

    /// In a database, its checkpoints, oldest first.
    fn checkpoints(&self) -> Vec<Checkpoint> {
        Vec::new()
    }
}

/// A planned repair.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) acts: Vec<FileAction>,
    pub(crate) losses: Vec<FileLoss>,
    /// The records that the actions and losses name: lines, or messages of a JSON text.
    pub(crate) reported: BTreeSet<u64>,
    /// How many bytes outside of records it removes that may hold content.
    pub(crate) dropped: u64,
    /// The repaired session; `None` if nothing changes.
    pub(crate) after: Option<Box<dyn Document>>,
}

/// Why a repair would be a guess that changes this message, or calls an outcome unknown to which this message may be
/// the answer.
fn doubt(changed: Option<usize>, answer: Option<usize>) -> Option<String> {
    if let Some(message) = changed {
        return Some(format!(
            "the repair would change message {message}, which has unknown members or an unknown type"
        ));
    }
    answer.map(|message| {
        format!(
            "a call has no recognized result, and message {message} may be its result: its outcome \
             cannot be called unknown"
        )
    })
}

/// Refuses a repair that would be a guess, for this reason, or since the result would be read as another form than this:
/// nothing is planned.
fn refuse_guess(
    doubt: Option<String>,
    form: Form,
    other: impl FnOnce() -> Option<Form>,
) -> Result<(), NotJudged> {
    let of_form = |other| {
        format!(
            "only what the repair would change identifies the form {form}: the repaired session would \
             be read as {other}, and is not valid in both"
        )
    };
    let Some(reason) = doubt.or_else(|| other().map(of_form)) else { return Ok(()) };
    let help = "nothing was changed; check names what is wrong, and rollback --before-fault goes back \
                to before it";
    Err(NotJudged::new(reason, help))
}
