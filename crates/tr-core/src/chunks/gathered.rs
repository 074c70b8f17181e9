//! The whole of a streamed answer, as far as it is kept.
use super::content::ChunkContent;
use crate::{Json, outcome::Pieces};

/// The chunks so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    /// A list that is not closed.
    list: String,
    lengths: Vec<u32>,
    /// Not all of them are texts.
    has_values: bool,
    pub(super) most: usize,
    /// All chunks together are longer than `most`, so none is kept.
    pub(super) is_over: bool,
}

impl Gathered {
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    pub(super) fn push(&mut self, chunk: &ChunkContent) {
        if self.is_over {
            return;
        }
        let text = chunk.json().get();
        let bytes = self.list.len() + text.len() + size_of::<u32>() * (self.lengths.len() + 1);
        let length = u32::try_from(text.len()).ok().filter(|_| bytes <= self.most);
        let Some(length) = length else {
            self.is_over = true;
            (self.list, self.lengths) = (String::new(), Vec::new());
            return;
        };
        self.list.push(if self.list.is_empty() { '[' } else { ',' });
        self.list.push_str(text);
        self.lengths.push(length);
        self.has_values |= !chunk.is_text;
    }

    /// The whole answer, or `None` if it is too long.
    pub(super) fn take(&mut self, closes: bool) -> Option<(Json, Pieces)> {
        if self.is_over || self.lengths.is_empty() {
            return None;
        }
        let mut list = std::mem::take(&mut self.list);
        let mut lengths = std::mem::take(&mut self.lengths);
        let all_text = !self.has_values;
        let text = if all_text {
            let mut joined = String::with_capacity(list.len());
            joined.push('"');
            let mut at = 1;
            for length in &mut lengths {
                let end = at + *length as usize;
                joined.push_str(&list[at + 1..end - 1]);
                at = end + 1;
                *length -= 2;
            }
            joined.push('"');
            joined
        } else {
            list.push(']');
            list
        };
        let content = Json::from_text(text).expect("chunks are JSON");
        Some((content, Pieces::new(lengths, all_text, closes)))
    }
}
