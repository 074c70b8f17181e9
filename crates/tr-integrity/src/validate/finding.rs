//! What a validation finds, and how the provider would say it.
use crate::format::{Format, Refused, Results};
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
    /// A message of the model's without content, and another behind it.
    EmptyAnswer,
    /// A reasoning item that nothing of the model's follows.
    LoneReasoning,
    /// A block that is no object, or that names a member twice: it is left as it is, and its readers
    /// may take it for different things.
    UnreadBlock,
    /// A block of a type that is not known: it is left as it is, and not judged.
    UnknownBlock,
    /// A message of a role that is not known, or with its content in members that are not: it is
    /// left as it is, and not judged.
    UnknownMessage,
    /// An item with an id that an earlier item has.
    DuplicateItem,
    /// A step that follows no message of the user's, where the provider asks for one.
    UseOutOfTurn,
    /// A step without the signature of a thought, though another step of its turn has one: some of
    /// the provider's models refuse it.
    MissingSignature,
    /// The name of a tool that the provider refuses: empty, too long, not of its pattern.
    RefusedName,
    /// The id of a use that the provider refuses: too long, not of its pattern.
    RefusedId,
    /// What a use is given is missing, or not of the type that the provider takes.
    RefusedInput,
    /// What a message, a part or a result says is missing, empty, or not of the type that the
    /// provider takes; or a list of calls is there, and has none.
    RefusedContent,
    /// A block in the message of a speaker of whom the provider takes none: a use that is not the
    /// model's.
    MisplacedBlock,
    /// A speaker of whom the provider takes no message there.
    RefusedRole,
    /// A use with other content behind it in its message.
    ContentAfterUse,
    /// A request that ends as the provider takes none: with a thought of the model's, or with a
    /// text of its that ends in white space.
    RefusedEnd,
    /// What a use is given is not of the type that the agent writes: what it sends of that is not
    /// known. It is left as it is, and not judged.
    UnreadInput,
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

/// What is told of an end that is white space.
pub(super) const WHITE: &str = "white space";

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
    /// The member that is refused on its own.
    pub(crate) refused: Option<Box<Refused>>,
    /// The message at which it showed.
    pub(crate) noticed: usize,
    /// The form in which the provider is asked, where that is another.
    pub(super) asked: Option<Format>,
    /// Which message and block it is there, where tools' results are one message.
    pub(super) place: (usize, Option<usize>),
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

    /// Whether it says that something is not understood: what the provider makes of the session is
    /// not known then.
    #[must_use]
    pub const fn is_not_judged(self) -> bool {
        matches!(
            self,
            Self::UnreadBlock | Self::UnknownBlock | Self::UnknownMessage | Self::UnreadInput
        )
    }

    /// Whether it is refused on its own, whatever stands around it: see
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

    /// The member that is refused on its own.
    pub(crate) fn member(&self) -> Option<&'static str> {
        self.refused.as_ref().map(|refused| refused.member)
    }

    /// Whether it is an end in white space.
    pub(crate) fn is_white(&self) -> bool {
        *self.about == *WHITE
    }

    /// Whether it is an id that is there, and empty.
    pub(crate) fn is_empty_id(&self) -> bool {
        self.fault == Fault::MissingId && *self.about == *EMPTY
    }

    /// It where the provider is asked in this form.
    pub(crate) fn asked(mut self, asked: Option<Format>) -> Self {
        self.severity = self.fault.severity(self.format, asked);
        self.asked = asked;
        self
    }

    /// The form of the provider that refuses it: of messages in an agent's own form, that of the
    /// last answer, if it is known.
    #[must_use]
    pub fn format(&self) -> Format {
        self.asked.unwrap_or(self.format)
    }

    /// The text with which the provider would refuse it; `None` for a warning, but for one of which
    /// only some of its models take no notice.
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

/// The message of 002.
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
