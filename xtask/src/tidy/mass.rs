//! How much code `crates/` may have. What a change adds, it removes elsewhere.

use super::{
    Fault,
    arrows::{modules, roots},
    tree::Tree,
};

/// Lines of code of all crates outside tests: without blank lines, comments and docs. It only falls.
const CEILING: usize = 90_174;

/// How far the ceiling may be above the code: one far above it is no limit.
const SLACK: usize = 250;

/// The crates keep below the ceiling.
pub(super) fn mass(tree: &Tree) -> Vec<Fault> {
    within(tree, CEILING).into_iter().collect()
}

fn within(tree: &Tree, ceiling: usize) -> Option<Fault> {
    let figures = figures(tree);
    let sum: usize = figures.iter().map(|(_, lines)| lines).sum();
    let what = if sum > ceiling {
        let each: Vec<_> = figures.iter().map(|(name, lines)| format!("{name} {lines}")).collect();
        format!(
            "have {sum} lines of code, {ceiling} at most: remove as much as you add ({})",
            each.join(", ")
        )
    } else if sum + SLACK < ceiling {
        format!(
            "have {sum} lines of code: lower `CEILING` in xtask/src/tidy/mass.rs from {ceiling}"
        )
    } else {
        return None;
    };
    Some(Fault { path: "crates".into(), line: 0, rule: "mass", what })
}

/// Lines of code of each crate, in the files that its root reaches outside tests.
pub(super) fn figures(tree: &Tree) -> Vec<(String, usize)> {
    let figure = |root: String| {
        let name = root.split('/').nth(1)?.to_owned();
        let modules = modules(tree, &root);
        let files = modules.files();
        let lines = tree.rust().filter(|(text, _)| files.contains(&*text.path));
        Some((name, lines.map(|(_, tokens)| tokens.lines_of_code()).sum()))
    };
    roots(tree).into_iter().filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_have_no_more_code_than_the_ceiling_and_not_far_less() {
        let code = "fn f() {}\n".repeat(1000);
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", &format!("{code}#[cfg(test)]\nmod model;\n")),
            ("crates/a/src/model.rs", &code),
            ("crates/a/src/tests.rs", &code),
            ("crates/a/tests/b.rs", &code),
            ("crates/b/src/lib.rs", &code),
            ("xtask/src/main.rs", &code),
        ]);
        for (ceiling, fault) in
            [(1999, true), (2000, false), (2000 + SLACK, false), (2001 + SLACK, true)]
        {
            assert_eq!(within(&tree, ceiling).is_some(), fault, "{ceiling}");
        }
    }
}
