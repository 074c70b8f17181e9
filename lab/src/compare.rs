//! `cargo lab compare`: what ours and its peers do with what users need, as `docs/peers.md` has it.
//!
//! The scenarios are the binary `suite` of the package `compare`; here it is built, and told their
//! versions.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use xtask::{repo::Repo, shell};

use crate::cargo;

/// Where the results are kept.
const DOCS: &str = "docs/peers.md";

/// The variable that tells the suite what it was built with: `PACKAGE=VERSION`, with spaces between.
const VERSIONS: &str = "TR_VERSIONS";

/// Prints the results; `save` writes them down, else they must be what is written. Ours must not fail in any case.
pub(crate) fn run(repo: &Repo, save: bool) -> Result<()> {
    let lock = fs::read_to_string(repo.root.join("lab/Cargo.lock"))
        .context("lab/Cargo.lock is not there")?;
    let versions = versions(&lock, "compare")?;
    shell::run(cargo(repo, "build").args(["--release", "--package", "compare", "--bin", "suite"]))?;
    let versions: Vec<_> =
        versions.iter().map(|(package, version)| format!("{package}={version}")).collect();
    let mut suite = repo.command(repo.target.join("release/suite"));
    suite.arg("--docs").arg(DOCS).env(VERSIONS, versions.join(" "));
    if save {
        suite.arg("--save");
    }
    shell::run(&mut suite)
}

/// The version of each package that `package` depends on, by the lock file.
fn versions(lock: &str, package: &str) -> Result<BTreeMap<String, String>> {
    let lock: Table = lock.parse().context("Cargo.lock is no TOML")?;
    let packages = lock.get("package").and_then(Value::as_array).context("Cargo.lock is empty")?;
    let text = |table: &Value, key: &str| Some(table.get(key)?.as_str()?.to_owned());
    let dependent = packages
        .iter()
        .find(|one| text(one, "name").as_deref() == Some(package))
        .with_context(|| format!("Cargo.lock has no package `{package}`"))?;
    let names = dependent.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    // A dependency is a name, with a version behind it only if there are several.
    Ok(names
        .filter_map(Value::as_str)
        .filter_map(|dependency| match dependency.split_once(' ') {
            Some((name, rest)) => {
                Some((name.to_owned(), rest.split(' ').next().unwrap_or(rest).to_owned()))
            }
            None => {
                let of_it = |one: &&Value| text(one, "name").as_deref() == Some(dependency);
                Some((dependency.to_owned(), text(packages.iter().find(of_it)?, "version")?))
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"
        [[package]]
        name = "benches"
        version = "0.1.0"
        dependencies = ["failsafe", "moka 0.12.16"]

        [[package]]
        name = "failsafe"
        version = "1.3.0"

        [[package]]
        name = "moka"
        version = "0.11.0"

        [[package]]
        name = "moka"
        version = "0.12.16"
    "#;

    #[test]
    fn a_dependency_has_the_version_that_is_built() {
        let versions = versions(LOCK, "benches").unwrap();
        assert_eq!(versions["failsafe"], "1.3.0");
        assert_eq!(versions["moka"], "0.12.16");
        assert_eq!(versions.len(), 2);
    }

    #[test]
    fn a_package_that_is_not_there_is_named() {
        let error = versions(LOCK, "benchs").unwrap_err();
        assert_eq!(error.to_string(), "Cargo.lock has no package `benchs`");
    }
}
