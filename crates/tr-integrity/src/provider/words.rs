//! The exact words of filters and of complaints, and the search for them in text that comes in pieces.
use super::Complaint;
use memchr::memmem;

/// Complaints by their exact words, as Anthropic, OpenAI and Gemini write them.
pub(super) const COMPLAINTS: [(&str, Complaint); 21] = [
    (
        "`tool_use` ids were found without `tool_result` blocks immediately after",
        Complaint::IncompleteUse,
    ),
    ("unexpected `tool_use_id` found in `tool_result` blocks", Complaint::OrphanedResult),
    ("`tool_use` ids must be unique", Complaint::DuplicateId),
    ("each tool_use must have a single result", Complaint::SeveralResults),
    ("blocks in the latest assistant message cannot be modified", Complaint::Thinking),
    ("thinking blocks cannot be modified", Complaint::Thinking),
    ("Expected `thinking` or `redacted_thinking`, but found", Complaint::Thinking),
    ("Invalid `signature` in `thinking` block", Complaint::Thinking),
    ("text content blocks must be non-empty", Complaint::EmptyText),
    ("text content blocks must contain non-whitespace text", Complaint::EmptyText),
    (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'",
        Complaint::IncompleteUse,
    ),
    (
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
        Complaint::OrphanedResult,
    ),
    ("No tool output found for", Complaint::IncompleteUse),
    ("No tool call found for function call output", Complaint::OrphanedResult),
    ("Duplicate item found with id", Complaint::DuplicateId),
    ("was provided without its required 'reasoning' item", Complaint::Thinking),
    ("was provided without its required following item", Complaint::Thinking),
    (
        "number of function response parts is equal to the number of function call parts",
        Complaint::IncompleteUse,
    ),
    (
        "function call turn comes immediately after a user turn or after a function response turn",
        Complaint::Misplaced,
    ),
    (
        "function response turn comes immediately after a function call turn",
        Complaint::OrphanedResult,
    ),
    ("missing a thought_signature", Complaint::Thinking),
];

/// What filters say in errors: Anthropic's message, 002's type `content_filtered`, and the codes
/// and messages of OpenAI and of its hosts.
pub(super) const FILTERS: [&str; 9] = [
    "Output blocked by content filtering policy",
    "content_filter",
    "ResponsibleAIPolicyViolation",
    "content management policy",
    "content_policy_violation",
    "moderation_blocked",
    "violating our usage policy",
    "limited access to this content for safety reasons",
    "data_inspection_failed",
];

/// Bytes of which a match may be made: as many are kept from one look to the next.
const LONGEST: usize = 128;

/// Bytes that are looked at together.
const LOOK: usize = 1024;

/// What a text says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) is_filtered: bool,
    /// By its place in the list, so that the order of the text does not count.
    complaint: Option<usize>,
}

impl Found {
    pub(super) fn of(text: &[u8]) -> Self {
        let has = |words: &str| memmem::find(text, words.as_bytes()).is_some();
        Self {
            is_filtered: FILTERS.iter().any(|words| has(words)),
            complaint: COMPLAINTS.iter().position(|(words, _)| has(words)),
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        let complaints = [self.complaint, other.complaint].into_iter().flatten();
        Self { is_filtered: self.is_filtered || other.is_filtered, complaint: complaints.min() }
    }

    pub(super) fn complaint(self) -> Option<Complaint> {
        self.complaint.map(|at| COMPLAINTS[at].1)
    }
}

/// Looks for the words in a text that comes in pieces. Finds the same however it is cut, and
/// keeps a kilobyte at most; nothing until there is an error to read.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    text: Vec<u8>,
    found: Found,
    is_empty: bool,
}

impl Search {
    /// A new text begins.
    pub(super) fn begin(&mut self) {
        self.text.clear();
        (self.found, self.is_empty) = (Found::default(), true);
    }

    pub(super) fn push(&mut self, mut piece: &[u8]) {
        self.is_empty &= piece.is_empty();
        while !piece.is_empty() {
            if self.text.len() == LOOK {
                self.found = self.found.and(Found::of(&self.text));
                self.text.drain(..LOOK - LONGEST);
            }
            self.text.reserve_exact(LOOK - self.text.len());
            let (now, later) = piece.split_at(piece.len().min(LOOK - self.text.len()));
            self.text.extend_from_slice(now);
            piece = later;
        }
    }

    /// What was found so far.
    pub(super) fn found(&self) -> Found {
        self.found.and(Found::of(&self.text))
    }

    /// Whether the text has nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_words_are_longer_than_what_is_kept() {
        let all = COMPLAINTS.iter().map(|(words, _)| *words).chain(FILTERS);
        assert!(all.map(str::len).max().unwrap() <= LONGEST);
    }

    #[test]
    fn words_are_found_wherever_they_lie_in_a_long_text() {
        let (words, complaint) = COMPLAINTS[10];
        for before in [0, 1, LOOK - LONGEST, LOOK - 60, LOOK - 1, LOOK, 3 * LOOK - 7] {
            let text = format!("{}{words}{}", "x".repeat(before), "y".repeat(2 * LOOK));
            for step in [1, 7, 500, text.len()] {
                let mut search = Search::default();
                search.begin();
                text.as_bytes().chunks(step).for_each(|piece| search.push(piece));
                assert_eq!(search.found().complaint(), Some(complaint), "{before} {step}");
                assert!(search.text.capacity() <= LOOK);
            }
        }
    }
}
