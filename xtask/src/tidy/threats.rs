//! What `SECURITY.md` says of an attack is shown by a test.

use super::{
    Fault,
    tree::{Text, Tree},
};

/// How the head of a table of threats ends, and what stands where nothing controls one.
const TESTS: &str = "tests";
const NOTHING: &str = "none";

/// Every test that a row names, and that each row with a control names one.
pub(super) fn tests(tree: &Tree) -> Vec<Fault> {
    let tables = tree.texts.iter().filter(|text| text.path == "SECURITY.md");
    tables.flat_map(|text| untested(tree, text)).collect()
}

fn untested(tree: &Tree, text: &Text) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut control = None;
    for (line, number) in text.text.lines().zip(1..) {
        let cells: Vec<_> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if !line.starts_with('|') {
            control = None;
        } else if cells.last() == Some(&TESTS) {
            control = cells.iter().position(|cell| *cell == "control");
        } else if let (Some(control), Some(named)) = (control, cells.last())
            && !named.starts_with("---")
        {
            let names: Vec<_> = named.split('`').skip(1).step_by(2).collect();
            let missing = names.iter().filter(|name| !is_there(tree, name));
            faults.extend(
                missing.map(|name| text.fault("threats", number, format!("no test `{name}`"))),
            );
            if names.is_empty() && cells.get(control).is_none_or(|it| !it.starts_with(NOTHING)) {
                faults.push(text.fault("threats", number, "no test plays this attack"));
            }
        }
    }
    faults
}

fn is_there(tree: &Tree, name: &str) -> bool {
    let head = format!("fn {name}(");
    tree.rust().any(|(text, _)| text.text.contains(&head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_its_test_is_found() {
        let threats = "# S\n`no_test`\n\n| asset | control | tests |\n|---|---|---|\n\
            | a | b | `is_there` |\n| a | b | `is_there` `is_gone` |\n| a | b | |\n\
            | a | none: c | |\n\n| a | b |\n|---|---|\n| c | `d` |\n";
        let tree = Tree::of(&[
            ("SECURITY.md", threats),
            ("docs/a.md", "| control | tests |\n| a | `b` |\n"),
            ("crates/a/src/lib.rs", "//! A.\nfn is_there() {}\n"),
        ]);
        let found: Vec<_> = tests(&tree).into_iter().map(|it| (it.line, it.what)).collect();
        assert_eq!(
            found,
            [(7, "no test `is_gone`".to_owned()), (8, "no test plays this attack".to_owned())]
        );
    }
}
