//! The settings of a repair.
use serde::{Deserialize, Serialize};

/// How a repair treats a use without a result, and a result without a use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairMode {
    /// Keeps every answer of a tool, and the record that a call may have run.
    #[default]
    Preserve,
    /// Removes both.
    Remove,
}

/// Settings of a repair. It is deterministic, idempotent, and uses no clock.
///
/// ```
/// use tr_transcript::{Repair, Transcript};
///
/// let mut transcript = Transcript::read(r#"[
///     {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"pay","input":{}}]},
///     {"role":"user","content":"did it work?"}
/// ]"#)?;
/// let plan = Repair::preserve().plan(&transcript);
/// assert_eq!(plan.actions().len(), 1); // a dry run: nothing has changed yet
/// plan.apply(&mut transcript)?;
/// assert!(transcript.to_json().contains("outcome unknown, may have run"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Repair {
    pub(super) mode: RepairMode,
    pub(crate) close_tail: bool,
    pub(crate) waive_thoughts: bool,
    pub(crate) members: bool,
    pub(super) only_errors: bool,
}

impl Repair {
    /// Keeps every answer of a tool, and the record that a call may have run.
    pub const fn preserve() -> Self {
        Self::new(RepairMode::Preserve)
    }

    /// Removes uses without results, and results without uses.
    pub const fn remove() -> Self {
        Self::new(RepairMode::Remove)
    }

    /// Uses this mode.
    pub const fn new(mode: RepairMode) -> Self {
        Self { mode, close_tail: false, waive_thoughts: false, members: false, only_errors: false }
    }

    /// Also answers the uses of the live tail: no tool is running any more that could answer them.
    /// Without effect in mode `remove`.
    pub const fn close_tail(mut self) -> Self {
        self.close_tail = true;
        self
    }

    /// The mode.
    #[must_use]
    pub const fn mode(self) -> RepairMode {
        self.mode
    }

    /// Also removes the provider's reasons to demand missing thoughts. Only the provider knows
    /// which calls had thoughts, so use this for a session that it refused for that: items of
    /// OpenAI's Responses without reasoning before them lose their ids, and Gemini's steps without
    /// a signature get the provider's own placeholder. Off by default, and without effect in mode
    /// `remove`.
    pub const fn waive_thoughts(mut self) -> Self {
        self.waive_thoughts = true;
        self
    }

    /// Leaves a transcript as it is if the provider accepts it, also with what a person may misread, such as
    /// a second result for one call. Off by default.
    pub const fn only_errors(mut self) -> Self {
        self.only_errors = true;
        self
    }

    /// Also corrects members that the provider refuses on their own, as far as this loses nothing:
    /// see [`Validator::with_members`](crate::Validator::with_members). Refused ids are replaced,
    /// and white-space texts and empty lists of calls removed. Off by default, because an agent
    /// that continues the session would not know the new ids. In mode `remove` only the messages of
    /// which nothing is left are removed.
    pub const fn with_members(mut self) -> Self {
        self.members = true;
        self
    }
}
