//! The actions of a repair, and its losses.
use serde::{Deserialize, Serialize};

/// One action of a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RepairAction {
    /// The kind of change.
    pub action: ActionKind,
    /// Which message, from 0. In mode `remove`, counted after the removals before this one. In mode
    /// `preserve`, counted in the transcript before the repair.
    pub message_index: usize,
    /// The id of the tool use (for a result, too) or of the Responses item; empty if it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Box<str>>,
    /// The id that replaces the old one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_id: Option<Box<str>>,
}

/// What a repair does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActionKind {
    /// Removes an orphaned result (mode `remove`).
    RemoveOrphan,
    /// Removes a message that is left empty.
    RemoveEmptyMessage,
    /// Removes an unanswered use (mode `remove`).
    RemoveIncomplete,
    /// Adds an error result for an unanswered use: [`OUTCOME_UNKNOWN`](crate::OUTCOME_UNKNOWN).
    AddUnknown,
    /// Moves a result to the place that its use requires.
    MoveResult,
    /// Turns an orphaned result into text.
    OrphanToText,
    /// Removes a result that another repair added: there is a real one, or no use.
    RemoveSynthetic,
    /// Removes a second result with the same content, or a copy of an item.
    RemoveDuplicate,
    /// Changes an id that is repeated, refused by the provider, or missing; a result without an id
    /// gets that of the only call before it.
    RenameId,
    /// Removes a text block without text.
    RemoveEmptyText,
    /// Removes reasoning that the provider refuses: no output of the model follows it, or it has no signature
    /// and its turn is over.
    RemoveReasoning,
    /// Puts a text in the place of an image or a document that the provider refuses.
    RemoveMedia,
    /// Changes a message so that its provider does not demand a missing reasoning item or a missing
    /// signature.
    WaiveThoughts,
    /// Merges two messages of the model, because the provider requires one of the user between them.
    JoinMessages,
    /// Adds a user's message before one of the model that begins the session: the provider requires it.
    AddUserMessage,
    /// Removes the id of a Responses item: another item has it, or the provider would demand missing
    /// reasoning.
    UnlinkItem,
    /// Rewrites a member in the type that its provider accepts, with the same content: arguments as
    /// a JSON string or as an object; an empty list of calls is removed.
    CorrectMember,
}

/// Information that the session no longer contains after a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Loss {
    /// What is lost.
    pub what: LossKind,
    /// Which message had it, in the transcript before the repair.
    pub message_index: usize,
    /// The id of the tool use, or of the item.
    pub tool_use_id: Box<str>,
    /// The tool, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Box<str>>,
}

/// What a repair loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// The record that the tool was called.
    Call,
    /// The tool's answer.
    Result,
    /// The link from a result to its call; the content of the result is kept as text.
    Link,
    /// The model's reasoning. Its provider does not accept it without the output that followed it, or without
    /// its signature.
    Reasoning,
    /// An image or a document.
    Media,
}

/// The actions and losses noted so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) actions: Vec<RepairAction>,
    /// For each action, the index of its message in the transcript before the repair.
    pub(super) places: Vec<usize>,
    pub(super) losses: Vec<Loss>,
}

impl Log {
    pub(super) fn act(&mut self, action: ActionKind, message_index: usize, id: Option<&str>) {
        self.act_on(message_index, action, message_index, id);
    }

    /// An action on the message that was at index `was` before the repair.
    pub(super) fn act_on(
        &mut self,
        was: usize,
        action: ActionKind,
        message_index: usize,
        id: Option<&str>,
    ) {
        let tool_use_id = id.map(Into::into);
        self.actions.push(RepairAction { action, message_index, tool_use_id, new_id: None });
        self.places.push(was);
    }

    pub(super) fn rename(&mut self, message_index: usize, id: &str, new_id: &str) {
        self.act(ActionKind::RenameId, message_index, Some(id));
        self.actions.last_mut().expect("was pushed").new_id = Some(new_id.into());
    }

    pub(super) fn lose(
        &mut self,
        what: LossKind,
        message_index: usize,
        id: &str,
        tool: Option<&str>,
    ) {
        let tool = tool.map(Into::into);
        self.losses.push(Loss { what, message_index, tool_use_id: id.into(), tool });
    }
}
