//! What a repair does, and what is lost by it.
use serde::{Deserialize, Serialize};

/// One thing that a repair does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RepairAction {
    /// What.
    pub action: ActionKind,
    /// To which message, from 0. As 002 counts in mode `remove`: after the removals before this
    /// one. In mode `preserve`: in the transcript as it was.
    pub message_index: usize,
    /// To which tool use, or its result, or which item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Box<str>>,
    /// The id that took the place of the old one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_id: Option<Box<str>>,
}

/// What a repair does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActionKind {
    /// An orphaned result is removed (mode `remove`).
    RemoveOrphan,
    /// A message of which nothing is left is removed.
    RemoveEmptyMessage,
    /// An unanswered use is removed (mode `remove`).
    RemoveIncomplete,
    /// An unanswered use gets an error result: [`OUTCOME_UNKNOWN`](crate::OUTCOME_UNKNOWN).
    AddUnknown,
    /// A result moves to where its use wants it.
    MoveResult,
    /// An orphaned result becomes text.
    OrphanToText,
    /// A result that another repair made up gives way to the real one, or has no use.
    RemoveSynthetic,
    /// A second result with the same content, or a copy of an item, is removed.
    RemoveDuplicate,
    /// A repeated id is made unique, one that the provider refuses or a missing one gives way to
    /// another; a result without one gets that of the only call before it.
    RenameId,
    /// A text block without text is removed.
    RemoveEmptyText,
    /// Reasoning that nothing of the model's follows is removed.
    RemoveReasoning,
    /// A message is changed so that its provider asks for no reasoning item, or no signature, that
    /// is not there.
    WaiveThoughts,
    /// A step is joined to the model's message before it: it must follow the user.
    JoinMessages,
    /// The user is made to speak before a step that begins the session: it must follow the user.
    AddUserMessage,
    /// An item loses the id by which its provider knows it: another item has it, or the provider
    /// would ask for reasoning that is not there.
    UnlinkItem,
    /// A member is written as its provider takes it, and says what it said: arguments as a string
    /// of JSON, or as an object; no list of calls where that has none.
    CorrectMember,
}

/// Something that the session tells no more after a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Loss {
    /// What.
    pub what: LossKind,
    /// Which message had it, in the transcript as it was.
    pub message_index: usize,
    /// Of which tool use, or which item.
    pub tool_use_id: Box<str>,
    /// The tool, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Box<str>>,
}

/// What is lost by a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// That the tool was called.
    Call,
    /// What the tool answered.
    Result,
    /// Which call a result belongs to; its content is kept as text.
    Link,
    /// What the model thought. Its provider does not take it without what followed from it.
    Reasoning,
}
