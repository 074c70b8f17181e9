//! The text of a failure, as far as it is classified and kept.
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// How much of an error's text is classified and kept, in bytes.
const MAX_TEXT: usize = 8 * 1024;

#[derive(Deserialize)]
struct Block<'l> {
    #[serde(borrow, default)]
    text: Option<Cow<'l, str>>,
}

/// The beginning of a text.
pub(super) fn bounded(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

/// The texts of a result's content.
pub(super) fn of_content(content: Option<&RawValue>) -> String {
    let texts = content.and_then(|raw| serde_json::from_str::<Texts>(raw.get()).ok());
    texts.unwrap_or_default().0
}

/// The texts of blocks that are classified and kept: of millions only the first ones.
#[derive(Default)]
struct Texts(String);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Self::default())
    }
}

impl<'de> Visitor<'de> for Texts {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("blocks of content")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut blocks: A) -> Result<Self, A::Error> {
        while self.0.len() <= MAX_TEXT {
            let Some(block) = blocks.next_element::<Block<'de>>()? else { return Ok(self) };
            let Some(text) = block.text else { continue };
            if !self.0.is_empty() {
                self.0.push('\n');
            }
            self.0.push_str(bounded(&text));
        }
        while blocks.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}
