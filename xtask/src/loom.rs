//! `cargo xtask loom`: the concurrency models, built with `--cfg tr_loom` into a target folder of their own.

use std::process::Command;

use anyhow::{Result, ensure};
use cargo_metadata::{Package, TargetKind};

use crate::{
    repo::{Repo, has_target},
    shell,
};

/// How code under the models is marked; spelled so that this file has no such mark.
const CFG_USED: &str = concat!("cfg(", "tr_loom");

/// Runs the test `loom` of every crate that has one; `false` if none has.
pub(crate) fn run(repo: &Repo) -> Result<bool> {
    let models: Vec<_> = repo.packages.iter().filter(|package| has_models(package)).collect();
    for (path, text) in repo.texts()? {
        let Some(package) = repo.package_of(&path) else { continue };
        ensure!(
            has_models(package) || !path.contains("/src/") || !text.contains(CFG_USED),
            "{path} has code for `tr_loom`, but {} has no tests/loom.rs that runs it",
            package.name,
        );
    }
    if models.is_empty() {
        return Ok(false);
    }
    let mut cargo: Command = repo.cargo();
    cargo
        .args(["test", "--release", "--test", "loom"])
        // Another `--cfg` would otherwise rebuild everything in the usual folder, twice.
        .env("CARGO_TARGET_DIR", repo.root.join("target-loom"))
        .env("RUSTFLAGS", "--cfg tr_loom");
    for package in models {
        cargo.args(["--package", package.name.as_str()]);
    }
    shell::run(&mut cargo)?;
    Ok(true)
}

fn has_models(package: &Package) -> bool {
    has_target(package, &TargetKind::Test, "loom")
}
