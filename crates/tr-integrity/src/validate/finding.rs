//! What a validation finds, and how the provider would say it.
use crate::format::{Format, Results};
use serde::Serialize;
use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fault {
    /// Rule 1: a result whose use is not in the step before it.
    OrphanedResult,
    /// Rule 1: a result that follows no assistant message.
    ResultWithoutAssistant,
    /// Rule 2: a use without its result.
    IncompleteUse,
    /// Rule 2: a use that no message of the user follows, but another message does.
    UseWithoutUser,
    /// A use without an id, or with an empty one, where no name can stand for it.
    MissingId,
    /// Rule 3: an id that an earlier use has.
    DuplicateId,
    /// More results than uses of this id.
    SeveralResults,
    /// A result behind other content of its message.
    ResultAfterContent,
    /// A text block without text.
    EmptyText,
    /// A message of nothing but white space.
    BlankMessage,
    /// A user's message without content.
    EmptyMessage,
    /// A reasoning item that nothing of the model's follows.
    LoneReasoning,
    /// A block that is no object, or that names a member twice: it is left as it is, and its readers
    /// may take it for different things.
    UnreadBlock,
    /// An item with an id that an earlier item has.
    DuplicateItem,
    /// A step that follows no message of the user's, where the provider asks for one.
    UseOutOfTurn,
    /// A step without the signature of a thought, though another step of its turn has one: some of
    /// the provider's models refuse it.
    MissingSignature,
}

/// Whether the provider refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// It does not, but a reader may be misled.
    Warning,
    /// It does: every call with this session fails.
    Error,
}

/// What is told of an id that is there, and has nothing in it.
pub(super) const EMPTY: &str = "empty";

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What.
    pub fault: Fault,
    /// Whether the provider refuses it.
    pub severity: Severity,
    /// In which message, from 0.
    pub message_index: usize,
    /// In which block of the message (or which of its tool calls), from 0.
    pub block_index: Option<usize>,
    /// Of which tool use.
    pub tool_use_id: Option<Box<str>>,
    pub(crate) format: Format,
    /// What the provider names beside the use's id: an item's id, or what kind of use it is. Of a
    /// missing id, whether it is there and [`EMPTY`].
    pub(crate) about: Box<str>,
    /// The message at which it showed.
    pub(crate) noticed: usize,
}

impl Fault {
    /// The rule of 002 that it breaks; 0 for a rule of the provider's own.
    #[must_use]
    pub const fn rule(self) -> u8 {
        match self {
            Self::OrphanedResult | Self::ResultWithoutAssistant => 1,
            Self::IncompleteUse | Self::UseWithoutUser => 2,
            Self::DuplicateId => 3,
            _ => 0,
        }
    }

    pub(super) fn severity(self, format: Format) -> Severity {
        let rules = format.rules();
        match self {
            Self::DuplicateId if !rules.refuses_repeated_ids => Severity::Warning,
            Self::MissingSignature | Self::UnreadBlock => Severity::Warning,
            Self::SeveralResults if rules.results != Results::Blocks => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

impl Finding {
    pub(super) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Whether it is an id that is there, and empty.
    pub(crate) fn is_empty_id(&self) -> bool {
        self.fault == Fault::MissingId && *self.about == *EMPTY
    }

    /// The text with which the provider would refuse it; `None` for a warning, but for one of which
    /// only some of its models take no notice.
    #[must_use]
    pub fn provider_error(&self) -> Option<String> {
        if self.severity == Severity::Warning && self.fault != Fault::MissingSignature {
            return None;
        }
        Some(self.format.form().error(self))
    }
}

/// The message of 002.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.tool_use_id.as_deref().unwrap_or_default();
        match self.fault {
            Fault::OrphanedResult => write!(f, "Orphaned tool_result: {id}"),
            Fault::ResultWithoutAssistant => {
                f.write_str("tool_result without preceding assistant message")
            }
            Fault::IncompleteUse => write!(f, "Incomplete tool_use: {id}"),
            Fault::UseWithoutUser => f.write_str("tool_use without following user message"),
            Fault::MissingId => f.write_str("tool_use without an id"),
            Fault::DuplicateId => write!(f, "Duplicate tool_use id: {id}"),
            Fault::SeveralResults => write!(f, "Several tool_results for one tool_use: {id}"),
            Fault::ResultAfterContent => write!(f, "tool_result after other content: {id}"),
            Fault::EmptyText => f.write_str("Empty text block"),
            Fault::UnreadBlock => f.write_str("Block that is no object, or names a member twice"),
            Fault::BlankMessage => f.write_str("Message of white space only"),
            Fault::EmptyMessage => f.write_str("User message without content"),
            Fault::LoneReasoning => write!(f, "Reasoning without what follows: {}", self.about),
            Fault::MissingSignature => write!(f, "tool_use without a thought signature: {id}"),
            Fault::UseOutOfTurn => write!(f, "tool_use without preceding user message: {id}"),
            Fault::DuplicateItem => write!(f, "Duplicate item id: {}", self.about),
        }
    }
}
