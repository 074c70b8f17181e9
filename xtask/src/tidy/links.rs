//! What a guide points at is there: files, headings, and the paths that it names.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Fault,
    tree::{Text, Tree},
};
use crate::guide::{folder, is_local, joined, prose, targets};

/// Folders of the root; a guide that names a path in one of them means that path.
const FOLDERS: &[&str] = &["benches", "crates", "docs", "examples", "schemas", "tests", "xtask"];

/// Every link within the repository, and every path in backticks that begins at its root.
pub(super) fn links(tree: &Tree) -> Vec<Fault> {
    let places = Places::of(tree);
    let mut faults = Vec::new();
    for guide in tree.texts.iter().filter(|text| is_guide(&text.path)) {
        for (line, number) in prose(&guide.text) {
            for link in targets(line).filter(|link| is_local(link)) {
                if let Some(missing) = places.missing(guide, link) {
                    faults.push(guide.fault("links", number, format!("`{link}`: {missing}")));
                }
            }
            for path in line.split('`').skip(1).step_by(2).filter(|path| is_path(path)) {
                if !places.files.contains(path.trim_end_matches('/')) {
                    faults.push(guide.fault("links", number, format!("there is no `{path}`")));
                }
            }
        }
    }
    faults
}

/// Below `src` are the parts that a guide is made of, and they are linked as seen from the whole.
fn is_guide(path: &str) -> bool {
    path.ends_with(".md") && !path.contains("/src/")
}

/// What can be pointed at.
struct Places<'t> {
    /// Files, and the folders that hold some.
    files: BTreeSet<&'t str>,
    /// The names of each guide's headings, as links spell them.
    headings: BTreeMap<&'t str, BTreeSet<String>>,
}

impl<'t> Places<'t> {
    fn of(tree: &'t Tree) -> Self {
        let mut files = BTreeSet::from([""]);
        for path in tree.texts.iter().map(|text| text.path.as_str()) {
            let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
            files.extend(folders.chain([path]));
        }
        let guides = tree.texts.iter().filter(|text| is_guide(&text.path));
        Self { files, headings: guides.map(|it| (it.path.as_str(), headings(&it.text))).collect() }
    }

    /// Why a link leads nowhere, if it does.
    fn missing(&self, from: &Text, link: &str) -> Option<String> {
        let (path, heading) = link.split_once('#').unwrap_or((link, ""));
        let path =
            if path.is_empty() { from.path.clone() } else { joined(folder(&from.path), path) };
        if !self.files.contains(path.as_str()) {
            return Some(format!("there is no {path}"));
        }
        let known = self.headings.get(path.as_str());
        let is_known = heading.is_empty() || known.is_some_and(|known| known.contains(heading));
        (!is_known).then(|| format!("{path} has no heading that is linked so"))
    }
}

/// Headings as links spell them: small letters, digits, `-` and `_`; a repeated one is numbered.
fn headings(guide: &str) -> BTreeSet<String> {
    let mut known = BTreeMap::<String, usize>::new();
    prose(guide)
        .filter_map(|(line, _)| {
            let text =
                line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))?;
            let letters = text.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
            let name = letters.collect::<String>().trim().to_lowercase().replace(' ', "-");
            let before = known.entry(name.clone()).or_default();
            *before += 1;
            Some(if *before == 1 { name } else { format!("{name}-{}", *before - 1) })
        })
        .collect()
}

/// Whether it names a path from the root, and not a pattern of such.
fn is_path(text: &str) -> bool {
    let is_word = |it: char| it.is_ascii_alphanumeric() || "/._-".contains(it);
    let folder = text.split_once('/').map(|(folder, _)| folder);
    folder.is_some_and(|folder| FOLDERS.contains(&folder))
        && text.chars().all(is_word)
        && !text.contains("NAME")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(guide: &str) -> Vec<(usize, String)> {
        let other = "# One\n## It's a `b` heading\n## Twice\n## Twice\n```text\n## Code\n```\n";
        let tree = Tree::of(&[
            ("README.md", guide),
            ("docs/other.md", other),
            ("crates/a/src/lib.rs", "//! A.\n"),
        ]);
        links(&tree).into_iter().map(|fault| (fault.line, fault.what)).collect()
    }

    #[test]
    fn what_is_there_is_found() {
        let good = "[a](docs/other.md) [b](docs/../docs/other.md#its-a-b-heading), [c](docs)\n\
            [d](docs/other.md#twice-1) [e](https://example.org/x) `crates/a/src/` `crates/tr-NAME`\n\
            # Here\n[f](#here)\n```text\n[g](nowhere)\n```\n`tests/*.rs` `a/b`\n";
        assert_eq!(found(good), []);
    }

    #[test]
    fn what_is_missing_is_told_with_its_line() {
        let bad = "[a](docs/no.md)\n[b](docs/other.md#code)\n[c](docs/other.md#twice-2)\n`crates/b`\n[d](#no)\n";
        let lines: Vec<_> = found(bad).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn links_are_seen_from_where_they_stand() {
        let tree = Tree::of(&[
            ("docs/a.md", "[b](b.md) [c](../c.md) [d](d.md)"),
            ("docs/b.md", ""),
            ("c.md", ""),
        ]);
        let faults = links(&tree);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].what.contains("docs/d.md"), "{faults:?}");
    }
}
