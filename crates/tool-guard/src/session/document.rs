//! A session in memory: a JSON document, JSON lines or a session of a database. Commands get changed copies.
mod agents;
pub(crate) mod json_document;
pub(crate) mod json_lines;
pub(crate) mod kind;
pub(crate) mod messages;
pub(crate) mod stored_session;

use self::{
    json_document::JsonDocument, json_lines::JsonLines, messages::Planned,
    stored_session::StoredSession,
};
use super::{
    report::{About, Health},
    sidecar::{Checkpoint, hash},
    verdict::{NotJudged, Verdict},
};
use std::borrow::Cow;
use tr_core::printable;
use tr_transcript::{CheckpointError, FileCheckpoint, Repair, RepairMode, Transcript};

/// A session that is in memory.
#[derive(Debug)]
pub(crate) enum Content {
    /// One JSON text.
    JsonDocument(JsonDocument),
    /// JSON lines.
    JsonLines(JsonLines),
    /// A session's log in a database.
    StoredSession(StoredSession),
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

impl Content {
    pub(crate) fn about(&self) -> About {
        match self {
            Self::JsonDocument(whole) => whole.about(),
            Self::JsonLines(lines) => lines.about(),
            Self::StoredSession(stored) => stored.about(),
        }
    }

    /// The file's bytes; for a session in a database, its messages as one JSON text.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::JsonDocument(whole) => whole.text().as_bytes(),
            Self::JsonLines(lines) => lines.bytes(),
            Self::StoredSession(stored) => stored.text().as_bytes(),
        }
    }

    /// The lines that are not empty with their line numbers, or the messages with their indexes.
    pub(crate) fn numbered(&self) -> Vec<(u64, &[u8])> {
        match self {
            Self::JsonDocument(whole) => (0..).zip(whole.messages().map(str::as_bytes)).collect(),
            Self::JsonLines(lines) => lines.lines().collect(),
            Self::StoredSession(stored) => {
                (0..).zip(stored.messages().map(str::as_bytes)).collect()
            }
        }
    }

    /// The line of the file at which this record begins.
    pub(crate) fn line_of(&self, record: u64) -> Option<u64> {
        match self {
            Self::JsonDocument(whole) => usize::try_from(record).ok().and_then(|at| whole.line(at)),
            Self::JsonLines(_) => Some(record),
            Self::StoredSession(_) => None,
        }
    }

    pub(crate) fn health(&self) -> Health {
        match self {
            Self::JsonDocument(whole) => whole.health(),
            Self::JsonLines(lines) => lines.health(),
            Self::StoredSession(stored) => stored.health(),
        }
    }

    /// Plans a repair. If it would change an unknown part, the session is not judged and nothing is
    /// planned.
    pub(crate) fn plan(
        &self,
        mode: RepairMode,
        close_tail: bool,
    ) -> Result<Planned<Self>, NotJudged> {
        if let Self::JsonLines(lines) = self
            && let Some(why) = lines.unsure()
        {
            return Err(why);
        }
        let repair = Repair::new(mode).with_members();
        let repair = if close_tail { repair.close_tail() } else { repair };
        let planned = match self {
            Self::JsonDocument(whole) => whole.plan(repair, mode).map(Self::JsonDocument),
            Self::JsonLines(lines) => lines.plan(repair).map(Self::JsonLines),
            Self::StoredSession(stored) => stored.plan(repair, mode).map(Self::StoredSession),
        };
        match self.doubt(&planned) {
            Some(reason) => Err(NotJudged {
                reason,
                agent: None,
                help:
                    "nothing was changed; check names what is wrong, and rollback --before-fault \
                       goes back to before it"
                        .into(),
            }),
            None => Ok(planned),
        }
    }

    /// Why a repair would be a guess.
    fn doubt(&self, planned: &Planned<Self>) -> Option<String> {
        let (changed, doubtful) = self.first_doubts(planned);
        if let Some(message) = changed {
            return Some(format!(
                "the repair would change message {message}, which has unknown members or an unknown \
                 type"
            ));
        }
        if let Some(message) = doubtful {
            return Some(format!(
                "a call has no recognised result, and message {message} may be its result: its \
                 outcome cannot be called unknown"
            ));
        }
        if let Some((line, id)) = &planned.named_elsewhere {
            return Some(format!(
                "line {line} mentions the call {}, which has no result, in an unknown form: its \
                 outcome cannot be called unknown",
                printable(id)
            ));
        }
        self.other_form(planned.after.as_ref()?)
    }

    /// The first message that is not fully understood and would change, and the first that may be
    /// the answer to a call without a result.
    fn first_doubts(&self, planned: &Planned<Self>) -> (Option<usize>, Option<usize>) {
        if planned.acts.is_empty() || matches!(self, Self::JsonLines(_)) {
            return (planned.changed_unknown, planned.doubtful_answer);
        }
        let after = planned.after.as_ref().and_then(Self::transcript);
        let (Some(before), Some(after)) = (self.transcript(), after) else { return (None, None) };
        (before.first_changed_unknown(&after), before.first_doubtful_answer(&after))
    }

    /// Why the repaired session would be detected as another form, if it is invalid in one of the
    /// two.
    fn other_form(&self, after: &Self) -> Option<String> {
        let (form, is_valid) = match (self, after) {
            (Self::JsonDocument(_), Self::JsonDocument(after)) => {
                let other = after.in_other_form()?;
                (other.about().form, other.health().verdict() == Verdict::Clean)
            }
            (Self::JsonLines(before), Self::JsonLines(after)) if before.form() != after.form() => {
                let judged = [after.health(), after.health_as(before.form())];
                let is_valid = judged.iter().all(|health| health.verdict() == Verdict::Clean);
                (after.about().form, is_valid)
            }
            _ => return None,
        };
        let before = self.about().form;
        (!is_valid).then(|| {
            format!(
                "only what the repair would change identifies the form {before}: the repaired \
                 session would be read as {form}, and is not valid in both"
            )
        })
    }

    /// The messages that the model would be sent.
    fn transcript(&self) -> Option<Cow<'_, Transcript>> {
        match self {
            Self::JsonDocument(whole) => Some(Cow::Borrowed(whole.transcript())),
            Self::JsonLines(lines) => lines.transcript().map(Cow::Owned),
            Self::StoredSession(stored) => Some(Cow::Borrowed(stored.transcript())),
        }
    }

    /// The longest valid beginning in which all calls are answered.
    pub(crate) fn before_fault(&self) -> Self {
        match self {
            Self::JsonDocument(whole) => Self::JsonDocument(whole.before_fault()),
            Self::JsonLines(lines) => Self::JsonLines(lines.before_fault()),
            Self::StoredSession(stored) => Self::StoredSession(stored.before_fault()),
        }
    }

    /// The end of a new checkpoint in a file; `None` if the file is empty, or if the session stores
    /// its own checkpoints.
    pub(crate) fn end(&self) -> Option<End> {
        let (length, point) = match self {
            Self::JsonDocument(whole) => (whole.end()? as u64, None),
            Self::JsonLines(lines) => {
                let end = Some(lines.end()).filter(|end| end.records > 0)?;
                (end.length, Some(end.id))
            }
            Self::StoredSession(_) => return None,
        };
        let before = &self.bytes()[..usize::try_from(length).ok()?];
        Some(End { length, content_hash: hash(before), point })
    }

    /// The content at a checkpoint; `None` if it has changed since.
    pub(crate) fn at(&self, checkpoint: &Checkpoint) -> Option<Self> {
        match self {
            Self::JsonDocument(whole) => whole.at(checkpoint).map(Self::JsonDocument),
            Self::JsonLines(lines) => lines.at(checkpoint).map(Self::JsonLines),
            Self::StoredSession(stored) => stored.at(checkpoint).map(Self::StoredSession),
        }
    }

    /// The newest points for a rollback without a checkpoint: the beginnings of turns, in a session
    /// of JSON lines.
    pub(crate) fn turns(&self, most: usize) -> Vec<FileCheckpoint> {
        match self {
            Self::JsonDocument(_) | Self::StoredSession(_) => Vec::new(),
            Self::JsonLines(lines) => lines.turns(most),
        }
    }

    /// The content at such a point.
    pub(crate) fn at_turn(&self, id: &str) -> Result<Self, CheckpointError> {
        match self {
            Self::JsonDocument(_) | Self::StoredSession(_) => {
                Err(CheckpointError::NotFound(id.into()))
            }
            Self::JsonLines(lines) => lines.at_turn(id).map(Self::JsonLines),
        }
    }

    /// Only the system's prompt, or the header.
    ///
    /// `archive` keeps the messages in the session's own archive, if it has one.
    pub(crate) fn prompt(&self, archive: bool) -> Self {
        match self {
            Self::JsonDocument(whole) => Self::JsonDocument(whole.prompt()),
            Self::JsonLines(lines) => Self::JsonLines(lines.prompt()),
            Self::StoredSession(stored) => Self::StoredSession(stored.prompt(archive)),
        }
    }
}
