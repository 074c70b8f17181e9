//! Words that no file contains: marks of unfinished work, hosts of registries, paths of one machine.
//!
//! They are spelled here in pieces, so that this file keeps its own rules.

use super::{Fault, tokens::Look, tree::Tree};

/// Code that says it is not finished.
const UNFINISHED: &[&str] =
    &["todo !", "unimplemented !", "# [ ignore", "allow ( dead_code", "expect ( dead_code"];

/// The same in comments.
const NOTES: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];

const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("registry.", "npmjs"),
    concat!("npmjs", ".com"),
    concat!("npmjs", ".org"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("deb.", "debian.org"),
    concat!("security.", "debian.org"),
    concat!("proxy.", "golang.org"),
];

const MACHINE: &[&str] = &[concat!("/work/", "shared"), concat!("/work/", "main")];

pub(super) fn unfinished(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (text, tokens) in tree.rust() {
        for pattern in UNFINISHED {
            for line in tokens.find(pattern, Look::Everywhere) {
                faults.push(text.fault(
                    "unfinished",
                    line,
                    format!("`{}`", pattern.replace(' ', "")),
                ));
            }
        }
        for (line, note) in found(&text.text, NOTES) {
            faults.push(text.fault("unfinished", line, format!("`{note}`")));
        }
    }
    faults
}

/// Where things come from is each machine's own setting.
pub(super) fn hosts(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for text in tree.texts.iter().filter(|text| !is_lock_file(&text.path)) {
        for (line, host) in found(&text.text, HOSTS) {
            faults.push(text.fault("hosts", line, format!("names the registry host {host}")));
        }
        for (line, path) in found(&text.text, MACHINE) {
            faults.push(text.fault("hosts", line, format!("names {path}, a path of one machine")));
        }
    }
    faults
}

/// Line and word of each occurrence.
fn found<'w>(text: &str, words: &[&'w str]) -> Vec<(usize, &'w str)> {
    let lines = text.lines().zip(1..);
    lines
        .flat_map(|(line, number)| {
            words.iter().filter(|word| line.contains(**word)).map(move |word| (number, *word))
        })
        .collect()
}

fn is_lock_file(path: &str) -> bool {
    path.ends_with("Cargo.lock") || path.ends_with("package-lock.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_code_is_found_and_docs_about_it_are_not() {
        let text = "//! Never todo!() here.\nfn f() { todo!() }\n#[ignore = \"slow\"]\nfn g() {}\n#[allow(dead_code)]\nfn h() { unimplemented!() }\n";
        let tree = Tree::of(&[("a.rs", text)]);
        let lines: Vec<_> = unfinished(&tree).iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [2, 6, 3, 5]);
    }

    #[test]
    fn notes_in_comments_are_found() {
        for note in NOTES {
            let text = format!("//! A.\n// {note}: later\n");
            let faults = unfinished(&Tree::of(&[("a.rs", &text)]));
            assert_eq!((faults.len(), faults[0].line), (1, 2));
        }
    }

    #[test]
    fn hosts_are_found_in_any_text_but_lock_files() {
        for host in HOSTS.iter().chain(MACHINE) {
            let text = format!("from {host}");
            let tree = Tree::of(&[("README.md", &text), ("Cargo.lock", &text)]);
            let paths: Vec<_> = hosts(&tree).into_iter().map(|fault| fault.path).collect();
            assert_eq!(paths.first().map(String::as_str), Some("README.md"));
            assert!(!paths.contains(&"Cargo.lock".into()));
        }
    }
}
