//! What each row names is there: files, the names in them, tests.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::{Document, Mark, Row};
use xtask::cases::functions;

/// A line for each thing that does not hold. `texts` has the files that there are.
pub(super) fn faults(documents: &[Document], texts: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut ids = BTreeSet::new();
    for row in documents.iter().flat_map(Document::rows) {
        let mut found = of_row(row, texts);
        if !ids.insert(&row.id) {
            found.push("another row has this id".into());
        }
        faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", row.id)));
    }
    faults
}

fn of_row(row: &Row, texts: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut say = |fault: String| faults.push(fault);
    if row.need.trim().is_empty() {
        say("says no requirement".into());
    }
    if row.places.is_empty() && row.note.is_empty() {
        say("names no place, and no note says why".into());
    }
    if row.door.is_empty() && row.note.is_empty() {
        say("has no door, and no note says why".into());
    }
    if row.has(Mark::NotBuilt) && row.tests.is_empty() {
        say("is not built, and names no test that fails once it is".into());
    }
    if row.has(Mark::BesideTheStack) && row.tests.is_empty() {
        say("has no test that could be beside the stack".into());
    }
    for place in &row.places {
        match texts.get(&place.path) {
            None => say(format!("there is no {}", place.path)),
            Some(text) if !holds(text, &place.item) => {
                say(format!("{} has no `{}`", place.path, place.item));
            }
            Some(_) => {}
        }
    }
    for test in &row.tests {
        match texts.get(&test.path) {
            None => say(format!("there is no {}", test.path)),
            Some(text) if !functions(text).any(|name| name == test.name) => {
                say(format!("{} has no test `{}`", test.path, test.name));
            }
            Some(_) => {}
        }
    }
    faults
}

/// Whether a file has a name, each of whose parts is a word of it, or else a text.
fn holds(text: &str, item: &str) -> bool {
    let is_name = item.chars().all(|it| is_word(it) || it == ':');
    if is_name { item.split("::").all(|part| has_word(text, part)) } else { text.contains(item) }
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::rows::document;

    fn found(row: &str) -> Vec<String> {
        let text = format!(
            "document = \"A\"\ncode = \"A\"\n[[section]]\nnumber = \"1\"\ntitle = \"One\"\nrows = [{row}]\n"
        );
        let texts = [
            ("a.rs", "pub struct Alpha { beta: u32 } // \"[LOOP] now\""),
            ("t.rs", "    async fn one() {}\n// fn two() {}\nfn three_four() {}"),
        ];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned()));
        faults(&[document(&text)], &texts.into())
    }

    #[test]
    fn what_is_there_holds() {
        for place in ["a.rs", "a.rs Alpha", "a.rs Alpha::beta", "a.rs [LOOP] now"] {
            let row = format!(
                r#"{{ n = 1, need = "x", place = "{place}", door = "d", test = "t.rs::one; t.rs::three_four" }}"#
            );
            assert_eq!(found(&row), [""; 0], "{place}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (row, fault) in [
            (r#"place = "b.rs", door = "d""#, "A-1-1: there is no b.rs"),
            (r#"place = "a.rs Alph", door = "d""#, "A-1-1: a.rs has no `Alph`"),
            (r#"place = "a.rs Alpha::gamma", door = "d""#, "A-1-1: a.rs has no `Alpha::gamma`"),
            (r#"place = "a.rs [LOOP] later", door = "d""#, "A-1-1: a.rs has no `[LOOP] later`"),
            (r#"place = "a.rs", door = "d", test = "u.rs::one""#, "A-1-1: there is no u.rs"),
            (r#"place = "a.rs", door = "d", test = "t.rs::two""#, "A-1-1: t.rs has no test `two`"),
            (r#"place = "a.rs", door = "d", test = "t.rs""#, "A-1-1: t.rs has no test ``"),
            (r#"door = "d""#, "A-1-1: names no place, and no note says why"),
            (r#"place = "a.rs""#, "A-1-1: has no door, and no note says why"),
            (
                r#"place = "a.rs", note = "not built""#,
                "A-1-1: is not built, and names no test that fails once it is",
            ),
            (
                r#"place = "a.rs", note = "beside the stack""#,
                "A-1-1: has no test that could be beside the stack",
            ),
        ] {
            assert_eq!(found(&format!(r#"{{ n = 1, need = "x", {row} }}"#)), [fault]);
        }
        let twice = r#"{ n = 1, need = "x", note = "y" }, { n = 1, need = "x", note = "y" }"#;
        assert_eq!(found(twice), ["A-1-1: another row has this id"]);
    }
}
