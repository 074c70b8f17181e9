//! `cargo lab coverage`: from each requirement of the source documents to its code, its door and its test.
//!
//! `docs/coverage/*.toml` is the source, `docs/coverage.md` the page. A row says where the requirement is met, by
//! which door a user reaches it, and which test shows it there; what a row names has to exist.

mod check;
mod page;
mod rows;

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result, bail, ensure};

use self::rows::{Document, File};
use xtask::repo::Repo;

/// Where the rows are.
const FOLDER: &str = "docs/coverage";

/// What is generated from them.
const PAGE: &str = "docs/coverage.md";

/// Writes the page, or with `check` fails if it is not current; in either case every row has to hold.
pub(crate) fn run(repo: &Repo, check: bool) -> Result<()> {
    let documents = read(repo)?;
    let mut texts = BTreeMap::new();
    for path in documents.iter().flat_map(Document::paths) {
        if let Ok(text) = fs::read_to_string(repo.root.join(&path)) {
            texts.insert(path, text);
        }
    }
    let faults = check::faults(&documents, &texts);
    for fault in &faults {
        println!("{fault}");
    }
    match faults.len() {
        0 => {}
        1 => bail!("1 row of {FOLDER} names what is not there"),
        many => bail!("{many} rows of {FOLDER} name what is not there"),
    }
    let (page, path) = (page::page(&documents), repo.root.join(PAGE));
    if check {
        let have = fs::read_to_string(&path).with_context(|| format!("{PAGE} cannot be read"))?;
        ensure!(have == page, "{PAGE} is not current: run `cargo lab coverage` and commit it");
    } else {
        fs::write(&path, &page).with_context(|| format!("{PAGE} cannot be written"))?;
    }
    println!("{}", page::Count::of(documents.iter().flat_map(Document::rows)));
    Ok(())
}

/// The documents in the order of their files' names; several files may be of one document.
fn read(repo: &Repo) -> Result<Vec<Document>> {
    let folder = repo.root.join(FOLDER);
    let mut paths = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("{FOLDER} cannot be read"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let file: File = toml::from_str(&text)
            .with_context(|| format!("{}: no rows of coverage", repo.relative(&path).display()))?;
        files.push(file);
    }
    Ok(rows::joined(files))
}
