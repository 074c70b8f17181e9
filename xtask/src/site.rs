//! `cargo xtask site`: the guides as a site with a search, in `target/site`.
//!
//! mdBook builds it from what `layout` lays out; then every link of its pages is followed, and a search in it is tried.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    need::{self, NODE},
    pins,
    repo::Repo,
    shell,
};

mod followed;
mod layout;

/// What mdBook has to bring.
const FEATURES: &[&str] = &["search"];

/// Builds the site, and fails if a guide is not in it, a link is broken or a search finds nothing.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let mdbook = pins::program(repo, "tools/mdbook", "xtask/tools/mdbook.txt", FEATURES)?;
    need::ensure(repo, &[&NODE])?;
    let book = repo.target.join("xtask/site");
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    let texts: BTreeMap<_, _> = repo.texts()?.into_iter().collect();
    let laid = layout::laid_out(&texts)?;
    for (path, text) in &laid {
        let path = book.join("src").join(path);
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        fs::write(path, text)?;
    }
    fs::copy(repo.root.join("docs/book.toml"), book.join("book.toml"))?;

    let site = repo.target.join("site");
    shell::run(repo.command(mdbook).arg("build").arg(&book).arg("--dest-dir").arg(&site))?;
    let pages = read(&site)?;
    let broken = followed::broken(&pages);
    ensure!(broken.is_empty(), "the site has broken links:\n{}", broken.join("\n"));
    shell::run(repo.command("node").arg(repo.root.join("xtask/site/reader.mjs")).arg(&site))?;
    let count = laid.keys().filter(|path| path.ends_with(".md")).count() - 1;
    println!("{count} guides are in {}", site.join("index.html").display());
    Ok(())
}

/// Each file of the site by its path; the text of those that are pages.
fn read(site: &Path) -> Result<BTreeMap<String, Option<String>>> {
    let mut files = BTreeMap::new();
    let mut folders: Vec<PathBuf> = vec![site.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let is_page = path.extension().is_some_and(|extension| extension == "html");
            let text = if is_page { Some(fs::read_to_string(&path)?) } else { None };
            files.insert(path.strip_prefix(site)?.to_string_lossy().into_owned(), text);
        }
    }
    Ok(files)
}
