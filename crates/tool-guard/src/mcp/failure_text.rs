//! The text of a failure, as far as it is classified and kept.
use super::elements::unchecked_elements;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How much of an error's text is classified and kept, in bytes.
const MAX_TEXT: usize = 8 * 1024;

#[derive(Deserialize)]
struct Block<'l> {
    // An array without members has no text.
    #[serde(borrow, default)]
    text: Option<Cow<'l, str>>,
}

/// The beginning of a text.
pub(super) fn bounded(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

/// The texts of a result's content that are classified and kept: of millions of blocks only the first ones.
pub(super) fn of_content(content: Option<&RawValue>) -> String {
    let blocks = content.and_then(|raw| unchecked_elements(raw.get().as_bytes()));
    let mut texts = String::new();
    for block in blocks.into_iter().flatten() {
        if texts.len() > MAX_TEXT {
            break;
        }
        let Ok(block) = serde_json::from_slice::<Block<'_>>(block) else { return String::new() };
        let Some(text) = block.text else { continue };
        if !texts.is_empty() {
            texts.push('\n');
        }
        texts.push_str(bounded(&text));
    }
    texts
}
