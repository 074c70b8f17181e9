//! A tool cycle: its intent is recorded before the tool starts.
use serde::{Deserialize, Serialize};
use tr_core::{CycleRef, Ran, SessionAction, debug_parts};

/// How a failed cycle is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CycleMode {
    /// Rolls the cycle back if the tool did not run; else records the error, or that the outcome
    /// is unknown.
    #[default]
    Preserve,
    /// Rolls the cycle back, whether or not the tool ran.
    ///
    /// In both modes a rollback only removes what the cycle itself recorded. A use that the agent
    /// put into the transcript is before the cycle's checkpoint, so it stays, and is answered with
    /// the error.
    Rollback,
}

/// The state of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CycleState {
    /// The intent is recorded, or being written; the tool has not started.
    Pending,
    /// The tool may be running.
    Executing,
    /// The result is known and waits for the other results of its step.
    Recording,
    /// Ended: use and result are in the transcript.
    Committed,
    /// Ended: the cycle left nothing in the transcript.
    RolledBack,
}

/// Identifies a cycle within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct CycleId(pub(super) u64);

/// A model's use of a tool. [`Debug`] omits the input, which may hold secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The id given by the model.
    pub id: Box<str>,
    /// The tool.
    pub name: Box<str>,
    /// The input, as JSON text.
    pub input: Box<str>,
}

/// What was done while a session was loaded, with the tool use if it concerns a cycle.
pub(crate) type LoadNote = (Option<ToolUse>, SessionAction);

/// The recorded end of a cycle. [`Debug`] omits the content.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the use that it answers.
    pub tool_use_id: Box<str>,
    /// What the model sees.
    pub content: Box<str>,
    /// Whether it is a failure.
    pub is_error: bool,
}

/// A tool cycle that has not ended.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCycleTransaction {
    /// Its id within the session.
    pub id: CycleId,
    /// The checkpoint before it.
    pub checkpoint: Box<str>,
    /// The use that it answers.
    pub tool_use: ToolUse,
    /// Its state.
    pub state: CycleState,
    /// Its future was dropped or its process died: recovery settles it.
    pub abandoned: bool,
    /// The position of the use that it answers.
    #[serde(skip)]
    pub(super) used: UsePosition,
    /// The result, while it waits.
    #[serde(skip)]
    pub(super) held: Option<ToolResult>,
    /// The held result is a refusal: the tool did not run.
    #[serde(skip)]
    pub(super) refused: bool,
    /// The tool starts once the intent is written, so the log says that it may have started.
    #[serde(skip)]
    pub(super) starts_once_written: bool,
    /// The process that runs it, among those that share a store.
    #[serde(skip)]
    pub(crate) driver: u64,
}

/// A recorded cycle, as the log has it, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordedCycle {
    pub(super) id: u64,
    /// The index of its result, when it was recorded.
    pub(super) at: usize,
    /// The message with the use, if the agent had put it there and it is not removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) used: Option<usize>,
    pub(super) tool_use: ToolUse,
    pub(super) result: ToolResult,
    /// It is a refusal: the tool did not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) refused: bool,
}

/// The result of a tool cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCycleResult {
    /// Whether the cycle was recorded with the tool's own answer.
    pub success: bool,
    /// The recorded result, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether nothing of it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<bool>,
}

impl ToolUse {
    pub(crate) fn of(cycle: &CycleRef<'_>) -> Self {
        let CycleRef { tool_use_id, name, input, .. } = *cycle;
        Self { id: tool_use_id.into(), name: name.into(), input: input.into() }
    }

    /// Identifies it as a call in this session.
    pub(crate) fn in_session<'r>(&'r self, session: &'r str) -> CycleRef<'r> {
        CycleRef { session, tool_use_id: &self.id, name: &self.name, input: &self.input }
    }
}

impl ToolCycleTransaction {
    /// A cycle whose tool has not started.
    pub(super) fn new(id: CycleId, checkpoint: Box<str>, tool_use: ToolUse, driver: u64) -> Self {
        Self {
            id,
            checkpoint,
            tool_use,
            state: CycleState::Pending,
            abandoned: false,
            used: UsePosition::Absent,
            held: None,
            refused: false,
            starts_once_written: false,
            driver,
        }
    }

    /// Whether the tool ran, as far as is known before its end.
    #[must_use]
    pub fn ran(&self) -> Ran {
        match self.state {
            CycleState::Pending => Ran::No,
            _ if self.refused => Ran::No,
            CycleState::Executing | CycleState::RolledBack => Ran::Unknown,
            CycleState::Recording | CycleState::Committed => Ran::Yes,
        }
    }

    /// The state that a log records: a reader cannot know what happened after the write.
    pub(super) fn logged_state(&self) -> CycleState {
        match self.state {
            CycleState::Pending if self.starts_once_written => CycleState::Executing,
            state => state,
        }
    }
}

debug_parts! { ToolUse, |it| id = it.id, name = it.name }
debug_parts! { ToolResult, |it| tool_use_id = it.tool_use_id, is_error = it.is_error }

/// The position of the use that a cycle answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum UsePosition {
    /// The agent has not put it into the transcript.
    #[default]
    Absent,
    /// In this message.
    At(usize),
    /// It was in the transcript and was removed.
    Removed,
}

impl UsePosition {
    /// The message that holds it.
    pub(super) const fn at(self) -> Option<usize> {
        match self {
            Self::At(at) => Some(at),
            Self::Absent | Self::Removed => None,
        }
    }

    /// Maps the position after messages have moved.
    pub(super) fn then(self, place: impl FnOnce(usize) -> Self) -> Self {
        self.at().map_or(self, place)
    }

    /// In this message, if there is one.
    pub(super) fn pushed(at: Option<usize>) -> Self {
        at.map_or(Self::Absent, Self::At)
    }
}
