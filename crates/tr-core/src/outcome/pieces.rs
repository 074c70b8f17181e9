//! How the content of an outcome was streamed: where its chunks begin and end.
use crate::Json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

/// Where the chunks of a streamed answer are in its gathered content.
///
/// The content of such an outcome is the whole answer: chunks of text joined to one string, any other
/// chunks as a list. So it reads like any other answer, and can be replayed chunk by chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pieces {
    lengths: Box<[u32]>,
    #[serde(default)]
    joined: bool,
    #[serde(default)]
    closes: bool,
}

impl Pieces {
    /// `lengths` are the bytes of each chunk in the content: of its JSON text in a list; in `joined` text,
    /// of what is between its quotes. `closes` says that the last of them came with the outcome itself.
    #[must_use]
    pub fn new(lengths: impl Into<Box<[u32]>>, joined: bool, closes: bool) -> Self {
        Self { lengths: lengths.into(), joined, closes }
    }

    /// Whether the last one came with the outcome, and not before it.
    #[must_use]
    pub const fn closes(&self) -> bool {
        self.closes
    }

    /// The bytes that they take.
    pub(crate) const fn size(&self) -> usize {
        size_of_val::<[u32]>(&self.lengths)
    }

    /// Whether `content` is what these are the pieces of.
    fn fits(&self, content: &str) -> bool {
        let lengths = self.lengths.iter().map(|length| *length as usize);
        if !self.joined {
            let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(content) else { return false };
            // The texts of a list that was written elsewhere may have space between them.
            let bare = 1 + lengths.clone().map(|length| length + 1).sum::<usize>();
            return !self.lengths.is_empty()
                && bare == content.len()
                && list.into_iter().map(|chunk| chunk.get().len()).eq(lengths);
        }
        let Some(text) = content.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
            return false;
        };
        let mut rest = text;
        for length in lengths {
            let Some((chunk, after)) = rest.split_at_checked(length) else { return false };
            if serde_json::from_str::<&RawValue>(&quoted(chunk)).is_err() {
                return false;
            }
            rest = after;
        }
        rest.is_empty()
    }
}

fn quoted(text: &str) -> String {
    ["\"", text, "\""].concat()
}

/// The chunks of a streamed answer, one after the other, byte for byte.
#[derive(Clone, Debug)]
pub struct SplitContent {
    content: Json,
    pieces: Arc<Pieces>,
    next: usize,
    offset: usize,
}

impl SplitContent {
    /// `None` if these are not the pieces of this content.
    pub(super) fn new(content: Json, pieces: Arc<Pieces>) -> Option<Self> {
        pieces.fits(content.get()).then_some(Self { content, pieces, next: 0, offset: 1 })
    }

    /// The chunk that came with the outcome itself, if one did.
    #[must_use]
    pub fn closing(self) -> Option<Json> {
        if self.pieces.closes { self.last() } else { None }
    }

    /// Whether the next one came with the outcome itself.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.pieces.closes && self.next + 1 == self.pieces.lengths.len()
    }
}

impl Iterator for SplitContent {
    type Item = Json;

    fn next(&mut self) -> Option<Json> {
        let length = *self.pieces.lengths.get(self.next)? as usize;
        let chunk = self.content.get().get(self.offset..self.offset + length)?;
        // A list has a comma between two.
        self.offset += length + usize::from(!self.pieces.joined);
        self.next += 1;
        let text = if self.pieces.joined { quoted(chunk) } else { chunk.to_owned() };
        Json::from_text(text).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.pieces.lengths.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for SplitContent {}
