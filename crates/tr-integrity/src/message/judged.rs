//! What of a message is not understood, and what its provider refuses of it on its own.
use super::{Block, Message, Unknown};
use crate::{format::Refused, json, validate::Fault};
use serde::Deserialize;
use serde_json::value::RawValue;

impl Message {
    /// Whether all of it is understood: its role, its members, and each of its blocks. A repair
    /// changes nothing that is not.
    #[must_use]
    pub fn is_understood(&self) -> bool {
        self.body.unknown.is_none() && self.blocks().iter().all(Block::is_understood)
    }

    /// Whether its role is not known, or what it says stands in members that are not, or in nothing
    /// but blocks of types that are not: it cannot be judged.
    #[must_use]
    pub fn says_unknown(&self) -> bool {
        let is_unknown = |block: &Block| block.unknown == Some(Unknown::Content);
        let blocks = self.blocks();
        self.body.unknown == Some(Unknown::Content)
            || !blocks.is_empty() && blocks.iter().all(is_unknown)
    }

    /// The texts of what is not understood: of all of it, of what stands around its blocks, or of
    /// blocks.
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

    /// What of it is not understood, beside its blocks.
    pub(crate) fn unknown(&self) -> Option<Unknown> {
        self.body.unknown
    }

    /// What its provider refuses of it on its own.
    pub(crate) fn refused(&self) -> Option<&Refused> {
        self.body.refused.as_deref()
    }

    /// Whether the provider refuses anything of it on its own; `has_limits` as below.
    pub(crate) fn has_refused(&self, has_limits: bool) -> bool {
        let blocks = self.blocks().iter().filter_map(|block| block.refused.as_deref());
        let mut refused = blocks.chain(self.refused());
        refused.any(|refused| has_limits || !refused.is_limit())
    }

    /// Whether the provider refuses the id of this use; `has_limits` says whether the form's own
    /// provider is asked.
    pub(crate) fn refuses_id(&self, block: usize, has_limits: bool) -> bool {
        let refused = self.blocks().get(block).and_then(|block| block.refused.as_deref());
        refused.is_some_and(|it| it.fault == Fault::RefusedId && (has_limits || !it.is_limit()))
    }

    /// Whether this block is a thought of the model's.
    pub(crate) fn is_thought(&self, block: usize) -> bool {
        let kind = self.type_of(block);
        matches!(kind.as_deref(), Some("thinking" | "redacted_thinking"))
    }

    /// Whether this block's text ends in white space, or the message's if that is its content.
    pub(crate) fn ends_in_space(&self, block: usize) -> bool {
        #[derive(Deserialize)]
        struct Part<'t> {
            #[serde(borrow)]
            text: &'t RawValue,
        }
        let text = self.text(&self.blocks()[block].span);
        let said: Option<String> = match json::object::<Part<'_>>(text) {
            Ok(part) => serde_json::from_str(part.text.get()).ok(),
            Err(_) => serde_json::from_str(text).ok(),
        };
        said.is_some_and(|said| said.ends_with(char::is_whitespace))
    }

    fn type_of(&self, block: usize) -> Option<String> {
        #[derive(Deserialize)]
        struct Part<'t> {
            #[serde(borrow, rename = "type")]
            kind: &'t RawValue,
        }
        let part: Part<'_> = json::object(self.text(&self.blocks()[block].span)).ok()?;
        serde_json::from_str(part.kind.get()).ok()
    }
}
