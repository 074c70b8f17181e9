//! The rows as they are written, and as they are read.

use serde::Deserialize;

/// One file of rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The title of the document.
    document: String,
    /// What the ids of its rows begin with.
    code: String,
    #[serde(default)]
    section: Vec<Written>,
}

/// A section as it is written: its rows take from it what they do not say themselves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    number: String,
    title: String,
    #[serde(default)]
    place: String,
    #[serde(default)]
    door: String,
    #[serde(default)]
    test: String,
    rows: Vec<WrittenRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    n: u32,
    need: String,
    place: Option<String>,
    door: Option<String>,
    test: Option<String>,
    #[serde(default)]
    note: String,
}

/// One source document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) title: String,
    pub(super) code: String,
    pub(super) sections: Vec<Section>,
}

/// One section of it.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) number: String,
    pub(super) title: String,
    pub(super) rows: Vec<Row>,
}

/// One requirement.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Document, section and running number.
    pub(super) id: String,
    pub(super) need: String,
    pub(super) places: Vec<Place>,
    /// How a user reaches it; empty for no door.
    pub(super) door: String,
    pub(super) tests: Vec<Test>,
    pub(super) note: String,
}

/// Where the code of a requirement is.
#[derive(Debug, PartialEq)]
pub(super) struct Place {
    pub(super) path: String,
    /// A name in this file, or a text that stands there; empty for the whole file.
    pub(super) item: String,
}

/// What shows that a requirement is met.
#[derive(Debug, PartialEq)]
pub(super) struct Test {
    pub(super) path: String,
    pub(super) name: String,
}

/// What the parts of a note begin with that are counted and listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing meets the requirement, or not all of it.
    NotBuilt,
    /// The test exercises a part, though the stack could be used.
    BesideTheStack,
    /// The project differs from the document on purpose.
    Erratum,
}

impl Mark {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::NotBuilt => "not built",
            Self::BesideTheStack => "beside the stack",
            Self::Erratum => "Erratum",
        }
    }
}

impl Row {
    pub(super) fn has(&self, mark: Mark) -> bool {
        self.note.split("; ").any(|part| part.starts_with(mark.words()))
    }
}

impl Document {
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    /// Every file that its rows name, some more than once.
    pub(super) fn paths(&self) -> impl Iterator<Item = String> {
        self.rows().flat_map(|row| {
            let places = row.places.iter().map(|place| &place.path);
            places.chain(row.tests.iter().map(|test| &test.path)).cloned().collect::<Vec<_>>()
        })
    }
}

/// The documents of these files, in the order in which they come first.
pub(super) fn joined(files: Vec<File>) -> Vec<Document> {
    let mut documents: Vec<Document> = Vec::new();
    for file in files {
        let sections = file.section.into_iter().map(|it| section(&file.code, it));
        match documents.iter_mut().find(|known| known.code == file.code) {
            Some(known) => known.sections.extend(sections),
            None => {
                let sections = sections.collect();
                documents.push(Document { title: file.document, code: file.code, sections });
            }
        }
    }
    documents
}

fn section(code: &str, written: Written) -> Section {
    let Written { number, title, place, door, test, rows } = written;
    let rows = rows.into_iter().map(|row| Row {
        id: format!("{code}-{number}-{}", row.n),
        need: row.need,
        places: parts(row.place.as_ref().unwrap_or(&place)).map(Place::of).collect(),
        door: row.door.unwrap_or_else(|| door.clone()),
        tests: parts(row.test.as_ref().unwrap_or(&test)).map(Test::of).collect(),
        note: row.note,
    });
    Section { rows: rows.collect(), number, title }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split("; ").map(str::trim).filter(|part| !part.is_empty())
}

impl Place {
    fn of(text: &str) -> Self {
        let (path, item) = text.split_once(' ').unwrap_or((text, ""));
        Self { path: path.into(), item: item.into() }
    }
}

impl Test {
    fn of(text: &str) -> Self {
        let (path, name) = text.split_once("::").unwrap_or((text, ""));
        Self { path: path.into(), name: name.into() }
    }
}

#[cfg(test)]
pub(super) fn document(text: &str) -> Document {
    joined(vec![toml::from_str(text).unwrap()]).remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
document = "A"
code = "A"
[[section]]
number = "1"
title = "One"
place = "a.rs f; b.rs G::h"
door = "`k`"
test = "t.rs::one"
rows = [
  { n = 1, need = "x" },
  { n = 4, need = "y", door = "", test = "", note = "beside the stack; Erratum: z" },
]
"#;

    #[test]
    fn a_row_takes_from_its_section_what_it_does_not_say() {
        let document = document(TEXT);
        let [first, second] = &document.sections[0].rows[..] else { panic!("two rows") };
        assert_eq!((&*first.id, &*first.door, &*second.id), ("A-1-1", "`k`", "A-1-4"));
        assert_eq!(first.places[1], Place { path: "b.rs".into(), item: "G::h".into() });
        assert_eq!(first.tests, [Test { path: "t.rs".into(), name: "one".into() }]);
        assert!(second.door.is_empty() && second.tests.is_empty() && second.places.len() == 2);
        assert!(second.has(Mark::BesideTheStack) && second.has(Mark::Erratum));
        assert!(!second.has(Mark::NotBuilt));
        assert_eq!(document.paths().count(), 5);
    }

    #[test]
    fn files_of_one_document_are_joined() {
        let file = || toml::from_str(TEXT).unwrap();
        let documents = joined(vec![file(), file()]);
        assert_eq!((documents.len(), documents[0].sections.len()), (1, 2));
    }

    #[test]
    fn a_member_that_is_not_known_is_refused() {
        assert!(toml::from_str::<File>(&TEXT.replace("need = \"x\"", "nede = \"x\"")).is_err());
    }
}
