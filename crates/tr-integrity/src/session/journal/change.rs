//! The changes that form a session's log, and what the log has.
use super::super::{
    CycleState, Incident, Operation, ToolResult, ToolUse,
    cycle::{RecordedCycle, UsePosition},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tr_transcript::{Format, Message};

/// One change of a session. Released kinds must not change, because stored logs contain them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// The first change: the form, and the text around the messages.
    Opened { format: Format, head: Box<str>, tail: Box<str> },
    /// A message was added.
    Message(Line),
    /// Only this many messages are left: the head moved; nothing is removed from the log.
    Cut(usize),
    /// A checkpoint was made.
    Checkpoint(Box<NewCheckpoint>),
    /// The operations of these checkpoints succeeded.
    Committed(Vec<u64>),
    /// These checkpoints were removed: rolled back to, or pruned.
    Pruned(Vec<u64>),
    /// A cycle was begun: its intent.
    Cycle(Box<NewCycle>),
    /// A cycle changed its state.
    Moved(CycleUpdate),
    /// These cycles ended.
    Over(Vec<u64>),
    /// A cycle was recorded after a checkpoint that is still open.
    Done(Box<RecordedCycle>),
    /// These recorded cycles are no longer tracked.
    DoneWith(Vec<u64>),
    /// How many checkpoints were made and cycles begun, if the other changes do not tell.
    Counted { checkpoints: u64, cycles: u64 },
    /// The entries that a compaction has put into one, by number and stamp: a writer that got no reply may send one of
    /// them again.
    Merged(Vec<(u64, u64)>),
    /// An incident was noted.
    Incident(Incident),
    /// The current messages, or these, were archived.
    Archived {
        timestamp: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        messages: Option<Vec<Line>>,
    },
}

/// A message's text, byte for byte, and the white space around it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    json: Box<RawValue>,
    /// White space of the message's own text.
    #[serde(default, skip_serializing_if = "is_empty")]
    lead: Box<str>,
    #[serde(default, skip_serializing_if = "is_empty")]
    trail: Box<str>,
    /// White space of the file.
    #[serde(default, skip_serializing_if = "is_empty")]
    before: Box<str>,
    #[serde(default, skip_serializing_if = "is_empty")]
    after: Box<str>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NewCheckpoint {
    pub(super) number: u64,
    pub(super) timestamp: u64,
    pub(super) message_index: usize,
    pub(super) content_hash: Box<str>,
    pub(super) operation: Operation,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) committed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) snapshot: Option<Snapshot>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Snapshot {
    /// The first messages of the transcript at this point of the log.
    Prefix,
    /// These.
    Messages(Vec<Line>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NewCycle {
    pub(super) checkpoint: Box<str>,
    pub(super) tool_use: ToolUse,
    /// The process that runs it.
    pub(super) driver: u64,
    #[serde(flatten)]
    pub(super) moved: CycleUpdate,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CycleUpdate {
    pub(super) id: u64,
    pub(super) state: CycleState,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) abandoned: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) held: Option<ToolResult>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) refused: bool,
    /// The message with the use that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) used: Option<usize>,
    /// The use was in the transcript and was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) gone: bool,
}

/// The changes since the log was last written.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) changes: Vec<Change>,
    /// The log's state of the short lists.
    pub(super) known: Known,
    /// Whether there are changes other than those of cycles, which would be made again after a
    /// conflict.
    pub(super) holds_more: bool,
    /// How many batches of changes were taken.
    pub(super) batches: u64,
}

/// Changes that are written together.
pub(crate) struct Batch {
    pub(crate) changes: Vec<Change>,
    /// Whether there are others than those of cycles.
    pub(crate) holds_more: bool,
    /// Which batch it is, from 1.
    pub(crate) number: u64,
}

/// The journal of a session. A clone of the session has none: its changes are not written.
#[derive(Debug, Default)]
pub(in super::super) struct SessionJournal(pub(super) Option<Box<Journal>>);

impl Clone for SessionJournal {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl SessionJournal {
    /// Notes a change, unless no journal is kept.
    fn push(&mut self, change: impl FnOnce() -> Change) {
        if let Some(journal) = &mut self.0 {
            journal.changes.push(change());
        }
    }

    pub(in super::super) fn appended(&mut self, message: &Message) {
        self.push(|| Change::Message(Line::of(message)));
    }

    /// Notes that of `of` messages only the first `len` are left.
    pub(in super::super) fn cut(&mut self, mut of: usize, len: usize) {
        let Some(journal) = &mut self.0 else { return };
        // A message that was not written yet is dropped from the changes.
        while of > len && matches!(journal.changes.last(), Some(Change::Message(_))) {
            journal.changes.pop();
            of -= 1;
        }
        if of > len {
            journal.changes.push(Change::Cut(len));
        }
    }

    pub(in super::super) fn noted(&mut self, incident: &Incident) {
        self.push(|| Change::Incident(incident.clone()));
    }

    /// Notes that the current messages were archived.
    pub(in super::super) fn archived(&mut self, timestamp: u64) {
        self.push(|| Change::Archived { timestamp, messages: None });
    }
}

/// The log's state of checkpoints, cycles and recorded cycles, each in the order of its number.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Known {
    pub(super) checkpoints: Vec<(u64, bool)>,
    pub(super) cycles: Vec<(u64, Stage)>,
    pub(super) done: Vec<(u64, Option<usize>)>,
    pub(super) checkpoints_made: u64,
    pub(super) cycles_begun: u64,
}

/// The parts of a cycle that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) state: CycleState,
    pub(super) abandoned: bool,
    pub(super) holds: bool,
    pub(super) used: UsePosition,
}

/// White space of JSON.
const WHITE: [char; 4] = [' ', '\t', '\n', '\r'];

impl Line {
    pub(super) fn of(message: &Message) -> Self {
        let raw = message.raw();
        let text = raw.trim_start_matches(WHITE);
        let (lead, _) = raw.split_at(raw.len() - text.len());
        let (text, trail) = text.split_at(text.trim_end_matches(WHITE).len());
        let json = RawValue::from_string(text.to_owned()).expect("a message is JSON");
        let (before, after) = message.around();
        Self {
            json,
            lead: lead.into(),
            trail: trail.into(),
            before: before.into(),
            after: after.into(),
        }
    }

    pub(super) fn read(self, format: Format) -> Result<Message, String> {
        let Self { json, lead, trail, before, after } = self;
        let raw = if lead.is_empty() && trail.is_empty() {
            Box::<str>::from(json)
        } else {
            format!("{lead}{json}{trail}").into()
        };
        match format.read(raw) {
            Ok(message) => Ok(message.with_around(before, after)),
            Err(error) => Err(format!("a message is not in the session's form: {error}")),
        }
    }
}

#[expect(clippy::borrowed_box, reason = "as serde calls it")]
fn is_empty(text: &Box<str>) -> bool {
    text.is_empty()
}
