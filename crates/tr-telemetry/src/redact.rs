//! Redacts secrets in text for logs, spans and labels.
//!
//! Not logging params is the design; this is the net below it, for error messages, ids and names
//! that come from outside. Text is searched once for a few short anchors; only what stands around
//! an anchor is looked at more closely, so clean text costs one pass.
mod entropy;
mod forms;
mod hidden;
mod names;
mod parts;
mod redactor;
mod tokens;
mod values;

pub use self::{hidden::Hidden, redactor::Redactor};

use std::{borrow::Cow, fmt::Debug, ops::Range};
use tr_core::internal::floor_char_boundary;

/// The replacement of a secret.
pub const REDACTED: &str = "[redacted]";

/// Redacts secrets in text before it goes into a log, a span or a label.
pub trait Redact: Debug + Send + Sync {
    /// `text` without its secrets.
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str>;
}

/// Redacts `text` and cuts it to at most `most` bytes.
pub(crate) fn cut<'t>(redactor: &dyn Redact, text: &'t str, most: usize) -> Cow<'t, str> {
    // What would be cut away anyway need not be looked at; but never cut within a word, because half
    // a secret would not be recognized.
    let looked_at = if text.len() > 8 * most {
        let head = &text[..floor_char_boundary(text, 8 * most)];
        head.rfind(char::is_whitespace).map_or("", |end| &head[..end])
    } else {
        text
    };
    match redactor.redact(looked_at) {
        clean if clean.len() <= most => clean,
        clean => {
            Cow::Owned(format!("{}…", &clean[..floor_char_boundary(&clean, most - '…'.len_utf8())]))
        }
    }
}

/// `text` without these places, which are in the order of their starts and may overlap.
fn blotted(text: &str, places: Vec<Range<usize>>) -> Cow<'_, str> {
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut clean, mut done) = (String::with_capacity(text.len()), 0);
    for place in places {
        if place.start >= done {
            clean.push_str(&text[done..place.start]);
            clean.push_str(REDACTED);
        }
        done = done.max(place.end);
    }
    clean.push_str(&text[done..]);
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests;
