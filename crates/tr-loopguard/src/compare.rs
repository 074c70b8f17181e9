//! Compares responses by their words, without the values that always change.
mod words;

pub(crate) use words::Words;

use std::{
    hash::{BuildHasher as _, Hasher, RandomState},
    ops::Range,
    sync::LazyLock,
};
use words::Names;

/// Servers choose the hashed text, so each process has its own key.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Of a longer response, the two ends of this length are compared, and the total length.
const MAX_END: usize = 64 * 1024;

/// A longer response is not a status message.
const MAX_STATUS: usize = 1024;

/// The states of a job that has not ended, in job queues, CI systems, batch schedulers, clusters
/// and MCP's tasks. Such a word counts only alone, as a value or in a cell: a "working tree" is not
/// pending.
static PENDING: Names<24> = Names::new([
    "pending",
    "queued",
    "scheduled",
    "submitted",
    "runnable",
    "provisioning",
    "initializing",
    "podinitializing",
    "creating",
    "containercreating",
    "starting",
    "restarting",
    "running",
    "inprogress",
    "progressing",
    "processing",
    "building",
    "deploying",
    "updating",
    "deleting",
    "stopping",
    "terminating",
    "working",
    "waiting",
]);

/// The suffix of a state of one step of several.
const IN_PROGRESS: &[u8] = b"_in_progress";

/// The words that also count within a sentence.
static SAID: Names<7> =
    Names::new(["still", "pending", "queued", "running", "waiting", "inprogress", "processing"]);

/// A response, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Equal for equal responses.
    pub(crate) hash: u64,
    /// Whether it says that a job has not ended.
    pub(crate) pending: bool,
}

impl Compared {
    /// Reads a response. Values under the names in `volatile` do not count either; at most 128 KiB
    /// of the response are read.
    pub(crate) fn read(text: &str, volatile: &[Box<str>]) -> Self {
        let mut hasher = Blocks::new(HASHER.build_hasher());
        let is_status = text.len() <= MAX_STATUS;
        // A text of several lines is not one sentence.
        let is_sentence = is_status && !text.contains('\n') && !text.contains("\\n");
        let mut pending = false;
        let (head, tail) = ends(text);
        for part in [head, tail] {
            for word in Words::new(part, volatile) {
                hasher.word(part[word.clone()].as_bytes());
                pending |= is_status && !pending && is_pending(part, &word, is_sentence);
            }
        }
        if !tail.is_empty() {
            hasher.word(&text.len().to_le_bytes());
        }
        Self { hash: hasher.finish(), pending }
    }
}

/// Hashes words in blocks: a hasher takes long to take a few bytes.
struct Blocks<H> {
    hasher: H,
    block: [u8; 512],
    len: usize,
}

impl<H: Hasher> Blocks<H> {
    const fn new(hasher: H) -> Self {
        Self { hasher, block: [0; 512], len: 0 }
    }

    /// Takes a word, with an end that no text has.
    fn word(&mut self, word: &[u8]) {
        let end = self.len + word.len();
        if let Some(room) = self.block.get_mut(self.len..=end) {
            let (place, last) = room.split_at_mut(word.len());
            place.copy_from_slice(word);
            last[0] = 0xff;
            self.len = end + 1;
            return;
        }
        self.hasher.write(&self.block[..self.len]);
        self.len = 0;
        if word.len() < self.block.len() {
            return self.word(word);
        }
        self.hasher.write(word);
        self.hasher.write(&[0xff]);
    }

    fn finish(mut self) -> u64 {
        self.hasher.write(&self.block[..self.len]);
        self.hasher.finish()
    }
}

/// The text in one piece or, if it is long, its two ends.
fn ends(text: &str) -> (&str, &str) {
    if text.len() <= 2 * MAX_END {
        return (text, "");
    }
    let mut head = MAX_END;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - MAX_END;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    (&text[..head], &text[tail..])
}

/// Whether the word at `at` says that a job has not ended.
fn is_pending(text: &str, at: &Range<usize>, is_sentence: bool) -> bool {
    let word = &text[at.clone()];
    let is_in_progress = || {
        let end = word.len().checked_sub(IN_PROGRESS.len()).map(|at| &word.as_bytes()[at..]);
        end.is_some_and(|end| end.eq_ignore_ascii_case(IN_PROGRESS))
    };
    (is_sentence && SAID.have(word))
        || ((PENDING.have(word) || is_in_progress())
            && stands_alone(&text[..at.start], &text[at.end..]))
}

/// Whether the word between these two is a value or a cell, and not part of a sentence.
fn stands_alone(before: &str, after: &str) -> bool {
    let opens = ['"', '\'', ':', '=', '[', '(', '{', ',', '|', '\t', '\n'];
    let closes = ['"', '\'', '\\', ']', ')', '}', ',', ';', '|', '\t', '\n', '\r'];
    let is_opened = before.is_empty()
        || before.ends_with(opens)
        || ["  ", ": ", "= ", "| ", "\\n", "\\t"].iter().any(|end| before.ends_with(end));
    let is_closed = after.is_empty()
        || after.starts_with(closes)
        || ["  ", " |", " ("].iter().any(|start| after.starts_with(start));
    is_opened && is_closed
}

#[cfg(test)]
mod tests;
