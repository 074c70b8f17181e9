//! A session in memory: a JSON document, JSON lines or a session of a database. Commands get changed copies.
mod agents;
pub(crate) mod json_document;
pub(crate) mod json_lines;
pub(crate) mod kind;
mod messages;
mod outline;
pub(crate) mod stored_session;

use super::{
    database::Edit,
    report::{About, Act, Form, Health, Lost},
    sidecar::{Checkpoint, hash},
    verdict::NotJudged,
};
use std::{collections::BTreeSet, fmt};
use tr_core::printable;
use tr_transcript::{CheckpointError, FileCheckpoint, Repair, RepairMode, Transcript};

/// A session in memory. Its records are lines, or messages of a JSON text.
pub(crate) trait Document: fmt::Debug {
    fn about(&self) -> About;

    /// The file's bytes; for a session in a database, its messages as one JSON text.
    fn bytes(&self) -> &[u8];

    /// The lines that are not empty with their line numbers, or the messages with their indexes.
    fn numbered(&self) -> Vec<(u64, &[u8])>;

    /// The line of the file at which this record begins.
    fn line_of(&self, record: u64) -> Option<u64>;

    fn health(&self) -> Health;

    /// Plans a repair; [`plan`] also refuses one that would be a guess.
    fn plan(&self, repair: Repair) -> Result<Planned, NotJudged>;

    /// The longest valid beginning in which all calls are answered.
    fn before_fault(&self) -> Box<dyn Document>;

    /// The end of a new checkpoint in a file; `None` if the file is empty, or if the session stores
    /// its own checkpoints.
    fn end(&self) -> Option<End>;

    /// The content at a checkpoint; `None` if it has changed since.
    fn at(&self, checkpoint: &Checkpoint) -> Option<Box<dyn Document>>;

    /// Whether the session can be rolled back to a checkpoint.
    fn holds(&self, checkpoint: &Checkpoint) -> bool {
        self.at(checkpoint).is_some()
    }

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

/// The end of a new checkpoint in a file.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) length: u64,
    /// The hash of all bytes before it.
    pub(crate) content_hash: String,
    /// The library's id of this point, in a session of JSON lines.
    pub(crate) point: Option<Box<str>>,
}

impl End {
    /// The end of `before`.
    fn of(before: &[u8], point: Option<Box<str>>) -> Self {
        Self { length: before.len() as u64, content_hash: hash(before), point }
    }
}

/// A planned repair.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) acts: Vec<Act>,
    pub(crate) losses: Vec<Lost>,
    /// The records that the actions and losses name: lines, or messages of a JSON text.
    pub(crate) reported: BTreeSet<u64>,
    /// How many bytes outside of records it removes that may hold content.
    pub(crate) dropped: u64,
    /// The first message that is not fully understood and would change.
    changed_unknown: Option<usize>,
    /// The first message that may be the answer to a call whose outcome the repair reports as
    /// unknown.
    doubtful_answer: Option<usize>,
    /// In JSON lines, the first line that names such a call in an unknown form, and the call's id.
    named_elsewhere: Option<(u64, String)>,
    /// The form as which the repaired session would be read, if it is another one and the session
    /// is invalid in one of the two.
    other_form: Option<Form>,
    /// The repaired session; `None` if nothing changes.
    pub(crate) after: Option<Box<dyn Document>>,
}

impl Planned {
    /// With the first messages that make it a guess.
    fn compared(self, before: &Transcript, after: &Transcript) -> Self {
        if self.acts.is_empty() {
            return self;
        }
        Self {
            changed_unknown: before.first_changed_unknown(after),
            doubtful_answer: before.first_doubtful_answer(after),
            ..self
        }
    }

    /// Why it would be a guess; `form` is the session's.
    fn doubt(&self, form: Form) -> Option<String> {
        if let Some(message) = self.changed_unknown {
            return Some(format!(
                "the repair would change message {message}, which has unknown members or an unknown \
                 type"
            ));
        }
        if let Some(message) = self.doubtful_answer {
            return Some(format!(
                "a call has no recognised result, and message {message} may be its result: its \
                 outcome cannot be called unknown"
            ));
        }
        if let Some((line, id)) = &self.named_elsewhere {
            return Some(format!(
                "line {line} mentions the call {}, which has no result, in an unknown form: its \
                 outcome cannot be called unknown",
                printable(id)
            ));
        }
        self.other_form.map(|other| {
            format!(
                "only what the repair would change identifies the form {form}: the repaired \
                 session would be read as {other}, and is not valid in both"
            )
        })
    }
}

/// Plans a repair. If it would change an unknown part, the session is not judged and nothing is
/// planned.
pub(crate) fn plan(
    document: &dyn Document,
    mode: RepairMode,
    close_tail: bool,
) -> Result<Planned, NotJudged> {
    let repair = Repair::new(mode).with_members();
    let planned = document.plan(if close_tail { repair.close_tail() } else { repair })?;
    match planned.doubt(document.about().form) {
        Some(reason) => Err(NotJudged::new(
            reason,
            "nothing was changed; check names what is wrong, and rollback --before-fault \
             goes back to before it",
        )),
        None => Ok(planned),
    }
}
