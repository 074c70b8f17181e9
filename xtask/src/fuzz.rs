//! `cargo xtask fuzz`: every fuzz target for a few seconds, without sanitizers, so that stable Rust does.

use std::{
    fs,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, Result};

use crate::{
    need::{self, CPP},
    pins,
    repo::Repo,
    shell,
};

/// Seconds for each target when the user names none.
pub(crate) const SECONDS: u32 = 2;

/// Builds the targets of every `crates/*/fuzz`, and runs as many at once as there are processors; `false` if there is none.
pub(crate) fn run(repo: &Repo, seconds: u32) -> Result<bool> {
    let folders = folders(repo);
    if folders.is_empty() {
        return Ok(false);
    }
    // libFuzzer is C++.
    need::ensure(repo, &[&CPP])?;
    let cargo_fuzz = pins::venv(repo, "tools/fuzz", "xtask/tools/fuzz.txt")?.join("cargo-fuzz");
    let work = repo.target.join("fuzz");
    let mut targets = Vec::new();
    for folder in &folders {
        let mut build = repo.command(&cargo_fuzz);
        build.args(["build", "--sanitizer", "none", "--target-dir"]).arg(&work);
        // A few seconds of fuzzing do not repay what better code takes to build.
        build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
        shell::run(build.arg("--fuzz-dir").arg(folder))?;
        let names =
            shell::read(repo.command(&cargo_fuzz).args(["list", "--fuzz-dir"]).arg(folder))?;
        targets.extend(names.lines().map(|name| (folder.clone(), name.to_owned())));
    }
    let programs = work.join(format!("{}/release", host(repo)?));
    let waiting = Mutex::new(targets.into_iter());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some((folder, target)) = next() {
            smoke(repo, &programs, &folder, &target, seconds)?;
        }
        Ok(())
    };
    let ends: Vec<Result<()>> = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    ends.into_iter().collect::<Result<()>>()?;
    Ok(true)
}

/// The platform that cargo-fuzz builds for.
fn host(repo: &Repo) -> Result<String> {
    let version = shell::read(repo.command("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc names no host")
}

fn smoke(repo: &Repo, programs: &Path, folder: &Path, target: &str, seconds: u32) -> Result<()> {
    let work = repo.target.join("fuzz");
    let corpus = work.join("corpus").join(target);
    let crashes = work.join("crashes").join(target);
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&crashes)?;
    let mut command = repo.command(programs.join(target));
    // New inputs go to the first folder; the committed ones are only read.
    command.arg(corpus);
    let committed = folder.join("corpus").join(target);
    if committed.exists() {
        command.arg(committed);
    }
    shell::run(
        command
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
