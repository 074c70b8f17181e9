//! Phrases that hide the noun of a sentence, refused in guides, comments and messages.
//!
//! Guides are checked as a whole, Rust files in their comments and string literals; names in code and whatever is
//! compiled for tests only are left out.

use std::collections::BTreeMap;

use super::{
    Fault,
    tokens::{Look, Tokens},
    tree::{Text, Tree},
};

/// The refused phrases; the words of each are separated by one space.
const PHRASES: &[&str] = &[
    "anew",
    "are told",
    "at fault",
    "at hand",
    "be told",
    "been told",
    "by then",
    "came of",
    "come of",
    "comes of",
    "further in",
    "further out",
    "go by",
    "goes by",
    "going by",
    "is told",
    "leave room",
    "leaves room",
    "leaving room",
    "left room",
    "made room",
    "make room",
    "makes room",
    "making room",
    "nobody",
    "somebody",
    "take over",
    "taken over",
    "takes over",
    "taking over",
    "took over",
    "under way",
    "was told",
    "went by",
    "were told",
    "whoever",
];

/// Every refused phrase of the repository.
pub(super) fn phrases(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for text in &tree.texts {
        for passage in passages(text) {
            for (line, phrase) in found(&passage) {
                faults.push(text.fault(
                    "phrases",
                    line,
                    format!("\"{phrase}\": name the actor or the thing"),
                ));
            }
        }
    }
    faults
}

/// How many phrases each crate or folder has.
pub(super) fn counts(faults: &[Fault]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for fault in faults {
        *counts.entry(scope(&fault.path)).or_default() += 1;
    }
    counts
}

/// The crate, or else the folder of the root, that a file belongs to.
fn scope(path: &str) -> &str {
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    let end = path.match_indices('/').nth(depth - 1).map_or(0, |(at, _)| at);
    if end == 0 { "." } else { &path[..end] }
}

/// Text that is read in one go, with the line of each of its parts.
type Passage<'t> = Vec<(usize, &'t str)>;

fn passages(text: &Text) -> Vec<Passage<'_>> {
    match &text.code {
        Some(Ok(tokens)) => {
            let mut passages = comments(&text.text, tokens);
            passages.extend(tokens.strings(Look::OutsideTests).map(|part| vec![part]));
            passages
        }
        None if text.path.ends_with(".md") => paragraphs(&text.text),
        _ => Vec::new(),
    }
}

fn paragraphs(guide: &str) -> Vec<Passage<'_>> {
    let lines: Vec<_> = (1..).zip(guide.lines()).collect();
    lines.split(|(_, line)| line.trim().is_empty()).map(<[_]>::to_vec).collect()
}

/// Blocks of comments that have their lines to themselves, outside tests.
fn comments<'t>(code: &'t str, tokens: &Tokens) -> Vec<Passage<'t>> {
    let mut passages = Vec::new();
    let mut passage = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        match line.trim_start().strip_prefix("//") {
            Some(comment) if !tokens.is_test(number) => {
                passage.push((number, comment.trim_start_matches(['/', '!'])));
            }
            _ => passages.push(std::mem::take(&mut passage)),
        }
    }
    passages.push(passage);
    passages
}

/// Line and phrase of each occurrence.
fn found(passage: &[(usize, &str)]) -> Vec<(usize, &'static str)> {
    let words: Vec<_> = passage.iter().flat_map(|(line, part)| words(*line, part)).collect();
    let mut found = Vec::new();
    for phrase in PHRASES {
        let wanted: Vec<_> = phrase.split(' ').collect();
        for window in words.windows(wanted.len()) {
            if window.iter().zip(&wanted).all(|((_, word), wanted)| word == wanted) {
                found.push((window[0].0, *phrase));
            }
        }
    }
    found
}

/// The words of a line in small letters; an empty one stands for punctuation.
fn words(line: usize, part: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let mut word = String::new();
    // An escaped line break separates words as a real one does.
    for letter in part.replace("\\n", " ").chars().chain([' ']) {
        if letter.is_alphanumeric() || letter == '_' {
            word.extend(letter.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push((line, std::mem::take(&mut word)));
        }
        if !letter.is_whitespace() {
            words.push((line, String::new()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut lines: Vec<_> =
            phrases(&Tree::of(&[(path, text)])).into_iter().map(|fault| fault.line).collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn every_phrase_is_found_in_a_guide_also_across_a_line_break() {
        for phrase in PHRASES {
            let text = format!("# Title\n\nIt {phrase} x.\n");
            assert_eq!(lines("docs/a.md", &text), [3], "{phrase}");
            let text = format!("A call **{}**.\n", phrase.to_uppercase().replace(' ', "\n"));
            assert_eq!(lines("docs/a.md", &text), [1], "{phrase}");
        }
    }

    #[test]
    fn comments_docs_and_messages_are_checked() {
        let text = "//! Nobody.\n\n/// A call under\n/// way.\nfn f() {\n    // Begins anew.\n    g(\"somebody's\\nwhoever\");\n}\n";
        assert_eq!(lines("src/lib.rs", text), [1, 3, 6, 7, 7]);
    }

    #[test]
    fn names_in_code_and_tests_are_not_checked() {
        let text = "//! A.\nfn nobody() { anew(is, told); at_fault() }\n#[cfg(test)]\nmod tests {\n    /// Nobody.\n    fn f() {\n        // Anew.\n        g(\"somebody\");\n    }\n}\n";
        assert_eq!(lines("src/lib.rs", text), NONE);
        assert_eq!(lines("tests/all.rs", "//! Nobody.\nfn f() { g(\"anew\") }\n"), NONE);
        assert_eq!(lines("data.txt", "nobody"), NONE);
    }

    #[test]
    fn punctuation_and_longer_words_make_no_phrase() {
        assert_eq!(lines("a.md", "It passes by; then it ends. Renewed. A further input.\n"), NONE);
        assert_eq!(lines("a.md", "It ends by\n\nthen\n"), NONE);
    }

    #[test]
    fn places_are_counted_by_crate_or_folder() {
        let tree = Tree::of(&[
            ("crates/a/src/x/y.rs", "//! Nobody. Anew.\n"),
            ("crates/b/README.md", "anew"),
            ("docs/a.md", "anew"),
            ("README.md", "anew"),
        ]);
        let faults = phrases(&tree);
        let counts: Vec<_> = counts(&faults).into_iter().collect();
        assert_eq!(counts, [(".", 1), ("crates/a", 2), ("crates/b", 1), ("docs", 1)]);
    }
}
