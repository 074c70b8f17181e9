//! `cargo xtask fuzz`: every fuzz target for a few seconds, without sanitizers, so that stable Rust does.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::{
    need::{self, CPP},
    pins,
    repo::Repo,
    shell,
};

/// Seconds for each target when the user names none.
pub(crate) const SECONDS: u32 = 2;

/// Runs the targets of every `crates/*/fuzz`; `false` if there is none.
pub(crate) fn run(repo: &Repo, seconds: u32) -> Result<bool> {
    let folders = folders(repo);
    if folders.is_empty() {
        return Ok(false);
    }
    // libFuzzer is C++.
    need::ensure(repo, &[&CPP])?;
    let cargo_fuzz = pins::venv(repo, "tools/fuzz", "xtask/tools/fuzz.txt")?.join("cargo-fuzz");
    for folder in &folders {
        let targets =
            shell::read(repo.command(&cargo_fuzz).args(["list", "--fuzz-dir"]).arg(folder))?;
        for target in targets.lines() {
            smoke(repo, &cargo_fuzz, folder, target, seconds)?;
        }
    }
    Ok(true)
}

fn smoke(repo: &Repo, cargo_fuzz: &Path, folder: &Path, target: &str, seconds: u32) -> Result<()> {
    let work = repo.target.join("fuzz");
    let corpus = work.join("corpus").join(target);
    let crashes = work.join("crashes").join(target);
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&crashes)?;
    let mut command = repo.command(cargo_fuzz);
    command
        .args(["run", "--sanitizer", "none", "--target-dir"])
        .arg(&work)
        .arg("--fuzz-dir")
        .arg(folder)
        .arg(target)
        // New inputs go to the first folder; the committed ones are only read.
        .arg(corpus);
    let committed = folder.join("corpus").join(target);
    if committed.exists() {
        command.arg(committed);
    }
    shell::run(
        command
            .arg("--")
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", crashes.display())),
    )
}

fn folders(repo: &Repo) -> Vec<PathBuf> {
    repo.packages
        .iter()
        .map(|package| package.manifest_path.as_std_path().with_file_name("fuzz"))
        .filter(|folder| folder.join("Cargo.toml").exists())
        .collect()
}
