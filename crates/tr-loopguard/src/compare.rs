//! Compares responses by their words, without the values that always change.
mod names;
mod words;

pub(crate) use words::Words;

use names::{PENDING, SAID, STILL};
use std::{
    cell::LazyCell,
    hash::{BuildHasher as _, Hasher, RandomState},
    ops::Range,
    sync::LazyLock,
};
use tr_core::internal::{ceil_char_boundary, floor_char_boundary};

/// Servers choose the hashed text, so each process has its own key.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Of a longer response, the two ends of this length are compared, and the total length.
const MAX_END: usize = 64 * 1024;

/// A longer response is not a status message.
const MAX_STATUS: usize = 1024;

/// The suffix of a state of one step of several.
const IN_PROGRESS: &[u8] = b"_in_progress";

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
        let is_sentence = LazyCell::new(|| !text.contains('\n') && !text.contains("\\n"));
        let mut pending = false;
        let (head, tail) = ends(text);
        for part in [head, tail] {
            let mut words = Words::new(part, volatile);
            while let Some(word) = words.next() {
                let len = word.end - word.start;
                hasher.word(&part.as_bytes()[word.start..], len);
                let may_be_state = words.may_be_name || len >= IN_PROGRESS.len();
                if is_status && may_be_state && !pending {
                    pending = is_pending(part, &word, || *is_sentence);
                }
            }
        }
        if !tail.is_empty() {
            let len = text.len().to_le_bytes();
            hasher.word(&len, len.len());
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

/// What follows a word; no text has it.
const END: u8 = 0xff;

impl<H: Hasher> Blocks<H> {
    const fn new(hasher: H) -> Self {
        Self { hasher, block: [0; 512], len: 0 }
    }

    /// Takes the word of this length at the start of `text`.
    #[inline]
    fn word(&mut self, text: &[u8], len: usize) {
        // Most words are short: 16 bytes at once are faster than a copy of any length.
        if len < 16
            && let Some(from) = text.first_chunk::<16>()
            && let Some(to) = self.block[self.len..].first_chunk_mut::<16>()
        {
            *to = *from;
            to[len] = END;
            self.len += len + 1;
        } else {
            self.any_word(&text[..len]);
        }
    }

    #[inline(never)]
    fn any_word(&mut self, word: &[u8]) {
        if self.len + word.len() >= self.block.len() {
            self.hasher.write(&self.block[..self.len]);
            self.len = 0;
        }
        let room = &mut self.block[self.len..];
        if word.len() < room.len() {
            room[..word.len()].copy_from_slice(word);
            room[word.len()] = END;
            self.len += word.len() + 1;
        } else {
            self.hasher.write(word);
            self.hasher.write(&[END]);
        }
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
    let head = floor_char_boundary(text, MAX_END);
    let tail = ceil_char_boundary(text, text.len() - MAX_END);
    (&text[..head], &text[tail..])
}

/// Whether the word at `at` says that a job has not ended.
fn is_pending(text: &str, at: &Range<usize>, is_sentence: impl Fn() -> bool) -> bool {
    let word = &text.as_bytes()[at.clone()];
    let state = PENDING.find(word);
    if state.is_none() && !is_in_progress(word) {
        return false;
    }
    (state.is_some_and(|state| SAID.contains(&state)) && is_sentence())
        || (state != Some(STILL) && stands_alone(&text[..at.start], &text[at.end..]))
}

fn is_in_progress(word: &[u8]) -> bool {
    let end = word.last_chunk::<{ IN_PROGRESS.len() }>();
    end.is_some_and(|end| end.eq_ignore_ascii_case(IN_PROGRESS))
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
