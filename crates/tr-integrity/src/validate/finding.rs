//! A validation's findings, and the provider's error texts for them.
use crate::format::{Format, Refused, Results, Why};
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
    /// A text block of nothing but white space, beside others.
    BlankText,
    /// A message of nothing but white space.
    BlankMessage,
    /// A message without content, where its provider refuses that.
    EmptyMessage,
    /// A message of the model's without content, followed by another message.
    EmptyAnswer,
    /// A reasoning item that no output of the model follows.
    LoneReasoning,
    /// A block that is no object, or has a duplicate member, which readers may interpret
    /// differently. It is left unchanged.
    UnreadBlock,
    /// A block of an unknown type: it is left unchanged and not judged.
    UnknownBlock,
    /// A message with an unknown role, or with its content in unknown members: it is left unchanged
    /// and not judged.
    UnknownMessage,
    /// An item with an id that an earlier item has.
    DuplicateItem,
    /// A step that follows no message of the user's, where the provider requires one.
    UseOutOfTurn,
    /// A step without a thought signature, although another step of its turn has one: some of the
    /// provider's models refuse it.
    MissingSignature,
    /// The name of a tool that the provider refuses: empty, too long, or with invalid characters.
    RefusedName,
    /// The id of a use that the provider refuses: too long, or with invalid characters.
    RefusedId,
    /// A use's input is missing, or not of the type that the provider accepts.
    RefusedInput,
    /// The content of a message, a part or a result is missing, empty, or not of the type that the
    /// provider accepts; or a list of calls is empty.
    RefusedContent,
    /// A block in a message of a role for which the provider does not accept it: a use that is not
    /// the model's.
    MisplacedBlock,
    /// A role from which the provider does not accept a message there.
    RefusedRole,
    /// A use with other content behind it in its message.
    ContentAfterUse,
    /// A request with an end that the provider refuses: a thinking block, or a text of the model's
    /// that ends in white space.
    RefusedEnd,
    /// A use of a tool of the provider's without its result, although the model's turn has ended.
    /// What would be right there is not known, so it is left unchanged.
    UnansweredServerUse,
    /// The same of a tool that code or an MCP server ran, of which it is not known whether the
    /// provider refuses it. It is left unchanged and not judged.
    OpenServerUse,
    /// A use's input is not of the type that the agent writes, so what the agent sends is not
    /// known. It is left unchanged and not judged.
    UnreadInput,
}

/// Whether the provider refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// No, but a reader may misunderstand it.
    Warning,
    /// Yes: every call with this session fails.
    Error,
}

/// `Finding::about` for an id that is present but empty.
pub(super) const EMPTY: &str = "empty";

/// `Finding::about` for an end in white space.
pub(super) const WHITE: &str = "white space";

/// One finding, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What is wrong.
    pub fault: Fault,
    /// Whether the provider refuses it.
    pub severity: Severity,
    /// The index of the message.
    pub message_index: usize,
    /// The index of the block in its message (or of the tool call).
    pub block_index: Option<usize>,
    /// The id of the tool use.
    pub tool_use_id: Option<Box<str>>,
    pub(crate) format: Format,
    /// What the provider names in addition to the use's id: an item's id, or the kind of the use.
    /// For a missing id, [`EMPTY`] if it is present.
    pub(crate) about: Box<str>,
    /// The member that the provider refuses on its own.
    pub(crate) refused: Option<Box<Refused>>,
    /// The index of the message at which it was found.
    pub(crate) noticed: usize,
    /// The form in which the provider is asked, if that is another.
    pub(super) asked: Option<Format>,
    /// The message and block there, if the results of tools are merged into one message.
    pub(super) place: (usize, Option<usize>),
}

impl Fault {
    /// The number of the validation rule that it breaks, 1 to 3; 0 for a rule of the provider's
    /// own.
    #[must_use]
    pub const fn rule(self) -> u8 {
        match self {
            Self::OrphanedResult | Self::ResultWithoutAssistant => 1,
            Self::IncompleteUse | Self::UseWithoutUser => 2,
            Self::DuplicateId => 3,
            _ => 0,
        }
    }

    /// Whether it says that something is not understood, so that the provider's verdict is not
    /// known.
    #[must_use]
    pub const fn is_not_judged(self) -> bool {
        matches!(
            self,
            Self::UnreadBlock
                | Self::UnknownBlock
                | Self::UnknownMessage
                | Self::UnreadInput
                | Self::OpenServerUse
        )
    }

    /// Whether the provider refuses it regardless of its context: see
    /// [`Validator::with_members`](crate::Validator::with_members).
    #[must_use]
    pub const fn is_of_member(self) -> bool {
        matches!(
            self,
            Self::RefusedName
                | Self::RefusedId
                | Self::RefusedInput
                | Self::RefusedContent
                | Self::RefusedRole
                | Self::RefusedEnd
                | Self::MisplacedBlock
                | Self::ContentAfterUse
                | Self::BlankText
                | Self::EmptyAnswer
        )
    }

    pub(super) fn severity(self, format: Format, asked: Option<Format>) -> Severity {
        let (rules, results) = (format.rules_of(asked), asked.unwrap_or(format).rules().results);
        match self {
            Self::DuplicateId if !rules.refuses_repeated_ids => Severity::Warning,
            Self::MissingSignature => Severity::Warning,
            fault if fault.is_not_judged() => Severity::Warning,
            Self::SeveralResults if results != Results::Blocks => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

impl Finding {
    pub(super) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The member that the provider refuses on its own.
    pub(crate) fn member(&self) -> Option<&'static str> {
        self.refused.as_ref().map(|refused| refused.member)
    }

    /// Whether it is an end in white space.
    pub(crate) fn is_white(&self) -> bool {
        *self.about == *WHITE
    }

    /// Whether it is an id that is present but empty.
    pub(crate) fn is_empty_id(&self) -> bool {
        self.fault == Fault::MissingId && *self.about == *EMPTY
    }

    /// The same where the provider is asked in this form.
    pub(crate) fn asked(mut self, asked: Option<Format>) -> Self {
        self.severity = self.fault.severity(self.format, asked);
        self.asked = asked;
        self
    }

    /// The form of the provider that refuses it: for messages in an agent's own form, that of the
    /// last answer, if it is known.
    #[must_use]
    pub fn format(&self) -> Format {
        self.asked.unwrap_or(self.format)
    }

    /// Whether every repair leaves it: what would be right there is not known.
    #[must_use]
    pub fn is_left_by_repair(&self) -> bool {
        let is_missing = || self.refused.as_ref().is_some_and(|it| it.why == Why::Missing);
        match self.fault {
            Fault::RefusedName
            | Fault::RefusedRole
            | Fault::RefusedEnd
            | Fault::UnansweredServerUse => true,
            Fault::RefusedInput => is_missing(),
            _ => false,
        }
    }

    /// The provider's error text; `None` for a warning, unless some of the provider's models refuse
    /// it.
    #[must_use]
    pub fn provider_error(&self) -> Option<String> {
        if self.severity == Severity::Warning && self.fault != Fault::MissingSignature {
            return None;
        }
        let Some(asked) = self.asked.filter(|asked| *asked != self.format) else {
            return Some(self.format.form().error(self));
        };
        let (message_index, block_index) = match asked {
            Format::AnthropicMessages | Format::Gemini => self.place,
            _ => (self.message_index, self.block_index),
        };
        // OpenAI names the kind of call.
        let about = if self.about.is_empty() { "function call".into() } else { self.about.clone() };
        Some(asked.form().error(&Self { message_index, block_index, about, ..self.clone() }))
    }
}

/// A short message for a person, such as `Incomplete tool_use: toolu_1`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.tool_use_id.as_deref().filter(|id| !id.is_empty());
        let id = id.unwrap_or("(without an id)");
        let why = || self.refused.as_ref().map_or_else(String::new, |refused| refused.told());
        let member = self.member().unwrap_or("content");
        match self.fault {
            Fault::OrphanedResult => write!(f, "Orphaned tool_result: {id}"),
            Fault::ResultWithoutAssistant => {
                f.write_str("tool_result without preceding assistant message")
            }
            Fault::IncompleteUse => write!(f, "Incomplete tool_use: {id}"),
            Fault::UseWithoutUser => f.write_str("tool_use without following user message"),
            Fault::UnansweredServerUse | Fault::OpenServerUse => {
                write!(f, "{} of the provider's without its result: {id}", self.about)
            }
            Fault::MissingId => f.write_str("tool_use without an id"),
            Fault::DuplicateId => write!(f, "Duplicate tool_use id: {id}"),
            Fault::SeveralResults => write!(f, "Several tool_results for one tool_use: {id}"),
            Fault::ResultAfterContent => write!(f, "tool_result after other content: {id}"),
            Fault::EmptyText => f.write_str("Empty text block"),
            Fault::UnreadBlock => f.write_str("Block that is no object, or names a member twice"),
            Fault::UnknownBlock => f.write_str("Block of a type that is not known"),
            Fault::UnknownMessage => f.write_str("Message whose role or content is not known"),
            Fault::BlankText => f.write_str("Text block of white space only"),
            Fault::BlankMessage => f.write_str("Message of white space only"),
            Fault::EmptyMessage => f.write_str("Message without content"),
            Fault::EmptyAnswer => f.write_str("Message of the model's without content"),
            Fault::LoneReasoning => write!(f, "Reasoning without what follows: {}", self.about),
            Fault::MissingSignature => write!(f, "tool_use without a thought signature: {id}"),
            Fault::UseOutOfTurn => write!(f, "tool_use without preceding user message: {id}"),
            Fault::RefusedName => write!(f, "Tool name that is refused: {}", why()),
            Fault::RefusedId => write!(f, "tool_use id that is refused: {}", why()),
            Fault::RefusedInput => write!(f, "tool_use with {member} that is refused: {}", why()),
            Fault::UnreadInput => write!(f, "tool_use with {member} that is not read: {}", why()),
            Fault::RefusedContent => write!(f, "{member} that is refused: {}", why()),
            Fault::MisplacedBlock => f.write_str("Block that only the model's messages may have"),
            Fault::RefusedRole => f.write_str("Message of a role that is refused there"),
            Fault::ContentAfterUse => write!(f, "tool_use before other content: {id}"),
            Fault::RefusedEnd if *self.about == *WHITE => {
                f.write_str("Request that ends in white space of the model's")
            }
            Fault::RefusedEnd => f.write_str("Request that ends with a thought of the model's"),
            Fault::DuplicateItem => write!(f, "Duplicate item id: {}", self.about),
        }
    }
}
