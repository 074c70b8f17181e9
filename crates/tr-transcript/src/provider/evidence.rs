//! What the answer's parts so far say about its end.
use super::{
    end::{Complaint, ModelEnd},
    place::{Key, Look, Place},
    words::{Found, Search},
};

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

/// Gemini's stop reasons for a filtered request or answer.
const GEMINI_FILTERS: [&[u8]; 8] = [
    b"SAFETY",
    b"RECITATION",
    b"BLOCKLIST",
    b"PROHIBITED_CONTENT",
    b"SPII",
    b"IMAGE_SAFETY",
    b"IMAGE_PROHIBITED_CONTENT",
    b"IMAGE_RECITATION",
];

/// Gemini's stop reasons without a usable answer.
const GEMINI_FAILURES: [&[u8]; 7] = [
    b"MALFORMED_FUNCTION_CALL",
    b"UNEXPECTED_TOOL_CALL",
    b"TOO_MANY_TOOL_CALLS",
    b"NO_IMAGE",
    b"IMAGE_OTHER",
    b"LANGUAGE",
    b"OTHER",
];

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
    pub(super) fn bare(&mut self, place: Place, key: Key, word: &[u8]) {
        match (place, key) {
            (Place::Root | Place::Choice | Place::Response, Key::Error) => {
                self.has_failed |= !matches!(word, b"null" | b"false");
            }
            // The end of OpenAI's streams.
            (Place::Root, Key::Other) if word == b"DONE" => self.is_over = true,
            _ => {}
        }
    }

    /// A string value ends.
    pub(super) fn text(&mut self, place: Place, key: Key, look: Look, word: &Word) {
        if look == Look::Search {
            let found = self.search.found();
            return match (place, key) {
                (Place::Root, Key::Code | Key::Message) => {
                    self.root.found = self.root.found.and(found);
                }
                _ if self.search.is_empty => {}
                _ => {
                    self.failed();
                    self.found(found);
                }
            };
        }
        let word = word.get();
        match (place, key) {
            (Place::Root, Key::Type) => self.event(word),
            (Place::Root | Place::Delta, Key::StopReason) => {
                self.is_filtered |= word == b"refusal";
            }
            (Place::Choice, Key::FinishReason) if !word.is_empty() => {
                self.is_over = true;
                self.is_filtered |= word == b"content_filter";
                self.has_failed |= word == b"error";
            }
            (Place::Said, Key::Refusal) => self.is_filtered |= !word.is_empty(),
            (Place::Root | Place::Response, Key::Status) => {
                self.has_failed |= matches!(word, b"failed" | b"cancelled");
            }
            (Place::Details, Key::Reason) => self.is_filtered |= word == b"content_filter",
            (Place::OutputContent, Key::Type) => self.is_filtered |= word == b"refusal",
            (Place::Feedback, Key::BlockReason) => {
                self.is_filtered |= word != b"BLOCK_REASON_UNSPECIFIED";
            }
            (Place::Candidate, Key::FinishReason) => self.gemini(word),
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
        self.is_filtered |= GEMINI_FILTERS.contains(&reason);
        self.has_failed |= GEMINI_FAILURES.contains(&reason);
        if reason == b"MISSING_THOUGHT_SIGNATURE" {
            self.complaint = self.complaint.or(Some(Complaint::Thinking));
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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Word {
    bytes: [u8; 32],
    len: usize,
}

impl Word {
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn push(&mut self, byte: u8) {
        if let Some(next) = self.bytes.get_mut(self.len) {
            *next = byte;
        }
        self.len = self.len.saturating_add(1);
    }

    /// All of it, or as much as fits.
    pub(super) fn get(&self) -> &[u8] {
        &self.bytes[..self.len.min(self.bytes.len())]
    }
}
