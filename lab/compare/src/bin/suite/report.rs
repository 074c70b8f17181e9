//! The sections as text and as `docs/peers.md`.
use crate::{
    Versions,
    cell::{Cell, Name, Row, Section},
};

/// What is written above the tables.
const HEAD: &str = include_str!("head.md");

/// What is written below them.
const FOOT: &str = include_str!("foot.md");

/// For the terminal: under each need a line for each subject.
pub(crate) fn text(sections: &[Section], versions: &Versions) -> String {
    let mut text = String::new();
    for section in sections {
        text += &format!("\n{}. {}\n", section.title, section.setting);
        for Row { need, cells } in &section.rows {
            text += &format!("\n  {need}\n");
            for (name, cell) in section.subjects.iter().zip(cells) {
                let (mark, seen) = match cell {
                    Cell::Passed(seen) => ("ok", seen.as_str()),
                    Cell::Failed(seen) => ("FAILS", seen.as_str()),
                    Cell::Without(why) => ("-", *why),
                };
                text += &format!("    {mark:<6} {:<50} {seen}\n", title(name, versions, " "));
            }
        }
    }
    text
}

/// The whole of `docs/peers.md`.
pub(crate) fn markdown(sections: &[Section], versions: &Versions) -> String {
    let mut text = HEAD.to_owned();
    for section in sections {
        text += &format!("\n## {}\n\n{}\n\n", section.title, section.setting);
        let titles: Vec<_> =
            section.subjects.iter().map(|name| title(name, versions, "<br>")).collect();
        text += &format!("| what is needed | {} |\n", titles.join(" | "));
        text += &format!("|---|{}\n", "---|".repeat(titles.len()));
        for Row { need, cells } in &section.rows {
            let cells: Vec<_> = cells.iter().map(shown).collect();
            text += &format!("| {need} | {} |\n", cells.join(" | "));
        }
        text += &format!("\n{}", section.notes);
    }
    text + FOOT
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Passed(seen) => seen.clone(),
        Cell::Failed(seen) => format!("**✗ {seen}**"),
        Cell::Without(why) => format!("– ({why})"),
    }
}

fn title(name: &Name, versions: &Versions, space: &str) -> String {
    let Name { package, part } = name;
    let version = versions.get(*package).map_or("?", String::as_str);
    let space = if part.is_empty() { "" } else { space };
    format!("{package} {version}{space}{part}")
}

/// Needs that the subject in the first column, ours, does not meet.
pub(crate) fn own_failures(sections: &[Section]) -> Vec<&'static str> {
    let rows = sections.iter().flat_map(|section| &section.rows);
    rows.filter(|row| row.cells.first().is_none_or(|ours| !matches!(ours, Cell::Passed(_))))
        .map(|row| row.need)
        .collect()
}

/// Lines of only one of two texts, with a sign for which.
pub(crate) fn differences(recorded: &str, seen: &str) -> Vec<String> {
    let only_in = |sign: char, one: &str, other: &str| {
        let other: Vec<_> = other.lines().collect();
        let lines = one.lines().filter(|line| !other.contains(line));
        lines.map(|line| format!("{sign} {line}")).collect::<Vec<_>>()
    };
    [only_in('-', recorded, seen), only_in('+', seen, recorded)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(ours: Cell) -> Vec<Section> {
        let theirs = Cell::Failed("opens after 100,000".into());
        vec![Section {
            title: "Breakers",
            setting: "Five failures open each.",
            subjects: vec![Name::of("tr-breaker", ""), Name::of("tower-resilience", "cache")],
            rows: vec![Row { need: "it opens", cells: vec![ours, theirs] }],
            notes: "",
        }]
    }

    fn versions() -> Versions {
        [("tr-breaker".into(), "0.1.0".into())].into()
    }

    #[test]
    fn a_failure_stands_out_and_versions_are_told() {
        let text = markdown(&sections(Cell::Passed("opens after 5".into())), &versions());
        assert!(
            text.contains("| what is needed | tr-breaker 0.1.0 | tower-resilience ?<br>cache |")
        );
        assert!(text.contains("| it opens | opens after 5 | **✗ opens after 100,000** |"));
    }

    #[test]
    fn ours_has_to_pass_and_a_peer_has_not() {
        assert!(own_failures(&sections(Cell::Passed("yes".into()))).is_empty());
        for ours in [Cell::Failed("no".into()), Cell::Without("nothing there")] {
            assert_eq!(own_failures(&sections(ours)), ["it opens"]);
        }
    }

    #[test]
    fn differences_are_told_from_both_sides() {
        assert_eq!(differences("a\nb\n", "a\nc\n"), ["- b", "+ c"]);
        assert!(differences("a\n", "a\n").is_empty());
    }
}
