//! Which parts of a message are not understood, and which ones the provider refuses on their own.
use super::{Block, Message, Unknown};
use crate::{
    format::{Applies, CACHE, Refused, Why},
    json::{self, Members},
    validate::Fault,
};
use std::borrow::Cow;

impl Message {
    /// Whether its role, its members and all of its blocks are known. A repair changes no message
    /// or block that is not.
    #[must_use]
    pub fn is_understood(&self) -> bool {
        self.body.unknown.is_none() && self.blocks().iter().all(Block::is_understood)
    }

    /// Whether it cannot be judged: its role is unknown, or its content is only in unknown members
    /// or in blocks of unknown types.
    #[must_use]
    pub fn says_unknown(&self) -> bool {
        let is_unknown = |block: &Block| block.unknown == Some(Unknown::Content);
        let blocks = self.blocks();
        self.body.unknown == Some(Unknown::Content)
            || !blocks.is_empty() && blocks.iter().all(is_unknown)
    }

    /// The texts of the unknown parts: the whole message, the text around its blocks, or blocks.
    pub(crate) fn not_understood(&self) -> impl Iterator<Item = &str> {
        let raw = self.raw();
        let (whole, around) = match (self.body.unknown, &self.body.list) {
            (None, _) => (None, None),
            (Some(Unknown::Members), Some(list)) => {
                (None, Some([&raw[..list.start], &raw[list.end..]]))
            }
            (Some(_), _) => (Some(raw), None),
        };
        let is_asked = move |block: &&Block| whole.is_none() && !block.is_understood();
        let blocks = self.blocks().iter().filter(is_asked).map(|block| self.text(&block.span));
        whole.into_iter().chain(around.into_iter().flatten()).chain(blocks)
    }

    /// The member that its provider refuses on its own.
    pub(crate) fn refused(&self) -> Option<&Refused> {
        self.body.refused.as_deref()
    }

    /// What the provider refuses on its own: members of it, and of its blocks.
    pub(crate) fn all_refused(&self, applies: Applies) -> impl Iterator<Item = &Refused> {
        let blocks = self.blocks().iter().filter_map(|block| block.refused.as_deref());
        blocks.chain(self.refused()).filter(move |refused| applies.to(refused))
    }

    /// Whether the provider refuses the id of this use.
    pub(crate) fn refuses_id(&self, block: usize, applies: Applies) -> bool {
        let refused = self.blocks().get(block).and_then(|block| block.refused.as_deref());
        refused.is_some_and(|it| it.fault == Fault::RefusedId && applies.to(it))
    }

    /// The blocks with an image that is refused among many.
    pub(crate) fn wide_images(&self) -> impl Iterator<Item = usize> {
        let is_wide = |block: &Block| block.refused.as_ref().is_some_and(|it| it.why == Why::Wide);
        let blocks = self.blocks().iter().enumerate();
        blocks.filter(move |(_, block)| is_wide(block)).map(|(at, _)| at)
    }

    /// How many marks for the cache its blocks have.
    pub(crate) fn cache_marks(&self) -> usize {
        self.blocks().iter().map(|block| json::marks(self.text(&block.span), CACHE)).sum()
    }

    /// Whether this block is a thinking block.
    pub(crate) fn is_thought(&self, block: usize) -> bool {
        let part = Members::of(self.text(&self.blocks()[block].span), &["type"]);
        matches!(&*part.unwrap_or_default().text("type"), "thinking" | "redacted_thinking")
    }

    /// Whether the text of this block, or of a string content, ends in white space.
    pub(crate) fn ends_in_space(&self, block: usize) -> bool {
        let text = self.text(&self.blocks()[block].span);
        let said = Members::of(text, &["text"]).ok().and_then(|part| part.string("text"));
        let said = said.or_else(|| serde_json::from_str(text).ok().map(Cow::Owned));
        said.is_some_and(|said| said.ends_with(char::is_whitespace))
    }
}
