//! The page: a table for each section, what is missing, and the count.

use std::fmt::{self, Write as _};

use super::rows::{Document, Mark, Place, Row, Test};

const HEAD: &str = "\
# From requirement to test

<!-- Written by `cargo lab coverage` from the files in docs/coverage. Change those. -->

Five documents say what this project must do: the *Tool Reliability Layer* (BS-TIM-5), the test conditions of *Tool Error
Handling*, *Session Integrity* (Layer 0), the *Unified Tool Execution Envelope* (UTEE), and *Tool Guard*. Each requirement
of theirs is a row: where the code is, by which **door** a user reaches it without other code of this project (the stack's
builder, a configuration's key, a `tool-guard` subcommand, a member of an envelope, the admin page, …), and which test shows it.

- *none* in the column of doors: no door leads there; the note says why.
- **Erratum**: the project differs on purpose; the note says why.
- *not built*: nothing does it, or not all of it.
- *beside the stack*: the test exercises a part alone, though the stack could be used.

`cargo xtask ci` checks that every file, name and test on this page exists. Lists and the count are [at the end](#what-is-missing).
";

/// The whole page.
pub(super) fn page(documents: &[Document]) -> String {
    let mut page = HEAD.to_owned();
    for document in documents {
        let _ = write!(page, "\n## {}\n", document.title);
        for section in &document.sections {
            let _ =
                write!(page, "\n### {} {}: {}\n\n", document.code, section.number, section.title);
            page +=
                "| id | requirement | place | door | test | note |\n|---|---|---|---|---|---|\n";
            for row in &section.rows {
                page += &line(row);
            }
        }
    }
    let rows = || documents.iter().flat_map(Document::rows);
    page += "\n## What is missing\n";
    page += &list("Not built", rows().filter(|row| row.has(Mark::NotBuilt)));
    let unreached = |row: &&Row| row.door.is_empty() && !row.has(Mark::NotBuilt);
    page += &list("Built, without a door", rows().filter(unreached));
    let untested = |row: &&Row| !row.door.is_empty() && row.tests.is_empty();
    page += &list("With a door, without a test", rows().filter(untested));
    page += &list("Tested beside the stack", rows().filter(|row| row.has(Mark::BesideTheStack)));
    page += &list("Errata", rows().filter(|row| row.has(Mark::Erratum)));
    page += "\n## The count\n\n| document | rows | with door and test | with door, no test | no door |\n|---|---|---|---|---|\n";
    for document in documents {
        let count = Count::of(document.rows());
        let _ = writeln!(page, "| {} | {} |", document.title, count.cells());
    }
    let _ = writeln!(page, "| all | {} |", Count::of(rows()).cells());
    page
}

fn line(row: &Row) -> String {
    let places = row.places.iter().map(shown_place).collect::<Vec<_>>().join("<br>");
    let tests = row.tests.iter().map(shown_test).collect::<Vec<_>>().join("<br>");
    let door = if row.door.is_empty() { "*none*" } else { &row.door };
    let note = marked(&row.note);
    let cells = [&*row.id, &row.need, &places, door, &tests, &note];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn shown_place(place: &Place) -> String {
    let link = link(&place.path);
    if place.item.is_empty() { link } else { format!("{link} `{}`", place.item) }
}

fn shown_test(test: &Test) -> String {
    format!("{} `{}`", link(&test.path), test.name)
}

/// A file without what all paths have, and a link to it from the page's folder.
fn link(path: &str) -> String {
    let short = path.strip_prefix("crates/").unwrap_or(path).replacen("/src/", "/", 1);
    let from_here = path.strip_prefix("docs/").map_or_else(|| format!("../{path}"), str::to_owned);
    format!("[{short}]({from_here})")
}

fn marked(note: &str) -> String {
    let parts = note.split("; ").map(|part| match part.strip_prefix(Mark::Erratum.words()) {
        Some(rest) => format!("**{}**{rest}", Mark::Erratum.words()),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn list<'r>(title: &str, rows: impl Iterator<Item = &'r Row>) -> String {
    let ids: Vec<_> = rows.map(|row| format!("- {}: {}\n", row.id, row.need)).collect();
    let body = if ids.is_empty() { "None.\n".to_owned() } else { ids.concat() };
    format!("\n### {title} ({})\n\n{body}", ids.len())
}

/// How many rows there are, and of which of the three kinds.
#[derive(Debug, PartialEq)]
pub(super) struct Count {
    rows: usize,
    tested: usize,
    untested: usize,
    unreached: usize,
}

impl Count {
    pub(super) fn of<'r>(rows: impl Iterator<Item = &'r Row>) -> Self {
        let mut count = Self { rows: 0, tested: 0, untested: 0, unreached: 0 };
        for row in rows {
            count.rows += 1;
            match (row.door.is_empty(), row.tests.is_empty()) {
                (true, _) => count.unreached += 1,
                (false, true) => count.untested += 1,
                (false, false) => count.tested += 1,
            }
        }
        count
    }

    fn cells(&self) -> String {
        format!("{} | {} | {} | {}", self.rows, self.tested, self.untested, self.unreached)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, tested, untested, unreached } = self;
        write!(
            f,
            "{rows} requirements: {tested} with door and test, {untested} with door, no test, {unreached} no door"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::rows::document;

    const TEXT: &str = r#"
document = "Alpha"
code = "A"
[[section]]
number = "1"
title = "One"
place = "crates/a/src/b.rs f"
rows = [
  { n = 1, need = "`x|y`", door = "d", test = "docs/t.rs::one", note = "Erratum: shorter; beside the stack" },
  { n = 2, need = "y", door = "d" },
  { n = 3, need = "z", place = "", note = "not built" },
  { n = 4, need = "w", note = "library only" },
]
"#;

    #[test]
    fn a_row_is_a_line_with_links() {
        let document = document(TEXT);
        assert_eq!(
            line(&document.sections[0].rows[0]),
            "| A-1-1 | `x\\|y` | [a/b.rs](../crates/a/src/b.rs) `f` | d | [docs/t.rs](t.rs) `one` | **Erratum**: shorter; beside the stack |\n"
        );
        assert_eq!(
            line(&document.sections[0].rows[2]),
            "| A-1-3 | z |  | *none* |  | not built |\n"
        );
    }

    #[test]
    fn the_page_ends_with_lists_and_a_count() {
        let page = page(&[document(TEXT)]);
        for part in [
            "## Alpha\n\n### A 1: One\n",
            "### Not built (1)\n\n- A-1-3: z\n",
            "### Built, without a door (1)\n\n- A-1-4: w\n",
            "### With a door, without a test (1)\n\n- A-1-2: y\n",
            "### Tested beside the stack (1)\n\n- A-1-1: ",
            "### Errata (1)\n\n- A-1-1: ",
            "| Alpha | 4 | 1 | 1 | 2 |\n| all | 4 | 1 | 1 | 2 |\n",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
    }
}
