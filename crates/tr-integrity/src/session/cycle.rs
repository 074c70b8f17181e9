//! A tool cycle on its way: its intent is recorded before the tool starts.
use super::used::Used;
use crate::format::NewUse;
use serde::{Deserialize, Serialize};
use std::fmt;
use tr_core::{CycleRef, Ran};

/// What to do with a cycle that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CycleMode {
    /// Rolls back if the tool did not run; else records the error, or that the outcome is unknown.
    #[default]
    Preserve,
    /// 002 to the letter: rolls back, whatever the tool did.
    ///
    /// In both modes a rollback takes back what the cycle itself would have recorded. A use that
    /// the agent put into the transcript stands before the cycle's checkpoint, so it stays, and is
    /// answered with the error.
    Rollback,
}

/// How far a cycle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CycleState {
    /// The intent is recorded, or on its way to the store; the tool is not started.
    Pending,
    /// The tool may be running.
    Executing,
    /// The result is here and waits for those of the same step.
    Recording,
    /// Its end: use and result became part of the transcript together.
    Committed,
    /// Its end: nothing of it became part of the transcript.
    RolledBack,
}

/// Names a cycle within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CycleId(pub(super) u64);

/// A model's use of a tool. [`Debug`](fmt::Debug) leaves the input out: it may hold secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The id that the model gave to it.
    pub id: Box<str>,
    /// The tool.
    pub name: Box<str>,
    /// The input, as JSON text.
    pub input: Box<str>,
}

/// What a transcript records of a cycle's end. [`Debug`](fmt::Debug) leaves the content out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The use that it answers.
    pub tool_use_id: Box<str>,
    /// What the model sees.
    pub content: Box<str>,
    /// Whether it is a failure.
    pub is_error: bool,
}

/// A tool cycle on its way.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolCycleTransaction {
    /// Names it within its session.
    pub id: CycleId,
    /// The checkpoint before it.
    pub checkpoint: Box<str>,
    /// The use that it answers.
    pub tool_use: ToolUse,
    /// How far it is.
    pub state: CycleState,
    /// Nobody drives it any more: recovery settles it.
    pub abandoned: bool,
    /// Where the use stands that it answers.
    pub(super) used: Used,
    /// The result, while it waits.
    pub(super) held: Option<ToolResult>,
    /// What waits is a refusal: the tool did not run.
    pub(super) refused: bool,
    /// The tool starts once the intent is written, so the log says that it may have started.
    pub(super) starts_once_written: bool,
    /// Whose it is, among the sessions that share a store.
    pub(super) driver: u64,
}

impl ToolUse {
    pub(crate) fn of(cycle: &CycleRef<'_>) -> Self {
        let CycleRef { tool_use_id, name, input, .. } = *cycle;
        Self { id: tool_use_id.into(), name: name.into(), input: input.into() }
    }

    /// As a call in this session names it.
    pub(crate) fn in_session<'r>(&'r self, session: &'r str) -> CycleRef<'r> {
        CycleRef { session, tool_use_id: &self.id, name: &self.name, input: &self.input }
    }

    pub(super) fn to_write(&self) -> NewUse<'_> {
        NewUse { id: &self.id, name: &self.name, input: &self.input }
    }
}

impl ToolCycleTransaction {
    pub(crate) fn driver(&self) -> u64 {
        self.driver
    }

    /// Whether the tool ran, as far as anybody knows before its end.
    #[must_use]
    pub fn ran(&self) -> Ran {
        match self.state {
            CycleState::Pending => Ran::No,
            _ if self.refused => Ran::No,
            CycleState::Executing | CycleState::RolledBack => Ran::Unknown,
            CycleState::Recording | CycleState::Committed => Ran::Yes,
        }
    }

    /// What a log says of its state: who reads it cannot tell what came after.
    pub(super) fn logged_state(&self) -> CycleState {
        match self.state {
            CycleState::Pending if self.starts_once_written => CycleState::Executing,
            state => state,
        }
    }
}

impl fmt::Debug for ToolUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, .. } = self;
        f.debug_struct("ToolUse").field("id", id).field("name", name).finish_non_exhaustive()
    }
}

impl fmt::Debug for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolResult")
            .field("tool_use_id", &self.tool_use_id)
            .field("is_error", &self.is_error)
            .finish_non_exhaustive()
    }
}
