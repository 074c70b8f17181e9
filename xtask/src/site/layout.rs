//! What mdBook is given: the guides of `docs/SUMMARY.md` where they are in the repository, so that links between them
//! stay as they are, and a page for each file that they link to beside them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::{Context as _, Result, ensure};

use crate::guide::{folder, is_local, joined, lines, targets, with_targets};

const SUMMARY: &str = "docs/SUMMARY.md";

/// For those who change the project, so no part of the book; `cargo lab coverage` checks it.
const LEFT_OUT: &str = "docs/coverage.md";

/// Path to text, of the repository or of the book.
type Files = BTreeMap<String, String>;

/// The files of the book, from those of the repository.
pub(super) fn laid_out(texts: &Files) -> Result<Files> {
    let summary = texts.get(SUMMARY).with_context(|| format!("there is no {SUMMARY}"))?;
    let listed = |target: &str| joined(folder(SUMMARY), target);
    let guides: BTreeSet<_> = summary.lines().flat_map(targets).map(listed).collect();
    let is_guide = |path: &str| path.starts_with("docs/") && path.ends_with(".md");
    let mut lacking: Vec<_> =
        texts.keys().map(String::as_str).filter(|path| is_guide(path)).collect();
    lacking.retain(|path| ![SUMMARY, LEFT_OUT].contains(path) && !guides.contains(*path));
    ensure!(lacking.is_empty(), "{SUMMARY} lacks {}", lacking.join(", "));

    let mut book = Book { texts, guides: &guides, files: Files::new(), shown: Vec::new() };
    let relisted =
        summary.lines().map(|line| with_targets(line, |target| named(&listed(target))) + "\n");
    book.files.insert("SUMMARY.md".into(), relisted.collect());
    for guide in &guides {
        book.guide(guide)?;
    }
    while let Some(path) = book.shown.pop() {
        book.show(&path);
    }
    Ok(book.files)
}

struct Book<'t> {
    texts: &'t Files,
    guides: &'t BTreeSet<String>,
    files: Files,
    /// Files and folders that get a page.
    shown: Vec<String>,
}

impl Book<'_> {
    fn guide(&mut self, path: &str) -> Result<()> {
        let guide = self.texts.get(path).with_context(|| format!("there is no {path}"))?;
        let mut missing = Vec::new();
        let mut text = String::new();
        for (line, is_prose) in lines(guide) {
            if is_prose {
                text += &with_targets(line, |target| {
                    let new = self.target(path, target);
                    new.unwrap_or_else(|| {
                        missing.push(target.to_owned());
                        target.to_owned()
                    })
                });
            } else {
                text += line;
            }
            text.push('\n');
        }
        ensure!(missing.is_empty(), "{path} links to what is not there: {}", missing.join(", "));
        self.files.insert(named(path), text);
        Ok(())
    }

    /// Where a link of a guide leads in the book; `None` if there is no such thing.
    fn target(&mut self, guide: &str, target: &str) -> Option<String> {
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        if !is_local(target) || path.is_empty() {
            return Some(target.to_owned());
        }
        let to = joined(folder(guide), path);
        if self.guides.contains(&to) {
            let heading = if heading.is_empty() { String::new() } else { format!("#{heading}") };
            return Some(named(path) + &heading);
        }
        if to.ends_with(".svg") {
            self.files.insert(to.clone(), self.texts.get(&to)?.clone());
            return Some(path.to_owned());
        }
        let inside = format!("{to}/");
        let is_there =
            self.texts.contains_key(&to) || self.texts.keys().any(|path| path.starts_with(&inside));
        self.shown.push(to);
        is_there.then(|| page_of(path.trim_end_matches('/')))
    }

    /// Makes the page of a file, or of a folder with pages of its files.
    fn show(&mut self, path: &str) {
        let page = page_of(path);
        if self.files.contains_key(&page) {
            return;
        }
        let content = match self.texts.get(path) {
            Some(text) => format!("<pre>{}</pre>", escaped(text)),
            None => self.inside(path),
        };
        let root = "../".repeat(path.matches('/').count());
        let title = escaped(path);
        self.files.insert(
            page,
            format!(
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
                 <style>:root{{color-scheme:light dark}}body{{margin:2em;font-family:sans-serif}}\
                 pre,ul{{font-family:monospace}}</style></head>\n\
                 <body><p><a href=\"{root}index.html\">tool-reliability</a></p><h1>{title}</h1>\n{content}\n</body></html>\n"
            ),
        );
    }

    fn inside(&mut self, path: &str) -> String {
        let inside = format!("{path}/");
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut list = "<ul>\n".to_owned();
        for file in self.texts.keys().filter(|file| file.starts_with(&inside)) {
            let rest = escaped(&file[inside.len()..]);
            let _ = writeln!(list, "<li><a href=\"{name}/{}\">{rest}</a></li>", page_of(&rest));
            self.shown.push(file.clone());
        }
        list + "</ul>"
    }
}

/// A guide's name in the book: mdBook begins a folder with `index.md`.
fn named(path: &str) -> String {
    match path.strip_suffix("README.md") {
        Some(folder) => format!("{folder}index.md"),
        None => path.to_owned(),
    }
}

/// The page that shows a file or a folder. mdBook would take `.md.html` for a guide.
fn page_of(path: &str) -> String {
    let name = path.strip_suffix(".md").map(|name| format!("{name}-md"));
    name.as_deref().unwrap_or(path).to_owned() + ".html"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Files {
        files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect()
    }

    #[test]
    fn guides_keep_their_places_and_other_files_get_pages() {
        let book = laid_out(&files(&[
            ("README.md", "![p](docs/p.svg) [a](docs/a.md#b)\n```text\n[x](nowhere)\n```\n"),
            ("docs/SUMMARY.md", "[Home](../README.md)\n- [A](a.md)\n"),
            ("docs/a.md", "[home](../README.md) [code](../src/a.rs) [all](../src/) [list](SUMMARY.md) [b](#b) [w](https://example.org)"),
            ("docs/coverage.md", "[a](a.md)"),
            ("docs/p.svg", "<svg/>"),
            ("src/a.rs", "a < b && c"),
            ("src/b/c.rs", ""),
        ]))
        .unwrap();
        let names: Vec<_> = book.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "SUMMARY.md",
                "docs/SUMMARY-md.html",
                "docs/a.md",
                "docs/p.svg",
                "index.md",
                "src.html",
                "src/a.rs.html",
                "src/b/c.rs.html"
            ]
        );
        assert_eq!(book["SUMMARY.md"], "[Home](index.md)\n- [A](docs/a.md)\n");
        assert_eq!(
            book["index.md"],
            "![p](docs/p.svg) [a](docs/a.md#b)\n```text\n[x](nowhere)\n```\n"
        );
        assert_eq!(
            book["docs/a.md"],
            "[home](../index.md) [code](../src/a.rs.html) [all](../src.html) [list](SUMMARY-md.html) [b](#b) [w](https://example.org)\n"
        );
        assert!(book["src/a.rs.html"].contains("<pre>a &lt; b &amp;&amp; c</pre>"));
        assert!(book["src/b/c.rs.html"].contains("href=\"../../index.html\""));
        assert!(book["src.html"].contains("href=\"src/b/c.rs.html\""));
    }

    #[test]
    fn what_is_missing_is_named() {
        let wrong = |summary, guide| {
            let texts = [("docs/SUMMARY.md", summary), ("docs/a.md", guide), ("docs/b.md", "")];
            laid_out(&files(&texts)).unwrap_err().to_string()
        };
        assert_eq!(wrong("[A](a.md)", ""), "docs/SUMMARY.md lacks docs/b.md");
        assert_eq!(wrong("[A](a.md) [B](b.md) [C](c.md)", ""), "there is no docs/c.md");
        assert_eq!(
            wrong("[A](a.md) [B](b.md)", "[x](b.md) [y](../y.rs)"),
            "docs/a.md links to what is not there: ../y.rs"
        );
    }
}
