//! What is linked into the program: the crates, as `cargo tree` resolves their features, and the C code below them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, MetadataCommand, PackageId};

use crate::{repo::Repo, shell};

/// The crate whose program is packed.
pub(super) const PROGRAM: &str = "tool-guard";

/// A crate or a library that is linked.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    pub(super) licence: String,
    pub(super) authors: Vec<String>,
    /// Where its licence files are, if it brings its source.
    pub(super) folder: Option<PathBuf>,
    /// The SHA-256 of the package that the registry serves.
    pub(super) checksum: Option<String>,
    /// What identifies it in an SBOM.
    pub(super) purl: String,
    /// The purls of what it needs.
    pub(super) needs: Vec<String>,
}

/// Every part of the program for this target, the program first.
pub(super) fn parts(repo: &Repo, triple: &str) -> Result<Vec<Part>> {
    let mut tree = repo.cargo();
    tree.args(["tree", "--locked", "--package", PROGRAM, "--target", triple]).args([
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let linked = named(&shell::read(&mut tree)?);
    let lock: Lock = toml::from_str(&fs::read_to_string(repo.root.join("Cargo.lock"))?)?;
    let checksums = lock.checksums();
    let metadata = MetadataCommand::new()
        .current_dir(&repo.root)
        .other_options(["--locked", "--filter-platform", triple].map(String::from))
        .exec()
        .context("`cargo metadata` does not resolve this workspace")?;
    let mut ids: BTreeMap<&PackageId, Part> = BTreeMap::new();
    for package in &metadata.packages {
        let key = (package.name.to_string(), package.version.to_string());
        if !linked.contains(&key) {
            continue;
        }
        let licence = package.license.as_deref();
        let licence = licence.with_context(|| format!("{} names no licence", package.name))?;
        let part = Part {
            purl: format!("pkg:cargo/{}@{}", key.0, key.1),
            licence: spdx(licence),
            authors: package.authors.clone(),
            folder: package.manifest_path.parent().map(PathBuf::from),
            checksum: checksums.get(&key).cloned(),
            name: key.0,
            version: key.1,
            needs: Vec::new(),
        };
        ids.insert(&package.id, part);
    }
    let resolve = metadata.resolve.as_ref().context("`cargo metadata` resolves nothing")?;
    let mut parts = Vec::new();
    for node in &resolve.nodes {
        let Some(part) = ids.get(&node.id) else { continue };
        let normal = node
            .deps
            .iter()
            .filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
        let needs = normal.filter_map(|dep| Some(ids.get(&dep.pkg)?.purl.clone())).collect();
        parts.push(Part { needs, ..part.clone() });
    }
    native(repo, triple, &mut parts)?;
    parts.sort_by(|a, b| {
        (a.name != PROGRAM, &a.name, &a.version).cmp(&(b.name != PROGRAM, &b.name, &b.version))
    });
    Ok(parts)
}

/// Adds what is no crate: SQLite, Rust's standard library, musl.
fn native(repo: &Repo, triple: &str, parts: &mut Vec<Part>) -> Result<()> {
    let mut added = Vec::new();
    let mut add = |of: &mut Part, name: &str, version: &str, licence: &str| {
        let purl = format!("pkg:generic/{name}@{version}");
        of.needs.push(purl.clone());
        added.push(Part {
            name: name.into(),
            version: version.into(),
            licence: licence.into(),
            purl,
            ..Part::default()
        });
    };
    for part in parts.iter_mut() {
        if part.name == "libsqlite3-sys" {
            let folder = part.folder.as_ref().context("libsqlite3-sys has no folder")?;
            let header = fs::read_to_string(folder.join("sqlite3/sqlite3.h"))?;
            add(part, "sqlite", sqlite_version(&header)?, "blessing");
        }
        if part.name == PROGRAM {
            let rustc = shell::read(repo.command("rustc").arg("--version"))?;
            let version = rustc.split(' ').nth(1).context("rustc says no version")?;
            add(part, "rust-std", version, "MIT OR Apache-2.0");
            if triple.ends_with("musl") {
                add(part, "musl", MUSL, "MIT");
            }
        }
    }
    parts.extend(added);
    Ok(())
}

/// The version that the pinned zig links.
const MUSL: &str = "1.2.5";

fn sqlite_version(header: &str) -> Result<&str> {
    let line = header.lines().find(|line| line.starts_with("#define SQLITE_VERSION "));
    line.and_then(|line| line.split('"').nth(1)).context("sqlite3.h names no version")
}

/// A licence as SPDX writes it; older manifests separate those to choose from by a slash.
fn spdx(licence: &str) -> String {
    licence.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

/// Names and versions, from lines of `cargo tree` such as `http v1.4.0`.
fn named(tree: &str) -> BTreeSet<(String, String)> {
    tree.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let name = words.next()?;
            Some((name.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
        })
        .collect()
}

#[derive(Debug, serde::Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Debug, serde::Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

impl Lock {
    fn checksums(self) -> BTreeMap<(String, String), String> {
        let packages = self.package.into_iter();
        packages.filter_map(|it| Some(((it.name, it.version), it.checksum?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_names_each_crate_once() {
        let tree = "tool-guard v0.1.0 (/tree/crates/tool-guard)\nhttp v1.4.0\nhttp v1.4.0 (*)\n\n";
        let pair = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(named(tree), [pair("http", "1.4.0"), pair("tool-guard", "0.1.0")].into());
    }

    #[test]
    fn an_older_manifest_s_licence_is_an_expression() {
        assert_eq!(spdx("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(spdx("Apache-2.0 / MIT"), "Apache-2.0 OR MIT");
        assert_eq!(spdx("Apache-2.0 AND ISC"), "Apache-2.0 AND ISC");
    }

    #[test]
    fn sqlite_says_its_version() {
        let header = "/* … */\n#define SQLITE_VERSION        \"3.51.0\"\n";
        assert_eq!(sqlite_version(header).unwrap(), "3.51.0");
        sqlite_version("").unwrap_err();
    }
}
