//! Searches a text for many ids at once, each quoted as in JSON.
use std::collections::HashMap;

/// Ids, quoted as in JSON.
#[derive(Debug)]
pub(crate) struct Names<'n> {
    quoted: &'n [String],
    /// Their indexes by the text up to the second quote: the whole id, unless it has quotes itself.
    beginnings: HashMap<&'n str, Vec<usize>>,
}

impl<'n> Names<'n> {
    /// Ids that are already quoted.
    pub(crate) fn of(quoted: &'n [String]) -> Self {
        let mut beginnings: HashMap<&str, Vec<usize>> = HashMap::new();
        for (name, quoted) in quoted.iter().enumerate() {
            beginnings.entry(beginning(quoted)).or_default().push(name);
        }
        Self { quoted, beginnings }
    }

    /// The ids that occur in a text.
    pub(crate) fn find<'t>(&'t self, text: &'t str) -> impl Iterator<Item = usize> {
        memchr::memchr_iter(b'"', text.as_bytes()).flat_map(move |at| {
            let here = &text[at..];
            let names = self.beginnings.get(beginning(here)).into_iter().flatten();
            names.copied().filter(move |&name| here.starts_with(&self.quoted[name]))
        })
    }
}

/// What stands between the quote with which a text begins, and the next one.
fn beginning(text: &str) -> &str {
    text[1..].split('"').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Names;
    use crate::json;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        /// As looking for each alone would.
        #[test]
        fn all_that_stand_in_a_text_are_found(
            ids in vec("[ab\"]{0,3}", 1..8),
            text in "[ab\"\\\\]{0,30}",
        ) {
            let mut quoted: Vec<_> = ids.iter().map(|id| json::quote(id)).collect();
            quoted.sort();
            quoted.dedup();
            let names = Names::of(&quoted);
            let mut found: Vec<_> = names.find(&text).collect();
            found.sort_unstable();
            found.dedup();
            let within = (0..quoted.len()).filter(|&name| text.contains(&quoted[name]));
            prop_assert_eq!(found, within.collect::<Vec<_>>());
        }
    }
}
