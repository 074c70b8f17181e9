//! Which parts of a provider's JSON say how an answer ended, and what those so far say.
//!
//! A model's own text is never in one of these places, so it is never read as the provider's.
use super::{
    end::{Complaint, ModelEnd},
    words::{Found, Search},
};
use arrayvec::ArrayVec;

/// What the answer's parts so far say about its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// The search in the current error, or in one of its strings.
    pub(super) search: Search,
    is_filtered: bool,
    complaint: Option<Complaint>,
    has_failed: bool,
    /// Whether events were seen of a provider whose stream has a final event.
    pub(super) is_begun: bool,
    /// Whether the answer's end was seen.
    pub(super) is_over: bool,
    root: Root,
}

/// What the current top-level object holds; at its end it may prove to be an error.
#[derive(Clone, Copy, Debug, Default)]
struct Root {
    is_error: bool,
    found: Found,
}

impl Evidence {
    /// The failure so far, if there is one.
    pub(super) fn fault(&self) -> Option<ModelEnd> {
        if self.is_filtered {
            return Some(ModelEnd::Filtered);
        }
        let complaint = self.complaint.map(ModelEnd::Refused);
        complaint.or(self.has_failed.then_some(ModelEnd::Failed))
    }

    /// The event's name says that it is an error.
    pub(super) fn named_error(&mut self) {
        (self.root.is_error, self.has_failed, self.is_over) = (true, true, true);
    }

    pub(super) fn end_of_event(&mut self) {
        self.root = Root::default();
    }

    /// An object or an array begins.
    pub(super) fn open(&mut self, outer: Place, place: Place, is_object: bool) {
        match place {
            Place::Error if outer != Place::Error && is_object => self.failed(),
            Place::Choice | Place::Candidate | Place::Response => self.is_begun = true,
            _ => {}
        }
    }

    /// A number, or `true`, `null` and the like.
    pub(super) fn bare(&mut self, place: Place, key: &[u8], word: &[u8]) {
        match (place, key) {
            (Place::Root | Place::Choice | Place::Response, b"error") => {
                self.has_failed |= !matches!(word, b"null" | b"false");
            }
            // The end of OpenAI's streams.
            (Place::Root, _) if word == b"DONE" => self.is_over = true,
            _ => {}
        }
    }

    /// A string value ends.
    pub(super) fn text(&mut self, place: Place, key: &[u8], look: Look, word: &[u8]) {
        if look == Look::Search {
            let found = self.search.found();
            return match (place, key) {
                (Place::Root, b"code" | b"message") => {
                    self.root.found = self.root.found.and(found);
                }
                _ if self.search.is_empty => {}
                _ => {
                    self.failed();
                    self.found(found);
                }
            };
        }
        match (place, key) {
            (Place::Root, b"type") => self.event(word),
            (Place::Root | Place::Delta, b"stop_reason") => {
                self.is_filtered |= word == b"refusal";
            }
            (Place::Choice, b"finish_reason" | b"finishReason") if !word.is_empty() => {
                self.is_over = true;
                self.is_filtered |= word == b"content_filter";
                self.has_failed |= word == b"error";
            }
            (Place::Said, b"refusal") => self.is_filtered |= !word.is_empty(),
            (Place::Root | Place::Response, b"status") => {
                self.has_failed |= matches!(word, b"failed" | b"cancelled");
            }
            (Place::Details, b"reason") => self.is_filtered |= word == b"content_filter",
            (Place::OutputContent, b"type") => self.is_filtered |= word == b"refusal",
            (Place::Feedback, b"blockReason") => {
                self.is_filtered |= word != b"BLOCK_REASON_UNSPECIFIED";
            }
            (Place::Candidate, b"finish_reason" | b"finishReason") => self.gemini(word),
            _ => {}
        }
    }

    /// An event's type, or a body's.
    fn event(&mut self, kind: &[u8]) {
        match kind {
            b"error" => (self.root.is_error, self.is_over) = (true, true),
            b"message_start" | b"ping" => self.is_begun = true,
            b"message_stop" => self.is_over = true,
            b"response.completed" | b"response.incomplete" => self.is_over = true,
            b"response.failed" | b"response.cancelled" => self.failed(),
            b"response.refusal.delta" | b"response.refusal.done" => self.is_filtered = true,
            _ => {}
        }
        self.is_begun |= kind.starts_with(b"response.");
    }

    fn gemini(&mut self, reason: &[u8]) {
        self.is_over |= reason != b"FINISH_REASON_UNSPECIFIED";
        match reason {
            b"SAFETY"
            | b"RECITATION"
            | b"BLOCKLIST"
            | b"PROHIBITED_CONTENT"
            | b"SPII"
            | b"IMAGE_SAFETY"
            | b"IMAGE_PROHIBITED_CONTENT"
            | b"IMAGE_RECITATION" => {
                self.is_filtered = true;
            }
            b"MALFORMED_FUNCTION_CALL"
            | b"UNEXPECTED_TOOL_CALL"
            | b"TOO_MANY_TOOL_CALLS"
            | b"NO_IMAGE"
            | b"IMAGE_OTHER"
            | b"LANGUAGE"
            | b"OTHER" => self.has_failed = true,
            b"MISSING_THOUGHT_SIGNATURE" => {
                self.complaint = self.complaint.or(Some(Complaint::Thinking));
            }
            _ => {}
        }
    }

    /// A top-level object ends: decides whether it is an error.
    pub(super) fn end_of_root(&mut self) {
        if self.root.is_error {
            self.failed();
            self.found(self.root.found);
        }
        self.end_of_event();
    }

    fn failed(&mut self) {
        (self.has_failed, self.is_over) = (true, true);
    }

    fn found(&mut self, found: Found) {
        self.is_filtered |= found.is_filtered;
        self.complaint = self.complaint.or(found.complaint());
    }
}

/// The beginning of a word, as long as the longest that matters.
pub(super) type Word = ArrayVec<u8, 32>;

/// Appends to a word as much as fits.
pub(super) fn append(word: &mut Word, bytes: impl IntoIterator<Item = u8>) {
    word.extend(bytes.into_iter().take(word.remaining_capacity()));
}

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

/// How a string is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// As a member's name.
    Name,
    /// As a short word.
    Word,
    /// As a whole, in a search for the texts of filters and complaints.
    Search,
}

impl Place {
    /// The place of the object or the array that is the member of the name `key`.
    pub(super) fn of_member(self, key: &[u8]) -> Self {
        match (self, key) {
            (Self::Error, _) | (Self::Root | Self::Choice | Self::Response, b"error") => {
                Self::Error
            }
            (Self::Root, b"delta") => Self::Delta,
            (Self::Root, b"choices") => Self::Choice,
            (Self::Root, b"response") => Self::Response,
            (Self::Root, b"promptFeedback") => Self::Feedback,
            (Self::Root, b"candidates") => Self::Candidate,
            (Self::Choice, b"message" | b"delta") => Self::Said,
            (Self::Root | Self::Response, b"incomplete_details") => Self::Details,
            (Self::Root | Self::Response, b"output") => Self::Output,
            (Self::Output, b"content") => Self::OutputContent,
            _ => Self::Other,
        }
    }

    /// How to read the string that is the member `key`.
    pub(super) fn look(self, key: &[u8]) -> Look {
        match (self, key) {
            (Self::Error, _)
            | (Self::Root, b"code" | b"message")
            | (Self::Root | Self::Choice | Self::Response, b"error") => Look::Search,
            _ => Look::Word,
        }
    }
}
