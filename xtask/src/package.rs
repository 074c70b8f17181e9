//! `cargo xtask package`: a registry would take every crate, in the order of their dependencies.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::Package;

use crate::{repo::Repo, shell};

mod stranger;

/// What a package holds beside its code.
const FILES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// The registry's categories that our crates are in. It drops one that it does not know without an error.
const CATEGORIES: &[&str] = &[
    "asynchronous",
    "command-line-utilities",
    "config",
    "data-structures",
    "database",
    "development-tools",
    "development-tools::profiling",
    "development-tools::testing",
    "encoding",
    "network-programming",
    "parser-implementations",
];

/// Publishes all crates, but for the upload; `build` also compiles each from its package alone, and uses them as a
/// stranger would.
pub(crate) fn run(repo: &Repo, build: bool) -> Result<()> {
    let packages: Vec<_> =
        repo.names_under("crates").into_iter().filter_map(|name| repo.package(name)).collect();
    let faults: Vec<_> = packages.iter().flat_map(|package| faults(package)).collect();
    ensure!(faults.is_empty(), "{}", faults.join("\n"));

    let of_all = |args: &[&str]| {
        let mut cargo = repo.cargo();
        cargo.args(args).args(["--allow-dirty", "--quiet"]);
        for package in &packages {
            cargo.args(["--package", package.name.as_str()]);
        }
        cargo
    };
    let listed = shell::read(&mut of_all(&["package", "--list"]))?;
    for file in FILES {
        let count = listed.lines().filter(|line| line == file).count();
        ensure!(count == packages.len(), "{} packages have no {file}", packages.len() - count);
    }
    let verify = if build { None } else { Some("--no-verify") };
    shell::run(of_all(&["publish", "--dry-run"]).args(verify))
        .context("the crates cannot be published")?;
    println!("{} crates can be published", packages.len());
    if build {
        shell::run(&mut of_all(&["package", "--no-verify"]))?;
        stranger::run(repo, &packages)?;
    }
    Ok(())
}

/// The package as a registry serves it.
fn packed(repo: &Repo, package: &Package) -> PathBuf {
    repo.target.join(format!("package/{}-{}.crate", package.name, package.version))
}

/// What is wrong with what a registry shows of a crate. `cargo publish` itself asks for a description and a licence only.
fn faults(package: &Package) -> Vec<String> {
    let is_keyword = |word: &String| {
        word.len() <= 20
            && word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    let docs = package.metadata["docs"]["rs"]["all-features"].as_bool();
    [
        (
            package.description.as_ref().is_some_and(|text| text.ends_with('.')),
            "a description: a sentence",
        ),
        (package.license.is_some(), "a licence"),
        (package.rust_version.is_some(), "a `rust-version`"),
        (package.readme.is_some(), "a readme"),
        (
            (1..=5).contains(&package.keywords.len()) && package.keywords.iter().all(is_keyword),
            "one to five keywords of its own, each at most 20 characters",
        ),
        (
            (1..=5).contains(&package.categories.len())
                && package.categories.iter().all(|c| CATEGORIES.contains(&c.as_str())),
            "one to five categories, listed in xtask/src/package.rs",
        ),
        (docs == Some(true), "`all-features = true` in [package.metadata.docs.rs]"),
    ]
    .into_iter()
    .filter(|(is_so, _)| !is_so)
    .map(|(_, what)| format!("{}: its manifest needs {what}", package.name))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn with(name: &str, value: Value) -> Vec<String> {
        let mut package = json!({
            "name": "tr-x",
            "version": "0.1.0",
            "id": "tr-x 0.1.0",
            "dependencies": [],
            "targets": [],
            "features": {},
            "manifest_path": "/crates/tr-x/Cargo.toml",
            "description": "Does one thing.",
            "license": "MIT",
            "rust_version": "1.89",
            "readme": "README.md",
            "keywords": ["tower", "circuit-breaker"],
            "categories": ["asynchronous"],
            "metadata": {"docs": {"rs": {"all-features": true}}},
        });
        if !name.is_empty() {
            package[name] = value;
        }
        faults(&serde_json::from_value(package).unwrap())
    }

    #[test]
    fn a_manifest_lacks_nothing_that_a_registry_shows() {
        assert!(with("", Value::Null).is_empty());
        let faulty = [
            ("description", Value::Null),
            ("description", json!("without an end")),
            ("license", Value::Null),
            ("rust_version", Value::Null),
            ("readme", Value::Null),
            ("keywords", json!([])),
            ("keywords", json!(["a", "b", "c", "d", "e", "f"])),
            ("keywords", json!(["two words"])),
            ("keywords", json!(["longer-than-a-keyword"])),
            ("categories", json!([])),
            ("categories", json!(["asynchronus"])),
            ("metadata", Value::Null),
        ];
        for (name, value) in faulty {
            assert_eq!(with(name, value.clone()).len(), 1, "{name}: {value}");
        }
    }
}
