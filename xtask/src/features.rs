//! `cargo xtask features`: every library builds bare, and with each of its features alone; the facade's features
//! build the layers that they name, and no other crate.
//!
//! `--all-features` hides what one feature borrows from another; a user of one feature finds it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use crate::{builds, repo::Repo, shell};

/// Checks each crate in each way. Packages are taken one by one: together, cargo would join their features.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    builds::check(repo)?;
    builds::check_guard(repo)?;
    let texts = repo.texts()?;
    let libraries = repo.names_under("crates");
    for package in libraries.iter().filter_map(|name| repo.package(name)) {
        let name = package.name.as_str();
        let source = format!("crates/{name}/src/");
        let in_code = |feature: &str| {
            let cfg = format!("feature = \"{feature}\"");
            texts.iter().any(|(path, text)| path.starts_with(&source) && text.contains(&cfg))
        };
        for feature in [None].into_iter().chain(own(&package.features, in_code).map(Some)) {
            let way = feature.map_or("bare".into(), |feature| format!("with `{feature}` alone"));
            println!("{name} {way}");
            let mut cargo = repo.cargo();
            cargo.args(["clippy", "--quiet", "--no-default-features", "--package", name]);
            cargo.args(feature.map(|feature| format!("--features={feature}")));
            cargo.args(["--", "-D", "warnings"]);
            shell::run(&mut cargo).with_context(|| format!("{name} does not build {way}"))?;
        }
    }
    Ok(())
}

/// The features that are a crate's own matter: its code asks for them, or they bring a crate. What only joins others and
/// passes on another crate's is checked where those are.
fn own(
    features: &BTreeMap<String, Vec<String>>,
    in_code: impl Fn(&str) -> bool,
) -> impl Iterator<Item = &str> {
    let brings = |on: &[String]| on.iter().any(|on| on.starts_with("dep:"));
    features
        .iter()
        .filter(move |(name, on)| *name != "default" && (brings(on) || in_code(name)))
        .map(|(name, _)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_only_passed_on_is_checked_where_it_comes_from() {
        let features = [
            ("default", ["sqlite"].as_slice()),
            ("conformance", &[]),
            ("sqlite", &["dep:rusqlite"]),
            ("redis", &["dep:redis", "tokio/sync"]),
            ("encryption", &["sqlite", "tr-idempotency/encryption"]),
            ("schema", &["tr-wire/schema"]),
        ];
        let features = features
            .map(|(name, on)| (name.to_owned(), on.iter().map(|on| (*on).to_owned()).collect()));
        let own: Vec<_> = own(&features.into(), |name| ["conformance", "schema"].contains(&name))
            .map(str::to_owned)
            .collect();
        assert_eq!(own, ["conformance", "redis", "schema", "sqlite"]);
    }
}
