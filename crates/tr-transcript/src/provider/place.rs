//! Which parts of a provider's JSON say how an answer ended.
//!
//! A model's own text is never in one of these places, so it is never read as the provider's.

/// A place in a body or in an event; the elements of an array have the array's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// The body, the event, or an element of a streamed array.
    #[default]
    Root,
    /// Anthropic's `delta`.
    Delta,
    /// OpenAI's `choices`.
    Choice,
    /// A choice's `message` or `delta`.
    Said,
    /// The `response` in an event of OpenAI's Responses.
    Response,
    /// Its `incomplete_details`.
    Details,
    /// Its `output`.
    Output,
    /// The `content` of an output.
    OutputContent,
    /// Gemini's `promptFeedback`.
    Feedback,
    /// Gemini's `candidates`.
    Candidate,
    /// An error and everything in it.
    Error,
    /// Any other place.
    Other,
}

/// A member's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Key {
    BlockReason,
    Candidates,
    Choices,
    Code,
    Content,
    Delta,
    Error,
    FinishReason,
    IncompleteDetails,
    Message,
    Output,
    PromptFeedback,
    Reason,
    Refusal,
    Response,
    Status,
    StopReason,
    Type,
    #[default]
    Other,
}

/// How a string is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Look {
    /// Skipped.
    #[default]
    Past,
    /// As a short word.
    Word,
    /// As a whole, in a search for the texts of filters and complaints.
    Search,
}

impl Key {
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b"blockReason" => Self::BlockReason,
            b"candidates" => Self::Candidates,
            b"choices" => Self::Choices,
            b"code" => Self::Code,
            b"content" => Self::Content,
            b"delta" => Self::Delta,
            b"error" => Self::Error,
            b"finish_reason" | b"finishReason" => Self::FinishReason,
            b"incomplete_details" => Self::IncompleteDetails,
            b"message" => Self::Message,
            b"output" => Self::Output,
            b"promptFeedback" => Self::PromptFeedback,
            b"reason" => Self::Reason,
            b"refusal" => Self::Refusal,
            b"response" => Self::Response,
            b"status" => Self::Status,
            b"stop_reason" => Self::StopReason,
            b"type" => Self::Type,
            _ => Self::Other,
        }
    }
}

impl Place {
    /// The place of the object or the array that is the member `key`.
    pub(super) fn of_member(self, key: Key) -> Self {
        match (self, key) {
            (Self::Error, _) | (Self::Root | Self::Choice | Self::Response, Key::Error) => {
                Self::Error
            }
            (Self::Root, Key::Delta) => Self::Delta,
            (Self::Root, Key::Choices) => Self::Choice,
            (Self::Root, Key::Response) => Self::Response,
            (Self::Root, Key::PromptFeedback) => Self::Feedback,
            (Self::Root, Key::Candidates) => Self::Candidate,
            (Self::Choice, Key::Message | Key::Delta) => Self::Said,
            (Self::Root | Self::Response, Key::IncompleteDetails) => Self::Details,
            (Self::Root | Self::Response, Key::Output) => Self::Output,
            (Self::Output, Key::Content) => Self::OutputContent,
            _ => Self::Other,
        }
    }

    /// How to read the string that is the member `key`.
    pub(super) fn look(self, key: Key) -> Look {
        match (self, key) {
            (Self::Error, _)
            | (Self::Root, Key::Code | Key::Message)
            | (Self::Root | Self::Choice | Self::Response, Key::Error) => Look::Search,
            (Self::Root, Key::Type | Key::StopReason | Key::Status)
            | (Self::Delta, Key::StopReason)
            | (Self::Choice | Self::Candidate, Key::FinishReason)
            | (Self::Said, Key::Refusal)
            | (Self::Response, Key::Status)
            | (Self::Details, Key::Reason)
            | (Self::OutputContent, Key::Type)
            | (Self::Feedback, Key::BlockReason) => Look::Word,
            _ => Look::Past,
        }
    }
}
