//! `cargo xtask api`: the public API of each library as text under `docs/api/`, so that a change of it shows in a diff.
//!
//! rustdoc writes the API as JSON, whose form belongs to one version of Rust. With another version there is nothing to compare.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use cargo_metadata::TargetKind;

use crate::{repo::Repo, shell};

/// The version of the form that the reader knows: that of Rust 1.95.
const FORMAT: u64 = 57;

/// Makes `docs/api/` current.
pub(crate) fn write(repo: &Repo) -> Result<()> {
    let Some(wanted) = generate(repo)? else {
        bail!("rustdoc's JSON has another form than that of Rust 1.95: use that version");
    };
    let folder = repo.root.join("docs/api");
    fs::create_dir_all(&folder)?;
    for (name, text) in &wanted {
        fs::write(folder.join(name), text)?;
    }
    println!("the API of {} libraries is written", wanted.len());
    Ok(())
}

/// Fails if `docs/api/` is not what the code has; `false` if this version of Rust cannot tell.
pub(crate) fn check(repo: &Repo) -> Result<bool> {
    let Some(wanted) = generate(repo)? else { return Ok(false) };
    let mut stale = Vec::new();
    for (name, text) in &wanted {
        let kept = fs::read_to_string(repo.root.join("docs/api").join(name)).unwrap_or_default();
        if kept != *text {
            stale.push(format!("{name}:\n{}", difference(&kept, text)));
        }
    }
    ensure!(stale.is_empty(), "docs/api is not current:\n{}", stale.join("\n"));
    Ok(true)
}

/// File name and text for each library; `None` if rustdoc's form is not known.
fn generate(repo: &Repo) -> Result<Option<BTreeMap<String, String>>> {
    let folder = repo.target.join("xtask/api");
    fs::create_dir_all(&folder)?;
    // Unstable flags are for rustdoc alone: set for cargo, they would make it build everything again.
    let rustdoc = folder.join("rustdoc");
    fs::write(&rustdoc, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n")?;
    fs::set_permissions(&rustdoc, fs::Permissions::from_mode(0o755))?;
    let mut cargo = repo.cargo();
    cargo.args(["doc", "--quiet", "--no-deps", "--workspace", "--all-features", "--lib"]);
    cargo.env("RUSTDOC", &rustdoc);
    cargo.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    shell::run(&mut cargo)?;

    let mut texts = BTreeMap::new();
    for name in repo.names_under("crates") {
        let package = repo.package(name).context("it was listed")?;
        if !package.targets.iter().any(|target| target.kind.contains(&TargetKind::Lib)) {
            continue;
        }
        let path = repo.target.join("doc").join(format!("{}.json", name.replace('-', "_")));
        if format_of(&path)? != FORMAT {
            return Ok(None);
        }
        let api = public_api::Builder::from_rustdoc_json(&path)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(true)
            .build()
            .with_context(|| format!("{}", path.display()))?;
        let text: String = api.items().map(|item| format!("{item}\n")).collect();
        // `public_api` leaves out the colon between an associated type and its bounds.
        let text = ["Error", "Future", "Response"]
            .iter()
            .fold(text, |text, of| text.replace(&format!("{of}core::"), &format!("{of}: core::")));
        texts.insert(format!("{name}.txt"), text);
    }
    Ok(Some(texts))
}

fn format_of(path: &Path) -> Result<u64> {
    let text = fs::read(path).with_context(|| format!("{}", path.display()))?;
    let json: serde_json::Value = serde_json::from_slice(&text)?;
    json["format_version"].as_u64().context("rustdoc's JSON names no version")
}

/// The lines that only one of both has.
fn difference(kept: &str, wanted: &str) -> String {
    let only = |text: &str, other: &str, mark: char| {
        let other: std::collections::HashSet<_> = other.lines().collect();
        let lines = text.lines().filter(|line| !other.contains(line));
        lines.map(|line| format!("{mark} {line}\n")).collect::<String>()
    };
    only(kept, wanted, '-') + &only(wanted, kept, '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_went_and_what_came() {
        let kept = "pub fn a()\npub fn b()\n";
        let wanted = "pub fn a()\npub fn c()\n";
        assert_eq!(difference(kept, wanted), "- pub fn b()\n+ pub fn c()\n");
        assert_eq!(difference(kept, kept), "");
    }
}
