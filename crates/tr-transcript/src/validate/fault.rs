//! What may be wrong with a session, and whether its provider refuses it.
use serde::Serialize;

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
    /// provider accepts; a list of calls is empty; an image or a document cannot be read; a Responses
    /// item has a member that is not taken; or a request has too many marks for the cache.
    RefusedContent,
    /// A block in a message of a role for which the provider does not accept it: a use that is not
    /// the model's.
    MisplacedBlock,
    /// A role from which the provider does not accept a message there.
    RefusedRole,
    /// A use with other content behind it in its message.
    ContentAfterUse,
    /// A request with an end that the provider refuses: a thinking block, a text of the model's that
    /// ends in white space, or any answer, where the model continues none.
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
}
