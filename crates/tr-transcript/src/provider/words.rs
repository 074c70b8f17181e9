//! The texts of filters and complaints, and the search for them in text that arrives in pieces.
use super::end::Complaint;
use memchr::memmem;

/// Complaints in the words of Anthropic, OpenAI and Gemini.
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

/// Filters in errors: Anthropic's message, the type `content_filtered`, and the codes and messages
/// of OpenAI and its hosts.
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

/// The maximum length of a match: this many bytes are kept between searches.
const LONGEST: usize = 128;

/// How many bytes are searched at once.
const LOOK: usize = 1024;

/// The matches in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) is_filtered: bool,
    /// As its index in the list, so that the order in the text does not matter.
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

/// Searches for the texts in a text that arrives in pieces. The result does not depend on how it is
/// split. Allocates at most a kilobyte, and nothing before there is an error.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    text: Vec<u8>,
    found: Found,
    /// Whether the text has nothing in it.
    pub(super) is_empty: bool,
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

    /// The matches so far.
    pub(super) fn found(&self) -> Found {
        self.found.and(Found::of(&self.text))
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
