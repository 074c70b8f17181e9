//! What the rules look at: the workspace's crates and the texts of all files.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use cargo_metadata::{DependencyKind, Package};

use super::{Fault, tokens::Tokens};
use crate::repo::Repo;

/// The repository as data.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) crates: Vec<Crate>,
    pub(super) texts: Vec<Text>,
}

/// A package of the workspace.
#[derive(Debug, Default)]
pub(super) struct Crate {
    pub(super) name: String,
    /// Its folder, from the root, without a slash at the end.
    pub(super) folder: String,
    pub(super) deps: Vec<Dep>,
    /// Dependencies that its feature `default` switches on.
    pub(super) on_by_default: BTreeSet<String>,
}

/// One line of a crate's dependencies.
#[derive(Debug)]
pub(super) struct Dep {
    pub(super) name: String,
    pub(super) dev: bool,
    pub(super) optional: bool,
}

/// A text file.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) path: String,
    pub(super) text: String,
    /// `None` for what is no Rust file; the error for what is none either, though its name says so.
    pub(super) code: Option<Result<Tokens, String>>,
}

impl Tree {
    pub(super) fn read(repo: &Repo) -> Result<Self> {
        let crates = repo.packages.iter().map(|package| Crate::of(repo, package)).collect();
        let texts = repo.texts()?.into_iter().map(|(path, text)| Text::of(path, text)).collect();
        Ok(Self { crates, texts })
    }

    /// Every Rust file that can be read, with its tokens.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&Text, &Tokens)> {
        self.texts.iter().filter_map(|text| Some((text, text.code.as_ref()?.as_ref().ok()?)))
    }

    /// Rust files below a folder.
    pub(super) fn rust_under(&self, folder: &str) -> impl Iterator<Item = (&Text, &Tokens)> {
        self.rust().filter(move |(text, _)| {
            text.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        })
    }

    pub(super) fn unreadable(&self) -> impl Iterator<Item = Fault> {
        self.texts.iter().filter_map(|text| {
            let why = text.code.as_ref()?.as_ref().err()?;
            Some(text.fault("rust", 0, format!("is no Rust: {why}")))
        })
    }
}

impl Text {
    fn of(path: String, text: String) -> Self {
        let code = path.ends_with(".rs").then(|| Tokens::of(&path, &text));
        Self { path, text, code }
    }

    pub(super) fn fault(&self, rule: &'static str, line: usize, what: impl Into<String>) -> Fault {
        Fault { path: self.path.clone(), line, rule, what: what.into() }
    }
}

impl Crate {
    fn of(repo: &Repo, package: &Package) -> Self {
        let folder = package.manifest_path.parent().map_or("".as_ref(), |f| f.as_std_path());
        Self {
            name: package.name.to_string(),
            folder: repo.relative(folder).to_string_lossy().into_owned(),
            deps: package
                .dependencies
                .iter()
                .map(|dep| Dep {
                    name: dep.name.clone(),
                    dev: dep.kind == DependencyKind::Development,
                    optional: dep.optional,
                })
                .collect(),
            on_by_default: on_by_default(&package.features),
        }
    }

    pub(super) fn fault(&self, rule: &'static str, what: impl Into<String>) -> Fault {
        Fault { path: format!("{}/Cargo.toml", self.folder), line: 0, rule, what: what.into() }
    }

    /// Whether it is one of the crates that others use, and so bound by the rooms.
    pub(super) fn is_library(&self) -> bool {
        self.folder.starts_with("crates/")
    }
}

/// Dependencies that the feature `default` reaches.
fn on_by_default(features: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec!["default".to_owned()];
    while let Some(feature) = open.pop() {
        if seen.insert(feature.clone()) {
            open.extend(features.get(&feature).into_iter().flatten().cloned());
        }
    }
    // `dep:name`, `name/feature` or, implicitly, `name`; `name?/feature` switches nothing on.
    seen.iter()
        .filter(|feature| !feature.contains('?'))
        .filter_map(|feature| feature.trim_start_matches("dep:").split('/').next())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
impl Tree {
    pub(super) fn of(texts: &[(&str, &str)]) -> Self {
        let texts = texts.iter().map(|(path, text)| Text::of((*path).into(), (*text).into()));
        Self { crates: Vec::new(), texts: texts.collect() }
    }

    pub(super) fn with(crates: Vec<Crate>) -> Self {
        Self { crates, texts: Vec::new() }
    }
}

#[cfg(test)]
impl Crate {
    /// A crate in `crates/` with ordinary dependencies.
    pub(super) fn on(name: &str, deps: &[&str]) -> Self {
        let dep = |name: &&str| Dep { name: (*name).into(), dev: false, optional: false };
        Self {
            name: name.into(),
            folder: format!("crates/{name}"),
            deps: deps.iter().map(dep).collect(),
            on_by_default: BTreeSet::new(),
        }
    }

    /// The same dependencies, for its tests only.
    pub(super) fn dev(mut self) -> Self {
        for dep in &mut self.deps {
            dep.dev = true;
        }
        self
    }

    /// The same dependencies, each behind a feature.
    pub(super) fn optional(mut self) -> Self {
        for dep in &mut self.deps {
            dep.optional = true;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_reaches_through_other_features() {
        let features = [
            ("default", ["store", "tokio?/time"].as_slice()),
            ("store", &["dep:rusqlite", "redis/aio"]),
            ("off", &["dep:axum"]),
        ];
        let features = features
            .map(|(name, on)| (name.to_owned(), on.iter().map(|on| (*on).to_owned()).collect()));
        let on = on_by_default(&features.into());
        assert!(on.contains("rusqlite") && on.contains("redis"), "{on:?}");
        assert!(!on.contains("axum") && !on.contains("tokio"), "{on:?}");
    }
}
