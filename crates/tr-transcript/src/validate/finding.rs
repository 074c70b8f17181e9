//! A validation's findings, and their summary.
use super::fault::{Fault, Severity};
use crate::format::{CACHE, Format, Refused, Results, Why};
use serde::{Deserialize, Serialize};
use std::fmt;

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
    pub(crate) asked: Option<Format>,
    /// The message and block in the request as the provider gets it, where consecutive tool results
    /// are one message.
    pub(crate) sent_position: (usize, Option<usize>),
}

impl Fault {
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
    pub(crate) fn member(&self) -> Option<&str> {
        self.refused.as_ref().map(|refused| &*refused.member)
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
            Format::AnthropicMessages | Format::Gemini => self.sent_position,
            _ => (self.message_index, self.block_index),
        };
        // OpenAI names the kind of call.
        let about = if self.about.is_empty() { "function call".into() } else { self.about.clone() };
        Some(asked.form().error(&Self { message_index, block_index, about, ..self.clone() }))
    }

    /// Whether every repair leaves it: what would be right there is not known.
    #[must_use]
    pub fn is_left_by_repair(&self) -> bool {
        match self.fault {
            Fault::RefusedName
            | Fault::RefusedRole
            | Fault::RefusedEnd
            | Fault::UnansweredServerUse => true,
            Fault::RefusedInput => self.refused.as_ref().is_some_and(|it| it.why == Why::Missing),
            Fault::RefusedContent => self.member() == Some(CACHE),
            _ => false,
        }
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
            Fault::LoneReasoning if self.about.is_empty() => {
                f.write_str("Reasoning without what follows")
            }
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
            Fault::RefusedEnd if self.block_index.is_none() => {
                f.write_str("Request that ends with an answer of the model's")
            }
            Fault::RefusedEnd => f.write_str("Request that ends with a thought of the model's"),
            Fault::DuplicateItem => write!(f, "Duplicate item id: {}", self.about),
        }
    }
}

/// The summary of a validation: the first error, and the ids of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ValidationResult {
    /// Whether the provider accepts the session.
    pub valid: bool,
    /// The first error: rule 1 before rule 2 before rule 3, then the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The ids of results without their uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphaned_ids: Option<Vec<Box<str>>>,
    /// The ids of uses without their results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete_ids: Option<Vec<Box<str>>>,
}

impl ValidationResult {
    pub(super) fn of(findings: &[Finding]) -> Self {
        let errors = || findings.iter().filter(|f| f.severity == Severity::Error);
        let order = |finding: &&Finding| match finding.fault.rule() {
            0 => u8::MAX,
            rule => rule,
        };
        let ids = |fault| {
            let of_kind = errors().filter(|finding| finding.fault == fault);
            let ids: Vec<_> = of_kind.filter_map(|finding| finding.tool_use_id.clone()).collect();
            (!ids.is_empty()).then_some(ids)
        };
        let first = errors().min_by_key(order);
        Self {
            valid: first.is_none(),
            error: first.map(ToString::to_string),
            orphaned_ids: ids(Fault::OrphanedResult),
            incomplete_ids: ids(Fault::IncompleteUse),
        }
    }
}
